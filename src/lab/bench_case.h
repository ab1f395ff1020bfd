/* What `healcl bench` measures, as transcripts. */
#ifndef HEALCL_LAB_BENCH_CASE_H
#define HEALCL_LAB_BENCH_CASE_H

#include "core/status.h"
#include "lab/bench.h"

enum { BENCH_MODULI_MAX = 64 };

/* One operation with all its parameters settled. */
struct bench_case {
    const struct bench_operation *operation;
    struct bench_settings settings;
    uint64_t moduli[BENCH_MODULI_MAX]; /* the first settings.of[BENCH_K] of them, or one */
    struct extents shape;              /* as in struct bench_result */
    enum bench_unit unit;
    uint64_t units, bytes; /* of one operation */
};

/* Errors: HEALCL_USAGE where parameters do not fit together. */
MUST_CHECK enum healcl_status bench_case_init(struct bench_case *self,
                                              const struct bench_operation *operation,
                                              const struct bench_settings *given,
                                              struct healcl_error *error);

/* Whether the case is a plain copy in the host's memory, which has no transcript. */
bool bench_case_is_host_copy(const struct bench_case *self);

/* Whether the operation adds to what its output held. */
bool bench_case_accumulates(const struct bench_case *self);

/* How many rows the first axis of inputs and output has; a row of the output depends only on the
 * same row of the inputs and on what all rows share. */
int64_t bench_case_rows(const struct bench_case *self);

enum { BENCH_PREPARE, BENCH_OPERATE, BENCH_RESULT, BENCH_SEGMENTS };

/*
 * The transcript of the rows [first, first + count): the segments BENCH_PREPARE ..., the last of
 * which downloads those rows of the output. Random data are those of the whole case, whatever the
 * rows are. The text is freed with free(). Errors: HEALCL_NO_MEMORY.
 */
MUST_CHECK enum healcl_status bench_case_text(const struct bench_case *self, int64_t first,
                                              int64_t count, char **text, size_t *length,
                                              struct healcl_error *error);

#endif
