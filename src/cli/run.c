/* healcl run */

#include "run/run.h"
#include "cli/command_job.h"
#include "cli/requests.h"
#include "run/loaded_transcript.h"

enum {
    REPEAT_MAX = 1000000,
    DIFFERENCES_KEPT = 10000, /* messages about differing results, for the JSON */
};

/* The state of `healcl run`. */
struct run_command {
    struct command_job job; /* options.memory_limit 0: determined by the device */
    const char *trace_path, *dump_dir, *package;
    bool reference, no_fallback, no_warm_up, kernels;
    uint32_t repeat;
    struct request_inputs live;
    struct request_facts served;  /* count 0: the run is only verified, `repeat` times */
    struct request_facts steady;  /* count 0: no timed requests after the run */
    uint64_t device_memory_bytes; /* 0: no limit */
    struct new_file trace_file;
    struct trace *trace; /* NULL unless trace_path or kernels is set */
    uint64_t start;      /* start of the command */

    int compiling;        /* process of compile_ahead_start, or 0 */
    char repetition[48];  /* the current run, e.g. "run 2 of 5, " */
    uint32_t repetitions; /* number of started runs, over all phases */
    size_t segment;       /* the current segment */
    bool differs;         /* a difference was reported */

    struct device_info info; /* of the chosen device */
    bool has_devices;        /* OpenCL can be loaded, and has a device */
    struct device_tuning tuning;
    struct healcl_transcript *transcript;
    struct run_facts facts; /* the facts known so far */
};

/* ---------------------------------------------------------------- what a run tells */

static void on_difference(void *context, const char *line)
{
    struct run_command *self = context;
    /* Standard output, unless a report uses it. */
    FILE *stream = self->job.json.on_stdout || self->job.junit.on_stdout ? stderr : stdout;
    self->differs = true;
    char *clean = xstrdup(line);
    text_clean(clean, false);
    progress_pause();
    fprintf(stream, "%s\n", clean);
    fflush(stream);
    progress_resume();
    if (self->facts.differences && self->facts.difference_count < DIFFERENCES_KEPT)
        self->facts.differences[self->facts.difference_count++] =
            (struct run_difference){xkeep(clean), self->segment};
    else
        free(clean);
}

static void on_warning(void *context, const char *line)
{
    const struct run_command *self = context;
    if (!self->job.quiet)
        print_notice("%s: warning: %s", self->job.file, line);
}

static void stop_compiling(struct run_command *self)
{
    process_stop(self->compiling);
    self->compiling = 0;
    if (self->job.device)
        self->job.device->programs->ahead.board = NULL;
}

/* Called when a repetition was verified: all is compiled. Timed runs must not have other processes
 * beside them. */
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
    progress_say("%ssegment %zu of %zu: %s%s", self->repetition, segment + 1, segment_count,
                 *name ? name : "(outside segments)", share);
}

/* ---------------------------------------------------------------- opening */

static enum healcl_status choose_device(struct run_command *self, struct healcl_error *error)
{
    struct device_info *list;
    size_t count, index;
    uint64_t begin = monotonic_nanoseconds();
    size_t span = trace_begin(self->trace, "start-up", "find devices");
    enum healcl_status status = opencl_load(error);
    self->has_devices = status == HEALCL_OK;
    THEN(status, device_list(&opencl_loader, self->package, &list, &count, error));
    trace_end(self->trace, span);
    TRY(status);
    self->has_devices = count > 0;
    status = device_select(list, count, self->job.selector, &index, error);
    if (status == HEALCL_OK)
        self->info = list[index];
    free(list);
    self->facts.open_device_nanoseconds = monotonic_nanoseconds() - begin;
    return status;
}

/* Sets the memory limit to the size of the memory that will hold the tensors, if that is known
 * reliably. A device's own value is only a hint. */
static enum healcl_status open_transcript(struct run_command *self, bool host_memory_only,
                                          struct healcl_error *error)
{
    struct healcl_plan_options options = self->job.options;
    if (options.memory_limit == 0 && host_memory_only)
        options.memory_limit = host_memory();
    progress_say("reading %s", self->job.file);
    uint64_t begin = monotonic_nanoseconds();
    size_t span = trace_begin(self->trace, "start-up", "read and plan");
    enum healcl_status status =
        healcl_transcript_open(self->job.file, &options, &self->transcript, error);
    trace_end(self->trace, span);
    self->facts.open_transcript_nanoseconds = monotonic_nanoseconds() - begin;
    return status;
}

