/* Declarations shared by the files of this folder. Each file calls those of the sections before. */
#ifndef HEALCL_OPENCL_INTERNAL_H
#define HEALCL_OPENCL_INTERNAL_H

#include <stdatomic.h>

#include "opencl/opening.h"
#include "opencl/package.h"

/* Shared by handles on the same context. */
struct device_context {
    pthread_mutex_t
        turn; /* recursive: opening and closing a handle takes one, and so may callers */
    struct healcl_device *latest; /* had the last turn, and may have left commands; or NULL */
    pthread_mutex_t lock; /* of the next fields; held during builds: each program is built once */
    uint32_t handles;
    struct device_program *programs; /* most recently used first */
};

/* ---------------------------------------------------------------- self_test_cache.c */

/* Caches the outcome of a self-test with its findings, or its failure. If that fails, the test runs
 * again the next time. */
void self_test_cache(const struct healcl_device *device, enum healcl_status status,
                     const struct healcl_error *failure);

/* ---------------------------------------------------------------- queue.c */

struct awaited_events {
    cl_event events[LAUNCHES_AT_ONCE_MAX];
    cl_uint count;
};

/* What a command of the compute queue uses: the memory among its arguments. */
struct command_use {
    uint32_t argument_count; /* 0: all memory */
    const struct launch_argument *arguments;
    const void *kernel; /* identifies it; or NULL */
    size_t groups;
};

/* Must be called before a command is put on the compute queue. Finds the events that it must wait
 * for. These belong to recent commands that write what it uses, or use what it writes. An in-order
 * queue needs none. */
void overlap_begin(struct healcl_device *device, const struct command_use *use,
                   struct awaited_events *awaited);

/* Must be called after the command of overlap_begin was enqueued, if device->commands_overlap is
 * set. Takes over its event. */
void overlap_end(struct healcl_device *device, cl_event event);

/* Forgets all commands: they have ended. */
void overlap_forget(struct healcl_device *device);

/* Creates both queues, and the records of recent commands, which are freed with free(). */
enum healcl_status device_create_queues(struct healcl_device *device, struct healcl_error *error);

/* Waits for the compute queue. Later commands do not wait for earlier ones, which may have failed.
 * Returns the code of clFinish. */
HEALCL_MUST_CHECK cl_int device_finish_compute(struct healcl_device *device);

/* Notes that the compute queue is empty: pooled buffers become idle. */
void device_note_idle(struct healcl_device *device);

/* Replaces an idle queue by a new one. */
enum healcl_status device_renew_queue(struct healcl_device *device, cl_command_queue *queue,
                                      cl_command_queue_properties properties,
                                      struct healcl_error *error);

/* Replaces the compute queue by one that records times, or does not. Waits for it. */
enum healcl_status device_renew_compute(struct healcl_device *device, bool profiling,
                                        struct healcl_error *error);

/* ---------------------------------------------------------------- buffer.c */

/* Whether a call failed for lack of memory on the device. */
bool is_out_of_memory(cl_int code);

/* Must be called with the code of a call that allocates memory or waits for commands. If the call
 * failed, waits for the compute queue. If the device was out of memory, first frees the pool's
 * memory, for the driver to reuse. Then returns true: the caller should try again. */
bool device_recovers(struct healcl_device *device, cl_int code);

/* The head of a loop around such a call. The loop's body sets code. */
#define DEVICE_ATTEMPTS(device, code) \
    for (int attempt = 0; attempt == 0 || (device_recovers(device, code) && attempt < 2); attempt++)

/* Creates memory outside of the pool. host: what is copied to it with CL_MEM_COPY_HOST_PTR, or
 * NULL. The caller releases *memory. If the device is out of memory, as device_buffer_acquire. */
enum healcl_status device_create_memory(struct healcl_device *device, cl_mem_flags flags,
                                        uint64_t bytes, void *host, cl_mem *memory,
                                        struct healcl_error *error);

