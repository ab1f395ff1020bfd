#include "tools/bench.h"

#include "core/numbers.h"
#include "kernels/variant.h"
#include "tools/results.h"
#include "tools/xmalloc.h"

enum {
    WARM_UP_SAMPLES = 3,
    WARM_UP_TIMES = 3,    /* total length, in samples */
    SAMPLE_NS = 20000000, /* at least, so that start and final wait do not matter */
    LAUNCHES_MAX = 1000,  /* operations in one sample */
    SAMPLES_MIN = 15,     /* if no number is given */
    SAMPLES_LONG = 5,     /* if SAMPLES_MIN samples would take too long */
    SAMPLES_MAX = 1000000,
};

static const uint64_t ENOUGH_NS = 500000000, TOO_LONG_NS = 3000000000;

/* Units of work for the host reference in all windows together; each window has at least one
 * row. */
enum { REFERENCE_UNITS = 1 << 22 };

/* Largest output to have twice: longer launches do not get faster by overlapping. */
enum { SECOND_OUTPUT_BYTES = 64 << 20 };

/* Number of windows of compared output rows, as far apart as possible. */
enum { WINDOWS = 8 };

struct bench {
    const struct bench_options *options;
    struct bench_case measured; /* for an example: without an operation */
    bool accumulates;
    struct planned script;
    /* script.plan, followed by LAUNCHES_MAX repetitions of the operation's steps. If launches can
     * overlap, every second one has another output, so that they do. */
    struct plan looped;
    struct step *steps; /* of looped */
    size_t loop_steps;  /* of one operation */
    struct executor *executor;
    struct results output; /* the device's, from the first run */
    uint64_t *samples;     /* nanoseconds */
    size_t sample_count;
};

/* ---------------------------------------------------------------- transcripts */

static enum healcl_status plan_text(struct planned *script, char *text,
                                    const struct bench_options *options, struct healcl_error *error)
{
    const struct healcl_plan_options limited = {.memory_limit = options->memory_limit};
    return planned_init(script, text, options->table, &limited, error);
}

