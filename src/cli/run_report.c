/* The report of a run: docs/JSON.md. */

#include "cli/requests.h"
#include "core/numbers.h"
#include "kernels/variant.h"

/* ---------------------------------------------------------------- JSON */

/* Profiles are listed for operations with a count, in the same order. */
static void add_kinds(cJSON *object, const struct plan *plan, const struct segment *planned,
                      const struct healcl_operation_profile *profile)
{
    cJSON *kinds = json_add_array(object, "operations_by_kind");
    uint64_t *bytes = xcalloc(operation_count(plan->table), sizeof *bytes);
    const struct step *steps = plan->steps + planned->first_step;
    for (size_t i = 0; i < planned->step_count; i++)
        if (steps[i].kind != STEP_RELEASE)
            origins_share(steps[i].origins, step_bytes(&steps[i]), bytes);
    for (size_t number = 0; number < operation_count(plan->table); number++) {
        if (planned->counts[number] == 0)
            continue;
        const bool fell_back = profile->fallbacks > 0;
        JSON_ADD(json_add_object(kinds, NULL), STRING("name", profile->name),
                 NUMBER("count", profile->count), NUMBER("time_ns", profile->nanoseconds),
                 NUMBER("bytes", bytes[number]), NUMBER("fallbacks", profile->fallbacks),
                 JSON_IF(fell_back, NUMBER("fallback_ns", profile->fallback_nanoseconds)),
                 JSON_IF(fell_back, STRING("fallback_reason", profile->fallback_reason)));
        profile++;
    }
    free(bytes);
}

static void add_segment(cJSON *segments, const struct run_facts *facts, size_t i)
{
    const struct segment *planned = &facts->plan->segments[i];
    const struct healcl_segment_profile *segment = &facts->report->segments[i];
    cJSON *object = json_add_object(segments, NULL);
    JSON_ADD(object, STRING("name", segment->name), NUMBER("operations", segment->operations),
             NUMBER("bytes_up", segment->bytes_up), NUMBER("bytes_down", segment->bytes_down),
             NUMBER("time_ns", segment->nanoseconds),
             JSON_IF(facts->roofline.bytes > 0,
                     NUMBER("roofline_ns", roofline_time(&facts->roofline, &planned->after))),
             NUMBER("profiled_ns", segment->profiled_nanoseconds),
             NUMBER("without_command_ns", segment->without_command_nanoseconds),
             NUMBER("not_begun_ns", segment->not_begun_nanoseconds));
    add_kinds(object, facts->plan, planned, segment->profiles);
}

/* Divides each run into decoding, transfers and compute. */
static void add_split(cJSON *document, const struct healcl_report *report)
{
    const size_t count = report->run_count;
    uint64_t *decode = xcalloc(count, 3 * sizeof *decode), *transfer = decode + count;
    uint64_t *compute = transfer + count;
    for (size_t i = 0; i < count; i++) {
        const uint64_t all = report->run_nanoseconds[i];
        decode[i] = report->decode_nanoseconds[i] < all ? report->decode_nanoseconds[i] : all;
        compute[i] = report->compute_nanoseconds[i];
        compute[i] = compute[i] < all - decode[i] ? compute[i] : all - decode[i];
        transfer[i] = all - decode[i] - compute[i];
    }
    cJSON *split = json_add_object(document, "split");
    json_add_string(split, "clock", "host");
    json_add_numbers(split, "decode_ns", decode, count);
    json_add_numbers(split, "transfer_ns", transfer, count);
    json_add_numbers(split, "compute_ns", compute, count);
    json_add_number(document, "compute_ns", sort_to_median(compute, count));
    free(decode);
}

/* Adds the least time that the device's rates allow for the kernels. */
static void add_roofline(cJSON *document, const struct run_facts *facts)
{
    uint64_t allowed = 0;
    for (size_t i = 0; i < facts->report->segment_count; i++)
        allowed += roofline_time(&facts->roofline, &facts->plan->segments[i].after);
    if (facts->roofline.bytes == 0)
        return;
    json_add_number(document, "roofline_ns", allowed);
    report_add_roofline(document, &facts->roofline);
}

