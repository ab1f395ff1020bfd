/* healcl-mpi serve: requests distributed among ranks. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/requests.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/registry.h"
#include "mpi/opening.h"
#include "run/loaded_transcript.h"
#include "transcript/npy.h"
#include "transcript/source.h"

enum { INPUTS_MAX = 64, SESSIONS_MAX = 16, BATCH_MAX = 1024, PATH_SIZE = 2 * PATH_MAX };

/* Figures of one rank, or of all. */
struct served {
    uint64_t requests; /* with a result from this run */
    uint64_t left_out; /* with an earlier result, for --resume */
    uint64_t failed;
    uint64_t nanoseconds; /* from when all ranks are ready to its last request's end */
    uint64_t bytes_uploaded, bytes_written;
    uint64_t device_bytes;    /* allocated on the device at the end, by all sessions */
    uint64_t batches;         /* runs of one or more requests */
    uint32_t sessions, batch; /* concurrent sessions; requests of a full batch */
    char host[MPI_MAX_PROCESSOR_NAME], device[256];
};

/* The state of `healcl-mpi serve`. */
struct serve_command {
    struct opening opening;
    bool resume;
    uint32_t sessions;               /* concurrent sessions */
    uint32_t batch;                  /* requests per run */
    const char *results;             /* folder of the results */
    const char *entries[INPUTS_MAX]; /* "ENTRY=DIR" */
    const char *folders[INPUTS_MAX]; /* DIR */
    size_t input_count;

    struct ranks ranks;
    size_t inputs[INPUTS_MAX]; /* numbers of the transcript's inputs */
    char *text;                /* names of requests, each ends with a 0 */
    const char **names;
    size_t count;
    struct timespec since; /* older results are of another transcript */
    /* Shared by all threads; the lock protects them. */
    pthread_mutex_t lock;
    struct served served;
    uint64_t start;
    uint64_t *nanoseconds; /* served.requests times */
    /* At rank 0, at the end: figures of all ranks, and times of all requests with a result. */
    struct served *of_ranks;
    uint64_t *of_requests;
};

/* A current request. */
struct request {
    const char *name;
    uint64_t start;
    void **data; /* elements of each input, then of each result */
};

/* A thread with a batcher. */
struct worker {
    struct serve_command *command;
    pthread_t thread;
    struct healcl_batcher *batcher;
    size_t batch; /* of the batcher */
    struct request *requests;
    struct healcl_request *asked; /* the same requests, for the batcher */
};

static const struct healcl_tensor_info *input_of(const struct serve_command *self, size_t i)
{
    return &self->opening.transcript->inputs[self->inputs[i]];
}

static size_t result_count(const struct serve_command *self)
{
    return self->opening.transcript->plan->results;
}

/* ---------------------------------------------------------------- files */

static void input_path(const struct serve_command *self, const char *name, size_t input,
                       char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%s/%s.npy", self->folders[input], name);
}

/* Writes "FOLDER/NAME.npy", or "FOLDER/NAME.ENTRY.npy" if the transcript has several results. */
static void result_path(const struct serve_command *self, const char *name, size_t result,
                        char path[PATH_SIZE])
{
    char entry[24] = "";
    if (result_count(self) > 1)
        snprintf(entry, sizeof entry, ".%zu", self->opening.transcript->results[result].entry);
    snprintf(path, PATH_SIZE, "%s/%s%s.npy", self->results, name, entry);
}

static int is_request(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return *entry->d_name != '.' && length > 4 && strcmp(entry->d_name + length - 4, ".npy") == 0;
}

/* Lists the names of all files in the first input's folder, sorted. The other folders have the same
 * names. */
