/*
 * Errors that only data reveal. The device notes them while it works and is asked at the end of a
 * segment; the host reference meets them one by one. Both must say the same: the first entry that
 * offends, in it the first index.
 */
#include "helper_one_device.h"

#include <stdio.h>
#include <string.h>

#include "helper_script.h"
#include "kernels/launcher.h"
#include "tools/random.h"

#define VALUES(...) ((const int64_t[]){__VA_ARGS__})

/* Both executors refuse with this message. Then the device is in order still. */
static void expect_refusal(struct script *script, const char *message)
{
    struct script_results results = {0};
    struct healcl_error refusal = {0};
    script_plan(script);
    assert_int_equal(script_run_on(script, NULL, &results, &refusal), HEALCL_REFUSED);
    assert_string_equal(refusal.message, message);
    healcl_error_clear(&refusal);
    assert_int_equal(script_run_on(script, device, &results, &refusal), HEALCL_REFUSED);
    assert_string_equal(refusal.message, message);
    healcl_error_clear(&refusal);
    script_release(script);
    script_results_release(&results);

    struct script good = {0};
    script_call(&good, "a", "zeros", "(3) :int64");
    script_download(&good, "a");
    script_plan(&good);
    OK(script_run_on(&good, device, &results, &error));
    assert_memory_equal(results.values, VALUES(0, 0, 0), 3 * sizeof(int64_t));
    script_results_release(&results);
    script_release(&good);
}

/* a [2,3] and out of its shape. */
static void begin(struct script *script)
{
    script_upload(script, "a", DTYPE_INT64, 2, VALUES(2, 3), VALUES(1, 2, 3, 4, 5, 6));
    script_call(script, "out", "empty", "(2,3) :int64");
}

/* ---------------------------------------------------------------- moduli */

static void moduli(void **state)
{
    (void)state;
    struct script script = {0};
    begin(&script);
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(3), VALUES(5, 0, -7));
    script_call(&script, "out", "_modmul_ttt", "a a q out");
    expect_refusal(&script, "entry 3 (_modmul_ttt): argument 'p': 0 at [1] is below 1");

    /* Axes along which the moduli are repeated are no part of the index. */
    begin(&script);
    script_upload(&script, "q", DTYPE_INT64, 2, VALUES(2, 1), VALUES(5, INT64_MIN));
    script_call(&script, "out", "_mod_tt", "a q out");
    expect_refusal(&script, "entry 3 (_mod_tt): argument 'b': -9223372036854775808 at [1] is "
                            "below 1");

    begin(&script);
    script_upload(&script, "q", DTYPE_INT64, 0, VALUES(0), VALUES(-1));
    script_call(&script, "out", "modneg_tt", "a q out");
    expect_refusal(&script, "entry 3 (modneg_tt): argument 'p': -1 is below 1");

    begin(&script);
    script_upload(&script, "q", DTYPE_INT64, 2, VALUES(1, 3), VALUES(5, 5, 0));
    script_call(&script, "wide", "expand", "q 0 2");
    script_call(&script, "out", "_modsum_ttt", "a a wide out");
    expect_refusal(&script, "entry 4 (_modsum_ttt): argument 'p': 0 at [2] is below 1");

    begin(&script);
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(3), VALUES(5, 5, 0));
    script_call(&script, "sum", "empty", "(3) :int64");
    script_call(&script, "sum", "axis_modsum", "a 0 q sum");
    expect_refusal(&script, "entry 4 (axis_modsum): argument 'q': 0 at [2] is below 1");
}

/* On a device whose kernels know how many axes there are, and take an element each. */
static void moduli_of_thin_items(void **state)
{
    const struct device_tuning tuning = device->tuning;
    device->tuning.compiled_axes = 4;
    moduli(state);
    device->tuning = tuning;
}

/* More moduli than get a table, several bad ones: the first. */
static void many_moduli(void **state)
{
    (void)state;
    enum { COUNT = 200000 };
    int64_t *values = malloc(COUNT * sizeof *values);
    assert_non_null(values);
    struct random random = {0xbad};
    const int64_t bad[] = {199999, 65536, 150000, 65537, 0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct script script = {0};
        char message[160];
        int64_t first = COUNT;
        for (int64_t j = 0; j < COUNT; j++)
            values[j] = random_modulus(&random, DTYPE_INT64);
        for (size_t j = 0; j <= i; j++) {
            values[bad[j]] = -(int64_t)j;
            first = bad[j] < first ? bad[j] : first;
        }
        script_upload(&script, "q", DTYPE_INT64, 2, VALUES(COUNT / 8, 8), values);
        script_call(&script, "out", "empty", "(25000,8) :int64");
        script_call(&script, "out", "_mod_ct", "123456789 q out");
        snprintf(message, sizeof message,
                 "entry 2 (_mod_ct): argument 'b': %lld at [%lld, %lld] is below 1",
                 (long long)values[first], (long long)first / 8, (long long)first % 8);
        expect_refusal(&script, message);
    }
    free(values);
}

