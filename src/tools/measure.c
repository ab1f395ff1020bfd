#include "tools/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cl/base/base.h"
#include "core/clock.h"
#include "opencl/programs.h"
#include "tools/bench.h"

enum {
    GROUPS_PER_UNIT = 32, /* enough to keep all units busy to the end */
    PRODUCTS_PER_ROUND = 8,
    ROUNDS_FIRST = 256,
    ROUNDS_MOST = 1 << 24, /* most rounds, unless loops end earlier */
    SAMPLE_NANOSECONDS = 60000000,
    /* The fastest of them counts. Other load on the machine slows copies down, but not all of these
     * short ones. */
    COPY_SAMPLES = 20,
    COPIES_MOST = 50,                /* in a sample */
    COPY_NANOSECONDS_LEAST = 500000, /* of each copy; a launch has an overhead of some thousand */
    COPY_SAMPLE_NANOSECONDS = 5000000,
};

/* Sizes of the source and target of a copy: larger than the caches, but at most 1 GiB, because some
 * devices report wrong cache sizes. */
static const uint64_t COPY_BYTES_LEAST = 64 << 20, COPY_BYTES_MOST = 1 << 30, CACHES = 4;

static void add_running(void *context, const struct launch_times *times)
{
    *(uint64_t *)context += times->running;
}

/* Runs a launch `times` times, and waits. */
static enum healcl_status time_launch(struct healcl_device *device, const struct launch *launch,
                                      uint32_t times, uint64_t *nanoseconds,
                                      struct healcl_error *error)
{
    uint64_t start = monotonic_nanoseconds();
    for (uint32_t i = 0; i < times; i++)
        TRY(device_launch(device, launch, error));
    TRY(device_finish(device, error));
    *nanoseconds = monotonic_nanoseconds() - start;
    if (!device->profiling)
        return HEALCL_OK;
    *nanoseconds = 0;
    return device_take_times(device, add_running, nanoseconds, error);
}

static uint64_t a_second(double amount, uint64_t nanoseconds)
{
    return nanoseconds > 0 ? (uint64_t)(amount / (double)nanoseconds * 1e9) : 0;
}

/* ---------------------------------------------------------------- products */

/* Doubles the rounds until they take long enough to be timed. */
static enum healcl_status measure_products(struct healcl_device *device, const char *kernel,
                                           uint64_t *products, struct healcl_error *error)
{
    size_t local_size = device->tuning.local_size;
    size_t groups = (size_t)device->info.compute_units * GROUPS_PER_UNIT;
    uint64_t limit = device->info.loop_limit;
    uint32_t most = limit > 0 && limit < ROUNDS_MOST ? (uint32_t)limit : ROUNDS_MOST;
    uint32_t rounds = ROUNDS_FIRST;
    struct buffer out = {0};
    struct launch launch = {
        .program = "base/measure",
        .kernel = kernel,
        .options = "",
        .argument_count = 2,
        .arguments =
            (struct launch_argument[]){{.buffer = &out}, {.value = &rounds, .size = sizeof rounds}},
        .local_size = local_size,
        .groups = groups,
        .tag = kernel};
    TRY(device_buffer_acquire(device, groups * local_size * sizeof(uint64_t), false, &out, error));
    uint64_t nanoseconds = 0;
    enum healcl_status status = time_launch(device, &launch, 1, &nanoseconds, error); /* builds */
    for (; status == HEALCL_OK; rounds *= 2) {
        status = time_launch(device, &launch, 1, &nanoseconds, error);
        if (nanoseconds >= SAMPLE_NANOSECONDS || rounds > most / 2)
            break;
    }
    *products =
        a_second((double)rounds * PRODUCTS_PER_ROUND * (double)(groups * local_size), nanoseconds);
    device_buffer_release(device, &out);
    return status;
}

/* ---------------------------------------------------------------- copies */

/* The largest size of each of two buffers. */
static uint64_t copy_bytes_most(const struct healcl_device *device)
{
    uint64_t room = device->info.global_memory_bytes / 8;
    uint64_t most = room > 0 && room < COPY_BYTES_MOST ? room : COPY_BYTES_MOST;
    return most < device->info.max_allocation_bytes ? most : device->info.max_allocation_bytes;
}

