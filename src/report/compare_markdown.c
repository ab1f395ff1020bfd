/* A comparison as Markdown, for issues and pull requests. */
#include <inttypes.h>
#include <string.h>

#include "report/compare.h"
#include "report/text.h"

static void put_text(FILE *stream, const char *text)
{
    for (; *text; text++) {
        if (*text == '<' || *text == '>' || *text == '&') {
            fputs(*text == '<' ? "&lt;" : *text == '>' ? "&gt;" : "&amp;", stream);
            continue;
        }
        if (strchr("\\`*_{}[]()#+!|~@:", *text))
            putc('\\', stream);
        putc(*text, stream);
    }
}

static void put_device(const struct comparison *comparison, const struct compare_run *run,
                       FILE *stream)
{
    const struct compare_device *device = &comparison->devices[run->device];
    put_text(stream, *device->name ? device->name : device->selector);
    if (*device->platform) {
        fputs(", ", stream);
        put_text(stream, device->platform);
        putc(' ', stream);
        put_text(stream, device->driver);
    }
    if (device->origin->baseline)
        fputs(" (baseline)", stream);
}

static void put_row(const struct comparison *comparison, const struct compare_run *run,
                    FILE *stream)
{
    struct compare_times times;
    struct compare_speedup speedup;
    char outcome[OUTCOME_TEXT_SIZE], text[UNIT_TEXT_SIZE], low[UNIT_TEXT_SIZE];
    char high[UNIT_TEXT_SIZE];
    fputs("| ", stream);
    put_device(comparison, run, stream);
    fputs(" | ", stream);
    put_text(stream, compare_outcome_text(comparison, run, outcome));
    if (compare_times_of(run, &times))
        fprintf(stream, " | %s | %.1f %%", text_time(times.median, text), compare_spread(&times));
    else
        fputs(" | - | -", stream);
    if (compare_speedup_of(comparison, run, &speedup))
        fprintf(stream, " | %s | %s to %s |\n", text_factor(speedup.factor, text),
                text_factor(speedup.low, low), text_factor(speedup.high, high));
    else
        fputs(" | - | - |\n", stream);
}

static void put_messages(const struct comparison *comparison, size_t transcript, FILE *stream)
{
    for (size_t j = 0; j < comparison->device_count; j++) {
        const struct compare_run *run = compare_find(comparison, transcript, j);
        const char *line = !run                        ? ""
                           : run->difference_count > 0 ? run->differences[0]
                                                       : run->message;
        if (!*line)
            continue;
        fputs("- ", stream);
        put_device(comparison, run, stream);
        fputs("\\: ", stream);
        put_text(stream, line);
        putc('\n', stream);
    }
}

enum healcl_status compare_print_markdown(const struct comparison *comparison, FILE *stream)
{
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        fputs(i > 0 ? "\n### " : "### ", stream);
        put_text(stream, comparison->transcripts[i].file);
        fputs("\n\n| device | verdict | median | spread | speed-up | range |\n"
              "|---|---|--:|--:|--:|--:|\n",
              stream);
        for (size_t j = 0; j < comparison->device_count; j++) {
            const struct compare_run *run = compare_find(comparison, i, j);
            if (run)
                put_row(comparison, run, stream);
        }
        putc('\n', stream);
        put_messages(comparison, i, stream);
    }
    fprintf(stream, "\nMedians and quartiles of %" PRIu32 " runs each, healcl ",
            comparison->repeat);
    put_text(stream, comparison->origin.healcl);
    fputs(", ", stream);
    put_text(stream, comparison->origin.processor);
    fputs(", ", stream);
    put_text(stream, comparison->origin.date);
    fputs(".\n\n    ", stream);
    fputs(comparison->command, stream);
    putc('\n', stream);
    return HEALCL_OK;
}
