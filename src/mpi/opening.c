#include "mpi/opening.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "plan/transcript.h"
#include "programs/opening.h"

/* ---------------------------------------------------------------- the command line */

/* Of one rank. */
static int take(struct opening *opening, const struct ranks *ranks, const struct command *command,
                int argc, char **argv, void *memory, opening_check *check)
{
    int code = take_arguments(command, argc, argv, memory);
    if (code == GOES_ON && check)
        code = check(command, memory);
    if (device_is_reference(opening->devices)) {
        opening->reference = true;
        opening->devices = NULL;
    }
    if (code == GOES_ON && opening->reference && opening->devices)
        code = usage_error(command, "--reference is no device");
    if (code != GOES_ON)
        return code;
    opening->file = argv[optind];
    code = ranks->rank == 0 ? report_file_begin(&opening->json) : EXIT_VERIFIED;
    return code == EXIT_VERIFIED ? GOES_ON : code;
}

int opening_take(struct opening *opening, struct ranks *ranks, const struct command *command,
                 int argc, char **argv, void *memory, opening_check *check)
{
    ranks_begin(ranks, &argc, &argv);
    int code = GOES_ON;
    if (ranks->rank == 0)
        code = take(opening, ranks, command, argc, argv, memory, check);
    code = ranks_first(ranks, code);
    if (code == GOES_ON && ranks->rank > 0)
        code = take(opening, ranks, command, argc, argv, memory, check);
    return code;
}

/* ---------------------------------------------------------------- hashes */

static void add_tensor(XXH3_state_t *state, const struct tensor *tensor)
{
    if (!tensor)
        return;
    const struct layout *layout = &tensor->layout;
    const int64_t numbers[] = {tensor->storage->id, tensor->storage->dtype,
                               tensor->storage->elements, layout->rank, layout->offset};
    XXH3_128bits_update(state, numbers, sizeof numbers);
    XXH3_128bits_update(state, layout->shape, layout->rank * sizeof *layout->shape);
    XXH3_128bits_update(state, layout->stride, layout->rank * sizeof *layout->stride);
}

/* What the steps are, and where their operands lie. */
static void add_plan(XXH3_state_t *state, const struct plan *plan)
{
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        const int64_t numbers[] = {step->kind, step->side, step->value[0], step->value[1]};
        XXH3_128bits_update(state, numbers, sizeof numbers);
        add_tensor(state, step->out);
        for (int input = 0; input < STEP_INPUTS; input++)
            add_tensor(state, step->in[input]);
    }
    XXH3_128bits_update(state, plan->constants.values,
                        plan->constants.count * sizeof *plan->constants.values);
}

/* The first half of a hash in hexadecimal. */
static uint64_t half_of(const char hash[HASH_SIZE])
{
    char half[17];
    memcpy(half, hash, 16);
    half[16] = 0;
    return strtoull(half, NULL, 16);
}

static enum healcl_status take_hashes(struct opening *opening, struct healcl_error *error)
{
    const struct source *source = &opening->transcript->source;
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        NO_MEMORY(error);
    hash_bytes(source->text, source->length, opening->transcript_hash);
    source_forget(source, source->text, source->length);
    XXH3_128bits_reset(state);
    add_plan(state, opening->transcript->plan);
    XXH3_128bits_update(state, &opening->transcript->passes, sizeof opening->transcript->passes);
    const XXH128_hash_t hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    hash_bytes(&hash, sizeof hash, opening->plan_hash);
    return HEALCL_OK;
}

static enum healcl_status compare(const struct opening *opening, const struct ranks *ranks,
                                  struct healcl_error *error)
{
    const char *const version[] = {healcl_version(), healcl_commit()};
    char hash[HASH_SIZE];
    hash_texts(2, version, hash);
    const struct ranks_common common[] = {{"version of healcl", half_of(hash)},
                                          {"transcript", half_of(opening->transcript_hash)},
                                          {"plan", half_of(opening->plan_hash)}};
    return ranks_compare(ranks, common, sizeof common / sizeof *common, error);
}

/* ---------------------------------------------------------------- devices */

