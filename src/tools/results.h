/* Transcripts in memory, their plans, and results that are kept and compared. */
#ifndef HEALCL_TOOLS_RESULTS_H
#define HEALCL_TOOLS_RESULTS_H

#include "run/run.h"

struct planned {
    char *text;
    struct source source;
    struct plan *plan; /* NULL: it is refused */
};

/* Plans a transcript, whose text it takes. The caller releases it, also where this fails. Errors:
 * as of plans. */
enum healcl_status planned_init(struct planned *planned, char *text,
                                const struct operation_table *table,
                                const struct healcl_limits *limits, struct healcl_error *error);
void planned_release(struct planned *planned);

enum { RESULTS_MAX = 64 };

struct results {
    size_t count;
    struct result {
        const char *name; /* of the tensor, as the plan has it */
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

/* Runs a plan on a device, or where it is NULL on the host reference, and keeps the results. The
 * caller releases them, also where this fails. images: contents of the plan's first storages behind
 * its constants, so many; without any, a device runs the plan RESULTS_RUNS times, as a session
 * does, and the results are those of the last run, of launches that were recorded. */
enum { RESULTS_RUNS = 4 };
enum healcl_status results_run(struct results *results, struct healcl_device *device,
                               const struct plan *plan, void *const *images, uint32_t image_count,
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
