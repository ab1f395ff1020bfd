/* Choosing kernels by measuring: what is listed, and that only what is right is chosen. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "helper_device.h"
#include "tools/tune.h"

static struct tune_report report; /* large */

static int set_up(void **state)
{
    unsetenv("HEALCL_VARIANT");
    unsetenv("HEALCL_AS");
    return device_set_up(state);
}

static struct device_info some_device(cl_device_type type)
{
    return (struct device_info){.type = type,
                                .little_endian = true,
                                .max_work_group_size = 256,
                                .max_parameter_bytes = 1024};
}

/* Every choice can be taken, is there once, and each subject begins with the default. */
static void check_list(const struct device_info *info)
{
    struct device_tuning unchanged = tuning_default(info);
    char default_text[TUNING_TEXT_SIZE], text[TUNING_TEXT_SIZE];
    tune_list(info, NULL, &report);
    tuning_format(&unchanged, default_text);
    assert_true(report.count > 4);
    for (size_t i = 0; i < report.count; i++) {
        const struct tune_alternative *alternative = &report.alternatives[i];
        struct device_tuning tuning = tuning_default(info);
        OK(tuning_parse(&tuning, alternative->choice, "test", info, &error));
        tuning_format(&tuning, text);
        bool is_first = i == 0 || strcmp(alternative[-1].subject, alternative->subject) != 0;
        if (is_first)
            assert_string_equal(text, default_text);
        assert_int_equal(alternative->outcome, TUNE_NOT_MEASURED);
        assert_false(alternative->chosen);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(alternative->choice, report.alternatives[j].choice);
    }
}

static void lists_what_a_device_can(void **state)
{
    (void)state;
    static const cl_device_type types[] = {CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU,
                                           CL_DEVICE_TYPE_ACCELERATOR};
    for (int i = 0; i < 3; i++) {
        struct device_info info = some_device(types[i]);
        check_list(&info);
        for (size_t j = 0; j < report.count; j++) /* more than the device has */
            assert_string_not_equal(report.alternatives[j].choice, "local_size=512");
        info.max_work_group_size = 1;
        check_list(&info);
        size_t count = report.count;
        info.out_of_order = true;
        check_list(&info);
        assert_int_equal(report.count, count + 2);
        assert_string_equal(report.alternatives[count].subject, "launches_at_once");
    }
}

static void lists_one_subject(void **state)
{
    (void)state;
    const struct device_info info = some_device(CL_DEVICE_TYPE_GPU);
    tune_list(&info, "transform", &report);
    assert_true(report.count > 4);
    for (size_t i = 0; i < report.count; i++)
        assert_string_equal(report.alternatives[i].subject, "transform");
    tune_list(&info, "transforms", &report);
    assert_int_equal(report.count, 0);
}

/* ---------------------------------------------------------------- measuring */

static const char does_nothing[] =
    "#define ARGUMENTS struct space space, uint rows, global OUT *out, global const IN *in,"
    " global const struct modulus *q, global const struct twiddle *twiddles,"
    " global const uint *perm, uint use_perm\n"
    "KERNEL ntt_single(ARGUMENTS) { }\n"
    "KERNEL intt_single(ARGUMENTS, global const struct twiddle *n_inv) { }\n";
static const char does_not_build[] = "#error \"not on this device\"\n";

static struct healcl_device *open_device(void)
{
    struct healcl_device *device = NULL;
    OK(device_open(helper_loader(), NULL, &device, &error));
    give_program(device, "ntt/single", does_nothing);
    give_program(device, "ntt/registers", does_not_build);
    return device;
}

/* A report with these choices for transforms. */
static void set_choices(const struct healcl_device *device, int count, const char *const *choices)
{
    report = (struct tune_report){.tuning = tuning_default(&device->info)};
    for (int i = 0; i < count; i++) {
        struct tune_alternative *alternative = &report.alternatives[report.count++];
        alternative->subject = "transform";
        snprintf(alternative->choice, sizeof alternative->choice, "%s", choices[i]);
    }
}

