/* Kernel launches and the times they took. */
#include <stdlib.h>

#include "device/internal.h"

enum {
    FLUSH_EVERY = 64,   /* launches, so that the device starts while the host goes on */
    HARVEST_EVERY = 256 /* profiled launches: many live events slow some drivers down */
};

/* ---------------------------------------------------------------- arguments */

static cl_int set_memory(const struct opencl *cl, cl_kernel kernel, cl_uint *index, cl_mem memory)
{
    return cl->clSetKernelArg(kernel, (*index)++, sizeof memory, &memory);
}

static cl_int set_argument(const struct opencl *cl, cl_kernel kernel, uint32_t chunks,
                           const struct launch_argument *argument, cl_uint *index)
{
    if (argument->table)
        return set_memory(cl, kernel, index, argument->table->chunks[0]);
    if (!argument->buffer)
        return cl->clSetKernelArg(kernel, (*index)++, argument->size, argument->value);
    const struct buffer *buffer = argument->buffer;
    cl_int code = CL_SUCCESS;
    for (uint32_t i = 0; code == CL_SUCCESS && i < chunks; i++)
        code = set_memory(cl, kernel, index, buffer->chunks[i < buffer->chunk_count ? i : 0]);
    return code;
}

static enum healcl_status set_arguments(struct healcl_device *device, cl_kernel kernel,
                                        const struct launch *launch, struct healcl_error *error)
{
    uint32_t chunks = launch_chunks(launch);
    cl_uint index = 0;
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const struct launch_argument *argument = &launch->arguments[i];
        if (argument->table && argument->table->chunk_count > 1)
            REFUSE(error, "a table of %llu bytes is larger than the %llu of one allocation",
                   (unsigned long long)argument->table->bytes,
                   (unsigned long long)device->chunk_bytes);
        cl_int code = set_argument(device->cl, kernel, chunks, argument, &index);
        if (code != CL_SUCCESS) {
            opencl_error(error, code, "clSetKernelArg", __FILE__, __LINE__);
            error_prefix(error, "argument %u: ", i);
            return HEALCL_DEVICE;
        }
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- records */

static bool has_room_for_record(struct healcl_device *device)
{
    if (device->record_count < device->record_capacity)
        return true;
    size_t capacity = device->record_capacity ? 2 * device->record_capacity : 256;
    struct launch_record *records = realloc(device->records, capacity * sizeof *records);
    if (!records)
        return false;
    device->records = records;
    device->record_capacity = capacity;
    return true;
}

static cl_int read_time(const struct opencl *cl, struct launch_record *record)
{
    cl_ulong start = 0, end = 0;
    cl_int code = cl->clGetEventProfilingInfo(record->event, CL_PROFILING_COMMAND_START,
                                              sizeof start, &start, NULL);
    if (code == CL_SUCCESS)
        code = cl->clGetEventProfilingInfo(record->event, CL_PROFILING_COMMAND_END, sizeof end,
                                           &end, NULL);
    if (code != CL_SUCCESS)
        return code;
    record->nanoseconds = end > start ? end - start : 0;
    (void)cl->clReleaseEvent(record->event);
    record->event = NULL;
    return CL_SUCCESS;
}

/* Reads the times of launches that have ended, without waiting for one that has not. */
static enum healcl_status harvest(struct healcl_device *device, struct healcl_error *error)
{
    const struct opencl *cl = device->cl;
    for (; device->records_read < device->record_count; device->records_read++) {
        struct launch_record *record = &device->records[device->records_read];
        cl_int state = CL_QUEUED;
        TRY_CL(error, "clGetEventInfo",
               cl->clGetEventInfo(record->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                                  &state, NULL));
        if (state < 0)
            TRY_CL(error, "a kernel", state);
        if (state != CL_COMPLETE)
            break;
        TRY_CL(error, "clGetEventProfilingInfo", read_time(cl, record));
    }
    return HEALCL_OK;
}

void device_records_drop(struct healcl_device *device)
{
    for (size_t i = device->records_read; i < device->record_count; i++)
        if (device->records[i].event)
            (void)device->cl->clReleaseEvent(device->records[i].event);
    device->record_count = 0;
    device->records_read = 0;
}

static enum healcl_status await_records(struct healcl_device *device, struct healcl_error *error)
{
    if (device->records_read == device->record_count)
        return HEALCL_OK;
    const struct launch_record *last = &device->records[device->record_count - 1];
    TRY_CL(error, "clWaitForEvents", device->cl->clWaitForEvents(1, &last->event));
    return harvest(device, error);
}

enum healcl_status device_take_times(struct healcl_device *device,
                                     void (*add)(void *context, uint32_t tag, uint64_t nanoseconds),
                                     void *context, struct healcl_error *error)
{
    enum healcl_status status = await_records(device, error);
    for (size_t i = 0; status == HEALCL_OK && i < device->record_count; i++)
        add(context, device->records[i].tag, device->records[i].nanoseconds);
    device_records_drop(device);
    return status;
}

/* ---------------------------------------------------------------- launches */

static cl_int enqueue(struct healcl_device *device, cl_kernel kernel, const struct launch *launch,
                      cl_event *event)
{
    size_t work_items = launch->groups * launch->local_size;
    return device->cl->clEnqueueNDRangeKernel(device->compute, kernel, 1, NULL, &work_items,
                                              &launch->local_size, 0, NULL, event);
}

static enum healcl_status enqueue_recorded(struct healcl_device *device, cl_kernel kernel,
                                           const struct launch *launch, struct healcl_error *error)
{
    if (device->profiling && !has_room_for_record(device))
        NO_MEMORY(error);
    cl_event event = NULL;
    cl_event *wanted = device->profiling ? &event : NULL;
    cl_int code = enqueue(device, kernel, launch, wanted);
    if (is_out_of_memory(code) && device->pool_count > 0) {
        device_make_room(device);
        code = enqueue(device, kernel, launch, wanted);
    }
    if (code != CL_SUCCESS) {
        opencl_error(error, code, "clEnqueueNDRangeKernel", __FILE__, __LINE__);
        if (is_out_of_memory(code))
            error_prefix(error, "%llu bytes are in use: ",
                         (unsigned long long)(device->bytes_live - device->bytes_pooled));
        return HEALCL_DEVICE;
    }
    if (device->profiling)
        device->records[device->record_count++] = (struct launch_record){event, launch->tag, 0};
    return HEALCL_OK;
}

static enum healcl_status launch_kernel(struct healcl_device *device, cl_kernel kernel,
                                        const struct launch *launch, struct healcl_error *error)
{
    if (launch->local_size == 0 || launch->groups > SIZE_MAX / launch->local_size)
        FAIL(error, HEALCL_DEVICE, "there cannot be %zu work-groups of %zu work-items",
             launch->groups, launch->local_size);
    TRY(set_arguments(device, kernel, launch, error));
    TRY(device_await_uploads(device, error));
    TRY(enqueue_recorded(device, kernel, launch, error));
    if (device->profiling && device->record_count % HARVEST_EVERY == 0)
        TRY(harvest(device, error));
    if (++device->unflushed >= FLUSH_EVERY) {
        device->unflushed = 0;
        TRY_CL(error, "clFlush", device->cl->clFlush(device->compute));
    }
    return HEALCL_OK;
}

enum healcl_status device_launch(struct healcl_device *device, const struct launch *launch,
                                 struct healcl_error *error)
{
    if (launch->groups == 0)
        return HEALCL_OK;
    cl_kernel kernel = NULL;
    TRY(device_kernel(device, launch, &kernel, error));
    enum healcl_status status = launch_kernel(device, kernel, launch, error);
    if (status != HEALCL_OK)
        error_prefix(error, "kernel '%s': ", launch->kernel);
    return status;
}
