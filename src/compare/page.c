#include "compare/page.h"

#include <inttypes.h>

#include "compare/describe.h"
#include "compare/html.h"

/* ---------------------------------------------------------------- devices */

static void put_device(const struct page *page, size_t device, const char *detail)
{
    const struct compare_device *about = &page->comparison->devices[device];
    unsigned series = (unsigned)(device % CHART_SERIES);
    fprintf(page->stream,
            "<span class=\"device\"><svg class=\"mark d%u\" viewBox=\"-8 -8 16 16\" "
            "aria-hidden=\"true\"><use "
            "href=\"#m%u\"/></svg><span class=\"name\">",
            series, series);
    html_print(page->stream, "%s</span>", compare_device_name(about));
    if (*detail)
        html_print(page->stream, " <span class=\"detail\">(%s)</span>", detail);
    if (about->emulator)
        fputs(" <span class=\"tag\">emulator</span>", page->stream);
    if (about->origin->baseline)
        fputs(" <span class=\"tag\">baseline</span>", page->stream);
    fputs("</span>", page->stream);
}

void page_device_name(const struct page *page, size_t device)
{
    put_device(page, device, "");
}

void page_device(const struct page *page, size_t device)
{
    put_device(page, device, page->details[device]);
}

/* What its driver calls it, platform, driver, whether it is tuned, from which file: a line below
 * it. */
static void put_details(const struct page *page, size_t device)
{
    const struct compare_device *about = &page->comparison->devices[device];
    const char *baseline = about->origin->baseline;
    const char *name = compare_driver_name(about);
    html_print(page->stream, "<small>%s%s%s%s%s%s%s%s%s%s</small>", about->selector,
               *name ? ", " : "", name, *about->platform ? ", " : "", about->platform,
               *about->driver ? ", " : "", about->driver, about->tuned ? ", tuned" : "",
               baseline ? ", from " : "", baseline ? compare_base_name(baseline) : "");
}

void page_legend(const struct page *page)
{
    fputs("<ul class=\"legend\">", page->stream);
    FOR_EACH_RUN(page, run)
    {
        if (run->times[COMPARE_WHOLE].count == 0)
            continue;
        fputs("<li>", page->stream);
        page_device(page, run->device);
        fputs("</li>", page->stream);
    }
    fputs("</ul>\n", page->stream);
}

void page_path(const struct page *page, const char *path)
{
    const size_t home = compare_home_length(path);
    if (home > 0)
        putc('~', page->stream);
    path += home;
    html_text(page->stream, path);
}

void page_origin(const struct page *page, const struct compare_origin *origin)
{
    for (const char *c = origin->date; *c; c++) /* "2026-01-31 12:00:00 UTC" */
        if (*c == 'T')
            putc(' ', page->stream);
        else if (*c == 'Z')
            fputs(" UTC", page->stream);
        else
            html_text(page->stream, (const char[]){*c, 0});
    html_print(page->stream, " &middot; %s",
               *origin->processor ? origin->processor : "unknown processor");
    fprintf(page->stream, ", %" PRIu64 " processor%s, %s &middot; ", origin->processors,
            origin->processors == 1 ? "" : "s", HTML_BYTES(origin->memory_bytes));
    html_print(page->stream, "%s &middot; healcl %s%s%s%s", origin->system, origin->healcl,
               *origin->commit ? " (" : "", origin->commit, *origin->commit ? ")" : "");
}

/* ---------------------------------------------------------------- runs */

size_t page_timed_runs(const struct page *page)
{
    size_t count = 0;
    FOR_EACH_RUN(page, run) count += run->times[COMPARE_WHOLE].count > 0;
    return count;
}

/* Red is what a device does wrong, and nothing else. */
void page_verdict(const struct page *page, const struct compare_run *run)
{
    char text[OUTCOME_TEXT_SIZE];
    const char *class = run->fault == COMPARE_DEVICE_FAULT ? "bad"
                        : run->outcome == COMPARE_VERIFIED ? "good"
                                                           : "warn";
    fprintf(page->stream, "<span class=\"verdict %s\">%s&nbsp;", class,
            run->fault == COMPARE_DEVICE_FAULT ? "&#10007;"
            : run->outcome == COMPARE_VERIFIED ? "&#10003;"
                                               : "&ndash;");
    html_print(page->stream, "%s</span>", compare_outcome_text(page->comparison, run, text));
}

void page_column_head(const struct page *page, const struct column *column)
{
    fputs("<th scope=\"col\" class=\"n\"", page->stream);
    if (column->meaning)
        html_print(page->stream, " title=\"%s\"", column->meaning);
    fprintf(page->stream, ">%s</th>", column->heading);
}

static void put_head(const struct page *page, unsigned place)
{
    FOR_EACH_SHOWN(column, page->comparison, place)
    {
        page_column_head(page, column);
    }
}

