/* The list of devices. */
#include <string.h>

#include "programs/tuning_kept.h"
#include "report/members.h"
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

/* What stands in front of the name of a device. */
static void add_offer(struct table *table, const struct device_info *info,
                      const struct self_test_result *self_test)
{
    char version[VERSION_SIZE];
    table_cell(table, "%s%s", device_type_name(info->type),
               device_is_emulator(info) ? ", emulator" : "");
    table_cell(table, "%u", info->compute_units);
    table_cell(table, "%s", TEXT_BYTES(info->global_memory_bytes));
    table_cell(table, "%s", version_number(info->version, version));
    table_cell(table, "%s", self_test_outcome_name(self_test->outcome));
}

static void add_rates(struct table *table, const struct device_rates *rates)
{
    const bool known = rates->products > 0;
    table_cell(table, known ? "%.3g G/s" : "-", (double)rates->products / 1e9);
    table_cell(table, known ? "%s/s" : "-", TEXT_BYTES(rates->copied_bytes));
}

/* What a device would be opened with; an environment that cannot be understood is left out. */
static struct device_tuning tuning_of(const struct device_info *info)
{
    struct device_tuning tuning;
    if (tuning_of_device(info, &tuning, NULL) != HEALCL_OK)
        return tuning; /* opening it tells of that */
    return tuning;
}

/* Which devices are not run with the kernels of their kind. */
static void print_tuned(const struct devices_facts *facts, FILE *stream)
{
    for (size_t i = 0; i < facts->count; i++) {
        const struct device_info *info = &facts->list[i];
        struct device_tuning tuning = tuning_of(info);
        if (device_unusable(info))
            continue;
        if (tuning_source_name(&tuning)) {
            fprintf(stream, "- %u:%u is tuned by %s\n", info->platform_index, info->device_index,
                    tuning_source_name(&tuning));
        }
        if (tuning.kept_is_unreadable)
            fprintf(stream, "- %u:%u: %s\n", info->platform_index, info->device_index,
                    KEPT_UNREADABLE);
    }
}

/* What data do on their way, beside the link's own rates. */
static void print_transfers(const struct devices_facts *facts, FILE *stream)
{
    for (size_t i = 0; facts->rates && i < facts->count; i++) {
        const struct device_rates *rates = &facts->rates[i];
        if (rates->products > 0)
            fprintf(stream, "- %u:%u: uploads %s/s, its link %s/s; results %s/s, its link %s/s\n",
                    facts->list[i].platform_index, facts->list[i].device_index,
                    TEXT_BYTES(rates->uploaded_bytes), TEXT_BYTES(rates->written_bytes),
                    TEXT_BYTES(rates->downloaded_bytes), TEXT_BYTES(rates->read_bytes));
    }
}

enum { FAULT_TEXT_SIZE = 80 };

/* "CL_OUT_OF_RESOURCES (-5)" */
static const char *fault_text(const struct platform_fault *fault, char text[FAULT_TEXT_SIZE])
{
    snprintf(text, FAULT_TEXT_SIZE, "%s (%d)", opencl_error_name(fault->code), fault->code);
    return text;
}

/* Which kernels are not run on a device, as their answers in the self-test were wrong. */
static void print_failed_families(const struct device_info *info, FILE *stream)
{
    struct device_info found = *info;
    self_test_take_findings(&found);
    if (found.failed_families == 0)
        return;
    fprintf(stream, "- %u:%u runs on the host:", info->platform_index, info->device_index);
    for (int family = 0; family < FAMILY_COUNT; family++)
        if (found.failed_families >> family & 1)
            fprintf(stream, " %s", kernel_family_name((enum kernel_family)family));
    fprintf(stream, " (%s)\n", found.family_failure);
}

/* Marked in the table. */
static void print_emulators(const struct devices_facts *facts, FILE *stream)
{
    bool any = false;
    for (size_t i = 0; i < facts->count; i++)
        any |= device_is_emulator(&facts->list[i]);
    if (any)
        fputs("emulator: the processor stands for hardware that is not there; runs by default only "
              "where\nnothing else can\n",
              stream);
}

/* Why devices cannot or should not be used, and which platforms tell of none. */
static void print_reasons(const struct devices_facts *facts, FILE *stream)
{
    for (size_t i = 0; i < facts->fault_count; i++) {
        const struct platform_fault *fault = &facts->faults[i];
        char name[sizeof fault->platform], text[FAULT_TEXT_SIZE];
        memcpy(name, fault->platform, sizeof name);
        text_clean(name, false);
        fprintf(stream, "- platform %u%s%s cannot be asked for its devices: %s\n",
                fault->platform_index, *name ? " " : "", name, fault_text(fault, text));
    }
    for (size_t i = 0; i < facts->count; i++) {
        const struct device_info *info = &facts->list[i];
        if (device_unusable(info))
            fprintf(stream, "- %u:%u cannot be used: %s\n", info->platform_index,
                    info->device_index, device_unusable(info));
        else if (facts->self_tests[i].outcome == SELF_TEST_FAILED) {
            char reason[SELF_TEST_REASON_SIZE];
            memcpy(reason, facts->self_tests[i].reason, sizeof reason);
            text_clean(reason, false);
            fprintf(stream, "- %s\n", reason);
        } else {
            print_failed_families(info, stream);
        }
    }
}

