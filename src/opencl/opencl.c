#include "opencl/opencl.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- opening */

static pthread_mutex_t lock; /* recursive: opening a device also lists devices */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Initialises a mutex that its owner may lock again. Failures are ignored: the mutex then has
 * default attributes, which risk only a deadlock. */
void recursive_mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static void make_lock(void)
{
    recursive_mutex_init(&lock);
}

/* Waits until the other threads have listed, opened or closed devices. Loaders and drivers crash if
 * two threads initialise them at once. */
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

static const struct {
    const char *name;
    size_t offset; /* in struct opencl */
} functions[] = {
#define OPENCL_ROW(function) {#function, offsetof(struct opencl, function)},
    OPENCL_FUNCTIONS(OPENCL_ROW)
#undef OPENCL_ROW
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* Finds the library with OpenCL's functions. The process may have them already: an application is
 * linked with OpenCL, or a wrapper is preloaded. Otherwise loads HEALCL_OPENCL_LIBRARY, or the
 * system's loader. */
static enum healcl_status open_library(void **handle, struct healcl_error *error)
{
    *handle = RTLD_DEFAULT; /* all that the process has loaded */
    if (dlsym(RTLD_DEFAULT, functions[0].name))
        return HEALCL_OK;
    const char *named = getenv("HEALCL_OPENCL_LIBRARY");
    if (named && !*named)
        named = NULL;
    *handle = dlopen(named ? named : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!*handle)
        FAIL(error, HEALCL_DEVICE,
             "OpenCL cannot be loaded: %.300s%s; package ocl-icd-libopencl1 has libOpenCL.so.1",
             dlerror(), named ? " (from HEALCL_OPENCL_LIBRARY)" : "");
    return HEALCL_OK;
}

/* Fills the table opencl_loader, once in a process. The last OPENCL_LATER_FUNCTIONS functions may
 * be missing in a library of OpenCL 1.0: they stay NULL. opening_begin must have been called. */
static enum healcl_status opencl_load_library(struct healcl_error *error)
{
    static bool loaded;
    void *handle;
    if (loaded)
        return HEALCL_OK;
    TRY(open_library(&handle, error));
    for (size_t i = 0; i < FUNCTIONS; i++) {
        void *function = dlsym(handle, functions[i].name);
        if (!function && i < FUNCTIONS - OPENCL_LATER_FUNCTIONS)
            FAIL(error, HEALCL_DEVICE, "the OpenCL library lacks %s, which healcl needs",
                 functions[i].name);
        memcpy((char *)&opencl_loader + functions[i].offset, &function, sizeof function);
    }
    loaded = true;
    return HEALCL_OK;
}

/* Loads OpenCL unless it is loaded already. Any thread may call it. */
enum healcl_status opencl_load(struct healcl_error *error)
{
    opening_begin();
    enum healcl_status status = opencl_load_library(error);
    opening_end();
    return status;
}

/* ---------------------------------------------------------------- errors */

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

/* What drivers need and the system lacks, for messages: "; /proc is not mounted". Containers may
 * lack it, and drivers then find no device. "" if nothing is missing. */
const char *opencl_missing(void)
{
    if (access("/proc/self", F_OK) != 0)
        return "; /proc is not mounted";
    return access("/sys/devices", F_OK) != 0 ? "; /sys is not mounted" : "";
}

/* The name of OpenCL's code, such as "CL_OUT_OF_RESOURCES". */
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

/* Sets the error of a failed call, with the name of OpenCL's code. Always returns HEALCL_DEVICE.
 * error may be NULL. */
enum healcl_status opencl_error(struct healcl_error *error, cl_int code, const char *function,
                                const char *file, int line)
{
    (void)error_set(error, HEALCL_DEVICE, HEALCL_CAUSE_DEVICE, file, line, "%s failed: %s (%d)",
                    function, opencl_error_name(code), code);
    if (error)
        error->opencl_code = code;
    return HEALCL_DEVICE;
}
