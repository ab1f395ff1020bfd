/* Builds programs, alone or side by side, and creates their kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/process.h"
#include "opencl/internal.h"

/* ---------------------------------------------------------------- building */

/* The compiler's messages, behind a head; freed with free(). NULL where nobody knows. */
static char *build_log(struct healcl_device *device, cl_program id, const char *head)
{
    size_t bytes = 0, start = strlen(head);
    if (device->cl->clGetProgramBuildInfo(id, device->info.device_id, CL_PROGRAM_BUILD_LOG, 0, NULL,
                                          &bytes) != CL_SUCCESS)
        return NULL;
    char *log = calloc(1, start + bytes + 1);
    if (!log)
        return NULL;
    memcpy(log, head, start);
    if (device->cl->clGetProgramBuildInfo(id, device->info.device_id, CL_PROGRAM_BUILD_LOG, bytes,
                                          log + start, NULL) == CL_SUCCESS)
        return log;
    free(log);
    return NULL;
}

/* The error of a failed build, with the first one of the compiler's; the detail has all of them. */
static enum healcl_status build_error(struct healcl_device *device,
                                      const struct device_program *program, cl_program id,
                                      const char *options, cl_int code, struct healcl_error *error)
{
    char head[LAUNCH_OPTIONS_SIZE + 280];
    if (!error)
        return HEALCL_DEVICE;
    snprintf(head, sizeof head, "built with %s\n", options);
    char *log = build_log(device, id, head);
    const char *at = log ? strstr(log + strlen(head), "error") : NULL;
    while (at && at[-1] != '\n') /* the head ends with one */
        at--;
    (void)ERROR(error, HEALCL_DEVICE, "program '%s' does not build on %s: %s%s%.*s", program->name,
                device->info.name, opencl_error_name(code), at ? ": " : "",
                at ? (int)strcspn(at, "\n") : 0, at ? at : "");
    error->opencl_code = code;
    error->detail = log;
    return HEALCL_DEVICE;
}

/* Keeps what the compiler says of a vendor's source, once. Drivers say other things too. */
static void keep_warnings(struct healcl_device *device, const struct device_program *program,
                          cl_program id)
{
    struct device_programs *programs = device->programs;
    const size_t used = programs->warnings ? strlen(programs->warnings) : 0;
    char *log = build_log(device, id, ""), file[PROGRAM_LINE_SIZE];
    snprintf(file, sizeof file, "%.*s", (int)strcspn(program->name, "@"), program->name);
    if (log && strstr(log, file) && strstr(log, "warning") &&
        !(used > 0 && strstr(programs->warnings, log))) {
        char *more = realloc(programs->warnings, used + strlen(log) + 1);
        if (more) {
            strcpy(more + used, log);
            programs->warnings = more;
        }
    }
    free(log);
}

static enum healcl_status build_source(struct healcl_device *device, struct device_program *program,
                                       const char *options, struct healcl_error *error)
{
    const struct opencl *cl = device->cl;
    struct program_texts found;
    cl_int code = CL_SUCCESS;
    TRY(program_texts_find(device, program, &found, error));
    cl_program id =
        cl->clCreateProgramWithSource(device->context, PROGRAM_TEXTS, found.texts, NULL, &code);
    TRY_CL(error, "clCreateProgramWithSource", code);
    code = WAIT_CL(cl, clBuildProgram, id, 1, &device->info.device_id, options, NULL, NULL);
    if (code != CL_SUCCESS) {
        (void)build_error(device, program, id, options, code, error);
        (void)cl->clReleaseProgram(id);
        if (!is_out_of_memory(code))
            error_because(error, HEALCL_CAUSE_UNSUPPORTED);
        return HEALCL_DEVICE;
    }
    if (program->text)
        keep_warnings(device, program, id);
    program->id = id;
    return HEALCL_OK;
}

/* Builds a program, or loads it from the package or the cache. The context must be locked: other
 * handles use the program then. */
