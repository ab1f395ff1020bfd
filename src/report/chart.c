#include "report/chart.h"

#include <inttypes.h>
#include <math.h>

#include "report/html.h"

enum {
    ROW_HEIGHT = 48, /* pixels, as all below */
    TEXT_Y = 13,     /* of a row's text, its baseline */
    LINE_Y = 28,     /* of the middle of what is drawn */
    BAR_HEIGHT = 12,
    AXIS_HEIGHT = 22,
    LABEL_CHARACTERS = 34,
    TICKS_MAX = 12,
};

#define EDGE 2.0 /* percent that are left free at both ends of an axis of marks */

void chart_reach(struct chart *chart, double value)
{
    if (value <= 0)
        return;
    if (chart->low <= 0 || value < chart->low)
        chart->low = value;
    if (value > chart->high)
        chart->high = value;
}

/* Percent of the width. */
static double place(const struct chart *chart, double value)
{
    if (!chart->logarithmic)
        return chart->high > 0 ? 100 * value / chart->high : 0;
    double whole = log(chart->high / chart->low);
    double part = value > 0 ? log(value / chart->low) : 0;
    return whole > 0 ? EDGE + (100 - 2 * EDGE) * part / whole : 50;
}

/* ---------------------------------------------------------------- axis */

static void print_value(const struct chart *chart, double value)
{
    if (chart->unit == CHART_PERCENT)
        fprintf(chart->stream, "%.5g&#8239;%%", value);
    else if (chart->unit == CHART_FACTOR)
        fprintf(chart->stream, "%.5g&times;", value);
    else if (value <= 0)
        putc('0', chart->stream);
    else if (value < 1e3)
        fprintf(chart->stream, "%.3g&#8239;ns", value);
    else if (value < 1e6)
        fprintf(chart->stream, "%.3g&#8239;&micro;s", value / 1e3);
    else if (value < 1e9)
        fprintf(chart->stream, "%.3g&#8239;ms", value / 1e6);
    else
        fprintf(chart->stream, "%.3g&#8239;s", value / 1e9);
}

/* 1, 2, 5, 10 and so on: the first that is not below value. */
static double round_up(double value)
{
    double ten = pow(10, floor(log10(value)));
    double digit = value / ten;
    const double slack = 1e-9;
    return ten * (digit <= 1 + slack ? 1 : digit <= 2 + slack ? 2 : digit <= 5 + slack ? 5 : 10);
}

static unsigned linear_ticks(const struct chart *chart, double ticks[TICKS_MAX])
{
    const double intervals = 5, slack = 1e-4;
    double step = round_up(chart->high / intervals);
    unsigned count = 0;
    while (count < TICKS_MAX && count * step <= chart->high * (1 + slack)) {
        ticks[count] = count * step;
        count++;
    }
    return count;
}

/* Powers of ten, and 2 and 5 times them where those are few; every other power where they are many:
 * labels must not meet on a phone. */
static unsigned logarithmic_ticks(const struct chart *chart, double ticks[TICKS_MAX])
{
    static const double all[] = {1, 2, 5};
    const double few = 2.5, many = 6, slack = 1e-4;
    double decades = log10(chart->high / chart->low);
    unsigned each = decades < few ? 3 : 1, count = 0;
    int step = decades > many ? 2 : 1, last = (int)floor(log10(chart->high) + slack);
    for (int power = (int)floor(log10(chart->low)); power <= last; power += step)
        for (unsigned i = 0; i < each; i++) {
            double tick = pow(10, power) * all[i];
            if (tick >= chart->low * (1 - slack) && tick <= chart->high * (1 + slack) &&
                count < TICKS_MAX)
                ticks[count++] = tick;
        }
    return count;
}

static void print_axis(const struct chart *chart)
{
    double ticks[TICKS_MAX];
    unsigned count =
        chart->logarithmic ? logarithmic_ticks(chart, ticks) : linear_ticks(chart, ticks);
    unsigned bottom = chart->rows * ROW_HEIGHT;
    for (unsigned i = 0; i < count; i++) {
        double x = place(chart, ticks[i]);
        const char *anchor = x < 4 ? "start" : x > 92 ? "end" : "middle";
        bool one = chart->unit == CHART_FACTOR && ticks[i] == 1;
        fprintf(chart->stream,
                "<line class=\"%s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"%u\"/>"
                "<text class=\"axis\" x=\"%.2f%%\" y=\"%u\" text-anchor=\"%s\">",
                one ? "one" : "grid", x, x, bottom + 4, x, bottom + AXIS_HEIGHT - 2, anchor);
        print_value(chart, ticks[i]);
        fputs("</text>\n", chart->stream);
    }
}

/* ---------------------------------------------------------------- the chart */

