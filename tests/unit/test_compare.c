/* What a comparison comes to: faults, means, names, percentiles; and how its charts are laid out.
 */
#include <math.h>

#include "compare/chart.h"
#include "compare/compare.h"
#include "core/arena.h"
#include "test_transcript_common.h"

static struct healcl_error error;

enum { MS = 1000000 }; /* nanoseconds */

/* ---------------------------------------------------------------- comparisons by hand */

static struct compare_device *add_device(struct comparison *comparison, const char *selector,
                                         const char *name, const char *platform)
{
    struct compare_device *device;
    assert_int_equal(comparison_add_device(comparison, &device, &error), HEALCL_OK);
    device->selector = selector;
    device->name = name;
    device->platform = platform;
    device->driver = "1.0";
    return device;
}

/* So many repetitions and requests, of 1, 2, ... times the time, of which all is compute. */
static struct compare_run *add_run(struct comparison *comparison, size_t transcript, size_t device,
                                   enum compare_outcome outcome, uint64_t nanoseconds, size_t count)
{
    struct compare_run *run;
    assert_int_equal(comparison_add_run(comparison, transcript, device, &run, &error), HEALCL_OK);
    run->outcome = outcome;
    run->results = run->compared = 3;
    run->different = outcome == COMPARE_DIFFERENT;
    uint64_t *samples = arena_alloc(comparison->arena, (count + 1) * sizeof *samples);
    assert_non_null(samples);
    for (size_t i = 0; i < count; i++)
        samples[i] = nanoseconds * (count - i);
    run->times[COMPARE_COMPUTE] = run->times[COMPARE_STEADY] = run->times[COMPARE_WHOLE] =
        (struct compare_samples){samples, count};
    return run;
}

static void set_difference(struct comparison *comparison, size_t run, const char **lines,
                           size_t count)
{
    comparison->runs[run].differences = lines;
    comparison->runs[run].difference_count = count;
}

static void begin(struct comparison *comparison, size_t transcripts)
{
    static const char *const names[] = {"/tmp/a.json", "/tmp/b.json", "/tmp/c.json"};
    assert_int_equal(comparison_init(comparison, &error), HEALCL_OK);
    comparison->origin.date = "2026-01-31T12:00:00Z";
    comparison->origin.healcl = "1";
    comparison->transcripts =
        arena_alloc(comparison->arena, transcripts * sizeof *comparison->transcripts);
    assert_non_null(comparison->transcripts);
    comparison->transcript_count = transcripts;
    comparison->repeat = 5;
    for (size_t i = 0; i < transcripts; i++)
        comparison->transcripts[i] = (struct compare_transcript){.file = names[i]};
}

/* What a printer prints; to be freed. */
static char *printed_by(enum healcl_status (*print)(const struct comparison *, FILE *),
                        const struct comparison *comparison)
{
    static char *text; /* not on the stack: gcc 12 takes what is in it for that */
    static size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    assert_int_equal(print(comparison, stream), HEALCL_OK);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static enum healcl_status print_terminal(const struct comparison *comparison, FILE *stream)
{
    const struct style style = {.stream = stream};
    return compare_print_table(comparison, &style);
}

static void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("there is no \"%s\" in:\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("there is \"%s\" in:\n%s", part, text);
}

/* ---------------------------------------------------------------- means */

/* 2.74 and 1.09 times as fast: 1.73 hides that, alone. */
static void tells_means_and_their_range(void **state)
{
    (void)state;
    struct comparison comparison;
    begin(&comparison, 2);
    add_device(&comparison, "0:0", "Slow", "One");
    add_device(&comparison, "0:1", "Fast", "One");
    add_run(&comparison, 0, 0, COMPARE_VERIFIED, 274 * MS, 1);
    add_run(&comparison, 0, 1, COMPARE_VERIFIED, 100 * MS, 1);
    add_run(&comparison, 1, 0, COMPARE_VERIFIED, 109 * MS, 1);
    add_run(&comparison, 1, 1, COMPARE_VERIFIED, 100 * MS, 1);
    compare_conclude(&comparison);
    const struct compare_mean *mean = &comparison.devices[1].means[COMPARE_COMPUTE];
    assert_int_equal(comparison.base, 0);
    assert_int_equal(compare_fastest(&comparison, COMPARE_COMPUTE), 1);
    assert_true(fabs(mean->factor - sqrt(2.74 * 1.09)) < 1e-9);
    assert_true(fabs(mean->least - 1.09) < 1e-9 && mean->least_at == 1);
    assert_true(fabs(mean->most - 2.74) < 1e-9 && mean->most_at == 0);

    char *page = printed_by(compare_print_html, &comparison);
    assert_contains(page, "In compute Fast is faster on 2 of 2 transcripts than Slow, and 1.73 "
                          "times as fast on average: the geometric mean over a.json and b.json, "
                          "from 1.09 (b.json) to 2.74 (a.json). In a steady request Fast is ");
    assert_contains(page, "<td class=\"n mean\" data-factor=\"1\">1.00&times;</td>");
    assert_contains(page, "<td class=\"n mean\" data-factor=\"1.7281782\">1.73&times; <small>"
                          "1.73 to 1.73</small></td><td class=\"n\" data-factor=\"2.74\">");
    comparison.devices[1].means[COMPARE_STEADY].factor = 0; /* not measured */
    free(page);
    char *table = printed_by(print_terminal, &comparison);
    assert_contains(table, "\nspeed-up   compute  least  most  steady  least  most\n"
                           "0:0  Slow     1.00   1.00  1.00    1.00   1.00  1.00\n"
                           "0:1  Fast     1.73   1.09  2.74       -   1.09  2.74\n");
    assert_contains(table, "means: geometric ones over 2 of 2 transcripts; 1.00 is Slow\n");
    free(table);
    char *markdown = printed_by(compare_print_markdown, &comparison);
    assert_contains(markdown, "| 2.74 | 1.09 | 1.73 | - |\n");
    free(markdown);
    comparison_release(&comparison);
}

/* A device that crashed neither is the fastest nor takes transcripts from the others; what none has
 * run does not count, and what counts is told. */
