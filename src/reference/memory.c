/* Storages: their memory, and the steps that only move elements to equal positions. */
#include "reference/operand.h"

#include <stdlib.h>

enum healcl_status reference_create(const struct plan *plan, struct reference **result,
                                    struct healcl_error *error)
{
    struct reference *reference = calloc(1, sizeof *reference);
    NEED_MEMORY(reference, error);
    reference->plan = plan;
    reference->memories = reference_allocate(plan->storage_count + 1, sizeof *reference->memories);
    if (!reference->memories) {
        free(reference);
        NO_MEMORY(error);
    }
    *result = reference;
    return HEALCL_OK;
}

/* Forgets the contents of a storage. */
static void memory_release(struct reference_memory *memory)
{
    if (!memory->lent)
        free(memory->bytes);
    *memory = (struct reference_memory){.bytes = NULL};
}

void reference_free(struct reference *reference)
{
    if (!reference)
        return;
    for (size_t id = 0; id <= reference->plan->storage_count; id++)
        memory_release(&reference->memories[id]);
    free(reference->memories);
    free(reference);
}

void reference_lend(struct reference *reference, const struct storage *storage, void *bytes)
{
    struct reference_memory *memory = &reference->memories[storage->id];
    memory_release(memory);
    *memory = (struct reference_memory){.bytes = bytes, .lent = true};
}

void reference_forget(struct reference *reference, const struct storage *storage)
{
    memory_release(&reference->memories[storage->id]);
}

static bool is_constants(const struct reference *reference, const struct storage *storage)
{
    return storage == reference->plan->constants.storage;
}

enum healcl_status reference_memory(struct reference *reference, const struct storage *storage,
                                    void **bytes, struct healcl_error *error)
{
    if (is_constants(reference, storage)) {
        *bytes = reference->plan->constants.values;
        return HEALCL_OK;
    }
    struct reference_memory *memory = &reference->memories[storage->id];
    if (!memory->bytes)
        memory->bytes = reference_allocate((uint64_t)storage->elements, dtype_size(storage->dtype));
    NEED_MEMORY(memory->bytes, error);
    *bytes = memory->bytes;
    return HEALCL_OK;
}

enum healcl_status reference_read(struct reference *reference, const struct tensor *tensor,
                                  void *packed, struct healcl_error *error)
{
    struct operand operand;
    TRY(reference_operand(&operand, reference, tensor, error));
    layout_copy_packed(&operand.layout, dtype_size(operand.dtype), operand.bytes, packed, false);
    return HEALCL_OK;
}

/* out = the payload, converted to out's dtype; out is contiguous. */
enum healcl_status reference_upload(struct reference *reference, const struct step *step,
                                    struct healcl_error *error)
{
    struct operand out;
    TRY(reference_operand(&out, reference, step->out, error));
    char *first = (char *)out.bytes + (size_t)out.layout.offset * dtype_size(out.dtype);
    return payload_read(step->payload, out.dtype, first, error);
}

/* out[c] = v */
enum healcl_status reference_fill(struct reference *reference, const struct step *step,
                                  struct healcl_error *error)
{
    struct operand out;
    TRY(reference_operand(&out, reference, step->out, error));
    const struct layout *layouts[] = {&out.layout};
    struct walk walk;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk)) {
        if (walk.left % CHECKED_ELEMENTS == 0)
            TRY(reference_visit(reference, CHECKED_ELEMENTS, error));
        operand_store(&out, walk.position[0], step->value[0]);
    }
    return HEALCL_OK;
}

/* out[c] = a[c] */
enum healcl_status reference_copy(struct reference *reference, const struct step *step,
                                  struct healcl_error *error)
{
    struct operand out, a;
    TRY(reference_operand(&out, reference, step->out, error));
    TRY(reference_operand(&a, reference, step->in[0], error));
    const struct layout *layouts[] = {&out.layout, &a.layout};
    struct walk walk;
    for (walk_init(&walk, 2, layouts); walk.left > 0; walk_next(&walk)) {
        if (walk.left % CHECKED_ELEMENTS == 0)
            TRY(reference_visit(reference, CHECKED_ELEMENTS, error));
        operand_store(&out, walk.position[0], operand_load(&a, walk.position[1]));
    }
    return HEALCL_OK;
}

enum healcl_status reference_release(struct reference *reference, const struct step *step,
                                     struct healcl_error *error)
{
    (void)error;
    const struct storage *storage = step->in[0]->storage;
    if (!is_constants(reference, storage))
        memory_release(&reference->memories[storage->id]);
    return HEALCL_OK;
}

/* The caller reads the result: reference_read. */
enum healcl_status reference_download(struct reference *reference, const struct step *step,
                                      struct healcl_error *error)
{
    (void)reference, (void)step, (void)error;
    return HEALCL_OK;
}

/* An operation with a body would have other steps instead. */
enum healcl_status reference_vendor(struct reference *reference, const struct step *step,
                                    struct healcl_error *error)
{
    (void)reference, (void)step;
    REFUSE_FOR(error, OPERATION,
               "a vendor's operation without a body cannot run on the host reference");
}
