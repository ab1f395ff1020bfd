/*
 * An opened OpenCL device: context, queues, buffers. Programs, tensors and steps are unknown here.
 *
 * A device has two command queues. The compute queue runs kernels and returns results, in order for
 * its callers; independent launches may overlap (queue.c). The transfer queue is in order and fills
 * fresh buffers: the host can upload without waiting for computation. Work that is enqueued on the
 * compute queue after device_upload waits, on the device, for that upload.
 * Three things wait for the compute queue: device_download, device_finish, and freeing memory when
 * the device is full.
 */
#ifndef HEALCL_OPENCL_DEVICE_H
#define HEALCL_OPENCL_DEVICE_H

#include <stdint.h>

#include "core/trace.h"
#include "opencl/opencl.h"
#include "opencl/tuning.h"

/* ---------------------------------------------------------------- devices of the system */

struct device_info {
    uint32_t platform_index, device_index; /* as in the selector "0:1" */
    cl_platform_id platform_id;
    cl_device_id device_id;
    cl_int fault; /* of clGetDeviceInfo, which left the rest unknown, or CL_SUCCESS */
    char platform[128], platform_version[128];
    char name[256], vendor[128], driver[128];
    char architecture[64]; /* "sm_90", "gfx90a"; the name if the driver does not report it */
    char version[128];     /* of the device: "OpenCL 3.0 PoCL HSTR: ..." */
    char c_version[128];   /* of OpenCL C */
    cl_device_type type;
    cl_command_queue_properties queue_properties;
    uint32_t compute_units, clock_mhz;
    uint64_t global_memory_bytes; /* a hint: PoCL reports too little */
    uint64_t max_allocation_bytes;
    uint64_t cache_bytes; /* of global memory */
    uint64_t local_memory_bytes;
    size_t max_work_group_size;   /* in one dimension */
    size_t max_parameter_bytes;   /* of a kernel's arguments */
    uint32_t base_alignment_bits; /* of sub-buffers */
    uint32_t double_width;        /* of vectors of doubles; 0: it has no doubles */
    cl_bool available, compiler_available, little_endian, unified_memory;
    bool packaged;     /* its programs come from a package */
    bool out_of_order; /* queues can be */
    /* After this many rounds of all its loops, a work-item's loops end without an error. 0: the
     * self-test has found no such limit, or has not run yet. */
    uint64_t loop_limit;
    /* Kernel families that gave wrong answers in the self-test: bit f for enum kernel_family f. The
     * first wrong answer: "multiply_twiddle(0x1, 0x2, 0x3) is 0x1, not 0x2". */
    uint32_t failed_families;
    char family_failure[160];
    /* Bit m for enum multiply m: vectors that multiply in this way give right, or wrong, products.
     */
    uint32_t multiply_right, multiply_wrong;
    uint32_t compiler_limit; /* enum compiler_limit */
    /* 0 or 1, as the self-test has found: */
    uint32_t lacks_maps;         /* the host cannot map memory */
    uint32_t binaries_are_cheap; /* on a CPU, compared with builds */
    uint32_t launches_overlap;   /* at no cost to launches that depend on each other */
};

enum compiler_limit {
    COMPILER_NO_LIMIT,
    COMPILER_NO_HINTS,      /* to caches: it fails or crashes if kernels have them */
    COMPILER_NOT_OPTIMIZING /* optimized code fails as well */
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
    char empty_platform[128]; /* the first platform that has no device, or "" */
};

/* Lists all devices of all platforms, with the findings of the self-test, and the platforms that
 * cannot list theirs. An empty list is not an error. The caller must call device_listing_release,
 * even after an error. */
enum healcl_status device_list_all(const struct opencl *cl, struct device_listing *listing,
                                   struct healcl_error *error);
void device_listing_release(struct device_listing *listing);

/* Returns HEALCL_OK, or the error of device_list for a system without devices. */
enum healcl_status device_listing_check(const struct device_listing *listing,
                                        struct healcl_error *error);

/* Whether the selector is "reference", the host reference, which is not a device. If it is NULL or
 * "", HEALCL_DEVICE decides. */
bool device_is_reference(const char *selector);

/* Whether the selector or HEALCL_DEVICE names a device. */
bool device_is_named(const char *selector);

