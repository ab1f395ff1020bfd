/* Data between host and device. */
#include <stdlib.h>
#include <string.h>

#include "device/internal.h"

/* Up to this, an upload is a copy on the compute queue. With PoCL 3.1 that takes 5 us where mapping
 * takes 45, most of it for two threads to wake each other. */
enum { SMALL_UPLOAD_BYTES = 1 << 16 };

/* Finds what a command that writes a buffer, or is done with it, waits for. */
static void begin_on(struct healcl_device *device, const struct buffer *buffer,
                     struct awaited_events *awaited)
{
    const struct launch_argument argument = {.buffer = buffer};
    overlap_begin(device, &(struct command_use){.argument_count = 1, .arguments = &argument},
                  awaited);
}

/* ---------------------------------------------------------------- mapping */

static enum healcl_status map(struct healcl_device *device, enum trace_track track, cl_mem memory,
                              cl_map_flags flags, uint64_t offset, uint64_t bytes, void **address,
                              struct healcl_error *error)
{
    const struct opencl *cl = device->cl;
    cl_command_queue queue = track == TRACE_TRANSFER ? device->transfer : device->compute;
    const char *name = flags == CL_MAP_READ ? "map for reading" : "map for writing";
    cl_int code = CL_SUCCESS;
    for (int attempt = 0; attempt < 2; attempt++) {
        struct traced_command traced;
        struct awaited_events awaited = {.count = 0};
        TRY(traced_command_init(&traced, device, track, name, bytes, error));
        if (queue == device->compute)
            overlap_begin(device, &(struct command_use){0}, &awaited);
        *address = cl->clEnqueueMapBuffer(queue, memory, CL_TRUE, flags, (size_t)offset,
                                          (size_t)bytes, AWAITED(awaited), traced.event, &code);
        if (code == CL_SUCCESS) {
            enum healcl_status status = traced_command_log(&traced, device, error);
            if (status != HEALCL_OK)
                (void)cl->clEnqueueUnmapMemObject(queue, memory, *address, 0, NULL, NULL);
            return status;
        }
        if (!device_recovers(device, code))
            break;
    }
    *address = NULL;
    opencl_error(error, code, "clEnqueueMapBuffer", __FILE__, __LINE__);
    error_prefix(error,
                 "a buffer's %llu bytes (%llu bytes are in use): ", (unsigned long long)bytes,
                 (unsigned long long)(device->bytes_live - device->bytes_pooled));
    return HEALCL_DEVICE;
}

