/*
 * Which of a plan's tensors lie on a device, step by step, where that has less memory for them than
 * they all take: storages whose next use is the farthest make room for others (Belady's rule), with
 * their contents kept by the host. What was uploaded and not written since is only dropped: it is
 * uploaded again. A step whose own operands are too large is done in slices along one of its axes.
 * Where an operand is larger than an allocation and cannot be cut, the host does the step.
 *
 * All of it follows from the plan. An executor does the moves; without one they are only counted,
 * which tells before a run what it will take.
 */
#ifndef HEALCL_PLAN_MEMORY_H
#define HEALCL_PLAN_MEMORY_H

#include "plan/plan.h"

/* Slices of a step: so much of one axis of each operand at a time. */
struct slices {
    int8_t axis[STEP_OPERANDS]; /* -1: the operand is the same for all slices */
    int64_t size;               /* of the axis */
    int64_t most;               /* of it in one slice; 0: the step is done as a whole */
    bool on_host; /* the host does it, with what it has: an operand is larger than an allocation */
};

/* Whether a slice of so much of the axis wants what is in an operand, one that is cut. */
bool slice_is_read(const struct step *step, const struct slices *slices, int i, int64_t size);

/* Where the contents of a storage are. */
enum memory_source {
    MEMORY_NOWHERE, /* nothing was written yet */
    MEMORY_UPLOAD,  /* as its upload has them */
    MEMORY_HOST,    /* kept by the host */
    MEMORY_DEVICE   /* only on the device */
};

/* Moves of a storage that an executor is asked for. */
enum memory_move {
    MEMORY_MOVE_UPLOAD, /* to the device, as its upload says */
    MEMORY_MOVE_CHECK,  /* only look at its upload's data, which come later */
    MEMORY_MOVE_HOLD,   /* the data of its upload are to be kept by the host */
    MEMORY_MOVE_SPILL,  /* from the device to the host */
    MEMORY_MOVE_BACK,   /* from the host to the device, which may keep them */
    MEMORY_MOVE_DROP,   /* the device's memory is given back */
    MEMORY_MOVE_FORGET, /* what the host keeps is out of date */
};

struct memory_mover {
    enum healcl_status (*move)(void *context, enum memory_move move, const struct storage *storage,
                               struct healcl_error *error);
    void *context;
    uint64_t allocation; /* bytes of a storage on the device, at most; 0: any */
};

/* Bytes of one run. */
struct memory_price {
    uint64_t spilled;        /* device to host, results aside */
    uint64_t brought_back;   /* host to device */
    uint64_t streamed_again; /* uploads, beside the first one of each */
};

/* Bytes that staying below a limit moves. */
struct memory_facts {
    uint64_t limit, peak; /* bytes of tensors: at most, and at most found; limit 0: none */
    struct memory_price price;
    /* Where there is no limit: bytes of the buffers of tensors, and the most of live tensors. */
    uint64_t allocated, live;
};

struct memory_state {
    uint32_t first_use, next_use; /* steps; UINT32_MAX: there is none */
    const struct step *upload;    /* that has been reached */
    uint8_t source;               /* enum memory_source */
    bool resident;                /* on the device */
    bool uploaded, streamed;      /* once already; again */
};

struct memory_use {
    uint32_t step, storage;
};

struct memory {
    const struct plan *plan;
    const struct memory_mover *mover; /* NULL: moves are only counted */
    uint64_t limit, allocation;       /* bytes of tensors; of one at most */
    uint64_t room; /* bytes that storages may take now: the limit, less what an executor needs
                      beside them */
    uint64_t resident, peak; /* bytes of tensors on the device: now, and at most */
    struct memory_price price;
    struct memory_state *states;     /* by storage */
    uint32_t (*uses)[STEP_OPERANDS]; /* by step: the next use of each operand's storage */
    struct memory_use *heap;         /* next uses, the farthest first; out of date, some of them */
    size_t heap_count, heap_capacity;
    size_t step; /* in hand */
};

/* limit: 0 for none. The mover, which may be NULL, outlives the memory. Errors: HEALCL_NO_MEMORY;
 * HEALCL_REFUSED where a step takes more than the limit, even in slices: "entry 17 (_modmul_ttt):
 * needs at least 4096 bytes of device memory, above the limit of 1024". */
enum healcl_status memory_init(struct memory *memory, const struct plan *plan, uint64_t limit,
                               const struct memory_mover *mover, struct healcl_error *error);
void memory_release(struct memory *memory);

/* Nothing is anywhere, as before the first step. Moves nothing. */
void memory_reset(struct memory *memory);

/* Before a step, by number: puts on the device what it works on, or says in which slices it is to
 * be done: for these, what differs from slice to slice has been taken from the device, and its
 * source is not MEMORY_DEVICE. Uploads and releases are done by this. */
enum healcl_status memory_begin_step(struct memory *memory, size_t number, struct slices *slices,
                                     struct healcl_error *error);
/* After it: the storage that it wrote is on the device, or with slices on the host. */
enum healcl_status memory_end_step(struct memory *memory, const struct slices *slices,
                                   struct healcl_error *error);

/* In the place of both, for a step that is left out. */
enum healcl_status memory_skip_step(struct memory *memory, size_t number,
                                    struct healcl_error *error);

/* During a step: takes other storages from the device until so many bytes are free, or none is
 * left. */
enum healcl_status memory_make_room(struct memory *memory, uint64_t bytes,
                                    struct healcl_error *error);

/* Predicts what a whole run moves, vendors' kernels left out, and the most bytes of tensors on the
 * device at one time. */
enum healcl_status memory_predict(const struct plan *plan, uint64_t limit,
                                  struct memory_price *price, uint64_t *peak,
                                  struct healcl_error *error);

/* The smallest limit that memory_init does not refuse, and the step that needs it. */
uint64_t memory_least(const struct plan *plan, const struct step **step);

#endif
