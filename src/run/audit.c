#include "run/audit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
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
    double index_cost;   /* nanoseconds per index of its batch axis */
    int64_t index_limit; /* most indices of it whose audit stays within BYTES_MOST */
    uint64_t last_run;   /* number of the last run that had the step */
};

/* A pending audit. */
struct pending {
    const struct step *step;
    struct slices batch; /* its batch axis */
    struct slice slice;  /* the part of the step that is audited */
    /* Contents of the slice's operands before the launch. The reference works on them: they then
     * hold the expected output. */
    char *operands[STEP_OPERANDS];
    char *actual;       /* contents of the output after the launch */
    double nanoseconds; /* spent on this audit so far */
};

struct audit {
    const struct plan *plan;
    double share;
    uint64_t random_state;
    struct arena *arena;        /* owns steps, order and the kernels' names */
    struct audited_step *steps; /* of the plan */
    size_t *order, order_count; /* the audited steps, in the order of their turns */
    double balance;      /* nanoseconds available when a run begins; negative: more was spent */
    double dearest_step; /* nanoseconds: the highest of the steps' least costs */
    double last_run_length, target; /* nanoseconds; target: of one audit, if that is possible */
    uint64_t run, run_start;        /* number of the run; nanoseconds */
    size_t drawn_step;              /* step of the plan that audit_takes was called for */
    struct pending pending[PENDING_MOST];
    size_t pending_count;           /* includes one whose step is being launched */
    struct arena *pending_contents; /* owns what pending audits have read */
    struct plan slice_plan;         /* of the reference: it has the storages of one slice */
    struct reference *reference;
    struct healcl_audit_facts facts;
    struct healcl_audit_kernel *kernels;
    size_t kernel_capacity;
    struct healcl_audit_difference difference;
};

/* The next number of SplitMix64, by Guy Steele, Doug Lea and Christine Flood, 2014. The constants
 * are theirs. A fixed seed gives the same audits again. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* ---------------------------------------------------------------- kernels and steps */

/* Estimated nanoseconds of the smallest audit of a step: one index of its batch axis. */
static double least_cost(const struct audited_step *audited)
{
    return FIXED_NANOSECONDS + audited->index_cost;
}

/* Raises the highest least cost of any step, which the saved time must be able to reach. */
static void note_cost(struct audit *audit, const struct audited_step *audited)
{
    if (least_cost(audited) > audit->dearest_step)
        audit->dearest_step = least_cost(audited);
}

/* Finds the number of the kernel that runs a step on the device, or adds the kernel. A kernel is
 * named by the kind of step, the variant or the vendor's kernel, and the output's dtype. */
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
    const struct healcl_audit_kernel added = {.name = arena_strdup(audit->arena, name)};
    NEED_MEMORY(added.name, error);
    NEED_MEMORY(ARRAY_GROW(audit->kernels, audit->facts.kernel_count, &audit->kernel_capacity),
                error);
    *number = (uint32_t)audit->facts.kernel_count;
    audit->kernels[audit->facts.kernel_count++] = added;
    return HEALCL_OK;
}

/* Finds the axis along which a step can be cut for audits: the outermost axis of its output with
 * more than one index that is not marked '*', because the step mixes its elements. Returns that
 * axis of each operand, and its size; size 1 and NO_AXIS if there is none. */
static struct slices batch_of(const struct step *step)
{
    struct slices batch = {.size = 1};
    struct step_axes axes;
    const struct layout *out = &step->out->layout;
    uint32_t axis = 0;
    step_axes(step, &axes);
    while (axis < out->rank && (axes.names[STEP_OUT][axis] == '*' || out->shape[axis] <= 1))
        axis++;
    const bool can_cut = axis < out->rank;
    const char name = can_cut ? axes.names[STEP_OUT][axis] : '*'; /* no operand has an axis '*' */
    if (can_cut)
        batch.size = out->shape[axis];
    for (int i = 0; i < STEP_OPERANDS; i++)
        batch.axis[i] = (int8_t)step_axis(&axes, i, name);
    return batch;
}