static void counts_what_all_have_run(void **state)
{
    (void)state;
    struct comparison comparison;
    begin(&comparison, 3);
    add_device(&comparison, "0:0", "Broken", "One");
    add_device(&comparison, "0:1", "Slow", "One");
    add_device(&comparison, "0:2", "Fast", "One");
    for (size_t i = 0; i < 2; i++) {
        add_run(&comparison, i, 0, i == 0 ? COMPARE_VERIFIED : COMPARE_CRASHED, MS, i == 0);
        add_run(&comparison, i, 1, COMPARE_VERIFIED, 400 * MS, 1);
        add_run(&comparison, i, 2, COMPARE_VERIFIED, 100 * MS, 1);
    }
    for (size_t j = 0; j < 3; j++)
        add_run(&comparison, 2, j, COMPARE_REFUSED, 0, 0);
    compare_conclude(&comparison);
    assert_true(comparison.devices[0].at_fault && !comparison.devices[1].at_fault);
    assert_int_equal(comparison.base, 1);
    assert_int_equal(comparison.counting_count, 2);
    assert_false(comparison.transcripts[2].counts);
    assert_int_equal(compare_fastest(&comparison, COMPARE_COMPUTE), 2);
    assert_true(comparison.devices[0].means[COMPARE_COMPUTE].factor <= 0);
    char *page = printed_by(compare_print_html, &comparison);
    assert_contains(page, "2 of 3 devices are right. c.json is refused. In compute Fast is faster "
                          "on 2 of 2 transcripts than Slow, and 4.00 times as fast on average: the "
                          "geometric mean over a.json and b.json");
    free(page);
    comparison_release(&comparison);
}

/* ---------------------------------------------------------------- the lead */

static void assert_lead(const struct comparison *comparison, const char *part)
{
    char *lead = compare_lead(comparison);
    assert_non_null(lead);
    assert_contains(lead, part);
    free(lead);
}

