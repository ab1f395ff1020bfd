/* Uploads, downloads, allocation and views. */
#include <inttypes.h>

#include "plan/infer.h"

/* ---------------------------------------------------------------- memory */

enum healcl_status infer_host_to_device(struct call *call, struct healcl_error *error)
{
    const struct argument *host = &call->entry->arguments[0];
    const struct argument *out = &call->entry->out;
    if (!host->host.present)
        REFUSE_ARGUMENT("tensor", "holds no data");
    const struct payload *payload = &host->host.payload;
    enum dtype dtype = payload->dtype;
    if (out->kind == ARGUMENT_DEVICE_TENSOR && out->tensor.has_dtype)
        dtype = out->tensor.dtype;
    TRY_ARGUMENT("tensor", planner_new_tensor(call, dtype, payload->layout.rank,
                                              payload->layout.shape, &call->result, error));
    if (storage_bytes(call->result->storage) == 0)
        return HEALCL_OK;
    struct plan *plan = call->planner->plan;
    struct step step = planner_step(call->planner, STEP_UPLOAD, call->result);
    step.payload = arena_copy(plan->arena, payload, sizeof *payload);
    step.tensor_name =
        out->kind == ARGUMENT_DEVICE_TENSOR ? arena_strdup(plan->arena, out->tensor.name) : "";
    NEED_MEMORY(step.payload && step.tensor_name, error);
    return planner_add_step(call->planner, &step, error);
}

enum healcl_status infer_device_to_host(struct call *call, struct healcl_error *error)
{
    struct plan *plan = call->planner->plan;
    struct step step = planner_step(call->planner, STEP_DOWNLOAD, NULL);
    TRY(set_input(call, &step, 0, "t", NULL, error));
    step.tensor_name =
        arena_strdup(plan->arena, call->entry->arguments[index_of(call, "t")].tensor.name);
    NEED_MEMORY(step.tensor_name, error);
    const struct argument *out = &call->entry->out;
    if (out->kind == ARGUMENT_HOST_TENSOR && out->host.present && out->host.payload.data) {
        step.payload = arena_copy(plan->arena, &out->host.payload, sizeof out->host.payload);
        NEED_MEMORY(step.payload, error);
    }
    return planner_add_step(call->planner, &step, error);
}

/* Reads a SHAPE argument as sizes. */
static enum healcl_status shape_of(const struct call *call, const char *name,
                                   int64_t shape[INDEX_ITEMS_MAX], uint32_t *rank,
                                   struct healcl_error *error)
{
    const struct argument *argument = &call->entry->arguments[index_of(call, name)];
    *rank = argument->shape.count;
    if (*rank > MAX_RANK)
        REFUSE_ARGUMENT_FOR(SHAPE, name, "rank %" PRIu32 " is above %d", *rank, MAX_RANK);
    for (uint32_t i = 0; i < *rank; i++) {
        if (argument->shape.items[i].kind != HEALCL_INDEX_INT)
            REFUSE_ARGUMENT(name, "item %" PRIu32 " of a shape must be an INT", i);
        shape[i] = argument->shape.items[i].value;
    }
    return HEALCL_OK;
}

enum healcl_status infer_empty(struct call *call, struct healcl_error *error)
{
    int64_t shape[INDEX_ITEMS_MAX];
    uint32_t rank;
    TRY(shape_of(call, "shape", shape, &rank, error));
    enum dtype dtype = call->entry->arguments[index_of(call, "dtype")].dtype;
    TRY_ARGUMENT("shape", planner_new_tensor(call, dtype, rank, shape, &call->result, error));
    return HEALCL_OK;
}

enum healcl_status infer_zeros(struct call *call, struct healcl_error *error)
{
    TRY(infer_empty(call, error));
    return add_fill(call, call->result, 0, error);
}

enum healcl_status infer_set_const_val(struct call *call, struct healcl_error *error)
{
    int64_t value = integer_of(call, "v", 0);
    enum dtype dtype = call->result->storage->dtype;
    if (!dtype_holds(dtype, value))
        REFUSE_ARGUMENT("v", "%" PRId64 " does not fit %s", value, dtype_name(dtype));
    return add_fill(call, call->result, value, error);
}

