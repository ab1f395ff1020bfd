/*
 * The only interface to OpenCL. Every call uses a table of functions: tests can inject faults and
 * tools can trace calls without changes to callers.
 */
#ifndef HEALCL_OPENCL_OPENCL_H
#define HEALCL_OPENCL_OPENCL_H

#include <CL/cl.h>
#include <pthread.h>

#include "core/registry.h"
#include "core/status.h"

/* The code of a loader that finds no platform. Headers of OpenCL 1.2 lack it. */
#ifndef CL_PLATFORM_NOT_FOUND_KHR
#define CL_PLATFORM_NOT_FOUND_KHR (-1001)
#endif

/* OpenCL 1.0 lacks the last ones: they are NULL if the library does not have them. */
enum { OPENCL_LATER_FUNCTIONS = 4 };
#define OPENCL_FUNCTIONS(X)         \
    X(clGetPlatformIDs)             \
    X(clGetPlatformInfo)            \
    X(clGetDeviceIDs)               \
    X(clGetDeviceInfo)              \
    X(clCreateContext)              \
    X(clRetainContext)              \
    X(clReleaseContext)             \
    X(clCreateCommandQueue)         \
    X(clRetainCommandQueue)         \
    X(clReleaseCommandQueue)        \
    X(clGetCommandQueueInfo)        \
    X(clCreateProgramWithSource)    \
    X(clCreateProgramWithBinary)    \
    X(clBuildProgram)               \
    X(clGetProgramInfo)             \
    X(clGetProgramBuildInfo)        \
    X(clRetainProgram)              \
    X(clReleaseProgram)             \
    X(clCreateKernel)               \
    X(clReleaseKernel)              \
    X(clGetKernelInfo)              \
    X(clSetKernelArg)               \
    X(clCreateBuffer)               \
    X(clRetainMemObject)            \
    X(clReleaseMemObject)           \
    X(clGetMemObjectInfo)           \
    X(clEnqueueNDRangeKernel)       \
    X(clEnqueueReadBuffer)          \
    X(clEnqueueWriteBuffer)         \
    X(clEnqueueCopyBuffer)          \
    X(clEnqueueMapBuffer)           \
    X(clEnqueueUnmapMemObject)      \
    X(clFlush)                      \
    X(clFinish)                     \
    X(clWaitForEvents)              \
    X(clGetEventInfo)               \
    X(clGetEventProfilingInfo)      \
    X(clRetainEvent)                \
    X(clReleaseEvent)               \
    X(clGetKernelArgInfo)           \
    X(clCreateSubBuffer)            \
    X(clEnqueueBarrierWithWaitList) \
    X(clEnqueueMarkerWithWaitList)

struct opencl {
#define OPENCL_MEMBER(function) __typeof__(&function) function;
    OPENCL_FUNCTIONS(OPENCL_MEMBER)
#undef OPENCL_MEMBER
};

/* OpenCL's functions in this process; NULL until opencl_load. Listing devices loads them. */
extern struct opencl opencl_loader;

/*
 * Fills opencl_loader, once in a process. It uses the functions that the process already has, if an
 * application is linked with OpenCL or a library that wraps it is preloaded. Otherwise it loads the
 * library named by HEALCL_OPENCL_LIBRARY in the environment, or libOpenCL.so.1. The library is
 * never unloaded: drivers leave threads and exit handlers behind. Errors: HEALCL_DEVICE if the
 * library is missing or lacks a function. Then the next call tries again.
 */
enum healcl_status opencl_load(struct healcl_error *error);

/* Without memory for such a mutex it gets default attributes, which risk only a deadlock. */
void recursive_mutex_init(pthread_mutex_t *mutex);

/* Between these two calls only one thread of the process may list, open or close devices. The first
 * calls into a loader and its drivers initialise them. They crash if two threads do so at once
 * (ocl-icd with PoCL 3.1). A thread may nest these calls. */
void opening_begin(void);
void opening_end(void);

/* What drivers need and the system lacks: "; /proc is not mounted", or "". */
const char *opencl_missing(void);

/* "CL_OUT_OF_RESOURCES", or "unknown OpenCL error". */
const char *opencl_error_name(cl_int code);

/* Calls a function of a table that may not return. The command line reports which one it is. */
#define WAIT_CL(cl, function, ...) \
    (waiting_begin(#function), waiting_end((cl)->function(__VA_ARGS__)))

/* Sets the error of a failed call: "clEnqueueMapBuffer failed: CL_OUT_OF_RESOURCES (-5)". */
enum healcl_status opencl_error(struct healcl_error *error, cl_int code, const char *function,
                                const char *file, int line);

/* Fails with HEALCL_DEVICE if a cl_int is not CL_SUCCESS. */
#define TRY_CL(error, function, code)                                             \
    do {                                                                          \
        cl_int try_code_ = (code);                                                \
        if (try_code_ != CL_SUCCESS) {                                            \
            (void)opencl_error((error), try_code_, function, __FILE__, __LINE__); \
            return HEALCL_DEVICE;                                                 \
        }                                                                         \
    } while (0)

/* Fails as TRY_CL with a call of a table's function. */
#define TRY_CALL(error, cl, function, ...) \
    TRY_CL(error, #function, WAIT_CL(cl, function, __VA_ARGS__))

#endif
