/* healcl run */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/compile_ahead.h"
#include "cli/junit.h"
#include "cli/progress.h"
#include "cli/report_file.h"
#include "cli/requests.h"
#include "cli/run_kernels_report.h"
#include "cli/text.h"
#include "core/new_file.h"
#include "core/process.h"
#include "opencl/opening.h"
#include "opencl/self_test.h"
#include "plan/transcript.h"
#include "run/run.h"
#include "tools/xmalloc.h"

enum {
    REPEAT_MAX = 1000000,
    DIFFERENCES_KEPT = 10000, /* lines for the JSON */
};

/* One `healcl run`. */
struct run_command {
    const char *selector, *trace_path, *dump_dir, *package;
    struct report_file json, junit;
    bool reference, no_fallback, no_warm_up, kernels, quiet, verbose;
    uint32_t repeat;
    double audit; /* percent; 0: none */
    uint32_t audit_seed;
    struct live_inputs live;
    struct request_facts served; /* count 0: it is verified, once or repeat times */
    struct request_facts steady; /* count 0: none are timed behind it */
    struct healcl_limits limits;
    uint64_t device_memory_bytes; /* 0: no limit */ /* memory_bytes 0: by the device */
    struct new_file trace_file;
    struct trace *trace; /* NULL without trace_path and kernels */
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
static FILE *text_stream(const struct run_command *self)
{
    return self->json.on_stdout || self->junit.on_stdout ? stderr : stdout;
}

/* ---------------------------------------------------------------- what a run tells */

static void on_difference(void *context, const char *line)
{
    struct run_command *self = context;
    self->differs = true;
    char *clean = xstrdup(line);
    text_clean(clean, false);
    progress_pause(&self->progress);
    fprintf(text_stream(self), "%s\n", clean);
    fflush(text_stream(self));
    progress_resume(&self->progress);
    if (self->differences && self->facts.difference_count < DIFFERENCES_KEPT)
        self->differences[self->facts.difference_count++] =
            (struct run_difference){clean, self->segment};
    else
        free(clean);
}

__attribute__((format(printf, 2, 3))) static void warn(struct run_command *self, const char *format,
                                                       ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (self->quiet)
        return;
    progress_pause(&self->progress);
    print_notice("%s: warning: %s", self->facts.file, line);
    progress_resume(&self->progress);
}

static void on_warning(void *context, const char *line)
{
    warn(context, "%s", line);
}

static void stop_compiling(struct run_command *self)
{
    process_stop(self->compiling);
    self->compiling = 0;
    if (self->device)
        self->device->programs->ahead.board = NULL;
}

/* Once a repetition has been verified: all is compiled, and what is timed runs alone. */
static void note_first_result(struct run_command *self)
{
    stop_compiling(self);
    if (self->facts.first_result_nanoseconds == 0)
        self->facts.first_result_nanoseconds = monotonic_nanoseconds() - self->start;
}

static void on_repetition(void *context, enum healcl_phase phase, uint32_t number, uint32_t count)
{
    struct run_command *self = context;
    if (self->repetitions++ > 0)
        note_first_result(self);
    char *text = self->repetition;
    size_t size = sizeof self->repetition;
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
    struct run_command *self = context;
    self->segment = segment;
    char share[16] = "";
    if (step > 0 && step_count > 0)
        snprintf(share, sizeof share, ", %u %%", (unsigned)(step * 100 / step_count));
    progress_say(&self->progress, "%ssegment %zu of %zu: %s%s", self->repetition, segment + 1,
                 segment_count, *name ? name : "(no segment)", share);
}

/* ---------------------------------------------------------------- opening */

static enum healcl_status choose_device(struct run_command *self, struct healcl_error *error)
{
    struct device_info *list;
    size_t count, index;
    uint64_t begin = monotonic_nanoseconds();
    size_t span = trace_begin(self->trace, "start-up", "find devices");
    enum healcl_status status = device_list(&opencl_loader, &list, &count, error);
    trace_end(self->trace, span);
    TRY(status);
    if (self->package)
        device_allow_packaged(list, count);
    status = device_select(list, count, self->selector, &index, error);
    if (status == HEALCL_OK)
        self->info = list[index];
    free(list);
    self->facts.open_device_nanoseconds = monotonic_nanoseconds() - begin;
    return status;
}

/* The limit is what the memory can hold that the tensors will lie in, where that is known well:
 * what a device says of its own is only a hint. */
static enum healcl_status open_transcript(struct run_command *self, bool host_memory_only,
                                          struct healcl_error *error)
{
    struct healcl_limits limits = self->limits;
    if (limits.memory_bytes == 0 && host_memory_only)
        limits.memory_bytes = host_memory();
    progress_say(&self->progress, "reading %s", self->facts.file);
    uint64_t begin = monotonic_nanoseconds();
    size_t span = trace_begin(self->trace, "start-up", "read and plan");
    enum healcl_status status =
        healcl_transcript_open(self->facts.file, &limits, &self->transcript, error);
    trace_end(self->trace, span);
    self->facts.open_transcript_nanoseconds = monotonic_nanoseconds() - begin;
    return status;
}

static enum healcl_status open_device(struct run_command *self, struct healcl_error *error)
{
    char selector[24];
    progress_say(&self->progress, "opening %s", self->info.name);
    snprintf(selector, sizeof selector, "%u:%u", self->info.platform_index,
             self->info.device_index);
    uint64_t begin = monotonic_nanoseconds();
    size_t span = trace_begin(self->trace, "start-up", "open the device");
    const struct healcl_device_options options = {
        .selector = selector, .package = self->package, .no_fallback = self->no_fallback};
    struct device_opening opening = {.trace = self->trace};
    const struct healcl_limits *limits = &self->limits;
    const bool has_default_plan = !limits->operations && !limits->passes &&
                                  limits->expand == HEALCL_EXPAND_VALID &&
                                  self->device_memory_bytes == 0;
    if (self->served.count == 0 && !self->package && has_default_plan)
        self->compiling = compile_ahead_start(&self->info, self->facts.file, &opening.board);
    enum healcl_status status =
        device_open_for_run(&opencl_loader, &options, &opening, &self->device, error);
    trace_end(self->trace, span);
    TRY(status);
    self->facts.open_device_nanoseconds += monotonic_nanoseconds() - begin;
    self->facts.self_test_nanoseconds = self->device->programs->self_test_nanoseconds;
    self->tuning = self->device->tuning;
    const uint64_t needed = self->transcript->plan->bytes_peak;
    if (!self->info.unified_memory && needed > self->info.global_memory_bytes)
        warn(self, "the tensors take %s, and the device says that it has %s", TEXT_BYTES(needed),
             TEXT_BYTES(self->info.global_memory_bytes));
    return status;
}

/* A transcript that is refused is refused with or without a device: its error goes first. */
static enum healcl_status open_all(struct run_command *self, struct healcl_error *error)
{
    if (self->reference)
        return open_transcript(self, true, error);
    struct healcl_error device_error = {.status = HEALCL_OK};
    enum healcl_status chosen = choose_device(self, &device_error);
    enum healcl_status status =
        open_transcript(self, chosen != HEALCL_OK || self->info.unified_memory, error);
    if (status == HEALCL_OK && chosen != HEALCL_OK) {
        healcl_error_clear(error);
        *error = device_error;
        return chosen;
    }
    healcl_error_clear(&device_error);
    return status == HEALCL_OK ? open_device(self, error) : status;
}

static enum healcl_status serve(struct run_command *self, struct healcl_error *error)
{
    struct request_facts *served = &self->served;
    served->file = self->facts.file;
    served->device = self->reference ? NULL : &self->info;
    served->no_verify = self->facts.no_verify;
    served->audit.share = self->audit / 100;
    served->audit.seed = self->audit_seed;
    return requests_run(self->transcript, self->device, &self->live, &self->progress, served,
                        error);
}

/* Finds what kernels took, by rates that are kept, or measured now. Without rates there are no
 * shares of them. */
static void find_kernels(struct run_command *self)
{
    struct roofline *rates = &self->facts.roofline;
    struct healcl_error ignored = {.status = HEALCL_OK};
    if (!roofline_read_kept(&self->info, &self->tuning, rates)) {
        progress_say(&self->progress, "measuring %s", self->info.name);
        if (roofline_measure(self->device, ROOFLINE_SECONDS, rates, &ignored) != HEALCL_OK)
            *rates = (struct roofline){0};
        healcl_error_clear(&ignored);
    }
    if (self->trace->dropped > 0)
        on_warning(self, "there are too many kernels to tell all of them");
    self->facts.kernels = report_launches(self->transcript->plan, self->trace, rates, self->device);
}

/* Requests behind the run. Those that cannot be made are no fault of the run's. */
static void time_steady(struct run_command *self)
{
    struct request_facts *steady = &self->steady;
    struct healcl_error error = {.status = HEALCL_OK};
    steady->no_verify = self->facts.no_verify;
    if (self->device)
        device_pool_empty(self->device); /* the session has one of its own */
    if (requests_run(self->transcript, self->device, &self->live, &self->progress, steady,
                     &error) == HEALCL_OK)
        self->facts.steady = steady;
    else
        warn(self, "requests are not timed: %s", error.message);
    healcl_error_clear(&error);
    if (steady->different == 0)
        return;
    char line[128];
    snprintf(line, sizeof line, "requests in a session: %" PRIu64 " of %" PRIu64 " results differ",
             steady->different, steady->compared);
    on_difference(self, line);
    self->report->verdict = HEALCL_DIFFERS;
    if (self->report->results_different == 0)
        self->report->results_different = 1;
}

static enum healcl_status run_session(struct run_command *self, struct healcl_error *error)
{
    TRY(report_file_open(&self->json, error));
    TRY(report_file_open(&self->junit, error));
    if (self->trace_path)
        TRY(new_file_open(&self->trace_file, self->trace_path, error));
    if (self->trace_path || self->kernels) {
        self->trace = trace_create(TRACE_SPANS_MAX);
        if (!self->trace)
            NO_MEMORY(error);
    }
    TRY(open_all(self, error));
    TRY(live_inputs_read(&self->live, self->transcript, error));
    if (self->served.count > 0)
        return serve(self, error);
    struct healcl_run_options options = {
        .inputs = self->live.inputs,
        .input_count = self->live.count,
        .no_verify = self->facts.no_verify,
        .no_warm_up = self->no_warm_up || (self->quiet && !self->json.path && !self->trace_path),
        .profile = self->json.path || self->trace || self->verbose,
        .repeat = self->repeat,
        .dump_dir = self->dump_dir,
        .observer = {.context = self,
                     .repetition = on_repetition,
                     .difference = on_difference,
                     .warning = on_warning,
                     .progress = on_progress},
        .device_memory_bytes = self->device_memory_bytes,
    };
    size_t span = trace_begin(self->trace, "run", "run");
    enum healcl_status status = healcl_run_traced(self->transcript, self->device, &options,
                                                  self->trace, &self->report, error);
    trace_end(self->trace, span);
    note_first_result(self);
    if (status == HEALCL_OK && self->steady.count > 0 && self->report->verdict != HEALCL_DIFFERS)
        time_steady(self);
    if (status == HEALCL_OK && self->kernels)
        find_kernels(self);
    return status;
}

/* ---------------------------------------------------------------- telling the end */

/* Facts of a run that came to its end. */
static void complete_facts(struct run_command *self)
{
    struct run_facts *facts = &self->facts;
    facts->plan = self->transcript->plan;
    facts->device = self->reference ? NULL : &self->info;
    facts->tuning = self->reference ? NULL : &self->tuning;
    facts->report = self->report;
    if (!self->reference && !self->kernels)
        (void)roofline_read_kept(&self->info, &self->tuning, &facts->roofline);
    facts->differences = self->differences;
    facts->total_nanoseconds = monotonic_nanoseconds() - self->start;
}

/* Also of a run that failed: what it did until then. */
static int write_trace(struct run_command *self)
{
    struct trace *trace = self->trace;
    if (!self->trace_path || !trace)
        return EXIT_VERIFIED;
    trace_finish(trace);
    report_trace(self->facts.file, self->reference ? "reference" : self->info.name,
                 self->info.driver, trace, self->trace_file.stream);
    if (trace->dropped > 0 && !self->quiet)
        print_notice("%s: warning: the trace leaves out %" PRIu64
                     " spans, those after the first %zu",
                     self->facts.file, trace->dropped, trace->count);
    struct healcl_error error = {.status = HEALCL_OK};
    if (new_file_commit(&self->trace_file, &error) == HEALCL_OK)
        return EXIT_VERIFIED;
    int code = print_error(NULL, &error, self->verbose);
    healcl_error_clear(&error);
    return code;
}

static int finish_failed(struct run_command *self, const struct healcl_error *error)
{
    int code =
        report_files_error(&self->json, &self->junit, self->facts.file, error, self->verbose);
    (void)write_trace(self);
    return finish_output(code);
}

static int finish_run(struct run_command *self)
{
    complete_facts(self);
    const struct style style = style_of(stdout);
    cJSON *document = report_run(&self->facts);
    if (!self->quiet && text_stream(self) == stdout) {
        if (self->differs)
            putc('\n', stdout);
        report_run_text(document, &style, self->verbose);
    }
    int printing = report_file_json(&self->json, document, EXIT_VERIFIED, self->verbose);
    FILE *stream = report_file_stream(&self->junit);
    if (stream) {
        report_run_junit(&self->facts, stream);
        printing = report_file_end(&self->junit, printing, self->verbose);
    }
    int trace_code = write_trace(self);
    printing = printing == EXIT_VERIFIED ? trace_code : printing;
    printing = finish_output(printing);
    if (self->report->verdict != HEALCL_DIFFERS)
        return printing;
    print_notice("%s: %" PRIu64 " of %" PRIu64 " result%s differ%s", self->facts.file,
                 self->report->results_different, self->report->results,
                 self->report->results == 1 ? "" : "s",
                 self->report->results_different == 1 ? "s" : "");
    return EXIT_DIFFERENT;
}

static int finish_requests(struct run_command *self)
{
    const struct style style = style_of(stdout);
    cJSON *document = report_requests(&self->served);
    if (!self->quiet && text_stream(self) == stdout)
        report_requests_text(document, &style);
    const int printing =
        finish_output(report_file_json(&self->json, document, EXIT_VERIFIED, self->verbose));
    if (self->served.audit.facts.difference) {
        print_notice("%s: %s", self->facts.file, self->served.audit.error.message);
        return printing == EXIT_VERIFIED ? EXIT_DIFFERENT : printing;
    }
    if (self->served.different == 0)
        return printing;
    print_notice("%s: %" PRIu64 " of %" PRIu64 " results differ", self->facts.file,
                 self->served.different, self->served.compared);
    return EXIT_DIFFERENT;
}

/* With the device go what it built, and what its driver holds: that is part of a run's time. */
static void close_device(struct run_command *self)
{
    if (!self->device)
        return;
    size_t span = trace_begin(self->trace, "start-up", "close the device");
    healcl_device_close(self->device);
    self->device = NULL;
    trace_end(self->trace, span);
}

static int run_and_finish(struct run_command *self)
{
    self->start = monotonic_nanoseconds();
    progress_start(&self->progress, !self->quiet);
    if (self->json.path || self->junit.path)
        self->differences = xcalloc(DIFFERENCES_KEPT, sizeof *self->differences);
    struct healcl_error error = {.status = HEALCL_OK};
    enum healcl_status status = run_session(self, &error);
    stop_compiling(self);
    if (!self->served.session)
        close_device(self);
    progress_end(&self->progress);
    int code = status != HEALCL_OK      ? finish_failed(self, &error)
               : self->served.count > 0 ? finish_requests(self)
                                        : finish_run(self);
    healcl_error_clear(&error);
    live_inputs_free(&self->live);
    requests_release(&self->served);
    requests_release(&self->steady);
    close_device(self);
    healcl_report_free(self->report);
    healcl_transcript_close(self->transcript);
    report_file_discard(&self->json);
    report_file_discard(&self->junit);
    new_file_discard(&self->trace_file);
    trace_free(self->trace);
    cJSON_Delete(self->facts.kernels);
    for (size_t i = 0; i < self->facts.difference_count; i++)
        free(self->differences[i].line);
    free(self->differences);
    return code;
}

/* ---------------------------------------------------------------- options */

static int take_audit(const struct command *command, const struct command_option *option,
                      void *self, const char *text)
{
    char *end;
    double *percent = &((struct run_command *)self)->audit;
    (void)option;
    *percent = strtod(text, &end);
    if (*text < '0' || *text > '9' || (*end && strcmp(end, "%") != 0) || *percent <= 0 ||
        *percent > 100)
        return usage_error(command, "--audit takes a share of the time as 2%%, not '%.200s'", text);
    return EXIT_VERIFIED;
}

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, KEPT_IN(struct run_command, selector)},
    {"package", 0, OPTION_FILE, KEPT_IN(struct run_command, package)},
    {"reference", 0, OPTION_FLAG, KEPT_IN(struct run_command, reference), .decides_device = true},
    {"no-fallback", 0, OPTION_FLAG, KEPT_IN(struct run_command, no_fallback)},
    {"no-verify", 0, OPTION_FLAG, KEPT_IN(struct run_command, facts.no_verify)},
    {"no-warmup", 0, OPTION_FLAG, KEPT_IN(struct run_command, no_warm_up)},
    {"repeat", 0, OPTION_COUNT, KEPT_IN(struct run_command, repeat), .most = REPEAT_MAX},
    {"input", 'i', OPTION_INPUT, KEPT_IN(struct run_command, live), .take = take_live_input},
    {"steady", 0, OPTION_COUNT, KEPT_IN(struct run_command, steady.count), .most = REPEAT_MAX},
    {"requests", 0, OPTION_COUNT, KEPT_IN(struct run_command, served.count), .most = REPEAT_MAX},
    {"keep", 0, OPTION_WORD, KEPT_IN(struct run_command, live), .take = take_kept_segment},
    {"audit", 0, OPTION_WORD, .take = take_audit},
    {"audit-seed", 0, OPTION_COUNT, KEPT_IN(struct run_command, audit_seed), .most = UINT32_MAX},
    {"json", 0, OPTION_REPORT, KEPT_IN(struct run_command, json)},
    {"junit", 0, OPTION_REPORT, KEPT_IN(struct run_command, junit)},
    TIMEOUT_OPTION,
    {"trace", 0, OPTION_NEW_FILE, KEPT_IN(struct run_command, trace_path)},
    {"kernels", 0, OPTION_FLAG, KEPT_IN(struct run_command, kernels)},
    {"dump", 0, OPTION_NEW_FOLDER, KEPT_IN(struct run_command, dump_dir)},
    {"memory-limit", 0, OPTION_BYTES, KEPT_IN(struct run_command, limits.memory_bytes)},
    {"max-device-memory", 0, OPTION_BYTES, KEPT_IN(struct run_command, device_memory_bytes)},
    {"work-limit", 0, OPTION_NUMBER, KEPT_IN(struct run_command, limits.work)},
    {"expand", 0, OPTION_WORD, KEPT_IN(struct run_command, limits.expand), .take = take_expand},
    OPERATIONS_OPTIONS(struct run_command, limits.operations),
    {"passes", 0, OPTION_WORD, KEPT_IN(struct run_command, limits.passes)},
    {"quiet", 'q', OPTION_FLAG, KEPT_IN(struct run_command, quiet)},
    {"verbose", 'v', OPTION_FLAG, KEPT_IN(struct run_command, verbose)},
    END_OF_OPTIONS,
};

