/* healcl check */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/check_report.h"
#include "cli/cli.h"
#include "cli/comparison.h"
#include "cli/progress.h"
#include "cli/report_file.h"
#include "cli/text.h"
#include "opencl/opening.h"
#include "opencl/self_test.h"
#include "tools/example.h"
#include "tools/xmalloc.h"

/* Of them such as are beyond the device: there is room left for what is wrong. */
enum { FAILURES_KEPT = 1000, BEYOND_KEPT = FAILURES_KEPT / 2, KERNELS_KEPT = 256 };

/* One `healcl check`. */
struct check_command {
    const char *selector, *operation, *results;
    const struct healcl_operations *operations; /* of manifests, or NULL */
    struct report_file json, junit;
    bool quick, one_cell;
    struct coverage_cell cell; /* where one_cell */
    struct progress progress;
    struct healcl_device *device;
    struct healcl_error self_test; /* what it said */
    struct coverage_sizes sizes;
    struct coverage_row *rows; /* those that are wanted */
    size_t row_count;
    struct examples calls;          /* of operations of manifests */
    struct example_check *examples; /* of those that are wanted */
    size_t example_count;
    struct check_failure failures[FAILURES_KEPT];
    struct check_kernel kernels[KERNELS_KEPT];
    struct check_facts facts; /* what was found until now */
};

/* ---------------------------------------------------------------- checking */

/* The texts of a kernel live as long as its manifest. */
static void count_kernel(struct check_command *self, const struct manifest_kernel *kernel)
{
    size_t i = 0, count = self->facts.kernel_count;
    while (i < count && self->kernels[i].kernel.name != kernel->name)
        i++;
    if (i == KERNELS_KEPT)
        return;
    if (i == count)
        self->kernels[self->facts.kernel_count++] = (struct check_kernel){.kernel = *kernel};
    self->kernels[i].failures++;
}

/* Keeps a failure, with a copy of its detail. */
static void on_failure(void *context, const struct coverage_row *row,
                       const struct coverage_cell *cell, const struct manifest_kernel *kernel,
                       const struct healcl_error *why)
{
    struct check_command *self = context;
    if (why->status != HEALCL_REFUSED && kernel->name)
        count_kernel(self, kernel);
    size_t most = why->status == HEALCL_REFUSED ? BEYOND_KEPT : FAILURES_KEPT;
    if (self->facts.failure_count >= most)
        return;
    struct check_failure *kept = &self->failures[self->facts.failure_count++];
    *kept = (struct check_failure){row, *cell, *why, *kernel};
    kept->why.detail = why->detail ? xstrdup(why->detail) : NULL;
}

static bool is_wanted(const struct check_command *self, const struct coverage_row *row)
{
    const char *name = self->operation;
    if (self->one_cell)
        return row->number == self->cell.row;
    return !name || strcmp(row->form->operation->name, name) == 0 ||
           strcmp(row->form->name, name) == 0 || strcmp(row->form->underscore_name, name) == 0;
}

static const struct operation_table *table_of(const struct check_command *self)
{
    return self->operations ? self->operations->table : NULL;
}

static void choose_rows(struct check_command *self)
{
    size_t all = coverage_rows(&self->rows);
    for (size_t i = 0; i < all; i++)
        if (is_wanted(self, &self->rows[i])) {
            self->rows[self->row_count] = self->rows[i];
            self->rows[self->row_count++].table = table_of(self);
        }
}

static void choose_examples(struct check_command *self)
{
    const struct operation_table *table = table_of(self);
    const struct operation *operation,
        *named = self->operation ? example_operation_find(table, self->operation) : NULL;
    if (!table || self->one_cell)
        return;
    self->examples = xcalloc(operation_count(table), sizeof *self->examples);
    for (size_t i = 0; (operation = example_operation_at(table, i)); i++)
        if (!self->operation || operation == named)
            self->examples[self->example_count++].operation = operation;
}

/* Once the device is open. */
static void describe(struct check_command *self)
{
    bool failed = self->self_test.status != HEALCL_OK;
    self->facts = (struct check_facts){.device = &self->device->info,
                                       .self_test_failure = failed ? self->self_test.message : NULL,
                                       .rows = self->rows,
                                       .row_count = self->row_count,
                                       .failures = self->failures,
                                       .operations = self->operations,
                                       .kernels = self->kernels,
                                       .examples = self->examples,
                                       .example_count = self->example_count};
}

/* Whether standard output is for people. */
static bool prints_text(const struct check_command *self)
{
    return !self->json.on_stdout && !self->junit.on_stdout;
}

/* Whether it gets lines of operations. */
static bool prints_lines(const struct check_command *self)
{
    return prints_text(self) && !self->one_cell;
}

/* The report grows while it is made: a driver that crashes does not take it along. In a file, or a
 * pipe, it then ends with the name of the operation that was being checked; on a terminal that is
 * where progress is shown. */
static void begin_operation(const struct check_command *self, enum operation_id operation)
{
    const struct style style = style_of(stdout);
    if (!prints_lines(self) || isatty(STDOUT_FILENO))
        return;
    report_check_name(operation, &style);
    fflush(stdout);
}

