/*
 * Widening makes a plan that processes `batch` requests at once from a plan for one request, as
 * JAX's vmap does for functions.
 *
 * Chosen uploads, and each storage that depends on them, become `batch` times as large: each
 * request's elements follow those of the request before. All other storages keep their size and are
 * read once for all requests. A step with widened operands becomes one step with another or a
 * longer axis. If its kind or views do not allow that, it becomes one step for each request, which
 * is always correct.
 */
#ifndef HEALCL_PLAN_WIDEN_H
#define HEALCL_PLAN_WIDEN_H

#include "plan/derive.h"

/* Finds views of a step's operands for a whole batch. distance: by operand, elements between two
 * successive requests; 0 if all requests share the operand. Sets views, and changes value, the
 * step's, to that of the widened step. Returns whether such a step exists. */
bool step_widen(const struct step *step, int64_t batch, const int64_t *distance,
                struct layout *views, int64_t value[2]);

/* A batch, and the numbers of the inputs that differ between its requests. */
struct widen_how {
    int64_t batch;
    size_t count;
    size_t inputs[]; /* array of `count` */
};

/* A plan_change. how: a struct widen_how. */
enum healcl_status widen_plan(struct rewrite *rewrite, const void *how, struct healcl_error *error);

#endif
