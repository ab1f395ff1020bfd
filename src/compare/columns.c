#include "compare/columns.h"

#include <inttypes.h>
#include <string.h>

/* ---------------------------------------------------------------- names and verdicts */

/* Of a run, from its comparison. */
#define TEXT_COLUMN(name, expression)                                                     \
    static bool name(const void *context, const void *record, struct column_value *value) \
    {                                                                                     \
        const struct comparison *comparison = context;                                    \
        const struct compare_run *run = record;                                           \
        const struct compare_device *device = &comparison->devices[run->device];          \
        (void)device;                                                                     \
        value->text = expression;                                                         \
        return true;                                                                      \
    }

TEXT_COLUMN(transcript, comparison->transcripts[run->transcript].file)
TEXT_COLUMN(selector, device->selector)
TEXT_COLUMN(device_name, device->name)
TEXT_COLUMN(platform, device->platform)
TEXT_COLUMN(driver, device->driver)
TEXT_COLUMN(baseline, device->origin->baseline ? device->origin->baseline : "")
TEXT_COLUMN(tuned, !*device->tuning ? "" : device->tuned ? "true" : "false")
TEXT_COLUMN(outcome, compare_outcome_name(run->outcome))
TEXT_COLUMN(message, run->message)
TEXT_COLUMN(warning, compare_is_noisy(run) ? "the times spread by more than 30 %" : "")
_Static_assert(COMPARE_SPREAD_MAX == 30, "the warning tells it");
TEXT_COLUMN(fault, run->fault == COMPARE_DEVICE_FAULT       ? "device"
                   : run->fault == COMPARE_TRANSCRIPT_FAULT ? "transcript"
                                                            : "")
TEXT_COLUMN(profile_clock, run->profiled_count == 0  ? ""
                           : run->operations_by_host ? "host"
                                                     : "device")

/* ---------------------------------------------------------------- times */

#define TIME_COLUMN(name, figure, member, least_samples)                                          \
    static bool name(const void *context, const void *record, struct column_value *value)         \
    {                                                                                             \
        const struct compare_run *run = record;                                                   \
        (void)context;                                                                            \
        struct compare_times times;                                                               \
        if (run->times[figure].count < (least_samples) || !compare_times_of(run, figure, &times)) \
            return false;                                                                         \
        value->number = times.member;                                                             \
        return true;                                                                              \
    }

TIME_COLUMN(compute, COMPARE_COMPUTE, median, 1)
TIME_COLUMN(compute_low, COMPARE_COMPUTE, low, 1)
TIME_COLUMN(compute_high, COMPARE_COMPUTE, high, 1)
TIME_COLUMN(steady, COMPARE_STEADY, median, 1)
TIME_COLUMN(steady_low, COMPARE_STEADY, low, 1)
TIME_COLUMN(steady_high, COMPARE_STEADY, high, 1)
TIME_COLUMN(transfer, COMPARE_TRANSFER, median, 1)
TIME_COLUMN(decode, COMPARE_DECODE, median, 1)
TIME_COLUMN(median, COMPARE_WHOLE, median, 1)
TIME_COLUMN(low, COMPARE_WHOLE, low, 1)
TIME_COLUMN(high, COMPARE_WHOLE, high, 1)
TIME_COLUMN(least, COMPARE_WHOLE, least, 1)
TIME_COLUMN(most, COMPARE_WHOLE, most, 1)
TIME_COLUMN(p95, COMPARE_WHOLE, p95, P95_SAMPLES)
TIME_COLUMN(p99, COMPARE_WHOLE, p99, P99_SAMPLES)

static bool per_second(const void *context, const void *record, struct column_value *value)
{
    const struct compare_run *run = record;
    (void)context;
    struct compare_times times;
    if (!compare_is_right(run) || !compare_times_of(run, COMPARE_STEADY, &times) ||
        times.median == 0)
        return false;
    value->factor = 1e9 / (double)times.median;
    return true;
}

static bool spread(const void *context, const void *record, struct column_value *value)
{
    const struct compare_run *run = record;
    (void)context;
    struct compare_times times;
    if (run->times[COMPARE_COMPUTE].count < 2 || !compare_times_of(run, COMPARE_COMPUTE, &times))
        return false;
    value->factor = compare_spread(&times);
    return true;
}

