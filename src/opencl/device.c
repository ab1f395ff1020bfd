/* Devices: opened, shared by handles, and closed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "opencl/internal.h"

/* ---------------------------------------------------------------- handles on a context */

/* Ends a handle's part in its context, and its turn. The last handle also frees what handles share:
 * programs, package, locks. */
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

/* Creates an OpenCL context for the device, or takes a reference to the one that the caller gave.
 * Drivers may hang or crash here, so the call is announced (waiting_driver). */
static enum healcl_status create_context(struct healcl_device *device, struct healcl_error *error)
{
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)device->info.platform_id, 0};
    cl_int code = CL_SUCCESS;
    waiting_driver(device->info.platform);
    if (device->options.context) {
        TRY_CALL(error, device->cl, clRetainContext, device->options.context);
        device->context = device->options.context;
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

/* Waits for the commands of a handle that is being closed, and frees what belongs to them: logs,
 * events, staging memory, pooled buffers. Errors are ignored: everything is released in any case.
 */
static void release_commands(struct healcl_device *device)
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
    if (device->last_upload)
        (void)cl->clReleaseEvent(device->last_upload);
    if (device->marker)
        (void)cl->clReleaseEvent(device->marker);
    staging_release(device);
    device_pool_empty(device);
    free(device->pool);
    overlap_forget(device);
    free(device->recent);
}

/* Closes a handle, also one that was opened only in part. Commands may use programs and buffers, so
 * they are released first. Queues end before the turn does: then no other handle's commands run
 * beside them. */
void device_close(struct healcl_device *device)
{
    device_turn_begin(device);
    release_commands(device);
    device_programs_release(device);
    if (device->transfer)
        (void)device->cl->clReleaseCommandQueue(device->transfer);
    if (device->compute)
        (void)device->cl->clReleaseCommandQueue(device->compute);
    context_leave(device); /* also ends the turn */
    if (device->context)
        (void)device->cl->clReleaseContext(device->context);
    free(device);
}

/* ---------------------------------------------------------------- open and close */

/* The tuning that a handle is opened with. With a package, it is the tuning that the package was
 * compiled with: other values would choose programs that it lacks. A tuning that cannot be
 * understood is then an error of the package, not of the user. */
static enum healcl_status tuning_of(struct healcl_device *device, struct device_tuning *tuning,
                                    struct healcl_error *error)
{
    const struct package *package = device->programs->package;
    char source[600];
    if (!package)
        return tuning_of_device(&device->info, tuning, error);
    snprintf(source, sizeof source, "the tuning of package " PATH_FORMAT, package->path);
    *tuning = tuning_default(&device->info);
    tuning->tuned_by = TUNED_BY_PACKAGE;
    if (tuning_parse(tuning, package_text(package, "tuning"), source, &device->info, error) ==
        HEALCL_OK)
        return HEALCL_OK;
    if (error)
        error->status = HEALCL_REFUSED; /* tuning_parse has set HEALCL_USAGE */
    return HEALCL_REFUSED;
}

/* Stores findings of the self-test, and chooses the tuning again: defaults depend on them. */
enum healcl_status device_note_findings(struct healcl_device *device, uint64_t loop_limit,
                                        bool launches_overlap, struct healcl_error *error)
{
    device->info.loop_limit = loop_limit;
    device->info.launches_overlap = launches_overlap;
    struct device_tuning tuning;
    TRY(tuning_of(device, &tuning, error));
    return device_set_tuning(device, &tuning, error);
}

/* The index of the device that the caller names by its OpenCL id. Fails if it cannot be used. */
static enum healcl_status find_device(const struct device_info *list, size_t count, cl_device_id id,
                                      size_t *index, struct healcl_error *error)
{
    for (*index = 0; *index < count; (*index)++)
        if (list[*index].device_id == id)
            return device_check_usable(&list[*index], error);
    FAIL(error, HEALCL_USAGE, "no platform lists the given device");
}

