#include "run/slice.h"

void slice_init(struct slice *slice, const struct step *step, const struct slices *slices,
                int64_t start, int64_t size, uint32_t first_id, bool all)
{
    slice->step = *step;
    slice->start = start;
    slice->size = size;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *whole = step_operand(step, i);
        struct tensor *tensor = &slice->tensors[i];
        struct layout *layout = &tensor->layout;
        slice->first[i] = 0;
        if (!whole || (slices->axis[i] < 0 && !all))
            continue;
        *tensor = *whole;
        if (slices->axis[i] >= 0)
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
        if (i == STEP_OUT)
            slice->step.out = tensor;
        else
            slice->step.in[i] = tensor;
    }
}

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
