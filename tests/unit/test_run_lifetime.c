/* Lifetimes and threads: handles of tensors, transcripts of sessions, calls that are waited for or
 * cancelled. Each on the device and on the host reference. */
#include "helper_queue_calls.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "helper_script.h"

enum { ELEMENTS = 64 };

static const int64_t shape[1] = {ELEMENTS};

static struct healcl_tensor *create(struct healcl_queue *queue, int64_t value)
{
    struct healcl_tensor *tensor = NULL;
    int64_t values[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = value + i;
    OK(healcl_tensor_create(queue, HEALCL_INT64, 1, shape, values, &tensor, &error));
    return tensor;
}

/* ---------------------------------------------------------------- handles */

static void outlives_its_queue_on(struct healcl_device *on)
{
    int64_t values[ELEMENTS];
    void *mapped;
    struct healcl_queue *queue = open_queue(on), *other;
    struct healcl_tensor *tensor = create(queue, 1), *second = create(queue, 2);
    OK(healcl_tensor_map(second, &mapped, &error));
    healcl_tensor_release(tensor); /* the queue has not come to it */
    tensor = create(queue, 3);
    healcl_queue_close(queue);
    other = open_queue(on);
    assert_int_equal(healcl_tensor_describe(tensor).bytes, sizeof values);
    assert_int_equal(healcl_tensor_layout(tensor).storage_elements, ELEMENTS);
    assert_int_equal(healcl_tensor_read(tensor, values, sizeof values, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "the tensor's queue is closed");
    assert_int_equal(healcl_tensor_write(tensor, values, sizeof values, &error), HEALCL_USAGE);
    assert_int_equal(healcl_tensor_unmap(second, &error), HEALCL_USAGE);
    assert_int_equal(CALL(other, "modneg", NULL, TENSOR(tensor), INT(7), TENSOR(tensor)),
                     HEALCL_USAGE);
    healcl_tensor_release(tensor);
    healcl_tensor_release(second);
    healcl_queue_close(other);
}
ON_BOTH(outlives_its_queue)

/* Handles on their way from a thread that calls to one that releases. */
struct hand_over {
    struct healcl_tensor *_Atomic slots[16];
    atomic_bool ends;
};

static void *release_all(void *context)
{
    struct hand_over *hand_over = context;
    for (size_t i = 0;; i = (i + 1) % 16) {
        const bool ends = atomic_load(&hand_over->ends);
        struct healcl_tensor *tensor = atomic_exchange(&hand_over->slots[i], NULL);
        healcl_tensor_release(tensor);
        if (!tensor)
            sched_yield(); /* the machine may be busy */
        for (size_t s = 0; ends && s < 16; s++)
            healcl_tensor_release(atomic_exchange(&hand_over->slots[s], NULL));
        if (ends)
            return NULL;
    }
}

static void releases_from_threads_on(struct healcl_device *on)
{
    enum { ROUNDS = 12, CALLS = 500 };
    for (int round = 0; round < ROUNDS; round++) {
        struct healcl_queue *queue = open_queue(on);
        struct hand_over hand_over = {.ends = false};
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, release_all, &hand_over), 0);
        struct healcl_tensor *a = create(queue, 1), *made = NULL;
        int64_t expected = 1, got[ELEMENTS];
        for (int i = 0; i < CALLS; i++) {
            made = create(queue, 0);
            OK(CALL(queue, "modsum", NULL, TENSOR(a), INT(i), INT(1000003), TENSOR(made)));
            expected = (expected + i) % 1000003;
            healcl_tensor_release(atomic_exchange(&hand_over.slots[i % 16], a));
            a = made;
        }
        OK(healcl_tensor_read(a, got, sizeof got, &error));
        assert_int_equal(got[0], expected);
        healcl_tensor_release(atomic_exchange(&hand_over.slots[0], a));
        if (round % 2)
            healcl_queue_close(queue);
        atomic_store(&hand_over.ends, true);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        if (round % 2 == 0)
            healcl_queue_close(queue);
    }
}
ON_BOTH(releases_from_threads)

/* ---------------------------------------------------------------- waiting */

