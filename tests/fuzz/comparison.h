/* What fuzzers of comparisons share; with _GNU_SOURCE. */
#ifndef HEALCL_TESTS_FUZZ_COMPARISON_H
#define HEALCL_TESTS_FUZZ_COMPARISON_H

#include <sys/mman.h>
#include <unistd.h>

#include "compare/compare.h"
#include "fuzz.h"

/* A transcript that baselines may have runs of; what the seeds name. */
#define BYTES 1024
#define DIGEST "0123456789abcdef"

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

static inline void begin(struct comparison *comparison)
{
    struct healcl_error error = {.detail = NULL};
    EXPECT(comparison_init(comparison, &error) == HEALCL_OK);
    comparison->transcripts = comparison_alloc(comparison, sizeof *comparison->transcripts);
    EXPECT(comparison->transcripts);
    comparison->transcripts[0].file = "transcript.json";
    comparison->transcripts[0].bytes = BYTES;
    snprintf(comparison->transcripts[0].digest, sizeof comparison->transcripts[0].digest, DIGEST);
    comparison->transcript_count = 1;
    comparison->origin.memory_bytes = BYTES;
}

/* More devices than there is room for, and no comparison, are refused. */
static inline void expect_read(enum healcl_status status, struct healcl_error *error)
{
    EXPECT(status == HEALCL_OK || (status == HEALCL_USAGE && error->message[0]));
    healcl_error_clear(error);
}

#endif
