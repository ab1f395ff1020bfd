/* The tables for measuring: parameters, operations, and the suite. */
#include <string.h>

#include "tools/bench.h"

static const char *const layouts[] = {"contiguous", "heal", NULL};
static const char *const dtypes[] = {"int8", "int32", "int64", NULL};
static const char *const values_words[] = {"reduced", "any", NULL};
static const char *const perms[] = {"none", "reverse", NULL};

const struct bench_parameter_info bench_parameters[BENCH_PARAMETER_COUNT] = {
    [BENCH_N] = {"n", NULL, 1, 1 << 28},           [BENCH_BITS] = {"bits", NULL, 2, 63},
    [BENCH_BATCH] = {"batch", NULL, 1, 1 << 28},   [BENCH_K] = {"k", NULL, 1, BENCH_MODULI_MAX},
    [BENCH_R] = {"r", NULL, 1, 1 << 20},           [BENCH_S] = {"s", NULL, 1, 1 << 20},
    [BENCH_DIGITS] = {"digits", NULL, 1, 4096},    [BENCH_BASE_BITS] = {"base-bits", NULL, 1, 63},
    [BENCH_BYTES] = {"bytes", NULL, 1, INT64_MAX}, [BENCH_LAYOUT] = {"layout", layouts, 0, 0},
    [BENCH_DTYPE] = {"dtype", dtypes, 0, 0},       [BENCH_VALUES] = {"values", values_words, 0, 0},
    [BENCH_PERM] = {"perm", perms, 0, 0},
};

const char *const bench_unit_names[] = {"butterfly", "element", "product", "byte"};

/* ---------------------------------------------------------------- operations */

enum {
    MEGABYTES_512 = 512 << 20,
    INT8 = 1 + DTYPE_INT8,
    INT32 = 1 + DTYPE_INT32,
    INT64 = 1 + DTYPE_INT64,
};

/* words: the arguments. */
#define TRANSFORM(operation_name, words)                                                    \
    {                                                                                       \
        .name = (operation_name), .unit = BENCH_BUTTERFLY, .takes_int8 = true,              \
        .shapes = {[BENCH_A] = {"brkn", "bnrk"}, [BENCH_OUT] = {"brkn", "bnrk"}},           \
        .arguments = (words),                                                               \
        .defaults = BENCH_SETTINGS(                                                         \
            [BENCH_N] = 4096, [BENCH_BITS] = BENCH_AUTO, [BENCH_BATCH] = 64, [BENCH_K] = 1, \
            [BENCH_R] = 1, [BENCH_LAYOUT] = BENCH_CONTIGUOUS, [BENCH_DTYPE] = INT64,        \
            [BENCH_VALUES] = BENCH_REDUCED, [BENCH_PERM] = BENCH_PERM_NONE),                \
    }

/* 2^20 elements modulo p; the last arguments are the shapes. */
#define MODULAR(operation_name, words, ...)                                                  \
    {                                                                                        \
        .name = (operation_name), .unit = BENCH_ELEMENT, .shapes = {__VA_ARGS__},            \
        .arguments = (words),                                                                \
        .defaults =                                                                          \
            BENCH_SETTINGS([BENCH_N] = 4096, [BENCH_BITS] = BENCH_AUTO, [BENCH_BATCH] = 256, \
                           [BENCH_K] = 1, [BENCH_S] = 1, [BENCH_LAYOUT] = BENCH_CONTIGUOUS,  \
                           [BENCH_DTYPE] = INT64, [BENCH_VALUES] = BENCH_REDUCED),           \
    }

/* The first operand is repeated over the batch in HEAL's layout. */
#define BINARY \
    [BENCH_A] = {"bskn", "1s1nk"}, [BENCH_B] = {"bskn", "bs1nk"}, [BENCH_OUT] = {"bskn", "bs1nk"}
#define UNARY [BENCH_A] = {"bskn", "bs1nk"}, [BENCH_OUT] = {"bskn", "bs1nk"}

/* input, output: the axes. */
#define DIGITS(operation_name, input, output, words, moduli, size)                         \
    {                                                                                      \
        .name = (operation_name), .unit = BENCH_ELEMENT, .takes_int8 = true,               \
        .dtype_is_outputs = true, .shapes = {[BENCH_A] = {input}, [BENCH_OUT] = {output}}, \
        .arguments = (words),                                                              \
        .defaults = BENCH_SETTINGS([BENCH_N] = 4096, [BENCH_BITS] = BENCH_AUTO,            \
                                   [BENCH_BYTES] = (size), [BENCH_K] = (moduli),           \
                                   [BENCH_DIGITS] = BENCH_AUTO, [BENCH_BASE_BITS] = 4,     \
                                   [BENCH_DTYPE] = INT8, [BENCH_VALUES] = BENCH_REDUCED),  \
    }

