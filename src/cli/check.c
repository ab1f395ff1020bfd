/* healcl check */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/example.h"
#include "check/sequence.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/report_file.h"
#include "compare/compare.h"
#include "compare/describe.h"
#include "core/clock.h"
#include "device/self_test.h"
#include "report/check.h"
#include "report/text.h"

/* Of them such as are beyond the device: there is room left for what is wrong. */
enum { FAILURES_KEPT = 1000, BEYOND_KEPT = FAILURES_KEPT / 2, KERNELS_KEPT = 256 };

/* One `healcl check`. */
struct session {
    const char *selector, *operation, *results;
    const struct healcl_operations *operations; /* of manifests, or NULL */
    struct report_file json, junit;
    bool quick, one_cell;
    struct coverage_cell cell; /* where one_cell */
    struct progress progress;
    struct healcl_device *device;
    struct healcl_error self_test; /* what it said */
    bool no_memory;                /* it ran out: nothing is known of the device */
    struct coverage_sizes sizes;
    struct coverage_row rows[COVERAGE_ROWS_MAX]; /* those that are wanted */
    size_t row_count;
    uint64_t row_nanoseconds[COVERAGE_ROWS_MAX];
    struct example_check *examples; /* of the operations of manifests that are wanted */
    size_t example_count;
    struct sequence_check *sequences; /* those that are wanted */
    size_t sequence_count;
    struct check_failure failures[FAILURES_KEPT];
    struct check_kernel kernels[KERNELS_KEPT];
    struct shared_facts shared; /* by what is wrong */
    struct check_facts facts;   /* what was found until now */
};

/* ---------------------------------------------------------------- checking */

/* The texts of a kernel live as long as its manifest. */
static void count_kernel(struct session *session, const struct manifest_kernel *kernel)
{
    size_t i = 0, count = session->facts.kernel_count;
    while (i < count && session->kernels[i].kernel.name != kernel->name)
        i++;
    if (i == KERNELS_KEPT)
        return;
    if (i == count)
        session->kernels[session->facts.kernel_count++] = (struct check_kernel){.kernel = *kernel};
    session->kernels[i].failures++;
}

/* Keeps a failure, with a copy of its detail. */
static void on_failure(void *context, const struct coverage_row *row,
                       const struct coverage_cell *cell, const struct coverage_call *call,
                       const struct healcl_error *why)
{
    struct session *session = context;
    session->no_memory |= why->status == HEALCL_NO_MEMORY;
    if (why->status != HEALCL_REFUSED && call->kernel.name)
        count_kernel(session, &call->kernel);
    if (why->status != HEALCL_REFUSED && call->problem)
        shared_add(&session->shared, cell->size.n, row->dtypes.value, call->problem, call->data);
    size_t most = why->status == HEALCL_REFUSED ? BEYOND_KEPT : FAILURES_KEPT;
    if (session->facts.failure_count >= most)
        return;
    struct check_failure *kept = &session->failures[session->facts.failure_count++];
    *kept = (struct check_failure){row, *cell, *why, call->kernel};
    kept->why.detail = why->detail ? strdup(why->detail) : NULL;
}

static bool is_wanted(const struct session *session, const struct coverage_row *row)
{
    const char *name = session->operation;
    if (session->one_cell)
        return row->number == session->cell.row;
    return !name || strcmp(row->form->operation->name, name) == 0 ||
           strcmp(row->form->name, name) == 0 || strcmp(row->form->underscore_name, name) == 0;
}

static const struct operation_table *table_of(const struct session *session)
{
    return session->operations ? session->operations->table : NULL;
}

static void choose_rows(struct session *session)
{
    size_t all = coverage_rows_init(session->rows);
    for (size_t i = 0; i < all; i++)
        if (is_wanted(session, &session->rows[i])) {
            session->rows[session->row_count] = session->rows[i];
            session->rows[session->row_count++].table = table_of(session);
        }
}

/* False where there was no memory. */
static bool choose_examples(struct session *session)
{
    const struct operation_table *table = table_of(session);
    const struct operation *operation,
        *named = session->operation ? example_operation_find(table, session->operation) : NULL;
    if (!table || session->one_cell)
        return true;
    session->examples = calloc(operation_count(table), sizeof *session->examples);
    for (size_t i = 0; session->examples && (operation = example_operation_at(table, i)); i++)
        if (!session->operation || operation == named)
            session->examples[session->example_count++].operation = operation;
    return session->examples != NULL;
}

