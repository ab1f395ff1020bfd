/* A transform in hand: what the files ntt*.c, one for each variant, share. */
#ifndef HEALCL_KERNELS_NTT_H
#define HEALCL_KERNELS_NTT_H

#include "kernels/kernels.h"

struct transform {
    const struct step *step;
    const struct variant *variant;
    int64_t n, k;
    bool inverse;
    const struct buffer *q, *twiddles, *n_inv, *perm;
    struct buffer rows; /* scratch */
};

/* What all variants need of a step: its tables. */
enum healcl_status transform_init(struct launcher *self, const struct variant_plan *plan,
                                  struct transform *transform, struct healcl_error *error);

/* A job of the variant's program, by a kernel for each direction, over the whole of out with
 * operands out and in: the space is its first argument. */
void transform_begin(struct job *job, struct launcher *self, const struct transform *transform,
                     const char *forward, const char *inverse);

/* Makes transform->rows, which the caller releases: scratch for *at_once of so many groups of rows,
 * as many as one allocation can hold, or one that no allocation can. */
enum healcl_status transform_acquire_rows(struct launcher *self, struct transform *transform,
                                          int64_t groups, int64_t rows, int64_t *at_once,
                                          struct healcl_error *error);

/* Rows of all moduli: l*r*k. */
int64_t transform_rows(const struct step *step);

/* What each variant works out of a step, and launching it. */
#define NTT(name, ...)                                                                           \
    const char *plan_ntt_##name(const struct step *step, const struct healcl_device *device,     \
                                struct variant_plan *plan);                                      \
    enum healcl_status launch_ntt_##name(struct launcher *self, const struct variant_plan *plan, \
                                         struct healcl_error *error);
#include "kernels/ntt.def"
#undef NTT

#endif
