/*
 * Operations on long runs of elements whose output is too large for caches, for devices with wide
 * vectors: whole lines are stored past them. Arguments are as of the kernel of the same name in
 * core.cl; all operands have stride 1 along the last axis. ELEMENT: char, int or long.
 */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif
#if CHUNKS != 1
#error "lines need CHUNKS=1"
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

/* Stores a run of elements to out: number i is element, line_at the line that begins with it. */
#define STORE_RUN(out, length, element, line_at)                                    \
    do {                                                                            \
        ulong count = CACHE_LINE / sizeof(ELEMENT), i = 0;                          \
        ulong before = min((length), -(ulong)(out) % CACHE_LINE / sizeof(ELEMENT)); \
        for (; i < before; i++)                                                     \
            (out)[i] = (element);                                                   \
        for (; i + count <= (length); i += count)                                   \
            STORE_PAST(line, line_at, (out) + i);                                   \
        for (; i < (length); i++)                                                   \
            (out)[i] = (element);                                                   \
    } while (0)

KERNEL copy(SPACE, global ELEMENT *out, global const ELEMENT *in)
{
    TAKE_SPACE;
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span)) {
        global ELEMENT *to = out + span.position[0];
        global const ELEMENT *from = in + span.position[1];
        STORE_RUN(to, span.length, from[i], load_line(from + i));
    }
    FENCE_PAST();
}

KERNEL fill(SPACE, global ELEMENT *out, long value)
{
    TAKE_SPACE;
    ulong word = (ulong)value;
    if (sizeof(ELEMENT) == 1)
        word = (word & 0xff) * 0x0101010101010101UL;
    else if (sizeof(ELEMENT) == 4)
        word = (word & 0xffffffffUL) * 0x0000000100000001UL;
    line all = (line)((long)word);
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span)) {
        global ELEMENT *to = out + span.position[0];
        STORE_RUN(to, span.length, (ELEMENT)value, all);
    }
    FENCE_PAST();
}

/* The absolute values of a line of ints or longs; the smallest one wraps. */
static inline line line_magnitude(line x)
{
    if (sizeof(ELEMENT) == 8)
        return (x ^ x >> 63) - (x >> 63);
    int16 elements = as_int16(x), sign = elements >> 31;
    return as_long8((elements ^ sign) - sign);
}

KERNEL absolute(SPACE, global ELEMENT *out, global const ELEMENT *a)
{
    TAKE_SPACE;
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span)) {
        global ELEMENT *to = out + span.position[0];
        global const ELEMENT *from = a + span.position[1];
        STORE_RUN(to, span.length, (ELEMENT)magnitude(WIDEN(from[i])),
                  line_magnitude(load_line(from + i)));
    }
    FENCE_PAST();
}
