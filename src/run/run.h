/*
 * Running a plan: the interface that the device executor and the host reference share.
 *
 * An executor runs a plan one segment at a time. It hands each result to a sink, in the order of
 * the transcript, before the result's segment ends.
 */
#ifndef HEALCL_RUN_RUN_H
#define HEALCL_RUN_RUN_H

#include <stdatomic.h>

#include "core/clock.h"
#include "core/trace.h"
#include "plan/plan.h"

/* Takes a result. data: the elements of step->in[0], packed, in C order and its dtype. data is
 * valid only during the call. */
struct result_sink {
    void *context;
    /* Pieces are joined for it. NULL: take_piece takes them, in order: elements [first, first +
     * count). The last piece ends the result. */
    enum healcl_status (*take)(void *context, const struct step *step, const void *data,
                               struct healcl_error *error);
    enum healcl_status (*take_piece)(void *context, const struct step *step, int64_t first,
                                     int64_t count, const void *data, struct healcl_error *error);
    /* Whether the sink reads the data of a result. If not, data may be NULL and is not packed.
     * NULL: it reads all results. */
    bool (*wants_data)(void *context, const struct step *step);
};

/* Whether a sink reads the data of a step's result. */
static inline bool sink_wants_data(const struct result_sink *sink, const struct step *step)
{
    return !sink->wants_data || sink->wants_data(sink->context, step);
}

/* Times of one segment. Before a segment the caller sets operation_nanoseconds and is_split. */
struct segment_result {
    uint64_t nanoseconds;      /* host's clock, without the sink's time */
    uint64_t sink_nanoseconds; /* time to compare and write results */
    /* Only while the device is profiling: the device time of each operation. Also the time between
     * kernels without a command, and with a command that had not begun. */
    uint64_t *operation_nanoseconds; /* the caller's array, by operation number; NULL: not needed */
    uint64_t without_command_nanoseconds, not_begun_nanoseconds;
    /* Nanoseconds of decoding payloads, and of kernels or the host's steps, if the caller asks for
     * them. The remaining time is transfers. The host waits for the device between transfers and
     * kernels. */
    bool is_split;
    uint64_t decode_nanoseconds, compute_nanoseconds;
};

struct executor;
struct audit;
struct launcher;

/* An upload of a session, by the storage it creates. */
struct upload {
    /* The caller's elements, packed, in C order and the storage's dtype. NULL: the payload is
     * uploaded. */
    const void *data;
    bool is_kept;   /* keep the storage on release: upload it only once */
    bool is_filled; /* it is kept, and was uploaded */
};

struct executor_class {
    /* Runs the steps of one segment. A refusal names entry, operation, argument and index. */
    enum healcl_status (*run_segment)(struct executor *executor, const struct segment *segment,
                                      const struct result_sink *sink, struct healcl_error *error);
    /* Forgets the storages from number `first` on, except kept uploads and the plan's scalars, so
     * that their segments can run again. */
    enum healcl_status (*rewind)(struct executor *executor, size_t first,
                                 struct healcl_error *error);
    void (*destroy)(struct executor *executor);
    /* For operations by call: executes some steps of the plan without waiting for the device. */
    enum healcl_status (*enqueue)(struct executor *executor, size_t first, size_t count,
                                  const struct result_sink *sink, struct healcl_error *error);
    /* Waits for all steps so far and hands out their results. NULL: execution is synchronous. */
    enum healcl_status (*wait)(struct executor *executor, const struct result_sink *sink,
                               struct healcl_error *error);
    /* Writes the elements of a contiguous tensor from data, packed, in order with the steps. */
    enum healcl_status (*write)(struct executor *executor, const struct tensor *tensor,
                                const void *data, struct healcl_error *error);
    /* Notes that something other than a step wrote to a storage, or that other scalars take the
     * place of the plan's. NULL: the executor derives no data from storages. */
    void (*written)(struct executor *executor, const struct storage *storage);
    /* Maps at least one element of a contiguous tensor for reading and writing. All steps must have
     * been waited for. unmap, if not NULL, ends the mapping. */
    enum healcl_status (*map)(struct executor *executor, const struct tensor *tensor, void **data,
                              struct healcl_error *error);
    enum healcl_status (*unmap)(struct executor *executor, const struct tensor *tensor, void *data,
                                struct healcl_error *error);
    /* For devices only: returns the cl_mem of a storage, or gives the caller's cl_mem to a storage
     * that has none yet. */
    enum healcl_status (*lend_memory)(struct executor *executor, const struct storage *storage,
                                      void **memory, struct healcl_error *error);
    enum healcl_status (*take_memory)(struct executor *executor, const struct storage *storage,
                                      void *memory, struct healcl_error *error);
};

/* Steps of one operation that the host ran because the device could not. */
struct fallback {
    uint64_t steps, nanoseconds;
    char *reason; /* reason of the first such step, or NULL; survives a reset of the counts */
};

struct executor {
    const struct executor_class *class;
    struct segment_result times; /* of the latest segment */
    /* allow steps that the device cannot run to run on the host; else refuse them */
    bool falls_back;
    bool runs_again;            /* its plan, more than once: then it keeps what later runs use */
    struct fallback *fallbacks; /* by operation number; NULL: none so far */
    uint64_t fallback_steps;    /* so far; a step of several operations counts once */
    uint64_t host_steps;        /* of those, steps that the host ran; other kernels ran the rest */
    uint64_t dropped_digits;    /* since the last reset */
    struct trace *trace;        /* or NULL */
    struct upload *uploads;     /* the session's, by storage; NULL: all payloads are read */
    uint64_t bytes_uploaded;    /* so far, payloads included */
    bool reads_payloads;        /* payloads were among them */
    const atomic_bool *is_cancelled;        /* checked before each step; or NULL */
    const struct healcl_observer *observer; /* its `cancelled` is also checked; or NULL */
    struct audit *audit;                    /* the session's audit on a device; or NULL */
};

