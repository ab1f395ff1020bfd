/* Declarations that the files of this folder share. */
#ifndef HEALCL_OPENCL_INTERNAL_H
#define HEALCL_OPENCL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "opencl/opening.h"
#include "opencl/package.h"

/* ---------------------------------------------------------------- device.c */

/*
 * Makes context and queues of a device whose cl, info, tuning and brought are set, and reads what
 * the environment says of its memory. Ended by device_clear and device_release, also where this
 * fails.
 */
enum healcl_status device_create(struct healcl_device *device, struct healcl_error *error);

/* As device_create, on the context of another handle, whose settings the device has. */
enum healcl_status device_create_beside(struct healcl_device *device, struct healcl_device *first,
                                        struct healcl_error *error);

/* Waits for the queues and gives back the memory that they use. The handle has a turn. */
void device_clear(struct healcl_device *device);

/* Gives back queues and context, which nothing uses any more. The turn ends. The last handle on the
 * context takes along what was shared, and the package. */
void device_release(struct healcl_device *device);

/* Waits for the compute queue. What comes later does not wait for what came before, which may have
 * failed. Returns the code of clFinish. */
HEALCL_MUST_CHECK cl_int device_finish_compute(struct healcl_device *device);

/* ---------------------------------------------------------------- buffer.c */

/* Whether a call failed for lack of memory on the device. */
bool is_out_of_memory(cl_int code);

/* To be called with the code of a call that takes memory, or waits for commands. Where it has
 * failed, waits for the compute queue; for lack of memory on the device, what the pool holds is
 * freed before, so that the driver has it back, and it is worth another try: returns true. */
bool device_recovers(struct healcl_device *device, cl_int code);

/* The head of a loop around such a call, which sets code. */
#define DEVICE_ATTEMPTS(device, code) \
    for (int attempt = 0; attempt == 0 || (device_recovers(device, code) && attempt < 2); attempt++)

/* ---------------------------------------------------------------- transfer.c */

struct awaited_events {
    cl_event events[LAUNCHES_AT_ONCE_MAX];
    cl_uint count;
};

/* A command uses this: the memory among its arguments. */
struct command_use {
    uint32_t argument_count; /* 0: everything there is */
    const struct launch_argument *arguments;
    const void *kernel; /* tells it apart; or NULL */
    size_t groups;
};

/* To be called before a command is put on the compute queue: finds the events that it waits for,
 * those of recent commands that write what it uses, or use what it writes. In a queue that is in
 * order there are none. */
void overlap_begin(struct healcl_device *device, const struct command_use *use,
                   struct awaited_events *awaited);

/* The command of overlap_begin was enqueued. Takes over its event, which is not NULL where
 * device->overlaps. */
void overlap_end(struct healcl_device *device, cl_event event);

/* All commands have ended. */
void overlap_forget(struct healcl_device *device);

/* The list of events as clEnqueue... wants it. */
#define AWAITED(awaited) (awaited).count, ((awaited).count > 0 ? (awaited).events : NULL)

/* A command whose times are wanted. */
struct command {
    cl_event event;  /* NULL once nanoseconds are known */
    const void *tag; /* of a launch, or NULL */
    uint64_t nanoseconds;
    uint64_t queued, start, end; /* by the device's clock; 0 where the host's counts */
    uint64_t enqueued;           /* by the host's clock; only where that counts */
    size_t span;                 /* in the trace */
    bool is_first;               /* launch of its kernel: the driver may compile that only then */
    size_t first_span;           /* of what it does then; where the device's clock counts */
    bool follows_host_work;      /* what lies before it is no gap */
};

/* Makes room for one command more. */
enum healcl_status command_log_reserve(struct command_log *log, struct healcl_error *error);

/* To be called before a command is enqueued: where the host's clock counts, nothing that was
 * enqueued before is to be part of its time. */
void command_begin(struct healcl_device *device, struct command *command);

/* ---------------------------------------------------------------- commands.c */

/* Hands the event of a command, which was put on the compute queue after overlap_begin and, while
 * profiling, command_begin, to those who want it. There is room in the log. */
enum healcl_status command_enqueued(struct healcl_device *device, const struct command *command,
                                    struct healcl_error *error);

/* ---------------------------------------------------------------- device.c */

/* The compute queue has nothing left to do: pooled buffers are idle from now on. */
void device_note_idle(struct healcl_device *device);

