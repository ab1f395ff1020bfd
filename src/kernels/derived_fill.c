/* Filling derived tables, on the host or by launches. */
#include <stdlib.h>

#include "kernels/derived.h"
#include "kernels/variant.h"

/* What a launch fills: one table, or several tables of a transform or of a sum's permutation. */
struct fill {
    const struct step *step;
    const struct template *template;
    const struct table *table; /* the one table */
    int slot;                  /* of it */
    uint32_t wanted; /* of several tables, those that the launch computes: bits TABLE_... */
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
    space_set_operand(&job->space, 0, shape); /* these kernels have no output with a layout */
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
        space_insert_axis(&job->space, 0, 1);
    job_add_input(job, tensor);
    return launcher_add_check(self, check, &job->space.key, error);
}

/* Fills a table of struct modulus. Reports elements below 1. */
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

/* Repeats the moduli in the lanes of vectors: see lane_moduli in cl/modular/vectors.cl. Each
 * element of the space is a lane. */
static enum healcl_status choose_lane_moduli(struct launcher *self, const struct fill *fill,
                                             struct healcl_error *error)
{
    struct layout lanes;
    struct job job;
    TRY(layout_init(&lanes, 1, (int64_t[]){fill->table->count * LANES}, 1, error));
    begin(&job, self, fill->step, "vectors", "lane_moduli");
    job_define_vectors(&job);
    job_define_type(&job, "ELEMENT", fill->step->in[fill->table->inputs[0]]->storage->dtype);
    space_init(&job.space, &lanes);
    job_add_space(&job);
    job_add_buffer(&job, fill->table->computed_from);
    job_add_long(&job, layout_elements(&fill->table->layout)); /* moduli */
    job_add_written(&job, fill->slot);
    return job_launch(&job, error);
}

/* Puts twiddles [k,n] in another order, for cl/ntt/rows.cl or cl/ntt/registers.cl. The kernels'
 * parameters: twiddles, n, k, for passes `beside`, word_bits, table. They loop over all elements,
 * so a few work-groups for each compute unit suffice. */
static enum healcl_status choose_twiddles(struct launcher *self, const struct fill *fill,
                                          struct healcl_error *error)
{
    enum { GROUPS_OF_UNIT = 8 };
    const struct table *table = fill->table;
    const bool are_lanes = table->key.kind == DERIVED_LANE_TWIDDLES;
    const int64_t k = table->layout.shape[0], n = table->layout.shape[1];
    struct job job;
    begin(&job, self, fill->step, "core/twiddles", are_lanes ? "lane_twiddles" : "pass_twiddles");
    job_define_type(&job, "ELEMENT", fill->step->in[PSI]->storage->dtype);
    job_add_buffer(&job, table->computed_from);
    JOB_ADD_LONGS(&job, n, k);
    if (!are_lanes)
        job_add_long(&job, table->key.beside);
    job_add_uint(&job, (uint32_t)table->key.word_bits);
    job_add_written(&job, fill->slot);
    return job_launch_groups(&job, GROUPS_OF_UNIT * (uint64_t)self->device->info.compute_units,
                             are_lanes ? 1 : self->device->tuning.local_size, error);
}

/* Computes the inverse of each modulus modulo each other one: [k,k]. Reports moduli that are not
 * coprime. */
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
    job_add_buffer(&job, fill->table->computed_from);
    job_add_uint(&job, (uint32_t)pairs->shape[0]); /* k */
    job_add_written(&job, fill->slot);
    job_add_written(&job, SLOT_STATUS);
    return job_launch(&job, error);
}

