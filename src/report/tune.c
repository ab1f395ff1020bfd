#include "report/tune.h"

#include "report/internal.h"
#include "report/table.h"
#include "report/text.h"

static const char *note_of(const struct tune_alternative *alternative)
{
    if (alternative->chosen)
        return "chosen";
    return alternative->outcome == TUNE_RIGHT ? "" : tune_outcome_name(alternative->outcome);
}

static void add_row(struct table *table, const struct tune_alternative *alternative, bool measured)
{
    char time[UNIT_TEXT_SIZE] = "";
    if (alternative->outcome == TUNE_RIGHT)
        text_time((uint64_t)alternative->nanoseconds, time);
    table_cell(table, "%s", alternative->subject);
    table_cell(table, "%s", alternative->choice);
    if (!measured)
        return;
    table_cell(table, "%s", time);
    if (alternative->outcome == TUNE_RIGHT)
        table_cell(table, "%.1f %%", tune_spread(alternative));
    else
        table_cell(table, "%s", "");
    table_cell(table, "%s", note_of(alternative));
}

static void print_reasons(const struct tune_report *report, const struct style *style)
{
    for (size_t i = 0; i < report->count; i++)
        if (report->alternatives[i].reason[0])
            fprintf(style->stream, "%s: %s\n", report->alternatives[i].choice,
                    report->alternatives[i].reason);
}

/* Whether alternative i begins a subject that was not measured whole. */
static bool is_left(const struct tune_report *report, size_t i)
{
    const char *subject = report->alternatives[i].subject;
    return (i == 0 || report->alternatives[i - 1].subject != subject) &&
           !tune_is_decided(report, subject);
}

static void print_left(const struct tune_report *report, const struct style *style)
{
    char text[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < report->count; i++)
        if (is_left(report, i) && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "",
                                     report->alternatives[i].subject);
    if (used > 0)
        report_label(style, "unmeasured", "%s: %sas kept before, else the default", text,
                     report->out_of_time ? "time ran out; " : "");
}

enum healcl_status report_tune(const struct tune_facts *facts, const struct style *style)
{
    static const struct table_column columns[] = {
        {"subject", TABLE_LEFT, false}, {"choice", TABLE_LEFT, true}, {"time", TABLE_RIGHT, false},
        {"spread", TABLE_RIGHT, false}, {"", TABLE_LEFT, false},
    };
    struct table *table = table_create(columns, facts->measured ? 5 : 2);
    for (size_t i = 0; i < facts->report->count; i++)
        add_row(table, &facts->report->alternatives[i], facts->measured);
    report_label(style, "device", "%s", facts->device->name);
    putc('\n', style->stream);
    TRY(table_print(table, style->stream, style->width));
    if (!facts->measured)
        return HEALCL_OK;
    print_reasons(facts->report, style);
    char text[TUNING_TEXT_SIZE];
    tuning_format(&facts->report->tuning, text);
    putc('\n', style->stream);
    print_left(facts->report, style);
    report_label(style, "tuning", "%s", text);
    if (facts->kept || !facts->kept_kernels)
        report_label(style, "kept", "%s", facts->kept ? facts->kept : "nowhere: HEALCL_CACHE_DIR");
    if (facts->kept_kernels)
        report_label(style, "kept", "%s", facts->kept_kernels);
    return HEALCL_OK;
}

void report_tune_reset(const struct device_info *device, const char *forgotten, const char *kernels,
                       const struct style *style)
{
    report_label(style, "device", "%s", device->name);
    if (forgotten || !kernels)
        report_label(style, "forgotten", "%s", forgotten ? forgotten : "nothing: none was kept");
    if (kernels)
        report_label(style, "forgotten", "%s", kernels);
}

/* ---------------------------------------------------------------- JSON */

static void add_alternative(struct json *json, cJSON *object,
                            const struct tune_alternative *alternative)
{
    json_string(json, object, "subject", alternative->subject);
    json_string(json, object, "choice", alternative->choice);
    json_string(json, object, "outcome", tune_outcome_name(alternative->outcome));
    if (alternative->outcome == TUNE_RIGHT) {
        json_number(json, object, "time_ns", (uint64_t)alternative->nanoseconds);
        json_number(json, object, "median_ns", (uint64_t)alternative->median_nanoseconds);
    }
    if (alternative->reason[0])
        json_string(json, object, "reason", alternative->reason);
    json_bool(json, object, "chosen", alternative->chosen);
}

enum healcl_status report_tune_json(const struct tune_facts *facts, FILE *stream)
{
    struct json json;
    char text[TUNING_TEXT_SIZE];
    json_begin(&json, healcl_version());
    report_device_members(&json, json_object(&json, json.top, "device"), facts->device);
    cJSON *list = json_array(&json, json.top, "alternatives");
    for (size_t i = 0; i < facts->report->count; i++)
        add_alternative(&json, json_object(&json, list, NULL), &facts->report->alternatives[i]);
    cJSON *left = facts->measured ? json_array(&json, json.top, "unmeasured") : NULL;
    for (size_t i = 0; left && i < facts->report->count; i++)
        if (is_left(facts->report, i))
            json_string(&json, left, NULL, facts->report->alternatives[i].subject);
    if (facts->measured)
        json_bool(&json, json.top, "out_of_time", facts->report->out_of_time);
    tuning_format(&facts->report->tuning, text);
    json_string(&json, json.top, "tuning", text);
    json_string_or_null(&json, json.top, "kept", facts->kept);
    json_string_or_null(&json, json.top, "kept_kernels", facts->kept_kernels);
    return json_print(&json, stream);
}

enum healcl_status report_tune_reset_json(const struct device_info *device, const char *forgotten,
                                          const char *kernels, FILE *stream)
{
    struct json json;
    json_begin(&json, healcl_version());
    report_device_members(&json, json_object(&json, json.top, "device"), device);
    json_string_or_null(&json, json.top, "forgotten", forgotten);
    json_string_or_null(&json, json.top, "forgotten_kernels", kernels);
    return json_print(&json, stream);
}
