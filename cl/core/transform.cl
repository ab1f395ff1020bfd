/* Tables of a transform. */
#include "../base/report.cl"

#define ROW_PLACE(k, j, i)                                                            \
    ((place_t)space.operand[k].offset + (place_t)(j) * (place_t)space.operand[k].stride[row] + \
     (place_t)(i) * (place_t)space.operand[k].stride[row + 1])

/*
 * Tables of a transform, those in `wanted`; the space is [k,n]. Operands are q [k], psi [k,n],
 * n_inv [k] and factors [k].
 *   TABLE_MODULI       moduli [k]; if not wanted, it must exist. Reports elements of q below 1,
 *                      which then count as 1
 *   TABLE_TWIDDLES     twiddles [k,n]: psi modulo q, with quotients
 *   TABLE_SCALES       scales [k]: n_inv modulo q
 *   TABLE_FACTORS      the magnitude of factors, marked TWIDDLE_NEGATIVE where they are below 0;
 *                      times n_inv with TABLE_SCALES
 *   TABLE_PERMUTATION  permutation [n+1] and inverse [2n+1] as the kernel permutation expects them
 */
KERNEL transform_tables(SPACE(space), uint wanted, global const ELEMENT *q,
                        global const ELEMENT *psi, global const ELEMENT *n_inv,
                        global const ELEMENT *factors, global struct modulus *moduli,
                        global struct twiddle *twiddles, global struct twiddle *scales, global uint *permutation,
                        global uint *inverse, volatile global struct status *status)
{
    TAKE_SPACE(space);
    uint row = RANK(space) - 2;
    count_t k = (count_t)space.shape[row], n = (count_t)space.shape[row + 1];
    count_t per_item = (count_t)space.elements_per_item, per_block = per_item * LOCAL_SIZE;
    count_t blocks = (n + per_block - 1) / per_block; /* of a row; each computes the modulus once */
    for (count_t block = get_group_id(0); block < k * blocks; block += get_num_groups(0)) {
        count_t j = block / blocks, first = block % blocks * per_block + get_local_id(0);
        struct modulus modulus = {1, 1, 1, 1};
        if (wanted & TABLE_MODULI) {
            long value = WIDEN(AT(q, ROW_PLACE(0, j, 0)));
            modulus = make_modulus((ulong)max(value, 1L));
            if (first == 0) {
                moduli[j] = modulus;
                if (value < 1)
                    report_value(status, &space, q, n, j);
            }
        } else if (wanted != TABLE_PERMUTATION)
            modulus = moduli[j];
        count_t end = min(n, first + per_block);
        for (count_t i = first; i < end && wanted & TABLE_TWIDDLES; i += LOCAL_SIZE) {
            long value = WIDEN(AT(psi, ROW_PLACE(1, j, i)));
            twiddles[j * n + i] = make_twiddle(residue_of(value, modulus), modulus);
        }
        for (count_t i = first; i < end && j == 0 && wanted & TABLE_PERMUTATION; i += LOCAL_SIZE) {
            inverse[i] = 0; /* used if the input is not a permutation and omits an index */
            inverse[n + 1 + i] = UINT_MAX;
        }
        if (first > 0)
            continue;
        if (wanted & (TABLE_SCALES | TABLE_FACTORS)) {
            long unscaled = wanted & TABLE_SCALES ? WIDEN(AT(n_inv, ROW_PLACE(2, j, 0))) : 1;
            ulong scale = residue_of(unscaled, modulus);
            long factor = wanted & TABLE_FACTORS ? WIDEN(AT(factors, ROW_PLACE(3, j, 0))) : 1;
            scale = multiply_mod(reduce(magnitude(factor), modulus), scale, modulus);
            scales[j] = make_twiddle(scale, modulus);
            scales[j].factor |= factor < 0 ? TWIDDLE_NEGATIVE : 0;
        }
        if (wanted & TABLE_PERMUTATION && j == 0)
            permutation[n] = inverse[n] = PERMUTATION_REVERSES_BITS | PERMUTATION_IDENTITY;
    }
}
