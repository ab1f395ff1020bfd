/* Comparisons from the claims of processes and saved files: faults, means, names, and output. */
#include <math.h>
#include <unistd.h>

#include "cli/comparison.h"
#include "test_transcript_common.h"

enum { MS = 1000000 }; /* nanoseconds */

/* ---------------------------------------------------------------- comparisons by hand */

static void begin(struct comparison *comparison, size_t transcripts)
{
    static const char *const names[] = {"/tmp/a.json", "/tmp/b.json", "/tmp/c.json"};
    comparison_init(comparison, 1 << 30);
    compare_put_text(comparison->top, "host.processor", "AMD EPYC 9354 32-Core Processor");
    compare_put_number(comparison->top, "repeat", 5);
    for (size_t i = 0; i < transcripts; i++) {
        cJSON *transcript = cJSON_CreateObject();
        compare_put_text(transcript, "file", names[i]);
        compare_put_number(transcript, "bytes", 3);
        compare_put_text(transcript, "digest", "0123456789abcdef");
        cJSON_AddItemToArray(comparison->transcripts, transcript);
    }
}

static cJSON *add_device(struct comparison *comparison, const char *index, const char *name,
                         const char *platform)
{
    cJSON *device = compare_add_device(comparison, NULL);
    compare_put_text(device, "index", index);
    compare_put_text(device, "name", name);
    compare_put_text(device, "platform", platform);
    compare_put_text(device, "driver", "1.0");
    return device;
}

/* Reads what a process with this exit code wrote. */
static cJSON *read_run(struct comparison *comparison, size_t transcript, size_t device, int code,
                       const char *text)
{
    cJSON *run = compare_add_run(comparison, transcript, device);
    const struct process_result process = {.end = code < 0 ? PROCESS_KILLED : PROCESS_EXITED,
                                           .code = abs(code),
                                           .is_own = true,
                                           .text = (char *)(uintptr_t)text,
                                           .size = strlen(text)};
    compare_take_run(comparison, run, &process);
    return run;
}

/* So many repetitions and requests, all of them compute: nanoseconds times percents / 100. */
static cJSON *add_samples(struct comparison *comparison, size_t transcript, size_t device,
                          double nanoseconds, const int *percents, size_t count)
{
    cJSON *top = cJSON_Parse("{\"verified\": true, \"results\": {\"total\": 3, \"compared\": 3}}");
    double *samples = calloc(count + 1, sizeof *samples);
    assert_non_null(samples);
    for (size_t i = 0; i < count; i++)
        samples[i] = floor(nanoseconds * percents[i] / 100);
    static const char *const paths[] = {"runs_ns", "split.compute_ns", "steady.requests_ns"};
    for (size_t i = 0; i < 3; i++)
        compare_put(top, paths[i], cJSON_CreateDoubleArray(samples, (int)count));
    char *text = cJSON_Print(top);
    cJSON *run = read_run(comparison, transcript, device, 0, text);
    cJSON_free(text);
    cJSON_Delete(top);
    free(samples);
    return run;
}

static cJSON *add_run(struct comparison *comparison, size_t transcript, size_t device, double ms)
{
    return add_samples(comparison, transcript, device, ms * MS, (const int[]){100}, 1);
}

/* The quartiles are 90 and 110 % of the time. */
static cJSON *add_spread(struct comparison *comparison, size_t transcript, size_t device, double ms)
{
    return add_samples(comparison, transcript, device, ms * MS,
                       (const int[]){80, 90, 100, 110, 120}, 5);
}

static void print_terminal(const struct comparison *comparison, FILE *stream)
{
    const struct style style = {.stream = stream};
    compare_print_table(comparison, &style);
}

