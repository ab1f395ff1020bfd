/* Opening and closing a device, and what it is tuned to. */
#include <errno.h>
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

enum healcl_status device_note_findings(struct healcl_device *device, uint64_t loop_limit,
                                        bool launches_overlap, uint32_t multiply,
                                        struct healcl_error *error)
{
    device->info.loop_limit = loop_limit;
    device->info.launches_overlap = launches_overlap;
    device->info.multiply = multiply;
    struct device_tuning tuning;
    TRY(tuning_of_device(&device->info, &tuning, error));
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

static enum healcl_status open_context(struct healcl_device *device, struct healcl_error *error)
{
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)device->info.platform_id, 0};
    cl_int code = CL_SUCCESS;
    device->context =
        device->cl->clCreateContext(properties, 1, &device->info.device_id, NULL, NULL, &code);
    if (code != CL_SUCCESS)
        device->context = NULL;
    TRY_CL(error, "clCreateContext", code);
    cl_command_queue_properties computing = compute_properties(device, false);
    TRY(create_queue(device, computing, &device->compute, error));
    device->overlaps = computing & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    TRY(create_queue(device, 0, &device->transfer, error));
    return overlap_init(device, error);
}

static enum healcl_status choose(const struct opencl *cl, const char *selector,
                                 struct device_info *info, struct healcl_error *error)
{
    struct device_info *list = NULL;
    size_t count = 0, index = 0;
    TRY(device_list(cl, &list, &count, error));
    enum healcl_status status = device_select(list, count, selector, &index, error);
    if (status == HEALCL_OK)
        *info = list[index];
    free(list);
    return status;
}

static enum healcl_status open_chosen(struct healcl_device *device, struct healcl_error *error)
{
    TRY(tuning_of_device(&device->info, &device->tuning, error));
    TRY(read_chunk_bytes(device, error));
    TRY(open_context(device, error));
    device->cache_directory = cache_directory();
    const char *keep = getenv("HEALCL_KEEP_BINARIES");
    device->binary_price = keep && *keep ? 0 : BINARY_PRICE;
    return HEALCL_OK;
}

static enum healcl_status choose_and_open(const struct opencl *cl, const char *selector,
                                          struct healcl_device **device, struct healcl_error *error)
{
    *device = NULL;
    struct device_info info;
    TRY(choose(cl, selector, &info, error));
    struct healcl_device *opened = calloc(1, sizeof *opened);
    if (!opened)
        NO_MEMORY(error);
    opened->cl = cl;
    opened->info = info;
    enum healcl_status status = open_chosen(opened, error);
    if (status != HEALCL_OK) {
        error_prefix(error, "device %u:%u %s: ", info.platform_index, info.device_index, info.name);
        healcl_device_close(opened);
        return status;
    }
    *device = opened;
    return HEALCL_OK;
}

enum healcl_status device_open(const struct opencl *cl, const char *selector,
                               struct healcl_device **device, struct healcl_error *error)
{
    opening_begin();
    enum healcl_status status = choose_and_open(cl, selector, device, error);
    opening_end();
    return status;
}

enum healcl_status healcl_device_open(const char *selector, struct healcl_device **device,
                                      struct healcl_error *error)
{
    return device_open_tested(&opencl_loader, selector, device, error);
}

void healcl_device_close(struct healcl_device *device)
{
    if (!device)
        return;
    const struct opencl *cl = device->cl;
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
    device_pool_empty(device);
    free(device->pool);
    overlap_forget(device);
    free(device->recent);
    device_programs_save(device);
    device_programs_free(device);
    if (device->transfer)
        (void)cl->clReleaseCommandQueue(device->transfer);
    if (device->compute)
        (void)cl->clReleaseCommandQueue(device->compute);
    if (device->context)
        (void)cl->clReleaseContext(device->context);
    free(device->cache_directory);
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
    cl_command_queue_properties properties = compute_properties(device, profiling);
    TRY(device_finish(device, error));
    TRY(device_renew_queue(device, &device->compute, properties, error));
    device->overlaps = properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    return HEALCL_OK;
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
    if (profiling)
        TRY(device_takes_event_times(device, &device->event_times, error));
    device->profiling = profiling;
    return HEALCL_OK;
}
