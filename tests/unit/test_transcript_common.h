/* Declarations that the tests of the transcript module share: handmade payloads, and their
 * checks. */
#ifndef TEST_TRANSCRIPT_COMMON_H
#define TEST_TRANSCRIPT_COMMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "transcript/source.h"

enum { TEXT_SIZE = 16384 };

/* The message of a call that must fail with status, and must say part. */
static inline void expect_failure(enum healcl_status got, const struct healcl_error *error,
                                  enum healcl_status status, const char *part)
{
    if (got != status || error->status != status || !strstr(error->message, part))
        fail_msg("status %s and \"%s\" were expected, not status %s and \"%s\"",
                 healcl_status_name(status), part, healcl_status_name(got), error->message);
    assert_null(strchr(error->message, '\n'));
}

static inline void expect_refusal(enum healcl_status got, const struct healcl_error *error,
                                  const char *part)
{
    expect_failure(got, error, HEALCL_REFUSED, part);
}

static inline void expect_ok(enum healcl_status got, const struct healcl_error *error)
{
    if (got != HEALCL_OK)
        fail_msg("unexpected status %s: %s", healcl_status_name(got), error->message);
}

/* A copy without terminator in memory of its own, so that a sanitizer sees reads beyond it. */
static inline char *exact_copy(const void *bytes, size_t length)
{
    char *copy = malloc(length > 0 ? length : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    return copy;
}

/* snprintf into a text that is known to be large enough. */
__attribute__((format(printf, 3, 4))) static inline void put(char *text, size_t size,
                                                             const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, size, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && (size_t)length < size);
}

/* Encodes into text, terminated; returns the length. */
static inline size_t encode_base64(const unsigned char *bytes, size_t length, char *text)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t used = 0;
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        unsigned bits = (unsigned)bytes[i] << 16;
        bits |= left > 1 ? (unsigned)bytes[i + 1] << 8 : 0;
        bits |= left > 2 ? (unsigned)bytes[i + 2] : 0;
        text[used++] = alphabet[bits >> 18];
        text[used++] = alphabet[bits >> 12 & 63];
        text[used++] = alphabet[bits >> 6 & 63];
        text[used++] = alphabet[bits & 63];
        if (left < 3)
            text[used - 1] = '=';
        if (left < 2)
            text[used - 2] = '=';
    }
    text[used] = 0;
    return used;
}

/* A .npy file with this header text (not padded) and these data; returns its length. */
static inline size_t make_npy(unsigned version, const char *header, const void *data,
                              size_t data_length, unsigned char *npy)
{
    size_t header_length = strlen(header);
    size_t used = 0;
    memcpy(npy, "\x93NUMPY", 6);
    npy[6] = (unsigned char)version;
    npy[7] = 0;
    for (used = 8; used < (version == 1 ? 10u : 12u); used++)
        npy[used] = (unsigned char)(header_length >> 8 * (used - 8));
    memcpy(npy + used, header, header_length);
    used += header_length;
    if (data_length > 0)
        memcpy(npy + used, data, data_length);
    return used + data_length;
}

/* The base64 of such a file; returns its length. */
static inline size_t make_payload(const char *header, const void *data, size_t data_length,
                                  char text[TEXT_SIZE])
{
    unsigned char npy[TEXT_SIZE / 2];
    assert_true(strlen(header) + data_length + 16 < sizeof npy);
    return encode_base64(npy, make_npy(1, header, data, data_length, npy), text);
}

/* A part of a pseudorandom sequence (xorshift64*), for data without pattern. */
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

#endif
