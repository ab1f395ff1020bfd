#include "cli/comparison.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { FOR_PEOPLE = IN_TERMINAL | IN_MARKDOWN | ON_PAGE, MEASURED = COPIED | ALWAYS | IN_CSV };

static const struct compare_column run_columns[] = {
    {"transcript", NULL, KIND_TEXT, .places = ALWAYS | IN_CSV},
    {"index", NULL, KIND_TEXT, .places = OF_DEVICE | IN_CSV},
    {"device", NULL, KIND_TEXT, .places = ALWAYS | IN_CSV},
    {"platform", NULL, KIND_TEXT, .places = ALWAYS | IN_CSV},
    {"driver", NULL, KIND_TEXT, .places = ALWAYS | IN_CSV},
    {"baseline", NULL, KIND_TEXT, .places = OF_DEVICE | IN_CSV},
    {"outcome", NULL, KIND_TEXT, .places = ALWAYS | IN_CSV},
    {"message", NULL, KIND_TEXT, .places = ALWAYS | IN_CSV},
    {"warning", NULL, KIND_TEXT, .places = ALWAYS | IN_CSV},
    {"results.total", NULL, KIND_COUNT, .places = MEASURED, .csv = "results"},
    {"results.compared", NULL, KIND_COUNT, .places = MEASURED, .csv = "compared"},
    {"results.different", NULL, KIND_COUNT, .places = MEASURED, .csv = "different"},
    {"samples_ns", NULL, KIND_COUNT, .places = IN_CSV, .csv = "samples"},
    {"compute_ns", "compute", KIND_TIME, .places = IN_CSV | FOR_PEOPLE | NOTE_IN_TERMINAL,
     .note = NOTE_NOISY},
    {"compute_low_ns", NULL, KIND_TIME, .places = IN_CSV},
    {"compute_high_ns", NULL, KIND_TIME, .places = IN_CSV},
    {"spread_percent", "spread", KIND_PERCENT, .places = IN_MARKDOWN | IN_DETAILS},
    {"speedup.factor", "speed-up", KIND_FACTOR, .places = IN_CSV | FOR_PEOPLE, .csv = "speedup",
     .note = NOTE_RANGE},
    {"speedup.low", NULL, KIND_FACTOR, .places = IN_CSV, .csv = "speedup_low"},
    {"speedup.high", NULL, KIND_FACTOR, .places = IN_CSV, .csv = "speedup_high"},
    {"steady_ns", "steady", KIND_TIME, .places = IN_CSV | FOR_PEOPLE,
     .meaning = "a request of a session, which uploads live inputs alone, from memory"},
    {"steady_low_ns", NULL, KIND_TIME, .places = IN_CSV},
    {"steady_high_ns", NULL, KIND_TIME, .places = IN_CSV},
    {"steady_speedup.factor", "speed-up", KIND_FACTOR, .places = IN_CSV | IN_MARKDOWN | ON_PAGE,
     .csv = "steady_speedup", .note = NOTE_RANGE},
    {"steady_speedup.low", NULL, KIND_FACTOR, .places = IN_CSV, .csv = "steady_speedup_low"},
    {"steady_speedup.high", NULL, KIND_FACTOR, .places = IN_CSV, .csv = "steady_speedup_high"},
    {"per_second", "inferences/s", KIND_FACTOR,
     .places = IN_CSV | IN_MARKDOWN | IN_DETAILS | WHERE_KNOWN,
     .meaning = "steady requests in a second, one after the other"},
    {"transfer_ns", "transfer", KIND_TIME, .places = IN_CSV | FOR_PEOPLE},
    {"decode_ns", "decode", KIND_TIME, .places = IN_CSV | FOR_PEOPLE},
    {"median_ns", "whole run", KIND_TIME, .places = IN_CSV | IN_MARKDOWN | IN_DETAILS},
    {"low_ns", NULL, KIND_TIME, .places = IN_CSV},
    {"high_ns", NULL, KIND_TIME, .places = IN_CSV},
    {"p95_ns", "p95", KIND_TIME, .places = IN_CSV | IN_MARKDOWN | IN_DETAILS | WHERE_KNOWN},
    {"p99_ns", "p99", KIND_TIME, .places = IN_CSV | IN_MARKDOWN | IN_DETAILS | WHERE_KNOWN},
    {"profile.clock", NULL, KIND_TEXT, .places = IN_CSV, .csv = "profile_clock"},
    {"profile.overhead", NULL, KIND_FACTOR, .places = IN_CSV, .csv = "profile_overhead"},
    {"open_device_ns", "start-up", KIND_TIME, .places = MEASURED | IN_DETAILS},
    {"open_transcript_ns", "reading", KIND_TIME, .places = MEASURED | IN_DETAILS},
    {"compile_ns", "kernels", KIND_TIME, .places = MEASURED | IN_MARKDOWN | IN_DETAILS,
     .note = NOTE_CACHED},
    {"warm_up_ns", "warm-up", KIND_TIME, .places = MEASURED | IN_DETAILS},
    {"process_ns", "process", KIND_TIME, .places = MEASURED | IN_DETAILS},
    {"first_result_ns", "first result", KIND_TIME,
     .places = COPIED | IN_CSV | IN_MARKDOWN | IN_DETAILS | WHERE_KNOWN,
     .meaning = "from the start of the process, with the caches that there were"},
    {"fallbacks", "on the host", KIND_COUNT, .places = COPIED | IN_CSV | FOR_PEOPLE | WHERE_KNOWN,
     .meaning = "steps that the host ran, for the device could not"},
    {"roofline_ns", NULL, KIND_TIME, .places = COPIED | IN_CSV},
    {"rates_percent", "of its rates", KIND_SHARE, .places = IN_MARKDOWN | WHERE_KNOWN | ON_PAGE,
     .note = NOTE_CACHES,
     .meaning = "the share of the compute time that the device's measured rates of copies and "
                "products allow; caches make some faster than that"},
    {"programs_built", NULL, KIND_COUNT, .places = MEASURED},
    {"programs_loaded", NULL, KIND_COUNT, .places = MEASURED},
    {"device_memory_peak", "memory", KIND_BYTES, .places = MEASURED | IN_DETAILS},
    {"host_memory_peak", "memory of the host", KIND_BYTES, .places = MEASURED | IN_DETAILS},
    {"tuned", NULL, KIND_FLAG, .places = OF_DEVICE | IN_CSV},
    {"fault", NULL, KIND_TEXT, .places = ALWAYS | IN_CSV},
};

