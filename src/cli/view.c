#include "cli/view.h"

#include "cli/json.h"
#include "cli/text.h"
#include "core/format.h"
#include "tools/xmalloc.h"

enum { PATH_SIZE = 256 };

struct buffer {
    char *text;
    size_t length;
};

static void append(struct buffer *buffer, const char *text, size_t length)
{
    buffer->text = xrealloc(buffer->text, buffer->length + length + 1, 1);
    memcpy(buffer->text + buffer->length, text, length);
    buffer->text[buffer->length += length] = 0;
}

/* ---------------------------------------------------------------- values */

static void append_text(struct buffer *buffer, const char *text)
{
    append(buffer, text, strlen(text));
}

/* Writes a value as in JSON, but texts without quotes. */
static void append_plain(struct buffer *buffer, const cJSON *item)
{
    char number[32];
    const bool has_texts = cJSON_IsString(item->child);
    if (cJSON_IsNumber(item)) {
        snprintf(number, sizeof number, "%.17g", item->valuedouble);
        append_text(buffer, number);
    } else if (item->valuestring) {
        const size_t before = buffer->length;
        append_text(buffer, item->valuestring);
        text_clean(buffer->text + before, false);
    } else if (item->child) {
        append_text(buffer, has_texts ? "" : "[");
        JSON_EACH(value, item)
        {
            append_plain(buffer, value);
            append_text(buffer, value->next ? ", " : "");
        }
        append_text(buffer, has_texts ? "" : "]");
    }
}

/* Writes a number in a form for people. Returns false if there is no such form. */
static bool append_number(struct buffer *buffer, double value, uint64_t whole, const char *form)
{
    char text[UNIT_TEXT_SIZE] = "";
    switch (*form) { /* the first letter tells them apart */
    case 't': text_time(whole, text); break;
    case 'b': text_bytes(whole, text); break;
    case 'c': text_count(whole, text); break;
    case 'f': text_factor(value, text); break;
    case '.': snprintf(text, sizeof text, "%.*f", atoi(form + 1), value); break;
    case '%':
        snprintf(text, sizeof text, "%.1f %%%s", 100 * (value < 1 ? value : 1),
                 value > 1 ? ", in cache" : "");
        break;
    case '+':
        snprintf(text, sizeof text, "%+d%%", value < 10 ? (int)(100 * (value - 1)) : 900);
        break;
    case '#': snprintf(text, sizeof text, "%" PRIu64, whole); break;
    case 's': snprintf(text, sizeof text, "%s", whole == 1 ? "" : "s"); break;
    default: return false;
    }
    append_text(buffer, text);
    return true;
}

/* The number at a path, or the quotient of two. */
static bool number_at(const cJSON *object, const char *path, double *value, uint64_t *whole)
{
    char dividend[PATH_SIZE];
    double divisor;
    const char *slash = strchr(path, '/');
    if (!slash) {
        const cJSON *item = json_at(object, path);
        *whole = json_number_at(object, path);
        if (cJSON_IsArray(item))
            *value = (double)*whole;
        return cJSON_IsArray(item) || json_decimal_of(item, value);
    }
    snprintf(dividend, sizeof dividend, "%.*s", (int)(slash - path), path);
    if (!json_decimal_of(json_at(object, dividend), value) ||
        !json_decimal_of(json_at(object, slash + 1), &divisor) || !(divisor > 0))
        return false;
    *value /= divisor;
    *whole = (uint64_t)*value;
    return true;
}

static bool append_form(struct buffer *buffer, const cJSON *object, const char *path,
                        const char *form)
{
    const cJSON *item = json_at(object, path);
    const char *text = cJSON_GetStringValue(item);
    double value = 0;
    uint64_t whole = 0;
    const bool is_number = number_at(object, path, &value, &whole);
    if (form[strcspn(form, "?")] && !(text && *text) && !(value > 0 || value < 0))
        return false;
    if (*form && *form != '?') {
        if (is_number)
            return append_number(buffer, value, whole, form);
        text = text && strchr(text, ' ') ? strchr(text, ' ') + 1 : "?";
        append(buffer, text, strcspn(text, " "));
    } else if (item) {
        append_plain(buffer, item);
    }
    return item && !cJSON_IsNull(item);
}

/* Appends a member whose path is in braces. Returns whether it exists. */
static bool append_member(struct buffer *buffer, const cJSON *object, const char *member,
                          size_t length)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%.*s", (int)length, member);
    char *end = path + strcspn(path, ":=!|"), kind = *end;
    const char *rest = kind ? end + 1 : end;
    *end = 0;
    const cJSON *item = json_at(object, path);
    const bool is_set = item && !cJSON_IsFalse(item) && !cJSON_IsNull(item) &&
                        !(cJSON_IsString(item) && !*item->valuestring);
    if (kind == '=' || kind == '!' || (kind == '|' && !is_set)) {
        append(buffer, rest, is_set == (kind == '=') ? strlen(rest) : 0);
        return true;
    }
    return append_form(buffer, object, path, kind == ':' ? rest : "");
}

