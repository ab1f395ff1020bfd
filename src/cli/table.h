/* Tables of text with aligned columns. */
#ifndef HEALCL_CLI_TABLE_H
#define HEALCL_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct table;

struct table_column {
    const char *heading;
    enum { TABLE_LEFT, TABLE_RIGHT } align;
    bool shrinks; /* its cells may be cut where the table is too wide */
};

/* Headings outlive the table. */
struct table *table_create(const struct table_column *columns, size_t count);

/* Adds the next cell, row by row from the left. */
__attribute__((format(printf, 2, 3))) void table_cell(struct table *table, const char *format, ...);

/* Adds a line of its own above the next row; it may be longer than the table is wide. */
void table_line(struct table *table, const char *text);

/* Prints the table, at most width columns wide if width is not 0, and frees it. */
void table_print(struct table *table, FILE *stream, unsigned width);

#endif
