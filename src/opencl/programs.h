/* Programs and kernels of a device: built or loaded when they are first wanted, kept, launched. */
#ifndef HEALCL_OPENCL_PROGRAMS_H
#define HEALCL_OPENCL_PROGRAMS_H

#include <stdatomic.h>
#include <stdio.h>

#include "opencl/device.h"

/* Programs of a device, and what is known of them. */
struct device_programs {
    struct program *list;           /* built so far, the last one used first */
    struct program_source *added;   /* beside cl/ */
    struct package *package;        /* all programs come from there; or NULL. Shared too */
    struct kernel_choices choices;  /* among kernels of manifests */
    uint64_t compile_nanoseconds;   /* spent building programs and making kernels */
    uint64_t first_launches;        /* of kernels, those of the self-test left out: a driver may
                                       compile one only when it first runs */
    uint64_t self_test_nanoseconds; /* when the device was opened; 0: it had passed before */
    uint64_t built;                 /* programs, from their source */
    uint64_t loaded;                /* from binaries that were cached */
    char *cache_directory;          /* of program binaries, or NULL: cache.c */
    bool keeps_binaries;            /* of programs that it builds: opening.c */
    const char *forced_unsupported; /* HEALCL_LACKS; or NULL */
    char *warnings;                 /* that compilers gave of manifests' sources; or NULL */
    bool distrusted;                /* the device failed its self-test: no binary is cached */
    bool manifest_is_wrong;         /* the last kernel does not take what its manifest gives */
    bool arguments_unknown;         /* ARGUMENTS_UNKNOWN: to be told once */
    atomic_bool unsupported_met;    /* device_note_unsupported, since a program was last wanted */
    bool keeps_failures;            /* what cannot be built is not tried again */
    struct compiling_ahead {
        enum compile_ahead {
            COMPILE_NOT,
            COMPILE_NOTE,
            COMPILE_ANOTHER,
            COMPILE_ALL,
            COMPILE_LIST
        } what;
        uint64_t noted;              /* the hash of the last program that COMPILE_NOTE has met */
        struct compile_board *board; /* shared with the other process; or NULL */
    } ahead;                         /* device_compile_ahead */
    struct program_lister {
        void (*list)(const void *plan, struct healcl_device *beside); /* NULL: there is none */
        const void *plan;
    } lister;             /* device_build_listed */
    struct builds *begun; /* by device_build_ahead; or NULL */
    const char *builder;  /* device_build_listed; or NULL */
    const void **failed;  /* kernels of others that could not be built */
    size_t failed_count, failed_capacity;
    struct launch_recorder *recorder;       /* takes what is launched; or NULL */
    const struct launch_observer *observer; /* or NULL */
    struct trace *opening_trace; /* while it is opened, for spans of the host alone; or NULL */
};

enum { LAUNCH_OPTIONS_SIZE = 512 };

/* Makes a program of one's own known, e.g. a vendor's version of a family: it goes before one of
 * cl/ of the same name. Programs that are built already stay. name and text outlive the device.
 */
enum healcl_status device_add_program(struct healcl_device *device, const char *name,
                                      const char *text, struct healcl_error *error);

/*
 * One kernel launch. The program is cl/<program>.cl behind cl/base/base.h and cl/base/arithmetic.h,
 * built with options and -D LOCAL_SIZE=<local_size>.
 */
struct launch {
    const char *program, *kernel;
    const char *source; /* the program's, which its name tells apart; NULL: it is known by name */
    char options[LAUNCH_OPTIONS_SIZE]; /* "-D A=long -D OUT=int" */
    uint32_t argument_count;
    struct launch_argument arguments[LAUNCH_ARGUMENTS_MAX];
    struct manifest_kernel manifest; /* for traces: which one it is */
    size_t local_size;
    size_t groups;       /* work-groups; 0 launches nothing */
    const void *tag;     /* handed back with the launch's time; NULL: that is not */
    const void *variant; /* that runs a step of that kind by it; NULL: it only prepares one */
    int kind;
};

/* Is told of launches that variants make of a kind of step; again: of recorded ones. */
struct launch_observer {
    void *context;
    void (*launched)(void *context, int kind, const void *variant, const char *kernel, bool again);
};

/* Bytes of its arguments, as drivers may count them. */
size_t launch_argument_bytes(const struct launch *launch);

/* Programs that a device has built, for healcl compile. Texts but kernels are the device's. */
struct recorded_program {
    const char *name, *options, *key;
    char *kernels;         /* those that were wanted, separated by blanks */
    unsigned char *binary; /* or NULL */
    size_t bytes;
};
struct record {
    struct recorded_program *programs;
    size_t count;
};
enum healcl_status device_record(struct healcl_device *device, bool with_binaries,
                                 struct record *record, struct healcl_error *error);
