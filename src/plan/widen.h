/*
 * Widening: a plan that does for `batch` requests at once what another one does for one, as JAX's
 * vmap does with functions.
 *
 * Chosen uploads, and each storage that depends on them, are `batch` times as large: what belongs
 * to one request lies behind what belongs to the one before. All else stays single, and is read
 * once for all. A step with such operands becomes one step with an axis more, or with a longer
 * axis; where its kind or its views have no room for that, one step for each request, which is
 * always right.
 */
#ifndef HEALCL_PLAN_WIDEN_H
#define HEALCL_PLAN_WIDEN_H

#include "plan/derive.h"

/* Views of a step's operands for all of a batch. distance: by operand, elements from what belongs
 * to one request to what belongs to the next; 0 where all of them share it. Sets views, and makes
 * value, the step's, what the step that does all at once has; returns whether there is one. */
bool step_widen(const struct step *step, int64_t batch, const int64_t *distance,
                struct layout *views, int64_t value[2]);

/* A batch, and the inputs, by number, that each of its requests has of its own. */
struct widen_how {
    int64_t batch;
    size_t count;
    size_t inputs[]; /* count of them */
};

/* A plan_change. how: a struct widen_how. */
enum healcl_status widen_plan(struct rewrite *rewrite, const void *how, struct healcl_error *error);

#endif