enum healcl_status report_devices(const struct devices_facts *facts, const struct style *style)
{
    struct table_column columns[] = {
        {"index", TABLE_LEFT, false},  {"type", TABLE_LEFT, false},
        {"units", TABLE_RIGHT, false}, {"memory", TABLE_RIGHT, false},
        {"OpenCL", TABLE_LEFT, false}, {"self-test", TABLE_LEFT, false},
        {"64x64", TABLE_RIGHT, false}, {"copy", TABLE_RIGHT, false},
        {"device", TABLE_LEFT, true},  {"platform", TABLE_LEFT, true},
    };
    if (!facts->rates)
        memmove(&columns[6], &columns[8], 2 * sizeof *columns);
    struct table *table = table_create(columns, facts->rates ? 10 : 8);
    for (size_t i = 0; i < facts->count; i++) {
        const struct device_info *info = &facts->list[i];
        table_cell(table, "%u:%u%s", info->platform_index, info->device_index,
                   i == facts->best        ? " *"
                   : device_unusable(info) ? " -"
                                           : "");
        add_offer(table, info, &facts->self_tests[i]);
        if (facts->rates)
            add_rates(table, &facts->rates[i]);
        table_cell(table, "%s", info->name);
        table_cell(table, "%s", info->platform);
    }
    TRY(table_print(table, style->stream, style->width));
    putc('\n', style->stream);
    if (facts->best < facts->count)
        fprintf(style->stream, "* runs where no device is named\n");
    print_emulators(facts, style->stream);
    if (facts->rates)
        fprintf(style->stream,
                "64x64: products of 64-bit integers, both halves of each; copy: bytes "
                "read and written; uploads are decoded from a transcript, results compared "
                "with one\n");
    print_transfers(facts, style->stream);
    print_tuned(facts, style->stream);
    print_reasons(facts, style->stream);
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
    json_string(json, object, "platform_version", info->platform_version);
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
    json_bool(json, object, "emulator", device_is_emulator(info));
}

void report_self_test(struct json *json, cJSON *object, enum self_test_outcome outcome,
                      const char *failure)
{
    json_string(json, object, "self_test", self_test_outcome_name(outcome));
    if (outcome == SELF_TEST_FAILED)
        json_string(json, object, "self_test_failure", failure);
}

void report_tuning(struct json *json, cJSON *object, const struct device_tuning *tuning)
{
    char text[TUNING_TEXT_SIZE];
    const char *source = tuning_source_name(tuning);
    json_bool(json, object, "tuned", source != NULL);
    if (source)
        json_string(json, object, "tuned_by", source);
    tuning_format(tuning, text);
    json_string(json, object, "tuning", text);
}

static void add_self_test(struct json *json, cJSON *object, const struct device_info *info,
                          const struct self_test_result *self_test)
{
    report_self_test(json, object, self_test->outcome, self_test->reason);
    struct device_info found = *info;
    self_test_take_findings(&found);
    if (found.loop_limit > 0)
        json_number(json, object, "loop_limit", found.loop_limit);
    if (found.failed_families == 0)
        return;
    cJSON *families = json_array(json, object, "failed_families");
    for (int family = 0; family < FAMILY_COUNT; family++)
        if (found.failed_families >> family & 1)
            json_string(json, families, NULL, kernel_family_name((enum kernel_family)family));
    json_string(json, object, "family_failure", found.family_failure);
}

static void add_device(struct json *json, cJSON *object, const struct devices_facts *facts,
                       size_t i)
{
    const struct device_info *info = &facts->list[i];
    const char *fault = device_unusable(info);
    report_device_members(json, object, info);
    json_bool(json, object, "usable", !fault);
    if (fault) {
        json_string(json, object, "unusable_because", fault);
    } else {
        struct device_tuning tuning = tuning_of(info);
        report_tuning(json, object, &tuning);
        add_self_test(json, object, info, &facts->self_tests[i]);
    }
    if (facts->rates && facts->rates[i].products > 0) {
        json_number(json, object, "products_per_s", facts->rates[i].products);
        json_number(json, object, "copied_bytes_per_s", facts->rates[i].copied_bytes);
        json_number(json, object, "uploaded_bytes_per_s", facts->rates[i].uploaded_bytes);
        json_number(json, object, "written_bytes_per_s", facts->rates[i].written_bytes);
        json_number(json, object, "downloaded_bytes_per_s", facts->rates[i].downloaded_bytes);
        json_number(json, object, "read_bytes_per_s", facts->rates[i].read_bytes);
    }
    json_bool(json, object, "default", i == facts->best);
}

/* The key is there only where there is something to tell. */
static void add_faults(struct json *json, cJSON *top, const struct devices_facts *facts)
{
    cJSON *list = facts->fault_count > 0 ? json_array(json, top, "platform_faults") : NULL;
    for (size_t i = 0; i < facts->fault_count; i++) {
        const struct platform_fault *fault = &facts->faults[i];
        cJSON *object = json_object(json, list, NULL);
        char text[FAULT_TEXT_SIZE];
        json_number(json, object, "index", fault->platform_index);
        json_string(json, object, "platform", fault->platform);
        json_string(json, object, "error", fault_text(fault, text));
    }
}

enum healcl_status report_devices_json(const struct devices_facts *facts, FILE *stream)
{
    struct json json;
    json_begin(&json, healcl_version());
    cJSON *devices = json_array(&json, json.top, "devices");
    for (size_t i = 0; i < facts->count; i++)
        add_device(&json, json_object(&json, devices, NULL), facts, i);
    add_faults(&json, json.top, facts);
    if (facts->error)
        report_error_members(&json, facts->error, facts->is_of_driver);
    return json_print(&json, stream);
}
