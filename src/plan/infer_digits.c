/* Gadget digits. */
#include <inttypes.h>
#include <string.h>

#include "plan/infer.h"

static enum healcl_status digit_arguments(const struct call *call, int64_t kept, int64_t *base_bits,
                                          struct healcl_error *error)
{
    int64_t g_exp = integer_of(call, "g_exp", 0);
    *base_bits = integer_of(call, "base_bits", 0);
    if (*base_bits < 1)
        REFUSE_ARGUMENT("base_bits", "%" PRId64 " is below 1", *base_bits);
    if (g_exp != kept)
        REFUSE_ARGUMENT_FOR(SHAPE, "g_exp", "%" PRId64 " digits, but out has room for %" PRId64,
                            g_exp, kept);
    return HEALCL_OK;
}

enum healcl_status infer_digits(struct call *call, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a"), *out = tensor_of(call, "out");
    TRY(want_rank(call, "out", out, a->layout.rank + 1, error));
    int64_t shape[LAYOUT_RANK], base_bits, kept = out->layout.shape[a->layout.rank];
    memcpy(shape, a->layout.shape, a->layout.rank * sizeof *shape);
    shape[a->layout.rank] = kept;
    TRY(want_shape(call, "out", &out->layout, a->layout.rank + 1, shape, error));
    TRY(digit_arguments(call, kept, &base_bits, error));

    struct step step = planner_step(call->planner, STEP_DIGITS, out);
    step.value[0] = base_bits;
    TRY(set_input(call, &step, 0, "a", NULL, error));
    return add_compute(call, &step, error);
}

enum healcl_status infer_digits_full_q(struct call *call, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a"), *out = tensor_of(call, "out");
    TRY(want_rank(call, "a", a, 3, error));
    TRY(want_rank(call, "out", out, 3, error));
    TRY(want_shape(call, "q", &tensor_of(call, "q")->layout, 1, &a->layout.shape[1], error));
    int64_t base_bits, kept = out->layout.shape[1];
    TRY(want_shape(call, "out", &out->layout, 3,
                   (int64_t[]){a->layout.shape[0], kept, a->layout.shape[2]}, error));
    TRY(digit_arguments(call, kept, &base_bits, error));
    if (a->layout.shape[1] == 0) /* the only residue of an empty product is 0 */
        return add_fill(call, call->result, 0, error);

    struct step step = planner_step(call->planner, STEP_DIGITS_FULL_Q, out);
    step.value[0] = base_bits;
    TRY(set_input(call, &step, 0, "a", NULL, error));
    TRY(set_input(call, &step, 1, "q", NULL, error));
    return add_compute(call, &step, error);
}
