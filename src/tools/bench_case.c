#include "tools/bench.h"

#include "tools/xmalloc.h"

enum {
    TRANSFORM_MAX = 1 << 20, /* largest n of a transform */
    ELEMENTS_MAX_BITS = 40,  /* of one tensor */
};

static int64_t get(const struct bench_case *self, enum bench_parameter parameter)
{
    return self->settings.of[parameter];
}

static bool is_transform(const struct bench_case *self)
{
    return self->operation->unit == BENCH_BUTTERFLY;
}

/* A transform of int8 uses the same input for all moduli. */
static bool is_tiled(const struct bench_case *self)
{
    return is_transform(self) && get(self, BENCH_DTYPE) == 1 + DTYPE_INT8;
}

/* 1 if k is not a parameter. */
static int64_t modulus_count(const struct bench_case *self)
{
    return get(self, BENCH_K) ? get(self, BENCH_K) : 1;
}

/* The dtype of the moduli and their residues. */
static enum dtype modulus_dtype(const struct bench_case *self)
{
    bool is_int32 = get(self, BENCH_DTYPE) == 1 + DTYPE_INT32;
    return is_int32 && !self->operation->dtype_is_outputs ? DTYPE_INT32 : DTYPE_INT64;
}

/* ---------------------------------------------------------------- tensors */

/* Returns NULL if there is none. */
static const char *axes_of(const struct bench_case *self, enum bench_tensor tensor)
{
    return self->operation->shapes[tensor][get(self, BENCH_LAYOUT) == BENCH_HEAL];
}

static bool has_rows(const struct bench_case *self, enum bench_tensor tensor)
{
    return axes_of(self, tensor)[0] == 'b';
}

static int64_t size_of(const struct bench_case *self, enum bench_tensor tensor, char axis)
{
    switch (axis) {
    case 'b': return get(self, BENCH_BATCH);
    case 'd': return get(self, BENCH_DIGITS);
    case 'k': return tensor == BENCH_A && is_tiled(self) ? 1 : get(self, BENCH_K);
    case 'm': return get(self, BENCH_N) * get(self, BENCH_S);
    case 'n': return get(self, BENCH_N);
    case 'p': return get(self, BENCH_N) * 2;
    case 'r': return get(self, BENCH_R);
    case 's': return get(self, BENCH_S);
    default: return 1;
    }
}

static struct layout shape_of(const struct bench_case *self, enum bench_tensor tensor)
{
    const char *axes = axes_of(self, tensor);
    int64_t shape[LAYOUT_RANK];
    uint32_t rank = 0;
    for (; axes[rank]; rank++)
        shape[rank] = size_of(self, tensor, axes[rank]);
    return layout_of_shape(rank, shape);
}

static enum dtype dtype_of(const struct bench_case *self, enum bench_tensor tensor)
{
    if (tensor == BENCH_OUT ? is_tiled(self) : self->operation->dtype_is_outputs)
        return DTYPE_INT64;
    return (enum dtype)(get(self, BENCH_DTYPE) - 1);
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
    if (of[BENCH_BITS] == BENCH_AUTO)
        of[BENCH_BITS] = modulus_dtype(self) == DTYPE_INT32 ? 30 : 62;
    if (of[BENCH_DIGITS] == BENCH_AUTO)
        of[BENCH_DIGITS] = (of[BENCH_BITS] * modulus_count(self) - 1) / of[BENCH_BASE_BITS] + 1;
}

