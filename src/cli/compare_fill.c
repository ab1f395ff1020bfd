/* Fills a comparison from JSON that child processes wrote or that was saved. The JSON is not
 * trusted. */
#include <stdlib.h>
#include <string.h>

#include "cli/comparison.h"
#include "core/file.h"
#include "core/json_tree.h"
#include "tools/xmalloc.h"

enum { DIFFERENCES_KEPT = 20 };

/* Limits for the JSON of a process or of a saved comparison. A run has some hundred values. */
enum { VALUES_MAX = 1 << 20, FILE_MAX = 32 << 20 };

/* ---------------------------------------------------------------- trees */

static void clean(cJSON *value)
{
    for (; value; value = value->next) {
        if (value->valuestring)
            text_clean(value->valuestring, false);
        clean(value->child);
    }
}

/* Parses the output of a process. Returns NULL if it is not JSON or too large. Freed with
 * cJSON_Delete. */
static cJSON *tree_of(const char *text)
{
    cJSON *tree = NULL;
    if (text && json_tree_read(text, strlen(text), VALUES_MAX, &tree, NULL, NULL) != HEALCL_OK)
        return NULL;
    clean(tree);
    return tree;
}

enum healcl_status compare_read_file(const char *path, cJSON **tree, struct healcl_error *error)
{
    unsigned char *text;
    size_t size;
    *tree = NULL;
    TRY(file_read(path, FILE_MAX, &text, &size, error));
    const enum healcl_status status =
        json_tree_read((const char *)text, size, VALUES_MAX, tree, NULL, error);
    free(text);
    clean(*tree);
    if (status == HEALCL_OK)
        return HEALCL_OK;
    error_prefix(error, PATH_FORMAT ": ", path);
    if (error)
        error->status = HEALCL_USAGE;
    return HEALCL_USAGE;
}

/* ---------------------------------------------------------------- devices */

cJSON *compare_add_device(struct comparison *comparison, const cJSON *source)
{
    cJSON *device = json_add_object(comparison->devices, NULL);
    compare_copy(device, source, compare_device_columns);
    return device;
}

size_t compare_add_devices(struct comparison *comparison, const char *text, bool default_only,
                           bool *is_of_driver)
{
    cJSON *top = tree_of(text);
    size_t added = 0;
    *is_of_driver = json_is(top, "error.cause", "driver");
    for (int others = 0; others <= !default_only; others++)
        JSON_EACH(source, json_at(top, "devices"))
        {
            const bool is_default = cJSON_IsTrue(json_at(source, "default"));
            if (others ? is_default || !cJSON_IsTrue(json_at(source, "usable")) : !is_default)
                continue;
            compare_add_device(comparison, source);
            added++;
        }
    cJSON_Delete(top);
    return added;
}

void compare_take_rates(cJSON *device, const char *text)
{
    cJSON *top = tree_of(text);
    JSON_EACH(source, json_at(top, "devices"))
    {
        if (cJSON_IsTrue(json_at(source, "default")))
            compare_copy(device, source, compare_device_columns);
    }
    cJSON_Delete(top);
}

/* ---------------------------------------------------------------- parts of runs */

static void put_times(cJSON *run, const char *path, const cJSON *list)
{
    cJSON *times = cJSON_CreateArray();
    JSON_EACH(item, list)
    {
        cJSON_AddItemToArray(times, cJSON_CreateNumber((double)json_number_of(item)));
    }
    compare_put(run, path, times);
}

/* key: the key of the whole times, which differs between a process and a saved comparison. */
static void put_samples(cJSON *run, const cJSON *source, const char *key)
{
    static const char *const paths[] = {"split.decode_ns", "split.transfer_ns", "split.compute_ns",
                                        "steady.requests_ns"};
    put_times(run, "samples_ns", json_at(source, key));
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (cJSON_GetArraySize(json_at(source, paths[i])) > 0)
            put_times(run, paths[i], json_at(source, paths[i]));
    if (json_at(run, "split.compute_ns"))
        compare_put_text(run, "split.clock", "host");
    if (cJSON_GetArraySize(json_at(run, "samples_ns")) == 0)
        return;
    const bool by_host = json_is(source, "profile.clock", "host");
    compare_put_text(run, "profile.clock", by_host ? "host" : "device");
    put_times(run, "profile.runs_ns", json_at(source, "profile.runs_ns"));
}

static void put_differences(cJSON *run, const cJSON *source)
{
    cJSON *list = cJSON_CreateArray();
    JSON_EACH(item, json_at(source, "differences"))
    {
        if (cJSON_IsString(item) && cJSON_GetArraySize(list) < DIFFERENCES_KEPT)
            cJSON_AddItemToArray(list, cJSON_CreateString(item->valuestring));
    }
    compare_put(run, "differences", list);
}

