/*
 * Launches of a plan's steps share this on a device: the memory of its storages, what was worked
 * out from them, and the checks of what only data reveal.
 */
#ifndef HEALCL_KERNELS_LAUNCHER_H
#define HEALCL_KERNELS_LAUNCHER_H

#include "cl/base/base.h"
#include "opencl/programs.h"
#include "plan/places.h"

/* Device memory of one storage of the plan. */
struct device_storage {
    struct buffer buffer;    /* empty before the first use */
    uint64_t serial;         /* of the buffer that it had last, if launches are recorded */
    uint64_t generation;     /* grows with every step that writes */
    struct derived *derived; /* what was worked out from it since the last write */
    void *contents; /* what was uploaded to it, and not written since; NULL: the host has it not */
    size_t result;  /* one that waits in it to be handed out, by the executor's number plus one; 0:
                       there is none */
};

/* A check that a launch makes; its number in launcher->checks plus one is the launch's key. */
struct check {
    const struct step *step;
    int input;
    enum check_kind kind;
    struct layout elements; /* that were looked at, in C order */
    uint32_t axis;          /* CHECK_INDEX: which axis the indices are for */
    int64_t size;           /* of that axis, or of the permutation; CHECK_COPRIME: k */
};

/* Tables derived from tensors, by their keys: see derived_cache.c. */
enum { DERIVED_BUCKETS = 1024 };
struct derived_cache {
    struct derived **buckets; /* NULL before the first one */
    uint64_t bytes;           /* of host and device */
};

struct launcher {
    struct healcl_device *device;
    const struct plan *plan;
    struct device_storage *storages;           /* by id */
    struct places places;                      /* of is NULL: there are none */
    uint64_t first_place;                      /* the device's number of place 0 */
    struct derived_cache cache;                /* what was worked out from all of them */
    struct buffer scalar_moduli, scalar_lanes; /* empty before the first use */
    struct buffer status;
    struct step_recording *recordings; /* by step, see recording.h; NULL: none is recorded */
    size_t recorded;                   /* launches */
    struct check *checks;              /* since the status buffer was read */
    size_t check_count, check_capacity;
    bool has_written;  /* a launch of the step in hand has written its output, or a part of it */
    int refused_input; /* of the step in hand, that it is refused for; NO_INPUT: for none */
};

/* Both refer to device and plan as long as the launcher lives. Errors: HEALCL_NO_MEMORY,
 * HEALCL_DEVICE; then nothing is left to release. */
enum healcl_status launcher_init(struct launcher *self, struct healcl_device *device,
                                 const struct plan *plan, struct healcl_error *error);
void launcher_release(struct launcher *self);

/* Notes that a step is refused for its input i. Returns the input's name, for the message. */
const char *launcher_refuse(struct launcher *self, const struct step *step, int i);

/* Gives storages places from now on, of which the rule says what the device does not: stays and
 * context. Errors: HEALCL_NO_MEMORY; there are none then. */
enum healcl_status launcher_find_places(struct launcher *self, struct places_rule rule,
                                        struct healcl_error *error);

/* A storage's place, written to *place, which is returned; NULL: it has none. */
const struct buffer_place *launcher_place(const struct launcher *self,
                                          const struct storage *storage,
                                          struct buffer_place *place);

/* The memory of a tensor's storage, allocated at first use. */
enum healcl_status launcher_buffer(struct launcher *self, const struct storage *storage,
                                   const struct buffer **buffer, struct healcl_error *error);

/* That memory as it is: empty before its first use. */
struct buffer *launcher_memory(struct launcher *self, const struct storage *storage);

/* Whether the host keeps what is uploaded to a storage: it is small. On devices with memory of
 * their own, where what the host works out takes a command, it has to be as small as moduli are. */
bool launcher_keeps_contents(const struct launcher *self, const struct storage *storage);

/* A storage has been uploaded: what was derived from it is out of date. contents: the same
 * elements, freed with free() by the launcher from now on; NULL: they are not kept. */
void launcher_storage_uploaded(struct launcher *self, const struct storage *storage,
                               void *contents);

/* A step that writes the storage has been enqueued: what was derived from it is out of date. */
void launcher_storage_written(struct launcher *self, const struct storage *storage);

void launcher_storage_release(struct launcher *self, const struct storage *storage);

/* Registers a check; *key is what its launch reports under. */
enum healcl_status launcher_add_check(struct launcher *self, const struct check *check,
                                      uint32_t *key, struct healcl_error *error);

#endif
