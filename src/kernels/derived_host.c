/*
 * Tables of small tensors, computed from the host's copy of what was uploaded: bit for bit as
 * cl/core computes them. This takes less time than the launches that it saves, and much less than
 * compiling their kernels. The functions return NULL if the host has no copy, the table would be
 * large, or the device would report an element. Then the device computes the table, and reports.
 * Tables are freed with free().
 */
#include <stdlib.h>

#include "core/numbers.h"
#include "kernels/kernels.h"

__extension__ typedef unsigned __int128 uint128;

/* A modulus with the constants for division by it, as make_modulus in cl/base/arithmetic.h. value
 * is in [1, 2^63). */
static struct modulus modulus_of(uint64_t value)
{
    struct modulus modulus = {.value = value};
    while (value << modulus.shift >> 63 == 0) /* until the highest bit is set */
        modulus.shift++;
    modulus.normalized = value << modulus.shift;
    /* floor((2^128-1) / normalized) is in [2^64, 2^65): the cast subtracts 2^64. */
    modulus.reciprocal = (uint64_t)(~(uint128)0 / modulus.normalized);
    return modulus;
}

/* Sets a lane to a modulus, as lane_moduli in cl/modular/vectors.cl. The inverse is a little too
 * small, so that quotients are never too large. */
static void set_lane(struct scalar_lanes *lanes, int lane, const struct modulus *modulus)
{
    lanes->q[lane] = modulus->value;
    lanes->inverse[lane] = 1.0 / (double)modulus->value * (1 - INVERSE_MARGIN);
    lanes->reciprocal[lane] = modulus->reciprocal;
    lanes->shift[lane] = modulus->shift;
}

/* Reads the elements of a view of input i, in C order, into new memory. *count is their number.
 * NULL if the host has no copy of them, or one is below `least`. */
static int64_t *read_values(const struct launcher *self, const struct step *step, int i,
                            const struct layout *layout, int64_t least, int64_t *count)
{
    const struct storage *storage = step->in[i]->storage;
    const void *contents = self->storages[storage->id].contents;
    *count = layout_elements(layout);
    if (!contents || *count < 1 || *count > HOST_DERIVES_MAX)
        return NULL;
    int64_t *values = malloc((size_t)*count * sizeof *values);
    struct walk walk;
    walk_init(&walk, 1, &layout);
    for (int64_t j = 0; values && j < *count; j++, walk_next(&walk)) {
        values[j] = dtype_load(storage->dtype, contents, walk.position[0]);
        if (values[j] < least) {
            free(values);
            return NULL;
        }
    }
    return values;
}

/* As read_values, but as struct modulus. NULL also if a modulus is below 1: then the device
 * computes the table, and reports the modulus. */
static struct modulus *host_moduli(const struct launcher *self, const struct step *step, int i,
                                   const struct layout *layout, int64_t *count)
{
    int64_t *values = read_values(self, step, i, layout, 1, count);
    struct modulus *moduli = values ? calloc((size_t)*count, sizeof *moduli) : NULL;
    for (int64_t j = 0; moduli && j < *count; j++)
        moduli[j] = modulus_of((uint64_t)values[j]);
    free(values);
    return moduli;
}

/* The moduli, repeated in the lanes of `period` vectors of eight. */
static void *host_lane_moduli(const struct launcher *self, const struct step *step, int i,
                              const struct layout *layout, int64_t period)
{
    enum { PERIOD_MAX = 64 }; /* longer tables are left to the device */
    int64_t k;
    if (period > PERIOD_MAX)
        return NULL;
    struct modulus *moduli = host_moduli(self, step, i, layout, &k);
    struct scalar_lanes *vectors = moduli ? calloc((size_t)period, sizeof *vectors) : NULL;
    for (int64_t element = 0; vectors && element < period * LANES; element++)
        set_lane(&vectors[element / LANES], (int)(element % LANES), &moduli[element % k]);
    free(moduli);
    return vectors;
}

/* Struct modulus, or struct scalar_lanes, for `count` scalars of the plan from number `first` on. A
 * step has one of them as its modulus. Other scalars may be below 1, and count as 1. */
