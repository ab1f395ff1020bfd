/* The operations that are measured: how each one's transcript is made, and the tables of them. */
#include <string.h>

#include "lab/bench_build.h"

/* ---------------------------------------------------------------- transforms */

/* [l,r,k,n], or [l,n,r,k] in HEAL's layout */
static struct extents transform_shape(const struct build *build, int64_t k)
{
    int64_t l = get(build, BENCH_BATCH), r = get(build, BENCH_R), n = get(build, BENCH_N);
    return is_heal(build) ? (struct extents){4, {l, n, r, k}} : (struct extents){4, {l, r, k, n}};
}

/* Writes all but the operation itself. An input of int8 is tiled. */
static void prepare_transform(struct build *build, bool inverse)
{
    struct extents shape = transform_shape(build, get(build, BENCH_K));
    build_moduli(build);
    build_roots(build, inverse);
    build_permutation(build);
    if (get(build, BENCH_DTYPE) == INT8)
        build_input(build, A, transform_shape(build, 1), DTYPE_INT8, NUMBERS, ROWS);
    else
        build_residues(build, A, shape, ROWS, is_heal(build));
    build_output(build, shape, build->dtype);
}

static void make_ntt(struct build *build)
{
    prepare_transform(build, false);
    struct bench_argument arguments[] = {
        BENCH_TENSOR(A),
        BENCH_INT(is_heal(build) ? -3 : -1),
        BENCH_TENSOR(PERM),
        BENCH_NONE, /* pairs */
        BENCH_TENSOR(Q),
        BENCH_NONE, /* log2p */
        BENCH_NONE, /* mu */
        BENCH_TENSOR(ROOTS),
        BENCH_TENSOR(OUT),
        BENCH_INT(get(build, BENCH_DTYPE) == INT8),           /* tile */
        BENCH_INT(get(build, BENCH_PERM) == BENCH_PERM_NONE), /* skip_perm */
        BENCH_END,
    };
    build_operation(build, NO_NAME, arguments);
}

static void make_intt(struct build *build)
{
    prepare_transform(build, true);
    struct bench_argument arguments[] = {
        BENCH_TENSOR(A),     BENCH_INT(is_heal(build) ? -3 : -1),
        BENCH_TENSOR(PERM),  BENCH_NONE, /* pairs */
        BENCH_TENSOR(Q),     BENCH_NONE, /* log2p */
        BENCH_NONE,                      /* mu */
        BENCH_TENSOR(ROOTS), BENCH_TENSOR(N_INV),
        BENCH_TENSOR(OUT),   BENCH_INT(get(build, BENCH_DTYPE) == INT8), /* tile */
        BENCH_END,
    };
    build_operation(build, NO_NAME, arguments);
}

/* ---- elementwise ---- */

/* [batch,s,k,n], or [batch,s,1,n,k] in HEAL's layout. */
static struct extents elementwise_shape(const struct build *build, int64_t batch)
{
    int64_t s = get(build, BENCH_S), k = get(build, BENCH_K), n = get(build, BENCH_N);
    return is_heal(build) ? (struct extents){5, {batch, s, 1, n, k}}
                          : (struct extents){4, {batch, s, k, n}};
}

/* Two inputs; in HEAL's layout the first one is repeated over the batch. */
static void make_binary(struct build *build)
{
    struct extents shape = elementwise_shape(build, get(build, BENCH_BATCH));
    bool repeats = is_heal(build);
    build_moduli(build);
    build_residues(build, A, shape, ROWS, is_heal(build));
    build_residues(build, B, repeats ? elementwise_shape(build, 1) : shape, repeats ? COMMON : ROWS,
                   is_heal(build));
    build_output(build, shape, build->dtype);
    struct bench_argument arguments[] = {
        BENCH_TENSOR(repeats ? B : A), BENCH_TENSOR(repeats ? A : B),
        build_modulus(build, is_heal(build)), BENCH_TENSOR(OUT), BENCH_END};
    build_operation(build, NO_NAME, arguments);
}

