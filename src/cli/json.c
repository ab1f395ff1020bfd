#include "cli/json.h"

#include "cli/text.h"
#include "core/format.h"
#include "tools/xmalloc.h"

cJSON *json_report(void)
{
    cJSON *document = cJSON_CreateObject();
    json_add_string(document, "healcl", healcl_version());
    return document;
}

void json_print(const cJSON *document, FILE *stream)
{
    char *text = cJSON_Print(document);
    fprintf(stream, "%s\n", text);
    cJSON_free(text);
}

void json_write(cJSON *document, FILE *stream)
{
    json_print(document, stream);
    cJSON_Delete(document);
}

/* ---------------------------------------------------------------- building */

static cJSON *add(cJSON *parent, const char *key, cJSON *item)
{
    if (key)
        cJSON_AddItemToObject(parent, key, item);
    else
        cJSON_AddItemToArray(parent, item);
    return item;
}

cJSON *json_add_object(cJSON *parent, const char *key)
{
    return add(parent, key, cJSON_CreateObject());
}

cJSON *json_add_array(cJSON *parent, const char *key)
{
    return add(parent, key, cJSON_CreateArray());
}

void json_add_string(cJSON *parent, const char *key, const char *value)
{
    char *clean = xstrdup(value);
    text_clean(clean, true);
    add(parent, key, cJSON_CreateString(clean));
    free(clean);
}

/* A double would round numbers above 2^53. */
__attribute__((format(printf, 3, 4))) static void add_raw(cJSON *parent, const char *key,
                                                          const char *format, ...)
{
    char text[32];
    FORMAT_INTO(text, sizeof text, format);
    add(parent, key, cJSON_CreateRaw(text));
}

void json_add_number(cJSON *parent, const char *key, uint64_t value)
{
    add_raw(parent, key, "%" PRIu64, value);
}

void json_add_numbers(cJSON *parent, const char *key, const uint64_t *values, size_t count)
{
    cJSON *array = json_add_array(parent, key);
    for (size_t i = 0; i < count; i++)
        json_add_number(array, NULL, values[i]);
}

void json_add_integers(cJSON *parent, const char *key, const int64_t *values, size_t count)
{
    cJSON *array = json_add_array(parent, key);
    for (size_t i = 0; i < count; i++)
        add_raw(array, NULL, "%" PRId64, values[i]);
}

void json_add_members(cJSON *object, const struct json_member *members)
{
    for (; members->key; members++)
        switch (members->kind) {
        case JSON_NOTHING: break;
        case JSON_STRING:
            if (members->string)
                json_add_string(object, members->key, members->string);
            else
                add(object, members->key, cJSON_CreateNull());
            break;
        case JSON_NUMBER: json_add_number(object, members->key, members->number); break;
        case JSON_INTEGER: add_raw(object, members->key, "%" PRId64, members->integer); break;
        case JSON_DECIMAL: add_raw(object, members->key, "%.8g", members->decimal); break;
        case JSON_FLAG: add(object, members->key, cJSON_CreateBool(members->flag)); break;
        }
}

struct json_member json_text_member(const char *key, const char *text)
{
    return JSON_IF(text && *text, STRING(key, text));
}

cJSON *json_row(cJSON *list, const char *key, const char *value)
{
    JSON_EACH(row, list)
    {
        if (json_is(row, key, value))
            return row;
    }
    cJSON *row = json_add_object(list, NULL);
    json_add_string(row, key, value);
    return row;
}

void json_increase(cJSON *object, const char *key, uint64_t value)
{
    cJSON *sum = cJSON_GetObjectItemCaseSensitive(object, key);
    if (sum)
        cJSON_SetNumberValue(sum, sum->valuedouble + (double)value);
    else
        add(object, key, cJSON_CreateNumber((double)value));
}

/* ---------------------------------------------------------------- reading */

cJSON *json_first(const cJSON *list)
{
    return list ? list->child : NULL;
}

const cJSON *json_at(const cJSON *object, const char *path)
{
    char name[32];
    const char *dot = strchr(path, '.');
    if (!dot)
        return cJSON_GetObjectItemCaseSensitive(object, path);
    snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
    return json_at(cJSON_GetObjectItemCaseSensitive(object, name), dot + 1);
}

const char *json_text(const cJSON *object, const char *path)
{
    const char *text = cJSON_GetStringValue(json_at(object, path));
    return text ? text : "";
}

bool json_is(const cJSON *object, const char *path, const char *text)
{
    return strcmp(json_text(object, path), text) == 0;
}

bool json_any(const cJSON *list, const char *key)
{
    JSON_EACH(item, list)
    {
        if (cJSON_IsTrue(json_at(item, key)))
            return true;
    }
    return false;
}

uint64_t json_number_at(const cJSON *object, const char *path)
{
    const cJSON *item = json_at(object, path);
    if (cJSON_IsArray(item))
        return (uint64_t)cJSON_GetArraySize(item);
    return cJSON_IsRaw(item) ? strtoull(item->valuestring, NULL, 10) : json_number_of(item);
}

bool json_decimal_of(const cJSON *item, double *value)
{
    *value = cJSON_IsRaw(item) ? strtod(item->valuestring, NULL) : cJSON_GetNumberValue(item);
    return cJSON_IsRaw(item) || cJSON_IsNumber(item);
}

uint64_t json_number_of(const cJSON *item)
{
    const double limit = 9007199254740992.0; /* 2^53 */
    return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < limit
               ? (uint64_t)item->valuedouble
               : 0;
}

struct sorted {
    cJSON *item;
    uint64_t value;
    size_t place;
};

static int larger_first(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return (x->place > y->place) - (x->place < y->place);
}

void json_sort(cJSON *list, const char *key)
{
    const size_t count = (size_t)cJSON_GetArraySize(list);
    struct sorted *items = xcalloc(count, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        cJSON *item = cJSON_DetachItemViaPointer(list, list->child);
        items[i] = (struct sorted){item, json_number_at(item, key), i};
    }
    qsort(items, count, sizeof *items, larger_first);
    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToArray(list, items[i].item);
    free(items);
}
