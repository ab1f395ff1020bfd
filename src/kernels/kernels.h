/* Functions that the families' files share. */
#ifndef HEALCL_KERNELS_KERNELS_H
#define HEALCL_KERNELS_KERNELS_H

#include "kernels/derive.h"
#include "kernels/job.h"
#include "kernels/variant.h"

/* Whether an output of so many elements is too large for caches to keep it. */
static inline bool passes_caches(const struct healcl_device *device, uint64_t elements,
                                 enum dtype dtype)
{
    return elements >= device->tuning.past_caches_bytes / dtype_size(dtype);
}

/* Whether input i of a step is a scalar of the plan's, or absent, which counts as 0. */
static inline bool is_scalar(const struct step *step, int i)
{
    return !step->in[i] || step->in[i]->storage->scalars;
}

static inline int64_t scalar_value(const struct step *step, int i)
{
    return step->in[i] ? step->in[i]->storage->scalars[step->in[i]->layout.offset] : 0;
}

/* Why the device has no elementwise kernels and sums on vectors of eight; NULL: it has. */
const char *double_vectors_obstacle(const struct healcl_device *device);

/* Tunables of kernels over elements, and of those whose outputs may go past the caches. */
enum {
    OVER_ELEMENTS = 1 << TUNABLE_local_size | 1 << TUNABLE_elements_per_item,
    OVER_ANY_VIEW = OVER_ELEMENTS | 1 << TUNABLE_compiled_axes,
    WIDE_OVER_ANY_VIEW = OVER_ANY_VIEW | 1 << TUNABLE_access_bytes,
    MULTIPLIED = OVER_ELEMENTS | 1 << TUNABLE_multiply,
    PAST_CACHES = OVER_ELEMENTS | 1 << TUNABLE_past_caches_bytes
};

/* The most elements that kernels take as a vector: of elementwise ones, whose code is as long as
 * that, and of copies. */
enum { VECTOR_MOST = 4, COPY_VECTOR_MOST = 16 };

/* A family whose shape the tuning gives by the name of preference. */
#define FAMILY_OF(name, preference, list)                                  \
    {                                                                      \
#name, FAMILY_##preference, list, sizeof list / sizeof *list, NULL \
    }

/* The output's elements, with operands out and those of the first inputs that are tensors. Axes are
 * not simplified. */
struct space step_space(const struct step *step, int inputs);

/* A job of a plan's kernel over its space, made for the type of the output. Its first arguments are
 * the space, out and the first inputs of a step, the plan's or one like it. */
enum healcl_status job_begin(struct job *job, struct launcher *launcher, const struct step *step,
                             const struct variant_plan *plan, int inputs,
                             struct healcl_error *error);

#endif