/* Those of the pass that --op names, or all. False where there was no memory. */
static bool choose_sequences(struct session *session)
{
    struct sequence sequence;
    size_t count = 0;
    if (session->one_cell)
        return true;
    while (sequence_at(count, &sequence))
        count++;
    session->sequences = calloc(count, sizeof *session->sequences);
    for (size_t i = 0; session->sequences && sequence_at(i, &sequence); i++)
        if (!session->operation || strcmp(session->operation, sequence.pass) == 0)
            session->sequences[session->sequence_count++].sequence = sequence;
    return session->sequences != NULL;
}

/* Once the device is open. */
static void describe(struct session *session)
{
    bool failed = session->self_test.status != HEALCL_OK;
    session->facts =
        (struct check_facts){.device = &session->device->info,
                             .self_test_failure = failed ? session->self_test.message : NULL,
                             .rows = session->rows,
                             .row_count = session->row_count,
                             .failures = session->failures,
                             .row_nanoseconds = session->row_nanoseconds,
                             .operations = session->operations,
                             .kernels = session->kernels,
                             .shared = &session->shared,
                             .examples = session->examples,
                             .example_count = session->example_count,
                             .sequences = session->sequences,
                             .sequence_count = session->sequence_count};
}

/* Whether standard output is for people. */
static bool prints_text(const struct session *session)
{
    return !session->json.on_stdout && !session->junit.on_stdout;
}

/* Whether it gets the table. */
static bool prints_table(const struct session *session)
{
    return prints_text(session) && !session->one_cell;
}

/* The table grows while it is made: a driver that crashes does not take it along. In a file, or a
 * pipe, it then ends with the name of the operation that was being checked; on a terminal that is
 * where progress is shown. */
static void begin_operation(const struct session *session, enum operation_id operation)
{
    const struct style style = style_of(stdout);
    if (!prints_table(session) || isatty(STDOUT_FILENO))
        return;
    report_check_name(&session->facts, operation, &style);
    fflush(stdout);
}

static void end_operation(struct session *session, enum operation_id operation)
{
    const struct style style = style_of(stdout);
    if (!prints_table(session))
        return;
    progress_pause(&session->progress);
    if (isatty(STDOUT_FILENO))
        report_check_name(&session->facts, operation, &style);
    report_check_marks(&session->facts, operation, &style);
    fflush(stdout);
    progress_resume(&session->progress);
}

static void begin_table(struct session *session)
{
    const struct style style = style_of(stdout);
    if (!prints_table(session))
        return;
    progress_pause(&session->progress);
    report_check_head(&session->facts, &style);
    progress_resume(&session->progress);
}

/* The rows of an operation lie together. */
static void check_rows(struct session *session)
{
    const struct coverage_observer observer = {session, on_failure};
    begin_table(session);
    for (size_t i = 0; i < session->row_count && !session->no_memory; i++) {
        struct coverage_row *row = &session->rows[i];
        enum operation_id operation = form_id(row->form);
        if (i == 0 || form_id(row[-1].form) != operation)
            begin_operation(session, operation);
        progress_say(&session->progress, "%zu of %zu: %s %s", i + 1, session->row_count,
                     row->form->name, dtype_name(row->dtypes.value));
        const uint64_t begin = monotonic_nanoseconds();
        if (session->one_cell)
            coverage_check_cell(session->device, &session->cell, row, &observer);
        else
            coverage_check_row(session->device, &session->sizes, row, &observer);
        session->row_nanoseconds[i] = monotonic_nanoseconds() - begin;
        if (i + 1 == session->row_count || session->no_memory || form_id(row[1].form) != operation)
            end_operation(session, operation);
    }
}

static void check_examples(struct session *session)
{
    for (size_t i = 0; i < session->example_count && !session->no_memory; i++) {
        struct example_check *check = &session->examples[i];
        progress_say(&session->progress, "%zu of %zu of manifests: %s", i + 1,
                     session->example_count, check->operation->name);
        example_check(session->device, table_of(session), check);
        session->no_memory = check->why.status == HEALCL_NO_MEMORY;
    }
}

static void check_sequences(struct session *session)
{
    for (size_t i = 0; i < session->sequence_count && !session->no_memory; i++) {
        struct sequence_check *check = &session->sequences[i];
        progress_say(&session->progress, "%zu of %zu of what passes make: %s", i + 1,
                     session->sequence_count, check->sequence.name);
        sequence_check(session->device, session->quick, check);
        session->no_memory = check->why.status == HEALCL_NO_MEMORY;
    }
}

/* A device that fails its self-test is checked nevertheless: what works and what does not is what
 * its makers want to know. */
