#include "run/audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "core/array.h"
#include "core/clock.h"
#include "kernels/variant.h"
#include "reference/reference.h"
#include "run/audit_draw.h"
#include "run/run.h"

enum {
    PICKS_MOST = 16,           /* of a segment */
    BYTES_MOST = 16 << 20,     /* of an audit */
    BYTES_KEPT = 1 << 20,      /* of an audit's memory, for the next one */
    COMMAND_NANOSECONDS = 8000 /* that a read takes of the device and its driver, with PoCL */
};

/* An audit in hand. */
struct pending {
    struct audit_cut cut;
    struct audit_slice slice;
    uint32_t class;
    char *memory;
    size_t capacity;
    char *before[STEP_OPERANDS]; /* in memory */
    char *actual, *expected;     /* out's storage */
    double spent, estimate;
};

/* Numbers of what is met, by its hash. */
struct numbers {
    uint64_t *hashes; /* by number */
    size_t count, capacity;
    uint32_t *slots; /* number + 1, or 0; slot_count, a power of two, of them */
    size_t slot_count;
};

struct audit {
    const struct plan *plan;
    struct audit_draw draw;
    uint64_t random;
    struct audit_rates rates;
    /* Classes. */
    struct audit_class *classes;
    uint32_t *class_kernels; /* by class */
    uint32_t *class_pairs, *pair_moduli, *pair_kernels;
    bool *pair_seen, *modulus_seen;
    size_t class_capacity, class_kernel_capacity, class_pair_count, class_pair_capacity;
    struct numbers class_numbers, kernel_numbers, modulus_numbers, pair_numbers;
    uint32_t *step_classes; /* by step, or AUDIT_NO_CLASS */
    uint32_t *here;         /* the classes of one segment after the other */
    size_t *first_here;     /* by segment */
    int64_t **known;        /* by storage: moduli that the transcript uploads */
    /* The segment in hand. */
    struct {
        size_t step;
        uint32_t class;
    } picks[PICKS_MOST];
    size_t pick_count, pick;
    struct pending pending[PICKS_MOST];
    size_t pending_count;
    bool has_before;
    /* The reference, on a plan of one slice. */
    struct plan of_slice;
    struct reference *reference;
    struct healcl_audit_facts facts;
    struct healcl_audit_kernel *kernels;
    struct healcl_audit_difference difference;
    const struct pending *failed;
    int64_t failed_element;
};

/* ---------------------------------------------------------------- numbers */

MUST_CHECK static enum healcl_status enlarge(struct numbers *numbers, struct healcl_error *error)
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
MUST_CHECK static enum healcl_status number_of(struct numbers *numbers, uint64_t hash,
                                               uint32_t *number, bool *is_new,
                                               struct healcl_error *error)
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
    uint64_t *hashes =
        array_with_room(numbers->hashes, numbers->count, &numbers->capacity, sizeof *hashes);
    if (!hashes)
        NO_MEMORY(error);
    numbers->hashes = hashes;
    hashes[numbers->count++] = hash;
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

MUST_CHECK static enum healcl_status number_kernel(struct audit *audit, const struct step *step,
                                                   const struct healcl_device *device,
                                                   uint32_t *number, struct healcl_error *error)
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
MUST_CHECK static enum healcl_status read_known(struct audit *audit, struct healcl_error *error)
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

/* The positions, in their storage, of the moduli of a step; more than a few count as one. */
static size_t list_moduli(const struct step *step, int64_t positions[AUDIT_MODULI_MOST])
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
MUST_CHECK static enum healcl_status add_pair(struct audit *audit, uint32_t kernel,
                                              uint64_t modulus, bool has_modulus,
                                              struct healcl_error *error)
{
    const uint64_t of_pair[2] = {modulus, (uint64_t)kernel << 1 | has_modulus};
    uint32_t number = 0, pair;
    bool is_new, is_new_pair;
    if (has_modulus)
        TRY(number_of(&audit->modulus_numbers, modulus, &number, &is_new, error));
    TRY(number_of(&audit->pair_numbers, XXH3_64bits(of_pair, sizeof of_pair), &pair, &is_new_pair,
                  error));
    uint32_t *class_pairs = array_with_room(audit->class_pairs, audit->class_pair_count,
                                            &audit->class_pair_capacity, sizeof *class_pairs);
    if (!class_pairs)
        NO_MEMORY(error);
    audit->class_pairs = class_pairs;
    class_pairs[audit->class_pair_count++] = pair;
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
    const size_t count = list_moduli(step, positions);
    for (size_t i = 0; i < count; i++) {
        const uint64_t of_modulus =
            modulus_hash(audit, step->in[step_moduli(step)]->storage, positions[i]);
        hash = XXH64(&of_modulus, sizeof of_modulus, hash);
    }
    return hash;
}

