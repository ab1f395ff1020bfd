/* healcl compile */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "device/self_test.h"
#include "report/text.h"
#include "run/new_file.h"
#include "run/run.h"

/* One `healcl compile`. */
struct session {
    const char *selector, *output;
    char **files;
    int file_count;
    struct progress progress;
    struct healcl_device *device;
    struct package package;
    char tuning[TUNING_TEXT_SIZE];
    const char *file; /* the transcript that is run now, or NULL */
};

/* Runs a transcript, and verifies it: what it builds is what it needs. */
MUST_CHECK static enum healcl_status run_file(struct session *session, const char *file,
                                              struct healcl_error *error)
{
    struct healcl_transcript *transcript = NULL;
    struct healcl_report *report = NULL;
    const struct healcl_run_options options = {.no_warm_up = true, .repeat = 1};
    session->file = file;
    progress_say(&session->progress, "running %s", file);
    enum healcl_status status = healcl_transcript_open(file, NULL, &transcript, error);
    if (status == HEALCL_OK)
        status = healcl_run(transcript, session->device, &options, &report, error);
    if (status == HEALCL_OK && report->verdict == HEALCL_DIFFERS)
        status = ERROR(error, HEALCL_DIFFERENT, "results differ: healcl run tells which");
    healcl_report_free(report);
    healcl_transcript_close(transcript);
    return status;
}

MUST_CHECK static enum healcl_status write_package(struct session *session,
                                                   struct healcl_error *error)
{
    struct new_file file = {.stream = NULL};
    struct package *package = &session->package;
    progress_say(&session->progress, "getting binaries");
    TRY(device_record(session->device, package, error));
    tuning_format(&session->device->tuning, session->tuning);
    package->tuning = session->tuning;
    TRY(new_file_open(&file, session->output, error));
    enum healcl_status status = package_write(package, file.stream, error);
    if (status == HEALCL_OK)
        return new_file_commit(&file, error);
    new_file_discard(&file);
    return status;
}

MUST_CHECK static enum healcl_status compile(struct session *session, struct healcl_error *error)
{
    progress_say(&session->progress, "opening the device");
    TRY(healcl_device_open(session->selector, &session->device, error));
    /* Devices prove themselves from a package. */
    TRY(self_test_run(session->device, error));
    for (int i = 0; i < session->file_count; i++)
        TRY(run_file(session, session->files[i], error));
    session->file = NULL;
    return write_package(session, error);
}

static void tell(const struct session *session)
{
    const struct package *package = &session->package;
    size_t kernels = 0;
    uint64_t bytes = 0;
    char size[UNIT_TEXT_SIZE];
    for (size_t i = 0; i < package->program_count; i++)
        kernels += package->programs[i].kernel_count;
    for (size_t i = 0; i < package->image_count; i++)
        bytes += package->images[i].bytes;
    printf("%s: %zu programs of %zu kernels, binaries of %s, for %s with driver %s\n",
           session->output, package->program_count, kernels, text_bytes(bytes, size),
           package->device, package->driver);
}

static void release(struct session *session)
{
    struct package *package = &session->package;
    for (size_t i = 0; i < package->program_count; i++)
        free(package->programs[i].kernels);
    for (size_t i = 0; i < package->image_count; i++)
        free(package->images[i].data);
    free(package->programs);
    free(package->images);
    healcl_device_close(session->device);
}

static int compile_and_tell(struct session *session)
{
    struct healcl_error error = {.status = HEALCL_OK};
    progress_start(&session->progress, true);
    enum healcl_status status = compile(session, &error);
    progress_end(&session->progress);
    int code = EXIT_VERIFIED;
    if (status == HEALCL_OK)
        tell(session);
    else
        code = print_error(session->file, &error, false);
    healcl_error_clear(&error);
    release(session);
    return finish_output(code);
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, KEPT_IN(selector)},
    {"output", 'o', OPTION_FILE, KEPT_IN(output)},
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct session session = {.selector = NULL};
    int code = take_arguments(command, argc, argv, &session);
    if (code != GOES_ON)
        return code;
    if (!session.output)
        return usage_error(command, "no PACKAGE is named: --output is missing");
    session.files = argv + optind;
    session.file_count = argc - optind;
    return compile_and_tell(&session);
}

const struct command command_compile = {
    .name = "compile",
    .summary = "put all programs that transcripts need into a package",
    .help = "Runs transcripts, verifies them, and writes the binaries of all programs that they\n"
            "needed, with those of the self-test, to one file for healcl run --package: that\n"
            "builds nothing, and works on devices without a compiler (docs/PACKAGES.md).\n"
            "\n"
            "Usage: healcl compile [OPTIONS] --output PACKAGE FILE...\n"
            "\n"
            "  -d, --device SEL      the device, as for healcl run\n"
            "  -o, --output PACKAGE  the file to write\n"
            "  -h, --help            this text\n"
            "\n"
            "A package is for this device with this driver, and for this healcl: its kernels are\n"
            "picked as the device is tuned now.\n",
    .options = options,
    .operands = OPERANDS_FILES,
    .run = run,
};
