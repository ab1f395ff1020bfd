/*
 * Running problems on a device and comparing with the host reference. A call runs as a transcript
 * plans it, on views, on both sides. Then whole storages are compared bit for bit, with what lies
 * around the tensors.
 */
#ifndef HEALCL_TOOLS_PROBLEM_CHECK_H
#define HEALCL_TOOLS_PROBLEM_CHECK_H

#include "opencl/device.h"
#include "plan/plan.h"
#include "tools/placement.h"

/* The elements of a problem's tensors in C order; NULL for one that is not present. */
struct problem_data {
    void *packed[PARAMETERS_MAX];
};

void problem_data_init(struct problem_data *data, const struct problem *problem,
                       struct random *random);
void problem_data_release(struct problem_data *data);

/* Calls: those that were compared, that were right, and that are beyond the device, such as tensors
 * larger than it holds. */
struct check_counts {
    uint32_t calls, passed, unsupported;
};

/* Runs the problem, placed; device: NULL: on the reference alone. random: for elements around its
 * tensors. Errors: HEALCL_DIFFERENT, with the place, and in the detail the problem, or with the
 * reason why a valid call is refused; HEALCL_REFUSED for what is beyond the device; else why the
 * device failed. */
enum healcl_status problem_check(struct healcl_device *device, const struct problem *problem,
                                 const struct placement *placement, const struct problem_data *data,
                                 struct random *random, struct healcl_error *error);

/* Makes the error of a call that is refused for its data, or its kernel's manifest:
 * HEALCL_DIFFERENT, for calls and data are valid. */
enum healcl_status problem_refused(struct healcl_error *error);

/* The kernel of the table's manifests that runs a step of it on the device; without a name where
 * there is none. Errors: as of plans. */
enum healcl_status problem_kernel(const struct healcl_device *device, const struct problem *problem,
                                  const struct placement *placement,
                                  struct manifest_kernel *kernel);

/* Plans a problem with contiguous tensors, and hands look the plan, unless look is NULL. Errors: as
 * of plans. */
enum healcl_status problem_look(const struct problem *problem,
                                void (*look)(void *context, const struct plan *plan), void *context,
                                struct healcl_error *error);

#endif
