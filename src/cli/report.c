#include "cli/report.h"

#include <stdlib.h>

#include "cli/text.h"
#include "opencl/tuning_kept.h"
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

/* ---------------------------------------------------------------- parts of documents */

void report_add_device(cJSON *object, const struct device_info *info)
{
    char index[24];
    snprintf(index, sizeof index, "%u:%u", info->platform_index, info->device_index);
    JSON_ADD(object, STRING("index", index), STRING("name", info->name),
             STRING("type", device_type_name(info->type)), STRING("platform", info->platform),
             STRING("platform_version", info->platform_version), STRING("vendor", info->vendor),
             STRING("driver", info->driver), STRING("version", info->version),
             NUMBER("compute_units", info->compute_units), NUMBER("clock_mhz", info->clock_mhz),
             NUMBER("global_memory", info->global_memory_bytes),
             NUMBER("max_allocation", info->max_allocation_bytes),
             NUMBER("local_memory", info->local_memory_bytes),
             NUMBER("max_work_group_size", info->max_work_group_size),
             FLAG("unified_memory", info->unified_memory),
             FLAG("emulator", device_is_emulator(info)));
}

void report_add_self_test(cJSON *object, enum self_test_outcome outcome, const char *failure)
{
    json_add_string(object, "self_test", self_test_outcome_name(outcome));
    if (outcome == SELF_TEST_FAILED)
        json_add_string(object, "self_test_failure", failure);
}

void report_add_tuning(cJSON *object, const struct device_tuning *tuning)
{
    char text[TUNING_TEXT_SIZE];
    const char *source = tuning_source_name(tuning);
    JSON_ADD(object, FLAG("tuned", source != NULL));
    if (source)
        json_add_string(object, "tuned_by", source);
    if (tuning->kept_is_unreadable)
        json_add_string(object, "tuning_failure", KEPT_UNREADABLE);
    tuning_format(tuning, text);
    json_add_string(object, "tuning", text);
}

void report_add_roofline(cJSON *object, const struct roofline *roofline)
{
    cJSON *rates = json_add_object(object, "roofline");
    json_add_number(rates, "copied_bytes_per_s", roofline->bytes);
    for (int i = 0; i < WORKS; i++) {
        char key[48];
        snprintf(key, sizeof key, "%s_per_s", segment_work_names[i]);
        if (roofline->work[i] > 0)
            json_add_number(rates, key, roofline->work[i]);
    }
}

cJSON *report_add_memory(cJSON *object, const struct memory_facts *memory)
{
    cJSON *member = json_add_object(object, memory->limit ? "device_memory" : "tensor_memory");
    if (memory->limit == 0) {
        JSON_ADD(member, NUMBER("allocated", memory->allocated), NUMBER("live", memory->live));
        return member;
    }
    JSON_ADD(member, NUMBER("limit", memory->limit), NUMBER("tensors_peak", memory->peak),
             NUMBER("bytes_spilled", memory->price.spilled),
             NUMBER("bytes_brought_back", memory->price.brought_back),
             NUMBER("bytes_streamed_again", memory->price.streamed_again));
    return member;
}

cJSON *report_sum_kinds(const cJSON *document)
{
    cJSON *sums = cJSON_CreateArray();
    const cJSON *segment, *kind, *member;
    cJSON_ArrayForEach(segment, json_at(document, "segments"))
    {
        cJSON_ArrayForEach(kind, json_at(segment, "operations_by_kind"))
        {
            cJSON *sum = json_row(sums, "name", json_text(kind, "name"));
            cJSON_ArrayForEach(member, kind)
            {
                if (!cJSON_IsString(member))
                    json_increase(sum, member->string, json_number_at(kind, member->string));
                else if (!json_at(sum, member->string))
                    json_add_string(sum, member->string, member->valuestring);
            }
        }
    }
    return sums;
}