/* Hands elements [first, first + count) of a result to a sink and records a trace span. The
 * range is the whole result, or a piece if the sink has no `take`. Adds the sink's time to those of
 * the executor's segment. */
enum healcl_status sink_take(struct executor *executor, const struct result_sink *sink,
                             const struct step *step, int64_t first, int64_t count,
                             const void *data, struct healcl_error *error);

/* Whether the upload of a step was done and is kept. A release of its storage then has no
 * effect. */
static inline bool executor_has_kept(const struct executor *executor, const struct storage *storage)
{
    return executor->uploads && executor->uploads[storage->id].is_filled;
}

/* Returns the caller's data for an upload. NULL: its payload is used. */
static inline const void *executor_bound(const struct executor *executor,
                                         const struct storage *storage)
{
    return executor->uploads ? executor->uploads[storage->id].data : NULL;
}

/* Notes that an upload was done. */
void executor_note_upload(struct executor *executor, const struct storage *storage);

/* Returns HEALCL_CANCELLED if the caller asked for it. */
enum healcl_status executor_check_cancelled(const struct executor *executor,
                                            struct healcl_error *error);

/* Waits until the device has done what device_poll was last called for. Polls, because nothing
 * wakes a thread that waits and can be cancelled: without a pause at first, because most waits are
 * short. Later pauses are a sixteenth of the time so far, at most a millisecond. */
enum healcl_status executor_await(const struct executor *executor, struct healcl_device *device,
                                  struct healcl_error *error);

/* Refuses a storage that is larger than the device allocates at once. */
enum healcl_status executor_check_device(const struct plan *plan,
                                         const struct healcl_device *device,
                                         struct healcl_error *error);

/* Both executors refer to the plan as long as they exist. The device starts with profiling if it is
 * traced, else without. device_set_profiling may turn it on and off between segments. */
enum healcl_status device_executor_create(struct healcl_device *device, const struct plan *plan,
                                          struct executor **result, struct healcl_error *error);
/* Limits the device memory of an executor made by device_executor_create. Call it before the first
 * step. Errors: HEALCL_REFUSED if a step needs more. */
enum healcl_status device_executor_limit(struct executor *executor, uint64_t limit,
                                         struct healcl_error *error);
/* Adds to a report the memory that tensors used. With a limit it also adds the limit's cost in the
 * last repetition. */
void device_executor_price(const struct executor *executor, struct healcl_report *report);

/* Returns the launcher of an executor made by device_executor_create. Its storages hold what the
 * steps so far wrote, once the device has been waited for. */
struct launcher *device_executor_launcher(struct executor *executor);

/* Whether a check of data has failed, or a kernel's manifest was wrong. */
bool device_executor_has_refused(const struct executor *executor);

/* Compiles the plan's kernels into the driver's cache, for another process that runs the plan. It
 * launches one work-group of each kernel on undefined data, beginning with the last step. Kernels
 * that fail are skipped. Afterwards the executor and its device must only be closed. */
void device_executor_compile_ahead(struct executor *executor);

/* Binds the plan's steps before the first of several runs: chooses their kernels, builds them and
 * creates kernel objects. A run binds what is left, and reports what cannot be bound. */
void device_executor_bind(struct executor *executor);

/* A struct program_lister: lists the programs of a plan. Makes no OpenCL call. */
void device_executor_list_programs(const void *listed, struct healcl_device *device);

enum healcl_status reference_executor_create(const struct plan *plan, struct executor **result,
                                             struct healcl_error *error);

/* Makes an executor for sessions and queues. It uses *handle, a new one opened on `device`, or the
 * reference if device is NULL. Steps that the device cannot run are run on the host, unless the
 * device was opened without that. On error it closes everything it opened. */
enum healcl_status executor_open(const struct plan *plan, struct healcl_device *device,
                                 struct healcl_device **handle, struct executor **executor,
                                 struct healcl_error *error);
/* Closes both; either may be NULL. */
void executor_close(struct executor *executor, struct healcl_device *handle);

/* Calls `exchange` of the options to complete the sums after a segment of a split plan. device: the
 * executor's, or NULL. */
enum healcl_status exchange_segment(struct executor *executor, struct healcl_device *device,
                                    const struct plan *plan, size_t segment,
                                    const struct healcl_session_options *options,
                                    struct healcl_error *error);

/* Runs all segments of the executor's plan. */
enum healcl_status executor_run(struct executor *executor, const struct plan *plan,
                                const struct result_sink *sink, struct healcl_error *error);

/* Does the same as healcl_run, and records events in a trace, which may be NULL. */
enum healcl_status healcl_run_traced(const struct healcl_transcript *transcript,
                                     struct healcl_device *device,
                                     const struct healcl_run_options *options, struct trace *trace,
                                     struct healcl_report **report, struct healcl_error *error);

/* Attributes the following events to a step. Returns the names of its operations, or "" without a
 * trace. */
const char *trace_for_step(struct trace *trace, const struct step *step);

/* Begins the host's span of a step, and attributes the following events to it. */
size_t trace_begin_step(struct trace *trace, const struct step *step);

#endif
