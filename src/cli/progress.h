/* One line on a terminal that says where a long run is. */
#ifndef HEALCL_CLI_PROGRESS_H
#define HEALCL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    bool enabled;         /* standard error is a terminal, and someone wants to see it */
    bool shown;           /* the line stands there now */
    unsigned width;       /* of the terminal */
    uint64_t start, last; /* nanoseconds of the monotonic clock */
};

void progress_init(struct progress *progress, bool wanted);

/* Shows the line once the work has lasted a while, and not too often; at once if forced. */
__attribute__((format(printf, 3, 4))) void progress_show(struct progress *progress, bool force,
                                                         const char *format, ...);

/* Takes the line away before something else is printed. */
void progress_clear(struct progress *progress);

#endif