/* It is there to tell what is right. */
static void the_reference_never_leads(void **state)
{
    (void)state;
    static const struct {
        uint64_t chip, other, reference; /* milliseconds; 0: there is no such device */
        const char *lead;
    } cases[] = {
        {10, 0, 20, "verified. In compute Chip is 2.00 times as fast as the host reference. In a "},
        {10, 0, 5, "In a steady request Chip is 0.50 times as fast as the host reference."},
        {10, 0, 10, "In compute there is no difference between Chip and the host reference, 1.00"},
        {10, 20, 5,
         "In compute Chip is 2.00 times as fast as Other. In compute Chip is 0.50 times as fast as "
         "the host reference."},
        {30, 20, 40, "verified. In compute Other is 1.50 times as fast as Chip."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct comparison comparison;
        size_t device = 0;
        begin(&comparison, 1);
        add_device(&comparison, COMPARE_REFERENCE, "host reference", "healcl");
        add_run(&comparison, 0, device++, COMPARE_VERIFIED, cases[i].reference * MS, 1);
        add_device(&comparison, "0:0", "Chip", "One");
        add_run(&comparison, 0, device++, COMPARE_VERIFIED, cases[i].chip * MS, 1);
        if (cases[i].other > 0) {
            add_device(&comparison, "1:0", "Other", "One");
            add_run(&comparison, 0, device++, COMPARE_VERIFIED, cases[i].other * MS, 1);
        }
        compare_conclude(&comparison);
        assert_lead(&comparison, cases[i].lead);
        comparison_release(&comparison);
    }
}

/* What its operations read and write, transfers and views aside. */
static void set_operations(struct comparison *comparison, size_t count, uint64_t bytes)
{
    const struct compare_part kinds[] = {{"ntt", count, count * bytes, 1, 0, ""},
                                         {"reshape", 100, 0, 0, 0, ""},
                                         {"host_to_device", 1, 1 << 30, 1, 0, ""}};
    struct compare_run *run = &comparison->runs[comparison->run_count - 1];
    run->operations = arena_alloc(comparison->arena, sizeof kinds);
    assert_non_null(run->operations);
    memcpy(run->operations, kinds, sizeof kinds);
    run->operation_count = 3;
}

/* By the compute time of the fastest device, not of the host reference; and by the operations. */
static void tells_which_transcripts_are_too_small(void **state)
{
    (void)state;
    struct comparison comparison;
    begin(&comparison, 3);
    add_device(&comparison, "0:0", "Slow", "One");
    add_device(&comparison, "0:1", "Fast", "One");
    add_device(&comparison, COMPARE_REFERENCE, "host reference", "healcl");
    add_run(&comparison, 0, 0, COMPARE_VERIFIED, 4 * MS, 1);
    add_run(&comparison, 0, 1, COMPARE_VERIFIED, MS / 10 - 1, 1);
    add_run(&comparison, 0, 2, COMPARE_VERIFIED, 1000, 1);
    add_run(&comparison, 1, 0, COMPARE_VERIFIED, 3 * MS / 10, 1);
    add_run(&comparison, 1, 1, COMPARE_VERIFIED, MS / 10, 1);
    set_operations(&comparison, 3, COMPARE_LEAST_BYTES);
    add_run(&comparison, 1, 2, COMPARE_VERIFIED, MS / 10 - 1, 1);
    add_run(&comparison, 2, 0, COMPARE_VERIFIED, 300 * MS, 1); /* a feature test: launches */
    add_run(&comparison, 2, 1, COMPARE_VERIFIED, 200 * MS, 1);
    add_run(&comparison, 2, 2, COMPARE_VERIFIED, MS, 1);
    set_operations(&comparison, 2000, COMPARE_LEAST_BYTES - 1);
    compare_conclude(&comparison);
    assert_true(comparison.transcripts[0].too_small && !comparison.transcripts[0].counts);
    assert_false(comparison.transcripts[1].too_small);
    assert_true(comparison.transcripts[2].too_small && !comparison.transcripts[2].counts);
    assert_int_equal(comparison.counting_count, 1);
    assert_lead(&comparison, " 2 transcripts are too small to tell devices apart. ");
    assert_lead(&comparison, "In compute Fast is 3.00 times as fast as Slow on b.json.");
    static enum healcl_status (*const printers[])(const struct comparison *, FILE *) = {
        print_terminal, compare_print_markdown, compare_print_html};
    for (size_t i = 0; i < 3; i++) {
        char *text = printed_by(printers[i], &comparison);
        assert_contains(text, "Too small to tell devices apart: ");
        free(text);
    }
    char *json = printed_by(compare_print_json, &comparison);
    assert_contains(json, "\"too_small\":\ttrue");
    assert_contains(json, "\"too_small\":\tfalse");
    free(json);
    /* Nothing is told apart where there is one device. */
    comparison_release(&comparison);
    begin(&comparison, 1);
    add_device(&comparison, "0:0", "Slow", "One");
    add_run(&comparison, 0, 0, COMPARE_VERIFIED, 1, 1);
    compare_conclude(&comparison);
    assert_false(comparison.transcripts[0].too_small);
    comparison_release(&comparison);
}

/* Adds repetitions of 8, 9, 10, 11 and 12 tenths of a time: the quartiles are 9 and 11. */
static void add_spread_run(struct comparison *comparison, size_t transcript, size_t device,
                           uint64_t nanoseconds)
{
    struct compare_run *run =
        add_run(comparison, transcript, device, COMPARE_VERIFIED, nanoseconds, 5);
    for (size_t i = 0; i < 5; i++)
        run->times[COMPARE_WHOLE].of[i] = nanoseconds * (8 + i) / 10;
}

/* The mean would hide that it is slower on one, and says nothing itself. */
static void tells_on_how_many_it_is_faster(void **state)
{
    (void)state;
    static const uint64_t reference[] = {311, 238, 20};
    struct comparison comparison;
    begin(&comparison, 3);
    add_device(&comparison, "0:0", "Chip", "One");
    add_device(&comparison, COMPARE_REFERENCE, "host reference", "healcl");
    for (size_t i = 0; i < 3; i++) {
        add_spread_run(&comparison, i, 0, 80 * MS);
        add_spread_run(&comparison, i, 1, reference[i] * MS);
    }
    comparison.runs[1].times[COMPARE_STEADY].count = 0; /* not measured */
    compare_conclude(&comparison);
    char *lead = compare_lead(&comparison);
    assert_string_equal(lead,
                        "All 2 devices are right in every result that was verified. In "
                        "compute Chip is faster on 2 of 3 transcripts than the host "
                        "reference, slower on 1, and 1.42 times as fast on average: the "
                        "geometric mean over a.json, b.json and c.json, from 0.25 (c.json) to "
                        "3.89 (a.json).");
    free(lead);
    comparison.repeat = 1; /* there is no interval */
    assert_lead(&comparison, "verified. One run of each tells no device from another.");
    comparison_release(&comparison);
}

/* Where the intervals of the quartiles overlap. */
static void tells_where_there_is_no_difference(void **state)
{
    (void)state;
    for (int differ = 0; differ < 2; differ++) {
        struct comparison comparison;
        begin(&comparison, 2);
        add_device(&comparison, "0:0", "Chip", "One");
        add_device(&comparison, "0:1", "Other", "One");
        for (size_t i = 0; i < 2; i++) {
            add_spread_run(&comparison, i, 0, 100 * MS);
            add_spread_run(&comparison, i, 1, differ && i == 0 ? 200 * MS : 110 * MS);
        }
        compare_conclude(&comparison);
        struct compare_mean mean;
        assert_true(compare_mean_against(&comparison, COMPARE_COMPUTE, 0, 1, &mean));
        assert_true(fabs(mean.low - mean.factor * 9 / 11) < 1e-9);
        assert_true(fabs(mean.high - mean.factor * 11 / 9) < 1e-9);
        assert_lead(&comparison,
                    differ
                        ? " In compute Chip is faster on 1 of 2 transcripts than Other, and 1.48 "
                          "times as fast on average: the "
                        : " In compute Chip is faster on 0 of 2 transcripts than Other, and there "
                          "is no difference on average, 0.90 to 1.34 times as fast: the "
                          "geometric mean over a.json and b.json, from 1.10 (a.json) to 1.10 "
                          "(a.json).");
        char *page = printed_by(compare_print_html, &comparison);
        (differ ? assert_lacks
                : assert_contains)(page, "<small>no difference</small><small>0.74 to 1.11</small>");
        assert_contains(page, "<small>no difference</small>"); /* of b.json */
        free(page);
        comparison_release(&comparison);
    }
}

static void warns_of_noise(void **state)
{
    (void)state;
    for (uint64_t step = 30; step <= 31; step++) { /* percent of the median, of 100 */
        struct comparison comparison;
        begin(&comparison, 1);
        add_device(&comparison, "0:0", "Chip", "One");
        struct compare_run *run = add_run(&comparison, 0, 0, COMPARE_VERIFIED, 0, 5);
        for (size_t i = 0; i < 5; i++)
            run->times[COMPARE_WHOLE].of[i] = (100 - 2 * step + i * step) * MS;
        compare_conclude(&comparison);
        assert_int_equal(compare_is_noisy(run), step > 30);
        static const struct {
            enum healcl_status (*print)(const struct comparison *, FILE *);
            const char *text;
        } printers[] = {
            {print_terminal, "100 ms (noisy)"},
            {print_terminal, "Warning: the times of Chip on a.json"},
            {compare_print_markdown, "100 ms (noisy) | 31.0 % |"},
            {compare_print_html, "100&#8239;ms <small>noisy</small>"},
            {compare_print_html, "Warning: the times of Chip on a.json spread by more than 30 %."},
            {compare_print_json, "\"warning\":\t\"the times spread by more than 30 %\""},
            {compare_print_csv, "\"the times spread by more than 30 %\""},
            {compare_print_junit, "spread 31.0 % (noisy)"},
        };
        for (size_t i = 0; i < sizeof printers / sizeof *printers; i++) {
            char *text = printed_by(printers[i].print, &comparison);
            (step > 30 ? assert_contains : assert_lacks)(text, printers[i].text);
            free(text);
        }
        comparison_release(&comparison);
    }
}

/* ---------------------------------------------------------------- runs to come */

static void estimates_what_is_left(void **state)
{
    (void)state;
    struct comparison comparison;
    begin(&comparison, 2);
    struct compare_origin before = comparison.origin;
    before.baseline = "before.json";
    add_device(&comparison, "0:0", "Chip", "One");
    add_device(&comparison, "0:1", "Other", "One");
    add_device(&comparison, "0:0", "Chip", "One")->origin = &before;
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++)
            add_run(&comparison, i, j, COMPARE_VERIFIED, MS, 1);
    add_run(&comparison, 0, 2, COMPARE_VERIFIED, MS, 1);
    assert_int_equal(comparison_left(&comparison), 0);
    comparison.runs[0].taken_nanoseconds = 10;
    assert_int_equal(comparison_left(&comparison), 30);
    comparison.runs[1].taken_nanoseconds = 20;
    assert_int_equal(comparison_left(&comparison), 2 * 15);
    comparison.runs[2].taken_nanoseconds = 100;
    assert_int_equal(comparison_left(&comparison), 100);
    assert_int_equal(comparison_end_early(&comparison), 3);
    assert_int_equal(comparison.planned, 4);
    assert_int_equal(comparison.run_count, 4); /* the baseline's too */
    assert_int_equal(comparison.runs[3].device, 2);
    compare_conclude(&comparison);
    assert_lead(&comparison, "Interrupted: 3 of 4 runs were made. All 2 devices are right");
    comparison_release(&comparison);
}

