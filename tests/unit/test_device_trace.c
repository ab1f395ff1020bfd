/* Traces: the recorder, and what a device records in it. */
#include <string.h>

#include "helper_scenario.h"
#include "helper_share.h"

/* ---------------------------------------------------------------- the recorder */

static void nothing_without_a_trace(void **state)
{
    (void)state;
    size_t span = trace_begin(NULL, "category", "name");
    trace_end(NULL, span);
    span = trace_command(NULL, TRACE_COMPUTE, "category", "name", 1);
    trace_place(NULL, span, CLOCK_HOST, 1, 2);
    trace_enclose(NULL, span);
    trace_for_operation(NULL, "ntt", 1);
    assert_null(trace_span(NULL, 0));
    assert_null(trace_keep(NULL, "text"));
    trace_finish(NULL);
    trace_free(NULL);
}

static void keeps_the_first_spans(void **state)
{
    (void)state;
    enum { LIMIT = 3000, DROPPED = 7 };
    struct trace *trace = trace_create(LIMIT);
    assert_non_null(trace);
    size_t outer = trace_begin(trace, "segment", "outer");
    for (int i = 1; i < LIMIT + DROPPED; i++) {
        trace_for_operation(trace, "ntt", (size_t)i);
        trace_end(trace, trace_begin(trace, "operation", "ntt"));
    }
    trace_end(trace, outer); /* there is room for what began early */
    size_t dropped = trace_begin(trace, "operation", "ntt");
    assert_null(trace_span(trace, dropped));
    trace_finish(trace);
    assert_int_equal(trace->count, LIMIT);
    assert_int_equal(trace->dropped, DROPPED + 1);
    assert_int_equal(trace->spans[LIMIT - 1].entry, LIMIT - 1);
    assert_true(trace->spans[0].end >= trace->spans[LIMIT - 1].end);
    assert_true(trace->end >= trace->spans[0].end);
    trace_free(trace);
}

static void keeps_a_text_once(void **state)
{
    (void)state;
    struct trace *trace = trace_create(10);
    assert_non_null(trace);
    char text[] = "first";
    const char *first = trace_keep(trace, text);
    const char *second = trace_keep(trace, "second");
    assert_ptr_equal(trace_keep(trace, "first"), first);
    assert_ptr_equal(trace_keep(trace, "second"), second);
    text[0] = 'F';
    assert_string_equal(first, "first");
    trace_free(trace);
}

static void ends_what_has_not_ended(void **state)
{
    (void)state;
    struct trace *trace = trace_create(10);
    assert_non_null(trace);
    size_t open = trace_begin(trace, "segment", "open");
    size_t command = trace_command(trace, TRACE_COMPUTE, "kernel", "never enqueued", 0);
    trace_finish(trace);
    assert_true(trace_span(trace, open)->end == trace->end);
    assert_true(trace_span(trace, command)->end == 0);
    trace_free(trace);
}

static void encloses_what_came_after(void **state)
{
    (void)state;
    struct trace *trace = trace_create(10);
    assert_non_null(trace);
    size_t before = trace_command(trace, TRACE_COMPUTE, "kernel", "before", 0);
    size_t around = trace_command(trace, TRACE_COMPUTE, "segment", "around", 0);
    size_t inside = trace_command(trace, TRACE_COMPUTE, "kernel", "inside", 0);
    size_t other = trace_command(trace, TRACE_TRANSFER, "transfer", "other", 0);
    size_t later = trace_command(trace, TRACE_COMPUTE, "kernel", "later", 0);
    trace_place(trace, before, CLOCK_DEVICE, 100, 200);
    trace_place(trace, inside, CLOCK_DEVICE, 300, 350);
    trace_place(trace, other, CLOCK_DEVICE, 10, 1000);
    trace_place(trace, later, CLOCK_DEVICE, 400, 500);
    trace_enclose(trace, around);
    assert_true(trace_span(trace, around)->start == 300);
    assert_true(trace_span(trace, around)->end == 500);
    assert_int_equal(trace_span(trace, around)->clock, CLOCK_DEVICE);
    size_t empty = trace_command(trace, TRACE_COMPUTE, "segment", "empty", 0);
    trace_enclose(trace, empty);
    assert_true(trace_span(trace, empty)->end == 0);
    trace_free(trace);
}