void *derived_scalars(const struct plan *plan, enum derived_kind kind, size_t first, size_t count)
{
    const bool as_lanes = kind == DERIVED_SCALAR_LANES;
    void *table = calloc(count, as_lanes ? sizeof(struct scalar_lanes) : sizeof(struct modulus));
    for (size_t i = 0; table && first + i < plan->constants.count; i++) {
        const int64_t value = plan->constants.values[first + i];
        const struct modulus modulus = modulus_of(value < 1 ? 1 : (uint64_t)value);
        if (!as_lanes)
            ((struct modulus *)table)[i] = modulus;
        for (int lane = 0; as_lanes && lane < LANES; lane++)
            set_lane((struct scalar_lanes *)table + i, lane, &modulus);
    }
    return table;
}

/* A factor in [0, q) with floor(factor * 2^64 / q), as make_twiddle in cl/base/arithmetic.h. The
 * quotient is estimated by q's reciprocal, and corrected by at most one in each direction. */
static struct twiddle twiddle_of(uint64_t factor, const struct modulus *q)
{
    const uint64_t high = factor << q->shift; /* of the dividend, whose lower word is 0 */
    const uint128 product = (uint128)q->reciprocal * high + ((uint128)high << 64);
    const uint64_t fraction = (uint64_t)product;
    uint64_t quotient = (uint64_t)(product >> 64) + 1, rest = 0 - quotient * q->normalized;
    if (rest > fraction) {
        quotient--;
        rest += q->normalized;
    }
    return (struct twiddle){.factor = factor, .quotient = quotient + (rest >= q->normalized)};
}

/* The floor remainder. */
static uint64_t residue_of(int64_t value, const struct modulus *modulus)
{
    const int64_t q = (int64_t)modulus->value;
    if ((uint64_t)value < modulus->value)
        return (uint64_t)value;
    const int64_t rest = q > 0 ? value % q : 0; /* for analysers: every modulus is at least 1 */
    return (uint64_t)(rest < 0 ? rest + q : rest);
}

/* Twiddles [k,n] of input i, whose row j is reduced modulo q[j]. layout is that of the input. */
static struct twiddle *host_twiddles(const struct launcher *self, const struct step *step, int i,
                                     const struct layout *layout)
{
    int64_t count, q_count;
    int64_t *values = read_values(self, step, i, layout, INT64_MIN, &count);
    struct modulus *q = values ? host_moduli(self, step, Q, &step->in[Q]->layout, &q_count) : NULL;
    const int64_t k = layout->shape[0];
    struct twiddle *twiddles = q && q_count >= k ? calloc((size_t)count, sizeof *twiddles) : NULL;
    const int64_t n = twiddles ? count / k : 1;
    for (int64_t element = 0; twiddles && element < count; element++) {
        const struct modulus *modulus = &q[element / n];
        twiddles[element] = twiddle_of(residue_of(values[element], modulus), modulus);
    }
    free(q);
    free(values);
    return twiddles;
}

/* Twiddles [k]: n_inv[j] * factors[j] mod q[j], or factors[j] alone without n_inv. A twiddle is not
 * negative. If factor j is, twiddle j has its magnitude, and a mark for the sign. */
static struct twiddle *host_scales(const struct launcher *self, const struct step *step)
{
    int64_t k, q_count;
    const int64_t any_value = INT64_MIN;
    int64_t *factors = read_values(self, step, FACTORS, &step->in[FACTORS]->layout, any_value, &k);
    struct modulus *q = factors ? host_moduli(self, step, Q, &step->in[Q]->layout, &q_count) : NULL;
    const bool has_n_inv = step->in[N_INV] != NULL;
    const int i = has_n_inv ? N_INV : FACTORS;
    const struct layout as_rows = layout_insert_axis(&step->in[i]->layout, 1, 1, 1); /* [k,1] */
    struct twiddle *scales = q ? host_twiddles(self, step, i, &as_rows) : NULL;
    for (int64_t j = 0; scales && j < k; j++) {
        const bool is_negative = factors[j] < 0;
        const uint64_t magnitude = is_negative ? 0 - (uint64_t)factors[j] : (uint64_t)factors[j];
        const uint64_t n_inv = has_n_inv ? scales[j].factor : 1;
        const uint64_t modulus =
            q[j].value > 0 ? q[j].value : 1; /* for analysers: always above 0 */
        scales[j] = twiddle_of((uint64_t)((uint128)magnitude * n_inv % modulus), &q[j]);
        if (is_negative)
            scales[j].factor |= TWIDDLE_NEGATIVE;
    }
    free(q);
    free(factors);
    return scales;
}

