/*
 * Audits of a session: some steps that the device ran are repeated on the host reference, with the
 * same inputs. A step that costs too much is cut along its batch axis. Steps are chosen in a random
 * order, the first step of each kernel before the others.
 *
 * Inputs and outputs are read in order with the queue, without waiting. Inputs are read before a
 * launch, because the launch may overwrite them; the output is read after it. They are compared
 * once the segment has been waited for.
 */
#ifndef HEALCL_RUN_AUDIT_H
#define HEALCL_RUN_AUDIT_H

#include "kernels/launcher.h"

struct audit;

/* The device, whose kernels run the plan's steps, and the plan must outlive the audit. share:
 * fraction of the run time to audit, in (0, 1]. */
enum healcl_status audit_create(const struct plan *plan, const struct healcl_device *device,
                                double share, uint64_t seed, struct audit **result,
                                struct healcl_error *error);
/* Frees the audit. All its reads must have ended: see audit_drop. NULL is ignored. */
void audit_free(struct audit *audit);

/* Called before and after each run of some segments. */
void audit_begin_run(struct audit *audit);
void audit_end_run(struct audit *audit);

/* Chooses the steps to audit in a segment that is about to run. */
void audit_begin_segment(struct audit *audit, const struct segment *segment);

/* Whether a step that is about to be launched was chosen. */
bool audit_takes(struct audit *audit, const struct step *step);

/* Called before and after its launch. launched: whether the device ran it. Errors: HEALCL_DEVICE,
 * HEALCL_NO_MEMORY. */
enum healcl_status audit_before_step(struct audit *audit, struct launcher *launcher,
                                     struct healcl_error *error);
enum healcl_status audit_after_step(struct audit *audit, struct launcher *launcher, bool launched,
                                    struct healcl_error *error);

/* Compares the data that were read. The compute queue must have been waited for, and no step
 * refused. Errors: HEALCL_DIFFERENT, with entry, element and values; HEALCL_NO_MEMORY. */
enum healcl_status audit_judge(struct audit *audit, struct healcl_error *error);

/* After an error: waits for pending reads, and discards them. */
void audit_drop(struct audit *audit, struct healcl_device *device);

/* Returns facts that are valid until the next run. */
const struct healcl_audit_facts *audit_facts(const struct audit *audit);

#endif