/* Returns the output of a printer; to be freed. */
static char *printed_by(void (*print)(const struct comparison *, FILE *),
                        const struct comparison *comparison)
{
    static char *text; /* not on the stack: gcc 12 takes what is in it for that */
    static size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    print(comparison, stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("there is no \"%s\" in:\n%s", part, text);
}

static void assert_prints(void (*print)(const struct comparison *, FILE *),
                          const struct comparison *comparison, const char *part)
{
    char *text = printed_by(print, comparison);
    assert_contains(text, part);
    free(text);
}

static void assert_lead(struct comparison *comparison, const char *part)
{
    compare_conclude(comparison);
    assert_contains(compare_lead(comparison), part);
}

static void assert_about(const cJSON *object, const char *path, double value)
{
    if (fabs(compare_number(object, path) - value) > 1e-7 * value)
        fail_msg("%s is %.9g, not %.9g", path, compare_number(object, path), value);
}

/* ---------------------------------------------------------------- means and the lead */

/* 2.74 and 1.09 times as fast: 1.73 hides that, alone. */
static void means_come_with_their_range(void **state)
{
    (void)state;
    struct comparison comparison;
    begin(&comparison, 2);
    add_device(&comparison, "0:0", "Slow", "One");
    const cJSON *fast = add_device(&comparison, "0:1", "Fast", "One");
    static const double times[][2] = {{274, 100}, {109, 100}};
    for (size_t i = 0; i < 4; i++)
        add_run(&comparison, i / 2, i % 2, times[i / 2][i % 2]);
    assert_lead(&comparison,
                "Slow got 6 of 6 results right. Fast got 6 of 6 results right. In compute Fast is "
                "faster than Slow "
                "on 2 of 2 transcripts, and 1.73 times as fast on average (1.09 to 2.74). In a "
                "steady request Fast is ");
    assert_about(fast, "mean_speedup.factor", sqrt(2.74 * 1.09));
    assert_about(fast, "mean_speedup.least", 1.09);
    assert_about(fast, "mean_speedup.most", 2.74);
    assert_prints(print_terminal, &comparison,
                  "\nspeed-up   compute  least  most  steady  least  most\n"
                  "0:0  Slow     1.00   1.00  1.00    1.00   1.00  1.00\n"
                  "0:1  Fast     1.73   1.09  2.74    1.73   1.09  2.74\n"
                  "means: geometric ones over 2 of 2 transcripts; 1.00 is Slow\n");
    comparison_release(&comparison);
}

/* A device that crashed neither is the fastest nor takes transcripts from the others, and what none
 * has run does not count. */
static void what_all_have_run_counts(void **state)
{
    (void)state;
    static const char refused[] = "{\"error\": {\"status\": \"refused\", \"message\": \"no\"}}";
    struct comparison comparison;
    begin(&comparison, 3);
    const cJSON *broken = add_device(&comparison, "0:0", "Broken", "One");
    add_device(&comparison, "0:1", "Slow", "One");
    add_device(&comparison, "0:2", "Fast", "One");
    add_run(&comparison, 0, 0, 1);
    read_run(&comparison, 1, 0, -11, "");
    for (size_t i = 0; i < 2; i++) {
        add_run(&comparison, i, 1, 400);
        add_run(&comparison, i, 2, 100);
    }
    for (size_t j = 0; j < 3; j++)
        read_run(&comparison, 2, j, 3, refused);
    assert_lead(&comparison,
                "Broken got 3 of 3 results right and failed in 1 of 2 runs. Slow got 6 of 6 "
                "results right. Fast got 6 of 6 results right. 1 transcript is refused. In "
                "compute Fast is faster than Slow on 2 of 2 transcripts, and 4.00 times as fast "
                "on average");
    assert_true(compare_is_at_fault(&comparison, 0) && !compare_is_at_fault(&comparison, 1));
    assert_int_equal(comparison.base, 1);
    assert_false(cJSON_IsTrue(json_at(compare_transcript(&comparison, 2), "in_mean")));
    assert_null(json_at(broken, "mean_speedup"));
    comparison_release(&comparison);
}

/* The host reference decides what is right, and is never the fastest. */
static void the_reference_never_leads(void **state)
{
    (void)state;
    static const struct {
        double chip, other, reference; /* milliseconds; 0: there is no such device */
        const char *lead;
    } cases[] = {
        {10, 0, 5,
         "steady request Chip is slower than the host reference on 1 of 1 transcript, "
         "and 0.50 times as fast (0.50 to 0.50)."},
        {10, 0, 10,
         "In compute the difference between Chip and the host reference is within noise: 1.00 "
         "times as "
         "fast (1.00 to 1.00)."},
        {10, 20, 5,
         "than Other on 1 of 1 transcript, and 2.00 times as fast (2.00 to 2.00). In compute Chip "
         "is slower than "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct comparison comparison;
        begin(&comparison, 1);
        add_device(&comparison, COMPARE_REFERENCE, "host reference", "healcl");
        add_device(&comparison, "0:0", "Chip", "One");
        add_run(&comparison, 0, 0, cases[i].reference);
        add_run(&comparison, 0, 1, cases[i].chip);
        if (cases[i].other > 0) {
            add_device(&comparison, "1:0", "Other", "One");
            add_run(&comparison, 0, 2, cases[i].other);
        }
        assert_lead(&comparison, cases[i].lead);
        comparison_release(&comparison);
    }
}

static void put_operations(cJSON *run, double count, double bytes)
{
    cJSON *kinds = cJSON_Parse("[{\"name\": \"ntt\"}, {\"name\": \"reshape\", \"count\": 100}, "
                               "{\"name\": \"host_to_device\", \"bytes\": 1e9, \"count\": 1}]");
    compare_put_number(kinds->child, "count", count);
    compare_put_number(kinds->child, "bytes", count * bytes);
    compare_put(run, "ops", kinds);
}

/* The compute time of the fastest device, not of the host reference, and the operations decide. */
static void small_transcripts_count_in_no_mean(void **state)
{
    (void)state;
    static const double times[3][3] = {{4, 0.0999, 0.001}, {0.3, 0.1, 0.0999}, {300, 200, 1}};
    struct comparison comparison;
    begin(&comparison, 3);
    add_device(&comparison, "0:0", "Slow", "One");
    add_device(&comparison, "0:1", "Fast", "One");
    add_device(&comparison, COMPARE_REFERENCE, "host reference", "healcl");
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            put_operations(add_run(&comparison, i, j, times[i][j]), i == 2 ? 2000 : 3,
                           i == 2 ? 16383 : 16384);
    assert_lead(&comparison,
                " 2 transcripts are too small to tell devices apart. In compute Fast is "
                "faster than Slow on 1 of 1 transcript, and 3.00 times as fast (3.00 to 3.00).");
    assert_lead(&comparison,
                " Transcripts that are too small, or that not all ran right, are left out.");
    for (size_t i = 0; i < 3; i++) {
        const cJSON *transcript = compare_transcript(&comparison, i);
        assert_int_equal(cJSON_IsTrue(json_at(transcript, "too_small")), i != 1);
        assert_int_equal(cJSON_IsTrue(json_at(transcript, "in_mean")), i == 1);
    }
    assert_prints(print_terminal, &comparison, "Too small to tell devices apart: ");
    assert_prints(compare_print_markdown, &comparison, "/tmp/a.json \\(too small\\)");
    comparison_release(&comparison);
}

/* The mean would hide that it is slower on one, and says nothing itself. */
static void the_lead_claims_what_intervals_show(void **state)
{
    (void)state;
    static const double reference[] = {311, 238, 20};
    struct comparison comparison;
    begin(&comparison, 3);
    add_device(&comparison, "0:0", "Chip", "One");
    add_device(&comparison, COMPARE_REFERENCE, "host reference", "healcl");
    for (size_t i = 0; i < 3; i++) {
        add_spread(&comparison, i, 0, 80);
        cJSON *run = add_spread(&comparison, i, 1, reference[i]);
        cJSON_DeleteItemFromObject(run, "steady_ns"); /* not measured */
    }
    assert_lead(&comparison, " right. In compute Chip is faster than the host reference on 2 of 3 "
                             "transcripts, slower on 1, and 1.42 times as fast on average (0.25 "
                             "to 3.89).");
    compare_put_number(comparison.top, "repeat", 1); /* there is no interval */
    assert_lead(&comparison, "right. One run of each is too few to compare devices.");
    comparison_release(&comparison);
}

static void noise_is_a_warning(void **state)
{
    (void)state;
    for (int step = 30; step <= 31; step++) { /* percent of the median */
        struct comparison comparison;
        begin(&comparison, 1);
        add_device(&comparison, "0:0", "Chip", "One");
        add_samples(&comparison, 0, 0, 100 * MS,
                    (const int[]){100 - 2 * step, 100 - step, 100, 100 + step, 100 + 2 * step}, 5);
        compare_conclude(&comparison);
        char *text = printed_by(compare_print_markdown, &comparison);
        assert_int_equal(strstr(text, "100 ms \\(noisy\\) | 31.0 % |") != NULL, step > 30);
        assert_int_equal(strstr(text, "Warning\\: the times of 1 run spread by more than 30 %.") !=
                             NULL,
                         step > 30);
        free(text);
        comparison_release(&comparison);
    }
}

/* Terminal, Markdown and page mark the same times and speed-ups; times below 0.1 ms always spread.
 */
static void every_form_says_the_same_of_noise(void **state)
{
    (void)state;
    for (double ms = 0.09; ms < 0.2; ms += 0.02) {
        struct comparison comparison;
        const bool is_noisy = ms > 0.1;
        begin(&comparison, 1);
        add_device(&comparison, "0:0", "Chip", "One");
        add_device(&comparison, "0:1", "Other", "One");
        add_samples(&comparison, 0, 0, ms * MS, (const int[]){40, 65, 100, 170, 190}, 5);
        add_spread(&comparison, 0, 1, 0.8 * ms);
        assert_lead(&comparison, is_noisy ? "Warning: the times of 1 run " : "small to tell");
        static const struct {
            void (*print)(const struct comparison *, FILE *);
            const char *time, *noise;
        } cases[] = {
            {print_terminal, " us (noisy)", "1.25 (noise) "},
            {compare_print_markdown, " us \\(noisy\\) |", "1.25 \\(noise\\: 0.74 to 2.36\\)"},
            {compare_print_html, " us\",\"noisy\"", "\"1.25\",\"noise: 0.74 to 2.36\""}};
        for (size_t i = 0; i < 3; i++) {
            char *text = printed_by(cases[i].print, &comparison);
            assert_int_equal(strstr(text, cases[i].time) != NULL, is_noisy);
            assert_contains(text, cases[i].noise);
            free(text);
        }
        comparison_release(&comparison);
    }
}

/* ---------------------------------------------------------------- claims and faults */

#define RESULTS(total, compared, different) \
    "\"results\": {\"total\": " total ", \"compared\": " compared ", \"different\": " different "}"

static const struct {
    const char *results, *outcome; /* where it says that it is verified */
} claims[] = {
    {RESULTS("3", "3", "0"), "verified"}, {RESULTS("3", "1", "0"), "verified"},
    {RESULTS("3", "0", "0"), "unproven"}, {RESULTS("0", "0", "0"), "unproven"},
    {RESULTS("3", "3", "1"), "unproven"}, {"\"results\": \"all\"", "unproven"},
};

/* Reads a saved comparison with a run that has these keys. */
static const cJSON *read_saved(struct comparison *comparison, const char *keys)
{
    struct healcl_error error = {.status = HEALCL_OK};
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
    begin(comparison, 1);
    expect_ok(compare_add_baseline(comparison, path, &added, &error), &error);
    assert_int_equal(added, 1);
    unlink(path);
    return comparison->runs->child;
}

/* Processes and saved runs must agree with themselves: else there is neither a tick nor a speed-up.
 */
static void claims_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        struct comparison comparison;
        char text[256];
        const bool right = strcmp(claims[i].outcome, "verified") == 0;
        begin(&comparison, 1);
        add_device(&comparison, "0:0", "Chip", "One");
        snprintf(text, sizeof text, "{\"verified\": true, \"split\": {\"compute_ns\": [5]}, %s}",
                 claims[i].results);
        const cJSON *run = read_run(&comparison, 0, 0, 0, text);
        compare_conclude(&comparison);
        assert_string_equal(json_text(run, "outcome"), claims[i].outcome);
        assert_int_equal(json_at(run, "speedup") != NULL, right);
        assert_int_equal(*json_text(run, "message") == 0, right);
        assert_int_equal(compare_worst(&comparison), right ? EXIT_VERIFIED : EXIT_DEVICE);
        comparison_release(&comparison);
        run = read_saved(&comparison, claims[i].results);
        assert_string_equal(json_text(run, "outcome"), claims[i].outcome);
        comparison_release(&comparison);
    }
}

