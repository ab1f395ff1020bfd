/*
 * Launches of a plan's steps that are recorded, and later enqueued again: without planning a
 * variant, building options, finding a program, and setting arguments that stay the same.
 *
 * A recording counts as long as inputs of which tables may be derived stay as they are. A step that
 * does more than launch kernels is not recorded, nor one whose launches use memory that nobody
 * knows.
 */
#ifndef HEALCL_KERNELS_RECORDING_H
#define HEALCL_KERNELS_RECORDING_H

#include "kernels/launcher.h"

/* Records launches of the plan's steps from now on, where there is memory for that. */
void recordings_begin(struct launcher *self);
void recordings_free(struct launcher *self);

typedef enum healcl_status launch_function(struct launcher *self, const struct step *step,
                                           struct healcl_error *error);

/* Enqueues again what was recorded of a step; otherwise calls launch with `launched`, which stands
 * for the step. Errors: those of launch. */
enum healcl_status recording_launch(struct launcher *self, const struct step *step,
                                    launch_function *launch, const struct step *launched,
                                    struct healcl_error *error);

#endif