/* Sets *index to the place in the list of the best usable device that the selector names. It has
 * the form of healcl_device_open's; if it is NULL or "", HEALCL_DEVICE decides. */
enum healcl_status device_select(const struct device_info *list, size_t count, const char *selector,
                                 size_t *index, struct healcl_error *error);

/* Whether a compiler made for GPUs compiles for the host, as Mesa's llvmpipe does. Such a device
 * has no doubles, or its loops end early. It is tuned as a GPU; docs/DRIVERS.md says more. */
bool device_emulates_gpu(const struct device_info *info);

/* Whether the host's processor imitates other hardware: an emulator, a simulator, or a software
 * renderer. These are known by name. A driver for the processor itself is a real device. */
bool device_is_emulator(const struct device_info *info);

/* Returns why the device cannot be used, "it has no compiler", or NULL if it can. */
const char *device_unusable(const struct device_info *info);

/* Refuses a device that cannot be used. Errors: HEALCL_DEVICE if its queries have failed;
 * otherwise HEALCL_USAGE. */
enum healcl_status device_check_usable(const struct device_info *info, struct healcl_error *error);

/* ---------------------------------------------------------------- an opened device */

enum {
    PLACE_BYTES = (1 << 16) + 1 /* the smallest tensors that have places (plan/places.h) */
};

/* Device memory for one storage. */
struct buffer {
    uint64_t bytes;       /* of the data */
    uint64_t allocated;   /* bytes, at least those of the data */
    cl_mem memory;        /* NULL: the buffer is empty */
    cl_mem slab;          /* the slab that it is a part of, or NULL */
    uint64_t slab_offset; /* in bytes */
    uint64_t place;       /* the number of a struct buffer_place, or 0 */
    uint64_t released_at; /* the device's finish_count when the pool got it */
    uint64_t serial;      /* of the memory: unique in the device's life */
    bool is_adopted;      /* the memory belongs to a caller, who has another reference */
};

/* Memory that is reused for one purpose only. */
struct buffer_place {
    uint64_t number; /* of device_places_begin */
    uint64_t bytes;  /* of the memory */
};

/* Commands that are timed, in the order of their queue: commands.c. */
struct command_log {
    struct command *commands;
    size_t count, capacity;
    size_t timed; /* of the first ones the time is known, and the event released */
};

/* Shared by handles on the same context: internal.h. */
struct device_context;
/* Pinned host memory in two halves. While a command uses one half, the host fills or reads the
 * other: transfer.c. */
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
    struct healcl_device_options options; /* the caller's log, memory, and queue or NULL */
    struct device_info info;
    struct device_tuning tuning;
    cl_context context;
    cl_command_queue compute, transfer;
    bool queue_takes_times; /* the caller's queue records times */
    bool commands_overlap;  /* the compute queue is out of order */
    struct recent_commands *recent;
    bool profiling;      /* commands of the compute queue are timed */
    bool event_times;    /* while profiling: by the driver; else by the host's clock */
    uint64_t bytes_live; /* allocated: in buffers and in the pool */
    uint64_t bytes_peak; /* of bytes_live */
    uint64_t bytes_pooled;
    uint64_t bytes_placed;  /* of buffers with a place, in the pool or not */
    uint64_t placed_peak;   /* of bytes_placed, since device_places_begin */
    uint64_t last_place;    /* the largest number given out so far */
    uint64_t last_serial;   /* as last_place, of struct buffer */
    uint64_t commands;      /* enqueued so far, including uploads and some that failed */
    uint64_t choices_epoch; /* when it grows, what was chosen and attached before is invalid */
    uint64_t used_peak;     /* of bytes_live - bytes_pooled */
    /* While profiling: the time that the driver took to begin kernels' first launches. If the
     * host's clock is used, to complete them. */
    uint64_t first_launch_nanoseconds;
    bool host_worked;    /* since the last command, on a step */
    struct buffer *pool; /* for reuse, the most recently released last */
    size_t pool_count, pool_capacity;
    cl_mem slab;            /* the source of new parts, or NULL */
    uint64_t slab_used;     /* bytes of it */
    bool lacks_sub_buffers; /* it does not support sub-buffers */
    uint64_t finish_count;  /* how often the compute queue was found empty */
    cl_event marker;        /* of device_poll, or NULL */
    struct memory_bound {
        uint64_t bytes; /* 0: no bound */
        enum healcl_status (*make_room)(void *context, uint64_t bytes, struct healcl_error *error);
        void *context;
    } bound; /* of bytes_live */
    struct staging staging;
    cl_event last_upload;          /* on the transfer queue; NULL once the compute queue waits */
    uint32_t unflushed_launches;   /* launches since the compute queue was flushed */
    struct command_log launches;   /* on the compute queue, while profiling */
    struct command_log transfers;  /* on the transfer queue, while tracing */
    struct trace *trace;           /* or NULL */
    struct clock_pair trace_clock; /* when tracing began */
};

