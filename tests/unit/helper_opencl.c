#include "helper_opencl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct helper_opencl helper;

void helper_reset(void)
{
    memset(&helper, 0, sizeof helper);
    helper.fail_code = CL_INVALID_OPERATION;
}

bool helper_balanced(void)
{
    const struct {
        const char *name;
        long alive;
    } kinds[] = {
        {"contexts", helper.contexts}, {"queues", helper.queues},   {"programs", helper.programs},
        {"kernels", helper.kernels},   {"buffers", helper.buffers}, {"events", helper.events},
        {"maps", helper.maps},
    };
    bool balanced = true;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].alive == 0)
            continue;
        printf("%ld %s are alive\n", kinds[i].alive, kinds[i].name);
        balanced = false;
    }
    return balanced;
}

static bool fails(enum opencl_call call, const char *function)
{
    helper.count[call]++;
    helper.calls += !(helper.skips_polls && call == CALL_clGetEventInfo);
    if (helper.fail_at == 0 || helper.calls < helper.fail_at ||
        (helper.calls > helper.fail_at && !helper.fail_after))
        return false;
    if (!helper.failed)
        helper.failed = function;
    return true;
}

/* ---- the platform that tests run on ---- */

enum { PLATFORMS_MAX = 32, PLATFORM_NOT_FOUND = -1001 };

static bool has_device(cl_platform_id platform, cl_device_type type)
{
    cl_uint count = 0;
    return clGetDeviceIDs(platform, type, 0, NULL, &count) == CL_SUCCESS && count > 0;
}

/* The larger, the better; 0: not this one. */
static int platform_rank(cl_platform_id platform)
{
    const char *wanted = getenv("HEALCL_TEST_PLATFORM");
    char name[256] = "";
    if (clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL) != CL_SUCCESS ||
        !has_device(platform, CL_DEVICE_TYPE_ALL))
        return 0;
    if (wanted)
        return strstr(name, wanted) != NULL;
    if (strstr(name, "Portable Computing Language"))
        return 3;
    return has_device(platform, CL_DEVICE_TYPE_CPU) ? 2 : 1;
}

/* NULL: there is none. */
static cl_platform_id chosen_platform(void)
{
    static cl_platform_id best;
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_uint count = 0;
    if (best || clGetPlatformIDs(PLATFORMS_MAX, platforms, &count) != CL_SUCCESS)
        return best;
    int best_rank = 0;
    for (cl_uint i = 0; i < count && i < PLATFORMS_MAX; i++) {
        int rank = platform_rank(platforms[i]);
        if (rank <= best_rank)
            continue;
        best = platforms[i];
        best_rank = rank;
    }
    return best;
}

static cl_int CL_API_CALL one_platform(cl_uint entries, cl_platform_id *ids, cl_uint *count)
{
    cl_platform_id platform = chosen_platform();
    if (count)
        *count = platform != NULL;
    if (ids && entries > 0)
        *ids = platform;
    return platform ? CL_SUCCESS : PLATFORM_NOT_FOUND;
}

const struct opencl *helper_loader(void)
{
    static struct opencl loader;
    unsetenv("HEALCL_DEVICE");
    if (opencl_load(NULL) != HEALCL_OK)
        abort();
    loader = opencl_loader;
    loader.clGetPlatformIDs = one_platform;
    return &loader;
}

/* ---- functions that return a code; event is what they may give out, or NULL ---- */

