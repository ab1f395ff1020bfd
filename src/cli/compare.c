/* healcl compare. OpenCL is not touched here: all that is known of devices comes from child
 * processes, so that a driver can do no harm. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/report_file.h"
#include "compare/compare.h"
#include "compare/describe.h"
#include "compare/fresh_caches.h"
#include "core/clock.h"

enum {
    REPEAT_MAX = 250000, /* whose times a comparison can read */
    REPEAT_DEFAULT = 5,
    REPEAT_DEFAULT_JUDGED = 15, /* where times are judged by a baseline's */
    TIMEOUT_DEFAULT = 600,
    MEASURE_TIMEOUT = 60, /* seconds; a slow device is left without these figures */
    STEADY_MAX = 15,      /* requests, enough for an interval */
    BASELINES_MAX = 32,
};

/* The files that are written: one of each kind. */
enum output_kind {
    OUTPUT_JSON,
    OUTPUT_JUNIT,
    OUTPUT_CSV,
    OUTPUT_MARKDOWN,
    OUTPUT_HTML,
    OUTPUT_COUNT
};

static enum healcl_status (*const printers[OUTPUT_COUNT])(const struct comparison *, FILE *) = {
    [OUTPUT_JSON] = compare_print_json, [OUTPUT_JUNIT] = compare_print_junit,
    [OUTPUT_CSV] = compare_print_csv,   [OUTPUT_MARKDOWN] = compare_print_markdown,
    [OUTPUT_HTML] = compare_print_html,
};

static const int exit_codes[] = {
    [COMPARED_RIGHT] = EXIT_VERIFIED,      [COMPARED_SLOWER] = EXIT_SLOWER,
    [COMPARED_REFUSED] = EXIT_REFUSED,     [COMPARED_FAILED] = EXIT_DEVICE,
    [COMPARED_DIFFERENT] = EXIT_DIFFERENT,
};

enum { FOLDERS_MAX = 8, KEPT_MAX = 8 };

/* One `healcl compare`. */
struct compare_command {
    const char *selectors[COMPARE_DEVICES_MAX], *baselines[BASELINES_MAX];
    const char *ranks[COMPARE_RANKS_MAX]; /* reports of healcl-mpi */
    size_t selector_count, baseline_count, ranks_count;
    struct {
        const char *option, *path;
    } folders[FOLDERS_MAX]; /* of manifests, for runs: "--ops" or "--trust" */
    size_t folder_count;
    const char *kept[KEPT_MAX]; /* segments that steady requests do not upload */
    size_t kept_count;
    const char *results;                        /* a folder, or NULL */
    const struct healcl_operations *operations; /* that were read from them, to find mistakes now */
    bool keep_binaries[COMPARE_DEVICES_MAX];    /* its driver keeps nothing of its own */
    const char *const *arguments;               /* of the command, its name first */
    char **files;
    size_t argument_count, file_count;
    bool no_measure, no_fallback, check, judges_times;
    double fail_slower; /* percent */
    uint32_t repeat, timeout;
    struct report_file outputs[OUTPUT_COUNT];
    struct progress progress;
    struct comparison comparison;
    size_t run_count; /* here: baselines' are behind them */
    int interrupted;  /* the signal, or 0 */
};

/* ---------------------------------------------------------------- child processes */

enum { ARGUMENTS_MAX = 18 + 2 * (FOLDERS_MAX + KEPT_MAX) };

static const char json_for_us[] = "--json=" PROCESS_FILE;

/* Runs healcl with arguments, which end with NULL. HEALCL_DEVICE where we are interrupted. */
static enum healcl_status run_child(struct compare_command *self, const char *const *arguments,
                                    uint32_t timeout, struct process_result *result,
                                    struct healcl_error *error)
{
    enum healcl_status status = process_run(arguments, timeout, result, error);
    if (status == HEALCL_OK && result->end == PROCESS_INTERRUPTED) {
        self->interrupted = result->code;
        status = ERROR(error, HEALCL_DEVICE, "interrupted");
    }
    if (status != HEALCL_OK)
        process_result_release(result);
    return status;
}

