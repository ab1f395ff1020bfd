#include "plan/names.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* A hash table of trees. A million names take a third of the time that a single tree takes. If a
 * hostile file's names collide, a lookup still takes only log n steps. */
enum { BUCKETS = 4096 };

struct binding {
    const char *name; /* for a key: the caller's; for a node: its text */
    const struct tensor *tensor;
    char text[];
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct binding *)a)->name, ((const struct binding *)b)->name);
}

static void **bucket_of(const struct names *names, const char *name)
{
    return &names->buckets[XXH3_64bits(name, strlen(name)) % BUCKETS];
}

static struct binding **names_find_link(const struct names *names, const char *name)
{
    struct binding key = {.name = name};
    return names->buckets ? tfind(&key, bucket_of(names, name), compare_names) : NULL;
}

const struct tensor *names_find(const struct names *names, const char *name)
{
    struct binding **found = names_find_link(names, name);
    return found ? (*found)->tensor : NULL;
}

enum healcl_status names_bind(struct names *names, const char *name, const struct tensor *tensor,
                              const struct tensor **previous, struct healcl_error *error)
{
    size_t size = strlen(name) + 1;
    if (!names->buckets)
        names->buckets = calloc(BUCKETS, sizeof *names->buckets);
    struct binding *binding = names->buckets ? malloc(sizeof *binding + size) : NULL;
    NEED_MEMORY(binding, error);
    binding->name = memcpy(binding->text, name, size);
    binding->tensor = NULL;
    struct binding **found = tsearch(binding, bucket_of(names, name), compare_names);
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

const struct tensor *names_remove(struct names *names, const char *name)
{
    struct binding **found = names_find_link(names, name);
    if (!found)
        return NULL;
    struct binding *binding = *found;
    const struct tensor *tensor = binding->tensor;
    tdelete(binding, bucket_of(names, name), compare_names);
    free(binding);
    return tensor;
}

void names_clear(struct names *names)
{
    for (size_t i = 0; names->buckets && i < BUCKETS; i++)
        while (names->buckets[i]) {
            struct binding *binding = *(struct binding **)names->buckets[i];
            tdelete(binding, &names->buckets[i], compare_names);
            free(binding);
        }
    free(names->buckets);
    names->buckets = NULL;
}
