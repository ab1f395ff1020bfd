/* Batches of requests: sessions on a widened transcript, and one for single requests. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/clock.h"
#include "opencl/opening.h"
#include "run/loaded_transcript.h"

struct healcl_batcher {
    struct healcl_transcript *transcript; /* retained */
    struct healcl_device *device;         /* its own handle; NULL: the host reference */
    struct arena *arena;                  /* owns the next two, and what is gathered */
    size_t input_count;
    size_t *inputs;  /* numbers of the inputs that requests bring */
    char **gathered; /* by those inputs: the contiguous data of a batch */
    struct healcl_transcript *wide;
    struct healcl_session *together, *alone; /* for single requests: NULL until the first one */
    struct healcl_batcher_facts facts;
};

/* ---------------------------------------------------------------- opening */

/* Closes the session for batches and its transcript, if they are open. */
static void close_together(struct healcl_batcher *batcher)
{
    healcl_session_close(batcher->together);
    healcl_transcript_close(batcher->wide);
    batcher->together = NULL;
    batcher->wide = NULL;
}

/* Opens the session for batches of `batch` requests, on a widened transcript. A batch that is too
 * large is refused with HEALCL_CAUSE_LIMIT. Only a device with its own memory has a limit by
 * default: a host can move pages out. */
static enum healcl_status open_together(struct healcl_batcher *batcher,
                                        const struct healcl_batcher_options *options, size_t batch,
                                        struct healcl_error *error)
{
    close_together(batcher);
    TRY(healcl_transcript_widen(batcher->transcript, options->inputs, options->input_count,
                                (int64_t)batch, &batcher->wide, error));
    const struct healcl_device *device = batcher->device;
    const uint64_t bytes = batcher->wide->plan->bytes_peak;
    uint64_t limit = options->memory_bytes > 0 ? options->memory_bytes : UINT64_MAX;
    if (options->memory_bytes == 0 && device && !device->info.unified_memory)
        limit = device->info.global_memory_bytes;
    if (bytes > limit)
        REFUSE_FOR(error, LIMIT,
                   "%zu requests together take %" PRIu64 " bytes, above the limit of %" PRIu64,
                   batch, bytes, limit);
    batcher->facts.batch = batch;
    batcher->facts.memory_bytes = bytes;
    return healcl_session_open(batcher->wide, batcher->device, NULL, &batcher->together, error);
}

/* Opens the session for the largest batch that fits, up to options->batch. Finds its size by
 * bisection, since memory grows with the size of the batch; the size that the caller asks for is
 * tried first. An error other than the limit ends the search, and so does one of a batch of 1. */
static enum healcl_status open_largest(struct healcl_batcher *batcher,
                                       const struct healcl_batcher_options *options,
                                       struct healcl_error *error)
{
    size_t largest_that_fits = 0, smallest_too_large = options->batch + 1, tried = options->batch;
    while (largest_that_fits + 1 < smallest_too_large) {
        struct healcl_error open_error = {.status = HEALCL_OK};
        const enum healcl_status status = open_together(batcher, options, tried, &open_error);
        if (status == HEALCL_OK) {
            largest_that_fits = tried;
        } else if (open_error.cause == HEALCL_CAUSE_LIMIT && tried > 1) {
            smallest_too_large = tried;
            healcl_error_clear(&open_error);
        } else {
            error_move(error, &open_error);
            return status;
        }
        tried = largest_that_fits + (smallest_too_large - largest_that_fits) / 2;
    }
    if (batcher->together && batcher->facts.batch == largest_that_fits)
        return HEALCL_OK;
    return open_together(batcher, options, largest_that_fits, error); /* a larger one was last */
}

/* Opens the sessions of a batcher, and binds memory to the inputs of a batch, in which requests are
 * gathered. */
