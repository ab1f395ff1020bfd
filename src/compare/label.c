/* What the devices of a comparison are called. */
#include <string.h>

#include "compare/compare.h"

const char *compare_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

const char *compare_device_name(const struct compare_device *device)
{
    return *device->name ? device->name : device->selector;
}

/* Whether two devices may be one chip: drivers put words of their own around its name. */
static bool names_resemble(const struct compare_device *a, const struct compare_device *b)
{
    const char *one = compare_device_name(a), *other = compare_device_name(b);
    return strstr(one, other) || strstr(other, one);
}

/* What else has to be told of a device so that no other one is called the same. */
struct lack {
    bool platform, driver, selector, file, number;
};

/* All that tells a device from another one is false: adds what does. */
static void tell_apart(const struct compare_device *device, const struct compare_device *other,
                       struct lack *lack)
{
    bool baselines = device->origin->baseline && other->origin->baseline;
    if (!names_resemble(device, other))
        return;
    if (strcmp(device->platform, other->platform) != 0)
        lack->platform = true;
    else if (strcmp(compare_device_name(device), compare_device_name(other)) != 0)
        return;
    else if (strcmp(device->driver, other->driver) != 0)
        lack->driver = true;
    else if (device->origin == other->origin && strcmp(device->selector, other->selector) != 0)
        lack->selector = true;
    else if (device->origin == other->origin)
        lack->number = true;
    else if (baselines)
        lack->file = true;
}

static void append(char text[LABEL_SIZE], const char *before, const char *word)
{
    size_t used = strlen(text);
    snprintf(text + used, LABEL_SIZE - used, "%s%s", used > 0 ? before : "", word);
}

const char *compare_device_detail(const struct comparison *comparison, size_t device,
                                  bool has_selector, char text[LABEL_SIZE])
{
    const struct compare_device *about = &comparison->devices[device];
    struct lack lack = {.platform = false};
    char number[24];
    for (size_t i = 0; i < comparison->device_count; i++)
        if (i != device)
            tell_apart(about, &comparison->devices[i], &lack);
    *text = 0;
    if (lack.platform || lack.driver)
        append(text, "", about->platform);
    if (lack.driver)
        append(text, " ", about->driver);
    if (lack.selector && !has_selector)
        append(text, ", ", about->selector);
    if (lack.file)
        append(text, ", ", compare_base_name(about->origin->baseline));
    if (lack.number) {
        snprintf(number, sizeof number, "#%zu", device + 1);
        append(text, ", ", number);
    }
    return text;
}

const char *compare_device_label(const struct comparison *comparison, size_t device,
                                 char text[LABEL_SIZE])
{
    const struct compare_device *about = &comparison->devices[device];
    char detail[LABEL_SIZE];
    compare_device_detail(comparison, device, false, detail);
    *text = 0;
    append(text, "", about->origin->baseline ? "(baseline) " : "");
    append(text, "", compare_device_name(about));
    if (*detail) {
        append(text, " (", detail);
        append(text, "", ")");
    }
    return text;
}
