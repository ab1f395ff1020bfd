/* Rough rates of a device's arithmetic and memory, for `healcl devices --measure` and rooflines
 * (tools/roofline.h). */
#ifndef HEALCL_TOOLS_MEASURE_H
#define HEALCL_TOOLS_MEASURE_H

#include "opencl/device.h"

/* A second. */
struct device_rates {
    uint64_t products;         /* of 64-bit integers, both halves */
    uint64_t copied_bytes;     /* read and written counted each */
    uint64_t written_bytes;    /* by what reads nothing */
    uint64_t twiddle_products; /* modulo q, by a twiddle and its quotient */
};

/* all: else only the first two, and 0. Takes less than a second where kernels are quickly built.
 * Errors: HEALCL_DEVICE, HEALCL_REFUSED where there is no memory for it. */
enum healcl_status device_measure(struct healcl_device *device, bool all,
                                  struct device_rates *rates, struct healcl_error *error);

/* How many bytes to copy, up to a limit, where a launch of so many has taken so long: as many as
 * make what a launch takes to begin and to end small. Never less than bytes. */
uint64_t larger_copy(uint64_t bytes, uint64_t nanoseconds, uint64_t most);

/* Rates that were measured with kernels of that tuning, and are cached for a device and driver as
 * tunings are: returns whether there are so many of them. rates_cache may fail without a word. */
bool rates_read_cached(const struct device_info *info, const struct device_tuning *tuning,
                       size_t count, uint64_t *rates);
void rates_cache(const struct device_info *info, const struct device_tuning *tuning, size_t count,
                 const uint64_t *rates);

#endif
