/* axis_modsum and modmul_axis_sum: modular sums over an axis. */
#include "reference/arithmetic.h"
#include "reference/operand.h"

#include <stdlib.h>

/* out[c] = (sum over i of a[c with i inserted at axis]) mod q[c], in [0, q) */
enum healcl_status reference_axis_modsum(struct reference *reference, const struct step *step,
                                         struct healcl_error *error)
{
    struct operand out, a, q;
    TRY(reference_operand(&out, reference, step->out, error));
    TRY(reference_operand(&a, reference, step->in[0], error));
    TRY(reference_moduli(&q, reference, step, 1, error));

    uint32_t axis = (uint32_t)step->value[0];
    int64_t size = a.layout.shape[axis], stride = a.layout.stride[axis];
    struct layout first = layout_drop_axis(&a.layout, axis); /* where i = 0 */
    const struct layout *layouts[] = {&out.layout, &first, &q.layout};
    struct walk walk;
    for (walk_init(&walk, 3, layouts); walk.left > 0; walk_next(&walk)) {
        TRY(reference_visit(reference, size, error));
        int128 sum = 0; /* of fewer than 2^63 values: |sum| < 2^126 */
        for (int64_t i = 0; i < size; i++)
            sum += operand_load(&a, walk.position[1] + i * stride);
        int64_t modulus = operand_load(&q, walk.position[2]);
        operand_store(&out, walk.position[0], (int64_t)floor_remainder(sum, modulus));
    }
    return HEALCL_OK;
}

/* out[r,j,m] = (out[r,j,m] + sum over i of a[r,i,j,l]*b[r,i,j,m]) mod q[j], in [0, q), with m =
 * perm[l], or m = l if perm is NULL. adds: whether the previous out is included. All data have been
 * checked. */
static enum healcl_status accumulate(struct reference *reference, const struct operand *out,
                                     const struct operand *a, const struct operand *b,
                                     const int64_t *q, const int64_t *perm, bool adds,
                                     struct healcl_error *error)
{
    const struct layout *at_out = &out->layout, *at_a = &a->layout, *at_b = &b->layout;
    int64_t reps = at_a->shape[0], s = at_a->shape[1], k = at_a->shape[2], n = at_a->shape[3];
    for (int64_t r = 0; r < reps; r++)
        for (int64_t j = 0; j < k; j++) {
            TRY(reference_visit(reference, n * s, error));
            for (int64_t l = 0; l < n; l++) {
                int64_t m = perm ? perm[l] : l;
                int64_t to = at_out->offset + r * at_out->stride[0] + j * at_out->stride[1] +
                             m * at_out->stride[2];
                int64_t from_a =
                    at_a->offset + r * at_a->stride[0] + j * at_a->stride[2] + l * at_a->stride[3];
                int64_t from_b =
                    at_b->offset + r * at_b->stride[0] + j * at_b->stride[2] + m * at_b->stride[3];
                /* Fewer than 2^63 residues below 2^63: sum < 2^126. */
                int128 sum = adds ? operand_load(out, to) : 0;
                for (int64_t i = 0; i < s; i++) {
                    int64_t x = operand_load(a, from_a + i * at_a->stride[1]);
                    int64_t y = operand_load(b, from_b + i * at_b->stride[1]);
                    sum += floor_remainder((int128)x * y, q[j]);
                }
                operand_store(out, to, (int64_t)floor_remainder(sum, q[j]));
            }
        }
    return HEALCL_OK;
}

/* The terms and weights of one digit of a base conversion. */
static enum healcl_status take_digit(struct operand *a, struct operand *b,
                                     struct reference *reference, const struct step *step,
                                     int64_t digit, struct healcl_error *error)
{
    TRY(reference_operand(b, reference, step_weights(step, digit), error));
    b->layout = layout_insert_axis(&b->layout, 0, a->layout.shape[0], 0);
    a->layout.shape[1] = b->layout.shape[1];
    return HEALCL_OK;
}

enum healcl_status reference_modmul_axis_sum(struct reference *reference, const struct step *step,
                                             struct healcl_error *error)
{
    struct operand out, a, b, q;
    TRY(reference_operand(&out, reference, step->out, error));
    TRY(reference_operand(&a, reference, step->in[0], error));
    TRY(reference_operand(&b, reference, step->in[1], error));
    const struct product_sum sum = step_product_sum(step);
    TRY(reference_moduli(&q, reference, step, 2, error));

    int64_t *moduli = NULL, *perm = NULL;
    enum healcl_status status = reference_read_vector(&q, &moduli, error);
    if (status == HEALCL_OK && step->in[3])
        status = reference_read_permutation(reference, step, 3, &perm, error);
    out.layout = sum.out;
    a.layout = sum.a;
    b.layout = sum.b;
    for (int64_t i = 0; i < sum.batch; i++) {
        if (status == HEALCL_OK && step->kind == STEP_BASE_CONVERSION)
            status = take_digit(&a, &b, reference, step, i, error);
        THEN(status, accumulate(reference, &out, &a, &b, moduli, perm, step_adds(step), error));
        out.layout.offset += sum.out_distance;
        a.layout.offset += sum.a_distance;
        b.layout.offset += sum.b_distance;
    }
    free(perm);
    free(moduli);
    return status;
}
