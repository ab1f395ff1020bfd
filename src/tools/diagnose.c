#include "tools/diagnose.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/variant.h"
#include "run/compare.h"
#include "tools/results.h"
#include "tools/xmalloc.h"

/* One diagnosis. */
struct diagnosis_state {
    const struct plan *plan;
    struct executor *executor;
    struct launcher *launcher; /* the executor's */
    struct reference *reference;
    struct diagnosis *diagnosis;
    const struct segment *segment; /* of the step at hand */
    const struct step *step;       /* whose output or result is compared */
    /* The steps that the device runs for it: itself, or all of a manifest's kernel. */
    const struct step *first;
    size_t count;
};

static void compare(struct diagnosis *diagnosis, enum dtype dtype, const struct layout *layout,
                    const void *device, const void *reference)
{
    const struct layout *layouts[] = {layout};
    struct walk walk;
    int64_t position = 0;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk), position++) {
        const int64_t actual = dtype_load(dtype, device, walk.position[0]);
        const int64_t expected = dtype_load(dtype, reference, walk.position[0]);
        if (actual == expected || diagnosis->different++ > 0)
            continue;
        diagnosis->position = position;
        diagnosis->actual = actual;
        diagnosis->expected = expected;
    }
}

/* ---------------------------------------------------------------- the device */

static enum healcl_status upload_storage(struct diagnosis_state *state, const struct tensor *tensor,
                                         struct healcl_error *error)
{
    struct buffer *buffer = launcher_memory(state->launcher, tensor->storage);
    if (tensor->storage == state->plan->constants.storage || buffer->memory)
        return HEALCL_OK;
    void *bytes;
    TRY(reference_memory(state->reference, tensor->storage, &bytes, error));
    return device_upload_memory(state->launcher->device, NULL, storage_bytes(tensor->storage),
                                bytes, buffer, error);
}

/* Puts all that is read and written on the device, as the reference has it. */
static enum healcl_status upload_state(struct diagnosis_state *state, struct healcl_error *error)
{
    struct executor *executor = state->executor;
    TRY(executor->class->rewind(executor, 0, error));
    for (size_t number = 0; number < state->count; number++) {
        const struct step *step = &state->first[number];
        for (int i = 0; i < STEP_INPUTS; i++)
            if (step->in[i])
                TRY(upload_storage(state, step->in[i], error));
        if (step->out && step->kind != STEP_UPLOAD)
            TRY(upload_storage(state, step->out, error));
    }
    return HEALCL_OK;
}

/* Runs the step, or those of the kernel, alone. */
static enum healcl_status run_on_device(struct diagnosis_state *state, struct results *results,
                                        struct healcl_error *error)
{
    const struct result_sink sink = {.context = results, .take = results_take};
    struct segment alone = *state->segment;
    struct segment_result result = {0};
    alone.first_step = (size_t)(state->first - state->plan->steps);
    alone.step_count = state->count;
    return state->executor->class->run_segment(state->executor, &alone, &sink, &result, error);
}

/* ---------------------------------------------------------------- downloads */

