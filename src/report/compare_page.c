#include "report/compare_page.h"

#include <string.h>

#include "report/html.h"

const char *page_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

const char *page_device_name(const struct compare_device *device)
{
    return *device->name ? device->name : device->selector;
}

const char *page_device_label(const struct page *page, size_t device, char label[LABEL_SIZE])
{
    const struct comparison *comparison = page->comparison;
    const struct compare_device *about = &comparison->devices[device];
    bool again = false;
    for (size_t i = 0; i < comparison->device_count; i++)
        again |= i != device && comparison->devices[i].origin == about->origin &&
                 strcmp(page_device_name(&comparison->devices[i]), page_device_name(about)) == 0;
    snprintf(label, LABEL_SIZE, "%s%s%s%s", again ? about->selector : "", again ? " " : "",
             about->origin->baseline ? "(baseline) " : "", page_device_name(about));
    return label;
}

void page_device(const struct page *page, size_t device)
{
    const struct compare_device *about = &page->comparison->devices[device];
    unsigned series = (unsigned)(device % CHART_SERIES);
    fprintf(page->stream,
            "<span class=\"device\"><svg class=\"mark d%u\" viewBox=\"-8 -8 16 16\" "
            "aria-hidden=\"true\"><use "
            "href=\"#m%u\"/></svg><span class=\"name\">",
            series, series);
    html_text(page->stream, page_device_name(about));
    fputs("</span>", page->stream);
    if (about->origin->baseline)
        fputs(" <span class=\"tag\">baseline</span>", page->stream);
    fputs("</span>", page->stream);
}

void page_device_details(const struct page *page, size_t device)
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
        html_text(page->stream, page_base_name(about->origin->baseline));
    }
    fputs("</small>", page->stream);
}

void page_legend(const struct page *page)
{
    fputs("<ul class=\"legend\">", page->stream);
    for (size_t i = 0; i < page->comparison->device_count; i++) {
        const struct compare_run *run = compare_find(page->comparison, page->transcript, i);
        if (!run || run->sample_count == 0)
            continue;
        fputs("<li>", page->stream);
        page_device(page, i);
        fputs("</li>", page->stream);
    }
    fputs("</ul>\n", page->stream);
}

void page_table_begin(const struct page *page)
{
    fputs("<details><summary>As a table</summary><div class=\"scroll\"><table>\n", page->stream);
}

void page_table_end(const struct page *page)
{
    fputs("</tbody></table></div></details>\n", page->stream);
}

const struct compare_run *page_next_run(const struct page *page, const struct compare_run *last)
{
    const struct comparison *comparison = page->comparison;
    for (size_t i = last ? (size_t)(last - comparison->runs) + 1 : 0; i < comparison->run_count;
         i++)
        if (comparison->runs[i].transcript == page->transcript)
            return &comparison->runs[i];
    return NULL;
}

struct chart page_chart(const struct page *page, enum chart_unit unit, const char *title,
                        const char *description)
{
    return (struct chart){
        .stream = page->stream, .unit = unit, .title = title, .description = description};
}

size_t page_timed_runs(const struct page *page)
{
    size_t count = 0;
    FOR_EACH_RUN(page, run) count += run->sample_count > 0;
    return count;
}
