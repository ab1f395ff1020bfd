/* Choosing templates for steps, and running them. */
#include "kernels/launcher.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/numbers.h"
#include "kernels/derived.h"
#include "kernels/variant.h"

enum {
    KERNELS_MAX =
        4096, /* kernel objects of bound steps: drivers have memory for a limited number */
    BYTES_MAX = 64 << 20 /* of templates */
};

enum { SCALARS_MAX = 3 /* inputs of a step that are scalars */ };

/* What a bound step has of its own. The arguments of kernel objects stay set between its runs. */
struct kept {
    uint64_t epoch; /* of the derived tables */
    struct derived *tables[TABLES_MAX];
    /* Of a cached call, which has others in its next run. */
    const struct storage *storages[STEP_OPERANDS];
    int64_t scalars[SCALARS_MAX][2]; /* values and indices */
    uint64_t scratch[SCRATCH_MAX];   /* serials */
    size_t count;
    struct kernel_object objects[]; /* by launch */
};

/* A step of the plan that has run, or of a cached call. */
struct bound_step {
    struct template *template; /* NULL: it has not run, or must be chosen again */
    struct kept *kept;         /* from the second run on; or NULL */
    uint64_t facts;            /* at that time */
    uint64_t call;             /* step.call */
};

/* ---------------------------------------------------------------- bound steps */

static void template_free(struct launcher *self, struct template *template)
{
    template_release(self, template);
    free(template);
}

static void drop_kept(struct launcher *self, struct bound_step *bound)
{
    if (!bound->kept)
        return;
    self->templates.kernels -= bound->kept->count;
    for (size_t i = 0; i < bound->kept->count; i++)
        if (bound->kept->objects[i].id)
            (void)self->device->cl->clReleaseKernel(bound->kept->objects[i].id);
    free(bound->kept);
    bound->kept = NULL;
}

static void forget_step(struct launcher *self, struct bound_step *bound)
{
    drop_kept(self, bound);
    if (bound->template && bound->template->key_words == 0)
        template_free(self, bound->template);
    bound->template = NULL;
}

static void forget_all(struct launcher *self)
{
    struct templates *templates = &self->templates;
    for (size_t i = 0; i < templates->bound_count; i++)
        forget_step(self, &templates->bound[i]);
    for (size_t i = 0; templates->buckets && i < TEMPLATE_BUCKETS; i++)
        while (templates->buckets[i]) {
            struct template *template = templates->buckets[i];
            templates->buckets[i] = template->next;
            template_free(self, template);
        }
    templates->bytes = 0;
    templates->epoch = self->device->choices_epoch;
}

static void bind(struct templates *templates, size_t count)
{
    if (!templates->bound)
        templates->bound = calloc(count, sizeof(struct bound_step));
    templates->bound_count = templates->bound ? count : 0;
}

void launcher_bind_steps(struct launcher *self)
{
    self->templates.runs_again = true;
    bind(&self->templates, self->plan->step_count + 1);
}

/* Where a step is bound, or NULL. at: the step of the plan that it belongs to. */
static struct bound_step *bound_of(struct launcher *self, const struct step *at,
                                   const struct step *step)
{
    struct templates *all = &self->templates;
    if (all->runs_again)
        return all->bound_count > 0 ? &all->bound[at - self->plan->steps] : NULL;
    if (step->call == 0)
        return NULL;
    bind(all, CACHED_CALLS_MAX);
    struct bound_step *bound =
        all->bound_count > 0 ? &all->bound[step->call % CACHED_CALLS_MAX] : NULL;
    if (bound && bound->call != step->call)
        forget_step(self, bound);
    if (bound)
        bound->call = step->call;
    return bound;
}

/* ---------------------------------------------------------------- what a template depends on */

enum {
    HEAD_WORDS = 4,
    OPERAND_WORDS = 3 + 2 * LAYOUT_RANK,
    KEY_WORDS = HEAD_WORDS + STEP_OPERANDS * OPERAND_WORDS
};

/* What is known of a step's values: also the bits of the largest modulus, if the host knows it.
 * Kernels rely on all of this. */
