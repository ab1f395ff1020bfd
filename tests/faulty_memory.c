/*
 * Memory that runs out: preloaded (LD_PRELOAD), it has one allocation of the program and of the
 * libraries that read files for it fail. Drivers and loaders are left alone: some end the process.
 *
 *     FAULTY_MEMORY_AT     which one, from 1 on; 0 or nothing: none
 *     FAULTY_MEMORY_COUNT  a file that gets the number of allocations, when the process ends; and
 *                          below it, for each distinct stack of calls, the number of the first one
 *
 * Only the first process counts, and none that it starts.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANGES_MAX = 64 };

static struct {
    uintptr_t begin, end;
} ranges[RANGES_MAX];

static int range_count;
static long fails_at;
static const char *count_path;
static atomic_long count;

/* ---------------------------------------------------------------- which calls have led there */

enum { FRAMES_MAX = 64, SLOTS = 1 << 16 /* a power of two */ };

static uint64_t stacks[SLOTS]; /* hashes; 0: a free slot */
static long firsts[SLOTS / 2]; /* the number of the first allocation of each */
static int stack_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t hash_of_stack(void)
{
    void *frames[FRAMES_MAX];
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    const int depth = backtrace(frames, FRAMES_MAX);
    for (int i = 0; i < depth; i++)
        hash = (hash ^ (uintptr_t)frames[i]) * 1099511628211u;
    return hash ? hash : 1;
}

static void note_stack(long number)
{
    const uint64_t hash = hash_of_stack();
    pthread_mutex_lock(&lock);
    size_t slot = hash & (SLOTS - 1);
    while (stacks[slot] != 0 && stacks[slot] != hash)
        slot = (slot + 1) & (SLOTS - 1);
    if (stacks[slot] == 0 && stack_count < SLOTS / 2) {
        stacks[slot] = hash;
        firsts[stack_count++] = number;
    }
    pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- who is counted */

/* The program, which comes first and has no name, healcl's library, and those that it hands files
 * to. */
static bool is_counted(const struct dl_phdr_info *object, bool is_first)
{
    static const char *const libraries[] = {"/libhealcl.", "/libcjson.", "/libzip.", "/libz.",
                                            "/libzstd."};
    if (is_first)
        return true;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strstr(object->dlpi_name, libraries[i]))
            return true;
    return false;
}

static int note_object(struct dl_phdr_info *object, size_t size, void *data)
{
    bool *is_first = data;
    (void)size;
    bool counted = is_counted(object, *is_first);
    *is_first = false;
    for (int i = 0; counted && i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || range_count == RANGES_MAX)
            continue;
        ranges[range_count].begin = object->dlpi_addr + part->p_vaddr;
        ranges[range_count].end = ranges[range_count].begin + part->p_memsz;
        range_count++;
    }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    bool is_first = true;
    const char *at = getenv("FAULTY_MEMORY_AT");
    count_path = getenv("FAULTY_MEMORY_COUNT");
    fails_at = at ? atol(at) : 0;
    if (count_path)
        (void)hash_of_stack(); /* the first one loads a library, which allocates */
    dl_iterate_phdr(note_object, &is_first);
    unsetenv("LD_PRELOAD");
}

static void write_count(void)
{
    FILE *file = count_path ? fopen(count_path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "%ld\n", atomic_load(&count));
    for (int i = 0; i < stack_count; i++)
        fprintf(file, "%ld\n", firsts[i]);
    fclose(file);
}

__attribute__((destructor)) static void end(void)
{
    write_count();
}

/* Whether an allocation is the one that fails: by where it was asked for. */
static bool fails(const void *caller)
{
    const uintptr_t place = (uintptr_t)caller;
    for (int i = 0; i < range_count; i++)
        if (ranges[i].begin <= place && place < ranges[i].end) {
            const long number = atomic_fetch_add(&count, 1) + 1;
            const bool is_it = number == fails_at;
            if (count_path)
                note_stack(number);
            if (is_it)
                errno = ENOMEM;
            return is_it;
        }
    return false;
}

#define CALLER __builtin_return_address(0)

/* The function in the place of which this one stands. */
#define NEXT(type, name, ...)         \
    static type (*next)(__VA_ARGS__); \
    if (!next)                        \
    *(void **)&next = dlsym(RTLD_NEXT, #name)

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t number, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    return fails(CALLER) ? NULL : __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    return fails(CALLER) ? NULL : __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size)
{
    return fails(CALLER) ? NULL : __libc_realloc(memory, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    void *made = fails(CALLER) ? NULL : __libc_memalign(alignment, size);
    if (!made)
        return ENOMEM;
    *memory = made;
    return 0;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails(CALLER) ? NULL : __libc_memalign(alignment, size);
}

/* What the C library allocates is asked for there. */

char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = fails(CALLER) ? NULL : __libc_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

FILE *fopen(const char *path, const char *mode)
{
    NEXT(FILE *, fopen, const char *, const char *);
    return fails(CALLER) ? NULL : next(path, mode);
}

FILE *fdopen(int file, const char *mode)
{
    NEXT(FILE *, fdopen, int, const char *);
    return fails(CALLER) ? NULL : next(file, mode);
}

FILE *open_memstream(char **text, size_t *size)
{
    NEXT(FILE *, open_memstream, char **, size_t *);
    return fails(CALLER) ? NULL : next(text, size);
}

DIR *opendir(const char *path)
{
    NEXT(DIR *, opendir, const char *);
    return fails(CALLER) ? NULL : next(path);
}

char *realpath(const char *path, char *resolved)
{
    NEXT(char *, realpath, const char *, char *);
    return fails(CALLER) ? NULL : next(path, resolved);
}
