/* What is derived from tensors, as the files derived*.c share it. */
#ifndef HEALCL_KERNELS_DERIVED_H
#define HEALCL_KERNELS_DERIVED_H

#include "kernels/derive.h"
#include "kernels/job.h"

enum derived_kind {
    DERIVED_MODULI,
    DERIVED_MODULUS_CHECK,
    DERIVED_LANE_MODULI,
    DERIVED_TWIDDLES,
    DERIVED_SCALED_TWIDDLES,
    DERIVED_LANE_TWIDDLES,
    DERIVED_TWIDDLE_PRODUCTS,
    DERIVED_PERMUTATION,
    DERIVED_INVERSE_PERMUTATION,
    DERIVED_CRT_INVERSES,
    DERIVED_INDEX_CHECK,
};

/* What a derived table depends on, beside the contents of its own storage. */
struct derived_key {
    enum derived_kind kind;
    struct layout layout;
    int64_t first, size; /* DERIVED_INDEX_CHECK; of twiddles: size is the word's, log2_low */
    const struct storage *q_storage; /* of twiddles */
    uint64_t q_generation;
    struct layout q_layout;
};

struct derived {
    struct derived *next_of_storage, *next_of_bucket;
    const struct device_storage *storage;
    uint64_t hash;
    struct derived_key key;
    struct buffer table; /* empty for a check */
};

/* ---------------------------------------------------------------- derived_kept.c */

/* Whether something was derived from a tensor's storage under that key: then *table is its table.
 */
bool derived_find(const struct launcher *self, const struct tensor *tensor,
                  const struct derived_key *key, const struct buffer **table);

/* The same of a table that has a row for each modulus: one of more moduli, which begins with these,
 * will do, as levels of ciphertexts have fewer and fewer. */
bool derived_find_rows(const struct launcher *self, const struct tensor *tensor,
                       const struct derived_key *key, const struct buffer **table);

/* Adds an entry with a table of count elements of size bytes to a tensor's storage, which has none
 * under that key; 0 elements for no table. */
MUST_CHECK enum healcl_status derived_add(struct launcher *self, const struct tensor *tensor,
                                          const struct derived_key *key, int64_t count, size_t size,
                                          const struct buffer **table, struct healcl_error *error);

/* ---------------------------------------------------------------- derived_scalars.c */

/* Whether input i of a step is a scalar, and there can be a table of all scalars with so many bytes
 * for each. */
bool has_scalar_table(const struct step *step, int i, const struct healcl_device *device,
                      size_t entry_bytes);

/* A modulus for vectors: struct lane_divisor in cl/base/divisor.cl. */
struct scalar_lanes {
    uint64_t q[LANES];
    double inverse[LANES];
    uint64_t reciprocal[LANES], shift[LANES];
};

/* struct modulus and struct scalar_lanes of every scalar of the plan, at its place in the plan's
 * constants. */
MUST_CHECK enum healcl_status derive_scalar_moduli(struct launcher *self,
                                                   const struct buffer **table,
                                                   struct healcl_error *error);
MUST_CHECK enum healcl_status derive_scalar_lanes(struct launcher *self,
                                                  const struct buffer **table,
                                                  struct healcl_error *error);

#endif