static void add_up(cJSON *part, const char *key, double number)
{
    compare_put_number(part, key, compare_number(part, key) + number);
}

/* Adds a segment, or operations of a kind, to a list. merged: adds to an item with the same
 * name. */
static void add_part(cJSON *list, const cJSON *source, const char *count_key, bool merged)
{
    const char *name = json_text(source, "name"), *reason = json_text(source, "fallback_reason");
    cJSON *part = merged ? json_row(list, "name", name) : json_add_object(list, NULL);
    compare_put_text(part, "name", name);
    add_up(part, count_key, compare_number(source, count_key));
    add_up(part, "bytes",
           compare_number(source, "bytes") + compare_number(source, "bytes_up") +
               compare_number(source, "bytes_down"));
    add_up(part, "time_ns", compare_number(source, "time_ns"));
    if (compare_number(source, "fallbacks") == 0)
        return;
    add_up(part, "fallbacks", compare_number(source, "fallbacks"));
    if (!*json_text(part, "fallback_reason"))
        compare_put_text(part, "fallback_reason", reason);
}

static void put_parts(cJSON *run, const cJSON *source)
{
    cJSON *segments = cJSON_CreateArray(), *kinds = cJSON_CreateArray();
    JSON_EACH(segment, json_at(source, "segments"))
    {
        add_part(segments, segment, "operations", false);
        JSON_EACH(kind, json_at(segment, "operations_by_kind"))
        {
            add_part(kinds, kind, "count", true);
        }
    }
    JSON_EACH(kind, json_at(source, "ops"))
    {
        add_part(kinds, kind, "count", true);
    }
    compare_put(run, "segments", segments);
    compare_put(run, "ops", kinds);
}

/* ---------------------------------------------------------------- outcomes */

/* Checks that a process's output is consistent, because a driver in it may write anything. */
static const char *outcome_of_claim(const cJSON *run)
{
    const double total = compare_number(run, "results.total"),
                 compared = compare_number(run, "results.compared");
    const bool agrees =
        compared > 0 && compared <= total && compare_number(run, "results.different") == 0;
    return agrees ? "verified" : "unproven";
}

/* Finds the outcome from the exit code (src/cli/cli.h) and the JSON of a process that ended without
 * a signal. */
static const char *outcome_of_exit(const cJSON *top, const cJSON *run, int code)
{
    const cJSON *verified = json_at(top, "verified");
    if (code == 0 && cJSON_IsTrue(verified))
        return outcome_of_claim(run);
    if (code == 0 && cJSON_IsNull(verified))
        return "nothing to verify";
    if (code == 1 && cJSON_IsFalse(verified))
        return "different";
    return code == 3 && json_is(top, "error.status", "refused") ? "refused" : "failed";
}

static const char *outcome_of_end(const cJSON *top, cJSON *run,
                                  const struct process_result *process)
{
    switch (process->end) {
    case PROCESS_EXITED:
        compare_put_number(run, "exit_code", process->code & 0xff);
        return process->is_own ? outcome_of_exit(top, run, process->code) : "failed";
    case PROCESS_KILLED: compare_put_number(run, "signal", process->code & 0xff); return "crashed";
    case PROCESS_TIMED_OUT:
    case PROCESS_INTERRUPTED: break;
    }
    return "timed out";
}

static void put_outcome(cJSON *run, const char *outcome, const char *message)
{
    compare_put_text(run, "outcome", outcome);
    const bool verified = strcmp(outcome, "verified") == 0;
    const bool is_known = verified || strcmp(outcome, "different") == 0;
    compare_put(run, "verified", is_known ? cJSON_CreateBool(verified) : cJSON_CreateNull());
    if (strcmp(outcome, "unproven") == 0)
        message = "the process says that it verified its results, and its own count of them does "
                  "not";
    compare_put_text(run, "message", compare_is_right(run) ? "" : message);
}

/* ---------------------------------------------------------------- runs */

/* Copies the members that JSON of a process and saved JSON share. */
static void put_run(const struct comparison *comparison, cJSON *run, const cJSON *source,
                    const char *samples)
{
    const cJSON *device = compare_device_of(comparison, run);
    const cJSON *transcript = compare_transcript(comparison, json_number_at(run, "transcript_at"));
    const cJSON *kernels = json_at(source, "manifest_kernels");
    compare_put_text(run, "transcript", json_text(transcript, "file"));
    compare_put_text(run, "device", json_text(device, "name"));
    compare_put_text(run, "platform", json_text(device, "platform"));
    compare_put_text(run, "driver", json_text(device, "driver"));
    compare_copy(run, source, compare_run_columns);
    put_differences(run, source);
    put_samples(run, source, samples);
    put_parts(run, source);
    if (cJSON_IsArray(kernels) && cJSON_GetArraySize(kernels) > 0)
        compare_put(run, "manifest_kernels", cJSON_Duplicate(kernels, true));
}