/* ---------------------------------------------------------------- faults */

static void tells_whose_fault_it_is(void **state)
{
    (void)state;
    static const char *these[] = {"entry 3: 1 of 12 values differs", "  [1]: 2, expected 3",
                                  "repetition 2: entry 3: 1 of 12 values differs"};
    static const char *others[] = {"entry 3: 1 of 12 values differs", "  [1]: 4, expected 3"};
    const struct {
        enum compare_outcome device, reference;
        const char **lines; /* of the device; these are the reference's */
        enum compare_fault fault;
        const char *lead;
    } cases[] = {
        {COMPARE_REFUSED, COMPARE_REFUSED, NULL, COMPARE_TRANSCRIPT_FAULT,
         "Nothing was verified. The transcript is refused."},
        {COMPARE_DIFFERENT, COMPARE_DIFFERENT, these, COMPARE_TRANSCRIPT_FAULT,
         "Nothing was verified. The transcript expects other values than the host reference "
         "computes."},
        {COMPARE_DIFFERENT, COMPARE_DIFFERENT, others, COMPARE_DEVICE_FAULT,
         "1 of 2 devices are right."},
        {COMPARE_DIFFERENT, COMPARE_VERIFIED, these, COMPARE_DEVICE_FAULT,
         "1 of 2 devices are right."},
        {COMPARE_CRASHED, COMPARE_VERIFIED, NULL, COMPARE_DEVICE_FAULT,
         "1 of 2 devices are right."},
        {COMPARE_VERIFIED, COMPARE_VERIFIED, NULL, COMPARE_NO_FAULT,
         "All 2 devices are right in every result that was verified."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct comparison comparison;
        begin(&comparison, 1);
        add_device(&comparison, "0:0", "Chip", "One");
        add_device(&comparison, COMPARE_REFERENCE, "host reference", "healcl");
        add_run(&comparison, 0, 0, cases[i].device, 0, 0);
        add_run(&comparison, 0, 1, cases[i].reference, 0, 0);
        if (cases[i].device == COMPARE_DIFFERENT)
            set_difference(&comparison, 0, cases[i].lines, cases[i].lines == these ? 3 : 2);
        if (cases[i].reference == COMPARE_DIFFERENT)
            set_difference(&comparison, 1, these, 2);
        compare_conclude(&comparison);
        assert_int_equal(comparison.runs[0].fault, cases[i].fault);
        assert_int_equal(comparison.devices[0].at_fault, cases[i].fault == COMPARE_DEVICE_FAULT);
        char *page = printed_by(compare_print_html, &comparison);
        assert_contains(page, cases[i].lead);
        if (cases[i].fault == COMPARE_DEVICE_FAULT)
            assert_contains(page, "&#10007;");
        else
            assert_lacks(page, "&#10007;");
        free(page);
        comparison_release(&comparison);
    }
}

/* Where the reference is not compared, it is asked. */
static void asks_the_reference(void **state)
{
    (void)state;
    static const char *lines[] = {"entry 3: 1 of 12 values differs"};
    struct comparison comparison;
    begin(&comparison, 2);
    add_device(&comparison, "0:0", "Chip", "One");
    add_run(&comparison, 0, 0, COMPARE_VERIFIED, 1, 1);
    add_run(&comparison, 1, 0, COMPARE_DIFFERENT, 1, 1);
    set_difference(&comparison, 1, lines, 1);
    struct compare_run *judge;
    assert_int_equal(comparison_add_judge(&comparison, 0, &judge, &error), HEALCL_OK);
    assert_null(judge);
    compare_conclude(&comparison);
    assert_int_equal(comparison.runs[1].fault, COMPARE_DEVICE_FAULT);
    assert_int_equal(comparison_add_judge(&comparison, 1, &judge, &error), HEALCL_OK);
    assert_non_null(judge);
    judge->outcome = COMPARE_DIFFERENT;
    judge->different = 1;
    judge->differences = lines;
    judge->difference_count = 1;
    comparison.runs[1].fault = COMPARE_NO_FAULT;
    compare_conclude(&comparison);
    assert_int_equal(comparison.runs[1].fault, COMPARE_TRANSCRIPT_FAULT);
    comparison_release(&comparison);
}

/* ---------------------------------------------------------------- names */

static void tells_devices_apart(void **state)
{
    (void)state;
    struct comparison comparison;
    begin(&comparison, 1);
    struct compare_origin before = comparison.origin;
    before.baseline = "/tmp/before.json";
    add_device(&comparison, "0:0", "EPYC", "Intel(R) OpenCL");
    add_device(&comparison, "1:0", "pthread-EPYC", "Portable Computing Language");
    add_device(&comparison, "2:0", "Arc", "Intel(R) OpenCL Graphics");
    add_device(&comparison, "3:0", "H100", "NVIDIA CUDA");
    add_device(&comparison, "3:1", "H100", "NVIDIA CUDA");
    add_device(&comparison, "reference", "host reference", "healcl");
    add_device(&comparison, "reference", "host reference", "healcl");
    add_device(&comparison, "2:0", "Arc", "Intel(R) OpenCL Graphics")->origin = &before;
    add_device(&comparison, "4:0", "", "");
    static const char *const labels[] = {"EPYC (Intel(R) OpenCL)",
                                         "pthread-EPYC (Portable Computing Language)",
                                         "Arc",
                                         "H100 (3:0)",
                                         "H100 (3:1)",
                                         "host reference (#6)",
                                         "host reference (#7)",
                                         "(baseline) Arc",
                                         "4:0"};
    char text[LABEL_SIZE];
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        assert_string_equal(compare_device_label(&comparison, i, text), labels[i]);
    /* Another version of the driver. */
    comparison.devices[7].driver = "0.9";
    assert_string_equal(compare_device_label(&comparison, 7, text),
                        "(baseline) Arc (Intel(R) OpenCL Graphics 0.9)");
    comparison_release(&comparison);
}

/* What people call them, and beside it what their drivers do. */
static void calls_devices_what_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *type, *name, *platform, *driver, *processor, *title;
        bool emulator;
    } cases[] = {
        {"cpu", "pthread-skylake-avx512-AMD EPYC", "Portable Computing Language", "3.1+debian",
         "AMD EPYC 9354 32-Core Processor", "PoCL 3.1 on AMD EPYC 9354", false},
        {"cpu", "AMD EPYC", "Intel(R) OpenCL", "2024.18.6.0.02_160000", "AMD EPYC",
         "Intel OpenCL 2024.18 on AMD EPYC", false},
        {"cpu", "Intel(R) Xeon(R) CPU", "Intel(R) OpenCL", "2026.22",
         "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz",
         "Intel OpenCL 2026.22 on Intel Xeon Platinum 8481C", false},
        {"cpu", "A CPU", "A platform", "", "", "A CPU", false},
        {"gpu", "Intel(R) Arc(TM) A770 Graphics", "Intel(R) OpenCL Graphics", "24.1", "AMD EPYC",
         "Intel Arc A770 Graphics", false},
        {"gpu", "NVIDIA H100 80GB HBM3", "NVIDIA CUDA", "550.54", "AMD EPYC",
         "NVIDIA H100 80GB HBM3", false},
        {"cpu", "Oclgrind Simulator", "Oclgrind", "Oclgrind 21.10", "AMD EPYC",
         "Oclgrind Simulator", true},
        {"host", "host reference", "healcl", "0.1.0", "AMD EPYC", "host reference", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct comparison comparison;
        begin(&comparison, 1);
        comparison.origin.processor = cases[i].processor;
        struct compare_device *device =
            add_device(&comparison, "0:0", cases[i].name, cases[i].platform);
        device->type = cases[i].type;
        device->driver = cases[i].driver;
        device->emulator = cases[i].emulator;
        add_run(&comparison, 0, 0, COMPARE_VERIFIED, MS, 1);
        compare_conclude(&comparison);
        assert_string_equal(compare_device_name(device), cases[i].title);
        char *page = printed_by(compare_print_html, &comparison), text[512];
        snprintf(text, sizeof text, "<span class=\"name\">%s</span>", cases[i].title);
        assert_contains(page, text);
        const bool same = strcmp(cases[i].name, cases[i].title) == 0;
        snprintf(text, sizeof text, "<small>0:0, %s%s%s", same ? "" : cases[i].name,
                 same ? "" : ", ", cases[i].platform);
        assert_contains(page, text);
        free(page);
        comparison_release(&comparison);
    }
    /* Two of one driver. */
    struct comparison comparison;
    char label[LABEL_SIZE];
    begin(&comparison, 1);
    comparison.origin.processor = "AMD EPYC";
    add_device(&comparison, "0:0", "basic", "Portable Computing Language")->type = "cpu";
    add_device(&comparison, "0:1", "pthread", "Portable Computing Language")->type = "cpu";
    compare_conclude(&comparison);
    assert_string_equal(compare_device_label(&comparison, 1, label),
                        "PoCL 1.0 on AMD EPYC (pthread)");
    comparison_release(&comparison);
}

