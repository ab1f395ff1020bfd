/*
 * Lists what healcl builds and launches, without a device:
 *
 *     launch_listing cpu|gpu|accelerator TRANSCRIPT...
 *
 * A driver of its own stands in the place of OpenCL. It reports the same device on each machine,
 * has memory, and compiles and launches nothing: results are not computed. For each transcript
 * there are five parts: a run, the three runs of a session, and a run in a quarter of the tensors'
 * memory. Then come the calls of `healcl check --quick`, a part for each operation. A part begins
 * with "= PART NAME". Its lines are "build OPTIONS PROGRAM" and "GLOBAL LOCAL KERNEL OPTIONS
 * PROGRAM", separated by tabs, in the order of the launches. An error is a line, too.
 */
#include <CL/cl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "healcl.h"
#include "opencl/opencl.h"
#include "opencl/opening.h"
#include "plan/plan.h"
#include "run/loaded_transcript.h"
#include "tools/coverage.h"
#include "tools/variants.h"

static cl_device_type type;

static void *need(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static char *copy(const char *text, size_t length)
{
    char *made = need(calloc(1, length + 1));
    memcpy(made, text, length);
    return made;
}

/* Objects that have no state: contexts, queues and events. */
static char object;
#define OBJECT (void *)&object

static cl_int give(const void *value, size_t bytes, size_t size, void *to, size_t *needed)
{
    if (needed)
        *needed = bytes;
    if (to && size < bytes)
        return CL_INVALID_VALUE;
    if (to)
        memcpy(to, value, bytes);
    return CL_SUCCESS;
}

/* ---------------------------------------------------------------- the device */

static cl_int get_platforms(cl_uint entries, cl_platform_id *ids, cl_uint *count)
{
    if (count)
        *count = 1;
    if (entries > 0 && ids)
        *ids = OBJECT;
    return CL_SUCCESS;
}

static cl_int get_platform(cl_platform_id id, cl_platform_info what, size_t size, void *value,
                           size_t *needed)
{
    const char *text = what == CL_PLATFORM_VERSION ? "OpenCL 1.2" : "listing";
    (void)id;
    return give(text, strlen(text) + 1, size, value, needed);
}

static cl_int get_devices(cl_platform_id platform, cl_device_type types, cl_uint entries,
                          cl_device_id *ids, cl_uint *count)
{
    (void)platform, (void)types;
    return get_platforms(entries, (cl_platform_id *)(void *)ids, count);
}

/* What kernels depend on. Groups and local memory are as devices of these types have them. */
static cl_int get_device(cl_device_id id, cl_device_info what, size_t size, void *value,
                         size_t *needed)
{
    const bool is_cpu = type == CL_DEVICE_TYPE_CPU;
    const struct {
        cl_device_info what;
        cl_ulong value;
        size_t bytes;
    } numbers[] = {
        {CL_DEVICE_TYPE, type, sizeof(cl_device_type)},
        {CL_DEVICE_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE,
         sizeof(cl_command_queue_properties)},
        {CL_DEVICE_MAX_COMPUTE_UNITS, is_cpu ? 4 : 16, sizeof(cl_uint)},
        {CL_DEVICE_MAX_CLOCK_FREQUENCY, 1000, sizeof(cl_uint)},
        {CL_DEVICE_GLOBAL_MEM_SIZE, (cl_ulong)16 << 30, sizeof(cl_ulong)},
        {CL_DEVICE_MAX_MEM_ALLOC_SIZE, (cl_ulong)4 << 30, sizeof(cl_ulong)},
        {CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, 1 << 20, sizeof(cl_ulong)},
        {CL_DEVICE_LOCAL_MEM_SIZE, is_cpu ? 1 << 19 : 1 << 16, sizeof(cl_ulong)},
        {CL_DEVICE_MAX_WORK_GROUP_SIZE, is_cpu ? 4096 : 1024, sizeof(size_t)},
        {CL_DEVICE_MAX_PARAMETER_SIZE, 1024, sizeof(size_t)},
        {CL_DEVICE_MEM_BASE_ADDR_ALIGN, 1024, sizeof(cl_uint)},
        {CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, is_cpu ? 8 : 1, sizeof(cl_uint)},
        {CL_DEVICE_AVAILABLE, CL_TRUE, sizeof(cl_bool)},
        {CL_DEVICE_COMPILER_AVAILABLE, CL_TRUE, sizeof(cl_bool)},
        {CL_DEVICE_ENDIAN_LITTLE, CL_TRUE, sizeof(cl_bool)},
        {CL_DEVICE_HOST_UNIFIED_MEMORY, is_cpu, sizeof(cl_bool)},
    };
    static const size_t sizes[] = {4096, 4096, 4096};
    (void)id;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].what == what) /* on hosts that are little-endian */
            return give(&numbers[i].value, numbers[i].bytes, size, value, needed);
    if (what == CL_DEVICE_MAX_WORK_ITEM_SIZES)
        return give(sizes, sizeof sizes, size, value, needed);
    const char *text = what == CL_DEVICE_VERSION            ? "OpenCL 1.2 "
                       : what == CL_DEVICE_OPENCL_C_VERSION ? "OpenCL C 1.2 "
                                                            : "listing";
    return give(text, strlen(text) + 1, size, value, needed);
}

