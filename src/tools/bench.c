#include "tools/bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/numbers.h"
#include "kernels/variant.h"
#include "run/run.h"
#include "tools/bench_case.h"
#include "tools/bench_host.h"
#include "tools/xmalloc.h"

enum {
    WARM_UP_SAMPLES = 3,
    WARM_UP_TIMES = 3,    /* as long as a sample */
    SAMPLE_NS = 20000000, /* at least: starting and waiting at its end are none of it */
    LAUNCHES_MAX = 1000,  /* operations in one sample */
    SAMPLES_MIN = 15,     /* where nothing is said of them */
    SAMPLES_LONG = 5,     /* where SAMPLES_MIN would take too long */
    SAMPLES_MAX = 1000000,
};

static const uint64_t ENOUGH_NS = 500000000, TOO_LONG_NS = 3000000000;

/* Units that the host reference works out, in all windows; at least a row in each. */
enum { REFERENCE_UNITS = 1 << 22 };

/* Of an output that there are two of: longer launches gain nothing by overlapping. */
enum { SECOND_OUTPUT_BYTES = 64 << 20 };

/* Rows of the output that are compared: runs of them, as far apart as can be. */
enum { WINDOWS = 8 };

struct window {
    int64_t first, count;
    char *bytes; /* of the device's output, in C order */
};

/* A transcript in memory, and its plan. */
struct script {
    char *text;
    struct source source;
    struct plan *plan;
};

/* Where launches can overlap, every other one writes here, so that they may. */
struct second_output {
    struct storage **storages; /* of the looped plan: this one is the last; NULL: there is none */
    struct storage storage;
    struct tensor out, result; /* as the operation and the download see it */
    struct step *download;
};

struct bench {
    const struct bench_options *options;
    struct bench_case measured;
    struct script script;
    const struct segment *timed; /* of script.plan: the operation's */
    struct plan
        looped; /* script.plan with the operation's steps LAUNCHES_MAX times behind its own */
    struct step *steps; /* of looped */
    size_t loop_steps;  /* of one operation */
    struct second_output second;
    struct executor *executor;
    struct window windows[WINDOWS];
    int window_count;
    struct host_copy *host_copy;
    uint64_t *samples; /* nanoseconds */
    size_t sample_count, sample_capacity;
};

/* ---------------------------------------------------------------- transcripts */

static void script_release(struct script *script)
{
    plan_free(script->plan);
    free(script->text);
}

/* The caller releases the script, also where this fails. */
static enum healcl_status script_init(struct script *script, const struct bench_case *measured,
                                      int64_t first, int64_t count,
                                      const struct bench_options *options,
                                      struct healcl_error *error)
{
    script->text = bench_case_text(measured, first, count);
    script->source = (struct source){.text = script->text, .length = strlen(script->text)};
    const struct healcl_limits limits = {.memory_bytes = options->memory_limit};
    return plan_create(&script->source, options->table, &limits, &script->plan, error);
}

