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
    cl_event *last_event; /* becomes the transfer's event; or NULL */
    void *read_to;        /* host memory; NULL for a write */
    const void *written;  /* host memory; NULL for a read */
};

/* Enqueues a read or write of bytes [offset, offset + bytes) of a buffer. A blocking transfer on
 * the compute queue leaves that queue empty. If the device is out of memory, DEVICE_ATTEMPTS
 * empties the pool and tries again. */
static enum healcl_status enqueue_transfer(struct healcl_device *device,
                                           const struct transfer *transfer,
                                           const struct buffer *buffer, uint64_t offset,
                                           uint64_t bytes, struct healcl_error *error)
{
    const struct opencl *cl = device->cl;
    const bool is_read = transfer->read_to != NULL;
    cl_command_queue queue = transfer->use ? device->compute : device->transfer;
    struct queued_command command;
    cl_int code = CL_SUCCESS;
    if (bytes == 0)
        return HEALCL_OK;
    DEVICE_ATTEMPTS(device, code)
    {
        TRY(transfer_begin(device, &command, transfer->use, transfer->name, bytes, error));
        if (transfer->last_event)
            command.event_out = &command.timed.event;
        code = is_read ? WAIT_CL(cl, clEnqueueReadBuffer, queue, buffer->memory, transfer->waits,
                                 (size_t)offset, (size_t)bytes, transfer->read_to, EVENTS(command))
                       : WAIT_CL(cl, clEnqueueWriteBuffer, queue, buffer->memory, transfer->waits,
                                 (size_t)offset, (size_t)bytes, transfer->written, EVENTS(command));
    }
    TRY_CL(error, is_read ? "clEnqueueReadBuffer" : "clEnqueueWriteBuffer", code);
    enum healcl_status status = command_end(device, &command, transfer->last_event, error);
    if (transfer->use && transfer->waits)
        device_note_idle(device);
    return status;
}

/* ---------------------------------------------------------------- mapping */

/* Maps memory for the host, and waits for it. use: the memory that earlier commands must be done
 * with; NULL: the transfer queue maps it, beside the compute queue. If the device is out of memory,
 * empties the pool and tries again. */
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

/* Enqueues the unmapping of a buffer. use: as for device_map; NULL: this ends an upload. Unmaps
 * even if it cannot be timed or ordered. */
static enum healcl_status device_unmap(struct healcl_device *device, const struct command_use *use,
                                       const struct buffer *buffer, void *address,
                                       struct healcl_error *error)
{
    cl_command_queue queue = use ? device->compute : device->transfer;
    struct queued_command command = {.log = NULL};
    enum healcl_status status =
        use ? command_begin(device, &command, use, error)
            : transfer_begin(device, &command, NULL, "upload", buffer->bytes, error);
    if (status != HEALCL_OK)
        command.event_out = NULL;
    cl_int code =
        device->cl->clEnqueueUnmapMemObject(queue, buffer->memory, address, EVENTS(command));
    TRY(status);
    TRY_CL(error, "clEnqueueUnmapMemObject", code);
    return command_end(device, &command, use ? NULL : &device->last_upload, error);
}

/* ---------------------------------------------------------------- staging memory */

/* Pinned host memory that data pass through on their way to and from a device. */
enum {
    HALF_BYTES_MIN = 4096,
    ALIGNMENT = 64 /* of adjacent data in a half */
};

/* The size of each half of the staging memory. 0 if transfers do not need it: the host maps the
 * device's memory. A device that cannot map needs at least a small one. */
static uint64_t staging_half_bytes(const struct healcl_device *device)
{
    const uint64_t tuned = device->tuning.staging_bytes;
    const uint64_t limit = device->info.max_allocation_bytes / 2;
    if (tuned == 0 && !device->info.lacks_maps)
        return 0;
    if (device->staging.address) /* it keeps its size, even if the tuning changes */
        return device->staging.half_bytes;
    const uint64_t bytes = tuned < limit ? tuned : limit / HALF_BYTES_MIN * HALF_BYTES_MIN;
    return bytes < HALF_BYTES_MIN ? HALF_BYTES_MIN : bytes;
}

/* Tests if the host can map the device's memory, by mapping a small buffer. Called by the
 * self-test; sets info.lacks_maps. */
