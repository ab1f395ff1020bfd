/*
 * Passes: from a plan to one that gives the same results, refusals and warnings with less work.
 * Each keeps within a segment, for sessions run segments alone, and to what the plan says by
 * itself: values that are uploaded are never known. Where each pass is done is in the files
 * pass_*.c.
 */
#ifndef HEALCL_PLAN_PASSES_H
#define HEALCL_PLAN_PASSES_H

#include "plan/plan.h"

enum {
    PASS_COUNT = 0
#define PASS(...) +1
#include "plan/passes.def"
#undef PASS
    ,
    PASSES_ALL = (1 << PASS_COUNT) - 1
};

struct pass {
    const char *name, *summary;
};

extern const struct pass passes[PASS_COUNT];
extern const char passes_names[]; /* ": products bases ..." */

/* Reads names separated by commas, "none" or "all"; NULL is all. Errors: HEALCL_USAGE. */
enum healcl_status passes_parse(const char *list, uint32_t *set, struct healcl_error *error);

/* Does the passes of a set, once, before anything refers to the plan's steps. */
enum healcl_status plan_optimise(struct plan *plan, uint32_t set, struct healcl_error *error);

#endif
