/* healcl inspect */
#include "cli/cli.h"
#include "cli/report_file.h"
#include "plan/transcript.h"

struct inspection {
    const char *file;
    struct report_file json;
    const char *selector; /* of the device; NULL: none was named */
    bool verbose, kernels;
    struct healcl_limits limits;
    struct healcl_transcript *transcript;
    struct healcl_device *device; /* only for its kernels */
};

MUST_CHECK static enum healcl_status open_all(struct inspection *inspection,
                                              struct healcl_error *error)
{
    TRY(report_file_open(&inspection->json, error));
    TRY(healcl_transcript_open(inspection->file, &inspection->limits, &inspection->transcript,
                               error));
    return inspection->kernels
               ? healcl_device_open(inspection->selector, &inspection->device, error)
               : HEALCL_OK;
}

static int tell(struct inspection *inspection)
{
    const struct plan *plan = inspection->transcript->plan;
    struct style style = style_of(stdout);
    int code = EXIT_VERIFIED;
    if (!inspection->json.on_stdout)
        code = printed(report_plan(inspection->file, plan, &style));
    if (!inspection->json.on_stdout && inspection->device && code == EXIT_VERIFIED)
        code = printed(report_kernels(plan, inspection->device, &style));
    FILE *stream = report_file_stream(&inspection->json);
    if (!stream)
        return code;
    int json_code = report_file_end(
        &inspection->json, report_plan_json(inspection->file, plan, inspection->device, stream),
        inspection->verbose);
    return code == EXIT_VERIFIED ? json_code : code;
}

static int inspect(struct inspection *inspection)
{
    struct healcl_error error = {.status = HEALCL_OK};
    int code = open_all(inspection, &error) == HEALCL_OK
                   ? tell(inspection)
                   : report_files_error(&inspection->json, NULL, inspection->file, &error,
                                        inspection->verbose);
    healcl_error_clear(&error);
    healcl_device_close(inspection->device);
    healcl_transcript_close(inspection->transcript);
    report_file_discard(&inspection->json);
    return finish_output(code);
}

/* ---------------------------------------------------------------- options */

enum { OPTION_JSON = 256, OPTION_KERNELS, OPTION_LIMIT, OPTION_WORK };

static const struct option options[] = {{"device", required_argument, NULL, 'd'},
                                        {"kernels", no_argument, NULL, OPTION_KERNELS},
                                        {"json", required_argument, NULL, OPTION_JSON},
                                        {"memory-limit", required_argument, NULL, OPTION_LIMIT},
                                        {"work-limit", required_argument, NULL, OPTION_WORK},
                                        {"verbose", no_argument, NULL, 'v'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

static int run(const struct command *command, int argc, char **argv)
{
    struct inspection inspection = {.file = NULL};
    for (int found; (found = next_option(command, argc, argv)) != -1;) {
        switch (found) {
        case OPTION_JSON: report_file_set(&inspection.json, optarg); break;
        case 'd': inspection.selector = optarg; break;
        case OPTION_KERNELS: inspection.kernels = true; break;
        case 'v': inspection.verbose = true; break;
        case OPTION_LIMIT:
            if (!parse_size(optarg, &inspection.limits.memory_bytes))
                return usage_error(command, "'%s' is no size such as 512M", optarg);
            break;
        case OPTION_WORK:
            if (!parse_size(optarg, &inspection.limits.work))
                return usage_error(command, "'%s' is no number such as 4T", optarg);
            break;
        case 'h': return print_help(command);
        default: return option_error(command, found, argv);
        }
    }
    int code = one_file(command, argc, argv, &inspection.file);
    if (inspection.selector && !inspection.kernels)
        return usage_error(command, "--device goes with --kernels");
    return code == EXIT_VERIFIED ? inspect(&inspection) : code;
}

const struct command command_inspect = {
    .name = "inspect",
    .summary = "check a transcript and show what it holds",
    .help =
        "Checks a transcript as a run would, and prints its segments, operations, tensors, the\n"
        "bytes that go up and down, and the most memory that its tensors take at one time.\n"
        "\n"
        "Usage: healcl inspect [OPTIONS] FILE\n"
        "\n"
        "      --kernels            show which kernels a device runs its steps with, and why not\n"
        "                           others; nothing is run\n"
        "  -d, --device SEL         that device, as for healcl run\n"
        "      --json FILE|-        write it as JSON too, or with - alone on standard output\n"
        "                           (docs/JSON.md)\n"
        "      --memory-limit SIZE  refuse tensors that together take more: bytes, or with a\n"
        "                           suffix K, M, G or T; no limit by default\n"
        "      --work-limit N       refuse an operation that visits more elements; with a suffix\n"
        "                           K, M, G or T; 4T, 2^42, by default\n"
        "  -v, --verbose            add the place in healcl's source to an error\n"
        "  -h, --help               this text\n"
        "\n"
        "Exit codes: 0, 2 wrong usage, 3 the transcript is refused, 4 out of memory, or the "
        "device\n"
        "of --kernels failed.\n",
    .options = options,
    .operands = OPERANDS_FILE,
    .run = run,
};
