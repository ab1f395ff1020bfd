/* The names that are bound during planning: inf_name → tensor. */
#ifndef HEALCL_PLAN_NAMES_H
#define HEALCL_PLAN_NAMES_H

#include "core/status.h"

struct tensor;

struct names {
    void **buckets; /* roots of tsearch(3) trees; NULL: there are no names */
};

/* The tensor that a name is bound to, or NULL. */
const struct tensor *names_find(const struct names *names, const char *name);

/* Binds a name, which is copied. *previous becomes the tensor that it was bound to before, or
 * NULL. */
enum healcl_status names_bind(struct names *names, const char *name, const struct tensor *tensor,
                              const struct tensor **previous, struct healcl_error *error);

/* Removes a name. Returns the tensor that it was bound to, or NULL if it was not bound. */
const struct tensor *names_remove(struct names *names, const char *name);

void names_clear(struct names *names);

#endif