static void make_unary(struct build *build)
{
    struct extents shape = elementwise_shape(build, get(build, BENCH_BATCH));
    build_moduli(build);
    build_residues(build, A, shape, ROWS, is_heal(build));
    build_output(build, shape, build->dtype);
    struct bench_argument arguments[] = {BENCH_TENSOR(A), build_modulus(build, is_heal(build)),
                                         BENCH_TENSOR(OUT), BENCH_END};
    build_operation(build, NO_NAME, arguments);
}

/* [batch,n] of a dtype, and its rows permuted, grown ... */
static struct extents row_shape(const struct build *build, int64_t length)
{
    return (struct extents){2, {get(build, BENCH_BATCH), length}};
}

/* Data of any values, in the shape [batch,n]. */
static void row_input(struct build *build)
{
    build_input(build, A, row_shape(build, get(build, BENCH_N)), any_dtype(build), NUMBERS, ROWS);
}

static void make_abs(struct build *build)
{
    row_input(build);
    build_output(build, row_shape(build, get(build, BENCH_N)), any_dtype(build));
    struct bench_argument arguments[] = {BENCH_TENSOR(A), BENCH_TENSOR(OUT), BENCH_END};
    build_operation(build, NO_NAME, arguments);
}

/* ---- sums ---- */

/* [l,s,n,k] summed over s */
static void make_axis_modsum(struct build *build)
{
    int64_t l = get(build, BENCH_BATCH), s = get(build, BENCH_S), n = get(build, BENCH_N),
            k = get(build, BENCH_K);
    build_moduli(build);
    build_residues(build, A, (struct extents){4, {l, s, n, k}}, ROWS, true);
    build_output(build, (struct extents){3, {l, n, k}}, build->dtype);
    struct bench_argument arguments[] = {BENCH_TENSOR(A), BENCH_INT(1), BENCH_TENSOR(Q),
                                         BENCH_TENSOR(OUT), BENCH_END};
    build_operation(build, NO_NAME, arguments);
}

/* a [reps,s,k,n], b [s,k,n], out [reps,k,n], or n before s and k in HEAL's layout */
static void make_modmul_axis_sum(struct build *build)
{
    int64_t reps = get(build, BENCH_BATCH), s = get(build, BENCH_S), n = get(build, BENCH_N),
            k = get(build, BENCH_K);
    bool heal = is_heal(build);
    struct extents a = {4, {reps, s, k, n}}, b = {3, {s, k, n}}, out = {3, {reps, k, n}};
    if (heal) {
        a = (struct extents){4, {reps, n, s, k}};
        b = (struct extents){3, {n, s, k}};
        out = (struct extents){3, {reps, n, k}};
    }
    build_moduli(build);
    build_permutation(build);
    build_residues(build, A, a, ROWS, heal);
    build_residues(build, B, b, COMMON, heal);
    build_residues(build, OUT, out, ROWS, heal);
    build_count_output(build, &out, build->dtype);
    struct bench_argument arguments[] = {
        BENCH_TENSOR(A),
        BENCH_TENSOR(B),
        BENCH_TENSOR(Q),
        BENCH_NONE, /* log2p */
        BENCH_NONE, /* mu */
        BENCH_TENSOR(PERM),
        BENCH_TENSOR(OUT),
        BENCH_INT(get(build, BENCH_PERM) == BENCH_PERM_REVERSE), /* apply_perm */
        BENCH_INT(heal ? -3 : -1),
        BENCH_END,
    };
    build_operation(build, NO_NAME, arguments);
}

/* ---- digits ---- */

/* a [l,n] into [l,n,digits] */
static void make_digits(struct build *build)
{
    int64_t l = get(build, BENCH_BATCH), n = get(build, BENCH_N), digits = get(build, BENCH_DIGITS);
    build_moduli(build);
    build_residues(build, A, row_shape(build, n), ROWS, true);
    build_output(build, (struct extents){3, {l, n, digits}}, any_dtype(build));
    struct bench_argument arguments[] = {BENCH_TENSOR(A), BENCH_INT(digits),
                                         BENCH_INT(get(build, BENCH_BASE_BITS)), BENCH_TENSOR(OUT),
                                         BENCH_END};
    build_operation(build, NO_NAME, arguments);
}