static enum healcl_status build(struct healcl_device *device, struct device_program *program,
                                struct healcl_error *error)
{
    enum healcl_status status = HEALCL_OK;
    struct device_programs *programs = device->programs;
    const uint64_t start = monotonic_nanoseconds();
    char options[LAUNCH_OPTIONS_SIZE + 256];
    /* A compiler of an older version may not know that of 1.2, and yet compile all of it. */
    const bool names_version = strncmp(device->info.c_version, "OpenCL C 1.2", 12) >= 0;
    snprintf(options, sizeof options, "%s%s%s", names_version ? "-cl-std=CL1.2 " : "",
             program->all_options, program->text ? " -cl-kernel-arg-info" : ""); /* launch.c */
    if (programs->package)
        status = binary_load_packaged(device, program, error);
    else if (!*program->binary_name || !binary_load(device, program, options))
        status = build_source(device, program, options, error);
    if (status == HEALCL_OK || !programs->package)
        ++*(program->loaded ? &programs->loaded : &programs->built);
    program->may_be_cached = !program->loaded;
    if (status == HEALCL_OK)
        device_log(device, "program %s: %s in %.1f ms, with %s", program->name,
                   program->loaded ? "its binary loaded" : "built",
                   (double)(monotonic_nanoseconds() - start) / 1e6, program->all_options);
    return status;
}

/* Notes that this process compiles a kernel or a program. If another process is compiling the same
 * for it, waits: what that leaves in the driver's cache comes sooner than a second compilation
 * would end. If both begin at once, both compile it. */
static void begin_compiling(struct healcl_device *device, uint64_t hash)
{
    enum { AWAITED_MS = 5000 }; /* the other process may have crashed */
    struct compile_board *board = device->programs->ahead.board;
    if (!board)
        return;
    const bool is_ahead = device->programs->ahead.is_on;
    const _Atomic uint64_t *other = is_ahead ? &board->run : &board->ahead;
    if (*other == hash) {
        size_t span = trace_begin(device->trace, "wait", "wait for the other process");
        for (int ms = 0; ms < AWAITED_MS && *other == hash; ms++)
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        trace_end(device->trace, span);
    }
    *(is_ahead ? &board->ahead : &board->run) = hash;
}

/* ---------------------------------------------------------------- side by side */

void device_list_program(struct healcl_device *device, const struct launch *launch)
{
    if (!launch->source)
        (void)!kernel_find(device, launch, NULL);
}

/* Programs of a plan that are not cached. Child processes build most of them, and leave the
 * binaries in the cache. Each process, and this one, repeatedly takes a program that no other one
 * has taken. */
struct builds {
    struct healcl_device *device; /* the handle that has listed them */
    size_t process_count;
    int processes[BUILDS_AT_ONCE_MAX];
    _Atomic uint32_t *states; /* of the programs, in memory shared by all processes */
    uint64_t deadline;        /* when this process stops waiting: monotonic_nanoseconds */
    size_t count;
    struct device_program *items[];
};

enum { FREE, TAKEN, BUILT }; /* states of a program */

static bool take_program(_Atomic uint32_t *states, size_t program)
{
    uint32_t state = FREE;
    return atomic_compare_exchange_strong(&states[program], &state, TAKEN);
}

/* Returns how many processes build `programs` programs; this one counts. */
static size_t worker_count(const struct healcl_device *device, size_t programs)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t most = device->tuning.builds_at_once;
    most = cores > 0 && (size_t)cores < most ? (size_t)cores : most;
    return programs < most ? programs : most;
}

static void start_processes(struct builds *builds)
{
    enum { AWAITED_SECONDS = 60, SIZE_TEXT = 24 }; /* a driver may hang there */
    const struct healcl_device *device = builds->device;
    const size_t workers = worker_count(device, builds->count);
    char selector[24], (*sizes)[SIZE_TEXT] = calloc(builds->count + 1, sizeof *sizes);
    const char **arguments = calloc(4 + 3 * builds->count, sizeof *arguments), **next = arguments;
    void *states = NULL;
    builds->deadline = monotonic_nanoseconds() + UINT64_C(1000000000) * AWAITED_SECONDS;
    snprintf(selector, sizeof selector, "%u:%u", device->info.platform_index,
             device->info.device_index);
    if (sizes && arguments && workers > 1) {
        const size_t span =
            trace_begin(device->programs->opening_trace, "build", "start processes");
        *next++ = "healcl";
        *next++ = device->programs->builder;
        *next++ = selector;
        for (size_t i = 0; i < builds->count; i++) {
            snprintf(sizes[i], SIZE_TEXT, "%zu", builds->items[i]->local_size);
            *next++ = builds->items[i]->name;
            *next++ = builds->items[i]->options;
            *next++ = sizes[i];
        }
        builds->process_count =
            process_start_beside(arguments, workers - 1, builds->count * sizeof *builds->states,
                                 &states, builds->processes);
        builds->states = states;
        trace_end(device->programs->opening_trace, span);
    }
    free(arguments);
    free(sizes);
}