/* The bytes that are allocated for a buffer of `bytes` bytes. Few distinct sizes occur, to let
 * later buffers reuse the memory. */
uint64_t device_round_bytes(const struct healcl_device *device, uint64_t bytes);

/* Creates a buffer with a copy of data, which has device_round_bytes(bytes) bytes. The device must
 * not have a caller's allocator. Otherwise as device_buffer_acquire. */
enum healcl_status device_buffer_of(struct healcl_device *device, uint64_t bytes, void *data,
                                    struct buffer *buffer, struct healcl_error *error);

/* ---------------------------------------------------------------- commands.c */

/* A command to be timed. */
struct command {
    cl_event event;  /* NULL once nanoseconds are known */
    const void *tag; /* of a launch, or NULL */
    uint64_t nanoseconds;
    uint64_t queued, start, end; /* by the device's clock; 0 if the host's clock is used */
    uint64_t enqueued;           /* by the host's clock; only if that is used */
    size_t span;                 /* in the trace */
    bool is_first;     /* first launch of its kernel: the driver may compile the kernel only then */
    size_t first_span; /* of that compilation; if the device's clock is used */
    bool follows_host_work; /* the time before it is not counted as a gap */
};

/* A command that is enqueued. */
struct queued_command {
    struct command timed;
    struct command_log *log; /* that times it, or NULL */
    bool is_computing;       /* on the compute queue */
    cl_event *event_out;     /* its event is written there; NULL: it is not needed */
    struct awaited_events awaited;
};

/* The events that a command waits for, and its own, as arguments for clEnqueue... functions. */
#define EVENTS(command)                                                                     \
    (command).awaited.count, (command).awaited.count > 0 ? (command).awaited.events : NULL, \
        (command).event_out

/* Must be called before a command is enqueued, again for each attempt. Its log, and what it is
 * timed as, are set. use: NULL for a command on the transfer queue. If the host's clock is used,
 * waits for earlier commands: their time must not count as this command's. */
enum healcl_status command_begin(struct healcl_device *device, struct queued_command *command,
                                 const struct command_use *use, struct healcl_error *error);

/* As command_begin, for a transfer. It is timed for traces only. */
enum healcl_status transfer_begin(struct healcl_device *device, struct queued_command *command,
                                  const struct command_use *use, const char *name, uint64_t bytes,
                                  struct healcl_error *error);

/* Replaces an event by another one, and retains that. Returns the code of clRetainEvent. */
cl_int event_keep(struct healcl_device *device, cl_event *last, cl_event event);

/* Must be called after the command was enqueued. Takes over its event. last: becomes it, too, as by
 * event_keep; or NULL. */
enum healcl_status command_end(struct healcl_device *device, struct queued_command *command,
                               cl_event *last, struct healcl_error *error);

/* Drops commands that have no times yet. */
void command_log_clear(struct healcl_device *device, struct command_log *log);

/* ---------------------------------------------------------------- transfer.c */

/* Tests whether the host can map the device's memory, and sets info.lacks_maps. */
enum healcl_status device_try_map(struct healcl_device *device, struct healcl_error *error);

/* Frees the staging memory. The queues must be idle. */
void staging_release(struct healcl_device *device);

/* ---------------------------------------------------------------- source.c */

enum { PROGRAM_TEXTS = 6, PROGRAM_LINE_SIZE = 384 };

/* The texts that a program is built from. A line before each makes compilers name our files. */
struct program_texts {
    const char *texts[PROGRAM_TEXTS];
    char line[PROGRAM_LINE_SIZE];
};

/* Finds the texts of a program, by its name unless it has its own. */
enum healcl_status program_texts_find(const struct healcl_device *device,
                                      const struct device_program *program,
                                      struct program_texts *found, struct healcl_error *error);

/* Sets all_options, key and binary_name of a program. */
enum healcl_status program_identify(const struct healcl_device *device,
                                    struct device_program *program, struct healcl_error *error);