static void noise_note(const void *context, const void *record, char text[UNIT_TEXT_SIZE])
{
    const struct compare_run *run = record;
    (void)context;
    strcpy(text, compare_spreads(run, COMPARE_COMPUTE) ? "noisy" : "");
}

COLUMN_OF(samples, struct compare_run, number, it->times[COMPARE_WHOLE].count)

#define SPEEDUP_COLUMN(name, figure, member)                                              \
    static bool name(const void *context, const void *record, struct column_value *value) \
    {                                                                                     \
        struct compare_speedup speedup;                                                   \
        if (!compare_speedup_of(context, record, figure, &speedup))                       \
            return false;                                                                 \
        value->factor = speedup.member;                                                   \
        return true;                                                                      \
    }

SPEEDUP_COLUMN(speedup_factor, COMPARE_COMPUTE, factor)
SPEEDUP_COLUMN(speedup_low, COMPARE_COMPUTE, low)
SPEEDUP_COLUMN(speedup_high, COMPARE_COMPUTE, high)
SPEEDUP_COLUMN(steady_factor, COMPARE_STEADY, factor)
SPEEDUP_COLUMN(steady_factor_low, COMPARE_STEADY, low)
SPEEDUP_COLUMN(steady_factor_high, COMPARE_STEADY, high)

static void note_speedup(const struct comparison *comparison, const struct compare_run *run,
                         enum compare_figure figure, char text[UNIT_TEXT_SIZE])
{
    struct compare_speedup speedup;
    *text = 0;
    if (run == compare_reference(comparison, run->transcript, figure))
        strcpy(text, "the first");
    else if (!compare_speedup_of(comparison, run, figure, &speedup))
        return;
    else if (speedup.low <= 1 && speedup.high >= 1)
        strcpy(text, "no difference");
    else
        snprintf(text, UNIT_TEXT_SIZE, "%.12s to %.12s", TEXT_FACTOR(speedup.low),
                 TEXT_FACTOR(speedup.high));
}

static void speedup_note(const void *context, const void *record, char text[UNIT_TEXT_SIZE])
{
    note_speedup(context, record, COMPARE_COMPUTE, text);
}

static void steady_note(const void *context, const void *record, char text[UNIT_TEXT_SIZE])
{
    note_speedup(context, record, COMPARE_STEADY, text);
}

static bool overhead(const void *context, const void *record, struct column_value *value)
{
    const struct compare_run *run = record;
    (void)context;
    return compare_overhead_of(run, &value->factor);
}

/* The share of what kernels took that the device's rates allow. */
static bool of_its_rates(const void *context, const void *record, struct column_value *value)
{
    const struct compare_run *run = record;
    if (!compute(context, record, value) || value->number == 0)
        return false;
    value->factor = 100 * (double)run->roofline_nanoseconds / (double)value->number;
    return run->roofline_nanoseconds > 0;
}

/* What is in caches is faster than copies of memory are. */
static void caches_note(const void *context, const void *record, char text[UNIT_TEXT_SIZE])
{
    struct column_value share;
    bool is_beyond = of_its_rates(context, record, &share) && share.factor > SHARE_MAX;
    strcpy(text, is_beyond ? "caches" : "");
}

/* ---------------------------------------------------------------- what a process costs */

COLUMN_IF(kernels, struct compare_run, number, compare_kernels_of(it) > 0, compare_kernels_of(it))

/* Where some came out of healcl's cache. */
static void loaded_note(const void *context, const void *record, char text[UNIT_TEXT_SIZE])
{
    const struct compare_run *run = record;
    (void)context;
    *text = 0;
    if (run->programs_loaded > 0)
        snprintf(text, UNIT_TEXT_SIZE, "%" PRIu64 " of %" PRIu64 " cached",
                 run->programs_loaded % 100000,
                 (run->programs_built + run->programs_loaded) % 100000);
}

static void kernels_note(const void *context, const void *record, char text[UNIT_TEXT_SIZE])
{
    const struct compare_run *run = record;
    *text = 0;
    if (run->cold.nanoseconds == 0)
        loaded_note(context, record, text);
}

/* ---------------------------------------------------------------- runs */

#define RUN_FIELD(member) COLUMN_FIELD(struct compare_run, member)

#define FIGURE .field = 0 /* its own of compare_run.figures */

enum { FOR_PEOPLE = IN_TERMINAL | IN_MARKDOWN };

