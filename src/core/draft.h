/*
 * A file in the making, which is to appear whole or not at all, and of which nothing is left where
 * it does not: where the file system can do that it has no name before it is done, and goes with
 * its process, also with one that is killed. Elsewhere (NFS, and some that are mounted for
 * containers) it has a temporary name, which core/registry.h knows:
 *
 *     NAME.tmp-PID-TRY
 *
 * A file that replaces one has such a name too, for the microseconds between getting it and being
 * renamed: no link can take the place of a file. What processes that were killed have left under
 * such names is removed by the next one that writes NAME.
 */
#ifndef HEALCL_CORE_DRAFT_H
#define HEALCL_CORE_DRAFT_H

#include <stdbool.h>
#include <sys/types.h>

struct draft {
    int descriptor;  /* for reading and writing */
    char *path;      /* as it will be called; NULL: not open */
    char *temporary; /* room for a temporary name */
    bool is_named;   /* and it is the file's */
};

/* Begins a file of that name, with mode less the process's mask. The caller ends it with one of the
 * following two. Returns 0, or an errno, then there is nothing to be ended. */
int draft_open(struct draft *draft, const char *path, mode_t mode);

/* Gives it its name, in the place of whatever has that; it is closed either way. Returns 0, or an
 * errno, then nothing is left of it. */
int draft_commit(struct draft *draft);

/* Removes it. Ignores one that is not open. */
void draft_discard(struct draft *draft);

/* A file for reading and writing that never has a name, in the folder of path; its last part plays
 * no role. Returns a descriptor, or -1 where the file system has none. */
int nameless_create(const char *path, mode_t mode);

#endif
