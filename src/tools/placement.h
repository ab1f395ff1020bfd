/*
 * How the tensors of a problem lie in memory: each is a view of a storage that may be larger than
 * it on all sides, and that it may share with others.
 */
#ifndef HEALCL_TOOLS_PLACEMENT_H
#define HEALCL_TOOLS_PLACEMENT_H

#include "tools/problem.h"

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

/* Whether a problem has such an arrangement. */
bool arrangement_applies(const struct problem *problem, enum arrangement arrangement);

struct place {
    uint32_t storage;
    struct layout layout;
};

struct placed_storage {
    enum dtype dtype;
    int64_t elements;
    int64_t before, after; /* more of them around it: see placement_guard */
};

struct placement {
    uint32_t storage_count;
    struct placed_storage storages[PARAMETERS_MAX];
    struct place places[PARAMETERS_MAX]; /* of the problem's tensors */
};

void placement_make(struct placement *placement, const struct problem *problem,
                    enum arrangement arrangement, uint64_t variant, struct random *random);

/* Puts each storage into a larger one, for kernels that others have written: what is around it must
 * not be written, nor change a result. Offsets differ from tensor to tensor, but for
 * ARRANGEMENT_CONTIGUOUS, where all are 0. */
void placement_guard(struct placement *placement, enum arrangement arrangement);

/* Bytes of a storage, with what is around it. */
uint64_t placement_bytes(const struct placement *placement, uint32_t storage);

/* Writes the call of a problem whose tensors are t0, t1 and so on; one that it makes is "made". */
void problem_put_call(struct writer *writer, const struct problem *problem);

/* The transcript of the call. Storages come first, each by an `empty`. At the end
 * they are downloaded, and then a tensor that the call makes. Freed with free(). */
char *placement_transcript(const struct placement *placement, const struct problem *problem);

#endif