static enum healcl_status run_segment(struct bench *bench, const struct segment *segment,
                                      const struct result_sink *sink, uint64_t *nanoseconds,
                                      struct healcl_error *error)
{
    TRY(bench->executor->class->run_segment(bench->executor, segment, sink, error));
    *nanoseconds = bench->executor->times.nanoseconds;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- verification */

/* Compares the device's output, from byte `start` on, with the reference's result of a transcript.
 * Takes ownership of the text. */
static enum healcl_status verify_part(const struct bench *bench, char *text, size_t start,
                                      struct healcl_error *error)
{
    const struct result *output = &bench->output.of[0];
    const struct plan *plan = bench->script.plan;
    struct planned script;
    struct results expected = {.count = 0};
    enum healcl_status status = plan_text(&script, text, bench->options, error);
    THEN(status, results_run(&expected, NULL, script.plan, NULL, 0, error));
    if (status == HEALCL_OK) {
        const struct step *download = &plan->steps[plan->segments[BENCH_RESULT].first_step];
        const struct difference difference = difference_of(
            output->dtype, output->bytes + start, expected.of[0].bytes, expected.of[0].size);
        const int64_t at = difference.element + (int64_t)(start / dtype_size(output->dtype));
        char index[SHAPE_TEXT_SIZE];
        if (difference.found)
            status = ERROR(error, HEALCL_DIFFERENT,
                           "the device's result is wrong: %" PRId64 ", not %" PRId64 ", at %s",
                           difference.actual, difference.expected,
                           layout_index_text(&download->in[0]->layout, at, index));
    }
    results_release(&expected);
    planned_release(&script);
    return status;
}

/* Compares all rows if the reference can compute them in reasonable time. Otherwise it compares the
 * first rows, the last rows, and others at equal distances between them. */
static enum healcl_status verify_windows(const struct bench *bench, struct healcl_error *error)
{
    const struct bench_case *measured = &bench->measured;
    const int64_t rows = measured->settings.of[BENCH_BATCH];
    const int64_t row_units = (int64_t)(measured->units / (uint64_t)rows);
    const int64_t wanted = REFERENCE_UNITS / WINDOWS / (row_units + 1) + 1;
    const int64_t windows = WINDOWS * wanted >= rows ? 1 : WINDOWS;
    const int64_t count = windows == 1 ? rows : wanted;
    for (int64_t i = 0; i < windows; i++) {
        const int64_t first = i * (rows - count) / (WINDOWS - 1);
        TRY(verify_part(bench, bench_case_text(measured, first, count, false),
                        bench->output.of[0].size / (size_t)rows * (size_t)first, error));
    }
    return HEALCL_OK;
}

/* The `take` function of a sink: keeps the first output, and compares later outputs with it. */
static enum healcl_status take_output(void *context, const struct step *step, const void *data,
                                      struct healcl_error *error)
{
    struct bench *bench = context;
    if (bench->output.count == 0)
        return results_take(&bench->output, step, data, error);
    if (memcmp(data, bench->output.of[0].bytes, bench->output.of[0].size) != 0)
        FAIL(error, HEALCL_DIFFERENT, "the device's result changed from one run to the next");
    return HEALCL_OK;
}

/* Checks that the outputs after the last sample equal the first output. */
static enum healcl_status verify_again(struct bench *bench, const struct bench_result *result,
                                       struct healcl_error *error)
{
    const struct result_sink sink = {.context = bench, .take = take_output};
    const struct plan *plan = bench->script.plan;
    uint64_t ignored;
    if (bench->accumulates)
        return HEALCL_OK;
    TRY(run_segment(bench, &plan->segments[BENCH_RESULT], &sink, &ignored, error));
    if (plan->segment_count == BENCH_SEGMENTS || result->launches == 1)
        return HEALCL_OK;
    return run_segment(bench, &plan->segments[BENCH_SECOND_RESULT], &sink, &ignored, error);
}

/* ---------------------------------------------------------------- timing */

/* Whether launches alternate between two outputs. A second output must not decide whether the data
 * fit in the device's cache: with and without it, either both fit or neither does. */
static bool wants_second_output(const struct bench *bench, const struct healcl_device *device)
{
    const uint64_t cache = device->info.cache_bytes;
    const uint64_t bytes = bench->measured.bytes, output = bench->measured.output_bytes;
    return device->commands_overlap && !bench->accumulates && output <= SECOND_OUTPUT_BYTES &&
           bytes + output <= bench->options->memory_limit &&
           (bytes + output <= cache / 2 || bytes > cache);
}

/* Makes the looped plan. */
static enum healcl_status make_loop(struct bench *bench, struct healcl_error *error)
{
    const struct plan *plan = bench->script.plan;
    const bool alternates = plan->segment_count > BENCH_SEGMENTS;
    const struct segment *repeated[] = {
        &plan->segments[BENCH_OPERATE],
        &plan->segments[alternates ? BENCH_SECOND_OPERATE : BENCH_OPERATE]};
    bench->loop_steps = repeated[0]->step_count;
    if (bench->loop_steps == 0)
        FAIL(error, HEALCL_USAGE, "there is nothing to do: the tensor is already contiguous");
    bench->steps =
        xcalloc(plan->step_count + LAUNCHES_MAX * bench->loop_steps, sizeof *bench->steps);
    memcpy(bench->steps, plan->steps, plan->step_count * sizeof *bench->steps);
    for (size_t i = 0; i < LAUNCHES_MAX; i++)
        memcpy(bench->steps + plan->step_count + i * bench->loop_steps,
               plan->steps + repeated[i % 2]->first_step, bench->loop_steps * sizeof *bench->steps);
    bench->looped = *plan;
    bench->looped.steps = bench->steps;
    return HEALCL_OK;
}

/* Enqueues the operation `launches` times, and waits. */
static enum healcl_status run_sample(struct bench *bench, uint32_t launches, uint64_t *nanoseconds,
                                     struct healcl_error *error)
{
    const struct segment segment = {.name = "",
                                    .first_step = bench->script.plan->step_count,
                                    .step_count = launches * bench->loop_steps};
    return run_segment(bench, &segment, NULL, nanoseconds, error);
}

/* Runs the operation until its times are stable. *launches: the number of launches in a sample. */
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

/* Whether there are enough samples. spent: their total nanoseconds. */
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
        bench->samples = xrealloc(bench->samples, bench->sample_count + 1, sizeof *bench->samples);
        bench->samples[bench->sample_count++] = last;
    }
    summarise(bench, result);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- all of it */

static void name_kernel(const struct plan *plan, const struct healcl_device *device,
                        struct bench_result *result)
{
    const struct segment *operate = &plan->segments[BENCH_OPERATE];
    const struct step *step = &plan->steps[operate->first_step], *end = step + operate->step_count;
    while (step < end && !family_of(step->kind))
        step++;
    if (step == end)
        return;
    const struct manifest_kernel found = vendor_kernel_for(plan, step, device);
    struct healcl_error why = {.status = HEALCL_OK};
    result->kernel = found.name ? found.name : variant_for(step, device)->name;
    result->manifest = found.file;
    const struct vendor_kernel *other =
        found.name || !plan->table ? NULL : vendor_kernel_at(plan, step, device, 0, &why);
    if (other)
        snprintf(result->not_run, sizeof result->not_run, "%.64s, of %.60s, does not run: %.100s",
                 other->kernel, other->manifest, why.message);
    healcl_error_clear(&why);
}

/* Verifies and times a transcript with segments BENCH_PREPARE and so on. Takes ownership of its
 * text. verifies: whether the reference can run it. */
