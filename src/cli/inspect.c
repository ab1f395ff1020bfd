/* healcl inspect */
#include "cli/cli.h"
#include "plan/transcript.h"

struct inspection {
    const char *file;
    bool json, verbose;
    struct healcl_limits limits;
};

static int inspect(const struct inspection *inspection)
{
    struct healcl_transcript *transcript;
    struct healcl_error error = {.status = HEALCL_OK};
    int code;
    if (healcl_transcript_open(inspection->file, &inspection->limits, &transcript, &error) !=
        HEALCL_OK) {
        /* Where a file cannot be read the message names it itself. */
        code = print_error(error.status == HEALCL_USAGE ? NULL : inspection->file, &error,
                           inspection->verbose);
        if (inspection->json)
            (void)printed(report_error_json(inspection->file, &error, stdout));
        healcl_error_clear(&error);
        return finish_output(code);
    }
    struct style style = style_of(stdout);
    if (inspection->json)
        code = printed(report_plan_json(inspection->file, transcript->plan, stdout));
    else
        code = printed(report_plan(inspection->file, transcript->plan, &style));
    healcl_transcript_close(transcript);
    return finish_output(code);
}

static int run(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"memory-limit", required_argument, NULL, 'm'},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct inspection inspection = {.json = false};
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, ":vh", options, NULL)) != -1;) {
        switch (found) {
        case 'j': inspection.json = true; break;
        case 'v': inspection.verbose = true; break;
        case 'm':
            if (!parse_size(optarg, &inspection.limits.memory_bytes))
                return usage_error(command, "'%s' is no size such as 512M", optarg);
            break;
        case 'h': return print_help(command);
        default: return option_error(command, found, argv, options);
        }
    }
    int code = one_file(command, argc, argv, &inspection.file);
    return code == EXIT_VERIFIED ? inspect(&inspection) : code;
}

const struct command command_inspect = {
    .name = "inspect",
    .summary = "check a transcript and show what it holds, without a device",
    .help =
        "Checks a transcript as a run would, and prints its segments, operations, tensors, the\n"
        "bytes that go up and down, and the most memory that its tensors take at one time.\n"
        "\n"
        "Usage: healcl inspect [OPTIONS] FILE\n"
        "\n"
        "      --json               as JSON (docs/JSON.md)\n"
        "      --memory-limit SIZE  refuse tensors that together take more: bytes, or with a\n"
        "                           suffix K, M, G or T; no limit by default\n"
        "  -v, --verbose            add the place in healcl's source to an error\n"
        "  -h, --help               this text\n"
        "\n"
        "Exit codes: 0, 2 wrong usage, 3 the transcript is refused, 4 out of memory.\n",
    .run = run,
};
