/* healcl devices */
#include <signal.h>
#include <unistd.h>

#include "cli/command_job.h"

enum { DRIVER_SECONDS = 30, MEASURE_SECONDS = 60 };

struct self_test_result {
    enum self_test_outcome outcome;
    char reason[SELF_TEST_REASON_SIZE]; /* of a failure, or why it could not run */
};

/* One `healcl devices`. */
struct devices_command {
    struct command_job job; /* its timeout: for a child */
    uint32_t measure_seconds;
    bool measures, no_tests;
    struct device_listing listing;
    size_t best;               /* of them; their count: none is */
    struct healcl_error error; /* of listing them, or choosing one */
    struct self_test_result *self_tests;
    struct device_rates *rates; /* NULL: not measured */
    int interrupted;            /* the signal that ended the self-tests, or 0 */
};

/* ---------------------------------------------------------------- listing */

/* In a child. Its parent has the same program: it gets what is in memory. */
static int list_in_child(int file)
{
    struct device_listing listing;
    struct healcl_error error = {.status = HEALCL_OK};
    enum healcl_status status = device_list_all(&opencl_loader, &listing, &error);
    FILE *stream = status == HEALCL_OK ? fdopen(file, "w") : NULL;
    if (stream) {
        (void)fwrite(&listing, sizeof listing, 1, stream);
        (void)fwrite(listing.devices, sizeof *listing.devices, listing.count, stream);
        if (listing.fault_count > 0)
            (void)fwrite(listing.faults, sizeof *listing.faults, listing.fault_count, stream);
        (void)fclose(stream);
    }
    device_listing_release(&listing);
    return end_error(&error, false);
}

/* Takes what a child has written, if that is whole. */
static void take_listing(const struct process_result *child, struct device_listing *listing)
{
    struct device_listing received = {.devices = NULL};
    if (child->size >= sizeof received)
        memcpy(&received, child->text, sizeof received);
    const size_t size = received.count * sizeof *received.devices;
    const size_t fault_size = received.fault_count * sizeof *received.faults;
    if (child->size != sizeof received + size + fault_size)
        return;
    received.devices = memcpy(xmalloc(size), child->text + sizeof received, size);
    received.faults = memcpy(xmalloc(fault_size), child->text + sizeof received + size, fault_size);
    *listing = received;
}

static const struct device_info *subject; /* of a child */

/* Calls a function about a device, or NULL, in a process of its own: a driver may end it, crash or
 * hang there, maybe after all was done. */
static enum healcl_status call_child(struct devices_command *self, int (*function)(int file),
                                     const struct device_info *info, const char *doing,
                                     uint32_t seconds, struct process_result *child,
                                     struct healcl_error *error)
{
    const char *what = xformat("%s %s", info ? info->name : "devices", doing);
    char signal[PROCESS_SIGNAL_SIZE];
    subject = info;
    bool goes_on = true;
    while (goes_on) {
        TRY(process_run(&(const struct process_task){.function = function}, seconds, child, error));
        goes_on = trial_end(!child->is_own && child->end <= PROCESS_KILLED);
        if (goes_on)
            process_result_release(child);
    }
    const char *line = child->last_line, *colon = *line ? ": " : "";
    self->interrupted = child->end == PROCESS_INTERRUPTED ? child->code : 0;
    if (child->is_own || self->interrupted)
        return HEALCL_OK;
    if (child->end == PROCESS_TIMED_OUT)
        FAIL(error, HEALCL_DEVICE, "a driver took more than %u s (--timeout) while %s%s%.500s",
             seconds, what, colon, line);
    if (child->end == PROCESS_KILLED)
        FAIL(error, HEALCL_DEVICE, "a driver crashed while %s: %s%s%.500s%s", what,
             process_signal_name(child->code, signal), colon, line, opencl_missing());
    FAIL(error, HEALCL_DEVICE, "a driver ended the process while %s: exit code %d%s%.500s%s", what,
         child->code, colon, line, opencl_missing());
}

static enum healcl_status list_all(struct devices_command *self)
{
    struct process_result child;
    struct healcl_error *error = &self->error;
    (void)registry_share();
    enum healcl_status status =
        call_child(self, list_in_child, NULL, "were listed", self->job.timeout, &child, error);
    if (self->interrupted)
        (void)raise(self->interrupted);
    self->job.is_of_driver = !child.is_own;
    take_listing(&child, &self->listing);
    if (status == HEALCL_OK && child.code != EXIT_VERIFIED) {
        const bool is_memory = strcmp(last_words(&child), "out of memory") == 0;
        status = ERROR(error, is_memory ? HEALCL_NO_MEMORY : HEALCL_DEVICE, "%.900s",
                       last_words(&child));
    }
    process_result_release(&child);
    return status == HEALCL_OK ? device_listing_check(&self->listing, error) : status;
}

