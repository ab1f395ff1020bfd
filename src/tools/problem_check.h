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
#include "vendor/vendor.h"

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
 * tensors. Counts steps in problem->uses. Errors: HEALCL_DIFFERENT, with the place, and in the
 * detail the problem, or with the reason why a valid call is refused; HEALCL_REFUSED for what is
 * beyond the device; else why the device failed. */
enum healcl_status problem_check(struct healcl_device *device, const struct problem *problem,
                                 const struct placement *placement, const struct problem_data *data,
                                 struct random *random, struct healcl_error *error);

/* Makes the error of a call that is refused for its data, or its kernel's manifest:
 * HEALCL_DIFFERENT, for calls and data are valid. */
enum healcl_status problem_refused(struct healcl_error *error);

/* Kernels of manifests, and what they did in calls. */
struct kernel_uses {
    struct kernel_use {
        const struct vendor_kernel *kernel;
        const char *of;        /* its operation, or the kind of step that it replaces */
        uint64_t steps, wrong; /* those that it ran, and calls that were wrong with it */
        char *why_not;         /* of a step that it did not run, or refused; NULL: there was none */
    } * of;
    size_t count;
};

/* All kernels of a table's manifests; table may be NULL. */
void kernel_uses_init(struct kernel_uses *uses, const struct operation_table *table);
void kernel_uses_release(struct kernel_uses *uses);

/* The kernel that a name, as a plan's steps report it, is an alternative of. */
struct kernel_use *kernel_uses_find(const struct kernel_uses *uses, const char *name);

/* The kernel of the table's manifests that runs a step of it on the device; without a name where
 * there is none. With problem->uses it is the alternative whose turn it is, and why others do not
 * is noted. Errors: as of plans. */
enum healcl_status problem_kernel(struct healcl_device *device, const struct problem *problem,
                                  const struct placement *placement,
                                  struct manifest_kernel *kernel);

/* Whether it has its variants run steps as no call has done so far. */
bool problem_is_new(const struct problem *problem, const struct placement *placement);

/* Plans a problem with contiguous tensors, and hands look the plan, unless look is NULL. Errors: as
 * of plans. */
enum healcl_status problem_look(const struct problem *problem,
                                void (*look)(void *context, const struct plan *plan), void *context,
                                struct healcl_error *error);

#endif
