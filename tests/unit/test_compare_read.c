/* What a comparison makes of what processes and saved files claim. */
#include <unistd.h>

#include "compare/compare.h"
#include "test_transcript_common.h"

static struct healcl_error error;

static void fill(struct comparison *comparison)
{
    static struct compare_transcript transcript = {
        .file = "t.json", .bytes = 3, .digest = "0123456789abcdef"};
    struct compare_device *device;
    expect_ok(comparison_init(comparison, &error), &error);
    comparison->transcripts = &transcript;
    comparison->transcript_count = 1;
    expect_ok(comparison_add_device(comparison, &device, &error), &error);
}

#define RESULTS(total, compared, different) \
    "\"results\": {\"total\": " total ", \"compared\": " compared ", \"different\": " different "}"

static const struct {
    const char *results;
    enum compare_outcome outcome; /* where it says that it is verified */
} claims[] = {
    {RESULTS("3", "3", "0"), COMPARE_VERIFIED}, {RESULTS("3", "1", "0"), COMPARE_VERIFIED},
    {RESULTS("3", "0", "0"), COMPARE_UNPROVEN}, {RESULTS("0", "0", "0"), COMPARE_UNPROVEN},
    {RESULTS("3", "3", "1"), COMPARE_UNPROVEN}, {RESULTS("1", "2", "0"), COMPARE_UNPROVEN},
    {"\"results\": \"all\"", COMPARE_UNPROVEN}, {"\"other\": 1", COMPARE_UNPROVEN},
};

enum { CLAIMS = sizeof claims / sizeof *claims };

/* Neither a tick, nor a speed-up. */
static void processes_must_agree_with_themselves(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLAIMS; i++) {
        struct comparison comparison;
        struct compare_run *run;
        char text[256], shown[OUTCOME_TEXT_SIZE];
        fill(&comparison);
        expect_ok(comparison_add_run(&comparison, 0, 0, &run, &error), &error);
        snprintf(text, sizeof text, "{\"verified\": true, \"split\": {\"compute_ns\": [5]}, %s}",
                 claims[i].results);
        struct process_result process = {
            .end = PROCESS_EXITED, .is_own = true, .text = text, .size = strlen(text)};
        expect_ok(compare_read_run(&comparison, run, &process, &error), &error);
        assert_int_equal(run->outcome, claims[i].outcome);
        bool right = claims[i].outcome == COMPARE_VERIFIED;
        struct compare_speedup speedup;
        assert_int_equal(compare_is_right(run), right);
        assert_int_equal(compare_speedup_of(&comparison, run, COMPARE_COMPUTE, &speedup), right);
        assert_int_equal(*run->message == 0, right);
        assert_int_equal(strncmp(compare_outcome_text(&comparison, run, shown),
                                 right ? "verified" : "unproven: ", right ? 8 : 10),
                         0);
        comparison_release(&comparison);
    }
}

/* With nothing compared a process may say that there was nothing to verify. */
static void nothing_to_verify_is_no_claim(void **state)
{
    (void)state;
    char text[] = "{\"verified\": null, " RESULTS("3", "0", "0") "}";
    struct process_result process = {
        .end = PROCESS_EXITED, .is_own = true, .text = text, .size = strlen(text)};
    struct comparison comparison;
    struct compare_run *run;
    fill(&comparison);
    expect_ok(comparison_add_run(&comparison, 0, 0, &run, &error), &error);
    expect_ok(compare_read_run(&comparison, run, &process, &error), &error);
    assert_int_equal(run->outcome, COMPARE_UNVERIFIED);
    comparison_release(&comparison);
}

/* Reads a saved comparison with a run that has these keys. */
static void read_saved(struct comparison *comparison, const char *keys)
{
    char path[] = "/tmp/healcl_test_XXXXXX";
    size_t added = 0;
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    fprintf(file,
            "{\"devices\": [{\"index\": \"0:0\"}], \"transcripts\": [{\"bytes\": 3, \"digest\": "
            "\"0123456789abcdef\"}], \"runs\": [{\"device_at\": 0, \"transcript_at\": 0, "
            "\"outcome\": \"verified\", %s}]}",
            keys);
    fclose(file);
    fill(comparison);
    expect_ok(compare_read_baseline(comparison, path, &added, &error), &error);
    assert_int_equal(added, 1);
    unlink(path);
}

static void saved_runs_must_agree_with_themselves(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLAIMS; i++) {
        struct comparison comparison;
        read_saved(&comparison, claims[i].results);
        assert_int_equal(comparison.runs[0].outcome, claims[i].outcome);
        comparison_release(&comparison);
    }
}

/* They have segments alone: of an H100 with healcl 0.1.0, encrypted_sentiment and
 * encrypted_sharpen, whose second segment has kernels too. */
static void older_comparisons_have_what_segments_tell(void **state)
{
    (void)state;
#define SEGMENT(bytes, time) "{\"bytes\": " bytes ", \"time_ns\": " time "}"
    static const struct {
        const char *keys;
        uint64_t compute; /* 0: it is not known */
    } cases[] = {
        {"\"samples_ns\": [4027863], \"compute_ns\": 1158335, \"segments\": [" SEGMENT(
             "98336", "166629") "," SEGMENT("2457600", "2258944") "," SEGMENT("0", "1158335") "]",
         1158335},
        {"\"samples_ns\": [661900], \"compute_ns\": 233027, \"segments\": [" SEGMENT(
             "98336", "99265") "," SEGMENT("32768", "129058") "," SEGMENT("0", "103969") "]",
         0},
        {"\"samples_ns\": [2879882], \"compute_ns\": 2879882, \"segments\": [" SEGMENT(
             "19016", "2879882") "]",
         0},
        {"\"samples_ns\": [9], \"segments\": [" SEGMENT("0", "9") "]", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct comparison comparison;
        struct compare_times times = {.median = 0};
        read_saved(&comparison, cases[i].keys);
        const struct compare_run *run = &comparison.runs[0];
        assert_true(compare_times_of(run, COMPARE_WHOLE, &times));
        assert_int_equal(compare_times_of(run, COMPARE_COMPUTE, &times), cases[i].compute > 0);
        if (cases[i].compute > 0)
            assert_int_equal(times.median, cases[i].compute);
        assert_false(compare_times_of(run, COMPARE_STEADY, &times) ||
                     compare_times_of(run, COMPARE_TRANSFER, &times) ||
                     compare_times_of(run, COMPARE_DECODE, &times));
        comparison_release(&comparison);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_must_agree_with_themselves),
        cmocka_unit_test(nothing_to_verify_is_no_claim),
        cmocka_unit_test(saved_runs_must_agree_with_themselves),
        cmocka_unit_test(older_comparisons_have_what_segments_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
