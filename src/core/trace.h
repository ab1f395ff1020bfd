/*
 * A recorder of what a run did when: spans on three tracks (docs/TRACE.md).
 *
 * Every function takes NULL for a trace, and does nothing then. Names are kept as pointers: they
 * are literals, outlive the trace, or are copies of its own (trace_keep). A trace never makes a run
 * fail: what it has no room for is counted and left out.
 */
#ifndef HEALCL_CORE_TRACE_H
#define HEALCL_CORE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trace_track { TRACE_HOST, TRACE_TRANSFER, TRACE_COMPUTE, TRACE_TRACKS };

/* Clocks that the times of a span are counted by. Only those of the host's clock can be written. */
enum trace_clock { CLOCK_HOST, CLOCK_DEVICE, CLOCK_CONVERTED };

/* A kernel of a manifest, as traces and reports tell of it. */
struct manifest_kernel {
    const char *name;     /* of its alternative, "key_switch[STAGES=3]"; NULL: there is none */
    const char *file;     /* the manifest's, without its folder */
    const char *replaces; /* the built-in kind of step; NULL: it is of the manifest's operation */
    bool is_tuned;        /* healcl tune has chosen this alternative for the device */
};

struct trace_span {
    const char *category, *name;
    const char *operation;           /* that it was done for, or NULL */
    size_t entry;                    /* of that operation */
    const char *program;             /* of a kernel, else NULL */
    const void *tag;                 /* of a kernel's launch, or NULL */
    const char *options;             /* that it was built with, as trace_keep has them, or NULL */
    struct manifest_kernel manifest; /* whose texts are kept likewise */
    uint64_t groups;                 /* work-groups of a kernel */
    uint32_t local_size;             /* work-items in one of them */
    uint64_t bytes;                  /* that were moved; 0: unknown */
    uint64_t enqueued;   /* when the host enqueued the command, or 0: by the host's clock */
    uint64_t start, end; /* nanoseconds; end 0: not ended */
    enum trace_track track;
    enum trace_clock clock;
};

struct trace_text {
    struct trace_text *next;
    char text[];
};

struct trace {
    uint64_t start, end; /* of the whole: monotonic_nanoseconds() */
    struct trace_span *spans;
    size_t count, capacity, limit;
    uint64_t dropped;      /* spans that there was no room for */
    uint64_t clock_error;  /* the device's times may be wrong by so many nanoseconds */
    const char *operation; /* that what is recorded now is done for, or NULL */
    size_t entry;
    struct trace_text *texts; /* that trace_keep has copied */
};

enum { TRACE_SPANS_MAX = 1000000 };

/* At most limit spans are kept. NULL when out of memory. */
struct trace *trace_create(size_t limit);
void trace_free(struct trace *trace);

/* Ends the whole, and what has not ended. */
void trace_finish(struct trace *trace);

/* Says which operation is worked on from now on; NULL: none. */
void trace_for_operation(struct trace *trace, const char *operation, size_t entry);

/* A span of host work that begins now, and lies within those that have not ended. Returns its
 * index. */
size_t trace_begin(struct trace *trace, const char *category, const char *name);
void trace_end(struct trace *trace, size_t index);

/* A command that is about to be enqueued. Its times follow by trace_place; without them it is left
 * out. */
size_t trace_command(struct trace *trace, enum trace_track track, const char *category,
                     const char *name, uint64_t bytes);
void trace_place(struct trace *trace, size_t index, enum trace_clock clock, uint64_t start,
                 uint64_t end);

/* The span, to be described further until the next one is recorded; NULL where it was dropped. */
struct trace_span *trace_span(struct trace *trace, size_t index);

/* Says that a span is of a kernel of a manifest, if it is, and which. */
void trace_manifest_kernel(struct trace *trace, size_t index, const struct manifest_kernel *kernel);

/* A copy that lives as long as the trace, one for all equal texts. NULL when out of memory. */
const char *trace_keep(struct trace *trace, const char *text);

/* Places a command around those that were recorded after it on its track. */
void trace_enclose(struct trace *trace, size_t index);

/* One moment by two clocks. */
struct clock_pair {
    uint64_t host, device;
    uint64_t error; /* they may be so many nanoseconds apart */
};

/* Puts what is counted by the device's clock on the host's: first was read before all of it, last
 * after it. */
void trace_convert(struct trace *trace, const struct clock_pair *first,
                   const struct clock_pair *last);

#endif
