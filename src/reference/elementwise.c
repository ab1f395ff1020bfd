/* modmul, modsum, mod, modneg, abs, chains of two, and sums of products: one value of out from one
 * of each input. */
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

/* Computes a step of two operands, and returns the value as out's dtype holds it. */
static int64_t store(const struct operand *out, int64_t position, int64_t kind, int64_t a,
                     int64_t b, int64_t p)
{
    operand_store(out, position, compute(kind, a, b, p));
    return operand_load(out, position);
}

/* The first `count` products are added to x[3], if the step has that input. */
static void add_products(const struct operand *out, int64_t position, const struct step *step,
                         const int64_t x[STEP_INPUTS], int count)
{
    const bool adds_factors = step_adds_factors(step) && count > 1;
    int64_t a = x[0], sum = x[3];
    if (adds_factors)
        a = store(out, position, STEP_MODSUM, a, x[step_factors(1)], x[2]);
    for (int i = 0; i < count; i += i == 0 && adds_factors ? 2 : 1) {
        const int64_t *factors = x + step_factors(i);
        const int64_t product =
            store(out, position, STEP_MODMUL, i == 0 ? a : factors[0], factors[1], x[2]);
        sum = i == 0 && !step->in[3] ? product
                                     : store(out, position, STEP_MODSUM, sum, product, x[2]);
    }
}

/* out[c] = compute(a[c], b[c], p[c]). A chain computes a second time, from the stored value and its
 * fourth input. */
enum healcl_status reference_elementwise(struct reference *reference, const struct step *step,
                                         struct healcl_error *error)
{
    const bool is_chain = step->kind == STEP_CHAIN;
    const int64_t first = is_chain ? step->value[0] : (int64_t)step->kind;
    const uint32_t count = step->kind == STEP_MULTIPLY_ADD ? STEP_INPUTS : is_chain ? 4 : 3;
    struct operand out, in[STEP_INPUTS];
    const struct layout *layouts[1 + STEP_INPUTS] = {&out.layout};
    TRY(reference_operand(&out, reference, step->out, error));
    for (uint32_t i = 0; i < STEP_INPUTS; i++)
        layouts[1 + i] = &in[i].layout;
    for (uint32_t i = 0; i < count; i++) /* an input that the step lacks is read as a */
        TRY(reference_operand(&in[i], reference, step->in[i] ? step->in[i] : step->in[0], error));
    if (step->in[2])
        TRY(reference_moduli(&in[2], reference, step, 2, error));
    struct walk walk;
    for (walk_init(&walk, 1 + count, layouts); walk.left > 0; walk_next(&walk)) {
        int64_t x[STEP_INPUTS];
        if (walk.left % CHECKED_ELEMENTS == 0)
            TRY(reference_visit(reference, CHECKED_ELEMENTS, error));
        for (uint32_t i = 0; i < count; i++)
            x[i] = operand_load(&in[i], walk.position[1 + i]);
        if (step->kind == STEP_MULTIPLY_ADD) {
            const int64_t parts = step->out->layout.rank - step->value[1]; /* their axis */
            const bool is_first = step->value[0] > 0 && walk.index[parts] == 0;
            add_products(&out, walk.position[0], step, x,
                         is_first ? (int)step->value[0] : step_products(step));
            continue;
        }
        const int64_t value = store(&out, walk.position[0], first, x[0], x[1], x[2]);
        if (is_chain)
            store(&out, walk.position[0], step->value[1], value, x[3], x[2]);
    }
    return HEALCL_OK;
}
