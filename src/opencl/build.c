/* Builds programs, alone or side by side, and creates their kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/process.h"
#include "opencl/internal.h"

/* ---------------------------------------------------------------- building */

/* The compiler's messages about a program, behind a first line of ours. Freed with free(). NULL if
 * the driver does not return them, or memory runs out. */
static char *build_log(struct healcl_device *device, cl_program id, const char *first_line)
{
    size_t bytes = 0, offset = strlen(first_line);
    if (device->cl->clGetProgramBuildInfo(id, device->info.device_id, CL_PROGRAM_BUILD_LOG, 0, NULL,
                                          &bytes) != CL_SUCCESS)
        return NULL;
    char *log = calloc(1, offset + bytes + 1);
    if (!log)
        return NULL;
    memcpy(log, first_line, offset);
    if (device->cl->clGetProgramBuildInfo(id, device->info.device_id, CL_PROGRAM_BUILD_LOG, bytes,
                                          log + offset, NULL) == CL_SUCCESS)
        return log;
    free(log);
    return NULL;
}

/* Finds the first line of a compiler's messages that contains the word "error". Returns its start,
 * or "". *length: its length without the newline. */
static const char *find_error_line(const char *messages, int *length)
{
    const char *start = strstr(messages, "error");
    *length = 0;
    if (!start)
        return "";
    while (start > messages && start[-1] != '\n')
        start--;
    *length = (int)strcspn(start, "\n");
    return start;
}

/* Sets the error of a failed build. The message has the compiler's first line with "error",
 * error->detail all of its output behind the options. */
static enum healcl_status build_error(struct healcl_device *device,
                                      const struct device_program *program, cl_program id,
                                      const char *options, cl_int code, struct healcl_error *error)
{
    char head[LAUNCH_OPTIONS_SIZE + 280];
    int length;
    if (!error)
        return HEALCL_DEVICE;
    snprintf(head, sizeof head, "built with %s\n", options);
    char *log = build_log(device, id, head);
    const char *line = find_error_line(log ? log + strlen(head) : "", &length);
    (void)ERROR(error, HEALCL_DEVICE, "program '%s' does not build on %s: %s%s%.*s", program->name,
                device->info.name, opencl_error_name(code), length > 0 ? ": " : "", length, line);
    error->opencl_code = code;
    error->detail = log;
    return HEALCL_DEVICE;
}

/* Adds the compiler's warnings about a vendor's source to those that the command line prints at the
 * end. Messages that do not mention the source's file are the driver's own. Equal warnings are kept
 * once. */
static void keep_warnings(struct healcl_device *device, const struct device_program *program,
                          cl_program id)
{
    struct device_programs *programs = device->programs;
    const char *known = programs->warnings ? programs->warnings : "";
    const size_t known_length = strlen(known);
    char file[PROGRAM_LINE_SIZE];
    snprintf(file, sizeof file, "%.*s", (int)strcspn(program->name, "@"), program->name);
    char *log = build_log(device, id, "");
    const bool is_about_source = log && strstr(log, file) && strstr(log, "warning");
    if (is_about_source && !strstr(known, log)) {
        char *longer = realloc(programs->warnings, known_length + strlen(log) + 1);
        if (longer) {
            strcpy(longer + known_length, log);
            programs->warnings = longer;
        }
    }
    free(log);
}

/* Builds a program from source. If the compiler rejects it, the error's cause is UNSUPPORTED: other
 * kernels or the host can run its steps. Lack of memory is not such a reason. */
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
 * handles use the program when it is unlocked. */
static enum healcl_status build_or_load(struct healcl_device *device,
                                        struct device_program *program, struct healcl_error *error)
{
    enum healcl_status status = HEALCL_OK;
    struct device_programs *programs = device->programs;
    const uint64_t start = monotonic_nanoseconds();
    char options[LAUNCH_OPTIONS_SIZE + 256];
    /* A compiler of OpenCL C 1.0 or 1.1 may reject the option, but compile all that we use. */
    const bool names_version = strncmp(device->info.c_version, "OpenCL C 1.2", 12) >= 0;
    snprintf(options, sizeof options, "%s%s%s", names_version ? "-cl-std=CL1.2 " : "",
             /* a manifest may give its kernels wrong arguments: launch.c asks what they take */
             program->all_options, program->text ? " -cl-kernel-arg-info" : "");
    if (programs->package)
        status = binary_load_packaged(device, program, error);
    else if (!*program->binary_name || !binary_load(device, program, options))
        status = build_source(device, program, options, error);
    if (program->loaded)
        programs->loaded++;
    else if (!programs->package) /* a failed build counts too: it took time */
        programs->built++;
    program->may_be_cached = !program->loaded;
    if (status == HEALCL_OK)
        device_log(device, "program %s: %s in %.1f ms, with %s", program->name,
                   program->loaded ? "its binary loaded" : "built",
                   (double)(monotonic_nanoseconds() - start) / 1e6, program->all_options);
    return status;
}

