/* Eight elements of a tensor as a vector, for programs with one type, ELEMENT: int or long. */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif

typedef JOIN(ELEMENT, 8) element8;

/* The distance of prefetches of operands. It is two pages: hardware prefetch ends with a page. This
 * saves a third of the time for tensors larger than L2. */
enum { AHEAD = AHEAD_BYTES / sizeof(ELEMENT) };

/* Eight contiguous elements. */
static inline long8 load_vector(global const ELEMENT *from)
{
    return WIDEN_LANES(8, vload8(0, from));
}

struct __attribute__((packed)) unaligned_vector {
    element8 value;
};

/* Compilers store this vector at once, but use several stores for vstore8. */
static inline void store_vector(long8 value, global ELEMENT *to)
{
    ((global struct unaligned_vector *)to)->value = JOIN(convert_, JOIN(ELEMENT, 8))(value);
}
