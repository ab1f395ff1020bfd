/* JSON by cJSON, with integers that stay exact and one look at the end for a lack of memory. */
#ifndef HEALCL_REPORT_JSON_H
#define HEALCL_REPORT_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

struct json {
    cJSON *top;
    bool failed; /* something had no memory */
};

/* An object with the version of healcl in it, which every report begins with. */
void json_begin(struct json *json, const char *version);

/* Prints the whole and frees it. HEALCL_NO_MEMORY, and nothing printed, where memory was lacking.
 */
enum healcl_status json_print(struct json *json, FILE *stream);

/* All add to parent: under key to an object, and at its end to an array, with key NULL. */
cJSON *json_object(struct json *json, cJSON *parent, const char *key);
cJSON *json_array(struct json *json, cJSON *parent, const char *key);
void json_string(struct json *json, cJSON *parent, const char *key, const char *value);
void json_string_or_null(struct json *json, cJSON *parent, const char *key, const char *value);
void json_number(struct json *json, cJSON *parent, const char *key, uint64_t value);
void json_integer(struct json *json, cJSON *parent, const char *key, int64_t value);
void json_decimal(struct json *json, cJSON *parent, const char *key, double value); /* 8 digits */
void json_bool(struct json *json, cJSON *parent, const char *key, bool value);
void json_null(struct json *json, cJSON *parent, const char *key);

/* The number that item is; 0 where it is none, or not in [0, 2^53), below which doubles are exact.
 */
uint64_t json_number_of(const cJSON *item);

#endif
