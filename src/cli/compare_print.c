/* Prints a comparison: for a terminal, as Markdown, CSV, JSON, HTML and JUnit XML. One list of
 * columns defines all tables. */
#include "cli/comparison.h"

#include <ctype.h>
#include <math.h>

enum { LEAD_WIDTH = 79, COLUMNS_MAX = 32 };
#define NOISE "noise" /* prefix of the note of a range that contains 1 */

enum { FOR_PEOPLE = IN_TERMINAL | IN_MARKDOWN | ON_PAGE, MEASURED = COPIED | ALWAYS | IN_CSV };

const struct compare_column compare_run_columns[] = {
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
    {"compute_ns", "compute", KIND_TIME, .places = IN_CSV | FOR_PEOPLE, .note = NOTE_COMPUTE},
    {"compute_low_ns", NULL, KIND_TIME, .places = IN_CSV},
    {"compute_high_ns", NULL, KIND_TIME, .places = IN_CSV},
    {"spread_percent", "spread", KIND_PERCENT, .places = IN_MARKDOWN | IN_DETAILS},
    {"speedup.factor", "speed-up", KIND_FACTOR, .places = IN_CSV | FOR_PEOPLE, .csv = "speedup",
     .note = NOTE_RANGE,
     .meaning = "against the first device with right results; " NOISE ": its range includes 1"},
    {"speedup.low", NULL, KIND_FACTOR, .places = IN_CSV, .csv = "speedup_low"},
    {"speedup.high", NULL, KIND_FACTOR, .places = IN_CSV, .csv = "speedup_high"},
    {"steady_ns", "steady", KIND_TIME, .places = IN_CSV | FOR_PEOPLE, .note = NOTE_STEADY,
     .meaning = "one request of an open session, which uploads only its inputs, from memory"},
    {"steady_low_ns", NULL, KIND_TIME, .places = IN_CSV},
    {"steady_high_ns", NULL, KIND_TIME, .places = IN_CSV},
    {"steady_speedup.factor", "speed-up", KIND_FACTOR, .places = IN_CSV | IN_MARKDOWN | ON_PAGE,
     .csv = "steady_speedup", .note = NOTE_RANGE},
    {"steady_speedup.low", NULL, KIND_FACTOR, .places = IN_CSV, .csv = "steady_speedup_low"},
    {"steady_speedup.high", NULL, KIND_FACTOR, .places = IN_CSV, .csv = "steady_speedup_high"},
    {"per_second", "inferences/s", KIND_FACTOR,
     .places = IN_CSV | IN_MARKDOWN | IN_DETAILS | WHERE_KNOWN,
     .meaning = "steady requests per second, one after the other"},
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
     .meaning = "measured from the start of the process, with the caches as they were"},
    {"cold_result_ns", "cold start", KIND_TIME,
     .places = COPIED | IN_CSV | IN_MARKDOWN | IN_DETAILS | WHERE_KNOWN,
     .meaning = "time to the first result of a process with empty caches, with the self-test and "
                "with all kernels to build"},
    {"fallbacks", "on the host", KIND_COUNT, .places = COPIED | IN_CSV | FOR_PEOPLE | WHERE_KNOWN,
     .meaning = "steps that the host ran because the device could not"},
    {"roofline_ns", NULL, KIND_TIME, .places = COPIED | IN_CSV},
    {"rates_percent", "% of roofline", KIND_SHARE, .places = IN_MARKDOWN | WHERE_KNOWN | ON_PAGE,
     .note = NOTE_CACHES,
     .meaning = "the least time that the device's measured rates of copies and products allow, as "
                "a share of the compute time; caches can raise it above 100 %"},
    {"programs_built", NULL, KIND_COUNT, .places = MEASURED},
    {"programs_loaded", NULL, KIND_COUNT, .places = MEASURED},
    {"device_memory_peak", "memory", KIND_BYTES, .places = MEASURED | IN_DETAILS},
    {"host_memory_peak", "memory of the host", KIND_BYTES, .places = MEASURED | IN_DETAILS},
    {"tuned", NULL, KIND_FLAG, .places = OF_DEVICE | IN_CSV},
    {"fault", NULL, KIND_TEXT, .places = ALWAYS | IN_CSV},
    {.path = NULL},
};

