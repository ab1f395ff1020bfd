/* Comparisons out of JSON: what child processes wrote, and what was saved. Of both, keys that are
 * missing or of another type count as empty: nothing here trusts what it reads. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/columns.h"
#include "core/arena.h"
#include "report/json.h"
#include "report/text.h"

enum { DIFFERENCES_KEPT = 20 };

/* ---------------------------------------------------------------- values */

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

MUST_CHECK static enum healcl_status string(struct comparison *comparison, const cJSON *object,
                                            const char *key, const char **copy,
                                            struct healcl_error *error)
{
    return comparison_keep(comparison, text_of(object, key), copy, error);
}

/* Room for what a list holds: *count elements of size bytes. */
MUST_CHECK static enum healcl_status room_for(struct comparison *comparison, const cJSON *list,
                                              size_t size, void **array, size_t *count,
                                              struct healcl_error *error)
{
    int length = cJSON_GetArraySize(list); /* of an object too, as the loops see it */
    *count = 0;
    *array = arena_alloc(comparison->arena, ((size_t)length + 1) * size);
    if (!*array)
        NO_MEMORY(error);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- devices */

/* What `healcl check --json` and a device of a saved comparison have alike. */
MUST_CHECK static enum healcl_status read_check(struct comparison *comparison, const cJSON *object,
                                                struct compare_check *check,
                                                struct healcl_error *error)
{
    check->done = cJSON_IsObject(object);
    check->verified = cJSON_IsTrue(get(object, "verified"));
    check->calls = number(object, "calls");
    check->failed = number(object, "failed");
    check->unsupported = number(object, "unsupported");
    if (check->unsupported > check->calls) /* not ours */
        check->unsupported = check->calls;
    return string(comparison, object, "message", &check->message, error);
}

MUST_CHECK static enum healcl_status read_device(struct comparison *comparison, const cJSON *object,
                                                 struct compare_device *device,
                                                 struct healcl_error *error)
{
    TRY(string(comparison, object, "index", &device->selector, error));
    TRY(string(comparison, object, "name", &device->name, error));
    TRY(string(comparison, object, "type", &device->type, error));
    TRY(string(comparison, object, "platform", &device->platform, error));
    TRY(string(comparison, object, "vendor", &device->vendor, error));
    TRY(string(comparison, object, "driver", &device->driver, error));
    TRY(string(comparison, object, "version", &device->version, error));
    TRY(string(comparison, object, "tuning", &device->tuning, error));
    TRY(string(comparison, object, "tuned_by", &device->tuned_by, error));
    device->tuned = cJSON_IsTrue(get(object, "tuned"));
    device->compute_units = number(object, "compute_units");
    device->clock_mhz = number(object, "clock_mhz");
    device->global_memory = number(object, "global_memory");
    device->max_allocation = number(object, "max_allocation");
    device->local_memory = number(object, "local_memory");
    device->max_work_group_size = number(object, "max_work_group_size");
    device->copied_bytes = number(object, "copied_bytes_per_s");
    device->products = number(object, "products_per_s");
    return read_check(comparison, get(object, "check"), &device->check, error);
}

/* Adds those of a list that are the default, or all others that can be used. */
MUST_CHECK static enum healcl_status read_devices(struct comparison *comparison, const cJSON *list,
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
        TRY(read_device(comparison, object, device, error));
    }
    return HEALCL_OK;
}

enum healcl_status compare_read_devices(struct comparison *comparison, const char *text,
                                        bool default_only, struct healcl_error *error)
{
    cJSON *top = cJSON_Parse(text ? text : "");
    enum healcl_status status = read_devices(comparison, get(top, "devices"), true, error);
    if (status == HEALCL_OK && !default_only)
        status = read_devices(comparison, get(top, "devices"), false, error);
    cJSON_Delete(top);
    return status;
}

