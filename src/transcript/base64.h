/* Base64 (RFC 4648, section 4): only the standard alphabet, with padding. */
#ifndef HEALCL_TRANSCRIPT_BASE64_H
#define HEALCL_TRANSCRIPT_BASE64_H

#include "core/status.h"

/* The number of characters before the first one outside of the alphabet; '=' is outside. */
size_t base64_good(const char *text, size_t length);

/*
 * Checks a whole text, and sets the number of bytes that it decodes to. good: the result of
 * base64_good for it. Refuses characters outside of the alphabet, padding before the end, and
 * lengths that are not multiples of four. Messages begin with "base64: ".
 */
enum healcl_status base64_check(const char *text, size_t length, size_t good, uint64_t *decoded,
                                struct healcl_error *error);

/* Copies up to count characters from text[*at] on, and advances *at past them. A JSON escape
 * becomes the character that it stands for, or '\\' if base64 cannot contain that character.
 * Returns the number of characters, fewer than count at the end of the text. */
size_t base64_unescape(const char *text, size_t length, size_t *at, char *characters, size_t count);

/*
 * Checks a text with JSON escapes as base64_check does. Also sets the number of its characters.
 * Messages give positions in the text. blocks has length / BASE64_BLOCK + 1 elements; blocks[i]
 * becomes the position of character i * BASE64_BLOCK.
 */
enum { BASE64_BLOCK = 16384 };
enum healcl_status base64_check_escaped(const char *text, size_t length, size_t *blocks,
                                        uint64_t *characters, uint64_t *decoded,
                                        struct healcl_error *error);

/*
 * Decodes 4 * groups characters into exactly 3 * groups bytes. is_end: the last group may be
 * padded; padding decodes as zeros. Returns whether all characters are valid; if not, the bytes are
 * unspecified.
 */
bool base64_decode(const char *text, size_t groups, bool is_end, unsigned char *bytes);

/* The number of characters that encode count bytes. */
size_t base64_length(size_t count);

/* Encodes count bytes, and adds a terminator. */
void base64_encode(const unsigned char *bytes, size_t count, char *text);

#endif
