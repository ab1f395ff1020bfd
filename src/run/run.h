/*
 * Running a plan: what the two executors (device and host reference) share.
 *
 * An executor works through a plan a segment at a time and hands every result to a sink. Results
 * come in the order of the transcript, at the latest when their segment ends.
 */
#ifndef HEALCL_RUN_RUN_H
#define HEALCL_RUN_RUN_H

#include <stdatomic.h>

#include "core/clock.h"
#include "core/trace.h"
#include "plan/plan.h"

/* Takes results. data: the elements of step->in[0] in C order, packed, in its dtype; only during
 * the call. */
struct result_sink {
    void *context;
    /* NULL: take_piece takes all of them, whole or in pieces. */
    enum healcl_status (*take)(void *context, const struct step *step, const void *data,
                               struct healcl_error *error);
    /* Whether take looks at the data of a result: where it does not, data may be NULL, and nothing
     * has been packed. NULL: it does for all of them. */
    bool (*wants_data)(void *context, const struct step *step);
    /* Whether a result may be given to take_piece, in order, where it comes in pieces: elements
     * [first, first + count), not all of them; the last piece ends the result. Otherwise they are
     * put together for take. NULL: none. */
    bool (*takes_pieces)(void *context, const struct step *step);
    enum healcl_status (*take_piece)(void *context, const struct step *step, int64_t first,
                                     int64_t count, const void *data, struct healcl_error *error);
};

/* Whether a sink wants the data of a step's result. */
static inline bool sink_wants_data(const struct result_sink *sink, const struct step *step)
{
    return !sink->wants_data || sink->wants_data(sink->context, step);
}

/* Hands elements [first, first + count) of a result to a sink, with a span: all of them, or a piece
 * that the sink takes. *spent grows by the nanoseconds that the sink takes. */
enum healcl_status sink_take(const struct result_sink *sink, struct trace *trace,
                             const struct step *step, int64_t first, int64_t count,
                             const void *data, uint64_t *spent, struct healcl_error *error);

/* Times of one segment. */
struct segment_result {
    uint64_t nanoseconds;      /* host's clock, without the time that the sink took */
    uint64_t sink_nanoseconds; /* comparing and dumping */
    /* While the device is profiling: how long it worked for each operation, and how long, between
     * kernels, it had no command or had not begun with it. */
    uint64_t *operation_nanoseconds; /* the caller's, by number; NULL: it does not ask */
    uint64_t without_command_nanoseconds, not_begun_nanoseconds;
    /* Parts of nanoseconds, where the caller asks: decoding payloads, and kernels, or steps
     * of the host. The rest is transfers. The device is waited for between transfers and kernels.
     */
    bool is_split;
    uint64_t decode_nanoseconds, compute_nanoseconds;
};

struct executor;
struct audit;
struct launcher;

/* An upload of a session, by the storage that it makes. */
struct upload {
    const void *data; /* the caller's elements, packed, in C order and the storage's dtype; NULL:
                         the payload's */
    bool is_kept;     /* releases leave it: it is uploaded once */
    bool is_filled;   /* it is kept, and has been uploaded */
};

struct executor_class {
    /* Runs the steps of one segment. Refusals name entry, operation, argument and index. */
    enum healcl_status (*run_segment)(struct executor *executor, const struct segment *segment,
                                      const struct result_sink *sink, struct segment_result *result,
                                      struct healcl_error *error);
    /* Forgets the storages from number first on, but those whose upload is filled, so that segments
     * that make them can run again. With 0 the plan's constants are set again, too. */
    enum healcl_status (*rewind)(struct executor *executor, size_t first,
                                 struct healcl_error *error);
    void (*destroy)(struct executor *executor);
    /* Operations by call: executes some steps of the plan without waiting for the device. */
    enum healcl_status (*enqueue)(struct executor *executor, size_t first, size_t count,
                                  const struct result_sink *sink, struct healcl_error *error);
    /* Waits for all steps so far, with the results that they hand out. NULL: none are awaited. */
    enum healcl_status (*wait)(struct executor *executor, const struct result_sink *sink,
                               struct healcl_error *error);
    /* Constants of the plan from number first on are new. NULL: it reads the plan's. */
    enum healcl_status (*add_constants)(struct executor *executor, size_t first,
                                        struct healcl_error *error);
    /* Elements of a contiguous tensor from data, packed, in the order of the steps. */
    enum healcl_status (*write)(struct executor *executor, const struct tensor *tensor,
                                const void *data, struct healcl_error *error);
    /* Something else than a step has written to a storage. NULL: nothing is derived from any. */
    void (*written)(struct executor *executor, const struct storage *storage);
    /* Elements of a contiguous tensor, at least one, for reading and writing, once all steps have
     * been waited for; and back, where unmap is not NULL. */
    enum healcl_status (*map)(struct executor *executor, const struct tensor *tensor, void **data,
                              struct healcl_error *error);
    enum healcl_status (*unmap)(struct executor *executor, const struct tensor *tensor, void *data,
                                struct healcl_error *error);
    /* The cl_mem of a storage; and a storage, which has none yet, gets the caller's. On a device
     * alone. */
    enum healcl_status (*lend_memory)(struct executor *executor, const struct storage *storage,
                                      void **memory, struct healcl_error *error);
    enum healcl_status (*take_memory)(struct executor *executor, const struct storage *storage,
                                      void *memory, struct healcl_error *error);
};

