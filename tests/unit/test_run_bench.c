/* Measured cases: primes, transcripts and their parts; wrong devices are noticed. */
#include "helper_device.h"

#include <string.h>

#include "tools/bench.h"
#include "tools/random.h"
#include "tools/results.h"

/* ---------------------------------------------------------------- primes */

static bool has_divisor(uint64_t value)
{
    for (uint64_t divisor = 2; divisor * divisor <= value; divisor++)
        if (value % divisor == 0)
            return true;
    return false;
}

static void primes_are_primes(void **state)
{
    (void)state;
    for (uint64_t value = 0; value < 20000; value++)
        assert_int_equal(is_prime(value), value >= 2 && !has_divisor(value));
    assert_true(is_prime(2305843009213693951));  /* 2^61 - 1 */
    assert_true(is_prime(9223372036854775783));  /* the largest below 2^63 */
    assert_false(is_prime(3215031751));          /* a pseudoprime to 2, 3, 5 and 7 */
    assert_false(is_prime(3825123056546413051)); /* to all primes up to 23 */
    assert_false(is_prime(4611685975477714963)); /* (2^31 - 1) (2^31 - 19), no small factor */
}

static void finds_the_largest_primes(void **state)
{
    (void)state;
    uint64_t primes[8];
    assert_true(find_primes(62, 131072, 8, primes));
    for (int i = 0; i < 8; i++) {
        assert_int_equal(primes[i] % 131072, 1);
        assert_int_equal(primes[i] >> 61, 1);
        assert_true(is_prime(primes[i]));
        assert_true(i == 0 || primes[i] < primes[i - 1]);
    }
    assert_true(find_primes(5, 2, 5, primes)); /* 31, 29, 23, 19, 17 */
    assert_int_equal(primes[0], 31);
    assert_int_equal(primes[4], 17);
    assert_false(find_primes(5, 2, 6, primes));
    assert_true(find_primes(63, 2, 1, primes));
    assert_int_equal(primes[0], 9223372036854775783);
    assert_true(find_primes(2, 2, 1, primes));
    assert_int_equal(primes[0], 3);
    assert_false(find_primes(12, 8192, 1, primes));
}

/* ---------------------------------------------------------------- transcripts */

/* Small enough for the reference, with every parameter that an operation takes. */
static struct bench_settings small_settings(const struct bench_operation *operation)
{
    static const struct bench_settings small = {{[BENCH_N] = 8,
                                                 [BENCH_BITS] = 20,
                                                 [BENCH_BATCH] = 7,
                                                 [BENCH_K] = 2,
                                                 [BENCH_R] = 3,
                                                 [BENCH_S] = 5,
                                                 [BENCH_DIGITS] = 4,
                                                 [BENCH_BASE_BITS] = 5}};
    struct bench_settings settings = {{0}};
    for (enum bench_parameter i = 0; i < BENCH_PARAMETER_COUNT; i++)
        if (bench_operation_takes(operation, i))
            settings.of[i] = small.of[i];
    return settings;
}

/* Returns the reference's result for some rows of a case. */
static struct result run_rows(const struct bench_case *measured, int64_t first, int64_t count)
{
    struct results results;
    struct planned planned;
    OK(planned_init(&planned, bench_case_text(measured, first, count, false), NULL, NULL, &error));
    const struct plan *plan = planned.plan;
    assert_int_equal(plan->segment_count, BENCH_SEGMENTS);
    assert_string_equal(plan->segments[BENCH_OPERATE].name, "operation");
    assert_int_equal(plan->segments[BENCH_OPERATE].operations, 1);
    /* A single row may be contiguous already. */
    assert_true(count == 1 || plan->segments[BENCH_OPERATE].step_count >= 1);
    assert_int_equal(plan->results, 1);
    OK(results_run(&results, NULL, plan, NULL, 0, &error));
    planned_release(&planned);
    return results.of[0];
}

/* Some rows alone are what they are in the whole: only so can a part be verified. */
static void check_parts(const struct bench_operation *operation,
                        const struct bench_settings *settings)
{
    static const int64_t parts[][2] = {{0, 1}, {2, 3}, {6, 1}};
    struct bench_case measured;
    OK(bench_case_init(&measured, operation, settings, &error));
    if (!operation->arguments)
        return;
    assert_int_equal(measured.settings.of[BENCH_BATCH], 7);
    struct result whole = run_rows(&measured, 0, 7);
    size_t row = whole.size / 7;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct result part = run_rows(&measured, parts[i][0], parts[i][1]);
        assert_int_equal(part.size, row * (size_t)parts[i][1]);
        assert_memory_equal(part.bytes, whole.bytes + row * (size_t)parts[i][0], part.size);
        free(part.bytes);
    }
    free(whole.bytes);
}

