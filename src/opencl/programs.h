/* Programs and kernels of a device. They are built or loaded on first use, kept, and launched. */
#ifndef HEALCL_OPENCL_PROGRAMS_H
#define HEALCL_OPENCL_PROGRAMS_H

#include <stdatomic.h>
#include <stdio.h>

#include "opencl/cache.h"

/* The source of a program. */
struct program_source {
    const char *name, *text;
};

/* Programs of a device, with their statistics. */
struct device_programs {
    struct kernel *kernels;             /* used so far, most recently used first */
    const struct program_source *added; /* by tests, before those of cl/; ends with a NULL name */
    struct package *package;            /* the source of all programs, shared by handles; or NULL */
    struct kernel_choices choices;      /* among manifests' kernels */
    uint64_t compile_nanoseconds;       /* spent building programs and creating kernels */
    uint64_t first_launches; /* of kernels, except in the self-test: a driver may compile a kernel
                                only when it first runs */
    uint64_t self_test_nanoseconds; /* when the device was opened; 0: it had passed before */
    uint64_t built;                 /* programs built from source */
    uint64_t loaded;                /* programs loaded from cached binaries */
    bool keeps_binaries;            /* of programs that it builds: binary.c */
    const char *forced_unsupported; /* HEALCL_LACKS; or NULL */
    char *warnings;                 /* that compilers gave for manifests' sources; or NULL */
    bool distrusted;        /* the device failed its self-test: it does not cache binaries */
    bool manifest_is_wrong; /* the last kernel does not accept its manifest's arguments */
    bool arguments_unknown; /* ARGUMENTS_UNKNOWN must be reported once */
    bool keeps_failures;    /* it does not retry what could not be built */
    struct compiling_ahead {
        bool is_on;                  /* this process compiles kernels for another one */
        struct compile_board *board; /* shared with the other process; or NULL */
    } ahead;
    struct program_lister {
        void (*list)(const void *plan, struct healcl_device *device); /* NULL without a lister */
        const void *plan;
    } lister;                    /* for device_build_ahead, before the first program of its plan */
    struct builds *child_builds; /* begun by device_build_ahead; or NULL */
    const char *builder;         /* for device_build_ahead; or NULL */
    const void **failed;         /* other vendors' kernels that could not be built */
    size_t failed_count, failed_capacity;
    const struct launch_observer *observer; /* or NULL */
    struct trace *opening_trace; /* for spans of the host while the device is opened; or NULL */
};

/* Bytes of a launch's options, with the final 0. */
enum { LAUNCH_OPTIONS_SIZE = 512 };

/*
 * One kernel launch. The program is cl/base/base.h, cl/base/arithmetic.h and cl/<program>.cl in
 * this order. It is built with options and -D LOCAL_SIZE=<local_size>.
 */
struct launch {
    const char *program, *kernel;
    const char *source;  /* the program's source, identified by its name; NULL: found by program */
    const char *options; /* "-D A=long -D OUT=int" */
    uint32_t argument_count;
    struct launch_argument *arguments;
    struct manifest_kernel manifest; /* its kernel, for traces */
    size_t local_size;
    size_t groups;       /* work-groups; 0 launches nothing */
    const void *tag;     /* returned with the launch's time; NULL: the time is not returned */
    const void *variant; /* that runs a step of that kind with it; NULL: it only prepares a step */
    int kind;
};

/* Receives launches that variants make for a kind of step. again: the launch has its own kernel
 * object, whose arguments stay set. */
struct launch_observer {
    void *context;
    void (*launched)(void *context, int kind, const void *variant, const char *kernel, bool again);
};

/* Bytes of a launch's arguments, as drivers may count them. */
size_t launch_argument_bytes(const struct launch *launch);

/* A kernel of a handle. */
struct kernel {
    struct kernel *next;
    struct device_program *program;
    struct shared_kernel *shared;
    cl_kernel id;    /* NULL: it is not built */
    bool is_checked; /* kernel_check_arguments has checked it */
};

/* A kernel as all handles share it. Protected by the lock of struct device_context, except for
 * launched. */
struct shared_kernel {
    struct shared_kernel *next;
    atomic_bool launched; /* on any handle: the driver has compiled it */
    char name[];
};

/* A program, built or not, as the handles on a context share it. What identifies it does not
 * change; the rest is protected by the lock of struct device_context. */
struct device_program {
    struct device_program *next;
    uint32_t users; /* kernels of handles, and builds */
    uint64_t hash;  /* of the next four fields */
    char *name, *options;
    size_t local_size;
    uint64_t arguments; /* kernel_arguments_hash of the launches that use it */
    char all_options[LAUNCH_OPTIONS_SIZE + 128]; /* as passed to the compiler */
    char key[HASH_SIZE];                         /* a hash of those and of its texts */
    char binary_name[CACHE_NAME_SIZE]; /* in the cache or the package; "": it is not cached */
    const char *text; /* source of a manifest's program, which owns it; NULL: found by name */
    cl_program id;    /* NULL: it is not built */
    bool loaded;      /* from a binary */
    bool discarded;   /* it can no longer be found */
    atomic_bool may_be_cached; /* it is not yet, and its kernels accept their launches' arguments */
    char *failure;             /* why it cannot be built; NULL: it can */
    const char *symbol_prefix; /* of its kernels' names in the package's image; or NULL */
    struct shared_kernel *kernels;
};

