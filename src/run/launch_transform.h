/* A transform in hand: what the files launch_transform*.c, one for each variant, share. */
#ifndef HEALCL_RUN_LAUNCH_TRANSFORM_H
#define HEALCL_RUN_LAUNCH_TRANSFORM_H

#include "run/launch.h"

struct transform {
    const struct step *step;
    int64_t n, k;
    bool inverse;
    const struct buffer *q, *twiddles, *n_inv, *perm;
    struct buffer rows; /* scratch */
};

/* How many rows of n residues scratch memory should hold at one time: as many as one allocation
 * can, or one that no allocation can. */
static inline int64_t rows_at_once(const struct device_executor *self, int64_t n, int64_t rows)
{
    enum { ROWS_BYTES = 64 << 20 };
    uint64_t chunk_bytes = self->device->chunk_bytes;
    int64_t bytes = chunk_bytes < ROWS_BYTES ? (int64_t)chunk_bytes : ROWS_BYTES;
    int64_t row_bytes = n * (int64_t)sizeof(uint64_t);
    int64_t at_once = row_bytes < bytes ? bytes / row_bytes : 1;
    return at_once < rows ? at_once : rows;
}

/* cl/rows.cl: whether the device prefers it and it can do a transform, and doing it. */
MUST_CHECK enum healcl_status can_run_vectors(struct device_executor *self,
                                              const struct transform *transform, bool *can,
                                              struct healcl_error *error);
MUST_CHECK enum healcl_status launch_vectors_transform(struct device_executor *self,
                                                       struct transform *transform,
                                                       struct healcl_error *error);

/* cl/local.cl, in the same way. */
bool can_run_local(const struct device_executor *self, const struct transform *transform,
                   int64_t rows);
MUST_CHECK enum healcl_status launch_local(struct device_executor *self,
                                           struct transform *transform, int64_t rows,
                                           struct healcl_error *error);

/* cl/single.cl, in the same way. */
bool can_run_single(const struct device_executor *self, const struct transform *transform,
                    int64_t rows);
MUST_CHECK enum healcl_status launch_single(struct device_executor *self,
                                            const struct transform *transform, int64_t rows,
                                            struct healcl_error *error);

#endif