/* Wide enough for a tick at 1, and for one value that would make it a point. */
static void widen(struct chart *chart)
{
    if (chart->unit == CHART_FACTOR)
        chart_reach(chart, 1);
    if (chart->low <= 0)
        chart->low = chart->high = 1;
    const double least = 2.5; /* between the ends of a logarithmic axis */
    if (chart->logarithmic && chart->high / chart->low < least) {
        double middle = sqrt(chart->high * chart->low);
        chart->low = middle / sqrt(least);
        chart->high = middle * sqrt(least);
    }
}

void chart_begin(struct chart *chart)
{
    widen(chart);
    fprintf(chart->stream, "<svg class=\"chart\" role=\"img\" height=\"%u\"><title>%s</title>",
            chart->rows * ROW_HEIGHT + AXIS_HEIGHT, chart->title);
    fprintf(chart->stream, "<desc>%s</desc>\n", chart->description);
    print_axis(chart);
    chart->y = 0;
}

void chart_end(struct chart *chart)
{
    fputs("</svg>\n", chart->stream);
}

void chart_row(struct chart *chart, const char *label, const char *note)
{
    FILE *stream = chart->stream;
    fprintf(stream, "<text y=\"%u\">", chart->y + TEXT_Y);
    fputs("<title>", stream);
    html_text(stream, label);
    fputs("</title>", stream);
    html_short_text(stream, label, LABEL_CHARACTERS);
    fprintf(stream,
            "</text><text class=\"soft\" x=\"100%%\" y=\"%u\" text-anchor=\"end\">%s"
            "</text>\n<line class=\"track\" x1=\"0\" x2=\"100%%\" y1=\"%u\" y2=\"%u\"/>\n",
            chart->y + TEXT_Y, note, chart->y + LINE_Y, chart->y + LINE_Y);
    chart->y += ROW_HEIGHT;
}

static unsigned line_of(const struct chart *chart)
{
    return chart->y - ROW_HEIGHT + LINE_Y;
}

static void print_bar(const struct chart *chart, const char *class, const char *pattern,
                      unsigned number, double from, double to)
{
    double x = place(chart, from), width = place(chart, to) - x;
    fprintf(chart->stream,
            "<rect class=\"bar %s%u\" fill=\"url(#%s%u)\" x=\"%.3f%%\" width=\"%.3f%%\" "
            "y=\"%u\" height=\"%d\"/>\n",
            class, number, pattern, number, x, width, line_of(chart) - BAR_HEIGHT / 2, BAR_HEIGHT);
}

void chart_bar(const struct chart *chart, unsigned series, double from, double to)
{
    print_bar(chart, "d", "p", series % CHART_SERIES, from, to);
}

void chart_phase(const struct chart *chart, unsigned phase, double from, double to)
{
    print_bar(chart, "phase phase-", "q", phase, from, to);
}

void chart_mark(const struct chart *chart, unsigned series, double value, const char *label)
{
    series %= CHART_SERIES;
    fprintf(chart->stream,
            "<use class=\"mark-on d%u\" fill=\"currentColor\" href=\"#m%u\" x=\"%.3f%%\" y=\"%u\">"
            "<title>",
            series, series, place(chart, value), line_of(chart));
    html_text(chart->stream, label);
    fputs(": ", chart->stream);
    print_value(chart, value);
    fputs("</title></use>\n", chart->stream);
}

static void print_line(const struct chart *chart, const char *class, double low, double high)
{
    fprintf(chart->stream, "<line class=\"%s\" x1=\"%.3f%%\" x2=\"%.3f%%\" y1=\"%u\" y2=\"%u\"/>\n",
            class, place(chart, low), place(chart, high), line_of(chart), line_of(chart));
}

void chart_interval(const struct chart *chart, unsigned series, double low, double high)
{
    char class[32];
    snprintf(class, sizeof class, "interval d%u", series % CHART_SERIES);
    print_line(chart, class, low, high);
}

static void print_tick(const struct chart *chart, const char *class, double value, int top,
                       int bottom)
{
    double x = place(chart, value);
    fprintf(chart->stream, "<line class=\"%s\" x1=\"%.3f%%\" x2=\"%.3f%%\" y1=\"%d\" y2=\"%d\"/>\n",
            class, x, x, (int)line_of(chart) + top, (int)line_of(chart) + bottom);
}

void chart_range(const struct chart *chart, double low, double high)
{
    enum { HALF = 4 };
    print_line(chart, "range", low, high);
    print_tick(chart, "range", low, -HALF, HALF);
    print_tick(chart, "range", high, -HALF, HALF);
}

void chart_sample(const struct chart *chart, double value)
{
    print_tick(chart, "sample", value, BAR_HEIGHT / 2 + 2, BAR_HEIGHT / 2 + 6);
}
