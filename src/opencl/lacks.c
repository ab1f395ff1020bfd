/* What a device lacks, though it can be used. */
#include <string.h>

#include "core/array.h"
#include "opencl/programs.h"

bool device_lacks(const struct healcl_device *device, const char *name)
{
    for (const char *item = device->programs->forced_lacks; item && *item;) {
        size_t length = strcspn(item, ",");
        if ((strlen(name) == length && strncmp(item, name, length) == 0) ||
            (length == 3 && strncmp(item, "all", length) == 0))
            return true;
        item += length + (item[length] == ',');
    }
    return false;
}

const char *device_warning(const struct healcl_device *device, size_t number)
{
    const char *warnings[2];
    size_t count = 0;
    if (device->programs->arguments_untold)
        warnings[count++] = ARGUMENTS_UNTOLD;
    if (device->tuning.kept_is_unreadable)
        warnings[count++] = KEPT_UNREADABLE;
    return number < count ? warnings[number] : NULL;
}

enum healcl_status device_note_lack(struct healcl_device *device, enum healcl_status status)
{
    device->programs->lack_met = true;
    return status;
}

bool device_has_failed(const struct healcl_device *device, const void *kernel)
{
    for (size_t i = 0; i < device->programs->failed_count; i++)
        if (device->programs->failed[i] == kernel)
            return true;
    return false;
}

enum healcl_status device_note_failed(struct healcl_device *device, const void *kernel,
                                      struct healcl_error *error)
{
    struct device_programs *programs = device->programs;
    if (!ARRAY_GROW(programs->failed, programs->failed_count, &programs->failed_capacity))
        NO_MEMORY(error);
    programs->failed[programs->failed_count++] = kernel;
    return HEALCL_OK;
}
