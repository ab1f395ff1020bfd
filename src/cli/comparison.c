/* The document of a comparison: its values, runs and devices. */
#include "cli/comparison.h"

#include <stdlib.h>
#include <string.h>

#include "cli/text.h"
#include "tools/xmalloc.h"

/* ---------------------------------------------------------------- values */

double compare_number(const cJSON *object, const char *path)
{
    const double limit = 9007199254740992.0; /* 2^53 */
    double number;
    return json_decimal_of(json_at(object, path), &number) && number >= 0 && number < limit ? number
                                                                                            : 0;
}

bool compare_same(const cJSON *a, const cJSON *b, const char *path)
{
    return strcmp(json_text(a, path), json_text(b, path)) == 0;
}

void compare_put(cJSON *object, const char *path, cJSON *item)
{
    const char *dot = strchr(path, '.');
    if (dot) {
        char *name = xasprintf("%.*s", (int)(dot - path), path);
        cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, name);
        compare_put(inner ? inner : cJSON_AddObjectToObject(object, name), dot + 1, item);
        free(name);
    } else if (!cJSON_ReplaceItemInObjectCaseSensitive(object, path, item)) {
        cJSON_AddItemToObject(object, path, item);
    }
}

void compare_put_number(cJSON *object, const char *path, double number)
{
    compare_put(object, path, cJSON_CreateNumber(number));
}

void compare_put_factor(cJSON *object, const char *path, double factor)
{
    char text[32];
    snprintf(text, sizeof text, "%.8g", factor);
    compare_put_number(object, path, strtod(text, NULL));
}

void compare_put_text(cJSON *object, const char *path, const char *text)
{
    char *clean = xstrdup(text);
    text_clean(clean, false);
    compare_put(object, path, cJSON_CreateString(clean));
    free(clean);
}

/* ---------------------------------------------------------------- runs and devices */

size_t compare_index(const cJSON *run, const char *key)
{
    return (size_t)compare_number(run, key);
}

cJSON *compare_device(const struct comparison *comparison, size_t device)
{
    return cJSON_GetArrayItem(comparison->devices, (int)device);
}

cJSON *compare_transcript(const struct comparison *comparison, size_t transcript)
{
    return cJSON_GetArrayItem(comparison->transcripts, (int)transcript);
}

cJSON *compare_find(const struct comparison *comparison, size_t transcript, size_t device)
{
    cJSON *run;
    FOR_EACH_RUN_OF(run, comparison, transcript)
    {
        if (compare_index(run, "device_at") == device)
            return run;
    }
    return NULL;
}

size_t compare_device_count(const struct comparison *comparison)
{
    return (size_t)cJSON_GetArraySize(comparison->devices);
}

size_t compare_transcript_count(const struct comparison *comparison)
{
    return (size_t)cJSON_GetArraySize(comparison->transcripts);
}

size_t compare_own_devices(const struct comparison *comparison)
{
    size_t count = 0;
    const cJSON *device;
    cJSON_ArrayForEach(device, comparison->devices)
    {
        count += !json_at(device, "baseline");
    }
    return count;
}

bool compare_is_own(const struct comparison *comparison, const cJSON *run)
{
    return !json_at(compare_device(comparison, compare_index(run, "device_at")), "baseline");
}

bool compare_is_reference(const cJSON *device)
{
    return strcmp(json_text(device, "index"), COMPARE_REFERENCE) == 0;
}

bool compare_has_outcome(const cJSON *run, const char *outcome)
{
    return strcmp(json_text(run, "outcome"), outcome) == 0;
}

bool compare_is_right(const cJSON *run)
{
    return compare_has_outcome(run, "verified") || compare_has_outcome(run, "nothing to verify");
}

const char *compare_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* ---------------------------------------------------------------- filling */

cJSON *compare_add_run(struct comparison *comparison, size_t transcript, size_t device)
{
    cJSON *run = cJSON_CreateObject();
    compare_put_number(run, "transcript_at", (double)transcript);
    compare_put_number(run, "device_at", (double)device);
    cJSON_AddItemToArray(comparison->runs, run);
    return run;
}

cJSON *compare_add_judge(struct comparison *comparison, size_t transcript)
{
    const cJSON *run;
    bool differs = false;
    FOR_EACH_RUN_OF(run, comparison, transcript)
    {
        if (!compare_is_own(comparison, run))
            continue;
        if (compare_is_reference(compare_device(comparison, compare_index(run, "device_at"))))
            return NULL;
        differs |= compare_has_outcome(run, "different");
    }
    if (!differs)
        return NULL;
    cJSON *judge = cJSON_CreateObject();
    compare_put_number(judge, "transcript_at", (double)transcript);
    cJSON_AddItemToArray(comparison->judges, judge);
    return judge;
}

size_t compare_end_early(struct comparison *comparison)
{
    size_t planned = 0, made = 0;
    for (cJSON *run = comparison->runs->child, *next; run; run = next) {
        next = run->next;
        if (!compare_is_own(comparison, run))
            continue;
        planned++;
        if (json_at(run, "outcome"))
            made++;
        else
            cJSON_Delete(cJSON_DetachItemViaPointer(comparison->runs, run));
    }
    compare_put_number(comparison->top, "interrupted_of_runs", (double)planned);
    return made;
}
