#include "helper_claims.h"

#include <stdlib.h>

#include "reference/reference.h"

static int64_t value_at(struct reference *reference, const struct tensor *tensor, int64_t position)
{
    void *bytes;
    if (reference_memory(reference, tensor->storage, &bytes, NULL) != HEALCL_OK)
        abort();
    return dtype_load(tensor->storage->dtype, bytes, position);
}

/* The modulus that goes with an element of input i. */
static int64_t modulus_at(struct reference *reference, const struct step *step, int i,
                          const int64_t *index)
{
    uint32_t rank = step->in[i]->layout.rank;
    bool is_elementwise = step->kind == STEP_MODMUL || step->kind == STEP_MODSUM ||
                          step->kind == STEP_MOD || step->kind == STEP_MODNEG ||
                          step->kind == STEP_CHAIN || step->kind == STEP_MULTIPLY_ADD;
    const struct tensor *q = step->in[is_elementwise || step->kind == STEP_MODMUL_AXIS_SUM ? 2 : 1];
    int64_t position = q->layout.offset;
    if (is_elementwise)
        for (uint32_t axis = 0; axis < rank; axis++)
            position += index[axis] * q->layout.stride[axis];
    else
        position += index[rank - (step->kind == STEP_AXIS_MODSUM ? 1 : 2)] *
                    q->layout.stride[q->layout.rank - 1];
    return value_at(reference, q, position);
}

static bool holds(struct reference *reference, const struct step *step, int i)
{
    const struct layout *layout = &step->in[i]->layout;
    struct walk walk;
    for (walk_init(&walk, 1, &layout); walk.left > 0; walk_next(&walk)) {
        int64_t value = value_at(reference, step->in[i], walk.position[0]);
        if (value < 0 ||
            (step->residues >> i & 1 && value >= modulus_at(reference, step, i, walk.index)))
            return false;
    }
    return true;
}

size_t claims_check(const struct plan *plan, struct claims *claims)
{
    struct reference *reference;
    size_t wrong = plan->step_count;
    if (reference_create(plan, &reference, NULL) != HEALCL_OK)
        abort();
    for (size_t s = 0; s < plan->step_count && wrong == plan->step_count; s++) {
        const struct step *step = &plan->steps[s];
        if (step->residues & ~step->nonnegative)
            wrong = s;
        for (int i = 0; i < STEP_INPUTS; i++) {
            if (!(step->nonnegative >> i & 1))
                continue;
            claims->nonnegative++;
            claims->residues += step->residues >> i & 1;
            if (!holds(reference, step, i))
                wrong = s;
        }
        if (reference_step(reference, step, NULL) != HEALCL_OK)
            break; /* what follows is of no meaning */
    }
    reference_free(reference);
    return wrong;
}
