/* Rows of a batch [l,r,k,n] in the tensors of a transform, in place. Row (l, r, j) has the number
 * (l*r_size + r)*k + j, below 2^32: many devices are slow to divide longer numbers. */

/* Element u of a row is at position + u*stride in its storage. */
struct row {
    long position, stride;
};

static inline struct row row_of(const struct space *space, uint operand, uint number)
{
    const struct operand *view = &space->operand[operand];
    uint r_size = (uint)space->shape[1], k = (uint)space->shape[2];
    uint outer = (uint)divide_by_axis(number, space, 2), j = number - outer * k;
    uint l = (uint)divide_by_axis(outer, space, 1), r = outer - l * r_size;
    struct row row;
    row.position = view->offset + l * view->stride[0] + r * view->stride[1] + j * view->stride[2];
    row.stride = view->stride[3];
    return row;
}

/* x times a factor, in [0, q), or in (-q, 0] if the factor is marked TWIDDLE_NEGATIVE. Any x. */
static inline long multiply_scale(ulong x, struct twiddle w, ulong q)
{
    bool is_negative = w.factor & TWIDDLE_NEGATIVE;
    w.factor &= ~TWIDDLE_NEGATIVE;
    ulong rest = multiply_twiddle(x, w, q);
    return is_negative ? -(long)rest : (long)rest;
}
