/*
 * The program healcl with an OpenCL that fails: unit/helper_opencl.c stands in the place of the
 * loader's functions, and has one call of a run fail. The linker's --wrap puts both in place. A
 * process does many runs, for a driver takes longer to start than to run:
 *
 *     faulty_opencl COMMAND...
 *
 * For each line "AT CODE" of standard input, as "17 -5", the command is run; its call number AT,
 * from 1 on, fails with CODE, and none where AT is 0. Each run prints a line on standard output:
 * how many calls there were, the function that was made to fail or "-", how many objects are left,
 * the exit code, and how many bytes the run has written to standard error; these follow. The
 * run's own standard output is lost.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit/helper_opencl.h"

int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);

static void need(bool works)
{
    if (!works)
        abort();
}

static long alive(void)
{
    return helper.contexts + helper.queues + helper.programs + helper.kernels + helper.buffers +
           helper.events + helper.maps;
}

/* Each run reads its options from the start, and may change their order. */
static int run(int argc, char **argv)
{
    char **copy = calloc((size_t)argc + 1, sizeof *copy);
    need(copy);
    memcpy(copy, argv, (size_t)argc * sizeof *copy);
    optind = 0;
    int code = __real_main(argc, copy);
    free(copy);
    return code;
}

static void tell(FILE *report, int code, FILE *errors)
{
    static char text[1 << 16];
    fflush(stderr);
    rewind(errors);
    size_t bytes = fread(text, 1, sizeof text, errors);
    fprintf(report, "%" PRIu64 " %s %ld %d %zu\n", helper.calls,
            helper.failed ? helper.failed : "-", alive(), code, bytes);
    fwrite(text, 1, bytes, report);
    fflush(report);
}

int __wrap_main(int argc, char **argv)
{
    FILE *report = fdopen(dup(STDOUT_FILENO), "w");
    int nowhere = open("/dev/null", O_WRONLY);
    need(setenv("HEALCL_ONE_PROCESS", "1", 1) == 0); /* its calls are counted here */
    need(report && nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0);
    uint64_t at;
    int code;
    while (scanf("%" SCNu64 " %d", &at, &code) == 2) {
        FILE *errors = tmpfile();
        need(errors && dup2(fileno(errors), STDERR_FILENO) >= 0);
        helper_reset();
        helper.fail_at = at;
        helper.fail_code = code;
        tell(report, run(argc, argv), errors);
        fclose(errors);
    }
    return 0;
}