/* a [l,k,n] into [l,digits,n] */
static void make_digits_full_q(struct build *build)
{
    int64_t l = get(build, BENCH_BATCH), n = get(build, BENCH_N), digits = get(build, BENCH_DIGITS);
    build_moduli(build);
    build_residues(build, A, (struct extents){3, {l, get(build, BENCH_K), n}}, ROWS, false);
    build_output(build, (struct extents){3, {l, digits, n}}, any_dtype(build));
    struct bench_argument arguments[] = {BENCH_TENSOR(A),   BENCH_TENSOR(Q),
                                         BENCH_INT(digits), BENCH_INT(get(build, BENCH_BASE_BITS)),
                                         BENCH_TENSOR(OUT), BENCH_END};
    build_operation(build, NO_NAME, arguments);
}

/* ---- gathers, and what only moves ---- */

/* One permutation for each row. */
static void make_take_along_axis(struct build *build)
{
    struct extents shape = row_shape(build, get(build, BENCH_N));
    row_input(build);
    build_input(build, INDICES, shape, any_dtype(build), PERMUTATIONS, ROWS);
    build_output(build, shape, any_dtype(build));
    struct bench_argument arguments[] = {BENCH_TENSOR(A), BENCH_TENSOR(INDICES), BENCH_INT(-1),
                                         BENCH_TENSOR(OUT), BENCH_END};
    build_operation(build, NO_NAME, arguments);
}

/* [l,r,n] by r permutations that all l share */
static void make_permute(struct build *build)
{
    int64_t l = get(build, BENCH_BATCH), r = get(build, BENCH_R), n = get(build, BENCH_N);
    struct extents shape = {3, {l, r, n}};
    build_input(build, A, shape, any_dtype(build), NUMBERS, ROWS);
    build_input(build, INDICES, (struct extents){2, {r, n}}, any_dtype(build), PERMUTATIONS,
                COMMON);
    build_output(build, shape, any_dtype(build));
    struct bench_argument arguments[] = {BENCH_TENSOR(A), BENCH_TENSOR(INDICES), BENCH_TENSOR(OUT),
                                         BENCH_INT(1),    BENCH_INT(2),          BENCH_END};
    build_operation(build, NO_NAME, arguments);
}

/* As many zeros behind each row as it has elements. */
static void make_pad(struct build *build)
{
    int64_t n = get(build, BENCH_N);
    row_input(build);
    build_output(build, row_shape(build, 2 * n), any_dtype(build));
    struct bench_argument arguments[] = {BENCH_TENSOR(A), BENCH_INT(n), BENCH_INT(-1),
                                         BENCH_TENSOR(OUT), BENCH_END};
    build_operation(build, NO_NAME, arguments);
}

/* Each element s times. */
static void make_repeat_interleave(struct build *build)
{
    int64_t n = get(build, BENCH_N), s = get(build, BENCH_S);
    row_input(build);
    build_output(build, row_shape(build, n * s), any_dtype(build));
    struct bench_argument arguments[] = {BENCH_TENSOR(A), BENCH_INT(s), BENCH_INT(-1),
                                         BENCH_TENSOR(OUT), BENCH_END};
    build_operation(build, NO_NAME, arguments);
}

static void make_fill(struct build *build)
{
    build_output(build, row_shape(build, get(build, BENCH_N)), any_dtype(build));
    struct bench_argument arguments[] = {BENCH_TENSOR(OUT), BENCH_INT(5), BENCH_END};
    build_operation(build, NO_NAME, arguments);
}

/* Writes a view of A that is not contiguous, and the copy of that. */
static void operate_contiguous(struct build *build, const char *view,
                               const struct bench_argument *view_arguments)
{
    struct bench_argument arguments[] = {BENCH_TENSOR(VIEW), BENCH_END};
    if (build->stream)
        write_operation(build->stream, view, VIEW, view_arguments);
    build_operation(build, OUT, arguments);
}

