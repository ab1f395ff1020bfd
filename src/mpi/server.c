#include "mpi/server.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/file.h"
#include "plan/transcript.h"
#include "transcript/npy.h"

/* A request in hand. */
struct request {
    const char *name;
    size_t number;
    uint64_t start;
    char key[PACKAGE_HASH_SIZE]; /* of transcript and inputs */
};

/* A thread with sessions of its own. */
struct worker {
    struct server *server;
    pthread_t thread;
    struct healcl_session *session; /* of server->wide, if there is one */
    struct healcl_session *alone;   /* for one request of a batch: opened when it is needed */
    void **inputs;                  /* elements of server->batch requests, list->inputs of them */
    struct request *requests;       /* count of them, server->batch at most */
    uint32_t count;
};

static struct layout layout_of(const struct healcl_tensor_info *info)
{
    return layout_of_shape(info->rank, info->shape);
}

/* ---------------------------------------------------------------- results */

/* "FOLDER/NAME.npy", or where the transcript has several results "FOLDER/NAME.ENTRY.npy"; freed
 * with free(), NULL without memory. */
static char *result_path(const struct server *server, const char *name,
                         const struct healcl_tensor_info *result, size_t count)
{
    char entry[24] = "";
    const size_t size = strlen(server->folder) + strlen(name) + sizeof entry + 8;
    char *path = malloc(size);
    if (count > 1)
        snprintf(entry, sizeof entry, ".%zu", result->entry);
    if (path)
        snprintf(path, size, "%s/%s%s.npy", server->folder, name, entry);
    return path;
}

/* Adds a hash of elements to one of those before, which is "" at first. */
static void add_hash(char hash[PACKAGE_HASH_SIZE], const void *data, size_t bytes)
{
    char one[PACKAGE_HASH_SIZE];
    package_hash(data, bytes, one);
    package_hash_texts(2, (const char *const[]){hash, one}, hash);
}

/* Whether all results are there, and have the hash that the journal tells. */
static bool has_results(const struct server *server, const char *name, const char *expected)
{
    size_t count;
    const struct healcl_tensor_info *results =
        healcl_transcript_results(server->opening->transcript, &count);
    char hash[PACKAGE_HASH_SIZE] = "";
    bool is_there = true;
    for (size_t i = 0; i < count && is_there; i++) {
        const struct layout layout = layout_of(&results[i]);
        void *data = malloc(results[i].bytes + 1);
        char *path = result_path(server, name, &results[i], count);
        is_there =
            data && path &&
            npy_read_file(path, (enum dtype)results[i].dtype, &layout, data, NULL) == HEALCL_OK;
        if (is_there)
            add_hash(hash, data, results[i].bytes);
        free(path);
        free(data);
    }
    return is_there && strcmp(hash, expected) == 0;
}

MUST_CHECK static enum healcl_status write_result(const struct server *server, const char *name,
                                                  const struct healcl_tensor_info *result,
                                                  size_t count, const void *data,
                                                  struct healcl_error *error)
{
    const struct layout layout = layout_of(result);
    char *path = result_path(server, name, result, count);
    if (!path)
        NO_MEMORY(error);
    enum healcl_status status =
        npy_write_file(path, (enum dtype)result->dtype, &layout, data, true, error);
    free(path);
    return status;
}

