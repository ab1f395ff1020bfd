#include "mpi/server.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/file.h"
#include "transcript/npy.h"

/* A request in hand. */
struct request {
    const char *name;
    size_t number;
    uint64_t start;
    char key[HASH_SIZE]; /* of transcript and inputs */
    void **data;         /* elements of each input of the list, then of each result */
};

/* A thread with a batcher of its own. */
struct worker {
    struct server *server;
    pthread_t thread;
    struct healcl_batcher *batcher;
    size_t batch; /* of the batcher */
    struct request *requests;
    struct healcl_request *asked; /* the same, for the batcher */
    size_t count;                 /* of those, of batch at most */
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
static void add_hash(char hash[HASH_SIZE], const void *data, size_t bytes)
{
    char one[HASH_SIZE];
    hash_bytes(data, bytes, one);
    hash_texts(2, (const char *const[]){hash, one}, hash);
}

/* Whether all results are there, and have the hash that the journal tells. */
static bool has_results(const struct server *server, const char *name, const char *expected)
{
    size_t count;
    const struct healcl_tensor_info *results =
        healcl_transcript_results(server->opening->transcript, &count);
    char hash[HASH_SIZE] = "";
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

static enum healcl_status write_result(const struct server *server, const char *name,
                                       const struct healcl_tensor_info *result, size_t count,
                                       const void *data, struct healcl_error *error)
{
    const struct layout layout = layout_of(result);
    char *path = result_path(server, name, result, count);
    if (!path)
        NO_MEMORY(error);
    enum healcl_status status =
        npy_write_file(path, (enum dtype)result->dtype, &layout, data, error);
    free(path);
    return status;
}

/* Writes the results of a request, and hashes them. */
static enum healcl_status write_results(const struct server *server, const struct request *request,
                                        char hash[HASH_SIZE], uint64_t *bytes,
                                        struct healcl_error *error)
{
    size_t count;
    const struct healcl_tensor_info *results =
        healcl_transcript_results(server->opening->transcript, &count);
    for (size_t i = 0; i < count; i++) {
        const void *data = request->data[server->list->inputs + i];
        TRY(write_result(server, request->name, &results[i], count, data, error));
        add_hash(hash, data, results[i].bytes);
        *bytes += results[i].bytes;
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- requests */

static const struct healcl_tensor_info *input_of(const struct server *server, size_t i)
{
    return &healcl_transcript_inputs(server->opening->transcript, &(size_t){0})[server->inputs[i]];
}

/* Reads a request, and makes its key. */
static enum healcl_status read_inputs(const struct server *server, struct request *request,
                                      struct healcl_error *error)
{
    hash_texts(2,
               (const char *const[]){server->opening->transcript_hash, server->opening->plan_hash},
               request->key);
    for (size_t i = 0; i < server->list->inputs; i++) {
        const struct healcl_tensor_info *info = input_of(server, i);
        const struct layout layout = layout_of(info);
        TRY(npy_read_file(request_path(server->list, request->number, i), (enum dtype)info->dtype,
                          &layout, request->data[i], error));
        add_hash(request->key, request->data[i], info->bytes);
    }
    return HEALCL_OK;
}

static bool is_done(const struct server *server, const struct request *request)
{
    const char *results =
        server->resume ? journal_find(&server->journal, request->name, request->key) : NULL;
    return results && has_results(server, request->name, results);
}

static enum healcl_status note_done(struct server *server, const struct request *request,
                                    const char *results, uint64_t written,
                                    struct healcl_error *error)
{
    if (!ARRAY_GROW(server->nanoseconds, server->served.requests, &server->capacity))
        NO_MEMORY(error);
    const uint64_t now = monotonic_nanoseconds();
    server->nanoseconds[server->served.requests++] = now - request->start;
    server->served.nanoseconds = now - server->start;
    server->served.bytes_written += written;
    return journal_add(&server->journal, request->name, request->key, results, error);
}

static enum healcl_status keep_results(struct server *server, const struct request *request,
                                       struct healcl_error *error)
{
    char results[HASH_SIZE] = "";
    uint64_t written = 0;
    TRY(write_results(server, request, results, &written, error));
    pthread_mutex_lock(&server->lock);
    enum healcl_status status = note_done(server, request, results, written, error);
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

/* ---------------------------------------------------------------- batches */

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

static void note_left_out(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    server->served.left_out++;
    pthread_mutex_unlock(&server->lock);
}

/* Ends all ranks for what is no request's fault. */
static void check(struct server *server, enum healcl_status status,
                  const struct healcl_error *error)
{
    if (status != HEALCL_OK)
        ranks_fail(server->ranks, NULL, error);
}

/* Takes the next request that can be read and is not done. Returns whether there was one. */
static bool take_request(struct server *server, struct request *request)
{
    struct healcl_error error = {.status = HEALCL_OK};
    while ((request->number = take_number(server)) < server->list->count) {
        request->name = request_name(server->list, request->number);
        request->start = monotonic_nanoseconds();
        enum healcl_status status = read_inputs(server, request, &error);
        if (status == HEALCL_NO_MEMORY)
            check(server, status, &error);
        if (status == HEALCL_OK && !is_done(server, request))
            return true;
        if (status != HEALCL_OK)
            note_failure(server, request->name, &error);
        else
            note_left_out(server);
        healcl_error_clear(&error);
    }
    return false;
}

static void note_runs(struct worker *worker, const struct healcl_batcher_facts *before)
{
    const struct healcl_batcher_facts facts = healcl_batcher_facts(worker->batcher);
    struct served *served = &worker->server->served;
    pthread_mutex_lock(&worker->server->lock);
    served->batches += facts.runs - before->runs;
    served->bytes_uploaded += (facts.runs - before->runs) * facts.bytes_uploaded;
    pthread_mutex_unlock(&worker->server->lock);
}

/* Takes a batch and serves it. Returns whether there was one. */
static bool worker_step(struct worker *worker)
{
    struct server *server = worker->server;
    struct healcl_error error = {.status = HEALCL_OK};
    const struct healcl_batcher_facts before = healcl_batcher_facts(worker->batcher);
    worker->count = 0;
    while (worker->count < worker->batch && take_request(server, &worker->requests[worker->count]))
        worker->count++;
    check(server, healcl_batcher_run(worker->batcher, worker->asked, worker->count, &error),
          &error);
    note_runs(worker, &before);
    for (size_t i = 0; i < worker->count; i++) {
        if (worker->asked[i].status == HEALCL_OK)
            check(server, keep_results(server, &worker->requests[i], &error), &error);
        else
            note_failure(server, worker->requests[i].name, &worker->asked[i].error);
        healcl_error_clear(&worker->asked[i].error);
    }
    return worker->count > 0;
}

/* ---------------------------------------------------------------- threads */

/* Memory for the inputs and results of a request. */
static enum healcl_status make_room(const struct server *server, struct request *request,
                                    struct healcl_error *error)
{
    size_t count;
    const struct healcl_tensor_info *results =
        healcl_transcript_results(server->opening->transcript, &count);
    const size_t inputs = server->list->inputs;
    request->data = calloc(inputs + count + 1, sizeof *request->data);
    if (!request->data)
        NO_MEMORY(error);
    for (size_t i = 0; i < inputs + count; i++) {
        const size_t bytes = i < inputs ? input_of(server, i)->bytes : results[i - inputs].bytes;
        request->data[i] = malloc(bytes + 1);
        if (!request->data[i])
            NO_MEMORY(error);
    }
    return HEALCL_OK;
}

static void free_room(const struct server *server, struct request *request)
{
    size_t count;
    (void)healcl_transcript_results(server->opening->transcript, &count);
    for (size_t i = 0; request->data && i < server->list->inputs + count; i++)
        free(request->data[i]);
    free(request->data);
}

/* What a batch of each session may take of a device with memory of its own. */
static uint64_t memory_of(const struct server *server)
{
    const struct device_info *info = &server->opening->info;
    return server->opening->reference || info->unified_memory
               ? 0
               : info->global_memory_bytes / server->sessions;
}

static enum healcl_status worker_open(struct worker *worker, struct healcl_error *error)
{
    const struct server *server = worker->server;
    const struct healcl_batcher_options options = {.batch = server->batch,
                                                   .inputs = server->inputs,
                                                   .input_count = server->list->inputs,
                                                   .memory_bytes = memory_of(server)};
    TRY(healcl_batcher_open(server->opening->transcript, server->opening->device, &options,
                            &worker->batcher, error));
    worker->batch = healcl_batcher_facts(worker->batcher).batch;
    worker->requests = calloc(worker->batch, sizeof *worker->requests);
    worker->asked = calloc(worker->batch, sizeof *worker->asked);
    if (!worker->requests || !worker->asked)
        NO_MEMORY(error);
    for (size_t i = 0; i < worker->batch; i++) {
        TRY(make_room(server, &worker->requests[i], error));
        void **data = worker->requests[i].data;
        worker->asked[i].inputs = (const void *const *)data;
        worker->asked[i].results = data + server->list->inputs;
    }
    return HEALCL_OK;
}

static void worker_close(struct worker *worker)
{
    struct server *server = worker->server;
    server->served.device_bytes += healcl_batcher_facts(worker->batcher).device_bytes;
    healcl_batcher_close(worker->batcher);
    for (size_t i = 0; worker->requests && i < worker->batch; i++)
        free_room(server, &worker->requests[i]);
    free(worker->requests);
    free(worker->asked);
}

static void *work(void *context)
{
    while (worker_step(context))
        continue;
    return NULL;
}

/* Opening sessions takes turns, as opening devices does. */
static enum healcl_status open_workers(struct server *server, struct worker *workers,
                                       uint32_t count, struct healcl_error *error)
{
    for (uint32_t i = 0; i < count; i++)
        TRY(worker_open(&workers[i], error));
    if (workers[0].batch < server->batch)
        ranks_notice(server->ranks, "batches of %zu requests, not %u: memory has no room for more",
                     workers[0].batch, server->batch);
    server->served.batch = (uint32_t)workers[0].batch;
    return HEALCL_OK;
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

int server_run(struct server *server)
{
    struct worker workers[SESSIONS_MAX] = {{.server = NULL}};
    struct healcl_error error = {.status = HEALCL_OK};
    const uint32_t count = server->sessions;
    for (uint32_t i = 0; i < SESSIONS_MAX; i++)
        workers[i].server = server;
    const int code = ranks_agree(server->ranks, open_workers(server, workers, count, &error),
                                 server->opening->file, &error);
    if (code == GOES_ON) {
        server->start = monotonic_nanoseconds();
        work_all(server, workers, count);
    }
    for (uint32_t i = 0; i < count; i++)
        worker_close(&workers[i]);
    server->served.sessions = count;
    return code;
}

void server_release(struct server *server)
{
    journal_release(&server->journal);
    free(server->nanoseconds);
    free(server->failures.data);
}
