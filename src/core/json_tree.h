/* JSON trees of untrusted texts. */
#ifndef HEALCL_CORE_JSON_TREE_H
#define HEALCL_CORE_JSON_TREE_H

#include <cjson/cJSON.h>

#include "core/status.h"

enum { JSON_DEPTH_MAX = 128 }; /* of nested lists and objects */

/*
 * Parses text, `bytes` bytes followed by a 0, as one JSON value. cJSON takes at least 64 bytes for
 * each value and name, so they are counted first. More than `most`, or too deep nesting, is
 * refused. The caller frees *tree with cJSON_Delete. If the text is not JSON, *tree is NULL, and
 * *stop is the offset of the offending byte; stop may be NULL. Errors: HEALCL_REFUSED, with the
 * limit; HEALCL_NO_MEMORY.
 */
enum healcl_status json_tree_read(const char *text, size_t bytes, size_t most, cJSON **tree,
                                  size_t *stop, struct healcl_error *error);

#endif