static const struct column run_columns[] = {
    {"transcript", NULL, COLUMN_TEXT, IN_CSV, .value = transcript},
    {NULL, NULL, COLUMN_TEXT, IN_CSV, .csv = "index", .value = selector},
    {"device", NULL, COLUMN_TEXT, IN_CSV, .value = device_name},
    {"platform", NULL, COLUMN_TEXT, IN_CSV, .value = platform},
    {"driver", NULL, COLUMN_TEXT, IN_CSV, .value = driver},
    {NULL, NULL, COLUMN_TEXT, IN_CSV, .csv = "baseline", .value = baseline},
    {"outcome", NULL, COLUMN_TEXT, IN_CSV, .value = outcome},
    {"message", NULL, COLUMN_TEXT, IN_CSV, .value = message},
    {"warning", NULL, COLUMN_TEXT, IN_CSV, .value = warning},
    {"results.total", NULL, COLUMN_COUNT, IN_CSV, .csv = "results", RUN_FIELD(results)},
    {"results.compared", NULL, COLUMN_COUNT, IN_CSV, .csv = "compared", RUN_FIELD(compared)},
    {"results.different", NULL, COLUMN_COUNT, IN_CSV, .csv = "different", RUN_FIELD(different)},
    {NULL, NULL, COLUMN_COUNT, IN_CSV, .csv = "samples", .value = samples},
    {"compute_ns", "Compute", COLUMN_TIME, IN_CSV | FOR_PEOPLE | IN_VERDICTS | NOTE_IN_TERMINAL,
     .value = compute, .note = noise_note},
    {"compute_low_ns", NULL, COLUMN_TIME, IN_CSV, .value = compute_low},
    {"compute_high_ns", NULL, COLUMN_TIME, IN_CSV, .value = compute_high},
    {NULL, "Spread", COLUMN_SPREAD, IN_MARKDOWN | IN_COSTS, .value = spread},
    {"speedup.factor", "Speed-up", COLUMN_FACTOR, IN_CSV | FOR_PEOPLE | IN_VERDICTS,
     .csv = "speedup", .value = speedup_factor, .note = speedup_note},
    {"speedup.low", NULL, COLUMN_FACTOR, IN_CSV, .csv = "speedup_low", .value = speedup_low},
    {"speedup.high", NULL, COLUMN_FACTOR, IN_CSV, .csv = "speedup_high", .value = speedup_high},
    {"steady_ns", "Steady", COLUMN_TIME, IN_CSV | FOR_PEOPLE | IN_VERDICTS, .value = steady,
     .meaning = "a request of a session, which uploads live inputs alone, from memory"},
    {"steady_low_ns", NULL, COLUMN_TIME, IN_CSV, .value = steady_low},
    {"steady_high_ns", NULL, COLUMN_TIME, IN_CSV, .value = steady_high},
    {"steady_speedup.factor", "Speed-up", COLUMN_FACTOR, IN_CSV | IN_MARKDOWN | IN_VERDICTS,
     .csv = "steady_speedup", .value = steady_factor, .note = steady_note},
    {"steady_speedup.low", NULL, COLUMN_FACTOR, IN_CSV, .csv = "steady_speedup_low",
     .value = steady_factor_low},
    {"steady_speedup.high", NULL, COLUMN_FACTOR, IN_CSV, .csv = "steady_speedup_high",
     .value = steady_factor_high},
    {"per_second", "Inferences/s", COLUMN_RATE, IN_CSV | IN_MARKDOWN | IN_COSTS | WHERE_KNOWN,
     .value = per_second, .meaning = "steady requests in a second, one after the other"},
    {"transfer_ns", "Transfer", COLUMN_TIME, IN_CSV | FOR_PEOPLE | IN_VERDICTS, .value = transfer},
    {"decode_ns", "Decode", COLUMN_TIME, IN_CSV | FOR_PEOPLE | IN_VERDICTS, .value = decode},
    {"median_ns", "Whole run", COLUMN_TIME, IN_CSV | IN_MARKDOWN | IN_COSTS, .value = median},
    {"low_ns", NULL, COLUMN_TIME, IN_CSV, .value = low},
    {"high_ns", NULL, COLUMN_TIME, IN_CSV, .value = high},
    {NULL, NULL, COLUMN_TIME, IN_CSV, .csv = "least_ns", .value = least},
    {NULL, NULL, COLUMN_TIME, IN_CSV, .csv = "most_ns", .value = most},
    {"p95_ns", "p95", COLUMN_TIME, IN_CSV | IN_MARKDOWN | WHERE_KNOWN | IN_COSTS, .value = p95},
    {"p99_ns", "p99", COLUMN_TIME, IN_CSV | IN_MARKDOWN | WHERE_KNOWN | IN_COSTS, .value = p99},
    {NULL, NULL, COLUMN_TEXT, IN_CSV, .csv = "profile_clock", .value = profile_clock},
    {"profile.overhead", NULL, COLUMN_FACTOR, IN_CSV, .csv = "profile_overhead", .value = overhead},
    {"open_device_ns", "Start-up", COLUMN_TIME, IN_CSV | IN_COSTS | DASH_IF_0,
     RUN_FIELD(open_device_nanoseconds)},
    {"open_transcript_ns", "Reading", COLUMN_TIME, IN_CSV | IN_COSTS | DASH_IF_0,
     RUN_FIELD(open_transcript_nanoseconds)},
    {"compile_ns", "Kernels", COLUMN_TIME, IN_CSV | IN_COSTS | DASH_IF_0,
     RUN_FIELD(compile_nanoseconds), .note = loaded_note},
    {"warm_up_ns", "Warm-up", COLUMN_TIME, IN_CSV | IN_COSTS | DASH_IF_0,
     RUN_FIELD(warm_up_nanoseconds)},
    {"process_ns", "Process", COLUMN_TIME, IN_CSV | IN_COSTS | DASH_IF_0,
     RUN_FIELD(process_nanoseconds)},
    {"first_result.cold_ns", "First, cold", COLUMN_TIME,
     IN_CSV | IN_MARKDOWN | WHERE_KNOWN | IN_FIRST | NONE_IF_0, .csv = "first_cold_ns",
     RUN_FIELD(cold.nanoseconds),
     .meaning = "from the start of a process to its first verified result, with empty caches"},
    {"first_result.compile_cold_ns", "of it kernels", COLUMN_TIME, IN_CSV | IN_FIRST | NONE_IF_0,
     .csv = "compile_cold_ns", RUN_FIELD(cold.compile_nanoseconds)},
    {"first_result.warm_ns", "First, warm", COLUMN_TIME,
     IN_CSV | IN_MARKDOWN | WHERE_KNOWN | IN_FIRST | NONE_IF_0, .csv = "first_warm_ns",
     RUN_FIELD(warm.nanoseconds), .meaning = "the same with the caches that this left"},
    {"first_result.compile_warm_ns", "of it kernels", COLUMN_TIME, IN_CSV | IN_FIRST | NONE_IF_0,
     .csv = "compile_warm_ns", RUN_FIELD(warm.compile_nanoseconds)},
    {NULL, "Kernels", COLUMN_TIME, IN_MARKDOWN, .value = kernels, .note = kernels_note},
    {"fallbacks", "On the host", COLUMN_COUNT,
     IN_CSV | FOR_PEOPLE | IN_VERDICTS | WHERE_KNOWN | NONE_IF_0, FIGURE},
    {"roofline_ns", NULL, COLUMN_TIME, IN_CSV | NONE_IF_0, RUN_FIELD(roofline_nanoseconds)},
    {NULL, "Of its rates", COLUMN_SHARE, IN_MARKDOWN | WHERE_KNOWN | IN_VERDICTS,
     .value = of_its_rates, .note = caches_note,
     .meaning = "the share of the compute time that the device's measured rates of copies and "
                "products allow; caches make some faster than that"},
    {"programs_built", NULL, COLUMN_COUNT, IN_CSV, RUN_FIELD(programs_built)},
    {"programs_loaded", NULL, COLUMN_COUNT, IN_CSV, RUN_FIELD(programs_loaded)},
    {"device_memory_peak", "Memory", COLUMN_BYTES, IN_CSV | IN_COSTS | DASH_IF_0, FIGURE},
    {"host_memory_peak", "Memory of the host", COLUMN_BYTES, IN_CSV | IN_COSTS | DASH_IF_0,
     RUN_FIELD(host_bytes)},
    {NULL, NULL, COLUMN_TEXT, IN_CSV, .csv = "tuned", .value = tuned},
    {"fault", NULL, COLUMN_TEXT, IN_CSV, .value = fault},
};

