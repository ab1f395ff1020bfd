/* Functions shared by the files of kernel families. */
#ifndef HEALCL_KERNELS_KERNELS_H
#define HEALCL_KERNELS_KERNELS_H

#include "kernels/derived.h"
#include "kernels/job.h"
#include "kernels/variant.h"

/* Whether an output of `elements` elements is too large to stay in caches. */
static inline bool passes_caches(const struct healcl_device *device, uint64_t elements,
                                 enum dtype dtype)
{
    return elements >= device->tuning.past_caches_bytes / dtype_size(dtype);
}

/* Why the device cannot run elementwise kernels and sums on vectors of eight. NULL: it can. */
const char *double_vectors_obstacle(const struct healcl_device *device);

/* Tunables of kernels over elements, and of kernels whose outputs may bypass the caches. */
enum {
    OVER_ELEMENTS = 1 << TUNABLE_local_size | 1 << TUNABLE_elements_per_item,
    OVER_ANY_VIEW = OVER_ELEMENTS | 1 << TUNABLE_compiled_axes,
    WIDE_OVER_ANY_VIEW = OVER_ANY_VIEW | 1 << TUNABLE_access_bytes,
    MULTIPLIED = OVER_ELEMENTS | 1 << TUNABLE_multiply,
    PAST_CACHES = OVER_ELEMENTS | 1 << TUNABLE_past_caches_bytes
};

/* The largest vectors, in elements, of elementwise kernels and of copies. Elementwise code grows
 * with the size of its vectors. */
enum { VECTOR_MOST = 4, COPY_VECTOR_MOST = 16 };

/* A family whose style the tuning sets under the name of preference. */
#define FAMILY_OF(name, preference, list)                                  \
    {                                                                      \
#name, FAMILY_##preference, list, sizeof list / sizeof *list, NULL \
    }

/* The last variants of a family, which run any layout: one work-item takes all elements, or many
 * work-items share them. Both have the same kernel in cl/PROGRAM.cl. `tunables` are those of many
 * work-items. */
#define GENERAL_VARIANTS(name, plan, choose, tunables, program, kernel)                    \
    {"single",                                                                             \
     STYLE_SINGLE,                                                                         \
     plan,                                                                                 \
     choose,                                                                               \
     0,                                                                                    \
     program,                                                                              \
     kernel,                                                                               \
     "cl/" program ".cl",                                                                  \
     "up to 2^31 elements"},                                                               \
    {                                                                                      \
        name, STYLE_GENERAL, plan, choose, tunables, program, kernel, "cl/" program ".cl", \
            "anything"                                                                     \
    }

/* The smaller of two numbers. */
static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The blocks that `count` elements fill, of which the last one may be incomplete. */
static inline int64_t blocks_for(int64_t count, int64_t block)
{
    return (count + block - 1) / block;
}

/* The output's elements as a space. Its operands are the output and those of the first `inputs`
 * inputs that are tensors. Axes are not simplified. */
struct space step_space(const struct step *step, int inputs);

/* Begins a job without arguments of a variant's program, as the variant's style and tunables ask.
 */
void job_begin_variant(struct job *job, struct launcher *launcher, const struct step *step,
                       const struct variant *variant, const char *kernel);

/* Begins a job of a plan's kernel over the plan's space, compiled for the output's dtype. Its first
 * argument is the space. */
void job_begin_kernel(struct job *job, struct launcher *launcher, const struct variant_plan *plan);

/* As job_begin_kernel. The output and the first `inputs` inputs of the step follow the space. */
void job_begin(struct job *job, struct launcher *launcher, const struct variant_plan *plan,
               int inputs);

#endif
