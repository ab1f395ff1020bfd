/* The top of a comparison's page: what it comes to, the contents, all transcripts at a glance. */
#include <inttypes.h>
#include <stdlib.h>

#include "compare/html.h"
#include "compare/page.h"
#include "report/text.h"

/* Embedded: src/compare/page.css and .svg. */
extern const char healcl_compare_page_css[], healcl_compare_page_svg[];

/* ---------------------------------------------------------------- the head */

static void put_lead(const struct page *page)
{
    char *lead = compare_lead(page->comparison);
    *page->no_memory |= !lead;
    if (lead)
        html_print(page->stream, "<p class=\"lead\">%s</p>\n", lead);
    free(lead);
}

static void put_title(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    if (comparison->transcript_count == 1)
        html_text(page->stream, compare_base_name(comparison->transcripts[0].file));
    else
        fprintf(page->stream, "%zu transcripts", comparison->transcript_count);
    size_t count = compare_own_devices(comparison);
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
            healcl_compare_page_css, healcl_compare_page_svg);
    fputs("<header><p class=\"eyebrow\">healcl compare</p><h1>", page->stream);
    put_title(page);
    fputs("</h1>\n", page->stream);
    put_lead(page);
    fputs("<p class=\"meta\">", page->stream);
    page_origin(page, &page->comparison->origin);
    fprintf(page->stream, " &middot; %" PRIu32 " run%s each</p></header>\n",
            page->comparison->repeat, page->comparison->repeat == 1 ? "" : "s");
}

/* ---------------------------------------------------------------- contents */

static void put_link(const struct page *page, bool there, const char *id, const char *text)
{
    if (there)
        html_print(page->stream, "<li><a href=\"#%s\">%s</a></li>", id, text);
}

static bool takes_time(const struct compare_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (parts[i].nanoseconds > 0)
            return true;
    return false;
}

/* Of the one transcript; each condition is that of the part itself. */
static void put_part_links(const struct page *page)
{
    bool segments = false, kinds = false, bandwidth = false, first = false, compared = false,
         timed = false;
    struct compare_speedup speedup;
    struct compare_times times;
    FOR_EACH_RUN(page, run)
    {
        const struct compare_device *device = &page->comparison->devices[run->device];
        segments |= takes_time(run->segments, run->segment_count);
        kinds |= takes_time(run->operations, run->operation_count);
        for (size_t i = 0; i < run->operation_count; i++)
            bandwidth |= device->copied_bytes > 0 && run->operations[i].nanoseconds > 0 &&
                         run->operations[i].bytes > 0;
        first |= run->cold.nanoseconds > 0 || run->warm.nanoseconds > 0;
        timed |= compare_times_of(run, COMPARE_COMPUTE, &times) && times.most > 0;
        compared |= run != compare_reference(page->comparison, page->transcript, COMPARE_COMPUTE) &&
                    compare_speedup_of(page->comparison, run, COMPARE_COMPUTE, &speedup);
    }
    put_link(page, true, "t0", "Verdicts");
    put_link(page, timed, "time0", "Compute");
    put_link(page, compared, "speedup0", "Speed-up");
    put_link(page, segments, "segments0", "By segment");
    put_link(page, kinds, "operations0", "By kind of operation");
    put_link(page, bandwidth, "bandwidth0", "Share of the bandwidth");
    put_link(page, first, "first0", "Time to the first result");
    put_link(page, true, "process0", "The whole process");
}

static void put_contents(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    char id[32];
    fputs("<nav aria-label=\"Contents\"><ul>", page->stream);
    put_link(page, comparison->transcript_count > 1, "overview", "Overview");
    put_link(page, compare_has_means(comparison), "means", "Speed-up");
    if (comparison->transcript_count == 1)
        put_part_links(page);
    for (size_t i = 0; i < comparison->transcript_count && comparison->transcript_count > 1; i++) {
        snprintf(id, sizeof id, "t%zu", i);
        put_link(page, true, id, compare_base_name(comparison->transcripts[i].file));
    }
    put_link(page, comparison->ranks_count > 0, "ranks", "Ranks");
    put_link(page, true, "devices", "Devices");
    put_link(page, true, "commands", "To repeat it");
    put_link(page, true, "machine", "Where it was measured");
    put_link(page, true, "reading", "How to read this");
    fputs("</ul></nav>\n<main>\n", page->stream);
}

/* ---------------------------------------------------------------- all transcripts */

