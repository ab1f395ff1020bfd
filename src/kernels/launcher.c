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

#define WITHOUT_TABLES UINT64_MAX /* an epoch that the cache never reaches */

enum { SCALARS_MAX = 3 /* the inputs of a step that can be scalars are the first ones */ };

/* What a bound step has of its own. The arguments of its kernel objects stay set between runs: only
 * those that have changed are set again. */
struct bound_state {
    uint64_t tables_epoch; /* the cache's epoch when these were found, or WITHOUT_TABLES */
    struct derived *tables[TABLES_MAX];
    /* Operands of the latest run: the next run of a cached call may have others. */
    const struct storage *storages[STEP_OPERANDS];
    int64_t scalars[SCALARS_MAX][2]; /* values and indices */
    uint64_t scratch_serials[SCRATCH_MAX];
    size_t object_count;
    struct kernel_object objects[]; /* by launch */
};

/* What a step of the plan, or a cached call, keeps between runs. */
struct bound_step {
    struct template *template; /* NULL: it must be chosen */
    struct bound_state *state; /* from the second run on, or from the first if the plan was bound
                                  before it; or NULL */
    uint64_t facts;            /* that the template was chosen for */
    uint64_t call;             /* step.call */
};

/* ---------------------------------------------------------------- bound steps */

static void template_free(struct launcher *self, struct template *template)
{
    template_release(self, template);
    free(template);
}

/* Releases the kernel objects of a bound step. It keeps its template. */
static void release_state(struct launcher *self, struct bound_step *bound)
{
    if (!bound->state)
        return;
    self->templates.kernels -= bound->state->object_count;
    for (size_t i = 0; i < bound->state->object_count; i++)
        if (bound->state->objects[i].id)
            (void)self->device->cl->clReleaseKernel(bound->state->objects[i].id);
    free(bound->state);
    bound->state = NULL;
}

/* Unbinds a step. Its next run chooses a template again. */
static void unbind_step(struct launcher *self, struct bound_step *bound)
{
    release_state(self, bound);
    const bool serves_this_step_only = bound->template && bound->template->key_words == 0;
    if (serves_this_step_only)
        template_free(self, bound->template);
    bound->template = NULL;
}

/* Unbinds all steps, and frees all templates. */
static void discard_templates(struct launcher *self)
{
    struct templates *templates = &self->templates;
    for (size_t i = 0; i < templates->bound_count; i++)
        unbind_step(self, &templates->bound[i]);
    for (size_t i = 0; templates->buckets && i < TEMPLATE_BUCKETS; i++)
        while (templates->buckets[i]) {
            struct template *template = templates->buckets[i];
            templates->buckets[i] = template->next;
            template_free(self, template);
        }
    templates->bytes = 0;
    templates->epoch = self->device->choices_epoch;
}

/* The binding that a step keeps between runs. Steps of a plan that runs again have one each. Cached
 * calls share a few, by their number: a call takes it over from another one. NULL: the step keeps
 * none, or memory ran out. plan_step: the step of the plan that it belongs to. A plan is known to
 * run again before its first step is bound. */
static struct bound_step *claim_binding(struct launcher *self, const struct step *plan_step,
                                        const struct step *step)
{
    struct templates *all = &self->templates;
    const size_t count = all->runs_again ? self->plan->step_count : CACHED_CALLS_MAX;
    if (!all->runs_again && step->call == 0)
        return NULL;
    if (!all->bound)
        all->bound = calloc(count, sizeof *all->bound);
    if (!all->bound)
        return NULL;
    all->bound_count = count;
    const size_t number =
        all->runs_again ? (size_t)(plan_step - self->plan->steps) : step->call % count;
    struct bound_step *bound = &all->bound[number];
    if (bound->call != step->call)
        unbind_step(self, bound);
    bound->call = step->call;
    return bound;
}

/* ---------------------------------------------------------------- what a template depends on */

enum {
    HEAD_WORDS = 4,
    OPERAND_WORDS = 3 + 2 * LAYOUT_RANK,
    KEY_WORDS = HEAD_WORDS + STEP_OPERANDS * OPERAND_WORDS
};

/* What is known of a step's values, in disjoint bits: the bits of the largest modulus, if the host
 * knows it, and which inputs are residues, nonnegative or zeros. Kernels rely on all of this. The
 * lowest eight bits are left to the kind of step. */
