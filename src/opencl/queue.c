/* The command queues of a handle: turns of handles, the order of commands, waiting and polling. */
#include <stdlib.h>

#include "opencl/internal.h"

/* ---------------------------------------------------------------- turns of handles */

/* Whether commands of this handle must not run beside those of other handles. NULL, the host, does
 * not take turns. */
static bool takes_turns(const struct healcl_device *device)
{
    return device && (device->options.queue || !device->tuning.queues_overlap);
}

/* Begins the turn of a handle: waits for the end of the last turn, and for the commands that it has
 * left. Some drivers crash if two queues of a device have commands at once (docs/DRIVERS.md). */
void device_turn_begin(struct healcl_device *device)
{
    if (!takes_turns(device))
        return;
    struct device_context *shared = device->shared;
    pthread_mutex_lock(&shared->turn);
    struct healcl_device *latest = shared->latest;
    /* Errors of these commands belong to their own handle, which meets them again. */
    if (latest && latest != device) {
        (void)WAIT_CL(latest->cl, clFinish, latest->transfer);
        (void)WAIT_CL(latest->cl, clFinish, latest->compute);
    }
    shared->latest = device;
}

void device_turn_end(struct healcl_device *device)
{
    if (takes_turns(device))
        pthread_mutex_unlock(&device->shared->turn);
}

/* ---------------------------------------------------------------- overlapping: what a command
 * waits for */

struct access {
    cl_mem memory;
    bool read_only;
};

struct recent_command {
    cl_event event;
    uint32_t waits_for; /* bit i: it waits, directly or not, for recent command i */
    bool is_barrier;    /* it waits for all earlier commands, and all later ones wait for it */
    const void *kernel; /* or NULL */
    size_t groups;
    uint32_t access_count;
    struct access accesses[LAUNCH_ARGUMENTS_MAX];
};

/* Commands that later ones may have to wait for: the last barrier, launches after it, and the
 * command that is being enqueued, at the end. */
struct recent_commands {
    struct recent_command commands[LAUNCHES_AT_ONCE_MAX + 1];
    uint32_t count;
};

/* Forgets the recent commands, which have ended, and releases their events. */
void overlap_forget(struct healcl_device *device)
{
    if (!device->recent)
        return;
    for (uint32_t i = 0; i < device->recent->count; i++)
        (void)device->cl->clReleaseEvent(device->recent->commands[i].event);
    device->recent->count = 0;
}

/* ---------------------------------------------------------------- what commands touch */

/* Notes what memory a command reads or writes: the buffers among its arguments. */
static void note_accesses(struct recent_command *command, uint32_t count,
                          const struct launch_argument *arguments)
{
    command->access_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (arguments[i].buffer)
            command->accesses[command->access_count++] =
                (struct access){arguments[i].buffer->memory, arguments[i].read_only};
}

/* Whether two commands must not overlap, because one writes what the other one reads or writes. A
 * barrier is ordered with every command. */
static bool must_be_ordered(const struct recent_command *a, const struct recent_command *b)
{
    if (a->is_barrier || b->is_barrier)
        return true;
    /* PoCL before 6.0 aborts if two launches of one kernel with different sizes run at once: it
     * confuses what it has loaded for them. */
    if (a->kernel && a->kernel == b->kernel && a->groups != b->groups)
        return true;
    for (uint32_t i = 0; i < a->access_count; i++)
        for (uint32_t j = 0; j < b->access_count; j++)
            if (a->accesses[i].memory == b->accesses[j].memory &&
                !(a->accesses[i].read_only && b->accesses[j].read_only))
                return true;
    return false;
}

/* ---------------------------------------------------------------- before and after a command */

/* Finds the recent commands that the next command must wait for, and awaits their events. Events
 * that another awaited command waits for itself are left out: the latest commands are tried first.
 * A command becomes a barrier if its memory is unknown or the list of recent commands is full. */
void overlap_begin(struct healcl_device *device, const struct command_use *use,
                   struct awaited_events *awaited)
{
    struct recent_commands *recent = device->recent;
    device->commands++;
    awaited->count = 0;
    if (!device->commands_overlap)
        return;
    struct recent_command *command = &recent->commands[recent->count];
    const bool is_full = recent->count >= device->tuning.launches_at_once;
    command->is_barrier = use->argument_count == 0 || is_full;
    command->kernel = use->kernel;
    command->groups = use->groups;
    if (!command->is_barrier)
        note_accesses(command, use->argument_count, use->arguments);
    uint32_t waits_for = 0; /* bit i: recent command i, or one that waits for it, is awaited */
    for (uint32_t i = recent->count; i-- > 0;) {
        const struct recent_command *before = &recent->commands[i];
        const bool comes_after = waits_for >> i & 1;
        if (comes_after || !must_be_ordered(before, command))
            continue;
        awaited->events[awaited->count++] = before->event;
        waits_for |= before->waits_for | 1u << i;
    }
    command->waits_for = waits_for;
}

