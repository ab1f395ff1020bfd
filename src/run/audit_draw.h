/*
 * Which steps are audited, and when: so that all that a device runs is visited soon, within a share
 * of the time. Knows neither devices nor steps.
 *
 * Steps that are alike make a class: one kernel, on the same shapes and moduli. A kernel with a
 * modulus makes a pair, which several classes may have. Classes stand in two queues: those that
 * have something which was never audited, and the others, the least recently audited first. A class
 * that cannot be paid for yet is saved up for, unless it was not met since the last run began.
 */
#ifndef HEALCL_RUN_AUDIT_DRAW_H
#define HEALCL_RUN_AUDIT_DRAW_H

#include "core/status.h"

#define AUDIT_NO_CLASS UINT32_MAX

struct audit_class {
    size_t first_pair, pair_count; /* among class_pairs */
    double cost;                   /* nanoseconds of its smallest audit */
    uint64_t audits;
    uint64_t run, mark;      /* when it was last met: numbers of a run, and of a segment in hand */
    uint32_t next, previous; /* in its queue */
    bool is_fresh;           /* it is in the first queue */
};

struct audit_draw {
    double share;
    struct audit_class *classes; /* the caller's, class_count of them */
    uint32_t class_count;
    const uint32_t *class_pairs; /* the caller's: numbers of pairs, class after class */
    bool *pair_seen;             /* the caller's, by number */
    struct {
        uint32_t first, last;
    } queues[2];
    double elapsed, spent, forfeited; /* nanoseconds: of runs; of audits; that nobody may spend */
    double last_run;                  /* nanoseconds */
    double least;                     /* what an audit should cost now, so that it is worth it */
    double dearest;                   /* cost of a class */
    uint64_t run, mark;
    uint64_t run_start; /* 0: none goes on */
};

/* Classes, with pairs and costs, and pairs not seen, are the caller's and outlive the draw. */
void audit_draw_init(struct audit_draw *draw, uint64_t seed);

/* Around each run; now: nanoseconds of a clock. */
void audit_draw_begin(struct audit_draw *draw, uint64_t now);
void audit_draw_end(struct audit_draw *draw, uint64_t now);

/* Nanoseconds that may be spent now; negative: more was spent than that. */
double audit_draw_balance(const struct audit_draw *draw, uint64_t now);

/* Draws at most `most` of the classes that a segment has; returns how many. */
size_t audit_draw_classes(struct audit_draw *draw, uint64_t now, const uint32_t *here, size_t count,
                          uint32_t *picks, size_t most);

/* An audit of a class was done, and its pairs, as far as they were, marked in pair_seen. */
void audit_draw_done(struct audit_draw *draw, uint32_t number);

#endif
