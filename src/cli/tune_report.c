#include "cli/tune_report.h"

/* ---------------------------------------------------------------- JSON */

static void add_alternative(cJSON *object, const struct tune_alternative *alternative)
{
    JSON_ADD(object, STRING("subject", alternative->subject), STRING("choice", alternative->choice),
             STRING("outcome", tune_outcome_names[alternative->outcome]));
    if (alternative->outcome == TUNE_RIGHT) {
        JSON_ADD(object, NUMBER("time_ns", (uint64_t)alternative->nanoseconds),
                 NUMBER("median_ns", (uint64_t)alternative->median_nanoseconds));
    }
    if (*alternative->reason)
        json_add_string(object, "reason", alternative->reason);
    JSON_ADD(object, FLAG("chosen", alternative->chosen));
}

/* Subjects that were not measured whole. */
static void add_unmeasured(cJSON *document, const struct tune_report *report)
{
    cJSON *list = json_add_array(document, "unmeasured");
    const char *last = NULL;
    for (size_t i = 0; i < report->count; i++) {
        const char *subject = report->alternatives[i].subject;
        if (subject != last && !tune_is_decided(report, subject))
            json_add_string(list, NULL, subject);
        last = subject;
    }
}

cJSON *report_tune(const struct device_info *device, const struct tune_report *report,
                   bool measured, const char *kept, const char *kept_kernels)
{
    char text[TUNING_TEXT_SIZE];
    cJSON *document = json_report();
    report_add_device(json_add_object(document, "device"), device);
    cJSON *list = json_add_array(document, "alternatives");
    for (size_t i = 0; i < report->count; i++)
        add_alternative(json_add_object(list, NULL), &report->alternatives[i]);
    if (measured)
        add_unmeasured(document, report);
    tuning_format(&report->tuning, text);
    JSON_ADD(document, STRING("tuning", text), STRING("kept", kept),
             STRING("kept_kernels", kept_kernels));
    return document;
}

/* ---------------------------------------------------------------- text */

void report_tune_text(const cJSON *document, const struct style *style)
{
    static const struct view_column columns[] = {
        {"subject", "{subject}", 0},
        {"choice", "{choice}", VIEW_SHRINKS},
        {"time", "{time_ns:time}", VIEW_RIGHT | VIEW_BLANK},
        {"spread", "{median_ns/time_ns:+}", VIEW_RIGHT | VIEW_BLANK},
        {"", "{outcome}{chosen=, chosen}", 0},
    };
    const bool measured = json_at(document, "unmeasured") != NULL;
    view_line(style, document, "device", "{device.name}");
    putc('\n', style->stream);
    view_table(style, json_at(document, "alternatives"), columns, measured ? 5 : 2);
    if (!measured)
        return;
    (void)view_each(style, json_at(document, "alternatives"), "{choice}: {reason}");
    putc('\n', style->stream);
    if (json_number_at(document, "unmeasured") > 0)
        view_line(style, document, "unmeasured", "{unmeasured}: as kept before, else the default");
    view_line(style, document, "tuning", "{tuning}");
    view_line(style, document, "kept", "{kept}");
    view_line(style, document, "kept", "{kept_kernels}");
    if (cJSON_IsNull(json_at(document, "kept")) && cJSON_IsNull(json_at(document, "kept_kernels")))
        report_label(style, "kept", "nowhere: HEALCL_CACHE_DIR");
}