/* The program after this one, or the first one if that is NULL, of those that are built and that
 * kernels of handles belong to. NULL: there is none. */
const struct device_program *device_next_program(const struct healcl_device *device,
                                                 const struct device_program *program);

/* The binary of a built program, freed with free(). Best called after its kernels have run: some
 * drivers compile them only then. Errors: HEALCL_DEVICE. */
enum healcl_status binary_get(const struct healcl_device *device, cl_program id,
                              unsigned char **binary, size_t *bytes, struct healcl_error *error);

/* Writes the source that a program is built from, without its options. */
enum healcl_status device_write_source(const struct healcl_device *device,
                                       const struct device_program *program, FILE *stream,
                                       struct healcl_error *error);

/*
 * Capabilities that a device lacks. HEALCL_LACKS, for tests, lists operations and families, or
 * "all". The device is then treated as if it had no kernels for them.
 */

/* Whether HEALCL_LACKS contains a name, or "all". */
bool device_is_forced_off(const struct healcl_device *device, const char *name);

/* Warnings about an opened device, independent of what it runs. NULL after the last one. */
const char *device_warning(const struct healcl_device *device, size_t number);

/* Other vendors' kernels that could not be built, identified by a pointer. */
bool device_has_failed(const struct healcl_device *device, const void *kernel);
enum healcl_status device_note_failed(struct healcl_device *device, const void *kernel,
                                      struct healcl_error *error);

/* Enqueues a launch on the compute queue, and builds its kernel first if necessary. Waits only if
 * the device is out of memory: then as device_buffer_acquire. */
enum healcl_status device_launch(struct healcl_device *device, const struct launch *launch,
                                 struct healcl_error *error);

struct kernel;

/* A launch's own object of a kernel. */
struct kernel_object {
    cl_kernel id;
    uint64_t *serials; /* by argument: of the memory that is set, or one of these */
    uint32_t count;
};
enum { UNSET_SERIAL, VALUE_SERIAL }; /* of an argument that is not set; of a value */

/* Builds the kernel of a launch if it is not built yet, and checks that the device can launch it
 * so. The device owns *kernel. */
enum healcl_status device_attach(struct healcl_device *device, const struct launch *launch,
                                 struct kernel **kernel, struct healcl_error *error);

/* Creates another object of a built kernel, which the caller releases with clReleaseKernel. Returns
 * NULL if that fails. *code: OpenCL's code. */
cl_kernel kernel_create(struct healcl_device *device, const struct kernel *kernel, cl_int *code);

/* Enqueues a launch of an attached kernel. own: the launch's own; NULL: all launches of the
 * kernel share one. Otherwise as device_launch. */
enum healcl_status device_enqueue(struct healcl_device *device, const struct launch *launch,
                                  struct kernel *kernel, const struct kernel_object *own,
                                  struct healcl_error *error);

/* Compiles the kernel of a launch, unless it has run: it runs once, with one work-group. PoCL
 * compiles kernels only then. Waits. */
enum healcl_status device_compile(struct healcl_device *device, const struct launch *launch,
                                  struct healcl_error *error);

/* Identifies the program of a launch. */
uint64_t launch_program_hash(const struct launch *launch);

/* For a lister: notes the program of a launch, which device_build_ahead then has built. context:
 * the struct healcl_device. Returns NULL: nothing is built yet. */
struct kernel *device_list_program(void *context, const struct launch *launch);

/*
 * Starts child processes that build those programs of a plan that are not cached. The lister calls
 * device_list_program for each launch of the plan, and makes no OpenCL call.
 *
 * The handle must have a builder, the name of a command of this program, and cache binaries. Then
 * builds_at_once processes build: this one and child processes. Their command line is "healcl
 * BUILDER SELECTOR", and each program's name, options and size of work-groups.
 *
 * Called before the self-test, which takes as long as some programs, or before the handle builds
 * the first program of the plan. Then it builds what no child process has taken, and waits for the
 * others. Launches report errors of programs that cannot be built. trace: for spans, or NULL.
 */
void device_build_ahead(struct healcl_device *device, const struct program_lister *lister,
                        struct trace *trace);

/* Stops the processes that device_build_ahead has started, if any. Used when the plan's programs
 * have changed, or are no longer needed. */
void device_build_abandon(struct healcl_device *device);

/* In such a process: builds those programs that no other process has taken. `arguments` has three
 * entries for each program. */
void device_build_beside(struct healcl_device *device, char *const *arguments, size_t count);

/* The warning for a driver that does not answer clGetKernelArgInfo. */
#define ARGUMENTS_UNKNOWN                                                                  \
    "the driver does not report the arguments of kernels of manifests: only their number " \
    "and sizes were checked"

#endif