#define DIFFERS(lines) \
    "{\"verified\": false, " RESULTS("3", "3", "1") ", \"differences\": [" lines "]}"
static const char these[] = DIFFERS("\"entry 3 differs\", \"  [1]: 2\", \"repetition 2: entry 3\"");
static const char once[] = DIFFERS("\"entry 3 differs\", \"  [1]: 2\"");
static const char others[] = DIFFERS("\"entry 3 differs\", \"  [1]: 4\"");
static const char right[] = "{\"verified\": true, " RESULTS("3", "3", "0") "}";
static const char refused[] = "{\"error\": {\"status\": \"refused\"}}";

static void faults_are_of_devices_or_transcripts(void **state)
{
    (void)state;
    const struct {
        int code, reference_code; /* below 0: a signal */
        const char *text, *reference, *fault, *lead;
        int worst;
    } cases[] = {
        {3, 3, refused, refused, "transcript", "Nothing was verified. 1 transcript is refused.",
         EXIT_REFUSED},
        {1, 1, these, once, "transcript",
         "Nothing was verified. 1 transcript expects other values than the host reference "
         "computes.",
         EXIT_DIFFERENT},
        {1, 1, others, once, "device", "Chip got 2 of 3 results right. 1 transcript expects",
         EXIT_DIFFERENT},
        {1, 0, these, right, "device",
         "Chip got 2 of 3 results right. The host reference got 3 of 3", EXIT_DIFFERENT},
        {-11, 0, "", right, "device",
         "Chip got 0 of 0 results right and failed in 1 of 1 runs. The", EXIT_DEVICE},
        {42, 0, "", right, "device", "Chip got 0 of 0 results right and failed in 1 of 1 run",
         EXIT_DEVICE},
        {0, 0, right, right, "", "Chip got 3 of 3 results right. The host reference got 3",
         EXIT_VERIFIED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct comparison comparison;
        begin(&comparison, 1);
        add_device(&comparison, "0:0", "Chip", "One");
        add_device(&comparison, COMPARE_REFERENCE, "host reference", "healcl");
        const cJSON *run = read_run(&comparison, 0, 0, cases[i].code, cases[i].text);
        read_run(&comparison, 0, 1, cases[i].reference_code, cases[i].reference);
        assert_lead(&comparison, cases[i].lead);
        assert_string_equal(json_text(run, "fault"), cases[i].fault);
        assert_int_equal(compare_worst(&comparison), cases[i].worst);
        comparison_release(&comparison);
    }
}

/* ---------------------------------------------------------------- names */

static void labels_are_distinct(void **state)
{
    (void)state;
    static const struct {
        const char *index, *name, *platform, *driver, *baseline, *label;
    } cases[] = {
        {"0:0", "EPYC", "Intel", "1", NULL, "EPYC (0:0)"},
        {"1:0", "EPYC", "PoCL", "1", NULL, "EPYC (1:0)"},
        {"2:0", "Arc", "Graphics", "1", NULL, "Arc"},
        {"3:0", "H100", "CUDA", "1", NULL, "H100"},
        {"2:0", "Arc", "Graphics", "1", "/tmp/a.json", "(baseline) Arc (2:0, a.json)"},
        {"2:0", "Arc", "Graphics", "1", "/tmp/b.json", "(baseline) Arc (2:0, b.json)"},
        {"4:0", "", "", "", NULL, "4:0"},
    };
    struct comparison comparison;
    begin(&comparison, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cJSON *device = add_device(&comparison, cases[i].index, cases[i].name, cases[i].platform);
        compare_put_text(device, "driver", cases[i].driver);
        if (cases[i].baseline)
            compare_put_text(device, "baseline", cases[i].baseline);
    }
    compare_conclude(&comparison);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(json_text(compare_device(&comparison, i), "label"), cases[i].label);
    comparison_release(&comparison);
}

static void devices_are_called_what_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *type, *name, *platform, *driver, *processor, *title;
        bool emulator;
    } cases[] = {
        {"cpu", "pthread-skylake-avx512-AMD EPYC", "Portable Computing Language", "3.1+debian",
         "AMD EPYC 9354 32-Core Processor", "PoCL 3.1 on AMD EPYC 9354 32-Core Processor", false},
        {"gpu", "Intel(R) Arc(TM) A770 Graphics", "Intel(R) OpenCL Graphics", "24.1", "AMD EPYC",
         "Intel Arc A770 Graphics", false},
        {"cpu", "Oclgrind Simulator", "Oclgrind", "Oclgrind 21.10", "AMD EPYC",
         "Oclgrind Simulator", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct comparison comparison;
        begin(&comparison, 1);
        compare_put_text(comparison.top, "host.processor", cases[i].processor);
        cJSON *device = add_device(&comparison, "0:0", cases[i].name, cases[i].platform);
        compare_put_text(device, "type", cases[i].type);
        compare_put_text(device, "driver", cases[i].driver);
        compare_put(device, "emulator", cJSON_CreateBool(cases[i].emulator));
        compare_conclude(&comparison);
        assert_string_equal(json_text(device, "title"), cases[i].title);
        comparison_release(&comparison);
    }
}

