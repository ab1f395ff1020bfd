/*
 * Devices that are listed, opened and closed (healcl_device_close), with all that goes with them:
 * tunings and findings that were cached, programs, packages.
 */
#ifndef HEALCL_OPENCL_OPENING_H
#define HEALCL_OPENCL_OPENING_H

#include "opencl/programs.h"

/* The devices alone. No devices at all is not an error: *count is 0. A platform that cannot list
 * its devices is one only where no other can: platform 0 NAME: clGetDeviceIDs failed: ... The list
 * is freed with free(). */
enum healcl_status device_list(const struct opencl *cl, struct device_info **list, size_t *count,
                               struct healcl_error *error);

/* cl outlives the device. Otherwise as healcl_device_open, but without the self-test. */
enum healcl_status device_open(const struct opencl *cl, const char *selector,
                               struct healcl_device **device, struct healcl_error *error);
/* As device_open, with all that a caller may bring, but for the queue: device_take_queue. */
enum healcl_status device_open_with(const struct opencl *cl,
                                    const struct healcl_device_options *options,
                                    struct healcl_device **device, struct healcl_error *error);

/* Opens a handle on the same context as another one, with queues, kernels and a pool of its own,
 * for another thread; tuned as that one is now. It may live longer. They take turns:
 * device_turn_begin.
 */
enum healcl_status device_open_beside(struct healcl_device *first, struct healcl_device **device,
                                      struct healcl_error *error);

/* As device_open; then runs the self-test unless it is cached that the device passed it, and keeps
 * what came out. Errors: those of both. */
enum healcl_status device_open_tested(const struct opencl *cl, const char *selector,
                                      struct healcl_device **device, struct healcl_error *error);

/* Memory that a run and the process that compiles ahead of it share. Kernels and programs are named
 * by a hash; 0 for none. */
struct compile_board {
    _Atomic uint64_t run, ahead;                 /* the kernel that each of them compiles */
    _Atomic uint64_t run_program, ahead_program; /* the program that each of them builds */
};

/* The program knows this when it opens a device, and callers of the library do not. */
struct device_opening {
    struct trace *trace;          /* for spans of the self-test; or NULL */
    struct compile_board *board;  /* shared with the process that compiles ahead; or NULL */
    const char *builder;          /* a command: device_build_listed; or NULL */
    struct program_lister lister; /* device_build_ahead; list may be NULL */
};

/* As device_open_tested, with options; opening may be NULL. */
enum healcl_status device_open_for_run(const struct opencl *cl,
                                       const struct healcl_device_options *options,
                                       const struct device_opening *opening,
                                       struct healcl_device **device, struct healcl_error *error);

#endif