enum { KNOWN = COPIED | ALWAYS };

const struct compare_column compare_device_columns[] = {
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
    {.path = NULL},
};

const struct compare_column compare_host_columns[] = {
    {"system", NULL, KIND_TEXT, .places = KNOWN},
    {"processor", NULL, KIND_TEXT, .places = KNOWN},
    {"model", NULL, KIND_TEXT, .places = KNOWN},
    {"processors", NULL, KIND_COUNT, .places = KNOWN},
    {"memory", NULL, KIND_BYTES, .places = KNOWN},
    {"load_before", NULL, KIND_FACTOR, .places = KNOWN},
    {"load_after", NULL, KIND_FACTOR, .places = KNOWN},
    {.path = NULL},
};

/* ---------------------------------------------------------------- values */

static const cJSON *value_of(const struct compare_column *column,
                             const struct comparison *comparison, const cJSON *run)
{
    return json_at(column->places & OF_DEVICE ? compare_device_of(comparison, run) : run,
                   column->path);
}

/* Columns that every run has are 0 if the value is unknown. */
static bool is_known(const struct compare_column *column, const cJSON *value)
{
    return cJSON_IsNumber(value) && (value->valuedouble > 0 || !(column->places & ALWAYS));
}

static bool is_shown(const struct compare_column *column, const struct comparison *comparison)
{
    const cJSON *run = column->places & WHERE_KNOWN ? comparison->runs->child : NULL;
    while (run && !is_known(column, value_of(column, comparison, run)))
        run = run->next;
    return run || !(column->places & WHERE_KNOWN);
}

/* Lists the columns of runs that are shown to people in a place. */
#define FOR_EACH_SHOWN(column, comparison, place)       \
    FOR_EACH_COLUMN(column, compare_run_columns, place) \
    if (is_shown(column, comparison))

static const char *range_note(const cJSON *run, const char *path)
{
    const cJSON *speedup = json_at(run, xformat("%.*s", (int)strcspn(path, "."), path));
    const double low = compare_number(speedup, "low"), high = compare_number(speedup, "high");
    if (low >= 1 && high <= 1)
        return "the others are compared with it";
    return xformat("%s%s to %s", low <= 1 && high >= 1 ? NOISE ": " : "", TEXT_FACTOR(low),
                   TEXT_FACTOR(high));
}

/* Returns "noisy" or "1.70 to 1.76", or "" for no note. */
static const char *cell_note(const struct compare_column *column,
                             const struct comparison *comparison, const cJSON *run)
{
    const double built = compare_number(run, "programs_built"),
                 loaded = compare_number(run, "programs_loaded");
    if (!is_known(column, value_of(column, comparison, run)))
        return "";
    switch (column->note) {
    case NO_NOTE: break;
    case NOTE_COMPUTE:
    case NOTE_STEADY:
        return compare_is_noisy(run, &compare_figures[column->note == NOTE_STEADY]) ? "noisy" : "";
    case NOTE_RANGE: return range_note(run, column->path);
    case NOTE_CACHED:
        return loaded > 0 ? xformat("%.0f of %.0f cached", loaded, built + loaded) : "";
    case NOTE_CACHES: return compare_number(run, column->path) > 100 ? "caches" : "";
    }
    return "";
}

/* Returns "3.81 ms" or "1.73", or "-" for no value. */
static const char *cell_text(const struct compare_column *column,
                             const struct comparison *comparison, const cJSON *run)
{
    const cJSON *value = value_of(column, comparison, run);
    if (!is_known(column, value))
        return "-";
    const double number = value->valuedouble;
    switch (column->kind) {
    case KIND_TEXT:
    case KIND_FLAG: break; /* only for programs */
    case KIND_COUNT: return xformat("%.0f", number);
    case KIND_TIME: return xformat("%s", TEXT_TIME((uint64_t)number));
    case KIND_BYTES: return xformat("%s", TEXT_BYTES((uint64_t)number));
    case KIND_FACTOR: return xformat("%s", TEXT_FACTOR(number));
    case KIND_PERCENT: return xformat("%.1f %%", number);
    case KIND_SHARE: return xformat("%.3g %%", fmin(number, 100));
    }
    return "-";
}

