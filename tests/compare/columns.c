/* The columns of a comparison that are keys of a run's JSON, or of a rank's, a line each: the
 * definition of the schema, path, JSON type, and whether every run has it. schema.py reads them. */
#include "compare/columns.h"

static const char *type_of(const struct column *column)
{
    return column->kind == COLUMN_TEXT         ? "string"
           : column->kind == COLUMN_FLAG       ? "boolean"
           : column_is_decimal(column)         ? "number"
           : column->kind == COLUMN_HUNDREDTHS ? "number"
                                               : "integer";
}

static void print_columns(const char *definition, const struct column_table *table)
{
    for (const struct column *column = table->columns; column < table->columns + table->count;
         column++) {
        bool is_optional = column->places & NONE_IF_0;
        bool measured = !column->value || column->kind == COLUMN_TEXT;
        if (column->path)
            printf("%s %s %s %s\n", definition, column->path, type_of(column),
                   measured && !is_optional ? "always" : "where-known");
    }
}

int main(void)
{
    print_columns("figures", &compare_run_columns);
    print_columns("rank", &compare_rank_columns);
    return 0;
}