/* Bytes of a slice's operands that an audit reads. An output that the step adds to is read twice:
 * before the launch and after it. */
static uint64_t audit_bytes(const struct step *slice)
{
    uint64_t bytes = 0;
    FOR_EACH_OPERAND (i, tensor, slice)
        if (!tensor->storage->scalars)
            bytes += storage_bytes(tensor->storage) * (i == STEP_OUT && step_adds(slice) ? 2 : 1);
    return bytes;
}

/* Whether an audit can repeat a step of the plan, by number: the device runs it, with a kernel of
 * healcl, and one index of its batch fits in BYTES_MOST. Sets the step's cost and limit for each
 * index. Counts steps that the device runs but no audit can repeat: those of vendors' kernels. */
static bool is_auditable(struct audit *audit, size_t number, const struct healcl_device *device)
{
    const struct step *step = &audit->plan->steps[number];
    struct audited_step *audited = &audit->steps[number];
    const bool has_kernel = family_of(step->kind) != NULL && step->out;
    if (!has_kernel || step_is_left_out(step, device) || step_obstacle(step, device))
        return false; /* the device does not run it */
    if (layout_elements(&step->out->layout) == 0)
        return false;
    const struct slices batch = batch_of(step);
    struct slice slice;
    slice_init(&slice, step, &batch, 0, 1, 0, true); /* index 0 of the batch, on its own storages */
    const uint64_t bytes = audit_bytes(&slice.step);
    /* Nanoseconds: comparing takes about one for each byte. */
    audited->index_cost = (double)bytes + (double)step_visits(&slice.step) * VISIT_NANOSECONDS;
    audited->index_limit = BYTES_MOST / (int64_t)(bytes > 0 ? bytes : 1);
    const bool can_repeat = step->kind != STEP_VENDOR && audited->index_limit > 0;
    if (!can_repeat)
        audit->facts.steps_left_out++;
    return can_repeat;
}

/* Lists the steps of the plan that can be audited, and counts those of each kernel. */
static enum healcl_status find_steps(struct audit *audit, const struct healcl_device *device,
                                     struct healcl_error *error)
{
    for (size_t i = 0; i < audit->plan->step_count; i++) {
        struct audited_step *audited = &audit->steps[i];
        audited->kernel = NO_KERNEL;
        if (!is_auditable(audit, i, device))
            continue;
        TRY(number_kernel(audit, &audit->plan->steps[i], device, &audited->kernel, error));
        audit->kernels[audited->kernel].steps++;
        audit->order[audit->order_count++] = i;
        note_cost(audit, audited);
    }
    audit->facts.kernels = audit->kernels;
    audit->facts.steps = audit->order_count;
    return HEALCL_OK;
}

/* Puts steps in random order (Fisher-Yates). Then moves one step of each kernel to the front, so
 * that each kernel is audited early. */
static void order_steps(struct audit *audit)
{
    size_t front = 0, *order = audit->order;
    for (size_t i = audit->order_count; i > 1; i--) {
        const size_t j = (size_t)(next_random(&audit->random_state) % i), last = order[i - 1];
        order[i - 1] = order[j];
        order[j] = last;
    }
    for (size_t i = 0; i < audit->order_count; i++) {
        const size_t step = order[i];
        size_t earlier = 0; /* a step at the front with the same kernel, if there is one */
        while (earlier < front && audit->steps[order[earlier]].kernel != audit->steps[step].kernel)
            earlier++;
        if (earlier < front)
            continue;
        order[i] = order[front];
        order[front++] = step;
    }
}

/* ---------------------------------------------------------------- life */

/* Allocates the tables of an audit, chooses its steps, and creates a reference. The reference's
 * plan has just the storages of one slice, and the plan's constants. */
