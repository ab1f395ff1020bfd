/* Files in the making: what others see of them, and what is left where a process is killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/draft.h"
#include "core/registry.h"

/* ---- the system's calls, in the place of the C library's ---- */

static bool has_nameless = true, links = true, dies_at_rename;

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
#ifdef O_TMPFILE
    if ((flags & O_TMPFILE) == O_TMPFILE && !has_nameless) {
        errno = EOPNOTSUPP;
        return -1;
    }
#endif
    return openat(AT_FDCWD, path, flags, mode);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    if (!links) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}

int rename(const char *from, const char *to)
{
    if (dies_at_rename)
        raise(SIGKILL);
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

/* A limit of the file system, and none of the test's: it may have no files without a name. */
static bool system_has_nameless(void)
{
    int file = nameless_create("any", 0600);
    if (file >= 0)
        close(file);
    return file >= 0;
}

/* ---- the folder ---- */

static char directory[64];

static int set_up(void **state)
{
    (void)state;
    has_nameless = links = true;
    dies_at_rename = false;
    strcpy(directory, "/tmp/healcl_test_XXXXXX");
    return mkdtemp(directory) && chdir(directory) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    char command[80];
    snprintf(command, sizeof command, "rm -r %s", directory);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
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

static void plant(const char *name, int age)
{
    const struct timespec times[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
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

static void write_text(struct draft *draft, const char *text)
{
    assert_int_equal(draft_open(draft, "x.json", 0666), 0);
    assert_int_equal(write(draft->descriptor, text, strlen(text)), strlen(text));
}

/* Calls a function in a process of its own, which then has not looked into the folder before, nor
 * does this one. Returns the signal that has ended it, or 0. */
static int in_process(void (*function)(void))
{
    int ended = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        function();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    return WIFSIGNALED(ended) ? WTERMSIG(ended) : 0;
}

/* ---- tests ---- */

/* Of a file that is new and of one that takes another's place. */
static void appears_whole(void)
{
    struct draft draft;
    const int names_before = has_nameless ? 0 : 1;
    for (int i = 0; i < 2; i++) {
        write_text(&draft, i == 0 ? "one" : "two");
        assert_int_equal(count_files(), i + names_before);
        assert_int_equal(draft_commit(&draft), 0);
        assert_int_equal(count_files(), 1);
        expect_text("x.json", i == 0 ? "one" : "two");
        struct stat about;
        assert_int_equal(stat("x.json", &about), 0);
        assert_int_equal(about.st_mode & 0777, 0640);
    }
    write_text(&draft, "three");
    draft_discard(&draft);
    draft_discard(&draft);
    assert_int_equal(count_files(), 1);
    expect_text("x.json", "two");
    assert_int_equal(unlink("x.json"), 0);
    assert_int_equal(draft_open(&draft, "nowhere/x.json", 0666), ENOENT);
    draft_discard(&draft);
    /* What cannot be replaced. */
    assert_int_equal(mkdir("x.json", 0777), 0);
    write_text(&draft, "four");
    assert_int_not_equal(draft_commit(&draft), 0);
    draft_discard(&draft);
    assert_int_equal(count_files(), 1);
    assert_int_equal(rmdir("x.json"), 0);
}

static void appears_in_each_way(void **state)
{
    (void)state;
    const mode_t mask = umask(0027);
    if (system_has_nameless())
        appears_whole();
    links = false;
    if (system_has_nameless())
        appears_whole();
    has_nameless = false;
    appears_whole();
    umask(mask);
}

/* As for signals that the program catches. */
static void registers_names(void **state)
{
    (void)state;
    struct draft draft;
    has_nameless = false;
    write_text(&draft, "one");
    temporary_remove_all();
    assert_int_equal(count_files(), 0);
    assert_int_equal(draft_commit(&draft), ENOENT);
    assert_int_equal(count_files(), 0);
}

static void write_and_die(void)
{
    struct draft draft;
    write_text(&draft, "half of i");
    raise(SIGKILL);
}

static void write_whole(void)
{
    struct draft draft;
    write_text(&draft, "whole");
    if (draft_commit(&draft) != 0)
        raise(SIGABRT);
}

static void make_old(void)
{
    DIR *files = opendir(".");
    assert_non_null(files);
    for (struct dirent *entry; (entry = readdir(files)) != NULL;)
        if (strstr(entry->d_name, ".tmp-"))
            plant(entry->d_name, 3600);
    closedir(files);
}

static void leaves_nothing_when_killed(void **state)
{
    (void)state;
    if (!system_has_nameless()) {
        print_message("the file system has no files without a name\n");
        skip();
    }
    assert_int_equal(in_process(write_and_die), SIGKILL);
    assert_int_equal(count_files(), 0);
    dies_at_rename = true;
    assert_int_equal(in_process(write_whole), 0); /* which needs none */
    expect_text("x.json", "whole");
    assert_int_equal(in_process(write_whole), SIGKILL);
    assert_int_equal(count_files(), 2);
    dies_at_rename = false;
    assert_int_equal(in_process(write_whole), 0); /* it is too young */
    assert_int_equal(count_files(), 2);
    make_old();
    assert_int_equal(in_process(write_whole), 0);
    assert_int_equal(count_files(), 1);
    expect_text("x.json", "whole");
}

static void removes_what_was_left(void **state)
{
    (void)state;
    has_nameless = false;
    assert_int_equal(in_process(write_and_die), SIGKILL);
    assert_int_equal(count_files(), 1);
    make_old();
    assert_int_equal(in_process(write_whole), 0);
    assert_int_equal(count_files(), 1);
    expect_text("x.json", "whole");
}

static void spares_what_may_be_used(void **state)
{
    (void)state;
    enum { OLD = 3600 };
    static const char *const others[] = {
        "y.json.tmp-999999-0",  "x.json.tmp-999999",    "x.json.tmp-999999-",
        "x.json.tmp--0",        "x.json.tmp-999999-0x", "x.json.tmp-9999999999-0",
        "x.json.tmp-0x9999-0",  "x.json.tmp-0-0",       "x.json",
        "ax.json.tmp-999999-0", "x.json.tmp",
    };
    enum { OTHERS = sizeof others / sizeof *others };
    char own[64];
    for (size_t i = 0; i < OTHERS; i++)
        plant(others[i], OLD);
    snprintf(own, sizeof own, "x.json.tmp-%ld-0", (long)getpid()); /* a process that there is */
    plant(own, OLD);
    plant("x.json.tmp-999999-1", 60); /* young */
    plant("x.json.tmp-999999-2", OLD);
    int locked = openat(AT_FDCWD, "x.json.tmp-999999-2", O_RDWR);
    assert_int_equal(flock(locked, LOCK_EX), 0); /* as by a process of another container */
    assert_int_equal(mkdir("x.json.tmp-999999-3", 0777), 0);
    assert_int_equal(symlink("x.json", "x.json.tmp-999999-4"), 0);
    plant("x.json.tmp-999999-5", OLD);
    plant("x.json.tmp-999999-17", OLD);
    assert_int_equal(in_process(write_whole), 0);
    assert_int_equal(count_files(), OTHERS + 5);
    assert_int_equal(access("x.json.tmp-999999-5", F_OK), -1);
    assert_int_equal(access("x.json.tmp-999999-17", F_OK), -1);
    close(locked);
    assert_int_equal(in_process(write_whole), 0);
    assert_int_equal(count_files(), OTHERS + 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* Those first that look into folders in processes of their own: a folder made later may
         * look like one that was known to have nothing left. */
        cmocka_unit_test_setup_teardown(leaves_nothing_when_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(removes_what_was_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(spares_what_may_be_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(appears_in_each_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(registers_names, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
