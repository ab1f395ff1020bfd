/* JSON escapes in strings whose content is expected to be ASCII. */
#ifndef HEALCL_TRANSCRIPT_ESCAPE_H
#define HEALCL_TRANSCRIPT_ESCAPE_H

#include <stddef.h>

/*
 * Moves up to capacity characters from *text (*left bytes, between the quotes of a JSON string)
 * into characters and resolves escapes on the way: "\/" and "/" both give '/'. What an escape
 * says beyond ASCII, and a broken escape, become the byte 0xff, which no ASCII text holds.
 * Advances *text and *left; returns the number of characters, 0 at the end only.
 */
size_t escape_resolve(const char **text, size_t *left, char *characters, size_t capacity);

#endif
