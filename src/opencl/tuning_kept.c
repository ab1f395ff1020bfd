/* Tunings that `healcl tune` has found, kept for each device and driver: as
 * tuning_format writes them; and what a device is opened with. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/cache.h"
#include "opencl/tuning_kept.h"

/* "tuning" or "kernels". The number is to be raised where the same text comes to mean something
 * else.
 */
static void name_of(const struct device_info *info, const char *kind, char name[CACHE_NAME_SIZE])
{
    cache_name(info, kind, 1, (const char *const[]){"1"}, name);
}

bool tuning_read_kept(struct device_tuning *tuning, const struct device_info *info)
{
    char name[CACHE_NAME_SIZE], text[TUNING_TEXT_SIZE];
    struct device_tuning kept = *tuning;
    name_of(info, "tuning", name);
    if (!cache_read_text(name, sizeof text, text))
        return false;
    bool good = tuning_parse(&kept, text, name, info, NULL) == HEALCL_OK;
    if (good) {
        *tuning = kept;
        tuning->tuned_by |= TUNED_BY_KEPT;
    }
    tuning->kept_is_unreadable = !good;
    return good;
}

enum healcl_status tuning_of_device(const struct device_info *info, struct device_tuning *tuning,
                                    struct healcl_error *error)
{
    static const char *const variables[] = {"HEALCL_TUNING", "HEALCL_VARIANT"};
    bool given;
    *tuning = tuning_default(info);
    TRY(tuning_style_given(&given, error));
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
    char name[CACHE_NAME_SIZE], text[TUNING_TEXT_SIZE];
    name_of(info, "tuning", name);
    tuning_format(tuning, text);
    return cache_write_text(name, text, path, error);
}

/* ---------------------------------------------------------------- kernels of others */

uint32_t kernel_choices_find(const struct kernel_choices *choices, uint64_t of)
{
    for (size_t i = 0; i < choices->count; i++)
        if (choices->items[i].of == of)
            return choices->items[i].choice;
    return 0;
}

void kernel_choices_set(struct kernel_choices *choices, uint64_t of, uint32_t choice)
{
    size_t place = 0;
    while (place < choices->count && choices->items[place].of != of)
        place++;
    if (place == KERNEL_CHOICES_MAX)
        place = 0;
    choices->count -= place < choices->count;
    memmove(&choices->items[place], &choices->items[place + 1],
            (choices->count - place) * sizeof *choices->items);
    choices->items[choices->count].of = of;
    choices->items[choices->count++].choice = choice;
}

void kernel_choices_format(const struct kernel_choices *choices, char text[KERNEL_CHOICES_SIZE])
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < choices->count; i++)
        used +=
            (size_t)snprintf(text + used, KERNEL_CHOICES_SIZE - used, "%s%016" PRIx64 "=%" PRIu32,
                             i > 0 ? " " : "", choices->items[i].of, choices->items[i].choice);
}

bool kernel_choices_parse(struct kernel_choices *choices, const char *text)
{
    struct kernel_choices parsed = {.count = 0};
    bool good = true;
    choices->count = 0;
    while (good && *text && parsed.count < KERNEL_CHOICES_MAX) {
        char *end;
        const uint64_t of = strtoull(text, &end, 16);
        good = *end == '=';
        if (good)
            kernel_choices_set(&parsed, of, (uint32_t)strtoul(end + 1, &end, 10));
        good = good && (*end == ' ' || !*end);
        text = end + (*end == ' ');
    }
    if (good)
        *choices = parsed;
    return good;
}

void kernel_choices_read_kept(struct kernel_choices *choices, const struct device_info *info)
{
    char name[CACHE_NAME_SIZE], text[KERNEL_CHOICES_SIZE];
    bool given;
    choices->count = 0;
    if (tuning_style_given(&given, NULL) != HEALCL_OK || given)
        return;
    name_of(info, "kernels", name);
    if (cache_read_text(name, sizeof text, text))
        (void)kernel_choices_parse(choices, text);
}

enum healcl_status kernel_choices_keep(const struct kernel_choices *choices,
                                       const struct device_info *info, char **path,
                                       struct healcl_error *error)
{
    char name[CACHE_NAME_SIZE], text[KERNEL_CHOICES_SIZE];
    name_of(info, "kernels", name);
    kernel_choices_format(choices, text);
    return cache_write_text(name, text, path, error);
}
