#include <stdlib.h>
#include <string.h>

#include "cli/text.h"
#include "cli/view.h"
#include "tools/xmalloc.h"

enum { GAP = 2, SHRUNK_MIN = 8 };

struct table {
    const struct table_column *columns;
    size_t column_count;
    char **cells; /* the headings are the first row */
    size_t cell_count;
};

struct table *table_create(const struct table_column *columns, size_t count)
{
    struct table *table = xcalloc(1, sizeof *table);
    table->columns = columns;
    table->column_count = count;
    for (size_t i = 0; i < count; i++)
        table_cell(table, columns[i].heading);
    return table;
}

void table_cell(struct table *table, const char *text)
{
    char *cell = xstrdup(text);
    text_clean(cell, false);
    table->cells = xrealloc(table->cells, table->cell_count + 1, sizeof *table->cells);
    table->cells[table->cell_count++] = cell;
}

/* ---------------------------------------------------------------- for a terminal */

/* Widths of the columns, and of the whole table with its gaps. */
static size_t measure(const struct table *table, size_t *widths)
{
    size_t whole = 0;
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t columns = text_columns(table->cells[i]);
        size_t *width = &widths[i % table->column_count];
        if (columns > *width)
            *width = columns;
    }
    for (size_t i = 0; i < table->column_count; i++)
        whole += widths[i] + (i > 0 ? GAP : 0);
    return whole;
}

/* Takes from the columns that may shrink, the last one first, until the table fits. */
static void shrink(const struct table *table, size_t *widths, size_t whole, unsigned width)
{
    for (size_t i = table->column_count; i-- > 0 && whole > width;) {
        if (!table->columns[i].shrinks || widths[i] <= SHRUNK_MIN)
            continue;
        size_t spare = widths[i] - SHRUNK_MIN, excess = whole - width;
        size_t taken = spare < excess ? spare : excess;
        widths[i] -= taken;
        whole -= taken;
    }
}

/* Cuts a text to so many characters, the last three of them dots. */
static void cut(char *text, size_t columns)
{
    if (text_columns(text) <= columns)
        return;
    char *end = text;
    for (size_t seen = 0; seen + 3 < columns; seen++)
        do
            end++;
        while (((unsigned char)*end & 0xc0) == 0x80);
    memcpy(end, "...", 4);
}

static void print_row(const struct table *table, size_t first, const size_t *widths, FILE *stream)
{
    size_t pending = 0; /* blanks that only matter if something follows */
    for (size_t i = 0; i < table->column_count; i++) {
        const char *cell = table->cells[first + i];
        size_t padding = widths[i] - text_columns(cell);
        size_t before = pending + (table->columns[i].align == TABLE_RIGHT ? padding : 0);
        pending = (table->columns[i].align == TABLE_RIGHT ? 0 : padding) + GAP;
        if (!*cell) {
            pending += before;
            continue;
        }
        fprintf(stream, "%*s%s", (int)before, "", cell);
    }
    putc('\n', stream);
}

static void print_aligned(const struct table *table, FILE *stream, unsigned width)
{
    size_t *widths = xcalloc(table->column_count, sizeof *widths);
    const size_t needed = measure(table, widths);
    if (width > 0)
        shrink(table, widths, needed, width);
    for (size_t i = 0; i < table->cell_count; i++)
        cut(table->cells[i], widths[i % table->column_count]);
    for (size_t i = 0; i < table->cell_count; i += table->column_count)
        print_row(table, i, widths, stream);
    free(widths);
}

/* ---------------------------------------------------------------- markup */

void print_markup(FILE *stream, enum table_form form, const char *text)
{
    static const struct text_escape html[] = {{'&', "&amp;"},  {'<', "&lt;"},   {'>', "&gt;"},
                                              {'"', "&quot;"}, {'\'', "&#39;"}, {0, NULL}};
    if (form == TABLE_HTML)
        text_print_escaped(stream, text, html);
    for (; form == TABLE_MARKDOWN && *text; text++)
        if (*text == '<' || *text == '>' || *text == '&')
            fputs(*text == '<' ? "&lt;" : *text == '>' ? "&gt;" : "&amp;", stream);
        else
            fprintf(stream, strchr("\\`*_{}[]()#+!|~@:", *text) ? "\\%c" : "%c", *text);
}

static void print_marked(const struct table *table, FILE *stream, enum table_form form)
{
    const bool is_html = form == TABLE_HTML;
    fputs(is_html ? "<table><tr>" : "\n", stream);
    for (size_t i = 0; i < table->cell_count; i++) {
        fputs(is_html ? "<td>" : "| ", stream);
        print_markup(stream, form, table->cells[i]);
        fputs(is_html ? "" : " ", stream);
        if ((i + 1) % table->column_count == 0)
            fputs(is_html ? "<tr>\n" : "|\n", stream);
        for (size_t j = 0; !is_html && i + 1 == table->column_count && j <= i; j++)
            fprintf(stream, "%s%s",
                    table->columns[j].align == TABLE_LEFT ? "|---" : "|--:", j == i ? "|\n" : "");
    }
    fputs(is_html ? "</table>" : "", stream);
}

void table_print(struct table *table, FILE *stream, enum table_form form, unsigned width)
{
    if (form == TABLE_TEXT)
        print_aligned(table, stream, width);
    else
        print_marked(table, stream, form);
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table);
}
