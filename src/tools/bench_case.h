/* What `healcl bench` measures, as transcripts. */
#ifndef HEALCL_TOOLS_BENCH_CASE_H
#define HEALCL_TOOLS_BENCH_CASE_H

#include "core/status.h"
#include "tools/bench.h"

enum { BENCH_MODULI_MAX = 64 };

/* The tensors of an operation that are as large as its work. */
enum bench_tensor { BENCH_A, BENCH_B, BENCH_INDICES, BENCH_OUT, BENCH_TENSORS };

/* A row of the table in bench_table.c. */
struct bench_operation {
    const char *name;
    const char *operation; /* as transcripts call it; NULL: as name */
    enum bench_unit unit;  /* butterflies: a transform, whose moduli are 1 modulo 2n */
    bool takes_int8;
    bool accumulates;      /* OUT is an input, too */
    bool dtype_is_outputs; /* the dtype is OUT's alone; inputs have int64 */
    /*
     * A letter for each axis, by enum bench_layout - 1; NULL: there is no such tensor. b is the
     * batch, d the digits, m is n * s and p twice n; k, n, r, s and 1 are themselves. Where it
     * begins with b, a tensor has rows: a row of OUT depends only on the same row of the others
     * and on tensors without any.
     */
    const char *shapes[BENCH_TENSORS][2];
    /* Words as in transcript/writer.h; those of word_of in bench_case.c stand for others. NULL: no
     * transcript, a copy in the host's memory. */
    const char *arguments;
    /* What makes a view of A, called "view", that the operation then makes OUT from; or NULL. */
    const char *view, *view_arguments;
    int64_t gap; /* elements behind each row of A that the view leaves out */
    struct bench_settings defaults;
};

/* What a default may be: it follows from the dtype (bits) or the moduli (digits). */
enum { BENCH_AUTO = -1 };

/* One operation with all its parameters settled. */
struct bench_case {
    const struct bench_operation *operation;
    struct bench_settings settings;
    uint64_t moduli[BENCH_MODULI_MAX]; /* the first settings.of[BENCH_K] of them, or one */
    struct layout shape;               /* as in struct bench_result */
    uint64_t units, bytes;             /* of one operation */
};

/* Errors: HEALCL_USAGE where parameters do not fit together. */
enum healcl_status bench_case_init(struct bench_case *self, const struct bench_operation *operation,
                                   const struct bench_settings *given, struct healcl_error *error);

/* How many rows the tensors have that have any. */
int64_t bench_case_rows(const struct bench_case *self);

enum { BENCH_PREPARE, BENCH_OPERATE, BENCH_RESULT, BENCH_SEGMENTS };

/*
 * The transcript of the rows [first, first + count): the segments BENCH_PREPARE ..., the last of
 * which downloads those rows of the output. Random data are those of the whole case, whatever the
 * rows are. The text is freed with free().
 */
char *bench_case_text(const struct bench_case *self, int64_t first, int64_t count);

#endif
