/* What the files of this folder share. */
#ifndef HEALCL_DEVICE_INTERNAL_H
#define HEALCL_DEVICE_INTERNAL_H

#include <stdatomic.h>
#include <stdio.h>

#include "device/device.h"

/* ---------------------------------------------------------------- opening.c */

/* Between these two only one thread of the process finds, opens or closes devices: the first calls
 * into a loader and its drivers (ocl-icd with PoCL 3.1) initialise them, and crash where two
 * threads make them at once. A thread may be inside several times. */
void opening_begin(void);
void opening_end(void);

/* ---------------------------------------------------------------- device.c */

/* The compute queue has nothing left to do: pooled buffers are idle from now on. */
void device_note_idle(struct healcl_device *device);

/* Waits for the compute queue. What comes later does not wait for what came before, which may have
 * failed. Returns the code of clFinish. */
MUST_CHECK cl_int device_finish_compute(struct healcl_device *device);

/* Puts a new queue in the place of one that has nothing left to do. */
MUST_CHECK enum healcl_status device_renew_queue(struct healcl_device *device,
                                                 cl_command_queue *queue,
                                                 cl_command_queue_properties properties,
                                                 struct healcl_error *error);

/* The queues of an opened context, and what goes with them. */
MUST_CHECK enum healcl_status device_create_queues(struct healcl_device *device,
                                                   struct healcl_error *error);

/* ---------------------------------------------------------------- shared_context.c */

/* Makes what the handles on device->context share; the first of them is device. */
MUST_CHECK enum healcl_status context_share(struct healcl_device *device,
                                            struct healcl_error *error);

/* Ends the turn of a handle that has nothing left on the context. The last handle takes along what
 * was shared. */
void context_leave(struct healcl_device *device);

/* Notes what the self-test has found, and shapes kernels for it. */
MUST_CHECK enum healcl_status device_note_findings(struct healcl_device *device,
                                                   uint64_t loop_limit, bool launches_overlap,
                                                   uint32_t multiply, struct healcl_error *error);

/* ---------------------------------------------------------------- self_test.c */

/* "device 0:1 NAME fails its self-test: " and the rest. */
#define FAIL_TEST(error, info, format, ...)                                    \
    FAIL(error, HEALCL_DEVICE, "device %u:%u %s fails its self-test: " format, \
         (info)->platform_index, (info)->device_index, (info)->name, __VA_ARGS__)

/* ---------------------------------------------------------------- multiply.c */

/* Measures which enum multiply is the fastest, of those whose products are right. Takes some
 * milliseconds, and a compilation. A device that cannot do any of it has the first one that its
 * types allow, and does not fail. Errors: HEALCL_DEVICE where products are right at one time and
 * wrong at another; HEALCL_REFUSED, HEALCL_NO_MEMORY. */
MUST_CHECK enum healcl_status device_find_multiply(struct healcl_device *device, uint32_t *fastest,
                                                   struct healcl_error *error);

/* ---------------------------------------------------------------- buffer.c */

struct pooled {
    cl_mem memory;
    uint64_t bytes;
    uint64_t epoch; /* of the device when it was released */
    cl_mem slab;    /* as in struct buffer */
    uint64_t slab_offset;
    uint64_t place;
};

/* Bytes of the data in a chunk, less than what is allocated for it. */
uint64_t buffer_chunk_bytes(const struct healcl_device *device, const struct buffer *buffer,
                            uint32_t chunk);

/* What is allocated for a chunk of so many bytes: few distinct sizes, so that chunks fit again.
 * Never above chunk_bytes for one that is not. */
uint64_t buffer_round_bytes(uint64_t bytes);

/* A new buffer of one chunk with a copy of data, buffer_round_bytes(bytes) of them. Otherwise as
 * device_buffer_acquire. */
MUST_CHECK enum healcl_status device_buffer_of(struct healcl_device *device, uint64_t bytes,
                                               void *data, struct buffer *buffer,
                                               struct healcl_error *error);

/* Whether a call failed for lack of memory on the device. */
bool is_out_of_memory(cl_int code);

/* To be called with the code of a call that takes memory, or waits for commands. Where it has
 * failed, waits for the compute queue; for lack of memory on the device, what the pool holds is
 * freed before, so that the driver has it back, and it is worth another try: returns true. */
bool device_recovers(struct healcl_device *device, cl_int code);

/* ---------------------------------------------------------------- transfer.c */

/* Maps bytes of memory on the queue of a track, and waits for that. Where there is no room, as
 * device_buffer_acquire. */
MUST_CHECK enum healcl_status device_map(struct healcl_device *device, enum trace_track track,
                                         cl_mem memory, cl_map_flags flags, uint64_t offset,
                                         uint64_t bytes, void **address,
                                         struct healcl_error *error);