static enum healcl_status run_segment(struct executor *executor, const struct segment *segment,
                                      const struct result_sink *sink, uint64_t *nanoseconds,
                                      struct healcl_error *error)
{
    struct segment_result result = {.nanoseconds = 0};
    TRY(executor->class->run_segment(executor, segment, sink, &result, error));
    *nanoseconds = result.nanoseconds;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- verification */

/* All rows where the reference can do them in reasonable time; else the first ones, the last ones
 * and some at equal distances between them. */
static void choose_windows(struct bench *bench)
{
    int64_t rows = bench_case_rows(&bench->measured);
    int64_t row_units = (int64_t)(bench->measured.units / (uint64_t)rows);
    int64_t count = REFERENCE_UNITS / WINDOWS / (row_units + 1) + 1;
    if (WINDOWS * count >= rows) {
        bench->windows[0].count = rows;
        bench->window_count = 1;
        return;
    }
    bench->window_count = WINDOWS;
    for (int i = 0; i < WINDOWS; i++) {
        bench->windows[i].first = i * (rows - count) / (WINDOWS - 1);
        bench->windows[i].count = count;
    }
}

/* The bytes of a window among data, the whole output. */
static size_t window_bytes(const struct bench *bench, const struct step *step, int64_t rows)
{
    const struct tensor *out = step->in[0];
    size_t bytes = (size_t)packed_bytes(out);
    return bytes / (size_t)bench_case_rows(&bench->measured) * (size_t)rows;
}

/* A sink: keeps the windows of the device's output. */
static enum healcl_status keep_windows(void *context, const struct step *step, const void *data,
                                       struct healcl_error *error)
{
    struct bench *bench = context;
    (void)error;
    for (int i = 0; i < bench->window_count; i++) {
        struct window *window = &bench->windows[i];
        size_t bytes = window_bytes(bench, step, window->count);
        window->bytes = xmalloc(bytes);
        memcpy(window->bytes, (const char *)data + window_bytes(bench, step, window->first), bytes);
    }
    return HEALCL_OK;
}

/* A sink: compares a window of the device's output with the reference's. */
static enum healcl_status compare_window(void *context, const struct step *step, const void *data,
                                         struct healcl_error *error)
{
    const struct window *window = context;
    const struct tensor *out = step->in[0];
    enum dtype dtype = out->storage->dtype;
    int64_t count = layout_elements(&out->layout), rows = out->layout.shape[0];
    for (int64_t i = 0; i < count; i++) {
        int64_t actual = dtype_load(dtype, window->bytes, i), expected = dtype_load(dtype, data, i);
        if (actual == expected)
            continue;
        struct layout shape = out->layout;
        char text[SHAPE_TEXT_SIZE];
        shape.shape[0] = window->first + rows;
        FAIL(error, HEALCL_DIFFERENT,
             "the device's result is wrong: %" PRId64 ", not %" PRId64 ", at %s", actual, expected,
             layout_index_text(&shape, i + count / rows * window->first, text));
    }
    return HEALCL_OK;
}

static enum healcl_status verify_window(const struct bench *bench, struct window *window,
                                        struct healcl_error *error)
{
    struct script script = {.text = NULL};
    struct executor *executor = NULL;
    struct result_sink sink = {.context = window, .take = compare_window};
    enum healcl_status status =
        script_init(&script, &bench->measured, window->first, window->count, bench->options, error);
    if (status == HEALCL_OK)
        status = reference_executor_create(script.plan, &executor, error);
    if (status == HEALCL_OK)
        status = executor_run(executor, script.plan, &sink, error);
    if (executor)
        executor->class->destroy(executor);
    script_release(&script);
    return status;
}

/* Runs the whole transcript once, and compares what it gave. */
static enum healcl_status verify(struct bench *bench, struct healcl_error *error)
{
    struct result_sink sink = {.context = bench, .take = keep_windows};
    choose_windows(bench);
    TRY(executor_run(bench->executor, bench->script.plan, &sink, error));
    for (int i = 0; i < bench->window_count; i++)
        TRY(verify_window(bench, &bench->windows[i], error));
    return HEALCL_OK;
}

/* A sink: the output after the last sample is what it was at first. */
static enum healcl_status compare_again(void *context, const struct step *step, const void *data,
                                        struct healcl_error *error)
{
    const struct bench *bench = context;
    for (int i = 0; i < bench->window_count; i++) {
        const struct window *window = &bench->windows[i];
        const char *now = (const char *)data + window_bytes(bench, step, window->first);
        if (memcmp(now, window->bytes, window_bytes(bench, step, window->count)) != 0)
            FAIL(error, HEALCL_DIFFERENT, "the device's result changed from one run to the next");
    }
    return HEALCL_OK;
}

static enum healcl_status verify_again(struct bench *bench, const struct bench_result *result,
                                       struct healcl_error *error)
{
    struct result_sink sink = {.context = bench, .take = compare_again};
    uint64_t ignored;
    if (bench->measured.operation->accumulates)
        return HEALCL_OK;
    TRY(run_segment(bench->executor, &bench->script.plan->segments[BENCH_RESULT], &sink, &ignored,
                    error));
    if (!bench->second.storages || result->launches == 1)
        return HEALCL_OK; /* there is no second one, or nothing was written there */
    const struct segment second = {
        .name = "", .first_step = (size_t)(bench->second.download - bench->steps), .step_count = 1};
    return run_segment(bench->executor, &second, &sink, &ignored, error);
}

/* ---------------------------------------------------------------- timing */

/* Whether more memory does not make the difference between working in the device's cache and not:
 * it still fits well, or nothing does. */
static bool caches_as_well(const struct healcl_device *device, uint64_t bytes, uint64_t more)
{
    uint64_t cache = device->info.cache_bytes;
    return bytes + more <= cache / 2 || bytes > cache;
}

/* Whether launches of the operation, one step, would be independent if they had two outputs. */
static bool wants_second_output(const struct bench *bench, const struct healcl_device *device)
{
    const struct plan *plan = bench->script.plan;
    const struct step *step = &plan->steps[bench->timed->first_step];
    uint64_t bytes = step->out ? storage_bytes(step->out->storage) : 0;
    if (!device->overlaps || !step->out || bytes > SECOND_OUTPUT_BYTES || bench->loop_steps != 1 ||
        bench->measured.operation->accumulates || plan->segments[BENCH_RESULT].step_count != 1 ||
        plan->bytes_peak + bytes > bench->options->memory_limit ||
        !caches_as_well(device, plan->bytes_peak, bytes))
        return false;
    for (int i = 0; i < STEP_INPUTS; i++)
        if (step->in[i] && step->in[i]->storage == step->out->storage)
            return false;
    return true;
}

/* Gives every other step of the loop another output, and downloads it at the end of all. */
static void add_second_output(struct bench *bench)
{
    struct second_output *second = &bench->second;
    struct plan *looped = &bench->looped;
    size_t count = looped->storage_count, loop = looped->step_count;
    second->storages = xcalloc(count + 1, sizeof *second->storages);
    memcpy(second->storages, looped->storages, count * sizeof *second->storages);
    second->storages[count] = &second->storage;
    second->out = *bench->steps[loop].out;
    second->storage = *second->out.storage;
    second->storage.id = (uint32_t)count;
    second->out.storage = &second->storage;
    for (size_t i = 1; i < LAUNCHES_MAX; i += 2)
        bench->steps[loop + i].out = &second->out;
    second->download = &bench->steps[loop + LAUNCHES_MAX];
    *second->download = looped->steps[looped->segments[BENCH_RESULT].first_step];
    second->result = *second->download->in[0];
    second->result.storage = &second->storage;
    second->download->in[0] = &second->result;
    looped->storages = second->storages;
    looped->storage_count++;
}

/* Makes a plan whose steps are those of the script and, behind them, the operation's many times. */
static enum healcl_status make_loop(struct bench *bench, const struct healcl_device *device,
                                    struct healcl_error *error)
{
    const struct plan *plan = bench->script.plan;
    const struct segment *operation = bench->timed;
    bench->loop_steps = operation->step_count;
    if (bench->loop_steps == 0)
        FAIL(error, HEALCL_USAGE, "nothing is to be done: the tensor is contiguous already");
    bench->steps =
        xcalloc(plan->step_count + LAUNCHES_MAX * bench->loop_steps + 1, sizeof *bench->steps);
    memcpy(bench->steps, plan->steps, plan->step_count * sizeof *bench->steps);
    for (size_t i = 0; i < LAUNCHES_MAX; i++)
        memcpy(bench->steps + plan->step_count + i * bench->loop_steps,
               plan->steps + operation->first_step, bench->loop_steps * sizeof *bench->steps);
    bench->looped = *plan;
    bench->looped.steps = bench->steps;
    if (wants_second_output(bench, device))
        add_second_output(bench);
    return HEALCL_OK;
}

/* Enqueues the operation so many times, and waits. */
static enum healcl_status run_on_device(struct bench *bench, uint32_t launches,
                                        uint64_t *nanoseconds, struct healcl_error *error)
{
    struct segment segment = {.name = "",
                              .first_step = bench->script.plan->step_count,
                              .step_count = launches * bench->loop_steps};
    return run_segment(bench->executor, &segment, NULL, nanoseconds, error);
}

static enum healcl_status run_sample(struct bench *bench, uint32_t launches, uint64_t *nanoseconds,
                                     struct healcl_error *error)
{
    if (bench->measured.operation->arguments)
        return run_on_device(bench, launches, nanoseconds, error);
    return host_copy_run(bench->host_copy, launches, nanoseconds, error);
}

/* Runs the operation until it is warm; *launches is then how many make a sample. */
static enum healcl_status warm_up(struct bench *bench, uint32_t *launches,
                                  struct healcl_error *error)
{
    uint64_t last = 0, spent = 0;
    const uint64_t sample = bench->options->sample_ns ? bench->options->sample_ns : SAMPLE_NS;
    *launches = 1;
    for (int i = 0; i < WARM_UP_SAMPLES || spent < WARM_UP_TIMES * sample; i++) {
        TRY(run_sample(bench, *launches, &last, error));
        spent += last + 1;
        if (last < sample) {
            uint64_t needed = sample * (uint64_t)*launches / (last + 1) + 1;
            *launches = needed < LAUNCHES_MAX ? (uint32_t)needed : LAUNCHES_MAX;
        }
    }
    return HEALCL_OK;
}

/* Whether the samples, which took so long together, are enough. */
static bool is_enough(const struct bench *bench, uint64_t spent)
{
    size_t count = bench->sample_count;
    if (bench->options->repeat)
        return count >= bench->options->repeat;
    return (count >= SAMPLES_MIN && spent >= ENOUGH_NS) || count >= SAMPLES_MAX ||
           (count >= SAMPLES_LONG && spent >= TOO_LONG_NS);
}

static void summarise(struct bench *bench, struct bench_result *result)
{
    size_t count = bench->sample_count, quarter = count / 4;
    double launches = result->launches;
    result->median_ns = (double)sort_to_median(bench->samples, count) / launches;
    result->samples = (uint32_t)count;
    result->min_ns = (double)bench->samples[0] / launches;
    result->max_ns = (double)bench->samples[count - 1] / launches;
    result->quartile_ns[0] = (double)bench->samples[quarter] / launches;
    result->quartile_ns[1] = (double)bench->samples[count - 1 - quarter] / launches;
}

static enum healcl_status take_samples(struct bench *bench, struct bench_result *result,
                                       struct healcl_error *error)
{
    TRY(warm_up(bench, &result->launches, error));
    for (uint64_t spent = 0, last; !is_enough(bench, spent); spent += last) {
        TRY(run_sample(bench, result->launches, &last, error));
        if (!ARRAY_GROW(bench->samples, bench->sample_count, &bench->sample_capacity))
            xmalloc_fail();
        bench->samples[bench->sample_count++] = last;
    }
    summarise(bench, result);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- all of it */

static enum healcl_status run_host_copy(struct bench *bench, struct bench_result *result,
                                        struct healcl_error *error)
{
    if (bench->measured.bytes > bench->options->memory_limit)
        REFUSE(error, "%" PRIu64 " bytes are above the limit of %" PRIu64, bench->measured.bytes,
               bench->options->memory_limit);
    TRY(host_copy_create(bench->measured.bytes / 2, &bench->host_copy, error));
    TRY(take_samples(bench, result, error));
    return host_copy_verify(bench->host_copy, error);
}

static enum healcl_status run_case(struct bench *bench, struct healcl_device *device,
                                   struct bench_result *result, struct healcl_error *error)
{
    int64_t rows = bench_case_rows(&bench->measured);
    TRY(script_init(&bench->script, &bench->measured, 0, rows, bench->options, error));
    bench->timed = &bench->script.plan->segments[BENCH_OPERATE];
    TRY(make_loop(bench, device, error));
    TRY(device_executor_create(device, &bench->looped, false, &bench->executor, error));
    TRY(verify(bench, error));
    TRY(take_samples(bench, result, error));
    return verify_again(bench, result, error);
}

static void bench_release(struct bench *bench)
{
    if (bench->executor)
        bench->executor->class->destroy(bench->executor);
    for (int i = 0; i < WINDOWS; i++)
        free(bench->windows[i].bytes);
    host_copy_free(bench->host_copy);
    free(bench->samples);
    free(bench->steps);
    free(bench->second.storages);
    script_release(&bench->script);
}

enum healcl_status bench_check(const struct bench_operation *operation,
                               const struct bench_settings *given, struct healcl_error *error)
{
    struct bench_case ignored;
    return bench_case_init(&ignored, operation, given, error);
}

enum healcl_status bench_run(struct healcl_device *device, const struct bench_operation *operation,
                             const struct bench_settings *given,
                             const struct bench_options *options, struct bench_result *result,
                             struct healcl_error *error)
{
    struct bench bench = {.options = options};
    TRY(bench_case_init(&bench.measured, operation, given, error));
    *result = (struct bench_result){.operation = operation,
                                    .parameters = bench.measured.settings,
                                    .shape = bench.measured.shape,
                                    .unit = operation->unit,
                                    .units = bench.measured.units,
                                    .bytes = bench.measured.bytes};
    enum healcl_status status = operation->arguments ? run_case(&bench, device, result, error)
                                                     : run_host_copy(&bench, result, error);
    if (status != HEALCL_OK)
        error_prefix(error, "%s: ", bench_operation_name(operation));
    bench_release(&bench);
    return status;
}

/* ---------------------------------------------------------------- examples of manifests */

/* What is timed is the plan's only segment; results were compared before. */
static enum healcl_status time_plan(struct healcl_device *device,
                                    const struct bench_options *options, struct plan *plan,
                                    const struct problem *problem,
                                    const struct placement *placement,
                                    const struct problem_data *data, struct bench_result *result,
                                    struct healcl_error *error)
{
    static const struct bench_operation any = {.arguments = "", .accumulates = true};
    struct bench bench = {.options = options,
                          .measured = {.operation = &any},
                          .script = {.plan = plan},
                          .timed = plan->segments};
    struct random random = {0};
    enum healcl_status status = make_loop(&bench, device, error);
    if (status == HEALCL_OK)
        status = device_executor_create(device, &bench.looped, false, &bench.executor, error);
    if (status == HEALCL_OK)
        status = problem_upload(bench.executor, problem, placement, data, &random, error);
    if (status == HEALCL_OK)
        status = take_samples(&bench, result, error);
    bench.script.plan = NULL; /* the caller's */
    bench_release(&bench);
    return status;
}

/* kernel: that is to run it; NULL: any. Its name, or with a body NULL, is then *ran. */
static enum healcl_status measure_side(struct healcl_device *device,
                                       const struct bench_options *options,
                                       const struct examples *examples,
                                       const struct example *example, enum example_side side,
                                       const char *kernel, const char **ran,
                                       struct bench_result *result, struct healcl_error *error)
{
    const struct problem problem = example_problem(examples, example, side);
    struct problem_data data;
    struct placement placement;
    struct planned planned;
    struct random random = {0};
    problem_data_init(&data, &problem, &random);
    for (int i = 0; i < PARAMETERS_MAX; i++)
        if (data.packed[i] && example->data.packed[i])
            memcpy(data.packed[i], example->data.packed[i],
                   (size_t)layout_elements(&problem.tensors[i].shape) *
                       dtype_size(problem.tensors[i].dtype));
    placement_make(&placement, &problem, ARRANGEMENT_CONTIGUOUS, 0, &random);
    struct manifest_kernel found;
    (void)problem_kernel(device, &problem, &placement, &found);
    *ran = found.name;
    enum healcl_status status = problem_plan(&planned, &problem, &placement, error);
    const bool is_run = side == EXAMPLE_BODY || (*ran && (!kernel || kernel == *ran));
    if (status == HEALCL_OK && is_run)
        status = example_verify(device, examples, example, side, error);
    if (status == HEALCL_OK && is_run)
        status =
            time_plan(device, options, planned.plan, &problem, &placement, &data, result, error);
    planned_release(&planned);
    problem_data_release(&data);
    if (status != HEALCL_OK)
        error_prefix(error, "%s, %s, entry %zu, its %s: ", example->operation->name, example->file,
                     example->entry, example_side_name(side));
    return status;
}

enum healcl_status bench_example(struct healcl_device *device, const struct bench_options *options,
                                 const struct examples *examples, struct bench_example *example,
                                 struct healcl_error *error)
{
    const struct vendor_operation *vendor = example_vendor(example->example->operation);
    const char *ran;
    memset(example->of, 0, sizeof example->of);
    if (vendor->kernel_count > 0)
        TRY(measure_side(device, options, examples, example->example, EXAMPLE_KERNEL, NULL,
                         &example->kernel, &example->of[EXAMPLE_KERNEL], error));
    return vendor->body_count == 0
               ? HEALCL_OK
               : measure_side(device, options, examples, example->example, EXAMPLE_BODY, NULL, &ran,
                              &example->of[EXAMPLE_BODY], error);
}

enum healcl_status bench_kernel(struct healcl_device *device, const struct bench_options *options,
                                const struct examples *examples, const struct example *example,
                                const char *kernel, struct bench_result *result,
                                struct healcl_error *error)
{
    const char *ran;
    *result = (struct bench_result){.samples = 0};
    return measure_side(device, options, examples, example, EXAMPLE_KERNEL, kernel, &ran, result,
                        error);
}
