/* Manifests: JSON that tells of operations and kernels, read as if from an enemy. */
#define REFUSED_CAUSE HEALCL_CAUSE_FORMAT
#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/file.h"
#include "core/json_tree.h"
#include "extensions/vendor.h"

enum {
    WORD_MAX = 64,
    TEXT_MAX = 256,
    LIST_MAX = 64,
    SOURCE_MAX = 4 << 20,
    VALUES_MAX = 1 << 17, /* of a manifest's JSON, names among them */
    PATH_SIZE = 1024,
    FIELD_SIZE = 256
};

struct reader {
    struct vendor_operations *operations;
    struct arena *arena;
    const char *folder, *file, *text;
    const cJSON *root;
    bool is_trusted;
    struct healcl_error *error;
    struct pending *pending;
};

/* Native code that a manifest names: it is loaded once all of that is right. */
struct pending {
    const cJSON *object;
    struct vendor_kernel *kernel;
    const char *path, *entry;
    struct pending *next;
};

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

/* Looks for a node in the text of another one, which is valid, and whose parts cJSON has kept in
 * their order. */
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

/* Puts file, line and field in front of a message: those of a node, or of a member that it has or
 * lacks. */
static enum healcl_status refused(const struct reader *reader, const cJSON *node,
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

#define REFUSE_AT(reader, node, member, ...)                       \
    do {                                                           \
        (void)ERROR((reader)->error, HEALCL_REFUSED, __VA_ARGS__); \
        return refused(reader, node, member);                      \
    } while (0)

/* Forwards an error, with the place if it is a refusal. */
#define TRY_AT(reader, node, member, expression)      \
    do {                                              \
        enum healcl_status at_status_ = (expression); \
        if (at_status_ != HEALCL_OK) {                \
            (void)refused(reader, node, member);      \
            return at_status_;                        \
        }                                             \
    } while (0)

/* ---------------------------------------------------------------- members */

/* Refuses what is no object, and members that are not among those named, up to NULL, or come twice.
 */
MUST_CHECK static enum healcl_status check_members(const struct reader *reader, const cJSON *object,
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
        for (const cJSON *other = object->child; other != child; other = other->next)
            if (strcmp(other->string, child->string) == 0)
                REFUSE_AT(reader, child, NULL, "is there twice");
    }
    return HEALCL_OK;
}

