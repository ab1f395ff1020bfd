/*
 * Operations on long rows of elements whose output is too large for caches, for devices with wide
 * vectors. They store whole lines past the caches. Arguments are those of the kernel of the same
 * name in core.cl. All operands have stride 1 along the last axis. ELEMENT: char, int or long.
 */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif

#include "../base/caches.cl"

typedef long8 line;

struct __attribute__((packed)) unaligned_line {
    line value;
};

static inline line load_line(global const ELEMENT *from)
{
    return ((global const struct unaligned_line *)from)->value;
}

/* The absolute values of a line of ints or longs; the smallest value wraps. */
static inline line line_magnitude(line x)
{
    if (sizeof(ELEMENT) == 8)
        return (x ^ x >> 63) - (x >> 63);
    int16 elements = as_int16(x), sign = elements >> 31;
    return as_long8((elements ^ sign) - sign);
}

/* A line of elements with this value. */
static inline line repeat_element(long value)
{
    ulong word = (ulong)value;
    if (sizeof(ELEMENT) == 1)
        word = (word & 0xff) * 0x0101010101010101UL;
    else if (sizeof(ELEMENT) == 4)
        word = (word & 0xffffffffUL) * 0x0000000100000001UL;
    return (line)((long)word);
}

enum line_operation { COPY, FILL, ABSOLUTE };

static inline ELEMENT element_of(const enum line_operation operation, global const ELEMENT *from,
                                 long value, ulong i)
{
    return operation == FILL   ? (ELEMENT)value
           : operation == COPY ? from[i]
                               : (ELEMENT)magnitude(WIDEN(from[i]));
}

static inline line line_of(const enum line_operation operation, global const ELEMENT *from,
                           line all, ulong i)
{
    return operation == FILL   ? all
           : operation == COPY ? load_line(from + i)
                               : line_magnitude(load_line(from + i));
}

/* Stores a row of elements to out: those of from, their absolute values, or value. */
static inline void store_row(const enum line_operation operation, global ELEMENT *out,
                             global const ELEMENT *from, long value, ulong length)
{
    ulong count = CACHE_LINE / sizeof(ELEMENT), i = 0;
    ulong before = min(length, -(ulong)out % CACHE_LINE / sizeof(ELEMENT));
    line all = repeat_element(value);
    for (; i < before; i++)
        out[i] = element_of(operation, from, value, i);
    for (; i + count <= length; i += count)
        STORE_PAST(line, line_of(operation, from, all, i), out + i);
    for (; i < length; i++)
        out[i] = element_of(operation, from, value, i);
}

KERNEL copy(SPACE(space), global ELEMENT *out, global const ELEMENT *in)
{
    TAKE_SPACE(space);
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span))
        store_row(COPY, out + span.position[0], in + span.position[1], 0, span.length);
    FENCE_PAST();
}

KERNEL fill(SPACE(space), global ELEMENT *out, long value)
{
    TAKE_SPACE(space);
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span))
        store_row(FILL, out + span.position[0], 0, value, span.length);
    FENCE_PAST();
}

KERNEL absolute(SPACE(space), global ELEMENT *out, global const ELEMENT *a)
{
    TAKE_SPACE(space);
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span))
        store_row(ABSOLUTE, out + span.position[0], a + span.position[1], 0, span.length);
    FENCE_PAST();
}
