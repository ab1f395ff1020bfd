#include "core/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/clock.h"

enum { SLOTS = 64, PATH_SIZE = 4096 };

/* All tables change only under the lock. A slot does not change while it is taken. A signal handler
 * cannot wait for a lock, so it reads only taken slots. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct slot {
    atomic_bool taken;
    uintptr_t begin, end; /* of a mapped file */
    char path[PATH_SIZE];
};

static struct shared {
    struct slot temporaries[SLOTS];
    atomic_uint_least64_t since; /* when the call began; 0: no call */
    const char *call;
    char driver[WAITING_SIZE / 2];
    _Atomic uint32_t trial, first_trial;
} own, *shared = &own;

static struct slot mappings[SLOTS];

static void registry_note(struct slot table[SLOTS], const void *begin, size_t length,
                          const char *path)
{
    size_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < SLOTS && table[i].taken)
        i++;
    if (i < SLOTS) {
        table[i].begin = (uintptr_t)begin;
        table[i].end = table[i].begin + length;
        snprintf(table[i].path, PATH_SIZE, "%s", path);
        table[i].taken = true;
    }
    pthread_mutex_unlock(&lock);
}

/* path: NULL: any */
static void registry_forget(struct slot table[SLOTS], const void *begin, const char *path)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < SLOTS; i++)
        if (table[i].taken && table[i].begin == (uintptr_t)begin &&
            (!path || strcmp(table[i].path, path) == 0))
            table[i].taken = false;
    pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- temporary files */

int temporary_create(const char *path, mode_t mode)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    const int code = errno;
    if (file >= 0)
        registry_note(shared->temporaries, NULL, 0, path);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = code;
    return file;
}

void temporary_forget(const char *path)
{
    registry_forget(shared->temporaries, NULL, path);
}

void temporary_remove_all(void)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (shared->temporaries[i].taken)
            (void)unlink(shared->temporaries[i].path);
}

bool registry_share(void)
{
    void *memory =
        mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    shared = memory;
    return true;
}

/* ---------------------------------------------------------------- calls */

void waiting_begin(const char *call)
{
    shared->call = call;
    shared->since = monotonic_nanoseconds();
}

int32_t waiting_end(int32_t result)
{
    shared->since = 0;
    return result;
}

void waiting_driver(const char *name)
{
    snprintf(shared->driver, sizeof shared->driver, "%s", name);
}

bool waiting_for(uint64_t nanoseconds, char text[WAITING_SIZE])
{
    const uint64_t since = shared->since;
    if (since == 0 || monotonic_nanoseconds() < since + nanoseconds)
        return false;
    snprintf(text, WAITING_SIZE, *shared->driver ? "%s of '%s'" : "%s, which loads drivers,",
             shared->call, shared->driver);
    return true;
}

/* ---------------------------------------------------------------- trials */

void trial_note(uint32_t next)
{
    shared->trial = next;
}

uint32_t trial_first(void)
{
    return shared->first_trial;
}

bool trial_end(bool goes_on)
{
    shared->first_trial = goes_on ? shared->trial : 0;
    shared->trial = 0;
    return shared->first_trial > 0;
}

/* ---------------------------------------------------------------- mapped files */

void mapping_note(const void *begin, size_t length, const char *path)
{
    registry_note(mappings, begin, length, path);
}

void mapping_forget(const void *begin)
{
    registry_forget(mappings, begin, NULL);
}

const char *mapping_path(const void *address)
{
    uintptr_t place = (uintptr_t)address;
    for (size_t i = 0; i < SLOTS; i++)
        if (mappings[i].taken && mappings[i].begin <= place && place < mappings[i].end)
            return mappings[i].path;
    return NULL;
}

/* ---------------------------------------------------------------- inputs */

static struct input {
    struct input *next;
    struct stat about;
    char path[INPUT_NAME_SIZE];
} * inputs;

/* The link that points to the input, or to NULL if there is none. Call it under the lock. */
static struct input **find_input(const struct stat *about)
{
    struct input **link = &inputs;
    for (; *link; link = &(*link)->next) {
        const struct stat *known = &(*link)->about;
        if (known->st_dev == about->st_dev && known->st_ino == about->st_ino &&
            known->st_mtim.tv_sec == about->st_mtim.tv_sec &&
            known->st_mtim.tv_nsec == about->st_mtim.tv_nsec)
            break;
    }
    return link;
}

bool input_note(const char *path, const struct stat *about)
{
    struct input *input = malloc(sizeof *input);
    if (!input)
        return false;
    if ((about ? (input->about = *about, 0) : stat(path, &input->about)) != 0 ||
        !S_ISREG(input->about.st_mode)) {
        free(input);
        return true;
    }
    snprintf(input->path, sizeof input->path, "%s", path);
    pthread_mutex_lock(&lock);
    input->next = inputs;
    inputs = input;
    pthread_mutex_unlock(&lock);
    return true;
}

void input_forget(const struct stat *about)
{
    pthread_mutex_lock(&lock);
    struct input **link = find_input(about), *input = *link;
    if (input)
        *link = input->next;
    pthread_mutex_unlock(&lock);
    free(input);
}

bool input_at(const char *path, char name[INPUT_NAME_SIZE])
{
    struct stat about;
    if (stat(path, &about) != 0)
        return false;
    pthread_mutex_lock(&lock);
    const struct input *input = *find_input(&about);
    if (input)
        snprintf(name, INPUT_NAME_SIZE, "%s", input->path);
    pthread_mutex_unlock(&lock);
    return input != NULL;
}
