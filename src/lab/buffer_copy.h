/* Whole buffers from and to memory of the host. */
#ifndef HEALCL_LAB_BUFFER_COPY_H
#define HEALCL_LAB_BUFFER_COPY_H

#include "device/device.h"

/* Acquires a buffer, empty so far, for so many bytes, and fills it. */
MUST_CHECK enum healcl_status buffer_upload(struct healcl_device *device, struct buffer *buffer,
                                            const void *bytes, size_t count,
                                            struct healcl_error *error);

/* Waits for the compute queue. */
MUST_CHECK enum healcl_status buffer_download(struct healcl_device *device,
                                              const struct buffer *buffer, void *bytes,
                                              size_t count, struct healcl_error *error);

#endif
