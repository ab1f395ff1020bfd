/* Compares a result with the tensor that a transcript expects. */
#ifndef HEALCL_RUN_COMPARE_H
#define HEALCL_RUN_COMPARE_H

#include "core/status.h"
#include "transcript/payload.h"

enum { COMPARISON_FIRST = 5 };

struct comparison {
    bool same_shape;
    uint64_t different; /* differing elements; 0 if the shapes differ */
    uint32_t first_count;
    struct {
        int64_t position; /* in C order */
        int64_t actual, expected;
    } first[COMPARISON_FIRST]; /* the first differing elements, in C order */
};

/* Whether the result equals the expected tensor. */
bool comparison_is_equal(const struct comparison *comparison);

/* Whether a result has the expected shape. A widened result may have an additional first axis. */
bool compare_same_shape(const struct layout *shape, const struct payload *expected);

/* Compares data with a payload by value; their dtypes may differ. data: elements of `dtype`,
 * packed, in C order. The payload is decoded one block at a time. Errors: HEALCL_NO_MEMORY. */
enum healcl_status compare_result(const struct layout *shape, enum dtype dtype, const void *data,
                                  const struct payload *expected, struct comparison *comparison,
                                  struct healcl_error *error);

/* Compares elements [first, first + elements) of a result, which begin at data, in C order. Adds
 * the differences to `comparison`, whose same_shape must be true. Errors: HEALCL_NO_MEMORY. */
enum healcl_status compare_piece(enum dtype dtype, int64_t first, int64_t elements,
                                 const void *data, const struct payload *expected,
                                 struct comparison *comparison, struct healcl_error *error);

#endif
