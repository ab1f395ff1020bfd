/* The top of a comparison's page: what it comes to, the contents, all transcripts at a glance. */
#include <inttypes.h>
#include <string.h>

#include "compare/html.h"
#include "compare/page.h"
#include "report/text.h"

/* Embedded: src/compare/page.css and .svg. */
extern const char healcl_compare_page_css[], healcl_compare_page_svg[];

/* ---------------------------------------------------------------- the lead */

/* Whether a result was verified here and now, or is wrong by a device's fault. */
static bool any_verified(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->run_count; i++) {
        const struct compare_run *run = &comparison->runs[i];
        if (!comparison->devices[run->device].origin->baseline &&
            (run->outcome == COMPARE_VERIFIED ||
             (run->outcome == COMPARE_DIFFERENT && run->fault == COMPARE_DEVICE_FAULT)))
            return true;
    }
    return false;
}

static void put_devices_at_fault(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    size_t right = 0, count = compare_own_devices(comparison);
    for (size_t i = 0; i < count; i++)
        right += !comparison->devices[i].at_fault;
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
}

/* Whether a transcript is at fault here and now, in that way. */
static bool is_at_fault(const struct comparison *comparison, size_t transcript,
                        enum compare_outcome how)
{
    for (size_t j = 0; j < compare_own_devices(comparison); j++) {
        const struct compare_run *run = compare_find(comparison, transcript, j);
        if (run && run->outcome == how && run->fault == COMPARE_TRANSCRIPT_FAULT)
            return true;
    }
    return false;
}

static void put_transcripts_at_fault(const struct page *page, enum compare_outcome how,
                                     const char *one, const char *several)
{
    const struct comparison *comparison = page->comparison;
    size_t count = 0, last = 0;
    for (size_t i = 0; i < comparison->transcript_count; i++)
        if (is_at_fault(comparison, i, how)) {
            last = i;
            count++;
        }
    if (count == 0)
        return;
    putc(' ', page->stream);
    if (comparison->transcript_count == 1)
        fputs("The transcript", page->stream);
    else if (count == 1)
        html_text(page->stream, compare_base_name(comparison->transcripts[last].file));
    else
        fprintf(page->stream, "%zu transcripts", count);
    fprintf(page->stream, " %s.", count == 1 ? one : several);
}

/* "recognizer.json and digits.json", or how many. */
static void put_counting_transcripts(const struct page *page)
{
    enum { NAMED_MAX = 3 };
    const struct comparison *comparison = page->comparison;
    size_t told = 0, count = comparison->counting_count;
    if (count > NAMED_MAX && count == comparison->transcript_count) {
        fprintf(page->stream, "all %zu transcripts", count);
    } else if (count > NAMED_MAX) {
        fprintf(page->stream, "%zu of %zu transcripts", count, comparison->transcript_count);
    } else {
        for (size_t i = 0; i < comparison->transcript_count; i++) {
            if (!comparison->transcripts[i].counts)
                continue;
            told++;
            html_print(page->stream, "%s%s",
                       told == 1       ? ""
                       : told == count ? " and "
                                       : ", ",
                       compare_base_name(comparison->transcripts[i].file));
        }
    }
}

/* "1.09 (digits.json)" */
static void put_extreme(const struct page *page, double factor, size_t transcript)
{
    char text[UNIT_TEXT_SIZE];
    html_print(page->stream, "%s (%s)", text_factor(factor, text),
               compare_base_name(page->comparison->transcripts[transcript].file));
}

static void put_fastest(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    size_t best = compare_fastest(comparison);
    char text[UNIT_TEXT_SIZE];
    if (compare_own_devices(comparison) < 2 || best == comparison->device_count)
        return;
    const struct compare_mean *mean = &comparison->devices[best].mean;
    html_print(page->stream, " The fastest is %s", page->labels[best]);
    if (best != comparison->base)
        html_print(page->stream, ", %s times as fast as %s", text_factor(mean->factor, text),
                   page->labels[comparison->base]);
    if (comparison->transcript_count > 1) {
        fputs(best == comparison->base         ? ", by the geometric mean over "
              : comparison->counting_count > 1 ? ": the geometric mean over "
                                               : " on ",
              page->stream);
        put_counting_transcripts(page);
    }
    if (best != comparison->base && comparison->counting_count > 1) {
        fputs(", from ", page->stream);
        put_extreme(page, mean->least, mean->least_at);
        fputs(" to ", page->stream);
        put_extreme(page, mean->most, mean->most_at);
    }
    putc('.', page->stream);
}

