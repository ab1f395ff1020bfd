/* healcl ops */
#include "cli/cli.h"
#include "cli/report_file.h"

/* One `healcl ops`. */
struct ops_command {
    struct report_file json;
    bool markdown, kernels, porting;
    const struct healcl_operations *operations; /* of vendors, or NULL */
};

static const struct operation_table *table_of(const struct ops_command *self)
{
    return self->operations ? self->operations->table : NULL;
}

static int tell(struct ops_command *self)
{
    struct style style = style_of(stdout);
    if (self->markdown)
        report_operations_markdown(stdout);
    else if (self->kernels)
        report_kernels_markdown(stdout);
    else if (self->porting)
        report_porting_markdown(stdout);
    else if (!self->json.on_stdout)
        report_operations(table_of(self), &style);
    FILE *stream = report_file_stream(&self->json);
    return stream ? report_file_end(&self->json, report_operations_json(table_of(self), stream),
                                    EXIT_VERIFIED, false)
                  : EXIT_VERIFIED;
}

static int list(struct ops_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    int code = report_file_open(&self->json, &error) == HEALCL_OK
                   ? tell(self)
                   : report_files_error(&self->json, NULL, NULL, &error, false);
    healcl_error_clear(&error);
    report_file_discard(&self->json);
    return finish_output(code);
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"json", 0, OPTION_REPORT, KEPT_IN(struct ops_command, json)},
    TIMEOUT_OPTION,
    {"markdown", 0, OPTION_FLAG, KEPT_IN(struct ops_command, markdown)},
    {"kernels", 0, OPTION_FLAG, KEPT_IN(struct ops_command, kernels)},
    {"porting", 0, OPTION_FLAG, KEPT_IN(struct ops_command, porting)},
    OPERATIONS_OPTIONS(struct ops_command, operations),
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct ops_command self = {.markdown = false};
    int code = take_arguments(command, argc, argv, &self);
    if (code != GOES_ON)
        return code;
    if (self.markdown + self.kernels + self.porting + self.json.on_stdout > 1)
        return usage_error(command, "only one report can go to standard output");
    return list(&self);
}

const struct command command_ops = {
    .name = "ops",
    .summary = "list the operations of HEAL and their arguments",
    .help =
        "Lists the operations that a transcript may name, with every form of their arguments.\n"
        "\n"
        "Usage: healcl ops [OPTIONS]\n"
        "\n"
        "      --timeout S    give up after S seconds, with exit code 4\n"
        "      --json FILE|-  write it as JSON too, or with - alone on standard output\n"
        "                     (docs/JSON.md)\n"
        "      --markdown     print docs/OPS.md, which tells more\n"
        "      --kernels      print docs/KERNELS.md: which kernels there are, and when they run\n"
        "      --porting      print the tables of docs/PORTING.md: environment and tunables\n"
        "      --ops DIR      add those of the manifests of a folder (docs/VENDORS.md); "
        "repeatable\n"
        "      --trust DIR    the same where its manifests may name sources elsewhere,\n"
        "                     and any options of compilers\n"
        "  -h, --help         this text\n",
    .options = options,
    .run = run,
};