/* ---------------------------------------------------------------- templates */

/* Fills a template up to a character. Returns whether that part was whole. */
static bool fill(struct buffer *buffer, const cJSON *object, const char **next, char end)
{
    bool whole = true;
    for (; **next && **next != end; (*next)++) {
        const size_t before = buffer->length, length = strcspn(*next + 1, "}");
        if (**next == '{') {
            whole &= append_member(buffer, object, *next + 1, length);
            *next += length + 1;
        } else if (**next == '[') {
            (*next)++;
            if (!fill(buffer, object, next, ']'))
                buffer->text[buffer->length = before] = 0;
        } else {
            append(buffer, *next, 1);
        }
    }
    return whole;
}

char *view_fill(const cJSON *object, const char *template)
{
    struct buffer buffer = {xstrdup(""), 0};
    const bool is_whole = fill(&buffer, object, &template, 0);
    xkeep(buffer.text);
    return is_whole ? buffer.text : NULL;
}

/* ---------------------------------------------------------------- lines */

void report_label(const struct style *style, const char *label, const char *format, ...)
{
    char text[2048];
    FORMAT_INTO(text, sizeof text, format);
    text_clean(text, false);
    const int used = fprintf(style->stream, "%-10s  ", label);
    text_wrap(style->stream, text, (size_t)used, (unsigned)used, style->width);
}

void view_line(const struct style *style, const cJSON *object, const char *label,
               const char *template)
{
    const char *text = view_fill(object, template);
    if (text)
        report_label(style, label, "%s", text);
}

void view_lines(const struct style *style, const cJSON *object, const struct view_line *lines,
                size_t count)
{
    for (size_t i = 0; i < count; i++)
        view_line(style, object, lines[i].label, lines[i].template);
}

void view_text(const struct style *style, const cJSON *object, const char *template)
{
    for (char *line = view_fill(object, template), *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        /* Indented lines are commands, which are copied without line breaks. */
        text_wrap(style->stream, line, 0, 0, *line == ' ' ? 0 : style->width);
    }
}

void view_each(const struct style *style, const cJSON *array, const char *template)
{
    JSON_EACH(object, array) view_text(style, object, template);
}

/* ---------------------------------------------------------------- tables */

void view_table(const struct style *style, const cJSON *rows, const struct view_column *columns,
                size_t count)
{
    struct table *table = table_create(columns, count);
    JSON_EACH(row, rows) for (size_t i = 0; i < count; i++)
    {
        const char *cell = view_fill(row, columns[i].template);
        table_cell(table, cell ? cell : columns[i].flags & VIEW_BLANK ? "" : "-");
    }
    table_print(table, style);
}

/* ---------------------------------------------------------------- tables by cells */

enum { GAP = 2, SHRUNK_MIN = 16 };

struct table {
    const struct view_column *columns;
    size_t column_count;
    char **cells; /* the first row has the headings */
    size_t cell_count;
};

struct table *table_create(const struct view_column *columns, size_t count)
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
    char *cell = xkeep(xstrdup(text));
    text_clean(cell, false);
    table->cells = xrealloc(table->cells, table->cell_count + 1, sizeof *table->cells);
    table->cells[table->cell_count++] = cell;
}

/* ---------------------------------------------------------------- for a terminal */

/* Computes the widths of columns, 0 for those without a value, and of the whole table with its
 * gaps. */
static size_t measure(const struct table *table, size_t *widths)
{
    size_t whole = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        bool has_values = table->cell_count == table->column_count;
        for (size_t cell = i; cell < table->cell_count; cell += table->column_count) {
            const char *text = table->cells[cell];
            const size_t columns = text_columns(text);
            widths[i] = columns > widths[i] ? columns : widths[i];
            has_values |= cell != i && *text && strcmp(text, "-") != 0;
        }
        widths[i] = has_values ? widths[i] : 0;
        whole += widths[i] + (i > 0 && widths[i] > 0 ? GAP : 0);
    }
    return whole;
}

/* Reduces the widest columns that may shrink, until the table fits. Does nothing if it can never
 * fit. */
static void shrink(const struct table *table, size_t *widths, size_t whole, size_t width)
{
    size_t spare = 0;
    for (size_t i = 0; i < table->column_count; i++)
        if (table->columns[i].flags & VIEW_SHRINKS && widths[i] > SHRUNK_MIN)
            spare += widths[i] - SHRUNK_MIN;
    for (size_t excess = whole > width ? whole - width : 0; excess > 0 && excess <= spare;
         excess--) {
        size_t widest = 0;
        for (size_t i = 0; i < table->column_count; i++)
            if (table->columns[i].flags & VIEW_SHRINKS &&
                (!(table->columns[widest].flags & VIEW_SHRINKS) || widths[i] >= widths[widest]))
                widest = i;
        widths[widest]--;
    }
}

