/* Programs and kernels: found, shared by the handles on a context, kept and released. */
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

static void free_program(const struct opencl *cl, struct device_program *program)
{
    for (struct shared_kernel *kernel = program->kernels, *next; kernel; kernel = next) {
        next = kernel->next;
        free(kernel);
    }
    if (program->id)
        (void)cl->clReleaseProgram(program->id);
    free(program->name);
    free(program->options);
    free(program->all_options);
    free(program->failure);
    free(program);
}

void programs_trim(const struct opencl *cl, struct device_context *context, uint32_t most)
{
    uint32_t idle = 0;
    for (struct device_program **link = &context->programs, *program; (program = *link);) {
        const bool is_idle = program->users == 0;
        if (is_idle && (program->discarded || !program->id || ++idle > most)) {
            *link = program->next;
            free_program(cl, program);
        } else {
            link = &program->next;
        }
    }
}

/* ---------------------------------------------------------------- finding */

static enum healcl_status init_program(const struct healcl_device *device,
                                       const struct launch *launch, uint64_t hash,
                                       struct device_program *program, struct healcl_error *error)
{
    program->hash = hash;
    program->name = strdup(launch->program);
    program->options = strdup(launch->options);
    program->text = launch->source;
    program->arguments = kernel_arguments_hash(launch);
    program->local_size = launch->local_size;
    NEED_MEMORY(program->name && program->options, error);
    return program_identify(device, program, error);
}

/* Finds the program of a launch among those of the context, or adds it. */
static enum healcl_status find_program(struct healcl_device *device, const struct launch *launch,
                                       uint64_t hash, struct device_program **found,
                                       struct healcl_error *error)
{
    struct device_context *context = device->shared;
    struct device_program *made = calloc(1, sizeof *made), *program = context->programs;
    NEED_MEMORY(made, error);
    enum healcl_status status = init_program(device, launch, hash, made, error);
    while (program && (program->discarded || strcmp(program->key, made->key) != 0))
        program = program->next;
    if (status != HEALCL_OK || program) {
        free_program(device->cl, made);
    } else {
        program = made;
        program->next = context->programs;
        context->programs = program;
    }
    *found = program;
    return status;
}

static enum healcl_status find_shared_kernel(struct device_program *program, const char *name,
                                             struct shared_kernel **found,
                                             struct healcl_error *error)
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

/* Adds the kernel of a launch to those of the handle. program: its program; NULL: it is unknown. */
static enum healcl_status add_kernel(struct healcl_device *device, const struct launch *launch,
                                     uint64_t hash, struct device_program *program,
                                     struct healcl_error *error)
{
    struct kernel *kernel = calloc(1, sizeof *kernel);
    NEED_MEMORY(kernel, error);
    (void)pthread_mutex_lock(&device->shared->lock);
    enum healcl_status status =
        program ? HEALCL_OK : find_program(device, launch, hash, &program, error);
    if (status == HEALCL_OK)
        status = find_shared_kernel(program, launch->kernel, &kernel->shared, error);
    if (status == HEALCL_OK) {
        program->text = launch->source; /* that of an earlier launch may be gone */
        program->users++;
        kernel->program = program;
        kernel->next = device->programs->kernels;
        device->programs->kernels = kernel;
    }
    (void)pthread_mutex_unlock(&device->shared->lock);
    if (status != HEALCL_OK)
        free(kernel);
    return status;
}

static bool is_program_of(const struct device_program *program, const struct launch *launch,
                          uint64_t hash)
{
    return program->hash == hash && program->local_size == launch->local_size &&
           program->arguments == kernel_arguments_hash(launch) &&
           strcmp(program->name, launch->program) == 0 &&
           strcmp(program->options, launch->options) == 0;
}

enum healcl_status kernel_find(struct healcl_device *device, const struct launch *launch,
                               struct healcl_error *error)
{
    const uint64_t hash = launch_program_hash(launch);
    struct device_program *program = NULL;
    struct kernel *kernel;
    for (struct kernel **link = &device->programs->kernels; (kernel = *link);
         link = &kernel->next) {
        if (!is_program_of(kernel->program, launch, hash))
            continue;
        program = kernel->program;
        if (strcmp(kernel->shared->name, launch->kernel) != 0)
            continue;
        *link = kernel->next;
        kernel->next = device->programs->kernels;
        device->programs->kernels = kernel;
        return HEALCL_OK;
    }
    return add_kernel(device, launch, hash, program, error);
}

cl_kernel kernel_create(struct healcl_device *device, const struct kernel *kernel, cl_int *code)
{
    const char *prefix = kernel->program->prefix;
    char symbol[256];
    snprintf(symbol, sizeof symbol, "%.40s%s", prefix ? prefix : "", kernel->shared->name);
    return device->cl->clCreateKernel(kernel->program->id, symbol, code);
}

const struct device_program *device_next_program(const struct healcl_device *device,
                                                 const struct device_program *program)
{
    program = program ? program->next : device->shared->programs;
    while (program && (!program->id || program->users == 0))
        program = program->next;
    return program;
}

/* ---------------------------------------------------------------- releasing */

static void leave_program(struct healcl_device *device, struct device_program *program)
{
    struct device_context *context = device->shared;
    struct device_program **link = &context->programs;
    if (--program->users > 0)
        return;
    while (*link != program)
        link = &(*link)->next;
    *link = program->next;
    program->next = context->programs;
    context->programs = program;
    programs_trim(device->cl, context, IDLE_PROGRAMS_MAX);
}

void kernel_drop(struct healcl_device *device)
{
    struct kernel *kernel = device->programs->kernels;
    device->programs->kernels = kernel->next;
    if (kernel->id)
        (void)device->cl->clReleaseKernel(kernel->id);
    (void)pthread_mutex_lock(&device->shared->lock);
    leave_program(device, kernel->program);
    (void)pthread_mutex_unlock(&device->shared->lock);
    free(kernel);
}

bool device_programs_discard(struct healcl_device *device)
{
    bool loaded = false;
    (void)!device_finish(device, NULL);
    overlap_forget(device);
    for (; device->programs->kernels; kernel_drop(device)) {
        struct device_program *program = device->programs->kernels->program;
        (void)pthread_mutex_lock(&device->shared->lock);
        loaded = loaded || program->loaded;
        program->discarded = true;
        (void)pthread_mutex_unlock(&device->shared->lock);
        if (*program->binary_name && !device->programs->package)
            cache_remove(device->programs->cache_directory, program->binary_name);
    }
    return loaded;
}

void program_save(struct healcl_device *device, struct device_program *program)
{
    unsigned char *binary;
    size_t bytes;
    if (!*program->binary_name || !program->id || device->programs->distrusted ||
        !atomic_exchange(&program->may_be_cached, false) ||
        binary_get(device, program->id, &binary, &bytes, NULL) != HEALCL_OK)
        return;
    (void)!cache_write(device->programs->cache_directory, program->binary_name, binary, bytes,
                       NULL);
    free(binary);
}

void device_programs_release(struct healcl_device *device)
{
    struct device_programs *programs = device->programs;
    for (; programs->kernels; kernel_drop(device))
        if (programs->keeps_binaries)
            program_save(device, programs->kernels->program);
    free(programs->cache_directory);
    free(programs->warnings);
    free(programs->failed);
}
