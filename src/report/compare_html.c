/* A comparison as one page of HTML that needs nothing else. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/compare_page.h"
#include "report/html.h"
#include "report/text.h"

/* Embedded: src/report/compare.css and .svg. */
extern const char healcl_report_compare_css[], healcl_report_compare_svg[];

/* ---------------------------------------------------------------- verdicts */

static void put_verdict(const struct page *page, const struct compare_run *run)
{
    char text[OUTCOME_TEXT_SIZE];
    bool right = compare_is_right(run);
    const char *class = run->outcome == COMPARE_VERIFIED     ? "good"
                        : run->outcome == COMPARE_UNVERIFIED ? "warn"
                                                             : "bad";
    fprintf(page->stream, "<span class=\"verdict %s\">%s&nbsp;", class,
            run->outcome == COMPARE_UNVERIFIED ? "&ndash;"
            : right                            ? "&#10003;"
                                               : "&#10007;");
    html_text(page->stream, compare_outcome_text(page->comparison, run, text));
    fputs("</span>", page->stream);
}

static void put_verdict_row(const struct page *page, const struct compare_run *run)
{
    FILE *stream = page->stream;
    struct compare_times times = {.median = 0};
    struct compare_speedup speedup;
    fputs("<tr><th scope=\"row\">", stream);
    page_device(page, run->device);
    page_device_details(page, run->device);
    fprintf(stream, "</th><td class=\"v\" data-outcome=\"%s\">",
            compare_outcome_name(run->outcome));
    put_verdict(page, run);
    char text[HTML_UNIT_SIZE], factor[UNIT_TEXT_SIZE], low[UNIT_TEXT_SIZE], high[UNIT_TEXT_SIZE];
    bool timed = compare_times_of(run, &times);
    fprintf(stream, "</td><td class=\"n\" data-label=\"Median\" data-ns=\"%" PRIu64 "\">%s</td>",
            times.median, timed ? html_time(times.median, text) : "&ndash;");
    fputs("<td class=\"n\" data-label=\"Spread\">", stream);
    if (timed && run->sample_count > 1)
        fprintf(stream, "&plusmn;%.1f&#8239;%%", compare_spread(&times));
    else
        fputs("&ndash;", stream);
    fputs("</td><td class=\"n\" data-label=\"Speed-up\"", stream);
    if (!compare_speedup_of(page->comparison, run, &speedup))
        fputs(">&ndash;", stream);
    else if (run == compare_reference(page->comparison, page->transcript))
        fputs(" data-factor=\"1\">1&times; <small>(reference)</small>", stream);
    else
        fprintf(stream, " data-factor=\"%.8g\">%s&times; <small>%s&ndash;%s</small>",
                speedup.factor, text_factor(speedup.factor, factor), text_factor(speedup.low, low),
                text_factor(speedup.high, high));
    fputs("</td></tr>\n", stream);
}

static void put_verdicts(const struct page *page)
{
    fputs(
        "<table class=\"verdicts\"><thead><tr><th scope=\"col\">Device</th><th "
        "scope=\"col\">Verdict</th><th scope=\"col\" class=\"n\">Median</th><th scope=\"col\" "
        "class=\"n\">Spread</th><th scope=\"col\" class=\"n\">Speed-up</th></tr></thead><tbody>\n",
        page->stream);
    FOR_EACH_RUN(page, run) put_verdict_row(page, run);
    fputs("</tbody></table>\n", page->stream);
}

static void put_problems(const struct page *page)
{
    FOR_EACH_RUN(page, run)
    {
        if (!*run->message && run->difference_count == 0)
            continue;
        fputs("<div class=\"problem\"><p>", page->stream);
        page_device(page, run->device);
        fputs(": ", page->stream);
        html_text(page->stream, run->message);
        fputs("</p>", page->stream);
        if (run->difference_count > 0)
            fputs("<pre>", page->stream);
        for (size_t i = 0; i < run->difference_count; i++) {
            html_text(page->stream, run->differences[i]);
            putc('\n', page->stream);
        }
        fputs(run->difference_count > 0 ? "</pre></div>\n" : "</div>\n", page->stream);
    }
}

