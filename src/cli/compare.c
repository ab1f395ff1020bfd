/* healcl compare. This process never uses OpenCL. All facts about devices come from child
 * processes, so that drivers cannot harm it. */
#include <ftw.h>
#include <signal.h>

#include "cli/command_job.h"
#include "cli/comparison.h"

enum {
    REPEAT_MAX = 250000, /* most samples that a comparison can read */
    REPEAT_DEFAULT = 5,
    REPEAT_DEFAULT_JUDGED = 15, /* if times are judged by a baseline's */
    TIMEOUT_DEFAULT = 600,
    MEASURE_TIMEOUT = 60, /* seconds; a slow device remains without these rates */
    STEADY_MAX = 15,      /* requests; enough for an interval */
};

/* The files that are written besides those of the job. */
enum output_kind { OUTPUT_CSV, OUTPUT_MARKDOWN, OUTPUT_HTML, OUTPUT_COUNT };

static void (*const printers[OUTPUT_COUNT])(const struct comparison *, FILE *) = {
    compare_print_csv, compare_print_markdown, compare_print_html};

/* The state of `healcl compare`. */
struct compare_command {
    struct command_job job;                /* manifests are loaded now to find mistakes early */
    struct words devices, baselines, kept; /* kept: segments whose uploads steady requests keep */
    const char *results;                   /* a folder, or NULL */
    bool no_measure, no_fallback, judges_times;
    double fail_slower; /* percent */
    uint32_t repeat;
    struct report_file outputs[OUTPUT_COUNT];
    struct comparison comparison;
    size_t run_count, made; /* runs of this comparison, before those of baselines */
    int interrupted;        /* the signal, or 0 */
};

