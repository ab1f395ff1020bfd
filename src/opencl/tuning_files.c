/* Tunings of measured devices: tunings/NAME.json, embedded by the build. tunings/README.md
 * describes their format. */
#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/json_tree.h"
#include "opencl/device.h"

enum { TUNING_FILE_VALUES_MAX = 256 };

/* Checks the patterns. *specificity: the number of their characters that are not wildcards; 0 if
 * one of them does not match. */
static enum healcl_status match(const cJSON *patterns, const struct device_info *info,
                                uint32_t *specificity, struct healcl_error *error)
{
    static const char *const keys[] = {"vendor", "architecture", "name", "driver"};
    const char *const fields[] = {info->vendor, info->architecture, info->name, info->driver};
    enum { FIELDS = sizeof keys / sizeof *keys };
    bool fits = true;
    *specificity = 0;
    const cJSON *pattern;
    cJSON_ArrayForEach(pattern, patterns)
    {
        const char *text = cJSON_GetStringValue(pattern);
        int i = 0;
        while (i < FIELDS && strcmp(keys[i], pattern->string) != 0)
            i++;
        if (i == FIELDS || !text)
            REFUSE(error, "device: '%.40s' is no pattern of vendor, architecture, name or driver",
                   pattern->string);
        fits = fits && fnmatch(text, fields[i], 0) == 0;
        for (; *text; text++)
            *specificity += *text != '*' && *text != '?';
    }
    if (*specificity == 0)
        REFUSE(error, "device: there is no pattern of more than wildcards");
    *specificity = fits ? *specificity : 0;
    return HEALCL_OK;
}

static enum healcl_status take_value(const cJSON *value, const struct device_info *info,
                                     struct device_tuning *tuning, struct healcl_error *error)
{
    char text[96];
    if (cJSON_IsNumber(value))
        snprintf(text, sizeof text, "%.40s=%.17g", value->string, value->valuedouble);
    else
        snprintf(text, sizeof text, "%.40s=%.40s", value->string,
                 cJSON_IsString(value) ? value->valuestring : "");
    if (strchr(text, ',') || tuning_parse(tuning, text, "", info, NULL) != HEALCL_OK)
        REFUSE(error, "tuning: '%s' is neither a tunable in its range nor a family's style", text);
    return HEALCL_OK;
}

static enum healcl_status take_file(const cJSON *file, const struct device_info *info,
                                    struct device_tuning *tuning, uint32_t *specificity,
                                    struct healcl_error *error)
{
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(file, "device"), *value;
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(file, "tuning");
    struct device_tuning changed = *tuning;
    if (cJSON_GetArraySize(file) != 3 || !cJSON_IsObject(device) || !cJSON_IsObject(values) ||
        !cJSON_IsString(cJSON_GetObjectItemCaseSensitive(file, "comment")))
        REFUSE(error, "it is not an object of comment, device and tuning alone");
    TRY(match(device, info, specificity, error));
    cJSON_ArrayForEach(value, values)
    {
        TRY(take_value(value, info, &changed, error));
    }
    if (*specificity > 0)
        *tuning = changed;
    return HEALCL_OK;
}

enum healcl_status tuning_file_read(const char *name, const char *text,
                                    const struct device_info *info, struct device_tuning *tuning,
                                    uint32_t *specificity, struct healcl_error *error)
{
    cJSON *file = NULL;
    size_t stop = 0;
    *specificity = 0;
    enum healcl_status status =
        json_tree_read(text, strlen(text), TUNING_FILE_VALUES_MAX, &file, &stop, error);
    if (status == HEALCL_OK && !file)
        status = ERROR(error, HEALCL_REFUSED, "it is no JSON from byte %zu on", stop);
    if (status == HEALCL_OK)
        status = take_file(file, info, tuning, specificity, error);
    cJSON_Delete(file);
    if (status == HEALCL_REFUSED)
        error_prefix(error, "tunings/%s: ", name);
    return status;
}

void tuning_of_files(const struct device_info *info, struct device_tuning *tuning)
{
    const struct device_tuning before = *tuning;
    uint32_t most = 0, specificity;
    for (const char *const *file = healcl_tuning_files; *file; file += 2) {
        struct device_tuning changed = before;
        /* A test reads all files: one with values that this device cannot take is for other
         * devices. */
        if (tuning_file_read(file[0], file[1], info, &changed, &specificity, NULL) != HEALCL_OK ||
            specificity <= most)
            continue;
        most = specificity;
        *tuning = changed;
        tuning->file = file[0];
    }
}
