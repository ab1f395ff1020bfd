/*
 * Measures the cost of single operations of a transcript on a device.
 *
 * A case is a small transcript in memory. One segment uploads random data, one runs the operation,
 * and one downloads its result. The result is compared with the host reference's; of a large
 * result, only some rows are. Then the operation's segment is timed alone. Its time includes
 * everything that a run pays for an operation, and the wait at a segment's end. Tables derived from
 * moduli and twiddles are computed once, as in a run.
 */
#ifndef HEALCL_TOOLS_BENCH_H
#define HEALCL_TOOLS_BENCH_H

#include "tools/example.h"

/* ---------------------------------------------------------------- parameters */

enum bench_parameter {
    BENCH_N,         /* length of a transform or a row */
    BENCH_BITS,      /* bit length of the moduli */
    BENCH_BATCH,     /* size of the first axis */
    BENCH_K,         /* number of moduli */
    BENCH_R,         /* size of the axis r */
    BENCH_S,         /* terms of a sum, repetitions of an element */
    BENCH_DIGITS,    /* of the gadget */
    BENCH_BASE_BITS, /* of the gadget */
    BENCH_BYTES,     /* of inputs and outputs together; determines the batch */
    BENCH_LAYOUT,    /* enum bench_layout */
    BENCH_DTYPE,     /* 1 + enum dtype */
    BENCH_VALUES,    /* enum bench_values */
    BENCH_PERM,      /* enum bench_perm */
    BENCH_PARAMETER_COUNT
};

enum bench_layout { BENCH_CONTIGUOUS = 1, BENCH_HEAL };

/* Inputs are in [0, q): reduced by an earlier operation, or any numbers of their dtype. */
enum bench_values { BENCH_REDUCED = 1, BENCH_ANY };

/* No permutation (for an inverse transform, the identity), or the bit reversal. */
enum bench_perm { BENCH_PERM_NONE = 1, BENCH_PERM_REVERSE };

struct bench_parameter_info {
    const char *name;           /* the name of the option, and the key in JSON */
    const char *const *choices; /* words for the values 1, 2 ... up to NULL; or NULL: a number */
    int64_t least, most;        /* range of a number */
};

extern const struct bench_parameter_info bench_parameters[BENCH_PARAMETER_COUNT];

/* One value for each parameter; 0 if it is not set. */
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

/* Tensors of an operation whose sizes grow with its work. */
enum bench_tensor { BENCH_A, BENCH_B, BENCH_INDICES, BENCH_OUT, BENCH_TENSORS };

/* A row of the table in bench_table.c. The last row has no name. */
struct bench_operation {
    const char *name;
    const char *operation; /* name in transcripts; NULL: same as name */
    enum bench_unit unit;  /* butterflies: a transform, with moduli that are 1 modulo 2n */
    bool takes_int8;
    bool accumulates;      /* OUT is also an input */
    bool dtype_is_outputs; /* the dtype is only OUT's; inputs are int64 */
    /* The axes of each tensor, one letter each, by enum bench_layout - 1. NULL: no such tensor. b
     * is the batch, d the digits, m is n * s, and p is 2 * n. k, n, r, s and 1 stand for
     * themselves. A tensor whose axes begin with b has rows. A row of OUT depends only on the same
     * row of other tensors, and on tensors without rows. */
    const char *shapes[BENCH_TENSORS][2];
    /* Words as in tools/writer.h. word_of in bench_case.c replaces some of them. */
    const char *arguments;
    /* An operation that makes a view of A, named "view", which the operation reads; or NULL. */
    const char *view, *view_arguments;
    int64_t gap; /* elements after each row of A that the view excludes */
    struct bench_settings defaults;
};

extern const struct bench_operation bench_operations[];

/* Returns NULL if no operation has this name. */
const struct bench_operation *bench_operation_find(const char *name);

/* Whether an operation uses a parameter. */
bool bench_operation_takes(const struct bench_operation *operation, enum bench_parameter parameter);

/* The cases to measure if no operation is named: operations, with the parameters that differ from
 * their defaults. `operation` is NULL after the last one. */
struct bench_suite_case {
    const char *operation;
    struct bench_settings values;
};

extern const struct bench_suite_case bench_suite[];

/* ---------------------------------------------------------------- cases as transcripts */

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

/* ---------------------------------------------------------------- measuring */

struct bench_options {
    uint32_t repeat;       /* number of samples; 0: enough for the minimum time */
    uint32_t sample_ns;    /* least time of a sample; 0: long enough for a stable result */
    uint64_t memory_limit; /* most bytes for the case's tensors */
    /* Operations and kernels of manifests, which run steps if they can; or NULL. */
    const struct operation_table *table;
};

struct bench_result {
    const struct bench_operation *operation;
    struct bench_settings parameters; /* all it takes; BENCH_BYTES only if it was given */
    struct layout shape;              /* of the main input, or of the output if there is none */
    enum bench_unit unit;
    uint64_t units;    /* of one operation */
    uint64_t bytes;    /* of inputs and outputs, each once, without moduli and twiddles */
    uint32_t launches; /* operations in one sample, which ends with a wait */
    uint32_t samples;
    double median_ns, min_ns, max_ns; /* of one operation, over the samples */
    double quartile_ns[2];            /* lower and upper quartile of the samples */
    const char *kernel, *manifest; /* of the first step; manifest is NULL for a built-in kernel */
    char not_run[256];             /* which manifest's kernel did not run it, and why; or "" */
};

/* Measures one case. given: the parameters that replace the operation's defaults, each of them used
 * by the operation and in its range. Errors: as bench_case_init; HEALCL_DIFFERENT if the device's
 * result differs from the reference's, without times. Otherwise as healcl_run. */
enum healcl_status bench_run(struct healcl_device *device, const struct bench_operation *operation,
                             const struct bench_settings *given,
                             const struct bench_options *options, struct bench_result *result,
                             struct healcl_error *error);

/* Measures the call of an example on one side. First compares it with the body on the host
 * reference, if there is one. *kernel: before, the name of the alternative that must run it, or
 * NULL for any; after, the one that ran, or NULL. result->samples is 0 if another alternative or
 * none would run it. Errors: as bench_run. */
enum healcl_status bench_example(struct healcl_device *device, const struct bench_options *options,
                                 const struct examples *examples, const struct example *example,
                                 enum example_side side, const char **kernel,
                                 struct bench_result *result, struct healcl_error *error);

/* The times of one example of a manifest's operation. */
struct bench_example {
    const struct example *example;
    const char *kernel; /* the one that ran it, as vendor_kernel_for names it; NULL: none */
    /* `samples` is 0 if the device has no kernel, or there is no body. */
    struct bench_result of[EXAMPLE_SIDES];
};

#endif