/* Returns the byte after the first `count` characters of a text. */
static char *behind(char *text, size_t characters)
{
    for (; characters > 0; characters--)
        do
            text++;
        while (((unsigned char)*text & 0xc0) == 0x80);
    return text;
}

/* Shortens a text to a number of characters, at least 3, with three dots in the middle, because
 * names often differ at their ends. */
static void cut(char *text, size_t columns)
{
    const size_t before = text_columns(text), head = (columns - 3) / 2;
    if (before <= columns)
        return;
    char *end = behind(text, before - (columns - 3 - head)), *dots = behind(text, head);
    memcpy(dots, "...", 3);
    memmove(dots + 3, end, strlen(end) + 1);
}

/* Prints the columns from `first` up to `end`, after those that name the row. */
static void print_row(const struct table *table, size_t row, const size_t *widths, size_t names,
                      size_t first, size_t end, FILE *stream)
{
    size_t pending = 0; /* blanks matter only if text follows */
    for (size_t i = 0; i < end; i++) {
        if (widths[i] == 0 || (i >= names && i < first))
            continue;
        char *cell = table->cells[row + i];
        cut(cell, widths[i]);
        size_t padding = widths[i] - text_columns(cell);
        const bool is_right = table->columns[i].flags & VIEW_RIGHT;
        size_t before = pending + (is_right ? padding : 0);
        pending = (is_right ? 0 : padding) + GAP;
        if (!*cell) {
            pending += before;
            continue;
        }
        fprintf(stream, "%*s%s", (int)before, "", cell);
    }
    putc('\n', stream);
}

/* Columns that do not fit are printed below, after the row names again. */
static void print_aligned(const struct table *table, const struct style *style)
{
    size_t *widths = xcalloc(table->column_count, sizeof *widths);
    const size_t needed = measure(table, widths);
    const size_t width = style->width > 0 ? style->width : SIZE_MAX;
    size_t names = 1, named = widths[0];
    shrink(table, widths, needed, width);
    for (; names < table->column_count && table->columns[names].flags & VIEW_SHRINKS &&
           2 * (named + GAP + widths[names]) <= width + GAP;
         names++)
        named += GAP + widths[names];
    for (size_t first = 0, end; first < table->column_count; first = end) {
        size_t used = first > 0 ? named : 0;
        for (end = first; end < table->column_count; end++) {
            const size_t more = widths[end] > 0 ? widths[end] + (end > 0 ? GAP : 0) : 0;
            if (end > first && end > names && used + more > width)
                break;
            used += more;
        }
        if (first > 0)
            putc('\n', style->stream);
        for (size_t i = 0; i < table->cell_count; i += table->column_count)
            print_row(table, i, widths, names, first, end, style->stream);
    }
    free(widths);
}

/* ---------------------------------------------------------------- markup */

void print_markup(const struct style *style, const char *text)
{
    FILE *stream = style->stream;
    if (style->form == TABLE_HTML)
        text_print_escaped(stream, text, false);
    for (; style->form == TABLE_MARKDOWN && *text; text++)
        if (*text == '<' || *text == '>' || *text == '&')
            fputs(*text == '<' ? "&lt;" : *text == '>' ? "&gt;" : "&amp;", stream);
        else
            fprintf(stream, strchr("\\`*_{}[]()#+!|~@:", *text) ? "\\%c" : "%c", *text);
}

static void print_marked(const struct table *table, const struct style *style)
{
    const bool is_html = style->form == TABLE_HTML;
    FILE *stream = style->stream;
    fputs(is_html ? "<table><tr>" : "\n", stream);
    for (size_t row = 0; row < table->cell_count; row += table->column_count) {
        for (size_t i = 0; i < table->column_count; i++) {
            fputs(is_html ? "<td>" : "| ", stream);
            print_markup(style, table->cells[row + i]);
            fputs(is_html ? "" : " ", stream);
        }
        fputs(is_html ? "<tr>\n" : "|\n", stream);
        for (size_t i = 0; !is_html && row == 0 && i < table->column_count; i++)
            fputs(table->columns[i].flags & VIEW_RIGHT ? "|--:" : "|---", stream);
        fputs(is_html || row > 0 ? "" : "|\n", stream);
    }
    fputs(is_html ? "</table>" : "", stream);
}

void table_print(struct table *table, const struct style *style)
{
    if (style->form == TABLE_TEXT)
        print_aligned(table, style);
    else
        print_marked(table, style);
    free(table->cells);
    free(table);
}
