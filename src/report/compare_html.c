/* A comparison as one page of HTML that needs nothing else. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/chart.h"
#include "report/compare.h"
#include "report/html.h"
#include "report/text.h"

/* Embedded: src/report/compare.css and .svg. */
extern const char healcl_report_compare_css[], healcl_report_compare_svg[];

enum {
    ROWS_MAX = 16,   /* of a chart: the longest segments, and the rest are in its table */
    NOTE_SIZE = 192, /* HTML at the right of a chart's row */
    LABEL_SIZE = 512,
};

struct page {
    FILE *stream;
    const struct comparison *comparison;
    size_t transcript; /* that is told of now */
};

/* ---------------------------------------------------------------- names */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static const char *device_name(const struct compare_device *device)
{
    return *device->name ? device->name : device->selector;
}

/* A name that no other device has, for a chart; returns label. */
static const char *device_label(const struct page *page, size_t device, char label[LABEL_SIZE])
{
    const struct comparison *comparison = page->comparison;
    const struct compare_device *about = &comparison->devices[device];
    bool again = false;
    for (size_t i = 0; i < comparison->device_count; i++)
        again |= i != device && comparison->devices[i].origin == about->origin &&
                 strcmp(device_name(&comparison->devices[i]), device_name(about)) == 0;
    snprintf(label, LABEL_SIZE, "%s%s%s%s", again ? about->selector : "", again ? " " : "",
             about->origin->baseline ? "(baseline) " : "", device_name(about));
    return label;
}

/* Shape and colour, name, and where the figures are from if not from here. */
static void put_device(const struct page *page, size_t device)
{
    const struct compare_device *about = &page->comparison->devices[device];
    unsigned series = (unsigned)(device % CHART_SERIES);
    fprintf(page->stream,
            "<span class=\"device\"><svg class=\"mark d%u\" viewBox=\"-8 -8 16 16\" "
            "aria-hidden=\"true\"><use "
            "href=\"#m%u\"/></svg><span class=\"name\">",
            series, series);
    html_text(page->stream, device_name(about));
    fputs("</span>", page->stream);
    if (about->origin->baseline)
        fputs(" <span class=\"tag\">baseline</span>", page->stream);
    fputs("</span>", page->stream);
}

static void put_device_details(const struct page *page, size_t device)
{
    const struct compare_device *about = &page->comparison->devices[device];
    fputs("<small>", page->stream);
    html_text(page->stream, about->selector);
    fputs(*about->platform ? ", " : "", page->stream);
    html_text(page->stream, about->platform);
    if (*about->driver) {
        fputs(", ", page->stream);
        html_text(page->stream, about->driver);
    }
    if (about->origin->baseline) {
        fputs(", from ", page->stream);
        html_text(page->stream, base_name(about->origin->baseline));
    }
    fputs("</small>", page->stream);
}

/* Which shape is which device, of those that have times. */
static void put_legend(const struct page *page)
{
    fputs("<ul class=\"legend\">", page->stream);
    for (size_t i = 0; i < page->comparison->device_count; i++) {
        const struct compare_run *run = compare_find(page->comparison, page->transcript, i);
        if (!run || run->sample_count == 0)
            continue;
        fputs("<li>", page->stream);
        put_device(page, i);
        fputs("</li>", page->stream);
    }
    fputs("</ul>\n", page->stream);
}

static void put_details_begin(const struct page *page)
{
    fputs("<details><summary>As a table</summary><div class=\"scroll\"><table>\n", page->stream);
}

static void put_details_end(const struct page *page)
{
    fputs("</tbody></table></div></details>\n", page->stream);
}

/* The next run of the page's transcript, the first one behind NULL; NULL at the end. */
static const struct compare_run *next_run(const struct page *page, const struct compare_run *last)
{
    const struct comparison *comparison = page->comparison;
    for (size_t i = last ? (size_t)(last - comparison->runs) + 1 : 0; i < comparison->run_count;
         i++)
        if (comparison->runs[i].transcript == page->transcript)
            return &comparison->runs[i];
    return NULL;
}

#define FOR_EACH_RUN(page, run) \
    for (const struct compare_run *run = next_run(page, NULL); run; run = next_run(page, run))

/* ---------------------------------------------------------------- verdicts */

static void put_verdict(const struct page *page, const struct compare_run *run)
{
    char text[OUTCOME_TEXT_SIZE];
    bool right = compare_is_right(run);
    const char *class = run->outcome == COMPARE_VERIFIED     ? "good"
                        : run->outcome == COMPARE_UNVERIFIED ? "warn"
                                                             : "bad";
    fprintf(page->stream, "<span class=\"verdict %s\">%s&nbsp;", class,
            run->outcome == COMPARE_UNVERIFIED ? "&ndash;"
            : right                            ? "&#10003;"
                                               : "&#10007;");
    html_text(page->stream, compare_outcome_text(page->comparison, run, text));
    fputs("</span>", page->stream);
}

