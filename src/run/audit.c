#include "run/audit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "core/array.h"
#include "core/clock.h"
#include "kernels/variant.h"
#include "run/audit_parts.h"

enum {
    BYTES_MOST = 16 << 20,     /* of an audit */
    COMMAND_NANOSECONDS = 8000 /* that a read takes of the device and its driver, with PoCL */
};

/* ---------------------------------------------------------------- numbers */

static enum healcl_status enlarge(struct numbers *numbers, struct healcl_error *error)
{
    const size_t slot_count = numbers->slot_count > 0 ? 2 * numbers->slot_count : 64;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        NO_MEMORY(error);
    for (size_t i = 0; i < numbers->count; i++) {
        size_t slot = numbers->hashes[i] & (slot_count - 1);
        while (slots[slot] != 0)
            slot = (slot + 1) & (slot_count - 1);
        slots[slot] = (uint32_t)i + 1;
    }
    free(numbers->slots);
    numbers->slots = slots;
    numbers->slot_count = slot_count;
    return HEALCL_OK;
}

/* The number of what has a hash; *is_new: it was not met before. */
static enum healcl_status number_of(struct numbers *numbers, uint64_t hash, uint32_t *number,
                                    bool *is_new, struct healcl_error *error)
{
    if (2 * (numbers->count + 1) > numbers->slot_count)
        TRY(enlarge(numbers, error));
    size_t slot = hash & (numbers->slot_count - 1);
    for (; numbers->slots[slot] != 0; slot = (slot + 1) & (numbers->slot_count - 1))
        if (numbers->hashes[numbers->slots[slot] - 1] == hash) {
            *number = numbers->slots[slot] - 1;
            *is_new = false;
            return HEALCL_OK;
        }
    if (!ARRAY_GROW(numbers->hashes, numbers->count, &numbers->capacity))
        NO_MEMORY(error);
    numbers->hashes[numbers->count++] = hash;
    numbers->slots[slot] = (uint32_t)numbers->count;
    *number = (uint32_t)numbers->count - 1;
    *is_new = true;
    return HEALCL_OK;
}

static void numbers_release(struct numbers *numbers)
{
    free(numbers->hashes);
    free(numbers->slots);
}

/* ---------------------------------------------------------------- kernels */

enum { KERNEL_NAME_SIZE = 96 };

static void kernel_name(const struct plan *plan, const struct step *step,
                        const struct healcl_device *device, char name[KERNEL_NAME_SIZE])
{
    const char *manifest = vendor_kernel_for(plan, step, device).name;
    snprintf(name, KERNEL_NAME_SIZE, "%s, %s, %s", step_traits[step->kind].name,
             manifest ? manifest : variant_for(step, device)->name,
             dtype_name(step->out->storage->dtype));
}

static enum healcl_status number_kernel(struct audit *audit, const struct step *step,
                                        const struct healcl_device *device, uint32_t *number,
                                        struct healcl_error *error)
{
    char name[KERNEL_NAME_SIZE];
    bool is_new;
    kernel_name(audit->plan, step, device, name);
    TRY(number_of(&audit->kernel_numbers, XXH3_64bits(name, strlen(name)), number, &is_new, error));
    if (!is_new)
        return HEALCL_OK;
    struct healcl_audit_kernel *kernels = audit->kernels;
    size_t capacity = audit->facts.kernel_count;
    if ((capacity & (capacity - 1)) == 0) { /* it doubles at powers of two */
        kernels = realloc(kernels, (capacity > 0 ? 2 * capacity : 1) * sizeof *kernels);
        if (!kernels)
            NO_MEMORY(error);
        audit->kernels = kernels;
    }
    char *kept = strdup(name);
    if (!kept)
        NO_MEMORY(error);
    kernels[audit->facts.kernel_count++] = (struct healcl_audit_kernel){.name = kept};
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- moduli */

/* Notes the values of small uploads that no step writes to: they tell moduli apart. */
static enum healcl_status read_known(struct audit *audit, struct healcl_error *error)
{
    enum { KNOWN_MOST = 4096 };
    const struct plan *plan = audit->plan;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        if (!step->out || step->out->storage->scalars)
            continue;
        int64_t **values = &audit->known[step->out->storage->id];
        const int64_t count = step->out->storage->elements;
        if (*values || step->kind != STEP_UPLOAD) {
            free(*values);
            *values = NULL;
        } else if (count > 0 && count <= KNOWN_MOST && step->payload->base64) {
            *values = malloc((size_t)count * sizeof **values);
            if (!*values)
                NO_MEMORY(error);
            if (payload_read(step->payload, DTYPE_INT64, *values, NULL) != HEALCL_OK)
                (*values)[0] = 0; /* the run refuses it */
        }
    }
    return HEALCL_OK;
}

