#include "bench/measure.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cl/base/base.h"
#include "core/clock.h"
#include "device/commands.h"
#include "programs/cache.h"
#include "programs/programs.h"

enum {
    GROUPS_PER_UNIT = 32, /* enough that all units are busy to the end */
    PRODUCTS_PER_ROUND = 8,
    ROUNDS_FIRST = 256,
    ROUNDS_MOST = 1 << 24, /* unless loops end before */
    SAMPLE_NANOSECONDS = 60000000,
    COPY_SAMPLES = 20, /* of which the fastest counts: what else a machine does slows copies down,
                          and does not disturb all of the short ones */
    COPIES_MOST = 50,  /* in a sample */
    COPY_SAMPLE_NANOSECONDS = 5000000,
    LINK_BYTES = 32 << 20,
    LINK_SAMPLES = 5,
};

/* Of a copy's source and of its target: more than caches hold, of most devices and of the one at
 * hand; never more than 1 GiB, for some say anything of their caches. */
static const uint64_t COPY_BYTES_LEAST = 64 << 20, COPY_BYTES_MOST = 1 << 30, CACHES = 4;

/* Runs a launch to its end; *nanoseconds by the host's clock. */
static enum healcl_status time_launch(struct healcl_device *device, const struct launch *launch,
                                      uint32_t times, uint64_t *nanoseconds,
                                      struct healcl_error *error)
{
    uint64_t start = monotonic_nanoseconds();
    for (uint32_t i = 0; i < times; i++)
        TRY(device_launch(device, launch, error));
    TRY(device_finish(device, error));
    *nanoseconds = monotonic_nanoseconds() - start;
    return HEALCL_OK;
}

static uint64_t a_second(double amount, uint64_t nanoseconds)
{
    return nanoseconds > 0 ? (uint64_t)(amount / (double)nanoseconds * 1e9) : 0;
}

/* ---------------------------------------------------------------- products */

