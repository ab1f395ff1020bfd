/* healcl bench */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench_report.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/report_file.h"
#include "tools/bench_case.h"
#include "tools/xmalloc.h"

enum { REPEAT_MAX = 1000000, RESULTS_MAX = 64, EXAMPLE_RESULTS_MAX = 256 };

/* One `healcl bench`. */
struct bench_command {
    const char *selector, *name;                /* of the one operation, or NULL */
    const struct healcl_operations *operations; /* of manifests, or NULL */
    struct report_file json;
    const struct bench_operation *operation; /* the one; NULL: the suite, or a manifest's alone */
    const struct operation *vendors;         /* the one, if it is a manifest's; or NULL */
    struct bench_settings given;
    struct bench_options options;
    bool list;
    struct progress progress;
    struct healcl_device *device;
    struct bench_result results[RESULTS_MAX];
    size_t count;
    struct examples calls;                              /* of operations of manifests */
    struct bench_example examples[EXAMPLE_RESULTS_MAX]; /* what they took */
    size_t example_count;
};

/* ---------------------------------------------------------------- measuring */

/* Settings of a case of the suite: its own parameters, or those of the command line where the
 * operation takes them. */
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
    if (!self->device) /* at first they are only checked */
        return bench_case_init(&ignored, operation, settings, error);
    progress_say(&self->progress, "measuring %s", operation->name);
    TRY(bench_run(self->device, operation, settings, &self->options, &self->results[self->count],
                  error));
    self->count++;
    return HEALCL_OK;
}

/* The one case, or all of the suite. */
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

/* All examples of the one operation, or of all operations of manifests. */
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
            progress_say(&self->progress, "measuring %s", operation->name);
            for (int side = EXAMPLE_SIDES; side-- > 0;) {
                example->kernel = NULL; /* that of the kernel's side stays */
                TRY(bench_example(self->device, &self->options, &self->calls, next,
                                  (enum example_side)side, &example->kernel, &example->of[side],
                                  error));
            }
            self->example_count++;
        }
    }
    return HEALCL_OK;
}

/* Checks the options before it opens anything. */
static enum healcl_status measure(struct bench_command *self, struct healcl_error *error)
{
    TRY(run_cases(self, error));
    TRY(examples_read(&self->calls, self->operations, error));
    if (self->vendors && !example_from(self->calls.first, self->vendors))
        FAIL(error, HEALCL_USAGE, "no transcript in examples/ calls '%s': nothing measures it",
             self->name);
    TRY(report_file_open(&self->json, error));
    progress_say(&self->progress, "opening the device");
    TRY(healcl_device_open(self->selector, &self->device, error));
    self->options.memory_limit = host_memory();
    self->options.table = self->operations ? self->operations->table : NULL;
    TRY(run_cases(self, error));
    return measure_examples(self, error);
}

/* ---------------------------------------------------------------- telling */

static int tell(struct bench_command *self)
{
    const struct style style = style_of(stdout);
    cJSON *document = report_bench(&self->device->info, self->results, self->count, self->examples,
                                   self->example_count);
    if (!self->json.on_stdout)
        report_bench_text(document, &style);
    return report_file_json(&self->json, document, EXIT_VERIFIED, false);
}

static int measure_and_report(struct bench_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    progress_start(&self->progress, true);
    enum healcl_status status = measure(self, &error);
    progress_end(&self->progress);
    if (status == HEALCL_OK)
        warn_of_device(self->device);
    int code = EXIT_VERIFIED;
    if (status == HEALCL_OK)
        code = tell(self);
    else if (status == HEALCL_USAGE) /* an option */
        code = print_error(NULL, &error, false);
    else
        code = report_files_error(&self->json, NULL, NULL, &error, false);
    healcl_error_clear(&error);
    examples_release(&self->calls);
    healcl_device_close(self->device);
    report_file_discard(&self->json);
    return finish_output(code);
}

