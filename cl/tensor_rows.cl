/* Rows of a batch [l,r,k,n] in the tensors that a transform reads and writes where they lie; row
 * (l, r, j) is number (l*r_size + r)*k + j. */
#if !defined(IN) || !defined(OUT)
#error "IN and OUT, the types of the tensors' elements, are not given"
#endif

/* Element u of a row is element position + u*stride of its storage. */
struct row {
    long position, stride;
};

static inline struct row row_of(const struct space *space, uint operand, ulong number)
{
    const struct operand *view = &space->operand[operand];
    ulong r_size = (ulong)space->shape[1], k = (ulong)space->shape[2];
    long j = (long)(number % k), r = (long)(number / k % r_size), l = (long)(number / k / r_size);
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
