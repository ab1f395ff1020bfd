/* The cases of `healcl bench` as transcripts. */
#ifndef HEALCL_TOOLS_BENCH_CASE_H
#define HEALCL_TOOLS_BENCH_CASE_H

#include "tools/bench.h"

enum { BENCH_MODULI_MAX = 64 };

/* A default that depends on the dtype (bits) or on the moduli (digits). */
enum { BENCH_AUTO = -1 };

/* One operation with all its parameters set. */
struct bench_case {
    const struct bench_operation *operation;
    struct bench_settings settings;
    uint64_t moduli[BENCH_MODULI_MAX]; /* the first settings.of[BENCH_K] are used, or one */
    struct layout shape;               /* as in struct bench_result */
    uint64_t units, bytes;             /* of one operation */
    uint64_t output_bytes;
};

/* Initializes a case. Errors: HEALCL_USAGE if parameters do not fit together. */
enum healcl_status bench_case_init(struct bench_case *self, const struct bench_operation *operation,
                                   const struct bench_settings *given, struct healcl_error *error);

enum {
    BENCH_PREPARE,
    BENCH_OPERATE,
    BENCH_RESULT,
    BENCH_SEGMENTS,
    BENCH_SECOND_OPERATE = BENCH_SEGMENTS, /* for a second output, if `twice` is set */
    BENCH_SECOND_RESULT
};

/* Returns the transcript of the rows [first, first + count), to be freed with free(). Its segments
 * are BENCH_PREPARE and so on; BENCH_RESULT downloads these rows of the output. Random data are
 * those of the whole case, for any rows. twice: adds a second output. */
char *bench_case_text(const struct bench_case *self, int64_t first, int64_t count, bool twice);

#endif
