/* A comparison, for a terminal. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

#include "compare/columns.h"
#include "report/table.h"

enum {
    COLUMNS_MAX = 3 + COMPARE_COLUMNS_MAX,
    HEADING_SIZE = 32,
    MEANING_SIZE = 256,
    NOTES_WIDTH = 100,
};

/* ---------------------------------------------------------------- runs */

static const char *low_heading(const struct compare_column *column, char text[HEADING_SIZE])
{
    snprintf(text, HEADING_SIZE, "%s", column->heading);
    text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}

/* "0:1  AMD EPYC 9R14 (Intel(R) OpenCL)" */
static void add_device(struct table *table, const struct comparison *comparison, size_t index)
{
    const struct compare_device *device = &comparison->devices[index];
    char detail[LABEL_SIZE];
    compare_device_detail(comparison, index, true, detail);
    table_cell(table, "%s%s%s%s%s%s%s", device->origin->baseline ? "(baseline) " : "",
               device->selector, *device->name ? "  " : "", device->name, *detail ? " (" : "",
               detail, *detail ? ")" : "");
}

/* first: whether the transcript is named in this row. */
static void add_row(struct table *table, const struct comparison *comparison,
                    const struct compare_run *run, bool first)
{
    char outcome[OUTCOME_TEXT_SIZE], text[COLUMN_TEXT_SIZE];
    if (comparison->transcript_count > 1)
        table_cell(table, "%s", first ? comparison->transcripts[run->transcript].file : "");
    add_device(table, comparison, run->device);
    table_cell(table, "%s", compare_outcome_text(comparison, run, outcome));
    FOR_EACH_COLUMN(column, IN_TERMINAL)
    {
        if (column_is_shown(column, comparison, IN_TERMINAL))
            table_cell(
                table, "%s",
                column_text(column, comparison, run, column->places & NOTE_IN_TERMINAL, text));
    }
}

MUST_CHECK static enum healcl_status print_runs(const struct comparison *comparison,
                                                const struct style *style)
{
    struct table_column columns[COLUMNS_MAX] = {{"transcript", TABLE_LEFT, true},
                                                {"device", TABLE_LEFT, true},
                                                {"verdict", TABLE_LEFT, false}};
    char headings[COLUMNS_MAX][HEADING_SIZE];
    size_t count = 3, skipped = comparison->transcript_count > 1 ? 0 : 1;
    FOR_EACH_COLUMN(column, IN_TERMINAL)
    {
        if (!column_is_shown(column, comparison, IN_TERMINAL))
            continue;
        const char *heading = low_heading(column, headings[count]);
        columns[count++] = (struct table_column){heading, TABLE_RIGHT, false};
    }
    struct table *table = table_create(columns + skipped, count - skipped);
    for (size_t i = 0; i < comparison->transcript_count; i++) {
        bool first = true;
        for (size_t j = 0; j < comparison->device_count; j++) {
            const struct compare_run *run = compare_find(comparison, i, j);
            if (!run)
                continue;
            add_row(table, comparison, run, first);
            first = false;
        }
    }
    return table_print(table, style->stream, style->width);
}

/* ---------------------------------------------------------------- geometric means */

static void add_means(struct table *table, const struct comparison *comparison, size_t device)
{
    const struct compare_device *about = &comparison->devices[device];
    char text[UNIT_TEXT_SIZE];
    double factor;
    add_device(table, comparison, device);
    table_cell(table, "%s", about->mean.factor > 0 ? text_factor(about->mean.factor, text) : "-");
    for (size_t i = 0; i < comparison->transcript_count; i++)
        table_cell(table, "%s",
                   compare_mean_part(comparison, i, device, &factor) ? text_factor(factor, text)
                                                                     : "-");
}

/* Where there are several transcripts and devices: a row for each device. */
MUST_CHECK static enum healcl_status print_means(const struct comparison *comparison,
                                                 const struct style *style)
{
    enum { TRANSCRIPTS_MAX = 62 }; /* more have no room on a terminal */
    struct table_column columns[2 + TRANSCRIPTS_MAX] = {{"speed-up", TABLE_LEFT, true},
                                                        {"mean", TABLE_RIGHT, false}};
    if (comparison->transcript_count < 2 || comparison->transcript_count > TRANSCRIPTS_MAX ||
        comparison->device_count < 2 || comparison->base == comparison->device_count)
        return HEALCL_OK;
    for (size_t i = 0; i < comparison->transcript_count; i++)
        columns[2 + i] = (struct table_column){compare_base_name(comparison->transcripts[i].file),
                                               TABLE_RIGHT, true};
    struct table *table = table_create(columns, 2 + comparison->transcript_count);
    for (size_t j = 0; j < comparison->device_count; j++)
        add_means(table, comparison, j);
    putc('\n', style->stream);
    TRY(table_print(table, style->stream, style->width));
    char label[LABEL_SIZE];
    fprintf(style->stream, "mean: the geometric one over %zu of %zu transcripts; 1.00 is %s\n",
            comparison->counting_count, comparison->transcript_count,
            compare_device_label(comparison, comparison->base, label));
    return HEALCL_OK;
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
    char text[LABEL_SIZE], bytes[UNIT_TEXT_SIZE];
    const char *before = device->origin->baseline ? "(baseline) " : "";
    if (device->emulator)
        fprintf(stream, "%s%s is an emulator\n", before, device->selector);
    if (device->tuned)
        fprintf(stream, "%s%s is tuned\n", before, device->selector);
    if (device->copied_bytes > 0)
        fprintf(stream, "%s%s copies memory at %s/s\n", before, device->selector,
                text_bytes(device->copied_bytes, bytes));
    if (device->check.done)
        fprintf(stream, "%s%s check: %s\n", before, device->selector,
                compare_check_text(&device->check, text));
}

/* "of its rates: the share of ..." */
static void print_meaning(const struct compare_column *column, FILE *stream)
{
    char heading[HEADING_SIZE], text[MEANING_SIZE];
    snprintf(text, sizeof text, "%s: %s", low_heading(column, heading), column->meaning);
    text_wrap(stream, text, 0, NOTES_WIDTH);
}

/* Below the tables: what they mean, what went wrong, and what is known of the devices. */
static void print_notes(const struct comparison *comparison, FILE *stream)
{
    FOR_EACH_COLUMN(column, IN_TERMINAL)
    {
        if (column->meaning && column_is_shown(column, comparison, IN_TERMINAL))
            print_meaning(column, stream);
    }
    for (size_t i = 0; i < comparison->transcript_count; i++)
        if (comparison->transcripts[i].too_small)
            fprintf(stream, "%s: %s\n", comparison->transcripts[i].file, compare_too_small);
    for (size_t i = 0; i < comparison->run_count; i++)
        print_problem(comparison, &comparison->runs[i], stream);
    for (size_t i = 0; i < comparison->device_count; i++)
        print_device(&comparison->devices[i], stream);
}

MUST_CHECK static enum healcl_status print_notes_apart(const struct comparison *comparison,
                                                       FILE *stream)
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

MUST_CHECK static enum healcl_status print_lead(const struct comparison *comparison, FILE *stream)
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
    TRY(print_lead(comparison, style->stream));
    return print_notes_apart(comparison, style->stream);
}
