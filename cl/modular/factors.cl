/* The operands of multiply_add: d, and the factors a and b of PRODUCTS products. */
#ifndef HEALCL_CL_FACTORS
#define HEALCL_CL_FACTORS

#define EACH_FACTOR(EACH) \
    EACH(0, a0) EACH(1, b0) EACH(2, d) EACH(3, a1) EACH(4, b1) EACH(5, a2) EACH(6, b2)
#define FACTOR_PARAMETERS                                                             \
    global const ELEMENT *a0, global const ELEMENT *b0, global const ELEMENT *d,      \
    global const ELEMENT *a1, global const ELEMENT *b1, global const ELEMENT *a2,     \
    global const ELEMENT *b2, struct factors factors_argument
/* Copied before control flow: see COPY_SPACE. */
#define TAKE_FACTORS const struct factors factors = factors_argument

/* The number of factor a of product t; b follows it. */
#define FACTOR(t) ((t) > 0 ? 2 * (t) + 1 : 0)
#define HAS(k) (has >> (k) & 1)
#define HAS_PRODUCT(t) HAS(FACTOR(t) + 1)
#define ADDS_FACTORS (HAS(FACTOR(1)) && !HAS_PRODUCT(1)) /* (a0 + a1)*b0 */

/* The operands, as bits, that element i of a span has. */
static inline uint operands_of(const struct factors *factors, uint rank, const struct span *span,
                               count_t i)
{
    uint axis = factors->has >> FACTORS_AXIS;
    bool has_all = axis == 0 && i > 0;
    UNROLL for (uint last = 0; last < rank; last++) /* an index by `axis` would need memory */
        has_all = has_all || (last == axis && span->index[rank - 1 - last] > 0);
    return factors->has & (has_all ? ~0u : ~(factors->has >> FACTORS_PART));
}

/* The position of element i of a span in operand k. */
static inline place_t factor_place(const struct factors *factors, uint k, uint rank,
                                   const struct span *span, count_t i)
{
    place_t at = (place_t)factors->offset[k];
    at += (place_t)i * (place_t)factors->stride[k * PRODUCT_AXES];
    UNROLL for (uint axis = 0; axis < PRODUCT_AXES; axis++)
        if (axis < rank)
            at += (place_t)span->index[rank - 1 - axis] *
                  (place_t)factors->stride[k * PRODUCT_AXES + axis];
    return at;
}

#endif
