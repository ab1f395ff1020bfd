/* Tables and checks that are worked out once from a tensor and kept until it is written. */
#include "kernels/derived.h"
#include "core/numbers.h"

/* A job of a kernel of cl/core.cl, made for input i's type, over a space of that shape: its first
 * argument. */
static void begin_core(struct job *job, struct launcher *self, const struct step *step, int i,
                       const char *kernel, const struct layout *shape)
{
    job_init(job, self, step, "core", kernel);
    job_define_type(job, "ELEMENT", step->in[i]->storage->dtype);
    space_init(&job->space, shape);
    space_set_operand(&job->space, 0, shape);
    job_add_space(job);
}

/* As begin_core, over the elements of input i, seen through a layout: the second argument. */
static enum healcl_status begin(struct job *job, struct launcher *self, const struct step *step,
                                int i, const char *kernel, const struct layout *layout,
                                struct healcl_error *error)
{
    begin_core(job, self, step, i, kernel, layout);
    space_simplify(&job->space);
    return job_add_input(job, step->in[i], error);
}

/* As begin, for a kernel that checks these elements. */
static enum healcl_status begin_check(struct job *job, struct launcher *self, const char *kernel,
                                      const struct check *check, struct healcl_error *error)
{
    TRY(begin(job, self, check->step, check->input, kernel, &check->elements, error));
    return launcher_add_check(self, check, &job->space.key, error);
}

/* Launches it, with the status buffer for its last argument, and then a kernel that notes the value
 * that it has found, for the message. */
static enum healcl_status launch_check(struct job *job, const struct check *check,
                                       struct healcl_error *error)
{
    struct launcher *self = job->launcher;
    struct job note;
    job_add_written(job, &self->status);
    TRY(job_launch(job, error));
    TRY(begin(&note, self, check->step, check->input, "note_value", &check->elements, error));
    note.space.key = job->space.key;
    job_add_written(&note, &self->status);
    return job_launch_groups(&note, 1, self->device->tuning.local_size, error);
}

/* ---------------------------------------------------------------- moduli */

