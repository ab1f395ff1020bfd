/* healcl check */
#include <unistd.h>

#include "cli/command_job.h"
#include "cli/comparison.h"
#include "plan/passes.h"
#include "run/loaded_transcript.h"
#include "tools/coverage.h"
#include "tools/example.h"
#include "tools/results.h"
#include "tools/variants.h"

/* The bundled transcript of sequences that passes turn into fewer steps, and how many steps each
 * pass changes, in the order of passes.def. A pass that misses steps leaves all results right. */
static const char sequences[] = "sequences.json.gz";
static const uint64_t sequences_changes[PASS_COUNT] = {419, 154, 92, 579, 204, 401, 2154, 341};
enum { SEQUENCES_RUNS = 3 }; /* so that launches are recorded */

/* Cells beyond the device must leave space for wrong ones. */
enum { FAILURES_KEPT = 1000, BEYOND_KEPT = FAILURES_KEPT / 2 };

/* The state of `healcl check`. */
struct check_command {
    struct command_job job;
    const char *operation, *results;
    bool quick, one_cell;
    struct coverage_cell cell;     /* if one_cell */
    struct healcl_error self_test; /* outcome of the self-test */
    struct coverage_sizes sizes;
    struct coverage_row *rows; /* the selected rows */
    size_t row_count;
    struct examples calls;          /* examples of operations of manifests */
    struct example_check *examples; /* for the selected operations */
    size_t example_count;
    cJSON *failures;         /* some of them, wrong or beyond the device */
    struct kernel_uses uses; /* of kernels of manifests */
    struct variants variants;
    struct check_counts transcripts; /* bundled ones; not run if one operation is checked */
};

/* ---------------------------------------------------------------- totals */

/* Numbers of checked cells; of combinations of dtypes that are correctly refused; of wrong results
 * and failures; of cells beyond the device. */
struct check_totals {
    uint64_t cells, passed, refused, failures, unsupported;
};

static void add_counts(struct check_totals *totals, const struct check_counts *counts)
{
    totals->cells += counts->calls;
    totals->passed += counts->passed;
    totals->unsupported += counts->unsupported;
    totals->failures += counts->calls - counts->passed - counts->unsupported;
}

/* A row whose dtypes were not refused has failures, but no calls. */
static void add(struct check_totals *totals, const struct coverage_row *row)
{
    const uint64_t calls = totals->cells;
    for (int i = 0; i <= ARRANGEMENT_COUNT; i++)
        add_counts(totals, &row->cells[i]);
    totals->refused += row->refused;
    totals->failures += calls == totals->cells ? (uint64_t)row->failures : 0;
}

/* Totals of the table and of examples. */
static struct check_totals totals_of_all(const struct check_command *self)
{
    struct check_totals totals = {0};
    for (size_t i = 0; i < self->row_count; i++)
        add(&totals, &self->rows[i]);
    for (size_t i = 0; i < self->example_count; i++)
        for (int side = 0; side < EXAMPLE_SIDES; side++)
            add_counts(&totals, &self->examples[i].of[side]);
    add_counts(&totals, &self->transcripts);
    return totals;
}

/* Whether everything is checked, instead of one operation or call. */
static bool is_whole(const struct check_command *self)
{
    return !self->operation && !self->one_cell;
}

/* Whether bundled transcripts are checked. */
static bool runs_transcripts(const struct check_command *self)
{
    return is_whole(self) || (self->operation && strcmp(self->operation, CHECK_TRANSCRIPTS) == 0);
}

static const char *self_test_failure(const struct check_command *self)
{
    return self->self_test.status != HEALCL_OK ? self->self_test.message : NULL;
}

/* Whether a manifest's kernel has run, or a manifest's operation is checked. */
static bool checks_manifests(const struct check_command *self)
{
    for (size_t i = 0; i < self->uses.count; i++)
        if (self->uses.of[i].steps > 0)
            return true;
    return self->example_count > 0;
}