static uint64_t copy_bytes(const struct healcl_device *device)
{
    uint64_t cache = device->info.cache_bytes, most = copy_bytes_most(device);
    uint64_t bytes = COPY_BYTES_LEAST;
    if (cache > COPY_BYTES_LEAST / CACHES)
        bytes = cache < COPY_BYTES_MOST / CACHES ? CACHES * cache : COPY_BYTES_MOST;
    return bytes < most ? bytes : most;
}

/* A launch that reads or writes memory, and its arguments. */
struct sweep {
    struct launch launch;
    struct launch_argument arguments[4];
    uint64_t count, size; /* elements; bytes */
    uint32_t per_item;
};

/* from: NULL for a launch that only writes. */
static void sweep_init(struct sweep *sweep, const struct healcl_device *device, uint64_t bytes,
                       const struct buffer *to, const struct buffer *from)
{
    const struct device_tuning *tuning = &device->tuning;
    uint32_t per_item = tuning->elements_per_item, next = 0;
    if (per_item > LANES)
        per_item -= per_item % LANES;
    const uint64_t per_group = (uint64_t)per_item * tuning->local_size;
    *sweep = (struct sweep){.count = bytes / sizeof(uint64_t), .per_item = per_item};
    sweep->size = sweep->count * sizeof(uint64_t);
    struct launch *launch = &sweep->launch;
    launch->program = "base/measure";
    launch->options = "";
    launch->arguments = sweep->arguments;
    launch->kernel = launch->tag = from ? "copy" : "write";
    launch->local_size = tuning->local_size;
    launch->groups = (size_t)((sweep->count + per_group - 1) / per_group);
    launch->arguments[next++].buffer = to;
    if (from)
        launch->arguments[next++].buffer = from;
    launch->arguments[next++] =
        (struct launch_argument){.value = &sweep->count, .size = sizeof sweep->count};
    launch->arguments[next++] =
        (struct launch_argument){.value = &sweep->per_item, .size = sizeof sweep->per_item};
    launch->argument_count = next;
}

/* *bytes: the rate per second of the fastest of several samples. The launch must have run once. */
static enum healcl_status time_sweep(struct healcl_device *device, const struct sweep *sweep,
                                     uint64_t *bytes, struct healcl_error *error)
{
    uint64_t nanoseconds = 0, fastest = UINT64_MAX;
    TRY(time_launch(device, &sweep->launch, 1, &nanoseconds, error));
    uint64_t times = nanoseconds > 0 ? COPY_SAMPLE_NANOSECONDS / nanoseconds + 1 : COPIES_MOST;
    times = times < COPIES_MOST ? times : COPIES_MOST;
    for (int i = 0; i < COPY_SAMPLES; i++) {
        TRY(time_launch(device, &sweep->launch, (uint32_t)times, &nanoseconds, error));
        fastest = nanoseconds < fastest ? nanoseconds : fastest;
    }
    double moved = sweep->launch.arguments[1].buffer ? 2.0 : 1.0;
    *bytes = a_second(moved * (double)sweep->size * (double)times, fastest);
    return HEALCL_OK;
}

/* Makes two buffers and copies from one to the other. First copies in the opposite direction, to
 * build the program and to write the source. A system may map memory that was never written to one
 * page of zeros, which is faster to read than real memory. */
static enum healcl_status copy_once(struct healcl_device *device, uint64_t bytes,
                                    struct buffer *from, struct buffer *to, struct sweep *copy,
                                    uint64_t *nanoseconds, struct healcl_error *error)
{
    struct sweep back;
    device_buffer_release(device, from);
    device_buffer_release(device, to);
    sweep_init(copy, device, bytes, to, from);
    sweep_init(&back, device, bytes, from, to);
    TRY(device_buffer_acquire(device, copy->size, false, from, error));
    TRY(device_buffer_acquire(device, copy->size, false, to, error));
    TRY(time_launch(device, &back.launch, 1, nanoseconds, error));
    return time_launch(device, &copy->launch, 1, nanoseconds, error); /* touches all pages */
}

uint64_t larger_copy(uint64_t bytes, uint64_t nanoseconds, uint64_t most)
{
    uint64_t factor = COPY_NANOSECONDS_LEAST / (nanoseconds + 1) + 1;
    return factor == 1 || bytes >= most ? bytes : bytes < most / factor ? factor * bytes : most;
}

