#include "cli/progress.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "cli/cli.h"
#include "core/clock.h"
#include "core/format.h"

enum {
    PATIENCE = 300000000, /* nanoseconds before the line appears */
    INTERVAL = 100000000, /* between two checks */
    SECOND = 1000000000,
    MINUTE = 60, /* seconds */
    TEXT_SIZE = 512,
};

static bool running;   /* a thread runs; otherwise what is below is unused */
static int paused;     /* pauses that have not been resumed */
static unsigned width; /* of the terminal */
static uint64_t begin; /* nanoseconds of the monotonic clock */
static pthread_t thread;

/* The lock protects what is below, and the terminal. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static uint64_t interval;  /* nanoseconds between lines; 0: a terminal, which shows one line */
static uint64_t next_line; /* nanoseconds since the beginning */
static bool ends;
static bool shown; /* the line is visible now */
static char text[TEXT_SIZE];

/* ---------------------------------------------------------------- the line; the lock is held */

static void draw(uint64_t elapsed)
{
    char line[TEXT_SIZE + 64];
    snprintf(line, sizeof line, "%.1f s  %s", (double)elapsed / SECOND, text);
    /* A line that reached the last column would wrap, and could not be erased. */
    for (size_t kept = strlen(line); kept > 0 && text_columns(line) >= width;)
        line[--kept] = 0;
    fprintf(stderr, "\r%s\x1b[K", line);
    fflush(stderr);
    shown = true;
}

static void erase(void)
{
    if (!shown)
        return;
    fprintf(stderr, "\r\x1b[K");
    fflush(stderr);
    shown = false;
}

/* ---------------------------------------------------------------- the thread */

static void show(void)
{
    const uint64_t elapsed = monotonic_nanoseconds() - begin;
    if (ends || !*text)
        return;
    if (interval == 0 && elapsed >= PATIENCE)
        draw(elapsed);
    else if (interval > 0 && elapsed >= next_line) {
        fprintf(stderr, "%s: %" PRIu64 " s: %s\n", this_program->name, elapsed / SECOND, text);
        next_line = elapsed + interval;
    }
}

static void *keep_alive(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!ends) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += INTERVAL;
        until.tv_sec += until.tv_nsec / SECOND;
        until.tv_nsec %= SECOND;
        pthread_cond_timedwait(&wake, &lock, &until);
        show();
    }
    erase();
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void start(void)
{
    /* The main thread handles signals. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    running = pthread_create(&thread, NULL, keep_alive, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void progress_start(bool wanted)
{
    width = style_of(stderr).width;
    begin = monotonic_nanoseconds();
    if (wanted && is_smart_terminal(stderr))
        start();
}

void progress_start_long(void)
{
    const char *given = getenv("HEALCL_PROGRESS_SECONDS");
    uint32_t seconds = MINUTE;
    if (running || (given && *given && !parse_count(given, UINT32_MAX, &seconds)))
        return; /* on a terminal; or 0, or not a number */
    interval = next_line = (uint64_t)seconds * SECOND;
    start();
}

void progress_say(const char *format, ...)
{
    if (!running)
        return;
    pthread_mutex_lock(&lock);
    FORMAT_INTO(text, sizeof text, format);
    text_clean(text, false);
    pthread_mutex_unlock(&lock);
}

void progress_pause(void)
{
    if (!running || paused++ > 0)
        return;
    pthread_mutex_lock(&lock);
    erase();
}

void progress_resume(void)
{
    if (running && --paused == 0)
        pthread_mutex_unlock(&lock);
}

void progress_end(void)
{
    if (!running)
        return;
    pthread_mutex_lock(&lock);
    ends = true;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    running = false;
}
