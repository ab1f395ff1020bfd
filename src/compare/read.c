/* Comparisons out of JSON: what child processes wrote, and what was saved. Of both, keys that are
 * missing or of another type count as empty: nothing here trusts what it reads. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/columns.h"
#include "core/file.h"
#include "core/json_tree.h"
#include "report/json.h"
#include "report/text.h"

enum { DIFFERENCES_KEPT = 20 };

/* Of a process, or of a saved comparison: those of one run are some hundred. */
enum { VALUES_MAX = 1 << 20, FILE_MAX = 32 << 20 };

/* ---------------------------------------------------------------- values */

/* What a process wrote; NULL where that is no JSON, too much, or there is no memory, which is
 * noted. Freed with cJSON_Delete. */
static cJSON *tree_of(struct comparison *comparison, const char *text)
{
    cJSON *tree = NULL;
    enum healcl_status status =
        text ? json_tree_read(text, strlen(text), VALUES_MAX, &tree, NULL, NULL) : HEALCL_OK;
    comparison->no_memory |= status == HEALCL_NO_MEMORY;
    return status == HEALCL_OK ? tree : NULL;
}

static const cJSON *get(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static uint64_t number(const cJSON *object, const char *key)
{
    return json_number_of(get(object, key));
}

/* The string itself, which lives as long as object. */
static const char *text_of(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(get(object, key));
    return text ? text : "";
}

static const char *string(struct comparison *comparison, const cJSON *object, const char *key)
{
    return comparison_keep(comparison, text_of(object, key));
}

static const char *keep(void *comparison, const char *text)
{
    return comparison_keep(comparison, text);
}

/* What columns say of a record. */
static void read_columns(struct comparison *comparison, const cJSON *object,
                         const struct column_table *table, void *record)
{
    columns_read_json(object, table, record, keep, comparison);
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
    return a < UINT64_MAX - b ? a + b : UINT64_MAX;
}

/* Room for what a list holds, elements of size bytes; NULL where there is no memory. */
static void *room_for(struct comparison *comparison, const cJSON *list, size_t size)
{
    int length = cJSON_GetArraySize(list); /* of an object too, as the loops see it */
    return comparison_alloc(comparison, ((size_t)length + 1) * size);
}

/* ---------------------------------------------------------------- devices */

/* What `healcl check --json` and a device of a saved comparison have alike. */
static void read_check(struct comparison *comparison, const cJSON *object,
                       struct compare_check *check)
{
    check->done = cJSON_IsObject(object);
    read_columns(comparison, object, &compare_check_columns, check);
    if (check->unsupported > check->calls) /* not ours */
        check->unsupported = check->calls;
}

static void read_device(struct comparison *comparison, const cJSON *object,
                        struct compare_device *device)
{
    read_columns(comparison, object, &compare_device_columns, device);
    read_check(comparison, get(object, "check"), &device->check);
}

/* Adds those of a list that are the default, or all others that can be used. */
static enum healcl_status read_devices(struct comparison *comparison, const cJSON *list,
                                       bool the_default, struct healcl_error *error)
{
    const cJSON *object;
    cJSON_ArrayForEach(object, list)
    {
        if (cJSON_IsTrue(get(object, "default")) != the_default ||
            (!the_default && !cJSON_IsTrue(get(object, "usable"))))
            continue;
        struct compare_device *device;
        TRY(comparison_add_device(comparison, &device, error));
        read_device(comparison, object, device);
    }
    return comparison_status(comparison, error);
}

enum healcl_status compare_read_devices(struct comparison *comparison, const char *text,
                                        bool default_only, struct healcl_error *error)
{
    cJSON *top = tree_of(comparison, text);
    enum healcl_status status = read_devices(comparison, get(top, "devices"), true, error);
    if (status == HEALCL_OK && !default_only)
        status = read_devices(comparison, get(top, "devices"), false, error);
    cJSON_Delete(top);
    return status;
}

void compare_read_rates(struct comparison *comparison, struct compare_device *device,
                        const char *text)
{
    cJSON *top = tree_of(comparison, text);
    const cJSON *object;
    cJSON_ArrayForEach(object, get(top, "devices"))
    {
        if (!cJSON_IsTrue(get(object, "default")))
            continue;
        device->copied_bytes = number(object, "copied_bytes_per_s");
        device->products = number(object, "products_per_s");
    }
    cJSON_Delete(top);
}

enum healcl_status compare_read_check(struct comparison *comparison, struct compare_device *device,
                                      const struct process_result *process,
                                      struct healcl_error *error)
{
    struct compare_check *check = &device->check;
    char ended[PROCESS_SIGNAL_SIZE + 16] = "";
    const char *message = ended;
    cJSON *top = tree_of(comparison, process->text);
    read_check(comparison, top, check);
    if (cJSON_IsString(get(top, "self_test_failure")))
        message = text_of(top, "self_test_failure");
    else if (cJSON_IsObject(get(top, "error")))
        message = text_of(get(top, "error"), "message");
    else if (process->end == PROCESS_TIMED_OUT)
        snprintf(ended, sizeof ended, "timed out");
    else if (process->end == PROCESS_KILLED)
        snprintf(ended, sizeof ended, "crashed: %s",
                 process_signal_name(process->code, (char[PROCESS_SIGNAL_SIZE]){0}));
    else if (!check->done || !process->is_own)
        snprintf(ended, sizeof ended, "failed: exit code %d", process->code);
    check->done = true;
    check->verified = check->verified && process->is_own;
    if (!check->verified)
        check->message = comparison_keep(comparison, message);
    cJSON_Delete(top);
    return comparison_status(comparison, error);
}

/* ---------------------------------------------------------------- runs */

void compare_read_first(struct comparison *comparison, struct compare_first *first,
                        const struct process_result *process)
{
    cJSON *top = tree_of(comparison, process->text);
    if (process->is_own && process->code == 0) {
        first->nanoseconds = number(top, "first_result_ns");
        first->compile_nanoseconds = number(top, "compile_ns");
    }
    cJSON_Delete(top);
}

static void read_samples(struct comparison *comparison, const cJSON *list, uint64_t **samples,
                         size_t *count)
{
    const cJSON *item;
    *samples = room_for(comparison, list, sizeof **samples);
    *count = 0;
    if (*samples)
        cJSON_ArrayForEach(item, list)(*samples)[(*count)++] = json_number_of(item);
}

/* Older comparisons have but the time of the segments with kernels. It is that of the kernels where
 * none of these segments transfers anything. */
static void read_older_compute(struct comparison *comparison, const cJSON *object,
                               struct compare_samples *compute)
{
    const uint64_t told = number(object, "compute_ns");
    uint64_t apart = 0;
    const cJSON *segment;
    cJSON_ArrayForEach(segment, get(object, "segments")) if (number(segment, "bytes") == 0) apart =
        sum_of(apart, number(segment, "time_ns"));
    compute->of = comparison_alloc(comparison, sizeof *compute->of);
    if (!compute->of || told == 0 || told > apart)
        return;
    *compute->of = told;
    compute->count = 1;
}

/* What a process wrote and what was saved have alike; key: of the whole times. */
static void read_times(struct comparison *comparison, const cJSON *object, const char *key,
                       struct compare_run *run)
{
    const cJSON *split = get(object, "split");
    const cJSON *const lists[COMPARE_FIGURES] = {[COMPARE_COMPUTE] = get(split, "compute_ns"),
                                                 [COMPARE_STEADY] =
                                                     get(get(object, "steady"), "requests_ns"),
                                                 [COMPARE_TRANSFER] = get(split, "transfer_ns"),
                                                 [COMPARE_DECODE] = get(split, "decode_ns"),
                                                 [COMPARE_WHOLE] = get(object, key)};
    for (size_t i = 0; i < COMPARE_FIGURES; i++)
        read_samples(comparison, lists[i], &run->times[i].of, &run->times[i].count);
    if (!split)
        read_older_compute(comparison, object, &run->times[COMPARE_COMPUTE]);
}

/* How operations were timed. */
static void read_profile(struct comparison *comparison, const cJSON *profile,
                         struct compare_run *run)
{
    run->operations_by_host = strcmp(text_of(profile, "clock"), "host") == 0;
    read_samples(comparison, get(profile, "runs_ns"), &run->profiled, &run->profiled_count);
}

static void read_differences(struct comparison *comparison, const cJSON *list,
                             struct compare_run *run)
{
    const cJSON *item;
    run->differences = room_for(comparison, list, sizeof *run->differences);
    run->difference_count = 0;
    if (!run->differences)
        return;
    cJSON_ArrayForEach(item, list)
    {
        const char *line = cJSON_GetStringValue(item);
        if (line && run->difference_count < DIFFERENCES_KEPT)
            run->differences[run->difference_count++] = comparison_keep(comparison, line);
    }
}

/* A list of objects with "name", and "operations" or "count" of them. */
static void read_parts(struct comparison *comparison, const cJSON *list, const char *count_key,
                       struct compare_part **parts, size_t *count)
{
    const cJSON *object;
    *parts = room_for(comparison, list, sizeof **parts);
    *count = 0;
    if (!*parts)
        return;
    cJSON_ArrayForEach(object, list)(*parts)[(*count)++] =
        (struct compare_part){.name = string(comparison, object, "name"),
                              .count = number(object, count_key),
                              .bytes = number(object, "bytes") + number(object, "bytes_up") +
                                       number(object, "bytes_down"),
                              .nanoseconds = number(object, "time_ns"),
                              .fallbacks = number(object, "fallbacks"),
                              .fallback_reason = string(comparison, object, "fallback_reason")};
}

/* Adds a segment's operations to those of the same kind. */
static void add_operations(struct compare_run *run, const struct compare_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t place = 0;
        while (place < run->operation_count &&
               strcmp(run->operations[place].name, parts[i].name) != 0)
            place++;
        if (place == run->operation_count)
            run->operations[run->operation_count++] =
                (struct compare_part){.name = parts[i].name, .fallback_reason = ""};
        run->operations[place].count += parts[i].count;
        run->operations[place].bytes += parts[i].bytes;
        run->operations[place].nanoseconds += parts[i].nanoseconds;
        run->operations[place].fallbacks += parts[i].fallbacks;
        if (!*run->operations[place].fallback_reason)
            run->operations[place].fallback_reason = parts[i].fallback_reason;
    }
}

