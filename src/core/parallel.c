#include "core/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

/* Starting a thread and waiting for it takes as long as copying a tenth of this. */
enum { PART_BYTES_MIN = 1 << 20 };

struct part {
    parallel_work *work;
    void *context;
    uint32_t number;
    int64_t first, count;
    enum healcl_status status;
    bool has_thread;
    pthread_t thread;
};

static uint32_t count_parts(int64_t count, size_t bytes_each)
{
    cpu_set_t cores;
    const uint64_t wanted = (uint64_t)count * bytes_each / PART_BYTES_MIN;
    if (wanted <= 1 || sched_getaffinity(0, sizeof cores, &cores) != 0)
        return 1;
    const uint32_t most = (uint32_t)CPU_COUNT(&cores);
    const uint32_t parts = most < PARALLEL_PARTS_MAX ? most : PARALLEL_PARTS_MAX;
    return wanted < parts ? (uint32_t)wanted : parts;
}

static void *run_part(void *context)
{
    struct part *part = context;
    part->status = part->work(part->context, part->number, part->first, part->count, NULL);
    return NULL;
}

enum healcl_status parallel_do(int64_t count, size_t bytes_each, parallel_work *work, void *context,
                               uint32_t *parts, struct healcl_error *error)
{
    const uint32_t part_count = count_parts(count, bytes_each);
    const struct part *failed = NULL;
    struct part list[PARALLEL_PARTS_MAX];
    sigset_t most, before;
    if (parts)
        *parts = part_count;
    if (part_count == 1)
        return work(context, 0, 0, count, error);
    /* Signals go to the caller's threads, except those that a thread raises itself. */
    sigfillset(&most);
    sigdelset(&most, SIGBUS);
    sigdelset(&most, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &most, &before);
    for (uint32_t i = part_count; i-- > 0;) {
        const int64_t first = count / part_count * i;
        const int64_t end = i + 1 == part_count ? count : count / part_count * (i + 1);
        list[i] = (struct part){
            .work = work, .context = context, .number = i, .first = first, .count = end - first};
        list[i].has_thread =
            i > 0 && pthread_create(&list[i].thread, NULL, run_part, &list[i]) == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (uint32_t i = 0; i < part_count; i++) {
        if (list[i].has_thread)
            pthread_join(list[i].thread, NULL);
        else
            run_part(&list[i]);
        if (list[i].status != HEALCL_OK && !failed)
            failed = &list[i];
    }
    return failed ? work(context, failed->number, failed->first, failed->count, error) : HEALCL_OK;
}
