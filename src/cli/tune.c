/* healcl tune */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/json_output.h"
#include "cli/progress.h"
#include "report/tune.h"

/* One `healcl tune`. */
struct session {
    const char *selector;
    struct json_output json;
    bool dry_run;
    struct progress progress;
    struct healcl_device *device;
    struct device_info info; /* of the device */
    struct tune_report report;
    char *kept; /* path */
};

/* ---------------------------------------------------------------- measuring */

static void say(void *context, const struct tune_alternative *alternative)
{
    struct session *session = context;
    progress_say(&session->progress, "measuring %s", alternative->choice);
}

MUST_CHECK static enum healcl_status open_device(struct session *session,
                                                 struct healcl_error *error)
{
    progress_say(&session->progress, "opening the device");
    TRY(healcl_device_open(session->selector, &session->device, error));
    session->info = session->device->info;
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status tune(struct session *session, struct healcl_error *error)
{
    TRY(json_output_open(&session->json, error));
    TRY(open_device(session, error));
    tune_list(&session->info, &session->report);
    if (session->dry_run)
        return HEALCL_OK;
    struct tune_options options = {
        .memory_limit = host_memory(), .measuring = say, .context = session};
    TRY(tune_measure(&session->device, &options, &session->report, error));
    return tuning_keep(&session->report.tuning, &session->info, &session->kept, error);
}

/* ---------------------------------------------------------------- telling */

static int write_json(struct session *session, const struct tune_facts *facts)
{
    FILE *stream = json_output_stream(&session->json);
    if (!stream)
        return EXIT_VERIFIED;
    return json_output_end(&session->json, report_tune_json(facts, stream), false);
}

static int tell(struct session *session)
{
    struct style style = style_of(stdout);
    struct tune_facts facts = {.device = &session->info,
                               .report = &session->report,
                               .measured = !session->dry_run,
                               .kept = session->kept};
    int code = session->json.on_stdout ? EXIT_VERIFIED : printed(report_tune(&facts, &style));
    int json_code = write_json(session, &facts);
    return finish_output(code == EXIT_VERIFIED ? json_code : code);
}

static int tune_and_tell(struct session *session)
{
    struct healcl_error error = {.status = HEALCL_OK};
    progress_start(&session->progress, true);
    enum healcl_status status = tune(session, &error);
    progress_end(&session->progress);
    int code = status == HEALCL_OK
                   ? tell(session)
                   : finish_output(json_output_error(&session->json, NULL, &error, false));
    healcl_error_clear(&error);
    healcl_device_close(session->device);
    json_output_discard(&session->json);
    free(session->kept);
    return code;
}

/* ---------------------------------------------------------------- options */

enum { OPTION_JSON = 256, OPTION_DRY_RUN };

static const struct option options[] = {
    {"device", required_argument, NULL, 'd'},
    {"json", required_argument, NULL, OPTION_JSON},
    {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int run(const struct command *command, int argc, char **argv)
{
    struct session session = {.selector = NULL};
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, ":d:h", options, NULL)) != -1;) {
        switch (found) {
        case 'd': session.selector = optarg; break;
        case OPTION_JSON: json_output_set(&session.json, optarg); break;
        case OPTION_DRY_RUN: session.dry_run = true; break;
        case 'h': return print_help(command);
        default: return option_error(command, found, argv, options);
        }
    }
    int code = no_file(command, argc, argv);
    return code == EXIT_VERIFIED ? tune_and_tell(&session) : code;
}

const struct command command_tune = {
    .name = "tune",
    .summary = "find the fastest kernels for a device, and keep the choice",
    .help = "Measures how kernels are best shaped on a device, checks their results against the\n"
            "host reference, and keeps the choice for all later runs on this device and driver.\n"
            "\n"
            "Usage: healcl tune [OPTIONS]\n"
            "\n"
            "  -d, --device SEL   the device, as for healcl run\n"
            "      --dry-run      list what would be measured; measure and keep nothing\n"
            "      --json FILE|-  as JSON too, or with - alone on standard output (docs/JSON.md)\n"
            "  -h, --help         this text\n"
            "\n"
            "The times are of a few operations together. The first choice of each subject is the\n"
            "default; another one is taken only where it is clearly faster, and never one that is\n"
            "wrong or fails. The choice is a file in the cache folder, HEALCL_CACHE_DIR; "
            "HEALCL_TUNING\n"
            "and HEALCL_VARIANT go before it (docs/PORTING.md).\n",
    .run = run,
};
