/* healcl inspect */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/report_file.h"
#include "cli/requests.h"
#include "kernels/variant.h"
#include "opencl/device.h"
#include "plan/places.h"
#include "plan/transcript.h"
#include "run/run.h"

enum { RANKS_MAX = 1000000 };

/* One `healcl inspect`. */
struct inspect_command {
    const char *file;
    struct report_file json;
    const char *selector; /* of the device; NULL: none was named */
    bool kernels, passes, roofline, steps;
    struct healcl_limits limits;
    uint64_t device_memory_bytes; /* 0: no limit */
    struct memory_facts memory;
    struct healcl_transcript *transcript;
    struct healcl_device *device; /* only for its kernels and rates */
    struct roofline rates;
    uint32_t rank_count;   /* 0: nothing is split */
    const char *axis_text; /* "ENTRY:AXIS", or NULL */
    struct ranks_facts ranks;
    struct healcl_transcript *part;
};

/* Where they are not kept yet. */
static enum healcl_status find_rates(struct inspect_command *self, struct healcl_error *error)
{
    const struct healcl_device *device = self->device;
    if (roofline_read_kept(&device->info, &device->tuning, &self->rates))
        return HEALCL_OK;
    return roofline_measure(self->device, 0, &self->rates, error);
}

static enum healcl_status find_places(struct inspect_command *self, struct healcl_error *error)
{
    const struct places_rule rule = {.least = PLACE_BYTES};
    struct places places;
    TRY(places_init(&places, self->transcript->plan, &rule, error));
    self->memory.allocated = places.place_bytes + places.other_bytes;
    self->memory.live = places.live_bytes;
    places_release(&places);
    return HEALCL_OK;
}

/* The first rank's part: no other one is larger. */
static enum healcl_status open_part(struct inspect_command *self, struct healcl_error *error)
{
    struct ranks_facts *ranks = &self->ranks;
    if (self->rank_count == 0)
        return HEALCL_OK;
    ranks->split.ranks = self->rank_count;
    ranks->is_chosen = !self->axis_text;
    if (self->axis_text)
        TRY(find_split(self->transcript, self->axis_text, &ranks->split, error));
    else if (self->rank_count > 1)
        TRY(healcl_transcript_choose_split(self->transcript, &ranks->split, error));
    TRY(healcl_transcript_split(self->transcript, &ranks->split, &self->part, error));
    ranks->whole = self->transcript;
    ranks->part = self->part;
    ranks->roofline = self->rates;
    return HEALCL_OK;
}

static enum healcl_status open_all(struct inspect_command *self, struct healcl_error *error)
{
    TRY(report_file_open(&self->json, error));
    TRY(healcl_transcript_open(self->file, &self->limits, &self->transcript, error));
    self->memory.limit = self->device_memory_bytes;
    if (self->memory.limit > 0)
        TRY(memory_predict(self->transcript->plan, self->memory.limit, &self->memory.price,
                           &self->memory.peak, error));
    else
        TRY(find_places(self, error));
    if (self->kernels || self->roofline)
        TRY(healcl_device_open(self->selector, &self->device, error));
    if (self->kernels)
        TRY(lacks_check(self->device, self->transcript->plan->table, error));
    if (self->roofline)
        TRY(find_rates(self, error));
    return open_part(self, error);
}

static void print_text(const struct inspect_command *self, const cJSON *document)
{
    const struct style style = style_of(stdout);
    report_plan_text(document, &style);
    if (self->passes)
        report_passes_text(document, &style);
    if (self->kernels)
        report_kernels_text(document, &style);
    if (self->part)
        report_ranks_text(document, &style);
    if (self->steps)
        report_steps(self->part ? self->part->plan : self->transcript->plan, &style);
}

static int tell(struct inspect_command *self)
{
    const struct plan *plan = self->transcript->plan;
    cJSON *document = report_plan(self->file, plan, &self->memory, &self->rates);
    if (self->kernels)
        report_add_kernels(document, plan, self->device);
    if (self->part)
        report_add_ranks(document, &self->ranks);
    if (!self->json.on_stdout)
        print_text(self, document);
    return report_file_json(&self->json, document, EXIT_VERIFIED, false);
}