enum { KNOWN = COPIED | ALWAYS };

static const struct compare_column device_columns[] = {
    {"index", "Selector", KIND_TEXT, .places = KNOWN | ON_PAGE},
    {"name", "Name", KIND_TEXT, .places = KNOWN | ON_PAGE},
    {"type", "Type", KIND_TEXT, .places = KNOWN | ON_PAGE},
    {"platform", "Platform", KIND_TEXT, .places = KNOWN | ON_PAGE},
    {"platform_version", "Platform's version", KIND_TEXT, .places = KNOWN | ON_PAGE},
    {"vendor", "Vendor", KIND_TEXT, .places = KNOWN | ON_PAGE},
    {"driver", "Driver", KIND_TEXT, .places = KNOWN | ON_PAGE},
    {"version", "Version", KIND_TEXT, .places = KNOWN | ON_PAGE},
    {"emulator", "Emulator", KIND_FLAG, .places = COPIED | ON_PAGE},
    {"compute_units", "Compute units", KIND_COUNT, .places = KNOWN | ON_PAGE},
    {"clock_mhz", "Clock, MHz", KIND_COUNT, .places = KNOWN | ON_PAGE},
    {"global_memory", "Memory", KIND_BYTES, .places = KNOWN | ON_PAGE},
    {"max_allocation", "Largest buffer", KIND_BYTES, .places = KNOWN | ON_PAGE},
    {"local_memory", "Local memory", KIND_BYTES, .places = KNOWN | ON_PAGE},
    {"max_work_group_size", "Work-items of a group", KIND_COUNT, .places = KNOWN | ON_PAGE},
    {"tuned", "Tuned", KIND_FLAG, .places = COPIED | ON_PAGE},
    {"tuned_by", "Tuned by", KIND_TEXT, .places = COPIED | ON_PAGE},
    {"tuning", NULL, KIND_TEXT, .places = COPIED},
    {"copied_bytes_per_s", "Copies in a second", KIND_BYTES, .places = COPIED | ON_PAGE},
    {"products_per_s", "Products in a second", KIND_COUNT, .places = COPIED | ON_PAGE},
};

