/*
 * A driver that fails: preloaded (LD_PRELOAD), it stands between healcl and OpenCL.
 *
 * On devices whose name contains the environment's FAULTY_DEVICE every kernel launch does what
 * FAULTY_HOW says (any launch, where FAULTY_DEVICE is ""):
 *   crash    writes to NULL        exit     ends the process with code 42, as some drivers do
 *   hang     never comes back      wrong    launches nothing, and says that it did
 *   abort    prints a line and aborts
 *   claim    writes the JSON of a run that is verified, but compared nothing, and exits with 0
 *   exit 0, exit 1, ...
 * FAULTY_WHERE has it done elsewhere, whatever the device: "list", while platforms are listed;
 * "build"; "exit", when the process ends, in each that has listed platforms.
 * With FAULTY_HOW=mute there is a further platform, the last one, which fails to list its devices.
 * With FAULTY_HOW=timeless their events have times that do not advance, as rusticl's; with talk the
 * driver greets on standard output.
 * Programs get a path in the place of their name, as from binfmt_misc, which starts emulators.
 */
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int execv(const char *path, char *const *arguments)
{
    char *named[64] = {"/usr/bin/healcl"};
    for (size_t i = 1; i + 1 < sizeof named / sizeof *named && arguments[i]; i++)
        named[i] = arguments[i];
    return execve(path, named, environ);
}

typedef cl_int launch_function(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                               const size_t *, cl_uint, const cl_event *, cl_event *);

static int is_faulty(cl_command_queue queue)
{
    const char *wanted = getenv("FAULTY_DEVICE");
    cl_device_id device;
    char name[256] = "";
    if (!wanted ||
        clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL) != CL_SUCCESS ||
        clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name - 1, name, NULL) != CL_SUCCESS)
        return 0;
    return strstr(name, wanted) != NULL;
}

typedef cl_int time_function(cl_event, cl_profiling_info, size_t, void *, size_t *);

cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t size, void *value,
                               size_t *needed)
{
    static time_function *ask;
    if (!ask)
        *(void **)&ask = dlsym(RTLD_NEXT, "clGetEventProfilingInfo");
    cl_int code = ask(event, what, size, value, needed);
    const char *how = getenv("FAULTY_HOW");
    cl_command_queue queue;
    if (how && strcmp(how, "timeless") == 0 && value && size == sizeof(cl_ulong) &&
        clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL) == CL_SUCCESS &&
        is_faulty(queue))
        *(cl_ulong *)value = what - CL_PROFILING_COMMAND_QUEUED;
    return code;
}

static int how_is(const char *what)
{
    const char *how = getenv("FAULTY_HOW");
    return how && strcmp(how, what) == 0;
}

/* In the place of the program, whose pipe this is (src/core/process.h). */
static void claim(void)
{
    static const char text[] = "{\"verified\": true, \"runs_ns\": [1, 1, 1],"
                               " \"results\": {\"total\": 1, \"compared\": 0, \"different\": 0}}";
    _exit(write(3, text, sizeof text - 1) == (ssize_t)(sizeof text - 1) ? 0 : 1);
}

static void fail(void)
{
    const char *how = getenv("FAULTY_HOW");
    int code = 42;
    if (how_is("crash"))
        *(volatile int *)NULL = 0;
    if (how && sscanf(how, "exit %d", &code) == 1)
        _exit(code);
    if (how_is("exit"))
        exit(code);
    if (how_is("abort")) {
        fprintf(stderr, "driver: <b>internal error</b> \x1b[31m| `x`\n");
        abort();
    }
    if (how_is("claim"))
        claim();
    while (how_is("hang"))
        sleep(1);
}

static int is_where(const char *place)
{
    const char *where = getenv("FAULTY_WHERE");
    return where && strcmp(where, place) == 0;
}

static int has_listed;

__attribute__((destructor)) static void end(void)
{
    if (has_listed && is_where("exit"))
        fail();
}

cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                      const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                      void *data)
{
    static cl_int (*build)(cl_program, cl_uint, const cl_device_id *, const char *,
                           void(CL_CALLBACK *)(cl_program, void *), void *);
    if (!build)
        *(void **)&build = dlsym(RTLD_NEXT, "clBuildProgram");
    if (is_where("build"))
        fail();
    return build(program, count, devices, options, notify, data);
}

static char mute; /* a platform */

cl_int clGetPlatformIDs(cl_uint room, cl_platform_id *platforms, cl_uint *count)
{
    static cl_int (*list)(cl_uint, cl_platform_id *, cl_uint *);
    cl_uint found = 0;
    if (!list)
        *(void **)&list = dlsym(RTLD_NEXT, "clGetPlatformIDs");
    has_listed = 1;
    if (is_where("list"))
        fail();
    if (how_is("talk"))
        printf("{ welcome to this driver }\n");
    cl_int code = list(room, platforms, &found);
    if (code == CL_SUCCESS && how_is("mute")) {
        if (platforms && found < room)
            platforms[found] = (cl_platform_id)(void *)&mute;
        found++;
    }
    if (count)
        *count = found;
    return code;
}

cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t size, void *value,
                         size_t *needed)
{
    static cl_int (*ask)(cl_platform_id, cl_platform_info, size_t, void *, size_t *);
    if (!ask)
        *(void **)&ask = dlsym(RTLD_NEXT, "clGetPlatformInfo");
    if (platform != (cl_platform_id)(void *)&mute)
        return ask(platform, what, size, value, needed);
    if (value && size > 0)
        snprintf(value, size, "Mute\x1b[2J platform");
    return CL_SUCCESS;
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room,
                      cl_device_id *devices, cl_uint *count)
{
    static cl_int (*list)(cl_platform_id, cl_device_type, cl_uint, cl_device_id *, cl_uint *);
    if (!list)
        *(void **)&list = dlsym(RTLD_NEXT, "clGetDeviceIDs");
    return platform == (cl_platform_id)(void *)&mute ? CL_OUT_OF_RESOURCES
                                                     : list(platform, type, room, devices, count);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t *offset, const size_t *global, const size_t *local,
                              cl_uint wait_count, const cl_event *wait, cl_event *event)
{
    static launch_function *launch;
    if (!launch)
        *(void **)&launch = dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
    const char *how = getenv("FAULTY_HOW");
    if (!how || getenv("FAULTY_WHERE") || how_is("timeless") || how_is("mute") || !is_faulty(queue))
        return launch(queue, kernel, dimensions, offset, global, local, wait_count, wait, event);
    fail();
    return clEnqueueMarkerWithWaitList(queue, wait_count, wait, event);
}
