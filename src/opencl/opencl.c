#include "opencl/opencl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/registry.h"

/* ---------------------------------------------------------------- opening */

static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The lock is recursive: opening a device also lists devices. If a recursive lock cannot be made,
 * memory is too short even for one mutex. Default attributes then risk only a deadlock. */
static void make_lock(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void opening_begin(void)
{
    (void)pthread_once(&once, make_lock);
    (void)pthread_mutex_lock(&lock);
}

void opening_end(void)
{
    (void)pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- loading */

struct opencl opencl_loader;

/* Replacements for functions added after OpenCL 1.0, in case a library lacks them. Callers then do
 * without. Parameters have OpenCL's types. */
static cl_int CL_API_CALL lacks_enqueue(cl_command_queue queue, cl_uint count,
                                        const cl_event *events, cl_event *event)
{
    (void)queue, (void)count, (void)events, (void)event;
    return CL_INVALID_OPERATION;
}

static cl_int CL_API_CALL lacks_arguments(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what,
                                          size_t size, void *value, size_t *needed) /* NOLINT */
{
    (void)kernel, (void)index, (void)what, (void)size, (void)value, (void)needed;
    return CL_INVALID_OPERATION;
}

static cl_mem CL_API_CALL lacks_sub_buffers(cl_mem memory, cl_mem_flags flags,
                                            cl_buffer_create_type type, const void *about,
                                            cl_int *code)
{
    (void)memory, (void)flags, (void)type, (void)about;
    *code = CL_INVALID_OPERATION;
    return NULL;
}

static const struct opencl substitutes = {.clEnqueueBarrierWithWaitList = lacks_enqueue,
                                          .clEnqueueMarkerWithWaitList = lacks_enqueue,
                                          .clGetKernelArgInfo = lacks_arguments,
                                          .clCreateSubBuffer = lacks_sub_buffers};

static const struct {
    const char *name;
    size_t offset; /* in struct opencl */
} functions[] = {
#define OPENCL_ROW(function) {#function, offsetof(struct opencl, function)},
    OPENCL_FUNCTIONS(OPENCL_ROW)
#undef OPENCL_ROW
};

/* Calls that may hang in drivers: the command line reports which one has not returned. */
static struct opencl library;

#define WATCHED(X)                                                                             \
    X(cl_int, clGetPlatformIDs, (cl_uint a, cl_platform_id * b, cl_uint * c), (a, b, c))       \
    X(cl_int, clGetDeviceIDs,                                                                  \
      (cl_platform_id a, cl_device_type b, cl_uint c, cl_device_id * d, cl_uint * e),          \
      (a, b, c, d, e))                                                                         \
    X(cl_context, clCreateContext,                                                             \
      (const cl_context_properties *a, cl_uint b, const cl_device_id *c,                       \
       void(CL_CALLBACK * d)(const char *, const void *, size_t, void *), void *e, cl_int *f), \
      (a, b, c, d, e, f))                                                                      \
    X(cl_int, clBuildProgram,                                                                  \
      (cl_program a, cl_uint b, const cl_device_id *c, const char *d,                          \
       void(CL_CALLBACK * e)(cl_program, void *), void *f),                                    \
      (a, b, c, d, e, f))                                                                      \
    X(cl_int, clFinish, (cl_command_queue a), (a))                                             \
    X(cl_int, clWaitForEvents, (cl_uint a, const cl_event *b), (a, b))

#define WATCH(type, function, parameters, arguments)      \
    static type CL_API_CALL watched_##function parameters \
    {                                                     \
        waiting_begin(#function);                         \
        type result = library.function arguments;         \
        waiting_end();                                    \
        return result;                                    \
    }
WATCHED(WATCH)

static enum healcl_status open_library(void **handle, struct healcl_error *error)
{
    *handle = RTLD_DEFAULT;
    if (dlsym(RTLD_DEFAULT, functions[0].name))
        return HEALCL_OK;
    const char *named = getenv("HEALCL_OPENCL_LIBRARY");
    if (named && !*named)
        named = NULL;
    *handle = dlopen(named ? named : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!*handle)
        FAIL(error, HEALCL_DEVICE,
             "OpenCL cannot be loaded: %.300s%s; package ocl-icd-libopencl1 brings libOpenCL.so.1",
             dlerror(), named ? " (from HEALCL_OPENCL_LIBRARY)" : "");
    return HEALCL_OK;
}

static enum healcl_status load(struct healcl_error *error)
{
    static bool loaded;
    void *handle;
    if (loaded)
        return HEALCL_OK;
    TRY(open_library(&handle, error));
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(handle, functions[i].name);
        if (!function)
            memcpy(&function, (const char *)&substitutes + functions[i].offset, sizeof function);
        if (!function)
            FAIL(error, HEALCL_DEVICE, "the OpenCL library has no %s, which healcl needs",
                 functions[i].name);
        memcpy((char *)&library + functions[i].offset, &function, sizeof function);
    }
    opencl_loader = library;
#define USE_WATCHED(type, function, parameters, arguments) \
    opencl_loader.function = watched_##function;
    WATCHED(USE_WATCHED)
    loaded = true;
    return HEALCL_OK;
}

enum healcl_status opencl_load(struct healcl_error *error)
{
    opening_begin();
    enum healcl_status status = load(error);
    opening_end();
    return status;
}

/* ---------------------------------------------------------------- errors */

/* Missing in headers of OpenCL 1.2, but returned by a loader that finds no platform. */
#ifndef CL_PLATFORM_NOT_FOUND_KHR
#define CL_PLATFORM_NOT_FOUND_KHR (-1001)
#endif

/* Without the codes of images, other libraries and separate linking. */
#define OPENCL_CODES(X)                             \
    X(CL_SUCCESS)                                   \
    X(CL_DEVICE_NOT_FOUND)                          \
    X(CL_DEVICE_NOT_AVAILABLE)                      \
    X(CL_COMPILER_NOT_AVAILABLE)                    \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE)             \
    X(CL_OUT_OF_RESOURCES)                          \
    X(CL_OUT_OF_HOST_MEMORY)                        \
    X(CL_PROFILING_INFO_NOT_AVAILABLE)              \
    X(CL_MEM_COPY_OVERLAP)                          \
    X(CL_BUILD_PROGRAM_FAILURE)                     \
    X(CL_MAP_FAILURE)                               \
    X(CL_MISALIGNED_SUB_BUFFER_OFFSET)              \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) \
    X(CL_KERNEL_ARG_INFO_NOT_AVAILABLE)             \
    X(CL_INVALID_VALUE)                             \
    X(CL_INVALID_DEVICE_TYPE)                       \
    X(CL_INVALID_PLATFORM)                          \
    X(CL_INVALID_DEVICE)                            \
    X(CL_INVALID_CONTEXT)                           \
    X(CL_INVALID_QUEUE_PROPERTIES)                  \
    X(CL_INVALID_COMMAND_QUEUE)                     \
    X(CL_INVALID_HOST_PTR)                          \
    X(CL_INVALID_MEM_OBJECT)                        \
    X(CL_INVALID_BINARY)                            \
    X(CL_INVALID_BUILD_OPTIONS)                     \
    X(CL_INVALID_PROGRAM)                           \
    X(CL_INVALID_PROGRAM_EXECUTABLE)                \
    X(CL_INVALID_KERNEL_NAME)                       \
    X(CL_INVALID_KERNEL_DEFINITION)                 \
    X(CL_INVALID_KERNEL)                            \
    X(CL_INVALID_ARG_INDEX)                         \
    X(CL_INVALID_ARG_VALUE)                         \
    X(CL_INVALID_ARG_SIZE)                          \
    X(CL_INVALID_KERNEL_ARGS)                       \
    X(CL_INVALID_WORK_DIMENSION)                    \
    X(CL_INVALID_WORK_GROUP_SIZE)                   \
    X(CL_INVALID_WORK_ITEM_SIZE)                    \
    X(CL_INVALID_GLOBAL_OFFSET)                     \
    X(CL_INVALID_EVENT_WAIT_LIST)                   \
    X(CL_INVALID_EVENT)                             \
    X(CL_INVALID_OPERATION)                         \
    X(CL_INVALID_BUFFER_SIZE)                       \
    X(CL_INVALID_GLOBAL_WORK_SIZE)                  \
    X(CL_INVALID_PROPERTY)                          \
    X(CL_PLATFORM_NOT_FOUND_KHR)

const char *opencl_missing(void)
{
    if (access("/proc/self", F_OK) != 0)
        return "; /proc is not mounted";
    return access("/sys/devices", F_OK) != 0 ? "; /sys is not mounted" : "";
}

const char *opencl_error_name(cl_int code)
{
    switch (code) {
#define OPENCL_CASE(name) \
    case name: return #name;
        OPENCL_CODES(OPENCL_CASE)
#undef OPENCL_CASE
    default: return "unknown OpenCL error";
    }
}

enum healcl_status opencl_error(struct healcl_error *error, cl_int code, const char *function,
                                const char *file, int line)
{
    (void)error_set(error, HEALCL_DEVICE, HEALCL_CAUSE_DEVICE, file, line, "%s failed: %s (%d)",
                    function, opencl_error_name(code), code);
    if (error)
        error->opencl_code = code;
    return HEALCL_DEVICE;
}
