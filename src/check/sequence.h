/*
 * What the optimiser's passes make: sequences of calls, of which passes make one step, on a device
 * against the host reference without passes. Each pair of elementwise operations that may become a
 * CHAIN is one, in the order of steps.def; the others are in sequences.def.
 */
#ifndef HEALCL_CHECK_SEQUENCE_H
#define HEALCL_CHECK_SEQUENCE_H

#include "check/problem_check.h"

enum { SEQUENCE_NAME_SIZE = 64 };

struct sequence {
    char name[SEQUENCE_NAME_SIZE];
    const char *pass;  /* as passes.def has it */
    int kind;          /* of the step that comes of it; STEP_KINDS: none in particular */
    int of[2];         /* kinds of the two that are chained, where calls is NULL */
    const char *calls; /* as in sequences.def */
};

/* The one of a number; false behind the last one. */
bool sequence_at(size_t number, struct sequence *sequence);

/* How tensors lie, what they hold, and whether the second operation of a chain works in place or on
 * residues. */
enum { SEQUENCE_VARIANTS = 6 };

struct sequence_call {
    enum dtype dtype; /* int32 or int64 */
    int64_t n, k;     /* n: a power of two */
    uint32_t variant;
};

/* "int32, n 16, k 3, variant 2"; returns text. */
enum { SEQUENCE_CALL_SIZE = 80 };
const char *sequence_call_text(const struct sequence_call *call, char text[SEQUENCE_CALL_SIZE]);

struct sequence_check {
    struct sequence sequence;
    struct check_counts counts;
    uint32_t made;             /* in so many calls a step of its kind came of it */
    struct sequence_call call; /* that why tells of */
    struct healcl_error why;   /* of the first call that is not right, or else of the first that is
                                  beyond the device; the caller clears it */
    uint64_t nanoseconds;
};

/* Runs check->sequence with all dtypes, variants and sizes, the small ones alone where quick, and
 * fills in the rest. */
void sequence_check(struct healcl_device *device, bool quick, struct sequence_check *check);

#endif
