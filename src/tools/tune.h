/*
 * Finds the fastest kernels of a device by measuring them.
 *
 * One subject after another is decided: tunables that all families share, then the style of each
 * family that has several. Every alternative of a subject runs the same few cases of `healcl
 * bench`, whose results are compared with the host reference's first. The one that takes least time
 * is chosen, and is in force for the subjects that follow. One that is wrong, fails or is refused
 * is not.
 *
 * Kernels of manifests follow: a subject for each operation, measured by its examples, and for the
 * replacements of each kind of step, measured by the operations that become such steps. Their
 * alternatives are all combinations of a kernel's tunables, of all kernels for the device.
 *
 * Other work of the machine only adds to a time, so the fastest of several samples counts. Where
 * their median is further from it than TUNE_SPREAD_MOST, the machine is too busy to choose.
 */
#ifndef HEALCL_TOOLS_TUNE_H
#define HEALCL_TOOLS_TUNE_H

#include "tools/bench.h"

enum { TUNE_ALTERNATIVES_MAX = 256, TUNE_CHOICE_SIZE = 160, TUNE_REASON_SIZE = 640 };

enum {
    TUNE_SPREAD_MOST = 10, /* percent */
    TUNE_TRIES = 3         /* of an alternative whose spread is larger */
};

struct tune_alternative {
    const char *subject;               /* "local_size", "transform" ... */
    char choice[TUNE_CHOICE_SIZE];     /* as HEALCL_TUNING takes it; of manifests a kernel's name */
    const char *kernel;                /* of a manifest: its alternative's own name; or NULL */
    const struct operation *operation; /* that it is for; NULL: it replaces a step's kernels */
    uint64_t of; /* what is chosen from, and the choice, as in struct kernel_choices */
    uint32_t number;
    enum tune_outcome { TUNE_NOT_MEASURED, TUNE_RIGHT, TUNE_WRONG, TUNE_FAILED } outcome;
    /* Sums over its cases, of an operation each: of fastest samples and of medians; only where
     * right. */
    double nanoseconds, median_nanoseconds;
    bool chosen;
    char reason[TUNE_REASON_SIZE]; /* why wrong or failed, else "" */
};

struct tune_report {
    struct tune_alternative alternatives[TUNE_ALTERNATIVES_MAX]; /* by subject */
    size_t count;
    struct device_tuning tuning;   /* all that was chosen */
    struct kernel_choices choices; /* the same of manifests */
};

/* bench_run; tests put another one in its place. */
typedef enum healcl_status tune_bench(struct healcl_device *device,
                                      const struct bench_operation *operation,
                                      const struct bench_settings *given,
                                      const struct bench_options *options,
                                      struct bench_result *result, struct healcl_error *error);

struct tune_options {
    uint64_t memory_limit;               /* as in struct bench_options */
    const struct operation_table *table; /* with the manifests that were listed; or NULL */
    const struct examples *examples;     /* of the manifests' operations; or NULL, with table */
    bool force;                          /* chooses whatever the spread */
    tune_bench *bench;                   /* NULL: bench_run */
    /* Called before an alternative is measured; may be NULL. */
    void (*measuring)(void *context, const struct tune_alternative *alternative);
    void *context;
};

/* Lists what kernels of a table's manifests have to choose from on the device, behind what is
 * listed already: of operations that have examples and a body to compare with. only: the name of
 * the one operation, or kind of step, with or without an underscore in front; or NULL. */
void tune_list_kernels(const struct device_info *info, const struct operation_table *table,
                       const struct examples *examples, const char *only,
                       struct tune_report *report);

/* By outcome: "right", "wrong", "failed", "not measured". */
extern const char *const tune_outcome_names[];

/* Lists what is to be measured on a device of that kind; nothing is chosen yet. The first
 * alternative of each subject is the default. only: the one subject, whose choice is added to what
 * was cached before; or NULL. */
void tune_list(const struct device_info *info, const char *only, struct tune_report *report);

/* Reads what is kept by now into a report, whose choices are then to be made again. only: as of
 * tune_list. */
void tune_read_kept(const struct device_info *info, const char *only, struct tune_report *report);

/* Makes the choice of an alternative in the report's tuning, or in its choices. */
enum healcl_status tune_choose(const struct device_info *info,
                               const struct tune_alternative *alternative,
                               struct tune_report *report, struct healcl_error *error);

/* Median over fastest, less 1, in percent; 0 where it was not measured. */
double tune_spread(const struct tune_alternative *alternative);

/* Whether an alternative of that subject was chosen. */
bool tune_is_decided(const struct tune_report *report, const char *subject);

/*
 * Measures what the report lists, and chooses. *device is closed and opened anew, by its indices,
 * where an alternative has failed; it is NULL if that fails. Its tuning is then the chosen one.
 *
 * A subject of manifests of which no alternative is right is not decided. Errors: HEALCL_DEVICE
 * where no alternative of another subject is right, or where the machine is too busy: an
 * alternative's spread is above the limit in each try.
 */
enum healcl_status tune_measure(struct healcl_device **device, const struct tune_options *options,
                                struct tune_report *report, struct healcl_error *error);

#endif