static void sleep_a_millisecond(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Announces the hash of the kernel or program that this process compiles next. If the process that
 * compiles ahead, or the run that it helps, compiles the same one now, waits: its result comes from
 * the driver's cache sooner than a second compilation would end. If both begin at once, both
 * compile it. */
static void begin_compiling(struct healcl_device *device, uint64_t hash)
{
    enum { AWAITED_MS = 5000 }; /* the other process may have crashed */
    struct compile_board *board = device->programs->ahead.board;
    if (!board)
        return;
    const bool is_ahead = device->programs->ahead.is_on;
    _Atomic uint64_t *own_hash = is_ahead ? &board->ahead_hash : &board->run_hash;
    const _Atomic uint64_t *other_hash = is_ahead ? &board->run_hash : &board->ahead_hash;
    if (*other_hash == hash) {
        size_t span = trace_begin(device->trace, "wait", "wait for the other process");
        for (int ms = 0; ms < AWAITED_MS && *other_hash == hash; ms++)
            sleep_a_millisecond();
        trace_end(device->trace, span);
    }
    *own_hash = hash;
}

/* ---------------------------------------------------------------- side by side */

/* Programs of a plan that are not cached. Child processes build most of them, and leave the
 * binaries in the cache. Each process, and this one, repeatedly takes a program that no other one
 * has taken. */
struct builds {
    size_t process_count;
    int processes[BUILDS_AT_ONCE_MAX];
    _Atomic uint32_t *states; /* of the programs, in memory shared by all processes */
    uint64_t deadline;        /* when this process stops waiting: monotonic_nanoseconds */
    size_t count, capacity;
    struct device_program **items;
};

/* Adds the program of a launch to those that child processes build. Sources of vendors are not
 * listed: a child process gets only names of programs. An error is ignored: the program is then
 * built when it is first launched. Returns NULL: this process has not built the kernel. */
struct kernel *device_list_program(void *context, const struct launch *launch)
{
    struct healcl_device *device = context;
    struct builds *builds = device->programs->child_builds;
    const uint64_t hash = launch_program_hash(launch);
    for (size_t i = 0; i < builds->count; i++)
        if (program_is_of(builds->items[i], launch, hash))
            return NULL;
    if (!launch->source && ARRAY_GROW(builds->items, builds->count, &builds->capacity) &&
        program_find(device, launch, &builds->items[builds->count], NULL) == HEALCL_OK)
        builds->count++;
    return NULL;
}

enum { FREE, TAKEN, BUILT }; /* states of a program */
enum { PROGRAM_WORDS = 3 };  /* for a child process: its name, options, work-group size */

/* Claims a program for this process. Returns false if another process has claimed or built it.
 * Atomic, since the states lie in memory shared by the processes. */
static bool take_program(_Atomic uint32_t *states, size_t program)
{
    uint32_t expected = FREE;
    return atomic_compare_exchange_strong(&states[program], &expected, TAKEN);
}

/* How many processes build `programs` programs, this one included: at most the tunable, the host's
 * cores, and one for each program. sysconf may fail: then the cores are unknown. */
static size_t worker_count(const struct healcl_device *device, size_t programs)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t workers = device->tuning.builds_at_once;
    workers = cores > 0 && (size_t)cores < workers ? (size_t)cores : workers;
    return programs < workers ? programs : workers;
}

/* Starts the child processes of a list of missing programs. Each gets the same command line:
 * "healcl BUILDER SELECTOR", then name, options and work-group size of each program. They share an
 * array of states by which they divide the work. process_count stays 0 if none can be started. */
static void start_processes(const struct healcl_device *device, struct trace *trace)
{
    enum { AWAITED_SECONDS = 60, SIZE_TEXT = 24 }; /* a driver may hang in a process */
    struct builds *builds = device->programs->child_builds;
    const size_t workers = worker_count(device, builds->count);
    char selector[24], (*sizes)[SIZE_TEXT] = calloc(builds->count + 1, sizeof *sizes); /* texts */
    /* Three words before the programs, and a final NULL. */
    const char **arguments = calloc(3 + PROGRAM_WORDS * builds->count + 1, sizeof *arguments);
    const char **next = arguments;
    void *states = NULL;
    builds->deadline = monotonic_nanoseconds() + UINT64_C(1000000000) * AWAITED_SECONDS;
    snprintf(selector, sizeof selector, "%u:%u", device->info.platform_index,
             device->info.device_index);
    if (sizes && arguments && workers > 1) {
        const size_t span = trace_begin(trace, "build", "start processes");
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
        trace_end(trace, span);
    }
    free(arguments);
    free(sizes);
}