void compare_read_rates(struct compare_device *device, const char *text)
{
    cJSON *top = cJSON_Parse(text ? text : "");
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
    cJSON *top = cJSON_Parse(process->text ? process->text : "");
    enum healcl_status status = read_check(comparison, top, check, error);
    if (cJSON_IsString(get(top, "self_test_failure")))
        message = text_of(top, "self_test_failure");
    else if (cJSON_IsObject(get(top, "error")))
        message = text_of(get(top, "error"), "message");
    else if (process->end == PROCESS_TIMED_OUT)
        snprintf(ended, sizeof ended, "timed out");
    else if (process->end == PROCESS_KILLED)
        snprintf(ended, sizeof ended, "crashed: %s",
                 process_signal_name(process->code, (char[PROCESS_SIGNAL_SIZE]){0}));
    else if (!check->done)
        snprintf(ended, sizeof ended, "failed: exit code %d", process->code);
    check->done = true;
    if (status == HEALCL_OK && !check->verified)
        status = comparison_keep(comparison, message, &check->message, error);
    cJSON_Delete(top);
    return status;
}

/* ---------------------------------------------------------------- runs */

void compare_read_first(struct compare_first *first, const struct process_result *process)
{
    cJSON *top = cJSON_Parse(process->text ? process->text : "");
    if (process->end == PROCESS_EXITED && process->code == 0) {
        first->nanoseconds = number(top, "first_result_ns");
        first->compile_nanoseconds = number(top, "compile_ns");
    }
    cJSON_Delete(top);
}

MUST_CHECK static enum healcl_status read_samples(struct comparison *comparison, const cJSON *list,
                                                  uint64_t **samples, size_t *count,
                                                  struct healcl_error *error)
{
    void *array;
    TRY(room_for(comparison, list, sizeof **samples, &array, count, error));
    *samples = array;
    const cJSON *item;
    cJSON_ArrayForEach(item, list)(*samples)[(*count)++] = json_number_of(item);
    return HEALCL_OK;
}

/* How operations were timed. */
MUST_CHECK static enum healcl_status read_profile(struct comparison *comparison,
                                                  const cJSON *profile, struct compare_run *run,
                                                  struct healcl_error *error)
{
    run->operations_by_host = strcmp(text_of(profile, "clock"), "host") == 0;
    return read_samples(comparison, get(profile, "runs_ns"), &run->profiled, &run->profiled_count,
                        error);
}

MUST_CHECK static enum healcl_status read_differences(struct comparison *comparison,
                                                      const cJSON *list, struct compare_run *run,
                                                      struct healcl_error *error)
{
    void *array;
    TRY(room_for(comparison, list, sizeof *run->differences, &array, &run->difference_count,
                 error));
    run->differences = array;
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        const char *line = cJSON_GetStringValue(item);
        if (line && run->difference_count < DIFFERENCES_KEPT)
            TRY(comparison_keep(comparison, line, &run->differences[run->difference_count++],
                                error));
    }
    return HEALCL_OK;
}

/* A list of objects with "name", and "operations" or "count" of them. */
MUST_CHECK static enum healcl_status read_parts(struct comparison *comparison, const cJSON *list,
                                                const char *count_key, struct compare_part **parts,
                                                size_t *count, struct healcl_error *error)
{
    void *array;
    TRY(room_for(comparison, list, sizeof **parts, &array, count, error));
    *parts = array;
    const cJSON *object;
    cJSON_ArrayForEach(object, list)
    {
        struct compare_part *part = &(*parts)[(*count)++];
        TRY(string(comparison, object, "name", &part->name, error));
        part->count = number(object, count_key);
        part->bytes =
            number(object, "bytes") + number(object, "bytes_up") + number(object, "bytes_down");
        part->nanoseconds = number(object, "time_ns");
    }
    return HEALCL_OK;
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
            run->operations[run->operation_count++] = (struct compare_part){.name = parts[i].name};
        run->operations[place].count += parts[i].count;
        run->operations[place].bytes += parts[i].bytes;
        run->operations[place].nanoseconds += parts[i].nanoseconds;
    }
}

static int longer_first(const void *a, const void *b)
{
    const struct compare_part *x = a, *y = b;
    if (x->nanoseconds != y->nanoseconds)
        return x->nanoseconds < y->nanoseconds ? 1 : -1;
    return strcmp(x->name, y->name);
}

