/* The program's own definitions come before the loader's; RTLD_NEXT are the loader's. */
#define _GNU_SOURCE
#include "opencl_calls.h"

#include <CL/cl.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct opencl_calls opencl_calls;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* The loader's function of that name, into a pointer to it. */
static void find(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    memcpy(function, &found, sizeof found);
}

cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    static cl_int (*next)(cl_kernel, cl_uint, size_t, const void *);
    if (!next)
        find("clSetKernelArg", &next);
    uint64_t start = now();
    cl_int code = next(kernel, index, size, value);
    opencl_calls.nanoseconds += now() - start;
    return code;
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint count, const cl_event *events, cl_event *event)
{
    static cl_int (*next)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                          const size_t *, cl_uint, const cl_event *, cl_event *);
    if (!next)
        find("clEnqueueNDRangeKernel", &next);
    uint64_t start = now();
    cl_int code = next(queue, kernel, dimensions, offset, global, local, count, events, event);
    opencl_calls.nanoseconds += now() - start;
    opencl_calls.launches++;
    return code;
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *code)
{
    static cl_mem (*next)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
    if (!next)
        find("clCreateBuffer", &next);
    opencl_calls.bytes += host ? size : 0;
    return next(context, flags, size, host, code);
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                            size_t size, const void *host, cl_uint count, const cl_event *events,
                            cl_event *event)
{
    static cl_int (*next)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *, cl_uint,
                          const cl_event *, cl_event *);
    if (!next)
        find("clEnqueueWriteBuffer", &next);
    opencl_calls.bytes += size;
    return next(queue, buffer, blocking, offset, size, host, count, events, event);
}

void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                         cl_map_flags flags, size_t offset, size_t size, cl_uint count,
                         const cl_event *events, cl_event *event, cl_int *code)
{
    static void *(*next)(cl_command_queue, cl_mem, cl_bool, cl_map_flags, size_t, size_t, cl_uint,
                         const cl_event *, cl_event *, cl_int *);
    if (!next)
        find("clEnqueueMapBuffer", &next);
    opencl_calls.bytes += flags & CL_MAP_READ ? 0 : size;
    return next(queue, buffer, blocking, flags, offset, size, count, events, event, code);
}