/* Lists all devices and copies the info of the one that the options name, by its id or by a
 * selector. */
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

/* Prepares a handle for its device: package, tuning, choices between vendors' kernels, context,
 * queues, cache. After an error the caller closes the handle. */
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
    programs->forced_unsupported = getenv("HEALCL_LACKS");
    binaries_decide(device);
    return HEALCL_OK;
}

/* Allocates a handle together with its programs, which are freed with it. shared: the context of
 * other handles, which it joins; or NULL: it gets its own. Counts the handle in its context. */
static enum healcl_status new_device(struct device_context *shared, struct healcl_device **device,
                                     struct healcl_error *error)
{
    struct {
        struct healcl_device handle; /* first: it is freed */
        struct device_programs programs;
    } *made = calloc(1, sizeof *made);
    NEED_MEMORY(made, error);
    struct device_context *context = shared ? shared : calloc(1, sizeof *context);
    if (!context) {
        free(made);
        NO_MEMORY(error);
    }
    if (!shared) {
        recursive_mutex_init(&context->turn);
        pthread_mutex_init(&context->lock, NULL);
    }
    pthread_mutex_lock(&context->lock);
    context->handles++;
    pthread_mutex_unlock(&context->lock);
    made->handle.shared = context;
    made->handle.programs = &made->programs;
    *device = &made->handle;
    return HEALCL_OK;
}

/* Opens a device without a self-test. After an error *device is NULL, and all is released. A queue
 * in the options is ignored: device_take_queue takes it later, because the self-test must not run
 * on a caller's queue. */
enum healcl_status device_open_with(const struct opencl *cl,
                                    const struct healcl_device_options *options,
                                    struct healcl_device **device, struct healcl_error *error)
{
    *device = NULL;
    struct device_info info;
    TRY(device_choose(cl, options, &info, error));
    struct healcl_device *opened;
    TRY(new_device(NULL, &opened, error));
    opened->cl = cl; /* the table of OpenCL's functions */
    opened->info = info;
    opened->options = *options;
    opened->options.queue = NULL;   /* until device_take_queue */
    opened->options.package = NULL; /* the string is the caller's; programs->package replaces it */
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

/* Opens the device that a selector names, without a self-test and without options. */
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

/* Gives a handle its own queues on the context of another handle. If the caller gave that handle a
 * queue, both use that queue. */
static enum healcl_status create_beside(struct healcl_device *device, struct healcl_device *first,
                                        struct healcl_error *error)
{
    TRY_CALL(error, first->cl, clRetainContext, first->context);
    device->context = first->context;
    device_turn_begin(device);
    enum healcl_status status = device_create_queues(device, error);
    if (status == HEALCL_OK && first->options.queue)
        status = device_take_queue(device, first->options.queue, error);
    device_turn_end(device);
    return status;
}

/* Copies the settings of another handle on the context, so that both choose the same programs. */
static void copy_settings(struct healcl_device *device, const struct healcl_device *first)
{
    struct device_programs *programs = device->programs;
    const struct device_programs *source = first->programs;
    device->cl = first->cl;
    device->info = first->info;
    device->tuning = first->tuning;
    device->options = first->options;
    device->options.queue = NULL; /* until device_take_queue */
    programs->package = source->package;
    programs->added = source->added;
    programs->choices = source->choices;
    programs->keeps_binaries = source->keeps_binaries;
    programs->distrusted = source->distrusted;
    programs->forced_unsupported = source->forced_unsupported;
}

/* Opens another handle on the context of `first`, for another thread: handles share programs, but
 * not queues, kernels and buffers. After an error *device is unchanged. */
enum healcl_status device_open_beside(struct healcl_device *first, struct healcl_device **device,
                                      struct healcl_error *error)
{
    struct healcl_device *opened;
    TRY(new_device(first->shared, &opened, error));
    copy_settings(opened, first);
    enum healcl_status status = create_beside(opened, first, error);
    if (status == HEALCL_OK)
        *device = opened;
    else
        device_close(opened);
    return status;
}
