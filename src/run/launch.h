/* Steps as kernel launches: one file launch_NAME.c for each family of kernels. All enqueue work
 * and wait for nothing. */
#ifndef HEALCL_RUN_LAUNCH_H
#define HEALCL_RUN_LAUNCH_H

#include "run/device_executor.h"

/* Whether a device is to run a family's kernels as that variant, where that variant can. Those of
 * fat work-items are not for a device on which loops end early. */
static inline bool prefers(const struct device_executor *self, enum kernel_family family,
                           enum kernel_variant variant)
{
    bool is_fat = variant == VARIANT_VECTORS || variant == VARIANT_SINGLE;
    return self->device->tuning.variants[family] == variant &&
           !(is_fat && self->device->info.loop_limit > 0);
}

/* Whether an output of so many elements is too large for caches to keep it. */
static inline bool passes_caches(const struct device_executor *self, uint64_t elements,
                                 enum dtype dtype)
{
    return elements >= self->device->tuning.past_caches_bytes / dtype_size(dtype);
}

/* Makes a job with so many operands of dtype, of a kernel that cl/lines.cl has too, one of
 * cl/lines.cl where it suits that: an output that is too large for caches, and long runs. */
void job_prefer_lines(struct job *job, enum kernel_family family, enum dtype dtype,
                      uint32_t operands);

MUST_CHECK enum healcl_status launch_fill(struct device_executor *self, const struct step *step,
                                          struct healcl_error *error);

/* Copies in to out, of that layout. */
MUST_CHECK enum healcl_status launch_copy(struct device_executor *self, const struct step *step,
                                          const struct layout *out_layout, const struct buffer *out,
                                          const struct tensor *in, struct healcl_error *error);

MUST_CHECK enum healcl_status launch_elementwise(struct device_executor *self,
                                                 const struct step *step,
                                                 struct healcl_error *error);
MUST_CHECK enum healcl_status launch_absolute(struct device_executor *self, const struct step *step,
                                              struct healcl_error *error);
MUST_CHECK enum healcl_status launch_axis_modsum(struct device_executor *self,
                                                 const struct step *step,
                                                 struct healcl_error *error);
MUST_CHECK enum healcl_status launch_modmul_axis_sum(struct device_executor *self,
                                                     const struct step *step,
                                                     struct healcl_error *error);
MUST_CHECK enum healcl_status launch_transform(struct device_executor *self,
                                               const struct step *step, struct healcl_error *error);
MUST_CHECK enum healcl_status launch_digits(struct device_executor *self, const struct step *step,
                                            struct healcl_error *error);
MUST_CHECK enum healcl_status launch_digits_full_q(struct device_executor *self,
                                                   const struct step *step,
                                                   struct healcl_error *error);
MUST_CHECK enum healcl_status launch_gather(struct device_executor *self, const struct step *step,
                                            struct healcl_error *error);

#endif