static void parts_are_like_the_whole(void **state)
{
    (void)state;
    for (const struct bench_operation *operation = bench_operations; operation->name; operation++) {
        struct bench_settings settings = small_settings(operation);
        check_parts(operation, &settings);
        if (bench_operation_takes(operation, BENCH_LAYOUT))
            settings.of[BENCH_LAYOUT] = BENCH_HEAL;
        if (bench_operation_takes(operation, BENCH_VALUES))
            settings.of[BENCH_VALUES] = BENCH_ANY;
        if (bench_operation_takes(operation, BENCH_PERM))
            settings.of[BENCH_PERM] = BENCH_PERM_REVERSE;
        if (bench_operation_takes(operation, BENCH_DTYPE))
            settings.of[BENCH_DTYPE] = 1 + DTYPE_INT32;
        check_parts(operation, &settings);
    }
}

/* Larger than what is uploaded and repeated: rows lie across its end. */
static void parts_of_large_data(void **state)
{
    (void)state;
    struct bench_settings settings = {{[BENCH_N] = 30000, [BENCH_BATCH] = 7}};
    check_parts(bench_operation_find("abs"), &settings);
    settings.of[BENCH_N] = 3;
    settings.of[BENCH_BATCH] = 20; /* more rows than permutations */
    struct bench_case measured;
    OK(bench_case_init(&measured, bench_operation_find("take_along_axis"), &settings, &error));
    struct result whole = run_rows(&measured, 0, 20), last = run_rows(&measured, 19, 1);
    assert_memory_equal(last.bytes, whole.bytes + whole.size / 20 * 19, last.size);
    free(whole.bytes);
    free(last.bytes);
}

static void suite_fits_together(void **state)
{
    (void)state;
    for (const struct bench_suite_case *next = bench_suite; next->operation; next++) {
        const struct bench_operation *operation = bench_operation_find(next->operation);
        struct bench_case measured;
        assert_non_null(operation);
        for (enum bench_parameter i = 0; i < BENCH_PARAMETER_COUNT; i++)
            assert_true(next->values.of[i] == 0 || bench_operation_takes(operation, i));
        OK(bench_case_init(&measured, operation, &next->values, &error));
    }
}

static void counts_units_and_bytes(void **state)
{
    (void)state;
    struct bench_case measured;
    struct bench_settings settings = {{[BENCH_N] = 4096, [BENCH_BITS] = 62, [BENCH_BATCH] = 64}};
    OK(bench_case_init(&measured, bench_operation_find("ntt"), &settings, &error));
    assert_int_equal(measured.units, 64 * 2048 * 12);
    assert_int_equal(measured.bytes, 2 * 64 * 4096 * 8);
    OK(bench_case_init(&measured, bench_operation_find("modmul_axis_sum"),
                       &(struct bench_settings){{0}}, &error));
    assert_int_equal(measured.units, 50 * 32 * 2 * 4096);
    assert_int_equal(measured.bytes, (50 * 32 + 32 + 2 * 50) * 2 * 4096 * 8);
    OK(bench_case_init(&measured, bench_operation_find("copy"),
                       &(struct bench_settings){{[BENCH_BYTES] = 1000000000}}, &error));
    assert_int_equal(measured.units, measured.bytes);
    assert_int_equal(measured.bytes, 1000000000 / (16 << 20) * (16 << 20));
}

/* ---------------------------------------------------------------- a wrong device */

static uint64_t launches_before_idling; /* of kernels that still do their work */

/* A launch that may do nothing at all. */
static cl_int CL_API_CALL idle_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                      const size_t *offset, const size_t *global,
                                      const size_t *local, cl_uint count, const cl_event *list,
                                      cl_event *event)
{
    if (launches_before_idling == 0)
        return clEnqueueBarrierWithWaitList(queue, count, list, event);
    launches_before_idling--;
    return clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, count, list,
                                  event);
}

static enum healcl_status run_with_launches(const char *name, uint64_t launches)
{
    struct opencl idle = *helper_loader();
    struct healcl_device *device;
    struct bench_options options = {.repeat = 3, .memory_limit = INT64_MAX};
    struct bench_result result;
    const struct bench_operation *operation = bench_operation_find(name);
    struct bench_settings settings = small_settings(operation);
    idle.clEnqueueNDRangeKernel = idle_kernel;
    launches_before_idling = launches;
    OK(device_open(&idle, NULL, &device, &error));
    enum healcl_status status = bench_run(device, operation, &settings, &options, &result, &error);
    healcl_device_close(device);
    return status;
}

static void wrong_results_are_noticed(void **state)
{
    (void)state;
    static const char *const names[] = {"ntt", "modmul", "set_const_val", "take_along_axis"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(run_with_launches(names[i], 0), HEALCL_DIFFERENT);
        assert_memory_equal(error.message, names[i], strlen(names[i]));
        assert_non_null(strstr(error.message, ": the device's result is wrong: "));
        healcl_error_clear(&error);
        OK(run_with_launches(names[i], UINT64_MAX));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(primes_are_primes),        cmocka_unit_test(finds_the_largest_primes),
        cmocka_unit_test(parts_are_like_the_whole), cmocka_unit_test(parts_of_large_data),
        cmocka_unit_test(suite_fits_together),      cmocka_unit_test(counts_units_and_bytes),
        DEVICE_TEST(wrong_results_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
