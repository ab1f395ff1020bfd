#include "compare/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/html.h"

enum {
    TEXT_HEIGHT = 16,  /* pixels, as all below: of a line of text */
    TEXT_Y = 13,       /* its baseline */
    DRAWN_HEIGHT = 32, /* of what is below the text, with what separates it from the next row */
    DRAWN_Y = 12,      /* its first lane, the middle of it */
    LANE_HEIGHT = 14,
    BAR_HEIGHT = 12,
    AXIS_HEIGHT = 22,
    MARGIN = 24,          /* at both sides, for the halves of labels and of marks */
    LINE_CHARACTERS = 50, /* of a line where a page is 400 pixels wide */
    TICKS_MAX = 12,
};

/* Percent of the axis of such a page: what a label takes, and a mark. */
#define TICK_DISTANCE 17.0
#define MARK_DISTANCE 5.0

void chart_reach(struct chart *chart, double value)
{
    if (value <= 0)
        return;
    if (chart->low <= 0 || value < chart->low)
        chart->low = value;
    if (value > chart->high)
        chart->high = value;
}

/* Percent of the axis. */
static double place(const struct chart *chart, double value)
{
    if (!chart->logarithmic)
        return chart->high > 0 ? 100 * value / chart->high : 0;
    double whole = log(chart->high / chart->low);
    double part = value > 0 ? log(value / chart->low) : 0;
    return whole > 0 ? 100 * part / whole : 50;
}

/* ---------------------------------------------------------------- axis */

static void print_value(const struct chart *chart, FILE *stream, double value)
{
    if (chart->unit == CHART_PERCENT)
        fprintf(stream, "%.3g&#8239;%%", value);
    else if (chart->unit == CHART_FACTOR)
        fprintf(stream, "%.5g&times;", value);
    else if (value <= 0)
        putc('0', stream);
    else if (value < 1e3)
        fprintf(stream, "%.3g&#8239;ns", value);
    else if (value < 1e6)
        fprintf(stream, "%.3g&#8239;&micro;s", value / 1e3);
    else if (value < 1e9)
        fprintf(stream, "%.3g&#8239;ms", value / 1e6);
    else
        fprintf(stream, "%.3g&#8239;s", value / 1e9);
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

/* The values on the axis that are one of the digits times a power of ten, which is a multiple of
 * power_step; 0 where they are too near to each other. 1 is among them. */
static unsigned spread_ticks(const struct chart *chart, const char *digits, int power_step,
                             double ticks[TICKS_MAX])
{
    const double slack = 1e-4;
    int first = (int)floor(log10(chart->low)), last = (int)floor(log10(chart->high) + slack);
    unsigned count = 0;
    for (int power = first; power <= last; power++)
        for (const char *digit = digits; *digit && power % power_step == 0; digit++) {
            double tick = pow(10, power) * (*digit - '0');
            if (tick < chart->low * (1 - slack) || tick > chart->high * (1 + slack))
                continue;
            if (count == TICKS_MAX ||
                (count > 0 && place(chart, tick) - place(chart, ticks[count - 1]) < TICK_DISTANCE))
                return 0;
            ticks[count++] = tick;
        }
    return count;
}

/* As many as have room. */
static unsigned logarithmic_ticks(const struct chart *chart, double ticks[TICKS_MAX])
{
    static const char *const digits[] = {"123456789", "125", "13", "1"};
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
        unsigned count = spread_ticks(chart, digits[i], 1, ticks);
        if (count > 0)
            return count;
    }
    const int far = 40;
    for (int power_step = 2; power_step < far; power_step++) {
        unsigned count = spread_ticks(chart, "1", power_step, ticks);
        if (count > 0)
            return count;
    }
    return 0;
}

/* Behind all rows. */
static void print_axis(const struct chart *chart)
{
    double ticks[TICKS_MAX];
    unsigned count =
        chart->logarithmic ? logarithmic_ticks(chart, ticks) : linear_ticks(chart, ticks);
    const double whole = 100; /* percent */
    for (unsigned i = 0; i < count; i++) {
        double x = place(chart, ticks[i]);
        bool one = (chart->unit == CHART_FACTOR && ticks[i] == 1) ||
                   (chart->unit == CHART_PERCENT && ticks[i] == whole);
        fprintf(chart->stream,
                "<line class=\"%s\" x1=\"%.3f%%\" x2=\"%.3f%%\" y1=\"0\" y2=\"%u\"/>"
                "<text class=\"axis\" x=\"%.3f%%\" y=\"%u\" text-anchor=\"middle\">",
                one ? "one" : "grid", x, x, chart->top + 4, x, chart->top + AXIS_HEIGHT - 2);
        print_value(chart, chart->stream, ticks[i]);
        fputs("</text>\n", chart->stream);
    }
}

/* ---------------------------------------------------------------- rows */

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
    chart->body = open_memstream(&chart->text, &chart->size);
}

/* Characters that HTML shows. */
static size_t shown_characters(const char *html)
{
    size_t count = 0;
    for (; *html; html++, count++)
        if (*html == '&')
            html += strcspn(html, ";");
    return count;
}

static int by_value(const void *a, const void *b)
{
    const struct chart_point *x = a, *y = b;
    if (x->value < y->value || x->value > y->value)
        return x->value < y->value ? -1 : 1;
    return (x->series > y->series) - (x->series < y->series);
}

static void print_mark(const struct chart *chart, const struct chart_point *point, unsigned lane)
{
    unsigned series = point->series % CHART_SERIES;
    fprintf(chart->body,
            "<use class=\"mark-on d%u\" fill=\"currentColor\" href=\"#m%u\" x=\"%.3f%%\" y=\"%u\">"
            "<title>",
            series, series, place(chart, point->value), chart->line + lane * LANE_HEIGHT);
    html_print(chart->body, "%s: ", point->label);
    print_value(chart, chart->body, point->value);
    fputs("</title></use>\n", chart->body);
}

