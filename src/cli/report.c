#include "cli/report.h"

#include "cli/cli.h"
#include "run/loaded_transcript.h"

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
    JSON_ADD(json_add_object(document, "error"),
             STRING("status", healcl_status_name(error->status)), STRING("message", error->message),
             TEXT("detail", error->detail), JSON_IF(is_of_driver, STRING("cause", "driver")),
             JSON_IF(is_of_driver, STRING("text", error->message)));
}

void report_add_command(cJSON *object, const char *command, const struct device_info *device,
                        const struct healcl_operations *manifests, const char *option,
                        const char *operand)
{
    const char *text = xformat("healcl %s -d %s", command, DEVICE_SELECTOR(device));
    const struct operation_folder *folder = manifests ? manifests->folders : NULL;
    for (; folder; folder = folder->next)
        text = xformat("%s %s %s", text, folder->is_trusted ? "--trust" : "--ops",
                       text_shell(folder->path));
    json_add_string(object, "repeat", xformat("%s %s%s", text, option, text_shell(operand)));
}

/* ---------------------------------------------------------------- parts of documents */

void report_add_device(cJSON *object, const struct device_info *info)
{
    JSON_ADD(
        object, STRING("index", DEVICE_SELECTOR(info)), STRING("name", info->name),
        STRING("type", device_type_name(info->type)), STRING("platform", info->platform),
        STRING("platform_version", info->platform_version), STRING("vendor", info->vendor),
        STRING("architecture", info->architecture), STRING("driver", info->driver),
        STRING("version", info->version), NUMBER("compute_units", info->compute_units),
        NUMBER("clock_mhz", info->clock_mhz), NUMBER("global_memory", info->global_memory_bytes),
        NUMBER("max_allocation", info->max_allocation_bytes),
        NUMBER("local_memory", info->local_memory_bytes),
        NUMBER("max_work_group_size", info->max_work_group_size),
        FLAG("unified_memory", info->unified_memory), FLAG("emulator", device_is_emulator(info)));
}

void report_add_self_test(cJSON *object, enum self_test_outcome outcome, const char *failure)
{
    JSON_ADD(object, STRING("self_test", self_test_outcome_name(outcome)),
             JSON_IF(outcome == SELF_TEST_FAILED, STRING("self_test_failure", failure)));
}

void report_add_tuning(cJSON *object, const struct device_tuning *tuning)
{
    char text[TUNING_TEXT_SIZE], buffer[TUNING_SOURCE_SIZE];
    const char *source = tuning_source_name(tuning, buffer);
    tuning_format(tuning, text);
    JSON_ADD(object, FLAG("tuned", source != NULL), TEXT("tuned_by", source),
             JSON_IF(tuning->cached_is_unreadable, STRING("tuning_failure", CACHED_UNREADABLE)),
             STRING("tuning", text));
}

