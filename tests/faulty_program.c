/*
 * The program healcl where memory runs out (unit/helper_memory.h):
 *
 *     faulty_program OF FIRST COMMAND...
 *
 * The command is run once to see which calls lead to an allocation. Then for each such stack of
 * calls it is run with its first allocation failing, alone, and together with all that come after
 * it: of OF of these runs one, number FIRST % OF. Each is a process of its own, this program again
 * with FAULTY_AT, and ends as if nothing had happened, or with exit code 4 and one line. Those that
 * do otherwise are reported on standard output, and the exit code is 1 then. The command's
 * output is lost.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/helper_memory.h"

enum { TEXT_SIZE = 1 << 16, EXIT_DEVICE = 4, WAYS = 2 };

int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);

/* ---------------------------------------------------------------- runs */

static char told[TEXT_SIZE]; /* what the last run has written to standard error */
static FILE *firsts;         /* where a run that is noted leaves its first allocations */

/* A run itself, as FAULTY_AT says. */
static int run_here(int argc, char **argv, const char *at)
{
    const char *file = getenv("FAULTY_FIRSTS");
    char *position;
    const enum memory_way way = (enum memory_way)strtoul(at, &position, 10);
    memory_begin(way, strtoul(position, NULL, 10));
    const int code = __real_main(argc, argv);
    (void)memory_end();
    if (way == MEMORY_IS_NOTED && file) {
        size_t count;
        const size_t *noted = memory_firsts(&count);
        (void)!write(atoi(file), noted, count * sizeof *noted);
    }
    return code;
}

/* Returns the exit code. */
static int run(char **argv, enum memory_way way, size_t at)
{
    char text[64];
    int status = 0;
    FILE *errors = tmpfile();
    const pid_t child = errors ? fork() : -1;
    if (child == 0) {
        (void)snprintf(text, sizeof text, "%d", fileno(firsts));
        (void)setenv("FAULTY_FIRSTS", text, 1);
        (void)snprintf(text, sizeof text, "%d %zu", (int)way, at);
        (void)setenv("FAULTY_AT", text, 1);
        if (dup2(fileno(errors), STDERR_FILENO) >= 0)
            (void)execv("/proc/self/exe", argv);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    rewind(errors);
    told[fread(told, 1, sizeof told - 1, errors)] = 0;
    fclose(errors);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Whether a run that has ended with that code has said one line of memory, warnings aside; or with
 * 0 nothing. */
static bool is_right(int code)
{
    int lines = 0, of_memory = 0;
    for (const char *line = told, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        const char *warning = strstr(line, ": warning: ");
        if (warning && warning < end)
            continue;
        const char *memory = strstr(line, "out of memory");
        lines++;
        of_memory += memory && memory < end;
    }
    return code == 0 ? lines == 0 : code == EXIT_DEVICE && lines == 1 && of_memory == 1;
}

/* Has the allocations fail that have been noted. Returns how many runs end as they should not. */
static size_t fail_all(char **argv, size_t of, size_t first)
{
    static size_t noted[1 << 16];
    size_t red = 0, runs = 0, ended[WAYS] = {0};
    rewind(firsts);
    const size_t stacks = fread(noted, sizeof *noted, sizeof noted / sizeof *noted, firsts);
    for (size_t i = first % of; i < stacks * WAYS; i += of) {
        const bool stays = i % WAYS;
        const int code = run(argv, stays ? MEMORY_FAILS_ON : MEMORY_FAILS_ONCE, noted[i / WAYS]);
        runs++;
        ended[stays] += code != 0;
        if (is_right(code))
            continue;
        printf("allocation %zu, %s: exit code %d: %s\n", noted[i / WAYS],
               stays ? "and all that follow" : "alone", code, told);
        red++;
    }
    printf("%zu stacks, %zu runs, ended by one %zu, by all that follow %zu, red %zu\n", stacks,
           runs, ended[0], ended[1], red);
    return stacks > 0 ? red : 1;
}

static size_t run_well(char **argv, enum memory_way way)
{
    const int code = run(argv, way, 0);
    if (code != 0)
        printf("without a fault: exit code %d: %s\n", code, told);
    return code != 0;
}

int __wrap_main(int argc, char **argv)
{
    const char *at = getenv("FAULTY_AT");
    const size_t of = !at && argc > 3 ? (size_t)atol(argv[1]) : 0;
    const int nowhere = open("/dev/null", O_WRONLY);
    if (at)
        return nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0 ? 127 : run_here(argc, argv, at);
    (void)setenv("HEALCL_ONE_PROCESS", "1", 1);
    firsts = tmpfile();
    if (of < 1 || !firsts)
        abort();
    const size_t first = (size_t)atol(argv[2]);
    argv[2] = argv[0];
    argv += 2;
    (void)run(argv, MEMORY_WORKS, 0); /* caches are warm */
    size_t red = run_well(argv, MEMORY_IS_NOTED);
    red += fail_all(argv, of, first);
    red += run_well(argv, MEMORY_WORKS);
    return red > 0;
}
