#include "bench/bench_host.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/huge_pages.h"
#include "run/run.h"

enum { THREADS_MAX = 256 };

/* What one thread copies. */
struct share {
    char *source, *destination;
    size_t bytes;
    uint32_t times;
    pthread_t thread;
};

struct host_copy {
    char *source, *destination;
    size_t bytes;
    uint32_t thread_count;
    struct share shares[THREADS_MAX];
};

/* Each thread writes first what it copies later, so that the pages are there, and near it. */
static void *fill_share(void *context)
{
    const struct share *share = context;
    memset(share->destination, 0, share->bytes);
    for (size_t i = 0; i < share->bytes; i++)
        share->source[i] = (char)(i % 251);
    return NULL;
}

static void *copy_share(void *context)
{
    const struct share *share = context;
    for (uint32_t i = 0; i < share->times; i++)
        memcpy(share->destination, share->source, share->bytes);
    return NULL;
}

/* Runs a function on all shares, each in a thread of its own, and waits. */
static enum healcl_status on_all_shares(struct host_copy *copy, void *(*work)(void *),
                                        struct healcl_error *error)
{
    uint32_t started = 0;
    while (started < copy->thread_count &&
           pthread_create(&copy->shares[started].thread, NULL, work, &copy->shares[started]) == 0)
        started++;
    for (uint32_t i = 0; i < started; i++)
        pthread_join(copy->shares[i].thread, NULL);
    if (started < copy->thread_count)
        FAIL(error, HEALCL_NO_MEMORY, "cannot start a thread");
    return HEALCL_OK;
}

/* Those that this process may run on. */
static long count_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    return sysconf(_SC_NPROCESSORS_ONLN);
}

static void divide(struct host_copy *copy)
{
    long processors = count_processors();
    uint32_t count = processors < 1             ? 1
                     : processors > THREADS_MAX ? THREADS_MAX
                                                : (uint32_t)processors;
    copy->thread_count = count;
    for (size_t i = 0; i < count; i++) {
        size_t first = copy->bytes / count * i;
        size_t end = i + 1 < count ? copy->bytes / count * (i + 1) : copy->bytes;
        copy->shares[i] = (struct share){.source = copy->source + first,
                                         .destination = copy->destination + first,
                                         .bytes = end - first};
    }
}

enum healcl_status host_copy_create(uint64_t bytes, struct host_copy **result,
                                    struct healcl_error *error)
{
    struct host_copy *copy = calloc(1, sizeof *copy);
    if (!copy)
        NO_MEMORY(error);
    copy->bytes = bytes;
    copy->source = malloc(bytes);
    copy->destination = malloc(bytes);
    enum healcl_status status = HEALCL_OK;
    if (!copy->source || !copy->destination)
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    if (status == HEALCL_OK) {
        huge_pages_ask(copy->source, bytes); /* as a device's buffers */
        huge_pages_ask(copy->destination, bytes);
        divide(copy);
        status = on_all_shares(copy, fill_share, error);
    }
    if (status != HEALCL_OK) {
        host_copy_free(copy);
        return status;
    }
    *result = copy;
    return HEALCL_OK;
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
    for (uint32_t i = 0; i < copy->thread_count; i++)
        copy->shares[i].times = times;
    uint64_t start = monotonic_nanoseconds();
    TRY(on_all_shares(copy, copy_share, error));
    *nanoseconds = monotonic_nanoseconds() - start;
    return HEALCL_OK;
}

enum healcl_status host_copy_verify(const struct host_copy *copy, struct healcl_error *error)
{
    if (memcmp(copy->destination, copy->source, copy->bytes) != 0)
        FAIL(error, HEALCL_DIFFERENT, "the copy is not like the source");
    return HEALCL_OK;
}