static int print_list(const struct bench_command *self)
{
    const struct operation_table *table = self->operations ? self->operations->table : NULL;
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

/* ---------------------------------------------------------------- options */

/* The value of one of a parameter's words. */
static int take_choice(const struct command *command, const struct bench_parameter_info *info,
                       int64_t *value, const char *word)
{
    char words[64] = "";
    for (size_t i = 0; info->choices[i]; i++) {
        const size_t used = strlen(words);
        snprintf(words + used, sizeof words - used, "%s%s", i > 0 ? ", " : "", info->choices[i]);
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

/* Finds what --op names, and checks that it takes the parameters. */
static int find_operation(const struct command *command, struct bench_command *self)
{
    const struct operation_table *table = self->operations ? self->operations->table : NULL;
    if (!self->name)
        return EXIT_VERIFIED;
    self->operation = bench_operation_find(self->name);
    self->vendors = self->operation ? NULL : example_operation_find(table, self->name);
    if (!self->operation && !self->vendors)
        return usage_error(command, "no operation '%s' is measured; --list tells which are",
                           self->name);
    for (enum bench_parameter i = 0; i < BENCH_PARAMETER_COUNT; i++)
        if (self->given.of[i] && (self->vendors || !bench_operation_takes(self->operation, i)))
            return usage_error(command, "--%s means nothing to %s", bench_parameters[i].name,
                               self->name);
    return EXIT_VERIFIED;
}

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, KEPT_IN(struct bench_command, selector)},
    {"op", 0, OPTION_WORD, KEPT_IN(struct bench_command, name)},
    OPERATIONS_OPTIONS(struct bench_command, operations),
    {"n", 0, OPTION_WORD, .take = take_parameter},
    {"bits", 0, OPTION_WORD, .take = take_parameter},
    {"batch", 0, OPTION_WORD, .take = take_parameter},
    {"k", 0, OPTION_WORD, .take = take_parameter},
    {"r", 0, OPTION_WORD, .take = take_parameter},
    {"s", 0, OPTION_WORD, .take = take_parameter},
    {"digits", 0, OPTION_WORD, .take = take_parameter},
    {"base-bits", 0, OPTION_WORD, .take = take_parameter},
    {"bytes", 0, OPTION_WORD, .take = take_parameter},
    {"layout", 0, OPTION_WORD, .take = take_parameter},
    {"dtype", 0, OPTION_WORD, .take = take_parameter},
    {"values", 0, OPTION_WORD, .take = take_parameter},
    {"perm", 0, OPTION_WORD, .take = take_parameter},
    {"repeat", 0, OPTION_COUNT, KEPT_IN(struct bench_command, options.repeat), .most = REPEAT_MAX},
    {"json", 0, OPTION_REPORT, KEPT_IN(struct bench_command, json)},
    TIMEOUT_OPTION,
    {"list", 0, OPTION_FLAG, KEPT_IN(struct bench_command, list), .decides_device = true},
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct bench_command *self = xcalloc(1, sizeof *self); /* too large for the stack */
    int code = take_arguments(command, argc, argv, self);
    if (code == GOES_ON) {
        code = find_operation(command, self);
        if (code == EXIT_VERIFIED)
            code = self->list ? print_list(self) : measure_and_report(self);
    }
    free(self);
    return code;
}

const struct command command_bench = {
    .name = "bench",
    .summary = "measure what operations cost on a device",
    .help =
        "Measures single operations the way a transcript runs them, checks their results\n"
        "against the host reference, and prints the median time. Of results that take the\n"
        "reference long some rows are checked, from the first one to the last.\n"
        "\n"
        "Usage: healcl bench [OPTIONS]\n"
        "\n"
        "  -d, --device SEL         the device, as for healcl run\n"
        "      --op NAME            one operation; without it a suite of them, and the options\n"
        "                           below replace those of every case that knows "
        "them\n" OPERATIONS_HELP
        "      --list               list the operations, and which options each one knows\n"
        "      --n N                length of a transform, of a row\n"
        "      --bits B             bits of the moduli\n"
        "      --batch L            size of the first axis\n"
        "      --bytes SIZE         of inputs and outputs together: instead of --batch\n"
        "      --k K, --r R         moduli, and size of the axis r\n"
        "      --s S                terms of a sum, repetitions of an element\n"
        "      --digits D           digits of the gadget\n"
        "      --base-bits B        bits of one digit\n"
        "      --layout LAYOUT      contiguous: n is the last axis; heal: n is axis -3\n"
        "      --dtype T            int8, int32 or int64; a transform of int8 is tiled\n"
        "      --values VALUES      reduced: inputs in [0, q), by an operation before; any: of\n"
        "                           any size and sign\n"
        "      --perm PERM          none, or reverse: the bit reversal\n"
        "      --repeat R           take R samples; by default for half a second, 15 at least\n"
        "      --timeout S          give up after S seconds, with exit code 4\n"
        "      --json FILE|-        write it as JSON too, or with - alone on standard output\n"
        "                           (docs/JSON.md)\n"
        "  -h, --help               this text\n"
        "\n"
        "A sample is of as many operations as take 20 milliseconds. GB/s: bytes of inputs and\n"
        "outputs, each counted once. Exit code 1: a result was wrong, and nothing is reported.\n",
    .options = options,
    .device = DEVICE_HERE,
    .run = run,
};
