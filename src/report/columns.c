#include "report/columns.h"

#include <healcl.h>

#include <inttypes.h>
#include <string.h>

/* ---------------------------------------------------------------- values */

/* Where a record has what was measured or read; 0: it follows from other members. */
static size_t field_of(const struct column_table *table, const struct column *column)
{
    if (column->field || column->value)
        return column->field;
    return table->figures + (size_t)(column - table->columns) * sizeof(uint64_t);
}

bool column_is_decimal(const struct column *column)
{
    return column->kind == COLUMN_DECIMAL || column->kind == COLUMN_FACTOR ||
           column->kind == COLUMN_RATE || column->kind == COLUMN_SPREAD ||
           column->kind == COLUMN_SHARE;
}

double share_shown(double percent)
{
    return percent < SHARE_MAX ? percent : SHARE_MAX;
}

bool column_value(const struct column_table *table, const struct column *column,
                  const void *context, const void *record, struct column_value *value)
{
    *value = (struct column_value){.text = ""};
    if (column->value)
        return column->value(context, record, value);
    const char *field = (const char *)record + field_of(table, column) - 1;
    if (column->kind == COLUMN_TEXT)
        value->text = column->size == 1 ? field : *(const char *const *)(const void *)field;
    else if (column->kind == COLUMN_FLAG)
        value->number = *(const bool *)field;
    else if (column->kind == COLUMN_DECIMAL)
        value->factor = *(const double *)(const void *)field;
    else if (column->size == sizeof(uint32_t))
        value->number = *(const uint32_t *)(const void *)field;
    else
        value->number = *(const uint64_t *)(const void *)field;
    return value->number > 0 || *value->text || !(column->places & NONE_IF_0);
}

bool column_is_known(const struct column_table *table, const struct column *column,
                     const void *context, const void *record, struct column_value *value)
{
    return column_value(table, column, context, record, value) &&
           (value->number > 0 || !(column->places & DASH_IF_0));
}

const char *column_text(const struct column_table *table, const struct column *column,
                        const void *context, const void *record, bool with_note,
                        char text[COLUMN_TEXT_SIZE])
{
    struct column_value value;
    char unit[UNIT_TEXT_SIZE] = "", note[UNIT_TEXT_SIZE] = "";
    const char *word = unit;
    if (!column_is_known(table, column, context, record, &value)) {
        strcpy(text, column->places & BLANK ? "" : "-");
        return text;
    }
    switch (column->kind) {
    case COLUMN_TEXT: word = value.text; break;
    case COLUMN_FLAG: word = value.number ? "yes" : "no"; break;
    case COLUMN_COUNT: snprintf(unit, sizeof unit, "%" PRIu64, value.number); break;
    case COLUMN_HUNDREDTHS: snprintf(unit, sizeof unit, "%.2f", (double)value.number / 100); break;
    case COLUMN_TIME: text_time(value.number, unit); break;
    case COLUMN_BYTES: text_bytes(value.number, unit); break;
    case COLUMN_DECIMAL: snprintf(unit, sizeof unit, "%.*f", column->decimals, value.factor); break;
    case COLUMN_FACTOR:
    case COLUMN_RATE: text_factor(value.factor, unit); break;
    case COLUMN_SPREAD: snprintf(unit, sizeof unit, "%.1f %%", value.factor); break;
    case COLUMN_SHARE: snprintf(unit, sizeof unit, "%.3g %%", share_shown(value.factor)); break;
    }
    if (column->note && with_note)
        column->note(context, record, note);
    snprintf(text, COLUMN_TEXT_SIZE, *note ? "%.80s (%s)" : "%s", word, note);
    return text;
}

/* ---------------------------------------------------------------- JSON */

/* The object that a path leads to, made where it is missing; *key: what is behind the last dot. */
static cJSON *object_at(struct json *json, cJSON *object, const char *path, const char **key)
{
    char name[32];
    const char *dot = strchr(path, '.');
    *key = dot ? dot + 1 : path;
    if (!dot)
        return object;
    snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
    cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, name);
    return inner ? inner : json_object(json, object, name);
}

void columns_add_json(struct json *json, cJSON *object, const struct column_table *table,
                      const void *context, const void *record)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct column *column = &table->columns[i];
        struct column_value value;
        if (!column->path || !column_value(table, column, context, record, &value))
            continue;
        const char *key;
        cJSON *at = object_at(json, object, column->path, &key);
        if (column->kind == COLUMN_TEXT)
            json_string(json, at, key, value.text);
        else if (column->kind == COLUMN_FLAG)
            json_bool(json, at, key, value.number);
        else if (column->kind == COLUMN_HUNDREDTHS)
            json_decimal(json, at, key, (double)value.number / 100);
        else if (column_is_decimal(column))
            json_decimal(json, at, key, value.factor);
        else
            json_number(json, at, key, value.number);
    }
}

