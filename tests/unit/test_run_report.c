/* healcl_run on the host reference: verdicts, repetitions, what the observer hears, files. */
#include <sys/stat.h>
#include <unistd.h>

#include "test_transcript_common.h"

/* ---------------------------------------------------------------- transcripts by hand */

#define TENSOR(name) "{\"arg_type\":\"DEVICE_TENSOR\",\"value\":{\"inf_name\":" name "}}"
#define OPERATION(name, args, out) \
    "{\"type\":\"DEVICE_OP\",\"op\":{\"name\":\"" name "\",\"args\":[" args "],\"out\":" out "}}"
#define NUMBER(value) "{\"arg_type\":\"INT\",\"value\":" value "}"
#define ZEROS(name)                                                          \
    OPERATION("zeros",                                                       \
              "{\"arg_type\":\"SHAPE\",\"value\":[" NUMBER(                  \
                  "2") "]},"                                                 \
                       "{\"arg_type\":\"TENSOR_TYPE\",\"value\":\"int64\"}", \
              TENSOR(name))

struct heard {
    char lines[16][256];
    size_t line_count;
    char warning[256];
    size_t segments;
};

struct fixture {
    char folder[64];
    char path[128];
    struct healcl_transcript *transcript;
    struct healcl_error error;
    struct heard heard;
    struct healcl_run_options options;
};

static void on_difference(void *context, const char *line)
{
    struct heard *heard = context;
    assert_true(heard->line_count < 16);
    snprintf(heard->lines[heard->line_count++], sizeof heard->lines[0], "%s", line);
}

static void on_warning(void *context, const char *line)
{
    struct heard *heard = context;
    snprintf(heard->warning, sizeof heard->warning, "%s", line);
}

