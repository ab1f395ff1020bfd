/* Devices that are opened, tested where they have not been, shared by handles, and closed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "opencl/internal.h"

/* ---------------------------------------------------------------- handles on a context, and their
 * turns */

static bool takes_turns(const struct healcl_device *device)
{
    return device && (device->callers.queue || !device->tuning.queues_overlap);
}

static struct device_context *context_make(void)
{
    struct device_context *shared = calloc(1, sizeof *shared);
    if (!shared)
        return NULL;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&shared->turn, &attributes);
    pthread_mutexattr_destroy(&attributes);
    pthread_mutex_init(&shared->lock, NULL);
    return shared;
}

static void context_enter(struct healcl_device *device, struct device_context *shared)
{
    pthread_mutex_lock(&shared->lock);
    shared->handles++;
    pthread_mutex_unlock(&shared->lock);
    device->shared = shared;
}

static void context_leave(struct healcl_device *device)
{
    struct device_context *shared = device->shared;
    if (shared->latest == device)
        shared->latest = NULL;
    device_turn_end(device);
    pthread_mutex_lock(&shared->lock);
    bool is_last = --shared->handles == 0;
    pthread_mutex_unlock(&shared->lock);
    if (!is_last)
        return;
    shared_programs_free(device->cl, shared);
    package_free(device->programs->package);
    pthread_mutex_destroy(&shared->turn);
    pthread_mutex_destroy(&shared->lock);
    free(shared);
}

void device_turn_begin(struct healcl_device *device)
{
    if (!takes_turns(device))
        return;
    struct device_context *shared = device->shared;
    pthread_mutex_lock(&shared->turn);
    struct healcl_device *latest = shared->latest;
    /* Errors of these commands belong to their own handle, which meets them again. */
    if (latest && latest != device) {
        (void)WAIT_CL(latest->cl, clFinish, latest->transfer);
        (void)WAIT_CL(latest->cl, clFinish, latest->compute);
    }
    shared->latest = device;
}

void device_turn_end(struct healcl_device *device)
{
    if (takes_turns(device))
        pthread_mutex_unlock(&device->shared->turn);
}

/* ---------------------------------------------------------------- create and release */

/* Creates a queue with those of the properties that the device supports. */
static enum healcl_status create_queue(struct healcl_device *device,
                                       cl_command_queue_properties properties,
                                       cl_command_queue *queue, struct healcl_error *error)
{
    cl_int code = CL_SUCCESS;
    *queue = device->cl->clCreateCommandQueue(device->context, device->info.device_id,
                                              properties & device->info.queue_properties, &code);
    if (code != CL_SUCCESS)
        *queue = NULL;
    TRY_CL(error, "clCreateCommandQueue", code);
    return HEALCL_OK;
}

/* Launches that are timed do not overlap. */
static cl_command_queue_properties compute_properties(const struct healcl_device *device,
                                                      bool profiling)
{
    if (profiling)
        return CL_QUEUE_PROFILING_ENABLE;
    return device->tuning.launches_at_once > 1 && device->info.out_of_order
               ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE
               : 0;
}

static enum healcl_status create_context(struct healcl_device *device, struct healcl_error *error)
{
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)device->info.platform_id, 0};
    cl_int code = CL_SUCCESS;
    waiting_driver(device->info.platform);
    if (device->callers.context) {
        TRY_CALL(error, device->cl, clRetainContext, device->callers.context);
        device->context = device->callers.context;
        return HEALCL_OK;
    }
    waiting_begin("clCreateContext");
    device->context =
        device->cl->clCreateContext(properties, 1, &device->info.device_id, NULL, NULL, &code);
    if (waiting_end(code) != CL_SUCCESS)
        device->context = NULL;
    TRY_CL(error, "clCreateContext", code);
    return HEALCL_OK;
}

static enum healcl_status create_queues(struct healcl_device *device, struct healcl_error *error)
{
    cl_command_queue_properties computing = compute_properties(device, false);
    TRY(create_queue(device, computing, &device->compute, error));
    device->overlaps = computing & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    TRY(create_queue(device, 0, &device->transfer, error));
    return overlap_init(device, error);
}