static enum healcl_status open_device(struct run_command *self, struct healcl_error *error)
{
    progress_say("opening %s", self->info.name);
    uint64_t begin = monotonic_nanoseconds();
    size_t span = trace_begin(self->trace, "start-up", "open the device");
    const struct healcl_device_options options = {.selector = DEVICE_SELECTOR(&self->info),
                                                  .package = self->package,
                                                  .no_fallback = self->no_fallback};
    struct device_opening opening = {
        .trace = self->trace,
        .builder = compile_ahead_command(),
        .lister = {device_executor_list_programs, self->transcript->plan}};
    const struct healcl_plan_options *plan = &self->job.options;
    const bool has_default_plan = !plan->operations && !plan->passes &&
                                  plan->expand == HEALCL_EXPAND_VALID &&
                                  self->device_memory_bytes == 0;
    if (self->served.count == 0 && !self->package && has_default_plan)
        self->compiling = compile_ahead_start(&self->info, self->job.file, &opening.board);
    enum healcl_status status =
        device_open_for_run(&opencl_loader, &options, &opening, &self->job.device, error);
    trace_end(self->trace, span);
    TRY(status);
    self->facts.open_device_nanoseconds += monotonic_nanoseconds() - begin;
    self->facts.self_test_nanoseconds = self->job.device->programs->self_test_nanoseconds;
    self->tuning = self->job.device->tuning;
    const uint64_t needed = self->transcript->plan->bytes_peak;
    if (!self->info.unified_memory && needed > self->info.global_memory_bytes)
        on_warning(self, xformat("the tensors take %s, but the device reports %s of memory",
                                 TEXT_BYTES(needed), TEXT_BYTES(self->info.global_memory_bytes)));
    return status;
}

/* Returns why options cannot be combined, or NULL. */
static const char *incompatible(const struct run_command *self)
{
    const struct request_facts *served = &self->served;
    const bool serves = served->count > 0, audits = served->audit.share > 0;
    const struct {
        bool is_wrong;
        const char *why;
    } rules[] = {
        {self->reference && (self->job.selector || self->package),
         "--reference cannot be combined with --device or --package"},
        {self->device_memory_bytes > 0 && (self->reference || serves),
         "--max-device-memory cannot be combined with --reference or --requests"},
        {self->job.quiet && self->job.verbose, "--quiet and --verbose exclude each other"},
        {!serves && self->steady.count == 0 && self->live.segments.count > 0,
         "--keep needs --requests or --steady"},
        {self->steady.count > 0 && (serves || self->device_memory_bytes > 0),
         "--steady cannot be combined with --requests or --max-device-memory"},
        {audits && (self->reference || !serves), "--audit needs --requests, and a device"},
        {self->kernels && (self->reference || serves),
         "--kernels cannot be combined with --reference or --requests"},
        {serves && (self->repeat > 1 || self->job.junit.path || self->trace_path || self->dump_dir),
         "--requests cannot be combined with --repeat, --junit, --trace or --dump"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].is_wrong)
            return rules[i].why;
    return NULL;
}

/* Uses the reference if the machine has no device and no option requires one. */
static bool take_reference(struct run_command *self, const struct healcl_error *why)
{
    if (self->has_devices || self->no_fallback || device_is_named(self->job.selector))
        return false;
    self->reference = true;
    if (incompatible(self)) {
        self->reference = false;
        return false;
    }
    print_notice("%s: %s; the host reference runs it", self->job.file, why->message);
    return true;
}

/* An error of the transcript takes precedence, because it does not depend on the device. */
static enum healcl_status open_all(struct run_command *self, struct healcl_error *error)
{
    if (self->reference)
        return open_transcript(self, true, error);
    struct healcl_error device_error = {.status = HEALCL_OK};
    enum healcl_status chosen = choose_device(self, &device_error);
    enum healcl_status status =
        open_transcript(self, chosen != HEALCL_OK || self->info.unified_memory, error);
    if (status == HEALCL_OK && chosen == HEALCL_OK)
        status = open_device(self, error);
    else if (status == HEALCL_OK && !take_reference(self, &device_error)) {
        error_move(error, &device_error);
        return chosen;
    }
    healcl_error_clear(&device_error);
    return status;
}

/* Adds the times of kernels, with rates that are cached or measured now. Without rates, their
 * shares are unknown. */
