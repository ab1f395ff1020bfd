/* The cases of `healcl bench` as transcripts. */
#ifndef HEALCL_TOOLS_BENCH_CASE_H
#define HEALCL_TOOLS_BENCH_CASE_H

#include "tools/bench.h"

enum { BENCH_MODULI_MAX = 64 };

/* A default that follows from the dtype (bits) or the moduli (digits). */
enum { BENCH_AUTO = -1 };

/* One operation with all its parameters settled. */
struct bench_case {
    const struct bench_operation *operation;
    struct bench_settings settings;
    uint64_t moduli[BENCH_MODULI_MAX]; /* the first settings.of[BENCH_K] of them, or one */
    struct layout shape;               /* as in struct bench_result */
    uint64_t units, bytes;             /* of one operation */
    uint64_t output_bytes;
};

/* Errors: HEALCL_USAGE where parameters do not fit together. */
enum healcl_status bench_case_init(struct bench_case *self, const struct bench_operation *operation,
                                   const struct bench_settings *given, struct healcl_error *error);

enum {
    BENCH_PREPARE,
    BENCH_OPERATE,
    BENCH_RESULT,
    BENCH_SEGMENTS,
    BENCH_SECOND_OPERATE = BENCH_SEGMENTS, /* of another output, where it is asked for */
    BENCH_SECOND_RESULT
};

/*
 * The transcript of the rows [first, first + count): the segments BENCH_PREPARE ..., of which
 * BENCH_RESULT downloads those rows of the output. Random data are those of the whole case,
 * whatever the rows are. twice: with a second output. The text is freed with free().
 */
char *bench_case_text(const struct bench_case *self, int64_t first, int64_t count, bool twice);

#endif
