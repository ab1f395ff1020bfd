/* Tables and checks of inputs, kept with the input's storage until it is written. */
#ifndef HEALCL_KERNELS_DERIVE_H
#define HEALCL_KERNELS_DERIVE_H

#include "kernels/launcher.h"

/* Elements of a tensor that the host works tables out from, where it has them: two rows of 2^14. On
 * a CPU each kernel that is not needed saves 50 to 100 ms of a cold start. */
enum { HOST_DERIVES_MAX = 1 << 15, HOST_KEEPS_MIN = 256 };

/* struct modulus of the moduli that input i of a step is, and where that table has the modulus of
 * each element of the output. */
enum healcl_status derive_moduli(struct launcher *self, const struct step *step, int i,
                                 const struct buffer **table, struct healcl_error *error);
struct layout modulus_operand(const struct step *step, int i);

/* Whether the moduli that input i is, a view of the output's shape, vary along the last axis only,
 * with a period of *k that is not too long. */
bool moduli_are_periodic(const struct step *step, int i, int64_t *k);

/* Such moduli as a vector of them, and as vectors of eight lanes for cl/vectors.cl. */
struct periodic_moduli {
    const struct buffer *table, *lanes; /* table is NULL for a scalar */
    int64_t k;                          /* struct modulus in table */
    int64_t period;                     /* vectors in lanes: lcm(k, 8) / 8 */
    int64_t first;                      /* of them; not 0 for scalars only */
};

enum healcl_status derive_periodic_moduli(struct launcher *self, const struct step *step, int i,
                                          struct periodic_moduli *moduli,
                                          struct healcl_error *error);

/* struct modulus for each element of input i, a vector or what broadcasts one along all axes but
 * the last, in order. */
enum healcl_status derive_modulus_vector(struct launcher *self, const struct step *step, int i,
                                         const struct buffer **table, struct healcl_error *error);

/* Tables of a transform; NULL where the step has no such input. */
struct transform_tables {
    const struct buffer *q;        /* struct modulus [k] */
    const struct buffer *twiddles; /* struct twiddle [k,n] */
    const struct buffer *n_inv;    /* struct twiddle [k]; times factors where there are some, marked
                                      TWIDDLE_NEGATIVE where these are below 0 */
    const struct buffer *permutation; /* uint [n+1], see derive_permutation */
};

/* All of them: one launch makes what is not there yet, another checks the permutation. */
enum healcl_status derive_transform(struct launcher *self, const struct step *step,
                                    struct transform_tables *tables, struct healcl_error *error);

/* A transform's twiddles in the order in which cl/ntt/rows.cl, made for words of that many bits,
 * wants them; n >= 256. */
enum healcl_status derive_lane_twiddles(struct launcher *self, const struct step *step,
                                        const struct buffer *twiddles, uint32_t word_bits,
                                        const struct buffer **table, struct healcl_error *error);

/* A transform's twiddles for cl/ntt/registers.cl, made for words of that many bits: [k,n], or if
 * `beside` is not 0 the first ones so many, [beside,k]. */
enum healcl_status derive_pass_twiddles(struct launcher *self, const struct step *step,
                                        const struct buffer *twiddles, int64_t beside,
                                        uint32_t word_bits, const struct buffer **table,
                                        struct healcl_error *error);

/* uint [n+1] for the permutation of a transform or sum, input 3; the last tells of what kind it
 * is, see permutation in cl/core/checks.cl. */
enum healcl_status derive_permutation(struct launcher *self, const struct step *step,
                                      const struct buffer **table, struct healcl_error *error);

/* As derive_permutation, for the inverse, which is of the same kind. */
enum healcl_status derive_inverse_permutation(struct launcher *self, const struct step *step,
                                              const struct buffer **table,
                                              struct healcl_error *error);

/* struct twiddle [k,k] with the inverses of input i's moduli, for the CRT. */
enum healcl_status derive_crt_inverses(struct launcher *self, const struct step *step, int i,
                                       const struct buffer **table, struct healcl_error *error);

/* The weights of all digits of a STEP_BASE_CONVERSION, elements [terms,k] of their dtype. */
enum healcl_status derive_weights(struct launcher *self, const struct step *step,
                                  const struct buffer **table, struct healcl_error *error);

/* Checks that input i holds nothing that the step refuses: see step_check. */
enum healcl_status derive_check(struct launcher *self, const struct step *step, int i,
                                struct healcl_error *error);

/* Frees what was derived from the inputs of a step that has failed: it may not have been made. */
void derived_forget_inputs(struct launcher *self, const struct step *step);

/* Frees what was derived from a storage. */
void derived_forget(struct launcher *self, struct device_storage *storage);

/* Frees the tables of the plan's scalars. */
void derived_forget_scalars(struct launcher *self);

/* Between steps: frees everything that was derived if that takes more than 64 MiB and four times
 * the plan's memory. One step adds at most the tables of its own operands. */
void derived_limit(struct launcher *self);

#endif