void report_add_roofline(cJSON *object, const struct roofline *roofline)
{
    cJSON *rates = json_add_object(object, "roofline");
    json_add_number(rates, "copied_bytes_per_s", roofline->bytes);
    for (int i = 0; i < WORKS; i++) {
        if (roofline->work[i] > 0)
            json_add_number(rates, xformat("%s_per_s", segment_work_names[i]), roofline->work[i]);
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
    JSON_EACH(segment, json_at(document, "segments"))
    {
        JSON_EACH(kind, json_at(segment, "operations_by_kind"))
        {
            cJSON *sum = json_row(sums, "name", json_text(kind, "name"));
            JSON_EACH(member, kind)
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

/* ---------------------------------------------------------------- a transcript that ranks share */

static void add_parts(cJSON *list, const struct healcl_transcript *transcript,
                      const struct healcl_tensor_info *tensors, size_t count,
                      struct healcl_part (*part_of)(const struct healcl_transcript *, size_t))
{
    for (size_t i = 0; i < count; i++) {
        const struct healcl_part part = part_of(transcript, i);
        cJSON *about = json_add_object(list, NULL);
        JSON_ADD(about, NUMBER("entry", tensors[i].entry), STRING("tensor", tensors[i].name),
                 NUMBER("rank", tensors[i].rank), NUMBER("bytes", tensors[i].bytes),
                 FLAG("split", part.period > 0));
        if (part.period == 0)
            continue;
        JSON_ADD(about, NUMBER("axis", part.axis), NUMBER("start", (uint64_t)part.start),
                 NUMBER("size", (uint64_t)part.size), NUMBER("period", (uint64_t)part.period));
    }
}

void report_add_parts(cJSON *object, const struct healcl_transcript *part)
{
    size_t count;
    const struct healcl_tensor_info *tensors = healcl_transcript_inputs(part, &count);
    add_parts(json_add_array(object, "inputs"), part, tensors, count, healcl_transcript_input_part);
    tensors = healcl_transcript_results(part, &count);
    add_parts(json_add_array(object, "results"), part, tensors, count,
              healcl_transcript_result_part);
}

void report_add_split(cJSON *object, const struct healcl_transcript *part,
                      const struct healcl_split *split, bool is_chosen)
{
    size_t count;
    const struct healcl_tensor_info *input = healcl_transcript_inputs(part, &count) + split->input;
    JSON_ADD(object, NUMBER("entry", input->entry), STRING("tensor", input->name),
             NUMBER("axis", split->axis), FLAG("chosen", is_chosen));
}

void report_add_exchanges(cJSON *object, const struct healcl_transcript *part)
{
    const struct healcl_split_facts split = healcl_transcript_split_facts(part);
    JSON_ADD(object, NUMBER("exchanges", split.exchanges),
             NUMBER("exchange_bytes", split.exchange_bytes));
}

/* ---------------------------------------------------------------- JUnit: suites and cases */

void junit_init(struct junit *junit, const char *name)
{
    *junit = (struct junit){.top = cJSON_CreateObject()};
    json_add_string(junit->top, "name", name);
    junit->suites = json_add_array(junit->top, "suites");
}

void junit_suite(struct junit *junit, const char *name)
{
    cJSON *suite = json_add_object(junit->suites, NULL);
    json_add_string(suite, "name", name);
    junit->cases = json_add_array(suite, "cases");
}

void junit_case(struct junit *junit, const char *name, uint64_t nanoseconds)
{
    junit->last = json_add_object(junit->cases, NULL);
    JSON_ADD(junit->last, STRING("name", name), NUMBER("ns", nanoseconds));
    (void)json_add_array(junit->last, "lines");
}

void junit_outcome(struct junit *junit, enum junit_outcome outcome, const char *type,
                   const char *message)
{
    JSON_ADD(junit->last, NUMBER("outcome", outcome), STRING("type", type),
             STRING("message", message));
}

void junit_line(struct junit *junit, const char *text)
{
    json_add_string(cJSON_GetObjectItemCaseSensitive(junit->last, "lines"), NULL, text);
}

/* ---------------------------------------------------------------- XML */

static void put_attribute(FILE *stream, const char *name, const char *value)
{
    fprintf(stream, " %s=\"", name);
    text_print_escaped(stream, value, true);
    putc('"', stream);
}

static void put_member(FILE *stream, const cJSON *object, const char *key)
{
    put_attribute(stream, key, json_text(object, key));
}

static void put_seconds(FILE *stream, uint64_t nanoseconds)
{
    fprintf(stream, " time=\"%" PRIu64 ".%09" PRIu64 "\"", nanoseconds / 1000000000,
            nanoseconds % 1000000000);
}

/* Counts cases with an outcome, and adds their time. */
struct totals {
    uint64_t of[JUNIT_OUTCOME_COUNT], nanoseconds;
};

static void add_cases(struct totals *totals, const cJSON *suite)
{
    JSON_EACH(last, json_at(suite, "cases"))
    {
        totals->of[json_number_at(last, "outcome")]++;
        totals->nanoseconds += json_number_at(last, "ns");
    }
}

/* Prints the attributes of one suite, or of all. */
static void put_totals(FILE *stream, const cJSON *object, const struct totals *totals)
{
    const uint64_t *of = totals->of;
    put_member(stream, object, "name");
    fprintf(stream,
            " tests=\"%" PRIu64 "\" failures=\"%" PRIu64 "\" errors=\"%" PRIu64
            "\" skipped=\"%" PRIu64 "\"",
            of[JUNIT_PASSED] + of[JUNIT_FAILURE] + of[JUNIT_ERROR] + of[JUNIT_SKIPPED],
            of[JUNIT_FAILURE], of[JUNIT_ERROR], of[JUNIT_SKIPPED]);
    put_seconds(stream, totals->nanoseconds);
    fputs(">\n", stream);
}

static void put_case(FILE *stream, const cJSON *suite, const cJSON *object)
{
    static const char *const elements[JUNIT_OUTCOME_COUNT] = {"system-out", "failure", "error",
                                                              "skipped"};
    const uint64_t outcome = json_number_at(object, "outcome");
    const cJSON *lines = json_at(object, "lines");
    fputs("    <testcase", stream);
    put_attribute(stream, "classname", json_text(suite, "name"));
    put_member(stream, object, "name");
    put_seconds(stream, json_number_at(object, "ns"));
    if (outcome == JUNIT_PASSED && !lines->child) {
        fputs("/>\n", stream);
        return;
    }
    fprintf(stream, ">\n      <%s", elements[outcome]);
    if (outcome != JUNIT_PASSED) {
        put_member(stream, object, "type");
        put_member(stream, object, "message");
    }
    putc('>', stream);
    JSON_EACH(line, lines)
    {
        text_print_escaped(stream, line->valuestring, false);
        fputs(line->next ? "\n" : "", stream);
    }
    fprintf(stream, "</%s>\n    </testcase>\n", elements[outcome]);
}

void junit_print(struct junit *junit, FILE *stream)
{
    struct totals all = {.nanoseconds = 0};
    JSON_EACH(suite, junit->suites) add_cases(&all, suite);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", stream);
    put_totals(stream, junit->top, &all);
    JSON_EACH(suite, junit->suites)
    {
        struct totals totals = {.nanoseconds = 0};
        add_cases(&totals, suite);
        fputs("  <testsuite", stream);
        put_totals(stream, suite, &totals);
        JSON_EACH(object, json_at(suite, "cases")) put_case(stream, suite, object);
        fputs("  </testsuite>\n", stream);
    }
    fputs("</testsuites>\n", stream);
    cJSON_Delete(junit->top);
}
