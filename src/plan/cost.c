/* What a step reads and writes, and what it costs: bytes, elements that it visits, memory. */
#include "core/numbers.h"
#include "plan/plan.h"

static uint64_t tensor_bytes(const struct tensor *tensor)
{
    struct layout own = layout_own_elements(&tensor->layout);
    return (uint64_t)layout_elements(&own) * dtype_size(tensor->storage->dtype);
}

bool step_adds(const struct step *step)
{
    return step_traits[step->kind].adds && step->value[0] == 0;
}

struct layout step_factor(const struct step *step)
{
    const struct layout *b = &step->in[1]->layout;
    return b->rank == 4 ? *b : layout_insert_axis(b, 0, step->in[0]->layout.shape[0], 0);
}

uint64_t step_bytes(const struct step *step)
{
    if (step->kind == STEP_RELEASE)
        return 0;
    uint64_t bytes = step->out ? tensor_bytes(step->out) : 0;
    if (step_adds(step))
        bytes *= 2;
    for (int i = 0; i < STEP_INPUTS; i++)
        if (step->in[i])
            bytes += tensor_bytes(step->in[i]);
    return bytes;
}

/* ---------------------------------------------------------------- saturating arithmetic */

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    return b > 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* ---------------------------------------------------------------- work and memory */

static uint64_t elements(const struct tensor *tensor)
{
    return (uint64_t)layout_elements(&tensor->layout);
}

/* Each of the l*r values takes a pass over k words for each of its k residues, and one store for
 * each digit; before that, the moduli are looked at in pairs. */
static uint64_t visits_full_q(const struct step *step)
{
    const int64_t *a = step->in[0]->layout.shape;
    uint64_t values = times((uint64_t)a[0], (uint64_t)a[2]), k = (uint64_t)a[1];
    return plus(elements(step->out), times(plus(values, 1), times(k, k)));
}

static uint64_t visits_nothing(const struct step *step)
{
    (void)step;
    return 0;
}

static uint64_t visits_in(const struct step *step)
{
    return elements(step->in[0]);
}

static uint64_t visits_out(const struct step *step)
{
    return elements(step->out);
}

static uint64_t visits_both(const struct step *step)
{
    return plus(elements(step->out), elements(step->in[0]));
}

static uint64_t visits_all(const struct step *step)
{
    uint64_t visits = elements(step->out);
    for (int i = 0; i < STEP_INPUTS; i++)
        if (step->in[i])
            visits = plus(visits, elements(step->in[i]));
    return visits;
}

static uint64_t visits_stages(const struct step *step)
{
    return times(elements(step->out), log2_of((uint64_t)step->out->layout.shape[3]) + 1);
}

uint64_t step_visits(const struct step *step)
{
    static uint64_t (*const functions[STEP_KINDS])(const struct step *) = {
#define STEP(kind, name, in_place, adds, visits, ...) [STEP_##kind] = visits_##visits,
#include "plan/steps.def"
#undef STEP
    };
    return functions[step->kind](step);
}

uint64_t step_scratch_bytes(const struct step *step)
{
    if (step->kind == STEP_DOWNLOAD) {
        const struct tensor *tensor = step->in[0];
        return layout_is_contiguous(&tensor->layout)
                   ? 0
                   : times(elements(tensor), dtype_size(tensor->storage->dtype));
    }
    if (step->kind == STEP_DIGITS_FULL_Q) {
        /* On a device [k,k] pairs of words for inverses and four words for each modulus; the host
         * reference has [k,k+1] words for the parts of the CRT, and six more for each modulus. */
        uint64_t k = (uint64_t)step->in[1]->layout.shape[0];
        return times(times(k, plus(k, 4)), 2 * sizeof(uint64_t));
    }
    return 0;
}
