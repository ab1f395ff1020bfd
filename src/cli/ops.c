/* healcl ops */
#include "cli/cli.h"
#include "cli/report_file.h"

/* One `healcl ops`. */
struct session {
    struct report_file json;
    bool markdown, kernels;
    const struct healcl_operations *operations; /* of vendors, or NULL */
};

static int list(struct session *session)
{
    struct report_file *json = &session->json;
    struct style style = style_of(stdout);
    const struct operation_table *table = session->operations ? session->operations->table : NULL;
    int code = report_file_begin(json);
    if (code != EXIT_VERIFIED)
        return code;
    if (session->markdown)
        report_operations_markdown(stdout);
    else if (session->kernels)
        report_kernels_markdown(stdout);
    else if (!json->on_stdout)
        report_operations(table, &style);
    FILE *stream = report_file_stream(json);
    if (stream)
        code = report_file_end(json, report_operations_json(table, stream), false);
    return finish_output(code);
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"json", 0, OPTION_REPORT, KEPT_IN(json)},
    {"markdown", 0, OPTION_FLAG, KEPT_IN(markdown)},
    {"kernels", 0, OPTION_FLAG, KEPT_IN(kernels)},
    {"ops", 0, OPTION_FOLDER, KEPT_IN(operations), .take = take_operations},
    {"trust", 0, OPTION_FOLDER, KEPT_IN(operations), .take = take_operations},
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct session session = {.markdown = false};
    int code = take_arguments(command, argc, argv, &session);
    if (code != GOES_ON)
        return code;
    if (session.markdown + session.kernels + session.json.on_stdout > 1)
        return usage_error(command, "only one report can go to standard output");
    return list(&session);
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
        "      --ops DIR      add those of the manifests of a folder (docs/VENDORS.md); "
        "repeatable\n"
        "      --trust DIR    the same where its manifests may name sources elsewhere,\n"
        "                     and any options of compilers\n"
        "  -h, --help         this text\n",
    .options = options,
    .run = run,
};
