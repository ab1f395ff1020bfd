/*
 * A compiler that gets one thing wrong: preloaded (LD_PRELOAD), it builds every program with the
 * environment's FAULTY_FROM replaced by FAULTY_TO. Where FAULTY_WARNINGS names a file, it builds
 * without -w, appends the build logs, and launches nothing. Where FAULTY_NO_COMPILER is set there
 * is no compiler: devices say so, and no program is made of a source. Where FAULTY_NO_ARGUMENTS is
 * set it does not report kernels' parameters. FAULTY_ALLOCATION is the most bytes of an allocation.
 * Where FAULTY_BOARD is set, devices are what a board with an FPGA says: OpenCL 1.0, the embedded
 * profile without 64-bit integers, its least bytes of arguments, and no function of a later
 * version.
 */
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef cl_program create_function(cl_context, cl_uint, const char **, const size_t *, cl_int *);

/* The text with each `from` replaced, in new memory; NULL where there is none. A program has a file
 * as often as it is included. */
static char *replaced(const char *text, const char *from, const char *to)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, from)); at += strlen(from))
        count++;
    char *changed = count ? malloc(strlen(text) + count * strlen(to) + 1) : NULL, *end = changed;
    for (const char *at; end; text = at + strlen(from)) {
        at = strstr(text, from);
        const size_t before = at ? (size_t)(at - text) : strlen(text) + 1;
        memcpy(end, text, before);
        if (!at)
            break;
        strcpy(end + before, to);
        end += before + strlen(to);
    }
    return changed;
}

enum { TEXTS_MAX = 16 };

cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **texts,
                                     const size_t *lengths, cl_int *code)
{
    static create_function *create;
    const char *from = getenv("FAULTY_FROM"), *to = getenv("FAULTY_TO");
    const char *changed[TEXTS_MAX];
    char *owned[TEXTS_MAX] = {NULL};
    if (!create)
        *(void **)&create = dlsym(RTLD_NEXT, "clCreateProgramWithSource");
    if (getenv("FAULTY_NO_COMPILER")) {
        if (code)
            *code = CL_COMPILER_NOT_AVAILABLE;
        return NULL;
    }
    if (!from || !to || lengths || count > TEXTS_MAX)
        return create(context, count, texts, lengths, code);
    for (cl_uint i = 0; i < count; i++) {
        owned[i] = replaced(texts[i], from, to);
        changed[i] = owned[i] ? owned[i] : texts[i];
    }
    cl_program program = create(context, count, changed, NULL, code);
    for (cl_uint i = 0; i < count; i++)
        free(owned[i]);
    return program;
}

typedef cl_int argument_function(cl_kernel, cl_uint, cl_kernel_arg_info, size_t, void *, size_t *);

cl_int clGetKernelArgInfo(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what, size_t size,
                          void *value, size_t *needed)
{
    static argument_function *ask;
    if (!ask)
        *(void **)&ask = dlsym(RTLD_NEXT, "clGetKernelArgInfo");
    if (getenv("FAULTY_NO_ARGUMENTS") || getenv("FAULTY_BOARD"))
        return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
    return ask(kernel, index, what, size, value, needed);
}

/* ---------------------------------------------------------------- a board */

enum { BOARD_ARGUMENT_BYTES = 256, BOARD_ARGUMENTS_MAX = 32 };

/* Whether OpenCL 1.0 does not have that query. */
static bool is_newer(cl_device_info what)
{
    return what == CL_DEVICE_OPENCL_C_VERSION || what == CL_DEVICE_HOST_UNIFIED_MEMORY ||
           what == CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE;
}

/* Changes an answer to what the board says. */
static void board_info(cl_device_info what, size_t size, void *value)
{
    const char *text = what == CL_DEVICE_VERSION      ? "OpenCL 1.0 "
                       : what == CL_DEVICE_PROFILE    ? "EMBEDDED_PROFILE"
                       : what == CL_DEVICE_EXTENSIONS ? "cl_khr_icd"
                                                      : NULL;
    if (text)
        snprintf(value, size, "%s", text);
    if (what == CL_DEVICE_MAX_PARAMETER_SIZE)
        *(size_t *)value = BOARD_ARGUMENT_BYTES;
    if (what == CL_DEVICE_TYPE)
        *(cl_device_type *)value = CL_DEVICE_TYPE_ACCELERATOR;
    if (what == CL_DEVICE_QUEUE_PROPERTIES)
        *(cl_command_queue_properties *)value = 0;
}

typedef cl_command_queue queue_function(cl_context, cl_device_id, cl_command_queue_properties,
                                        cl_int *);

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties properties, cl_int *code)
{
    static queue_function *create;
    if (!create)
        *(void **)&create = dlsym(RTLD_NEXT, "clCreateCommandQueue");
    if (!getenv("FAULTY_BOARD") || properties == 0)
        return create(context, device, properties, code);
    *code = CL_INVALID_QUEUE_PROPERTIES;
    return NULL;
}

typedef cl_int set_function(cl_kernel, cl_uint, size_t, const void *);