enum healcl_status device_try_map(struct healcl_device *device, struct healcl_error *error)
{
    struct buffer buffer;
    void *address;
    TRY(device_buffer_acquire(device, HALF_BYTES_MIN, true, &buffer, error)); /* fresh */
    device->info.lacks_maps = device_buffer_map(device, &buffer, CL_MAP_READ, 0, HALF_BYTES_MIN,
                                                &address, NULL) != HEALCL_OK;
    enum healcl_status status =
        device->info.lacks_maps ? HEALCL_OK : device_buffer_unmap(device, &buffer, address, error);
    device_buffer_release(device, &buffer);
    return status;
}

/* Creates pinned memory and maps it for as long as the handle lives. Devices copy from and to
 * pinned memory without a copy by the driver. */
static enum healcl_status map_pinned(struct healcl_device *device, size_t bytes,
                                     struct staging *staging, struct healcl_error *error)
{
    void *address;
    TRY(device_create_memory(device, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL,
                             &staging->memory, error));
    enum healcl_status status = device_map(device, NULL, staging->memory,
                                           CL_MAP_READ | CL_MAP_WRITE, 0, bytes, &address, error);
    if (status != HEALCL_OK)
        (void)device->cl->clReleaseMemObject(staging->memory);
    staging->address = address;
    return status;
}

/* Creates the staging memory on first use. If the device cannot map memory, it is the host's own.
 */
static enum healcl_status create_staging(struct healcl_device *device, struct healcl_error *error)
{
    struct staging staging = {.half_bytes = staging_half_bytes(device)};
    const size_t bytes = (size_t)(2 * staging.half_bytes);
    if (device->info.lacks_maps)
        staging.address = malloc(bytes);
    else
        TRY(map_pinned(device, bytes, &staging, error));
    NEED_MEMORY(staging.address, error);
    device->staging = staging;
    return HEALCL_OK;
}

/* Waits until the device has copied what is in a half, or to it: the host may then use the half
 * again. */
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

/* Makes the other half current, once the device is done with it. The very first call creates the
 * memory, and half 0 is current. */
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

/* Takes `bytes` bytes, at most half_bytes, of the current half. If they do not fit behind what is
 * already taken, takes them of the other half. */
static enum healcl_status staging_take(struct healcl_device *device, uint64_t bytes, void **memory,
                                       struct healcl_error *error)
{
    struct staging *staging = &device->staging;
    if (!staging->address || bytes > staging->half_bytes - staging->halves[staging->current].used)
        TRY(staging_turn(device, error));
    uint64_t *used = &staging->halves[staging->current].used;
    *memory = staging->address + staging->current * staging->half_bytes + *used;
    *used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; /* at most half_bytes */
    return HEALCL_OK;
}

/* Unmaps and frees the staging memory. The queues must be idle. */
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

/* Writes a few bytes in order on the compute queue, without waiting. clEnqueueWriteBuffer would
 * need data that outlive the call. A buffer created from the data has copied them on return. It is
 * released at once, and OpenCL frees it after the copy. */
static enum healcl_status write_copy(struct healcl_device *device, const struct buffer *buffer,
                                     uint64_t offset, uint64_t bytes, const void *data,
                                     struct healcl_error *error)
{
    const cl_mem_flags flags = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
    void *host = (void *)(uintptr_t)data; /* with these flags OpenCL only reads from it */
    struct buffer copy = {.bytes = bytes};
    TRY(device_create_memory(device, flags, bytes, host, &copy.memory, error));
    enum healcl_status status = device_copy(device, &copy, 0, buffer, offset, bytes, NULL, error);
    (void)device->cl->clReleaseMemObject(copy.memory);
    return status;
}

/* Writes to a buffer in order with launches. The data need not outlive the call: few bytes are
 * copied, for more it waits. */
enum healcl_status device_write(struct healcl_device *device, const struct buffer *buffer,
                                uint64_t offset, uint64_t bytes, const void *data,
                                struct healcl_error *error)
{
    if (bytes == 0)
        return HEALCL_OK;
    if (bytes <= DEVICE_COPIED_BYTES)
        return write_copy(device, buffer, offset, bytes, data, error);
    const struct transfer write = {
        .name = "write", .use = &everything, .waits = true, .written = data};
    return enqueue_transfer(device, &write, buffer, offset, bytes, error);
}

/* ---------------------------------------------------------------- uploads */

/* The most bytes that a filler or taker gets at once: half of the staging memory, or all bytes
 * without staging. */
uint64_t device_piece_bytes(const struct healcl_device *device)
{
    uint64_t half = staging_half_bytes(device);
    return half > 0 ? half : UINT64_MAX;
}

/* Counts an upload and lets the device start it. The transfer queue is in order:
 * device->last_upload stands for all uploads so far. */