/* ---------------------------------------------------------------- devices */

static enum healcl_status add_reference(struct compare_command *self, struct healcl_error *error)
{
    struct compare_device *device;
    TRY(comparison_add_device(&self->comparison, &device, error));
    device->selector = COMPARE_REFERENCE;
    device->name = "host reference";
    device->type = "host";
    device->platform = "healcl";
    device->driver = self->comparison.origin.healcl;
    device->version = healcl_compiler;
    return HEALCL_OK;
}

/* What `healcl devices` says. With selector, the device that it names is the default. */
static enum healcl_status ask_for_devices(struct compare_command *self, const char *selector,
                                          struct process_result *result, struct healcl_error *error)
{
    char seconds[16];
    const char *arguments[9] = {PROCESS_NAME,     "devices",   json_for_us,
                                "--no-self-test", "--timeout", seconds};
    snprintf(seconds, sizeof seconds, "%" PRIu32, self->timeout);
    if (selector) {
        arguments[6] = "-d";
        arguments[7] = selector;
    }
    progress_say(&self->progress, "looking for %s", selector ? selector : "devices");
    return run_child(self, arguments, self->timeout, result, error);
}

/* The device that selector names. Where even asking for it kills the child it is added by its
 * selector alone, and its runs will tell. */
static enum healcl_status add_selected(struct compare_command *self, const char *selector,
                                       struct healcl_error *error)
{
    struct comparison *comparison = &self->comparison;
    struct process_result result;
    TRY(ask_for_devices(self, selector, &result, error));
    size_t before = comparison->device_count;
    enum healcl_status status = compare_read_devices(comparison, result.text, true, error);
    if (status == HEALCL_OK && comparison->device_count == before) {
        struct compare_device *device;
        if (result.end == PROCESS_EXITED && result.code == EXIT_USAGE)
            status = ERROR(error, HEALCL_USAGE, "%.600s", last_words(&result));
        else if (result.end == PROCESS_EXITED && result.code == EXIT_DEVICE)
            status = ERROR(error, HEALCL_DEVICE, "%.600s", last_words(&result));
        else
            status = comparison_add_device(comparison, &device, error);
        if (status == HEALCL_OK)
            device->selector = selector;
    }
    process_result_release(&result);
    return status;
}

static enum healcl_status add_all_usable(struct compare_command *self, struct healcl_error *error)
{
    struct process_result result;
    TRY(ask_for_devices(self, NULL, &result, error));
    enum healcl_status status = compare_read_devices(&self->comparison, result.text, false, error);
    bool none = status == HEALCL_OK && self->comparison.device_count == 0;
    if (none && result.end == PROCESS_EXITED)
        status = ERROR(error, HEALCL_DEVICE, "%.600s",
                       *result.last_line ? last_words(&result) : "no device can be used");
    else if (none)
        status = ERROR(error, HEALCL_DEVICE, "listing the devices %s; name one with --device",
                       result.end == PROCESS_KILLED ? "crashed" : "took too long");
    process_result_release(&result);
    return status;
}

static enum healcl_status add_devices(struct compare_command *self, struct healcl_error *error)
{
    if (self->selector_count == 0)
        return add_all_usable(self, error);
    for (size_t i = 0; i < self->selector_count; i++) {
        const char *selector = self->selectors[i];
        if (strcmp(selector, COMPARE_REFERENCE) == 0)
            TRY(add_reference(self, error));
        else
            TRY(add_selected(self, selector, error));
    }
    return HEALCL_OK;
}

