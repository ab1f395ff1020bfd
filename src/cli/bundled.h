/* The transcripts that come with healcl. */
#ifndef HEALCL_CLI_BUNDLED_H
#define HEALCL_CLI_BUNDLED_H

#include <glob.h>

#include "core/status.h"

/* Finds them, sorted by name: where they are installed with the program, or in the source tree that
 * it was built in. found, all 0 before, is freed with globfree. Errors: HEALCL_USAGE where there
 * are none. */
enum healcl_status bundled_find(glob_t *found, struct healcl_error *error);

#endif
