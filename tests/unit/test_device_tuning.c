/* Tunings that are saved between runs: written, read, and ignored where they are not to be trusted;
 * and what goes before them. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper_device.h"
#include "opencl/internal.h"
#include "tools/measure.h"

static char directory[64], cache[80];
static struct device_info info;

static int set_up(void **state)
{
    device_set_up(state);
    unsetenv("HEALCL_VARIANT");
    unsetenv("HEALCL_AS");
    strcpy(directory, "/tmp/healcl_test_XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    snprintf(cache, sizeof cache, "%s/cache", directory);
    setenv("HEALCL_CACHE_DIR", cache, 1);
    info = (struct device_info){.type = CL_DEVICE_TYPE_CPU,
                                .little_endian = true,
                                .double_width = 4,
                                .max_work_group_size = 256,
                                .max_parameter_bytes = 1024,
                                .platform = "a platform",
                                .name = "a device",
                                .driver = "1"};
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command) == 0 ? device_tear_down(state) : -1;
}

static struct device_tuning tuning_of(const char *text)
{
    struct device_tuning tuning = tuning_default(&info);
    OK(tuning_parse(&tuning, text, "test", &info, &error));
    return tuning;
}

static const char *source_name(const struct device_tuning *tuning)
{
    static char text[TUNING_SOURCE_SIZE];
    return tuning_source_name(tuning, text);
}

static void assert_same(const struct device_tuning *a, const struct device_tuning *b)
{
    char a_text[TUNING_TEXT_SIZE], b_text[TUNING_TEXT_SIZE];
    tuning_format(a, a_text);
    tuning_format(b, b_text);
    assert_string_equal(a_text, b_text);
}

/* Stores something else under the name of a saved file. */
static void keep_instead(const char *path, const char *text)
{
    OK(cache_write(strrchr(path, '/') + 1, text, strlen(text), NULL, &error));
}

/* Keeps a tuning, or something else under its name. */
static void keep(const struct device_tuning *tuning, const char *instead)
{
    char *path = NULL;
    OK(tuning_cache(tuning, &info, &path, &error));
    assert_non_null(path);
    if (instead)
        keep_instead(path, instead);
    free(path);
}

static void keeps_and_reads(void **state)
{
    (void)state;
    struct device_tuning tuning =
        tuning_of("local_size=4,elements_per_item=7,past_caches_bytes=99,transform=single");
    struct device_tuning read = tuning_default(&info), other = read;
    assert_false(tuning_read_cached(&read, &info));
    keep(&tuning, NULL);
    assert_true(tuning_read_cached(&read, &info));
    assert_same(&read, &tuning);
    assert_int_equal(read.past_caches_bytes, 99);
    tuning.transform_local_size = 8;
    keep(&tuning, NULL); /* over the one before */
    assert_true(tuning_read_cached(&read, &info));
    assert_same(&read, &tuning);
    strcpy(info.driver, "2");
    assert_false(tuning_read_cached(&other, &info));
    strcpy(info.driver, "1");
    strcpy(info.name, "another device");
    assert_false(tuning_read_cached(&other, &info));
    struct device_tuning unchanged = tuning_default(&info);
    assert_same(&other, &unchanged);
}

static void shapes_emulated_gpus_as_gpus(void **state)
{
    (void)state;
    struct device_tuning cpu = tuning_default(&info);
    assert_int_equal(cpu.styles[FAMILY_elementwise], STYLE_VECTORS);
    info.double_width = 0;
    assert_true(device_emulates_gpu(&info));
    struct device_tuning tuning = tuning_default(&info);
    assert_int_equal(tuning.elements_per_item, 1);
    assert_int_equal(tuning.styles[FAMILY_gather], STYLE_GENERAL);
    assert_int_equal(tuning.styles[FAMILY_transform], STYLE_LOCAL);
    info.double_width = 8;
    assert_false(device_emulates_gpu(&info));
    info.loop_limit = 65535;
    assert_true(device_emulates_gpu(&info));
    info.type = CL_DEVICE_TYPE_GPU;
    assert_false(device_emulates_gpu(&info));
}