/* How fast a device copies and multiplies; unknown where that fails. */
static enum healcl_status measure(struct compare_command *self, struct compare_device *device,
                                  struct healcl_error *error)
{
    const char *const arguments[] = {PROCESS_NAME, "devices",        json_for_us, "--measure",
                                     "-d",         device->selector, NULL};
    if (self->no_measure || strcmp(device->selector, COMPARE_REFERENCE) == 0)
        return HEALCL_OK;
    uint32_t timeout = self->timeout < MEASURE_TIMEOUT ? self->timeout : MEASURE_TIMEOUT;
    struct process_result result;
    progress_say(&self->progress, "measuring %s", device->selector);
    TRY(run_child(self, arguments, timeout, &result, error));
    compare_read_rates(&self->comparison, device, result.text);
    process_result_release(&result);
    return comparison_status(&self->comparison, error);
}

static enum healcl_status check(struct compare_command *self, struct compare_device *device,
                                struct healcl_error *error)
{
    const char *const arguments[] = {PROCESS_NAME, "check",          "--quick", json_for_us,
                                     "-d",         device->selector, NULL};
    if (!self->check || strcmp(device->selector, COMPARE_REFERENCE) == 0)
        return HEALCL_OK;
    struct process_result result;
    progress_say(&self->progress, "checking %s", device->selector);
    TRY(run_child(self, arguments, self->timeout, &result, error));
    enum healcl_status status = compare_read_check(&self->comparison, device, &result, error);
    device->check.quick = true;
    process_result_release(&result);
    return status;
}

/* ---------------------------------------------------------------- runs */

/* "healcl run" of a transcript on a device, so often, with requests behind it unless that is once.
 * command: where that is told for people, without what only we want; may be NULL. */
static enum healcl_status run_file(struct compare_command *self, const char *selector,
                                   size_t transcript, uint32_t repeat, const char **command,
                                   struct process_result *result, struct healcl_error *error)
{
    const char *arguments[ARGUMENTS_MAX] = {PROCESS_NAME, "run"};
    const char *file = self->files[transcript];
    size_t count = 2;
    char times[16], requests[16];
    snprintf(times, sizeof times, "%" PRIu32, repeat);
    snprintf(requests, sizeof requests, "%" PRIu32, repeat < STEADY_MAX ? repeat : STEADY_MAX);
    if (strcmp(selector, COMPARE_REFERENCE) == 0) {
        arguments[count++] = "--reference";
    } else {
        arguments[count++] = "-d";
        arguments[count++] = selector;
    }
    if (self->no_fallback)
        arguments[count++] = "--no-fallback";
    for (size_t i = 0; i < self->folder_count; i++) {
        arguments[count++] = self->folders[i].option;
        arguments[count++] = self->folders[i].path;
    }
    arguments[count++] = "--repeat";
    arguments[count++] = times;
    if (command) {
        arguments[count++] = "--steady";
        arguments[count++] = requests;
    }
    for (size_t i = 0; command && i < self->kept_count; i++) {
        arguments[count++] = "--keep";
        arguments[count++] = self->kept[i];
    }
    arguments[count] = file;
    if (command)
        *command = compare_command_line(&self->comparison, arguments + 1, count);
    arguments[count++] = "--quiet";
    arguments[count++] = json_for_us;
    arguments[count++] = "--";
    arguments[count] = file;
    return run_child(self, arguments, self->timeout, result, error);
}

static enum healcl_status run_once(struct compare_command *self, const struct compare_run *run,
                                   struct compare_first *first, struct healcl_error *error)
{
    const char *selector = self->comparison.devices[run->device].selector;
    struct process_result result;
    TRY(run_file(self, selector, run->transcript, 1, NULL, &result, error));
    compare_read_first(&self->comparison, first, &result);
    process_result_release(&result);
    return comparison_status(&self->comparison, error);
}

/* The same, by a process that keeps all binaries. */
static enum healcl_status run_and_keep(struct compare_command *self, const struct compare_run *run,
                                       struct compare_first *first, struct healcl_error *error)
{
    static const char keep[] = "HEALCL_KEEP_BINARIES";
    bool ours = !getenv(keep) && setenv(keep, "1", 1) == 0;
    enum healcl_status status = run_once(self, run, first, error);
    if (ours)
        (void)unsetenv(keep);
    return status;
}

