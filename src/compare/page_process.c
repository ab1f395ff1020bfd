/* What a process takes until its first result, and until its end. */
#include <inttypes.h>

#include "compare/html.h"
#include "compare/page.h"

static void put_first_results(const struct page *page)
{
    bool any = false;
    FOR_EACH_RUN(page, run) any |= run->cold.nanoseconds > 0 || run->warm.nanoseconds > 0;
    if (!any)
        return;
    fprintf(
        page->stream,
        "<div class=\"part\"><h3 id=\"first%zu\">Time to the first result</h3><p "
        "class=\"note\">From the start of a process until its first run is verified: start-up, "
        "reading, building kernels, and that run. Cold: with empty caches, healcl&#39;s and the "
        "driver&#39;s, so that the device passes its self-test and all kernels are built. Warm: "
        "once more, with the caches that this left, and where the driver keeps nothing itself with "
        "the binaries that healcl keeps once building has cost enough.</p></div>",
        page->transcript);
    page_runs(page, IN_FIRST);
}

/* ---------------------------------------------------------------- the whole process */

static const char *const phase_names[CHART_PHASES] = {
    "start-up of the driver", "reading the file", "building kernels and warming up",
    "runs, those that time operations, and requests", "comparing results, and the rest"};

static void phases_of(const struct compare_run *run, uint64_t phases[CHART_PHASES])
{
    uint64_t runs = 0;
    for (size_t i = 0; i < run->times[COMPARE_WHOLE].count; i++)
        runs += run->times[COMPARE_WHOLE].of[i];
    for (size_t i = 0; i < run->times[COMPARE_STEADY].count; i++)
        runs += run->times[COMPARE_STEADY].of[i];
    for (size_t i = 0; i < run->profiled_count; i++)
        runs += run->profiled[i];
    phases[0] = run->open_device_nanoseconds;
    phases[1] = run->open_transcript_nanoseconds;
    phases[2] = run->compile_nanoseconds + run->warm_up_nanoseconds;
    phases[3] = runs;
    uint64_t known = phases[0] + phases[1] + phases[2] + phases[3];
    phases[4] = run->process_nanoseconds > known ? run->process_nanoseconds - known : 0;
}

static void put_phase_legend(const struct page *page)
{
    fputs("<ul class=\"legend\">", page->stream);
    for (unsigned i = 0; i < CHART_PHASES; i++)
        fprintf(page->stream,
                "<li><svg class=\"swatch phase\" aria-hidden=\"true\"><rect width=\"22\" "
                "height=\"12\" fill=\"url(#q%u)\" stroke=\"currentColor\"/></svg>%s</li>",
                i, phase_names[i]);
    fputs("</ul>\n", page->stream);
}

static void put_process_chart(const struct page *page)
{
    struct chart chart = page_chart(page, CHART_TIME, "What each process spent its time on",
                                    "A bar for each device, divided into phases. The table below "
                                    "has the figures.");
    FOR_EACH_RUN(page, run) chart_reach(&chart, (double)run->process_nanoseconds);
    fprintf(
        page->stream,
        "<div class=\"part\"><h3 id=\"process%zu\">The whole process</h3><p class=\"note\">From "
        "its start to its end, with %" PRIu32 " run%s, by the comparing process&#39;s clock, and "
        "with the caches as they were: the table tells how many programs of kernels came out of "
        "healcl&#39;s.</p>",
        page->transcript, page->comparison->repeat, page->comparison->repeat == 1 ? "" : "s");
    put_phase_legend(page);
    chart_begin(&chart);
    FOR_EACH_RUN(page, run)
    {
        uint64_t phases[CHART_PHASES], begin = 0;
        phases_of(run, phases);
        page_chart_row(page, &chart, run->device, HTML_TIME(run->process_nanoseconds));
        for (unsigned i = 0; i < CHART_PHASES; i++) {
            if (phases[i] > 0)
                chart_phase(&chart, i, (double)begin, (double)(begin + phases[i]));
            begin += phases[i];
        }
    }
    page_chart_end(page, &chart);
}

void page_process(const struct page *page)
{
    put_first_results(page);
    put_process_chart(page);
    page_runs(page, IN_COSTS);
}
