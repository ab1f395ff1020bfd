/* The transcripts that come with healcl: found from where the program lies. */
#include "cli/bundled.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/xmalloc.h"

enum healcl_status bundled_find(glob_t *found, struct healcl_error *error)
{
    /* Installed; and in a build folder, as build/ or as build/release/. */
    static const char *const places[] = {"../share/healcl/transcripts", "../transcripts",
                                         "../../transcripts"};
    char program[PATH_MAX], pattern[PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0)
        FAIL(error, HEALCL_USAGE, "cannot tell where healcl lies: %s", strerror(errno));
    program[length] = 0;
    *(strrchr(program, '/') ? strrchr(program, '/') : program) = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(pattern, sizeof pattern, "%s/%s/*.json*", program, places[i]);
        const int code = glob(pattern, 0, NULL, found);
        if (code == GLOB_NOSPACE)
            xmalloc_fail();
        if (code == 0)
            return HEALCL_OK;
    }
    FAIL(error, HEALCL_USAGE,
         "there are no bundled transcripts, neither '%.400s/%s' nor a source tree's: name a FILE",
         program, places[0]);
}