/* How long a process takes to its first result, with empty caches and once more. A driver whose
 * second build takes more than half as long keeps nothing itself, and healcl keeps its binaries
 * once that has cost enough: to measure that, one more process keeps them at once. */
static enum healcl_status run_cold_and_warm(struct compare_command *self, struct compare_run *run,
                                            struct healcl_error *error)
{
    struct compare_first kept;
    bool *keeps = &self->keep_binaries[run->device];
    TRY(*keeps ? run_and_keep(self, run, &run->cold, error)
               : run_once(self, run, &run->cold, error));
    if (run->cold.nanoseconds > 0)
        TRY(run_once(self, run, &run->warm, error));
    if (*keeps || 2 * run->warm.compile_nanoseconds <= run->cold.compile_nanoseconds)
        return HEALCL_OK;
    *keeps = true;
    TRY(run_and_keep(self, run, &kept, error));
    return run_once(self, run, &run->warm, error);
}

/* What `healcl tune` has kept goes along: it is no cache. */
static enum healcl_status time_first_results(struct compare_command *self, struct compare_run *run,
                                             struct healcl_error *error)
{
    const struct compare_device *device = &self->comparison.devices[run->device];
    struct fresh_caches caches;
    bool tuned = device->tuned && !getenv("HEALCL_TUNING");
    if (self->no_measure || !compare_is_right(run) || !fresh_caches_begin(&caches))
        return HEALCL_OK;
    if (tuned)
        (void)setenv("HEALCL_TUNING", device->tuning, 1);
    progress_say(&self->progress, "%zu of %zu: %s: %s, first result",
                 (size_t)(run - self->comparison.runs) + 1, self->run_count, device->selector,
                 self->files[run->transcript]);
    enum healcl_status status = run_cold_and_warm(self, run, error);
    if (tuned)
        (void)unsetenv("HEALCL_TUNING");
    fresh_caches_end(&caches);
    return status;
}

static enum healcl_status run_one(struct compare_command *self, struct compare_run *run,
                                  struct healcl_error *error)
{
    struct comparison *comparison = &self->comparison;
    const char *selector = comparison->devices[run->device].selector;
    const uint64_t begin = monotonic_nanoseconds();
    struct process_result result;
    progress_say(&self->progress, "%zu of %zu: %s: %s", (size_t)(run - comparison->runs) + 1,
                 self->run_count, selector, self->files[run->transcript]);
    TRY(run_file(self, selector, run->transcript, self->repeat, &run->command, &result, error));
    enum healcl_status status = compare_read_run(comparison, run, &result, error);
    process_result_release(&result);
    run->taken_nanoseconds = monotonic_nanoseconds() - begin;
    if (status == HEALCL_OK)
        status = time_first_results(self, run, error);
    run->taken_nanoseconds = monotonic_nanoseconds() - begin;
    if (comparison_left(comparison) > 0)
        progress_estimate(&self->progress, comparison_left(comparison));
    return status;
}

/* Asks the host reference, where results differ and it is not among the devices. */
static enum healcl_status judge(struct compare_command *self, size_t transcript,
                                struct healcl_error *error)
{
    struct compare_run *run;
    TRY(comparison_add_judge(&self->comparison, transcript, &run, error));
    if (!run)
        return HEALCL_OK;
    struct process_result result;
    progress_say(&self->progress, "host reference: %s, which differs", self->files[transcript]);
    TRY(run_file(self, COMPARE_REFERENCE, transcript, 1, NULL, &result, error));
    enum healcl_status status = compare_read_run(&self->comparison, run, &result, error);
    process_result_release(&result);
    return status;
}

