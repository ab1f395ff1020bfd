/* A comparison as CSV (RFC 4180), a line for each run, and for each rank. */
#include <inttypes.h>
#include <string.h>

#include "compare/columns.h"

/* Spreadsheets take a cell that begins with one of these for a formula, also in quotes. Numbers are
 * never negative here. */
static const char formula_begins[] = "=+-@\t\r\n";

static void put_text(FILE *stream, const char *text)
{
    putc('"', stream);
    if (*text && strchr(formula_begins, *text))
        putc('\'', stream);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', stream);
        putc(*text, stream);
    }
    putc('"', stream);
}

static void put_value(const struct column *column, const struct column_value *value, FILE *stream)
{
    switch (column->kind) {
    case COLUMN_TEXT: put_text(stream, value->text); break;
    case COLUMN_FLAG:
    case COLUMN_COUNT:
    case COLUMN_HUNDREDTHS:
    case COLUMN_TIME:
    case COLUMN_BYTES: fprintf(stream, "%" PRIu64, value->number); break;
    case COLUMN_DECIMAL:
    case COLUMN_FACTOR:
    case COLUMN_RATE:
    case COLUMN_SPREAD:
    case COLUMN_SHARE: fprintf(stream, "%.6g", value->factor); break;
    }
}

static const char *name_of(const struct column *column)
{
    return column->csv ? column->csv : column->path;
}

/* The column of runs that has a name, or NULL. */
static const struct column *find_run_column(const char *name)
{
    FOR_EACH_COLUMN(column, &compare_run_columns, IN_CSV)
    {
        if (strcmp(name_of(column), name) == 0)
            return column;
    }
    return NULL;
}

/* The column of ranks that has the name of one of runs, or NULL. */
static const struct column *find_rank_column(const char *name)
{
    FOR_EACH_COLUMN(column, &compare_rank_columns, IN_CSV)
    {
        if (strcmp(name_of(column), name) == 0)
            return column;
    }
    return NULL;
}

/* Columns that only ranks have stand behind those of runs. */
#define FOR_EACH_OF_RANKS_ALONE(column)                    \
    FOR_EACH_COLUMN(column, &compare_rank_columns, IN_CSV) \
    if (!find_run_column(name_of(column)))

static void put_cell(const struct column_table *table, const struct column *column,
                     const void *context, const void *record, FILE *stream)
{
    struct column_value value;
    if (column && column_value(table, column, context, record, &value))
        put_value(column, &value, stream);
}

static void put_run(const struct comparison *comparison, const struct compare_run *run,
                    FILE *stream)
{
    const char *comma = "";
    FOR_EACH_COLUMN(column, &compare_run_columns, IN_CSV)
    {
        fputs(comma, stream);
        put_cell(&compare_run_columns, column, comparison, run, stream);
        comma = ",";
    }
    if (comparison->ranks_count > 0)
        FOR_EACH_OF_RANKS_ALONE(column)
        {
            putc(',', stream);
        }
    fputs("\r\n", stream);
}

static void put_rank(const struct compare_ranks *ranks, const struct compare_rank *rank,
                     FILE *stream)
{
    const char *comma = "";
    FOR_EACH_COLUMN(column, &compare_run_columns, IN_CSV)
    {
        fputs(comma, stream);
        put_cell(&compare_rank_columns, find_rank_column(name_of(column)), ranks, rank, stream);
        comma = ",";
    }
    FOR_EACH_OF_RANKS_ALONE(column)
    {
        putc(',', stream);
        put_cell(&compare_rank_columns, column, ranks, rank, stream);
    }
    fputs("\r\n", stream);
}

static void put_names(const struct comparison *comparison, FILE *stream)
{
    const char *comma = "";
    FOR_EACH_COLUMN(column, &compare_run_columns, IN_CSV)
    {
        fprintf(stream, "%s%s", comma, name_of(column));
        comma = ",";
    }
    if (comparison->ranks_count > 0)
        FOR_EACH_OF_RANKS_ALONE(column)
        {
            fprintf(stream, ",%s", name_of(column));
        }
    fputs("\r\n", stream);
}

enum healcl_status compare_print_csv(const struct comparison *comparison, FILE *stream)
{
    put_names(comparison, stream);
    for (size_t i = 0; i < comparison->run_count; i++)
        put_run(comparison, &comparison->runs[i], stream);
    for (size_t i = 0; i < comparison->ranks_count; i++)
        for (size_t j = 0; j < comparison->ranks[i].count; j++)
            put_rank(&comparison->ranks[i], &comparison->ranks[i].rows[j], stream);
    return HEALCL_OK;
}
