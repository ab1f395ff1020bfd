/* healcl run */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/compile_ahead.h"
#include "cli/progress.h"
#include "cli/report_file.h"
#include "cli/requests.h"
#include "core/new_file.h"
#include "core/process.h"
#include "device/self_test.h"
#include "plan/transcript.h"
#include "report/junit.h"
#include "report/text.h"
#include "run/run.h"

enum {
    REPEAT_MAX = 1000000,
    DIFFERENCES_KEPT = 10000, /* lines for the JSON */
};

/* One `healcl run`. */
struct session {
    const char *selector, *trace_path, *dump_dir, *package;
    struct report_file json, junit;
    bool reference, no_fallback, no_warm_up, quiet, verbose;
    uint32_t repeat, requests, batch; /* requests 0: it is verified, once or repeat times */
    double audit;                     /* percent; 0: none */
    uint32_t audit_seed;
    const char *case_path;
    struct new_file case_file;
    struct live_inputs live;
    struct request_facts served;
    struct healcl_limits limits;
    uint64_t device_memory_bytes; /* 0: no limit */ /* memory_bytes 0: by the device */
    struct new_file trace_file;
    struct trace *trace; /* NULL without trace_path */
    uint64_t start;      /* of the command */

    int compiling; /* the process of compile_ahead_start, or 0 */
    struct progress progress;
    char repetition[48];                /* what runs now, e.g. "run 2 of 5, " */
    uint32_t repetitions;               /* that have begun, those of all phases */
    size_t segment;                     /* that runs now */
    bool differs;                       /* a difference was told */
    struct run_difference *differences; /* facts.difference_count of them */

    struct device_info info; /* of the device that was chosen */
    struct device_tuning tuning;
    struct healcl_device *device;
    struct healcl_transcript *transcript;
    struct healcl_report *report;
    struct run_facts facts; /* what is known until now */
};

/* Text for people; standard output, unless that is to be a report. */
static FILE *text_stream(const struct session *session)
{
    return session->json.on_stdout || session->junit.on_stdout ? stderr : stdout;
}

/* ---------------------------------------------------------------- what a run tells */

static void on_difference(void *context, const char *line)
{
    struct session *session = context;
    session->differs = true;
    char *clean = strdup(line);
    if (!clean)
        return;
    text_clean(clean, false);
    progress_pause(&session->progress);
    fprintf(text_stream(session), "%s\n", clean);
    fflush(text_stream(session));
    progress_resume(&session->progress);
    if (session->differences && session->facts.difference_count < DIFFERENCES_KEPT)
        session->differences[session->facts.difference_count++] =
            (struct run_difference){clean, session->segment};
    else
        free(clean);
}

static void on_warning(void *context, const char *line)
{
    struct session *session = context;
    if (session->quiet)
        return;
    progress_pause(&session->progress);
    print_notice("%s: warning: %s", session->facts.file, line);
    progress_resume(&session->progress);
}

static void stop_compiling(struct session *session)
{
    process_stop(session->compiling);
    session->compiling = 0;
    if (session->device)
        session->device->ahead.board = NULL;
}

/* Once a repetition has been verified: all is compiled, and what is timed runs alone. */
static void note_first_result(struct session *session)
{
    stop_compiling(session);
    if (session->facts.first_result_nanoseconds == 0)
        session->facts.first_result_nanoseconds = monotonic_nanoseconds() - session->start;
}

static void on_repetition(void *context, enum healcl_phase phase, uint32_t number, uint32_t count)
{
    struct session *session = context;
    if (session->repetitions++ > 0)
        note_first_result(session);
    char *text = session->repetition;
    size_t size = sizeof session->repetition;
    switch (phase) {
    case HEALCL_WARMING_UP: snprintf(text, size, "compiling, "); break;
    case HEALCL_PROFILING: snprintf(text, size, "timing operations, "); break;
    case HEALCL_MEASURING:
        if (count > 1)
            snprintf(text, size, "run %" PRIu32 " of %" PRIu32 ", ", number, count);
        else
            *text = 0;
        break;
    }
}