/* Runs that are to come, of all devices that are there. */
static enum healcl_status add_runs(struct compare_command *self, struct healcl_error *error)
{
    struct comparison *comparison = &self->comparison;
    struct compare_run *run;
    for (size_t i = 0; i < comparison->transcript_count; i++)
        for (size_t j = 0; j < comparison->device_count; j++)
            TRY(comparison_add_run(comparison, i, j, &run, error));
    return HEALCL_OK;
}

/* How a process fares as a whole, in memory and on a busy machine, moves all of its times: what is
 * slower must be so in another process, which then counts. */
static enum healcl_status run_slower_again(struct compare_command *self, struct healcl_error *error)
{
    for (size_t i = 0; i < self->run_count; i++) {
        struct compare_run *run = &self->comparison.runs[i];
        if (!compare_is_slower(&self->comparison, run))
            continue;
        comparison_reset_run(run);
        TRY(run_one(self, run, error));
    }
    return HEALCL_OK;
}

/* The first ones: those behind them are baselines'. */
static enum healcl_status run_all(struct compare_command *self, size_t device_count,
                                  struct healcl_error *error)
{
    struct comparison *comparison = &self->comparison;
    for (size_t i = 0; i < device_count; i++) {
        TRY(measure(self, &comparison->devices[i], error));
        TRY(check(self, &comparison->devices[i], error));
    }
    for (size_t i = 0; i < self->run_count; i++)
        TRY(run_one(self, &comparison->runs[i], error));
    TRY(run_slower_again(self, error));
    for (size_t i = 0; i < comparison->transcript_count; i++)
        TRY(judge(self, i, error));
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- the whole */

static enum healcl_status describe(struct compare_command *self, struct healcl_error *error)
{
    struct comparison *comparison = &self->comparison;
    comparison->repeat = self->repeat;
    comparison->timeout_seconds = self->timeout;
    comparison->judges_times = self->judges_times;
    comparison->fail_slower = self->fail_slower;
    comparison->transcripts =
        comparison_alloc(comparison, self->file_count * sizeof *comparison->transcripts);
    if (!comparison->transcripts)
        NO_MEMORY(error);
    for (size_t i = 0; i < self->file_count; i++)
        TRY(compare_describe_file(comparison, self->files[i],
                                  &comparison->transcripts[comparison->transcript_count++], error));
    compare_describe_environment(comparison);
    comparison->command = compare_command_line(comparison, self->arguments, self->argument_count);
    compare_describe_host(comparison, host_memory());
    return comparison_status(comparison, error);
}

static enum healcl_status add_baselines(struct compare_command *self, struct healcl_error *error)
{
    for (size_t i = 0; i < self->baseline_count; i++) {
        size_t added;
        TRY(compare_read_baseline(&self->comparison, self->baselines[i], &added, error));
        if (added > 0)
            continue;
        progress_pause(&self->progress);
        print_notice("%s: warning: it has no run of the transcripts that are compared",
                     self->baselines[i]);
        progress_resume(&self->progress);
    }
    return HEALCL_OK;
}

static enum healcl_status compare(struct compare_command *self, struct healcl_error *error)
{
    TRY(describe(self, error));
    for (size_t i = 0; i < OUTPUT_COUNT; i++)
        TRY(report_file_open(&self->outputs[i], error));
    if (self->results)
        TRY(compare_make_results(self->results, error));
    TRY(add_devices(self, error));
    TRY(add_runs(self, error));
    size_t device_count = self->comparison.device_count;
    self->run_count = self->comparison.run_count;
    TRY(add_baselines(self, error)); /* one that is no good must not cost the runs */
    for (size_t i = 0; i < self->ranks_count; i++)
        TRY(compare_read_ranks(&self->comparison, self->ranks[i], error));
    enum healcl_status status = run_all(self, device_count, error);
    /* What was measured until then is not lost. */
    if (self->interrupted && comparison_end_early(&self->comparison) > 0)
        status = HEALCL_OK;
    if (status != HEALCL_OK)
        return status;
    compare_describe_end(&self->comparison);
    compare_conclude(&self->comparison);
    return comparison_status(&self->comparison, error);
}

static int print_all(struct compare_command *self)
{
    struct style style = style_of(stdout);
    bool on_stdout = false;
    int code = EXIT_VERIFIED;
    for (size_t i = 0; i < OUTPUT_COUNT; i++)
        on_stdout |= self->outputs[i].on_stdout;
    if (!on_stdout) /* no table but alone */
        code = printed(compare_print_table(&self->comparison, &style));
    for (size_t i = 0; i < OUTPUT_COUNT && code == EXIT_VERIFIED; i++) {
        FILE *stream = report_file_stream(&self->outputs[i]);
        if (stream)
            code = report_file_end(&self->outputs[i], printers[i](&self->comparison, stream), code,
                                   false);
    }
    return code;
}

/* Of a comparison that is whole. Returns an exit code. */
static int write_results(const struct compare_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    int code = EXIT_VERIFIED;
    if (self->results && !self->interrupted &&
        compare_write_results(&self->comparison, self->results, &error) != HEALCL_OK)
        code = print_error(NULL, &error, false);
    healcl_error_clear(&error);
    return code;
}

/* What is slower than allowed, and what could not be judged. */
static void tell_slowdowns(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->run_count; i++) {
        const struct compare_run *run = &comparison->runs[i];
        const struct compare_device *device = &comparison->devices[run->device];
        struct compare_slowdown slowdowns[SLOWDOWNS_MAX];
        const size_t count = compare_slowdowns_of(comparison, run, slowdowns);
        for (size_t j = 0; j < count; j++) {
            char text[SLOWDOWN_TEXT_SIZE];
            if (slowdowns[j].is_slower || slowdowns[j].reason)
                print_notice("%s: %s%s %s: %s", comparison->transcripts[run->transcript].file,
                             slowdowns[j].reason ? "warning: " : "", device->selector, device->name,
                             compare_slowdown_text(comparison, &slowdowns[j], text));
        }
    }
}