static enum healcl_status end_upload(struct healcl_device *device, struct healcl_error *error)
{
    device->commands++;
    TRY_CALL(error, device->cl, clFlush, device->transfer);
    return HEALCL_OK;
}

/* Writes to a buffer that no command uses, on the transfer queue. If is_staged, the data are in the
 * current half of the staging memory, which must not change before the write ends. Otherwise waits
 * for the write. */
static enum healcl_status write_fresh(struct healcl_device *device, const struct buffer *buffer,
                                      uint64_t offset, uint64_t bytes, const void *data,
                                      bool is_staged, struct healcl_error *error)
{
    cl_event *half_event = &device->staging.halves[device->staging.current].event;
    const struct transfer upload = {
        .name = "upload", .waits = !is_staged, .last_event = &device->last_upload, .written = data};
    TRY(enqueue_transfer(device, &upload, buffer, offset, bytes, error));
    if (is_staged)
        TRY_CL(error, "clRetainEvent", event_keep(device, half_event, device->last_upload));
    return end_upload(device, error);
}

/* Uploads piece by piece through the staging memory: the host fills one half while the device
 * copies the other. */
static enum healcl_status upload_staged(struct healcl_device *device, const struct buffer *buffer,
                                        const struct device_filler *filler,
                                        struct healcl_error *error)
{
    const uint64_t piece_bytes = device_piece_bytes(device);
    for (uint64_t offset = 0; offset < buffer->bytes; offset += piece_bytes) {
        const uint64_t left = buffer->bytes - offset,
                       bytes = left < piece_bytes ? left : piece_bytes;
        void *memory;
        TRY(staging_take(device, bytes, &memory, error));
        TRY(filler->fill(filler->context, offset, bytes, memory, error));
        TRY(write_fresh(device, buffer, offset, bytes, memory, true, error)); /* it is staged */
    }
    return HEALCL_OK;
}

/* Uploads by filling the buffer in place. Used if host and device share memory. */
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
    enum healcl_status unmap_status = device_unmap(device, NULL, buffer, memory, later);
    if (unmap_status == HEALCL_OK)
        unmap_status = end_upload(device, later);
    return status != HEALCL_OK ? status : unmap_status;
}

/* Uploads a few bytes: fills host memory and creates a buffer from it, which is faster than
 * mapping. The buffer is larger than the data, so the rest is set to 0. */
static enum healcl_status upload_small(struct healcl_device *device, uint64_t bytes,
                                       const struct device_filler *filler, struct buffer *buffer,
                                       struct healcl_error *error)
{
    uint64_t room = device_round_bytes(device, bytes);
    char *memory = malloc((size_t)room);
    NEED_MEMORY(memory, error);
    memset(memory + bytes, 0, (size_t)(room - bytes));
    enum healcl_status status = filler->fill(filler->context, 0, bytes, memory, error);
    THEN(status, device_buffer_of(device, bytes, memory, buffer, error));
    free(memory);
    return status;
}

/* Whether host and device share memory, so that transfers map it instead of using staging memory.
 */
bool device_shares_memory(const struct healcl_device *device)
{
    return staging_half_bytes(device) == 0;
}

/* Whether a buffer can be created from a copy of data in the host's memory. A caller's allocator
 * takes no data. */
static bool can_create_from_copy(const struct healcl_device *device)
{
    return device_shares_memory(device) && !device->options.allocate;
}

/* Whether an upload of this size creates its buffer from a copy of the data: that takes no command.
 */
bool device_copies_upload(const struct healcl_device *device, uint64_t bytes)
{
    return can_create_from_copy(device) && bytes > 0 && bytes <= DEVICE_COPIED_BYTES;
}

/* Makes a buffer and has it filled, by the way that is fastest for its size and the device: copied,
 * mapped, or staged. After an error *buffer is empty. */
enum healcl_status device_upload(struct healcl_device *device, const struct buffer_place *place,
                                 uint64_t bytes, const struct device_filler *filler,
                                 struct buffer *buffer, struct healcl_error *error)
{
    memset(buffer, 0, sizeof *buffer);
    if (device_copies_upload(device, bytes))
        return upload_small(device, bytes, filler, buffer, error);
    /* true: a fresh buffer, which is filled without waiting for the compute queue. */
    TRY(device_buffer_acquire_at(device, place, bytes, true, buffer, error));
    enum healcl_status status = device_shares_memory(device)
                                    ? upload_mapped(device, buffer, filler, error)
                                    : upload_staged(device, buffer, filler, error);
    if (status != HEALCL_OK)
        device_buffer_release(device, buffer);
    return status;
}

