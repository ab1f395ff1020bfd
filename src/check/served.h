/* What runs the operations on a device: kernels, or the host in its place. Only asks. */
#ifndef HEALCL_CHECK_SERVED_H
#define HEALCL_CHECK_SERVED_H

#include "check/coverage.h"
#include "device/device.h"

enum { SERVED_KERNELS_MAX = 16, SERVED_MAX = COVERAGE_FORM_ROWS };

/* An operation on tensors of certain dtypes, in all its forms. */
struct served {
    char dtypes[COVERAGE_DTYPES_SIZE]; /* "int64, a int8" */
    const char *kernels[SERVED_KERNELS_MAX];
    size_t kernel_count;        /* 0: it takes no kernel, as views and transfers */
    const char *kernel_missing; /* why the host runs a step of it; NULL: it runs none */
};

/* Fills in list for an operation of a table, which may be NULL, on contiguous tensors of a few
 * shapes. Of one of a manifest its kernels for the device are named. Returns how many there are. */
size_t served_list(const struct healcl_device *device, const struct operation_table *table,
                   const struct operation *operation, struct served list[SERVED_MAX]);

#endif
