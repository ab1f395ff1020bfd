/* The transcripts that come with healcl: found from where the program lies. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bundled.h"

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);
    return length > end_length && strcmp(name + length - end_length, end) == 0;
}

static int is_transcript(const struct dirent *entry)
{
    return ends_with(entry->d_name, ".json") || ends_with(entry->d_name, ".json.gz") ||
           ends_with(entry->d_name, ".json.zst");
}

/* The names become paths. Returns false without memory. */
static bool take_names(const char *folder, struct dirent **names, size_t count,
                       struct bundled *bundled)
{
    bundled->files = calloc(count, sizeof *bundled->files);
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(folder) + strlen(names[i]->d_name) + 2;
        char *path = bundled->files ? malloc(size) : NULL;
        if (path) {
            snprintf(path, size, "%s/%s", folder, names[i]->d_name);
            bundled->files[bundled->count++] = path;
        }
        free(names[i]);
    }
    free(names);
    return bundled->count == count;
}

enum healcl_status bundled_find(struct bundled *bundled, struct healcl_error *error)
{
    /* Installed; and in a build folder, as build/ or as build/release/. */
    static const char *const places[] = {"../share/healcl/transcripts", "../transcripts",
                                         "../../transcripts"};
    char program[PATH_MAX], folder[PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    *bundled = (struct bundled){.count = 0};
    if (length < 0)
        FAIL(error, HEALCL_USAGE, "cannot tell where healcl lies: %s", strerror(errno));
    program[length] = 0;
    char *name = strrchr(program, '/');
    if (name)
        *name = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct dirent **names = NULL;
        snprintf(folder, sizeof folder, "%s/%s", program, places[i]);
        int count = scandir(folder, &names, is_transcript, alphasort);
        if (count > 0 && !take_names(folder, names, (size_t)count, bundled))
            NO_MEMORY(error);
        if (count > 0)
            return HEALCL_OK;
        free(names);
    }
    FAIL(error, HEALCL_USAGE,
         "there are no bundled transcripts, neither '%.400s/%s' nor a source tree's: name a FILE",
         program, places[0]);
}

void bundled_release(struct bundled *bundled)
{
    for (size_t i = 0; i < bundled->count; i++)
        free(bundled->files[i]);
    free(bundled->files);
}
