/*
 * Finding out by measuring how kernels are best shaped on a device.
 *
 * One subject after another is decided: tunables that all families share, then the variant of each
 * family that has several. Every alternative of a subject runs the same few cases of `healcl
 * bench`, whose results are compared with the host reference's first; the one that takes least time
 * is chosen, and is in force for the subjects that follow. One that is wrong or fails, or that
 * the device refuses, is not.
 */
#ifndef HEALCL_RUN_TUNE_H
#define HEALCL_RUN_TUNE_H

#include "run/bench.h"

enum { TUNE_ALTERNATIVES_MAX = 64, TUNE_CHOICE_SIZE = 80, TUNE_REASON_SIZE = 640 };

struct tune_alternative {
    const char *subject;           /* "local_size", "transform" ... */
    char choice[TUNE_CHOICE_SIZE]; /* as HEALCL_TUNING takes it */
    enum tune_outcome { TUNE_NOT_MEASURED, TUNE_RIGHT, TUNE_WRONG, TUNE_FAILED } outcome;
    double nanoseconds; /* of its cases, an operation each; only where right */
    bool chosen;
    char reason[TUNE_REASON_SIZE]; /* why wrong or failed, else "" */
};

struct tune_report {
    struct tune_alternative alternatives[TUNE_ALTERNATIVES_MAX]; /* by subject */
    size_t count;
    struct device_tuning tuning; /* all that was chosen */
};

struct tune_options {
    uint64_t memory_limit; /* as in struct bench_options */
    /* Called before an alternative is measured; may be NULL. */
    void (*measuring)(void *context, const struct tune_alternative *alternative);
    void *context;
};

/* "right", "wrong", "failed", "not measured" */
const char *tune_outcome_name(enum tune_outcome outcome);

/* Lists what is to be measured on a device of that kind; nothing is chosen yet, and the tuning is
 * the default. The first alternative of each subject is the default. */
void tune_list(const struct device_info *info, struct tune_report *report);

/*
 * Measures what the report lists, and chooses. *device is closed and opened anew, by its indices,
 * where an alternative has failed; it is NULL if that fails. Its tuning is then the chosen one.
 * Errors: HEALCL_DEVICE where no alternative of a subject is right, HEALCL_NO_MEMORY.
 */
MUST_CHECK enum healcl_status tune_measure(struct healcl_device **device,
                                           const struct tune_options *options,
                                           struct tune_report *report, struct healcl_error *error);

#endif
