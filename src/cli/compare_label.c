/* What the devices of a comparison are called. */
#include <ctype.h>
#include <string.h>

#include "cli/comparison.h"

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

const char *compare_plain_name(char text[NAME_SIZE], const char *name)
{
    static const char *const marks[] = {"(R)", "(r)", "(TM)", "(tm)", "(C)"};
    snprintf(text, NAME_SIZE, "%s", name);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        take_out(text, marks[i]);
    squeeze(text);
    return text;
}

/* "AMD EPYC 9354 32-Core Processor" as "AMD EPYC 9354" */
static void put_processor(char text[NAME_SIZE], const char *name)
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
static void put_platform(char text[NAME_SIZE], const char *name)
{
    static const char *const common[][2] = {{"Portable Computing Language", "PoCL"}};
    compare_plain_name(text, name);
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strcmp(text, common[i][0]) == 0)
            snprintf(text, NAME_SIZE, "%s", common[i][1]);
}

/* "2026.22" of the driver "2026.22.10.0.01_160000", "3.1" of "3.1+debian" */
static void put_version(char text[NAME_SIZE], const char *driver)
{
    size_t length = strspn(driver, "0123456789");
    if (length > 0 && driver[length] == '.')
        length += 1 + strspn(driver + length + 1, "0123456789");
    snprintf(text, NAME_SIZE, "%.*s", (int)length, driver);
}

/* A processor is driven by several drivers, which give it names of their own: what tells them apart
 * are they. Other hardware is called what it is. */
static void put_title(const struct comparison *comparison, cJSON *device)
{
    char name[NAME_SIZE], platform[NAME_SIZE], version[NAME_SIZE], title[3 * NAME_SIZE + 8];
    const cJSON *at = compare_at(device, "baseline") ? device : comparison->top;
    const char *processor = compare_text(at, "host.processor");
    compare_plain_name(name, compare_text(device, "name"));
    if (strcmp(compare_text(device, "type"), "cpu") == 0 && *processor &&
        !cJSON_IsTrue(compare_at(device, "emulator"))) {
        put_processor(name, processor);
        put_platform(platform, compare_text(device, "platform"));
        put_version(version, compare_text(device, "driver"));
        snprintf(title, sizeof title, "%s%s%s on %s", platform, *version ? " " : "", version, name);
    } else {
        snprintf(title, sizeof title, "%s", *name ? name : compare_text(device, "index"));
    }
    compare_put_text(device, "title", title);
}

/* ---------------------------------------------------------------- what tells them apart */

static const char *const keys[] = {"platform", "name", "driver", "index", "baseline"};
enum { KEYS = sizeof keys / sizeof *keys };

/* How many devices, this one too, have its title and its first keys, and are a baseline's or not as
 * it is. */
static size_t count_alike(const struct comparison *comparison, const cJSON *device, size_t count)
{
    const cJSON *other;
    size_t found = 0;
    cJSON_ArrayForEach(other, comparison->devices)
    {
        bool alike = compare_same(other, device, "title") &&
                     !compare_at(other, "baseline") == !compare_at(device, "baseline");
        for (size_t i = 0; i < count; i++)
            alike &= compare_same(other, device, keys[i]);
        found += alike;
    }
    return found;
}

/* The title and in brackets, as far as others have the same, the keys in which they differ. */
static void put_label(const struct comparison *comparison, cJSON *device, size_t number)
{
    char label[8 * NAME_SIZE], counted[24];
    const char *before = " (";
    snprintf(counted, sizeof counted, "#%zu", number);
    int used = snprintf(label, sizeof label, "%s%.800s",
                        compare_at(device, "baseline") ? "(baseline) " : "",
                        compare_text(device, "title"));
    for (size_t i = 0; i <= KEYS; i++) {
        const size_t alike = count_alike(comparison, device, i);
        const char *key = i < KEYS ? compare_base_name(compare_text(device, keys[i])) : counted;
        if (alike == (i < KEYS ? count_alike(comparison, device, i + 1) : 1))
            continue;
        used += snprintf(label + used, sizeof label - (size_t)used, "%s%.100s", before, key);
        before = ", ";
    }
    snprintf(label + used, sizeof label - (size_t)used, "%s", *before == ',' ? ")" : "");
    compare_put_text(device, "label", label);
}

void compare_name_devices(struct comparison *comparison)
{
    cJSON *device;
    size_t number = 0;
    cJSON_ArrayForEach(device, comparison->devices)
    {
        put_title(comparison, device);
    }
    cJSON_ArrayForEach(device, comparison->devices)
    {
        put_label(comparison, device, ++number);
    }
}