/* ---------------------------------------------------------------- contexts, queues and events */

static cl_context create_context(
    const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data, cl_int *code)
{
    (void)properties, (void)count, (void)devices, (void)notify, (void)data;
    *code = CL_SUCCESS;
    return OBJECT;
}

static cl_command_queue create_queue(cl_context context, cl_device_id device,
                                     cl_command_queue_properties properties, cl_int *code)
{
    (void)context, (void)device, (void)properties;
    *code = CL_SUCCESS;
    return OBJECT;
}

static cl_int use_context(cl_context context)
{
    (void)context;
    return CL_SUCCESS;
}

static cl_int use_queue(cl_command_queue queue)
{
    (void)queue;
    return CL_SUCCESS;
}

static cl_int use_event(cl_event event)
{
    (void)event;
    return CL_SUCCESS;
}

static cl_int await(cl_uint count, const cl_event *events)
{
    (void)count, (void)events;
    return CL_SUCCESS;
}

/* All commands have ended when they are enqueued. */
static cl_int ended(cl_event *event)
{
    if (event)
        *event = OBJECT;
    return CL_SUCCESS;
}

static cl_int mark(cl_command_queue queue, cl_uint count, const cl_event *events, cl_event *event)
{
    (void)queue, (void)count, (void)events;
    return ended(event);
}

static cl_int get_event(cl_event id, cl_event_info what, size_t size, void *value, size_t *needed)
{
    const cl_int complete = CL_COMPLETE;
    (void)id, (void)what;
    return give(&complete, sizeof complete, size, value, needed);
}

/* ---------------------------------------------------------------- memory */

struct _cl_mem {
    unsigned char *data;
    cl_mem whole; /* of a part, or NULL */
    unsigned references;
};

static cl_mem create_part(cl_mem whole, cl_mem_flags flags, cl_buffer_create_type kind,
                          const void *region, cl_int *code)
{
    cl_mem made = need(calloc(1, sizeof *made));
    (void)flags, (void)kind;
    *made = (struct _cl_mem){whole->data + ((const cl_buffer_region *)region)->origin, whole, 1};
    whole->references++;
    *code = CL_SUCCESS;
    return made;
}

static cl_mem create_buffer(cl_context context, cl_mem_flags flags, size_t bytes, void *data,
                            cl_int *code)
{
    cl_mem made = need(calloc(1, sizeof *made));
    (void)context, (void)flags;
    *made = (struct _cl_mem){need(calloc(1, bytes)), NULL, 1};
    if (data)
        memcpy(made->data, data, bytes);
    *code = CL_SUCCESS;
    return made;
}

static cl_int retain_memory(cl_mem memory)
{
    memory->references++;
    return CL_SUCCESS;
}

static cl_int release_memory(cl_mem memory)
{
    if (--memory->references > 0)
        return CL_SUCCESS;
    if (memory->whole)
        (void)release_memory(memory->whole);
    else
        free(memory->data);
    free(memory);
    return CL_SUCCESS;
}

static cl_int read_buffer(cl_command_queue queue, cl_mem memory, cl_bool waits, size_t offset,
                          size_t bytes, void *to, cl_uint count, const cl_event *events,
                          cl_event *event)
{
    (void)queue, (void)waits, (void)count, (void)events;
    memcpy(to, memory->data + offset, bytes);
    return ended(event);
}

static cl_int write_buffer(cl_command_queue queue, cl_mem memory, cl_bool waits, size_t offset,
                           size_t bytes, const void *from, cl_uint count, const cl_event *events,
                           cl_event *event)
{
    (void)queue, (void)waits, (void)count, (void)events;
    memcpy(memory->data + offset, from, bytes);
    return ended(event);
}

