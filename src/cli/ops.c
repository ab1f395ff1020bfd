/* healcl ops */
#include "cli/cli.h"
#include "cli/report_file.h"

/* One `healcl ops`. */
struct ops_command {
    struct report_file json;
    const struct healcl_operations *operations; /* of vendors, or NULL */
};

static int tell(struct ops_command *self)
{
    const struct style style = style_of(stdout);
    cJSON *document = report_operations(self->operations ? self->operations->table : NULL);
    if (!self->json.on_stdout)
        report_operations_text(document, &style);
    return report_file_json(&self->json, document, EXIT_VERIFIED, false);
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
    OPERATIONS_OPTIONS(struct ops_command, operations),
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct ops_command self = {.operations = NULL};
    int code = take_arguments(command, argc, argv, &self);
    return code == GOES_ON ? list(&self) : code;
}

const struct command command_ops = {
    .name = "ops",
    .summary = "list the operations of HEAL and their arguments",
    .help = "Lists the operations that a transcript may name, with every form of their arguments.\n"
            "\n"
            "Usage: healcl ops [OPTIONS]\n"
            "\n"
            "      --timeout S    give up after S seconds, with exit code 4\n"
            "      --json FILE|-  write it as JSON too, or with - alone on standard output\n"
            "                     (docs/JSON.md)\n"
            "      --ops DIR      add those of the manifests of a folder (docs/VENDORS.md); "
            "repeatable\n"
            "      --trust DIR    the same where its manifests may name sources elsewhere,\n"
            "                     and any options of compilers\n"
            "  -h, --help         this text\n",
    .options = options,
    .run = run,
};
