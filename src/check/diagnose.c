#include "check/diagnose.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/variant.h"
#include "reference/reference.h"
#include "run/compare.h"
#include "run/device_executor.h"

/* What one diagnosis works with. */
struct session {
    const struct plan *plan;
    struct executor *executor;
    struct launcher *launcher; /* the executor's */
    struct reference *reference;
    struct diagnosis *diagnosis;
    const struct segment *segment; /* of the step at hand */
    const struct step *step;       /* whose output or result is compared */
    /* What the device runs for it: the step, or all of a manifest's kernel's. */
    const struct step *first;
    size_t count;
    void *result; /* of a download, on the reference */
    bool taken;   /* the device has delivered it */
};

static bool is_constant(const struct session *session, const struct tensor *tensor)
{
    return tensor->storage == session->plan->constants.storage;
}

/* Zeroed memory, or NULL. */
static void *allocate(uint64_t bytes)
{
    return calloc(1, bytes ? bytes : 1);
}

static void note_difference(struct diagnosis *diagnosis, int64_t position, int64_t actual,
                            int64_t expected)
{
    if (diagnosis->different++ > 0)
        return;
    diagnosis->position = position;
    diagnosis->actual = actual;
    diagnosis->expected = expected;
}

/* ---------------------------------------------------------------- the device */

MUST_CHECK static enum healcl_status upload_storage(struct session *session,
                                                    const struct tensor *tensor,
                                                    struct healcl_error *error)
{
    struct buffer *buffer = launcher_memory(session->launcher, tensor->storage);
    if (is_constant(session, tensor) || buffer->chunk_count > 0)
        return HEALCL_OK;
    void *bytes;
    TRY(reference_memory(session->reference, tensor->storage, &bytes, error));
    return device_upload_memory(session->launcher->device, storage_bytes(tensor->storage), bytes,
                                buffer, error);
}

/* Puts all that is read and written on the device, as the reference has it. */
MUST_CHECK static enum healcl_status upload_state(struct session *session,
                                                  struct healcl_error *error)
{
    struct executor *executor = session->executor;
    TRY(executor->class->reset(executor, error));
    for (size_t number = 0; number < session->count; number++) {
        const struct step *step = &session->first[number];
        for (int i = 0; i < STEP_INPUTS; i++)
            if (step->in[i])
                TRY(upload_storage(session, step->in[i], error));
        if (step->out && step->kind != STEP_UPLOAD)
            TRY(upload_storage(session, step->out, error));
    }
    return HEALCL_OK;
}

/* Compares a download with the reference's. */
static enum healcl_status take(void *context, const struct step *step, const void *data,
                               struct healcl_error *error)
{
    struct session *session = context;
    enum dtype dtype = step->in[0]->storage->dtype;
    int64_t elements = layout_elements(&step->in[0]->layout);
    (void)error;
    session->taken = true;
    for (int64_t i = 0; i < elements; i++) {
        int64_t actual = dtype_load(dtype, data, i);
        int64_t expected = dtype_load(dtype, session->result, i);
        if (actual != expected)
            note_difference(session->diagnosis, i, actual, expected);
    }
    return HEALCL_OK;
}

/* Runs the step, or those of the kernel, alone. */
MUST_CHECK static enum healcl_status run_on_device(struct session *session,
                                                   struct healcl_error *error)
{
    const struct result_sink sink = {.context = session, .take = take};
    struct segment alone = *session->segment;
    struct segment_result result = {0};
    struct executor *executor = session->executor;
    alone.first_step = (size_t)(session->first - session->plan->steps);
    alone.step_count = session->count;
    session->taken = false;
    return executor->class->run_segment(executor, &alone, &sink, &result, error);
}

/* ---------------------------------------------------------------- downloads */

