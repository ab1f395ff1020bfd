/* Gathers and other operations that move elements. */
#include <inttypes.h>
#include <string.h>

#include "plan/infer.h"

enum healcl_status infer_take_along_axis(struct call *call, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a"), *idx = tensor_of(call, "idx");
    const struct tensor *out = tensor_of(call, "out");
    TRY(want_rank(call, "idx", idx, a->layout.rank, error));
    uint32_t axis;
    TRY(axis_of(call, "axis", a->layout.rank, &axis, error));
    /* Both are broadcast to out's shape, but a only along the other axes. */
    struct layout a_view = a->layout, idx_view, shape;
    a_view.shape[axis] = 1;
    if (out) {
        TRY(want_rank(call, "out", out, a->layout.rank, error));
    } else {
        TRY_ARGUMENT("idx", layout_broadcast_shape(&a_view, &idx->layout, &shape, error));
        TRY(find_out(call, shape.rank, shape.shape, &out, error));
    }
    TRY_ARGUMENT("a", layout_broadcast(&a_view, &out->layout, &a_view, error));
    TRY_ARGUMENT("idx", layout_broadcast(&idx->layout, &out->layout, &idx_view, error));
    a_view.shape[axis] = a->layout.shape[axis];
    a_view.stride[axis] = a->layout.stride[axis];
    struct step step = planner_step(call->planner, STEP_GATHER, out);
    step.value[0] = axis;
    step.value[1] = 1;
    TRY(set_input(call, &step, 0, "a", &a_view, error));
    TRY(set_input(call, &step, 1, "idx", &idx_view, error));
    return add_compute(call, &step, error);
}

enum healcl_status infer_permute(struct call *call, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a"), *perms = tensor_of(call, "perms");
    const struct tensor *out;
    uint32_t row_axis, perm_axis;
    TRY(axis_of(call, "elementwise_axis", a->layout.rank, &row_axis, error));
    TRY(axis_of(call, "perm_axis", a->layout.rank, &perm_axis, error));
    if (row_axis == perm_axis)
        REFUSE_ARGUMENT("perm_axis", "is also the elementwise axis");
    TRY(want_shape(call, "perms", &perms->layout, 2,
                   (int64_t[]){a->layout.shape[row_axis], a->layout.shape[perm_axis]}, error));
    TRY(find_out(call, a->layout.rank, a->layout.shape, &out, error));

    struct layout perms_view = out->layout;
    memset(perms_view.stride, 0, sizeof perms_view.stride);
    perms_view.offset = perms->layout.offset;
    perms_view.stride[row_axis] = perms->layout.stride[0];
    perms_view.stride[perm_axis] = perms->layout.stride[1];
    struct step step = planner_step(call->planner, STEP_GATHER, out);
    step.value[0] = perm_axis;
    TRY(set_input(call, &step, 0, "a", NULL, error));
    TRY(set_input(call, &step, 1, "perms", &perms_view, error));
    return add_compute(call, &step, error);
}

/* Finds out, which is a with a longer axis: longer by the argument `name`, or that many times. */
static enum healcl_status find_grown_out(struct call *call, const char *name, bool is_factor,
                                         uint32_t *axis, int64_t *by, const struct tensor **out,
                                         struct healcl_error *error)
{
    const struct layout *a = &tensor_of(call, "a")->layout;
    int64_t shape[LAYOUT_RANK];
    memcpy(shape, a->shape, sizeof shape);
    TRY(axis_of(call, "axis", a->rank, axis, error));
    int64_t *size = &shape[*axis];
    *by = integer_of(call, name, 0);
    if (*by < 0)
        REFUSE_ARGUMENT(name, "%" PRId64 " is negative", *by);
    if (is_factor ? __builtin_mul_overflow(*size, *by, size)
                  : __builtin_add_overflow(*size, *by, size))
        REFUSE_ARGUMENT(name, "%" PRId64 " is too large", *by);
    return find_out(call, a->rank, shape, out, error);
}

/* Adds the copy of one view to another. */
static enum healcl_status gather_add_copy(struct call *call, const struct layout *out_view,
                                          const struct layout *a_view, struct healcl_error *error)
{
    struct step step = planner_step(call->planner, STEP_COPY, NULL);
    TRY(set_output(call, &step, out_view, error));
    TRY(set_input(call, &step, 0, "a", a_view, error));
    return add_compute(call, &step, error);
}

enum healcl_status infer_copy(struct call *call, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a"), *out = tensor_of(call, "out");
    if (a->storage->dtype != out->storage->dtype)
        REFUSE_ARGUMENT_FOR(DTYPE, "a", "is %s, but must be %s like out",
                            dtype_name(a->storage->dtype), dtype_name(out->storage->dtype));
    TRY(want_shape(call, "a", &a->layout, out->layout.rank, out->layout.shape, error));
    return gather_add_copy(call, &out->layout, &a->layout, error);
}

enum healcl_status infer_pad_single_axis(struct call *call, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a"), *out;
    uint32_t axis;
    int64_t pad;
    TRY(find_grown_out(call, "pad", false, &axis, &pad, &out, error));
    const int64_t size = a->layout.shape[axis];

    struct layout head = layout_narrow(&out->layout, axis, 0, size);
    struct layout tail_layout = layout_narrow(&out->layout, axis, size, pad);
    const struct tensor *tail;
    TRY(plan_view(call->planner->plan, out->storage, &tail_layout, &tail, error));
    /* Copy first: the zeros may overwrite elements that the copy reads. */
    TRY(gather_add_copy(call, &head, &a->layout, error));
    return add_fill(call, tail, 0, error);
}

enum healcl_status infer_repeat_interleave(struct call *call, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a"), *out;
    uint32_t axis;
    int64_t repeats;
    TRY(find_grown_out(call, "repeats", true, &axis, &repeats, &out, error));

    /* Element i of the axis becomes row i of an axis split into [size, repeats]. */
    const int64_t size = a->layout.shape[axis], stride = out->layout.stride[axis];
    struct layout a_view = layout_insert_axis(&a->layout, axis + 1, repeats, 0);
    struct layout out_view = layout_insert_axis(&out->layout, axis + 1, repeats, stride);
    out_view.shape[axis] = size;
    out_view.stride[axis] = size > 1 ? stride * repeats : 0; /* else it may overflow */
    return gather_add_copy(call, &out_view, &a_view, error);
}
