/* Packages by the library: made of a device's programs, and what a device that has one does. */
#include "helper_device.h"
#include "programs/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs/self_test.h"

static char path[] = "/tmp/healcl-package-XXXXXX";

enum { OTHER_SIZE = 512 }; /* no device's self-test is of that size */

/* A package of the self-test, with one image for two programs. */
static void make_package(void)
{
    struct healcl_device *device = NULL;
    struct package package = {.path = NULL};
    char tuning[TUNING_TEXT_SIZE], choices[KERNEL_CHOICES_SIZE];
    OK(healcl_device_open(NULL, &device, &error));
    OK(self_test_run(device, &error));
    OK(device_record(device, &package, RECORD_BINARIES, &error));
    assert_int_equal(package.program_count, 1);
    assert_int_equal(package.image_count, 1);
    tuning_format(&device->tuning, tuning);
    package.tuning = tuning;
    kernel_choices_set(&device->programs->choices, UINT64_MAX, 3);
    kernel_choices_set(&device->programs->choices, 1, 70);
    kernel_choices_format(&device->programs->choices, choices);
    package.choices = choices;
    /* The same image for work-groups of another size. */
    static char options[1024], size[] = " -D LOCAL_SIZE=";
    const char *at = strstr(package.programs[0].options, size);
    assert_non_null(at);
    const char *rest = strchr(at + strlen(size), ' ');
    snprintf(options, sizeof options, "%.*s%s%d%s", (int)(at - package.programs[0].options),
             package.programs[0].options, size, OTHER_SIZE, rest);
    package.programs = realloc(package.programs, 2 * sizeof *package.programs);
    assert_non_null(package.programs);
    package.programs[1] = package.programs[0];
    package.programs[1].options = options;
    package.program_count = 2;
    int descriptor = mkstemp(path);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    OK(package_write(&package, file, &error));
    fclose(file);
    /* A stream that cannot be written. */
    file = fopen("/dev/full", "w");
    setvbuf(file, NULL, _IONBF, 0);
    assert_int_equal(package_write(&package, file, &error), HEALCL_USAGE);
    fclose(file);
    free(package.programs[0].kernels);
    free(package.programs);
    free(package.images[0].data);
    free(package.images);
    healcl_device_close(device);
}

/* Programs come from the package alone, and it lives as long as the last handle. */
static void programs_come_from_a_package(void **state)
{
    (void)state;
    struct healcl_device *device = NULL, *beside = NULL;
    const struct healcl_device_options options = {.package = path};
    OK(healcl_device_open_with(&options, &device, &error));
    assert_int_equal(device->programs->built, 0);
    assert_int_equal(device->programs->loaded, 1);
    assert_int_equal(device->tuning.tuned_by, TUNED_BY_PACKAGE);
    assert_string_equal(tuning_source_name(&device->tuning), "the package");
    OK(device_open_beside(device, &beside, &error));
    healcl_device_close(device);
    assert_int_equal(kernel_choices_find(&beside->programs->choices, UINT64_MAX), 3);
    assert_int_equal(kernel_choices_find(&beside->programs->choices, 1), 70);
    assert_int_equal(beside->programs->choices.count, 2);
    struct launch launch = {.program = "base/measure", .kernel = "copy", .local_size = 1};
    assert_int_equal(device_build_kernel(beside, &launch, &error), HEALCL_DEVICE);
    assert_non_null(strstr(error.message, "program 'base/measure' with options '-cl-std=CL1.2 -w"));
    assert_non_null(strstr(error.message, "make one with healcl compile"));
    OK(self_test_run(beside, &error));
    assert_int_equal(beside->programs->built, 0);
    healcl_device_close(beside);
}

/* Where an image is several programs' it is loaded once. */
static void an_image_is_loaded_once(void **state)
{
    (void)state;
    struct healcl_device *device = NULL;
    const struct healcl_device_options options = {.package = path};
    OK(healcl_device_open_with(&options, &device, &error));
    const struct package *package = device->programs->package;
    assert_int_equal(package->programs[0].image, package->programs[1].image);
    const struct program *first = device->programs->list;
    struct launch launch = {.program = "base/self_test", .kernel = "self_test"};
    launch.local_size = OTHER_SIZE;
    snprintf(launch.options, sizeof launch.options, "%s", first->options);
    OK(device_build_kernel(device, &launch, &error));
    assert_ptr_not_equal(device->programs->list, first);
    assert_ptr_equal(device->programs->list->id, first->id);
    launch.local_size = 1024;
    assert_int_equal(device_build_kernel(device, &launch, &error), HEALCL_DEVICE);
    healcl_device_close(device);
}

static void what_is_no_package_is_refused(void **state)
{
    (void)state;
    struct healcl_device *device = NULL;
    struct package *package = NULL;
    struct healcl_device_options options = {.package = "/tmp/healcl-no-such-package"};
    assert_int_equal(healcl_device_open_with(&options, &device, &error), HEALCL_USAGE);
    assert_null(device);
    options.package = "/dev/null";
    assert_int_equal(healcl_device_open_with(&options, &device, &error), HEALCL_USAGE);
    assert_int_equal(healcl_device_open_with(&options, NULL, &error), HEALCL_USAGE);
    for (size_t bytes = 0; bytes < 64; bytes++) {
        char zeros[64] = {0};
        assert_int_equal(package_read_zip(zeros, bytes, &package, &error), HEALCL_REFUSED);
        assert_null(package);
    }
    assert_int_equal(package_read_folder("/tmp/healcl-no-such-folder", &package, &error),
                     HEALCL_USAGE);
    assert_null(package);
    package_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(programs_come_from_a_package),
        DEVICE_TEST(an_image_is_loaded_once),
        DEVICE_TEST(what_is_no_package_is_refused),
    };
    make_package();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path);
    return failed;
}
