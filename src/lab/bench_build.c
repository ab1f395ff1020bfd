#include "lab/bench_build.h"

#include <stdlib.h>

#include "lab/bench_prime.h"

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

void build_count(struct build *build, const struct extents *shape, enum dtype dtype, enum rows rows)
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

/* Elements that are uploaded and then repeated: a prime number, so that rows are not alike. */
enum { TILE_VALUES = 65521, TILE_PERMUTATIONS = 13 };

/* Uploads the first elements of a tensor as a row [1, length] called TILE. */
static void write_tile(struct build *build, enum tensor_name name, enum dtype dtype,
                       enum content content, int64_t length)
{
    int64_t *values = calloc((size_t)length, sizeof *values);
    if (!values) {
        build->no_memory = true;
        return;
    }
    uint64_t bound = content == RESIDUES ? build->moduli[modulus_count(build) - 1] : 0;
    if (content == PERMUTATIONS)
        fill_permutations(values, length, get(build, BENCH_N), (uint64_t)name);
    else
        fill_values(values, length, bound, (uint64_t)name);
    write_upload(build->stream, TILE, dtype, (struct extents){2, {1, length}}, values);
    free(values);
}

/* A tile repeated; the tensor takes its rows of that. */
void build_data(struct build *build, enum tensor_name name, struct extents shape, enum dtype dtype,
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
    write_operation(build->stream, "reshape", (int)name, reshape);
    static const int scratch[] = {TILE, TILES, FLAT, PART};
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++)
        write_free(build->stream, scratch[i]);
}

/* ---- operands ---- */

void build_input(struct build *build, enum tensor_name name, struct extents shape, enum dtype dtype,
                 enum content content, enum rows rows)
{
    build_count(build, &shape, dtype, rows);
    if (name == A) {
        build->shape = shape;
        build->inputs = elements(build, &shape);
    }
    build_data(build, name, shape, dtype, content, rows);
}

void build_count_output(struct build *build, const struct extents *shape, enum dtype dtype)
{
    build_count(build, shape, dtype, ROWS);
    build->outputs = elements(build, shape);
    if (build->shape.rank == 0)
        build->shape = *shape;
}

void build_output(struct build *build, struct extents shape, enum dtype dtype)
{
    build_count_output(build, &shape, dtype);
    if (!build->stream)
        return;
    struct extents part = written(build, shape, ROWS);
    struct bench_argument arguments[] = {BENCH_SHAPE(part), BENCH_DTYPE(dtype), BENCH_END};
    write_operation(build->stream, "empty", OUT, arguments);
}

void build_moduli(struct build *build)
{
    int64_t moduli[BENCH_MODULI_MAX], k = modulus_count(build);
    if (!build->stream)
        return;
    for (int64_t j = 0; j < k; j++)
        moduli[j] = (int64_t)build->moduli[j];
    write_upload(build->stream, Q, build->dtype, (struct extents){1, {k}}, moduli);
    struct bench_argument column[] = {BENCH_TENSOR(Q), BENCH_INT(1), BENCH_END};
    write_operation(build->stream, "unsqueeze", Q_COLUMN, column);
}

struct bench_argument build_modulus(const struct build *build, bool k_is_last)
{
    struct bench_argument scalar = BENCH_INT((int64_t)build->moduli[0]);
    struct bench_argument tensor = BENCH_TENSOR(k_is_last ? Q : Q_COLUMN);
    return modulus_count(build) > 1 ? tensor : scalar;
}

void build_residues(struct build *build, enum tensor_name name, struct extents shape,
                    enum rows rows, bool k_is_last)
{
    bool reduced = get(build, BENCH_VALUES) == BENCH_REDUCED;
    build_input(build, name, shape, build->dtype, reduced ? RESIDUES : NUMBERS, rows);
    if (!build->stream || !reduced)
        return;
    struct bench_argument reduce[] = {BENCH_TENSOR(name), build_modulus(build, k_is_last),
                                      BENCH_TENSOR(name), BENCH_END};
    write_operation(build->stream, "modneg", NO_NAME, reduce);
}

void build_roots(struct build *build, bool inverse)
{
    int64_t n = get(build, BENCH_N), k = modulus_count(build), n_inv[BENCH_MODULI_MAX];
    int64_t *table = build->stream ? calloc((size_t)(n * k), sizeof *table) : NULL;
    if (!table) {
        build->no_memory = build->stream != NULL;
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

void build_permutation(struct build *build)
{
    int64_t n = get(build, BENCH_N);
    bool reverse = get(build, BENCH_PERM) == BENCH_PERM_REVERSE;
    int64_t *values = build->stream ? calloc((size_t)n, sizeof *values) : NULL;
    if (!values) {
        build->no_memory = build->stream != NULL;
        return;
    }
    uint32_t bits = (uint32_t)__builtin_ctzll((uint64_t)n);
    for (int64_t i = 0; i < n; i++)
        values[i] = reverse ? (int64_t)reverse_bits((uint64_t)i, bits) : i;
    write_upload(build->stream, PERM, DTYPE_INT64, (struct extents){1, {n}}, values);
    free(values);
}

void build_operation(struct build *build, enum tensor_name result,
                     const struct bench_argument *arguments)
{
    static const struct bench_argument download[] = {BENCH_TENSOR(OUT), BENCH_END};
    if (!build->stream)
        return;
    write_next_segment(build->stream, "operation");
    const struct bench_operation *operation = build->operation;
    write_operation(build->stream, operation->operation ? operation->operation : operation->name,
                    (int)result, arguments);
    write_next_segment(build->stream, "result");
    write_operation(build->stream, "device_to_host", NO_NAME, download);
    write_end(build->stream);
}
