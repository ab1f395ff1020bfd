/* A comparison as one page of HTML that needs nothing else. */
#include "compare/html.h"
#include "compare/page.h"

static void put_verdicts(const struct page *page)
{
    page_runs(page, IN_VERDICTS);
    if (page->comparison->repeat < P95_SAMPLES)
        fprintf(
            page->stream,
            "<p class=\"note\">p95 takes %d runs at least, p99 %d (<code>--repeat</code>).</p>\n",
            P95_SAMPLES, P99_SAMPLES);
    else if (page->comparison->repeat < P99_SAMPLES)
        fprintf(page->stream,
                "<p class=\"note\">p99 takes %d runs at least (<code>--repeat</code>).</p>\n",
                P99_SAMPLES);
}

static void put_problems(const struct page *page)
{
    FOR_EACH_RUN(page, run)
    {
        if (!*run->message && run->difference_count == 0)
            continue;
        fprintf(page->stream, "<div class=\"problem %s\"><p>",
                run->fault == COMPARE_DEVICE_FAULT ? "bad" : "warn");
        page_device(page, run->device);
        bool expects_other =
            run->outcome == COMPARE_DIFFERENT && run->fault == COMPARE_TRANSCRIPT_FAULT;
        html_print(page->stream, ": %s%s</p>", run->message,
                   expects_other
                       ? "the transcript expects other values than the host reference computes"
                       : "");
        fputs(run->difference_count > 0 ? "<pre>" : "", page->stream);
        for (size_t i = 0; i < run->difference_count; i++)
            html_print(page->stream, "%s\n", run->differences[i]);
        fputs(run->difference_count > 0 ? "</pre></div>\n" : "</div>\n", page->stream);
    }
}

/* ---------------------------------------------------------------- a transcript */

static void put_transcript(const struct page *page)
{
    const struct compare_transcript *transcript = &page->comparison->transcripts[page->transcript];
    html_print(page->stream, "<section id=\"t%zu\"><h2>%s</h2><p class=\"meta\">", page->transcript,
               page->comparison->transcript_count == 1 ? "Verdicts"
                                                       : compare_base_name(transcript->file));
    page_path(page, transcript->file);
    fprintf(page->stream, ", %s</p>\n", HTML_BYTES(transcript->bytes));
    if (transcript->too_small)
        fprintf(page->stream, "<p class=\"note\">%s</p>\n", compare_too_small);
    put_verdicts(page);
    put_problems(page);
    page_times(page);
    page_parts(page);
    page_process(page);
    fputs("</section>\n", page->stream);
}

enum healcl_status compare_print_html(const struct comparison *comparison, FILE *stream)
{
    bool no_memory = false;
    struct page page = {.stream = stream, .comparison = comparison, .no_memory = &no_memory};
    for (size_t i = 0; i < comparison->device_count; i++) {
        compare_device_label(comparison, i, page.labels[i]);
        compare_device_detail(comparison, i, false, page.details[i]);
    }
    page_top(&page);
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        page.transcript = i;
        put_transcript(&page);
    }
    page_ranks(&page);
    page_end(&page);
    return no_memory ? HEALCL_NO_MEMORY : HEALCL_OK;
}
