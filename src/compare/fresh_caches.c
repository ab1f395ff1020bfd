#include "compare/fresh_caches.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each gets a folder below ours. */
static const char *const variables[FRESH_VARIABLES] = {
    "HEALCL_CACHE_DIR", "XDG_CACHE_HOME",  "POCL_CACHE_DIR",      "MESA_SHADER_CACHE_DIR",
    "NEO_CACHE_DIR",    "CUDA_CACHE_PATH", "AMD_COMGR_CACHE_DIR",
};

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    (void)remove(path);
    return 0;
}

static char *new_folder(void)
{
    const char *parent = getenv("TMPDIR");
    const char name[] = "/healcl-caches-XXXXXX";
    parent = parent && *parent ? parent : "/tmp";
    size_t size = strlen(parent) + sizeof name;
    char *folder = malloc(size);
    if (!folder)
        return NULL;
    snprintf(folder, size, "%s%s", parent, name);
    if (mkdtemp(folder))
        return folder;
    free(folder);
    return NULL;
}

/* The environment's value of a variable becomes a folder of that name. */
static bool set(const struct fresh_caches *caches, const char *variable)
{
    size_t size = strlen(caches->folder) + strlen(variable) + 2;
    char *path = malloc(size);
    if (!path)
        return false;
    snprintf(path, size, "%s/%s", caches->folder, variable);
    bool done = setenv(variable, path, 1) == 0;
    free(path);
    return done;
}

bool fresh_caches_begin(struct fresh_caches *caches)
{
    *caches = (struct fresh_caches){.folder = new_folder()};
    bool done = caches->folder != NULL;
    for (size_t i = 0; i < FRESH_VARIABLES && done; i++) {
        const char *value = getenv(variables[i]);
        caches->before[i] = value ? strdup(value) : NULL;
        done = !value || caches->before[i];
    }
    if (!done) { /* the environment is as it was */
        for (size_t i = 0; i < FRESH_VARIABLES; i++)
            free(caches->before[i]);
        if (caches->folder)
            (void)remove(caches->folder);
        free(caches->folder);
        *caches = (struct fresh_caches){.folder = NULL};
        return false;
    }
    for (size_t i = 0; i < FRESH_VARIABLES && done; i++)
        done = set(caches, variables[i]);
    if (!done)
        fresh_caches_end(caches);
    return done;
}

void fresh_caches_end(struct fresh_caches *caches)
{
    enum { OPEN_FOLDERS = 16 };
    if (!caches->folder)
        return;
    for (size_t i = 0; i < FRESH_VARIABLES; i++) {
        if (caches->before[i])
            (void)setenv(variables[i], caches->before[i], 1);
        else
            (void)unsetenv(variables[i]);
        free(caches->before[i]);
    }
    (void)nftw(caches->folder, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
    free(caches->folder);
    *caches = (struct fresh_caches){.folder = NULL};
}
