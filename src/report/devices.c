/* The list of devices. */
#include <stdlib.h>

#include "report/internal.h"
#include "report/table.h"
#include "report/text.h"

enum { VERSION_SIZE = 16 };

/* "3.0" of "OpenCL 3.0 PoCL HSTR: ..." */
static const char *version_number(const char *version, char text[VERSION_SIZE])
{
    text[0] = 0;
    if (sscanf(version, "OpenCL %15s", text) != 1)
        snprintf(text, VERSION_SIZE, "?");
    return text;
}

enum healcl_status report_devices(const struct device_info *list, size_t count, size_t best,
                                  const struct style *style)
{
    static const struct table_column columns[] = {
        {"index", TABLE_LEFT, false},   {"type", TABLE_LEFT, false},
        {"units", TABLE_RIGHT, false},  {"memory", TABLE_RIGHT, false},
        {"OpenCL", TABLE_LEFT, false},  {"device", TABLE_LEFT, true},
        {"platform", TABLE_LEFT, true},
    };
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < count; i++) {
        const struct device_info *info = &list[i];
        char version[VERSION_SIZE], bytes[UNIT_TEXT_SIZE];
        table_cell(table, "%u:%u%s", info->platform_index, info->device_index,
                   i == best                   ? " *"
                   : device_unusable(&list[i]) ? " -"
                                               : "");
        table_cell(table, "%s", device_type_name(info->type));
        table_cell(table, "%u", info->compute_units);
        table_cell(table, "%s", text_bytes(info->global_memory_bytes, bytes));
        table_cell(table, "%s", version_number(info->version, version));
        table_cell(table, "%s", info->name);
        table_cell(table, "%s", info->platform);
    }
    if (!table_print(table, style->stream, style->width))
        return HEALCL_NO_MEMORY;
    putc('\n', style->stream);
    if (best < count)
        fprintf(style->stream, "* runs where no device is named\n");
    for (size_t i = 0; i < count; i++)
        if (device_unusable(&list[i]))
            fprintf(style->stream, "- %u:%u cannot be used: %s\n", list[i].platform_index,
                    list[i].device_index, device_unusable(&list[i]));
    return HEALCL_OK;
}

void report_device_members(struct json *json, cJSON *object, const struct device_info *info)
{
    char index[24];
    snprintf(index, sizeof index, "%u:%u", info->platform_index, info->device_index);
    json_string(json, object, "index", index);
    json_string(json, object, "name", info->name);
    json_string(json, object, "type", device_type_name(info->type));
    json_string(json, object, "platform", info->platform);
    json_string(json, object, "vendor", info->vendor);
    json_string(json, object, "driver", info->driver);
    json_string(json, object, "version", info->version);
    json_number(json, object, "compute_units", info->compute_units);
    json_number(json, object, "clock_mhz", info->clock_mhz);
    json_number(json, object, "global_memory", info->global_memory_bytes);
    json_number(json, object, "max_allocation", info->max_allocation_bytes);
    json_number(json, object, "local_memory", info->local_memory_bytes);
    json_number(json, object, "max_work_group_size", info->max_work_group_size);
    json_bool(json, object, "unified_memory", info->unified_memory);
}

/* What a device would be opened with, but for the environment. */
static void add_tuning(struct json *json, cJSON *object, const struct device_info *info)
{
    char text[TUNING_TEXT_SIZE];
    struct device_tuning tuning = tuning_default(info);
    json_bool(json, object, "tuned", tuning_read_kept(&tuning, info));
    tuning_format(&tuning, text);
    json_string(json, object, "tuning", text);
}

enum healcl_status report_devices_json(const struct device_info *list, size_t count, size_t best,
                                       FILE *stream)
{
    struct json json;
    json_init(&json, cJSON_CreateObject());
    json_string(&json, json.top, "healcl", healcl_version());
    cJSON *devices = json_array(&json, json.top, "devices");
    for (size_t i = 0; i < count; i++) {
        const char *fault = device_unusable(&list[i]);
        cJSON *object = json_object(&json, devices, NULL);
        report_device_members(&json, object, &list[i]);
        json_bool(&json, object, "usable", !fault);
        if (fault)
            json_string(&json, object, "unusable_because", fault);
        else
            add_tuning(&json, object, &list[i]);
        json_bool(&json, object, "default", i == best);
    }
    return report_finish_json(&json, stream);
}
