/* What is known of a device, in a file of its own that others can check: docs/COMPARE.md. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compare/compare.h"
#include "core/file.h"
#include "core/json_tree.h"
#include "core/new_file.h"
#include "report/json.h"

enum { NAME_SIZE = 128, PATH_SIZE = 4096, RESULTS_VALUES_MAX = 1 << 16 };

/* ---------------------------------------------------------------- names of files */

/* Appends the letters and digits of a text, in lower case, with a hyphen where others are; but no
 * "(R)" and "(TM)". */
static void append_word(char name[NAME_SIZE], const char *text)
{
    char plain[TITLE_PART_SIZE];
    size_t length = strlen(name);
    compare_plain_name(plain, text);
    for (const char *c = plain; *c && length + 2 < NAME_SIZE; c++) {
        if (isalnum((unsigned char)*c))
            name[length++] = (char)tolower((unsigned char)*c);
        else if (length > 0 && name[length - 1] != '-')
            name[length++] = '-';
    }
    name[length] = 0;
}

/* "FOLDER/nvidia-corporation-nvidia-h100.json". False: it is too long. */
static bool put_path(char path[PATH_SIZE], const char *folder, const struct compare_device *device)
{
    char name[NAME_SIZE] = "";
    append_word(name, *device->vendor ? device->vendor : "unknown");
    append_word(name, "-");
    append_word(name, device->name);
    for (size_t length = strlen(name); length > 0 && name[length - 1] == '-'; length--)
        name[length - 1] = 0;
    return snprintf(path, PATH_SIZE, "%s/%s.json", folder, *name ? name : "unknown") < PATH_SIZE;
}

/* ---------------------------------------------------------------- what is written */

/* When and with what a part was found. */
static void add_origin(struct json *json, cJSON *part, const struct compare_device *device)
{
    const struct compare_origin *origin = device->origin;
    json_string(json, part, "date", origin->date);
    json_string(json, part, "healcl", origin->healcl);
    json_string(json, part, "commit", origin->commit);
    json_string(json, part, "driver", device->driver);
    json_string(json, part, "platform_version", device->platform_version);
    json_decimal(json, part, "load_before", (double)origin->load_before / 100);
    json_decimal(json, part, "load_after", (double)origin->load_after / 100);
}

/* Steps that the host ran, for the device could not. */
static uint64_t fallbacks_of(const struct compare_run *run)
{
    uint64_t count = 0;
    for (size_t i = 0; i < run->operation_count; i++)
        count += run->operations[i].fallbacks;
    return count;
}

static void add_run(struct json *json, cJSON *list, const struct comparison *comparison,
                    const struct compare_run *run)
{
    const struct compare_transcript *transcript = &comparison->transcripts[run->transcript];
    cJSON *object = json_object(json, list, NULL);
    struct compare_times times;
    json_string(json, object, "transcript", compare_base_name(transcript->file));
    json_string(json, object, "digest", transcript->digest);
    json_string(json, object, "outcome", compare_outcome_name(run->outcome));
    json_number(json, object, "results", run->results);
    json_number(json, object, "compared", run->compared);
    json_number(json, object, "different", run->different);
    if (fallbacks_of(run) > 0)
        json_number(json, object, "fallbacks", fallbacks_of(run));
    if (!compare_is_right(run))
        return;
    if (compare_times_of(run, COMPARE_WHOLE, &times)) {
        json_number(json, object, "median_ns", times.median);
        json_number(json, object, "low_ns", times.low);
        json_number(json, object, "high_ns", times.high);
    }
    if (compare_times_of(run, COMPARE_COMPUTE, &times))
        json_number(json, object, "compute_ns", times.median);
    if (compare_times_of(run, COMPARE_STEADY, &times))
        json_number(json, object, "steady_ns", times.median);
}

static bool has_runs(const struct comparison *comparison, size_t device)
{
    for (size_t i = 0; i < comparison->run_count; i++)
        if (comparison->runs[i].device == device)
            return true;
    return false;
}

static void add_compare(struct json *json, const struct comparison *comparison, size_t device)
{
    cJSON *part = json_object(json, json->top, "compare");
    add_origin(json, part, &comparison->devices[device]);
    json_number(json, part, "repeat", comparison->repeat);
    cJSON *list = json_array(json, part, "runs");
    for (size_t i = 0; i < comparison->run_count; i++)
        if (comparison->runs[i].device == device)
            add_run(json, list, comparison, &comparison->runs[i]);
}

static void add_check(struct json *json, const struct compare_device *device)
{
    const struct compare_check *check = &device->check;
    cJSON *part = json_object(json, json->top, "check");
    add_origin(json, part, device);
    json_bool(json, part, "quick", check->quick);
    json_bool(json, part, "verified", check->verified);
    json_number(json, part, "calls", check->calls);
    json_number(json, part, "failed", check->failed);
    json_number(json, part, "unsupported", check->unsupported);
    if (*check->message)
        json_string(json, part, "message", check->message);
}