enum healcl_status infer_free_device_tensor(struct call *call, struct healcl_error *error)
{
    const struct argument *argument = &call->entry->arguments[0];
    return planner_free_name(call->planner, argument->tensor.name, error);
}

/* ---------------------------------------------------------------- views */

/* Makes the result a view of the storage of argument a. */
static enum healcl_status result_view(struct call *call, const struct layout *layout,
                                      struct healcl_error *error)
{
    return plan_view(call->planner->plan, tensor_of(call, "a")->storage, layout, &call->result,
                     error);
}

/* Makes the result a C-order copy of argument a, in another shape with as many elements. */
static enum healcl_status result_copy(struct call *call, uint32_t rank, const int64_t *shape,
                                      struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a");
    const struct tensor *same_shape;
    TRY(planner_new_tensor(call, a->storage->dtype, rank, shape, &call->result, error));
    struct layout layout = layout_packed(&a->layout);
    TRY(plan_view(call->planner->plan, call->result->storage, &layout, &same_shape, error));
    struct step step = planner_step(call->planner, STEP_COPY, same_shape);
    TRY(set_input(call, &step, 0, "a", NULL, error));
    return add_compute(call, &step, error);
}

static enum healcl_status reshape_to(struct call *call, uint32_t rank, const int64_t *shape,
                                     struct healcl_error *error)
{
    struct layout view;
    if (layout_reshape(&tensor_of(call, "a")->layout, rank, shape, &view))
        return result_view(call, &view, error);
    return result_copy(call, rank, shape, error);
}

enum healcl_status infer_reshape(struct call *call, struct healcl_error *error)
{
    int64_t shape[INDEX_ITEMS_MAX];
    uint32_t rank;
    TRY(shape_of(call, "shape", shape, &rank, error));
    int64_t elements = layout_elements(&tensor_of(call, "a")->layout);
    TRY_ARGUMENT("shape", shape_complete(rank, shape, elements, error));
    return reshape_to(call, rank, shape, error);
}

enum healcl_status infer_flatten(struct call *call, struct healcl_error *error)
{
    const struct layout *a = &tensor_of(call, "a")->layout;
    int64_t shape[LAYOUT_RANK];
    uint32_t first, last, rank = 0;
    /* A tensor of rank 0 counts as having one axis, as in torch. */
    TRY(axis_of(call, "first", a->rank ? a->rank : 1, &first, error));
    TRY(axis_of(call, "last", a->rank ? a->rank : 1, &last, error));
    if (first > last)
        REFUSE_ARGUMENT("last", "axis %" PRIu32 " comes before axis %" PRIu32, last, first);
    for (uint32_t axis = 0; axis < first; axis++)
        shape[rank++] = a->shape[axis];
    /* If one axis has size 0, the others may be too large to be joined. */
    struct layout joined;
    uint32_t joined_rank = a->rank ? last - first + 1 : 0;
    TRY_ARGUMENT("a", layout_init(&joined, joined_rank, a->shape + first, 1, error));
    shape[rank++] = layout_elements(&joined);
    for (uint32_t axis = last + 1; axis < a->rank; axis++)
        shape[rank++] = a->shape[axis];
    return reshape_to(call, rank, shape, error);
}

enum healcl_status infer_squeeze(struct call *call, struct healcl_error *error)
{
    const struct layout *a = &tensor_of(call, "a")->layout;
    uint32_t axis;
    TRY(axis_of(call, "axis", a->rank, &axis, error));
    if (a->shape[axis] != 1)
        REFUSE_ARGUMENT_FOR(SHAPE, "axis", "axis %" PRIu32 " has size %" PRId64 ", not 1", axis,
                            a->shape[axis]);
    struct layout view = layout_drop_axis(a, axis);
    return result_view(call, &view, error);
}

