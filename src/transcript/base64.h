/* Base64 (RFC 4648, section 4): the standard alphabet, padded, nothing else. */
#ifndef HEALCL_TRANSCRIPT_BASE64_H
#define HEALCL_TRANSCRIPT_BASE64_H

#include <stdbool.h>

#include "core/status.h"

/* How many characters are of the alphabet before the first other one, '=' included. */
size_t base64_good(const char *text, size_t length);

/*
 * Checks a whole text by what base64_good says of it, and sets the number of bytes it decodes to.
 * Refuses characters outside of the alphabet, padding elsewhere than at the end, and lengths that
 * are not multiples of four. Messages begin with "base64: ".
 */
enum healcl_status base64_check(const char *text, size_t length, size_t good, uint64_t *decoded,
                                struct healcl_error *error);

/* Copies up to count characters from text[*at] on and steps over them. A JSON escape becomes the
 * character that it stands for, or '\\' where base64 cannot hold that. Returns how many, fewer at
 * the end of the text. */
size_t base64_unescape(const char *text, size_t length, size_t *at, char *characters, size_t count);

/*
 * Checks a text with JSON escapes as base64_check does, and sets the number of its characters too.
 * Messages name places in the text. blocks[i], for length / BASE64_BLOCK + 1 of them, becomes the
 * place of character i * BASE64_BLOCK.
 */
enum { BASE64_BLOCK = 16384 };
enum healcl_status base64_check_escaped(const char *text, size_t length, size_t *blocks,
                                        uint64_t *characters, uint64_t *decoded,
                                        struct healcl_error *error);

/*
 * Decodes groups times four characters into groups times three bytes, no byte beyond. is_end: the
 * last group may be padded, which decodes as zeros. Returns whether all characters are good; else
 * the bytes are unspecified.
 */
bool base64_decode(const char *text, size_t groups, bool is_end, unsigned char *bytes);

/* Characters that count bytes are encoded in. */
size_t base64_length(size_t count);

/* Encodes, with a terminator behind. */
void base64_encode(const unsigned char *bytes, size_t count, char *text);

#endif