static enum healcl_status check(const struct bench_case *self, const struct bench_settings *given,
                                struct healcl_error *error)
{
    const int64_t *of = self->settings.of;
    const char *name = self->operation->name;
    bool power_of_two = (of[BENCH_N] & (of[BENCH_N] - 1)) == 0;
    if (given->of[BENCH_BATCH] && given->of[BENCH_BYTES])
        FAIL(error, HEALCL_USAGE, "%s: --batch and --bytes exclude each other", name);
    if (of[BENCH_DTYPE] == 1 + DTYPE_INT8 && !self->operation->takes_int8)
        FAIL(error, HEALCL_USAGE, "%s: does not take int8", name);
    if (is_transform(self) && (!power_of_two || of[BENCH_N] < 2 || of[BENCH_N] > TRANSFORM_MAX))
        FAIL(error, HEALCL_USAGE, "%s: n must be a power of two from 2 to %d, not %" PRId64, name,
             TRANSFORM_MAX, of[BENCH_N]);
    if (of[BENCH_PERM] == BENCH_PERM_REVERSE && !power_of_two)
        FAIL(error, HEALCL_USAGE, "%s: only powers of two have a bit reversal, not %" PRId64, name,
             of[BENCH_N]);
    if (modulus_dtype(self) == DTYPE_INT32 && of[BENCH_BITS] > 31)
        FAIL(error, HEALCL_USAGE, "%s: moduli of %" PRId64 " bits do not fit int32", name,
             of[BENCH_BITS]);
    return HEALCL_OK;
}

static enum healcl_status choose_moduli(struct bench_case *self, struct healcl_error *error)
{
    uint64_t step = is_transform(self) ? 2 * (uint64_t)get(self, BENCH_N) : 2;
    uint32_t bits = (uint32_t)get(self, BENCH_BITS), count = (uint32_t)modulus_count(self);
    if (bits == 0 || find_primes(bits, step, count, self->moduli))
        return HEALCL_OK;
    FAIL(error, HEALCL_USAGE,
         "%s: too few primes of %" PRIu32 " bits are 1 modulo %" PRIu64 ": k is %" PRIu32,
         self->operation->name, bits, step, count);
}

/* Computes the elements of each tensor, 0 if it does not exist. Also the bytes of inputs and
 * outputs with rows, and of those without. A view counts as large as the tensor made from it. */
struct sizes {
    int64_t elements[BENCH_TENSORS];
    int64_t row_bytes, common_bytes;
};

static enum healcl_status find_sizes(const struct bench_case *self, struct sizes *sizes,
                                     struct healcl_error *error)
{
    *sizes = (struct sizes){.row_bytes = 0};
    for (enum bench_tensor i = 0; i < BENCH_TENSORS; i++) {
        int64_t count = 1;
        if (!axes_of(self, i))
            continue;
        struct layout shape = shape_of(self, i);
        for (uint32_t axis = 0; axis < shape.rank; axis++)
            if (__builtin_mul_overflow(count, shape.shape[axis], &count) ||
                count > (int64_t)1 << ELEMENTS_MAX_BITS)
                FAIL(error, HEALCL_USAGE, "%s: a tensor would have more than 2^%d elements",
                     self->operation->name, ELEMENTS_MAX_BITS);
        int64_t bytes = count * (int64_t)dtype_size(dtype_of(self, i));
        sizes->elements[i] = count;
        *(has_rows(self, i) ? &sizes->row_bytes : &sizes->common_bytes) +=
            i == BENCH_OUT && self->operation->accumulates ? 2 * bytes : bytes;
    }
    return HEALCL_OK;
}

static uint64_t count_units(const struct bench_case *self, const struct sizes *sizes)
{
    uint64_t outputs = (uint64_t)sizes->elements[BENCH_OUT];
    switch (self->operation->unit) {
    case BENCH_BUTTERFLY:
        return outputs / 2 * (uint64_t)__builtin_ctzll((uint64_t)get(self, BENCH_N));
    case BENCH_ELEMENT: return outputs;
    case BENCH_PRODUCT: return (uint64_t)sizes->elements[BENCH_A];
    case BENCH_BYTE: break;
    }
    return self->bytes;
}