/* Whether a child process is still alive. All may have crashed: then nobody builds what they had
 * taken. */
static bool any_builder_runs(const struct builds *builds)
{
    for (size_t i = 0; i < builds->process_count; i++)
        if (!process_has_ended(builds->processes[i]))
            return true;
    return false;
}

/* For qsort: sorts by name, backwards (b before a). Transforms and sums, which take the compiler
 * longest, then come before the programs of core. Processes that start with the longest work end at
 * about the same time. */
static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct device_program *const *)b)->name,
                  (*(struct device_program *const *)a)->name);
}

/* Leaves those of the listed programs that are neither built nor cached, the largest first. The
 * others lose the user that program_find has counted for the list. */
static void keep_missing(struct healcl_device *device, struct builds *builds)
{
    size_t missing_count = 0;
    for (size_t i = 0; i < builds->count; i++) {
        struct device_program *program = builds->items[i];
        (void)pthread_mutex_lock(&device->shared->lock);
        const bool is_built = program->id != NULL;
        (void)pthread_mutex_unlock(&device->shared->lock);
        const bool can_be_cached = *program->binary_name != 0;
        if (!is_built && can_be_cached && !cache_has(program->binary_name))
            builds->items[missing_count++] = program;
        else
            program_leave(device, program);
    }
    builds->count = missing_count;
    qsort(builds->items, builds->count, sizeof *builds->items, by_name);
}

/* Builds what no child process has taken, and waits until the others are done, have died, or the
 * deadline has passed. What is then still missing is built at its first launch. The context stays
 * locked meanwhile, so that other handles do not build the same programs. */
static void end_builds(struct healcl_device *device)
{
    struct builds *builds = device->programs->child_builds;
    struct trace *trace = device->trace;
    (void)pthread_mutex_lock(&device->shared->lock);
    for (size_t i = 0; i < builds->count; i++) {
        struct device_program *program = builds->items[i];
        if (!take_program(builds->states, i))
            continue;
        const size_t span = trace_begin(trace, "build", trace_keep(trace, program->name));
        if (!program->id)
            (void)!build_or_load(device, program, NULL);
        builds->states[i] = BUILT;
        trace_end(trace, span);
    }
    const size_t span = trace_begin(trace, "build", "wait for processes");
    for (size_t i = 0; i < builds->count; i++)
        while (builds->states[i] != BUILT && monotonic_nanoseconds() < builds->deadline &&
               any_builder_runs(builds))
            sleep_a_millisecond();
    trace_end(trace, span);
    (void)pthread_mutex_unlock(&device->shared->lock);
}

/* The work of one child process: builds each program that no other process has taken, and caches
 * its binary. Three arguments describe a program: name, options, work-group size. */
void device_build_beside(struct healcl_device *device, char *const *arguments, size_t count)
{
    const size_t programs = count / PROGRAM_WORDS;
    _Atomic uint32_t *states = process_shared(programs * sizeof *states);
    for (size_t i = 0; states && i < programs; i++) {
        char *const *words = arguments + PROGRAM_WORDS * i;
        const struct launch launch = {
            .program = words[0], .options = words[1], .local_size = strtoul(words[2], NULL, 10)};
        if (!take_program(states, i))
            continue;
        struct device_program *program;
        if (program_find(device, &launch, &program, NULL) == HEALCL_OK) {
            (void)!build_or_load(device, program, NULL); /* one thread: no lock is needed */
            program_save(device, program);
            program_leave(device, program);
        }
        states[i] = BUILT;
    }
}

/* Whether child processes can build programs for this handle, and are worth it. They find programs
 * by name in cl/, so those of a package or of tests are not for them. They leave binaries in the
 * cache. */
static bool can_build_ahead(const struct healcl_device *device)
{
    const struct device_programs *programs = device->programs;
    if (!programs->builder || programs->package || programs->added)
        return false;
    return device->tuning.builds_at_once > 1 && programs->keeps_binaries && cache_can_write();
}

/* Starts child processes that build the plan's missing programs, if that is worth it and their
 * binaries can be cached. The list waits in child_builds until the run needs its first program. Any
 * failure only means that programs are built later, one by one. */
void device_build_ahead(struct healcl_device *device, const struct program_lister *lister,
                        struct trace *trace)
{
    struct device_programs *programs = device->programs;
    if (!lister->list || !can_build_ahead(device))
        return;
    programs->child_builds = calloc(1, sizeof *programs->child_builds);
    if (!programs->child_builds)
        return;
    lister->list(lister->plan, device);
    programs->manifest_is_wrong = false; /* listing may have set it: the run finds that itself */
    keep_missing(device, programs->child_builds);
    start_processes(device, trace);
    if (programs->child_builds->process_count == 0)
        device_build_abandon(device);
}

