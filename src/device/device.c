/* Opening and closing a device, and what it is tuned to. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/numbers.h"
#include "device/internal.h"
#include "device/self_test.h"

enum {
    CHUNK_BYTES_MIN = 4096,
    BINARY_PRICE = 1000000000 /* nanoseconds a kernel; see binary.c */
};

/* Whatever a driver reports: the sizes of some chunks together fit 64 bits. */
static const uint64_t CHUNK_BYTES_MAX = (uint64_t)1 << 60;

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* Reads digits up to end, without sign or blanks. */
static bool parse_number(const char *text, const char **end, uint64_t *value)
{
    if (*text < '0' || *text > '9')
        return false;
    char *stop = NULL;
    errno = 0;
    *value = strtoull(text, &stop, 10);
    *end = stop;
    return errno == 0;
}

/* ---------------------------------------------------------------- the environment */

static enum healcl_status tuning_of(struct healcl_device *device, struct device_tuning *tuning,
                                    struct healcl_error *error)
{
    return device->package ? packaged_tuning(device, tuning, error)
                           : tuning_of_device(&device->info, tuning, error);
}

enum healcl_status device_note_findings(struct healcl_device *device, uint64_t loop_limit,
                                        bool launches_overlap, uint32_t multiply,
                                        struct healcl_error *error)
{
    device->info.loop_limit = loop_limit;
    device->info.launches_overlap = launches_overlap;
    device->info.multiply = multiply;
    struct device_tuning tuning;
    TRY(tuning_of(device, &tuning, error));
    return device_set_tuning(device, &tuning, error);
}

static enum healcl_status read_chunk_bytes(struct healcl_device *device, struct healcl_error *error)
{
    uint64_t most = (uint64_t)1 << log2_of(device->info.max_allocation_bytes);
    if (most > CHUNK_BYTES_MAX)
        most = CHUNK_BYTES_MAX;
    device->chunk_bytes = most;
    const char *text = getenv("HEALCL_CHUNK_BYTES");
    if (!text || !*text)
        return HEALCL_OK;
    uint64_t value = 0;
    const char *end = text;
    if (!parse_number(text, &end, &value) || *end || !is_power_of_two(value) ||
        value < CHUNK_BYTES_MIN || value > most)
        FAIL(error, HEALCL_USAGE,
             "HEALCL_CHUNK_BYTES is '%.80s', not a power of two from %d to %llu", text,
             CHUNK_BYTES_MIN, (unsigned long long)most);
    device->chunk_bytes = value;
    return HEALCL_OK;
}

/* Smaller tensors come from slabs, or are made of their data. */
static enum healcl_status read_place_bytes(struct healcl_device *device, struct healcl_error *error)
{
    const char *text = getenv("HEALCL_PLACE_BYTES");
    device->place_bytes = PLACE_BYTES;
    const char *end = text;
    if (text && *text && (!parse_number(text, &end, &device->place_bytes) || *end))
        FAIL(error, HEALCL_USAGE, "HEALCL_PLACE_BYTES is '%.80s', not a number", text);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- open and close */

static enum healcl_status create_queue(struct healcl_device *device,
                                       cl_command_queue_properties properties,
                                       cl_command_queue *queue, struct healcl_error *error)
{
    cl_int code = CL_SUCCESS;
    *queue = device->cl->clCreateCommandQueue(device->context, device->info.device_id, properties,
                                              &code);
    if (code != CL_SUCCESS)
        *queue = NULL;
    TRY_CL(error, "clCreateCommandQueue", code);
    return HEALCL_OK;
}

/* Launches that are timed run one after the other. */
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
    if (device->brought.context) {
        TRY_CL(error, "clRetainContext", device->cl->clRetainContext(device->brought.context));
        device->context = device->brought.context;
        return context_share(device, error);
    }
    device->context =
        device->cl->clCreateContext(properties, 1, &device->info.device_id, NULL, NULL, &code);
    if (code != CL_SUCCESS)
        device->context = NULL;
    TRY_CL(error, "clCreateContext", code);
    return context_share(device, error);
}

enum healcl_status device_create_queues(struct healcl_device *device, struct healcl_error *error)
{
    cl_command_queue_properties computing = compute_properties(device, false);
    TRY(create_queue(device, computing, &device->compute, error));
    device->overlaps = computing & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    TRY(create_queue(device, 0, &device->transfer, error));
    return overlap_init(device, error);
}