MUST_CHECK static enum healcl_status add_class(struct audit *audit, const struct step *step,
                                               uint32_t kernel, struct healcl_error *error)
{
    const size_t count = audit->draw.class_count;
    struct audit_class *classes =
        array_with_room(audit->classes, count, &audit->class_capacity, sizeof *classes);
    if (!classes)
        NO_MEMORY(error);
    audit->classes = classes;
    uint32_t *kernels = array_with_room(audit->class_kernels, count, &audit->class_kernel_capacity,
                                        sizeof *kernels);
    if (!kernels)
        NO_MEMORY(error);
    audit->class_kernels = kernels;
    kernels[count] = kernel;
    struct audit_class *class = &classes[count];
    *class = (struct audit_class){.first_pair = audit->class_pair_count};
    audit->draw.class_count++;
    int64_t positions[AUDIT_MODULI_MOST];
    const size_t moduli = list_moduli(step, positions);
    for (size_t i = 0; i < moduli; i++)
        TRY(add_pair(audit, kernel,
                     modulus_hash(audit, step->in[step_moduli(step)]->storage, positions[i]), true,
                     error));
    if (moduli == 0)
        TRY(add_pair(audit, kernel, 0, false, error));
    class->pair_count = audit->class_pair_count - class->first_pair;
    return HEALCL_OK;
}

/* What the cheapest audit of a step takes; negative: too much memory. */
static double least_cost(const struct audit *audit, const struct step *step)
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
    const bool can = step->kind != STEP_VENDOR && least_cost(audit, step) >= 0;
    audit->facts.steps_left_out += !can;
    return can;
}

MUST_CHECK static enum healcl_status find_classes(struct audit *audit,
                                                  const struct healcl_device *device,
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
        audit->classes[audit->step_classes[i]].cost = least_cost(audit, step);
    }
    return HEALCL_OK;
}

/* Lists, for each segment, its classes. */
MUST_CHECK static enum healcl_status find_here(struct audit *audit, struct healcl_error *error)
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
            uint32_t *here = array_with_room(audit->here, count, &capacity, sizeof *here);
            if (!here)
                NO_MEMORY(error);
            audit->here = here;
            here[count++] = class;
        }
    }
    audit->first_here[plan->segment_count] = count;
    for (size_t i = 0; i < audit->draw.class_count; i++)
        audit->classes[i].mark = 0;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- life */

MUST_CHECK static enum healcl_status init(struct audit *audit, const struct healcl_device *device,
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
MUST_CHECK static enum healcl_status make_room(struct pending *pending, struct healcl_error *error)
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
MUST_CHECK static enum healcl_status read_operand(struct pending *pending,
                                                  struct launcher *launcher, int i, char *memory,
                                                  struct healcl_error *error)
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

MUST_CHECK static enum healcl_status read_before(struct pending *pending, struct launcher *launcher,
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

/* ---------------------------------------------------------------- comparing */

/* Elements of the output that differ; *first: the first one, in C order. */
static uint64_t compare(const struct pending *pending, int64_t *first, int64_t *actual,
                        int64_t *expected)
{
    const struct tensor *out = pending->slice.step.out;
    const enum dtype dtype = out->storage->dtype;
    const struct layout *layouts[] = {&out->layout};
    struct walk walk;
    int64_t visited = 0;
    uint64_t different = 0;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk), visited++) {
        const int64_t a = dtype_load(dtype, pending->actual, walk.position[0]);
        const int64_t e = dtype_load(dtype, pending->expected, walk.position[0]);
        if (a == e)
            continue;
        if (different++ > 0)
            continue;
        *first = visited;
        *actual = a;
        *expected = e;
    }
    return different;
}

static void note_pair(struct audit *audit, uint32_t pair)
{
    if (audit->pair_seen[pair])
        return;
    audit->pair_seen[pair] = true;
    audit->facts.pairs_audited++;
    audit->kernels[audit->pair_kernels[pair]].moduli_audited++;
    const uint32_t modulus = audit->pair_moduli[pair];
    if (modulus == UINT32_MAX || audit->modulus_seen[modulus])
        return;
    audit->modulus_seen[modulus] = true;
    audit->facts.moduli_audited++;
}

/* The moduli that the slice has are those of the class in the same places. */
static void note_pairs(struct audit *audit, const struct pending *pending)
{
    const struct audit_class *class = &audit->classes[pending->class];
    const uint32_t *pairs = audit->class_pairs + class->first_pair;
    int64_t whole[AUDIT_MODULI_MOST], part[AUDIT_MODULI_MOST];
    const size_t count = list_moduli(pending->cut.step, whole);
    const size_t part_count = list_moduli(&pending->slice.step, part);
    if (count <= 1) {
        note_pair(audit, pairs[0]);
        return;
    }
    const int input = step_moduli(pending->cut.step);
    for (size_t i = 0; i < part_count; i++)
        for (size_t j = 0; j < count; j++)
            if (whole[j] == part[i] + pending->slice.first[input])
                note_pair(audit, pairs[j]);
}

