/* healcl tune */
#include <errno.h>
#include <unistd.h>

#include "cli/command_job.h"
#include "core/file.h"
#include "tools/tune.h"

/* The state of `healcl tune`. */
struct tune_command {
    struct command_job job;
    const char *name; /* name of the one operation or step, or NULL */
    const char *path; /* the file for tunings/, or NULL */
    bool dry_run, force;
    struct device_info info;  /* of the device */
    struct examples examples; /* of manifests */
    struct tune_report report;
    char *kept, *cached_kernels; /* paths of files that store the choice, or NULL */
    struct healcl_error problem; /* of storing it; the measurements are printed anyway */
};

/* ---------------------------------------------------------------- a file for tunings/ */

/* Replaces characters that have a meaning in patterns by wildcards. */
static void add_pattern(cJSON *device, const char *key, const char *text)
{
    char *pattern = xformat("%s", text);
    for (char *at = pattern; *(at += strcspn(at, "*?[\\"));)
        *at++ = '?';
    json_add_string(device, key, pattern);
}

/* Adds the values that differ from the defaults of the device's kind. */
static void add_values(cJSON *object, const struct device_tuning *tuning,
                       const struct device_tuning *usual)
{
    for (int i = 0; i < TUNABLE_COUNT; i++) {
        const char *name = tunable_name((enum tunable)i);
        char text[TUNABLE_TEXT_SIZE], usual_text[TUNABLE_TEXT_SIZE];
        tunable_format(tuning, (enum tunable)i, text);
        tunable_format(usual, (enum tunable)i, usual_text);
        if (strcmp(text, usual_text) == 0)
            continue;
        if (i == TUNABLE_multiply)
            json_add_string(object, name, text);
        else
            json_add_number(object, name, strtoull(text, NULL, 10));
    }
    for (int i = 0; i < FAMILY_COUNT; i++)
        if (tuning->styles[i] != usual->styles[i])
            json_add_string(object, kernel_family_name((enum kernel_family)i),
                            kernel_style_name(tuning->styles[i]));
}

static enum healcl_status save(const struct tune_command *self, struct healcl_error *error)
{
    const struct device_info *info = &self->info;
    const struct device_tuning usual = tuning_default(info);
    struct new_file file;
    TRY(new_file_open(&file, self->path, error));
    cJSON *document = cJSON_CreateObject();
    json_add_string(document, "comment",
                    xformat("measured on %s with driver %s, by healcl tune of healcl %s (%s)",
                            info->name, info->driver, HEALCL_VERSION, healcl_commit()));
    cJSON *device = json_add_object(document, "device");
    add_pattern(device, "vendor", info->vendor);
    add_pattern(device, "architecture", info->architecture);
    add_pattern(device, "name", info->name);
    add_values(json_add_object(document, "tuning"), &self->report.tuning, &usual);
    json_write(document, file.stream);
    return new_file_commit(&file, error);
}

/* ---------------------------------------------------------------- measuring */

static void say(const struct tune_alternative *alternative)
{
    progress_say("measuring %s", alternative->choice);
}

/* Whether any subject is decided: of healcl's own, or of manifests. */
static bool any_is_chosen(const struct tune_report *report, bool of_manifests)
{
    for (size_t i = 0; i < report->count; i++)
        if (report->alternatives[i].chosen &&
            (report->alternatives[i].kernel != NULL) == of_manifests)
            return true;
    return false;
}

static enum healcl_status list(struct tune_command *self, struct healcl_error *error)
{
    const struct operation_table *table = operations_of_options(&self->job.options);
    struct tune_report *report = &self->report;
    if (!self->name || !self->job.options.operations)
        tune_list(&self->info, self->name, report);
    else
        report->tuning = self->job.device->tuning;
    report->choices = self->job.device->programs->choices;
    tune_list_kernels(&self->info, table, &self->examples, self->name, report);
    if (report->count > 0)
        return HEALCL_OK;
    const struct operation *operation =
        self->name && table ? example_operation_find(table, self->name) : NULL;
    if (operation && !example_from(self->examples.first, operation))
        FAIL(
            error, HEALCL_USAGE,
            "no example calls '%s': tune measures with the transcripts in the manifest's examples/",
            self->name);
    FAIL(error, HEALCL_USAGE, "no kernels%s for '%s' have anything to choose from on this device",
         self->job.options.operations ? " of manifests" : "", self->name);
}