/* Why a manifest's kernel ran nothing. NULL if it ran, if no selected call could use it, or if it
 * is for another device and other kernels are checked. */
static const char *why_idle(const struct check_command *self, const struct kernel_use *use)
{
    if (use->steps > 0 || use->wrong > 0 || self->one_cell || !self->job.device)
        return NULL;
    if (!vendor_is_for_device(use->kernel, &self->job.device->info) && checks_manifests(self))
        return NULL;
    for (size_t i = 0; !use->why_not && i < self->example_count; i++)
        if (strcmp(self->examples[i].operation->name, use->of) == 0)
            return self->examples[i].unchecked;
    return use->why_not      ? use->why_not
           : self->operation ? NULL
                             : "none of the checked calls could use it";
}

static uint64_t idle_kernels(const struct check_command *self)
{
    uint64_t count = 0;
    for (size_t i = 0; i < self->uses.count; i++)
        count += why_idle(self, &self->uses.of[i]) != NULL;
    return count;
}

/* Whether nothing is wrong and something is right. Calls beyond the device are not wrong. */
static bool is_right(const struct check_command *self)
{
    const struct check_totals totals = totals_of_all(self);
    return totals.failures == 0 && !self_test_failure(self) && totals.cells + totals.refused > 0 &&
           idle_kernels(self) == 0;
}

/* ---------------------------------------------------------------- JSON */

static void add_members(cJSON *object, const struct check_counts *counts)
{
    JSON_ADD(object, NUMBER("calls", counts->calls), NUMBER("passed", counts->passed),
             NUMBER("unsupported", counts->unsupported),
             NUMBER("failed", counts->calls - counts->passed - counts->unsupported));
}

static void add_row(cJSON *object, const struct coverage_row *row)
{
    char dtypes[COVERAGE_DTYPES_SIZE];
    struct check_totals totals = {0};
    add(&totals, row);
    JSON_ADD(object, STRING("op", row->form->operation->name), STRING("form", row->form->name),
             STRING("dtypes", coverage_dtypes_text(row, dtypes)), NUMBER("case", row->number),
             FLAG("refused", row->refused), NUMBER("calls", totals.cells),
             NUMBER("passed", totals.passed), NUMBER("unsupported", totals.unsupported),
             NUMBER("failed", totals.failures), NUMBER("ns", row->nanoseconds));
    cJSON *layouts = json_add_object(object, "layouts");
    for (int i = 0; i <= ARRANGEMENT_COUNT; i++)
        if (row->cells[i].calls > 0)
            add_members(json_add_object(layouts, arrangement_name((enum arrangement)i)),
                        &row->cells[i]);
}

/* Adds the error, with a command that repeats the call. option: NULL for a transcript. */
static void add_why(cJSON *object, const struct check_command *self, const char *option,
                    const char *operand, const struct healcl_error *why)
{
    if (why->status == HEALCL_OK)
        return;
    report_add_command(object, option ? "check" : "diagnose", &self->job.device->info,
                       self->job.options.operations, option ? option : "", operand);
    json_add_string(object, "message", why->message);
    if (why->detail)
        json_add_string(object, "detail", why->detail);
}

static void add_kernel(cJSON *object, const struct manifest_kernel *kernel)
{
    if (!kernel->name)
        return;
    JSON_ADD(object, STRING("name", kernel->name), STRING("manifest", kernel->file));
}

/* Adds a call that is wrong, or beyond the device. */
static void add_failure(const struct check_command *self, const struct coverage_row *row,
                        const struct coverage_cell *at, const struct manifest_kernel *kernel,
                        const struct healcl_error *why)
{
    char cell[COVERAGE_CELL_SIZE], dtypes[COVERAGE_DTYPES_SIZE];
    const enum arrangement layout = at->arrangement;
    cJSON *object = json_add_object(self->failures, NULL);
    JSON_ADD(object, STRING("op", row->form->operation->name), STRING("form", row->form->name),
             STRING("dtypes", coverage_dtypes_text(row, dtypes)),
             STRING("dtype", dtype_name(row->dtypes.value)), NUMBER("n", (uint64_t)at->size.n),
             NUMBER("k", (uint64_t)at->size.k), STRING("layout", arrangement_name(layout)),
             STRING("case", coverage_cell_text(at, cell)),
             FLAG("unsupported", why->status == HEALCL_REFUSED));
    if (kernel->name)
        add_kernel(json_add_object(object, "kernel"), kernel);
    add_why(object, self, "--case ", cell, why);
}