static void ignores_what_it_cannot_read(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "local_size=4,\001",         /* no text of ours */
        "local_size=512",            /* not on this device */
        "transform=quick",           /* a shape of another version */
        "transform=local:quick",     /* a variant of another version */
        "local_size=4,colour=green", /* of another version too */
    };
    struct device_tuning tuning = tuning_of("local_size=4"), unchanged = tuning_default(&info);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct device_tuning read = tuning_default(&info);
        keep(&tuning, texts[i]);
        assert_false(tuning_read_cached(&read, &info));
        assert_same(&read, &unchanged);
        assert_int_equal(read.cached_is_unreadable, i > 0);
    }
    char long_text[TUNING_TEXT_SIZE + 2];
    memset(long_text, 'x', sizeof long_text);
    long_text[TUNING_TEXT_SIZE + 1] = 0;
    keep(&tuning, long_text);
    assert_false(tuning_read_cached(&tuning, &info));
}

static void keeps_nothing_where_it_cannot(void **state)
{
    (void)state;
    struct device_tuning tuning = tuning_default(&info);
    char *path = cache;
    setenv("HEALCL_CACHE_DIR", "", 1);
    OK(tuning_cache(&tuning, &info, &path, &error));
    assert_null(path);
    assert_false(tuning_read_cached(&tuning, &info));
    setenv("HEALCL_CACHE_DIR", "/dev/null/cache", 1);
    assert_int_equal(tuning_cache(&tuning, &info, &path, &error), HEALCL_USAGE);
    assert_int_equal(strncmp(error.message, "cannot write '/dev/null/cache/tuning_", 37), 0);
    healcl_error_clear(&error);
}

static int is_rates(const struct dirent *entry)
{
    return strncmp(entry->d_name, "rates_", 6) == 0;
}

/* Returns the name of the only saved file. */
static void find_cached(char path[512])
{
    struct dirent **names = NULL;
    int count = scandir(cache, &names, is_rates, alphasort);
    assert_int_equal(count, 1);
    snprintf(path, 512, "%s/%s", cache, names[0]->d_name);
    free(names[0]);
    free(names);
}

static void keeps_rates(void **state)
{
    (void)state;
    static const char *const damaged[] = {"", "1 2", "1 2 3 4 5 6 7", "1 2 3 4 5 x", "0 2 3 4 5 6"};
    const struct roofline rates = {UINT64_MAX, {1, 1234567890123, UINT64_MAX, 0, 0}, false};
    struct roofline read;
    struct device_tuning tuning = tuning_default(&info), other = tuning_of("local_size=4");
    assert_false(roofline_read_cached(&info, &tuning, &read));
    roofline_cache(&info, &tuning, &rates);
    assert_true(roofline_read_cached(&info, &tuning, &read));
    assert_int_equal(read.bytes, rates.bytes);
    assert_memory_equal(read.work, rates.work, sizeof rates.work);
    assert_false(roofline_read_cached(&info, &other, &read)); /* other kernels */
    info.compute_units++;
    assert_false(roofline_read_cached(&info, &tuning, &read));
    info.compute_units--;
    char path[512];
    find_cached(path);
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        keep_instead(path, damaged[i]);
        assert_false(roofline_read_cached(&info, &tuning, &read));
    }
    setenv("HEALCL_CACHE_DIR", "", 1);
    roofline_cache(&info, &tuning, &rates);
    assert_false(roofline_read_cached(&info, &tuning, &read));
}

/* ---------------------------------------------------------------- swapped files */

enum { KEPT_KINDS = 3, KEPT_FILES = 2 * KEPT_KINDS };

/* Saves each kind of file for a device; its driver decides the content. */
static void keep_all(struct device_info *device)
{
    struct device_tuning tuning = tuning_of(*device->driver == '1' ? "local_size=4" : "");
    struct kernel_choices choices = {.text = ""};
    const struct roofline rates = {.bytes = (uint64_t)*device->driver};
    char *path = NULL;
    OK(tuning_cache(&tuning, device, &path, &error));
    free(path);
    kernel_choices_set(&choices, 1, (uint32_t)*device->driver);
    OK(kernel_choices_cache(&choices, device, &path, &error));
    free(path);
    tuning = tuning_default(device);
    roofline_cache(device, &tuning, &rates);
}

