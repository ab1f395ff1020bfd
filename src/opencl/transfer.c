/* Transfers between host and device. */
#include <stdlib.h>
#include <string.h>

#include "opencl/internal.h"

/* The size up to which data in memory are copied for an upload. Mapping would copy them, too. */
enum { COPIED_UPLOAD_BYTES = 1 << 20 };

/* The size up to which downloads are read into the host's memory. That takes one command; mapping
 * needs a second one to unmap. */
enum { SMALL_DOWNLOAD_BYTES = 1 << 12 };

static const struct command_use everything;

/* How bytes are read or written. */
struct transfer {
    const char *name;              /* for traces */
    const struct command_use *use; /* NULL: it is on the transfer queue */
    bool waits;
    cl_event *last; /* becomes the transfer's event; or NULL */
};

/* Reads bytes [offset, offset + bytes) of a buffer to memory, or writes data if memory is NULL. */
static enum healcl_status enqueue_transfer(struct healcl_device *device,
                                           const struct transfer *transfer,
                                           const struct buffer *buffer, uint64_t offset,
                                           uint64_t bytes, void *memory, const void *data,
                                           struct healcl_error *error)
{
    const struct opencl *cl = device->cl;
    cl_command_queue queue = transfer->use ? device->compute : device->transfer;
    cl_int code = CL_SUCCESS;
    if (bytes == 0)
        return HEALCL_OK;
    DEVICE_ATTEMPTS(device, code)
    {
        struct queued_command command;
        TRY(transfer_begin(device, &command, transfer->use, transfer->name, bytes, error));
        if (transfer->last)
            command.wanted = &command.timed.event;
        code = memory ? WAIT_CL(cl, clEnqueueReadBuffer, queue, buffer->memory, transfer->waits,
                                (size_t)offset, (size_t)bytes, memory, EVENTS(command))
                      : WAIT_CL(cl, clEnqueueWriteBuffer, queue, buffer->memory, transfer->waits,
                                (size_t)offset, (size_t)bytes, data, EVENTS(command));
        if (code != CL_SUCCESS)
            continue;
        enum healcl_status status = command_end(device, &command, transfer->last, error);
        if (transfer->use && transfer->waits)
            device_note_idle(device);
        return status;
    }
    TRY_CL(error, memory ? "clEnqueueReadBuffer" : "clEnqueueWriteBuffer", code);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- mapping */

/* Maps memory, and waits for it. use: as in struct transfer. If the device is out of memory, as
 * device_buffer_acquire. */
static enum healcl_status device_map(struct healcl_device *device, const struct command_use *use,
                                     cl_mem memory, cl_map_flags flags, uint64_t offset,
                                     uint64_t bytes, void **address, struct healcl_error *error)
{
    const struct opencl *cl = device->cl;
    cl_command_queue queue = use ? device->compute : device->transfer;
    const char *name = flags == CL_MAP_READ ? "map for reading" : "map for writing";
    cl_int code = CL_SUCCESS;
    DEVICE_ATTEMPTS(device, code)
    {
        struct queued_command command;
        TRY(transfer_begin(device, &command, use, name, bytes, error));
        waiting_begin("clEnqueueMapBuffer");
        *address = cl->clEnqueueMapBuffer(queue, memory, CL_TRUE, flags, (size_t)offset,
                                          (size_t)bytes, EVENTS(command), &code);
        if (waiting_end(code) == CL_SUCCESS) {
            enum healcl_status status = command_end(device, &command, NULL, error);
            if (status != HEALCL_OK)
                (void)cl->clEnqueueUnmapMemObject(queue, memory, *address, 0, NULL, NULL);
            return status;
        }
    }
    *address = NULL;
    (void)opencl_error(error, code, "clEnqueueMapBuffer", __FILE__, __LINE__);
    error_prefix(error,
                 "a buffer's %llu bytes (%llu bytes are in use): ", (unsigned long long)bytes,
                 (unsigned long long)(device->bytes_live - device->bytes_pooled));
    return HEALCL_DEVICE;
}

/* ---------------------------------------------------------------- staging memory */

/* Pinned host memory that data pass through on their way to and from a device. */
enum {
    HALF_BYTES_MIN = 4096,
    ALIGNMENT = 64 /* of adjacent data in a half */
};

static uint64_t staging_half_bytes(const struct healcl_device *device)
{
    uint64_t wanted = device->tuning.staging_bytes, most = device->info.max_allocation_bytes / 2;
    if (wanted == 0 && !device->info.lacks_maps)
        return 0;
    if (device->staging.address)
        return device->staging.half_bytes;
    wanted = wanted < most ? wanted : most / HALF_BYTES_MIN * HALF_BYTES_MIN;
    return wanted < HALF_BYTES_MIN ? HALF_BYTES_MIN : wanted;
}

enum healcl_status device_try_map(struct healcl_device *device, struct healcl_error *error)
{
    struct buffer buffer;
    void *address;
    TRY(device_buffer_acquire(device, HALF_BYTES_MIN, true, &buffer, error));
    device->info.lacks_maps = device_buffer_map(device, &buffer, CL_MAP_READ, 0, HALF_BYTES_MIN,
                                                &address, NULL) != HEALCL_OK;
    enum healcl_status status =
        device->info.lacks_maps ? HEALCL_OK : device_buffer_unmap(device, &buffer, address, error);
    device_buffer_release(device, &buffer);
    return status;
}

/* Maps a new buffer of the staging memory. */
static enum healcl_status map_pinned(struct healcl_device *device, size_t bytes,
                                     struct staging *made, struct healcl_error *error)
{
    const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
    void *address;
    cl_int code = CL_SUCCESS;
    DEVICE_ATTEMPTS(device, code)
    {
        made->memory = device->cl->clCreateBuffer(device->context, flags, bytes, NULL, &code);
    }
    TRY_CL(error, "clCreateBuffer", code);
    enum healcl_status status = device_map(device, NULL, made->memory, CL_MAP_READ | CL_MAP_WRITE,
                                           0, bytes, &address, error);
    if (status != HEALCL_OK)
        (void)device->cl->clReleaseMemObject(made->memory);
    made->address = address;
    return status;
}

static enum healcl_status create_staging(struct healcl_device *device, struct healcl_error *error)
{
    struct staging made = {.half_bytes = staging_half_bytes(device)};
    const size_t bytes = (size_t)(2 * made.half_bytes);
    if (device->info.lacks_maps)
        made.address = malloc(bytes);
    else
        TRY(map_pinned(device, bytes, &made, error));
    NEED_MEMORY(made.address, error);
    device->staging = made;
    return HEALCL_OK;
}

static enum healcl_status staging_await(struct healcl_device *device, uint32_t half,
                                        struct healcl_error *error)
{
    cl_event event = device->staging.halves[half].event;
    if (!event)
        return HEALCL_OK;
    device->staging.halves[half].event = NULL;
    cl_int code = WAIT_CL(device->cl, clWaitForEvents, 1, &event);
    (void)device->cl->clReleaseEvent(event);
    TRY_CL(error, "clWaitForEvents", code);
    return HEALCL_OK;
}

static enum healcl_status staging_turn(struct healcl_device *device, struct healcl_error *error)
{
    struct staging *staging = &device->staging;
    if (!staging->address)
        return create_staging(device, error);
    uint32_t other = staging->current ^ 1;
    TRY(staging_await(device, other, error));
    staging->current = other;
    staging->halves[other].used = 0;
    return HEALCL_OK;
}

static enum healcl_status staging_take(struct healcl_device *device, uint64_t bytes, void **memory,
                                       struct healcl_error *error)
{
    struct staging *staging = &device->staging;
    if (!staging->address || bytes > staging->half_bytes - staging->halves[staging->current].used)
        TRY(staging_turn(device, error));
    uint64_t *used = &staging->halves[staging->current].used;
    *memory = staging->address + staging->current * staging->half_bytes + *used;
    *used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; /* it divides a half */
    return HEALCL_OK;
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
        (void)WAIT_CL(device->cl, clFinish, device->transfer);
        (void)device->cl->clReleaseMemObject(staging->memory);
    } else {
        free(staging->address);
    }
}

