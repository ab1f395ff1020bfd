/* Results of plans, kept and compared. */
#ifndef HEALCL_TOOLS_RESULTS_H
#define HEALCL_TOOLS_RESULTS_H

#include "run/run.h"

enum { RESULTS_MAX = PARAMETERS_MAX + 1 };

struct results {
    size_t count;
    struct result {
        enum dtype dtype;
        size_t size;   /* bytes */
        char *bytes;   /* packed, in C order */
    } of[RESULTS_MAX]; /* in the order of the plan's downloads */
    uint64_t dropped_digits;
    bool refuses_data; /* where it was refused: not for what a device lacks */
};

/* Takes a result for a sink, whose context is a struct results. */
enum healcl_status results_take(void *context, const struct step *step, const void *data,
                                struct healcl_error *error);

/* The contents of a plan's first storages behind its constants. */
struct images {
    uint32_t count;
    void *bytes[PARAMETERS_MAX];
};

/* Runs a plan on a device, or where it is NULL on the host reference, and keeps the results. The
 * caller releases them, also where this fails. images: what storages hold before; or NULL. */
enum healcl_status results_run(struct results *results, struct healcl_device *device,
                               const struct plan *plan, const struct images *images,
                               struct healcl_error *error);
void results_release(struct results *results);

/* The first difference of two arrays. */
struct difference {
    bool found;
    int64_t element;
    int64_t actual, expected;
};

struct difference difference_of(enum dtype dtype, const char *actual, const char *expected,
                                size_t bytes);

#endif
