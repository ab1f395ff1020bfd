#include "run/bench_case.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "run/bench_prime.h"

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

enum {
    INT8 = 1 + DTYPE_INT8,
    INT32 = 1 + DTYPE_INT32,
    INT64 = 1 + DTYPE_INT64,
    AUTO = -1, /* bits: by the dtype; digits: as many as the moduli have */
    ELEMENTS_MAX_BITS = 40,
};

const char *bench_unit_name(enum bench_unit unit)
{
    static const char *const names[] = {"butterfly", "element", "product", "byte"};
    return names[unit];
}

/* ---------------------------------------------------------------- building a transcript */

/* Names of tensors. */
enum {
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
    TILE,
    TILES,
    FLAT,
    PART
};

/* A transcript in the making, or, with stream NULL, only its sizes. */
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

typedef void build_function(struct build *build);

struct bench_operation {
    const char *name;
    build_function *build; /* NULL: the copy in the host's memory */
    enum bench_unit unit;
    bool is_transform; /* moduli are 1 modulo 2n */
    bool takes_int8;
    bool accumulates;
    uint32_t tensors; /* elementwise: inputs */
    bool has_modulus; /* elementwise */
    struct bench_settings defaults;
};

static int64_t get(const struct build *build, enum bench_parameter parameter)
{
    return build->settings->of[parameter];
}

static bool is_heal(const struct build *build)
{
    return get(build, BENCH_LAYOUT) == BENCH_HEAL;
}

static int64_t elements(struct build *build, const struct extents *shape)
{
    int64_t count = 1;
    for (uint32_t axis = 0; axis < shape->rank; axis++)
        if (__builtin_mul_overflow(count, shape->size[axis], &count) ||
            count > (int64_t)1 << ELEMENTS_MAX_BITS) {
            build->too_large = true;
            return 1;
        }
    return count;
}

/* Whether the first axis of a tensor is the batch. */
enum rows { COMMON, ROWS };

static void count_bytes(struct build *build, const struct extents *shape, enum dtype dtype,
                        enum rows rows)
{
    int64_t bytes = elements(build, shape) * (int64_t)dtype_size(dtype);
    *(rows == ROWS ? &build->row_bytes : &build->common_bytes) += bytes;
}

/* The shape of the rows that are written. */
static struct extents written(const struct build *build, struct extents shape, enum rows rows)
{
    if (rows == ROWS)
        shape.size[0] = build->count;
    return shape;
}

/* ---- random data ---- */

/* splitmix64 by Sebastiano Vigna (public domain) */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Values in [0, bound), or of all 64 bits for bound 0. */
static void fill_values(int64_t *values, int64_t count, uint64_t bound, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        uint64_t value = next_random(&seed);
        values[i] = (int64_t)(bound ? value % bound : value);
    }
}

/* Random permutations of [0, n), one behind the other. */
static void fill_permutations(int64_t *values, int64_t count, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t *row = values + i / n * n, place = i % n;
        int64_t other = (int64_t)(next_random(&seed) % (uint64_t)(place + 1));
        row[place] = row[other];
        row[other] = place;
    }
}

enum content { RESIDUES, NUMBERS, PERMUTATIONS };

/* Elements that are uploaded and then repeated: a prime number, so that rows are not alike. */
enum { TILE_VALUES = 65521, TILE_PERMUTATIONS = 13 };

/* Uploads the first elements of a tensor as a row [1, length] called TILE. */
static void write_tile(struct build *build, int name, enum dtype dtype, enum content content,
                       int64_t length)
{
    int64_t *values = calloc((size_t)length, sizeof *values);
    if (!values) {
        build->no_memory = true;
        return;
    }
    uint64_t bound = content == RESIDUES ? build->moduli[get(build, BENCH_K) - 1] : 0;
    if (content == PERMUTATIONS)
        fill_permutations(values, length, get(build, BENCH_N), (uint64_t)name);
    else
        fill_values(values, length, bound, (uint64_t)name);
    write_upload(build->stream, TILE, dtype, (struct extents){2, {1, length}}, values);
    free(values);
}

/* A tensor of random data: a tile repeated, of which it takes its rows. */
static void write_data(struct build *build, int name, struct extents shape, enum dtype dtype,
                       enum content content, enum rows rows)
{
    struct extents part = written(build, shape, rows);
    int64_t all = elements(build, &shape), count = elements(build, &part);
    int64_t length =
        content == PERMUTATIONS ? TILE_PERMUTATIONS * get(build, BENCH_N) : TILE_VALUES;
    if (!build->stream)
        return;
    length = all < length ? all : length;
    int64_t start = rows == ROWS ? all / shape.size[0] * build->first % length : 0;
    write_tile(build, name, dtype, content, length);
    struct bench_argument expand[] = {BENCH_TENSOR(TILE), BENCH_INT(0),
                                      BENCH_INT((start + count + length - 1) / length), BENCH_END};
    struct bench_argument flatten[] = {BENCH_TENSOR(TILES), BENCH_INT(0), BENCH_INT(1), BENCH_END};
    struct bench_argument slice[] = {BENCH_TENSOR(FLAT), BENCH_RANGE(start, start + count),
                                     BENCH_END};
    struct bench_argument reshape[] = {BENCH_TENSOR(PART), BENCH_SHAPE(part), BENCH_END};
    write_operation(build->stream, "expand", TILES, expand);
    write_operation(build->stream, "flatten", FLAT, flatten);
    write_operation(build->stream, "get_slice", PART, slice);
    write_operation(build->stream, "reshape", name, reshape);
    static const int scratch[] = {TILE, TILES, FLAT, PART};
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++)
        write_free(build->stream, scratch[i]);
}

