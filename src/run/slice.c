#include "run/slice.h"

/* Makes slice->step: `step` on a part of its operands, `size` indices of one axis from `start` on.
 * slices->axis names that axis in each operand; NO_AXIS: the operand is not cut. An operand that is
 * cut gets its own storage, which holds just what its part spans. slice->first is where that begins
 * in the whole storage. all: also operands that are not cut get such a storage. The plan's scalars
 * stay where they are. Ids of the storages count from first_id on, by operand. */
void slice_init(struct slice *slice, const struct step *step, const struct slices *slices,
                int64_t start, int64_t size, uint32_t first_id, bool all)
{
    slice->step = *step;
    slice->start = start;
    slice->size = size;
    FOR_EACH_OPERAND (i, whole, step) {
        struct tensor *part = &slice->tensors[i];
        const bool is_cut = slices->axis[i] >= 0;
        slice->first[i] = 0;
        if (!is_cut && !all)
            continue;
        *part = *whole;
        if (is_cut)
            part->layout = layout_narrow(&whole->layout, (uint32_t)slices->axis[i], start, size);
        if (!whole->storage->scalars) {
            slice->first[i] = part->layout.offset;
            part->layout.offset = 0;
            part->storage = &slice->storages[i];
            *part->storage = (struct storage){.id = first_id + (uint32_t)i,
                                              .dtype = whole->storage->dtype,
                                              .origin = whole->storage->origin,
                                              .elements = layout_span(&part->layout)};
        }
        slice->step.operands[i] = part;
    }
}

/* Converts the position of an element in a part of a tensor to its position in the whole tensor.
 * Positions count elements in C order. The whole has `full` indices of `axis`, and the part has
 * those from `start` on. Other axes are equal. NO_AXIS: the part is the whole. */
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
