/*
 * Joins sums of products of successive digits of a tensor, each digit with its own weights, as in
 * base conversions. One step then does all digits. It replaces the first step. All have the same
 * moduli, so the first would have been refused first.
 */
#include "plan/axes.h"
#include "plan/pass.h"

/* Number of steps searched for digits, digits that a step has weights for, and elements of one
 * digit's weights. */
enum { WINDOW = 16, DIGITS_MAX = STEP_INPUTS - 3, WEIGHTS_MAX = 1 << 16 };

/* Whether a step is one digit, or several joined ones. Weights must be equal for all reps and along
 * n, and otherwise contiguous. */
static bool has_digits(const struct step *step, struct product_sum *sums)
{
    const bool is_sum = step->kind == STEP_MODMUL_AXIS_SUM && !step_adds(step) && !step->in[3];
    if (pass_has_removed(step) || step->vendor || (!is_sum && step->kind != STEP_BASE_CONVERSION))
        return false;
    *sums = step_product_sum(step);
    const struct layout weights = layout_of_weights(&sums->a);
    return !is_sum || (sums->batch == 1 && layout_elements(&sums->a) > 0 &&
                       layout_alike(&sums->b, &weights, NO_AXIS) &&
                       weights.shape[1] <= WEIGHTS_MAX / weights.shape[2]);
}

/* Appends a digit to the sums, if it follows their last one. All terms of a are then used. */
static bool add_digit(struct product_sum *sums, const struct product_sum *digit)
{
    const int64_t s = sums->a.shape[1], t = digit->a.shape[1], before = sums->batch * s;
    const int64_t out_apart = digit->out.offset - sums->out.offset;
    const int64_t a_apart = digit->a.offset - sums->a.offset;
    if (before == 1)
        sums->a.stride[1] = a_apart;
    if (sums->batch == 1)
        sums->out_distance = out_apart;
    if (sums->last_terms < s || t > s || sums->batch == DIGITS_MAX ||
        !layout_alike(&sums->a, &digit->a, 1) || !layout_alike(&sums->out, &digit->out, NO_AXIS) ||
        a_apart <= 0 || out_apart <= 0 || a_apart != before * sums->a.stride[1] ||
        out_apart != sums->batch * sums->out_distance ||
        (t > 1 && digit->a.stride[1] != sums->a.stride[1]))
        return false;
    sums->a.shape[1] = before + t;
    sums->batch++;
    return true;
}

/* Whether both use the same tensors, apart from the weights, in any order. */
static bool go_together(const struct step *one, const struct step *other)
{
    return one->in[0]->storage == other->in[0]->storage &&
           one->out->storage == other->out->storage && tensors_same(one->in[2], other->in[2]) &&
           !tensors_overlap(one->out, other->out) && !pass_reads(one, other->out) &&
           !pass_reads(other, one->out);
}

static enum healcl_status bases_join(struct pass_run *run, struct step *one, struct step *other,
                                     const struct product_sum *all, const struct product_sum *digit,
                                     struct healcl_error *error)
{
    const int input = (int)all->batch + 2;
    const struct layout first = layout_drop_axis(&all->b, 0);
    const struct layout weights = layout_drop_axis(&digit->b, 0);
    const struct layout out = layout_insert_axis(&all->out, 0, all->batch, all->out_distance);
    struct step both = *one;
    TRY(plan_view(run->plan, one->in[0]->storage, &all->a, &both.in[0], error));
    if (one->kind != STEP_BASE_CONVERSION)
        TRY(plan_view(run->plan, one->in[1]->storage, &first, &both.in[1], error));
    TRY(plan_view(run->plan, other->in[1]->storage, &weights, &both.in[input], error));
    TRY(plan_view(run->plan, one->out->storage, &out, &both.out, error));
    both.arguments[input] = other->arguments[1];
    both.arguments[input].origin = (uint8_t)(both.arguments[input].origin + one->origins->count);
    both.kind = STEP_BASE_CONVERSION;
    both.value[0] = 0;
    both.residues = both.nonnegative = 0;
    both.zeros = 0;
    return pass_join(run, one, other, one, &both, error);
}

/* Finds digits that precede a step, and joins both. */
static enum healcl_status find_before(struct pass_run *run, struct step *step,
                                      const struct product_sum *digit, struct healcl_error *error)
{
    for (struct step *one = step; one > run->first && step - one < WINDOW;) {
        struct product_sum sums;
        one--;
        if (has_digits(one, &sums) && go_together(one, step) && pass_can_join(one, step) &&
            add_digit(&sums, digit))
            return bases_join(run, one, step, &sums, digit, error);
        if (pass_waits_for(step, one))
            break;
    }
    return HEALCL_OK;
}

enum healcl_status pass_bases(struct pass_run *run, struct healcl_error *error)
{
    for (struct step *step = run->first; step < run->end; step++) {
        struct product_sum digit;
        if (step->kind == STEP_MODMUL_AXIS_SUM && has_digits(step, &digit))
            TRY(find_before(run, step, &digit, error));
    }
    return HEALCL_OK;
}