static enum healcl_status audit_init(struct audit *audit, const struct healcl_device *device,
                                     struct healcl_error *error)
{
    const struct plan *plan = audit->plan;
    audit->arena = arena_create();
    audit->pending_contents = arena_create();
    NEED_MEMORY(audit->arena && audit->pending_contents, error);
    audit->steps = arena_alloc(audit->arena, plan->step_count * sizeof *audit->steps);
    audit->order = arena_alloc(audit->arena, plan->step_count * sizeof *audit->order);
    NEED_MEMORY(audit->steps && audit->order, error);
    TRY(find_steps(audit, device, error));
    order_steps(audit);
    audit->slice_plan = (struct plan){.storage_count = STEP_OPERANDS, .constants = plan->constants};
    return reference_create(&audit->slice_plan, &audit->reference, error);
}

/* Creates an audit of a session. share: the fraction of the run time that audits may take. seed:
 * chooses the order of steps, so that a failure can be repeated. */
enum healcl_status audit_create(const struct plan *plan, const struct healcl_device *device,
                                double share, uint64_t seed, struct audit **result,
                                struct healcl_error *error)
{
    struct audit *audit = calloc(1, sizeof *audit);
    NEED_MEMORY(audit, error);
    audit->plan = plan;
    audit->share = share;
    audit->random_state = seed;
    enum healcl_status status = audit_init(audit, device, error);
    if (status != HEALCL_OK) {
        audit_free(audit);
        return status;
    }
    *result = audit;
    return HEALCL_OK;
}

/* Frees an audit, also one that was created only in part. All its reads must have ended: they write
 * to its memory. */
void audit_free(struct audit *audit)
{
    if (!audit)
        return;
    reference_free(audit->reference);
    arena_free(audit->pending_contents);
    arena_free(audit->arena);
    free(audit->kernels);
    free(audit);
}

/* ---------------------------------------------------------------- drawing */

/* Begins a run of some segments. An audit may cost so much that a run has about two. */
void audit_begin_run(struct audit *audit)
{
    audit->facts.difference = NULL;
    audit->pending_count = 0;
    audit->run++;
    audit->run_start = monotonic_nanoseconds();
    audit->target = audit->share * audit->last_run_length / AUDITS_A_RUN;
}

/* Adds the run's share of time to the balance, up to a limit: the share of four runs, or two audits
 * of the dearest step, if that is more. The first run does not count as the last one: it builds
 * kernels and takes far longer. */
void audit_end_run(struct audit *audit)
{
    const double length = (double)(monotonic_nanoseconds() - audit->run_start);
    const double usual_length = length < audit->last_run_length ? length : audit->last_run_length;
    const double of_runs = audit->share * SAVED_RUNS * usual_length;
    const double of_dearest = 2 * audit->dearest_step;
    const double limit = of_runs > of_dearest ? of_runs : of_dearest;
    audit->balance += audit->share * length;
    if (audit->balance > limit)
        audit->balance = limit;
    audit->last_run_length = audit->run == 1 ? 0 : length;
    audit->facts.run_nanoseconds += (uint64_t)length;
}

/* Whether a step is likely to run again soon: it was in this run or the last one. */
static bool is_recent(const struct audit *audit, const struct audited_step *audited)
{
    return audited->last_run > 0 && audited->last_run + 1 >= audit->run;
}

/* Draws the steps of a segment whose turns have come, as long as the balance pays for them. Walks
 * all steps of the plan in the order of their turns, and reserves time for each. Steps of other
 * segments also reserve theirs, so that cheap steps cannot always overtake them. */
void audit_begin_segment(struct audit *audit, const struct segment *segment)
{
    const size_t first = segment->first_step, end = first + segment->step_count;
    const double spent_in_run = (double)(monotonic_nanoseconds() - audit->run_start);
    const double balance = audit->balance + audit->share * spent_in_run;
    double reserved = 0; /* nanoseconds, for this step and all whose turns come before */
    for (size_t i = first; i < end; i++)
        audit->steps[i].last_run = audit->run;
    for (size_t i = 0; i < audit->order_count; i++) {
        const size_t step = audit->order[i];
        struct audited_step *audited = &audit->steps[step];
        const bool is_of_segment = step >= first && step < end;
        audited->is_drawn = false;
        if (!is_recent(audit, audited))
            continue;
        const double cost = least_cost(audited);
        reserved += cost > audit->target ? cost : audit->target;
        audited->is_drawn = is_of_segment && reserved <= balance;
    }
}

