/*
 * Some functions of OpenCL, put between the library and the loader: how long those that set
 * arguments and enqueue kernels take, and how many bytes go from the host to the device.
 */
#ifndef HEALCL_TESTS_OPENCL_CALLS_H
#define HEALCL_TESTS_OPENCL_CALLS_H

#include <stdatomic.h>

struct opencl_calls {
    atomic_ullong nanoseconds; /* in clSetKernelArg and clEnqueueNDRangeKernel */
    atomic_ullong launches;
    atomic_ullong bytes; /* written, copied from the host's memory, or mapped to be written */
};

extern struct opencl_calls opencl_calls;

#endif
