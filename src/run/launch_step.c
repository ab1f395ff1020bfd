/* Steps as kernel launches. */
#include "run/launch.h"

enum healcl_status launch_step(struct device_executor *self, const struct step *step,
                               struct healcl_error *error)
{
    switch (step->kind) {
    case STEP_FILL: return launch_fill(self, step, error);
    case STEP_COPY: {
        const struct buffer *out;
        TRY(executor_buffer(self, step->out->storage, &out, error));
        return launch_copy(self, step, &step->out->layout, out, step->in[0], error);
    }
    case STEP_MODMUL:
    case STEP_MODSUM:
    case STEP_MOD:
    case STEP_MODNEG: return launch_elementwise(self, step, error);
    case STEP_ABS: return launch_absolute(self, step, error);
    case STEP_AXIS_MODSUM: return launch_axis_modsum(self, step, error);
    case STEP_MODMUL_AXIS_SUM: return launch_modmul_axis_sum(self, step, error);
    case STEP_NTT:
    case STEP_INTT: return launch_transform(self, step, error);
    case STEP_DIGITS: return launch_digits(self, step, error);
    case STEP_DIGITS_FULL_Q: return launch_digits_full_q(self, step, error);
    case STEP_GATHER: return launch_gather(self, step, error);
    case STEP_UPLOAD:
    case STEP_DOWNLOAD:
    case STEP_RELEASE: break;
    }
    return HEALCL_OK;
}