enum healcl_status infer_unsqueeze(struct call *call, struct healcl_error *error)
{
    const struct layout *a = &tensor_of(call, "a")->layout;
    uint32_t axis;
    TRY(axis_of(call, "axis", a->rank + 1, &axis, error));
    if (a->rank == MAX_RANK)
        REFUSE_ARGUMENT_FOR(SHAPE, "a", "rank %d cannot grow", MAX_RANK);
    int64_t stride = axis < a->rank ? a->stride[axis] * a->shape[axis] : 1;
    struct layout view = layout_insert_axis(a, axis, 1, stride);
    return result_view(call, &view, error);
}

static bool can_expand(const struct layout *layout, int64_t axis, int64_t repeats)
{
    uint32_t number;
    return axis_normalize(axis, layout->rank, &number, NULL) == HEALCL_OK &&
           layout->shape[number] == 1 && repeats >= 1;
}

/* The specification has axis and repeats in this order; the runtime of HEAL's SDK has the other
 * order. Bodies of manifests follow the specification. */
static void read_expand(struct call *call, int64_t *axis, int64_t *repeats)
{
    const struct layout *a = &tensor_of(call, "a")->layout;
    struct plan *plan = call->planner->plan;
    const int64_t first = *axis = integer_of(call, "axis", 0);
    const int64_t second = *repeats = integer_of(call, "repeats", 1);
    const enum healcl_expand reading =
        call->planner->outer ? HEALCL_EXPAND_SPECIFICATION : call->planner->expand;
    bool swaps = reading == HEALCL_EXPAND_SDK;
    if (reading == HEALCL_EXPAND_VALID && first != second && can_expand(a, second, first)) {
        swaps = !can_expand(a, first, second);
        if (!swaps && plan->either_way.count++ == 0) {
            plan->either_way.entry = call->entry->index;
            plan->either_way.axis = first;
            plan->either_way.repeats = second;
        }
    }
    if (swaps) {
        *axis = second;
        *repeats = first;
    }
}

enum healcl_status infer_expand(struct call *call, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a");
    int64_t number, repeats;
    uint32_t axis;
    read_expand(call, &number, &repeats);
    TRY_ARGUMENT("axis", axis_normalize(number, a->layout.rank, &axis, error));
    if (a->layout.shape[axis] != 1)
        REFUSE_ARGUMENT_FOR(SHAPE, "axis", "axis %" PRIu32 " has size %" PRId64 ", not 1", axis,
                            a->layout.shape[axis]);
    if (repeats < 1)
        REFUSE_ARGUMENT("repeats", "%" PRId64 " is below 1", repeats);
    struct layout view = a->layout, checked;
    view.shape[axis] = repeats;
    if (repeats > 1)
        view.stride[axis] = 0;
    TRY_ARGUMENT("repeats", layout_init(&checked, view.rank, view.shape,
                                        dtype_size(a->storage->dtype), error));
    return result_view(call, &view, error);
}

enum healcl_status infer_moveaxis(struct call *call, struct healcl_error *error)
{
    const struct layout *a = &tensor_of(call, "a")->layout;
    uint32_t from, to;
    TRY(axis_of(call, "from", a->rank, &from, error));
    TRY(axis_of(call, "to", a->rank, &to, error));
    struct layout view = layout_move_axis(a, from, to);
    return result_view(call, &view, error);
}

enum healcl_status infer_new_reference(struct call *call, struct healcl_error *error)
{
    return result_view(call, &tensor_of(call, "a")->layout, error);
}

enum healcl_status infer_get_slice(struct call *call, struct healcl_error *error)
{
    const struct argument *index = &call->entry->arguments[index_of(call, "index")];
    struct layout view;
    TRY_ARGUMENT("index", layout_index(&tensor_of(call, "a")->layout, index->shape.items,
                                       index->shape.count, &view, error));
    return result_view(call, &view, error);
}

enum healcl_status infer_contiguous(struct call *call, struct healcl_error *error)
{
    const struct layout *a = &tensor_of(call, "a")->layout;
    if (layout_is_contiguous(a))
        return result_view(call, a, error);
    return result_copy(call, a->rank, a->shape, error);
}
