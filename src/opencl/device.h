/*
 * An opened OpenCL device: context, queues, buffers. Knows nothing of programs, tensors and steps.
 *
 * Two command queues: compute runs kernels and hands out results, to its callers in order, though
 * launches may overlap where none of them can tell (queue.c); transfer, in order, fills fresh
 * buffers, so that the host never waits for computation when it uploads. Work on the compute queue
 * that is enqueued after device_upload waits, on the device, for that upload.
 * Nothing here blocks on the compute queue but device_download, device_finish, and what frees
 * memory where the device has no room.
 */
#ifndef HEALCL_OPENCL_DEVICE_H
#define HEALCL_OPENCL_DEVICE_H

#include <stdint.h>

#include "core/trace.h"
#include "opencl/opencl.h"
#include "opencl/tuning.h"

/* ---------------------------------------------------------------- what there is */

struct device_info {
    uint32_t platform_index, device_index; /* as in the selector "0:1" */
    cl_platform_id platform_id;
    cl_device_id device_id;
    cl_int fault;           /* of the query that failed and left the rest unknown, or CL_SUCCESS */
    const char *fault_call; /* its function */
    char platform[128], platform_version[128];
    char name[256], vendor[128], driver[128];
    char architecture[64]; /* "sm_90", "gfx90a"; the name where nothing tells it */
    char version[128];     /* of the device: "OpenCL 3.0 PoCL HSTR: ..." */
    char c_version[128];   /* of OpenCL C */
    cl_device_type type;
    cl_command_queue_properties queue_properties;
    uint32_t compute_units, clock_mhz, address_bits;
    uint64_t global_memory_bytes; /* a hint: PoCL reports too little */
    uint64_t max_allocation_bytes;
    uint64_t cache_bytes; /* of global memory */
    uint64_t local_memory_bytes;
    size_t max_work_group_size;   /* in one dimension */
    size_t max_parameter_bytes;   /* of a kernel's arguments */
    uint32_t base_alignment_bits; /* of sub-buffers */
    uint32_t double_width;        /* of vectors of doubles; 0: there are no doubles */
    bool available, compiler_available, little_endian, unified_memory;
    bool packaged;     /* its programs come from a package */
    bool out_of_order; /* queues can be */
    /* Rounds of all loops in one work-item together after which these end, without a word; 0: the
     * self-test has met no such limit, or has not run yet. */
    uint64_t loop_limit;
    /* Kernel families whose answers in the self-test are wrong, bit f for enum kernel_family f, and
     * the first of these answers: "multiply_twiddle(0x1, 0x2, 0x3) is 0x1, not 0x2". */
    uint32_t failed_families;
    char family_failure[160];
    /* Bit m for enum multiply m: vectors give right, or wrong, products so. */
    uint32_t multiply_right, multiply_wrong;
    uint32_t compiler_limit; /* enum compiler_limit */
    /* 0 or 1, as the self-test has found: */
    uint32_t lacks_maps;         /* the host cannot map memory */
    uint32_t binaries_are_cheap; /* on a CPU, compared with builds */
    uint32_t launches_overlap;   /* at no cost to launches that depend on each other */
};

enum compiler_limit {
    COMPILER_NO_LIMIT,
    COMPILER_NO_HINTS,      /* to caches: it fails, or crashes, where kernels have them */
    COMPILER_NOT_OPTIMIZING /* nor can the device run code that was optimized */
};

/* "cpu", "gpu", "accelerator" or "other" */
const char *device_type_name(cl_device_type type);

/* A platform that does not list its devices: the call that fails, and its code. */
struct platform_fault {
    uint32_t platform_index;
    char platform[128]; /* its name; "" if it does not give one */
    const char *call;
    cl_int code;
};

/* Devices and faulty platforms, in the order of indices. */
struct device_listing {
    struct device_info *devices;
    size_t count;
    struct platform_fault *faults;
    size_t fault_count;
    char silent[128]; /* the first platform that has no device, or "" */
};

/* Lists all devices of all platforms, with what the self-test has found, and the platforms that
 * cannot list theirs. No devices at all are not an error. Released with device_listing_release,
 * also where this fails. */
enum healcl_status device_list_all(const struct opencl *cl, struct device_listing *listing,
                                   struct healcl_error *error);
void device_listing_release(struct device_listing *listing);

/* HEALCL_OK, or the error that device_list gives where there is no device. */
enum healcl_status device_listing_check(const struct device_listing *listing,
                                        struct healcl_error *error);