/* ---------------------------------------------------------------- tables */

void compare_copy(cJSON *target, const cJSON *source, const struct compare_column *table)
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
            compare_put_number(target, path, column->kind == KIND_FACTOR ? number : floor(number));
        }
    }
}

/* For scripts: a list of objects with path, heading, kind and meaning. */
static cJSON *columns_json(const struct compare_column *table, const struct comparison *comparison,
                           unsigned place)
{
    static const char *const kinds[] = {
        [KIND_TEXT] = "text",       [KIND_FLAG] = "flag",   [KIND_COUNT] = "count",
        [KIND_TIME] = "time",       [KIND_BYTES] = "bytes", [KIND_FACTOR] = "factor",
        [KIND_PERCENT] = "percent", [KIND_SHARE] = "share"};
    cJSON *list = cJSON_CreateArray();
    FOR_EACH_COLUMN(column, table, place)
    {
        if (!is_shown(column, comparison))
            continue;
        cJSON *object = json_add_object(list, NULL);
        JSON_ADD(object, STRING("path", column->path), STRING("heading", column->heading),
                 STRING("kind", kinds[column->kind]),
                 STRING("meaning", column->meaning ? column->meaning : ""));
        char *heading = cJSON_GetObjectItem(object, "heading")->valuestring;
        *heading = (char)toupper((unsigned char)*heading);
    }
    return list;
}

/* ---------------------------------------------------------------- tables */

static const char *device_template(const struct style *to)
{
    return to->form == TABLE_TEXT ? "{index}  {label}" : "{label}";
}

static void put_run(struct table *table, const struct style *to,
                    const struct comparison *comparison, const cJSON *run, unsigned place)
{
    table_cell(table, view_fill(compare_device_of(comparison, run), device_template(to)));
    table_cell(table, compare_outcome_text(comparison, run));
    FOR_EACH_SHOWN(column, comparison, place)
    {
        const char *text = cell_text(column, comparison, run),
                   *note = cell_note(column, comparison, run);
        if (to->form == TABLE_TEXT && column->note == NOTE_RANGE) /* only its word */
            note = strncmp(note, NOISE, strlen(NOISE)) == 0 ? NOISE : "";
        table_cell(table, *note ? xformat("%s (%s)", text, note) : text);
    }
}

static void put_runs(const struct style *to, const struct comparison *comparison, unsigned place)
{
    struct view_column columns[COLUMNS_MAX] = {
        {"transcript", NULL, VIEW_SHRINKS}, {"device", NULL, VIEW_SHRINKS}, {"verdict", NULL, 0}};
    const size_t transcripts = json_number_at(comparison->top, "transcripts");
    const bool is_named = to->form != TABLE_TEXT || transcripts > 1;
    size_t count = 3;
    FOR_EACH_SHOWN(column, comparison, place)
    {
        columns[count++] = (struct view_column){column->heading, NULL, VIEW_RIGHT};
    }
    struct table *table = table_create(columns + !is_named, count - !is_named);
    for (size_t i = 0; i < transcripts; i++) {
        const cJSON *transcript = compare_transcript(comparison, i);
        const char *file = json_text(transcript, "file");
        const char *name =
            xformat("%s%s", to->form == TABLE_TEXT ? text_base_name(file) : file,
                    cJSON_IsTrue(json_at(transcript, "too_small")) ? " (too small)" : "");
        FOR_EACH_RUN_OF(run, comparison, i)
        {
            if (is_named)
                table_cell(table, name);
            put_run(table, to, comparison, run, place);
        }
    }
    table_print(table, to);
}

