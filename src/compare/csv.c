/* A comparison as CSV (RFC 4180), a line for each run. */
#include <inttypes.h>

#include "compare/columns.h"

static void put_text(FILE *stream, const char *text)
{
    putc('"', stream);
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

static void put_line(const struct comparison *comparison, const struct compare_run *run,
                     FILE *stream)
{
    const char *comma = "";
    FOR_EACH_COLUMN(column, &compare_run_columns, IN_CSV)
    {
        struct column_value value;
        fputs(comma, stream);
        if (column_value(&compare_run_columns, column, comparison, run, &value))
            put_value(column, &value, stream);
        comma = ",";
    }
    fputs("\r\n", stream);
}

enum healcl_status compare_print_csv(const struct comparison *comparison, FILE *stream)
{
    const char *comma = "";
    FOR_EACH_COLUMN(column, &compare_run_columns, IN_CSV)
    {
        fprintf(stream, "%s%s", comma, column->csv ? column->csv : column->path);
        comma = ",";
    }
    fputs("\r\n", stream);
    for (size_t i = 0; i < comparison->run_count; i++)
        put_line(comparison, &comparison->runs[i], stream);
    return HEALCL_OK;
}
