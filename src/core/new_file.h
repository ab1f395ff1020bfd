/* A file that appears whole or not at all, as core/draft.h has it. A link to a file stays one. */
#ifndef HEALCL_CORE_NEW_FILE_H
#define HEALCL_CORE_NEW_FILE_H

#include <stdio.h>

#include "core/draft.h"
#include "core/status.h"

struct new_file {
    FILE *stream;       /* NULL: not open */
    char *path;         /* as it will be called, links followed */
    struct draft draft; /* none for what is there to stay: a pipe, a device */
};

/* Errors: HEALCL_USAGE where it cannot be written, HEALCL_NO_MEMORY. */
enum healcl_status new_file_open(struct new_file *file, const char *path,
                                 struct healcl_error *error);

/* Closes the file and gives it its name; also notices what went wrong while it was written. It is
 * gone either way. */
enum healcl_status new_file_commit(struct new_file *file, struct healcl_error *error);

/* Removes a file that is not to be. Ignores one that is not open. */
void new_file_discard(struct new_file *file);

#endif