static enum healcl_status read_names(struct serve_command *self, size_t *size,
                                     struct healcl_error *error)
{
    struct dirent **files;
    char path[PATH_SIZE];
    const int count = scandir(self->folders[0], &files, is_request, alphasort);
    if (count < 0)
        FAIL_FILE(error, PATH_FORMAT ": %s", self->folders[0], strerror(errno));
    if (count == 0)
        FAIL(error, HEALCL_USAGE, PATH_FORMAT ": there is no file NAME.npy", self->folders[0]);
    for (int i = 0; i < count; i++) {
        const size_t length = strlen(files[i]->d_name) - 4;
        self->text = xrealloc(self->text, *size + length + 1, 1);
        memcpy(self->text + *size, files[i]->d_name, length);
        self->text[*size + length] = 0;
        *size += length + 1;
        free(files[i]);
    }
    free(files);
    for (size_t at = 0; at < *size; at += strlen(self->text + at) + 1)
        for (size_t input = 1; input < self->input_count; input++) {
            input_path(self, self->text + at, input, path);
            if (access(path, F_OK) != 0)
                FAIL_FILE(error, PATH_FORMAT ": %s", path, strerror(errno));
        }
    return HEALCL_OK;
}

/* Creates the folder and reads the names, only at rank 0. */
static int serve_begin(struct serve_command *self, size_t *size)
{
    struct healcl_error error = {.status = HEALCL_OK};
    enum healcl_status status = HEALCL_OK;
    if (mkdir(self->results, 0777) != 0 && errno != EEXIST)
        status = ERROR(&error, HEALCL_USAGE, "cannot make " PATH_FORMAT ": %s", self->results,
                       strerror(errno));
    THEN(status, read_names(self, size, &error));
    return status == HEALCL_OK ? GOES_ON : end_error(&error, false);
}

/* Sends rank 0's names to all ranks. */
static void share_names(struct serve_command *self, size_t size)
{
    enum { AT_ONCE = 1 << 30 };
    uint64_t bytes = size;
    ranks_share(&self->ranks, &bytes, sizeof bytes);
    if (self->ranks.rank > 0)
        self->text = xmalloc(bytes);
    for (uint64_t done = 0; done < bytes; done += AT_ONCE)
        ranks_share(&self->ranks, self->text + done,
                    bytes - done < AT_ONCE ? bytes - done : AT_ONCE);
    for (uint64_t at = 0; at < bytes; at += strlen(self->text + at) + 1)
        self->count++;
    self->names = xcalloc(self->count, sizeof *self->names);
    const char *next = self->text;
    for (size_t i = 0; i < self->count; i++, next += strlen(next) + 1)
        self->names[i] = next;
}

/* ---------------------------------------------------------------- what is done already */

/* Sets `since` to the time of a file that identifies the transcript of all later results. With
 * --resume the file is kept if it identifies this transcript. Rank 0 calls this. */
