/* healcl devices */
#include <stdlib.h>

#include "cli/cli.h"

static int print_devices(bool json)
{
    struct device_info *list = NULL;
    size_t count = 0, best = 0;
    struct healcl_error error = {.status = HEALCL_OK};
    int code = EXIT_VERIFIED;
    if (device_list(&opencl_loader, &list, &count, &error) != HEALCL_OK ||
        device_select(list, count, NULL, &best, &error) != HEALCL_OK) {
        code = print_error(NULL, &error, false);
        healcl_error_clear(&error);
        best = count;
    }
    struct style style = style_of(stdout);
    if (json) {
        int json_code = printed(report_devices_json(list, count, best, stdout));
        code = code == EXIT_VERIFIED ? json_code : code;
    } else if (count > 0) {
        int text_code = printed(report_devices(list, count, best, &style));
        code = code == EXIT_VERIFIED ? text_code : code;
    }
    free(list);
    return finish_output(code);
}

static int run(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    bool json = false;
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        switch (found) {
        case 'j': json = true; break;
        case 'h': return print_help(command);
        default: return option_error(command, found, argv, options);
        }
    }
    int code = no_file(command, argc, argv);
    return code == EXIT_VERIFIED ? print_devices(json) : code;
}

const struct command command_devices = {
    .name = "devices",
    .summary = "list the OpenCL devices and which of them can be used",
    .help = "Lists the OpenCL devices of this machine, and whether or why not they can be used.\n"
            "\n"
            "Usage: healcl devices [--json]\n"
            "\n"
            "      --json  as JSON (docs/JSON.md)\n"
            "  -h, --help  this text\n"
            "\n"
            "The device that is marked runs where none is named: the one that the environment's\n"
            "HEALCL_DEVICE selects, else the best. Exit code 4: there is none.\n",
    .run = run,
};