static void calls_wait_on(struct healcl_device *on)
{
    struct healcl_queue *queue = NULL;
    OK(healcl_queue_open_with(on, &(struct healcl_queue_options){.synchronous = true}, &queue,
                              &error));
    struct healcl_tensor *a = create(queue, 1), *idx = create(queue, 1), *out = create(queue, 0);
    struct healcl_tensor *result = NULL;
    assert_int_equal(
        CALL(queue, "take_along_axis", &result, TENSOR(a), TENSOR(idx), INT(0), TENSOR(out)),
        HEALCL_REFUSED);
    assert_string_equal(error.message, "call 3 (take_along_axis): argument 'idx': 64 at [63] is "
                                       "outside of axis 0 of size 64");
    assert_null(result);
    OK(CALL(queue, "modneg", &result, TENSOR(a), INT(7), TENSOR(out)));
    assert_true(healcl_queue_poll(queue));
    assert_non_null(result);
    OK(healcl_queue_wait(queue, &error));
    healcl_tensor_release(result);
    healcl_tensor_release(out);
    healcl_tensor_release(idx);
    healcl_tensor_release(a);
    healcl_queue_close(queue);
}
ON_BOTH(calls_wait)

static void polls_on(struct healcl_device *on)
{
    struct healcl_queue *queue = open_queue(on), *other = open_queue(on);
    struct healcl_tensor *a = create(queue, 1), *b = create(other, 1);
    OK(healcl_queue_wait(queue, &error));
    assert_true(healcl_queue_poll(queue));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++)
            OK(CALL(queue, "modmul", NULL, TENSOR(a), INT(3), INT(1000003), TENSOR(a)));
        if (round == 2) /* whose turn waits for the other's */
            OK(CALL(other, "modmul", NULL, TENSOR(b), INT(3), INT(1000003), TENSOR(b)));
        while (!healcl_queue_poll(queue))
            ;
    }
    healcl_tensor_release(a);
    healcl_tensor_release(b);
    healcl_queue_close(other);
    healcl_queue_close(queue);
}
ON_BOTH(polls)

/* ---------------------------------------------------------------- cancelling */

struct canceller {
    struct healcl_queue *queue;
    atomic_bool ends;
};

static void *cancel_always(void *context)
{
    struct canceller *canceller = context;
    while (!atomic_load(&canceller->ends)) {
        healcl_queue_cancel(canceller->queue);
        sched_yield();
    }
    return NULL;
}

static void cancels_calls_on(struct healcl_device *on)
{
    enum { LARGE = 1 << 14 }; /* enough to be at work, and soon done, even by one work-item */
    struct healcl_queue *queue = open_queue(on);
    struct healcl_tensor *large = NULL;
    int64_t value = 0;
    OK(healcl_tensor_create(queue, HEALCL_INT64, 1, (int64_t[]){LARGE}, NULL, &large, &error));
    healcl_queue_cancel(queue); /* nothing goes on */
    OK(CALL(queue, "set_const_val", NULL, TENSOR(large), INT(5)));
    OK(healcl_queue_wait(queue, &error));
    struct canceller canceller = {.queue = queue};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_always, &canceller), 0);
    enum healcl_status status = HEALCL_OK;
    for (int i = 0; i < 100000 && status == HEALCL_OK; i++)
        status = CALL(queue, "set_const_val", NULL, TENSOR(large), INT(6));
    if (status == HEALCL_OK) /* or it is what was enqueued that is waited for */
        status = healcl_queue_wait(queue, &error);
    assert_int_equal(status, HEALCL_CANCELLED);
    assert_non_null(strstr(error.message, "cancelled"));
    atomic_store(&canceller.ends, true);
    pthread_join(thread, NULL);
    /* All goes on. */
    OK(healcl_queue_wait(queue, &error));
    OK(CALL(queue, "set_const_val", NULL, TENSOR(large), INT(7)));
    struct healcl_tensor *first = NULL;
    const struct healcl_index index = {.kind = HEALCL_INDEX_INT, .value = LARGE - 1};
    OK(CALL(queue, "get_slice", &first, TENSOR(large), healcl_index_argument(1, &index)));
    OK(healcl_tensor_read(first, &value, sizeof value, &error));
    assert_int_equal(value, 7);
    healcl_tensor_release(first);
    healcl_tensor_release(large);
    healcl_queue_close(queue);
}
ON_BOTH(cancels_calls)

static struct healcl_transcript *open_transcript(struct script *script)
{
    struct healcl_transcript *transcript = NULL;
    script_upload(script, "x", DTYPE_INT64, 1, shape, (int64_t[ELEMENTS]){1, 2, 3});
    for (int i = 0; i < 10; i++)
        script_call(script, "x", "_modmul_ttc", "x x 97 x");
    script_download(script, "x");
    script_finish(script);
    OK(healcl_transcript_open_memory(script->writer.bytes, script->writer.length, NULL, &transcript,
                                     &error));
    return transcript;
}

struct asked {
    int times, ends_at;
};

static bool is_enough(void *context)
{
    struct asked *asked = context;
    return ++asked->times == asked->ends_at;
}

