/* Which family executes a step. */
#include "reference/operand.h"

enum healcl_status reference_step(struct reference *reference, const struct step *step,
                                  struct healcl_error *error)
{
    if (step->out && layout_elements(&step->out->layout) == 0)
        return HEALCL_OK;
    switch (step->kind) {
    case STEP_UPLOAD: return reference_upload(reference, step, error);
    case STEP_DOWNLOAD: return HEALCL_OK;
    case STEP_FILL: return reference_fill(reference, step, error);
    case STEP_COPY: return reference_copy(reference, step, error);
    case STEP_MODMUL:
    case STEP_MODSUM:
    case STEP_MOD:
    case STEP_MODNEG:
    case STEP_ABS: return reference_elementwise(reference, step, error);
    case STEP_AXIS_MODSUM: return reference_axis_modsum(reference, step, error);
    case STEP_MODMUL_AXIS_SUM: return reference_modmul_axis_sum(reference, step, error);
    case STEP_NTT:
    case STEP_INTT: return reference_transform(reference, step, error);
    case STEP_DIGITS: return reference_digits(reference, step, error);
    case STEP_DIGITS_FULL_Q: return reference_digits_full_q(reference, step, error);
    case STEP_GATHER: return reference_gather(reference, step, error);
    case STEP_RELEASE: reference_release(reference, step); return HEALCL_OK;
    }
    return HEALCL_OK;
}
