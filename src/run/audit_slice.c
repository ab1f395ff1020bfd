#include "run/audit_slice.h"

#include <string.h>

uint64_t audit_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* ---------------------------------------------------------------- slices */

static struct layout narrow(const struct audit_cut *cut, int i)
{
    struct layout layout = step_operand(cut->step, i)->layout;
    for (uint32_t axis = 0; axis < layout.rank; axis++) {
        const int letter = (unsigned char)cut->axes.names[i][axis];
        if (cut->full[letter] > 0)
            layout = layout_narrow(&layout, axis, cut->start[letter], cut->size[letter]);
    }
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
            slice->first[i] = tensor->layout.offset;
            slice->storages[i] = (struct storage){.id = (uint32_t)i,
                                                  .dtype = whole->storage->dtype,
                                                  .origin = whole->storage->origin,
                                                  .elements = layout_elements(&tensor->layout) > 0
                                                                  ? layout_last(&tensor->layout) -
                                                                        tensor->layout.offset + 1
                                                                  : 0};
            tensor->storage = &slice->storages[i];
            tensor->layout.offset = 0;
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

double audit_slice_cost(const struct audit_slice *slice, const struct audit_rates *rates)
{
    return rates->fixed + rates->per_byte * (double)audit_slice_bytes(slice) +
           rates->per_visit[slice->step.kind] * (double)step_visits(&slice->step);
}

static double cut_cost(const struct audit_cut *cut, const struct audit_rates *rates)
{
    struct audit_slice slice;
    audit_slice_init(&slice, cut);
    return audit_slice_cost(&slice, rates);
}

/* ---------------------------------------------------------------- sizes */

/* Axes of out that can be cut, neighbours in memory first. Returns how many. */
static uint32_t list_letters(const struct audit_cut *cut, int letters[LAYOUT_RANK])
{
    const struct layout *out = &cut->step->out->layout;
    int64_t strides[LAYOUT_RANK];
    uint32_t count = 0;
    for (uint32_t axis = out->rank; axis-- > 0;) {
        const int letter = (unsigned char)cut->axes.names[STEP_OUT][axis];
        if (cut->full[letter] <= 1)
            continue;
        uint32_t at = count++;
        for (; at > 0 && strides[at - 1] > out->stride[axis]; at--) {
            strides[at] = strides[at - 1];
            letters[at] = letters[at - 1];
        }
        strides[at] = out->stride[axis];
        letters[at] = letter;
    }
    return count;
}

/* Of what is not cut in out, the transforms' rows among it. */
static int64_t uncut_elements(const struct audit_cut *cut)
{
    const struct layout *out = &cut->step->out->layout;
    int64_t elements = 1;
    for (uint32_t axis = 0; axis < out->rank; axis++)
        if (cut->full[(int)cut->axes.names[STEP_OUT][axis]] == 0)
            elements *= out->shape[axis];
    return elements;
}

static void cut_init(struct audit_cut *cut, const struct step *step)
{
    memset(cut, 0, sizeof *cut);
    cut->step = step;
    step_axes(step, &cut->axes);
    const struct layout *out = &step->out->layout;
    for (uint32_t axis = 0; axis < out->rank; axis++) {
        const int letter = (unsigned char)cut->axes.names[STEP_OUT][axis];
        if (letter == '*')
            continue;
        cut->full[letter] = out->shape[axis];
        cut->size[letter] = 1;
    }
}

/* Whether a letter is one that different moduli go along. */
static bool is_of_moduli(const struct audit_cut *cut, int letter)
{
    const int input = step_moduli(cut->step);
    if (input == NO_INPUT || cut->step->in[input]->storage->scalars)
        return false;
    const struct layout *moduli = &cut->step->in[input]->layout;
    for (uint32_t axis = 0; axis < moduli->rank; axis++)
        if (cut->axes.names[input][axis] == letter && moduli->stride[axis] != 0)
            return true;
    return false;
}

void audit_cut_least(struct audit_cut *cut, const struct step *step,
                     const struct audit_rates *rates)
{
    enum { DEAR = 20 /* times what each audit costs */ };
    int letters[LAYOUT_RANK];
    cut_init(cut, step);
    const uint32_t count = list_letters(cut, letters);
    int64_t elements = uncut_elements(cut);
    for (uint32_t i = 0; i < count && elements < AUDIT_LANES; i++) {
        const int64_t wanted = (AUDIT_LANES + elements - 1) / elements;
        cut->size[letters[i]] = wanted < cut->full[letters[i]] ? wanted : cut->full[letters[i]];
        elements *= cut->size[letters[i]];
    }
    for (uint32_t i = 0; i < count; i++) {
        int64_t *size = &cut->size[letters[i]], before = *size;
        if (!is_of_moduli(cut, letters[i]) || cut->full[letters[i]] > AUDIT_MODULI_MOST)
            continue;
        *size = cut->full[letters[i]];
        if (cut_cost(cut, rates) > DEAR * rates->fixed)
            *size = before;
    }
}

void audit_cut_grow(struct audit_cut *cut, const struct audit_rates *rates, double nanoseconds)
{
    int letters[LAYOUT_RANK];
    const uint32_t count = list_letters(cut, letters);
    for (bool grown = true; grown;) {
        grown = false;
        for (uint32_t i = 0; i < count; i++) {
            int64_t *size = &cut->size[letters[i]], before = *size;
            if (before == cut->full[letters[i]])
                continue;
            *size = before > cut->full[letters[i]] / 2 ? cut->full[letters[i]] : 2 * before;
            if (cut_cost(cut, rates) > nanoseconds)
                *size = before;
            else
                grown = true;
        }
    }
}

void audit_cut_place(struct audit_cut *cut, uint64_t *random)
{
    for (int letter = 0; letter < AXIS_LETTERS; letter++) {
        const int64_t full = cut->full[letter], size = cut->size[letter];
        if (full <= size)
            continue;
        const uint64_t places = (uint64_t)((full + size - 1) / size);
        const int64_t start = (int64_t)(audit_random(random) % places) * size;
        cut->start[letter] = start + size <= full ? start : full - size;
    }
}

int64_t audit_cut_element(const struct audit_cut *cut, int64_t position)
{
    const struct layout *out = &cut->step->out->layout, slice = narrow(cut, STEP_OUT);
    int64_t index[LAYOUT_RANK], element = 0;
    layout_multi_index(&slice, position, index);
    for (uint32_t axis = 0; axis < out->rank; axis++)
        element = element * out->shape[axis] + index[axis] +
                  cut->start[(int)cut->axes.names[STEP_OUT][axis]];
    return element;
}