/* Leaves the buffers as the copy's launch uses them. */
static enum healcl_status measure_copies(struct healcl_device *device, struct buffer *from,
                                         struct buffer *to, struct sweep *copy, uint64_t *bytes,
                                         struct healcl_error *error)
{
    uint64_t nanoseconds = 0;
    TRY(copy_once(device, copy_bytes(device), from, to, copy, &nanoseconds, error));
    uint64_t larger = larger_copy(copy->size, nanoseconds, copy_bytes_most(device));
    if (larger > copy->size)
        TRY(copy_once(device, larger, from, to, copy, &nanoseconds, error));
    return time_sweep(device, copy, bytes, error);
}

static enum healcl_status measure_writes(struct healcl_device *device, const struct buffer *to,
                                         uint64_t *bytes, struct healcl_error *error)
{
    struct sweep write;
    uint64_t nanoseconds;
    sweep_init(&write, device, to->bytes, to, NULL);
    TRY(time_launch(device, &write.launch, 1, &nanoseconds, error)); /* builds the program */
    return time_sweep(device, &write, bytes, error);
}

enum healcl_status device_measure(struct healcl_device *device, bool all,
                                  struct device_rates *rates, struct healcl_error *error)
{
    struct buffer from = {0}, to = {0};
    struct sweep copy;
    *rates = (struct device_rates){0};
    /* Uses the device's clock, if it has one. */
    TRY(device_set_profiling(device, true, error));
    if (!device->event_times)
        TRY(device_set_profiling(device, false, error));
    enum healcl_status status = measure_products(device, "multiply", &rates->products, error);
    THEN(status, measure_copies(device, &from, &to, &copy, &rates->copied_bytes, error));
    if (status == HEALCL_OK && all)
        status = measure_writes(device, &to, &rates->written_bytes, error);
    device_buffer_release(device, &from);
    device_buffer_release(device, &to);
    if (status == HEALCL_OK && all)
        status = measure_products(device, "multiply_lazily", &rates->twiddle_products, error);
    /* The first error is returned. */
    const enum healcl_status end =
        device_set_profiling(device, false, status == HEALCL_OK ? error : NULL);
    return status == HEALCL_OK ? end : status;
}

/* ---------------------------------------------------------------- kept */

enum { RATES_TEXT_SIZE = 24 * (1 + WORKS) };

/* Thin work-items compute while others wait for memory. */
static bool overlaps(const struct device_tuning *tuning)
{
    return tuning->styles[FAMILY_elementwise] == STYLE_LOCAL;
}

/* The name includes the number of units, which some drivers take from the environment. It also
 * includes this version and the tuning of kernels. */
static void name_rates(const struct device_info *info, const struct device_tuning *tuning,
                       char name[CACHE_NAME_SIZE])
{
    char units[16], shape[TUNING_TEXT_SIZE];
    const char *const texts[] = {"healcl rates 3", shape, healcl_version(), units};
    snprintf(units, sizeof units, "%u", info->compute_units);
    tuning_format(tuning, shape);
    cache_name(info, "rates", sizeof texts / sizeof *texts, texts, name);
}

/* The file has the rate of copies, then those of each kind of work. */
bool roofline_read_cached(const struct device_info *info, const struct device_tuning *tuning,
                          struct roofline *roofline)
{
    char name[CACHE_NAME_SIZE], text[RATES_TEXT_SIZE], *end = text;
    struct roofline read = {.overlaps = overlaps(tuning)};
    name_rates(info, tuning, name);
    bool good = cache_read_text(name, sizeof text, text);
    for (int i = -1; i < WORKS && good; i++) {
        const char *number = end;
        *(i < 0 ? &read.bytes : &read.work[i]) = strtoull(number, &end, 10);
        good = end > number;
    }
    good = good && !*end && read.bytes > 0;
    *roofline = good ? read : (struct roofline){0};
    return good;
}

void roofline_cache(const struct device_info *info, const struct device_tuning *tuning,
                    const struct roofline *roofline)
{
    char name[CACHE_NAME_SIZE], text[RATES_TEXT_SIZE];
    int length = snprintf(text, sizeof text, "%" PRIu64, roofline->bytes);
    name_rates(info, tuning, name);
    for (int i = 0; i < WORKS; i++)
        length +=
            snprintf(text + length, sizeof text - (size_t)length, " %" PRIu64, roofline->work[i]);
    (void)!cache_write(name, text, (size_t)length, NULL, NULL);
}

