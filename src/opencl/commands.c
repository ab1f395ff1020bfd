/* Commands that have been enqueued; copies, and commands of others. */
#include "opencl/device_internal.h"

/* In an out-of-order queue of the caller's that is profiled two want the event. */
enum healcl_status command_enqueued(struct healcl_device *device, const struct command *command,
                                    struct healcl_error *error)
{
    cl_int code = CL_SUCCESS;
    if (device->profiling && device->overlaps)
        code = device->cl->clRetainEvent(command->event);
    overlap_end(device, command->event);
    TRY_CL(error, "clRetainEvent", code);
    return device->profiling ? command_log_add(device, &device->launches, command, error)
                             : HEALCL_OK;
}

/* ---------------------------------------------------------------- copies */

enum healcl_status device_copy(struct healcl_device *device, const struct buffer *from,
                               uint64_t from_offset, const struct buffer *to, uint64_t to_offset,
                               uint64_t bytes, const void *tag, struct healcl_error *error)
{
    const struct launch_argument arguments[] = {{.buffer = to},
                                                {.buffer = from, .read_only = true}};
    const struct command_use use = {.argument_count = 2, .arguments = arguments};
    struct command command = {.tag = tag};
    TRY(device_await_uploads(device, error));
    const bool is_timed = device->profiling && (tag || device->trace);
    if (is_timed) {
        TRY(command_log_reserve(&device->launches, error));
        command.span = trace_command(device->trace, TRACE_COMPUTE, "transfer", "copy", bytes);
        command_begin(device, &command);
    }
    cl_event *wanted = is_timed || device->overlaps ? &command.event : NULL;
    cl_int code = CL_SUCCESS;
    for (int attempt = 0; attempt < 2; attempt++) {
        struct awaited_events awaited;
        overlap_begin(device, &use, &awaited);
        code = device->cl->clEnqueueCopyBuffer(device->compute, from->memory, to->memory,
                                               (size_t)from_offset, (size_t)to_offset,
                                               (size_t)bytes, AWAITED(awaited), wanted);
        if (!device_recovers(device, code))
            break;
    }
    TRY_CL(error, "clEnqueueCopyBuffer", code);
    if (is_timed)
        return command_enqueued(device, &command, error);
    overlap_end(device, command.event);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- others' commands */

enum healcl_status device_call(struct healcl_device *device,
                               enum healcl_status (*function)(void *context,
                                                              struct healcl_error *error),
                               void *context, struct healcl_error *error)
{
    TRY(device_await_uploads(device, error));
    if (device->overlaps)
        TRY_CL(error, "clFinish", device_finish_compute(device));
    TRY(function(context, error));
    if (device->overlaps)
        TRY_CL(error, "clFinish", device_finish_compute(device));
    return HEALCL_OK;
}
