/*
 * Products that are only summed, and sums of products that are only added to something.
 *
 * A modmul makes C remainders, which axis_modsum adds up and reduces by floor. If both have the
 * same moduli, the result is the floor remainder of the sum of the products themselves, whatever
 * their signs. The fused step replaces the sum. Errors name its modulus as the product's, which
 * would have been refused first.
 *
 * A modsum adds such a sum, which is a residue, to a value that is not negative. The result is the
 * floor remainder of both. If the moduli are the same, the sum adds to that value in place.
 */
#include "plan/pass.h"

/* Moduli must vary along the last axis, and there be elements of one vector. */
static bool is_vector(const struct layout *moduli)
{
    for (uint32_t axis = 0; axis + 1 < moduli->rank; axis++)
        if (moduli->stride[axis] != 0)
            return false;
    return true;
}

static bool same_moduli(const struct tensor *p, const struct tensor *q)
{
    return p->storage == q->storage && p->layout.offset == q->layout.offset &&
           p->layout.stride[p->layout.rank - 1] == q->layout.stride[q->layout.rank - 1] &&
           is_vector(&p->layout) && is_vector(&q->layout);
}

/* Which axes of the products are the sum's [batch, reps, s, k, n]; the rank stands for a missing
 * one. shared: the products' input without reps. */
struct roles {
    uint32_t axes[5];
    int shared; /* input */
};

/* Lists the axes longer than 1, except those of terms and moduli. Returns their number. */
static uint32_t list_axes(const struct layout *shape, uint32_t summed, uint32_t found[LAYOUT_RANK])
{
    uint32_t count = 0;
    for (uint32_t axis = 0; axis + 1 < shape->rank; axis++)
        if (axis != summed && shape->shape[axis] > 1)
            found[count++] = axis;
    return count;
}

/* Finds two axes, reps and n, and possibly a batch axis before them. */
static bool find_roles(const struct step *product, uint32_t summed, struct roles *roles)
{
    const struct layout *shape = &product->out->layout;
    uint32_t rank = shape->rank, found[LAYOUT_RANK], count = list_axes(shape, summed, found);
    const uint32_t batches = count > 2 ? count - 2 : 0;
    *roles = (struct roles){{rank, rank, summed, rank - 1, rank}, 1};
    if (batches > 1)
        return false;
    if (batches == 1)
        roles->axes[0] = found[0];
    for (uint32_t i = batches; i < count; i++) {
        bool is_shared[2] = {product->in[0]->layout.stride[found[i]] == 0,
                             product->in[1]->layout.stride[found[i]] == 0};
        if (roles->axes[1] == rank && (is_shared[0] || is_shared[1])) {
            roles->axes[1] = found[i];
            roles->shared = is_shared[1] ? 1 : 0;
        } else if (roles->axes[4] == rank) {
            roles->axes[4] = found[i];
        } else {
            return false;
        }
    }
    return true;
}

/* The axes of a view in that order; missing ones have size 1. */
static struct tensor arranged(const struct tensor *tensor, uint32_t rank, const uint32_t *axes)
{
    struct tensor view = {tensor->storage, {.rank = rank, .offset = tensor->layout.offset}};
    for (uint32_t i = 0; i < rank; i++) {
        bool is_there = axes[i] < tensor->layout.rank;
        view.layout.shape[i] = is_there ? tensor->layout.shape[axes[i]] : 1;
        view.layout.stride[i] = is_there ? tensor->layout.stride[axes[i]] : 0;
    }
    return view;
}

static enum healcl_status fuse(struct pass_run *run, struct step *product, struct step *sum,
                               struct healcl_error *error)
{
    struct step fused = *sum;
    struct roles roles;
    if (product->in[0]->storage->scalars || product->in[1]->storage->scalars ||
        !pass_can_wait(product, sum) ||
        !layout_same_elements(&product->out->layout, &sum->in[0]->layout) ||
        pass_reads(product, sum->out) || !same_moduli(product->in[2], sum->in[1]) ||
        !find_roles(product, (uint32_t)sum->value[0], &roles))
        return HEALCL_OK;
    const uint32_t rank = product->out->layout.rank, last = sum->in[1]->layout.rank - 1;
    const bool is_batch = roles.axes[0] < rank;
    const uint32_t *axes = roles.axes + !is_batch, axis_count = is_batch ? 5 : 4;
    const uint32_t summed = roles.axes[2];
    uint32_t left[4], left_count = 0;
    for (uint32_t i = 0; i < axis_count; i++) /* out lacks the summed axis */
        if (axes[i] != summed)
            left[left_count++] = axes[i] - (axes[i] > summed);
    struct tensor views[] = {arranged(product->in[1 - roles.shared], axis_count, axes),
                             is_batch ? arranged(product->in[roles.shared], 5, axes)
                                      : arranged(product->in[roles.shared], 3, axes + 1),
                             arranged(sum->in[1], 1, &last), arranged(sum->out, left_count, left)};
    fused.kind = STEP_MODMUL_AXIS_SUM;
    fused.value[0] = 1;
    fused.zeros = 0;
    for (int i = 0; i < 3; i++)
        TRY(plan_view(run->plan, views[i].storage, &views[i].layout, &fused.in[i], error));
    TRY(plan_view(run->plan, views[3].storage, &views[3].layout, &fused.out, error));
    fused.arguments[0] = product->arguments[1 - roles.shared];
    fused.arguments[1] = product->arguments[roles.shared];
    fused.arguments[2] = product->arguments[2];
    return pass_join(run, product, sum, sum, &fused, error);
}