/* Twice as many rounds until they take long enough to be timed. */
static enum healcl_status measure_products(struct healcl_device *device, struct buffer *out,
                                           uint64_t *products, struct healcl_error *error)
{
    size_t local_size = device->tuning.local_size;
    size_t groups = (size_t)device->info.compute_units * GROUPS_PER_UNIT;
    uint64_t limit = device->info.loop_limit;
    uint32_t most = limit > 0 && limit < ROUNDS_MOST ? (uint32_t)limit : ROUNDS_MOST;
    uint32_t rounds = ROUNDS_FIRST;
    struct launch launch = {
        .program = "base/measure",
        .kernel = "multiply",
        .argument_count = 2,
        .arguments = {{.table = out}, {.value = &rounds, .size = sizeof rounds}},
        .local_size = local_size,
        .groups = groups};
    TRY(device_buffer_acquire(device, groups * local_size * sizeof(uint64_t), false, out, error));
    uint64_t nanoseconds = 0;
    TRY(time_launch(device, &launch, 1, &nanoseconds, error)); /* builds */
    for (;; rounds *= 2) {
        TRY(time_launch(device, &launch, 1, &nanoseconds, error));
        if (nanoseconds >= SAMPLE_NANOSECONDS || rounds > most / 2)
            break;
    }
    *products =
        a_second((double)rounds * PRODUCTS_PER_ROUND * (double)(groups * local_size), nanoseconds);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- copies */

static uint64_t copy_bytes(const struct healcl_device *device)
{
    uint64_t cache = device->info.cache_bytes, bytes = COPY_BYTES_LEAST;
    uint64_t room = device->info.global_memory_bytes / 8; /* for each of two */
    if (cache > COPY_BYTES_LEAST / CACHES)
        bytes = cache < COPY_BYTES_MOST / CACHES ? CACHES * cache : COPY_BYTES_MOST;
    bytes = room > 0 && room < bytes ? room : bytes;
    return bytes < device->chunk_bytes ? bytes : device->chunk_bytes;
}

static enum healcl_status measure_copies(struct healcl_device *device, struct buffer *from,
                                         struct buffer *to, uint64_t *bytes,
                                         struct healcl_error *error)
{
    uint64_t count = copy_bytes(device) / sizeof(uint64_t), size = count * sizeof(uint64_t);
    uint32_t per_item = device->tuning.elements_per_item;
    if (per_item > LANES)
        per_item -= per_item % LANES;
    uint64_t per_group = (uint64_t)per_item * device->tuning.local_size;
    struct launch launch = {.program = "base/measure",
                            .kernel = "copy",
                            .argument_count = 4,
                            .arguments = {{.table = to},
                                          {.table = from},
                                          {.value = &count, .size = sizeof count},
                                          {.value = &per_item, .size = sizeof per_item}},
                            .local_size = device->tuning.local_size,
                            .groups = (size_t)((count + per_group - 1) / per_group)};
    TRY(device_buffer_acquire(device, size, false, from, error));
    TRY(device_buffer_acquire(device, size, false, to, error));
    uint64_t nanoseconds = 0;
    /* The other way first: it builds, and writes what is to be read. A system may have one page of
     * zeros for all memory that was never written, and reading that is faster than memory is. */
    struct launch back = launch;
    back.arguments[0].table = from;
    back.arguments[1].table = to;
    TRY(time_launch(device, &back, 1, &nanoseconds, error));
    TRY(time_launch(device, &launch, 1, &nanoseconds, error)); /* touches all pages of the target */
    TRY(time_launch(device, &launch, 1, &nanoseconds, error));
    uint64_t times = nanoseconds > 0 ? COPY_SAMPLE_NANOSECONDS / nanoseconds + 1 : COPIES_MOST;
    times = times < COPIES_MOST ? times : COPIES_MOST;
    uint64_t fastest = UINT64_MAX;
    for (int i = 0; i < COPY_SAMPLES; i++) {
        TRY(time_launch(device, &launch, (uint32_t)times, &nanoseconds, error));
        fastest = nanoseconds < fastest ? nanoseconds : fastest;
    }
    *bytes = a_second(2.0 * (double)size * (double)times, fastest);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- the link */

uint64_t device_link_bytes(const struct healcl_device *device)
{
    uint64_t bytes = copy_bytes(device);
    return bytes < LINK_BYTES ? bytes / sizeof(uint64_t) * sizeof(uint64_t) : LINK_BYTES;
}

/* A transfer between a buffer and pinned memory, several times; *bytes a second of
 * the fastest. */
static enum healcl_status time_link(struct healcl_device *device, bool writes,
                                    const struct buffer *buffer, void *pinned, uint64_t *bytes,
                                    struct healcl_error *error)
{
    const struct opencl *cl = device->cl;
    const uint64_t size = device_link_bytes(device);
    uint64_t fastest = UINT64_MAX;
    for (int i = 0; i < LINK_SAMPLES; i++) {
        uint64_t start = monotonic_nanoseconds();
        if (writes)
            TRY_CL(error, "clEnqueueWriteBuffer",
                   cl->clEnqueueWriteBuffer(device->transfer, buffer->chunks[0], CL_FALSE, 0,
                                            (size_t)size, pinned, 0, NULL, NULL));
        else
            TRY_CL(error, "clEnqueueReadBuffer",
                   cl->clEnqueueReadBuffer(device->transfer, buffer->chunks[0], CL_FALSE, 0,
                                           (size_t)size, pinned, 0, NULL, NULL));
        TRY_CL(error, "clFinish", cl->clFinish(device->transfer));
        uint64_t spent = monotonic_nanoseconds() - start;
        fastest = spent < fastest ? spent : fastest;
    }
    *bytes = a_second((double)size, fastest);
    return HEALCL_OK;
}

static enum healcl_status time_both(struct healcl_device *device, const struct buffer *buffer,
                                    cl_mem pinned, struct device_rates *rates,
                                    struct healcl_error *error)
{
    const uint64_t size = device_link_bytes(device);
    void *memory;
    TRY(device_map(device, TRACE_TRANSFER, pinned, CL_MAP_READ | CL_MAP_WRITE, 0, size, &memory,
                   error));
    memset(memory, 1, (size_t)size);
    enum healcl_status status =
        time_link(device, true, buffer, memory, &rates->written_bytes, error);
    if (status == HEALCL_OK)
        status = time_link(device, false, buffer, memory, &rates->read_bytes, error);
    (void)device->cl->clEnqueueUnmapMemObject(device->transfer, pinned, memory, 0, NULL, NULL);
    (void)device->cl->clFinish(device->transfer);
    return status;
}

static enum healcl_status measure_link(struct healcl_device *device, const struct buffer *buffer,
                                       struct device_rates *rates, struct healcl_error *error)
{
    cl_int code = CL_SUCCESS;
    cl_mem pinned =
        device->cl->clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                   (size_t)device_link_bytes(device), NULL, &code);
    TRY_CL(error, "clCreateBuffer", code);
    enum healcl_status status = time_both(device, buffer, pinned, rates, error);
    (void)device->cl->clReleaseMemObject(pinned);
    return status;
}

enum healcl_status device_measure(struct healcl_device *device, struct device_rates *rates,
                                  struct healcl_error *error)
{
    struct buffer out = {0}, from = {0}, to = {0};
    enum healcl_status status = measure_products(device, &out, &rates->products, error);
    if (status == HEALCL_OK)
        status = measure_copies(device, &from, &to, &rates->copied_bytes, error);
    if (status == HEALCL_OK)
        status = measure_link(device, &to, rates, error);
    device_buffer_release(device, &out);
    device_buffer_release(device, &from);
    device_buffer_release(device, &to);
    return status;
}

enum healcl_status device_measure_copies(struct healcl_device *device, uint64_t *bytes,
                                         struct healcl_error *error)
{
    struct buffer from = {0}, to = {0};
    enum healcl_status status = measure_copies(device, &from, &to, bytes, error);
    device_buffer_release(device, &from);
    device_buffer_release(device, &to);
    return status;
}

/* ---------------------------------------------------------------- kept */

enum { RATES_TEXT_SIZE = 256, RATES_NAME_SIZE = 6 + CACHE_KEY_SIZE };

/* "rates_<key>": of so many units, as some drivers let the environment say, and of the kernels that
 * this version has, shaped by a tuning. */
static void name_rates(const struct device_info *info, const struct device_tuning *tuning,
                       char name[RATES_NAME_SIZE])
{
    char key[CACHE_KEY_SIZE], units[16], shape[TUNING_TEXT_SIZE];
    const char *texts[] = {healcl_version(), units};
    snprintf(units, sizeof units, "%u", info->compute_units);
    tuning_format(tuning, shape);
    cache_key(info, "healcl rates 1", shape, sizeof texts / sizeof *texts, texts, key);
    snprintf(name, RATES_NAME_SIZE, "rates_%s", key);
}

bool rates_read_kept(const struct device_info *info, const struct device_tuning *tuning,
                     size_t count, uint64_t *rates)
{
    char name[RATES_NAME_SIZE], text[RATES_TEXT_SIZE], *end = text;
    name_rates(info, tuning, name);
    bool good = cache_read_line(name, sizeof text, text);
    for (size_t i = 0; i < count && good; i++) {
        const char *number = end;
        rates[i] = strtoull(number, &end, 10);
        good = end > number && rates[i] > 0;
    }
    return good && !*end;
}

void rates_keep(const struct device_info *info, const struct device_tuning *tuning, size_t count,
                const uint64_t *rates)
{
    char name[RATES_NAME_SIZE], text[RATES_TEXT_SIZE];
    size_t length = 0;
    char *directory = cache_directory();
    if (!directory)
        return;
    name_rates(info, tuning, name);
    for (size_t i = 0; i < count && length + 24 < sizeof text; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%" PRIu64,
                                   i > 0 ? " " : "", rates[i]);
    const struct cache_part parts[] = {{text, length}, {"\n", 1}};
    (void)cache_write(directory, name, 2, parts);
    free(directory);
}
