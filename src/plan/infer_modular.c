/* Elementwise operations, sums and transforms. */
#include <inttypes.h>
#include <string.h>

#include "plan/infer.h"

/* ---------------------------------------------------------------- elementwise */

/* The kind of step with the operation's id. An operation without one does not compile. */
static enum step_kind modular_kind(const struct call *call)
{
#define SECOND(first, second, ...) second
#define SECOND_OF(...) SECOND(__VA_ARGS__, , )
#define CASE_infer_elementwise(id) , case OPERATION_##id : return STEP_##id;
#define OPERATION(id, name, family, infer, ...) SECOND_OF(CASE_##infer(id))
#define FORM(...)
    switch (form_id(call->form)) {
#include "plan/ops.def"
    default: return (enum step_kind)STEP_KINDS; /* another function's operation */
    }
#undef OPERATION
#undef FORM
}

/* All parameters but the last one, out, are operands. The last of them but a holds the moduli. */
enum healcl_status infer_elementwise(struct call *call, struct healcl_error *error)
{
    const struct healcl_parameter_info *parameters = call->form->parameters;
    const uint32_t count = call->form->parameter_count - 1;
    const struct tensor *out;
    struct layout shape = {.rank = 0};
    for (uint32_t i = 0; i < count; i++)
        if (call->tensors[i])
            TRY_ARGUMENT(parameters[i].name,
                         layout_broadcast_shape(&shape, &call->tensors[i]->layout, &shape, error));
    TRY(find_out(call, shape.rank, shape.shape, &out, error));

    struct step step = planner_step(call->planner, modular_kind(call), out);
    for (uint32_t i = 0; i < count; i++) {
        const int place = i == 0 ? 0 : i == count - 1 ? 2 : 1;
        const struct tensor *operand = call->tensors[i];
        if (!operand)
            TRY(planner_constant(call->planner, call->entry->arguments[i].integer, &operand,
                                 error));
        struct layout view;
        TRY(layout_broadcast(&operand->layout, &out->layout, &view, error));
        TRY(plan_view(call->planner->plan, operand->storage, &view, &step.in[place], error));
        step.arguments[place].parameter = (uint8_t)i;
    }
    return add_compute(call, &step, error);
}

/* ---------------------------------------------------------------- sums */

enum healcl_status infer_axis_modsum(struct call *call, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a"), *q = tensor_of(call, "q"), *out;
    uint32_t axis;
    TRY(axis_of(call, "axis", a->layout.rank, &axis, error));
    if (axis == a->layout.rank - 1)
        REFUSE_ARGUMENT("axis", "the last axis cannot be summed");
    TRY(want_shape(call, "q", &q->layout, 1, &a->layout.shape[a->layout.rank - 1], error));
    struct layout summed = layout_drop_axis(&a->layout, axis);
    TRY(find_out(call, summed.rank, summed.shape, &out, error));

    struct step step = planner_step(call->planner, STEP_AXIS_MODSUM, out);
    step.value[0] = axis;
    struct layout q_view;
    TRY(layout_broadcast(&q->layout, &out->layout, &q_view, error));
    TRY(set_input(call, &step, 0, "a", NULL, error));
    TRY(set_input(call, &step, 1, "q", &q_view, error));
    return add_compute(call, &step, error);
}

/* The axis of length n, -1 or -3, of a transform or sum over tensors of rank 4. */
static enum healcl_status transform_axis(const struct call *call, int64_t absent, bool *is_last,
                                         struct healcl_error *error)
{
    int64_t axis = integer_of(call, "axis", absent);
    if (axis != -1 && axis != 3 && axis != -3 && axis != 1)
        REFUSE_ARGUMENT("axis", "axis %" PRId64 " is neither -1 nor -3", axis);
    *is_last = axis == -1 || axis == 3;
    return HEALCL_OK;
}

static enum healcl_status want_permutation(const struct call *call, int64_t n,
                                           struct healcl_error *error)
{
    const struct tensor *perm = tensor_of(call, "perm");
    if (!perm)
        REFUSE_ARGUMENT("perm", "must be a tensor here, not NONE");
    TRY(want_index(call, "perm", error));
    return want_shape(call, "perm", &perm->layout, 1, &n, error);
}