static bool any_builder_runs(const struct builds *builds)
{
    for (size_t i = 0; i < builds->process_count; i++)
        if (!process_has_ended(builds->processes[i]))
            return true;
    return false;
}

/* Whether a program is neither built nor cached nor among the builds. */
static bool is_missing(const struct builds *builds, const struct device_program *program)
{
    for (size_t i = 0; i < builds->count; i++)
        if (builds->items[i] == program)
            return false;
    return !program->id && *program->binary_name &&
           !cache_has(builds->device->programs->cache_directory, program->binary_name);
}

/* The largest first: names of transforms and sums, in reverse, come before core's. */
static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct device_program *const *)b)->name,
                  (*(struct device_program *const *)a)->name);
}

/* Finds what is missing of a handle's listed programs. Returns NULL if memory runs out. */
static struct builds *find_missing(struct healcl_device *device)
{
    size_t most = 0;
    for (struct kernel *kernel = device->programs->kernels; kernel; kernel = kernel->next)
        most++;
    struct builds *builds = calloc(1, sizeof *builds + most * sizeof *builds->items);
    if (!builds)
        return NULL;
    builds->device = device;
    (void)pthread_mutex_lock(&device->shared->lock);
    for (struct kernel *kernel = device->programs->kernels; kernel; kernel = kernel->next)
        if (is_missing(builds, kernel->program))
            builds->items[builds->count++] = kernel->program;
    (void)pthread_mutex_unlock(&device->shared->lock);
    qsort(builds->items, builds->count, sizeof *builds->items, by_name);
    return builds;
}

/* Builds what no child process has taken, and waits for the others. */
static void end_builds(struct builds *builds, struct trace *trace)
{
    struct healcl_device *device = builds->device;
    /* Others who want the same programs wait. */
    (void)pthread_mutex_lock(&device->shared->lock);
    for (size_t i = 0; i < builds->count; i++) {
        struct device_program *program = builds->items[i];
        if (!take_program(builds->states, i))
            continue;
        const size_t span = trace_begin(trace, "build", trace_keep(trace, program->name));
        if (!program->id)
            (void)!build(device, program, NULL);
        builds->states[i] = BUILT;
        trace_end(trace, span);
    }
    const size_t span = trace_begin(trace, "build", "wait for processes");
    for (size_t i = 0; i < builds->count; i++)
        while (builds->states[i] != BUILT && monotonic_nanoseconds() < builds->deadline &&
               any_builder_runs(builds))
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    trace_end(trace, span);
    (void)pthread_mutex_unlock(&device->shared->lock);
}

void device_build_beside(struct healcl_device *device, char *const *arguments, size_t count)
{
    _Atomic uint32_t *states = process_shared(count / 3 * sizeof *states);
    for (size_t i = 0; states && i < count / 3; i++) {
        char *const *about = arguments + 3 * i;
        const struct launch launch = {.program = about[0],
                                      .kernel = "",
                                      .options = about[1],
                                      .local_size = strtoul(about[2], NULL, 10)};
        if (!take_program(states, i))
            continue;
        if (kernel_find(device, &launch, NULL) == HEALCL_OK) {
            struct device_program *program = device->programs->kernels->program;
            (void)!build(device, program, NULL); /* this process has one thread */
            program_save(device, program);
        }
        states[i] = BUILT;
    }
}

void device_build_ahead(struct healcl_device *device, const struct program_lister *lister,
                        struct trace *trace)
{
    struct device_programs *programs = device->programs;
    struct healcl_device *beside;
    if (!lister->list || !programs->builder || device->tuning.builds_at_once == 1 ||
        programs->package || programs->added || !programs->keeps_binaries ||
        !programs->cache_directory || !cache_can_write(programs->cache_directory) ||
        device_open_beside(device, &beside, NULL) != HEALCL_OK)
        return;
    beside->programs->keeps_binaries = false; /* the device keeps them, once kernels have run */
    beside->programs->builder = programs->builder;
    beside->programs->opening_trace = trace;
    lister->list(lister->plan, beside);
    struct builds *builds = find_missing(beside);
    if (builds)
        start_processes(builds);
    if (builds && builds->process_count > 0) {
        programs->begun = builds;
        return;
    }
    free(builds);
    device_close(beside);
}

