/* Gadget digits of integers and of residues (the Chinese remainder theorem). */
#include "reference/arithmetic.h"
#include "reference/operand.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Unsigned integers of `count` limbs of 64 bits, the least significant first.
 */

/* Digit i in base 2^base_bits; of a wider one the lowest 64 bits. */
static uint64_t limbs_digit(const uint64_t *limbs, size_t count, int64_t i, int64_t base_bits)
{
    uint128 first_bit = (uint128)i * (uint128)base_bits;
    if (first_bit >= (uint128)count * 64)
        return 0;
    size_t limb = (size_t)(first_bit / 64);
    unsigned shift = (unsigned)(first_bit % 64);
    uint64_t digit = limbs[limb] >> shift;
    if (shift > 0 && limb + 1 < count)
        digit |= limbs[limb + 1] << (64 - shift);
    return base_bits < 64 ? digit & (((uint64_t)1 << base_bits) - 1) : digit;
}

/* Whether any digit from i on is not 0. */
static bool limbs_have_digits_from(const uint64_t *limbs, size_t count, int64_t i,
                                   int64_t base_bits)
{
    uint128 first_bit = (uint128)i * (uint128)base_bits;
    if (first_bit >= (uint128)count * 64)
        return false;
    size_t limb = (size_t)(first_bit / 64);
    if (limbs[limb] >> (unsigned)(first_bit % 64) != 0)
        return true;
    while (++limb < count)
        if (limbs[limb] != 0)
            return true;
    return false;
}

/* sum += limbs * factor; the caller knows that it fits. */
static void limbs_multiply_add(uint64_t *sum, const uint64_t *limbs, size_t count, uint64_t factor)
{
    uint64_t carry = 0;
    for (size_t i = 0; i < count; i++) {
        uint128 term = (uint128)limbs[i] * factor + sum[i] + carry; /* at most 2^128 - 1 */
        sum[i] = (uint64_t)term;
        carry = (uint64_t)(term >> 64);
    }
}

/* quotient = limbs / divisor; returns the remainder. quotient may be limbs, or NULL. */
static uint64_t limbs_divide(const uint64_t *limbs, size_t count, uint64_t divisor,
                             uint64_t *quotient)
{
    uint64_t remainder = 0;
    for (size_t i = count; i-- > 0;) {
        uint128 part = (uint128)remainder << 64 | limbs[i];
        if (quotient)
            quotient[i] = (uint64_t)(part / divisor);
        remainder = (uint64_t)(part % divisor);
    }
    return remainder;
}

static bool limbs_less(const uint64_t *a, const uint64_t *b, size_t count)
{
    for (size_t i = count; i-- > 0;)
        if (a[i] != b[i])
            return a[i] < b[i];
    return false;
}

/* a -= b, for a >= b. */
static void limbs_subtract(uint64_t *a, const uint64_t *b, size_t count)
{
    uint64_t borrow = 0;
    for (size_t i = 0; i < count; i++) {
        uint128 difference = (uint128)a[i] - b[i] - borrow;
        a[i] = (uint64_t)difference;
        borrow = (uint64_t)(difference >> 64) & 1;
    }
}

/* Stores digits 0 to count-1 of a value at positions first, first + stride, ... of out, and counts
 * the value if more digits than these are not 0. */
static void store_digits(struct reference *reference, const struct operand *out, int64_t first,
                         int64_t stride, int64_t count, int64_t base_bits, const uint64_t *limbs,
                         size_t limb_count)
{
    for (int64_t i = 0; i < count; i++)
        operand_store(out, first + i * stride,
                      (int64_t)limbs_digit(limbs, limb_count, i, base_bits));
    if (limbs_have_digits_from(limbs, limb_count, count, base_bits))
        reference->dropped_digits++;
}

/* out[..., i] = digit i of a[...]; a negative value stands for its two's complement. */
enum healcl_status reference_digits(struct reference *reference, const struct step *step,
                                    struct healcl_error *error)
{
    struct operand out, a;
    TRY(reference_operand(&out, reference, step->out, error));
    TRY(reference_operand(&a, reference, step->in[0], error));

    uint32_t last = out.layout.rank - 1;
    struct layout first = layout_drop_axis(&out.layout, last); /* where i = 0 */
    uint64_t mask = UINT64_MAX >> (64 - 8 * dtype_size(a.dtype));
    const struct layout *layouts[] = {&first, &a.layout};
    struct walk walk;
    for (walk_init(&walk, 2, layouts); walk.left > 0; walk_next(&walk)) {
        uint64_t value = (uint64_t)operand_load(&a, walk.position[1]) & mask;
        store_digits(reference, &out, walk.position[0], out.layout.stride[last],
                     out.layout.shape[last], step->value[0], &value, 1);
    }
    return HEALCL_OK;
}