/* Why options do not go together, or NULL. */
static const char *incompatible(const struct run_command *self)
{
    const struct request_facts *served = &self->served;
    const bool serves = served->count > 0, audits = self->audit > 0;
    const struct {
        bool is_wrong;
        const char *why;
    } rules[] = {
        {self->reference && (self->selector || self->package),
         "--reference runs without a device, which --device and --package are for"},
        {self->device_memory_bytes > 0 && (self->reference || serves),
         "--max-device-memory goes without --reference and --requests"},
        {self->quiet && self->verbose, "--quiet and --verbose exclude each other"},
        {!serves && self->steady.count == 0 && self->live.segment_count > 0,
         "--keep says what requests do not upload: --requests or --steady is missing"},
        {self->steady.count > 0 && (serves || self->device_memory_bytes > 0),
         "--steady goes without --requests and --max-device-memory"},
        {audits && (self->reference || !serves), "--audit goes with --requests, on a device"},
        {self->kernels && (self->reference || serves),
         "--kernels goes without --reference and --requests"},
        {serves && (self->repeat > 1 || self->junit.path || self->trace_path || self->dump_dir),
         "--requests goes without --repeat, --junit, --trace and --dump"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].is_wrong)
            return rules[i].why;
    return NULL;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct run_command self = {.repeat = 1};
    int code = take_arguments(command, argc, argv, &self);
    if (device_is_reference(self.selector)) {
        self.reference = true;
        self.selector = NULL;
    }
    const char *why = code == GOES_ON ? incompatible(&self) : NULL;
    if (why)
        code = usage_error(command, "%s", why);
    if (code != GOES_ON) {
        live_inputs_free(&self.live);
        return code;
    }
    self.facts.no_verify |= self.live.count > 0; /* results are those of other inputs */
    self.facts.file = argv[optind];
    return run_and_finish(&self);
}

