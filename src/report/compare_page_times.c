/* How long runs took, how fast that makes a device, and what their processes spent. */
#include <inttypes.h>

#include "report/compare_page.h"
#include "report/html.h"
#include "report/text.h"

/* ---------------------------------------------------------------- time and speed-ups */

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
    chart_row(chart, page_device_label(page, run->device, label), html_time(times.median, note));
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
        page_chart(page, CHART_TIME, "Time of a run on each device",
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
            "<div class=\"part\"><h3>Time of a run</h3><p class=\"note\">%s are medians, lines "
            "over them join the "
            "quartiles, ticks below are the single runs.%s</p><figure>",
            chart.logarithmic ? "Points" : "Bars",
            chart.logarithmic ? " The axis is logarithmic." : "");
    chart_begin(&chart);
    FOR_EACH_RUN(page, run) draw_times(page, &chart, run);
    chart_end(&chart);
    fputs("</figure></div>\n", page->stream);
}

static void put_speedup_chart(const struct page *page)
{
    const struct compare_run *reference = compare_reference(page->comparison, page->transcript);
    struct chart chart = page_chart(page, CHART_FACTOR, "Speed-up of each device",
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
    fputs("<div class=\"part\"><h3>Speed-up</h3><p class=\"note\">How many times as fast as ",
          page->stream);
    html_text(page->stream, page_device_name(&page->comparison->devices[reference->device]));
    fputs("; right of 1 is faster. Lines are the range of opposite quartiles.</p><figure>",
          page->stream);
    chart_begin(&chart);
    FOR_EACH_RUN(page, run)
    {
        char note[NOTE_SIZE], label[LABEL_SIZE], factor[UNIT_TEXT_SIZE];
        if (run == reference || !compare_speedup_of(page->comparison, run, &speedup))
            continue;
        const char *name = page_device_label(page, run->device, label);
        snprintf(note, sizeof note, "%s&times;", text_factor(speedup.factor, factor));
        chart_row(&chart, name, note);
        chart_interval(&chart, (unsigned)run->device, speedup.low, speedup.high);
        chart_mark(&chart, (unsigned)run->device, speedup.factor, name);
    }
    chart_end(&chart);
    fputs("</figure></div>\n", page->stream);
}

void page_times(const struct page *page)
{
    put_time_chart(page);
    put_speedup_chart(page);
}

/* ---------------------------------------------------------------- what a process spends */

static const char *const phase_names[CHART_PHASES] = {
    "start-up of the driver", "reading the file", "building kernels",
    "runs, with those that time operations", "comparing results, and the rest"};

static void phases_of(const struct compare_run *run, uint64_t phases[CHART_PHASES])
{
    uint64_t runs = 0;
    for (size_t i = 0; i < run->sample_count; i++)
        runs += run->samples[i];
    for (size_t i = 0; i < run->profiled_count; i++)
        runs += run->profiled[i];
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
    struct chart chart = page_chart(page, CHART_TIME, "What each process spent its time on",
                                    "A bar for each device, divided into phases. The table below "
                                    "has the figures.");
    FOR_EACH_RUN(page, run)
    {
        chart_reach(&chart, (double)run->process_nanoseconds);
        chart.rows++;
    }
    fprintf(page->stream,
            "<div class=\"part\"><h3>The whole process</h3><p class=\"note\">From its start to its "
            "end, with %" PRIu32 " run%s, by the comparing process's clock.</p>",
            page->comparison->repeat, page->comparison->repeat == 1 ? "" : "s");
    put_phase_legend(page);
    fputs("<figure>", page->stream);
    chart_begin(&chart);
    FOR_EACH_RUN(page, run)
    {
        char note[HTML_UNIT_SIZE], label[LABEL_SIZE];
        uint64_t phases[CHART_PHASES], begin = 0;
        phases_of(run, phases);
        chart_row(&chart, page_device_label(page, run->device, label),
                  html_time(run->process_nanoseconds, note));
        for (unsigned i = 0; i < CHART_PHASES; i++) {
            if (phases[i] > 0)
                chart_phase(&chart, i, (double)begin, (double)(begin + phases[i]));
            begin += phases[i];
        }
    }
    chart_end(&chart);
    fputs("</figure></div>\n", page->stream);
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
        page_device(page, run->device);
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

void page_process(const struct page *page)
{
    put_process_chart(page);
    put_process_table(page);
}
