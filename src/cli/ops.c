/* healcl ops */
#include "cli/cli.h"
#include "cli/report_file.h"
#include "device/device.h"
#include "run/run.h"

/* One `healcl ops`. */
struct session {
    struct report_file json;
    bool markdown, kernels;
    const struct healcl_operations *operations; /* of vendors, or NULL */
    const char *selector;                       /* of the device that is asked; NULL: none is */
    struct healcl_device *device;               /* or NULL */
};

static const struct operation_table *table_of(const struct session *session)
{
    return session->operations ? session->operations->table : NULL;
}

MUST_CHECK static enum healcl_status open_all(struct session *session, struct healcl_error *error)
{
    TRY(report_file_open(&session->json, error));
    if (!session->selector)
        return HEALCL_OK;
    TRY(healcl_device_open(session->selector, &session->device, error));
    return executor_check_lacks(table_of(session), session->device, error);
}

static int tell(struct session *session)
{
    struct report_file *json = &session->json;
    struct style style = style_of(stdout);
    if (session->markdown)
        report_operations_markdown(stdout);
    else if (session->kernels)
        report_kernels_markdown(stdout);
    else if (!json->on_stdout)
        report_operations(table_of(session), &style);
    FILE *stream = report_file_stream(json);
    if (!stream)
        return EXIT_VERIFIED;
    enum healcl_status status = report_operations_json(table_of(session), session->device, stream);
    return report_file_end(json, status, false);
}

static int list(struct session *session)
{
    struct healcl_error error = {.status = HEALCL_OK};
    int code = open_all(session, &error) == HEALCL_OK
                   ? tell(session)
                   : report_files_error(&session->json, NULL, NULL, &error, false);
    healcl_error_clear(&error);
    healcl_device_close(session->device);
    report_file_discard(&session->json);
    return finish_output(code);
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"json", 0, OPTION_REPORT, KEPT_IN(json)},
    {"device", 'd', OPTION_DEVICE, KEPT_IN(selector)},
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
    if (session.selector && !session.json.path)
        return usage_error(command, "--device goes with --json");
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
        "  -d, --device SEL   with --json: add what runs each operation on that device, kernels "
        "or\n"
        "                     the host\n"
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