/* ---------------------------------------------------------------- indices and permutations */

static void indices(void **state)
{
    (void)state;
    struct script script = {0};
    begin(&script);
    script_upload(&script, "idx", DTYPE_INT32, 2, VALUES(2, 3), VALUES(0, 1, -2, 1, -3, 2));
    script_call(&script, "out", "take_along_axis", "a idx 0 out");
    expect_refusal(&script, "entry 3 (take_along_axis): argument 'idx': -3 at [1, 1] is outside "
                            "of axis 0 of size 2");

    /* An index that wraps for one axis is outside another. */
    begin(&script);
    script_upload(&script, "idx", DTYPE_INT64, 2, VALUES(2, 3), VALUES(0, 1, -2, 1, -3, 2));
    script_call(&script, "out", "take_along_axis", "a idx 1 out");
    script_call(&script, "out", "take_along_axis", "a idx 0 out");
    expect_refusal(&script, "entry 4 (take_along_axis): argument 'idx': -3 at [1, 1] is outside "
                            "of axis 0 of size 2");

    begin(&script);
    script_upload(&script, "perms", DTYPE_INT64, 2, VALUES(2, 3), VALUES(0, 1, 1, 2, 0, -1));
    script_call(&script, "out", "permute", "a perms out 0 1");
    expect_refusal(&script,
                   "entry 3 (permute): argument 'perms': -1 at [1, 2] is outside of axis 1 of "
                   "size 3");
}

static void permutations(void **state)
{
    (void)state;
    const struct {
        int64_t values[4];
        const char *problem;
    } cases[] = {
        {{0, 1, 2, 4}, "4 at [3] is outside of [0, 4)"},
        {{0, -1, 2, 9}, "-1 at [1] is outside of [0, 4)"},
        {{0, 1, 0, 1}, "0 at [2] repeats an earlier entry"},
        {{3, 3, 3, 9}, "3 at [1] repeats an earlier entry"},
        {{3, 9, 3, 3}, "9 at [1] is outside of [0, 4)"},
        {{1, 2, 3, (int64_t)1 << 32}, "4294967296 at [3] is outside of [0, 4)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct script script = {0};
        char message[160];
        script_upload(&script, "a", DTYPE_INT64, 4, VALUES(1, 4, 1, 1), VALUES(1, 2, 3, 4));
        script_upload(&script, "q", DTYPE_INT64, 1, VALUES(1), VALUES(17));
        script_upload(&script, "psi", DTYPE_INT64, 2, VALUES(1, 4), VALUES(1, 4, 2, 8));
        script_upload(&script, "perm", DTYPE_INT64, 1, VALUES(4), cases[i].values);
        script_call(&script, "out", "empty", "(1,4,1,1) :int64");
        script_call(&script, "out", "ntt", "a perm none q psi out 0 0");
        snprintf(message, sizeof message, "entry 5 (ntt): argument 'perm': %s", cases[i].problem);
        expect_refusal(&script, message);
    }
    /* One that is not applied may hold anything. */
    struct script script = {0};
    struct script_results results = {0};
    script_upload(&script, "a", DTYPE_INT64, 4, VALUES(1, 4, 1, 1), VALUES(1, 2, 3, 4));
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(1), VALUES(17));
    script_upload(&script, "psi", DTYPE_INT64, 2, VALUES(1, 4), VALUES(1, 4, 2, 8));
    script_upload(&script, "perm", DTYPE_INT64, 1, VALUES(4), VALUES(9, 9, 9, 9));
    script_call(&script, "out", "empty", "(1,4,1,1) :int64");
    script_call(&script, "out", "ntt", "a perm none q psi out 0 1");
    script_download(&script, "out");
    script_plan(&script);
    OK(script_run_on(&script, device, &results, &error));
    script_results_release(&results);
    script_release(&script);
}

