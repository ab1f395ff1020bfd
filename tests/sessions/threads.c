/*
 * Several threads on one device: threads DEVICE|reference RUNS TRANSCRIPT... Four threads have two
 * sessions each, on transcripts that change while others run, a queue, and share the device's
 * handle. They run RUNS sessions between them, every second one in the background while the
 * thread's other session runs and calls are enqueued; some are cancelled by another thread, some
 * are closed while they run. Exit status 1 where a result is not what the transcript expects.
 */
#include <healcl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, SESSIONS = 2, OPENED = 40, CALLS = 20, ELEMENTS = 1000 };

struct work {
    const struct healcl_transcript *const *transcripts;
    size_t transcript_count;
    struct healcl_device *device;
    int runs;
    atomic_int begun;
    /* A session that any thread may cancel, or NULL; guarded by the lock. */
    pthread_mutex_t lock;
    struct healcl_session *open_to_all;
    atomic_int ended_well, cancelled, compared, wrong;
};

static void need(struct work *work, enum healcl_status status, struct healcl_error *error)
{
    if (status == HEALCL_OK)
        return;
    fprintf(stderr, "%s\n", error->message);
    work->wrong++;
}

struct session {
    struct healcl_session *handle;
    const struct healcl_transcript *transcript;
    int runs;
    atomic_int told; /* by callbacks */
};

/* ---------------------------------------------------------------- one session */

static void compare(struct work *work, struct session *session)
{
    struct healcl_error error = {0};
    size_t count = 0;
    const struct healcl_tensor_info *results =
        healcl_transcript_results(session->transcript, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t different = 1;
        if (!results[i].has_data)
            continue;
        need(work, healcl_session_compare(session->handle, i, &different, &error), &error);
        work->wrong += different != 0;
        work->compared++;
    }
    healcl_error_clear(&error);
}

/* Opens another transcript after some runs: about OPENED in all, for they build kernels. */
static void renew(struct work *work, struct session *session, size_t number)
{
    struct healcl_error error = {0};
    if (session->handle && session->runs < 2 + work->runs / OPENED)
        return;
    healcl_session_close(session->handle);
    session->handle = NULL;
    session->runs = 0;
    session->transcript = work->transcripts[number % work->transcript_count];
    need(work,
         healcl_session_open(session->transcript, work->device, NULL, &session->handle, &error),
         &error);
    healcl_error_clear(&error);
}

static void hear(void *context, enum healcl_status status)
{
    struct session *session = context;
    const void *data = NULL;
    size_t count = 0;
    (void)healcl_transcript_results(session->transcript, &count);
    if (status == HEALCL_OK && count > 0)
        (void)!healcl_session_map(session->handle, count - 1, &data, NULL);
    session->told++;
}

static void start(struct work *work, struct session *session)
{
    struct healcl_error error = {0};
    size_t segments = healcl_transcript_segment_count(session->transcript);
    session->runs++;
    session->told = 0;
    need(work, healcl_session_start(session->handle, 0, segments, hear, session, &error), &error);
    healcl_error_clear(&error);
}

static void await(struct work *work, struct session *session)
{
    struct healcl_error error = {0};
    enum healcl_status status = healcl_session_wait(session->handle, &error);
    work->wrong += session->told != 1;
    if (status == HEALCL_CANCELLED) {
        work->cancelled++;
    } else {
        need(work, status, &error);
        work->ended_well++;
        compare(work, session);
    }
    healcl_error_clear(&error);
}

static void run(struct work *work, struct session *session)
{
    struct healcl_error error = {0};
    session->runs++;
    need(work, healcl_session_run(session->handle, &error), &error);
    work->ended_well++;
    compare(work, session);
    healcl_error_clear(&error);
}

static void open_to_all(struct work *work, struct session *session)
{
    pthread_mutex_lock(&work->lock);
    work->open_to_all = session->handle;
    pthread_mutex_unlock(&work->lock);
}

static void close_to_all(struct work *work, struct session *session)
{
    pthread_mutex_lock(&work->lock);
    if (work->open_to_all == session->handle)
        work->open_to_all = NULL;
    pthread_mutex_unlock(&work->lock);
}

/* ---------------------------------------------------------------- calls */

