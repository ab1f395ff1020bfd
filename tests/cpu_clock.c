/*
 * A clock that other processes do not disturb: preloaded (LD_PRELOAD), it makes CLOCK_MONOTONIC
 * report the processor time of this process and of its children that have ended. Times then spread
 * little on a busy machine too. Where the environment has CPU_CLOCK_SPEED, a number, it runs so
 * many times as fast: what measures for half a second measures for less.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

typedef int clock_function(clockid_t, struct timespec *);

static const long SECOND = 1000000000; /* nanoseconds */

static void add(struct timespec *sum, const struct timeval *time)
{
    sum->tv_sec += time->tv_sec;
    sum->tv_nsec += time->tv_usec * 1000;
    if (sum->tv_nsec >= SECOND) {
        sum->tv_nsec -= SECOND;
        sum->tv_sec++;
    }
}

static void multiply(struct timespec *time, long factor)
{
    time->tv_sec *= factor;
    time->tv_nsec *= factor;
    time->tv_sec += time->tv_nsec / SECOND;
    time->tv_nsec %= SECOND;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static clock_function *ask;
    struct rusage children;
    if (!ask)
        *(void **)&ask = dlsym(RTLD_NEXT, "clock_gettime");
    if (clock != CLOCK_MONOTONIC)
        return ask(clock, now);
    int code = ask(CLOCK_PROCESS_CPUTIME_ID, now);
    if (code == 0 && getrusage(RUSAGE_CHILDREN, &children) == 0) {
        add(now, &children.ru_utime);
        add(now, &children.ru_stime);
    }
    const char *speed = getenv("CPU_CLOCK_SPEED");
    if (speed)
        multiply(now, atol(speed));
    return code;
}