static void find_kernels(struct run_command *self)
{
    struct roofline *rates = &self->facts.roofline;
    if (!roofline_read_cached(&self->info, &self->tuning, rates)) {
        progress_say("measuring %s", self->info.name);
        if (roofline_measure(self->job.device, ROOFLINE_SECONDS, rates, NULL) != HEALCL_OK)
            *rates = (struct roofline){0};
    }
    if (self->trace->dropped > 0)
        on_warning(self, "there are too many kernels to list all of them");
    self->facts.kernels =
        report_launches(self->transcript->plan, self->trace, rates, self->job.device);
}

/* Runs requests after the run. If that is impossible, it is not an error of the run. */
static void time_steady(struct run_command *self)
{
    struct request_facts *steady = &self->steady;
    struct healcl_error error = {.status = HEALCL_OK};
    if (self->job.device)
        device_pool_empty(self->job.device); /* the session opens another handle */
    if (requests_run(self->transcript, self->job.device, &self->live, steady, &error) == HEALCL_OK)
        self->facts.steady = steady;
    else
        on_warning(self, xformat("requests could not be timed: %s", error.message));
    healcl_error_clear(&error);
    if (steady->different == 0)
        return;
    on_difference(self, xformat("requests in a session: %" PRIu64 " of %" PRIu64 " results differ",
                                steady->different, steady->compared));
    self->facts.report->verdict = HEALCL_DIFFERS;
    if (self->facts.report->results_different == 0)
        self->facts.report->results_different = 1;
}