static uint64_t facts_of(struct launcher *self, const struct step *step)
{
    const int i = step_traits[step->kind].moduli;
    uint64_t largest = 0;
    if (i > 0 && step->in[i] && !step->in[i]->storage->scalars)
        largest = launcher_largest(self, step->in[i]->storage);
    const uint64_t modulus_bits = largest > 0 ? (uint64_t)log2_of(largest) + 1 : 0;
    return modulus_bits << 8 | (uint64_t)step->residues << 16 | (uint64_t)step->nonnegative << 24 |
           (uint64_t)step->zeros << 32;
}

/* The first operand that has this operand's storage, perhaps itself. */
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

/* Whether a template serves an operand at any offset. Its space then has the offset, and no table
 * depends on it. */
static bool is_movable(const struct step *step, int operand)
{
    const bool offsets_are_arguments = step->kind == STEP_MULTIPLY_ADD;
    /* Of moduli and of weights there are tables. */
    const bool b_is_plain =
        step_traits[step->kind].moduli == INPUT_P && step->kind != STEP_BASE_CONVERSION;
    switch (operand) {
    case STEP_OUT: return true;
    case INPUT_A: return !offsets_are_arguments;
    case INPUT_B: return !offsets_are_arguments && b_is_plain;
    case INPUT_SECOND_B: return step->kind == STEP_CHAIN;
    default: return false;
    }
}

/* What a template depends on of an operand's offset. first: the first operand with its storage.
 * - If some operand of that storage cannot be moved: the whole offset.
 * - If the output is in that storage: the distance from the first operand, because launches depend
 *   on whether views overlap.
 * - Otherwise the alignment, and whether the view begins where the first one does. */
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
    if (has_out && first < operand)
        return distance;
    return offset % OFFSETS_MODULO * 2 + (distance == 0);
}

/* Writes what a template depends on as words: kind and facts, values, a mask of operands, then the
 * dtype, alias, storage and layout of each operand. Returns the number of words. It leaves out the
 * indices of scalars, which each run sets: see job_move_scalar. */
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

/* Chooses the launches of a step: *chosen, whose tables are in an array. replaceable: manifests'
 * kernels may run it. After an error nothing is left to release. */
static enum healcl_status choose(struct launcher *self, const struct step *step, bool replaceable,
                                 struct template *chosen, struct table tables[TABLES_MAX],
                                 struct healcl_error *error)
{
    bool is_chosen = false;
    enum healcl_status status = HEALCL_OK;
    template_begin(self, step, chosen, tables);
    if (replaceable && self->plan->table)
        status = choose_replacement(self, step, &is_chosen, error);
    if (!is_chosen)
        THEN(status, choose_variant(self, step, error));
    template_end(self);
    if (status != HEALCL_OK)
        template_release(self, chosen);
    return status;
}

/* Makes a template for a step, with a key of key_words words. One allocation has the template, its
 * tables and its key. */
static enum healcl_status make_template(struct launcher *self, const struct step *step,
                                        bool replaceable, const uint64_t *key, size_t key_words,
                                        struct template **result, struct healcl_error *error)
{
    struct table tables[TABLES_MAX];
    struct template chosen;
    TRY(choose(self, step, replaceable, &chosen, tables, error));
    const size_t tables_bytes = chosen.table_count * sizeof *tables;
    const size_t bytes = sizeof chosen + tables_bytes + key_words * sizeof *key;
    struct template *template = malloc(bytes);
    if (!template)
        template_release(self, &chosen);
    NEED_MEMORY(template, error);
    *template = chosen;
    template->tables = memcpy(template + 1, tables, tables_bytes);
    template->key = (uint64_t *)(void *)(template->tables + chosen.table_count);
    if (key_words > 0)
        memcpy(template->tables + chosen.table_count, key, key_words * sizeof *key);
    template->key_words = key_words;
    template->bytes += bytes;
    *result = template;
    return HEALCL_OK;
}

/* Finds the template of a step by its key, or makes one. */
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
        TRY(make_template(self, step, replaceable, key, words, &found, error));
        found->hash = hash;
        found->next = *bucket;
        *bucket = found;
        all->bytes += found->bytes;
    }
    *result = found;
    return HEALCL_OK;
}

/* Gives the launches of a bound step their own kernel objects, so that arguments stay set between
 * runs. Without memory for them it has none. An object has a serial for each argument, which tells
 * whether the argument is still set. One allocation has the state, its objects and their serials.
 */