/* The item of a list with commas that is this rank's; freed with free(). */
static char *item_of(const char *list, const struct ranks *ranks)
{
    int count = 1;
    for (const char *c = list; *c; c++)
        count += *c == ',';
    const char *item = list;
    for (int i = 0; i < ranks->local % count; i++)
        item = strchr(item, ',') + 1;
    return strndup(item, strcspn(item, ","));
}

static bool is_like(const struct device_info *info, const struct device_info *best)
{
    return info->platform_index == best->platform_index && info->type == best->type &&
           !device_unusable(info);
}

/* This rank's among the devices that are like the one which would be taken alone. */
static size_t device_of(const struct device_info *list, size_t count, size_t best,
                        const struct ranks *ranks)
{
    size_t alike = 0;
    for (size_t i = 0; i < count; i++)
        alike += is_like(&list[i], &list[best]);
    size_t wanted = alike > 0 ? (size_t)ranks->local % alike : 0;
    for (size_t i = 0; i < count; i++)
        if (is_like(&list[i], &list[best]) && wanted-- == 0)
            return i;
    return best;
}

static enum healcl_status choose(struct opening *opening, const struct ranks *ranks,
                                 struct healcl_error *error)
{
    struct device_info *list;
    size_t count, index;
    char *selector = opening->devices ? item_of(opening->devices, ranks) : NULL;
    if (opening->devices && !selector)
        NO_MEMORY(error);
    enum healcl_status status = device_list(&opencl_loader, &list, &count, error);
    if (status == HEALCL_OK) {
        if (opening->package)
            device_allow_packaged(list, count);
        status = device_select(list, count, selector, &index, error);
        const char *of_environment = getenv("HEALCL_DEVICE");
        const bool is_named = selector || (of_environment && *of_environment);
        if (status == HEALCL_OK)
            opening->info = list[is_named ? index : device_of(list, count, index, ranks)];
        free(list);
    }
    free(selector);
    return status;
}

/* ---------------------------------------------------------------- opening */

static enum healcl_status open_device(struct opening *opening, struct healcl_error *error)
{
    char selector[24];
    snprintf(selector, sizeof selector, "%u:%u", opening->info.platform_index,
             opening->info.device_index);
    const struct healcl_device_options options = {.selector = selector,
                                                  .package = opening->package};
    return healcl_device_open_with(&options, &opening->device, error);
}

static enum healcl_status open_transcript(struct opening *opening, const struct ranks *ranks,
                                          struct healcl_error *error)
{
    struct healcl_limits limits = opening->limits;
    opening->memory_limit = limits.memory_bytes;
    /* The ranks of a host share its memory. */
    if (limits.memory_bytes == 0 && (opening->reference || opening->info.unified_memory))
        opening->memory_limit = host_memory() / (uint64_t)ranks->local_count;
    /* No rank has the tensors of what is split. */
    limits.memory_bytes = opening->is_split ? 0 : opening->memory_limit;
    TRY((opening->is_split ? transcript_open_plain : healcl_transcript_open)(
        opening->file, &limits, &opening->transcript, error));
    return take_hashes(opening, error);
}

int opening_open(struct opening *opening, struct ranks *ranks)
{
    struct healcl_error error = {.status = HEALCL_OK};
    const char *file = NULL;
    enum healcl_status status = HEALCL_OK;
    if (!opening->reference)
        status = choose(opening, ranks, &error);
    if (status == HEALCL_OK) {
        status = open_transcript(opening, ranks, &error);
        /* Where a file cannot be read the message names it itself. */
        file = status == HEALCL_USAGE ? NULL : opening->file;
    }
    int code = ranks_agree(ranks, status, file, &error);
    if (code == GOES_ON)
        code = ranks_agree(ranks, compare(opening, ranks, &error), NULL, &error);
    if (code == GOES_ON && !opening->reference)
        status = open_device(opening, &error);
    return code == GOES_ON ? ranks_agree(ranks, status, NULL, &error) : code;
}

const char *opening_device(const struct opening *opening)
{
    return opening->reference ? "reference" : opening->info.name;
}

void opening_release(struct opening *opening)
{
    report_file_discard(&opening->json);
    healcl_device_close(opening->device);
    healcl_transcript_close(opening->transcript);
}
