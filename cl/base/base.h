/*
 * What every kernel program starts with. The first part is read by the host's compiler too, so
 * that both sides agree on the structures that are passed by value.
 *
 * Specialisation macros, given with -D; a program checks those of its own:
 *   LOCAL_SIZE    work-items in a work-group
 *   CHUNKS        how many device buffers a storage argument is made of: 1 or 4
 *   CHUNK_SHIFT   with 4 of them, log2 of the bytes in each but the last
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

/* A view: the element with index (i0, i1, ...) lies at offset + i0*stride[0] + i1*stride[1] + ...
 */
struct operand {
    cl_base_long offset;
    cl_base_long stride[SPACE_AXES];
};

/* The elements that a launch works on, in C order, and where each operand has them. A work-item
 * takes elements_per_item of them in a row; 744 bytes, of the 1024 that every device takes. */
struct space {
    cl_base_ulong first, end; /* of the shape's elements, those in [first, end) */
    cl_base_ulong elements_per_item;
    cl_base_uint rank; /* at least 1 */
    cl_base_uint key;  /* under which this launch reports to the status buffer; not 0 */
    cl_base_long shape[SPACE_AXES];
    struct operand operand[SPACE_OPERANDS];
};

/* Errors that only data reveal, and warnings. The first launch that reports wins, in it the
 * smallest index. */
struct status {
    cl_base_uint key;   /* of that launch; 0: no error */
    cl_base_uint index; /* in C order among the elements it looked at; 2^32-1 stands for more */
    cl_base_uint dropped_low, dropped_high; /* values with digits that were dropped: a count */
    cl_base_long value; /* the offending one; of no meaning where index stands for more */
};

/* A modulus in [1, 2^63) with what division by it needs (see arithmetic.h). */
struct modulus {
    cl_base_ulong value;
    cl_base_ulong normalized; /* value << shift, in [2^63, 2^64) */
    cl_base_ulong reciprocal; /* floor((2^128-1) / normalized) - 2^64 */
    cl_base_ulong shift;      /* in [1, 63] */
};

/* A factor w in [0, q) with floor(w * 2^64 / q), for multiplication as in V. Shoup's NTL. */
struct twiddle {
    cl_base_ulong factor;
    cl_base_ulong quotient;
};

#ifdef __OPENCL_C_VERSION__

#ifndef LOCAL_SIZE
#error "LOCAL_SIZE is not given"
#endif

/* Work-groups of one work-item leave compilers nothing to join into vectors. Some try all the same,
 * and take minutes for it, unless they are told that a kernel has its vectors. */
#if LOCAL_SIZE == 1
#define KERNEL __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(ulong8))) kernel void
#else
#define KERNEL __attribute__((reqd_work_group_size(LOCAL_SIZE, 1, 1))) kernel void
#endif

/* The first parameter of most kernels, struct space space, and what their bodies begin with. A
 * device that can index its own memory, but not a kernel's arguments, is given COPY_SPACE. */
#ifdef COPY_SPACE
#define SPACE struct space space_argument
#define TAKE_SPACE struct space space = space_argument
#else
#define SPACE struct space space
#define TAKE_SPACE
#endif

/* BUFFER(type, name) declares the parameters of a storage, AT(name, i) is its element i. */
#if CHUNKS == 1
#define BUFFER(type, name) global type *name##0
#define AT(name, i) (name##0 [i])
#elif CHUNKS == 4
#ifndef CHUNK_SHIFT
#error "CHUNK_SHIFT is not given"
#endif
#define BUFFER(type, name) \
    global type *name##0, global type *name##1, global type *name##2, global type *name##3