/* A filler that copies from the memory that its context points to. */
static enum healcl_status fill_from_memory(void *context, uint64_t offset, uint64_t bytes,
                                           void *memory, struct healcl_error *error)
{
    (void)error;
    memcpy(memory, (const char *)context + offset, (size_t)bytes);
    return HEALCL_OK;
}

/* Uploads data that are in the host's memory already. Copies them once where it can. Large ones for
 * a device with its own memory are written directly; the call waits for that. */
enum healcl_status device_upload_memory(struct healcl_device *device,
                                        const struct buffer_place *place, uint64_t bytes,
                                        const void *memory, struct buffer *buffer,
                                        struct healcl_error *error)
{
    void *host = (void *)(uintptr_t)memory; /* is only read */
    const struct device_filler filler = {fill_from_memory, host};
    /* device_buffer_of copies as many bytes as it allocates: here no more than there are. */
    const bool is_whole = bytes == device_round_bytes(device, bytes);
    memset(buffer, 0, sizeof *buffer);
    if (can_create_from_copy(device) && is_whole && bytes <= COPIED_UPLOAD_BYTES)
        return device_buffer_of(device, bytes, host, buffer, error);
    if (bytes <= device_piece_bytes(device))
        return device_upload(device, place, bytes, &filler, buffer, error);
    /* Too large for a half of the staging memory: pieces would only add a copy by the host. */
    TRY(device_buffer_acquire_at(device, place, bytes, true, buffer, error));
    /* false: not staged, so that it waits for the write. */
    enum healcl_status status = write_fresh(device, buffer, 0, bytes, memory, false, error);
    if (status != HEALCL_OK)
        device_buffer_release(device, buffer);
    return status;
}

/* ---------------------------------------------------------------- downloads */

/* Waits for the compute queue and maps a part of a buffer. It waits for all earlier commands, so
 * the queue is empty afterwards. */
enum healcl_status device_buffer_map(struct healcl_device *device, const struct buffer *buffer,
                                     cl_map_flags flags, uint64_t offset, uint64_t bytes,
                                     void **address, struct healcl_error *error)
{
    TRY(device_map(device, &everything, buffer->memory, flags, offset, bytes, address, error));
    device_note_idle(device);
    return HEALCL_OK;
}

/* Enqueues the unmapping of a buffer. Later commands that use it wait. A slab's parts are buffers
 * of their own to OpenCL, so after a slab all commands wait: argument_count is 0. */
enum healcl_status device_buffer_unmap(struct healcl_device *device, const struct buffer *buffer,
                                       void *address, struct healcl_error *error)
{
    const struct launch_argument argument = {.buffer = buffer};
    const bool is_slab = buffer->slab != NULL; /* commands refer to its parts */
    const struct command_use use = {.argument_count = is_slab ? 0 : 1, .arguments = &argument};
    return device_unmap(device, &use, buffer, address, error);
}

/* Waits for the compute queue and reads bytes to memory. The time appears in traces as waiting. */
enum healcl_status device_read(struct healcl_device *device, const struct buffer *buffer,
                               uint64_t offset, uint64_t bytes, void *memory,
                               struct healcl_error *error)
{
    const struct transfer download = {
        .name = "download", .use = &everything, .waits = true, .read_to = memory};
    size_t span = trace_begin(device->trace, "wait", "wait for the device");
    enum healcl_status status = enqueue_transfer(device, &download, buffer, offset, bytes, error);
    trace_end(device->trace, span);
    return status;
}

/* Enqueues a read and returns at once. The bytes are valid once the compute queue has been waited
 * for. Only commands that write the buffer must end before. */
enum healcl_status device_read_later(struct healcl_device *device, const struct buffer *buffer,
                                     uint64_t offset, uint64_t bytes, void *memory,
                                     struct healcl_error *error)
{
    const struct launch_argument argument = {.buffer = buffer, .read_only = true};
    const struct command_use use = {.argument_count = 1, .arguments = &argument};
    const struct transfer read = {.name = "read", .use = &use, .read_to = memory};
    return enqueue_transfer(device, &read, buffer, offset, bytes, error);
}

/* A part of a buffer on its way to a taker. */
struct download {
    struct healcl_device *device;
    const struct buffer *buffer;
    uint64_t offset, bytes; /* of the part */
    const struct device_taker *taker;
};

/* Downloads from memory that host and device share: the taker gets the mapped memory. A few bytes
 * are read instead, since mapping takes two commands. */
