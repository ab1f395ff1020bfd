/* What a device notes for its users: lines of a log, warnings, and what it lacks. */
#include <string.h>

#include "core/array.h"
#include "core/format.h"
#include "opencl/programs.h"

/* Formats one line and passes it to the caller's log function, if the caller gave one. */
void device_log(const struct healcl_device *device, const char *format, ...)
{
    char line[512];
    if (!device->options.log)
        return;
    FORMAT_INTO(line, sizeof line, format);
    device->options.log(device->options.log_context, line);
}

/* Whether the variable HEALCL_LACKS lists this operation or family, or "all". Tests use it to
 * imitate a device that cannot run some of them. */
bool device_is_forced_off(const struct healcl_device *device, const char *name)
{
    for (const char *item = device->programs->forced_unsupported; item && *item;) {
        size_t length = strcspn(item, ",");
        if ((strlen(name) == length && strncmp(item, name, length) == 0) ||
            (length == 3 && strncmp(item, "all", length) == 0))
            return true;
        item += length + (item[length] == ',');
    }
    return false;
}

/* The warning with this number, or NULL behind the last one. Callers count up from 0 to report them
 * all. */
const char *device_warning(const struct healcl_device *device, size_t number)
{
    const char *warnings[2];
    size_t count = 0;
    if (device->programs->arguments_unknown)
        warnings[count++] = ARGUMENTS_UNKNOWN;
    if (device->tuning.cached_is_unreadable)
        warnings[count++] = CACHED_UNREADABLE;
    return number < count ? warnings[number] : NULL;
}

/* Whether device_note_failed has noted this kernel of a vendor. It could not be built, and is not
 * tried again. */
bool device_has_failed(const struct healcl_device *device, const void *kernel)
{
    for (size_t i = 0; i < device->programs->failed_count; i++)
        if (device->programs->failed[i] == kernel)
            return true;
    return false;
}

/* Notes that a vendor's kernel could not be built. Other kernels then run its steps. */
enum healcl_status device_note_failed(struct healcl_device *device, const void *kernel,
                                      struct healcl_error *error)
{
    struct device_programs *programs = device->programs;
    NEED_MEMORY(ARRAY_GROW(programs->failed, programs->failed_count, &programs->failed_capacity),
                error);
    programs->failed[programs->failed_count++] = kernel;
    return HEALCL_OK;
}