/* Each asks once before its step, and again within. */
static void cancels_within_calls_of_the_host(void **state)
{
    (void)state;
    enum { LARGE = 1 << 16 };
    struct asked asked = {0, 0};
    const struct healcl_queue_options options = {.cancelled = is_enough,
                                                 .cancelled_context = &asked};
    struct healcl_queue *queue = NULL;
    OK(healcl_queue_open_with(NULL, &options, &queue, &error));
    struct healcl_tensor *a = create_tensor(queue, 4, (int64_t[]){1, 1, 1, LARGE}, NULL);
    struct healcl_tensor *table = create_tensor(queue, 2, (int64_t[]){1, LARGE}, NULL);
    struct healcl_tensor *one = create_tensor(queue, 1, (int64_t[]){1}, (int64_t[]){1});
    struct healcl_tensor *q = create_tensor(queue, 1, (int64_t[]){LARGE}, NULL);
    struct healcl_tensor *sum = create_tensor(queue, 3, (int64_t[]){1, 1, LARGE}, NULL);
    struct healcl_tensor *digits = create_tensor(queue, 5, (int64_t[]){1, 1, 1, LARGE, 2}, NULL);
    struct healcl_tensor *index = create_tensor(queue, 4, (int64_t[]){1, 1, 1, LARGE}, NULL);
#define ENDS(...)                                                     \
    do {                                                              \
        asked = (struct asked){0, 2};                                 \
        assert_int_equal(CALL(queue, __VA_ARGS__), HEALCL_CANCELLED); \
        asked = (struct asked){0, 0};                                 \
        OK(CALL(queue, __VA_ARGS__));                                 \
    } while (0)
    ENDS("set_const_val", NULL, TENSOR(a), INT(1));
    ENDS("modmul", NULL, TENSOR(a), TENSOR(a), INT(97), TENSOR(a));
    ENDS("take_along_axis", NULL, TENSOR(a), TENSOR(index), INT(3), TENSOR(a));
    OK(CALL(queue, "set_const_val", NULL, TENSOR(q), INT(97)));
    ENDS("axis_modsum", NULL, TENSOR(a), INT(0), TENSOR(q), TENSOR(sum));
    ENDS("apply_g_decomp", NULL, TENSOR(a), INT(2), INT(4), TENSOR(digits));
    const struct healcl_argument none = healcl_no_argument();
    ENDS("ntt", NULL, TENSOR(a), INT(-1), none, none, TENSOR(one), none, none, TENSOR(table),
         TENSOR(a), INT(0), INT(1));
#undef ENDS
    struct healcl_tensor *const all[] = {a, table, one, q, sum, digits, index};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        healcl_tensor_release(all[i]);
    healcl_queue_close(queue);
}

static void cancels_runs_on(struct healcl_device *on)
{
    struct script script = {0};
    struct healcl_transcript *transcript = open_transcript(&script);
    struct healcl_report *report = NULL;
    struct asked asked = {0, 0};
    struct healcl_run_options options = {.observer = {.context = &asked, .cancelled = is_enough}};
    OK(healcl_run(transcript, on, &options, &report, &error));
    healcl_report_free(report);
    report = NULL;
    assert_true(asked.times > 2);
    asked = (struct asked){0, 2};
    assert_int_equal(healcl_run(transcript, on, &options, &report, &error), HEALCL_CANCELLED);
    assert_string_equal(error.message, "cancelled");
    assert_null(report);
    assert_int_equal(asked.times, 2);
    healcl_transcript_close(transcript);
    script_release(&script);
}
ON_BOTH(cancels_runs)

/* ---------------------------------------------------------------- transcripts */

static void sessions_keep_transcripts_on(struct healcl_device *on)
{
    struct script script = {0};
    struct healcl_transcript *transcript = open_transcript(&script);
    struct healcl_session *sessions[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++)
        OK(healcl_session_open(transcript, on, NULL, &sessions[i], &error));
    healcl_transcript_close(transcript);
    for (int i = 0; i < 2; i++) {
        int64_t got[ELEMENTS];
        OK(healcl_session_run(sessions[i], &error));
        OK(healcl_session_read(sessions[i], 0, got, sizeof got, &error));
        assert_int_equal(got[0], 1);
        assert_int_equal(got[3], 0);
        healcl_session_close(sessions[i]);
    }
    script_release(&script);
}
ON_BOTH(sessions_keep_transcripts)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outlives_its_queue),
        cmocka_unit_test(releases_from_threads),
        cmocka_unit_test(calls_wait),
        cmocka_unit_test(polls),
        cmocka_unit_test(cancels_calls),
        cmocka_unit_test(cancels_runs),
        cmocka_unit_test(cancels_within_calls_of_the_host),
        cmocka_unit_test(sessions_keep_transcripts),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