/* Where both agree, but the transcript expects something else. */
MUST_CHECK static enum healcl_status compare_expected(struct session *session,
                                                      struct healcl_error *error)
{
    const struct step *step = session->step;
    struct diagnosis *diagnosis = session->diagnosis;
    struct comparison comparison;
    if (!step->payload)
        return HEALCL_OK;
    TRY(compare_result(&step->in[0]->layout, step->in[0]->storage->dtype, session->result,
                       step->payload, &comparison, error));
    payload_forget(step->payload, session->plan->source);
    if (comparison_is_equal(&comparison))
        return HEALCL_OK;
    diagnosis->kind = DIAGNOSIS_EXPECTED;
    diagnosis->different = comparison.different;
    if (comparison.first_count > 0) {
        diagnosis->position = comparison.first[0].position;
        diagnosis->actual = comparison.first[0].actual;
        diagnosis->expected = comparison.first[0].expected;
    }
    return HEALCL_OK;
}

/* The device has failed where the reference can go on. Memory that ran out says nothing of it. */
MUST_CHECK static enum healcl_status note_failure(struct session *session,
                                                  struct healcl_error *failure,
                                                  struct healcl_error *error)
{
    if (failure->status == HEALCL_NO_MEMORY) {
        healcl_error_clear(failure);
        NO_MEMORY(error);
    }
    session->diagnosis->kind = DIAGNOSIS_FAILS;
    session->diagnosis->failure = *failure;
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status check_download(struct session *session,
                                                    struct healcl_error *error)
{
    const struct tensor *tensor = session->step->in[0];
    struct healcl_error failure = {.status = HEALCL_OK};
    session->result =
        allocate((uint64_t)layout_elements(&tensor->layout) * dtype_size(tensor->storage->dtype));
    if (!session->result)
        NO_MEMORY(error);
    if (layout_elements(&tensor->layout) > 0)
        TRY(reference_read(session->reference, tensor, session->result, error));
    TRY(upload_state(session, error));
    session->diagnosis->elements = (uint64_t)layout_elements(&tensor->layout);
    if (run_on_device(session, &failure) != HEALCL_OK)
        return note_failure(session, &failure, error);
    if (session->diagnosis->different == 0)
        return compare_expected(session, error);
    session->diagnosis->kind = DIAGNOSIS_DIFFERS;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- steps */

/* The memory that a step starts from and what comes of it on the device. */
struct memories {
    void *before, *actual, *expected;
};

static void compare_outputs(struct session *session, const struct memories *memories)
{
    const struct tensor *out = session->step->out;
    struct diagnosis *diagnosis = session->diagnosis;
    enum dtype dtype = out->storage->dtype;
    const struct layout *layouts[] = {&out->layout};
    struct walk walk;
    int64_t position = 0;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk), position++) {
        int64_t actual = dtype_load(dtype, memories->actual, walk.position[0]);
        int64_t expected = dtype_load(dtype, memories->expected, walk.position[0]);
        if (actual != expected)
            note_difference(diagnosis, position, actual, expected);
    }
    for (int64_t i = 0; i < out->storage->elements; i++)
        diagnosis->outside +=
            dtype_load(dtype, memories->actual, i) != dtype_load(dtype, memories->expected, i);
    diagnosis->outside -= diagnosis->different;
}

MUST_CHECK static enum healcl_status find_smallest(struct session *session,
                                                   const struct memories *memories,
                                                   struct healcl_error *error)
{
    const struct step *step = session->step;
    struct failing_step failing = {.plan = session->plan,
                                   .step = step,
                                   .out_before = memories->before,
                                   .first_wrong = session->diagnosis->position};
    for (int i = 0; i < STEP_INPUTS; i++) {
        void *bytes = NULL;
        if (step->in[i] && !is_constant(session, step->in[i]) &&
            step->in[i]->storage != step->out->storage)
            TRY(reference_memory(session->reference, step->in[i]->storage, &bytes, error));
        failing.inputs[i] = bytes;
    }
    return failing_case_find(session->launcher->device, &failing, &session->diagnosis->smallest,
                             error);
}

/* The same on the reference: of a manifest's operation the body, which follows its kernel's steps.
 */
MUST_CHECK static enum healcl_status run_on_reference(struct session *session,
                                                      struct healcl_error *error)
{
    const struct plan *plan = session->plan;
    const struct step *step = session->step, *end = step + 1;
    if (step->side == STEP_OF_KERNEL) {
        const struct vendor_call *call = step->vendor;
        const size_t segment_end = session->segment->first_step + session->segment->step_count;
        for (step = session->first + session->count, end = step;
             end < plan->steps + segment_end && end->vendor == call; end++)
            ;
    }
    for (; step < end; step++) {
        enum healcl_status status = reference_step(session->reference, step, error);
        if (status != HEALCL_OK) {
            error_prefix_step(error, step, session->reference->refused_input);
            return status;
        }
    }
    return HEALCL_OK;
}

