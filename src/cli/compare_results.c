/* Writes a result file for each device, which others can check: docs/COMPARE.md. */
#include <ctype.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/comparison.h"
#include "core/file.h"
#include "core/new_file.h"

enum { FILE_NAME_SIZE = 128 };

/* ---------------------------------------------------------------- names of files */

/* Appends the letters and digits of a text in lower case, with a hyphen for other characters. "(R)"
 * and "(TM)" are removed. */
static void append_word(char name[FILE_NAME_SIZE], const char *text)
{
    char plain[NAME_SIZE];
    size_t length = strlen(name);
    for (const char *c = compare_plain_name(plain, text); *c && length + 2 < FILE_NAME_SIZE; c++) {
        if (isalnum((unsigned char)*c))
            name[length++] = (char)tolower((unsigned char)*c);
        else if (length > 0 && name[length - 1] != '-')
            name[length++] = '-';
    }
    name[length] = 0;
}

/* Returns "FOLDER/nvidia-corporation-nvidia-h100.json"; */
static const char *path_of(const char *folder, const cJSON *device)
{
    char name[FILE_NAME_SIZE] = "";
    const char *vendor = json_text(device, "vendor");
    append_word(name, *vendor ? vendor : "unknown");
    append_word(name, "-");
    append_word(name, json_text(device, "name"));
    for (size_t length = strlen(name); length > 0 && name[length - 1] == '-'; length--)
        name[length - 1] = 0;
    return xformat("%s/%s.json", folder, *name ? name : "unknown");
}

/* ---------------------------------------------------------------- what is written */

/* keys: ends with NULL. */
static void copy_items(cJSON *target, const cJSON *source, const char *const *keys)
{
    for (; *keys; keys++) {
        const cJSON *item = json_at(source, *keys);
        if (item)
            compare_put(target, *keys, cJSON_Duplicate(item, true));
    }
}

#define COPY(target, source, ...) \
    copy_items(target, source, (const char *const[]){__VA_ARGS__, NULL})

/* Adds when and with which versions a part was measured. */
static cJSON *new_part(const struct comparison *comparison, const cJSON *device)
{
    cJSON *part = cJSON_CreateObject();
    COPY(part, comparison->top, "date", "healcl", "commit");
    COPY(part, device, "driver", "platform_version");
    COPY(part, json_at(comparison->top, "host"), "load_before", "load_after");
    return part;
}

static cJSON *new_run(const cJSON *run)
{
    cJSON *object = cJSON_CreateObject();
    const cJSON *results = json_at(run, "results");
    COPY(object, run, "outcome", "fallbacks");
    compare_put_number(object, "results", compare_number(results, "total"));
    COPY(object, results, "compared", "different");
    if (compare_is_right(run))
        COPY(object, run, "median_ns", "low_ns", "high_ns", "compute_ns", "steady_ns");
    return object;
}

/* Returns NULL if a device has no runs. */
static cJSON *new_compare(const struct comparison *comparison, size_t device)
{
    cJSON *list = cJSON_CreateArray();
    JSON_EACH(run, comparison->runs)
    {
        if (json_number_at(run, "device_at") != device)
            continue;
        const cJSON *transcript =
            compare_transcript(comparison, json_number_at(run, "transcript_at"));
        cJSON *object = new_run(run);
        compare_put_text(object, "transcript", text_base_name(json_text(transcript, "file")));
        compare_put_text(object, "digest", json_text(transcript, "digest"));
        cJSON_AddItemToArray(list, object);
    }
    cJSON *part = list->child ? new_part(comparison, compare_device(comparison, device)) : NULL;
    if (!part) {
        cJSON_Delete(list);
        return NULL;
    }
    COPY(part, comparison->top, "repeat");
    compare_put(part, "runs", list);
    return part;
}

static cJSON *new_check(const struct comparison *comparison, const cJSON *device)
{
    const cJSON *check = json_at(device, "check");
    if (!check)
        return NULL;
    cJSON *part = new_part(comparison, device);
    COPY(part, check, "quick", "verified", "calls", "failed", "unsupported");
    if (*json_text(check, "message"))
        COPY(part, check, "message");
    return part;
}

/* Stores a part, or keeps the existing one. */
static void put_part(cJSON *top, const char *key, cJSON *part, cJSON *before)
{
    cJSON *kept = part ? part : cJSON_DetachItemFromObjectCaseSensitive(before, key);
    if (kept)
        compare_put(top, key, kept);
}

static cJSON *new_results(const struct comparison *comparison, size_t at, cJSON *before)
{
    const cJSON *device = compare_device(comparison, at);
    cJSON *top = cJSON_CreateObject();
    COPY(top, comparison->top, "healcl");
    compare_put_text(top, "level", cJSON_IsTrue(json_at(device, "emulator")) ? "emulated" : "ran");
    COPY(top, device, "title", "name", "vendor", "type", "platform", "driver", "version",
         "compute_units", "clock_mhz");
    COPY(top, json_at(comparison->top, "host"), "processor", "model", "system");
    put_part(top, "compare", new_compare(comparison, at), before);
    put_part(top, "check", new_check(comparison, device), before);
    return top;
}

/* ---------------------------------------------------------------- files */

/* *before: the existing file's content for this device; NULL if there is none. */
static enum healcl_status read_before(const char *path, const cJSON *device, cJSON **before,
                                      struct healcl_error *error)
{
    *before = NULL;
    if (access(path, F_OK) != 0)
        return HEALCL_OK;
    TRY(compare_read_file(path, before, error));
    if (compare_same(*before, device, "name"))
        return HEALCL_OK;
    cJSON_Delete(*before);
    *before = NULL;
    FAIL(error, HEALCL_USAGE, PATH_FORMAT " has no results of %.200s", path,
         json_text(device, "name"));
}

static enum healcl_status write_file(const struct comparison *comparison, size_t device,
                                     const char *path, struct healcl_error *error)
{
    cJSON *before;
    struct new_file file = {.stream = NULL};
    TRY(read_before(path, compare_device(comparison, device), &before, error));
    enum healcl_status status = new_file_open(&file, path, error);
    if (status == HEALCL_OK) {
        cJSON *top = new_results(comparison, device, before);
        json_write(top, file.stream);
        status = new_file_commit(&file, error);
    }
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

/* If several devices have the same name and vendor, only the first one is written. */
static bool is_first(const struct comparison *comparison, const cJSON *device)
{
    JSON_EACH(other, comparison->devices)
    {
        if (compare_same(other, device, "name") && compare_same(other, device, "vendor"))
            return other == device;
    }
    return false;
}

enum healcl_status compare_write_results(const struct comparison *comparison, const char *folder,
                                         struct healcl_error *error)
{
    for (size_t i = 0; i < compare_own_devices(comparison); i++) {
        const cJSON *device = compare_device(comparison, i);
        if (!*json_text(device, "name") || json_is(device, "index", COMPARE_REFERENCE) ||
            !is_first(comparison, device))
            continue;
        TRY(write_file(comparison, i, path_of(folder, device), error));
    }
    return HEALCL_OK;
}
