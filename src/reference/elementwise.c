/* modmul, modsum, mod, modneg, abs: one value of out from one value of each input. */
#include "reference/arithmetic.h"
#include "reference/operand.h"

/* out[c] = compute(a[c], b[c], p[c]) */
static enum healcl_status elementwise(struct reference *reference, const struct step *step,
                                      int64_t (*compute)(int64_t, int64_t, int64_t),
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
        operand_store(&out, walk.position[0], compute(a, b, p));
    }
    return HEALCL_OK;
}

/* Written apart from what kernels compute, as they are tested against it. Of abs, 2^63 wraps, like
 * every store that does not fit. */
#define FORMULAS(EACH)                                            \
    EACH(MODMUL, modmul, c_remainder((int128)a *b, p))            \
    EACH(MODSUM, modsum, c_remainder((int128)a + b, p))           \
    EACH(MOD, mod, c_remainder(a, p))                             \
    EACH(MODNEG, modneg, (int64_t)floor_remainder(-(int128)a, p)) \
    EACH(ABS, abs, a < 0 ? (int64_t)(0 - (uint64_t)a) : a)

#define EXECUTE(KIND, name, value)                                                            \
    static int64_t compute_##name(int64_t a, int64_t b, int64_t p)                            \
    {                                                                                         \
        (void)b, (void)p;                                                                     \
        return value;                                                                         \
    }                                                                                         \
    enum healcl_status reference_##name(struct reference *reference, const struct step *step, \
                                        struct healcl_error *error)                           \
    {                                                                                         \
        return elementwise(reference, step, compute_##name, error);                           \
    }
FORMULAS(EXECUTE)

/* A value by one operation of a chain: x has out's dtype, as if it had been stored. */
static int64_t compute(int64_t kind, int64_t x, int64_t y, int64_t p)
{
    static int64_t (*const functions[STEP_KINDS])(int64_t, int64_t, int64_t) = {
#define COMPUTE(KIND, name, value) [STEP_##KIND] = compute_##name,
        FORMULAS(COMPUTE)};
    return functions[kind](x, y, p);
}

enum healcl_status reference_chain(struct reference *reference, const struct step *step,
                                   struct healcl_error *error)
{
    struct operand out, in[4];
    TRY(reference_operand(&out, reference, step->out, error));
    for (int i = 0; i < 4; i++)
        TRY(reference_operand(&in[i], reference, step->in[i] ? step->in[i] : step->in[0], error));
    TRY(reference_moduli(&in[2], reference, step, 2, error));
    const struct layout *layouts[] = {&in[0].layout, &in[1].layout, &in[2].layout, &in[3].layout};
    struct walk walk, to;
    const struct layout *out_layout = &out.layout;
    walk_init(&to, 1, &out_layout);
    for (walk_init(&walk, 4, layouts); walk.left > 0; walk_next(&walk), walk_next(&to)) {
        int64_t a = operand_load(&in[0], walk.position[0]);
        int64_t b = operand_load(&in[1], walk.position[1]);
        int64_t p = operand_load(&in[2], walk.position[2]);
        int64_t c = operand_load(&in[3], walk.position[3]);
        operand_store(&out, to.position[0], compute(step->value[0], a, b, p));
        a = operand_load(&out, to.position[0]);
        operand_store(&out, to.position[0], compute(step->value[1], a, c, p));
    }
    return HEALCL_OK;
}
