#include "lab/buffer_copy.h"

#include <string.h>

/* Bytes in a chunk, of count that begin in chunk 0. */
static size_t chunk_part(const struct healcl_device *device, uint32_t chunk, size_t count)
{
    size_t left = count - (size_t)(chunk * device->chunk_bytes);
    return left < device->chunk_bytes ? left : (size_t)device->chunk_bytes;
}

enum healcl_status buffer_upload(struct healcl_device *device, struct buffer *buffer,
                                 const void *bytes, size_t count, struct healcl_error *error)
{
    TRY(device_buffer_acquire(device, count, true, buffer, error));
    for (uint32_t chunk = 0; chunk < buffer->chunk_count && count > 0; chunk++) {
        void *memory;
        TRY(device_upload_map(device, buffer, chunk, &memory, error));
        memcpy(memory, (const char *)bytes + chunk * device->chunk_bytes,
               chunk_part(device, chunk, count));
        TRY(device_upload_end(device, buffer, chunk, memory, error));
    }
    return HEALCL_OK;
}

enum healcl_status buffer_download(struct healcl_device *device, const struct buffer *buffer,
                                   void *bytes, size_t count, struct healcl_error *error)
{
    for (uint32_t chunk = 0; chunk < buffer->chunk_count && count > 0; chunk++) {
        size_t part = chunk_part(device, chunk, count);
        void *memory;
        TRY(device_download_map(device, buffer, chunk, 0, part, &memory, error));
        memcpy((char *)bytes + chunk * device->chunk_bytes, memory, part);
        TRY(device_download_end(device, buffer, chunk, memory, error));
    }
    return HEALCL_OK;
}
