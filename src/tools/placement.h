/* The memory layout of a problem's tensors. Each tensor is a view of a storage, which may be larger
 * than the tensor and shared with other tensors. */
#ifndef HEALCL_TOOLS_PLACEMENT_H
#define HEALCL_TOOLS_PLACEMENT_H

#include "tools/problem.h"

enum arrangement {
    ARRANGEMENT_CONTIGUOUS, /* every tensor is a whole storage */
    ARRANGEMENT_OFFSET,     /* one row after the start of its storage, and one before the end */
    ARRANGEMENT_STRIDED,    /* every other element of the last axis */
    ARRANGEMENT_TRANSPOSED, /* axes in reverse order */
    ARRANGEMENT_BROADCAST,  /* an axis of the inputs repeats one element (stride 0) */
    ARRANGEMENT_IN_PLACE,   /* the output is also an input */
    ARRANGEMENT_OVERLAP,    /* the output partly overlaps an input */
    ARRANGEMENT_COUNT,
    /* Not in the coverage table: */
    ARRANGEMENT_RANDOM = ARRANGEMENT_COUNT, /* any layout for each tensor */
    ARRANGEMENT_BESIDE, /* the output and an input are adjacent in one storage */
};

const char *arrangement_name(enum arrangement arrangement);

/* Whether a problem can have this arrangement. */
bool arrangement_applies(const struct problem *problem, enum arrangement arrangement);

struct place {
    uint32_t storage;
    struct layout layout;
};

struct placed_storage {
    enum dtype dtype;
    int64_t elements;
    int64_t before, after; /* further elements before and after: see placement_guard */
};

struct placement {
    uint32_t storage_count;
    struct placed_storage storages[PARAMETERS_MAX];
    struct place places[PARAMETERS_MAX]; /* one for each tensor of the problem */
};

void placement_make(struct placement *placement, const struct problem *problem,
                    enum arrangement arrangement, uint64_t variant, struct random *random);

/* Puts each storage into a larger one, to test kernels of manifests. Elements around it must not be
 * written, and must not change a result. Offsets differ between tensors, except for
 * ARRANGEMENT_CONTIGUOUS, in which all offsets are 0. */
void placement_guard(struct placement *placement, enum arrangement arrangement);

/* Bytes of a storage, including the elements around it. */
uint64_t placement_bytes(const struct placement *placement, uint32_t storage);

/* Writes the call of a problem. Its tensors are named t0, t1 and so on; a tensor that it makes is
 * named "made". */
void problem_put_call(struct writer *writer, const struct problem *problem);

/* Returns the transcript of the call, to be freed with free(). An `empty` makes each storage. At
 * the end the storages are downloaded, then the tensor that the call makes. */
char *placement_transcript(const struct placement *placement, const struct problem *problem);

#endif