/* Whether that is the host reference, which is no device: selector, or where it is NULL or ""
 * HEALCL_DEVICE, says "reference". */
bool device_is_reference(const char *selector);

/* Whether the selector or HEALCL_DEVICE names a device. */
bool device_is_named(const char *selector);

/* Index in list of the best usable device that selector names (see healcl_device_open; NULL and ""
 * read HEALCL_DEVICE). */
enum healcl_status device_select(const struct device_info *list, size_t count, const char *selector,
                                 size_t *index, struct healcl_error *error);

/* Whether a compiler made for GPUs compiles for the host, where there are no doubles then, or loops
 * end early: Mesa's llvmpipe. It is shaped for as a GPU is; docs/DRIVERS.md has what else there is
 * to it. */
bool device_emulates_gpu(const struct device_info *info);

/* Whether it stands for hardware that is not there, on the host's processor: an emulator, a
 * simulator, or a software renderer. Known by name. A driver that runs the processor as what it is
 * makes a real device of it. */
bool device_is_emulator(const struct device_info *info);

/* NULL where the device can be used, else why not: "it has no compiler". */
const char *device_unusable(const struct device_info *info);

/* Refuses a device that cannot be used. Where its queries have failed that is the device's error,
 * HEALCL_DEVICE; else that of who has chosen it. */
enum healcl_status device_check_usable(const struct device_info *info, struct healcl_error *error);

/* ---------------------------------------------------------------- an opened device */

enum {
    PLACE_BYTES = (1 << 16) + 1 /* the smallest tensors that have places (plan/places.h) */
};

/* Device memory for one storage. */
struct buffer {
    uint64_t bytes;       /* of the data */
    uint64_t allocated;   /* bytes for them, not fewer */
    cl_mem memory;        /* NULL: there is no buffer */
    cl_mem slab;          /* that it is a part of, or NULL */
    uint64_t slab_offset; /* in bytes */
    uint64_t place;       /* the number of a struct buffer_place, or 0 */
    uint64_t epoch;       /* of the device when it was released to the pool */
    uint64_t serial;      /* of the memory: the device never had another one of that number */
    bool is_adopted;      /* the memory is a caller's, who has a reference of his own */
};

/* Memory that is used again and again for the same purpose, and for nothing else meanwhile. */
struct buffer_place {
    uint64_t number; /* of device_places_begin */
    uint64_t bytes;  /* of the memory */
};

/* Commands whose times are wanted, in the order of their queue: commands.c. */
struct command_log {
    struct command *commands;
    size_t count, capacity;
    size_t read; /* those of them whose time is known and whose event is released */
};

/* Shared by handles on the same context: internal.h. */
struct device_context;
/* Pinned memory of the host in two halves, one of which is filled or taken from while a command
 * uses the other one: transfer.c. */
struct staging {
    cl_mem memory; /* NULL: the host's own */
    char *address; /* NULL: not made yet */
    uint64_t half_bytes;
    uint32_t current; /* 0 or 1 */
    struct {
        cl_event event; /* of the last command that uses it, or NULL */
        uint64_t used;  /* bytes */
    } halves[2];
};