static void on_progress(void *context, size_t segment, size_t segment_count, const char *name,
                        size_t step, size_t step_count)
{
    struct session *session = context;
    session->segment = segment;
    char share[16] = "";
    if (step > 0 && step_count > 0)
        snprintf(share, sizeof share, ", %u %%", (unsigned)(step * 100 / step_count));
    progress_say(&session->progress, "%ssegment %zu of %zu: %s%s", session->repetition, segment + 1,
                 segment_count, *name ? name : "(no segment)", share);
}

/* Whether anybody sees what a run takes. */
static bool shows_times(const struct session *session)
{
    return !session->quiet || session->json.path || session->trace_path;
}

/* ---------------------------------------------------------------- opening */

MUST_CHECK static enum healcl_status choose_device(struct session *session,
                                                   struct healcl_error *error)
{
    struct device_info *list;
    size_t count, index;
    uint64_t begin = monotonic_nanoseconds();
    size_t span = trace_begin(session->trace, "start-up", "find devices");
    enum healcl_status status = device_list(&opencl_loader, &list, &count, error);
    trace_end(session->trace, span);
    TRY(status);
    if (session->package)
        device_allow_packaged(list, count);
    status = device_select(list, count, session->selector, &index, error);
    if (status == HEALCL_OK)
        session->info = list[index];
    free(list);
    session->facts.open_device_nanoseconds = monotonic_nanoseconds() - begin;
    return status;
}

static void announce_reading(struct session *session)
{
    struct stat about;
    char text[UNIT_TEXT_SIZE];
    if (stat(session->facts.file, &about) == 0 && S_ISREG(about.st_mode))
        progress_say(&session->progress, "reading %s (%s)", session->facts.file,
                     text_bytes((uint64_t)about.st_size, text));
}

/* The limit is what the memory can hold that the tensors will lie in, where that is known well:
 * what a device says of its own is only a hint. */
MUST_CHECK static enum healcl_status open_transcript(struct session *session, bool host_memory_only,
                                                     struct healcl_error *error)
{
    struct healcl_limits limits = session->limits;
    if (limits.memory_bytes == 0 && host_memory_only)
        limits.memory_bytes = host_memory();
    announce_reading(session);
    uint64_t begin = monotonic_nanoseconds();
    size_t span = trace_begin(session->trace, "start-up", "read and plan");
    enum healcl_status status =
        healcl_transcript_open(session->facts.file, &limits, &session->transcript, error);
    trace_end(session->trace, span);
    session->facts.open_transcript_nanoseconds = monotonic_nanoseconds() - begin;
    return status;
}

static void warn_of_memory(struct session *session)
{
    uint64_t needed = session->transcript->plan->bytes_peak;
    char need[UNIT_TEXT_SIZE], have[UNIT_TEXT_SIZE], line[128];
    if (session->info.unified_memory || needed <= session->info.global_memory_bytes)
        return;
    snprintf(line, sizeof line, "the tensors take %s, and the device says that it has %s",
             text_bytes(needed, need), text_bytes(session->info.global_memory_bytes, have));
    on_warning(session, line);
}

/* Whether the file alone says how it is planned and run. */
static bool has_default_plan(const struct session *session)
{
    const struct healcl_limits *limits = &session->limits;
    return !limits->operations && !limits->passes && limits->expand == HEALCL_EXPAND_VALID &&
           session->device_memory_bytes == 0;
}

MUST_CHECK static enum healcl_status open_device(struct session *session,
                                                 struct healcl_error *error)
{
    char selector[24];
    progress_say(&session->progress, "opening %s", session->info.name);
    snprintf(selector, sizeof selector, "%u:%u", session->info.platform_index,
             session->info.device_index);
    uint64_t begin = monotonic_nanoseconds();
    size_t span = trace_begin(session->trace, "start-up", "open the device");
    const struct healcl_device_options options = {
        .selector = selector, .package = session->package, .no_fallback = session->no_fallback};
    struct device_opening opening = {.trace = session->trace};
    if (session->requests == 0 && !session->package && has_default_plan(session))
        session->compiling =
            compile_ahead_start(&session->info, session->facts.file, &opening.board);
    enum healcl_status status =
        device_open_for_run(&opencl_loader, &options, &opening, &session->device, error);
    trace_end(session->trace, span);
    TRY(status);
    session->facts.open_device_nanoseconds += monotonic_nanoseconds() - begin;
    session->facts.self_test_nanoseconds = session->device->self_test_nanoseconds;
    session->tuning = session->device->tuning;
    warn_of_memory(session);
    return status;
}

