#include "cli/progress.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/text.h"
#include "run/run.h"

enum {
    PATIENCE = 300000000, /* nanoseconds before the line appears */
    INTERVAL = 100000000, /* between two checks */
    SECOND = 1000000000,
    MINUTE = 60, /* seconds */
};

/* ---------------------------------------------------------------- the line; the lock is held */

enum { LINE_SIZE = PROGRESS_TEXT_SIZE + 64 };

static void draw(struct progress *progress, uint64_t elapsed)
{
    char line[LINE_SIZE];
    snprintf(line, sizeof line, "%.1f s  %s", (double)elapsed / SECOND, progress->text);
    text_clean(line, false);
    /* A line that reached the last column would wrap, and could not be erased. */
    for (size_t kept = strlen(line); kept > 0 && text_columns(line) >= progress->width;)
        line[--kept] = 0;
    fprintf(stderr, "\r%s\x1b[K", line);
    fflush(stderr);
    progress->shown = true;
}

static void erase(struct progress *progress)
{
    if (!progress->shown)
        return;
    fprintf(stderr, "\r\x1b[K");
    fflush(stderr);
    progress->shown = false;
}

/* ---------------------------------------------------------------- the thread */

static void show(struct progress *progress)
{
    const uint64_t elapsed = monotonic_nanoseconds() - progress->start;
    if (progress->ends || !progress->text[0])
        return;
    if (progress->interval == 0 && elapsed >= PATIENCE)
        draw(progress, elapsed);
    else if (progress->interval > 0 && elapsed >= progress->next_line) {
        print_notice("%" PRIu64 " s: %s", elapsed / SECOND, progress->text);
        progress->next_line = elapsed + progress->interval;
    }
}

static void *keep_alive(void *argument)
{
    struct progress *progress = argument;
    pthread_mutex_lock(&progress->lock);
    while (!progress->ends) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += INTERVAL;
        until.tv_sec += until.tv_nsec / SECOND;
        until.tv_nsec %= SECOND;
        pthread_cond_timedwait(&progress->wake, &progress->lock, &until);
        show(progress);
    }
    erase(progress);
    pthread_mutex_unlock(&progress->lock);
    return NULL;
}

static void start(struct progress *progress)
{
    pthread_mutex_init(&progress->lock, NULL);
    pthread_cond_init(&progress->wake, NULL);
    /* The main thread handles signals. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    progress->running = pthread_create(&progress->thread, NULL, keep_alive, progress) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void progress_start(struct progress *progress, bool wanted)
{
    *progress =
        (struct progress){.width = style_of(stderr).width, .start = monotonic_nanoseconds()};
    if (wanted && is_smart_terminal(stderr))
        start(progress);
}

void progress_start_long(struct progress *progress)
{
    const char *seconds = getenv("HEALCL_PROGRESS_SECONDS");
    uint32_t interval = MINUTE;
    if (progress->running || (seconds && *seconds && !parse_count(seconds, UINT32_MAX, &interval)))
        return; /* on a terminal; or 0, or not a number */
    progress->interval = progress->next_line = (uint64_t)interval * SECOND;
    start(progress);
}

void progress_say(struct progress *progress, const char *format, ...)
{
    if (!progress->running)
        return;
    pthread_mutex_lock(&progress->lock);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(progress->text, sizeof progress->text, format, arguments);
    va_end(arguments);
    pthread_mutex_unlock(&progress->lock);
}

void progress_pause(struct progress *progress)
{
    if (!progress->running)
        return;
    pthread_mutex_lock(&progress->lock);
    erase(progress);
}

void progress_resume(struct progress *progress)
{
    if (progress->running)
        pthread_mutex_unlock(&progress->lock);
}

void progress_end(struct progress *progress)
{
    if (!progress->running)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->ends = true;
    pthread_cond_signal(&progress->wake);
    pthread_mutex_unlock(&progress->lock);
    pthread_join(progress->thread, NULL);
    pthread_cond_destroy(&progress->wake);
    pthread_mutex_destroy(&progress->lock);
    progress->running = false;
}
