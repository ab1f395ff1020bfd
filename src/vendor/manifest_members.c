/* Reads members of a manifest's JSON. */
#define REFUSED_CAUSE HEALCL_CAUSE_FORMAT
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/manifest_reader.h"

enum { FIELD_SIZE = 256 };

/* ---------------------------------------------------------------- where something stands */

struct place {
    const char *at;
    unsigned line;
    char field[FIELD_SIZE];
};

static void pass_spaces(struct place *place)
{
    for (; *place->at && (unsigned char)*place->at <= ' '; place->at++)
        place->line += *place->at == '\n';
}

static void pass_string(struct place *place)
{
    for (place->at++; *place->at && *place->at != '"'; place->at++)
        if (*place->at == '\\' && place->at[1])
            place->at++;
    place->at += *place->at == '"';
}

/* Finds a node in the text of another node. The text is valid JSON, and cJSON kept the order of its
 * parts. */
static bool find_node(struct place *place, const cJSON *node, const cJSON *wanted)
{
    pass_spaces(place);
    if (node == wanted)
        return true;
    const size_t used = strlen(place->field);
    const bool is_object = cJSON_IsObject(node);
    if (!is_object && !cJSON_IsArray(node)) {
        if (*place->at == '"')
            pass_string(place);
        else
            place->at += strcspn(place->at, ",]} \t\r\n");
        return false;
    }
    size_t index = 0;
    for (const cJSON *child = node->child; child; child = child->next, index++) {
        place->at++; /* the bracket or the comma */
        pass_spaces(place);
        if (is_object) {
            pass_string(place);
            pass_spaces(place);
            place->at++; /* the colon */
            snprintf(place->field + used, FIELD_SIZE - used, "%s%.80s", used > 0 ? "." : "",
                     child->string);
        } else {
            snprintf(place->field + used, FIELD_SIZE - used, "[%zu]", index);
        }
        if (find_node(place, child, wanted))
            return true;
        place->field[used] = 0;
        pass_spaces(place);
    }
    if (!node->child) {
        place->at++;
        pass_spaces(place);
    }
    place->at += *place->at != 0; /* the closing bracket */
    return false;
}

enum healcl_status manifest_refused(const struct reader *reader, const cJSON *node,
                                    const char *member)
{
    const cJSON *child = member ? cJSON_GetObjectItemCaseSensitive(node, member) : NULL;
    struct place place = {.at = reader->text, .line = 1};
    (void)find_node(&place, reader->root, child ? child : node);
    const size_t used = strlen(place.field);
    if (member && !child)
        snprintf(place.field + used, FIELD_SIZE - used, "%s%.80s", used > 0 ? "." : "", member);
    error_prefix(reader->error, "%.200s:%u: %s%s", reader->file, place.line, place.field,
                 *place.field ? ": " : "");
    return HEALCL_REFUSED;
}

/* ---------------------------------------------------------------- members */

enum healcl_status manifest_check_members(const struct reader *reader, const cJSON *object,
                                          const char *const *names)
{
    if (!cJSON_IsObject(object))
        REFUSE_AT(reader, object, NULL, "must be an object");
    for (const cJSON *child = object->child; child; child = child->next) {
        size_t i = 0;
        while (names[i] && strcmp(names[i], child->string) != 0)
            i++;
        if (!names[i])
            REFUSE_AT(reader, child, NULL, "is not known");
        if (manifest_member(object, child->string) != child)
            REFUSE_AT(reader, child, NULL, "appears twice");
    }
    return HEALCL_OK;
}

const cJSON *manifest_member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

enum healcl_status manifest_keep(const struct reader *reader, const char *text, const char **kept)
{
    *kept = arena_strdup(reader->arena, text);
    NEED_MEMORY(*kept, reader->error);
    return HEALCL_OK;
}

enum healcl_status manifest_read_text(const struct reader *reader, const cJSON *object,
                                      const char *name, bool needed, size_t most, const char **text)
{
    const cJSON *value = manifest_member(object, name);
    *text = NULL;
    if (!value && !needed)
        return HEALCL_OK;
    if (!value)
        REFUSE_AT(reader, object, name, "is missing");
    if (!cJSON_IsString(value) || !*value->valuestring)
        REFUSE_AT(reader, object, name, "must be a string");
    if (strlen(value->valuestring) > most)
        REFUSE_AT(reader, object, name, "is longer than %zu characters", most);
    for (const char *c = value->valuestring; *c; c++)
        if (*c < ' ' || *c > '~')
            REFUSE_AT(reader, object, name, "contains more than printable ASCII");
    return manifest_keep(reader, value->valuestring, text);
}

