/* Steps that were audited, compared with the host reference. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "run/audit_parts.h"

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
    const size_t count = audit_list_moduli(pending->cut.step, whole);
    const size_t part_count = audit_list_moduli(&pending->slice.step, part);
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

static enum healcl_status run_reference(struct audit *audit, const struct pending *pending,
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
    const double least = audit_least_cost(audit, pending->cut.step);
    class->cost = least > 0 ? least : class->cost;
    if (class->cost > audit->draw.dearest)
        audit->draw.dearest = class->cost;
}

static enum healcl_status judge(struct audit *audit, struct pending *pending,
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
