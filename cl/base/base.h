/*
 * Every kernel program starts with this file. The host's compiler reads the first part too: both
 * sides use the same structures, which are passed by value.
 *
 * Macros for specialisation, given with -D. A program checks its own macros.
 *   LOCAL_SIZE    work-items in a work-group
 *   AXES          the number of axes of a launch's space, which has less than 2^31 elements
 *   NARROW        with AXES: every storage has less than 2^32 bytes
 *   THIN          with AXES: a work-item takes one element
 *   WIDE          with NARROW: an element of the space is a vector of WIDE, 2, 4, 8 or 16
 *   SINGLE        with AXES: one work-item takes all elements, from number 0 on, in one loop that
 *                 can be a pipeline
 */
#ifndef HEALCL_CL_BASE_H
#define HEALCL_CL_BASE_H

#ifdef __OPENCL_C_VERSION__
typedef uint cl_base_uint;
typedef long cl_base_long;
typedef ulong cl_base_ulong;
#else
#include <stdint.h>
typedef uint32_t cl_base_uint;
typedef int64_t cl_base_long;
typedef uint64_t cl_base_ulong;
#endif

#include "geometry.h"

enum { SPACE_AXES = 17, SPACE_OPERANDS = 4 };

/* A view: the element with index (i0, i1, ...) is at offset + i0*stride[0] + i1*stride[1] + ... */
struct operand {
    cl_base_long offset;
    cl_base_long stride[SPACE_AXES];
};

/* The elements that a launch works on, in C order, and their positions in each operand. A work-item
 * takes elements_per_item consecutive elements. 816 bytes. */
struct space {
    cl_base_ulong first, end; /* of the shape's elements, the launch takes those in [first, end) */
    cl_base_ulong elements_per_item;
    cl_base_uint rank; /* at least 1 */
    cl_base_uint key;  /* identifies this launch in the status buffer; not 0 */
    cl_base_long shape[SPACE_AXES];
    cl_base_uint reciprocal[SPACE_AXES]; /* with AXES: floor(2^32 / shape), at most 2^32-1 */
    struct operand operand[SPACE_OPERANDS];
};

/* Errors that only data reveal, and warnings. The error of the first launch that reports is kept,
 * at its smallest index. */
struct status {
    cl_base_uint key;   /* of that launch; 0: no error */
    cl_base_uint index; /* in C order among checked elements; 2^32-1 stands for larger ones */
    cl_base_uint dropped_low, dropped_high; /* number of values with dropped digits */
    cl_base_long value; /* the offending element; undefined if index stands for larger ones */
};

/* A modulus in [1, 2^63), with the constants for division by it (see arithmetic.h). */
struct modulus {
    cl_base_ulong value;
    cl_base_ulong normalized; /* value << shift, in [2^63, 2^64) */
    cl_base_ulong reciprocal; /* floor((2^128-1) / normalized) - 2^64 */
    cl_base_ulong shift;      /* in [1, 63] */
};

/* A factor w in [0, q) with floor(w * 2^64 / q), for multiplication as in NTL by V. Shoup. */
struct twiddle {
    cl_base_ulong factor;
    cl_base_ulong quotient;
};

/* Marks a factor whose products get a negative sign. Kernels of transforms check it. */
#define TWIDDLE_NEGATIVE ((cl_base_ulong)1 << 63)

/* Counters shared by all work-items of the self-test; see self_test.cl. */
struct self_test_counters {
    cl_base_uint count, sum, least, common, first;
    cl_base_uint winner;        /* the work-item that set first, as it reports itself */
    cl_base_uint rounds, mixed; /* iterations of one loop, and the value that it computed */
    cl_base_uint changed;       /* number of work-items that computed other values */
};

/* Checks the ranges stated in comments: x, or each lane of vectors, is below limit. With -D
 * CHECK_RANGES kernels print a violation to the host's standard output. */