/* Computes the batch, if bytes are given, and the sizes. */
static enum healcl_status measure(struct bench_case *self, struct healcl_error *error)
{
    int64_t *of = self->settings.of;
    struct sizes sizes;
    if (of[BENCH_BYTES]) {
        of[BENCH_BATCH] = 1;
        TRY(find_sizes(self, &sizes, error));
        int64_t left = of[BENCH_BYTES] - sizes.common_bytes;
        of[BENCH_BATCH] = left > sizes.row_bytes ? left / sizes.row_bytes : 1;
    }
    TRY(find_sizes(self, &sizes, error));
    enum bench_tensor shown = BENCH_A;
    while (shown < BENCH_OUT && (!axes_of(self, shown) || !has_rows(self, shown)))
        shown++;
    self->shape = shape_of(self, shown);
    self->bytes = (uint64_t)(sizes.row_bytes + sizes.common_bytes);
    self->output_bytes =
        (uint64_t)sizes.elements[BENCH_OUT] * dtype_size(dtype_of(self, BENCH_OUT));
    self->units = count_units(self, &sizes);
    return HEALCL_OK;
}

enum healcl_status bench_case_init(struct bench_case *self, const struct bench_operation *operation,
                                   const struct bench_settings *given, struct healcl_error *error)
{
    *self = (struct bench_case){.operation = operation};
    settle(self, given);
    TRY(check(self, given, error));
    TRY(choose_moduli(self, error));
    return measure(self, error);
}

/* ---------------------------------------------------------------- moduli, roots, permutations */

/* Uploads a tensor [rows, columns], or [columns] if rows is 0. Frees the values. */
static void upload(struct writer *writer, const char *name, enum dtype dtype, int64_t rows,
                   int64_t columns, int64_t *values)
{
    const int64_t shape[] = {rows, columns};
    const struct layout layout = rows ? layout_of_shape(2, shape) : layout_of_shape(1, &columns);
    writer_upload(writer, name, dtype, &layout, false, DTYPE_INT64, values);
    free(values);
}

static int64_t *allocate(int64_t count)
{
    return xcalloc((size_t)count, sizeof(int64_t));
}

/* "q" [k] and "q_column" [k,1] */
static void put_moduli(struct writer *writer, const struct bench_case *self)
{
    int64_t k = modulus_count(self);
    const struct layout shape = layout_of_shape(1, &k);
    writer_upload(writer, "q", modulus_dtype(self), &shape, false, DTYPE_INT64, self->moduli);
    writer_call(writer, "q_column", "unsqueeze", "q 1");
}

/* "roots" [k,n] and "n_inv" [k]: arbitrary residues, because their values do not affect the
 * time. */
static void put_roots(struct writer *writer, const struct bench_case *self)
{
    int64_t n = get(self, BENCH_N), k = modulus_count(self);
    int64_t *table = allocate(n * k), *n_inv = allocate(k);
    struct random random = {BENCH_TENSORS + 1};
    for (int64_t i = 0; i < n * k; i++)
        table[i] = random_between(&random, 1, (int64_t)self->moduli[i / n] - 1);
    for (int64_t j = 0; j < k; j++)
        n_inv[j] = random_between(&random, 1, (int64_t)self->moduli[j] - 1);
    upload(writer, "roots", modulus_dtype(self), k, n, table);
    upload(writer, "n_inv", modulus_dtype(self), 0, k, n_inv);
}

/* "perm" [n]: the bit reversal, or the identity. */
static void put_permutation(struct writer *writer, const struct bench_case *self)
{
    int64_t n = get(self, BENCH_N), *values = allocate(n);
    uint32_t bits = (uint32_t)__builtin_ctzll((uint64_t)n);
    bool reverse = get(self, BENCH_PERM) == BENCH_PERM_REVERSE;
    for (int64_t i = 0; i < n; i++)
        values[i] = reverse ? (int64_t)reverse_bits((uint64_t)i, bits) : i;
    upload(writer, "perm", DTYPE_INT64, 0, n, values);
}