static uint64_t facts_of(struct launcher *self, const struct step *step)
{
    const int i = step_traits[step->kind].moduli;
    uint64_t largest = 0;
    if (i > 0 && step->in[i] && !step->in[i]->storage->scalars)
        largest = launcher_largest(self, step->in[i]->storage);
    return (largest > 0 ? (uint64_t)log2_of(largest) + 1 : 0) << 8 |
           (uint64_t)step->residues << 16 | (uint64_t)step->nonnegative << 24 |
           (uint64_t)step->zeros << 32;
}

/* The first operand with the same storage. */
static int alias_of(const struct step *step, int operand)
{
    int first = 0;
    while (!step->operands[first] ||
           step->operands[first]->storage != step->operands[operand]->storage)
        first++;
    return first;
}

/* Offsets count modulo this number of elements. Kernels depend on the alignment to cache lines. */
enum { OFFSETS_MODULO = 64 };

/* Whether kernels take an operand's offset from their space, and no table depends on it. */
static bool is_movable(const struct step *step, int operand)
{
    const bool has_factors = step->kind == STEP_MULTIPLY_ADD; /* their offsets are arguments */
    switch (operand) {
    case STEP_OUT: return true;
    case 0: return !has_factors;
    case 1:
        return !has_factors && step_traits[step->kind].moduli == 2 &&
               step->kind != STEP_BASE_CONVERSION;
    default: return operand == 3 && step->kind == STEP_CHAIN;
    }
}

/* What a template depends on of an operand's offset. first: the first operand with its storage.
 * Views of the output's storage keep their distance from it. Other views may be equal or not. */
static int64_t offset_key(const struct step *step, int operand, int first)
{
    const int64_t offset = step->operands[operand]->layout.offset;
    const int64_t distance = offset - step->operands[first]->layout.offset;
    bool has_out = false;
    for (int i = first; i < STEP_OPERANDS; i++) {
        if (!step->operands[i] || step->operands[i]->storage != step->operands[first]->storage)
            continue;
        if (!is_movable(step, i))
            return offset;
        has_out |= i == STEP_OUT;
    }
    return has_out && first < operand ? distance : offset % OFFSETS_MODULO * 2 + (distance == 0);
}

/* The key does not contain indices of scalars: see job_move_scalar. */
static size_t make_key(const struct step *step, uint64_t facts, uint64_t key[KEY_WORDS])
{
    size_t words = HEAD_WORDS;
    key[0] = (uint64_t)step->kind | facts;
    key[1] = (uint64_t)step->value[0];
    key[2] = (uint64_t)step->value[1];
    key[3] = 0;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step->operands[i];
        if (!tensor)
            continue;
        const struct storage *storage = tensor->storage;
        const struct layout *layout = &tensor->layout;
        const int first = alias_of(step, i);
        key[3] |= (uint64_t)1 << i;
        key[words++] = (uint64_t)storage->dtype | (uint64_t)first << 8 |
                       (uint64_t)(storage->scalars != NULL) << 16 | (uint64_t)layout->rank << 24;
        if (!storage->scalars) {
            key[words++] = (uint64_t)storage->elements;
            key[words++] = (uint64_t)offset_key(step, i, first);
        }
        memcpy(key + words, layout->shape, layout->rank * sizeof *key);
        words += layout->rank;
        memcpy(key + words, layout->stride, layout->rank * sizeof *key);
        words += layout->rank;
    }
    return words;
}

/* ---------------------------------------------------------------- choosing */

/* Chooses the launches of a step. replaceable: manifests' kernels may run it. After an error
 * nothing is left to release. */
static enum healcl_status choose(struct launcher *self, const struct step *step, bool replaceable,
                                 struct template *made, struct table tables[TABLES_MAX],
                                 struct healcl_error *error)
{
    bool is_chosen = false;
    enum healcl_status status = HEALCL_OK;
    template_begin(self, step, made, tables);
    if (replaceable && self->plan->table)
        status = choose_replacement(self, step, &is_chosen, error);
    if (!is_chosen)
        THEN(status, choose_variant(self, step, error));
    template_end(self);
    if (status != HEALCL_OK)
        template_release(self, made);
    return status;
}

