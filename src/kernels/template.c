#include "kernels/template.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/array.h"
#include "core/numbers.h"
#include "kernels/derived.h"
#include "kernels/kernels.h"

enum {
    KERNELS_MAX =
        4096, /* kernel objects of bound steps: drivers have memory for a limited number */
    BYTES_MAX = 64 << 20 /* of templates */
};

/* Kernel objects of a bound step. Their arguments stay set between its runs. */
struct kept_launch {
    cl_kernel id;
    uint64_t *serials; /* see struct ready_launch */
};

struct kept {
    uint64_t epoch; /* of the derived tables */
    struct derived *tables[TABLES_MAX];
    uint64_t scratch[SCRATCH_MAX]; /* serials */
    size_t count;
    struct kept_launch launches[];
};

/* A step of the plan that has run. */
struct bound_step {
    struct template *template; /* NULL: it has not run, or must be chosen again */
    struct kept *kept;         /* from the second run on; or NULL */
    uint64_t fact;             /* modulus_bits at that time */
};

/* ---------------------------------------------------------------- life */

static void template_free(struct launcher *self, struct template *template)
{
    for (size_t i = 0; i < template->launch_count; i++) {
        device_buffer_release(self->device, &template->launches[i]->space_memory);
        free(template->launches[i]);
    }
    free(template->launches);
    free(template->tables);
    free(template->key);
    free(template);
}

