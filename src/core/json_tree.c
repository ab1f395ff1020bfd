#define REFUSED_CAUSE HEALCL_CAUSE_FORMAT
#include "core/json_tree.h"

#include <errno.h>
#include <string.h>

/* Returns the position after the string that begins at `at`. */
static const char *pass_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\';
    return at < end ? at + 1 : end;
}

/* Counts at most the actual values. If a text is not JSON, cJSON refuses it later. */
static enum healcl_status check_size(const char *text, size_t bytes, size_t most,
                                     struct healcl_error *error)
{
    size_t count = 1, depth = 0;
    for (const char *at = text, *end = text + bytes; at < end;) {
        if (*at == '"') {
            at = pass_string(at, end);
            continue;
        }
        const bool opens = *at == '[' || *at == '{';
        count += opens || *at == ',' || *at == ':';
        depth += opens;
        depth -= depth > 0 && (*at == ']' || *at == '}');
        at++;
        if (count > most)
            REFUSE(error, "the JSON has more than %zu values and names", most);
        if (depth > JSON_DEPTH_MAX)
            REFUSE(error, "the JSON nests deeper than %d", JSON_DEPTH_MAX);
    }
    return HEALCL_OK;
}

enum healcl_status json_tree_read(const char *text, size_t bytes, size_t most, cJSON **tree,
                                  size_t *stop, struct healcl_error *error)
{
    const char *end = text;
    *tree = NULL;
    TRY(check_size(text, bytes, most, error));
    errno = 0; /* cJSON itself does not report why it failed */
    /* A 0 byte would end the text early. */
    if (!memchr(text, 0, bytes))
        *tree = cJSON_ParseWithLengthOpts(text, bytes + 1, &end, true);
    if (!*tree && errno == ENOMEM)
        NO_MEMORY(error);
    if (stop)
        *stop = (size_t)(end - text);
    return HEALCL_OK;
}
