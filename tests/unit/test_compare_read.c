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
        snprintf(text, sizeof text, "{\"verified\": true, \"runs_ns\": [5], %s}",
                 claims[i].results);
        struct process_result process = {
            .end = PROCESS_EXITED, .is_own = true, .text = text, .size = strlen(text)};
        expect_ok(compare_read_run(&comparison, run, &process, &error), &error);
        assert_int_equal(run->outcome, claims[i].outcome);
        bool right = claims[i].outcome == COMPARE_VERIFIED;
        struct compare_speedup speedup;
        assert_int_equal(compare_is_right(run), right);
        assert_int_equal(compare_speedup_of(&comparison, run, &speedup), right);
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

static void saved_runs_must_agree_with_themselves(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLAIMS; i++) {
        struct comparison comparison;
        char path[] = "/tmp/healcl_test_XXXXXX";
        size_t added = 0;
        FILE *file = fdopen(mkstemp(path), "w");
        assert_non_null(file);
        fprintf(
            file,
            "{\"devices\": [{\"index\": \"0:0\"}], \"transcripts\": [{\"bytes\": 3, \"digest\": "
            "\"0123456789abcdef\"}], \"runs\": [{\"device_at\": 0, \"transcript_at\": 0, "
            "\"outcome\": \"verified\", %s}]}",
            claims[i].results);
        fclose(file);
        fill(&comparison);
        expect_ok(compare_read_baseline(&comparison, path, &added, &error), &error);
        assert_int_equal(added, 1);
        assert_int_equal(comparison.runs[0].outcome, claims[i].outcome);
        comparison_release(&comparison);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_must_agree_with_themselves),
        cmocka_unit_test(nothing_to_verify_is_no_claim),
        cmocka_unit_test(saved_runs_must_agree_with_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
