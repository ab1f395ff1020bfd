/*
 * How the tensors of a problem lie in memory: each is a view of a storage that may be larger than
 * it on all sides, and that it may share with others. A transcript makes the views from whole
 * storages with get_slice, reshape, moveaxis and expand; here the same layouts are worked out
 * without the planner.
 */
#ifndef HEALCL_CHECK_PLACEMENT_H
#define HEALCL_CHECK_PLACEMENT_H

#include "check/problem.h"

enum arrangement {
    ARRANGEMENT_CONTIGUOUS, /* every tensor is a whole storage */
    ARRANGEMENT_OFFSET,     /* one row after the start of its storage, one before the end */
    ARRANGEMENT_STRIDED,    /* every other element of the last axis */
    ARRANGEMENT_TRANSPOSED, /* axes in reverse */
    ARRANGEMENT_BROADCAST,  /* an axis of the inputs repeats one element (stride 0) */
    ARRANGEMENT_IN_PLACE,   /* the output is an input */
    ARRANGEMENT_OVERLAP,    /* the output overlaps an input partly */
    ARRANGEMENT_COUNT,
    /* Not in the table: */
    ARRANGEMENT_RANDOM = ARRANGEMENT_COUNT, /* anything for each tensor */
    ARRANGEMENT_BESIDE, /* the output and an input side by side in one storage */
};

const char *arrangement_name(enum arrangement arrangement);

/* NULL, or why a problem has no such arrangement: "no input has the output's shape". */
const char *arrangement_excluded(const struct problem *problem, enum arrangement arrangement);

struct place {
    uint32_t storage;
    /* Storage axis i is the tensor's axis order[i]; moveaxis puts them right. */
    uint32_t order[LAYOUT_RANK];
    /* Along each axis of the tensor: elements of the storage around and between its own. */
    int64_t before[LAYOUT_RANK], after[LAYOUT_RANK], step[LAYOUT_RANK];
    bool repeated[LAYOUT_RANK]; /* one element, expanded */
    bool leading;               /* the storage has another axis of 3 in front; the second is it */
    bool flat;                  /* the storage has one axis; from start on, every flat_step-th */
    int64_t start, flat_step;
    struct layout layout; /* what comes of it */
};

struct placed_storage {
    enum dtype dtype;
    struct layout shape;
    int64_t before, after; /* elements around it, in the same memory: see placement_guard */
};

struct placement {
    uint32_t storage_count;
    struct placed_storage storages[PARAMETERS_MAX];
    struct place places[PARAMETERS_MAX]; /* of the problem's tensors */
    bool shared;                         /* two tensors share a storage */
    bool repeats;                        /* some axis is repeated */
};

void placement_make(struct placement *placement, const struct problem *problem,
                    enum arrangement arrangement, uint64_t variant, struct random *random);

/*
 * One part of an arrangement, for kernels that others have written. Part 0 is the whole of it;
 * those behind it have one tensor arranged and all others contiguous, or put the output into one
 * input after another. Each storage lies in a larger one: what is around it must not be written,
 * nor change a result. Offsets differ from tensor to tensor, but for ARRANGEMENT_CONTIGUOUS, where
 * all are 0. False behind the last part.
 */
bool placement_make_part(struct placement *placement, const struct problem *problem,
                         enum arrangement arrangement, uint32_t part, uint64_t variant,
                         struct random *random);

/* Bytes of a storage, with what is around it. */
uint64_t placement_bytes(const struct placement *placement, uint32_t storage);

/* The transcript of the call, its storages first, one `empty` each; what it makes is downloaded.
 * Freed with free(). */
char *placement_transcript(const struct placement *placement, const struct problem *problem);

#endif
