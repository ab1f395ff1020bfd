/* Approximate rates of a device's arithmetic and memory, for `healcl devices --measure` and
 * rooflines. */
#ifndef HEALCL_TOOLS_MEASURE_H
#define HEALCL_TOOLS_MEASURE_H

#include "opencl/device.h"
#include "plan/plan.h"

/* Rates per second. */
struct device_rates {
    uint64_t products;         /* of 64-bit integers, with both halves of the result */
    uint64_t copied_bytes;     /* bytes read plus bytes written */
    uint64_t written_bytes;    /* by kernels that read nothing */
    uint64_t twiddle_products; /* modulo q, by a twiddle and its precomputed quotient */
};

/* Measures the rates. all: else only the first two, and the others are 0. Takes less than a second
 * if kernels build quickly. Errors: HEALCL_DEVICE; HEALCL_REFUSED if memory runs out. */
enum healcl_status device_measure(struct healcl_device *device, bool all,
                                  struct device_rates *rates, struct healcl_error *error);

/* Returns how many bytes a measured copy should have, at most `most` and at least `bytes`, given
 * that copying `bytes` took `nanoseconds`. The result makes the overhead of a launch small. */
uint64_t larger_copy(uint64_t bytes, uint64_t nanoseconds, uint64_t most);

/* ---- rooflines ---- */

/*
 * The least time that a device's measured rates allow for the kernels of a segment.
 *
 * If work-items are thin, some compute while others wait for memory. Then it is the longer of two
 * times. One is for the bytes that steps must read and write, at the rate of large copies or
 * writes. The other is for their products and butterflies, at the rate of products in registers.
 * Digits are limited by their bytes.
 *
 * Otherwise it is a sum. It adds the time of the bytes, at the rate of a large copy, and the time
 * of each kind of work. The rate of that work is what `healcl bench` measures for the operation
 * alone when all its data fit in the cache.
 */

/* Rates per second; 0 if they are unknown, or limit nothing. */
struct roofline {
    uint64_t bytes, work[WORKS];
    bool overlaps; /* memory and arithmetic */
};

/* Rates measured with kernels of this tuning are cached for each device and driver, as tunings are.
 * roofline_read_cached returns whether there are any; roofline_cache may fail silently. */
bool roofline_read_cached(const struct device_info *info, const struct device_tuning *tuning,
                          struct roofline *roofline);
void roofline_cache(const struct device_info *info, const struct device_tuning *tuning,
                    const struct roofline *roofline);

enum { ROOFLINE_SECONDS = 30 }; /* if not all: only until no more kernels are built */

/* Measures and caches the rates. Takes half a second if kernels build quickly. Errors: as
 * bench_run; HEALCL_DEVICE if building them takes more than `seconds`, where 0 means no limit. */
enum healcl_status roofline_measure(struct healcl_device *device, uint32_t seconds,
                                    struct roofline *roofline, struct healcl_error *error);

/* Nanoseconds; 0 if rates are unknown. */
uint64_t roofline_time(const struct roofline *roofline, const struct segment_cost *cost);

#endif