static int inspect(struct inspect_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    int code = open_all(self, &error) == HEALCL_OK
                   ? tell(self)
                   : report_files_error(&self->json, NULL, self->file, &error, false);
    healcl_error_clear(&error);
    healcl_device_close(self->device);
    healcl_transcript_close(self->part);
    healcl_transcript_close(self->transcript);
    report_file_discard(&self->json);
    return finish_output(code);
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, KEPT_IN(struct inspect_command, selector),
     .decides_device = true},
    {"kernels", 0, OPTION_FLAG, KEPT_IN(struct inspect_command, kernels), .decides_device = true},
    {"json", 0, OPTION_REPORT, KEPT_IN(struct inspect_command, json)},
    {"memory-limit", 0, OPTION_BYTES, KEPT_IN(struct inspect_command, limits.memory_bytes)},
    {"max-device-memory", 0, OPTION_BYTES, KEPT_IN(struct inspect_command, device_memory_bytes)},
    {"work-limit", 0, OPTION_NUMBER, KEPT_IN(struct inspect_command, limits.work)},
    {"expand", 0, OPTION_WORD, KEPT_IN(struct inspect_command, limits.expand), .take = take_expand},
    OPERATIONS_OPTIONS(struct inspect_command, limits.operations),
    {"passes", 0, OPTION_FLAG, KEPT_IN(struct inspect_command, passes)},
    {"roofline", 0, OPTION_FLAG, KEPT_IN(struct inspect_command, roofline), .decides_device = true},
    {"steps", 0, OPTION_FLAG, KEPT_IN(struct inspect_command, steps)},
    {"ranks", 0, OPTION_COUNT, KEPT_IN(struct inspect_command, rank_count), .most = RANKS_MAX},
    {"split", 0, OPTION_WORD, KEPT_IN(struct inspect_command, axis_text)},
    TIMEOUT_OPTION,
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    struct inspect_command self = {.file = NULL};
    int code = take_arguments(command, argc, argv, &self);
    if (code != GOES_ON)
        return code;
    self.roofline |= self.passes && self.selector;
    self.passes |= self.roofline;
    if (self.selector && !self.kernels && !self.passes)
        return usage_error(command, "--device goes with --kernels, --passes and --roofline");
    if (self.axis_text && self.rank_count == 0)
        return usage_error(command, "--split goes with --ranks");
    self.file = argv[optind];
    return inspect(&self);
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
        "      --timeout S          give up after S seconds, with exit code 4\n"
        "      --json FILE|-        write it as JSON too, or with - alone on standard output\n"
        "                           (docs/JSON.md)\n"
        "      --memory-limit SIZE, --work-limit N, --expand spec|sdk\n"
        "                           as for healcl run\n"
        "      --max-device-memory SIZE\n"
        "                           tell what a run moves that may allocate this on the "
        "device\n" OPERATIONS_HELP
        "      --passes             show what passes make of each segment: launches, bytes, work\n"
        "                           and memory before and after; with a device as --roofline\n"
        "      --roofline           the same, and the time that a device's rates allow for it\n"
        "      --steps              list the steps that passes leave, as %storage+offset[shape :\n"
        "                           strides], and what is known of their values\n"
        "      --ranks R            show what R ranks of healcl-mpi run have each: what is split,\n"
        "                           whole and exchanged, memory, and with --roofline the time\n"
        "      --split ENTRY:AXIS   along that axis, as healcl-mpi run has it\n"
        "  -h, --help               this text\n"
        "\n",
    .more_help =
        "Exit codes: 0, 2 wrong usage, 3 the transcript is refused, 4 out of memory, or the\n"
        "device of --kernels or --roofline failed.\n",
    .options = options,
    .operands = OPERANDS_FILE,
    .run = run,
};
