/* Gathers. ELEMENT, INDEX: int or long. */
#if !defined(ELEMENT) || !defined(INDEX)
#error "ELEMENT and INDEX must be given"
#endif

#include "../base/wide.cl"

/*
 * out[c] = a[c with c[axis] := idx[c]]. Operands: out, a, idx. a has stride 0 on the axis, whose
 * size and stride are separate arguments. Indices in [-size, 0) count from the end. An earlier
 * check has reported indices outside the axis: they are not used to read. With -D WIDE all elements
 * of a vector have the same index.
 */
KERNEL gather(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
              global const INDEX *idx, long size, long stride)
{
    TAKE_SPACE(space);
    EACH_ELEMENT(space, span, i) {
        long index = WIDEN(AT(idx, POSITION(space, span, 2, i)));
        index += index < 0 ? size : 0;
        bool inside = index >= 0 && index < size;
        long at = POSITION(space, span, 1, i) + (inside ? index * (stride / WIDTH) : 0);
#ifdef WIDE
        union elements x = inside ? take(a, (place_t)at, false) : NO_ELEMENTS;
        PUT(out, space, span, i, x);
#else
        AT(out, POSITION(space, span, 0, i)) = inside ? AT(a, at) : 0;
#endif
    }
}

#ifndef SINGLE

/*
 * As gather, for contiguous elements in out and a with a common index. For
 * example, the limbs of a coefficient are permuted together.
 */
KERNEL gather_lines(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                    global const INDEX *idx, long size, long stride)
{
    TAKE_SPACE(space);
    EACH_SPAN(space, span) {
        long index = WIDEN(idx[span.position[2]]);
        index += index < 0 ? size : 0;
        bool inside = index >= 0 && index < size;
        global const ELEMENT *from = a + span.position[1] + (inside ? index * stride : 0);
        global ELEMENT *to = out + span.position[0];
        for (count_t i = 0; i < span.length; i++)
            to[i] = inside ? from[i] : 0;
    }
}

/*
 * As gather, for whole rows of a, of size contiguous elements; out and idx are contiguous too. Each
 * line of a row is first read in order, then elements are gathered. Hardware predicts ordered
 * reads, but would wait for each line that is read at random.
 */
KERNEL gather_rows(SPACE(space), global ELEMENT *out, global const ELEMENT *a,
                   global const INDEX *idx, long size)
{
    TAKE_SPACE(space);
    EACH_SPAN(space, span) {
        global const ELEMENT *row = a + span.position[1];
        global const INDEX *from = idx + span.position[2];
        global ELEMENT *to = out + span.position[0];
        for (long i = 0; i < size; i += CACHE_LINE / sizeof(ELEMENT))
            (void)((volatile global const ELEMENT *)row)[i];
        for (count_t i = 0; i < span.length; i++) {
            long index = WIDEN(from[i]);
            index += index < 0 ? size : 0;
            to[i] = (ulong)index < (ulong)size ? row[index] : 0;
        }
    }
}
#endif