const struct column_table compare_run_columns = {
    .columns = run_columns,
    .count = sizeof run_columns / sizeof *run_columns,
    .figures = 1 + offsetof(struct compare_run, figures),
};

_Static_assert(sizeof run_columns / sizeof *run_columns <= COMPARE_COLUMNS_MAX,
               "a run has room for the figures of all columns");

bool column_is_shown(const struct column *column, const struct comparison *comparison,
                     unsigned place)
{
    struct column_value value;
    if (!(column->places & place))
        return false;
    bool shown = !(column->places & WHERE_KNOWN);
    for (size_t i = 0; i < comparison->run_count && !shown; i++)
        shown =
            column_is_known(&compare_run_columns, column, comparison, &comparison->runs[i], &value);
    return shown;
}

const char *compare_column_text(const struct column *column, const struct comparison *comparison,
                                const struct compare_run *run, bool with_note,
                                char text[COLUMN_TEXT_SIZE])
{
    return column_text(&compare_run_columns, column, comparison, run, with_note, text);
}

/* ---------------------------------------------------------------- devices */

#define DEVICE_FIELD(member) COLUMN_FIELD(struct compare_device, member)

COLUMN_OF(title, struct compare_device, text, compare_device_name(it))
COLUMN_OF(driver_name, struct compare_device, text, compare_driver_name(it))
COLUMN_OF(emulator, struct compare_device, text,
          it->emulator ? "it stands for hardware that is not there" : "")
