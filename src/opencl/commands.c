/* Commands on the queues: their times, copies, and commands of callers. */

#include "core/array.h"
#include "core/clock.h"
#include "opencl/internal.h"

/* ---------------------------------------------------------------- times */

enum { READ_EVERY = 256 }; /* commands: many live events make some drivers slow */

/* Whether commands are timed by the host's clock: some drivers' event times are useless. */
static bool is_timed_by_host(const struct healcl_device *device)
{
    return device->profiling && !device->event_times;
}

/* Reads one time of an event, in nanoseconds of the device's clock. It is 0 if the queue records no
 * times, as a caller's queue may. */
static cl_int event_time(const struct healcl_device *device, cl_event event,
                         cl_profiling_info which, cl_ulong *time)
{
    *time = 0;
    cl_int code = device->cl->clGetEventProfilingInfo(event, which, sizeof *time, time, NULL);
    return code == CL_PROFILING_INFO_NOT_AVAILABLE ? CL_SUCCESS : code;
}

/* Adds the time that a driver took to begin a kernel's first launch, because PoCL compiles the
 * kernel then. It begins when the launch was submitted and the command before it had ended. before:
 * that command, or NULL. */
static cl_int read_first_launch(struct healcl_device *device, const struct command *before,
                                const struct command *command)
{
    cl_ulong submitted = 0;
    cl_int code = event_time(device, command->event, CL_PROFILING_COMMAND_SUBMIT, &submitted);
    if (code != CL_SUCCESS)
        return code;
    cl_ulong could_begin = submitted > command->queued ? submitted : command->queued;
    if (before && could_begin < before->end)
        could_begin = before->end;
    if (could_begin > 0 && could_begin < command->start) {
        device->first_launch_nanoseconds += command->start - could_begin;
        trace_place(device->trace, command->first_span, CLOCK_DEVICE, could_begin, command->start);
    }
    return CL_SUCCESS;
}

/* Reads the times of a command that has ended, and releases its event. before: the previous command
 * in its queue, or NULL. */