/* Draws the marks of the row: each in the first lane where there is room beside the one before. */
static void finish_row(struct chart *chart)
{
    double last[CHART_POINTS_MAX];
    unsigned lanes = 0;
    qsort(chart->points, chart->point_count, sizeof *chart->points, by_value);
    for (size_t i = 0; i < chart->point_count; i++) {
        double x = place(chart, chart->points[i].value);
        unsigned lane = 0;
        while (lane < lanes && x - last[lane] < MARK_DISTANCE)
            lane++;
        lanes += lane == lanes;
        last[lane] = x;
        print_mark(chart, &chart->points[i], lane);
    }
    if (chart->line > 0)
        chart->top =
            chart->line - DRAWN_Y + DRAWN_HEIGHT + (lanes > 1 ? (lanes - 1) * LANE_HEIGHT : 0);
    chart->point_count = 0;
}

enum healcl_status chart_end(struct chart *chart)
{
    if (!chart->body)
        return HEALCL_NO_MEMORY;
    finish_row(chart);
    bool written = fclose(chart->body) == 0;
    if (written) {
        fprintf(chart->stream,
                "<figure><svg class=\"chart\" role=\"img\" height=\"%u\" "
                "style=\"width:calc(100%% - %dpx);margin:0 %dpx\"><title>%s</title>"
                "<desc>%s</desc>\n",
                chart->top + AXIS_HEIGHT, 2 * MARGIN, MARGIN, chart->title, chart->description);
        print_axis(chart);
        fputs(chart->text, chart->stream);
        fputs("</svg>\n</figure></div>\n", chart->stream);
    }
    free(chart->text);
    chart->body = NULL;
    return written ? HEALCL_OK : HEALCL_NO_MEMORY;
}

static void print_label(const struct chart *chart, const char *class, unsigned y, const char *text,
                        size_t characters)
{
    fprintf(chart->body, "<text%s dx=\"-%d\" y=\"%u\"><title>", class, MARGIN, y);
    html_print(chart->body, "%s</title>", text);
    html_short_text(chart->body, text, characters);
    fputs("</text>", chart->body);
}

void chart_row(struct chart *chart, const char *label, const char *detail, const char *note)
{
    if (!chart->body)
        return;
    finish_row(chart);
    size_t taken = shown_characters(note) + 1;
    size_t left = taken < LINE_CHARACTERS / 2 ? LINE_CHARACTERS - taken : LINE_CHARACTERS / 2;
    print_label(chart, "", chart->top + TEXT_Y, label, left);
    fprintf(chart->body,
            "<text class=\"soft\" x=\"100%%\" dx=\"%d\" y=\"%u\" text-anchor=\"end\">%s</text>\n",
            MARGIN, chart->top + TEXT_Y, note);
    chart->line = chart->top + TEXT_HEIGHT + DRAWN_Y;
    if (*detail) {
        print_label(chart, " class=\"soft\"", chart->top + TEXT_HEIGHT + TEXT_Y, detail,
                    LINE_CHARACTERS);
        chart->line += TEXT_HEIGHT;
    }
    fprintf(chart->body, "<line class=\"track\" x1=\"0\" x2=\"100%%\" y1=\"%u\" y2=\"%u\"/>\n",
            chart->line, chart->line);
}

/* ---------------------------------------------------------------- what is drawn in them */

static void print_bar(const struct chart *chart, const char *class, const char *pattern,
                      unsigned number, double from, double to)
{
    if (!chart->body)
        return;
    double x = place(chart, from), width = place(chart, to) - x;
    fprintf(chart->body,
            "<rect class=\"bar %s%u\" fill=\"url(#%s%u)\" x=\"%.3f%%\" width=\"%.3f%%\" "
            "y=\"%u\" height=\"%d\"/>\n",
            class, number, pattern, number, x, width, chart->line - BAR_HEIGHT / 2, BAR_HEIGHT);
}

void chart_bar(const struct chart *chart, unsigned series, double from, double to)
{
    print_bar(chart, "d", "p", series % CHART_SERIES, from, to);
}

void chart_phase(const struct chart *chart, unsigned phase, double from, double to)
{
    print_bar(chart, "phase phase-", "q", phase, from, to);
}

void chart_mark(struct chart *chart, unsigned series, double value, const char *label)
{
    if (chart->body && chart->point_count < CHART_POINTS_MAX)
        chart->points[chart->point_count++] = (struct chart_point){series, value, label};
}

static void print_line(const struct chart *chart, const char *class, double low, double high)
{
    if (chart->body)
        fprintf(chart->body,
                "<line class=\"%s\" x1=\"%.3f%%\" x2=\"%.3f%%\" y1=\"%u\" y2=\"%u\"/>\n", class,
                place(chart, low), place(chart, high), chart->line, chart->line);
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
    if (chart->body)
        fprintf(chart->body,
                "<line class=\"%s\" x1=\"%.3f%%\" x2=\"%.3f%%\" y1=\"%d\" y2=\"%d\"/>\n", class, x,
                x, (int)chart->line + top, (int)chart->line + bottom);
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
    if (value <= chart->high) {
        print_tick(chart, "sample", value, BAR_HEIGHT / 2 + 2, BAR_HEIGHT / 2 + 6);
    } else if (chart->body) {
        fprintf(chart->body, "<use class=\"beyond\" href=\"#beyond\" x=\"100%%\" y=\"%u\"><title>",
                chart->line + BAR_HEIGHT / 2 + 4);
        print_value(chart, chart->body, value);
        fputs("</title></use>\n", chart->body);
    }
}