static enum healcl_status run_session(struct run_command *self, struct healcl_error *error)
{
    if (self->trace_path)
        TRY(new_file_open(&self->trace_file, self->trace_path, error));
    if (self->trace_path || self->kernels) {
        self->trace = trace_create(TRACE_SPANS_MAX);
        NEED_MEMORY(self->trace, error);
    }
    TRY(open_all(self, error));
    TRY(request_inputs_read(&self->live, self->transcript, error));
    if (self->served.count > 0)
        return requests_run(self->transcript, self->job.device, &self->live, &self->served, error);
    struct healcl_run_options options = {
        .inputs = self->live.inputs,
        .input_count = self->live.texts.count,
        .no_verify = self->facts.no_verify,
        .no_warm_up =
            self->no_warm_up || (self->job.quiet && !self->job.json.path && !self->trace_path),
        .profile = self->job.json.path || self->trace || self->job.verbose,
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
    enum healcl_status status = healcl_run_traced(self->transcript, self->job.device, &options,
                                                  self->trace, &self->facts.report, error);
    trace_end(self->trace, span);
    note_first_result(self);
    if (status == HEALCL_OK && self->steady.count > 0 &&
        self->facts.report->verdict != HEALCL_DIFFERS)
        time_steady(self);
    if (status == HEALCL_OK && self->kernels)
        find_kernels(self);
    return status;
}

/* ---------------------------------------------------------------- telling the end */

static cJSON *report_of_run(void *context)
{
    struct run_command *self = context;
    struct run_facts *facts = &self->facts;
    if (self->served.count > 0)
        return report_requests(self->job.file, self->reference ? NULL : &self->info, &self->served);
    facts->file = self->job.file;
    facts->plan = self->transcript->plan;
    facts->device = self->reference ? NULL : &self->info;
    facts->tuning = self->reference ? NULL : &self->tuning;
    if (!self->reference && !self->kernels)
        (void)roofline_read_cached(&self->info, &self->tuning, &facts->roofline);
    facts->total_nanoseconds = monotonic_nanoseconds() - self->start;
    return report_run(facts);
}

static void print_run(void *context, const cJSON *document, const struct style *style)
{
    const struct run_command *self = context;
    if (self->served.count > 0) {
        report_requests_text(document, style);
        return;
    }
    if (self->differs)
        putc('\n', style->stream);
    report_run_text(document, style, self->job.verbose);
}

static void print_junit(void *context, const cJSON *document, FILE *stream)
{
    const struct run_command *self = context;
    (void)document;
    report_run_junit(&self->facts, stream);
}

/* Also for a failed run, to show its work until then. */
static int write_trace(struct run_command *self)
{
    struct trace *trace = self->trace;
    if (!self->trace_path || !trace)
        return EXIT_VERIFIED;
    trace_finish(trace);
    report_trace(self->job.file, self->reference ? "reference" : self->info.name, self->info.driver,
                 trace, self->trace_file.stream);
    if (trace->dropped > 0 && !self->job.quiet)
        print_notice("%s: warning: the trace leaves out %" PRIu64
                     " spans, those after the first %zu",
                     self->job.file, trace->dropped, trace->count);
    struct healcl_error error = {.status = HEALCL_OK};
    (void)new_file_commit(&self->trace_file, &error);
    return end_error(&error, self->job.verbose);
}

static int conclude_run(struct run_command *self, int code)
{
    const struct healcl_report *report = self->facts.report;
    const int trace_code = write_trace(self);
    if (!report || report->verdict != HEALCL_DIFFERS)
        return code == EXIT_VERIFIED ? trace_code : code;
    print_notice("%s: %" PRIu64 " of %" PRIu64 " result%s differ%s", self->job.file,
                 report->results_different, report->results, report->results == 1 ? "" : "s",
                 report->results_different == 1 ? "s" : "");
    return EXIT_DIFFERENT;
}

static int conclude_served(struct run_command *self, int code)
{
    const struct request_facts *served = &self->served;
    if (served->audit.facts.difference)
        print_notice("%s: %s", self->job.file, served->audit.error.message);
    else if (served->different > 0)
        print_notice("%s: %" PRIu64 " of %" PRIu64 " results differ", self->job.file,
                     served->different, served->compared);
    if (code == EXIT_VERIFIED && (served->audit.facts.difference || served->different > 0))
        code = EXIT_DIFFERENT;
    requests_release(&self->served); /* before the device is closed */
    return code;
}

static int conclude(void *context, int code)
{
    struct run_command *self = context;
    return self->served.count > 0 ? conclude_served(self, code) : conclude_run(self, code);
}

/* Closing the device frees its programs and the driver's data. That is part of a run's time. */
static void close_device(struct run_command *self)
{
    if (!self->job.device)
        return;
    size_t span = trace_begin(self->trace, "start-up", "close the device");
    healcl_device_close(self->job.device);
    self->job.device = NULL;
    trace_end(self->trace, span);
}

static enum healcl_status work(void *context, struct healcl_error *error)
{
    struct run_command *self = context;
    const enum healcl_status status = run_session(self, error);
    stop_compiling(self);
    if (!self->served.session)
        close_device(self);
    return status;
}

static void release_run(void *context)
{
    struct run_command *self = context;
    request_inputs_free(&self->live);
    requests_release(&self->steady);
    healcl_report_free(self->facts.report);
    healcl_transcript_close(self->transcript);
    new_file_discard(&self->trace_file);
    trace_free(self->trace);
    cJSON_Delete(self->facts.kernels);
    free(self->facts.differences);
}

/* ---------------------------------------------------------------- options */

static int take_audit(const struct command *command, const struct command_option *option,
                      void *self, const char *text)
{
    double percent;
    (void)option;
    if (!parse_percent(text, 100, &percent) || percent <= 0 || !strchr(text, '%'))
        return usage_error(command, "--audit takes a share such as 2%%, not '%.200s'", text);
    ((struct run_command *)self)->served.audit.share = percent / 100;
    return EXIT_VERIFIED;
}

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, "SEL", KEPT_IN(struct command_job, selector),
     "the device: 0:1 (platform and device), part of its name, cpu, gpu, acc, or reference; by "
     "default HEALCL_DEVICE, else the best"},
    {"package", 0, OPTION_FILE, "PACKAGE", KEPT_IN(struct run_command, package),
     "build nothing; use the programs of a package from healcl compile"},
    {"reference", 0, OPTION_FLAG, NULL, KEPT_IN(struct run_command, reference),
     "run on the host reference: plain C, without OpenCL, slow", .decides_device = true},
    {"no-fallback", 0, OPTION_FLAG, NULL, KEPT_IN(struct run_command, no_fallback),
     "refuse what the device cannot run, instead of running it on the host"},
    {"no-verify", 0, OPTION_FLAG, NULL, KEPT_IN(struct run_command, facts.no_verify),
     "run, but do not compare results"},
    {"repeat", 0, OPTION_COUNT, "N", KEPT_IN(struct run_command, repeat),
     "run N times, verify each time, report medians", .most = REPEAT_MAX},
    {"input", 'i', OPTION_INPUT, "ENTRY=FILE", KEPT_IN(struct run_command, live),
     "take an upload's data from a .npy file; results are then not compared. ENTRY is its number "
     "or its tensor's name, or entry:NUMBER or name:NAME; repeatable",
     .take = take_request_input},
    {"requests", 0, OPTION_COUNT, "N", KEPT_IN(struct run_command, served.count),
     "run N requests in one session, as a service does, and print latencies. Only live inputs are "
     "uploaded again: those of --input and --keep, else of segments upload_ct... or of the last "
     "that uploads",
     .most = REPEAT_MAX},
    {"steady", 0, OPTION_COUNT, "N", KEPT_IN(struct run_command, steady.count),
     "also run N requests after the run, and print their latency", .most = REPEAT_MAX},
    {"keep", 0, OPTION_WORD, "SEGMENT", KEPT_IN(struct run_command, live.segments),
     "for requests: only the uploads of this segment stay on the device; repeatable",
     .take = take_word},
    {"audit", 0, OPTION_WORD, "SHARE",
     .help = "for --requests: spend this share of the time, such as 2%, on repeating steps on the "
             "host reference; exit with 1 if one differs (docs/EMBEDDING.md)",
     .take = take_audit},
    {"audit-seed", 0, OPTION_COUNT, "N", KEPT_IN(struct run_command, served.audit.seed),
     "the seed that selects the steps to audit", .most = UINT32_MAX},
    {"no-warmup", 0, OPTION_FLAG, NULL, KEPT_IN(struct run_command, no_warm_up),
     "also count the first run, which compiles kernels"},
    {"junit", 0, OPTION_REPORT, "FILE|-", KEPT_IN(struct command_job, junit),
     "also write JUnit XML, with a test case for each segment"},
    {"trace", 0, OPTION_NEW_FILE, "FILE", KEPT_IN(struct run_command, trace_path),
     "write a timeline for Perfetto (docs/TRACE.md)"},
    {"kernels", 0, OPTION_FLAG, NULL, KEPT_IN(struct run_command, kernels),
     "print each kernel's time, what the device's rates allow, and why a general variant ran"},
    {"dump", 0, OPTION_NEW_FOLDER, "DIR", KEPT_IN(struct run_command, dump_dir),
     "write the results to DIR as .npy files and results.json"},
    JOB_LIMITS,
    {"max-device-memory", 0, OPTION_BYTES, "SIZE", KEPT_IN(struct run_command, device_memory_bytes),
     "allocate at most SIZE on the device; the host keeps the rest"},
    {PASSES_OPTION},
    {"quiet", 'q', OPTION_FLAG, NULL, KEPT_IN(struct command_job, quiet),
     "print only differences and errors"},
    {"verbose", 'v', OPTION_FLAG, NULL, KEPT_IN(struct command_job, verbose),
     "also print times by operation, and an error's source line"},
    JOB_OPTIONS,
};

