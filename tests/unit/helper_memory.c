#include "helper_memory.h"

#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

enum { FRAMES = 12, STACKS_MOST = 1 << 14, FIRSTS_MOST = 1 << 16 };

static atomic_int way;
static atomic_size_t count;
static size_t fails_at;
static bool notes_each;

static struct {
    pthread_mutex_t mutex;
    void *frames[STACKS_MOST][FRAMES]; /* met so far */
    size_t count;
    size_t firsts[FIRSTS_MOST];
    size_t first_count;
} stacks = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool is_known(void *const frames[FRAMES])
{
    for (size_t i = 0; i < stacks.count && !notes_each; i++)
        if (memcmp(stacks.frames[i], frames, sizeof stacks.frames[i]) == 0)
            return true;
    return false;
}

static void note_stack(size_t number)
{
    void *frames[FRAMES] = {NULL};
    (void)backtrace(frames, FRAMES);
    pthread_mutex_lock(&stacks.mutex);
    if (!is_known(frames)) {
        if (stacks.count == STACKS_MOST || stacks.first_count == FIRSTS_MOST)
            abort();
        if (!notes_each)
            memcpy(stacks.frames[stacks.count++], frames, sizeof frames);
        stacks.firsts[stacks.first_count++] = number;
    }
    pthread_mutex_unlock(&stacks.mutex);
}

static bool fails(void)
{
    const int now = atomic_load(&way);
    const size_t number = atomic_fetch_add(&count, 1) + 1;
    if (now == MEMORY_IS_NOTED)
        note_stack(number);
    if (now == MEMORY_FAILS_ONCE ? number != fails_at : now != MEMORY_FAILS_ON || number < fails_at)
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

void memory_begin(enum memory_way wanted, size_t at)
{
    if (wanted == MEMORY_IS_NOTED)
        stacks.first_count = 0;
    fails_at = at;
    atomic_store(&count, 0);
    atomic_store(&way, wanted);
}

size_t memory_end(void)
{
    atomic_store(&way, MEMORY_WORKS);
    return atomic_load(&count);
}

const size_t *memory_firsts(size_t *first_count)
{
    *first_count = stacks.first_count;
    return stacks.firsts;
}

void memory_note_each(bool each_one)
{
    notes_each = each_one;
}