/* Whether a modsum, whose input i is the sum, has the sum's moduli: vectors of one tensor along
 * axis k of [...,k,n]. */
static bool adds_same_moduli(const struct step *sum, const struct step *addition, int i)
{
    const struct layout *rows = &sum->out->layout, *view = &addition->in[i]->layout;
    const uint32_t axis_k = rows->rank - 2;
    const struct tensor *q = sum->in[2], *p = addition->in[2];
    if (p->storage != q->storage || p->layout.offset != q->layout.offset)
        return false;
    for (uint32_t axis = 0; axis < view->rank; axis++) {
        uint32_t of = 0;
        if (view->shape[axis] == 1)
            continue;
        while (of < rows->rank && (rows->shape[of] == 1 || rows->stride[of] != view->stride[axis]))
            of++;
        if (of == rows->rank || p->layout.stride[axis] != (of == axis_k ? q->layout.stride[0] : 0))
            return false;
    }
    return true;
}

/* Whether the moduli's elements are still adjacent, for kernels that require it. */
static bool keeps_moduli_together(const struct step *sum, const struct layout *out)
{
    const struct layout *before = &sum->out->layout;
    const uint32_t axis_k = before->rank - 2;
    return before->shape[axis_k] == 1 || before->stride[axis_k] != 1 || out->stride[axis_k] == 1;
}

/* Lets a sum of products add to the output of a modsum, if possible. Input i of the modsum is the
 * sum. */
static enum healcl_status add_in_place(struct pass_run *run, struct step *sum,
                                       struct step *addition, int i, struct healcl_error *error)
{
    const struct tensor *to = addition->in[1 - i];
    struct tensor out;
    if (!(addition->nonnegative >> (1 - i) & 1) || !tensors_same(to, addition->out) ||
        layout_elements(&sum->out->layout) != layout_elements(&addition->in[i]->layout) ||
        !pass_move_view(sum->out, addition->in[i], addition->out, &out) ||
        !adds_same_moduli(sum, addition, i) || !keeps_moduli_together(sum, &out.layout) ||
        pass_reads(sum, addition->out) || pass_touches(sum + 1, addition, addition->out, false))
        return HEALCL_OK;
    struct step fused = *sum;
    TRY(plan_view(run->plan, out.storage, &out.layout, &fused.out, error));
    fused.value[0] = 0;
    fused.zeros = 0;
    return pass_join(run, sum, addition, sum, &fused, error);
}

static enum healcl_status add_sums(struct pass_run *run, struct step *addition,
                                   struct healcl_error *error)
{
    for (int i = 0; i < 2 && !pass_has_removed(addition); i++) {
        const struct tensor *view = addition->in[i];
        struct step *sum;
        if (!view->storage->scalars && pass_only_reader(run, addition, view->storage, &sum) &&
            sum->kind == STEP_MODMUL_AXIS_SUM && pass_can_join(sum, addition))
            TRY(add_in_place(run, sum, addition, i, error));
    }
    return HEALCL_OK;
}

enum healcl_status pass_products(struct pass_run *run, struct healcl_error *error)
{
    for (struct step *sum = run->first; sum < run->end; sum++) {
        struct step *product;
        if (!pass_has_removed(sum) && sum->kind == STEP_AXIS_MODSUM &&
            pass_only_reader(run, sum, sum->in[0]->storage, &product) &&
            product->kind == STEP_MODMUL && pass_can_join(product, sum))
            TRY(fuse(run, product, sum, error));
        if (!pass_has_removed(sum) && sum->kind == STEP_MODSUM && !sum->vendor)
            TRY(add_sums(run, sum, error));
    }
    return HEALCL_OK;
}