/* ---------------------------------------------------------------- staging.c */

/* Bytes of a half, a power of two; 0: data do not go through staging memory, which the host shares
 * with the device. */
uint64_t staging_half_bytes(const struct healcl_device *device);

/* Gives out bytes, at most a half, of memory that no command uses: of the current half if there is
 * room, else of the other one, when what uses that has ended. The memory is made at first use. */
MUST_CHECK enum healcl_status staging_take(struct healcl_device *device, uint64_t bytes,
                                           void **memory, struct healcl_error *error);

/* Makes the other half the current one, with nothing in it. */
MUST_CHECK enum healcl_status staging_turn(struct healcl_device *device,
                                           struct healcl_error *error);

/* A command was enqueued, in the order of all that use the current half, that uses it too. Takes
 * over its event. */
void staging_used_by(struct healcl_device *device, cl_event event);

/* Waits for what uses a half. */
MUST_CHECK enum healcl_status staging_await(struct healcl_device *device, uint32_t half,
                                            struct healcl_error *error);

/* The queues have nothing left to do. */
void staging_release(struct healcl_device *device);

/* ---------------------------------------------------------------- overlap.c */

/* Makes room for what is remembered. Freed with free(). */
MUST_CHECK enum healcl_status overlap_init(struct healcl_device *device,
                                           struct healcl_error *error);

struct awaited_events {
    cl_event events[LAUNCHES_AT_ONCE_MAX];
    cl_uint count;
};

/* What a command uses: the memory among its arguments. */
struct command_use {
    uint32_t argument_count; /* 0: everything there is */
    const struct launch_argument *arguments;
    const struct kernel *kernel; /* or NULL */
    size_t groups;
};

/* To be called before a command is put on the compute queue: finds the events that it waits for,
 * those of recent commands that write what it uses, or use what it writes. In a queue that is in
 * order there are none. */
void overlap_begin(struct healcl_device *device, const struct command_use *use,
                   struct awaited_events *awaited);

/* What overlap_begin was called for was enqueued. Takes over its event, which is not NULL where
 * device->overlaps. */
void overlap_end(struct healcl_device *device, cl_event event);

/* All commands have ended. */
void overlap_forget(struct healcl_device *device);

/* The list of events as clEnqueue... wants it. */
#define AWAITED(awaited) (awaited).count, ((awaited).count > 0 ? (awaited).events : NULL)

/* ---------------------------------------------------------------- cache.c */

enum { CACHE_KEY_SIZE = 33 };

/* Where files are kept between runs, or NULL for nowhere: HEALCL_CACHE_DIR, else healcl in
 * XDG_CACHE_HOME, else in ~/.cache. Freed with free(). */
char *cache_directory(void);

/* "<directory>/<name>", or NULL without memory. Freed with free(). */
char *cache_path(const char *directory, const char *name);

/* Names a file by all that it depends on, in hexadecimal: the device and its driver, what drivers'
 * compilers take from the environment, what kind of file it is (abi), options and texts. */
void cache_key(const struct device_info *info, const char *abi, const char *options,
               size_t text_count, const char *const *texts, char key[CACHE_KEY_SIZE]);

/* What is kept under a name, freed with free(), or NULL: there is no such file, it is damaged, or
 * it was kept under another name. */
unsigned char *cache_read(const char *directory, const char *name, size_t *bytes);

/* The same of cache_directory(), and of one line, which goes without its end into text of so many
 * characters. */
bool cache_read_line(const char *name, size_t size, char *text);

struct cache_part {
    const void *data;
    size_t bytes;
};

/* Keeps some parts, one after the other, under a name; makes the folder if need be. Other processes
 * see the whole file or none: it is written under another name. Returns whether it is there; else
 * errno says why not. */
bool cache_write(const char *directory, const char *name, size_t count,
                 const struct cache_part *parts);

/* ---------------------------------------------------------------- program.c */

enum { BINARY_NAME_SIZE = 7 + CACHE_KEY_SIZE }; /* "binary_<key>" */

struct kernel {
    struct kernel *next;
    const struct program *program;
    cl_kernel id;
    char *name;
    char *arguments;  /* of device_record, as kernel_arguments_find has them; or NULL */
    uint64_t checked; /* the arguments that it takes, by kernel_check_arguments; 0: none yet */
    struct shared_kernel *shared;
};

