/* Tables and checks that are derived once from a tensor, and kept until it is written. */
#include "kernels/derived.h"
#include "core/numbers.h"

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
    void *made = host_moduli(self, step, i, layout);
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

/* The last axis of a view that may broadcast a vector along other axes. */
static struct layout last_axis(const struct layout *layout)
{
    struct layout vector = *layout;
    while (vector.rank > 1)
        vector = layout_drop_axis(&vector, 0);
    return vector;
}

enum healcl_status derive_modulus_vector(struct launcher *self, const struct step *step, int i,
                                         const struct buffer **table, struct healcl_error *error)
{
    const struct layout vector = last_axis(&step->in[i]->layout);
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
        return derived_add(self, step->in[i], &key, moduli->period, SCALAR_LANES_BYTES, made,
                           &moduli->lanes, error);
    struct layout vectors;
    struct job job;
    TRY(layout_init(&vectors, 1, (int64_t[]){moduli->period * LANES}, 1, error));
    TRY(derived_add(self, step->in[i], &key, moduli->period, SCALAR_LANES_BYTES, NULL,
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
