/* modmul, modsum, mod, modneg, abs, and chains of two: one value of out from one of each input. */
#include "reference/arithmetic.h"
#include "reference/operand.h"

/* Deliberately written differently from the kernels, which are tested against it. abs of -2^63
 * wraps, like every store that does not fit. */
static int64_t compute(int64_t kind, int64_t a, int64_t b, int64_t p)
{
    switch (kind) {
    case STEP_MODMUL: return c_remainder((int128)a * b, p);
    case STEP_MODSUM: return c_remainder((int128)a + b, p);
    case STEP_MOD: return c_remainder(a, p);
    case STEP_MODNEG: return (int64_t)floor_remainder(-(int128)a, p);
    default: return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
    }
}

/* out[c] = compute(a[c], b[c], p[c]). A chain computes a second time, from the stored value and its
 * fourth input. */
enum healcl_status reference_elementwise(struct reference *reference, const struct step *step,
                                         struct healcl_error *error)
{
    const bool is_chain = step->kind == STEP_CHAIN;
    const int64_t first = is_chain ? step->value[0] : (int64_t)step->kind;
    const uint32_t count = is_chain ? 4 : 3;
    struct operand out, in[4];
    const struct layout *layouts[] = {&out.layout, &in[0].layout, &in[1].layout, &in[2].layout,
                                      &in[3].layout};
    TRY(reference_operand(&out, reference, step->out, error));
    for (uint32_t i = 0; i < count; i++) /* an input that the kind lacks is read as a */
        TRY(reference_operand(&in[i], reference, step->in[i] ? step->in[i] : step->in[0], error));
    if (step->in[2])
        TRY(reference_moduli(&in[2], reference, step, 2, error));
    struct walk walk;
    for (walk_init(&walk, 1 + count, layouts); walk.left > 0; walk_next(&walk)) {
        int64_t x[4];
        if (walk.left % CHECKED_ELEMENTS == 0)
            TRY(reference_visit(reference, CHECKED_ELEMENTS, error));
        for (uint32_t i = 0; i < count; i++)
            x[i] = operand_load(&in[i], walk.position[1 + i]);
        operand_store(&out, walk.position[0], compute(first, x[0], x[1], x[2]));
        if (!is_chain)
            continue;
        x[0] = operand_load(&out, walk.position[0]);
        operand_store(&out, walk.position[0], compute(step->value[1], x[0], x[3], x[2]));
    }
    return HEALCL_OK;
}