static uint64_t modulus_hash(const struct audit *audit, const struct storage *storage,
                             int64_t position)
{
    const int64_t *values =
        storage->scalars ? audit->plan->constants.values : audit->known[storage->id];
    const int64_t of_value[2] = {values ? values[position] : position,
                                 values ? -1 : (int64_t)storage->id};
    return XXH3_64bits(of_value, sizeof of_value);
}

size_t audit_list_moduli(const struct step *step, int64_t positions[AUDIT_MODULI_MOST])
{
    const int input = step_moduli(step);
    if (input == NO_INPUT)
        return 0;
    const struct layout own = layout_own_elements(&step->in[input]->layout);
    const struct layout *layouts[] = {&own};
    if (layout_elements(&own) > AUDIT_MODULI_MOST) {
        positions[0] = own.offset;
        return 1;
    }
    size_t count = 0;
    struct walk walk;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk))
        positions[count++] = walk.position[0];
    return count;
}

/* Adds a pair to the class in hand. */
static enum healcl_status add_pair(struct audit *audit, uint32_t kernel, uint64_t modulus,
                                   bool has_modulus, struct healcl_error *error)
{
    const uint64_t of_pair[2] = {modulus, (uint64_t)kernel << 1 | has_modulus};
    uint32_t number = 0, pair;
    bool is_new, is_new_pair;
    if (has_modulus)
        TRY(number_of(&audit->modulus_numbers, modulus, &number, &is_new, error));
    TRY(number_of(&audit->pair_numbers, XXH3_64bits(of_pair, sizeof of_pair), &pair, &is_new_pair,
                  error));
    if (!ARRAY_GROW(audit->class_pairs, audit->class_pair_count, &audit->class_pair_capacity))
        NO_MEMORY(error);
    audit->class_pairs[audit->class_pair_count++] = pair;
    if (!is_new_pair)
        return HEALCL_OK;
    audit->kernels[kernel].moduli++;
    uint32_t *grown = realloc(audit->pair_moduli, ((size_t)pair + 1) * sizeof *grown);
    if (!grown)
        NO_MEMORY(error);
    audit->pair_moduli = grown;
    audit->pair_moduli[pair] = has_modulus ? number : UINT32_MAX;
    grown = realloc(audit->pair_kernels, ((size_t)pair + 1) * sizeof *grown);
    if (!grown)
        NO_MEMORY(error);
    audit->pair_kernels = grown;
    audit->pair_kernels[pair] = kernel;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- classes */

static uint64_t hash_step(const struct audit *audit, const struct step *step, uint32_t kernel)
{
    int64_t positions[AUDIT_MODULI_MOST];
    const int64_t parts[] = {kernel,         step->value[0],    step->value[1],
                             step->residues, step->nonnegative, step->zeros};
    uint64_t hash = XXH64(parts, sizeof parts, 0);
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step_operand(step, i);
        if (!tensor)
            continue;
        const int64_t about[] = {i, tensor->storage->dtype, tensor->layout.rank};
        hash = XXH64(about, sizeof about, hash);
        hash = XXH64(tensor->layout.shape, tensor->layout.rank * sizeof(int64_t), hash);
        hash = XXH64(tensor->layout.stride, tensor->layout.rank * sizeof(int64_t), hash);
    }
    const size_t count = audit_list_moduli(step, positions);
    for (size_t i = 0; i < count; i++) {
        const uint64_t of_modulus =
            modulus_hash(audit, step->in[step_moduli(step)]->storage, positions[i]);
        hash = XXH64(&of_modulus, sizeof of_modulus, hash);
    }
    return hash;
}

