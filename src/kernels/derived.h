/* Tables derived from tensors: declarations shared by the files derived*.c. */
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

/* A derived table depends on this key, and on the contents of its own storage. */
struct derived_key {
    enum derived_kind kind;
    struct layout layout;
    int64_t first, size; /* DERIVED_INDEX_CHECK: the range; twiddles: `beside` and `word_bits` */
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

/* Whether something was derived from a tensor's storage under this key. If so, *table is its
 * table. */
bool derived_find(const struct launcher *self, const struct tensor *tensor,
                  const struct derived_key *key, const struct buffer **table);

/* As derived_find, for a table with a row for each modulus. It also accepts a table of more moduli
 * that begins with these: lower levels of a ciphertext have fewer moduli. */
bool derived_find_rows(const struct launcher *self, const struct tensor *tensor,
                       const struct derived_key *key, const struct buffer **table);

/* Adds an entry to a tensor's storage, which must not have one under this key. Its table has
 * `count` elements of `size` bytes; with a count of 0 there is no table. made: the contents,
 * computed by the host, or NULL. They are always freed, also after an error. */
enum healcl_status derived_add(struct launcher *self, const struct tensor *tensor,
                               const struct derived_key *key, int64_t count, size_t size,
                               void *made, const struct buffer **table, struct healcl_error *error);

/* ---------------------------------------------------------------- derived_host.c */

/*
 * Tables as cl/core derives them, but computed on the host from its copies of uploaded inputs. They
 * are the same bit for bit, and are freed with free(). The functions return NULL if the host has no
 * copy, the table would be large, or the device would report an element. Then the device derives
 * the table, and reports.
 */

/* struct modulus for each element of a view of input i. */
void *host_moduli(const struct launcher *self, const struct step *step, int i,
                  const struct layout *layout);
/* The largest element of input i, or of the tensor that it is a view of; 0 if unknown. */
uint64_t host_largest(const struct launcher *self, const struct step *step, int i);
/* The moduli of input i as `period` vectors of lanes: struct lane_divisor in cl/base/divisor.cl. */
enum { SCALAR_LANES_BYTES = sizeof(uint64_t) * 4 * LANES };
void *host_lane_moduli(const struct launcher *self, const struct step *step, int i,
                       const struct layout *layout, int64_t period);
/* Inputs of transforms. Sums of products also have their permutation at this index. */
enum { Q = 1, PSI = 2, PERMUTATION = 3, N_INV = 4, FACTORS = 5 };

/* struct twiddle for a view [k,n] of input i of a transform, modulo q. */
struct twiddle *host_twiddles(const struct launcher *self, const struct step *step, int i,
                              const struct layout *layout);
/* struct twiddle [k]: n_inv times the factors. */
struct twiddle *host_scales(const struct launcher *self, const struct step *step);

/* The lane twiddles of a view [k,n] of psi, words of 32 or 64 bits; n >= NTT_ROW_MIN. */
void *host_lane_twiddles(const struct launcher *self, const struct step *step,
                         const struct layout *layout, uint32_t word_bits);

/* uint [n + 1] of a permutation, or of its inverse. */
void *host_permutation(const struct launcher *self, const struct step *step, bool inverse);

/* Whether the host knows that all elements of a view of input i are in [first, size). */
bool host_indices_in_range(const struct launcher *self, const struct step *step, int i,
                           const struct layout *layout, int64_t first, int64_t size);

/* struct modulus, or its lanes, for every scalar of the plan, at the scalar's index among the
 * plan's constants. */
enum healcl_status derive_scalars(struct launcher *self, bool lanes, const struct buffer **table,
                                  struct healcl_error *error);

#endif
