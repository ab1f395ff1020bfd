/*
 * Typed access to the cJSON tree of one entry, as the scanner has rewritten it (see scan.h).
 * A value may be NULL everywhere: a key that is missing. Messages speak of values by what: a
 * key in quotes such as "'inf_name'", or a short noun.
 */
#ifndef HEALCL_TRANSCRIPT_VALUE_H
#define HEALCL_TRANSCRIPT_VALUE_H

#include <cjson/cJSON.h>

#include "core/status.h"

/* "an object", "a string", ..., "missing" */
const char *value_kind(const cJSON *value);

/* Whether a value is null or missing. */
bool value_is_nothing(const cJSON *value);

/* The value of a key, NULL where it is missing. Refuses what is no object, and a key that appears
 * twice: readers differ in which one they take. */
enum healcl_status value_member(const cJSON *object, const char *key, const cJSON **value,
                                struct healcl_error *error);

/* Refuses what is no object, and an object whose __type__ is another one; it may have none. */
enum healcl_status value_check_tag(const cJSON *object, const char *tag,
                                   struct healcl_error *error);

/* The characters of a string, not NULL; NULL for any other value. */
const char *value_text_or_null(const cJSON *value);

/* The characters of a string; refuses any other value. */
enum healcl_status value_text(const cJSON *value, const char *what, const char **text,
                              struct healcl_error *error);

/* The string of a constant: itself in the plain spelling, {"__type__":TAG,"value":...} in the
 * tagged one. */
enum healcl_status value_constant(const cJSON *value, const char *tag, const char *what,
                                  const char **text, struct healcl_error *error);

/* A number that is an integer in [-2^63, 2^63). */
enum healcl_status value_integer(const cJSON *value, const char *what, int64_t *integer,
                                 struct healcl_error *error);

/* The place of a base64 string in the file, and what base64_good says of it: what the scanner has
 * made of a key "data". */
enum healcl_status value_span(const cJSON *value, const char *what, size_t *offset, size_t *length,
                              size_t *good, struct healcl_error *error);

#endif
