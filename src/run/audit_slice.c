#include "run/audit_slice.h"

struct audit_cut audit_cut_of(const struct step *step)
{
    struct audit_cut cut = {.step = step, .full = 1, .size = 1};
    const struct layout *out = &step->out->layout;
    step_axes(step, &cut.axes);
    for (uint32_t axis = 0; axis < out->rank && !cut.letter; axis++) {
        const char letter = cut.axes.names[STEP_OUT][axis];
        if (letter == '*' || out->shape[axis] <= 1)
            continue;
        cut.letter = letter;
        cut.full = cut.size = out->shape[axis];
    }
    return cut;
}

static struct layout narrow(const struct audit_cut *cut, int i)
{
    struct layout layout = step_operand(cut->step, i)->layout;
    for (uint32_t axis = 0; cut->letter && axis < layout.rank; axis++)
        if (cut->axes.names[i][axis] == cut->letter)
            layout = layout_narrow(&layout, axis, cut->start, cut->size);
    return layout;
}

void audit_slice_init(struct audit_slice *slice, const struct audit_cut *cut)
{
    slice->step = *cut->step;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *whole = step_operand(cut->step, i);
        if (!whole)
            continue;
        struct tensor *tensor = &slice->tensors[i];
        *tensor = (struct tensor){.storage = whole->storage, .layout = narrow(cut, i)};
        slice->first[i] = 0;
        if (!whole->storage->scalars) {
            const bool is_empty = layout_elements(&tensor->layout) == 0;
            slice->first[i] = tensor->layout.offset;
            tensor->layout.offset = 0;
            slice->storages[i] =
                (struct storage){.id = (uint32_t)i,
                                 .dtype = whole->storage->dtype,
                                 .origin = whole->storage->origin,
                                 .elements = is_empty ? 0 : layout_last(&tensor->layout) + 1};
            tensor->storage = &slice->storages[i];
        }
        if (i == STEP_OUT)
            slice->step.out = tensor;
        else
            slice->step.in[i] = tensor;
    }
}

uint64_t audit_slice_bytes(const struct audit_slice *slice)
{
    uint64_t bytes = 0;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step_operand(&slice->step, i);
        if (tensor && !tensor->storage->scalars)
            bytes +=
                storage_bytes(tensor->storage) * (i == STEP_OUT && step_adds(&slice->step) ? 2 : 1);
    }
    return bytes;
}

int64_t audit_cut_element(const struct audit_cut *cut, int64_t position)
{
    const struct layout *out = &cut->step->out->layout, slice = narrow(cut, STEP_OUT);
    int64_t index[LAYOUT_RANK], element = 0;
    layout_multi_index(&slice, position, index);
    for (uint32_t axis = 0; axis < out->rank; axis++)
        element = element * out->shape[axis] + index[axis] +
                  (cut->letter && cut->axes.names[STEP_OUT][axis] == cut->letter ? cut->start : 0);
    return element;
}
