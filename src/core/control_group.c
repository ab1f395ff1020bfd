#include "core/control_group.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 3 * PATH_MAX };

/* Whether a word is in a list with commas. */
static bool lists(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (size_t size; *list; list += size + (list[size] == ','))
        if ((size = strcspn(list, ",")) == length && memcmp(list, word, length) == 0)
            return true;
    return false;
}

/* The path of the process's own group in a hierarchy: that of version 2, or that of version 1 with
 * the memory. Empty where it is in none. */
static void find_group(const char *root, bool is_first, char group[PATH_MAX])
{
    char path[PATH_SIZE], line[PATH_SIZE];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    *group = 0;
    while (file && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':');
        char *name = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!name)
            continue;
        *name++ = 0;
        name[strcspn(name, "\n")] = 0;
        if (is_first ? lists(controllers + 1, "memory") : !controllers[1])
            snprintf(group, PATH_MAX, "%s", name);
    }
    if (file)
        fclose(file);
}

/* "max" is no number. */
static void lower(uint64_t *limit, const char *path)
{
    FILE *file = fopen(path, "r");
    uint64_t bytes = 0;
    if (file && fscanf(file, "%20" SCNu64, &bytes) == 1 && bytes > 0 && bytes < *limit)
        *limit = bytes;
    if (file)
        fclose(file);
}

/* By the group's own limit, and by those of the groups around it up to where they are mounted. */
static void lower_upwards(uint64_t *limit, const char *root, const char *mount, const char *group,
                          bool is_first)
{
    char path[PATH_SIZE];
    for (size_t length = strlen(group);; length--) {
        if (length == 0 || group[length] == '/' || !group[length]) {
            snprintf(path, sizeof path, "%s%s%.*s/%s", root, mount, (int)length, group,
                     is_first ? "memory.limit_in_bytes" : "memory.max");
            lower(limit, path);
        }
        if (length == 0)
            return;
    }
}

uint64_t control_group_memory(const char *root)
{
    char path[PATH_SIZE], line[PATH_SIZE], from[PATH_MAX], mount[PATH_MAX], group[PATH_MAX];
    char type[16], options[PATH_MAX];
    uint64_t limit = UINT64_MAX;
    snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *behind = strstr(line, " - ");
        if (!behind || sscanf(behind, " - %15s %*s %4095s", type, options) != 2 ||
            sscanf(line, "%*s %*s %*s %4095s %4095s", from, mount) != 2)
            continue;
        const bool is_first = strcmp(type, "cgroup") == 0 && lists(options, "memory");
        if (!is_first && strcmp(type, "cgroup2") != 0)
            continue;
        /* The mount may show a part of the hierarchy; a group elsewhere is not to be seen. */
        find_group(root, is_first, group);
        const size_t length = strcmp(from, "/") == 0 ? 0 : strlen(from);
        const bool is_seen = strncmp(group, from, length) == 0 && strchr("/", group[length]);
        lower_upwards(&limit, root, mount, is_seen ? group + length : "", is_first);
    }
    if (file)
        fclose(file);
    return limit;
}