static enum healcl_status find_since(struct serve_command *self, struct healcl_error *error)
{
    char path[PATH_SIZE], wanted[2 * HASH_SIZE + 1], found[sizeof wanted] = "";
    struct stat about;
    struct new_file written;
    snprintf(wanted, sizeof wanted, "%s %s", self->opening.transcript_hash,
             self->opening.plan_hash);
    snprintf(path, sizeof path, "%s/healcl-mpi.transcript", self->results);
    FILE *file = self->resume ? fopen(path, "r") : NULL;
    if (file) {
        (void)!fread(found, 1, sizeof found - 1, file);
        fclose(file);
    }
    if (strcmp(found, wanted) != 0) {
        TRY(new_file_open(&written, path, error));
        fputs(wanted, written.stream);
        TRY(new_file_commit(&written, error));
    }
    if (stat(path, &about) != 0)
        FAIL_FILE(error, PATH_FORMAT ": %s", path, strerror(errno));
    self->since = about.st_mtim;
    return HEALCL_OK;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* Whether all results exist and are newer than the inputs. Result files only appear when
 * complete. */
static bool is_done(const struct serve_command *self, const char *name)
{
    char path[PATH_SIZE];
    struct stat about;
    struct timespec newest = self->since;
    for (size_t i = 0; i < self->input_count; i++) {
        input_path(self, name, i, path);
        if (stat(path, &about) != 0)
            return false;
        /* Time of the last change of the file or its name. */
        if (is_before(&newest, &about.st_ctim))
            newest = about.st_ctim;
    }
    for (size_t i = 0; i < result_count(self); i++) {
        result_path(self, name, i, path);
        if (stat(path, &about) != 0 || is_before(&about.st_mtim, &newest))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------- requests */

static enum healcl_status read_inputs(const struct serve_command *self,
                                      const struct request *request, struct healcl_error *error)
{
    char path[PATH_SIZE];
    for (size_t i = 0; i < self->input_count; i++) {
        const struct healcl_tensor_info *info = input_of(self, i);
        const struct layout layout = layout_of_shape(info->rank, info->shape);
        input_path(self, request->name, i, path);
        TRY(npy_read_file(path, (enum dtype)info->dtype, &layout, request->data[i], error));
    }
    return HEALCL_OK;
}

static enum healcl_status write_results(struct serve_command *self, const struct request *request,
                                        struct healcl_error *error)
{
    char path[PATH_SIZE];
    uint64_t bytes = 0;
    for (size_t i = 0; i < result_count(self); i++) {
        const struct healcl_tensor_info *info = &self->opening.transcript->results[i];
        const struct layout layout = layout_of_shape(info->rank, info->shape);
        result_path(self, request->name, i, path);
        TRY(npy_write_file(path, (enum dtype)info->dtype, &layout,
                           request->data[self->input_count + i], error));
        bytes += info->bytes;
    }
    pthread_mutex_lock(&self->lock);
    const uint64_t now = monotonic_nanoseconds();
    self->nanoseconds[self->served.requests++] = now - request->start;
    self->served.nanoseconds = now - self->start;
    self->served.bytes_written += bytes;
    pthread_mutex_unlock(&self->lock);
    return HEALCL_OK;
}

static void serve_note_failure(struct serve_command *self, const char *name,
                               const struct healcl_error *error)
{
    ranks_notice(&self->ranks, "request '%s': %s", name, error->message);
    pthread_mutex_lock(&self->lock);
    self->served.failed++;
    self->served.nanoseconds = monotonic_nanoseconds() - self->start;
    pthread_mutex_unlock(&self->lock);
}

/* Ends all ranks because of an error that no request caused. */
static void serve_check(struct serve_command *self, enum healcl_status status,
                        const struct healcl_error *error)
{
    if (status != HEALCL_OK)
        ranks_fail(&self->ranks, NULL, error);
}

/* Takes the next request that can be read and is not done. Returns whether there was one. */
static bool take_request(struct serve_command *self, struct request *request)
{
    for (uint64_t number; (number = ranks_take(&self->ranks)) < self->count;) {
        request->name = self->names[number];
        struct healcl_error error = {.status = HEALCL_OK};
        request->start = monotonic_nanoseconds();
        if (self->resume && is_done(self, request->name)) {
            pthread_mutex_lock(&self->lock);
            self->served.left_out++;
            pthread_mutex_unlock(&self->lock);
            continue;
        }
        enum healcl_status status = read_inputs(self, request, &error);
        if (status == HEALCL_OK)
            return true;
        if (status == HEALCL_NO_MEMORY)
            serve_check(self, status, &error);
        serve_note_failure(self, request->name, &error);
        healcl_error_clear(&error);
    }
    return false;
}

/* ---------------------------------------------------------------- threads */

/* Takes a batch and serves it. Returns whether there was one. */
static bool worker_step(struct worker *worker)
{
    struct serve_command *self = worker->command;
    struct healcl_error error = {.status = HEALCL_OK};
    const uint64_t runs = healcl_batcher_facts(worker->batcher).runs;
    size_t count = 0;
    while (count < worker->batch && take_request(self, &worker->requests[count]))
        count++;
    serve_check(self, healcl_batcher_run(worker->batcher, worker->asked, count, &error), &error);
    const struct healcl_batcher_facts facts = healcl_batcher_facts(worker->batcher);
    pthread_mutex_lock(&self->lock);
    self->served.batches += facts.runs - runs;
    self->served.bytes_uploaded += (facts.runs - runs) * facts.bytes_uploaded;
    pthread_mutex_unlock(&self->lock);
    for (size_t i = 0; i < count; i++) {
        if (worker->asked[i].status == HEALCL_OK)
            serve_check(self, write_results(self, &worker->requests[i], &error), &error);
        else
            serve_note_failure(self, worker->requests[i].name, &worker->asked[i].error);
        healcl_error_clear(&worker->asked[i].error);
    }
    return count > 0;
}

static void *serve_work(void *context)
{
    while (worker_step(context))
        continue;
    return NULL;
}

/* Allocates memory for the inputs and results of a request. */
static void serve_make_room(const struct serve_command *self, struct request *request,
                            struct healcl_request *asked)
{
    const size_t inputs = self->input_count, count = inputs + result_count(self);
    request->data = xcalloc(count, sizeof *request->data);
    for (size_t i = 0; i < count; i++)
        request->data[i] =
            xmalloc(i < inputs ? input_of(self, i)->bytes
                               : self->opening.transcript->results[i - inputs].bytes);
    asked->inputs = (const void *const *)request->data;
    asked->results = request->data + inputs;
}

/* A batch may use its share of a device's own memory. */
static enum healcl_status worker_open(struct worker *worker, struct healcl_error *error)
{
    struct serve_command *self = worker->command;
    const struct device_info *info = &self->opening.info;
    const bool is_shared = self->opening.reference || info->unified_memory;
    const struct healcl_batcher_options options = {
        .batch = self->batch,
        .inputs = self->inputs,
        .input_count = self->input_count,
        .memory_bytes = is_shared ? 0 : info->global_memory_bytes / self->sessions};
    TRY(healcl_batcher_open(self->opening.transcript, self->opening.job.device, &options,
                            &worker->batcher, error));
    worker->batch = healcl_batcher_facts(worker->batcher).batch;
    worker->requests = xcalloc(worker->batch, sizeof *worker->requests);
    worker->asked = xcalloc(worker->batch, sizeof *worker->asked);
    for (size_t i = 0; i < worker->batch; i++)
        serve_make_room(self, &worker->requests[i], &worker->asked[i]);
    return HEALCL_OK;
}

static void worker_close(struct worker *worker)
{
    struct serve_command *self = worker->command;
    self->served.device_bytes += healcl_batcher_facts(worker->batcher).device_bytes;
    healcl_batcher_close(worker->batcher);
    for (size_t i = 0; i < worker->batch; i++) {
        for (size_t j = 0; j < self->input_count + result_count(self); j++)
            free(worker->requests[i].data[j]);
        free(worker->requests[i].data);
    }
    free(worker->requests);
    free(worker->asked);
}

/* Sessions are opened one at a time, as devices are. */
static enum healcl_status open_workers(struct serve_command *self, struct worker *workers,
                                       struct healcl_error *error)
{
    for (uint32_t i = 0; i < self->sessions; i++)
        TRY(worker_open(&workers[i], error));
    if (workers[0].batch < self->batch)
        ranks_notice(&self->ranks, "batches have %zu requests, not %u, because memory is short",
                     workers[0].batch, self->batch);
    self->served.batch = (uint32_t)workers[0].batch;
    self->served.sessions = self->sessions;
    return HEALCL_OK;
}

/* The first request builds kernels. The other threads start after it. */
static void work_all(struct serve_command *self, struct worker *workers)
{
    struct healcl_error error = {.status = HEALCL_OK};
    const bool is_more = worker_step(&workers[0]);
    for (uint32_t i = 1; i < self->sessions; i++)
        if (pthread_create(&workers[i].thread, NULL, serve_work, &workers[i]) != 0)
            serve_check(self, ERROR(&error, HEALCL_NO_MEMORY, "cannot start a thread"), &error);
    if (is_more)
        (void)serve_work(&workers[0]);
    for (uint32_t i = 1; i < self->sessions; i++)
        pthread_join(workers[i].thread, NULL);
}

/* ---------------------------------------------------------------- serving */

static enum healcl_status serve_find_inputs(struct serve_command *self, struct healcl_error *error)
{
    for (size_t i = 0; i < self->input_count; i++) {
        const int length = (int)(self->folders[i] - self->entries[i]) - 1;
        TRY(find_input(self->opening.transcript, "input", self->entries[i], (size_t)length,
                       &self->inputs[i], error));
        for (size_t other = 0; other < i; other++)
            if (self->inputs[other] == self->inputs[i])
                FAIL(error, HEALCL_USAGE, "--input: entry %.*s is named twice",
                     length < 100 ? length : 100, self->entries[i]);
    }
    return HEALCL_OK;
}

/* Refuses a result whose path leads to an input file, or to the transcript. */
static enum healcl_status check_results(const struct serve_command *self,
                                        struct healcl_error *error)
{
    char path[PATH_SIZE];
    NEED_MEMORY(source_hold(self->opening.transcript->plan->source, true), error);
    for (size_t i = 0; i < self->count * self->input_count; i++) {
        input_path(self, self->names[i / self->input_count], i % self->input_count, path);
        NEED_MEMORY(input_note(path, NULL), error);
    }
    for (size_t i = 0; i < self->count * result_count(self); i++) {
        result_path(self, self->names[i / result_count(self)], i % result_count(self), path);
        TRY(new_file_check(path, error));
    }
    return HEALCL_OK;
}

/* Serves all requests. Each of the sessions' threads takes one batch after the other, so that one
 * thread transfers data while another computes. Returns GOES_ON or the exit code of all ranks. A
 * later failure of a device or file ends all ranks. */
static int serve(struct serve_command *self)
{
    struct worker workers[SESSIONS_MAX] = {{.command = NULL}};
    struct healcl_error error = {.status = HEALCL_OK};
    snprintf(self->served.host, sizeof self->served.host, "%s", self->ranks.host);
    snprintf(self->served.device, sizeof self->served.device, "%s", opening_device(&self->opening));
    for (uint32_t i = 0; i < SESSIONS_MAX; i++)
        workers[i].command = self;
    enum healcl_status status = serve_find_inputs(self, &error);
    if (status == HEALCL_OK && self->ranks.rank == 0)
        status = check_results(self, &error);
    if (status == HEALCL_OK && self->ranks.rank == 0)
        status = find_since(self, &error);
    int code = ranks_agree(&self->ranks, status, NULL, &error);
    if (code != GOES_ON)
        return code;
    ranks_share(&self->ranks, &self->since, sizeof self->since);
    self->nanoseconds = xcalloc(self->count, sizeof *self->nanoseconds);
    code = ranks_agree(&self->ranks, open_workers(self, workers, &error), self->opening.job.file,
                       &error);
    if (code == GOES_ON) {
        self->start = monotonic_nanoseconds();
        work_all(self, workers);
    }
    for (uint32_t i = 0; i < self->sessions; i++)
        worker_close(&workers[i]);
    return code;
}

/* ---------------------------------------------------------------- the report */

/* nanoseconds: served->requests times */
static void add_served(cJSON *object, const struct served *served, uint64_t *nanoseconds)
{
    JSON_ADD(object, NUMBER("requests", served->requests), NUMBER("left_out", served->left_out),
             NUMBER("failed", served->failed), NUMBER("batches", served->batches),
             NUMBER("batch", served->batch), NUMBER("sessions", served->sessions),
             NUMBER("ns", served->nanoseconds));
    report_add_rates(object, nanoseconds, served->requests, served->nanoseconds);
    JSON_ADD(object, NUMBER("bytes_uploaded", served->bytes_uploaded),
             NUMBER("bytes_written", served->bytes_written),
             NUMBER("device_bytes", served->device_bytes));
}

/* Adds the figures of all ranks, which work at the same time. */
static struct served sum_of(const struct served *ranks, int count)
{
    struct served sum = {.requests = 0};
    for (int rank = 0; rank < count; rank++) {
        const struct served *served = &ranks[rank];
        sum.requests += served->requests;
        sum.left_out += served->left_out;
        sum.failed += served->failed;
        sum.bytes_uploaded += served->bytes_uploaded;
        sum.bytes_written += served->bytes_written;
        sum.device_bytes += served->device_bytes;
        sum.batches += served->batches;
        sum.sessions += served->sessions;
        if (served->batch > sum.batch)
            sum.batch = served->batch;
        if (served->nanoseconds > sum.nanoseconds)
            sum.nanoseconds = served->nanoseconds;
    }
    return sum;
}

static cJSON *serve_report(void *context)
{
    const struct serve_command *self = context;
    const struct served *ranks = self->of_ranks, sum = sum_of(ranks, self->ranks.count);
    uint64_t *nanoseconds = self->of_requests;
    cJSON *document = json_report();
    JSON_ADD(document, STRING("transcript", self->opening.job.file),
             STRING("results", self->results));
    cJSON *list = json_add_array(document, "ranks");
    for (int i = 0; i < self->ranks.count; i++) {
        cJSON *object = json_add_object(list, NULL);
        JSON_ADD(object, NUMBER("rank", (uint64_t)i), STRING("host", ranks[i].host),
                 STRING("device", ranks[i].device));
        add_served(object, &ranks[i], nanoseconds);
        nanoseconds += ranks[i].requests;
    }
    add_served(document, &sum, self->of_requests);
    return document;
}

static void serve_print(void *self, const cJSON *document, const struct style *style)
{
    (void)self;
    static const struct view_line lines[] = {
        {"transcript", "{transcript}"},
        {"results", "{results}"},
        {"bytes", "{bytes_uploaded:bytes} uploaded, {bytes_written:bytes} of results, "
                  "{device_bytes:bytes} on devices"},
        {"left out", "{left_out:#?} requests, whose results exist already"},
        {"failed", "{failed:#?} requests"},
    };
    static const struct view_column columns[] = {
        {"rank", "{rank|all}", VIEW_RIGHT},
        {"host", "{host}", VIEW_SHRINKS | VIEW_BLANK},
        {"device", "{device}", VIEW_SHRINKS | VIEW_BLANK},
        {"requests", "{requests}", VIEW_RIGHT},
        {"batches", "{batches}", VIEW_RIGHT},
        {"a second", "{requests_per_second:factor}", VIEW_RIGHT},
        {"median", "{latency_ns.median:time}", VIEW_RIGHT},
        {"p95", "{latency_ns.p95:time}", VIEW_RIGHT},
        {"p99", "{latency_ns.p99:time}", VIEW_RIGHT},
    };
    cJSON *rows = cJSON_Duplicate(json_at(document, "ranks"), true),
          *all = cJSON_Duplicate(document, true);
    cJSON_AddItemToArray(rows, all);
    VIEW_LINES(style, document, lines);
    VIEW_SECTION(style, rows, columns);
    cJSON_Delete(rows);
}

/* All ranks call this. Returns the exit code, which is the same at all ranks. */
static int serve_report_all(const struct command *command, struct serve_command *self)
{
    struct ranks *ranks = &self->ranks;
    int code = EXIT_VERIFIED;
    ranks_meet(ranks);
    self->of_ranks = ranks_gather(ranks, &self->served, sizeof self->served);
    self->of_requests =
        ranks_gather(ranks, self->nanoseconds, self->served.requests * sizeof *self->nanoseconds);
    if (ranks->rank == 0) {
        code = finish_output(job_report(command, self));
        for (int rank = 0; rank < ranks->count; rank++)
            if (code == EXIT_VERIFIED && self->of_ranks[rank].failed > 0)
                code = EXIT_REFUSED;
    }
    free(self->of_ranks);
    free(self->of_requests);
    return ranks_first(ranks, code);
}

/* ---------------------------------------------------------------- options */

static int take_input(const struct command *command, const struct command_option *option,
                      void *memory, const char *text)
{
    struct serve_command *self = memory;
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return usage_error(command, "--%s takes ENTRY=DIR, not '%.200s'", option->name, text);
    if (self->input_count == INPUTS_MAX)
        return usage_error(command, "--%s: %d inputs at most", option->name, INPUTS_MAX);
    self->entries[self->input_count] = text;
    self->folders[self->input_count++] = equals + 1;
    return EXIT_VERIFIED;
}

static const struct command_option options[] = {
    {"input", 'i', OPTION_INPUT, "ENTRY=DIR",
     .help = "the entry or tensor name of an upload, and the folder with its tensors: all files "
             "*.npy that "
             "are not hidden; repeatable",
     .take = take_input},
    {"results", 0, OPTION_NEW_FOLDER, "DIR", KEPT_IN(struct serve_command, results),
     "the folder for results: NAME.npy, or NAME.ENTRY.npy if the transcript has several; a file "
     "appears when it is complete"},
    {"resume", 0, OPTION_FLAG, NULL, KEPT_IN(struct serve_command, resume),
     "leave out requests whose results exist, newer than their inputs and from the same "
     "transcript"},
    {"sessions", 0, OPTION_COUNT, "N", KEPT_IN(struct serve_command, sessions),
     "requests that each rank has in progress, 2 by default: one uploads while another computes, "
     "and each keeps its own keys and weights",
     .most = SESSIONS_MAX},
    {"batch", 0, OPTION_COUNT, "B", KEPT_IN(struct serve_command, batch),
     "requests that run together as one, 1 by default: keys and weights are read once for all; "
     "fewer if memory is short",
     .most = BATCH_MAX},
    OPENING_OPTIONS,
};

static int serve_prepare(const struct command *command, void *context)
{
    struct serve_command *self = context;
    const int code = opening_prepare(command, self);
    if (code == GOES_ON && (self->input_count == 0 || !self->results))
        return usage_error(command, "--%s is missing", self->results ? "input" : "results");
    return code;
}

static int serve_run(const struct command *command, void *context)
{
    struct serve_command *self = context;
    size_t size = 0;
    pthread_mutex_init(&self->lock, NULL);
    if (self->sessions == 0)
        self->sessions = 2;
    if (self->batch == 0)
        self->batch = 1;
    int code = opening_start(&self->opening, &self->ranks);
    if (code == GOES_ON)
        code =
            ranks_first(&self->ranks, self->ranks.rank == 0 ? serve_begin(self, &size) : GOES_ON);
    if (code == GOES_ON) {
        share_names(self, size);
        code = opening_open(&self->opening, &self->ranks);
    }
    if (code == GOES_ON)
        code = serve(self);
    if (code == GOES_ON)
        code = serve_report_all(command, self);
    free(self->nanoseconds);
    free(self->names);
    free(self->text);
    opening_release(&self->opening);
    ranks_end(&self->ranks);
    return code;
}

const struct command command_serve = {
    .name = "serve",
    .summary = "run many requests of a transcript, each on the next free device",
    .help = "Runs a transcript once for each request, on all devices: a request is a file NAME.npy "
            "for each live input, and its result becomes NAME.npy in another folder.",
    .usage = "mpirun -n RANKS healcl-mpi serve --input ENTRY=DIR --results DIR [OPTIONS] FILE",
    .notes = "Faster devices take more requests. All ranks need the same files (docs/SCALE.md). A "
             "refused request is reported, and the others go on. If a device fails, or a rank "
             "differs from rank 0 in healcl, transcript or plan, all ranks end, and a line names "
             "rank and host.\n\nExit codes: 0 all is done; 2 wrong usage; 3 the transcript or a "
             "request is refused, or ranks differ; 4 a device or OpenCL failed, or memory ran out.",
    .options = options,
    .operands = OPERANDS_FILE,
    .device = DEVICE_HERE,
    .size = sizeof(struct serve_command),
    .run = serve_run,
    .steps = {.prepare = serve_prepare, .report = serve_report, .print = serve_print},
};