static void make_kernel_objects(struct launcher *self, struct bound_step *bound)
{
    const struct template *template = bound->template;
    const size_t count = template->launch_count;
    const struct template_launch *launch;
    size_t serial_count = 0;
    for (launch = template->launches; launch; launch = launch->next)
        serial_count += launch->launch.argument_count;
    if (self->templates.kernels + count > KERNELS_MAX)
        return;
    struct bound_state *state = calloc(1, sizeof *state + count * sizeof *state->objects +
                                              serial_count * sizeof *state->objects->serials);
    if (!state)
        return;
    uint64_t *next_serials = (uint64_t *)(state->objects + count);
    struct kernel_object *object = state->objects;
    cl_int code = CL_SUCCESS; /* ignored: without their own objects, launches share one */
    bool is_whole = true;
    state->tables_epoch = WITHOUT_TABLES;
    state->object_count = count;
    bound->state = state;
    self->templates.kernels += count;
    for (launch = template->launches; launch && is_whole; launch = launch->next, object++) {
        object->id = launch->kernel ? kernel_create(self->device, launch->kernel, &code) : NULL;
        object->serials = next_serials;
        object->count = launch->launch.argument_count;
        next_serials += launch->launch.argument_count;
        is_whole = object->id != NULL;
    }
    if (!is_whole)
        release_state(self, bound);
}

/* ---------------------------------------------------------------- running */

/* A cached call may have other operands than in its latest run. If storages differ, its tables are
 * found again. If scalars differ, kernels' values are set again. */
static void note_operands(struct bound_state *state, const struct step *step)
{
    bool scalars_differ = false;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct storage *storage = step->operands[i] ? step->operands[i]->storage : NULL;
        if (state->storages[i] != storage)
            state->tables_epoch = WITHOUT_TABLES;
        state->storages[i] = storage;
    }
    for (int i = 0; i < SCALARS_MAX; i++) {
        if (is_scalar(step, i) && step->in[i]) {
            const int64_t now[2] = {scalar_value(step, i), step->in[i]->layout.offset};
            scalars_differ |= memcmp(state->scalars[i], now, sizeof now) != 0;
            memcpy(state->scalars[i], now, sizeof now);
        }
    }
    for (size_t i = 0; scalars_differ && i < state->object_count; i++)
        for (uint32_t j = 0; j < state->objects[i].count; j++)
            if (state->objects[i].serials[j] == VALUE_SERIAL)
                state->objects[i].serials[j] = UNSET_SERIAL;
}

/* Acquires the scratch memory of a run. Prefers the buffers of the step's latest run, so that
 * arguments of kernel objects need not be set again. */
static enum healcl_status acquire_scratch(struct launcher *self, struct template_run *run,
                                          struct bound_state *state, struct healcl_error *error)
{
    if (self->list) /* nothing is enqueued */
        return HEALCL_OK;
    for (uint32_t i = 0; i < run->template->scratch_count; i++) {
        struct buffer *scratch = &run->scratch[i];
        const uint64_t bytes = run->template->scratch_bytes[i];
        if (!state || !device_buffer_take(self->device, state->scratch_serials[i], bytes, scratch))
            TRY(device_buffer_acquire(self->device, bytes, false, scratch, error));
        if (state)
            state->scratch_serials[i] = scratch->serial;
    }
    return HEALCL_OK;
}

/* Finds the tables of a run, and fills stale ones. A bound step keeps pointers to them until tables
 * are freed: then the cache's epoch changes. */
static enum healcl_status find_tables(struct launcher *self, struct template_run *run,
                                      struct bound_state *state, struct healcl_error *error)
{
    const size_t count = run->template->table_count;
    if (state && state->tables_epoch == self->cache.epoch) {
        memcpy(run->tables, state->tables, count * sizeof *state->tables);
        return derived_fill(self, run, error);
    }
    for (size_t i = 0; i < count; i++)
        TRY(derived_find(self, run->step, &run->template->tables[i], &run->tables[i], error));
    TRY(derived_fill(self, run, error));
    if (!state)
        return HEALCL_OK;
    memcpy(state->tables, run->tables, count * sizeof *state->tables);
    state->tables_epoch = self->cache.epoch;
    return HEALCL_OK;
}

/* Runs a template with its tables and scratch memory. Scratch memory is given back at once: the
 * device uses it again only for commands that come later. */