static enum healcl_status download_mapped(const struct download *self, struct healcl_error *error)
{
    struct healcl_device *device = self->device;
    const struct device_taker *taker = self->taker;
    void *memory;
    if (self->bytes <= SMALL_DOWNLOAD_BYTES) {
        uint64_t copy[SMALL_DOWNLOAD_BYTES / sizeof(uint64_t)];
        TRY(device_read(device, self->buffer, self->offset, self->bytes, copy, error));
        return taker->take(taker->context, 0, self->bytes, copy, error);
    }
    size_t span = trace_begin(device->trace, "wait", "wait for the device");
    enum healcl_status status = device_buffer_map(device, self->buffer, CL_MAP_READ, self->offset,
                                                  self->bytes, &memory, error);
    trace_end(device->trace, span);
    TRY(status);
    status = taker->take(taker->context, 0, self->bytes, memory, error);
    struct healcl_error *later = status == HEALCL_OK ? error : NULL; /* the first error wins */
    enum healcl_status unmap_status = device_buffer_unmap(device, self->buffer, memory, later);
    return status != HEALCL_OK ? status : unmap_status;
}

/* A piece of a download that is being read into a half of the staging memory. */
struct staged_read {
    uint64_t bytes;
    uint32_t half;
    void *memory;
};

/* Begins to read the next piece into the other half of the staging memory. begun: the bytes of the
 * pieces before it. */
static enum healcl_status begin_read(const struct download *self, uint64_t begun,
                                     struct staged_read *read, struct healcl_error *error)
{
    struct healcl_device *device = self->device;
    const uint64_t most = device_piece_bytes(device), left = self->bytes - begun;
    read->bytes = left < most ? left : most;
    TRY(staging_turn(device, error));
    TRY(staging_take(device, read->bytes, &read->memory, error));
    read->half = device->staging.current;
    const struct transfer transfer = {.name = "download",
                                      .use = &everything,
                                      .last_event = &device->staging.halves[read->half].event,
                                      .read_to = read->memory};
    TRY(enqueue_transfer(device, &transfer, self->buffer, self->offset + begun, read->bytes,
                         error));
    TRY_CALL(error, device->cl, clFlush, device->compute);
    return HEALCL_OK;
}

/* Waits until a piece is in the staging memory. The time appears in traces as waiting. */
static enum healcl_status await_read(struct healcl_device *device, const struct staged_read *read,
                                     struct healcl_error *error)
{
    size_t span = trace_begin(device->trace, "wait", "wait for the device");
    enum healcl_status status = staging_await(device, read->half, error);
    trace_end(device->trace, span);
    return status;
}

/* Downloads piece by piece: while the taker processes one piece, the device copies the next one to
 * the other half. */
static enum healcl_status read_and_take(const struct download *self, struct healcl_error *error)
{
    const struct device_taker *taker = self->taker;
    struct staged_read piece, next_piece = {0};
    TRY(begin_read(self, 0, &piece, error));
    for (uint64_t taken = 0; taken < self->bytes; taken += piece.bytes, piece = next_piece) {
        const uint64_t begun = taken + piece.bytes;
        if (begun < self->bytes)
            TRY(begin_read(self, begun, &next_piece, error));
        TRY(await_read(self->device, &piece, error));
        TRY(taker->take(taker->context, taken, piece.bytes, piece.memory, error));
    }
    device_note_idle(self->device);
    return HEALCL_OK;
}

/* Downloads through the staging memory. After an error waits for pending reads: they use a buffer
 * that the caller may release. They may fail, too. */
static enum healcl_status download_staged(const struct download *self, struct healcl_error *error)
{
    enum healcl_status status = read_and_take(self, error);
    if (status == HEALCL_OK)
        return HEALCL_OK;
    for (uint32_t half = 0; half < 2; half++)
        (void)!staging_await(self->device, half, NULL);
    (void)!device_finish_compute(self->device);
    return status;
}

/* Waits for the compute queue and passes bytes of a buffer to the taker, in place or piece by
 * piece. */
enum healcl_status device_download(struct healcl_device *device, const struct buffer *buffer,
                                   uint64_t offset, uint64_t bytes,
                                   const struct device_taker *taker, struct healcl_error *error)
{
    const struct download download = {device, buffer, offset, bytes, taker};
    if (bytes == 0)
        return HEALCL_OK;
    return device_shares_memory(device) ? download_mapped(&download, error)
                                        : download_staged(&download, error);
}
