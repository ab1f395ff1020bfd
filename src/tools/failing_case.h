/* The smallest case that a device computes wrongly: a step of a plan, reduced to a few rows of
 * its tensors. The tensors keep their layout in memory. The case is written as a separate
 * transcript. */
#ifndef HEALCL_TOOLS_FAILING_CASE_H
#define HEALCL_TOOLS_FAILING_CASE_H

#include "opencl/device.h"
#include "reference/reference.h"

/* A step that a device computes wrongly, and the memory before it. */
struct failing_step {
    const struct plan *plan;
    const struct step *step;
    const struct reference *reference; /* contains the storages of the inputs */
    const void *out_before;            /* contents of step->out's storage before it */
    int64_t first_wrong;               /* index in out, in C order; 0 if unknown */
};

struct failing_case {
    char *transcript; /* NULL: no step fails alone. To be freed with free(). */
    size_t bytes;
    char text[512]; /* "modmul_ttc(a int64 [1, 2], ...)" */
};

/* Cuts the axes of the step's tensors, one after the other, around the first wrong element, while
 * the device's result is still wrong. Some kinds of steps cannot be written as an operation; then
 * there is no case. */
void failing_case_find(struct healcl_device *device, const struct failing_step *failing,
                       struct failing_case *found);

#endif
