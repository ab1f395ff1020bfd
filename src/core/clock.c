#include "core/clock.h"

#include <errno.h>
#include <time.h>

enum { SECOND = 1000000000 };

uint64_t monotonic_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

void monotonic_sleep_until(uint64_t nanoseconds)
{
    const struct timespec end = {.tv_sec = (time_t)(nanoseconds / SECOND),
                                 .tv_nsec = (long)(nanoseconds % SECOND)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
        continue;
}
