/* The handle behind struct healcl_transcript. */
#ifndef HEALCL_PLAN_TRANSCRIPT_H
#define HEALCL_PLAN_TRANSCRIPT_H

#include "plan/plan.h"

struct healcl_transcript {
    struct source source;
    struct plan *plan;
    /* plan->uploads and plan->results of them, and the steps that they are of */
    struct healcl_tensor_info *inputs, *results;
    const struct step **input_steps, **result_steps;
};

#endif
