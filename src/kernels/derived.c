/* Tables and checks that are derived from tensors. */
#include "kernels/derived.h"

#include <stdlib.h>

#include "core/numbers.h"

/* ---------------------------------------------------------------- on the host */

/* Tables of small tensors, computed from the host's copy of what was uploaded: bit for bit as
 * cl/core derives them. This takes less time than the launches that it saves, and much less than
 * compiling their kernels. The functions return NULL if the host has no copy, the table would be
 * large, or the device would report an element. Then the device derives the table, and reports.
 * Tables are freed with free(). */

__extension__ typedef unsigned __int128 uint128;

/* A modulus for vectors: struct lane_divisor in cl/base/divisor.cl. */
struct scalar_lanes {
    uint64_t q[LANES];
    double inverse[LANES];
    uint64_t reciprocal[LANES], shift[LANES];
};

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

/* struct modulus, or its lanes, for each scalar of the plan: at the scalar's index among the plan's
 * constants. Any scalar below 1 counts as 1. */
static void *host_scalars(const struct plan *plan, bool lanes)
{
    const size_t count = plan->constants.count;
    void *made = calloc(count, lanes ? sizeof(struct scalar_lanes) : sizeof(struct modulus));
    for (size_t i = 0; made && i < count; i++) {
        const int64_t value = plan->constants.values[i];
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
    const int64_t rest = value % q;
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

static bool host_indices_in_range(const struct launcher *self, const struct step *step,
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

/* ---------------------------------------------------------------- choosing */

/* A table of one input, with an element for each of a layout. */
static struct table table_of(enum derived_kind kind, int i, const struct layout *layout,
                             size_t size)
{
    return (struct table){.key = {.kind = kind, .layout = *layout},
                          .inputs = {i, NO_INPUT, NO_INPUT},
                          .layout = *layout,
                          .from = SLOT_NONE,
                          .count = layout_elements(layout),
                          .size = size};
}

/* Its key does not depend on the number of axes. */
static enum healcl_status modulus_table(struct launcher *self, int i, const struct layout *layout,
                                        int *slot, struct healcl_error *error)
{
    struct table table = table_of(DERIVED_MODULI, i, layout, sizeof(struct modulus));
    table.has_rows = true;
    for (uint32_t axis = layout->rank; axis-- > 0;)
        if (layout->shape[axis] == 1)
            table.key.layout = layout_drop_axis(&table.key.layout, axis);
    if (table.key.layout.rank == 0)
        table.key.layout = layout_insert_axis(&table.key.layout, 0, 1, 1);
    return template_add_table(self, &table, slot, error);
}

/* struct modulus, or its lanes, for each scalar of the plan. The plan has checked the scalars that
 * are moduli. Any other scalar counts as 1. */
static enum healcl_status scalar_table(struct launcher *self, enum derived_kind kind, size_t size,
                                       int *slot, struct healcl_error *error)
{
    struct table table = table_of(kind, NO_INPUT, &(struct layout){.rank = 0}, size);
    table.count = (int64_t)self->plan->constants.count;
    return template_add_table(self, &table, slot, error);
}

struct layout modulus_operand(const struct step *step, int i)
{
    struct layout operand = step->in[i]->layout, own = layout_own_elements(&operand);
    struct layout packed = layout_packed(&own);
    operand.offset = 0; /* of a scalar: see SLOT_Q_NUMBER */
    if (step->in[i]->storage->scalars)
        return operand;
    for (uint32_t axis = 0, own_axis = 0; axis < operand.rank; axis++)
        if (operand.stride[axis] != 0)
            operand.stride[axis] = packed.stride[own_axis++];
    return operand;
}

enum healcl_status derive_moduli(struct launcher *self, const struct step *step, int i, int *slot,
                                 struct healcl_error *error)
{
    struct layout own = layout_own_elements(&step->in[i]->layout);
    return step->in[i]->storage->scalars
               ? scalar_table(self, DERIVED_SCALARS, sizeof(struct modulus), slot, error)
               : modulus_table(self, i, &own, slot, error);
}

enum healcl_status derive_modulus_vector(struct launcher *self, const struct step *step, int i,
                                         int *slot, struct healcl_error *error)
{
    struct layout vector = step->in[i]->layout;
    while (vector.rank > 1)
        vector = layout_drop_axis(&vector, 0);
    return modulus_table(self, i, &vector, slot, error);
}

bool moduli_are_periodic(const struct step *step, int i, int64_t *k)
{
    enum { PERIOD_MAX = 4096 };
    const struct layout *input = &step->in[i]->layout;
    struct layout own = layout_own_elements(input);
    bool varies_last = input->rank > 0 && input->stride[input->rank - 1] != 0;
    *k = layout_elements(&own);
    return step->in[i]->storage->scalars ||
           (*k <= PERIOD_MAX && (*k == 1 || (varies_last && own.shape[own.rank - 1] == *k)));
}

enum healcl_status derive_periodic_moduli(struct launcher *self, const struct step *step, int i,
                                          struct periodic_moduli *moduli,
                                          struct healcl_error *error)
{
    struct layout own = layout_own_elements(&step->in[i]->layout);
    const size_t size = sizeof(struct scalar_lanes);
    *moduli = (struct periodic_moduli){.table = SLOT_NONE, .k = 1, .period = 1};
    if (step->in[i]->storage->scalars)
        return scalar_table(self, DERIVED_SCALAR_LANES, size, &moduli->lanes, error);
    moduli->k = moduli->period = layout_elements(&own); /* lcm(k, 8) / 8 */
    for (int64_t power = 8; power > 1 && moduli->period % 2 == 0; power /= 2)
        moduli->period /= 2;
    TRY(modulus_table(self, i, &own, &moduli->table, error));
    struct table table = table_of(DERIVED_LANE_MODULI, i, &own, size);
    table.count = moduli->period;
    table.from = moduli->table;
    return template_add_table(self, &table, &moduli->lanes, error);
}

/* A table of twiddles [k,n], or [k], which also depends on another tensor. */
static struct table twiddle_table(enum derived_kind kind, const struct step *step, int twiddles,
                                  int other, size_t size)
{
    struct layout layout = step->in[twiddles]->layout;
    if (layout.rank == 1)
        layout = layout_insert_axis(&layout, 1, 1, 1);
    struct table table = table_of(kind, twiddles, &layout, size);
    table.inputs[1] = other;
    table.key.others = step->in[other]->layout;
    table.has_rows = true;
    return table;
}

static enum healcl_status derive_twiddles(struct launcher *self, const struct step *step, int i,
                                          int *slot, struct healcl_error *error)
{
    const struct table table = twiddle_table(DERIVED_TWIDDLES, step, i, Q, sizeof(struct twiddle));
    return template_add_table(self, &table, slot, error);
}

/* An extra axis of the key has q's offset and stride. */
static enum healcl_status derive_scales(struct launcher *self, const struct step *step, int *slot,
                                        struct healcl_error *error)
{
    const struct layout *q = &step->in[Q]->layout;
    struct table table =
        twiddle_table(DERIVED_SCALED_TWIDDLES, step, FACTORS, N_INV, sizeof(struct twiddle));
    table.inputs[2] = Q;
    table.key.layout = layout_insert_axis(&table.key.layout, 0, q->offset, q->stride[0]);
    table.has_rows = false;
    table.count = q->shape[0];
    return template_add_table(self, &table, slot, error);
}

enum healcl_status derive_transform(struct launcher *self, const struct step *step,
                                    struct transform_tables *tables, struct healcl_error *error)
{
    *tables = (struct transform_tables){.n_inv = SLOT_NONE, .permutation = SLOT_NONE};
    TRY(modulus_table(self, Q, &step->in[Q]->layout, &tables->q, error));
    TRY(derive_twiddles(self, step, PSI, &tables->twiddles, error));
    if (step->in[FACTORS])
        TRY(derive_scales(self, step, &tables->n_inv, error));
    else if (step->in[N_INV])
        TRY(derive_twiddles(self, step, N_INV, &tables->n_inv, error));
    return step->in[PERMUTATION] ? derive_permutation(self, step, &tables->permutation, error)
                                 : HEALCL_OK;
}

enum healcl_status derive_lane_twiddles(struct launcher *self, const struct step *step,
                                        int twiddles, uint32_t word_bits, int *slot,
                                        struct healcl_error *error)
{
    struct table table = twiddle_table(DERIVED_LANE_TWIDDLES, step, PSI, Q, word_bits / 8);
    const struct layout *layout = &table.layout;
    table.key.size = word_bits;
    table.from = twiddles;
    table.count = layout->shape[0] * (int64_t)ntt_lane_twiddles((uint64_t)layout->shape[1]);
    return template_add_table(self, &table, slot, error);
}

enum healcl_status derive_pass_twiddles(struct launcher *self, const struct step *step,
                                        int twiddles, int64_t beside, uint32_t word_bits, int *slot,
                                        struct healcl_error *error)
{
    struct table table = twiddle_table(DERIVED_PASS_TWIDDLES, step, PSI, Q, word_bits / 4);
    table.key.first = beside;
    table.key.size = word_bits;
    table.from = twiddles;
    table.has_rows = beside == 0;
    table.count = table.layout.shape[0] * (beside ? beside : table.layout.shape[1]);
    return template_add_table(self, &table, slot, error);
}

/* The device computes both permutations together. It needs n elements behind the inverse's n + 1.
 */
static enum healcl_status derive_permutations(struct launcher *self, const struct step *step,
                                              int *slot, int *inverse, struct healcl_error *error)
{
    const struct layout *layout = &step->in[PERMUTATION]->layout;
    struct table table = table_of(DERIVED_PERMUTATION, PERMUTATION, layout, sizeof(uint32_t));
    const int64_t n = layout->shape[0];
    if (n > INT32_MAX)
        REFUSE_FOR(error, LIMIT, "argument '%s': %lld entries are more than 2^31-1",
                   launcher_refuse(self, step, PERMUTATION), (long long)n);
    table.count = n + 1;
    TRY(template_add_table(self, &table, slot, error));
    table.key.kind = DERIVED_INVERSE_PERMUTATION;
    table.count = 2 * n + 1;
    table.is_spare = true;
    return template_add_table(self, &table, inverse, error);
}

enum healcl_status derive_permutation(struct launcher *self, const struct step *step, int *slot,
                                      struct healcl_error *error)
{
    int inverse;
    return derive_permutations(self, step, slot, &inverse, error);
}

enum healcl_status derive_inverse_permutation(struct launcher *self, const struct step *step,
                                              int *slot, struct healcl_error *error)
{
    int permutation;
    TRY(derive_permutations(self, step, &permutation, slot, error));
    self->templates.made->tables[*slot - SLOT_TABLE].is_spare = false;
    return HEALCL_OK;
}

enum healcl_status derive_crt_inverses(struct launcher *self, const struct step *step, int i,
                                       int *slot, struct healcl_error *error)
{
    const struct layout *layout = &step->in[i]->layout;
    struct table table = table_of(DERIVED_CRT_INVERSES, i, layout, sizeof(struct twiddle));
    TRY(derive_modulus_vector(self, step, i, &table.from, error));
    TRY(layout_init(&table.layout, 2, (int64_t[]){table.count, table.count}, table.size, error));
    table.count *= table.count;
    return template_add_table(self, &table, slot, error);
}

/* Elements of input i must be indices of axis value[0] of in[0]. They are in [0, size), or in
 * [-size, size) if negative ones count from the end. */
static enum healcl_status derive_index_check(struct launcher *self, const struct step *step, int i,
                                             int *slot, struct healcl_error *error)
{
    struct layout own = layout_own_elements(&step->in[i]->layout);
    struct table table = table_of(DERIVED_INDEX_CHECK, i, &own, 0);
    table.count = 0;
    table.key.size = step->in[0]->layout.shape[step->value[0]];
    table.key.first = step->value[1] != 0 ? -table.key.size : 0;
    return template_add_table(self, &table, slot, error);
}

enum healcl_status derive_check(struct launcher *self, const struct step *step, int i,
                                struct healcl_error *error)
{
    int slot;
    switch (step_check(step, i)) {
    case CHECK_INDEX: return derive_index_check(self, step, i, &slot, error);
    case CHECK_PERMUTATION: return derive_permutation(self, step, &slot, error);
    case CHECK_COPRIME: return derive_crt_inverses(self, step, i, &slot, error);
    case CHECK_MODULUS:
        return step->in[i]->storage->scalars ? HEALCL_OK
                                             : derive_moduli(self, step, i, &slot, error);
    case CHECK_NONE: break;
    }
    return HEALCL_OK;
}

enum healcl_status derive_weights(struct launcher *self, const struct step *step, int *slot,
                                  struct healcl_error *error)
{
    struct table table =
        table_of(DERIVED_WEIGHTS, 1, &step->in[1]->layout, dtype_size(step->in[1]->storage->dtype));
    table.key.size = step->in[0]->layout.shape[1];
    table.count = table.key.size * table.layout.shape[1];
    return template_add_table(self, &table, slot, error);
}

/* ---------------------------------------------------------------- filling on the device */

/* Begins a job of a kernel of cl/core for input i's dtype. Its first argument is a space of this
 * shape. */
static void begin_core(struct job *job, struct launcher *self, const struct step *step, int i,
                       const char *program, const char *kernel, const struct layout *shape)
{
    job_init(job, self, step, program, kernel);
    job_define_type(job, "ELEMENT", step->in[i]->storage->dtype);
    space_init(&job->space, shape);
    space_set_operand(&job->space, 0, shape);
    job_add_space(job);
}

/* As begin_core, for a kernel that checks elements. Its second argument is the input with these
 * elements. Spaces have at least two axes: fewer would only need another program. */
static enum healcl_status begin_check(struct job *job, struct launcher *self, const char *kernel,
                                      const struct check *check, struct healcl_error *error)
{
    const struct tensor *tensor = check->step->in[check->input];
    begin_core(job, self, check->step, check->input, "core/checks", kernel, &check->elements);
    space_simplify(&job->space);
    if (job->space.rank < 2)
        space_add_axis(&job->space);
    job_add_input(job, tensor);
    return launcher_add_check(self, check, &job->space.key, error);
}

/* A table to fill. */
struct fill {
    const struct step *step;
    const struct table *table;
    int slot;
};

static enum healcl_status choose_moduli(struct launcher *self, void *context,
                                        struct healcl_error *error)
{
    const struct fill *fill = context;
    struct check check = {.step = fill->step,
                          .input = fill->table->inputs[0],
                          .kind = CHECK_MODULUS,
                          .elements = fill->table->layout};
    struct job job;
    TRY(begin_check(&job, self, "moduli", &check, error));
    job_add_written(&job, fill->slot);
    job_add_written(&job, SLOT_STATUS);
    return job_launch(&job, error);
}

/* See lane_moduli in cl/modular/vectors.cl. */
static enum healcl_status choose_lane_moduli(struct launcher *self, void *context,
                                             struct healcl_error *error)
{
    const struct fill *fill = context;
    struct layout vectors;
    struct job job;
    TRY(layout_init(&vectors, 1, (int64_t[]){fill->table->count * LANES}, 1, error));
    job_init(&job, self, fill->step, "vectors", "lane_moduli");
    job_define_vectors(&job);
    job_define_type(&job, "ELEMENT", fill->step->in[fill->table->inputs[0]]->storage->dtype);
    space_init(&job.space, &vectors);
    job_add_space(&job);
    job_add_buffer(&job, fill->table->from);
    job_add_long(&job, layout_elements(&fill->table->layout));
    job_add_written(&job, fill->slot);
    return job_launch(&job, error);
}

/* Lane twiddles and those of passes. */
static enum healcl_status choose_twiddles(struct launcher *self, void *context,
                                          struct healcl_error *error)
{
    const struct fill *fill = context;
    const struct table *table = fill->table;
    const bool are_lanes = table->key.kind == DERIVED_LANE_TWIDDLES;
    struct job job;
    job_init(&job, self, fill->step, "core/twiddles",
             are_lanes ? "lane_twiddles" : "pass_twiddles");
    job_define_type(&job, "ELEMENT", fill->step->in[PSI]->storage->dtype);
    job_add_buffer(&job, table->from);
    JOB_ADD_LONGS(&job, table->layout.shape[1], table->layout.shape[0]);
    if (!are_lanes)
        job_add_long(&job, table->key.first);
    job_add_uint(&job, (uint32_t)table->key.size);
    job_add_written(&job, fill->slot);
    return job_launch_groups(&job, 8 * (uint64_t)self->device->info.compute_units,
                             are_lanes ? 1 : self->device->tuning.local_size, error);
}

static enum healcl_status choose_crt_inverses(struct launcher *self, void *context,
                                              struct healcl_error *error)
{
    const struct fill *fill = context;
    const struct layout *pairs = &fill->table->layout;
    const int i = fill->table->inputs[0];
    struct check check = {.step = fill->step,
                          .input = i,
                          .kind = CHECK_COPRIME,
                          .elements = *pairs,
                          .size = pairs->shape[0]};
    struct job job;
    begin_core(&job, self, fill->step, i, "core/crt", "crt_inverses", pairs);
    TRY(launcher_add_check(self, &check, &job.space.key, error));
    job_add_buffer(&job, fill->table->from);
    job_add_uint(&job, (uint32_t)pairs->shape[0]);
    job_add_written(&job, fill->slot);
    job_add_written(&job, SLOT_STATUS);
    return job_launch(&job, error);
}

static enum healcl_status choose_index_check(struct launcher *self, void *context,
                                             struct healcl_error *error)
{
    const struct fill *fill = context;
    const struct derived_key *key = &fill->table->key;
    struct check check = {.step = fill->step,
                          .input = fill->table->inputs[0],
                          .kind = CHECK_INDEX,
                          .elements = fill->table->layout,
                          .axis = (uint32_t)fill->step->value[0],
                          .size = key->size};
    struct job job;
    TRY(begin_check(&job, self, "check_indices", &check, error));
    JOB_ADD_LONGS(&job, key->first, key->size);
    job_add_written(&job, SLOT_STATUS);
    return job_launch(&job, error);
}

/* Copies the weights of each digit behind those of the one before. */
static enum healcl_status copy_weights(struct launcher *self, const struct step *step,
                                       const struct table *table, const struct buffer *to,
                                       struct healcl_error *error)
{
    const int64_t k = table->layout.shape[1];
    uint64_t at = 0, bytes;
    for (int64_t digit = 0; digit < step->out->layout.shape[0]; digit++, at += bytes) {
        const struct tensor *b = step_weights(step, digit);
        const struct buffer *from;
        bytes = (uint64_t)(b->layout.shape[0] * k) * table->size;
        TRY(launcher_buffer(self, b->storage, &from, error));
        TRY(device_copy(self->device, from, (uint64_t)b->layout.offset * table->size, to, at, bytes,
                        step->origins, error));
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- tables of transforms */

/* Tables of a transform by slot, or of a sum's permutation, and those that a launch computes: bits
 * TABLE_... */
struct transform_fill {
    const struct step *step;
    struct transform_tables tables;
    int inverse;
    uint32_t wanted;
};

/* A table that the launch does not compute may be missing. It needs a stand-in. */
static void add_table(struct job *job, const struct transform_fill *making, uint32_t bit, int slot)
{
    if (making->wanted & bit)
        job_add_written(job, slot);
    else
        job_add_buffer(job, slot == SLOT_NONE ? SLOT_STATUS : slot);
}

/* Computes tables of single elements. Prepares those that launch_permutation completes. */
static enum healcl_status choose_tables(struct launcher *self, void *context,
                                        struct healcl_error *error)
{
    const struct transform_fill *making = context;
    static const int operands[] = {Q, PSI, N_INV, FACTORS};
    enum { PER_ITEM = 8 }; /* elements that share one computation of a modulus */
    const bool is_transform = making->wanted != TABLE_PERMUTATION;
    const struct tensor *const *in = making->step->in;
    const size_t local_size = self->device->tuning.local_size;
    const uint32_t tuned = self->device->tuning.elements_per_item;
    const uint64_t limit = self->device->info.loop_limit;
    uint64_t most = tuned > PER_ITEM ? tuned : PER_ITEM;
    most = limit > 0 && limit < most ? limit : most;
    const int typed = is_transform ? Q : PERMUTATION;
    struct layout shape = in[is_transform ? PSI : typed]->layout;
    struct job job;
    if (!is_transform)
        shape = layout_insert_axis(&shape, 0, 1, 0);
    const int64_t n = shape.shape[1];
    begin_core(&job, self, making->step, typed, "core/transform", "transform_tables", &shape);
    job_add_uint(&job, making->wanted);
    for (uint32_t o = 0; o < sizeof operands / sizeof *operands; o++) {
        const struct tensor *operand = is_transform ? in[operands[o]] : NULL;
        struct layout view = operand ? operand->layout : shape;
        if (view.rank == 1)
            view = layout_insert_axis(&view, 1, n, 0);
        space_set_operand(&job.space, o, &view);
        job_add_input(&job, operand ? operand : in[typed]);
    }
    struct check check = {.step = making->step, .input = Q, .kind = CHECK_MODULUS};
    check.elements = in[typed]->layout;
    if (making->wanted & TABLE_MODULI)
        TRY(launcher_add_check(self, &check, &job.space.key, error));
    add_table(&job, making, TABLE_MODULI, making->tables.q);
    add_table(&job, making, TABLE_TWIDDLES, making->tables.twiddles);
    add_table(&job, making, TABLE_SCALES, making->tables.n_inv);
    add_table(&job, making, TABLE_PERMUTATION, making->tables.permutation);
    add_table(&job, making, TABLE_PERMUTATION, making->inverse);
    job_add_written(&job, SLOT_STATUS);
    uint64_t *per_item = &job.space.elements_per_item;
    *per_item = (uint64_t)n / local_size;
    if (*per_item > most)
        *per_item = most;
    *per_item += *per_item == 0;
    job.rounds = *per_item;
    const uint64_t block = *per_item * local_size;
    return job_launch_groups(&job, (uint64_t)shape.shape[0] * (((uint64_t)n + block - 1) / block),
                             local_size, error);
}

/* To find repeated entries, the kernel needs a table that is empty at first. */
static enum healcl_status choose_permutation(struct launcher *self, void *context,
                                             struct healcl_error *error)
{
    const struct transform_fill *making = context;
    const struct layout *layout = &making->step->in[PERMUTATION]->layout;
    const struct check check = {.step = making->step,
                                .input = PERMUTATION,
                                .kind = CHECK_PERMUTATION,
                                .elements = *layout,
                                .size = layout->shape[0]};
    struct job job;
    TRY(begin_check(&job, self, "permutation", &check, error));
    job_add_written(&job, making->tables.permutation);
    job_add_written(&job, making->inverse);
    job_add_written(&job, SLOT_STATUS);
    return job_launch(&job, error);
}

static bool has_twiddles(const struct template *template)
{
    for (size_t i = 0; i < template->table_count; i++)
        if (template->tables[i].key.kind == DERIVED_TWIDDLES)
            return true;
    return false;
}

/* The bits of a table that choose_tables can compute; 0: it cannot. Moduli alone are checked for
 * steps whose other operands may be those of another call. */
static uint32_t transform_bits(const struct template *template, const struct table *table)
{
    switch (table->key.kind) {
    case DERIVED_MODULI: return has_twiddles(template) ? TABLE_MODULI : 0;
    case DERIVED_TWIDDLES: return table->inputs[0] == PSI ? TABLE_TWIDDLES : TABLE_SCALES;
    case DERIVED_SCALED_TWIDDLES: return TABLE_SCALES | TABLE_FACTORS;
    case DERIVED_PERMUTATION:
    case DERIVED_INVERSE_PERMUTATION: return TABLE_PERMUTATION;
    default: return 0;
    }
}

/* ---------------------------------------------------------------- filling */

/* A table that the host computes; NULL if it cannot. *bytes: of it. */
static void *host_table(const struct launcher *self, const struct step *step,
                        const struct table *table, uint64_t *bytes)
{
    const int i = table->inputs[0];
    int64_t count;
    *bytes = (uint64_t)table->count * table->size;
    switch (table->key.kind) {
    case DERIVED_MODULI: return host_moduli(self, step, i, &table->layout, &count);
    case DERIVED_SCALARS:
    case DERIVED_SCALAR_LANES:
        *bytes = self->plan->constants.count * table->size;
        return host_scalars(self->plan, table->key.kind == DERIVED_SCALAR_LANES);
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

/* Gives a table memory, with these contents unless they are NULL. They are freed. */
static enum healcl_status acquire_table(struct launcher *self, const struct template_run *run,
                                        size_t i, void *made, uint64_t bytes,
                                        struct healcl_error *error)
{
    struct derived *derived = run->tables[i];
    enum healcl_status status = HEALCL_OK;
    derived_release(self, derived);
    if (self->list)
        ;
    else if (made)
        status = device_upload_memory(self->device, NULL, bytes, made, &derived->table, error);
    else if (bytes > 0)
        status = device_buffer_acquire(self->device, bytes, false, &derived->table, error);
    free(made);
    if (status == HEALCL_OK)
        derived_filled(self, derived, derived_version(self, run->step, &run->template->tables[i]));
    return status == HEALCL_REFUSED ? device_note_unsupported(self->device, status) : status;
}

/* Fills a table on the device, after all tables that it is computed from. */
static enum healcl_status fill_on_device(struct launcher *self, struct template_run *run, size_t i,
                                         struct healcl_error *error)
{
    static fill_function *const functions[] = {[DERIVED_MODULI] = choose_moduli,
                                               [DERIVED_LANE_MODULI] = choose_lane_moduli,
                                               [DERIVED_LANE_TWIDDLES] = choose_twiddles,
                                               [DERIVED_PASS_TWIDDLES] = choose_twiddles,
                                               [DERIVED_CRT_INVERSES] = choose_crt_inverses,
                                               [DERIVED_INDEX_CHECK] = choose_index_check};
    struct fill fill = {run->step, &run->template->tables[i], SLOT_TABLE + (int)i};
    const enum derived_kind kind = fill.table->key.kind;
    if (kind == DERIVED_INDEX_CHECK && host_indices_in_range(self, run->step, fill.table))
        return HEALCL_OK;
    if (kind == DERIVED_WEIGHTS)
        return self->list
                   ? HEALCL_OK
                   : copy_weights(self, run->step, fill.table, &run->tables[i]->table, error);
    return template_run_fill(self, run, functions[kind], &fill, error);
}

/* Notes where a launch finds the tables of a transform. */
static void note_slot(struct transform_fill *making, const struct template *template, size_t i)
{
    const struct table *table = &template->tables[i];
    const int slot = SLOT_TABLE + (int)i;
    switch (transform_bits(template, table)) {
    case 0: break;
    case TABLE_MODULI: making->tables.q = slot; break;
    case TABLE_TWIDDLES: making->tables.twiddles = slot; break;
    case TABLE_PERMUTATION:
        if (table->key.kind == DERIVED_PERMUTATION)
            making->tables.permutation = slot;
        else
            making->inverse = slot;
        break;
    default: making->tables.n_inv = slot;
    }
}

/* Computes tables of a transform by one launch, and checks its permutation by another one. */
static enum healcl_status fill_transform(struct launcher *self, struct template_run *run,
                                         struct transform_fill *making, struct healcl_error *error)
{
    if (making->wanted & TABLE_PERMUTATION) { /* the host's table would be too small */
        const size_t inverse = (size_t)(making->inverse - SLOT_TABLE);
        const struct table *table = &run->template->tables[inverse];
        TRY(acquire_table(self, run, inverse, NULL, (uint64_t)table->count * table->size, error));
    }
    if (making->wanted)
        TRY(template_run_fill(self, run, choose_tables, making, error));
    return making->wanted & TABLE_PERMUTATION
               ? template_run_fill(self, run, choose_permutation, making, error)
               : HEALCL_OK;
}

/* Finds a table again: another one of more rows may have been filled. */
static enum healcl_status find_stale(struct launcher *self, struct template_run *run, size_t i,
                                     bool *is_stale, struct healcl_error *error)
{
    const struct table *table = &run->template->tables[i];
    const uint64_t version = derived_version(self, run->step, table) + 1;
    *is_stale = false;
    if (run->tables[i]->version == version || table->is_spare)
        return HEALCL_OK;
    TRY(derived_find(self, run->step, table, &run->tables[i], error));
    *is_stale = run->tables[i]->version != version;
    return HEALCL_OK;
}

static enum healcl_status fill_stale(struct launcher *self, struct template_run *run,
                                     bool is_stale[TABLES_MAX], struct healcl_error *error)
{
    const struct template *template = run->template;
    struct transform_fill making = {.step = run->step,
                                    .tables = {SLOT_NONE, SLOT_NONE, SLOT_NONE, SLOT_NONE},
                                    .inverse = SLOT_NONE};
    for (size_t i = 0; i < template->table_count; i++) {
        const struct table *table = &template->tables[i];
        uint64_t bytes;
        note_slot(&making, template, i);
        if (!is_stale[i])
            continue;
        void *made = host_table(self, run->step, table, &bytes);
        const uint32_t bits = made ? 0 : transform_bits(template, table);
        is_stale[i] = !made && bits == 0;
        making.wanted |= bits;
        TRY(acquire_table(self, run, i, made, bytes, error));
        if (is_stale[i] && making.wanted == 0) {
            is_stale[i] = false;
            TRY(fill_on_device(self, run, i, error));
        }
    }
    TRY(fill_transform(self, run, &making, error));
    for (size_t i = 0; i < template->table_count; i++)
        if (is_stale[i])
            TRY(fill_on_device(self, run, i, error));
    return HEALCL_OK;
}

enum healcl_status derived_fill(struct launcher *self, struct template_run *run,
                                struct healcl_error *error)
{
    bool is_stale[TABLES_MAX], any = false;
    for (size_t i = 0; i < run->template->table_count; i++) {
        TRY(find_stale(self, run, i, &is_stale[i], error));
        any |= is_stale[i];
    }
    const enum healcl_status status = any ? fill_stale(self, run, is_stale, error) : HEALCL_OK;
    for (size_t i = 0; status != HEALCL_OK && i < run->template->table_count; i++)
        derived_release(self, run->tables[i]); /* some may be incomplete */
    return status;
}
