/* A comparison, for a terminal. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

#include "compare/columns.h"
#include "report/table.h"

enum {
    COLUMNS_MAX = 2 + COMPARE_COLUMNS_MAX,
    HEADING_SIZE = 32,
    MEANING_SIZE = 256,
    PATH_TEXT_SIZE = 4200,
    NOTES_WIDTH = 100,
};

/* ---------------------------------------------------------------- runs */

static const char *low_heading(const struct column *column, char text[HEADING_SIZE])
{
    snprintf(text, HEADING_SIZE, "%s", column->heading);
    text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}

/* "0:1  PoCL 3.1 on AMD EPYC 9354" */
static void add_device(struct table *table, const struct comparison *comparison, size_t index)
{
    const struct compare_device *device = &comparison->devices[index];
    char detail[LABEL_SIZE];
    const char *name = compare_device_name(device);
    compare_device_detail(comparison, index, true, detail);
    table_cell(table, "%s%s%s%s%s%s%s", device->origin->baseline ? "(baseline) " : "",
               device->selector, name != device->selector ? "  " : "",
               name != device->selector ? name : "", *detail ? " (" : "", detail,
               *detail ? ")" : "");
}

static void add_row(struct table *table, const struct comparison *comparison,
                    const struct compare_run *run)
{
    char outcome[OUTCOME_TEXT_SIZE], text[COLUMN_TEXT_SIZE];
    add_device(table, comparison, run->device);
    table_cell(table, "%s", compare_outcome_text(comparison, run, outcome));
    FOR_EACH_SHOWN(column, comparison, IN_TERMINAL)
    {
        compare_column_text(column, comparison, run, column->places & NOTE_IN_TERMINAL, text);
        table_cell(table, "%s", text);
    }
}

/* A transcript is a line above its rows: paths are long. */
static void add_rows(struct table *table, const struct comparison *comparison, size_t transcript)
{
    char line[PATH_TEXT_SIZE];
    const struct compare_transcript *about = &comparison->transcripts[transcript];
    snprintf(line, sizeof line, "%s%s", about->file, about->too_small ? " (too small)" : "");
    if (comparison->transcript_count > 1)
        table_line(table, line);
    FOR_EACH_RUN_OF(comparison, transcript, run) add_row(table, comparison, run);
}

static enum healcl_status print_runs(const struct comparison *comparison, const struct style *style)
{
    struct table_column columns[COLUMNS_MAX] = {{"device", TABLE_LEFT, true},
                                                {"verdict", TABLE_LEFT, false}};
    char headings[COLUMNS_MAX][HEADING_SIZE];
    size_t count = 2;
    FOR_EACH_SHOWN(column, comparison, IN_TERMINAL)
    {
        const char *heading = low_heading(column, headings[count]);
        columns[count++] = (struct table_column){heading, TABLE_RIGHT, false};
    }
    struct table *table = table_create(columns, count);
    for (size_t i = 0; i < comparison->transcript_count; i++)
        add_rows(table, comparison, i);
    return table_print(table, style->stream, style->width);
}

/* ---------------------------------------------------------------- geometric means */

static void add_factor(struct table *table, double factor)
{
    table_cell(table, "%s", factor > 0 ? TEXT_FACTOR(factor) : "-");
}

