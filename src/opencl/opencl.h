/*
 * The one seam to OpenCL: every call goes through a table of functions, so that tests can inject
 * faults and tools can trace without touching callers.
 */
#ifndef HEALCL_OPENCL_OPENCL_H
#define HEALCL_OPENCL_OPENCL_H

#include <CL/cl.h>

#include "core/status.h"

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
    X(clGetKernelArgInfo)           \
    X(clSetKernelArg)               \
    X(clCreateBuffer)               \
    X(clCreateSubBuffer)            \
    X(clRetainMemObject)            \
    X(clReleaseMemObject)           \
    X(clGetMemObjectInfo)           \
    X(clEnqueueNDRangeKernel)       \
    X(clEnqueueReadBuffer)          \
    X(clEnqueueWriteBuffer)         \
    X(clEnqueueCopyBuffer)          \
    X(clEnqueueMapBuffer)           \
    X(clEnqueueUnmapMemObject)      \
    X(clEnqueueBarrierWithWaitList) \
    X(clEnqueueMarkerWithWaitList)  \
    X(clFlush)                      \
    X(clFinish)                     \
    X(clWaitForEvents)              \
    X(clGetEventInfo)               \
    X(clGetEventProfilingInfo)      \
    X(clRetainEvent)                \
    X(clReleaseEvent)

struct opencl {
#define OPENCL_MEMBER(function) __typeof__(&function) function;
    OPENCL_FUNCTIONS(OPENCL_MEMBER)
#undef OPENCL_MEMBER
};

/* OpenCL's functions in this process; NULL until opencl_load. Listing devices loads them. */
extern struct opencl opencl_loader;

/*
 * Fills opencl_loader, once in a process. The functions are those that the process has already: an
 * application is linked with OpenCL, or a library in front of it is preloaded. Else they are those
 * of the library that the environment's HEALCL_OPENCL_LIBRARY names, else of libOpenCL.so.1. It is
 * never unloaded: drivers leave threads and exit handlers behind. Errors: HEALCL_DEVICE where there
 * is none, or it lacks a function; then the next call tries again.
 */
enum healcl_status opencl_load(struct healcl_error *error);

/* Between these two only one thread of the process finds, opens or closes devices: the first calls
 * into a loader and its drivers (ocl-icd with PoCL 3.1) initialise them, and crash where two
 * threads make them at once. A thread may be inside several times. */
void opening_begin(void);
void opening_end(void);

/* Something that drivers want of the system and is not there: "; /proc is not mounted", or "". */
const char *opencl_missing(void);

/* "CL_OUT_OF_RESOURCES", or "unknown OpenCL error". */
const char *opencl_error_name(cl_int code);

/* Makes an error of a failed call: "clEnqueueMapBuffer failed: CL_OUT_OF_RESOURCES (-5)". */
enum healcl_status opencl_error(struct healcl_error *error, cl_int code, const char *function,
                                const char *file, int line);

/* Fails with HEALCL_DEVICE where a cl_int is not CL_SUCCESS. */
#define TRY_CL(error, function, code)                                             \
    do {                                                                          \
        cl_int try_code_ = (code);                                                \
        if (try_code_ != CL_SUCCESS) {                                            \
            (void)opencl_error((error), try_code_, function, __FILE__, __LINE__); \
            return HEALCL_DEVICE;                                                 \
        }                                                                         \
    } while (0)

#endif