MUST_CHECK static enum healcl_status check(struct session *session, struct healcl_error *error)
{
    TRY(report_file_open(&session->json, error));
    TRY(report_file_open(&session->junit, error));
    if (session->results)
        TRY(compare_make_results(session->results, error));
    progress_say(&session->progress, "opening the device");
    TRY(device_open(&opencl_loader, session->selector, &session->device, error));
    if (self_test_run(session->device, &session->self_test) == HEALCL_NO_MEMORY)
        NO_MEMORY(error);
    describe(session);
    check_rows(session);
    check_sequences(session);
    check_examples(session);
    if (session->no_memory)
        NO_MEMORY(error);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- telling */

/* The JSON, and the JUnit XML. */
static int write_reports(struct session *session)
{
    int code = EXIT_VERIFIED, junit_code = EXIT_VERIFIED;
    FILE *stream = report_file_stream(&session->json);
    if (stream)
        code = report_file_end(&session->json, report_check_json(&session->facts, stream), false);
    stream = report_file_stream(&session->junit);
    if (stream)
        junit_code =
            report_file_end(&session->junit, report_check_junit(&session->facts, stream), false);
    return code == EXIT_VERIFIED ? junit_code : code;
}

/* Into the file of the device. Only the whole table counts. */
MUST_CHECK static enum healcl_status keep_results(const struct session *session,
                                                  struct comparison *comparison,
                                                  struct healcl_error *error)
{
    const struct device_info *info = &session->device->info;
    const struct check_totals totals = check_totals_of_all(&session->facts);
    struct compare_device *device;
    compare_describe_host(comparison, host_memory());
    TRY(comparison_add_device(comparison, &device, error));
    device->name = comparison_keep(comparison, info->name);
    device->type = device_type_name(info->type);
    device->platform = comparison_keep(comparison, info->platform);
    device->platform_version = comparison_keep(comparison, info->platform_version);
    device->vendor = comparison_keep(comparison, info->vendor);
    device->driver = comparison_keep(comparison, info->driver);
    device->version = comparison_keep(comparison, info->version);
    device->emulator = device_is_emulator(info);
    device->compute_units = info->compute_units;
    device->clock_mhz = info->clock_mhz;
    device->check = (struct compare_check){
        .done = true,
        .verified = check_is_right(&session->facts),
        .quick = session->quick,
        .calls = totals.cells,
        .failed = totals.failures,
        .unsupported = totals.unsupported,
        .message = comparison_keep(
            comparison, session->facts.self_test_failure ? session->facts.self_test_failure : "")};
    compare_describe_end(comparison);
    compare_conclude(comparison);
    TRY(comparison_status(comparison, error));
    return compare_write_results(comparison, session->results, error);
}

/* Returns an exit code. */
static int write_results(const struct session *session)
{
    struct healcl_error error = {.status = HEALCL_OK};
    struct comparison *comparison = calloc(1, sizeof *comparison); /* too large for the stack */
    int code = EXIT_VERIFIED;
    if (!session->results || !comparison) {
        free(comparison);
        return session->results ? printed(HEALCL_NO_MEMORY) : EXIT_VERIFIED;
    }
    enum healcl_status status = comparison_init(comparison, &error);
    if (status == HEALCL_OK)
        status = keep_results(session, comparison, &error);
    if (status != HEALCL_OK)
        code = print_error(NULL, &error, false);
    healcl_error_clear(&error);
    comparison_release(comparison);
    free(comparison);
    return code;
}

static void print_found(const struct session *session)
{
    struct style style = style_of(stdout);
    if (!session->one_cell) {
        report_check_end(&session->facts, &style);
        return;
    }
    for (size_t i = 0; i < session->facts.failure_count; i++)
        report_check_failure(&session->failures[i], &session->facts, true, stdout);
    if (session->facts.failure_count == 0)
        printf("%s: right\n", session->rows[0].form->name);
}

static int tell(struct session *session)
{
    if (prints_text(session))
        print_found(session);
    int code = finish_output(write_reports(session));
    if (code == EXIT_VERIFIED)
        code = write_results(session);
    if (code != EXIT_VERIFIED)
        return code;
    return check_is_right(&session->facts) ? EXIT_VERIFIED : EXIT_DIFFERENT;
}

static int check_and_tell(struct session *session)
{
    struct healcl_error error = {.status = HEALCL_OK};
    progress_start(&session->progress, true);
    enum healcl_status status = check(session, &error);
    progress_end(&session->progress);
    if (status == HEALCL_OK)
        warn_of_arguments(session->device);
    int code = status == HEALCL_OK ? tell(session)
                                   : finish_output(report_files_error(
                                         &session->json, &session->junit, NULL, &error, false));
    healcl_error_clear(&error);
    healcl_error_clear(&session->self_test);
    for (size_t i = 0; i < session->facts.failure_count; i++)
        healcl_error_clear(&session->failures[i].why);
    for (size_t i = 0; i < session->example_count; i++)
        healcl_error_clear(&session->examples[i].why);
    for (size_t i = 0; i < session->sequence_count; i++)
        healcl_error_clear(&session->sequences[i].why);
    shared_release(&session->shared);
    healcl_device_close(session->device);
    report_file_discard(&session->json);
    report_file_discard(&session->junit);
    return code;
}

/* ---------------------------------------------------------------- options */

static int take_case(const struct command *command, const struct command_option *option,
                     void *context, const char *text)
{
    struct session *session = context;
    (void)option;
    session->one_cell = true;
    return coverage_cell_parse(text, &session->cell)
               ? EXIT_VERIFIED
               : usage_error(command, "'%s' is no case such as 37:512x3:strided:42", text);
}

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, KEPT_IN(selector)},
    {"op", 0, OPTION_WORD, KEPT_IN(operation)},
    {"ops", 0, OPTION_FOLDER, KEPT_IN(operations), .take = take_operations},
    {"trust", 0, OPTION_FOLDER, KEPT_IN(operations), .take = take_operations},
    {"quick", 0, OPTION_FLAG, KEPT_IN(quick)},
    {"case", 0, OPTION_WORD, .take = take_case},
    {"results", 0, OPTION_FOLDER, KEPT_IN(results)},
    {"json", 0, OPTION_REPORT, KEPT_IN(json)},
    {"junit", 0, OPTION_REPORT, KEPT_IN(junit)},
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct session *session = calloc(1, sizeof *session); /* too large for the stack */
    if (!session)
        return printed(HEALCL_NO_MEMORY);
    int code = take_arguments(command, argc, argv, session);
    if (code == GOES_ON && session->results && (session->operation || session->one_cell))
        code = usage_error(command, "--results keeps checks of all operations, and one is named");
    if (code == GOES_ON) {
        coverage_sizes_init(&session->sizes, session->quick);
        choose_rows(session);
        if (!choose_examples(session) || !choose_sequences(session))
            code = printed(HEALCL_NO_MEMORY);
        else if (session->row_count + session->example_count + session->sequence_count > 0)
            code = check_and_tell(session);
        else if (session->one_cell)
            code = usage_error(command, "there is no such case");
        else
            code = usage_error(command, "unknown operation '%s'; healcl ops lists them",
                               session->operation);
    }
    free(session->examples);
    free(session->sequences);
    free(session);
    return code;
}