static cl_int copy_buffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                          size_t to_offset, size_t bytes, cl_uint count, const cl_event *events,
                          cl_event *event)
{
    return write_buffer(queue, to, CL_TRUE, to_offset, bytes, from->data + from_offset, count,
                        events, event);
}

static void *map(cl_command_queue queue, cl_mem memory, cl_bool waits, cl_map_flags flags,
                 size_t offset, size_t bytes, cl_uint count, const cl_event *events,
                 cl_event *event, cl_int *code)
{
    (void)queue, (void)waits, (void)flags, (void)bytes, (void)count, (void)events;
    *code = ended(event);
    return memory->data + offset;
}

static cl_int unmap(cl_command_queue queue, cl_mem memory, void *at, cl_uint count,
                    const cl_event *events, cl_event *event)
{
    (void)memory, (void)at;
    return mark(queue, count, events, event);
}

/* ---------------------------------------------------------------- what is listed */

struct _cl_program {
    char *name, *options;
};

struct _cl_kernel {
    cl_program program; /* which outlives it */
    char *name;
};

/* The last text has the program's own source. Its name stands in a "#line" before. */
static cl_program create_program(cl_context context, cl_uint count, const char **texts,
                                 const size_t *lengths, cl_int *code)
{
    const char *name = strchr(texts[count - 2], '"') + 1;
    cl_program made = need(calloc(1, sizeof *made));
    (void)context, (void)lengths;
    made->name = copy(name, strcspn(name, "\""));
    *code = CL_SUCCESS;
    return made;
}

static cl_int build(cl_program program, cl_uint count, const cl_device_id *devices,
                    const char *options, void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
    (void)count, (void)devices, (void)notify, (void)data;
    program->options = copy(options, strlen(options));
    printf("build\t%s\t%s\n", options, program->name);
    return CL_SUCCESS;
}

static cl_int release_program(cl_program program)
{
    free(program->name);
    free(program->options);
    free(program);
    return CL_SUCCESS;
}

/* There are no binaries to keep. */
static cl_int get_program(cl_program program, cl_program_info what, size_t size, void *value,
                          size_t *needed)
{
    (void)program, (void)what, (void)size, (void)value, (void)needed;
    return CL_INVALID_VALUE;
}

static cl_kernel create_kernel(cl_program program, const char *name, cl_int *code)
{
    cl_kernel made = need(calloc(1, sizeof *made));
    *made = (struct _cl_kernel){program, copy(name, strlen(name))};
    *code = CL_SUCCESS;
    return made;
}

static cl_int release_kernel(cl_kernel kernel)
{
    free(kernel->name);
    free(kernel);
    return CL_SUCCESS;
}

static cl_int set_argument(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    (void)kernel, (void)index, (void)size, (void)value;
    return CL_SUCCESS;
}

static cl_int launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                     const size_t *offset, const size_t *global, const size_t *local, cl_uint count,
                     const cl_event *events, cl_event *event)
{
    (void)offset;
    for (cl_uint i = 0; i < dimensions; i++)
        printf("%s%zu", i > 0 ? "x" : "", global[i]);
    for (cl_uint i = 0; i < dimensions; i++)
        printf("%s%zu", i > 0 ? "x" : "\t", local[i]);
    printf("\t%s\t%s\t%s\n", kernel->name, kernel->program->options, kernel->program->name);
    return mark(queue, count, events, event);
}

/* Functions that are not needed are NULL. */
static const struct opencl listing = {
    .clGetPlatformIDs = get_platforms,
    .clGetPlatformInfo = get_platform,
    .clGetDeviceIDs = get_devices,
    .clGetDeviceInfo = get_device,
    .clCreateContext = create_context,
    .clRetainContext = use_context,
    .clReleaseContext = use_context,
    .clCreateCommandQueue = create_queue,
    .clReleaseCommandQueue = use_queue,
    .clCreateProgramWithSource = create_program,
    .clBuildProgram = build,
    .clGetProgramInfo = get_program,
    .clReleaseProgram = release_program,
    .clCreateKernel = create_kernel,
    .clReleaseKernel = release_kernel,
    .clSetKernelArg = set_argument,
    .clCreateBuffer = create_buffer,
    .clCreateSubBuffer = create_part,
    .clRetainMemObject = retain_memory,
    .clReleaseMemObject = release_memory,
    .clEnqueueNDRangeKernel = launch,
    .clEnqueueReadBuffer = read_buffer,
    .clEnqueueWriteBuffer = write_buffer,
    .clEnqueueCopyBuffer = copy_buffer,
    .clEnqueueMapBuffer = map,
    .clEnqueueUnmapMemObject = unmap,
    .clFlush = use_queue,
    .clFinish = use_queue,
    .clWaitForEvents = await,
    .clGetEventInfo = get_event,
    .clRetainEvent = use_event,
    .clReleaseEvent = use_event,
    .clEnqueueBarrierWithWaitList = mark,
    .clEnqueueMarkerWithWaitList = mark,
};

