/* What variants work out of a step for a device, and their launches take. */
#ifndef HEALCL_KERNELS_VARIANT_PLAN_H
#define HEALCL_KERNELS_VARIANT_PLAN_H

#include "kernels/space.h"
#include "plan/plan.h"

/* Elementwise operations: where their moduli are, and what their variants find. */
struct elementwise_plan {
    struct layout moduli;   /* residues: where a table has that of each element of the output */
    int a;                  /* repeated: the input that varies; the other one is operand 2 */
    int64_t k;              /* interleaved: elements that lie together */
    uint32_t axes, groups;  /* of the space without that of the k elements, and which has groups */
    int64_t repeats, count; /* residues: elements of each modulus, and moduli before they repeat */
};

/* How a work-group of cl/sum/local.cl does inner * rows sums, or where several go with the same
 * terms of b reps times as many: each has parts work-items. */
struct sharing {
    uint32_t inner, parts, rows, reps;
};

/* A sum along an axis. */
struct axis_sum {
    struct sharing sharing;
    int64_t terms, stride;
    int64_t segment, segments; /* terms of each, where work-groups share a column */
};

/* A sum of products; what modmul_axis_sum_interleaved goes along are the axes [reps,k,n]. */
struct products {
    struct product_sum sum;
    uint32_t rows;         /* the axis along which vectors go */
    uint32_t inner;        /* the one along which a work-item goes first */
    bool swaps;            /* b streams by, and a is packed */
    int64_t k;             /* elements of a group */
    int64_t strides[3][3]; /* of out, a, b along the axes */
};

/* How a transform's rows are divided into tiles of local memory. */
struct tiling {
    uint32_t rows;       /* done together, of one l */
    int64_t groups;      /* of so many rows, the last one of each l may have fewer */
    uint32_t log2_most;  /* of the elements of a row that fit local memory */
    uint32_t stages;     /* over columns; 0: a row fits local memory */
    uint32_t log2_width; /* columns of a tile, at least */
    uint32_t log2_apart; /* blocks of a row that are done together, as far apart as they can be */
};

struct variant;

struct variant_plan {
    const struct step *step;
    const struct variant *variant;
    struct space space; /* that is launched over; sums of products and transforms make theirs */
    union {
        struct elementwise_plan elementwise;
        struct axis_sum sum;
        struct products products;
        struct tiling tiling;
        size_t local_size; /* digits of the full modulus */
    };
};

#endif
