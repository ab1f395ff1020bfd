/*
 * The self-test: known answers of a device's arithmetic, loads, stores and atomics. A device that
 * fails it is not opened by healcl_device_open. What came out is cached for a device and driver, so
 * that it runs once.
 */
#ifndef HEALCL_OPENCL_SELF_TEST_H
#define HEALCL_OPENCL_SELF_TEST_H

#include "opencl/device.h"

/* Runs the self-test, whatever is cached, and notes what it finds of the device's loops. Where it
 * fails, no binary of the programs that are built stays in the cache; a failure with one that was
 * there counts only if the source, built anew, fails too. Errors: HEALCL_DEVICE, also where an
 * answer is wrong: device 0:1 NAME fails its self-test: mul_hi(0x…, 0x…) is 0x…, not 0x… */
enum healcl_status self_test_run(struct healcl_device *device, struct healcl_error *error);

/* Runs it and keeps what came out; trace: for its spans, or NULL. */
enum healcl_status self_test_run_and_cache(struct healcl_device *device, struct trace *trace,
                                           struct healcl_error *error);

/* Whether the test that was passed tried the device's way to multiply vectors. */
bool self_test_covers(const struct healcl_device *device);

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
