/* Times beside a baseline's: intervals of medians, which runs belong together, and the sentences.
 */
#include <math.h>

#include "cli/comparison.h"
#include "core/numbers.h"
#include "test_transcript_common.h"

static void ranks_are_exact(void **state)
{
    (void)state;
    /* Ranks by exact fractions: the largest r for which fewer than r heads, or tails, of count
     * coins have a probability of 2.5 % at most. */
    const struct {
        size_t count, rank;
    } cases[] = {{0, 0},  {1, 0},  {6, 0},  {7, 1},  {9, 1},   {10, 2},   {12, 2},
                 {13, 3}, {15, 3}, {20, 5}, {30, 9}, {50, 17}, {100, 39}, {1000, 465}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(median_rank(cases[i].count, 0.975), cases[i].rank);
    assert_int_equal(median_rank(5, 0.95), 0);
    assert_int_equal(median_rank(6, 0.95), 1);
}

static void begin(struct comparison *comparison)
{
    comparison_init(comparison, 0);
    compare_put_text(comparison->top, "host.processor", "P");
    compare_put_number(comparison->top, "fail_slower_percent", 10);
    cJSON_AddItemToArray(comparison->transcripts, cJSON_CreateObject());
}

/* Adds a device of today's or, with the processor of its host, of a baseline, and its run. */
static cJSON *add(struct comparison *comparison, const char *baseline, const char *processor,
                  const char *index, const char *name)
{
    cJSON *device = compare_add_device(comparison, NULL);
    compare_put_text(device, "index", index);
    compare_put_text(device, "name", name);
    if (baseline) {
        compare_put_text(device, "baseline", baseline);
        compare_put_text(device, "host.processor", processor);
    }
    cJSON *run = compare_add_run(comparison, 0, json_number_at(comparison->top, "devices") - 1);
    compare_put_text(run, "outcome", "verified");
    return run;
}

static void put_samples(cJSON *run, const char *path, const char *samples)
{
    compare_put(run, path, cJSON_Parse(samples));
    compare_add_figures(run);
}

/* Judges a run again, and compares the text of one of its slowdowns. */
static void assert_judged(const struct comparison *comparison, cJSON *run, int number,
                          bool is_slower, const char *expected)
{
    assert_int_equal(compare_judge(comparison, run), is_slower);
    const cJSON *list = json_at(run, "slowdowns");
    assert_int_equal(cJSON_GetArraySize(list), 2);
    assert_string_equal(compare_slowdown_text(comparison, cJSON_GetArrayItem(list, number)),
                        expected);
}

static void intervals_decide(void **state)
{
    (void)state;
    /* Ranks 1 and 7 of 7, 2 and 9 of 10. */
    static const char now[] = "[160, 120, 130, 150, 140, 125, 135]";
    static const char before[] = "[90, 91, 92, 93, 94, 95, 96, 97, 100, 1000]";
    struct comparison comparison;
    begin(&comparison);
    cJSON *run = add(&comparison, NULL, NULL, "0:0", "D");
    cJSON *saved = add(&comparison, "base.json", "P", "0:0", "D");
    put_samples(run, "split.compute_ns", now);
    put_samples(saved, "split.compute_ns", before);
    assert_judged(
        &comparison, run, 0, true,
        "compute: 1.44 times the time in base.json (1.20 to 1.76 at 95 %), more than 10 % "
        "slower");
    assert_judged(&comparison, run, 1, true,
                  "steady request: cannot be judged by base.json: too few runs for an interval (0 "
                  "here, 0 in the baseline; 7 of each are needed)");
    assert_int_equal(compare_worst(&comparison), EXIT_SLOWER);
    compare_put_number(comparison.top, "fail_slower_percent", 20); /* all of it must be beyond */
    assert_judged(&comparison, run, 0, false,
                  "compute: 1.44 times the time in base.json (1.20 to 1.76 at 95 %), not certainly "
                  "more than 20 % slower");
    put_samples(run, "split.compute_ns", "[1, 2, 3, 300, 400, 400, 400]"); /* a busy machine */
    assert_judged(&comparison, run, 0, false,
                  "compute: cannot be judged by base.json: its new times spread by more than 30 %");
    put_samples(run, "split.compute_ns", now);
    put_samples(run, "split.compute_ns", "[1, 1, 1, 1, 1, 1]");
    put_samples(run, "steady.requests_ns", now);
    put_samples(saved, "steady.requests_ns", before);
    assert_judged(&comparison, run, 1, false,
                  "steady request: 1.44 times the time in base.json (1.20 to 1.76 at 95 %), not "
                  "certainly more than 20 % slower");
    assert_judged(
        &comparison, run, 0, false,
        "compute: cannot be judged by base.json: too few runs for an interval (6 here, 10 "
        "in the baseline; 7 of each are needed)");
    comparison_release(&comparison);
}

static void baselines_are_of_the_same_device(void **state)
{
    (void)state;
    static const struct {
        const char *baseline, *processor, *index, *name;
    } saved[] = {{"1.json", "P", "0:0", "D"}, /* a twin */
                 {"1.json", "P", "0:1", "D"},
                 {"2.json", "P", "5:0", "D"}, /* called the same, somewhere else */
                 {"2.json", "P", "0:1", "E"},
                 {"3.json", "Q", "0:1", "D"}};
    static const char *const files[] = {"1.json", "1.json", "2.json", "2.json"};
    struct comparison comparison;
    begin(&comparison);
    cJSON *run = add(&comparison, NULL, NULL, "0:1", "D");
    assert_false(compare_judge(&comparison, run));
    assert_string_equal(json_text(json_at(run, "slowdowns")->child, "not_judged_because"),
                        "no baseline has this transcript on this device and processor");
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++)
        add(&comparison, saved[i].baseline, saved[i].processor, saved[i].index, saved[i].name);
    assert_false(compare_judge(&comparison, run));
    const cJSON *list = json_at(run, "slowdowns");
    assert_int_equal(cJSON_GetArraySize(list), 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(json_text(cJSON_GetArrayItem(list, i), "baseline"), files[i]);
    comparison_release(&comparison);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_exact),
        cmocka_unit_test(intervals_decide),
        cmocka_unit_test(baselines_are_of_the_same_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
