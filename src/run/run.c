/* Implements healcl_run: runs the repetitions of a plan on one of the executors, and reports on
 * them. */
#include "run/run.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/array.h"
#include "core/format.h"
#include "core/numbers.h"
#include "kernels/kernels.h"
#include "opencl/opening.h"
#include "run/loaded_transcript.h"
#include "run/results.h"
#include "vendor/vendor.h"

/* Attributes later trace events to a step's entry and operations. Returns their names, or ""
 * without a trace. A step that several operations were merged into has all their names. */
const char *trace_for_step(struct trace *trace, const struct step *step)
{
    if (!trace)
        return "";
    const struct origin *origin = step_origin(step, NO_INPUT);
    const char *name = step->origins->operations; /* NULL: only one */
    if (step->kind == STEP_RELEASE)
        name = "free";
    else if (!name)
        name = origin_operation(origin)->name;
    trace_for_operation(trace, name, origin->entry);
    return name;
}

size_t trace_begin_step(struct trace *trace, const struct step *step)
{
    return trace_begin(trace, "operation", trace_for_step(trace, step));
}

/* Hands a result, or a piece of one, to the sink, and adds the time to the segment's. A whole
 * result goes to `take` if the sink has it, everything else to take_piece. In traces the time
 * counts as comparing. */
enum healcl_status sink_take(struct executor *executor, const struct result_sink *sink,
                             const struct step *step, int64_t first, int64_t count,
                             const void *data, struct healcl_error *error)
{
    uint64_t start = monotonic_nanoseconds();
    size_t span = trace_begin(executor->trace, "compare", "compare");
    enum healcl_status status =
        sink->take ? sink->take(sink->context, step, data, error)
                   : sink->take_piece(sink->context, step, first, count, data, error);
    trace_end(executor->trace, span);
    executor->times.sink_nanoseconds += monotonic_nanoseconds() - start;
    return status;
}

/* A report with the memory it refers to. */
struct owned_report {
    struct healcl_report report; /* must be first: healcl_report_free casts back */
    struct arena *arena;
};

struct run {
    const struct plan *plan;
    const struct healcl_run_options *options;
    struct healcl_device *device; /* NULL: the host reference */
    struct trace *trace;          /* or NULL */
    struct executor *executor;
    struct results *results;
    struct healcl_report *report;
    struct arena *arena;    /* the report's arena */
    struct upload *uploads; /* by storage; NULL: the caller binds no input */
    uint32_t repeat;        /* repetitions that measure segments */
    uint32_t profiled;      /* further repetitions, which measure operations; may be 0 */
    /* Times: each segment has SEGMENT_ROWS rows, then PROFILE_ROWS for each of its operations. A
     * row has a column for each repetition, the profiled ones last. Rows are always visited in this
     * order: next_row is the number of the next one. */
    uint64_t *times;
    size_t next_row;
    size_t operation_count;          /* of the plan's table */
    uint64_t *operation_nanoseconds; /* of one segment, by operation number */
};

enum {
    PROFILED_MOST = 5, /* enough for a median */
    SEGMENT_ROWS = 3,  /* its time, time without a command, time before a command had begun */
    PROFILE_ROWS = 2   /* its time, and the time of steps on the host */
};

/* ---------------------------------------------------------------- times */

/* Columns of the table of times: one for each repetition. Measured ones come first, profiled ones
 * last. */
static size_t columns(const struct run *run)
{
    return (size_t)run->repeat + run->profiled;
}

/* Goes on to the next row of the table of times: an element for each repetition. */
static uint64_t *next_row(struct run *run)
{
    return run->times + run->next_row++ * columns(run);
}

/* Stores the times of one segment in one repetition: of the segment, then of each of its
 * operations. Also notes which operations fell back to the host, and why. */