static enum healcl_status batcher_init(struct healcl_batcher *batcher,
                                       const struct healcl_batcher_options *options,
                                       struct healcl_device *device, struct healcl_error *error)
{
    const size_t count = options->input_count;
    batcher->arena = arena_create();
    NEED_MEMORY(batcher->arena, error);
    batcher->inputs = arena_alloc(batcher->arena, count * sizeof *batcher->inputs);
    batcher->gathered = arena_alloc(batcher->arena, count * sizeof *batcher->gathered);
    NEED_MEMORY(batcher->inputs && batcher->gathered, error);
    batcher->input_count = count;
    if (count > 0)
        memcpy(batcher->inputs, options->inputs, count * sizeof *batcher->inputs);
    if (device)
        TRY(device_open_beside(device, &batcher->device, error));
    TRY(open_largest(batcher, options, error));
    for (size_t i = 0; i < count; i++) {
        const size_t input = batcher->inputs[i];
        batcher->gathered[i] = arena_alloc(batcher->arena, batcher->wide->inputs[input].bytes);
        NEED_MEMORY(batcher->gathered[i], error);
        TRY(healcl_session_bind(batcher->together, input, batcher->gathered[i], error));
    }
    return HEALCL_OK;
}

/* Opens a batcher for at most options->batch requests at once, or fewer if memory is short. Half of
 * SIZE_MAX keeps sizes of the search from overflowing. */
enum healcl_status healcl_batcher_open(const struct healcl_transcript *transcript,
                                       struct healcl_device *device,
                                       const struct healcl_batcher_options *options,
                                       struct healcl_batcher **result, struct healcl_error *error)
{
    NEED(transcript, error);
    NEED(options, error);
    NEED(result, error);
    if (options->input_count > 0)
        NEED(options->inputs, error);
    if (options->batch < 1 || options->batch >= SIZE_MAX / 2)
        FAIL(error, HEALCL_USAGE, "a batch has at least 1 request, not %zu", options->batch);
    struct healcl_batcher *batcher = calloc(1, sizeof *batcher);
    NEED_MEMORY(batcher, error);
    batcher->transcript = transcript_retain(transcript);
    enum healcl_status status = batcher_init(batcher, options, device, error);
    if (status != HEALCL_OK) {
        healcl_batcher_close(batcher);
        return status;
    }
    *result = batcher;
    return HEALCL_OK;
}

/* Closes a batcher, also one that was opened only in part. */
void healcl_batcher_close(struct healcl_batcher *batcher)
{
    if (!batcher)
        return;
    healcl_session_close(batcher->alone);
    close_together(batcher);
    arena_free(batcher->arena);
    healcl_device_close(batcher->device);
    healcl_transcript_close(batcher->transcript);
    free(batcher);
}

/* ---------------------------------------------------------------- running */

/* Adds the facts of a session's run of `count` requests to the batcher's. */
static void note_run(struct healcl_batcher *batcher, const struct healcl_session *session,
                     size_t count)
{
    struct healcl_batcher_facts *facts = &batcher->facts;
    const struct healcl_session_facts session_facts = healcl_session_facts(session);
    facts->runs++;
    if (count > 1)
        facts->requests_together += count;
    else
        facts->requests_alone++;
    facts->bytes_uploaded = session_facts.bytes_uploaded;
    facts->fallbacks = session_facts.fallbacks;
    facts->device_bytes = healcl_session_facts(batcher->together).device_bytes +
                          healcl_session_facts(batcher->alone).device_bytes;
}

/* Copies the results of one request to the caller's memory. slice: the request's number in its
 * batch. A result that does not depend on requests has no axis of them, and is the same for all. */
static enum healcl_status batcher_hand_out(struct healcl_batcher *batcher,
                                           struct healcl_session *session,
                                           const struct healcl_request *request, size_t slice,
                                           struct healcl_error *error)
{
    const struct healcl_transcript *one = batcher->transcript;
    const struct healcl_tensor_info *session_results =
        session == batcher->alone ? one->results : batcher->wide->results;
    for (size_t i = 0; request->results && i < one->plan->results; i++) {
        const size_t bytes = one->results[i].bytes;
        const void *data;
        if (!request->results[i] || bytes == 0)
            continue;
        TRY(healcl_session_map(session, i, &data, error));
        /* In a batch, a result that depends on requests has one more axis. */
        const bool is_wide = session_results[i].rank > one->results[i].rank;
        memcpy(request->results[i], (const char *)data + (is_wide ? slice * bytes : 0), bytes);
    }
    return HEALCL_OK;
}

