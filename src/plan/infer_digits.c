/* Gadget digits. */
#include <inttypes.h>
#include <string.h>

#include "plan/infer.h"

static enum healcl_status digit_arguments(const struct call *call, int64_t *g_exp,
                                          int64_t *base_bits, struct healcl_error *error)
{
    *g_exp = integer_of(call, "g_exp", 0);
    *base_bits = integer_of(call, "base_bits", 0);
    if (*base_bits < 1)
        REFUSE_ARGUMENT("base_bits", "%" PRId64 " is below 1", *base_bits);
    if (*g_exp < 0)
        REFUSE_ARGUMENT("g_exp", "%" PRId64 " is negative", *g_exp);
    return HEALCL_OK;
}

enum healcl_status infer_digits(struct call *call, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a"), *out;
    int64_t shape[LAYOUT_RANK], base_bits;
    memcpy(shape, a->layout.shape, a->layout.rank * sizeof *shape);
    TRY(digit_arguments(call, &shape[a->layout.rank], &base_bits, error));
    TRY(find_out(call, a->layout.rank + 1, shape, &out, error));

    struct step step = planner_step(call->planner, STEP_DIGITS, out);
    step.value[0] = base_bits;
    TRY(set_input(call, &step, 0, "a", NULL, error));
    return add_compute(call, &step, error);
}

enum healcl_status infer_digits_full_q(struct call *call, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a"), *out;
    TRY(want_rank(call, "a", a, 3, error));
    TRY(want_shape(call, "q", &tensor_of(call, "q")->layout, 1, &a->layout.shape[1], error));
    int64_t g_exp, base_bits;
    TRY(digit_arguments(call, &g_exp, &base_bits, error));
    TRY(find_out(call, 3, (int64_t[]){a->layout.shape[0], g_exp, a->layout.shape[2]}, &out, error));
    if (a->layout.shape[1] == 0) /* the only residue modulo an empty product is 0 */
        return add_fill(call, out, 0, error);

    struct step step = planner_step(call->planner, STEP_DIGITS_FULL_Q, out);
    step.value[0] = base_bits;
    TRY(set_input(call, &step, 0, "a", NULL, error));
    TRY(set_input(call, &step, 1, "q", NULL, error));
    return add_compute(call, &step, error);
}
