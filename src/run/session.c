/* Sessions: a plan runs repeatedly on an executor, which keeps uploaded data. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "run/audit.h"
#include "run/compare.h"
#include "run/loaded_transcript.h"
#include "run/run.h"

struct session_result {
    void *memory;               /* the session's own memory, allocated when first needed */
    void *callers_memory;       /* the caller's memory for later runs, or NULL */
    const void *data;           /* current location, one of the two; NULL: not available */
    const char *missing_reason; /* the reason if it is not available */
};

#define HAS_NOT_RUN "its segment has not run"
#define HAS_FAILED "the last run failed"
#define GIVEN_BACK "the session no longer has the memory that received it"

enum background { BACKGROUND_NONE, BACKGROUND_RUNS, BACKGROUND_ENDED };

struct healcl_session {
    struct healcl_transcript *transcript; /* retained */
    const struct plan *plan;
    struct healcl_device *device; /* the session's own handle; NULL: the host reference */
    struct executor *executor;
    struct audit *audit; /* or NULL */
    struct healcl_session_options options;
    struct upload *uploads; /* by storage */
    bool *is_written;       /* by storage: whether an operation writes to an uploaded tensor */
    struct session_result *results; /* by number */
    size_t next_result;             /* next result that the current segment hands out */
    size_t *first_results;          /* by segment */
    size_t segments_run;            /* number of segments that have run, from the first one */

    bool is_limited; /* a tensor is larger than one allocation: the device keeps nothing */
    uint64_t exchange_nanoseconds; /* of the current run */
    atomic_bool is_cancelled;
    struct healcl_session_facts facts;

    pthread_t thread;      /* joined once background is ENDED */
    atomic_int background; /* enum background */
    /* the thread's own identifier, valid once background is ENDED */
    pthread_t runner;
    struct {
        size_t first, count;
        void (*done)(void *context, enum healcl_status status);
        void *context;
        enum healcl_status status;
        struct healcl_error error;
    } task; /* belongs to the background thread while that runs */
};

/* ---------------------------------------------------------------- effects of segments */

/* Whether a step computes a tensor. Uploads do not count: they can be repeated. */
static bool writes(const struct step *step)
{
    return step->out && step->kind != STEP_UPLOAD;
}

/* Checks one segment s that has run: can segments from `first` on run again after it? They cannot
 * if it has written or freed a tensor of a segment before `first`, which has a smaller number: that
 * tensor would have to be made again. Uploads that are kept are not freed. */
static enum healcl_status check_again(const struct healcl_session *session, size_t first, size_t s,
                                      struct healcl_error *error)
{
    const struct plan *plan = session->plan;
    const struct segment *segment = &plan->segments[s];
    for (size_t i = 0; i < segment->step_count; i++) {
        const struct step *step = &plan->steps[segment->first_step + i];
        if (!writes(step) && step->kind != STEP_RELEASE)
            continue;
        const struct storage *lost = writes(step) ? step->out->storage : step->in[0]->storage;
        if (lost->id >= plan->segments[first].first_storage ||
            (!writes(step) && session->uploads[lost->id].is_kept))
            continue;
        FAIL_FOR(error, HEALCL_USAGE, STATE,
                 "segment %zu cannot run again on its own: segment %zu has %s a tensor of an "
                 "earlier segment",
                 first, s, writes(step) ? "written to" : "freed");
    }
    return HEALCL_OK;
}

/* Checks that segments from `first` on can run with what earlier segments have left. With limited
 * memory the device keeps nothing between runs, so only the next segment can run. */
static enum healcl_status check_order(const struct healcl_session *session, size_t first,
                                      struct healcl_error *error)
{
    if (first > session->segments_run)
        FAIL_FOR(error, HEALCL_USAGE, STATE, "segment %zu cannot run before segment %zu", first,
                 session->segments_run);
    if (session->is_limited && first > 0 && first < session->segments_run)
        FAIL_FOR(error, HEALCL_USAGE, STATE,
                 "segment %zu cannot run again on its own: a tensor is larger than one allocation",
                 first);
    for (size_t s = first; first > 0 && s < session->segments_run; s++)
        TRY(check_again(session, first, s, error));
    return HEALCL_OK;
}

