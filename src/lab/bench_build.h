/*
 * Transcripts in the making, one operand after the other: what the operations of bench_make.c
 * share.
 *
 * The same function of an operation is called twice: once to find sizes, and once to write.
 */
#ifndef HEALCL_LAB_BENCH_BUILD_H
#define HEALCL_LAB_BENCH_BUILD_H

#include "lab/bench_case.h"

/* Names of tensors. Q is [k], Q_COLUMN [k,1], ROOTS [k,n], N_INV [k], PERM [n]. */
enum tensor_name {
    NO_NAME,
    A,
    B,
    OUT,
    VIEW,
    Q,
    Q_COLUMN,
    ROOTS,
    N_INV,
    PERM,
    INDICES,
    /* scratch of bench_build.c */
    TILE,
    TILES,
    FLAT,
    PART,
};

/* With stream NULL nothing is written, only sizes are found. */
struct build {
    const struct bench_operation *operation;
    const struct bench_settings *settings;
    const uint64_t *moduli;
    FILE *stream;
    int64_t first, count; /* rows of the batch that are written */
    enum dtype dtype;     /* of moduli, and of values where nothing else is said */
    /* What is found, of the whole case. */
    struct extents shape;
    int64_t row_bytes; /* of inputs and outputs that have rows */
    int64_t common_bytes;
    int64_t inputs, outputs; /* elements of A and OUT */
    bool too_large;
    bool no_memory;
};

enum { ELEMENTS_MAX_BITS = 40 }; /* of one tensor */

/* A row of the table in bench_make.c. */
struct bench_operation {
    const char *name;
    const char *operation; /* as transcripts call it; NULL: as name */
    void (*make)(struct build *build);
    enum bench_unit unit;
    bool is_transform; /* moduli are 1 modulo 2n */
    bool takes_int8;
    bool accumulates;
    bool is_host_copy;
    bool dtype_is_outputs; /* the dtype is the output's alone; the input has int64 */
    struct bench_settings defaults;
};

enum {
    INT8 = 1 + DTYPE_INT8,
    INT32 = 1 + DTYPE_INT32,
    INT64 = 1 + DTYPE_INT64,
    AUTO = -1, /* bits: by the dtype; digits: as many as the moduli have */
};

static inline int64_t get(const struct build *build, enum bench_parameter parameter)
{
    return build->settings->of[parameter];
}

static inline bool is_heal(const struct build *build)
{
    return get(build, BENCH_LAYOUT) == BENCH_HEAL;
}

/* The dtype that was asked for, int8 too. */
static inline enum dtype any_dtype(const struct build *build)
{
    return (enum dtype)(get(build, BENCH_DTYPE) - 1);
}

/* Moduli; 1 where k is no parameter. */
static inline int64_t modulus_count(const struct build *build)
{
    return get(build, BENCH_K) ? get(build, BENCH_K) : 1;
}

/* Whether the first axis of a tensor is the batch. */
enum rows { COMMON, ROWS };

/* In [0, q) for every q; of all 64 bits; or rows that permute [0, n). */
enum content { RESIDUES, NUMBERS, PERMUTATIONS };

/* Notes the bytes of an input or output. */
void build_count(struct build *build, const struct extents *shape, enum dtype dtype,
                 enum rows rows);

/* A tensor of random data, and the same that is counted as input. */
void build_data(struct build *build, enum tensor_name name, struct extents shape, enum dtype dtype,
                enum content content, enum rows rows);
void build_input(struct build *build, enum tensor_name name, struct extents shape, enum dtype dtype,
                 enum content content, enum rows rows);

/* An input modulo q: reduced by an operation before, or of any numbers. Its last axis is k, or the
 * one before the last. */
void build_residues(struct build *build, enum tensor_name name, struct extents shape,
                    enum rows rows, bool k_is_last);

/* Allocates OUT, which has rows, or only counts what becomes OUT. */
void build_output(struct build *build, struct extents shape, enum dtype dtype);
void build_count_output(struct build *build, const struct extents *shape, enum dtype dtype);

/* Q and Q_COLUMN */
void build_moduli(struct build *build);

/* ROOTS and N_INV: powers of real roots, so that the transforms are true ones. */
void build_roots(struct build *build, bool inverse);

/* PERM: the bit reversal, or the identity. */
void build_permutation(struct build *build);

/* The moduli as an argument beside tensors with k as last axis, or last but one. One alone is a
 * scalar. */
struct bench_argument build_modulus(const struct build *build, bool k_is_last);

/* The operation, which comes last, and the download of OUT. result: OUT where the operation makes
 * it, else NO_NAME. */
void build_operation(struct build *build, enum tensor_name result,
                     const struct bench_argument *arguments);

#endif
