/*
 * The program healcl where memory runs out. The linker's --wrap puts functions of this file in the
 * place of those that allocate, arenas' too, which rarely ask for memory anew:
 *
 *     faulty_program OF FIRST COMMAND...
 *
 * The command is run once to see which calls lead to an allocation. Then for each such stack of
 * calls it is run with its first allocation failing, alone, and together with all that come after
 * it: of OF of these runs one, number FIRST % OF. Each ends as if nothing had happened, or with
 * exit code 4 and one line. Those that do otherwise are told on standard output, and the exit code
 * is 1 then. What the command prints is lost.
 */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"

enum { FRAMES = 12, STACKS_MOST = 1 << 15, TEXT_SIZE = 1 << 16, EXIT_DEVICE = 4 };

int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);

/* ---------------------------------------------------------------- allocations */

enum { FAILS_ALONE, FAILS_ON, COUNTS, WAYS = COUNTS };

static struct {
    atomic_int way;
    atomic_ulong count;
    unsigned long at; /* which one fails, from 1 on */
} faults = {COUNTS, 0, 0};

static struct {
    pthread_mutex_t mutex;
    void *frames[STACKS_MOST][FRAMES];
    unsigned long firsts[STACKS_MOST];
    size_t count;
} stacks = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void note_stack(unsigned long number)
{
    void *frames[FRAMES] = {NULL};
    (void)backtrace(frames, FRAMES);
    pthread_mutex_lock(&stacks.mutex);
    size_t i = 0;
    while (i < stacks.count && memcmp(stacks.frames[i], frames, sizeof frames) != 0)
        i++;
    if (i == stacks.count && i < STACKS_MOST) {
        memcpy(stacks.frames[i], frames, sizeof frames);
        stacks.firsts[stacks.count++] = number;
    }
    pthread_mutex_unlock(&stacks.mutex);
}

static bool fails(void)
{
    const int way = atomic_load(&faults.way);
    const unsigned long number = atomic_fetch_add(&faults.count, 1) + 1;
    if (way == COUNTS)
        note_stack(number);
    if (way == COUNTS || (way == FAILS_ON ? number < faults.at : number != faults.at))
        return false;
    errno = ENOMEM;
    return true;
}

#define FAULTY(type, name, parameters, arguments)        \
    type __real_##name parameters;                       \
    type __wrap_##name parameters;                       \
    type __wrap_##name parameters                        \
    {                                                    \
        return fails() ? NULL : __real_##name arguments; \
    }

FAULTY(void *, malloc, (size_t size), (size))
FAULTY(void *, calloc, (size_t number, size_t size), (number, size))
FAULTY(void *, realloc, (void *memory, size_t size), (memory, size))
FAULTY(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
FAULTY(char *, strdup, (const char *text), (text))
FAULTY(void *, arena_alloc, (struct arena * arena, size_t size), (arena, size))
FAULTY(char *, arena_strdup, (struct arena * arena, const char *text), (arena, text))

/* ---------------------------------------------------------------- runs */

static FILE *report;
static char told[TEXT_SIZE]; /* what the last run has written to standard error */

/* Returns the exit code. */
static int run(int argc, char **argv, int way, unsigned long at)
{
    FILE *errors = tmpfile();
    char **copy =
        __real_calloc((size_t)argc + 1, sizeof *copy); /* options may change their order */
    if (!errors || !copy || dup2(fileno(errors), STDERR_FILENO) < 0)
        abort();
    memcpy(copy, argv, (size_t)argc * sizeof *copy);
    optind = 0;
    faults.at = at;
    atomic_store(&faults.count, 0);
    atomic_store(&faults.way, way);
    const int code = __real_main(argc, copy);
    atomic_store(&faults.way, FAILS_ALONE);
    faults.at = 0;
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
static unsigned long fail_all(int argc, char **argv, size_t of, size_t first)
{
    unsigned long red = 0, runs = 0, ended[WAYS] = {0};
    for (size_t i = 0; i < stacks.count; i++)
        for (int way = 0; way < WAYS; way++) {
            if ((i * WAYS + (size_t)way) % of != first % of)
                continue;
            const int code = run(argc, argv, way, stacks.firsts[i]);
            runs++;
            ended[way] += code != 0;
            if (is_right(code))
                continue;
            fprintf(report, "allocation %lu, %s: exit code %d: %s\n", stacks.firsts[i],
                    way == FAILS_ON ? "and all that follow" : "alone", code, told);
            fflush(report);
            red++;
        }
    fprintf(report, "%zu stacks, %lu runs, ended by one %lu, by all that follow %lu, red %lu\n",
            stacks.count, runs, ended[FAILS_ALONE], ended[FAILS_ON], red);
    return red;
}

static unsigned long run_well(int argc, char **argv, int way)
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
    if (of < 1 || !report || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
        abort();
    argv[2] = argv[0];
    argc -= 2;
    argv += 2;
    (void)run(argc, argv, FAILS_ALONE, 0); /* caches are warm */
    unsigned long red = run_well(argc, argv, COUNTS);
    red += fail_all(argc, argv, of, first);
    red += run_well(argc, argv, FAILS_ALONE);
    fclose(report);
    return red > 0;
}