struct healcl_device {
    const struct opencl *cl;
    struct device_context *shared;
    struct device_programs *programs;     /* programs.h */
    struct healcl_device_options callers; /* by the caller: log, memory, and the queue or NULL */
    struct device_info info;
    struct device_tuning tuning;
    cl_context context;
    cl_command_queue compute, transfer;
    bool queue_takes_times; /* that the caller has brought */
    bool overlaps;          /* the compute queue is out of order */
    struct recent_commands *recent;
    bool profiling;      /* the compute queue takes times */
    bool event_times;    /* while profiling: the driver does; else the host's clock counts */
    uint64_t bytes_live; /* allocated: in buffers and in the pool */
    uint64_t bytes_peak; /* of bytes_live */
    uint64_t bytes_pooled;
    uint64_t bytes_placed; /* of buffers with a place, in the pool or not */
    uint64_t placed_peak;  /* of bytes_placed, since device_places_begin */
    uint64_t last_place;   /* the largest number given out so far */
    uint64_t last_serial;  /* as last_place, of struct buffer */
    uint64_t commands;     /* enqueued so far, with uploads; some that failed count, too */
    uint64_t record_epoch; /* launches that were recorded before it grew are out of date */
    uint64_t used_peak;    /* of bytes_live - bytes_pooled */
    /* While profiling: how long the driver has taken until it began with kernels that had not run
     * before, or where the host's clock counts, until they had ended. */
    uint64_t first_launch_nanoseconds;
    bool host_worked;    /* for a step, since the last command */
    struct buffer *pool; /* to use again, the one released last at the end */
    size_t pool_count, pool_capacity;
    cl_mem slab;        /* the one that parts are taken of, or NULL */
    uint64_t slab_used; /* bytes of it */
    bool lacks_parts;   /* there are no sub-buffers */
    uint64_t epoch;     /* how often the compute queue has been waited for */
    cl_event marker;    /* of device_poll, or NULL */
    struct memory_bound {
        uint64_t bytes; /* 0: there is none */
        enum healcl_status (*make_room)(void *context, uint64_t bytes, struct healcl_error *error);
        void *context;
    } bound; /* of bytes_live */
    struct staging staging;
    cl_event upload;               /* the last upload, until the compute queue waits for it */
    uint32_t unflushed;            /* launches since the compute queue was flushed */
    struct command_log launches;   /* on the compute queue, while profiling */
    struct command_log transfers;  /* on the transfer queue, while tracing */
    struct trace *trace;           /* or NULL */
    struct clock_pair trace_clock; /* when tracing began */
};

/* Enqueues on a caller's queue from now on, which is retained. Errors: HEALCL_USAGE where it is of
 * another context or device. */
enum healcl_status device_take_queue(struct healcl_device *device, cl_command_queue queue,
                                     struct healcl_error *error);

/* Tells the caller's log, if there is one, a line. */
__attribute__((format(printf, 2, 3))) void device_log(const struct healcl_device *device,
                                                      const char *format, ...);

/*
 * Handles on one context take turns where the device's queues must not have commands at the same
 * time (queues_overlap is 0: some drivers crash then, see docs/DRIVERS.md, and on a CPU nothing is
 * gained). Who calls the functions below from several threads does so between device_turn_begin and
 * device_turn_end; an executor does that for a segment. A turn that begins waits for what is
 * enqueued on the handle that had the last one. NULL, for the host, takes none.
 */
void device_turn_begin(struct healcl_device *device);
void device_turn_end(struct healcl_device *device);

/* Whether all that is enqueued has ended, and no other handle has a turn. is_new: something was
 * enqueued since this was last asked. Where the device does not answer, too: waiting tells why. */
bool device_poll(struct healcl_device *device, bool is_new);

/* Makes the compute queue take times from now on, or not. Waits for the queue if that changes. A
 * driver that takes none (rusticl's do not advance) is waited for before and after each command
 * then, and the host's clock counts. */
enum healcl_status device_set_profiling(struct healcl_device *device, bool profiling,
                                        struct healcl_error *error);

/* Shapes what is launched from now on. Waits for the queue if its kind changes. */
enum healcl_status device_set_tuning(struct healcl_device *device,
                                     const struct device_tuning *tuning,
                                     struct healcl_error *error);

/* Records in a trace, which may be NULL, what the device does from now on, until device_trace_end.
 * Makes the queues take times, as device_set_profiling. */
enum healcl_status device_trace_begin(struct healcl_device *device, struct trace *trace,
                                      struct healcl_error *error);

/* All that was recorded is given times by the host's clock. device_take_times has been called. */
void device_trace_end(struct healcl_device *device);

/* Waits for all queues. */
enum healcl_status device_finish(struct healcl_device *device, struct healcl_error *error);

/* ---------------------------------------------------------------- buffers */

/* A buffer of at least bytes (0 counts as 1) with undefined contents: from the pool if one of about
 * that size was released, else new. fresh: not one that work on the compute queue may still use;
 * needed for uploads, which do not wait for that queue. Owned by the caller until
 * device_buffer_release.
 * When the device has no room, the pool is emptied, the compute queue finished, and it is tried
 * again. Errors: HEALCL_REFUSED above the largest allocation, HEALCL_DEVICE. */
enum healcl_status device_buffer_acquire(struct healcl_device *device, uint64_t bytes, bool fresh,
                                         struct buffer *buffer, struct healcl_error *error);

/* As device_buffer_acquire, for many small buffers: one may be a part of a slab, so that one
 * transfer takes several of them. */
enum healcl_status device_buffer_acquire_part(struct healcl_device *device, uint64_t bytes,
                                              struct buffer *buffer, struct healcl_error *error);

