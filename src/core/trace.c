#include "core/trace.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/clock.h"

/* Shortest time, in nanoseconds, between two readings that the clocks' rates are compared by. The
 * readings' errors, a few microseconds, must be negligible. */
enum { RATE_INTERVAL = 100000000 };

/* Stands for a span that was not recorded. */
static const size_t DROPPED = SIZE_MAX;

struct trace *trace_create(size_t limit)
{
    struct trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return NULL;
    trace->limit = limit;
    trace->start = monotonic_nanoseconds();
    return trace;
}

void trace_free(struct trace *trace)
{
    if (!trace)
        return;
    while (trace->texts) {
        struct trace_text *kept = trace->texts;
        trace->texts = kept->next;
        free(kept);
    }
    free(trace->spans);
    free(trace);
}

void trace_finish(struct trace *trace)
{
    if (!trace)
        return;
    trace->end = monotonic_nanoseconds();
    for (size_t i = 0; i < trace->count; i++)
        if (trace->spans[i].track == TRACE_HOST && trace->spans[i].end == 0)
            trace->spans[i].end = trace->end;
}

void trace_for_operation(struct trace *trace, const char *operation, size_t entry)
{
    if (!trace)
        return;
    trace->operation = operation;
    trace->entry = entry;
}

/* ---------------------------------------------------------------- spans */

static size_t add_span(struct trace *trace, const struct trace_span *span)
{
    if (trace->count == trace->limit || !ARRAY_GROW(trace->spans, trace->count, &trace->capacity)) {
        trace->dropped++;
        return DROPPED;
    }
    trace->spans[trace->count] = *span;
    trace->spans[trace->count].operation = trace->operation;
    trace->spans[trace->count].entry = trace->entry;
    return trace->count++;
}

struct trace_span *trace_span(struct trace *trace, size_t index)
{
    return trace && index < trace->count ? &trace->spans[index] : NULL;
}

size_t trace_begin(struct trace *trace, const char *category, const char *name)
{
    if (!trace)
        return DROPPED;
    const struct trace_span span = {
        .category = category, .name = name, .track = TRACE_HOST, .start = monotonic_nanoseconds()};
    return add_span(trace, &span);
}

void trace_end(struct trace *trace, size_t index)
{
    struct trace_span *span = trace_span(trace, index);
    if (span)
        span->end = monotonic_nanoseconds();
}

size_t trace_command(struct trace *trace, enum trace_track track, const char *category,
                     const char *name, uint64_t bytes)
{
    if (!trace)
        return DROPPED;
    const struct trace_span span = {.category = category,
                                    .name = name,
                                    .track = track,
                                    .bytes = bytes,
                                    .enqueued = monotonic_nanoseconds()};
    return add_span(trace, &span);
}

void trace_place(struct trace *trace, size_t index, enum trace_clock clock, uint64_t start,
                 uint64_t end)
{
    struct trace_span *span = trace_span(trace, index);
    if (!span)
        return;
    span->clock = clock;
    span->start = start;
    span->end = end;
}

const char *trace_keep(struct trace *trace, const char *text)
{
    if (!trace)
        return NULL;
    for (const struct trace_text *kept = trace->texts; kept; kept = kept->next)
        if (strcmp(kept->text, text) == 0)
            return kept->text;
    size_t size = strlen(text) + 1;
    struct trace_text *kept = malloc(sizeof *kept + size);
    if (!kept)
        return NULL;
    kept->next = trace->texts;
    memcpy(kept->text, text, size);
    trace->texts = kept;
    return kept->text;
}

void trace_manifest_kernel(struct trace *trace, size_t index, const struct manifest_kernel *kernel)
{
    struct trace_span *span = trace_span(trace, index);
    if (!span || !kernel->name)
        return;
    span->manifest = *kernel;
    span->manifest.name = trace_keep(trace, kernel->name);
    span->manifest.file = trace_keep(trace, kernel->file);
}

void trace_enclose(struct trace *trace, size_t index)
{
    struct trace_span *around = trace_span(trace, index);
    if (!around)
        return;
    for (size_t i = index + 1; i < trace->count; i++) {
        const struct trace_span *span = &trace->spans[i];
        if (span->track != around->track || span->end == 0)
            continue;
        around->clock = span->clock;
        if (around->end == 0 || around->start > span->start)
            around->start = span->start;
        if (around->end < span->end)
            around->end = span->end;
    }
}

/* ---------------------------------------------------------------- the device's clock */

static uint64_t convert(uint64_t time, const struct clock_pair *pair, double rate)
{
    double distance = time >= pair->device ? (double)(time - pair->device) * rate
                                           : -(double)(pair->device - time) * rate;
    return (uint64_t)((int64_t)pair->host + (int64_t)distance);
}

void trace_convert(struct trace *trace, const struct clock_pair *first,
                   const struct clock_pair *last)
{
    if (!trace)
        return;
    double rate = 1;
    if (last->device > first->device && last->device - first->device > RATE_INTERVAL)
        rate = (double)(last->host - first->host) / (double)(last->device - first->device);
    trace->clock_error = first->error > last->error ? first->error : last->error;
    for (size_t i = 0; i < trace->count; i++) {
        struct trace_span *span = &trace->spans[i];
        if (span->clock != CLOCK_DEVICE)
            continue;
        span->start = convert(span->start, first, rate);
        span->end = convert(span->end, first, rate);
        span->clock = CLOCK_CONVERTED;
    }
}
