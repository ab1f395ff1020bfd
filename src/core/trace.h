/*
 * Records when a run did what: spans on three tracks (docs/TRACE.md).
 *
 * Every function accepts NULL as the trace and then does nothing. Names are stored as pointers.
 * They must be literals, outlive the trace, or come from trace_keep. A trace never makes a run
 * fail: spans that do not fit are counted and dropped.
 */
#ifndef HEALCL_CORE_TRACE_H
#define HEALCL_CORE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trace_track { TRACE_HOST, TRACE_TRANSFER, TRACE_COMPUTE, TRACE_TRACKS };

/* Clocks that a span's times refer to. Only spans with times of the host's clock can be written. */
enum trace_clock { CLOCK_HOST, CLOCK_DEVICE, CLOCK_CONVERTED };

/* A manifest's kernel, as described in traces and reports. */
struct manifest_kernel {
    const char *name;     /* of its alternative, "key_switch[STAGES=3]"; NULL: not a manifest's */
    const char *file;     /* the manifest's, without its folder */
    const char *replaces; /* the built-in kind of step; NULL: it is for the manifest's operation */
    bool is_tuned;        /* healcl tune has chosen this alternative for the device */
};

struct trace_span {
    const char *category, *name;
    const char *operation;           /* the span's operation, or NULL */
    size_t entry;                    /* of that operation */
    const char *program;             /* of a kernel, else NULL */
    const void *tag;                 /* of a kernel's launch, or NULL */
    const char *options;             /* that it was built with, a copy of trace_keep, or NULL */
    struct manifest_kernel manifest; /* its texts are copies of trace_keep */
    uint64_t groups;                 /* work-groups of a kernel */
    uint32_t local_size;             /* work-items of a work-group */
    uint64_t bytes;                  /* bytes moved; 0: unknown */
    uint64_t enqueued;   /* when the host enqueued the command, by the host's clock; or 0 */
    uint64_t start, end; /* nanoseconds; end 0: not ended */
    enum trace_track track;
    enum trace_clock clock;
};

struct trace_text {
    struct trace_text *next;
    char text[];
};

struct trace {
    uint64_t start, end; /* of the whole run: monotonic_nanoseconds() */
    struct trace_span *spans;
    size_t count, capacity, limit;
    uint64_t dropped;      /* number of spans that did not fit */
    uint64_t clock_error;  /* greatest error of the device's times, in nanoseconds */
    const char *operation; /* the current operation, or NULL */
    size_t entry;
    struct trace_text *texts; /* copies made by trace_keep */
};

enum { TRACE_SPANS_MAX = 1000000 };

/* The trace stores at most `limit` spans. Returns NULL when out of memory. */
struct trace *trace_create(size_t limit);
void trace_free(struct trace *trace);

/* Ends the trace and all open spans. */
void trace_finish(struct trace *trace);

/* Sets the operation of the following spans; NULL: none. */
void trace_for_operation(struct trace *trace, const char *operation, size_t entry);

/* Begins a span of host work, nested in those that have not ended. Returns its index. */
size_t trace_begin(struct trace *trace, const char *category, const char *name);
void trace_end(struct trace *trace, size_t index);

/* Records a command that is about to be enqueued. trace_place later sets its times; otherwise the
 * command is left out. */
size_t trace_command(struct trace *trace, enum trace_track track, const char *category,
                     const char *name, uint64_t bytes);
void trace_place(struct trace *trace, size_t index, enum trace_clock clock, uint64_t start,
                 uint64_t end);

/* The span, which may be changed until the next one is recorded; NULL if it was dropped. */
struct trace_span *trace_span(struct trace *trace, size_t index);

/* Notes that a span belongs to a kernel of a manifest. Ignores a kernel that is not from one. */
void trace_manifest_kernel(struct trace *trace, size_t index, const struct manifest_kernel *kernel);

/* A copy that lives as long as the trace; equal texts share one copy. NULL when out of memory. */
const char *trace_keep(struct trace *trace, const char *text);

/* Sets a command's times so that they enclose the commands recorded after it on its track. */
void trace_enclose(struct trace *trace, size_t index);

/* One moment on two clocks. */
struct clock_pair {
    uint64_t host, device;
    uint64_t error; /* greatest difference between the two, in nanoseconds */
};

/* Converts times of the device's clock to the host's clock. first was read before all of them, last
 * after them. */
void trace_convert(struct trace *trace, const struct clock_pair *first,
                   const struct clock_pair *last);

#endif