/* [l,n,r,k] as [l,r,k,n] */
static void make_contiguous(struct build *build)
{
    int64_t l = get(build, BENCH_BATCH), r = get(build, BENCH_R), n = get(build, BENCH_N),
            k = get(build, BENCH_K);
    struct extents shape = {4, {l, n, r, k}}, moved = {4, {l, r, k, n}};
    struct bench_argument view[] = {BENCH_TENSOR(A), BENCH_INT(1), BENCH_INT(3), BENCH_END};
    build_input(build, A, shape, any_dtype(build), NUMBERS, ROWS);
    build_count_output(build, &moved, any_dtype(build));
    operate_contiguous(build, "moveaxis", view);
}

/* Long rows with a small gap behind each, so that they have to be copied. */
static void make_copy(struct build *build)
{
    enum { GAP = 8 };
    int64_t n = get(build, BENCH_N);
    struct extents shape = row_shape(build, n);
    struct bench_argument view[] = {BENCH_TENSOR(A), BENCH_RANGE(0, n), BENCH_END};
    build_data(build, A, row_shape(build, n + GAP), any_dtype(build), NUMBERS, ROWS);
    build_count(build, &shape, any_dtype(build), ROWS);
    build_count_output(build, &shape, any_dtype(build));
    operate_contiguous(build, "get_slice", view);
}

/* Only its sizes: there is no transcript. */
static void make_host_copy(struct build *build)
{
    struct extents shape = row_shape(build, get(build, BENCH_N));
    build_count(build, &shape, any_dtype(build), ROWS);
    build_count_output(build, &shape, any_dtype(build));
}

/* ---------------------------------------------------------------- the tables */

enum { MEGABYTES_512 = 512 << 20 };

#define SETTINGS(...)   \
    {                   \
        {               \
            __VA_ARGS__ \
        }               \
    }

#define TRANSFORM_DEFAULTS                                                             \
    SETTINGS([BENCH_N] = 4096, [BENCH_BITS] = AUTO, [BENCH_BATCH] = 64, [BENCH_K] = 1, \
             [BENCH_R] = 1, [BENCH_LAYOUT] = BENCH_CONTIGUOUS, [BENCH_DTYPE] = INT64,  \
             [BENCH_VALUES] = BENCH_REDUCED, [BENCH_PERM] = BENCH_PERM_NONE)

/* 2^20 elements */
#define ELEMENTWISE_DEFAULTS                                                            \
    SETTINGS([BENCH_N] = 4096, [BENCH_BITS] = AUTO, [BENCH_BATCH] = 256, [BENCH_K] = 1, \
             [BENCH_S] = 1, [BENCH_LAYOUT] = BENCH_CONTIGUOUS, [BENCH_DTYPE] = INT64,   \
             [BENCH_VALUES] = BENCH_REDUCED)

#define DIGITS_DEFAULTS(moduli, size)                                                             \
    SETTINGS([BENCH_N] = 4096, [BENCH_BITS] = AUTO, [BENCH_BYTES] = (size), [BENCH_K] = (moduli), \
             [BENCH_DIGITS] = AUTO, [BENCH_BASE_BITS] = 4, [BENCH_DTYPE] = INT8,                  \
             [BENCH_VALUES] = BENCH_REDUCED)

/* 512 MB */
#define LARGE_DEFAULTS(...) \
    SETTINGS([BENCH_BYTES] = MEGABYTES_512, [BENCH_DTYPE] = INT64, __VA_ARGS__)

