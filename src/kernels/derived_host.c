/*
 * Tables of small tensors, as moduli, permutations and short rows of twiddles are, worked out on
 * the host: where it has kept what was uploaded, that costs less than the launches that it saves.
 * What the device would report is left to it, so that refusals come in the order of launches.
 */
#include <stdlib.h>

#include "kernels/derived.h"

__extension__ typedef unsigned __int128 uint128;

/* Elements of a view of input i, in C order. Returns how many, at most HOST_DERIVES_MAX; -1 where
 * the host has them not, or one is below `least`. */
static int64_t read_values(const struct launcher *self, const struct step *step, int i,
                           const struct layout *layout, int64_t least, int64_t *values)
{
    const struct storage *storage = step->in[i]->storage;
    const void *contents = self->storages[storage->id].contents;
    const int64_t count = layout_elements(layout);
    if (!contents || count > HOST_DERIVES_MAX)
        return -1;
    struct walk walk;
    walk_init(&walk, 1, &layout);
    for (int64_t j = 0; j < count; j++, walk_next(&walk)) {
        values[j] = dtype_load(storage->dtype, contents, walk.position[0]);
        if (values[j] < least)
            return -1;
    }
    return count;
}

static int64_t read_moduli(const struct launcher *self, const struct step *step, int i,
                           const struct layout *layout, int64_t *values)
{
    return read_values(self, step, i, layout, 1, values);
}

void *host_moduli(const struct launcher *self, const struct step *step, int i,
                  const struct layout *layout)
{
    int64_t values[HOST_DERIVES_MAX];
    const int64_t count = read_moduli(self, step, i, layout, values);
    struct modulus *made = count > 0 ? calloc((size_t)count, sizeof *made) : NULL;
    for (int64_t j = 0; made && j < count; j++)
        made[j] = modulus_of((uint64_t)values[j]);
    return made;
}

void *host_lane_moduli(const struct launcher *self, const struct step *step, int i,
                       const struct layout *layout, int64_t period)
{
    enum { PERIOD_MAX = 64 };
    int64_t values[HOST_DERIVES_MAX];
    const int64_t count = period <= PERIOD_MAX ? read_moduli(self, step, i, layout, values) : -1;
    struct scalar_lanes *made = count > 0 ? calloc((size_t)period, sizeof *made) : NULL;
    for (int64_t place = 0; made && place < period * LANES; place++) {
        const struct modulus modulus = modulus_of((uint64_t)values[place % count]);
        set_lane(&made[place / LANES], (int)(place % LANES), &modulus);
    }
    return made;
}

/* As make_twiddle in cl/base/arithmetic.h. factor in [0, q) */
static struct twiddle twiddle_of(uint64_t factor, uint64_t q)
{
    return (struct twiddle){.factor = factor, .quotient = (uint64_t)(((uint128)factor << 64) / q)};
}

/* Floor remainder; q at least 1 */
static uint64_t residue_of(int64_t value, int64_t q)
{
    const int64_t rest = value % q;
    return (uint64_t)(rest < 0 ? rest + q : rest);
}

void *host_twiddles(const struct launcher *self, const struct step *step, int i,
                    const struct layout *layout, int q_input, const struct layout *q_layout)
{
    int64_t values[HOST_DERIVES_MAX], q[HOST_DERIVES_MAX];
    const int64_t count = read_values(self, step, i, layout, INT64_MIN, values);
    if (count < 1 || read_moduli(self, step, q_input, q_layout, q) < layout->shape[0])
        return NULL;
    const int64_t n = count / layout->shape[0];
    struct twiddle *made = calloc((size_t)count, sizeof *made);
    for (int64_t j = 0; made && j < count; j++)
        made[j] = twiddle_of(residue_of(values[j], q[j / n]), (uint64_t)q[j / n]);
    return made;
}

/* The lowest bits of i in reversed order, for n = 2^bits. */
static uint32_t reverse_bits(uint32_t i, uint32_t n)
{
    uint32_t reversed = 0;
    for (; n > 1; n /= 2, i /= 2)
        reversed = reversed << 1 | (i & 1);
    return reversed;
}

void *host_permutation(const struct launcher *self, const struct step *step, int i, bool inverse)
{
    int64_t values[HOST_DERIVES_MAX];
    const int64_t count = read_values(self, step, i, &step->in[i]->layout, 0, values);
    const uint32_t n = count > 0 ? (uint32_t)count : 0, unset = UINT32_MAX;
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
    if (is_good)
        made[n] = back[n] = kinds;
    free(is_good && inverse ? made : back);
    if (!is_good)
        free(made);
    return !is_good ? NULL : inverse ? back : made;
}

/* a^-1 modulo q; 0 where that is 1, q where there is none. */
static uint64_t inverse_of(uint64_t a, uint64_t q)
{
    uint64_t old_rest = q, rest = a % q, old_factor = 0, factor = 1 % q;
    while (rest != 0) {
        const uint64_t quotient = old_rest / rest, next_rest = old_rest % rest;
        const uint64_t product = (uint64_t)((uint128)quotient * factor % q);
        const uint64_t next =
            old_factor >= product ? old_factor - product : old_factor + (q - product);
        old_rest = rest;
        rest = next_rest;
        old_factor = factor;
        factor = next;
    }
    return old_rest == 1 ? old_factor : q;
}

void *host_crt_inverses(const struct launcher *self, const struct step *step, int i)
{
    enum { MODULI_MAX = 8 }; /* each pair takes about a microsecond */
    int64_t q[HOST_DERIVES_MAX];
    const int64_t k = read_moduli(self, step, i, &step->in[i]->layout, q);
    struct twiddle *made = k > 0 && k <= MODULI_MAX ? calloc((size_t)(k * k), sizeof *made) : NULL;
    for (int64_t j = 0; made && j < k; j++)
        for (int64_t row = 0; row < j; row++) {
            const uint64_t modulus = (uint64_t)q[j];
            const uint64_t factor = inverse_of((uint64_t)q[row], modulus);
            if (factor == modulus) { /* they are not coprime */
                free(made);
                return NULL;
            }
            made[row * k + j] = twiddle_of(factor, modulus);
        }
    return made;
}

bool host_finds_inside(const struct launcher *self, const struct step *step, int i,
                       const struct layout *layout, int64_t first, int64_t size)
{
    const struct storage *storage = step->in[i]->storage;
    const void *contents = self->storages[storage->id].contents;
    struct walk walk;
    if (!contents || layout_elements(layout) > HOST_DERIVES_MAX)
        return false;
    for (walk_init(&walk, 1, &layout); walk.left > 0; walk_next(&walk)) {
        const int64_t value = dtype_load(storage->dtype, contents, walk.position[0]);
        if (value < first || value >= size)
            return false;
    }
    return true;
}