enum healcl_status device_await_uploads(struct healcl_device *device, struct healcl_error *error)
{
    if (!device->upload)
        return HEALCL_OK;
    const struct opencl *cl = device->cl;
    TRY_CL(error, "clEnqueueBarrierWithWaitList",
           cl->clEnqueueBarrierWithWaitList(device->compute, 1, &device->upload, NULL));
    (void)cl->clReleaseEvent(device->upload);
    device->upload = NULL;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- small writes */

static cl_int enqueue_copy(struct healcl_device *device, cl_mem staging, uint64_t from,
                           const struct buffer *buffer, uint32_t chunk, uint64_t to, uint64_t bytes,
                           cl_event *event)
{
    struct awaited_events awaited;
    begin_on(device, buffer, &awaited);
    return device->cl->clEnqueueCopyBuffer(device->compute, staging, buffer->chunks[chunk],
                                           (size_t)from, (size_t)to, (size_t)bytes,
                                           AWAITED(awaited), event);
}

/* Copies a staging buffer's bytes to where they belong, chunk by chunk. */
static enum healcl_status copy_to(struct healcl_device *device, cl_mem staging,
                                  const struct buffer *buffer, uint64_t offset, uint64_t bytes,
                                  struct healcl_error *error)
{
    for (uint64_t done = 0; done < bytes;) {
        uint32_t chunk = (uint32_t)((offset + done) / device->chunk_bytes);
        uint64_t start = (offset + done) % device->chunk_bytes;
        uint64_t part = device->chunk_bytes - start;
        if (part > bytes - done)
            part = bytes - done;
        struct traced_command traced;
        cl_event event = NULL;
        TRY(traced_command_init(&traced, device, TRACE_COMPUTE, "copy", part, error));
        cl_event *wanted = device->overlaps ? &event : traced.event;
        cl_int code = enqueue_copy(device, staging, done, buffer, chunk, start, part, wanted);
        if (device_recovers(device, code))
            code = enqueue_copy(device, staging, done, buffer, chunk, start, part, wanted);
        TRY_CL(error, "clEnqueueCopyBuffer", code);
        overlap_end(device, event);
        TRY(traced_command_log(&traced, device, error));
        done += part;
    }
    return HEALCL_OK;
}

/* clEnqueueWriteBuffer would need the data to outlive the call, or wait for the queue. A buffer
 * made from the data has copied them when it returns, and lives until the copy has run. */
enum healcl_status device_write(struct healcl_device *device, const struct buffer *buffer,
                                uint64_t offset, uint64_t bytes, const void *data,
                                struct healcl_error *error)
{
    if (bytes == 0)
        return HEALCL_OK;
    TRY(device_await_uploads(device, error));
    /* The interface takes a void *, but with this flag it only reads. */
    union {
        const void *read;
        void *taken;
    } host = {.read = data};
    const cl_mem_flags flags = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
    cl_int code = CL_SUCCESS;
    cl_mem staging =
        device->cl->clCreateBuffer(device->context, flags, (size_t)bytes, host.taken, &code);
    if (device_recovers(device, code))
        staging =
            device->cl->clCreateBuffer(device->context, flags, (size_t)bytes, host.taken, &code);
    TRY_CL(error, "clCreateBuffer", code);
    enum healcl_status status = copy_to(device, staging, buffer, offset, bytes, error);
    (void)device->cl->clReleaseMemObject(staging);
    return status;
}

/* ---------------------------------------------------------------- uploads */

static bool is_small(const struct healcl_device *device, const struct buffer *buffer,
                     uint32_t chunk)
{
    return buffer_chunk_bytes(device, buffer, chunk) <= SMALL_UPLOAD_BYTES;
}

enum healcl_status device_upload_map(struct healcl_device *device, const struct buffer *buffer,
                                     uint32_t chunk, void **memory, struct healcl_error *error)
{
    uint64_t bytes = buffer_chunk_bytes(device, buffer, chunk);
    if (!is_small(device, buffer, chunk))
        return map(device, TRACE_TRANSFER, buffer->chunks[chunk], CL_MAP_WRITE_INVALIDATE_REGION, 0,
                   bytes, memory, error);
    *memory = malloc((size_t)bytes);
    if (!*memory)
        NO_MEMORY(error);
    return HEALCL_OK;
}

static enum healcl_status end_small_upload(struct healcl_device *device,
                                           const struct buffer *buffer, uint32_t chunk,
                                           void *memory, struct healcl_error *error)
{
    enum healcl_status status =
        device_write(device, buffer, chunk * device->chunk_bytes,
                     buffer_chunk_bytes(device, buffer, chunk), memory, error);
    free(memory);
    return status;
}

/* The event also belongs to the device: as the one that the compute queue waits for. */
static enum healcl_status log_upload(struct healcl_device *device, cl_event event,
                                     struct traced_command *traced, struct healcl_error *error)
{
    if (!traced->event)
        return HEALCL_OK;
    TRY_CL(error, "clRetainEvent", device->cl->clRetainEvent(event));
    *traced->event = event;
    return traced_command_log(traced, device, error);
}

enum healcl_status device_upload_end(struct healcl_device *device, const struct buffer *buffer,
                                     uint32_t chunk, void *memory, struct healcl_error *error)
{
    if (is_small(device, buffer, chunk))
        return end_small_upload(device, buffer, chunk, memory, error);
    const struct opencl *cl = device->cl;
    struct traced_command traced;
    TRY(traced_command_init(&traced, device, TRACE_TRANSFER, "upload",
                            buffer_chunk_bytes(device, buffer, chunk), error));
    cl_event event = NULL;
    TRY_CL(error, "clEnqueueUnmapMemObject",
           cl->clEnqueueUnmapMemObject(device->transfer, buffer->chunks[chunk], memory, 0, NULL,
                                       &event));
    /* The transfer queue is in order: to wait for the last upload is to wait for all. */
    if (device->upload)
        (void)cl->clReleaseEvent(device->upload);
    device->upload = event;
    TRY_CL(error, "clFlush", cl->clFlush(device->transfer));
    return log_upload(device, event, &traced, error);
}

enum healcl_status device_upload(struct healcl_device *device, const struct buffer *buffer,
                                 const void *memory, struct healcl_error *error)
{
    void *mapped;
    if (is_small(device, buffer, 0))
        return device_write(device, buffer, 0, buffer->bytes, memory, error);
    TRY(map(device, TRACE_TRANSFER, buffer->chunks[0], CL_MAP_WRITE_INVALIDATE_REGION, 0,
            buffer->bytes, &mapped, error));
    memcpy(mapped, memory, (size_t)buffer->bytes);
    return device_upload_end(device, buffer, 0, mapped, error);
}

/* ---------------------------------------------------------------- downloads */

enum healcl_status device_download_map(struct healcl_device *device, const struct buffer *buffer,
                                       uint32_t chunk, uint64_t offset, uint64_t bytes,
                                       void **memory, struct healcl_error *error)
{
    *memory = NULL;
    TRY(device_await_uploads(device, error));
    size_t span = trace_begin(device->trace, "wait", "wait for the device");
    enum healcl_status status = map(device, TRACE_COMPUTE, buffer->chunks[chunk], CL_MAP_READ,
                                    offset, bytes, memory, error);
    trace_end(device->trace, span);
    if (status == HEALCL_OK)
        device_note_idle(device);
    return status;
}

enum healcl_status device_download_end(struct healcl_device *device, const struct buffer *buffer,
                                       uint32_t chunk, void *memory, struct healcl_error *error)
{
    struct awaited_events awaited;
    cl_event event = NULL;
    begin_on(device, buffer, &awaited);
    TRY_CL(error, "clEnqueueUnmapMemObject",
           device->cl->clEnqueueUnmapMemObject(device->compute, buffer->chunks[chunk], memory,
                                               AWAITED(awaited), device->overlaps ? &event : NULL));
    overlap_end(device, event);
    return HEALCL_OK;
}
