/* Sessions choose what their steps launch when they are opened, and keep it. Runs only enqueue,
 * until that changes. */
#include "helper_device.h"

#include <string.h>

#include "helper_script.h"
#include "opencl/internal.h"
#include "run/loaded_transcript.h"

enum { N = 1024, K = 2, L = 8, LONG = 1 << 14, RESULTS = 5 };

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

static struct healcl_device *device;
static struct opencl table;                /* helper_opencl, but for the hook that follows */
static uint64_t blocking, blocked_between; /* calls before a launch; between two launches */

/* Calls that may wait for the device. */
static uint64_t blocking_calls(void)
{
    return helper.count[CALL_clFinish] + helper.count[CALL_clWaitForEvents] +
           helper.count[CALL_clEnqueueReadBuffer] + helper.count[CALL_clEnqueueMapBuffer];
}

static cl_int note_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                          const size_t *offset, const size_t *size, const size_t *local,
                          cl_uint count, const cl_event *awaited, cl_event *event)
{
    if (blocking > 0)
        blocked_between += blocking_calls() + 1 - blocking;
    blocking = blocking_calls() + 1;
    return helper_opencl.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, size, local,
                                                count, awaited, event);
}

/* Inputs, in the order of the transcript. */
enum { INPUT_Q, INPUT_PSI, INPUT_PERM, INPUT_INDEX, INPUT_A, INPUTS };

static int64_t q[K] = {12289, 40961}, psi[K * N], perm[N], indices[2] = {5, -1}, a[L * N * K],
               long_a[LONG], weights[L * N * K];

/* Any values for L * K elements, then as many that make the largest sums that kernels for moduli
 * below 2^62 add up in two words. */
static int64_t value_at(uint64_t at, uint64_t seed)
{
    return at / (L * K) % 2 ? (INT64_C(1) << 62) - 3 : (int64_t)((seed + at) * 0x9e3779b97f4a7c15);
}

/* A transform with a permutation, a product, a gather with checked indices, a sum, a sum of
 * products: tables are derived of all but a, which has no data. */
static struct healcl_transcript *open_model(struct script *model)
{
    struct healcl_transcript *transcript = NULL;
    const struct layout layout = layout_of_shape(4, SHAPE(L, N, 1, K));
    for (int64_t i = 0; i < N; i++) {
        perm[i] = (3 * i + 1) % N;
        psi[i] = psi[N + i] = 7 * i % 12289;
    }
    for (int64_t i = 0; i < LONG; i++)
        long_a[i] = i * i;
    for (uint64_t i = 0; i < L * N * K; i++)
        weights[i] = value_at(i, 0);
    script_upload(model, "q", DTYPE_INT64, 1, SHAPE(K), q);
    script_upload(model, "psi", DTYPE_INT64, 2, SHAPE(K, N), psi);
    script_upload(model, "perm", DTYPE_INT64, 1, SHAPE(N), perm);
    script_upload(model, "idx", DTYPE_INT64, 1, SHAPE(2), indices);
    writer_declare(&model->writer, "a", DTYPE_INT64, &layout);
    script_upload(model, "line", DTYPE_INT64, 1, SHAPE(LONG), long_a);
    script_upload(model, "long", DTYPE_INT64, 2, SHAPE(LONG / K, K), long_a);
    script_upload(model, "w", DTYPE_INT64, 3, SHAPE(N, L, K), weights);
    script_call(model, "t", "empty", "(8,1024,1,2) :int64");
    script_call(model, "t", "ntt", "a perm none q psi t 0 0");
    script_download(model, "t");
    script_call(model, "p", "empty", "(8,1024,1,2) :int64");
    script_call(model, "p", "_modmul_ttt", "a a q p");
    script_download(model, "p");
    script_call(model, "few", "empty", "(2) :int64");
    script_call(model, "few", "take_along_axis", "line idx 0 few");
    script_download(model, "few");
    script_call(model, "sum", "empty", "(2) :int64");
    script_call(model, "sum", "axis_modsum", "long 0 q sum");
    script_download(model, "sum");
    script_call(model, "terms", "reshape", "a (1,1024,8,2)");
    script_call(model, "products", "zeros", "(1,1024,2) :int64");
    script_call(model, "products", "modmul_axis_sum", "terms w q products -3");
    script_download(model, "products");
    script_finish(model);
    OK(healcl_transcript_open_memory(model->writer.bytes, model->writer.length, NULL, &transcript,
                                     &error));
    return transcript;
}

static struct healcl_session *session, *reference;
static struct script script; /* sessions read it */

static struct healcl_transcript *open_device(const char *kind)
{
    setenv("HEALCL_CACHE_DIR", "", 1);
    setenv("HEALCL_AS", kind, 1);
    setenv("HEALCL_TUNING", "transform_tile=256,queues_overlap=0",
           1); /* two passes: with scratch memory */
    helper_reset();
    blocking = blocked_between = 0;
    table = helper_opencl;
    table.clEnqueueNDRangeKernel = note_launch;
    OK(device_open(&table, "", &device, &error));
    unsetenv("HEALCL_AS");
    unsetenv("HEALCL_TUNING");
    return open_model(&script);
}