enum healcl_status infer_modmul_axis_sum(struct call *call, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a"), *b = tensor_of(call, "b");
    const struct tensor *q = tensor_of(call, "q"), *out;
    const bool is_new = !tensor_of(call, "out");
    TRY(want_rank(call, "a", a, 4, error));
    TRY(want_rank(call, "b", b, 3, error));
    bool is_last;
    TRY(transform_axis(call, -1, &is_last, error));

    /* From here on: a [reps,s,k,n], b [s,k,n], out [reps,k,n]. */
    struct layout a_view = is_last ? a->layout : layout_move_axis(&a->layout, 1, 3);
    struct layout b_view = is_last ? b->layout : layout_move_axis(&b->layout, 0, 2);
    int64_t reps = a_view.shape[0], k = a_view.shape[2], n = a_view.shape[3];
    int64_t b_shape[3], out_shape[3];
    memcpy(b_shape, is_last ? a_view.shape + 1 : a->layout.shape + 1, sizeof b_shape);
    memcpy(out_shape, is_last ? (int64_t[]){reps, k, n} : (int64_t[]){reps, n, k},
           sizeof out_shape);
    TRY(want_shape(call, "b", &b->layout, 3, b_shape, error));
    TRY(want_shape(call, "q", &q->layout, 1, &k, error));
    TRY(find_out(call, 3, out_shape, &out, error));
    if (is_new)
        TRY(add_fill(call, out, 0, error));
    struct layout out_view = is_last ? out->layout : layout_move_axis(&out->layout, 1, 2);

    struct step step = planner_step(call->planner, STEP_MODMUL_AXIS_SUM, NULL);
    TRY(set_output(call, &step, &out_view, error));
    TRY(set_input(call, &step, 0, "a", &a_view, error));
    TRY(set_input(call, &step, 1, "b", &b_view, error));
    TRY(set_input(call, &step, 2, "q", NULL, error));
    if (integer_of(call, "apply_perm", 0)) {
        TRY(want_permutation(call, n, error));
        TRY(set_input(call, &step, 3, "perm", NULL, error));
    }
    return add_compute(call, &step, error);
}

/* ---------------------------------------------------------------- transforms */

static enum healcl_status infer_transform(struct call *call, bool inverse,
                                          struct healcl_error *error)
{
    const char *twiddle_name = inverse ? "ipsi" : "psi";
    const struct tensor *a = tensor_of(call, "a"), *q = tensor_of(call, "q");
    const struct tensor *twiddles = tensor_of(call, twiddle_name), *out;
    TRY(want_rank(call, "a", a, 4, error));
    TRY(want_rank(call, "q", q, 1, error));
    bool is_last;
    TRY(transform_axis(call, -3, &is_last, error));

    /* From here on: a and out [l,r,k,n]. */
    struct layout a_view = is_last ? a->layout : layout_move_axis(&a->layout, 1, 3);
    int64_t k = q->layout.shape[0], n = a_view.shape[3];
    if (n < 1 || (n & (n - 1)) != 0)
        REFUSE_ARGUMENT_FOR(SHAPE, "a", "transform length %" PRId64 " is not a power of two", n);
    bool tile = integer_of(call, "tile", 0) != 0;
    if (a_view.shape[2] != (tile ? 1 : k))
        REFUSE_ARGUMENT_FOR(SHAPE, "a",
                            "size %" PRId64 " on the modulus axis, but must be %" PRId64 "%s",
                            a_view.shape[2], tile ? 1 : k, tile ? " with tile" : "");
    if (tile && k > 1)
        a_view.stride[2] = 0;
    a_view.shape[2] = k;
    int64_t out_shape[4];
    memcpy(out_shape, a->layout.shape, sizeof out_shape);
    out_shape[is_last ? 2 : 3] = k;
    TRY(want_shape(call, twiddle_name, &twiddles->layout, 2, (int64_t[]){k, n}, error));
    TRY(find_out(call, 4, out_shape, &out, error));
    struct layout out_view = is_last ? out->layout : layout_move_axis(&out->layout, 1, 3);

    struct step step = planner_step(call->planner, inverse ? STEP_INTT : STEP_NTT, NULL);
    TRY(set_output(call, &step, &out_view, error));
    TRY(set_input(call, &step, 0, "a", &a_view, error));
    TRY(set_input(call, &step, 1, "q", NULL, error));
    TRY(set_input(call, &step, 2, twiddle_name, NULL, error));
    if (!integer_of(call, "skip_perm", 0)) {
        TRY(want_permutation(call, n, error));
        TRY(set_input(call, &step, 3, "perm", NULL, error));
    }
    if (inverse) {
        TRY(want_shape(call, "n_inv", &tensor_of(call, "n_inv")->layout, 1, &k, error));
        TRY(set_input(call, &step, 4, "n_inv", NULL, error));
    }
    return add_compute(call, &step, error);
}

enum healcl_status infer_ntt(struct call *call, struct healcl_error *error)
{
    return infer_transform(call, false, error);
}

enum healcl_status infer_intt(struct call *call, struct healcl_error *error)
{
    return infer_transform(call, true, error);
}