/* ---------------------------------------------------------------- writes */

/* With clEnqueueWriteBuffer the data would have to outlive the call, or the call would have to
 * wait. A buffer created from the data has copied them on return, and is freed after the copy has
 * run. */
static enum healcl_status write_copy(struct healcl_device *device, const struct buffer *buffer,
                                     uint64_t offset, uint64_t bytes, const void *data,
                                     struct healcl_error *error)
{
    /* The interface takes a void *, but only reads from it with this flag. */
    union {
        const void *read;
        void *taken;
    } host = {.read = data};
    const cl_mem_flags flags = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
    struct buffer copy = {.bytes = bytes};
    cl_int code = CL_SUCCESS;
    DEVICE_ATTEMPTS(device, code)
    {
        copy.memory =
            device->cl->clCreateBuffer(device->context, flags, (size_t)bytes, host.taken, &code);
    }
    TRY_CL(error, "clCreateBuffer", code);
    enum healcl_status status = device_copy(device, &copy, 0, buffer, offset, bytes, NULL, error);
    (void)device->cl->clReleaseMemObject(copy.memory);
    return status;
}

enum healcl_status device_write(struct healcl_device *device, const struct buffer *buffer,
                                uint64_t offset, uint64_t bytes, const void *data,
                                struct healcl_error *error)
{
    if (bytes == 0)
        return HEALCL_OK;
    if (bytes <= DEVICE_COPIED_BYTES)
        return write_copy(device, buffer, offset, bytes, data, error);
    return enqueue_transfer(device, &(struct transfer){"write", &everything, true, NULL}, buffer,
                            offset, bytes, NULL, data, error);
}

