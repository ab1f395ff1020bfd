/* healcl tune */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/report_file.h"
#include "cli/tune_report.h"
#include "opencl/opening.h"
#include "tools/xmalloc.h"

/* One `healcl tune`. */
struct tune_command {
    const char *selector, *name;                /* of the one operation or step, or NULL */
    const struct healcl_operations *operations; /* of manifests, or NULL */
    struct report_file json;
    bool dry_run, force;
    struct progress progress;
    struct healcl_device *device;
    struct device_info info;  /* of the device */
    struct examples examples; /* of manifests */
    struct tune_report report;
    char *kept, *kept_kernels; /* paths */
};

/* ---------------------------------------------------------------- measuring */

static void say(void *context, const struct tune_alternative *alternative)
{
    struct tune_command *self = context;
    progress_say(&self->progress, "measuring %s", alternative->choice);
}

/* Whether any of the subjects is decided that are healcl's own, or of manifests. */
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
    const struct operation_table *table = self->operations ? self->operations->table : NULL;
    struct tune_report *report = &self->report;
    if (!self->name || !self->operations)
        tune_list(&self->info, self->name, report);
    else
        report->tuning = self->device->tuning;
    report->choices = self->device->programs->choices;
    tune_list_kernels(&self->info, table, &self->examples, self->name, report);
    if (report->count == 0)
        FAIL(error, HEALCL_USAGE,
             "no kernels%s for '%s' have anything to choose from on this device",
             self->operations ? " of manifests" : "", self->name);
    return HEALCL_OK;
}

/* Keeps what was chosen. */
static enum healcl_status keep(struct tune_command *self, struct healcl_error *error)
{
    const struct tune_report *report = &self->report;
    const bool any = any_is_chosen(report, false), any_kernel = any_is_chosen(report, true);
    if (!any && !any_kernel)
        FAIL(error, HEALCL_DEVICE, "no choice of '%s' gives right results: %s",
             report->alternatives[0].subject, report->alternatives[0].reason);
    if (any)
        TRY(tuning_keep(&report->tuning, &self->info, &self->kept, error));
    if (any_kernel)
        TRY(kernel_choices_keep(&report->choices, &self->info, &self->kept_kernels, error));
    return HEALCL_OK;
}

static enum healcl_status tune(struct tune_command *self, struct healcl_error *error)
{
    TRY(report_file_open(&self->json, error));
    TRY(examples_read(&self->examples, self->operations, error));
    progress_say(&self->progress, "opening the device");
    TRY(healcl_device_open(self->selector, &self->device, error));
    self->info = self->device->info;
    TRY(list(self, error));
    if (self->dry_run)
        return HEALCL_OK;
    const struct tune_options options = {.memory_limit = host_memory(),
                                         .force = self->force,
                                         .table = self->operations ? self->operations->table : NULL,
                                         .examples = &self->examples,
                                         .measuring = say,
                                         .context = self};
    TRY(tune_measure(&self->device, &options, &self->report, error));
    return keep(self, error);
}

/* ---------------------------------------------------------------- telling */

static int tell(struct tune_command *self)
{
    const struct style style = style_of(stdout);
    cJSON *document =
        report_tune(&self->info, &self->report, !self->dry_run, self->kept, self->kept_kernels);
    if (!self->json.on_stdout)
        report_tune_text(document, &style);
    return report_file_json(&self->json, document, EXIT_VERIFIED, false);
}

static int tune_and_tell(struct tune_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    progress_start(&self->progress, true);
    enum healcl_status status = tune(self, &error);
    progress_end(&self->progress);
    if (status == HEALCL_OK)
        warn_of_device(self->device);
    int code = status == HEALCL_OK ? tell(self)
                                   : report_files_error(&self->json, NULL, NULL, &error, false);
    healcl_error_clear(&error);
    examples_release(&self->examples);
    healcl_device_close(self->device);
    report_file_discard(&self->json);
    free(self->kept);
    free(self->kept_kernels);
    return finish_output(code);
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, KEPT_IN(struct tune_command, selector)},
    {"op", 0, OPTION_WORD, KEPT_IN(struct tune_command, name)},
    OPERATIONS_OPTIONS(struct tune_command, operations),
    {"json", 0, OPTION_REPORT, KEPT_IN(struct tune_command, json)},
    TIMEOUT_OPTION,
    {"dry-run", 0, OPTION_FLAG, KEPT_IN(struct tune_command, dry_run)},
    {"force", 0, OPTION_FLAG, KEPT_IN(struct tune_command, force)},
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct tune_command *self = xcalloc(1, sizeof *self); /* too large for the stack */
    int code = take_arguments(command, argc, argv, self);
    if (code == GOES_ON)
        code = tune_and_tell(self);
    free(self);
    return code;
}

const struct command command_tune = {
    .name = "tune",
    .summary = "find the fastest kernels for a device, and keep the choice",
    .help =
        "Measures how kernels are best shaped on a device, checks their results against the\n"
        "host reference, and keeps the choice for all later runs on this device and driver.\n"
        "\n"
        "Usage: healcl tune [OPTIONS]\n"
        "\n"
        "  -d, --device SEL         the device, as for healcl run\n" OPERATIONS_HELP
        "      --op NAME            only those for one operation, or one kind of step; without "
        "--ops\n"
        "                           one subject of healcl's own, such as transform\n"
        "      --force              keep the choice however busy the machine was\n"
        "      --dry-run            list what would be measured; measure and keep nothing\n"
        "      --timeout S          give up after S seconds, with exit code 4\n"
        "      --json FILE|-        write it as JSON too, or with - alone on standard output\n"
        "                           (docs/JSON.md)\n"
        "  -h, --help               this text\n"
        "\n"
        "The first choice of each subject is the default; another one is taken where it is\n"
        "clearly faster, and never one that is wrong or fails. On a busy machine nothing is kept\n"
        "(exit code 4). The choice is a file in the cache folder: without it the default is\n"
        "back (docs/PORTING.md).\n",
    .options = options,
    .device = DEVICE_HERE,
    .run = run,
};