/* A table of lane twiddles that is being written, in words of `word_bits` bits. */
struct lane_table {
    void *words;
    uint32_t word_bits;
    int64_t lanes, count; /* words of a vector, words that are written */
};

static void put_word(const struct lane_table *table, int64_t i, uint64_t value)
{
    if (table->word_bits == 64)
        ((uint64_t *)table->words)[i] = value;
    else
        ((uint32_t *)table->words)[i] = (uint32_t)value;
}

/* Adds twiddle t of a pass: a vector of factors and one of quotients. Lane j divides the block
 * number first + j * step of the row. */
static void add_lane_twiddles(struct lane_table *table, const struct twiddle *row, uint32_t t,
                              int64_t first, int64_t step)
{
    for (int64_t lane = 0; lane < table->lanes; lane++) {
        const uint64_t block = (uint64_t)(first + lane * step);
        const struct twiddle twiddle = row[ntt_twiddle_number(t, block)];
        const uint64_t quotient = twiddle.quotient >> (64 - table->word_bits);
        put_word(table, table->count + lane, twiddle.factor);
        put_word(table, table->count + table->lanes + lane, quotient);
    }
    table->count += 2 * table->lanes;
}

/* The twiddles of cl/ntt/rows.cl in the order in which its vectors use them: see lane_twiddles in
 * cl/core/twiddles.cl. A group is one block of a row for each lane. It has a middle pass of
 * `middle` elements, then as many last passes of NTT_RADIX elements. */
static void *host_lane_twiddles(const struct launcher *self, const struct step *step,
                                const struct layout *layout, uint32_t word_bits)
{
    enum { VECTOR_BITS = 512 };
    const int64_t k = layout->shape[0], n = layout->shape[1], lanes = VECTOR_BITS / word_bits;
    const int64_t block = smaller(n, NTT_ROW_TILE) / NTT_RADIX, middle = block / NTT_RADIX;
    const int64_t blocks = n / block, groups = blocks / lanes;
    const int64_t words = k * (int64_t)ntt_lane_twiddles((uint64_t)n);
    struct twiddle *twiddles = host_twiddles(self, step, PSI, layout);
    struct lane_table table = {.words = twiddles ? calloc((size_t)words, word_bits / 8) : NULL,
                               .word_bits = word_bits,
                               .lanes = lanes};
    for (int64_t group = 0; table.words && group < k * groups; group++) {
        const struct twiddle *row = twiddles + group / groups * n;
        const int64_t first_block = blocks + group % groups * lanes; /* in lane 0 */
        for (uint32_t t = 1; t < middle; t++)
            add_lane_twiddles(&table, row, t, first_block, 1);
        for (int64_t pass = 0; pass < middle; pass++)
            for (uint32_t t = 1; t < NTT_RADIX; t++)
                add_lane_twiddles(&table, row, t, first_block * middle + pass, middle);
    }
    free(twiddles);
    return table.words;
}

/* The lowest log2(n) bits of i in reversed order. */
static uint32_t reverse_bits(uint32_t i, uint32_t n)
{
    uint32_t reversed = 0;
    for (; n > 1; n /= 2, i /= 2)
        reversed = reversed << 1 | (i & 1);
    return reversed;
}

/* Sets a permutation of n entries and its inverse. Returns false if a value is out of range or
 * repeated. */
static bool set_permutation(const int64_t *values, uint32_t n, uint32_t *permutation,
                            uint32_t *inverse)
{
    const uint32_t unset = UINT32_MAX;
    for (uint32_t j = 0; j < n; j++)
        inverse[j] = unset;
    for (uint32_t j = 0; j < n; j++) {
        const bool in_range = values[j] >= 0 && values[j] < n;
        if (!in_range || inverse[values[j]] != unset)
            return false;
        permutation[j] = (uint32_t)values[j];
        inverse[permutation[j]] = j;
    }
    return true;
}

