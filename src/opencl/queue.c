/* The command queues of a handle: turns of handles, the order of commands, waiting and polling. */
#include <stdlib.h>

#include "opencl/internal.h"

/* ---------------------------------------------------------------- turns of handles */

static bool takes_turns(const struct healcl_device *device)
{
    return device && (device->callers.queue || !device->tuning.queues_overlap);
}

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
    uint32_t after;     /* bit i: it waits, directly or not, for recent command i */
    bool orders_all;    /* it waits for all earlier commands, and all later ones wait for it */
    const void *kernel; /* or NULL */
    size_t groups;
    uint32_t access_count;
    struct access accesses[LAUNCH_ARGUMENTS_MAX];
};

/* The last command that orders all, later launches, and the current command at the end. */
struct recent_commands {
    struct recent_command commands[LAUNCHES_AT_ONCE_MAX + 1];
    uint32_t count;
};

void overlap_forget(struct healcl_device *device)
{
    if (!device->recent)
        return;
    for (uint32_t i = 0; i < device->recent->count; i++)
        (void)device->cl->clReleaseEvent(device->recent->commands[i].event);
    device->recent->count = 0;
}

/* ---------------------------------------------------------------- what commands touch */

static void note_accesses(struct recent_command *command, uint32_t count,
                          const struct launch_argument *arguments)
{
    command->access_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (arguments[i].buffer)
            command->accesses[command->access_count++] =
                (struct access){arguments[i].buffer->memory, arguments[i].read_only};
}

/* Whether commands must not overlap, because one writes what the other one reads or writes. */
static bool must_be_ordered(const struct recent_command *a, const struct recent_command *b)
{
    if (a->orders_all || b->orders_all)
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

void overlap_begin(struct healcl_device *device, const struct command_use *use,
                   struct awaited_events *awaited)
{
    struct recent_commands *recent = device->recent;
    device->commands++;
    awaited->count = 0;
    if (!device->overlaps)
        return;
    struct recent_command *command = &recent->commands[recent->count];
    command->after = 0;
    command->kernel = use->kernel;
    command->groups = use->groups;
    command->orders_all =
        use->argument_count == 0 || recent->count >= device->tuning.launches_at_once;
    if (!command->orders_all)
        note_accesses(command, use->argument_count, use->arguments);
    for (uint32_t i = recent->count; i-- > 0;) {
        const struct recent_command *before = &recent->commands[i];
        if (!(command->after >> i & 1) && must_be_ordered(before, command)) {
            awaited->events[awaited->count++] = before->event;
            command->after |= before->after | 1u << i;
        }
    }
}

void overlap_end(struct healcl_device *device, cl_event event)
{
    struct recent_commands *recent = device->recent;
    if (!device->overlaps)
        return;
    struct recent_command *command = &recent->commands[recent->count];
    if (command->orders_all) {
        overlap_forget(device);
        command = &recent->commands[0];
        command->orders_all = true;
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

/* Launches that are timed do not overlap. */
static cl_command_queue_properties compute_properties(const struct healcl_device *device,
                                                      bool profiling)
{
    if (profiling)
        return CL_QUEUE_PROFILING_ENABLE;
    return device->tuning.launches_at_once > 1 && device->info.out_of_order
               ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
               : 0;
}

enum healcl_status device_create_queues(struct healcl_device *device, struct healcl_error *error)
{
    cl_command_queue_properties computing = compute_properties(device, false);
    TRY(create_queue(device, computing, &device->compute, error));
    device->overlaps = computing & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    TRY(create_queue(device, 0, &device->transfer, error));
    device->recent = calloc(1, sizeof *device->recent);
    NEED_MEMORY(device->recent, error);
    return HEALCL_OK;
}

enum healcl_status device_await_uploads(struct healcl_device *device, struct healcl_error *error)
{
    if (!device->upload)
        return HEALCL_OK;
    const struct opencl *cl = device->cl;
    cl_int code = CL_INVALID_OPERATION; /* OpenCL 1.0 lacks this barrier */
    if (cl->clEnqueueBarrierWithWaitList)
        code = cl->clEnqueueBarrierWithWaitList(device->compute, 1, &device->upload, NULL);
    if (code == CL_INVALID_OPERATION)
        code = WAIT_CL(cl, clWaitForEvents, 1, &device->upload);
    TRY_CL(error, "clEnqueueBarrierWithWaitList", code);
    (void)cl->clReleaseEvent(device->upload);
    device->upload = NULL;
    return HEALCL_OK;
}

void device_note_idle(struct healcl_device *device)
{
    overlap_forget(device);
    device->epoch++;
    device->unflushed = 0;
}

cl_int device_finish_compute(struct healcl_device *device)
{
    cl_int code = WAIT_CL(device->cl, clFinish, device->compute);
    overlap_forget(device);
    if (code == CL_SUCCESS)
        device_note_idle(device);
    return code;
}

enum healcl_status device_finish(struct healcl_device *device, struct healcl_error *error)
{
    TRY_CALL(error, device->cl, clFinish, device->transfer);
    TRY_CL(error, "clFinish", device_finish_compute(device));
    return HEALCL_OK;
}

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

enum healcl_status device_renew_compute(struct healcl_device *device, bool profiling,
                                        struct healcl_error *error)
{
    if (device->callers.queue) /* a caller's queue is not replaced */
        return device_finish(device, error);
    cl_command_queue_properties properties = compute_properties(device, profiling);
    device_turn_begin(device); /* during the turn no other thread uses the queue */
    enum healcl_status status = device_finish(device, error);
    if (status == HEALCL_OK)
        status = device_renew_queue(device, &device->compute, properties, error);
    if (status == HEALCL_OK)
        device->overlaps = properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    device_turn_end(device);
    return status;
}

enum healcl_status device_set_tuning(struct healcl_device *device,
                                     const struct device_tuning *tuning, struct healcl_error *error)
{
    device->tuning = *tuning;
    device->choices_epoch++;
    bool overlaps = compute_properties(device, false) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    return device->profiling || device->overlaps == overlaps
               ? HEALCL_OK
               : device_renew_compute(device, false, error);
}

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
    device->compute = device->callers.queue = queue;
    device->queue_takes_times = properties & CL_QUEUE_PROFILING_ENABLE;
    device->overlaps = properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- polling */

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

bool device_poll(struct healcl_device *device, bool is_new)
{
    struct device_context *shared = device->shared;
    const bool turns = takes_turns(device);
    if (turns && pthread_mutex_trylock(&shared->turn) != 0)
        return false;
    bool has_ended = turns && shared->latest != device; /* the latest handle has waited for it */
    if (!has_ended) {
        if (is_new || !device->marker)
            set_marker(device);
        cl_int state = CL_COMPLETE;
        has_ended = !device->marker ||
                    device->cl->clGetEventInfo(device->marker, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                               sizeof state, &state, NULL) != CL_SUCCESS ||
                    state <= CL_COMPLETE; /* an error code is negative */
    }
    if (turns)
        pthread_mutex_unlock(&shared->turn);
    return has_ended;
}