/* Whether a step that is about to be launched was drawn. Remembers it for audit_before_step. */
bool audit_takes(struct audit *audit, const struct step *step)
{
    audit->drawn_step = (size_t)(step - audit->plan->steps);
    return audit->steps[audit->drawn_step].is_drawn && audit->pending_count < PENDING_MOST;
}

/* ---------------------------------------------------------------- reading */

/* Returns how many indices of a step's batch an audit takes: all, or as many as the target time and
 * BYTES_MOST allow, at least one. */
static int64_t slice_size(const struct audit *audit, const struct audited_step *audited,
                          int64_t batch_size)
{
    const double affordable = (audit->target - FIXED_NANOSECONDS) / audited->index_cost;
    const int64_t most = batch_size < audited->index_limit ? batch_size : audited->index_limit;
    if (affordable >= (double)most)
        return most;
    return affordable > 1 ? (int64_t)affordable : 1;
}

/* Cuts the slice of a step that is audited: a random one of those that the batch consists of. The
 * last slice is moved back to end with the batch. */
static void cut_step(struct audit *audit, struct pending *pending)
{
    const struct audited_step *audited = &audit->steps[audit->drawn_step];
    pending->step = &audit->plan->steps[audit->drawn_step];
    pending->batch = batch_of(pending->step);
    const int64_t batch_size = pending->batch.size;
    const int64_t size = slice_size(audit, audited, batch_size);
    const uint64_t slice_count = (uint64_t)((batch_size + size - 1) / size);
    int64_t start = (int64_t)(next_random(&audit->random_state) % slice_count) * size;
    if (start + size > batch_size)
        start = batch_size - size;
    /* Its storages are those of the reference, from number 0 on; true: for all operands. */
    slice_init(&pending->slice, pending->step, &pending->batch, start, size, 0, true);
}

/* Reads a slice's part of operand i into new memory, *memory. If the host keeps the contents (for
 * tables), copies them. Otherwise enqueues a read, which ends later, and counts its usual time as
 * the audit's. */
static enum healcl_status read_operand(struct audit *audit, struct pending *pending,
                                       struct launcher *launcher, int i, char **memory,
                                       struct healcl_error *error)
{
    const struct storage *whole = pending->step->operands[i]->storage;
    const struct storage *part = &pending->slice.storages[i];
    const uint64_t first = (uint64_t)pending->slice.first[i] * dtype_size(whole->dtype);
    const char *contents = launcher->storages[whole->id].contents;
    const struct buffer *buffer;
    *memory = arena_alloc(audit->pending_contents, storage_bytes(part));
    NEED_MEMORY(*memory, error);
    if (contents) {
        memcpy(*memory, contents + first, storage_bytes(part));
        return HEALCL_OK;
    }
    pending->nanoseconds += COMMAND_NANOSECONDS;
    TRY(launcher_buffer(launcher, whole, &buffer, error));
    return device_read_later(launcher->device, buffer, first, storage_bytes(part), *memory, error);
}

/* Reads the operands of the audited slice as they are before the launch. An output that the step
 * only writes is not read: its elements are 0. */
static enum healcl_status read_before(struct audit *audit, struct pending *pending,
                                      struct launcher *launcher, struct healcl_error *error)
{
    const struct step *slice = &pending->slice.step;
    FOR_EACH_INPUT (i, tensor, slice)
        if (!tensor->storage->scalars)
            TRY(read_operand(audit, pending, launcher, i, &pending->operands[i], error));
    char **out = &pending->operands[STEP_OUT];
    if (step_adds(slice))
        return read_operand(audit, pending, launcher, STEP_OUT, out, error);
    *out = arena_alloc(audit->pending_contents, storage_bytes(slice->out->storage));
    NEED_MEMORY(*out, error);
    return HEALCL_OK;
}

