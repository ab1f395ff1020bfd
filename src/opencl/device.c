/* The context and the queues of a device, and handles that share them. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "opencl/internal.h"

/* ---------------------------------------------------------------- handles on a context, and their
 * turns */

static bool takes_turns(const struct healcl_device *device)
{
    return device && (device->callers.queue || !device->tuning.queues_overlap);
}

struct device_context *context_make(void)
{
    struct device_context *shared = calloc(1, sizeof *shared);
    if (!shared)
        return NULL;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&shared->turn, &attributes);
    pthread_mutexattr_destroy(&attributes);
    pthread_mutex_init(&shared->lock, NULL);
    return shared;
}

void context_enter(struct healcl_device *device, struct device_context *shared)
{
    pthread_mutex_lock(&shared->lock);
    shared->handles++;
    pthread_mutex_unlock(&shared->lock);
    device->shared = shared;
}

static void context_leave(struct healcl_device *device)
{
    struct device_context *shared = device->shared;
    if (shared->latest == device)
        shared->latest = NULL;
    device_turn_end(device);
    pthread_mutex_lock(&shared->lock);
    bool is_last = --shared->handles == 0;
    pthread_mutex_unlock(&shared->lock);
    if (!is_last)
        return;
    shared_programs_free(device->cl, shared);
    package_free(device->programs->package);
    pthread_mutex_destroy(&shared->turn);
    pthread_mutex_destroy(&shared->lock);
    free(shared);
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

/* ---------------------------------------------------------------- create and release */

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

static enum healcl_status create_context(struct healcl_device *device, struct healcl_error *error)
{
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)device->info.platform_id, 0};
    cl_int code = CL_SUCCESS;
    waiting_driver(device->info.platform);
    if (device->callers.context) {
        TRY_CALL(error, device->cl, clRetainContext, device->callers.context);
        device->context = device->callers.context;
        return HEALCL_OK;
    }
    waiting_begin("clCreateContext");
    device->context =
        device->cl->clCreateContext(properties, 1, &device->info.device_id, NULL, NULL, &code);
    if (waiting_end(code) != CL_SUCCESS)
        device->context = NULL;
    TRY_CL(error, "clCreateContext", code);
    return HEALCL_OK;
}

static enum healcl_status create_queues(struct healcl_device *device, struct healcl_error *error)
{
    cl_command_queue_properties computing = compute_properties(device, false);
    TRY(create_queue(device, computing, &device->compute, error));
    device->overlaps = computing & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    TRY(create_queue(device, 0, &device->transfer, error));
    return overlap_init(device, error);
}

enum healcl_status device_create(struct healcl_device *device, struct healcl_error *error)
{
    TRY(create_context(device, error));
    return create_queues(device, error);
}

/* Errors are ignored from here on: everything is released in any case. */
void device_clear(struct healcl_device *device)
{
    const struct opencl *cl = device->cl;
    if (device->compute)
        (void)WAIT_CL(cl, clFinish, device->compute);
    if (device->transfer)
        (void)WAIT_CL(cl, clFinish, device->transfer);
    command_log_clear(device, &device->launches);
    command_log_clear(device, &device->transfers);
    free(device->launches.commands);
    free(device->transfers.commands);
    if (device->upload)
        (void)cl->clReleaseEvent(device->upload);
    if (device->marker)
        (void)cl->clReleaseEvent(device->marker);
    staging_release(device);
    device_pool_empty(device);
    free(device->pool);
    overlap_forget(device);
    free(device->recent);
}

void device_release(struct healcl_device *device)
{
    const struct opencl *cl = device->cl;
    if (device->transfer)
        (void)cl->clReleaseCommandQueue(device->transfer);
    if (device->compute)
        (void)cl->clReleaseCommandQueue(device->compute);
    context_leave(device);
    if (device->context)
        (void)cl->clReleaseContext(device->context);
}

/* ---------------------------------------------------------------- queues */

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

static enum healcl_status renew_compute(struct healcl_device *device, bool profiling,
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
    device->record_epoch++;
    bool overlaps = compute_properties(device, false) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    return device->profiling || device->overlaps == overlaps ? HEALCL_OK
                                                             : renew_compute(device, false, error);
}

enum healcl_status device_set_profiling(struct healcl_device *device, bool profiling,
                                        struct healcl_error *error)
{
    if (profiling == device->profiling)
        return HEALCL_OK;
    TRY(renew_compute(device, profiling, error));
    device->event_times = false;
    struct clock_pair ignored;
    if (profiling && !(device->callers.queue && !device->queue_takes_times))
        TRY(device_read_clocks(device, &ignored, &device->event_times, error));
    device->profiling = profiling;
    return HEALCL_OK;
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
        FAIL(error, HEALCL_USAGE, "the queue is of another %s",
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

static bool marker_has_ended(const struct healcl_device *device)
{
    cl_int state = CL_COMPLETE;
    return !device->marker ||
           device->cl->clGetEventInfo(device->marker, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                      sizeof state, &state, NULL) != CL_SUCCESS ||
           state <= CL_COMPLETE; /* an error code is negative */
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
        has_ended = marker_has_ended(device);
    }
    if (turns)
        pthread_mutex_unlock(&shared->turn);
    return has_ended;
}

/* ---------------------------------------------------------------- another handle */

enum healcl_status device_create_beside(struct healcl_device *device, struct healcl_device *first,
                                        struct healcl_error *error)
{
    TRY_CALL(error, first->cl, clRetainContext, first->context);
    device->context = first->context;
    device_turn_begin(device);
    enum healcl_status status = create_queues(device, error);
    if (status == HEALCL_OK && first->callers.queue)
        status = device_take_queue(device, first->callers.queue, error);
    device_turn_end(device);
    return status;
}

void device_log(const struct healcl_device *device, const char *format, ...)
{
    char line[512];
    if (!device->callers.log)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    device->callers.log(device->callers.log_context, line);
}
