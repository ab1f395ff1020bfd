/* healcl version */
#include "cli/cli.h"
#include "cli/report_file.h"

/* One `healcl version`. */
struct version_command {
    struct report_file json;
};

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
        code = report_file_end(json, report_version_json(stream), code, false);
    return finish_output(code);
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"json", 0, OPTION_REPORT, KEPT_IN(struct version_command, json)}, END_OF_OPTIONS};

static int run(const struct command *command, int argc, char **argv)
{
    struct version_command self = {.json.path = NULL};
    int code = take_arguments(command, argc, argv, &self);
    return code == GOES_ON ? print_version(&self.json) : code;
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
