#include "run/audit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "kernels/variant.h"
#include "plan/axes.h"
#include "reference/reference.h"
#include "run/run.h"
#include "run/slice.h"

enum {
    PENDING_MOST = 16,          /* of a segment */
    BYTES_MOST = 16 << 20,      /* of an audit */
    FIXED_NANOSECONDS = 30000,  /* overhead of an audit, besides its work */
    COMMAND_NANOSECONDS = 8000, /* time of a read in the device and its driver, with PoCL */
    VISIT_NANOSECONDS = 20,     /* initial estimate: reference time for each of step_visits */
    SAVED_RUNS = 4,             /* runs for which a balance may be saved up */
    AUDITS_A_RUN = 2,           /* fewest audits that a run should have */
    NO_KERNEL = UINT16_MAX,
};

/* A step of the plan, with the state of its audits. */
struct audited_step {
    uint32_t kernel; /* or NO_KERNEL: it is not audited */
    bool is_audited, is_drawn;
    double index_cost; /* nanoseconds per index of its batch axis */
    int64_t most;      /* most indices of it whose audit stays within BYTES_MOST */
    uint64_t run;      /* number of the last run that had it */
};

/* A pending audit. */
struct pending {
    const struct step *step;
    struct slices cut; /* its batch axis */
    struct slice slice;
    char *memory;
    char *before[STEP_OPERANDS]; /* in memory */
    char *actual, *expected;     /* out's storage */
    double spent;
};

struct audit {
    const struct plan *plan;
    double share;
    uint64_t random;
    struct audited_step *steps; /* of the plan */
    size_t *order, order_count; /* the audited steps, in the order of their turns */
    double balance;          /* nanoseconds available when a run begins; negative: more was spent */
    double dearest;          /* nanoseconds: the highest of the steps' least costs */
    double last_run, target; /* nanoseconds; most an audit costs, unless its least cost is higher */
    uint64_t run, run_start; /* number of the run; nanoseconds */
    size_t step;             /* step of the plan that audit_takes was called for */
    struct pending pending[PENDING_MOST];
    size_t pending_count;
    bool has_before;
    /* The reference executor, for a plan of one slice. */
    struct plan of_slice;
    struct reference *reference;
    struct healcl_audit_facts facts;
    struct healcl_audit_kernel *kernels;
    size_t kernel_capacity;
    struct healcl_audit_difference difference;
};

/* SplitMix64, by Guy Steele, Doug Lea and Christine Flood, 2014. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* ---------------------------------------------------------------- kernels and steps */

static double least_cost(const struct audited_step *about)
{
    return FIXED_NANOSECONDS + about->index_cost;
}

static void note_cost(struct audit *audit, const struct audited_step *about)
{
    if (least_cost(about) > audit->dearest)
        audit->dearest = least_cost(about);
}

static enum healcl_status number_kernel(struct audit *audit, const struct step *step,
                                        const struct healcl_device *device, uint32_t *number,
                                        struct healcl_error *error)
{
    char name[96];
    const char *manifest = vendor_kernel_for(audit->plan, step, device).name;
    snprintf(name, sizeof name, "%s, %s, %s", step_traits[step->kind].name,
             manifest ? manifest : variant_for(step, device)->name,
             dtype_name(step->out->storage->dtype));
    for (size_t i = 0; i < audit->facts.kernel_count; i++)
        if (strcmp(audit->kernels[i].name, name) == 0) {
            *number = (uint32_t)i;
            return HEALCL_OK;
        }
    char *kept = strdup(name);
    if (!kept || !ARRAY_GROW(audit->kernels, audit->facts.kernel_count, &audit->kernel_capacity)) {
        free(kept);
        NO_MEMORY(error);
    }
    *number = (uint32_t)audit->facts.kernel_count;
    audit->kernels[audit->facts.kernel_count++] = (struct healcl_audit_kernel){.name = kept};
    return HEALCL_OK;
}

