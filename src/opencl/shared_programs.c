/*
 * Programs that handles on one context share: each is built once, by the handle that wants it
 * first. A handle has kernel objects of its own, for threads set their arguments at the same time.
 * PoCL 3.1 keeps memory of each program that is built, and none of queues and kernel objects.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/programs_internal.h"

enum { IDLE_PROGRAMS_MAX = 256 }; /* that no handle uses: manifests bring ever new ones */

struct shared_programs {
    pthread_mutex_t lock; /* of all; held while one is built, so that it is built once */
    uint32_t handles;
    struct package *package;      /* or NULL */
    struct shared_program *first; /* the last one used */
};

static void free_kernels(struct shared_kernel *kernel)
{
    while (kernel) {
        struct shared_kernel *next = kernel->next;
        free(kernel->name);
        free(kernel);
        kernel = next;
    }
}

static void free_shared(const struct opencl *cl, struct shared_program *shared)
{
    free_kernels(shared->kernels);
    (void)cl->clReleaseProgram(shared->id);
    free(shared);
}

/* ---------------------------------------------------------------- handles */

enum healcl_status shared_programs_make(struct healcl_device *device, struct healcl_error *error)
{
    struct shared_programs *programs = calloc(1, sizeof *programs);
    if (!programs)
        NO_MEMORY(error);
    pthread_mutex_init(&programs->lock, NULL);
    programs->handles = 1;
    programs->package = device->programs->package;
    device->programs->shared = programs;
    return HEALCL_OK;
}

void shared_programs_enter(struct healcl_device *device, struct shared_programs *programs)
{
    pthread_mutex_lock(&programs->lock);
    programs->handles++;
    pthread_mutex_unlock(&programs->lock);
    device->programs->package = programs->package;
    device->programs->shared = programs;
}

void shared_programs_leave(struct healcl_device *device)
{
    struct shared_programs *programs = device->programs->shared;
    if (!programs) {
        package_free(device->programs->package);
        return;
    }
    pthread_mutex_lock(&programs->lock);
    bool is_last = --programs->handles == 0;
    pthread_mutex_unlock(&programs->lock);
    if (!is_last)
        return;
    while (programs->first) {
        struct shared_program *shared = programs->first;
        programs->first = shared->next;
        free_shared(device->cl, shared);
    }
    pthread_mutex_destroy(&programs->lock);
    package_free(programs->package);
    free(programs);
}

void shared_programs_lock(struct healcl_device *device)
{
    pthread_mutex_lock(&device->programs->shared->lock);
}

void shared_programs_unlock(struct healcl_device *device)
{
    pthread_mutex_unlock(&device->programs->shared->lock);
}

/* ---------------------------------------------------------------- finding */

enum healcl_status shared_program_use(struct healcl_device *device, struct program *program,
                                      bool *found, struct healcl_error *error)
{
    struct shared_program *shared = device->programs->shared->first;
    while (shared && (shared->discarded || strcmp(shared->key, program->key) != 0))
        shared = shared->next;
    *found = shared != NULL;
    if (!shared)
        return HEALCL_OK;
    TRY_CL(error, "clRetainProgram", device->cl->clRetainProgram(shared->id));
    program->id = shared->id;
    program->shared = shared;
    program->loaded = shared->loaded;
    program->prefix = shared->prefix;
    shared->users++;
    return HEALCL_OK;
}

enum healcl_status shared_program_add(struct healcl_device *device, struct program *program,
                                      struct healcl_error *error)
{
    struct shared_programs *programs = device->programs->shared;
    struct shared_program *shared = calloc(1, sizeof *shared);
    if (!shared)
        NO_MEMORY(error);
    cl_int code = device->cl->clRetainProgram(program->id);
    if (code != CL_SUCCESS) {
        free(shared);
        return opencl_error(error, code, "clRetainProgram", __FILE__, __LINE__);
    }
    *shared = (struct shared_program){.next = programs->first,
                                      .users = 1,
                                      .id = program->id,
                                      .loaded = program->loaded,
                                      .prefix = program->prefix};
    memcpy(shared->key, program->key, sizeof shared->key);
    programs->first = program->shared = shared;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- kernels */

enum healcl_status shared_kernel_find(struct program *program, struct kernel *kernel,
                                      struct healcl_error *error)
{
    struct shared_kernel *shared = program->shared->kernels;
    while (shared && strcmp(shared->name, kernel->name) != 0)
        shared = shared->next;
    if (!shared) {
        shared = calloc(1, sizeof *shared);
        if (!shared)
            NO_MEMORY(error);
        shared->name = strdup(kernel->name);
        if (!shared->name) {
            free(shared);
            NO_MEMORY(error);
        }
        shared->next = program->shared->kernels;
        program->shared->kernels = shared;
    }
    kernel->shared = shared;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- no longer used */

/* Frees those that have been idle for the longest, and what is discarded. */
static void free_idle(const struct opencl *cl, struct shared_programs *programs)
{
    uint32_t idle = 0;
    for (struct shared_program **link = &programs->first, *shared; (shared = *link);) {
        bool is_idle = shared->users == 0;
        if (is_idle && (shared->discarded || ++idle > IDLE_PROGRAMS_MAX)) {
            *link = shared->next;
            free_shared(cl, shared);
        } else {
            link = &shared->next;
        }
    }
}

static void move_to_front(struct shared_programs *programs, struct shared_program *shared)
{
    struct shared_program **link = &programs->first;
    while (*link != shared)
        link = &(*link)->next;
    *link = shared->next;
    shared->next = programs->first;
    programs->first = shared;
}

void shared_program_leave(struct healcl_device *device, struct program *program, bool discard)
{
    struct shared_programs *programs = device->programs->shared;
    struct shared_program *shared = program->shared;
    shared->discarded = shared->discarded || discard;
    if (--shared->users > 0)
        return;
    move_to_front(programs, shared);
    free_idle(device->cl, programs);
}
