/* Times beside a baseline's: intervals of medians, which runs belong together, and what is told. */
#include <math.h>

#include "compare/compare.h"
#include "core/numbers.h"
#include "test_transcript_common.h"

static void test_ranks(void **state)
{
    (void)state;
    /* By exact fractions: the largest r for which less than r heads, or tails, of count coins have
     * a probability of 2.5 % at most. */
    const struct {
        size_t count, rank;
    } cases[] = {{0, 0},  {1, 0},  {6, 0},  {7, 1},  {9, 1},   {10, 2},   {12, 2},
                 {13, 3}, {15, 3}, {20, 5}, {30, 9}, {50, 17}, {100, 39}, {1000, 465}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(median_rank(cases[i].count, 0.975), cases[i].rank);
    assert_int_equal(median_rank(SLOWDOWN_SAMPLES, 0.975), 1);
    assert_int_equal(median_rank(SLOWDOWN_SAMPLES - 1, 0.975), 0);
    assert_int_equal(median_rank(5, 0.95), 0);
    assert_int_equal(median_rank(6, 0.95), 1);
}

/* Adds a device of today's, or with origin a saved one, and its run of the one transcript. */
static void add(struct comparison *comparison, const struct compare_origin *origin,
                const char *selector, const char *name, uint64_t *samples, size_t count)
{
    struct healcl_error error = {.status = HEALCL_OK};
    struct compare_device *device;
    struct compare_run *run;
    expect_ok(comparison_add_device(comparison, &device, &error), &error);
    device->selector = selector;
    device->name = name;
    if (origin)
        device->origin = origin;
    expect_ok(comparison_add_run(comparison, 0, comparison->device_count - 1, &run, &error),
              &error);
    run->outcome = COMPARE_VERIFIED;
    run->times[COMPARE_COMPUTE] = (struct compare_samples){samples, count};
}

static bool is_about(double value, double expected)
{
    return fabs(value - expected) < 1e-9;
}

static void test_intervals(void **state)
{
    (void)state;
    struct comparison comparison;
    struct healcl_error error = {.status = HEALCL_OK};
    struct compare_slowdown slowdowns[SLOWDOWNS_MAX];
    char text[SLOWDOWN_TEXT_SIZE];
    /* Ranks 1 and 7 of 7, 2 and 9 of 10. */
    uint64_t now[] = {160, 120, 130, 150, 140, 125, 135};
    uint64_t before[] = {90, 91, 92, 93, 94, 95, 96, 97, 100, 1000};
    const struct compare_origin saved = {.baseline = "base.json", .processor = "P"};
    expect_ok(comparison_init(&comparison, &error), &error);
    comparison.origin.processor = "P";
    add(&comparison, NULL, "0:0", "D", now, 7);
    add(&comparison, &saved, "0:0", "D", before, 10);

    assert_int_equal(compare_slowdowns_of(&comparison, &comparison.runs[0], slowdowns), 0);
    comparison.judges_times = true;
    comparison.fail_slower = 19.9;
    assert_int_equal(compare_slowdowns_of(&comparison, &comparison.runs[1], slowdowns), 0);
    assert_int_equal(compare_slowdowns_of(&comparison, &comparison.runs[0], slowdowns), 2);
    assert_ptr_equal(slowdowns[0].baseline, &comparison.runs[1]);
    assert_null(slowdowns[0].reason);
    assert_true(is_about(slowdowns[0].ratio, 135.0 / 94)); /* medians are rounded down */
    assert_true(is_about(slowdowns[0].low, 120.0 / 100));
    assert_true(is_about(slowdowns[0].high, 160.0 / 91));
    assert_true(slowdowns[0].is_slower && compare_is_slower(&comparison, &comparison.runs[0]));
    assert_string_equal(compare_slowdown_text(&comparison, &slowdowns[0], text),
                        "compute: 1.44 times the time in base.json (1.20 to 1.76 at 95 %), more "
                        "than 19.9 % slower");
    assert_string_equal(compare_slowdown_text(&comparison, &slowdowns[1], text),
                        "steady request: it is not judged by base.json: too few runs for an "
                        "interval (0 here, 0 there, 7 of each are needed)");
    comparison.runs[0].times[COMPARE_STEADY] = comparison.runs[0].times[COMPARE_COMPUTE];
    comparison.runs[1].times[COMPARE_STEADY] = comparison.runs[1].times[COMPARE_COMPUTE];
    comparison.runs[0].times[COMPARE_COMPUTE].count = 0;
    assert_true(compare_is_slower(&comparison, &comparison.runs[0]));
    comparison.runs[0].times[COMPARE_COMPUTE].count = 7;
    comparison.fail_slower = 20; /* the interval must lie beyond it */
    assert_false(compare_is_slower(&comparison, &comparison.runs[0]));

    now[5] = now[6] = 400; /* beyond the quartile: a busy machine */
    now[3] = 300;
    assert_int_equal(compare_slowdowns_of(&comparison, &comparison.runs[0], slowdowns), 2);
    assert_false(slowdowns[0].is_slower);
    assert_string_equal(compare_slowdown_text(&comparison, &slowdowns[0], text),
                        "compute: it is not judged by base.json: its times here spread by more "
                        "than 30 %");

    comparison.runs[0].times[COMPARE_COMPUTE].count = 6;
    assert_int_equal(compare_slowdowns_of(&comparison, &comparison.runs[0], slowdowns), 2);
    assert_non_null(slowdowns[0].reason);
    comparison.runs[0].times[COMPARE_COMPUTE].count = 7;
    comparison.runs[1].outcome = COMPARE_DIFFERENT;
    assert_int_equal(compare_slowdowns_of(&comparison, &comparison.runs[0], slowdowns), 2);
    assert_non_null(slowdowns[0].reason);
    comparison.runs[0].outcome = COMPARE_FAILED;
    assert_int_equal(compare_slowdowns_of(&comparison, &comparison.runs[0], slowdowns), 0);
    comparison_release(&comparison);
}

static void test_which_device(void **state)
{
    (void)state;
    struct comparison comparison;
    struct healcl_error error = {.status = HEALCL_OK};
    struct compare_slowdown slowdowns[SLOWDOWNS_MAX];
    const struct compare_origin first = {.baseline = "1.json", .processor = "P"};
    const struct compare_origin second = {.baseline = "2.json", .processor = "P"};
    const struct compare_origin other = {.baseline = "3.json", .processor = "Q"};
    expect_ok(comparison_init(&comparison, &error), &error);
    comparison.origin.processor = "P";
    comparison.judges_times = true;
    add(&comparison, NULL, "0:1", "D", NULL, 0);
    assert_int_equal(compare_slowdowns_of(&comparison, &comparison.runs[0], slowdowns), 1);
    assert_null(slowdowns[0].baseline);
    assert_non_null(slowdowns[0].reason);

    add(&comparison, &first, "0:0", "D", NULL, 0); /* a twin */
    add(&comparison, &first, "0:1", "D", NULL, 0);
    add(&comparison, &second, "5:0", "D", NULL, 0); /* called the same, somewhere else */
    add(&comparison, &second, "0:1", "E", NULL, 0);
    add(&comparison, &other, "0:1", "D", NULL, 0);
    assert_int_equal(compare_slowdowns_of(&comparison, &comparison.runs[0], slowdowns), 4);
    assert_ptr_equal(slowdowns[0].baseline, &comparison.runs[2]);
    assert_ptr_equal(slowdowns[2].baseline, &comparison.runs[3]);
    comparison_release(&comparison);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_which_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