static void put_verdict_row(const struct page *page, const struct compare_run *run)
{
    FILE *stream = page->stream;
    struct compare_times times = {.median = 0};
    struct compare_speedup speedup;
    fputs("<tr><th scope=\"row\">", stream);
    put_device(page, run->device);
    put_device_details(page, run->device);
    fprintf(stream, "</th><td class=\"v\" data-outcome=\"%s\">",
            compare_outcome_name(run->outcome));
    put_verdict(page, run);
    char text[HTML_UNIT_SIZE], factor[UNIT_TEXT_SIZE], low[UNIT_TEXT_SIZE], high[UNIT_TEXT_SIZE];
    bool timed = compare_times_of(run, &times);
    fprintf(stream, "</td><td class=\"n\" data-label=\"Median\" data-ns=\"%" PRIu64 "\">%s</td>",
            times.median, timed ? html_time(times.median, text) : "&ndash;");
    fputs("<td class=\"n\" data-label=\"Spread\">", stream);
    if (timed && run->sample_count > 1)
        fprintf(stream, "&plusmn;%.1f&#8239;%%", compare_spread(&times));
    else
        fputs("&ndash;", stream);
    fputs("</td><td class=\"n\" data-label=\"Speed-up\"", stream);
    if (!compare_speedup_of(page->comparison, run, &speedup))
        fputs(">&ndash;", stream);
    else if (run == compare_reference(page->comparison, page->transcript))
        fputs(" data-factor=\"1\">1&times; <small>(reference)</small>", stream);
    else
        fprintf(stream, " data-factor=\"%.8g\">%s&times; <small>%s&ndash;%s</small>",
                speedup.factor, text_factor(speedup.factor, factor), text_factor(speedup.low, low),
                text_factor(speedup.high, high));
    fputs("</td></tr>\n", stream);
}

static void put_verdicts(const struct page *page)
{
    fputs(
        "<table class=\"verdicts\"><thead><tr><th scope=\"col\">Device</th><th "
        "scope=\"col\">Verdict</th><th scope=\"col\" class=\"n\">Median</th><th scope=\"col\" "
        "class=\"n\">Spread</th><th scope=\"col\" class=\"n\">Speed-up</th></tr></thead><tbody>\n",
        page->stream);
    FOR_EACH_RUN(page, run) put_verdict_row(page, run);
    fputs("</tbody></table>\n", page->stream);
}

static void put_problems(const struct page *page)
{
    FOR_EACH_RUN(page, run)
    {
        if (!*run->message && run->difference_count == 0)
            continue;
        fputs("<div class=\"problem\"><p>", page->stream);
        put_device(page, run->device);
        fputs(": ", page->stream);
        html_text(page->stream, run->message);
        fputs("</p>", page->stream);
        if (run->difference_count > 0)
            fputs("<pre>", page->stream);
        for (size_t i = 0; i < run->difference_count; i++) {
            html_text(page->stream, run->differences[i]);
            putc('\n', page->stream);
        }
        fputs(run->difference_count > 0 ? "</pre></div>\n" : "</div>\n", page->stream);
    }
}

/* ---------------------------------------------------------------- time and speed-ups */

static struct chart new_chart(const struct page *page, enum chart_unit unit, const char *title,
                              const char *description)
{
    return (struct chart){
        .stream = page->stream, .unit = unit, .title = title, .description = description};
}

/* Bars from 0 would not show the fast ones where others take so many times as long. */
static bool times_are_far_apart(const struct page *page)
{
    const double far = 30;
    double least = 0, most = 0;
    struct compare_times times;
    FOR_EACH_RUN(page, run)
    {
        if (!compare_times_of(run, &times))
            continue;
        double median = (double)times.median;
        least = least <= 0 || median < least ? median : least;
        most = median > most ? median : most;
    }
    return most > far * least;
}

static void draw_times(const struct page *page, struct chart *chart, const struct compare_run *run)
{
    enum { TICKS_MAX = 500 };
    char note[HTML_UNIT_SIZE], label[LABEL_SIZE];
    unsigned series = (unsigned)run->device;
    struct compare_times times;
    if (!compare_times_of(run, &times))
        return;
    chart_row(chart, device_label(page, run->device, label), html_time(times.median, note));
    if (chart->logarithmic) {
        chart_interval(chart, series, (double)times.low, (double)times.high);
        chart_mark(chart, series, (double)times.median, label);
    } else {
        chart_bar(chart, series, 0, (double)times.median);
        if (run->sample_count > 1)
            chart_range(chart, (double)times.low, (double)times.high);
    }
    for (size_t i = 0; i < run->sample_count && i < TICKS_MAX; i++)
        chart_sample(chart, (double)run->samples[i]);
}

