/* Several handles on one context, and the turns that they take. */
#include <pthread.h>
#include <stdlib.h>

#include "opencl/device_internal.h"

struct device_context {
    pthread_mutex_t
        turn; /* recursive: what opens and closes a handle has one, and so may callers */
    pthread_mutex_t lock; /* of handles */
    uint32_t handles;
    struct healcl_device *latest; /* whose turn was the last, and may have left commands; or NULL */
};

static bool takes_turns(const struct healcl_device *device)
{
    return device && device->shared && (device->brought.queue || !device->tuning.queues_overlap);
}

enum healcl_status context_share(struct healcl_device *device, struct healcl_error *error)
{
    struct device_context *shared = calloc(1, sizeof *shared);
    if (!shared)
        NO_MEMORY(error);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&shared->turn, &attributes);
    pthread_mutexattr_destroy(&attributes);
    pthread_mutex_init(&shared->lock, NULL);
    shared->handles = 1;
    device->shared = shared;
    return HEALCL_OK;
}

static void context_enter(struct healcl_device *device, struct device_context *shared)
{
    pthread_mutex_lock(&shared->lock);
    shared->handles++;
    pthread_mutex_unlock(&shared->lock);
    device->shared = shared;
}

void context_leave(struct healcl_device *device)
{
    struct device_context *shared = device->shared;
    if (!shared)
        return;
    if (shared->latest == device)
        shared->latest = NULL;
    device_turn_end(device);
    pthread_mutex_lock(&shared->lock);
    bool is_last = --shared->handles == 0;
    pthread_mutex_unlock(&shared->lock);
    if (!is_last)
        return;
    pthread_mutex_destroy(&shared->turn);
    pthread_mutex_destroy(&shared->lock);
    free(shared);
}

/* ---------------------------------------------------------------- turns */

void device_turn_begin(struct healcl_device *device)
{
    if (!takes_turns(device))
        return;
    struct device_context *shared = device->shared;
    pthread_mutex_lock(&shared->turn);
    struct healcl_device *latest = shared->latest;
    /* An error of these commands is one of the handle that they are of: it meets it again. */
    if (latest && latest != device) {
        (void)latest->cl->clFinish(latest->transfer);
        (void)latest->cl->clFinish(latest->compute);
    }
    shared->latest = device;
}

void device_turn_end(struct healcl_device *device)
{
    if (takes_turns(device))
        pthread_mutex_unlock(&device->shared->turn);
}

/* ---------------------------------------------------------------- polling */

static void set_marker(struct healcl_device *device)
{
    const struct opencl *cl = device->cl;
    if (device->marker)
        (void)cl->clReleaseEvent(device->marker);
    device->marker = NULL;
    if (device_await_uploads(device, NULL) != HEALCL_OK ||
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
           state <= CL_COMPLETE; /* an error is negative */
}

bool device_poll(struct healcl_device *device, bool is_new)
{
    struct device_context *shared = device->shared;
    const bool turns = takes_turns(device);
    if (turns && pthread_mutex_trylock(&shared->turn) != 0)
        return false;
    bool has_ended = turns && shared->latest != device; /* who had it then has waited for this */
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

static enum healcl_status create_beside(struct healcl_device *device, struct healcl_device *first,
                                        struct healcl_error *error)
{
    TRY_CL(error, "clRetainContext", first->cl->clRetainContext(first->context));
    device->context = first->context;
    TRY(device_create_queues(device, error));
    return first->brought.queue ? device_take_queue(device, first->brought.queue, error)
                                : HEALCL_OK;
}

enum healcl_status device_create_beside(struct healcl_device *device, struct healcl_device *first,
                                        struct healcl_error *error)
{
    device->cl = first->cl;
    device->info = first->info;
    device->tuning = first->tuning;
    device->brought = first->brought;
    device->brought.queue = NULL; /* until it is taken */
    context_enter(device, first->shared);
    device_turn_begin(device);
    enum healcl_status status = create_beside(device, first, error);
    device_turn_end(device);
    return status;
}