bool manifest_is_word(const char *text)
{
    static const char all[] = "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const size_t length = strlen(text);
    return length > 0 && length <= WORD_MAX && !(*text >= '0' && *text <= '9') &&
           strspn(text, all) == length;
}

enum healcl_status manifest_read_word(const struct reader *reader, const cJSON *object,
                                      const char *name, const char **text)
{
    TRY(manifest_read_text(reader, object, name, true, WORD_MAX, text));
    if (!manifest_is_word(*text))
        REFUSE_AT(reader, object, name, "'%s' is not a name of letters, digits and underscores",
                  *text);
    return HEALCL_OK;
}

enum healcl_status manifest_read_list(const struct reader *reader, const cJSON *object,
                                      const char *name, bool needed, int most, const cJSON **list)
{
    *list = manifest_member(object, name);
    if (!*list && !needed)
        return HEALCL_OK;
    if (!*list)
        REFUSE_AT(reader, object, name, "is missing");
    if (!cJSON_IsArray(*list))
        REFUSE_AT(reader, object, name, "must be a list");
    if (cJSON_GetArraySize(*list) > most)
        REFUSE_AT(reader, object, name, "has more than %d items", most);
    return HEALCL_OK;
}

enum healcl_status manifest_read_choice(const struct reader *reader, const cJSON *object,
                                        const char *name, const char *const *words,
                                        const char *absent, size_t *index)
{
    const char *text;
    TRY(manifest_read_text(reader, object, name, false, TEXT_MAX, &text));
    for (*index = 0; words[*index]; ++*index)
        if (strcmp(words[*index], text ? text : absent) == 0)
            return HEALCL_OK;
    REFUSE_AT(reader, object, name, "'%s' is not an allowed value", text);
}

enum healcl_status manifest_read_expression(const struct reader *reader, const cJSON *node,
                                            const struct expression_names *names,
                                            struct expression **expression)
{
    char number[32];
    const char *text = number;
    if (cJSON_IsNumber(node)) {
        if (!(fabs(node->valuedouble) <= 9007199254740992.0) ||
            floor(node->valuedouble) != node->valuedouble)
            REFUSE_AT(reader, node, NULL, "must be an integer up to 2^53, or a string");
        snprintf(number, sizeof number, "%.0f", node->valuedouble);
    } else if (cJSON_IsString(node)) {
        text = node->valuestring;
    } else {
        REFUSE_AT(reader, node, NULL, "must be an expression: a string or an integer");
    }
    TRY_AT(reader, node, NULL,
           expression_parse(text, names, reader->arena, expression, reader->error));
    return HEALCL_OK;
}

enum healcl_status manifest_read_expression_member(const struct reader *reader, const cJSON *object,
                                                   const char *name, bool needed,
                                                   const struct expression_names *names,
                                                   struct expression **expression)
{
    const cJSON *node = manifest_member(object, name);
    if (!node && needed)
        REFUSE_AT(reader, object, name, "is missing");
    *expression = NULL;
    return node ? manifest_read_expression(reader, node, names, expression) : HEALCL_OK;
}

enum healcl_status manifest_read_integer(const struct reader *reader, const cJSON *node,
                                         int64_t *value)
{
    char none[] = "-", *end = none;
    errno = 0;
    if (cJSON_IsNumber(node) && fabs(node->valuedouble) <= 9007199254740992.0 &&
        floor(node->valuedouble) == node->valuedouble) {
        *value = (int64_t)node->valuedouble;
        return HEALCL_OK;
    }
    if (cJSON_IsString(node) && *node->valuestring &&
        strspn(node->valuestring, "-0123456789") == strlen(node->valuestring))
        *value = strtoll(node->valuestring, &end, 10);
    if (*end || errno == ERANGE)
        REFUSE_AT(reader, node, NULL, "must be a 64-bit integer, as a string above 2^53");
    return HEALCL_OK;
}