static int compare_and_tell(struct compare_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    progress_start_long(&self->progress);
    enum healcl_status status = comparison_init(&self->comparison, &error);
    if (status == HEALCL_OK)
        status = compare(self, &error);
    progress_end(&self->progress);
    int code = EXIT_VERIFIED;
    if (status == HEALCL_OK)
        code = print_all(self);
    else if (!self->interrupted)
        code = report_files_error(&self->outputs[OUTPUT_JSON], &self->outputs[OUTPUT_JUNIT], NULL,
                                  &error, false);
    if (status == HEALCL_OK && code == EXIT_VERIFIED)
        code = write_results(self);
    if (status == HEALCL_OK && code == EXIT_VERIFIED && !self->interrupted) {
        fflush(stdout); /* what follows stands below the table */
        tell_slowdowns(&self->comparison);
        code = exit_codes[compare_worst(&self->comparison)];
    }
    healcl_error_clear(&error);
    for (size_t i = 0; i < OUTPUT_COUNT; i++)
        report_file_discard(&self->outputs[i]);
    comparison_release(&self->comparison);
    code = finish_output(code);
    if (self->interrupted)
        raise(self->interrupted);
    return code;
}

/* ---------------------------------------------------------------- options */

static int take_device(const struct command *command, const struct command_option *option,
                       void *context, const char *text)
{
    struct compare_command *self = context;
    (void)option;
    if (self->selector_count == COMPARE_DEVICES_MAX)
        return usage_error(command, "more than %d devices", COMPARE_DEVICES_MAX);
    self->selectors[self->selector_count++] = text;
    return EXIT_VERIFIED;
}

