#include "mpi/server.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/file.h"
#include "transcript/npy.h"

/* A thread with a session of its own. */
struct worker {
    struct server *server;
    pthread_t thread;
    struct healcl_session *session;
    void **inputs; /* elements, list->inputs of them */
};

/* A request in hand. */
struct request {
    const char *name;
    size_t number;
    uint64_t start;
    char key[PACKAGE_HASH_SIZE]; /* of transcript and inputs */
    bool is_at_fault;            /* what fails, fails by what it brings */
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

MUST_CHECK static enum healcl_status write_results(struct worker *worker,
                                                   const struct request *request,
                                                   char hash[PACKAGE_HASH_SIZE], uint64_t *bytes,
                                                   struct healcl_error *error)
{
    size_t count;
    const struct healcl_tensor_info *results =
        healcl_transcript_results(worker->server->opening->transcript, &count);
    for (size_t i = 0; i < count; i++) {
        const void *data;
        TRY(healcl_session_map(worker->session, i, &data, error));
        TRY(write_result(worker->server, request->name, &results[i], count, data, error));
        add_hash(hash, data, results[i].bytes);
        *bytes += results[i].bytes;
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- one request */

MUST_CHECK static enum healcl_status read_inputs(struct worker *worker, struct request *request,
                                                 struct healcl_error *error)
{
    const struct server *server = worker->server;
    const struct healcl_tensor_info *inputs =
        healcl_transcript_inputs(server->opening->transcript, &(size_t){0});
    package_hash_texts(
        2, (const char *const[]){server->opening->transcript_hash, server->opening->plan_hash},
        request->key);
    for (size_t i = 0; i < server->list->inputs; i++) {
        const struct healcl_tensor_info *info = &inputs[server->inputs[i]];
        const struct layout layout = layout_of(info);
        TRY(npy_read_file(request_path(server->list, request->number, i), (enum dtype)info->dtype,
                          &layout, worker->inputs[i], error));
        add_hash(request->key, worker->inputs[i], info->bytes);
    }
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status note_done(struct server *server, const struct request *request,
                                               const char *results, uint64_t uploaded,
                                               uint64_t written, struct healcl_error *error)
{
    uint64_t *grown = array_with_room(server->nanoseconds, server->served.requests,
                                      &server->capacity, sizeof *grown);
    if (!grown)
        NO_MEMORY(error);
    server->nanoseconds = grown;
    const uint64_t now = monotonic_nanoseconds();
    grown[server->served.requests++] = now - request->start;
    server->served.nanoseconds = now - server->start;
    server->served.bytes_uploaded += uploaded;
    server->served.bytes_written += written;
    return journal_add(&server->journal, request->name, request->key, results, error);
}

MUST_CHECK static enum healcl_status serve_one(struct worker *worker, struct request *request,
                                               struct healcl_error *error)
{
    struct server *server = worker->server;
    char results[PACKAGE_HASH_SIZE] = "";
    uint64_t written = 0;
    request->is_at_fault = true;
    TRY(read_inputs(worker, request, error));
    const char *done =
        server->resume ? journal_find(&server->journal, request->name, request->key) : NULL;
    if (done && has_results(server, request->name, done)) {
        pthread_mutex_lock(&server->lock);
        server->served.left_out++;
        pthread_mutex_unlock(&server->lock);
        return HEALCL_OK;
    }
    enum healcl_status status = healcl_session_run(worker->session, error);
    request->is_at_fault = status == HEALCL_REFUSED;
    TRY(status);
    TRY(write_results(worker, request, results, &written, error));
    const uint64_t uploaded = healcl_session_facts(worker->session).bytes_uploaded;
    pthread_mutex_lock(&server->lock);
    status = note_done(server, request, results, uploaded, written, error);
    pthread_mutex_unlock(&server->lock);
    return status;
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

/* ---------------------------------------------------------------- threads */

MUST_CHECK static enum healcl_status worker_open(struct worker *worker, struct healcl_error *error)
{
    const struct server *server = worker->server;
    const struct opening *opening = server->opening;
    const struct healcl_tensor_info *inputs =
        healcl_transcript_inputs(opening->transcript, &(size_t){0});
    TRY(healcl_session_open(opening->transcript, opening->device, NULL, &worker->session, error));
    worker->inputs = calloc(server->list->inputs + 1, sizeof *worker->inputs);
    if (!worker->inputs)
        NO_MEMORY(error);
    for (size_t i = 0; i < server->list->inputs; i++) {
        worker->inputs[i] = malloc(inputs[server->inputs[i]].bytes + 1);
        if (!worker->inputs[i])
            NO_MEMORY(error);
        TRY(healcl_session_bind(worker->session, server->inputs[i], worker->inputs[i], error));
    }
    return HEALCL_OK;
}

static void worker_close(struct worker *worker)
{
    worker->server->served.device_bytes += healcl_session_facts(worker->session).device_bytes;
    healcl_session_close(worker->session);
    for (size_t i = 0; worker->inputs && i < worker->server->list->inputs; i++)
        free(worker->inputs[i]);
    free(worker->inputs);
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

/* Takes a request and serves it. Returns whether there was one. */
static bool worker_step(struct worker *worker)
{
    struct server *server = worker->server;
    struct healcl_error error = {.status = HEALCL_OK};
    struct request request = {.number = take_number(server), .start = monotonic_nanoseconds()};
    if (request.number >= server->list->count)
        return false;
    request.name = request_name(server->list, request.number);
    enum healcl_status status = serve_one(worker, &request, &error);
    if (status != HEALCL_OK && (!request.is_at_fault || status == HEALCL_NO_MEMORY))
        ranks_fail(server->ranks, NULL, &error);
    if (status != HEALCL_OK)
        note_failure(server, request.name, &error);
    healcl_error_clear(&error);
    return true;
}

static void *work(void *context)
{
    while (worker_step(context))
        continue;
    return NULL;
}

/* Opening sessions takes turns, as opening devices does. */
static void open_workers(struct server *server, struct worker *workers)
{
    struct healcl_error error = {.status = HEALCL_OK};
    for (uint32_t i = 0; i < server->sessions; i++) {
        workers[i].server = server;
        if (worker_open(&workers[i], &error) != HEALCL_OK)
            ranks_fail(server->ranks, server->opening->file, &error);
    }
}

/* The first request makes kernels: the other threads begin behind it. */
static void work_all(struct server *server, struct worker *workers)
{
    struct healcl_error error = {.status = HEALCL_OK};
    bool is_more = worker_step(&workers[0]);
    for (uint32_t i = 1; i < server->sessions; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            (void)ERROR(&error, HEALCL_NO_MEMORY, "cannot start a thread");
            ranks_fail(server->ranks, NULL, &error);
        }
    while (is_more)
        is_more = worker_step(&workers[0]);
    for (uint32_t i = 1; i < server->sessions; i++)
        pthread_join(workers[i].thread, NULL);
}

void server_run(struct server *server)
{
    struct worker workers[SESSIONS_MAX] = {{.server = NULL}};
    open_workers(server, workers);
    ranks_meet(server->ranks);
    server->start = monotonic_nanoseconds();
    work_all(server, workers);
    for (uint32_t i = 0; i < server->sessions; i++)
        worker_close(&workers[i]);
    server->served.sessions = server->sessions;
}

void server_release(struct server *server)
{
    journal_release(&server->journal);
    free(server->nanoseconds);
    free(server->failures.data);
}
