/* healcl inspect */
#include "cli/cli.h"
#include "cli/report_file.h"
#include "device/device.h"
#include "plan/places.h"
#include "plan/transcript.h"
#include "run/run.h"

/* One `healcl inspect`. */
struct session {
    const char *file;
    struct report_file json;
    const char *selector; /* of the device; NULL: none was named */
    bool verbose, kernels, passes, roofline;
    struct healcl_limits limits;
    uint64_t device_memory_bytes; /* 0: no limit */
    struct memory_facts memory;
    struct healcl_transcript *transcript;
    struct healcl_device *device; /* only for its kernels and rates */
    struct roofline rates;
};

/* Where they are not kept yet. */
MUST_CHECK static enum healcl_status find_rates(struct session *session, struct healcl_error *error)
{
    const struct healcl_device *device = session->device;
    if (roofline_read_kept(&device->info, &device->tuning, &session->rates))
        return HEALCL_OK;
    return roofline_measure(session->device, 0, &session->rates, error);
}

/* On any device: it may have smaller buffers. */
MUST_CHECK static enum healcl_status find_places(struct session *session,
                                                 struct healcl_error *error)
{
    const struct places_rule rule = {.least = PLACE_BYTES, .most = UINT64_MAX};
    struct places places;
    TRY(places_init(&places, session->transcript->plan, &rule, error));
    session->memory.allocated = places.place_bytes + places.other_bytes;
    session->memory.live = places.live_bytes;
    places_release(&places);
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status open_all(struct session *session, struct healcl_error *error)
{
    TRY(report_file_open(&session->json, error));
    TRY(healcl_transcript_open(session->file, &session->limits, &session->transcript, error));
    session->memory.limit = session->device_memory_bytes;
    if (session->memory.limit > 0)
        TRY(memory_predict(session->transcript->plan, session->memory.limit, &session->memory.price,
                           &session->memory.peak, error));
    else
        TRY(find_places(session, error));
    if (session->kernels || session->roofline)
        TRY(healcl_device_open(session->selector, &session->device, error));
    if (session->kernels)
        TRY(executor_check_lacks(session->transcript->plan->table, session->device, error));
    return session->roofline ? find_rates(session, error) : HEALCL_OK;
}

static int tell(struct session *session)
{
    const struct plan *plan = session->transcript->plan;
    struct style style = style_of(stdout);
    int code = EXIT_VERIFIED;
    if (!session->json.on_stdout)
        code = printed(report_plan(session->file, plan, &session->memory, &style));
    if (!session->json.on_stdout && session->passes && code == EXIT_VERIFIED)
        code = printed(report_passes(plan, &session->rates, &style));
    if (!session->json.on_stdout && session->kernels && code == EXIT_VERIFIED)
        code = printed(report_kernels(plan, session->device, &style));
    FILE *stream = report_file_stream(&session->json);
    if (!stream)
        return code;
    enum healcl_status status =
        report_plan_json(session->file, plan, &session->memory,
                         session->kernels ? session->device : NULL, &session->rates, stream);
    int json_code = report_file_end(&session->json, status, session->verbose);
    return code == EXIT_VERIFIED ? json_code : code;
}

static int inspect(struct session *session)
{
    struct healcl_error error = {.status = HEALCL_OK};
    int code =
        open_all(session, &error) == HEALCL_OK
            ? tell(session)
            : report_files_error(&session->json, NULL, session->file, &error, session->verbose);
    healcl_error_clear(&error);
    healcl_device_close(session->device);
    healcl_transcript_close(session->transcript);
    report_file_discard(&session->json);
    return finish_output(code);
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, KEPT_IN(selector)},
    {"kernels", 0, OPTION_FLAG, KEPT_IN(kernels)},
    {"json", 0, OPTION_REPORT, KEPT_IN(json)},
    {"memory-limit", 0, OPTION_BYTES, KEPT_IN(limits.memory_bytes)},
    {"max-device-memory", 0, OPTION_BYTES, KEPT_IN(device_memory_bytes)},
    {"work-limit", 0, OPTION_NUMBER, KEPT_IN(limits.work)},
    {"expand", 0, OPTION_WORD, KEPT_IN(limits.expand), .take = take_expand},
    {"ops", 0, OPTION_FOLDER, KEPT_IN(limits.operations), .take = take_operations},
    {"trust", 0, OPTION_FOLDER, KEPT_IN(limits.operations), .take = take_operations},
    {"passes", 0, OPTION_FLAG, KEPT_IN(passes)},
    {"roofline", 0, OPTION_FLAG, KEPT_IN(roofline)},
    {"verbose", 'v', OPTION_FLAG, KEPT_IN(verbose)},
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct session session = {.file = NULL};
    int code = take_arguments(command, argc, argv, &session);
    if (code != GOES_ON)
        return code;
    session.roofline |= session.passes && session.selector;
    session.passes |= session.roofline;
    if (session.selector && !session.kernels && !session.passes)
        return usage_error(command, "--device goes with --kernels, --passes and --roofline");
    session.file = argv[optind];
    return inspect(&session);
}

const struct command command_inspect = {
    .name = "inspect",
    .summary = "check a transcript and show what it holds",
    .help =
        "Checks a transcript as a run would, and prints its segments, operations, tensors, the\n"
        "bytes that go up and down, and the most memory that its tensors take at one time.\n"
        "\n"
        "Usage: healcl inspect [OPTIONS] FILE\n"
        "\n"
        "      --kernels            show which kernels a device runs its steps with, and why not\n"
        "                           others; nothing is run\n"
        "  -d, --device SEL         that device, as for healcl run\n"
        "      --json FILE|-        write it as JSON too, or with - alone on standard output\n"
        "                           (docs/JSON.md)\n"
        "      --memory-limit SIZE  refuse tensors that together take more: bytes, or with a\n"
        "                           suffix K, M, G or T; no limit by default\n"
        "      --max-device-memory SIZE\n"
        "                           tell what a run moves that may allocate this on the device\n"
        "                           (docs/MEMORY.md)\n"
        "      --work-limit N       refuse an operation that visits more elements; with a suffix\n"
        "                           K, M, G or T; 4T, 2^42, by default\n"
        "      --expand spec|sdk    as for healcl run\n"
        "      --ops DIR            take operations and kernels from the manifests of a folder\n"
        "                           (docs/VENDORS.md), and native code that they name; repeatable\n"
        "      --trust DIR          the same where its manifests may name sources elsewhere,\n"
        "                           and any options of compilers\n"
        "      --passes             show what passes make of each segment: launches, bytes that\n"
        "                           steps read and write, products, butterflies, digits and\n"
        "                           memory before and after, and how many steps each pass has\n"
        "                           changed; with a device as --roofline\n"
        "      --roofline           the same, and the time that a device's rates allow for it:\n"
        "                           they are measured once, in a second, and kept\n"
        "  -v, --verbose            add the place in healcl's source to an error\n"
        "  -h, --help               this text\n"
        "\n"
        "Exit codes: 0, 2 wrong usage, 3 the transcript is refused, 4 out of memory, or the\n"
        "device of --kernels or --roofline failed.\n",
    .options = options,
    .operands = OPERANDS_FILE,
    .run = run,
};
