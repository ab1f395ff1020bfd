/* Comparing a result with the tensor that a transcript expects. */
#ifndef HEALCL_RUN_COMPARE_H
#define HEALCL_RUN_COMPARE_H

#include "core/status.h"
#include "transcript/payload.h"

enum { COMPARISON_FIRST = 5 };

struct comparison {
    bool same_shape;
    uint64_t different; /* elements; 0 where the shapes differ */
    uint32_t first_count;
    struct {
        int64_t position; /* in C order */
        int64_t actual, expected;
    } first[COMPARISON_FIRST]; /* the first that differ, in C order */
};

/* Whether nothing differs. */
bool comparison_is_equal(const struct comparison *comparison);

/* Whether a result has the shape that is expected, with an axis of copies in front where that says
 * so. */
bool compare_same_shape(const struct layout *shape, const struct payload *expected);

/*
 * Compares data, elements of dtype in C order without gaps, with a payload, by value: dtypes may
 * differ. The payload is decoded a block at a time, unless it is in Fortran order. Errors:
 * HEALCL_NO_MEMORY.
 */
enum healcl_status compare_result(const struct layout *shape, enum dtype dtype, const void *data,
                                  const struct payload *expected, struct comparison *comparison,
                                  struct healcl_error *error);

/* Compares elements [first, first + elements) of a result, which begin at data, in order. What
 * differs is added to comparison, whose same_shape is true. expected is not in Fortran order.
 * Errors: HEALCL_NO_MEMORY. */
enum healcl_status compare_piece(enum dtype dtype, int64_t first, int64_t elements,
                                 const void *data, const struct payload *expected,
                                 struct comparison *comparison, struct healcl_error *error);

#endif
