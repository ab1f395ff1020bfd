/* Declarations that the fuzzers share. */
#ifndef HEALCL_TESTS_FUZZ_FUZZ_H
#define HEALCL_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"

/* libFuzzer and replay.c call this. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process in a way that every fuzzer notices, NDEBUG or not. */
#define EXPECT(condition)                                                   \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

/* A refusal says why, in one line. Nothing else may fail: there is enough memory. */
static inline void expect_told(enum healcl_status status, const struct healcl_error *error)
{
    if (status == HEALCL_OK)
        return;
    EXPECT(status == HEALCL_REFUSED && error->status == HEALCL_REFUSED);
    EXPECT(error->message[0] != 0 && !strchr(error->message, '\n'));
}

/* A copy followed by a 0, like a file that has been read; in memory of its own, so that a
 * sanitizer sees reads beyond the end. */
static inline char *text_of(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    EXPECT(text);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = 0;
    return text;
}

#endif
