/*
 * Many operations by call on one queue: calls DEVICE CALLS, where DEVICE is a part of the
 * platform's name. Prints by how much resident memory grows after the first tenth, 2,000 at least,
 * and the same of a bare OpenCL program, in a process of its own, that launches, writes and reads
 * as often. Exit status 1 where healcl grows by more than a megabyte beyond that.
 */
#include <CL/cl.h>
#include <healcl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "resident.h"

enum { ELEMENTS = 4096, READ_EVERY = 100, PLATFORMS = 16, GROWTH_MAX = 1024 /* KiB */ };

/* Until then allocators of a driver's threads may grow. */
enum { CALLS_TO_SETTLE = 2000 };

static int64_t data[ELEMENTS];
static struct healcl_error error;

/* Behind which call memory is to be flat. */
static long settles_at(long calls)
{
    return calls / 10 > CALLS_TO_SETTLE ? calls / 10 : CALLS_TO_SETTLE;
}

static void need(bool works, const char *what)
{
    if (works)
        return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* ---------------------------------------------------------------- bare */

static const char source[] = "kernel void work(global long *out, global const long *a, long q)"
                             "{ size_t i = get_global_id(0); out[i] = (a[i] * 5 + out[i]) % q; }";

static cl_platform_id find_platform(const char *part)
{
    cl_platform_id platforms[PLATFORMS];
    cl_uint count = 0;
    char name[256];
    need(clGetPlatformIDs(PLATFORMS, platforms, &count) == CL_SUCCESS, "no platform");
    for (cl_uint i = 0; i < count && i < PLATFORMS; i++)
        if (clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name, name, NULL) ==
                CL_SUCCESS &&
            strstr(name, part))
            return platforms[i];
    return NULL;
}

static long grow_bare(const char *part, long calls)
{
    const size_t items = ELEMENTS;
    const cl_long q = 1000003;
    cl_int code = CL_SUCCESS;
    cl_device_id id = NULL;
    cl_platform_id platform = find_platform(part);
    need(platform && clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, NULL) == CL_SUCCESS,
         "no device");
    cl_context context = clCreateContext(NULL, 1, &id, NULL, NULL, &code);
    need(code == CL_SUCCESS, "no context");
    cl_command_queue queue = clCreateCommandQueue(context, id, 0, &code);
    need(code == CL_SUCCESS, "no queue");
    const char *text = source;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &code);
    need(code == CL_SUCCESS && clBuildProgram(program, 1, &id, "", NULL, NULL) == CL_SUCCESS,
         "no program");
    cl_kernel kernel = clCreateKernel(program, "work", &code);
    cl_mem out = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof data, NULL, &code);
    long settled = 0;
    for (long i = 0; i < calls; i++) {
        bool is_last = i % READ_EVERY == READ_EVERY - 1;
        cl_mem in = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof data, NULL, &code);
        if (code == CL_SUCCESS)
            code = clEnqueueWriteBuffer(queue, in, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL);
        if (code == CL_SUCCESS)
            code = clSetKernelArg(kernel, 0, sizeof out, &out);
        if (code == CL_SUCCESS)
            code = clSetKernelArg(kernel, 1, sizeof in, &in);
        if (code == CL_SUCCESS)
            code = clSetKernelArg(kernel, 2, sizeof q, &q);
        if (code == CL_SUCCESS)
            code = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
        if (code == CL_SUCCESS && is_last)
            code = clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL);
        need(code == CL_SUCCESS && clReleaseMemObject(in) == CL_SUCCESS, "a call fails");
        if (i == settles_at(calls))
            settled = resident_kilobytes();
    }
    return resident_kilobytes() - settled;
}

/* In a process of its own: what a driver keeps is kept by process. */
static long grow_bare_apart(const char *part, long calls)
{
    int ends[2];
    long growth = 0;
    need(pipe(ends) == 0, "no pipe");
    pid_t child = fork();
    need(child >= 0, "no process");
    if (child == 0) {
        growth = grow_bare(part, calls);
        _exit(write(ends[1], &growth, sizeof growth) == sizeof growth ? 0 : 1);
    }
    close(ends[1]);
    need(read(ends[0], &growth, sizeof growth) == sizeof growth, "the bare program failed");
    close(ends[0]);
    need(waitpid(child, NULL, 0) == child, "the bare program is lost");
    return growth;
}

/* ---------------------------------------------------------------- healcl */

static void check(enum healcl_status status)
{
    need(status == HEALCL_OK, error.message);
}

/* By turns: a product, a sum, and a negation of a view, each with a tensor that comes and goes. */
static void call(struct healcl_queue *queue, struct healcl_tensor *out, long number)
{
    const int64_t shape = ELEMENTS;
    const struct healcl_argument q = healcl_int_argument(1000003),
                                 result = healcl_tensor_argument(out);
    const struct healcl_index half = {HEALCL_INDEX_SLICE, .has_stop = true, .stop = ELEMENTS / 2};
    struct healcl_tensor *in = NULL, *view = NULL;
    check(healcl_tensor_create(queue, HEALCL_INT64, 1, &shape, data, &in, &error));
    const struct healcl_argument operand = healcl_tensor_argument(in);
    switch (number % 3) {
    case 0: {
        const struct healcl_argument product[] = {operand, healcl_int_argument(5), q, result};
        check(healcl_call(queue, "modmul", 4, product, NULL, &error));
        break;
    }
    case 1: {
        const struct healcl_argument sum[] = {result, operand, q, result};
        check(healcl_call(queue, "modsum", 4, sum, NULL, &error));
        break;
    }
    default: {
        const struct healcl_argument slice[] = {result, healcl_index_argument(1, &half)};
        check(healcl_call(queue, "get_slice", 2, slice, &view, &error));
        const struct healcl_argument negation[] = {healcl_tensor_argument(view), q,
                                                   healcl_tensor_argument(view)};
        check(healcl_call(queue, "modneg", 3, negation, NULL, &error));
    }
    }
    healcl_tensor_release(view);
    healcl_tensor_release(in);
}

static long grow(const char *part, long calls)
{
    const int64_t shape = ELEMENTS;
    struct healcl_device *device = NULL;
    struct healcl_queue *queue = NULL;
    struct healcl_tensor *out = NULL;
    check(healcl_device_open(part, &device, &error));
    check(healcl_queue_open(device, NULL, &queue, &error));
    check(healcl_tensor_create(queue, HEALCL_INT64, 1, &shape, NULL, &out, &error));
    long settled = 0;
    for (long i = 0; i < calls; i++) {
        call(queue, out, i);
        if (i % READ_EVERY == READ_EVERY - 1)
            check(healcl_tensor_read(out, data, sizeof data, &error));
        if (i == settles_at(calls))
            settled = resident_kilobytes();
    }
    long growth = resident_kilobytes() - settled;
    healcl_tensor_release(out);
    healcl_queue_close(queue);
    healcl_device_close(device);
    return growth;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s DEVICE CALLS\n", argv[0]);
        return 2;
    }
    long calls = strtol(argv[2], NULL, 10);
    long bare = grow_bare_apart(argv[1], calls), growth = grow(argv[1], calls);
    printf("%ld calls: %ld KiB more after the first %ld; a bare OpenCL program %ld KiB\n", calls,
           growth, settles_at(calls), bare);
    return growth > (bare > 0 ? bare : 0) + GROWTH_MAX;
}