/* 512 MB */
#define LARGE_DEFAULTS(...) \
    BENCH_SETTINGS([BENCH_BYTES] = MEGABYTES_512, [BENCH_DTYPE] = INT64, __VA_ARGS__)

const struct bench_operation bench_operations[] = {
    TRANSFORM("ntt", "a axis perm none q none none roots out tile skip_perm"),
    TRANSFORM("intt", "a axis perm none q none none roots n_inv out tile"),
    MODULAR("modmul", "a b p out", BINARY),
    MODULAR("modsum", "a b p out", BINARY),
    MODULAR("mod", "a p out", UNARY),
    MODULAR("modneg", "a p out", UNARY),
    {.name = "abs",
     .unit = BENCH_ELEMENT,
     .shapes = {[BENCH_A] = {"bn"}, [BENCH_OUT] = {"bn"}},
     .arguments = "a out",
     .defaults = BENCH_SETTINGS([BENCH_N] = 4096, [BENCH_BATCH] = 256, [BENCH_DTYPE] = INT64)},
    {.name = "axis_modsum",
     .unit = BENCH_BYTE,
     .shapes = {[BENCH_A] = {"bsnk"}, [BENCH_OUT] = {"bnk"}},
     .arguments = "a 1 q out",
     .defaults = LARGE_DEFAULTS([BENCH_N] = 4096, [BENCH_BITS] = BENCH_AUTO, [BENCH_K] = 2,
                                [BENCH_S] = 64, [BENCH_VALUES] = BENCH_REDUCED)},
    {.name = "modmul_axis_sum",
     .unit = BENCH_PRODUCT,
     .accumulates = true,
     .shapes =
         {[BENCH_A] = {"bskn", "bnsk"}, [BENCH_B] = {"skn", "nsk"}, [BENCH_OUT] = {"bkn", "bnk"}},
     .arguments = "a b q none none perm out apply_perm axis",
     .defaults = BENCH_SETTINGS([BENCH_N] = 4096, [BENCH_BITS] = BENCH_AUTO, [BENCH_BATCH] = 50,
                                [BENCH_K] = 2, [BENCH_S] = 32, [BENCH_LAYOUT] = BENCH_CONTIGUOUS,
                                [BENCH_DTYPE] = INT64, [BENCH_VALUES] = BENCH_REDUCED,
                                [BENCH_PERM] = BENCH_PERM_NONE)},
    DIGITS("apply_g_decomp", "bn", "bnd", "a digits base-bits out", 0, MEGABYTES_512),
    DIGITS("apply_g_decomp_relative_to_full_q", "bkn", "bdn", "a q digits base-bits out", 2,
           MEGABYTES_512 / 16),
    /* A separate permutation for each row. */
    {.name = "take_along_axis",
     .unit = BENCH_ELEMENT,
     .shapes = {[BENCH_A] = {"bn"}, [BENCH_INDICES] = {"bn"}, [BENCH_OUT] = {"bn"}},
     .arguments = "a indices -1 out",
     .defaults = LARGE_DEFAULTS([BENCH_N] = 4096)},
    {.name = "permute",
     .unit = BENCH_ELEMENT,
     .shapes = {[BENCH_A] = {"brn"}, [BENCH_INDICES] = {"rn"}, [BENCH_OUT] = {"brn"}},
     .arguments = "a indices out 1 2",
     .defaults = LARGE_DEFAULTS([BENCH_N] = 4096, [BENCH_R] = 16)},
    /* Adds zeros after each row, as many as the row has elements. */
    {.name = "pad_single_axis",
     .unit = BENCH_ELEMENT,
     .shapes = {[BENCH_A] = {"bn"}, [BENCH_OUT] = {"bp"}},
     .arguments = "a n -1 out",
     .defaults = LARGE_DEFAULTS([BENCH_N] = 4096)},
    {.name = "repeat_interleave",
     .unit = BENCH_ELEMENT,
     .shapes = {[BENCH_A] = {"bn"}, [BENCH_OUT] = {"bm"}},
     .arguments = "a s -1 out",
     .defaults = LARGE_DEFAULTS([BENCH_N] = 4096, [BENCH_S] = 4)},
    {.name = "set_const_val",
     .unit = BENCH_BYTE,
     .takes_int8 = true,
     .shapes = {[BENCH_OUT] = {"bn"}},
     .arguments = "out 5",
     .defaults = LARGE_DEFAULTS([BENCH_N] = 4096)},
    {.name = "contiguous",
     .unit = BENCH_BYTE,
     .takes_int8 = true,
     .shapes = {[BENCH_A] = {"bnrk"}, [BENCH_OUT] = {"brkn"}},
     .view = "moveaxis",
     .view_arguments = "a 1 3",
     .arguments = "view",
     .defaults = LARGE_DEFAULTS([BENCH_N] = 4096, [BENCH_K] = 2, [BENCH_R] = 2)},
    /* Long rows, each followed by a small gap, so that they must be copied. */
    {.name = "copy",
     .operation = "contiguous",
     .unit = BENCH_BYTE,
     .takes_int8 = true,
     .shapes = {[BENCH_A] = {"bn"}, [BENCH_OUT] = {"bn"}},
     .gap = 8,
     .view = "get_slice",
     .view_arguments = "a [...,:-8]",
     .arguments = "view",
     .defaults = LARGE_DEFAULTS([BENCH_N] = 1 << 20)},
    {.name = NULL},
};