/* Entries that repeat others, in whatever order work-groups meet them: the first such one. */
static void long_permutations(void **state)
{
    (void)state;
    enum { N = 4096, ROUNDS = 20 };
    static int64_t perm[N], values[N]; /* zeros */
    struct random random = {0x9e37};
    for (int round = 0; round < ROUNDS; round++) {
        struct script script = {0};
        char message[160];
        int64_t offending = N;
        bool seen[N] = {false};
        for (int64_t i = 0; i < N; i++)
            perm[i] = i * 5 % N;
        for (int i = 0; i <= round; i++)
            perm[random_bits(&random) % N] = (int64_t)(random_bits(&random) % (N + 2));
        for (int64_t i = 0; i < N && offending == N; i++)
            if (perm[i] >= N || seen[perm[i]])
                offending = i;
            else
                seen[perm[i]] = true;
        script_upload(&script, "a", DTYPE_INT64, 4, VALUES(1, N, 1, 1), values);
        script_upload(&script, "q", DTYPE_INT64, 1, VALUES(1), VALUES(17));
        script_upload(&script, "psi", DTYPE_INT64, 2, VALUES(1, N), values);
        script_upload(&script, "perm", DTYPE_INT64, 1, VALUES(N), perm);
        script_call(&script, "out", "empty", "(1,4096,1,1) :int64");
        script_call(&script, "out", "ntt", "a perm none q psi out 0 0");
        snprintf(message, sizeof message, "entry 5 (ntt): argument 'perm': %lld at [%lld] %s",
                 (long long)perm[offending % N], (long long)offending,
                 perm[offending % N] < N ? "repeats an earlier entry" : "is outside of [0, 4096)");
        expect_refusal(&script, message);
    }
}

static void coprime_moduli(void **state)
{
    (void)state;
    struct script script = {0};
    script_upload(&script, "a", DTYPE_INT64, 3, VALUES(1, 4, 1), VALUES(1, 2, 3, 4));
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(4), VALUES(35, 6, 11, 21));
    script_call(&script, "out", "empty", "(1,2,1) :int64");
    script_call(&script, "out", "apply_g_decomp_relative_to_full_q", "a q 2 8 out");
    expect_refusal(&script, "entry 3 (apply_g_decomp_relative_to_full_q): argument 'q': the moduli "
                            "at [0] and [3] are not coprime");

    script_upload(&script, "a", DTYPE_INT64, 3, VALUES(1, 3, 1), VALUES(1, 2, 3));
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(3), VALUES(5, 6, 0));
    script_call(&script, "out", "empty", "(1,2,1) :int64");
    script_call(&script, "out", "apply_g_decomp_relative_to_full_q", "a q 2 8 out");
    expect_refusal(&script,
                   "entry 3 (apply_g_decomp_relative_to_full_q): argument 'q': 0 at [2] is "
                   "below 1");
}

/* Pretends that a check's finding is further away than its report can express. */
static cl_int CL_API_CALL read_far_status(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                          size_t offset, size_t size, void *data, cl_uint count,
                                          const cl_event *list, cl_event *event)
{
    struct status *status = data;
    cl_int code = opencl_loader.clEnqueueReadBuffer(queue, memory, blocking, offset, size, data,
                                                    count, list, event);
    if (size == sizeof *status && status->key > 0)
        status->index = UINT32_MAX;
    return code;
}

/* Then nothing is said of the value there. */
static void far_indices(void **state)
{
    (void)state;
    struct opencl cl = opencl_loader;
    cl.clEnqueueReadBuffer = read_far_status;
    const char *const calls[][3] = {
        {"_mod_tt", "a idx out", "argument 'b': a value at an index beyond 2^32-2 is below 1"},
        {"take_along_axis", "a idx 0 out",
         "argument 'idx': a value at an index beyond 2^32-2 is outside of axis 0 of size 2"}};
    for (int i = 0; i < 2; i++) {
        struct script script = {0};
        struct script_results results = {0};
        struct healcl_error refusal = {0};
        char message[160];
        begin(&script);
        script_upload(&script, "idx", DTYPE_INT64, 2, VALUES(2, 3), VALUES(1, 1, 1, 1, -3, 1));
        script_call(&script, "out", calls[i][0], calls[i][1]);
        script_plan(&script);
        device->cl = &cl;
        assert_int_equal(script_run_on(&script, device, &results, &refusal), HEALCL_REFUSED);
        device->cl = &opencl_loader;
        snprintf(message, sizeof message, "entry 3 (%s): %s", calls[i][0], calls[i][2]);
        assert_string_equal(refusal.message, message);
        healcl_error_clear(&refusal);
        script_release(&script);
        script_results_release(&results);
    }
}

/* ---------------------------------------------------------------- which error wins */

