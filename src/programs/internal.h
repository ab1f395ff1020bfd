/* What the files of this folder share. */
#ifndef HEALCL_PROGRAMS_INTERNAL_H
#define HEALCL_PROGRAMS_INTERNAL_H

#include <stdatomic.h>
#include <stdio.h>

#include "device/commands.h"
#include "package/package.h"
#include "programs/cache.h"
#include "programs/opening.h"
#include "programs/programs.h"

/* ---------------------------------------------------------------- opening.c */

/* Notes what the self-test has found, and shapes kernels for it. */
enum healcl_status device_note_findings(struct healcl_device *device, uint64_t loop_limit,
                                        bool launches_overlap, uint32_t multiply,
                                        struct healcl_error *error);

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
enum healcl_status device_find_multiply(struct healcl_device *device, uint32_t *fastest,
                                        struct healcl_error *error);

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
    uint64_t hash;                 /* of the three fields that follow */
    char *name, *options;
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

/* Tell the programs, and the kernels, of launches apart. */
uint64_t launch_program_hash(const struct launch *launch);
uint64_t launch_kernel_hash(const struct launch *launch);

/* The kernel of a launch, built if need be; owned by the device. */
enum healcl_status device_kernel(struct healcl_device *device, const struct launch *launch,
                                 struct kernel **kernel, struct healcl_error *error);

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
 * list of arguments; where nobody tells, notes device->programs->arguments_untold. Errors:
 * HEALCL_REFUSED, with manifest, kernel and argument, and device->programs->manifest_is_wrong. */
enum healcl_status kernel_check_arguments(struct healcl_device *device, struct kernel *kernel,
                                          const struct launch *launch, struct healcl_error *error);

/* The error where the driver does not take argument i for its size or kind. Returns HEALCL_REFUSED.
 */
enum healcl_status kernel_argument_refused(struct healcl_device *device,
                                           const struct launch *launch, uint32_t i, cl_int code,
                                           struct healcl_error *error);

/* ---------------------------------------------------------------- program.c, again */

/* Keeps the binaries of the programs that are worth it, some of them in each run. */
void device_programs_save(struct healcl_device *device);

/* Waits for the queues, releases the programs that are built, and removes what is kept of them,
 * which is not to be trusted. Returns whether one of them was a binary that had been kept. */
bool device_programs_discard(struct healcl_device *device);

/* Releases the programs of that name; none of their launches is still to end. */
void device_programs_forget(struct healcl_device *device, const char *name);

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
enum healcl_status shared_programs_make(struct healcl_device *device, struct healcl_error *error);

/* Another handle shares them. */
void shared_programs_enter(struct healcl_device *device, struct shared_programs *programs);

/* A handle has no programs any more. The last one takes along what was shared. */
void shared_programs_leave(struct healcl_device *device);

/* What follows is called between these two. */
void shared_programs_lock(struct healcl_device *device);
void shared_programs_unlock(struct healcl_device *device);

/* Finds the program that another handle has built from this text, with these options. */
enum healcl_status shared_program_use(struct healcl_device *device, struct program *program,
                                      const char *text, bool *found, struct healcl_error *error);

/* Shares a program that was built. text_stays: it lives as long as the process. */
enum healcl_status shared_program_add(struct healcl_device *device, struct program *program,
                                      const char *text, bool text_stays,
                                      struct healcl_error *error);

/* The program of a handle is released. discard: no other handle gets
 * it from now on. */
void shared_program_leave(struct healcl_device *device, struct program *program, bool discard);

/* Gives a kernel what handles share of it. */
enum healcl_status shared_kernel_find(struct program *program, struct kernel *kernel,
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
enum healcl_status binary_get(const struct healcl_device *device, cl_program program,
                              unsigned char **binary, size_t *bytes, struct healcl_error *error);

/* Gets and keeps it. Errors: HEALCL_USAGE where it cannot be written, HEALCL_DEVICE. */
enum healcl_status binary_save(const struct healcl_device *device, const char *name,
                               uint64_t spent_nanoseconds, cl_program program, size_t *bytes,
                               struct healcl_error *error);

/* ---------------------------------------------------------------- packaged.c */

/* Whether the device's package is for it. Errors: HEALCL_REFUSED. */
enum healcl_status packaged_check(const struct healcl_device *device, struct healcl_error *error);

/* How the device was tuned when its package was made: the same variants are picked then. */
enum healcl_status packaged_tuning(const struct healcl_device *device, struct device_tuning *tuning,
                                   struct healcl_error *error);
enum healcl_status packaged_choices(const struct healcl_device *device,
                                    struct kernel_choices *choices, struct healcl_error *error);

/* Gets a program from the device's package. Errors: HEALCL_DEVICE where it is not there. */
enum healcl_status packaged_load(struct healcl_device *device, struct program *program,
                                 struct healcl_error *error);

/* How a kernel is called in its program's binary. */
const char *packaged_symbol(const struct program *program, const char *name);

#endif