/* Takes the buffer with that serial, 0 for none, if it is in the pool, large enough, and has no
 * place. Returns whether it is. */
bool device_buffer_take(struct healcl_device *device, uint64_t serial, uint64_t bytes,
                        struct buffer *buffer);

/*
 * Places keep buffers apart in the pool. device_places_begin gives out numbers for count of them
 * and returns the first one; device_places_end makes their buffers, all of which are in the pool,
 * ones like others.
 */
uint64_t device_places_begin(struct healcl_device *device, uint64_t count);
void device_places_end(struct healcl_device *device, uint64_t first, uint64_t count);

/* As device_buffer_acquire, for at most the bytes of a place: its buffer if it is in the
 * pool. Where fresh is asked for and it is not idle, waits
 * for the compute queue. Where it is in use, or there was none yet, another one, which has that
 * place too. place: NULL for none. */
enum healcl_status device_buffer_acquire_at(struct healcl_device *device,
                                            const struct buffer_place *place, uint64_t bytes,
                                            bool fresh, struct buffer *buffer,
                                            struct healcl_error *error);

/* The whole slab that a buffer is a part of, as a buffer that nobody releases: it lives as long as
 * its parts do. */
struct buffer device_buffer_slab(const struct buffer *part);

/* A buffer of a caller's cl_mem, which is retained until the buffer is released. Errors:
 * HEALCL_REFUSED where it is of another context, too small, or for reading or writing alone;
 * HEALCL_DEVICE. */
enum healcl_status device_buffer_adopt(struct healcl_device *device, uint64_t bytes, cl_mem memory,
                                       struct buffer *buffer, struct healcl_error *error);

/* Gives a buffer back to the pool; work that is enqueued may still use it. Empties *buffer; an
 * empty one is ignored. The pool lets go of what was released first, so that what is allocated
 * stays near the most that was ever in use at one time. */
void device_buffer_release(struct healcl_device *device, struct buffer *buffer);

/* From now on allocates at most `bytes` bytes; 0 for no limit. When that is not enough and the pool
 * is empty, calls make_room, which releases buffers of the bytes that are missing. If it releases
 * fewer, more than the limit is allocated. */
void device_limit_memory(struct healcl_device *device, uint64_t bytes,
                         enum healcl_status (*make_room)(void *context, uint64_t bytes,
                                                         struct healcl_error *error),
                         void *context);

/* Bytes that scratch memory of one launch should take at most. */
uint64_t device_scratch_bytes(const struct healcl_device *device);

/* Frees all pooled buffers. */
void device_pool_empty(struct healcl_device *device);

/* ---------------------------------------------------------------- transfers */

/* Writes bytes [offset, offset + bytes) of what is uploaded to memory, all of them. */
struct device_filler {
    enum healcl_status (*fill)(void *context, uint64_t offset, uint64_t bytes, void *memory,
                               struct healcl_error *error);
    void *context;
};

/* Takes bytes [offset, offset + bytes) of what is downloaded, which are memory's for this call. */
struct device_taker {
    enum healcl_status (*take)(void *context, uint64_t offset, uint64_t bytes, const void *memory,
                               struct healcl_error *error);
    void *context;
};

/* Most bytes that a filler or taker is called for at a time. Pieces come in order, and all but the
 * last begin and end at multiples of 4096 bytes of the buffer. */
uint64_t device_piece_bytes(const struct healcl_device *device);

/*
 * Makes a buffer of `bytes` bytes, and has it filled. The caller releases it. place: as for
 * device_buffer_acquire_at; ignored if device_copies_upload.
 * Memory that the device shares with the host is filled in place, but up to 64 KiB, where mapping
 * takes longer than a copy. Otherwise (the tunable staging_bytes is not 0) pieces are filled in
 * pinned memory, one while another is written to the device. Does not wait for the compute queue.
 * Errors: the filler's, and as device_buffer_acquire; there is no buffer then.
 */
enum healcl_status device_upload(struct healcl_device *device, const struct buffer_place *place,
                                 uint64_t bytes, const struct device_filler *filler,
                                 struct buffer *buffer, struct healcl_error *error);

/* Whether the host reaches the device's memory: data do not go through staging memory. */
bool device_shares_memory(const struct healcl_device *device);

/* Whether the host copies an upload of `bytes` bytes itself, without a command. */
bool device_copies_upload(const struct healcl_device *device, uint64_t bytes);

