/* Additions to zeros that the plan knows of (values.h). */
#include "plan/pass.h"

static bool is_zero(const struct step *step, int i)
{
    return step->zeros >> i & 1;
}

/* x + 0 mod p equals x mod p, also for C remainders. */
static bool add_nothing(struct step *step)
{
    int other = is_zero(step, 1) ? 0 : 1;
    if ((!is_zero(step, 0) && !is_zero(step, 1)) || step->in[other]->storage->scalars)
        return false;
    step->kind = STEP_MOD;
    step->in[0] = step->in[other];
    step->arguments[0] = step->arguments[other];
    step->in[1] = NULL;
    step->residues = (uint8_t)(step->residues >> other & 1);
    step->zeros = step->zeros >> other & 1;
    return true;
}

/* Residues do not change. Their moduli were checked when the residues were made; those of zeros
 * were not. */
static bool reduce_nothing(struct step *step)
{
    if (!(step->residues & 1) || is_zero(step, 0) || step->in[0]->storage->scalars)
        return false;
    step->kind = STEP_COPY;
    step->in[2] = NULL;
    return true;
}

enum healcl_status pass_zeros(struct pass_run *run, struct healcl_error *error)
{
    (void)error;
    for (struct step *step = run->first; step < run->end; step++) {
        bool changes = false;
        if (step->vendor)
            continue;
        if (step->kind == STEP_MODMUL_AXIS_SUM && step_adds(step) && is_zero(step, STEP_INPUTS)) {
            step->value[0] = 1;
            changes = true;
        }
        if (step->kind == STEP_MODSUM)
            changes = add_nothing(step);
        if (step->kind == STEP_MOD)
            changes |= reduce_nothing(step);
        if (changes)
            pass_note(run, step);
        if (step->kind == STEP_COPY && tensors_same(step->in[0], step->out))
            pass_remove(run, step);
    }
    return HEALCL_OK;
}
