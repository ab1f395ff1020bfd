/* Eight elements of a tensor as a vector, for programs of one type, ELEMENT: int or long. */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif

typedef JOIN(ELEMENT, 8) element8;

/* How far ahead operands are fetched, which takes a third off what tensors larger than L2 cost: two
 * pages, since what the hardware fetches by itself ends with a page. */
enum { AHEAD = AHEAD_BYTES / sizeof(ELEMENT) };

/* Eight elements side by side. */
static inline long8 load_vector(global const ELEMENT *from)
{
    return WIDEN_LANES(8, vload8(0, from));
}

struct __attribute__((packed)) unaligned_vector {
    element8 value;
};

/* Compilers store this as a whole, and what vstore8 stores in parts. */
static inline void store_vector(long8 value, global ELEMENT *to)
{
    ((global struct unaligned_vector *)to)->value = JOIN(convert_, JOIN(ELEMENT, 8))(value);
}
