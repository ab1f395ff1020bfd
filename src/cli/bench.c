/* healcl bench */

#include "tools/bench.h"
#include "cli/command_job.h"

enum { REPEAT_MAX = 1000000, RESULTS_MAX = 64, EXAMPLE_RESULTS_MAX = 256 };

/* The state of `healcl bench`. */
struct bench_command {
    struct command_job job;
    const char *name; /* for --op, or NULL */
    /* For --op; NULL: the suite, or a manifest's operation. */
    const struct bench_operation *operation;
    const struct operation *vendors; /* for --op, if a manifest defines it; or NULL */
    struct bench_settings given;
    struct bench_options options;
    bool list;
    struct bench_result results[RESULTS_MAX];
    struct bench_result builtin[RESULTS_MAX]; /* the built-in kernel, if a manifest's kernel ran */
    size_t count;
    struct examples calls;                              /* of operations of manifests */
    struct bench_example examples[EXAMPLE_RESULTS_MAX]; /* their times */
    size_t example_count;
};

/* ---------------------------------------------------------------- measuring */

/* The settings of a case of the suite: its own parameters, replaced by those of the command line
 * that the operation uses. */
static struct bench_settings settings_of(const struct bench_command *self,
                                         const struct bench_operation *operation,
                                         const struct bench_settings *own)
{
    struct bench_settings settings = *own;
    const int64_t *given = self->given.of;
    if (given[BENCH_BATCH] || given[BENCH_BYTES])
        settings.of[BENCH_BATCH] = settings.of[BENCH_BYTES] = 0;
    for (enum bench_parameter i = 0; i < BENCH_PARAMETER_COUNT; i++)
        if (given[i] && bench_operation_takes(operation, i))
            settings.of[i] = given[i];
    return settings;
}

static enum healcl_status run_case(struct bench_command *self,
                                   const struct bench_operation *operation,
                                   const struct bench_settings *settings,
                                   struct healcl_error *error)
{
    struct bench_case ignored;
    if (!self->job.device) /* at first, parameters are only checked */
        return bench_case_init(&ignored, operation, settings, error);
    progress_say("measuring %s", operation->name);
    struct bench_result *result = &self->results[self->count];
    struct bench_options own = self->options;
    TRY(bench_run(self->job.device, operation, settings, &own, result, error));
    own.table = NULL;
    if (result->manifest)
        TRY(bench_run(self->job.device, operation, settings, &own, &self->builtin[self->count],
                      error));
    self->count++;
    return HEALCL_OK;
}

/* Runs the case of --op, or all cases of the suite. */
static enum healcl_status run_cases(struct bench_command *self, struct healcl_error *error)
{
    if (self->vendors)
        return HEALCL_OK;
    if (self->operation)
        return run_case(self, self->operation, &self->given, error);
    for (const struct bench_suite_case *next = bench_suite;
         next->operation && self->count < RESULTS_MAX; next++) {
        const struct bench_operation *operation = bench_operation_find(next->operation);
        struct bench_settings settings = settings_of(self, operation, &next->values);
        TRY(run_case(self, operation, &settings, error));
    }
    return HEALCL_OK;
}

/* Runs all examples of the operation of --op, or of all operations of manifests. */
static enum healcl_status measure_examples(struct bench_command *self, struct healcl_error *error)
{
    const struct operation *operation;
    for (size_t i = 0; (operation = example_operation_at(self->options.table, i)); i++) {
        if (self->operation || (self->vendors && self->vendors != operation))
            continue;
        for (const struct example *next = example_from(self->calls.first, operation);
             next && self->example_count < EXAMPLE_RESULTS_MAX;
             next = example_from(next->next, operation)) {
            struct bench_example *example = &self->examples[self->example_count];
            *example = (struct bench_example){.example = next};
            progress_say("measuring %s", operation->name);
            for (int side = EXAMPLE_SIDES; side-- > 0;) {
                example->kernel = NULL; /* the name of the kernel's side is kept */
                TRY(bench_example(self->job.device, &self->options, &self->calls, next,
                                  (enum example_side)side, &example->kernel, &example->of[side],
                                  error));
            }
            self->example_count++;
        }
    }
    return HEALCL_OK;
}

static enum healcl_status measure(void *context, struct healcl_error *error)
{
    struct bench_command *self = context;
    struct command_job *job = &self->job;
    TRY(examples_read(&self->calls, job->options.operations, error));
    if (self->vendors && !example_from(self->calls.first, self->vendors))
        FAIL(error, HEALCL_USAGE, "'%s' cannot be measured: no transcript in examples/ calls it",
             self->name);
    progress_say("opening the device");
    TRY(healcl_device_open(job->selector, &job->device, error));
    self->options.memory_limit = host_memory();
    self->options.table = operations_of_options(&job->options);
    TRY(run_cases(self, error));
    return measure_examples(self, error);
}

