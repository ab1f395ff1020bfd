/* A trace as a file: the Trace Event Format of Chrome, which Perfetto reads; see docs/TRACE.md.
 * Span by span: as a cJSON object the whole would take some kilobytes for each. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "report/text.h"

enum { PROCESS = 1 };

static const char *const track_names[TRACE_TRACKS] = {"host", "transfer queue", "compute queue"};

/* ---------------------------------------------------------------- JSON */

static void print_string(FILE *stream, const char *text)
{
    putc('"', stream);
    for (const char *next = text; *next; next++) {
        unsigned char byte = (unsigned char)*next;
        if (byte == '"' || byte == '\\')
            fprintf(stream, "\\%c", byte);
        else if (byte < 0x20)
            fprintf(stream, "\\u%04x", byte);
        else
            putc(byte, stream);
    }
    putc('"', stream);
}

/* "key": "value", where value may come from a hostile file. */
static void print_member(FILE *stream, const char *key, const char *value)
{
    fprintf(stream, "\"%s\": ", key);
    char *clean = strdup(value);
    if (clean)
        text_clean(clean, true);
    print_string(stream, clean ? clean : "?");
    free(clean);
}

/* The format's unit is the microsecond. */
static void print_time(FILE *stream, const char *key, uint64_t nanoseconds)
{
    fprintf(stream, ", \"%s\": %" PRIu64 ".%03u", key, nanoseconds / 1000,
            (unsigned)(nanoseconds % 1000));
}

/* ---------------------------------------------------------------- spans */

static void print_manifest_kernel(const struct manifest_kernel *kernel, const char *separator,
                                  FILE *stream)
{
    fputs(separator, stream);
    print_member(stream, "manifest", kernel->file);
    fputs(", ", stream);
    print_member(stream, "alternative", kernel->name);
    if (kernel->replaces) {
        fputs(", ", stream);
        print_member(stream, "replaces", kernel->replaces);
    }
    fprintf(stream, ", \"tuned\": %s", kernel->is_tuned ? "true" : "false");
}

static void print_arguments(const struct trace_span *span, FILE *stream)
{
    const char *separator = "";
    fputs(", \"args\": {", stream);
    if (span->operation) {
        print_member(stream, "op", span->operation);
        fprintf(stream, ", \"entry\": %zu", span->entry);
        separator = ", ";
    }
    if (span->program) {
        fputs(separator, stream);
        print_member(stream, "program", span->program);
        fprintf(stream, ", \"work_groups\": %" PRIu64 ", \"local_size\": %" PRIu32, span->groups,
                span->local_size);
        separator = ", ";
    }
    if (span->options) {
        fputs(separator, stream);
        print_member(stream, "options", span->options);
    }
    if (span->manifest.name && span->manifest.file) {
        print_manifest_kernel(&span->manifest, separator, stream);
        separator = ", ";
    }
    if (span->bytes > 0) {
        fprintf(stream, "%s\"bytes\": %" PRIu64, separator, span->bytes);
        separator = ", ";
        if (span->program)
            fprintf(stream, ", \"moduli\": %" PRIu64 ", \"twiddles\": %" PRIu64, span->moduli,
                    span->twiddles);
    }
    if (span->program && span->start > span->enqueued) {
        fprintf(stream, "%s\"waited_ns\": %" PRIu64, separator, span->start - span->enqueued);
        separator = ", ";
    }
    if (span->track != TRACE_HOST && span->clock == CLOCK_HOST)
        fprintf(stream, "%s\"clock\": \"host\"", separator);
    putc('}', stream);
}

static void print_span(const struct trace *trace, const struct trace_span *span, FILE *stream)
{
    /* A command's times are those of the device's clock, and so may lie a little before. */
    uint64_t start = span->start > trace->start ? span->start - trace->start : 0;
    fprintf(stream, ",\n{\"ph\": \"X\", \"pid\": %d, \"tid\": %d, ", PROCESS, span->track + 1);
    print_member(stream, "name", span->name);
    fputs(", ", stream);
    print_member(stream, "cat", span->category);
    print_time(stream, "ts", start);
    print_time(stream, "dur", span->end - span->start);
    print_arguments(span, stream);
    putc('}', stream);
}

static bool is_written(const struct trace_span *span)
{
    return span->end != 0 && span->clock != CLOCK_DEVICE;
}

/* ---------------------------------------------------------------- the file */

static void print_track_names(FILE *stream)
{
    fprintf(stream,
            "{\"ph\": \"M\", \"pid\": %d, \"name\": \"process_name\", "
            "\"args\": {\"name\": \"healcl\"}}",
            PROCESS);
    for (int i = 0; i < TRACE_TRACKS; i++)
        fprintf(stream,
                ",\n{\"ph\": \"M\", \"pid\": %d, \"tid\": %d, \"name\": \"thread_name\", "
                "\"args\": {\"name\": \"%s\"}},\n"
                "{\"ph\": \"M\", \"pid\": %d, \"tid\": %d, \"name\": \"thread_sort_index\", "
                "\"args\": {\"sort_index\": %d}}",
                PROCESS, i + 1, track_names[i], PROCESS, i + 1, i);
}

void report_trace(const char *file, const char *device, const char *driver,
                  const struct trace *trace, FILE *stream)
{
    fputs("{\"traceEvents\": [\n", stream);
    print_track_names(stream);
    for (size_t i = 0; i < trace->count; i++)
        if (is_written(&trace->spans[i]))
            print_span(trace, &trace->spans[i], stream);
    fputs("\n],\n\"displayTimeUnit\": \"ns\",\n\"otherData\": {", stream);
    print_member(stream, "healcl", healcl_version());
    fputs(", ", stream);
    print_member(stream, "transcript", file);
    fputs(", ", stream);
    print_member(stream, "device", device);
    fputs(", ", stream);
    print_member(stream, "driver", driver);
    fprintf(stream,
            ", \"total_ns\": %" PRIu64 ", \"clock_error_ns\": %" PRIu64
            ", \"dropped_spans\": %" PRIu64 "}}\n",
            trace->end - trace->start, trace->clock_error, trace->dropped);
}