COLUMN_OF(tuned_how, struct compare_device, text,
          !*it->tuning    ? ""
          : !it->tuned    ? "no"
          : *it->tuned_by ? it->tuned_by
                          : "yes")

/* Known where its tuning is. */
COLUMN_IF(is_tuned, struct compare_device, number, *it->tuning, it->tuned)

static bool products(const void *context, const void *record, struct column_value *value)
{
    const struct compare_device *device = record;
    (void)context;
    snprintf(value->room, sizeof value->room, "%.3g", (double)device->products / 1e9);
    value->text = value->room;
    return device->products > 0;
}

static const struct column device_columns[] = {
    {"index", "Selector", COLUMN_TEXT, IN_CARD, DEVICE_FIELD(selector)},
    {"name", NULL, COLUMN_TEXT, 0, DEVICE_FIELD(name)},
    {"title", NULL, COLUMN_TEXT, 0, .value = title},
    {NULL, "Driver's name", COLUMN_TEXT, IN_CARD, .value = driver_name},
    {"type", "Type", COLUMN_TEXT, IN_CARD, DEVICE_FIELD(type)},
    {NULL, "Emulator", COLUMN_TEXT, IN_CARD, .value = emulator},
    {"platform", "Platform", COLUMN_TEXT, IN_CARD, DEVICE_FIELD(platform)},
    {"platform_version", "Platform's version", COLUMN_TEXT, IN_CARD,
     DEVICE_FIELD(platform_version)},
    {"vendor", "Vendor", COLUMN_TEXT, IN_CARD, DEVICE_FIELD(vendor)},
    {"driver", "Driver", COLUMN_TEXT, IN_CARD, DEVICE_FIELD(driver)},
    {"version", "Version", COLUMN_TEXT, IN_CARD, DEVICE_FIELD(version)},
    {"emulator", NULL, COLUMN_FLAG, 0, DEVICE_FIELD(emulator)},
    {"compute_units", "Compute units", COLUMN_COUNT, IN_CARD, DEVICE_FIELD(compute_units)},
    {"clock_mhz", "Clock", COLUMN_COUNT, IN_CARD, DEVICE_FIELD(clock_mhz), .unit = "&#8239;MHz"},
    {"global_memory", "Memory", COLUMN_BYTES, IN_CARD, DEVICE_FIELD(global_memory)},
    {"max_allocation", "Largest buffer", COLUMN_BYTES, IN_CARD, DEVICE_FIELD(max_allocation)},
    {"local_memory", "Local memory", COLUMN_BYTES, IN_CARD, DEVICE_FIELD(local_memory)},
    {"max_work_group_size", "Work-group", COLUMN_COUNT, IN_CARD, DEVICE_FIELD(max_work_group_size),
     .unit = " work-items"},
    {"tuned", NULL, COLUMN_FLAG, 0, DEVICE_FIELD(tuned), .value = is_tuned},
    {"tuned_by", NULL, COLUMN_TEXT, NONE_IF_0, DEVICE_FIELD(tuned_by)},
    {"tuning", NULL, COLUMN_TEXT, NONE_IF_0, DEVICE_FIELD(tuning)},
    {NULL, "Tuned", COLUMN_TEXT, IN_CARD, .value = tuned_how},
    {"copied_bytes_per_s", "Copies", COLUMN_BYTES, IN_CARD | NONE_IF_0, DEVICE_FIELD(copied_bytes),
     .unit = "/s"},
    {"products_per_s", NULL, COLUMN_COUNT, NONE_IF_0, DEVICE_FIELD(products)},
    {NULL, "Products", COLUMN_TEXT, IN_CARD, .value = products,
     .unit = "&#8239;G/s of 64-bit integers"},
};