static void fits_a_terminal(void **state)
{
    (void)state;
    enum { WIDTH = 100 };
    struct comparison comparison;
    begin(&comparison, 2);
    comparison.origin.processor = "AMD EPYC 9354 32-Core Processor";
    comparison.transcripts[0].file =
        "a/very/long/path/to/a/folder/of/many/transcripts/that/is/hard/to/remember/a.json";
    add_device(&comparison, "0:0", "pthread-skylake-avx512-AMD EPYC", "Portable Computing Language")
        ->type = "cpu";
    add_device(&comparison, "1:0", "AMD EPYC", "Intel(R) OpenCL")->type = "cpu";
    comparison.devices[1].driver = "2026.22.10.0.01_160000";
    add_device(&comparison, COMPARE_REFERENCE, "host reference", "healcl");
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 3; j++) {
            add_spread_run(&comparison, i, j, (100 + j) * 1234567);
            struct compare_run *run = &comparison.runs[comparison.run_count - 1];
            run->roofline_nanoseconds = 10;
            run->times[COMPARE_TRANSFER] = run->times[COMPARE_DECODE] = run->times[COMPARE_WHOLE];
            run->cold.nanoseconds = run->warm.nanoseconds = 10000 * (uint64_t)MS;
        }
    compare_conclude(&comparison);
    char *table = printed_by(print_terminal, &comparison);
    assert_contains(table, "\na/very/long/path");
    assert_contains(table, "\n1:0  Intel OpenCL 2026.22 on AMD EPYC 9354  verified ");
    assert_contains(table,
                    "\n0:0 is pthread-skylake-avx512-AMD EPYC of Portable Computing Language");
    for (const char *line = table; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > WIDTH)
            fail_msg("too long: %s", line);
    free(table);
    comparison_release(&comparison);
}

/* The lead, the overview, the legends and the charts have the platform. */
static void prints_platforms(void **state)
{
    (void)state;
    struct comparison comparison;
    begin(&comparison, 2);
    add_device(&comparison, "0:0", "EPYC", "Intel OpenCL");
    add_device(&comparison, "1:0", "EPYC", "PoCL");
    for (size_t i = 0; i < 2; i++) {
        add_run(&comparison, i, 0, COMPARE_VERIFIED, 300 * MS, 1);
        add_run(&comparison, i, 1, COMPARE_VERIFIED, 100 * MS, 1);
    }
    compare_conclude(&comparison);
    char *page = printed_by(compare_print_html, &comparison);
    assert_contains(page, "In compute EPYC (PoCL) is faster on 2 of 2 transcripts than EPYC (Intel "
                          "OpenCL), and 3.00 times as fast");
    const char *overview = strstr(page, "<section id=\"overview\">");
    assert_non_null(overview);
    const char *head = strstr(overview, "</thead>");
    const char *platform = strstr(overview, "EPYC</span> <span class=\"detail\">(PoCL)</span>");
    assert_true(platform && platform < head);
    const char *chart = strstr(page, "<svg class=\"chart\"");
    assert_non_null(chart);
    platform = strstr(chart, "<title>Intel OpenCL</title>");
    assert_true(platform && platform < strstr(chart, "</svg>"));
    free(page);
    char *table = printed_by(print_terminal, &comparison);
    assert_contains(table, "1:0  EPYC (PoCL)");
    free(table);
    comparison_release(&comparison);
}

