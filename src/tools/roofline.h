/*
 * The least time that a device's measured rates allow for the kernels of a segment.
 *
 * Where work-items are thin, others compute while some wait for memory. So it is the longer of two:
 * the bytes that steps have to read and write, at the rate of large copies or writes; and their
 * products and butterflies, at the rate of products in registers. Digits are bound by their bytes.
 *
 * Elsewhere it is the sum of bytes, at the rate of a large copy, and of each work at the rate that
 * `healcl bench` gives the operation alone where all lies in cache.
 */
#ifndef HEALCL_TOOLS_ROOFLINE_H
#define HEALCL_TOOLS_ROOFLINE_H

#include "opencl/device.h"
#include "plan/plan.h"

/* A second; 0 where they are not known, or bound nothing. */
struct roofline {
    uint64_t bytes, work[WORKS];
    bool overlaps; /* memory and arithmetic */
};

/* Returns whether rates were cached for kernels of that tuning, on this device and driver. */
bool roofline_read_cached(const struct device_info *info, const struct device_tuning *tuning,
                          struct roofline *roofline);

enum { ROOFLINE_SECONDS = 30 }; /* until no more kernels are built where it is not all */

/* Measures, and keeps that; half a second where kernels are quickly built. Errors: as bench_run;
 * HEALCL_DEVICE where building them takes more seconds, of which 0 means any. */
enum healcl_status roofline_measure(struct healcl_device *device, uint32_t seconds,
                                    struct roofline *roofline, struct healcl_error *error);

/* Nanoseconds; 0 where rates are not known. */
uint64_t roofline_time(const struct roofline *roofline, const struct segment_cost *cost);

#endif
