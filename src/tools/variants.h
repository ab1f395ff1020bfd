/* Counts how a device's kernels have been tested: one row for each kind of step and variant of its
 * family, and for each further kernel that such a variant launches. */
#ifndef HEALCL_TOOLS_VARIANTS_H
#define HEALCL_TOOLS_VARIANTS_H

#include "kernels/variant.h"

struct variant_row {
    enum step_kind kind;
    const struct variant *variant;
    const char *kernel;          /* NULL: none was launched */
    const char *obstacle;        /* why it could not run its last step; or NULL */
    uint64_t launches, recorded; /* launches; `recorded` of them with their own kernel objects */
    uint32_t calls, failed;      /* calls that launched it; those that were not right */
    bool is_in_call;
    unsigned planned; /* set of forms of its launches in calls so far: plan_form */
};

struct variants {
    struct healcl_device *device;
    struct launch_observer observer;
    size_t count, capacity;
    struct variant_row *rows; /* kernels of one variant are adjacent */
};

/* Begins to count launches as the device's observer. self must not be moved. */
void variants_init(struct variants *self, struct healcl_device *device);
void variants_release(struct variants *self);

/* Whether the device runs a step of the plan in a way that no call has tested so far. */
bool variants_are_new(const struct variants *self, const struct plan *plan);

/* Ends a call with this plan, which was right or not. Its ways of running steps are no longer new.
 * Stores why other variants cannot run its steps. */
void variants_end_call(struct variants *self, const struct plan *plan, bool is_right);

/* Returns why a row has no kernel. */
const char *variant_row_reason(const struct variants *self, const struct variant_row *row);

#endif