static void drop_kept(struct launcher *self, struct bound_step *bound)
{
    if (!bound->kept)
        return;
    self->templates.kernels -= bound->kept->count;
    for (size_t i = 0; i < bound->kept->count; i++)
        if (bound->kept->launches[i].id)
            (void)self->device->cl->clReleaseKernel(bound->kept->launches[i].id);
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
    for (size_t i = 0; templates->bound && i < self->plan->step_count; i++)
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

void templates_free(struct launcher *self)
{
    forget_all(self);
    free(self->templates.buckets);
    free(self->templates.bound);
}

void launcher_bind_steps(struct launcher *self)
{
    if (!self->templates.bound)
        self->templates.bound = calloc(self->plan->step_count + 1, sizeof(struct bound_step));
}

/* ---------------------------------------------------------------- what a template depends on */

enum {
    HEAD_WORDS = 4,
    OPERAND_WORDS = 3 + 2 * LAYOUT_RANK,
    KEY_WORDS = HEAD_WORDS + STEP_OPERANDS * OPERAND_WORDS
};

/* The bits of the largest modulus, if the host knows it: kernels rely on this bound. */
static uint64_t modulus_bits(struct launcher *self, const struct step *step)
{
    const int i = step_traits[step->kind].moduli;
    if (i == 0 || !step->in[i] || step->in[i]->storage->scalars)
        return 0;
    const uint64_t largest = launcher_largest(self, step->in[i]->storage);
    return largest > 0 ? log2_of(largest) + 1 : 0;
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

/* Offsets of scalars are no part of the key: SLOT_Q_NUMBER. */
static size_t make_key(const struct step *step, uint64_t fact, uint64_t key[KEY_WORDS])
{
    size_t words = HEAD_WORDS;
    key[0] = (uint64_t)step->kind | fact << 8 | (uint64_t)step->residues << 16 |
             (uint64_t)step->nonnegative << 24 | (uint64_t)step->zeros << 32;
    key[1] = (uint64_t)step->value[0];
    key[2] = (uint64_t)step->value[1];
    key[3] = 0;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step->operands[i];
        if (!tensor)
            continue;
        const struct storage *storage = tensor->storage;
        const struct layout *layout = &tensor->layout;
        key[3] |= (uint64_t)1 << i;
        key[words++] = (uint64_t)storage->dtype | (uint64_t)alias_of(step, i) << 8 |
                       (uint64_t)(storage->scalars != NULL) << 16 | (uint64_t)layout->rank << 24;
        if (!storage->scalars) {
            key[words++] = (uint64_t)storage->elements;
            key[words++] = (uint64_t)layout->offset;
        }
        memcpy(key + words, layout->shape, layout->rank * sizeof *key);
        words += layout->rank;
        memcpy(key + words, layout->stride, layout->rank * sizeof *key);
        words += layout->rank;
    }
    return words;
}

/* ---------------------------------------------------------------- choosing */

uint64_t template_slot_bytes(const struct launcher *self, int slot)
{
    const struct template *made = self->templates.made;
    if (slot < STEP_OPERANDS)
        return storage_bytes(self->templates.step->operands[slot]->storage);
    if (slot >= SLOT_SCRATCH)
        return made->scratch[slot - SLOT_SCRATCH];
    if (slot == SLOT_STATUS)
        return sizeof(struct status);
    const struct table *table = &made->tables[slot - SLOT_TABLE];
    return (uint64_t)table->count * table->size;
}

int template_slot_of(const struct launcher *self, const struct tensor *tensor)
{
    int slot = 0;
    while (!self->templates.step->operands[slot] ||
           self->templates.step->operands[slot]->storage != tensor->storage)
        slot++;
    return slot;
}

enum healcl_status template_add_table(struct launcher *self, const struct table *table, int *slot,
                                      struct healcl_error *error)
{
    struct template *made = self->templates.made;
    for (size_t i = 0; i < made->table_count; i++)
        if (derived_same_key(&made->tables[i].key, &table->key) &&
            memcmp(made->tables[i].inputs, table->inputs, sizeof table->inputs) == 0) {
            *slot = SLOT_TABLE + (int)i;
            return HEALCL_OK;
        }
    struct table *tables = realloc(made->tables, (made->table_count + 1) * sizeof *tables);
    NEED_MEMORY(tables, error);
    made->tables = tables;
    *slot = SLOT_TABLE + (int)made->table_count;
    tables[made->table_count++] = *table;
    return HEALCL_OK;
}

int template_add_scratch(struct launcher *self, uint64_t bytes)
{
    struct template *made = self->templates.made;
    made->scratch[made->scratch_count] = bytes;
    return SLOT_SCRATCH + (int)made->scratch_count++;
}

static size_t padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* The bytes of an argument's value, if it has more than 8. */
static size_t extra_bytes(const struct launch *launch, const uint8_t *slots, uint32_t i)
{
    const size_t size = slots[i] == SLOT_SPACE ? sizeof(struct space) : launch->arguments[i].size;
    return slots[i] >= SLOT_SPACE && size > sizeof(int64_t) ? padded(size) : 0;
}

enum healcl_status template_add_launch(struct launcher *self, const struct launch *launch,
                                       const uint8_t *slots, const struct space *space,
                                       bool moves_q, struct healcl_error *error)
{
    struct template *made = self->templates.made;
    const uint32_t count = launch->argument_count;
    const size_t options = strlen(launch->options) + 1;
    size_t bytes = sizeof(struct bound_launch) + count * (sizeof *launch->arguments + 8) +
                   padded(count) + padded(options);
    for (uint32_t i = 0; i < count; i++)
        bytes += extra_bytes(launch, slots, i);
    NEED_MEMORY(ARRAY_GROW(made->launches, made->launch_count, &made->launch_capacity), error);
    struct bound_launch *bound = calloc(1, bytes);
    NEED_MEMORY(bound, error);
    made->launches[made->launch_count++] = bound;
    made->bytes += bytes;
    *bound = (struct bound_launch){.program = launch->program,
                                   .name = launch->kernel,
                                   .source = launch->source,
                                   .manifest = launch->manifest,
                                   .variant = launch->variant,
                                   .local_size = launch->local_size,
                                   .groups = launch->groups,
                                   .moves_q = moves_q,
                                   .argument_count = count,
                                   .arguments = (struct launch_argument *)(bound + 1)};
    bound->values = (int64_t *)(bound->arguments + count);
    char *next = (char *)(bound->values + count);
    for (uint32_t i = 0; i < count; i++) {
        struct launch_argument *argument = &bound->arguments[i];
        *argument = launch->arguments[i];
        if (slots[i] < SLOT_SPACE)
            continue;
        const void *given = slots[i] == SLOT_SPACE ? space : argument->value;
        const size_t extra = extra_bytes(launch, slots, i);
        void *value = extra > 0 ? (void *)next : &bound->values[i];
        next += extra;
        memcpy(value, given, slots[i] == SLOT_SPACE ? sizeof *space : argument->size);
        argument->value = value;
        if (given == space)
            bound->space = value;
    }
    bound->slots = (uint8_t *)next;
    memcpy(bound->slots, slots, count);
    bound->options = memcpy(next + padded(count), launch->options, options);
    return HEALCL_OK;
}

/* Chooses launches of a step. replaceable: manifests' kernels may run it. */
static enum healcl_status choose(struct launcher *self, const struct step *step, bool replaceable,
                                 struct healcl_error *error)
{
    bool is_chosen = false;
    if (replaceable && self->plan->table)
        TRY(choose_replacement(self, step, &is_chosen, error));
    return is_chosen ? HEALCL_OK : choose_variant(self, step, error);
}

static enum healcl_status make(struct launcher *self, const struct step *step, bool replaceable,
                               struct template **result, struct healcl_error *error)
{
    struct template *made = calloc(1, sizeof *made);
    NEED_MEMORY(made, error);
    self->templates.made = made;
    self->templates.step = step;
    const enum healcl_status status = choose(self, step, replaceable, error);
    self->templates.made = NULL;
    if (status != HEALCL_OK) {
        template_free(self, made);
        return status;
    }
    made->bytes += sizeof *made + made->table_count * sizeof *made->tables;
    *result = made;
    return HEALCL_OK;
}

/* Finds the template of a step, or makes one. If it serves this step only, its key is empty. */
static enum healcl_status find_or_make(struct launcher *self, const struct step *step,
                                       bool replaceable, uint64_t fact, struct template **result,
                                       struct healcl_error *error)
{
    uint64_t key[KEY_WORDS];
    struct templates *all = &self->templates;
    if (step->kind == STEP_VENDOR || (replaceable && vendor_replaces(self->plan, step)))
        return make(self, step, replaceable, result, error);
    if (!all->buckets)
        all->buckets = calloc(TEMPLATE_BUCKETS, sizeof(struct template *));
    NEED_MEMORY(all->buckets, error);
    const size_t words = make_key(step, fact, key), bytes = words * sizeof *key;
    const uint64_t hash = XXH3_64bits(key, bytes);
    struct template **bucket = &all->buckets[hash % TEMPLATE_BUCKETS], *found = *bucket;
    while (found && (found->hash != hash || found->key_words != words ||
                     memcmp(found->key, key, bytes) != 0))
        found = found->next;
    if (!found) {
        TRY(make(self, step, replaceable, &found, error));
        found->key = malloc(bytes);
        if (!found->key) {
            template_free(self, found);
            FAIL(error, HEALCL_NO_MEMORY, "out of memory");
        }
        memcpy(found->key, key, bytes);
        found->key_words = words;
        found->hash = hash;
        found->next = *bucket;
        *bucket = found;
        all->bytes += found->bytes + bytes;
    }
    *result = found;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- running */

static const struct buffer *memory_of(const struct launcher *self, const struct template_run *run,
                                      int slot)
{
    if (slot < STEP_OPERANDS)
        return &self->storages[run->step->operands[slot]->storage->id].buffer;
    if (slot >= SLOT_SCRATCH)
        return &run->scratch[slot - SLOT_SCRATCH];
    return slot == SLOT_STATUS ? &self->status : &run->tables[slot - SLOT_TABLE]->table;
}

/* Puts a launch's space into memory, unless it is there already. */
static enum healcl_status upload_space(struct launcher *self, struct bound_launch *launch,
                                       struct healcl_error *error)
{
    if (launch->space_memory.memory && !launch->moves_q)
        return HEALCL_OK;
    device_buffer_release(self->device, &launch->space_memory);
    return device_upload_memory(self->device, NULL, sizeof *launch->space, launch->space,
                                &launch->space_memory, error);
}

/* Sets memory, and values that the step gives. */
static enum healcl_status set_arguments(struct launcher *self, const struct template_run *run,
                                        struct bound_launch *launch, struct healcl_error *error)
{
    const struct step *step = run->step;
    if (launch->moves_q && launch->space)
        launch->space->operand[3].offset = step_scalar(step, SLOT_Q_NUMBER);
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const struct buffer **buffer = &launch->arguments[i].buffer;
        const int slot = launch->slots[i];
        if (slot < STEP_OPERANDS && !memory_of(self, run, slot)->memory)
            TRY(launcher_buffer(self, step->operands[slot]->storage, buffer, error));
        if (slot < SLOT_SPACE)
            *buffer = memory_of(self, run, slot);
        else if (slot == SLOT_SPACE) {
            TRY(upload_space(self, launch, error));
            *buffer = &launch->space_memory;
        } else if (slot == SLOT_Q_NUMBER)
            *(uint32_t *)(void *)&launch->values[i] = (uint32_t)step_scalar(step, SLOT_Q_NUMBER);
        else if (slot != SLOT_VALUE)
            launch->values[i] = step_scalar(step, slot);
    }
    return HEALCL_OK;
}

static void expand(const struct template_run *run, const struct bound_launch *bound,
                   struct launch *launch)
{
    *launch = (struct launch){.program = bound->program,
                              .kernel = bound->name,
                              .source = bound->source,
                              .argument_count = bound->argument_count,
                              .manifest = bound->manifest,
                              .local_size = bound->local_size,
                              .groups = bound->groups,
                              .tag = run->step->origins,
                              .variant = bound->variant,
                              .kind = (int)run->step->kind};
    strcpy(launch->options, bound->options);
    memcpy(launch->arguments, bound->arguments, bound->argument_count * sizeof *bound->arguments);
}

/* Builds the kernel of a launch. A process that compiles ahead also runs it once. */
static enum healcl_status attach(struct launcher *self, const struct template_run *run,
                                 struct bound_launch *launch, struct healcl_error *error)
{
    struct launch expanded;
    const bool is_ahead = self->device->programs->ahead.is_on;
    if (launch->kernel && !is_ahead)
        return HEALCL_OK;
    expand(run, launch, &expanded);
    return is_ahead ? device_compile(self->device, &expanded, error)
                    : device_attach(self->device, &expanded, &launch->kernel, error);
}

static enum healcl_status enqueue(struct launcher *self, const struct template_run *run,
                                  const struct bound_launch *launch, const struct kept_launch *kept,
                                  struct healcl_error *error)
{
    const struct ready_launch ready = {.kernel = launch->kernel,
                                       .id = kept ? kept->id : NULL,
                                       .serials = kept ? kept->serials : NULL,
                                       .groups = launch->groups,
                                       .local_size = launch->local_size,
                                       .tag = run->step->origins,
                                       .variant = launch->variant,
                                       .kind = (int)run->step->kind,
                                       .manifest = launch->manifest,
                                       .argument_count = launch->argument_count,
                                       .arguments = launch->arguments};
    return device_enqueue(self->device, &ready, error);
}

/* Enqueues launches, once all of them can be. */
static enum healcl_status run_launches(struct launcher *self, const struct template_run *run,
                                       const struct template *template, const struct kept *kept,
                                       struct healcl_error *error)
{
    struct launch listed;
    for (size_t i = 0; i < template->launch_count && self->list; i++) {
        expand(run, template->launches[i], &listed);
        self->list(self->list_context, &listed);
    }
    if (self->list)
        return HEALCL_OK;
    for (size_t i = 0; i < template->launch_count; i++) {
        TRY(set_arguments(self, run, template->launches[i], error));
        TRY(attach(self, run, template->launches[i], error));
    }
    for (size_t i = 0; i < template->launch_count && !self->device->programs->ahead.is_on; i++)
        TRY(enqueue(self, run, template->launches[i], kept ? &kept->launches[i] : NULL, error));
    for (size_t i = 0; i < template->launch_count && !self->templates.bound; i++)
        device_buffer_release(self->device, &template->launches[i]->space_memory);
    return HEALCL_OK;
}

enum healcl_status template_run_fill(struct launcher *self, struct template_run *run,
                                     fill_function *choose_fill, void *context,
                                     struct healcl_error *error)
{
    struct template fill = {.tables = run->template->tables,
                            .table_count = run->template->table_count};
    self->templates.made = &fill;
    self->templates.step = run->step;
    enum healcl_status status = choose_fill(self, context, error);
    self->templates.made = NULL;
    if (status == HEALCL_OK)
        status = run_launches(self, run, &fill, NULL, error);
    for (size_t i = 0; i < fill.launch_count; i++) {
        device_buffer_release(self->device, &fill.launches[i]->space_memory);
        free(fill.launches[i]);
    }
    free(fill.launches);
    return status;
}

/* The memory that the step had before, if it is free: then arguments do not change. */
static enum healcl_status acquire_scratch(struct launcher *self, struct template_run *run,
                                          struct kept *kept, struct healcl_error *error)
{
    for (uint32_t i = 0; i < run->template->scratch_count; i++) {
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
    enum healcl_status status = HEALCL_OK;
    if (!self->list)
        status = acquire_scratch(self, &run, kept, error);
    if (status == HEALCL_OK)
        status = run_launches(self, &run, template, kept, error);
    for (uint32_t i = template->scratch_count; i-- > 0;)
        device_buffer_release(self->device, &run.scratch[i]);
    return status;
}

/* Gives the launches of a bound step their own kernel objects. Without memory for them it has
 * none. */
static void keep(struct launcher *self, struct bound_step *bound)
{
    const struct template *template = bound->template;
    const size_t count = template->launch_count;
    size_t serials = 0;
    for (size_t i = 0; i < count; i++)
        serials += template->launches[i]->argument_count;
    if (self->templates.kernels + count > KERNELS_MAX)
        return;
    struct kept *kept = calloc(1, sizeof *kept + count * sizeof *kept->launches +
                                      serials * sizeof *kept->launches->serials);
    if (!kept)
        return;
    uint64_t *next = (uint64_t *)(kept->launches + count);
    bool is_whole = true;
    kept->epoch = UINT64_MAX;
    kept->count = count;
    bound->kept = kept;
    self->templates.kernels += count;
    for (size_t i = 0; is_whole && i < count; i++) {
        const struct bound_launch *launch = template->launches[i];
        kept->launches[i].id =
            launch->kernel ? device_kernel_object(self->device, launch->kernel) : NULL;
        is_whole = kept->launches[i].id != NULL;
        kept->launches[i].serials = next;
        next += launch->argument_count;
    }
    if (!is_whole)
        drop_kept(self, bound);
}

enum healcl_status template_launch(struct launcher *self, const struct step *at,
                                   const struct step *step, struct healcl_error *error)
{
    struct templates *all = &self->templates;
    if (all->epoch != self->device->choices_epoch || all->bytes > BYTES_MAX)
        forget_all(self);
    const uint64_t fact = modulus_bits(self, step);
    struct bound_step unbound = {.template = NULL};
    struct bound_step *bound = all->bound ? &all->bound[at - self->plan->steps] : &unbound;
    if (bound->template && bound->fact != fact)
        forget_step(self, bound);
    if (bound->template && !bound->kept)
        keep(self, bound);
    if (!bound->template)
        TRY(find_or_make(self, step, at == step, fact, &bound->template, error));
    bound->fact = fact;
    const bool is_done = bound->template->is_done;
    const enum healcl_status status =
        is_done ? HEALCL_OK : run_template(self, bound->template, step, bound->kept, error);
    if (status != HEALCL_OK || is_done || bound == &unbound) /* another kernel may serve then */
        forget_step(self, bound);
    return status;
}

enum healcl_status template_check(struct launcher *self, const struct step *step, int i,
                                  struct healcl_error *error)
{
    struct template checks = {.launch_count = 0};
    struct template_run run = {.step = step, .template = &checks};
    self->templates.made = &checks;
    self->templates.step = step;
    enum healcl_status status = derive_check(self, step, i, error);
    self->templates.made = NULL;
    if (status == HEALCL_OK)
        status = find_tables(self, &run, NULL, error);
    free(checks.tables);
    return status;
}