static void put_time_chart(const struct page *page)
{
    struct chart chart =
        new_chart(page, CHART_TIME, "Time of a run on each device",
                  "For each device the median, the quartiles as a line, and each run as a tick "
                  "below. The table above has the figures.");
    chart.logarithmic = times_are_far_apart(page);
    struct compare_times times;
    FOR_EACH_RUN(page, run)
    {
        if (!compare_times_of(run, &times))
            continue;
        chart_reach(&chart, (double)times.least);
        chart_reach(&chart, (double)times.most);
        chart.rows++;
    }
    if (chart.rows == 0)
        return;
    fprintf(page->stream,
            "<h3>Time of a run</h3><p class=\"note\">%s are medians, lines over them join the "
            "quartiles, ticks below are the single runs.%s</p><figure>",
            chart.logarithmic ? "Points" : "Bars",
            chart.logarithmic ? " The axis is logarithmic." : "");
    chart_begin(&chart);
    FOR_EACH_RUN(page, run) draw_times(page, &chart, run);
    chart_end(&chart);
    fputs("</figure>\n", page->stream);
}

static void put_speedup_chart(const struct page *page)
{
    const struct compare_run *reference = compare_reference(page->comparison, page->transcript);
    struct chart chart = new_chart(page, CHART_FACTOR, "Speed-up of each device",
                                   "A point for each device: how many times as fast it is as the "
                                   "first. The line through it is the range of the quartiles. The "
                                   "table above has the figures.");
    struct compare_speedup speedup;
    chart.logarithmic = true;
    FOR_EACH_RUN(page, run)
    {
        if (run == reference || !compare_speedup_of(page->comparison, run, &speedup))
            continue;
        chart_reach(&chart, speedup.low);
        chart_reach(&chart, speedup.high);
        chart.rows++;
    }
    if (chart.rows == 0)
        return;
    fputs("<h3>Speed-up</h3><p class=\"note\">How many times as fast as ", page->stream);
    html_text(page->stream, device_name(&page->comparison->devices[reference->device]));
    fputs("; right of 1 is faster. Lines are the range of opposite quartiles.</p><figure>",
          page->stream);
    chart_begin(&chart);
    FOR_EACH_RUN(page, run)
    {
        char note[NOTE_SIZE], label[LABEL_SIZE], factor[UNIT_TEXT_SIZE];
        if (run == reference || !compare_speedup_of(page->comparison, run, &speedup))
            continue;
        const char *name = device_label(page, run->device, label);
        snprintf(note, sizeof note, "%s&times;", text_factor(speedup.factor, factor));
        chart_row(&chart, name, note);
        chart_interval(&chart, (unsigned)run->device, speedup.low, speedup.high);
        chart_mark(&chart, (unsigned)run->device, speedup.factor, name);
    }
    chart_end(&chart);
    fputs("</figure>\n", page->stream);
}

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
MUST_CHECK static enum healcl_status collect(const struct page *page, struct parts *parts)
{
    size_t room = 1;
    FOR_EACH_RUN(page, run) room += parts->segments ? run->segment_count : run->operation_count;
    parts->rows = calloc(room, sizeof *parts->rows);
    if (!parts->rows)
        return HEALCL_NO_MEMORY;
    FOR_EACH_RUN(page, run) add_parts(parts, run);
    qsort(parts->rows, parts->count, sizeof *parts->rows, longer_first);
    while (parts->count > 0 && parts->rows[parts->count - 1].most == 0)
        parts->count--;
    return HEALCL_OK;
}

static const char *part_name(const struct part_row *row)
{
    return *row->name ? row->name : "(no segment)";
}

