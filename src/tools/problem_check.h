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

/* The plan of a problem's call, of the transcript that placement_transcript writes. */
struct planned {
    char *transcript;
    struct source source;
    struct plan *plan; /* NULL: it is refused */
};

/* The caller releases it, also where this fails. Errors: as of plans. */
enum healcl_status problem_plan(struct planned *planned, const struct problem *problem,
                                const struct placement *placement, struct healcl_error *error);
void planned_release(struct planned *planned);

/* The elements of a problem's tensors in C order; NULL for one that is not present. */
struct problem_data {
    void *packed[PARAMETERS_MAX];
};

void problem_data_init(struct problem_data *data, const struct problem *problem,
                       struct random *random);
void problem_data_release(struct problem_data *data);

enum check_result {
    CHECK_EQUAL,
    CHECK_DIFFERENT, /* error holds where, and its detail tells of the problem; or why it is
                        refused, though it is valid */
    CHECK_REFUSED,   /* error holds why: HEALCL_REFUSED for what is beyond the device, else why the
                        device, or planning, or the reference failed */
};

/* Calls: those that were compared, that were right, and that are beyond the device, such as tensors
 * larger than it holds. */
struct check_counts {
    uint32_t calls, passed, unsupported;
};

/* Runs the problem, placed. random: of what is around its tensors. */
enum check_result problem_check(struct healcl_device *device, const struct problem *problem,
                                const struct placement *placement, const struct problem_data *data,
                                struct random *random, struct healcl_error *error);

/* Whether the reference takes the data. */
bool problem_is_valid(const struct problem *problem, const struct problem_data *data);

/* Puts the data into the storages of an executor of the problem's plan, placed alike. */
struct executor;
enum healcl_status problem_upload(struct executor *executor, const struct problem *problem,
                                  const struct placement *placement,
                                  const struct problem_data *data, struct random *random,
                                  struct healcl_error *error);

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