/* A transcript that is refused is refused with or without a device: its error goes first. */
MUST_CHECK static enum healcl_status open_all(struct session *session, struct healcl_error *error)
{
    if (session->reference)
        return open_transcript(session, true, error);
    struct healcl_error device_error = {.status = HEALCL_OK};
    enum healcl_status chosen = choose_device(session, &device_error);
    enum healcl_status status =
        open_transcript(session, chosen != HEALCL_OK || session->info.unified_memory, error);
    if (status == HEALCL_OK && chosen != HEALCL_OK) {
        healcl_error_clear(error);
        *error = device_error;
        return chosen;
    }
    healcl_error_clear(&device_error);
    return status == HEALCL_OK ? open_device(session, error) : status;
}

static void on_request(void *context, uint32_t number)
{
    struct session *session = context;
    progress_say(&session->progress, "request %" PRIu32 " of %" PRIu32, number, session->requests);
}

static void warn_of_batch(struct session *session)
{
    const size_t batch = session->served.batches.batch;
    char line[128];
    if (session->batch == 0 || batch == session->batch)
        return;
    snprintf(line, sizeof line,
             "%" PRIu32 " requests together do not fit into memory: batches are of %zu",
             session->batch, batch);
    on_warning(session, line);
}

MUST_CHECK static enum healcl_status serve(struct session *session, struct healcl_error *error)
{
    session->served = (struct request_facts){
        .file = session->facts.file,
        .device = session->reference ? NULL : &session->info,
        .no_verify = session->facts.no_verify,
        .count = session->requests,
        .batch = session->batch,
        .audit = {.share = session->audit / 100, .seed = session->audit_seed}};
    TRY(requests_run(session->transcript, session->device, &session->live, on_request, session,
                     &session->served, error));
    warn_of_batch(session);
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status run_session(struct session *session,
                                                 struct healcl_error *error)
{
    TRY(report_file_open(&session->json, error));
    TRY(report_file_open(&session->junit, error));
    if (session->trace_path) {
        TRY(new_file_open(&session->trace_file, session->trace_path, error));
        session->trace = trace_create(TRACE_SPANS_MAX);
        if (!session->trace)
            NO_MEMORY(error);
    }
    if (session->case_path)
        TRY(new_file_open(&session->case_file, session->case_path, error));
    TRY(open_all(session, error));
    TRY(live_inputs_read(&session->live, session->transcript, error));
    if (session->requests > 0)
        return serve(session, error);
    struct healcl_run_options options = {
        .inputs = session->live.inputs,
        .input_count = session->live.count,
        .no_verify = session->facts.no_verify,
        .no_warm_up = session->no_warm_up || !shows_times(session),
        .profile = session->json.path || session->trace_path || session->verbose,
        .repeat = session->repeat,
        .dump_dir = session->dump_dir,
        .observer = {.context = session,
                     .repetition = on_repetition,
                     .difference = on_difference,
                     .warning = on_warning,
                     .progress = on_progress},
        .device_memory_bytes = session->device_memory_bytes,
    };
    size_t span = trace_begin(session->trace, "run", "run");
    enum healcl_status status = healcl_run_traced(session->transcript, session->device, &options,
                                                  session->trace, &session->report, error);
    trace_end(session->trace, span);
    note_first_result(session);
    return status;
}

/* ---------------------------------------------------------------- telling the end */

/* Of a run that came to its end. */
static void complete_facts(struct session *session)
{
    struct run_facts *facts = &session->facts;
    facts->plan = session->transcript->plan;
    facts->device = session->reference ? NULL : &session->info;
    facts->tuning = session->reference ? NULL : &session->tuning;
    facts->report = session->report;
    if (!session->reference)
        (void)roofline_read_kept(&session->info, &session->tuning, &facts->roofline);
    facts->differences = session->differences;
}

/* The JSON, and the JUnit XML. */
static int write_reports(struct session *session)
{
    struct run_facts *facts = &session->facts;
    int code = EXIT_VERIFIED, junit_code = EXIT_VERIFIED;
    facts->total_nanoseconds = monotonic_nanoseconds() - session->start;
    FILE *stream = report_file_stream(&session->json);
    if (stream)
        code = report_file_end(&session->json, report_run_json(facts, stream), session->verbose);
    stream = report_file_stream(&session->junit);
    if (stream)
        junit_code =
            report_file_end(&session->junit, report_run_junit(facts, stream), session->verbose);
    return code == EXIT_VERIFIED ? junit_code : code;
}

/* Also of a run that failed: what it did until then. */
static int write_trace(struct session *session)
{
    struct trace *trace = session->trace;
    if (!trace)
        return EXIT_VERIFIED;
    trace_finish(trace);
    report_trace(session->facts.file, session->reference ? "reference" : session->info.name,
                 session->info.driver, trace, session->trace_file.stream);
    if (trace->dropped > 0 && !session->quiet)
        print_notice("%s: warning: the trace leaves out %" PRIu64
                     " spans, those after the first %zu",
                     session->facts.file, trace->dropped, trace->count);
    struct healcl_error error = {.status = HEALCL_OK};
    if (new_file_commit(&session->trace_file, &error) == HEALCL_OK)
        return EXIT_VERIFIED;
    int code = print_error(NULL, &error, session->verbose);
    healcl_error_clear(&error);
    return code;
}

static int finish_failed(struct session *session, const struct healcl_error *error)
{
    int code = report_files_error(&session->json, &session->junit, session->facts.file, error,
                                  session->verbose);
    (void)write_trace(session);
    return finish_output(code);
}

static int finish_run(struct session *session)
{
    complete_facts(session);
    struct style style = style_of(text_stream(session));
    int printing = EXIT_VERIFIED;
    if (!session->quiet && text_stream(session) == stdout) {
        if (session->differs)
            putc('\n', stdout);
        printing = printed(report_run(&session->facts, &style, session->verbose));
    }
    int report_code = write_reports(session);
    printing = printing == EXIT_VERIFIED ? report_code : printing;
    int trace_code = write_trace(session);
    printing = printing == EXIT_VERIFIED ? trace_code : printing;
    printing = finish_output(printing);
    if (session->report->verdict != HEALCL_DIFFERS)
        return printing;
    print_notice("%s: %" PRIu64 " of %" PRIu64 " result%s differ%s", session->facts.file,
                 session->report->results_different, session->report->results,
                 session->report->results == 1 ? "" : "s",
                 session->report->results_different == 1 ? "s" : "");
    return EXIT_DIFFERENT;
}

/* The smallest case of what an audit has found. */
static int write_case(struct session *session)
{
    struct request_audit *audit = &session->served.audit;
    struct healcl_error error = {.status = HEALCL_OK};
    if (!session->case_path || !audit->smallest.transcript)
        return EXIT_VERIFIED;
    (void)fwrite(audit->smallest.transcript, 1, audit->smallest.bytes, session->case_file.stream);
    if (new_file_commit(&session->case_file, &error) == HEALCL_OK) {
        audit->case_path = session->case_path;
        return EXIT_VERIFIED;
    }
    const int code = print_error(NULL, &error, session->verbose);
    healcl_error_clear(&error);
    return code;
}

static int finish_requests(struct session *session)
{
    const int case_code = write_case(session);
    struct style style = style_of(text_stream(session));
    int printing = EXIT_VERIFIED, code = EXIT_VERIFIED;
    if (!session->quiet && text_stream(session) == stdout)
        printing = printed(report_requests(&session->served, &style));
    FILE *stream = report_file_stream(&session->json);
    if (stream)
        code = report_file_end(&session->json, report_requests_json(&session->served, stream),
                               session->verbose);
    printing = printing == EXIT_VERIFIED ? code : printing;
    printing = finish_output(printing == EXIT_VERIFIED ? case_code : printing);
    if (session->served.audit.facts.difference) {
        print_notice("%s: %s", session->facts.file, session->served.audit.error.message);
        return printing == EXIT_VERIFIED ? EXIT_DIFFERENT : printing;
    }
    if (session->served.different == 0)
        return printing;
    print_notice("%s: %" PRIu64 " of %" PRIu64 " results differ", session->facts.file,
                 session->served.different, session->served.compared);
    return EXIT_DIFFERENT;
}

/* With the device go what it built, and what its driver holds: that is part of a run's time. */
static void close_device(struct session *session)
{
    size_t span = trace_begin(session->trace, "start-up", "close the device");
    healcl_device_close(session->device);
    session->device = NULL;
    trace_end(session->trace, span);
}

static int run_and_finish(struct session *session)
{
    session->start = monotonic_nanoseconds();
    progress_start(&session->progress, !session->quiet);
    if (session->json.path || session->junit.path)
        session->differences = calloc(DIFFERENCES_KEPT, sizeof *session->differences);
    struct healcl_error error = {.status = HEALCL_OK};
    enum healcl_status status = run_session(session, &error);
    stop_compiling(session);
    close_device(session);
    progress_end(&session->progress);
    int code = status != HEALCL_OK     ? finish_failed(session, &error)
               : session->requests > 0 ? finish_requests(session)
                                       : finish_run(session);
    healcl_error_clear(&error);
    live_inputs_free(&session->live);
    requests_release(&session->served);
    healcl_report_free(session->report);
    healcl_transcript_close(session->transcript);
    report_file_discard(&session->json);
    report_file_discard(&session->junit);
    new_file_discard(&session->trace_file);
    new_file_discard(&session->case_file);
    trace_free(session->trace);
    for (size_t i = 0; i < session->facts.difference_count; i++)
        free(session->differences[i].line);
    free(session->differences);
    return code;
}

/* ---------------------------------------------------------------- options */

static int take_input(const struct command *command, const struct command_option *option,
                      void *session, const char *text)
{
    (void)option;
    return live_inputs_add(command, &((struct session *)session)->live, text);
}

static int take_segment(const struct command *command, const struct command_option *option,
                        void *session, const char *text)
{
    (void)option;
    return live_inputs_keep(command, &((struct session *)session)->live, text);
}

static int take_audit(const struct command *command, const struct command_option *option,
                      void *session, const char *text)
{
    char number[32] = "";
    const size_t length = strlen(text);
    double *percent = &((struct session *)session)->audit;
    (void)option;
    if (length < sizeof number)
        memcpy(number, text, length > 0 && text[length - 1] == '%' ? length - 1 : length);
    if (!parse_percent(number, percent) || *percent <= 0 || *percent > 100)
        return usage_error(command, "--audit takes a share of the time as 2%%, not '%.200s'", text);
    return EXIT_VERIFIED;
}

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, KEPT_IN(selector)},
    {"package", 0, OPTION_FILE, KEPT_IN(package)},
    {"reference", 0, OPTION_FLAG, KEPT_IN(reference)},
    {"no-fallback", 0, OPTION_FLAG, KEPT_IN(no_fallback)},
    {"no-verify", 0, OPTION_FLAG, KEPT_IN(facts.no_verify)},
    {"no-warmup", 0, OPTION_FLAG, KEPT_IN(no_warm_up)},
    {"repeat", 0, OPTION_COUNT, KEPT_IN(repeat), .most = REPEAT_MAX},
    {"input", 'i', OPTION_WORD, .take = take_input},
    {"requests", 0, OPTION_COUNT, KEPT_IN(requests), .most = REPEAT_MAX},
    {"batch", 0, OPTION_COUNT, KEPT_IN(batch), .most = REPEAT_MAX},
    {"keep", 0, OPTION_WORD, .take = take_segment},
    {"audit", 0, OPTION_WORD, .take = take_audit},
    {"audit-seed", 0, OPTION_COUNT, KEPT_IN(audit_seed), .most = UINT32_MAX},
    {"audit-case", 0, OPTION_FILE, KEPT_IN(case_path)},
    {"json", 0, OPTION_REPORT, KEPT_IN(json)},
    {"junit", 0, OPTION_REPORT, KEPT_IN(junit)},
    {"trace", 0, OPTION_FILE, KEPT_IN(trace_path)},
    {"dump", 0, OPTION_FOLDER, KEPT_IN(dump_dir)},
    {"memory-limit", 0, OPTION_BYTES, KEPT_IN(limits.memory_bytes)},
    {"max-device-memory", 0, OPTION_BYTES, KEPT_IN(device_memory_bytes)},
    {"work-limit", 0, OPTION_NUMBER, KEPT_IN(limits.work)},
    {"expand", 0, OPTION_WORD, KEPT_IN(limits.expand), .take = take_expand},
    {"ops", 0, OPTION_FOLDER, KEPT_IN(limits.operations), .take = take_operations},
    {"trust", 0, OPTION_FOLDER, KEPT_IN(limits.operations), .take = take_operations},
    {"passes", 0, OPTION_WORD, KEPT_IN(limits.passes)},
    {"quiet", 'q', OPTION_FLAG, KEPT_IN(quiet)},
    {"verbose", 'v', OPTION_FLAG, KEPT_IN(verbose)},
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct session session = {.repeat = 1};
    int code = take_arguments(command, argc, argv, &session);
    if (code != GOES_ON)
        return code;
    if (session.reference && session.selector)
        return usage_error(command, "--reference runs without a device, --device names one");
    if (session.reference && session.package)
        return usage_error(command, "--reference runs without a device, --package is for one");
    if (session.device_memory_bytes > 0 && (session.reference || session.requests > 0))
        return usage_error(command, "--max-device-memory goes without --reference and --requests");
    if (session.quiet && session.verbose)
        return usage_error(command, "--quiet and --verbose exclude each other");
    if (session.requests == 0 && session.live.segment_count > 0)
        return usage_error(command,
                           "--keep says what requests do not upload: --requests is missing");
    if (session.batch > 0 && (session.requests == 0 || session.audit > 0))
        return usage_error(command, session.requests == 0
                                        ? "--batch runs requests together: --requests is missing"
                                        : "--audit is of requests that run alone, not of --batch");
    if (session.audit > 0 && (session.requests == 0 || session.reference))
        return usage_error(command, session.reference
                                        ? "--audit compares with the reference: it wants a device"
                                        : "--audit is of requests: --requests is missing");
    if (session.audit == 0 && (session.case_path || session.audit_seed > 0))
        return usage_error(command, "--audit-case and --audit-seed go with --audit");
    if (session.requests > 0 &&
        (session.repeat > 1 || session.junit.path || session.trace_path || session.dump_dir))
        return usage_error(command,
                           "--requests goes without --repeat, --junit, --trace and --dump");
    session.facts.no_verify |= session.live.count > 0; /* results are those of other inputs */
    session.facts.file = argv[optind];
    return run_and_finish(&session);
}