/* One row of the chart: a bar where there is but one device, else a mark for each. */
static void draw_part(const struct page *page, struct chart *chart, const struct parts *parts,
                      const struct part_row *row, bool bars)
{
    char note[NOTE_SIZE] = "", label[LABEL_SIZE], from[HTML_UNIT_SIZE], to[HTML_UNIT_SIZE];
    uint64_t least = row->most;
    FOR_EACH_RUN(page, run)
    {
        const struct compare_part *part = part_of(run, parts, row);
        if (part && part->nanoseconds > 0 && part->nanoseconds < least)
            least = part->nanoseconds;
    }
    if (least < row->most)
        snprintf(note, sizeof note, "%s &ndash; %s", html_time(least, from),
                 html_time(row->most, to));
    else
        snprintf(note, sizeof note, "%s", html_time(row->most, to));
    chart_row(chart, part_name(row), note);
    FOR_EACH_RUN(page, run)
    {
        const struct compare_part *part = part_of(run, parts, row);
        if (!part || part->nanoseconds == 0)
            continue;
        unsigned series = (unsigned)run->device;
        if (bars)
            chart_bar(chart, series, 0, (double)part->nanoseconds);
        else
            chart_mark(chart, series, (double)part->nanoseconds,
                       device_label(page, run->device, label));
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

static void put_part_table(const struct page *page, const struct parts *parts)
{
    FILE *stream = page->stream;
    put_details_begin(page);
    fprintf(stream,
            "<thead><tr><th scope=\"col\">%s</th><th scope=\"col\" class=\"n\">"
            "Operations</th>",
            parts->segments ? "Segment" : "Operation");
    FOR_EACH_RUN(page, run)
    {
        fputs("<th scope=\"col\" class=\"n\">", stream);
        put_device(page, run->device);
        fputs("</th>", stream);
    }
    fputs("</tr></thead><tbody>\n", stream);
    for (size_t i = 0; i < parts->count; i++) {
        const struct part_row *row = &parts->rows[i];
        uint64_t count = 0;
        FOR_EACH_RUN(page, run)
        {
            const struct compare_part *part = part_of(run, parts, row);
            count = part ? part->count : count;
        }
        fputs("<tr><th scope=\"row\">", stream);
        html_text(stream, part_name(row));
        fprintf(stream, "</th><td class=\"n\">%" PRIu64 "</td>", count);
        FOR_EACH_RUN(page, run)
        {
            const struct compare_part *part = part_of(run, parts, row);
            html_time_cell(stream, part ? part->nanoseconds : 0);
        }
        fputs("</tr>\n", stream);
    }
    put_details_end(page);
}

static size_t timed_runs(const struct page *page)
{
    size_t count = 0;
    FOR_EACH_RUN(page, run) count += run->sample_count > 0;
    return count;
}

static void put_part_chart(const struct page *page, struct parts *parts)
{
    bool bars = timed_runs(page) == 1;
    size_t shown = parts->count < ROWS_MAX ? parts->count : ROWS_MAX;
    struct chart chart = new_chart(page, CHART_TIME, parts->title, parts->description);
    chart.logarithmic = !bars;
    chart.rows = (unsigned)shown;
    fprintf(page->stream, "<h3>%s</h3><p class=\"note\">%s%s", parts->heading, parts->note,
            bars ? "" : " The axis is logarithmic.");
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
        put_legend(page);
    fputs("<figure>", page->stream);
    chart_begin(&chart);
    for (size_t i = 0; i < shown; i++)
        draw_part(page, &chart, parts, &parts->rows[i], bars);
    chart_end(&chart);
    fputs("</figure>\n", page->stream);
    if (parts->segments)
        qsort(parts->rows, parts->count, sizeof *parts->rows, earlier_first);
    put_part_table(page, parts);
}

/* ---------------------------------------------------------------- bandwidth */

static void draw_bandwidth(const struct page *page, struct chart *chart, const struct parts *parts,
                           const struct part_row *row)
{
    char note[NOTE_SIZE] = "", label[LABEL_SIZE], text[HTML_UNIT_SIZE];
    uint64_t bytes = 0;
    FOR_EACH_RUN(page, run)
    {
        const struct compare_part *part = part_of(run, parts, row);
        bytes = part ? part->bytes : bytes;
    }
    snprintf(note, sizeof note, "%s", html_bytes(bytes, text));
    chart_row(chart, part_name(row), note);
    FOR_EACH_RUN(page, run)
    {
        const struct compare_device *device = &page->comparison->devices[run->device];
        double share = bandwidth_share(device, part_of(run, parts, row));
        if (share > 0 && timed_runs(page) == 1)
            chart_bar(chart, (unsigned)run->device, 0, share);
        else if (share > 0)
            chart_mark(chart, (unsigned)run->device, share, device_label(page, run->device, label));
    }
}

static void put_bandwidth_table(const struct page *page, const struct parts *parts)
{
    FILE *stream = page->stream;
    put_details_begin(page);
    fputs("<thead><tr><th scope=\"col\">Operation</th>", stream);
    FOR_EACH_RUN(page, run)
    {
        fputs("<th scope=\"col\" class=\"n\">", stream);
        put_device(page, run->device);
        fputs("</th>", stream);
    }
    fputs("</tr></thead><tbody>\n", stream);
    for (size_t i = 0; i < parts->count; i++) {
        fputs("<tr><th scope=\"row\">", stream);
        html_text(stream, part_name(&parts->rows[i]));
        fputs("</th>", stream);
        FOR_EACH_RUN(page, run)
        {
            const struct compare_device *device = &page->comparison->devices[run->device];
            double share = bandwidth_share(device, part_of(run, parts, &parts->rows[i]));
            fprintf(stream,
                    share > 0 ? "<td class=\"n\">%.3g&#8239;%%</td>"
                              : "<td class=\"n\">&ndash;</td>",
                    share);
        }
        fputs("</tr>\n", stream);
    }
    put_details_end(page);
}

/* parts: the kinds of operations, the longest first. */
static void put_bandwidth(const struct page *page, const struct parts *parts)
{
    struct chart chart =
        new_chart(page, CHART_PERCENT, "Share of the measured bandwidth by kind of operation",
                  "For each kind of operation a point for each device: what its operations read "
                  "and write in a second, in percent of what the device copies in a second.");
    FOR_EACH_RUN(page, run)
    {
        for (size_t i = 0; i < parts->count; i++)
            chart_reach(&chart, bandwidth_share(&page->comparison->devices[run->device],
                                                part_of(run, parts, &parts->rows[i])));
    }
    if (chart.high <= 0)
        return;
    const double whole = 100; /* percent: an axis that makes much of little misleads */
    chart_reach(&chart, whole);
    chart.rows = (unsigned)(parts->count < ROWS_MAX ? parts->count : ROWS_MAX);
    fputs("<h3>Share of the bandwidth</h3><p class=\"note\">What operations read and write in a "
          "second, in percent of what the device copies in a second (",
          page->stream);
    bool first = true;
    FOR_EACH_RUN(page, run)
    {
        const struct compare_device *device = &page->comparison->devices[run->device];
        char text[HTML_UNIT_SIZE];
        if (device->copied_bytes == 0)
            continue;
        fputs(first ? "" : ", ", page->stream);
        html_text(page->stream, device_name(device));
        fprintf(page->stream, " %s/s", html_bytes(device->copied_bytes, text));
        first = false;
    }
    fputs("). Caches may make it more than 100&#8239;%. At the right, the bytes of a run.</p>",
          page->stream);
    if (timed_runs(page) > 1)
        put_legend(page);
    fputs("<figure>", page->stream);
    chart_begin(&chart);
    for (size_t i = 0; i < chart.rows; i++)
        draw_bandwidth(page, &chart, parts, &parts->rows[i]);
    chart_end(&chart);
    fputs("</figure>\n", page->stream);
    put_bandwidth_table(page, parts);
}

/* ---------------------------------------------------------------- what a process spends */

static const char *const phase_names[CHART_PHASES] = {"start-up of the driver", "reading the file",
                                                      "building kernels", "runs",
                                                      "comparing results, and the rest"};

static void phases_of(const struct compare_run *run, uint64_t phases[CHART_PHASES])
{
    uint64_t runs = 0;
    for (size_t i = 0; i < run->sample_count; i++)
        runs += run->samples[i];
    phases[0] = run->open_device_nanoseconds;
    phases[1] = run->open_transcript_nanoseconds;
    phases[2] = run->compile_nanoseconds;
    phases[3] = runs;
    uint64_t known = phases[0] + phases[1] + phases[2] + phases[3];
    phases[4] = run->process_nanoseconds > known ? run->process_nanoseconds - known : 0;
}

static void put_phase_legend(const struct page *page)
{
    fputs("<ul class=\"legend\">", page->stream);
    for (unsigned i = 0; i < CHART_PHASES; i++)
        fprintf(page->stream,
                "<li><svg class=\"swatch phase\" aria-hidden=\"true\"><rect width=\"22\" "
                "height=\"12\" fill=\"url(#q%u)\" stroke=\"currentColor\"/></svg>%s</li>",
                i, phase_names[i]);
    fputs("</ul>\n", page->stream);
}

static void put_process_chart(const struct page *page)
{
    struct chart chart = new_chart(page, CHART_TIME, "What each process spent its time on",
                                   "A bar for each device, divided into phases. The table below "
                                   "has the figures.");
    FOR_EACH_RUN(page, run)
    {
        chart_reach(&chart, (double)run->process_nanoseconds);
        chart.rows++;
    }
    fprintf(page->stream,
            "<h3>The whole process</h3><p class=\"note\">From its start to its end, with %" PRIu32
            " run%s, by the comparing process's clock.</p>",
            page->comparison->repeat, page->comparison->repeat == 1 ? "" : "s");
    put_phase_legend(page);
    fputs("<figure>", page->stream);
    chart_begin(&chart);
    FOR_EACH_RUN(page, run)
    {
        char note[HTML_UNIT_SIZE], label[LABEL_SIZE];
        uint64_t phases[CHART_PHASES], begin = 0;
        phases_of(run, phases);
        chart_row(&chart, device_label(page, run->device, label),
                  html_time(run->process_nanoseconds, note));
        for (unsigned i = 0; i < CHART_PHASES; i++) {
            if (phases[i] > 0)
                chart_phase(&chart, i, (double)begin, (double)(begin + phases[i]));
            begin += phases[i];
        }
    }
    chart_end(&chart);
    fputs("</figure>\n", page->stream);
}

static void put_process_table(const struct page *page)
{
    FILE *stream = page->stream;
    fputs("<div class=\"scroll\"><table class=\"costs\"><thead><tr><th scope=\"col\">Device</th>"
          "<th scope=\"col\" class=\"n\">Start-up</th><th scope=\"col\" class=\"n\">Reading</th>"
          "<th scope=\"col\" class=\"n\">Kernels</th><th scope=\"col\" class=\"n\">Process</th>"
          "<th scope=\"col\" class=\"n\">Memory, device</th>"
          "<th scope=\"col\" class=\"n\">Memory, host</th></tr></thead><tbody>\n",
          stream);
    FOR_EACH_RUN(page, run)
    {
        fputs("<tr><th scope=\"row\">", stream);
        put_device(page, run->device);
        fputs("</th>", stream);
        html_time_cell(stream, run->open_device_nanoseconds);
        html_time_cell(stream, run->open_transcript_nanoseconds);
        html_time_cell(stream, run->compile_nanoseconds);
        html_time_cell(stream, run->process_nanoseconds);
        html_bytes_cell(stream, run->device_bytes);
        html_bytes_cell(stream, run->host_bytes);
        fputs("</tr>\n", stream);
    }
    fputs("</tbody></table></div>\n", stream);
}

/* ---------------------------------------------------------------- a transcript */

MUST_CHECK static enum healcl_status put_transcript(const struct page *page)
{
    const struct compare_transcript *transcript = &page->comparison->transcripts[page->transcript];
    char text[HTML_UNIT_SIZE];
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
        .note = "Time on the device as its driver takes it, all operations of a kind in one run."};
    fprintf(page->stream, "<section id=\"t%zu\"><h2>", page->transcript);
    if (page->comparison->transcript_count == 1)
        fputs("Verdicts", page->stream);
    else
        html_text(page->stream, base_name(transcript->file));
    fputs("</h2><p class=\"meta\">", page->stream);
    html_text(page->stream, transcript->file);
    fprintf(page->stream, ", %s</p>\n", html_bytes(transcript->bytes, text));
    put_verdicts(page);
    put_problems(page);
    put_time_chart(page);
    put_speedup_chart(page);
    enum healcl_status status = collect(page, &segments);
    if (status == HEALCL_OK)
        status = collect(page, &kinds);
    if (status == HEALCL_OK && segments.count > 0)
        put_part_chart(page, &segments);
    if (status == HEALCL_OK && kinds.count > 0) {
        put_part_chart(page, &kinds);
        put_bandwidth(page, &kinds);
    }
    free(segments.rows);
    free(kinds.rows);
    put_process_chart(page);
    put_process_table(page);
    fputs("</section>\n", page->stream);
    return status;
}

/* ---------------------------------------------------------------- the top of the page */

static bool device_is_right(const struct comparison *comparison, size_t device)
{
    for (size_t i = 0; i < comparison->run_count; i++)
        if (comparison->runs[i].device == device && !compare_is_right(&comparison->runs[i]))
            return false;
    return true;
}

/* How many devices ran here and now. */
static size_t own_devices(const struct comparison *comparison)
{
    size_t count = 0;
    while (count < comparison->device_count && !comparison->devices[count].origin->baseline)
        count++;
    return count;
}

/* The device here whose speed-ups are the greatest, as a geometric mean over all transcripts,
 * *factor; device_count where none has them all. */
static size_t fastest(const struct comparison *comparison, double *factor)
{
    size_t best = comparison->device_count;
    *factor = 0;
    for (size_t j = 0; j < own_devices(comparison); j++) {
        double product = 1;
        size_t count = 0;
        for (size_t i = 0; i < comparison->transcript_count; i++) {
            const struct compare_run *run = compare_find(comparison, i, j);
            struct compare_speedup speedup;
            if (run && compare_speedup_of(comparison, run, &speedup)) {
                product *= pow(speedup.factor, 1.0 / (double)comparison->transcript_count);
                count++;
            }
        }
        if (count == comparison->transcript_count && product > *factor) {
            *factor = product;
            best = j;
        }
    }
    return best;
}

static void put_lead(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    size_t right = 0, count = own_devices(comparison);
    for (size_t i = 0; i < count; i++)
        right += device_is_right(comparison, i);
    fputs("<p class=\"lead\">", page->stream);
    if (count == 1)
        fputs(right ? "The device is right in every result that was verified."
                    : "The device did not get it right.",
              page->stream);
    else if (right == 0)
        fprintf(page->stream, "None of %zu devices got everything right.", count);
    else if (right == count)
        fprintf(page->stream, "All %zu devices are right.", count);
    else
        fprintf(page->stream, "%zu of %zu devices are right.", right, count);
    double factor;
    char label[LABEL_SIZE], text[UNIT_TEXT_SIZE];
    size_t best = fastest(comparison, &factor);
    if (count > 1 && best < count) {
        fputs(" The fastest is ", page->stream);
        html_text(page->stream, device_label(page, best, label));
        if (best > 0 && factor > 1) {
            fprintf(page->stream, ", %s times as fast as ", text_factor(factor, text));
            html_text(page->stream, device_name(&comparison->devices[0]));
        }
        fputs(".", page->stream);
    }
    if (comparison->device_count > count)
        fprintf(page->stream, " Beside them stand%s %zu of saved runs.",
                comparison->device_count == count + 1 ? "s" : "", comparison->device_count - count);
    fputs("</p>\n", page->stream);
}

static void put_origin(const struct page *page, const struct compare_origin *origin)
{
    char text[HTML_UNIT_SIZE];
    for (const char *c = origin->date; *c; c++) /* "2026-01-31 12:00:00 UTC" */
        if (*c == 'T')
            putc(' ', page->stream);
        else if (*c == 'Z')
            fputs(" UTC", page->stream);
        else
            html_text(page->stream, (const char[]){*c, 0});
    fputs(" &middot; ", page->stream);
    html_text(page->stream, *origin->processor ? origin->processor : "unknown processor");
    fprintf(page->stream, ", %" PRIu64 " processor%s, %s &middot; ", origin->processors,
            origin->processors == 1 ? "" : "s", html_bytes(origin->memory_bytes, text));
    html_text(page->stream, origin->system);
    fputs(" &middot; healcl ", page->stream);
    html_text(page->stream, origin->healcl);
}

static void put_title(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    if (comparison->transcript_count == 1)
        html_text(page->stream, base_name(comparison->transcripts[0].file));
    else
        fprintf(page->stream, "%zu transcripts", comparison->transcript_count);
    size_t count = own_devices(comparison);
    fprintf(page->stream, " on %zu device%s", count, count == 1 ? "" : "s");
}

static void put_head(const struct page *page)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta "
          "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta "
          "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'\">\n<title>",
          page->stream);
    put_title(page);
    fprintf(page->stream, " &ndash; healcl compare</title>\n<style>\n%s</style></head><body>\n%s",
            healcl_report_compare_css, healcl_report_compare_svg);
    fputs("<header><p class=\"eyebrow\">healcl compare</p><h1>", page->stream);
    put_title(page);
    fputs("</h1>\n", page->stream);
    put_lead(page);
    fputs("<p class=\"meta\">", page->stream);
    put_origin(page, &page->comparison->origin);
    fprintf(page->stream, " &middot; %" PRIu32 " run%s each</p></header>\n<main>\n",
            page->comparison->repeat, page->comparison->repeat == 1 ? "" : "s");
}