static int take_baseline(const struct command *command, const struct command_option *option,
                         void *context, const char *text)
{
    struct compare_command *self = context;
    (void)option;
    if (self->baseline_count == BASELINES_MAX)
        return usage_error(command, "more than %d baselines", BASELINES_MAX);
    self->baselines[self->baseline_count++] = text;
    return EXIT_VERIFIED;
}

static int take_ranks(const struct command *command, const struct command_option *option,
                      void *context, const char *text)
{
    struct compare_command *self = context;
    (void)option;
    if (self->ranks_count == COMPARE_RANKS_MAX)
        return usage_error(command, "more than %d reports of ranks", COMPARE_RANKS_MAX);
    self->ranks[self->ranks_count++] = text;
    return EXIT_VERIFIED;
}

static int take_folder(const struct command *command, const struct command_option *option,
                       void *context, const char *text)
{
    struct compare_command *self = context;
    if (self->folder_count == FOLDERS_MAX)
        return usage_error(command, "more than %d folders of manifests", FOLDERS_MAX);
    self->folders[self->folder_count].option = is_trust(option) ? "--trust" : "--ops";
    self->folders[self->folder_count++].path = text;
    return take_operations(command, option, self, text);
}

static int take_kept(const struct command *command, const struct command_option *option,
                     void *context, const char *text)
{
    struct compare_command *self = context;
    (void)option;
    if (self->kept_count == KEPT_MAX)
        return usage_error(command, "more than %d segments to keep", KEPT_MAX);
    self->kept[self->kept_count++] = text;
    return EXIT_VERIFIED;
}

static int take_percent(const struct command *command, const struct command_option *option,
                        void *context, const char *text)
{
    struct compare_command *self = context;
    self->judges_times = true;
    return parse_decimal(text, &self->fail_slower)
               ? EXIT_VERIFIED
               : usage_error(command, "--%s takes a percentage such as 10, not '%s'", option->name,
                             text);
}

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, .take = take_device},
    {"repeat", 0, OPTION_COUNT, KEPT_IN(struct compare_command, repeat), .most = REPEAT_MAX},
    {"keep", 0, OPTION_WORD, .take = take_kept},
    {"timeout", 0, OPTION_SECONDS, KEPT_IN(struct compare_command, timeout), .most = TIMEOUT_MAX},
    {"baseline", 0, OPTION_FILE, .take = take_baseline},
    {"ranks", 0, OPTION_FILE, .take = take_ranks},
    {"fail-slower", 0, OPTION_WORD, .take = take_percent},
    {"no-measure", 0, OPTION_FLAG, KEPT_IN(struct compare_command, no_measure)},
    {"no-fallback", 0, OPTION_FLAG, KEPT_IN(struct compare_command, no_fallback)},
    {"ops", 0, OPTION_FOLDER, KEPT_IN(struct compare_command, operations), .take = take_folder},
    {"trust", 0, OPTION_FOLDER, KEPT_IN(struct compare_command, operations), .take = take_folder},
    {"check", 0, OPTION_FLAG, KEPT_IN(struct compare_command, check)},
    {"results", 0, OPTION_NEW_FOLDER, KEPT_IN(struct compare_command, results)},
    {"json", 0, OPTION_REPORT, KEPT_IN(struct compare_command, outputs[OUTPUT_JSON])},
    {"junit", 0, OPTION_REPORT, KEPT_IN(struct compare_command, outputs[OUTPUT_JUNIT])},
    {"csv", 0, OPTION_REPORT, KEPT_IN(struct compare_command, outputs[OUTPUT_CSV])},
    {"markdown", 0, OPTION_REPORT, KEPT_IN(struct compare_command, outputs[OUTPUT_MARKDOWN])},
    {"html", 0, OPTION_REPORT, KEPT_IN(struct compare_command, outputs[OUTPUT_HTML])},
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct compare_command self = {.timeout = TIMEOUT_DEFAULT};
    int code = take_arguments(command, argc, argv, &self);
    if (code != GOES_ON)
        return code;
    if (self.judges_times && self.baseline_count == 0)
        return usage_error(command, "--fail-slower compares with a --baseline, and none is named");
    if (self.repeat == 0)
        self.repeat = self.judges_times ? REPEAT_DEFAULT_JUDGED : REPEAT_DEFAULT;
    self.arguments = (const char *const *)argv;
    self.argument_count = (size_t)argc;
    self.files = argv + optind;
    self.file_count = (size_t)(argc - optind);
    return compare_and_tell(&self);
}

