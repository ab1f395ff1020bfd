/* Requests together by healcl_batcher_run: a request that is refused fails alone, batches that do
 * not fit get smaller, and what is left over runs too. On the device and on the host reference. */
#include "helper_one_device.h"

#include <string.h>

#include "helper_script.h"
#include "run/loaded_transcript.h"

enum { ELEMENTS = 6, REQUESTS = 11 };

/* out[i] = table[index[i]] + shift[i]; index and shift come with requests. sum does not depend on
 * them. */
static struct healcl_transcript *open_lookup(struct script *script,
                                             const struct healcl_plan_options *options)
{
    static const int64_t table[] = {10, 11, 12, 13, 14, 15}, zeros[ELEMENTS];
    const struct layout shape = layout_of_shape(1, (int64_t[]){ELEMENTS});
    struct healcl_transcript *transcript = NULL;
    script_upload(script, "table", DTYPE_INT64, 1, shape.shape, table);
    writer_declare(&script->writer, "index", DTYPE_INT64, &shape);
    script_upload(script, "shift", DTYPE_INT64, 1, shape.shape, zeros);
    script_call(script, "out", "empty", "(6,) :int64");
    script_call(script, "out", "take_along_axis", "table index 0 out");
    script_call(script, "out", "modsum", "out shift 1000003 out");
    script_download(script, "out");
    script_call(script, "sum", "empty", "(6,) :int64");
    script_call(script, "sum", "modsum", "table table 1000003 sum");
    script_download(script, "sum");
    script_finish(script);
    OK(healcl_transcript_open_memory(script->writer.bytes, script->writer.length, options,
                                     &transcript, &error));
    return transcript;
}

/* The data and results of requests; those of number refused have an index out of range. */
struct lookups {
    int64_t index[REQUESTS][ELEMENTS], shift[REQUESTS][ELEMENTS];
    int64_t out[REQUESTS][ELEMENTS], sum[REQUESTS][ELEMENTS];
    const void *inputs[REQUESTS][2];
    void *results[REQUESTS][2];
    struct healcl_request requests[REQUESTS];
};

static void prepare(struct lookups *lookups, size_t refused)
{
    memset(lookups, 0, sizeof *lookups);
    for (size_t i = 0; i < REQUESTS; i++) {
        for (size_t j = 0; j < ELEMENTS; j++) {
            lookups->index[i][j] = (int64_t)((i + j) % ELEMENTS);
            lookups->shift[i][j] = (int64_t)(100 * i);
        }
        lookups->index[i][4] = i == refused ? 77 : lookups->index[i][4];
        lookups->inputs[i][0] = lookups->index[i];
        lookups->inputs[i][1] = lookups->shift[i];
        lookups->results[i][0] = lookups->out[i];
        lookups->results[i][1] = lookups->sum[i];
        lookups->requests[i] =
            (struct healcl_request){.inputs = lookups->inputs[i], .results = lookups->results[i]};
    }
}

static void expect_results(const struct lookups *lookups, size_t count, size_t refused)
{
    for (size_t i = 0; i < count; i++) {
        const struct healcl_request *request = &lookups->requests[i];
        if (i == refused) {
            assert_int_equal(request->status, HEALCL_REFUSED);
            assert_int_equal(request->error.cause, HEALCL_CAUSE_DATA);
            assert_non_null(strstr(request->error.message, "take_along_axis"));
            continue;
        }
        assert_int_equal(request->status, HEALCL_OK);
        assert_true(request->nanoseconds > 0);
        for (size_t j = 0; j < ELEMENTS; j++) {
            assert_int_equal(lookups->out[i][j], 10 + (int64_t)((i + j) % ELEMENTS + 100 * i));
            assert_int_equal(lookups->sum[i][j], 2 * (10 + (int64_t)j));
        }
    }
}

static struct healcl_batcher *open_batcher(const struct healcl_transcript *transcript,
                                           struct healcl_device *on, size_t batch,
                                           uint64_t memory_bytes)
{
    static const size_t inputs[] = {1, 2};
    const struct healcl_batcher_options options = {
        .batch = batch, .inputs = inputs, .input_count = 2, .memory_bytes = memory_bytes};
    struct healcl_batcher *batcher = NULL;
    OK(healcl_batcher_open(transcript, on, &options, &batcher, &error));
    return batcher;
}