static void note_audit(struct audit *audit, const struct pending *pending, uint64_t elements)
{
    struct healcl_audit_kernel *kernel = &audit->kernels[audit->class_kernels[pending->class]];
    kernel->steps++;
    kernel->elements += elements;
    audit->facts.steps++;
    audit->facts.elements += elements;
    note_pairs(audit, pending);
    audit_draw_done(&audit->draw, pending->class);
}

static void note_difference(struct audit *audit, const struct pending *pending, int64_t position,
                            uint64_t different, uint64_t elements)
{
    const struct step *step = pending->cut.step;
    const struct origin *origin = step_origin(step, NO_INPUT);
    struct healcl_audit_difference *difference = &audit->difference;
    difference->entry = origin->entry;
    difference->operation = origin->name;
    difference->step = (size_t)(step - audit->plan->steps);
    difference->kernel = audit->kernels[audit->class_kernels[pending->class]].name;
    difference->element = (uint64_t)audit_cut_element(&pending->cut, position);
    layout_index_text(&step->out->layout, (int64_t)difference->element, difference->index);
    difference->different = different;
    difference->compared = elements;
    audit->facts.difference = difference;
    audit->failed = pending;
    audit->failed_element = position;
}

MUST_CHECK static enum healcl_status run_reference(struct audit *audit,
                                                   const struct pending *pending,
                                                   struct healcl_error *error)
{
    const struct step *slice = &pending->slice.step;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step_operand(slice, i);
        if (tensor && !tensor->storage->scalars)
            reference_lend(audit->reference, tensor->storage,
                           i == STEP_OUT ? pending->expected : pending->before[i]);
    }
    memcpy(pending->expected, pending->before[STEP_OUT], storage_bytes(slice->out->storage));
    return reference_step(audit->reference, slice, error);
}

/* What is learned of the time. */
static void learn(struct audit *audit, const struct pending *pending, double judging)
{
    enum { MEMORY = 8 };
    struct audit_rates *rates = &audit->rates;
    const enum step_kind kind = pending->slice.step.kind;
    const double visits = (double)step_visits(&pending->slice.step);
    const double fixed =
        pending->spent - rates->per_byte * (double)audit_slice_bytes(&pending->slice);
    rates->fixed += (fixed - rates->fixed) / MEMORY;
    rates->per_visit[kind] += (judging / visits - rates->per_visit[kind]) / MEMORY;
    struct audit_class *class = &audit->classes[pending->class];
    const double least = least_cost(audit, pending->cut.step);
    class->cost = least > 0 ? least : class->cost;
    if (class->cost > audit->draw.dearest)
        audit->draw.dearest = class->cost;
}

MUST_CHECK static enum healcl_status judge(struct audit *audit, struct pending *pending,
                                           struct healcl_error *error)
{
    int64_t first = 0;
    const uint64_t elements = (uint64_t)layout_elements(&pending->slice.step.out->layout);
    struct healcl_error refusal = {.status = HEALCL_OK};
    struct healcl_audit_difference *difference = &audit->difference;
    enum healcl_status status = run_reference(audit, pending, &refusal);
    if (status == HEALCL_REFUSED) { /* which the device did not */
        *difference = (struct healcl_audit_difference){.entry = 0};
        note_difference(audit, pending, 0, elements, elements);
        (void)ERROR(error, HEALCL_DIFFERENT, "audit: the host reference refuses what %s took: %s",
                    difference->kernel, refusal.message);
        error_prefix_step(error, pending->cut.step, NO_INPUT);
        healcl_error_clear(&refusal);
        return HEALCL_DIFFERENT;
    }
    if (status != HEALCL_OK) {
        if (error)
            *error = refusal;
        return status;
    }
    const uint64_t different = compare(pending, &first, &difference->actual, &difference->expected);
    note_audit(audit, pending, elements);
    if (different == 0)
        return HEALCL_OK;
    note_difference(audit, pending, first, different, elements);
    (void)ERROR(error, HEALCL_DIFFERENT,
                "audit: step %zu (%s) gives %" PRId64 " at %s, the host reference %" PRId64
                "; %" PRIu64 " of %" PRIu64 " elements differ",
                difference->step, difference->kernel, difference->actual, difference->index,
                difference->expected, different, elements);
    error_prefix_step(error, pending->cut.step, NO_INPUT);
    return HEALCL_DIFFERENT;
}

enum healcl_status audit_judge(struct audit *audit, struct healcl_error *error)
{
    enum healcl_status status = HEALCL_OK;
    const size_t count = audit->pending_count;
    audit->pending_count = 0;
    for (size_t i = 0; i < count && status == HEALCL_OK; i++) {
        struct pending *pending = &audit->pending[i];
        const uint64_t start = monotonic_nanoseconds();
        status = judge(audit, pending, error);
        const double judging = (double)(monotonic_nanoseconds() - start);
        audit->draw.spent += judging + pending->spent;
        if (status == HEALCL_OK)
            learn(audit, pending, judging);
        if (status == HEALCL_OK && pending->capacity > BYTES_KEPT) {
            free(pending->memory);
            pending->memory = NULL;
            pending->capacity = 0;
        }
    }
    return status;
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