/* ---------------------------------------------------------------- inputs */

static const char *const names[BENCH_TENSORS] = {"a", "b", "indices", "out"};

static bool is_reduced(const struct bench_case *self, enum bench_tensor tensor)
{
    return get(self, BENCH_VALUES) == BENCH_REDUCED && tensor != BENCH_INDICES && !is_tiled(self);
}

/* Number of elements that are uploaded and then repeated. It is prime, so that rows differ. */
enum { TILE_VALUES = 65521, TILE_PERMUTATIONS = 13 };

/* Uploads the first elements of a tensor as a row [1, length] called "tile". They are residues for
 * every modulus, numbers of all 64 bits, or several permutations of [0, n). */
static void put_tile(struct writer *writer, const struct bench_case *self, enum bench_tensor tensor,
                     int64_t length)
{
    int64_t *values = allocate(length), n = get(self, BENCH_N);
    struct random random = {(uint64_t)tensor + 1};
    int64_t largest = (int64_t)self->moduli[modulus_count(self) - 1] - 1;
    for (int64_t i = 0; i < length; i++)
        values[i] = tensor == BENCH_INDICES    ? i % n
                    : is_reduced(self, tensor) ? random_between(&random, 0, largest)
                                               : (int64_t)random_bits(&random);
    for (int64_t i = 0; tensor == BENCH_INDICES && i < length; i += n)
        random_shuffle(&random, DTYPE_INT64, n, values + i);
    upload(writer, "tile", dtype_of(self, tensor), 1, length, values);
}

enum { WORD_SIZE = 24, WORDS_SIZE = 256 };

/* The moduli for a tensor whose last or next-to-last axis is k. A single modulus is a scalar. */
static const char *modulus_word(const struct bench_case *self, enum bench_tensor tensor,
                                char text[WORD_SIZE])
{
    const char *axes = axes_of(self, tensor);
    if (modulus_count(self) > 1)
        return axes[strlen(axes) - 1] == 'k' ? "q" : "q_column";
    snprintf(text, WORD_SIZE, "%" PRIu64, self->moduli[0]);
    return text;
}

/* Repeats a tile. The tensor takes its rows from the result, and is reduced if necessary. */
static void put_input(struct writer *writer, const struct bench_case *self,
                      enum bench_tensor tensor, int64_t first, int64_t rows)
{
    char text[SHAPE_TEXT_SIZE], word[WORD_SIZE];
    static const char *const scratch[] = {"tile", "tiles", "flat", "part"};
    struct layout shape = shape_of(self, tensor);
    if (tensor == BENCH_A)
        shape.shape[shape.rank - 1] += self->operation->gap;
    int64_t all = layout_elements(&shape), start = 0;
    int64_t length = tensor == BENCH_INDICES ? TILE_PERMUTATIONS * get(self, BENCH_N) : TILE_VALUES;
    length = all < length ? all : length;
    if (has_rows(self, tensor)) {
        start = all / shape.shape[0] * first % length;
        shape.shape[0] = rows;
    }
    int64_t end = start + layout_elements(&shape);
    put_tile(writer, self, tensor, length);
    writer_call(writer, "tiles", "expand", "tile 0 %" PRId64, (end + length - 1) / length);
    writer_call(writer, "flat", "flatten", "tiles 0 1");
    writer_call(writer, "part", "get_slice", "flat [%" PRId64 ":%" PRId64 "]", start, end);
    writer_call(writer, names[tensor], "reshape", "part %s", layout_shape_text(&shape, text));
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++)
        writer_entry(writer, "FREE_DEVICE_TENSOR", "tensor_name", scratch[i]);
    if (is_reduced(self, tensor))
        writer_call(writer, NULL, "modneg", "%s %s %s", names[tensor],
                    modulus_word(self, tensor, word), names[tensor]);
}