/* The table of moduli for the elements of a layout. */
static enum healcl_status modulus_table(struct launcher *self, const struct step *step, int i,
                                        const struct layout *layout, const struct buffer **table,
                                        struct healcl_error *error)
{
    struct derived_key key = {.kind = DERIVED_MODULI, .layout = *layout};
    if (derived_find(self, step->in[i], &key, table))
        return HEALCL_OK;
    void *made = host_moduli(self, step, i, layout);
    if (made)
        return derived_add(self, step->in[i], &key, layout_elements(layout), sizeof(struct modulus),
                           made, table, error);
    struct check check = {.step = step, .input = i, .kind = CHECK_MODULUS, .elements = *layout};
    struct job job;
    TRY(begin_check(&job, self, "moduli", &check, error));
    TRY(derived_add(self, step->in[i], &key, layout_elements(layout), sizeof(struct modulus), NULL,
                    table, error));
    job_add_written(&job, *table);
    return launch_check(&job, &check, error);
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

/* A vector, of what may broadcast it along other axes. */
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

/* Fills a table of uint with one byte's value, -1 or 0. The core program of input i's type, which
 * may be longer than uint, does it: the table has an even number of elements. */
static enum healcl_status fill_table(struct launcher *self, const struct step *step, int i,
                                     const struct buffer *table, int64_t value,
                                     struct healcl_error *error)
{
    enum dtype dtype = step->in[i]->storage->dtype;
    struct layout elements = {
        .rank = 1, .shape = {(int64_t)(table->bytes / dtype_size(dtype))}, .stride = {1}};
    struct job job;
    begin_core(&job, self, step, i, "fill", &elements);
    job_add_written(&job, table);
    job_add_long(&job, value);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- twiddles */

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

enum healcl_status derive_twiddles(struct launcher *self, const struct step *step, int i,
                                   int q_input, const struct buffer **table,
                                   struct healcl_error *error)
{
    struct derived_key key = twiddle_key(self, DERIVED_TWIDDLES, step->in[i], step->in[q_input]);
    if (derived_find_rows(self, step->in[i], &key, table))
        return HEALCL_OK;
    const struct layout q_vector = last_axis(&step->in[q_input]->layout);
    void *made = host_twiddles(self, step, i, &key.layout, q_input, &q_vector);
    if (made)
        return derived_add(self, step->in[i], &key, layout_elements(&key.layout),
                           sizeof(struct twiddle), made, table, error);
    const struct buffer *moduli;
    struct job job;
    TRY(derive_modulus_vector(self, step, q_input, &moduli, error));
    TRY(begin(&job, self, step, i, "twiddles", &key.layout, error));
    TRY(derived_add(self, step->in[i], &key, layout_elements(&key.layout), sizeof(struct twiddle),
                    NULL, table, error));
    job_add_buffer(&job, moduli);
    job_add_uint(&job, log2_of((uint64_t)(layout_elements(&key.layout) / key.layout.shape[0])));
    job_add_written(&job, *table);
    return job_launch(&job, error);
}

/* The key's layout tells of q, too: where it begins, and its stride, stand for an axis. */
enum healcl_status derive_scaled_twiddles(struct launcher *self, const struct step *step, int i,
                                          int factors, int q_input, const struct buffer **table,
                                          struct healcl_error *error)
{
    const struct tensor *q = step->in[q_input];
    struct derived_key key =
        twiddle_key(self, DERIVED_SCALED_TWIDDLES, step->in[factors], step->in[i]);
    key.layout = layout_insert_axis(&key.layout, 0, q->layout.offset, q->layout.stride[0]);
    key.first = (int64_t)self->storages[q->storage->id].generation;
    key.size = q->storage->id;
    if (derived_find(self, step->in[factors], &key, table))
        return HEALCL_OK;
    const struct buffer *moduli, *twiddles;
    struct job job;
    TRY(derive_modulus_vector(self, step, q_input, &moduli, error));
    TRY(derive_twiddles(self, step, i, q_input, &twiddles, error));
    TRY(begin(&job, self, step, factors, "scaled_twiddles", &step->in[factors]->layout, error));
    TRY(derived_add(self, step->in[factors], &key, step->in[factors]->layout.shape[0],
                    sizeof(struct twiddle), NULL, table, error));
    job_add_buffer(&job, moduli);
    job_add_buffer(&job, twiddles);
    job_add_written(&job, *table);
    return job_launch(&job, error);
}

enum healcl_status derive_lane_twiddles(struct launcher *self, const struct step *step, int i,
                                        int q_input, uint32_t word_bits,
                                        const struct buffer **table, struct healcl_error *error)
{
    struct derived_key key =
        twiddle_key(self, DERIVED_LANE_TWIDDLES, step->in[i], step->in[q_input]);
    key.size = word_bits;
    if (derived_find_rows(self, step->in[i], &key, table))
        return HEALCL_OK;
    const int64_t k = key.layout.shape[0], n = key.layout.shape[1];
    const int64_t words = k * (int64_t)ntt_lane_twiddles((uint64_t)n);
    const struct layout q_vector = last_axis(&step->in[q_input]->layout);
    void *made = host_lane_twiddles(self, step, i, &key.layout, q_input, &q_vector, word_bits);
    if (made)
        return derived_add(self, step->in[i], &key, words, word_bits / 8, made, table, error);
    const struct buffer *twiddles;
    struct job job;
    TRY(derive_twiddles(self, step, i, q_input, &twiddles, error));
    TRY(derived_add(self, step->in[i], &key, words, word_bits / 8, NULL, table, error));
    job_init(&job, self, step, "core", "lane_twiddles");
    job_define_type(&job, "ELEMENT", step->in[i]->storage->dtype);
    job_add_buffer(&job, twiddles);
    JOB_ADD_LONGS(&job, n, k);
    job_add_uint(&job, word_bits);
    job_add_written(&job, *table);
    return job_launch_groups(&job, 8 * (uint64_t)self->device->info.compute_units, 1, error);
}

enum healcl_status derive_pass_twiddles(struct launcher *self, const struct step *step, int i,
                                        int q_input, int64_t beside, uint32_t word_bits,
                                        const struct buffer **table, struct healcl_error *error)
{
    struct derived_key key =
        twiddle_key(self, DERIVED_PASS_TWIDDLES, step->in[i], step->in[q_input]);
    key.first = beside;
    key.size = word_bits;
    if ((beside ? derived_find : derived_find_rows)(self, step->in[i], &key, table))
        return HEALCL_OK;
    const int64_t k = key.layout.shape[0], n = key.layout.shape[1];
    const struct buffer *twiddles;
    struct job job;
    TRY(derive_twiddles(self, step, i, q_input, &twiddles, error));
    TRY(derived_add(self, step->in[i], &key, k * (beside ? beside : n), word_bits / 4, NULL, table,
                    error));
    job_init(&job, self, step, "core", "pass_twiddles");
    job_define_type(&job, "ELEMENT", step->in[i]->storage->dtype);
    job_add_buffer(&job, twiddles);
    JOB_ADD_LONGS(&job, n, k, beside);
    job_add_uint(&job, word_bits);
    job_add_written(&job, *table);
    return job_launch_groups(&job, 8 * (uint64_t)self->device->info.compute_units,
                             self->device->tuning.local_size, error);
}

/* ---------------------------------------------------------------- permutations */

static enum healcl_status launch_permutation(struct launcher *self, const struct step *step, int i,
                                             const struct buffer *first, const struct buffer *table,
                                             struct healcl_error *error)
{
    const struct layout *layout = &step->in[i]->layout;
    struct job job;
    TRY(fill_table(self, step, i, first, -1, error));
    TRY(begin(&job, self, step, i, "permutation_first", layout, error));
    job_add_written(&job, first);
    TRY(job_launch(&job, error));