/* ---------------------------------------------------------------- a transcript */

MUST_CHECK static enum healcl_status put_transcript(const struct page *page)
{
    const struct compare_transcript *transcript = &page->comparison->transcripts[page->transcript];
    char text[HTML_UNIT_SIZE];
    fprintf(page->stream, "<section id=\"t%zu\"><h2>", page->transcript);
    if (page->comparison->transcript_count == 1)
        fputs("Verdicts", page->stream);
    else
        html_text(page->stream, page_base_name(transcript->file));
    fputs("</h2><p class=\"meta\">", page->stream);
    html_text(page->stream, transcript->file);
    fprintf(page->stream, ", %s</p>\n", html_bytes(transcript->bytes, text));
    put_verdicts(page);
    put_problems(page);
    page_times(page);
    TRY(page_parts(page));
    page_process(page);
    fputs("</section>\n", page->stream);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- the top of the page */

static bool device_is_right(const struct comparison *comparison, size_t device)
{
    for (size_t i = 0; i < comparison->run_count; i++)
        if (comparison->runs[i].device == device && !compare_is_right(&comparison->runs[i]))
            return false;
    return true;
}

/* Whether a result was compared here and now. */
static bool any_verified(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->run_count; i++) {
        const struct compare_run *run = &comparison->runs[i];
        if (!comparison->devices[run->device].origin->baseline &&
            (run->outcome == COMPARE_VERIFIED || run->outcome == COMPARE_DIFFERENT))
            return true;
    }
    return false;
}

/* How many devices ran here and now. */
static size_t own_devices(const struct comparison *comparison)
{
    size_t count = 0;
    while (count < comparison->device_count && !comparison->devices[count].origin->baseline)
        count++;
    return count;
}

/* The device here whose speed-ups are the greatest, as a geometric mean over all transcripts,
 * *factor; device_count where none has them all. */
static size_t fastest(const struct comparison *comparison, double *factor)
{
    size_t best = comparison->device_count;
    *factor = 0;
    for (size_t j = 0; j < own_devices(comparison); j++) {
        double product = 1;
        size_t count = 0;
        for (size_t i = 0; i < comparison->transcript_count; i++) {
            const struct compare_run *run = compare_find(comparison, i, j);
            struct compare_speedup speedup;
            if (run && compare_speedup_of(comparison, run, &speedup)) {
                product *= pow(speedup.factor, 1.0 / (double)comparison->transcript_count);
                count++;
            }
        }
        if (count == comparison->transcript_count && product > *factor) {
            *factor = product;
            best = j;
        }
    }
    return best;
}

static void put_lead(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    size_t right = 0, count = own_devices(comparison);
    for (size_t i = 0; i < count; i++)
        right += device_is_right(comparison, i);
    fputs("<p class=\"lead\">", page->stream);
    if (right == count && !any_verified(comparison))
        fputs("Nothing was verified.", page->stream);
    else if (right > 0 && !any_verified(comparison))
        fprintf(page->stream, "Nothing was verified, and %zu of %zu devices failed.", count - right,
                count);
    else if (count == 1)
        fputs(right ? "The device is right in every result that was verified."
                    : "The device did not get it right.",
              page->stream);
    else if (right == 0)
        fprintf(page->stream, "None of %zu devices got everything right.", count);
    else if (right == count)
        fprintf(page->stream, "All %zu devices are right in every result that was verified.",
                count);
    else
        fprintf(page->stream, "%zu of %zu devices are right.", right, count);
    double factor;
    char label[LABEL_SIZE], text[UNIT_TEXT_SIZE];
    size_t best = fastest(comparison, &factor);
    if (count > 1 && best < count) {
        fputs(" The fastest is ", page->stream);
        html_text(page->stream, page_device_label(page, best, label));
        if (best > 0 && factor > 1) {
            fprintf(page->stream, ", %s times as fast as ", text_factor(factor, text));
            html_text(page->stream, page_device_name(&comparison->devices[0]));
        }
        fputs(".", page->stream);
    }
    if (comparison->device_count > count)
        fprintf(page->stream, " Beside them stand%s %zu of saved runs.",
                comparison->device_count == count + 1 ? "s" : "", comparison->device_count - count);
    fputs("</p>\n", page->stream);
}