static void add_verdict(cJSON *document, const struct run_facts *facts)
{
    const struct healcl_report *report = facts->report;
    JSON_ADD(document, report->verdict == HEALCL_NOTHING_TO_VERIFY
                           ? STRING("verified", NULL)
                           : FLAG("verified", report->verdict == HEALCL_VERIFIED));
    JSON_ADD(json_add_object(document, "results"), NUMBER("total", report->results),
             NUMBER("expected", facts->plan->expected),
             NUMBER("compared", report->results_compared),
             NUMBER("different", report->results_different));
    cJSON *differences = json_add_array(document, "differences");
    for (size_t i = 0; i < facts->difference_count; i++)
        json_add_string(differences, NULL, facts->differences[i].line);
}

static void add_memory(cJSON *document, const struct run_facts *facts)
{
    const struct healcl_report *report = facts->report;
    const struct memory_facts memory = {.limit = report->device_memory_limit,
                                        .peak = report->tensor_bytes_peak,
                                        .price = {.spilled = report->bytes_spilled,
                                                  .brought_back = report->bytes_brought_back,
                                                  .streamed_again = report->bytes_streamed_again},
                                        .allocated = report->tensor_bytes_allocated,
                                        .live = report->tensor_bytes_live};
    json_add_number(document, "device_memory_peak", report->device_bytes_peak);
    if (!facts->device && memory.limit == 0)
        return;
    cJSON *member = report_add_memory(document, &memory);
    if (memory.limit > 0)
        json_add_number(member, "moving_ns", report->spill_nanoseconds);
}

/* Lists requests after the run in order, from the first one that counts. */
static void add_steady(cJSON *document, const struct request_facts *facts)
{
    cJSON *object = json_add_object(document, "steady");
    json_add_numbers(object, "requests_ns", facts->nanoseconds, facts->done);
    JSON_ADD(object, NUMBER("bytes_uploaded", facts->bytes_uploaded),
             NUMBER("results_compared", facts->compared),
             NUMBER("results_different", facts->different));
}

static void add_times(cJSON *document, const struct run_facts *facts)
{
    const struct healcl_report *report = facts->report;
    json_add_numbers(document, "runs_ns", report->run_nanoseconds, report->run_count);
    if (report->decode_nanoseconds)
        add_split(document, report);
    add_roofline(document, facts);
    if (facts->steady)
        add_steady(document, facts->steady);
    cJSON *profile = json_add_object(document, "profile");
    json_add_string(profile, "clock", report->operations_by_host ? "host" : "device");
    json_add_numbers(profile, "runs_ns", report->profiled_nanoseconds, report->profiled_count);
    JSON_ADD(document, NUMBER("open_device_ns", facts->open_device_nanoseconds),
             NUMBER("self_test_ns", facts->self_test_nanoseconds),
             NUMBER("open_transcript_ns", facts->open_transcript_nanoseconds),
             NUMBER("compile_ns", report->compile_nanoseconds),
             NUMBER("warm_up_ns", report->warm_up_nanoseconds),
             NUMBER("programs_built", report->programs_built),
             NUMBER("programs_loaded", report->programs_loaded),
             NUMBER("first_launches", report->first_launches),
             NUMBER("first_launch_ns", report->first_launch_nanoseconds),
             NUMBER("first_result_ns", facts->first_result_nanoseconds),
             NUMBER("verify_ns", report->verify_nanoseconds),
             NUMBER("total_ns", facts->total_nanoseconds));
}

/* Lists manifests' kernels that ran. */
static void add_manifest_kernels(cJSON *document, const struct healcl_report *report)
{
    cJSON *list = json_add_array(document, "manifest_kernels");
    for (size_t i = 0; i < report->manifest_kernel_count; i++) {
        const struct healcl_manifest_kernel *kernel = &report->manifest_kernels[i];
        JSON_ADD(json_add_object(list, NULL), STRING("name", kernel->name),
                 STRING("of", kernel->what), STRING("manifest", kernel->manifest),
                 FLAG("replaces", kernel->replaces), NUMBER("steps", kernel->steps),
                 FLAG("tuned", kernel->tuned));
    }
}

cJSON *report_run(const struct run_facts *facts)
{
    const struct healcl_report *report = facts->report;
    cJSON *document = report_of(facts->file, facts->device);
    if (facts->device)
        report_add_tuning(cJSON_GetObjectItemCaseSensitive(document, "device"), facts->tuning);
    add_verdict(document, facts);
    add_times(document, facts);
    add_memory(document, facts);
    JSON_ADD(document, NUMBER("bytes_up", facts->plan->bytes_up),
             NUMBER("bytes_down", facts->plan->bytes_down),
             NUMBER("dropped_digits", report->dropped_digits),
             NUMBER("fallbacks", report->fallbacks));
    if (report->manifest_kernel_count > 0)
        add_manifest_kernels(document, report);
    if (facts->kernels)
        cJSON_AddItemToObject(document, "kernels", cJSON_Duplicate(facts->kernels, true));
    cJSON *segments = json_add_array(document, "segments");
    for (size_t i = 0; i < report->segment_count; i++)
        add_segment(segments, facts, i);
    return document;
}

