/* Products that are added one after the other. */
#include "../modular/compute.cl"
#include "../modular/factors.cl"

/* out = ((d + a0*b0) + a1*b1) + ...: see STEP_MULTIPLY_ADD in src/plan/steps.def. Residues are added
 * up in 128 bits and reduced once: three products and a residue are below 3 * p^2, which is below
 * 2^64 * p. Operands of the space: out and p. */
FEW_TOGETHER KERNEL multiply_add(SPACE(space), global ELEMENT *out, FACTOR_PARAMETERS,
                                 TABLE_PARAMETER)
{
    TAKE_SPACE(space);
    TAKE_FACTORS;
    EACH_ELEMENT(space, span, i) {
        const struct modulus modulus = TABLE_AT(POSITION(space, span, 3, i));
        bool are_residues = modulus.value >> (sizeof(ELEMENT) < sizeof(long) ? 31 : 62) == 0;
        const uint has = operands_of(&factors, RANK(space), &span, i);
        long x[FACTORS_ALL];
#define TAKE_FACTOR(k, name)                                                                    \
        x[k] = HAS(k) ? WIDEN(AT(name, factor_place(&factors, k, RANK(space), &span, i))) : 0; \
        are_residues = are_residues && (ulong)x[k] < modulus.value;
        EACH_FACTOR(TAKE_FACTOR)
        ulong low = (ulong)x[FACTORS_ADDEND], high = 0;
        UNROLL for (uint t = 0; t < PRODUCTS; t++) {
            ulong other = t == 0 && ADDS_FACTORS ? (ulong)x[FACTOR(1)] : 0;
            ulong a = (ulong)x[FACTOR(t)] + other, b = (ulong)x[FACTOR(t) + 1], product = a * b;
            low += product;
            high += high_word(a, b) + (low < product);
        }
        long sum = x[FACTORS_ADDEND];
        if (are_residues)
            sum = (long)reduce_wide_below(high, low, modulus);
        else
            UNROLL for (uint t = 0; t < PRODUCTS; t++)
                if (HAS_PRODUCT(t)) {
                    long a = x[FACTOR(t)];
                    if (t == 0 && ADDS_FACTORS)
                        a = WIDEN((ELEMENT)compute_modsum(a, x[FACTOR(1)], modulus));
                    long product =
                        WIDEN((ELEMENT)compute_modmul(a, x[FACTOR(t) + 1], modulus));
                    sum = t == 0 && !HAS(FACTORS_ADDEND)
                              ? product
                              : WIDEN((ELEMENT)compute_modsum(sum, product, modulus));
                }
        AT(out, POSITION(space, span, 0, i)) = (ELEMENT)sum;
    }
}
