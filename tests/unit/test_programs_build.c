/* Programs: found, built once, with a build log when they do not build, and cached as binaries. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "helper_scenario.h"
#include "opencl/internal.h"

static struct healcl_device *open_device(void)
{
    struct healcl_device *device = NULL;
    OK(device_open(&helper_opencl, NULL, &device, &error));
    return device;
}

static const struct launch simple = {
    .program = "simple", .kernel = "f", .options = "-D X=1", .local_size = 1, .groups = 1};

static void builds_once(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    give_program(device, "simple", "KERNEL f(uint a) { }\nKERNEL g(uint a) { }\n");
    struct launch launch = simple;
    OK(device_attach(device, &launch, &(struct kernel *){NULL}, &error));
    OK(device_attach(device, &launch, &(struct kernel *){NULL}, &error));
    launch.kernel = "g";
    OK(device_attach(device, &launch, &(struct kernel *){NULL}, &error));
    assert_int_equal(helper.count[CALL_clBuildProgram], 1);
    assert_int_equal(helper.count[CALL_clCreateKernel], 2);
    launch.options = "-D X=2";
    OK(device_attach(device, &launch, &(struct kernel *){NULL}, &error));
    launch.local_size = 2;
    OK(device_attach(device, &launch, &(struct kernel *){NULL}, &error));
    assert_int_equal(helper.count[CALL_clBuildProgram], 3);
    launch = simple;
    OK(device_attach(device, &launch, &(struct kernel *){NULL}, &error));
    assert_int_equal(helper.count[CALL_clBuildProgram], 3);
    healcl_device_close(device);
}

static void run_scenario(struct healcl_device *device)
{
    struct scenario scenario = {.count = 100, .local_size = 4};
    bool right = false;
    OK(scenario_run(device, &scenario, &right, &error));
    assert_true(right);
    scenario_release(device, &scenario);
}

/* Handles that come and go build nothing, compile nothing, and leave nothing. */
static void handles_share_programs(void **state)
{
    (void)state;
    enum { HANDLES = 200 };
    struct healcl_device *device = open_device(), *beside = NULL;
    give_program(device, "scenario", scenario_source);
    run_scenario(device);
    const uint64_t launched = device->programs->first_launches;
    assert_true(launched > 0);
    const struct helper_opencl with_one = helper;
    for (int i = 0; i < HANDLES; i++) {
        OK(device_open_beside(device, &beside, &error));
        run_scenario(beside);
        assert_int_equal(beside->programs->built + beside->programs->loaded, 0);
        assert_int_equal(beside->programs->first_launches, 0);
        assert_ptr_equal(beside->programs->kernels->program, device->programs->kernels->program);
        assert_ptr_not_equal(beside->programs->kernels->id, device->programs->kernels->id);
        healcl_device_close(beside);
    }
    assert_int_equal(helper.count[CALL_clBuildProgram], with_one.count[CALL_clBuildProgram]);
    assert_int_equal(helper.kernels, with_one.kernels);
    assert_int_equal(helper.programs, with_one.programs);
    assert_int_equal(helper.queues, with_one.queues);
    assert_int_equal(helper.buffers, with_one.buffers);
    assert_int_equal(helper.events, with_one.events);
    healcl_device_close(device);
}

/* Another text under the same name, and what was discarded. */
static void handles_share_what_is_the_same(void **state)
{
    (void)state;
    struct healcl_device *device = open_device(), *beside = NULL;
    give_program(device, "simple", "KERNEL f(uint a) { }\n");
    OK(device_attach(device, &simple, &(struct kernel *){NULL}, &error));
    OK(device_open_beside(device, &beside, &error));
    OK(device_attach(beside, &simple, &(struct kernel *){NULL}, &error));
    assert_int_equal(beside->programs->built, 0);
    device_programs_discard(beside);
    OK(device_attach(beside, &simple, &(struct kernel *){NULL}, &error));
    assert_int_equal(beside->programs->built, 1);
    assert_ptr_not_equal(beside->programs->kernels->program, device->programs->kernels->program);
    healcl_device_close(beside);
    OK(device_open_beside(device, &beside, &error));
    give_program(beside, "simple", "KERNEL f(uint a) { (void)a; }\n");
    OK(device_attach(beside, &simple, &(struct kernel *){NULL}, &error));
    assert_int_equal(beside->programs->built, 1);
    healcl_device_close(device);
    healcl_device_close(beside);
}

