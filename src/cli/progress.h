/* A line on a terminal that shows the current work and its elapsed time. A separate thread updates
 * it, because most of the time is spent in single calls of drivers. Commands that may take many
 * minutes also report without a terminal, one line per minute. */
#ifndef HEALCL_CLI_PROGRESS_H
#define HEALCL_CLI_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { PROGRESS_TEXT_SIZE = 512 };

struct progress {
    bool running;   /* a thread runs; otherwise the members below are unused */
    unsigned width; /* of the terminal */
    uint64_t start; /* nanoseconds of the monotonic clock */
    pthread_t thread;
    pthread_mutex_t lock; /* protects the members below, and the terminal */
    pthread_cond_t wake;
    uint64_t interval;  /* nanoseconds between lines; 0: a terminal, which shows one line */
    uint64_t next_line; /* nanoseconds since start */
    bool ends;
    bool shown; /* the line is visible now */
    char text[PROGRESS_TEXT_SIZE];
};

/* Shows nothing unless `wanted` is set and standard error is a terminal that can erase a line. */
void progress_start(struct progress *progress, bool wanted);

/* Call it after progress_start. Without such a terminal, a line is written to standard error every
 * minute. HEALCL_PROGRESS_SECONDS in the environment sets another interval; 0: no lines. */
void progress_start_long(struct progress *progress);

/* Sets the text of the line. */
__attribute__((format(printf, 2, 3))) void progress_say(struct progress *progress,
                                                        const char *format, ...);

/* Removes the line while other text is printed. */
void progress_pause(struct progress *progress);
void progress_resume(struct progress *progress);

/* Removes the line and ends the thread. */
void progress_end(struct progress *progress);

#endif