static const cJSON *member_of(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

MUST_CHECK static enum healcl_status keep(const struct reader *reader, const char *text,
                                          const char **kept)
{
    *kept = arena_strdup(reader->arena, text);
    if (!*kept)
        NO_MEMORY(reader->error);
    return HEALCL_OK;
}

/* The manifest's name, without its folder. */
MUST_CHECK static enum healcl_status keep_file_name(const struct reader *reader, const char **name)
{
    const char *slash = strrchr(reader->file, '/');
    return keep(reader, slash ? slash + 1 : reader->file, name);
}

/* A text of printable ASCII; *text stays NULL where it is absent and may be. */
MUST_CHECK static enum healcl_status read_text(const struct reader *reader, const cJSON *object,
                                               const char *name, bool needed, size_t most,
                                               const char **text)
{
    const cJSON *value = member_of(object, name);
    *text = NULL;
    if (!value && !needed)
        return HEALCL_OK;
    if (!value)
        REFUSE_AT(reader, object, name, "is missing");
    if (!cJSON_IsString(value) || !*value->valuestring)
        REFUSE_AT(reader, object, name, "must be a text");
    if (strlen(value->valuestring) > most)
        REFUSE_AT(reader, object, name, "is longer than %zu characters", most);
    for (const char *c = value->valuestring; *c; c++)
        if (*c < ' ' || *c > '~')
            REFUSE_AT(reader, object, name, "holds more than printable ASCII");
    return keep(reader, value->valuestring, text);
}

static bool is_word(const char *text)
{
    static const char all[] = "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return !(*text >= '0' && *text <= '9') && strspn(text, all) == strlen(text);
}

/* A name as C has them. */
MUST_CHECK static enum healcl_status read_word(const struct reader *reader, const cJSON *object,
                                               const char *name, bool needed, const char **text)
{
    TRY(read_text(reader, object, name, needed, WORD_MAX, text));
    if (*text && !is_word(*text))
        REFUSE_AT(reader, object, name, "'%s' is no name of letters, digits and underscores",
                  *text);
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_bool(const struct reader *reader, const cJSON *object,
                                               const char *name, bool *value)
{
    const cJSON *member = member_of(object, name);
    if (member && !cJSON_IsBool(member))
        REFUSE_AT(reader, object, name, "must be true or false");
    *value = cJSON_IsTrue(member);
    return HEALCL_OK;
}

/* A list of at most so many items; NULL where it is absent. */
MUST_CHECK static enum healcl_status read_list(const struct reader *reader, const cJSON *object,
                                               const char *name, bool needed, int most,
                                               const cJSON **list)
{
    *list = member_of(object, name);
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

/* One of the words of a list that ends with NULL; *index is its place. */
MUST_CHECK static enum healcl_status read_choice(const struct reader *reader, const cJSON *object,
                                                 const char *name, const char *const *words,
                                                 const char *absent, size_t *index)
{
    const char *text;
    TRY(read_text(reader, object, name, !absent, TEXT_MAX, &text));
    for (*index = 0; words[*index]; ++*index)
        if (strcmp(words[*index], text ? text : absent) == 0)
            return HEALCL_OK;
    REFUSE_AT(reader, object, name, "'%s' is none of those there are", text);
}

MUST_CHECK static enum healcl_status read_expression(const struct reader *reader, const cJSON *node,
                                                     const struct expression_names *names,
                                                     struct expression **expression)
{
    char number[32];
    const char *text = number;
    if (cJSON_IsNumber(node)) {
        if (!(fabs(node->valuedouble) <= 9007199254740992.0) ||
            floor(node->valuedouble) != node->valuedouble)
            REFUSE_AT(reader, node, NULL, "is no integer that can be read here: write it as text");
        snprintf(number, sizeof number, "%.0f", node->valuedouble);
    } else if (cJSON_IsString(node)) {
        text = node->valuestring;
    } else {
        REFUSE_AT(reader, node, NULL, "must be an expression: a text or an integer");
    }
    TRY_AT(reader, node, NULL,
           expression_parse(text, names, reader->arena, expression, reader->error));
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_expression_member(const struct reader *reader,
                                                            const cJSON *object, const char *name,
                                                            bool needed,
                                                            const struct expression_names *names,
                                                            struct expression **expression)
{
    const cJSON *node = member_of(object, name);
    if (!node && needed)
        REFUSE_AT(reader, object, name, "is missing");
    *expression = NULL;
    return node ? read_expression(reader, node, names, expression) : HEALCL_OK;
}

MUST_CHECK static enum healcl_status dtype_of(const struct reader *reader, const cJSON *node,
                                              enum dtype *dtype)
{
    for (int i = 0; i < DTYPE_COUNT && cJSON_IsString(node); i++)
        if (strcmp(dtype_name((enum dtype)i), node->valuestring) == 0) {
            *dtype = (enum dtype)i;
            return HEALCL_OK;
        }
    REFUSE_AT(reader, node, NULL, "must be int8, int32 or int64");
}

/* An integer, or one in a text, where JSON's numbers may not be exact. */
MUST_CHECK static enum healcl_status read_integer(const struct reader *reader, const cJSON *node,
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
        REFUSE_AT(reader, node, NULL, "must be an integer of 64 bits: one above 2^53 as a text");
    return HEALCL_OK;
}

/* One dtype or a list of them. */
MUST_CHECK static enum healcl_status read_dtypes(const struct reader *reader, const cJSON *object,
                                                 uint32_t *dtypes)
{
    const cJSON *node = member_of(object, "dtype");
    enum dtype dtype = DTYPE_INT8;
    if (!node)
        REFUSE_AT(reader, object, "dtype", "is missing");
    *dtypes = 0;
    if (cJSON_IsArray(node) && node->child)
        for (const cJSON *item = node->child; item; item = item->next) {
            TRY(dtype_of(reader, item, &dtype));
            *dtypes |= 1u << dtype;
        }
    else {
        TRY(dtype_of(reader, node, &dtype));
        *dtypes = 1u << dtype;
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- files */

enum healcl_status vendor_read_file(const char *path, size_t most, char **text, size_t *length,
                                    struct healcl_error *error)
{
    int file;
    TRY(file_open_regular(path, &file, error));
    char *memory = malloc(most + 2);
    size_t used = 0;
    ssize_t got = memory ? 1 : 0;
    while (memory && got > 0 && used <= most) {
        got = read(file, memory + used, most + 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    (void)close(file);
    if (!memory)
        NO_MEMORY(error);
    if (got < 0 || used > most) {
        free(memory);
        FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT "%s", path,
                 got < 0 ? " cannot be read" : " is too large");
    }
    memory[used] = 0;
    *text = memory;
    *length = used;
    return HEALCL_OK;
}

#define TRUST "only a folder that is trusted may have that: --trust DIR"

/* Whether a link leads out of the folder. What is not there does not. */
static bool leads_out(const char *folder, const char *path)
{
    char *inside = realpath(folder, NULL), *there = inside ? realpath(path, NULL) : NULL;
    const size_t length = inside ? strlen(inside) : 0;
    const bool leads = there && (strncmp(there, inside, length) != 0 ||
                                 (length > 1 && there[length] != '/')); /* "/" has its own */
    free(there);
    free(inside);
    return leads;
}

/* The path of a file in the manifest's folder, that a member names. */
MUST_CHECK static enum healcl_status path_of(const struct reader *reader, const cJSON *object,
                                             const char *member, char path[PATH_SIZE])
{
    const char *name;
    TRY(read_text(reader, object, member, true, TEXT_MAX, &name));
    if (strchr(name, '/') || *name == '.')
        REFUSE_AT(reader, object, member, "must be a file of the manifest's own folder");
    if (snprintf(path, PATH_SIZE, "%s/%s", reader->folder, name) >= PATH_SIZE)
        REFUSE_AT(reader, object, member, "its path is too long");
    if (!reader->is_trusted && leads_out(reader->folder, path))
        REFUSE_AT(reader, object, member, "'%s' is a link out of the manifest's folder: " TRUST,
                  name);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- options of compilers */

/* NAME, or NAME=VALUE. Compilers take texts apart at quotes and backslashes, each in its way. */
static bool is_macro(const char *text)
{
    char name[WORD_MAX + 1];
    const size_t length = strcspn(text, "=");
    if (length == 0 || length > WORD_MAX)
        return false;
    memcpy(name, text, length);
    name[length] = 0;
    return is_word(name) && !strpbrk(text, "\"'\\`");
}

/* A switch as OpenCL 1.2 has them: none of them names a file. */
static bool is_switch(const char *text)
{
    static const char all[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_=+.-";
    if (strcmp(text, "-w") == 0 || strcmp(text, "-Werror") == 0)
        return true;
    return strncmp(text, "-cl-", 4) == 0 && strspn(text, all) == strlen(text);
}

/* Macros and switches alone: other options have compilers read files, and write them. */
MUST_CHECK static enum healcl_status check_options(const struct reader *reader, const cJSON *object,
                                                   const char *options)
{
    bool is_name = false;
    for (const char *at = options + strspn(options, " "); *at; at += strspn(at, " ")) {
        char word[TEXT_MAX + 1];
        const size_t length = strcspn(at, " ");
        memcpy(word, at, length);
        word[length] = 0;
        at += length;
        if (is_name ? is_macro(word)
                    : strcmp(word, "-D") == 0 || is_switch(word) ||
                          (strncmp(word, "-D", 2) == 0 && is_macro(word + 2))) {
            is_name = !is_name && strcmp(word, "-D") == 0;
            continue;
        }
        REFUSE_AT(reader, object, "options",
                  "'%s' is neither -D NAME[=VALUE], -cl-..., -w nor -Werror: " TRUST, word);
    }
    if (is_name)
        REFUSE_AT(reader, object, "options", "the name behind -D is missing");
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- kernels */

MUST_CHECK static enum healcl_status read_source(const struct reader *reader, const cJSON *object,
                                                 struct vendor_kernel *kernel)
{
    char path[PATH_SIZE], *text, name[TEXT_MAX + 32];
    size_t length;
    TRY(path_of(reader, object, "source", path));
    TRY_AT(reader, object, "source",
           vendor_read_file(path, SOURCE_MAX, &text, &length, reader->error));
    enum healcl_status status = HEALCL_OK;
    if (strlen(text) != length)
        status = ERROR(reader->error, HEALCL_REFUSED, "the file holds a byte 0");
    if (status == HEALCL_OK)
        status = keep(reader, text, &kernel->source);
    free(text);
    TRY_AT(reader, object, "source", status);
    snprintf(name, sizeof name, "%s@%016llx", strrchr(path, '/') + 1,
             (unsigned long long)XXH64(kernel->source, length, 0));
    return keep(reader, name, &kernel->program);
}

MUST_CHECK static enum healcl_status read_defines(const struct reader *reader, const cJSON *object,
                                                  const struct expression_names *names,
                                                  struct vendor_kernel *kernel)
{
    const cJSON *defines = member_of(object, "defines");
    if (!defines)
        return HEALCL_OK;
    if (!cJSON_IsObject(defines))
        REFUSE_AT(reader, object, "defines", "must be an object");
    for (const cJSON *item = defines->child; item; item = item->next) {
        if (kernel->define_count == VENDOR_DEFINES_MAX)
            REFUSE_AT(reader, item, NULL, "is more than %d", VENDOR_DEFINES_MAX);
        if (strlen(item->string) > WORD_MAX || !*item->string || !is_word(item->string))
            REFUSE_AT(reader, item, NULL, "is no name of a macro");
        TRY(keep(reader, item->string, &kernel->defines[kernel->define_count].name));
        TRY(read_expression(reader, item, names, &kernel->defines[kernel->define_count++].value));
    }
    return HEALCL_OK;
}

/* "key_switch[STAGES=2,LOCAL=64]", or the kernel's name alone. */
MUST_CHECK static enum healcl_status name_alternatives(const struct reader *reader,
                                                       struct vendor_kernel *kernel)
{
    enum { NAME_SIZE = WORD_MAX + 2 + VENDOR_TUNABLES_MAX * (WORD_MAX + 24) };
    kernel->names = arena_alloc(reader->arena, kernel->alternative_count * sizeof *kernel->names);
    if (!kernel->names)
        NO_MEMORY(reader->error);
    for (uint32_t number = 0; number < kernel->alternative_count; number++) {
        struct expression_values values = {.integers = {0}};
        char name[NAME_SIZE];
        size_t used = (size_t)snprintf(name, sizeof name, "%s", kernel->kernel);
        vendor_set_alternative(kernel, number, &values);
        for (uint32_t i = 0; i < kernel->tunable_count; i++)
            used += (size_t)snprintf(name + used, sizeof name - used, "%s%s=%" PRId64,
                                     i > 0 ? "," : "[", kernel->tunables[i].name,
                                     values.integers[VENDOR_TUNABLES + i]);
        if (kernel->tunable_count > 0)
            snprintf(name + used, sizeof name - used, "]");
        TRY(keep(reader, name, &kernel->names[number]));
    }
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_tunable_values(const struct reader *reader,
                                                         const cJSON *list,
                                                         struct vendor_tunable *tunable)
{
    if (!cJSON_IsArray(list) || !list->child)
        REFUSE_AT(reader, list, NULL, "must be a list of integers");
    if (cJSON_GetArraySize(list) > VENDOR_TUNABLE_VALUES_MAX)
        REFUSE_AT(reader, list, NULL, "has more than %d items", VENDOR_TUNABLE_VALUES_MAX);
    for (const cJSON *item = list->child; item; item = item->next) {
        int64_t value;
        TRY(read_integer(reader, item, &value));
        for (uint32_t i = 0; i < tunable->count; i++)
            if (tunable->values[i] == value)
                REFUSE_AT(reader, item, NULL, "%" PRId64 " is there twice", value);
        tunable->values[tunable->count++] = value;
    }
    return HEALCL_OK;
}

/* Integers that a kernel's expressions may name too, and its source gets as macros. */
MUST_CHECK static enum healcl_status read_tunables(const struct reader *reader, const cJSON *object,
                                                   struct expression_names *names,
                                                   struct vendor_kernel *kernel)
{
    const cJSON *tunables = member_of(object, "tunables");
    kernel->alternative_count = 1;
    if (tunables && !cJSON_IsObject(tunables))
        REFUSE_AT(reader, object, "tunables", "must be an object");
    for (const cJSON *item = tunables ? tunables->child : NULL; item; item = item->next) {
        const uint32_t number = VENDOR_TUNABLES + kernel->tunable_count;
        struct vendor_tunable *tunable = &kernel->tunables[kernel->tunable_count];
        if (kernel->tunable_count == VENDOR_TUNABLES_MAX)
            REFUSE_AT(reader, item, NULL, "is more than %d", VENDOR_TUNABLES_MAX);
        if (strlen(item->string) > WORD_MAX || !*item->string || !is_word(item->string))
            REFUSE_AT(reader, item, NULL, "is no name of a macro");
        for (uint32_t i = 0; i < names->count; i++)
            if (names->of[i].name && strcmp(names->of[i].name, item->string) == 0)
                REFUSE_AT(reader, item, NULL, "something else is named '%s'", item->string);
        if (member_of(member_of(object, "defines"), item->string))
            REFUSE_AT(reader, item, NULL, "a define is named '%s'", item->string);
        TRY(keep(reader, item->string, &tunable->name));
        TRY(read_tunable_values(reader, item, tunable));
        names->of[number].name = tunable->name;
        names->of[number].is_known = true;
        kernel->tunable_count++;
        kernel->alternative_count *= tunable->count;
        if (kernel->alternative_count > VENDOR_ALTERNATIVES_MAX)
            REFUSE_AT(reader, item, NULL, "there are more than %d combinations",
                      VENDOR_ALTERNATIVES_MAX);
    }
    return name_alternatives(reader, kernel);
}

/* What tells lists of kernels apart: all that manifests say of them, and what their sources hold.
 */
MUST_CHECK static enum healcl_status add_identity(const struct reader *reader, const cJSON *object,
                                                  const struct vendor_kernel *kernel,
                                                  uint64_t *identity)
{
    char *text = cJSON_PrintUnformatted(object);
    if (!text)
        NO_MEMORY(reader->error);
    *identity = XXH64(text, strlen(text), *identity);
    cJSON_free(text);
    if (kernel->program)
        *identity = XXH64(kernel->program, strlen(kernel->program), *identity);
    return HEALCL_OK;
}

/* A tensor's name stands for its memory, anything else is an integer. */
MUST_CHECK static enum healcl_status read_arguments(const struct reader *reader,
                                                    const cJSON *object,
                                                    const struct expression_names *names,
                                                    struct vendor_kernel *kernel)
{
    const cJSON *list;
    TRY(read_list(reader, object, "arguments", true, VENDOR_ARGUMENTS_MAX, &list));
    for (const cJSON *item = list->child; item; item = item->next) {
        uint32_t number = 0;
        while (cJSON_IsString(item) && number < names->count &&
               !(names->of[number].name && names->of[number].is_tensor &&
                 strcmp(names->of[number].name, item->valuestring) == 0))
            number++;
        bool is_tensor = cJSON_IsString(item) && number < names->count;
        kernel->arguments[kernel->argument_count].tensor = is_tensor ? (int)number : NO_INPUT;
        if (!is_tensor)
            TRY(read_expression(reader, item, names,
                                &kernel->arguments[kernel->argument_count].value));
        kernel->argument_count++;
    }
    return HEALCL_OK;
}

static const char *const kernel_members[] = {
    "step",   "source", "kernel",   "options", "device",    "type", "when",
    "global", "local",  "tunables", "defines", "arguments", NULL};

static const char *const native_members[] = {"step", "library", "entry",     "device",
                                             "type", "when",    "arguments", NULL};

MUST_CHECK static enum healcl_status read_library(struct reader *reader, const cJSON *object,
                                                  struct vendor_kernel *kernel)
{
    char path[PATH_SIZE];
    struct pending *pending = arena_alloc(reader->arena, sizeof *pending);
    if (!pending)
        NO_MEMORY(reader->error);
    *pending = (struct pending){object, kernel, NULL, NULL, reader->pending};
    TRY(path_of(reader, object, "library", path));
    TRY(keep(reader, path, &pending->path));
    TRY(read_word(reader, object, "entry", true, &pending->entry));
    kernel->kernel = pending->entry;
    reader->pending = pending;
    return HEALCL_OK;
}

/* Runs what the library runs when it is loaded. */
MUST_CHECK static enum healcl_status load_library(const struct reader *reader,
                                                  const struct pending *pending)
{
    struct vendor_operations *all = reader->operations;
    struct vendor_library *library = arena_alloc(all->arena, sizeof *library);
    char path[PATH_SIZE + 2];
    if (!library)
        NO_MEMORY(reader->error);
    snprintf(path, sizeof path, "%s%s", strchr(pending->path, '/') ? "" : "./", pending->path);
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle)
        REFUSE_AT(reader, pending->object, "library", "%.400s", dlerror());
    library->next = all->libraries;
    all->libraries = library;
    void *entry = dlsym(library->handle, pending->entry);
    if (!entry)
        REFUSE_AT(reader, pending->object, "entry", "the library has no function '%s'",
                  pending->entry);
    memcpy(&pending->kernel->native, &entry, sizeof entry); /* as POSIX has it */
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_kernel(struct reader *reader, const cJSON *object,
                                                 const struct expression_names *names,
                                                 struct vendor_kernel **made)
{
    static const char *const types[] = {"any", "cpu", "gpu", "accelerator", NULL};
    size_t type;
    struct vendor_kernel *kernel = arena_alloc(reader->arena, sizeof *kernel);
    if (!kernel)
        NO_MEMORY(reader->error);
    struct expression_names with_strides = *names;
    with_strides.strides = true;
    for (uint32_t i = 0; i < names->count; i++)
        with_strides.of[i].is_known = true;
    const bool is_native = member_of(object, "library") != NULL;
    TRY(keep_file_name(reader, &kernel->manifest));
    TRY(check_members(reader, object, is_native ? native_members : kernel_members));
    if (!is_native)
        TRY(read_word(reader, object, "kernel", true, &kernel->kernel));
    TRY(read_text(reader, object, "options", false, TEXT_MAX, &kernel->options));
    if (!kernel->options)
        kernel->options = "";
    if (!reader->is_trusted)
        TRY(check_options(reader, object, kernel->options));
    TRY(read_text(reader, object, "device", false, TEXT_MAX, &kernel->device));
    TRY(read_choice(reader, object, "type", types, "any", &type));
    kernel->type = type > 0 ? types[type] : NULL;
    if (is_native)
        TRY(read_word(reader, object, "entry", true, &kernel->kernel));
    TRY(read_tunables(reader, object, &with_strides, kernel));
    TRY(read_expression_member(reader, object, "when", false, &with_strides, &kernel->when));
    *made = kernel;
    TRY(read_arguments(reader, object, &with_strides, kernel));
    if (is_native)
        return read_library(reader, object, kernel);
    TRY(read_expression_member(reader, object, "global", true, &with_strides, &kernel->global));
    TRY(read_expression_member(reader, object, "local", true, &with_strides, &kernel->local));
    TRY(read_defines(reader, object, &with_strides, kernel));
    return read_source(reader, object, kernel);
}

/* ---------------------------------------------------------------- parameters and results */

static const struct {
    const char *name;
    enum healcl_parameter_kind kind;
} parameter_kinds[] = {
    {"tensor", HEALCL_PARAMETER_TENSOR}, {"out", HEALCL_PARAMETER_OUT},
    {"scalar", HEALCL_PARAMETER_SCALAR}, {"modulus", HEALCL_PARAMETER_MODULUS},
    {"int", HEALCL_PARAMETER_INT},       {"flag", HEALCL_PARAMETER_FLAG},
    {"hint", HEALCL_PARAMETER_HINT},     {"none", HEALCL_PARAMETER_NOTHING},
};

MUST_CHECK static enum healcl_status read_kind(const struct reader *reader, const cJSON *object,
                                               enum healcl_parameter_kind *kind)
{
    const char *text;
    TRY(read_text(reader, object, "kind", true, TEXT_MAX, &text));
    for (size_t i = 0; i < sizeof parameter_kinds / sizeof *parameter_kinds; i++)
        if (strcmp(parameter_kinds[i].name, text) == 0) {
            *kind = parameter_kinds[i].kind;
            return HEALCL_OK;
        }
    REFUSE_AT(reader, object, "kind", "'%s' is no kind of parameter", text);
}

/* Numbers and names of what has a value. */
struct numbering {
    int inputs, integers;
};

MUST_CHECK static enum healcl_status add_parameter(const struct reader *reader, const cJSON *object,
                                                   struct vendor_operation *operation,
                                                   struct numbering *numbering,
                                                   struct healcl_parameter_info *parameter)
{
    static const char *const members[] = {"name", "kind", "dtype", "layout", "reads", NULL};
    static const char *const layouts[] = {"contiguous", "any", NULL};
    struct vendor_parameter *own = &operation->parameters[operation->form.parameter_count];
    size_t layout;
    TRY(check_members(reader, object, members));
    TRY(read_word(reader, object, "name", true, &parameter->name));
    TRY(read_kind(reader, object, &parameter->kind));
    parameter->optional = parameter_traits[parameter->kind].accepted >> ARGUMENT_NONE & 1;
    for (uint32_t i = 0; i < operation->form.parameter_count; i++)
        if (strcmp(operation->form.parameters[i].name, parameter->name) == 0)
            REFUSE_AT(reader, object, "name", "another parameter is named '%s'", parameter->name);
    const bool is_out = parameter->kind == HEALCL_PARAMETER_OUT;
    const bool is_tensor = is_out || parameter->kind == HEALCL_PARAMETER_TENSOR;
    if (is_out != (strcmp(parameter->name, "out") == 0))
        REFUSE_AT(reader, object, "name", "the parameter of kind out, and no other, is named out");
    for (size_t i = 2; members[i] && !is_tensor; i++)
        if (member_of(object, members[i]))
            REFUSE_AT(reader, object, members[i], "is for tensors");
    if (member_of(object, "reads") && !is_out)
        REFUSE_AT(reader, object, "reads", "is for out");
    own->number = NO_INPUT;
    if (parameter->kind == HEALCL_PARAMETER_HINT || parameter->kind == HEALCL_PARAMETER_NOTHING)
        return HEALCL_OK;
    if (is_tensor)
        TRY(read_dtypes(reader, object, &own->dtypes));
    TRY(read_choice(reader, object, "layout", layouts, "contiguous", &layout));
    if (is_out)
        TRY(read_bool(reader, object, "reads", &operation->reads_out));
    own->any_layout = layout == 1;
    own->number = is_out      ? VENDOR_OUT
                  : is_tensor ? numbering->inputs++
                              : VENDOR_INTEGERS + numbering->integers++;
    if (numbering->inputs > STEP_INPUTS || numbering->integers > VENDOR_INTEGERS_MAX)
        REFUSE_AT(reader, object, NULL, "is more than %d tensors or %d integers", STEP_INPUTS,
                  VENDOR_INTEGERS_MAX);
    operation->names.of[own->number].name = parameter->name;
    operation->names.of[own->number].is_tensor = is_tensor;
    operation->names.of[own->number].is_known = true;
    operation->of_number[own->number] = parameter->name;
    operation->parameter_of[own->number] = (int)operation->form.parameter_count;
    if (is_tensor)
        operation->strides_of[own->number] = own->any_layout;
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_parameters(const struct reader *reader,
                                                     const cJSON *object,
                                                     struct vendor_operation *operation)
{
    const cJSON *list;
    struct numbering numbering = {0};
    struct healcl_parameter_info *parameters =
        arena_alloc(reader->arena, PARAMETERS_MAX * sizeof *parameters);
    if (!parameters)
        NO_MEMORY(reader->error);
    operation->form.parameters = parameters;
    operation->names.count = EXPRESSION_NAMES_MAX;
    for (int i = 0; i < EXPRESSION_NAMES_MAX; i++)
        operation->parameter_of[i] = NO_INPUT;
    TRY(read_list(reader, object, "parameters", true, PARAMETERS_MAX, &list));
    for (const cJSON *item = list->child; item; item = item->next) {
        struct healcl_parameter_info *parameter = &parameters[operation->form.parameter_count];
        TRY(add_parameter(reader, item, operation, &numbering, parameter));
        operation->form.parameter_count++;
    }
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_result(const struct reader *reader, const cJSON *object,
                                                 struct vendor_operation *operation)
{
    static const char *const members[] = {"dtype", "shape", NULL};
    const cJSON *result = member_of(object, "result"), *shape;
    const bool has_out = operation->of_number[VENDOR_OUT] != NULL;
    if (has_out && result)
        REFUSE_AT(reader, object, "result", "there is a parameter out already");
    if (!has_out && !result)
        REFUSE_AT(reader, object, "result", "is missing, as a parameter out is");
    if (has_out)
        return HEALCL_OK;
    TRY(check_members(reader, result, members));
    if (!member_of(result, "dtype"))
        REFUSE_AT(reader, result, "dtype", "is missing");
    TRY(dtype_of(reader, member_of(result, "dtype"), &operation->out_dtype));
    TRY(read_list(reader, result, "shape", true, MAX_RANK, &shape));
    for (const cJSON *item = shape->child; item; item = item->next)
        TRY(read_expression(reader, item, &operation->names,
                            &operation->out_shape[operation->out_rank++]));
    operation->makes_out = true;
    operation->names.of[VENDOR_OUT].name = operation->of_number[VENDOR_OUT] = "out";
    operation->names.of[VENDOR_OUT].is_tensor = true;
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_rules(const struct reader *reader, const cJSON *object,
                                                struct vendor_operation *operation)
{
    const cJSON *list;
    TRY(read_list(reader, object, "rules", false, LIST_MAX, &list));
    if (!list)
        return HEALCL_OK;
    operation->rules = arena_alloc(reader->arena, LIST_MAX * sizeof *operation->rules);
    if (!operation->rules)
        NO_MEMORY(reader->error);
    for (const cJSON *item = list->child; item; item = item->next)
        TRY(read_expression(reader, item, &operation->names,
                            &operation->rules[operation->rule_count++]));
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- bodies */

/* Names of the tensors that a body makes, behind all others. */
struct body_names {
    const char *of[BODY_ENTRIES_MAX];
    uint32_t count;
};

/* The number of a tensor, or NO_INPUT. */
static int tensor_number(const struct vendor_operation *operation, const struct body_names *made,
                         const char *name)
{
    for (int i = 0; i <= VENDOR_OUT; i++)
        if (operation->of_number[i] && strcmp(operation->of_number[i], name) == 0)
            return i;
    for (uint32_t i = 0; i < made->count; i++)
        if (strcmp(made->of[i], name) == 0)
            return EXPRESSION_NAMES_MAX + (int)i;
    return NO_INPUT;
}

/* What a transcript's tags are around: {"arg_type": ..., "value": ...}, {"inf_name": ...}. */
static const cJSON *untagged(const cJSON *node)
{
    for (int i = 0; i < 2 && cJSON_IsObject(node); i++) {
        const cJSON *value = member_of(node, member_of(node, "arg_type") ? "value" : "inf_name");
        node = value ? value : node;
    }
    return node;
}

MUST_CHECK static enum healcl_status read_body_argument(const struct reader *reader,
                                                        const struct vendor_operation *operation,
                                                        const struct body_names *made,
                                                        const cJSON *tagged,
                                                        struct body_argument *argument)
{
    const cJSON *node = untagged(tagged);
    int number = NO_INPUT;
    if (cJSON_IsString(node))
        number = tensor_number(operation, made, node->valuestring);
    for (int i = 0; i < DTYPE_COUNT && cJSON_IsString(node); i++)
        if (strcmp(node->valuestring, dtype_name((enum dtype)i)) == 0) {
            argument->kind = ARGUMENT_TENSOR_TYPE;
            argument->dtype = (enum dtype)i;
            return HEALCL_OK;
        }
    if (number != NO_INPUT) {
        argument->kind = ARGUMENT_DEVICE_TENSOR;
        argument->tensor = (uint32_t)number;
    } else if (cJSON_IsNull(node)) {
        argument->kind = ARGUMENT_NONE;
    } else if (cJSON_IsArray(node)) {
        argument->kind = ARGUMENT_SHAPE;
        if (cJSON_GetArraySize(node) > MAX_RANK)
            REFUSE_AT(reader, node, NULL, "has more than %d items", MAX_RANK);
        for (const cJSON *item = node->child; item; item = item->next)
            TRY(read_expression(reader, item, &operation->names,
                                &argument->values[argument->count++]));
    } else {
        argument->kind = ARGUMENT_INT;
        argument->count = 1;
        TRY(read_expression(reader, node, &operation->names, &argument->values[0]));
    }
    return HEALCL_OK;
}

/* Whether a form takes its arguments as they are written; and none that a body cannot have. */
MUST_CHECK static enum healcl_status check_body_entry(const struct reader *reader,
                                                      const cJSON *object,
                                                      const struct body_entry *from,
                                                      const struct form **form)
{
    struct entry *entry = calloc(1, sizeof *entry); /* large */
    if (!entry)
        NO_MEMORY(reader->error);
    entry->name = from->name;
    entry->argument_count = from->argument_count;
    for (uint32_t i = 0; i < from->argument_count; i++)
        entry->arguments[i].kind = from->arguments[i].kind;
    enum healcl_status status = form_of_entry(NULL, entry, form, reader->error);
    free(entry);
    TRY_AT(reader, object, "name", status);
    const enum operation_id id = form_id(*form);
    if (id == OPERATION_HOST_TO_DEVICE || id == OPERATION_DEVICE_TO_HOST ||
        id == OPERATION_FREE_DEVICE_TENSOR)
        REFUSE_AT(reader, object, "name", "'%s' cannot be in a body", from->name);
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_body_out(const struct reader *reader, const cJSON *object,
                                                   const struct vendor_operation *operation,
                                                   const struct form *form, struct body_names *made,
                                                   struct body_entry *entry)
{
    const cJSON *out = untagged(member_of(object, "out"));
    const bool makes = form->operation->result == RESULT_NEW;
    entry->out = NO_INPUT;
    if (!out || cJSON_IsNull(out)) {
        if (makes)
            REFUSE_AT(reader, object, "out", "is missing");
        return HEALCL_OK;
    }
    if (!makes) /* one more name of the tensor that it writes */
        return HEALCL_OK;
    if (!cJSON_IsString(out) || !*out->valuestring || strlen(out->valuestring) > WORD_MAX ||
        !is_word(out->valuestring))
        REFUSE_AT(reader, object, "out", "must name a tensor");
    if (tensor_number(operation, made, out->valuestring) != NO_INPUT)
        REFUSE_AT(reader, object, "out", "there is a tensor '%s' already", out->valuestring);
    entry->out = EXPRESSION_NAMES_MAX + (int)made->count;
    return keep(reader, out->valuestring, &made->of[made->count++]);
}

MUST_CHECK static enum healcl_status read_body(const struct reader *reader, const cJSON *object,
                                               struct vendor_operation *operation)
{
    static const char *const members[] = {"name", "op", "type", "args", "out", NULL};
    struct body_names made = {.count = 0};
    const cJSON *list, *arguments;
    TRY(read_list(reader, object, "body", false, BODY_ENTRIES_MAX, &list));
    if (!list)
        return HEALCL_OK;
    if (!list->child)
        REFUSE_AT(reader, object, "body", "is empty");
    operation->body = arena_alloc(reader->arena, BODY_ENTRIES_MAX * sizeof *operation->body);
    if (!operation->body)
        NO_MEMORY(reader->error);
    for (const cJSON *item = list->child; item; item = item->next) {
        struct body_entry *entry = &operation->body[operation->body_count++];
        const struct form *form;
        TRY(check_members(reader, item, members));
        TRY(read_word(reader, item, "name", true, &entry->name));
        TRY(read_list(reader, item, "args", true, PARAMETERS_MAX, &arguments));
        for (const cJSON *argument = arguments->child; argument; argument = argument->next)
            TRY(read_body_argument(reader, operation, &made, argument,
                                   &entry->arguments[entry->argument_count++]));
        TRY(check_body_entry(reader, item, entry, &form));
        TRY(read_body_out(reader, item, operation, form, &made, entry));
    }
    operation->body_tensors = made.count;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- examples */

static bool holds_tensor(const struct vendor_operation *operation, uint32_t parameter)
{
    const enum healcl_parameter_kind kind = operation->form.parameters[parameter].kind;
    return kind == HEALCL_PARAMETER_TENSOR || kind == HEALCL_PARAMETER_OUT;
}

MUST_CHECK static enum healcl_status read_shape(const struct reader *reader, const cJSON *object,
                                                enum dtype dtype, struct layout *layout)
{
    const cJSON *list;
    int64_t shape[MAX_RANK];
    uint32_t rank = 0;
    TRY(read_list(reader, object, "shape", true, MAX_RANK, &list));
    for (const cJSON *item = list->child; item; item = item->next)
        TRY(read_integer(reader, item, &shape[rank++]));
    TRY_AT(reader, object, "shape",
           layout_init(layout, rank, shape, dtype_size(dtype), reader->error));
    if (layout_elements(layout) > EXAMPLE_ELEMENTS_MAX)
        REFUSE_AT(reader, object, "shape", "has more than %d elements", EXAMPLE_ELEMENTS_MAX);
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_values(const struct reader *reader, const cJSON *object,
                                                 enum dtype dtype, int64_t count,
                                                 const int64_t **made)
{
    const cJSON *list;
    TRY(read_list(reader, object, "values", true, EXAMPLE_ELEMENTS_MAX, &list));
    if (cJSON_GetArraySize(list) != count)
        REFUSE_AT(reader, object, "values", "has %d items, but the shape %" PRId64 " elements",
                  cJSON_GetArraySize(list), count);
    int64_t *values = arena_alloc(reader->arena, ((size_t)count + 1) * sizeof *values);
    if (!values)
        NO_MEMORY(reader->error);
    *made = values;
    for (const cJSON *item = list->child; item; item = item->next, values++) {
        TRY(read_integer(reader, item, values));
        if (!dtype_holds(dtype, *values))
            REFUSE_AT(reader, item, NULL, "does not fit %s", dtype_name(dtype));
    }
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_example_tensor(const struct reader *reader,
                                                         const cJSON *object,
                                                         const struct vendor_operation *operation,
                                                         uint32_t parameter,
                                                         struct vendor_example *example)
{
    static const char *const members[] = {"dtype", "shape", "below", "values", NULL};
    enum dtype dtype = DTYPE_INT64;
    struct layout *shape = &example->arguments[parameter].shape;
    TRY(check_members(reader, object, members));
    if (!member_of(object, "dtype"))
        REFUSE_AT(reader, object, "dtype", "is missing");
    TRY(dtype_of(reader, member_of(object, "dtype"), &dtype));
    if (!(operation->parameters[parameter].dtypes >> dtype & 1))
        REFUSE_AT(reader, object, "dtype", "is none of the parameter's");
    example->arguments[parameter].dtype = dtype;
    TRY(read_shape(reader, object, dtype, shape));
    const cJSON *below = member_of(object, "below");
    if (member_of(object, "values")) {
        if (below)
            REFUSE_AT(reader, object, "below", "is there beside values");
        return read_values(reader, object, dtype, layout_elements(shape),
                           &example->arguments[parameter].values);
    }
    if (!below && operation->form.parameters[parameter].kind != HEALCL_PARAMETER_OUT)
        REFUSE_AT(reader, object, "below", "is missing, as values are");
    if (!below)
        return HEALCL_OK;
    TRY(read_integer(reader, below, &example->arguments[parameter].below));
    if (example->arguments[parameter].below < 1 ||
        !dtype_holds(dtype, example->arguments[parameter].below - 1))
        REFUSE_AT(reader, below, NULL, "must be at least 1, and what is below must fit %s",
                  dtype_name(dtype));
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_example_integer(const struct reader *reader,
                                                          const cJSON *node,
                                                          enum healcl_parameter_kind kind,
                                                          int64_t *value)
{
    TRY(read_integer(reader, node, value));
    if (kind == HEALCL_PARAMETER_MODULUS && *value < 1)
        REFUSE_AT(reader, node, NULL, "must be at least 1");
    if (kind == HEALCL_PARAMETER_FLAG && *value != 0 && *value != 1)
        REFUSE_AT(reader, node, NULL, "must be 0 or 1");
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status check_example(const struct reader *reader, const cJSON *object,
                                                   const struct vendor_operation *operation,
                                                   const struct vendor_example *example)
{
    struct expression_values values = {.integers = {0}};
    int64_t holds;
    for (uint32_t i = 0; i < operation->form.parameter_count; i++) {
        const int number = operation->parameters[i].number;
        if (number == NO_INPUT)
            continue;
        if (holds_tensor(operation, i))
            values.layouts[number] = &example->arguments[i].shape;
        values.dtypes[number] = example->arguments[i].dtype;
        values.integers[number] = example->arguments[i].integer;
    }
    for (uint32_t i = 0; i < operation->rule_count; i++) {
        const char *text = expression_text(operation->rules[i]);
        enum healcl_status status =
            expression_value(operation->rules[i], &values, &holds, reader->error);
        if (status != HEALCL_OK)
            error_prefix(reader->error, "rule '%s': ", text);
        TRY_AT(reader, object, NULL, status);
        if (!holds)
            REFUSE_AT(reader, object, NULL, "rule '%s' does not hold", text);
    }
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_example(const struct reader *reader, const cJSON *object,
                                                  const struct vendor_operation *operation,
                                                  struct vendor_example *example)
{
    const char *names[PARAMETERS_MAX + 1] = {NULL};
    uint32_t count = 0;
    for (uint32_t i = 0; i < operation->form.parameter_count; i++)
        if (operation->parameters[i].number != NO_INPUT)
            names[count++] = operation->form.parameters[i].name;
    TRY(check_members(reader, object, names));
    for (uint32_t i = 0; i < operation->form.parameter_count; i++) {
        const struct healcl_parameter_info *parameter = &operation->form.parameters[i];
        const cJSON *node = member_of(object, parameter->name);
        if (operation->parameters[i].number == NO_INPUT)
            continue;
        if (!node)
            REFUSE_AT(reader, object, parameter->name, "is missing");
        if (holds_tensor(operation, i))
            TRY(read_example_tensor(reader, node, operation, i, example));
        else
            TRY(read_example_integer(reader, node, parameter->kind,
                                     &example->arguments[i].integer));
    }
    return check_example(reader, object, operation, example);
}

MUST_CHECK static enum healcl_status read_examples(const struct reader *reader, const cJSON *object,
                                                   struct vendor_operation *operation)
{
    const cJSON *list;
    TRY(read_list(reader, object, "examples", false, EXAMPLES_MAX, &list));
    if (!list)
        return HEALCL_OK;
    operation->examples = arena_alloc(reader->arena, EXAMPLES_MAX * sizeof *operation->examples);
    if (!operation->examples)
        NO_MEMORY(reader->error);
    for (const cJSON *item = list->child; item; item = item->next)
        TRY(read_example(reader, item, operation,
                         &operation->examples[operation->example_count++]));
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- operations */

MUST_CHECK static enum healcl_status read_kernels(struct reader *reader, const cJSON *object,
                                                  struct vendor_operation *operation)
{
    const cJSON *list;
    TRY(read_list(reader, object, "kernels", false, VENDOR_KERNELS_MAX, &list));
    for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
        if (member_of(item, "step"))
            REFUSE_AT(reader, item, "step", "is for replacements");
        struct vendor_kernel **kernel = &operation->kernels[operation->kernel_count++];
        TRY(read_kernel(reader, item, &operation->names, kernel));
        TRY(add_identity(reader, item, *kernel, &operation->identity));
    }
    if (operation->kernel_count == 0 && !member_of(object, "body"))
        REFUSE_AT(reader, object, "kernels", "there is neither a kernel nor a body");
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status register_operation(const struct reader *reader,
                                                        const cJSON *object,
                                                        struct vendor_operation *operation,
                                                        const char *meaning)
{
    struct operation added = {.name = operation->name,
                              .family = "vendor",
                              .dtypes = {.by_parameter = true},
                              .result = operation->makes_out ? RESULT_NEW : RESULT_ALIAS,
                              .meaning = meaning,
                              .infer = infer_vendor,
                              .context = operation};
    for (uint32_t i = 0; i < operation->form.parameter_count; i++)
        added.dtypes.values |= operation->parameters[i].dtypes;
    operation->form.name = operation->name;
    TRY(keep_file_name(reader, &added.manifest));
    TRY_AT(reader, object, "name",
           operation_table_add(reader->operations->base.table, &added, &operation->form, 1,
                               reader->error));
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status read_operation(struct reader *reader, const cJSON *object)
{
    static const char *const members[] = {"name",    "meaning", "parameters", "result", "rules",
                                          "kernels", "body",    "examples",   NULL};
    const char *meaning;
    struct vendor_operation *operation = arena_alloc(reader->arena, sizeof *operation);
    if (!operation)
        NO_MEMORY(reader->error);
    TRY(check_members(reader, object, members));
    TRY(read_word(reader, object, "name", true, &operation->name));
    TRY(read_text(reader, object, "meaning", false, (size_t)TEXT_MAX * 2, &meaning));
    TRY(read_parameters(reader, object, operation));
    TRY(read_result(reader, object, operation));
    TRY(read_rules(reader, object, operation));
    TRY(read_kernels(reader, object, operation));
    TRY(read_body(reader, object, operation));
    TRY(read_examples(reader, object, operation));
    return register_operation(reader, object, operation, meaning ? meaning : "a vendor's own");
}

/* ---------------------------------------------------------------- replacements */

/* The kind of steps that manifests call so, and that another kernel can be given for; STEP_KINDS
 * where there is none. */
static int replaceable_kind(const char *id)
{
    int kind = 0;
    while (kind < STEP_KINDS &&
           !(id && step_traits[kind].inputs[0] && strcmp(step_traits[kind].id, id) == 0))
        kind++;
    return kind;
}

static void name_step(int kind, struct expression_names *names)
{
    static const char *const values[] = {"value0", "value1"};
    names->count = EXPRESSION_NAMES_MAX;
    for (int i = 0; i < STEP_INPUTS; i++) {
        names->of[i].name = step_traits[kind].inputs[i];
        names->of[i].is_tensor = true;
    }
    names->of[VENDOR_OUT].name = "out";
    names->of[VENDOR_OUT].is_tensor = true;
    for (int i = 0; i < 2; i++)
        names->of[VENDOR_INTEGERS + i].name = values[i];
}

MUST_CHECK static enum healcl_status read_replacement(struct reader *reader, const cJSON *object)
{
    const char *name;
    struct vendor_replacement *made = arena_alloc(reader->arena, sizeof *made);
    if (!made)
        NO_MEMORY(reader->error);
    TRY(read_word(reader, object, "step", true, &name));
    const int kind = replaceable_kind(name);
    if (kind == STEP_KINDS)
        REFUSE_AT(reader, object, "step", "there is no step '%s'", name);
    made->kind = (enum step_kind)kind;
    made->step = step_traits[kind].id;
    made->subject = step_traits[kind].subject;
    name_step(kind, &made->names);
    TRY(read_kernel(reader, object, &made->names, &made->kernel));
    TRY(add_identity(reader, object, made->kernel,
                     &reader->operations->replacement_identities[made->kind]));
    const struct vendor_replacement **last = &reader->operations->replacements[made->kind];
    while (*last) /* the first one that can run a step does */
        last = (const struct vendor_replacement **)&((struct vendor_replacement *)*last)->next;
    *last = made;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- manifests */

MUST_CHECK static enum healcl_status read_manifest(struct reader *reader)
{
    static const char *const members[] = {"healcl", "operations", "replacements", NULL};
    const cJSON *list, *version = member_of(reader->root, "healcl");
    TRY(check_members(reader, reader->root, members));
    if (!cJSON_IsNumber(version) || version->valuedouble != 1)
        REFUSE_AT(reader, reader->root, "healcl", "must be 1, the version of the format");
    TRY(read_list(reader, reader->root, "operations", false, LIST_MAX, &list));
    for (const cJSON *item = list ? list->child : NULL; item; item = item->next)
        TRY(read_operation(reader, item));
    TRY(read_list(reader, reader->root, "replacements", false, LIST_MAX, &list));
    for (const cJSON *item = list ? list->child : NULL; item; item = item->next)
        TRY(read_replacement(reader, item));
    for (const struct pending *pending = reader->pending; pending; pending = pending->next)
        TRY(load_library(reader, pending));
    return HEALCL_OK;
}

enum healcl_status manifest_read(struct vendor_operations *handle, const char *folder,
                                 const char *file, const char *text, size_t length, bool is_trusted,
                                 struct healcl_error *error)
{
    size_t stop;
    cJSON *root;
    struct reader reader = {.operations = handle,
                            .arena = handle->arena,
                            .folder = folder,
                            .file = file,
                            .text = text,
                            .is_trusted = is_trusted,
                            .error = error};
    TRY_PREFIX(json_tree_read(text, length, VALUES_MAX, &root, &stop, error), "%.200s: ", file);
    if (!root) {
        unsigned line = 1;
        for (size_t i = 0; i < stop; i++)
            line += text[i] == '\n';
        REFUSE(error, "%.200s:%u: it is no JSON", file, line);
    }
    reader.root = root;
    enum healcl_status status = read_manifest(&reader);
    cJSON_Delete(root);
    return status;
}