/* Makes the template of a key. One allocation has its tables and its key. */
static enum healcl_status make(struct launcher *self, const struct step *step, bool replaceable,
                               const uint64_t *key, size_t key_words, struct template **result,
                               struct healcl_error *error)
{
    struct table tables[TABLES_MAX];
    struct template made;
    TRY(choose(self, step, replaceable, &made, tables, error));
    const size_t tables_bytes = made.table_count * sizeof *tables;
    const size_t bytes = sizeof made + tables_bytes + key_words * sizeof *key;
    struct template *template = malloc(bytes);
    if (!template)
        template_release(self, &made);
    NEED_MEMORY(template, error);
    *template = made;
    template->tables = memcpy(template + 1, tables, tables_bytes);
    template->key = memcpy(template->tables + made.table_count, key, key_words * sizeof *key);
    template->key_words = key_words;
    template->bytes += bytes;
    *result = template;
    return HEALCL_OK;
}

/* Finds the template of a step, or makes one. */
static enum healcl_status find_or_make(struct launcher *self, const struct step *step,
                                       bool replaceable, uint64_t facts, struct template **result,
                                       struct healcl_error *error)
{
    uint64_t key[KEY_WORDS];
    struct templates *all = &self->templates;
    if (!all->buckets)
        all->buckets = calloc(TEMPLATE_BUCKETS, sizeof(struct template *));
    NEED_MEMORY(all->buckets, error);
    const size_t words = make_key(step, facts, key), bytes = words * sizeof *key;
    const uint64_t hash = XXH3_64bits(key, bytes);
    struct template **bucket = &all->buckets[hash % TEMPLATE_BUCKETS], *found = *bucket;
    while (found && (found->hash != hash || found->key_words != words ||
                     memcmp(found->key, key, bytes) != 0))
        found = found->next;
    if (!found) {
        TRY(make(self, step, replaceable, key, words, &found, error));
        found->hash = hash;
        found->next = *bucket;
        *bucket = found;
        all->bytes += found->bytes;
    }
    *result = found;
    return HEALCL_OK;
}

/* Gives the launches of a bound step their own kernel objects. Without memory for them it has
 * none. */
static void keep(struct launcher *self, struct bound_step *bound)
{
    const struct template *template = bound->template;
    const size_t count = template->launch_count;
    const struct template_launch *launch;
    size_t serials = 0;
    for (launch = template->launches; launch; launch = launch->next)
        serials += launch->launch.argument_count;
    if (self->templates.kernels + count > KERNELS_MAX)
        return;
    struct kept *kept = calloc(1, sizeof *kept + count * sizeof *kept->objects +
                                      serials * sizeof *kept->objects->serials);
    if (!kept)
        return;
    uint64_t *next = (uint64_t *)(kept->objects + count);
    struct kernel_object *object = kept->objects;
    cl_int code = CL_SUCCESS; /* ignored: without their own objects, launches share one */
    bool is_whole = true;
    kept->epoch = UINT64_MAX;
    kept->count = count;
    bound->kept = kept;
    self->templates.kernels += count;
    for (launch = template->launches; launch && is_whole; launch = launch->next, object++) {
        object->id = launch->kernel ? kernel_create(self->device, launch->kernel, &code) : NULL;
        object->serials = next;
        object->count = launch->launch.argument_count;
        next += launch->launch.argument_count;
        is_whole = object->id != NULL;
    }
    if (!is_whole)
        drop_kept(self, bound);
}

/* ---------------------------------------------------------------- running */

