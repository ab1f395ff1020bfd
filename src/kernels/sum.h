/* What kernels of sums modulo q share, along an axis and of products. */
#ifndef HEALCL_KERNELS_SUM_H
#define HEALCL_KERNELS_SUM_H

#include "kernels/kernels.h"

enum { REPS_MAX = 8 };

/* Tunables of what shares sums out. */
enum { SHARED_SUM = 1 << TUNABLE_local_size | 1 << TUNABLE_compiled_axes };

/* ---- sum.c ---- */

/* Whether cl/sum/columns.cl, or product_columns.cl, can do sums of so many terms in rows of n
 * elements. */
const char *lacks_sum_vectors(const struct healcl_device *device, int64_t count, int64_t n);

/* Of so many terms, those that one launch adds up: work-items of some devices cannot go round a
 * loop as often as they like. */
int64_t terms_at_once(const struct launcher *self, int64_t terms);

uint64_t items_wanted(const struct healcl_device *device);

/*
 * Shares out so many terms of each column. beside: where the terms of so many columns lie beside
 * those that come next, their number, else 0. Then work-items stand as terms do; as many as have
 * whole lines to read, and if lines do not begin with columns a few lines.
 */
struct sharing share_terms(const struct healcl_device *device, uint64_t columns, int64_t terms,
                           int64_t beside, uint32_t reps);

const char *lacks_local(const struct step *step, const struct healcl_device *device, int64_t terms);

/* Launches over all elements of the job's space, with the rest of the arguments. */
enum healcl_status launch_shared(struct job *job, const struct sharing *sharing,
                                 struct healcl_error *error);

#endif
