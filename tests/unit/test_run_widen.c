/* Requests together: results of a widened transcript are those of its requests one after the other,
 * bit for bit, whichever inputs come with a request. Each request has the file's values in another
 * order, so that indices, moduli and permutations stay what they are. */
#include "helper_one_device.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "helper_share.h"
#include "plan/transcript.h"
#include "transcript/payload.h"

enum { BATCH_MOST = 8, INPUTS_MOST = 256, RESULTS_MOST = 512 };

struct requests {
    struct healcl_transcript *transcript;
    const struct healcl_tensor_info *inputs, *results;
    size_t live[INPUTS_MOST], live_count, result_count;
    char *data[INPUTS_MOST];                  /* of each live input, batch requests */
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
    OK(payload_read(step->payload, step->out->storage->dtype, one, &error));
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

/* What is there for one request is the same for all, or has a slice for each. */
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
        assert_non_null(strstr(error.message, ": its rank cannot grow by an axis of requests"));
        return;
    }
    OK(healcl_session_open(wide, on, NULL, &session, &error));
    for (size_t i = 0; i < requests->live_count; i++)
        OK(healcl_session_bind(session, requests->live[i], requests->data[i], &error));
    for (int run = 0; run < 2; run++) { /* the second one with what was kept */
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

static void run_batch(struct requests *requests, int64_t batch, struct healcl_device *on)
{
    requests->batch = batch;
    memset(requests->expected, 0, sizeof requests->expected);
    for (size_t i = 0; i < requests->live_count; i++)
        requests->data[i] = turned(requests, requests->live[i]);
    run_alone(requests, NULL);
    run_together(requests, on);
    for (size_t i = 0; i < requests->live_count; i++)
        free(requests->data[i]);
    for (int64_t i = 0; i < batch; i++)
        for (size_t j = 0; j < requests->result_count; j++)
            free(requests->expected[i][j]);
}

/* Each input of a transcript alone, in turns with all of them. */
static void run_file(const char *path, const int64_t *batches, struct healcl_device *on)
{
    static struct requests requests;
    size_t inputs;
    OK(healcl_transcript_open(path, NULL, &requests.transcript, &error));
    requests.inputs = healcl_transcript_inputs(requests.transcript, &inputs);
    requests.results = healcl_transcript_results(requests.transcript, &requests.result_count);
    assert_true(inputs <= INPUTS_MOST && requests.result_count <= RESULTS_MOST);
    for (; *batches > 0; batches++)
        for (size_t i = 0; i <= inputs; i++) {
            requests.live_count = i < inputs ? 1 : inputs;
            for (size_t j = 0; j < requests.live_count; j++)
                requests.live[j] = i < inputs ? i : j;
            if (requests.live_count > 0)
                run_batch(&requests, *batches, on);
        }
    healcl_transcript_close(requests.transcript);
}

static void run_files(const int64_t *batches, struct healcl_device *on)
{
    DIR *folder = opendir(TRANSCRIPTS);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *end = strrchr(entry->d_name, '.');
        char path[512];
        if (!end || strcmp(end, ".json") != 0)
            continue;
        snprintf(path, sizeof path, TRANSCRIPTS "/%s", entry->d_name);
        print_message("%s\n", entry->d_name);
        run_file(path, batches, on);
    }
    closedir(folder);
}

static void bundled_on_the_reference(void **state)
{
    (void)state;
    run_files(share_is_all() ? (int64_t[]){1, 2, 3, 8, 0} : (int64_t[]){3, 0}, NULL);
}

static void bundled_on_the_device(void **state)
{
    (void)state;
    run_files(share_is_all() ? (int64_t[]){1, 2, 3, 8, 0} : (int64_t[]){3, 0}, device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(bundled_on_the_reference),
        DEVICE_TEST(bundled_on_the_device),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