/* Forgets what the latest run of a cached call has set and found, and this run must not use. */
static void take_operands(struct kept *kept, const struct step *step)
{
    bool has_others = false;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct storage *storage = step->operands[i] ? step->operands[i]->storage : NULL;
        if (kept->storages[i] != storage)
            kept->epoch = UINT64_MAX;
        kept->storages[i] = storage;
    }
    for (int i = 0; i < SCALARS_MAX; i++) {
        if (is_scalar(step, i) && step->in[i]) {
            const int64_t now[2] = {scalar_value(step, i), step->in[i]->layout.offset};
            has_others |= memcmp(kept->scalars[i], now, sizeof now) != 0;
            memcpy(kept->scalars[i], now, sizeof now);
        }
    }
    for (size_t i = 0; has_others && i < kept->count; i++)
        for (uint32_t j = 0; j < kept->objects[i].count; j++)
            if (kept->objects[i].serials[j] == VALUE_SERIAL)
                kept->objects[i].serials[j] = 0;
}

/* The memory that the step had before, if it is free: then arguments do not change. */
static enum healcl_status acquire_scratch(struct launcher *self, struct template_run *run,
                                          struct kept *kept, struct healcl_error *error)
{
    for (uint32_t i = 0; i < run->template->scratch_count && !self->list; i++) {
        struct buffer *scratch = &run->scratch[i];
        const uint64_t bytes = run->template->scratch[i];
        if (!kept || !device_buffer_take(self->device, kept->scratch[i], bytes, scratch))
            TRY(device_buffer_acquire(self->device, bytes, false, scratch, error));
        if (kept)
            kept->scratch[i] = scratch->serial;
    }
    return HEALCL_OK;
}

static enum healcl_status find_tables(struct launcher *self, struct template_run *run,
                                      struct kept *kept, struct healcl_error *error)
{
    const size_t count = run->template->table_count;
    if (kept && kept->epoch == self->cache.epoch) {
        memcpy(run->tables, kept->tables, count * sizeof *kept->tables);
        return derived_fill(self, run, error);
    }
    for (size_t i = 0; i < count; i++)
        TRY(derived_find(self, run->step, &run->template->tables[i], &run->tables[i], error));
    TRY(derived_fill(self, run, error));
    if (!kept)
        return HEALCL_OK;
    memcpy(kept->tables, run->tables, count * sizeof *kept->tables);
    kept->epoch = self->cache.epoch;
    return HEALCL_OK;
}

static enum healcl_status run_template(struct launcher *self, const struct template *template,
                                       const struct step *step, struct kept *kept,
                                       struct healcl_error *error)
{
    struct template_run run = {.step = step, .template = template};
    TRY(find_tables(self, &run, kept, error));
    enum healcl_status status = acquire_scratch(self, &run, kept, error);
    THEN(status, template_run(self, &run, kept ? kept->objects : NULL, error));
    for (uint32_t i = template->scratch_count; i-- > 0;)
        device_buffer_release(self->device, &run.scratch[i]);
    return status;
}

/* Runs a step without keeping what is chosen for it. */
static enum healcl_status run_once(struct launcher *self, const struct step *step, bool replaceable,
                                   struct healcl_error *error)
{
    struct table tables[TABLES_MAX];
    struct template once;
    TRY(choose(self, step, replaceable, &once, tables, error));
    const enum healcl_status status =
        once.is_done ? HEALCL_OK : run_template(self, &once, step, NULL, error);
    template_release(self, &once);
    return status;
}

/* Binds a step, unless another run would choose other launches. */
static enum healcl_status bind_step(struct launcher *self, const struct step *step,
                                    bool replaceable, struct bound_step *bound,
                                    struct healcl_error *error)
{
    if (bound->template && !bound->kept)
        keep(self, bound);
    if (bound->template || step->is_new)
        return HEALCL_OK;
    if (step->kind != STEP_VENDOR && !(replaceable && vendor_replaces(self->plan, step)))
        return find_or_make(self, step, replaceable, bound->facts, &bound->template, error);
    return self->templates.runs_again
               ? make(self, step, replaceable, NULL, 0, &bound->template, error)
               : HEALCL_OK;
}

