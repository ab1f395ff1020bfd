/* Runs problems on a device and compares them with the host reference. Both sides run a call as a
 * transcript plans it, on views. Then whole storages are compared bit for bit, including the
 * elements around the tensors. */
#ifndef HEALCL_TOOLS_PROBLEM_CHECK_H
#define HEALCL_TOOLS_PROBLEM_CHECK_H

#include "opencl/device.h"
#include "tools/placement.h"
#include "vendor/vendor.h"

/* Elements of a problem's tensors in C order; NULL for a tensor that is not present. */
struct problem_data {
    void *packed[PARAMETERS_MAX];
};

void problem_data_init(struct problem_data *data, const struct problem *problem,
                       struct random *random);
void problem_data_release(struct problem_data *data);

/* Numbers of calls: compared, right, and beyond the device (such as tensors larger than it can
 * hold). */
struct check_counts {
    uint32_t calls, passed, unsupported;
};

/* Runs the problem with this placement. device: NULL for the reference only. random: for elements
 * around its tensors. Counts steps in problem->uses. Errors: HEALCL_DIFFERENT with the place, or
 * with the reason why a valid call is refused, and with the problem in the detail; HEALCL_REFUSED
 * for what exceeds the device; else why the device failed. */
enum healcl_status problem_check(struct healcl_device *device, const struct problem *problem,
                                 const struct placement *placement, const struct problem_data *data,
                                 struct random *random, struct healcl_error *error);

/* Makes the error for a call that is refused because of its data or its kernel's manifest. The
 * status is HEALCL_DIFFERENT, because calls and data are valid. */
enum healcl_status problem_refused(struct healcl_error *error);

/* Kernels of manifests, with counts of their use in calls. */
struct kernel_uses {
    struct kernel_use {
        const struct vendor_kernel *kernel;
        const char *of;        /* name of its operation, or of the kind of step that it replaces */
        uint64_t steps, wrong; /* steps that it ran; wrong calls that it had a part in */
        char *why_not;         /* why it did not run or refused a step; NULL: never */
    } * of;
    size_t count;
};

/* Lists all kernels of a table's manifests; table may be NULL. */
void kernel_uses_init(struct kernel_uses *uses, const struct operation_table *table);
void kernel_uses_release(struct kernel_uses *uses);

/* Finds a kernel by the name of one of its alternatives, as a plan's steps report it. */
struct kernel_use *kernel_uses_find(const struct kernel_uses *uses, const char *name);

/* Finds the manifest's kernel that runs a step of the problem on the device; its name is NULL if
 * there is none. With problem->uses it is the alternative that problem->turn selects, and reasons
 * why other kernels do not run are stored. Errors: as of plans. */
enum healcl_status problem_kernel(struct healcl_device *device, const struct problem *problem,
                                  const struct placement *placement,
                                  struct manifest_kernel *kernel);

/* Whether the problem makes its variants run steps in a way that no earlier call did. */
bool problem_is_new(const struct problem *problem, const struct placement *placement);

/* Plans a problem with contiguous tensors, and passes the plan to `look`, which may be NULL.
 * Errors: as of plans. */
enum healcl_status problem_look(const struct problem *problem,
                                void (*look)(void *context, const struct plan *plan), void *context,
                                struct healcl_error *error);

#endif