static void add_example(cJSON *object, const struct check_command *self,
                        const struct example_check *check)
{
    JSON_ADD(object, STRING("op", check->operation->name), FLAG("checked", !check->unchecked));
    if (check->unchecked)
        json_add_string(object, "not_checked", check->unchecked);
    json_add_number(object, "ns", check->nanoseconds);
    for (int side = 0; side < EXAMPLE_SIDES; side++) {
        cJSON *calls = json_add_object(object, example_side_names[side]);
        if (side == EXAMPLE_KERNEL)
            add_kernel(calls, &check->kernel);
        add_members(calls, &check->of[side]);
    }
    add_why(object, self, "--op ", check->operation->name, &check->why);
}

/* Adds the manifests' kernels that the checked calls could have used. */
static void add_uses(cJSON *list, const struct check_command *self)
{
    for (size_t i = 0; i < self->uses.count; i++) {
        const struct kernel_use *use = &self->uses.of[i];
        const char *idle = why_idle(self, use);
        if (self->operation && use->steps == 0 && !use->why_not && !idle)
            continue;
        cJSON *object = json_add_object(list, NULL);
        JSON_ADD(object, STRING("name", use->kernel->kernel),
                 STRING("manifest", use->kernel->manifest), STRING("of", use->of),
                 NUMBER("steps", use->steps), NUMBER("failed", use->wrong),
                 FLAG("idle", idle != NULL));
        if (use->steps + use->wrong == 0)
            json_add_string(object, "why_not",
                            idle           ? idle
                            : use->why_not ? use->why_not
                                           : VENDOR_OF_OTHERS);
    }
}

static void add_variants(cJSON *list, const struct variants *variants)
{
    for (size_t i = 0; i < variants->count; i++) {
        const struct variant_row *row = &variants->rows[i];
        cJSON *object = json_add_object(list, NULL);
        JSON_ADD(object, STRING("step", step_traits[row->kind].id),
                 STRING("family", family_of(row->kind)->name),
                 STRING("variant", row->variant->name),
                 STRING("style", kernel_style_name(row->variant->style)),
                 STRING("program", row->variant->program), STRING("source", row->variant->source),
                 NUMBER("calls", row->calls), NUMBER("failed", row->failed),
                 NUMBER("launches", row->launches), NUMBER("recorded", row->recorded));
        json_add_string(object, row->kernel ? "kernel" : "not_reached",
                        row->kernel ? row->kernel : variant_row_reason(variants, row));
    }
}