/* Adds a launch that reports indices out of range. It fills no table. */
static enum healcl_status choose_index_check(struct launcher *self, const struct fill *fill,
                                             struct healcl_error *error)
{
    const struct derived_key *key = &fill->table->key;
    struct check check = {.step = fill->step,
                          .input = fill->table->inputs[0],
                          .kind = CHECK_INDEX,
                          .elements = fill->table->layout,
                          .axis = (uint32_t)fill->step->value[0],
                          .size = key->index_end};
    struct job job;
    TRY(begin_check(&job, self, "check_indices", &check, error));
    JOB_ADD_LONGS(&job, key->index_min, key->index_end);
    job_add_written(&job, SLOT_STATUS);
    return job_launch(&job, error);
}

/* Fills a table [terms,k] with the weights of all digits, one digit after the other. Each digit's
 * weights [s,k,n] are constant along n, and otherwise contiguous. */
static enum healcl_status copy_weights(struct launcher *self, const struct step *step,
                                       const struct table *table, const struct buffer *to,
                                       struct healcl_error *error)
{
    const int64_t digits = step->out->layout.shape[0], k = table->layout.shape[1];
    uint64_t to_byte = 0, bytes;
    for (int64_t digit = 0; digit < digits; digit++, to_byte += bytes) {
        const struct tensor *b = step_weights(step, digit);
        const uint64_t from_byte = (uint64_t)b->layout.offset * table->element_bytes;
        const struct buffer *from;
        bytes = (uint64_t)(b->layout.shape[0] * k) * table->element_bytes;
        TRY(launcher_buffer(self, b->storage, &from, error));
        TRY(device_copy(self->device, from, from_byte, to, to_byte, bytes, step->origins, error));
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- tables of transforms */

static bool has_twiddles(const struct template *template)
{
    for (size_t i = 0; i < template->table_count; i++)
        if (template->tables[i].key.kind == DERIVED_TWIDDLES)
            return true;
    return false;
}

/* The bits of a table that choose_tables can compute; 0: it cannot. A template with moduli alone is
 * a check: there the other inputs may belong to another call, and must not be read. */
static uint32_t transform_bits(const struct template *template, const struct table *table)
{
    switch (table->key.kind) {
    case DERIVED_MODULI: return has_twiddles(template) ? TABLE_MODULI : 0;
    case DERIVED_TWIDDLES: return table->inputs[0] == PSI ? TABLE_TWIDDLES : TABLE_SCALES;
    case DERIVED_SCALED_TWIDDLES:
        return TABLE_FACTORS | (table->inputs[1] == N_INV ? TABLE_SCALES : 0);
    case DERIVED_PERMUTATION:
    case DERIVED_INVERSE_PERMUTATION: return TABLE_PERMUTATION;
    default: return 0;
    }
}

/* The slot of the step's table that a bit names; SLOT_NONE: the step has none. One bit names both a
 * permutation and its inverse. */
static int transform_slot(const struct fill *fill, uint32_t bit, bool is_inverse)
{
    for (size_t i = 0; i < fill->template->table_count; i++) {
        const struct table *table = &fill->template->tables[i];
        if (transform_bits(fill->template, table) & bit &&
            (table->key.kind == DERIVED_INVERSE_PERMUTATION) == is_inverse)
            return SLOT_TABLE + (int)i;
    }
    return SLOT_NONE;
}

/* Adds a table as output if the launch computes it. Other tables are inputs. If the step has none,
 * the kernel gets the status buffer as a stand-in, which it does not read. */
static void add_table(struct job *job, const struct fill *fill, uint32_t bit, bool is_inverse)
{
    const int slot = transform_slot(fill, bit, is_inverse);
    if (fill->wanted & bit)
        job_add_written(job, slot);
    else
        job_add_buffer(job, slot == SLOT_NONE ? SLOT_STATUS : slot);
}

/* Adds q, psi, n_inv and factors as operands of the space [k,n]. A tensor [k] has one element for
 * each row. In place of a tensor that the step does not have, the kernel gets a stand-in, which it
 * does not read. */
static void add_transform_tensors(struct job *job, const struct fill *fill,
                                  const struct tensor *stand_in, const struct layout *shape)
{
    static const int inputs[SPACE_OPERANDS] = {Q, PSI, N_INV, FACTORS};
    const bool only_permutation = fill->wanted == TABLE_PERMUTATION;
    for (uint32_t k = 0; k < SPACE_OPERANDS; k++) {
        const struct tensor *tensor = only_permutation ? NULL : fill->step->in[inputs[k]];
        struct layout view = tensor ? tensor->layout : *shape;
        if (view.rank == 1)
            view = layout_insert_axis(&view, 1, shape->shape[1], 0);
        space_set_operand(&job->space, k, &view);
        job_add_input(job, tensor ? tensor : stand_in);
    }
}

/* The elements of a row that a work-item of transform_tables computes. More of them share the
 * computation of a modulus, but leave fewer work-items. */
static uint64_t table_elements_of_item(const struct healcl_device *device, uint64_t row)
{
    enum { SHARE_MODULUS = 8 };
    const uint64_t tuned = device->tuning.elements_per_item, limit = device->info.loop_limit;
    uint64_t elements = row / device->tuning.local_size;
    uint64_t most = tuned > SHARE_MODULUS ? tuned : SHARE_MODULUS;
    if (limit > 0 && limit < most)
        most = limit;
    if (elements > most)
        elements = most;
    return elements < 1 ? 1 : elements;
}

/* Computes the wanted tables in one launch. Of a permutation it only prepares the tables, which
 * choose_permutation fills. */
static enum healcl_status choose_tables(struct launcher *self, const struct fill *fill,
                                        struct healcl_error *error)
{
    const struct step *step = fill->step;
    const bool only_permutation = fill->wanted == TABLE_PERMUTATION;
    const int typed_input = only_permutation ? PERMUTATION : Q; /* gives the kernel's dtype */
    const size_t local_size = self->device->tuning.local_size;
    struct layout shape = step->in[only_permutation ? PERMUTATION : PSI]->layout;
    if (only_permutation) /* as [1,n] */
        shape = layout_insert_axis(&shape, 0, 1, 0);
    const uint64_t rows = (uint64_t)shape.shape[0], n = (uint64_t)shape.shape[1];
    const struct check check = {
        .step = step, .input = Q, .kind = CHECK_MODULUS, .elements = step->in[typed_input]->layout};
    struct job job;
    begin_core(&job, self, step, typed_input, "core/transform", "transform_tables", &shape);
    job_add_uint(&job, fill->wanted);
    add_transform_tensors(&job, fill, step->in[typed_input], &shape);
    if (fill->wanted & TABLE_MODULI)
        TRY(launcher_add_check(self, &check, &job.space.key, error));
    /* The last argument: whether it is the inverse permutation. */
    add_table(&job, fill, TABLE_MODULI, false);
    add_table(&job, fill, TABLE_TWIDDLES, false);
    add_table(&job, fill, TABLE_SCALES | TABLE_FACTORS, false);
    add_table(&job, fill, TABLE_PERMUTATION, false);
    add_table(&job, fill, TABLE_PERMUTATION, true /* the inverse */);
    job_add_written(&job, SLOT_STATUS);
    job.rounds = job.space.elements_per_item = table_elements_of_item(self->device, n);
    const uint64_t block = job.rounds * local_size; /* of a row, for a work-group */
    return job_launch_groups(&job, rows * ((n + block - 1) / block), local_size, error);
}

/* Fills a permutation's table and its inverse, and reports repeated entries. To find these, the
 * kernel needs the empty inverse that choose_tables has prepared. */
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
    add_table(&job, fill, TABLE_PERMUTATION, false);
    add_table(&job, fill, TABLE_PERMUTATION, true /* the inverse */);
    job_add_written(&job, SLOT_STATUS);
    return job_launch(&job, error);
}

/* ---------------------------------------------------------------- filling */

/* Gives table i of a run memory, and notes that it is filled. contents: its elements, which are
 * freed; NULL if launches write them later. A launcher that lists launches uses no memory, but one
 * that only binds keeps tables with contents. */
static enum healcl_status acquire_table(struct launcher *self, const struct template_run *run,
                                        size_t i, void *contents, uint64_t bytes,
                                        struct healcl_error *error)
{
    struct derived *derived = run->tables[i];
    enum healcl_status status = HEALCL_OK;
    derived_release(self, derived);
    if (contents && (!self->list || launcher_only_binds(self)))
        status = device_upload_memory(self->device, NULL, bytes, contents, &derived->table, error);
    else if (bytes > 0 && !self->list)
        status = device_buffer_acquire(self->device, bytes, false, &derived->table, error);
    free(contents);
    if (status == HEALCL_OK)
        derived_filled(self, derived, derived_version(self, run->step, &run->template->tables[i]));
    return status;
}

/* Adds scalars of the plan that a table does not have yet: calls bring new ones, a few at a time.
 * If the table has no room for them, a new one of twice the size replaces it. */
static enum healcl_status add_scalars(struct launcher *self, const struct template_run *run,
                                      size_t i, struct healcl_error *error)
{
    struct derived *derived = run->tables[i];
    const struct table *table = &run->template->tables[i];
    const size_t size = table->element_bytes, count = self->plan->constants.count;
    const size_t room = derived->table.bytes / size;
    const bool has_room = derived->filled_version > 0 && count <= room;
    const size_t first_new = has_room ? derived->scalar_count : 0;
    const bool replaces = first_new == 0, is_first_table = room == 0;
    const size_t size_of_new = is_first_table ? count : 2 * count;
    const size_t new_count = replaces ? size_of_new : count - first_new;
    const uint64_t bytes = new_count * size;
    void *scalars = derived_scalars(self->plan, table->key.kind, first_new, new_count);
    NEED_MEMORY(scalars, error);
    derived->scalar_count = count;
    if (replaces)
        return acquire_table(self, run, i, scalars, bytes, error);
    const enum healcl_status status =
        device_write(self->device, &derived->table, first_new * size, bytes, scalars, error);
    free(scalars);
    return status;
}

/* Chooses launches that fill tables, and enqueues them. They form a template that is used once. It
 * shares the slots of the run's tables. */
static enum healcl_status run_fill(struct launcher *self, const struct template_run *run,
                                   fill_function *choose_launches, const struct fill *fill,
                                   struct healcl_error *error)
{
    struct template filling;
    struct template_run filling_run = *run;
    template_begin(self, run->step, &filling, run->template->tables);
    filling.table_count = run->template->table_count;
    enum healcl_status status = choose_launches(self, fill, error);
    template_end(self);
    filling_run.template = &filling;
    THEN(status, template_run(self, &filling_run, NULL, error));
    template_release(self, &filling);
    return status;
}

/* Fills a table on the device. The tables that it is computed from are filled already. */
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
    if (kind == DERIVED_WEIGHTS && self->list)
        return HEALCL_OK;
    if (kind == DERIVED_WEIGHTS)
        return copy_weights(self, run->step, fill.table, &run->tables[i]->table, error);
    return run_fill(self, run, functions[kind], &fill, error);
}

