#include "reference/operand.h"

#include <inttypes.h>
#include <stdlib.h>

enum healcl_status reference_operand(struct operand *operand, struct reference *reference,
                                     const struct tensor *tensor, struct healcl_error *error)
{
    operand->layout = tensor->layout;
    operand->dtype = tensor->storage->dtype;
    return reference_memory(reference, tensor->storage, &operand->bytes, error);
}

void *reference_allocate(uint64_t count, size_t size)
{
    return count <= SIZE_MAX ? calloc(count > 0 ? (size_t)count : 1, size) : NULL;
}

const char *reference_refuse(struct reference *reference, const struct step *step, int i)
{
    reference->refused_input = i;
    return step_input_name(step, i);
}

enum healcl_status reference_check_range(struct reference *reference, const struct step *step,
                                         int i, const struct operand *operand, int64_t lowest,
                                         int64_t highest, const char *what,
                                         struct healcl_error *error)
{
    struct layout own = layout_own_elements(&operand->layout);
    const struct layout *layouts[] = {&own};
    struct walk walk;
    int64_t visited = 0;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk), visited++) {
        int64_t value = operand_load(operand, walk.position[0]);
        if (value >= lowest && value <= highest)
            continue;
        char index[SHAPE_TEXT_SIZE];
        layout_index_text(&own, visited, index);
        REFUSE(error, "argument '%s': %" PRId64 "%s%s is %s", reference_refuse(reference, step, i),
               value, own.rank > 0 ? " at " : "", own.rank > 0 ? index : "", what);
    }
    return HEALCL_OK;
}

enum healcl_status reference_moduli(struct operand *moduli, struct reference *reference,
                                    const struct step *step, int i, struct healcl_error *error)
{
    TRY(reference_operand(moduli, reference, step->in[i], error));
    return reference_check_range(reference, step, i, moduli, 1, INT64_MAX, "below 1", error);
}

enum healcl_status reference_read_vector(const struct operand *operand, int64_t **values,
                                         struct healcl_error *error)
{
    const struct layout *layout = &operand->layout;
    int64_t *copy = reference_allocate((uint64_t)layout->shape[0], sizeof *copy);
    NEED_MEMORY(copy, error);
    for (int64_t i = 0; i < layout->shape[0]; i++)
        copy[i] = operand_load(operand, layout->offset + i * layout->stride[0]);
    *values = copy;
    return HEALCL_OK;
}

/* Refuses an array that is not a permutation. seen: n zeroes. */
static enum healcl_status check_permutation(struct reference *reference, const struct step *step,
                                            int i, const int64_t *perm, int64_t n, bool *seen,
                                            struct healcl_error *error)
{
    for (int64_t l = 0; l < n; l++) {
        if (perm[l] < 0 || perm[l] >= n)
            REFUSE(error,
                   "argument '%s': %" PRId64 " at [%" PRId64 "] is outside of [0, %" PRId64 ")",
                   reference_refuse(reference, step, i), perm[l], l, n);
        if (seen[perm[l]])
            REFUSE(error, "argument '%s': %" PRId64 " at [%" PRId64 "] repeats an earlier entry",
                   reference_refuse(reference, step, i), perm[l], l);
        seen[perm[l]] = true;
    }
    return HEALCL_OK;
}

enum healcl_status reference_read_permutation(struct reference *reference, const struct step *step,
                                              int i, int64_t **perm, struct healcl_error *error)
{
    struct operand operand;
    TRY(reference_operand(&operand, reference, step->in[i], error));
    int64_t n = operand.layout.shape[0];
    TRY(reference_read_vector(&operand, perm, error));
    bool *seen = reference_allocate((uint64_t)n, sizeof *seen);
    enum healcl_status status = seen ? check_permutation(reference, step, i, *perm, n, seen, error)
                                     : ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    free(seen);
    if (status != HEALCL_OK) {
        free(*perm);
        *perm = NULL;
    }
    return status;
}