/* As device_upload, with a copy of memory. */
enum healcl_status device_upload_memory(struct healcl_device *device,
                                        const struct buffer_place *place, uint64_t bytes,
                                        const void *memory, struct buffer *buffer,
                                        struct healcl_error *error);

/* Up to this, an upload is a buffer made from the data. With PoCL 3.1 that takes a few us where
 * mapping takes 45, most of it for two threads to wake each other. */
enum { DEVICE_COPIED_BYTES = 1 << 16 };

/* Writes to a buffer in the order of the compute queue. The data need not outlive the call: up to
 * DEVICE_COPIED_BYTES are copied; for more, what is enqueued is waited for. When the device has no
 * room, as device_buffer_acquire. */
enum healcl_status device_write(struct healcl_device *device, const struct buffer *buffer,
                                uint64_t offset, uint64_t bytes, const void *data,
                                struct healcl_error *error);

/* Waits for the compute queue, and maps bytes, at least 1. */
enum healcl_status device_buffer_map(struct healcl_device *device, const struct buffer *buffer,
                                     cl_map_flags flags, uint64_t offset, uint64_t bytes,
                                     void **address, struct healcl_error *error);
enum healcl_status device_buffer_unmap(struct healcl_device *device, const struct buffer *buffer,
                                       void *address, struct healcl_error *error);

/* Commands enqueued from here on come after the uploads so far. */
enum healcl_status device_await_uploads(struct healcl_device *device, struct healcl_error *error);

/* Waits for the compute queue and hands out bytes [offset, offset + bytes) of a buffer piece by
 * piece. Shared memory is handed out where it is, other memory in pinned memory,
 * one piece while the next one is read. Errors: the taker's, HEALCL_DEVICE. */
enum healcl_status device_download(struct healcl_device *device, const struct buffer *buffer,
                                   uint64_t offset, uint64_t bytes,
                                   const struct device_taker *taker, struct healcl_error *error);

/* Waits for the compute queue and reads bytes to memory. */
enum healcl_status device_read(struct healcl_device *device, const struct buffer *buffer,
                               uint64_t offset, uint64_t bytes, void *memory,
                               struct healcl_error *error);

/* As device_read, without waiting, in the order of the compute queue: memory has them once that has
 * been waited for, and stays until then. Errors: HEALCL_DEVICE. */
enum healcl_status device_read_later(struct healcl_device *device, const struct buffer *buffer,
                                     uint64_t offset, uint64_t bytes, void *memory,
                                     struct healcl_error *error);

/* ---------------------------------------------------------------- commands */

enum { LAUNCH_ARGUMENTS_MAX = 32 };

/* An argument of a kernel, or what else a command uses. */
struct launch_argument {
    const struct buffer *buffer; /* or NULL */
    const void *value;           /* of size bytes, by value */
    size_t size;                 /* of a manifest's buffer: of an element */
    bool read_only;              /* a buffer that the kernel does not write */
    const char *name;            /* of a manifest's: the tensor, or the expression; else NULL */
    uint64_t serial;             /* of a recorded launch: of the memory that is set */
};

/* Enqueues a copy of bytes from one buffer to another. It counts as a launch without a kernel, so
 * that no compiler is started for it. tag: as that of a launch. */
enum healcl_status device_copy(struct healcl_device *device, const struct buffer *from,
                               uint64_t from_offset, const struct buffer *to, uint64_t to_offset,
                               uint64_t bytes, const void *tag, struct healcl_error *error);

/* Has others enqueue commands on the compute queue by a function, which is not in the library's
 * hands: it is kept apart from launches that may overlap. Its time is not taken. Errors: the
 * function's, HEALCL_DEVICE. */
enum healcl_status device_call(struct healcl_device *device,
                               enum healcl_status (*function)(void *context,
                                                              struct healcl_error *error),
                               void *context, struct healcl_error *error);

/* The time of a launch, in nanoseconds, and for how long the device did nothing between the end of
 * the command before it and its start: it had no command yet, or had not begun with the one it had.
 * Both are 0 for the first one, and where the host's clock counts. */
struct launch_times {
    const void *tag;
    uint64_t running, without_command, not_begun;
};

/* Hands out the times of all profiled launches with a tag since the last call, in their order.
 * Waits for the last of them. Where it fails, the times are lost. */
enum healcl_status device_take_times(struct healcl_device *device,
                                     void (*add)(void *context, const struct launch_times *times),
                                     void *context, struct healcl_error *error);

#endif