/* ---------------------------------------------------------------- segments and operations */

enum { SEGMENTS_SHOWN = 20 };

/* A row of a table, to which time may still be added. */
static cJSON *add_time(cJSON *rows, const char *name, uint64_t nanoseconds)
{
    cJSON *row = json_add_object(rows, NULL);
    json_add_string(row, "name", name);
    json_increase(row, "time_ns", nanoseconds);
    return row;
}

static struct spread {
    uint64_t least, median, most;
} spread_of(const cJSON *list)
{
    const size_t count = (size_t)cJSON_GetArraySize(list);
    uint64_t *times = xcalloc(count + 1, sizeof *times);
    size_t i = 0;
    JSON_EACH(item, list) times[i++] = strtoull(item->valuestring, NULL, 10);
    const uint64_t median = count > 0 ? sort_to_median(times, count) : 0;
    const struct spread spread = {times[0], median, times[count > 0 ? count - 1 : 0]};
    free(times);
    return spread;
}

static void print_segments(const cJSON *document, const struct style *style, bool all)
{
    static const struct view_column columns[] = {
        {"segment", "{name|(outside segments)}", VIEW_SHRINKS},
        {"operations", "{operations}", VIEW_RIGHT},
        {"up", "{bytes_up:bytes?}", VIEW_RIGHT},
        {"down", "{bytes_down:bytes?}", VIEW_RIGHT},
        {"time", "{time_ns:time}", VIEW_RIGHT},
        {"roofline", "{roofline_ns/time_ns:%?}", VIEW_RIGHT}};
    const cJSON *segments = json_at(document, "segments");
    const int count = cJSON_GetArraySize(segments);
    const uint64_t warm_up = json_number_at(document, "warm_up_ns"),
                   shortest = spread_of(json_at(document, "runs_ns")).least;
    cJSON *rows = cJSON_CreateArray();
    JSON_EACH(segment, segments) cJSON_AddItemReferenceToArray(rows, segment);
    if (!all && count > SEGMENTS_SHOWN)
        json_sort(rows, "time_ns");
    for (int i = SEGMENTS_SHOWN; !all && i < count; i++)
        cJSON_DeleteItemFromArray(rows, SEGMENTS_SHOWN);
    if (count != 1) {
        static const char *const keys[] = {"operations", "bytes_up", "bytes_down", "time_ns"};
        const bool is_cut = !all && count > SEGMENTS_SHOWN;
        cJSON *total = add_time(rows, is_cut ? xformat("total of %d segments", count) : "total", 0);
        JSON_EACH(segment, segments)
        {
            for (size_t i = 0; i < 4; i++)
                json_increase(total, keys[i], json_number_at(segment, keys[i]));
        }
    }
    /* Drivers may also compile kernels when they first run. */
    const uint64_t compiling =
        json_number_at(document, "compile_ns") + (warm_up > shortest ? warm_up - shortest : 0);
    if (compiling > 0)
        (void)add_time(rows, "compiling", compiling);
    view_table(style, rows, columns, all && json_at(document, "roofline") ? 6 : 5);
    cJSON_Delete(rows);
}

/* Prints operations by kind, and the time between them. Each time is a separate median, so their
 * sum may exceed the total. */
static void print_operations(const cJSON *document, const struct style *style)
{
    static const struct view_column columns[] = {{"operation", "{name}", VIEW_SHRINKS},
                                                 {"count", "{count:#?}", VIEW_RIGHT},
                                                 {"time", "{time_ns:time?}", VIEW_RIGHT},
                                                 {"share", "{time_ns/all:%?}", VIEW_RIGHT},
                                                 {"each", "{time_ns/count:time?}", VIEW_RIGHT}};
    uint64_t whole = 0, not_begun = 0, idle = 0, known = 0;
    cJSON *rows = report_sum_kinds(document);
    json_sort(rows, "time_ns");
    JSON_EACH(row, json_at(document, "segments"))
    {
        whole += json_number_at(row, "profiled_ns");
        not_begun += json_number_at(row, "not_begun_ns");
        idle += json_number_at(row, "without_command_ns");
    }
    if (not_begun > 0)
        (void)add_time(rows, "(the driver begins a kernel)", not_begun);
    if (idle > 0)
        (void)add_time(rows, "(the device has no command)", idle);
    JSON_EACH(row, rows) known += json_number_at(row, "time_ns");
    if (whole > known)
        (void)add_time(rows, "(transfers and the rest)", whole - known);
    JSON_EACH(row, rows) json_increase(row, "all", whole > known ? whole : known);
    VIEW_TABLE(style, rows, columns);
    cJSON_Delete(rows);
}