static void open_sessions(const char *kind)
{
    struct healcl_transcript *transcript = open_device(kind);
    OK(healcl_session_open(transcript, device, NULL, &session, &error));
    OK(healcl_session_open(transcript, NULL, NULL, &reference, &error));
    healcl_transcript_close(transcript);
}

static void close_sessions(void)
{
    healcl_session_close(session);
    healcl_session_close(reference);
    healcl_device_close(device);
    script_release(&script);
    healcl_error_clear(&error);
    assert_true(helper_balanced());
}

static void bind(size_t input, const void *data)
{
    OK(healcl_session_bind(session, input, data, &error));
    OK(healcl_session_bind(reference, input, data, &error));
}

/* One run more, of another `a`: what the reference does, the device does. Returns whether that is
 * a refusal. */
static bool run_both(void)
{
    struct healcl_error expected = {0};
    for (uint64_t i = 0; i < L * N * K; i++)
        a[i] = value_at(i, (uint64_t)a[i]);
    enum healcl_status status = healcl_session_run(reference, &expected);
    blocking = 0;
    assert_int_equal(healcl_session_run(session, &error), status);
    assert_string_equal(error.message, expected.message);
    for (size_t i = 0; status == HEALCL_OK && i < RESULTS; i++) {
        const size_t bytes[RESULTS] = {sizeof a, sizeof a, sizeof indices, sizeof q,
                                       N * K * sizeof *a};
        const void *got, *right;
        OK(healcl_session_map(session, i, &got, &error));
        OK(healcl_session_map(reference, i, &right, &error));
        assert_memory_equal(got, right, bytes[i]);
    }
    healcl_error_clear(&expected);
    healcl_error_clear(&error);
    return status != HEALCL_OK;
}

static void opening_binds(void **state)
{
    uint64_t before[CALL_COUNT];
    (void)state;
    open_sessions("gpu");
    bind(INPUT_A, a);
    memcpy(before, helper.count, sizeof before);
    assert_false(run_both());
    assert_true(before[CALL_clBuildProgram] > 0);
    assert_int_equal(helper.count[CALL_clBuildProgram], before[CALL_clBuildProgram]);
    assert_int_equal(helper.count[CALL_clCreateKernel], before[CALL_clCreateKernel]);
    close_sessions();
}

/* One of sixteen calls, evenly spread, fails while a session is opened. The session runs all the
 * same, or is refused. */
static void opening_fails(void **state)
{
    uint64_t calls = 0, opened = 0;
    (void)state;
    for (uint64_t k = 0; k <= calls; k += 1 + calls / 16) {
        struct healcl_transcript *transcript = open_device("gpu");
        helper.calls = 0;
        helper.fail_code = CL_OUT_OF_RESOURCES;
        helper.fail_at = k;
        const enum healcl_status status =
            healcl_session_open(transcript, device, NULL, &session, &error);
        helper.fail_at = 0;
        if (k == 0)
            calls = helper.calls;
        if (status == HEALCL_OK) {
            OK(healcl_session_open(transcript, NULL, NULL, &reference, &error));
            bind(INPUT_A, a);
            assert_false(run_both());
            assert_false(run_both());
            opened++;
        } else {
            assert_int_equal(status, HEALCL_DEVICE);
            session = reference = NULL;
        }
        healcl_transcript_close(transcript);
        close_sessions();
    }
    assert_true(opened > 8);
}

static void later_runs_only_enqueue(void **state)
{
    uint64_t before[CALL_COUNT];
    (void)state;
    open_sessions("gpu");
    bind(INPUT_A, a);
    for (int i = 0; i < 2; i++) /* tables are filled, and used again */
        assert_false(run_both());
    memcpy(before, helper.count, sizeof before);
    blocked_between = 0;
    assert_false(run_both());
    assert_int_equal(helper.count[CALL_clSetKernelArg], before[CALL_clSetKernelArg]);
    assert_int_equal(helper.count[CALL_clCreateKernel], before[CALL_clCreateKernel]);
    assert_true(helper.count[CALL_clEnqueueNDRangeKernel] >=
                before[CALL_clEnqueueNDRangeKernel] + 5);
    assert_int_equal(blocked_between, 0);
    close_sessions();
}

/* Inputs of which tables are derived, on the device or the host, change, and change back; some are
 * refused. Kernels are chosen by whether moduli are below 2^60 and 2^62. in_place: the caller's
 * memory changes, and stays bound. */