/* From now on enqueues on a caller's queue, and retains it. Errors: HEALCL_USAGE if the queue
 * belongs to another context or device. */
enum healcl_status device_take_queue(struct healcl_device *device, cl_command_queue queue,
                                     struct healcl_error *error);

/* Writes a line to the caller's log, if it has one. */
__attribute__((format(printf, 2, 3))) void device_log(const struct healcl_device *device,
                                                      const char *format, ...);

/*
 * Handles on one context take turns if queues_overlap is 0: queues of the device must then not have
 * commands at the same time. Some drivers would crash (docs/DRIVERS.md), and a CPU would gain
 * nothing. Callers of several threads call the functions below between device_turn_begin and
 * device_turn_end; an executor does so for a segment. A new turn first waits for the commands of
 * the handle that had the last turn. NULL, the host, does not take turns.
 */
void device_turn_begin(struct healcl_device *device);
void device_turn_end(struct healcl_device *device);

/* Whether all enqueued commands have ended, and no other handle has a turn. is_new: commands were
 * enqueued since the last call. Also true if the device does not answer: waiting gives the error.
 */
bool device_poll(struct healcl_device *device, bool is_new);

/* Starts or stops timing commands of the compute queue. Waits for the queue if that changes. If the
 * driver's times are useless (rusticl's do not advance), the host waits before and after each
 * command, and uses its own clock. */
enum healcl_status device_set_profiling(struct healcl_device *device, bool profiling,
                                        struct healcl_error *error);

/* Sets the tuning of later launches. Waits for the queue if its kind changes. */
enum healcl_status device_set_tuning(struct healcl_device *device,
                                     const struct device_tuning *tuning,
                                     struct healcl_error *error);

/* Records the device's commands in a trace, until device_trace_end. Times the commands of both
 * queues, as device_set_profiling does. trace may be NULL: nothing is done. */
enum healcl_status device_trace_begin(struct healcl_device *device, struct trace *trace,
                                      struct healcl_error *error);

/* Converts all recorded times to the host's clock. device_take_times must have been called. */
void device_trace_end(struct healcl_device *device);

/* Waits for all queues. */
enum healcl_status device_finish(struct healcl_device *device, struct healcl_error *error);

/* ---------------------------------------------------------------- buffers */

/* Returns a buffer of at least `bytes` bytes, 0 counts as 1, with undefined contents. It comes from
 * the pool if that has one of about this size, else it is new. fresh: enqueued work no longer uses
 * it. Uploads need that, since they do not wait for the compute queue. The caller owns the buffer
 * until device_buffer_release.
 * If the device is out of memory, empties the pool, waits for the compute queue, and tries again.
 * Errors: HEALCL_REFUSED above the largest allocation; HEALCL_DEVICE. */
enum healcl_status device_buffer_acquire(struct healcl_device *device, uint64_t bytes, bool fresh,
                                         struct buffer *buffer, struct healcl_error *error);

/* As device_buffer_acquire, for many small buffers. They may be parts of a slab, which one transfer
 * can read together. */
enum healcl_status device_buffer_acquire_part(struct healcl_device *device, uint64_t bytes,
                                              struct buffer *buffer, struct healcl_error *error);

/* Takes the buffer with this serial out of the pool, if it is there, large enough, and has no
 * place. Returns whether it was taken. serial 0 matches none. */
bool device_buffer_take(struct healcl_device *device, uint64_t serial, uint64_t bytes,
                        struct buffer *buffer);