static enum healcl_status add_class(struct audit *audit, const struct step *step, uint32_t kernel,
                                    struct healcl_error *error)
{
    const size_t count = audit->draw.class_count;
    if (!ARRAY_GROW(audit->classes, count, &audit->class_capacity))
        NO_MEMORY(error);
    if (!ARRAY_GROW(audit->class_kernels, count, &audit->class_kernel_capacity))
        NO_MEMORY(error);
    audit->class_kernels[count] = kernel;
    struct audit_class *class = &audit->classes[count];
    *class = (struct audit_class){.first_pair = audit->class_pair_count};
    audit->draw.class_count++;
    int64_t positions[AUDIT_MODULI_MOST];
    const size_t moduli = audit_list_moduli(step, positions);
    for (size_t i = 0; i < moduli; i++)
        TRY(add_pair(audit, kernel,
                     modulus_hash(audit, step->in[step_moduli(step)]->storage, positions[i]), true,
                     error));
    if (moduli == 0)
        TRY(add_pair(audit, kernel, 0, false, error));
    class->pair_count = audit->class_pair_count - class->first_pair;
    return HEALCL_OK;
}

double audit_least_cost(const struct audit *audit, const struct step *step)
{
    struct audit_cut cut;
    struct audit_slice slice;
    audit_cut_least(&cut, step, &audit->rates);
    audit_slice_init(&slice, &cut);
    return audit_slice_bytes(&slice) > BYTES_MOST ? -1 : audit_slice_cost(&slice, &audit->rates);
}

/* Whether the device runs a step by a kernel, and the reference can do the same. */
static bool is_auditable(struct audit *audit, const struct step *step,
                         const struct healcl_device *device)
{
    if (!family_of(step->kind) || step_is_left_out(step, device) || step_lack(step, device) ||
        !step->out || layout_elements(&step->out->layout) == 0)
        return false;
    const bool can = step->kind != STEP_VENDOR && audit_least_cost(audit, step) >= 0;
    audit->facts.steps_left_out += !can;
    return can;
}

static enum healcl_status find_classes(struct audit *audit, const struct healcl_device *device,
                                       struct healcl_error *error)
{
    const struct plan *plan = audit->plan;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        uint32_t kernel;
        bool is_new;
        audit->step_classes[i] = AUDIT_NO_CLASS;
        if (!is_auditable(audit, step, device))
            continue;
        TRY(number_kernel(audit, step, device, &kernel, error));
        TRY(number_of(&audit->class_numbers, hash_step(audit, step, kernel),
                      &audit->step_classes[i], &is_new, error));
        if (!is_new)
            continue;
        TRY(add_class(audit, step, kernel, error));
        audit->classes[audit->step_classes[i]].cost = audit_least_cost(audit, step);
    }
    return HEALCL_OK;
}