static void put_lead(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    size_t saved = comparison->device_count - compare_own_devices(comparison);
    fputs("<p class=\"lead\">", page->stream);
    put_devices_at_fault(page);
    put_transcripts_at_fault(page, COMPARE_REFUSED, "is refused", "are refused");
    put_transcripts_at_fault(page, COMPARE_DIFFERENT,
                             "expects other values than the host reference computes",
                             "expect other values than the host reference computes");
    put_fastest(page);
    if (saved > 0)
        fprintf(page->stream, " Beside them stand%s %zu of saved runs.", saved == 1 ? "s" : "",
                saved);
    fputs("</p>\n", page->stream);
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

static bool has_means(const struct comparison *comparison)
{
    return comparison->transcript_count > 1 && comparison->device_count > 1 &&
           comparison->base < comparison->device_count;
}

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
    bool segments = false, kinds = false, bandwidth = false, first = false, compared = false;
    struct compare_speedup speedup;
    FOR_EACH_RUN(page, run)
    {
        const struct compare_device *device = &page->comparison->devices[run->device];
        segments |= takes_time(run->segments, run->segment_count);
        kinds |= takes_time(run->operations, run->operation_count);
        for (size_t i = 0; i < run->operation_count; i++)
            bandwidth |= device->copied_bytes > 0 && run->operations[i].nanoseconds > 0 &&
                         run->operations[i].bytes > 0;
        first |= run->cold.nanoseconds > 0 || run->warm.nanoseconds > 0;
        compared |= run != compare_reference(page->comparison, page->transcript) &&
                    compare_speedup_of(page->comparison, run, &speedup);
    }
    put_link(page, true, "t0", "Verdicts");
    put_link(page, page_timed_runs(page) > 0, "time0", "Time of a run");
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
    put_link(page, has_means(comparison), "means", "Speed-up");
    if (comparison->transcript_count == 1)
        put_part_links(page);
    for (size_t i = 0; i < comparison->transcript_count && comparison->transcript_count > 1; i++) {
        snprintf(id, sizeof id, "t%zu", i);
        put_link(page, true, id, compare_base_name(comparison->transcripts[i].file));
    }
    put_link(page, true, "devices", "Devices");
    put_link(page, true, "commands", "To repeat it");
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

/* Verdicts and medians of all transcripts, where there are several. */
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
            char text[HTML_UNIT_SIZE];
            fputs(run ? "<td>" : "<td>&ndash;", stream);
            if (run)
                page_verdict(page, run);
            if (run && compare_times_of(run, &times))
                fprintf(stream, "<small>%s</small>", html_time(times.median, text));
            fputs("</td>", stream);
        }
        fputs("</tr>\n", stream);
    }
    fputs("</tbody></table></div></section>\n", stream);
}

static void put_factor_cell(const struct page *page, const char *class, double factor)
{
    char text[UNIT_TEXT_SIZE];
    fprintf(page->stream, "<td class=\"%s\"", class);
    if (factor > 0)
        fprintf(page->stream, " data-factor=\"%.8g\">%s&times;</td>", factor,
                text_factor(factor, text));
    else
        fputs(">&ndash;</td>", page->stream);
}

/* Speed-ups of all transcripts, and what they come to. */
static void put_means(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    FILE *stream = page->stream;
    if (!has_means(comparison))
        return;
    html_print(stream,
               "<section id=\"means\"><h2>Speed-up</h2><p class=\"note\">How many times as fast as "
               "%s. The geometric mean is over ",
               page->labels[comparison->base]);
    put_counting_transcripts(page);
    fputs(comparison->counting_count < comparison->transcript_count
              ? ": those that all devices have run right, but for devices that failed.</p>"
              : ".</p>",
          stream);
    fputs("<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Device</th><th scope=\"col\" "
          "class=\"n mean\">Geometric mean</th>",
          stream);
    for (size_t i = 0; i < comparison->transcript_count; i++)
        html_print(stream, "<th scope=\"col\" class=\"n\"><a href=\"#t%zu\">%s</a></th>", i,
                   compare_base_name(comparison->transcripts[i].file));
    fputs("</tr></thead><tbody>\n", stream);
    for (size_t j = 0; j < comparison->device_count; j++) {
        fputs("<tr><th scope=\"row\">", stream);
        page_device(page, j);
        fputs("</th>", stream);
        put_factor_cell(page, "n mean", comparison->devices[j].mean.factor);
        for (size_t i = 0; i < comparison->transcript_count; i++) {
            double factor = 0;
            put_factor_cell(page, "n", compare_mean_part(comparison, i, j, &factor) ? factor : 0);
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
