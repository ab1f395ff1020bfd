/*
 * Audits of a session: some steps that the device runs are done again on the host reference, from
 * what they have read. A step that costs too much is cut along its batch axis.
 * Steps take turns in a random order, the first of each kernel ahead of the others. What is
 * compared is read in the order of the queue, without waiting: inputs before a launch, for it may
 * write to them, and the output behind it. They are compared once the segment has been waited for.
 */
#ifndef HEALCL_RUN_AUDIT_H
#define HEALCL_RUN_AUDIT_H

#include "kernels/launcher.h"

struct audit;

/* The device, whose kernels the plan's steps take, and the plan outlive the audit. share: of the
 * time of runs, in (0, 1]. */
enum healcl_status audit_create(const struct plan *plan, const struct healcl_device *device,
                                double share, uint64_t seed, struct audit **result,
                                struct healcl_error *error);
/* Nothing that it reads is enqueued any more: see audit_drop. NULL is ignored. */
void audit_free(struct audit *audit);

/* Around each run of some segments. */
void audit_begin_run(struct audit *audit);
void audit_end_run(struct audit *audit);

/* Draws the steps of a segment that is about to run. */
void audit_begin_segment(struct audit *audit, const struct segment *segment);

/* Whether a step, which is about to be launched, was drawn. */
bool audit_takes(struct audit *audit, const struct step *step);

/* Around its launch; launched: whether the device has run it. Errors: HEALCL_DEVICE,
 * HEALCL_NO_MEMORY. */
enum healcl_status audit_before_step(struct audit *audit, struct launcher *launcher,
                                     struct healcl_error *error);
enum healcl_status audit_after_step(struct audit *audit, struct launcher *launcher, bool launched,
                                    struct healcl_error *error);

/* Compares what was read; the compute queue has been waited for, and nothing was refused. Errors:
 * HEALCL_DIFFERENT, with entry, element and values; HEALCL_NO_MEMORY. */
enum healcl_status audit_judge(struct audit *audit, struct healcl_error *error);

/* After an error: waits for what is still read, and forgets it. */
void audit_drop(struct audit *audit, struct healcl_device *device);

/* Facts until the next run. */
const struct healcl_audit_facts *audit_facts(const struct audit *audit);

#endif