/* Where both agree, but the transcript expects something else. */
static enum healcl_status compare_expected(struct diagnosis_state *state, const void *result,
                                           struct healcl_error *error)
{
    const struct step *step = state->step;
    struct diagnosis *diagnosis = state->diagnosis;
    struct comparison comparison;
    if (!step->payload)
        return HEALCL_OK;
    TRY(compare_result(&step->in[0]->layout, step->in[0]->storage->dtype, result, step->payload,
                       &comparison, error));
    payload_forget(step->payload, state->plan->source);
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

/* The device has failed where the reference can go on. */
static void note_failure(struct diagnosis *diagnosis, const struct healcl_error *failure)
{
    if (failure->status == HEALCL_NO_MEMORY) /* says nothing of the device */
        xmalloc_fail();
    diagnosis->kind = DIAGNOSIS_FAILS;
    diagnosis->failure = *failure;
}

static enum healcl_status check_download(struct diagnosis_state *state, struct healcl_error *error)
{
    struct diagnosis *diagnosis = state->diagnosis;
    const struct tensor *tensor = state->step->in[0];
    const enum dtype dtype = tensor->storage->dtype;
    const struct layout packed = layout_packed(&tensor->layout);
    struct healcl_error failure = {.status = HEALCL_OK};
    struct results results = {.count = 0};
    diagnosis->elements = (uint64_t)layout_elements(&packed);
    void *expected = xcalloc(diagnosis->elements, dtype_size(dtype));
    enum healcl_status status = diagnosis->elements > 0
                                    ? reference_read(state->reference, tensor, expected, error)
                                    : HEALCL_OK;
    if (status == HEALCL_OK)
        status = upload_state(state, error);
    if (status == HEALCL_OK && run_on_device(state, &results, &failure) != HEALCL_OK) {
        note_failure(diagnosis, &failure);
    } else if (status == HEALCL_OK) {
        compare(diagnosis, dtype, &packed, results.of[0].bytes, expected);
        if (diagnosis->different > 0)
            diagnosis->kind = DIAGNOSIS_DIFFERS;
        else
            status = compare_expected(state, expected, error);
    }
    results_release(&results);
    free(expected);
    return status;
}

/* ---------------------------------------------------------------- steps */

static void compare_outputs(struct diagnosis_state *state, const void *actual, const void *expected)
{
    const struct tensor *out = state->step->out;
    struct diagnosis *diagnosis = state->diagnosis;
    const enum dtype dtype = out->storage->dtype;
    compare(diagnosis, dtype, &out->layout, actual, expected);
    for (int64_t i = 0; i < out->storage->elements; i++)
        diagnosis->outside += dtype_load(dtype, actual, i) != dtype_load(dtype, expected, i);
    diagnosis->outside -= diagnosis->different;
    if (diagnosis->different + diagnosis->outside > 0)
        diagnosis->kind = DIAGNOSIS_DIFFERS;
}

/* Runs the step, or a manifest's body, which follows its kernel's steps. */
static enum healcl_status run_on_reference(struct diagnosis_state *state,
                                           struct healcl_error *error)
{
    const struct plan *plan = state->plan;
    const struct step *step = state->step, *end = step + 1;
    if (step->side == STEP_OF_KERNEL) {
        const struct vendor_call *call = step->vendor;
        const size_t segment_end = state->segment->first_step + state->segment->step_count;
        for (step = state->first + state->count, end = step;
             end < plan->steps + segment_end && end->vendor == call; end++)
            ;
    }
    for (; step < end; step++) {
        enum healcl_status status = reference_step(state->reference, step, error);
        if (status != HEALCL_OK) {
            error_prefix_step(error, step, state->reference->refused_input);
            return status;
        }
    }
    return HEALCL_OK;
}

/* On the reference the step comes last, as the state for what follows. before, actual: memory for
 * what the step starts from, and for what comes of it on the device. */
static enum healcl_status check_output(struct diagnosis_state *state, void *before, void *actual,
                                       struct healcl_error *error)
{
    struct diagnosis *diagnosis = state->diagnosis;
    const struct step *step = state->step;
    const struct storage *storage = step->out->storage;
    struct healcl_device *device = state->launcher->device;
    struct healcl_error failure = {.status = HEALCL_OK};
    const uint64_t bytes = storage_bytes(storage);
    void *memory;
    TRY(reference_memory(state->reference, storage, &memory, error));
    memcpy(before, memory, bytes);
    TRY(upload_state(state, error));
    if (run_on_device(state, NULL, &failure) == HEALCL_OK)
        (void)!device_read(device, launcher_memory(state->launcher, storage), 0, bytes, actual,
                           &failure);
    enum healcl_status status = run_on_reference(state, error);
    if (status != HEALCL_OK) { /* what the device says of it does not matter */
        healcl_error_clear(&failure);
        return status;
    }
    TRY(reference_memory(state->reference, storage, &memory, error));
    diagnosis->elements = (uint64_t)layout_elements(&step->out->layout);
    if (failure.status != HEALCL_OK)
        note_failure(diagnosis, &failure);
    else
        compare_outputs(state, actual, memory);
    const struct failing_step failing = {state->plan, step, state->reference, before,
                                         diagnosis->position};
    if (diagnosis->kind != DIAGNOSIS_AGREES && step->kind != STEP_UPLOAD &&
        step->side != STEP_OF_KERNEL)
        failing_case_find(device, &failing, &diagnosis->smallest);
    return HEALCL_OK;
}

static enum healcl_status check_step(struct diagnosis_state *state, struct healcl_error *error)
{
    const struct step *step = state->step;
    if (step->kind == STEP_RELEASE)
        return reference_step(state->reference, step, error);
    if (!step->out)
        return check_download(state, error);
    const size_t bytes = (size_t)storage_bytes(step->out->storage);
    char *memory = xcalloc(2, bytes);
    enum healcl_status status = check_output(state, memory, memory + bytes, error);
    if (step->payload)
        payload_forget(step->payload, state->plan->source);
    free(memory);
    return status;
}

/* ---------------------------------------------------------------- all steps */

/* Takes the step of that number, and where it begins those of a manifest's kernel, all of them.
 * Returns how many steps of the plan these are. */
static size_t take_steps(struct diagnosis_state *state, size_t number)
{
    const struct step *first = &state->plan->steps[number], *next = first;
    const struct step *const end =
        state->plan->steps + state->segment->first_step + state->segment->step_count;
    state->first = state->step = first;
    state->count = 1;
    if (first->side != STEP_OF_KERNEL)
        return 1;
    for (; next < end && next->side == STEP_OF_KERNEL && next->vendor == first->vendor; next++)
        if (next->out)
            state->step = next; /* the last one writes the call's output */
    state->count = (size_t)(next - first);
    return state->count;
}

/* The one that the kernel runs, of several. */
static const struct step *main_step(const struct diagnosis_state *state)
{
    const struct step *step = state->first;
    while (state->count > 1 && step->kind != STEP_VENDOR)
        step++;
    return step;
}

static enum healcl_status check_steps(struct diagnosis_state *state,
                                      const struct diagnose_observer *observer,
                                      struct healcl_error *error)
{
    const struct plan *plan = state->plan;
    const struct healcl_device *device = state->launcher->device;
    for (size_t i = 0; i < plan->segment_count; i++) {
        state->segment = &plan->segments[i];
        const size_t first = state->segment->first_step;
        for (size_t j = 0, taken; j < state->segment->step_count; j += taken) {
            taken = take_steps(state, first + j);
            if (step_is_left_out(state->step, device)) /* of a manifest's operation */
                continue;
            if (observer->progress)
                observer->progress(observer->context, first + j, plan->step_count);
            TRY(check_step(state, error));
            for (size_t k = 0; k < state->count; k++) /* copies that only a kernel needs */
                if (state->first[k].kind == STEP_RELEASE && state->first[k].side == STEP_OF_KERNEL)
                    reference_forget(state->reference, state->first[k].in[0]->storage);
            state->diagnosis->steps++;
            if (state->diagnosis->kind == DIAGNOSIS_AGREES)
                continue;
            state->diagnosis->step = main_step(state);
            state->diagnosis->segment = state->segment;
            state->diagnosis->kernel = vendor_kernel_for(plan, state->diagnosis->step, device);
            return HEALCL_OK;
        }
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- the whole run */

static void note_first(void *context, const char *line)
{
    struct healcl_error *failure = context;
    if (failure->status == HEALCL_OK)
        (void)ERROR(failure, HEALCL_DIFFERENT, "%s", line);
}

/* Where launches overlap, or use what earlier ones have left, a step may be right only alone. */
static void run_whole(struct healcl_device *device, const struct healcl_transcript *transcript,
                      struct diagnosis *diagnosis)
{
    struct healcl_error *failure = &diagnosis->failure;
    const struct healcl_run_options options = {
        .no_warm_up = true, .observer = {.context = failure, .difference = note_first}};
    struct healcl_report *report = NULL;
    enum healcl_status status = healcl_run(transcript, device, &options, &report, failure);
    if (status == HEALCL_NO_MEMORY)
        xmalloc_fail();
    diagnosis->whole = status == HEALCL_OK ? report->verdict : HEALCL_DIFFERS;
    if (diagnosis->whole == HEALCL_DIFFERS)
        diagnosis->kind = DIAGNOSIS_WHOLE;
    healcl_report_free(report);
}

/* ---------------------------------------------------------------- all of it */

static enum healcl_status diagnose_steps(struct healcl_device *device, const struct plan *plan,
                                         const struct diagnose_observer *observer,
                                         struct diagnosis *diagnosis, struct healcl_error *error)
{
    struct diagnosis_state state = {.plan = plan, .diagnosis = diagnosis};
    TRY(reference_create(plan, &state.reference, error));
    enum healcl_status status = device_executor_create(device, plan, false, &state.executor, error);
    if (status == HEALCL_OK) {
        state.launcher = device_executor_launcher(state.executor);
        status = check_steps(&state, observer, error);
        state.executor->class->destroy(state.executor);
    }
    reference_free(state.reference);
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
    if (status == HEALCL_OK && diagnosis->kind == DIAGNOSIS_AGREES && plan->expected > 0) {
        if (observer->progress)
            observer->progress(observer->context, plan->step_count, plan->step_count);
        run_whole(device, transcript, diagnosis);
    }
    status = source_explain(plan->source, status, error);
    if (status == HEALCL_OK && diagnosis->kind != DIAGNOSIS_AGREES)
        status = source_check(plan->source, error);
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