/* Stops the child processes, if any, and leaves their programs. */
void device_build_abandon(struct healcl_device *device)
{
    struct builds *builds = device->programs->child_builds;
    device->programs->child_builds = NULL;
    if (!builds)
        return;
    for (size_t i = 0; i < builds->process_count; i++)
        process_stop(builds->processes[i]);
    for (size_t i = 0; i < builds->count; i++)
        program_leave(device, builds->items[i]);
    free(builds->items);
    free(builds);
}

/* Called before `first`, a program of a plan, is built. Builds all missing programs of the plan
 * together with child processes, once. Does nothing if `first` is cached: then the others most
 * likely are, too. */
static void build_missing_of_plan(struct healcl_device *device, const struct device_program *first)
{
    struct device_programs *programs = device->programs;
    const struct program_lister lister = programs->lister;
    const bool has_begun = programs->child_builds != NULL;
    /* Sources of vendors (text) and packages are not built by child processes. */
    if (!lister.list || first->text || programs->package)
        return;
    if (!has_begun && *first->binary_name && cache_has(first->binary_name))
        return;
    programs->lister.list = NULL; /* only once */
    if (!has_begun)
        device_build_ahead(device, &lister, device->trace);
    if (programs->child_builds) {
        end_builds(device);
        device_build_abandon(device);
    }
}

/* Builds a program, unless another handle has built it, or has failed to: then its result is used.
 * The context must be locked. */
static enum healcl_status build_once(struct healcl_device *device, struct device_program *program,
                                     struct healcl_error *error)
{
    if (program->id)
        return HEALCL_OK;
    if (program->failure)
        FAIL_FOR(error, HEALCL_DEVICE, UNSUPPORTED, "%s", program->failure);
    begin_compiling(device, program->hash);
    enum healcl_status status = build_or_load(device, program, error);
    /* What the compiler has rejected once, it would reject again at each launch. */
    const bool keeps_failure = device->programs->keeps_failures || program->text;
    const bool is_rejected =
        status != HEALCL_OK && error && error->cause == HEALCL_CAUSE_UNSUPPORTED;
    if (is_rejected && keeps_failure)
        program->failure = strdup(error->message);
    return status;
}

/* Makes a program ready for use. If another handle is building it now, waits for the lock. The lock
 * is released while the plan's programs are built, because that takes it again. */
static enum healcl_status ensure_built(struct healcl_device *device, struct device_program *program,
                                       struct healcl_error *error)
{
    pthread_mutex_t *lock = &device->shared->lock;
    (void)pthread_mutex_lock(lock);
    const bool is_settled = program->id || program->failure;
    (void)pthread_mutex_unlock(lock);
    if (!is_settled)
        build_missing_of_plan(device, program);
    (void)pthread_mutex_lock(lock);
    enum healcl_status status = build_once(device, program, error);
    (void)pthread_mutex_unlock(lock);
    return status;
}

/* ---------------------------------------------------------------- kernels */

/* Creates the kernel object of a handle. If the program lacks the kernel, others can run its steps,
 * so that the cause is UNSUPPORTED. */
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

/* Builds the program of a kernel that was found by kernel_find, and creates its kernel object. Adds
 * the time to the statistics and the trace. */
static enum healcl_status build_kernel(struct healcl_device *device, const struct launch *launch,
                                       struct kernel *kernel, struct healcl_error *error)
{
    const uint64_t start = monotonic_nanoseconds();
    struct trace *trace = device->trace ? device->trace : device->programs->opening_trace;
    const size_t span = trace_begin(trace, "build", launch->kernel);
    enum healcl_status status = ensure_built(device, kernel->program, error);
    const bool is_built = status == HEALCL_OK;
    if (is_built) {
        begin_compiling(device, launch_kernel_hash(launch));
        status = create_kernel(device, kernel, error);
    }
    trace_end(trace, span);
    device->programs->compile_nanoseconds += monotonic_nanoseconds() - start;
    if (!is_built && !kernel->program->failure)
        kernel_drop(device); /* forgets it: a test may add a program of that name */
    return status;
}

/* The kernel of a launch, built if necessary. The device owns it. */
enum healcl_status device_kernel(struct healcl_device *device, const struct launch *launch,
                                 struct kernel **kernel, struct healcl_error *error)
{
    struct kernel *found;
    *kernel = NULL;
    TRY(kernel_find(device, launch, &found, error));
    if (!found->id)
        TRY(build_kernel(device, launch, found, error));
    *kernel = found;
    return HEALCL_OK;
}
