/* Times by segment and by kind of operation, and shares of the bandwidth. */
#include <stdlib.h>
#include <string.h>

#include "compare/html.h"
#include "compare/page.h"
#include "report/text.h"

enum { ROWS_MAX = 16 }; /* of a chart: the longest; all are in its table */

/* ---------------------------------------------------------------- segments and operations */

/* A row for each segment, or for each kind of operation, of any device. */
struct part_row {
    const char *name;
    size_t place;  /* segments: of all of them, for names may come again */
    uint64_t most; /* time on any device, nanoseconds */
};

struct parts {
    const char *title, *description, *heading, *note;
    bool segments; /* else kinds of operations */
    struct part_row *rows;
    size_t count;
};

/* The part of a run that a row is about, or NULL. */
static const struct compare_part *part_of(const struct compare_run *run, const struct parts *parts,
                                          const struct part_row *row)
{
    if (parts->segments)
        return row->place < run->segment_count ? &run->segments[row->place] : NULL;
    for (size_t i = 0; i < run->operation_count; i++)
        if (strcmp(run->operations[i].name, row->name) == 0)
            return &run->operations[i];
    return NULL;
}

static int longer_first(const void *a, const void *b)
{
    const struct part_row *x = a, *y = b;
    if (x->most != y->most)
        return x->most < y->most ? 1 : -1;
    return (x->place > y->place) - (x->place < y->place);
}

