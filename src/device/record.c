/* Commands whose times are wanted. */
#include <stdlib.h>

#include "core/clock.h"
#include "device/internal.h"

enum { READ_EVERY = 256 }; /* commands: many live events slow some drivers down */

enum healcl_status command_log_reserve(struct command_log *log, struct healcl_error *error)
{
    if (log->count < log->capacity)
        return HEALCL_OK;
    size_t capacity = log->capacity ? 2 * log->capacity : READ_EVERY;
    struct command *commands = realloc(log->commands, capacity * sizeof *commands);
    if (!commands)
        NO_MEMORY(error);
    log->commands = commands;
    log->capacity = capacity;
    return HEALCL_OK;
}

static bool is_timed_by_host(const struct healcl_device *device)
{
    return device->profiling && !device->event_times;
}

static cl_int read_time(struct healcl_device *device, struct command *command)
{
    const struct opencl *cl = device->cl;
    cl_ulong start = 0, end = 0;
    cl_int code = cl->clGetEventProfilingInfo(command->event, CL_PROFILING_COMMAND_START,
                                              sizeof start, &start, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetEventProfilingInfo(command->event, CL_PROFILING_COMMAND_END, sizeof end,
                                           &end, NULL);
    if (code != CL_SUCCESS)
        return code;
    if (end > start && !is_timed_by_host(device)) {
        command->nanoseconds = end - start;
        trace_place(device->trace, command->span, CLOCK_DEVICE, start, end);
    }
    (void)cl->clReleaseEvent(command->event);
    command->event = NULL;
    return CL_SUCCESS;
}

/* Reads the times of commands that have ended, without waiting for one that has not. */
static enum healcl_status read_times(struct healcl_device *device, struct command_log *log,
                                     struct healcl_error *error)
{
    const struct opencl *cl = device->cl;
    for (; log->read < log->count; log->read++) {
        struct command *command = &log->commands[log->read];
        cl_int state = CL_QUEUED;
        TRY_CL(error, "clGetEventInfo",
               cl->clGetEventInfo(command->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                                  &state, NULL));
        if (state < 0)
            TRY_CL(error, "a kernel", state);
        if (state != CL_COMPLETE)
            break;
        TRY_CL(error, "clGetEventProfilingInfo", read_time(device, command));
    }
    return HEALCL_OK;
}

void command_begin(struct healcl_device *device, struct command *command)
{
    if (!is_timed_by_host(device))
        return;
    (void)device->cl->clFinish(device->compute); /* if that fails, so does what follows */
    command->enqueued = monotonic_nanoseconds();
}

/* The command's time by the host's clock, where the driver takes none. */
static enum healcl_status time_on_host(struct healcl_device *device, struct command *command,
                                       struct healcl_error *error)
{
    TRY_CL(error, "clWaitForEvents", device->cl->clWaitForEvents(1, &command->event));
    uint64_t now = monotonic_nanoseconds();
    command->nanoseconds = now - command->enqueued;
    trace_place(device->trace, command->span, CLOCK_HOST, command->enqueued, now);
    return HEALCL_OK;
}

enum healcl_status command_log_add(struct healcl_device *device, struct command_log *log,
                                   const struct command *command, struct healcl_error *error)
{
    struct command *added = &log->commands[log->count++];
    *added = *command;
    if (is_timed_by_host(device))
        TRY(time_on_host(device, added, error));
    return log->count % READ_EVERY == 0 ? read_times(device, log, error) : HEALCL_OK;
}

void command_log_clear(struct healcl_device *device, struct command_log *log)
{
    for (size_t i = log->read; i < log->count; i++)
        if (log->commands[i].event)
            (void)device->cl->clReleaseEvent(log->commands[i].event);
    log->count = 0;
    log->read = 0;
}

static enum healcl_status await_log(struct healcl_device *device, struct command_log *log,
                                    struct healcl_error *error)
{
    if (log->read == log->count)
        return HEALCL_OK;
    const struct command *last = &log->commands[log->count - 1];
    TRY_CL(error, "clWaitForEvents", device->cl->clWaitForEvents(1, &last->event));
    return read_times(device, log, error);
}

enum healcl_status device_take_times(struct healcl_device *device,
                                     void (*add)(void *context, uint32_t tag, uint64_t nanoseconds),
                                     void *context, struct healcl_error *error)
{
    enum healcl_status status = await_log(device, &device->launches, error);
    if (status == HEALCL_OK)
        status = await_log(device, &device->transfers, error);
    for (size_t i = 0; status == HEALCL_OK && i < device->launches.count; i++) {
        const struct command *command = &device->launches.commands[i];
        if (command->tag != NOT_A_LAUNCH)
            add(context, (uint32_t)command->tag, command->nanoseconds);
    }
    command_log_clear(device, &device->launches);
    command_log_clear(device, &device->transfers);
    return status;
}
