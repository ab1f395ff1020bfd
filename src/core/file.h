/* Reading of files that may not be what the caller expects: others may have replaced them. */
#ifndef HEALCL_CORE_FILE_H
#define HEALCL_CORE_FILE_H

#include <errno.h>

#include "core/status.h"

/* Longest path in messages. A longer path is cut, so that the reason after it still fits. */
#define PATH_FORMAT "'%.480s'"

/* For a failed call on a file that set errno. Running out of memory is not the file's fault. */
#define FAIL_FILE(error, ...)                             \
    do {                                                  \
        if (errno == ENOMEM)                              \
            NO_MEMORY(error);                             \
        FAIL_FOR(error, HEALCL_USAGE, FILE, __VA_ARGS__); \
    } while (0)

/*
 * Opens a regular file for reading. Refuses anything else at once; opening a FIFO would wait for a
 * writer.
 * file: a descriptor that the caller closes; -1 after an error.
 * Errors: HEALCL_USAGE.
 */
enum healcl_status file_open_regular(const char *path, int *file, struct healcl_error *error);

/* Reads a whole regular file of at most `most` bytes, and adds a terminating 0. The caller frees
 * *data with free(); it is NULL after an error. Errors: HEALCL_USAGE, HEALCL_NO_MEMORY. */
enum healcl_status file_read(const char *path, uint64_t most, unsigned char **data, size_t *bytes,
                             struct healcl_error *error);

struct dirent;

/* A filter for scandir: whether a name ends in ".json" and is not hidden. */
int file_is_json(const struct dirent *entry);

/* Whether a path in a folder leads out of the folder by a link. A path that does not exist does
 * not. */
bool file_leads_out(const char *folder, const char *path);

#endif