/* A hash that identifies a manifest's kernel by its name and by what memory each argument refers
 * to. A cached binary is then valid only for arguments that were checked when its source was built.
 * 0 for other kernels. */
uint64_t kernel_arguments_hash(const struct launch *launch);

/* Identifies the kernel of a launch. */
uint64_t launch_kernel_hash(const struct launch *launch);

/* ---------------------------------------------------------------- binary.c */

/* Loads a program's binary from the cache. Returns whether that succeeded. */
bool binary_load(struct healcl_device *device, struct device_program *program, const char *options);

/* Whether getting a program's binary is fast compared with building the program. Some drivers
 * compile all kernels again for it. */
bool binaries_are_cheap(const struct healcl_device *device);

/* Decides whether the device caches binaries of programs that it builds. */
void binaries_decide(struct healcl_device *device);

/* Loads a program from the device's package. Errors: HEALCL_DEVICE if the package does not have
 * it. */
enum healcl_status binary_load_packaged(struct healcl_device *device,
                                        struct device_program *program, struct healcl_error *error);

/* ---------------------------------------------------------------- share.c */

/* Finds the kernel of a launch, or adds it, and makes it the first one of
 * device->programs->kernels. If it is new, its program may still have to be built. */
enum healcl_status kernel_find(struct healcl_device *device, const struct launch *launch,
                               struct kernel **found, struct healcl_error *error);

/* Finds the program of a launch among those of the context, or adds it. It gets a user:
 * program_leave. */
enum healcl_status program_find(struct healcl_device *device, const struct launch *launch,
                                struct device_program **found, struct healcl_error *error);
void program_leave(struct healcl_device *device, struct device_program *program);

/* Whether a program is that of a launch, by its launch_program_hash. */
bool program_is_of(const struct device_program *program, const struct launch *launch,
                   uint64_t hash);

/* Releases the first kernel of a handle. */
void kernel_drop(struct healcl_device *device);

/* Frees programs without users: those that are not built, those that are discarded, and of the
 * others those that have been idle for longest, until at most `most` are left. */
void programs_trim(const struct opencl *cl, struct device_context *context, uint32_t most);

/* Caches a program's binary, unless it comes from there or may be wrong. */
void program_save(struct healcl_device *device, struct device_program *program);

/* Waits for the queues, releases all kernels, and removes the cached binaries of their programs,
 * which may be wrong. Returns whether any program was loaded from a cached binary. */
bool device_programs_discard(struct healcl_device *device);

/* Caches the binaries of built programs, if the device does that. Releases device->programs. */
void device_programs_release(struct healcl_device *device);

/* ---------------------------------------------------------------- device.c */

/* As device_open, with all options except the queue: see device_take_queue. Called between
 * opening_begin and opening_end. */
enum healcl_status device_open_with(const struct opencl *cl,
                                    const struct healcl_device_options *options,
                                    struct healcl_device **device, struct healcl_error *error);

/* As healcl_device_close, for a handle that has not called device_build_ahead. */
void device_close(struct healcl_device *device);

/* Notes results of the self-test, and adapts kernels to them. */
enum healcl_status device_note_findings(struct healcl_device *device, uint64_t loop_limit,
                                        bool launches_overlap, struct healcl_error *error);

/* ---------------------------------------------------------------- build.c */

/* The kernel of a launch, built if necessary. The device owns it. */
enum healcl_status device_kernel(struct healcl_device *device, const struct launch *launch,
                                 struct kernel **kernel, struct healcl_error *error);

/* ---------------------------------------------------------------- self_test.c */

/* Fails with "device 0:1 NAME fails its self-test: " and the formatted text. */
#define FAIL_TEST(error, info, format, ...)                                    \
    FAIL(error, HEALCL_DEVICE, "device %u:%u %s fails its self-test: " format, \
         (info)->platform_index, (info)->device_index, (info)->name, __VA_ARGS__)

#endif