/* Steps of an operation that the host did, as the device could not. */
struct fallback {
    uint64_t steps, nanoseconds;
    char *reason; /* of the first step; stays when the rest is counted anew; or NULL */
};

struct executor {
    const struct executor_class *class;
    /* Steps that the device cannot run are run on the host; otherwise they are refused. */
    bool falls_back;
    struct fallback *fallbacks; /* by number of operation; NULL: there has been none */
    uint64_t fallback_steps;    /* so far; one of several operations counts once */
    uint64_t host_steps;        /* of those the ones that the host ran: others have other kernels */
    uint64_t dropped_digits;    /* since the last reset */
    struct trace *trace;        /* or NULL */
    struct upload *uploads;  /* the session's, by storage; NULL: there is none, payloads are read */
    uint64_t bytes_uploaded; /* so far, with payloads */
    bool reads_payloads;     /* and such a one was among them */
    const atomic_bool *is_cancelled;        /* looked at before each step; or NULL */
    const struct healcl_observer *observer; /* whose cancelled is asked there, too; or NULL */
    struct audit *audit;                    /* the session's, of a device; or NULL */
};

/* Whether the upload of a step has been done and kept; a release of its storage then leaves it. */
static inline bool executor_keeps(const struct executor *executor, const struct storage *storage)
{
    return executor->uploads && executor->uploads[storage->id].is_filled;
}

/* The caller's data of an upload; NULL: its payload's. */
static inline const void *executor_bound(const struct executor *executor,
                                         const struct storage *storage)
{
    return executor->uploads ? executor->uploads[storage->id].data : NULL;
}

/* An upload was done. */
void executor_note_upload(struct executor *executor, const struct storage *storage);

/* HEALCL_CANCELLED where that was asked for. */
enum healcl_status executor_check_cancelled(const struct executor *executor,
                                            struct healcl_error *error);

/* Refuses, before anything runs, a storage that the device can never hold. */
enum healcl_status executor_check_device(const struct plan *plan,
                                         const struct healcl_device *device,
                                         struct healcl_error *error);

/* Both refer to the plan as long as they live. profile: the device begins with profiling, and may
 * be made to stop it or to take it up between segments (device_set_profiling). */
enum healcl_status device_executor_create(struct healcl_device *device, const struct plan *plan,
                                          bool profile, struct executor **result,
                                          struct healcl_error *error);
/* Before its first step: bounds what the device allocates, for one that device_executor_create has
 * made. Errors: HEALCL_REFUSED where a step needs more. */
enum healcl_status device_executor_limit(struct executor *executor, uint64_t bytes,
                                         struct healcl_error *error);
/* Says in a report what memory the tensors have taken; and with a limit what that took, in the last
 * repetition. */
void device_executor_price(const struct executor *executor, struct healcl_report *report);

/* The launcher of an executor that device_executor_create has made. Its storages hold
 * what the steps so far have left in them, once the device has been waited for. */
struct launcher *device_executor_launcher(struct executor *executor);

/* Whether a check of what only data reveal has failed, or a kernel's manifest is wrong. */
bool device_executor_has_refused(const struct executor *executor);

/* Has kernels of the plan compiled and put into the driver's cache, for another process that runs
 * it: each one by a launch of one work-group, on data that nobody asks for, the kernels of the last
 * step first. What fails is left out. The executor, and its device, are good for nothing else. */
void device_executor_compile_ahead(struct executor *executor);

/* For struct program_lister: lists the programs of a plan on a handle. */
void device_executor_list_programs(const void *listed, struct healcl_device *beside);

enum healcl_status reference_executor_create(const struct plan *plan, struct executor **result,
                                             struct healcl_error *error);

/* Makes an executor for sessions and queues: on *own, a handle that is opened beside device, or
 * where that is NULL the reference. Steps that the device cannot run are run on the host, unless
 * whoever has opened the device does not want that. After an error what there is, is closed too. */
enum healcl_status executor_open(const struct plan *plan, struct healcl_device *device,
                                 struct healcl_device **own, struct executor **executor,
                                 struct healcl_error *error);
/* Either may be NULL. */
void executor_close(struct executor *executor, struct healcl_device *own);

/* Has `exchange` of the options make the sums of a segment of a split plan, which has ended, whole.
 * device: the executor's, or NULL. */
enum healcl_status exchange_segment(struct executor *executor, struct healcl_device *device,
                                    const struct plan *plan, size_t segment,
                                    const struct healcl_session_options *options,
                                    struct healcl_error *error);

/* Runs all segments of its plan. */
enum healcl_status executor_run(struct executor *executor, const struct plan *plan,
                                const struct result_sink *sink, struct healcl_error *error);

/* healcl_run that records what happens in a trace, which may be NULL. */
enum healcl_status healcl_run_traced(const struct healcl_transcript *transcript,
                                     struct healcl_device *device,
                                     const struct healcl_run_options *options, struct trace *trace,
                                     struct healcl_report **report, struct healcl_error *error);

/* Says that what follows is done for a step. Returns its operations' names; "" without a trace. */
const char *trace_for_step(struct trace *trace, const struct step *step);

/* Begins the host's span of a step, and says that what follows is done for it. */
size_t trace_begin_step(struct trace *trace, const struct step *step);

#endif
