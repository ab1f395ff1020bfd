/*
 * Operations of vendors' manifests, by the calls of them in transcripts: every JSON file in
 * DIR/examples of a folder DIR of manifests. From each call others are derived (variation.c), which
 * the operation's kernel and its body make on a device, and its body on the host reference.
 */
#ifndef HEALCL_TOOLS_EXAMPLE_H
#define HEALCL_TOOLS_EXAMPLE_H

#include "tools/problem_check.h"
#include "vendor/vendor.h"

/* The maker of a call on a device. */
enum example_side { EXAMPLE_KERNEL, EXAMPLE_BODY, EXAMPLE_SIDES };

extern const char *const example_side_names[];

/* Operation i of those of manifests that a table has; NULL behind the last one. table may be NULL.
 */
const struct operation *example_operation_at(const struct operation_table *table, size_t i);
static inline const struct vendor_operation *example_vendor(const struct operation *operation)
{
    return operation->context;
}
/* By name, with or without an underscore in front; NULL where there is none. */
const struct operation *example_operation_find(const struct operation_table *table,
                                               const char *name);

/* A call in a transcript. */
struct example {
    struct example *next;              /* by folder, file and entry */
    const struct operation *operation; /* of the manifests' table */
    const char *file;                  /* without the folder examples/ */
    size_t entry;
    /* Without a table, which is that of a side. A tensor that the operation makes is its last
     * parameter here, so that it can be placed too. */
    struct problem problem;
    struct problem_data data; /* packed: what the tensors held; NULL for a tensor that is made */
};

struct examples {
    struct arena *arena;
    struct operation_table *tables[EXAMPLE_SIDES]; /* with kernels, and with bodies alone */
    struct example *first;
    struct kernel_uses *uses; /* counted where calls are checked; or NULL */
};

/* Reads the examples of all folders, and has the reference run them. manifests may be NULL: there
 * are none then. The caller releases them, also where this fails. Errors, each with the file: as of
 * transcripts, HEALCL_DIFFERENT where a result is not the expected one, HEALCL_NO_MEMORY. */
enum healcl_status examples_read(struct examples *examples,
                                 const struct healcl_operations *manifests,
                                 struct healcl_error *error);
void examples_release(struct examples *examples);

/* The first example of an operation in a list; NULL where there is none. */
const struct example *example_from(const struct example *first, const struct operation *operation);

struct example_check {
    const struct operation *operation;
    struct check_counts of[EXAMPLE_SIDES]; /* compared with the body on the host reference */
    /* The first that has run, or that of the first wrong call; without a name where none has. */
    struct manifest_kernel kernel;
    const char *unchecked;   /* why nothing is compared; a literal, or NULL */
    struct healcl_error why; /* of the first call that is not right, or else of the first that is
                                beyond the device; the caller clears it */
    uint64_t nanoseconds;
};

/* Makes calls of check->operation and fills in the rest. A side that was wrong in one layout that
 * a kernel gets as it is makes no more of them. */
void example_check(struct healcl_device *device, const struct examples *examples,
                   struct example_check *check);

#endif