/* texts: ends with NULL. */
static void add_words(struct words *words, const char *const *texts)
{
    for (; texts && *texts; texts++)
        words_add(words, *texts);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---------------------------------------------------------------- child processes */

static const char json_for_us[] = "--json=" PROCESS_FILE;

/* Runs healcl with arguments, which end with NULL. HEALCL_DEVICE if it is interrupted. */
static enum healcl_status run_child(struct compare_command *self, const char *const *arguments,
                                    uint32_t timeout, struct process_result *result,
                                    struct healcl_error *error)
{
    enum healcl_status status =
        process_run(&(const struct process_task){.arguments = arguments}, timeout, result, error);
    if (status == HEALCL_OK && result->end == PROCESS_INTERRUPTED) {
        self->interrupted = result->code;
        status = ERROR(error, HEALCL_DEVICE, "interrupted");
    }
    if (status != HEALCL_OK)
        process_result_release(result);
    return status;
}

/* ---------------------------------------------------------------- devices */

static void add_reference(struct compare_command *self)
{
    cJSON *device = compare_add_device(&self->comparison, NULL);
    compare_put_text(device, "index", COMPARE_REFERENCE);
    compare_put_text(device, "name", "host reference");
    compare_put_text(device, "type", "host");
    compare_put_text(device, "platform", "healcl");
    compare_put_text(device, "driver", healcl_version());
    compare_put_text(device, "version", healcl_compiler);
}

/* Adds the device that selector names, or all usable devices. If the listing itself crashes the
 * child, adds a device with only its selector; its runs then show the fault. */
static enum healcl_status list_devices(struct compare_command *self, const char *selector,
                                       struct healcl_error *error)
{
    struct process_result result;
    enum healcl_status status = HEALCL_OK;
    progress_say("looking for %s", selector ? selector : "devices");
    TRY(run_child(self,
                  WORDS("healcl", PROCESS_CHILD, "devices", json_for_us, "--no-self-test",
                        "--timeout", xformat("%" PRIu32, self->job.timeout), selector ? "-d" : NULL,
                        selector),
                  self->job.timeout, &result, error));
    const bool is_usage = selector && result.code == EXIT_USAGE;
    const bool none = compare_add_devices(&self->comparison, result.text, selector != NULL,
                                          &self->job.is_of_driver) == 0;
    if (none && result.end == PROCESS_EXITED &&
        (!selector || is_usage || result.code == EXIT_DEVICE))
        status = ERROR(error, is_usage ? HEALCL_USAGE : HEALCL_DEVICE, "%.600s",
                       *result.last_line ? last_words(&result) : "no device can be used");
    else if (none && selector)
        compare_put_text(compare_add_device(&self->comparison, NULL), "index", selector);
    else if (none)
        status = ERROR(error, HEALCL_DEVICE, "listing the devices %s; name one with --device",
                       result.end == PROCESS_KILLED ? "crashed" : "took too long");
    self->job.is_of_driver |= result.end != PROCESS_EXITED;
    self->job.is_of_driver &= status != HEALCL_OK;
    process_result_release(&result);
    return status;
}

static enum healcl_status add_devices(struct compare_command *self, struct healcl_error *error)
{
    if (self->devices.count == 0)
        return list_devices(self, NULL, error);
    for (size_t i = 0; i < self->devices.count; i++) {
        if (strcmp(self->devices.of[i], COMPARE_REFERENCE) == 0)
            add_reference(self);
        else
            TRY(list_devices(self, self->devices.of[i], error));
    }
    return HEALCL_OK;
}

/* Measures how fast a device copies and multiplies. The rates remain unknown on failure. */
static enum healcl_status measure(struct compare_command *self, cJSON *device,
                                  struct healcl_error *error)
{
    const char *selector = json_text(device, "index");
    if (self->no_measure || json_is(device, "index", COMPARE_REFERENCE))
        return HEALCL_OK;
    struct process_result result;
    progress_say("measuring %s", selector);
    TRY(run_child(
        self, WORDS("healcl", PROCESS_CHILD, "devices", json_for_us, "--measure", "-d", selector),
        self->job.timeout < MEASURE_TIMEOUT ? self->job.timeout : MEASURE_TIMEOUT, &result, error));
    compare_take_rates(device, result.text);
    process_result_release(&result);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- runs */

/* Makes the arguments of "healcl run" for a transcript on a device, `repeat` times. Adds requests
 * after the run, unless repeat is 1. run: receives the command for people, without internal
 * options; or NULL. */
static enum healcl_status run_file(struct compare_command *self, const char *selector,
                                   size_t transcript, uint32_t repeat, cJSON *run,
                                   struct process_result *result, struct healcl_error *error)
{
    struct words arguments = {.count = 0};
    const char *file = self->job.files[transcript];
    const struct healcl_operations *manifests = self->job.options.operations;
    const struct operation_folder *folder = manifests ? manifests->folders : NULL;
    const uint32_t requests = repeat < STEADY_MAX ? repeat : STEADY_MAX;
    add_words(&arguments, WORDS("healcl", PROCESS_CHILD, "run"));
    if (strcmp(selector, COMPARE_REFERENCE) == 0)
        words_add(&arguments, "--reference");
    else
        add_words(&arguments, WORDS("-d", selector));
    if (self->no_fallback)
        words_add(&arguments, "--no-fallback");
    for (; folder; folder = folder->next)
        add_words(&arguments, WORDS(folder->is_trusted ? "--trust" : "--ops", folder->path));
    add_words(&arguments, WORDS("--repeat", xformat("%" PRIu32, repeat)));
    if (run)
        add_words(&arguments, WORDS("--steady", xformat("%" PRIu32, requests)));
    for (size_t i = 0; run && i < self->kept.count; i++)
        add_words(&arguments, WORDS("--keep", self->kept.of[i]));
    if (run) {
        words_add(&arguments, file);
        compare_put_command(run, "run", arguments.of + 3, arguments.count - 3);
        arguments.count--;
    }
    add_words(&arguments, WORDS("--quiet", json_for_us, "--", file));
    return run_child(self, arguments.of, self->job.timeout, result, error);
}

static const char *selector_of(const struct compare_command *self, const cJSON *run)
{
    return json_text(compare_device_of(&self->comparison, run), "index");
}

static enum healcl_status run_one(struct compare_command *self, cJSON *run,
                                  struct healcl_error *error)
{
    const size_t transcript = json_number_at(run, "transcript_at");
    struct process_result result;
    progress_say("%zu of %zu: %s: %s", self->made + 1, self->run_count, selector_of(self, run),
                 self->job.files[transcript]);
    TRY(run_file(self, selector_of(self, run), transcript, self->repeat, run, &result, error));
    compare_take_run(&self->comparison, run, &result);
    process_result_release(&result);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- first results */

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    (void)remove(path);
    return 0;
}

/* Times a first result without cached data of this machine. healcl's caches, with the choices of
 * tune, and those of drivers are in a folder that is empty at first. No process with the usual
 * caches may follow. */
static enum healcl_status run_cold(struct compare_command *self, cJSON *run,
                                   struct healcl_error *error)
{
    static const char *const variables[] = {
        "HEALCL_CACHE_DIR", "XDG_CACHE_HOME",  "POCL_CACHE_DIR",     "MESA_SHADER_CACHE_DIR",
        "NEO_CACHE_DIR",    "CUDA_CACHE_PATH", "AMD_COMGR_CACHE_DIR"};
    enum { OPEN_FOLDERS = 16 };
    const size_t transcript = json_number_at(run, "transcript_at");
    const char *selector = selector_of(self, run);
    char folder[] = "/tmp/healcl-cold-XXXXXX";
    struct process_result result;
    if (self->no_measure || !compare_is_right(run) || strcmp(selector, COMPARE_REFERENCE) == 0 ||
        !mkdtemp(folder))
        return HEALCL_OK;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        (void)setenv(variables[i], folder, 1);
    progress_say("cold start: %s: %s", selector, self->job.files[transcript]);
    const enum healcl_status status = run_file(self, selector, transcript, 1, NULL, &result, error);
    (void)nftw(folder, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
    TRY(status);
    cJSON *top = cJSON_Parse(result.text);
    if (compare_number(top, "first_result_ns") > 0)
        compare_put_number(run, "cold_result_ns", compare_number(top, "first_result_ns"));
    cJSON_Delete(top);
    process_result_release(&result);
    return HEALCL_OK;
}

/* Runs the host reference if results differ and it is not among the devices. */
static enum healcl_status judge(struct compare_command *self, size_t transcript,
                                struct healcl_error *error)
{
    cJSON *run = compare_add_judge(&self->comparison, transcript);
    if (!run)
        return HEALCL_OK;
    struct process_result result;
    progress_say("host reference: %s, which differs", self->job.files[transcript]);
    TRY(run_file(self, COMPARE_REFERENCE, transcript, 1, NULL, &result, error));
    compare_take_run(&self->comparison, run, &result);
    process_result_release(&result);
    return HEALCL_OK;
}

/* Makes the first run_count runs; those after them are of baselines. Memory layout and other load
 * can change all times of a process. So a slower result is measured again in another process, which
 * then counts. */
static enum healcl_status make_runs(struct compare_command *self, struct healcl_error *error)
{
    cJSON *run = self->comparison.runs->child;
    for (size_t i = 0; i < self->run_count; i++, run = run->next) {
        TRY(run_one(self, run, error));
        self->made++;
    }
    run = self->comparison.runs->child;
    for (size_t i = 0; i < self->run_count; i++, run = run->next) {
        self->made = i;
        if (compare_judge(&self->comparison, run))
            TRY(run_one(self, run, error));
    }
    return HEALCL_OK;
}

static enum healcl_status run_all(struct compare_command *self, struct healcl_error *error)
{
    struct comparison *comparison = &self->comparison;
    for (size_t i = 0; i < compare_own_devices(comparison); i++) {
        TRY(measure(self, compare_device(comparison, i), error));
    }
    TRY(make_runs(self, error));
    for (size_t i = 0; i < self->job.file_count; i++)
        TRY(judge(self, i, error));
    cJSON *run = comparison->runs->child;
    for (size_t i = 0; i < self->run_count; i++, run = run->next)
        TRY(run_cold(self, run, error));
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- the whole */

static enum healcl_status add_baselines(struct compare_command *self, struct healcl_error *error)
{
    for (size_t i = 0; i < self->baselines.count; i++) {
        size_t added;
        TRY(compare_add_baseline(&self->comparison, self->baselines.of[i], &added, error));
        if (added == 0)
            print_notice("%s: warning: it has no run of the compared transcripts",
                         self->baselines.of[i]);
    }
    return HEALCL_OK;
}

/* Finds all mistakes before the first run. */
static enum healcl_status begin(struct compare_command *self, struct healcl_error *error)
{
    struct comparison *comparison = &self->comparison;
    compare_put_number(comparison->top, "repeat", self->repeat);
    compare_put_number(comparison->top, "timeout_s", self->job.timeout);
    if (self->judges_times)
        compare_put_number(comparison->top, "fail_slower_percent", self->fail_slower);
    for (size_t i = 0; i < self->job.file_count; i++)
        TRY(compare_add_transcript(comparison, self->job.files[i], error));
    for (size_t i = 0; i < OUTPUT_COUNT; i++)
        TRY(report_file_open(&self->outputs[i], error));
    if (self->results)
        TRY(compare_make_results(self->results, error));
    TRY(add_devices(self, error));
    const size_t devices = json_number_at(comparison->top, "devices");
    for (size_t i = 0; i < self->job.file_count; i++)
        for (size_t j = 0; j < devices; j++)
            compare_add_run(comparison, i, j);
    self->run_count = self->job.file_count * devices;
    return add_baselines(self, error);
}

static enum healcl_status compare(void *context, struct healcl_error *error)
{
    struct compare_command *self = context;
    progress_start_long();
    enum healcl_status status = begin(self, error);
    THEN(status, run_all(self, error));
    /* Runs made before an interruption are reported. */
    if (self->interrupted) {
        if (compare_end_early(&self->comparison) == 0) {
            progress_end();
            raise(self->interrupted);
        }
        status = HEALCL_OK;
    }
    if (status == HEALCL_OK) {
        compare_describe_load(&self->comparison, "load_after");
        compare_conclude(&self->comparison);
    }
    return status;
}

static cJSON *report_compare(void *context)
{
    return cJSON_Duplicate(((struct compare_command *)context)->comparison.top, true);
}

/* The table is not printed beside another output. */
static void print_compare(void *context, const cJSON *document, const struct style *style)
{
    const struct compare_command *self = context;
    bool on_stdout = false;
    (void)document;
    for (size_t i = 0; i < OUTPUT_COUNT; i++)
        on_stdout |= self->outputs[i].on_stdout;
    if (!on_stdout)
        compare_print_table(&self->comparison, style);
}

static void print_junit(void *context, const cJSON *document, FILE *stream)
{
    (void)document;
    compare_print_junit(&((struct compare_command *)context)->comparison, stream);
}

/* Writes the other outputs, and the result files of devices unless interrupted. Returns an exit
 * code. */
static int write_files(struct compare_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    int code = EXIT_VERIFIED;
    for (size_t i = 0; i < OUTPUT_COUNT && code == EXIT_VERIFIED; i++) {
        FILE *stream = report_file_stream(&self->outputs[i]);
        if (!stream)
            continue;
        printers[i](&self->comparison, stream);
        code = report_file_end(&self->outputs[i], code, false);
    }
    code = finish_output(code);
    if (code == EXIT_VERIFIED && self->results && !self->interrupted)
        (void)compare_write_results(&self->comparison, self->results, &error);
    return code == EXIT_VERIFIED ? end_error(&error, false) : code;
}

/* Prints slowdowns above the limit, and those that could not be judged. */
static void print_slowdowns(const struct comparison *comparison)
{
    JSON_EACH(run, comparison->runs)
    {
        const cJSON *device = compare_device_of(comparison, run);
        JSON_EACH(slowdown, json_at(run, "slowdowns"))
        {
            const bool is_judged = !json_at(slowdown, "not_judged_because");
            const char *text = compare_slowdown_text(comparison, slowdown);
            if (!is_judged || cJSON_IsTrue(json_at(slowdown, "slower")))
                print_notice("%s: %s%s %s: %s", json_text(run, "transcript"),
                             is_judged ? "" : "warning: ", json_text(device, "index"),
                             json_text(device, "name"), text);
        }
    }
}

static int conclude(void *context, int code)
{
    struct compare_command *self = context;
    if (code == EXIT_VERIFIED)
        code = write_files(self);
    if (code == EXIT_VERIFIED && !self->interrupted) {
        print_slowdowns(&self->comparison);
        code = compare_worst(&self->comparison);
    }
    for (size_t i = 0; i < OUTPUT_COUNT; i++)
        report_file_discard(&self->outputs[i]);
    if (self->interrupted)
        raise(self->interrupted);
    return code;
}

/* ---------------------------------------------------------------- options */

static int take_percent(const struct command *command, const struct command_option *option,
                        void *context, const char *text)
{
    struct compare_command *self = context;
    self->judges_times = true;
    if (!parse_percent(text, 1e6, &self->fail_slower))
        return usage_error(command, "--%s takes a percentage such as 10 or 0.5%%, not '%s'",
                           option->name, text);
    return EXIT_VERIFIED;
}

#define OUTPUT(name, stored, does) \
    name, 0, OPTION_REPORT, "FILE|-", KEPT_IN(struct compare_command, stored), does

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, "SEL", KEPT_IN(struct compare_command, devices),
     "a device, as for healcl run, or reference, which is slow; repeatable. Speed-ups are relative "
     "to the first. By default all usable devices, best first",
     .take = take_word},
    {"repeat", 0, OPTION_COUNT, "N", KEPT_IN(struct compare_command, repeat),
     "run N times in each process; 5 by default, 15 with --fail-slower", .most = REPEAT_MAX},
    {"keep", 0, OPTION_WORD, "SEGMENT", KEPT_IN(struct compare_command, kept),
     "in steady requests, only the uploads of this segment stay on the device; repeatable",
     .take = take_word},
    {TIMEOUT_OPTION("seconds that one process may take, 600 by default")},
    {"baseline", 0, OPTION_FILE, "FILE", KEPT_IN(struct compare_command, baselines),
     "a comparison saved with --json; its runs of the same transcripts are shown, too; repeatable",
     .take = take_word},
    {"fail-slower", 0, OPTION_WORD, "PERCENT",
     .help =
         "exit with 5 if compute or a steady request takes more than PERCENT longer than in the "
         "baseline, by its whole interval (95 %, at least 7 runs of each), in a second process "
         "too",
     .take = take_percent},
    {"no-measure", 0, OPTION_FLAG, NULL, KEPT_IN(struct compare_command, no_measure),
     "do not measure how fast each device copies and multiplies"},
    {"no-fallback", 0, OPTION_FLAG, NULL, KEPT_IN(struct compare_command, no_fallback),
     "as for healcl run; by default, reports say what the host ran"},
    {OPS_OPTION},
    {TRUST_OPTION},
    {"results", 0, OPTION_NEW_FOLDER, "DIR", KEPT_IN(struct compare_command, results),
     "write each device's results to DIR/VENDOR-DEVICE.json (docs/COMPARE.md)"},
    {OUTPUT("html", outputs[OUTPUT_HTML],
            "write an HTML page, in one file, that sorts and filters")},
    {OUTPUT("markdown", outputs[OUTPUT_MARKDOWN],
            "write Markdown tables, for an issue or a pull request")},
    {OUTPUT("csv", outputs[OUTPUT_CSV], "write CSV, with a line for each run")},
    {OUTPUT("json", job.json, "write everything as JSON (docs/COMPARE.md)")},
    {OUTPUT("junit", job.junit,
            "write JUnit XML, with a test case for each transcript and device (docs/CI.md)")},
    {HELP_OPTION},
};

static int prepare(const struct command *command, void *context)
{
    struct compare_command *self = context;
    if (self->judges_times && self->baselines.count == 0)
        return usage_error(command, "--fail-slower needs a --baseline to compare with");
    if (self->repeat == 0)
        self->repeat = self->judges_times ? REPEAT_DEFAULT_JUDGED : REPEAT_DEFAULT;
    if (self->job.timeout == 0)
        self->job.timeout = TIMEOUT_DEFAULT;
    comparison_init(&self->comparison, host_memory());
    compare_put_command(self->comparison.top, "compare", (const char *const *)self->job.arguments,
                        self->job.argument_count);
    return GOES_ON;
}

static void release_compare(void *context)
{
    comparison_release(&((struct compare_command *)context)->comparison);
}

const struct command command_compare = {
    .name = "compare",
    .summary = "run transcripts on several devices, and compare results and times",
    .help = "Runs transcripts on several devices, one after the other. Shows which results are "
            "right, and how fast each device is. Each run has its own process: if a driver crashes "
            "or hangs, its row says so.",
    .notes = "A report written to - is alone on standard output. Without a terminal, standard "
             "error gets one line of progress a minute. If interrupted, compare writes what it has "
             "measured.\n\nExit codes: 0 verified, or nothing to verify; else 1 a result differs; "
             "else 4 a device failed, crashed or timed out; else 3 a transcript is refused; else 5 "
             "slower than --fail-slower allows; 2 wrong usage.",
    .options = options,
    .operands = OPERANDS_FILES,
    .device = DEVICE_IN_CHILDREN,
    .size = sizeof(struct compare_command),
    .steps = {.prepare = prepare,
              .work = compare,
              .report = report_compare,
              .print = print_compare,
              .junit = print_junit,
              .conclude = conclude,
              .release = release_compare},
};
