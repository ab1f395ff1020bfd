/* healcl ops */
#include "cli/cli.h"

static int run(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"markdown", no_argument, NULL, 'm'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    enum { TEXT, JSON, MARKDOWN } kind = TEXT;
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        switch (found) {
        case 'j': kind = JSON; break;
        case 'm': kind = MARKDOWN; break;
        case 'h': return print_help(command);
        default: return option_error(command, found, argv, options);
        }
    }
    int code = no_file(command, argc, argv);
    if (code != EXIT_VERIFIED)
        return code;
    struct style style = style_of(stdout);
    if (kind == JSON)
        code = printed(report_operations_json(stdout));
    else if (kind == MARKDOWN)
        report_operations_markdown(stdout);
    else
        report_operations(&style);
    return finish_output(code);
}

const struct command command_ops = {
    .name = "ops",
    .summary = "list the operations of HEAL and their arguments",
    .help = "Lists the operations that a transcript may name, with every form of their arguments.\n"
            "\n"
            "Usage: healcl ops [--json | --markdown]\n"
            "\n"
            "      --json      as JSON\n"
            "      --markdown  as docs/OPS.md, which tells more\n"
            "  -h, --help      this text\n",
    .run = run,
};
