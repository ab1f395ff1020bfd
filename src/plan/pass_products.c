/*
 * Products that are only summed up. A modmul leaves C remainders, which axis_modsum adds up and
 * reduces by floor: where both have the same moduli, that is the floor remainder of the sum of the
 * products themselves, of any signs. The fused step stands where the sum did; its modulus is named
 * as the product's, which would have been refused first.
 */
#include "plan/pass.h"

/* The axis that moduli vary along is the last one, and there they are elements of one vector. */
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

/* Which axes of the products are the sum's [reps, s, k, n], the rank for one that is missing, and
 * which of the products' inputs goes without reps. */
struct roles {
    uint32_t axes[4];
    int shared; /* input */
};

static bool find_roles(const struct step *product, uint32_t summed, struct roles *roles)
{
    const struct layout *shape = &product->out->layout;
    uint32_t rank = shape->rank, *axes = roles->axes;
    axes[0] = axes[3] = rank;
    axes[1] = summed;
    axes[2] = rank - 1;
    roles->shared = 1;
    for (uint32_t axis = 0; axis + 1 < rank; axis++) {
        if (axis == summed || shape->shape[axis] == 1)
            continue;
        bool is_shared[2] = {product->in[0]->layout.stride[axis] == 0,
                             product->in[1]->layout.stride[axis] == 0};
        if (axes[0] == rank && (is_shared[0] || is_shared[1])) {
            axes[0] = axis;
            roles->shared = is_shared[1] ? 1 : 0;
        } else if (axes[3] == rank) {
            axes[3] = axis;
        } else {
            return false;
        }
    }
    return true;
}

/* The axes of a view in that order, missing ones of size 1. */
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

MUST_CHECK static enum healcl_status fuse(struct pass_run *run, struct step *product,
                                          struct step *sum, struct healcl_error *error)
{
    struct step fused = *sum;
    struct roles roles;
    if (product->in[0]->storage->scalars || product->in[1]->storage->scalars ||
        !pass_can_wait(product, sum) ||
        !layout_same_elements(&product->out->layout, &sum->in[0]->layout) ||
        pass_reads(product, sum->out) || !same_moduli(product->in[2], sum->in[1]) ||
        !find_roles(product, (uint32_t)sum->value[0], &roles))
        return HEALCL_OK;
    uint32_t summed = roles.axes[1], last = sum->in[1]->layout.rank - 1, left[3];
    for (int i = 0, from = 0; i < 3; i++, from = i + 1) /* out has no summed axis */
        left[i] = roles.axes[from] - (roles.axes[from] > summed);
    struct tensor views[] = {arranged(product->in[1 - roles.shared], 4, roles.axes),
                             arranged(product->in[roles.shared], 3, roles.axes + 1),
                             arranged(sum->in[1], 1, &last), arranged(sum->out, 3, left)};
    TRY(step_join_origins(run->plan, &fused, product, sum, error));
    fused.kind = STEP_MODMUL_AXIS_SUM;
    fused.value[0] = 1;
    fused.zeros = 0;
    for (int i = 0; i < 3; i++)
        TRY(pass_tensor(run, &views[i], &fused.in[i], error));
    TRY(pass_tensor(run, &views[3], &fused.out, error));
    fused.arguments[0] = product->arguments[1 - roles.shared];
    fused.arguments[1] = product->arguments[roles.shared];
    fused.arguments[2] = product->arguments[2];
    pass_moves(run, product, sum);
    pass_remove(run, product);
    *sum = fused;
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
    }
    return HEALCL_OK;
}