/* The upload of an input: the caller's data for it, and whether the device keeps it. */
static struct upload *upload_of(struct healcl_session *session, size_t input)
{
    return &session->uploads[session->transcript->input_steps[input]->out->storage->id];
}

/* Decides where a run of segments from `first` to `end` begins. If the caller has bound inputs of
 * later segments, earlier segments would only repeat themselves. They are left out if nothing of
 * them is needed: no results, no uploads, no sums exchanged with other ranks. */
static size_t first_of_request(struct healcl_session *session, size_t first, size_t end)
{
    const struct healcl_tensor_info *inputs = session->transcript->inputs;
    size_t first_bound = end; /* segment with an input that the caller has bound */
    for (size_t i = 0; i < session->plan->uploads; i++)
        if (upload_of(session, i)->data && inputs[i].segment < first_bound)
            first_bound = inputs[i].segment;
    const bool has_results = session->first_results[first] < session->first_results[first_bound];
    if (first_bound <= first || first_bound == end || session->options.exchange || has_results ||
        check_order(session, first_bound, NULL) != HEALCL_OK)
        return first;
    for (size_t i = 0; i < session->plan->uploads; i++) /* the device must have kept them */
        if (inputs[i].segment >= first && inputs[i].segment < first_bound &&
            !upload_of(session, i)->is_filled)
            return first;
    return first_bound;
}

/* ---------------------------------------------------------------- results */

/* Finds the memory for the result that comes next: the caller's if there is one, otherwise the
 * session's own, which is kept for later runs. */
static enum healcl_status result_memory(struct healcl_session *session, char **memory,
                                        struct healcl_error *error)
{
    struct session_result *result = &session->results[session->next_result];
    if (!result->callers_memory && !result->memory) {
        result->memory = malloc(session->transcript->results[session->next_result].bytes + 1);
        NEED_MEMORY(result->memory, error);
    }
    *memory = result->callers_memory ? result->callers_memory : result->memory;
    return HEALCL_OK;
}

/* A sink: copies a piece of a result to its memory. With the last piece the result becomes
 * available. */