    /* Until it is found to be neither. */
    const uint32_t kinds = PERMUTATION_REVERSES_BITS | PERMUTATION_IDENTITY;
    TRY(device_write(self->device, table, (uint64_t)layout->shape[0] * sizeof kinds, sizeof kinds,
                     &kinds, error));
    struct check check = {.step = step,
                          .input = i,
                          .kind = CHECK_PERMUTATION,
                          .elements = *layout,
                          .size = layout->shape[0]};
    TRY(begin_check(&job, self, "permutation", &check, error));
    job_add_buffer(&job, first);
    job_add_written(&job, table);
    return launch_check(&job, &check, error);
}

enum healcl_status derive_permutation(struct launcher *self, const struct step *step, int i,
                                      const struct buffer **table, struct healcl_error *error)
{
    const struct layout *layout = &step->in[i]->layout;
    struct derived_key key = {.kind = DERIVED_PERMUTATION, .layout = *layout};
    if (derived_find(self, step->in[i], &key, table))
        return HEALCL_OK;
    int64_t n = layout->shape[0];
    if (n > INT32_MAX)
        REFUSE_FOR(error, LIMIT, "argument '%s': %lld entries are more than 2^31-1",
                   launcher_refuse(self, step, i), (long long)n);
    void *made = host_permutation(self, step, i, false);
    if (made)
        return derived_add(self, step->in[i], &key, n + 1, sizeof(uint32_t), made, table, error);
    struct buffer first = {0};
    TRY(derived_add(self, step->in[i], &key, n + 1, sizeof(uint32_t), NULL, table, error));
    TRY(device_buffer_acquire(self->device, (uint64_t)(n + n % 2) * sizeof(uint32_t), false, &first,
                              error));
    enum healcl_status status = launch_permutation(self, step, i, &first, *table, error);
    device_buffer_release(self->device, &first);
    return status;
}

enum healcl_status derive_inverse_permutation(struct launcher *self, const struct step *step, int i,
                                              const struct buffer **table,
                                              struct healcl_error *error)
{
    const struct layout *layout = &step->in[i]->layout;
    struct derived_key key = {.kind = DERIVED_INVERSE_PERMUTATION, .layout = *layout};
    if (derived_find(self, step->in[i], &key, table))
        return HEALCL_OK;
    const struct buffer *permutation;
    struct job job;
    int64_t n = layout->shape[0];
    void *made = host_permutation(self, step, i, true);
    if (made)
        return derived_add(self, step->in[i], &key, n + 1, sizeof(uint32_t), made, table, error);
    TRY(derive_permutation(self, step, i, &permutation, error));
    TRY(derived_add(self, step->in[i], &key, n + 2 - n % 2, sizeof(uint32_t), NULL, table, error));
    /* Something else than a permutation, which has been reported, leaves entries out: they are 0.
     */
    TRY(fill_table(self, step, i, *table, 0, error));
    begin_core(&job, self, step, i, "inverse_permutation", layout);
    job_add_buffer(&job, permutation);
    job_add_written(&job, *table);
    return job_launch(&job, error);
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
    void *made = host_crt_inverses(self, step, i);
    if (made)
        return derived_add(self, step->in[i], &key, k * k, sizeof(struct twiddle), made, table,
                           error);
    const struct buffer *moduli;
    struct layout pairs;
    struct job job;
    TRY(derive_modulus_vector(self, step, i, &moduli, error));
    TRY(layout_init(&pairs, 2, (int64_t[]){k, k}, sizeof(struct twiddle), error));
    TRY(derived_add(self, step->in[i], &key, layout_elements(&pairs), sizeof(struct twiddle), NULL,
                    table, error));
    struct check check = {
        .step = step, .input = i, .kind = CHECK_COPRIME, .elements = pairs, .size = k};
    begin_core(&job, self, step, i, "crt_inverses", &pairs);
    TRY(launcher_add_check(self, &check, &job.space.key, error));
    job_add_buffer(&job, moduli);
    job_add_uint(&job, (uint32_t)k);
    job_add_written(&job, *table);
    job_add_written(&job, &self->status);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- indices */

enum healcl_status derive_index_check(struct launcher *self, const struct step *step, int i,
                                      uint32_t axis, int64_t size, bool wraps,
                                      struct healcl_error *error)
{
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
    TRY(launch_check(&job, &check, error));
    return derived_add(self, step->in[i], &key, 0, 0, NULL, &none, error);
}
