/* What the devices of a comparison are called. */
#include <ctype.h>
#include <string.h>

#include "compare/compare.h"

/* ---------------------------------------------------------------- names for people */

/* Takes out every occurrence of a word. */
static void take_out(char *text, const char *word)
{
    const size_t length = strlen(word);
    for (char *found; (found = strstr(text, word));)
        memmove(found, found + length, strlen(found + length) + 1);
}

/* Cuts a text where a word begins. */
static void cut_at(char *text, const char *word)
{
    char *found = strstr(text, word);
    if (found)
        *found = 0;
}

/* One blank between words, and none around them. */
static void squeeze(char *text)
{
    size_t length = 0;
    for (const char *c = text; *c; c++)
        if (!isspace((unsigned char)*c) || (length > 0 && text[length - 1] != ' '))
            text[length++] = isspace((unsigned char)*c) ? ' ' : *c;
    while (length > 0 && text[length - 1] == ' ')
        length--;
    text[length] = 0;
}

void compare_plain_name(char text[TITLE_PART_SIZE], const char *name)
{
    static const char *const marks[] = {"(R)", "(r)", "(TM)", "(tm)", "(C)"};
    snprintf(text, TITLE_PART_SIZE, "%s", name);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        take_out(text, marks[i]);
    squeeze(text);
}

/* "AMD EPYC 9354 32-Core Processor" as "AMD EPYC 9354" */
static void put_processor(char text[TITLE_PART_SIZE], const char *name)
{
    compare_plain_name(text, name);
    cut_at(text, " @ ");
    cut_at(text, " CPU");
    cut_at(text, " Processor");
    char *cores = strstr(text, "-Core");
    while (cores && cores > text && isdigit((unsigned char)cores[-1]))
        cores--;
    if (cores)
        *cores = 0;
    squeeze(text);
}

/* What a platform is commonly called where it calls itself otherwise. */
static void put_platform(char text[TITLE_PART_SIZE], const char *name)
{
    static const char *const common[][2] = {{"Portable Computing Language", "PoCL"}};
    compare_plain_name(text, name);
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strcmp(text, common[i][0]) == 0)
            snprintf(text, TITLE_PART_SIZE, "%s", common[i][1]);
}

/* "2026.22" of the driver "2026.22.10.0.01_160000", "3.1" of "3.1+debian" */
static void put_version(char text[TITLE_PART_SIZE], const char *driver)
{
    size_t length = strspn(driver, "0123456789");
    if (length > 0 && driver[length] == '.')
        length += 1 + strspn(driver + length + 1, "0123456789");
    snprintf(text, TITLE_PART_SIZE, "%.*s", (int)length, driver);
}

/* A processor is driven by several drivers, which give it names of their own: what tells them apart
 * are they. Other hardware is called what it is. */
const char *compare_title(const struct compare_device *device, char title[TITLE_SIZE])
{
    char name[TITLE_PART_SIZE], platform[TITLE_PART_SIZE], version[TITLE_PART_SIZE];
    const char *processor = device->origin->processor;
    if (strcmp(device->type, "cpu") == 0 && !device->emulator && processor && *processor) {
        put_processor(name, processor);
        put_platform(platform, device->platform);
        put_version(version, device->driver);
        snprintf(title, TITLE_SIZE, "%s%s%s on %s", platform, *version ? " " : "", version, name);
    } else {
        compare_plain_name(name, device->name);
        snprintf(title, TITLE_SIZE, "%s", name);
    }
    return title;
}

/* ---------------------------------------------------------------- what tells them apart */

const char *compare_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

const char *compare_device_name(const struct compare_device *device)
{
    return device->title && *device->title ? device->title
           : *device->name                 ? device->name
                                           : device->selector;
}

/* Whether two devices may be one chip: drivers put words of their own around its name. */
static bool names_resemble(const struct compare_device *a, const struct compare_device *b)
{
    const char *one = compare_device_name(a), *other = compare_device_name(b);
    return strstr(one, other) || strstr(other, one);
}

const char *compare_driver_name(const struct compare_device *device)
{
    return strcmp(device->name, compare_device_name(device)) == 0 ? "" : device->name;
}

/* What else has to be told of a device so that no other one is called the same. */
struct lack {
    bool name, platform, driver, selector, file, number;
};

/* All that tells a device from another one is false: adds what does. */
static void tell_apart(const struct compare_device *device, const struct compare_device *other,
                       struct lack *lack)
{
    bool baselines = device->origin->baseline && other->origin->baseline;
    if (!names_resemble(device, other))
        return;
    const bool same = strcmp(compare_device_name(device), compare_device_name(other)) == 0;
    if (strcmp(device->platform, other->platform) != 0)
        lack->platform = true;
    else if (!same)
        return;
    else if (strcmp(device->name, other->name) != 0)
        lack->name = true;
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
    if (lack.name)
        append(text, "", about->name);
    if (lack.platform || lack.driver)
        append(text, ", ", about->platform);
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