/* Keeps the command of overlap_begin as a recent one, with its event. A barrier replaces all
 * earlier commands: waiting for it waits for them. */
void overlap_end(struct healcl_device *device, cl_event event)
{
    struct recent_commands *recent = device->recent;
    struct recent_command *command = &recent->commands[recent->count];
    if (command->is_barrier) {
        overlap_forget(device);
        command = &recent->commands[0];
        command->is_barrier = true;
    }
    command->event = event;
    recent->count++;
}

/* ---------------------------------------------------------------- queues */

/* Creates a queue with those of the properties that the device supports. */
static enum healcl_status create_queue(struct healcl_device *device,
                                       cl_command_queue_properties properties,
                                       cl_command_queue *queue, struct healcl_error *error)
{
    cl_int code = CL_SUCCESS;
    *queue = device->cl->clCreateCommandQueue(device->context, device->info.device_id,
                                              properties & device->info.queue_properties, &code);
    if (code != CL_SUCCESS)
        *queue = NULL;
    TRY_CL(error, "clCreateCommandQueue", code);
    return HEALCL_OK;
}

/* The properties of a compute queue. It is out of order if launches may overlap. A queue that is
 * timed is in order: otherwise times of launches would contain each other. */
static cl_command_queue_properties compute_properties(const struct healcl_device *device,
                                                      bool profiling)
{
    if (profiling)
        return CL_QUEUE_PROFILING_ENABLE;
    return device->tuning.launches_at_once > 1 && device->info.out_of_order
               ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
               : 0;
}

/* Creates both queues of a new handle, and its list of recent commands. The handle owns them, also
 * after an error. */
enum healcl_status device_create_queues(struct healcl_device *device, struct healcl_error *error)
{
    cl_command_queue_properties compute = compute_properties(device, false); /* not profiling */
    TRY(create_queue(device, compute, &device->compute, error));
    device->commands_overlap = compute & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    TRY(create_queue(device, 0, &device->transfer, error));
    device->recent = calloc(1, sizeof *device->recent);
    NEED_MEMORY(device->recent, error);
    return HEALCL_OK;
}

/* Makes later commands of the compute queue wait for the last upload, and so for all: the transfer
 * queue is in order. Without barriers, in OpenCL 1.0, the host waits. */
enum healcl_status device_await_uploads(struct healcl_device *device, struct healcl_error *error)
{
    if (!device->last_upload)
        return HEALCL_OK;
    const struct opencl *cl = device->cl;
    cl_int code = CL_INVALID_OPERATION; /* OpenCL 1.0 lacks this barrier */
    if (cl->clEnqueueBarrierWithWaitList)
        code = cl->clEnqueueBarrierWithWaitList(device->compute, 1, &device->last_upload, NULL);
    if (code == CL_INVALID_OPERATION)
        code = WAIT_CL(cl, clWaitForEvents, 1, &device->last_upload);
    TRY_CL(error, "clEnqueueBarrierWithWaitList", code);
    (void)cl->clReleaseEvent(device->last_upload);
    device->last_upload = NULL;
    return HEALCL_OK;
}

/* Notes that all commands of the compute queue have ended: buffers that are in the pool may be
 * filled by the host. */
void device_note_idle(struct healcl_device *device)
{
    overlap_forget(device);
    device->finish_count++;
    device->unflushed_launches = 0;
}

/* Waits for the compute queue. After an error later commands must not wait for the failed ones, so
 * recent commands are forgotten in any case. */
cl_int device_finish_compute(struct healcl_device *device)
{
    cl_int code = WAIT_CL(device->cl, clFinish, device->compute);
    overlap_forget(device);
    if (code == CL_SUCCESS)
        device_note_idle(device);
    return code;
}

/* Waits for both queues. */
enum healcl_status device_finish(struct healcl_device *device, struct healcl_error *error)
{
    TRY_CALL(error, device->cl, clFinish, device->transfer);
    TRY_CL(error, "clFinish", device_finish_compute(device));
    return HEALCL_OK;
}

/* Replaces an idle queue by a new one with other properties: OpenCL cannot change a queue. After an
 * error the old one stays. */
enum healcl_status device_renew_queue(struct healcl_device *device, cl_command_queue *queue,
                                      cl_command_queue_properties properties,
                                      struct healcl_error *error)
{
    cl_command_queue renewed = NULL;
    TRY(create_queue(device, properties, &renewed, error));
    (void)device->cl->clReleaseCommandQueue(*queue);
    *queue = renewed;
    return HEALCL_OK;
}