/* Arguments are set in order. */
cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    static set_function *set;
    static size_t bytes[BOARD_ARGUMENTS_MAX];
    size_t all = 0;
    if (!set)
        *(void **)&set = dlsym(RTLD_NEXT, "clSetKernelArg");
    if (index < BOARD_ARGUMENTS_MAX)
        bytes[index] = (size + 7) / 8 * 8;
    for (cl_uint i = 0; i <= index && i < BOARD_ARGUMENTS_MAX; i++)
        all += bytes[i];
    return getenv("FAULTY_BOARD") && all > BOARD_ARGUMENT_BYTES ? CL_OUT_OF_RESOURCES
                                                                : set(kernel, index, size, value);
}

typedef cl_mem sub_buffer_function(cl_mem, cl_mem_flags, cl_buffer_create_type, const void *,
                                   cl_int *);

cl_mem clCreateSubBuffer(cl_mem memory, cl_mem_flags flags, cl_buffer_create_type type,
                         const void *about, cl_int *code)
{
    static sub_buffer_function *create;
    if (!create)
        *(void **)&create = dlsym(RTLD_NEXT, "clCreateSubBuffer");
    if (!getenv("FAULTY_BOARD"))
        return create(memory, flags, type, about, code);
    *code = CL_INVALID_OPERATION;
    return NULL;
}

typedef cl_int wait_function(cl_command_queue, cl_uint, const cl_event *, cl_event *);

cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint count, const cl_event *events,
                                    cl_event *event)
{
    static wait_function *enqueue;
    if (!enqueue)
        *(void **)&enqueue = dlsym(RTLD_NEXT, "clEnqueueBarrierWithWaitList");
    return getenv("FAULTY_BOARD") ? CL_INVALID_OPERATION : enqueue(queue, count, events, event);
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint count, const cl_event *events,
                                   cl_event *event)
{
    static wait_function *enqueue;
    if (!enqueue)
        *(void **)&enqueue = dlsym(RTLD_NEXT, "clEnqueueMarkerWithWaitList");
    return getenv("FAULTY_BOARD") ? CL_INVALID_OPERATION : enqueue(queue, count, events, event);
}

/* ---------------------------------------------------------------- devices and builds */

typedef cl_mem buffer_function(cl_context, cl_mem_flags, size_t, void *, cl_int *);

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *data, cl_int *code)
{
    static buffer_function *create;
    const char *most = getenv("FAULTY_ALLOCATION");
    if (!create)
        *(void **)&create = dlsym(RTLD_NEXT, "clCreateBuffer");
    if (!most || size <= strtoull(most, NULL, 10))
        return create(context, flags, size, data, code);
    *code = CL_INVALID_BUFFER_SIZE;
    return NULL;
}

typedef cl_int info_function(cl_device_id, cl_device_info, size_t, void *, size_t *);

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size, void *value,
                       size_t *needed)
{
    static info_function *get;
    if (!get)
        *(void **)&get = dlsym(RTLD_NEXT, "clGetDeviceInfo");
    if (getenv("FAULTY_BOARD") && is_newer(what))
        return CL_INVALID_VALUE;
    const cl_int code = get(device, what, size, value, needed);
    if (code == CL_SUCCESS && what == CL_DEVICE_COMPILER_AVAILABLE && value &&
        getenv("FAULTY_NO_COMPILER"))
        *(cl_bool *)value = CL_FALSE;
    const char *most = getenv("FAULTY_ALLOCATION");
    if (code == CL_SUCCESS && what == CL_DEVICE_MAX_MEM_ALLOC_SIZE && value && most)
        *(cl_ulong *)value = strtoull(most, NULL, 10);
    if (code == CL_SUCCESS && value && getenv("FAULTY_BOARD"))
        board_info(what, size, value);
    return code;
}

typedef cl_int build_function(cl_program, cl_uint, const cl_device_id *, const char *,
                              void(CL_CALLBACK *)(cl_program, void *), void *);

static void append_log(const char *path, cl_program program, cl_device_id device)
{
    static char log[1 << 20];
    FILE *file = fopen(path, "a");
    if (file && clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log,
                                      NULL) == CL_SUCCESS)
        fputs(log, file);
    if (file)
        fclose(file);
}

cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                      const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                      void *data)
{
    static build_function *build;
    const char *path = getenv("FAULTY_WARNINGS");
    if (!build)
        *(void **)&build = dlsym(RTLD_NEXT, "clBuildProgram");
    char *changed = path && options ? replaced(options, "-w ", " ") : NULL;
    if (getenv("FAULTY_BOARD") && options && strstr(options, "-cl-std=CL1.2"))
        return CL_INVALID_BUILD_OPTIONS;
    cl_int code = build(program, count, devices, changed ? changed : options, notify, data);
    free(changed);
    if (path && count == 1)
        append_log(path, program, devices[0]);
    return code;
}

typedef cl_int launch_function(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                               const size_t *, cl_uint, const cl_event *, cl_event *);

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint wait_count, const cl_event *wait, cl_event *event)
{
    static launch_function *launch;
    if (!launch)
        *(void **)&launch = dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
    return getenv("FAULTY_WARNINGS")
               ? clEnqueueBarrierWithWaitList(queue, wait_count, wait, event)
               : launch(queue, kernel, dimensions, offset, global, local, wait_count, wait, event);
}
