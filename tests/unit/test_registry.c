/* What a signal handler finds: temporary files and mapped ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/new_file.h"
#include "core/registry.h"
#include "programs/cache.h"
#include "transcript/source.h"

static char directory[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/healcl_test_XXXXXX");
    return mkdtemp(directory) && chdir(directory) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return chdir("/") == 0 && rmdir(directory) == 0 ? 0 : -1;
}

static int count_files(void)
{
    DIR *files = opendir(directory);
    int count = 0;
    assert_non_null(files);
    for (struct dirent *entry; (entry = readdir(files)) != NULL;)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(files);
    return count;
}

static void removes_what_is_temporary(void **state)
{
    (void)state;
    char unique[] = "unique.XXXXXX", long_path[5000];
    int a = temporary_create("a", 0600), b = temporary_create("b", 0666);
    int c = temporary_create_unique(unique);
    assert_true(a >= 0 && b >= 0 && c >= 0);
    assert_int_equal(temporary_create("a", 0600), -1);
    assert_int_equal(errno, EEXIST);
    temporary_forget("a");
    temporary_forget("never heard of");
    temporary_remove_all();
    assert_int_equal(access("a", F_OK), 0);
    assert_int_equal(count_files(), 1);
    temporary_forget("b");
    temporary_forget(unique);
    unlink("a");
    close(a);
    close(b);
    close(c);
    memset(long_path, 'x', sizeof long_path);
    long_path[sizeof long_path - 1] = 0;
    assert_int_equal(temporary_create(long_path, 0600), -1);
}

/* More than there is room for: the rest stays, and what is forgotten leaves room. */
static void has_an_end(void **state)
{
    (void)state;
    enum { MANY = 70 };
    char name[16];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            snprintf(name, sizeof name, "%d", i);
            close(temporary_create(name, 0600));
        }
        temporary_remove_all();
        assert_true(count_files() > 0 && count_files() < MANY);
        for (int i = 0; i < MANY; i++) {
            snprintf(name, sizeof name, "%d", i);
            unlink(name);
            temporary_forget(name);
        }
    }
}

static void knows_what_is_mapped(void **state)
{
    (void)state;
    static char first[100], second[100];
    char path[600];
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = 0;
    mapping_note(first, sizeof first, "one");
    mapping_note(second, sizeof second, path);
    assert_string_equal(mapping_path(first), "one");
    assert_string_equal(mapping_path(first + 99), "one");
    assert_int_equal(strlen(mapping_path(second + 50)), 480);
    mapping_forget(first);
    assert_null(mapping_path(first));
    assert_non_null(mapping_path(second));
    mapping_forget(second);
    assert_null(mapping_path(second));
    assert_null(mapping_path(NULL));
}

static void sources_are_mapped(void **state)
{
    (void)state;
    struct source source;
    FILE *file = fopen("file", "w");
    assert_non_null(file);
    fputs("[]", file);
    fclose(file);
    assert_int_equal(source_open(&source, "file", NULL), HEALCL_OK);
    const char *text = source.text;
    assert_string_equal(mapping_path(text + 1), "file");
    source_close(&source);
    assert_null(mapping_path(text));
    unlink("file");
}

/* ---- a signal while a file is written ---- */

static void remove_and_end(int number)
{
    (void)number;
    temporary_remove_all();
    _exit(7);
}

/* Both write more than the limit allows, so that a signal comes while they do. */
static void write_cache(void)
{
    char data[4096] = "";
    const struct cache_part parts[] = {{data, sizeof data}, {data, sizeof data}};
    (void)cache_write(directory, "name", 2, parts);
}

static void write_new_file(void)
{
    struct new_file file;
    if (new_file_open(&file, "name", NULL) == HEALCL_OK)
        for (;;)
            putc('x', file.stream);
}

static void ends_in(void (*write)(void))
{
    const struct rlimit limit = {5000, 5000};
    int ended = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGXFSZ, remove_and_end);
        if (setrlimit(RLIMIT_FSIZE, &limit) == 0)
            write();
        _exit(1);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), 7);
    assert_int_equal(count_files(), 0);
}

static void signals_leave_nothing(void **state)
{
    (void)state;
    ends_in(write_cache);
    ends_in(write_new_file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(removes_what_is_temporary, set_up, tear_down),
        cmocka_unit_test_setup_teardown(has_an_end, set_up, tear_down),
        cmocka_unit_test(knows_what_is_mapped),
        cmocka_unit_test_setup_teardown(sources_are_mapped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(signals_leave_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
