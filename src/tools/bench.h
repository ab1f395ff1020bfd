/*
 * Measures what single operations of a transcript cost on a device.
 *
 * A case is a small transcript in memory. One segment uploads random data, one has the operation,
 * one downloads its result. The result is compared with the host reference's, a large one by some
 * of its rows. Then the operation's segment is timed alone. Its times hold all that a run pays for
 * an operation, with the wait at a segment's end. Tables derived from moduli and twiddles are made
 * once, as in a run.
 */
#ifndef HEALCL_TOOLS_BENCH_H
#define HEALCL_TOOLS_BENCH_H

#include "tools/example.h"

/* ---------------------------------------------------------------- parameters */

enum bench_parameter {
    BENCH_N,         /* length of a transform, of a row */
    BENCH_BITS,      /* of the moduli */
    BENCH_BATCH,     /* size of the first axis */
    BENCH_K,         /* moduli */
    BENCH_R,         /* size of the axis r */
    BENCH_S,         /* terms of a sum, repetitions of an element */
    BENCH_DIGITS,    /* of the gadget */
    BENCH_BASE_BITS, /* of the gadget */
    BENCH_BYTES,     /* of inputs and outputs together; the batch follows from them */
    BENCH_LAYOUT,    /* enum bench_layout */
    BENCH_DTYPE,     /* 1 + enum dtype */
    BENCH_VALUES,    /* enum bench_values */
    BENCH_PERM,      /* enum bench_perm */
    BENCH_PARAMETER_COUNT
};

enum bench_layout { BENCH_CONTIGUOUS = 1, BENCH_HEAL };

/* Inputs in [0, q), by an operation before, or any numbers of their dtype. */
enum bench_values { BENCH_REDUCED = 1, BENCH_ANY };

/* No permutation (an inverse transform needs one: the identity), or the bit reversal. */
enum bench_perm { BENCH_PERM_NONE = 1, BENCH_PERM_REVERSE };

struct bench_parameter_info {
    const char *name;           /* the option's, and the key in JSON */
    const char *const *choices; /* words for the values 1, 2 ... up to a NULL; or NULL: a number */
    int64_t least, most;        /* of a number */
};

extern const struct bench_parameter_info bench_parameters[BENCH_PARAMETER_COUNT];

/* One value for each parameter; 0 where there is none. */
struct bench_settings {
    int64_t of[BENCH_PARAMETER_COUNT];
};

#define BENCH_SETTINGS(...) \
    {                       \
        {                   \
            __VA_ARGS__     \
        }                   \
    }

/* ---------------------------------------------------------------- cases */

enum bench_unit { BENCH_BUTTERFLY, BENCH_ELEMENT, BENCH_PRODUCT, BENCH_BYTE };

extern const char *const bench_unit_names[];

/* The tensors of an operation that are as large as its work. */
enum bench_tensor { BENCH_A, BENCH_B, BENCH_INDICES, BENCH_OUT, BENCH_TENSORS };

/* A row of the table in bench_table.c; without a name behind the last one. */
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
    /* Words as in tools/writer.h; those of word_of in bench_case.c stand for others. */
    const char *arguments;
    /* An operation that makes a view of A, called "view", from which OUT is made; or NULL. */
    const char *view, *view_arguments;
    int64_t gap; /* elements behind each row of A that the view leaves out */
    struct bench_settings defaults;
};

extern const struct bench_operation bench_operations[];

/* NULL where there is none. */
const struct bench_operation *bench_operation_find(const char *name);

/* Whether a parameter means anything to an operation. */
bool bench_operation_takes(const struct bench_operation *operation, enum bench_parameter parameter);

/* The cases that are measured where no operation is named: operations, and parameters that differ
 * from their defaults. operation is NULL behind the last one. */
struct bench_suite_case {
    const char *operation;
    struct bench_settings values;
};

extern const struct bench_suite_case bench_suite[];

/* ---------------------------------------------------------------- measuring */

struct bench_options {
    uint32_t repeat;       /* samples; 0: enough of them */
    uint32_t sample_ns;    /* that a sample takes at least; 0: long enough for a quiet figure */
    uint64_t memory_limit; /* bytes that the case's tensors may take */
    /* Operations and kernels of manifests, which run where they are for a step; or NULL. */
    const struct operation_table *table;
};

struct bench_result {
    const struct bench_operation *operation;
    struct bench_settings parameters; /* all that it takes; BENCH_BYTES only where it was given */
    struct layout shape;              /* of the main input, or of the output where there is none */
    enum bench_unit unit;
    uint64_t units;    /* of one operation */
    uint64_t bytes;    /* of inputs and outputs, each counted once, without moduli and twiddles */
    uint32_t launches; /* operations in one sample, between two waits */
    uint32_t samples;
    double median_ns, min_ns, max_ns; /* of one operation, over the samples */
    double quartile_ns[2];            /* a quarter of the samples is below, and above */
    const char *kernel, *manifest;    /* of the first step; built-in: manifest is NULL */
    char not_run[256]; /* which kernel of a manifest did not run it, and why; or "" */
};

/*
 * Measures one case. given: the parameters that replace the operation's defaults, each one that it
 * takes, in its range.
 * Errors: as bench_case_init; HEALCL_DIFFERENT where the device's result is not the reference's:
 * then there are no times. Otherwise as healcl_run.
 */
enum healcl_status bench_run(struct healcl_device *device, const struct bench_operation *operation,
                             const struct bench_settings *given,
                             const struct bench_options *options, struct bench_result *result,
                             struct healcl_error *error);

/*
 * Measures the call of an example by a side, compared first with the body on the host reference if
 * there is one. *kernel: the alternative that is to run it, one of its kernel's names, or NULL:
 * any; then the one that has, or NULL. result->samples is 0 where another one would run it, or
 * nothing. Errors: as bench_run.
 */
enum healcl_status bench_example(struct healcl_device *device, const struct bench_options *options,
                                 const struct examples *examples, const struct example *example,
                                 enum example_side side, const char **kernel,
                                 struct bench_result *result, struct healcl_error *error);

/* The times of one example of an operation of a manifest. */
struct bench_example {
    const struct example *example;
    const char *kernel; /* that runs it, as vendor_kernel_for names it; NULL: none */
    struct bench_result of[EXAMPLE_SIDES]; /* samples is 0: no kernel for the device, or no body */
};

#endif