/* ---------------------------------------------------------------- self-tests */

/* Opens the device, which runs its self-test and keeps what comes out. */
static int test_in_child(int file)
{
    struct healcl_device *device = NULL;
    struct healcl_error error = {.status = HEALCL_OK};
    (void)file;
    (void)!healcl_device_open(DEVICE_SELECTOR(subject), &device, &error);
    healcl_device_close(device);
    return end_error(&error, false);
}

/* Takes what a child that ended by itself found. It is cached, unless there is no place for it.
 * Where the environment is wrong nothing was found, and the reason is what the child says of that.
 */
static void take_outcome(struct self_test_result *self_test, const struct device_info *info,
                         const struct process_result *child)
{
    self_test->outcome = self_test_read_cached(info, self_test->reason);
    if (self_test->outcome != SELF_TEST_NOT_RUN)
        return;
    if (child->code == EXIT_VERIFIED)
        self_test->outcome = SELF_TEST_PASSED;
    else {
        if (child->code == EXIT_DEVICE)
            self_test->outcome = SELF_TEST_FAILED;
        snprintf(self_test->reason, SELF_TEST_REASON_SIZE, "%.600s", last_words(child));
    }
}

static void test(struct devices_command *self, const struct device_info *info,
                 struct self_test_result *self_test)
{
    struct process_result child;
    struct healcl_error error = {.status = HEALCL_OK};
    const enum healcl_status status = call_child(self, test_in_child, info, "ran its self-test",
                                                 self->job.timeout, &child, &error);
    if (status != HEALCL_OK) {
        self_test->outcome = SELF_TEST_FAILED;
        snprintf(self_test->reason, SELF_TEST_REASON_SIZE, "%.600s", error.message);
    } else if (!self->interrupted)
        take_outcome(self_test, info, &child);
    process_result_release(&child);
    healcl_error_clear(&error);
}

/* Measures one device, after its self-test, and its kernels, whose rates are cached. What fails is
 * reported, and leaves its rates at 0; of kernels alone it leaves the others. */
static int measure_in_child(int file)
{
    struct device_rates rates = {0};
    struct roofline roofline;
    struct healcl_device *device = NULL;
    struct healcl_error error = {.status = HEALCL_OK};
    enum healcl_status status = healcl_device_open(DEVICE_SELECTOR(subject), &device, &error);
    THEN(status, device_measure(device, false, &rates, &error));
    if (status != HEALCL_OK)
        rates = (struct device_rates){0};
    else if (roofline_measure(device, ROOFLINE_SECONDS, &roofline, NULL) != HEALCL_OK)
        print_notice("%s has no roofline: its kernels cannot be measured", subject->name);
    healcl_device_close(device);
    const int code = end_error(&error, false);
    return write(file, &rates, sizeof rates) == sizeof rates ? code : EXIT_DEVICE;
}

/* A slow one may take minutes. */
static int measure_within(struct devices_command *self, const struct device_info *info,
                          struct device_rates *rates)
{
    struct process_result child;
    const enum healcl_status status = call_child(self, measure_in_child, info, "was measured",
                                                 self->measure_seconds, &child, &self->error);
    self->job.is_of_driver |= !child.is_own;
    if (child.size == sizeof *rates)
        memcpy(rates, child.text, sizeof *rates);
    if (status == HEALCL_OK && *child.last_line)
        print_notice("%.900s", last_words(&child));
    const int code = status == HEALCL_OK ? child.code : print_failure(NULL, &self->error, false);
    process_result_release(&child);
    return code;
}

/* Measures the devices that can be used, or the chosen one. Finds the self-tests of all: what is
 * cached; else what a child finds, unless that is not wanted. Measured devices have passed theirs.
 * Returns an exit code: EXIT_USAGE if self-tests could not run, EXIT_DEVICE if all have failed. */
