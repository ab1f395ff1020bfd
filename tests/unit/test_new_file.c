/* Files that appear whole, and what a signal handler finds: temporary files and mapped ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
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

static void expect_text(const char *name, const char *text)
{
    char got[64] = "";
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    (void)!fread(got, 1, sizeof got - 1, file);
    fclose(file);
    assert_string_equal(got, text);
}

static void write_text(struct new_file *file, const char *name, const char *text)
{
    assert_int_equal(new_file_open(file, name, NULL), HEALCL_OK);
    assert_true(fputs(text, file->stream) >= 0);
}

static void appears_whole(void **state)
{
    (void)state;
    const mode_t mask = umask(0027);
    struct new_file file;
    struct stat about;
    for (int i = 0; i < 2; i++) {
        write_text(&file, "x", i == 0 ? "one" : "two");
        assert_int_equal(count_files(), i + 1);
        assert_int_equal(new_file_commit(&file, NULL), HEALCL_OK);
        assert_int_equal(count_files(), 1);
        expect_text("x", i == 0 ? "one" : "two");
        assert_int_equal(stat("x", &about), 0);
        assert_int_equal(about.st_mode & 0777, 0640);
    }
    assert_int_equal(new_file_open_cached(&file, "x", NULL), HEALCL_OK);
    assert_int_equal(new_file_commit(&file, NULL), HEALCL_OK);
    assert_int_equal(stat("x", &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    umask(mask);
    unlink("x");
}

static void leaves_what_it_does_not_replace(void **state)
{
    (void)state;
    char left[64];
    struct healcl_error error = {.status = HEALCL_OK};
    struct new_file file;
    write_text(&file, "x", "one");
    assert_int_equal(new_file_commit(&file, NULL), HEALCL_OK);
    write_text(&file, "x", "two");
    new_file_discard(&file);
    new_file_discard(&file);
    expect_text("x", "one");
    assert_int_equal(symlink("x", "link"), 0);
    snprintf(left, sizeof left, "x.tmp-%ld-0", (long)getpid()); /* by a process of this number */
    assert_int_equal(symlink("x", left), 0);
    write_text(&file, "link", "three");
    assert_int_equal(new_file_commit(&file, NULL), HEALCL_OK);
    expect_text("x", "three");
    assert_int_equal(count_files(), 3);
    assert_int_equal(new_file_open(&file, "nowhere/x", &error), HEALCL_USAGE);
    assert_string_equal(error.message, "cannot write 'nowhere/x': No such file or directory");
    assert_int_equal(mkdir("folder", 0777), 0);
    assert_int_equal(new_file_open(&file, "folder", NULL), HEALCL_USAGE);
    write_text(&file, "/dev/full", "four");
    assert_int_equal(new_file_commit(&file, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "cannot write '/dev/full': No space left on device");
    healcl_error_clear(&error);
    assert_int_equal(count_files(), 4);
    unlink(left);
    unlink("link");
    unlink("x");
    rmdir("folder");
}

static void leaves_inputs(void **state)
{
    (void)state;
    char name[256];
    struct healcl_error error = {.status = HEALCL_OK};
    struct new_file file;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    write_text(&file, name, "one"); /* as long as names can be */
    assert_int_equal(new_file_commit(&file, NULL), HEALCL_OK);
    assert_int_equal(link(name, "x"), 0);
    assert_int_equal(symlink("x", "link"), 0);
    write_text(&file, "x", "two");
    input_note(name, NULL);
    input_note("nowhere", NULL);
    assert_int_equal(new_file_commit(&file, NULL), HEALCL_USAGE);
    assert_int_equal(new_file_open(&file, "link", &error), HEALCL_USAGE);
    assert_non_null(strstr(error.message, "x': it is the input 'nnn"));
    healcl_error_clear(&error);
    struct stat about;
    assert_int_equal(stat("x", &about), 0);
    input_forget(&about);
    write_text(&file, "link", "three");
    assert_int_equal(new_file_commit(&file, NULL), HEALCL_OK);
    expect_text("x", "three");
    expect_text(name, "one");
    assert_int_equal(count_files(), 3);
    unlink(name);
    unlink("link");
    unlink("x");
}

static void removes_what_is_temporary(void **state)
{
    (void)state;
    struct new_file file;
    write_text(&file, "x", "one");
    temporary_remove_all();
    assert_int_equal(count_files(), 0);
    assert_int_equal(new_file_commit(&file, NULL), HEALCL_USAGE);
    assert_int_equal(count_files(), 0);
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
    char path[5000];
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = 0;
    mapping_note(first, sizeof first, "one");
    mapping_note(second, sizeof second, path);
    assert_string_equal(mapping_path(first), "one");
    assert_string_equal(mapping_path(first + 99), "one");
    assert_int_equal(strlen(mapping_path(second + 50)), 4095);
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

/* Writes more than the limit allows, so that a signal comes while it does. */
static void write_without_end(void)
{
    struct new_file file;
    if (new_file_open(&file, "name", NULL) == HEALCL_OK)
        for (;;)
            putc('x', file.stream);
}

static void signals_leave_nothing(void **state)
{
    (void)state;
    const struct rlimit limit = {5000, 5000};
    int ended = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGXFSZ, remove_and_end);
        if (setrlimit(RLIMIT_FSIZE, &limit) == 0)
            write_without_end();
        _exit(1);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), 7);
    assert_int_equal(count_files(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(appears_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaves_what_it_does_not_replace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaves_inputs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(removes_what_is_temporary, set_up, tear_down),
        cmocka_unit_test_setup_teardown(has_an_end, set_up, tear_down),
        cmocka_unit_test(knows_what_is_mapped),
        cmocka_unit_test_setup_teardown(sources_are_mapped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(signals_leave_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
