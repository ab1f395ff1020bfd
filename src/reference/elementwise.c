/* modmul, modsum, mod, modneg, abs: one value of out from one value of each input. */
#include "reference/arithmetic.h"
#include "reference/operand.h"

static int64_t compute(enum step_kind kind, int64_t a, int64_t b, int64_t p)
{
    switch (kind) {
    case STEP_MODMUL: return c_remainder((int128)a * b, p);
    case STEP_MODSUM: return c_remainder((int128)a + b, p);
    case STEP_MOD: return c_remainder(a, p);
    case STEP_MODNEG: return (int64_t)floor_remainder(-(int128)a, p);
    default: /* STEP_ABS: 2^63 wraps, like every store that does not fit */
        return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
    }
}

/* out[c] = compute(a[c], b[c], p[c]) */
enum healcl_status reference_elementwise(struct reference *reference, const struct step *step,
                                         struct healcl_error *error)
{
    struct operand out, in[3];
    TRY(reference_operand(&out, reference, step->out, error));
    for (int i = 0; i < 3; i++) {
        /* An input that this kind of step lacks is read as a, and has no effect. */
        const struct tensor *tensor = step->in[i] ? step->in[i] : step->in[0];
        TRY(reference_operand(&in[i], reference, tensor, error));
    }
    if (step->in[2])
        TRY(reference_moduli(&in[2], reference, step, 2, error));

    const struct layout *layouts[] = {&out.layout, &in[0].layout, &in[1].layout, &in[2].layout};
    struct walk walk;
    for (walk_init(&walk, 4, layouts); walk.left > 0; walk_next(&walk)) {
        int64_t a = operand_load(&in[0], walk.position[1]);
        int64_t b = operand_load(&in[1], walk.position[2]);
        int64_t p = operand_load(&in[2], walk.position[3]);
        operand_store(&out, walk.position[0], compute(step->kind, a, b, p));
    }
    return HEALCL_OK;
}