/* Moduli that are coprime in pairs, and what recovers x in [0, Q) from x mod q[j]. */
struct crt_basis {
    int64_t k;
    size_t limbs;        /* of x and of all that is added to it: k + 1, as Q < 2^(63 k) */
    int64_t *q;          /* [k] */
    uint64_t *product;   /* [limbs], Q = q[0] * ... * q[k-1] */
    uint64_t *cofactors; /* [k][limbs], Q / q[j] */
    uint64_t *inverses;  /* [k], (Q / q[j])^-1 mod q[j] */
    uint64_t *x;         /* [limbs], the value in work */
};

static enum healcl_status check_coprime(struct reference *reference, const struct step *step,
                                        const int64_t *q, int64_t k, struct healcl_error *error)
{
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i + 1; j < k && q[i] > 1; j++)
            if (greatest_common_divisor(q[i], q[j]) != 1)
                REFUSE(error,
                       "argument '%s': the moduli at [%" PRId64 "] and [%" PRId64
                       "] are not coprime",
                       reference_refuse(reference, step, 1), i, j);
    return HEALCL_OK;
}

static enum healcl_status crt_basis_init(struct crt_basis *basis, struct reference *reference,
                                         const struct step *step, struct healcl_error *error)
{
    struct operand moduli;
    TRY(reference_moduli(&moduli, reference, step, 1, error));
    TRY(reference_read_vector(&moduli, &basis->q, error));
    basis->k = moduli.layout.shape[0];
    TRY(check_coprime(reference, step, basis->q, basis->k, error));

    basis->limbs = (size_t)basis->k + 1;
    size_t size = basis->limbs * sizeof(uint64_t);
    basis->x = reference_allocate(1, size);
    basis->product = reference_allocate(1, size);
    basis->cofactors = reference_allocate((uint64_t)basis->k, size);
    basis->inverses = reference_allocate((uint64_t)basis->k, sizeof *basis->inverses);
    NEED_MEMORY(basis->x && basis->product && basis->cofactors && basis->inverses, error);

    basis->product[0] = 1;
    for (int64_t j = 0; j < basis->k; j++) /* Q += Q * (q - 1), which is Q * q */
        limbs_multiply_add(basis->product, basis->product, basis->limbs, (uint64_t)basis->q[j] - 1);
    for (int64_t j = 0; j < basis->k; j++) {
        uint64_t q = (uint64_t)basis->q[j];
        uint64_t *cofactor = basis->cofactors + (size_t)j * basis->limbs;
        limbs_divide(basis->product, basis->limbs, q, cofactor);
        basis->inverses[j] =
            mod_inverse(limbs_divide(cofactor, basis->limbs, q, NULL), basis->q[j]);
    }
    return HEALCL_OK;
}

static void crt_basis_release(struct crt_basis *basis)
{
    free(basis->q);
    free(basis->product);
    free(basis->cofactors);
    free(basis->inverses);
    free(basis->x);
}

/* x = sum over j of (residue[j] * inverse[j] mod q[j]) * Q/q[j], mod Q, of the residues at
 * positions first, first + stride, ... of a. */
static void crt_value(const struct crt_basis *basis, const struct operand *a, int64_t first,
                      int64_t stride)
{
    memset(basis->x, 0, basis->limbs * sizeof *basis->x);
    for (int64_t j = 0; j < basis->k; j++) {
        int64_t q = basis->q[j];
        uint64_t residue = floor_remainder(operand_load(a, first + j * stride), q);
        uint64_t factor = mod_multiply(residue, basis->inverses[j], (uint64_t)q);
        /* A term is below q * Q/q = Q, so that x is below 2Q before the subtraction. */
        limbs_multiply_add(basis->x, basis->cofactors + (size_t)j * basis->limbs, basis->limbs,
                           factor);
        if (!limbs_less(basis->x, basis->product, basis->limbs))
            limbs_subtract(basis->x, basis->product, basis->limbs);
    }
}

/* out[l,i,r] = digit i of the x with x = a[l,j,r] mod q[j] for every j */
enum healcl_status reference_digits_full_q(struct reference *reference, const struct step *step,
                                           struct healcl_error *error)
{
    struct operand out, a;
    TRY(reference_operand(&out, reference, step->out, error));
    TRY(reference_operand(&a, reference, step->in[0], error));

    struct crt_basis basis = {.k = 0};
    enum healcl_status status = crt_basis_init(&basis, reference, step, error);
    if (status == HEALCL_OK) {
        struct layout to = layout_drop_axis(&out.layout, 1); /* where i = 0 */
        struct layout from = layout_drop_axis(&a.layout, 1); /* where j = 0 */
        const struct layout *layouts[] = {&to, &from};
        struct walk walk;
        for (walk_init(&walk, 2, layouts); walk.left > 0; walk_next(&walk)) {
            crt_value(&basis, &a, walk.position[1], a.layout.stride[1]);
            store_digits(reference, &out, walk.position[0], out.layout.stride[1],
                         out.layout.shape[1], step->value[0], basis.x, basis.limbs);
        }
    }
    crt_basis_release(&basis);
    return status;
}
