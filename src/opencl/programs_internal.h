/* What the files of this folder share. */
#ifndef HEALCL_OPENCL_PROGRAMS_INTERNAL_H
#define HEALCL_OPENCL_PROGRAMS_INTERNAL_H

#include <stdatomic.h>
#include <stdio.h>

#include "opencl/cache.h"
#include "opencl/commands.h"
#include "opencl/opening.h"
#include "opencl/package.h"
#include "opencl/programs.h"

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
    char *name;
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
    bool may_be_kept;                  /* nothing is wrong with what its kernels take */
    bool loaded;                       /* from its binary */
    const char *prefix;                /* of its kernels' names in the package's image; or NULL */
    char *failure;                     /* why it cannot be built; NULL: it is */
    const char *text; /* of a program of a manifest, which has it; NULL: it is known by name */
};

struct program_source {
    struct program_source *next;
    const char *name, *text;
};

/* Tell the programs, and the kernels, of launches apart. */
uint64_t launch_program_hash(const struct launch *launch);
uint64_t launch_kernel_hash(const struct launch *launch);

/* The kernel of a launch, built if need be; owned by the device. */
enum healcl_status device_kernel(struct healcl_device *device, const struct launch *launch,
                                 struct kernel **kernel, struct healcl_error *error);

/* ---------------------------------------------------------------- arguments.c */

/* Tells kernels of manifests apart by their names and by which arguments are memory, so that a
 * binary counts for those that were checked when its source was built; 0 for other kernels. */
uint64_t kernel_arguments_hash(const struct launch *launch);

/* Whether a manifest's kernel takes the arguments of a launch. Asks once for each kernel object
 * that was built from its source; where nobody tells, notes device->programs->arguments_untold.
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

/* Keeps the binaries of programs that were built, where the device does that. */
void device_programs_save(struct healcl_device *device);

/* Waits for the queues, releases the programs that are built, and removes what is kept of them,
 * which is not to be trusted. Returns whether one of them was a binary that had been kept. */
bool device_programs_discard(struct healcl_device *device);

/* Frees device->programs, and all that is in it. */
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
    uint32_t users;      /* programs of handles */
    bool discarded;      /* nobody finds it any more */
    char key[HASH_SIZE]; /* this and what follows as in struct program */
    cl_program id;
    bool loaded;
    const char *prefix;
    struct shared_kernel *kernels;
};

/* Makes what handles on a context share of programs; the package is part of it. */
enum healcl_status shared_programs_make(struct healcl_device *device, struct healcl_error *error);

/* Another handle shares them. */
void shared_programs_enter(struct healcl_device *device, struct shared_programs *programs);

/* A handle has no programs any more. The last one takes along what was shared. */
void shared_programs_leave(struct healcl_device *device);

/* What follows is called between these two. */
void shared_programs_lock(struct healcl_device *device);
void shared_programs_unlock(struct healcl_device *device);

/* Finds the program of that key that another handle has built. */
enum healcl_status shared_program_use(struct healcl_device *device, struct program *program,
                                      bool *found, struct healcl_error *error);

/* Shares a program that was built. */
enum healcl_status shared_program_add(struct healcl_device *device, struct program *program,
                                      struct healcl_error *error);

/* The program of a handle is released. discard: no other handle gets
 * it from now on. */
void shared_program_leave(struct healcl_device *device, struct program *program, bool discard);

/* Gives a kernel what handles share of it. */
enum healcl_status shared_kernel_find(struct program *program, struct kernel *kernel,
                                      struct healcl_error *error);

/* ---------------------------------------------------------------- binary.c */

/* Loads a program's binary from the cache. Returns program->loaded. */
bool binary_load(struct healcl_device *device, struct program *program, const char *options);

/* The binary of a built program, freed with free(). Best called when its kernels
 * have run: some drivers compile them only then. Errors: HEALCL_DEVICE. */
enum healcl_status binary_get(const struct healcl_device *device, const struct program *program,
                              unsigned char **binary, size_t *bytes, struct healcl_error *error);

/* Gets a program from the device's package. Errors: HEALCL_DEVICE where it is not there. */
enum healcl_status binary_load_packaged(struct healcl_device *device, struct program *program,
                                        struct healcl_error *error);

#endif
