/* Devices: opened, shared by handles, and closed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "opencl/internal.h"

/* ---------------------------------------------------------------- handles on a context */

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
    programs_trim(device->cl, shared, 0);
    package_free(device->programs->package);
    pthread_mutex_destroy(&shared->turn);
    pthread_mutex_destroy(&shared->lock);
    free(shared);
}

/* ---------------------------------------------------------------- create and release */

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

/* Errors are ignored from here on: everything is released in any case. */
static void commands_clear(struct healcl_device *device)
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

void device_close(struct healcl_device *device)
{
    device_turn_begin(device);
    commands_clear(device);
    device_programs_release(device);
    if (device->transfer)
        (void)device->cl->clReleaseCommandQueue(device->transfer);
    if (device->compute)
        (void)device->cl->clReleaseCommandQueue(device->compute);
    context_leave(device); /* and the turn ends */
    if (device->context)
        (void)device->cl->clReleaseContext(device->context);
    free(device->programs);
    free(device);
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

static enum healcl_status device_choose(const struct opencl *cl,
                                        const struct healcl_device_options *options,
                                        struct device_info *info, struct healcl_error *error)
{
    struct device_info *list = NULL;
    size_t count = 0, index = 0;
    TRY(device_list(cl, options->package, &list, &count, error));
    enum healcl_status status = options->device
                                    ? find_device(list, count, options->device, &index, error)
                                    : device_select(list, count, options->selector, &index, error);
    if (status == HEALCL_OK)
        *info = list[index];
    free(list);
    return status;
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
    TRY(device_create_queues(device, error));
    programs->cache_directory = cache_directory();
    programs->forced_unsupported = getenv("HEALCL_LACKS");
    binaries_decide(device);
    return HEALCL_OK;
}

/* shared: the context of other handles, or NULL for one of its own. */
static enum healcl_status new_device(struct device_context *shared, struct healcl_device **device,
                                     struct healcl_error *error)
{
    struct healcl_device *made = calloc(1, sizeof *made);
    struct device_programs *programs = calloc(1, sizeof *programs);
    struct device_context *entered = shared ? shared : calloc(1, sizeof *entered);
    if (!made || !programs || !entered) {
        free(made);
        free(programs);
        if (!shared)
            free(entered);
        NO_MEMORY(error);
    }
    if (!shared) {
        recursive_mutex_init(&entered->turn);
        pthread_mutex_init(&entered->lock, NULL);
    }
    pthread_mutex_lock(&entered->lock);
    entered->handles++;
    pthread_mutex_unlock(&entered->lock);
    made->shared = entered;
    made->programs = programs;
    *device = made;
    return HEALCL_OK;
}

enum healcl_status device_open_with(const struct opencl *cl,
                                    const struct healcl_device_options *options,
                                    struct healcl_device **device, struct healcl_error *error)
{
    *device = NULL;
    struct device_info info;
    TRY(device_choose(cl, options, &info, error));
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
        device_close(opened);
        return status;
    }
    *device = opened;
    return HEALCL_OK;
}

enum healcl_status device_open(const struct opencl *cl, const char *selector,
                               struct healcl_device **device, struct healcl_error *error)
{
    const struct healcl_device_options options = {.selector = selector};
    opening_begin();
    enum healcl_status status = device_open_with(cl, &options, device, error);
    opening_end();
    return status;
}

/* ---------------------------------------------------------------- another handle */

static enum healcl_status create_beside(struct healcl_device *device, struct healcl_device *first,
                                        struct healcl_error *error)
{
    TRY_CALL(error, first->cl, clRetainContext, first->context);
    device->context = first->context;
    device_turn_begin(device);
    enum healcl_status status = device_create_queues(device, error);
    if (status == HEALCL_OK && first->callers.queue)
        status = device_take_queue(device, first->callers.queue, error);
    device_turn_end(device);
    return status;
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
    programs->added = others->added;
    programs->choices = others->choices;
    programs->keeps_binaries = others->keeps_binaries;
    programs->distrusted = others->distrusted;
    programs->forced_unsupported = others->forced_unsupported;
    programs->cache_directory = others->cache_directory ? strdup(others->cache_directory) : NULL;
    NEED_MEMORY(programs->cache_directory || !others->cache_directory, error);
    return HEALCL_OK;
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
        device_close(opened);
    return status;
}
