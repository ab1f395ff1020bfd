/*
 * Integer expressions of manifests: what a vendor's operation wants of its arguments, and what its
 * kernel gets. docs/VENDORS.md has the grammar. They have no loops, and every value is a 64-bit
 * integer; what does not fit one is an error, never a wrong value.
 */
#ifndef HEALCL_VENDOR_EXPRESSION_H
#define HEALCL_VENDOR_EXPRESSION_H

#include "core/arena.h"
#include "core/dtype.h"
#include "core/layout.h"

enum { EXPRESSION_NAMES_MAX = 20, EXPRESSION_TEXT_MAX = 512 };

/* The names that an expression may use. */
struct expression_names {
    struct expression_name {
        const char *name; /* NULL: it cannot be named */
        bool is_tensor;   /* else an integer */
        bool is_known;    /* an argument that may be used already */
    } of[EXPRESSION_NAMES_MAX];
    bool strides; /* offset(t) and stride(t, i) too: where views have been settled */
};

/* The values of these names, by number. */
struct expression_values {
    const struct layout *layouts[EXPRESSION_NAMES_MAX]; /* NULL: the argument is nothing */
    enum dtype dtypes[EXPRESSION_NAMES_MAX];
    int64_t integers[EXPRESSION_NAMES_MAX];
};

struct expression;

/* Errors: HEALCL_REFUSED with the column, HEALCL_NO_MEMORY. The arena owns the expression, with a
 * copy of its text. */
enum healcl_status expression_parse(const char *text, const struct expression_names *names,
                                    struct arena *arena, struct expression **expression,
                                    struct healcl_error *error);

/* HEALCL_REFUSED: the value is beyond 64 bits, an axis is not there, something is divided by 0. */
enum healcl_status expression_value(const struct expression *expression,
                                    const struct expression_values *values, int64_t *value,
                                    struct healcl_error *error);

const char *expression_text(const struct expression *expression);

#endif
