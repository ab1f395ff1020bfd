#include "bench/arrivals.h"

uint64_t arrivals_time(const struct arrivals *arrivals, uint32_t request)
{
    return arrivals->start + (uint64_t)(request * arrivals->distance);
}

/* How many requests a batch has at most. */
static uint32_t room(const struct arrivals *arrivals, uint32_t first, uint32_t most)
{
    const uint32_t left = arrivals->count - first;
    return left < most ? left : most;
}

uint64_t arrivals_batch_time(const struct arrivals *arrivals, uint32_t first, uint32_t most)
{
    const uint64_t full = arrivals_time(arrivals, first + room(arrivals, first, most) - 1);
    const uint64_t latest = arrivals_time(arrivals, first) + arrivals->max_delay;
    return full < latest ? full : latest;
}

uint32_t arrivals_waiting(const struct arrivals *arrivals, uint32_t first, uint32_t most,
                          uint64_t now)
{
    const uint32_t count = room(arrivals, first, most);
    uint32_t waiting = 1;
    while (waiting < count && arrivals_time(arrivals, first + waiting) <= now)
        waiting++;
    return waiting;
}