static int earlier_first(const void *a, const void *b)
{
    const struct part_row *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

static void add_parts(struct parts *parts, const struct compare_run *run)
{
    size_t count = parts->segments ? run->segment_count : run->operation_count;
    const struct compare_part *list = parts->segments ? run->segments : run->operations;
    for (size_t i = 0; i < count; i++) {
        size_t row = parts->segments ? i : 0;
        while (!parts->segments && row < parts->count &&
               strcmp(parts->rows[row].name, list[i].name) != 0)
            row++;
        if (row >= parts->count)
            parts->rows[parts->count++] = (struct part_row){.name = list[i].name, .place = row};
        if (list[i].nanoseconds > parts->rows[row].most)
            parts->rows[row].most = list[i].nanoseconds;
    }
}

/* All parts that take any time; those that take the most first. */
static void collect(const struct page *page, struct parts *parts)
{
    size_t room = 1;
    FOR_EACH_RUN(page, run) room += parts->segments ? run->segment_count : run->operation_count;
    parts->rows = calloc(room, sizeof *parts->rows);
    *page->no_memory |= !parts->rows;
    if (!parts->rows)
        return;
    FOR_EACH_RUN(page, run) add_parts(parts, run);
    qsort(parts->rows, parts->count, sizeof *parts->rows, longer_first);
    while (parts->count > 0 && parts->rows[parts->count - 1].most == 0)
        parts->count--;
}

/* One row of the chart: a bar where there is but one device, else a mark for each. */
static void draw_part(const struct page *page, struct chart *chart, const struct parts *parts,
                      const struct part_row *row, bool bars)
{
    char note[NOTE_SIZE];
    uint64_t least = row->most;
    FOR_EACH_RUN(page, run)
    {
        const struct compare_part *part = part_of(run, parts, row);
        if (part && part->nanoseconds > 0 && part->nanoseconds < least)
            least = part->nanoseconds;
    }
    snprintf(note, sizeof note, "%s%s%s", least < row->most ? HTML_TIME(least) : "",
             least < row->most ? " &ndash; " : "", HTML_TIME(row->most));
    chart_row(chart, segment_title(row->name), "", note);
    FOR_EACH_RUN(page, run)
    {
        const struct compare_part *part = part_of(run, parts, row);
        if (!part || part->nanoseconds == 0)
            continue;
        unsigned series = (unsigned)run->device;
        if (bars)
            chart_bar(chart, series, 0, (double)part->nanoseconds);
        else
            chart_mark(chart, series, (double)part->nanoseconds, page->labels[run->device]);
    }
}

/* The most bytes a second that a part can be charged with, in percent of the device's bandwidth;
 * 0 where either is unknown. */
static double bandwidth_share(const struct compare_device *device, const struct compare_part *part)
{
    if (!part || part->nanoseconds == 0 || device->copied_bytes == 0)
        return 0;
    const double seconds = (double)part->nanoseconds * 1e-9, whole = 100;
    return whole * (double)part->bytes / seconds / (double)device->copied_bytes;
}

/* A column for each device, which ends the head of a table. */
static void put_device_columns(const struct page *page, const struct parts *parts)
{
    FOR_EACH_RUN(page, run)
    {
        fputs("<th scope=\"col\" class=\"n\">", page->stream);
        page_device(page, run->device);
        if (!parts->segments && run->operations_by_host)
            fputs("<small>host&#39;s clock</small>", page->stream);
        fputs("</th>", page->stream);
    }
    fputs("</tr></thead><tbody>\n", page->stream);
}

/* What a cell says of a part of a run, which may be NULL. */
typedef void put_cell(FILE *stream, const struct compare_device *device,
                      const struct compare_part *part);

static void put_time(FILE *stream, const struct compare_device *device,
                     const struct compare_part *part)
{
    (void)device;
    html_time_cell(stream, part ? part->nanoseconds : 0);
}

static void put_share(FILE *stream, const struct compare_device *device,
                      const struct compare_part *part)
{
    const double share = bandwidth_share(device, part);
    fprintf(stream,
            share > 0 ? "<td class=\"n\">%.3g&#8239;%%%s</td>" : "<td class=\"n\">&ndash;</td>",
            share_shown(share), share > SHARE_MAX ? " <small>caches</small>" : "");
}

/* How many operations a row is about. */
static uint64_t count_of(const struct page *page, const struct parts *parts,
                         const struct part_row *row)
{
    uint64_t count = 0;
    FOR_EACH_RUN(page, run)
    {
        const struct compare_part *part = part_of(run, parts, row);
        count = part ? part->count : count;
    }
    return count;
}

/* The table that stands for a chart: a row for each part. */
static void put_table(const struct page *page, const struct parts *parts, bool counts,
                      put_cell *put)
{
    FILE *stream = page->stream;
    page_table_begin(page);
    fprintf(stream, "<thead><tr><th scope=\"col\">%s</th>%s",
            parts->segments ? "Segment" : "Operation",
            counts ? "<th scope=\"col\" class=\"n\">Operations</th>" : "");
    put_device_columns(page, parts);
    for (size_t i = 0; i < parts->count; i++) {
        const struct part_row *row = &parts->rows[i];
        html_print(stream, "<tr><th scope=\"row\">%s</th>", segment_title(row->name));
        if (counts)
            html_print(stream, "<td class=\"n\">%zu</td>", (size_t)count_of(page, parts, row));
        FOR_EACH_RUN(page, run)
        put(stream, &page->comparison->devices[run->device], part_of(run, parts, row));
        fputs("</tr>\n", stream);
    }
    page_table_end(page);
}

/* What it cost to time the operations, and where the host's clock did it. */
static void put_clocks(const struct page *page)
{
    const char *before = " They take longer by a factor, noise included, of ";
    FOR_EACH_RUN(page, run)
    {
        double overhead;
        if (!compare_overhead_of(run, &overhead))
            continue;
        html_print(page->stream, "%s%s on %s", before, TEXT_FACTOR(overhead),
                   page->labels[run->device]);
        before = ", ";
    }
    fputs(*before == ',' ? "." : "", page->stream);
    before = " By the host's clock, since the driver takes no times, and waiting for each "
             "command: ";
    FOR_EACH_RUN(page, run)
    {
        if (!run->operations_by_host || run->profiled_count == 0)
            continue;
        html_print(page->stream, "%s%s", before, page->labels[run->device]);
        before = ", ";
    }
    fputs(*before == ',' ? "." : "", page->stream);
}

/* Which kernels of manifests ran. */
static void put_kernels(const struct page *page)
{
    const char *before = " Kernels of manifests: ";
    FOR_EACH_RUN(page, run)
    {
        for (size_t i = 0; i < run->kernel_count; i++) {
            const struct healcl_manifest_kernel *kernel = &run->kernels[i];
            html_print(page->stream, "%s%s of %s ran %zu of %s on %s", before, kernel->name,
                       kernel->manifest, (size_t)kernel->steps, kernel->what,
                       page->labels[run->device]);
            html_print(page->stream, "%s%s",
                       kernel->replaces ? " in the place of built-in ones" : "",
                       kernel->tuned ? " (tuned)" : "");
            before = ", ";
        }
    }
    fputs(*before == ',' ? "." : "", page->stream);
}

/* What the host did for devices, in whose times it is. */
static void put_fallbacks(const struct page *page)
{
    const char *before = " Steps that the host ran, for the device could not: ";
    FOR_EACH_RUN(page, run)
    {
        for (size_t i = 0; i < run->operation_count; i++) {
            const struct compare_part *part = &run->operations[i];
            if (part->fallbacks == 0)
                continue;
            html_print(page->stream, "%s%zu of %s on %s (%s)", before, (size_t)part->fallbacks,
                       part->name, page->labels[run->device], part->fallback_reason);
            before = ", ";
        }
    }
    fputs(*before == ',' ? "." : "", page->stream);
}

static void put_part_chart(const struct page *page, struct parts *parts)
{
    bool bars = page_timed_runs(page) == 1;
    size_t shown = parts->count < ROWS_MAX ? parts->count : ROWS_MAX;
    struct chart chart = page_chart(page, CHART_TIME, parts->title, parts->description);
    chart.logarithmic = !bars;
    fprintf(page->stream, "<div class=\"part\"><h3 id=\"%s%zu\">%s</h3><p class=\"note\">%s%s",
            parts->segments ? "segments" : "operations", page->transcript, parts->heading,
            parts->note, bars ? "" : " The axis is logarithmic.");
    if (!parts->segments) {
        put_clocks(page);
        put_kernels(page);
        put_fallbacks(page);
    }
    if (shown < parts->count)
        fprintf(page->stream, " The %zu longest of %zu.", shown, parts->count);
    fputs("</p>", page->stream);
    if (parts->segments)
        qsort(parts->rows, shown, sizeof *parts->rows, earlier_first);
    for (size_t i = 0; i < shown; i++) {
        FOR_EACH_RUN(page, run)
        {
            const struct compare_part *part = part_of(run, parts, &parts->rows[i]);
            chart_reach(&chart, part ? (double)part->nanoseconds : 0);
        }
    }
    if (!bars)
        page_legend(page);
    chart_begin(&chart);
    for (size_t i = 0; i < shown; i++)
        draw_part(page, &chart, parts, &parts->rows[i], bars);
    page_chart_end(page, &chart);
    if (parts->segments)
        qsort(parts->rows, parts->count, sizeof *parts->rows, earlier_first);
    put_table(page, parts, true, put_time);
}

/* ---------------------------------------------------------------- bandwidth */

/* A row, where the share of any device is known. */
static void draw_bandwidth(const struct page *page, struct chart *chart, const struct parts *parts,
                           const struct part_row *row)
{
    uint64_t bytes = 0;
    bool known = false;
    FOR_EACH_RUN(page, run)
    {
        const struct compare_part *part = part_of(run, parts, row);
        bytes = part ? part->bytes : bytes;
        known |= bandwidth_share(&page->comparison->devices[run->device], part) > 0;
    }
    if (!known)
        return;
    chart_row(chart, segment_title(row->name), "", HTML_BYTES(bytes));
    FOR_EACH_RUN(page, run)
    {
        const struct compare_device *device = &page->comparison->devices[run->device];
        double share = bandwidth_share(device, part_of(run, parts, row));
        if (share > 0)
            chart_mark(chart, (unsigned)run->device, share_shown(share), page->labels[run->device]);
    }
}

/* parts: the kinds of operations, the longest first. */
static void put_bandwidth(const struct page *page, const struct parts *parts)
{
    struct chart chart =
        page_chart(page, CHART_PERCENT, "Share of the measured bandwidth by kind of operation",
                   "For each kind of operation a point for each device: what its operations read "
                   "and write in a second, in percent of what the device copies in a second.");
    FOR_EACH_RUN(page, run)
    {
        for (size_t i = 0; i < parts->count; i++)
            chart_reach(&chart, share_shown(bandwidth_share(&page->comparison->devices[run->device],
                                                            part_of(run, parts, &parts->rows[i]))));
    }
    if (chart.high <= 0)
        return;
    chart_reach(&chart, SHARE_MAX); /* an axis that makes much of little misleads */
    chart.logarithmic = true;       /* shares lie orders of magnitude apart */
    size_t shown = parts->count < ROWS_MAX ? parts->count : ROWS_MAX;
    fprintf(page->stream,
            "<div class=\"part\"><h3 id=\"bandwidth%zu\">Share of the bandwidth</h3><p "
            "class=\"note\">What operations read and write in a second, in percent of what the "
            "device copies in a second (",
            page->transcript);
    bool first = true;
    FOR_EACH_RUN(page, run)
    {
        const struct compare_device *device = &page->comparison->devices[run->device];
        if (device->copied_bytes == 0)
            continue;
        html_print(page->stream, "%s%s", first ? "" : ", ", page->labels[run->device]);
        fprintf(page->stream, " %s/s", HTML_BYTES(device->copied_bytes));
        first = false;
    }
    fputs("). The axis is logarithmic, and ends at 100&#8239;%: caches may make it more. At the "
          "right, the bytes of a run.</p>",
          page->stream);
    if (page_timed_runs(page) > 1)
        page_legend(page);
    chart_begin(&chart);
    for (size_t i = 0; i < shown; i++)
        draw_bandwidth(page, &chart, parts, &parts->rows[i]);
    page_chart_end(page, &chart);
    put_table(page, parts, false, put_share);
}

void page_parts(const struct page *page)
{
    struct parts segments = {
        .segments = true,
        .title = "Time of each segment on each device",
        .description = "For each segment a point for each device, or a bar where there is one. The "
                       "table below has the figures.",
        .heading = "By segment",
        .note = "Medians of the host's clock, in the order of the transcript."};
    struct parts kinds = {
        .title = "Time of each kind of operation on each device",
        .description = "For each kind of operation a point for each device, or a bar where there "
                       "is one. The table below has the figures.",
        .heading = "By kind of operation",
        .note = "All operations of a kind in one run; medians of up to 5 runs behind the others, "
                "which alone take these times."};
    collect(page, &segments);
    collect(page, &kinds);
    if (segments.count > 0)
        put_part_chart(page, &segments);
    if (kinds.count > 0) {
        put_part_chart(page, &kinds);
        put_bandwidth(page, &kinds);
    }
    free(segments.rows);
    free(kinds.rows);
}
