/*
 * The smallest case that a device gets wrong: a step of a plan, cut down to few rows of its
 * tensors, which lie as they did, and written as a transcript of its own.
 */
#ifndef HEALCL_TOOLS_FAILING_CASE_H
#define HEALCL_TOOLS_FAILING_CASE_H

#include "opencl/device.h"
#include "reference/reference.h"

/* A step that a device gets wrong, and the memory it started from. */
struct failing_step {
    const struct plan *plan;
    const struct step *step;
    const struct reference *reference; /* has the storages of inputs */
    const void *out_before;            /* the storage of step->out */
    int64_t first_wrong;               /* element of out, in C order; 0 where none is known */
};

struct failing_case {
    char *transcript; /* NULL: the device gets none wrong alone. Freed with free() */
    size_t bytes;
    char text[512]; /* "modmul_ttc(a int64 [1, 2], ...)" */
};

/* Cuts one axis of the step's tensors after the other around the first wrong element, while the
 * device still gets the rest wrong. Some kinds of steps cannot be written as an operation: then
 * there is no case. */
void failing_case_find(struct healcl_device *device, const struct failing_step *failing,
                       struct failing_case *found);

#endif
