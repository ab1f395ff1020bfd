/* What the variants of transforms share: cl/ntt. */
#ifndef HEALCL_KERNELS_TRANSFORM_H
#define HEALCL_KERNELS_TRANSFORM_H

#include "kernels/kernels.h"

/* The axes of a transform: batch, components, moduli, coefficients. A row is all coefficients of
 * one modulus. */
enum { AXIS_L, AXIS_R, AXIS_K, AXIS_N };

/* A transform that is being launched. */
struct transform {
    const struct step *step;
    const struct variant *variant;
    int64_t n;
    bool inverse;
    struct transform_tables tables;
};

/* The number of parts that `groups` groups are transformed in. */
uint32_t transform_count_parts(const struct healcl_device *device, int64_t groups,
                               int64_t elements);

/* Adds scratch memory for the groups of one part, *at_once. Returns its slot. */
int transform_add_scratch(struct launcher *self, int64_t groups, int64_t elements,
                          int64_t *at_once);

/* The rows of all moduli: l*r*k. */
int64_t transform_rows(const struct step *step);

/* Begins a job of the variant's program, with one of two kernels. Its space, the first argument, is
 * the whole output with operands out and a. */
void transform_begin(struct job *job, struct launcher *self, const struct transform *transform,
                     const char *forward_kernel, const char *inverse_kernel);

/* Sets what all variants need of a step, and adds its tables. */
enum healcl_status transform_init(struct launcher *self, const struct variant_plan *plan,
                                  struct transform *transform, struct healcl_error *error);

/* Adds the last arguments: q, twiddles, perm, whether there is a permutation, and for the inverse
 * n_inv. */
void transform_add_tables(struct job *job, const struct transform *transform);

/* The bits of the words that kernels compute with: no residue has more. Moduli have the dtype of
 * the output, and the input has this dtype or int8. */
uint32_t transform_word_bits(const struct step *step);

/* The variant "registers", in ntt_registers.c. */
const char *ntt_plan_registers(struct variant_plan *plan);
enum healcl_status ntt_choose_registers(struct launcher *self, const struct variant_plan *plan,
                                        struct healcl_error *error);

#endif
