/*
 * Charts as inline SVG. Places along the axis are in percent, so that a chart is as wide as its
 * page and its letters stay as large as they are: labels of the axis are chosen so that they do not
 * meet where a page is 400 pixels wide. Each row has a line or two of text and below them what is
 * drawn; a row in which marks lie together is higher, and shows each of them.
 *
 * Series (devices) have a colour, a shape and a pattern each (compare.css, compare.svg): colour is
 * never all that tells them apart.
 */
#ifndef HEALCL_COMPARE_CHART_H
#define HEALCL_COMPARE_CHART_H

#include <stdbool.h>
#include <stdio.h>

#include "core/status.h"

enum {
    CHART_SERIES = 8, /* colours, shapes and patterns: then they begin again */
    CHART_PHASES = 5, /* parts of one bar, with patterns of their own */
};

/* A mark. */
struct chart_point {
    unsigned series;
    double value;
    const char *label;
};

enum { CHART_POINTS_MAX = 64 }; /* in a row */

enum chart_unit { CHART_TIME, CHART_PERCENT, CHART_FACTOR };

struct chart {
    FILE *stream;
    const char *title, *description; /* what it shows, for those who do not see it; plain ASCII */
    enum chart_unit unit;
    bool logarithmic; /* axis; else it begins at 0 */
    double low, high; /* values that are drawn: nanoseconds, percent or factors */
    /* What follows only the chart itself uses. */
    FILE *body; /* what is drawn: it goes behind the axis, whose height follows from it */
    char *text; /* of body */
    size_t size;
    unsigned top, line; /* of the current row: its top, and the middle of its first lane */
    struct chart_point points[CHART_POINTS_MAX]; /* its marks that are not drawn yet */
    size_t point_count;
};

/* Makes the axis reach to a value that is above 0. A chart starts with low and high 0, and without
 * any such value it is not to be drawn. */
void chart_reach(struct chart *chart, double value);

/* What is between them is drawn at the end, all or nothing, as a figure that ends a part of the
 * page. HEALCL_NO_MEMORY. */
void chart_begin(struct chart *chart);
enum healcl_status chart_end(struct chart *chart);

/* The next row. label is cut where it is long; detail is a second line, or ""; note stands at the
 * right, and may be HTML. */
void chart_row(struct chart *chart, const char *label, const char *detail, const char *note);

/* All draw in the current row. A row has marks, of which those that would hide each other go into
 * lanes below each other, or something else. A mark's label, which is shown on
 * request, lives until the next row. */
void chart_bar(const struct chart *chart, unsigned series, double from, double to);
void chart_phase(const struct chart *chart, unsigned phase, double from, double to);
void chart_mark(struct chart *chart, unsigned series, double value, const char *label);
void chart_interval(const struct chart *chart, unsigned series, double low, double high);
void chart_range(const struct chart *chart, double low, double high); /* over a bar */
/* Below a bar. What is beyond the axis is one mark at its end. */
void chart_sample(const struct chart *chart, double value);

#endif