/* Later sources take precedence over earlier ones. */
static void later_sources_win(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    give_program(device, "simple", "#error \"not this one\"\n");
    give_program(device, "simple", "KERNEL f(uint a) { }\n");
    OK(device_attach(device, &simple, &(struct kernel *){NULL}, &error));
    healcl_device_close(device);
}

static void shows_the_build_log(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    give_program(device, "simple", "\nKERNEL f(uint a) { undeclared = a; }\n");
    assert_int_equal(device_attach(device, &simple, &(struct kernel *){NULL}, &error),
                     HEALCL_DEVICE);
    char expected[512];
    snprintf(
        expected, sizeof expected,
        "program 'simple' does not build on %s: CL_BUILD_PROGRAM_FAILURE: ", device->info.name);
    assert_int_equal(strncmp(error.message, expected, strlen(expected)), 0);
    assert_non_null(strstr(error.message, "undeclared"));
    assert_int_equal(error.opencl_code, CL_BUILD_PROGRAM_FAILURE);
    assert_non_null(error.detail);
    assert_int_equal(strncmp(error.detail, "built with -cl-std=CL1.2 -w ", 28), 0);
    assert_non_null(strstr(error.detail, "-D X=1"));
    assert_non_null(strstr(error.detail, "undeclared"));
    assert_int_equal(device_attach(device, &simple, &(struct kernel *){NULL}, NULL), HEALCL_DEVICE);
    healcl_device_close(device);
}

static void misses_what_there_is_not(void **state)
{
    (void)state;
    struct healcl_device *device = open_device();
    assert_int_equal(device_attach(device, &simple, &(struct kernel *){NULL}, &error),
                     HEALCL_DEVICE);
    assert_string_equal(error.message, "there is no program 'simple'");
    give_program(device, "simple", "KERNEL g(uint a) { }\n");
    assert_int_equal(device_attach(device, &simple, &(struct kernel *){NULL}, &error),
                     HEALCL_DEVICE);
    assert_string_equal(error.message, "kernel 'f' of program 'simple': clCreateKernel failed: "
                                       "CL_INVALID_KERNEL_NAME (-46)");
    healcl_device_close(device);
}

/* ---------------------------------------------------------------- binaries */

static char directory[64];

