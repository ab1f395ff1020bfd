/*
 * Tables and checks of inputs. A step's tables are chosen with it, and filled before its launches
 * run. They are kept, and filled again when a tensor that they are derived from was written.
 *
 * The functions that choose return a slot of the template that is being made: see template.h. Some
 * fail if an input is too large.
 */
#ifndef HEALCL_KERNELS_DERIVED_H
#define HEALCL_KERNELS_DERIVED_H

#include "kernels/job.h"

struct derived {
    struct derived *next_of_storage, *next_of_bucket;
    uint64_t hash;
    struct derived_key key;
    uint64_t filled_version; /* derived_version when it was filled; 0: it is not filled */
    size_t scalar_count;     /* of a table of the plan's scalars: those that it has */
    struct buffer table;     /* empty before it is filled, and for a check */
};

/* ---------------------------------------------------------------- derived_cache.c */

bool derived_same_key(const struct derived_key *a, const struct derived_key *b);

/* Finds a table of a step, or adds it without contents. *derived stays valid until
 * launcher->cache.epoch changes. */
enum healcl_status derived_find(struct launcher *self, const struct step *step,
                                const struct table *table, struct derived **derived,
                                struct healcl_error *error);

/* At least 1. Grows when a storage is written that the table is derived from. */
uint64_t derived_version(const struct launcher *self, const struct step *step,
                         const struct table *table);

/* Notes that a table is filled from storages of this version. It counts as kept memory. */
void derived_filled(struct launcher *self, struct derived *derived, uint64_t version);

/* Releases the memory of a table, which is then not filled. */
void derived_release(struct launcher *self, struct derived *derived);

/* Frees the tables of a storage. */
void derived_forget(struct launcher *self, struct device_storage *storage);

/* Frees all tables. */
void derived_forget_all(struct launcher *self);

/* Notes that tables without memory, which a launcher has filled while it listed launches, are not
 * filled. */
void derived_forget_listed(struct launcher *self);

/* Frees all tables if they take more than 64 MiB and more than four times the plan's memory. Called
 * between steps: one step adds at most the tables of its own operands. */
void derived_limit(struct launcher *self);

/* ---------------------------------------------------------------- derived_fill.c */

/* Fills the tables of a run that are not filled from their storages' current versions. */
enum healcl_status derived_fill(struct launcher *self, struct template_run *run,
                                struct healcl_error *error);

/* ---------------------------------------------------------------- derived_host.c */

/* A modulus for vectors: struct lane_divisor in cl/base/divisor.cl. */
struct scalar_lanes {
    uint64_t q[LANES];
    double inverse[LANES];
    uint64_t reciprocal[LANES], shift[LANES];
};

/* A table that the host computes, freed with free(). NULL: the device computes it. *bytes: of it.
 */
void *derived_on_host(const struct launcher *self, const struct step *step,
                      const struct table *table, uint64_t *bytes);

/* A table of the plan's scalars from number `first` on, with room for `count` elements. NULL: out
 * of memory. */
void *derived_scalars(const struct plan *plan, enum derived_kind kind, size_t first, size_t count);

/* Whether the host has found all indices of a DERIVED_INDEX_CHECK in range. */
bool derived_indices_in_range(const struct launcher *self, const struct step *step,
                              const struct table *table);

/* ---------------------------------------------------------------- derived.c */

/* The inputs of steps, by what they hold: see plan/steps.def. The first input of all kinds. */
enum { INPUT_A = 0 };
/* Operations on two tensors, and sums of products. Base conversions have their first weights there.
 */
enum { INPUT_B = 1 };
/* Elementwise operations: a modulus for each element, and operand b of a chain's second one. */
enum { INPUT_P = 2, INPUT_SECOND_B = 3 };
/* Transforms. Q also has the moduli of sums along an axis and of digits, and PERMUTATION that of
 * sums of products. */
enum { Q = 1, PSI = 2, PERMUTATION = 3, N_INV = 4, FACTORS = STEP_FACTORS, ADDEND = STEP_ADDEND };
/* The moduli of sums of products and base conversions. */
enum { PRODUCT_Q = 2 };
/* Gathers. */
enum { INDICES = 1 };