/* The outermost axis of a step's output that can be cut: the batch axis, if there is one. Its size
 * is 1 if no axis can be cut. */
static struct slices batch_of(const struct step *step)
{
    struct slices cut = {.size = 1};
    struct step_axes axes;
    const struct layout *out = &step->out->layout;
    uint32_t axis = 0;
    step_axes(step, &axes);
    while (axis < out->rank && (axes.names[STEP_OUT][axis] == '*' || out->shape[axis] <= 1))
        axis++;
    if (axis < out->rank)
        cut.size = out->shape[axis];
    for (int i = 0; i < STEP_OPERANDS; i++)
        cut.axis[i] =
            axis < out->rank ? (int8_t)step_axis(&axes, i, axes.names[STEP_OUT][axis]) : NO_AXIS;
    return cut;
}

/* Bytes read for a slice, including the output after the launch. */
static uint64_t audit_bytes(const struct step *slice)
{
    uint64_t bytes = 0;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step_operand(slice, i);
        if (tensor && !tensor->storage->scalars)
            bytes += storage_bytes(tensor->storage) * (i == STEP_OUT && step_adds(slice) ? 2 : 1);
    }
    return bytes;
}

/* Whether the device runs a step with a kernel that the reference can repeat. */
static bool is_auditable(struct audit *audit, size_t number, const struct healcl_device *device)
{
    const struct step *step = &audit->plan->steps[number];
    struct audited_step *about = &audit->steps[number];
    if (!family_of(step->kind) || step_is_left_out(step, device) || step_obstacle(step, device) ||
        !step->out || layout_elements(&step->out->layout) == 0)
        return false;
    const struct slices cut = batch_of(step);
    struct slice slice;
    slice_init(&slice, step, &cut, 0, 1, 0, true);
    const uint64_t bytes = audit_bytes(&slice.step);
    about->index_cost = (double)bytes + (double)step_visits(&slice.step) * VISIT_NANOSECONDS;
    about->most = BYTES_MOST / (int64_t)(bytes > 0 ? bytes : 1);
    const bool can = step->kind != STEP_VENDOR && about->most > 0;
    audit->facts.steps_left_out += !can;
    return can;
}

static enum healcl_status find_steps(struct audit *audit, const struct healcl_device *device,
                                     struct healcl_error *error)
{
    for (size_t i = 0; i < audit->plan->step_count; i++) {
        struct audited_step *about = &audit->steps[i];
        about->kernel = NO_KERNEL;
        if (!is_auditable(audit, i, device))
            continue;
        TRY(number_kernel(audit, &audit->plan->steps[i], device, &about->kernel, error));
        audit->kernels[about->kernel].steps++;
        audit->order[audit->order_count++] = i;
        note_cost(audit, about);
    }
    audit->facts.kernels = audit->kernels;
    audit->facts.steps = audit->order_count;
    return HEALCL_OK;
}

/* Puts steps in random order. One step of each kernel comes before all others. */
static void order_steps(struct audit *audit)
{
    size_t front = 0, *order = audit->order;
    for (size_t i = audit->order_count; i > 1; i--) {
        const size_t j = (size_t)(next_random(&audit->random) % i), held = order[i - 1];
        order[i - 1] = order[j];
        order[j] = held;
    }
    for (size_t i = 0; i < audit->order_count; i++) {
        const size_t step = order[i];
        size_t before = 0;
        while (before < front && audit->steps[order[before]].kernel != audit->steps[step].kernel)
            before++;
        if (before < front)
            continue;
        order[i] = order[front];
        order[front++] = step;
    }
}

/* ---------------------------------------------------------------- life */