/* Returns how many files of keep_all are read. */
static int read_all(const struct device_info *device)
{
    struct device_tuning tuning = tuning_default(device);
    struct kernel_choices choices;
    struct roofline rates;
    int count = roofline_read_cached(device, &tuning, &rates);
    kernel_choices_read_cached(&choices, device);
    count += kernel_choices_find(&choices, 1) != 0;
    return count + tuning_read_cached(&tuning, device);
}

static int is_kept(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void swap_files(const char *a, const char *b)
{
    char paths[3][512];
    snprintf(paths[0], sizeof paths[0], "%s/%s", cache, a);
    snprintf(paths[1], sizeof paths[1], "%s/%s", cache, b);
    snprintf(paths[2], sizeof paths[2], "%s/.swapped", cache);
    assert_int_equal(rename(paths[0], paths[2]), 0);
    assert_int_equal(rename(paths[1], paths[0]), 0);
    assert_int_equal(rename(paths[2], paths[1]), 0);
}

/* A file that stands under the name of another one is nobody's, whatever kind they are. */
static void ignores_swapped_files(void **state)
{
    (void)state;
    struct device_info other = info;
    struct dirent **names = NULL;
    strcpy(other.driver, "2");
    keep_all(&info);
    keep_all(&other);
    assert_int_equal(read_all(&info) + read_all(&other), KEPT_FILES);
    assert_int_equal(scandir(cache, &names, is_kept, alphasort), KEPT_FILES);
    for (int a = 0; a < KEPT_FILES; a++)
        for (int b = 0; b < a; b++) {
            swap_files(names[a]->d_name, names[b]->d_name);
            assert_int_equal(read_all(&info) + read_all(&other), KEPT_FILES - 2);
            swap_files(names[a]->d_name, names[b]->d_name);
        }
    assert_int_equal(read_all(&info) + read_all(&other), KEPT_FILES);
    for (int i = 0; i < KEPT_FILES; i++)
        free(names[i]);
    free(names);
}

/* default < saved < HEALCL_TUNING < HEALCL_VARIANT */
static void has_its_place_among_others(void **state)
{
    (void)state;
    struct healcl_device *device = NULL;
    OK(device_open(&helper_opencl, NULL, &device, &error));
    info = device->info;
    assert_null(source_name(&device->tuning));
    healcl_device_close(device);
    setenv("HEALCL_TUNING", "", 1); /* says nothing */
    setenv("HEALCL_VARIANT", "general", 1);
    OK(device_open(&helper_opencl, NULL, &device, &error));
    assert_string_equal(source_name(&device->tuning), "the environment");
    healcl_device_close(device);
    unsetenv("HEALCL_TUNING");
    unsetenv("HEALCL_VARIANT");
    struct device_tuning tuning =
        tuning_of("elements_per_item=77,local_size=2,transform=single,elementwise=general");
    keep(&tuning, NULL);
    OK(device_open(&helper_opencl, NULL, &device, &error));
    assert_same(&device->tuning, &tuning);
    assert_string_equal(source_name(&device->tuning), "healcl tune");
    healcl_device_close(device);
    setenv("HEALCL_TUNING", "local_size=4,transform=general", 1);
    setenv("HEALCL_VARIANT", "transform=local", 1);
    OK(device_open(&helper_opencl, NULL, &device, &error));
    assert_int_equal(device->tuning.elements_per_item, 77);
    assert_int_equal(device->tuning.local_size, 4);
    assert_int_equal(device->tuning.styles[FAMILY_transform], STYLE_LOCAL);
    assert_int_equal(device->tuning.styles[FAMILY_elementwise], STYLE_GENERAL);
    assert_string_equal(source_name(&device->tuning), "healcl tune and the environment");
    healcl_device_close(device);
    keep(&tuning, "transform=local:quick"); /* a variant of another version: reported */
    OK(device_open(&helper_opencl, NULL, &device, &error));
    assert_string_equal(source_name(&device->tuning), "the environment");
    assert_string_equal(device_warning(device, 0), CACHED_UNREADABLE);
    assert_null(device_warning(device, 1));
    healcl_device_close(device);
    keep(&tuning, NULL);
    setenv("HEALCL_TUNING", "local_size=4,colour=green", 1);
    struct device_tuning without;
    assert_int_equal(tuning_of_device(&info, &without, &error), HEALCL_USAGE);
    healcl_error_clear(&error);
    assert_same(&without, &tuning);
    unsetenv("HEALCL_TUNING");
    unsetenv("HEALCL_VARIANT");
}

/* An H100, as its driver describes itself. */
static struct device_info h100(void)
{
    return (struct device_info){.type = CL_DEVICE_TYPE_GPU,
                                .little_endian = true,
                                .max_work_group_size = 1024,
                                .max_parameter_bytes = 1024,
                                .vendor = "NVIDIA Corporation",
                                .architecture = "sm_90",
                                .name = "NVIDIA H100 80GB HBM3",
                                .driver = "580.159.04"};
}

/* What each file in tunings/ says is a tunable in its range, whoever runs the test. */
static void reads_all_files(void **state)
{
    (void)state;
    const struct device_info any = h100();
    const char *const *file = healcl_tuning_files;
    struct device_tuning tuning = tuning_default(&any);
    uint32_t specificity;
    for (assert_non_null(*file); *file; file += 2)
        OK(tuning_file_read(file[0], file[1], &any, &tuning, &specificity, &error));
}

/* default < file < saved < environment */
static void takes_the_file_of_a_device(void **state)
{
    (void)state;
    struct device_tuning tuning, saved;
    info = h100();
    assert_int_equal(tuning_default(&info).transform_radix, 8);
    OK(tuning_of_device(&info, &tuning, &error));
    assert_int_equal(tuning.transform_radix, 16);
    assert_string_equal(source_name(&tuning), "tunings/nvidia-h100.json");
    setenv("HEALCL_TUNING", "transform_radix=8", 1);
    OK(tuning_of_device(&info, &tuning, &error));
    assert_int_equal(tuning.transform_radix, 8);
    assert_string_equal(source_name(&tuning), "tunings/nvidia-h100.json and the environment");
    unsetenv("HEALCL_TUNING");
    saved = tuning_of("local_size=64");
    keep(&saved, NULL);
    OK(tuning_of_device(&info, &tuning, &error));
    assert_int_equal(tuning.transform_radix, 8);
    assert_string_equal(source_name(&tuning), "healcl tune");
    strcpy(info.driver, "1"); /* nothing is saved with that */
    strcpy(info.architecture, "sm_80");
    OK(tuning_of_device(&info, &tuning, &error));
    assert_null(source_name(&tuning));
}

/* Characters other than wildcards count, all patterns together. */
static void prefers_specific_patterns(void **state)
{
    (void)state;
    static const char *const files[] = {
        "\"vendor\":\"NVIDIA*\"", "\"vendor\":\"NVIDIA*\",\"architecture\":\"sm_90\"",
        "\"name\":\"*H100*\",\"driver\":\"58?.*\"", "\"name\":\"H100*\"",
        "\"vendor\":\"NVIDIA*\",\"driver\":\"57*\""};
    static const uint32_t expected[] = {6, 11, 7, 0, 0};
    const struct device_info device = h100();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char text[256];
        struct device_tuning tuning = tuning_default(&device);
        uint32_t specificity;
        snprintf(text, sizeof text, "{\"comment\":\"\",\"device\":{%s},\"tuning\":{%s}}", files[i],
                 "\"local_size\":32");
        OK(tuning_file_read("a.json", text, &device, &tuning, &specificity, &error));
        assert_int_equal(specificity, expected[i]);
        assert_int_equal(tuning.local_size, specificity > 0 ? 32 : 256);
    }
}

