/*
 * A file that appears whole or not at all. It is written under a temporary name beside its own,
 * NAME.tmp-PID-TRY, and renamed once the disk has it. core/registry.h knows the temporary name, so
 * that a signal removes it; SIGKILL may leave it. A link to a file stays one, and a pipe or a
 * device is written directly.
 */
#ifndef HEALCL_CORE_NEW_FILE_H
#define HEALCL_CORE_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/status.h"

struct new_file {
    FILE *stream;    /* NULL: not open */
    char *path;      /* as it will be called, links followed */
    char *temporary; /* its name until then; NULL for a pipe or a device */
    bool is_cached;
};

/* Refuses a path that leads to an input, as new_file_open and new_file_commit do. */
enum healcl_status new_file_check(const char *path, struct healcl_error *error);

/* Errors: HEALCL_USAGE where it cannot be written, or is an input (core/registry.h);
 * HEALCL_NO_MEMORY. */
enum healcl_status new_file_open(struct new_file *file, const char *path,
                                 struct healcl_error *error);

/* Opens a file of the user's alone whose reader notices damage: it does not wait for the disk, and
 * replaces whatever has its name. */
enum healcl_status new_file_open_cached(struct new_file *file, const char *path,
                                        struct healcl_error *error);

/* Closes the file and gives it its name; also notices what went wrong while it was written. It is
 * gone either way. */
enum healcl_status new_file_commit(struct new_file *file, struct healcl_error *error);

/* Removes a file that is not to be. Ignores one that is not open. */
void new_file_discard(struct new_file *file);

#endif
