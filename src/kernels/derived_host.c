/*
 * Tables of small tensors, computed from the host's copy of what was uploaded: bit for bit as
 * cl/core computes them. This takes less time than the launches that it saves, and much less than
 * compiling their kernels. The functions return NULL if the host has no copy, the table would be
 * large, or the device would report an element. Then the device computes the table, and reports.
 * Tables are freed with free().
 */
#include <stdlib.h>

#include "core/numbers.h"
#include "kernels/derived.h"

__extension__ typedef unsigned __int128 uint128;

/* As make_modulus in cl/base/arithmetic.h. value is in [1, 2^63). */
static struct modulus modulus_of(uint64_t value)
{
    struct modulus modulus = {.value = value};
    while (value << modulus.shift >> 63 == 0)
        modulus.shift++;
    modulus.normalized = value << modulus.shift;
    modulus.reciprocal = (uint64_t)(~(uint128)0 / modulus.normalized); /* minus 2^64 */
    return modulus;
}

/* As lane_moduli in cl/modular/vectors.cl. */
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

/* As read_values, but as struct modulus. */
static struct modulus *host_moduli(const struct launcher *self, const struct step *step, int i,
                                   const struct layout *layout, int64_t *count)
{
    int64_t *values = read_values(self, step, i, layout, 1, count);
    struct modulus *made = values ? calloc((size_t)*count, sizeof *made) : NULL;
    for (int64_t j = 0; made && j < *count; j++)
        made[j] = modulus_of((uint64_t)values[j]);
    free(values);
    return made;
}

static void *host_lane_moduli(const struct launcher *self, const struct step *step, int i,
                              const struct layout *layout, int64_t period)
{
    enum { PERIOD_MAX = 64 };
    int64_t count;
    if (period > PERIOD_MAX)
        return NULL;
    struct modulus *moduli = host_moduli(self, step, i, layout, &count);
    struct scalar_lanes *made = moduli ? calloc((size_t)period, sizeof *made) : NULL;
    for (int64_t place = 0; made && place < period * LANES; place++)
        set_lane(&made[place / LANES], (int)(place % LANES), &moduli[place % count]);
    free(moduli);
    return made;
}

/* Any scalar below 1 counts as 1. */
void *derived_scalars(const struct plan *plan, enum derived_kind kind, size_t first, size_t count)
{
    const bool lanes = kind == DERIVED_SCALAR_LANES;
    void *made = calloc(count, lanes ? sizeof(struct scalar_lanes) : sizeof(struct modulus));
    for (size_t i = 0; made && first + i < plan->constants.count; i++) {
        const int64_t value = plan->constants.values[first + i];
        const struct modulus modulus = modulus_of(value < 1 ? 1 : (uint64_t)value);
        if (!lanes)
            ((struct modulus *)made)[i] = modulus;
        for (int lane = 0; lanes && lane < LANES; lane++)
            set_lane((struct scalar_lanes *)made + i, lane, &modulus);
    }
    return made;
}

/* As make_twiddle in cl/base/arithmetic.h. factor is in [0, q). */
static struct twiddle twiddle_of(uint64_t factor, const struct modulus *q)
{
    const uint64_t high = factor << q->shift;
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
    const int64_t rest = q > 0 ? value % q : 0; /* no modulus is below 1 */
    return (uint64_t)(rest < 0 ? rest + q : rest);
}

static struct twiddle *host_twiddles(const struct launcher *self, const struct step *step, int i,
                                     const struct layout *layout)
{
    int64_t count, q_count;
    int64_t *values = read_values(self, step, i, layout, INT64_MIN, &count);
    struct modulus *q = values ? host_moduli(self, step, Q, &step->in[Q]->layout, &q_count) : NULL;
    const bool is_there = q && q_count >= layout->shape[0];
    struct twiddle *made = is_there ? calloc((size_t)count, sizeof *made) : NULL;
    const int64_t n = made ? count / layout->shape[0] : 1;
    for (int64_t j = 0; made && j < count; j++)
        made[j] = twiddle_of(residue_of(values[j], &q[j / n]), &q[j / n]);
    free(q);
    free(values);
    return made;
}

static struct twiddle *host_scales(const struct launcher *self, const struct step *step)
{
    int64_t k, q_count;
    int64_t *values = read_values(self, step, FACTORS, &step->in[FACTORS]->layout, INT64_MIN, &k);
    struct modulus *q = values ? host_moduli(self, step, Q, &step->in[Q]->layout, &q_count) : NULL;
    const struct layout layout = layout_insert_axis(&step->in[N_INV]->layout, 1, 1, 1);
    struct twiddle *made = q ? host_twiddles(self, step, N_INV, &layout) : NULL;
    for (int64_t j = 0; made && j < k && q[j].value > 0; j++) { /* no modulus is below 1 */
        const uint64_t size = values[j] < 0 ? 0 - (uint64_t)values[j] : (uint64_t)values[j];
        made[j] = twiddle_of((uint64_t)((uint128)size * made[j].factor % q[j].value), &q[j]);
        made[j].factor |= values[j] < 0 ? TWIDDLE_NEGATIVE : 0;
    }
    free(q);
    free(values);
    return made;
}