/*
 * Buffers with a place are reserved for it in the pool. device_places_begin reserves `count`
 * numbers of places, and returns the first. device_places_end frees their buffers for any use; all
 * must be in the pool.
 */
uint64_t device_places_begin(struct healcl_device *device, uint64_t count);
void device_places_end(struct healcl_device *device, uint64_t first, uint64_t count);

/* As device_buffer_acquire, for at most the bytes of a place. Returns the place's buffer if it is
 * in the pool; otherwise another buffer, which gets the same place. If fresh is set and the buffer
 * may still be used, waits for the compute queue. place: NULL for none. */
enum healcl_status device_buffer_acquire_at(struct healcl_device *device,
                                            const struct buffer_place *place, uint64_t bytes,
                                            bool fresh, struct buffer *buffer,
                                            struct healcl_error *error);

/* Returns the slab that a buffer is a part of. It must not be released: it lives as long as its
 * parts. */
struct buffer device_buffer_slab(const struct buffer *part);

/* Makes a buffer of a caller's cl_mem, and retains that until the buffer is released. Errors:
 * HEALCL_REFUSED if the memory is too small, read-only or write-only, or belongs to another
 * context; HEALCL_DEVICE. */
enum healcl_status device_buffer_adopt(struct healcl_device *device, uint64_t bytes, cl_mem memory,
                                       struct buffer *buffer, struct healcl_error *error);

/* Returns a buffer to the pool, and empties *buffer. Enqueued work may still use its memory. An
 * empty buffer is ignored. The pool frees the oldest buffers, to keep the allocated memory near the
 * peak of use. */
void device_buffer_release(struct healcl_device *device, struct buffer *buffer);

/* From now on allocates at most `bytes` bytes; 0 for no limit. When that is not enough and the pool
 * is empty, calls make_room, which releases buffers of the bytes that are missing. If it releases
 * fewer, more than the limit is allocated. */
void device_limit_memory(struct healcl_device *device, uint64_t bytes,
                         enum healcl_status (*make_room)(void *context, uint64_t bytes,
                                                         struct healcl_error *error),
                         void *context);

/* Returns the most bytes that the scratch memory of one launch should take. */
uint64_t device_scratch_bytes(const struct healcl_device *device);

/* Frees all pooled buffers. */
void device_pool_empty(struct healcl_device *device);

/* ---------------------------------------------------------------- transfers */

/* Writes all bytes [offset, offset + bytes) of an upload to memory. */
struct device_filler {
    enum healcl_status (*fill)(void *context, uint64_t offset, uint64_t bytes, void *memory,
                               struct healcl_error *error);
    void *context;
};

/* Receives bytes [offset, offset + bytes) of a download. memory is valid during the call. */
struct device_taker {
    enum healcl_status (*take)(void *context, uint64_t offset, uint64_t bytes, const void *memory,
                               struct healcl_error *error);
    void *context;
};

/* Returns the most bytes of one call of a filler or taker. Pieces come in order. All but the last
 * begin and end at multiples of 4096 bytes of the buffer. */
uint64_t device_piece_bytes(const struct healcl_device *device);

/*
 * Makes a buffer of `bytes` bytes, and has it filled. The caller releases it. place: as for
 * device_buffer_acquire_at; ignored if device_copies_upload.
 * Memory that the device shares with the host is filled in place. Up to 64 KiB are copied, since
 * mapping would take longer. Otherwise, if the tunable staging_bytes is not 0, pieces are filled in
 * pinned memory, one while another is written to the device. Does not wait for the compute queue.
 * Errors: the filler's, and those of device_buffer_acquire; the buffer is then empty.
 */
enum healcl_status device_upload(struct healcl_device *device, const struct buffer_place *place,
                                 uint64_t bytes, const struct device_filler *filler,
                                 struct buffer *buffer, struct healcl_error *error);

/* Whether the host can access the device's memory, so that staging memory is not used. */
bool device_shares_memory(const struct healcl_device *device);

/* Whether the host copies an upload of `bytes` bytes itself, without a command. */
bool device_copies_upload(const struct healcl_device *device, uint64_t bytes);