/* ---------------------------------------------------------------- JSON */

/* Writes "[64, 1, 4096] int8 heal": the main input, and parameters that differ from the usual. */
static const char *describe(const struct bench_result *result)
{
    const int64_t *of = result->parameters.of;
    const bool has_dtype = of[BENCH_DTYPE] && of[BENCH_DTYPE] != 1 + DTYPE_INT64;
    char bits[32] = "", shape[SHAPE_TEXT_SIZE];
    if (of[BENCH_BITS] && of[BENCH_BITS] != 62 && of[BENCH_BITS] != 30)
        snprintf(bits, sizeof bits, " %" PRId64 " bits", of[BENCH_BITS]);
    return xformat("%s%s%s%s%s%s%s", layout_shape_text(&result->shape, shape), has_dtype ? " " : "",
                   has_dtype ? bench_parameters[BENCH_DTYPE].choices[of[BENCH_DTYPE] - 1] : "",
                   bits, of[BENCH_LAYOUT] == BENCH_HEAL ? " heal" : "",
                   of[BENCH_VALUES] == BENCH_ANY ? " any" : "",
                   of[BENCH_PERM] == BENCH_PERM_REVERSE ? " perm" : "");
}

/* "base-bits" is the option, "base_bits" the key. */
static void add_parameter(cJSON *parent, enum bench_parameter parameter, int64_t value)
{
    const struct bench_parameter_info *info = &bench_parameters[parameter];
    char key[32];
    snprintf(key, sizeof key, "%s", info->name);
    for (char *c = key; *c; c++)
        if (*c == '-')
            *c = '_';
    if (info->choices)
        json_add_string(parent, key, info->choices[value - 1]);
    else
        json_add_number(parent, key, (uint64_t)value);
}

static void add_times(cJSON *object, const struct bench_result *result)
{
    JSON_ADD(object, NUMBER("samples", result->samples), NUMBER("launches", result->launches),
             DECIMAL("median_ns", result->median_ns), DECIMAL("min_ns", result->min_ns),
             DECIMAL("max_ns", result->max_ns));
}

/* Prints the ratio of another time to this one. Its bounds come from opposite quartiles: lower
 * divided by upper, and upper divided by lower. */
static void add_ratio(cJSON *object, const struct bench_result *result,
                      const struct bench_result *other)
{
    if (result->samples > 0 && other->samples > 0)
        JSON_ADD(object, DECIMAL("ratio", other->median_ns / result->median_ns),
                 DECIMAL("ratio_low", other->quartile_ns[0] / result->quartile_ns[1]),
                 DECIMAL("ratio_high", other->quartile_ns[1] / result->quartile_ns[0]));
}

static void add_kernel(cJSON *object, const struct bench_result *result)
{
    JSON_ADD(object, TEXT("kernel", result->kernel), TEXT("manifest", result->manifest),
             TEXT("not_run", result->not_run));
}

static void add_result(cJSON *object, const struct bench_result *result,
                       const struct bench_result *builtin)
{
    const double median = result->median_ns;
    JSON_ADD(object, STRING("op", result->operation->name), STRING("case", describe(result)));
    for (enum bench_parameter i = 0; i < BENCH_PARAMETER_COUNT; i++)
        if (result->parameters.of[i] && i != BENCH_BYTES)
            add_parameter(object, i, result->parameters.of[i]);
    json_add_integers(object, "shape", result->shape.shape, result->shape.rank);
    JSON_ADD(object, STRING("unit", bench_unit_names[result->unit]), NUMBER("units", result->units),
             NUMBER("bytes", result->bytes));
    add_times(object, result);
    JSON_ADD(object, DECIMAL("ns_per_unit", result->units > 0 ? median / (double)result->units : 0),
             DECIMAL("gb_per_s", median > 0 ? (double)result->bytes / median : 0));
    add_kernel(object, result);
    if (builtin->samples == 0)
        return;
    cJSON *other = json_add_object(object, "builtin");
    add_kernel(other, builtin);
    add_times(other, builtin);
    add_ratio(object, result, builtin);
}