/* ---------------------------------------------------------------- uploads */

uint64_t device_piece_bytes(const struct healcl_device *device)
{
    uint64_t half = staging_half_bytes(device);
    return half > 0 ? half : UINT64_MAX;
}

/* The transfer queue is in order: waiting for the last upload waits for all. */
static enum healcl_status end_upload(struct healcl_device *device, struct healcl_error *error)
{
    device->commands++;
    TRY_CALL(error, device->cl, clFlush, device->transfer);
    return HEALCL_OK;
}

/* Writes to a fresh buffer. If is_staged, data are in the current half of the staging memory.
 * Otherwise waits for the write. */
static enum healcl_status write_fresh(struct healcl_device *device, const struct buffer *buffer,
                                      uint64_t offset, uint64_t bytes, const void *data,
                                      bool is_staged, struct healcl_error *error)
{
    cl_event *half = &device->staging.halves[device->staging.current].event;
    TRY(enqueue_transfer(device, &(struct transfer){"upload", NULL, !is_staged, &device->upload},
                         buffer, offset, bytes, NULL, data, error));
    if (is_staged)
        TRY_CL(error, "clRetainEvent", event_keep(device, half, device->upload));
    return end_upload(device, error);
}

static enum healcl_status upload_staged(struct healcl_device *device, const struct buffer *buffer,
                                        const struct device_filler *filler,
                                        struct healcl_error *error)
{
    const uint64_t most = device_piece_bytes(device);
    for (uint64_t offset = 0; offset < buffer->bytes; offset += most) {
        const uint64_t left = buffer->bytes - offset, bytes = left < most ? left : most;
        void *memory;
        TRY(staging_take(device, bytes, &memory, error));
        TRY(filler->fill(filler->context, offset, bytes, memory, error));
        TRY(write_fresh(device, buffer, offset, bytes, memory, true, error));
    }
    return HEALCL_OK;
}

static enum healcl_status unmap_upload(struct healcl_device *device, const struct buffer *buffer,
                                       void *memory, struct healcl_error *error)
{
    struct queued_command command;
    enum healcl_status status =
        transfer_begin(device, &command, NULL, "upload", buffer->bytes, error);
    if (status != HEALCL_OK)
        command.wanted = NULL;
    cl_int code = device->cl->clEnqueueUnmapMemObject(device->transfer, buffer->memory, memory,
                                                      EVENTS(command));
    TRY(status);
    TRY_CL(error, "clEnqueueUnmapMemObject", code);
    TRY(command_end(device, &command, &device->upload, error));
    return end_upload(device, error);
}

static enum healcl_status upload_mapped(struct healcl_device *device, const struct buffer *buffer,
                                        const struct device_filler *filler,
                                        struct healcl_error *error)
{
    void *memory;
    if (buffer->bytes == 0)
        return HEALCL_OK;
    TRY(device_map(device, NULL, buffer->memory, CL_MAP_WRITE_INVALIDATE_REGION, 0, buffer->bytes,
                   &memory, error));
    enum healcl_status status = filler->fill(filler->context, 0, buffer->bytes, memory, error);
    struct healcl_error *later = status == HEALCL_OK ? error : NULL; /* the first error wins */
    enum healcl_status ended = unmap_upload(device, buffer, memory, later);
    return status != HEALCL_OK ? status : ended;
}