static void batches_on(struct healcl_device *on)
{
    struct script script = {0};
    struct lookups lookups;
    struct healcl_transcript *transcript = open_lookup(&script, NULL);
    struct healcl_batcher *batcher = open_batcher(transcript, on, 4, 0);
    healcl_transcript_close(transcript); /* the batcher keeps it */
    prepare(&lookups, REQUESTS);
    OK(healcl_batcher_run(batcher, lookups.requests, REQUESTS, &error)); /* 4, 4 and 3 */
    expect_results(&lookups, REQUESTS, REQUESTS);
    struct healcl_batcher_facts facts = healcl_batcher_facts(batcher);
    assert_int_equal(facts.batch, 4);
    assert_int_equal(facts.runs, 3);
    assert_int_equal(facts.requests_together, REQUESTS);
    assert_int_equal(facts.requests_alone, 0);
    prepare(&lookups, REQUESTS);
    OK(healcl_batcher_run(batcher, lookups.requests, 5, &error)); /* 4 and 1 */
    expect_results(&lookups, 5, REQUESTS);
    facts = healcl_batcher_facts(batcher);
    assert_int_equal(facts.requests_together, REQUESTS + 4);
    assert_int_equal(facts.requests_alone, 1);
    healcl_batcher_close(batcher);
    script_release(&script);
}
ON_BOTH(batches)

static void refused_alone_on(struct healcl_device *on)
{
    struct script script = {0};
    struct healcl_transcript *transcript = open_lookup(&script, NULL);
    struct healcl_batcher *batcher = open_batcher(transcript, on, 4, 0);
    for (size_t refused = 0; refused < 6; refused++) {
        struct lookups lookups;
        prepare(&lookups, refused);
        OK(healcl_batcher_run(batcher, lookups.requests, 6, &error)); /* 4 and 2 */
        expect_results(&lookups, 6, refused);
        healcl_error_clear(&lookups.requests[refused].error);
    }
    assert_int_equal(healcl_batcher_facts(batcher).requests_together, 4 * 2 + 2 * 4);
    healcl_batcher_close(batcher);
    healcl_transcript_close(transcript);
    script_release(&script);
}
ON_BOTH(refused_alone)

/* One more request takes index, shift and out, each of 48 bytes. */
static void smaller_on(struct healcl_device *on)
{
    struct script script = {0};
    struct lookups lookups;
    struct healcl_transcript *transcript = open_lookup(&script, NULL);
    struct healcl_batcher *batcher = open_batcher(transcript, on, 8, 0);
    const uint64_t eight = healcl_batcher_facts(batcher).memory_bytes;
    healcl_batcher_close(batcher);
    const uint64_t each = 3 * ELEMENTS * sizeof(int64_t);
    for (uint64_t fewer = 1; fewer < 8; fewer++) {
        batcher = open_batcher(transcript, on, 8, eight - fewer * each);
        assert_int_equal(healcl_batcher_facts(batcher).batch, 8 - fewer);
        assert_int_equal(healcl_batcher_facts(batcher).memory_bytes, eight - fewer * each);
        prepare(&lookups, REQUESTS);
        OK(healcl_batcher_run(batcher, lookups.requests, REQUESTS, &error));
        expect_results(&lookups, REQUESTS, REQUESTS);
        healcl_batcher_close(batcher);
    }
    const struct healcl_batcher_options options = {
        .batch = 8, .inputs = (size_t[]){1, 2}, .input_count = 2, .memory_bytes = each};
    assert_int_equal(healcl_batcher_open(transcript, on, &options, &batcher, &error),
                     HEALCL_REFUSED);
    assert_int_equal(error.cause, HEALCL_CAUSE_LIMIT);
    healcl_transcript_close(transcript);
    script_release(&script);
}
ON_BOTH(smaller)

static void expect_usage(const struct healcl_transcript *transcript,
                         struct healcl_batcher_options options, const char *message)
{
    struct healcl_batcher *batcher = NULL;
    assert_int_equal(healcl_batcher_open(transcript, NULL, &options, &batcher, &error),
                     HEALCL_USAGE);
    assert_string_equal(error.message, message);
}

static void usage(void **state)
{
    (void)state;
    struct script script = {0};
    struct healcl_transcript *transcript = open_lookup(&script, NULL);
    const size_t input = 3;
    expect_usage(transcript, (struct healcl_batcher_options){.batch = 0},
                 "a batch has at least 1 request, not 0");
    expect_usage(transcript,
                 (struct healcl_batcher_options){.batch = 2, .inputs = &input, .input_count = 1},
                 "there is no input 3: the number of inputs is 3");
    expect_usage(transcript, (struct healcl_batcher_options){.batch = 2, .input_count = 1},
                 "options->inputs is NULL");
    expect_usage(NULL, (struct healcl_batcher_options){.batch = 2}, "transcript is NULL");
    healcl_transcript_close(transcript);
    script_release(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(batches),
        DEVICE_TEST(refused_alone),
        DEVICE_TEST(smaller),
        DEVICE_TEST(usage),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
