/* take_along_axis, permute, and the steps that the plan makes from them: elements by index. */
#include "reference/operand.h"

#include <inttypes.h>
#include <stdio.h>

/* out[c] = a[c with c[axis] := idx[c]] */
enum healcl_status reference_gather(struct reference *reference, const struct step *step,
                                    struct healcl_error *error)
{
    struct operand out, a, idx;
    TRY(reference_operand(&out, reference, step->out, error));
    TRY(reference_operand(&a, reference, step->in[0], error));
    TRY(reference_operand(&idx, reference, step->in[1], error));

    uint32_t axis = (uint32_t)step->value[0];
    bool wraps = step->value[1] != 0; /* -1 is the last index */
    int64_t size = a.layout.shape[axis], stride = a.layout.stride[axis];
    char outside[80];
    snprintf(outside, sizeof outside, "outside of axis %" PRIu32 " of size %" PRId64, axis, size);
    TRY(reference_check_range(reference, step, 1, &idx, wraps ? -size : 0, size - 1, outside,
                              error));

    struct layout line = a.layout; /* where the index is 0 */
    line.shape[axis] = out.layout.shape[axis];
    line.stride[axis] = 0;
    const struct layout *layouts[] = {&out.layout, &line, &idx.layout};
    struct walk walk;
    for (walk_init(&walk, 3, layouts); walk.left > 0; walk_next(&walk)) {
        if (walk.left % CHECKED_ELEMENTS == 0)
            TRY(reference_visit(reference, CHECKED_ELEMENTS, error));
        int64_t index = operand_load(&idx, walk.position[2]);
        if (index < 0)
            index += size;
        operand_store(&out, walk.position[0], operand_load(&a, walk.position[1] + index * stride));
    }
    return HEALCL_OK;
}