static enum healcl_status audit_init(struct audit *audit, const struct healcl_device *device,
                                     struct healcl_error *error)
{
    const struct plan *plan = audit->plan;
    audit->steps = calloc(plan->step_count + 1, sizeof *audit->steps);
    audit->order = calloc(plan->step_count + 1, sizeof *audit->order);
    NEED_MEMORY(audit->steps && audit->order, error);
    TRY(find_steps(audit, device, error));
    order_steps(audit);
    audit->of_slice = (struct plan){.storage_count = STEP_OPERANDS, .constants = plan->constants};
    return reference_create(&audit->of_slice, &audit->reference, error);
}

enum healcl_status audit_create(const struct plan *plan, const struct healcl_device *device,
                                double share, uint64_t seed, struct audit **result,
                                struct healcl_error *error)
{
    struct audit *audit = calloc(1, sizeof *audit);
    NEED_MEMORY(audit, error);
    audit->plan = plan;
    audit->share = share;
    audit->random = seed;
    enum healcl_status status = audit_init(audit, device, error);
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
    for (size_t i = 0; i < PENDING_MOST; i++)
        free(audit->pending[i].memory);
    for (size_t i = 0; i < audit->facts.kernel_count; i++)
        free((void *)(uintptr_t)audit->kernels[i].name);
    reference_free(audit->reference);
    free(audit->kernels);
    free(audit->steps);
    free(audit->order);
    free(audit);
}

/* ---------------------------------------------------------------- drawing */

void audit_begin_run(struct audit *audit)
{
    audit->facts.difference = NULL;
    audit->pending_count = 0;
    audit->run++;
    audit->run_start = monotonic_nanoseconds();
    audit->target = audit->share * audit->last_run / AUDITS_A_RUN;
}

/* Limits the balance. The first run, which builds kernels, would leave one that is too large. */
void audit_end_run(struct audit *audit)
{
    const double length = (double)(monotonic_nanoseconds() - audit->run_start);
    const double usual = length < audit->last_run ? length : audit->last_run;
    const double saved = audit->share * SAVED_RUNS * usual;
    const double most = saved > 2 * audit->dearest ? saved : 2 * audit->dearest;
    audit->balance += audit->share * length;
    if (audit->balance > most)
        audit->balance = most;
    audit->last_run = audit->run == 1 ? 0 : length;
    audit->facts.run_nanoseconds += (uint64_t)length;
}

/* Chooses the steps whose turns come next. The balance is saved for steps ahead of them that were
 * in this run or the last one. */
void audit_begin_segment(struct audit *audit, const struct segment *segment)
{
    const size_t first = segment->first_step, end = first + segment->step_count;
    const double in_run = (double)(monotonic_nanoseconds() - audit->run_start);
    const double balance = audit->balance + audit->share * in_run;
    double reserved = 0;
    for (size_t i = first; i < end; i++)
        audit->steps[i].run = audit->run;
    for (size_t i = 0; i < audit->order_count; i++) {
        const size_t step = audit->order[i];
        struct audited_step *about = &audit->steps[step];
        about->is_drawn = false;
        if (about->run == 0 || about->run + 1 < audit->run)
            continue; /* its next run is unknown */
        const double cost = least_cost(about);
        reserved += cost > audit->target ? cost : audit->target;
        about->is_drawn = reserved <= balance && step >= first && step < end;
    }
}

bool audit_takes(struct audit *audit, const struct step *step)
{
    audit->step = (size_t)(step - audit->plan->steps);
    return audit->steps[audit->step].is_drawn && audit->pending_count < PENDING_MOST;
}

/* ---------------------------------------------------------------- reading */

/* Takes the whole step, or as much of its batch as audit->target nanoseconds allow. */
static void cut_step(struct audit *audit, struct pending *pending)
{
    const struct audited_step *about = &audit->steps[audit->step];
    pending->step = &audit->plan->steps[audit->step];
    pending->cut = batch_of(pending->step);
    const int64_t full = pending->cut.size;
    const double paid = (audit->target - FIXED_NANOSECONDS) / about->index_cost;
    int64_t size = full < about->most ? full : about->most;
    if (paid < (double)size)
        size = paid > 1 ? (int64_t)paid : 1;
    const uint64_t places = (uint64_t)((full + size - 1) / size);
    const int64_t start = (int64_t)(next_random(&audit->random) % places) * size;
    slice_init(&pending->slice, pending->step, &pending->cut,
               start + size <= full ? start : full - size, size, 0, true);
}