/* Verdicts and medians of all transcripts, where there are several. */
static void put_overview(struct page *page)
{
    const struct comparison *comparison = page->comparison;
    FILE *stream = page->stream;
    if (comparison->transcript_count < 2)
        return;
    fputs("<section><h2>Overview</h2><div class=\"scroll\"><table><thead><tr><th scope=\"col\">"
          "Transcript</th>",
          stream);
    for (size_t j = 0; j < comparison->device_count; j++) {
        fputs("<th scope=\"col\">", stream);
        put_device(page, j);
        fputs("</th>", stream);
    }
    fputs("</tr></thead><tbody>\n", stream);
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        fprintf(stream, "<tr><th scope=\"row\"><a href=\"#t%zu\">", i);
        html_text(stream, base_name(comparison->transcripts[i].file));
        fputs("</a></th>", stream);
        for (size_t j = 0; j < comparison->device_count; j++) {
            const struct compare_run *run = compare_find(comparison, i, j);
            struct compare_times times;
            char text[HTML_UNIT_SIZE];
            fputs(run ? "<td>" : "<td>&ndash;", stream);
            if (run)
                put_verdict(page, run);
            if (run && compare_times_of(run, &times))
                fprintf(stream, "<small>%s</small>", html_time(times.median, text));
            fputs("</td>", stream);
        }
        fputs("</tr>\n", stream);
    }
    fputs("</tbody></table></div></section>\n", stream);
}

