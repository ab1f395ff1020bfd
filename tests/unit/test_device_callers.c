/* The caller's own context, command queue, log and memory, and the list of devices. */
#include "helper_device.h"

#include <stdio.h>
#include <string.h>

#include "opencl/device.h"

#include "helper_queue.h"

struct caller {
    cl_context context;
    cl_command_queue queue;
    cl_device_id device;
    int lines, allocated, released;
    bool refuses;
};

static void hear(void *context, const char *line)
{
    struct caller *caller = context;
    assert_true(strchr(line, '\n') == NULL && *line != 0);
    caller->lines++;
}

static void *allocate(void *context, size_t bytes)
{
    struct caller *caller = context;
    cl_int code = CL_SUCCESS;
    if (caller->refuses)
        return NULL;
    caller->allocated++;
    return clCreateBuffer(caller->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
}

static void release(void *context, void *memory)
{
    struct caller *caller = context;
    caller->released++;
    clReleaseMemObject(memory);
}

/* A context of the device that is opened by default. */
static struct caller open_caller(cl_command_queue_properties properties)
{
    struct caller caller = {.lines = 0};
    struct device_info *list = NULL;
    size_t count = 0, index = 0;
    cl_int code = CL_SUCCESS;
    OK(device_list(&opencl_loader, false, &list, &count, &error));
    OK(device_select(list, count, NULL, &index, &error));
    caller.device = list[index].device_id;
    free(list);
    caller.context = clCreateContext(NULL, 1, &caller.device, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    caller.queue = clCreateCommandQueue(caller.context, caller.device, properties, &code);
    assert_int_equal(code, CL_SUCCESS);
    return caller;
}

static void close_caller(struct caller *caller)
{
    clReleaseCommandQueue(caller->queue);
    clReleaseContext(caller->context);
    assert_int_equal(caller->allocated, caller->released);
}

static struct healcl_device_options all_of(struct caller *caller)
{
    return (struct healcl_device_options){.context = caller->context,
                                          .device = caller->device,
                                          .queue = caller->queue,
                                          .log = hear,
                                          .log_context = caller,
                                          .allocate = allocate,
                                          .release = release,
                                          .memory_context = caller};
}

static void verify(struct healcl_device *device, bool profile)
{
    struct healcl_transcript *transcript = NULL;
    struct healcl_report *report = NULL;
    OK(healcl_transcript_open(TRANSCRIPTS "/segments.json", NULL, &transcript, &error));
    OK(healcl_run(transcript, device, &(struct healcl_run_options){.profile = profile, .repeat = 2},
                  &report, &error));
    assert_int_equal(report->verdict, HEALCL_VERIFIED);
    healcl_report_free(report);
    struct healcl_session *session = NULL;
    size_t results = 0;
    const struct healcl_tensor_info *info = healcl_transcript_results(transcript, &results);
    OK(healcl_session_open(transcript, device, NULL, &session, &error));
    OK(healcl_session_run(session, &error));
    for (size_t i = 0; i < results; i++) {
        uint64_t different = 1;
        if (!info[i].has_data)
            continue;
        OK(healcl_session_compare(session, i, &different, &error));
        assert_int_equal(different, 0);
    }
    healcl_session_close(session);
    healcl_transcript_close(transcript);
}

static void takes_all(void **state)
{
    (void)state;
    static const cl_command_queue_properties properties[] = {
        0, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        struct caller caller = open_caller(properties[i]);
        struct healcl_device_options options = all_of(&caller);
        struct healcl_device *device = NULL;
        OK(healcl_device_open_with(&options, &device, &error));
        verify(device, false);
        verify(device, true);
        healcl_device_close(device);
        assert_true(caller.lines > 0);
        assert_true(caller.allocated > 0);
        assert_int_equal(clFinish(caller.queue), CL_SUCCESS); /* it is the caller's still */
        close_caller(&caller);
    }
}

static void reports_missing_memory(void **state)
{
    (void)state;
    struct caller caller = open_caller(0);
    struct healcl_device_options options = all_of(&caller);
    struct healcl_device *device = NULL;
    struct healcl_queue *queue = NULL;
    struct healcl_tensor *tensor = NULL;
    const int64_t shape[1] = {1 << 20};
    OK(healcl_device_open_with(&options, &device, &error));
    OK(healcl_queue_open(device, NULL, &queue, &error));
    caller.refuses = true;
    assert_int_equal(healcl_tensor_create(queue, HEALCL_INT64, 1, shape, NULL, &tensor, &error),
                     HEALCL_DEVICE);
    caller.refuses = false;
    OK(healcl_tensor_create(queue, HEALCL_INT64, 1, shape, NULL, &tensor, &error));
    close_queue(queue);
    healcl_device_close(device);
    close_caller(&caller);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    struct caller caller = open_caller(0), other = open_caller(0);
    struct healcl_device *device = NULL;
    struct healcl_device_options options = all_of(&caller);
    options.queue = other.queue;
    assert_int_equal(healcl_device_open_with(&options, &device, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "the queue belongs to another context");
    options = (struct healcl_device_options){.queue = caller.queue};
    assert_int_equal(healcl_device_open_with(&options, &device, &error), HEALCL_USAGE);
    options = (struct healcl_device_options){.context = caller.context};
    assert_int_equal(healcl_device_open_with(&options, &device, &error), HEALCL_USAGE);
    options = (struct healcl_device_options){.allocate = allocate};
    assert_int_equal(healcl_device_open_with(&options, &device, &error), HEALCL_USAGE);
    options = (struct healcl_device_options){.context = caller.context,
                                             .device = (cl_device_id)(void *)&caller};
    assert_int_equal(healcl_device_open_with(&options, &device, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "no platform lists the given device");
    assert_int_equal(healcl_device_open_with(NULL, NULL, &error), HEALCL_USAGE);
    close_caller(&caller);
    close_caller(&other);
}

static void lists_devices(void **state)
{
    (void)state;
    struct healcl_device_info *list = NULL;
    struct healcl_device *device = NULL;
    size_t count = 0, found = 0;
    OK(healcl_device_list(&list, &count, &error));
    OK(healcl_device_open(NULL, &device, &error));
    struct healcl_device_info own = healcl_device_describe(device);
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].selector, own.selector) == 0) {
            assert_string_equal(list[i].name, own.name);
            assert_string_equal(list[i].unusable, "");
            assert_true(list[i].compute_units > 0);
            found++;
        }
    assert_int_equal(found, 1);
    healcl_device_close(device);
    healcl_device_list_free(list);
    assert_string_equal(healcl_device_describe(NULL).selector, "");
    assert_int_equal(healcl_device_list(NULL, &count, &error), HEALCL_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(takes_all),
        DEVICE_TEST(reports_missing_memory),
        DEVICE_TEST(lists_devices),
        DEVICE_TEST(refuses_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