static const struct bench_operation operations_measured[] = {
    {.name = "ntt",
     .make = make_ntt,
     .unit = BENCH_BUTTERFLY,
     .is_transform = true,
     .takes_int8 = true,
     .defaults = TRANSFORM_DEFAULTS},
    {.name = "intt",
     .make = make_intt,
     .unit = BENCH_BUTTERFLY,
     .is_transform = true,
     .takes_int8 = true,
     .defaults = TRANSFORM_DEFAULTS},
    {.name = "modmul",
     .make = make_binary,
     .unit = BENCH_ELEMENT,
     .defaults = ELEMENTWISE_DEFAULTS},
    {.name = "modsum",
     .make = make_binary,
     .unit = BENCH_ELEMENT,
     .defaults = ELEMENTWISE_DEFAULTS},
    {.name = "mod", .make = make_unary, .unit = BENCH_ELEMENT, .defaults = ELEMENTWISE_DEFAULTS},
    {.name = "modneg", .make = make_unary, .unit = BENCH_ELEMENT, .defaults = ELEMENTWISE_DEFAULTS},
    {.name = "abs",
     .make = make_abs,
     .unit = BENCH_ELEMENT,
     .defaults = SETTINGS([BENCH_N] = 4096, [BENCH_BATCH] = 256, [BENCH_DTYPE] = INT64)},
    {.name = "axis_modsum",
     .make = make_axis_modsum,
     .unit = BENCH_BYTE,
     .defaults = LARGE_DEFAULTS([BENCH_N] = 4096, [BENCH_BITS] = AUTO, [BENCH_K] = 2,
                                [BENCH_S] = 64, [BENCH_VALUES] = BENCH_REDUCED)},
    {.name = "modmul_axis_sum",
     .make = make_modmul_axis_sum,
     .unit = BENCH_PRODUCT,
     .accumulates = true,
     .defaults = SETTINGS([BENCH_N] = 4096, [BENCH_BITS] = AUTO, [BENCH_BATCH] = 50, [BENCH_K] = 2,
                          [BENCH_S] = 32, [BENCH_LAYOUT] = BENCH_CONTIGUOUS, [BENCH_DTYPE] = INT64,
                          [BENCH_VALUES] = BENCH_REDUCED, [BENCH_PERM] = BENCH_PERM_NONE)},
    {.name = "apply_g_decomp",
     .make = make_digits,
     .unit = BENCH_ELEMENT,
     .takes_int8 = true,
     .dtype_is_outputs = true,
     .defaults = DIGITS_DEFAULTS(0, MEGABYTES_512)},
    {.name = "apply_g_decomp_relative_to_full_q",
     .make = make_digits_full_q,
     .unit = BENCH_ELEMENT,
     .takes_int8 = true,
     .dtype_is_outputs = true,
     .defaults = DIGITS_DEFAULTS(2, MEGABYTES_512 / 16)},
    {.name = "take_along_axis",
     .make = make_take_along_axis,
     .unit = BENCH_ELEMENT,
     .defaults = LARGE_DEFAULTS([BENCH_N] = 4096)},
    {.name = "permute",
     .make = make_permute,
     .unit = BENCH_ELEMENT,
     .defaults = LARGE_DEFAULTS([BENCH_N] = 4096, [BENCH_R] = 16)},
    {.name = "pad_single_axis",
     .make = make_pad,
     .unit = BENCH_ELEMENT,
     .defaults = LARGE_DEFAULTS([BENCH_N] = 4096)},
    {.name = "repeat_interleave",
     .make = make_repeat_interleave,
     .unit = BENCH_ELEMENT,
     .defaults = LARGE_DEFAULTS([BENCH_N] = 4096, [BENCH_S] = 4)},
    {.name = "set_const_val",
     .make = make_fill,
     .unit = BENCH_BYTE,
     .takes_int8 = true,
     .defaults = LARGE_DEFAULTS([BENCH_N] = 4096)},
    {.name = "contiguous",
     .make = make_contiguous,
     .unit = BENCH_BYTE,
     .takes_int8 = true,
     .defaults = LARGE_DEFAULTS([BENCH_N] = 4096, [BENCH_K] = 2, [BENCH_R] = 2)},
    {.name = "copy",
     .operation = "contiguous",
     .make = make_copy,
     .unit = BENCH_BYTE,
     .takes_int8 = true,
     .defaults = LARGE_DEFAULTS([BENCH_N] = 1 << 20)},
    {.name = "host_copy",
     .make = make_host_copy,
     .unit = BENCH_BYTE,
     .takes_int8 = true,
     .is_host_copy = true,
     .defaults = LARGE_DEFAULTS([BENCH_N] = 1 << 20)},
};