void record_release(struct record *record);

/* Writes what a program is built from, but for its options. */
enum healcl_status device_write_source(const struct healcl_device *device, const char *name,
                                       FILE *stream, struct healcl_error *error);

/*
 * Capabilities that a device lacks. HEALCL_LACKS, for tests, has it treated as if it had no kernels
 * for the operations and families of that list, or all.
 */

/* Whether HEALCL_LACKS has a name, or all. */
bool device_is_forced_off(const struct healcl_device *device, const char *name);

/* Notes that the error in hand is one of something that the device lacks: a program that its
 * package or its compiler has not, a kernel, or a capability. Returns status. */
enum healcl_status device_note_unsupported(struct healcl_device *device, enum healcl_status status);

/* Warnings about an opened device, whatever runs on it; NULL behind the last one. */
const char *device_warning(const struct healcl_device *device, size_t number);

/* Kernels of others that could not be built, by what they are called by. */
bool device_has_failed(const struct healcl_device *device, const void *kernel);
enum healcl_status device_note_failed(struct healcl_device *device, const void *kernel,
                                      struct healcl_error *error);

/* Builds what a launch needs if it is not built yet. */
enum healcl_status device_build_kernel(struct healcl_device *device, const struct launch *launch,
                                       struct healcl_error *error);

/* Enqueues a launch on the compute queue (building first if need be); never waits, but where the
 * device has no room: then as device_buffer_acquire. */
enum healcl_status device_launch(struct healcl_device *device, const struct launch *launch,
                                 struct healcl_error *error);

/* A launch of a kernel object whose arguments are set. Where it was recorded the object is its own,
 * and memory alone is set again, where it is another. */
struct recorded_launch {
    struct kernel *kernel;
    cl_kernel id;
    size_t groups, local_size;
    const void *tag, *variant;
    int kind;
    uint32_t argument_count;
    const struct launch_argument *arguments;
    struct launch_argument *own; /* the same, recorded: buffers alone, size is their bytes */
};

/* Takes launches, at most so many. */
struct launch_recorder {
    struct recorded_launch *launches;
    size_t count, capacity, most;
};

/* As device_launch, for what a recorder has taken. Its buffers may have other memory than before.
 */
enum healcl_status device_launch_again(struct healcl_device *device,
                                       const struct recorded_launch *launch,
                                       struct healcl_error *error);

void recorder_release(struct healcl_device *device, struct launch_recorder *recorder);

/* From now on launches only have their kernels compiled, by one work-group each, once. With
 * COMPILE_NOTE none is, and the program of the last launch is noted; with COMPILE_ANOTHER only the
 * first kernel of another program, and from then on all. With COMPILE_LIST nothing is compiled:
 * device_build_listed does that. */
void device_compile_ahead(struct healcl_device *device, enum compile_ahead what);

/* Notes the program of a launch in device->programs->list, unless another handle has built it. It
 * is one of cl/, or was added. */
void device_list_program(struct healcl_device *device, const struct launch *launch);

/*
 * Builds what was listed, or loads it from the cache, builds_at_once of them by threads. Handles
 * beside this one find it. What cannot be built is left out: its launch meets the error.
 *
 * Where the handle has the name of a command of this program, a builder, and keeps binaries, child
 * processes build those that are not cached, too: "healcl BUILDER SELECTOR", and each program's
 * name, options and size of work-groups.
 *
 * A handle whose lister is set has all programs of a plan built so before it builds the first: the
 * lister has launches of the plan listed on a handle beside it.
 */
void device_build_listed(struct healcl_device *device);

/* Starts the child processes that build a plan's programs, before the self-test of a handle that
 * has a builder: the test takes as long as some programs. The handle builds the others, and takes
 * all, before its first program of the plan. Spans go to the trace, which may be NULL. */
void device_build_ahead(struct healcl_device *device, const struct program_lister *lister,
                        struct trace *trace);

/* Stops these processes where device_build_ahead has started any: the plan's programs are others
 * now, or nobody wants them. */
void device_build_abandon(struct healcl_device *device);

/* In such a process: builds those of the programs that no other one has taken. Of each there are
 * three arguments. */
void device_build_beside(struct healcl_device *device, char *const *arguments, size_t count);

/* For a driver that does not answer clGetKernelArgInfo. */
#define ARGUMENTS_UNKNOWN                                                                  \
    "the driver does not report the arguments of kernels of manifests: only their number " \
    "and sizes were checked"

#endif
