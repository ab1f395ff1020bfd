/*
 * healcl: runs HEAL transcripts on OpenCL devices and proves every result.
 *
 * The whole way of a file is three calls: open (scan, decode and plan; every error that can be
 * known without a device is found here), run (on a device, or on the host reference), close.
 *
 * Conventions
 * - A function that can fail returns an enum healcl_status and takes a struct healcl_error, which
 *   may be NULL. On failure nothing that the function would have returned is left behind.
 * - Handles are opaque and belong to the caller until the function named ..._close or ..._free.
 * - Handles are not locked: one thread at a time for each handle and what was made from it. Threads
 *   may work on different handles at the same time; opening devices takes turns.
 */
#ifndef HEALCL_H
#define HEALCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
/* What is declared here, and nothing else, is exported. */
#pragma GCC visibility push(default)
#define HEALCL_MUST_CHECK __attribute__((warn_unused_result))
#else
#define HEALCL_MUST_CHECK
#endif

/* ---------------------------------------------------------------- errors */

enum healcl_status {
    HEALCL_OK,
    HEALCL_DIFFERENT, /* a result differs from the one the transcript expects */
    HEALCL_USAGE,     /* a bad option, an unknown device, a file that cannot be read or written */
    HEALCL_REFUSED,   /* the transcript is malformed, or its data break an operation's rules */
    HEALCL_DEVICE,    /* the device or OpenCL failed */
    HEALCL_NO_MEMORY, /* the host ran out of memory */
};

struct healcl_error {
    enum healcl_status status;
    int opencl_code;  /* the cl_int behind HEALCL_DEVICE, else 0 */
    const char *file; /* the place in healcl's source that noticed */
    int line;
    char message[640]; /* one line, no full stop: "entry 17 (_modmul_ttt): argument 'b': ..." */
    char *detail;      /* several lines, or NULL: the log of a failed kernel build; owned here */
};

/* Frees what the error owns and makes it empty. */
void healcl_error_clear(struct healcl_error *error);

/* A word for a status, e.g. "refused". */
const char *healcl_status_name(enum healcl_status status);

/* "0.1.0" */
const char *healcl_version(void);

/* ---------------------------------------------------------------- transcripts */

struct healcl_transcript;

struct healcl_limits {
    /* No tensor, and no set of live tensors, may be larger, with what an operation needs beside
     * them in proportion to views: the packed copy of a download that is not contiguous, the tables
     * of a CRT. 0: 2^63-1 */
    uint64_t memory_bytes;
    /* Elements that no operation may visit more of: the terms of its sums, n (1 + log2 n) for a
     * transform of length n, what is copied or compared; however few of them are stored. 0: 2^42 */
    uint64_t work;
};

/*
 * Maps a transcript, checks it whole and plans it. limits may be NULL.
 * Errors: HEALCL_USAGE where the file cannot be read, HEALCL_REFUSED with entry, operation and
 * argument in the message, HEALCL_NO_MEMORY.
 * The file stays mapped until the transcript is closed. Where it is cut before, or its disk fails,
 * the process gets SIGBUS, for which the library installs no handler (the program healcl does).
 */
HEALCL_MUST_CHECK enum healcl_status healcl_transcript_open(const char *path,
                                                            const struct healcl_limits *limits,
                                                            struct healcl_transcript **transcript,
                                                            struct healcl_error *error);
void healcl_transcript_close(struct healcl_transcript *transcript);

/* ---------------------------------------------------------------- devices */

struct healcl_device;

/*
 * Opens one OpenCL device. selector: "0:1" (platform and device index), part of a platform's name
 * or of what it calls its release ("pocl"), else part of a device's name, "cpu", "gpu" or "acc";
 * NULL or
 * "" for the environment's HEALCL_DEVICE, else the best device there is (GPU before accelerator
 * before CPU).
 * A device runs a self-test of its arithmetic when it is opened for the first time with its driver.
 * Errors: HEALCL_USAGE where nothing, or nothing usable, matches; HEALCL_DEVICE, also where the
 * self-test fails.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_device_open(const char *selector,
                                                        struct healcl_device **device,
                                                        struct healcl_error *error);
void healcl_device_close(struct healcl_device *device);

/* ---------------------------------------------------------------- runs */

/* What a repetition of a run is for. */
enum healcl_phase {
    HEALCL_WARMING_UP, /* the device compiles kernels, and runs each for the first time */
    HEALCL_MEASURING,  /* the times of segments */
    HEALCL_PROFILING,  /* the times of operations */
};

