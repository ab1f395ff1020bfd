/* What the parts of a comparison's page share, and those parts: compare_html.c puts them together.
 */
#ifndef HEALCL_REPORT_COMPARE_PAGE_H
#define HEALCL_REPORT_COMPARE_PAGE_H

#include "report/chart.h"
#include "report/compare.h"

enum {
    LABEL_SIZE = 512, /* of a device's name in a chart */
    NOTE_SIZE = 192,  /* of the HTML at the right of a chart's row */
};

struct page {
    FILE *stream;
    const struct comparison *comparison;
    size_t transcript; /* that is told of now */
};

/* The next run of the page's transcript, the first one behind NULL; NULL at the end. */
const struct compare_run *page_next_run(const struct page *page, const struct compare_run *last);

#define FOR_EACH_RUN(page, run)                                          \
    for (const struct compare_run *run = page_next_run(page, NULL); run; \
         run = page_next_run(page, run))

/* How many of them have times. */
size_t page_timed_runs(const struct page *page);

const char *page_base_name(const char *path);
const char *page_device_name(const struct compare_device *device);

/* A name that no other device has, for a chart; returns label. */
const char *page_device_label(const struct page *page, size_t device, char label[LABEL_SIZE]);

/* Shape and colour, name, and whether it is a baseline's. Then: platform, driver, from which file.
 */
void page_device(const struct page *page, size_t device);
void page_device_details(const struct page *page, size_t device);

/* Which shape is which device, of those that have times. */
void page_legend(const struct page *page);

/* Around the head and the rows of the table that stands for a chart, folded. */
void page_table_begin(const struct page *page);
void page_table_end(const struct page *page);

struct chart page_chart(const struct page *page, enum chart_unit unit, const char *title,
                        const char *description);

/* ---- the parts, about the page's transcript ---- */

void page_times(const struct page *page);   /* compare_page_times.c */
void page_process(const struct page *page); /* compare_page_times.c: memory too */

/* compare_page_parts.c: segments, operations, shares of the bandwidth. */
MUST_CHECK enum healcl_status page_parts(const struct page *page);

#endif