const struct column_table compare_device_columns = COLUMN_TABLE(device_columns);

#define CHECK_FIELD(member) COLUMN_FIELD(struct compare_check, member)

static const struct column check_columns[] = {
    {"verified", NULL, COLUMN_FLAG, 0, CHECK_FIELD(verified)},
    {"calls", NULL, COLUMN_COUNT, 0, CHECK_FIELD(calls)},
    {"failed", NULL, COLUMN_COUNT, 0, CHECK_FIELD(failed)},
    {"unsupported", NULL, COLUMN_COUNT, 0, CHECK_FIELD(unsupported)},
    {"message", NULL, COLUMN_TEXT, 0, CHECK_FIELD(message)},
};

const struct column_table compare_check_columns = COLUMN_TABLE(check_columns);

/* ---------------------------------------------------------------- what is around them */

#define ORIGIN_FIELD(member) COLUMN_FIELD(struct compare_origin, member)

static const struct column origin_columns[] = {
    {"system", NULL, COLUMN_TEXT, 0, ORIGIN_FIELD(system)},
    {"processor", NULL, COLUMN_TEXT, 0, ORIGIN_FIELD(processor)},
    {"model", NULL, COLUMN_TEXT, 0, ORIGIN_FIELD(model)},
    {"governor", NULL, COLUMN_TEXT, 0, ORIGIN_FIELD(governor)},
    {"processors", NULL, COLUMN_COUNT, 0, ORIGIN_FIELD(processors)},
    {"memory", NULL, COLUMN_BYTES, 0, ORIGIN_FIELD(memory_bytes)},
    {"load_before", NULL, COLUMN_HUNDREDTHS, 0, ORIGIN_FIELD(load_before)},
    {"load_after", NULL, COLUMN_HUNDREDTHS, 0, ORIGIN_FIELD(load_after)},
};

const struct column_table compare_origin_columns = COLUMN_TABLE(origin_columns);

/* ---------------------------------------------------------------- ranks */

const char *compare_rank_name(const struct compare_rank *rank, char text[RANK_TEXT_SIZE])
{
    if (rank->is_all)
        snprintf(text, RANK_TEXT_SIZE, "all");
    else
        snprintf(text, RANK_TEXT_SIZE, "%" PRIu64, rank->rank);
    return text;
}

static bool rank_name(const void *context, const void *record, struct column_value *value)
{
    (void)context;
    value->text = compare_rank_name(record, value->room);
    return true;
}

/* Of a record's report. */
#define REPORT_COLUMN(name, member, known, expression)                                    \
    static bool name(const void *context, const void *record, struct column_value *value) \
    {                                                                                     \
        const struct compare_ranks *ranks = context;                                      \
        const struct compare_rank *it = record;                                           \
        (void)ranks;                                                                      \
        (void)it;                                                                         \
        if (!(known))                                                                     \
            return false;                                                                 \
        value->member = expression;                                                       \
        return true;                                                                      \
    }

COLUMN_IF(rank_number, struct compare_rank, number, !it->is_all, it->rank)
REPORT_COLUMN(report_file, text, true, ranks->report)
REPORT_COLUMN(report_transcript, text, true, ranks->transcript)
REPORT_COLUMN(rank_requests, number, ranks->is_served, it->requests)
REPORT_COLUMN(rank_rate, factor, ranks->is_served && it->nanoseconds > 0,
              (double)it->requests * 1e9 / (double)it->nanoseconds)

#define RANK_FIELD(member) COLUMN_FIELD(struct compare_rank, member)

enum {
    OF_RANKS = IN_CSV | FOR_PEOPLE | IN_VERDICTS,
    WHERE_ANY = OF_RANKS | NONE_IF_0 | WHERE_KNOWN,
    NOT_ON_PAGE = WHERE_ANY & ~IN_VERDICTS, /* it has no room for all */
};

