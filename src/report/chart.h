/*
 * Charts as inline SVG. Places along the axis are in percent, so that a chart is as wide as its
 * page and its letters stay as large as they are. Each row has a line of text and below it what is
 * drawn.
 *
 * Series (devices) have a colour, a shape and a pattern each (compare.css, compare.svg): colour is
 * never all that tells them apart.
 */
#ifndef HEALCL_REPORT_CHART_H
#define HEALCL_REPORT_CHART_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    CHART_SERIES = 8, /* colours, shapes and patterns: then they begin again */
    CHART_PHASES = 5, /* parts of one bar, with patterns of their own */
};

enum chart_unit { CHART_TIME, CHART_PERCENT, CHART_FACTOR };

struct chart {
    FILE *stream;
    const char *title, *description; /* what it shows, for those who do not see it; plain ASCII */
    enum chart_unit unit;
    bool logarithmic; /* axis; else it begins at 0 */
    double low, high; /* values that are drawn: nanoseconds, percent or factors */
    unsigned rows;
    unsigned y; /* of the current row; only the chart itself uses it */
};

/* Makes the axis reach to a value that is above 0. A chart starts with low and high 0. */
void chart_reach(struct chart *chart, double value);

void chart_begin(struct chart *chart);
void chart_end(struct chart *chart);

/* The next row. label is cut where it is long; note stands at the right, and may be HTML. */
void chart_row(struct chart *chart, const char *label, const char *note);

/* All draw in the current row. */
void chart_bar(const struct chart *chart, unsigned series, double from, double to);
void chart_phase(const struct chart *chart, unsigned phase, double from, double to);
void chart_mark(const struct chart *chart, unsigned series, double value, const char *label);
void chart_interval(const struct chart *chart, unsigned series, double low, double high);
void chart_range(const struct chart *chart, double low, double high); /* over a bar */
void chart_sample(const struct chart *chart, double value);           /* below a bar */

#endif
