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

/* Frees a program without users, which must not be in the context's list. */
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
    free(program->failure);
    free(program);
}

/* Frees programs of a context that no kernel uses. Those that could not be built, or are discarded,
 * all go. Of the others the `most` most recently used stay: they come first in the list. The
 * context must be locked. */
void programs_trim(const struct opencl *cl, struct device_context *context, uint32_t most)
{
    uint32_t kept_count = 0; /* without users */
    struct device_program **link = &context->programs;
    while (*link) {
        struct device_program *program = *link;
        const bool is_usable = program->id && !program->discarded;
        const bool is_used = program->users > 0;
        if (is_used || (is_usable && kept_count < most)) {
            kept_count += !is_used;
            link = &program->next;
        } else {
            *link = program->next;
            free_program(cl, program);
        }
    }
}

/* ---------------------------------------------------------------- finding */

/* Sets what identifies the program of a launch, from copies of the launch's texts. A vendor's
 * source is not copied: its manifest owns it. The caller frees the program, also after an error. */
static enum healcl_status init_program(const struct healcl_device *device,
                                       const struct launch *launch, struct device_program *program,
                                       struct healcl_error *error)
{
    program->hash = launch_program_hash(launch);
    program->name = strdup(launch->program);
    program->options = strdup(launch->options);
    program->text = launch->source;
    program->arguments = kernel_arguments_hash(launch);
    program->local_size = launch->local_size;
    NEED_MEMORY(program->name && program->options, error);
    return program_identify(device, program, error);
}

/* Finds the program of a launch among those of the context, or adds it unbuilt. Programs are equal
 * if their keys are: hashes of sources and options. The key needs a whole program, so one is made
 * first and freed if an equal one exists. The context must be locked. */
static enum healcl_status find_program(struct healcl_device *device, const struct launch *launch,
                                       struct device_program **found, struct healcl_error *error)
{
    struct device_context *context = device->shared;
    struct device_program *candidate = calloc(1, sizeof *candidate), *program = context->programs;
    NEED_MEMORY(candidate, error);
    enum healcl_status status = init_program(device, launch, candidate, error);
    while (program && (program->discarded || strcmp(program->key, candidate->key) != 0))
        program = program->next;
    if (status != HEALCL_OK || program) {
        free_program(device->cl, candidate);
    } else {
        program = candidate;
        program->next = context->programs;
        context->programs = program;
    }
    *found = program;
    return status;
}

/* Finds the program of a launch, or adds it unbuilt, and counts a user: the program is not freed
 * until program_leave ends that use. */
enum healcl_status program_find(struct healcl_device *device, const struct launch *launch,
                                struct device_program **found, struct healcl_error *error)
{
    (void)pthread_mutex_lock(&device->shared->lock);
    enum healcl_status status = find_program(device, launch, found, error);
    if (status == HEALCL_OK)
        (*found)->users++;
    (void)pthread_mutex_unlock(&device->shared->lock);
    return status;
}

/* Finds a kernel of a program by its name, or adds it. Handles share this entry, which notes if the
 * driver has compiled the kernel. The context must be locked. */
static enum healcl_status find_shared_kernel(struct device_program *program, const char *name,
                                             struct shared_kernel **found,
                                             struct healcl_error *error)
{
    struct shared_kernel *kernel = program->kernels;
    while (kernel && strcmp(kernel->name, name) != 0)
        kernel = kernel->next;
    if (!kernel) {
        kernel = calloc(1, sizeof *kernel + strlen(name) + 1);
        NEED_MEMORY(kernel, error);
        strcpy(kernel->name, name);
        kernel->next = program->kernels;
        program->kernels = kernel;
    }
    *found = kernel;
    return HEALCL_OK;
}

/* Puts a kernel in front of the handle's list. */
static void add_first(struct healcl_device *device, struct kernel *kernel)
{
    kernel->next = device->programs->kernels;
    device->programs->kernels = kernel;
}

/* Adds the kernel of a launch to the front of the handle's list, without a kernel object. program:
 * the kernel's program if the handle already knows it, otherwise NULL. */
static enum healcl_status add_kernel(struct healcl_device *device, const struct launch *launch,
                                     struct device_program *program, struct kernel **added,
                                     struct healcl_error *error)
{
    struct kernel *kernel = calloc(1, sizeof *kernel);
    NEED_MEMORY(kernel, error);
    (void)pthread_mutex_lock(&device->shared->lock);
    enum healcl_status status = program ? HEALCL_OK : find_program(device, launch, &program, error);
    THEN(status, find_shared_kernel(program, launch->kernel, &kernel->shared, error));
    if (status == HEALCL_OK) {
        program->text = launch->source; /* a manifest that owned an earlier source may be closed */
        program->users++;
        kernel->program = program;
        add_first(device, kernel);
        *added = kernel;
    }
    (void)pthread_mutex_unlock(&device->shared->lock);
    if (status != HEALCL_OK)
        free(kernel);
    return status;
}

