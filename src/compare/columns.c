#include "compare/columns.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* ---------------------------------------------------------------- names and verdicts */

#define TEXT_COLUMN(name, expression)                                                    \
    static bool name(const struct comparison *comparison, const struct compare_run *run, \
                     struct column_value *value)                                         \
    {                                                                                    \
        const struct compare_device *device = &comparison->devices[run->device];         \
        (void)device;                                                                    \
        value->text = expression;                                                        \
        return true;                                                                     \
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

#define TIME_COLUMN(name, least_samples)                                                 \
    static bool name(const struct comparison *comparison, const struct compare_run *run, \
                     struct column_value *value)                                         \
    {                                                                                    \
        (void)comparison;                                                                \
        struct compare_times times;                                                      \
        if (run->sample_count < least_samples || !compare_times_of(run, &times))         \
            return false;                                                                \
        value->number = times.name;                                                      \
        return true;                                                                     \
    }

TIME_COLUMN(median, 1)
TIME_COLUMN(low, 1)
TIME_COLUMN(high, 1)
TIME_COLUMN(least, 1)
TIME_COLUMN(most, 1)
TIME_COLUMN(p95, P95_SAMPLES)
TIME_COLUMN(p99, P99_SAMPLES)

static bool per_second(const struct comparison *comparison, const struct compare_run *run,
                       struct column_value *value)
{
    (void)comparison;
    struct compare_times times;
    if (!compare_is_right(run) || !compare_times_of(run, &times) || times.median == 0)
        return false;
    value->factor = 1e9 / (double)times.median;
    return true;
}

static bool spread(const struct comparison *comparison, const struct compare_run *run,
                   struct column_value *value)
{
    (void)comparison;
    struct compare_times times;
    if (run->sample_count < 2 || !compare_times_of(run, &times))
        return false;
    value->factor = compare_spread(&times);
    return true;
}

static void noise_note(const struct comparison *comparison, const struct compare_run *run,
                       char text[UNIT_TEXT_SIZE])
{
    (void)comparison;
    strcpy(text, compare_is_noisy(run) ? "noisy" : "");
}

static bool samples(const struct comparison *comparison, const struct compare_run *run,
                    struct column_value *value)
{
    (void)comparison;
    value->number = run->sample_count;
    return true;
}

#define SPEEDUP_COLUMN(name, member)                                                     \
    static bool name(const struct comparison *comparison, const struct compare_run *run, \
                     struct column_value *value)                                         \
    {                                                                                    \
        struct compare_speedup speedup;                                                  \
        if (!compare_speedup_of(comparison, run, &speedup))                              \
            return false;                                                                \
        value->factor = speedup.member;                                                  \
        return true;                                                                     \
    }

SPEEDUP_COLUMN(speedup_factor, factor)
SPEEDUP_COLUMN(speedup_low, low)
SPEEDUP_COLUMN(speedup_high, high)

static void speedup_note(const struct comparison *comparison, const struct compare_run *run,
                         char text[UNIT_TEXT_SIZE])
{
    struct compare_speedup speedup;
    char low[UNIT_TEXT_SIZE], high[UNIT_TEXT_SIZE];
    *text = 0;
    if (run == compare_reference(comparison, run->transcript))
        strcpy(text, "the first");
    else if (!compare_speedup_of(comparison, run, &speedup))
        return;
    else if (speedup.low <= 1 && speedup.high >= 1)
        strcpy(text, "no difference");
    else
        snprintf(text, UNIT_TEXT_SIZE, "%.12s to %.12s", text_factor(speedup.low, low),
                 text_factor(speedup.high, high));
}

static bool overhead(const struct comparison *comparison, const struct compare_run *run,
                     struct column_value *value)
{
    (void)comparison;
    return compare_overhead_of(run, &value->factor);
}

/* The share of what kernels' segments took that the device's rates allow. */
static bool of_its_rates(const struct comparison *comparison, const struct compare_run *run,
                         struct column_value *value)
{
    (void)comparison;
    if (run->roofline_nanoseconds == 0 || run->compute_nanoseconds == 0)
        return false;
    value->factor = 100 * (double)run->roofline_nanoseconds / (double)run->compute_nanoseconds;
    return true;
}

/* What is in caches is faster than copies of memory are. */
static void caches_note(const struct comparison *comparison, const struct compare_run *run,
                        char text[UNIT_TEXT_SIZE])
{
    struct column_value share;
    bool is_beyond = of_its_rates(comparison, run, &share) && share.factor > SHARE_MAX;
    strcpy(text, is_beyond ? "caches" : "");
}

/* ---------------------------------------------------------------- what a process costs */

static bool kernels(const struct comparison *comparison, const struct compare_run *run,
                    struct column_value *value)
{
    (void)comparison;
    value->number = compare_kernels_of(run);
    return value->number > 0;
}

/* Where some came out of healcl's cache. */
static void loaded_note(const struct comparison *comparison, const struct compare_run *run,
                        char text[UNIT_TEXT_SIZE])
{
    (void)comparison;
    *text = 0;
    if (run->programs_loaded > 0)
        snprintf(text, UNIT_TEXT_SIZE, "%" PRIu64 " of %" PRIu64 " cached",
                 run->programs_loaded % 100000,
                 (run->programs_built + run->programs_loaded) % 100000);
}

static void kernels_note(const struct comparison *comparison, const struct compare_run *run,
                         char text[UNIT_TEXT_SIZE])
{
    *text = 0;
    if (run->cold.nanoseconds == 0)
        loaded_note(comparison, run, text);
}

/* ---------------------------------------------------------------- the table */

#define FIELD(member) .field = offsetof(struct compare_run, member)
#define FIGURE .field = 0

enum { FOR_PEOPLE = IN_TERMINAL | IN_MARKDOWN };

const struct compare_column compare_columns[] = {
    {"transcript", "transcript", NULL, COLUMN_TEXT, IN_CSV, .value = transcript},
    {"index", NULL, NULL, COLUMN_TEXT, IN_CSV, .value = selector},
    {"device", "device", NULL, COLUMN_TEXT, IN_CSV, .value = device_name},
    {"platform", "platform", NULL, COLUMN_TEXT, IN_CSV, .value = platform},
    {"driver", "driver", NULL, COLUMN_TEXT, IN_CSV, .value = driver},
    {"baseline", NULL, NULL, COLUMN_TEXT, IN_CSV, .value = baseline},
    {"outcome", "outcome", NULL, COLUMN_TEXT, IN_CSV, .value = outcome},
    {"message", "message", NULL, COLUMN_TEXT, IN_CSV, .value = message},
    {"warning", "warning", NULL, COLUMN_TEXT, IN_CSV, .value = warning},
    {"results", "results.total", NULL, COLUMN_COUNT, IN_CSV, FIELD(results)},
    {"compared", "results.compared", NULL, COLUMN_COUNT, IN_CSV, FIELD(compared)},
    {"different", "results.different", NULL, COLUMN_COUNT, IN_CSV, FIELD(different)},
    {"samples", NULL, NULL, COLUMN_COUNT, IN_CSV, .value = samples},
    {"median_ns", "median_ns", "Median", COLUMN_TIME, IN_CSV | FOR_PEOPLE | IN_VERDICTS,
     .value = median},
    {"per_second", "per_second", "Inferences/s", COLUMN_RATE,
     IN_CSV | IN_MARKDOWN | IN_VERDICTS | WHERE_KNOWN, .value = per_second,
     .meaning = "runs of the transcript in a second, 1 over the median"},
    {"low_ns", "low_ns", NULL, COLUMN_TIME, IN_CSV, .value = low},
    {"high_ns", "high_ns", NULL, COLUMN_TIME, IN_CSV, .value = high},
    {"least_ns", NULL, NULL, COLUMN_TIME, IN_CSV, .value = least},
    {"most_ns", NULL, NULL, COLUMN_TIME, IN_CSV, .value = most},
    {NULL, NULL, "Spread", COLUMN_SPREAD, FOR_PEOPLE | IN_VERDICTS | NOTE_IN_TERMINAL,
     .value = spread, .note = noise_note},
    {"p95_ns", "p95_ns", "p95", COLUMN_TIME, IN_CSV | IN_MARKDOWN | WHERE_KNOWN | IN_VERDICTS,
     .value = p95},
    {"p99_ns", "p99_ns", "p99", COLUMN_TIME, IN_CSV | IN_MARKDOWN | WHERE_KNOWN | IN_VERDICTS,
     .value = p99},
    {"speedup", "speedup.factor", "Speed-up", COLUMN_FACTOR, IN_CSV | FOR_PEOPLE | IN_VERDICTS,
     .value = speedup_factor, .note = speedup_note},
    {"speedup_low", "speedup.low", NULL, COLUMN_FACTOR, IN_CSV, .value = speedup_low},
    {"speedup_high", "speedup.high", NULL, COLUMN_FACTOR, IN_CSV, .value = speedup_high},
    {"profile_clock", NULL, NULL, COLUMN_TEXT, IN_CSV, .value = profile_clock},
    {"profile_overhead", "profile.overhead", NULL, COLUMN_FACTOR, IN_CSV, .value = overhead},
    {"open_device_ns", "open_device_ns", "Start-up", COLUMN_TIME, IN_CSV | IN_COSTS,
     FIELD(open_device_nanoseconds)},
    {"open_transcript_ns", "open_transcript_ns", "Reading", COLUMN_TIME, IN_CSV | IN_COSTS,
     FIELD(open_transcript_nanoseconds)},
    {"compile_ns", "compile_ns", "Kernels", COLUMN_TIME, IN_CSV | IN_COSTS,
     FIELD(compile_nanoseconds), .note = loaded_note},
    {"warm_up_ns", "warm_up_ns", "Warm-up", COLUMN_TIME, IN_CSV | IN_COSTS,
     FIELD(warm_up_nanoseconds)},
    {"process_ns", "process_ns", "Process", COLUMN_TIME, IN_CSV | IN_COSTS,
     FIELD(process_nanoseconds)},
    {"first_cold_ns", "first_result.cold_ns", "First, cold", COLUMN_TIME,
     IN_CSV | IN_MARKDOWN | WHERE_KNOWN | IN_FIRST | NONE_IF_0, FIELD(cold.nanoseconds),
     .meaning = "from the start of a process to its first verified result, with empty caches"},
    {"compile_cold_ns", "first_result.compile_cold_ns", "of it kernels", COLUMN_TIME,
     IN_CSV | IN_FIRST | NONE_IF_0, FIELD(cold.compile_nanoseconds)},
    {"first_warm_ns", "first_result.warm_ns", "First, warm", COLUMN_TIME,
     IN_CSV | IN_MARKDOWN | WHERE_KNOWN | IN_FIRST | NONE_IF_0, FIELD(warm.nanoseconds),
     .meaning = "the same with the caches that this left"},
    {"compile_warm_ns", "first_result.compile_warm_ns", "of it kernels", COLUMN_TIME,
     IN_CSV | IN_FIRST | NONE_IF_0, FIELD(warm.compile_nanoseconds)},
    {NULL, NULL, "Kernels", COLUMN_TIME, IN_MARKDOWN, .value = kernels, .note = kernels_note},
    {"fallbacks", "fallbacks", "On the host", COLUMN_COUNT,
     IN_CSV | FOR_PEOPLE | IN_VERDICTS | WHERE_KNOWN | NONE_IF_0, FIGURE},
    {"compute_ns", "compute_ns", NULL, COLUMN_TIME, IN_CSV | NONE_IF_0, FIELD(compute_nanoseconds)},
    {"roofline_ns", "roofline_ns", NULL, COLUMN_TIME, IN_CSV | NONE_IF_0,
     FIELD(roofline_nanoseconds)},
    {NULL, NULL, "Of its rates", COLUMN_SHARE,
     FOR_PEOPLE | WHERE_KNOWN | IN_VERDICTS | NOTE_IN_TERMINAL, .value = of_its_rates,
     .note = caches_note,
     .meaning = "the share of the time of segments with kernels that the device's measured rates "
                "of copies and products allow; caches make some faster than that"},
    {"programs_built", "programs_built", NULL, COLUMN_COUNT, IN_CSV, FIELD(programs_built)},
    {"programs_loaded", "programs_loaded", NULL, COLUMN_COUNT, IN_CSV, FIELD(programs_loaded)},
    {"device_memory_peak", "device_memory_peak", "Memory", COLUMN_BYTES, IN_CSV | IN_COSTS, FIGURE},
    {"host_memory_peak", "host_memory_peak", "Memory of the host", COLUMN_BYTES, IN_CSV | IN_COSTS,
     FIELD(host_bytes)},
    {"tuned", NULL, NULL, COLUMN_TEXT, IN_CSV, .value = tuned},
    {"fault", "fault", NULL, COLUMN_TEXT, IN_CSV, .value = fault},
};

const size_t compare_column_count = sizeof compare_columns / sizeof *compare_columns;

_Static_assert(sizeof compare_columns / sizeof *compare_columns <= COMPARE_COLUMNS_MAX,
               "a run has room for the figures of all columns");

/* ---------------------------------------------------------------- values */

/* Where a run keeps what was measured. */
static size_t field_of(const struct compare_column *column)
{
    return column->field ? column->field
                         : offsetof(struct compare_run, figures) +
                               (size_t)(column - compare_columns) * sizeof(uint64_t);
}

bool column_is_decimal(const struct compare_column *column)
{
    return column->kind == COLUMN_FACTOR || column->kind == COLUMN_RATE ||
           column->kind == COLUMN_SPREAD || column->kind == COLUMN_SHARE;
}

double share_shown(double percent)
{
    return percent < SHARE_MAX ? percent : SHARE_MAX;
}

bool column_value(const struct compare_column *column, const struct comparison *comparison,
                  const struct compare_run *run, struct column_value *value)
{
    *value = (struct column_value){.text = ""};
    if (column->value)
        return column->value(comparison, run, value);
    memcpy(&value->number, (const char *)run + field_of(column), sizeof value->number);
    return value->number > 0 || !(column->places & NONE_IF_0);
}

bool column_is_known(const struct compare_column *column, const struct comparison *comparison,
                     const struct compare_run *run, struct column_value *value)
{
    bool number = column->kind == COLUMN_TIME || column->kind == COLUMN_BYTES;
    return column_value(column, comparison, run, value) &&
           !(number && !column->value && value->number == 0);
}

bool column_is_shown(const struct compare_column *column, const struct comparison *comparison,
                     unsigned place)
{
    struct column_value value;
    if (!(column->places & place))
        return false;
    bool shown = !(column->places & WHERE_KNOWN);
    for (size_t i = 0; i < comparison->run_count && !shown; i++)
        shown = column_is_known(column, comparison, &comparison->runs[i], &value);
    return shown;
}

const char *column_text(const struct compare_column *column, const struct comparison *comparison,
                        const struct compare_run *run, bool with_note, char text[COLUMN_TEXT_SIZE])
{
    struct column_value value;
    char unit[UNIT_TEXT_SIZE] = "", note[UNIT_TEXT_SIZE] = "";
    const char *word = unit;
    if (!column_is_known(column, comparison, run, &value)) {
        snprintf(text, COLUMN_TEXT_SIZE, "-");
        return text;
    }
    switch (column->kind) {
    case COLUMN_TEXT: word = value.text; break;
    case COLUMN_COUNT: snprintf(unit, sizeof unit, "%" PRIu64, value.number); break;
    case COLUMN_TIME: text_time(value.number, unit); break;
    case COLUMN_BYTES: text_bytes(value.number, unit); break;
    case COLUMN_FACTOR:
    case COLUMN_RATE: text_factor(value.factor, unit); break;
    case COLUMN_SPREAD: snprintf(unit, sizeof unit, "%.1f %%", value.factor); break;
    case COLUMN_SHARE: snprintf(unit, sizeof unit, "%.3g %%", share_shown(value.factor)); break;
    }
    if (column->note && with_note)
        column->note(comparison, run, note);
    snprintf(text, COLUMN_TEXT_SIZE, *note ? "%.80s (%s)" : "%.80s", word, note);
    return text;
}

/* ---------------------------------------------------------------- JSON */

/* The object that a path leads to, made where it is missing; *key: what is behind the last dot. */
static cJSON *object_at(struct json *json, cJSON *object, const char *path, const char **key)
{
    char name[32];
    const char *dot = strchr(path, '.');
    *key = dot ? dot + 1 : path;
    if (!dot)
        return object;
    snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
    cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, name);
    return inner ? inner : json_object(json, object, name);
}