static void converts_between_clocks(void **state)
{
    (void)state;
    static const uint64_t second = 1000000000;
    struct trace *trace = trace_create(10);
    assert_non_null(trace);
    size_t kernel = trace_command(trace, TRACE_COMPUTE, "kernel", "kernel", 0);
    size_t host = trace_begin(trace, "operation", "host");
    uint64_t start = trace_span(trace, host)->start;
    /* In a short time only the distance counts... */
    const struct clock_pair first = {100 * second, 7 * second, 3};
    const struct clock_pair soon = {100 * second + 2000, 7 * second + 1000, 5};
    trace_place(trace, kernel, CLOCK_DEVICE, 7 * second - 10, 7 * second + 500);
    trace_convert(trace, &first, &soon);
    assert_true(trace_span(trace, kernel)->start == 100 * second - 10);
    assert_true(trace_span(trace, kernel)->end == 100 * second + 500);
    assert_true(trace->clock_error == 5);
    assert_true(trace_span(trace, host)->start == start);
    /* ... and in a long one also that the device's clock is slow. */
    const struct clock_pair last = {102 * second, 8 * second, 2};
    trace_place(trace, kernel, CLOCK_DEVICE, 7 * second + 1000, 7 * second + 2000);
    trace_convert(trace, &first, &last);
    assert_true(trace_span(trace, kernel)->start == 100 * second + 2000);
    assert_true(trace_span(trace, kernel)->end == 100 * second + 4000);
    trace_convert(trace, &first, &last); /* nothing twice */
    assert_true(trace_span(trace, kernel)->start == 100 * second + 2000);
    trace_free(trace);
}

/* ---------------------------------------------------------------- on a device */

static void add_times(void *context, const struct launch_times *times)
{
    assert_ptr_equal(times->tag, SCENARIO_TAG);
    *(uint64_t *)context += times->running;
}

/* Uploads (mapped where it is large), launches and downloads under a trace. *complete is set when
 * all that can fail has worked. */
static enum healcl_status use(struct healcl_device *device, struct scenario *scenario,
                              struct trace *trace, bool *complete)
{
    uint64_t nanoseconds = 0;
    bool right = false;
    give_program(device, "scenario", scenario_source);
    TRY(device_trace_begin(device, trace, &error));
    TRY(scenario_run(device, scenario, &right, &error));
    TRY(scenario_launch(device, scenario, &error));
    TRY(device_finish(device, &error));
    TRY(device_take_times(device, add_times, &nanoseconds, &error));
    assert_true(right && nanoseconds > 0);
    assert_int_equal(device->programs->first_launches, 1);
    assert_true(device->first_launch_nanoseconds > 0);
    *complete = true;
    return HEALCL_OK;
}

static enum healcl_status open_use_close(const struct opencl *cl, struct trace *trace,
                                         bool *complete)
{
    struct healcl_device *device = NULL;
    TRY(device_open(cl, "", &device, &error));
    struct scenario scenario = {.count = 80000, .local_size = 4};
    enum healcl_status status = use(device, &scenario, trace, complete);
    device_trace_end(device);
    assert_null(device->trace);
    scenario_release(device, &scenario);
    healcl_device_close(device);
    return status;
}

static const struct trace_span *find(const struct trace *trace, enum trace_track track,
                                     const char *name)
{
    for (size_t i = 0; i < trace->count; i++)
        if (trace->spans[i].track == track && strcmp(trace->spans[i].name, name) == 0)
            return &trace->spans[i];
    fail_msg("there is no span '%s'", name);
    return NULL;
}

