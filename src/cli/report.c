#include "cli/report.h"

#include <stdlib.h>

#include "cli/text.h"
#include "tools/xmalloc.h"

cJSON *report_of(const char *file, const struct device_info *device)
{
    cJSON *document = json_report();
    json_add_string(document, "transcript", file);
    if (device)
        report_add_device(json_add_object(document, "device"), device);
    else
        json_add_string(document, "device", "reference");
    return document;
}

void report_add_error(cJSON *document, const struct healcl_error *error, bool is_of_driver)
{
    cJSON *about = json_add_object(document, "error");
    JSON_ADD(about, STRING("status", healcl_status_name(error->status)),
             STRING("message", error->message));
    if (error->detail)
        json_add_string(about, "detail", error->detail);
    if (!is_of_driver)
        return;
    JSON_ADD(about, STRING("cause", "driver"), STRING("text", error->message));
}

void report_error_json(const char *file, const struct healcl_error *error, bool is_of_driver,
                       FILE *stream)
{
    cJSON *document = json_report();
    if (file)
        json_add_string(document, "transcript", file);
    report_add_error(document, error, is_of_driver);
    json_write(document, stream);
}

void report_add_command(cJSON *object, const char *command, const struct device_info *device,
                        const struct healcl_operations *manifests, const char *option,
                        const char *operand)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        xmalloc_fail();
    fprintf(stream, "healcl %s -d %u:%u", command, device->platform_index, device->device_index);
    const struct operation_folder *folder = manifests ? manifests->folders : NULL;
    for (; folder; folder = folder->next) {
        fputs(folder->is_trusted ? " --trust " : " --ops ", stream);
        text_shell(stream, folder->path);
    }
    fprintf(stream, " %s", option);
    text_shell(stream, operand);
    if (fclose(stream) != 0)
        xmalloc_fail();
    json_add_string(object, "repeat", text);
    free(text);
}
