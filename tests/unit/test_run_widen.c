/* Requests together: results of a widened transcript are those of its requests one after the other,
 * bit for bit, whichever inputs come with a request. Each request has the file's values in another
 * order, so that indices, moduli and permutations stay what they are. */
#include "helper_one_device.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "helper_script.h"
#include "helper_share.h"
#include "run/loaded_transcript.h"
#include "tools/random.h"

enum { BATCH_MOST = 8, INPUTS_MOST = 256, RESULTS_MOST = 512 };

struct requests {
    struct healcl_transcript *transcript;
    const struct healcl_tensor_info *inputs, *results;
    size_t live[INPUTS_MOST], live_count, result_count;
    char *data[INPUTS_MOST];                  /* of each request input, batch requests */
    char *expected[BATCH_MOST][RESULTS_MOST]; /* of each result; all NULL: the request is refused */
    int64_t batch;
};

/* The elements of the file, those of request i turned by 7 i places. */
static char *turned(const struct requests *requests, size_t input)
{
    const struct step *step = requests->transcript->input_steps[input];
    const size_t bytes = requests->inputs[input].bytes;
    const size_t size = dtype_size(step->out->storage->dtype), count = bytes / size;
    char *one = malloc(bytes), *all = malloc(bytes * BATCH_MOST);
    assert_non_null(one);
    assert_non_null(all);
    OK(healcl_transcript_read_input(requests->transcript, input, one, bytes, &error));
    for (size_t request = 0; request < (size_t)requests->batch; request++)
        for (size_t i = 0; i < count; i++)
            memcpy(all + request * bytes + i * size, one + (i + 7 * request) % count * size, size);
    free(one);
    return all;
}

/* One request after the other. */
static void run_alone(struct requests *requests, struct healcl_device *on)
{
    struct healcl_session *session = NULL;
    OK(healcl_session_open(requests->transcript, on, NULL, &session, &error));
    for (size_t request = 0; request < (size_t)requests->batch; request++) {
        for (size_t i = 0; i < requests->live_count; i++)
            OK(healcl_session_bind(
                session, requests->live[i],
                requests->data[i] + request * requests->inputs[requests->live[i]].bytes, &error));
        enum healcl_status status = healcl_session_run(session, &error);
        assert_true(status == HEALCL_OK || status == HEALCL_REFUSED);
        for (size_t i = 0; status == HEALCL_OK && i < requests->result_count; i++) {
            const size_t bytes = requests->results[i].bytes;
            requests->expected[request][i] = malloc(bytes + 1);
            OK(healcl_session_read(session, i, requests->expected[request][i], bytes, &error));
        }
    }
    healcl_session_close(session);
}

static bool one_is_refused(const struct requests *requests)
{
    for (int64_t i = 0; i < requests->batch; i++)
        if (requests->result_count > 0 && !requests->expected[i][0])
            return true;
    return false;
}

/* What the file expects, of request 0, as often as there are requests. */
static void expect_file(const struct requests *requests, const struct healcl_transcript *wide,
                        size_t result, size_t copies)
{
    const size_t bytes = requests->results[result].bytes;
    char *expected = malloc(copies * bytes + 1);
    assert_non_null(expected);
    OK(healcl_transcript_read_expected(wide, result, expected, copies * bytes, &error));
    for (size_t i = 0; i < copies && bytes > 0; i++)
        assert_memory_equal(expected + i * bytes, requests->expected[0][result], bytes);
    free(expected);
}

/* The expected result of one request applies to all, or has a slice for each. */
static void expect_result(const struct requests *requests, struct healcl_session *session,
                          const struct healcl_transcript *wide, size_t result)
{
    size_t count;
    const struct healcl_tensor_info *one = &requests->results[result];
    const struct healcl_tensor_info *all = &healcl_transcript_results(wide, &count)[result];
    const bool is_wide = all->rank > one->rank;
    const void *data;
    assert_int_equal(all->entry, one->entry);
    assert_int_equal(all->bytes, one->bytes * (size_t)(is_wide ? requests->batch : 1));
    if (is_wide)
        assert_int_equal(all->shape[0], requests->batch);
    if (all->has_data)
        expect_file(requests, wide, result, is_wide ? (size_t)requests->batch : 1);
    OK(healcl_session_map(session, result, &data, &error));
    for (size_t i = 0; i < (size_t)requests->batch; i++)
        if (one->bytes > 0)
            assert_memory_equal((const char *)data + (is_wide ? i * one->bytes : 0),
                                requests->expected[i][result], one->bytes);
}