const struct command command_compare = {
    .name = "compare",
    .summary = "run transcripts on several devices, and compare results and times",
    .help =
        "Runs transcripts on several devices, one after the other, and tells which are right\n"
        "and how fast each is. Every run is a process of its own: a driver that crashes or\n"
        "hangs becomes a row that says so.\n"
        "\n"
        "Usage: healcl compare [OPTIONS] FILE...\n"
        "\n"
        "  -d, --device SEL   a device, as for healcl run, or 'reference': the host reference,\n"
        "                     slow and plain; may be repeated. Speed-ups are against the first.\n"
        "                     By default all devices that can be used, the best first\n"
        "      --repeat N     run N times in each process; 5 by default, 15 with --fail-slower\n"
        "      --keep SEGMENT in steady requests only uploads of this segment stay on the device;\n"
        "                     may be repeated; by default all but those of segments upload_ct...,\n"
        "                     or where there are none of the last segment that uploads\n"
        "      --timeout S    seconds that one process may take, 600 by default\n"
        "      --baseline FILE  a comparison saved by --json, maybe on another machine: its runs\n"
        "                     of the same transcripts stand beside today's; may be repeated\n"
        "      --ranks FILE   what healcl-mpi serve --json, or run, wrote: a row for each rank;\n"
        "                     may be repeated\n"
        "      --no-fallback  run with healcl run --no-fallback: what a device cannot run fails;\n"
        "                     otherwise the host runs that, and tables and pages say so\n"
        "      --ops DIR      take operations and kernels from the manifests of a folder, as\n"
        "                     healcl run --ops; may be repeated\n"
        "      --trust DIR    the same where its manifests may name sources elsewhere,\n"
        "                     and any options of compilers\n"
        "      --check        also check every kernel of each device, as healcl check --quick\n"
        "      --no-measure   do not measure how fast each device copies and multiplies, nor how\n"
        "                     long a process takes to its first result, cold and warm\n"
        "      --fail-slower PERCENT  exit with 5 where a run's compute, or a steady request, "
        "takes\n"
        "                     more than so much longer than the baseline's, and the whole\n"
        "                     interval (95 %, at least 7 of each) says so, in a second process "
        "too\n"
        "      --results DIR  write what each device did into DIR/VENDOR-DEVICE.json, for others "
        "to\n"
        "                     check (docs/COMPARE.md); healcl check adds to it\n"
        "      --html FILE|-  write a page with charts, which needs no other file\n"
        "      --markdown FILE|-  write tables for an issue or a pull request\n"
        "      --csv FILE|-   write a line for each run\n"
        "      --json FILE|-  write everything as JSON (docs/COMPARE.md)\n"
        "      --junit FILE|-  write a test case for each transcript and device as JUnit XML\n"
        "                     (docs/CI.md)\n"
        "  -h, --help         this text\n"
        "\n"
        "What is written to - goes to standard output, alone. Without a terminal, standard error\n"
        "gets a line of progress a minute. Interrupted, it writes what it has measured.\n"
        "\n"
        "Exit codes: 0 verified, or nothing to verify; else 1 a result differs; else 4 a device\n"
        "failed, crashed or timed out; else 3 a transcript is refused; else 5 slower than\n"
        "--fail-slower allows; 2 wrong usage.\n",
    .options = options,
    .operands = OPERANDS_FILES,
    .device = DEVICE_IN_CHILDREN,
    .run = run,
};