#define CHUNK_ELEMENTS(name) (((ulong)1 << CHUNK_SHIFT) / sizeof(*name##0))
#define CHUNK_OF(name, i) ((ulong)(i) / CHUNK_ELEMENTS(name))
#define AT(name, i)                                      \
    ((CHUNK_OF(name, i) < 2                              \
          ? (CHUNK_OF(name, i) == 0 ? name##0 : name##1) \
          : (CHUNK_OF(name, i) == 2 ? name##2 : name##3))[(ulong)(i) % CHUNK_ELEMENTS(name)])
#else
#error "CHUNKS must be 1 or 4"
#endif

/* An element x of a storage as a long. A device that mistakes the signs of what (long) makes of an
 * int is given WIDEN_BY_SHIFT. */
#ifdef WIDEN_BY_SHIFT
#define WIDEN(x) (sizeof(x) == 8 ? (long)(x) : (long)((ulong)(uint)(x) << 32) >> 32)
#define WIDEN_INTS(count, x) (convert_long##count(as_uint##count(x)) << 32 >> 32)
#else
#define WIDEN(x) ((long)(x))
#define WIDEN_INTS(count, x) convert_long##count(x)
#endif

/* The element of size bytes, 1, 4 or 8, that lies there. */
static inline long load_number(global const char *at, uint size)
{
    return size == 8   ? *(global const long *)at
           : size == 4 ? WIDEN(*(global const int *)at)
                       : WIDEN(*at);
}

/*
 * A work-item's walk through its part of a space, in runs along the last axis:
 *     for (struct run run = run_first(&space); run.length > 0; run_next(&space, &run))
 *         for (ulong i = 0; i < run.length; i++)
 *             AT(out, POSITION(space, run, 0, i)) = ...;
 */
struct run {
    ulong linear;                  /* C-order number of the run's first element */
    ulong left;                    /* elements still to do, this run included */
    ulong length;                  /* of this run; 0 at the end */
    long index[SPACE_AXES];        /* of the run's first element */
    long position[SPACE_OPERANDS]; /* of the run's first element in each operand */
};

#define POSITION(space, run, k, i) \
    ((run).position[k] + (long)(i) * (space).operand[k].stride[(space).rank - 1])

/* a / b; many devices divide 32 bits several times as fast as 64. */
static inline ulong divide(ulong a, ulong b)
{
    return (a | b) >> 32 ? a / b : (ulong)((uint)a / (uint)b);
}

static inline struct run run_first(const struct space *space)
{
    struct run run;
    run.linear = space->first + get_global_id(0) * space->elements_per_item;
    run.left = run.linear < space->end ? min(space->elements_per_item, space->end - run.linear) : 0;
    for (uint k = 0; k < SPACE_OPERANDS; k++)
        run.position[k] = space->operand[k].offset;
    ulong rest = run.linear;
    for (uint axis = space->rank; axis-- > 0;) {
        ulong size = (ulong)space->shape[axis], next = axis > 0 ? divide(rest, size) : 0;
        ulong index = rest - next * size;
        rest = next;
        run.index[axis] = (long)index;
        for (uint k = 0; k < SPACE_OPERANDS; k++)
            run.position[k] += (long)index * space->operand[k].stride[axis];
    }
    uint last = space->rank - 1;
    run.length = min(run.left, (ulong)(space->shape[last] - run.index[last]));
    return run;
}

static inline void run_next(const struct space *space, struct run *run)
{
    run->left -= run->length;
    run->linear += run->length;
    if (run->left == 0) {
        run->length = 0;
        return;
    }
    /* The run ended at the end of the last axis: carry into the axes before it. */
    uint last = space->rank - 1;
    long back = run->index[last];
    run->index[last] = 0;
    for (uint k = 0; k < SPACE_OPERANDS; k++)
        run->position[k] -= back * space->operand[k].stride[last];
    for (uint axis = last; axis-- > 0;) {
        bool carries = ++run->index[axis] == space->shape[axis];
        long steps = carries ? 1 - space->shape[axis] : 1;
        if (carries)
            run->index[axis] = 0;
        for (uint k = 0; k < SPACE_OPERANDS; k++)
            run->position[k] += steps * space->operand[k].stride[axis];
        if (!carries)
            break;
    }
    run->length = min(run->left, (ulong)space->shape[last]);
}

static inline void report(volatile global struct status *status, uint key, ulong index)
{
    uint reported = atomic_cmpxchg(&status->key, 0u, key);
    if (reported == 0 || reported == key)
        atomic_min(&status->index, (uint)min(index, (ulong)UINT_MAX));
}

#endif
#endif
