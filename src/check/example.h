/*
 * Operations of vendors' manifests by the examples that these give: a small transcript in memory
 * for each, whose tensors are contiguous or strided views, and which the operation's kernel, its
 * body on the device and its body on the host reference can run.
 */
#ifndef HEALCL_CHECK_EXAMPLE_H
#define HEALCL_CHECK_EXAMPLE_H

#include "check/problem_check.h"
#include "extensions/vendor.h"
#include "run/run.h"

/* What runs an example on a device. */
enum example_side { EXAMPLE_KERNEL, EXAMPLE_BODY, EXAMPLE_SIDES };

/* "kernel", "body" */
const char *example_side_name(enum example_side side);

/* Operation i of those of manifests that a table has; NULL behind the last one. table may be NULL.
 */
const struct operation *example_operation_at(const struct operation_table *table, size_t i);
const struct vendor_operation *example_vendor(const struct operation *operation);
/* By name, with or without an underscore in front; NULL where there is none. */
const struct operation *example_operation_find(const struct operation_table *table,
                                               const char *name);

enum { EXAMPLE_PREPARE, EXAMPLE_OPERATE, EXAMPLE_RESULT, EXAMPLE_SEGMENTS };

/* An example's transcript, planned, and its data. */
struct example_script {
    struct operation_table
        *bodies; /* the operation without its kernels; NULL: the manifests' own */
    struct vendor_operation without_kernels;
    char *text;
    struct source source;
    struct plan *plan;
    void *data[PARAMETERS_MAX]; /* of its tensors, as they are uploaded */
    struct upload *uploads;     /* for an executor of the plan */
};

/* The caller releases the script, also where this fails. number: of the example. by_body: no kernel
 * of a manifest runs. Errors: HEALCL_REFUSED as of plans, HEALCL_NO_MEMORY. */
enum healcl_status example_script_init(struct example_script *script,
                                       const struct operation_table *table,
                                       const struct operation *operation, uint32_t number,
                                       bool is_strided, bool by_body, struct healcl_error *error);
void example_script_release(struct example_script *script);

/* The kernel of the operation that runs its step on the device, as vendor_kernel_for tells of it;
 * and its name, or NULL. */
struct manifest_kernel example_manifest_kernel(const struct example_script *script,
                                               const struct healcl_device *device);
const char *example_kernel(const struct example_script *script, const struct healcl_device *device);
bool example_has_kernel(const struct example_script *script, const struct healcl_device *device);

struct example_check {
    const struct operation *operation;
    struct check_counts of[EXAMPLE_SIDES]; /* compared with the body on the host reference */
    /* That has run first, or of the first wrong call; without a name where none has. */
    struct manifest_kernel kernel;
    const char *unchecked;   /* why nothing is compared; a literal, or NULL */
    struct healcl_error why; /* of the first call that is not right, or else of the first that is
                                beyond the device; the caller clears it */
    uint64_t nanoseconds;
};

/* Whether nothing is wrong or has failed. */
bool example_is_right(const struct example_check *check);

/* Runs all examples of check->operation, contiguous and strided, and fills in the rest. */
void example_check(struct healcl_device *device, const struct operation_table *table,
                   struct example_check *check);

/* Compares one example, for what is measured. Errors: HEALCL_DIFFERENT, or why it cannot run. */
enum healcl_status example_verify(struct healcl_device *device, const struct operation_table *table,
                                  const struct operation *operation, uint32_t number,
                                  bool is_strided, bool by_body, struct healcl_error *error);

#endif