/* ---------------------------------------------------------------- the end of the page */

static void put_fact(const struct page *page, const char *name, const char *value)
{
    if (!*value)
        return;
    fprintf(page->stream, "<dt>%s</dt><dd>", name);
    html_text(page->stream, value);
    fputs("</dd>", page->stream);
}

static void put_number_fact(const struct page *page, const char *name, uint64_t value,
                            const char *unit)
{
    if (value > 0)
        fprintf(page->stream, "<dt>%s</dt><dd>%" PRIu64 "%s</dd>", name, value, unit);
}

static void put_bytes_fact(const struct page *page, const char *name, uint64_t bytes,
                           const char *unit)
{
    char text[HTML_UNIT_SIZE];
    if (bytes > 0)
        fprintf(page->stream, "<dt>%s</dt><dd>%s%s</dd>", name, html_bytes(bytes, text), unit);
}

static void put_card(const struct page *page, size_t device)
{
    const struct compare_device *about = &page->comparison->devices[device];
    const double billion = 1e9;
    fputs("<article class=\"card\"><h3>", page->stream);
    put_device(page, device);
    fputs("</h3><dl>", page->stream);
    put_fact(page, "Selector", about->selector);
    put_fact(page, "Type", about->type);
    put_fact(page, "Platform", about->platform);
    put_fact(page, "Vendor", about->vendor);
    put_fact(page, "Driver", about->driver);
    put_fact(page, "Version", about->version);
    put_number_fact(page, "Compute units", about->compute_units, "");
    put_number_fact(page, "Clock", about->clock_mhz, "&#8239;MHz");
    put_bytes_fact(page, "Memory", about->global_memory, "");
    put_bytes_fact(page, "Largest buffer", about->max_allocation, "");
    put_bytes_fact(page, "Local memory", about->local_memory, "");
    put_number_fact(page, "Work-group", about->max_work_group_size, " work-items");
    put_bytes_fact(page, "Copies", about->copied_bytes, "/s");
    if (about->products > 0)
        fprintf(page->stream, "<dt>Products</dt><dd>%.3g&#8239;G/s of 64-bit integers</dd>",
                (double)about->products / billion);
    fputs("</dl>", page->stream);
    if (about->origin->baseline) {
        fputs("<p class=\"note\">Baseline ", page->stream);
        html_text(page->stream, about->origin->baseline);
        fputs(": ", page->stream);
        put_origin(page, about->origin);
        fputs("</p>", page->stream);
    }
    fputs("</article>\n", page->stream);
}

