/*
 * Records launches of a plan's steps, to enqueue them again later. A repeated launch does not plan
 * a variant, build options, look up a program, or set arguments that have not changed.
 *
 * A recording is valid while inputs that tables may be derived from are unchanged. A step is not
 * recorded if it does more than launch kernels, or if its launches use memory that the launcher
 * does not know.
 */
#ifndef HEALCL_KERNELS_RECORDING_H
#define HEALCL_KERNELS_RECORDING_H

#include "kernels/launcher.h"

/* Records launches of the plan's steps from now on, if memory suffices. */
void recordings_begin(struct launcher *self);
void recordings_free(struct launcher *self);

typedef enum healcl_status launch_function(struct launcher *self, const struct step *step,
                                           struct healcl_error *error);

/* Enqueues the recorded launches of a step. If there are none, calls launch with `launched`, which
 * stands for the step. Errors: those of launch. */
enum healcl_status recording_launch(struct launcher *self, const struct step *step,
                                    launch_function *launch, const struct step *launched,
                                    struct healcl_error *error);

#endif