static void run_together(const struct requests *requests, struct healcl_device *on)
{
    struct healcl_transcript *wide = NULL;
    struct healcl_session *session = NULL;
    if (healcl_transcript_widen(requests->transcript, requests->live, requests->live_count,
                                requests->batch, &wide, &error) != HEALCL_OK) {
        assert_int_equal(error.status, HEALCL_REFUSED);
        assert_non_null(strstr(error.message, "entry "));
        assert_non_null(strstr(error.message, ": its rank is too high to add an axis of requests"));
        return;
    }
    OK(healcl_session_open(wide, on, NULL, &session, &error));
    for (size_t i = 0; i < requests->live_count; i++)
        OK(healcl_session_bind(session, requests->live[i], requests->data[i], &error));
    for (int run = 0; run < 2; run++) { /* the second one with resident data */
        enum healcl_status status = healcl_session_run(session, &error);
        if (one_is_refused(requests)) {
            assert_int_equal(status, HEALCL_REFUSED);
            continue;
        }
        OK(status);
        for (size_t i = 0; i < requests->result_count; i++)
            expect_result(requests, session, wide, i);
    }
    healcl_session_close(session);
    healcl_transcript_close(wide);
}

static void run_batch(struct requests *requests, int64_t batch, struct healcl_device *alone_on,
                      struct healcl_device *on)
{
    requests->batch = batch;
    memset(requests->expected, 0, sizeof requests->expected);
    for (size_t i = 0; i < requests->live_count; i++)
        requests->data[i] = turned(requests, requests->live[i]);
    run_alone(requests, alone_on);
    run_together(requests, on);
    for (size_t i = 0; i < requests->live_count; i++)
        free(requests->data[i]);
    for (int64_t i = 0; i < batch; i++)
        for (size_t j = 0; j < requests->result_count; j++)
            free(requests->expected[i][j]);
}

static void open_requests(struct requests *requests, struct healcl_transcript *transcript,
                          size_t *inputs)
{
    requests->transcript = transcript;
    requests->inputs = healcl_transcript_inputs(transcript, inputs);
    requests->results = healcl_transcript_results(transcript, &requests->result_count);
    assert_true(*inputs <= INPUTS_MOST && requests->result_count <= RESULTS_MOST);
}

/* Each input of a transcript alone, and all of them. */
static void run_transcript(struct healcl_transcript *transcript, const int64_t *batches,
                           struct healcl_device *on)
{
    static struct requests requests;
    size_t inputs;
    open_requests(&requests, transcript, &inputs);
    for (; *batches > 0; batches++)
        for (size_t i = 0; i <= inputs; i++) {
            requests.live_count = i < inputs ? 1 : inputs;
            for (size_t j = 0; j < requests.live_count; j++)
                requests.live[j] = i < inputs ? i : j;
            if (requests.live_count > 0)
                run_batch(&requests, *batches, NULL, on);
        }
    healcl_transcript_close(transcript);
}

static void run_file(const char *path, const int64_t *batches, struct healcl_device *on)
{
    struct healcl_transcript *transcript = NULL;
    OK(healcl_transcript_open(path, NULL, &transcript, &error));
    run_transcript(transcript, batches, on);
}

/* All files, or where only a share is asked for some. */
static void run_files(struct healcl_device *on)
{
    static const int64_t all[] = {1, 2, 3, 8, 0}, few[] = {3, 0};
    DIR *folder = opendir(TRANSCRIPTS);
    uint64_t number = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *end = strrchr(entry->d_name, '.');
        char path[512];
        if (!end || strcmp(end, ".json") != 0 || (on && !share_takes("files", number++, 8)))
            continue;
        snprintf(path, sizeof path, TRANSCRIPTS "/%s", entry->d_name);
        run_file(path, share_is_all() ? all : few, on);
    }
    closedir(folder);
}

static void bundled_on_the_reference(void **state)
{
    (void)state;
    run_files(NULL);
}

static void bundled_on_the_device(void **state)
{
    (void)state;
    run_files(device);
}