/* What a committee asks. */
static void tells_where_it_was_measured(void **state)
{
    (void)state;
    struct comparison comparison;
    begin(&comparison, 1);
    comparison.origin.commit = "0123456789ab";
    comparison.origin.model = "family 25, model 17";
    comparison.origin.governor = "powersave";
    comparison.origin.load_before = 25;
    comparison.origin.load_after = 175;
    add_device(&comparison, "0:0", "Chip", "One")->platform_version = "One 2.0, LLVM 15";
    add_run(&comparison, 0, 0, COMPARE_VERIFIED, 4 * MS, 1);
    compare_conclude(&comparison);
    static const struct {
        enum healcl_status (*print)(const struct comparison *, FILE *);
        const char *text;
    } printers[] = {
        {compare_print_html, "<dt>Commit</dt><dd>0123456789ab</dd>"},
        {compare_print_html, "<dt>Its model</dt><dd>family 25, model 17</dd>"},
        {compare_print_html, "<dt>Governor</dt><dd>powersave</dd>"},
        {compare_print_html, "0.25 before the runs, 1.75 at their end"},
        {compare_print_html, "One 2.0, LLVM 15"},
        {compare_print_html, "data-label=\"Inferences/s\">250</td>"},
        {compare_print_html, "How to read this"},
        {compare_print_json, "\"commit\":\t\"0123456789ab\""},
        {compare_print_json, "\"load_after\":\t1.75"},
        {compare_print_json, "\"per_second\":\t250"},
        {compare_print_markdown, "healcl 1 (0123456789ab)"},
    };
    for (size_t i = 0; i < sizeof printers / sizeof *printers; i++) {
        char *text = printed_by(printers[i].print, &comparison);
        assert_contains(text, printers[i].text);
        free(text);
    }
    comparison_release(&comparison);
}

static void marks_emulators(void **state)
{
    (void)state;
    struct comparison comparison;
    begin(&comparison, 1);
    add_device(&comparison, "0:0", "llvmpipe", "rusticl")->emulator = true;
    add_device(&comparison, "1:0", "Chip", "One");
    for (size_t j = 0; j < 2; j++)
        add_run(&comparison, 0, j, COMPARE_VERIFIED, 100 * MS, 1);
    compare_conclude(&comparison);
    char *page = printed_by(compare_print_html, &comparison);
    assert_contains(page, "llvmpipe</span> <span class=\"tag\">emulator</span>");
    assert_lacks(page, "Chip</span> <span class=\"tag\">emulator</span>");
    free(page);
    char *table = printed_by(print_terminal, &comparison);
    assert_contains(table, "\n0:0 is an emulator\n");
    free(table);
    char *markdown = printed_by(compare_print_markdown, &comparison);
    assert_contains(markdown, "rusticl 1.0, emulator |");
    free(markdown);
    comparison_release(&comparison);
}

/* ---------------------------------------------------------------- figures */

static void needs_samples_for_percentiles(void **state)
{
    (void)state;
    const struct {
        size_t count;
        uint64_t p95, p99;
    } cases[] = {{19, 0, 0}, {20, 19, 0}, {99, 95, 0}, {100, 95, 99}, {1000, 950, 990}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct comparison comparison;
        struct compare_times times;
        begin(&comparison, 1);
        comparison.repeat = (uint32_t)cases[i].count;
        add_device(&comparison, "0:0", "Chip", "One");
        struct compare_run *run = add_run(&comparison, 0, 0, COMPARE_VERIFIED, 1, cases[i].count);
        assert_true(compare_times_of(run, COMPARE_WHOLE, &times));
        assert_int_equal(times.p95, cases[i].p95);
        assert_int_equal(times.p99, cases[i].p99);
        compare_conclude(&comparison);
        char *page = printed_by(compare_print_html, &comparison), cell[64];
        snprintf(cell, sizeof cell, "data-label=\"p99\" data-ns=\"%d\">99", (int)cases[i].p99);
        (cases[i].p99 > 0 ? assert_contains : assert_lacks)(page, cell);
        (cases[i].count < 100 ? assert_contains : assert_lacks)(page, "<code>--repeat</code>");
        free(page);
        comparison_release(&comparison);
    }
}

/* Only a spread goes to both sides. Caches make a share of the rates more than all of them: people
 * are told so by a word, programs get what was measured. */