static enum healcl_status note_times(struct run *run, const struct segment *segment,
                                     uint32_t repetition, const struct segment_result *result,
                                     struct healcl_error *error)
{
    next_row(run)[repetition] = result->nanoseconds;
    next_row(run)[repetition] = result->without_command_nanoseconds;
    next_row(run)[repetition] = result->not_begun_nanoseconds;
    run->report->run_nanoseconds[repetition] += result->nanoseconds;
    run->report->verify_nanoseconds += result->sink_nanoseconds;
    if (repetition < run->repeat && run->report->decode_nanoseconds) {
        run->report->decode_nanoseconds[repetition] += result->decode_nanoseconds;
        run->report->compute_nanoseconds[repetition] += result->compute_nanoseconds;
    }
    struct healcl_operation_profile *operation_profile =
        run->report->segments[segment - run->plan->segments].profiles;
    const struct fallback *fallbacks = run->executor->fallbacks;
    for (size_t i = 0; i < run->operation_count; i++) {
        if (segment->counts[i] == 0)
            continue;
        const uint64_t steps = fallbacks ? fallbacks[i].steps : 0;
        next_row(run)[repetition] = result->operation_nanoseconds[i];
        next_row(run)[repetition] = fallbacks ? fallbacks[i].nanoseconds : 0;
        if (steps > 0 && !operation_profile->fallback_reason) {
            operation_profile->fallback_reason = arena_strdup(run->arena, fallbacks[i].reason);
            NEED_MEMORY(operation_profile->fallback_reason, error);
        }
        operation_profile++->fallbacks = steps;
    }
    return HEALCL_OK;
}

/* The median of a row over the repetitions that measure operations; 0 if there are none. The host
 * reference measures them in all repetitions. Sorts the columns. */
static uint64_t profiled_median(const struct run *run, uint64_t *row)
{
    if (!run->options->profile)
        return 0;
    return run->profiled > 0 ? sort_to_median(row + run->repeat, run->profiled)
                             : sort_to_median(row, run->repeat);
}

/* Fills the report with medians over repetitions. Taking a median sorts that part of a row. */
static void report_medians(struct run *run)
{
    run->next_row = 0;
    for (size_t i = 0; i < run->report->segment_count; i++) {
        struct healcl_segment_profile *segment = &run->report->segments[i];
        uint64_t *times = next_row(run);
        segment->profiled_nanoseconds = profiled_median(run, times);
        segment->nanoseconds = sort_to_median(times, run->repeat);
        segment->without_command_nanoseconds = profiled_median(run, next_row(run));
        segment->not_begun_nanoseconds = profiled_median(run, next_row(run));
        for (size_t j = 0; j < segment->profile_count; j++) {
            struct healcl_operation_profile *profile = &segment->profiles[j];
            profile->nanoseconds = profiled_median(run, next_row(run));
            profile->fallback_nanoseconds = sort_to_median(next_row(run), run->repeat);
        }
    }
}

/* ---------------------------------------------------------------- the report's frame */

/* Fills in what the plan tells about a segment: its name, bytes, and how often each operation
 * occurs. Texts are copied: the report outlives the plan. */
static enum healcl_status report_segment(struct run *run, const struct segment *segment,
                                         struct healcl_segment_profile *profile,
                                         struct healcl_error *error)
{
    *profile = (struct healcl_segment_profile){.name = arena_strdup(run->arena, segment->name),
                                               .operations = segment->operations,
                                               .bytes_up = segment->bytes_up,
                                               .bytes_down = segment->bytes_down};
    for (size_t i = 0; i < run->operation_count; i++)
        profile->profile_count += segment->counts[i] > 0;
    profile->profiles =
        arena_alloc(run->arena, (profile->profile_count + 1) * sizeof *profile->profiles);
    NEED_MEMORY(profile->name && profile->profiles, error);
    size_t next = 0;
    for (size_t i = 0; i < run->operation_count; i++)
        if (segment->counts[i] > 0)
            profile->profiles[next++] = (struct healcl_operation_profile){
                .name = operation_at(run->plan->table, i)->name, .count = segment->counts[i]};
    return HEALCL_OK;
}

/* Fills in what is known before the run, and allocates all memory that the repetitions need, in the
 * report's arena. */
