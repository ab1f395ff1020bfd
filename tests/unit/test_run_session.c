/* Sessions: request inputs, data that stay on the device, single segments, the background, several
 * threads. Each on the device and on the host reference. */
#include "helper_one_device.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "helper_script.h"
#include "run/loaded_transcript.h"

enum { ROWS = 64, ELEMENTS = 2 * ROWS };

static const int64_t moduli[2] = {97, INT64_C(4611686018427387847)};

static struct healcl_transcript *open_script(struct script *script)
{
    struct healcl_transcript *transcript = NULL;
    script_finish(script);
    OK(healcl_transcript_open_memory(script->writer.bytes, script->writer.length, NULL, &transcript,
                                     &error));
    return transcript;
}

static void fill(int64_t seed, int64_t values[ELEMENTS])
{
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = (int64_t)(UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(seed * ELEMENTS + i + 1));
}

static int64_t modmul(int64_t a, int64_t b, int64_t q)
{
    __extension__ typedef __int128 wide;
    return (int64_t)((wide)a * b % q); /* as C does it */
}

/* keys: q and w. model: out = x * w mod q, x without data. after: w is written to. */
static struct healcl_transcript *open_model(struct script *script)
{
    int64_t w[ELEMENTS];
    fill(1, w);
    script_segment_start(script, "keys");
    script_upload(script, "q", DTYPE_INT64, 1, (int64_t[]){2}, moduli);
    script_upload(script, "w", DTYPE_INT64, 2, (int64_t[]){ROWS, 2}, w);
    script_segment_end(script);
    script_segment_start(script, "model");
    const struct layout shape = layout_of_shape(2, (int64_t[]){ROWS, 2});
    writer_declare(&script->writer, "x", DTYPE_INT64, &shape);
    script_call(script, "out", "empty", "(64,2) :int64");
    script_call(script, "out", "_modmul_ttt", "x w q out");
    script_free(script, "x");
    script_download(script, "out");
    script_segment_end(script);
    script_segment_start(script, "after");
    script_call(script, "out", "_modsum_ttt", "out out q out");
    script_download(script, "out");
    script_segment_end(script);
    return open_script(script);
}

static void expect_product(struct healcl_session *session, size_t result, const int64_t *x)
{
    int64_t w[ELEMENTS], got[ELEMENTS];
    fill(1, w);
    OK(healcl_session_read(session, result, got, sizeof got, &error));
    for (int i = 0; i < ELEMENTS; i++) {
        int64_t product = modmul(x[i], w[i], moduli[i % 2]);
        int64_t expected = result == 0 ? product : modmul(product, 2, moduli[i % 2]);
        assert_int_equal(got[i], expected);
    }
}

static void lists_tensors(void **state)
{
    (void)state;
    struct script script = {0};
    struct healcl_transcript *transcript = open_model(&script);
    size_t inputs = 9, results = 9;
    const struct healcl_tensor_info *input = healcl_transcript_inputs(transcript, &inputs);
    const struct healcl_tensor_info *result = healcl_transcript_results(transcript, &results);
    assert_int_equal(inputs, 3);
    assert_int_equal(results, 2);
    assert_string_equal(input[2].name, "\"x\"");
    assert_int_equal(input[2].segment, 1);
    assert_int_equal(input[2].entry, 5);
    assert_int_equal(input[2].dtype, HEALCL_INT64);
    assert_int_equal(input[2].rank, 2);
    assert_int_equal(input[2].shape[0], ROWS);
    assert_int_equal(input[2].bytes, ELEMENTS * 8);
    assert_true(input[0].has_data && input[1].has_data && !input[2].has_data);
    assert_string_equal(result[1].name, "\"out\"");
    assert_int_equal(result[1].segment, 2);
    assert_int_equal(healcl_transcript_segment_count(transcript), 3);
    assert_string_equal(healcl_transcript_segment_name(transcript, 1), "model");
    assert_null(healcl_transcript_segment_name(transcript, 3));
    healcl_transcript_close(transcript);
    script_release(&script);
}