static enum healcl_status run_template(struct launcher *self, const struct template *template,
                                       const struct step *step, struct bound_state *state,
                                       struct healcl_error *error)
{
    struct template_run run = {.step = step, .template = template};
    if (state && step->call > 0)
        note_operands(state, step);
    TRY(find_tables(self, &run, state, error));
    enum healcl_status status = acquire_scratch(self, &run, state, error);
    THEN(status, template_run(self, &run, state ? state->objects : NULL, error));
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

/* Gives a step the template that it keeps for later runs: one of an equal step, or a new one. Two
 * kinds of steps get none, and are run by run_once. A call like no earlier one may never come
 * again. And a manifest's kernel is only kept if the plan runs again. Its template has no key: no
 * other step finds it. */
static enum healcl_status bind_template(struct launcher *self, const struct step *step,
                                        bool replaceable, struct bound_step *bound,
                                        struct healcl_error *error)
{
    const bool is_of_manifest =
        step->kind == STEP_VENDOR || (replaceable && vendor_replaces(self->plan, step));
    const uint64_t no_key = 0;
    if (step->is_new)
        return HEALCL_OK;
    if (!is_of_manifest)
        return find_or_make(self, step, replaceable, bound->facts, &bound->template, error);
    return self->templates.runs_again
               ? make_template(self, step, replaceable, &no_key, 0, &bound->template, error)
               : HEALCL_OK;
}

/* Gives a step that has not run yet what its second run would make: kernel objects, and pointers to
 * its tables. */
static enum healcl_status bind_ahead(struct launcher *self, const struct step *step,
                                     struct bound_step *bound, struct healcl_error *error)
{
    struct template_run run = {.step = step, .template = bound->template};
    make_kernel_objects(self, bound);
    return bound->state ? find_tables(self, &run, bound->state, error) : HEALCL_OK;
}

/* Runs a step, which is plan_step or a part of it. Only whole steps may be run by the kernels of
 * manifests. */
enum healcl_status launch_step(struct launcher *self, const struct step *plan_step,
                               const struct step *step, struct healcl_error *error)
{
    const struct templates *all = &self->templates;
    const bool replaceable = step == plan_step;
    struct bound_step for_this_run = {.template = NULL};
    derived_limit(self);
    if (all->epoch != self->device->choices_epoch || all->bytes > BYTES_MAX)
        discard_templates(self);
    const uint64_t facts = facts_of(self, step);
    struct bound_step *bound = claim_binding(self, plan_step, step);
    if (!bound)
        bound = &for_this_run;
    if (bound->facts != facts) /* values have changed since the latest run */
        unbind_step(self, bound);
    bound->facts = facts;
    if (!bound->template)
        TRY(bind_template(self, step, replaceable, bound, error));
    else if (!bound->state)
        make_kernel_objects(self, bound);
    const struct template *template = bound->template;
    const bool is_done = template && template->is_done; /* native code ran while it was chosen */
    enum healcl_status status = HEALCL_OK;
    if (!template)
        status = run_once(self, step, replaceable, error);
    else if (!is_done)
        status = run_template(self, template, step, bound->state, error);
    if (template && !is_done && launcher_only_binds(self))
        THEN(status, bind_ahead(self, step, bound, error));
    /* After an error, or for native code, the next run chooses again: another kernel may serve. */
    if (status != HEALCL_OK || is_done || bound == &for_this_run)
        unbind_step(self, bound);
    if (status == HEALCL_OK)
        launcher_storage_written(self, step->out->storage);
    return status;
}

/* Checks input i of a step without running it. The check is a template with tables but without
 * launches: filling these reports bad values. */
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
           (bytes <= SMALL_RESULT_BYTES && layout_is_contiguous(&copy->in[INPUT_A]->layout));
}

const char *pack_obstacle(const struct launcher *self, const struct step *copy)
{
    return packs_bytes(copy) ? NULL : step_obstacle(copy, self->device);
}

/* Copies a result into a storage of its own, in C order. Small contiguous results are copied as
 * bytes: that needs no kernel. */
enum healcl_status launch_pack(struct launcher *self, const struct step *step,
                               const struct step *copy, struct healcl_error *error)
{
    const struct buffer *from;
    const struct tensor *tensor = copy->in[INPUT_A];
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

/* Prepares a launcher, which has no memory of storages yet. */
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

/* Frees what steps have chosen, then the memory of storages, tables and places. */
void launcher_release(struct launcher *self)
{
    discard_templates(self);
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
