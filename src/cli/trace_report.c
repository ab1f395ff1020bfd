/* Writes a trace in Chrome's Trace Event Format, which Perfetto reads; see docs/TRACE.md. It writes
 * one span at a time: a cJSON object of the whole trace would need kilobytes per span. */

#include "cli/report.h"

enum { PROCESS = 1 };

static const char *const track_names[TRACE_TRACKS] = {"host", "transfer queue", "compute queue"};

/* Prints an object after others, and frees it. */
static void print_object(cJSON *object, const char *before, FILE *stream)
{
    char *text = cJSON_PrintUnformatted(object);
    fprintf(stream, "%s%s", before, text);
    cJSON_free(text);
    cJSON_Delete(object);
}

/* ph: the kind of event; track -1: none. */
static cJSON *event(const char *ph, int track, const char *name)
{
    cJSON *object = cJSON_CreateObject();
    JSON_ADD(object, STRING("ph", ph), NUMBER("pid", PROCESS),
             JSON_IF(track >= 0, NUMBER("tid", (uint64_t)track + 1)), STRING("name", name));
    return object;
}

/* The format's unit is the microsecond. */
static void add_time(cJSON *object, const char *key, uint64_t nanoseconds)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64 ".%03u", nanoseconds / 1000,
             (unsigned)(nanoseconds % 1000));
    cJSON_AddRawToObject(object, key, text);
}

/* ---------------------------------------------------------------- spans */

static void add_arguments(cJSON *object, const struct trace_span *span)
{
    const struct manifest_kernel *kernel = &span->manifest;
    const bool is_manifests = kernel->name && kernel->file;
    JSON_ADD(
        object, JSON_IF(span->operation, STRING("op", span->operation)),
        JSON_IF(span->operation, NUMBER("entry", span->entry)),
        JSON_IF(span->program, STRING("program", span->program)),
        JSON_IF(span->program, NUMBER("work_groups", span->groups)),
        JSON_IF(span->program, NUMBER("local_size", span->local_size)),
        JSON_IF(span->options, STRING("options", span->options)),
        JSON_IF(is_manifests, STRING("manifest", kernel->file)),
        JSON_IF(is_manifests, STRING("alternative", kernel->name)),
        JSON_IF(is_manifests && kernel->replaces, STRING("replaces", kernel->replaces)),
        JSON_IF(is_manifests, FLAG("tuned", kernel->is_tuned)),
        JSON_IF(span->bytes > 0, NUMBER("bytes", span->bytes)),
        JSON_IF(span->program && span->start > span->enqueued,
                NUMBER("waited_ns", span->start - span->enqueued)),
        JSON_IF(span->track != TRACE_HOST && span->clock == CLOCK_HOST, STRING("clock", "host")));
}

static void print_span(const struct trace *trace, const struct trace_span *span, FILE *stream)
{
    cJSON *object = event("X", (int)span->track, span->name);
    /* A command's times are from the device's clock, so they may be slightly too early. */
    uint64_t start = span->start > trace->start ? span->start - trace->start : 0;
    json_add_string(object, "cat", span->category);
    add_time(object, "ts", start);
    add_time(object, "dur", span->end - span->start);
    add_arguments(json_add_object(object, "args"), span);
    print_object(object, ",\n", stream);
}

/* ---------------------------------------------------------------- the file */

static void print_names(FILE *stream)
{
    cJSON *object = event("M", -1, "process_name");
    json_add_string(json_add_object(object, "args"), "name", "healcl");
    print_object(object, "", stream);
    for (int i = 0; i < TRACE_TRACKS; i++) {
        object = event("M", i, "thread_name");
        json_add_string(json_add_object(object, "args"), "name", track_names[i]);
        print_object(object, ",\n", stream);
        object = event("M", i, "thread_sort_index");
        json_add_number(json_add_object(object, "args"), "sort_index", (uint64_t)i);
        print_object(object, ",\n", stream);
    }
}

void report_trace(const char *file, const char *device, const char *driver,
                  const struct trace *trace, FILE *stream)
{
    cJSON *about = json_report();
    JSON_ADD(about, STRING("transcript", file), STRING("device", device), STRING("driver", driver),
             NUMBER("total_ns", trace->end - trace->start),
             NUMBER("clock_error_ns", trace->clock_error), NUMBER("dropped_spans", trace->dropped));
    fputs("{\"traceEvents\": [\n", stream);
    print_names(stream);
    for (size_t i = 0; i < trace->count; i++)
        if (trace->spans[i].end != 0 && trace->spans[i].clock != CLOCK_DEVICE)
            print_span(trace, &trace->spans[i], stream);
    print_object(about, "\n],\n\"displayTimeUnit\": \"ns\",\n\"otherData\": ", stream);
    fputs("}\n", stream);
}