static enum healcl_status upload_small(struct healcl_device *device, uint64_t bytes,
                                       const struct device_filler *filler, struct buffer *buffer,
                                       struct healcl_error *error)
{
    uint64_t room = device_round_bytes(device, bytes);
    char *memory = malloc((size_t)room);
    NEED_MEMORY(memory, error);
    memset(memory + bytes, 0, (size_t)(room - bytes));
    enum healcl_status status = filler->fill(filler->context, 0, bytes, memory, error);
    if (status == HEALCL_OK)
        status = device_buffer_of(device, bytes, memory, buffer, error);
    free(memory);
    return status;
}

bool device_shares_memory(const struct healcl_device *device)
{
    return staging_half_bytes(device) == 0;
}

bool device_copies_upload(const struct healcl_device *device, uint64_t bytes)
{
    return device_shares_memory(device) && bytes > 0 && bytes <= DEVICE_COPIED_BYTES;
}

enum healcl_status device_upload(struct healcl_device *device, const struct buffer_place *place,
                                 uint64_t bytes, const struct device_filler *filler,
                                 struct buffer *buffer, struct healcl_error *error)
{
    memset(buffer, 0, sizeof *buffer);
    if (device_copies_upload(device, bytes))
        return upload_small(device, bytes, filler, buffer, error);
    TRY(device_buffer_acquire_at(device, place, bytes, true, buffer, error));
    enum healcl_status status = (device_shares_memory(device) ? upload_mapped : upload_staged)(
        device, buffer, filler, error);
    if (status != HEALCL_OK)
        device_buffer_release(device, buffer);
    return status;
}

static enum healcl_status fill_from_memory(void *context, uint64_t offset, uint64_t bytes,
                                           void *memory, struct healcl_error *error)
{
    (void)error;
    memcpy(memory, (const char *)context + offset, (size_t)bytes);
    return HEALCL_OK;
}

enum healcl_status device_upload_memory(struct healcl_device *device,
                                        const struct buffer_place *place, uint64_t bytes,
                                        const void *memory, struct buffer *buffer,
                                        struct healcl_error *error)
{
    union { /* it is only read */
        const void *read;
        void *context;
    } host = {.read = memory};
    memset(buffer, 0, sizeof *buffer);
    if (device_shares_memory(device) && bytes <= COPIED_UPLOAD_BYTES &&
        bytes == device_round_bytes(device, bytes))
        return device_buffer_of(device, bytes, host.context, buffer, error);
    if (bytes <= device_piece_bytes(device))
        return device_upload(device, place, bytes,
                             &(struct device_filler){fill_from_memory, host.context}, buffer,
                             error);
    /* Written at once, without a copy by the host. */
    TRY(device_buffer_acquire_at(device, place, bytes, true, buffer, error));
    enum healcl_status status = write_fresh(device, buffer, 0, bytes, memory, false, error);
    if (status != HEALCL_OK)
        device_buffer_release(device, buffer);
    return status;
}

/* ---------------------------------------------------------------- downloads */

enum healcl_status device_buffer_map(struct healcl_device *device, const struct buffer *buffer,
                                     cl_map_flags flags, uint64_t offset, uint64_t bytes,
                                     void **address, struct healcl_error *error)
{
    TRY(device_map(device, &everything, buffer->memory, flags, offset, bytes, address, error));
    device_note_idle(device);
    return HEALCL_OK;
}

enum healcl_status device_buffer_unmap(struct healcl_device *device, const struct buffer *buffer,
                                       void *address, struct healcl_error *error)
{
    const struct launch_argument argument = {.buffer = buffer};
    const bool is_slab = buffer->slab != NULL; /* commands refer to its parts */
    const struct command_use use = {.argument_count = is_slab ? 0 : 1, .arguments = &argument};
    struct queued_command command = {.log = NULL};
    TRY(command_begin(device, &command, &use, error));
    TRY_CALL(error, device->cl, clEnqueueUnmapMemObject, device->compute, buffer->memory, address,
             EVENTS(command));
    return command_end(device, &command, NULL, error);
}

enum healcl_status device_read(struct healcl_device *device, const struct buffer *buffer,
                               uint64_t offset, uint64_t bytes, void *memory,
                               struct healcl_error *error)
{
    size_t span = trace_begin(device->trace, "wait", "wait for the device");
    enum healcl_status status =
        enqueue_transfer(device, &(struct transfer){"download", &everything, true, NULL}, buffer,
                         offset, bytes, memory, NULL, error);
    trace_end(device->trace, span);
    return status;
}

