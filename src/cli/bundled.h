/* The transcripts that come with healcl. */
#ifndef HEALCL_CLI_BUNDLED_H
#define HEALCL_CLI_BUNDLED_H

#include "core/status.h"

struct bundled {
    char **files;
    size_t count;
};

/* Finds them, sorted by name: where they are installed with the program, or in the source tree that
 * it was built in. To be released also after an error. Errors: HEALCL_USAGE where there are none.
 */
enum healcl_status bundled_find(struct bundled *bundled, struct healcl_error *error);
void bundled_release(struct bundled *bundled);

#endif