/* Computes tables of a transform by one launch, and checks its permutation by another one. */
static enum healcl_status fill_transform(struct launcher *self, struct template_run *run,
                                         struct fill *fill, struct healcl_error *error)
{
    const bool has_permutation = fill->wanted & TABLE_PERMUTATION;
    if (has_permutation) { /* an inverse from the host lacks the scratch memory behind it */
        const int slot = transform_slot(fill, TABLE_PERMUTATION, true);
        const size_t inverse = (size_t)(slot - SLOT_TABLE);
        const struct table *table = &run->template->tables[inverse];
        const uint64_t bytes = (uint64_t)table->count * table->element_bytes;
        TRY(acquire_table(self, run, inverse, NULL, bytes, error));
    }
    if (fill->wanted)
        TRY(run_fill(self, run, choose_tables, fill, error));
    return has_permutation ? run_fill(self, run, choose_permutation, fill, error) : HEALCL_OK;
}

/* Whether a table is filled from this version. A table of the plan's scalars must also have the
 * step's modulus, which calls may have added to the plan. */
static bool is_filled(const struct step *step, const struct table *table,
                      const struct derived *derived, uint64_t version)
{
    if (derived->filled_version != version)
        return false;
    const bool has_scalars = table->inputs[0] == NO_INPUT;
    const struct tensor *modulus = step->in[step_traits[step->kind].moduli];
    return !has_scalars || (uint64_t)modulus->layout.offset < derived->scalar_count;
}