static int examine_all(struct devices_command *self)
{
    const size_t count = self->listing.count;
    size_t usable = 0, failed = 0;
    int code = EXIT_VERIFIED, measured = EXIT_VERIFIED;
    self->self_tests = xcalloc(count, sizeof *self->self_tests);
    self->rates = self->measures ? xcalloc(count, sizeof *self->rates) : NULL;
    for (size_t i = 0; i < count; i++) {
        const struct device_info *info = &self->listing.devices[i];
        struct self_test_result *self_test = &self->self_tests[i];
        if (device_unusable(info))
            continue;
        usable++;
        progress_say("%s %s", self->measures ? "measuring" : "testing", info->name);
        progress_pause();
        if (self->measures && !self->interrupted && (!self->job.selector || i == self->best)) {
            const int found = measure_within(self, info, &self->rates[i]);
            measured = measured == EXIT_VERIFIED ? found : measured;
        }
        self_test->outcome = self_test_read_cached(info, self_test->reason);
        if (self->measures && self->rates[i].products > 0)
            self_test->outcome = SELF_TEST_PASSED;
        else if (!self->no_tests && !self->measures && !self->interrupted &&
                 self_test->outcome == SELF_TEST_NOT_RUN)
            test(self, info, self_test);
        progress_resume();
        failed += self_test->outcome == SELF_TEST_FAILED;
    }
    progress_end();
    for (size_t i = 0; i < count; i++)
        if (self->self_tests[i].outcome == SELF_TEST_NOT_RUN && *self->self_tests[i].reason) {
            print_notice("%s", self->self_tests[i].reason);
            code = EXIT_USAGE;
        }
    if (measured != EXIT_VERIFIED)
        return measured;
    return code == EXIT_VERIFIED && failed > 0 && failed == usable ? EXIT_DEVICE : code;
}

/* ---------------------------------------------------------------- JSON */

/* Adds limits that a passed self-test has found. */
static void add_findings(cJSON *object, const struct device_info *found)
{
    const bool lacks_hints = found->compiler_limit == COMPILER_NO_HINTS;
    JSON_ADD(
        object, JSON_IF(found->loop_limit > 0, NUMBER("loop_limit", found->loop_limit)),
        JSON_IF(found->compiler_limit != COMPILER_NO_LIMIT,
                STRING("without", lacks_hints ? "cache hints" : "cache hints and optimization")));
    cJSON *ways = found->multiply_wrong ? json_add_array(object, "multiply_wrong") : NULL;
    for (int way = 0; way < MULTIPLY_COUNT; way++)
        if (found->multiply_wrong >> way & 1)
            json_add_string(ways, NULL, multiply_name((enum multiply)way));
    if (found->failed_families == 0)
        return;
    cJSON *families = json_add_array(object, "failed_families");
    for (int family = 0; family < FAMILY_COUNT; family++)
        if (found->failed_families >> family & 1)
            json_add_string(families, NULL, kernel_family_name((enum kernel_family)family));
    json_add_string(object, "family_failure", found->family_failure);
}

/* Adds the tuning and self-test that the device would be opened with. */
static void add_usable(cJSON *object, const struct device_info *info,
                       const struct self_test_result *self_test)
{
    struct device_tuning tuning;
    struct device_info found = *info;
    self_test_take_findings(&found);
    (void)!tuning_of_device(&found, &tuning, NULL); /* opening it tells of a wrong environment */
    report_add_tuning(object, &tuning);
    report_add_self_test(object, self_test->outcome, self_test->reason);
    add_findings(object, &found);
}

static cJSON *report_devices(void *context)
{
    const struct devices_command *self = context;
    const struct device_listing *listing = &self->listing;
    cJSON *document = json_report(), *devices = json_add_array(document, "devices");
    for (size_t i = 0; i < listing->count; i++) {
        const struct device_info *info = &listing->devices[i];
        cJSON *object = json_add_object(devices, NULL);
        const char *fault = device_unusable(info);
        report_add_device(object, info);
        JSON_ADD(object, FLAG("usable", !fault), TEXT("unusable_because", fault));
        if (!fault)
            add_usable(object, info, &self->self_tests[i]);
        const bool is_measured = self->rates && self->rates[i].products > 0;
        JSON_ADD(object, JSON_IF(is_measured, NUMBER("products_per_s", self->rates[i].products)),
                 JSON_IF(is_measured, NUMBER("copied_bytes_per_s", self->rates[i].copied_bytes)),
                 FLAG("default", i == self->best));
    }
    cJSON *faults = listing->fault_count > 0 ? json_add_array(document, "platform_faults") : NULL;
    for (size_t i = 0; i < listing->fault_count; i++) {
        const struct platform_fault *fault = &listing->faults[i];
        JSON_ADD(json_add_object(faults, NULL), NUMBER("index", fault->platform_index),
                 STRING("platform", fault->platform),
                 STRING("error", xformat("%s (%d)", opencl_error_name(fault->code), fault->code)));
    }
    if (self->error.status != HEALCL_OK)
        report_add_error(document, &self->error, self->job.is_of_driver);
    return document;
}

/* ---------------------------------------------------------------- text */

