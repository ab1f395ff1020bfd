#include "report/report.h"

#include <stdarg.h>

#include "report/members.h"
#include "report/text.h"

void report_label(const struct style *style, const char *label, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    text_clean(text, false);
    fprintf(style->stream, "%-10s  %s\n", label, text);
}

void report_error_members(struct json *json, const struct healcl_error *error, bool is_of_driver)
{
    cJSON *about = json_object(json, json->top, "error");
    json_string(json, about, "status", healcl_status_name(error->status));
    json_string(json, about, "message", error->message);
    if (error->detail)
        json_string(json, about, "detail", error->detail);
    if (!is_of_driver)
        return;
    json_string(json, about, "cause", "driver");
    json_string(json, about, "text", error->message);
}

enum healcl_status report_error_json(const char *file, const struct healcl_error *error,
                                     bool is_of_driver, FILE *stream)
{
    struct json json;
    json_begin(&json, healcl_version());
    if (file)
        json_string(&json, json.top, "transcript", file);
    report_error_members(&json, error, is_of_driver);
    return json_print(&json, stream);
}

void report_folders(const struct healcl_operations *manifests, FILE *stream)
{
    const struct operation_folder *folder = manifests ? manifests->folders : NULL;
    for (; folder; folder = folder->next) {
        fputs(folder->is_trusted ? " --trust " : " --ops ", stream);
        text_shell(stream, folder->path);
    }
}
