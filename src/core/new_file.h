/*
 * A file that appears either complete or not at all. It is written under a temporary name beside
 * its own, NAME.tmp-PID-TRY, and renamed once the disk has it. core/registry.h knows the temporary
 * name, so that a signal handler can remove the file; SIGKILL may leave it. A link to a file
 * remains a link. A pipe or a device is written directly.
 */
#ifndef HEALCL_CORE_NEW_FILE_H
#define HEALCL_CORE_NEW_FILE_H

#include <stdio.h>

#include "core/status.h"

struct new_file {
    FILE *stream;    /* NULL: not open */
    char *path;      /* its final name, with links resolved */
    char *temporary; /* its temporary name; NULL for a pipe or a device */
    bool is_cached;
};

/* Refuses a path that leads to an input, as new_file_open and new_file_commit do. */
enum healcl_status new_file_check(const char *path, struct healcl_error *error);

/* Errors: HEALCL_USAGE if the file cannot be written or is an input (core/registry.h);
 * HEALCL_NO_MEMORY. */
enum healcl_status new_file_open(struct new_file *file, const char *path,
                                 struct healcl_error *error);

/* Opens a file that only the user can access, whose reader detects damage. It is not synchronised
 * with the disk, and replaces anything that has its name. */
enum healcl_status new_file_open_cached(struct new_file *file, const char *path,
                                        struct healcl_error *error);

/* Closes the file and gives it its final name. Also reports earlier write errors. The file is
 * closed even after an error. */
enum healcl_status new_file_commit(struct new_file *file, struct healcl_error *error);

/* Removes an unfinished file. Ignores a file that is not open. */
void new_file_discard(struct new_file *file);

#endif