/* Lists, for each segment, its classes. */
static enum healcl_status find_here(struct audit *audit, struct healcl_error *error)
{
    const struct plan *plan = audit->plan;
    size_t count = 0, capacity = 0;
    for (size_t s = 0; s < plan->segment_count; s++) {
        const struct segment *segment = &plan->segments[s];
        audit->first_here[s] = count;
        for (size_t i = 0; i < segment->step_count; i++) {
            const uint32_t class = audit->step_classes[segment->first_step + i];
            if (class == AUDIT_NO_CLASS || audit->classes[class].mark == s + 1)
                continue;
            audit->classes[class].mark = s + 1;
            if (!ARRAY_GROW(audit->here, count, &capacity))
                NO_MEMORY(error);
            audit->here[count++] = class;
        }
    }
    audit->first_here[plan->segment_count] = count;
    for (size_t i = 0; i < audit->draw.class_count; i++)
        audit->classes[i].mark = 0;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- life */

static enum healcl_status init(struct audit *audit, const struct healcl_device *device,
                               uint64_t seed, struct healcl_error *error)
{
    const struct plan *plan = audit->plan;
    audit->step_classes = calloc(plan->step_count + 1, sizeof *audit->step_classes);
    audit->first_here = calloc(plan->segment_count + 1, sizeof *audit->first_here);
    audit->known = calloc(plan->storage_count + 1, sizeof *audit->known);
    if (!audit->step_classes || !audit->first_here || !audit->known)
        NO_MEMORY(error);
    TRY(read_known(audit, error));
    TRY(find_classes(audit, device, error));
    TRY(find_here(audit, error));
    audit->pair_seen = calloc(audit->pair_numbers.count + 1, sizeof *audit->pair_seen);
    audit->modulus_seen = calloc(audit->modulus_numbers.count + 1, sizeof *audit->modulus_seen);
    if (!audit->pair_seen || !audit->modulus_seen)
        NO_MEMORY(error);
    audit->facts.pairs = audit->pair_numbers.count;
    audit->facts.moduli = audit->modulus_numbers.count;
    audit->facts.kernels = audit->kernels;
    audit->draw.classes = audit->classes;
    audit->draw.class_pairs = audit->class_pairs;
    audit->draw.pair_seen = audit->pair_seen;
    audit_draw_init(&audit->draw, seed);
    audit->of_slice = (struct plan){.storage_count = STEP_OPERANDS, .constants = plan->constants};
    return reference_create(&audit->of_slice, &audit->reference, error);
}

enum healcl_status audit_create(const struct plan *plan, const struct healcl_device *device,
                                double share, uint64_t seed, struct audit **result,
                                struct healcl_error *error)
{
    /* Before anything is measured. */
    static const struct audit_rates rates = {.fixed = 30e3, .per_byte = 0.3};
    enum { VISIT_NANOSECONDS = 20 };
    struct audit *audit = calloc(1, sizeof *audit);
    if (!audit)
        NO_MEMORY(error);
    audit->plan = plan;
    audit->random = seed;
    audit->rates = rates;
    for (int kind = 0; kind < STEP_KINDS; kind++)
        audit->rates.per_visit[kind] = VISIT_NANOSECONDS;
    audit->draw.share = share;
    enum healcl_status status = init(audit, device, seed, error);
    if (status != HEALCL_OK) {
        audit_free(audit);
        return status;
    }
    *result = audit;
    return HEALCL_OK;
}

void audit_free(struct audit *audit)
{
    if (!audit)
        return;
    for (size_t i = 0; audit->known && i < audit->plan->storage_count; i++)
        free(audit->known[i]);
    for (size_t i = 0; i < PICKS_MOST; i++)
        free(audit->pending[i].memory);
    for (size_t i = 0; i < audit->facts.kernel_count; i++)
        free((void *)(uintptr_t)audit->kernels[i].name);
    numbers_release(&audit->class_numbers);
    numbers_release(&audit->kernel_numbers);
    numbers_release(&audit->modulus_numbers);
    numbers_release(&audit->pair_numbers);
    reference_free(audit->reference);
    free(audit->known);
    free(audit->kernels);
    free(audit->classes);
    free(audit->class_kernels);
    free(audit->class_pairs);
    free(audit->pair_moduli);
    free(audit->pair_kernels);
    free(audit->pair_seen);
    free(audit->modulus_seen);
    free(audit->step_classes);
    free(audit->here);
    free(audit->first_here);
    free(audit);
}

/* ---------------------------------------------------------------- drawing */

void audit_begin_run(struct audit *audit)
{
    audit->failed = NULL;
    audit->facts.difference = NULL;
    audit->pick_count = audit->pick = audit->pending_count = 0;
    audit_draw_begin(&audit->draw, monotonic_nanoseconds());
}

void audit_end_run(struct audit *audit)
{
    audit_draw_end(&audit->draw, monotonic_nanoseconds());
    audit->facts.nanoseconds = (uint64_t)audit->draw.spent;
    audit->facts.run_nanoseconds = (uint64_t)audit->draw.elapsed;
}

/* One of the segment's steps of a class, any of them. */
static size_t draw_step(struct audit *audit, const struct segment *segment, uint32_t class)
{
    size_t found = SIZE_MAX;
    uint64_t count = 0;
    for (size_t i = segment->first_step; i < segment->first_step + segment->step_count; i++)
        if (audit->step_classes[i] == class && audit_random(&audit->random) % ++count == 0)
            found = i;
    return found;
}

void audit_begin_segment(struct audit *audit, const struct segment *segment)
{
    const size_t number = (size_t)(segment - audit->plan->segments);
    const size_t first = audit->first_here[number], here = audit->first_here[number + 1] - first;
    uint32_t classes[PICKS_MOST];
    audit->pick_count = audit->pick = 0;
    if (here == 0)
        return; /* there is no list where that is so of all segments */
    const size_t count = audit_draw_classes(&audit->draw, monotonic_nanoseconds(),
                                            audit->here + first, here, classes, PICKS_MOST);
    for (size_t i = 0; i < count; i++) {
        const size_t step = draw_step(audit, segment, classes[i]);
        size_t at = audit->pick_count++;
        for (; at > 0 && audit->picks[at - 1].step > step; at--)
            audit->picks[at] = audit->picks[at - 1];
        audit->picks[at].step = step;
        audit->picks[at].class = classes[i];
    }
}

bool audit_takes(struct audit *audit, const struct step *step)
{
    const size_t number = (size_t)(step - audit->plan->steps);
    while (audit->pick < audit->pick_count && audit->picks[audit->pick].step < number)
        audit->pick++;
    return audit->pick < audit->pick_count && audit->picks[audit->pick].step == number &&
           audit->pending_count < PICKS_MOST;
}

/* ---------------------------------------------------------------- reading */

/* As much of the step as is worth it. */
static void cut_step(struct audit *audit, struct pending *pending, const struct step *step)
{
    const struct audit_class *class = &audit->classes[pending->class];
    audit_cut_least(&pending->cut, step, &audit->rates);
    const struct audit_cut least = pending->cut;
    if (audit->draw.least > class->cost) {
        audit_cut_grow(&pending->cut, &audit->rates, audit->draw.least);
        audit_slice_init(&pending->slice, &pending->cut);
        if (audit_slice_bytes(&pending->slice) > BYTES_MOST)
            pending->cut = least;
    }
    audit_cut_place(&pending->cut, &audit->random);
    audit_slice_init(&pending->slice, &pending->cut);
}

static size_t round_up(uint64_t bytes)
{
    enum { ALIGNMENT = 8 };
    return (size_t)(bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Memory for the operands' storages, and for out's twice more. */
static enum healcl_status make_room(struct pending *pending, struct healcl_error *error)
{
    size_t bytes = 0;
    size_t places[STEP_OPERANDS] = {0};
    const size_t out_bytes = round_up(storage_bytes(pending->slice.step.out->storage));
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step_operand(&pending->slice.step, i);
        places[i] = bytes;
        if (tensor && !tensor->storage->scalars)
            bytes += round_up(storage_bytes(tensor->storage));
    }
    const size_t actual = bytes;
    bytes += 2 * out_bytes;
    if (bytes > pending->capacity) {
        free(pending->memory);
        pending->capacity = 0;
        pending->memory = malloc(bytes);
        if (!pending->memory)
            NO_MEMORY(error);
        pending->capacity = bytes;
    }
    for (int i = 0; i < STEP_OPERANDS; i++)
        pending->before[i] = pending->memory + places[i];
    pending->actual = pending->memory + actual;
    pending->expected = pending->actual + out_bytes;
    return HEALCL_OK;
}

/* Reads what a slice's operand spans to memory; the host may have it. */
static enum healcl_status read_operand(struct pending *pending, struct launcher *launcher, int i,
                                       char *memory, struct healcl_error *error)
{
    const struct storage *whole = step_operand(pending->cut.step, i)->storage;
    const struct storage *part = &pending->slice.storages[i];
    const uint64_t first = (uint64_t)pending->slice.first[i] * dtype_size(whole->dtype);
    const char *contents = launcher->storages[whole->id].contents;
    const struct buffer *buffer;
    if (contents) {
        memcpy(memory, contents + first, storage_bytes(part));
        return HEALCL_OK;
    }
    pending->spent += COMMAND_NANOSECONDS;
    TRY(launcher_buffer(launcher, whole, &buffer, error));
    return device_read_later(launcher->device, buffer, first, storage_bytes(part), memory, error);
}

static enum healcl_status read_before(struct pending *pending, struct launcher *launcher,
                                      struct healcl_error *error)
{
    const struct step *slice = &pending->slice.step;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step_operand(slice, i);
        if (!tensor || tensor->storage->scalars)
            continue;
        if (i == STEP_OUT && !step_adds(slice))
            memset(pending->before[i], 0, storage_bytes(tensor->storage));
        else
            TRY(read_operand(pending, launcher, i, pending->before[i], error));
    }
    return HEALCL_OK;
}

enum healcl_status audit_before_step(struct audit *audit, struct launcher *launcher,
                                     struct healcl_error *error)
{
    const uint64_t start = monotonic_nanoseconds();
    struct pending *pending = &audit->pending[audit->pending_count];
    pending->class = audit->picks[audit->pick].class;
    pending->spent = 0;
    cut_step(audit, pending, &audit->plan->steps[audit->picks[audit->pick].step]);
    TRY(make_room(pending, error));
    audit->has_before = true; /* also where not all of it could be enqueued */
    TRY(read_before(pending, launcher, error));
    pending->spent += (double)(monotonic_nanoseconds() - start);
    return HEALCL_OK;
}

enum healcl_status audit_after_step(struct audit *audit, struct launcher *launcher, bool launched,
                                    struct healcl_error *error)
{
    const uint64_t start = monotonic_nanoseconds();
    struct pending *pending = &audit->pending[audit->pending_count];
    if (!launched) { /* the host has done it, and has waited for the device */
        audit->has_before = false;
        return HEALCL_OK;
    }
    TRY(read_operand(pending, launcher, STEP_OUT, pending->actual, error));
    pending->spent += (double)(monotonic_nanoseconds() - start) +
                      audit->rates.per_byte * (double)audit_slice_bytes(&pending->slice);
    audit->pending_count++;
    audit->has_before = false;
    return HEALCL_OK;
}

void audit_drop(struct audit *audit, struct healcl_device *device)
{
    if (audit->pending_count > 0 || audit->has_before)
        (void)!device_finish(device, NULL);
    audit->pending_count = 0;
    audit->has_before = false;
}

/* ---------------------------------------------------------------- what is told */

const struct healcl_audit_facts *audit_facts(const struct audit *audit)
{
    return &audit->facts;
}

struct audit_failure audit_failure(const struct audit *audit)
{
    struct audit_failure failure = {.slice = NULL};
    if (!audit || !audit->failed)
        return failure;
    failure.slice = &audit->failed->slice;
    failure.element = audit->failed_element;
    for (int i = 0; i < STEP_OPERANDS; i++)
        failure.before[i] = audit->failed->before[i];
    return failure;
}