void compare_take_run(struct comparison *comparison, cJSON *run,
                      const struct process_result *process)
{
    cJSON *top = tree_of(process->text);
    cJSON *device = compare_device_of(comparison, run);
    const cJSON *tuned = json_at(top, "device.tuned");
    const char *message = json_text(top, "error.message");
    put_run(comparison, run, top, "runs_ns");
    if (cJSON_IsBool(tuned) && json_at(device, "tuning"))
        compare_put(device, "tuned", cJSON_CreateBool(cJSON_IsTrue(tuned)));
    compare_put_number(run, "process_ns", (double)process->nanoseconds);
    compare_put_number(run, "host_memory_peak", (double)process->bytes_peak);
    const char *outcome = outcome_of_end(top, run, process);
    const bool differs = strcmp(outcome, "different") == 0;
    put_outcome(run, outcome, differs ? "" : *message ? message : process->last_line);
    compare_add_figures(run);
    cJSON_Delete(top);
}

/* ---------------------------------------------------------------- saved comparisons */

static void take_saved_run(const struct comparison *comparison, cJSON *run, const cJSON *source)
{
    static const char *const outcomes[] = {"verified", "nothing to verify", "unproven", "different",
                                           "refused",  "crashed",           "timed out"};
    static const char *const codes[] = {"exit_code", "signal"};
    const char *outcome = "failed";
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++)
        outcome = json_is(source, "outcome", outcomes[i]) ? outcomes[i] : outcome;
    put_run(comparison, run, source, "samples_ns");
    for (size_t i = 0; i < 2; i++)
        if (cJSON_IsNumber(json_at(source, codes[i])))
            compare_put_number(run, codes[i], (uint64_t)compare_number(source, codes[i]) & 0xff);
    put_outcome(run, strcmp(outcome, "verified") == 0 ? outcome_of_claim(run) : outcome,
                json_text(source, "message"));
    compare_put_text(run, "command", json_text(source, "command"));
    if (json_is(run, "outcome", "different") && json_is(source, "fault", "transcript"))
        compare_put_text(run, "fault", "transcript");
    compare_add_figures(run);
}

/* Returns the index here of the saved transcript number `place`; or that of none. */
static size_t find_transcript(const struct comparison *comparison, const cJSON *top, double place)
{
    const cJSON *there =
        place < INT32_MAX ? cJSON_GetArrayItem(json_at(top, "transcripts"), (int)place) : NULL;
    size_t i = 0;
    JSON_EACH(here, comparison->transcripts)
    {
        if (compare_number(here, "bytes") == compare_number(there, "bytes") &&
            json_is(there, "digest", json_text(here, "digest")))
            break;
        i++;
    }
    return i;
}

/* Adds the saved device number `place`, with its runs of transcripts in this comparison. */
static size_t add_saved_device(struct comparison *comparison, const cJSON *top, size_t place,
                               const cJSON *source, const char *path)
{
    cJSON *device = NULL;
    size_t added = 0;
    JSON_EACH(saved, json_at(top, "runs"))
    {
        const size_t transcript =
            find_transcript(comparison, top, compare_number(saved, "transcript_at"));
        if (json_number_at(saved, "device_at") != place ||
            transcript == json_number_at(comparison->top, "transcripts"))
            continue;
        if (!device) {
            cJSON *host = cJSON_CreateObject();
            device = compare_add_device(comparison, source);
            compare_copy(host, json_at(top, "host"), compare_host_columns);
            compare_put_text(device, "baseline", path);
            compare_put_text(device, "date", json_text(top, "date"));
            compare_put(device, "host", host);
        }
        take_saved_run(
            comparison,
            compare_add_run(comparison, transcript, json_number_at(comparison->top, "devices") - 1),
            saved);
        added++;
    }
    return added;
}

enum healcl_status compare_add_baseline(struct comparison *comparison, const char *path,
                                        size_t *added, struct healcl_error *error)
{
    cJSON *top;
    size_t place = 0;
    *added = 0;
    TRY(compare_read_file(path, &top, error));
    if (!cJSON_IsArray(json_at(top, "devices")) || !cJSON_IsArray(json_at(top, "runs"))) {
        cJSON_Delete(top);
        FAIL(error, HEALCL_USAGE, "'%.480s' is no JSON of healcl compare", path);
    }
    JSON_EACH(source, json_at(top, "devices"))
    {
        if (!json_at(source, "baseline")) /* the baselines that it was compared with are ignored */
            *added += add_saved_device(comparison, top, place, source, path);
        place++;
    }
    cJSON_Delete(top);
    return HEALCL_OK;
}