/* With several transcripts and devices, prints a row for each device. */
static void put_means(const struct style *to, const struct comparison *comparison)
{
    const struct view_column columns[] = {
        {"speed-up", device_template(to), VIEW_SHRINKS},
        {"compute", "{mean_speedup.factor:factor}", VIEW_RIGHT},
        {"least", "{mean_speedup.least:factor}", VIEW_RIGHT},
        {"most", "{mean_speedup.most:factor}", VIEW_RIGHT},
        {"steady", "{mean_steady_speedup.factor:factor}", VIEW_RIGHT},
        {"least", "{mean_steady_speedup.least:factor}", VIEW_RIGHT},
        {"most", "{mean_steady_speedup.most:factor}", VIEW_RIGHT}};
    if (json_number_at(comparison->top, "transcripts") < 2 ||
        json_number_at(comparison->top, "devices") < 2 ||
        comparison->base == json_number_at(comparison->top, "devices"))
        return;
    VIEW_SECTION(to, comparison->devices, columns);
    fprintf(to->stream, "%smeans: geometric ones over %zu of %zu transcripts; 1.00 is %s\n",
            to->form == TABLE_TEXT ? "" : "\n", comparison->counting,
            json_number_at(comparison->top, "transcripts"),
            json_text(compare_device(comparison, comparison->base), "label"));
}

/* ---------------------------------------------------------------- notes */

static void put_note(const struct style *to, const char *text)
{
    if (to->form == TABLE_TEXT) {
        text_wrap(to->stream, text, 0, 0, to->width);
        return;
    }
    fputs("- ", to->stream);
    print_markup(to, text);
    putc('\n', to->stream);
}

static const char *problem_of(const cJSON *run)
{
    const cJSON *first = cJSON_GetArrayItem(json_at(run, "differences"), 0);
    return first ? first->valuestring : json_text(run, "message");
}

/* Prints a message about a run. */
static void put_about(const struct style *to, const struct comparison *comparison, const cJSON *run,
                      const char *said)
{
    const cJSON *device = compare_device_of(comparison, run);
    put_note(to,
             xformat("%s: %s: %s", json_text(run, "transcript"), json_text(device, "index"), said));
}

/* Prints meanings of columns, problems, and facts about the devices. */
static void put_notes(const struct style *to, const struct comparison *comparison, unsigned place)
{
    FOR_EACH_SHOWN(column, comparison, place)
    {
        if (column->meaning)
            put_note(to, xformat("%s: %s", column->heading, column->meaning));
    }
    if (json_any(comparison->transcripts, "too_small"))
        put_note(to, compare_too_small);
    JSON_EACH(item, comparison->runs)
    {
        if (place == IN_TERMINAL && json_at(item, "cold_result_ns"))
            put_about(
                to, comparison, item,
                view_fill(item, "first result after {cold_result_ns:time} with empty caches"));
        if (*problem_of(item))
            put_about(to, comparison, item, problem_of(item));
    }
    JSON_EACH(item, comparison->devices)
    {
        if (!json_is(item, "index", COMPARE_REFERENCE))
            put_note(to, view_fill(item, "{baseline=(baseline) }{index}: {name} of {platform} "
                                         "{driver}{emulator=, an emulator}{tuned=, tuned}"
                                         "[, copies memory at {copied_bytes_per_s:bytes}/s]"));
    }
}

void compare_print_table(const struct comparison *comparison, const struct style *style)
{
    if (json_number_at(comparison->top, "transcripts") == 1)
        fprintf(style->stream, "transcript  %s\n",
                json_text(comparison->transcripts->child, "file"));
    fprintf(style->stream, "runs        %.0f of each\n\n",
            compare_number(comparison->top, "repeat"));
    put_runs(style, comparison, IN_TERMINAL);
    put_means(style, comparison);
    putc('\n', style->stream);
    text_wrap(style->stream, compare_lead(comparison), 0, 0,
              style->width > 0 ? style->width : LEAD_WIDTH);
    putc('\n', style->stream);
    put_notes(style, comparison, IN_TERMINAL);
}