void columns_add_json(struct json *json, cJSON *object, const struct comparison *comparison,
                      const struct compare_run *run)
{
    for (size_t i = 0; i < compare_column_count; i++) {
        const struct compare_column *column = &compare_columns[i];
        struct column_value value;
        if (!column->path || !column_value(column, comparison, run, &value))
            continue;
        const char *key;
        cJSON *at = object_at(json, object, column->path, &key);
        if (column->kind == COLUMN_TEXT)
            json_string(json, at, key, value.text);
        else if (column_is_decimal(column))
            json_decimal(json, at, key, value.factor);
        else
            json_number(json, at, key, value.number);
    }
}

void columns_read_json(const cJSON *object, struct compare_run *run)
{
    for (size_t i = 0; i < compare_column_count; i++) {
        const struct compare_column *column = &compare_columns[i];
        if (!column->path || column->value)
            continue;
        const char *dot = strchr(column->path, '.');
        const cJSON *at = object;
        char name[32];
        if (dot) {
            snprintf(name, sizeof name, "%.*s", (int)(dot - column->path), column->path);
            at = cJSON_GetObjectItemCaseSensitive(object, name);
        }
        uint64_t number =
            json_number_of(cJSON_GetObjectItemCaseSensitive(at, dot ? dot + 1 : column->path));
        memcpy((char *)run + field_of(column), &number, sizeof number);
    }
}