static enum healcl_status session_take_piece(void *context, const struct step *step, int64_t first,
                                             int64_t count, const void *data,
                                             struct healcl_error *error)
{
    struct healcl_session *session = context;
    const size_t size = dtype_size(step->in[0]->storage->dtype);
    char *memory;
    TRY(result_memory(session, &memory, error));
    memcpy(memory + (size_t)first * size, data, (size_t)count * size);
    if (first + count == layout_elements(&step->in[0]->layout))
        session->results[session->next_result++].data = memory;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- running */

/* Runs `count` segments on the executor, and the exchanges at the end of each. First makes the
 * executor forget tensors of these segments and later ones. */
static enum healcl_status run_segments(struct healcl_session *session, size_t first, size_t count,
                                       struct healcl_error *error)
{
    struct executor *executor = session->executor;
    struct result_sink sink = {.context = session, .take_piece = session_take_piece};
    const size_t first_storage = first > 0 ? session->plan->segments[first].first_storage : 0;
    device_turn_begin(session->device);
    enum healcl_status status = executor->class->rewind(executor, first_storage, error);
    device_turn_end(session->device);
    TRY(status);
    for (size_t s = first; s < first + count; s++) {
        session->next_result = session->first_results[s];
        TRY(executor->class->run_segment(executor, &session->plan->segments[s], &sink, error));
        const uint64_t start = monotonic_nanoseconds();
        TRY(exchange_segment(executor, session->device, session->plan, s, &session->options,
                             error));
        session->exchange_nanoseconds += monotonic_nanoseconds() - start;
    }
    return HEALCL_OK;
}

/* Makes a result unavailable. reason: why, for the error of whoever asks for it. */
static void forget_result(struct session_result *result, const char *reason)
{
    result->data = NULL;
    result->missing_reason = reason;
}

/* Makes results of a segment and of later ones unavailable, because they are computed anew. */
static void forget_results(struct healcl_session *session, size_t first_segment, const char *reason)
{
    for (size_t i = session->first_results[first_segment]; i < session->plan->results; i++)
        forget_result(&session->results[i], reason);
}

/* Resets a session after an error, because the contents of its tensors are unknown. Results are
 * dropped, too: some may be of steps that were refused. After a cancellation the device may be
 * busy. Then only the next run forgets its storages. */
static void start_over(struct healcl_session *session, enum healcl_status status)
{
    forget_results(session, 0, HAS_FAILED);
    for (size_t i = 0; i < session->plan->storage_count; i++)
        session->uploads[i].is_filled = false;
    session->segments_run = 0;

    if (status == HEALCL_CANCELLED)
        return;
    device_turn_begin(session->device);
    /* Errors are ignored: the next run rewinds again. ! silences the warning about that. */
    (void)!session->executor->class->rewind(session->executor, 0, NULL);
    device_turn_end(session->device);
}

/* Runs `count` segments from number `first` on, in the order that check_order allows, and notes the
 * facts of the run. After an error all must run again. If payloads were read, checks afterwards
 * that the file has not changed. */
static enum healcl_status session_run(struct healcl_session *session, size_t first, size_t count,
                                      struct healcl_error *error)
{
    size_t segments = session->plan->segment_count;
    if (first > segments || count > segments - first)
        FAIL(error, HEALCL_USAGE, "%zu segments from number %zu on exceed the total of %zu", count,
             first, segments);
    TRY(check_order(session, first, error));
    if (count == 0)
        return HEALCL_OK;
    const size_t request_start = first_of_request(session, first, first + count);
    count -= request_start - first;
    first = request_start;
    uint64_t start = monotonic_nanoseconds();
    uint64_t fallbacks_before = session->executor->fallback_steps;
    session->executor->bytes_uploaded = 0;
    session->executor->reads_payloads = false;
    session->exchange_nanoseconds = 0;
    forget_results(session, first, HAS_NOT_RUN);
    session->segments_run = first;
    if (session->audit)
        audit_begin_run(session->audit);
    enum healcl_status status = run_segments(session, first, count, error);
    if (session->audit)
        audit_end_run(session->audit);
    status = source_explain(session->plan->source, status, error);
    if (status == HEALCL_OK && session->executor->reads_payloads)
        status = source_check(session->plan->source, error);
    if (status != HEALCL_OK) {
        start_over(session, status);
        return status;
    }
    session->segments_run = first + count;
    session->facts.runs++;
    session->facts.nanoseconds = monotonic_nanoseconds() - start;
    session->facts.bytes_uploaded = session->executor->bytes_uploaded;
    session->facts.fallbacks = session->executor->fallback_steps - fallbacks_before;
    session->facts.dropped_digits = session->executor->dropped_digits;
    session->facts.device_bytes = session->device ? session->device->bytes_live : 0;
    session->facts.device_bytes_peak = session->device ? session->device->bytes_peak : 0;
    session->facts.exchange_nanoseconds = session->exchange_nanoseconds;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- the background */

/* Whether a run in the background keeps the session from being used. Once it has ended, but is not
 * yet waited for, only its own thread may use the session: the callback at the end reads results.
 */
static bool is_busy(struct healcl_session *session)
{
    int state = atomic_load(&session->background);
    return state == BACKGROUND_RUNS ||
           (state == BACKGROUND_ENDED && !pthread_equal(session->runner, pthread_self()));
}

/* Most functions require a session that is idle. */
#define NEED_IDLE(session, error)                                        \
    do {                                                                 \
        NEED(session, error);                                            \
        if (is_busy(session))                                            \
            FAIL_FOR(error, HEALCL_USAGE, STATE,                         \
                     "the session runs in the background: wait for it"); \
    } while (0)

/* The thread of healcl_session_start. Calls `done` last, with copies: the callback, or another
 * thread that waits, may end the task. */
static void *run_in_background(void *context)
{
    struct healcl_session *session = context;
    session->task.status =
        session_run(session, session->task.first, session->task.count, &session->task.error);
    void (*done)(void *, enum healcl_status) = session->task.done;
    void *argument = session->task.context;
    enum healcl_status status = session->task.status;
    session->runner = pthread_self();
    atomic_store(&session->background, BACKGROUND_ENDED);
    if (done)
        done(argument, status);
    return NULL;
}

/* Waits for the end of a run in the background. */
static void session_join(struct healcl_session *session)
{
    (void)pthread_join(session->thread, NULL);
    atomic_store(&session->background, BACKGROUND_NONE);
}

/* Starts a run of some segments in a new thread. `done` is called at its end, in that thread. The
 * session can be used again after healcl_session_wait. */
enum healcl_status healcl_session_start(struct healcl_session *session, size_t first, size_t count,
                                        void (*done)(void *context, enum healcl_status status),
                                        void *context, struct healcl_error *error)
{
    NEED(session, error);
    if (atomic_load(&session->background) != BACKGROUND_NONE)
        FAIL_FOR(error, HEALCL_USAGE, STATE, "an earlier start has not been waited for");
    healcl_error_clear(&session->task.error);
    session->task.first = first;
    session->task.count = count;
    session->task.done = done;
    session->task.context = context;
    atomic_store(&session->is_cancelled, false);
    atomic_store(&session->background, BACKGROUND_RUNS);
    if (pthread_create(&session->thread, NULL, run_in_background, session) != 0) {
        atomic_store(&session->background, BACKGROUND_NONE);
        FAIL(error, HEALCL_NO_MEMORY, "a thread cannot be created");
    }
    return HEALCL_OK;
}

bool healcl_session_poll(const struct healcl_session *session)
{
    return !session || atomic_load(&session->background) != BACKGROUND_RUNS;
}

/* Waits for a run that was started, and returns its status and error. */
enum healcl_status healcl_session_wait(struct healcl_session *session, struct healcl_error *error)
{
    NEED(session, error);
    if (atomic_load(&session->background) == BACKGROUND_NONE)
        FAIL_FOR(error, HEALCL_USAGE, STATE, "nothing was started");
    session_join(session);
    error_move(error, &session->task.error);
    return session->task.status;
}

void healcl_session_cancel(struct healcl_session *session)
{
    if (session)
        atomic_store(&session->is_cancelled, true);
}

enum healcl_status healcl_session_run_segments(struct healcl_session *session, size_t first,
                                               size_t count, struct healcl_error *error)
{
    NEED_IDLE(session, error);
    atomic_store(&session->is_cancelled, false);
    return session_run(session, first, count, error);
}

enum healcl_status healcl_session_run(struct healcl_session *session, struct healcl_error *error)
{
    NEED(session, error);
    return healcl_session_run_segments(session, 0, session->plan->segment_count, error);
}

/* ---------------------------------------------------------------- inputs */

/* Whether the device can keep an input between runs: no step overwrites it, and there is memory for
 * it. */
static bool can_keep(const struct healcl_session *session, size_t input)
{
    return !session->is_limited &&
           !session->is_written[session->transcript->input_steps[input]->out->storage->id];
}

/* Makes later runs upload the caller's data for an input, which must stay valid; NULL: the file's
 * payload again. Data may change between runs, so a bound input is never kept. */
enum healcl_status healcl_session_bind(struct healcl_session *session, size_t input,
                                       const void *data, struct healcl_error *error)
{
    NEED_IDLE(session, error);
    NEED_NUMBER("input", input, session->plan->uploads, error);
    struct upload *upload = upload_of(session, input);
    if (!data && !upload->data)
        return HEALCL_OK;
    bool keeps = !data && can_keep(session, input); /* the payload, from the next run on */
    *upload = (struct upload){.data = data, .is_kept = keeps};
    return HEALCL_OK;
}

/* Decides if an uploaded payload is kept between runs. Inputs that cannot be kept are uploaded each
 * time. */
enum healcl_status healcl_session_keep(struct healcl_session *session, size_t input, bool keep,
                                       struct healcl_error *error)
{
    NEED_IDLE(session, error);
    NEED_NUMBER("input", input, session->plan->uploads, error);
    struct upload *upload = upload_of(session, input);
    keep = keep && !upload->data && can_keep(session, input);
    upload->is_kept = keep;
    upload->is_filled = upload->is_filled && keep;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- results for callers */

/* Returns the address of a result's elements, valid until the next run. If the result is not
 * available, the error says why. */
enum healcl_status healcl_session_map(struct healcl_session *session, size_t number,
                                      const void **data, struct healcl_error *error)
{
    NEED(data, error);
    NEED_IDLE(session, error);
    NEED_NUMBER("result", number, session->plan->results, error);
    const struct session_result *result = &session->results[number];
    if (!result->data)
        FAIL_FOR(error, HEALCL_USAGE, STATE, "result %zu is not available: %s", number,
                 result->missing_reason);
    *data = result->data;
    return HEALCL_OK;
}

/* Makes later runs write a result to the caller's memory; NULL: to the session's. A result in the
 * memory that was used before becomes unavailable: the caller may free that now. */
enum healcl_status healcl_session_receive(struct healcl_session *session, size_t number,
                                          void *memory, struct healcl_error *error)
{
    NEED_IDLE(session, error);
    NEED_NUMBER("result", number, session->plan->results, error);
    struct session_result *result = &session->results[number];
    if (result->data && result->data == result->callers_memory && memory != result->callers_memory)
        forget_result(result, GIVEN_BACK);
    result->callers_memory = memory;
    return HEALCL_OK;
}

/* Copies a result to memory of exactly its size. */
enum healcl_status healcl_session_read(struct healcl_session *session, size_t result, void *memory,
                                       size_t bytes, struct healcl_error *error)
{
    const void *data = NULL;
    TRY(healcl_session_map(session, result, &data, error));
    size_t result_bytes = session->transcript->results[result].bytes;
    if (bytes != result_bytes)
        FAIL(error, HEALCL_USAGE, "result %zu has %zu bytes, not %zu", result, result_bytes, bytes);
    if (bytes == 0)
        return HEALCL_OK;
    NEED(memory, error);
    memcpy(memory, data, bytes);
    return HEALCL_OK;
}

/* Compares a result with the tensor that the file expects. *different: the number of differing
 * elements, all if the shapes differ. Before a difference is reported, checks that the file has not
 * changed. */
enum healcl_status healcl_session_compare(struct healcl_session *session, size_t result,
                                          uint64_t *different, struct healcl_error *error)
{
    const void *data = NULL;
    NEED(different, error);
    TRY(healcl_session_map(session, result, &data, error));
    const struct step *step = session->transcript->result_steps[result];
    if (!step->payload)
        FAIL(error, HEALCL_USAGE, "the transcript has no expected tensor for result %zu", result);
    struct comparison comparison;
    TRY(source_check_size(session->plan->source, error));
    const struct layout *layout = &step->in[0]->layout;
    TRY(compare_result(layout, step->in[0]->storage->dtype, data, step->payload, &comparison,
                       error));
    *different = comparison.same_shape ? comparison.different : (uint64_t)layout_elements(layout);
    return comparison_is_equal(&comparison) ? HEALCL_OK
                                            : source_check(session->plan->source, error);
}

struct healcl_session_facts healcl_session_facts(const struct healcl_session *session)
{
    return session && healcl_session_poll(session) ? session->facts
                                                   : (struct healcl_session_facts){.runs = 0};
}

struct healcl_audit_facts healcl_session_audit(const struct healcl_session *session)
{
    return session && session->audit && healcl_session_poll(session)
               ? *audit_facts(session->audit)
               : (struct healcl_audit_facts){.steps = 0};
}

/* ---------------------------------------------------------------- opening and closing */

/* Allocates the session's tables. Finds the inputs that the plan overwrites, and the number of each
 * segment's first result. */
static enum healcl_status init_tables(struct healcl_session *session, struct healcl_error *error)
{
    const struct plan *plan = session->plan;
    session->uploads = calloc(plan->storage_count + 1, sizeof *session->uploads);
    session->is_written = calloc(plan->storage_count + 1, sizeof *session->is_written);
    session->results = calloc(plan->results + 1, sizeof *session->results);
    session->first_results = calloc(plan->segment_count + 1, sizeof *session->first_results);
    NEED_MEMORY(session->uploads && session->is_written && session->results &&
                    session->first_results,
                error);
    for (size_t i = 0; i < plan->step_count; i++)
        if (writes(&plan->steps[i]))
            session->is_written[plan->steps[i].out->storage->id] = true;
    for (size_t i = 0; i < plan->uploads; i++)
        upload_of(session, i)->is_kept = !session->options.keep_nothing && can_keep(session, i);
    for (size_t s = 0; s < plan->segment_count; s++)
        session->first_results[s + 1] = session->first_results[s] + plan->segments[s].results;
    forget_results(session, 0, HAS_NOT_RUN);
    return HEALCL_OK;
}

/* Opens the executor of a session with its options. If a tensor is larger than one allocation,
 * tensors are moved in slices, and memory is limited to the device's. Exchanges need whole sums on
 * the device, so they cannot be combined with that. */
static enum healcl_status open_session(struct healcl_session *session, struct healcl_device *device,
                                       struct healcl_error *error)
{
    const struct healcl_session_options *options = &session->options;
    session->is_limited = device && executor_check_device(session->plan, device, NULL) != HEALCL_OK;
    if (session->is_limited && options->exchange)
        return executor_check_device(session->plan, device, error);
    TRY(init_tables(session, error));
    TRY(executor_open(session->plan, device, &session->device, &session->executor, error));
    if (device && session->is_limited)
        TRY(device_executor_limit(session->executor, device->info.global_memory_bytes, error));
    if (options->audit_share > 0)
        TRY(audit_create(session->plan, session->device, options->audit_share, options->audit_seed,
                         &session->audit, error));
    session->executor->audit = session->audit;
    session->executor->uploads = session->uploads;
    session->executor->runs_again = true;
    session->executor->is_cancelled = &session->is_cancelled;
    if (device && !session->is_limited) {
        device_turn_begin(session->device);
        device_executor_bind(session->executor);
        device_turn_end(session->device);
    }
    return HEALCL_OK;
}

/* Opens a session: a transcript that runs repeatedly on a device, or on the host reference if
 * device is NULL. After an error *result is unchanged. */
enum healcl_status healcl_session_open(const struct healcl_transcript *transcript,
                                       struct healcl_device *device,
                                       const struct healcl_session_options *options,
                                       struct healcl_session **result, struct healcl_error *error)
{
    static const struct healcl_session_options defaults;
    NEED(transcript, error);
    NEED(result, error);
    if (!options)
        options = &defaults;
    if (!options->exchange && healcl_transcript_split_facts(transcript).exchanges > 0)
        FAIL(error, HEALCL_USAGE, "a part of a transcript needs a function that exchanges sums");
    if (!(options->audit_share >= 0 && options->audit_share <= 1)) /* this refuses a NaN, too */
        FAIL(error, HEALCL_USAGE, "an audit's share of the time must be from 0 to 1");
    if (options->audit_share > 0 && !device)
        FAIL(error, HEALCL_USAGE, "an audit of the host reference would compare it with itself");
    struct healcl_session *session = calloc(1, sizeof *session);
    NEED_MEMORY(session, error);
    session->transcript = transcript_retain(transcript);
    session->plan = transcript->plan;
    session->options = *options;
    enum healcl_status status = open_session(session, device, error);
    if (status != HEALCL_OK) {
        healcl_session_close(session);
        return status;
    }
    *result = session;
    return HEALCL_OK;
}

/* Closes a session, also one that was opened only in part. Waits for a run in the background. */
void healcl_session_close(struct healcl_session *session)
{
    if (!session)
        return;
    if (atomic_load(&session->background) != BACKGROUND_NONE)
        session_join(session);
    executor_close(session->executor, session->device);
    audit_free(session->audit);
    for (size_t i = 0; session->results && i < session->plan->results; i++)
        free(session->results[i].memory);
    healcl_error_clear(&session->task.error);
    free(session->first_results);
    free(session->results);
    free(session->is_written);
    free(session->uploads);
    healcl_transcript_close(session->transcript);
    free(session);
}