/* Every command has a time by the host's clock, and lies within the trace. */
static void check_spans(const struct trace *trace, enum trace_clock clock)
{
    const uint64_t slack = trace->clock_error;
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_span *span = &trace->spans[i];
        assert_true(span->start + slack >= trace->start && span->end >= span->start);
        assert_true(span->end <= trace->end + slack);
        if (span->track != TRACE_HOST)
            assert_int_equal(span->clock, clock);
        if (span->track != TRACE_HOST)
            assert_true(span->start + slack >= span->enqueued);
    }
    const struct trace_span *kernel = find(trace, TRACE_COMPUTE, "add");
    assert_string_equal(kernel->program, "scenario");
    assert_int_equal(kernel->groups, 20000);
    assert_int_equal(kernel->local_size, 4);
    assert_true(find(trace, TRACE_COMPUTE, "copy")->bytes == 16);
    assert_true(find(trace, TRACE_TRANSFER, "upload")->bytes == 320000);
    assert_true(find(trace, TRACE_COMPUTE, "map for reading")->bytes == 320000);
    /* The host waits for the download until it has ended. */
    const struct trace_span *wait = find(trace, TRACE_HOST, "wait for the device");
    assert_true(find(trace, TRACE_COMPUTE, "map for reading")->end <= wait->end + slack);
    assert_string_equal(find(trace, TRACE_HOST, "add")->category, "build");
    /* The driver's work before a kernel's first run is no time of the kernel, and is recorded once.
     * A driver that takes no times does not report it. */
    size_t first_launches = 0;
    for (size_t i = 0; i < trace->count; i++)
        first_launches +=
            trace->spans[i].end > 0 && strcmp(trace->spans[i].category, "first launch") == 0;
    assert_int_equal(first_launches, clock == CLOCK_CONVERTED);
    if (clock == CLOCK_CONVERTED) {
        const struct trace_span *compiles = find(trace, TRACE_COMPUTE, "compile add");
        assert_true(compiles->start < compiles->end && compiles->end == kernel->start);
        assert_true(compiles->start + slack >= kernel->enqueued);
    }
}

static void record(const struct opencl *cl, enum trace_clock clock)
{
    struct trace *trace = trace_create(TRACE_SPANS_MAX);
    assert_non_null(trace);
    bool complete = false;
    OK(open_use_close(cl, trace, &complete));
    trace_finish(trace);
    assert_int_equal(trace->clock_error > 0, clock == CLOCK_CONVERTED);
    check_spans(trace, clock);
    trace_free(trace);
}

static void records_commands(void **state)
{
    (void)state;
    record(&helper_opencl, CLOCK_CONVERTED);
}

static void driver_without_times(void **state)
{
    (void)state;
    struct opencl cl = helper_opencl_without_times();
    record(&cl, CLOCK_HOST);
}

/* Launches and transfers have the device's times all the same. */
static void driver_without_times_of_barriers(void **state)
{
    (void)state;
    struct opencl cl = helper_opencl_without_barrier_times();
    record(&cl, CLOCK_CONVERTED);
}

/* Every call fails once, then every call from it on: an error comes back, nothing is left alive. A
 * trace has no need of the second reading of the clocks. */
static void fail_each(const struct opencl *cl, bool lost)
{
    uint64_t calls = 1;
    for (uint64_t k = 0; k <= calls; k++) {
        if (k > 0 && !share_takes("calls", k, 3))
            continue;
        struct trace *trace = trace_create(TRACE_SPANS_MAX);
        assert_non_null(trace);
        helper_reset();
        healcl_error_clear(&error);
        helper.fail_code = CL_INVALID_OPERATION;
        helper.fail_after = lost;
        helper.fail_at = k;
        bool complete = false;
        enum healcl_status status = open_use_close(cl, trace, &complete);
        if (k == 0)
            calls = helper.calls;
        if (!helper_balanced() || (status == HEALCL_OK) != complete || (k == 0 && !complete))
            fail_msg("call %d, %s, failed: '%s'", (int)k, helper.failed, error.message);
        if (status == HEALCL_DEVICE && helper.count[CALL_clGetProgramBuildInfo] == 0)
            assert_non_null(strstr(error.message, helper.failed));
        trace_finish(trace);
        trace_free(trace);
    }
}

static void each_call_fails(void **state)
{
    (void)state;
    fail_each(&helper_opencl, false);
    fail_each(&helper_opencl, true);
}

static void each_call_fails_without_times(void **state)
{
    (void)state;
    struct opencl cl = helper_opencl_without_times();
    fail_each(&cl, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_without_a_trace),
        cmocka_unit_test(keeps_the_first_spans),
        cmocka_unit_test(keeps_a_text_once),
        cmocka_unit_test(ends_what_has_not_ended),
        cmocka_unit_test(encloses_what_came_after),
        cmocka_unit_test(converts_between_clocks),
        DEVICE_TEST(records_commands),
        DEVICE_TEST(driver_without_times),
        DEVICE_TEST(driver_without_times_of_barriers),
        DEVICE_TEST(each_call_fails),
        DEVICE_TEST(each_call_fails_without_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
