/*
 * Negacyclic number-theoretic transforms: load into rows of residues, transform the rows in
 * place, store. A row is one polynomial for one modulus; row (l, r, j) of a batch [l,r,k,n] lies
 * at ((l*r_size + r)*k + j)*n - first, where first is where the part of the batch starts that is
 * in hand. All residues are in [0, q) for every q in [1, 2^63).
 */
#include "stages.cl"
#include "tensor_rows.cl"

/* rows[..., perm[u]] = in[..., u] mod q, without use_perm rows[..., u] = in[..., u] mod q.
 * The space is [l,r,k,n]; operands: out, in, whose elements have size bytes: were they of a type
 * that is compiled in, a transform of int8 would want another program than the output's. */
KERNEL ntt_load(SPACE(space), global ulong *rows, BUFFER(const char, in), uint size,
                global const struct modulus *q, global const uint *perm, uint use_perm)
{
    TAKE_SPACE(space);
    EACH_SPAN(space, span) {
        struct modulus modulus = q[span.index[2]];
        ulong row = span.linear - (ulong)span.index[3] - space.first;
        for (count_t i = 0; i < span.length; i++) {
            ulong u = (ulong)span.index[3] + i;
            long x = load_number(&AT(in, POSITION(space, span, 1, i) * size), size);
            rows[row + (use_perm ? perm[u] : u)] = reduce_signed(x, modulus);
        }
    }
}

/* out[..., u] = rows[..., perm[u]] or rows[..., u], times n_inv[k] where scale is not 0.
 * The space is [l,r,k,n]; operand: out. */
KERNEL ntt_store(SPACE(space), BUFFER(ELEMENT, out), global const ulong *rows,
                 global const struct modulus *q, global const struct twiddle *n_inv, uint scale,
                 global const uint *perm, uint use_perm)
{
    TAKE_SPACE(space);
    EACH_SPAN(space, span) {
        ulong modulus = q[span.index[2]].value;
        ulong row = span.linear - (ulong)span.index[3] - space.first;
        for (count_t i = 0; i < span.length; i++) {
            ulong u = (ulong)span.index[3] + i;
            ulong value = rows[row + (use_perm ? perm[u] : u)];
            if (scale)
                value = (ulong)multiply_scale(value, n_inv[span.index[2]], modulus);
            AT(out, POSITION(space, span, 0, i)) = (ELEMENT)value;
        }
    }
}

/* One work-group for each row. The rows begin with modulus first_modulus. twiddles: psi [k,n]. */
KERNEL ntt_stages(global ulong *rows, ulong n, uint k, uint first_modulus,
                  global const struct modulus *q, global const struct twiddle *twiddles)
{
    ulong row = get_group_id(0), j = (first_modulus + row) % k;
    ntt_row(rows + row * n, n, q[j].value, twiddles + j * n);
}

/* The same for the inverse; twiddles: ipsi [k,n]. */
KERNEL intt_stages(global ulong *rows, ulong n, uint k, uint first_modulus,
                   global const struct modulus *q, global const struct twiddle *twiddles)
{
    ulong row = get_group_id(0), j = (first_modulus + row) % k;
    intt_row(rows + row * n, n, q[j].value, twiddles + j * n);
}

#if LOCAL_SIZE == 1
/* All of it for the rows of each work-item, which is alone in its work-group and has elements of
 * whole rows. Operands: out, in, as above. */
KERNEL ntt_whole(SPACE(space), global ulong *rows, BUFFER(ELEMENT, out), BUFFER(const char, in),
                 uint size, global const struct modulus *q, global const struct twiddle *twiddles,
                 global const uint *perm, uint use_perm)
{
    TAKE_SPACE(space);
    ulong n = space.shape[3], first = space.first / n, per_item = space.elements_per_item / n;
    ulong row = first + get_global_id(0) * per_item, end = min(row + per_item, space.end / n);
    for (; row < end; row++) {
        uint j = (uint)(row % (ulong)space.shape[2]);
        struct row from = row_of(&space, 1, (uint)row), to = row_of(&space, 0, (uint)row);
        struct modulus modulus = q[j];
        global ulong *x = rows + (row - first) * n;
        for (ulong u = 0; u < n; u++) {
            ulong position = from.position + u * from.stride;
            x[u] = reduce_signed(load_number(&AT(in, position * size), size), modulus);
        }
        ntt_row(x, n, modulus.value, twiddles + j * n);
        for (ulong u = 0; u < n; u++)
            AT(out, to.position + u * to.stride) = (ELEMENT)x[use_perm ? perm[u] : u];
    }
}

/* The same for the inverse. */
KERNEL intt_whole(SPACE(space), global ulong *rows, BUFFER(ELEMENT, out), BUFFER(const char, in),
                  uint size, global const struct modulus *q, global const struct twiddle *twiddles,
                  global const uint *perm, uint use_perm, global const struct twiddle *n_inv)
{
    TAKE_SPACE(space);
    ulong n = space.shape[3], first = space.first / n, per_item = space.elements_per_item / n;
    ulong row = first + get_global_id(0) * per_item, end = min(row + per_item, space.end / n);
    for (; row < end; row++) {
        uint j = (uint)(row % (ulong)space.shape[2]);
        struct row from = row_of(&space, 1, (uint)row), to = row_of(&space, 0, (uint)row);
        struct modulus modulus = q[j];
        global ulong *x = rows + (row - first) * n;
        for (ulong u = 0; u < n; u++) {
            ulong position = from.position + u * from.stride;
            x[use_perm ? perm[u] : u] =
                reduce_signed(load_number(&AT(in, position * size), size), modulus);
        }
        intt_row(x, n, modulus.value, twiddles + j * n);
        for (ulong u = 0; u < n; u++)
            AT(out, to.position + u * to.stride) =
                (ELEMENT)multiply_scale(x[u], n_inv[j], modulus.value);
    }
}
#endif