/* Errors are ignored from here on: everything is released in any case. */
static void clear(struct healcl_device *device)
{
    const struct opencl *cl = device->cl;
    if (device->compute)
        (void)WAIT_CL(cl, clFinish, device->compute);
    if (device->transfer)
        (void)WAIT_CL(cl, clFinish, device->transfer);
    command_log_clear(device, &device->launches);
    command_log_clear(device, &device->transfers);
    free(device->launches.commands);
    free(device->transfers.commands);
    if (device->upload)
        (void)cl->clReleaseEvent(device->upload);
    if (device->marker)
        (void)cl->clReleaseEvent(device->marker);
    staging_release(device);
    device_pool_empty(device);
    free(device->pool);
    overlap_forget(device);
    free(device->recent);
}

static void release(struct healcl_device *device)
{
    const struct opencl *cl = device->cl;
    if (device->transfer)
        (void)cl->clReleaseCommandQueue(device->transfer);
    if (device->compute)
        (void)cl->clReleaseCommandQueue(device->compute);
    context_leave(device);
    if (device->context)
        (void)cl->clReleaseContext(device->context);
}

/* ---------------------------------------------------------------- queues */

void device_note_idle(struct healcl_device *device)
{
    overlap_forget(device);
    device->epoch++;
    device->unflushed = 0;
}

cl_int device_finish_compute(struct healcl_device *device)
{
    cl_int code = WAIT_CL(device->cl, clFinish, device->compute);
    overlap_forget(device);
    if (code == CL_SUCCESS)
        device_note_idle(device);
    return code;
}

enum healcl_status device_finish(struct healcl_device *device, struct healcl_error *error)
{
    TRY_CALL(error, device->cl, clFinish, device->transfer);
    TRY_CL(error, "clFinish", device_finish_compute(device));
    return HEALCL_OK;
}

enum healcl_status device_renew_queue(struct healcl_device *device, cl_command_queue *queue,
                                      cl_command_queue_properties properties,
                                      struct healcl_error *error)
{
    cl_command_queue renewed = NULL;
    TRY(create_queue(device, properties, &renewed, error));
    (void)device->cl->clReleaseCommandQueue(*queue);
    *queue = renewed;
    return HEALCL_OK;
}

static enum healcl_status renew_compute(struct healcl_device *device, bool profiling,
                                        struct healcl_error *error)
{
    if (device->callers.queue) /* a caller's queue is not replaced */
        return device_finish(device, error);
    cl_command_queue_properties properties = compute_properties(device, profiling);
    device_turn_begin(device); /* during the turn no other thread uses the queue */
    enum healcl_status status = device_finish(device, error);
    if (status == HEALCL_OK)
        status = device_renew_queue(device, &device->compute, properties, error);
    if (status == HEALCL_OK)
        device->overlaps = properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    device_turn_end(device);
    return status;
}

enum healcl_status device_set_tuning(struct healcl_device *device,
                                     const struct device_tuning *tuning, struct healcl_error *error)
{
    device->tuning = *tuning;
    device->record_epoch++;
    bool overlaps = compute_properties(device, false) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    return device->profiling || device->overlaps == overlaps ? HEALCL_OK
                                                             : renew_compute(device, false, error);
}

enum healcl_status device_set_profiling(struct healcl_device *device, bool profiling,
                                        struct healcl_error *error)
{
    if (profiling == device->profiling)
        return HEALCL_OK;
    TRY(renew_compute(device, profiling, error));
    device->event_times = false;
    struct clock_pair ignored;
    if (profiling && !(device->callers.queue && !device->queue_takes_times))
        TRY(device_read_clocks(device, &ignored, &device->event_times, error));
    device->profiling = profiling;
    return HEALCL_OK;
}