static void end_operation(struct check_command *self, enum operation_id operation)
{
    const struct style style = style_of(stdout);
    if (!prints_lines(self))
        return;
    progress_pause(&self->progress);
    if (isatty(STDOUT_FILENO))
        report_check_name(operation, &style);
    report_check_counts(&self->facts, operation, &style);
    fflush(stdout);
    progress_resume(&self->progress);
}

static void begin_table(struct check_command *self)
{
    const struct style style = style_of(stdout);
    if (!prints_lines(self))
        return;
    progress_pause(&self->progress);
    report_check_head(&self->facts, &style);
    progress_resume(&self->progress);
}

/* The rows of an operation lie together. */
static void check_rows(struct check_command *self)
{
    const struct coverage_observer observer = {self, on_failure};
    begin_table(self);
    for (size_t i = 0; i < self->row_count; i++) {
        struct coverage_row *row = &self->rows[i];
        enum operation_id operation = form_id(row->form);
        if (i == 0 || form_id(row[-1].form) != operation)
            begin_operation(self, operation);
        progress_say(&self->progress, "%zu of %zu: %s %s", i + 1, self->row_count, row->form->name,
                     dtype_name(row->dtypes.value));
        coverage_check(self->device, &self->sizes, self->one_cell ? &self->cell : NULL, row,
                       &observer);
        if (i + 1 == self->row_count || form_id(row[1].form) != operation)
            end_operation(self, operation);
    }
}

static void check_examples(struct check_command *self)
{
    for (size_t i = 0; i < self->example_count; i++) {
        struct example_check *check = &self->examples[i];
        progress_say(&self->progress, "%zu of %zu of manifests: %s", i + 1, self->example_count,
                     check->operation->name);
        example_check(self->device, &self->calls, check);
    }
}

/* A device that fails its self-test is checked nevertheless: what works and what does not is what
 * its makers want to know. */
static enum healcl_status check(struct check_command *self, struct healcl_error *error)
{
    TRY(report_file_open(&self->json, error));
    TRY(report_file_open(&self->junit, error));
    if (self->results)
        TRY(compare_make_results(self->results, error));
    TRY(examples_read(&self->calls, self->operations, error));
    progress_say(&self->progress, "opening the device");
    TRY(device_open(&opencl_loader, self->selector, &self->device, error));
    if (self_test_run(self->device, &self->self_test) == HEALCL_NO_MEMORY)
        xmalloc_fail();
    describe(self);
    check_rows(self);
    check_examples(self);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- telling */

/* Puts this device into the document. Only a check of the whole table counts. */
static void describe_device(const struct check_command *self, struct comparison *comparison)
{
    const struct device_info *info = &self->device->info;
    const struct check_totals totals = check_totals_of_all(&self->facts);
    const char *failure = self->facts.self_test_failure;
    cJSON *device = compare_add_device(comparison, NULL);
    compare_put_text(device, "name", info->name);
    compare_put_text(device, "type", device_type_name(info->type));
    compare_put_text(device, "platform", info->platform);
    compare_put_text(device, "platform_version", info->platform_version);
    compare_put_text(device, "vendor", info->vendor);
    compare_put_text(device, "driver", info->driver);
    compare_put_text(device, "version", info->version);
    compare_put(device, "emulator", cJSON_CreateBool(device_is_emulator(info)));
    compare_put_number(device, "compute_units", info->compute_units);
    compare_put_number(device, "clock_mhz", info->clock_mhz);
    compare_put(device, "check.quick", cJSON_CreateBool(self->quick));
    compare_put(device, "check.verified", cJSON_CreateBool(check_is_right(&self->facts)));
    compare_put_number(device, "check.calls", (double)totals.cells);
    compare_put_number(device, "check.failed", (double)totals.failures);
    compare_put_number(device, "check.unsupported", (double)totals.unsupported);
    compare_put_text(device, "check.message", failure ? failure : "");
}

/* Into the file of the device. Returns an exit code. */
static int write_results(const struct check_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    struct comparison comparison;
    int code = EXIT_VERIFIED;
    if (!self->results)
        return EXIT_VERIFIED;
    comparison_init(&comparison, host_memory());
    describe_device(self, &comparison);
    compare_describe_load(&comparison, "load_after");
    compare_conclude(&comparison);
    if (compare_write_results(&comparison, self->results, &error) != HEALCL_OK)
        code = print_error(NULL, &error, false);
    healcl_error_clear(&error);
    comparison_release(&comparison);
    return code;
}

static int tell(struct check_command *self)
{
    const struct style style = style_of(stdout);
    cJSON *document = report_check(&self->facts);
    int code = EXIT_VERIFIED;
    if (prints_text(self) && self->one_cell)
        report_check_call_text(document, &style);
    else if (prints_text(self))
        report_check_text(document, &style);
    FILE *stream = report_file_stream(&self->junit);
    if (stream) {
        report_check_junit(document, stream);
        code = report_file_end(&self->junit, code, false);
    }
    code = finish_output(report_file_json(&self->json, document, code, false));
    if (code == EXIT_VERIFIED)
        code = write_results(self);
    if (code != EXIT_VERIFIED)
        return code;
    return check_is_right(&self->facts) ? EXIT_VERIFIED : EXIT_DIFFERENT;
}

static int check_and_tell(struct check_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    progress_start(&self->progress, true);
    enum healcl_status status = check(self, &error);
    progress_end(&self->progress);
    if (status == HEALCL_OK)
        warn_of_device(self->device);
    warn_of_builds(self->device);
    int code =
        status == HEALCL_OK
            ? tell(self)
            : finish_output(report_files_error(&self->json, &self->junit, NULL, &error, false));
    healcl_error_clear(&error);
    healcl_error_clear(&self->self_test);
    for (size_t i = 0; i < self->facts.failure_count; i++)
        healcl_error_clear(&self->failures[i].why);
    for (size_t i = 0; i < self->example_count; i++)
        healcl_error_clear(&self->examples[i].why);
    examples_release(&self->calls);
    healcl_device_close(self->device);
    report_file_discard(&self->json);
    report_file_discard(&self->junit);
    return code;
}

/* ---------------------------------------------------------------- options */

static int take_case(const struct command *command, const struct command_option *option,
                     void *context, const char *text)
{
    struct check_command *self = context;
    (void)option;
    self->one_cell = true;
    return coverage_cell_parse(text, &self->cell)
               ? EXIT_VERIFIED
               : usage_error(command, "'%s' is no case such as 37:512x3:strided:42", text);
}

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, KEPT_IN(struct check_command, selector)},
    {"op", 0, OPTION_WORD, KEPT_IN(struct check_command, operation)},
    OPERATIONS_OPTIONS(struct check_command, operations),
    {"quick", 0, OPTION_FLAG, KEPT_IN(struct check_command, quick)},
    {"case", 0, OPTION_WORD, .take = take_case},
    {"results", 0, OPTION_NEW_FOLDER, KEPT_IN(struct check_command, results)},
    {"json", 0, OPTION_REPORT, KEPT_IN(struct check_command, json)},
    {"junit", 0, OPTION_REPORT, KEPT_IN(struct check_command, junit)},
    TIMEOUT_OPTION,
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct check_command *self = xcalloc(1, sizeof *self); /* too large for the stack */
    int code = take_arguments(command, argc, argv, self);
    if (code == GOES_ON && self->results && (self->operation || self->one_cell))
        code = usage_error(command, "--results keeps checks of all operations, and one is named");
    if (code == GOES_ON) {
        coverage_sizes_init(&self->sizes, self->quick);
        choose_rows(self);
        choose_examples(self);
        if (self->row_count + self->example_count > 0)
            code = check_and_tell(self);
        else if (self->one_cell)
            code = usage_error(command, "there is no such case");
        else
            code = usage_error(
                command, "unknown operation '%s', or one without kernels; healcl ops lists them",
                self->operation);
    }
    free(self->rows);
    free(self->examples);
    free(self);
    return code;
}