/* Whether a launch uses this program. The hash alone could be equal by accident. */
bool program_is_of(const struct device_program *program, const struct launch *launch, uint64_t hash)
{
    return program->hash == hash && program->local_size == launch->local_size &&
           program->arguments == kernel_arguments_hash(launch) &&
           strcmp(program->name, launch->program) == 0 &&
           strcmp(program->options, launch->options) == 0;
}

/* Finds the kernel of a launch in the handle's list and moves it to the front, or adds it there
 * unbuilt. Recently used kernels are thus found first. */
enum healcl_status kernel_find(struct healcl_device *device, const struct launch *launch,
                               struct kernel **found, struct healcl_error *error)
{
    const uint64_t hash = launch_program_hash(launch);
    struct device_program *program = NULL; /* the launch's, if another of its kernels is listed */
    for (struct kernel **link = &device->programs->kernels; *link; link = &(*link)->next) {
        struct kernel *kernel = *link;
        if (!program_is_of(kernel->program, launch, hash))
            continue;
        program = kernel->program;
        if (strcmp(kernel->shared->name, launch->kernel) == 0) {
            *link = kernel->next;
            add_first(device, kernel);
            *found = kernel;
            return HEALCL_OK;
        }
    }
    return add_kernel(device, launch, program, found, error);
}

/* Creates a kernel object of a built program. In a package's image, kernels of all programs have a
 * prefix of their program in their names. */
cl_kernel kernel_create(struct healcl_device *device, const struct kernel *kernel, cl_int *code)
{
    const char *prefix = kernel->program->symbol_prefix;
    char symbol[256];
    snprintf(symbol, sizeof symbol, "%.40s%s", prefix ? prefix : "", kernel->shared->name);
    cl_kernel id = device->cl->clCreateKernel(kernel->program->id, symbol, code);
    return *code == CL_SUCCESS ? id : NULL;
}

/* Iterates over the programs of the context that are built and in use: the one after `program`, or
 * the first one if that is NULL. NULL at the end. */
const struct device_program *device_next_program(const struct healcl_device *device,
                                                 const struct device_program *program)
{
    program = program ? program->next : device->shared->programs;
    while (program && (!program->id || program->users == 0))
        program = program->next;
    return program;
}

/* ---------------------------------------------------------------- releasing */

/* Ends one use of a program. After the last one, moves the program to the front of the context's
 * list, as the most recently used, and trims the list: some programs without users are kept. */
void program_leave(struct healcl_device *device, struct device_program *program)
{
    struct device_context *context = device->shared;
    struct device_program **link = &context->programs;
    (void)pthread_mutex_lock(&context->lock);
    if (--program->users == 0) {
        while (*link != program)
            link = &(*link)->next;
        *link = program->next;
        program->next = context->programs;
        context->programs = program;
        programs_trim(device->cl, context, IDLE_PROGRAMS_MAX);
    }
    (void)pthread_mutex_unlock(&context->lock);
}

/* Releases the kernel at the front of the handle's list. */
void kernel_drop(struct healcl_device *device)
{
    struct kernel *kernel = device->programs->kernels;
    device->programs->kernels = kernel->next;
    if (kernel->id)
        (void)device->cl->clReleaseKernel(kernel->id);
    program_leave(device, kernel->program);
    free(kernel);
}

/* Makes a handle forget all its programs after a failed self-test: they, or their cached binaries,
 * may be wrong. Returns whether any program came from a binary: building it from source may help
 * then. */
bool device_programs_discard(struct healcl_device *device)
{
    bool any_loaded = false;
    (void)!device_finish(device, NULL);
    overlap_forget(device);
    for (; device->programs->kernels; kernel_drop(device)) {
        struct device_program *program = device->programs->kernels->program;
        (void)pthread_mutex_lock(&device->shared->lock);
        any_loaded = any_loaded || program->loaded;
        program->discarded = true;
        (void)pthread_mutex_unlock(&device->shared->lock);
        if (*program->binary_name && !device->programs->package)
            cache_remove(program->binary_name);
    }
    return any_loaded;
}

/* Caches the binary of a program, at most once for all handles. Failures are ignored: the next
 * process builds the program again. */
void program_save(struct healcl_device *device, struct device_program *program)
{
    unsigned char *binary;
    size_t bytes;
    if (!*program->binary_name || !program->id || device->programs->distrusted)
        return;
    /* The exchange makes the first handle that comes here save it, and no other. */
    if (!atomic_exchange(&program->may_be_cached, false))
        return;
    if (binary_get(device, program->id, &binary, &bytes, NULL) != HEALCL_OK)
        return;
    (void)!cache_write(program->binary_name, binary, bytes, NULL, NULL);
    free(binary);
}

/* Releases the kernels of a handle that is being closed. Binaries are cached only now, because some
 * drivers compile a kernel when it first runs. */
void device_programs_release(struct healcl_device *device)
{
    struct device_programs *programs = device->programs;
    for (; programs->kernels; kernel_drop(device))
        if (programs->keeps_binaries)
            program_save(device, programs->kernels->program);
    free(programs->warnings);
    free(programs->failed);
}