enum healcl_status device_take_queue(struct healcl_device *device, cl_command_queue queue,
                                     struct healcl_error *error)
{
    cl_context context = NULL;
    cl_device_id id = NULL;
    cl_command_queue_properties properties = 0;
    const struct opencl *cl = device->cl;
    TRY_CALL(error, cl, clGetCommandQueueInfo, queue, CL_QUEUE_CONTEXT, sizeof context, &context,
             NULL);
    TRY_CALL(error, cl, clGetCommandQueueInfo, queue, CL_QUEUE_DEVICE, sizeof id, &id, NULL);
    TRY_CALL(error, cl, clGetCommandQueueInfo, queue, CL_QUEUE_PROPERTIES, sizeof properties,
             &properties, NULL);
    if (context != device->context || id != device->info.device_id)
        FAIL(error, HEALCL_USAGE, "the queue belongs to another %s",
             context != device->context ? "context" : "device");
    TRY(device_finish(device, error));
    TRY_CALL(error, cl, clRetainCommandQueue, queue);
    (void)cl->clReleaseCommandQueue(device->compute);
    device->compute = device->callers.queue = queue;
    device->queue_takes_times = properties & CL_QUEUE_PROFILING_ENABLE;
    device->overlaps = properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- polling */

static void set_marker(struct healcl_device *device)
{
    const struct opencl *cl = device->cl;
    if (device->marker)
        (void)cl->clReleaseEvent(device->marker);
    device->marker = NULL;
    if (device_await_uploads(device, NULL) != HEALCL_OK || !cl->clEnqueueMarkerWithWaitList ||
        cl->clEnqueueMarkerWithWaitList(device->compute, 0, NULL, &device->marker) != CL_SUCCESS)
        device->marker = NULL;
    (void)cl->clFlush(device->compute);
}

bool device_poll(struct healcl_device *device, bool is_new)
{
    struct device_context *shared = device->shared;
    const bool turns = takes_turns(device);
    if (turns && pthread_mutex_trylock(&shared->turn) != 0)
        return false;
    bool has_ended = turns && shared->latest != device; /* the latest handle has waited for it */
    if (!has_ended) {
        if (is_new || !device->marker)
            set_marker(device);
        cl_int state = CL_COMPLETE;
        has_ended = !device->marker ||
                    device->cl->clGetEventInfo(device->marker, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                               sizeof state, &state, NULL) != CL_SUCCESS ||
                    state <= CL_COMPLETE; /* an error code is negative */
    }
    if (turns)
        pthread_mutex_unlock(&shared->turn);
    return has_ended;
}

/* ---------------------------------------------------------------- another handle */

static enum healcl_status create_beside(struct healcl_device *device, struct healcl_device *first,
                                        struct healcl_error *error)
{
    TRY_CALL(error, first->cl, clRetainContext, first->context);
    device->context = first->context;
    device_turn_begin(device);
    enum healcl_status status = create_queues(device, error);
    if (status == HEALCL_OK && first->callers.queue)
        status = device_take_queue(device, first->callers.queue, error);
    device_turn_end(device);
    return status;
}

/* ---------------------------------------------------------------- what there is */

enum healcl_status device_list(const struct opencl *cl, struct device_info **list, size_t *count,
                               struct healcl_error *error)
{
    struct device_listing listing;
    *list = NULL;
    *count = 0;
    enum healcl_status status = device_list_all(cl, &listing, error);
    if (status == HEALCL_OK)
        status = device_listing_check(&listing, error);
    if (status == HEALCL_OK) {
        *list = listing.devices;
        *count = listing.count;
        listing.devices = NULL; /* the caller's */
    }
    device_listing_release(&listing);
    return status;
}

/* ---------------------------------------------------------------- open and close */

/* With a package the tuning that it was made with: the same variants are picked then. */
static enum healcl_status tuning_of(struct healcl_device *device, struct device_tuning *tuning,
                                    struct healcl_error *error)
{
    const struct package *package = device->programs->package;
    char what[600];
    if (!package)
        return tuning_of_device(&device->info, tuning, error);
    snprintf(what, sizeof what, "the tuning of package " PATH_FORMAT, package->path);
    *tuning = tuning_default(&device->info);
    tuning->tuned_by = TUNED_BY_PACKAGE;
    if (tuning_parse(tuning, package_text(package, "tuning"), what, &device->info, error) ==
        HEALCL_OK)
        return HEALCL_OK;
    if (error)
        error->status = HEALCL_REFUSED;
    return HEALCL_REFUSED;
}

enum healcl_status device_note_findings(struct healcl_device *device, uint64_t loop_limit,
                                        bool launches_overlap, struct healcl_error *error)
{
    device->info.loop_limit = loop_limit;
    device->info.launches_overlap = launches_overlap;
    struct device_tuning tuning;
    TRY(tuning_of(device, &tuning, error));
    return device_set_tuning(device, &tuning, error);
}

/* The index of the device that the caller names by its id. */
static enum healcl_status find_device(const struct device_info *list, size_t count, cl_device_id id,
                                      size_t *index, struct healcl_error *error)
{
    for (*index = 0; *index < count; (*index)++)
        if (list[*index].device_id == id)
            return device_check_usable(&list[*index], error);
    FAIL(error, HEALCL_USAGE, "no platform lists the given device");
}

static enum healcl_status choose(const struct opencl *cl,
                                 const struct healcl_device_options *options,
                                 struct device_info *info, struct healcl_error *error)
{
    struct device_info *list = NULL;
    size_t count = 0, index = 0;
    TRY(device_list(cl, &list, &count, error));
    if (options->package)
        device_allow_packaged(list, count);
    enum healcl_status status = options->device
                                    ? find_device(list, count, options->device, &index, error)
                                    : device_select(list, count, options->selector, &index, error);
    if (status == HEALCL_OK)
        *info = list[index];
    free(list);
    return status;
}

static void decide_binaries(struct healcl_device *device)
{
    const char *keep = getenv("HEALCL_KEEP_BINARIES");
    device->programs->keeps_binaries =
        !device->programs->package && ((keep && *keep) || device->info.binaries_are_cheap ||
                                       !(device->info.type & CL_DEVICE_TYPE_CPU));
}

static enum healcl_status open_chosen(struct healcl_device *device, struct healcl_error *error)
{
    struct device_programs *programs = device->programs;
    const struct package *package = programs->package;
    if (package)
        TRY(package_check(package, &device->info, error));
    TRY(tuning_of(device, &device->tuning, error));
    if (!package)
        kernel_choices_read_cached(&programs->choices, &device->info);
    else if (!kernel_choices_parse(&programs->choices, package_text(package, "choices")))
        REFUSE(error, "the choices of package " PATH_FORMAT " cannot be understood", package->path);
    TRY(create_context(device, error));
    TRY(create_queues(device, error));
    programs->cache_directory = cache_directory();
    programs->forced_unsupported = getenv("HEALCL_LACKS");
    decide_binaries(device);
    return HEALCL_OK;
}

/* shared: the context of other handles, or NULL for one of its own. */
static enum healcl_status new_device(struct device_context *shared, struct healcl_device **device,
                                     struct healcl_error *error)
{
    struct healcl_device *made = calloc(1, sizeof *made);
    struct device_programs *programs = calloc(1, sizeof *programs);
    if (made && programs && !shared)
        shared = context_make();
    if (!made || !programs || !shared) {
        free(made);
        free(programs);
        NO_MEMORY(error);
    }
    made->programs = programs;
    context_enter(made, shared);
    *device = made;
    return HEALCL_OK;
}

static enum healcl_status choose_and_open(const struct opencl *cl,
                                          const struct healcl_device_options *options,
                                          struct healcl_device **device, struct healcl_error *error)
{
    *device = NULL;
    struct device_info info;
    TRY(choose(cl, options, &info, error));
    struct healcl_device *opened;
    TRY(new_device(NULL, &opened, error));
    opened->cl = cl;
    opened->info = info;
    opened->callers = *options;
    opened->callers.queue = NULL; /* until it is taken */
    opened->callers.package = NULL;
    enum healcl_status status =
        options->package ? package_read(options->package, &opened->programs->package, error)
                         : HEALCL_OK;
    if (status == HEALCL_OK) {
        status = open_chosen(opened, error);
        if (status != HEALCL_OK)
            error_prefix(error, "device %u:%u %s: ", info.platform_index, info.device_index,
                         info.name);
    }
    if (status != HEALCL_OK) {
        healcl_device_close(opened);
        return status;
    }
    *device = opened;
    return HEALCL_OK;
}

enum healcl_status device_open_with(const struct opencl *cl,
                                    const struct healcl_device_options *options,
                                    struct healcl_device **device, struct healcl_error *error)
{
    opening_begin();
    enum healcl_status status = choose_and_open(cl, options, device, error);
    opening_end();
    return status;
}

enum healcl_status device_open(const struct opencl *cl, const char *selector,
                               struct healcl_device **device, struct healcl_error *error)
{
    return device_open_with(cl, &(struct healcl_device_options){.selector = selector}, device,
                            error);
}

void healcl_device_close(struct healcl_device *device)
{
    if (!device)
        return;
    device_turn_begin(device);
    clear(device);
    device_programs_release(device);
    release(device); /* and the turn ends */
    free(device->programs);
    free(device);
}

/* ---------------------------------------------------------------- another handle */

static enum healcl_status add_sources(struct healcl_device *device,
                                      const struct program_source *source,
                                      struct healcl_error *error)
{
    if (!source)
        return HEALCL_OK;
    TRY(add_sources(device, source->next, error)); /* the last one that is added goes first */
    return device_add_program(device, source->name, source->text, error);
}

/* Copies what the handles on a context have alike, each its own. */
static enum healcl_status copy_settings(struct healcl_device *device,
                                        const struct healcl_device *first,
                                        struct healcl_error *error)
{
    struct device_programs *programs = device->programs;
    const struct device_programs *others = first->programs;
    device->cl = first->cl;
    device->info = first->info;
    device->tuning = first->tuning;
    device->callers = first->callers;
    device->callers.queue = NULL; /* until it is taken */
    programs->package = others->package;
    programs->choices = others->choices;
    programs->keeps_binaries = others->keeps_binaries;
    programs->distrusted = others->distrusted;
    programs->forced_unsupported = others->forced_unsupported;
    programs->cache_directory = others->cache_directory ? strdup(others->cache_directory) : NULL;
    NEED_MEMORY(programs->cache_directory || !others->cache_directory, error);
    return add_sources(device, others->added, error);
}

enum healcl_status device_open_beside(struct healcl_device *first, struct healcl_device **device,
                                      struct healcl_error *error)
{
    struct healcl_device *opened;
    TRY(new_device(first->shared, &opened, error));
    enum healcl_status status = copy_settings(opened, first, error);
    if (status == HEALCL_OK)
        status = create_beside(opened, first, error);
    if (status == HEALCL_OK)
        *device = opened;
    else
        healcl_device_close(opened);
    return status;
}

/* ---------------------------------------------------------------- tested */

static enum healcl_status open_and_test(const struct opencl *cl,
                                        const struct healcl_device_options *options,
                                        const struct device_opening *opening,
                                        struct healcl_device **device, struct healcl_error *error)
{
    static const struct device_opening nothing;
    char reason[SELF_TEST_REASON_SIZE];
    enum healcl_status status = HEALCL_OK;
    if (!opening)
        opening = &nothing;
    TRY(device_open_with(cl, options, device, error));
    (*device)->programs->ahead.board = opening->board;
    (*device)->programs->builder = opening->builder;
    /* A package's programs prove themselves each time: an image may be the whole device, as an
     * FPGA's is. */
    if ((*device)->programs->package ||
        self_test_read_cached(&(*device)->info, reason) != SELF_TEST_PASSED ||
        !self_test_covers(*device)) {
        device_log(*device, "%s is tested%s", (*device)->info.name,
                   (*device)->programs->package ? "" : ", as it has not been before");
        device_build_ahead(*device, &opening->lister, opening->trace);
        status = self_test_run_and_cache(*device, opening->trace, error);
        decide_binaries(*device);
        const struct device_info *found = &(*device)->info;
        if (found->failed_families || found->multiply_wrong || found->compiler_limit)
            device_build_abandon(*device); /* other kernels run */
    }
    if (status == HEALCL_OK && options->queue)
        status = device_take_queue(*device, options->queue, error);
    if (status != HEALCL_OK) {
        healcl_device_close(*device);
        *device = NULL;
        return status;
    }
    (*device)->programs->first_launches = 0; /* no run has launched anything yet */
    return HEALCL_OK;
}

/* Locked as a whole: threads that open a device which has not been tested yet test it once. */
enum healcl_status device_open_for_run(const struct opencl *cl,
                                       const struct healcl_device_options *options,
                                       const struct device_opening *opening,
                                       struct healcl_device **device, struct healcl_error *error)
{
    opening_begin();
    enum healcl_status status = open_and_test(cl, options, opening, device, error);
    opening_end();
    return status;
}

enum healcl_status device_open_tested(const struct opencl *cl, const char *selector,
                                      struct healcl_device **device, struct healcl_error *error)
{
    return device_open_for_run(cl, &(struct healcl_device_options){.selector = selector}, NULL,
                               device, error);
}

/* ---------------------------------------------------------------- for callers of the library */

enum healcl_status healcl_device_open_with(const struct healcl_device_options *options,
                                           struct healcl_device **device,
                                           struct healcl_error *error)
{
    static const struct healcl_device_options none;
    NEED(device, error);
    if (!options)
        options = &none;
    if (options->queue && !options->context)
        FAIL(error, HEALCL_USAGE, "a queue needs its context to be given, too");
    if (options->context && !options->device && !options->selector)
        FAIL(error, HEALCL_USAGE, "a context needs one of its devices to be given, too");
    if (!options->allocate != !options->release)
        FAIL(error, HEALCL_USAGE, "allocate and release must be given together");
    return device_open_for_run(&opencl_loader, options, NULL, device, error);
}

enum healcl_status healcl_device_open(const char *selector, struct healcl_device **device,
                                      struct healcl_error *error)
{
    NEED(device, error);
    return device_open_tested(&opencl_loader, selector, device, error);
}

static struct healcl_device_info public_info(const struct device_info *info)
{
    struct healcl_device_info public = {.compute_units = info->compute_units,
                                        .memory_bytes = info->global_memory_bytes,
                                        .shares_memory = info->unified_memory};
    const char *unusable = device_unusable(info);
    snprintf(public.selector, sizeof public.selector, "%u:%u", info->platform_index,
             info->device_index);
    memcpy(public.name, info->name, sizeof public.name);
    memcpy(public.vendor, info->vendor, sizeof public.vendor);
    memcpy(public.platform, info->platform, sizeof public.platform);
    memcpy(public.driver, info->driver, sizeof public.driver);
    memcpy(public.version, info->version, sizeof public.version);
    snprintf(public.unusable, sizeof public.unusable, "%s", unusable ? unusable : "");
    public.type = info->type & CL_DEVICE_TYPE_CPU           ? HEALCL_DEVICE_CPU
                  : info->type & CL_DEVICE_TYPE_GPU         ? HEALCL_DEVICE_GPU
                  : info->type & CL_DEVICE_TYPE_ACCELERATOR ? HEALCL_DEVICE_ACCELERATOR
                                                            : HEALCL_DEVICE_OTHER;
    return public;
}

enum healcl_status healcl_device_list(struct healcl_device_info **list, size_t *count,
                                      struct healcl_error *error)
{
    NEED(list, error);
    NEED(count, error);
    struct device_info *infos = NULL;
    TRY(device_list(&opencl_loader, &infos, count, error));
    *list = calloc(*count + 1, sizeof **list);
    for (size_t i = 0; *list && i < *count; i++)
        (*list)[i] = public_info(&infos[i]);
    free(infos);
    NEED_MEMORY(*list, error);
    return HEALCL_OK;
}

void healcl_device_list_free(struct healcl_device_info *list)
{
    free(list);
}

struct healcl_device_info healcl_device_describe(const struct healcl_device *device)
{
    return device ? public_info(&device->info) : (struct healcl_device_info){.selector = ""};
}
