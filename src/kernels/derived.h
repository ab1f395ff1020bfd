/* Tables and checks of inputs, kept with the input's storage until it is written. */
#ifndef HEALCL_KERNELS_DERIVED_H
#define HEALCL_KERNELS_DERIVED_H

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

/* ---------------------------------------------------------------- derived.c */

/* The largest element of input i, or of the tensor that it is a view of; 0 if unknown. */
uint64_t host_largest(const struct launcher *self, const struct step *step, int i);

/* Inputs of transforms. Sums of products also have their permutation at this index. */
enum { Q = 1, PSI = 2, PERMUTATION = 3, N_INV = 4, FACTORS = 5 };

/* struct modulus, or its lanes, for every scalar of the plan, at the scalar's index among the
 * plan's constants. */
enum healcl_status derive_scalars(struct launcher *self, bool lanes, const struct buffer **table,
                                  struct healcl_error *error);

/* The largest tensor, in elements, for which the host computes derived tables itself: two rows of
 * 2^14. It needs a copy of the tensor. On a CPU each kernel that is saved this way shortens a cold
 * start by 50 to 100 ms. */
enum { HOST_DERIVES_MAX = 1 << 15, HOST_KEEPS_MIN = 256 };

/* Derives a table of struct modulus for the moduli in input i of a step. modulus_operand returns
 * where that table has the modulus of each element of the output. */
enum healcl_status derive_moduli(struct launcher *self, const struct step *step, int i,
                                 const struct buffer **table, struct healcl_error *error);
struct layout modulus_operand(const struct step *step, int i);

/* Whether the moduli vary along the last axis only, and their period *k is not too long. Input i
 * holds them, as a view of the output's shape. */
bool moduli_are_periodic(const struct step *step, int i, int64_t *k);

/* Periodic moduli as a plain vector, and as vectors of eight lanes for cl/vectors.cl. */
struct periodic_moduli {
    const struct buffer *table, *lanes; /* table is NULL for a scalar */
    int64_t k;                          /* struct modulus in table */
    int64_t period;                     /* vectors in lanes: lcm(k, 8) / 8 */
    int64_t first;                      /* index of the first one; not 0 for scalars only */
};

enum healcl_status derive_periodic_moduli(struct launcher *self, const struct step *step, int i,
                                          struct periodic_moduli *moduli,
                                          struct healcl_error *error);

/* Derives a struct modulus for each element of input i, in order. The input is a vector, or a view
 * that broadcasts a vector along all axes but the last. */
enum healcl_status derive_modulus_vector(struct launcher *self, const struct step *step, int i,
                                         const struct buffer **table, struct healcl_error *error);

/* Tables of a transform. A table is NULL if the step does not have its input. */
struct transform_tables {
    const struct buffer *q;        /* struct modulus [k] */
    const struct buffer *twiddles; /* struct twiddle [k,n] */
    const struct buffer *n_inv; /* struct twiddle [k]; multiplied by the factors, if any, and marked
                                   TWIDDLE_NEGATIVE where the factor is negative */
    const struct buffer *permutation; /* uint [n+1], see derive_permutation */
};

/* Derives all tables of a transform. One launch computes the missing tables, and another one checks
 * the permutation. */
enum healcl_status derive_transform(struct launcher *self, const struct step *step,
                                    struct transform_tables *tables, struct healcl_error *error);

/* A transform's twiddles in the order that cl/ntt/rows.cl expects for words of `word_bits` bits.
 * Requires n >= 256. */
enum healcl_status derive_lane_twiddles(struct launcher *self, const struct step *step,
                                        const struct buffer *twiddles, uint32_t word_bits,
                                        const struct buffer **table, struct healcl_error *error);

/* A transform's twiddles for cl/ntt/registers.cl and words of `word_bits` bits. They are [k,n] if
 * `beside` is 0. Otherwise they are the first `beside` twiddles of each modulus, [beside,k]. */
enum healcl_status derive_pass_twiddles(struct launcher *self, const struct step *step,
                                        const struct buffer *twiddles, int64_t beside,
                                        uint32_t word_bits, const struct buffer **table,
                                        struct healcl_error *error);

/* uint [n+1] for the permutation of a transform or sum, which is input 3. The last element gives
 * the kind of permutation: see permutation in cl/core/checks.cl. */
enum healcl_status derive_permutation(struct launcher *self, const struct step *step,
                                      const struct buffer **table, struct healcl_error *error);

/* As derive_permutation, for the inverse permutation. It is of the same kind. */
enum healcl_status derive_inverse_permutation(struct launcher *self, const struct step *step,
                                              const struct buffer **table,
                                              struct healcl_error *error);

/* struct twiddle [k,k] with the inverses of the moduli in input i, for the CRT. */
enum healcl_status derive_crt_inverses(struct launcher *self, const struct step *step, int i,
                                       const struct buffer **table, struct healcl_error *error);

/* The weights of all digits of a STEP_BASE_CONVERSION, [terms,k] in their own dtype. */
enum healcl_status derive_weights(struct launcher *self, const struct step *step,
                                  const struct buffer **table, struct healcl_error *error);

/* Checks that input i holds no value that the step refuses: see step_check. */
enum healcl_status derive_check(struct launcher *self, const struct step *step, int i,
                                struct healcl_error *error);

/* Frees what was derived from the inputs of a failed step: its tables may be incomplete. */
void derived_forget_inputs(struct launcher *self, const struct step *step);

/* Frees what was derived from a storage. */
void derived_forget(struct launcher *self, struct device_storage *storage);

/* Frees the tables of the plan's scalars. */
void derived_forget_scalars(struct launcher *self);

/* Frees all derived tables if they take more than 64 MiB and more than four times the plan's
 * memory. Called between steps: one step adds at most the tables of its own operands. */
void derived_limit(struct launcher *self);

#endif