/* Prints steps that ran on the host, or with kernels that replaced those of manifests. */
static void print_fallbacks(const cJSON *document, const struct style *style)
{
    cJSON *kinds = report_sum_kinds(document);
    putc('\n', style->stream);
    JSON_EACH(kind, kinds)
    {
        view_line(style, kind, "fell back",
                  "{name}: {fallbacks:#?} step{fallbacks:s}[, {fallback_ns:time?} on the host]: "
                  "{fallback_reason}");
    }
    cJSON_Delete(kinds);
}

/* ---------------------------------------------------------------- the whole */

#define GREEN "\x1b[1;32m"
#define RED "\x1b[1;31m"
#define YELLOW "\x1b[1;33m"
#define PLAIN "\x1b[0m"

/* "verified: 8 of 10 results" */
static void print_verdict(const cJSON *document, const struct style *style)
{
    const cJSON *verified = json_at(document, "verified");
    const char *colour = YELLOW, *word = "nothing to verify",
               *template = "{results.total} result{results.total:s}, {results.expected} with an "
                           "expected tensor, none compared";
    if (cJSON_IsTrue(verified)) {
        colour = GREEN;
        word = "verified";
        template = "{results.compared} of {results.total} result{results.total:s}";
    } else if (cJSON_IsFalse(verified)) {
        colour = RED;
        word = "different";
        template = "{results.different} of {results.total} result{results.total:s}";
    }
    fprintf(style->stream, style->colour ? "%s%s%s: " : "%.0s%s%.0s: ", colour, word, PLAIN);
    view_text(style, document, template);
}

static void print_kernels(const cJSON *document, const struct style *style)
{
    static const struct view_column columns[] = {
        {"kernel", "{kernel}", VIEW_SHRINKS},
        {"step", "{step}", VIEW_SHRINKS},
        {"variant", "{variant}", 0},
        {"launches", "{launches}", VIEW_RIGHT},
        {"groups x size", "{work_groups} x {local_size}", VIEW_RIGHT},
        {"time", "{time_ns:time}", VIEW_RIGHT},
        {"GB/s", "{bytes/time_ns:.1}", VIEW_RIGHT},
        {"roofline", "{roofline_ns/time_ns:%?}", VIEW_RIGHT},
        {"why", "general: {why_general}", VIEW_SHRINKS | VIEW_BLANK},
    };
    VIEW_SECTION(style, json_at(document, "kernels"), columns);
}

static void print_spreads(const cJSON *document, const struct style *style)
{
    const struct spread runs = spread_of(json_at(document, "runs_ns")),
                        steady = spread_of(json_at(document, "steady.requests_ns"));
    if (json_number_at(document, "runs_ns") > 1)
        report_label(style, "runs", "%" PRIu64 ": median %s, fastest %s, slowest %s",
                     json_number_at(document, "runs_ns"), TEXT_TIME(runs.median),
                     TEXT_TIME(runs.least), TEXT_TIME(runs.most));
    if (json_at(document, "steady"))
        report_label(style, "steady", "%" PRIu64 " requests of %s to %s, each uploads %s",
                     json_number_at(document, "steady.requests_ns"), TEXT_TIME(steady.least),
                     TEXT_TIME(steady.most),
                     TEXT_BYTES(json_number_at(document, "steady.bytes_uploaded")));
}