/* The first of many failing entries is reported, however late the host learns of it. */
static void first_entry_wins(void **state)
{
    (void)state;
    for (int first = 0; first < 3; first++) {
        struct script script = {0};
        char message[160];
        begin(&script);
        script_upload(&script, "good", DTYPE_INT64, 1, VALUES(3), VALUES(5, 6, 7));
        script_upload(&script, "bad_q", DTYPE_INT64, 1, VALUES(3), VALUES(5, 6, 0));
        script_upload(&script, "bad_idx", DTYPE_INT64, 2, VALUES(2, 3), VALUES(0, 1, 2, 9, 0, 1));
        for (int i = 0; i < 100; i++)
            script_call(&script, "out", "_modmul_ttt", "a out good out");
        const char *const calls[][3] = {
            {"_mod_tt", "a bad_q out", "argument 'b': 0 at [2] is below 1"},
            {"take_along_axis", "a bad_idx 1 out",
             "argument 'idx': 9 at [1, 0] is outside of axis 1 of size 3"},
            {"_modmul_ttt", "a a bad_q out", "argument 'p': 0 at [2] is below 1"},
        };
        for (int i = 0; i < 3; i++)
            script_call(&script, "out", calls[(first + i) % 3][0], calls[(first + i) % 3][1]);
        for (int i = 0; i < 100; i++)
            script_call(&script, "out", "_modmul_ttt", "a out good out");
        script_download(&script, "out");
        snprintf(message, sizeof message, "entry 105 (%s): %s", calls[first][0], calls[first][2]);
        expect_refusal(&script, message);
    }
}

/* The host refuses an upload at once (a value that the dtype of `out` does not hold); an earlier
 * error that the device has noted goes before it, a later one does not exist yet. */
static void host_errors_in_order(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct script script = {0};
        begin(&script);
        script_upload(&script, "q", DTYPE_INT64, 1, VALUES(3), VALUES(5, -6, 7));
        for (int i = 0; i < 2; i++) {
            if (i == order) {
                script_call(&script, "out", "_mod_tt", "a q out");
                continue;
            }
            /* An int64 payload for an int8 tensor. */
            script_upload(&script, "small", DTYPE_INT64, 1, VALUES(2), VALUES(1, 128));
            script.writer.length -= strlen("}}}}"); /* the name gets a dtype */
            writer_put(&script.writer, ",\"dtype\":\"torch.int8\"}}}}");
        }
        struct script_results results = {0};
        struct healcl_error refusals[2] = {{0}, {0}};
        script_plan(&script);
        assert_int_equal(script_run_on(&script, NULL, &results, &refusals[0]), HEALCL_REFUSED);
        assert_int_equal(script_run_on(&script, device, &results, &refusals[1]), HEALCL_REFUSED);
        assert_string_equal(refusals[0].message, refusals[1].message);
        assert_non_null(
            strstr(refusals[1].message, order == 0 ? "entry 3 (_mod_tt): argument 'b': -6 at [1]"
                                                   : "entry 3 (host_to_device)"));
        healcl_error_clear(&refusals[0]);
        healcl_error_clear(&refusals[1]);
        script_release(&script);
        script_results_release(&results);
    }
}

/* An error in one segment ends the run there; results of the segments before it have been given
 * out, and those of its own have not. */
static void results_before_an_error(void **state)
{
    (void)state;
    struct script script = {0};
    struct script_results results = {0};
    struct healcl_error refusal = {0};
    script_segment_start(&script, "good");
    begin(&script);
    script_download(&script, "a");
    script_segment_end(&script);
    script_segment_start(&script, "bad");
    script_call(&script, "out", "set_const_val", "out 0");
    script_download(&script, "out");
    script_call(&script, "out", "_mod_tt", "a out out");
    script_download(&script, "out");
    script_segment_end(&script);
    script_plan(&script);
    assert_int_equal(script_run_on(&script, device, &results, &refusal), HEALCL_REFUSED);
    assert_string_equal(refusal.message, "entry 8 (_mod_tt): argument 'b': 0 at [0, 0] is below 1");
    assert_int_equal(results.results, 1);
    healcl_error_clear(&refusal);
    script_results_release(&results);
    script_release(&script);
}