const struct command command_run = {
    .name = "run",
    .summary = "run a transcript on a device and verify every result",
    .help =
        "Runs a transcript and compares every result that carries an expected tensor.\n"
        "\n"
        "Usage: healcl run [OPTIONS] FILE\n"
        "\n"
        "  -d, --device SEL         the device: 0:1 (platform and device), part of a platform's\n"
        "                           or device's name, cpu, gpu or acc; else the environment's\n"
        "                           HEALCL_DEVICE, else the best there is (healcl devices)\n"
        "      --package PACKAGE    build nothing: take all programs from what healcl compile "
        "made\n"
        "                           (docs/PACKAGES.md)\n"
        "      --reference          run on the host reference, without OpenCL: slow and plain\n"
        "      --no-fallback        refuse what the device cannot run, as it builds no kernel for\n"
        "                           it; otherwise the host reference runs that, which is told\n"
        "      --no-verify          run, but compare nothing\n"
        "      --repeat N           run N times, verify each time, report medians\n"
        "  -i, --input ENTRY=FILE   take the data of an upload, named by its entry's number or "
        "its\n"
        "                           tensor's name, from a .npy file; nothing is compared then;\n"
        "                           repeatable\n"
        "      --requests N         run as a service does, N times in one session: uploads stay\n"
        "                           on the device, but those of --input; prints latencies\n"
        "      --batch B            with --requests: up to B of them run together, as one, or as\n"
        "                           many as fit into memory; --input, or --keep, says which "
        "inputs\n"
        "                           come with each (docs/EMBEDDING.md)\n"
        "      --keep SEGMENT       with --requests: only uploads of this segment stay, those of\n"
        "                           others are done again by each request; repeatable\n"
        "      --audit SHARE        with --requests: within this share of the time, as 2%, some\n"
        "                           steps of requests are done again by the host reference, and\n"
        "                           compared; a difference ends the request and the command,\n"
        "                           with exit code 1 (docs/EMBEDDING.md)\n"
        "      --audit-seed N       draw other steps for audits\n"
        "      --audit-case FILE    write its smallest case there, as healcl diagnose does\n"
        "      --no-warmup          count the first run too, which compiles kernels; without it\n"
        "                           that one is a run more\n"
        "      --json FILE|-        write everything as JSON too, or with - alone on standard\n"
        "                           output: differences and errors then go to standard error\n"
        "                           (docs/JSON.md)\n"
        "      --junit FILE|-       the same as JUnit XML, a test case for each segment\n"
        "                           (docs/CI.md)\n"
        "      --trace FILE         write what happened when, on the host and the device, for\n"
        "                           Perfetto or Chrome (docs/TRACE.md)\n"
        "      --dump DIR           write the results there as .npy files, and results.json\n"
        "      --memory-limit SIZE  refuse tensors that together take more: bytes, or with a\n"
        "                           suffix K, M, G or T. By default the host's memory for the\n"
        "                           reference and devices that share it; others refuse only a\n"
        "                           tensor larger than their largest buffer\n"
        "      --max-device-memory SIZE\n"
        "                           allocate at most this on the device: tensors that are not\n"
        "                           needed soon are kept by the host, or uploaded again\n"
        "                           (docs/MEMORY.md)\n"
        "      --work-limit N       refuse an operation that visits more elements, such as the\n"
        "                           terms of a sum; with a suffix K, M, G or T; 4T, 2^42, by\n"
        "                           default\n"
        "      --expand spec|sdk    whether expand has axis and repeats, or repeats and axis;\n"
        "                           by default as is valid (docs/HEAL-SDK.md)\n",
    .more_help =
        "      --ops DIR            take operations and kernels from the manifests of a folder\n"
        "                           (docs/VENDORS.md), and native code that they name; repeatable\n"
        "      --trust DIR          the same where its manifests may name sources elsewhere,\n"
        "                           and any options of compilers\n"
        "      --passes LIST|none   only these passes, with commas between them, or none of them\n"
        "                           (healcl inspect --passes); all by default\n"
        "  -q, --quiet              print only differences and errors\n"
        "  -v, --verbose            also times by operation, what a cold start took, and the\n"
        "                           source of an error\n"
        "  -h, --help               this text\n"
        "\n"
        "Times of operations, for -v and --json, are taken in up to 5 further runs. There stands\n"
        "too which share of a segment's time the device's rates allow, where healcl devices\n"
        "--measure or healcl inspect --roofline has measured them.\n"
        "\n"
        "Exit codes: 0 verified, or nothing to verify; 1 a result differs; 2 wrong usage;\n"
        "3 the transcript is refused; 4 the device or OpenCL failed, or memory ran out.\n",
    .options = options,
    .operands = OPERANDS_FILE,
    .run = run,
};