/* Ciphertexts of the encrypted workloads, together on both; alone on the device. */
static void encrypted_on_both(void **state)
{
    static const char *const files[] = {"sentiment", "sharpen", "hybrid_toy", "digits_toy"};
    (void)state;
    for (size_t i = 0; i < (share_is_all() ? sizeof files / sizeof *files : 0); i++) {
        static struct requests requests;
        struct healcl_transcript *transcript = NULL;
        char path[512];
        size_t inputs;
        snprintf(path, sizeof path, TRANSCRIPTS "/encrypted_%s.json.gz", files[i]);
        OK(healcl_transcript_open(path, NULL, &transcript, &error));
        open_requests(&requests, transcript, &inputs);
        requests.live_count = 0;
        for (size_t input = 0; input < inputs; input++)
            if (strstr(healcl_transcript_segment_name(transcript, requests.inputs[input].segment),
                       "upload_ct"))
                requests.live[requests.live_count++] = input;
        for (int64_t batch = 1; batch <= BATCH_MOST; batch = batch < 3 ? batch + 1 : batch + 5) {
            run_batch(&requests, batch, device, device);
            run_batch(&requests, batch, device, NULL);
        }
        healcl_transcript_close(transcript);
    }
}

/* ---------------------------------------------------------------- sums of products */

static const int64_t moduli[] = {INT64_C(4611686018427387847), 97};

static void upload_random(struct script *script, const char *name, uint32_t rank,
                          const int64_t *shape)
{
    struct random random = {0x35 + rank};
    const struct layout layout = layout_of_shape(rank, shape);
    const int64_t count = layout_elements(&layout);
    int64_t *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = random_between(&random, 0, moduli[0] - 1);
    script_upload(script, name, DTYPE_INT64, rank, shape, values);
    free(values);
}

static void upload_reversal(struct script *script, int64_t n)
{
    int64_t values[1024];
    for (int64_t i = 0; i < n; i++) {
        values[i] = 0;
        for (int64_t bit = 1; bit < n; bit *= 2)
            values[i] = values[i] * 2 + ((i & bit) != 0);
    }
    script_upload(script, "perm", DTYPE_INT64, 1, &n, values);
}

static void run_script(struct script *script, const int64_t *batches)
{
    struct healcl_transcript *transcript = NULL;
    script_finish(script);
    OK(healcl_transcript_open_memory(script->writer.bytes, script->writer.length, NULL, &transcript,
                                     &error));
    run_transcript(transcript, batches, device);
    script_release(script);
}

/* A sum of products, onto what is there, whose result goes into one half of a tensor, and one of a
 * dense layer, which a pass makes of products. */
static void run_sums(int64_t reps, int64_t terms, int64_t k, int64_t n, bool permutes)
{
    struct script script = {0};
    char text[128];
    script_upload(&script, "q", DTYPE_INT64, 1, &k, moduli);
    upload_reversal(&script, n);
    upload_random(&script, "a", 4, (int64_t[]){reps, terms, k, n});
    upload_random(&script, "b", 3, (int64_t[]){terms, k, n});
    upload_random(&script, "to", 4, (int64_t[]){reps, 2, k, n});
    script_call(&script, "half", "get_slice", "to [:,1]");
    snprintf(text, sizeof text, "a b q none none perm half %d -1", permutes);
    script_call(&script, "half", "modmul_axis_sum", text);
    script_download(&script, "to");
    upload_random(&script, "x", 4, (int64_t[]){1, terms, n, k});
    upload_random(&script, "w", 4, (int64_t[]){reps, terms, 1, k});
    snprintf(text, sizeof text, "(%d,%d,%d,%d) :int64", (int)reps, (int)terms, (int)n, (int)k);
    script_call(&script, "products", "empty", text);
    script_call(&script, "products", "modmul", "x w q products");
    snprintf(text, sizeof text, "(%d,%d,%d) :int64", (int)reps, (int)n, (int)k);
    script_call(&script, "dense", "empty", text);
    script_call(&script, "dense", "axis_modsum", "products 1 q dense");
    script_download(&script, "dense");
    run_script(&script, (int64_t[]){3, 0});
}

static void sums_of_products(void **state)
{
    (void)state;
    run_sums(3, 12, 1, 1024, true);
    run_sums(3, 5, 2, 16, false);
    run_sums(2, 300, 1, 8, true);
    run_sums(1, 70, 2, 1, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(sums_of_products),
        DEVICE_TEST(bundled_on_the_reference),
        DEVICE_TEST(bundled_on_the_device),
        DEVICE_TEST(encrypted_on_both),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
