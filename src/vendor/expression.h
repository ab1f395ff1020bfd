/* Integer expressions of manifests: requirements of a vendor's operation, and values for its
 * kernel. docs/VENDORS.md documents the grammar. Expressions have no loops. Every value is a 64-bit
 * integer; a value that does not fit is an error. */
#ifndef HEALCL_VENDOR_EXPRESSION_H
#define HEALCL_VENDOR_EXPRESSION_H

#include "core/arena.h"
#include "core/dtype.h"
#include "core/layout.h"

enum { EXPRESSION_NAMES_MAX = 20, EXPRESSION_TEXT_MAX = 512 };

/* The names that an expression may use. */
struct expression_names {
    struct expression_name {
        const char *name; /* NULL: no name */
        bool is_tensor;   /* else an integer */
        bool is_known;    /* an argument that may already be used here */
    } of[EXPRESSION_NAMES_MAX];
    bool strides; /* offset(t) and stride(t, i) are allowed too, once views are final */
};

/* The values of the names, by number. */
struct expression_values {
    const struct layout *layouts[EXPRESSION_NAMES_MAX]; /* NULL: the argument is `none` */
    enum dtype dtypes[EXPRESSION_NAMES_MAX];
    int64_t integers[EXPRESSION_NAMES_MAX];
};

struct expression;

/* Parses an expression. The arena owns it and a copy of its text. Errors: HEALCL_REFUSED with the
 * column, HEALCL_NO_MEMORY. */
enum healcl_status expression_parse(const char *text, const struct expression_names *names,
                                    struct arena *arena, struct expression **expression,
                                    struct healcl_error *error);

/* Evaluates an expression. Errors: HEALCL_REFUSED for a value beyond 64 bits, an axis that does not
 * exist, or a division by 0. */
enum healcl_status expression_value(const struct expression *expression,
                                    const struct expression_values *values, int64_t *value,
                                    struct healcl_error *error);

const char *expression_text(const struct expression *expression);

#endif