static enum healcl_status report_init(struct run *run, struct healcl_error *error)
{
    struct healcl_report *report = run->report;
    const struct plan *plan = run->plan;
    report->run_count = run->repeat;
    report->profiled_count = run->profiled;
    report->segment_count = plan->segment_count;
    report->run_nanoseconds =
        arena_alloc(run->arena, columns(run) * sizeof *report->run_nanoseconds);
    report->segments =
        arena_alloc(run->arena, (plan->segment_count + 1) * sizeof *report->segments);
    run->operation_count = operation_count(plan->table);
    run->operation_nanoseconds =
        arena_alloc(run->arena, run->operation_count * sizeof *run->operation_nanoseconds);
    NEED_MEMORY(report->run_nanoseconds && report->segments && run->operation_nanoseconds, error);
    report->profiled_nanoseconds = report->run_nanoseconds + run->repeat;
    if (run->options->profile) {
        report->decode_nanoseconds =
            arena_alloc(run->arena, 2 * (size_t)run->repeat * sizeof *report->decode_nanoseconds);
        NEED_MEMORY(report->decode_nanoseconds, error);
        report->compute_nanoseconds = report->decode_nanoseconds + run->repeat;
    }
    size_t rows = 1; /* not 0: an empty plan has a table, too */
    for (size_t i = 0; i < plan->segment_count; i++) {
        TRY(report_segment(run, &plan->segments[i], &report->segments[i], error));
        rows += SEGMENT_ROWS + PROFILE_ROWS * report->segments[i].profile_count;
    }
    run->times = arena_alloc(run->arena, rows * columns(run) * sizeof *run->times);
    NEED_MEMORY(run->times, error);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- running */

/* Refuses a plan with a tensor that is larger than the device allocates at once. With the cause
 * LIMIT a caller may run such tensors in slices instead. The constants' storage is checked
 * elsewhere. */
enum healcl_status executor_check_device(const struct plan *plan,
                                         const struct healcl_device *device,
                                         struct healcl_error *error)
{
    const uint64_t limit = device->info.max_allocation_bytes;
    for (size_t i = 0; i < plan->storage_count; i++) {
        const struct storage *storage = plan->storages[i];
        if (storage == plan->constants.storage || storage_bytes(storage) <= limit)
            continue;
        REFUSE_FOR(error, LIMIT,
                   "entry %zu (%s): a tensor takes %" PRIu64
                   " bytes, but %s allocates at most %" PRIu64 " at once",
                   storage->origin->entry, storage->origin->name, storage_bytes(storage),
                   device->info.name, limit);
    }
    return HEALCL_OK;
}

/* Nanoseconds that the device handle has spent building programs so far; 0 for the host reference.
 */
static uint64_t compile_time(const struct run *run)
{
    return run->device ? run->device->programs->compile_nanoseconds : 0;
}

/* Subtracts the report's counts of programs from the device's. The first call notes what was before
 * the run. The second one leaves what the run has added. */
static void count_programs(const struct run *run)
{
    struct healcl_report *report = run->report;
    const struct device_programs *programs = run->device->programs;
    report->compile_nanoseconds = programs->compile_nanoseconds - report->compile_nanoseconds;
    report->programs_built = programs->built - report->programs_built;
    report->programs_loaded = programs->loaded - report->programs_loaded;
    report->first_launches = programs->first_launches - report->first_launches;
    report->first_launch_nanoseconds =
        run->device->first_launch_nanoseconds - report->first_launch_nanoseconds;
}

/* Runs a segment, with its two spans in the trace: the host's, and the one that encloses its
 * kernels on the device. */
static enum healcl_status run_traced_segment(struct run *run, const struct segment *segment,
                                             struct healcl_error *error)
{
    struct result_sink sink = results_sink(run->results);
    const char *name = segment_title(segment->name);
    trace_for_operation(run->trace, NULL, 0);
    size_t host = trace_begin(run->trace, "segment", name);
    size_t kernels = trace_command(run->trace, TRACE_COMPUTE, "segment", name, 0);
    enum healcl_status status =
        run->executor->class->run_segment(run->executor, segment, &sink, error);
    trace_enclose(run->trace, kernels);
    trace_end(run->trace, host);
    trace_for_operation(run->trace, NULL, 0);
    return status;
}

/* Clears what the executor measures of a segment, before it runs. Reasons of fallbacks stay. Times
 * that are split into decoding and computing need waits, so profiled repetitions do not split them.
 */
static void clear_times(struct run *run, uint32_t repetition)
{
    struct fallback *fallbacks = run->executor->fallbacks;
    for (size_t i = 0; i < run->operation_count; i++) {
        run->operation_nanoseconds[i] = 0;
        if (fallbacks)
            fallbacks[i].steps = fallbacks[i].nanoseconds = 0;
    }
    run->executor->times =
        (struct segment_result){.operation_nanoseconds = run->operation_nanoseconds,
                                .is_split = run->options->profile && repetition < run->repeat};
}

/* Runs all segments once and stores their times in column `repetition`. The executor measures them.
 * The time of building programs is subtracted, because it is reported separately. */
static enum healcl_status run_once(struct run *run, uint32_t repetition, struct healcl_error *error)
{
    const uint64_t fallbacks_before = run->executor->fallback_steps;
    run->next_row = 0;
    for (size_t i = 0; i < run->plan->segment_count; i++) {
        const struct segment *segment = &run->plan->segments[i];
        struct segment_result *result = &run->executor->times;
        const uint64_t compile_time_before = compile_time(run);
        clear_times(run, repetition);
        results_start_segment(run->results, segment);
        TRY(run_traced_segment(run, segment, error));
        const uint64_t compiling = compile_time(run) - compile_time_before;
        result->nanoseconds -= compiling < result->nanoseconds ? compiling : result->nanoseconds;
        TRY(note_times(run, segment, repetition, result, error));
    }
    run->report->fallbacks = run->executor->fallback_steps - fallbacks_before;
    return results_end_repetition(run->results, error);
}

/* Formats one line and passes it to the caller's warning function, if there is one. */
__attribute__((format(printf, 2, 3))) static void warn(const struct run *run, const char *format,
                                                       ...)
{
    const struct healcl_observer *observer = &run->options->observer;
    char line[1024];
    FORMAT_INTO(line, sizeof line, format);
    if (observer->warning)
        observer->warning(observer->context, line);
}

/* Warns of what the first repetition showed: expands that HEAL's SDK reads in another way, dropped
 * digits, steps that the device could not run, and the device's own warnings. */
static void warn_of_run(const struct run *run)
{
    const uint64_t either_way = run->plan->either_way.count, steps = run->report->fallbacks;
    const uint64_t dropped = run->report->dropped_digits;
    char others[64] = "";
    if (either_way > 1)
        snprintf(others, sizeof others, ", and %" PRIu64 " more in this order", either_way - 1);
    if (either_way > 0)
        warn(run,
             "entry %zu (expand): read as axis %" PRId64 ", repeats %" PRId64
             "%s; HEAL's SDK has repeats first (--expand sdk)",
             run->plan->either_way.entry, run->plan->either_way.axis, run->plan->either_way.repeats,
             others);
    if (dropped > 0)
        warn(run, "digits beyond g_exp were dropped from %" PRIu64 " value%s", dropped,
             dropped == 1 ? "" : "s");
    if (steps > 0)
        warn(run, "%" PRIu64 " step%s ran %s because the device could not", steps,
             steps == 1 ? "" : "s",
             run->executor->host_steps > 0 ? "on the host" : "on other kernels than a manifest's");
    for (size_t i = 0; run->device && device_warning(run->device, i); i++)
        warn(run, "%s", device_warning(run->device, i));
}

/* Notes that a storage was uploaded. If a session keeps it, later runs do not upload it again. */
void executor_note_upload(struct executor *executor, const struct storage *storage)
{
    executor->bytes_uploaded += storage_bytes(storage);
    executor->reads_payloads |= !executor_bound(executor, storage);
    if (executor->uploads)
        executor->uploads[storage->id].is_filled = executor->uploads[storage->id].is_kept;
}

/* Fails with HEALCL_CANCELLED if the caller asked for it: by a flag that another thread sets, or by
 * a function that is called before each step. */
enum healcl_status executor_check_cancelled(const struct executor *executor,
                                            struct healcl_error *error)
{
    const struct healcl_observer *observer = executor->observer;
    const bool by_flag = executor->is_cancelled &&
                         atomic_load_explicit(executor->is_cancelled, memory_order_relaxed);
    if (by_flag || (observer && observer->cancelled && observer->cancelled(observer->context)))
        FAIL(error, HEALCL_CANCELLED, "cancelled");
    return HEALCL_OK;
}

/* Waits until the device has done what device_poll was last called for, and can be cancelled
 * meanwhile. OpenCL cannot wake such a thread, so it polls. The first 0.1 ms it only yields,
 * because most waits are short. Later it sleeps for a sixteenth of the time so far, at most 1 ms.
 */
enum healcl_status executor_await(const struct executor *executor, struct healcl_device *device,
                                  struct healcl_error *error)
{
    enum { YIELD_NANOSECONDS = 100000, PAUSE_MOST = 1000000 };
    const uint64_t start = monotonic_nanoseconds();
    while (!device_poll(device, false)) { /* false: no new commands since its last call */
        TRY(executor_check_cancelled(executor, error));
        const uint64_t waited = monotonic_nanoseconds() - start;
        const uint64_t pause = waited / 16 < PAUSE_MOST ? waited / 16 : PAUSE_MOST;
        if (waited < YIELD_NANOSECONDS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
    }
    return HEALCL_OK;
}

/* Makes an executor for a session or a queue. It has its own handle on the device, *handle, so that
 * several threads can work at the same time. Without a device, it runs on the host reference. */
enum healcl_status executor_open(const struct plan *plan, struct healcl_device *device,
                                 struct healcl_device **handle, struct executor **executor,
                                 struct healcl_error *error)
{
    if (!device)
        return reference_executor_create(plan, executor, error);
    TRY(device_open_beside(device, handle, error));
    device_turn_begin(*handle);
    /* false: without timing its commands. */
    enum healcl_status status = device_executor_create(*handle, plan, executor, error);
    device_turn_end(*handle);
    if (status == HEALCL_OK)
        (*executor)->falls_back = !device->options.no_fallback;
    return status;
}

/* Destroys an executor, which must happen in a turn of its handle, and closes the handle. Either
 * may be NULL. */
void executor_close(struct executor *executor, struct healcl_device *handle)
{
    device_turn_begin(handle);
    if (executor)
        executor->class->destroy(executor);
    device_turn_end(handle);
    healcl_device_close(handle);
}

/* Runs all segments once, without reporting times. */
enum healcl_status executor_run(struct executor *executor, const struct plan *plan,
                                const struct result_sink *sink, struct healcl_error *error)
{
    for (size_t i = 0; i < plan->segment_count; i++)
        TRY(executor->class->run_segment(executor, &plan->segments[i], sink, error));
    return HEALCL_OK;
}

/* Makes the executor of a run and sets its options. Device memory is limited if the caller asks for
 * it. It is also limited if a tensor is larger than one allocation: then tensors are moved in
 * slices. */
static enum healcl_status create_executor(struct run *run, struct healcl_error *error)
{
    if (run->device) {
        uint64_t limit = run->options->device_memory_bytes;
        if (limit == 0 && executor_check_device(run->plan, run->device, NULL) != HEALCL_OK)
            limit = run->device->info.global_memory_bytes;
        TRY(device_trace_begin(run->device, run->trace, error));
        TRY(device_executor_create(run->device, run->plan, &run->executor, error));
        run->executor->falls_back = !run->device->options.no_fallback;
        if (limit > 0)
            TRY(device_executor_limit(run->executor, limit, error));
    } else {
        TRY(reference_executor_create(run->plan, &run->executor, error));
    }
    run->executor->trace = run->trace;
    run->executor->uploads = run->uploads;
    run->executor->runs_again = columns(run) > 1 || !run->options->no_warm_up;
    run->executor->observer = &run->options->observer;
    return HEALCL_OK;
}

/* Binds the caller's data for inputs: the executor uploads these instead of the file's payloads.
 * Without such inputs run->uploads stays NULL. */
static enum healcl_status bind_inputs(struct run *run, const struct healcl_transcript *transcript,
                                      struct healcl_error *error)
{
    if (run->options->input_count == 0)
        return HEALCL_OK;
    run->uploads = arena_alloc(run->arena, run->plan->storage_count * sizeof *run->uploads);
    NEED_MEMORY(run->uploads, error);
    for (size_t i = 0; i < run->options->input_count; i++) {
        const struct healcl_input *input = &run->options->inputs[i];
        NEED_NUMBER("input", input->input, run->plan->uploads, error);
        const struct step *step = transcript->input_steps[input->input];
        run->uploads[step->out->storage->id].data = input->data;
    }
    return HEALCL_OK;
}

/* Tells the observer which repetition begins: the warm-up, or a measured or profiled one with its
 * number and the total of its kind. */
static void report_repetition(const struct run *run, uint32_t repetition, bool warms_up)
{
    const struct healcl_observer *observer = &run->options->observer;
    if (!observer->repetition)
        return;
    if (warms_up)
        observer->repetition(observer->context, HEALCL_WARMING_UP, 1, 1);
    else if (repetition < run->repeat)
        observer->repetition(observer->context, HEALCL_MEASURING, repetition + 1, run->repeat);
    else
        observer->repetition(observer->context, HEALCL_PROFILING, repetition + 1 - run->repeat,
                             run->profiled);
}

/* Runs one repetition and stores its times, over those of a warm-up with the same number. The first
 * profiled repetition turns profiling on, for the rest of the run. */
static enum healcl_status repeat(struct run *run, uint32_t repetition, bool warms_up,
                                 struct healcl_error *error)
{
    report_repetition(run, repetition, warms_up);
    size_t span = trace_begin(run->trace, "repetition", warms_up ? "warm-up" : "repetition");
    enum healcl_status status = HEALCL_OK;
    run->report->run_nanoseconds[repetition] = 0;
    if (repetition < run->repeat && run->report->decode_nanoseconds)
        run->report->decode_nanoseconds[repetition] = run->report->compute_nanoseconds[repetition] =
            0;
    if (repetition == run->repeat)
        status = device_set_profiling(run->device, true, error);
    THEN(status, run_once(run, repetition, error));
    trace_end(run->trace, span);
    run->report->dropped_digits = run->executor->dropped_digits;
    return status;
}

/* The number of kernels that a device has launched for the first time so far. */
static uint64_t first_launches(const struct run *run)
{
    return run->device ? run->device->programs->first_launches : 0;
}

/* Runs the first repetition. *next: the number of the one that follows, 1, or 0 if the first one
 * does not count. Drivers compile when a program is built, when its kernel first runs, or both. So
 * a repetition in which a kernel ran for the first time was a warm-up: the next one overwrites its
 * times. So was one that was profiled to measure first launches. */
static enum healcl_status warm_up(struct run *run, uint32_t *next, struct healcl_error *error)
{
    const bool may_compile = run->device && !run->options->no_warm_up;
    const uint64_t launches_before = first_launches(run);
    const bool is_expected = may_compile && launches_before == 0;
    const bool is_profiled = is_expected && run->profiled > 0;
    if (is_profiled)
        TRY(device_set_profiling(run->device, true, error));
    TRY(repeat(run, 0, is_expected, error));
    if (is_profiled)
        TRY(device_set_profiling(run->device, false, error));
    warn_of_run(run);
    const bool has_compiled = may_compile && first_launches(run) > launches_before;
    const bool was_warm_up = is_profiled || has_compiled;
    if (was_warm_up)
        run->report->warm_up_nanoseconds = run->report->run_nanoseconds[0];
    *next = was_warm_up ? 0 : 1;
    return HEALCL_OK;
}

/* Whether two rows of the report are for the same kernel. Their numbers of steps do not count. */
static bool is_same_kernel(const struct healcl_manifest_kernel *a,
                           const struct healcl_manifest_kernel *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->what, b->what) == 0 &&
           strcmp(a->manifest, b->manifest) == 0 && a->replaces == b->replaces &&
           a->tuned == b->tuned;
}

/* Lists the vendors' kernels that run the plan's steps, each once with its number of steps. */
static enum healcl_status report_manifest_kernels(struct run *run, struct healcl_error *error)
{
    struct healcl_report *report = run->report;
    size_t capacity = 0;
    for (size_t i = 0; i < run->plan->step_count; i++) {
        const struct step *step = &run->plan->steps[i];
        const struct manifest_kernel kernel = vendor_kernel_for(run->plan, step, run->device);
        if (!kernel.name || step_is_left_out(step, run->device) || step_obstacle(step, run->device))
            continue;
        struct healcl_manifest_kernel row = {
            .name = kernel.name,
            .what = kernel.replaces ? kernel.replaces : step->vendor->operation->name,
            .manifest = kernel.file,
            .replaces = kernel.replaces != NULL,
            .tuned = kernel.is_tuned};
        size_t number = 0; /* of its row */
        while (number < report->manifest_kernel_count &&
               !is_same_kernel(&report->manifest_kernels[number], &row))
            number++;
        if (number == report->manifest_kernel_count) {
            /* Copies the texts: manifests may be freed before the report. */
            row.name = arena_strdup(run->arena, row.name);
            row.what = arena_strdup(run->arena, row.what);
            row.manifest = arena_strdup(run->arena, row.manifest);
            NEED_MEMORY(row.name && row.what && row.manifest, error);
            NEED_MEMORY(ARRAY_GROW(report->manifest_kernels, number, &capacity), error);
            report->manifest_kernels[report->manifest_kernel_count++] = row;
        }
        report->manifest_kernels[number].steps++;
    }
    return HEALCL_OK;
}

/* Fills in what a device reports at the end of a run: manifests' kernels, memory, programs. Warns
 * if more memory was allocated than the caller allows. */
static enum healcl_status report_device(struct run *run, struct healcl_error *error)
{
    struct healcl_report *report = run->report;
    report->device_bytes_peak = run->device->bytes_peak;
    TRY(report_manifest_kernels(run, error));
    device_executor_price(run->executor, report);
    if (report->device_memory_limit > 0 && report->device_bytes_peak > report->device_memory_limit)
        warn(run,
             "%" PRIu64 " bytes were allocated on the device, above the limit of %" PRIu64
             ": scratch memory and tables of steps come on top of their tensors",
             report->device_bytes_peak, report->device_memory_limit);
    count_programs(run);
    return HEALCL_OK;
}

/* Runs the warm-up and all repetitions, and fills the report. The caller releases what run holds,
 * also after an error. */
static enum healcl_status run_repetitions(struct run *run,
                                          const struct healcl_transcript *transcript,
                                          struct healcl_error *error)
{
    TRY(report_init(run, error));
    TRY(bind_inputs(run, transcript, error));
    TRY(results_create(run->plan, run->options, &run->results, error));
    if (run->device)
        count_programs(run);
    TRY(create_executor(run, error));
    uint32_t next = 0;
    TRY(warm_up(run, &next, error));
    for (uint32_t i = next; i < columns(run); i++) {
        TRY(run->executor->class->rewind(run->executor, 0, error));
        TRY(repeat(run, i, false, error)); /* not a warm-up */
    }
    report_medians(run);
    run->report->operations_by_host = !run->device || !run->device->event_times;
    results_report(run->results, run->report);
    run->report->device_bytes_peak = run->plan->bytes_peak;
    return run->device ? report_device(run, error) : HEALCL_OK;
}

/* Makes an empty report. It owns the arena from which the run allocates. */
static enum healcl_status create_report(struct run *run, struct healcl_error *error)
{
    run->arena = arena_create();
    NEED_MEMORY(run->arena, error);
    struct owned_report *owned = arena_alloc(run->arena, sizeof *owned);
    if (!owned) {
        arena_free(run->arena);
        NO_MEMORY(error);
    }
    owned->arena = run->arena;
    run->report = &owned->report;
    return HEALCL_OK;
}

enum healcl_status healcl_run(const struct healcl_transcript *transcript,
                              struct healcl_device *device,
                              const struct healcl_run_options *options,
                              struct healcl_report **report, struct healcl_error *error)
{
    return healcl_run_traced(transcript, device, options, NULL, report, error);
}

/* Runs a plan's repetitions and makes a report, which the caller frees. If nothing was compared
 * with the file, checks at the end that the file has not changed: then the input data may be wrong.
 */
enum healcl_status healcl_run_traced(const struct healcl_transcript *transcript,
                                     struct healcl_device *device,
                                     const struct healcl_run_options *options, struct trace *trace,
                                     struct healcl_report **report, struct healcl_error *error)
{
    static const struct healcl_run_options defaults;
    NEED(transcript, error);
    NEED(report, error);
    if (healcl_transcript_split_facts(transcript).exchanges > 0)
        FAIL(error, HEALCL_USAGE, "a part that exchanges sums needs a session");
    struct run run = {.plan = transcript->plan,
                      .options = options ? options : &defaults,
                      .device = device,
                      .trace = trace};
    run.repeat = run.options->repeat ? run.options->repeat : 1;
    if (device && run.options->profile && !trace) /* a trace has the commands of all repetitions */
        run.profiled = run.repeat < PROFILED_MOST ? run.repeat : PROFILED_MOST;
    TRY(create_report(&run, error));
    device_turn_begin(device); /* sessions wait, so that only this run is measured */
    enum healcl_status status = run_repetitions(&run, transcript, error);
    if (run.executor)
        run.executor->class->destroy(run.executor);
    if (device)
        device_trace_end(device);
    device_turn_end(device);
    results_free(run.results);
    status = source_explain(run.plan->source, status, error);
    if (status == HEALCL_OK && run.report->verdict == HEALCL_NOTHING_TO_VERIFY)
        status = source_check(run.plan->source, error);
    if (status != HEALCL_OK) {
        healcl_report_free(run.report);
        return status;
    }
    *report = run.report;
    return HEALCL_OK;
}

/* Frees a report with its arena. The caller has a pointer to the report, the first member of the
 * struct that owns the arena. */
void healcl_report_free(struct healcl_report *report)
{
    if (!report)
        return;
    free(report->manifest_kernels);
    arena_free(((struct owned_report *)report)->arena);
}