/* Runs the step on both. On the reference it comes last, as the state for what follows. */
MUST_CHECK static enum healcl_status run_both(struct session *session, struct memories *memories,
                                              struct healcl_error *error)
{
    const struct storage *storage = session->step->out->storage;
    struct healcl_error failure = {.status = HEALCL_OK};
    uint64_t bytes = storage_bytes(storage);
    void *memory;
    memories->before = allocate(bytes);
    memories->actual = allocate(bytes);
    if (!memories->before || !memories->actual)
        NO_MEMORY(error);
    TRY(reference_memory(session->reference, storage, &memory, error));
    memcpy(memories->before, memory, bytes);
    TRY(upload_state(session, error));
    if (run_on_device(session, &failure) == HEALCL_OK)
        (void)!device_read(session->launcher->device, launcher_memory(session->launcher, storage),
                           0, bytes, memories->actual, &failure);
    enum healcl_status status = run_on_reference(session, error);
    if (status != HEALCL_OK) { /* what the device says of it does not matter */
        healcl_error_clear(&failure);
        return status;
    }
    TRY(reference_memory(session->reference, storage, &memories->expected, error));
    return failure.status == HEALCL_OK ? HEALCL_OK : note_failure(session, &failure, error);
}

MUST_CHECK static enum healcl_status check_output(struct session *session,
                                                  struct memories *memories,
                                                  struct healcl_error *error)
{
    struct diagnosis *diagnosis = session->diagnosis;
    TRY(run_both(session, memories, error));
    diagnosis->elements = (uint64_t)layout_elements(&session->step->out->layout);
    if (diagnosis->kind == DIAGNOSIS_AGREES)
        compare_outputs(session, memories);
    if (diagnosis->different + diagnosis->outside > 0)
        diagnosis->kind = DIAGNOSIS_DIFFERS;
    if (diagnosis->kind == DIAGNOSIS_AGREES || session->step->kind == STEP_UPLOAD ||
        session->step->side == STEP_OF_KERNEL)
        return HEALCL_OK;
    return find_smallest(session, memories, error);
}

MUST_CHECK static enum healcl_status check_step(struct session *session, struct healcl_error *error)
{
    struct memories memories = {.before = NULL};
    const struct step *step = session->step;
    if (step->kind == STEP_RELEASE)
        return reference_step(session->reference, step, error);
    enum healcl_status status =
        step->out ? check_output(session, &memories, error) : check_download(session, error);
    if (step->out && step->payload)
        payload_forget(step->payload, session->plan->source);
    free(session->result);
    session->result = NULL;
    free(memories.before);
    free(memories.actual);
    return status;
}

/* ---------------------------------------------------------------- all steps */

/* Takes the step of that number, and where it begins those of a manifest's kernel, all of them.
 * Returns how many steps of the plan these are. */
static size_t take_steps(struct session *session, size_t number)
{
    const struct step *first = &session->plan->steps[number], *next = first;
    const struct step *const end =
        session->plan->steps + session->segment->first_step + session->segment->step_count;
    session->first = session->step = first;
    session->count = 1;
    if (first->side != STEP_OF_KERNEL)
        return 1;
    for (; next < end && next->side == STEP_OF_KERNEL && next->vendor == first->vendor; next++)
        if (next->out)
            session->step = next; /* the last one writes the call's output */
    session->count = (size_t)(next - first);
    return session->count;
}

/* The one that the kernel runs, of several. */
static const struct step *main_step(const struct session *session)
{
    const struct step *step = session->first;
    while (session->count > 1 && step->kind != STEP_VENDOR)
        step++;
    return step;
}

/* The kernel's copies, which the reference has no use for. */
static void forget_copies(struct session *session)
{
    for (size_t i = 0; i < session->count; i++)
        if (session->first[i].kind == STEP_RELEASE && session->first[i].side == STEP_OF_KERNEL)
            reference_forget(session->reference, session->first[i].in[0]->storage);
}

