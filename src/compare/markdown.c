/* A comparison as Markdown, for issues and pull requests. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "compare/columns.h"

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

static void put_device(const struct comparison *comparison, size_t index, FILE *stream)
{
    const struct compare_device *device = &comparison->devices[index];
    put_text(stream, compare_device_name(device));
    if (*device->platform) {
        fputs(", ", stream);
        put_text(stream, device->platform);
        putc(' ', stream);
        put_text(stream, device->driver);
    }
    if (device->emulator)
        fputs(", emulator", stream);
    if (device->tuned)
        fputs(", tuned", stream);
    if (device->origin->baseline)
        fputs(" (baseline)", stream);
}

static void put_row(const struct comparison *comparison, const struct compare_run *run,
                    FILE *stream)
{
    char outcome[OUTCOME_TEXT_SIZE], text[COLUMN_TEXT_SIZE];
    fputs("| ", stream);
    put_device(comparison, run->device, stream);
    fputs(" | ", stream);
    put_text(stream, compare_outcome_text(comparison, run, outcome));
    FOR_EACH_SHOWN(column, comparison, IN_MARKDOWN)
    {
        fputs(" | ", stream);
        compare_column_text(column, comparison, run, true, text);
        if (column->kind == COLUMN_TEXT)
            put_text(stream, text);
        else
            fputs(text, stream);
    }
    fputs(" |\n", stream);
}

static void put_heading(const struct comparison *comparison, FILE *stream)
{
    fputs("\n\n| Device | Verdict |", stream);
    FOR_EACH_SHOWN(column, comparison, IN_MARKDOWN)
    {
        fprintf(stream, " %s |", column->heading);
    }
    fputs("\n|---|---|", stream);
    FOR_EACH_SHOWN(column, comparison, IN_MARKDOWN)
    {
        fputs("--:|", stream);
    }
    putc('\n', stream);
}

/* Speed-ups in compute of all transcripts, a row for each device, and both means. */
static void put_means(const struct comparison *comparison, FILE *stream)
{
    struct compare_speedup speedup;
    if (!compare_has_means(comparison))
        return;
    fputs("\n### Speed-up\n\n| Device |", stream);
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        putc(' ', stream);
        put_text(stream, compare_base_name(comparison->transcripts[i].file));
        fputs(" |", stream);
    }
    fputs(" Mean, compute | Mean, steady request |\n|---|", stream);
    for (size_t i = 0; i < comparison->transcript_count; i++)
        fputs("--:|", stream);
    fputs("--:|--:|\n", stream);
    for (size_t j = 0; j < comparison->device_count; j++) {
        const struct compare_mean *means = comparison->devices[j].means;
        fputs("| ", stream);
        put_device(comparison, j, stream);
        for (size_t i = 0; i < comparison->transcript_count; i++)
            fprintf(stream, " | %s",
                    compare_mean_part(comparison, COMPARE_COMPUTE, i, j, comparison->base, &speedup)
                        ? TEXT_FACTOR(speedup.factor)
                        : "-");
        for (enum compare_figure i = 0; i < COMPARE_LEADING; i++)
            fprintf(stream, " | %s", means[i].factor > 0 ? TEXT_FACTOR(means[i].factor) : "-");
        fputs(" |\n", stream);
    }
}

static void put_messages(const struct comparison *comparison, size_t transcript, FILE *stream)
{
    FOR_EACH_RUN_OF(comparison, transcript, run)
    {
        const char *line = run->difference_count > 0 ? run->differences[0] : run->message;
        if (!*line)
            continue;
        fputs("- ", stream);
        put_device(comparison, run->device, stream);
        fputs("\\: ", stream);
        put_text(stream, line);
        putc('\n', stream);
    }
}

static void put_checks(const struct comparison *comparison, FILE *stream)
{
    char text[LABEL_SIZE];
    for (size_t j = 0; j < comparison->device_count; j++) {
        const struct compare_check *check = &comparison->devices[j].check;
        if (!check->done)
            continue;
        fputs("\n`healcl check` of ", stream);
        put_device(comparison, j, stream);
        fputs("\\: ", stream);
        put_text(stream, compare_check_text(check, text));
        fputs(".\n", stream);
    }
}

static void put_ranks_row(const struct compare_ranks *ranks, const struct compare_rank *rank,
                          FILE *stream)
{
    char text[COLUMN_TEXT_SIZE];
    putc('|', stream);
    FOR_EACH_OF_RANKS(column, ranks, IN_MARKDOWN)
    {
        putc(' ', stream);
        put_text(stream, column_text(&compare_rank_columns, column, ranks, rank, false, text));
        fputs(" |", stream);
    }
    putc('\n', stream);
}

static void put_ranks(const struct compare_ranks *ranks, FILE *stream)
{
    fprintf(stream, "\n### Ranks\n\nhealcl-mpi %s ", compare_ranks_command(ranks));
    put_text(stream, ranks->transcript);
    fputs(", in ", stream);
    put_text(stream, ranks->report);
    fputs(".\n\n|", stream);
    FOR_EACH_OF_RANKS(column, ranks, IN_MARKDOWN)
    {
        fprintf(stream, " %s |", column->heading);
    }
    fputs("\n|", stream);
    FOR_EACH_OF_RANKS(column, ranks, IN_MARKDOWN)
    {
        fputs(column->kind == COLUMN_TEXT ? "---|" : "--:|", stream);
    }
    putc('\n', stream);
    for (size_t i = 0; i < ranks->count; i++)
        put_ranks_row(ranks, &ranks->rows[i], stream);
}

static void put_meaning(const struct column *column, FILE *stream)
{
    if (column->meaning)
        fprintf(stream, "\n*%s*: %s.\n", column->heading, column->meaning);
}

/* What columns mean whose headings do not say it. */
static void put_meanings(const struct comparison *comparison, FILE *stream)
{
    FOR_EACH_SHOWN(column, comparison, IN_MARKDOWN)
    {
        put_meaning(column, stream);
    }
    FOR_EACH_OF_ALL_RANKS(column, comparison, IN_MARKDOWN)
    {
        put_meaning(column, stream);
    }
}

enum healcl_status compare_print_markdown(const struct comparison *comparison, FILE *stream)
{
    char *lead = compare_lead(comparison);
    if (!lead)
        return HEALCL_NO_MEMORY;
    put_text(stream, lead);
    free(lead);
    fputs("\n\n", stream);
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        fputs(i > 0 ? "\n### " : "### ", stream);
        put_text(stream, comparison->transcripts[i].file);
        if (comparison->transcripts[i].too_small)
            fprintf(stream, "\n\n%s", compare_too_small);
        put_heading(comparison, stream);
        FOR_EACH_RUN_OF(comparison, i, run) put_row(comparison, run, stream);
        putc('\n', stream);
        put_messages(comparison, i, stream);
    }
    put_means(comparison, stream);
    for (size_t i = 0; i < comparison->ranks_count; i++)
        put_ranks(&comparison->ranks[i], stream);
    put_checks(comparison, stream);
    put_meanings(comparison, stream);
    fprintf(stream, "\nMedians and quartiles of %" PRIu32 " runs each, healcl ",
            comparison->repeat);
    put_text(stream, comparison->origin.healcl);
    if (*comparison->origin.commit)
        fprintf(stream, " (%s)", comparison->origin.commit);
    fputs(", ", stream);
    put_text(stream, comparison->origin.processor);
    fputs(", ", stream);
    put_text(stream, comparison->origin.date);
    fputs(".\n\n    ", stream);
    fputs(comparison->command, stream);
    putc('\n', stream);
    return HEALCL_OK;
}
