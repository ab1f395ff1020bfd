/* Filling derived tables, on the host or by launches. */
#include <stdlib.h>

#include "kernels/derived.h"
#include "kernels/variant.h"

/* What is filled: a table, or those of a transform, or of a sum's permutation. */
struct fill {
    const struct step *step;
    const struct table *table;
    int slot; /* of the table */
    struct transform_tables tables;
    int inverse;     /* slot of the inverse permutation */
    uint32_t wanted; /* of a transform's tables, those that a launch computes: bits TABLE_... */
};

/* Adds the launches that fill to the template that is being made. */
typedef enum healcl_status fill_function(struct launcher *self, const struct fill *fill,
                                         struct healcl_error *error);

/* Begins a job that prepares a step. It is single if the tuning asks for that in the step's family.
 */
static void begin(struct job *job, struct launcher *self, const struct step *step,
                  const char *program, const char *kernel)
{
    const struct family *family = family_of(step->kind);
    const struct healcl_device *device = self->device;
    job_init(job, self, step, program, kernel);
    job->single = family && device->tuning.styles[family->preference] == STYLE_SINGLE &&
                  device->info.loop_limit == 0;
}

/* Begins a job of a kernel of cl/core for input i's dtype. Its first argument is a space of this
 * shape. */
static void begin_core(struct job *job, struct launcher *self, const struct step *step, int i,
                       const char *program, const char *kernel, const struct layout *shape)
{
    begin(job, self, step, program, kernel);
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

static enum healcl_status choose_moduli(struct launcher *self, const struct fill *fill,
                                        struct healcl_error *error)
{
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
static enum healcl_status choose_lane_moduli(struct launcher *self, const struct fill *fill,
                                             struct healcl_error *error)
{
    struct layout vectors;
    struct job job;
    TRY(layout_init(&vectors, 1, (int64_t[]){fill->table->count * LANES}, 1, error));
    begin(&job, self, fill->step, "vectors", "lane_moduli");
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
static enum healcl_status choose_twiddles(struct launcher *self, const struct fill *fill,
                                          struct healcl_error *error)
{
    const struct table *table = fill->table;
    const bool are_lanes = table->key.kind == DERIVED_LANE_TWIDDLES;
    struct job job;
    begin(&job, self, fill->step, "core/twiddles", are_lanes ? "lane_twiddles" : "pass_twiddles");
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

static enum healcl_status choose_crt_inverses(struct launcher *self, const struct fill *fill,
                                              struct healcl_error *error)
{
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

static enum healcl_status choose_index_check(struct launcher *self, const struct fill *fill,
                                             struct healcl_error *error)
{
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

/* A table that the launch does not compute may be missing. It needs a stand-in. */
static void add_table(struct job *job, const struct fill *fill, uint32_t bit, int slot)
{
    if (fill->wanted & bit)
        job_add_written(job, slot);
    else
        job_add_buffer(job, slot == SLOT_NONE ? SLOT_STATUS : slot);
}

/* Computes tables of single elements. Prepares those that launch_permutation completes. */
static enum healcl_status choose_tables(struct launcher *self, const struct fill *fill,
                                        struct healcl_error *error)
{
    static const int operands[] = {Q, PSI, N_INV, FACTORS};
    enum { PER_ITEM = 8 }; /* elements that share one computation of a modulus */
    const bool is_transform = fill->wanted != TABLE_PERMUTATION;
    const struct tensor *const *in = fill->step->in;
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
    begin_core(&job, self, fill->step, typed, "core/transform", "transform_tables", &shape);
    job_add_uint(&job, fill->wanted);
    for (uint32_t o = 0; o < sizeof operands / sizeof *operands; o++) {
        const struct tensor *operand = is_transform ? in[operands[o]] : NULL;
        struct layout view = operand ? operand->layout : shape;
        if (view.rank == 1)
            view = layout_insert_axis(&view, 1, n, 0);
        space_set_operand(&job.space, o, &view);
        job_add_input(&job, operand ? operand : in[typed]);
    }
    struct check check = {.step = fill->step, .input = Q, .kind = CHECK_MODULUS};
    check.elements = in[typed]->layout;
    if (fill->wanted & TABLE_MODULI)
        TRY(launcher_add_check(self, &check, &job.space.key, error));
    add_table(&job, fill, TABLE_MODULI, fill->tables.q);
    add_table(&job, fill, TABLE_TWIDDLES, fill->tables.twiddles);
    add_table(&job, fill, TABLE_SCALES, fill->tables.n_inv);
    add_table(&job, fill, TABLE_PERMUTATION, fill->tables.permutation);
    add_table(&job, fill, TABLE_PERMUTATION, fill->inverse);
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
static enum healcl_status choose_permutation(struct launcher *self, const struct fill *fill,
                                             struct healcl_error *error)
{
    const struct layout *layout = &fill->step->in[PERMUTATION]->layout;
    const struct check check = {.step = fill->step,
                                .input = PERMUTATION,
                                .kind = CHECK_PERMUTATION,
                                .elements = *layout,
                                .size = layout->shape[0]};
    struct job job;
    TRY(begin_check(&job, self, "permutation", &check, error));
    job_add_written(&job, fill->tables.permutation);
    job_add_written(&job, fill->inverse);
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
    return status;
}

/* Adds the scalars that a table of them does not have. They are few at a time, so a full table is
 * replaced by one of twice its size. */
static enum healcl_status add_scalars(struct launcher *self, const struct template_run *run,
                                      size_t i, struct healcl_error *error)
{
    struct derived *derived = run->tables[i];
    const struct table *table = &run->template->tables[i];
    const size_t count = self->plan->constants.count, room = derived->table.bytes / table->size;
    const size_t first = derived->version > 0 && count <= room ? derived->scalars : 0;
    const size_t made_count = first > 0 ? count - first : room > 0 ? 2 * count : count;
    const uint64_t bytes = made_count * table->size;
    void *made = derived_scalars(self->plan, table->key.kind, first, made_count);
    NEED_MEMORY(made, error);
    derived->scalars = count;
    if (first == 0)
        return acquire_table(self, run, i, made, bytes, error);
    const enum healcl_status status =
        device_write(self->device, &derived->table, first * table->size, bytes, made, error);
    free(made);
    return status;
}

/* Chooses launches that fill tables, and enqueues them. */
static enum healcl_status run_fill(struct launcher *self, const struct template_run *run,
                                   fill_function *function, const struct fill *fill,
                                   struct healcl_error *error)
{
    struct template made;
    struct template_run own = *run;
    template_begin(self, run->step, &made, run->template->tables);
    made.table_count = run->template->table_count;
    enum healcl_status status = function(self, fill, error);
    template_end(self);
    own.template = &made;
    if (status == HEALCL_OK)
        status = template_run(self, &own, NULL, error);
    template_release(self, &made);
    return status;
}

/* Fills a table on the device, after all tables that it is computed from. */
static enum healcl_status fill_on_device(struct launcher *self, struct template_run *run, size_t i,
                                         struct healcl_error *error)
{
    static fill_function *const functions[DERIVED_WEIGHTS] = {
        [DERIVED_MODULI] = choose_moduli,
        [DERIVED_LANE_MODULI] = choose_lane_moduli,
        [DERIVED_LANE_TWIDDLES] = choose_twiddles,
        [DERIVED_PASS_TWIDDLES] = choose_twiddles,
        [DERIVED_CRT_INVERSES] = choose_crt_inverses,
        [DERIVED_INDEX_CHECK] = choose_index_check};
    const struct fill fill = {
        .step = run->step, .table = &run->template->tables[i], .slot = SLOT_TABLE + (int)i};
    const enum derived_kind kind = fill.table->key.kind;
    if (kind == DERIVED_INDEX_CHECK && derived_indices_in_range(self, run->step, fill.table))
        return HEALCL_OK;
    if (kind == DERIVED_WEIGHTS)
        return self->list
                   ? HEALCL_OK
                   : copy_weights(self, run->step, fill.table, &run->tables[i]->table, error);
    return run_fill(self, run, functions[kind], &fill, error);
}

/* Notes where a launch finds the tables of a transform. */
static void note_slot(struct fill *fill, const struct template *template, size_t i)
{
    const struct table *table = &template->tables[i];
    const int slot = SLOT_TABLE + (int)i;
    switch (transform_bits(template, table)) {
    case 0: break;
    case TABLE_MODULI: fill->tables.q = slot; break;
    case TABLE_TWIDDLES: fill->tables.twiddles = slot; break;
    case TABLE_PERMUTATION:
        if (table->key.kind == DERIVED_PERMUTATION)
            fill->tables.permutation = slot;
        else
            fill->inverse = slot;
        break;
    default: fill->tables.n_inv = slot;
    }
}

/* Computes tables of a transform by one launch, and checks its permutation by another one. */
static enum healcl_status fill_transform(struct launcher *self, struct template_run *run,
                                         struct fill *fill, struct healcl_error *error)
{
    if (fill->wanted & TABLE_PERMUTATION) { /* the host's table would be too small */
        const size_t inverse = (size_t)(fill->inverse - SLOT_TABLE);
        const struct table *table = &run->template->tables[inverse];
        TRY(acquire_table(self, run, inverse, NULL, (uint64_t)table->count * table->size, error));
    }
    if (fill->wanted)
        TRY(run_fill(self, run, choose_tables, fill, error));
    return fill->wanted & TABLE_PERMUTATION ? run_fill(self, run, choose_permutation, fill, error)
                                            : HEALCL_OK;
}

/* Whether a table is filled, and has a modulus that is a scalar. */
static bool is_filled(const struct step *step, const struct table *table,
                      const struct derived *derived, uint64_t version)
{
    const bool is_scalar = table->inputs[0] == NO_INPUT;
    return derived->version == version &&
           (!is_scalar ||
            (uint64_t)step->in[step_traits[step->kind].moduli]->layout.offset < derived->scalars);
}

/* Finds a table again: another one of more rows may have been filled. */
static enum healcl_status find_stale(struct launcher *self, struct template_run *run, size_t i,
                                     bool *is_stale, struct healcl_error *error)
{
    const struct table *table = &run->template->tables[i];
    const uint64_t version = derived_version(self, run->step, table) + 1;
    *is_stale = false;
    if (is_filled(run->step, table, run->tables[i], version) || table->is_spare)
        return HEALCL_OK;
    TRY(derived_find(self, run->step, table, &run->tables[i], error));
    *is_stale = !is_filled(run->step, table, run->tables[i], version);
    return HEALCL_OK;
}

static enum healcl_status fill_stale(struct launcher *self, struct template_run *run,
                                     bool is_stale[TABLES_MAX], struct healcl_error *error)
{
    const struct template *template = run->template;
    struct fill fill = {.step = run->step,
                        .tables = {SLOT_NONE, SLOT_NONE, SLOT_NONE, SLOT_NONE},
                        .inverse = SLOT_NONE};
    for (size_t i = 0; i < template->table_count; i++) {
        const struct table *table = &template->tables[i];
        uint64_t bytes;
        note_slot(&fill, template, i);
        if (!is_stale[i])
            continue;
        if (table->inputs[0] == NO_INPUT) {
            is_stale[i] = false;
            TRY(add_scalars(self, run, i, error));
            continue;
        }
        void *made = derived_on_host(self, run->step, table, &bytes);
        const uint32_t bits = made ? 0 : transform_bits(template, table);
        is_stale[i] = !made && bits == 0;
        fill.wanted |= bits;
        TRY(acquire_table(self, run, i, made, bytes, error));
        if (is_stale[i] && fill.wanted == 0) {
            is_stale[i] = false;
            TRY(fill_on_device(self, run, i, error));
        }
    }
    TRY(fill_transform(self, run, &fill, error));
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
