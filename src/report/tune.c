#include "report/tune.h"

#include "report/columns.h"
#include "report/members.h"

static const char *note_of(const struct tune_alternative *alternative)
{
    if (alternative->chosen)
        return "chosen";
    return alternative->outcome == TUNE_RIGHT ? "" : tune_outcome_name(alternative->outcome);
}

/* Where a column is told. */
enum { IN_PLAN = COLUMN_PLACES, IN_MEASURED = IN_PLAN << 1 };

#define ALTERNATIVE_OF(name, member, known, expression) \
    COLUMN_IF(name, struct tune_alternative, member, known, expression)

static const char *spread_text(const struct tune_alternative *alternative,
                               char text[COLUMN_TEXT_SIZE])
{
    snprintf(text, COLUMN_TEXT_SIZE, "%.1f %%", tune_spread(alternative));
    return text;
}

ALTERNATIVE_OF(choice, text, true, it->choice)
ALTERNATIVE_OF(outcome, text, true, tune_outcome_name(it->outcome))
ALTERNATIVE_OF(nanoseconds, number, it->outcome == TUNE_RIGHT, (uint64_t)it->nanoseconds)
ALTERNATIVE_OF(median, number, it->outcome == TUNE_RIGHT, (uint64_t)it->median_nanoseconds)
ALTERNATIVE_OF(spread, text, it->outcome == TUNE_RIGHT, spread_text(it, value->room))
ALTERNATIVE_OF(reason, text, it->reason[0], it->reason)
ALTERNATIVE_OF(note, text, true, note_of(it))

static const struct column alternative_rows[] = {
    {"subject", "subject", COLUMN_TEXT, IN_PLAN | IN_MEASURED,
     COLUMN_FIELD(struct tune_alternative, subject)},
    {"choice", "choice", COLUMN_TEXT, IN_PLAN | IN_MEASURED | SHRINKS, .value = choice},
    {"outcome", NULL, COLUMN_TEXT, 0, .value = outcome},
    {"time_ns", "time", COLUMN_TIME, IN_MEASURED | BLANK, .value = nanoseconds},
    {"median_ns", NULL, COLUMN_TIME, 0, .value = median},
    {NULL, "spread", COLUMN_TEXT, IN_MEASURED | TO_THE_RIGHT | BLANK, .value = spread},
    {"reason", NULL, COLUMN_TEXT, 0, .value = reason},
    {"chosen", NULL, COLUMN_FLAG, 0, COLUMN_FIELD(struct tune_alternative, chosen)},
    {NULL, "", COLUMN_TEXT, IN_MEASURED, .value = note},
};

static const struct column_table alternative_columns = COLUMN_TABLE(alternative_rows);

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
        report_label(style, "unmeasured", "%s: as kept before, else the default", text);
}

enum healcl_status report_tune(const struct tune_facts *facts, const struct style *style)
{
    const unsigned place = facts->measured ? IN_MEASURED : IN_PLAN;
    report_label(style, "device", "%s", facts->device->name);
    putc('\n', style->stream);
    TRY(columns_print(&alternative_columns, place, NULL,
                      COLUMN_RECORDS(facts->report->alternatives, facts->report->count),
                      style->stream, style->width));
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

/* ---------------------------------------------------------------- JSON */

enum healcl_status report_tune_json(const struct tune_facts *facts, FILE *stream)
{
    struct json json;
    char text[TUNING_TEXT_SIZE];
    json_begin(&json, healcl_version());
    report_device_members(&json, json_object(&json, json.top, "device"), facts->device);
    columns_add_list(&json, json.top, "alternatives", &alternative_columns, NULL,
                     COLUMN_RECORDS(facts->report->alternatives, facts->report->count));
    cJSON *left = facts->measured ? json_array(&json, json.top, "unmeasured") : NULL;
    for (size_t i = 0; left && i < facts->report->count; i++)
        if (is_left(facts->report, i))
            json_string(&json, left, NULL, facts->report->alternatives[i].subject);
    tuning_format(&facts->report->tuning, text);
    json_string(&json, json.top, "tuning", text);
    json_string_or_null(&json, json.top, "kept", facts->kept);
    json_string_or_null(&json, json.top, "kept_kernels", facts->kept_kernels);
    return json_print(&json, stream);
}
