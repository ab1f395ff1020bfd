/* Tensors of many pieces, uploaded and compared with what a transcript expects. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper_device.h"
#include "run/results.h"
#include "tools/writer.h"

enum { ROWS = 50, COLUMNS = 300, COUNT = ROWS * COLUMNS };

static int64_t values[COUNT], expected[COUNT];
static const struct layout shape = {
    .rank = 2, .shape = {ROWS, COLUMNS}, .stride = {COLUMNS, 1}, .offset = 0};

static char told[8][160];
static int listed_count;

static void tell(void *context, const char *line)
{
    (void)context;
    assert_in_range(listed_count, 0, 7);
    snprintf(told[listed_count++], sizeof told[0], "%s", line);
}

/* The report of a run, in which the tensor is uploaded and comes back. */
static struct healcl_report run(bool fortran, const char *dump_dir)
{
    const struct healcl_run_options options = {.dump_dir = dump_dir,
                                               .observer = {.difference = tell}};
    struct healcl_device *device;
    struct writer writer = {0};
    struct plan *plan;
    struct executor *executor;
    struct results *results;
    struct healcl_segment_profile segments[4] = {{.name = NULL}};
    struct healcl_report report = {.segments = segments};
    listed_count = 0;
    writer_upload(&writer, "a", DTYPE_INT64, &shape, fortran, DTYPE_INT64, values);
    writer_download(&writer, "a", DTYPE_INT64, &shape, expected);
    char *text = writer_finish(&writer);
    assert_non_null(text);
    const struct source source = {.text = text, .length = strlen(text)};
    OK(device_open(&helper_opencl, NULL, &device, &error));
    OK(plan_create(&source, NULL, NULL, &plan, &error));
    OK(results_create(plan, &options, &results, &error));
    OK(device_executor_create(device, plan, &executor, &error));
    const struct result_sink sink = results_sink(results);
    results_start_segment(results, plan->segments);
    OK(executor_run(executor, plan, &sink, &error));
    OK(results_end_repetition(results, &error));
    report.segment_count = plan->segment_count;
    assert_in_range(report.segment_count, 1, 4);
    results_report(results, &report);
    report.segments = NULL;
    executor->class->destroy(executor);
    results_free(results);
    plan_free(plan);
    free(text);
    healcl_device_close(device);
    return report;
}

static const char *const ways[] = {"staging_bytes=0", "staging_bytes=4096",
                                   "staging_bytes=4194304"};

enum { WAYS = sizeof ways / sizeof *ways };

static void choose(int way)
{
    setenv("HEALCL_TUNING", ways[way], 1);
    for (int i = 0; i < COUNT; i++)
        values[i] = expected[i] = (int64_t)((uint64_t)i * 0x9e3779b97f4a7c15);
}

static void verifies(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++)
        for (int fortran = 0; fortran < 2; fortran++) {
            choose(way);
            struct healcl_report report = run(fortran, NULL);
            assert_int_equal(report.verdict, HEALCL_VERIFIED);
            assert_int_equal(report.results_compared, 1);
            assert_int_equal(listed_count, 0);
        }
}

/* Each difference is reported once, whichever pieces it lies in; files hold whole results. */
static void reports_differences(void **state)
{
    (void)state;
    char folder[] = "/tmp/healcl-test-XXXXXX", file[64], command[64];
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/entry_000001_a.npy", folder);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    for (int way = 0; way < WAYS; way++)
        for (int dumps = 0; dumps < 2; dumps++) {
            struct stat about = {.st_size = 0};
            choose(way);
            expected[700]++;
            expected[512 * 9]++;
            expected[COUNT - 1]++;
            struct healcl_report report = run(false, dumps ? folder : NULL);
            assert_int_equal(report.verdict, HEALCL_DIFFERS);
            assert_int_equal(report.results_different, 1);
            assert_int_equal(listed_count, 4);
            assert_non_null(strstr(told[0], "of shape [50, 300]: 3 of 15000 values differ"));
            assert_non_null(strstr(told[1], "[2, 100]: "));
            assert_non_null(strstr(told[2], "[15, 108]: "));
            assert_non_null(strstr(told[3], "[49, 299]: "));
            if (!dumps)
                continue;
            assert_int_equal(stat(file, &about), 0);
            assert_int_equal(about.st_size % 64, sizeof values % 64);
            assert_true((size_t)about.st_size > sizeof values);
            assert_int_equal(unlink(file), 0);
        }
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(verifies),
        DEVICE_TEST(reports_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