static cJSON *report_check(void *context)
{
    struct check_command *self = context;
    const bool has_manifests = self->job.options.operations != NULL;
    const char *failure = self_test_failure(self);
    uint64_t unchecked = 0;
    for (size_t i = 0; i < self->example_count; i++)
        unchecked += self->examples[i].unchecked != NULL;
    const struct check_totals totals = totals_of_all(self);
    cJSON *document = json_report();
    report_add_device(json_add_object(document, "device"), &self->job.device->info);
    report_add_self_test(document, failure ? SELF_TEST_FAILED : SELF_TEST_PASSED, failure);
    JSON_ADD(document, FLAG("verified", is_right(self)), NUMBER("calls", totals.cells),
             NUMBER("passed", totals.passed), NUMBER("failed", totals.failures),
             NUMBER("unsupported", totals.unsupported), NUMBER("refused", totals.refused),
             NUMBER("unchecked", unchecked), NUMBER("idle_kernels", idle_kernels(self)));
    cJSON *rows = json_add_array(document, "rows");
    for (size_t i = 0; i < self->row_count; i++)
        add_row(json_add_object(rows, NULL), &self->rows[i]);
    cJSON *examples = has_manifests ? json_add_array(document, "examples") : NULL;
    for (size_t i = 0; i < self->example_count; i++)
        add_example(json_add_object(examples, NULL), self, &self->examples[i]);
    if (has_manifests)
        add_uses(json_add_array(document, "kernels"), self);
    if (runs_transcripts(self))
        add_members(json_add_object(document, CHECK_TRANSCRIPTS), &self->transcripts);
    if (is_whole(self))
        add_variants(json_add_array(document, "variants"), &self->variants);
    cJSON_AddItemToObject(document, "failures", cJSON_Duplicate(self->failures, true));
    return document;
}

/* ---------------------------------------------------------------- checking */

/* Whether another failure is kept. */
static bool has_room(const struct check_command *self, bool is_beyond)
{
    return cJSON_GetArraySize(self->failures) < (is_beyond ? BEYOND_KEPT : FAILURES_KEPT);
}

static void on_failure(void *context, const struct coverage_row *row,
                       const struct coverage_cell *cell, const struct manifest_kernel *kernel,
                       const struct healcl_error *why)
{
    struct check_command *self = context;
    if (why->status != HEALCL_REFUSED && kernel->name)
        kernel_uses_find(&self->uses, kernel->name)->wrong++;
    if (has_room(self, why->status == HEALCL_REFUSED))
        add_failure(self, row, cell, kernel, why);
}

static bool is_wanted(const struct check_command *self, const struct coverage_row *row)
{
    const char *name = self->operation;
    if (self->one_cell)
        return row->number == self->cell.row;
    return !name || strcmp(row->form->operation->name, name) == 0 ||
           strcmp(row->form->name, name) == 0 || strcmp(row->form->underscore_name, name) == 0;
}

static void choose_rows(struct check_command *self)
{
    size_t all = coverage_rows(&self->rows);
    for (size_t i = 0; i < all; i++)
        if (is_wanted(self, &self->rows[i])) {
            struct coverage_row *row = &self->rows[self->row_count++];
            *row = self->rows[i];
            row->uses = &self->uses;
            row->table = operations_of_options(&self->job.options);
            row->variants = &self->variants;
        }
}

static void choose_examples(struct check_command *self)
{
    const struct operation_table *table = operations_of_options(&self->job.options);
    const struct operation *operation,
        *named = self->operation ? example_operation_find(table, self->operation) : NULL;
    if (!table || self->one_cell)
        return;
    self->examples = xcalloc(operation_count(table), sizeof *self->examples);
    for (size_t i = 0; (operation = example_operation_at(table, i)); i++)
        if (!self->operation || operation == named)
            self->examples[self->example_count++].operation = operation;
}

/* Whether lines of operations are printed on standard output. */
static bool prints_lines(const struct check_command *self)
{
    return !self->job.json.on_stdout && !self->job.junit.on_stdout && !self->one_cell;
}

static void print_name(const char *name)
{
    printf("%-24s", name);
    fflush(stdout);
}

static struct check_totals totals_of(const struct check_command *self, enum operation_id operation)
{
    struct check_totals totals = {0};
    for (size_t i = 0; i < self->row_count; i++)
        if (form_id(self->rows[i].form) == operation)
            add(&totals, &self->rows[i]);
    return totals;
}

/* The table is printed during the check, so that it survives a driver's crash. In a file or a
 * pipe its last line then names the operation being checked. On a terminal, the progress line
 * names it. */
static void begin_line(const struct check_command *self, const char *name)
{
    if (prints_lines(self) && !isatty(STDOUT_FILENO))
        print_name(name);
}