static int calls;

static void count_calls(const struct tune_alternative *alternative)
{
    assert_string_equal(alternative->subject, "transform");
    calls++;
}

static void chooses_only_what_is_right(void **state)
{
    (void)state;
    static const char *const choices[] = {"transform=single", "transform=local",
                                          "transform=general"};
    struct healcl_device *device = open_device();
    /* Choosing among what is right is tested here, on a busy machine too. */
    struct tune_options options = {
        .memory_limit = UINT64_MAX, .force = true, .measuring = count_calls};
    set_choices(device, 3, choices);
    OK(tune_measure(&device, &options, &report, &error));
    assert_int_equal(calls, 3);
    assert_int_equal(report.alternatives[0].outcome, TUNE_WRONG);
    assert_non_null(strstr(report.alternatives[0].reason, "the device's result is wrong"));
    assert_int_equal(report.alternatives[1].outcome, TUNE_FAILED);
    assert_non_null(
        strstr(report.alternatives[1].reason, "program 'ntt/registers' does not build"));
    assert_int_equal(report.alternatives[2].outcome, TUNE_RIGHT);
    assert_true(report.alternatives[2].nanoseconds > 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(report.alternatives[i].chosen, i == 2);
    assert_int_equal(report.tuning.styles[FAMILY_transform], STYLE_GENERAL);
    assert_int_equal(device->tuning.styles[FAMILY_transform], STYLE_GENERAL);
    healcl_device_close(device);
}

/* A device whose loops end early refuses what has too many rounds in one work-item. */
static void goes_on_behind_a_refusal(void **state)
{
    (void)state;
    static const char *const choices[] = {"transform=general,transform_local_size=1",
                                          "transform=general,transform_local_size=8"};
    struct healcl_device *device = open_device();
    struct tune_options options = {.memory_limit = UINT64_MAX, .force = true};
    set_choices(device, 2, choices);
    device->info.loop_limit = 1; /* until it is opened again */
    OK(tune_measure(&device, &options, &report, &error));
    assert_int_equal(report.alternatives[0].outcome, TUNE_FAILED);
    assert_non_null(strstr(report.alternatives[0].reason, "a work-item needs loops of "));
    assert_int_equal(report.alternatives[1].outcome, TUNE_RIGHT);
    assert_true(report.alternatives[1].chosen);
    healcl_device_close(device);
}

static void fails_where_nothing_is_right(void **state)
{
    (void)state;
    static const char *const choices[] = {"transform=single"};
    struct healcl_device *device = open_device();
    struct tune_options options = {.memory_limit = UINT64_MAX};
    set_choices(device, 1, choices);
    assert_int_equal(tune_measure(&device, &options, &report, &error), HEALCL_DEVICE);
    assert_int_equal(
        strncmp(error.message, "no choice of 'transform' gives right results: ntt: ", 51), 0);
    healcl_device_close(device);
}

/* ---------------------------------------------------------------- times of our own */

enum { MEASUREMENTS_MAX = 16 };

/* Results of measurements, in order. */
static struct {
    struct measurement {
        double min_ns, median_ns;
    } list[MEASUREMENTS_MAX];
    int count;
} measured;

static enum healcl_status measure(struct healcl_device *device,
                                  const struct bench_operation *operation,
                                  const struct bench_settings *given,
                                  const struct bench_options *bench_options,
                                  struct bench_result *result, struct healcl_error *ignored)
{
    (void)device, (void)given, (void)ignored;
    assert_non_null(operation);
    assert_true(bench_options->repeat > 1);
    assert_true(measured.count < MEASUREMENTS_MAX);
    const struct measurement *next = &measured.list[measured.count++];
    *result = (struct bench_result){.min_ns = next->min_ns, .median_ns = next->median_ns};
    return HEALCL_OK;
}

static const char *const two_of_each[][2] = {{"digits", "digits=vectors"},
                                             {"digits", "digits=general"},
                                             {"gather", "gather=vectors"},
                                             {"gather", "gather=general"}};

/* Tunes a device with two choices of digits, the default first, and two of gather; each of them has
 * one case. */
static enum healcl_status tune_among(const char *const choices[4][2],
                                     const struct measurement *list, size_t count,
                                     struct tune_options options, struct device_tuning *chosen)
{
    struct healcl_device *device = open_device();
    report = (struct tune_report){.count = 4, .tuning = tuning_default(&device->info)};
    for (size_t i = 0; i < 4; i++) {
        report.alternatives[i].subject = choices[i / 2 * 2][0];
        strcpy(report.alternatives[i].choice, choices[i][1]);
    }
    memset(&measured, 0, sizeof measured);
    memcpy(measured.list, list, count * sizeof *list);
    options.memory_limit = UINT64_MAX;
    options.bench = measure;
    enum healcl_status status = tune_measure(&device, &options, &report, &error);
    *chosen = device->tuning;
    healcl_device_close(device);
    return status;
}

#define TUNE(list, options, chosen) \
    tune_among(two_of_each, list, sizeof list / sizeof *list, options, chosen)

static const struct tune_options no_options;

static void refuses_what_a_busy_machine_measured(void **state)
{
    (void)state;
    static const struct measurement list[] = {
        {1e6, 1.02e6}, {3e6, 3.6e6}, {4e6, 4.8e6}, {2e6, 2.5e6}};
    struct device_tuning chosen;
    assert_int_equal(TUNE(list, no_options, &chosen), HEALCL_DEVICE);
    assert_int_equal(measured.count, 1 + TUNE_TRIES);
    assert_string_equal(
        error.message,
        "the machine is too busy: with 'digits=general' the median of 7 samples took 25 % longer "
        "than the fastest (2.5 ms and 2 ms), and more than 10 % in each of 3 tries; nothing is "
        "chosen (--force chooses anyway)");
    healcl_error_clear(&error);
    for (int i = 0; i < 4; i++)
        assert_false(report.alternatives[i].chosen);
}

/* A measurement on a briefly busy machine is repeated. */
static void takes_a_steady_try(void **state)
{
    (void)state;
    static const struct measurement list[] = {{1e6, 1.2e6}, {1e6, 1.09e6}, {8e5, 1e6},
                                              {9e5, 9.5e5}, {3e6, 3e6},    {2e6, 2.1e6}};
    struct device_tuning chosen;
    OK(TUNE(list, no_options, &chosen));
    assert_int_equal(measured.count, 6);
    assert_true(tune_spread(&report.alternatives[0]) > 8.9);
    assert_int_equal((int)report.alternatives[1].nanoseconds, 900000);
    assert_true(report.alternatives[1].chosen); /* a tenth faster than the default */
    assert_true(report.alternatives[3].chosen);
    assert_int_equal(chosen.styles[FAMILY_digits], STYLE_GENERAL);
    assert_int_equal(chosen.styles[FAMILY_gather], STYLE_GENERAL);
}

static void chooses_on_a_busy_machine_if_forced(void **state)
{
    (void)state;
    static const struct measurement list[] = {{3e6, 6e6}, {2e6, 9e6}, {1e6, 1e6}, {1e6, 1e6}};
    struct device_tuning chosen;
    OK(TUNE(list, (struct tune_options){.force = true}, &chosen));
    assert_int_equal(measured.count, 4);
    assert_int_equal((int)tune_spread(&report.alternatives[1]), 350);
    assert_true(report.alternatives[1].chosen);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, device_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(lists_what_a_device_can),      TEST(lists_one_subject),
        TEST(chooses_only_what_is_right),   TEST(goes_on_behind_a_refusal),
        TEST(fails_where_nothing_is_right), TEST(refuses_what_a_busy_machine_measured),
        TEST(takes_a_steady_try),           TEST(chooses_on_a_busy_machine_if_forced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
