/* How long runs took, and how fast that makes a device. */
#include "compare/html.h"
#include "compare/page.h"
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
        if (!compare_times_of(run, COMPARE_COMPUTE, &times))
            continue;
        double median = (double)times.median;
        least = least <= 0 || median < least ? median : least;
        most = median > most ? median : most;
    }
    return most > far * least;
}

/* Where the axis may end for a run: far beyond its quartiles lie single runs that were late, and
 * nothing of the others is to be seen beside them. */
static double axis_end(const struct compare_times *times)
{
    const double quartiles = 1.5, least = 1.25; /* times their distance; of the median */
    double end = (double)times->high + quartiles * (double)(times->high - times->low);
    if (end < least * (double)times->median)
        end = least * (double)times->median;
    return end < (double)times->most ? end : (double)times->most;
}

/* "105 ms", and how many runs are beyond the axis: "105 ms, 1 late" */
static void times_note(const struct chart *chart, const struct compare_run *run,
                       const struct compare_times *times, char note[NOTE_SIZE])
{
    size_t beyond = 0;
    for (size_t i = 0; i < run->times[COMPARE_COMPUTE].count; i++)
        beyond += (double)run->times[COMPARE_COMPUTE].of[i] > chart->high;
    snprintf(note, NOTE_SIZE, beyond > 0 ? "%s, %zu late" : "%s", HTML_TIME(times->median), beyond);
}

static void draw_times(const struct page *page, struct chart *chart, const struct compare_run *run)
{
    enum { TICKS_MAX = 500 };
    char note[NOTE_SIZE];
    unsigned series = (unsigned)run->device;
    struct compare_times times;
    if (!compare_times_of(run, COMPARE_COMPUTE, &times))
        return;
    times_note(chart, run, &times, note);
    page_chart_row(page, chart, run->device, note);
    if (chart->logarithmic) {
        chart_interval(chart, series, (double)times.low, (double)times.high);
        chart_mark(chart, series, (double)times.median, page->labels[run->device]);
    } else {
        chart_bar(chart, series, 0, (double)times.median);
        if (run->times[COMPARE_COMPUTE].count > 1)
            chart_range(chart, (double)times.low, (double)times.high);
    }
    for (size_t i = 0; i < run->times[COMPARE_COMPUTE].count && i < TICKS_MAX; i++)
        chart_sample(chart, (double)run->times[COMPARE_COMPUTE].of[i]);
}

static void put_time_chart(const struct page *page)
{
    struct chart chart =
        page_chart(page, CHART_TIME, "Compute time of a run on each device",
                   "For each device the median, the quartiles as a line, and each run as a tick "
                   "below. The table above has the figures.");
    chart.logarithmic = times_are_far_apart(page);
    bool is_cut = false;
    struct compare_times times;
    FOR_EACH_RUN(page, run)
    {
        if (!compare_times_of(run, COMPARE_COMPUTE, &times))
            continue;
        chart_reach(&chart, (double)times.least);
        chart_reach(&chart, axis_end(&times));
        is_cut |= axis_end(&times) < (double)times.most;
    }
    if (chart.high <= 0)
        return;
    fprintf(page->stream,
            "<div class=\"part\"><h3 id=\"time%zu\">Compute</h3><p class=\"note\">%s are "
            "medians, lines over them join the quartiles, ticks below are the single runs.%s%s"
            "</p>",
            page->transcript, chart.logarithmic ? "Points" : "Bars",
            chart.logarithmic ? " The axis is logarithmic." : "",
            is_cut ? " An arrow at the end of the axis is for late runs, which are beyond it."
                   : "");
    chart_begin(&chart);
    FOR_EACH_RUN(page, run) draw_times(page, &chart, run);
    page_chart_end(page, &chart);
}

static void put_speedup_chart(const struct page *page)
{
    const struct compare_run *reference =
        compare_reference(page->comparison, page->transcript, COMPARE_COMPUTE);
    struct chart chart = page_chart(page, CHART_FACTOR, "Speed-up of each device",
                                    "A point for each device: how many times as fast it is as the "
                                    "first. The line through it is the range of the quartiles. The "
                                    "table above has the figures.");
    struct compare_speedup speedup;
    chart.logarithmic = true;
    FOR_EACH_RUN(page, run)
    {
        if (run == reference ||
            !compare_speedup_of(page->comparison, run, COMPARE_COMPUTE, &speedup))
            continue;
        chart_reach(&chart, speedup.low);
        chart_reach(&chart, speedup.high);
    }
    if (chart.high <= 0)
        return;
    html_print(page->stream,
               "<div class=\"part\"><h3 id=\"speedup%zu\">Speed-up</h3><p class=\"note\">How many "
               "times as fast as %s; right of 1 is faster. Lines are the range of opposite "
               "quartiles.</p>",
               page->transcript, page->labels[reference->device]);
    chart_begin(&chart);
    FOR_EACH_RUN(page, run)
    {
        char note[NOTE_SIZE];
        if (run == reference ||
            !compare_speedup_of(page->comparison, run, COMPARE_COMPUTE, &speedup))
            continue;
        snprintf(note, sizeof note, "%s&times;", TEXT_FACTOR(speedup.factor));
        page_chart_row(page, &chart, run->device, note);
        chart_interval(&chart, (unsigned)run->device, speedup.low, speedup.high);
        chart_mark(&chart, (unsigned)run->device, speedup.factor, page->labels[run->device]);
    }
    page_chart_end(page, &chart);
}

void page_times(const struct page *page)
{
    put_time_chart(page);
    put_speedup_chart(page);
}