static void end_line(struct check_command *self, const char *name, struct check_totals totals)
{
    if (!prints_lines(self))
        return;
    progress_pause();
    if (isatty(STDOUT_FILENO))
        print_name(name);
    printf("%6" PRIu64 "/%" PRIu64 " right%s\n", totals.passed, totals.cells,
           totals.failures > 0      ? ", some WRONG"
           : totals.unsupported > 0 ? ", the others beyond this device"
                                    : "");
    fflush(stdout);
    progress_resume();
}

static void begin_table(struct check_command *self)
{
    const struct style style = style_of(stdout);
    const struct device_info *info = &self->job.device->info;
    const char *failure = self_test_failure(self);
    if (!prints_lines(self))
        return;
    progress_pause();
    report_label(&style, "device", "%s", info->name);
    report_label(&style, "driver", "%s, %s", info->platform, info->driver);
    report_label(&style, "self-test", "%s", failure ? failure : "passed");
    for (int way = 0; info->multiply_wrong >> way; way++)
        if (info->multiply_wrong >> way & 1)
            report_label(&style, "", "multiply=%s is wrong; healcl uses another",
                         multiply_name((enum multiply)way));
    putchar('\n');
    progress_resume();
}

/* The rows of an operation are adjacent. */
static void check_rows(struct check_command *self)
{
    const struct coverage_observer observer = {self, on_failure};
    begin_table(self);
    for (size_t i = 0; i < self->row_count; i++) {
        struct coverage_row *row = &self->rows[i];
        enum operation_id operation = form_id(row->form);
        if (i == 0 || form_id(row[-1].form) != operation)
            begin_line(self, row->form->operation->name);
        progress_say("%zu of %zu: %s %s", i + 1, self->row_count, row->form->name,
                     dtype_name(row->dtypes.value));
        coverage_check(self->job.device, &self->sizes, self->one_cell ? &self->cell : NULL, row,
                       &observer);
        if (i + 1 == self->row_count || form_id(row[1].form) != operation)
            end_line(self, row->form->operation->name, totals_of(self, operation));
    }
}

/* Compares the results of a transcript with those that it expects, and what passes have changed. */
static enum healcl_status run_transcript(struct check_command *self,
                                         const struct healcl_transcript *transcript,
                                         bool is_sequences, struct healcl_error *error)
{
    const struct plan *plan = transcript->plan;
    const struct healcl_run_options options = {.no_warm_up = true, .repeat = 1};
    struct healcl_report *run = NULL;
    enum healcl_status status =
        is_sequences ? results_repeat(self->job.device, plan, SEQUENCES_RUNS, error)
                     : healcl_run(transcript, self->job.device, &options, &run, error);
    if (run && run->verdict == HEALCL_DIFFERS)
        status = ERROR(error, HEALCL_DIFFERENT, RESULTS_DIFFER);
    healcl_report_free(run);
    variants_end_call(&self->variants, plan, status == HEALCL_OK);
    for (int pass = 0; is_sequences && status == HEALCL_OK && pass < PASS_COUNT; pass++) {
        uint64_t changes = 0;
        for (size_t i = 0; i < plan->segment_count; i++)
            changes += plan->segments[i].pass_changes[pass];
        if (changes != sequences_changes[pass])
            status =
                ERROR(error, HEALCL_DIFFERENT, "pass '%s' changes %" PRIu64 " steps, not %" PRIu64,
                      passes[pass].name, changes, sequences_changes[pass]);
    }
    return status;
}