/* Bytes of an operand's memory, rounded up to a multiple of 8. */
static size_t room_of(const struct storage *storage)
{
    return storage->scalars ? 0 : (size_t)(storage_bytes(storage) + 7) / 8 * 8;
}

/* Reads the span of a slice's operand into memory. The host may already have it. */
static enum healcl_status read_operand(struct pending *pending, struct launcher *launcher, int i,
                                       char *memory, struct healcl_error *error)
{
    const struct storage *whole = step_operand(pending->step, i)->storage;
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

/* Reads the operands into the memory of their storages. For the output, it does so twice more. */
static enum healcl_status read_before(struct audit *audit, struct pending *pending,
                                      struct launcher *launcher, struct healcl_error *error)
{
    const struct step *slice = &pending->slice.step;
    const size_t out = room_of(slice->out->storage);
    size_t bytes = 2 * out;
    for (int i = 0; i < STEP_OPERANDS; i++)
        bytes += step_operand(slice, i) ? room_of(step_operand(slice, i)->storage) : 0;
    free(pending->memory);
    char *next = pending->memory = malloc(bytes);
    NEED_MEMORY(pending->memory, error);
    pending->actual = next;
    pending->expected = next + out;
    next += 2 * out;
    audit->has_before = true; /* even if not all of it can be enqueued */
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step_operand(slice, i);
        if (!tensor || tensor->storage->scalars)
            continue;
        pending->before[i] = next;
        next += room_of(tensor->storage);
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
    pending->spent = 0;
    cut_step(audit, pending);
    TRY(read_before(audit, pending, launcher, error));
    pending->spent += (double)(monotonic_nanoseconds() - start);
    return HEALCL_OK;
}

enum healcl_status audit_after_step(struct audit *audit, struct launcher *launcher, bool launched,
                                    struct healcl_error *error)
{
    const uint64_t start = monotonic_nanoseconds();
    struct pending *pending = &audit->pending[audit->pending_count];
    if (!launched) { /* the host ran it, and waited for the device */
        audit->has_before = false;
        return HEALCL_OK;
    }
    TRY(read_operand(pending, launcher, STEP_OUT, pending->actual, error));
    pending->spent += (double)(monotonic_nanoseconds() - start);
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

/* ---------------------------------------------------------------- judging */

/* Returns the number of output elements that differ. *first: the place of the first one in C order.
 * Notes its values. */
static uint64_t audit_compare(struct audit *audit, const struct pending *pending, int64_t *first)
{
    const struct tensor *out = pending->slice.step.out;
    const enum dtype dtype = out->storage->dtype;
    const struct layout *layouts[] = {&out->layout};
    struct walk walk;
    int64_t visited = 0;
    uint64_t different = 0;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk), visited++) {
        const int64_t actual = dtype_load(dtype, pending->actual, walk.position[0]);
        const int64_t expected = dtype_load(dtype, pending->expected, walk.position[0]);
        if (actual == expected || different++ > 0)
            continue;
        *first = visited;
        audit->difference.actual = actual;
        audit->difference.expected = expected;
    }
    return different;
}

/* Moves an audited step behind all others. */
static void move_to_end(struct audit *audit, size_t step)
{
    size_t at = 0;
    while (audit->order[at] != step)
        at++;
    for (; at + 1 < audit->order_count; at++)
        audit->order[at] = audit->order[at + 1];
    audit->order[at] = step;
}

