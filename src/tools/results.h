/* Transcripts in memory, their plans, and their results, which are kept and compared. */
#ifndef HEALCL_TOOLS_RESULTS_H
#define HEALCL_TOOLS_RESULTS_H

#include "run/run.h"

struct planned {
    char *text;
    struct source source;
    struct plan *plan; /* NULL: the transcript was refused */
};

/* Plans a transcript, and takes ownership of its text. The caller releases it, also on failure.
 * Errors: as of plans. */
enum healcl_status planned_init(struct planned *planned, char *text,
                                const struct operation_table *table,
                                const struct healcl_plan_options *options,
                                struct healcl_error *error);
void planned_release(struct planned *planned);

enum { RESULTS_MAX = 64 };

struct results {
    size_t count;
    struct result {
        const char *name; /* name of the tensor, as in the plan */
        enum dtype dtype;
        size_t size;   /* bytes */
        char *bytes;   /* packed, in C order */
    } of[RESULTS_MAX]; /* in the order of the plan's downloads */
    uint64_t dropped_digits;
    bool refuses_data; /* it was refused because of its data, not a limit of the device */
};

/* The `take` function of a sink whose context is a struct results. */
enum healcl_status results_take(void *context, const struct step *step, const void *data,
                                struct healcl_error *error);

/* Another one: HEALCL_DIFFERENT if a result differs from what the transcript expects. */
enum healcl_status results_expect(void *context, const struct step *step, const void *data,
                                  struct healcl_error *error);

/* Runs a plan and keeps the results. device: NULL for the host reference. The caller releases the
 * results, also on failure. images: contents of the plan's first image_count storages after its
 * constants; or NULL. */
enum healcl_status results_run(struct results *results, struct healcl_device *device,
                               const struct plan *plan, void *const *images, uint32_t image_count,
                               struct healcl_error *error);
void results_release(struct results *results);

/* Runs a plan on a device several times, as a session does: uploads stay, and launches are
 * recorded. Compares each result with the one that the transcript expects. Errors:
 * HEALCL_DIFFERENT. */
#define RESULTS_DIFFER "results differ: healcl diagnose shows where"
enum healcl_status results_repeat(struct healcl_device *device, const struct plan *plan, int runs,
                                  struct healcl_error *error);

/* Finds the first difference of two arrays. */
struct difference {
    bool found;
    int64_t element;
    int64_t actual, expected;
};

struct difference difference_of(enum dtype dtype, const char *actual, const char *expected,
                                size_t bytes);

#endif