/* Adds the choices to those stored by now. Other processes may have tuned other subjects
 * meanwhile. */
static enum healcl_status add_to_kept(struct tune_command *self, struct healcl_error *error)
{
    struct tune_report *report = &self->report;
    tune_read_kept(&self->info, self->name, report);
    for (size_t i = 0; i < report->count; i++)
        if (report->alternatives[i].chosen)
            TRY(tune_choose(&self->info, &report->alternatives[i], report, error));
    if (any_is_chosen(report, false))
        TRY(tuning_cache(&report->tuning, &self->info, &self->kept, error));
    if (any_is_chosen(report, true))
        TRY(kernel_choices_cache(&report->choices, &self->info, &self->cached_kernels, error));
    return HEALCL_OK;
}

/* Stores and saves the choices. */
static enum healcl_status keep(struct tune_command *self, struct healcl_error *error)
{
    struct tune_report *report = &self->report;
    if (!any_is_chosen(report, false) && !any_is_chosen(report, true))
        FAIL(error, HEALCL_DEVICE, "no choice of '%s' gives right results: %s",
             report->alternatives[0].subject, report->alternatives[0].reason);
    const int lock = cache_lock();
    (void)add_to_kept(self, &self->problem);
    if (lock >= 0)
        close(lock);
    if (self->path && save(self, &self->problem) != HEALCL_OK)
        self->path = NULL;
    return HEALCL_OK;
}

/* Checks that the choice can be stored before anything is measured. */
static enum healcl_status check_cache(struct healcl_error *error)
{
    char directory[CACHE_PATH_SIZE];
    if (cache_directory(directory) && !cache_can_write())
        FAIL(error, HEALCL_USAGE, "cannot store a choice in " PATH_FORMAT ": %s", directory,
             strerror(errno));
    return HEALCL_OK;
}

static enum healcl_status tune(void *context, struct healcl_error *error)
{
    struct tune_command *self = context;
    struct command_job *job = &self->job;
    if (!self->dry_run)
        TRY(check_cache(error));
    TRY(examples_read(&self->examples, job->options.operations, error));
    progress_say("opening the device");
    TRY(healcl_device_open(job->selector, &job->device, error));
    self->info = job->device->info;
    TRY(list(self, error));
    if (self->dry_run)
        return HEALCL_OK;
    const struct tune_options options = {.memory_limit = host_memory(),
                                         .force = self->force,
                                         .table = operations_of_options(&job->options),
                                         .examples = &self->examples,
                                         .measuring = say};
    TRY(tune_measure(&job->device, &options, &self->report, error));
    return keep(self, error);
}

/* ---------------------------------------------------------------- JSON */

static void add_alternative(cJSON *object, const struct tune_alternative *alternative)
{
    const bool is_right = alternative->outcome == TUNE_RIGHT;
    JSON_ADD(object, STRING("subject", alternative->subject), STRING("choice", alternative->choice),
             STRING("outcome", tune_outcome_names[alternative->outcome]),
             JSON_IF(is_right, NUMBER("time_ns", (uint64_t)alternative->nanoseconds)),
             JSON_IF(is_right, NUMBER("median_ns", (uint64_t)alternative->median_nanoseconds)),
             TEXT("reason", alternative->reason), FLAG("chosen", alternative->chosen));
}

/* Subjects that were not measured completely. */
static void add_unmeasured(cJSON *document, const struct tune_report *report)
{
    cJSON *list = json_add_array(document, "unmeasured");
    const char *last = NULL;
    for (size_t i = 0; i < report->count; i++) {
        const char *subject = report->alternatives[i].subject;
        if (subject != last && !tune_is_decided(report, subject))
            json_add_string(list, NULL, subject);
        last = subject;
    }
}