/* The head of a table with a row for each transcript and a column for each device. */
static void begin_table(const struct page *page)
{
    fputs("<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Transcript</th>",
          page->stream);
    for (size_t j = 0; j < page->comparison->device_count; j++) {
        fputs("<th scope=\"col\">", page->stream);
        page_device(page, j);
        fputs("</th>", page->stream);
    }
    fputs("</tr></thead><tbody>\n", page->stream);
}

static void begin_row(const struct page *page, size_t transcript)
{
    html_print(page->stream, "<tr><th scope=\"row\"><a href=\"#t%zu\">%s</a></th>", transcript,
               compare_base_name(page->comparison->transcripts[transcript].file));
}

/* Verdicts and compute times of all transcripts, where there are several. */
static void put_overview(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    FILE *stream = page->stream;
    if (comparison->transcript_count < 2)
        return;
    fputs("<section id=\"overview\"><h2>Overview</h2>", stream);
    begin_table(page);
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        begin_row(page, i);
        for (size_t j = 0; j < comparison->device_count; j++) {
            const struct compare_run *run = compare_find(comparison, i, j);
            struct compare_times times;
            fputs(run ? "<td>" : "<td>&ndash;", stream);
            if (run)
                page_verdict(page, run);
            if (run && compare_times_of(run, COMPARE_COMPUTE, &times))
                fprintf(stream, "<small>%s</small>", HTML_TIME(times.median));
            fputs("</td>", stream);
        }
        fputs("</tr>\n", stream);
    }
    fputs("</tbody></table></div></section>\n", stream);
}

static void put_factor_cell(const struct page *page, const char *class, double factor)
{
    fprintf(page->stream, "<td class=\"%s\"", class);
    if (factor > 0)
        fprintf(page->stream, " data-factor=\"%.8g\">%s&times;</td>", factor, TEXT_FACTOR(factor));
    else
        fputs(">&ndash;</td>", page->stream);
}

/* With its interval, or that this says nothing. */
static void put_mean_cell(const struct page *page, size_t device, enum compare_figure figure)
{
    const struct compare_mean *mean = &page->comparison->devices[device].means[figure];
    if (mean->factor <= 0 || device == page->comparison->base) {
        put_factor_cell(page, "n mean", mean->factor);
        return;
    }
    fprintf(page->stream,
            "<td class=\"n mean\" data-factor=\"%.8g\">%s&times; %s<small>%s to %s</small></td>",
            mean->factor, TEXT_FACTOR(mean->factor),
            compare_is_alike(mean) ? "<small>no difference</small>" : "", TEXT_FACTOR(mean->low),
            TEXT_FACTOR(mean->high));
}

/* Speed-ups of all transcripts, and what they come to. */
static void put_means(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    FILE *stream = page->stream;
    if (!compare_has_means(comparison))
        return;
    html_print(
        stream,
        "<section id=\"means\"><h2>Speed-up</h2><p class=\"note\">How many times as fast as "
        "%s in compute. Geometric means are over %zu of %zu transcripts: those that tell devices "
        "apart, and that all devices have run right which are not at fault. Below it are "
        "the means of the quartiles.</p>",
        page->labels[comparison->base], comparison->counting_count, comparison->transcript_count);
    fputs("<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Device</th><th scope=\"col\" "
          "class=\"n mean\">Mean, compute</th><th scope=\"col\" class=\"n mean\">Mean, steady "
          "request</th>",
          stream);
    for (size_t i = 0; i < comparison->transcript_count; i++)
        html_print(stream, "<th scope=\"col\" class=\"n\"><a href=\"#t%zu\">%s</a></th>", i,
                   compare_base_name(comparison->transcripts[i].file));
    fputs("</tr></thead><tbody>\n", stream);
    for (size_t j = 0; j < comparison->device_count; j++) {
        fputs("<tr><th scope=\"row\">", stream);
        page_device(page, j);
        fputs("</th>", stream);
        for (enum compare_figure i = 0; i < COMPARE_LEADING; i++)
            put_mean_cell(page, j, i);
        for (size_t i = 0; i < comparison->transcript_count; i++) {
            struct compare_speedup speedup = {.factor = 0};
            (void)compare_mean_part(comparison, COMPARE_COMPUTE, i, j, comparison->base, &speedup);
            put_factor_cell(page, "n", speedup.factor);
        }
        fputs("</tr>\n", stream);
    }
    fputs("</tbody></table></div></section>\n", stream);
}

void page_top(const struct page *page)
{
    put_head(page);
    put_contents(page);
    put_overview(page);
    put_means(page);
}
