/* What sums along an axis and sums of products share: cl/sum. */
#ifndef HEALCL_KERNELS_SUM_H
#define HEALCL_KERNELS_SUM_H

#include "kernels/kernels.h"

/* Tunables for dividing sums among work-items. */
enum { SHARED_SUM = 1 << TUNABLE_local_size | 1 << TUNABLE_compiled_axes };

enum {
    ITEMS_OF_UNIT = 1024, /* work-items that keep a compute unit busy */
    TERMS_MIN = 8192,     /* of all sums, or of one: fewer are not worth another program */
    LONG_SUM = 256,
    FEW_TERMS = 16,    /* of a sum: one work-item takes them alone */
    TERMS_OF_ITEM = 4, /* at least, if the only aim is more work-items */
    LINE = CACHE_LINE / sizeof(int64_t),
    LINES = 4 * LINE /* elements: enough that a partial line costs little */
};

/* For cl/sum/items.cl: elements of a tile, and the most local memory of a work-group. */
enum { TILE = 256, ROWS_MAX = 9, TILES_BYTES = ROWS_MAX * 272 * 8 };

/* Why cl/sum/columns.cl and product_columns.cl cannot compute sums of `count` terms in rows of n
 * elements; or NULL. */
const char *sum_vectors_obstacle(const struct healcl_device *device, int64_t count, int64_t n);

/*
 * Divides the terms of each column among work-items. beside: the number of columns whose next terms
 * are adjacent in memory, or 0. If it is not 0, work-items follow the order of terms in memory.
 * They are as many as read whole cache lines, or a few lines if columns do not start at one.
 */
struct sharing sum_share_terms(const struct healcl_device *device, uint64_t columns, int64_t terms,
                               int64_t beside);

const char *sum_local_obstacle(const struct step *step, const struct healcl_device *device,
                               int64_t terms);

/* Adds the remaining arguments, and a launch over all elements of the job's space. */
enum healcl_status sum_choose_shared(struct job *job, const struct sharing *sharing,
                                     struct healcl_error *error);

/* The memory of a sum, by slot. */
struct sum_operands {
    int out, a, b, q, permutation;
};

/* Finds the memory of a step. inverse: of its permutation, the inverse, as cl/sum/items.cl needs.
 * Errors: HEALCL_REFUSED if the permutation is too long. */
enum healcl_status sum_find_operands(struct launcher *self, const struct step *step, bool inverse,
                                     struct sum_operands *operands, struct healcl_error *error);

/* Begins a job with the first arguments of all kernels of modmul_axis_sum: the space, the memory,
 * and whether they add to out. The kernels of cl/sum/items.cl and local.cl for axis_modsum take the
 * same arguments. */
void sum_begin(struct job *job, struct launcher *self, const struct variant_plan *plan,
               const struct sum_operands *operands, bool adds);

/* Adds a launch of a kernel of cl/sum/items.cl over the space of a job. Each work-item, or element
 * of a tile, has `count` rows. With a permutation, tiles cover n, and the space does not have that
 * axis. */
enum healcl_status sum_choose_items(struct job *job, const struct step *step,
                                    const struct product_rows *rows, uint32_t count,
                                    struct healcl_error *error);

/* The number of terms that one launch adds up: some devices limit the iterations of loops. */
int64_t sum_terms_at_once(const struct launcher *self, int64_t terms);

/* The argument `beside` of sum_share_terms, for a's elements at out's positions. The space must be
 * simplified. */
int64_t sum_columns_beside(const struct space *space, int64_t stride);

uint64_t sum_items_wanted(const struct healcl_device *device);

#endif
