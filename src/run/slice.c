#include "run/slice.h"

/* Makes a step that works on a part of another step's operands: `size` indices of one axis, from
 * `start` on. Each operand that is cut gets its own storage, which holds just the span of the part;
 * slice->first says where that begins in the whole storage. all: also operands that are not cut get
 * one. The plan's scalars stay where they are. */
void slice_init(struct slice *slice, const struct step *step, const struct slices *slices,
                int64_t start, int64_t size, uint32_t first_id, bool all)
{
    slice->step = *step;
    slice->start = start;
    slice->size = size;
    FOR_EACH_OPERAND (i, whole, step) {
        struct tensor *tensor = &slice->tensors[i];
        struct layout *layout = &tensor->layout;
        slice->first[i] = 0;
        const bool is_cut = slices->axis[i] >= 0;
        if (!is_cut && !all)
            continue;
        *tensor = *whole;
        if (is_cut)
            *layout = layout_narrow(layout, (uint32_t)slices->axis[i], start, size);
        if (!whole->storage->scalars) {
            slice->first[i] = layout->offset;
            layout->offset = 0;
            slice->storages[i] = (struct storage){.id = first_id + (uint32_t)i,
                                                  .dtype = whole->storage->dtype,
                                                  .origin = whole->storage->origin,
                                                  .elements = layout_span(layout)};
            tensor->storage = &slice->storages[i];
        }
        slice->step.operands[i] = tensor;
    }
}

/* Converts the position of an element in a part to its position in the whole tensor, both in C
 * order. `axis` has `full` indices in the whole, and those from `start` on in the part. NO_AXIS:
 * the part is the whole. */
int64_t slice_element(const struct layout *part, int axis, int64_t start, int64_t full,
                      int64_t position)
{
    int64_t index[LAYOUT_RANK], element = 0;
    layout_multi_index(part, position, index);
    for (uint32_t i = 0; i < part->rank; i++)
        element = (int)i == axis ? element * full + start + index[i]
                                 : element * part->shape[i] + index[i];
    return element;
}
