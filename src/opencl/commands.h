/*
 * Commands: their order on the compute queue, and their times. For who enqueues kernels; and what
 * opens and closes devices needs of their queues.
 */
#ifndef HEALCL_OPENCL_COMMANDS_H
#define HEALCL_OPENCL_COMMANDS_H

#include "opencl/device.h"

/* ---------------------------------------------------------------- device.c */

/*
 * Makes context and queues of a device whose cl, info, tuning and brought are set, and reads what
 * the environment says of its memory. Ended by device_clear and device_release, also where this
 * fails.
 */
enum healcl_status device_create(struct healcl_device *device, struct healcl_error *error);

/* The same on the context of another handle, whose settings it gets. */
enum healcl_status device_create_beside(struct healcl_device *device, struct healcl_device *first,
                                        struct healcl_error *error);

/* Waits for the queues and gives back the memory that they use. The handle has a turn. */
void device_clear(struct healcl_device *device);

/* Gives back queues and context, which nothing uses any more. The turn ends. */
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

/* ---------------------------------------------------------------- transfer.c */

/* Maps bytes of memory on the queue of a track, and waits for that. Where there is no room, as
 * device_buffer_acquire. */
enum healcl_status device_map(struct healcl_device *device, enum trace_track track, cl_mem memory,
                              cl_map_flags flags, uint64_t offset, uint64_t bytes, void **address,
                              struct healcl_error *error);

/* ---------------------------------------------------------------- overlap.c */

struct awaited_events {
    cl_event events[LAUNCHES_AT_ONCE_MAX];
    cl_uint count;
};

/* What a command uses: the memory among its arguments. */
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

/* What overlap_begin was called for was enqueued. Takes over its event, which is not NULL where
 * device->overlaps. */
void overlap_end(struct healcl_device *device, cl_event event);

/* All commands have ended. */
void overlap_forget(struct healcl_device *device);

/* The list of events as clEnqueue... wants it. */
#define AWAITED(awaited) (awaited).count, ((awaited).count > 0 ? (awaited).events : NULL)

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
enum healcl_status command_log_reserve(struct command_log *log, struct healcl_error *error);

/* To be called before a command is enqueued: where the host's clock counts, nothing that was
 * enqueued before is to be part of its time. */
void command_begin(struct healcl_device *device, struct command *command);

/* Adds a command that was enqueued, and reads the times of those that have ended. There is room.
 * The log owns the event. */
enum healcl_status command_log_add(struct healcl_device *device, struct command_log *log,
                                   const struct command *command, struct healcl_error *error);

/* ---------------------------------------------------------------- commands.c */

/* Hands the event of a command, which was put on the compute queue after overlap_begin and, while
 * profiling, command_begin, to those who want it. There is room in the log. */
enum healcl_status command_enqueued(struct healcl_device *device, const struct command *command,
                                    struct healcl_error *error);

#endif
