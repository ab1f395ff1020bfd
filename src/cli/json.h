/* JSON with cJSON, but with exact integers. The program ends if memory runs out. */
#ifndef HEALCL_CLI_JSON_H
#define HEALCL_CLI_JSON_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "core/status.h"

/* Makes an object that contains healcl's version; every report begins with it. */
cJSON *json_report(void);

/* Print a complete document. json_write also frees it. */
void json_print(const cJSON *document, FILE *stream);
void json_write(cJSON *document, FILE *stream);

/* ---- building ---- */

/* All add to parent: under `key` in an object; at the end of an array if key is NULL. */
cJSON *json_add_object(cJSON *parent, const char *key);
cJSON *json_add_array(cJSON *parent, const char *key);
void json_add_string(cJSON *parent, const char *key, const char *value);
void json_add_number(cJSON *parent, const char *key, uint64_t value);
void json_add_numbers(cJSON *parent, const char *key, const uint64_t *values, size_t count);
void json_add_integers(cJSON *parent, const char *key, const int64_t *values, size_t count);

/* Adds several members: JSON_ADD(object, STRING("name", name), NUMBER("steps", count)). A NULL
 * string becomes null. Decimals have 8 digits. Members of JSON_IF are left out unless the condition
 * holds; texts of TEXT if they are NULL or empty. */
struct json_member {
    const char *key;
    enum { JSON_NOTHING, JSON_STRING, JSON_NUMBER, JSON_INTEGER, JSON_DECIMAL, JSON_FLAG } kind;
    const char *string;
    uint64_t number;
    int64_t integer;
    double decimal;
    bool flag;
};
void json_add_members(cJSON *object, const struct json_member *members);
struct json_member json_text_member(const char *key, const char *text);

#define JSON_ADD(object, ...) \
    json_add_members(object, (const struct json_member[]){__VA_ARGS__, {.key = NULL}})
#define JSON_IF(condition, ...) ((condition) ? __VA_ARGS__ : (struct json_member){.key = ""})
#define TEXT(name, value) json_text_member(name, value)
#define STRING(name, value) JSON_MEMBER(name, JSON_STRING, string, value)
#define NUMBER(name, value) JSON_MEMBER(name, JSON_NUMBER, number, value)
#define INTEGER(name, value) JSON_MEMBER(name, JSON_INTEGER, integer, value)
#define DECIMAL(name, value) JSON_MEMBER(name, JSON_DECIMAL, decimal, value)
#define FLAG(name, value) JSON_MEMBER(name, JSON_FLAG, flag, value)
#define JSON_MEMBER(name, type, member, value) \
    ((struct json_member){.key = (name), .kind = (type), .member = (value)})

/* Returns the object of a list in which `key` has this value. Adds one if there is none. */
cJSON *json_row(cJSON *list, const char *key, const char *value);

/* Adds to a sum, which begins at 0 and is exact up to 2^53. */
void json_increase(cJSON *object, const char *key, uint64_t value);

/* Sorts the objects of a list by a number, in descending order. */
void json_sort(cJSON *list, const char *key);

/* ---- reading ---- */

/* Runs the following statement for each item of a list or object, which may be NULL. */
#define JSON_EACH(item, list) for (cJSON *item = json_first(list); item; item = item->next)
cJSON *json_first(const cJSON *list);

/* The member at a path such as "results.total", or NULL. */
const cJSON *json_at(const cJSON *object, const char *path);

/* The text at a path, else "". It lives as long as the object. */
const char *json_text(const cJSON *object, const char *path);

/* Whether the text at a path equals `text`. */
bool json_is(const cJSON *object, const char *path, const char *text);

/* The integer at a path, or the length of an array there; else 0. */
uint64_t json_number_at(const cJSON *object, const char *path);

/* Whether a member of any object of a list is true. */
bool json_any(const cJSON *list, const char *key);

/* Whether item is a number; *value is that number. */
bool json_decimal_of(const cJSON *item, double *value);

/* The number in an item. 0 if it is not a number or not in [0, 2^53), where doubles are exact. */
uint64_t json_number_of(const cJSON *item);

#endif
