/* Commands whose times are wanted. */

#include "core/array.h"
#include "core/clock.h"
#include "opencl/device_internal.h"

enum { READ_EVERY = 256 }; /* commands: many live events slow some drivers down */

enum healcl_status command_log_reserve(struct command_log *log, struct healcl_error *error)
{
    if (!ARRAY_GROW(log->commands, log->count, &log->capacity))
        NO_MEMORY(error);
    return HEALCL_OK;
}

static bool is_timed_by_host(const struct healcl_device *device)
{
    return device->profiling && !device->event_times;
}

cl_int event_time(const struct healcl_device *device, cl_event event, cl_profiling_info which,
                  cl_ulong *time)
{
    *time = 0;
    cl_int code = device->cl->clGetEventProfilingInfo(event, which, sizeof *time, time, NULL);
    return code == CL_PROFILING_INFO_NOT_AVAILABLE ? CL_SUCCESS : code;
}

/* How long the driver had the first launch of a kernel, and nothing to wait for, until it began. */
static cl_int read_first_launch(struct healcl_device *device, const struct command *before,
                                const struct command *command)
{
    cl_ulong ready = 0;
    cl_int code = event_time(device, command->event, CL_PROFILING_COMMAND_SUBMIT, &ready);
    if (code != CL_SUCCESS)
        return code;
    if (ready < command->queued)
        ready = command->queued;
    if (before && ready < before->end)
        ready = before->end;
    if (ready == 0 || ready >= command->start)
        return CL_SUCCESS;
    device->first_launch_nanoseconds += command->start - ready;
    trace_place(device->trace, command->first_span, CLOCK_DEVICE, ready, command->start);
    return CL_SUCCESS;
}

/* before: the command before it in its queue, or NULL. */
static cl_int read_time(struct healcl_device *device, const struct command *before,
                        struct command *command)
{
    static const cl_profiling_info moments[] = {
        CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
    cl_ulong times[3] = {0};
    for (size_t i = 0; i < 3 && !is_timed_by_host(device);
         i++) { /* a caller's queue may have none */
        cl_int code = event_time(device, command->event, moments[i], &times[i]);
        if (code != CL_SUCCESS)
            return code;
    }
    if (times[2] > times[1]) {
        command->queued = times[0];
        command->start = times[1];
        command->end = times[2];
        command->nanoseconds = command->end - command->start;
        trace_place(device->trace, command->span, CLOCK_DEVICE, command->start, command->end);
        cl_int code = command->is_first ? read_first_launch(device, before, command) : CL_SUCCESS;
        if (code != CL_SUCCESS)
            return code;
    }
    (void)device->cl->clReleaseEvent(command->event);
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
        TRY_CL(error, "clGetEventProfilingInfo",
               read_time(device, log->read > 0 ? command - 1 : NULL, command));
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
    if (command->is_first)
        device->first_launch_nanoseconds += command->nanoseconds;
    trace_place(device->trace, command->span, CLOCK_HOST, command->enqueued, now);
    return HEALCL_OK;
}

void device_note_host_work(struct healcl_device *device)
{
    device->host_worked = true;
}

enum healcl_status command_log_add(struct healcl_device *device, struct command_log *log,
                                   const struct command *command, struct healcl_error *error)
{
    struct command *added = &log->commands[log->count++];
    *added = *command;
    added->follows_host_work = device->host_worked;
    device->host_worked = false;
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

/* before: the command that ended last, or NULL. A driver that does not say when a command was
 * queued is taken to have had it in time. */
static struct launch_times times_of(const struct command *command, const struct command *before)
{
    struct launch_times times = {.tag = command->tag, .running = command->nanoseconds};
    if (!before || before->end == 0 || command->start <= before->end)
        return times;
    uint64_t ready = command->queued > before->end ? command->queued : before->end;
    times.without_command = ready - before->end;
    times.not_begun = command->start > ready ? command->start - ready : 0;
    return times;
}

enum healcl_status device_take_times(struct healcl_device *device,
                                     void (*add)(void *context, const struct launch_times *times),
                                     void *context, struct healcl_error *error)
{
    enum healcl_status status = await_log(device, &device->launches, error);
    if (status == HEALCL_OK)
        status = await_log(device, &device->transfers, error);
    const struct command *commands = device->launches.commands;
    for (size_t i = 0; status == HEALCL_OK && i < device->launches.count; i++) {
        if (!commands[i].tag)
            continue;
        const bool has_gap = i > 0 && !commands[i].follows_host_work;
        struct launch_times times = times_of(&commands[i], has_gap ? &commands[i - 1] : NULL);
        add(context, &times);
    }
    command_log_clear(device, &device->launches);
    command_log_clear(device, &device->transfers);
    return status;
}