enum healcl_status device_read_later(struct healcl_device *device, const struct buffer *buffer,
                                     uint64_t offset, uint64_t bytes, void *memory,
                                     struct healcl_error *error)
{
    const struct launch_argument argument = {.buffer = buffer, .read_only = true};
    const struct command_use use = {.argument_count = 1, .arguments = &argument};
    return enqueue_transfer(device, &(struct transfer){"read", &use, false, NULL}, buffer, offset,
                            bytes, memory, NULL, error);
}

static enum healcl_status download_mapped(struct healcl_device *device, const struct buffer *buffer,
                                          uint64_t offset, uint64_t bytes,
                                          const struct device_taker *taker,
                                          struct healcl_error *error)
{
    void *memory;
    if (bytes <= SMALL_DOWNLOAD_BYTES) {
        uint64_t copy[SMALL_DOWNLOAD_BYTES / sizeof(uint64_t)];
        TRY(device_read(device, buffer, offset, bytes, copy, error));
        return taker->take(taker->context, 0, bytes, copy, error);
    }
    size_t span = trace_begin(device->trace, "wait", "wait for the device");
    enum healcl_status status =
        device_buffer_map(device, buffer, CL_MAP_READ, offset, bytes, &memory, error);
    trace_end(device->trace, span);
    if (status != HEALCL_OK)
        return status;
    status = taker->take(taker->context, 0, bytes, memory, error);
    enum healcl_status ended =
        device_buffer_unmap(device, buffer, memory, status == HEALCL_OK ? error : NULL);
    return status != HEALCL_OK ? status : ended;
}

/* A piece that is being read into a half. */
struct staged_read {
    uint64_t bytes;
    uint32_t half;
    void *memory;
};

static enum healcl_status begin_read(struct healcl_device *device, const struct buffer *buffer,
                                     uint64_t offset, uint64_t bytes, struct staged_read *read,
                                     struct healcl_error *error)
{
    const uint64_t most = device_piece_bytes(device);
    read->bytes = bytes < most ? bytes : most;
    TRY(staging_turn(device, error));
    TRY(staging_take(device, read->bytes, &read->memory, error));
    read->half = device->staging.current;
    TRY(enqueue_transfer(device,
                         &(struct transfer){"download", &everything, false,
                                            &device->staging.halves[read->half].event},
                         buffer, offset, read->bytes, read->memory, NULL, error));
    TRY_CALL(error, device->cl, clFlush, device->compute);
    return HEALCL_OK;
}

/* While one piece is processed, the next one is read. */
static enum healcl_status read_and_take(struct healcl_device *device, const struct buffer *buffer,
                                        uint64_t offset, uint64_t bytes,
                                        const struct device_taker *taker,
                                        struct healcl_error *error)
{
    struct staged_read read, next = {0};
    TRY(begin_read(device, buffer, offset, bytes, &read, error));
    for (uint64_t done = 0; done < bytes; done += read.bytes, read = next) {
        const uint64_t after = done + read.bytes;
        if (after < bytes)
            TRY(begin_read(device, buffer, offset + after, bytes - after, &next, error));
        size_t span = trace_begin(device->trace, "wait", "wait for the device");
        enum healcl_status status = staging_await(device, read.half, error);
        trace_end(device->trace, span);
        TRY(status);
        TRY(taker->take(taker->context, done, read.bytes, read.memory, error));
    }
    device_note_idle(device);
    return HEALCL_OK;
}

static enum healcl_status download_staged(struct healcl_device *device, const struct buffer *buffer,
                                          uint64_t offset, uint64_t bytes,
                                          const struct device_taker *taker,
                                          struct healcl_error *error)
{
    enum healcl_status status = read_and_take(device, buffer, offset, bytes, taker, error);
    if (status == HEALCL_OK)
        return HEALCL_OK;
    /* A pending read uses a buffer that the caller may release. It may also have failed. */
    for (uint32_t half = 0; half < 2; half++)
        (void)!staging_await(device, half, NULL);
    (void)!device_finish_compute(device);
    return status;
}

enum healcl_status device_download(struct healcl_device *device, const struct buffer *buffer,
                                   uint64_t offset, uint64_t bytes,
                                   const struct device_taker *taker, struct healcl_error *error)
{
    if (bytes == 0)
        return HEALCL_OK;
    return (device_shares_memory(device) ? download_mapped : download_staged)(
        device, buffer, offset, bytes, taker, error);
}