#if defined CHECK_RANGES && defined __OPENCL_C_VERSION__
#define CHECK_BELOW(x, limit) CHECK_RANGE((x) < (limit), #x " is not below " #limit "\n")
#define CHECK_LANES_BELOW(x, limit) \
    CHECK_RANGE(!any((x) >= (limit)), #x " is not below " #limit "\n")
#define CHECK_RANGE(holds, text) \
    if (!(holds))                \
    printf(text)
#else
#define CHECK_BELOW(x, limit) (void)(0)
#define CHECK_LANES_BELOW(x, limit) (void)(0)
#endif

#ifdef __OPENCL_C_VERSION__

#ifndef LOCAL_SIZE
#error "LOCAL_SIZE is not given"
#endif

/* With one work-item in a work-group, a compiler cannot join work-items into vectors. Some
 * compilers try, and take minutes, unless a kernel declares that it has vectors itself. */
#if LOCAL_SIZE == 1
#define KERNEL __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(ulong8))) kernel void
#else
#define KERNEL __attribute__((reqd_work_group_size(LOCAL_SIZE, 1, 1))) kernel void
#endif

/* On some GPUs the compiler chooses how many work-items share a set of registers. With 64-bit
 * elements it should be few. On devices without doubles it chooses well. */
#if defined(cl_intel_required_subgroup_size) && defined(cl_khr_fp64) && LOCAL_SIZE % 16 == 0
#define FEW_TOGETHER __attribute__((intel_reqd_sub_group_size(16)))
#else
#define FEW_TOGETHER
#endif

#ifdef SINGLE
#define THIN /* a span is one element */
#define WORK_ITEM 0
#else
#define WORK_ITEM ((count_t)get_group_id(0) * LOCAL_SIZE + (count_t)get_local_id(0))
#endif

#define UNROLL _Pragma("unroll")
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* The first parameter of most kernels, a struct space of this name, and the start of their bodies.
 * COPY_SPACE is for a device that can index its own memory, but not a kernel's arguments. With
 * SPACE_IN_MEMORY the space is passed in memory: for kernels that accept few bytes of arguments. */
#ifdef SPACE_IN_MEMORY
#define SPACE(name) global const struct space *name##_argument
#define TAKE_SPACE(name) struct space name = *name##_argument
#elif defined COPY_SPACE
#define SPACE(name) struct space name##_argument
#define TAKE_SPACE(name) struct space name = name##_argument
#else
#define SPACE(name) struct space name
#define TAKE_SPACE(name)
#endif

/* Element i of a storage. With NARROW, compilers know that byte offsets have 32 bits. */
#ifdef NARROW
#define NARROW_MASK(size) (0xffffffffu / (uint)(size))
#define AT(name, i) (name[(uint)(i)&NARROW_MASK(sizeof(*name))])
#else
#define AT(name, i) (name[i])
#endif

/* An element x of a storage as a long, and a vector of elements. Some devices get the sign wrong in
 * (long) of an int: these use WIDEN_BY_SHIFT. No other code may sign-extend an int
 * (tests/conformance/widening.py). */
#ifdef WIDEN_BY_SHIFT
#define WIDEN(x) (sizeof(x) == 8 ? (long)(x) : (long)((ulong)(uint)(x) << 32) >> 32)
#define WIDEN_int(count, x) (convert_long##count(as_uint##count(x)) << 32 >> 32)
#else
#define WIDEN(x) ((long)(x))
#define WIDEN_int(count, x) convert_long##count(x)
#endif
#define WIDEN_long(count, x) (x)
#define WIDEN_LANES(count, x) JOIN(WIDEN_, ELEMENT)(count, x)

/* The element of size bytes, 1, 4 or 8, at this address. */
static inline long load_number(global const char *at, uint size)
{
    return size == 8   ? *(global const long *)at
           : size == 4 ? WIDEN(*(global const int *)at)
                       : WIDEN(*at);
}

/* Types for counts of elements, positions in buffers, and axes. With a constant number of axes, a
 * work-item keeps its span in registers. Otherwise the span is in private memory, indexed by
 * axis. */
#ifdef AXES
#define RANK(space) AXES
typedef uint count_t;
enum { SPAN_AXES = AXES < 4 ? 4 : AXES }; /* transforms have four axes */
#else
#define RANK(space) ((space).rank)
typedef ulong count_t;
enum { SPAN_AXES = SPACE_AXES };
#endif
#ifdef NARROW
typedef uint place_t;
#else
typedef long place_t;
#endif

/*
 * A work-item traverses its elements of a space in spans along the last axis:
 *
 *     EACH_ELEMENT(space, span, i)
 *         AT(out, POSITION(space, span, 0, i)) = ...;
 */
struct span {
    count_t linear;                   /* C-order number of the span's first element */
    count_t left;                     /* elements still to do, this span included */
    count_t length;                   /* of this span; 0 at the end */
    count_t index[SPAN_AXES];         /* of the first element */
    place_t position[SPACE_OPERANDS]; /* of the first element in each operand */
};

/* A pipeline need not wait for its own writes: plans never let a kernel read an element that it
 * writes for another one. */
#ifdef SINGLE
#define PIPELINE _Pragma("ivdep")
#else
#define PIPELINE
#endif
#define EACH_SPAN(space, span) \
    PIPELINE                   \
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span))
#define EACH_ELEMENT(space, span, i) \
    EACH_SPAN(space, span)           \
    for (count_t i = 0; i < span.length; i++)