void report_run_text(const cJSON *document, const struct style *style, bool verbose)
{
    static const struct view_line lines[] = {
        {"memory", "{device_memory_peak:bytes} at most[, {tensor_memory.allocated:bytes} of it for "
                   "tensors]"},
        {"limit", "{device_memory.limit:bytes}: {device_memory.bytes_spilled:bytes} spilled, "
                  "{device_memory.bytes_brought_back:bytes} brought back, "
                  "{device_memory.bytes_streamed_again:bytes} uploaded again, in "
                  "{device_memory.moving_ns:time}"}};
    const bool has_segments = json_number_at(document, "segments") > 0;
    const cJSON *kernels = json_at(document, "kernels");
    view_line(style, document, "transcript", "{transcript}");
    view_line(style, document, "device",
              "[{device.name} ({device.platform})]{device.name!host reference}");
    if (verbose)
        view_line(style, document, "driver", "{device.driver}, {device.version}");
    view_line(style, document, "tuned",
              verbose ? "by {device.tuned_by}: {device.tuning}" : "by {device.tuned_by}");
    VIEW_LINES(style, document, lines);
    JSON_EACH(kernel, json_at(document, "manifest_kernels"))
    {
        view_line(style, kernel, "manifest",
                  "{name} of {manifest} ran {steps} step{steps:s} of {of}{replaces= in place of a "
                  "built-in kernel}{tuned=, tuned}");
    }
    print_spreads(document, style);
    if (has_segments) {
        putc('\n', style->stream);
        print_segments(document, style, verbose);
    }
    if (verbose && has_segments) {
        view_line(style, document, "cold start",
                  "{programs_built} programs built, {programs_loaded} loaded, {compile_ns:time}; "
                  "{first_launches} first launches, {first_launch_ns:time}"
                  "[; self-test {self_test_ns:time?}]");
        putc('\n', style->stream);
        print_operations(document, style);
    }
    if (json_number_at(document, "fallbacks") > 0)
        print_fallbacks(document, style);
    if (kernels)
        print_kernels(document, style);
    if ((verbose || kernels) && json_at(document, "device.name") &&
        json_is(document, "profile.clock", "host"))
        fputs("(by the host's clock, waiting for each command: this driver reports no times)\n",
              style->stream);
    putc('\n', style->stream);
    print_verdict(document, style);
}

/* ---------------------------------------------------------------- JUnit */

void report_run_junit(const struct run_facts *facts, FILE *stream)
{
    struct junit junit;
    const char *device = facts->device ? facts->device->name : "host reference";
    junit_init(&junit, xformat("healcl run on %s", device));
    junit_suite(&junit, facts->file);
    for (size_t i = 0; i < facts->report->segment_count; i++) {
        const struct healcl_segment_profile *segment = &facts->report->segments[i];
        junit_case(&junit, xformat("segment %zu: %.100s", i + 1, segment_title(segment->name)),
                   segment->nanoseconds);
        if (segment->results_different > 0)
            junit_outcome(&junit, JUNIT_FAILURE, "different",
                          xformat("%" PRIu64 " of %" PRIu64 " results differ",
                                  segment->results_different, segment->results));
        else if (segment->results > 0 && segment->results_compared == 0)
            junit_outcome(&junit, JUNIT_SKIPPED, "nothing to verify",
                          facts->no_verify ? "results are not compared: --no-verify"
                                           : "no result carries an expected tensor");
        else if (segment->results_compared > 0)
            junit_line(&junit, xformat("verified: %" PRIu64 " of %" PRIu64 " results",
                                       segment->results_compared, segment->results));
        for (size_t j = 0; j < facts->difference_count; j++)
            if (facts->differences[j].segment == i)
                junit_line(&junit, facts->differences[j].line);
    }
    junit_print(&junit, stream);
}

/* ---------------------------------------------------------------- kernels of the last repetition
 */

/* A step, and the time of all kernels launched for it. */
struct timed_step {
    const struct origins *origins; /* the tag of its launches */
    const struct step *step;
    struct segment_cost cost;
    uint64_t nanoseconds;
};

struct timed_steps {
    struct timed_step *of;
    size_t count;
};

static int by_origins(const void *a, const void *b)
{
    const struct timed_step *x = a, *y = b;
    return (x->origins > y->origins) - (x->origins < y->origins);
}

/* Steps with the same origins count as one. */
static void find_steps(const struct plan *plan, struct timed_steps *steps)
{
    size_t kept = 0;
    steps->of = xcalloc(plan->step_count, sizeof *steps->of);
    for (size_t i = 0; i < plan->step_count; i++)
        steps->of[i] =
            (struct timed_step){.origins = plan->steps[i].origins, .step = &plan->steps[i]};
    qsort(steps->of, plan->step_count, sizeof *steps->of, by_origins);
    for (size_t i = 0; i < plan->step_count; i++) {
        if (kept == 0 || steps->of[kept - 1].origins != steps->of[i].origins)
            steps->of[kept++] = steps->of[i];
        step_add_cost(steps->of[i].step, &steps->of[kept - 1].cost);
    }
    steps->count = kept;
}

