/* The columns of a comparison that are keys of a run's JSON, a line each: path, JSON type, and
 * whether every run has it. schema.py reads them. */
#include "compare/columns.h"

static const char *type_of(const struct column *column)
{
    return column->kind == COLUMN_TEXT         ? "string"
           : column->kind == COLUMN_FLAG       ? "boolean"
           : column_is_decimal(column)         ? "number"
           : column->kind == COLUMN_HUNDREDTHS ? "number"
                                               : "integer";
}

int main(void)
{
    const struct column_table *table = &compare_run_columns;
    for (const struct column *column = table->columns; column < table->columns + table->count;
         column++) {
        bool measured = !column->value && !(column->places & NONE_IF_0);
        if (column->path)
            printf("%s %s %s\n", column->path, type_of(column),
                   measured || column->kind == COLUMN_TEXT ? "always" : "where-known");
    }
    return 0;
}