/* The results of request i of those that a session of the transcript wide has run together. */
MUST_CHECK static enum healcl_status write_results(struct worker *worker,
                                                   struct healcl_session *session, bool is_wide,
                                                   uint32_t i, char hash[PACKAGE_HASH_SIZE],
                                                   uint64_t *bytes, struct healcl_error *error)
{
    const struct server *server = worker->server;
    size_t count;
    const struct healcl_tensor_info *results =
        healcl_transcript_results(server->opening->transcript, &count);
    const struct healcl_tensor_info *all =
        is_wide ? healcl_transcript_results(server->wide, &count) : results;
    for (size_t r = 0; r < count; r++) {
        const void *data;
        TRY(healcl_session_map(session, r, &data, error));
        if (all[r].rank > results[r].rank) /* else it is the same for all */
            data = (const char *)data + i * results[r].bytes;
        TRY(write_result(server, worker->requests[i].name, &results[r], count, data, error));
        add_hash(hash, data, results[r].bytes);
        *bytes += results[r].bytes;
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- requests */

static const struct healcl_tensor_info *inputs_of(const struct server *server)
{
    return healcl_transcript_inputs(server->opening->transcript, &(size_t){0});
}

/* Where the elements of an input of request i are. */
static void *place_of(const struct worker *worker, size_t input, uint32_t i)
{
    const struct server *server = worker->server;
    return (char *)worker->inputs[input] + i * inputs_of(server)[server->inputs[input]].bytes;
}

/* Reads request i, and makes its key. */
MUST_CHECK static enum healcl_status read_inputs(struct worker *worker, uint32_t i,
                                                 struct healcl_error *error)
{
    const struct server *server = worker->server;
    struct request *request = &worker->requests[i];
    package_hash_texts(
        2, (const char *const[]){server->opening->transcript_hash, server->opening->plan_hash},
        request->key);
    for (size_t input = 0; input < server->list->inputs; input++) {
        const struct healcl_tensor_info *info = &inputs_of(server)[server->inputs[input]];
        const struct layout layout = layout_of(info);
        void *data = place_of(worker, input, i);
        TRY(npy_read_file(request_path(server->list, request->number, input),
                          (enum dtype)info->dtype, &layout, data, error));
        add_hash(request->key, data, info->bytes);
    }
    return HEALCL_OK;
}

static bool is_done(const struct server *server, const struct request *request)
{
    const char *results =
        server->resume ? journal_find(&server->journal, request->name, request->key) : NULL;
    return results && has_results(server, request->name, results);
}

MUST_CHECK static enum healcl_status note_done(struct server *server, const struct request *request,
                                               const char *results, uint64_t written,
                                               struct healcl_error *error)
{
    uint64_t *grown = array_with_room(server->nanoseconds, server->served.requests,
                                      &server->capacity, sizeof *grown);
    if (!grown)
        NO_MEMORY(error);
    server->nanoseconds = grown;
    const uint64_t now = monotonic_nanoseconds();
    grown[server->served.requests++] = now - request->start;
    server->served.nanoseconds = now - server->start;
    server->served.bytes_written += written;
    return journal_add(&server->journal, request->name, request->key, results, error);
}

/* Keeps what a session has computed for request i. */
MUST_CHECK static enum healcl_status keep_results(struct worker *worker,
                                                  struct healcl_session *session, bool is_wide,
                                                  uint32_t i, struct healcl_error *error)
{
    struct server *server = worker->server;
    char results[PACKAGE_HASH_SIZE] = "";
    uint64_t written = 0;
    TRY(write_results(worker, session, is_wide, i, results, &written, error));
    pthread_mutex_lock(&server->lock);
    enum healcl_status status = note_done(server, &worker->requests[i], results, written, error);
    pthread_mutex_unlock(&server->lock);
    return status;
}

static void note_run(struct server *server, const struct healcl_session *session)
{
    const uint64_t uploaded = healcl_session_facts(session).bytes_uploaded;
    pthread_mutex_lock(&server->lock);
    server->served.bytes_uploaded += uploaded;
    server->served.batches++;
    pthread_mutex_unlock(&server->lock);
}

/* ---------------------------------------------------------------- failures */

static bool add_text(struct bytes *bytes, const char *text)
{
    const size_t size = strlen(text) + 1;
    if (bytes->capacity - bytes->size < size) {
        const size_t capacity = 2 * bytes->capacity + size;
        char *grown = realloc(bytes->data, capacity);
        if (!grown)
            return false;
        bytes->data = grown;
        bytes->capacity = capacity;
    }
    memcpy(bytes->data + bytes->size, text, size);
    bytes->size += size;
    return true;
}

/* Told at once, and in the report. */
static void note_failure(struct server *server, const char *name, const struct healcl_error *error)
{
    ranks_notice(server->ranks, "request '%s': %s", name, error->message);
    pthread_mutex_lock(&server->lock);
    const size_t before = server->failures.size;
    if (!add_text(&server->failures, name) || !add_text(&server->failures, error->message))
        server->failures.size = before;
    server->served.failed++;
    server->served.nanoseconds = monotonic_nanoseconds() - server->start;
    pthread_mutex_unlock(&server->lock);
}

/* ---------------------------------------------------------------- batches */

MUST_CHECK static enum healcl_status bind(const struct worker *worker,
                                          struct healcl_session *session, uint32_t i,
                                          struct healcl_error *error)
{
    const struct server *server = worker->server;
    for (size_t input = 0; input < server->list->inputs; input++)
        TRY(healcl_session_bind(session, server->inputs[input], place_of(worker, input, i), error));
    return HEALCL_OK;
}

/* The number of the next request; list->count or more where there is none. */
static size_t take_number(struct server *server)
{
    const uint64_t start = monotonic_nanoseconds();
    const uint64_t number = ranks_take(server->ranks, 1);
    const uint64_t wait = monotonic_nanoseconds() - start;
    pthread_mutex_lock(&server->lock);
    if (wait > server->served.longest_wait)
        server->served.longest_wait = wait;
    pthread_mutex_unlock(&server->lock);
    return number;
}

/* Ends all ranks for what is no request's fault. */
static void check(struct server *server, enum healcl_status status,
                  const struct healcl_error *error)
{
    if (status != HEALCL_OK)
        ranks_fail(server->ranks, NULL, error);
}

/* Reads requests until there are enough for a batch, or no more. What cannot be read, or is done,
 * is none of it. */
static void take_batch(struct worker *worker)
{
    struct server *server = worker->server;
    worker->count = 0;
    while (worker->count < server->batch) {
        struct healcl_error error = {.status = HEALCL_OK};
        struct request *request = &worker->requests[worker->count];
        *request =
            (struct request){.number = take_number(server), .start = monotonic_nanoseconds()};
        if (request->number >= server->list->count)
            return;
        request->name = request_name(server->list, request->number);
        enum healcl_status status = read_inputs(worker, worker->count, &error);
        if (status == HEALCL_NO_MEMORY)
            check(server, status, &error);
        if (status != HEALCL_OK) {
            note_failure(server, request->name, &error);
        } else if (is_done(server, request)) {
            pthread_mutex_lock(&server->lock);
            server->served.left_out++;
            pthread_mutex_unlock(&server->lock);
        } else {
            worker->count++;
        }
        healcl_error_clear(&error);
    }
}

/* A batch has its size: the first request is there again for those that are missing. */
static void fill_batch(struct worker *worker)
{
    const struct server *server = worker->server;
    for (size_t input = 0; input < server->list->inputs; input++)
        for (uint32_t i = worker->count; i < server->batch; i++)
            memcpy(place_of(worker, input, i), place_of(worker, input, 0),
                   inputs_of(server)[server->inputs[input]].bytes);
}

/* Runs request i alone. What its data make be refused is a failure of its own. */
static void serve_alone(struct worker *worker, struct healcl_session *session, uint32_t i)
{
    struct server *server = worker->server;
    struct healcl_error error = {.status = HEALCL_OK};
    check(server, bind(worker, session, i, &error), &error);
    enum healcl_status status = healcl_session_run(session, &error);
    if (status == HEALCL_REFUSED) {
        note_failure(server, worker->requests[i].name, &error);
    } else {
        check(server, status, &error);
        note_run(server, session);
        check(server, keep_results(worker, session, false, i, &error), &error);
    }
    healcl_error_clear(&error);
}

static void serve_each(struct worker *worker)
{
    struct server *server = worker->server;
    struct healcl_error error = {.status = HEALCL_OK};
    if (!worker->alone)
        check(server,
              healcl_session_open(server->opening->transcript, server->opening->device, NULL,
                                  &worker->alone, &error),
              &error);
    for (uint32_t i = 0; i < worker->count; i++)
        serve_alone(worker, worker->alone, i);
}

static void serve_together(struct worker *worker)
{
    struct server *server = worker->server;
    struct healcl_error error = {.status = HEALCL_OK};
    fill_batch(worker);
    enum healcl_status status = healcl_session_run(worker->session, &error);
    if (status == HEALCL_REFUSED) {
        healcl_error_clear(&error);
        serve_each(worker);
        return;
    }
    check(server, status, &error);
    note_run(server, worker->session);
    for (uint32_t i = 0; i < worker->count; i++)
        check(server, keep_results(worker, worker->session, true, i, &error), &error);
}

/* Takes a batch and serves it. Returns whether there was one. */
static bool worker_step(struct worker *worker)
{
    take_batch(worker);
    if (worker->count > 0 && worker->server->wide)
        serve_together(worker);
    else if (worker->count > 0)
        serve_alone(worker, worker->session, 0);
    return worker->count > 0;
}

/* ---------------------------------------------------------------- threads */

MUST_CHECK static enum healcl_status worker_open(struct worker *worker, struct healcl_error *error)
{
    const struct server *server = worker->server;
    const struct healcl_transcript *transcript =
        server->wide ? server->wide : server->opening->transcript;
    TRY(healcl_session_open(transcript, server->opening->device, NULL, &worker->session, error));
    worker->inputs = calloc(server->list->inputs + 1, sizeof *worker->inputs);
    worker->requests = calloc(server->batch, sizeof *worker->requests);
    if (!worker->inputs || !worker->requests)
        NO_MEMORY(error);
    for (size_t i = 0; i < server->list->inputs; i++) {
        worker->inputs[i] = calloc(server->batch, inputs_of(server)[server->inputs[i]].bytes);
        if (!worker->inputs[i])
            NO_MEMORY(error);
    }
    return bind(worker, worker->session, 0, error);
}

static void worker_close(struct worker *worker)
{
    worker->server->served.device_bytes += healcl_session_facts(worker->session).device_bytes +
                                           healcl_session_facts(worker->alone).device_bytes;
    healcl_session_close(worker->session);
    healcl_session_close(worker->alone);
    for (size_t i = 0; worker->inputs && i < worker->server->list->inputs; i++)
        free(worker->inputs[i]);
    free(worker->inputs);
    free(worker->requests);
}

static void *work(void *context)
{
    while (worker_step(context))
        continue;
    return NULL;
}

/* Opening sessions takes turns, as opening devices does. */
static void open_workers(struct server *server, struct worker *workers, uint32_t count)
{
    struct healcl_error error = {.status = HEALCL_OK};
    for (uint32_t i = 0; i < count; i++) {
        if (worker_open(&workers[i], &error) != HEALCL_OK)
            ranks_fail(server->ranks, server->opening->file, &error);
    }
}

/* The first request makes kernels: the other threads begin behind it. */
static void work_all(struct server *server, struct worker *workers, uint32_t count)
{
    struct healcl_error error = {.status = HEALCL_OK};
    bool is_more = worker_step(&workers[0]);
    for (uint32_t i = 1; i < count; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            (void)ERROR(&error, HEALCL_NO_MEMORY, "cannot start a thread");
            ranks_fail(server->ranks, NULL, &error);
        }
    while (is_more)
        is_more = worker_step(&workers[0]);
    for (uint32_t i = 1; i < count; i++)
        pthread_join(workers[i].thread, NULL);
}

/* Whether the tensors of all sessions fit into the device's memory, as far as that is known. */
static bool fits(const struct server *server)
{
    const struct device_info *info = &server->opening->info;
    const uint64_t room = info->global_memory_bytes;
    return server->opening->reference || info->unified_memory ||
           server->wide->plan->bytes_peak <= room / server->sessions;
}

enum healcl_status server_widen(struct server *server, struct healcl_error *error)
{
    const uint32_t wanted = server->batch;
    while (server->batch > 1 && !server->wide) {
        struct healcl_error own = {.status = HEALCL_OK};
        enum healcl_status status =
            healcl_transcript_widen(server->opening->transcript, server->inputs,
                                    server->list->inputs, server->batch, &server->wide, &own);
        if (status != HEALCL_OK && own.cause != HEALCL_CAUSE_LIMIT) {
            if (error)
                *error = own;
            return status;
        }
        healcl_error_clear(&own);
        if (status == HEALCL_OK && fits(server))
            break;
        healcl_transcript_close(server->wide);
        server->wide = NULL;
        server->batch /= 2;
    }
    if (server->batch < wanted)
        ranks_notice(server->ranks, "batches of %u requests, not %u, for more take too much memory",
                     server->batch, wanted);
    return HEALCL_OK;
}

void server_run(struct server *server)
{
    struct worker workers[SESSIONS_MAX] = {{.server = NULL}};
    const uint32_t count = server->sessions;
    for (uint32_t i = 0; i < SESSIONS_MAX; i++)
        workers[i].server = server;
    open_workers(server, workers, count);
    ranks_meet(server->ranks);
    server->start = monotonic_nanoseconds();
    work_all(server, workers, count);
    for (uint32_t i = 0; i < count; i++)
        worker_close(&workers[i]);
    server->served.sessions = count;
    server->served.batch = server->batch;
}

void server_release(struct server *server)
{
    journal_release(&server->journal);
    healcl_transcript_close(server->wide);
    free(server->nanoseconds);
    free(server->failures.data);
}
