/* Programs that are built: shared by the handles on a context, kept, recorded and released. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/internal.h"

/*
 * Handles on one context share programs: the handle that first needs one builds it. Each handle has
 * its own kernel objects, since threads set their arguments at the same time. PoCL 3.1 never frees
 * memory of programs that it has built, but does free queues and kernel objects.
 */
enum { IDLE_PROGRAMS_MAX = 256 }; /* without users: manifests keep bringing new ones */

static void free_shared(const struct opencl *cl, struct shared_program *shared)
{
    for (struct shared_kernel *kernel = shared->kernels, *next; kernel; kernel = next) {
        next = kernel->next;
        free(kernel);
    }
    if (shared->id)
        (void)cl->clReleaseProgram(shared->id);
    free(shared);
}

enum healcl_status shared_program_enter(struct healcl_device *device, struct program *program,
                                        const char key[HASH_SIZE], struct healcl_error *error)
{
    struct device_context *context = device->shared;
    (void)pthread_mutex_lock(&context->lock);
    struct shared_program *shared = context->programs;
    while (shared && (shared->discarded || strcmp(shared->key, key) != 0))
        shared = shared->next;
    if (!shared && (shared = calloc(1, sizeof *shared))) {
        memcpy(shared->key, key, HASH_SIZE);
        shared->next = context->programs;
        context->programs = shared;
    }
    if (shared)
        shared->users++;
    (void)pthread_mutex_unlock(&context->lock);
    program->shared = shared;
    NEED_MEMORY(shared, error);
    return HEALCL_OK;
}

enum healcl_status shared_kernel_find(struct shared_program *program, const char *name,
                                      struct shared_kernel **found, struct healcl_error *error)
{
    struct shared_kernel *shared = program->kernels;
    while (shared && strcmp(shared->name, name) != 0)
        shared = shared->next;
    if (!shared) {
        shared = calloc(1, sizeof *shared + strlen(name) + 1);
        NEED_MEMORY(shared, error);
        strcpy(shared->name, name);
        shared->next = program->kernels;
        program->kernels = shared;
    }
    *found = shared;
    return HEALCL_OK;
}

void shared_programs_trim(const struct opencl *cl, struct device_context *context, uint32_t most)
{
    uint32_t idle = 0;
    for (struct shared_program **link = &context->programs, *shared; (shared = *link);) {
        bool is_idle = shared->users == 0;
        if (is_idle && (shared->discarded || !shared->id || ++idle > most)) {
            *link = shared->next;
            free_shared(cl, shared);
        } else {
            link = &shared->next;
        }
    }
}

static void shared_program_leave(struct healcl_device *device, struct program *program,
                                 bool discard)
{
    struct device_context *context = device->shared;
    struct shared_program *shared = program->shared;
    shared->discarded = shared->discarded || discard;
    if (--shared->users > 0)
        return;
    struct shared_program **link = &context->programs;
    while (*link != shared)
        link = &(*link)->next;
    *link = shared->next;
    shared->next = context->programs;
    context->programs = shared;
    shared_programs_trim(device->cl, context, IDLE_PROGRAMS_MAX);
}

/* ---------------------------------------------------------------- what is built */

void program_free(struct healcl_device *device, struct program *program, bool discard)
{
    if (!program)
        return;
    while (program->kernels) {
        struct kernel *kernel = program->kernels;
        program->kernels = kernel->next;
        (void)device->cl->clReleaseKernel(kernel->id);
        free(kernel);
    }
    if (program->shared) {
        (void)pthread_mutex_lock(&device->shared->lock);
        shared_program_leave(device, program, discard);
        (void)pthread_mutex_unlock(&device->shared->lock);
    }
    free(program->name);
    free(program->options);
    free(program->all_options);
    free(program->failure);
    free(program);
}

/* discard: also what is cached of them. */
static bool release_programs(struct healcl_device *device, bool discard)
{
    bool loaded = false;
    while (device->programs->list) {
        struct program *program = device->programs->list;
        device->programs->list = program->next;
        loaded = loaded || program->shared->loaded;
        if (discard && *program->binary_name && !device->programs->package)
            cache_remove(device->programs->cache_directory, program->binary_name);
        program_free(device, program, discard);
    }
    return loaded;
}

bool device_programs_discard(struct healcl_device *device)
{
    (void)!device_finish(device, NULL);
    overlap_forget(device);
    return release_programs(device, true);
}

void program_save(struct healcl_device *device, const struct program *program)
{
    unsigned char *binary;
    size_t bytes;
    const struct shared_program *shared = program->shared;
    if (!*program->binary_name || shared->loaded || !program->may_be_cached || !shared->id ||
        device->programs->distrusted ||
        binary_get(device, shared->id, &binary, &bytes, NULL) != HEALCL_OK)
        return;
    (void)!cache_write(device->programs->cache_directory, program->binary_name, binary, bytes,
                       NULL);
    free(binary);
}

void device_programs_release(struct healcl_device *device)
{
    struct device_programs *programs = device->programs;
    for (const struct program *program = programs->list; program && programs->keeps_binaries;
         program = program->next)
        program_save(device, program);
    (void)release_programs(device, false);
    while (programs->added) {
        struct program_source *source = programs->added;
        programs->added = source->next;
        free(source);
    }
    free(programs->cache_directory);
    free(programs->warnings);
    free(programs->failed);
}

void record_release(struct record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        free(record->programs[i].kernels);
        free(record->programs[i].binary);
    }
    free(record->programs);
    *record = (struct record){.count = 0};
}

/* Freed with free(); NULL without memory. */
static char *kernel_names(const struct program *program)
{
    size_t size = 1;
    for (const struct kernel *kernel = program->kernels; kernel; kernel = kernel->next)
        size += strlen(kernel->shared->name) + 1;
    char *names = calloc(1, size);
    for (const struct kernel *kernel = program->kernels; names && kernel; kernel = kernel->next)
        strcat(strcat(names, *names ? " " : ""), kernel->shared->name);
    return names;
}

enum healcl_status device_record(struct healcl_device *device, bool with_binaries,
                                 struct record *record, struct healcl_error *error)
{
    size_t count = 0;
    for (const struct program *program = device->programs->list; program; program = program->next)
        count++;
    *record = (struct record){.programs = calloc(count + 1, sizeof *record->programs)};
    NEED_MEMORY(record->programs, error);
    for (struct program *program = device->programs->list; program; program = program->next) {
        if (program->failure)
            continue;
        struct recorded_program *recorded = &record->programs[record->count++];
        recorded->name = program->name;
        recorded->options = program->all_options;
        recorded->key = program->shared->key;
        recorded->kernels = kernel_names(program);
        NEED_MEMORY(recorded->kernels, error);
        if (with_binaries)
            TRY_PREFIX(
                binary_get(device, program->shared->id, &recorded->binary, &recorded->bytes, error),
                "program '%s': ", program->name);
    }
    return HEALCL_OK;
}

cl_kernel kernel_create(struct healcl_device *device, const struct program *program,
                        const char *name, cl_int *code)
{
    const char *prefix = program->shared->prefix;
    char symbol[256];
    snprintf(symbol, sizeof symbol, "%.40s%s", prefix ? prefix : "", name);
    return device->cl->clCreateKernel(program->shared->id, symbol, code);
}
