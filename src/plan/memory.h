/*
 * Decides which tensors of a plan are on a device at each step, if the device's memory cannot hold
 * all of them. Storages whose next use is farthest away make room for others (Belady's rule), and
 * the host keeps their contents. A storage that was not written since its upload is only dropped,
 * and uploaded again later. A step whose own operands are too large is done in slices along one of
 * its axes. If an operand is larger than an allocation and cannot be cut, the host does the step.
 *
 * Everything follows from the plan. An executor performs the moves. Without an executor they are
 * only counted, which predicts what a run will move.
 */
#ifndef HEALCL_PLAN_MEMORY_H
#define HEALCL_PLAN_MEMORY_H

#include "plan/plan.h"

/* Slices of a step: part of one axis of each operand at a time. */
struct slices {
    int8_t axis[STEP_OPERANDS]; /* -1: all slices use the same elements of the operand */
    int64_t size;               /* length of the axis */
    int64_t most;               /* indices in one slice, at most; 0: the step is done as a whole */
    bool on_host;               /* the host does it: an operand is larger than an allocation */
};

/* Whether a slice of `size` indices of the axis reads the contents of operand i, which is cut. */
bool slice_is_read(const struct step *step, const struct slices *slices, int i, int64_t size);

/* Where the contents of a storage are. */
enum memory_source {
    MEMORY_NOWHERE, /* nothing has been written yet */
    MEMORY_UPLOAD,  /* equal to its upload */
    MEMORY_HOST,    /* kept by the host */
    MEMORY_DEVICE   /* only on the device */
};

/* Moves of a storage that an executor must perform. */
enum memory_move {
    MEMORY_MOVE_UPLOAD, /* upload it to the device */
    MEMORY_MOVE_CHECK,  /* only check the data of its upload; they are uploaded later */
    MEMORY_MOVE_HOLD,   /* let the host keep the data of its upload */
    MEMORY_MOVE_SPILL,  /* copy it from the device to the host */
    MEMORY_MOVE_BACK,   /* copy it from the host to the device, which may keep it */
    MEMORY_MOVE_DROP,   /* free the device's memory */
    MEMORY_MOVE_FORGET, /* discard the host's copy, which is out of date */
};

struct memory_mover {
    enum healcl_status (*move)(void *context, enum memory_move move, const struct storage *storage,
                               struct healcl_error *error);
    void *context;
    uint64_t allocation; /* bytes of one storage on the device, at most; 0: unlimited */
};

/* Bytes of one run. */
struct memory_price {
    uint64_t spilled;        /* device to host, without results */
    uint64_t brought_back;   /* host to device */
    uint64_t streamed_again; /* repeated uploads, without each upload's first */
};

/* Bytes that are moved to stay below a limit. */
struct memory_facts {
    uint64_t limit, peak; /* bytes of tensors: the limit (0: none), and the peak */
    struct memory_price price;
    /* Without a limit: bytes of all tensors' buffers, and the most that live tensors take. */
    uint64_t allocated, live;
};

struct memory_state {
    uint32_t first_use, next_use; /* step numbers; UINT32_MAX: none */
    const struct step *upload;    /* latest upload so far */
    uint8_t source;               /* enum memory_source */
    bool resident;                /* it is on the device */
    uint32_t place;               /* if it is: its index in memory.residents */
    bool uploaded, streamed;      /* it was uploaded once; it was uploaded again */
};

struct memory {
    const struct plan *plan;
    const struct memory_mover *mover; /* NULL: moves are only counted */
    uint64_t limit, allocation;       /* bytes: of all tensors, and of one allocation, at most */
    /* Bytes that storages may take now: the limit minus what an executor needs beside them. */
    uint64_t room;
    uint64_t resident, peak; /* bytes of tensors on the device: now, and at most */
    struct memory_price price;
    struct memory_state *states;     /* by storage */
    uint32_t (*uses)[STEP_OPERANDS]; /* by step: the next use of each operand's storage */
    uint32_t *residents;             /* ids of the storages on the device */
    size_t resident_count;
    size_t step; /* the current step */
};

/* limit: 0 for none. The mover, which may be NULL, must outlive the memory. Errors:
 * HEALCL_NO_MEMORY; HEALCL_REFUSED if a step needs more than the limit, even in slices: "entry 17
 * (_modmul_ttt): needs at least 4096 bytes of device memory, above the limit of 1024". */
enum healcl_status memory_init(struct memory *memory, const struct plan *plan, uint64_t limit,
                               const struct memory_mover *mover, struct healcl_error *error);
void memory_release(struct memory *memory);

/* Returns to the state before the first step: all contents are nowhere. Moves nothing. */
void memory_reset(struct memory *memory);

/* Call before step `number`. Puts its operands on the device, or sets slices. With slices, operands
 * that differ between slices have been taken from the device: their source is not MEMORY_DEVICE.
 * Upload and release steps are done completely by this call. */
enum healcl_status memory_begin_step(struct memory *memory, size_t number, struct slices *slices,
                                     struct healcl_error *error);
/* Call after the step. The storage that it wrote is then on the device, or with slices on the
 * host. */
enum healcl_status memory_end_step(struct memory *memory, const struct slices *slices,
                                   struct healcl_error *error);

/* Replaces both calls for a step that is skipped. */
void memory_skip_step(struct memory *memory, size_t number);

/* Call during a step. Takes other storages from the device until `bytes` bytes are free or none is
 * left. */
enum healcl_status memory_make_room(struct memory *memory, uint64_t bytes,
                                    struct healcl_error *error);

/* Predicts the bytes that a whole run moves, without vendors' kernels, and the most bytes of
 * tensors on the device at one time. */
enum healcl_status memory_predict(const struct plan *plan, uint64_t limit,
                                  struct memory_price *price, uint64_t *peak,
                                  struct healcl_error *error);

/* The smallest limit that memory_init accepts with allocations of at most `allocation` bytes. Sets
 * *step to the step that needs it. */
uint64_t memory_least(const struct plan *plan, uint64_t allocation, const struct step **step);

#endif