/* ---- operands ---- */

static void input(struct build *build, int name, struct extents shape, enum dtype dtype,
                  enum content content, enum rows rows)
{
    count_bytes(build, &shape, dtype, rows);
    if (name == A) {
        build->shape = shape;
        build->inputs = elements(build, &shape);
    }
    write_data(build, name, shape, dtype, content, rows);
}

/* The output has rows. */
static void count_output(struct build *build, const struct extents *shape, enum dtype dtype)
{
    count_bytes(build, shape, dtype, ROWS);
    build->outputs = elements(build, shape);
    if (build->shape.rank == 0)
        build->shape = *shape;
}

static void output(struct build *build, struct extents shape, enum dtype dtype)
{
    count_output(build, &shape, dtype);
    if (!build->stream)
        return;
    struct extents part = written(build, shape, ROWS);
    struct bench_argument arguments[] = {BENCH_SHAPE(part), BENCH_DTYPE(dtype), BENCH_END};
    write_operation(build->stream, "empty", OUT, arguments);
}

/* Q [k], and Q_COLUMN [k,1] for tensors whose last axis is another one. */
static void write_moduli(struct build *build)
{
    int64_t moduli[BENCH_MODULI_MAX], k = get(build, BENCH_K);
    if (!build->stream)
        return;
    for (int64_t j = 0; j < k; j++)
        moduli[j] = (int64_t)build->moduli[j];
    write_upload(build->stream, Q, build->dtype, (struct extents){1, {k}}, moduli);
    struct bench_argument column[] = {BENCH_TENSOR(Q), BENCH_INT(1), BENCH_END};
    write_operation(build->stream, "unsqueeze", Q_COLUMN, column);
}

/* The moduli as an argument for tensors with k as last or last but one axis: one alone is a
 * scalar. */
static struct bench_argument modulus(const struct build *build, bool k_is_last)
{
    struct bench_argument scalar = BENCH_INT((int64_t)build->moduli[0]);
    struct bench_argument tensor = BENCH_TENSOR(k_is_last ? Q : Q_COLUMN);
    return get(build, BENCH_K) > 1 ? tensor : scalar;
}

/* An operand that is modulo q: reduced by an operation before, or of any numbers. */
static void residues(struct build *build, int name, struct extents shape, enum rows rows,
                     bool k_is_last)
{
    bool reduced = get(build, BENCH_VALUES) == BENCH_REDUCED;
    input(build, name, shape, build->dtype, reduced ? RESIDUES : NUMBERS, rows);
    if (!build->stream || !reduced)
        return;
    struct bench_argument reduce[] = {BENCH_TENSOR(name), modulus(build, k_is_last),
                                      BENCH_TENSOR(name), BENCH_END};
    write_operation(build->stream, "modneg", NO_NAME, reduce);
}

/* PERM [n]: the bit reversal, or the identity. */
static void write_permutation(struct build *build)
{
    int64_t n = get(build, BENCH_N);
    bool reverse = get(build, BENCH_PERM) == BENCH_PERM_REVERSE;
    int64_t *values = build->stream ? calloc((size_t)n, sizeof *values) : NULL;
    if (!values) {
        build->no_memory = build->stream;
        return;
    }
    uint32_t bits = (uint32_t)__builtin_ctzll((uint64_t)n);
    for (int64_t i = 0; i < n; i++)
        values[i] = reverse ? (int64_t)reverse_bits((uint64_t)i, bits) : i;
    write_upload(build->stream, PERM, DTYPE_INT64, (struct extents){1, {n}}, values);
    free(values);
}

/* The operation, and the download of OUT. result: a name to bind, or NO_NAME. */
static void operate(struct build *build, int result, const struct bench_argument *arguments)
{
    static const struct bench_argument download[] = {BENCH_TENSOR(OUT), BENCH_END};
    if (!build->stream)
        return;
    write_next_segment(build->stream, "operation");
    write_operation(build->stream, build->operation->name, result, arguments);
    write_next_segment(build->stream, "result");
    write_operation(build->stream, "device_to_host", NO_NAME, download);
    write_end(build->stream);
}

/* ---------------------------------------------------------------- the operations */

