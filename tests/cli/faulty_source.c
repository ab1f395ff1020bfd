/*
 * A compiler that gets one thing wrong: preloaded (LD_PRELOAD), it builds every program with the
 * environment's FAULTY_FROM replaced by FAULTY_TO. Where FAULTY_WARNINGS names a file, it builds
 * without -w, appends the build logs, and launches nothing. Where FAULTY_NO_COMPILER is set there
 * is no compiler: devices say so, and no program is made of a source. Where FAULTY_NO_ARGUMENTS is
 * set it does not report kernels' parameters. FAULTY_ALLOCATION is the most bytes of an allocation.
 */
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
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
    if (getenv("FAULTY_NO_ARGUMENTS"))
        return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
    return ask(kernel, index, what, size, value, needed);
}

typedef cl_int info_function(cl_device_id, cl_device_info, size_t, void *, size_t *);

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size, void *value,
                       size_t *needed)
{
    static info_function *get;
    if (!get)
        *(void **)&get = dlsym(RTLD_NEXT, "clGetDeviceInfo");
    const cl_int code = get(device, what, size, value, needed);
    if (code == CL_SUCCESS && what == CL_DEVICE_COMPILER_AVAILABLE && value &&
        getenv("FAULTY_NO_COMPILER"))
        *(cl_bool *)value = CL_FALSE;
    const char *most = getenv("FAULTY_ALLOCATION");
    if (code == CL_SUCCESS && what == CL_DEVICE_MAX_MEM_ALLOC_SIZE && value && most)
        *(cl_ulong *)value = strtoull(most, NULL, 10);
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
    char *changed = path && options ? replaced(options, " -w ", " ") : NULL;
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