/* Runs one request by itself. If its own data make it refuse, only the request gets the error; any
 * other error is the batcher's. */
static enum healcl_status run_alone(struct healcl_batcher *batcher, struct healcl_request *request,
                                    struct healcl_error *error)
{
    const uint64_t start = monotonic_nanoseconds();
    if (!batcher->alone)
        TRY(healcl_session_open(batcher->transcript, batcher->device, NULL, &batcher->alone,
                                error));
    for (size_t i = 0; i < batcher->input_count; i++)
        TRY(healcl_session_bind(batcher->alone, batcher->inputs[i], request->inputs[i], error));
    request->status = healcl_session_run(batcher->alone, &request->error);
    if (request->status == HEALCL_OK)
        TRY(batcher_hand_out(batcher, batcher->alone, request, 0, error)); /* a batch of one */
    request->nanoseconds = monotonic_nanoseconds() - start;
    note_run(batcher, batcher->alone, 1);
    if (request->status == HEALCL_OK || request->status == HEALCL_REFUSED)
        return HEALCL_OK;
    error_move(error, &request->error);
    return request->status;
}

/* Copies the inputs of requests behind each other, as a batch needs them. Unused places repeat the
 * last request's data, which are valid; their results are ignored. */
static void gather(struct healcl_batcher *batcher, const struct healcl_request *requests,
                   size_t count)
{
    for (size_t i = 0; i < batcher->input_count; i++) {
        const size_t bytes = batcher->transcript->inputs[batcher->inputs[i]].bytes;
        for (size_t place = 0; place < batcher->facts.batch; place++) {
            const struct healcl_request *request = &requests[place < count ? place : count - 1];
            memcpy(batcher->gathered[i] + place * bytes, request->inputs[i], bytes);
        }
    }
}

/* Runs at most one batch of requests together. *is_refused: the data of one of them made the whole
 * batch refuse; that is not an error, since the caller then runs them one by one. */
static enum healcl_status run_together(struct healcl_batcher *batcher,
                                       struct healcl_request *requests, size_t count,
                                       bool *is_refused, struct healcl_error *error)
{
    const uint64_t start = monotonic_nanoseconds();
    gather(batcher, requests, count);
    struct healcl_error run_error = {.status = HEALCL_OK};
    const enum healcl_status status = healcl_session_run(batcher->together, &run_error);
    *is_refused = status == HEALCL_REFUSED;
    if (status != HEALCL_OK) {
        error_move(*is_refused ? NULL : error, &run_error); /* to NULL: it is dropped */
        return *is_refused ? HEALCL_OK : status;
    }
    for (size_t i = 0; i < count; i++) {
        requests[i].status = HEALCL_OK;
        TRY(batcher_hand_out(batcher, batcher->together, &requests[i], i, error));
    }
    const uint64_t spent = monotonic_nanoseconds() - start;
    for (size_t i = 0; i < count; i++)
        requests[i].nanoseconds = spent;
    note_run(batcher, batcher->together, count);
    return HEALCL_OK;
}

/* Runs requests in batches. A batch takes as long whether it is full or not, so that less than half
 * a batch is run one by one. So is a batch that was refused: each request then gets its own status.
 */
enum healcl_status healcl_batcher_run(struct healcl_batcher *batcher,
                                      struct healcl_request *requests, size_t count,
                                      struct healcl_error *error)
{
    NEED(batcher, error);
    if (count > 0)
        NEED(requests, error);
    const size_t batch = batcher->facts.batch;
    for (size_t done = 0, next; done < count; done += next) {
        next = count - done < batch ? count - done : batch;
        bool runs_alone = next < 2 || 2 * next < batch;
        if (!runs_alone) /* sets runs_alone if the batch is refused */
            TRY(run_together(batcher, requests + done, next, &runs_alone, error));
        for (size_t i = 0; runs_alone && i < next; i++)
            TRY(run_alone(batcher, &requests[done + i], error));
    }
    return HEALCL_OK;
}

struct healcl_batcher_facts healcl_batcher_facts(const struct healcl_batcher *batcher)
{
    return batcher ? batcher->facts : (struct healcl_batcher_facts){.batch = 0};
}