static void add_example(cJSON *object, const struct bench_example *example)
{
    JSON_ADD(object, STRING("op", example->example->operation->name),
             STRING("example", example->example->file), NUMBER("entry", example->example->entry),
             /* An operation without a body cannot be compared. */
             FLAG("checked", example_vendor(example->example->operation)->body_count > 0));
    for (int i = 0; i < EXAMPLE_SIDES; i++) {
        const struct bench_result *side = &example->of[i];
        if (side->samples == 0)
            continue;
        cJSON *times = json_add_object(object, example_side_names[i]);
        if (i == EXAMPLE_KERNEL)
            json_add_string(times, "name", example->kernel);
        add_times(times, side);
    }
    add_ratio(object, &example->of[EXAMPLE_KERNEL], &example->of[EXAMPLE_BODY]);
}

static cJSON *report_bench(void *context)
{
    const struct bench_command *self = context;
    cJSON *document = json_report();
    report_add_device(json_add_object(document, "device"), &self->job.device->info);
    cJSON *list = json_add_array(document, "results");
    for (size_t i = 0; i < self->count; i++)
        add_result(json_add_object(list, NULL), &self->results[i], &self->builtin[i]);
    list = self->example_count > 0 ? json_add_array(document, "examples") : NULL;
    for (size_t i = 0; i < self->example_count; i++)
        add_example(json_add_object(list, NULL), &self->examples[i]);
    return document;
}

/* ---------------------------------------------------------------- text */

#define SPREAD(of) "{" of "min_ns/" of "median_ns:+}..{" of "max_ns/" of "median_ns:+}"
#define RUNS(of) "{" of "samples}x{" of "launches}"

static void print_bench(void *context, const cJSON *document, const struct style *style)
{
    (void)context;
    static const struct view_column columns[] = {
        {"operation", "{op}", VIEW_SHRINKS},
        {"case", "{case}", 0},
        {"kernel", "{kernel}", 0},
        {"ns", "{ns_per_unit:.3}", VIEW_RIGHT},
        {"per", "{unit}", 0},
        {"GB/s", "{gb_per_s:.1}", VIEW_RIGHT},
        {"spread", SPREAD(""), VIEW_RIGHT},
        {"runs", RUNS(""), VIEW_RIGHT},
    };
    static const struct view_column example_columns[] = {
        {"operation", "{op}{checked!, not checked}", VIEW_SHRINKS},
        {"example", "{example}:{entry}", VIEW_SHRINKS},
        {"kernel ns", "{kernel.median_ns:.0}", VIEW_RIGHT},
        {"spread", SPREAD("kernel."), VIEW_RIGHT},
        {"runs", RUNS("kernel."), VIEW_RIGHT},
        {"body ns", "{body.median_ns:.0}", VIEW_RIGHT},
        {"spread", SPREAD("body."), VIEW_RIGHT},
        {"runs", RUNS("body."), VIEW_RIGHT},
    };
    const cJSON *examples = json_at(document, "examples");
    view_line(style, document, "device", "{device.name}");
    if (json_number_at(document, "results") > 0) {
        VIEW_SECTION(style, json_at(document, "results"), columns);
        view_each(style, json_at(document, "results"), "{op}, {case}: {not_run}");
        view_each(style, json_at(document, "results"),
                  "{op}, {case}: the built-in kernel, {builtin.kernel}, takes {ratio:.2} "
                  "({ratio_low:.2} to {ratio_high:.2}) of the time of {kernel}, of {manifest}");
    }
    if (!examples)
        return;
    VIEW_SECTION(style, examples, example_columns);
    view_each(style, examples,
              "{op}, {example}:{entry}: the body takes {ratio:.2} ({ratio_low:.2} to "
              "{ratio_high:.2}) times as long as the kernel");
}

/* ---------------------------------------------------------------- options */

static int print_list(const struct bench_command *self)
{
    const struct operation_table *table = operations_of_options(&self->job.options);
    const struct operation *vendors;
    for (const struct bench_operation *operation = bench_operations; operation->name; operation++) {
        printf("%s", operation->name);
        for (enum bench_parameter j = 0; j < BENCH_PARAMETER_COUNT; j++)
            if (bench_operation_takes(operation, j))
                printf(" --%s", bench_parameters[j].name);
        putchar('\n');
    }
    for (size_t i = 0; (vendors = example_operation_at(table, i)); i++)
        printf("%s\n", vendors->name);
    return finish_output(EXIT_VERIFIED);
}

/* Finds the value for a parameter's word. */
static int take_choice(const struct command *command, const struct bench_parameter_info *info,
                       int64_t *value, const char *word)
{
    const char *words = "";
    for (size_t i = 0; info->choices[i]; i++) {
        words = xformat("%s%s%s", words, i > 0 ? ", " : "", info->choices[i]);
        if (strcmp(info->choices[i], word) == 0)
            *value = (int64_t)i + 1;
    }
    return *value ? EXIT_VERIFIED
                  : usage_error(command, "--%s is one of %s, not '%s'", info->name, words, word);
}

