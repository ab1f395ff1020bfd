/* healcl inspect */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/report_file.h"
#include "cli/requests.h"
#include "device/device.h"
#include "plan/places.h"
#include "plan/transcript.h"
#include "run/run.h"

enum { RANKS_MAX = 1000000 };

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
    uint32_t rank_count;   /* 0: nothing is split */
    const char *axis_text; /* "ENTRY:AXIS", or NULL */
    const char *network;   /* "GB/s,us", or NULL */
    struct ranks_facts ranks;
    struct healcl_transcript *part;
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

/* Reads "GB/s,us". */
MUST_CHECK static enum healcl_status find_network(struct session *session,
                                                  struct healcl_error *error)
{
    char *end = NULL;
    if (!session->network)
        return HEALCL_OK;
    const double rate = strtod(session->network, &end);
    const double latency = *end == ',' ? strtod(end + 1, &end) : -1;
    if (*end || !(rate > 0 && rate < 1e9) || !(latency >= 0 && latency < 1e9))
        FAIL(error, HEALCL_USAGE, "--network takes GB/s,us, as 12.5,2, not '%.100s'",
             session->network);
    session->ranks.network_bytes_per_second = rate * 1e9;
    session->ranks.network_latency_ns = latency * 1e3;
    return HEALCL_OK;
}

/* The first rank's part: no other one is larger. */
MUST_CHECK static enum healcl_status open_part(struct session *session, struct healcl_error *error)
{
    struct ranks_facts *ranks = &session->ranks;
    if (session->rank_count == 0)
        return HEALCL_OK;
    ranks->split.ranks = session->rank_count;
    ranks->is_chosen = !session->axis_text;
    TRY(find_network(session, error));
    if (session->axis_text)
        TRY(find_split(session->transcript, session->axis_text, &ranks->split, error));
    else if (session->rank_count > 1)
        TRY(healcl_transcript_choose_split(session->transcript, &ranks->split, error));
    TRY(healcl_transcript_split(session->transcript, &ranks->split, &session->part, error));
    ranks->whole = session->transcript;
    ranks->part = session->part;
    ranks->roofline = session->rates;
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
    if (session->roofline)
        TRY(find_rates(session, error));
    return open_part(session, error);
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
    if (!session->json.on_stdout && session->part && code == EXIT_VERIFIED)
        code = printed(report_ranks(&session->ranks, &style));
    FILE *stream = report_file_stream(&session->json);
    if (!stream)
        return code;
    enum healcl_status status = report_plan_json(
        session->file, plan, &session->memory, session->kernels ? session->device : NULL,
        &session->rates, session->part ? &session->ranks : NULL, stream);
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
    healcl_transcript_close(session->part);
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
    {"ranks", 0, OPTION_COUNT, KEPT_IN(rank_count), .most = RANKS_MAX},
    {"split", 0, OPTION_WORD, KEPT_IN(axis_text)},
    {"network", 0, OPTION_WORD, KEPT_IN(network)},
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
    if ((session.axis_text || session.network) && session.rank_count == 0)
        return usage_error(command, "--split and --network go with --ranks");
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
        "      --ranks R            show what R ranks of healcl-mpi run have each: what is split,\n"
        "                           whole and exchanged, memory, and with --roofline the time\n"
        "      --split ENTRY:AXIS   along that axis, as healcl-mpi run has it\n"
        "      --network GB/s,us    what a rank sends, and how long a message takes\n"
        "  -v, --verbose            add the place in healcl's source to an error\n"
        "  -h, --help               this text\n"
        "\n",
    .more_help =
        "Exit codes: 0, 2 wrong usage, 3 the transcript is refused, 4 out of memory, or the\n"
        "device of --kernels or --roofline failed.\n",
    .options = options,
    .operands = OPERANDS_FILE,
    .run = run,
};
