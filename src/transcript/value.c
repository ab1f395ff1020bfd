#include "transcript/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The characters after the scanner's mark; NULL for any other value. */
static const char *marked(const cJSON *value, char mark)
{
    return cJSON_IsString(value) && value->valuestring[0] == mark ? value->valuestring + 1 : NULL;
}

const char *value_kind(const cJSON *value)
{
    if (!value)
        return "missing";
    if (cJSON_IsNull(value))
        return "null";
    if (cJSON_IsBool(value))
        return "a boolean";
    if (cJSON_IsArray(value))
        return "a list";
    if (cJSON_IsObject(value))
        return "an object";
    return marked(value, '#') ? "a number" : "a string";
}

bool value_is_nothing(const cJSON *value)
{
    return !value || cJSON_IsNull(value);
}

enum healcl_status value_member(const cJSON *object, const char *key, const cJSON **value,
                                struct healcl_error *error)
{
    if (!cJSON_IsObject(object))
        REFUSE(error, "an object with '%s' is expected, not %s", key,
               object ? value_kind(object) : "nothing");
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, key);
    for (const cJSON *other = found ? found->next : NULL; other; other = other->next)
        if (strcmp(other->string, key) == 0)
            REFUSE(error, "the key '%s' appears twice", key);
    *value = found;
    return HEALCL_OK;
}

enum healcl_status value_check_tag(const cJSON *object, const char *tag, struct healcl_error *error)
{
    const cJSON *type;
    const char *text;
    if (!cJSON_IsObject(object))
        REFUSE(error, "an object of type '%s' is expected, not %s", tag,
               object ? value_kind(object) : "nothing");
    TRY(value_member(object, "__type__", &type, error));
    if (!type)
        return HEALCL_OK;
    TRY(value_text(type, "'__type__'", &text, error));
    if (strcmp(text, tag) != 0)
        REFUSE(error, "'__type__' is '%.80s', not '%s'", text, tag);
    return HEALCL_OK;
}

const char *value_text_or_null(const cJSON *value)
{
    return marked(value, '$');
}

enum healcl_status value_text(const cJSON *value, const char *what, const char **text,
                              struct healcl_error *error)
{
    *text = marked(value, '$');
    if (!*text)
        REFUSE(error, "%s is %s, not a string", what, value_kind(value));
    return HEALCL_OK;
}

enum healcl_status value_constant(const cJSON *value, const char *tag, const char *what,
                                  const char **text, struct healcl_error *error)
{
    if (cJSON_IsObject(value)) {
        TRY(value_check_tag(value, tag, error));
        TRY(value_member(value, "value", &value, error));
    }
    return value_text(value, what, text, error);
}

enum healcl_status value_integer(const cJSON *value, const char *what, int64_t *integer,
                                 struct healcl_error *error)
{
    const char *number = marked(value, '#');
    const char *text = marked(value, '$');
    if (text)
        REFUSE(error, "%s is the string '%.80s', not an integer", what, text);
    if (!number)
        REFUSE(error, "%s is %s, not an integer", what, value_kind(value));
    /* The scanner has checked JSON's grammar of numbers, so no other cases exist. */
    if (strpbrk(number, "eE"))
        REFUSE(error, "%s is %.80s: an integer has no exponent", what, number);
    if (strchr(number, '.'))
        REFUSE(error, "%s is %.80s: an integer has no fraction", what, number);
    errno = 0;
    long long parsed = strtoll(number, NULL, 10);
    if (errno == ERANGE || parsed < INT64_MIN || parsed > INT64_MAX)
        REFUSE(error, "%s is %.80s: outside of the 64-bit range", what, number);
    *integer = parsed;
    return HEALCL_OK;
}

enum healcl_status value_span(const cJSON *value, const char *what, size_t *offset, size_t *length,
                              size_t *good, struct healcl_error *error)
{
    const char *text = marked(value, '@');
    if (!text)
        REFUSE(error, "%s is %s, not a string", what, value_kind(value));
    char *next;
    *offset = (size_t)strtoull(text, &next, 10);
    *length = (size_t)strtoull(next + 1, &next, 10);
    *good = (size_t)strtoull(next + 1, &next, 10);
    return HEALCL_OK;
}
