/*
 * Processes that compile beside a run. On a new machine a run of milliseconds waits for seconds
 * until its kernels are compiled.
 *
 * Drivers for CPUs compile one program at a time in a process. A second process of this program
 * compiles the same plan, beginning at its end. Each process finds in the driver's cache what the
 * other has compiled, until they meet. For other devices several processes build programs
 * (device_build_ahead).
 */
#include "cli/supervise.h"

#include <sys/stat.h>
#include <unistd.h>

#include "run/loaded_transcript.h"
#include "run/run.h"

const char *compile_ahead_command(void)
{
    const char *wanted = getenv("HEALCL_COMPILE_AHEAD");
    return is_one_process() || (wanted && strcmp(wanted, "0") == 0) ? NULL : COMPILE_AHEAD;
}

int compile_ahead_start(const struct device_info *info, const char *file,
                        struct compile_board **board)
{
    char reason[SELF_TEST_REASON_SIZE];
    struct stat about;
    *board = NULL;
    if (!compile_ahead_command())
        return 0;
    /* A GPU or an FPGA may allow only one process. */
    if (!(info->type & CL_DEVICE_TYPE_CPU) || sysconf(_SC_NPROCESSORS_ONLN) < 2 ||
        self_test_read_cached(info, reason) != SELF_TEST_NOT_RUN)
        return 0;
    if (stat(file, &about) != 0 || !S_ISREG(about.st_mode))
        return 0; /* it can be read only once */
    void *shared;
    int process = 0;
    (void)process_start_beside(
        (const char *const[]){"healcl", COMPILE_AHEAD, DEVICE_SELECTOR(info), "--", file, NULL}, 1,
        sizeof **board, &shared, &process);
    *board = process > 0 ? shared : NULL;
    return process;
}

/* The run beside this process tests the device, so this one does not. */
static enum healcl_status open_device(const char *selector, struct healcl_device **device)
{
    struct compile_board *board = process_shared(sizeof *board);
    if (!board)
        return healcl_device_open(selector, device, NULL);
    TRY(device_open(&opencl_loader, selector, device, NULL));
    (*device)->programs->ahead.board = board;
    return HEALCL_OK;
}

/* The process ends, so nothing needs to be released, and nobody is told why it cannot compile. */
static enum healcl_status compile_plan(const char *selector, const char *file)
{
    struct healcl_transcript *transcript;
    struct healcl_device *device;
    struct executor *executor;
    TRY(open_device(selector, &device));
    TRY(healcl_transcript_open(file, NULL, &transcript, NULL));
    TRY(device_executor_create(device, transcript->plan, &executor, NULL));
    device_executor_compile_ahead(executor);
    return HEALCL_OK;
}

static enum healcl_status build_programs(int argc, char **argv)
{
    struct healcl_device *device;
    TRY(device_open(&opencl_loader, argv[1], &device, NULL));
    device_build_beside(device, argv + 2, (size_t)argc - 2);
    return HEALCL_OK;
}

int compile_ahead_run(int argc, char **argv)
{
    if (argc < 4)
        return EXIT_USAGE;
    /* If memory runs out, the system should end these processes before others. */
    FILE *file = fopen("/proc/self/oom_score_adj", "w");
    if (file) {
        fputs("1000", file);
        (void)fclose(file);
    }
    const bool is_plan = strcmp(argv[2], "--") == 0;
    const enum healcl_status status =
        is_plan ? compile_plan(argv[1], argv[3]) : build_programs(argc, argv);
    _exit(status == HEALCL_OK ? EXIT_VERIFIED : EXIT_DEVICE);
}