static cl_int read_time(struct healcl_device *device, const struct command *before,
                        struct command *command)
{
    enum { QUEUED, START, END, MOMENTS };
    static const cl_profiling_info moments[MOMENTS] = {
        CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
    cl_ulong times[MOMENTS] = {0};
    for (size_t i = 0; i < MOMENTS && !is_timed_by_host(device); i++) {
        cl_int code = event_time(device, command->event, moments[i], &times[i]);
        if (code != CL_SUCCESS)
            return code;
    }
    if (times[END] > times[START]) { /* not in a caller's queue that records no times */
        command->queued = times[QUEUED];
        command->start = times[START];
        command->end = times[END];
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

/* Reads the times of commands that have ended, and stops at the first one that has not. A negative
 * state of an event is the code of an error. */
static enum healcl_status read_times(struct healcl_device *device, struct command_log *log,
                                     struct healcl_error *error)
{
    const struct opencl *cl = device->cl;
    for (; log->timed < log->count; log->timed++) {
        struct command *command = &log->commands[log->timed];
        cl_int state = CL_QUEUED;
        TRY_CALL(error, cl, clGetEventInfo, command->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                 sizeof state, &state, NULL);
        if (state < 0)
            TRY_CL(error, "a kernel", state);
        if (state != CL_COMPLETE)
            break;
        TRY_CL(error, "clGetEventProfilingInfo",
               read_time(device, log->timed > 0 ? command - 1 : NULL, command));
    }
    return HEALCL_OK;
}

/* Waits for a command and measures its time by the host's clock, for drivers without useful event
 * times. The launch that is a kernel's first may include its compilation. */
static enum healcl_status time_on_host(struct healcl_device *device, struct command *command,
                                       struct healcl_error *error)
{
    TRY_CALL(error, device->cl, clWaitForEvents, 1, &command->event);
    uint64_t now = monotonic_nanoseconds();
    command->nanoseconds = now - command->enqueued;
    if (command->is_first)
        device->first_launch_nanoseconds += command->nanoseconds;
    trace_place(device->trace, command->span, CLOCK_HOST, command->enqueued, now);
    return HEALCL_OK;
}

/* Adds an enqueued command to a log, which takes over its event. Reads earlier times now and then:
 * many live events make some drivers slow. command_begin has made room in the log. */
static enum healcl_status command_log_add(struct healcl_device *device, struct command_log *log,
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

/* Prepares a command that is enqueued next: decides if its event is needed, and finds the events
 * that it must wait for. use: the memory that it uses; NULL: it is on the transfer queue. */
enum healcl_status command_begin(struct healcl_device *device, struct queued_command *command,
                                 const struct command_use *use, struct healcl_error *error)
{
    struct command_log *log = command->log;
    command->is_computing = use != NULL;
    command->timed.event = NULL;
    /* Its event is needed for times, as an upload's, or if later commands may overlap with it. */
    command->event_out = log || !use || device->commands_overlap ? &command->timed.event : NULL;
    command->awaited.count = 0;
    if (use)
        TRY(device_await_uploads(device, error));
    if (log)
        NEED_MEMORY(ARRAY_GROW(log->commands, log->count, &log->capacity), error);
    if (log && is_timed_by_host(device)) {
        /* The time of earlier commands must not count. If this fails, so do the next calls. */
        (void)WAIT_CL(device->cl, clFinish, device->compute);
        command->timed.enqueued = monotonic_nanoseconds();
    }
    if (use)
        overlap_begin(device, use, &command->awaited);
    return HEALCL_OK;
}

/* Prepares a read, write or map that is enqueued next. It is timed only for traces, where it
 * appears under `name`. use: as for command_begin. */
enum healcl_status transfer_begin(struct healcl_device *device, struct queued_command *command,
                                  const struct command_use *use, const char *name, uint64_t bytes,
                                  struct healcl_error *error)
{
    *command = (struct queued_command){.log = NULL};
    if (device->trace) {
        command->log = use ? &device->launches : &device->transfers;
        command->timed.span = trace_command(device->trace, use ? TRACE_COMPUTE : TRACE_TRANSFER,
                                            "transfer", name, bytes);
    }
    return command_begin(device, command, use, error);
}

/* Stores another reference to an event in *last, in place of the one that was there. */
cl_int event_keep(struct healcl_device *device, cl_event *last, cl_event event)
{
    const cl_int code = device->cl->clRetainEvent(event);
    if (code != CL_SUCCESS)
        return code;
    if (*last)
        (void)device->cl->clReleaseEvent(*last);
    *last = event;
    return CL_SUCCESS;
}

/* Takes over the event of a command that was just enqueued, and gives a reference to each that
 * needs it: *last, the log, the recent commands that later ones may wait for. */
enum healcl_status command_end(struct healcl_device *device, struct queued_command *command,
                               cl_event *last, struct healcl_error *error)
{
    const bool overlaps = command->is_computing && device->commands_overlap;
    cl_event event = command->timed.event;
    cl_int code = last ? event_keep(device, last, event) : CL_SUCCESS;
    const bool is_logged = command->log && code == CL_SUCCESS;
    /* Both only in a caller's out-of-order queue: ours is in order while it is timed. */
    if (is_logged && overlaps)
        code = device->cl->clRetainEvent(event);
    if (overlaps)
        overlap_end(device, event);
    else if (event && !is_logged)
        (void)device->cl->clReleaseEvent(event);
    TRY_CL(error, "clRetainEvent", code);
    return is_logged ? command_log_add(device, command->log, &command->timed, error) : HEALCL_OK;
}

/* Drops all commands of a log, and releases the events of those without times yet. */
void command_log_clear(struct healcl_device *device, struct command_log *log)
{
    for (size_t i = log->timed; i < log->count; i++)
        if (log->commands[i].event)
            (void)device->cl->clReleaseEvent(log->commands[i].event);
    log->count = 0;
    log->timed = 0;
}

/* Waits for the last command of a log, and reads the times of all. The queue is in order if it is
 * timed: the last one ends last. */
static enum healcl_status await_log(struct healcl_device *device, struct command_log *log,
                                    struct healcl_error *error)
{
    if (log->timed == log->count)
        return HEALCL_OK;
    const struct command *last = &log->commands[log->count - 1];
    TRY_CALL(error, device->cl, clWaitForEvents, 1, &last->event);
    return read_times(device, log, error);
}

/* A launch's running time, and the idle time of the device before it. That is split: until the
 * launch was queued the host was late, after that the driver or the device was. before: the command
 * that ended last, or NULL. */
static struct launch_times times_of(const struct command *command, const struct command *before)
{
    struct launch_times times = {.tag = command->tag, .running = command->nanoseconds};
    const bool has_gap = before && before->end > 0 && before->end < command->start;
    if (!has_gap)
        return times;
    /* A driver that does not report when a command was queued gives 0: it was queued in time. */
    const uint64_t queued = command->queued > before->end ? command->queued : before->end;
    times.without_command = queued - before->end;
    times.not_begun = command->start > queued ? command->start - queued : 0;
    return times;
}

/* Waits for all timed commands, passes the times of launches with a tag to `add`, and empties both
 * logs. A gap after which the host ran a step is not the device's, so it is not counted. */
enum healcl_status device_take_times(struct healcl_device *device,
                                     void (*add)(void *context, const struct launch_times *times),
                                     void *context, struct healcl_error *error)
{
    enum healcl_status status = await_log(device, &device->launches, error);
    THEN(status, await_log(device, &device->transfers, error));
    const struct command *commands = device->launches.commands;
    for (size_t i = 0; status == HEALCL_OK && i < device->launches.count; i++) {
        if (!commands[i].tag) /* not a launch of a step */
            continue;
        const bool has_gap = i > 0 && !commands[i].follows_host_work;
        struct launch_times times = times_of(&commands[i], has_gap ? &commands[i - 1] : NULL);
        add(context, &times);
    }
    command_log_clear(device, &device->launches);
    command_log_clear(device, &device->transfers);
    return status;
}

/* ---------------------------------------------------------------- clocks */

enum { CLOCK_READINGS = 5 }; /* the best one counts */

/* Reads both clocks by a small write to the device. OpenCL 1.2 has no query for the device's time.
 * But a write is queued after the host began to enqueue it, and has ended when the host has waited
 * for it. What remains of the host's interval bounds the error between the clocks. A barrier would
 * not need memory, but NVIDIA's driver has no times for barriers and markers. */
static enum healcl_status read_clocks_once(struct healcl_device *device, cl_mem memory,
                                           struct clock_pair *pair, struct healcl_error *error)
{
    static const cl_int data = 0;
    cl_event event = NULL;
    cl_ulong queued = 0, end = 0;
    const uint64_t host_start = monotonic_nanoseconds();
    TRY_CALL(error, device->cl, clEnqueueWriteBuffer, device->compute, memory, CL_FALSE, 0,
             sizeof data, &data, 0, NULL, &event);
    const cl_int waited = WAIT_CL(device->cl, clWaitForEvents, 1, &event);
    const uint64_t host_interval = monotonic_nanoseconds() - host_start;
    cl_int code = event_time(device, event, CL_PROFILING_COMMAND_QUEUED, &queued);
    if (code == CL_SUCCESS && queued == 0) /* not reported by all drivers */
        code = event_time(device, event, CL_PROFILING_COMMAND_START, &queued);
    if (code == CL_SUCCESS)
        code = event_time(device, event, CL_PROFILING_COMMAND_END, &end);
    (void)device->cl->clReleaseEvent(event);
    TRY_CL(error, "clWaitForEvents", waited);
    TRY_CL(error, "clGetEventProfilingInfo", code);
    /* The device's interval lies somewhere in the host's, most likely in the middle. */
    const uint64_t interval = end > queued ? end - queued : 0;
    const uint64_t margin = host_interval > interval ? (host_interval - interval + 1) / 2 : 0;
    *pair = (struct clock_pair){.host = host_start + margin, .device = queued, .error = margin};
    return HEALCL_OK;
}

/* Reads both clocks several times and returns the most exact pair. *advance: whether the device's
 * clock moved between the readings; rusticl's does not. */
static enum healcl_status device_read_clocks(struct healcl_device *device, struct clock_pair *best,
                                             bool *advance, struct healcl_error *error)
{
    cl_mem memory;
    TRY(device_create_memory(device, CL_MEM_READ_WRITE, sizeof(cl_int), NULL, &memory, error));
    enum healcl_status status = HEALCL_OK;
    uint64_t first_time = 0;
    for (int i = 0; i < CLOCK_READINGS && status == HEALCL_OK; i++) {
        struct clock_pair pair = {0};
        status = read_clocks_once(device, memory, &pair, error);
        if (i == 0)
            first_time = pair.device;
        if (i == 0 || pair.error < best->error)
            *best = pair;
        *advance = pair.device > first_time;
    }
    (void)device->cl->clReleaseMemObject(memory);
    return status;
}

/* ---------------------------------------------------------------- begin and end */

/* Starts or stops timing commands. The compute queue is replaced, since OpenCL cannot change a
 * queue. Decides if the driver's times or the host's clock are used: by trying if the device's
 * clock advances. */
enum healcl_status device_set_profiling(struct healcl_device *device, bool profiling,
                                        struct healcl_error *error)
{
    if (profiling == device->profiling)
        return HEALCL_OK;
    TRY(device_renew_compute(device, profiling, error));
    device->event_times = false;
    struct clock_pair ignored;
    const bool records_times = !device->options.queue || device->queue_takes_times;
    if (profiling && records_times)
        TRY(device_read_clocks(device, &ignored, &device->event_times, error));
    device->profiling = profiling;
    return HEALCL_OK;
}

/* Begins to record the device's commands in a trace. Both queues must record times. The clocks are
 * read now and at the end, so that times can be converted even if they drift. */
enum healcl_status device_trace_begin(struct healcl_device *device, struct trace *trace,
                                      struct healcl_error *error)
{
    if (!trace)
        return HEALCL_OK;
    TRY(device_set_profiling(device, true, error)); /* of the compute queue */
    TRY(device_finish(device, error));
    TRY(device_renew_queue(device, &device->transfer, CL_QUEUE_PROFILING_ENABLE, error));
    bool advance;
    TRY(device_read_clocks(device, &device->trace_clock, &advance, error));
    device->trace = trace;
    return HEALCL_OK;
}

/* Ends a trace: converts times of the device's clock to the host's. If the clocks cannot be read
 * again, uses their distance at the beginning. */
void device_trace_end(struct healcl_device *device)
{
    struct clock_pair last = {.host = 0};
    bool advance;
    if (!device->trace)
        return;
    if (!device->event_times || device_read_clocks(device, &last, &advance, NULL) != HEALCL_OK)
        last = device->trace_clock;
    if (device->event_times)
        trace_convert(device->trace, &device->trace_clock, &last);
    device->trace = NULL;
}

/* ---------------------------------------------------------------- copies */

/* Enqueues a copy between buffers. The arguments only say what memory it writes and reads, so that
 * it is ordered with launches. If the device is out of memory, DEVICE_ATTEMPTS empties the pool and
 * tries again. */
enum healcl_status device_copy(struct healcl_device *device, const struct buffer *from,
                               uint64_t from_offset, const struct buffer *to, uint64_t to_offset,
                               uint64_t bytes, const void *tag, struct healcl_error *error)
{
    const struct launch_argument arguments[] = {{.buffer = to},
                                                {.buffer = from, .read_only = true}};
    const struct command_use use = {.argument_count = 2, .arguments = arguments};
    struct queued_command command = {.timed.tag = tag};
    if (device->profiling && (tag || device->trace)) {
        command.log = &device->launches;
        command.timed.span = trace_command(device->trace, TRACE_COMPUTE, "transfer", "copy", bytes);
    }
    cl_int code = CL_SUCCESS;
    DEVICE_ATTEMPTS(device, code)
    {
        TRY(command_begin(device, &command, &use, error));
        code = device->cl->clEnqueueCopyBuffer(device->compute, from->memory, to->memory,
                                               (size_t)from_offset, (size_t)to_offset,
                                               (size_t)bytes, EVENTS(command));
    }
    TRY_CL(error, "clEnqueueCopyBuffer", code);
    return command_end(device, &command, NULL, error);
}

/* ---------------------------------------------------------------- others' commands */

/* Calls a function of the user's, such as a vendor's operation, that enqueues commands itself. Its
 * memory accesses are unknown, so an out-of-order queue must be empty before and after it. */
enum healcl_status device_call(struct healcl_device *device,
                               enum healcl_status (*function)(void *context,
                                                              struct healcl_error *error),
                               void *context, struct healcl_error *error)
{
    TRY(device_await_uploads(device, error));
    device->commands++;
    if (device->commands_overlap)
        TRY_CL(error, "clFinish", device_finish_compute(device));
    TRY(function(context, error));
    if (device->commands_overlap)
        TRY_CL(error, "clFinish", device_finish_compute(device));
    return HEALCL_OK;
}