void compare_print_markdown(const struct comparison *comparison, FILE *stream)
{
    const struct style to = {.stream = stream, .form = TABLE_MARKDOWN};
    const cJSON *top = comparison->top;
    print_markup(&to, compare_lead(comparison));
    putc('\n', stream);
    put_runs(&to, comparison, IN_MARKDOWN);
    put_means(&to, comparison);
    putc('\n', stream);
    put_notes(&to, comparison, IN_MARKDOWN);
    putc('\n', stream);
    print_markup(&to, view_fill(top, "Medians and quartiles of {repeat} runs each, healcl {healcl} "
                                     "({commit}), {host.processor}, {date}."));
    fprintf(stream, "\n\n    %s\n", json_text(top, "command"));
}

/* ---------------------------------------------------------------- CSV (RFC 4180) */

static void put_quoted(FILE *stream, const char *text)
{
    /* Spreadsheets interpret a cell that begins with one of these as a formula, even in quotes. */
    putc('"', stream);
    if (*text && strchr("=+-@\t\r\n", *text))
        putc('\'', stream);
    for (; *text; text++)
        fputs(*text == '"' ? "\"\"" : (char[]){*text, 0}, stream);
    putc('"', stream);
}

static void put_value(const struct compare_column *column, const cJSON *value, FILE *stream)
{
    if (column->kind == KIND_TEXT)
        put_quoted(stream, cJSON_IsString(value) ? value->valuestring : "");
    else if (cJSON_IsArray(value))
        fprintf(stream, "%d", cJSON_GetArraySize(value));
    else if (cJSON_IsBool(value))
        fputs(cJSON_IsTrue(value) ? "true" : "false", stream);
    else if (cJSON_IsNumber(value))
        fprintf(stream, column->kind == KIND_FACTOR ? "%.6g" : "%.0f", value->valuedouble);
}

void compare_print_csv(const struct comparison *comparison, FILE *stream)
{
    const char *comma = "";
    FOR_EACH_COLUMN(column, compare_run_columns, IN_CSV)
    {
        fprintf(stream, "%s%s", comma, column->csv ? column->csv : column->path);
        comma = ",";
    }
    fputs("\r\n", stream);
    JSON_EACH(run, comparison->runs)
    {
        comma = "";
        FOR_EACH_COLUMN(column, compare_run_columns, IN_CSV)
        {
            fputs(comma, stream);
            put_value(column, value_of(column, comparison, run), stream);
            comma = ",";
        }
        fputs("\r\n", stream);
    }
}

/* ---------------------------------------------------------------- the page */

extern const char healcl_cli_page_html[]; /* embedded file */

/* Writes the document, the page's sentences about it, and the columns of its tables. In a script
 * element "<" could end it. */
static void put_json(const struct comparison *comparison, FILE *stream)
{
    cJSON *all = cJSON_CreateObject();
    cJSON *rows = cJSON_AddArrayToObject(all, "rows");
    JSON_EACH(run, comparison->runs)
    {
        cJSON *row = json_add_object(rows, NULL);
        JSON_ADD(row, STRING("verdict", compare_outcome_text(comparison, run)),
                 STRING("problem", problem_of(run)));
        cJSON *cells = cJSON_AddArrayToObject(row, "cells");
        FOR_EACH_SHOWN(column, comparison, ON_PAGE)
        {
            json_add_string(cells, NULL, cell_text(column, comparison, run));
            json_add_string(cells, NULL, cell_note(column, comparison, run));
        }
    }
    cJSON_AddItemReferenceToObject(all, "comparison", comparison->top);
    compare_put(all, "columns", columns_json(compare_run_columns, comparison, ON_PAGE));
    compare_put(all, "details", columns_json(compare_run_columns, comparison, IN_DETAILS));
    compare_put(all, "facts", columns_json(compare_device_columns, comparison, ON_PAGE));
    compare_put_text(all, "too_small", compare_too_small);
    char *text = cJSON_PrintUnformatted(all);
    for (const char *c = text; *c; c++)
        fputs(*c == '<' ? "\\u003c" : (char[]){*c, 0}, stream);
    cJSON_free(text);
    cJSON_Delete(all);
}