/* Puts a new queue in the place of one that has nothing left to do. */
enum healcl_status device_renew_queue(struct healcl_device *device, cl_command_queue *queue,
                                      cl_command_queue_properties properties,
                                      struct healcl_error *error);

/* Shared by handles on the same context. */
struct device_context {
    pthread_mutex_t
        turn; /* recursive: opening and closing a handle takes one, and so may callers */
    struct healcl_device *latest; /* whose turn was the last, and may have left commands; or NULL */
    pthread_mutex_t lock; /* of what follows; held while a program is built: it is built once */
    uint32_t handles;
    struct shared_program *programs; /* the last one used first */
};

/* NULL without memory. */
struct device_context *context_make(void);

/* One handle more. */
void context_enter(struct healcl_device *device, struct device_context *shared);

/* ---------------------------------------------------------------- buffer.c */

/* Bytes that are allocated for so many: few distinct sizes, so that buffers fit again. */
uint64_t device_round_bytes(const struct healcl_device *device, uint64_t bytes);

/* A new buffer with a copy of data, device_round_bytes(bytes) of them. Otherwise as
 * device_buffer_acquire. */
enum healcl_status device_buffer_of(struct healcl_device *device, uint64_t bytes, void *data,
                                    struct buffer *buffer, struct healcl_error *error);

/* Finds out whether the host can map memory: info.lacks_maps. */
enum healcl_status device_try_map(struct healcl_device *device, struct healcl_error *error);

/* Frees the staging memory; the queues have nothing left to do. */
void staging_release(struct healcl_device *device);

/* Makes room for what is remembered. Freed with free(). */
enum healcl_status overlap_init(struct healcl_device *device, struct healcl_error *error);

/* Forgets what has no times yet. */
void command_log_clear(struct healcl_device *device, struct command_log *log);

/* Reads the device's clock beside the host's. *advance: whether it does; rusticl's do not. The
 * compute queue takes times. */
enum healcl_status device_read_clocks(struct healcl_device *device, struct clock_pair *best,
                                      bool *advance, struct healcl_error *error);

/* Transfers use this around an enqueued command, for traces. */
struct traced_command {
    struct command command;
    struct command_log *log;
    cl_event *event; /* for clEnqueue...; NULL where there is no trace */
};

/* track also says which queue it is. */
enum healcl_status traced_command_init(struct traced_command *traced, struct healcl_device *device,
                                       enum trace_track track, const char *name, uint64_t bytes,
                                       struct healcl_error *error);

/* It was enqueued. */
enum healcl_status traced_command_log(struct traced_command *traced, struct healcl_device *device,
                                      struct healcl_error *error);

/* ---------------------------------------------------------------- opening.c */

/* Notes what the self-test has found, and shapes kernels for it. */
enum healcl_status device_note_findings(struct healcl_device *device, uint64_t loop_limit,
                                        bool launches_overlap, struct healcl_error *error);

/* ---------------------------------------------------------------- self_test.c */

/* "device 0:1 NAME fails its self-test: " and the rest. */
#define FAIL_TEST(error, info, format, ...)                                    \
    FAIL(error, HEALCL_DEVICE, "device %u:%u %s fails its self-test: " format, \
         (info)->platform_index, (info)->device_index, (info)->name, __VA_ARGS__)

/* ---------------------------------------------------------------- program.c */

struct kernel {
    struct kernel *next;
    struct program *program;
    cl_kernel id;
    bool is_checked; /* by kernel_check_arguments */
    struct shared_kernel *shared;
};

struct program {
    struct program *next;
    struct shared_program *shared; /* NULL: it could not be built */
    uint64_t hash;                 /* of the four fields that follow */
    char *name, *options;
    size_t local_size;
    uint64_t arguments; /* kernel_arguments_hash of the launches that it is for */
    char *all_options;  /* as the compiler gets them */
    cl_program id;
    struct kernel *kernels;
    char key[HASH_SIZE];               /* of its options and texts */
    char binary_name[CACHE_NAME_SIZE]; /* in the cache or the package; "": it is not kept */
    bool may_be_cached;                /* nothing is wrong with what its kernels take */
    bool loaded;                       /* from its binary */
    const char *prefix;                /* of its kernels' names in the package's image; or NULL */
    enum healcl_status status;         /* of its build, which took so long */
    uint64_t nanoseconds;
    char *failure;    /* why it cannot be built; NULL: it is */
    const char *text; /* of a program of a manifest, which has it; NULL: it is known by name */
};

struct program_source {
    struct program_source *next;
    const char *name, *text;
};

