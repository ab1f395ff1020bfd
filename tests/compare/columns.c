/* The columns of a comparison that are keys of a run's JSON, a line each: path, JSON type, and
 * whether every run has it. schema.py reads them. */
#include "compare/columns.h"

static const char *type_of(enum column_kind kind)
{
    switch (kind) {
    case COLUMN_TEXT: return "string";
    case COLUMN_COUNT:
    case COLUMN_TIME:
    case COLUMN_BYTES: return "integer";
    case COLUMN_FACTOR:
    case COLUMN_RATE:
    case COLUMN_SPREAD:
    case COLUMN_SHARE: return "number";
    }
    return "null";
}

int main(void)
{
    for (const struct compare_column *column = compare_columns;
         column < compare_columns + compare_column_count; column++) {
        bool measured = !column->value && !(column->places & NONE_IF_0);
        if (column->path)
            printf("%s %s %s\n", column->path, type_of(column->kind),
                   measured || column->kind == COLUMN_TEXT ? "always" : "where-known");
    }
    return 0;
}
