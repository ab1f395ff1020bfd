/* Files that others may have put in place of the expected ones. */
#ifndef HEALCL_CORE_FILE_H
#define HEALCL_CORE_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

/* A longer path is cut in messages, so that the reason behind it still fits. */
#define PATH_FORMAT "'%.480s'"

/* For a call on a file that failed with errno: memory that ran out is no fault of the file's. */
#define FAIL_FILE(error, ...)                             \
    do {                                                  \
        if (errno == ENOMEM)                              \
            NO_MEMORY(error);                             \
        FAIL_FOR(error, HEALCL_USAGE, FILE, __VA_ARGS__); \
    } while (0)

/*
 * Opens a regular file for reading. Anything else is refused, and at once: a FIFO would wait for a
 * writer.
 * file: a descriptor, the caller's to close; -1 after an error.
 * Errors: HEALCL_USAGE.
 */
enum healcl_status file_open_regular(const char *path, int *file, struct healcl_error *error);

/* The whole of a regular file of at most so many bytes, with a 0 behind it, freed with free().
 * *data is NULL after an error. Errors: HEALCL_USAGE, HEALCL_NO_MEMORY. */
enum healcl_status file_read(const char *path, uint64_t most, unsigned char **data, size_t *bytes,
                             struct healcl_error *error);

struct dirent;

/* For scandir: whether a name ends in ".json" and is not hidden. */
int file_is_json(const struct dirent *entry);

/* Whether a path leads out of a folder by a link. What is not there does not. */
bool file_leads_out(const char *folder, const char *path);

#endif
