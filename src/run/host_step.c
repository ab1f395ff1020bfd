#include "run/host_step.h"

#include <stdlib.h>

/* The bytes of a storage between the first and the last element of a tensor. */
struct extent {
    uint64_t first, bytes;
};

static struct extent extent_of(const struct tensor *tensor)
{
    const uint64_t size = dtype_size(tensor->storage->dtype);
    if (layout_elements(&tensor->layout) == 0)
        return (struct extent){0, 0};
    return (struct extent){(uint64_t)tensor->layout.offset * size,
                           (uint64_t)(layout_last(&tensor->layout) - tensor->layout.offset + 1) *
                               size};
}

/* Whether a tensor that does not overlap itself has all elements of its extent. */
static bool is_dense(const struct tensor *tensor)
{
    return extent_of(tensor).bytes == packed_bytes(tensor);
}

static enum healcl_status read_tensor(struct launcher *launcher, struct reference *reference,
                                      const struct tensor *tensor, struct healcl_error *error)
{
    const struct extent extent = extent_of(tensor);
    const struct buffer *buffer;
    void *memory;
    if (tensor->storage->scalars || extent.bytes == 0) /* the plan has them */
        return HEALCL_OK;
    TRY(launcher_buffer(launcher, tensor->storage, &buffer, error));
    TRY(reference_memory(reference, tensor->storage, &memory, error));
    return device_read(launcher->device, buffer, extent.first, extent.bytes,
                       (char *)memory + extent.first, error);
}

enum { PIECE_BYTES = 4 << 20 /* each is copied, and lives until it is written */ };

/* A storage that is written as a whole gets a new buffer. */
static enum healcl_status write_tensor(struct launcher *launcher, struct reference *reference,
                                       const struct tensor *tensor, struct healcl_error *error)
{
    struct healcl_device *device = launcher->device;
    const struct extent extent = extent_of(tensor);
    const struct buffer *buffer;
    void *memory;
    TRY(reference_memory(reference, tensor->storage, &memory, error));
    if (extent.bytes == storage_bytes(tensor->storage)) {
        struct buffer *whole = launcher_memory(launcher, tensor->storage);
        struct buffer_place place;
        device_buffer_release(device, whole);
        return device_upload_memory(device, launcher_place(launcher, tensor->storage, &place),
                                    extent.bytes, memory, whole, error);
    }
    TRY(launcher_buffer(launcher, tensor->storage, &buffer, error));
    for (uint64_t done = 0; done < extent.bytes; done += PIECE_BYTES) {
        const uint64_t left = extent.bytes - done, at = extent.first + done;
        TRY(device_write(device, buffer, at, left < PIECE_BYTES ? left : PIECE_BYTES,
                         (const char *)memory + at, error));
        if (left > PIECE_BYTES)
            TRY(device_finish(device, error));
    }
    return HEALCL_OK;
}

static enum healcl_status run(struct launcher *launcher, struct reference *reference,
                              const struct step *step, struct healcl_error *error)
{
    for (int i = 0; i < STEP_INPUTS; i++)
        if (step->in[i])
            TRY(read_tensor(launcher, reference, step->in[i], error));
    if (step_traits[step->kind].adds || !is_dense(step->out))
        TRY(read_tensor(launcher, reference, step->out, error));
    TRY(reference_step(reference, step, error));
    TRY(write_tensor(launcher, reference, step->out, error));
    launcher_storage_written(launcher, step->out->storage);
    return HEALCL_OK;
}

enum healcl_status host_step_run(struct launcher *launcher, struct reference *reference,
                                 const struct step *step, struct healcl_error *error)
{
    if (layout_elements(&step->out->layout) == 0)
        return HEALCL_OK;
    enum healcl_status status = run(launcher, reference, step, error);
    if (status == HEALCL_REFUSED)
        launcher->refused_input = reference->refused_input;
    for (int i = 0; i < STEP_INPUTS; i++)
        if (step->in[i])
            reference_forget(reference, step->in[i]->storage);
    reference_forget(reference, step->out->storage);
    return status;
}

enum healcl_status host_step_pack(struct launcher *launcher, struct reference *reference,
                                  const struct tensor *tensor, struct buffer *packed,
                                  struct healcl_error *error)
{
    const size_t bytes = (size_t)packed_bytes(tensor);
    void *memory = malloc(bytes);
    enum healcl_status status = memory ? read_tensor(launcher, reference, tensor, error)
                                       : ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    if (status == HEALCL_OK)
        status = reference_read(reference, tensor, memory, error);
    if (status == HEALCL_OK)
        status = device_upload_memory(launcher->device, NULL, bytes, memory, packed, error);
    reference_forget(reference, tensor->storage);
    free(memory);
    return status;
}