/* A quick check runs the sequences, and transcripts in which variants run steps in new ways. */
static void check_transcript(struct check_command *self, const char *file)
{
    struct healcl_transcript *transcript = NULL;
    struct healcl_error error = {.status = HEALCL_OK};
    struct check_counts *counts = &self->transcripts;
    const char *name = strrchr(file, '/') + 1;
    const bool is_sequences = strcmp(name, sequences) == 0;
    enum healcl_status status = healcl_transcript_open(file, NULL, &transcript, &error);
    const bool is_run = status != HEALCL_OK || !self->quick || is_sequences ||
                        variants_are_new(&self->variants, transcript->plan);
    if (status == HEALCL_OK && is_run)
        status = run_transcript(self, transcript, is_sequences, &error);
    const bool is_beyond = status == HEALCL_REFUSED;
    counts->calls += is_run;
    counts->passed += is_run && status == HEALCL_OK;
    counts->unsupported += is_beyond;
    if (status != HEALCL_OK && has_room(self, is_beyond)) {
        cJSON *object = json_add_object(self->failures, NULL);
        JSON_ADD(object, STRING("op", CHECK_TRANSCRIPTS), STRING("plan", name), STRING("dtype", ""),
                 FLAG("unsupported", is_beyond));
        add_why(object, self, NULL, name, &error);
    }
    healcl_error_clear(&error);
    healcl_transcript_close(transcript);
}

static void check_transcripts(struct check_command *self)
{
    glob_t bundled = {.gl_pathc = 0};
    struct check_totals totals = {0};
    if (!runs_transcripts(self))
        return;
    begin_line(self, CHECK_TRANSCRIPTS);
    (void)!bundled_find(&bundled, NULL);
    for (size_t i = 0; i < bundled.gl_pathc; i++) {
        progress_say("%s", bundled.gl_pathv[i]);
        check_transcript(self, bundled.gl_pathv[i]);
    }
    globfree(&bundled);
    add_counts(&totals, &self->transcripts);
    end_line(self, CHECK_TRANSCRIPTS, totals);
}

static void check_examples(struct check_command *self)
{
    for (size_t i = 0; i < self->example_count; i++) {
        struct example_check *check = &self->examples[i];
        progress_say("%zu of %zu of manifests: %s", i + 1, self->example_count,
                     check->operation->name);
        example_check(self->job.device, &self->calls, check);
    }
}