static const struct compare_column host_columns[] = {
    {"system", NULL, KIND_TEXT, .places = KNOWN},
    {"processor", NULL, KIND_TEXT, .places = KNOWN},
    {"model", NULL, KIND_TEXT, .places = KNOWN},
    {"processors", NULL, KIND_COUNT, .places = KNOWN},
    {"memory", NULL, KIND_BYTES, .places = KNOWN},
    {"load_before", NULL, KIND_DECIMAL, .places = KNOWN},
    {"load_after", NULL, KIND_DECIMAL, .places = KNOWN},
};

#define TABLE(columns)                                 \
    {                                                  \
        (columns), sizeof(columns) / sizeof *(columns) \
    }
const struct compare_columns compare_run_columns = TABLE(run_columns);
const struct compare_columns compare_device_columns = TABLE(device_columns);
const struct compare_columns compare_host_columns = TABLE(host_columns);

/* ---------------------------------------------------------------- values */

const cJSON *compare_value(const struct compare_column *column, const struct comparison *comparison,
                           const cJSON *run)
{
    return json_at(column->places & OF_DEVICE
                       ? compare_device(comparison, compare_index(run, "device_at"))
                       : run,
                   column->path);
}

/* What every run has is 0 where it is not known. */
static bool is_known(const struct compare_column *column, const cJSON *value)
{
    const char *text = cJSON_GetStringValue(value);
    return cJSON_IsBool(value) || (text && *text) ||
           (cJSON_IsNumber(value) && (value->valuedouble > 0 || !(column->places & ALWAYS)));
}

bool compare_is_shown(const struct compare_column *column, const struct comparison *comparison)
{
    const cJSON *run = column->places & WHERE_KNOWN ? comparison->runs->child : NULL;
    while (run && !is_known(column, compare_value(column, comparison, run)))
        run = run->next;
    return run || !(column->places & WHERE_KNOWN);
}

static void put_range(const cJSON *run, const char *path, char note[CELL_SIZE])
{
    char figure[32];
    snprintf(figure, sizeof figure, "%.*s", (int)strcspn(path, "."), path);
    const cJSON *speedup = json_at(run, figure);
    const double low = compare_number(speedup, "low"), high = compare_number(speedup, "high");
    if (low >= 1 && high <= 1)
        strcpy(note, "the first");
    else if (low <= 1 && high >= 1)
        strcpy(note, "no difference");
    else
        snprintf(note, CELL_SIZE, "%s to %s", TEXT_FACTOR(low), TEXT_FACTOR(high));
}

static void put_note(const struct compare_column *column, const cJSON *run, char note[CELL_SIZE])
{
    const double built = compare_number(run, "programs_built"),
                 loaded = compare_number(run, "programs_loaded");
    switch (column->note) {
    case NO_NOTE: break;
    case NOTE_NOISY:
        strcpy(note, compare_spreads(run, &compare_figures[COMPARE_COMPUTE]) ? "noisy" : "");
        break;
    case NOTE_RANGE: put_range(run, column->path, note); break;
    case NOTE_CACHED:
        if (loaded > 0)
            snprintf(note, CELL_SIZE, "%.0f of %.0f cached", loaded, built + loaded);
        break;
    case NOTE_CACHES: strcpy(note, compare_number(run, column->path) > 100 ? "caches" : ""); break;
    }
}