static const struct column rank_columns[] = {
    {NULL, NULL, COLUMN_TEXT, IN_CSV, .csv = "transcript", .value = report_transcript},
    {NULL, NULL, COLUMN_TEXT, IN_CSV, .csv = "report", .value = report_file},
    {NULL, "Rank", COLUMN_TEXT, IN_CSV | FOR_PEOPLE, .csv = "rank", .value = rank_name},
    {"rank", NULL, COLUMN_COUNT, 0, RANK_FIELD(rank), .value = rank_number},
    {"host", "Host", COLUMN_TEXT, IN_CSV | FOR_PEOPLE | SHRINKS | NONE_IF_0, RANK_FIELD(host)},
    {"device", "Device", COLUMN_TEXT, IN_CSV | FOR_PEOPLE | SHRINKS | NONE_IF_0,
     RANK_FIELD(device)},
    {"requests", "Requests", COLUMN_COUNT, OF_RANKS | WHERE_KNOWN, RANK_FIELD(requests),
     .value = rank_requests},
    {"left_out", "Left out", COLUMN_COUNT, WHERE_ANY, RANK_FIELD(left_out)},
    {"failed", "Failed", COLUMN_COUNT, WHERE_ANY, RANK_FIELD(failed)},
    {"batches", "Batches", COLUMN_COUNT, NOT_ON_PAGE, RANK_FIELD(batches)},
    {"ns", "Time", COLUMN_TIME, OF_RANKS | DASH_IF_0, RANK_FIELD(nanoseconds)},
    {"requests_per_second", "Requests/s", COLUMN_RATE, OF_RANKS | WHERE_KNOWN, .value = rank_rate},
    {"latency_ns.median", "Latency", COLUMN_TIME, WHERE_ANY, .csv = "latency_median_ns",
     RANK_FIELD(median)},
    {"latency_ns.p95", "p95", COLUMN_TIME, WHERE_ANY, .csv = "latency_p95_ns", RANK_FIELD(p95)},
    {"latency_ns.p99", "p99", COLUMN_TIME, WHERE_ANY, .csv = "latency_p99_ns", RANK_FIELD(p99)},
    {"latency_ns.longest", NULL, COLUMN_TIME, IN_CSV | NONE_IF_0, .csv = "latency_longest_ns",
     RANK_FIELD(longest)},
    {"longest_wait_ns", "Longest wait", COLUMN_TIME, WHERE_ANY, RANK_FIELD(longest_wait),
     .meaning = "the longest that a rank waited for the number of its next request"},
    {"exchange_ns", "Exchange", COLUMN_TIME, WHERE_ANY, RANK_FIELD(exchange_nanoseconds),
     .meaning = "the part of the time in exchanges with other ranks, waiting for them too"},
    {"bytes_sent", "Sent", COLUMN_BYTES, WHERE_ANY, RANK_FIELD(bytes_sent)},
    {"bytes_uploaded", "Uploaded", COLUMN_BYTES, NOT_ON_PAGE, RANK_FIELD(bytes_uploaded)},
    {"device_bytes", "Memory", COLUMN_BYTES, WHERE_ANY, RANK_FIELD(device_bytes)},
    {"device_bytes_peak", "Memory", COLUMN_BYTES, WHERE_ANY, RANK_FIELD(device_bytes_peak)},
};

const struct column_table compare_rank_columns = COLUMN_TABLE(rank_columns);

bool rank_column_is_shown(const struct column *column, const struct compare_ranks *ranks,
                          unsigned place)
{
    struct column_value value;
    if (!(column->places & place))
        return false;
    bool shown = !(column->places & WHERE_KNOWN);
    for (size_t i = 0; i < ranks->count && !shown; i++)
        shown = column_is_known(&compare_rank_columns, column, ranks, &ranks->rows[i], &value);
    return shown;
}

bool rank_column_is_shown_anywhere(const struct column *column, const struct comparison *comparison,
                                   unsigned place)
{
    bool shown = false;
    for (size_t i = 0; i < comparison->ranks_count && !shown; i++)
        shown = rank_column_is_shown(column, &comparison->ranks[i], place);
    return shown;
}

const char *compare_ranks_command(const struct compare_ranks *ranks)
{
    return ranks->is_served ? "serve" : "run";
}
