/* Empty caches for child processes: healcl's, and those of drivers, which keep what they compiled
 * under XDG_CACHE_HOME or where a variable of their own says. */
#ifndef HEALCL_COMPARE_FRESH_CACHES_H
#define HEALCL_COMPARE_FRESH_CACHES_H

#include <stdbool.h>

enum { FRESH_VARIABLES = 7 };

struct fresh_caches {
    char *folder;                  /* NULL: there are none */
    char *before[FRESH_VARIABLES]; /* what the environment said; NULL: nothing */
};

/* Makes them, and has processes that are started from now on use them. Returns false where no
 * folder can be made; nothing has changed then. */
bool fresh_caches_begin(struct fresh_caches *caches);

/* Removes them, and sets the environment as it was. Ignores caches that there are not. */
void fresh_caches_end(struct fresh_caches *caches);

#endif