/* Tell the programs, and the kernels, of launches apart. */
uint64_t launch_program_hash(const struct launch *launch);
uint64_t launch_kernel_hash(const struct launch *launch);

/* Another object of a kernel, released with clReleaseKernel. */
cl_kernel kernel_create(struct healcl_device *device, const struct program *program,
                        const char *name, cl_int *code);

/* The kernel of a launch, built if need be; owned by the device. */
enum healcl_status device_kernel(struct healcl_device *device, const struct launch *launch,
                                 struct kernel **kernel, struct healcl_error *error);

/* ---------------------------------------------------------------- arguments.c */

/* Tells kernels of manifests apart by their names and by which arguments are memory of what, so
 * that a binary counts for those that were checked when its source was built; 0 for other kernels.
 */
uint64_t kernel_arguments_hash(const struct launch *launch);

/* Whether a manifest's kernel takes the arguments of a launch. Asks once for each kernel object
 * that was built from its source; where nobody tells, notes device->programs->arguments_unknown.
 * Errors: HEALCL_REFUSED, with manifest, kernel and argument, and
 * device->programs->manifest_is_wrong. */
enum healcl_status kernel_check_arguments(struct healcl_device *device, struct kernel *kernel,
                                          const struct launch *launch, struct healcl_error *error);

/* The error where the driver does not take argument i for its size or kind. Returns HEALCL_REFUSED.
 */
enum healcl_status kernel_argument_refused(struct healcl_device *device,
                                           const struct launch *launch, uint32_t i, cl_int code,
                                           struct healcl_error *error);

/* ---------------------------------------------------------------- program.c, again */

/* Waits for the queues, releases the programs that are built, and removes what is cached of them,
 * which is not to be trusted. Returns whether one of them was a binary that had been cached. */
bool device_programs_discard(struct healcl_device *device);

/* Keeps the binaries of programs that were built, where the device does that. Releases what is in
 * device->programs. */
void device_programs_release(struct healcl_device *device);

/* Behind the lock of struct device_context, but for launched. */
struct shared_kernel {
    struct shared_kernel *next;
    atomic_bool launched; /* on some handle: the driver has compiled it */
    char name[];
};

struct shared_program {
    struct shared_program *next;
    uint32_t users;      /* programs of handles */
    bool discarded;      /* nobody finds it any more */
    char key[HASH_SIZE]; /* this and what follows as in struct program */
    cl_program id;
    bool loaded;
    const char *prefix;
    struct shared_kernel *kernels;
};

/* Frees the programs that no handle uses any more. */
void shared_programs_free(const struct opencl *cl, struct device_context *context);

/* ---------------------------------------------------------------- builders.c */

/* Child processes that build programs and leave their binaries in the cache. Each takes one that no
 * other one has taken, and this process does so, too. */
struct builders {
    size_t count; /* of processes */
    int processes[BUILDS_AT_ONCE_MAX];
    _Atomic uint32_t *states; /* of programs, shared by all */
    uint64_t deadline;        /* this process waits no longer: monotonic_nanoseconds */
};

/* Starts so many processes, or as many as it can, which build so many programs, in this order. */
void builders_start(struct builders *builders, const struct healcl_device *device,
                    struct program *const *programs, size_t count, size_t processes);

/* Returns whether no other process has taken a program: then this one has. */
bool builders_take(_Atomic uint32_t *states, size_t program);

/* Waits until another one's program is cached, or never will be: it is to be built here. */
void builders_await(const struct builders *builders, size_t program);

/* Ends them. */
void builders_stop(const struct builders *builders);

/* ---------------------------------------------------------------- binary.c */

/* Loads a program's binary from the cache. Returns program->loaded. */
bool binary_load(struct healcl_device *device, struct program *program, const char *options);

/* The binary of a built program, freed with free(). Best called when its kernels
 * have run: some drivers compile them only then. Errors: HEALCL_DEVICE. */
enum healcl_status binary_get(const struct healcl_device *device, const struct program *program,
                              unsigned char **binary, size_t *bytes, struct healcl_error *error);

/* Whether getting a program's binary takes little of the time of its build. Some drivers compile
 * all kernels once more for it. */
bool binaries_are_cheap(const struct healcl_device *device);

/* Gets a program from the device's package. Errors: HEALCL_DEVICE where it is not there. */
enum healcl_status binary_load_packaged(struct healcl_device *device, struct program *program,
                                        struct healcl_error *error);

#endif
