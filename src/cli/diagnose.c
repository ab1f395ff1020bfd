/* healcl diagnose */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/diagnose_report.h"
#include "cli/progress.h"
#include "cli/report_file.h"
#include "core/new_file.h"
#include "opencl/opening.h"
#include "opencl/self_test.h"
#include "plan/transcript.h"
#include "tools/xmalloc.h"

/* One `healcl diagnose`. */
struct diagnose_command {
    const char *file, *selector, *case_path;
    const struct healcl_operations *operations; /* of manifests, or NULL */
    enum healcl_expand expand;
    struct new_file case_file;
    struct report_file json;
    struct progress progress;
    struct healcl_device *device;
    struct healcl_transcript *transcript;
    struct healcl_error self_test; /* what it said */
    struct diagnosis diagnosis;
};

static void on_progress(void *context, size_t step, size_t step_count)
{
    struct diagnose_command *self = context;
    if (step == step_count)
        progress_say(&self->progress, "the whole run");
    else
        progress_say(&self->progress, "step %zu of %zu", step + 1, step_count);
}

/* Opens what is to be written: looking for the fault may take long. */
static enum healcl_status open_files(struct diagnose_command *self, struct healcl_error *error)
{
    TRY(report_file_open(&self->json, error));
    return self->case_path ? new_file_open(&self->case_file, self->case_path, error) : HEALCL_OK;
}

static enum healcl_status write_case(struct diagnose_command *self, struct healcl_error *error)
{
    const struct failing_case *smallest = &self->diagnosis.smallest;
    if (!self->case_path || !smallest->transcript)
        return HEALCL_OK;
    (void)fwrite(smallest->transcript, 1, smallest->bytes, self->case_file.stream);
    return new_file_commit(&self->case_file, error);
}

/* A device that fails its self-test is looked at nevertheless. */
static enum healcl_status find_fault(struct diagnose_command *self, struct healcl_error *error)
{
    const struct healcl_limits limits = {.memory_bytes = host_memory(),
                                         .operations = self->operations,
                                         .expand = self->expand,
                                         .passes = "none"};
    const struct diagnose_observer observer = {self, on_progress};
    TRY(open_files(self, error));
    progress_say(&self->progress, "reading %s", self->file);
    TRY(healcl_transcript_open(self->file, &limits, &self->transcript, error));
    progress_say(&self->progress, "opening the device");
    TRY(device_open(&opencl_loader, self->selector, &self->device, error));
    if (self_test_run(self->device, &self->self_test) == HEALCL_NO_MEMORY)
        xmalloc_fail();
    return diagnose(self->device, self->transcript, &observer, &self->diagnosis, error);
}

/* What was found is told also where the case cannot be written. */
static int tell(struct diagnose_command *self)
{
    struct healcl_error unwritten = {.status = HEALCL_OK};
    const bool written = write_case(self, &unwritten) == HEALCL_OK;
    const struct style style = style_of(stdout);
    cJSON *document =
        report_diagnosis(self->file, &self->device->info,
                         self->self_test.status != HEALCL_OK ? self->self_test.message : NULL,
                         &self->diagnosis, self->operations, written ? self->case_path : NULL);
    if (!self->json.on_stdout)
        report_diagnosis_text(document, self->diagnosis.kind, &style);
    int code = finish_output(report_file_json(&self->json, document, EXIT_VERIFIED, false));
    if (!written)
        code = print_error(NULL, &unwritten, false);
    healcl_error_clear(&unwritten);
    if (code != EXIT_VERIFIED)
        return code;
    return self->diagnosis.kind == DIAGNOSIS_AGREES ? EXIT_VERIFIED : EXIT_DIFFERENT;
}

static int diagnose_and_tell(struct diagnose_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    progress_start(&self->progress, true);
    enum healcl_status status = find_fault(self, &error);
    progress_end(&self->progress);
    if (status == HEALCL_OK)
        warn_of_device(self->device);
    int code =
        status == HEALCL_OK
            ? tell(self)
            : finish_output(report_files_error(&self->json, NULL, self->file, &error, false));
    healcl_error_clear(&error);
    healcl_error_clear(&self->self_test);
    diagnosis_release(&self->diagnosis);
    healcl_transcript_close(self->transcript);
    healcl_device_close(self->device);
    new_file_discard(&self->case_file);
    report_file_discard(&self->json);
    return code;
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, KEPT_IN(struct diagnose_command, selector)},
    {"expand", 0, OPTION_WORD, KEPT_IN(struct diagnose_command, expand), .take = take_expand},
    OPERATIONS_OPTIONS(struct diagnose_command, operations),
    {"output", 'o', OPTION_NEW_FILE, KEPT_IN(struct diagnose_command, case_path)},
    {"json", 0, OPTION_REPORT, KEPT_IN(struct diagnose_command, json)},
    TIMEOUT_OPTION,
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct diagnose_command self = {.selector = NULL};
    int code = take_arguments(command, argc, argv, &self);
    if (code != GOES_ON)
        return code;
    self.file = argv[optind];
    return diagnose_and_tell(&self);
}

const struct command command_diagnose = {
    .name = "diagnose",
    .summary = "find the first operation that a device gets wrong, and a small case of it",
    .help =
        "Runs a transcript step by step on a device and on the host reference, each step from\n"
        "the reference's state, and names the first one that differs: entry, operation,\n"
        "segment, the layouts of its tensors, and the first wrong element. Then it looks for\n"
        "the smallest part of that step's tensors that the device still gets wrong. Where\n"
        "every step agrees alone, the transcript runs once more as healcl run does, and its\n"
        "expected results are compared.\n"
        "\n"
        "Usage: healcl diagnose [OPTIONS] FILE\n"
        "\n"
        "  -d, --device SEL   the device, as for healcl run; it may fail its self-test\n"
        "      --expand spec|sdk  as for healcl run\n"
        "      --ops DIR      take operations and kernels from the manifests of a folder\n"
        "                     (docs/VENDORS.md); may be repeated\n"
        "      --trust DIR    the same where its manifests may name sources elsewhere,\n"
        "                     and any options of compilers\n"
        "  -o, --output FILE  write the smallest case there, as a transcript with the expected\n"
        "                     result: healcl run shows the fault, a bug report can carry it\n"
        "      --timeout S    give up after S seconds, with exit code 4\n"
        "      --json FILE|-  write it as JSON too, or with - alone on standard output\n"
        "                     (docs/JSON.md)\n"
        "  -h, --help         this text\n"
        "\n"
        "The layouts are those that kernels see: axes of transforms in the order l, r, k, n,\n"
        "and a stride of 0 where elements repeat. Exit code 1: a step, or\n"
        "the whole run, is wrong.\n",
    .options = options,
    .operands = OPERANDS_FILE,
    .device = DEVICE_HERE,
    .run = run,
};