/* Squares of 0, 1, 2 ... modulo a prime, again and again, in tensors that are new each time. */
static void call(struct work *work, struct healcl_queue *queue, int64_t q)
{
    struct healcl_error error = {0};
    struct healcl_tensor *tensor = NULL;
    const int64_t shape[1] = {ELEMENTS};
    int64_t values[ELEMENTS], got[ELEMENTS];
    for (int64_t i = 0; i < ELEMENTS; i++)
        values[i] = i;
    need(work, healcl_tensor_create(queue, HEALCL_INT64, 1, shape, values, &tensor, &error),
         &error);
    for (int i = 0; i < CALLS && work->wrong == 0; i++) {
        struct healcl_tensor *made = NULL;
        need(work, healcl_tensor_create(queue, HEALCL_INT64, 1, shape, NULL, &made, &error),
             &error);
        const struct healcl_argument arguments[] = {
            healcl_tensor_argument(tensor), healcl_tensor_argument(tensor), healcl_int_argument(q),
            healcl_tensor_argument(made)};
        need(work, healcl_call(queue, "modmul", 4, arguments, NULL, &error), &error);
        healcl_tensor_release(tensor);
        tensor = made;
        for (int64_t e = 0; e < ELEMENTS; e++)
            values[e] = values[e] * values[e] % q;
    }
    if (work->wrong == 0)
        need(work, healcl_tensor_read(tensor, got, sizeof got, &error), &error);
    work->wrong += memcmp(got, values, sizeof got) != 0;
    healcl_tensor_release(tensor);
    healcl_error_clear(&error);
}

/* ---------------------------------------------------------------- threads */

static void *serve(void *context)
{
    struct work *work = context;
    struct healcl_error error = {0};
    struct session sessions[SESSIONS] = {{.handle = NULL}};
    struct healcl_queue *queue = NULL;
    need(work, healcl_queue_open(work->device, NULL, &queue, &error), &error);
    for (int i; work->wrong == 0 && (i = atomic_fetch_add(&work->begun, SESSIONS)) < work->runs;) {
        for (size_t s = 0; s < SESSIONS && work->wrong == 0; s++)
            renew(work, &sessions[s], (size_t)i + s * 7);
        if (work->wrong > 0)
            break;
        start(work, &sessions[0]);
        if (i % 16 < 4)
            open_to_all(work, &sessions[0]);
        call(work, queue, 999983 + 2 * (i % 5));
        run(work, &sessions[1]);
        close_to_all(work, &sessions[0]);
        if (i % 32 == 30) { /* closed while it runs */
            healcl_session_close(sessions[0].handle);
            sessions[0].handle = NULL;
            healcl_queue_close(queue);
            need(work, healcl_queue_open(work->device, NULL, &queue, &error), &error);
            continue;
        }
        await(work, &sessions[0]);
    }
    for (size_t s = 0; s < SESSIONS; s++) {
        close_to_all(work, &sessions[s]);
        healcl_session_close(sessions[s].handle);
    }
    healcl_queue_close(queue);
    healcl_error_clear(&error);
    return NULL;
}

/* Cancels what may be cancelled, now and then. */
static void *cancel(void *context)
{
    struct work *work = context;
    const struct timespec pause = {.tv_nsec = 200000};
    while (work->wrong == 0 && work->begun < work->runs) {
        pthread_mutex_lock(&work->lock);
        healcl_session_cancel(work->open_to_all);
        pthread_mutex_unlock(&work->lock);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct healcl_error error = {0};
    struct healcl_transcript **transcripts = calloc((size_t)argc, sizeof *transcripts);
    if (argc < 4 || !transcripts) {
        fprintf(stderr, "threads DEVICE|reference RUNS TRANSCRIPT...\n");
        return 2;
    }
    struct work work = {.transcripts = (const struct healcl_transcript *const *)transcripts,
                        .runs = atoi(argv[2])};
    pthread_mutex_init(&work.lock, NULL);
    for (int i = 3; i < argc && work.wrong == 0; i++)
        need(&work,
             healcl_transcript_open(argv[i], NULL, &transcripts[work.transcript_count++], &error),
             &error);
    if (work.wrong == 0 && strcmp(argv[1], "reference") != 0)
        need(&work, healcl_device_open(argv[1], &work.device, &error), &error);
    pthread_t threads[THREADS + 1];
    int started = 0;
    while (work.wrong == 0 && started <= THREADS &&
           pthread_create(&threads[started], NULL, started < THREADS ? serve : cancel, &work) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    printf("%d runs ended well, %d were cancelled; of %d results and what was called %d wrong\n",
           work.ended_well, work.cancelled, work.compared, work.wrong);
    healcl_device_close(work.device);
    for (size_t i = 0; i < work.transcript_count; i++)
        healcl_transcript_close(transcripts[i]);
    free(transcripts);
    pthread_mutex_destroy(&work.lock);
    healcl_error_clear(&error);
    return work.wrong > 0 || started <= THREADS || work.ended_well == 0 ? 1 : 0;
}
