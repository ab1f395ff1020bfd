/* What the parts of audits share. */
#ifndef HEALCL_RUN_AUDIT_PARTS_H
#define HEALCL_RUN_AUDIT_PARTS_H

#include "reference/reference.h"
#include "run/audit.h"
#include "run/audit_draw.h"
#include "run/run.h"

enum {
    PICKS_MOST = 16,     /* of a segment */
    BYTES_KEPT = 1 << 20 /* of an audit's memory, for the next one */
};

/* An audit in hand. */
struct pending {
    struct audit_cut cut;
    struct audit_slice slice;
    uint32_t class;
    char *memory;
    size_t capacity;
    char *before[STEP_OPERANDS]; /* in memory */
    char *actual, *expected;     /* out's storage */
    double spent, estimate;
};

/* Numbers of what is met, by its hash. */
struct numbers {
    uint64_t *hashes; /* by number */
    size_t count, capacity;
    uint32_t *slots; /* number + 1, or 0; slot_count, a power of two, of them */
    size_t slot_count;
};

struct audit {
    const struct plan *plan;
    struct audit_draw draw;
    uint64_t random;
    struct audit_rates rates;
    /* Classes. */
    struct audit_class *classes;
    uint32_t *class_kernels; /* by class */
    uint32_t *class_pairs, *pair_moduli, *pair_kernels;
    bool *pair_seen, *modulus_seen;
    size_t class_capacity, class_kernel_capacity, class_pair_count, class_pair_capacity;
    struct numbers class_numbers, kernel_numbers, modulus_numbers, pair_numbers;
    uint32_t *step_classes; /* by step, or AUDIT_NO_CLASS */
    uint32_t *here;         /* the classes of one segment after the other */
    size_t *first_here;     /* by segment */
    int64_t **known;        /* by storage: moduli that the transcript uploads */
    /* The segment in hand. */
    struct {
        size_t step;
        uint32_t class;
    } picks[PICKS_MOST];
    size_t pick_count, pick;
    struct pending pending[PICKS_MOST];
    size_t pending_count;
    bool has_before;
    /* The reference, on a plan of one slice. */
    struct plan of_slice;
    struct reference *reference;
    struct healcl_audit_facts facts;
    struct healcl_audit_kernel *kernels;
    struct healcl_audit_difference difference;
    const struct pending *failed;
    int64_t failed_element;
};

/* ---- audit.c ---- */

/* The positions, in their storage, of the moduli of a step; more than a few count as one. */
size_t audit_list_moduli(const struct step *step, int64_t positions[AUDIT_MODULI_MOST]);

/* What the cheapest audit of a step takes; negative: too much memory. */
double audit_least_cost(const struct audit *audit, const struct step *step);

#endif