static void binds_inputs_on(struct healcl_device *on)
{
    struct script script = {0};
    struct healcl_transcript *transcript = open_model(&script);
    struct healcl_session *session = NULL;
    int64_t x[ELEMENTS];
    OK(healcl_session_open(transcript, on, NULL, &session, &error));
    assert_int_equal(healcl_session_run(session, &error), HEALCL_REFUSED);
    assert_string_equal(error.message,
                        "entry 5 (host_to_device): it has a dtype and a shape, but no data: the "
                        "run must be given its data");
    OK(healcl_session_bind(session, 2, x, &error));
    for (int64_t seed = 2; seed < 6; seed++) {
        fill(seed, x);
        OK(healcl_session_run(session, &error));
        expect_product(session, 0, x);
        expect_product(session, 1, x);
        /* Keys go up once. */
        uint64_t keys = seed == 2 ? sizeof moduli + sizeof x : 0;
        assert_int_equal(healcl_session_facts(session).bytes_uploaded, sizeof x + keys);
        assert_int_equal(healcl_session_facts(session).runs, seed - 1);
    }
    OK(healcl_session_bind(session, 2, NULL, &error));
    assert_int_equal(healcl_session_run(session, &error), HEALCL_REFUSED);
    OK(healcl_session_bind(session, 2, x, &error)); /* after an error all is uploaded again */
    OK(healcl_session_run(session, &error));
    expect_product(session, 1, x);
    assert_int_equal(healcl_session_facts(session).bytes_uploaded, sizeof moduli + 2 * sizeof x);
    /* Other weights, and those of the file again. */
    int64_t w[ELEMENTS], ones[ELEMENTS], got[ELEMENTS];
    fill(1, w);
    for (int i = 0; i < ELEMENTS; i++)
        ones[i] = 1;
    OK(healcl_session_bind(session, 1, ones, &error));
    OK(healcl_session_run(session, &error));
    OK(healcl_session_read(session, 0, got, sizeof got, &error));
    for (int i = 0; i < ELEMENTS; i++)
        assert_int_equal(got[i], modmul(x[i], 1, moduli[i % 2]));
    OK(healcl_session_bind(session, 1, NULL, &error));
    OK(healcl_session_keep(session, 1, false, &error));
    for (int i = 0; i < 2; i++) {
        OK(healcl_session_run(session, &error));
        expect_product(session, 1, x);
        assert_int_equal(healcl_session_facts(session).bytes_uploaded, 2 * sizeof x);
    }
    OK(healcl_session_keep(session, 1, true, &error));
    OK(healcl_session_run(session, &error));
    OK(healcl_session_run(session, &error));
    expect_product(session, 1, x);
    assert_int_equal(healcl_session_facts(session).bytes_uploaded, sizeof x);
    healcl_session_close(session);
    OK(healcl_session_open(transcript, on, &(struct healcl_session_options){.keep_nothing = true},
                           &session, &error));
    OK(healcl_session_bind(session, 2, x, &error));
    for (int i = 0; i < 2; i++) {
        OK(healcl_session_run(session, &error));
        assert_int_equal(healcl_session_facts(session).bytes_uploaded,
                         sizeof moduli + 2 * sizeof x);
    }
    healcl_session_close(session);
    healcl_transcript_close(transcript);
    script_release(&script);
}
ON_BOTH(binds_inputs)