/* The index of the device that the caller names by its id. */
static enum healcl_status find_device(const struct device_info *list, size_t count, cl_device_id id,
                                      size_t *index, struct healcl_error *error)
{
    for (*index = 0; *index < count; (*index)++)
        if (list[*index].device_id == id)
            return device_check_usable(&list[*index], error);
    FAIL(error, HEALCL_USAGE, "no platform lists that device");
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

static enum healcl_status open_chosen(struct healcl_device *device, struct healcl_error *error)
{
    if (device->package)
        TRY(packaged_check(device, error));
    TRY(tuning_of(device, &device->tuning, error));
    if (device->package)
        TRY(packaged_choices(device, &device->choices, error));
    else
        kernel_choices_read_kept(&device->choices, &device->info);
    TRY(read_chunk_bytes(device, error));
    TRY(read_place_bytes(device, error));
    if (device->package && device->package->chunk_bytes < device->chunk_bytes)
        device->chunk_bytes = device->package->chunk_bytes;
    TRY(create_context(device, error));
    TRY(device_create_queues(device, error));
    TRY(shared_programs_make(device, error));
    device->cache_directory = cache_directory();
    const char *lacks = getenv("HEALCL_LACKS");
    device->forced_lacks = lacks && *lacks ? strdup(lacks) : NULL;
    if (lacks && *lacks && !device->forced_lacks)
        NO_MEMORY(error);
    const char *keep = getenv("HEALCL_KEEP_BINARIES");
    device->binary_price = keep && *keep ? 0 : BINARY_PRICE;
    return HEALCL_OK;
}

static enum healcl_status choose_and_open(const struct opencl *cl,
                                          const struct healcl_device_options *options,
                                          struct healcl_device **device, struct healcl_error *error)
{
    *device = NULL;
    struct device_info info;
    TRY(choose(cl, options, &info, error));
    struct healcl_device *opened = calloc(1, sizeof *opened);
    if (!opened)
        NO_MEMORY(error);
    opened->cl = cl;
    opened->info = info;
    opened->brought = *options;
    opened->brought.queue = NULL; /* until it is taken */
    opened->brought.package = NULL;
    enum healcl_status status =
        options->package ? package_read(options->package, &opened->package, error) : HEALCL_OK;
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

enum healcl_status healcl_device_open_with(const struct healcl_device_options *options,
                                           struct healcl_device **device,
                                           struct healcl_error *error)
{
    static const struct healcl_device_options none;
    NEED(device, error);
    if (!options)
        options = &none;
    if (options->queue && !options->context)
        FAIL(error, HEALCL_USAGE, "a queue comes with its context");
    if (options->context && !options->device && !options->selector)
        FAIL(error, HEALCL_USAGE, "a context comes with a device of its own");
    if (!options->allocate != !options->release)
        FAIL(error, HEALCL_USAGE, "allocate and release come together");
    return device_open_tested_with(&opencl_loader, options, device, error);
}

enum healcl_status healcl_device_open(const char *selector, struct healcl_device **device,
                                      struct healcl_error *error)
{
    NEED(device, error);
    return device_open_tested(&opencl_loader, selector, device, error);
}

void healcl_device_close(struct healcl_device *device)
{
    if (!device)
        return;
    const struct opencl *cl = device->cl;
    device_turn_begin(device);
    /* Nothing that fails here can be helped: what is owned is given back anyway. */
    if (device->compute)
        (void)cl->clFinish(device->compute);
    if (device->transfer)
        (void)cl->clFinish(device->transfer);
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
    device_programs_save(device);
    device_programs_free(device);
    shared_programs_leave(device);
    if (device->transfer)
        (void)cl->clReleaseCommandQueue(device->transfer);
    if (device->compute)
        (void)cl->clReleaseCommandQueue(device->compute);
    if (device->context)
        (void)cl->clReleaseContext(device->context);
    context_leave(device);
    free(device->cache_directory);
    free(device->forced_lacks);
    free(device->failed);
    free(device);
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
    cl_int code = device->cl->clFinish(device->compute);
    overlap_forget(device);
    if (code == CL_SUCCESS)
        device_note_idle(device);
    return code;
}

enum healcl_status device_finish(struct healcl_device *device, struct healcl_error *error)
{
    TRY_CL(error, "clFinish", device->cl->clFinish(device->transfer));
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
    if (device->brought.queue) /* it stays as it is */
        return device_finish(device, error);
    cl_command_queue_properties properties = compute_properties(device, profiling);
    device_turn_begin(device); /* nobody else looks at the queue */
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
    if (profiling && !(device->brought.queue && !device->queue_takes_times))
        TRY(device_takes_event_times(device, &device->event_times, error));
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
    TRY_CL(error, "clGetCommandQueueInfo",
           cl->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL));
    TRY_CL(error, "clGetCommandQueueInfo",
           cl->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof id, &id, NULL));
    TRY_CL(error, "clGetCommandQueueInfo",
           cl->clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties,
                                     NULL));
    if (context != device->context || id != device->info.device_id)
        FAIL(error, HEALCL_USAGE, "the queue is of another %s",
             context != device->context ? "context" : "device");
    TRY(device_finish(device, error));
    TRY_CL(error, "clRetainCommandQueue", cl->clRetainCommandQueue(queue));
    (void)cl->clReleaseCommandQueue(device->compute);
    device->compute = device->brought.queue = queue;
    device->queue_takes_times = properties & CL_QUEUE_PROFILING_ENABLE;
    device->overlaps = properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    return HEALCL_OK;
}

void device_log(const struct healcl_device *device, const char *format, ...)
{
    char line[512];
    if (!device->brought.log)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    device->brought.log(device->brought.log_context, line);
}

/* ---------------------------------------------------------------- what there is, for callers */

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
    if (!*list)
        NO_MEMORY(error);
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
