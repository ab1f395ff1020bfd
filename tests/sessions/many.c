/*
 * Many sessions on one device, one after another, and then many operations by call on one queue:
 * many DEVICE SESSIONS CALLS TRANSCRIPT. Exit status 1 where a program is built or loaded after the
 * first session, or where resident memory grows by more than a megabyte after the first hundred
 * sessions, or after the first 2,000 calls, until which allocators of a driver's threads may grow.
 */
#include <healcl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Allocators take 1.2 MiB now and then; 6,000 calls that leak would take far more. */
enum { SETTLED = 100, CALLS_SETTLED = 2000, GROWTH_MAX = 2048 /* KiB */, ELEMENTS = 4096 };

static struct healcl_error error;

/* Returns this process's resident memory; 0 where the system does not report it. */
static long resident_kilobytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kilobytes = 0;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kilobytes = strtol(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return kilobytes;
}

static void need(enum healcl_status status)
{
    if (status == HEALCL_OK)
        return;
    fprintf(stderr, "%s\n", error.message);
    exit(1);
}

static void count_programs(void *context, const char *line)
{
    *(int *)context += strncmp(line, "program ", 8) == 0;
}

/* Alternates a product, a sum, and a negation of a view, each with a temporary tensor. */
static void call(struct healcl_queue *queue, struct healcl_tensor *out, int number)
{
    static int64_t data[ELEMENTS];
    const int64_t shape = ELEMENTS;
    const struct healcl_index half = {HEALCL_INDEX_SLICE, .has_stop = true, .stop = ELEMENTS / 2};
    struct healcl_tensor *in = NULL, *view = NULL;
    need(healcl_tensor_create(queue, HEALCL_INT64, 1, &shape, data, &in, &error));
    const struct healcl_argument q = healcl_int_argument(1000003), a = healcl_tensor_argument(in),
                                 result = healcl_tensor_argument(out);
    const struct healcl_argument product[] = {a, healcl_int_argument(5), q, result},
                                 sum[] = {result, a, q, result},
                                 slice[] = {result, healcl_index_argument(1, &half)};
    if (number % 3 == 0) {
        need(healcl_call(queue, "modmul", 4, product, NULL, &error));
    } else if (number % 3 == 1) {
        need(healcl_call(queue, "modsum", 4, sum, NULL, &error));
    } else {
        need(healcl_call(queue, "get_slice", 2, slice, &view, &error));
        const struct healcl_argument part = healcl_tensor_argument(view),
                                     negation[] = {part, q, part};
        need(healcl_call(queue, "modneg", 3, negation, NULL, &error));
    }
    if (number % 100 == 99)
        need(healcl_tensor_read(out, data, sizeof data, &error));
    healcl_tensor_release(view);
    healcl_tensor_release(in);
}

/* Returns how many KiB memory grows by. */
static long grow_by_calls(struct healcl_device *device, int calls)
{
    const int64_t shape = ELEMENTS;
    struct healcl_queue *queue = NULL;
    struct healcl_tensor *out = NULL;
    long settled = 0;
    need(healcl_queue_open(device, NULL, &queue, &error));
    need(healcl_tensor_create(queue, HEALCL_INT64, 1, &shape, NULL, &out, &error));
    for (int i = 0; i < calls; i++) {
        call(queue, out, i);
        if (i == CALLS_SETTLED)
            settled = resident_kilobytes();
    }
    long growth = resident_kilobytes() - settled;
    healcl_tensor_release(out);
    healcl_queue_close(queue);
    return growth;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: %s DEVICE SESSIONS CALLS TRANSCRIPT\n", argv[0]);
        return 2;
    }
    int programs = 0, programs_of_first = 0;
    long settled = 0;
    struct healcl_device *device = NULL;
    struct healcl_transcript *transcript = NULL;
    need(healcl_device_open_with(&(struct healcl_device_options){.selector = argv[1],
                                                                 .log = count_programs,
                                                                 .log_context = &programs},
                                 &device, &error));
    need(healcl_transcript_open(argv[4], NULL, &transcript, &error));
    int sessions = atoi(argv[2]);
    for (int i = 0; i < sessions; i++) {
        struct healcl_session *session = NULL;
        need(healcl_session_open(transcript, device, NULL, &session, &error));
        need(healcl_session_run(session, &error));
        healcl_session_close(session);
        if (i == 0)
            programs_of_first = programs;
        if (i == SETTLED)
            settled = resident_kilobytes();
    }
    long growth = resident_kilobytes() - settled;
    printf("%d programs in the first session, %d in later ones; %ld KiB more after session %d\n",
           programs_of_first, programs - programs_of_first, growth, SETTLED);
    healcl_transcript_close(transcript);
    bool is_good = programs_of_first > 0 && programs == programs_of_first && settled > 0 &&
                   growth <= GROWTH_MAX;
    long by_calls = grow_by_calls(device, atoi(argv[3]));
    printf("%ld KiB more after call %d\n", by_calls, CALLS_SETTLED);
    healcl_device_close(device);
    return !is_good || by_calls > GROWTH_MAX;
}