/* ---------------------------------------------------------------- what is printed */

/* Caches make a share of the rates more than all of them: people see a word for it, programs
 * get what was measured. */
static void shares_end_at_the_whole(void **state)
{
    (void)state;
    static const struct {
        int roofline;
        const char *text;
    } cases[] = {{106, "| 10.6 % |"}, {1000, "| 100 % |"}, {1105, "| 100 % \\(caches\\) |"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct comparison comparison;
        char text[256];
        begin(&comparison, 1);
        add_device(&comparison, "0:0", "Chip", "One");
        snprintf(
            text, sizeof text,
            "{\"verified\": true, " RESULTS("1", "1", "0") ", \"roofline_ns\": %d, "
                                                           "\"split\": {\"compute_ns\": [1000]}}",
            cases[i].roofline);
        read_run(&comparison, 0, 0, 0, text);
        compare_conclude(&comparison);
        assert_prints(compare_print_markdown, &comparison, cases[i].text);
        comparison_release(&comparison);
    }
}

/* Names of drivers and files never become formulas of a spreadsheet. */
static void csv_has_no_formulas(void **state)
{
    (void)state;
    struct comparison comparison;
    begin(&comparison, 1);
    compare_put_text(compare_transcript(&comparison, 0), "file", "=1+1");
    compare_put_text(add_device(&comparison, "+1", "-1", "@SUM(A1)"), "driver", "a=\"b\"");
    read_run(&comparison, 0, 0, 4, "");
    compare_conclude(&comparison);
    assert_prints(compare_print_csv, &comparison,
                  "\n\"'=1+1\",\"'+1\",\"'-1\",\"'@SUM(A1)\",\"a=\"\"b\"\"\",\"\",\"failed\",");
    comparison_release(&comparison);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_come_with_their_range),
        cmocka_unit_test(what_all_have_run_counts),
        cmocka_unit_test(the_reference_never_leads),
        cmocka_unit_test(small_transcripts_count_in_no_mean),
        cmocka_unit_test(the_lead_claims_what_intervals_show),
        cmocka_unit_test(noise_is_a_warning),
        cmocka_unit_test(every_form_says_the_same_of_noise),
        cmocka_unit_test(claims_are_checked),
        cmocka_unit_test(faults_are_of_devices_or_transcripts),
        cmocka_unit_test(labels_are_distinct),
        cmocka_unit_test(devices_are_called_what_they_are),
        cmocka_unit_test(shares_end_at_the_whole),
        cmocka_unit_test(csv_has_no_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