/* Where there are several transcripts and devices: a row for each device. */
static enum healcl_status print_means(const struct comparison *comparison,
                                      const struct style *style)
{
    static const struct table_column columns[] = {
        {"speed-up", TABLE_LEFT, true}, {"compute", TABLE_RIGHT, false},
        {"least", TABLE_RIGHT, false},  {"most", TABLE_RIGHT, false},
        {"steady", TABLE_RIGHT, false}, {"least", TABLE_RIGHT, false},
        {"most", TABLE_RIGHT, false}};
    if (!compare_has_means(comparison))
        return HEALCL_OK;
    struct table *table = table_create(columns, sizeof columns / sizeof *columns);
    for (size_t j = 0; j < comparison->device_count; j++) {
        add_device(table, comparison, j);
        for (enum compare_figure i = 0; i < COMPARE_LEADING; i++) {
            const struct compare_mean *mean = &comparison->devices[j].means[i];
            add_factor(table, mean->factor);
            add_factor(table, mean->least);
            add_factor(table, mean->most);
        }
    }
    putc('\n', style->stream);
    TRY(table_print(table, style->stream, style->width));
    char label[LABEL_SIZE];
    fprintf(style->stream, "means: geometric ones over %zu of %zu transcripts; 1.00 is %s\n",
            comparison->counting_count, comparison->transcript_count,
            compare_device_label(comparison, comparison->base, label));
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- ranks */

static enum healcl_status print_ranks(const struct compare_ranks *ranks, const struct style *style)
{
    struct table_column columns[COLUMNS_MAX] = {{"", TABLE_LEFT, false}};
    char headings[COLUMNS_MAX][HEADING_SIZE], text[COLUMN_TEXT_SIZE];
    size_t count = 0;
    FOR_EACH_OF_RANKS(column, ranks, IN_TERMINAL)
    {
        const char *heading = low_heading(column, headings[count]);
        columns[count++] =
            (struct table_column){heading, column->kind == COLUMN_TEXT ? TABLE_LEFT : TABLE_RIGHT,
                                  column->places & SHRINKS};
    }
    struct table *table = table_create(columns, count);
    for (size_t i = 0; i < ranks->count; i++)
        FOR_EACH_OF_RANKS(column, ranks, IN_TERMINAL)
        {
            table_cell(
                table, "%s",
                column_text(&compare_rank_columns, column, ranks, &ranks->rows[i], false, text));
        }
    fprintf(style->stream, "\nranks       healcl-mpi %s %s, in %s\n\n",
            compare_ranks_command(ranks), ranks->transcript, ranks->report);
    return table_print(table, style->stream, style->width);
}

/* ---------------------------------------------------------------- notes */

static void print_problem(const struct comparison *comparison, const struct compare_run *run,
                          FILE *stream)
{
    const char *line = run->difference_count > 0 ? run->differences[0] : run->message;
    if (*line)
        fprintf(stream, "%s: %s: %s\n", comparison->transcripts[run->transcript].file,
                comparison->devices[run->device].selector, line);
}

static void print_device(const struct compare_device *device, FILE *stream)
{
    char text[LABEL_SIZE];
    const char *before = device->origin->baseline ? "(baseline) " : "";
    if (*compare_driver_name(device))
        fprintf(stream, "%s%s is %s of %s %s\n", before, device->selector, device->name,
                device->platform, device->driver);
    if (device->emulator)
        fprintf(stream, "%s%s is an emulator\n", before, device->selector);
    if (device->tuned)
        fprintf(stream, "%s%s is tuned\n", before, device->selector);
    if (device->copied_bytes > 0)
        fprintf(stream, "%s%s copies memory at %s/s\n", before, device->selector,
                TEXT_BYTES(device->copied_bytes));
    if (device->check.done)
        fprintf(stream, "%s%s check: %s\n", before, device->selector,
                compare_check_text(&device->check, text));
}

/* "of its rates: the share of ..." */
static void print_meaning(const struct column *column, FILE *stream)
{
    char heading[HEADING_SIZE], text[MEANING_SIZE];
    snprintf(text, sizeof text, "%s: %s", low_heading(column, heading), column->meaning);
    text_wrap(stream, text, 0, NOTES_WIDTH);
}

/* Below the tables: what they mean, what went wrong, and what is known of the devices. */
static void print_notes(const struct comparison *comparison, FILE *stream)
{
    FOR_EACH_SHOWN(column, comparison, IN_TERMINAL)
    {
        if (column->meaning)
            print_meaning(column, stream);
    }
    FOR_EACH_OF_ALL_RANKS(column, comparison, IN_TERMINAL)
    {
        if (column->meaning)
            print_meaning(column, stream);
    }
    bool any_is_small = false;
    for (size_t i = 0; i < comparison->transcript_count; i++)
        any_is_small |= comparison->transcripts[i].too_small;
    if (any_is_small)
        text_wrap(stream, compare_too_small, 0, NOTES_WIDTH);
    for (size_t i = 0; i < comparison->run_count; i++)
        print_problem(comparison, &comparison->runs[i], stream);
    for (size_t i = 0; i < comparison->device_count; i++)
        print_device(&comparison->devices[i], stream);
}

static enum healcl_status print_notes_apart(const struct comparison *comparison, FILE *stream)
{
    char *text = NULL;
    size_t size = 0;
    FILE *notes = open_memstream(&text, &size);
    if (!notes)
        return HEALCL_NO_MEMORY;
    print_notes(comparison, notes);
    bool written = fclose(notes) == 0;
    if (written && size > 0)
        fprintf(stream, "\n%s", text);
    free(text);
    return written ? HEALCL_OK : HEALCL_NO_MEMORY;
}

static enum healcl_status print_lead(const struct comparison *comparison, FILE *stream)
{
    char *lead = compare_lead(comparison);
    if (!lead)
        return HEALCL_NO_MEMORY;
    putc('\n', stream);
    text_wrap(stream, lead, 0, NOTES_WIDTH);
    free(lead);
    return HEALCL_OK;
}

enum healcl_status compare_print_table(const struct comparison *comparison,
                                       const struct style *style)
{
    if (comparison->transcript_count == 1)
        fprintf(style->stream, "transcript  %s\n", comparison->transcripts[0].file);
    fprintf(style->stream, "runs        %" PRIu32 " of each\n\n", comparison->repeat);
    TRY(print_runs(comparison, style));
    TRY(print_means(comparison, style));
    for (size_t i = 0; i < comparison->ranks_count; i++)
        TRY(print_ranks(&comparison->ranks[i], style));
    TRY(print_lead(comparison, style->stream));
    return print_notes_apart(comparison, style->stream);
}