/* Prints text up to a mark. Returns the text behind the mark. */
static const char *put_until(FILE *stream, const char *text, const char *mark)
{
    const char *end = strstr(text, mark);
    (void)fwrite(text, 1, (size_t)(end - text), stream);
    return end + strlen(mark);
}

void compare_print_html(const struct comparison *comparison, FILE *stream)
{
    const struct style plain = {.stream = stream, .form = TABLE_HTML};
    const char *text = put_until(stream, healcl_cli_page_html, "{{lead}}");
    print_markup(&plain, compare_lead(comparison));
    text = put_until(stream, text, "{{table}}");
    put_runs(&plain, comparison, ON_PAGE);
    text = put_until(stream, text, "{{json}}");
    put_json(comparison, stream);
    fputs(text, stream);
}

/* ---------------------------------------------------------------- JUnit */

/* Prints a suite for each transcript. It has a case for each device that runs it here, and for each
 * baseline. */

static void put_details(struct junit *junit, const cJSON *run)
{
    if (*json_text(run, "message"))
        junit_line(junit, json_text(run, "message"));
    JSON_EACH(line, json_at(run, "differences"))
    {
        junit_line(junit, line->valuestring);
    }
    junit_line(junit, json_text(run, "command"));
}

static void put_verdict_case(struct junit *junit, const struct comparison *comparison,
                             const cJSON *run, const char *name)
{
    const char *type = json_text(run, "outcome"), *message = json_text(run, "message");
    const enum junit_outcome outcome = strcmp(type, "verified") == 0            ? JUNIT_PASSED
                                       : strcmp(type, "nothing to verify") == 0 ? JUNIT_SKIPPED
                                       : strcmp(type, "different") == 0         ? JUNIT_FAILURE
                                                                                : JUNIT_ERROR;
    junit_case(junit, name, (uint64_t)compare_number(run, "process_ns"));
    if (outcome != JUNIT_PASSED)
        junit_outcome(junit, outcome, type,
                      xformat("%s%s%.400s", compare_outcome_text(comparison, run),
                              *message ? ": " : "", message));
    put_details(junit, run);
}

static void put_slowdown(struct junit *junit, const struct comparison *comparison, const cJSON *run,
                         const cJSON *slowdown, const char *name)
{
    const char *figure = json_text(slowdown, "figure");
    const bool is_steady = strcmp(figure, compare_figures[COMPARE_STEADY].name) == 0;
    const char *text = compare_slowdown_text(comparison, slowdown),
               *against = *figure ? "{figure} against {baseline}" : "time against a baseline";
    junit_case(junit, xformat("%s: %s", name, view_fill(slowdown, against)),
               (uint64_t)compare_number(run, compare_figures[is_steady].median));
    if (json_at(slowdown, "not_judged_because"))
        junit_outcome(junit, JUNIT_SKIPPED, "not judged", text);
    else if (cJSON_IsTrue(json_at(slowdown, "slower")))
        junit_outcome(junit, JUNIT_FAILURE, "slower", text);
    else
        junit_line(junit, text);
}

void compare_print_junit(const struct comparison *comparison, FILE *stream)
{
    struct junit junit;
    junit_init(&junit, "healcl compare");
    for (size_t i = 0; i < json_number_at(comparison->top, "transcripts"); i++) {
        junit_suite(&junit, json_text(compare_transcript(comparison, i), "file"));
        FOR_EACH_RUN_OF(run, comparison, i)
        {
            if (!compare_is_own(comparison, run))
                continue;
            const cJSON *device = compare_device_of(comparison, run);
            const char *name = view_fill(device, "{index} {name} ({platform})");
            put_verdict_case(&junit, comparison, run, name);
            JSON_EACH(slowdown, json_at(run, "slowdowns"))
            {
                put_slowdown(&junit, comparison, run, slowdown, name);
            }
        }
    }
    junit_print(&junit, stream);
}
