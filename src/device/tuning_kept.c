/* Tunings that `healcl tune` has found, kept for each device and driver: a file of one line, as
 * tuning_format writes it; what a device is opened with; and rates of its kernels, a line of
 * numbers. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/internal.h"
#include "device/measure.h"

/* To be raised where the same text comes to mean something else. */
#define TUNING_ABI "healcl tuning 1"

/* "tuning_<key>" */
enum { NAME_SIZE = 8 + CACHE_KEY_SIZE };

static void name_of(const struct device_info *info, char name[NAME_SIZE])
{
    char key[CACHE_KEY_SIZE];
    cache_key(info, TUNING_ABI, "", 0, NULL, key);
    snprintf(name, NAME_SIZE, "tuning_%s", key);
}

bool tuning_read_kept(struct device_tuning *tuning, const struct device_info *info)
{
    char name[NAME_SIZE], text[TUNING_TEXT_SIZE];
    struct device_tuning kept = *tuning;
    char *directory = cache_directory();
    name_of(info, name);
    char *path = directory ? cache_path(directory, name) : NULL;
    bool good = path && cache_read_line(path, TUNING_TEXT_SIZE, text) &&
                tuning_parse(&kept, text, path, info, NULL) == HEALCL_OK;
    if (good) {
        *tuning = kept;
        tuning->tuned_by |= TUNED_BY_KEPT;
    }
    free(path);
    free(directory);
    return good;
}

enum healcl_status tuning_of_device(const struct device_info *info, struct device_tuning *tuning,
                                    struct healcl_error *error)
{
    static const char *const variables[] = {"HEALCL_TUNING", "HEALCL_VARIANT"};
    bool given;
    *tuning = tuning_default(info);
    TRY(tuning_shape_given(&given, error));
    if (given)
        tuning->tuned_by |= TUNED_BY_ENVIRONMENT;
    else
        (void)tuning_read_kept(tuning, info);
    struct device_tuning changed = *tuning;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *text = getenv(variables[i]);
        if (!text || !*text)
            continue;
        TRY(tuning_parse(&changed, text, variables[i], info, error));
        changed.tuned_by |= TUNED_BY_ENVIRONMENT;
    }
    *tuning = changed;
    return HEALCL_OK;
}

enum healcl_status tuning_keep(const struct device_tuning *tuning, const struct device_info *info,
                               char **path, struct healcl_error *error)
{
    *path = NULL;
    char *directory = cache_directory();
    if (!directory)
        return HEALCL_OK;
    char name[NAME_SIZE], text[TUNING_TEXT_SIZE];
    name_of(info, name);
    tuning_format(tuning, text);
    const struct cache_part parts[] = {{text, strlen(text)}, {"\n", 1}};
    bool written = cache_write(directory, name, 2, parts);
    enum healcl_status status = HEALCL_OK;
    if (!written)
        status = ERROR(error, HEALCL_USAGE, "cannot write '%.400s/%s'", directory, name);
    else if (!(*path = cache_path(directory, name)))
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    free(directory);
    return status;
}

enum healcl_status tuning_forget(const struct device_info *info, char **path,
                                 struct healcl_error *error)
{
    *path = NULL;
    char *directory = cache_directory();
    if (!directory)
        return HEALCL_OK;
    char name[NAME_SIZE];
    name_of(info, name);
    char *kept = cache_path(directory, name);
    enum healcl_status status = HEALCL_OK;
    if (!kept)
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    else if (unlink(kept) == 0)
        *path = kept;
    else if (errno != ENOENT && errno != ENOTDIR)
        status = ERROR(error, HEALCL_USAGE, "cannot remove '%.400s': %s", kept, strerror(errno));
    if (!*path)
        free(kept);
    free(directory);
    return status;
}

/* ---------------------------------------------------------------- rates */

enum { RATES_TEXT_SIZE = 256 };

/* "rates_<key>": of so many units, as some drivers let the environment say, and of the kernels that
 * this version has, shaped by a tuning. */
static void name_rates(const struct device_info *info, const struct device_tuning *tuning,
                       char name[NAME_SIZE])
{
    char key[CACHE_KEY_SIZE], units[16], shape[TUNING_TEXT_SIZE];
    const char *texts[] = {healcl_version(), units};
    snprintf(units, sizeof units, "%u", info->compute_units);
    tuning_format(tuning, shape);
    cache_key(info, "healcl rates 1", shape, sizeof texts / sizeof *texts, texts, key);
    snprintf(name, NAME_SIZE, "rates_%s", key);
}

bool rates_read_kept(const struct device_info *info, const struct device_tuning *tuning,
                     size_t count, uint64_t *rates)
{
    char name[NAME_SIZE], text[RATES_TEXT_SIZE], *end = text;
    char *directory = cache_directory();
    name_rates(info, tuning, name);
    char *path = directory ? cache_path(directory, name) : NULL;
    bool good = path && cache_read_line(path, sizeof text, text);
    for (size_t i = 0; i < count && good; i++) {
        const char *number = end;
        rates[i] = strtoull(number, &end, 10);
        good = end > number && rates[i] > 0;
    }
    free(path);
    free(directory);
    return good && !*end;
}

void rates_keep(const struct device_info *info, const struct device_tuning *tuning, size_t count,
                const uint64_t *rates)
{
    char name[NAME_SIZE], text[RATES_TEXT_SIZE];
    size_t length = 0;
    char *directory = cache_directory();
    if (!directory)
        return;
    name_rates(info, tuning, name);
    for (size_t i = 0; i < count && length + 24 < sizeof text; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%" PRIu64,
                                   i > 0 ? " " : "", rates[i]);
    const struct cache_part parts[] = {{text, length}, {"\n", 1}};
    (void)cache_write(directory, name, 2, parts);
    free(directory);
}