static void put_origin(const struct page *page, const struct compare_origin *origin)
{
    char text[HTML_UNIT_SIZE];
    for (const char *c = origin->date; *c; c++) /* "2026-01-31 12:00:00 UTC" */
        if (*c == 'T')
            putc(' ', page->stream);
        else if (*c == 'Z')
            fputs(" UTC", page->stream);
        else
            html_text(page->stream, (const char[]){*c, 0});
    fputs(" &middot; ", page->stream);
    html_text(page->stream, *origin->processor ? origin->processor : "unknown processor");
    fprintf(page->stream, ", %" PRIu64 " processor%s, %s &middot; ", origin->processors,
            origin->processors == 1 ? "" : "s", html_bytes(origin->memory_bytes, text));
    html_text(page->stream, origin->system);
    fputs(" &middot; healcl ", page->stream);
    html_text(page->stream, origin->healcl);
}

static void put_title(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    if (comparison->transcript_count == 1)
        html_text(page->stream, page_base_name(comparison->transcripts[0].file));
    else
        fprintf(page->stream, "%zu transcripts", comparison->transcript_count);
    size_t count = own_devices(comparison);
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
            healcl_report_compare_css, healcl_report_compare_svg);
    fputs("<header><p class=\"eyebrow\">healcl compare</p><h1>", page->stream);
    put_title(page);
    fputs("</h1>\n", page->stream);
    put_lead(page);
    fputs("<p class=\"meta\">", page->stream);
    put_origin(page, &page->comparison->origin);
    fprintf(page->stream, " &middot; %" PRIu32 " run%s each</p></header>\n<main>\n",
            page->comparison->repeat, page->comparison->repeat == 1 ? "" : "s");
}

/* Verdicts and medians of all transcripts, where there are several. */
static void put_overview(struct page *page)
{
    const struct comparison *comparison = page->comparison;
    FILE *stream = page->stream;
    if (comparison->transcript_count < 2)
        return;
    fputs("<section><h2>Overview</h2><div class=\"scroll\"><table><thead><tr><th scope=\"col\">"
          "Transcript</th>",
          stream);
    for (size_t j = 0; j < comparison->device_count; j++) {
        fputs("<th scope=\"col\">", stream);
        page_device(page, j);
        fputs("</th>", stream);
    }
    fputs("</tr></thead><tbody>\n", stream);
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        fprintf(stream, "<tr><th scope=\"row\"><a href=\"#t%zu\">", i);
        html_text(stream, page_base_name(comparison->transcripts[i].file));
        fputs("</a></th>", stream);
        for (size_t j = 0; j < comparison->device_count; j++) {
            const struct compare_run *run = compare_find(comparison, i, j);
            struct compare_times times;
            char text[HTML_UNIT_SIZE];
            fputs(run ? "<td>" : "<td>&ndash;", stream);
            if (run)
                put_verdict(page, run);
            if (run && compare_times_of(run, &times))
                fprintf(stream, "<small>%s</small>", html_time(times.median, text));
            fputs("</td>", stream);
        }
        fputs("</tr>\n", stream);
    }
    fputs("</tbody></table></div></section>\n", stream);
}

/* ---------------------------------------------------------------- the end of the page */