/* A device that fails its self-test is checked too, because its makers need to know what works. */
static enum healcl_status check(void *context, struct healcl_error *error)
{
    struct check_command *self = context;
    struct command_job *job = &self->job;
    if (self->results)
        TRY(compare_make_results(self->results, error));
    TRY(examples_read(&self->calls, job->options.operations, error));
    self->calls.uses = &self->uses;
    progress_say("opening the device");
    TRY(device_open(&opencl_loader, job->selector, &job->device, error));
    const uint32_t known_wrong = job->device->info.multiply_wrong; /* and so not tried again */
    if (self_test_run(job->device, &self->self_test) == HEALCL_NO_MEMORY)
        xmalloc_fail();
    job->device->info.multiply_wrong |= known_wrong;
    variants_init(&self->variants, job->device);
    job->device->options.no_fallback = true; /* results of the host would not test the device */
    check_rows(self);
    check_transcripts(self);
    check_examples(self);
    job->device->programs->observer = NULL;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- the end */

static void print_check(void *context, const cJSON *document, const struct style *style)
{
    const struct check_command *self = context;
    (self->one_cell ? report_check_call_text : report_check_text)(document, style);
}

/* Writes the device's result file. Only a check of the whole table counts. */
static int write_results(const struct check_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    struct comparison comparison;
    const struct check_totals totals = totals_of_all(self);
    const char *failure = self_test_failure(self);
    comparison_init(&comparison, host_memory());
    cJSON *about = cJSON_CreateObject();
    report_add_device(about, &self->job.device->info);
    cJSON *device = compare_add_device(&comparison, about);
    JSON_ADD(json_add_object(device, "check"), FLAG("quick", self->quick),
             FLAG("verified", is_right(self)), NUMBER("calls", totals.cells),
             NUMBER("failed", totals.failures), NUMBER("unsupported", totals.unsupported),
             STRING("message", failure ? failure : ""));
    compare_describe_load(&comparison, "load_after");
    compare_conclude(&comparison);
    (void)compare_write_results(&comparison, self->results, &error);
    comparison_release(&comparison);
    cJSON_Delete(about);
    return end_error(&error, false);
}

static int conclude(void *context, int code)
{
    const struct check_command *self = context;
    if (code == EXIT_VERIFIED && self->results)
        code = write_results(self);
    return code != EXIT_VERIFIED || is_right(self) ? code : EXIT_DIFFERENT;
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
               : usage_error(command, "'%s' is not a case; a case looks like 37:512x3:strided:42",
                             text);
}

static const struct command_option options[] = {
    {JOB_DEVICE},
    {"op", 0, OPTION_WORD, "NAME", KEPT_IN(struct check_command, operation),
     "check one operation or form of it (healcl ops lists them), or the bundled transcripts"},
    {"quick", 0, OPTION_FLAG, NULL, KEPT_IN(struct check_command, quick),
     "use few sizes, below 1000 elements, and larger ones only if they reach further variants"},
    {"case", 0, OPTION_WORD, "CASE",
     .help = "repeat a failed call, and print the layouts of its tensors", .take = take_case},
    {"results", 0, OPTION_NEW_FOLDER, "DIR", KEPT_IN(struct check_command, results),
     "write how many calls were right to DIR/VENDOR-DEVICE.json, for others to check "
     "(docs/COMPARE.md); needs a check of all operations"},
    {"junit", 0, OPTION_REPORT, "FILE|-", KEPT_IN(struct command_job, junit),
     "also write JUnit XML, with a test case for each form and dtype (docs/CI.md)"},
    JOB_OPTIONS,
};

static int prepare(const struct command *command, void *context)
{
    struct check_command *self = context;
    if (self->results && !is_whole(self))
        return usage_error(command, "--results needs a check of all operations, not of one");
    coverage_sizes_init(&self->sizes, self->quick);
    self->sizes.more = is_whole(self) ? self->sizes.more : 0;
    self->failures = cJSON_CreateArray();
    kernel_uses_init(&self->uses, operations_of_options(&self->job.options));
    choose_rows(self);
    choose_examples(self);
    if (self->row_count + self->example_count > 0 || runs_transcripts(self))
        return GOES_ON;
    if (self->one_cell)
        return usage_error(command, "this case does not exist");
    return usage_error(command,
                       "unknown operation '%s', or one without kernels; healcl ops lists them",
                       self->operation);
}

static void release_check(void *context)
{
    struct check_command *self = context;
    for (size_t i = 0; i < self->example_count; i++)
        healcl_error_clear(&self->examples[i].why);
    healcl_error_clear(&self->self_test);
    examples_release(&self->calls);
    cJSON_Delete(self->failures);
    kernel_uses_release(&self->uses);
    variants_release(&self->variants);
    free(self->rows);
    free(self->examples);
}

const struct command command_check = {
    .name = "check",
    .summary = "check every kernel of a device against the host reference",
    .help =
        "Runs every operation, with every dtype that it takes, on tensors of all layouts and many "
        "sizes. Compares whole storages with the host reference, bit for bit. Run it first on a "
        "new device, even if the device fails its self-test. It then runs the bundled transcripts; "
        "one of them has sequences of calls that passes fuse into fewer steps. All data are "
        "random, with a fixed seed. A table shows which variants of kernels have run. Operations "
        "of manifests are "
        "checked with calls derived from the transcripts in DIR/examples (docs/VENDORS.md).",
    .notes = "The table counts right calls of all calls: for each dtype, each layout (contiguous, "
             "offset, strided, transposed, broadcast, in place, overlapping) and each pair of a "
             "length n and a number of moduli k. Exit code 1: something is wrong, or nothing could "
             "be checked. A call that is only too large for the device is not wrong.",
    .options = options,
    .device = DEVICE_HERE,
    .size = sizeof(struct check_command),
    .steps = {.prepare = prepare,
              .work = check,
              .report = report_check,
              .print = print_check,
              .junit = report_check_junit,
              .conclude = conclude,
              .release = release_check},
};