static void print_device_table(void *context, const cJSON *document, const struct style *style)
{
    static const struct view_column columns[] = {
        {"index", "{index}{default= *}{usable! -}", 0},
        {"type", "{type}{emulator=, emulator}", 0},
        {"units", "{compute_units}", VIEW_RIGHT},
        {"memory", "{global_memory:bytes}", VIEW_RIGHT},
        {"OpenCL", "{version:word}", 0},
        {"self-test", "{self_test}", 0},
        {"device", "{name}", VIEW_SHRINKS},
        {"platform", "{platform}", VIEW_SHRINKS},
        {"64x64", "{products_per_s:count}/s", VIEW_RIGHT},
        {"copy", "{copied_bytes_per_s:bytes}/s", VIEW_RIGHT},
    };
    const struct devices_command *self = context;
    const cJSON *list = json_at(document, "devices");
    if (json_number_at(document, "devices") == 0)
        return;
    VIEW_TABLE(style, list, columns);
    putc('\n', style->stream);
    if (json_any(list, "default"))
        fputs("* runs if no device is named\n", style->stream);
    if (json_any(list, "emulator"))
        text_wrap(style->stream,
                  "emulator: software that simulates hardware; runs by default only if no other "
                  "device can",
                  0, 0, style->width);
    if (self->rates)
        text_wrap(style->stream,
                  "64x64: 64-bit products per second, both halves of each; copy: bytes read and "
                  "written per second",
                  0, 0, style->width);
    view_each(style, list, "- {index} is tuned by {tuned_by}");
    view_each(style, list, "- {index}: {tuning_failure}");
    view_each(style, json_at(document, "platform_faults"),
              "- platform {index}[ {platform:?}] cannot be asked for its devices: {error}");
    view_each(style, list, "- {index} cannot be used: {unusable_because}");
    view_each(style, list, "- {self_test_failure}");
    view_each(style, list, "- {index}: multiply={multiply_wrong} is wrong; healcl uses another");
    view_each(style, list, "- {index} is used without {without}, with which its self-test fails");
    view_each(style, list, "- {index}: the host runs {failed_families} ({family_failure})");
}

/* ---------------------------------------------------------------- the whole */

static int print_devices(const struct command *command, struct devices_command *self)
{
    const char *selector = self->job.selector;
    int code = EXIT_VERIFIED;
    enum healcl_status status = list_all(self);
    const size_t count = self->listing.count;
    if (status == HEALCL_OK && !selector && device_is_reference(NULL))
        self->best = count; /* HEALCL_DEVICE names none of them */
    else if (status == HEALCL_OK)
        status = device_select(self->listing.devices, count, selector, &self->best, &self->error);
    if (status != HEALCL_OK) {
        code = print_failure(NULL, &self->error, false);
        self->best = count;
    }
    progress_start(true);
    const int examined = examine_all(self);
    code = code == EXIT_VERIFIED ? examined : code;
    const int reported = job_report(command, self);
    code = finish_output(code == EXIT_VERIFIED ? reported : code);
    if (self->interrupted)
        (void)raise(self->interrupted);
    return code;
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, "SEL", KEPT_IN(struct command_job, selector),
     "mark the device that healcl run would select with this option, and measure only that"},
    {"measure", 0, OPTION_FLAG, NULL, KEPT_IN(struct devices_command, measures),
     "also measure rates of 64-bit products, copied bytes and kernels, which healcl run and healcl "
     "inspect --roofline then use"},
    {"no-self-test", 0, OPTION_FLAG, NULL, KEPT_IN(struct devices_command, no_tests),
     "print what is known; run the self-test only with --measure"},
    {JSON_OPTION},
    {TIMEOUT_OPTION("seconds that drivers may take to list their devices, and each device for its "
                    "self-test (30 by default) and its measurement (60 by default)")},
    {HELP_OPTION},
};

static int run(const struct command *command, void *context)
{
    struct devices_command *self = context;
    self->measure_seconds = self->job.timeout ? self->job.timeout : MEASURE_SECONDS;
    if (self->job.timeout == 0)
        self->job.timeout = DRIVER_SECONDS;
    int code = report_file_begin(&self->job.json);
    if (code == EXIT_VERIFIED)
        code = print_devices(command, self);
    report_file_discard(&self->job.json);
    return code;
}

static void release_devices(void *context)
{
    struct devices_command *self = context;
    device_listing_release(&self->listing);
    healcl_error_clear(&self->error);
    free(self->self_tests);
    free(self->rates);
}

const struct command command_devices = {
    .name = "devices",
    .summary = "list the OpenCL devices and which of them can be used",
    .help = "Lists the OpenCL devices of this machine. Shows whether each can be used, or why not, "
            "and whether it passes the self-test. The self-test runs once for each driver, in a "
            "separate process.",
    .notes = "The marked device runs if none is named: HEALCL_DEVICE selects it, else it is the "
             "best. Emulators come last. Exit code 4: no device can be used, none passes the "
             "self-test, or a driver crashed, hung or ended the process while devices were listed.",
    .options = options,
    .device = DEVICE_IN_CHILDREN,
    .size = sizeof(struct devices_command),
    .run = run,
    .steps = {.report = report_devices, .print = print_device_table, .release = release_devices},
};
