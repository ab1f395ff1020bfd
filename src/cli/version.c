/* healcl version */
#include "cli/cli.h"
#include "cli/report_file.h"

static int print_version(struct report_file *json)
{
    struct style style = style_of(stdout);
    int code = report_file_begin(json);
    if (code != EXIT_VERIFIED)
        return code;
    if (!json->on_stdout)
        report_version(&style);
    FILE *stream = report_file_stream(json);
    if (stream)
        code = report_file_end(json, report_version_json(stream), false);
    return finish_output(code);
}

/* ---------------------------------------------------------------- options */

enum { OPTION_JSON = 256 };

static const struct option options[] = {{"json", required_argument, NULL, OPTION_JSON},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

static int run(const struct command *command, int argc, char **argv)
{
    struct report_file json = {.path = NULL};
    for (int found; (found = next_option(command, argc, argv)) != -1;) {
        switch (found) {
        case OPTION_JSON: report_file_set(&json, optarg); break;
        case 'h': return print_help(command);
        default: return option_error(command, found, argv);
        }
    }
    int code = no_file(command, argc, argv);
    return code == EXIT_VERIFIED ? print_version(&json) : code;
}

const struct command command_version = {
    .name = "version",
    .summary = "tell the versions of healcl and of what it is built with",
    .help = "Prints the version of healcl, the version of OpenCL that it needs, those of the\n"
            "libraries that are loaded, and the compiler that built it.\n"
            "\n"
            "Usage: healcl version [OPTIONS]\n"
            "\n"
            "      --json FILE|-  write it as JSON too, or with - alone on standard output\n"
            "                     (docs/JSON.md)\n"
            "  -h, --help         this text\n",
    .options = options,
    .run = run,
};