void page_value(const struct page *page, const struct column *column,
                const struct column_value *value)
{
    FILE *stream = page->stream;
    switch (column->kind) {
    case COLUMN_TEXT: html_text(stream, value->text); break;
    case COLUMN_FLAG: fputs(value->number ? "yes" : "no", stream); break;
    case COLUMN_COUNT: fprintf(stream, "%" PRIu64, value->number); break;
    case COLUMN_HUNDREDTHS: fprintf(stream, "%.2f", (double)value->number / 100); break;
    case COLUMN_TIME: fputs(HTML_TIME(value->number), stream); break;
    case COLUMN_BYTES: fputs(HTML_BYTES(value->number), stream); break;
    case COLUMN_DECIMAL: fprintf(stream, "%.*f", column->decimals, value->factor); break;
    case COLUMN_FACTOR: fprintf(stream, "%s&times;", TEXT_FACTOR(value->factor)); break;
    case COLUMN_RATE: fputs(TEXT_FACTOR(value->factor), stream); break;
    case COLUMN_SPREAD: fprintf(stream, "&plusmn;%.1f&#8239;%%", value->factor); break;
    case COLUMN_SHARE: fprintf(stream, "%.3g&#8239;%%", share_shown(value->factor)); break;
    }
    fputs(column->unit ? column->unit : "", stream);
}

/* The value itself, for scripts of who reads the page. */
static void put_data(FILE *stream, const struct column *column, const struct column_value *value,
                     bool known)
{
    if (column->kind == COLUMN_TIME)
        fprintf(stream, " data-ns=\"%" PRIu64 "\"", known ? value->number : 0);
    else if (column->kind == COLUMN_BYTES)
        fprintf(stream, " data-bytes=\"%" PRIu64 "\"", value->number);
    else if (column->kind == COLUMN_FACTOR && known)
        fprintf(stream, " data-factor=\"%.8g\"", value->factor);
}

void page_cell(const struct page *page, const struct column_table *table,
               const struct column *column, const void *context, const void *record)
{
    FILE *stream = page->stream;
    struct column_value value;
    char note[UNIT_TEXT_SIZE] = "";
    const bool known = column_is_known(table, column, context, record, &value);
    fprintf(stream, "<td class=\"n\" data-label=\"%s\"", column->heading);
    put_data(stream, column, &value, known);
    putc('>', stream);
    if (known)
        page_value(page, column, &value);
    if (column->note && known)
        column->note(context, record, note);
    if (*note)
        fprintf(stream, " <small>%s</small>", note);
    fputs(known ? "</td>" : "&ndash;</td>", stream);
}

static void put_cells(const struct page *page, const struct compare_run *run, unsigned place)
{
    FOR_EACH_SHOWN(column, page->comparison, place)
    {
        page_cell(page, &compare_run_columns, column, page->comparison, run);
    }
}

void page_runs(const struct page *page, unsigned place)
{
    const bool has_verdicts = place == IN_VERDICTS;
    FILE *stream = page->stream;
    fprintf(stream, "<div class=\"scroll\"><table class=\"%s\">",
            has_verdicts ? "verdicts" : "costs");
    fprintf(stream, "<thead><tr><th scope=\"col\">Device</th>%s",
            has_verdicts ? "<th scope=\"col\">Verdict</th>" : "");
    put_head(page, place);
    fputs("</tr></thead><tbody>\n", stream);
    FOR_EACH_RUN(page, run)
    {
        fputs("<tr><th scope=\"row\">", stream);
        if (has_verdicts) {
            page_device_name(page, run->device);
            put_details(page, run->device);
            fprintf(stream, "</th><td class=\"v\" data-outcome=\"%s\">",
                    compare_outcome_name(run->outcome));
            page_verdict(page, run);
            fputs("</td>", stream);
        } else {
            page_device(page, run->device);
            fputs("</th>", stream);
        }
        put_cells(page, run, place);
        fputs("</tr>\n", stream);
    }
    fputs("</tbody></table></div>\n", stream);
}

/* ---------------------------------------------------------------- charts */

void page_table_begin(const struct page *page)
{
    fputs("<details><summary>As a table</summary><div class=\"scroll\"><table>\n", page->stream);
}

void page_table_end(const struct page *page)
{
    fputs("</tbody></table></div></details>\n", page->stream);
}

struct chart page_chart(const struct page *page, enum chart_unit unit, const char *title,
                        const char *description)
{
    return (struct chart){
        .stream = page->stream, .unit = unit, .title = title, .description = description};
}

void page_chart_end(const struct page *page, struct chart *chart)
{
    *page->no_memory |= chart_end(chart) != HEALCL_OK;
}

void page_chart_row(const struct page *page, struct chart *chart, size_t device, const char *note)
{
    const struct compare_device *about = &page->comparison->devices[device];
    char name[LABEL_SIZE];
    snprintf(name, sizeof name, "%s%.490s", about->origin->baseline ? "(baseline) " : "",
             compare_device_name(about));
    chart_row(chart, name, page->details[device], note);
}
