/* Approximate rates of a device's arithmetic and memory, for `healcl devices --measure` and
 * rooflines (tools/roofline.h). */
#ifndef HEALCL_TOOLS_MEASURE_H
#define HEALCL_TOOLS_MEASURE_H

#include "opencl/device.h"

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

/* Rates measured with kernels of this tuning. They are cached per device and driver, as tunings
 * are. rates_read_cached returns whether all `count` rates were found. rates_cache may fail
 * silently. */
bool rates_read_cached(const struct device_info *info, const struct device_tuning *tuning,
                       size_t count, uint64_t *rates);
void rates_cache(const struct device_info *info, const struct device_tuning *tuning, size_t count,
                 const uint64_t *rates);

#endif
