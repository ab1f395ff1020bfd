/* What callers do with tensors' memory on a device, beside steps: operations by call. */
#include "run/device_executor.h"

/* Where a tensor's elements, which lie together, begin in its storage's buffer. */
static uint64_t begin_of(const struct tensor *tensor)
{
    return (uint64_t)tensor->layout.offset * dtype_size(tensor->storage->dtype);
}

enum healcl_status device_executor_write(struct executor *executor, const struct tensor *tensor,
                                         const void *data, struct healcl_error *error)
{
    struct launcher *launcher = device_executor_launcher(executor);
    const struct buffer *buffer;
    TRY(launcher_buffer(launcher, tensor->storage, &buffer, error));
    return device_write(launcher->device, buffer, begin_of(tensor), packed_bytes(tensor), data,
                        error);
}

void device_executor_written(struct executor *executor, const struct storage *storage)
{
    launcher_storage_written(device_executor_launcher(executor), storage);
}

enum healcl_status device_executor_map(struct executor *executor, const struct tensor *tensor,
                                       void **data, struct healcl_error *error)
{
    struct launcher *launcher = device_executor_launcher(executor);
    const struct buffer *buffer;
    TRY(launcher_buffer(launcher, tensor->storage, &buffer, error));
    return device_buffer_map(launcher->device, buffer, CL_MAP_READ | CL_MAP_WRITE, begin_of(tensor),
                             packed_bytes(tensor), data, error);
}

enum healcl_status device_executor_unmap(struct executor *executor, const struct tensor *tensor,
                                         void *data, struct healcl_error *error)
{
    struct launcher *launcher = device_executor_launcher(executor);
    return device_buffer_unmap(launcher->device, launcher_memory(launcher, tensor->storage), data,
                               error);
}

enum healcl_status device_executor_lend_memory(struct executor *executor,
                                               const struct storage *storage, void **memory,
                                               struct healcl_error *error)
{
    struct launcher *launcher = device_executor_launcher(executor);
    const struct buffer *buffer;
    TRY(launcher_buffer(launcher, storage, &buffer, error));
    *memory = buffer->memory;
    return device_await_uploads(launcher->device, error);
}

enum healcl_status device_executor_take_memory(struct executor *executor,
                                               const struct storage *storage, void *memory,
                                               struct healcl_error *error)
{
    struct launcher *launcher = device_executor_launcher(executor);
    return device_buffer_adopt(launcher->device, storage_bytes(storage), memory,
                               launcher_memory(launcher, storage), error);
}
