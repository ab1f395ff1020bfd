/* A transform in hand: what the files ntt*.c, one for each variant, share. */
#ifndef HEALCL_KERNELS_NTT_H
#define HEALCL_KERNELS_NTT_H

#include "kernels/kernels.h"

struct transform {
    const struct step *step;
    int64_t n, k;
    bool inverse;
    const struct buffer *q, *twiddles, *n_inv, *perm;
    struct buffer rows; /* scratch */
};

/* How many rows of n residues scratch memory should hold at one time: as many as one allocation
 * can, or one that no allocation can. */
static inline int64_t rows_at_once(const struct launcher *self, int64_t n, int64_t rows)
{
    enum { ROWS_BYTES = 64 << 20 };
    uint64_t chunk_bytes = self->device->chunk_bytes;
    int64_t bytes = chunk_bytes < ROWS_BYTES ? (int64_t)chunk_bytes : ROWS_BYTES;
    int64_t row_bytes = n * (int64_t)sizeof(uint64_t);
    int64_t at_once = row_bytes < bytes ? bytes / row_bytes : 1;
    return at_once < rows ? at_once : rows;
}

/* What all variants need of a step: its tables. */
MUST_CHECK enum healcl_status transform_init(struct launcher *self, const struct step *step,
                                             struct transform *transform,
                                             struct healcl_error *error);

/* Rows of all moduli: l*r*k. */
int64_t transform_rows(const struct step *step);

/* cl/ntt/local.cl, cl/ntt/single.cl and cl/ntt/rows.cl: what they lack, and launching them. */
const char *lacks_local(const struct step *step, const struct healcl_device *device);
MUST_CHECK enum healcl_status launch_local(struct launcher *self, const struct step *step,
                                           struct healcl_error *error);
const char *lacks_single(const struct step *step, const struct healcl_device *device);
MUST_CHECK enum healcl_status launch_single(struct launcher *self, const struct step *step,
                                            struct healcl_error *error);
const char *lacks_ntt_rows(const struct step *step, const struct healcl_device *device);
MUST_CHECK enum healcl_status launch_ntt_rows(struct launcher *self, const struct step *step,
                                              struct healcl_error *error);

#endif