/* Returns NULL for a kernel that belongs to no step, such as one that computes tables. */
static struct timed_step *step_of(const struct timed_steps *steps, const struct trace_span *span)
{
    const struct timed_step key = {.origins = span->tag};
    return span->tag ? bsearch(&key, steps->of, steps->count, sizeof key, by_origins) : NULL;
}

/* Returns why a general variant runs the step instead of the first variant of the tuning's
 * style. */
static const char *why_general(const struct step *step, const struct variant *variant,
                               const struct healcl_device *device)
{
    const struct family *family = family_of(step->kind);
    const char *why = NULL;
    for (size_t i = 0; variant->style == STYLE_GENERAL && &family->variants[i] != variant; i++)
        if (!why && family->variants[i].style == device->tuning.styles[family->preference])
            why = variant_obstacle(family, &family->variants[i], step, device);
    return why;
}

/* Returns the row for launches like this one. */
static cJSON *row_of(cJSON *rows, const struct trace_span *span, const struct step *step,
                     const struct healcl_device *device)
{
    const char *kind = step ? step_traits[step->kind].name : "", *name = "", *why = NULL;
    if (step && span->manifest.name) {
        name = span->manifest.name;
    } else if (step && family_of(step->kind) && step->kind != STEP_VENDOR) {
        const struct variant *variant = variant_for(step, device);
        name = variant->name;
        why = why_general(step, variant, device);
    }
    char key[1024];
    snprintf(key, sizeof key, "%s|%s|%s|%" PRIu64 "|%" PRIu32 "|%s", span->name, kind, name,
             span->groups, span->local_size, why ? why : "");
    cJSON *row = json_row(rows, "key", key);
    if (json_at(row, "kernel"))
        return row;
    JSON_ADD(row, STRING("kernel", span->name), TEXT("step", kind), TEXT("variant", name));
    json_increase(row, "launches", 0);
    JSON_ADD(row, NUMBER("work_groups", span->groups), NUMBER("local_size", span->local_size));
    json_increase(row, "time_ns", 0);
    JSON_ADD(row, TEXT("why_general", why));
    return row;
}

static bool is_kernel(const struct trace_span *span)
{
    return span->track == TRACE_COMPUTE && span->program && span->end > span->start;
}

/* A step's bytes, and the time that rates allow, are divided among its kernels in proportion to
 * their times. */
static void add_launch(cJSON *row, const struct trace_span *span, const struct timed_step *step,
                       const struct roofline *roofline)
{
    const uint64_t nanoseconds = span->end - span->start;
    json_increase(row, "launches", 1);
    json_increase(row, "time_ns", nanoseconds);
    if (!step)
        return;
    const double share = (double)nanoseconds / (double)step->nanoseconds;
    const double allowed = (double)roofline_time(roofline, &step->cost) * share;
    json_increase(row, "bytes", (uint64_t)((double)step->cost.bytes * share));
    if (allowed >= 1)
        json_increase(row, "roofline_ns", (uint64_t)allowed);
}

cJSON *report_launches(const struct plan *plan, const struct trace *trace,
                       const struct roofline *roofline, const struct healcl_device *device)
{
    struct timed_steps steps = {.of = NULL};
    cJSON *rows = cJSON_CreateArray();
    size_t first = trace->count; /* of the last repetition */
    while (first > 0 && strcmp(trace->spans[first - 1].category, "repetition") != 0)
        first--;
    find_steps(plan, &steps);
    for (size_t i = first; i < trace->count; i++) {
        struct timed_step *step = step_of(&steps, &trace->spans[i]);
        if (step && is_kernel(&trace->spans[i]))
            step->nanoseconds += trace->spans[i].end - trace->spans[i].start;
    }
    for (size_t i = first; i < trace->count; i++) {
        const struct trace_span *span = &trace->spans[i];
        const struct timed_step *step = step_of(&steps, span);
        if (is_kernel(span))
            add_launch(row_of(rows, span, step ? step->step : NULL, device), span, step, roofline);
    }
    free(steps.of);
    json_sort(rows, "time_ns");
    JSON_EACH(row, rows) cJSON_DeleteItemFromObject(row, "key");
    return rows;
}
