/* The end of a comparison's page: the devices, how to repeat it, and what figures mean. */
#include <inttypes.h>
#include <string.h>

#include "compare/html.h"
#include "compare/page.h"

/* ---------------------------------------------------------------- devices */

static void put_fact(const struct page *page, const char *name, const char *value)
{
    if (*value)
        html_print(page->stream, "<dt>%s</dt><dd>%s</dd>", name, value);
}

static void put_card(const struct page *page, size_t device)
{
    const struct compare_device *about = &page->comparison->devices[device];
    char text[LABEL_SIZE];
    fputs("<article class=\"card\"><h3>", page->stream);
    page_device_name(page, device);
    fputs("</h3><dl>", page->stream);
    FOR_EACH_COLUMN(column, &compare_device_columns, IN_CARD)
    {
        struct column_value value;
        if (!column_value(&compare_device_columns, column, NULL, about, &value) ||
            (value.number == 0 && !*value.text))
            continue;
        html_print(page->stream, "<dt>%s</dt><dd>", column->heading);
        page_value(page, column, &value);
        fputs("</dd>", page->stream);
    }
    if (about->check.done)
        put_fact(page, "Check", compare_check_text(&about->check, text));
    fputs("</dl>", page->stream);
    if (about->origin->baseline) {
        fputs("<p class=\"note\">Baseline ", page->stream);
        page_path(page, about->origin->baseline);
        fputs(": ", page->stream);
        page_origin(page, about->origin);
        fputs("</p>", page->stream);
    }
    fputs("</article>\n", page->stream);
}

/* ---------------------------------------------------------------- commands */

/* The first run with that command, or NULL: a device may be named twice. */
static const struct compare_run *first_with(const struct comparison *comparison,
                                            const char *command)
{
    for (size_t i = 0; i < comparison->run_count; i++)
        if (strcmp(comparison->runs[i].command, command) == 0)
            return &comparison->runs[i];
    return NULL;
}

/* A command without the environment, which stands above them all. */
static void put_command(const struct page *page, const char *command)
{
    const char *environment = page->comparison->environment;
    size_t length = strlen(environment);
    if (length > 0 && strncmp(command, environment, length) == 0 && command[length] == ' ')
        command += length + 1;
    html_print(page->stream, "%s\n", command);
}

static void put_commands(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    fputs("<section id=\"commands\"><h2>To repeat it</h2>\n<pre>", page->stream);
    if (*comparison->environment)
        html_print(page->stream, "export %s\n", comparison->environment);
    put_command(page, comparison->command);
    fputs("# its runs alone\n", page->stream);
    for (size_t i = 0; i < comparison->run_count; i++) {
        const struct compare_run *run = &comparison->runs[i];
        /* Commands out of a saved file are not for people to copy. */
        if (compare_is_own(comparison, run) && first_with(comparison, run->command) == run)
            put_command(page, run->command);
    }
    fputs("</pre></section>", page->stream);
}

/* ---------------------------------------------------------------- where, and how to read it */

static void put_machine(const struct page *page)
{
    const struct compare_origin *origin = &page->comparison->origin;
    FILE *stream = page->stream;
    fputs("<section id=\"machine\"><h2>Where it was measured</h2><dl>", stream);
    put_fact(page, "Processor", origin->processor);
    put_fact(page, "Its model", origin->model);
    if (origin->processors > 0)
        fprintf(stream, "<dt>Processors</dt><dd>%" PRIu64 "</dd>", origin->processors);
    put_fact(page, "Governor", *origin->governor ? origin->governor : "unknown");
    fprintf(stream, "<dt>Load</dt><dd>%.2f before the runs, %.2f at their end</dd>",
            (double)origin->load_before / 100, (double)origin->load_after / 100);
    if (origin->memory_bytes > 0)
        fprintf(stream, "<dt>Memory</dt><dd>%s</dd>", HTML_BYTES(origin->memory_bytes));
    put_fact(page, "System", origin->system);
    put_fact(page, "Date", origin->date);
    put_fact(page, "healcl", origin->healcl);
    put_fact(page, "Commit", *origin->commit ? origin->commit : "unknown");
    put_fact(page, "Its compiler", healcl_compiler);
    fputs("</dl></section>\n", stream);
}

static void put_reading(const struct page *page)
{
    fprintf(
        page->stream,
        "<section id=\"reading\"><h2>How to read this</h2><ol class=\"reading\">\n"
        "<li><b>Verdicts come first.</b> Each result is compared bit for bit with the one that "
        "the transcript expects. A red cross is a device&#39;s fault.</li>\n"
        "<li><b>Times</b> are medians of %" PRIu32 " run%s in a process of its own, by the "
        "host&#39;s CLOCK_MONOTONIC. A whole run is decoding, transfers and compute, without "
        "building kernels and comparing results. A steady request keeps all but live inputs on the "
        "device; inferences/s is 1 over it. A millisecond (ms) is 1000 microseconds (&micro;s), a "
        "MB is 1000&#8239;000 bytes.</li>\n"
        "<li><b>A spread</b> is half the distance of the quartiles, in percent of the median. "
        "Above %d&#8239;%% it is a warning. Where the quartiles of two devices overlap there is no "
        "difference between them, and below 0.1&#8239;ms of compute no device is told from "
        "another.</li>\n"
        "<li><b>A speed-up</b> of 2&times; takes half the time of the first device. Means are "
        "geometric. A wrong result has no speed-up.</li>\n"
        "<li><b>Of its rates</b> is the share of the compute time that the "
        "device&#39;s own measured rates allow: copies in memory, and products, butterflies and "
        "digits in cache. What caches make faster than that is told as 100&#8239;%% with the word "
        "caches.</li>\n</ol></section>\n",
        page->comparison->repeat, page->comparison->repeat == 1 ? "" : "s", COMPARE_SPREAD_MAX);
}

void page_end(const struct page *page)
{
    const struct comparison *comparison = page->comparison;
    fputs("<section id=\"devices\"><h2>Devices</h2><div class=\"cards\">\n", page->stream);
    for (size_t i = 0; i < comparison->device_count; i++)
        put_card(page, i);
    fputs("</div></section>\n", page->stream);
    put_commands(page);
    put_machine(page);
    put_reading(page);
    fputs("</main>\n</body></html>\n", page->stream);
}
