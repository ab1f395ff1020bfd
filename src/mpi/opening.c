#include "mpi/opening.h"

#include "run/loaded_transcript.h"

/* ---------------------------------------------------------------- the command line */

int opening_prepare(const struct command *command, void *self)
{
    struct opening *opening = self;
    if (opening->reference && opening->job.selector)
        return usage_error(command, "--reference cannot be combined with --device");
    if (device_is_reference(opening->job.selector)) {
        opening->reference = true;
        opening->job.selector = NULL;
    }
    return GOES_ON;
}

int opening_start(struct opening *opening, struct ranks *ranks)
{
    ranks_begin(ranks);
    const int code = ranks->rank == 0 ? report_file_begin(&opening->job.json) : EXIT_VERIFIED;
    return ranks_first(ranks, code == EXIT_VERIFIED ? GOES_ON : code);
}

/* ---------------------------------------------------------------- what is the same at all ranks */

static void take_hashes(struct opening *opening)
{
    const struct source *source = &opening->transcript->source;
    const struct plan *plan = opening->transcript->plan;
    const uint64_t facts[] = {plan->step_count, plan->bytes_peak, plan->bytes_up,
                              opening->transcript->passes};
    hash_bytes(source->text, source->length, opening->transcript_hash);
    source_forget(source, source->text, source->length);
    hash_bytes(facts, sizeof facts, opening->plan_hash);
}

static enum healcl_status opening_compare(const struct opening *opening, const struct ranks *ranks,
                                          struct healcl_error *error)
{
    static const char *const what[] = {"version of healcl", "transcript", "plan"};
    const char *const version[] = {healcl_version(), healcl_commit()};
    char own[3][HASH_SIZE], first[3][HASH_SIZE];
    hash_texts(2, version, own[0]);
    memcpy(own[1], opening->transcript_hash, HASH_SIZE);
    memcpy(own[2], opening->plan_hash, HASH_SIZE);
    memcpy(first, own, sizeof own);
    ranks_share(ranks, first, sizeof first);
    for (size_t i = 0; i < sizeof what / sizeof *what; i++)
        if (strcmp(own[i], first[i]) != 0)
            REFUSE(error, "its %s differs from rank 0's", what[i]);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- devices */

/* Returns this rank's item of a list separated by commas. */
static const char *item_of(const char *list, const struct ranks *ranks)
{
    int count = 1;
    for (const char *c = list; *c; c++)
        count += *c == ',';
    const char *item = list;
    for (int i = 0; i < ranks->local % count; i++)
        item = strchr(item, ',') + 1;
    return xformat("%.*s", (int)strcspn(item, ","), item);
}

static bool is_like(const struct device_info *info, const struct device_info *best)
{
    return info->platform_index == best->platform_index && info->type == best->type &&
           !device_unusable(info);
}

/* Selects this rank's device among those that are like the default device. */
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

static enum healcl_status opening_choose(struct opening *opening, const struct ranks *ranks,
                                         struct healcl_error *error)
{
    struct device_info *list;
    size_t count, index;
    const char *selector = opening->job.selector ? item_of(opening->job.selector, ranks) : NULL;
    enum healcl_status status = device_list(&opencl_loader, opening->package, &list, &count, error);
    if (status == HEALCL_OK) {
        status = device_select(list, count, selector, &index, error);
        if (status == HEALCL_OK)
            opening->info =
                list[device_is_named(selector) ? index : device_of(list, count, index, ranks)];
        free(list);
    }
    return status;
}

/* ---------------------------------------------------------------- opening */

static enum healcl_status open_transcript(struct opening *opening, const struct ranks *ranks,
                                          struct healcl_error *error)
{
    struct healcl_plan_options options = opening->job.options;
    opening->memory_limit = options.memory_limit;
    /* The ranks on a host share its memory. */
    if (options.memory_limit == 0 && (opening->reference || opening->info.unified_memory))
        opening->memory_limit = host_memory() / (uint64_t)ranks->local_count;
    /* No rank has the whole of a split tensor. */
    options.memory_limit = opening->is_split ? 0 : opening->memory_limit;
    TRY((opening->is_split ? transcript_open_plain : healcl_transcript_open)(
        opening->job.file, &options, &opening->transcript, error));
    take_hashes(opening);
    return HEALCL_OK;
}

int opening_open(struct opening *opening, struct ranks *ranks)
{
    struct healcl_error error = {.status = HEALCL_OK};
    const char *file = NULL;
    enum healcl_status status = HEALCL_OK;
    if (!opening->reference)
        status = opening_choose(opening, ranks, &error);
    if (status == HEALCL_OK) {
        status = open_transcript(opening, ranks, &error);
        /* The message about an unreadable file already names it. */
        file = status == HEALCL_USAGE ? NULL : opening->job.file;
    }
    int code = ranks_agree(ranks, status, file, &error);
    if (code == GOES_ON)
        code = ranks_agree(ranks, opening_compare(opening, ranks, &error), NULL, &error);
    const struct healcl_device_options options = {.selector = DEVICE_SELECTOR(&opening->info),
                                                  .package = opening->package};
    if (code == GOES_ON && !opening->reference)
        status = healcl_device_open_with(&options, &opening->job.device, &error);
    return code == GOES_ON ? ranks_agree(ranks, status, NULL, &error) : code;
}

const char *opening_device(const struct opening *opening)
{
    return opening->reference ? "reference" : opening->info.name;
}

void opening_release(struct opening *opening)
{
    report_file_discard(&opening->job.json);
    healcl_device_close(opening->job.device);
    healcl_transcript_close(opening->transcript);
}
