/* Choosing kernels by measuring: what is listed, and that only what is right is chosen. */
#include <stdio.h>
#include <string.h>

#include "helper_device.h"
#include "run/tune.h"

static struct tune_report report; /* large */

static int set_up(void **state)
{
    unsetenv("HEALCL_VARIANT");
    return device_set_up(state);
}

static struct device_info some_device(cl_device_type type)
{
    return (struct device_info){.type = type, .little_endian = true, .max_work_group_size = 256};
}

/* Every choice can be taken, is there once, and each subject begins with the default. */
static void check_list(const struct device_info *info)
{
    struct device_tuning unchanged = tuning_default(info);
    char default_text[TUNING_TEXT_SIZE], text[TUNING_TEXT_SIZE];
    tune_list(info, &report);
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

/* ---------------------------------------------------------------- measuring */

static const char does_nothing[] =
    "#define ARGUMENTS struct space space, uint rows, BUFFER(OUT, out), BUFFER(const IN, in),"
    " global const struct modulus *q, global const struct twiddle *twiddles,"
    " global const uint *perm, uint use_perm\n"
    "KERNEL forward(ARGUMENTS) { }\n"
    "KERNEL inverse(ARGUMENTS, global const struct twiddle *n_inv) { }\n";
static const char does_not_build[] = "#error \"not on this device\"\n";

static struct healcl_device *open_device(void)
{
    struct healcl_device *device = NULL;
    OK(device_open(helper_loader(), NULL, &device, &error));
    OK(device_add_program(device, "single", does_nothing, &error));
    OK(device_add_program(device, "local", does_not_build, &error));
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

static void count_calls(void *context, const struct tune_alternative *alternative)
{
    assert_string_equal(alternative->subject, "transform");
    ++*(int *)context;
}

static void chooses_only_what_is_right(void **state)
{
    (void)state;
    static const char *const choices[] = {"transform=single", "transform=local",
                                          "transform=general"};
    struct healcl_device *device = open_device();
    int calls = 0;
    struct tune_options options = {
        .memory_limit = UINT64_MAX, .measuring = count_calls, .context = &calls};
    set_choices(device, 3, choices);
    OK(tune_measure(&device, &options, &report, &error));
    assert_int_equal(calls, 3);
    assert_int_equal(report.alternatives[0].outcome, TUNE_WRONG);
    assert_non_null(strstr(report.alternatives[0].reason, "the device's result is wrong"));
    assert_int_equal(report.alternatives[1].outcome, TUNE_FAILED);
    assert_non_null(strstr(report.alternatives[1].reason, "program 'local' does not build"));
    assert_int_equal(report.alternatives[2].outcome, TUNE_RIGHT);
    assert_true(report.alternatives[2].nanoseconds > 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(report.alternatives[i].chosen, i == 2);
    assert_int_equal(report.tuning.variants[FAMILY_transform], VARIANT_GENERAL);
    assert_int_equal(device->tuning.variants[FAMILY_transform], VARIANT_GENERAL);
    healcl_device_close(device);
}

/* A device whose loops end early refuses what has too many rounds in one work-item. */
static void goes_on_behind_a_refusal(void **state)
{
    (void)state;
    static const char *const choices[] = {"transform=general,transform_local_size=1",
                                          "transform=general,transform_local_size=8"};
    struct healcl_device *device = open_device();
    struct tune_options options = {.memory_limit = UINT64_MAX};
    set_choices(device, 2, choices);
    device->info.loop_limit = 1; /* until it is opened anew */
    OK(tune_measure(&device, &options, &report, &error));
    assert_int_equal(report.alternatives[0].outcome, TUNE_FAILED);
    assert_non_null(strstr(report.alternatives[0].reason, "rounds of loops in one work-item"));
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

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, device_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(lists_what_a_device_can),
        TEST(chooses_only_what_is_right),
        TEST(goes_on_behind_a_refusal),
        TEST(fails_where_nothing_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