struct program {
    struct program *next;
    struct shared_program *shared; /* NULL: it could not be built */
    uint64_t hash;                 /* of the four fields that follow */
    char *name, *options;
    uint32_t chunks;
    size_t local_size;
    char *all_options; /* as the compiler gets them */
    cl_program id;
    struct kernel *kernels;
    char binary_name[BINARY_NAME_SIZE]; /* "": it is not kept */
    uint64_t spent_nanoseconds;     /* on building it, in all runs; 0 where a binary was there */
    bool loaded;                    /* from its binary */
    char source[PACKAGE_HASH_SIZE]; /* of its texts */
    const struct package_program *packaged; /* it is from there; or NULL */
    char *kernel_names;                     /* of device_record; or NULL */
    char *failure;                          /* why it cannot be built; NULL: it is */
    const char *text; /* of a program of a manifest, which has it; NULL: it is known by name */
};

struct program_source {
    struct program_source *next;
    const char *name, *text;
};

/* Kernel arguments that a `buffer` argument of a launch becomes: 1 or BUFFER_CHUNKS_MAX. */
uint32_t launch_chunks(const struct launch *launch);

/* Tell the programs, and the kernels, of launches apart. */
uint64_t launch_program_hash(const struct launch *launch);
uint64_t launch_kernel_hash(const struct launch *launch);

/* The kernel of a launch, built if need be; owned by the device. */
MUST_CHECK enum healcl_status device_kernel(struct healcl_device *device,
                                            const struct launch *launch, struct kernel **kernel,
                                            struct healcl_error *error);

/* ---------------------------------------------------------------- arguments.c */

enum { KERNEL_ARGUMENTS_SIZE = 4096 };

/* What a kernel takes, by address, type and name: "global long* out, private long out_at". The
 * package tells, or the driver, or what was kept beside the binary. Returns whether one of them
 * does. */
bool kernel_arguments_find(const struct healcl_device *device, const struct kernel *kernel,
                           char text[KERNEL_ARGUMENTS_SIZE]);

/* Keeps that of a manifest's program, whose binary has been kept. */
void kernel_arguments_keep(const struct healcl_device *device, const struct program *program);

/* Whether a manifest's kernel takes the arguments of a launch. Asks once for each kernel object and
 * list of arguments; where nobody tells, notes device->arguments_untold. Errors: HEALCL_REFUSED,
 * with manifest, kernel and argument, and device->manifest_is_wrong. */
MUST_CHECK enum healcl_status kernel_check_arguments(struct healcl_device *device,
                                                     struct kernel *kernel,
                                                     const struct launch *launch,
                                                     struct healcl_error *error);

/* The error where the driver does not take argument i for its size or kind. Returns HEALCL_REFUSED.
 */
MUST_CHECK enum healcl_status kernel_argument_refused(struct healcl_device *device,
                                                      const struct launch *launch, uint32_t i,
                                                      cl_int code, struct healcl_error *error);

/* ---------------------------------------------------------------- program.c, again */

/* Keeps the binaries of the programs that are worth it, some of them in each run. */
void device_programs_save(struct healcl_device *device);

/* Waits for the queues, releases the programs that are built, and removes what is kept of them,
 * which is not to be trusted. Returns whether one of them was a binary that had been kept. */
bool device_programs_discard(struct healcl_device *device);

/* Releases the programs of that name; none of their launches is still to end. */
void device_programs_forget(struct healcl_device *device, const char *name);

void device_programs_free(struct healcl_device *device);

/* ---------------------------------------------------------------- shared_programs.c */

/* Behind the lock of shared_programs_lock, but for launched. */
struct shared_kernel {
    struct shared_kernel *next;
    char *name;
    atomic_bool launched; /* on some handle: the driver has compiled it */
};

struct shared_program {
    struct shared_program *next;
    uint32_t users; /* programs of handles */
    bool discarded; /* nobody finds it any more */
    bool loaded;    /* the rest is as in struct program; options are all of them */
    uint64_t hash;
    char *name, *options;
    char *own_text; /* NULL: text is there anyway */
    const char *text;
    cl_program id;
    char binary_name[BINARY_NAME_SIZE], source[PACKAGE_HASH_SIZE];
    const struct package_program *packaged;
    struct shared_kernel *kernels;
};

/* Makes what handles on a context share of programs; the package is part of it. */
MUST_CHECK enum healcl_status shared_programs_make(struct healcl_device *device,
                                                   struct healcl_error *error);

/* Another handle shares them. */
void shared_programs_enter(struct healcl_device *device, struct shared_programs *programs);

/* A handle has no programs any more. The last one takes along what was shared. */
void shared_programs_leave(struct healcl_device *device);

/* What follows is called between these two. */
void shared_programs_lock(struct healcl_device *device);
void shared_programs_unlock(struct healcl_device *device);

/* Finds the program that another handle has built from this text, with these options. */
MUST_CHECK enum healcl_status shared_program_use(struct healcl_device *device,
                                                 struct program *program, const char *text,
                                                 bool *found, struct healcl_error *error);