const struct command command_check = {
    .name = "check",
    .summary = "check every kernel of a device against the host reference",
    .help =
        "Runs every operation with every dtype it takes on tensors of all layouts and of many\n"
        "sizes, and compares whole storages with the host reference, bit for bit: the first\n"
        "thing to do on a new device. So it does with what passes make of several calls.\n"
        "Nothing is read; all data are random from a fixed seed.\n"
        "\n"
        "Usage: healcl check [OPTIONS]\n"
        "\n"
        "  -d, --device SEL   the device, as for healcl run; it may fail its self-test\n"
        "      --op NAME      one operation, or one form of it (healcl ops), or what one pass\n"
        "                     makes of several calls (healcl inspect --passes)\n"
        "      --ops DIR      check with the kernels of a folder of manifests, and their\n"
        "                     operations by their examples against their bodies\n"
        "                     (docs/VENDORS.md); may be repeated\n"
        "      --trust DIR    the same where its manifests may name sources elsewhere,\n"
        "                     and any options of compilers\n"
        "      --quick        few sizes, below 1000 elements: seconds instead of minutes\n"
        "      --case CASE    one call, as a failure names it, with its tensors' layouts\n"
        "      --results DIR  write how many calls were right into DIR/VENDOR-DEVICE.json, for\n"
        "                     others to check (docs/COMPARE.md); all operations count\n"
        "      --json FILE|-  write it as JSON too, or with - alone on standard output\n"
        "                     (docs/JSON.md)\n"
        "      --junit FILE|-  the same as JUnit XML, a test case for each form and dtype\n"
        "                     (docs/CI.md)\n"
        "  -h, --help         this text\n"
        "\n"
        "A cell of the table counts calls that were right, of all: for each layout\n"
        "(contiguous, offset, strided, transposed, broadcast, in place, overlapping) and each\n"
        "pair of a length n and a number of moduli k. Exit code 1: something is wrong, or\n"
        "nothing could be checked; what is only too large for the device is not wrong.\n",
    .options = options,
    .run = run,
};
