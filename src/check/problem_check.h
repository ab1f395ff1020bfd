/*
 * Running problems on a device and comparing with the host reference.
 *
 * The reference works on arrays of its own for each tensor, in C order, and gets no view and no
 * alias: what it computes is what the operation means. The device runs the call as a transcript
 * plans it, on views. Then the whole storages are compared bit for bit: with the results in the
 * elements of the output, and with what was there before everywhere else.
 */
#ifndef HEALCL_CHECK_PROBLEM_CHECK_H
#define HEALCL_CHECK_PROBLEM_CHECK_H

#include "check/placement.h"
#include "device/device.h"
#include "plan/plan.h"

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

/* The elements of a problem's tensors in C order, and the answer. */
struct problem_data {
    void *packed[PARAMETERS_MAX]; /* of the tensors that are present */
    void *result; /* of the output, or of the tensor that the call makes; NULL: not known yet */
    enum dtype result_dtype;
    int64_t result_elements;
    uint64_t dropped_digits;
    struct healcl_error failure; /* of what went wrong below; problem_check forwards it */
};

void problem_data_init(struct problem_data *data, const struct problem *problem,
                       struct random *random);
void problem_data_release(struct problem_data *data);

/* Computes the answer with the reference. */
void problem_solve(struct problem_data *data, const struct problem *problem);

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

/* Runs the problem on the device, placed. The data's answer is used where the tensors share no
 * elements, and must be known then. */
enum check_result problem_check(struct healcl_device *device, const struct problem *problem,
                                const struct placement *placement, const struct problem_data *data,
                                struct random *random, struct healcl_error *error);

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
