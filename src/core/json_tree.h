/* JSON as a tree, of texts that anybody may have written. */
#ifndef HEALCL_CORE_JSON_TREE_H
#define HEALCL_CORE_JSON_TREE_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "core/status.h"

enum { JSON_DEPTH_MAX = 128 }; /* of lists and objects in each other */

/*
 * Reads text, of so many bytes with a 0 behind them, as one JSON value. cJSON takes 64 bytes and
 * more for each value and each name: so they are counted before, and refused where they are more
 * than `most` or nest too deep. *tree is freed with cJSON_Delete; NULL where the text is no JSON,
 * and *stop, which may be NULL, then tells at which byte. Errors: HEALCL_REFUSED, with the limit;
 * HEALCL_NO_MEMORY.
 */
enum healcl_status json_tree_read(const char *text, size_t bytes, size_t most, cJSON **tree,
                                  size_t *stop, struct healcl_error *error);

#endif