#define HEAL(moduli, size) [BENCH_LAYOUT] = BENCH_HEAL, [BENCH_K] = (moduli), [BENCH_R] = (size)

const struct bench_suite_case bench_suite[] = {
    {"ntt", BENCH_SETTINGS(0)},
    {"ntt", BENCH_SETTINGS([BENCH_N] = 16384)},
    {"ntt", BENCH_SETTINGS([BENCH_N] = 65536)},
    {"ntt", BENCH_SETTINGS([BENCH_PERM] = BENCH_PERM_REVERSE)},
    {"ntt", BENCH_SETTINGS([BENCH_VALUES] = BENCH_ANY)},
    {"ntt", BENCH_SETTINGS([BENCH_DTYPE] = INT32)},
    {"ntt", BENCH_SETTINGS([BENCH_DTYPE] = INT8, [BENCH_K] = 2)},
    {"ntt", BENCH_SETTINGS(HEAL(1, 1))},
    {"ntt", BENCH_SETTINGS(HEAL(2, 1))},
    {"ntt", BENCH_SETTINGS(HEAL(2, 2), [BENCH_BATCH] = 16)},
    {"ntt", BENCH_SETTINGS(HEAL(2, 16), [BENCH_BATCH] = 4)},
    {"intt", BENCH_SETTINGS(0)},
    {"intt", BENCH_SETTINGS([BENCH_N] = 16384)},
    {"intt", BENCH_SETTINGS([BENCH_N] = 65536)},
    {"intt", BENCH_SETTINGS([BENCH_PERM] = BENCH_PERM_REVERSE)},
    {"intt", BENCH_SETTINGS([BENCH_DTYPE] = INT32)},
    {"intt", BENCH_SETTINGS(HEAL(2, 2), [BENCH_BATCH] = 16)},
    {"modmul", BENCH_SETTINGS(0)},
    {"modmul", BENCH_SETTINGS([BENCH_VALUES] = BENCH_ANY)},
    {"modmul", BENCH_SETTINGS([BENCH_DTYPE] = INT32)},
    {"modmul", BENCH_SETTINGS([BENCH_LAYOUT] = BENCH_HEAL, [BENCH_BATCH] = 50, [BENCH_S] = 784,
                              [BENCH_N] = 16, [BENCH_K] = 2)},
    {"modsum", BENCH_SETTINGS(0)},
    {"mod", BENCH_SETTINGS(0)},
    {"modneg", BENCH_SETTINGS(0)},
    {"abs", BENCH_SETTINGS(0)},
    {"modmul_axis_sum", BENCH_SETTINGS(0)},
    {"modmul_axis_sum", BENCH_SETTINGS([BENCH_LAYOUT] = BENCH_HEAL)},
    {"copy", BENCH_SETTINGS(0)},
    {"axis_modsum", BENCH_SETTINGS(0)},
    {"contiguous", BENCH_SETTINGS(0)},
    {"apply_g_decomp", BENCH_SETTINGS(0)},
    {"apply_g_decomp_relative_to_full_q", BENCH_SETTINGS(0)},
    {"take_along_axis", BENCH_SETTINGS(0)},
    {"permute", BENCH_SETTINGS(0)},
    {"pad_single_axis", BENCH_SETTINGS(0)},
    {"repeat_interleave", BENCH_SETTINGS(0)},
    {"set_const_val", BENCH_SETTINGS(0)},
    {NULL, BENCH_SETTINGS(0)},
};

const struct bench_operation *bench_operation_find(const char *name)
{
    for (const struct bench_operation *next = bench_operations; next->name; next++)
        if (strcmp(next->name, name) == 0)
            return next;
    return NULL;
}

bool bench_operation_takes(const struct bench_operation *operation, enum bench_parameter parameter)
{
    return operation->defaults.of[parameter] != 0 ||
           (parameter == BENCH_BYTES && operation->defaults.of[BENCH_BATCH] != 0) ||
           (parameter == BENCH_BATCH && operation->defaults.of[BENCH_BYTES] != 0);
}