static enum healcl_status run_script(struct bench *bench, struct healcl_device *device, char *text,
                                     bool verifies, struct bench_result *result,
                                     struct healcl_error *error)
{
    const struct result_sink sink = {.context = bench, .take = take_output};
    TRY(plan_text(&bench->script, text, bench->options, error));
    TRY(make_loop(bench, error));
    name_kernel(bench->script.plan, device, result);
    TRY(device_executor_create(device, &bench->looped, &bench->executor, error));
    TRY(executor_run(bench->executor, bench->script.plan, &sink, error));
    if (verifies)
        TRY(bench->measured.operation ? verify_windows(bench, error)
                                      : verify_part(bench, xstrdup(text), 0, error));
    TRY(take_samples(bench, result, error));
    return verify_again(bench, result, error);
}

static void bench_release(struct bench *bench)
{
    if (bench->executor)
        bench->executor->class->destroy(bench->executor);
    results_release(&bench->output);
    free(bench->samples);
    free(bench->steps);
    planned_release(&bench->script);
}

enum healcl_status bench_run(struct healcl_device *device, const struct bench_operation *operation,
                             const struct bench_settings *given,
                             const struct bench_options *options, struct bench_result *result,
                             struct healcl_error *error)
{
    struct bench bench = {.options = options, .accumulates = operation->accumulates};
    TRY(bench_case_init(&bench.measured, operation, given, error));
    *result = (struct bench_result){.operation = operation,
                                    .parameters = bench.measured.settings,
                                    .shape = bench.measured.shape,
                                    .unit = operation->unit,
                                    .units = bench.measured.units,
                                    .bytes = bench.measured.bytes};
    char *text = bench_case_text(&bench.measured, 0, bench.measured.settings.of[BENCH_BATCH],
                                 wants_second_output(&bench, device));
    const enum healcl_status status = run_script(&bench, device, text, true, result, error);
    if (status != HEALCL_OK)
        error_prefix(error, "%s: ", operation->name);
    bench_release(&bench);
    return status;
}

/* ---------------------------------------------------------------- examples of manifests */

/* Returns the call of an example with contiguous tensors. */
static char *example_text(const struct problem *problem, const struct problem_data *data)
{
    struct writer writer = {0};
    char name[16], shape[SHAPE_TEXT_SIZE];
    writer_entry(&writer, "SEGMENT_START", "name", "prepare");
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        const struct problem_tensor *tensor = &problem->tensors[i];
        snprintf(name, sizeof name, "t%d", i);
        if (tensor->present && data->packed[i])
            writer_upload(&writer, name, tensor->dtype, &tensor->shape, false, tensor->dtype,
                          data->packed[i]);
        else if (tensor->present)
            writer_call(&writer, name, "empty", "%s :%s", layout_shape_text(&tensor->shape, shape),
                        dtype_name(tensor->dtype));
    }
    writer_next_segment(&writer, "operation");
    problem_put_call(&writer, problem);
    writer_next_segment(&writer, "result");
    snprintf(name, sizeof name, "t%d", problem->out);
    writer_download(&writer, problem->out >= 0 ? name : "made", DTYPE_INT64, NULL, NULL);
    writer_entry(&writer, "SEGMENT_END", NULL, NULL);
    return writer_finish(&writer);
}

enum healcl_status bench_example(struct healcl_device *device, const struct bench_options *options,
                                 const struct examples *examples, const struct example *example,
                                 enum example_side side, const char **kernel,
                                 struct bench_result *result, struct healcl_error *error)
{
    struct problem problem = example->problem;
    const struct vendor_operation *vendor = example_vendor(example->operation);
    const struct bench_options own = {options->repeat, options->sample_ns, options->memory_limit,
                                      examples->tables[side]};
    struct bench bench = {.options = &own, .accumulates = true};
    struct placement placement;
    struct manifest_kernel found;
    *result = (struct bench_result){.samples = 0};
    problem.table = own.table;
    placement_make(&placement, &problem, ARRANGEMENT_CONTIGUOUS, 0, NULL);
    const char *wanted = *kernel;
    (void)problem_kernel(device, &problem, &placement, &found);
    *kernel = found.name;
    if (side == EXAMPLE_KERNEL ? !*kernel || (wanted && wanted != *kernel)
                               : vendor->body_count == 0)
        return HEALCL_OK;
    enum healcl_status status = run_script(&bench, device, example_text(&problem, &example->data),
                                           vendor->body_count > 0, result, error);
    if (status == HEALCL_REFUSED && bench.executor && device_executor_has_refused(bench.executor))
        status = problem_refused(error);
    bench_release(&bench);
    if (status != HEALCL_OK)
        error_prefix(error, "%s, %s, entry %zu, its %s: ", example->operation->name, example->file,
                     example->entry, example_side_names[side]);
    return status;
}
