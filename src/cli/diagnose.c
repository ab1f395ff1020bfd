/* healcl diagnose */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/report_file.h"
#include "core/new_file.h"
#include "device/self_test.h"
#include "plan/transcript.h"
#include "report/diagnosis.h"

/* One `healcl diagnose`. */
struct session {
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
    struct session *session = context;
    if (step == step_count)
        progress_say(&session->progress, "the whole run");
    else
        progress_say(&session->progress, "step %zu of %zu", step + 1, step_count);
}

/* Opens what is to be written: looking for the fault may take long. */
MUST_CHECK static enum healcl_status open_files(struct session *session, struct healcl_error *error)
{
    TRY(report_file_open(&session->json, error));
    return session->case_path ? new_file_open(&session->case_file, session->case_path, error)
                              : HEALCL_OK;
}

MUST_CHECK static enum healcl_status write_case(struct session *session, struct healcl_error *error)
{
    const struct failing_case *smallest = &session->diagnosis.smallest;
    if (!session->case_path || !smallest->transcript)
        return HEALCL_OK;
    (void)fwrite(smallest->transcript, 1, smallest->bytes, session->case_file.stream);
    return new_file_commit(&session->case_file, error);
}

/* A device that fails its self-test is looked at nevertheless. */
MUST_CHECK static enum healcl_status find_fault(struct session *session, struct healcl_error *error)
{
    const struct healcl_limits limits = {.memory_bytes = host_memory(),
                                         .operations = session->operations,
                                         .expand = session->expand,
                                         .passes = "none"};
    const struct diagnose_observer observer = {session, on_progress};
    TRY(open_files(session, error));
    progress_say(&session->progress, "reading %s", session->file);
    TRY(healcl_transcript_open(session->file, &limits, &session->transcript, error));
    progress_say(&session->progress, "opening the device");
    TRY(device_open(&opencl_loader, session->selector, &session->device, error));
    if (self_test_run(session->device, &session->self_test) == HEALCL_NO_MEMORY)
        NO_MEMORY(error);
    return diagnose(session->device, session->transcript, &observer, &session->diagnosis, error);
}

static int write_json(struct session *session, const struct diagnosis_facts *facts)
{
    FILE *stream = report_file_stream(&session->json);
    if (!stream)
        return EXIT_VERIFIED;
    return report_file_end(&session->json, report_diagnosis_json(facts, stream), false);
}

/* What was found is told also where the case cannot be written. */
static int tell(struct session *session)
{
    const bool failed = session->self_test.status != HEALCL_OK;
    struct healcl_error unwritten = {.status = HEALCL_OK};
    const bool written = write_case(session, &unwritten) == HEALCL_OK;
    const struct diagnosis_facts facts = {.file = session->file,
                                          .device = &session->device->info,
                                          .self_test_failure =
                                              failed ? session->self_test.message : NULL,
                                          .diagnosis = &session->diagnosis,
                                          .operations = session->operations,
                                          .case_path = written ? session->case_path : NULL};
    struct style style = style_of(stdout);
    if (!session->json.on_stdout)
        report_diagnosis(&facts, &style);
    int code = finish_output(write_json(session, &facts));
    if (!written)
        code = print_error(NULL, &unwritten, false);
    healcl_error_clear(&unwritten);
    if (code != EXIT_VERIFIED)
        return code;
    return session->diagnosis.kind == DIAGNOSIS_AGREES ? EXIT_VERIFIED : EXIT_DIFFERENT;
}

static int diagnose_and_tell(struct session *session)
{
    struct healcl_error error = {.status = HEALCL_OK};
    progress_start(&session->progress, true);
    enum healcl_status status = find_fault(session, &error);
    progress_end(&session->progress);
    if (status == HEALCL_OK)
        warn_of_arguments(session->device);
    int code =
        status == HEALCL_OK
            ? tell(session)
            : finish_output(report_files_error(&session->json, NULL, session->file, &error, false));
    healcl_error_clear(&error);
    healcl_error_clear(&session->self_test);
    diagnosis_release(&session->diagnosis);
    healcl_transcript_close(session->transcript);
    healcl_device_close(session->device);
    new_file_discard(&session->case_file);
    report_file_discard(&session->json);
    return code;
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, KEPT_IN(selector)},
    {"expand", 0, OPTION_WORD, KEPT_IN(expand), .take = take_expand},
    {"ops", 0, OPTION_FOLDER, KEPT_IN(operations), .take = take_operations},
    {"trust", 0, OPTION_FOLDER, KEPT_IN(operations), .take = take_operations},
    {"output", 'o', OPTION_FILE, KEPT_IN(case_path)},
    {"json", 0, OPTION_REPORT, KEPT_IN(json)},
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct session session = {.selector = NULL};
    int code = take_arguments(command, argc, argv, &session);
    if (code != GOES_ON)
        return code;
    session.file = argv[optind];
    return diagnose_and_tell(&session);
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
        "      --json FILE|-  write it as JSON too, or with - alone on standard output\n"
        "                     (docs/JSON.md)\n"
        "  -h, --help         this text\n"
        "\n"
        "The layouts are those that kernels see: axes of transforms in the order l, r, k, n,\n"
        "and a stride of 0 where elements repeat. Exit code 1: a step, or\n"
        "the whole run, is wrong.\n",
    .options = options,
    .operands = OPERANDS_FILE,
    .run = run,
};