/* Replaces the compute queue by one that records times, or does not. The turn keeps other threads
 * from using the old one. A caller's queue is not replaced, only waited for. */
enum healcl_status device_renew_compute(struct healcl_device *device, bool profiling,
                                        struct healcl_error *error)
{
    if (device->options.queue)
        return device_finish(device, error);
    cl_command_queue_properties properties = compute_properties(device, profiling);
    device_turn_begin(device);
    enum healcl_status status = device_finish(device, error);
    THEN(status, device_renew_queue(device, &device->compute, properties, error));
    if (status == HEALCL_OK)
        device->commands_overlap = properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    device_turn_end(device);
    return status;
}

/* Sets the tuning of later launches, and makes steps choose their kernels anew. The compute queue
 * is replaced if the tuning changes whether launches may overlap. */
enum healcl_status device_set_tuning(struct healcl_device *device,
                                     const struct device_tuning *tuning, struct healcl_error *error)
{
    device->tuning = *tuning;
    device->choices_epoch++;
    const bool may_overlap =
        compute_properties(device, false) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    if (device->profiling || device->commands_overlap == may_overlap)
        return HEALCL_OK;
    return device_renew_compute(device, false, error);
}

/* From now on enqueues on a queue of the user's, in place of our compute queue, and retains it.
 * What it can do is read from its properties: whether it records times, and whether it is out of
 * order. */
enum healcl_status device_take_queue(struct healcl_device *device, cl_command_queue queue,
                                     struct healcl_error *error)
{
    cl_context context = NULL;
    cl_device_id id = NULL;
    cl_command_queue_properties properties = 0;
    const struct opencl *cl = device->cl;
    TRY_CALL(error, cl, clGetCommandQueueInfo, queue, CL_QUEUE_CONTEXT, sizeof context, &context,
             NULL);
    TRY_CALL(error, cl, clGetCommandQueueInfo, queue, CL_QUEUE_DEVICE, sizeof id, &id, NULL);
    TRY_CALL(error, cl, clGetCommandQueueInfo, queue, CL_QUEUE_PROPERTIES, sizeof properties,
             &properties, NULL);
    if (context != device->context || id != device->info.device_id)
        FAIL(error, HEALCL_USAGE, "the queue belongs to another %s",
             context != device->context ? "context" : "device");
    TRY(device_finish(device, error));
    TRY_CALL(error, cl, clRetainCommandQueue, queue);
    (void)cl->clReleaseCommandQueue(device->compute);
    device->compute = device->options.queue = queue;
    device->queue_takes_times = properties & CL_QUEUE_PROFILING_ENABLE;
    device->commands_overlap = properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- polling */

/* Enqueues a marker: its event is complete once all commands before it are. If that fails,
 * marker is NULL. Flushes, so that the device starts even if nobody waits. */
static void set_marker(struct healcl_device *device)
{
    const struct opencl *cl = device->cl;
    if (device->marker)
        (void)cl->clReleaseEvent(device->marker);
    device->marker = NULL;
    if (device_await_uploads(device, NULL) != HEALCL_OK || !cl->clEnqueueMarkerWithWaitList ||
        cl->clEnqueueMarkerWithWaitList(device->compute, 0, NULL, &device->marker) != CL_SUCCESS)
        device->marker = NULL;
    (void)cl->clFlush(device->compute);
}

/* Whether the commands before a handle's marker have ended. True without a marker, and if the
 * device fails: the caller's next call gets the error. */
static bool marker_has_ended(const struct healcl_device *device)
{
    cl_int state = CL_COMPLETE;
    if (!device->marker)
        return true;
    const cl_int code = device->cl->clGetEventInfo(
        device->marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    return code != CL_SUCCESS || state <= CL_COMPLETE; /* an error code is negative */
}

/* Whether all commands of a handle have ended, without waiting. is_new: commands were enqueued
 * since the last call, so a new marker is needed. */
bool device_poll(struct healcl_device *device, bool is_new)
{
    struct device_context *shared = device->shared;
    const bool turns = takes_turns(device);
    if (turns && pthread_mutex_trylock(&shared->turn) != 0)
        return false;
    bool has_ended = turns && shared->latest != device; /* the latest one waited for this one */
    if (!has_ended) {
        if (is_new || !device->marker)
            set_marker(device);
        has_ended = marker_has_ended(device);
    }
    if (turns)
        pthread_mutex_unlock(&shared->turn);
    return has_ended;
}
