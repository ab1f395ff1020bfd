#include "test_transcript_common.h"

#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/healcl_source_XXXXXX";
static char path[64];

static int make_directory(void **state)
{
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    put(path, sizeof path, "%s/file", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

static void write_file(const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void test_maps_a_file(void **state)
{
    (void)state;
    struct source source;
    struct healcl_error error = {.detail = NULL};
    write_file("[]\n", 3);
    expect_ok(source_open(&source, path, &error), &error);
    assert_int_equal(source.length, 3);
    assert_memory_equal(source.text, "[]\n", 3);
    source_close(&source);
    assert_null(source.text);
    unlink(path);
}

static void test_maps_an_empty_file(void **state)
{
    (void)state;
    struct source source;
    struct healcl_error error = {.detail = NULL};
    write_file("", 0);
    expect_ok(source_open(&source, path, &error), &error);
    assert_null(source.text);
    assert_int_equal(source.length, 0);
    source_close(&source);
    unlink(path);
}

static void test_refuses_what_is_no_file(void **state)
{
    (void)state;
    struct source source;
    struct healcl_error error = {.detail = NULL};
    expect_failure(source_open(&source, path, &error), &error, HEALCL_USAGE,
                   "No such file or directory");
    expect_failure(source_open(&source, directory, &error), &error, HEALCL_USAGE, "Is a directory");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_failure(source_open(&source, path, &error), &error, HEALCL_USAGE, "not a regular file");
    unlink(path);
    if (geteuid() != 0) {
        write_file("[]", 2);
        assert_int_equal(chmod(path, 0), 0);
        expect_failure(source_open(&source, path, &error), &error, HEALCL_USAGE,
                       "Permission denied");
        unlink(path);
    }
    /* No error wanted. */
    assert_int_equal(source_open(&source, directory, NULL), HEALCL_USAGE);
}

static void test_forgotten_pages_can_be_read(void **state)
{
    (void)state;
    enum { LENGTH = 5 * 65536 + 77 };
    struct source source;
    struct healcl_error error = {.detail = NULL};
    char *bytes = malloc(LENGTH);
    assert_non_null(bytes);
    for (size_t i = 0; i < LENGTH; i++)
        bytes[i] = (char)(i * 7);
    write_file(bytes, LENGTH);
    expect_ok(source_open(&source, path, &error), &error);
    assert_memory_equal(source.text, bytes, LENGTH);
    source_forget(&source, source.text, source.length);
    source_forget(&source, source.text + 5, 10);
    source_forget(&source, source.text + 70000, 100000);
    source_forget(&source, source.text + source.length, 0);
    assert_memory_equal(source.text, bytes, LENGTH);
    source_close(&source);

    /* A caller's buffer must not be touched: its pages would come back as zeros. */
    struct source buffer = {.text = bytes, .length = LENGTH};
    source_forget(&buffer, bytes, LENGTH);
    assert_int_equal(bytes[65537], (char)(65537 * 7));
    source_close(&buffer);
    free(bytes);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps_a_file),
        cmocka_unit_test(test_maps_an_empty_file),
        cmocka_unit_test(test_refuses_what_is_no_file),
        cmocka_unit_test(test_forgotten_pages_can_be_read),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