/* Prepares the audit of the step that audit_takes has drawn: reads its inputs, which the launch may
 * overwrite. The audit is pending from now on, even after an error: reads may have begun. */
enum healcl_status audit_before_step(struct audit *audit, struct launcher *launcher,
                                     struct healcl_error *error)
{
    const uint64_t start = monotonic_nanoseconds();
    if (audit->pending_count == 0)
        arena_clear(audit->pending_contents);
    struct pending *pending = &audit->pending[audit->pending_count++];
    pending->nanoseconds = 0;
    cut_step(audit, pending);
    TRY(read_before(audit, pending, launcher, error));
    pending->nanoseconds += (double)(monotonic_nanoseconds() - start);
    return HEALCL_OK;
}

/* Reads the output after the launch. The audit is judged once the segment has been waited for.
 * Nothing is audited if the host ran the step instead, which has waited for the device. */
enum healcl_status audit_after_step(struct audit *audit, struct launcher *launcher, bool launched,
                                    struct healcl_error *error)
{
    const uint64_t start = monotonic_nanoseconds();
    struct pending *pending = &audit->pending[audit->pending_count - 1];
    if (!launched) {
        audit->pending_count--;
        return HEALCL_OK;
    }
    TRY(read_operand(audit, pending, launcher, STEP_OUT, &pending->actual, error));
    pending->nanoseconds += (double)(monotonic_nanoseconds() - start);
    return HEALCL_OK;
}

/* Discards pending audits, after waiting for their reads, which write to the audit's memory. */
void audit_drop(struct audit *audit, struct healcl_device *device)
{
    if (audit->pending_count > 0)
        (void)!device_finish(device, NULL);
    audit->pending_count = 0;
}

/* ---------------------------------------------------------------- judging */

/* Returns the number of output elements that differ. *first: the position of the first one in C
 * order, whose values go to audit->difference. */
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
        const int64_t expected = dtype_load(dtype, pending->operands[STEP_OUT], walk.position[0]);
        if (actual == expected)
            continue;
        if (different++ == 0) {
            *first = visited;
            audit->difference.actual = actual;
            audit->difference.expected = expected;
        }
    }
    return different;
}

/* Moves a step behind all others in the order of turns: it was just audited. */
static void move_to_end(struct audit *audit, size_t step)
{
    size_t index = 0;
    while (audit->order[index] != step)
        index++;
    for (; index + 1 < audit->order_count; index++)
        audit->order[index] = audit->order[index + 1];
    audit->order[index] = step;
}

/* Counts a finished audit: for its kernel, for the step, and in total. The step's next turn comes
 * after all others. */
static void note_audit(struct audit *audit, const struct pending *pending, uint64_t elements)
{
    const size_t number = (size_t)(pending->step - audit->plan->steps);
    struct audited_step *audited = &audit->steps[number];
    struct healcl_audit_kernel *kernel = &audit->kernels[audited->kernel];
    kernel->audits++;
    kernel->elements += elements;
    kernel->steps_audited += !audited->is_audited;
    audit->facts.audits++;
    audit->facts.elements += elements;
    audit->facts.steps_audited += !audited->is_audited;
    audited->is_audited = true;
    move_to_end(audit, number);
}

/* Fills audit->difference, which callers can read: the step, its kernel, and the first element that
 * differs, as an index of the whole tensor. `position` counts in the slice. */
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
        (uint64_t)slice_element(&pending->slice.step.out->layout, pending->batch.axis[STEP_OUT],
                                pending->slice.start, pending->batch.size, position);
    layout_index_text(&step->out->layout, (int64_t)difference->element, difference->index);
    difference->different = different;
    difference->compared = elements;
    audit->facts.difference = difference;
}

/* Repeats the slice on the host, on the contents that its operands had before the launch. They
 * then hold the output that is expected. */
static enum healcl_status run_reference(struct audit *audit, const struct pending *pending,
                                        struct healcl_error *error)
{
    const struct step *slice = &pending->slice.step;
    FOR_EACH_OPERAND (i, tensor, slice)
        if (!tensor->storage->scalars)
            reference_lend(audit->reference, tensor->storage, pending->operands[i]);
    return reference_step(audit->reference, slice, error);
}