static void refuses_wrong_files(void **state)
{
    (void)state;
#define VALUE(text) "{\"comment\":\"\",\"device\":{\"name\":\"a\"},\"tuning\":{" text "}}"
#define DEVICE(text) "{\"comment\":\"\",\"device\":{" text "},\"tuning\":{}}"
    static const char *const cases[][2] = {
        {"{\"comment\": [", "it is not JSON at byte 13"},
        {"[]", "it is not an object with just comment, device and tuning"},
        {DEVICE("\"name\":\"*\""), "device: a pattern must contain more than wildcards"},
        {DEVICE("\"colour\":\"a\""), "device: 'colour' is not a pattern"},
        {DEVICE("\"name\":1"), "device: 'name' is not a pattern"},
        {VALUE("\"colour\":3"), "tuning: 'colour=3' is neither a tunable"},
        {VALUE("\"local_size\":512"), "tuning: 'local_size=512' is"},
        {VALUE("\"elements_per_item\":1.5"), "tuning: 'elements_per_item=1.5' is"},
        {VALUE("\"local_size\":null"), "tuning: 'local_size=' is"},
        {VALUE("\"multiply\":\"halves,x=2\""), "tuning: 'multiply=halves,x=2' is"},
        {VALUE("\"transform\":\"quick\""), "tuning: 'transform=quick' is"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct device_tuning tuning = tuning_default(&info);
        uint32_t specificity;
        assert_int_equal(
            tuning_file_read("a.json", cases[i][0], &info, &tuning, &specificity, &error),
            HEALCL_REFUSED);
        assert_ptr_equal(strstr(error.message, "tunings/a.json: "), error.message);
        assert_ptr_equal(strstr(error.message, cases[i][1]), error.message + 16);
        healcl_error_clear(&error);
    }
}

/* Any device can use the kernels of another kind; saved tunings are for its own. */
static void is_shaped_as_another_device(void **state)
{
    (void)state;
    struct device_tuning kept = tuning_of("elements_per_item=77"), tuning;
    keep(&kept, NULL);
    setenv("HEALCL_AS", "gpu", 1);
    OK(tuning_of_device(&info, &tuning, &error));
    assert_int_equal(tuning.elements_per_item, 1);
    assert_int_equal(tuning.compiled_axes, 8);
    assert_int_equal(tuning.staging_bytes, 4 << 20);
    assert_int_equal(tuning.styles[FAMILY_transform], STYLE_LOCAL);
    assert_string_equal(source_name(&tuning), "the environment");
    setenv("HEALCL_AS", "accelerator", 1);
    OK(tuning_of_device(&info, &tuning, &error));
    assert_int_equal(tuning.styles[FAMILY_transform], STYLE_SINGLE);
    assert_int_equal(tuning.staging_bytes, 4 << 20);
    setenv("HEALCL_AS", "cpu", 1);
    OK(tuning_of_device(&info, &tuning, &error));
    assert_int_equal(tuning.staging_bytes, 0);
    setenv("HEALCL_AS", "toaster", 1);
    assert_int_equal(tuning_of_device(&info, &tuning, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "HEALCL_AS is 'toaster', not cpu, gpu or accelerator");
    healcl_error_clear(&error);
    unsetenv("HEALCL_AS");
}

/* Whether data go through staging memory is for the device to say, whatever its kind. */
static void stages_where_no_memory_is_shared(void **state)
{
    (void)state;
    struct device_info other = info;
    for (int shares = 0; shares < 2; shares++)
        for (int gpu = 0; gpu < 2; gpu++) {
            other.unified_memory = (cl_bool)shares;
            other.type = gpu ? CL_DEVICE_TYPE_GPU : CL_DEVICE_TYPE_CPU;
            assert_int_equal(tuning_default(&other).staging_bytes, shares ? 0 : 4 << 20);
        }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(keeps_and_reads),
        TEST(shapes_emulated_gpus_as_gpus),
        TEST(ignores_what_it_cannot_read),
        TEST(keeps_nothing_where_it_cannot),
        TEST(keeps_rates),
        TEST(ignores_swapped_files),
        TEST(has_its_place_among_others),
        TEST(reads_all_files),
        TEST(takes_the_file_of_a_device),
        TEST(prefers_specific_patterns),
        TEST(refuses_wrong_files),
        TEST(is_shaped_as_another_device),
        TEST(stages_where_no_memory_is_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
