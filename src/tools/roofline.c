#include "tools/roofline.h"

#include "core/clock.h"
#include "tools/bench.h"
#include "tools/measure.h"

enum {
    /* The fastest counts. Other load on the machine only increases times, and does not affect all
     * of these short samples. */
    SAMPLES = 25,
    SAMPLE_NS = 1000000,
    /* Bytes of tensors for each compute unit: they fit in its cache, and take far longer than a
     * launch. */
    UNIT_BYTES = 1 << 20,
    RATES = 1 + WORKS,
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

static uint64_t bytes_in_cache(const struct device_info *info)
{
    uint64_t bytes = (uint64_t)info->compute_units * UNIT_BYTES, cache = info->cache_bytes;
    return cache > UINT64_C(2) * UNIT_BYTES && bytes > cache / 2 ? cache / 2 : bytes;
}

static enum healcl_status measure_work(struct healcl_device *device, enum segment_work work,
                                       uint64_t *rate, struct healcl_error *error)
{
    const struct bench_options options = {
        .repeat = SAMPLES, .sample_ns = SAMPLE_NS, .memory_limit = UINT64_MAX};
    struct bench_settings settings = cases[work].values;
    struct bench_result result;
    settings.of[BENCH_BYTES] = (int64_t)bytes_in_cache(&device->info);
    TRY(bench_run(device, bench_operation_find(cases[work].operation), &settings, &options, &result,
                  error));
    *rate = (uint64_t)((double)result.units / result.min_ns * 1e9) + 1;
    return HEALCL_OK;
}

/* Thin work-items compute while others wait for memory. */
static bool overlaps(const struct device_tuning *tuning)
{
    return tuning->styles[FAMILY_elementwise] == STYLE_LOCAL;
}

/* How many rates are measured. On such devices digits, which come last, are limited by their
 * bytes. */
static size_t known_rates(const struct device_tuning *tuning)
{
    return overlaps(tuning) ? 1 + WORK_DIGITS : RATES;
}

/* The rates in the order of the cache: that of copies, then those of work. */
static struct roofline roofline_of(const struct device_tuning *tuning, const uint64_t rates[RATES])
{
    struct roofline roofline = {.bytes = rates[0], .overlaps = overlaps(tuning)};
    for (int i = 0; i < WORKS; i++)
        roofline.work[i] = rates[1 + i];
    return roofline;
}

bool roofline_read_cached(const struct device_info *info, const struct device_tuning *tuning,
                          struct roofline *roofline)
{
    uint64_t rates[RATES] = {0};
    bool known = rates_read_cached(info, tuning, known_rates(tuning), rates);
    *roofline = known ? roofline_of(tuning, rates) : (struct roofline){0};
    return known;
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
            FAIL(error, HEALCL_DEVICE, "kernels take too long to build for their rates");
        TRY(measure_work(device, (enum segment_work)i, &rates[i], error));
    }
    return HEALCL_OK;
}

enum healcl_status roofline_measure(struct healcl_device *device, uint32_t seconds,
                                    struct roofline *roofline, struct healcl_error *error)
{
    const bool thin = overlaps(&device->tuning);
    uint64_t rates[RATES] = {0};
    struct device_rates found;
    TRY(device_measure(device, thin, &found, error));
    rates[0] = found.written_bytes > found.copied_bytes ? found.written_bytes : found.copied_bytes;
    if (thin) { /* data that fit in the cache are too few for all compute units, or wait for it */
        rates[1 + WORK_PRODUCTS] = rates[1 + WORK_BUTTERFLIES] = found.twiddle_products;
        rates[1 + WORK_SUMMED_PRODUCTS] = found.products;
    } else
        TRY(measure_works(device, seconds, rates + 1, error));
    *roofline = roofline_of(&device->tuning, rates);
    rates_cache(&device->info, &device->tuning, known_rates(&device->tuning), rates);
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