/* The largest tensor, in elements, for which the host computes derived tables itself: two rows of
 * 2^14. It needs a copy of the tensor. On a CPU each kernel that is saved this way shortens a cold
 * start by 50 to 100 ms. */
enum { HOST_DERIVES_MAX = 1 << 15, HOST_KEEPS_MIN = 256 };

/* A table of struct modulus for the moduli in input i of a step. modulus_operand returns where that
 * table has the modulus of each element of the output. */
int derive_moduli(struct launcher *self, const struct step *step, int i);
struct layout modulus_operand(const struct step *step, int i);

/* Whether the moduli vary along the last axis only, and their period is not too long. Input i holds
 * them, as a view of the output's shape. */
bool moduli_are_periodic(const struct step *step, int i);

/* Periodic moduli as a plain vector, and as vectors of eight lanes for cl/vectors.cl. */
struct periodic_moduli {
    int table; /* slot of struct modulus [k]; SLOT_NONE for a scalar */
    int lanes; /* slot of struct scalar_lanes [period] */
    int64_t k; /* 1 for a scalar */
    int64_t
        period; /* vectors of eight until the moduli repeat at a vector's start: lcm(k, 8) / 8 */
};

struct periodic_moduli derive_periodic_moduli(struct launcher *self, const struct step *step,
                                              int i);

/* A struct modulus for each element of input i, in order. The input is a vector, or a view that
 * broadcasts a vector along all axes but the last. */
int derive_modulus_vector(struct launcher *self, const struct step *step, int i);

/* Tables of a transform, by slot. One whose input the step does not have is another one, as a
 * stand-in that kernels do not read. */
struct transform_tables {
    int q;           /* struct modulus [k] */
    int twiddles;    /* struct twiddle [k,n] */
    int n_inv;       /* struct twiddle [k]; multiplied by the factors, if any, and marked
                        TWIDDLE_NEGATIVE where the factor is negative. Of the forward transform:
                        the factors */
    int permutation; /* uint [n+1], see derive_permutation */
};

/* All tables of a transform. One launch computes those that are not filled, and another one checks
 * the permutation. */
enum healcl_status derive_transform(struct launcher *self, const struct step *step,
                                    struct transform_tables *tables, struct healcl_error *error);

/* A transform's twiddles in the order that cl/ntt/rows.cl expects for words of `word_bits` bits.
 * Requires n >= 256. */
int derive_lane_twiddles(struct launcher *self, const struct step *step, int twiddles,
                         uint32_t word_bits);

/* A transform's twiddles for cl/ntt/registers.cl and words of `word_bits` bits. They are [k,n] if
 * `beside` is 0. Otherwise they are the first `beside` twiddles of each modulus, [beside,k]. */
int derive_pass_twiddles(struct launcher *self, const struct step *step, int twiddles,
                         int64_t beside, uint32_t word_bits);

/* A permutation may be needed as the step gives it, or as its inverse, which is of the same kind.
 */
enum permutation_use { PERMUTATION_AS_GIVEN, PERMUTATION_INVERTED };

/* uint [n+1] for the permutation of a transform or sum, which is input 3. The last element gives
 * the kind of permutation: see permutation in cl/core/checks.cl. */
enum healcl_status derive_permutation(struct launcher *self, const struct step *step,
                                      enum permutation_use use, int *slot,
                                      struct healcl_error *error);

/* struct twiddle [k,k] with the inverses of the moduli in input i, for the CRT. */
enum healcl_status derive_crt_inverses(struct launcher *self, const struct step *step, int i,
                                       int *slot, struct healcl_error *error);

/* The weights of all digits of a STEP_BASE_CONVERSION, [terms,k] in their own dtype. */
int derive_weights(struct launcher *self, const struct step *step);

/* A check that input i holds no value that the step refuses: see step_check. */
enum healcl_status derive_check(struct launcher *self, const struct step *step, int i,
                                struct healcl_error *error);

#endif