/* After a refusal the executor can start over. */
static void reset_after_an_error(void **state)
{
    (void)state;
    struct script script = {0};
    struct script_results results = {0};
    struct executor *executor = NULL;
    begin(&script);
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(3), VALUES(5, -6, 7));
    script_call(&script, "out", "_mod_tt", "a q out");
    script_plan(&script);
    OK(device_executor_create(device, script.plan, &executor, &error));
    for (int i = 0; i < 3; i++) {
        struct healcl_error refusal = {0};
        assert_int_equal(script_run(&script, executor, &results, &refusal), HEALCL_REFUSED);
        assert_string_equal(refusal.message,
                            "entry 3 (_mod_tt): argument 'b': -6 at [1] is below 1");
        healcl_error_clear(&refusal);
        OK(executor->class->rewind(executor, 0, &error));
    }
    executor->class->destroy(executor);
    script_release(&script);
    script_results_release(&results);
}

/* ---------------------------------------------------------------- loops that end */

static void expect_loops_to_end(struct script *script, const char *message)
{
    struct script_results results = {0};
    struct healcl_error refusal = {0};
    script_plan(script);
    OK(script_run_on(script, device, &results, &refusal));
    script_results_release(&results);
    device->info.loop_limit = 5000;
    assert_int_equal(script_run_on(script, device, &results, &refusal), HEALCL_REFUSED);
    device->info.loop_limit = 0;
    assert_string_equal(refusal.message, message);
    healcl_error_clear(&refusal);
    script_results_release(&results);
    script_release(script);
}

/* Steps whose work-items would need too many loop rounds are refused. */
static void loops_end(void **state)
{
    (void)state;
    struct script script = {0};
    struct device_tuning tuning = device->tuning;
    device->tuning.styles[FAMILY_digits] = STYLE_GENERAL;
    device->tuning.styles[FAMILY_transform] = STYLE_GENERAL;
    device->tuning.transform_local_size = 1;
    script_call(&script, "a", "zeros", "(2,3) :int64");
    script_call(&script, "out", "zeros", "(2,3,5000) :int64");
    script_call(&script, "out", "apply_g_decomp", "a 5000 1 out");
    expect_loops_to_end(&script,
                        "entry 2 (apply_g_decomp): a work-item needs loops of 5128 rounds, "
                        "but this device ends loops after 5000");
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(1), VALUES(7));
    script_call(&script, "a", "zeros", "(1,1024,1,1) :int64");
    script_call(&script, "psi", "zeros", "(1,1024) :int64");
    script_call(&script, "a", "ntt", "a none none q psi a 0 1");
    expect_loops_to_end(&script, "entry 3 (ntt): a work-item needs loops of 141312 rounds, but "
                                 "this device ends loops after 5000");
    device->tuning = tuning;
}

/* ---------------------------------------------------------------- sinks */

static enum healcl_status failing_take(void *context, const struct step *step, const void *data,
                                       struct healcl_error *failure)
{
    (void)step;
    (void)data;
    int *left = context;
    if ((*left)-- > 0)
        return HEALCL_OK;
    return ERROR(failure, HEALCL_USAGE, "no more");
}

/* A failing sink ends the run. */
static void sinks_fail(void **state)
{
    (void)state;
    for (int taken = 0; taken < 4; taken++) {
        struct script script = {0};
        struct executor *executor = NULL;
        struct healcl_error failure = {0};
        int left = taken;
        const struct result_sink sink = {.context = &left, .take = failing_take};
        begin(&script);
        for (int i = 0; i < 3; i++)
            script_download(&script, "a");
        script_plan(&script);
        device_pool_empty(device);
        uint64_t before = device->bytes_live;
        OK(device_executor_create(device, script.plan, &executor, &error));
        enum healcl_status status =
            executor->class->run_segment(executor, &script.plan->segments[0], &sink, &failure);
        assert_int_equal(status, taken < 3 ? HEALCL_USAGE : HEALCL_OK);
        assert_int_equal(left, taken < 3 ? -1 : 0);
        healcl_error_clear(&failure);
        executor->class->destroy(executor);
        device_pool_empty(device);
        assert_int_equal(device->bytes_live, before);
        script_release(&script);
    }
}

int main(void)
{
    unsetenv("HEALCL_AS"); /* the device itself reports which calls transfers make */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moduli),
        cmocka_unit_test(moduli_of_thin_items),
        cmocka_unit_test(many_moduli),
        cmocka_unit_test(indices),
        cmocka_unit_test(permutations),
        cmocka_unit_test(long_permutations),
        cmocka_unit_test(coprime_moduli),
        cmocka_unit_test(far_indices),
        cmocka_unit_test(first_entry_wins),
        cmocka_unit_test(host_errors_in_order),
        cmocka_unit_test(results_before_an_error),
        cmocka_unit_test(reset_after_an_error),
        cmocka_unit_test(loops_end),
        cmocka_unit_test(sinks_fail),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
