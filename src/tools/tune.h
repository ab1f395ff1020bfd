/*
 * Finds the fastest kernels of a device by measuring them.
 *
 * Subjects are decided one after the other: first the tunables that all families share, then the
 * style of each family with several styles. All alternatives of a subject run the same few cases of
 * `healcl bench`. Their results are first compared with the host reference's. The fastest
 * alternative is chosen, and used for the following subjects. An alternative that is wrong, fails
 * or is refused is never chosen.
 *
 * Then come kernels of manifests. Each operation is a subject, measured with its examples. The
 * replacements of a kind of step are a subject too, measured with the operations that become such
 * steps. The alternatives are all combinations of tunables of all kernels for the device.
 *
 * Other load on the machine only increases a time, so the fastest of several samples counts. If
 * their median exceeds it by more than TUNE_SPREAD_MOST, the machine is too busy to choose.
 */
#ifndef HEALCL_TOOLS_TUNE_H
#define HEALCL_TOOLS_TUNE_H

#include "tools/bench.h"

enum { TUNE_ALTERNATIVES_MAX = 256, TUNE_CHOICE_SIZE = 160, TUNE_REASON_SIZE = 640 };

enum {
    TUNE_SPREAD_MOST = 10, /* percent */
    TUNE_TRIES = 3         /* attempts for an alternative whose spread is larger */
};

struct tune_alternative {
    const char *subject;           /* "local_size", "transform" ... */
    char choice[TUNE_CHOICE_SIZE]; /* as in HEALCL_TUNING; for manifests a kernel's name */
    const char *kernel;            /* name of a manifest kernel's alternative; or NULL */
    /* The kernel's operation; NULL: it replaces a step's kernels. */
    const struct operation *operation;
    uint64_t of; /* the subject and the choice, as in struct kernel_choices */
    uint32_t number;
    enum tune_outcome { TUNE_NOT_MEASURED, TUNE_RIGHT, TUNE_WRONG, TUNE_FAILED } outcome;
    /* Sums over its cases of the time of one operation: of the fastest samples, and of medians.
     * Only set if the outcome is right. */
    double nanoseconds, median_nanoseconds;
    bool chosen;
    char reason[TUNE_REASON_SIZE]; /* why it is wrong or failed, else "" */
};

struct tune_report {
    struct tune_alternative alternatives[TUNE_ALTERNATIVES_MAX]; /* sorted by subject */
    size_t count;
    struct device_tuning tuning;   /* all that was chosen */
    struct kernel_choices choices; /* the same for kernels of manifests */
};

/* The type of bench_run, which tests replace. */
typedef enum healcl_status tune_bench(struct healcl_device *device,
                                      const struct bench_operation *operation,
                                      const struct bench_settings *given,
                                      const struct bench_options *options,
                                      struct bench_result *result, struct healcl_error *error);

struct tune_options {
    uint64_t memory_limit;               /* as in struct bench_options */
    const struct operation_table *table; /* the table that was listed; or NULL */
    const struct examples *examples;     /* of the manifests' operations; or NULL if table is */
    bool force;                          /* chooses even if the spread is too large */
    tune_bench *bench;                   /* NULL: bench_run */
    /* Called before each measurement of an alternative; may be NULL. */
    void (*measuring)(const struct tune_alternative *alternative);
};

/* Appends the alternatives of a table's manifest kernels for the device. It lists only operations
 * with examples and a body to compare with. only: the name of one operation or kind of step, with
 * or without a leading underscore; NULL: all. */
void tune_list_kernels(const struct device_info *info, const struct operation_table *table,
                       const struct examples *examples, const char *only,
                       struct tune_report *report);

/* By outcome: "right", "wrong", "failed", "not measured". */
extern const char *const tune_outcome_names[];

/* Lists the alternatives to measure on a device of this kind. Nothing is chosen yet. The first
 * alternative of each subject is the default. only: the subject to tune, whose choice is added to
 * cached choices; NULL: all. */
void tune_list(const struct device_info *info, const char *only, struct tune_report *report);

/* Reads cached choices into a report, except those to be made again. only: as in tune_list. */
void tune_read_kept(const struct device_info *info, const char *only, struct tune_report *report);

/* Stores the choice of an alternative in the report's tuning or choices. */
enum healcl_status tune_choose(const struct device_info *info,
                               const struct tune_alternative *alternative,
                               struct tune_report *report, struct healcl_error *error);

/* Median divided by fastest, minus 1, in percent; 0 if it was not measured. */
double tune_spread(const struct tune_alternative *alternative);

/* Whether an alternative of this subject was chosen. */
bool tune_is_decided(const struct tune_report *report, const char *subject);

/*
 * Measures the alternatives in the report, and chooses. If an alternative fails, *device is closed
 * and opened again by its indices. *device is NULL if that fails. Afterwards the device has the
 * chosen tuning.
 *
 * A subject of manifests remains undecided if no alternative is right. Errors: HEALCL_DEVICE if no
 * alternative of another subject is right, or if the machine is too busy: the spread of an
 * alternative is above the limit in each attempt.
 */
enum healcl_status tune_measure(struct healcl_device **device, const struct tune_options *options,
                                struct tune_report *report, struct healcl_error *error);

#endif
