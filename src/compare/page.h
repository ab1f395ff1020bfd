/* What the parts of a comparison's page share, and those parts: page_print.c puts them together.
 */
#ifndef HEALCL_COMPARE_PAGE_H
#define HEALCL_COMPARE_PAGE_H

#include "compare/chart.h"
#include "compare/columns.h"

enum { NOTE_SIZE = 192 }; /* of the HTML at the right of a chart's row */

struct page {
    FILE *stream;
    const struct comparison *comparison;
    bool *no_memory;                               /* becomes true where something has none */
    size_t transcript;                             /* that is told of now */
    char labels[COMPARE_DEVICES_MAX][LABEL_SIZE];  /* compare_device_label */
    char details[COMPARE_DEVICES_MAX][LABEL_SIZE]; /* compare_device_detail */
};

/* Those of the page's transcript. */
#define FOR_EACH_RUN(page, run) FOR_EACH_RUN_OF((page)->comparison, (page)->transcript, run)

/* How many of them have times. */
size_t page_timed_runs(const struct page *page);

/* Shape and colour, name, and whether it is a baseline's; page_device also what tells it from
 * others of that name. */
void page_device_name(const struct page *page, size_t device);
void page_device(const struct page *page, size_t device);

/* A text, with the home folder as "~". */
void page_path(const struct page *page, const char *path);

/* Ends a chart. */
void page_chart_end(const struct page *page, struct chart *chart);

/* Begins a device's row in a chart. */
void page_chart_row(const struct page *page, struct chart *chart, size_t device, const char *note);

/* Which shape is which device, of those that have times. */
void page_legend(const struct page *page);

/* Around the head and the rows of the table that stands for a chart, folded. */
void page_table_begin(const struct page *page);
void page_table_end(const struct page *page);

struct chart page_chart(const struct page *page, enum chart_unit unit, const char *title,
                        const char *description);

/* The table of a place (columns.h), with a row for each run; that of verdicts has them, too. */
void page_runs(const struct page *page, unsigned place);

/* Of any table: the cell of a record, and the head of a column. */
void page_cell(const struct page *page, const struct column_table *table,
               const struct column *column, const void *context, const void *record);
void page_column_head(const struct page *page, const struct column *column);

/* A value that is known, with its unit. */
void page_value(const struct page *page, const struct column *column,
                const struct column_value *value);

/* What came of a run, with a mark. */
void page_verdict(const struct page *page, const struct compare_run *run);

/* Where and when it was measured. */
void page_origin(const struct page *page, const struct compare_origin *origin);

/* ---- the parts ---- */

/* page_top.c: head of the document, lead, contents, overview, means. */
void page_top(const struct page *page);

/* About the page's transcript; each begins with a heading whose id is "timeN" with the number of
 * the transcript, and so on. */
void page_times(const struct page *page);   /* page_times.c */
void page_process(const struct page *page); /* page_process.c */
/* page_parts.c: segments, operations, shares of the bandwidth. */
void page_parts(const struct page *page);

void page_ranks(const struct page *page); /* page_ranks.c: reports of healcl-mpi */

/* page_end.c: devices, commands, what figures mean. */
void page_end(const struct page *page);

#endif
