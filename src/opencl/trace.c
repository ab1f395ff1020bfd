/* Tracing: which commands are recorded, and the device's clock beside the host's. */
#include "core/clock.h"
#include "opencl/device_internal.h"

enum { CLOCK_READINGS = 5 }; /* of which the best counts */

/* ---------------------------------------------------------------- clocks */

/* When a command was queued; or for a driver that does not say, started. */
static enum healcl_status first_time(struct healcl_device *device, cl_event event, cl_ulong *time,
                                     struct healcl_error *error)
{
    TRY_CL(error, "clGetEventProfilingInfo",
           event_time(device, event, CL_PROFILING_COMMAND_QUEUED, time));
    if (*time == 0)
        TRY_CL(error, "clGetEventProfilingInfo",
               event_time(device, event, CL_PROFILING_COMMAND_START, time));
    return HEALCL_OK;
}

/* OpenCL 1.2 cannot be asked for the device's time. But a write is queued after the host began to
 * enqueue it, and has ended when the host has waited for it. What is left between the two is where
 * the clocks may lie to each other. */
static enum healcl_status read_write(struct healcl_device *device, cl_event event, uint64_t before,
                                     struct clock_pair *pair, struct healcl_error *error)
{
    cl_ulong first, end;
    TRY_CL(error, "clWaitForEvents", device->cl->clWaitForEvents(1, &event));
    uint64_t on_host = monotonic_nanoseconds() - before;
    TRY(first_time(device, event, &first, error));
    TRY_CL(error, "clGetEventProfilingInfo",
           event_time(device, event, CL_PROFILING_COMMAND_END, &end));
    uint64_t on_device = end > first ? end - first : 0;
    uint64_t bound = on_host > on_device ? (on_host - on_device + 1) / 2 : 0;
    *pair = (struct clock_pair){before + bound, first, bound};
    return HEALCL_OK;
}

/* A barrier would take no memory, but NVIDIA's driver has no times of barriers and markers. */
static enum healcl_status read_clocks_once(struct healcl_device *device, cl_mem memory,
                                           struct clock_pair *pair, struct healcl_error *error)
{
    static const cl_int data = 0;
    cl_event event = NULL;
    uint64_t before = monotonic_nanoseconds();
    TRY_CL(error, "clEnqueueWriteBuffer",
           device->cl->clEnqueueWriteBuffer(device->compute, memory, CL_FALSE, 0, sizeof data,
                                            &data, 0, NULL, &event));
    enum healcl_status status = read_write(device, event, before, pair, error);
    (void)device->cl->clReleaseEvent(event);
    return status;
}

/* *advance: whether the device's clock does. */
static enum healcl_status read_clocks(struct healcl_device *device, struct clock_pair *best,
                                      bool *advance, struct healcl_error *error)
{
    cl_int code = CL_SUCCESS;
    cl_mem memory =
        device->cl->clCreateBuffer(device->context, CL_MEM_READ_WRITE, sizeof(cl_int), NULL, &code);
    TRY_CL(error, "clCreateBuffer", code);
    enum healcl_status status = HEALCL_OK;
    uint64_t first = 0;
    for (int i = 0; i < CLOCK_READINGS && status == HEALCL_OK; i++) {
        struct clock_pair pair = {0};
        status = read_clocks_once(device, memory, &pair, error);
        if (i == 0 || pair.error < best->error)
            *best = pair;
        first = i == 0 ? pair.device : first;
        *advance = pair.device > first;
    }
    (void)device->cl->clReleaseMemObject(memory);
    return status;
}

enum healcl_status device_takes_event_times(struct healcl_device *device, bool *takes,
                                            struct healcl_error *error)
{
    struct clock_pair ignored;
    return read_clocks(device, &ignored, takes, error);
}

/* ---------------------------------------------------------------- begin and end */

enum healcl_status device_trace_begin(struct healcl_device *device, struct trace *trace,
                                      struct healcl_error *error)
{
    if (!trace)
        return HEALCL_OK;
    TRY(device_set_profiling(device, true, error));
    TRY(device_finish(device, error));
    TRY(device_renew_queue(device, &device->transfer, CL_QUEUE_PROFILING_ENABLE, error));
    bool advance;
    TRY(read_clocks(device, &device->trace_clock, &advance, error));
    device->trace = trace;
    return HEALCL_OK;
}

void device_trace_end(struct healcl_device *device)
{
    struct clock_pair last = {.host = 0};
    bool advance;
    if (!device->trace)
        return;
    if (!device->event_times || read_clocks(device, &last, &advance, NULL) != HEALCL_OK)
        last = device->trace_clock;
    if (device->event_times)
        trace_convert(device->trace, &device->trace_clock, &last);
    device->trace = NULL;
}

/* ---------------------------------------------------------------- transfers */

enum healcl_status traced_command_init(struct traced_command *traced, struct healcl_device *device,
                                       enum trace_track track, const char *name, uint64_t bytes,
                                       struct healcl_error *error)
{
    *traced = (struct traced_command){.log = NULL};
    if (!device->trace)
        return HEALCL_OK;
    traced->log = track == TRACE_TRANSFER ? &device->transfers : &device->launches;
    TRY(command_log_reserve(traced->log, error));
    traced->command.span = trace_command(device->trace, track, "transfer", name, bytes);
    command_begin(device, &traced->command);
    traced->event = &traced->command.event;
    return HEALCL_OK;
}

enum healcl_status traced_command_log(struct traced_command *traced, struct healcl_device *device,
                                      struct healcl_error *error)
{
    return traced->event ? command_log_add(device, traced->log, &traced->command, error)
                         : HEALCL_OK;
}