static cJSON *report_tune(void *context)
{
    const struct tune_command *self = context;
    const struct tune_report *report = &self->report;
    char text[TUNING_TEXT_SIZE];
    cJSON *document = json_report();
    report_add_device(json_add_object(document, "device"), &self->info);
    cJSON *list = json_add_array(document, "alternatives");
    for (size_t i = 0; i < report->count; i++)
        add_alternative(json_add_object(list, NULL), &report->alternatives[i]);
    if (!self->dry_run)
        add_unmeasured(document, report);
    tuning_format(&report->tuning, text);
    JSON_ADD(document, STRING("tuning", text), STRING("kept", self->kept),
             STRING("kept_kernels", self->cached_kernels),
             STRING("saved", self->dry_run ? NULL : self->path));
    return document;
}

/* ---------------------------------------------------------------- text */

static void print_tune(void *context, const cJSON *document, const struct style *style)
{
    static const struct view_column columns[] = {
        {"subject", "{subject}", 0},
        {"choice", "{choice}", VIEW_SHRINKS},
        {"time", "{time_ns:time}", VIEW_RIGHT | VIEW_BLANK},
        {"spread", "{median_ns/time_ns:+}", VIEW_RIGHT | VIEW_BLANK},
        {"", "{outcome}{chosen=, chosen}", 0},
    };
    const struct tune_command *self = context;
    view_line(style, document, "device", "{device.name}");
    putc('\n', style->stream);
    view_table(style, json_at(document, "alternatives"), columns, self->dry_run ? 2 : 5);
    if (self->dry_run)
        return;
    view_each(style, json_at(document, "alternatives"), "{choice}: {reason}");
    putc('\n', style->stream);
    if (json_number_at(document, "unmeasured") > 0)
        view_line(style, document, "unmeasured", "{unmeasured}: as stored, or the default");
    view_line(style, document, "tuning", "{tuning}");
    view_line(style, document, "kept", "{kept}");
    view_line(style, document, "kept", "{kept_kernels}");
    view_line(style, document, "saved", "{saved}");
    if (!self->kept && !self->cached_kernels)
        report_label(style, "kept", "nowhere: HEALCL_CACHE_DIR");
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {JOB_DEVICE},
    {"op", 0, OPTION_WORD, "NAME", KEPT_IN(struct tune_command, name),
     "tune only the kernels of one operation or one kind of step; without --ops, one of healcl's "
     "own subjects, such as transform"},
    {"save", 0, OPTION_NEW_FILE, "FILE", KEPT_IN(struct tune_command, path),
     "also write the tuning to a file that can be contributed (tunings/README.md)"},
    {"force", 0, OPTION_FLAG, NULL, KEPT_IN(struct tune_command, force),
     "store the choice even if the machine was busy"},
    {"dry-run", 0, OPTION_FLAG, NULL, KEPT_IN(struct tune_command, dry_run),
     "list what would be measured; measure and store nothing"},
    JOB_OPTIONS,
};

static int conclude(void *context, int code)
{
    const int problem = end_error(&((struct tune_command *)context)->problem, false);
    return code == EXIT_VERIFIED ? problem : code;
}

static void release_tune(void *context)
{
    struct tune_command *self = context;
    examples_release(&self->examples);
    free(self->kept);
    free(self->cached_kernels);
}

const struct command command_tune = {
    .name = "tune",
    .summary = "find the fastest kernels for a device, and store the choice",
    .help = "Measures which tunables and styles make kernels fastest on a device, checks their "
            "results against the host reference, and stores the choice for all later runs on this "
            "device and driver.",
    .notes = "The first choice of each subject is the default. Another is taken if it is right and "
             "clearly faster. On a busy machine nothing is stored (exit code 4). The choice is a "
             "file in the cache folder (docs/PORTING.md).",
    .options = options,
    .device = DEVICE_HERE,
    .size = sizeof(struct tune_command),
    .steps = {.work = tune,
              .report = report_tune,
              .print = print_tune,
              .conclude = conclude,
              .release = release_tune},
};
