/* JSON by cJSON, with integers that stay exact. Memory that runs out ends the program. */
#ifndef HEALCL_CLI_JSON_H
#define HEALCL_CLI_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

/* An object with the version of healcl in it, which every report begins with. */
cJSON *json_report(void);

/* Print a whole document; json_write frees it. */
void json_print(const cJSON *document, FILE *stream);
void json_write(cJSON *document, FILE *stream);

/* ---- building ---- */

/* All add to parent: under key to an object, and at its end to an array, with key NULL. */
cJSON *json_add_object(cJSON *parent, const char *key);
cJSON *json_add_array(cJSON *parent, const char *key);
void json_add_string(cJSON *parent, const char *key, const char *value);
void json_add_number(cJSON *parent, const char *key, uint64_t value);
void json_add_numbers(cJSON *parent, const char *key, const uint64_t *values, size_t count);
void json_add_integers(cJSON *parent, const char *key, const int64_t *values, size_t count);

/* Adds several members: JSON_ADD(object, STRING("name", name), NUMBER("steps", count)). A string of
 * NULL is null; decimals have 8 digits. */
struct json_member {
    const char *key;
    enum { JSON_STRING, JSON_NUMBER, JSON_INTEGER, JSON_DECIMAL, JSON_FLAG } kind;
    const char *string;
    uint64_t number;
    int64_t integer;
    double decimal;
    bool flag;
};
void json_add_members(cJSON *object, const struct json_member *members);

#define JSON_ADD(object, ...) \
    json_add_members(object, (const struct json_member[]){__VA_ARGS__, {.key = NULL}})
#define STRING(name, value) JSON_MEMBER(name, JSON_STRING, string, value)
#define NUMBER(name, value) JSON_MEMBER(name, JSON_NUMBER, number, value)
#define INTEGER(name, value) JSON_MEMBER(name, JSON_INTEGER, integer, value)
#define DECIMAL(name, value) JSON_MEMBER(name, JSON_DECIMAL, decimal, value)
#define FLAG(name, value) JSON_MEMBER(name, JSON_FLAG, flag, value)
#define JSON_MEMBER(name, type, member, value) \
    ((struct json_member){.key = (name), .kind = (type), .member = (value)})

/* The object of a list whose key has that value; it is added where there is none. */
cJSON *json_row(cJSON *list, const char *key, const char *value);

/* Adds to a sum, which is exact up to 2^53; it begins as 0. */
void json_increase(cJSON *object, const char *key, uint64_t value);

/* Sorts the objects of a list by a number, the largest first. */
void json_sort(cJSON *list, const char *key);

/* ---- reading ---- */

/* The member that a path such as "results.total" leads to, or NULL. */
const cJSON *json_at(const cJSON *object, const char *path);

/* The text there, which lives as long as the item; else "". */
const char *json_text(const cJSON *object, const char *path);

/* Whether it is that text. */
bool json_is(const cJSON *object, const char *path, const char *text);

/* The integer at a path, or the count of an array; else 0. */
uint64_t json_number_at(const cJSON *object, const char *path);

/* The number that item is, and whether it is any. */
bool json_decimal_of(const cJSON *item, double *value);

/* The number that item is; 0 where it is none, or not in [0, 2^53), below which doubles are exact.
 */
uint64_t json_number_of(const cJSON *item);

#endif
