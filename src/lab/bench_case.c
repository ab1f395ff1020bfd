#include "lab/bench_case.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lab/bench_build.h"
#include "lab/bench_prime.h"

/* ---------------------------------------------------------------- parameters */

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

enum { TRANSFORM_MAX = 1 << 20 }; /* largest n of a transform */

const char *bench_unit_name(enum bench_unit unit)
{
    static const char *const names[] = {"butterfly", "element", "product", "byte"};
    return names[unit];
}

/* ---------------------------------------------------------------- settling a case */

/* Whether moduli, and the values that they are of, have int32. */
static bool has_int32_moduli(const struct bench_case *self)
{
    return self->settings.of[BENCH_DTYPE] == INT32 && !self->operation->dtype_is_outputs;
}

static void settle(struct bench_case *self, const struct bench_settings *given)
{
    int64_t *of = self->settings.of;
    self->settings = self->operation->defaults;
    for (int i = 0; i < BENCH_PARAMETER_COUNT; i++)
        if (given->of[i] != 0)
            of[i] = given->of[i];
    if (given->of[BENCH_BATCH] != 0)
        of[BENCH_BYTES] = 0;
    if (of[BENCH_BITS] == AUTO)
        of[BENCH_BITS] = has_int32_moduli(self) ? 30 : 62;
    if (of[BENCH_DIGITS] == AUTO)
        of[BENCH_DIGITS] =
            (of[BENCH_BITS] * (of[BENCH_K] ? of[BENCH_K] : 1) - 1) / of[BENCH_BASE_BITS] + 1;
}

MUST_CHECK static enum healcl_status check(const struct bench_case *self,
                                           const struct bench_settings *given,
                                           struct healcl_error *error)
{
    const int64_t *of = self->settings.of;
    const char *name = self->operation->name;
    bool power_of_two = (of[BENCH_N] & (of[BENCH_N] - 1)) == 0;
    if (given->of[BENCH_BATCH] && given->of[BENCH_BYTES])
        FAIL(error, HEALCL_USAGE, "%s: the batch follows from bytes: one of them is enough", name);
    if (of[BENCH_DTYPE] == INT8 && !self->operation->takes_int8)
        FAIL(error, HEALCL_USAGE, "%s: does not take int8", name);
    if (self->operation->is_transform &&
        (!power_of_two || of[BENCH_N] < 2 || of[BENCH_N] > TRANSFORM_MAX))
        FAIL(error, HEALCL_USAGE, "%s: n must be a power of two from 2 to %d, not %" PRId64, name,
             TRANSFORM_MAX, of[BENCH_N]);
    if (of[BENCH_PERM] == BENCH_PERM_REVERSE && !power_of_two)
        FAIL(error, HEALCL_USAGE, "%s: only powers of two have a bit reversal, not %" PRId64, name,
             of[BENCH_N]);
    if (has_int32_moduli(self) && of[BENCH_BITS] > 31)
        FAIL(error, HEALCL_USAGE, "%s: moduli of %" PRId64 " bits do not fit int32", name,
             of[BENCH_BITS]);
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status choose_moduli(struct bench_case *self,
                                                   struct healcl_error *error)
{
    const int64_t *of = self->settings.of;
    uint64_t step = self->operation->is_transform ? 2 * (uint64_t)of[BENCH_N] : 2;
    uint32_t count = of[BENCH_K] ? (uint32_t)of[BENCH_K] : 1;
    if (of[BENCH_BITS] == 0 || find_primes((uint32_t)of[BENCH_BITS], step, count, self->moduli))
        return HEALCL_OK;
    FAIL(error, HEALCL_USAGE,
         "%s: too few primes of %" PRId64 " bits are 1 modulo %" PRIu64 ": k is %" PRIu32,
         self->operation->name, of[BENCH_BITS], step, count);
}

static void begin_build(struct build *build, const struct bench_case *self)
{
    *build = (struct build){.operation = self->operation,
                            .settings = &self->settings,
                            .moduli = self->moduli,
                            .dtype = has_int32_moduli(self) ? DTYPE_INT32 : DTYPE_INT64};
}

static uint64_t count_units(const struct bench_case *self, const struct build *build)
{
    switch (self->unit) {
    case BENCH_BUTTERFLY:
        return (uint64_t)build->outputs / 2 *
               (uint64_t)__builtin_ctzll((uint64_t)self->settings.of[BENCH_N]);
    case BENCH_ELEMENT: return (uint64_t)build->outputs;
    case BENCH_PRODUCT: return (uint64_t)build->inputs;
    case BENCH_BYTE: break;
    }
    return self->bytes;
}

/* Finds the batch, if bytes are given, and the sizes. */
MUST_CHECK static enum healcl_status measure(struct bench_case *self, struct healcl_error *error)
{
    int64_t *of = self->settings.of;
    struct build build;
    if (of[BENCH_BYTES]) {
        of[BENCH_BATCH] = 1;
        begin_build(&build, self);
        self->operation->make(&build);
        int64_t left = of[BENCH_BYTES] - build.common_bytes;
        of[BENCH_BATCH] = left > build.row_bytes ? left / build.row_bytes : 1;
    }
    begin_build(&build, self);
    self->operation->make(&build);
    if (build.too_large)
        FAIL(error, HEALCL_USAGE, "%s: a tensor would have more than 2^%d elements",
             self->operation->name, ELEMENTS_MAX_BITS);
    self->shape = build.shape;
    self->bytes = (uint64_t)(build.row_bytes + build.common_bytes);
    self->units = count_units(self, &build);
    return HEALCL_OK;
}

enum healcl_status bench_case_init(struct bench_case *self, const struct bench_operation *operation,
                                   const struct bench_settings *given, struct healcl_error *error)
{
    *self = (struct bench_case){.operation = operation, .unit = operation->unit};
    settle(self, given);
    TRY(check(self, given, error));
    TRY(choose_moduli(self, error));
    return measure(self, error);
}

bool bench_case_is_host_copy(const struct bench_case *self)
{
    return self->operation->is_host_copy;
}

bool bench_case_accumulates(const struct bench_case *self)
{
    return self->operation->accumulates;
}

int64_t bench_case_rows(const struct bench_case *self)
{
    return self->settings.of[BENCH_BATCH];
}

enum healcl_status bench_case_text(const struct bench_case *self, int64_t first, int64_t count,
                                   char **text, size_t *length, struct healcl_error *error)
{
    struct build build;
    begin_build(&build, self);
    *text = NULL;
    build.first = first;
    build.count = count;
    build.stream = open_memstream(text, length);
    if (!build.stream)
        NO_MEMORY(error);
    write_first_segment(build.stream, "prepare");
    self->operation->make(&build);
    bool written_whole = !ferror(build.stream);
    if (fclose(build.stream) != 0 || !written_whole || build.no_memory) {
        free(*text);
        NO_MEMORY(error);
    }
    return HEALCL_OK;
}