enum healcl_status launch_step(struct launcher *self, const struct step *at,
                               const struct step *step, struct healcl_error *error)
{
    struct templates *all = &self->templates;
    derived_limit(self);
    if (all->epoch != self->device->choices_epoch || all->bytes > BYTES_MAX)
        forget_all(self);
    const uint64_t facts = facts_of(self, step);
    struct bound_step unbound = {.template = NULL}, *bound = bound_of(self, at, step);
    bound = bound ? bound : &unbound;
    if (bound->facts != facts)
        forget_step(self, bound);
    bound->facts = facts;
    TRY(bind_step(self, step, at == step, bound, error));
    if (bound->kept && step->call > 0)
        take_operands(bound->kept, step);
    const struct template *template = bound->template;
    const bool is_done = template && template->is_done;
    const enum healcl_status status = is_done ? HEALCL_OK
                                      : template
                                          ? run_template(self, template, step, bound->kept, error)
                                          : run_once(self, step, at == step, error);
    if (status != HEALCL_OK || is_done || bound == &unbound) /* another kernel may serve then */
        forget_step(self, bound);
    if (status == HEALCL_OK)
        launcher_storage_written(self, step->out->storage);
    return status;
}

enum healcl_status launch_check(struct launcher *self, const struct step *step, int i,
                                struct healcl_error *error)
{
    struct table tables[TABLES_MAX];
    struct template checks;
    struct template_run run = {.step = step, .template = &checks};
    template_begin(self, step, &checks, tables);
    enum healcl_status status = derive_check(self, step, i, error);
    template_end(self);
    return status == HEALCL_OK ? find_tables(self, &run, NULL, error) : status;
}

enum { SMALL_RESULT_BYTES = 1 << 16 }; /* smaller copies are not worth a kernel: bytes are copied */

static bool packs_bytes(const struct step *copy)
{
    const uint64_t bytes = storage_bytes(copy->out->storage);
    return bytes == 0 ||
           (bytes <= SMALL_RESULT_BYTES && layout_is_contiguous(&copy->in[0]->layout));
}

const char *pack_obstacle(const struct launcher *self, const struct step *copy)
{
    return packs_bytes(copy) ? NULL : step_obstacle(copy, self->device);
}

enum healcl_status launch_pack(struct launcher *self, const struct step *step,
                               const struct step *copy, struct healcl_error *error)
{
    const struct buffer *from;
    const struct tensor *tensor = copy->in[0];
    struct buffer *to = launcher_memory(self, copy->out->storage);
    const uint64_t bytes = storage_bytes(copy->out->storage);
    TRY(device_buffer_acquire_part(self->device, bytes, to, error));
    if (bytes == 0)
        return HEALCL_OK;
    TRY(launcher_buffer(self, tensor->storage, &from, error));
    if (!packs_bytes(copy))
        return launch_step(self, step, copy, error);
    return device_copy(self->device, from,
                       (uint64_t)tensor->layout.offset * dtype_size(tensor->storage->dtype), to, 0,
                       bytes, step->origins, error);
}

/* ---------------------------------------------------------------- life */

enum healcl_status launcher_init(struct launcher *self, struct healcl_device *device,
                                 const struct plan *plan, struct healcl_error *error)
{
    TRY(unsupported_check(device, plan->table, error));
    *self = (struct launcher){.device = device, .plan = plan};
    self->templates.epoch = device->choices_epoch;
    /* One more than the plan has for launch_pack, and one for each operand of a slice. */
    self->storages = calloc(plan->storage_count + 1 + STEP_OPERANDS, sizeof *self->storages);
    NEED_MEMORY(self->storages, error);
    return HEALCL_OK;
}

void launcher_release(struct launcher *self)
{
    forget_all(self);
    free(self->templates.buckets);
    free(self->templates.bound);
    for (size_t i = 0; i < self->plan->storage_count; i++)
        if (self->storages[i].buffer.memory || self->storages[i].contents) {
            launcher_storage_written(self, self->plan->storages[i]);
            launcher_storage_release(self, self->plan->storages[i]);
        }
    derived_forget_all(self);
    device_buffer_release(self->device, &self->status);
    if (self->places.of)
        device_places_end(self->device, self->first_place, self->places.count);
    places_release(&self->places);
    free(self->cache.buckets);
    free(self->checks);
    free(self->storages);
}
