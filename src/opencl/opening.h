/*
 * Listing, opening and closing of devices (healcl_device_close). Opening also loads cached tunings
 * and self-test results, programs, and packages.
 */
#ifndef HEALCL_OPENCL_OPENING_H
#define HEALCL_OPENCL_OPENING_H

#include "opencl/programs.h"

/* Lists the devices only. An empty list is not an error: *count is 0. A platform that cannot list
 * its devices is an error only if every other platform also fails: "platform 0 NAME: clGetDeviceIDs
 * failed: ...". The list is freed with free(). packaged: programs come from a package, so devices
 * without a compiler can be used. */
enum healcl_status device_list(const struct opencl *cl, bool packaged, struct device_info **list,
                               size_t *count, struct healcl_error *error);

/* As healcl_device_open, but without the self-test. cl must outlive the device. */
enum healcl_status device_open(const struct opencl *cl, const char *selector,
                               struct healcl_device **device, struct healcl_error *error);

/* Opens a handle for another thread, on the same context as another handle. It has its own queues,
 * kernels and pool, and the current tuning of that handle. It may outlive that handle. The two
 * handles take turns: device_turn_begin. */
enum healcl_status device_open_beside(struct healcl_device *first, struct healcl_device **device,
                                      struct healcl_error *error);

/* Memory shared by a run and the process that compiles ahead of it: the kernel or program that each
 * of them is compiling, identified by a hash; 0 for none. */
struct compile_board {
    _Atomic uint64_t run_hash, ahead_hash;
};

/* Options that the command line sets when it opens a device. Callers of the library cannot. */
struct device_opening {
    struct trace *trace;          /* for spans of the self-test; or NULL */
    struct compile_board *board;  /* shared with the process that compiles ahead; or NULL */
    const char *builder;          /* a command: see device_build_ahead; or NULL */
    struct program_lister lister; /* for device_build_ahead; list may be NULL */
};

/* As device_open, with all options. Then runs the self-test and caches its result. Skips the test
 * if the cache says that the device has passed. opening may be NULL. Errors: those of both. */
enum healcl_status device_open_for_run(const struct opencl *cl,
                                       const struct healcl_device_options *options,
                                       const struct device_opening *opening,
                                       struct healcl_device **device, struct healcl_error *error);

/* ---------------------------------------------------------------- self_test.c: known answers of a
 * device's arithmetic, loads, stores and atomics. A device that fails is not opened by
 * healcl_device_open. The result is cached for a device and driver. */

/* Runs the self-test even if its result is cached, and notes the limit of the device's loops. If an
 * answer is wrong, no binary of the programs that it built stays in the cache. If a cached binary
 * gave it, the self-test is repeated with a program built from source. Errors: HEALCL_DEVICE, also
 * for a wrong answer: device 0:1 NAME fails its self-test: mul_hi(0x…, 0x…) is 0x…, not 0x… */
enum healcl_status self_test_run(struct healcl_device *device, struct healcl_error *error);

enum self_test_outcome { SELF_TEST_NOT_RUN, SELF_TEST_PASSED, SELF_TEST_FAILED };

/* "not run", "passed", "failed" */
const char *self_test_outcome_name(enum self_test_outcome outcome);

/* The kept result. reason: of a failure, else "". */
enum { SELF_TEST_REASON_SIZE = 656 };
enum self_test_outcome self_test_read_cached(const struct device_info *info,
                                             char reason[SELF_TEST_REASON_SIZE]);

/* Fills in what is cached of a test that was passed: loop_limit and launches_overlap. */
void self_test_take_findings(struct device_info *info);

#endif