static void expect_changes(const char *kind, bool in_place)
{
    static const int64_t other_q[K] = {257, 2}, no_q[K] = {257, 0}, far[2] = {0, LONG};
    static const int64_t q_61[K] = {12289, (INT64_C(1) << 61) - 1};
    static const int64_t q_63[K] = {(INT64_C(1) << 62) + 1, INT64_MAX};
    static int64_t other_psi[K * N], other_perm[N], no_perm[N], memory[INPUTS][K * N];
    static int64_t *const files[] = {q, psi, perm, indices};
    const size_t bytes[] = {sizeof q, sizeof psi, sizeof perm, sizeof indices};
    const struct {
        size_t input;
        const void *data; /* NULL: the file's */
        bool is_refused;
    } changes[] = {
        {INPUT_Q, other_q, false},     {INPUT_Q, q_61, false},    {INPUT_Q, q_63, false},
        {INPUT_Q, no_q, true},         {INPUT_Q, NULL, false},    {INPUT_Q, q_63, false},
        {INPUT_PSI, other_psi, false}, {INPUT_Q, q_61, false},    {INPUT_PERM, other_perm, false},
        {INPUT_PERM, no_perm, true},   {INPUT_PERM, NULL, false}, {INPUT_INDEX, far, true},
        {INPUT_INDEX, NULL, false},    {INPUT_PSI, NULL, false}};
    for (int64_t i = 0; i < N; i++) {
        other_psi[i] = other_psi[N + i] = i;
        other_perm[i] = N - 1 - i;
    }
    open_sessions(kind);
    bind(INPUT_A, a);
    for (size_t input = 0; in_place && input < INPUT_A; input++) {
        memcpy(memory[input], files[input], bytes[input]);
        bind(input, memory[input]);
    }
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const size_t input = changes[i].input;
        for (int again = 0; again < (in_place ? 1 : 5); again++)
            assert_false(run_both());
        const uint64_t arguments = helper.count[CALL_clSetKernelArg];
        assert_false(run_both());
        assert_true(in_place || i > 0 || helper.count[CALL_clSetKernelArg] < arguments + 10);
        for (int back = 0; back <= changes[i].is_refused; back++) {
            const void *data = back ? NULL : changes[i].data;
            if (in_place)
                memcpy(memory[input], data ? data : files[input], bytes[input]);
            else
                bind(input, data);
            assert_int_equal(run_both(), changes[i].is_refused && !back);
        }
    }
    close_sessions();
}

static void changes_count(void **state)
{
    (void)state;
    expect_changes("gpu", false);
    expect_changes("cpu", false);
}

static void changes_in_place_count(void **state)
{
    (void)state;
    expect_changes("gpu", true);
    expect_changes("cpu", true);
}

/* Transforms take two launches, then one, then two. */
static void tunings_count(void **state)
{
    uint64_t launches[3], all = 0;
    (void)state;
    open_sessions("gpu");
    bind(INPUT_A, a);
    for (int i = 0; i < 3; i++) {
        struct healcl_device *own = device->shared->latest; /* of the session, which took turns */
        if (i > 0) {
            struct device_tuning tuning = own->tuning;
            tuning.transform_tile = i == 1 ? 8192 : 256;
            OK(device_set_tuning(own, &tuning, &error));
        }
        for (int again = 0; again < 4; again++) {
            all = helper.count[CALL_clEnqueueNDRangeKernel];
            assert_false(run_both());
        }
        launches[i] = helper.count[CALL_clEnqueueNDRangeKernel] - all;
    }
    assert_int_equal(launches[1], launches[0] - 1);
    assert_int_equal(launches[2], launches[0]);
    close_sessions();
}

/* Each call of the third run in turn reports that memory ran out. If a launch does, it is tried
 * again, and kernel objects are released: drivers may keep memory alive that is an argument. */
static void memory_runs_out(void **state)
{
    uint64_t calls = 0, launches = 0;
    (void)state;
    for (uint64_t k = 0; k <= calls; k++) {
        struct healcl_error failure = {0};
        open_sessions("gpu");
        bind(INPUT_A, a);
        for (int again = 0; again < 2; again++)
            assert_false(run_both());
        const uint64_t released = helper.count[CALL_clReleaseKernel];
        helper.calls = 0;
        helper.fail_code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
        helper.fail_at = k;
        const enum healcl_status status = healcl_session_run(session, &failure);
        /* A run that waits less often makes fewer calls than the first one. */
        const bool is_launch =
            helper.failed && strcmp(helper.failed, "clEnqueueNDRangeKernel") == 0;
        if (k == 0)
            calls = helper.calls;
        assert_true(status == HEALCL_OK || (k > 0 && !is_launch && status == HEALCL_DEVICE));
        healcl_error_clear(&failure);
        helper.fail_at = 0;
        for (int again = 0; again < 3; again++)
            assert_false(run_both());
        if (k == 0 || is_launch)
            assert_int_equal(helper.count[CALL_clReleaseKernel] > released, is_launch);
        launches += is_launch;
        close_sessions();
    }
    assert_true(launches >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_binds),           cmocka_unit_test(opening_fails),
        cmocka_unit_test(later_runs_only_enqueue), cmocka_unit_test(changes_count),
        cmocka_unit_test(changes_in_place_count),  cmocka_unit_test(tunings_count),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