static void put_command(const struct page *page, const char *command)
{
    fputs("<pre>", page->stream);
    html_text(page->stream, command);
    fputs("</pre>\n", page->stream);
}

static void put_end(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    fputs("<section><h2>Devices</h2><div class=\"cards\">\n", page->stream);
    for (size_t i = 0; i < comparison->device_count; i++)
        put_card(page, i);
    fputs("</div></section>\n<section><h2>To repeat it</h2>\n", page->stream);
    put_command(page, comparison->command);
    fputs("<p class=\"note\">Each of its runs alone:</p>\n", page->stream);
    for (size_t i = 0; i < comparison->run_count; i++)
        if (!comparison->devices[comparison->runs[i].device].origin->baseline)
            put_command(page, comparison->runs[i].command);
    fputs("</section></main>\n<footer><p>Times are of the host&#39;s CLOCK_MONOTONIC. A run goes "
          "from its first command to its last result, with transfers, without building kernels and "
          "without comparing results. Median and quartiles are of the repetitions; the spread is "
          "half the distance of the quartiles, in percent of the median. A wrong result has no "
          "speed-up. Each run is a process of its own.</p></footer>\n</body></html>\n",
          page->stream);
}

enum healcl_status compare_print_html(const struct comparison *comparison, FILE *stream)
{
    struct page page = {.stream = stream, .comparison = comparison};
    put_head(&page);
    put_overview(&page);
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        page.transcript = i;
        TRY(put_transcript(&page));
    }
    put_end(&page);
    return HEALCL_OK;
}