const char *compare_cell(const struct compare_column *column, const struct comparison *comparison,
                         const cJSON *run, bool with_note, char text[CELL_SIZE])
{
    const cJSON *value = compare_value(column, comparison, run);
    const double number = cJSON_IsNumber(value) ? value->valuedouble : 0;
    char unit[CELL_SIZE] = "-", note[CELL_SIZE] = "";
    if (is_known(column, value))
        switch (column->kind) {
        case KIND_TEXT: snprintf(unit, sizeof unit, "%.80s", cJSON_GetStringValue(value)); break;
        case KIND_FLAG: strcpy(unit, cJSON_IsTrue(value) ? "yes" : "no"); break;
        case KIND_COUNT: snprintf(unit, sizeof unit, "%.0f", number); break;
        case KIND_TIME: text_time((uint64_t)number, unit); break;
        case KIND_BYTES: text_bytes((uint64_t)number, unit); break;
        case KIND_DECIMAL:
        case KIND_FACTOR: text_factor(number, unit); break;
        case KIND_PERCENT: snprintf(unit, sizeof unit, "%.1f %%", number); break;
        case KIND_SHARE: snprintf(unit, sizeof unit, "%.3g %%", fmin(number, 100)); break;
        }
    if (is_known(column, value) && with_note)
        put_note(column, run, note);
    snprintf(text, CELL_SIZE, *note ? "%.80s (%.60s)" : "%.120s", unit, note);
    return text;
}

/* ---------------------------------------------------------------- tables */

void compare_copy(cJSON *target, const cJSON *source, const struct compare_columns *table)
{
    FOR_EACH_COLUMN(column, table, COPIED)
    {
        const char *path = column->path;
        const cJSON *item = json_at(source, path);
        const double number = compare_number(source, path);
        const bool always = column->places & ALWAYS;
        if (column->kind == KIND_FLAG) {
            if (always || cJSON_IsBool(item))
                compare_put(target, path, cJSON_CreateBool(cJSON_IsTrue(item)));
        } else if (column->kind == KIND_TEXT) {
            if (always || *json_text(source, path))
                compare_put_text(target, path, json_text(source, path));
        } else if (always || number > 0) {
            compare_put_number(target, path, column->kind == KIND_DECIMAL ? number : floor(number));
        }
    }
}

cJSON *compare_columns_json(const struct compare_columns *table,
                            const struct comparison *comparison, unsigned place)
{
    static const char *const kinds[] = {
        [KIND_TEXT] = "text",     [KIND_FLAG] = "flag",       [KIND_COUNT] = "count",
        [KIND_TIME] = "time",     [KIND_BYTES] = "bytes",     [KIND_DECIMAL] = "factor",
        [KIND_FACTOR] = "factor", [KIND_PERCENT] = "percent", [KIND_SHARE] = "share"};
    cJSON *list = cJSON_CreateArray();
    FOR_EACH_COLUMN(column, table, place)
    {
        if (!compare_is_shown(column, comparison))
            continue;
        cJSON *object = cJSON_CreateObject();
        compare_put_text(object, "path", column->path);
        compare_put_text(object, "heading", column->heading);
        char *heading = cJSON_GetObjectItem(object, "heading")->valuestring;
        *heading = (char)toupper((unsigned char)*heading);
        compare_put_text(object, "kind", kinds[column->kind]);
        compare_put_text(object, "meaning", column->meaning ? column->meaning : "");
        cJSON_AddItemToArray(list, object);
    }
    return list;
}
