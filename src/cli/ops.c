/* healcl ops */
#include "cli/cli.h"
#include "cli/report_file.h"

static int list(struct report_file *json, bool markdown, bool kernels)
{
    struct style style = style_of(stdout);
    int code = report_file_begin(json);
    if (code != EXIT_VERIFIED)
        return code;
    if (markdown)
        report_operations_markdown(stdout);
    else if (kernels)
        report_kernels_markdown(stdout);
    else if (!json->on_stdout)
        report_operations(&style);
    FILE *stream = report_file_stream(json);
    if (stream)
        code = report_file_end(json, report_operations_json(stream), false);
    return finish_output(code);
}

/* ---------------------------------------------------------------- options */

enum { OPTION_JSON = 256, OPTION_MARKDOWN, OPTION_KERNELS };

static const struct option options[] = {{"json", required_argument, NULL, OPTION_JSON},
                                        {"markdown", no_argument, NULL, OPTION_MARKDOWN},
                                        {"kernels", no_argument, NULL, OPTION_KERNELS},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

static int run(const struct command *command, int argc, char **argv)
{
    struct report_file json = {.path = NULL};
    bool markdown = false, kernels = false;
    for (int found; (found = next_option(command, argc, argv)) != -1;) {
        switch (found) {
        case OPTION_JSON: report_file_set(&json, optarg); break;
        case OPTION_MARKDOWN: markdown = true; break;
        case OPTION_KERNELS: kernels = true; break;
        case 'h': return print_help(command);
        default: return option_error(command, found, argv);
        }
    }
    int code = no_file(command, argc, argv);
    if (code == EXIT_VERIFIED && markdown + kernels + json.on_stdout > 1)
        code = usage_error(command, "only one report can go to standard output");
    return code == EXIT_VERIFIED ? list(&json, markdown, kernels) : code;
}

const struct command command_ops = {
    .name = "ops",
    .summary = "list the operations of HEAL and their arguments",
    .help =
        "Lists the operations that a transcript may name, with every form of their arguments.\n"
        "\n"
        "Usage: healcl ops [OPTIONS]\n"
        "\n"
        "      --json FILE|-  write it as JSON too, or with - alone on standard output\n"
        "                     (docs/JSON.md)\n"
        "      --markdown     print docs/OPS.md, which tells more\n"
        "      --kernels      print docs/KERNELS.md: which kernels there are, and when they run\n"
        "  -h, --help         this text\n",
    .options = options,
    .run = run,
};
