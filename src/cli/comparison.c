/* The document of a comparison: its values, runs and devices. */
#include "cli/comparison.h"

#include <stdlib.h>
#include <string.h>

#include "cli/text.h"
#include "tools/xmalloc.h"

/* ---------------------------------------------------------------- values */

enum { KEY_SIZE = 32 };

/* What is behind the first dot of a path, and in name what is before it. NULL: there is no dot. */
static const char *split_path(const char *path, char name[KEY_SIZE])
{
    const char *dot = strchr(path, '.');
    if (dot)
        snprintf(name, KEY_SIZE, "%.*s", (int)(dot - path), path);
    return dot ? dot + 1 : NULL;
}

const cJSON *compare_at(const cJSON *object, const char *path)
{
    char name[KEY_SIZE];
    const char *rest = split_path(path, name);
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, rest ? name : path);
    return rest ? compare_at(item, rest) : item;
}

double compare_number(const cJSON *object, const char *path)
{
    const double limit = 9007199254740992.0; /* 2^53 */
    const cJSON *item = compare_at(object, path);
    return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < limit
               ? item->valuedouble
               : 0;
}

const char *compare_text(const cJSON *object, const char *path)
{
    const char *text = cJSON_GetStringValue(compare_at(object, path));
    return text ? text : "";
}

bool compare_same(const cJSON *a, const cJSON *b, const char *path)
{
    return strcmp(compare_text(a, path), compare_text(b, path)) == 0;
}

void compare_put(cJSON *object, const char *path, cJSON *item)
{
    char name[KEY_SIZE];
    const char *rest = split_path(path, name);
    if (rest) {
        cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, name);
        compare_put(inner ? inner : cJSON_AddObjectToObject(object, name), rest, item);
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
        count += !compare_at(device, "baseline");
    }
    return count;
}

bool compare_is_own(const struct comparison *comparison, const cJSON *run)
{
    return !compare_at(compare_device(comparison, compare_index(run, "device_at")), "baseline");
}

bool compare_is_reference(const cJSON *device)
{
    return strcmp(compare_text(device, "index"), COMPARE_REFERENCE) == 0;
}

bool compare_has_outcome(const cJSON *run, const char *outcome)
{
    return strcmp(compare_text(run, "outcome"), outcome) == 0;
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
        if (compare_at(run, "outcome"))
            made++;
        else
            cJSON_Delete(cJSON_DetachItemViaPointer(comparison->runs, run));
    }
    compare_put_number(comparison->top, "interrupted_of_runs", (double)planned);
    return made;
}

/* ---------------------------------------------------------------- what people are told */

const char *compare_outcome_text(const struct comparison *comparison, const cJSON *run,
                                 char text[OUTCOME_SIZE])
{
    char signal[PROCESS_SIGNAL_SIZE];
    const char *name = compare_text(run, "outcome");
    const double total = compare_number(run, "results.total"),
                 compared = compare_number(run, "results.compared");
    snprintf(text, OUTCOME_SIZE, "%s", name);
    if (strcmp(name, "different") == 0)
        snprintf(text, OUTCOME_SIZE, "%s: %.0f of %.0f%s", name,
                 compare_number(run, "results.different"), compared,
                 strcmp(compare_text(run, "fault"), "transcript") == 0 ? ", transcript's fault"
                                                                       : "");
    else if (strcmp(name, "unproven") == 0)
        snprintf(text, OUTCOME_SIZE, "%s: %.0f of %.0f compared", name, compared, total);
    else if (strcmp(name, "verified") == 0 && compared < total)
        snprintf(text, OUTCOME_SIZE, "%s: %.0f of %.0f", name, compared, total);
    else if (strcmp(name, "crashed") == 0 && compare_at(run, "signal"))
        snprintf(text, OUTCOME_SIZE, "%s: %s", name,
                 process_signal_name((int)compare_number(run, "signal"), signal));
    else if (strcmp(name, "failed") == 0 && compare_at(run, "exit_code"))
        snprintf(text, OUTCOME_SIZE, "%s: exit code %.0f", name, compare_number(run, "exit_code"));
    else if (strcmp(name, "timed out") == 0 && compare_is_own(comparison, run))
        snprintf(text, OUTCOME_SIZE, "%s: %.0f s", name,
                 compare_number(comparison->top, "timeout_s"));
    return text;
}
