/* Tables and checks that are derived once from a tensor, and kept until it is written. */
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

uint64_t host_largest(const struct launcher *self, const struct step *step, int i)
{
    const struct storage *storage = step->in[i]->storage;
    const void *contents = self->storages[storage->id].contents;
    int64_t most = 0;
    for (int64_t j = 0; contents && j < storage->elements; j++) {
        const int64_t value = dtype_load(storage->dtype, contents, j);
        most = value > most ? value : most;
    }
    return (uint64_t)most;
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
    for (int64_t j = 0; made && j < k; j++) {
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

static bool host_indices_in_range(const struct launcher *self, const struct step *step, int i,
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

/* ---------------------------------------------------------------- on the device */

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
    TRY(job_add_input(job, tensor, error));
    return launcher_add_check(self, check, &job->space.key, error);
}

/* ---------------------------------------------------------------- moduli */

/* The key of moduli that are the elements of a layout, independent of its number of axes. */
static struct derived_key modulus_key(const struct layout *layout)
{
    struct derived_key key = {.kind = DERIVED_MODULI, .layout = *layout};
    for (uint32_t axis = layout->rank; axis-- > 0;)
        if (layout->shape[axis] == 1)
            key.layout = layout_drop_axis(&key.layout, axis);
    if (key.layout.rank == 0)
        key.layout = layout_insert_axis(&key.layout, 0, 1, 1);
    return key;
}

/* Finds the table of moduli for the elements of a layout, or adds a new one. If the host could not
 * fill the new table, the caller must: then *is_new. */
static enum healcl_status take_moduli(struct launcher *self, const struct step *step, int i,
                                      const struct layout *layout, const struct buffer **table,
                                      bool *is_new, struct healcl_error *error)
{
    const struct derived_key key = modulus_key(layout);
    *is_new = false;
    if (derived_find_rows(self, step->in[i], &key, table))
        return HEALCL_OK;
    int64_t count;
    void *made = host_moduli(self, step, i, layout, &count);
    *is_new = !made;
    return derived_add(self, step->in[i], &key, layout_elements(layout), sizeof(struct modulus),
                       made, table, error);
}

static enum healcl_status modulus_table(struct launcher *self, const struct step *step, int i,
                                        const struct layout *layout, const struct buffer **table,
                                        struct healcl_error *error)
{
    bool is_new;
    TRY(take_moduli(self, step, i, layout, table, &is_new, error));
    if (!is_new)
        return HEALCL_OK;
    struct check check = {.step = step, .input = i, .kind = CHECK_MODULUS, .elements = *layout};
    struct job job;
    TRY(begin_check(&job, self, "moduli", &check, error));
    job_add_written(&job, *table);
    job_add_written(&job, &self->status);
    return job_launch(&job, error);
}

struct layout modulus_operand(const struct step *step, int i)
{
    struct layout operand = step->in[i]->layout, own = layout_own_elements(&operand);
    struct layout packed = layout_packed(&own);
    if (step->in[i]->storage->scalars)
        return operand;
    operand.offset = 0;
    for (uint32_t axis = 0, own_axis = 0; axis < operand.rank; axis++)
        if (operand.stride[axis] != 0)
            operand.stride[axis] = packed.stride[own_axis++];
    return operand;
}

enum healcl_status derive_moduli(struct launcher *self, const struct step *step, int i,
                                 const struct buffer **table, struct healcl_error *error)
{
    struct layout own = layout_own_elements(&step->in[i]->layout);
    return step->in[i]->storage->scalars ? derive_scalars(self, false, table, error)
                                         : modulus_table(self, step, i, &own, table, error);
}

enum healcl_status derive_modulus_vector(struct launcher *self, const struct step *step, int i,
                                         const struct buffer **table, struct healcl_error *error)
{
    struct layout vector = step->in[i]->layout;
    while (vector.rank > 1)
        vector = layout_drop_axis(&vector, 0);
    return modulus_table(self, step, i, &vector, table, error);
}

/* Lanes of the moduli in a table of k, see lane_moduli in cl/modular/vectors.cl. */
static enum healcl_status lane_moduli(struct launcher *self, const struct step *step, int i,
                                      const struct layout *layout, struct periodic_moduli *moduli,
                                      struct healcl_error *error)
{
    struct derived_key key = {.kind = DERIVED_LANE_MODULI, .layout = *layout};
    if (derived_find(self, step->in[i], &key, &moduli->lanes))
        return HEALCL_OK;
    void *made = host_lane_moduli(self, step, i, layout, moduli->period);
    if (made)
        return derived_add(self, step->in[i], &key, moduli->period, sizeof(struct scalar_lanes),
                           made, &moduli->lanes, error);
    struct layout vectors;
    struct job job;
    TRY(layout_init(&vectors, 1, (int64_t[]){moduli->period * LANES}, 1, error));
    TRY(derived_add(self, step->in[i], &key, moduli->period, sizeof(struct scalar_lanes), NULL,
                    &moduli->lanes, error));
    job_init(&job, self, step, "vectors", "lane_moduli");
    job_define_vectors(&job);
    job_define_type(&job, "ELEMENT", step->in[i]->storage->dtype);
    space_init(&job.space, &vectors);
    job_add_space(&job);
    job_add_buffer(&job, moduli->table);
    job_add_long(&job, moduli->k);
    job_add_written(&job, moduli->lanes);
    return job_launch(&job, error);
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
    const struct layout *input = &step->in[i]->layout;
    struct layout own = layout_own_elements(input);
    *moduli = (struct periodic_moduli){.k = 1, .period = 1, .first = input->offset};
    if (step->in[i]->storage->scalars)
        return derive_scalars(self, true, &moduli->lanes, error);
    int64_t k = layout_elements(&own);
    *moduli = (struct periodic_moduli){.k = k, .period = k}; /* lcm(k, 8) / 8 */
    for (int64_t power = 8; power > 1 && moduli->period % 2 == 0; power /= 2)
        moduli->period /= 2;
    TRY(modulus_table(self, step, i, &own, &moduli->table, error));
    return lane_moduli(self, step, i, &own, moduli, error);
}

/* ---------------------------------------------------------------- tables of transforms */

/* Tables of a step, and those that a launch must still compute: bits TABLE_... */
struct making {
    struct launcher *launcher;
    const struct step *step;
    struct transform_tables tables;
    const struct buffer *inverse;
    uint32_t wanted;
};

static struct derived_key twiddle_key(struct launcher *self, enum derived_kind kind,
                                      const struct tensor *twiddles, const struct tensor *q)
{
    struct layout layout = twiddles->layout;
    if (layout.rank == 1)
        layout = layout_insert_axis(&layout, 1, 1, 1);
    return (struct derived_key){.kind = kind,
                                .layout = layout,
                                .q_storage = q->storage,
                                .q_generation = self->storages[q->storage->id].generation,
                                .q_layout = q->layout};
}

/* Twiddles [k,n] of psi, or [k] of n_inv. */
static enum healcl_status take_twiddles(struct making *making, int i, uint32_t bit,
                                        const struct buffer **table, struct healcl_error *error)
{
    struct launcher *self = making->launcher;
    const struct tensor *const *in = making->step->in;
    const struct derived_key key = twiddle_key(self, DERIVED_TWIDDLES, in[i], in[Q]);
    if (derived_find_rows(self, in[i], &key, table))
        return HEALCL_OK;
    void *made = host_twiddles(self, making->step, i, &key.layout);
    making->wanted |= made ? 0 : bit;
    return derived_add(self, in[i], &key, layout_elements(&key.layout), sizeof(struct twiddle),
                       made, table, error);
}

/* The key also depends on q: an extra axis holds q's offset and stride. */
static enum healcl_status take_scales(struct making *making, struct healcl_error *error)
{
    struct launcher *self = making->launcher;
    const struct tensor *const *in = making->step->in, *q = in[Q];
    struct derived_key key = twiddle_key(self, DERIVED_SCALED_TWIDDLES, in[FACTORS], in[N_INV]);
    key.layout = layout_insert_axis(&key.layout, 0, q->layout.offset, q->layout.stride[0]);
    key.first = (int64_t)self->storages[q->storage->id].generation;
    key.size = q->storage->id;
    if (derived_find(self, in[FACTORS], &key, &making->tables.n_inv))
        return HEALCL_OK;
    void *made = host_scales(self, making->step);
    making->wanted |= made ? 0 : TABLE_SCALES | TABLE_FACTORS;
    return derived_add(self, in[FACTORS], &key, q->layout.shape[0], sizeof(struct twiddle), made,
                       &making->tables.n_inv, error);
}

/* The device computes the inverse along with the permutation, which it needs for this. */
static enum healcl_status take_permutation(struct making *making, struct healcl_error *error)
{
    struct launcher *self = making->launcher;
    const struct tensor *tensor = making->step->in[PERMUTATION];
    struct derived_key key = {.kind = DERIVED_PERMUTATION, .layout = tensor->layout};
    const int64_t n = tensor->layout.shape[0];
    if (derived_find(self, tensor, &key, &making->tables.permutation))
        return HEALCL_OK;
    if (n > INT32_MAX)
        REFUSE_FOR(error, LIMIT, "argument '%s': %lld entries are more than 2^31-1",
                   launcher_refuse(self, making->step, PERMUTATION), (long long)n);
    void *made = host_permutation(self, making->step, false);
    making->wanted |= made ? 0 : TABLE_PERMUTATION;
    TRY(derived_add(self, tensor, &key, n + 1, sizeof(uint32_t), made, &making->tables.permutation,
                    error));
    key.kind = DERIVED_INVERSE_PERMUTATION;
    return made ? HEALCL_OK
                : derived_add(self, tensor, &key, 2 * n + 1, sizeof(uint32_t), NULL,
                              &making->inverse, error);
}

/* Adds a table to a launch that may only compute other tables. A missing table needs a stand-in
 * buffer. */
static void add_table(struct job *job, const struct making *making, uint32_t bit,
                      const struct buffer *table)
{
    if (making->wanted & bit)
        job_add_written(job, table);
    else
        job_add_buffer(job, table ? table : &making->launcher->status);
}

/* Computes tables of single elements. Prepares those that launch_permutation completes. */
static enum healcl_status launch_tables(const struct making *making, struct healcl_error *error)
{
    static const int operands[] = {Q, PSI, N_INV, FACTORS};
    enum { PER_ITEM = 8 }; /* elements that share one computation of a modulus */
    const struct transform_tables *tables = &making->tables;
    const bool is_transform = making->wanted != TABLE_PERMUTATION;
    const struct tensor *const *in = making->step->in;
    struct launcher *self = making->launcher;
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
        TRY(job_add_input(&job, operand ? operand : in[typed], error));
    }
    struct check check = {.step = making->step, .input = Q, .kind = CHECK_MODULUS};
    check.elements = in[typed]->layout;
    if (making->wanted & TABLE_MODULI)
        TRY(launcher_add_check(self, &check, &job.space.key, error));
    add_table(&job, making, TABLE_MODULI, tables->q);
    add_table(&job, making, TABLE_TWIDDLES, tables->twiddles);
    add_table(&job, making, TABLE_SCALES, tables->n_inv);
    add_table(&job, making, TABLE_PERMUTATION, tables->permutation);
    add_table(&job, making, TABLE_PERMUTATION, making->inverse);
    job_add_written(&job, &self->status);
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
static enum healcl_status launch_permutation(const struct making *making,
                                             struct healcl_error *error)
{
    const struct layout *layout = &making->step->in[PERMUTATION]->layout;
    const struct check check = {.step = making->step,
                                .input = PERMUTATION,
                                .kind = CHECK_PERMUTATION,
                                .elements = *layout,
                                .size = layout->shape[0]};
    struct job job;
    TRY(begin_check(&job, making->launcher, "permutation", &check, error));
    job_add_written(&job, making->tables.permutation);
    job_add_written(&job, making->inverse);
    job_add_written(&job, &making->launcher->status);
    return job_launch(&job, error);
}

static enum healcl_status launch_all(const struct making *making, struct healcl_error *error)
{
    if (making->wanted)
        TRY(launch_tables(making, error));
    return making->wanted & TABLE_PERMUTATION ? launch_permutation(making, error) : HEALCL_OK;
}

enum healcl_status derive_transform(struct launcher *self, const struct step *step,
                                    struct transform_tables *tables, struct healcl_error *error)
{
    struct making making = {.launcher = self, .step = step};
    bool makes_moduli;
    TRY(take_moduli(self, step, Q, &step->in[Q]->layout, &making.tables.q, &makes_moduli, error));
    making.wanted = makes_moduli ? TABLE_MODULI : 0;
    TRY(take_twiddles(&making, PSI, TABLE_TWIDDLES, &making.tables.twiddles, error));
    if (step->in[FACTORS])
        TRY(take_scales(&making, error));
    else if (step->in[N_INV])
        TRY(take_twiddles(&making, N_INV, TABLE_SCALES, &making.tables.n_inv, error));
    if (step->in[PERMUTATION])
        TRY(take_permutation(&making, error));
    *tables = making.tables;
    return launch_all(&making, error);
}

enum healcl_status derive_permutation(struct launcher *self, const struct step *step,
                                      const struct buffer **table, struct healcl_error *error)
{
    struct making making = {.launcher = self, .step = step};
    TRY(take_permutation(&making, error));
    *table = making.tables.permutation;
    return launch_all(&making, error);
}

enum healcl_status derive_inverse_permutation(struct launcher *self, const struct step *step,
                                              const struct buffer **table,
                                              struct healcl_error *error)
{
    const struct tensor *tensor = step->in[PERMUTATION];
    const struct derived_key key = {.kind = DERIVED_INVERSE_PERMUTATION, .layout = tensor->layout};
    if (derived_find(self, tensor, &key, table))
        return HEALCL_OK;
    void *made = host_permutation(self, step, true);
    if (made)
        return derived_add(self, tensor, &key, tensor->layout.shape[0] + 1, sizeof(uint32_t), made,
                           table, error);
    const struct buffer *permutation;
    TRY(derive_permutation(self, step, &permutation, error));
    (void)derived_find(self, tensor, &key, table);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- lane twiddles */

enum healcl_status derive_lane_twiddles(struct launcher *self, const struct step *step,
                                        const struct buffer *twiddles, uint32_t word_bits,
                                        const struct buffer **table, struct healcl_error *error)
{
    const struct tensor *psi = step->in[PSI], *q = step->in[Q];
    struct derived_key key = twiddle_key(self, DERIVED_LANE_TWIDDLES, psi, q);
    key.size = word_bits;
    if (derived_find_rows(self, psi, &key, table))
        return HEALCL_OK;
    const int64_t k = key.layout.shape[0], n = key.layout.shape[1];
    const int64_t words = k * (int64_t)ntt_lane_twiddles((uint64_t)n);
    void *made = host_lane_twiddles(self, step, &key.layout, word_bits);
    TRY(derived_add(self, psi, &key, words, word_bits / 8, made, table, error));
    if (made)
        return HEALCL_OK;
    struct job job;
    job_init(&job, self, step, "core/twiddles", "lane_twiddles");
    job_define_type(&job, "ELEMENT", psi->storage->dtype);
    job_add_buffer(&job, twiddles);
    JOB_ADD_LONGS(&job, n, k);
    job_add_uint(&job, word_bits);
    job_add_written(&job, *table);
    return job_launch_groups(&job, 8 * (uint64_t)self->device->info.compute_units, 1, error);
}

enum healcl_status derive_pass_twiddles(struct launcher *self, const struct step *step,
                                        const struct buffer *twiddles, int64_t beside,
                                        uint32_t word_bits, const struct buffer **table,
                                        struct healcl_error *error)
{
    const struct tensor *psi = step->in[PSI];
    struct derived_key key = twiddle_key(self, DERIVED_PASS_TWIDDLES, psi, step->in[Q]);
    key.first = beside;
    key.size = word_bits;
    if ((beside ? derived_find : derived_find_rows)(self, psi, &key, table))
        return HEALCL_OK;
    const int64_t k = key.layout.shape[0], n = key.layout.shape[1];
    struct job job;
    TRY(derived_add(self, psi, &key, k * (beside ? beside : n), word_bits / 4, NULL, table, error));
    job_init(&job, self, step, "core/twiddles", "pass_twiddles");
    job_define_type(&job, "ELEMENT", psi->storage->dtype);
    job_add_buffer(&job, twiddles);
    JOB_ADD_LONGS(&job, n, k, beside);
    job_add_uint(&job, word_bits);
    job_add_written(&job, *table);
    return job_launch_groups(&job, 8 * (uint64_t)self->device->info.compute_units,
                             self->device->tuning.local_size, error);
}

/* ---------------------------------------------------------------- CRT */

enum healcl_status derive_crt_inverses(struct launcher *self, const struct step *step, int i,
                                       const struct buffer **table, struct healcl_error *error)
{
    const struct layout *layout = &step->in[i]->layout;
    struct derived_key key = {.kind = DERIVED_CRT_INVERSES, .layout = *layout};
    if (derived_find(self, step->in[i], &key, table))
        return HEALCL_OK;
    int64_t k = layout->shape[0];
    const struct buffer *moduli;
    struct layout pairs;
    struct job job;
    TRY(derive_modulus_vector(self, step, i, &moduli, error));
    TRY(layout_init(&pairs, 2, (int64_t[]){k, k}, sizeof(struct twiddle), error));
    TRY(derived_add(self, step->in[i], &key, layout_elements(&pairs), sizeof(struct twiddle), NULL,
                    table, error));
    struct check check = {
        .step = step, .input = i, .kind = CHECK_COPRIME, .elements = pairs, .size = k};
    begin_core(&job, self, step, i, "core/crt", "crt_inverses", &pairs);
    TRY(launcher_add_check(self, &check, &job.space.key, error));
    job_add_buffer(&job, moduli);
    job_add_uint(&job, (uint32_t)k);
    job_add_written(&job, *table);
    job_add_written(&job, &self->status);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- indices */

/* Checks that all elements of input i are indices of axis value[0] of in[0]. They are in [0, size),
 * or in [-size, size) if negative ones count from the end. */
static enum healcl_status check_indices(struct launcher *self, const struct step *step, int i,
                                        struct healcl_error *error)
{
    const uint32_t axis = (uint32_t)step->value[0];
    const int64_t size = step->in[0]->layout.shape[axis];
    const bool wraps = step->value[1] != 0;
    struct layout own = layout_own_elements(&step->in[i]->layout);
    struct derived_key key = {
        .kind = DERIVED_INDEX_CHECK, .layout = own, .first = wraps ? -size : 0, .size = size};
    const struct buffer *none;
    if (derived_find(self, step->in[i], &key, &none))
        return HEALCL_OK;
    if (host_indices_in_range(self, step, i, &own, key.first, size))
        return derived_add(self, step->in[i], &key, 0, 0, NULL, &none, error);
    struct check check = {
        .step = step, .input = i, .kind = CHECK_INDEX, .elements = own, .axis = axis, .size = size};
    struct job job;
    TRY(begin_check(&job, self, "check_indices", &check, error));
    JOB_ADD_LONGS(&job, key.first, size);
    job_add_written(&job, &self->status);
    TRY(job_launch(&job, error));
    return derived_add(self, step->in[i], &key, 0, 0, NULL, &none, error);
}

enum healcl_status derive_check(struct launcher *self, const struct step *step, int i,
                                struct healcl_error *error)
{
    const struct buffer *ignored;
    switch (step_check(step, i)) {
    case CHECK_INDEX: return check_indices(self, step, i, error);
    case CHECK_PERMUTATION: return derive_permutation(self, step, &ignored, error);
    case CHECK_COPRIME: return derive_crt_inverses(self, step, i, &ignored, error);
    case CHECK_MODULUS:
        return step->in[i]->storage->scalars ? HEALCL_OK
                                             : derive_moduli(self, step, i, &ignored, error);
    case CHECK_NONE: break;
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- weights */

/* Additional axes of the key hold the storages and offsets of later digits. Their generations,
 * which only grow, are added up. */
static struct derived_key weights_key(const struct launcher *self, const struct step *step)
{
    struct derived_key key = {.kind = DERIVED_WEIGHTS,
                              .layout = step->in[1]->layout,
                              .size = step->in[0]->layout.shape[1]};
    key.q_layout.rank = (uint32_t)step->out->layout.shape[0] - 1;
    for (uint32_t i = 0; i < key.q_layout.rank; i++) {
        const struct tensor *b = step_weights(step, i + 1);
        key.q_layout.shape[i] = b->storage->id;
        key.q_layout.stride[i] = b->layout.offset;
        key.q_generation += self->storages[b->storage->id].generation;
    }
    return key;
}

enum healcl_status derive_weights(struct launcher *self, const struct step *step,
                                  const struct buffer **table, struct healcl_error *error)
{
    const struct derived_key key = weights_key(self, step);
    const size_t size = dtype_size(step->in[1]->storage->dtype);
    const int64_t k = key.layout.shape[1];
    const struct buffer *from;
    uint64_t to = 0, bytes;
    if (derived_find(self, step->in[1], &key, table))
        return HEALCL_OK;
    TRY(derived_add(self, step->in[1], &key, key.size * k, size, NULL, table, error));
    for (int64_t digit = 0; digit < step->out->layout.shape[0]; digit++, to += bytes) {
        const struct tensor *b = step_weights(step, digit);
        bytes = (uint64_t)(b->layout.shape[0] * k) * size;
        TRY(launcher_buffer(self, b->storage, &from, error));
        TRY(device_copy(self->device, from, (uint64_t)b->layout.offset * size, *table, to, bytes,
                        step->origins, error));
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- scalars of the plan */

/* Derives the moduli of all scalars at once: then an operation with a scalar modulus takes one
 * launch, as any other. The plan has checked the scalars used as moduli. Any other scalar counts as
 * 1. */
enum healcl_status derive_scalars(struct launcher *self, bool lanes, const struct buffer **table,
                                  struct healcl_error *error)
{
    const size_t count = self->plan->constants.count;
    const size_t size = lanes ? sizeof(struct scalar_lanes) : sizeof(struct modulus);
    struct buffer *kept = lanes ? &self->scalar_lanes : &self->scalar_moduli;
    *table = kept;
    if (kept->memory)
        return HEALCL_OK;
    void *entries = calloc(count, size);
    NEED_MEMORY(entries, error);
    for (size_t i = 0; i < count; i++) {
        const int64_t value = self->plan->constants.values[i];
        const struct modulus modulus = modulus_of(value < 1 ? 1 : (uint64_t)value);
        if (!lanes)
            ((struct modulus *)entries)[i] = modulus;
        for (int lane = 0; lanes && lane < LANES; lane++)
            set_lane((struct scalar_lanes *)entries + i, lane, &modulus);
    }
    enum healcl_status status =
        device_upload_memory(self->device, NULL, count * size, entries, kept, error);
    free(entries);
    return status;
}

void derived_forget_scalars(struct launcher *self)
{
    if (self->scalar_moduli.memory || self->scalar_lanes.memory)
        self->device->record_epoch++;
    device_buffer_release(self->device, &self->scalar_moduli);
    device_buffer_release(self->device, &self->scalar_lanes);
}
