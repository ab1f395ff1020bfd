/* Kernel launches, and what a device lacks. */
#include <string.h>

#include "core/array.h"
#include "opencl/internal.h"

enum { FLUSH_EVERY = 64 }; /* launches, so that the device starts while the host goes on */

/* ---------------------------------------------------------------- arguments */

static enum healcl_status set_arguments(struct healcl_device *device, cl_kernel kernel,
                                        const struct launch *launch, struct healcl_error *error)
{
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const struct launch_argument *argument = &launch->arguments[i];
        const struct buffer *buffer = argument->buffer;
        cl_int code =
            device->cl->clSetKernelArg(kernel, i, buffer ? sizeof buffer->memory : argument->size,
                                       buffer ? (const void *)&buffer->memory : argument->value);
        if (launch->source && (code == CL_INVALID_ARG_SIZE || code == CL_INVALID_ARG_VALUE ||
                               code == CL_INVALID_ARG_INDEX || code == CL_INVALID_MEM_OBJECT))
            return kernel_argument_refused(device, launch, i, code, error);
        if (code != CL_SUCCESS) {
            (void)opencl_error(error, code, "clSetKernelArg", __FILE__, __LINE__);
            error_prefix(error, "argument %u: ", i);
            return HEALCL_DEVICE;
        }
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- launches */

static size_t trace_kernel(struct trace *trace, const struct kernel *kernel,
                           const struct launch *launch)
{
    size_t index = trace_command(trace, TRACE_COMPUTE, "kernel", launch->kernel, 0);
    struct trace_span *span = trace_span(trace, index);
    if (span) {
        span->program = launch->program;
        span->tag = launch->tag;
        span->options = trace_keep(trace, kernel->program->all_options);
        span->groups = launch->groups;
        span->local_size = (uint32_t)launch->local_size;
        trace_manifest_kernel(trace, index, &launch->manifest);
    }
    return index;
}

/* Traces the time before a driver begins with a kernel that has not run: PoCL compiles it. */
static size_t trace_first_launch(struct trace *trace, const char *kernel)
{
    char name[96];
    if (!trace)
        return 0;
    snprintf(name, sizeof name, "compile %.80s", kernel);
    const char *kept = trace_keep(trace, name);
    return trace_command(trace, TRACE_COMPUTE, "first launch", kept ? kept : kernel, 0);
}

static enum healcl_status enqueue_recorded(struct healcl_device *device, struct kernel *kernel,
                                           const struct launch *launch, struct healcl_error *error)
{
    struct command command = {.tag = launch->tag};
    if (device->profiling) {
        TRY(command_log_reserve(&device->launches, error));
        command.is_first = !atomic_load(&kernel->shared->launched);
        if (command.is_first && device->event_times)
            command.first_span = trace_first_launch(device->trace, launch->kernel);
        command.span = trace_kernel(device->trace, kernel, launch);
        command_begin(device, &command);
    }
    /* A driver may compile a kernel when it first runs. Nothing overlaps with that launch: on PoCL
     * a cold start is shorter so. */
    const struct command_use everything = {0},
                             arguments = {.argument_count = launch->argument_count,
                                          .arguments = launch->arguments,
                                          .kernel = kernel,
                                          .groups = launch->groups};
    const size_t work_items = launch->groups * launch->local_size;
    cl_int code = CL_SUCCESS;
    for (int attempt = 0; attempt < 2; attempt++) {
        struct awaited_events awaited;
        overlap_begin(device, kernel->shared->launched ? &arguments : &everything, &awaited);
        code = device->cl->clEnqueueNDRangeKernel(
            device->compute, kernel->id, 1, NULL, &work_items, &launch->local_size,
            AWAITED(awaited), device->profiling || device->overlaps ? &command.event : NULL);
        if (!device_recovers(device, code))
            break;
    }
    if (code != CL_SUCCESS) {
        (void)opencl_error(error, code, "clEnqueueNDRangeKernel", __FILE__, __LINE__);
        if (is_out_of_memory(code))
            error_prefix(error, "%llu bytes are in use: ",
                         (unsigned long long)(device->bytes_live - device->bytes_pooled));
        return HEALCL_DEVICE;
    }
    device->programs->first_launches += !atomic_exchange(&kernel->shared->launched, true);
    return command_enqueued(device, &command, error);
}

static enum healcl_status launch_kernel(struct healcl_device *device, struct kernel *kernel,
                                        const struct launch *launch, struct healcl_error *error)
{
    if (launch->local_size == 0 || launch->groups > SIZE_MAX / launch->local_size)
        FAIL(error, HEALCL_DEVICE, "there cannot be %zu work-groups of %zu work-items",
             launch->groups, launch->local_size);
    if (launch->source)
        TRY(kernel_check_arguments(device, kernel, launch, error));
    TRY(set_arguments(device, kernel->id, launch, error));
    TRY(device_await_uploads(device, error));
    TRY(enqueue_recorded(device, kernel, launch, error));
    if (++device->unflushed >= FLUSH_EVERY) {
        device->unflushed = 0;
        TRY_CL(error, "clFlush", device->cl->clFlush(device->compute));
    }
    return HEALCL_OK;
}

void device_compile_ahead(struct healcl_device *device, enum compile_ahead what)
{
    device->programs->ahead.what = what;
}

static enum healcl_status compile_launch(struct healcl_device *device, const struct launch *launch,
                                         struct healcl_error *error)
{
    const uint64_t hash = launch_program_hash(launch);
    struct compiling_ahead *ahead = &device->programs->ahead;
    if (ahead->what == COMPILE_LIST) {
        device_list_program(device, launch);
        return HEALCL_OK;
    }
    if (ahead->what == COMPILE_NOTE)
        ahead->noted = hash;
    if (ahead->what == COMPILE_NOTE || (ahead->what == COMPILE_ANOTHER && ahead->noted == hash))
        return HEALCL_OK;
    ahead->what = COMPILE_ALL;
    const uint64_t kernel_hash = launch_kernel_hash(launch);
    struct compile_board *board = ahead->board;
    if (board && board->run == kernel_hash)
        return HEALCL_OK; /* the run will have it before this process */
    struct kernel *kernel;
    if (board)
        board->ahead = kernel_hash;
    enum healcl_status status = device_kernel(device, launch, &kernel, error);
    if (status == HEALCL_OK && !kernel->shared->launched) {
        struct launch once = *launch;
        /* PoCL compiles a kernel once more for grids of 65535 work-items and more. */
        if (launch->groups < UINT16_MAX / launch->local_size)
            once.groups = 1;
        status = launch_kernel(device, kernel, &once, error);
        if (status == HEALCL_OK)
            status = device_finish(device, error);
    }
    if (board)
        board->ahead = 0;
    return status;
}

enum healcl_status device_launch(struct healcl_device *device, const struct launch *launch,
                                 struct healcl_error *error)
{
    if (launch->groups == 0)
        return HEALCL_OK;
    if (device->programs->ahead.what != COMPILE_NOT)
        return compile_launch(device, launch, error);
    struct kernel *kernel;
    device->programs->manifest_is_wrong = false;
    TRY(device_kernel(device, launch, &kernel, error));
    enum healcl_status status = launch_kernel(device, kernel, launch, error);
    if (status != HEALCL_OK && !device->programs->manifest_is_wrong)
        error_prefix(error, "kernel '%s': ", launch->kernel);
    return status;
}

/* ---------------------------------------------------------------- what a device lacks */

bool device_is_forced_off(const struct healcl_device *device, const char *name)
{
    for (const char *item = device->programs->forced_unsupported; item && *item;) {
        size_t length = strcspn(item, ",");
        if ((strlen(name) == length && strncmp(item, name, length) == 0) ||
            (length == 3 && strncmp(item, "all", length) == 0))
            return true;
        item += length + (item[length] == ',');
    }
    return false;
}

const char *device_warning(const struct healcl_device *device, size_t number)
{
    const char *warnings[2];
    size_t count = 0;
    if (device->programs->arguments_unknown)
        warnings[count++] = ARGUMENTS_UNKNOWN;
    if (device->tuning.cached_is_unreadable)
        warnings[count++] = CACHED_UNREADABLE;
    return number < count ? warnings[number] : NULL;
}

enum healcl_status device_note_unsupported(struct healcl_device *device, enum healcl_status status)
{
    device->programs->unsupported_met = true;
    return status;
}

bool device_has_failed(const struct healcl_device *device, const void *kernel)
{
    for (size_t i = 0; i < device->programs->failed_count; i++)
        if (device->programs->failed[i] == kernel)
            return true;
    return false;
}

enum healcl_status device_note_failed(struct healcl_device *device, const void *kernel,
                                      struct healcl_error *error)
{
    struct device_programs *programs = device->programs;
    if (!ARRAY_GROW(programs->failed, programs->failed_count, &programs->failed_capacity))
        NO_MEMORY(error);
    programs->failed[programs->failed_count++] = kernel;
    return HEALCL_OK;
}