MUST_CHECK static enum healcl_status check_steps(struct session *session,
                                                 const struct diagnose_observer *observer,
                                                 struct healcl_error *error)
{
    const struct plan *plan = session->plan;
    const struct healcl_device *device = session->launcher->device;
    for (size_t i = 0; i < plan->segment_count; i++) {
        session->segment = &plan->segments[i];
        const size_t first = session->segment->first_step;
        for (size_t j = 0, taken; j < session->segment->step_count; j += taken) {
            taken = take_steps(session, first + j);
            if (step_is_left_out(session->step, device)) /* of a manifest's operation */
                continue;
            if (observer->progress)
                observer->progress(observer->context, first + j, plan->step_count);
            TRY(check_step(session, error));
            forget_copies(session);
            session->diagnosis->steps++;
            if (session->diagnosis->kind == DIAGNOSIS_AGREES)
                continue;
            session->diagnosis->step = main_step(session);
            session->diagnosis->segment = session->segment;
            session->diagnosis->kernel = vendor_kernel_for(plan, session->diagnosis->step, device);
            return HEALCL_OK;
        }
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- the whole run */

static bool expects_results(const struct plan *plan)
{
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == STEP_DOWNLOAD && plan->steps[i].payload)
            return true;
    return false;
}

static void note_first(void *context, const char *line)
{
    struct healcl_error *failure = context;
    if (failure->status == HEALCL_OK)
        (void)ERROR(failure, HEALCL_DIFFERENT, "%s", line);
}

/* Where launches overlap, or use what earlier ones have left, a step may be right only alone. */
MUST_CHECK static enum healcl_status run_whole(struct healcl_device *device,
                                               const struct healcl_transcript *transcript,
                                               struct diagnosis *diagnosis,
                                               struct healcl_error *error)
{
    struct healcl_error *failure = &diagnosis->failure;
    const struct healcl_run_options options = {
        .no_warm_up = true, .observer = {.context = failure, .difference = note_first}};
    struct healcl_report *report = NULL;
    enum healcl_status status = healcl_run(transcript, device, &options, &report, failure);
    if (status == HEALCL_NO_MEMORY)
        NO_MEMORY(error);
    diagnosis->whole = status == HEALCL_OK ? report->verdict : HEALCL_DIFFERS;
    if (diagnosis->whole == HEALCL_DIFFERS)
        diagnosis->kind = DIAGNOSIS_WHOLE;
    healcl_report_free(report);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- all of it */

MUST_CHECK static enum healcl_status diagnose_steps(struct healcl_device *device,
                                                    const struct plan *plan,
                                                    const struct diagnose_observer *observer,
                                                    struct diagnosis *diagnosis,
                                                    struct healcl_error *error)
{
    struct session session = {.plan = plan, .diagnosis = diagnosis};
    struct executor *executor = NULL;
    TRY(reference_create(plan, &session.reference, error));
    enum healcl_status status = device_executor_create(device, plan, false, &executor, error);
    if (status == HEALCL_OK) {
        session.executor = executor;
        session.launcher = device_executor_launcher(executor);
        status = check_steps(&session, observer, error);
        executor->class->destroy(executor);
    }
    reference_free(session.reference);
    return status;
}

enum healcl_status diagnose(struct healcl_device *device,
                            const struct healcl_transcript *transcript,
                            const struct diagnose_observer *observer, struct diagnosis *diagnosis,
                            struct healcl_error *error)
{
    const struct plan *plan = transcript->plan;
    memset(diagnosis, 0, sizeof *diagnosis);
    enum healcl_status status = diagnose_steps(device, plan, observer, diagnosis, error);
    if (status == HEALCL_OK && diagnosis->kind == DIAGNOSIS_AGREES && expects_results(plan)) {
        if (observer->progress)
            observer->progress(observer->context, plan->step_count, plan->step_count);
        status = run_whole(device, transcript, diagnosis, error);
    }
    if (status != HEALCL_OK)
        diagnosis_release(diagnosis);
    return status;
}

void diagnosis_release(struct diagnosis *diagnosis)
{
    healcl_error_clear(&diagnosis->failure);
    free(diagnosis->smallest.transcript);
    memset(diagnosis, 0, sizeof *diagnosis);
}
