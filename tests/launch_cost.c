/*
 * What a launch costs the host in first and later runs of sessions, above a driver that does
 * nothing:
 *
 *     HEALCL_AS=gpu launch_cost TRANSCRIPT [RUNS]
 *
 * One session runs on the device, so that all programs are built. Then launches and their arguments
 * go nowhere. The time from one launch to the next is healcl's own and a reading of the clock. It
 * is longer if an operand is uploaded or a result copied between the two. The median and the ninth
 * decile are printed. Devices of other kinds want events, which real commands have.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "healcl.h"
#include "opencl/opencl.h"

enum { INTERVALS_MOST = 1 << 20 };

static uint64_t launches, arguments, last_launch; /* 0: there was none in this run */
static uint64_t intervals[INTERVALS_MOST];
static size_t count;

static cl_int set_nothing(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    (void)kernel, (void)index, (void)size, (void)value;
    arguments++;
    return CL_SUCCESS;
}

static cl_int launch_nothing(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                             const size_t *offset, const size_t *size, const size_t *local,
                             cl_uint awaited_count, const cl_event *awaited, cl_event *event)
{
    (void)kernel, (void)dimensions, (void)offset, (void)size, (void)local;
    if (last_launch > 0 && count < INTERVALS_MOST)
        intervals[count++] = monotonic_nanoseconds() - last_launch;
    launches++;
    cl_int code =
        event ? opencl_loader.clEnqueueMarkerWithWaitList(queue, awaited_count, awaited, event)
              : CL_SUCCESS;
    last_launch = monotonic_nanoseconds();
    return code;
}

static void need(enum healcl_status status, const struct healcl_error *error)
{
    if (status == HEALCL_OK)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit((int)status);
}

static void run(struct healcl_session *session)
{
    struct healcl_error error = {0};
    last_launch = 0;
    need(healcl_session_run(session, &error), &error);
}

static int in_order(const void *a, const void *b)
{
    const uint64_t *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

/* Prints what has been measured since the last call, in `runs` runs. */
static void print_cost(const char *which, uint64_t runs)
{
    qsort(intervals, count, sizeof *intervals, in_order);
    if (count > 0)
        printf("%s: %" PRIu64 " launches and %" PRIu64 " arguments; %" PRIu64 " ns a launch, "
               "%" PRIu64 " ns in nine of ten\n",
               which, launches / runs, arguments / runs, intervals[count / 2],
               intervals[count * 9 / 10]);
    launches = arguments = 0;
    count = 0;
}

int main(int argc, char **argv)
{
    enum { FIRST_RUNS = 20 };
    struct healcl_error error = {0};
    struct healcl_transcript *transcript;
    struct healcl_device *device;
    struct healcl_session *session;
    const uint64_t runs = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    if (argc < 2 || runs == 0)
        return 2;
    need(healcl_transcript_open(argv[1], NULL, &transcript, &error), &error);
    need(healcl_device_open(NULL, &device, &error), &error);
    need(healcl_session_open(transcript, device, NULL, &session, &error), &error);
    run(session);
    opencl_loader.clSetKernelArg = set_nothing; /* the device uses this table */
    opencl_loader.clEnqueueNDRangeKernel = launch_nothing;
    for (int i = 0; i < FIRST_RUNS; i++) {
        healcl_session_close(session);
        need(healcl_session_open(transcript, device, NULL, &session, &error), &error);
        run(session);
    }
    print_cost("a first run", FIRST_RUNS);
    run(session); /* launches get their own kernel objects */
    run(session);
    print_cost("the second and third run", 2);
    for (uint64_t i = 0; i < runs; i++)
        run(session);
    print_cost("a later run", runs);
    healcl_session_close(session);
    healcl_device_close(device);
    healcl_transcript_close(transcript);
    return 0;
}