/* What a run calls while it works; all may be NULL. The strings live only during the call. */
struct healcl_observer {
    void *context;
    /* Called before each repetition: the number-th, from 1, of count of this phase. */
    void (*repetition)(void *context, enum healcl_phase phase, uint32_t number, uint32_t count);
    /* One line about a result that differs, or a warning. */
    void (*difference)(void *context, const char *line);
    void (*warning)(void *context, const char *line);
    /* Called before each segment, and within long ones. */
    void (*progress)(void *context, size_t segment, size_t segment_count, const char *name,
                     size_t step, size_t step_count);
};

struct healcl_run_options {
    bool no_verify; /* run, download, compare nothing */
    bool profile;   /* take the times of operations, on a device in further repetitions */
    /* Count the first repetition, also where kernels ran in it for the first time. Otherwise such a
     * one warms up the device, and its times are not among those of the report. */
    bool no_warm_up;
    uint32_t repeat;      /* 0 and 1: once */
    const char *dump_dir; /* write results as .npy files there, or NULL */
    struct healcl_observer observer;
};

enum healcl_verdict {
    HEALCL_NOTHING_TO_VERIFY,
    HEALCL_VERIFIED,
    HEALCL_DIFFERS,
};

struct healcl_operation_profile {
    const char *name;     /* of the operation, as in docs/OPS.md */
    uint64_t count;       /* how often it ran in one repetition */
    uint64_t nanoseconds; /* the median repetition's; 0 without profile */
};

struct healcl_segment_profile {
    const char *name; /* "" for operations outside of any segment */
    uint64_t operations;
    uint64_t bytes_up, bytes_down;
    uint64_t results, results_compared, results_different; /* of those of the whole */
    uint64_t nanoseconds; /* host's clock, from first enqueue to last result, median */
    /* With profile, medians of the repetitions that took the times of operations: the same, and of
     * that how long the device did nothing between two kernels: it had no command, or the driver
     * had not begun with the one it had. Both 0 with operations_by_host. */
    uint64_t profiled_nanoseconds;
    uint64_t without_command_nanoseconds, not_begun_nanoseconds;
    struct healcl_operation_profile *profiles;
    size_t profile_count;
};

struct healcl_report {
    enum healcl_verdict verdict;
    uint64_t results, results_compared, results_different;
    uint64_t dropped_digits;    /* values with gadget digits beyond g_exp, in one repetition */
    uint64_t device_bytes_peak; /* most bytes allocated on the device at one time */
    uint64_t
        compile_nanoseconds;  /* building programs and making kernels, in no repetition's time */
    uint64_t programs_built;  /* of kernels, from their source */
    uint64_t programs_loaded; /* of kernels, from binaries that an earlier process kept */
    uint64_t
        warm_up_nanoseconds; /* the repetition before those that count; 0 where there was none */
    uint64_t verify_nanoseconds; /* comparing results and writing them, in all repetitions */
    /* run_count times of a repetition with warm kernels, without verifying and building */
    uint64_t *run_nanoseconds;
    size_t run_count;
    /* The same of the further repetitions, behind those, in which a device took the times of
     * operations: 5 of them, or run_count if that is less. There are none on the reference. */
    uint64_t *profiled_nanoseconds;
    size_t profiled_count;
    /* Whether operations are timed by the host's clock: on the reference, and on a device whose
     * driver takes no times. There each command was waited for, and its time holds what that costs.
     */
    bool operations_by_host;
    struct healcl_segment_profile *segments;
    size_t segment_count;
};

/*
 * Runs a transcript on a device, or with device NULL on the host reference, and compares every
 * result that carries an expected tensor.
 * Returns HEALCL_OK with a report also where results differ (see verdict). Errors:
 * HEALCL_REFUSED for what only data reveal (an index out of range, a zero modulus in a tensor) and
 * for tensors larger than the device can hold, HEALCL_DEVICE, HEALCL_NO_MEMORY, HEALCL_USAGE
 * where dump_dir cannot be written. options may be NULL.
 */
HEALCL_MUST_CHECK enum healcl_status healcl_run(const struct healcl_transcript *transcript,
                                                struct healcl_device *device,
                                                const struct healcl_run_options *options,
                                                struct healcl_report **report,
                                                struct healcl_error *error);
void healcl_report_free(struct healcl_report *report);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