void device_build_abandon(struct healcl_device *device)
{
    struct builds *builds = device->programs->begun;
    device->programs->begun = NULL;
    if (!builds)
        return;
    for (size_t i = 0; i < builds->process_count; i++)
        process_stop(builds->processes[i]);
    device_close(builds->device);
    free(builds);
}

/* Before the first program of a plan is built that is neither shared nor cached: has all of them
 * built, side by side. */
static void build_plan(struct healcl_device *device, const struct device_program *first)
{
    struct device_programs *programs = device->programs;
    const struct program_lister lister = programs->lister;
    if (!lister.list || first->text || programs->package ||
        (!programs->begun && *first->binary_name &&
         cache_has(programs->cache_directory, first->binary_name)))
        return;
    programs->lister.list = NULL;
    if (!programs->begun)
        device_build_ahead(device, &lister, device->trace);
    if (!programs->begun)
        return;
    end_builds(programs->begun, device->trace);
    programs->built += programs->begun->device->programs->built;
    device_build_abandon(device);
}

/* Another handle may build the same program now: this one waits for it. */
static enum healcl_status build_or_share(struct healcl_device *device,
                                         struct device_program *program, struct healcl_error *error)
{
    struct device_programs *programs = device->programs;
    (void)pthread_mutex_lock(&device->shared->lock);
    const bool is_known = program->id || program->failure;
    (void)pthread_mutex_unlock(&device->shared->lock);
    if (!is_known)
        build_plan(device, program);
    (void)pthread_mutex_lock(&device->shared->lock);
    enum healcl_status status = HEALCL_OK;
    if (program->failure) {
        status = ERROR(error, HEALCL_DEVICE, "%s", program->failure);
        error_because(error, HEALCL_CAUSE_UNSUPPORTED);
    } else if (!program->id) {
        begin_compiling(device, program->hash);
        status = build(device, program, error);
        if (status != HEALCL_OK && error && error->cause == HEALCL_CAUSE_UNSUPPORTED &&
            (programs->keeps_failures || program->text))
            program->failure = strdup(error->message);
    }
    (void)pthread_mutex_unlock(&device->shared->lock);
    return status;
}

/* ---------------------------------------------------------------- kernels */

static enum healcl_status create_kernel(struct healcl_device *device, struct kernel *kernel,
                                        struct healcl_error *error)
{
    cl_int code = CL_SUCCESS;
    cl_kernel id = kernel_create(device, kernel, &code);
    if (code == CL_SUCCESS) {
        kernel->id = id;
        return HEALCL_OK;
    }
    (void)opencl_error(error, code, "clCreateKernel", __FILE__, __LINE__);
    error_prefix(error, "kernel '%s' of program '%s': ", kernel->shared->name,
                 kernel->program->name);
    if (!is_out_of_memory(code))
        error_because(error, HEALCL_CAUSE_UNSUPPORTED);
    return HEALCL_DEVICE;
}

static enum healcl_status build_kernel(struct healcl_device *device, const struct launch *launch,
                                       struct kernel *kernel, struct healcl_error *error)
{
    const uint64_t start = monotonic_nanoseconds();
    struct trace *trace = device->trace ? device->trace : device->programs->opening_trace;
    const size_t span = trace_begin(trace, "build", launch->kernel);
    enum healcl_status status = build_or_share(device, kernel->program, error);
    const bool is_built = status == HEALCL_OK;
    if (is_built) {
        begin_compiling(device, launch_kernel_hash(launch));
        status = create_kernel(device, kernel, error);
    }
    trace_end(trace, span);
    device->programs->compile_nanoseconds += monotonic_nanoseconds() - start;
    if (!is_built && !kernel->program->failure)
        kernel_drop(device); /* a program of that name may be added */
    return status;
}

enum healcl_status device_kernel(struct healcl_device *device, const struct launch *launch,
                                 struct kernel **kernel, struct healcl_error *error)
{
    *kernel = NULL;
    TRY(kernel_find(device, launch, error));
    struct kernel *found = device->programs->kernels;
    if (!found->id)
        TRY(build_kernel(device, launch, found, error));
    *kernel = found;
    return HEALCL_OK;
}
