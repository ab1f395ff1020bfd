/*
 * Which ways of running steps a device's kernels have been tried in: a row for each kind of step
 * and variant of its family, and for each other kernel that such a variant launches.
 */
#ifndef HEALCL_TOOLS_VARIANTS_H
#define HEALCL_TOOLS_VARIANTS_H

#include "kernels/variant.h"

struct variant_row {
    enum step_kind kind;
    const struct variant *variant;
    const char *kernel;          /* NULL: it has not been launched */
    const char *obstacle;        /* to the last step that it could not run; or NULL */
    uint64_t launches, recorded; /* recorded: those of the launches that were enqueued again */
    uint32_t calls, failed;      /* calls that launched it, and those of them that were not right */
    bool is_in_call;
    unsigned planned; /* bits of the forms of its launches that calls have had: plan_form */
};

struct variants {
    struct healcl_device *device;
    struct launch_observer observer;
    size_t count, capacity;
    struct variant_row *rows; /* kernels of one variant lie together */
};

/* Counts launches of a device, as its observer, where self stays. */
void variants_init(struct variants *self, struct healcl_device *device);
void variants_release(struct variants *self);

/* Whether a plan has a step that the device runs in a way which no call has had so far. */
bool variants_are_new(const struct variants *self, const struct plan *plan);

/* Ends a call, which was right or not, of such a plan: its ways are not new any more. Notes what
 * keeps other variants from running its steps. */
void variants_end_call(struct variants *self, const struct plan *plan, bool is_right);

/* Why a row has no kernel. */
const char *variant_row_reason(const struct variants *self, const struct variant_row *row);

#endif
