/* What fuzzers of comparisons share; with _GNU_SOURCE. */
#ifndef HEALCL_TESTS_FUZZ_COMPARISON_H
#define HEALCL_TESTS_FUZZ_COMPARISON_H

#include <sys/mman.h>
#include <unistd.h>

#include "compare/compare.h"
#include "fuzz.h"

/* A file in memory: its path is of this process alone. */
static inline const char *file_of(const char *text, size_t size)
{
    static char path[32];
    static int file = -1;
    if (file < 0)
        file = memfd_create("baseline", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    EXPECT(file >= 0 && ftruncate(file, 0) == 0 && pwrite(file, text, size, 0) == (ssize_t)size);
    return path;
}

/* With a transcript that baselines may have runs of: the seeds name it. */
static inline void begin(struct comparison *comparison)
{
    cJSON *transcript =
        cJSON_Parse("{\"file\": \"t.json\", \"bytes\": 1024, \"digest\": \"0123456789abcdef\"}");
    comparison_init(comparison, 1024);
    cJSON_AddItemToArray(comparison->transcripts, transcript);
}

/* What is no comparison is refused. */
static inline void add_baseline(struct comparison *comparison, const char *text, size_t size)
{
    struct healcl_error error = {.detail = NULL};
    size_t added;
    enum healcl_status status =
        compare_add_baseline(comparison, file_of(text, size), &added, &error);
    EXPECT(status == HEALCL_OK || (status == HEALCL_USAGE && error.message[0]));
    EXPECT(added <= (size_t)cJSON_GetArraySize(comparison->runs));
    healcl_error_clear(&error);
}

#endif
