/* Which function executes a step. */
#include "reference/operand.h"

enum healcl_status reference_step(struct reference *reference, const struct step *step,
                                  struct healcl_error *error)
{
    static reference_function *const functions[STEP_KINDS] = {
#define STEP(kind, id, reference, ...) [STEP_##kind] = reference_##reference,
#include "plan/steps.def"
#undef STEP
    };
    reference->refused_input = NO_INPUT;
    if (step->out && layout_elements(&step->out->layout) == 0)
        return HEALCL_OK;
    return functions[step->kind](reference, step, error);
}
