#include "core/control_group.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Reads a limit. "max" is not a number, so it sets none. */
static void lower(uint64_t *limit, const char *path)
{
    FILE *file = fopen(path, "r");
    uint64_t bytes = 0;
    if (file && fscanf(file, "%20" SCNu64, &bytes) == 1 && bytes > 0 && bytes < *limit)
        *limit = bytes;
    if (file)
        fclose(file);
}

/* The process's own group is in a line "4:cpu,memory:/job" for version 1, or "0::/job" for version
 * 2. A container that cannot see that folder has its limit in the topmost one. */
uint64_t control_group_memory(const char *root)
{
    char path[2 * PATH_MAX], line[PATH_MAX];
    uint64_t limit = UINT64_MAX;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        const bool is_first = group && group > controllers + 1;
        if (!group || (is_first && !strstr(controllers, "memory")))
            continue;
        group[strcspn(group, "\n")] = 0;
        for (char *end = group; end; end = strrchr(group + 1, '/')) {
            if (end > group)
                *end = 0;
            snprintf(path, sizeof path, "%s/sys/fs/cgroup%s%s/%s", root, is_first ? "/memory" : "",
                     group + 1, is_first ? "memory.limit_in_bytes" : "memory.max");
            lower(&limit, path);
        }
    }
    if (file)
        fclose(file);
    return limit;
}
