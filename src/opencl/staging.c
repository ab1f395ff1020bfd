/* Pinned memory of the host that data go through on their way to and from a device. */
#include "opencl/device_internal.h"

enum {
    HALF_BYTES_MIN = 4096,
    ALIGNMENT = 64 /* of what lies side by side in a half */
};

uint64_t staging_half_bytes(const struct healcl_device *device)
{
    uint64_t wanted = device->tuning.staging_bytes;
    if (wanted == 0)
        return 0;
    if (device->staging.memory)
        return device->staging.half_bytes;
    return wanted < HALF_BYTES_MIN ? HALF_BYTES_MIN : wanted;
}

static enum healcl_status create(struct healcl_device *device, struct healcl_error *error)
{
    const struct opencl *cl = device->cl;
    const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
    struct staging made = {.half_bytes = staging_half_bytes(device)};
    const size_t bytes = (size_t)(2 * made.half_bytes);
    void *address;
    cl_int code = CL_SUCCESS;
    made.memory = cl->clCreateBuffer(device->context, flags, bytes, NULL, &code);
    if (device_recovers(device, code))
        made.memory = cl->clCreateBuffer(device->context, flags, bytes, NULL, &code);
    TRY_CL(error, "clCreateBuffer", code);
    enum healcl_status status = device_map(device, TRACE_TRANSFER, made.memory,
                                           CL_MAP_READ | CL_MAP_WRITE, 0, bytes, &address, error);
    if (status != HEALCL_OK) {
        (void)cl->clReleaseMemObject(made.memory);
        return status;
    }
    made.address = address;
    device->staging = made;
    return HEALCL_OK;
}

enum healcl_status staging_await(struct healcl_device *device, uint32_t half,
                                 struct healcl_error *error)
{
    cl_event event = device->staging.halves[half].event;
    if (!event)
        return HEALCL_OK;
    device->staging.halves[half].event = NULL;
    cl_int code = device->cl->clWaitForEvents(1, &event);
    (void)device->cl->clReleaseEvent(event);
    TRY_CL(error, "clWaitForEvents", code);
    return HEALCL_OK;
}

enum healcl_status staging_turn(struct healcl_device *device, struct healcl_error *error)
{
    struct staging *staging = &device->staging;
    if (!staging->memory)
        return create(device, error);
    uint32_t other = staging->current ^ 1;
    TRY(staging_await(device, other, error));
    staging->current = other;
    staging->halves[other].used = 0;
    return HEALCL_OK;
}

enum healcl_status staging_take(struct healcl_device *device, uint64_t bytes, void **memory,
                                struct healcl_error *error)
{
    struct staging *staging = &device->staging;
    if (!staging->memory || bytes > staging->half_bytes - staging->halves[staging->current].used)
        TRY(staging_turn(device, error));
    uint64_t *used = &staging->halves[staging->current].used;
    *memory = staging->address + staging->current * staging->half_bytes + *used;
    *used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; /* divides a half */
    return HEALCL_OK;
}

void staging_used_by(struct healcl_device *device, cl_event event)
{
    cl_event *last = &device->staging.halves[device->staging.current].event;
    if (*last)
        (void)device->cl->clReleaseEvent(*last);
    *last = event;
}

void staging_release(struct healcl_device *device)
{
    struct staging *staging = &device->staging;
    for (int half = 0; half < 2; half++)
        if (staging->halves[half].event)
            (void)device->cl->clReleaseEvent(staging->halves[half].event);
    if (staging->memory) {
        (void)device->cl->clEnqueueUnmapMemObject(device->transfer, staging->memory,
                                                  staging->address, 0, NULL, NULL);
        (void)device->cl->clFinish(device->transfer);
        (void)device->cl->clReleaseMemObject(staging->memory);
    }
}
