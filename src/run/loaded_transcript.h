/* The structure behind the handle struct healcl_transcript. */
#ifndef HEALCL_RUN_LOADED_TRANSCRIPT_H
#define HEALCL_RUN_LOADED_TRANSCRIPT_H

#include <stdatomic.h>

#include "plan/derive.h"

struct healcl_transcript {
    struct source source; /* its own arena; a plan names what it refers to */
    struct plan *plan;
    bool is_before_passes; /* the plan before passes, from which others are derived */
    /* of plan->uploads and plan->results; the steps they belong to */
    struct healcl_tensor_info *inputs, *results;
    const struct step **input_steps, **result_steps;
    struct healcl_operations *operations; /* that the plan refers to, or NULL */
    struct healcl_plan_options options;   /* of the plan */
    uint32_t passes;                      /* number of operations */
    /* Set in a derived transcript (derive.h), which has no source of its own; else NULL. */
    struct healcl_transcript *parent; /* retained */
    plan_change *change;
    void *how;                      /* a copy */
    struct healcl_transcript *self; /* for readers, which may only retain it */
    atomic_size_t owners;           /* of the opener and of sessions */
};

/* Opens a transcript as healcl_transcript_open does, but keeps the plan as it is before passes.
 * Transcripts derived from it then need no new planning. */
enum healcl_status transcript_open_plain(const char *path,
                                         const struct healcl_plan_options *options,
                                         struct healcl_transcript **result,
                                         struct healcl_error *error);

/* Adds an owner, who must call healcl_transcript_close too. */
struct healcl_transcript *transcript_retain(const struct healcl_transcript *transcript);

#endif
