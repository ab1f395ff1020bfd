/*
 * The smallest case that a device gets wrong: a step of a plan, cut down to few rows of its
 * tensors, which lie as they did, and written as a transcript of its own.
 */
#ifndef HEALCL_TOOLS_FAILING_CASE_H
#define HEALCL_TOOLS_FAILING_CASE_H

#include "opencl/device.h"
#include "plan/plan.h"

/* A step that a device gets wrong, and the memory it started from. */
struct failing_step {
    const struct plan *plan;
    const struct step *step;
    const void *out_before;          /* the storage of step->out */
    const void *inputs[STEP_INPUTS]; /* the storages of the other inputs; NULL: out's, constants */
    int64_t first_wrong;             /* element of out, in C order; 0 where none is known */
};

struct failing_case {
    char *transcript; /* NULL: there is none. Freed with free() */
    size_t bytes;
    bool fails_again; /* the device gets it wrong alone; else it is the whole step */
    char text[512];   /* "modmul_ttc(a int64 [1, 2], ...)" */
};

/* Cuts one axis of the step's tensors after the other around the first wrong element, while the
 * device still gets the rest wrong. Some kinds of steps cannot be written as an operation: then
 * there is no case. */
void failing_case_find(struct healcl_device *device, const struct failing_step *failing,
                       struct failing_case *found);

#endif
