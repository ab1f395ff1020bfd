/* A comparison, for a terminal. */
#include <inttypes.h>

#include "report/compare.h"
#include "report/table.h"
#include "report/text.h"

static const struct table_column columns[] = {
    {"transcript", TABLE_LEFT, true}, {"device", TABLE_LEFT, true},
    {"verdict", TABLE_LEFT, false},   {"median", TABLE_RIGHT, false},
    {"spread", TABLE_RIGHT, false},   {"speed-up", TABLE_RIGHT, false},
    {"kernels", TABLE_RIGHT, false},  {"memory", TABLE_RIGHT, false},
};

enum { COLUMN_COUNT = sizeof columns / sizeof *columns };

static void add_times(struct table *table, const struct comparison *comparison,
                      const struct compare_run *run)
{
    struct compare_times times;
    struct compare_speedup speedup;
    char text[UNIT_TEXT_SIZE];
    bool timed = compare_times_of(run, &times);
    table_cell(table, "%s", timed ? text_time(times.median, text) : "-");
    if (timed && run->sample_count > 1)
        table_cell(table, "%.1f %%", compare_spread(&times));
    else
        table_cell(table, "-");
    if (compare_speedup_of(comparison, run, &speedup))
        table_cell(table, "%s", text_factor(speedup.factor, text));
    else
        table_cell(table, "-");
    table_cell(table, "%s",
               run->compile_nanoseconds ? text_time(run->compile_nanoseconds, text) : "-");
    table_cell(table, "%s", run->device_bytes ? text_bytes(run->device_bytes, text) : "-");
}

/* first: whether the transcript is named in this row. */
static void add_row(struct table *table, const struct comparison *comparison,
                    const struct compare_run *run, bool first)
{
    const struct compare_device *device = &comparison->devices[run->device];
    char outcome[OUTCOME_TEXT_SIZE];
    if (comparison->transcript_count > 1)
        table_cell(table, "%s", first ? comparison->transcripts[run->transcript].file : "");
    table_cell(table, "%s%s%s%s", device->origin->baseline ? "(baseline) " : "", device->selector,
               *device->name ? "  " : "", device->name);
    table_cell(table, "%s", compare_outcome_text(comparison, run, outcome));
    add_times(table, comparison, run);
}

/* Below the table: what went wrong, and what is known of the devices. */
static void print_notes(const struct comparison *comparison, const struct style *style)
{
    const char *gap = "\n";
    char text[UNIT_TEXT_SIZE];
    for (size_t i = 0; i < comparison->run_count; i++) {
        const struct compare_run *run = &comparison->runs[i];
        const char *line = run->difference_count > 0 ? run->differences[0] : run->message;
        if (!*line)
            continue;
        fprintf(style->stream, "%s%s: %s: %s\n", gap, comparison->transcripts[run->transcript].file,
                comparison->devices[run->device].selector, line);
        gap = "";
    }
    for (size_t i = 0; i < comparison->device_count; i++) {
        const struct compare_device *device = &comparison->devices[i];
        if (device->copied_bytes == 0)
            continue;
        fprintf(style->stream, "%s%s%s copies memory at %s/s\n", gap,
                device->origin->baseline ? "(baseline) " : "", device->selector,
                text_bytes(device->copied_bytes, text));
        gap = "";
    }
}

enum healcl_status compare_print_table(const struct comparison *comparison,
                                       const struct style *style)
{
    bool several = comparison->transcript_count > 1;
    struct table *table =
        table_create(columns + (several ? 0 : 1), COLUMN_COUNT - (several ? 0 : 1));
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
    if (!several)
        fprintf(style->stream, "transcript  %s\n", comparison->transcripts[0].file);
    fprintf(style->stream, "runs        %" PRIu32 " of each\n\n", comparison->repeat);
    if (!table_print(table, style->stream, style->width))
        return HEALCL_NO_MEMORY;
    print_notes(comparison, style);
    return HEALCL_OK;
}