static void note_audit(struct audit *audit, const struct pending *pending, uint64_t elements)
{
    const size_t number = (size_t)(pending->step - audit->plan->steps);
    struct audited_step *about = &audit->steps[number];
    struct healcl_audit_kernel *kernel = &audit->kernels[about->kernel];
    kernel->audits++;
    kernel->elements += elements;
    kernel->steps_audited += !about->is_audited;
    audit->facts.audits++;
    audit->facts.elements += elements;
    audit->facts.steps_audited += !about->is_audited;
    about->is_audited = true;
    move_to_end(audit, number);
}

static void note_difference(struct audit *audit, const struct pending *pending, int64_t position,
                            uint64_t different, uint64_t elements)
{
    const struct step *step = pending->step;
    const struct origin *origin = step_origin(step, NO_INPUT);
    struct healcl_audit_difference *difference = &audit->difference;
    difference->entry = origin->entry;
    difference->operation = origin->name;
    difference->step = (size_t)(step - audit->plan->steps);
    difference->kernel = audit->kernels[audit->steps[difference->step].kernel].name;
    difference->element =
        (uint64_t)slice_element(&pending->slice.step.out->layout, pending->cut.axis[STEP_OUT],
                                pending->slice.start, pending->cut.size, position);
    layout_index_text(&step->out->layout, (int64_t)difference->element, difference->index);
    difference->different = different;
    difference->compared = elements;
    audit->facts.difference = difference;
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

/* The last audit's time has a weight of one half in the estimate. */
static void note_time(struct audit *audit, const struct pending *pending, double spent)
{
    struct audited_step *about = &audit->steps[pending->step - audit->plan->steps];
    const double of_indices = spent > FIXED_NANOSECONDS + 1 ? spent - FIXED_NANOSECONDS : 1;
    about->index_cost = (about->index_cost + of_indices / (double)pending->slice.size) / 2;
    note_cost(audit, about);
}

static enum healcl_status audit_judge_pending(struct audit *audit, struct pending *pending,
                                              struct healcl_error *error)
{
    int64_t first = 0;
    const uint64_t elements = (uint64_t)layout_elements(&pending->slice.step.out->layout);
    struct healcl_error refusal = {.status = HEALCL_OK};
    struct healcl_audit_difference *difference = &audit->difference;
    *difference = (struct healcl_audit_difference){.entry = 0};
    const enum healcl_status status = run_reference(audit, pending, &refusal);
    const bool is_refused = status == HEALCL_REFUSED; /* but the device has run it */
    if (status != HEALCL_OK && !is_refused) {
        error_move(error, &refusal);
        return status;
    }
    const uint64_t different = is_refused ? elements : audit_compare(audit, pending, &first);
    if (!is_refused)
        note_audit(audit, pending, elements);
    if (different == 0)
        return HEALCL_OK;
    note_difference(audit, pending, first, different, elements);
    if (is_refused)
        (void)ERROR(error, HEALCL_DIFFERENT, "audit: the host reference refuses what %s took: %s",
                    difference->kernel, refusal.message);
    else
        (void)ERROR(error, HEALCL_DIFFERENT,
                    "audit: step %zu (%s) gives %" PRId64 " at %s, the host reference %" PRId64
                    "; %" PRIu64 " of %" PRIu64 " elements differ",
                    difference->step, difference->kernel, difference->actual, difference->index,
                    difference->expected, different, elements);
    error_prefix_step(error, pending->step, NO_INPUT);
    healcl_error_clear(&refusal);
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
        status = audit_judge_pending(audit, pending, error);
        const double spent = (double)(monotonic_nanoseconds() - start) + pending->spent;
        audit->balance -= spent;
        audit->facts.nanoseconds += (uint64_t)spent;
        if (status == HEALCL_OK)
            note_time(audit, pending, spent);
    }
    return status;
}

/* ---------------------------------------------------------------- what is reported */

const struct healcl_audit_facts *audit_facts(const struct audit *audit)
{
    return &audit->facts;
}
