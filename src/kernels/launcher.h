/*
 * State that launches of a plan's steps share on a device. It has the memory of the plan's
 * storages, the tables derived from them, and the checks of errors that only data reveal.
 */
#ifndef HEALCL_KERNELS_LAUNCHER_H
#define HEALCL_KERNELS_LAUNCHER_H

#include "cl/base/base.h"
#include "opencl/programs.h"
#include "plan/places.h"

/* Device memory of one storage of the plan. */
struct device_storage {
    struct buffer buffer;              /* empty before the first use */
    uint64_t serial;                   /* of its latest buffer */
    uint64_t version;                  /* grows with each write */
    struct derived *derived;           /* its tables */
    const void *source;                /* what was uploaded, if not written since; NULL: unknown */
    void *contents;                    /* copy of it; NULL: the host has none */
    uint64_t largest, largest_version; /* largest element, of that version: storage_largest */
    size_t waiting_result; /* number plus one of the result that waits in it to be handed out; 0:
                              none */
};

/* A check that a launch makes. Its key is its index in launcher->checks plus one. */
struct check {
    const struct step *step;
    int input;
    enum check_kind kind;
    struct layout elements; /* that were checked, in C order */
    uint32_t axis;          /* CHECK_INDEX: the axis that the indices select from */
    int64_t size;           /* of that axis, or of the permutation; CHECK_COPRIME: k */
};

/* Tables derived from tensors, found by their keys: see derived_cache.c. */
enum { DERIVED_BUCKETS = 1024 };
struct derived_cache {
    struct derived **buckets; /* NULL before the first table */
    uint64_t bytes;           /* in memory of host and device */
    uint64_t epoch;           /* grows when tables are freed: pointers to tables are then invalid */
};

/* What is chosen for steps: see template.h. */
enum { TEMPLATE_BUCKETS = 4096 };
struct templates {
    struct template **buckets; /* NULL before the first template */
    struct template *current;  /* the one that jobs now add launches to; NULL: none */
    const struct step *step;   /* that it is made for */
    /* While a part of that step is chosen: for each operand of the part, the number of the step's
     * operand. Else NULL. */
    const uint8_t *operands;
    uint64_t bytes, epoch;    /* epoch: of the device when they were chosen */
    struct bound_step *bound; /* by step of a plan that runs again, or by cached call; or NULL */
    size_t bound_count;
    bool runs_again; /* the plan does: what is chosen for its steps is kept */
    size_t kernels;  /* kernel objects of bound steps */
};

struct launcher {
    struct healcl_device *device;
    const struct plan *plan;
    struct device_storage *storages; /* by id */
    struct places places;            /* `of` is NULL if there are none */
    uint64_t first_place;            /* the device's number of place 0 */
    struct derived_cache cache;      /* all tables derived from the storages */
    struct templates templates;
    size_t scalar_count; /* of the plan's scalars, in the memory of their storage */
    struct buffer status;
    struct check *checks; /* since the status buffer was read */
    size_t check_count, check_capacity;
    /* Takes launches instead of the device: no memory is used, and no native code runs. Returns the
     * kernel of the launch if it has built it; or NULL. NULL: the device runs launches. */
    struct kernel *(*list)(void *context, const struct launch *launch);
    void *list_context;
    int refused_input; /* the input that the current step is refused for; NO_INPUT: none */
};

/* Whether steps of a plan that runs again are bound before its first run, and nothing else. */
static inline bool launcher_only_binds(const struct launcher *self)
{
    return self->list && self->templates.runs_again;
}

/* The launcher refers to device and plan, which must outlive it. Errors: HEALCL_NO_MEMORY,
 * HEALCL_DEVICE. After an error nothing is left to release. */
enum healcl_status launcher_init(struct launcher *self, struct healcl_device *device,
                                 const struct plan *plan, struct healcl_error *error);
void launcher_release(struct launcher *self);

/* Notes that a step is refused for its input i. Returns the input's name, for the message. */
const char *launcher_refuse(struct launcher *self, const struct step *step, int i);

/* Assigns places to storages from now on. The caller sets in `rule` what does not depend on the
 * device: stays and context. Errors: HEALCL_NO_MEMORY. Then storages have no places. */
enum healcl_status launcher_find_places(struct launcher *self, struct places_rule rule,
                                        struct healcl_error *error);

/* Writes a storage's place to *place, and returns it. NULL: the storage has none. */
const struct buffer_place *launcher_place(const struct launcher *self,
                                          const struct storage *storage,
                                          struct buffer_place *place);

/* The memory of a tensor's storage, allocated on first use. The plan's scalars are uploaded. */
enum healcl_status launcher_buffer(struct launcher *self, const struct storage *storage,
                                   const struct buffer **buffer, struct healcl_error *error);

/* The memory of a storage as it is: empty before its first use. */
struct buffer *launcher_memory(struct launcher *self, const struct storage *storage);

/* Whether the host keeps a copy of what is uploaded to a storage. The storage must be small. On
 * devices with their own memory it must be as small as moduli: there, a table from the host takes a
 * transfer. */
bool launcher_keeps_contents(const struct launcher *self, const struct storage *storage);

/* Notes that a storage was uploaded. source: identifies elements that never change, such as a
 * payload of the plan; NULL for others. Tables remain valid if it is uploaded again. contents: a
 * copy of the elements, which the launcher now owns and frees with free(); NULL if it should keep
 * none. */
void launcher_storage_uploaded(struct launcher *self, const struct storage *storage,
                               const void *source, void *contents);

/* Notes that a step that writes the storage was enqueued. */
void launcher_storage_written(struct launcher *self, const struct storage *storage);

/* Releases the memory of a storage. Its tables are freed, too, unless steps are bound and its
 * source may be uploaded again. */
void launcher_storage_release(struct launcher *self, const struct storage *storage);

/* The largest element of a storage; 0 if the host has no copy of it. */
uint64_t launcher_largest(struct launcher *self, const struct storage *storage);

/* Registers a check. Its launch reports errors under *key. */
enum healcl_status launcher_add_check(struct launcher *self, const struct check *check,
                                      uint32_t *key, struct healcl_error *error);

#endif
