/*
 * The bundled transcripts under other conditions: kernels shaped as for other devices (small
 * work-groups, one element for each work-item, transforms shared by many work-items). Every result
 * must be verified as usual.
 */
#include "helper_device.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "helper_share.h"

enum { FILES_MAX = 256, PATH_SIZE = 1024, SHARE = 6 };

static struct healcl_transcript *transcripts[FILES_MAX];
static char paths[FILES_MAX][PATH_SIZE];
static int file_count;

static int compare_paths(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int open_transcripts(void **state)
{
    (void)state;
    setenv("HEALCL_CACHE_DIR", "", 1);
    DIR *folder = opendir(TRANSCRIPTS);
    if (!folder)
        return -1;
    for (struct dirent *entry; (entry = readdir(folder)) && file_count < FILES_MAX;) {
        size_t length = strlen(entry->d_name);
        if (length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0)
            snprintf(paths[file_count++], PATH_SIZE, "%s/%s", TRANSCRIPTS, entry->d_name);
    }
    closedir(folder);
    qsort(paths, (size_t)file_count, PATH_SIZE, compare_paths);
    for (int i = 0; i < file_count; i++)
        if (healcl_transcript_open(paths[i], NULL, &transcripts[i], &error) != HEALCL_OK) {
            print_error("%s: %s\n", paths[i], error.message);
            return -1;
        }
    print_message("%d transcripts\n", file_count);
    return file_count > 10 ? 0 : -1;
}

static int close_transcripts(void **state)
{
    (void)state;
    for (int i = 0; i < file_count; i++)
        healcl_transcript_close(transcripts[i]);
    healcl_error_clear(&error);
    return 0;
}

static int reset_environment(void **state)
{
    (void)state;
    unsetenv("HEALCL_TUNING");
    return 0;
}

static void verify(int file, struct healcl_device *device)
{
    struct healcl_report *report = NULL;
    const struct healcl_run_options once = {.no_warm_up = true};
    enum healcl_status status = healcl_run(transcripts[file], device, &once, &report, &error);
    if (status != HEALCL_OK)
        fail_msg("%s: %s", paths[file], error.message);
    if (report->verdict == HEALCL_DIFFERS)
        fail_msg("%s: %" PRIu64 " of %" PRIu64 " results differ", paths[file],
                 report->results_different, report->results_compared);
    if (report->results > 0)
        assert_int_equal(report->verdict, HEALCL_VERIFIED);
    assert_int_equal(report->results_compared, report->results);
    healcl_report_free(report);
}

static void verify_all(const char *tuning)
{
    static uint64_t number; /* of tunings */
    struct healcl_device *device = NULL;
    if (!share_takes("tunings", number++, 2))
        return;
    setenv("HEALCL_TUNING", tuning, 1);
    OK(device_open(helper_loader(), NULL, &device, &error));
    for (int i = 0; i < file_count; i++)
        if (share_takes(tuning, (uint64_t)i, SHARE))
            verify(i, device);
    healcl_device_close(device);
}

/* A GPU's: thin work-items in large groups, a transform for each group. */
static void many_work_items(void **state)
{
    (void)state;
    verify_all("general,local_size=64,elements_per_item=1,transform_local_size=64");
}

/* Runs that end within rows; transforms shared by two. */
static void odd_work_items(void **state)
{
    (void)state;
    verify_all("general,local_size=8,elements_per_item=3,transform_local_size=2");
}

/* More work-items for a transform than it has elements. */
static void wide_transforms(void **state)
{
    (void)state;
    verify_all("general,local_size=1,elements_per_item=1000000,transform_local_size=256");
}

static void overlapping(void **state)
{
    (void)state;
    verify_all("launches_at_once=2");
    verify_all("launches_at_once=16");
    verify_all("general,launches_at_once=16");
}

/* Fat work-items in groups, whose private memory adds up. */
static void fat_groups(void **state)
{
    (void)state;
    verify_all("vectors,local_size=64,elements_per_item=1024,transform_local_size=1");
}

#define SHAPE_TEST(function) cmocka_unit_test_teardown(function, reset_environment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHAPE_TEST(many_work_items), SHAPE_TEST(odd_work_items), SHAPE_TEST(wide_transforms),
        SHAPE_TEST(overlapping),     SHAPE_TEST(fat_groups),
    };
    return cmocka_run_group_tests(tests, open_transcripts, close_transcripts);
}