const struct command command_run = {
    .name = "run",
    .summary = "run a transcript on a device and verify every result",
    .help =
        "Runs a transcript and compares every result that carries an expected tensor.\n"
        "\n"
        "Usage: healcl run [OPTIONS] FILE\n"
        "\n"
        "  -d, --device SEL         the device: 0:1 (platform and device), part of a name, cpu, "
        "gpu\n"
        "                           or acc; or reference; else HEALCL_DEVICE's, or the best\n"
        "      --package PACKAGE    build nothing: take programs from what healcl compile made\n"
        "      --reference          run on the host reference, without OpenCL: slow and plain\n"
        "      --no-fallback        refuse what the device cannot run; the reference runs it else\n"
        "      --no-verify          run, but compare nothing\n"
        "      --repeat N           run N times, verify each time, report medians\n"
        "  -i, --input ENTRY=FILE   take an upload's data from a .npy file, and compare nothing;\n"
        "                           ENTRY: its number or its tensor's name, or\n"
        "                           entry:NUMBER or name:NAME; repeatable\n"
        "      --requests N         run as a service does, N times in one session: all stays on\n"
        "                           the device but live inputs: the uploads of segments\n"
        "                           upload_ct..., or of the last segment that uploads, or\n"
        "                           what --input and --keep say; prints latencies\n"
        "      --steady N           the same behind the run\n"
        "      --keep SEGMENT       of requests: only uploads of this segment stay; repeatable\n"
        "      --audit SHARE        of --requests: within this share of the time, as 2%, repeat\n"
        "                           steps on the host reference, and end with exit code 1 where\n"
        "                           one differs (docs/EMBEDDING.md)\n"
        "      --audit-seed N       draw other steps for audits\n"
        "      --no-warmup          count the first run too, which compiles kernels\n"
        "      --timeout S          give up after S seconds, with exit code 4\n"
        "      --json FILE|-        write everything as JSON too, or with - alone on standard\n"
        "                           output (docs/JSON.md)\n"
        "      --junit FILE|-       the same as JUnit XML, a test case for each segment\n"
        "      --trace FILE         write what happened when, for Perfetto (docs/TRACE.md)\n"
        "      --kernels            say what each kernel took, what the device's rates allow, and\n"
        "                           why a general variant ran\n"
        "      --dump DIR           write the results there as .npy files, and results.json\n",
    .more_help =
        "      --memory-limit SIZE  refuse tensors that together take more: bytes, or with a\n"
        "                           suffix K, M, G or T (docs/MEMORY.md)\n"
        "      --max-device-memory SIZE\n"
        "                           allocate at most this on the device: the host keeps the rest\n"
        "      --work-limit N       refuse an operation that visits more elements; 4T by default\n"
        "      --expand spec|sdk    the order of expand's arguments "
        "(docs/HEAL-SDK.md)\n" OPERATIONS_HELP
        "      --passes LIST|none   only these passes, with commas between them, or none of them\n"
        "  -q, --quiet              print only differences and errors\n"
        "  -v, --verbose            also times by operation, and the source of an error\n"
        "  -h, --help               this text\n"
        "\n"
        "Exit codes: 0 verified, or nothing to verify; 1 a result differs; 2 wrong usage;\n"
        "3 the transcript is refused; 4 the device or OpenCL failed, or memory ran out.\n",
    .options = options,
    .operands = OPERANDS_FILE,
    .device = DEVICE_HERE,
    .run = run,
};
