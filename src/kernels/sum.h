/* What sums along an axis and sums of products share: cl/sum. */
#ifndef HEALCL_KERNELS_SUM_H
#define HEALCL_KERNELS_SUM_H

#include "kernels/kernels.h"

/* Axes of the factors a and b of a sum of products, and of its output. */
enum { IN_REPS, IN_TERMS, IN_K, IN_N };
enum { OUT_REPS, OUT_K, OUT_N };

/* Tunables for dividing sums among work-items. */
enum { SHARED_SUM = 1 << TUNABLE_local_size | 1 << TUNABLE_compiled_axes };

enum {
    ITEMS_OF_UNIT = 1024, /* work-items that keep a compute unit busy */
    TERMS_MIN = 8192,     /* of all sums, or of one: fewer are not worth another program */
    LONG_SUM = 256,       /* terms of one sum that are worth another program */
    FEW_TERMS = 16,       /* of a sum: one work-item takes them alone */
    TERMS_OF_ITEM = 4,    /* at least, if the only aim is more work-items */
    LINE = CACHE_LINE / sizeof(int64_t), /* elements of a cache line */
    LINES = 4 * LINE                     /* elements: enough that a partial line costs little */
};

/* For cl/sum/items.cl: elements of a tile, 16 rows of 16, and the most rows of a work-item. A tile
 * of each row is kept in local memory, in words of 8 bytes, with rows padded to 17. */
enum { TILE = 16 * 16, ROWS_MAX = 9, TILES_BYTES = ROWS_MAX * 16 * 17 * 8 };

/* Why cl/sum/columns.cl and product_columns.cl cannot compute sums of `count` terms in rows of n
 * elements; or NULL. */
const char *sum_vectors_obstacle(const struct healcl_device *device, int64_t count, int64_t n);

/*
 * Divides the terms of each column among work-items. A column is the terms of one sum. beside: see
 * sum_columns_beside. If it is not 0, work-items follow the order of terms in memory. They are as
 * many as read whole cache lines, or a few lines if columns do not start at one.
 */
struct sharing sum_share_terms(const struct healcl_device *device, uint64_t columns, int64_t terms,
                               int64_t beside);

/* The number of columns whose elements of a lie side by side in memory, directly before their next
 * terms: term_stride, if the space's last axes cover as many contiguous elements of a. 0: none do.
 * The space must be simplified. */
int64_t sum_columns_beside(const struct space *space, int64_t term_stride);

/* The work-items that keep all compute units busy. */
uint64_t sum_items_wanted(const struct healcl_device *device);

/* Why kernels that share sums among work-items do not serve the plan's step, whose sums have
 * `terms` terms; or NULL. */
const char *sum_local_obstacle(const struct variant_plan *plan, int64_t terms);

/* Adds the arguments of axis_sum_local after the operands, and a launch over all elements of the
 * job's space: the segments of all columns. The stride of b along terms is 0 if there is no b. */
enum healcl_status sum_choose_shared(struct job *job, const struct axis_sum *sum, int64_t b_stride,
                                     struct healcl_error *error);

/* The memory of a sum, by slot. */
struct sum_operands {
    int out, a, b, q, permutation;
};

/* Finds the memory of a step, and adds the tables that it needs to the template. Kernels of
 * cl/sum/items.cl need the inverse of a step's permutation. Errors: HEALCL_REFUSED if the
 * permutation is too long. */
enum healcl_status sum_find_operands(struct launcher *self, const struct step *step,
                                     enum permutation_use permutation,
                                     struct sum_operands *operands, struct healcl_error *error);

/* Begins a job with the first arguments of all kernels of modmul_axis_sum: the space, the memory,
 * and whether they add to out. The kernels of cl/sum/items.cl and local.cl for axis_modsum take the
 * same arguments. */
void sum_begin(struct job *job, struct launcher *self, const struct variant_plan *plan,
               const struct sum_operands *operands, bool adds);

/* Adds a launch of a kernel of cl/sum/items.cl over the space of a job. Each work-item, or element
 * of a tile, computes rows_of_item sums, one for each row. With a permutation, tiles cover n, and
 * the space does not have that axis. */
enum healcl_status sum_choose_items(struct job *job, const struct step *step,
                                    const struct product_rows *rows, uint32_t rows_of_item,
                                    struct healcl_error *error);

/* The number of terms that one launch adds up: some devices limit the iterations of loops. */
int64_t sum_terms_at_once(const struct launcher *self, int64_t terms);

#endif
