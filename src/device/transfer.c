/* Data between host and device. */
#include <stdlib.h>
#include <string.h>

#include "device/internal.h"

/* Up to this, an upload is a buffer made from the data. With PoCL 3.1 that takes a few us where
 * mapping takes 45, most of it for two threads to wake each other. */
enum { SMALL_UPLOAD_BYTES = 1 << 16 };

/* The same of data that lie in memory, and would be copied to what is mapped as well. */
enum { COPIED_UPLOAD_BYTES = 1 << 20 };

/* Up to this, what is downloaded is read to the host's memory: one command, where mapping takes
 * another one to unmap. */
enum { SMALL_DOWNLOAD_BYTES = 1 << 12 };

/* Finds what a command that writes a buffer, or is done with it, waits for. */
static void begin_on(struct healcl_device *device, const struct buffer *buffer,
                     struct awaited_events *awaited)
{
    const struct launch_argument argument = {.buffer = buffer};
    overlap_begin(device, &(struct command_use){.argument_count = 1, .arguments = &argument},
                  awaited);
}

/* ---------------------------------------------------------------- mapping */

enum healcl_status device_map(struct healcl_device *device, enum trace_track track, cl_mem memory,
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
    (void)opencl_error(error, code, "clEnqueueMapBuffer", __FILE__, __LINE__);
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

/* ---------------------------------------------------------------- pieces */

uint64_t device_piece_bytes(const struct healcl_device *device)
{
    uint64_t half = staging_half_bytes(device);
    return half > 0 && half < device->chunk_bytes ? half : device->chunk_bytes;
}

/* A piece of a buffer that lies in one chunk. */
struct piece {
    cl_mem memory;
    uint64_t inside, bytes; /* where it begins in the chunk */
};

/* What a transfer handles at a time: from offset on, at most bytes. */
static struct piece piece_at(const struct healcl_device *device, const struct buffer *buffer,
                             uint64_t offset, uint64_t bytes)
{
    struct piece piece = {buffer->chunks[offset / device->chunk_bytes],
                          offset % device->chunk_bytes, device_piece_bytes(device)};
    if (piece.bytes > device->chunk_bytes - piece.inside)
        piece.bytes = device->chunk_bytes - piece.inside;
    if (piece.bytes > bytes)
        piece.bytes = bytes;
    return piece;
}

/* A transfer was enqueued; its event stays the caller's. */
static enum healcl_status log_transfer(struct healcl_device *device, cl_event event,
                                       struct traced_command *traced, struct healcl_error *error)
{
    if (!traced->event)
        return HEALCL_OK;
    TRY_CL(error, "clRetainEvent", device->cl->clRetainEvent(event));
    *traced->event = event;
    return traced_command_log(traced, device, error);
}

/* ---------------------------------------------------------------- uploads */

/* An upload was enqueued. Takes over its event. */
static enum healcl_status end_upload(struct healcl_device *device, cl_event event,
                                     struct traced_command *traced, struct healcl_error *error)
{
    /* The transfer queue is in order: to wait for the last upload is to wait for all. */
    if (device->upload)
        (void)device->cl->clReleaseEvent(device->upload);
    device->upload = event;
    TRY_CL(error, "clFlush", device->cl->clFlush(device->transfer));
    return log_transfer(device, event, traced, error);
}

/* Writes bytes that the host has ready, and that stay until the event. */
static enum healcl_status enqueue_write(struct healcl_device *device, const struct piece *piece,
                                        bool blocking, const void *memory, cl_event *event,
                                        struct healcl_error *error)
{
    cl_int code = CL_SUCCESS;
    for (int attempt = 0; attempt < 2; attempt++) {
        code = device->cl->clEnqueueWriteBuffer(device->transfer, piece->memory, blocking,
                                                (size_t)piece->inside, (size_t)piece->bytes, memory,
                                                0, NULL, event);
        if (!device_recovers(device, code))
            break;
    }
    TRY_CL(error, "clEnqueueWriteBuffer", code);
    return HEALCL_OK;
}

static enum healcl_status upload_staged(struct healcl_device *device, const struct piece *piece,
                                        uint64_t offset, const struct device_filler *filler,
                                        struct healcl_error *error)
{
    void *memory;
    cl_event event = NULL;
    struct traced_command traced;
    TRY(staging_take(device, piece->bytes, &memory, error));
    TRY(filler->fill(filler->context, offset, piece->bytes, memory, error));
    TRY(traced_command_init(&traced, device, TRACE_TRANSFER, "upload", piece->bytes, error));
    TRY(enqueue_write(device, piece, false, memory, &event, error));
    staging_used_by(device, event);
    TRY_CL(error, "clRetainEvent", device->cl->clRetainEvent(event));
    return end_upload(device, event, &traced, error);
}

static enum healcl_status upload_mapped(struct healcl_device *device, const struct piece *piece,
                                        uint64_t offset, const struct device_filler *filler,
                                        struct healcl_error *error)
{
    void *memory;
    TRY(device_map(device, TRACE_TRANSFER, piece->memory, CL_MAP_WRITE_INVALIDATE_REGION,
                   piece->inside, piece->bytes, &memory, error));
    enum healcl_status status = filler->fill(filler->context, offset, piece->bytes, memory, error);
    struct healcl_error *later = status == HEALCL_OK ? error : NULL; /* the first error wins */
    cl_event event = NULL;
    struct traced_command traced;
    enum healcl_status ended =
        traced_command_init(&traced, device, TRACE_TRANSFER, "upload", piece->bytes, later);
    cl_int code = device->cl->clEnqueueUnmapMemObject(device->transfer, piece->memory, memory, 0,
                                                      NULL, &event);
    if (code != CL_SUCCESS)
        ended = opencl_error(later, code, "clEnqueueUnmapMemObject", __FILE__, __LINE__);
    else if (ended != HEALCL_OK)
        (void)device->cl->clReleaseEvent(event);
    else
        ended = end_upload(device, event, &traced, later);
    return status != HEALCL_OK ? status : ended;
}

static enum healcl_status upload_pieces(struct healcl_device *device, const struct buffer *buffer,
                                        const struct device_filler *filler,
                                        struct healcl_error *error)
{
    for (uint64_t offset = 0; offset < buffer->bytes;) {
        struct piece piece = piece_at(device, buffer, offset, buffer->bytes - offset);
        if (staging_half_bytes(device) > 0)
            TRY(upload_staged(device, &piece, offset, filler, error));
        else
            TRY(upload_mapped(device, &piece, offset, filler, error));
        offset += piece.bytes;
    }
    return HEALCL_OK;
}

static enum healcl_status upload_small(struct healcl_device *device, uint64_t bytes,
                                       const struct device_filler *filler, struct buffer *buffer,
                                       struct healcl_error *error)
{
    uint64_t room = buffer_round_bytes(bytes);
    char *memory = malloc((size_t)room);
    if (!memory)
        NO_MEMORY(error);
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
    return device_shares_memory(device) && bytes > 0 && bytes <= SMALL_UPLOAD_BYTES &&
           bytes <= device->chunk_bytes;
}

enum healcl_status device_upload_at(struct healcl_device *device, const struct buffer_place *place,
                                    uint64_t bytes, const struct device_filler *filler,
                                    struct buffer *buffer, struct healcl_error *error)
{
    memset(buffer, 0, sizeof *buffer);
    if (device_copies_upload(device, bytes))
        return upload_small(device, bytes, filler, buffer, error);
    TRY(device_buffer_acquire_at(device, place, bytes, true, buffer, error));
    enum healcl_status status = upload_pieces(device, buffer, filler, error);
    if (status != HEALCL_OK)
        device_buffer_release(device, buffer);
    return status;
}

enum healcl_status device_upload(struct healcl_device *device, uint64_t bytes,
                                 const struct device_filler *filler, struct buffer *buffer,
                                 struct healcl_error *error)
{
    return device_upload_at(device, NULL, bytes, filler, buffer, error);
}

static enum healcl_status fill_from_memory(void *context, uint64_t offset, uint64_t bytes,
                                           void *memory, struct healcl_error *error)
{
    (void)error;
    memcpy(memory, (const char *)context + offset, (size_t)bytes);
    return HEALCL_OK;
}

/* As much as there is at once, without a copy by the host. */
static enum healcl_status write_whole(struct healcl_device *device, const struct buffer *buffer,
                                      const char *memory, struct healcl_error *error)
{
    for (uint64_t offset = 0; offset < buffer->bytes;) {
        struct piece piece = {.memory = buffer->chunks[offset / device->chunk_bytes],
                              .bytes = device->chunk_bytes};
        struct traced_command traced;
        cl_event event = NULL;
        if (piece.bytes > buffer->bytes - offset)
            piece.bytes = buffer->bytes - offset;
        TRY(traced_command_init(&traced, device, TRACE_TRANSFER, "upload", piece.bytes, error));
        TRY(enqueue_write(device, &piece, true, memory + offset, &event, error));
        TRY(end_upload(device, event, &traced, error));
        offset += piece.bytes;
    }
    return HEALCL_OK;
}

enum healcl_status device_upload_memory_at(struct healcl_device *device,
                                           const struct buffer_place *place, uint64_t bytes,
                                           const void *memory, struct buffer *buffer,
                                           struct healcl_error *error)
{
    union { /* it only reads */
        const void *read;
        void *context;
    } host = {.read = memory};
    memset(buffer, 0, sizeof *buffer);
    if (staging_half_bytes(device) == 0 && bytes <= COPIED_UPLOAD_BYTES &&
        bytes <= device->chunk_bytes && bytes == buffer_round_bytes(bytes))
        return device_buffer_of(device, bytes, host.context, buffer, error);
    if (staging_half_bytes(device) == 0 || bytes <= staging_half_bytes(device))
        return device_upload_at(device, place, bytes,
                                &(struct device_filler){fill_from_memory, host.context}, buffer,
                                error);
    TRY(device_buffer_acquire_at(device, place, bytes, true, buffer, error));
    enum healcl_status status = write_whole(device, buffer, memory, error);
    if (status != HEALCL_OK)
        device_buffer_release(device, buffer);
    return status;
}

enum healcl_status device_upload_memory(struct healcl_device *device, uint64_t bytes,
                                        const void *memory, struct buffer *buffer,
                                        struct healcl_error *error)
{
    return device_upload_memory_at(device, NULL, bytes, memory, buffer, error);
}

/* ---------------------------------------------------------------- downloads */

static enum healcl_status end_download(struct healcl_device *device, const struct buffer *buffer,
                                       const struct piece *piece, void *memory,
                                       struct healcl_error *error)
{
    struct awaited_events awaited;
    cl_event event = NULL;
    if (buffer->slab) /* commands know its parts */
        overlap_begin(device, &(struct command_use){0}, &awaited);
    else
        begin_on(device, buffer, &awaited);
    TRY_CL(error, "clEnqueueUnmapMemObject",
           device->cl->clEnqueueUnmapMemObject(device->compute, piece->memory, memory,
                                               AWAITED(awaited), device->overlaps ? &event : NULL));
    overlap_end(device, event);
    return HEALCL_OK;
}

/* Reads a piece into memory, or writes it from data where that is not NULL, behind all that is
 * enqueued, and waits for that. */
static enum healcl_status move_piece(struct healcl_device *device, const struct piece *piece,
                                     void *memory, const void *data, struct healcl_error *error)
{
    const size_t offset = (size_t)piece->inside, bytes = (size_t)piece->bytes;
    cl_int code = CL_SUCCESS;
    for (int attempt = 0; attempt < 2; attempt++) {
        struct awaited_events awaited;
        struct traced_command traced;
        TRY(traced_command_init(&traced, device, TRACE_COMPUTE, data ? "write" : "download",
                                piece->bytes, error));
        overlap_begin(device, &(struct command_use){0}, &awaited);
        code =
            data ? device->cl->clEnqueueWriteBuffer(device->compute, piece->memory, CL_TRUE, offset,
                                                    bytes, data, AWAITED(awaited), traced.event)
                 : device->cl->clEnqueueReadBuffer(device->compute, piece->memory, CL_TRUE, offset,
                                                   bytes, memory, AWAITED(awaited), traced.event);
        if (code == CL_SUCCESS) {
            device_note_idle(device);
            return traced_command_log(&traced, device, error);
        }
        if (!device_recovers(device, code))
            break;
    }
    TRY_CL(error, data ? "clEnqueueWriteBuffer" : "clEnqueueReadBuffer", code);
    return HEALCL_OK;
}

enum healcl_status device_write_any(struct healcl_device *device, const struct buffer *buffer,
                                    uint64_t offset, uint64_t bytes, const void *data,
                                    struct healcl_error *error)
{
    if (bytes <= SMALL_UPLOAD_BYTES)
        return device_write(device, buffer, offset, bytes, data, error);
    TRY(device_await_uploads(device, error));
    for (uint64_t done = 0; done < bytes;) {
        const struct piece piece = piece_at(device, buffer, offset + done, bytes - done);
        TRY(move_piece(device, &piece, NULL, (const char *)data + done, error));
        done += piece.bytes;
    }
    return HEALCL_OK;
}

enum healcl_status device_buffer_map(struct healcl_device *device, const struct buffer *buffer,
                                     uint64_t offset, uint64_t bytes, void **address,
                                     struct healcl_error *error)
{
    const uint64_t chunk = offset / device->chunk_bytes, inside = offset % device->chunk_bytes;
    if (bytes > device->chunk_bytes - inside)
        REFUSE_FOR(error, LIMIT, "the tensor lies in several buffers of the device");
    TRY(device_await_uploads(device, error));
    TRY(device_map(device, TRACE_COMPUTE, buffer->chunks[chunk], CL_MAP_READ | CL_MAP_WRITE, inside,
                   bytes, address, error));
    device_note_idle(device);
    return HEALCL_OK;
}

enum healcl_status device_buffer_unmap(struct healcl_device *device, const struct buffer *buffer,
                                       uint64_t offset, void *address, struct healcl_error *error)
{
    const struct piece piece = {.memory = buffer->chunks[offset / device->chunk_bytes]};
    return end_download(device, buffer, &piece, address, error);
}

static enum healcl_status read_pieces(struct healcl_device *device, const struct buffer *buffer,
                                      uint64_t offset, uint64_t bytes, void *memory,
                                      struct healcl_error *error)
{
    size_t span = trace_begin(device->trace, "wait", "wait for the device");
    enum healcl_status status = HEALCL_OK;
    for (uint64_t done = 0; status == HEALCL_OK && done < bytes;) {
        const struct piece piece = piece_at(device, buffer, offset + done, bytes - done);
        status = move_piece(device, &piece, (char *)memory + done, NULL, error);
        done += piece.bytes;
    }
    trace_end(device->trace, span);
    return status;
}

/* Reads bytes of memory in the queue's order. */
static enum healcl_status read_piece_later(struct healcl_device *device, const struct piece *piece,
                                           void *memory, struct healcl_error *error)
{
    const struct buffer read = {.chunk_count = 1, .chunks = {piece->memory}};
    const struct launch_argument argument = {.buffer = &read, .read_only = true};
    const struct command_use use = {.argument_count = 1, .arguments = &argument};
    cl_int code = CL_SUCCESS;
    for (int attempt = 0; attempt < 2; attempt++) {
        struct awaited_events awaited;
        struct traced_command traced;
        cl_event event = NULL;
        TRY(traced_command_init(&traced, device, TRACE_COMPUTE, "read", piece->bytes, error));
        overlap_begin(device, &use, &awaited);
        code = device->cl->clEnqueueReadBuffer(
            device->compute, piece->memory, CL_FALSE, (size_t)piece->inside, (size_t)piece->bytes,
            memory, AWAITED(awaited), device->overlaps ? &event : traced.event);
        if (code == CL_SUCCESS) {
            overlap_end(device, event);
            return traced_command_log(&traced, device, error);
        }
        if (!device_recovers(device, code))
            break;
    }
    TRY_CL(error, "clEnqueueReadBuffer", code);
    return HEALCL_OK;
}

enum healcl_status device_read_later(struct healcl_device *device, const struct buffer *buffer,
                                     uint64_t offset, uint64_t bytes, void *memory,
                                     struct healcl_error *error)
{
    TRY(device_await_uploads(device, error));
    for (uint64_t done = 0; done < bytes;) {
        const struct piece piece = piece_at(device, buffer, offset + done, bytes - done);
        TRY(read_piece_later(device, &piece, (char *)memory + done, error));
        done += piece.bytes;
    }
    return HEALCL_OK;
}

static enum healcl_status download_mapped(struct healcl_device *device, const struct buffer *buffer,
                                          uint64_t offset, uint64_t bytes,
                                          const struct device_taker *taker,
                                          struct healcl_error *error)
{
    if (bytes <= SMALL_DOWNLOAD_BYTES) {
        uint64_t copy[SMALL_DOWNLOAD_BYTES / sizeof(uint64_t)];
        TRY(read_pieces(device, buffer, offset, bytes, copy, error));
        return taker->take(taker->context, 0, bytes, copy, error);
    }
    for (uint64_t done = 0; done < bytes;) {
        struct piece piece = piece_at(device, buffer, offset + done, bytes - done);
        void *memory;
        size_t span = trace_begin(device->trace, "wait", "wait for the device");
        enum healcl_status status = device_map(device, TRACE_COMPUTE, piece.memory, CL_MAP_READ,
                                               piece.inside, piece.bytes, &memory, error);
        trace_end(device->trace, span);
        if (status != HEALCL_OK)
            return status;
        device_note_idle(device);
        status = taker->take(taker->context, done, piece.bytes, memory, error);
        enum healcl_status ended =
            end_download(device, buffer, &piece, memory, status == HEALCL_OK ? error : NULL);
        if (status != HEALCL_OK || ended != HEALCL_OK)
            return status != HEALCL_OK ? status : ended;
        done += piece.bytes;
    }
    return HEALCL_OK;
}

/* A piece on its way into a half. */
struct staged_read {
    struct piece piece;
    uint32_t half;
    void *memory;
};

static cl_int enqueue_read(struct healcl_device *device, const struct staged_read *read,
                           cl_event *event)
{
    struct awaited_events awaited;
    overlap_begin(device, &(struct command_use){0}, &awaited);
    return device->cl->clEnqueueReadBuffer(device->compute, read->piece.memory, CL_FALSE,
                                           (size_t)read->piece.inside, (size_t)read->piece.bytes,
                                           read->memory, AWAITED(awaited), event);
}

static enum healcl_status begin_read(struct healcl_device *device, struct staged_read *read,
                                     struct healcl_error *error)
{
    struct traced_command traced;
    cl_event event = NULL;
    TRY(staging_turn(device, error));
    TRY(staging_take(device, read->piece.bytes, &read->memory, error));
    read->half = device->staging.current;
    TRY(traced_command_init(&traced, device, TRACE_COMPUTE, "download", read->piece.bytes, error));
    cl_int code = enqueue_read(device, read, &event);
    if (device_recovers(device, code))
        code = enqueue_read(device, read, &event);
    TRY_CL(error, "clEnqueueReadBuffer", code);
    staging_used_by(device, event);
    TRY_CL(error, "clFlush", device->cl->clFlush(device->compute));
    return log_transfer(device, event, &traced, error);
}

static enum healcl_status end_read(struct healcl_device *device, const struct staged_read *read,
                                   struct healcl_error *error)
{
    size_t span = trace_begin(device->trace, "wait", "wait for the device");
    enum healcl_status status = staging_await(device, read->half, error);
    trace_end(device->trace, span);
    return status;
}

/* While a piece is taken, the next one is read. */
static enum healcl_status read_and_take(struct healcl_device *device, const struct buffer *buffer,
                                        uint64_t offset, uint64_t bytes,
                                        const struct device_taker *taker,
                                        struct healcl_error *error)
{
    struct staged_read read = {.piece = piece_at(device, buffer, offset, bytes)}, next;
    TRY(begin_read(device, &read, error));
    for (uint64_t done = 0; done < bytes; read = next) {
        uint64_t after = done + read.piece.bytes;
        next = read;
        if (after < bytes) {
            next.piece = piece_at(device, buffer, offset + after, bytes - after);
            TRY(begin_read(device, &next, error));
        }
        TRY(end_read(device, &read, error));
        TRY(taker->take(taker->context, done, read.piece.bytes, read.memory, error));
        done = after;
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
    /* What is on its way reads a buffer that the caller may give back, and may have failed. */
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
    TRY(device_await_uploads(device, error));
    return (staging_half_bytes(device) > 0 ? download_staged : download_mapped)(
        device, buffer, offset, bytes, taker, error);
}

static enum healcl_status take_to_memory(void *context, uint64_t offset, uint64_t bytes,
                                         const void *memory, struct healcl_error *error)
{
    (void)error;
    memcpy((char *)context + offset, memory, (size_t)bytes);
    return HEALCL_OK;
}

enum healcl_status device_read(struct healcl_device *device, const struct buffer *buffer,
                               uint64_t offset, uint64_t bytes, void *memory,
                               struct healcl_error *error)
{
    if (staging_half_bytes(device) > 0)
        return device_download(device, buffer, offset, bytes,
                               &(struct device_taker){take_to_memory, memory}, error);
    TRY(device_await_uploads(device, error));
    return read_pieces(device, buffer, offset, bytes, memory, error);
}
