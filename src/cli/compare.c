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
    REPEAT_MAX = 1000000,
    REPEAT_DEFAULT = 5,
    REPEAT_DEFAULT_JUDGED = 15, /* where times are judged by a baseline's */
    TIMEOUT_MAX = 1000000,      /* seconds */
    TIMEOUT_DEFAULT = 600,
    MEASURE_TIMEOUT = 60, /* seconds; a slow device is left without these figures */
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

enum { FOLDERS_MAX = 8 };

/* One `healcl compare`. */
struct session {
    const char *selectors[COMPARE_DEVICES_MAX], *baselines[BASELINES_MAX];
    size_t selector_count, baseline_count;
    struct {
        const char *option, *path;
    } folders[FOLDERS_MAX]; /* of manifests, for runs: "--ops" or "--trust" */
    size_t folder_count;
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

enum { ARGUMENTS_MAX = 16 + 2 * FOLDERS_MAX };

static const char json_for_us[] = "--json=" PROCESS_FILE;

/* Runs healcl with arguments, which end with NULL. HEALCL_DEVICE where we are interrupted. */
MUST_CHECK static enum healcl_status run_child(struct session *session,
                                               const char *const *arguments, uint32_t timeout,
                                               struct process_result *result,
                                               struct healcl_error *error)
{
    enum healcl_status status = process_run(arguments, timeout, result, error);
    if (status == HEALCL_OK && result->end == PROCESS_INTERRUPTED) {
        session->interrupted = result->code;
        status = ERROR(error, HEALCL_DEVICE, "interrupted");
    }
    if (status != HEALCL_OK)
        process_result_release(result);
    return status;
}

/* ---------------------------------------------------------------- devices */

MUST_CHECK static enum healcl_status add_reference(struct session *session,
                                                   struct healcl_error *error)
{
    struct compare_device *device;
    TRY(comparison_add_device(&session->comparison, &device, error));
    device->selector = COMPARE_REFERENCE;
    device->name = "host reference";
    device->type = "host";
    device->platform = "healcl";
    device->driver = session->comparison.origin.healcl;
    device->version = healcl_compiler;
    return HEALCL_OK;
}

/* What `healcl devices` says. With selector, the device that it names is the default. */
MUST_CHECK static enum healcl_status ask_for_devices(struct session *session, const char *selector,
                                                     struct process_result *result,
                                                     struct healcl_error *error)
{
    const char *arguments[] = {"healcl", "devices", json_for_us, "--no-self-test",
                               NULL,     NULL,      NULL};
    if (selector) {
        arguments[4] = "-d";
        arguments[5] = selector;
    }
    progress_say(&session->progress, "looking for %s", selector ? selector : "devices");
    return run_child(session, arguments, session->timeout, result, error);
}

/* The device that selector names. Where even asking for it kills the child it is added by its
 * selector alone, and its runs will tell. */
MUST_CHECK static enum healcl_status add_selected(struct session *session, const char *selector,
                                                  struct healcl_error *error)
{
    struct comparison *comparison = &session->comparison;
    struct process_result result;
    TRY(ask_for_devices(session, selector, &result, error));
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

MUST_CHECK static enum healcl_status add_all_usable(struct session *session,
                                                    struct healcl_error *error)
{
    struct process_result result;
    TRY(ask_for_devices(session, NULL, &result, error));
    enum healcl_status status =
        compare_read_devices(&session->comparison, result.text, false, error);
    bool none = status == HEALCL_OK && session->comparison.device_count == 0;
    if (none && result.end == PROCESS_EXITED)
        status = ERROR(error, HEALCL_DEVICE, "%.600s",
                       *result.last_line ? last_words(&result) : "no device can be used");
    else if (none)
        status = ERROR(error, HEALCL_DEVICE, "listing the devices %s; name one with --device",
                       result.end == PROCESS_KILLED ? "crashed" : "took too long");
    process_result_release(&result);
    return status;
}

MUST_CHECK static enum healcl_status add_devices(struct session *session,
                                                 struct healcl_error *error)
{
    if (session->selector_count == 0)
        return add_all_usable(session, error);
    for (size_t i = 0; i < session->selector_count; i++) {
        const char *selector = session->selectors[i];
        if (strcmp(selector, COMPARE_REFERENCE) == 0)
            TRY(add_reference(session, error));
        else
            TRY(add_selected(session, selector, error));
    }
    return HEALCL_OK;
}

/* How fast a device copies and multiplies; unknown where that fails. */
MUST_CHECK static enum healcl_status measure(struct session *session, struct compare_device *device,
                                             struct healcl_error *error)
{
    const char *const arguments[] = {"healcl", "devices",        json_for_us, "--measure",
                                     "-d",     device->selector, NULL};
    if (session->no_measure || strcmp(device->selector, COMPARE_REFERENCE) == 0)
        return HEALCL_OK;
    uint32_t timeout = session->timeout < MEASURE_TIMEOUT ? session->timeout : MEASURE_TIMEOUT;
    struct process_result result;
    progress_say(&session->progress, "measuring %s", device->selector);
    TRY(run_child(session, arguments, timeout, &result, error));
    compare_read_rates(&session->comparison, device, result.text);
    process_result_release(&result);
    return comparison_status(&session->comparison, error);
}

MUST_CHECK static enum healcl_status check(struct session *session, struct compare_device *device,
                                           struct healcl_error *error)
{
    const char *const arguments[] = {"healcl", "check",          "--quick", json_for_us,
                                     "-d",     device->selector, NULL};
    if (!session->check || strcmp(device->selector, COMPARE_REFERENCE) == 0)
        return HEALCL_OK;
    struct process_result result;
    progress_say(&session->progress, "checking %s", device->selector);
    TRY(run_child(session, arguments, session->timeout, &result, error));
    enum healcl_status status = compare_read_check(&session->comparison, device, &result, error);
    device->check.quick = true;
    process_result_release(&result);
    return status;
}

/* ---------------------------------------------------------------- runs */

/* "healcl run" of a transcript on a device, so often. command: where that is told for people,
 * without what only we want; may be NULL. */
MUST_CHECK static enum healcl_status run_file(struct session *session, const char *selector,
                                              size_t transcript, uint32_t repeat,
                                              const char **command, struct process_result *result,
                                              struct healcl_error *error)
{
    const char *arguments[ARGUMENTS_MAX] = {"healcl", "run"};
    const char *file = session->files[transcript];
    size_t count = 2;
    char times[16];
    snprintf(times, sizeof times, "%" PRIu32, repeat);
    if (strcmp(selector, COMPARE_REFERENCE) == 0) {
        arguments[count++] = "--reference";
    } else {
        arguments[count++] = "-d";
        arguments[count++] = selector;
    }
    if (session->no_fallback)
        arguments[count++] = "--no-fallback";
    for (size_t i = 0; i < session->folder_count; i++) {
        arguments[count++] = session->folders[i].option;
        arguments[count++] = session->folders[i].path;
    }
    arguments[count++] = "--repeat";
    arguments[count++] = times;
    arguments[count] = file;
    if (command)
        *command = compare_command_line(&session->comparison, arguments + 1, count);
    arguments[count++] = "--quiet";
    arguments[count++] = json_for_us;
    arguments[count++] = "--";
    arguments[count] = file;
    return run_child(session, arguments, session->timeout, result, error);
}

MUST_CHECK static enum healcl_status run_once(struct session *session,
                                              const struct compare_run *run,
                                              struct compare_first *first,
                                              struct healcl_error *error)
{
    const char *selector = session->comparison.devices[run->device].selector;
    struct process_result result;
    TRY(run_file(session, selector, run->transcript, 1, NULL, &result, error));
    compare_read_first(&session->comparison, first, &result);
    process_result_release(&result);
    return comparison_status(&session->comparison, error);
}

/* The same, by a process that keeps all binaries. */
MUST_CHECK static enum healcl_status run_and_keep(struct session *session,
                                                  const struct compare_run *run,
                                                  struct compare_first *first,
                                                  struct healcl_error *error)
{
    static const char keep[] = "HEALCL_KEEP_BINARIES";
    bool ours = !getenv(keep) && setenv(keep, "1", 1) == 0;
    enum healcl_status status = run_once(session, run, first, error);
    if (ours)
        (void)unsetenv(keep);
    return status;
}

/* How long a process takes to its first result, with empty caches and once more. A driver whose
 * second build takes more than half as long keeps nothing itself, and healcl keeps its binaries
 * once that has cost enough: to measure that, one more process keeps them at once. */
MUST_CHECK static enum healcl_status run_cold_and_warm(struct session *session,
                                                       struct compare_run *run,
                                                       struct healcl_error *error)
{
    struct compare_first kept;
    bool *keeps = &session->keep_binaries[run->device];
    TRY(*keeps ? run_and_keep(session, run, &run->cold, error)
               : run_once(session, run, &run->cold, error));
    if (run->cold.nanoseconds > 0)
        TRY(run_once(session, run, &run->warm, error));
    if (*keeps || 2 * run->warm.compile_nanoseconds <= run->cold.compile_nanoseconds)
        return HEALCL_OK;
    *keeps = true;
    TRY(run_and_keep(session, run, &kept, error));
    return run_once(session, run, &run->warm, error);
}

/* What `healcl tune` has kept goes along: it is no cache. */
MUST_CHECK static enum healcl_status time_first_results(struct session *session,
                                                        struct compare_run *run,
                                                        struct healcl_error *error)
{
    const struct compare_device *device = &session->comparison.devices[run->device];
    struct fresh_caches caches;
    bool tuned = device->tuned && !getenv("HEALCL_TUNING");
    if (session->no_measure || !compare_is_right(run) || !fresh_caches_begin(&caches))
        return HEALCL_OK;
    if (tuned)
        (void)setenv("HEALCL_TUNING", device->tuning, 1);
    progress_say(&session->progress, "%zu of %zu: %s: %s, first result",
                 (size_t)(run - session->comparison.runs) + 1, session->run_count, device->selector,
                 session->files[run->transcript]);
    enum healcl_status status = run_cold_and_warm(session, run, error);
    if (tuned)
        (void)unsetenv("HEALCL_TUNING");
    fresh_caches_end(&caches);
    return status;
}

MUST_CHECK static enum healcl_status run_one(struct session *session, struct compare_run *run,
                                             struct healcl_error *error)
{
    struct comparison *comparison = &session->comparison;
    const char *selector = comparison->devices[run->device].selector;
    const uint64_t begin = monotonic_nanoseconds();
    struct process_result result;
    progress_say(&session->progress, "%zu of %zu: %s: %s", (size_t)(run - comparison->runs) + 1,
                 session->run_count, selector, session->files[run->transcript]);
    TRY(run_file(session, selector, run->transcript, session->repeat, &run->command, &result,
                 error));
    enum healcl_status status = compare_read_run(comparison, run, &result, error);
    process_result_release(&result);
    run->taken_nanoseconds = monotonic_nanoseconds() - begin;
    if (status == HEALCL_OK)
        status = time_first_results(session, run, error);
    run->taken_nanoseconds = monotonic_nanoseconds() - begin;
    if (comparison_left(comparison) > 0)
        progress_estimate(&session->progress, comparison_left(comparison));
    return status;
}

/* Asks the host reference, where results differ and it is not among the devices. */
MUST_CHECK static enum healcl_status judge(struct session *session, size_t transcript,
                                           struct healcl_error *error)
{
    struct compare_run *run;
    TRY(comparison_add_judge(&session->comparison, transcript, &run, error));
    if (!run)
        return HEALCL_OK;
    struct process_result result;
    progress_say(&session->progress, "host reference: %s, which differs",
                 session->files[transcript]);
    TRY(run_file(session, COMPARE_REFERENCE, transcript, 1, NULL, &result, error));
    enum healcl_status status = compare_read_run(&session->comparison, run, &result, error);
    process_result_release(&result);
    return status;
}

/* Runs that are to come, of all devices that are there. */
MUST_CHECK static enum healcl_status add_runs(struct session *session, struct healcl_error *error)
{
    struct comparison *comparison = &session->comparison;
    struct compare_run *run;
    for (size_t i = 0; i < comparison->transcript_count; i++)
        for (size_t j = 0; j < comparison->device_count; j++)
            TRY(comparison_add_run(comparison, i, j, &run, error));
    return HEALCL_OK;
}

/* How a process fares as a whole, in memory and on a busy machine, moves all of its times: what is
 * slower must be so in another process, which then counts. */
MUST_CHECK static enum healcl_status run_slower_again(struct session *session,
                                                      struct healcl_error *error)
{
    for (size_t i = 0; i < session->run_count; i++) {
        struct compare_run *run = &session->comparison.runs[i];
        if (!compare_is_slower(&session->comparison, run))
            continue;
        comparison_reset_run(run);
        TRY(run_one(session, run, error));
    }
    return HEALCL_OK;
}

/* The first ones: those behind them are baselines'. */
MUST_CHECK static enum healcl_status run_all(struct session *session, size_t device_count,
                                             struct healcl_error *error)
{
    struct comparison *comparison = &session->comparison;
    for (size_t i = 0; i < device_count; i++) {
        TRY(measure(session, &comparison->devices[i], error));
        TRY(check(session, &comparison->devices[i], error));
    }
    for (size_t i = 0; i < session->run_count; i++)
        TRY(run_one(session, &comparison->runs[i], error));
    TRY(run_slower_again(session, error));
    for (size_t i = 0; i < comparison->transcript_count; i++)
        TRY(judge(session, i, error));
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- the whole */

MUST_CHECK static enum healcl_status describe(struct session *session, struct healcl_error *error)
{
    struct comparison *comparison = &session->comparison;
    comparison->repeat = session->repeat;
    comparison->timeout_seconds = session->timeout;
    comparison->judges_times = session->judges_times;
    comparison->fail_slower = session->fail_slower;
    comparison->transcripts =
        comparison_alloc(comparison, session->file_count * sizeof *comparison->transcripts);
    if (!comparison->transcripts)
        NO_MEMORY(error);
    for (size_t i = 0; i < session->file_count; i++)
        TRY(compare_describe_file(comparison, session->files[i],
                                  &comparison->transcripts[comparison->transcript_count++], error));
    compare_describe_environment(comparison);
    comparison->command =
        compare_command_line(comparison, session->arguments, session->argument_count);
    compare_describe_host(comparison, host_memory());
    return comparison_status(comparison, error);
}

MUST_CHECK static enum healcl_status add_baselines(struct session *session,
                                                   struct healcl_error *error)
{
    for (size_t i = 0; i < session->baseline_count; i++) {
        size_t added;
        TRY(compare_read_baseline(&session->comparison, session->baselines[i], &added, error));
        if (added > 0)
            continue;
        progress_pause(&session->progress);
        print_notice("%s: warning: it has no run of the transcripts that are compared",
                     session->baselines[i]);
        progress_resume(&session->progress);
    }
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status compare(struct session *session, struct healcl_error *error)
{
    TRY(describe(session, error));
    for (size_t i = 0; i < OUTPUT_COUNT; i++)
        TRY(report_file_open(&session->outputs[i], error));
    if (session->results)
        TRY(compare_make_results(session->results, error));
    TRY(add_devices(session, error));
    TRY(add_runs(session, error));
    size_t device_count = session->comparison.device_count;
    session->run_count = session->comparison.run_count;
    TRY(add_baselines(session, error)); /* one that is no good must not cost the runs */
    enum healcl_status status = run_all(session, device_count, error);
    /* What was measured until then is not lost. */
    if (session->interrupted && comparison_end_early(&session->comparison) > 0)
        status = HEALCL_OK;
    if (status != HEALCL_OK)
        return status;
    compare_describe_end(&session->comparison);
    compare_conclude(&session->comparison);
    return comparison_status(&session->comparison, error);
}

static int print_all(struct session *session)
{
    struct style style = style_of(stdout);
    bool on_stdout = false;
    int code = EXIT_VERIFIED;
    for (size_t i = 0; i < OUTPUT_COUNT; i++)
        on_stdout |= session->outputs[i].on_stdout;
    if (!on_stdout) /* no table but alone */
        code = printed(compare_print_table(&session->comparison, &style));
    for (size_t i = 0; i < OUTPUT_COUNT && code == EXIT_VERIFIED; i++) {
        FILE *stream = report_file_stream(&session->outputs[i]);
        if (stream)
            code = report_file_end(&session->outputs[i], printers[i](&session->comparison, stream),
                                   false);
    }
    return code;
}

/* Of a comparison that is whole. Returns an exit code. */
static int write_results(const struct session *session)
{
    struct healcl_error error = {.status = HEALCL_OK};
    int code = EXIT_VERIFIED;
    if (session->results && !session->interrupted &&
        compare_write_results(&session->comparison, session->results, &error) != HEALCL_OK)
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
        struct compare_slowdown slowdowns[COMPARE_DEVICES_MAX];
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

static int compare_and_tell(struct session *session)
{
    struct healcl_error error = {.status = HEALCL_OK};
    progress_start_long(&session->progress);
    enum healcl_status status = comparison_init(&session->comparison, &error);
    if (status == HEALCL_OK)
        status = compare(session, &error);
    progress_end(&session->progress);
    int code = EXIT_VERIFIED;
    if (status == HEALCL_OK)
        code = print_all(session);
    else if (!session->interrupted)
        code = report_files_error(&session->outputs[OUTPUT_JSON], &session->outputs[OUTPUT_JUNIT],
                                  NULL, &error, false);
    if (status == HEALCL_OK && code == EXIT_VERIFIED)
        code = write_results(session);
    if (status == HEALCL_OK && code == EXIT_VERIFIED && !session->interrupted) {
        fflush(stdout); /* what follows stands below the table */
        tell_slowdowns(&session->comparison);
        code = exit_codes[compare_worst(&session->comparison)];
    }
    healcl_error_clear(&error);
    for (size_t i = 0; i < OUTPUT_COUNT; i++)
        report_file_discard(&session->outputs[i]);
    comparison_release(&session->comparison);
    code = finish_output(code);
    if (session->interrupted)
        raise(session->interrupted);
    return code;
}

/* ---------------------------------------------------------------- options */

static int take_device(const struct command *command, const struct command_option *option,
                       void *context, const char *text)
{
    struct session *session = context;
    (void)option;
    if (session->selector_count == COMPARE_DEVICES_MAX)
        return usage_error(command, "more than %d devices", COMPARE_DEVICES_MAX);
    session->selectors[session->selector_count++] = text;
    return EXIT_VERIFIED;
}

static int take_baseline(const struct command *command, const struct command_option *option,
                         void *context, const char *text)
{
    struct session *session = context;
    (void)option;
    if (session->baseline_count == BASELINES_MAX)
        return usage_error(command, "more than %d baselines", BASELINES_MAX);
    session->baselines[session->baseline_count++] = text;
    return EXIT_VERIFIED;
}

static int take_folder(const struct command *command, const struct command_option *option,
                       void *context, const char *text)
{
    struct session *session = context;
    if (session->folder_count == FOLDERS_MAX)
        return usage_error(command, "more than %d folders of manifests", FOLDERS_MAX);
    session->folders[session->folder_count].option = is_trust(option) ? "--trust" : "--ops";
    session->folders[session->folder_count++].path = text;
    return take_operations(command, option, session, text);
}

static int take_percent(const struct command *command, const struct command_option *option,
                        void *context, const char *text)
{
    struct session *session = context;
    session->judges_times = true;
    return parse_percent(text, &session->fail_slower)
               ? EXIT_VERIFIED
               : usage_error(command, "--%s takes a percentage such as 10, not '%s'", option->name,
                             text);
}

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, .take = take_device},
    {"repeat", 0, OPTION_COUNT, KEPT_IN(repeat), .most = REPEAT_MAX},
    {"timeout", 0, OPTION_SECONDS, KEPT_IN(timeout), .most = TIMEOUT_MAX},
    {"baseline", 0, OPTION_FILE, .take = take_baseline},
    {"fail-slower", 0, OPTION_WORD, .take = take_percent},
    {"no-measure", 0, OPTION_FLAG, KEPT_IN(no_measure)},
    {"no-fallback", 0, OPTION_FLAG, KEPT_IN(no_fallback)},
    {"ops", 0, OPTION_FOLDER, KEPT_IN(operations), .take = take_folder},
    {"trust", 0, OPTION_FOLDER, KEPT_IN(operations), .take = take_folder},
    {"check", 0, OPTION_FLAG, KEPT_IN(check)},
    {"results", 0, OPTION_FOLDER, KEPT_IN(results)},
    {"json", 0, OPTION_REPORT, KEPT_IN(outputs[OUTPUT_JSON])},
    {"junit", 0, OPTION_REPORT, KEPT_IN(outputs[OUTPUT_JUNIT])},
    {"csv", 0, OPTION_REPORT, KEPT_IN(outputs[OUTPUT_CSV])},
    {"markdown", 0, OPTION_REPORT, KEPT_IN(outputs[OUTPUT_MARKDOWN])},
    {"html", 0, OPTION_REPORT, KEPT_IN(outputs[OUTPUT_HTML])},
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct session session = {.timeout = TIMEOUT_DEFAULT};
    int code = take_arguments(command, argc, argv, &session);
    if (code != GOES_ON)
        return code;
    if (session.judges_times && session.baseline_count == 0)
        return usage_error(command, "--fail-slower compares with a --baseline, and none is named");
    if (session.repeat == 0)
        session.repeat = session.judges_times ? REPEAT_DEFAULT_JUDGED : REPEAT_DEFAULT;
    session.arguments = (const char *const *)argv;
    session.argument_count = (size_t)argc;
    session.files = argv + optind;
    session.file_count = (size_t)(argc - optind);
    return compare_and_tell(&session);
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
        "      --timeout S    seconds that one process may take, 600 by default\n"
        "      --baseline FILE  a comparison saved by --json, maybe on another machine: its runs\n"
        "                     of the same transcripts stand beside today's; may be repeated\n"
        "      --no-fallback  run with healcl run --no-fallback: what a device cannot run fails;\n"
        "                     otherwise the host runs that, and tables and pages say so\n"
        "      --ops DIR      take operations and kernels from the manifests of a folder, as\n"
        "                     healcl run --ops; may be repeated\n"
        "      --trust DIR    the same where its manifests may name sources elsewhere,\n"
        "                     and any options of compilers\n"
        "      --check        also check every kernel of each device, as healcl check --quick\n"
        "      --no-measure   do not measure how fast each device copies and multiplies, nor how\n"
        "                     long a process takes to its first result, cold and warm\n"
        "      --fail-slower PERCENT  exit with 5 where a run takes more than so much longer than\n"
        "                     the baseline's, and the whole interval (95 %, at least 7 runs of\n"
        "                     each) says so, in a second process too\n"
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
    .run = run,
};
