/*
 * Runs on a device count times of warm kernels. A first repetition of kernels is an extra one.
 */
#include "helper_device.h"

#include <string.h>

#include "run/loaded_transcript.h"

enum { PHASES_MAX = 16 };

struct heard {
    char phases[PHASES_MAX + 1]; /* a letter for each repetition */
    uint32_t last_number, last_count;
};

static void hear(void *context, enum healcl_phase phase, uint32_t number, uint32_t count)
{
    struct heard *heard = context;
    size_t length = strlen(heard->phases);
    assert_true(length < PHASES_MAX);
    heard->phases[length] = phase == HEALCL_WARMING_UP  ? 'w'
                            : phase == HEALCL_MEASURING ? 'm'
                                                        : 'p';
    heard->last_number = number;
    heard->last_count = count;
}

static struct healcl_transcript *transcript;

/* Runs the transcript and returns its report. device: NULL for the reference. */
static struct healcl_report *run(struct healcl_device *device, struct healcl_run_options options,
                                 struct heard *heard)
{
    struct healcl_report *report = NULL;
    memset(heard, 0, sizeof *heard);
    options.observer = (struct healcl_observer){.context = heard, .repetition = hear};
    OK(healcl_run(transcript, device, &options, &report, &error));
    assert_int_equal(report->verdict, HEALCL_VERIFIED);
    return report;
}

static struct healcl_device *open_device(void)
{
    struct healcl_device *device = NULL;
    OK(device_open(&helper_opencl, NULL, &device, &error));
    return device;
}

static void first_run_warms_up(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    struct heard heard;
    struct healcl_report *report = run(device, (struct healcl_run_options){.repeat = 2}, &heard);
    assert_string_equal(heard.phases, "wmm");
    assert_true(heard.last_number == 2 && heard.last_count == 2);
    assert_int_equal(report->run_count, 2);
    assert_true(report->warm_up_nanoseconds > 0);
    assert_int_equal(report->first_launches, device->programs->first_launches);
    assert_true(report->first_launches > 0 && report->first_launch_nanoseconds == 0);
    /* Each repetition's time is its own: that of the first one is written over, not added to. */
    uint64_t segments = 0;
    for (size_t i = 0; i < report->segment_count; i++)
        segments += report->segments[i].nanoseconds;
    assert_true(segments <= report->run_nanoseconds[0] + report->run_nanoseconds[1]);
    healcl_report_free(report);

    /* Warm kernels are not warmed up again. */
    report = run(device, (struct healcl_run_options){.repeat = 1}, &heard);
    assert_string_equal(heard.phases, "m");
    assert_int_equal(report->warm_up_nanoseconds, 0);
    assert_int_equal(report->first_launches, 0);
    healcl_report_free(report);
    healcl_device_close(device);
}

static void without_warm_up(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    struct heard heard;
    struct healcl_report *report =
        run(device, (struct healcl_run_options){.no_warm_up = true, .profile = true}, &heard);
    assert_string_equal(heard.phases, "mp");
    assert_int_equal(report->warm_up_nanoseconds, 0);
    healcl_report_free(report);
    healcl_device_close(device);
}

/* The times of operations and of what lies between them make no more than that of the segment. */
static void times_add_up(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    struct heard heard;
    struct healcl_report *report =
        run(device, (struct healcl_run_options){.repeat = 1, .profile = true}, &heard);
    assert_string_equal(heard.phases, "wmp");
    assert_int_equal(report->profiled_count, 1); /* so that no median is one of another run */
    uint64_t kernels = 0, idle = 0;
    for (size_t i = 0; i < report->segment_count; i++) {
        const struct healcl_segment_profile *segment = &report->segments[i];
        uint64_t known = segment->not_begun_nanoseconds + segment->without_command_nanoseconds;
        idle += known;
        for (size_t j = 0; j < segment->profile_count; j++)
            known += segment->profiles[j].nanoseconds, kernels += segment->profiles[j].nanoseconds;
        assert_true(known <= segment->profiled_nanoseconds || report->operations_by_host);
    }
    assert_true(kernels > 0 && (idle > 0 || report->operations_by_host));
    /* Nor do first launches and what they wait for make more than the first run. */
    assert_true(report->first_launches > 0 && report->first_launch_nanoseconds > 0);
    assert_true(report->first_launch_nanoseconds <=
                report->warm_up_nanoseconds + report->compile_nanoseconds);
    healcl_report_free(report);
    healcl_device_close(device);
}

static int open_transcript(void **state)
{
    (void)state;
    return healcl_transcript_open(TRANSCRIPTS "/names.json", NULL, &transcript, &error) == HEALCL_OK
               ? 0
               : -1;
}

static int close_transcript(void **state)
{
    (void)state;
    healcl_transcript_close(transcript);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(first_run_warms_up),
        DEVICE_TEST(without_warm_up),
        DEVICE_TEST(times_add_up),
    };
    return cmocka_run_group_tests(tests, open_transcript, close_transcript);
}
