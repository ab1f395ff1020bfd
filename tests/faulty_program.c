/*
 * The program healcl where memory runs out (unit/helper_memory.h):
 *
 *     faulty_program OF FIRST COMMAND...
 *
 * The command is run once to see which calls lead to an allocation. Then for each such stack of
 * calls it is run with its first allocation failing, alone, and together with all that come after
 * it: of OF of these runs one, number FIRST % OF. Each ends as if nothing had happened, or with
 * exit code 4 and one line. Those that do otherwise are told on standard output, and the exit code
 * is 1 then. What the command prints is lost.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit/helper_memory.h"

enum { TEXT_SIZE = 1 << 16, EXIT_DEVICE = 4, WAYS = 2 };

int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);

/* ---------------------------------------------------------------- runs */

static FILE *report;
static char told[TEXT_SIZE]; /* what the last run has written to standard error */

/* Returns the exit code. */
static int run(int argc, char **argv, enum memory_way way, size_t at)
{
    FILE *errors = tmpfile();
    char **copy = calloc((size_t)argc + 1, sizeof *copy); /* options may change their order */
    if (!errors || !copy || dup2(fileno(errors), STDERR_FILENO) < 0)
        abort();
    memcpy(copy, argv, (size_t)argc * sizeof *copy);
    optind = 0;
    memory_begin(way, at);
    const int code = __real_main(argc, copy);
    (void)memory_end();
    fflush(stdout);
    fflush(stderr);
    rewind(errors);
    told[fread(told, 1, sizeof told - 1, errors)] = 0;
    fclose(errors);
    free(copy);
    return code;
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
static size_t fail_all(int argc, char **argv, size_t of, size_t first)
{
    size_t stacks, red = 0, runs = 0, ended[WAYS] = {0};
    const size_t *firsts = memory_firsts(&stacks);
    for (size_t i = first % of; i < stacks * WAYS; i += of) {
        const bool stays = i % WAYS;
        const int code =
            run(argc, argv, stays ? MEMORY_FAILS_ON : MEMORY_FAILS_ONCE, firsts[i / WAYS]);
        runs++;
        ended[stays] += code != 0;
        if (is_right(code))
            continue;
        fprintf(report, "allocation %zu, %s: exit code %d: %s\n", firsts[i / WAYS],
                stays ? "and all that follow" : "alone", code, told);
        fflush(report);
        red++;
    }
    fprintf(report, "%zu stacks, %zu runs, ended by one %zu, by all that follow %zu, red %zu\n",
            stacks, runs, ended[0], ended[1], red);
    return stacks > 0 ? red : 1;
}

static size_t run_well(int argc, char **argv, enum memory_way way)
{
    const int code = run(argc, argv, way, 0);
    if (code != 0)
        fprintf(report, "without a fault: exit code %d: %s\n", code, told);
    return code != 0;
}

int __wrap_main(int argc, char **argv)
{
    const size_t of = argc > 3 ? (size_t)atol(argv[1]) : 0;
    const size_t first = argc > 3 ? (size_t)atol(argv[2]) : 0;
    const int nowhere = open("/dev/null", O_WRONLY);
    report = fdopen(dup(STDOUT_FILENO), "w");
    (void)setenv("HEALCL_ONE_PROCESS", "1", 1);
    if (of < 1 || !report || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
        abort();
    argv[2] = argv[0];
    argc -= 2;
    argv += 2;
    (void)run(argc, argv, MEMORY_WORKS, 0); /* caches are warm */
    size_t red = run_well(argc, argv, MEMORY_IS_NOTED);
    red += fail_all(argc, argv, of, first);
    red += run_well(argc, argv, MEMORY_WORKS);
    fclose(report);
    return red > 0;
}
