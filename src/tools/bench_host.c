#include "tools/bench_host.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/huge_pages.h"
#include "run/run.h"
#include "tools/xmalloc.h"

enum { THREADS_MAX = 256 };

/* What one thread copies. */
struct share {
    char *source, *destination;
    size_t bytes;
    uint32_t times; /* 0: it writes both, so that the pages are there, and near it */
    pthread_t thread;
};

struct host_copy {
    char *source, *destination;
    size_t bytes;
    uint32_t thread_count;
    struct share shares[THREADS_MAX];
};

static void *work_on(void *context)
{
    const struct share *share = context;
    for (uint32_t i = 0; i < share->times; i++)
        memcpy(share->destination, share->source, share->bytes);
    if (share->times > 0)
        return NULL;
    memset(share->destination, 0, share->bytes);
    for (size_t i = 0; i < share->bytes; i++)
        share->source[i] = (char)(i % 251);
    return NULL;
}

/* Works on all shares, each in a thread of its own, and waits. */
static enum healcl_status work_on_all(struct host_copy *copy, uint32_t times,
                                      struct healcl_error *error)
{
    uint32_t started = 0;
    for (; started < copy->thread_count; started++) {
        struct share *share = &copy->shares[started];
        share->times = times;
        if (pthread_create(&share->thread, NULL, work_on, share) != 0)
            break;
    }
    for (uint32_t i = 0; i < started; i++)
        pthread_join(copy->shares[i].thread, NULL);
    if (started < copy->thread_count)
        FAIL(error, HEALCL_NO_MEMORY, "cannot start a thread");
    return HEALCL_OK;
}

/* Those that this process may run on. */
static size_t count_processors(void)
{
    cpu_set_t set;
    const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < 1 ? 1 : count > THREADS_MAX ? THREADS_MAX : (size_t)count;
}

enum healcl_status host_copy_create(uint64_t bytes, struct host_copy **result,
                                    struct healcl_error *error)
{
    const size_t count = count_processors();
    struct host_copy *copy = *result = xcalloc(1, sizeof *copy);
    copy->bytes = bytes;
    copy->thread_count = (uint32_t)count;
    copy->source = xmalloc(bytes);
    copy->destination = xmalloc(bytes);
    huge_pages_ask(copy->source, bytes); /* as a device's buffers */
    huge_pages_ask(copy->destination, bytes);
    for (size_t i = 0; i < count; i++) {
        const size_t first = bytes / count * i;
        const size_t end = i + 1 < count ? bytes / count * (i + 1) : bytes;
        copy->shares[i] = (struct share){.source = copy->source + first,
                                         .destination = copy->destination + first,
                                         .bytes = end - first};
    }
    return work_on_all(copy, 0, error);
}

void host_copy_free(struct host_copy *copy)
{
    if (!copy)
        return;
    free(copy->source);
    free(copy->destination);
    free(copy);
}

enum healcl_status host_copy_run(struct host_copy *copy, uint32_t times, uint64_t *nanoseconds,
                                 struct healcl_error *error)
{
    uint64_t start = monotonic_nanoseconds();
    TRY(work_on_all(copy, times, error));
    *nanoseconds = monotonic_nanoseconds() - start;
    return HEALCL_OK;
}

enum healcl_status host_copy_verify(const struct host_copy *copy, struct healcl_error *error)
{
    if (memcmp(copy->destination, copy->source, copy->bytes) != 0)
        FAIL(error, HEALCL_DIFFERENT, "the copy is not like the source");
    return HEALCL_OK;
}