static void put_fact(const struct page *page, const char *name, const char *value)
{
    if (!*value)
        return;
    fprintf(page->stream, "<dt>%s</dt><dd>", name);
    html_text(page->stream, value);
    fputs("</dd>", page->stream);
}

static void put_number_fact(const struct page *page, const char *name, uint64_t value,
                            const char *unit)
{
    if (value > 0)
        fprintf(page->stream, "<dt>%s</dt><dd>%" PRIu64 "%s</dd>", name, value, unit);
}

static void put_bytes_fact(const struct page *page, const char *name, uint64_t bytes,
                           const char *unit)
{
    char text[HTML_UNIT_SIZE];
    if (bytes > 0)
        fprintf(page->stream, "<dt>%s</dt><dd>%s%s</dd>", name, html_bytes(bytes, text), unit);
}

static void put_card(const struct page *page, size_t device)
{
    const struct compare_device *about = &page->comparison->devices[device];
    const double billion = 1e9;
    fputs("<article class=\"card\"><h3>", page->stream);
    page_device(page, device);
    fputs("</h3><dl>", page->stream);
    put_fact(page, "Selector", about->selector);
    put_fact(page, "Type", about->type);
    put_fact(page, "Platform", about->platform);
    put_fact(page, "Vendor", about->vendor);
    put_fact(page, "Driver", about->driver);
    put_fact(page, "Version", about->version);
    put_number_fact(page, "Compute units", about->compute_units, "");
    put_number_fact(page, "Clock", about->clock_mhz, "&#8239;MHz");
    put_bytes_fact(page, "Memory", about->global_memory, "");
    put_bytes_fact(page, "Largest buffer", about->max_allocation, "");
    put_bytes_fact(page, "Local memory", about->local_memory, "");
    put_number_fact(page, "Work-group", about->max_work_group_size, " work-items");
    put_bytes_fact(page, "Copies", about->copied_bytes, "/s");
    if (about->products > 0)
        fprintf(page->stream, "<dt>Products</dt><dd>%.3g&#8239;G/s of 64-bit integers</dd>",
                (double)about->products / billion);
    fputs("</dl>", page->stream);
    if (about->origin->baseline) {
        fputs("<p class=\"note\">Baseline ", page->stream);
        html_text(page->stream, about->origin->baseline);
        fputs(": ", page->stream);
        put_origin(page, about->origin);
        fputs("</p>", page->stream);
    }
    fputs("</article>\n", page->stream);
}

static void put_command(const struct page *page, const char *command)
{
    fputs("<pre>", page->stream);
    html_text(page->stream, command);
    fputs("</pre>\n", page->stream);
}

static void put_end(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    fputs("<section><h2>Devices</h2><div class=\"cards\">\n", page->stream);
    for (size_t i = 0; i < comparison->device_count; i++)
        put_card(page, i);
    fputs("</div></section>\n<section><h2>To repeat it</h2>\n", page->stream);
    put_command(page, comparison->command);
    fputs("<p class=\"note\">Each of its runs alone:</p>\n", page->stream);
    for (size_t i = 0; i < comparison->run_count; i++)
        if (!comparison->devices[comparison->runs[i].device].origin->baseline)
            put_command(page, comparison->runs[i].command);
    fputs("</section></main>\n<footer><p>Times are of the host&#39;s CLOCK_MONOTONIC. A run goes "
          "from its first command to its last result, with transfers, without building kernels and "
          "without comparing results. Median and quartiles are of the repetitions; the spread is "
          "half the distance of the quartiles, in percent of the median. A wrong result has no "
          "speed-up. Each run is a process of its own.</p></footer>\n</body></html>\n",
          page->stream);
}

enum healcl_status compare_print_html(const struct comparison *comparison, FILE *stream)
{
    struct page page = {.stream = stream, .comparison = comparison};
    put_head(&page);
    put_overview(&page);
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        page.transcript = i;
        TRY(put_transcript(&page));
    }
    put_end(&page);
    return HEALCL_OK;
}
