/*
 * WIDTH contiguous elements that kernels over elements of one type, ELEMENT, process together.
 * WIDTH is 1, or with -D WIDE its value, and each operand is accessed as a vector of this size.
 * With WIDE an element of the space is such a vector. An operand's strides and offset count vectors
 * too, unless the operand is constant along the last axis, with stride 0.
 */
#ifndef HEALCL_CL_WIDE
#define HEALCL_CL_WIDE

#ifdef WIDE
#define WIDTH WIDE
#else
#define WIDTH 1
#endif
#define EACH_OF_WIDTH(j) UNROLL for (uint j = 0; j < WIDTH; j++)

union elements {
    ELEMENT element[WIDTH];
#ifdef WIDE
    JOIN(ELEMENT, WIDE) vector;
#endif
};

#define NO_ELEMENTS ((union elements){{0}})

/* TAKE(name, space, span, k, i) loads them from operand k, PUT stores them in operand 0. */
#ifdef WIDE
#define WIDE_PLACE(at) ((uint)(at)&NARROW_MASK(sizeof(union elements)))
static inline union elements take(global const ELEMENT *from, place_t at, bool repeats)
{
    union elements x;
    if (repeats)
        x.vector = from[(uint)at & NARROW_MASK(sizeof(ELEMENT))];
    else
        x.vector = ((global const JOIN(ELEMENT, WIDE) *)from)[WIDE_PLACE(at)];
    return x;
}
#define TAKE(name, space, span, k, i) \
    take(name, POSITION(space, span, k, i), (space).operand[k].stride[RANK(space) - 1] == 0)
#define PUT(name, space, span, i, x)         \
    ((global JOIN(ELEMENT, WIDE) *)name)[WIDE_PLACE(POSITION(space, span, 0, i))] = (x).vector
#else
#define TAKE(name, space, span, k, i) ((union elements){{AT(name, POSITION(space, span, k, i))}})
#define PUT(name, space, span, i, x) AT(name, POSITION(space, span, 0, i)) = (x).element[0]
#endif

#endif