static int take_parameter(const struct command *command, const struct command_option *option,
                          void *context, const char *text)
{
    struct bench_command *self = context;
    size_t parameter = 0;
    while (strcmp(bench_parameters[parameter].name, option->name) != 0)
        parameter++;
    const struct bench_parameter_info *info = &bench_parameters[parameter];
    int64_t *value = &self->given.of[parameter];
    *value = 0;
    if (info->choices)
        return take_choice(command, info, value, text);
    uint64_t size;
    if (!parse_size(text, &size) || size > INT64_MAX || (int64_t)size < info->least ||
        (int64_t)size > info->most)
        return usage_error(command, "--%s takes a number from %" PRId64 " to %" PRId64 ", not '%s'",
                           info->name, info->least, info->most, text);
    *value = (int64_t)size;
    return EXIT_VERIFIED;
}

/* Finds the operation of --op, and checks that it uses the given parameters. With --list it only
 * lists. */
static int prepare(const struct command *command, void *context)
{
    struct bench_command *self = context;
    struct healcl_error error = {.status = HEALCL_OK};
    if (self->name) {
        self->operation = bench_operation_find(self->name);
        self->vendors =
            self->operation
                ? NULL
                : example_operation_find(operations_of_options(&self->job.options), self->name);
        if (!self->operation && !self->vendors)
            return usage_error(command, "bench cannot measure '%s'; --list shows what it can",
                               self->name);
        for (enum bench_parameter i = 0; i < BENCH_PARAMETER_COUNT; i++)
            if (self->given.of[i] && (self->vendors || !bench_operation_takes(self->operation, i)))
                return usage_error(command, "--%s does not apply to %s", bench_parameters[i].name,
                                   self->name);
    }
    if (run_cases(self, &error) != HEALCL_OK)
        return end_error(&error, false);
    return self->list ? print_list(self) : GOES_ON;
}

#define PARAMETER(name, value, does) \
    name, 0, OPTION_WORD, value, .help = does, .take = take_parameter

static const struct command_option options[] = {
    {JOB_DEVICE},
    {"op", 0, OPTION_WORD, "NAME", KEPT_IN(struct bench_command, name),
     "measure one operation; by default a suite of cases, and the options below apply to each case "
     "that takes them"},
    {"list", 0, OPTION_FLAG, NULL, KEPT_IN(struct bench_command, list),
     "list the operations and the options that each one takes", .decides_device = true},
    {PARAMETER("n", "N", "length of a transform or a row")},
    {PARAMETER("bits", "B", "bits of the moduli")},
    {PARAMETER("batch", "L", "size of the first axis")},
    {PARAMETER("bytes", "SIZE", "total size of inputs and outputs; replaces --batch")},
    {PARAMETER("k", "K", "moduli")},
    {PARAMETER("r", "R", "size of the axis r")},
    {PARAMETER("s", "S", "number of terms of a sum, or of repetitions of an element")},
    {PARAMETER("digits", "D", "number of gadget digits")},
    {PARAMETER("base-bits", "B", "bits of one digit")},
    {PARAMETER("layout", "LAYOUT", "contiguous: n is the last axis; heal: n is axis -3")},
    {PARAMETER("dtype", "T", "int8, int32 or int64; a transform of int8 is tiled")},
    {PARAMETER("values", "VALUES",
               "inputs: reduced to [0, q) by an earlier operation, or of any size and sign")},
    {PARAMETER("perm", "PERM", "permutation: none, or reverse (bit reversal)")},
    {"repeat", 0, OPTION_COUNT, "R", KEPT_IN(struct bench_command, options.repeat),
     "take R samples; by default for half a second, at least 15", .most = REPEAT_MAX},
    JOB_OPTIONS,
};

static void release_bench(void *context)
{
    examples_release(&((struct bench_command *)context)->calls);
}

const struct command command_bench = {
    .name = "bench",
    .summary = "measure what operations cost on a device",
    .help = "Measures single operations the way a transcript runs them, checks their results "
            "against the host reference, and prints the median time. If the reference would take "
            "long, it checks only some rows, spread from the first to the last.",
    .notes =
        "A sample runs as many operations as take 20 milliseconds. GB/s counts the bytes of each "
        "input and output once. Exit code 1: a result was wrong, and no times are reported.",
    .options = options,
    .device = DEVICE_HERE,
    .size = sizeof(struct bench_command),
    .steps = {.prepare = prepare,
              .work = measure,
              .report = report_bench,
              .print = print_bench,
              .release = release_bench},
};