enum { OPERATIONS_MEASURED = sizeof operations_measured / sizeof *operations_measured };

#define HEAL(moduli, size) [BENCH_LAYOUT] = BENCH_HEAL, [BENCH_K] = (moduli), [BENCH_R] = (size)

const struct bench_suite_case bench_suite[] = {
    {"ntt", SETTINGS(0)},
    {"ntt", SETTINGS([BENCH_N] = 16384)},
    {"ntt", SETTINGS([BENCH_N] = 65536)},
    {"ntt", SETTINGS([BENCH_PERM] = BENCH_PERM_REVERSE)},
    {"ntt", SETTINGS([BENCH_VALUES] = BENCH_ANY)},
    {"ntt", SETTINGS([BENCH_DTYPE] = INT32)},
    {"ntt", SETTINGS([BENCH_DTYPE] = INT8, [BENCH_K] = 2)},
    {"ntt", SETTINGS(HEAL(1, 1))},
    {"ntt", SETTINGS(HEAL(2, 1))},
    {"ntt", SETTINGS(HEAL(2, 2), [BENCH_BATCH] = 16)},
    {"ntt", SETTINGS(HEAL(2, 16), [BENCH_BATCH] = 4)},
    {"intt", SETTINGS(0)},
    {"intt", SETTINGS([BENCH_N] = 16384)},
    {"intt", SETTINGS([BENCH_N] = 65536)},
    {"intt", SETTINGS([BENCH_PERM] = BENCH_PERM_REVERSE)},
    {"intt", SETTINGS([BENCH_DTYPE] = INT32)},
    {"intt", SETTINGS(HEAL(2, 2), [BENCH_BATCH] = 16)},
    {"modmul", SETTINGS(0)},
    {"modmul", SETTINGS([BENCH_VALUES] = BENCH_ANY)},
    {"modmul", SETTINGS([BENCH_DTYPE] = INT32)},
    {"modmul", SETTINGS([BENCH_LAYOUT] = BENCH_HEAL, [BENCH_BATCH] = 50, [BENCH_S] = 784,
                        [BENCH_N] = 16, [BENCH_K] = 2)},
    {"modsum", SETTINGS(0)},
    {"mod", SETTINGS(0)},
    {"modneg", SETTINGS(0)},
    {"abs", SETTINGS(0)},
    {"modmul_axis_sum", SETTINGS(0)},
    {"modmul_axis_sum", SETTINGS([BENCH_LAYOUT] = BENCH_HEAL)},
    {"host_copy", SETTINGS(0)},
    {"copy", SETTINGS(0)},
    {"axis_modsum", SETTINGS(0)},
    {"contiguous", SETTINGS(0)},
    {"apply_g_decomp", SETTINGS(0)},
    {"apply_g_decomp_relative_to_full_q", SETTINGS(0)},
    {"take_along_axis", SETTINGS(0)},
    {"permute", SETTINGS(0)},
    {"pad_single_axis", SETTINGS(0)},
    {"repeat_interleave", SETTINGS(0)},
    {"set_const_val", SETTINGS(0)},
    {NULL, SETTINGS(0)},
};

const struct bench_operation *bench_operation_at(size_t index)
{
    return index < OPERATIONS_MEASURED ? &operations_measured[index] : NULL;
}

const struct bench_operation *bench_operation_find(const char *name)
{
    for (size_t i = 0; i < OPERATIONS_MEASURED; i++)
        if (strcmp(operations_measured[i].name, name) == 0)
            return &operations_measured[i];
    return NULL;
}

const char *bench_operation_name(const struct bench_operation *operation)
{
    return operation->name;
}

bool bench_operation_takes(const struct bench_operation *operation, enum bench_parameter parameter)
{
    return operation->defaults.of[parameter] != 0 ||
           (parameter == BENCH_BYTES && operation->defaults.of[BENCH_BATCH] != 0) ||
           (parameter == BENCH_BATCH && operation->defaults.of[BENCH_BYTES] != 0);
}