#define CODE(function, parameters, arguments, event)       \
    static cl_int CL_API_CALL helper_##function parameters \
    {                                                      \
        if (fails(CALL_##function, #function))             \
            return helper.fail_code;                       \
        cl_int code = function arguments;                  \
        cl_event *given = (event);                         \
        if (code == CL_SUCCESS && given && *given)         \
            helper.events++;                               \
        return code;                                       \
    }

CODE(clGetPlatformInfo,
     (cl_platform_id id, cl_platform_info what, size_t size, void *value, size_t *needed),
     (id, what, size, value, needed), NULL)
CODE(clGetDeviceIDs,
     (cl_platform_id id, cl_device_type type, cl_uint entries, cl_device_id *ids, cl_uint *count),
     (id, type, entries, ids, count), NULL)
CODE(clGetDeviceInfo,
     (cl_device_id id, cl_device_info what, size_t size, void *value, size_t *needed),
     (id, what, size, value, needed), NULL)
CODE(clBuildProgram,
     (cl_program id, cl_uint count, const cl_device_id *devices, const char *options,
      void(CL_CALLBACK *notify)(cl_program, void *), void *data),
     (id, count, devices, options, notify, data), NULL)
CODE(clGetProgramInfo,
     (cl_program id, cl_program_info what, size_t size, void *value, size_t *needed),
     (id, what, size, value, needed), NULL)
CODE(clGetProgramBuildInfo,
     (cl_program id, cl_device_id device, cl_program_build_info what, size_t size, void *value,
      size_t *needed),
     (id, device, what, size, value, needed), NULL)
CODE(clGetMemObjectInfo, (cl_mem id, cl_mem_info what, size_t size, void *value, size_t *needed),
     (id, what, size, value, needed), NULL)
CODE(clGetKernelInfo, (cl_kernel id, cl_kernel_info what, size_t size, void *value, size_t *needed),
     (id, what, size, value, needed), NULL)
CODE(clGetKernelArgInfo,
     (cl_kernel id, cl_uint index, cl_kernel_arg_info what, size_t size, void *value,
      size_t *needed),
     (id, index, what, size, value, needed), NULL)
CODE(clSetKernelArg, (cl_kernel id, cl_uint index, size_t size, const void *value),
     (id, index, size, value), NULL)
CODE(clEnqueueNDRangeKernel,
     (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
      const size_t *global, const size_t *local, cl_uint count, const cl_event *list,
      cl_event *event),
     (queue, kernel, dimensions, offset, global, local, count, list, event), event)
CODE(clEnqueueReadBuffer,
     (cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t size,
      void *data, cl_uint count, const cl_event *list, cl_event *event),
     (queue, memory, blocking, offset, size, data, count, list, event), event)
CODE(clEnqueueWriteBuffer,
     (cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t size,
      const void *data, cl_uint count, const cl_event *list, cl_event *event),
     (queue, memory, blocking, offset, size, data, count, list, event), event)
CODE(clEnqueueCopyBuffer,
     (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
      size_t size, cl_uint count, const cl_event *list, cl_event *event),
     (queue, from, to, from_offset, to_offset, size, count, list, event), event)
CODE(clEnqueueBarrierWithWaitList,
     (cl_command_queue queue, cl_uint count, const cl_event *list, cl_event *event),
     (queue, count, list, event), event)
CODE(clEnqueueMarkerWithWaitList,
     (cl_command_queue queue, cl_uint count, const cl_event *list, cl_event *event),
     (queue, count, list, event), event)
CODE(clFlush, (cl_command_queue queue), (queue), NULL)
CODE(clWaitForEvents, (cl_uint count, const cl_event *list), (count, list), NULL)
CODE(clGetCommandQueueInfo,
     (cl_command_queue queue, cl_command_queue_info what, size_t size, void *value, size_t *needed),
     (queue, what, size, value, needed), NULL)
CODE(clGetEventInfo, (cl_event id, cl_event_info what, size_t size, void *value, size_t *needed),
     (id, what, size, value, needed), NULL)
CODE(clGetEventProfilingInfo,
     (cl_event id, cl_profiling_info what, size_t size, void *value, size_t *needed),
     (id, what, size, value, needed), NULL)

/* A device that is lost runs nothing any more: here, enqueued work ends before that is reported. */
static cl_int CL_API_CALL helper_clFinish(cl_command_queue queue)
{
    cl_int code = clFinish(queue);
    return fails(CALL_clFinish, "clFinish") ? helper.fail_code : code;
}

static cl_int CL_API_CALL helper_clGetPlatformIDs(cl_uint entries, cl_platform_id *ids,
                                                  cl_uint *count)
{
    return fails(CALL_clGetPlatformIDs, "clGetPlatformIDs") ? helper.fail_code
                                                            : one_platform(entries, ids, count);
}

static cl_int CL_API_CALL helper_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory,
                                                         void *address, cl_uint count,
                                                         const cl_event *list, cl_event *event)
{
    helper.maps--; /* the caller has done what it can */
    if (fails(CALL_clEnqueueUnmapMemObject, "clEnqueueUnmapMemObject")) {
        (void)clEnqueueUnmapMemObject(queue, memory, address, count, list, NULL);
        return helper.fail_code;
    }
    cl_int code = clEnqueueUnmapMemObject(queue, memory, address, count, list, event);
    if (code == CL_SUCCESS && event && *event)
        helper.events++;
    return code;
}

static cl_int CL_API_CALL helper_clRetainEvent(cl_event event)
{
    if (fails(CALL_clRetainEvent, "clRetainEvent"))
        return helper.fail_code;
    helper.events++;
    return clRetainEvent(event);
}

static cl_int CL_API_CALL helper_clRetainProgram(cl_program program)
{
    if (fails(CALL_clRetainProgram, "clRetainProgram"))
        return helper.fail_code;
    helper.programs++;
    return clRetainProgram(program);
}

static cl_int CL_API_CALL helper_clRetainMemObject(cl_mem memory)
{
    if (fails(CALL_clRetainMemObject, "clRetainMemObject"))
        return helper.fail_code;
    helper.buffers++;
    return clRetainMemObject(memory);
}

static cl_int CL_API_CALL helper_clRetainContext(cl_context context)
{
    if (fails(CALL_clRetainContext, "clRetainContext"))
        return helper.fail_code;
    helper.contexts++;
    return clRetainContext(context);
}

static cl_int CL_API_CALL helper_clRetainCommandQueue(cl_command_queue queue)
{
    if (fails(CALL_clRetainCommandQueue, "clRetainCommandQueue"))
        return helper.fail_code;
    helper.queues++;
    return clRetainCommandQueue(queue);
}

/* ---- functions that return an object ---- */

#define OBJECT(function, type, alive, parameters, arguments) \
    static type CL_API_CALL helper_##function parameters     \
    {                                                        \
        if (fails(CALL_##function, #function)) {             \
            *code = helper.fail_code;                        \
            return NULL;                                     \
        }                                                    \
        type object = function arguments;                    \
        if (object)                                          \
            helper.alive++;                                  \
        return object;                                       \
    }

OBJECT(clCreateContext, cl_context, contexts,
       (const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
        void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
        cl_int *code),
       (properties, count, devices, notify, data, code))
OBJECT(clCreateCommandQueue, cl_command_queue, queues,
       (cl_context context, cl_device_id device, cl_command_queue_properties properties,
        cl_int *code),
       (context, device, properties, code))
OBJECT(clCreateProgramWithSource, cl_program, programs,
       (cl_context context, cl_uint count, const char **texts, const size_t *lengths, cl_int *code),
       (context, count, texts, lengths, code))
OBJECT(clCreateProgramWithBinary, cl_program, programs,
       (cl_context context, cl_uint count, const cl_device_id *devices, const size_t *lengths,
        const unsigned char **binaries, cl_int *codes, cl_int *code),
       (context, count, devices, lengths, binaries, codes, code))
OBJECT(clCreateKernel, cl_kernel, kernels, (cl_program program, const char *name, cl_int *code),
       (program, name, code))
OBJECT(clCreateBuffer, cl_mem, buffers,
       (cl_context context, cl_mem_flags flags, size_t size, void *data, cl_int *code),
       (context, flags, size, data, code))

OBJECT(clCreateSubBuffer, cl_mem, buffers,
       (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info,
        cl_int *code),
       (buffer, flags, type, info, code))

static void *CL_API_CALL helper_clEnqueueMapBuffer(cl_command_queue queue, cl_mem memory,
                                                   cl_bool blocking, cl_map_flags flags,
                                                   size_t offset, size_t size, cl_uint count,
                                                   const cl_event *list, cl_event *event,
                                                   cl_int *code)
{
    if (fails(CALL_clEnqueueMapBuffer, "clEnqueueMapBuffer")) {
        *code = helper.fail_code;
        return NULL;
    }
    void *address =
        clEnqueueMapBuffer(queue, memory, blocking, flags, offset, size, count, list, event, code);
    if (address)
        helper.maps++;
    if (address && event)
        helper.events++;
    return address;
}

/* ---- functions that release one: they never fail here ---- */

#define RELEASE(function, type, alive)                       \
    static cl_int CL_API_CALL helper_##function(type object) \
    {                                                        \
        helper.count[CALL_##function]++;                     \
        helper.alive--;                                      \
        return function(object);                             \
    }

RELEASE(clReleaseContext, cl_context, contexts)
RELEASE(clReleaseCommandQueue, cl_command_queue, queues)
RELEASE(clReleaseProgram, cl_program, programs)
RELEASE(clReleaseKernel, cl_kernel, kernels)
RELEASE(clReleaseMemObject, cl_mem, buffers)
RELEASE(clReleaseEvent, cl_event, events)

const struct opencl helper_opencl = {
#define HELPER_ENTRY(function) .function = helper_##function,
    OPENCL_FUNCTIONS(HELPER_ENTRY)
#undef HELPER_ENTRY
};

/* 0 for QUEUED, 1 for SUBMIT and so on, always. */
static cl_int CL_API_CALL no_times(cl_event event, cl_profiling_info what, size_t size, void *value,
                                   size_t *needed)
{
    cl_int code = helper_opencl.clGetEventProfilingInfo(event, what, size, value, needed);
    const cl_ulong time = what - CL_PROFILING_COMMAND_QUEUED;
    memcpy(value, &time, size);
    return code;
}

struct opencl helper_opencl_without_times(void)
{
    struct opencl cl = helper_opencl;
    cl.clGetEventProfilingInfo = no_times;
    return cl;
}

static cl_int CL_API_CALL no_barrier_times(cl_event event, cl_profiling_info what, size_t size,
                                           void *value, size_t *needed)
{
    cl_command_type type = 0;
    cl_int code = clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL);
    if (code == CL_SUCCESS && (type == CL_COMMAND_BARRIER || type == CL_COMMAND_MARKER))
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    return helper_opencl.clGetEventProfilingInfo(event, what, size, value, needed);
}

struct opencl helper_opencl_without_barrier_times(void)
{
    struct opencl cl = helper_opencl;
    cl.clGetEventProfilingInfo = no_barrier_times;
    return cl;
}
