/* Tests operations of vendors' manifests with their examples: calls in transcripts. The examples
 * are every JSON file in DIR/examples, for a folder DIR of manifests. variation.c derives further
 * calls from each one. The device runs them with the operation's kernel and with its body. The host
 * reference runs the body. */
#ifndef HEALCL_TOOLS_EXAMPLE_H
#define HEALCL_TOOLS_EXAMPLE_H

#include "tools/problem_check.h"

/* What computes a call on a device. */
enum example_side { EXAMPLE_KERNEL, EXAMPLE_BODY, EXAMPLE_SIDES };

extern const char *const example_side_names[];

/* Returns operation i of a table's manifests; NULL after the last one. table may be NULL. */
const struct operation *example_operation_at(const struct operation_table *table, size_t i);
static inline const struct vendor_operation *example_vendor(const struct operation *operation)
{
    return operation->context;
}
/* Finds an operation by its name, with or without a leading underscore. Returns NULL if there is
 * none. */
const struct operation *example_operation_find(const struct operation_table *table,
                                               const char *name);

/* A call in a transcript. */
struct example {
    struct example *next;              /* sorted by folder, file and entry */
    const struct operation *operation; /* in the table of the manifests */
    const char *file;                  /* without the folder examples/ */
    size_t entry;
    /* It has no table: that depends on the side. A tensor that the operation makes is the last
     * parameter here, so that it can be placed too. */
    struct problem problem;
    struct problem_data data; /* packed elements of the tensors; NULL for one that is made */
};

struct examples {
    struct arena *arena;
    struct operation_table *tables[EXAMPLE_SIDES]; /* with kernels, and with bodies only */
    struct example *first;
    struct kernel_uses *uses; /* counts of kernel use in checks; or NULL */
};

/* Reads the examples of all folders, and runs them on the reference. manifests may be NULL: then
 * there are none. The caller releases them, also on failure. Errors, each with the file: as of
 * transcripts; HEALCL_DIFFERENT if a result is not the expected one; HEALCL_NO_MEMORY. */
enum healcl_status examples_read(struct examples *examples,
                                 const struct healcl_operations *manifests,
                                 struct healcl_error *error);
void examples_release(struct examples *examples);

/* The first example of an operation in a list; NULL if there is none. */
const struct example *example_from(const struct example *first, const struct operation *operation);

struct example_check {
    const struct operation *operation;
    /* Results compared with the body on the host reference. */
    struct check_counts of[EXAMPLE_SIDES];
    /* The first kernel that ran, or the kernel of the first wrong call; without a name if none
     * ran. */
    struct manifest_kernel kernel;
    const char *unchecked; /* reason why nothing is compared, a literal; or NULL */
    /* The error of the first call that is not right, else of the first that exceeds the device. The
     * caller clears it. */
    struct healcl_error why;
    uint64_t nanoseconds;
};

/* Checks calls of check->operation and fills in the rest. A side that is wrong in a layout that its
 * kernel takes directly is not checked further. */
void example_check(struct healcl_device *device, const struct examples *examples,
                   struct example_check *check);

#endif
