/*
 * Requests that arrive at equal distances, whatever becomes of those before them: an open loop, as
 * a service meets it. A request's latency counts from its arrival.
 */
#ifndef HEALCL_BENCH_ARRIVALS_H
#define HEALCL_BENCH_ARRIVALS_H

#include <stdint.h>

struct arrivals {
    uint64_t start;     /* when the first one arrives, nanoseconds of the monotonic clock */
    double distance;    /* between two, nanoseconds */
    uint32_t count;     /* of all requests */
    uint64_t max_delay; /* that the first of a batch waits for others at most, nanoseconds */
};

/* Times of a million requests stay in 64 bits with such a rate, a second. */
#define ARRIVALS_RATE_LEAST 0.001

/* When a request, counted from 0, arrives. */
uint64_t arrivals_time(const struct arrivals *arrivals, uint32_t request);

/* When a batch of up to most requests, from `first` on, runs on a device that waits for it: once it
 * is full, once nothing else comes, or once its first request has waited for max_delay. */
uint64_t arrivals_batch_time(const struct arrivals *arrivals, uint32_t first, uint32_t most);

/* How many of these have arrived at a time, which is not before that of `first`: at least 1. */
uint32_t arrivals_waiting(const struct arrivals *arrivals, uint32_t first, uint32_t most,
                          uint64_t now);

#endif