/* Shares a program that was built. text_stays: it lives as long as the process. */
MUST_CHECK enum healcl_status shared_program_add(struct healcl_device *device,
                                                 struct program *program, const char *text,
                                                 bool text_stays, struct healcl_error *error);

/* The program of a handle is released. discard: no other handle gets
 * it from now on. */
void shared_program_leave(struct healcl_device *device, struct program *program, bool discard);

/* Gives a kernel what handles share of it. */
MUST_CHECK enum healcl_status shared_kernel_find(struct program *program, struct kernel *kernel,
                                                 struct healcl_error *error);
/* ---------------------------------------------------------------- binary.c */

/* Names the file of a binary by all that it depends on. */
void binary_name(const struct device_info *info, size_t text_count, const char *const *texts,
                 const char *options, char name[BINARY_NAME_SIZE]);

/* A program that is built already, or NULL: then the source is to be built. */
cl_program binary_load(struct healcl_device *device, const char *name, const char *options);

/* Notes that the source had to be built. Returns how long that has taken in all runs so far. */
uint64_t binary_note_build(const struct healcl_device *device, const char *name,
                           uint64_t nanoseconds);

/* Removes a binary, and what was noted of it. */
void binary_remove(const struct healcl_device *device, const char *name);

/* The binary of a built program, freed with free(). Best called when its kernels have run: some
 * drivers compile them only then. Errors: HEALCL_DEVICE. */
MUST_CHECK enum healcl_status binary_get(const struct healcl_device *device, cl_program program,
                                         unsigned char **binary, size_t *bytes,
                                         struct healcl_error *error);

/* Gets and keeps it. Errors: HEALCL_USAGE where it cannot be written, HEALCL_DEVICE. */
MUST_CHECK enum healcl_status binary_save(const struct healcl_device *device, const char *name,
                                          uint64_t spent_nanoseconds, cl_program program,
                                          size_t *bytes, struct healcl_error *error);

/* ---------------------------------------------------------------- packaged.c */

/* Whether the device's package is for it. Errors: HEALCL_REFUSED. */
MUST_CHECK enum healcl_status packaged_check(const struct healcl_device *device,
                                             struct healcl_error *error);

/* How the device was tuned when its package was made: the same variants are picked then. */
MUST_CHECK enum healcl_status packaged_tuning(const struct healcl_device *device,
                                              struct device_tuning *tuning,
                                              struct healcl_error *error);
MUST_CHECK enum healcl_status packaged_choices(const struct healcl_device *device,
                                               struct kernel_choices *choices,
                                               struct healcl_error *error);

/* Gets a program from the device's package. Errors: HEALCL_DEVICE where it is not there. */
MUST_CHECK enum healcl_status packaged_load(struct healcl_device *device, struct program *program,
                                            struct healcl_error *error);

/* How a kernel is called in its program's binary. */
const char *packaged_symbol(const struct program *program, const char *name);

/* ---------------------------------------------------------------- record.c */

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
MUST_CHECK enum healcl_status command_log_reserve(struct command_log *log,
                                                  struct healcl_error *error);

/* To be called before a command is enqueued: where the host's clock counts, nothing that was
 * enqueued before is to be part of its time. */
void command_begin(struct healcl_device *device, struct command *command);

/* Adds a command that was enqueued, and reads the times of those that have ended. There is room.
 * The log owns the event. */
MUST_CHECK enum healcl_status command_log_add(struct healcl_device *device, struct command_log *log,
                                              const struct command *command,
                                              struct healcl_error *error);

/* Forgets what has no times yet. */
void command_log_clear(struct healcl_device *device, struct command_log *log);

/* ---------------------------------------------------------------- trace.c */

/* Whether the driver takes times of commands that go on with the host's: rusticl's do not. The
 * compute queue takes times. */
MUST_CHECK enum healcl_status device_takes_event_times(struct healcl_device *device, bool *takes,
                                                       struct healcl_error *error);

/* What transfers do around an enqueued command of theirs, where it is traced: */
struct traced_command {
    struct command command;
    struct command_log *log;
    cl_event *event; /* for clEnqueue...; NULL where there is no trace */
};

/* track also says which queue it is. */
MUST_CHECK enum healcl_status traced_command_init(struct traced_command *traced,
                                                  struct healcl_device *device,
                                                  enum trace_track track, const char *name,
                                                  uint64_t bytes, struct healcl_error *error);

/* It was enqueued. */
MUST_CHECK enum healcl_status traced_command_log(struct traced_command *traced,
                                                 struct healcl_device *device,
                                                 struct healcl_error *error);

#endif