const struct command command_check = {
    .name = "check",
    .summary = "check every kernel of a device against the host reference",
    .help =
        "Runs every operation with every dtype it takes on tensors of all layouts and of many\n"
        "sizes, and compares whole storages with the host reference, bit for bit: the first\n"
        "thing to do on a new device. Nothing is read; all data are random from a fixed seed.\n"
        "\n"
        "Usage: healcl check [OPTIONS]\n"
        "\n"
        "  -d, --device SEL   the device, as for healcl run; it may fail its self-test\n"
        "      --op NAME      one operation, or one form of it (healcl ops)\n"
        "      --ops DIR      check with the kernels of a folder of manifests, and their\n"
        "                     operations by calls derived from the transcripts in\n"
        "                     DIR/examples (docs/VENDORS.md); may be repeated\n"
        "      --trust DIR    the same where its manifests may name sources elsewhere,\n"
        "                     and any options of compilers\n"
        "      --quick        few sizes, below 1000 elements: seconds instead of minutes\n"
        "      --case CASE    one call, as a failure names it, with its tensors' layouts\n"
        "      --results DIR  write how many calls were right into DIR/VENDOR-DEVICE.json, for\n"
        "                     others to check (docs/COMPARE.md); all operations count\n"
        "      --timeout S    give up after S seconds, with exit code 4\n"
        "      --json FILE|-  write it as JSON too, or with - alone on standard output\n"
        "                     (docs/JSON.md)\n"
        "      --junit FILE|-  the same as JUnit XML, a test case for each form and dtype\n"
        "                     (docs/CI.md)\n"
        "  -h, --help         this text\n"
        "\n"
        "Counts are of calls that were right, of all: for each dtype, each layout\n"
        "(contiguous, offset, strided, transposed, broadcast, in place, overlapping) and each\n"
        "pair of a length n and a number of moduli k. Exit code 1: something is wrong, or\n"
        "nothing could be checked; what is only too large for the device is not wrong.\n",
    .options = options,
    .device = DEVICE_HERE,
    .run = run,
};