/* The same in what a process wrote and in what was saved. */
static void read_kernels(struct comparison *comparison, const cJSON *list, struct compare_run *run)
{
    const cJSON *object;
    run->kernels = room_for(comparison, list, sizeof *run->kernels);
    run->kernel_count = 0;
    if (!run->kernels)
        return;
    cJSON_ArrayForEach(object, list) read_columns(comparison, object, &report_kernel_columns,
                                                  &run->kernels[run->kernel_count++]);
}

static int longer_first(const void *a, const void *b)
{
    const struct compare_part *x = a, *y = b;
    if (x->nanoseconds != y->nanoseconds)
        return x->nanoseconds < y->nanoseconds ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void read_segments(struct comparison *comparison, const cJSON *list, struct compare_run *run)
{
    size_t kinds = 0;
    const cJSON *segment;
    cJSON_ArrayForEach(segment, list) kinds +=
        (size_t)cJSON_GetArraySize(get(segment, "operations_by_kind"));
    run->operations = comparison_alloc(comparison, (kinds + 1) * sizeof *run->operations);
    if (!run->operations)
        return;
    read_parts(comparison, list, "operations", &run->segments, &run->segment_count);
    cJSON_ArrayForEach(segment, list)
    {
        struct compare_part *parts;
        size_t count;
        read_parts(comparison, get(segment, "operations_by_kind"), "count", &parts, &count);
        add_operations(run, parts, count);
    }
    qsort(run->operations, run->operation_count, sizeof *run->operations, longer_first);
}

/* What `run --json` writes at its end. */
static void read_report(struct comparison *comparison, const cJSON *top, struct compare_run *run)
{
    read_columns(comparison, top, &compare_run_columns, run); /* the keys are the same there */
    const cJSON *tuned = get(get(top, "device"), "tuned");
    if (cJSON_IsBool(tuned))
        comparison->devices[run->device].tuned = cJSON_IsTrue(tuned);
    read_times(comparison, top, "runs_ns", run);
    read_profile(comparison, get(top, "profile"), run);
    read_differences(comparison, get(top, "differences"), run);
    read_segments(comparison, get(top, "segments"), run);
    read_kernels(comparison, get(top, "manifest_kernels"), run);
}

/* A process in which a driver runs may say anything: it is taken at its word only as far as what it
 * says agrees with itself. */
static enum compare_outcome outcome_of_claim(const struct compare_run *run)
{
    bool agrees = run->compared > 0 && run->compared <= run->results && run->different == 0;
    return agrees ? COMPARE_VERIFIED : COMPARE_UNPROVEN;
}

/* What a process that ended by itself says with its exit code (src/cli/cli.h) and its JSON. */
static enum compare_outcome outcome_of_exit(const cJSON *top, const struct compare_run *run,
                                            int code)
{
    const cJSON *verified = get(top, "verified");
    if (code == 0 && cJSON_IsTrue(verified))
        return outcome_of_claim(run);
    if (code == 0 && cJSON_IsNull(verified))
        return COMPARE_UNVERIFIED;
    if (code == 1 && cJSON_IsFalse(verified))
        return COMPARE_DIFFERENT;
    bool refused = strcmp(text_of(get(top, "error"), "status"), "refused") == 0;
    return code == 3 && refused ? COMPARE_REFUSED : COMPARE_FAILED;
}

static void read_end(struct comparison *comparison, const cJSON *top,
                     const struct process_result *process, struct compare_run *run)
{
    const char *message = text_of(get(top, "error"), "message");
    run->process_nanoseconds = process->nanoseconds;
    run->host_bytes = process->bytes_peak;
    switch (process->end) {
    case PROCESS_EXITED:
        run->exit_code = process->code;
        run->outcome = process->is_own ? outcome_of_exit(top, run, process->code) : COMPARE_FAILED;
        break;
    case PROCESS_KILLED:
        run->signal = process->code;
        run->outcome = COMPARE_CRASHED;
        break;
    case PROCESS_TIMED_OUT:
    case PROCESS_INTERRUPTED: run->outcome = COMPARE_TIMED_OUT; break;
    }
    if (compare_is_right(run) || run->outcome == COMPARE_DIFFERENT)
        return;
    if (run->outcome == COMPARE_UNPROVEN)
        message =
            "the process says that it verified its results, and its own count of them does not";
    run->message = comparison_keep(comparison, *message ? message : process->last_line);
}

enum healcl_status compare_read_run(struct comparison *comparison, struct compare_run *run,
                                    const struct process_result *process,
                                    struct healcl_error *error)
{
    cJSON *top = tree_of(comparison, process->text);
    read_report(comparison, top, run);
    read_end(comparison, top, process, run);
    cJSON_Delete(top);
    return comparison_status(comparison, error);
}

/* ---------------------------------------------------------------- saved comparisons */

static enum compare_outcome outcome_named(const char *name)
{
    for (enum compare_outcome i = COMPARE_VERIFIED; i <= COMPARE_TIMED_OUT; i++)
        if (strcmp(compare_outcome_name(i), name) == 0)
            return i;
    return COMPARE_FAILED;
}

static void read_saved_run(struct comparison *comparison, const cJSON *object,
                           struct compare_run *run)
{
    const cJSON *code = get(object, "exit_code");
    run->outcome = outcome_named(text_of(object, "outcome"));
    run->exit_code = cJSON_IsNumber(code) ? (int)json_number_of(code) & 0xff : -1;
    run->signal = (int)(number(object, "signal") & 0xff);
    if (run->outcome == COMPARE_DIFFERENT && strcmp(text_of(object, "fault"), "transcript") == 0)
        run->fault = COMPARE_TRANSCRIPT_FAULT;
    run->message = string(comparison, object, "message");
    run->command = string(comparison, object, "command");
    read_columns(comparison, object, &compare_run_columns, run);
    if (run->outcome == COMPARE_VERIFIED)
        run->outcome = outcome_of_claim(run);
    read_times(comparison, object, "samples_ns", run);
    read_profile(comparison, get(object, "profile"), run);
    read_differences(comparison, get(object, "differences"), run);
    read_parts(comparison, get(object, "segments"), "operations", &run->segments,
               &run->segment_count);
    read_parts(comparison, get(object, "ops"), "count", &run->operations, &run->operation_count);
    read_kernels(comparison, get(object, "manifest_kernels"), run);
}

/* The index here of the transcript that is number place of a saved comparison; or that of none. */
static size_t find_transcript(const struct comparison *comparison, const cJSON *top, uint64_t place)
{
    const cJSON *list = get(top, "transcripts");
    const cJSON *object = place < INT32_MAX ? cJSON_GetArrayItem(list, (int)place) : NULL;
    size_t i = 0;
    while (i < comparison->transcript_count &&
           (comparison->transcripts[i].bytes != number(object, "bytes") ||
            strcmp(comparison->transcripts[i].digest, text_of(object, "digest")) != 0))
        i++;
    return i;
}

static void read_origin(struct comparison *comparison, const cJSON *top, const char *path,
                        struct compare_origin *origin)
{
    read_columns(comparison, get(top, "host"), &compare_origin_columns, origin);
    origin->baseline = comparison_keep(comparison, path);
    origin->date = string(comparison, top, "date");
    origin->healcl = string(comparison, top, "healcl");
    origin->commit = string(comparison, top, "commit");
}

/* The device that is number place there, with all its runs that belong here. */
static enum healcl_status read_saved_device(struct comparison *comparison, const cJSON *top,
                                            uint64_t place, const cJSON *object,
                                            const struct compare_origin *origin, size_t *added,
                                            struct healcl_error *error)
{
    struct compare_device *device = NULL;
    const cJSON *saved;
    cJSON_ArrayForEach(saved, get(top, "runs"))
    {
        size_t transcript = find_transcript(comparison, top, number(saved, "transcript_at"));
        if (number(saved, "device_at") != place || transcript == comparison->transcript_count)
            continue;
        if (!device) {
            TRY(comparison_add_device(comparison, &device, error));
            read_device(comparison, object, device);
            device->origin = origin;
        }
        struct compare_run *run;
        TRY(comparison_add_run(comparison, transcript, comparison->device_count - 1, &run, error));
        read_saved_run(comparison, saved, run);
        (*added)++;
    }
    return HEALCL_OK;
}

static enum healcl_status read_saved(struct comparison *comparison, const cJSON *top,
                                     const char *path, size_t *added, struct healcl_error *error)
{
    const cJSON *devices = get(top, "devices"), *object;
    if (!cJSON_IsArray(devices) || !cJSON_IsArray(get(top, "runs")))
        FAIL(error, HEALCL_USAGE, "'%.480s' is no JSON of healcl compare", path);
    struct compare_origin *origin = comparison_alloc(comparison, sizeof *origin);
    if (!origin)
        NO_MEMORY(error);
    read_origin(comparison, top, path, origin);
    uint64_t place = 0;
    cJSON_ArrayForEach(object, devices)
    {
        /* A baseline's own baselines are not this one's. */
        if (!*text_of(object, "baseline"))
            TRY(read_saved_device(comparison, top, place, object, origin, added, error));
        place++;
    }
    return comparison_status(comparison, error);
}

enum healcl_status compare_read_file(const char *path, char **text, struct healcl_error *error)
{
    char block[1 << 16];
    size_t size, got;
    *text = NULL;
    FILE *file = fopen(path, "re");
    if (!file)
        FAIL_FILE(error, "cannot read '%.480s': %s", path, strerror(errno));
    FILE *copy = open_memstream(text, &size);
    size_t left = FILE_MAX + 1;
    while (copy && left > 0 &&
           (got = fread(block, 1, left < sizeof block ? left : sizeof block, file)) > 0)
        left -= fwrite(block, 1, got, copy);
    bool failed = ferror(file), whole = copy && !ferror(copy);
    fclose(file);
    if (copy && fclose(copy) != 0)
        whole = false;
    if (!whole)
        NO_MEMORY(error);
    if (failed)
        FAIL(error, HEALCL_USAGE, "cannot read '%.480s'", path);
    if (left == 0)
        FAIL(error, HEALCL_USAGE, PATH_FORMAT " has more than %d MiB", path, FILE_MAX >> 20);
    return HEALCL_OK;
}

/* *tree: of a JSON file, to be freed with cJSON_Delete also behind an error. HEALCL_USAGE: it
 * cannot be read, or is none. */
static enum healcl_status read_tree(const char *path, cJSON **tree, struct healcl_error *error)
{
    char *text;
    *tree = NULL;
    enum healcl_status status = compare_read_file(path, &text, error);
    if (status == HEALCL_OK)
        status = json_tree_read(text, strlen(text), VALUES_MAX, tree, NULL, error);
    if (status == HEALCL_REFUSED) {
        error_prefix(error, PATH_FORMAT ": ", path);
        status = HEALCL_USAGE;
        if (error)
            error->status = status;
    }
    free(text);
    return status;
}

enum healcl_status compare_read_baseline(struct comparison *comparison, const char *path,
                                         size_t *added, struct healcl_error *error)
{
    cJSON *top;
    *added = 0;
    enum healcl_status status = read_tree(path, &top, error);
    if (status == HEALCL_OK)
        status = read_saved(comparison, top, path, added, error);
    cJSON_Delete(top);
    return status;
}

/* ---------------------------------------------------------------- ranks */

static uint64_t longer_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What `healcl-mpi run` does not tell of all ranks, which work at the same time. */
static void add_up(struct compare_rank *all, const struct compare_rank *rank)
{
    all->nanoseconds = longer_of(all->nanoseconds, rank->nanoseconds);
    all->exchange_nanoseconds = longer_of(all->exchange_nanoseconds, rank->exchange_nanoseconds);
    all->bytes_sent = sum_of(all->bytes_sent, rank->bytes_sent);
    all->bytes_uploaded = sum_of(all->bytes_uploaded, rank->bytes_uploaded);
    all->device_bytes_peak = sum_of(all->device_bytes_peak, rank->device_bytes_peak);
}

static void read_rank(struct comparison *comparison, const cJSON *object, struct compare_rank *rank)
{
    *rank = (struct compare_rank){.is_all = false};
    read_columns(comparison, object, &compare_rank_columns, rank);
}

static enum healcl_status read_ranks(struct comparison *comparison, const cJSON *top,
                                     const char *path, struct healcl_error *error)
{
    const cJSON *list = get(top, "ranks"), *object;
    const bool is_served = cJSON_IsNumber(get(top, "requests"));
    if (!cJSON_IsArray(list) || !(is_served || cJSON_IsNumber(get(top, "rank_count"))))
        FAIL(error, HEALCL_USAGE, PATH_FORMAT " is no JSON of healcl-mpi serve or run", path);
    if (comparison->ranks_count == COMPARE_RANKS_MAX)
        FAIL(error, HEALCL_USAGE, "more than %d reports of ranks", COMPARE_RANKS_MAX);
    struct compare_ranks *ranks = &comparison->ranks[comparison->ranks_count++];
    *ranks = (struct compare_ranks){.report = comparison_keep(comparison, path),
                                    .transcript = string(comparison, top, "transcript"),
                                    .is_served = is_served,
                                    .rows = room_for(comparison, list, sizeof *ranks->rows)};
    if (!ranks->rows)
        NO_MEMORY(error);
    cJSON_ArrayForEach(object, list) read_rank(comparison, object, &ranks->rows[ranks->count++]);
    struct compare_rank *all = &ranks->rows[ranks->count];
    read_rank(comparison, is_served ? top : NULL, all);
    all->is_all = true;
    for (size_t i = 0; i < ranks->count && !is_served; i++)
        add_up(all, &ranks->rows[i]);
    ranks->count++;
    return comparison_status(comparison, error);
}

enum healcl_status compare_read_ranks(struct comparison *comparison, const char *path,
                                      struct healcl_error *error)
{
    cJSON *top;
    enum healcl_status status = read_tree(path, &top, error);
    if (status == HEALCL_OK)
        status = read_ranks(comparison, top, path, error);
    cJSON_Delete(top);
    return status;
}