static int set_up_cache(void **state)
{
    device_set_up(state);
    strcpy(directory, "/tmp/healcl_test_XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    char cache[128];
    snprintf(cache, sizeof cache, "%s/deep/cache", directory);
    setenv("HEALCL_CACHE_DIR", cache, 1);
    return 0;
}

/* Calls visit(path) for each file of the cache. Returns how many there are. */
static int each_file(void (*visit)(const char *path))
{
    const char *cache = getenv("HEALCL_CACHE_DIR");
    DIR *files = opendir(cache);
    int count = 0;
    for (struct dirent *entry; files && (entry = readdir(files)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        char path[512];
        snprintf(path, sizeof path, "%s/%s", cache, entry->d_name);
        count++;
        if (visit)
            visit(path);
    }
    if (files)
        closedir(files);
    return count;
}

static void remove_file(const char *path)
{
    unlink(path);
}

static int tear_down_cache(void **state)
{
    each_file(remove_file);
    char path[128];
    rmdir(getenv("HEALCL_CACHE_DIR"));
    snprintf(path, sizeof path, "%s/deep", directory);
    rmdir(path);
    if (rmdir(directory) != 0)
        return -1;
    return device_tear_down(state);
}

static void expect_scenario_runs(struct healcl_device *device)
{
    give_program(device, "scenario", scenario_source);
    struct scenario scenario = {.count = 100, .local_size = 4};
    bool right = false;
    OK(scenario_run(device, &scenario, &right, &error));
    assert_true(right);
    scenario_release(device, &scenario);
}

/* One process' use of the cache. */
static void run_and_cache(void)
{
    struct healcl_device *device = open_device();
    device->programs->keeps_binaries = true;
    expect_scenario_runs(device);
    healcl_device_close(device);
}

static void keeps_binaries(void **state)
{
    (void)state;
    run_and_cache();
    assert_int_equal(each_file(NULL), 1);
    assert_int_equal(helper.count[CALL_clCreateProgramWithSource], 1);
    run_and_cache();
    assert_int_equal(helper.count[CALL_clCreateProgramWithSource], 1);
    assert_int_equal(helper.count[CALL_clCreateProgramWithBinary], 1);
    assert_int_equal(each_file(NULL), 1);
}

static struct timespec delay; /* of a binary */

static cl_int CL_API_CALL give_binary(cl_program program, cl_program_info what, size_t size,
                                      void *value, size_t *needed)
{
    (void)program, (void)size, (void)needed;
    if (what == CL_PROGRAM_BINARY_SIZES)
        *(size_t *)value = 1;
    else
        **(unsigned char **)value = 0;
    return nanosleep(&delay, NULL);
}

/* The self-test finds out whether a CPU's driver has binaries at hand, or makes them when asked. */
static void keeps_cheap_binaries(void **state)
{
    (void)state;
    for (delay.tv_sec = 0; delay.tv_sec < 2; delay.tv_sec++)
        for (int opening = 0; opening < 2; opening++) { /* the second one finds it in the cache */
            struct opencl cl = helper_opencl;
            struct healcl_device *device = NULL;
            cl.clGetProgramInfo = give_binary;
            OK(helper_open_tested(&cl, &device, &error));
            assert_int_equal(device->programs->self_test_nanoseconds > 0, opening == 0);
            assert_int_equal(device->programs->keeps_binaries,
                             delay.tv_sec == 0 || !(device->info.type & CL_DEVICE_TYPE_CPU));
            healcl_device_close(device);
            if (opening > 0)
                each_file(remove_file);
        }
}

/* A binary built without optimization is not used by runs with it. */
static void keeps_binaries_apart_by_options_of_the_driver(void **state)
{
    static const char variable[] = "POCL_EXTRA_BUILD_FLAGS";
    (void)state;
    char before[256] = "";
    const char *value = getenv(variable);
    if (value)
        snprintf(before, sizeof before, "%s", value);
    setenv(variable, "-cl-opt-disable", 1);
    run_and_cache();
    unsetenv(variable);
    run_and_cache();
    assert_int_equal(helper.count[CALL_clCreateProgramWithSource], 2);
    assert_int_equal(each_file(NULL), 2);
    run_and_cache();
    assert_int_equal(helper.count[CALL_clCreateProgramWithSource], 2);
    if (value)
        setenv(variable, before, 1);
}

static void flip_last_byte(const char *path)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, -1, SEEK_END);
    int byte = fgetc(file);
    fseek(file, -1, SEEK_END);
    fputc(byte ^ 1, file);
    fclose(file);
}

static void cut(const char *path)
{
    struct stat information;
    assert_int_equal(stat(path, &information), 0);
    assert_int_equal(truncate(path, information.st_size / 2), 0);
}

static void cut_short(const char *path)
{
    assert_int_equal(truncate(path, 10), 0);
}

static void become_fifo(const char *path)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
}

static char noted[2][512];
static int noted_count;

static void note_file(const char *path)
{
    assert_in_range(noted_count, 0, 1);
    strcpy(noted[noted_count++], path);
}

static void swap_both_files(void)
{
    char aside[128];
    noted_count = 0;
    assert_int_equal(each_file(note_file), 2);
    snprintf(aside, sizeof aside, "%s/aside", directory);
    assert_int_equal(rename(noted[0], aside), 0);
    assert_int_equal(rename(noted[1], noted[0]), 0);
    assert_int_equal(rename(aside, noted[1]), 0);
}

static void ignores_damaged_binaries(void **state)
{
    (void)state;
    static void (*const damages[])(const char *) = {flip_last_byte, cut, cut_short, become_fifo};
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        run_and_cache();
        each_file(damages[i]);
        helper_reset();
        run_and_cache();
        assert_int_equal(helper.count[CALL_clCreateProgramWithBinary], 0);
        assert_int_equal(helper.count[CALL_clCreateProgramWithSource], 1);
        helper_reset();
        run_and_cache(); /* it has been replaced */
        assert_int_equal(helper.count[CALL_clCreateProgramWithSource], 0);
    }
}

/* Under the name of another program, here of the same source with other options, a binary would
 * compute something else. */