/* Sets *is_stale if table i must be filled: a storage that it is derived from was written. A stale
 * table is looked up again first, because a longer one may have been filled since. */
static enum healcl_status find_stale(struct launcher *self, struct template_run *run, size_t i,
                                     bool *is_stale, struct healcl_error *error)
{
    const struct table *table = &run->template->tables[i];
    const uint64_t version = derived_version(self, run->step, table);
    *is_stale = false;
    if (is_filled(run->step, table, run->tables[i], version) || table->only_for_filling)
        return HEALCL_OK;
    TRY(derived_find(self, run->step, table, &run->tables[i], error));
    *is_stale = !is_filled(run->step, table, run->tables[i], version);
    return HEALCL_OK;
}

/* Fills stale tables: on the host if it has copies of their tensors, which saves launches. One
 * launch fills all tables of a transform that remain. Others get a launch each, after the tables
 * that they are computed from: these come before them in the template. */
static enum healcl_status fill_stale(struct launcher *self, struct template_run *run,
                                     const bool is_stale[TABLES_MAX], struct healcl_error *error)
{
    const struct template *template = run->template;
    bool must_wait[TABLES_MAX] = {false}; /* until the tables of a transform are filled */
    struct fill fill = {.step = run->step, .template = template};
    for (size_t i = 0; i < template->table_count; i++) {
        const struct table *table = &template->tables[i];
        const bool has_scalars = table->inputs[0] == NO_INPUT;
        uint64_t bytes;
        if (is_stale[i] && has_scalars)
            TRY(add_scalars(self, run, i, error));
        if (!is_stale[i] || has_scalars)
            continue;
        void *contents = derived_on_host(self, run->step, table, &bytes);
        const bool is_filled_by_host = contents != NULL;
        const uint32_t bits = is_filled_by_host ? 0 : transform_bits(template, table);
        fill.wanted |= bits;
        TRY(acquire_table(self, run, i, contents, bytes, error));
        const bool needs_own_launch = !is_filled_by_host && bits == 0;
        must_wait[i] = needs_own_launch && fill.wanted != 0;
        if (needs_own_launch && !must_wait[i])
            TRY(fill_on_device(self, run, i, error));
    }
    TRY(fill_transform(self, run, &fill, error));
    for (size_t i = 0; i < template->table_count; i++)
        if (must_wait[i])
            TRY(fill_on_device(self, run, i, error));
    return HEALCL_OK;
}

/* Fills the tables of a run whose storages were written since they were filled. */
enum healcl_status derived_fill(struct launcher *self, struct template_run *run,
                                struct healcl_error *error)
{
    const size_t count = run->template->table_count;
    bool is_stale[TABLES_MAX] = {false}, any_is_stale = false;
    for (size_t i = 0; i < count; i++) {
        TRY(find_stale(self, run, i, &is_stale[i], error));
        any_is_stale |= is_stale[i];
    }
    if (!any_is_stale)
        return HEALCL_OK;
    const enum healcl_status status = fill_stale(self, run, is_stale, error);
    /* Tables count as filled before their launches run. After an error that may be wrong. */
    for (size_t i = 0; status != HEALCL_OK && i < count; i++)
        derived_release(self, run->tables[i]);
    return status;
}
