#include "plan/names.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct binding {
    const char *name; /* of a key: the caller's; of a node: text */
    struct tensor *tensor;
    char text[];
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct binding *)a)->name, ((const struct binding *)b)->name);
}

static struct binding **find(const struct names *names, const char *name)
{
    struct binding key = {.name = name};
    return tfind(&key, &names->root, compare_names);
}

struct tensor *names_find(const struct names *names, const char *name)
{
    struct binding **found = find(names, name);
    return found ? (*found)->tensor : NULL;
}

enum healcl_status names_bind(struct names *names, const char *name, struct tensor *tensor,
                              struct tensor **previous, struct healcl_error *error)
{
    size_t size = strlen(name) + 1;
    struct binding *binding = malloc(sizeof *binding + size);
    if (!binding)
        NO_MEMORY(error);
    binding->name = memcpy(binding->text, name, size);
    binding->tensor = NULL;
    struct binding **found = tsearch(binding, &names->root, compare_names);
    if (!found) {
        free(binding);
        NO_MEMORY(error);
    }
    *previous = (*found)->tensor;
    (*found)->tensor = tensor;
    if (*found != binding)
        free(binding);
    return HEALCL_OK;
}

struct tensor *names_remove(struct names *names, const char *name)
{
    struct binding **found = find(names, name);
    if (!found)
        return NULL;
    struct binding *binding = *found;
    struct tensor *tensor = binding->tensor;
    tdelete(binding, &names->root, compare_names);
    free(binding);
    return tensor;
}

void names_clear(struct names *names)
{
    while (names->root) {
        struct binding *binding = *(struct binding **)names->root;
        tdelete(binding, &names->root, compare_names);
        free(binding);
    }
}
