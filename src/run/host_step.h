/* Steps that a device cannot run: on the host reference, with the device's memory. */
#ifndef HEALCL_RUN_HOST_STEP_H
#define HEALCL_RUN_HOST_STEP_H

#include "kernels/launcher.h"
#include "reference/reference.h"

/*
 * Runs a step that takes kernels: reads what it reads from the device, for which it waits, and
 * writes what it writes back. The reference is one of the launcher's plan, and holds nothing
 * afterwards. Errors: those of reference_step, where nothing is written; HEALCL_DEVICE.
 */
enum healcl_status host_step_run(struct launcher *launcher, struct reference *reference,
                                 const struct step *step, struct healcl_error *error);

/* Copies a tensor's elements, in C order, into a new buffer, which the caller releases. */
enum healcl_status host_step_pack(struct launcher *launcher, struct reference *reference,
                                  const struct tensor *tensor, struct buffer *packed,
                                  struct healcl_error *error);

#endif