#ifdef THIN /* i is 0 */
#define POSITION(space, span, k, i) ((span).position[k])
#else
#define POSITION(space, span, k, i) \
    ((span).position[k] + (place_t)(i) * (place_t)(space).operand[k].stride[RANK(space) - 1])
#endif

/* a / shape[axis] */
static inline count_t divide_by_axis(count_t a, const struct space *space, uint axis)
{
    count_t size = (count_t)space->shape[axis];
#ifdef AXES
    uint quotient = mul_hi(a, space->reciprocal[axis]); /* may be 1 too small */
    return quotient + (a - quotient * size >= size);
#else /* many devices divide 32 bits several times as fast as 64 */
    return (a | size) >> 32 ? a / size : (ulong)((uint)a / (uint)size);
#endif
}

/* The span of a work-item, or of another part of the space's elements. */
static inline struct span span_at(const struct space *space, count_t item)
{
    struct span span;
    count_t first = (count_t)space->first, end = (count_t)space->end;
#ifdef THIN
    span.linear = first + item;
    span.left = span.linear < end;
#else
    span.linear = first + item * (count_t)space->elements_per_item;
    span.left = span.linear < end ? min((count_t)space->elements_per_item, end - span.linear) : 0;
#endif
    for (uint k = 0; k < SPACE_OPERANDS; k++)
        span.position[k] = (place_t)space->operand[k].offset;
    count_t rest = span.linear;
    UNROLL for (uint axis = RANK(*space); axis-- > 0;)
    {
        count_t next = axis > 0 ? divide_by_axis(rest, space, axis) : 0;
        span.index[axis] = rest - next * (count_t)space->shape[axis];
        rest = next;
        for (uint k = 0; k < SPACE_OPERANDS; k++)
            span.position[k] += (place_t)span.index[axis] * (place_t)space->operand[k].stride[axis];
    }
#ifdef THIN
    span.length = span.left;
#else
    uint last = RANK(*space) - 1;
    span.length = min(span.left, (count_t)space->shape[last] - span.index[last]);
#endif
    return span;
}

#ifdef SINGLE

static inline struct span first_span(const struct space *space)
{
    struct span span = {0, (count_t)space->end, space->end > 0, {0}, {0}};
    for (uint k = 0; k < SPACE_OPERANDS; k++)
        span.position[k] = (place_t)space->operand[k].offset;
    return span;
}

/* Counters and constant steps: each iteration of a pipeline has only additions. */
static inline void next_span(const struct space *space, struct span *span)
{
    span->linear++;
    span->left--;
    span->length = span->left > 0;
    bool moves = true;
    UNROLL for (uint axis = AXES; axis-- > 0;)
    {
        count_t last = (count_t)space->shape[axis] - 1;
        bool carries = moves && span->index[axis] == last;
        for (uint k = 0; k < SPACE_OPERANDS; k++) {
            place_t stride = (place_t)space->operand[k].stride[axis];
            place_t back = 0 - (place_t)last * stride;
            span->position[k] += carries ? back : moves ? stride : 0;
        }
        span->index[axis] = carries ? 0 : span->index[axis] + moves;
        moves = carries;
    }
}

#else

static inline struct span first_span(const struct space *space)
{
    return span_at(space, WORK_ITEM);
}

static inline void next_span(const struct space *space, struct span *span)
{
#ifdef THIN
    span->length = 0;
    return;
#endif
    span->left -= span->length;
    span->linear += span->length;
    if (span->left == 0) {
        span->length = 0;
        return;
    }
    /* The span has reached the end of the last axis: carry into the axes before it. */
    uint last = RANK(*space) - 1;
    count_t back = span->index[last];
    span->index[last] = 0;
    for (uint k = 0; k < SPACE_OPERANDS; k++)
        span->position[k] -= (place_t)back * (place_t)space->operand[k].stride[last];
    UNROLL for (uint axis = last; axis-- > 0;)
    {
        bool carries = ++span->index[axis] == (count_t)space->shape[axis];
        place_t steps = carries ? (place_t)(1 - space->shape[axis]) : 1;
        if (carries)
            span->index[axis] = 0;
        for (uint k = 0; k < SPACE_OPERANDS; k++)
            span->position[k] += steps * (place_t)space->operand[k].stride[axis];
        if (!carries)
            break;
    }
    span->length = min(span->left, (count_t)space->shape[last]);
}

#endif

/* Returns whether this index is the first that the launch has reported so far, in C order. */
static inline bool report(volatile global struct status *status, uint key, ulong index)
{
    uint reported = atomic_cmpxchg(&status->key, 0u, key),
         place = (uint)min(index, (ulong)UINT_MAX);
    return (reported == 0 || reported == key) && atomic_min(&status->index, place) > place;
}

#endif
#endif