static void on_progress(void *context, size_t segment, size_t count, const char *name, size_t step,
                        size_t steps)
{
    struct heard *heard = context;
    assert_true(segment < count && step <= steps && name);
    heard->segments += step == 0;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    strcpy(f->folder, "/tmp/healcl-test-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    put(f->path, sizeof f->path, "%s/transcript.json", f->folder);
    f->options.observer = (struct healcl_observer){.context = &f->heard,
                                                   .difference = on_difference,
                                                   .warning = on_warning,
                                                   .progress = on_progress};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    healcl_transcript_close(f->transcript);
    healcl_error_clear(&f->error);
    char command[128];
    put(command, sizeof command, "rm -r '%s'", f->folder);
    int code = system(command);
    free(f);
    return code;
}

static void open_text(struct fixture *f, const char *text)
{
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    expect_ok(healcl_transcript_open(f->path, NULL, &f->transcript, &f->error), &f->error);
}

/* A download of tensor 1 that expects these two values; with no values it expects none. */
static void append_download(char *text, const int64_t *expected)
{
    if (!expected) {
        strcat(text, OPERATION("device_to_host", TENSOR("1"),
                               "{\"arg_type\":\"HOST_TENSOR\",\"value\":null}"));
        return;
    }
    char payload[TEXT_SIZE];
    make_payload("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }\n", expected,
                 2 * sizeof *expected, payload);
    strcat(text, "{\"type\":\"DEVICE_OP\",\"op\":{\"name\":\"device_to_host\",\"args\":[" TENSOR(
                     "1") "],\"out\":{\"arg_type\":\"HOST_TENSOR\",\"value\":{\"tensor_base64\":"
                          "{\"type\":\"numpy\",\"data\":\"");
    strcat(text, payload);
    strcat(text, "\"}}}}}");
}

/* Zeros, downloaded twice; NULL: without an expectation. */
static void open_downloads(struct fixture *f, const int64_t *first, const int64_t *second)
{
    char text[TEXT_SIZE] = "[" ZEROS("1") ",{\"type\":\"SEGMENT_START\",\"name\":\"down\"},";
    append_download(text, first);
    strcat(text, ",");
    append_download(text, second);
    strcat(text, ",{\"type\":\"SEGMENT_END\"}]");
    open_text(f, text);
}

static struct healcl_report *run(struct fixture *f)
{
    struct healcl_report *report = NULL;
    expect_ok(healcl_run(f->transcript, NULL, &f->options, &report, &f->error), &f->error);
    assert_non_null(report);
    return report;
}

static const int64_t zeros[] = {0, 0}, other[] = {0, 9};

/* ---------------------------------------------------------------- verdicts */

static void test_verified(void **state)
{
    struct fixture *f = *state;
    open_downloads(f, zeros, zeros);
    struct healcl_report *report = run(f);
    assert_int_equal(report->verdict, HEALCL_VERIFIED);
    assert_int_equal(report->results, 2);
    assert_int_equal(report->results_compared, 2);
    assert_int_equal(report->results_different, 0);
    assert_int_equal(f->heard.line_count, 0);
    assert_int_equal(f->heard.segments, 2);
    healcl_report_free(report);
}

/* The report outlives the transcript. */
static void test_segments(void **state)
{
    struct fixture *f = *state;
    open_downloads(f, zeros, NULL);
    struct healcl_report *report = run(f);
    healcl_transcript_close(f->transcript);
    f->transcript = NULL;
    assert_int_equal(report->segment_count, 2);
    assert_string_equal(report->segments[0].name, "");
    assert_int_equal(report->segments[0].operations, 1);
    assert_string_equal(report->segments[0].profiles[0].name, "zeros");
    assert_string_equal(report->segments[1].name, "down");
    assert_int_equal(report->segments[1].operations, 2);
    assert_int_equal(report->segments[1].bytes_down, 32);
    assert_int_equal(report->segments[1].profile_count, 1);
    assert_string_equal(report->segments[1].profiles[0].name, "device_to_host");
    assert_int_equal(report->segments[1].profiles[0].count, 2);
    assert_int_equal(report->segments[1].profiles[0].nanoseconds, 0); /* not asked for */
    assert_int_equal(report->device_bytes_peak, 16);
    assert_null(report->compute_nanoseconds);
    healcl_report_free(report);
}

static void test_differs(void **state)
{
    struct fixture *f = *state;
    open_downloads(f, zeros, other);
    struct healcl_report *report = run(f);
    assert_int_equal(report->verdict, HEALCL_DIFFERS);
    assert_int_equal(report->results_different, 1);
    assert_int_equal(f->heard.line_count, 2);
    assert_string_equal(f->heard.lines[0],
                        "entry 3 (device_to_host): tensor 1 of shape [2]: 1 of 2 values differs");
    assert_string_equal(f->heard.lines[1], "  [1]: 0, expected 9");
    healcl_report_free(report);
}

static void test_partly_compared(void **state)
{
    struct fixture *f = *state;
    open_downloads(f, NULL, zeros);
    struct healcl_report *report = run(f);
    assert_int_equal(report->verdict, HEALCL_VERIFIED);
    assert_int_equal(report->results, 2);
    assert_int_equal(report->results_compared, 1);
    healcl_report_free(report);
}

static void test_nothing_to_verify(void **state)
{
    struct fixture *f = *state;
    open_downloads(f, NULL, NULL);
    struct healcl_report *report = run(f);
    assert_int_equal(report->verdict, HEALCL_NOTHING_TO_VERIFY);
    healcl_report_free(report);
}

static void test_no_verify(void **state)
{
    struct fixture *f = *state;
    open_downloads(f, other, other);
    f->options.no_verify = true;
    struct healcl_report *report = run(f);
    assert_int_equal(report->verdict, HEALCL_NOTHING_TO_VERIFY);
    assert_int_equal(report->results_compared, 0);
    assert_int_equal(f->heard.line_count, 0);
    healcl_report_free(report);
}

static void test_without_options(void **state)
{
    struct fixture *f = *state;
    open_downloads(f, other, zeros);
    struct healcl_report *report = NULL;
    expect_ok(healcl_run(f->transcript, NULL, NULL, &report, NULL), &f->error);
    assert_int_equal(report->verdict, HEALCL_DIFFERS);
    healcl_report_free(report);
}

/* ---------------------------------------------------------------- repetitions */

static void test_repeated(void **state)
{
    struct fixture *f = *state;
    open_downloads(f, zeros, other);
    f->options.repeat = 4;
    f->options.profile = true;
    struct healcl_report *report = run(f);
    assert_int_equal(report->run_count, 4);
    assert_int_equal(report->results, 2);
    assert_int_equal(report->results_compared, 2);
    assert_int_equal(report->results_different, 1);
    assert_int_equal(f->heard.line_count, 2); /* reported once */
    assert_int_equal(f->heard.segments, 8);
    uint64_t sum = 0;
    for (size_t i = 0; i < 4; i++) {
        assert_true(report->run_nanoseconds[i] > 0);
        assert_true(report->compute_nanoseconds[i] > 0 && report->decode_nanoseconds[i] == 0);
        assert_true(report->compute_nanoseconds[i] < report->run_nanoseconds[i]);
        sum += report->run_nanoseconds[i];
    }
    assert_true(report->segments[0].nanoseconds + report->segments[1].nanoseconds <= sum);
    assert_true(report->segments[0].profiles[0].nanoseconds > 0);
    assert_true(report->operations_by_host); /* the reference takes them on the way */
    assert_int_equal(report->profiled_count, 0);
    healcl_report_free(report);
}

/* ---------------------------------------------------------------- warnings and refusals */

static void test_dropped_digits(void **state)
{
    struct fixture *f = *state;
    open_text(
        f,
        "[" ZEROS("1") "," OPERATION(
            "set_const_val", TENSOR("1") "," NUMBER("9"),
            TENSOR(
                "1")) "," OPERATION("zeros",
                                    "{\"arg_type\":\"SHAPE\",\"value\":[" NUMBER("2") "," NUMBER(
                                        "1") "]},"
                                             "{\"arg_type\":\"TENSOR_TYPE\",\"value\":\"int64\"}",
                                    TENSOR(
                                        "2")) "," OPERATION("apply_g_decomp",
                                                            TENSOR("1") "," NUMBER("1") "," NUMBER(
                                                                "3") "," TENSOR("2"),
                                                            TENSOR("2")) "]");
    f->options.repeat = 2;
    struct healcl_report *report = run(f);
    assert_int_equal(report->dropped_digits, 2);
    assert_string_equal(f->heard.warning, "digits beyond g_exp were dropped from 2 values");
    healcl_report_free(report);
}

#define GROW(from, to) OPERATION("unsqueeze", TENSOR(from) "," NUMBER("-1"), TENSOR(to))
#define EXPAND(from, to) \
    OPERATION("expand", TENSOR(from) "," NUMBER("1") "," NUMBER("2"), TENSOR(to))

/* Tensor 3 is [2,1,1]: either axis could be meant. */
static void test_order_of_expand(void **state)
{
    struct fixture *f = *state;
    open_text(f, "[" ZEROS("1") "," GROW("1", "2") "," GROW("2", "3") "," EXPAND("3", "4") "]");
    healcl_report_free(run(f));
    assert_string_equal(f->heard.warning, "entry 3 (expand): read as axis 1, repeats 2; HEAL's SDK "
                                          "has repeats first (--expand sdk)");
    healcl_transcript_close(f->transcript);
    open_text(f, "[" ZEROS("1") "," GROW("1", "2") "," GROW("2", "3") "," EXPAND(
                     "3", "4") "," EXPAND("3", "5") "]");
    healcl_report_free(run(f));
    assert_string_equal(f->heard.warning, "entry 3 (expand): read as axis 1, repeats 2, and 1 more "
                                          "in this order; HEAL's SDK has repeats first (--expand "
                                          "sdk)");
    healcl_transcript_close(f->transcript);
    f->heard.warning[0] = 0;
    const struct healcl_plan_options options = {.expand = HEALCL_EXPAND_SPECIFICATION};
    expect_ok(healcl_transcript_open(f->path, &options, &f->transcript, &f->error), &f->error);
    healcl_report_free(run(f));
    assert_string_equal(f->heard.warning, "");
    healcl_transcript_close(f->transcript);
    open_text(f, "[" ZEROS("1") "," GROW("1", "2") "," EXPAND("2", "3") "]");
    healcl_report_free(run(f));
    assert_string_equal(f->heard.warning, ""); /* [2,1]: there is no axis 2 */
}

static void test_refused_by_data(void **state)
{
    struct fixture *f = *state;
    open_text(f, "[" ZEROS("1") "," OPERATION(
                     "_mod_tt", TENSOR("1") "," TENSOR("1") "," TENSOR("1"), TENSOR("1")) "]");
    struct healcl_report *report = NULL;
    expect_refusal(healcl_run(f->transcript, NULL, NULL, &report, &f->error), &f->error,
                   "entry 1 (_mod_tt): argument 'b': 0 at [0]");
    assert_null(report);
}

/* ---------------------------------------------------------------- files */

static void expect_file(const struct fixture *f, const char *name, const char *part)
{
    char path[256], text[4096];
    put(path, sizeof path, "%s/%s", f->folder, name);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s is missing", path);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    if (!strstr(text, part))
        fail_msg("%s does not hold '%s' but '%s'", path, part, text);
}

static void test_dump(void **state)
{
    struct fixture *f = *state;
    open_downloads(f, zeros, NULL);
    char folder[128], path[192];
    put(folder, sizeof folder, "%s/out", f->folder);
    f->options.dump_dir = folder;
    f->options.repeat = 2;
    healcl_report_free(run(f));
    put(path, sizeof path, "%s/entry_000002_1.npy", folder);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_size, 128 + 16);
    expect_file(f, "out/results.json", "\"file\":\t\"entry_000002_1.npy\"");
    expect_file(f, "out/results.json", "\"verified\":\ttrue");
    expect_file(f, "out/results.json", "\"verified\":\tnull");

    f->options.dump_dir = f->path; /* a file */
    struct healcl_report *report = NULL;
    expect_failure(healcl_run(f->transcript, NULL, &f->options, &report, &f->error), &f->error,
                   HEALCL_USAGE, "Not a directory");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_verified),        TEST(test_segments),          TEST(test_differs),
        TEST(test_partly_compared), TEST(test_nothing_to_verify), TEST(test_no_verify),
        TEST(test_without_options), TEST(test_repeated),          TEST(test_dropped_digits),
        TEST(test_order_of_expand), TEST(test_refused_by_data),   TEST(test_dump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