/* Writes word `place` of a table with words of `word_bits` bits. */
static void put_word(void *table, uint32_t word_bits, int64_t place, uint64_t value)
{
    if (word_bits == 64)
        ((uint64_t *)table)[place] = value;
    else
        ((uint32_t *)table)[place] = (uint32_t)value;
}

static void *host_lane_twiddles(const struct launcher *self, const struct step *step,
                                const struct layout *layout, uint32_t word_bits)
{
    const int64_t k = layout->shape[0], n = layout->shape[1], lanes = 512 / word_bits;
    const int64_t block = (n < NTT_ROW_TILE ? n : NTT_ROW_TILE) / NTT_RADIX;
    const int64_t middle = block / NTT_RADIX, groups = n / block / lanes;
    const int64_t words = k * (int64_t)ntt_lane_twiddles((uint64_t)n);
    struct twiddle *twiddles = host_twiddles(self, step, PSI, layout);
    void *made = twiddles ? calloc((size_t)words, word_bits / 8) : NULL;
    int64_t place = 0;
    for (int64_t group = 0; made && group < k * groups; group++) {
        const int64_t number = group % groups * lanes + n / block; /* of the block in lane 0 */
        const struct twiddle *row = twiddles + group / groups * n;
        for (int64_t pass = 0; pass <= middle; pass++) /* the middle pass, and the last one */
            for (uint32_t t = 1; t < (pass ? NTT_RADIX : middle); t++, place += 2 * lanes)
                for (int64_t lane = 0; lane < lanes; lane++) {
                    const int64_t of = pass ? (number + lane) * middle + pass - 1 : number + lane;
                    const struct twiddle w = row[ntt_twiddle_number(t, (uint64_t)of)];
                    put_word(made, word_bits, place + lane, w.factor);
                    put_word(made, word_bits, place + lanes + lane, w.quotient >> (64 - word_bits));
                }
    }
    free(twiddles);
    return made;
}

/* The lowest log2(n) bits of i in reversed order. */
static uint32_t reverse_bits(uint32_t i, uint32_t n)
{
    uint32_t reversed = 0;
    for (; n > 1; n /= 2, i /= 2)
        reversed = reversed << 1 | (i & 1);
    return reversed;
}

static void *host_permutation(const struct launcher *self, const struct step *step, bool inverse)
{
    int64_t count;
    const struct layout *layout = &step->in[PERMUTATION]->layout;
    int64_t *values = read_values(self, step, PERMUTATION, layout, 0, &count);
    const uint32_t n = values ? (uint32_t)count : 0, unset = UINT32_MAX;
    uint32_t *back = n > 0 ? malloc((n + 1) * sizeof *back) : NULL;
    uint32_t *made = n > 0 ? malloc((n + 1) * sizeof *made) : NULL;
    uint32_t kinds = PERMUTATION_IDENTITY | ((n & (n - 1)) == 0 ? PERMUTATION_REVERSES_BITS : 0);
    bool is_good = made && back;
    for (uint32_t j = 0; is_good && j < n; j++)
        back[j] = unset;
    for (uint32_t j = 0; is_good && j < n; j++) {
        is_good = values[j] >= 0 && values[j] < count && back[values[j]] == unset;
        if (!is_good)
            break;
        made[j] = (uint32_t)values[j];
        back[made[j]] = j;
        kinds &= (made[j] == j ? PERMUTATION_IDENTITY : 0u) |
                 (made[j] == reverse_bits(j, n) ? PERMUTATION_REVERSES_BITS : 0u);
    }
    free(values);
    if (is_good)
        made[n] = back[n] = kinds;
    free(is_good && inverse ? made : back);
    if (!is_good)
        free(made);
    return !is_good ? NULL : inverse ? back : made;
}

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
        if (value < table->key.first || value >= table->key.size)
            return false;
    }
    return true;
}

void *derived_on_host(const struct launcher *self, const struct step *step,
                      const struct table *table, uint64_t *bytes)
{
    const int i = table->inputs[0];
    int64_t count;
    *bytes = (uint64_t)table->count * table->size;
    switch (table->key.kind) {
    case DERIVED_MODULI: return host_moduli(self, step, i, &table->layout, &count);
    case DERIVED_LANE_MODULI: return host_lane_moduli(self, step, i, &table->layout, table->count);
    case DERIVED_TWIDDLES: return host_twiddles(self, step, i, &table->layout);
    case DERIVED_SCALED_TWIDDLES: return host_scales(self, step);
    case DERIVED_LANE_TWIDDLES:
        return host_lane_twiddles(self, step, &table->layout, (uint32_t)table->key.size);
    case DERIVED_PERMUTATION: return host_permutation(self, step, false);
    case DERIVED_INVERSE_PERMUTATION:
        *bytes = ((uint64_t)layout_elements(&table->layout) + 1) * table->size;
        return host_permutation(self, step, true);
    default: return NULL;
    }
}