static void tells_shares_up_to_the_whole(void **state)
{
    (void)state;
    static const struct {
        uint64_t roofline;
        const char *page, *text;
    } cases[] = {{106, ">10.6&#8239;%", "10.6 %"},
                 {1000, ">100&#8239;%", "100 %"},
                 {1105, ">100&#8239;% <small>caches</small>", "100 % (caches)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct comparison comparison;
        begin(&comparison, 1);
        add_device(&comparison, "0:0", "Chip", "One")->copied_bytes = 1000000000;
        struct compare_run *run = add_run(&comparison, 0, 0, COMPARE_VERIFIED, 400, 4);
        run->roofline_nanoseconds = cases[i].roofline;
        run->operations = arena_alloc(comparison.arena, sizeof *run->operations);
        assert_non_null(run->operations);
        *run->operations = (struct compare_part){.name = "ntt",
                                                 .count = 1,
                                                 .bytes = cases[i].roofline,
                                                 .nanoseconds = 1000,
                                                 .fallback_reason = ""};
        run->operation_count = 1;
        compare_conclude(&comparison);
        char *page = printed_by(compare_print_html, &comparison), cell[128];
        snprintf(cell, sizeof cell, "data-label=\"Of its rates\"%s", cases[i].page);
        assert_contains(page, cell);
        assert_contains(page, "data-label=\"Spread\">&plusmn;40.0&#8239;%");
        snprintf(cell, sizeof cell, "ntt</th><td class=\"n\"%s", cases[i].page);
        assert_contains(page, cell);
        assert_lacks(page, "110&#8239;%");
        free(page);
        char *markdown = printed_by(compare_print_markdown, &comparison);
        assert_contains(markdown, cases[i].text);
        assert_contains(markdown, "\n*Of its rates*: the share of ");
        free(markdown);
        char *json = printed_by(compare_print_json, &comparison), key[64];
        snprintf(key, sizeof key, "\"roofline_ns\":\t%d", (int)cases[i].roofline);
        assert_contains(json, key);
        free(json);
        comparison_release(&comparison);
    }
}

/* What a driver or a file is called is no formula of a spreadsheet's. */
static void writes_no_formulas(void **state)
{
    (void)state;
    static const char *const names[] = {"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a=b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct comparison comparison;
        char cell[32];
        begin(&comparison, 1);
        comparison.transcripts[0].file = names[i];
        add_device(&comparison, names[i], names[i], names[i])->driver = names[i];
        add_run(&comparison, 0, 0, COMPARE_FAILED, 0, 0)->message = names[i];
        compare_conclude(&comparison);
        char *csv = printed_by(compare_print_csv, &comparison);
        snprintf(cell, sizeof cell, "\"%s%s\"", i < 6 ? "'" : "", names[i]);
        size_t count = 0;
        for (const char *place = csv; (place = strstr(place, cell)); place++)
            count++;
        assert_int_equal(count, 6);
        free(csv);
        comparison_release(&comparison);
    }
}

/* Building times that are compared are cold ones; or it is told that some were cached. */
static void compares_cold_with_cold(void **state)
{
    (void)state;
    struct comparison comparison;
    begin(&comparison, 1);
    add_device(&comparison, "0:0", "Chip", "One");
    struct compare_run *run = add_run(&comparison, 0, 0, COMPARE_VERIFIED, 1, 1);
    run->compile_nanoseconds = 3000000;
    run->programs_built = 1;
    run->programs_loaded = 4;
    compare_conclude(&comparison);
    char *table = printed_by(compare_print_markdown, &comparison);
    assert_contains(table, "3.00 ms (4 of 5 cached)");
    free(table);
    const struct process_result cold = {
        .end = PROCESS_EXITED,
        .is_own = true,
        .text = (char[]){"{\"first_result_ns\": 9000000000, \"compile_ns\": 7000000000}"}};
    compare_read_first(&comparison, &run->cold, &cold);
    assert_int_equal(run->cold.nanoseconds, 9000000000);
    table = printed_by(compare_print_markdown, &comparison);
    assert_contains(table, "9.00 s");
    assert_contains(table, "7.00 s");
    assert_lacks(table, "3.00 ms");
    free(table);
    char *page = printed_by(compare_print_html, &comparison);
    assert_contains(page, "4 of 5 cached");
    assert_contains(page, "data-ns=\"9000000000\"");
    free(page);
    comparison_release(&comparison);
}

static void reads_checks(void **state)
{
    (void)state;
    struct comparison comparison;
    begin(&comparison, 1);
    struct compare_device *device = add_device(&comparison, "0:0", "Chip", "One");
    const struct {
        struct process_result process;
        const char *text;
        bool verified;
    } cases[] = {
        {{.end = PROCESS_EXITED,
          .is_own = true,
          .text =
              (char[]){"{\"verified\": true, \"calls\": 9, \"failed\": 0, \"unsupported\": 0}"}},
         "all 9 calls are right",
         true},
        {{.end = PROCESS_EXITED,
          .is_own = true,
          .text =
              (char[]){"{\"verified\": true, \"calls\": 9, \"failed\": 0, \"unsupported\": 2}"}},
         "7 calls are right, 2 are beyond the device",
         true},
        {{.end = PROCESS_EXITED,
          .is_own = true,
          .code = 1,
          .text = (char[]){"{\"verified\": false, \"calls\": 9, \"failed\": 4}"}},
         "4 of 9 calls are wrong",
         false},
        {{.end = PROCESS_EXITED,
          .is_own = true,
          .code = 1,
          .text = (char[]){"{\"verified\": false, \"self_test_failure\": \"fails\"}"}},
         "fails",
         false},
        {{.end = PROCESS_EXITED,
          .is_own = true,
          .code = 4,
          .text = (char[]){"{\"error\": {\"message\": \"is gone\"}}"}},
         "is gone",
         false},
        {{.end = PROCESS_KILLED, .code = 11}, "crashed: SIGSEGV", false},
        {{.end = PROCESS_TIMED_OUT}, "timed out", false},
        {{.end = PROCESS_EXITED, .code = 42}, "failed: exit code 42", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[LABEL_SIZE];
        assert_int_equal(compare_read_check(&comparison, device, &cases[i].process, &error),
                         HEALCL_OK);
        assert_string_equal(compare_check_text(&device->check, text), cases[i].text);
        compare_conclude(&comparison);
        assert_int_equal(device->at_fault, !cases[i].verified);
        char *page = printed_by(compare_print_html, &comparison);
        assert_contains(page, cases[i].text);
        free(page);
        char *markdown = printed_by(compare_print_markdown, &comparison);
        assert_contains(markdown, "`healcl check` of Chip");
        free(markdown);
    }
    comparison_release(&comparison);
}

/* ---------------------------------------------------------------- charts */

/* The next number behind a text, which moves behind it; false at the end. */
static bool next_number(const char **text, const char *before, double *number)
{
    const char *found = strstr(*text, before);
    if (!found)
        return false;
    *text = found + strlen(before);
    *number = strtod(*text, NULL);
    return true;
}

/* Labels of the axis are in the middle of their lines, and do not meet at 400 pixels: there the
 * axis has 312, and a letter of 12 pixels takes 7.7 at most. */
static void spreads_ticks(void **state)
{
    (void)state;
    const double axis = 312, letter = 7.7, least = 17;
    for (double ratio = 1; ratio < 1e16; ratio *= 1.37)
        for (double low = 1.3; low < 2e9; low *= 7.1)
            for (int kind = 0; kind < 4; kind++) {
                static const enum chart_unit units[] = {CHART_TIME, CHART_TIME, CHART_FACTOR,
                                                        CHART_PERCENT};
                char *text = NULL;
                size_t size;
                FILE *stream = open_memstream(&text, &size);
                assert_non_null(stream);
                struct chart chart = {.stream = stream,
                                      .title = "",
                                      .description = "",
                                      .unit = units[kind],
                                      .logarithmic = kind > 0};
                double scale = kind < 2 ? 1 : 1e-4;
                chart_reach(&chart, low * scale);
                chart_reach(&chart, low * ratio * scale);
                chart_begin(&chart);
                chart_row(&chart, "", "", "");
                assert_int_equal(chart_end(&chart), HEALCL_OK);
                assert_int_equal(fclose(stream), 0);
                const char *place = text;
                double line, label, before = -100;
                size_t count = 0;
                while (next_number(&place, "x2=\"", &line) &&
                       next_number(&place, "<text class=\"axis\" x=\"", &label)) {
                    assert_true(fabs(line - label) < 1e-9);
                    assert_true(label > -0.1 && label < 100.1);
                    const char *anchor = strstr(place, "text-anchor=\"middle\">");
                    assert_non_null(anchor);
                    assert_true(label - before > least - 0.1);
                    before = label;
                    count++;
                }
                assert_true(count >= 1 && count <= 7);
                if (kind == 2) /* a speed-up of 1 has its line */
                    assert_non_null(strstr(text, "<line class=\"one\""));
                free(text);
            }
    assert_true(axis * least / 100 > 6 * letter); /* "500 ms" */
}

/* One late run does not make the bars of all others thin. */
static void keeps_late_runs_out_of_the_axis(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct comparison comparison;
        begin(&comparison, 1);
        add_device(&comparison, "0:0", "Chip", "One");
        add_spread_run(&comparison, 0, 0, 100 * MS);
        comparison.runs[0].times[COMPARE_WHOLE].of[4] = (uint64_t)(late ? 9000 : 120) * MS;
        compare_conclude(&comparison);
        char *page = printed_by(compare_print_html, &comparison);
        const char *chart = strstr(page, "id=\"time0\"");
        double bar = 0;
        assert_non_null(chart);
        assert_true(next_number(&chart, "class=\"bar d0\"", &bar));
        assert_true(next_number(&chart, "width=\"", &bar));
        assert_true(bar > 50);
        (late ? assert_contains : assert_lacks)(page, "href=\"#beyond\" x=\"100%\" ");
        (late ? assert_contains : assert_lacks)(page, "<title>9&#8239;s</title></use>");
        (late ? assert_contains : assert_lacks)(page, "100&#8239;ms, 1 late<");
        (late ? assert_contains : assert_lacks)(page, "late runs, which are beyond it.");
        free(page);
        comparison_release(&comparison);
    }
}

/* Marks that would hide each other lie below each other, and all of them within the chart. */
static void shows_every_mark(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    struct chart chart = {
        .stream = stream, .title = "", .description = "", .unit = CHART_TIME, .logarithmic = true};
    chart_reach(&chart, 100);
    chart_reach(&chart, 10000);
    chart_begin(&chart);
    for (unsigned row = 0; row < 2; row++) {
        chart_row(&chart, "row", "", "");
        for (unsigned i = 0; i < 8; i++)
            chart_mark(&chart, i, i < 6 ? 1000 + i : 5000, "device");
    }
    assert_int_equal(chart_end(&chart), HEALCL_OK);
    assert_int_equal(fclose(stream), 0);
    double x[16], y[16], height = 0;
    size_t count = 0;
    const char *place = text;
    assert_true(next_number(&place, "height=\"", &height));
    while (count < 16 && next_number(&place, "\" x=\"", &x[count]) &&
           next_number(&place, "\" y=\"", &y[count])) {
        if (strncmp(strchr(place, '>'), "><title>device", 14) == 0)
            count++;
    }
    assert_int_equal(count, 16);
    for (size_t i = 0; i < count; i++) {
        assert_true(y[i] > 8 && y[i] < height - 22 - 8);
        for (size_t j = 0; j < i; j++)
            assert_true(fabs(x[i] - x[j]) >= 5 - 0.01 || fabs(y[i] - y[j]) >= 14);
    }
    free(text);
}

/* The worst of what runs here; what baselines had is past. */
static void test_worst(void **state)
{
    (void)state;
    const struct {
        enum compare_outcome outcome;
        enum compare_news news;
    } cases[] = {
        {COMPARE_UNVERIFIED, COMPARED_RIGHT}, {COMPARE_VERIFIED, COMPARED_RIGHT},
        {COMPARE_REFUSED, COMPARED_REFUSED},  {COMPARE_UNPROVEN, COMPARED_FAILED},
        {COMPARE_CRASHED, COMPARED_FAILED},   {COMPARE_TIMED_OUT, COMPARED_FAILED},
        {COMPARE_VERIFIED, COMPARED_FAILED},  {COMPARE_DIFFERENT, COMPARED_DIFFERENT},
        {COMPARE_FAILED, COMPARED_DIFFERENT},
    };
    struct comparison comparison;
    begin(&comparison, 1);
    struct compare_device *device = add_device(&comparison, "0:0", "one", "p");
    assert_int_equal(compare_worst(&comparison), COMPARED_RIGHT);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        add_run(&comparison, 0, 0, cases[i].outcome, MS, 1);
        assert_int_equal(compare_worst(&comparison), cases[i].news);
    }
    comparison.run_count = 0;
    device->check.done = true;
    assert_int_equal(compare_worst(&comparison), COMPARED_FAILED);
    device->check.failed = 1;
    assert_int_equal(compare_worst(&comparison), COMPARED_DIFFERENT);
    device->check.verified = true;
    assert_int_equal(compare_worst(&comparison), COMPARED_RIGHT);
    const struct compare_origin past = {.baseline = "base.json"};
    add_device(&comparison, "0:0", "one", "p")->origin = &past;
    add_run(&comparison, 0, 1, COMPARE_DIFFERENT, MS, 1);
    assert_int_equal(compare_worst(&comparison), COMPARED_RIGHT);
    comparison_release(&comparison);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_means_and_their_range),
        cmocka_unit_test(counts_what_all_have_run),
        cmocka_unit_test(the_reference_never_leads),
        cmocka_unit_test(tells_which_transcripts_are_too_small),
        cmocka_unit_test(tells_on_how_many_it_is_faster),
        cmocka_unit_test(tells_where_there_is_no_difference),
        cmocka_unit_test(warns_of_noise),
        cmocka_unit_test(estimates_what_is_left),
        cmocka_unit_test(tells_whose_fault_it_is),
        cmocka_unit_test(asks_the_reference),
        cmocka_unit_test(tells_devices_apart),
        cmocka_unit_test(calls_devices_what_they_are),
        cmocka_unit_test(fits_a_terminal),
        cmocka_unit_test(prints_platforms),
        cmocka_unit_test(tells_where_it_was_measured),
        cmocka_unit_test(marks_emulators),
        cmocka_unit_test(needs_samples_for_percentiles),
        cmocka_unit_test(tells_shares_up_to_the_whole),
        cmocka_unit_test(writes_no_formulas),
        cmocka_unit_test(compares_cold_with_cold),
        cmocka_unit_test(reads_checks),
        cmocka_unit_test(spreads_ticks),
        cmocka_unit_test(keeps_late_runs_out_of_the_axis),
        cmocka_unit_test(shows_every_mark),
        cmocka_unit_test(test_worst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
