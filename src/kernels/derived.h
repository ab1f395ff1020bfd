/* Tables derived from tensors, as the files derived*.c share them. */
#ifndef HEALCL_KERNELS_DERIVED_H
#define HEALCL_KERNELS_DERIVED_H

#include "kernels/derive.h"
#include "kernels/job.h"

enum derived_kind {
    DERIVED_MODULI,
    DERIVED_LANE_MODULI,
    DERIVED_TWIDDLES,
    DERIVED_SCALED_TWIDDLES,
    DERIVED_LANE_TWIDDLES,
    DERIVED_PASS_TWIDDLES,
    DERIVED_PERMUTATION,
    DERIVED_INVERSE_PERMUTATION,
    DERIVED_CRT_INVERSES,
    DERIVED_INDEX_CHECK,
    DERIVED_WEIGHTS,
};

/* A derived table depends on this, and on the contents of its own storage. */
struct derived_key {
    enum derived_kind kind;
    struct layout layout;
    int64_t first, size; /* DERIVED_INDEX_CHECK; of twiddles: what is beside, the word's */
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

/* ---------------------------------------------------------------- derived_cache.c */

/* Whether something was derived from a tensor's storage under that key: then *table is its table.
 */
bool derived_find(const struct launcher *self, const struct tensor *tensor,
                  const struct derived_key *key, const struct buffer **table);

/* As derived_find, for a table that has a row for each modulus: one of more moduli, which begins
 * with these, will do, as levels of ciphertexts have fewer and fewer. */
bool derived_find_rows(const struct launcher *self, const struct tensor *tensor,
                       const struct derived_key *key, const struct buffer **table);

/* Adds an entry with a table of count elements of size bytes to a tensor's storage, which has none
 * under that key; 0 elements for no table. made: what the host has put into it, which is freed,
 * also after an error; or NULL. */
enum healcl_status derived_add(struct launcher *self, const struct tensor *tensor,
                               const struct derived_key *key, int64_t count, size_t size,
                               void *made, const struct buffer **table, struct healcl_error *error);

/* ---------------------------------------------------------------- derived_host.c */

/*
 * Tables of cl/core, worked out on the host from what it has kept of inputs' uploads, the
 * same bit for bit. NULL where it has not kept them, or a table would be large, or the device would
 * report an element: then the device works it out, and reports. Freed with free().
 */

/* struct modulus for each element of a view of input i. */
void *host_moduli(const struct launcher *self, const struct step *step, int i,
                  const struct layout *layout);
/* The largest element of input i, or of what it is a view of; 0 where that is unknown. */
uint64_t host_largest(const struct launcher *self, const struct step *step, int i);
/* Those moduli as vectors [period] of lanes: struct lane_divisor in cl/base/divisor.cl. */
enum { SCALAR_LANES_BYTES = sizeof(uint64_t) * 4 * LANES };
void *host_lane_moduli(const struct launcher *self, const struct step *step, int i,
                       const struct layout *layout, int64_t period);
/* Inputs of transforms; sums of products have their permutation there, too. */
enum { Q = 1, PSI = 2, PERMUTATION = 3, N_INV = 4, FACTORS = 5 };

/* struct twiddle for a view [k,n] of input i of a transform, modulo q. */
struct twiddle *host_twiddles(const struct launcher *self, const struct step *step, int i,
                              const struct layout *layout);
/* struct twiddle [k] for n_inv times the factors. */
struct twiddle *host_scales(const struct launcher *self, const struct step *step);

/* The lane twiddles of a view [k,n] of psi, words of 32 or 64 bits; n >= NTT_ROW_MIN. */
void *host_lane_twiddles(const struct launcher *self, const struct step *step,
                         const struct layout *layout, uint32_t word_bits);

/* uint [n + 1] of a permutation, or of its inverse. */
void *host_permutation(const struct launcher *self, const struct step *step, bool inverse);

/* struct twiddle [k,k]. */
void *host_crt_inverses(const struct launcher *self, const struct step *step, int i);
/* Whether it knows that all elements of a view of input i are in [first, size). */
bool host_indices_in_range(const struct launcher *self, const struct step *step, int i,
                           const struct layout *layout, int64_t first, int64_t size);

/* struct modulus, or lanes of it, of every scalar of the plan, at its place in the plan's
 * constants.
 */
enum healcl_status derive_scalars(struct launcher *self, bool lanes, const struct buffer **table,
                                  struct healcl_error *error);

#endif
