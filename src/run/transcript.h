/* The handle behind struct healcl_transcript. */
#ifndef HEALCL_RUN_TRANSCRIPT_H
#define HEALCL_RUN_TRANSCRIPT_H

#include <stdatomic.h>

#include "plan/derive.h"

struct healcl_transcript {
    struct source source; /* of its own; a plan says what it refers to */
    struct plan *plan;
    bool is_plain; /* the plan is as before passes: derived transcripts are made of it */
    /* plan->uploads and plan->results of them, and the steps that they are of */
    struct healcl_tensor_info *inputs, *results;
    const struct step **input_steps, **result_steps;
    struct healcl_operations *operations; /* that the plan refers to, or NULL */
    struct healcl_limits limits;          /* of the plan */
    uint32_t passes;                      /* set of them */
    /* Set in a derived transcript (derive.h), which has no source of its own; else NULL. */
    struct healcl_transcript *parent; /* retained */
    plan_change *change;
    void *how;                      /* a copy */
    struct healcl_transcript *self; /* for those who may only read it, and retain it */
    atomic_size_t owners;           /* whoever has opened it, and sessions */
};

/* As healcl_transcript_open, but the plan stays as it is before passes: for transcripts to be
 * derived from it, which then plan nothing again. */
enum healcl_status transcript_open_plain(const char *path, const struct healcl_limits *limits,
                                         struct healcl_transcript **result,
                                         struct healcl_error *error);

/* One owner more: healcl_transcript_close is for it, too. */
struct healcl_transcript *transcript_retain(const struct healcl_transcript *transcript);

#endif