static void runs_segments_on(struct healcl_device *on)
{
    struct script script = {0};
    struct healcl_transcript *transcript = open_model(&script);
    struct healcl_session *session = NULL;
    int64_t x[ELEMENTS], got[ELEMENTS];
    const void *mapped = NULL;
    OK(healcl_session_open(transcript, on, NULL, &session, &error));
    OK(healcl_session_bind(session, 2, x, &error));
    assert_int_equal(healcl_session_run_segments(session, 1, 1, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "segment 1 cannot run before segment 0");
    assert_int_equal(healcl_session_run_segments(session, 0, 4, &error), HEALCL_USAGE);
    assert_int_equal(healcl_session_run_segments(session, 4, 0, &error), HEALCL_USAGE);
    assert_int_equal(healcl_session_run_segments(session, 1, SIZE_MAX, &error), HEALCL_USAGE);
    OK(healcl_session_run_segments(session, 0, 1, &error));
    assert_int_equal(healcl_session_map(session, 0, &mapped, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "result 0 is not available: its segment has not run");
    for (int64_t seed = 2; seed < 5; seed++) { /* the same two segments, with resident keys */
        fill(seed, x);
        OK(healcl_session_run_segments(session, 1, 1, &error));
        expect_product(session, 0, x);
        assert_int_equal(healcl_session_facts(session).bytes_uploaded, sizeof x);
        assert_int_equal(healcl_session_map(session, 1, &mapped, &error), HEALCL_USAGE);
    }
    OK(healcl_session_run_segments(session, 2, 1, &error));
    expect_product(session, 0, x);
    expect_product(session, 1, x);
    /* The last segment has written to what the one before it has made. */
    assert_int_equal(healcl_session_run_segments(session, 2, 1, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "segment 2 cannot run again on its own: segment 2 has "
                                       "written to a tensor of an earlier segment");
    OK(healcl_session_receive(session, 1, got, &error));
    fill(7, x);
    OK(healcl_session_run_segments(session, 1, 2, &error));
    expect_product(session, 1, x);
    OK(healcl_session_map(session, 1, &mapped, &error));
    assert_ptr_equal(mapped, got);
    OK(healcl_session_receive(session, 1, NULL, &error));
    OK(healcl_session_run(session, &error));
    OK(healcl_session_map(session, 1, &mapped, &error));
    assert_ptr_not_equal(mapped, got);
    assert_memory_equal(mapped, got, sizeof got);
    healcl_session_close(session);
    healcl_transcript_close(transcript);
    script_release(&script);
}
ON_BOTH(runs_segments)

/* Then nothing stays on the device, and segments run in their order alone. */
static void runs_what_no_allocation_holds(void **state)
{
    (void)state;
    struct script script = {0};
    struct healcl_transcript *transcript = open_model(&script);
    struct healcl_session *session = NULL;
    const uint64_t most = device->info.max_allocation_bytes;
    int64_t x[ELEMENTS];
    device->info.max_allocation_bytes = sizeof x / 2 + 100;
    OK(healcl_session_open(transcript, device, NULL, &session, &error));
    OK(healcl_session_bind(session, 2, x, &error));
    OK(healcl_session_keep(session, 1, true, &error));
    for (int64_t seed = 2; seed < 5; seed++) {
        fill(seed, x);
        OK(healcl_session_run(session, &error));
        expect_product(session, 0, x);
        expect_product(session, 1, x);
    }
    assert_int_equal(healcl_session_facts(session).fallbacks, 0);
    assert_int_equal(healcl_session_run_segments(session, 1, 1, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "segment 1 cannot run again on its own: a tensor is larger "
                                       "than one allocation");
    for (size_t s = 0; s < 3; s++)
        OK(healcl_session_run_segments(session, s, 1, &error));
    expect_product(session, 1, x);
    device->info.max_allocation_bytes = most;
    healcl_session_close(session);
    healcl_transcript_close(transcript);
    script_release(&script);
}

/* An upload that is written to is repeated; an upload that is freed is back in the next run. */
static void uploads_what_is_written_on(struct healcl_device *on)
{
    struct script script = {0};
    struct healcl_session *session = NULL;
    int64_t x[ELEMENTS], got[ELEMENTS];
    fill(3, x);
    script_upload(&script, "q", DTYPE_INT64, 1, (int64_t[]){2}, moduli);
    script_upload(&script, "x", DTYPE_INT64, 2, (int64_t[]){ROWS, 2}, x);
    script_call(&script, "x", "_modmul_ttt", "x x q x");
    script_free(&script, "q");
    script_download(&script, "x");
    struct healcl_transcript *transcript = open_script(&script);
    OK(healcl_session_open(transcript, on, NULL, &session, &error));
    OK(healcl_session_keep(session, 1, true, &error));
    for (int i = 0; i < 3; i++) {
        OK(healcl_session_run(session, &error));
        OK(healcl_session_read(session, 0, got, sizeof got, &error));
        for (int e = 0; e < ELEMENTS; e++)
            assert_int_equal(got[e], modmul(x[e], x[e], moduli[e % 2]));
        assert_int_equal(healcl_session_facts(session).bytes_uploaded,
                         sizeof x + (i == 0 ? sizeof moduli : 0));
    }
    healcl_session_close(session);
    healcl_transcript_close(transcript);
    script_release(&script);
}
ON_BOTH(uploads_what_is_written)

/* Every bundled transcript, twice: resident data do not change results. */
static void repeats_transcripts_on(struct healcl_device *on)
{
    DIR *folder = opendir(TRANSCRIPTS);
    int files = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[1024];
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 5, ".json") != 0)
            continue;
        struct healcl_transcript *transcript = NULL;
        struct healcl_session *session = NULL;
        snprintf(path, sizeof path, "%s/%s", TRANSCRIPTS, entry->d_name);
        OK(healcl_transcript_open(path, NULL, &transcript, &error));
        OK(healcl_session_open(transcript, on, NULL, &session, &error));
        size_t results = 0;
        const struct healcl_tensor_info *info = healcl_transcript_results(transcript, &results);
        for (int run = 0; run < 2; run++) {
            OK(healcl_session_run(session, &error));
            for (size_t i = 0; i < results; i++) {
                uint64_t different = 1;
                if (!info[i].has_data)
                    continue;
                OK(healcl_session_compare(session, i, &different, &error));
                assert_int_equal(different, 0);
            }
        }
        files++;
        healcl_session_close(session);
        healcl_transcript_close(transcript);
    }
    closedir(folder);
    assert_true(files > 10);
}
ON_BOTH(repeats_transcripts)

/* ---------------------------------------------------------------- results */

/* Rows of x that idx names, twice: the first segment hands out x, the second one x again and then
 * what is refused where idx is out of range. */
static struct healcl_transcript *open_gather(struct script *script)
{
    const struct layout indices = layout_of_shape(2, (int64_t[]){ROWS, 2});
    int64_t x[ELEMENTS];
    fill(4, x);
    script_segment_start(script, "good");
    script_upload(script, "x", DTYPE_INT64, 2, (int64_t[]){ROWS, 2}, x);
    script_download(script, "x");
    script_segment_end(script);
    script_segment_start(script, "perhaps");
    script_download(script, "x");
    writer_declare(&script->writer, "idx", DTYPE_INT64, &indices);
    script_call(script, "y", "empty", "(64,2) :int64");
    script_call(script, "y", "take_along_axis", "x idx 0 y");
    script_download(script, "y");
    script_segment_end(script);
    return open_script(script);
}

static void expect_obstacle(struct healcl_session *session, size_t result, const char *lack)
{
    const void *data = NULL;
    int64_t got[ELEMENTS];
    char message[160];
    snprintf(message, sizeof message, "result %zu is not available: %s", result, lack);
    assert_int_equal(healcl_session_map(session, result, &data, &error), HEALCL_USAGE);
    assert_string_equal(error.message, message);
    assert_int_equal(healcl_session_read(session, result, got, sizeof got, &error), HEALCL_USAGE);
    assert_string_equal(error.message, message);
}

static void expect_all_readable(struct healcl_session *session)
{
    int64_t got[ELEMENTS];
    for (size_t i = 0; i < 3; i++)
        OK(healcl_session_read(session, i, got, sizeof got, &error));
}

/* Results that a failing run has delivered before are as unreadable as the rest. */
static void forgets_failed_runs_on(struct healcl_device *on)
{
    static int64_t good[ELEMENTS], bad[ELEMENTS] = {[5] = ROWS};
    struct script script = {0};
    struct healcl_session *session = NULL;
    struct healcl_transcript *transcript = open_gather(&script);
    OK(healcl_session_open(transcript, on, NULL, &session, &error));
    for (int i = 0; i < 3; i++) {
        /* whole, the second segment alone, in the background */
        OK(healcl_session_bind(session, 1, good, &error));
        OK(healcl_session_run(session, &error));
        expect_all_readable(session);
        OK(healcl_session_bind(session, 1, bad, &error));
        if (i == 2)
            OK(healcl_session_start(session, 0, 2, NULL, NULL, &error));
        enum healcl_status status = i == 0   ? healcl_session_run(session, &error)
                                    : i == 1 ? healcl_session_run_segments(session, 1, 1, &error)
                                             : healcl_session_wait(session, &error);
        assert_int_equal(status, HEALCL_REFUSED);
        for (size_t r = 0; r < 3; r++)
            expect_obstacle(session, r, "the last run failed");
    }
    /* A mistake in a call changes nothing. */
    OK(healcl_session_bind(session, 1, good, &error));
    OK(healcl_session_run(session, &error));
    assert_int_equal(healcl_session_run_segments(session, 0, 3, &error), HEALCL_USAGE);
    expect_all_readable(session);
    OK(healcl_session_run_segments(session, 0, 1, &error));
    expect_obstacle(session, 1, "its segment has not run");
    healcl_session_close(session);
    healcl_transcript_close(transcript);
    script_release(&script);
}
ON_BOTH(forgets_failed_runs)

/* The destination of results from the next run on does not change this one's. */
static void keeps_results_where_they_are_on(struct healcl_device *on)
{
    static const char given_back[] = "the session no longer has the memory that received it";
    struct script script = {0};
    struct healcl_session *session = NULL;
    struct healcl_transcript *transcript = open_model(&script);
    int64_t x[ELEMENTS], first[ELEMENTS], second[ELEMENTS];
    const void *own = NULL, *mapped = NULL;
    fill(2, x);
    OK(healcl_session_open(transcript, on, NULL, &session, &error));
    OK(healcl_session_bind(session, 2, x, &error));
    OK(healcl_session_receive(session, 0, first, &error));
    expect_obstacle(session, 0, "its segment has not run");
    OK(healcl_session_receive(session, 0, NULL, &error));
    expect_obstacle(session, 0, "its segment has not run");
    OK(healcl_session_run(session, &error));
    OK(healcl_session_map(session, 0, &own, &error));
    OK(healcl_session_receive(session, 0, first, &error));
    OK(healcl_session_receive(session, 0, second, &error));
    OK(healcl_session_map(session, 0, &mapped, &error));
    assert_ptr_equal(mapped, own);
    expect_product(session, 0, x);
    OK(healcl_session_run(session, &error));
    OK(healcl_session_receive(session, 0, second, &error)); /* again */
    OK(healcl_session_map(session, 0, &mapped, &error));
    assert_ptr_equal(mapped, second);
    expect_product(session, 0, x);
    OK(healcl_session_receive(session, 0, first, &error)); /* second may be gone by now */
    expect_obstacle(session, 0, given_back);
    OK(healcl_session_receive(session, 0, second, &error));
    expect_obstacle(session, 0, given_back);
    expect_product(session, 1, x);
    OK(healcl_session_run(session, &error));
    expect_product(session, 0, x);
    healcl_session_close(session);
    healcl_transcript_close(transcript);
    script_release(&script);
}
ON_BOTH(keeps_results_where_they_are)

/* ---------------------------------------------------------------- the background */

struct heard {
    struct healcl_session *session;
    enum healcl_status status;
    int64_t first;
    int calls;
};

static void hear(void *context, enum healcl_status status)
{
    struct heard *heard = context;
    const void *data = NULL;
    heard->calls++;
    heard->status = status;
    if (status == HEALCL_OK && healcl_session_map(heard->session, 0, &data, NULL) == HEALCL_OK)
        memcpy(&heard->first, data, sizeof heard->first);
}

static void runs_in_background_on(struct healcl_device *on)
{
    struct script script = {0};
    struct healcl_transcript *transcript = open_model(&script);
    struct healcl_session *session = NULL;
    int64_t x[ELEMENTS], w[ELEMENTS];
    OK(healcl_session_open(transcript, on, NULL, &session, &error));
    fill(1, w);
    assert_true(healcl_session_poll(session));
    assert_int_equal(healcl_session_wait(session, &error), HEALCL_USAGE);
    OK(healcl_session_bind(session, 2, x, &error));
    for (int64_t seed = 2; seed < 5; seed++) {
        struct heard heard = {.session = session};
        fill(seed, x);
        OK(healcl_session_start(session, 0, 3, hear, &heard, &error));
        assert_int_equal(healcl_session_start(session, 0, 3, NULL, NULL, &error), HEALCL_USAGE);
        while (!healcl_session_poll(session))
            ;
        OK(healcl_session_wait(session, &error));
        assert_int_equal(heard.calls, 1);
        assert_int_equal(heard.status, HEALCL_OK);
        assert_int_equal(heard.first, modmul(x[0], w[0], moduli[0]));
        expect_product(session, 1, x);
    }
    OK(healcl_session_bind(session, 2, NULL, &error));
    OK(healcl_session_start(session, 0, 3, NULL, NULL, &error));
    assert_int_equal(healcl_session_wait(session, &error), HEALCL_REFUSED);
    assert_non_null(strstr(error.message, "no data"));
    OK(healcl_session_start(session, 0, 1, NULL, NULL, &error));
    healcl_session_close(session); /* waits */
    healcl_transcript_close(transcript);
    script_release(&script);
}
ON_BOTH(runs_in_background)

static void cancels_on(struct healcl_device *on)
{
    struct script script = {0};
    struct healcl_session *session = NULL;
    int64_t x[ELEMENTS];
    fill(3, x);
    script_upload(&script, "x", DTYPE_INT64, 2, (int64_t[]){ROWS, 2}, x);
    for (int i = 0; i < 3000; i++)
        script_call(&script, "x", "_modmul_ttc", "x x 97 x");
    script_download(&script, "x");
    struct healcl_transcript *transcript = open_script(&script);
    OK(healcl_session_open(transcript, on, NULL, &session, &error));
    healcl_session_cancel(session); /* nothing runs */
    OK(healcl_session_run(session, &error));
    bool cancelled = false;
    for (int i = 0; i < 100 && !cancelled; i++) {
        OK(healcl_session_start(session, 0, 1, NULL, NULL, &error));
        healcl_session_cancel(session);
        enum healcl_status status = healcl_session_wait(session, &error);
        cancelled = status == HEALCL_CANCELLED;
        assert_true(cancelled || status == HEALCL_OK);
    }
    assert_true(cancelled);
    assert_string_equal(error.message, "cancelled");
    OK(healcl_session_run(session, &error));
    healcl_session_close(session);
    healcl_transcript_close(transcript);
    script_release(&script);
}
ON_BOTH(cancels)

static atomic_int asked;

static cl_int CL_API_CALL runs_forever(cl_event event, cl_event_info what, size_t size, void *value,
                                       size_t *needed)
{
    cl_int code = clGetEventInfo(event, what, size, value, needed);
    if (what == CL_EVENT_COMMAND_EXECUTION_STATUS) {
        *(cl_int *)value = CL_RUNNING;
        asked++;
    }
    return code;
}

static void cancels_while_the_device_works(void **state)
{
    (void)state;
    struct script script = {0};
    struct healcl_transcript *transcript = open_model(&script);
    struct healcl_session *session = NULL;
    int64_t x[ELEMENTS];
    const struct opencl *before = device->cl;
    struct opencl busy = *before;
    busy.clGetEventInfo = runs_forever;
    device->cl = &busy;
    OK(healcl_session_open(transcript, device, NULL, &session, &error));
    OK(healcl_session_bind(session, 2, x, &error));
    OK(healcl_session_start(session, 0, 3, NULL, NULL, &error));
    while (asked < 100 && !healcl_session_poll(session))
        sched_yield();
    healcl_session_cancel(session);
    assert_int_equal(healcl_session_wait(session, &error), HEALCL_CANCELLED);
    healcl_session_close(session);
    device->cl = before;
    healcl_transcript_close(transcript);
    script_release(&script);
}

/* ---------------------------------------------------------------- threads */

enum { THREADS = 4, SESSIONS = 2, REQUESTS = 12 };

struct client {
    const struct healcl_transcript *transcript;
    struct healcl_device *on;
    int number;
    int wrong;
};

static void *send_requests(void *context)
{
    struct client *client = context;
    struct healcl_session *sessions[SESSIONS] = {NULL};
    struct healcl_error failure = {0};
    int64_t x[ELEMENTS], w[ELEMENTS], got[ELEMENTS];
    fill(1, w);
    for (int s = 0; s < SESSIONS; s++)
        client->wrong += healcl_session_open(client->transcript, client->on, NULL, &sessions[s],
                                             &failure) != HEALCL_OK ||
                         healcl_session_bind(sessions[s], 2, x, &failure) != HEALCL_OK;
    for (int i = 0; i < REQUESTS && client->wrong == 0; i++) {
        struct healcl_session *session = sessions[i % SESSIONS];
        fill(client->number * REQUESTS + i, x);
        client->wrong += healcl_session_run(session, &failure) != HEALCL_OK;
        client->wrong += healcl_session_read(session, 0, got, sizeof got, &failure) != HEALCL_OK;
        for (int e = 0; e < ELEMENTS; e++)
            client->wrong += got[e] != modmul(x[e], w[e], moduli[e % 2]);
    }
    for (int s = 0; s < SESSIONS; s++)
        healcl_session_close(sessions[s]);
    if (client->wrong > 0)
        print_error("%s\n", failure.message);
    healcl_error_clear(&failure);
    return NULL;
}

static void serves_threads_on(struct healcl_device *on)
{
    struct script script = {0};
    struct healcl_transcript *transcript = open_model(&script);
    struct client clients[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        clients[i] = (struct client){transcript, on, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, send_requests, &clients[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(clients[i].wrong, 0);
    }
    healcl_transcript_close(transcript);
    script_release(&script);
}
ON_BOTH(serves_threads)

/* A session goes on where the device's handle was closed. */
static void outlives_the_device(void **state)
{
    (void)state;
    struct script script = {0};
    struct healcl_transcript *transcript = open_model(&script);
    struct healcl_session *session = NULL;
    struct healcl_device *other = NULL;
    int64_t x[ELEMENTS];
    fill(5, x);
    OK(healcl_device_open(NULL, &other, &error));
    OK(healcl_session_open(transcript, other, NULL, &session, &error));
    healcl_device_close(other);
    OK(healcl_session_bind(session, 2, x, &error));
    OK(healcl_session_run(session, &error));
    expect_product(session, 1, x);
    healcl_session_close(session);
    healcl_transcript_close(transcript);
    script_release(&script);
}

/* ---------------------------------------------------------------- wrong arguments */

static void refuses_wrong_arguments(void **state)
{
    (void)state;
    struct script script = {0};
    struct healcl_transcript *transcript = open_model(&script);
    struct healcl_session *session = NULL;
    const void *data = NULL;
    uint64_t different = 0;
    int64_t x[ELEMENTS];
#define USAGE(call) assert_int_equal(call, HEALCL_USAGE)
    OK(healcl_session_open(transcript, NULL, NULL, &session, &error));
    USAGE(healcl_session_bind(session, 3, x, &error));
    assert_string_equal(error.message, "there is no input 3: the number of inputs is 3");
    USAGE(healcl_session_keep(session, 3, true, &error));
    USAGE(healcl_session_receive(session, 2, x, &error));
    USAGE(healcl_session_map(session, 2, &data, &error));
    USAGE(healcl_session_map(session, 0, NULL, &error));
    OK(healcl_session_bind(session, 2, x, &error));
    fill(2, x);
    OK(healcl_session_run(session, &error));
    USAGE(healcl_session_read(session, 0, x, sizeof x - 1, &error));
    assert_string_equal(error.message, "result 0 has 1024 bytes, not 1023");
    USAGE(healcl_session_read(session, 0, NULL, sizeof x, &error));
    USAGE(healcl_session_compare(session, 0, &different, &error));
    assert_string_equal(error.message, "the transcript has no expected tensor for result 0");
    USAGE(healcl_session_compare(session, 0, NULL, &error));
#undef USAGE
    healcl_session_close(session);
    healcl_transcript_close(transcript);
    script_release(&script);
}

/* A transcript that uploads 2 and expects a number is written over what the file has. */
static void write_over(const char *path, int64_t expected)
{
    const struct layout one = layout_of_shape(1, (int64_t[]){1});
    const int64_t two = 2;
    struct writer writer = {0};
    writer_upload(&writer, "a", DTYPE_INT64, &one, false, DTYPE_INT64, &two);
    writer_download(&writer, "a", DTYPE_INT64, &one, &expected);
    assert_non_null(writer_finish(&writer));
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fwrite(writer.bytes, 1, writer.length, file), writer.length);
    assert_int_equal(fclose(file), 0);
    free(writer.bytes);
}

/* Errors from a file that is written to after it was opened blame the file. */
static void names_a_file_that_changes_on(struct healcl_device *on)
{
    char path[] = "/tmp/healcl-test-XXXXXX";
    const struct healcl_run_options unverified = {.no_verify = true};
    struct healcl_transcript *transcript = NULL;
    struct healcl_session *session = NULL;
    struct healcl_report *report = NULL;
    uint64_t different = 0;
    close(mkstemp(path));
    write_over(path, 2);
    OK(healcl_transcript_open(path, NULL, &transcript, &error));
    OK(healcl_session_open(transcript, on, NULL, &session, &error));
    OK(healcl_session_run(session, &error));
    write_over(path, 3);
#define CHANGED(call)                                                        \
    do {                                                                     \
        assert_int_equal(call, HEALCL_REFUSED);                              \
        assert_int_equal(error.cause, HEALCL_CAUSE_FILE);                    \
        assert_non_null(strstr(error.message, "changed while it was read")); \
    } while (0)
    CHANGED(healcl_session_compare(session, 0, &different, &error));
    CHANGED(healcl_run(transcript, on, NULL, &report, &error));
    CHANGED(healcl_run(transcript, on, &unverified, &report, &error));
    OK(healcl_session_run(session, &error)); /* the upload was resident */
    OK(healcl_session_keep(session, 0, false, &error));
    CHANGED(healcl_session_run(session, &error));
    struct healcl_transcript *wide;
    int64_t element;
    assert_int_equal(truncate(path, 0), 0); /* to read what is mapped would end the process */
    CHANGED(healcl_session_run(session, &error));
    CHANGED(healcl_run(transcript, on, &unverified, &report, &error));
    CHANGED(healcl_transcript_read_input(transcript, 0, &element, sizeof element, &error));
    CHANGED(healcl_transcript_read_expected(transcript, 0, &element, sizeof element, &error));
    CHANGED(healcl_transcript_widen(transcript, (size_t[]){0}, 1, 2, &wide, &error));
#undef CHANGED
    write_over(path, 2);
    OK(healcl_run(transcript, on, NULL, &report, &error)); /* nothing differs */
    healcl_report_free(report);
    healcl_session_close(session);
    healcl_transcript_close(transcript);
    unlink(path);
}
ON_BOTH(names_a_file_that_changes)

/* A file that takes its place leaves what is read as it was: it differs. */
static void reads_a_file_that_is_replaced(void **state)
{
    (void)state;
    char path[] = "/tmp/healcl-test-XXXXXX", other[] = "/tmp/healcl-test-XXXXXX";
    struct healcl_transcript *transcript = NULL;
    struct healcl_report *report = NULL;
    close(mkstemp(path));
    close(mkstemp(other));
    write_over(path, 3);
    OK(healcl_transcript_open(path, NULL, &transcript, &error));
    assert_int_equal(rename(other, path), 0);
    OK(healcl_run(transcript, NULL, NULL, &report, &error));
    assert_int_equal(report->verdict, HEALCL_DIFFERS);
    healcl_report_free(report);
    healcl_transcript_close(transcript);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_tensors),
        cmocka_unit_test(binds_inputs),
        cmocka_unit_test(runs_segments),
        cmocka_unit_test(runs_what_no_allocation_holds),
        cmocka_unit_test(uploads_what_is_written),
        cmocka_unit_test(repeats_transcripts),
        cmocka_unit_test(forgets_failed_runs),
        cmocka_unit_test(keeps_results_where_they_are),
        cmocka_unit_test(runs_in_background),
        cmocka_unit_test(cancels),
        cmocka_unit_test(cancels_while_the_device_works),
        cmocka_unit_test(serves_threads),
        cmocka_unit_test(outlives_the_device),
        cmocka_unit_test(refuses_wrong_arguments),
        cmocka_unit_test(names_a_file_that_changes),
        cmocka_unit_test(reads_a_file_that_is_replaced),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
