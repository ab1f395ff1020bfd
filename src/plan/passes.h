/*
 * Passes turn a plan into one that gives the same results, refusals and warnings with less work.
 * Each pass works within one segment, because sessions run single segments. It uses only what the
 * plan itself says: uploaded values are never known. Each pass has its own file pass_*.c.
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

/* Reads names separated by commas, "none" or "all"; NULL means all. Errors: HEALCL_USAGE. */
enum healcl_status passes_parse(const char *list, uint32_t *set, struct healcl_error *error);

/* Runs the passes of a set. Call it once, before anything refers to the plan's steps. */
enum healcl_status plan_optimise(struct plan *plan, uint32_t set, struct healcl_error *error);

#endif
