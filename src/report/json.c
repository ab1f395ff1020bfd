#include "report/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

void json_begin(struct json *json, const char *version)
{
    *json = (struct json){.top = cJSON_CreateObject()};
    json->failed = !json->top;
    json_string(json, json->top, "healcl", version);
}

enum healcl_status json_print(struct json *json, FILE *stream)
{
    char *text = json->failed ? NULL : cJSON_Print(json->top);
    if (text)
        fprintf(stream, "%s\n", text);
    cJSON_free(text);
    cJSON_Delete(json->top);
    *json = (struct json){.top = NULL};
    return text ? HEALCL_OK : HEALCL_NO_MEMORY;
}

static cJSON *add(struct json *json, cJSON *parent, const char *key, cJSON *item)
{
    bool added = item && (key ? cJSON_AddItemToObject(parent, key, item)
                              : cJSON_AddItemToArray(parent, item));
    if (added)
        return item;
    cJSON_Delete(item);
    json->failed = true;
    return NULL;
}

cJSON *json_object(struct json *json, cJSON *parent, const char *key)
{
    return add(json, parent, key, cJSON_CreateObject());
}

cJSON *json_array(struct json *json, cJSON *parent, const char *key)
{
    return add(json, parent, key, cJSON_CreateArray());
}

void json_string(struct json *json, cJSON *parent, const char *key, const char *value)
{
    char *clean = strdup(value);
    if (clean)
        text_clean(clean, true);
    add(json, parent, key, clean ? cJSON_CreateString(clean) : NULL);
    free(clean);
}

void json_string_or_null(struct json *json, cJSON *parent, const char *key, const char *value)
{
    if (value)
        json_string(json, parent, key, value);
    else
        json_null(json, parent, key);
}

/* A double would round what is above 2^53. */
void json_number(struct json *json, cJSON *parent, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    add(json, parent, key, cJSON_CreateRaw(text));
}

void json_integer(struct json *json, cJSON *parent, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    add(json, parent, key, cJSON_CreateRaw(text));
}

void json_decimal(struct json *json, cJSON *parent, const char *key, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.8g", value);
    add(json, parent, key, cJSON_CreateRaw(text));
}

void json_bool(struct json *json, cJSON *parent, const char *key, bool value)
{
    add(json, parent, key, cJSON_CreateBool(value));
}

void json_null(struct json *json, cJSON *parent, const char *key)
{
    add(json, parent, key, cJSON_CreateNull());
}

uint64_t json_number_of(const cJSON *item)
{
    const double limit = 9007199254740992.0; /* 2^53 */
    return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < limit
               ? (uint64_t)item->valuedouble
               : 0;
}
