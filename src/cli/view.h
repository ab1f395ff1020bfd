/*
 * Prints JSON as text: lines, and tables whose rows are the objects of an array.
 *
 * All text comes from templates. "{results.total}" is replaced by the member at this path, as text.
 * The values of an array are printed as a list. After the path may follow
 *
 *     {path:form}    time, bytes, count or factor (text.h); "#", the length of an array; "s", the
 *                    plural's letter, unless it is 1; ".2", decimals; "%", a share, at most 100;
 *                    "+", by how many percent a ratio differs from 1; "word", the second word
 *     {path:form?}   the same, but missing if the value is 0 or empty
 *     {path|text}    text if the member is missing or empty
 *     {path=text}    text if the member exists and is not false; {path!text}: otherwise
 *     {path/path...} a quotient, missing if it has no value
 *     [...]          a part that is omitted if one of its members is missing
 *
 * A template is whole if no member outside such parts is missing.
 */
#ifndef HEALCL_CLI_VIEW_H
#define HEALCL_CLI_VIEW_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The destination of text. */
struct style {
    FILE *stream;
    unsigned width; /* width of the terminal; 0 if there is none */
    bool colour;
    enum { TABLE_TEXT, TABLE_MARKDOWN, TABLE_HTML } form; /* of tables */
};

/* Fills a template. The text lives as long as the program. NULL if the template is not whole. */
char *view_fill(const cJSON *object, const char *template);

/* ---- lines: a template that is not whole prints nothing ---- */

/* "transcript  FILE": a label with a fact. */
struct view_line {
    const char *label, *template;
};
void view_line(const struct style *style, const cJSON *object, const char *label,
               const char *template);
void view_lines(const struct style *style, const cJSON *object, const struct view_line *lines,
                size_t count);

/* Print a sentence, or one for each object of an array. */
void view_text(const struct style *style, const cJSON *object, const char *template);
void view_each(const struct style *style, const cJSON *array, const char *template);

/* Prints a label with a text, formatted as by printf. */
__attribute__((format(printf, 3, 4))) void report_label(const struct style *style,
                                                        const char *label, const char *format, ...);

/* ---- tables ---- */

enum { VIEW_RIGHT = 1, VIEW_SHRINKS = 2, VIEW_BLANK = 4 };

/* If a cell's template is not whole, the cell shows a dash. With VIEW_BLANK it is empty. */
struct view_column {
    const char *heading, *template;
    unsigned flags; /* VIEW_SHRINKS: its cells may be cut if the table is too wide */
};
void view_table(const struct style *style, const cJSON *rows, const struct view_column *columns,
                size_t count);

#define VIEW_TABLE(style, rows, columns) \
    view_table(style, rows, columns, sizeof(columns) / sizeof *(columns))
/* The same, after an empty line. */
#define VIEW_SECTION(style, rows, columns) \
    ((void)putc('\n', (style)->stream), VIEW_TABLE(style, rows, columns))
#define VIEW_LINES(style, object, lines) \
    view_lines(style, object, lines, sizeof(lines) / sizeof *(lines))

/* ---- tables by cells ---- */

struct table;

/* columns must outlive the table. Their templates are not used. */
struct table *table_create(const struct view_column *columns, size_t count);

/* Appends a cell: rows from top to bottom, cells from left to right. */
void table_cell(struct table *table, const char *text);

/* Prints the table and frees it. */
void table_print(struct table *table, const struct style *style);

/* Prints a text, escaped for Markdown or HTML. */
void print_markup(const struct style *style, const char *text);

#endif