/* Corrects the estimated cost of a step by the time of its last audit, which has a weight of one
 * half. */
static void note_time(struct audit *audit, const struct pending *pending, double nanoseconds)
{
    struct audited_step *audited = &audit->steps[pending->step - audit->plan->steps];
    const double without_fixed =
        nanoseconds > FIXED_NANOSECONDS + 1 ? nanoseconds - FIXED_NANOSECONDS : 1;
    audited->index_cost = (audited->index_cost + without_fixed / (double)pending->slice.size) / 2;
    note_cost(audit, audited);
}

/* Makes the error of a difference, whose facts are in audit->difference. refusal: why the host
 * refuses the step; NULL if it has computed other values. Returns HEALCL_DIFFERENT. */
static enum healcl_status differ(const struct audit *audit, const struct step *step,
                                 const char *refusal, struct healcl_error *error)
{
    const struct healcl_audit_difference *difference = &audit->difference;
    if (refusal)
        (void)ERROR(error, HEALCL_DIFFERENT, "audit: the host reference refuses what %s took: %s",
                    difference->kernel, refusal);
    else
        (void)ERROR(error, HEALCL_DIFFERENT,
                    "audit: step %zu (%s) gives %" PRId64 " at %s, the host reference %" PRId64
                    "; %" PRIu64 " of %" PRIu64 " elements differ",
                    difference->step, difference->kernel, difference->actual, difference->index,
                    difference->expected, difference->different, difference->compared);
    error_prefix_step(error, step, NO_INPUT);
    return HEALCL_DIFFERENT;
}

/* Repeats one audited slice on the host and compares the outputs. A refusal by the host counts as a
 * difference of all elements, since the device has accepted the data. Errors: HEALCL_DIFFERENT,
 * with the entry, the element and both values. */
static enum healcl_status audit_judge_pending(struct audit *audit, struct pending *pending,
                                              struct healcl_error *error)
{
    const uint64_t elements = (uint64_t)layout_elements(&pending->slice.step.out->layout);
    struct healcl_error reference_error = {.status = HEALCL_OK};
    int64_t first_different = 0;
    audit->difference = (struct healcl_audit_difference){.entry = 0};
    enum healcl_status status = run_reference(audit, pending, &reference_error);
    if (status == HEALCL_OK) {
        const uint64_t different = audit_compare(audit, pending, &first_different);
        note_audit(audit, pending, elements);
        if (different == 0)
            return HEALCL_OK;
        note_difference(audit, pending, first_different, different, elements);
        return differ(audit, pending->step, NULL, error);
    }
    if (status != HEALCL_REFUSED) {
        error_move(error, &reference_error);
        return status;
    }
    note_difference(audit, pending, 0, elements, elements);
    status = differ(audit, pending->step, reference_error.message, error);
    healcl_error_clear(&reference_error);
    return status;
}

/* Judges all pending audits, and takes their time from the balance. Stops at the first difference.
 */
enum healcl_status audit_judge(struct audit *audit, struct healcl_error *error)
{
    enum healcl_status status = HEALCL_OK;
    const size_t count = audit->pending_count;
    audit->pending_count = 0;
    for (size_t i = 0; i < count && status == HEALCL_OK; i++) {
        struct pending *pending = &audit->pending[i];
        const uint64_t start = monotonic_nanoseconds();
        status = audit_judge_pending(audit, pending, error);
        pending->nanoseconds += (double)(monotonic_nanoseconds() - start);
        audit->balance -= pending->nanoseconds;
        audit->facts.nanoseconds += (uint64_t)pending->nanoseconds;
        if (status == HEALCL_OK)
            note_time(audit, pending, pending->nanoseconds);
    }
    return status;
}

/* ---------------------------------------------------------------- what is reported */

const struct healcl_audit_facts *audit_facts(const struct audit *audit)
{
    return &audit->facts;
}
