/*
 * Typed access to the cJSON tree of one entry, as rewritten by the scanner (see scan.h). A value
 * may be NULL everywhere; it then stands for a missing key. Messages call a value `what`: a key in
 * quotes such as "'inf_name'", or a short noun.
 */
#ifndef HEALCL_TRANSCRIPT_VALUE_H
#define HEALCL_TRANSCRIPT_VALUE_H

#include <cjson/cJSON.h>

#include "core/status.h"

/* "an object", "a string", ..., "missing" */
const char *value_kind(const cJSON *value);

/* Whether a value is null or missing. */
bool value_is_nothing(const cJSON *value);

/* The value of a key, NULL if it is missing. Refuses a value that is not an object, and a key that
 * appears twice: readers differ in which one they take. */
enum healcl_status value_member(const cJSON *object, const char *key, const cJSON **value,
                                struct healcl_error *error);

/* Refuses a value that is not an object, and an object with another __type__. __type__ may be
 * missing. */
enum healcl_status value_check_tag(const cJSON *object, const char *tag,
                                   struct healcl_error *error);

/* The characters of a string; NULL for any other value. */
const char *value_text_or_null(const cJSON *value);

/* The characters of a string; refuses any other value. */
enum healcl_status value_text(const cJSON *value, const char *what, const char **text,
                              struct healcl_error *error);

/* The string of a constant. Plain spelling: the string itself. Tagged spelling:
 * {"__type__":TAG,"value":...}. */
enum healcl_status value_constant(const cJSON *value, const char *tag, const char *what,
                                  const char **text, struct healcl_error *error);

/* Reads a number that is an integer in [-2^63, 2^63). */
enum healcl_status value_integer(const cJSON *value, const char *what, int64_t *integer,
                                 struct healcl_error *error);

/* Reads the span of a base64 string in the file, and its base64_good, from what the scanner wrote
 * for a key "data". */
enum healcl_status value_span(const cJSON *value, const char *what, size_t *offset, size_t *length,
                              size_t *good, struct healcl_error *error);

#endif