/* As device_upload, with a copy of memory. */
enum healcl_status device_upload_memory(struct healcl_device *device,
                                        const struct buffer_place *place, uint64_t bytes,
                                        const void *memory, struct buffer *buffer,
                                        struct healcl_error *error);

/* Uploads up to this size create a buffer from the data. With PoCL 3.1 that takes a few us. Mapping
 * takes 45 us, mostly for two threads to wake each other. */
enum { DEVICE_COPIED_BYTES = 1 << 16 };

/* Writes to a buffer, in order on the compute queue. The data need not outlive the call: up to
 * DEVICE_COPIED_BYTES are copied; for more, it waits for the write. If the device is out of memory,
 * as device_buffer_acquire. */
enum healcl_status device_write(struct healcl_device *device, const struct buffer *buffer,
                                uint64_t offset, uint64_t bytes, const void *data,
                                struct healcl_error *error);

/* Waits for the compute queue, and maps at least one byte. */
enum healcl_status device_buffer_map(struct healcl_device *device, const struct buffer *buffer,
                                     cl_map_flags flags, uint64_t offset, uint64_t bytes,
                                     void **address, struct healcl_error *error);
enum healcl_status device_buffer_unmap(struct healcl_device *device, const struct buffer *buffer,
                                       void *address, struct healcl_error *error);

/* Makes later commands wait, on the device, for earlier uploads. */
enum healcl_status device_await_uploads(struct healcl_device *device, struct healcl_error *error);

/* Waits for the compute queue, and passes bytes [offset, offset + bytes) of a buffer to a taker,
 * piece by piece. Shared memory is passed in place. Other memory is read to pinned memory, one
 * piece while the taker has another. Errors: the taker's; HEALCL_DEVICE. */
enum healcl_status device_download(struct healcl_device *device, const struct buffer *buffer,
                                   uint64_t offset, uint64_t bytes,
                                   const struct device_taker *taker, struct healcl_error *error);

/* Waits for the compute queue and reads bytes to memory. */
enum healcl_status device_read(struct healcl_device *device, const struct buffer *buffer,
                               uint64_t offset, uint64_t bytes, void *memory,
                               struct healcl_error *error);

/* As device_read, but does not wait. The bytes are in memory, which must stay valid, once the
 * compute queue has been waited for. Errors: HEALCL_DEVICE. */
enum healcl_status device_read_later(struct healcl_device *device, const struct buffer *buffer,
                                     uint64_t offset, uint64_t bytes, void *memory,
                                     struct healcl_error *error);

/* ---------------------------------------------------------------- commands */

enum { LAUNCH_ARGUMENTS_MAX = 32 };

/* An argument of a kernel, or memory that another command uses. */
struct launch_argument {
    const struct buffer *buffer; /* or NULL */
    const void *value;           /* of size bytes, by value */
    size_t size;                 /* of a manifest's buffer: of an element */
    bool read_only;              /* a buffer that the kernel does not write */
    const char *name;            /* of a manifest's: the tensor, or the expression; else NULL */
};

/* Enqueues a copy of bytes from one buffer to another. It counts as a launch without a kernel, so
 * that no compiler is started for it. tag: as that of a launch. */
enum healcl_status device_copy(struct healcl_device *device, const struct buffer *from,
                               uint64_t from_offset, const struct buffer *to, uint64_t to_offset,
                               uint64_t bytes, const void *tag, struct healcl_error *error);

/* Calls a function of others that enqueues commands on the compute queue. These do not overlap with
 * other launches, and are not timed. Errors: the function's; HEALCL_DEVICE. */
enum healcl_status device_call(struct healcl_device *device,
                               enum healcl_status (*function)(void *context,
                                                              struct healcl_error *error),
                               void *context, struct healcl_error *error);

/* The time of a launch in nanoseconds, and the time that the device was idle before it: without a
 * command, or with a command that it had not begun. These are 0 for the first launch, and if the
 * host's clock is used. */
struct launch_times {
    const void *tag;
    uint64_t running, without_command, not_begun;
};

/* Passes the times of all launches with a tag since the last call to `add`, in their order. Waits
 * for the last launch. After an error the times are lost. */
enum healcl_status device_take_times(struct healcl_device *device,
                                     void (*add)(void *context, const struct launch_times *times),
                                     void *context, struct healcl_error *error);

#endif