static void ignores_swapped_binaries(void **state)
{
    (void)state;
    for (int swapped = 0; swapped < 2; swapped++) {
        helper_reset();
        struct healcl_device *device = open_device();
        give_program(device, "simple", "KERNEL f(uint a) { }\n");
        struct launch launch = simple;
        OK(device_attach(device, &launch, &(struct kernel *){NULL}, &error));
        launch.options = "-D X=2";
        OK(device_attach(device, &launch, &(struct kernel *){NULL}, &error));
        assert_int_equal(helper.count[CALL_clCreateProgramWithBinary], 0);
        assert_int_equal(helper.count[CALL_clCreateProgramWithSource], 2);
        device->programs->keeps_binaries = true;
        healcl_device_close(device);
        swap_both_files();
    }
}

/* A driver that refuses its own binary, at either call. */
static void falls_back_to_source(void **state)
{
    (void)state;
    run_and_cache();
    for (int build = 0; build < 2; build++) {
        helper_reset();
        struct healcl_device *device = open_device();
        give_program(device, "scenario", scenario_source);
        struct launch launch = {.program = "scenario",
                                .kernel = "add",
                                .options = "-D AMOUNT=5",
                                .local_size = 4,
                                .groups = 1};
        helper.fail_code = CL_INVALID_BINARY;
        helper.fail_at = helper.calls + 1 + (uint64_t)build;
        OK(device_attach(device, &launch, &(struct kernel *){NULL}, &error));
        assert_string_equal(helper.failed, build ? "clBuildProgram" : "clCreateProgramWithBinary");
        assert_int_equal(helper.count[CALL_clCreateProgramWithSource], 1);
        device->programs->keeps_binaries = true;
        healcl_device_close(device);
    }
}

static void lives_without_a_directory(void **state)
{
    (void)state;
    char cache[128];
    snprintf(cache, sizeof cache, "%s", getenv("HEALCL_CACHE_DIR"));
    setenv("HEALCL_CACHE_DIR", "/dev/null/cache", 1);
    run_and_cache();
    run_and_cache();
    assert_int_equal(helper.count[CALL_clCreateProgramWithSource], 2);
    setenv("HEALCL_CACHE_DIR", "", 1);
    run_and_cache();
    assert_int_equal(helper.count[CALL_clCreateProgramWithSource], 3);
    setenv("HEALCL_CACHE_DIR", cache, 1);
}

static void finds_the_directory(void **state)
{
    (void)state;
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    static const struct {
        const char *own, *xdg, *home, *expected;
    } cases[] = {
        {"/a", "/b", "/c", "/a"},
        {"", "/b", "/c", NULL},
        {NULL, "/b", "/c", "/b/healcl"},
        {NULL, "b", "/c", "/c/.cache/healcl"},
        {NULL, NULL, "/c", "/c/.cache/healcl"},
        {NULL, NULL, "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsetenv("HEALCL_CACHE_DIR");
        unsetenv("XDG_CACHE_HOME");
        if (cases[i].own)
            setenv("HEALCL_CACHE_DIR", cases[i].own, 1);
        if (cases[i].xdg)
            setenv("XDG_CACHE_HOME", cases[i].xdg, 1);
        setenv("HOME", cases[i].home, 1);
        char found[CACHE_PATH_SIZE];
        assert_int_equal(cache_directory(found), cases[i].expected != NULL);
        if (cases[i].expected)
            assert_string_equal(found, cases[i].expected);
    }
    unsetenv("XDG_CACHE_HOME");
    if (home)
        setenv("HOME", home, 1);
    free(home);
}

#define CACHE_TEST(function) \
    cmocka_unit_test_setup_teardown(function, set_up_cache, tear_down_cache)

int main(void)
{
    alarm(300); /* where a FIFO is waited for */
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(builds_once),
        DEVICE_TEST(handles_share_programs),
        DEVICE_TEST(handles_share_what_is_the_same),
        DEVICE_TEST(later_sources_win),
        DEVICE_TEST(shows_the_build_log),
        DEVICE_TEST(misses_what_there_is_not),
        CACHE_TEST(keeps_binaries),
        CACHE_TEST(keeps_cheap_binaries),
        CACHE_TEST(keeps_binaries_apart_by_options_of_the_driver),
        CACHE_TEST(ignores_damaged_binaries),
        CACHE_TEST(ignores_swapped_binaries),
        CACHE_TEST(falls_back_to_source),
        CACHE_TEST(lives_without_a_directory),
        DEVICE_TEST(finds_the_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
