/* What the files of this folder share. */
#ifndef HEALCL_OPENCL_DEVICE_INTERNAL_H
#define HEALCL_OPENCL_DEVICE_INTERNAL_H

#include "opencl/commands.h"

/* ---------------------------------------------------------------- device.c */

/* The compute queue has nothing left to do: pooled buffers are idle from now on. */
void device_note_idle(struct healcl_device *device);

/* Puts a new queue in the place of one that has nothing left to do. */
enum healcl_status device_renew_queue(struct healcl_device *device, cl_command_queue *queue,
                                      cl_command_queue_properties properties,
                                      struct healcl_error *error);

/* The queues of a context, and what goes with them. */
enum healcl_status device_create_queues(struct healcl_device *device, struct healcl_error *error);

/* ---------------------------------------------------------------- shared_context.c */

/* Makes what the handles on device->context share; the first of them is device. */
enum healcl_status context_share(struct healcl_device *device, struct healcl_error *error);

/* Ends the turn of a handle that has nothing left on the context. The last handle takes along what
 * was shared. */
void context_leave(struct healcl_device *device);

/* ---------------------------------------------------------------- buffer.c */

/* What is allocated for so many bytes: few distinct sizes, so that buffers fit again. */
uint64_t device_round_bytes(const struct healcl_device *device, uint64_t bytes);

/* A new buffer with a copy of data, device_round_bytes(bytes) of them. Otherwise as
 * device_buffer_acquire. */
enum healcl_status device_buffer_of(struct healcl_device *device, uint64_t bytes, void *data,
                                    struct buffer *buffer, struct healcl_error *error);

/* ---------------------------------------------------------------- staging.c */

/* Bytes of a half, a power of two; 0: data do not go through staging memory, which the host shares
 * with the device. */
uint64_t staging_half_bytes(const struct healcl_device *device);

/* Gives out bytes, at most a half, of memory that no command uses: of the current half if there is
 * room, else of the other one, when what uses that has ended. The memory is made at first use. */
enum healcl_status staging_take(struct healcl_device *device, uint64_t bytes, void **memory,
                                struct healcl_error *error);

/* Makes the other half the current one, with nothing in it. */
enum healcl_status staging_turn(struct healcl_device *device, struct healcl_error *error);

/* A command was enqueued, in the order of all that use the current half, that uses it too. Takes
 * over its event. */
void staging_used_by(struct healcl_device *device, cl_event event);

/* Waits for what uses a half. */
enum healcl_status staging_await(struct healcl_device *device, uint32_t half,
                                 struct healcl_error *error);

/* The queues have nothing left to do. */
void staging_release(struct healcl_device *device);

/* ---------------------------------------------------------------- overlap.c */

/* Makes room for what is remembered. Freed with free(). */
enum healcl_status overlap_init(struct healcl_device *device, struct healcl_error *error);

/* ---------------------------------------------------------------- record.c */

/* Forgets what has no times yet. */
void command_log_clear(struct healcl_device *device, struct command_log *log);

/* A moment of an event by the device's clock; 0 for a command that the driver takes no times of.
 * Returns the code of clGetEventProfilingInfo for other failures. */
HEALCL_MUST_CHECK cl_int event_time(const struct healcl_device *device, cl_event event,
                                    cl_profiling_info which, cl_ulong *time);

/* ---------------------------------------------------------------- trace.c */

/* Whether the driver takes times of commands that go on with the host's: rusticl's do not. The
 * compute queue takes times. */
enum healcl_status device_takes_event_times(struct healcl_device *device, bool *takes,
                                            struct healcl_error *error);

/* What transfers do around an enqueued command of theirs, where it is traced: */
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

#endif