/* ---------------------------------------------------------------- transcripts */

/* bytes: the most to allocate; 0: any. */
static enum healcl_status run(const struct healcl_transcript *transcript, const char *file,
                              struct healcl_device *device, uint64_t bytes,
                              struct healcl_error *error)
{
    const struct healcl_run_options options = {
        .no_verify = true, .no_warm_up = true, .device_memory_bytes = bytes};
    struct healcl_report *report;
    printf("= %s\t%s\n", bytes > 0 ? "quarter" : "run", file);
    enum healcl_status status = healcl_run(transcript, device, &options, &report, error);
    if (status == HEALCL_OK)
        healcl_report_free(report);
    return status;
}

static enum healcl_status run_session(const struct healcl_transcript *transcript, const char *file,
                                      struct healcl_device *device, struct healcl_error *error)
{
    static const char *const parts[] = {"first", "second", "third"};
    struct healcl_session *session;
    printf("= first\t%s\n", file);
    enum healcl_status status = healcl_session_open(transcript, device, NULL, &session, error);
    for (int i = 0; status == HEALCL_OK && i < 3; i++) {
        if (i > 0)
            printf("= %s\t%s\n", parts[i], file);
        status = healcl_session_run(session, error);
    }
    healcl_session_close(session);
    return status;
}

/* Each run and the session have a device of their own, which has built nothing. */
static void list(const char *file)
{
    struct healcl_error error = {0};
    struct healcl_transcript *transcript = NULL;
    enum healcl_status status = healcl_transcript_open(file, NULL, &transcript, &error);
    for (int i = 0; status == HEALCL_OK && i < 3; i++) {
        struct healcl_device *device;
        status = device_open(&listing, NULL, &device, &error);
        if (status != HEALCL_OK)
            break;
        status = i == 1 ? run_session(transcript, file, device, &error)
                        : run(transcript, file, device,
                              i == 0 ? 0 : transcript->plan->bytes_peak / 4, &error);
        healcl_device_close(device);
    }
    if (status != HEALCL_OK)
        printf("error\t%s\n", error.message);
    healcl_error_clear(&error);
    healcl_transcript_close(transcript);
}

/* ---------------------------------------------------------------- calls */

/* All calls differ, as nothing is computed. */
static void ignore(void *context, const struct coverage_row *row, const struct coverage_cell *cell,
                   const struct manifest_kernel *kernel, const struct healcl_error *why)
{
    (void)context, (void)row, (void)cell, (void)kernel, (void)why;
}

/* The random calls of `healcl check --quick`, which find every variant. */
static void list_calls(void)
{
    const struct coverage_observer observer = {NULL, ignore};
    struct healcl_error error = {0};
    struct healcl_device *device;
    struct coverage_sizes sizes;
    struct coverage_row *rows;
    struct variants variants;
    if (device_open(&listing, NULL, &device, &error) != HEALCL_OK)
        abort();
    device->options.no_fallback = true;
    variants_init(&variants, device);
    coverage_sizes_init(&sizes, true);
    const size_t count = coverage_rows(&rows);
    for (size_t i = 0; i < count; i++) {
        printf("= calls\t%s\n", rows[i].form->operation->name);
        rows[i].variants = &variants;
        coverage_check(device, &sizes, NULL, &rows[i], &observer);
    }
    free(rows);
    healcl_device_close(device);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    type = strcmp(argv[1], "cpu") == 0   ? CL_DEVICE_TYPE_CPU
           : strcmp(argv[1], "gpu") == 0 ? CL_DEVICE_TYPE_GPU
                                         : CL_DEVICE_TYPE_ACCELERATOR;
    for (int i = 2; i < argc; i++)
        list(argv[i]);
    list_calls();
    return 0;
}
