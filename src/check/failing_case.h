/*
 * The smallest case that a device gets wrong: a step of a plan, cut down to few rows of its tensors
 * and, where it still fails, to contiguous ones, and written as a transcript of its own.
 */
#ifndef HEALCL_CHECK_FAILING_CASE_H
#define HEALCL_CHECK_FAILING_CASE_H

#include "device/device.h"
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
    char *transcript; /* NULL: none was found. Freed with free() */
    size_t bytes;
    bool strided;     /* tensors lie as in the step; else contiguous */
    bool fails_again; /* the device gets it wrong alone */
    char text[512];   /* "modmul_ttc(a int64 [1, 2], ...)" */
};

/* Tries parts of the step's tensors around the first wrong element, small ones first. Some kinds of
 * steps cannot be written as an operation: then there is none. Errors: HEALCL_NO_MEMORY. */
enum healcl_status failing_case_find(struct healcl_device *device,
                                     const struct failing_step *failing, struct failing_case *found,
                                     struct healcl_error *error);

/* The whole of a step's tensors as a case, whatever a device makes of it. There may be none, too.
 * Errors: HEALCL_NO_MEMORY. */
enum healcl_status failing_case_whole(const struct failing_step *failing,
                                      struct failing_case *found, struct healcl_error *error);

#endif
