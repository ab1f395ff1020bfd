/* The list of devices. */
#include <string.h>

#include "cli/report.h"

/* ---------------------------------------------------------------- JSON */

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

/* What the self-test has found, where it passed. */
static void add_findings(cJSON *object, const struct device_info *info)
{
    struct device_info found = *info;
    self_test_take_findings(&found);
    if (found.loop_limit > 0)
        json_add_number(object, "loop_limit", found.loop_limit);
    if (found.failed_families == 0)
        return;
    cJSON *families = json_add_array(object, "failed_families");
    for (int family = 0; family < FAMILY_COUNT; family++)
        if (found.failed_families >> family & 1)
            json_add_string(families, NULL, kernel_family_name((enum kernel_family)family));
    json_add_string(object, "family_failure", found.family_failure);
}

/* What a device would be opened with. */
static void add_usable(cJSON *object, const struct device_info *info,
                       const struct self_test_result *self_test)
{
    struct device_tuning tuning;
    (void)!tuning_of_device(info, &tuning, NULL); /* opening it tells of a wrong environment */
    report_add_tuning(object, &tuning);
    report_add_self_test(object, self_test->outcome, self_test->reason);
    add_findings(object, info);
}

/* Of a platform that cannot be asked for its devices. */
static void add_fault(cJSON *object, const struct platform_fault *fault)
{
    char text[80];
    snprintf(text, sizeof text, "%s (%d)", opencl_error_name(fault->code), fault->code);
    JSON_ADD(object, NUMBER("index", fault->platform_index), STRING("platform", fault->platform),
             STRING("error", text));
}

cJSON *report_devices(const struct device_listing *listing, size_t best,
                      const struct self_test_result *self_tests, const struct device_rates *rates)
{
    cJSON *document = json_report(), *devices = json_add_array(document, "devices");
    for (size_t i = 0; i < listing->count; i++) {
        const struct device_info *info = &listing->devices[i];
        cJSON *object = json_add_object(devices, NULL);
        const char *fault = device_unusable(info);
        report_add_device(object, info);
        JSON_ADD(object, FLAG("usable", !fault));
        if (fault)
            json_add_string(object, "unusable_because", fault);
        else
            add_usable(object, info, &self_tests[i]);
        if (rates && rates[i].products > 0)
            JSON_ADD(object, NUMBER("products_per_s", rates[i].products),
                     NUMBER("copied_bytes_per_s", rates[i].copied_bytes));
        JSON_ADD(object, FLAG("default", i == best));
    }
    cJSON *faults = listing->fault_count > 0 ? json_add_array(document, "platform_faults") : NULL;
    for (size_t i = 0; i < listing->fault_count; i++)
        add_fault(json_add_object(faults, NULL), &listing->faults[i]);
    return document;
}

/* ---------------------------------------------------------------- text */

void report_devices_text(const cJSON *document, const struct style *style)
{
    static const struct view_column columns[] = {
        {"index", "{index}{default= *}{usable! -}", 0},
        {"type", "{type}{emulator=, emulator}", 0},
        {"units", "{compute_units}", VIEW_RIGHT},
        {"memory", "{global_memory:bytes}", VIEW_RIGHT},
        {"OpenCL", "{version:word}", 0},
        {"self-test", "{self_test}", 0},
        {"device", "{name}", VIEW_SHRINKS},
        {"platform", "{platform}", VIEW_SHRINKS},
        {"64x64", "{products_per_s:count}/s", VIEW_RIGHT},
        {"copy", "{copied_bytes_per_s:bytes}/s", VIEW_RIGHT},
    };
    const cJSON *list = json_at(document, "devices"), *device;
    bool has_default = false, has_emulator = false, has_rates = false;
    cJSON_ArrayForEach(device, list)
    {
        has_default |= cJSON_IsTrue(json_at(device, "default"));
        has_emulator |= cJSON_IsTrue(json_at(device, "emulator"));
        has_rates |= json_at(device, "products_per_s") != NULL;
    }
    view_table(style, list, columns, has_rates ? 10 : 8);
    putc('\n', style->stream);
    if (has_default)
        fputs("* runs where no device is named\n", style->stream);
    if (has_emulator)
        fputs("emulator: the processor stands for hardware that is not there; runs by default only "
              "where\nnothing else can\n",
              style->stream);
    if (has_rates)
        fputs("64x64: products of 64-bit integers, both halves of each; copy: bytes read and "
              "written\n",
              style->stream);
    (void)view_each(style, list, "- {index} is tuned by {tuned_by}");
    (void)view_each(style, list, "- {index}: {tuning_failure}");
    (void)view_each(style, json_at(document, "platform_faults"),
                    "- platform {index}[ {platform:?}] cannot be asked for its devices: {error}");
    (void)view_each(style, list, "- {index} cannot be used: {unusable_because}");
    (void)view_each(style, list, "- {self_test_failure}");
    (void)view_each(style, list,
                    "- {index} runs on the host: {failed_families} ({family_failure})");
}