void columns_add_list(struct json *json, cJSON *object, const char *key,
                      const struct column_table *table, const void *context,
                      struct column_records records)
{
    cJSON *list = json_array(json, object, key);
    for (size_t i = 0; i < records.count; i++)
        columns_add_json(json, json_object(json, list, NULL), table, context,
                         (const char *)records.first + i * records.size);
}

/* What a path leads to; NULL: nothing. */
static const cJSON *item_at(const cJSON *object, const char *path)
{
    char name[32];
    const char *dot = strchr(path, '.');
    if (!dot)
        return cJSON_GetObjectItemCaseSensitive(object, path);
    snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
    return item_at(cJSON_GetObjectItemCaseSensitive(object, name), dot + 1);
}

/* Of a decimal up to a million; else 0. */
static uint64_t hundredths(const cJSON *item)
{
    const double value = cJSON_GetNumberValue(item), most = 1e6;
    return value >= 0 && value <= most ? (uint64_t)(100 * value + 0.5) : 0;
}

/* Into a member that is no text. */
static void read_number(const struct column *column, const cJSON *item, char *field)
{
    const uint64_t number =
        column->kind == COLUMN_HUNDREDTHS ? hundredths(item) : json_number_of(item);
    if (column->kind == COLUMN_FLAG)
        *(bool *)field = cJSON_IsTrue(item);
    else if (column->kind == COLUMN_DECIMAL)
        *(double *)(void *)field = cJSON_IsNumber(item) ? item->valuedouble : 0;
    else if (column->size == sizeof(uint32_t))
        *(uint32_t *)(void *)field = number <= UINT32_MAX ? (uint32_t)number : 0;
    else
        *(uint64_t *)(void *)field = number;
}

void columns_read_json(const cJSON *object, const struct column_table *table, void *record,
                       const char *(*keep)(void *context, const char *text), void *context)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct column *column = &table->columns[i];
        const size_t place = field_of(table, column);
        if (!column->path || place == 0)
            continue;
        const cJSON *item = item_at(object, column->path);
        char *field = (char *)record + place - 1;
        if (column->kind == COLUMN_TEXT) {
            const char *text = cJSON_GetStringValue(item);
            *(const char **)(void *)field = keep(context, text ? text : "");
        } else {
            read_number(column, item, field);
        }
    }
}

/* ---------------------------------------------------------------- tables of text */

enum { COLUMNS_MAX = 32 };

struct table *columns_create(const struct column_table *table, unsigned place)
{
    struct table_column headings[COLUMNS_MAX];
    size_t count = 0;
    FOR_EACH_COLUMN(column, table, place)
    {
        bool to_the_right = column->kind != COLUMN_TEXT || column->places & TO_THE_RIGHT;
        headings[count++] = (struct table_column){
            column->heading, to_the_right ? TABLE_RIGHT : TABLE_LEFT, column->places & SHRINKS};
    }
    return table_create(headings, count);
}

void columns_row(struct table *text, const struct column_table *table, unsigned place,
                 const void *context, const void *record)
{
    struct column_value value;
    char cell[COLUMN_TEXT_SIZE];
    FOR_EACH_COLUMN(column, table, place)
    {
        /* Names may be longer than other cells are. */
        bool is_text =
            column->kind == COLUMN_TEXT && column_value(table, column, context, record, &value);
        table_cell(text, "%s",
                   is_text ? value.text : column_text(table, column, context, record, true, cell));
    }
}

enum healcl_status columns_print(const struct column_table *table, unsigned place,
                                 const void *context, struct column_records records, FILE *stream,
                                 unsigned width)
{
    struct table *text = columns_create(table, place);
    for (size_t i = 0; i < records.count; i++)
        columns_row(text, table, place, context, (const char *)records.first + i * records.size);
    return table_print(text, stream, width);
}

#define KERNEL_FIELD(member) COLUMN_FIELD(struct healcl_manifest_kernel, member)

static const struct column kernel_rows[] = {
    {"name", NULL, COLUMN_TEXT, 0, KERNEL_FIELD(name)},
    {"of", NULL, COLUMN_TEXT, 0, KERNEL_FIELD(what)},
    {"manifest", NULL, COLUMN_TEXT, 0, KERNEL_FIELD(manifest)},
    {"replaces", NULL, COLUMN_FLAG, 0, KERNEL_FIELD(replaces)},
    {"steps", NULL, COLUMN_COUNT, 0, KERNEL_FIELD(steps)},
    {"tuned", NULL, COLUMN_FLAG, 0, KERNEL_FIELD(tuned)},
};

const struct column_table report_kernel_columns = COLUMN_TABLE(kernel_rows);
