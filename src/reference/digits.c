/* Gadget digits of integers and of residues (the Chinese remainder theorem). */
#include "reference/arithmetic.h"
#include "reference/operand.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/numbers.h"

/*
 * Unsigned integers of `count` limbs of 64 bits, the least significant first.
 */

static void limbs_shift_right(uint64_t *limbs, size_t count, int64_t bits)
{
    const size_t whole = (size_t)(bits / 64);
    const unsigned part = (unsigned)(bits % 64);
    for (size_t i = 0; i < count; i++) {
        const uint64_t low = whole < count - i ? limbs[i + whole] : 0;
        const uint64_t high = whole + 1 < count - i ? limbs[i + whole + 1] : 0;
        limbs[i] = part > 0 ? low >> part | high << (64 - part) : low;
    }
}

/* sum += limbs * factor; the caller ensures that it fits. */
static void limbs_multiply_add(uint64_t *sum, const uint64_t *limbs, size_t count, uint64_t factor)
{
    uint64_t carry = 0;
    for (size_t i = 0; i < count; i++) {
        uint128 term = (uint128)limbs[i] * factor + sum[i] + carry; /* at most 2^128 - 1 */
        sum[i] = (uint64_t)term;
        carry = (uint64_t)(term >> 64);
    }
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

/* Stores digits 0 to count-1 of a value at positions first, first + stride, ... of out, and removes
 * them from the value. Counts the value if anything is left. If a digit has more than 64 bits, out
 * gets the lowest 64. */
static void store_digits(struct reference *reference, const struct operand *out, int64_t first,
                         int64_t stride, int64_t count, int64_t base_bits, uint64_t *limbs,
                         size_t limb_count)
{
    const uint64_t mask = base_bits < 64 ? ((uint64_t)1 << base_bits) - 1 : UINT64_MAX;
    for (int64_t i = 0; i < count; i++) {
        operand_store(out, first + i * stride, (int64_t)(limbs[0] & mask));
        limbs_shift_right(limbs, limb_count, base_bits);
    }
    for (size_t i = 0; i < limb_count; i++)
        if (limbs[i] != 0) {
            reference->dropped_digits++;
            return;
        }
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
        TRY(reference_visit(reference, out.layout.shape[last], error));
        uint64_t value = (uint64_t)operand_load(&a, walk.position[1]) & mask;
        store_digits(reference, &out, walk.position[0], out.layout.stride[last],
                     out.layout.shape[last], step->value[0], &value, 1);
    }
    return HEALCL_OK;
}

/* Pairwise coprime moduli, and what recovers x in [0, Q) from x mod q[j]. */
struct crt_basis {
    int64_t k;
    size_t limbs;        /* of x and of all values added to it: k + 1, because Q < 2^(63 k) */
    int64_t *q;          /* [k] */
    uint64_t *words;     /* the memory of the following arrays */
    uint64_t *product;   /* [limbs], Q = q[0] * ... * q[k-1] */
    uint64_t *cofactors; /* [k][limbs], Q / q[j] */
    uint64_t *inverses;  /* [k], (Q / q[j])^-1 mod q[j] */
    uint64_t *x;         /* [limbs], the current value */
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

    const size_t k = (size_t)basis->k, limbs = basis->limbs = k + 1;
    basis->words = reference_allocate(k + 3, limbs * sizeof *basis->words);
    NEED_MEMORY(basis->words, error);
    basis->x = basis->words;
    basis->product = basis->x + limbs;
    basis->inverses = basis->product + limbs;
    basis->cofactors = basis->inverses + limbs;
    basis->product[0] = 1;
    for (size_t j = 0; j < k; j++) {
        const uint64_t q = (uint64_t)basis->q[j];
        uint64_t *cofactor = basis->cofactors + j * limbs, rest = 1 % q;
        cofactor[0] = 1;
        for (size_t i = 0; i < k; i++) {
            const uint64_t factor = (uint64_t)basis->q[i];
            if (i == j)
                continue;
            limbs_multiply_add(cofactor, cofactor, limbs, factor - 1); /* times the factor */
            rest = mod_multiply(rest, factor % q, q);
        }
        basis->inverses[j] = mod_inverse(rest, basis->q[j]);
        limbs_multiply_add(basis->product, basis->product, limbs, q - 1);
    }
    return HEALCL_OK;
}

/* x = sum over j of (residue[j] * inverse[j] mod q[j]) * Q/q[j], mod Q. The residues are at
 * positions first, first + stride, ... of a. */
static void crt_value(const struct crt_basis *basis, const struct operand *a, int64_t first,
                      int64_t stride)
{
    memset(basis->x, 0, basis->limbs * sizeof *basis->x);
    for (int64_t j = 0; j < basis->k; j++) {
        int64_t q = basis->q[j];
        uint64_t residue = floor_remainder(operand_load(a, first + j * stride), q);
        uint64_t factor = mod_multiply(residue, basis->inverses[j], (uint64_t)q);
        /* A term is below q * Q/q = Q, so x is below 2Q before the subtraction. */
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
        for (walk_init(&walk, 2, layouts);
             walk.left > 0 &&
             (status = reference_visit(reference, basis.k * basis.k, error)) == HEALCL_OK;
             walk_next(&walk)) {
            crt_value(&basis, &a, walk.position[1], a.layout.stride[1]);
            store_digits(reference, &out, walk.position[0], out.layout.stride[1],
                         out.layout.shape[1], step->value[0], basis.x, basis.limbs);
        }
    }
    free(basis.q);
    free(basis.words);
    return status;
}