/* ROOTS [k,n] and N_INV [k]: powers of real roots, so that the transforms are true ones. */
static void write_roots(struct build *build, bool inverse)
{
    int64_t n = get(build, BENCH_N), k = get(build, BENCH_K), n_inv[BENCH_MODULI_MAX];
    int64_t *table = build->stream ? calloc((size_t)(n * k), sizeof *table) : NULL;
    if (!table) {
        build->no_memory = build->stream;
        return;
    }
    for (int64_t j = 0; j < k; j++) {
        uint64_t q = build->moduli[j], root = primitive_root(q, (uint64_t)n);
        n_inv[j] = (int64_t)inverse_modulo((uint64_t)n % q, q);
        root_table(inverse ? inverse_modulo(root, q) : root, q, (uint64_t)n, table + j * n);
    }
    write_upload(build->stream, ROOTS, build->dtype, (struct extents){2, {k, n}}, table);
    write_upload(build->stream, N_INV, build->dtype, (struct extents){1, {k}}, n_inv);
    free(table);
}

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
    write_moduli(build);
    write_roots(build, inverse);
    write_permutation(build);
    if (get(build, BENCH_DTYPE) == INT8)
        input(build, A, transform_shape(build, 1), DTYPE_INT8, NUMBERS, ROWS);
    else
        residues(build, A, shape, ROWS, is_heal(build));
    output(build, shape, build->dtype);
}

static void build_ntt(struct build *build)
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
    operate(build, NO_NAME, arguments);
}

static void build_intt(struct build *build)
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
    operate(build, NO_NAME, arguments);
}

/* ---------------------------------------------------------------- the tables */

#define TRANSFORM_DEFAULTS                                                            \
    {                                                                                 \
        {                                                                             \
            [BENCH_N] = 4096, [BENCH_BITS] = AUTO, [BENCH_BATCH] = 64, [BENCH_K] = 1, \
            [BENCH_R] = 1, [BENCH_LAYOUT] = BENCH_CONTIGUOUS, [BENCH_DTYPE] = INT64,  \
            [BENCH_VALUES] = BENCH_REDUCED, [BENCH_PERM] = BENCH_PERM_NONE            \
        }                                                                             \
    }

static const struct bench_operation operations_measured[] = {
    {.name = "ntt",
     .build = build_ntt,
     .unit = BENCH_BUTTERFLY,
     .is_transform = true,
     .takes_int8 = true,
     .defaults = TRANSFORM_DEFAULTS},
    {.name = "intt",
     .build = build_intt,
     .unit = BENCH_BUTTERFLY,
     .is_transform = true,
     .takes_int8 = true,
     .defaults = TRANSFORM_DEFAULTS},
};

enum { OPERATIONS_MEASURED = sizeof operations_measured / sizeof *operations_measured };

const struct bench_suite_case bench_suite[] = {
    {"ntt", {{0}}},  {"ntt", {{[BENCH_N] = 16384}}},  {"ntt", {{[BENCH_N] = 65536}}},
    {"intt", {{0}}}, {"intt", {{[BENCH_N] = 16384}}}, {"intt", {{[BENCH_N] = 65536}}},
    {NULL, {{0}}},
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

/* ---------------------------------------------------------------- settling a case */

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
        of[BENCH_BITS] = of[BENCH_DTYPE] == INT32 ? 30 : 62;
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
        FAIL(error, HEALCL_USAGE, "%s: a batch follows from bytes: one of them is enough", name);
    if (of[BENCH_DTYPE] == INT8 && !self->operation->takes_int8)
        FAIL(error, HEALCL_USAGE, "%s: there is none of int8", name);
    if (self->operation->is_transform && (!power_of_two || of[BENCH_N] < 2))
        FAIL(error, HEALCL_USAGE, "%s: n must be a power of two, not %" PRId64, name, of[BENCH_N]);
    if (of[BENCH_PERM] == BENCH_PERM_REVERSE && !power_of_two)
        FAIL(error, HEALCL_USAGE, "%s: only powers of two have a bit reversal, not %" PRId64, name,
             of[BENCH_N]);
    if (of[BENCH_DTYPE] == INT32 && of[BENCH_BITS] > 31)
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
         "%s: there are fewer than %" PRIu32 " primes of %" PRId64
         " bits that are 1 modulo %" PRIu64,
         self->operation->name, count, of[BENCH_BITS], step);
}

static void begin_build(struct build *build, const struct bench_case *self)
{
    int64_t dtype = self->settings.of[BENCH_DTYPE];
    *build = (struct build){.operation = self->operation,
                            .settings = &self->settings,
                            .moduli = self->moduli,
                            .dtype = dtype == INT32 ? DTYPE_INT32 : DTYPE_INT64};
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
        self->operation->build(&build);
        int64_t left = of[BENCH_BYTES] - build.common_bytes;
        of[BENCH_BATCH] = left > build.row_bytes ? left / build.row_bytes : 1;
    }
    begin_build(&build, self);
    self->operation->build(&build);
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
    return !self->operation->build;
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
    self->operation->build(&build);
    bool written_whole = !ferror(build.stream);
    if (fclose(build.stream) != 0 || !written_whole || build.no_memory) {
        free(*text);
        NO_MEMORY(error);
    }
    return HEALCL_OK;
}