/* ---------------------------------------------------------------- rooflines */

enum {
    /* The fastest counts. Other load on the machine only increases times, and does not affect all
     * of these short samples. */
    SAMPLES = 25,
    SAMPLE_NS = 1000000,
    /* Bytes of tensors for each compute unit: they fit in its cache, and take far longer than a
     * launch. */
    UNIT_BYTES = 1 << 20,
};

/* The benchmark whose operation does only this work, and its parameters that differ from the
 * defaults. */
static const struct bench_suite_case cases[WORKS] = {
    [WORK_PRODUCTS] = {"modmul", BENCH_SETTINGS(0)},
    [WORK_SUMMED_PRODUCTS] = {"modmul_axis_sum", BENCH_SETTINGS([BENCH_N] = 1024, [BENCH_S] = 16)},
    [WORK_BUTTERFLIES] = {"ntt", BENCH_SETTINGS(0)},
    [WORK_DIGITS] = {"apply_g_decomp", BENCH_SETTINGS(0)},
    [WORK_CRT_DIGITS] = {"apply_g_decomp_relative_to_full_q", BENCH_SETTINGS(0)},
};

static enum healcl_status measure_work(struct healcl_device *device, enum segment_work work,
                                       uint64_t *rate, struct healcl_error *error)
{
    const struct bench_options options = {
        .repeat = SAMPLES, .sample_ns = SAMPLE_NS, .memory_limit = UINT64_MAX};
    struct bench_settings settings = cases[work].values;
    struct bench_result result;
    const uint64_t bytes = (uint64_t)device->info.compute_units * UNIT_BYTES,
                   cache = device->info.cache_bytes;
    const bool is_half = cache > UINT64_C(2) * UNIT_BYTES && bytes > cache / 2;
    settings.of[BENCH_BYTES] = (int64_t)(is_half ? cache / 2 : bytes);
    TRY(bench_run(device, bench_operation_find(cases[work].operation), &settings, &options, &result,
                  error));
    *rate = (uint64_t)((double)result.units / result.min_ns * 1e9) + 1;
    return HEALCL_OK;
}

/* Measures each kind of work alone with its data in the cache. On such devices that is about the
 * time of the arithmetic. */
static enum healcl_status measure_works(struct healcl_device *device, uint32_t seconds,
                                        uint64_t rates[WORKS], struct healcl_error *error)
{
    uint64_t begin = monotonic_nanoseconds();
    uint64_t longest = seconds > 0 ? seconds * UINT64_C(1000000000) : UINT64_MAX;
    for (int i = 0; i < WORKS; i++) {
        if (monotonic_nanoseconds() - begin > longest)
            FAIL(error, HEALCL_DEVICE, "kernels build too slowly to measure their rates");
        TRY(measure_work(device, (enum segment_work)i, &rates[i], error));
    }
    return HEALCL_OK;
}

enum healcl_status roofline_measure(struct healcl_device *device, uint32_t seconds,
                                    struct roofline *roofline, struct healcl_error *error)
{
    const bool thin = overlaps(&device->tuning);
    uint64_t *work = roofline->work;
    struct device_rates found;
    *roofline = (struct roofline){.overlaps = thin};
    TRY(device_measure(device, thin, &found, error));
    if (thin) { /* data that fit in the cache are too few for all compute units, or wait for it.
                   Digits are limited by their bytes. */
        work[WORK_PRODUCTS] = work[WORK_BUTTERFLIES] = found.twiddle_products;
        work[WORK_SUMMED_PRODUCTS] = found.products;
    } else
        TRY(measure_works(device, seconds, work, error));
    roofline->bytes =
        found.written_bytes > found.copied_bytes ? found.written_bytes : found.copied_bytes;
    roofline_cache(&device->info, &device->tuning, roofline);
    return HEALCL_OK;
}

uint64_t roofline_time(const struct roofline *roofline, const struct segment_cost *cost)
{
    if (roofline->bytes == 0)
        return 0;
    double work = 0, memory = (double)cost->bytes / (double)roofline->bytes;
    for (int i = 0; i < WORKS; i++)
        if (roofline->work[i] > 0)
            work += (double)cost->work[i] / (double)roofline->work[i];
    double seconds = !roofline->overlaps ? memory + work : memory > work ? memory : work;
    return seconds < 1e9 ? (uint64_t)(seconds * 1e9) : UINT64_MAX;
}