/* The kinds that all entries of a permutation match, as bits. */
static uint32_t kinds_of(const uint32_t *permutation, uint32_t n)
{
    const bool is_power_of_two = (n & (n - 1)) == 0; /* else bits cannot be reversed */
    bool is_identity = true, reverses_bits = is_power_of_two;
    for (uint32_t j = 0; j < n && (is_identity || reverses_bits); j++) {
        is_identity = is_identity && permutation[j] == j;
        reverses_bits = reverses_bits && permutation[j] == reverse_bits(j, n);
    }
    return (is_identity ? PERMUTATION_IDENTITY : 0u) |
           (reverses_bits ? PERMUTATION_REVERSES_BITS : 0u);
}

/* The table uint [n+1] of a permutation, or of its inverse. NULL also if an entry is out of range
 * or repeated: then the device computes the table, and reports the entry. The last element has the
 * permutation's kinds. */
static void *host_permutation(const struct launcher *self, const struct step *step,
                              enum permutation_use use)
{
    int64_t count;
    int64_t *values =
        read_values(self, step, PERMUTATION, &step->in[PERMUTATION]->layout, 0, &count);
    if (!values)
        return NULL;
    const uint32_t n = (uint32_t)count;
    uint32_t *tables[] = {[PERMUTATION_AS_GIVEN] = malloc((n + 1) * sizeof(uint32_t)),
                          [PERMUTATION_INVERTED] = malloc((n + 1) * sizeof(uint32_t))};
    const bool is_valid =
        tables[0] && tables[1] && set_permutation(values, n, tables[0], tables[1]);
    if (is_valid)
        tables[use][n] = kinds_of(tables[PERMUTATION_AS_GIVEN], n);
    free(values);
    free(tables[1 - use]);
    if (is_valid)
        return tables[use];
    free(tables[use]);
    return NULL;
}

/* Whether the host's copy shows that all indices are in range: then no launch checks them. */
bool derived_indices_in_range(const struct launcher *self, const struct step *step,
                              const struct table *table)
{
    const struct layout *layout = &table->layout;
    const struct storage *storage = step->in[table->inputs[0]]->storage;
    const void *contents = self->storages[storage->id].contents;
    struct walk walk;
    if (!contents || layout_elements(layout) > HOST_DERIVES_MAX)
        return false;
    for (walk_init(&walk, 1, &layout); walk.left > 0; walk_next(&walk)) {
        const int64_t value = dtype_load(storage->dtype, contents, walk.position[0]);
        if (value < table->key.index_min || value >= table->key.index_end)
            return false;
    }
    return true;
}

/* Computes a table from the host's copies of its tensors. Returns NULL if the device must compute
 * it. *bytes: the size of the memory that the table needs. */
void *derived_on_host(const struct launcher *self, const struct step *step,
                      const struct table *table, uint64_t *bytes)
{
    const int i = table->inputs[0];
    int64_t unused_count;
    *bytes = (uint64_t)table->count * table->element_bytes;
    switch (table->key.kind) {
    case DERIVED_MODULI: return host_moduli(self, step, i, &table->layout, &unused_count);
    case DERIVED_LANE_MODULI: return host_lane_moduli(self, step, i, &table->layout, table->count);
    case DERIVED_TWIDDLES: return host_twiddles(self, step, i, &table->layout);
    case DERIVED_SCALED_TWIDDLES: return host_scales(self, step);
    case DERIVED_LANE_TWIDDLES:
        return host_lane_twiddles(self, step, &table->layout, (uint32_t)table->key.word_bits);
    case DERIVED_PERMUTATION: return host_permutation(self, step, PERMUTATION_AS_GIVEN);
    case DERIVED_INVERSE_PERMUTATION:
        /* n + 1 elements, without the scratch memory that the device needs behind them */
        *bytes = ((uint64_t)layout_elements(&table->layout) + 1) * table->element_bytes;
        return host_permutation(self, step, PERMUTATION_INVERTED);
    default: return NULL;
    }
}