static int prepare(const struct command *command, void *context)
{
    struct run_command *self = context;
    if (device_is_reference(self->job.selector)) {
        self->reference = true;
        self->job.selector = NULL;
    }
    const char *why = incompatible(self);
    if (why)
        return usage_error(command, "%s", why);
    self->start = monotonic_nanoseconds();
    self->facts.no_verify |= self->live.texts.count > 0; /* the results belong to other inputs */
    self->served.no_verify = self->steady.no_verify = self->facts.no_verify;
    if (self->job.json.path || self->job.junit.path)
        self->facts.differences = xcalloc(DIFFERENCES_KEPT, sizeof *self->facts.differences);
    return GOES_ON;
}

const struct command command_run = {
    .name = "run",
    .summary = "run a transcript on a device and verify every result",
    .help = "Runs a transcript and compares every result that carries an expected tensor. FILE may "
            "be the name of a bundled transcript, such as recognizer.json. If no device is named "
            "and OpenCL has none, the host reference runs it in plain C.",
    .notes = "Exit codes: 0 verified, or nothing to verify; 1 a result differs; 2 wrong usage; 3 "
             "the transcript is refused; 4 the device or OpenCL failed, or memory ran out.",
    .options = options,
    .operands = OPERANDS_FILE,
    .device = DEVICE_HERE,
    .size = sizeof(struct run_command),
    .steps = {.prepare = prepare,
              .work = work,
              .report = report_of_run,
              .print = print_run,
              .junit = print_junit,
              .conclude = conclude,
              .release = release_run},
};
