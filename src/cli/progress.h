/*
 * One line on a terminal that says what long work is at and how long it has taken. A thread of its
 * own keeps it alive, for what takes long is mostly one call into a driver. Work of many minutes
 * says so without a terminal too, by a line a minute.
 */
#ifndef HEALCL_CLI_PROGRESS_H
#define HEALCL_CLI_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { PROGRESS_TEXT_SIZE = 512 };

struct progress {
    bool running;   /* there is a thread; without one nothing below is used */
    unsigned width; /* of the terminal */
    uint64_t start; /* nanoseconds of the monotonic clock */
    pthread_t thread;
    pthread_mutex_t lock; /* of everything below, and of the terminal */
    pthread_cond_t wake;
    uint64_t interval;  /* nanoseconds between lines; 0: on a terminal, where one line stays */
    uint64_t next_line; /* since the start */
    bool ends;
    bool shown; /* the line stands there now */
    char text[PROGRESS_TEXT_SIZE];
};

/* Shows nothing unless it is wanted and standard error is a terminal that can take a line back. */
void progress_start(struct progress *progress, bool wanted);

/* Does so too; without such a terminal, standard error gets a line every minute. The
 * environment's HEALCL_PROGRESS_SECONDS is another time; 0: no lines. */
void progress_start_long(struct progress *progress);

/* Sets the text of the line. */
__attribute__((format(printf, 2, 3))) void progress_say(struct progress *progress,
                                                        const char *format, ...);

/* Takes the line away while something else is printed. */
void progress_pause(struct progress *progress);
void progress_resume(struct progress *progress);

/* Takes the line away for good. */
void progress_end(struct progress *progress);

#endif