/* Keeps a part that was found before. */
static void keep_part(struct json *json, cJSON *before, const char *key)
{
    cJSON *part = cJSON_DetachItemFromObjectCaseSensitive(before, key);
    if (part && !cJSON_AddItemToObject(json->top, key, part)) {
        cJSON_Delete(part);
        json->failed = true;
    }
}

static enum healcl_status print_results(const struct comparison *comparison, size_t number,
                                        cJSON *before, FILE *stream)
{
    const struct compare_device *device = &comparison->devices[number];
    struct json json;
    json_begin(&json, device->origin->healcl);
    json_string(&json, json.top, "level", device->emulator ? "emulated" : "ran");
    json_string(&json, json.top, "title", compare_device_name(device));
    json_string(&json, json.top, "name", device->name);
    json_string(&json, json.top, "vendor", device->vendor);
    json_string(&json, json.top, "type", device->type);
    json_string(&json, json.top, "platform", device->platform);
    json_string(&json, json.top, "driver", device->driver);
    json_string(&json, json.top, "version", device->version);
    json_number(&json, json.top, "compute_units", device->compute_units);
    json_number(&json, json.top, "clock_mhz", device->clock_mhz);
    json_string(&json, json.top, "processor", device->origin->processor);
    json_string(&json, json.top, "model", device->origin->model);
    json_string(&json, json.top, "system", device->origin->system);
    if (has_runs(comparison, number))
        add_compare(&json, comparison, number);
    else
        keep_part(&json, before, "compare");
    if (device->check.done)
        add_check(&json, device);
    else
        keep_part(&json, before, "check");
    return json_print(&json, stream);
}

/* ---------------------------------------------------------------- files */

/* *before: what the file has of this device; NULL where there is none yet. Freed with cJSON_Delete.
 */
static enum healcl_status read_before(const char *path, const struct compare_device *device,
                                      cJSON **before, struct healcl_error *error)
{
    char *text = NULL;
    *before = NULL;
    if (access(path, F_OK) != 0)
        return HEALCL_OK;
    enum healcl_status status = compare_read_file(path, &text, error);
    if (status == HEALCL_OK)
        status = json_tree_read(text, strlen(text), RESULTS_VALUES_MAX, before, NULL, error);
    free(text);
    TRY(status);
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(*before, "name"));
    if (!name || strcmp(name, device->name) != 0) {
        cJSON_Delete(*before);
        *before = NULL;
        FAIL(error, HEALCL_USAGE, PATH_FORMAT " has no results of %.200s", path, device->name);
    }
    return HEALCL_OK;
}

static enum healcl_status write_results(const struct comparison *comparison, const char *folder,
                                        size_t device, struct healcl_error *error)
{
    char path[PATH_SIZE];
    cJSON *before;
    struct new_file file = {.stream = NULL};
    if (!put_path(path, folder, &comparison->devices[device]))
        FAIL(error, HEALCL_USAGE, PATH_FORMAT " is too long", folder);
    TRY(read_before(path, &comparison->devices[device], &before, error));
    enum healcl_status status = new_file_open(&file, path, error);
    if (status == HEALCL_OK && print_results(comparison, device, before, file.stream) != HEALCL_OK)
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    if (status == HEALCL_OK)
        status = new_file_commit(&file, error);
    new_file_discard(&file);
    cJSON_Delete(before);
    return status;
}

enum healcl_status compare_make_results(const char *folder, struct healcl_error *error)
{
    struct stat about;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        FAIL(error, HEALCL_USAGE, "cannot make " PATH_FORMAT ": %s", folder, strerror(errno));
    if (stat(folder, &about) != 0 || !S_ISDIR(about.st_mode) || access(folder, W_OK) != 0)
        FAIL(error, HEALCL_USAGE, "cannot write into " PATH_FORMAT, folder);
    return HEALCL_OK;
}

/* The first of several devices of one name and vendor stands for them all. */
static bool is_first(const struct comparison *comparison, size_t device)
{
    const struct compare_device *devices = comparison->devices;
    for (size_t i = 0; i < device; i++)
        if (strcmp(devices[i].name, devices[device].name) == 0 &&
            strcmp(devices[i].vendor, devices[device].vendor) == 0)
            return false;
    return true;
}

enum healcl_status compare_write_results(const struct comparison *comparison, const char *folder,
                                         struct healcl_error *error)
{
    for (size_t i = 0; i < compare_own_devices(comparison); i++) {
        const struct compare_device *device = &comparison->devices[i];
        if (*device->name && !compare_is_reference(device) && is_first(comparison, i))
            TRY(write_results(comparison, folder, i, error));
    }
    return HEALCL_OK;
}
