/* Rows of a batch [l,r,k,n] in the tensors that a transform reads and writes where they lie; row
 * (l, r, j) is number (l*r_size + r)*k + j, less than 2^32: many devices are slow to divide longer
 * numbers. */
#if !defined(IN) || !defined(OUT)
#error "IN and OUT, the types of the tensors' elements, are not given"
#endif

/* Element u of a row is element position + u*stride of its storage. */
struct row {
    long position, stride;
};

static inline struct row row_of(const struct space *space, uint operand, uint number)
{
    const struct operand *view = &space->operand[operand];
    uint r_size = (uint)space->shape[1], k = (uint)space->shape[2];
    uint outer = number / k, j = number % k, l = outer / r_size, r = outer % r_size;
    struct row row;
    row.position = view->offset + l * view->stride[0] + r * view->stride[1] + j * view->stride[2];
    row.stride = view->stride[3];
    return row;
}

/* value mod q in [0, q), any value. Most are residues already; seen as unsigned, negative ones are
 * above every q. */
static inline ulong residue_of(long value, struct modulus m)
{
    ulong residue = (ulong)value;
    return residue < m.value ? residue : reduce_signed(value, m);
}
