/* The handle behind struct healcl_transcript. */
#ifndef HEALCL_PLAN_TRANSCRIPT_H
#define HEALCL_PLAN_TRANSCRIPT_H

#include "plan/plan.h"

struct healcl_transcript {
    struct source source;
    struct plan *plan;
};

#endif