static void put_empty_output(struct writer *writer, const struct bench_case *self, const char *out,
                             int64_t rows)
{
    char text[SHAPE_TEXT_SIZE];
    struct layout shape = shape_of(self, BENCH_OUT);
    shape.shape[0] = rows;
    writer_call(writer, out, "empty", "%s :%s", layout_shape_text(&shape, text),
                dtype_name(dtype_of(self, BENCH_OUT)));
}

/* ---------------------------------------------------------------- the transcript */

static void put_preparation(struct writer *writer, const struct bench_case *self, int64_t first,
                            int64_t rows, bool twice)
{
    const struct bench_operation *operation = self->operation;
    if (get(self, BENCH_BITS))
        put_moduli(writer, self);
    if (is_transform(self))
        put_roots(writer, self);
    if (get(self, BENCH_PERM))
        put_permutation(writer, self);
    for (enum bench_tensor i = 0; i < BENCH_TENSORS; i++)
        if (axes_of(self, i) && (i != BENCH_OUT || operation->accumulates))
            put_input(writer, self, i, first, rows);
    if (operation->view)
        writer_call(writer, "view", operation->view, "%s", operation->view_arguments);
    else if (!operation->accumulates)
        put_empty_output(writer, self, "out", rows);
    if (twice && !operation->view)
        put_empty_output(writer, self, "second", rows);
}

/* Replaces a word of bench_operation.arguments: by an argument that depends on the case, by the
 * number of a parameter, or by the output. Other words are unchanged. */
static const char *word_of(const struct bench_case *self, const char *word, const char *out,
                           char text[WORD_SIZE])
{
    const struct {
        const char *name;
        int value;
    } decided[] = {
        {"axis", get(self, BENCH_LAYOUT) == BENCH_HEAL ? -3 : -1},
        {"tile", is_tiled(self)},
        {"apply_perm", get(self, BENCH_PERM) == BENCH_PERM_REVERSE},
        {"skip_perm", get(self, BENCH_PERM) == BENCH_PERM_NONE},
    };
    if (strcmp(word, "p") == 0)
        return modulus_word(self, BENCH_OUT, text);
    if (strcmp(word, "out") == 0)
        return out;
    snprintf(text, WORD_SIZE, "%s", word);
    for (size_t i = 0; i < sizeof decided / sizeof *decided; i++)
        if (strcmp(word, decided[i].name) == 0)
            snprintf(text, WORD_SIZE, "%d", decided[i].value);
    for (enum bench_parameter i = 0; i < BENCH_PARAMETER_COUNT; i++)
        if (!bench_parameters[i].choices && strcmp(word, bench_parameters[i].name) == 0)
            snprintf(text, WORD_SIZE, "%" PRId64, get(self, i));
    return text;
}

/* Writes the segments of the operation and of its result. */
static void put_operation(struct writer *writer, const struct bench_case *self, const char *out)
{
    const struct bench_operation *operation = self->operation;
    char words[WORDS_SIZE] = "", given[WORDS_SIZE], text[WORD_SIZE], *rest = given;
    snprintf(given, sizeof given, "%s", operation->arguments);
    for (char *word = strtok_r(given, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        strcat(strcat(words, word_of(self, word, out, text)), " ");
    writer_next_segment(writer, "operation");
    writer_call(writer, operation->view ? out : NULL,
                operation->operation ? operation->operation : operation->name, "%s", words);
    writer_next_segment(writer, "result");
    writer_download(writer, out, DTYPE_INT64, NULL, NULL);
}

char *bench_case_text(const struct bench_case *self, int64_t first, int64_t count, bool twice)
{
    struct writer writer = {0};
    writer_entry(&writer, "SEGMENT_START", "name", "prepare");
    put_preparation(&writer, self, first, count, twice);
    put_operation(&writer, self, "out");
    if (twice)
        put_operation(&writer, self, "second");
    writer_entry(&writer, "SEGMENT_END", NULL, NULL);
    return writer_finish(&writer);
}