MUST_CHECK static enum healcl_status read_segments(struct comparison *comparison, const cJSON *list,
                                                   struct compare_run *run,
                                                   struct healcl_error *error)
{
    size_t kinds = 0;
    const cJSON *segment;
    cJSON_ArrayForEach(segment, list) kinds +=
        (size_t)cJSON_GetArraySize(get(segment, "operations_by_kind"));
    run->operations = arena_alloc(comparison->arena, (kinds + 1) * sizeof *run->operations);
    if (!run->operations)
        NO_MEMORY(error);
    TRY(read_parts(comparison, list, "operations", &run->segments, &run->segment_count, error));
    cJSON_ArrayForEach(segment, list)
    {
        struct compare_part *parts;
        size_t count;
        TRY(read_parts(comparison, get(segment, "operations_by_kind"), "count", &parts, &count,
                       error));
        add_operations(run, parts, count);
    }
    qsort(run->operations, run->operation_count, sizeof *run->operations, longer_first);
    return HEALCL_OK;
}

/* What `run --json` writes at its end. */
MUST_CHECK static enum healcl_status read_report(struct comparison *comparison, const cJSON *top,
                                                 struct compare_run *run,
                                                 struct healcl_error *error)
{
    columns_read_json(top, run); /* the keys are the same there */
    const cJSON *tuned = get(get(top, "device"), "tuned");
    if (cJSON_IsBool(tuned))
        comparison->devices[run->device].tuned = cJSON_IsTrue(tuned);
    TRY(read_samples(comparison, get(top, "runs_ns"), &run->samples, &run->sample_count, error));
    TRY(read_profile(comparison, get(top, "profile"), run, error));
    TRY(read_differences(comparison, get(top, "differences"), run, error));
    return read_segments(comparison, get(top, "segments"), run, error);
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

MUST_CHECK static enum healcl_status read_end(struct comparison *comparison, const cJSON *top,
                                              const struct process_result *process,
                                              struct compare_run *run, struct healcl_error *error)
{
    const char *message = text_of(get(top, "error"), "message");
    run->process_nanoseconds = process->nanoseconds;
    run->host_bytes = process->bytes_peak;
    switch (process->end) {
    case PROCESS_EXITED:
        run->exit_code = process->code;
        run->outcome = outcome_of_exit(top, run, process->code);
        break;
    case PROCESS_KILLED:
        run->signal = process->code;
        run->outcome = COMPARE_CRASHED;
        break;
    case PROCESS_TIMED_OUT:
    case PROCESS_INTERRUPTED: run->outcome = COMPARE_TIMED_OUT; break;
    }
    if (compare_is_right(run) || run->outcome == COMPARE_DIFFERENT)
        return HEALCL_OK;
    if (run->outcome == COMPARE_UNPROVEN)
        message =
            "the process says that it verified its results, and its own count of them does not";
    return comparison_keep(comparison, *message ? message : process->last_line, &run->message,
                           error);
}

enum healcl_status compare_read_run(struct comparison *comparison, struct compare_run *run,
                                    const struct process_result *process,
                                    struct healcl_error *error)
{
    cJSON *top = cJSON_Parse(process->text ? process->text : "");
    enum healcl_status status = read_report(comparison, top, run, error);
    if (status == HEALCL_OK)
        status = read_end(comparison, top, process, run, error);
    cJSON_Delete(top);
    return status;
}

/* ---------------------------------------------------------------- saved comparisons */

static enum compare_outcome outcome_named(const char *name)
{
    for (enum compare_outcome i = COMPARE_VERIFIED; i <= COMPARE_TIMED_OUT; i++)
        if (strcmp(compare_outcome_name(i), name) == 0)
            return i;
    return COMPARE_FAILED;
}

MUST_CHECK static enum healcl_status read_saved_run(struct comparison *comparison,
                                                    const cJSON *object, struct compare_run *run,
                                                    struct healcl_error *error)
{
    const cJSON *code = get(object, "exit_code");
    run->outcome = outcome_named(text_of(object, "outcome"));
    run->exit_code = cJSON_IsNumber(code) ? (int)json_number_of(code) & 0xff : -1;
    run->signal = (int)(number(object, "signal") & 0xff);
    if (run->outcome == COMPARE_DIFFERENT && strcmp(text_of(object, "fault"), "transcript") == 0)
        run->fault = COMPARE_TRANSCRIPT_FAULT;
    TRY(string(comparison, object, "message", &run->message, error));
    TRY(string(comparison, object, "command", &run->command, error));
    columns_read_json(object, run);
    if (run->outcome == COMPARE_VERIFIED)
        run->outcome = outcome_of_claim(run);
    TRY(read_samples(comparison, get(object, "samples_ns"), &run->samples, &run->sample_count,
                     error));
    TRY(read_profile(comparison, get(object, "profile"), run, error));
    TRY(read_differences(comparison, get(object, "differences"), run, error));
    TRY(read_parts(comparison, get(object, "segments"), "operations", &run->segments,
                   &run->segment_count, error));
    return read_parts(comparison, get(object, "ops"), "count", &run->operations,
                      &run->operation_count, error);
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

MUST_CHECK static enum healcl_status read_origin(struct comparison *comparison, const cJSON *top,
                                                 const char *path, struct compare_origin *origin,
                                                 struct healcl_error *error)
{
    const cJSON *host = get(top, "host");
    TRY(comparison_keep(comparison, path, &origin->baseline, error));
    TRY(string(comparison, top, "date", &origin->date, error));
    TRY(string(comparison, top, "healcl", &origin->healcl, error));
    TRY(string(comparison, host, "system", &origin->system, error));
    TRY(string(comparison, host, "processor", &origin->processor, error));
    origin->processors = number(host, "processors");
    origin->memory_bytes = number(host, "memory");
    return HEALCL_OK;
}

/* The device that is number place there, with all its runs that belong here. */
MUST_CHECK static enum healcl_status read_saved_device(struct comparison *comparison,
                                                       const cJSON *top, uint64_t place,
                                                       const cJSON *object,
                                                       const struct compare_origin *origin,
                                                       size_t *added, struct healcl_error *error)
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
            TRY(read_device(comparison, object, device, error));
            device->origin = origin;
        }
        struct compare_run *run;
        TRY(comparison_add_run(comparison, transcript, comparison->device_count - 1, &run, error));
        TRY(read_saved_run(comparison, saved, run, error));
        (*added)++;
    }
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_saved(struct comparison *comparison, const cJSON *top,
                                                const char *path, size_t *added,
                                                struct healcl_error *error)
{
    const cJSON *devices = get(top, "devices"), *object;
    if (!cJSON_IsArray(devices) || !cJSON_IsArray(get(top, "runs")))
        FAIL(error, HEALCL_USAGE, "'%.480s' is no JSON of healcl compare", path);
    struct compare_origin *origin = arena_alloc(comparison->arena, sizeof *origin);
    if (!origin)
        NO_MEMORY(error);
    TRY(read_origin(comparison, top, path, origin, error));
    uint64_t place = 0;
    cJSON_ArrayForEach(object, devices)
    {
        /* A baseline's own baselines are not this one's. */
        if (!*text_of(object, "baseline"))
            TRY(read_saved_device(comparison, top, place, object, origin, added, error));
        place++;
    }
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_file(const char *path, char **text,
                                               struct healcl_error *error)
{
    enum { BLOCK = 1 << 16 };
    size_t size = 0, capacity = 0;
    *text = NULL;
    FILE *file = fopen(path, "re");
    if (!file)
        FAIL(error, HEALCL_USAGE, "cannot read '%.480s': %s", path, strerror(errno));
    for (size_t got = 1; got > 0; size += got) {
        if (capacity - size < BLOCK) {
            capacity = 2 * capacity + 2 * (size_t)BLOCK;
            char *grown = realloc(*text, capacity);
            if (!grown) {
                fclose(file);
                NO_MEMORY(error);
            }
            *text = grown;
        }
        got = fread(*text + size, 1, capacity - size - 1, file);
    }
    bool failed = ferror(file);
    fclose(file);
    if (failed)
        FAIL(error, HEALCL_USAGE, "cannot read '%.480s'", path);
    (*text)[size] = 0;
    return HEALCL_OK;
}

enum healcl_status compare_read_baseline(struct comparison *comparison, const char *path,
                                         size_t *added, struct healcl_error *error)
{
    char *text;
    *added = 0;
    enum healcl_status status = read_file(path, &text, error);
    if (status == HEALCL_OK) {
        cJSON *top = cJSON_Parse(text);
        status = read_saved(comparison, top, path, added, error);
        cJSON_Delete(top);
    }
    free(text);
    return status;
}
