#include "plan/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/array.h"

#define INT8 (1u << DTYPE_INT8)
#define INT32 (1u << DTYPE_INT32)
#define INT64 (1u << DTYPE_INT64)
#define ANY_DTYPE INT8 | INT32 | INT64, NULL, 0, false
#define ARITHMETIC INT32 | INT64, NULL, 0, false
#define ARITHMETIC_BUT(also, dtypes) INT32 | INT64, #also, dtypes, false
#define FORM(...)
#define OPERATION(id, name, family, infer, dtypes, result, meaning)              \
    [OPERATION_##id] = {OPERATION_##id, name, family, {dtypes}, RESULT_##result, \
                        meaning,        NULL, NULL,   NULL,     NULL},
const struct operation operations[OPERATION_COUNT] = {
#include "plan/ops.def"
};
#undef OPERATION
#undef FORM

#define PARAMETER(what, parameter, may_be_nothing)                                      \
    {                                                                                   \
        .name = #parameter, .kind = HEALCL_PARAMETER_##what, .optional = may_be_nothing \
    }
#define TENSOR(name) PARAMETER(TENSOR, name, false)
#define INDICES(name) PARAMETER(INDICES, name, false)
#define OUT(name) PARAMETER(OUT, name, false)
#define SCALAR(name) PARAMETER(SCALAR, name, false)
#define MODULUS(name) PARAMETER(MODULUS, name, false)
#define INT(name) PARAMETER(INT, name, false)
#define FLAG(name) PARAMETER(FLAG, name, false)
#define PERM(name) PARAMETER(PERM, name, true)
#define HINT(name) PARAMETER(HINT, name, true)
#define SHAPE(name) PARAMETER(SHAPE, name, false)
#define INDEX(name) PARAMETER(INDEX, name, false)
#define DTYPE(name) PARAMETER(DTYPE, name, false)
#define HOST(name) PARAMETER(HOST, name, false)
#define NOTHING(name) PARAMETER(NOTHING, name, true)

#define OPERATION(...)
#define PARAMETERS(...)                                           \
    sizeof((const struct healcl_parameter_info[]){__VA_ARGS__}) / \
        sizeof(struct healcl_parameter_info),                     \
        (const struct healcl_parameter_info[])                    \
    {                                                             \
        __VA_ARGS__                                               \
    }
#define FORM(id, name, ...) {&operations[OPERATION_##id], name, "_" name, PARAMETERS(__VA_ARGS__)},
const struct form forms[] = {
#include "plan/ops.def"
};
#undef FORM

/* Forms as the library's callers see them. */
#define FORM(id, name, ...) {name, PARAMETERS(__VA_ARGS__)},
static const struct healcl_form_info form_infos[] = {
#include "plan/ops.def"
};
#undef OPERATION
#undef FORM

const size_t form_count = sizeof forms / sizeof forms[0];

enum operation_id form_id(const struct form *form)
{
    uint32_t number = form->operation->number;
    return number < OPERATION_COUNT ? (enum operation_id)number : OPERATION_COUNT;
}

/* ---------------------------------------------------------------- tables */

/* An operation that was added, with its one form. */
struct added {
    struct operation operation;
    struct form form;
    struct healcl_form_info info;
};

struct operation_table {
    struct arena *arena; /* owns what was added */
    struct added **added;
    size_t count, capacity;
    const void *owner;
};

const struct operation_table *operations_of_options(const struct healcl_plan_options *options)
{
    return options && options->operations ? options->operations->table : NULL;
}

struct healcl_operations *operations_retain(const struct healcl_operations *handle)
{
    if (!handle)
        return NULL;
    atomic_fetch_add(&handle->self->owners, 1);
    return handle->self;
}

enum healcl_status operation_table_create(const void *owner, struct operation_table **table,
                                          struct healcl_error *error)
{
    struct operation_table *made = calloc(1, sizeof *made);
    NEED_MEMORY(made, error);
    made->arena = arena_create();
    if (!made->arena) {
        free(made);
        NO_MEMORY(error);
    }
    made->owner = owner;
    *table = made;
    return HEALCL_OK;
}

void operation_table_free(struct operation_table *table)
{
    if (!table)
        return;
    arena_free(table->arena);
    free(table->added);
    free(table);
}

const void *operation_table_owner(const struct operation_table *table)
{
    return table ? table->owner : NULL;
}

size_t operation_count(const struct operation_table *table)
{
    return OPERATION_COUNT + (table ? table->count : 0);
}

const struct operation *operation_at(const struct operation_table *table, size_t number)
{
    return number < OPERATION_COUNT ? &operations[number]
                                    : &table->added[number - OPERATION_COUNT]->operation;
}

const struct form *form_at(const struct operation_table *table, size_t i)
{
    if (i < form_count)
        return &forms[i];
    return table && i - form_count < table->count ? &table->added[i - form_count]->form : NULL;
}

int64_t operation_number(const struct operation_table *table, const char *name)
{
    const struct form *form;
    for (size_t i = 0; (form = form_at(table, i)); i++)
        if (strcmp(form->name, name + (name[0] == '_')) == 0)
            return form->operation->number;
    return -1;
}

/* Refuses a name that cannot be a new operation's or form's name. */
static enum healcl_status check_name(const struct operation_table *table, const char *name,
                                     struct healcl_error *error)
{
    const struct form *form;
    bool taken = false;
    for (size_t i = 0; i < operation_count(table); i++)
        taken |= strcmp(operation_at(table, i)->name, name) == 0;
    for (size_t i = 0; (form = form_at(table, i)); i++)
        taken |= strcmp(form->name, name) == 0;
    if (taken)
        REFUSE(error, "operation '%s' already exists", name);
    if (name[0] == '_')
        REFUSE(error, "the name '%s' of an operation begins with an underscore", name);
    return HEALCL_OK;
}

enum healcl_status operation_table_add(struct operation_table *table,
                                       const struct operation *operation, const struct form *form,
                                       struct healcl_error *error)
{
    TRY(check_name(table, operation->name, error));
    TRY(check_name(table, form->name, error));
    if (form->parameter_count > PARAMETERS_MAX)
        REFUSE(error, "operation '%s' has more than %d parameters", form->name, PARAMETERS_MAX);
    NEED_MEMORY(ARRAY_GROW(table->added, table->count, &table->capacity), error);
    struct added *added = arena_alloc(table->arena, sizeof *added);
    char *underscore_name = arena_alloc(table->arena, strlen(form->name) + 2);
    NEED_MEMORY(added && underscore_name, error);
    underscore_name[0] = '_';
    strcpy(underscore_name + 1, form->name);
    *added =
        (struct added){*operation, *form, {form->name, form->parameter_count, form->parameters}};
    added->operation.number = (uint32_t)operation_count(table);
    added->operation.form = &added->info;
    added->form.operation = &added->operation;
    added->form.underscore_name = underscore_name;
    table->added[table->count++] = added;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- for the library's callers */

bool healcl_operation_describe(const struct healcl_operations *handle, size_t number,
                               struct healcl_operation_info *info)
{
    const struct operation_table *table = handle ? handle->table : NULL;
    if (!info || number >= operation_count(table))
        return false;
    const struct operation *operation = operation_at(table, number);
    *info = (struct healcl_operation_info){.name = operation->name,
                                           .family = operation->family,
                                           .meaning = operation->meaning,
                                           .dtypes = operation->dtypes.values,
                                           .other = operation->dtypes.also,
                                           .other_dtypes = operation->dtypes.also_dtypes,
                                           .form_count = operation->form != NULL,
                                           .forms = operation->form,
                                           .manifest = operation->manifest};
    if (operation->form)
        return true;
    size_t first = 0; /* a built-in operation's forms are adjacent */
    while (forms[first].operation != operation)
        first++;
    info->forms = &form_infos[first];
    while (first + info->form_count < form_count &&
           forms[first + info->form_count].operation == operation)
        info->form_count++;
    return true;
}

/* ---------------------------------------------------------------- parameters */

#define ACCEPTS(kind) (1u << ARGUMENT_##kind)
const struct parameter_traits parameter_traits[] = {
    [HEALCL_PARAMETER_TENSOR] = {"tensor", "a tensor", ACCEPTS(DEVICE_TENSOR)},
    [HEALCL_PARAMETER_INDICES] = {"tensor", "a tensor", ACCEPTS(DEVICE_TENSOR)},
    [HEALCL_PARAMETER_OUT] = {"out", "a tensor to write", ACCEPTS(DEVICE_TENSOR)},
    [HEALCL_PARAMETER_SCALAR] = {"scalar", "an integer", ACCEPTS(INT)},
    [HEALCL_PARAMETER_MODULUS] = {"modulus", "a modulus", ACCEPTS(INT)},
    [HEALCL_PARAMETER_INT] = {"int", "an integer", ACCEPTS(INT)},
    [HEALCL_PARAMETER_FLAG] = {"flag", "a flag", ACCEPTS(INT)},
    [HEALCL_PARAMETER_PERM] = {"perm", "a tensor or nothing",
                               ACCEPTS(DEVICE_TENSOR) | ACCEPTS(NONE)},
    [HEALCL_PARAMETER_HINT] = {"hint", "a tensor, an integer or nothing",
                               ACCEPTS(DEVICE_TENSOR) | ACCEPTS(INT) | ACCEPTS(NONE)},
    [HEALCL_PARAMETER_SHAPE] = {"shape", "a shape", ACCEPTS(SHAPE)},
    [HEALCL_PARAMETER_INDEX] = {"index", "an index", ACCEPTS(SHAPE)},
    [HEALCL_PARAMETER_DTYPE] = {"dtype", "a dtype", ACCEPTS(TENSOR_TYPE)},
    [HEALCL_PARAMETER_HOST] = {"host", "a host tensor", ACCEPTS(HOST_TENSOR)},
    [HEALCL_PARAMETER_NOTHING] = {"none", "nothing", ACCEPTS(NONE)},
};

/* ---------------------------------------------------------------- dtypes */

/* Appends the names of a set's dtypes, separated by commas. */
static void add_dtypes(uint32_t dtypes, char text[DTYPES_TEXT_SIZE])
{
    const char *before = "";
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        size_t used = strlen(text);
        if (!(dtypes >> dtype & 1))
            continue;
        snprintf(text + used, DTYPES_TEXT_SIZE - used, "%s%s", before,
                 dtype_name((enum dtype)dtype));
        before = ", ";
    }
}

const char *dtype_rule_text(const struct dtype_rule *rule, char text[DTYPES_TEXT_SIZE])
{
    text[0] = 0;
    add_dtypes(rule->values, text);
    if (rule->also) {
        size_t used = strlen(text);
        snprintf(text + used, DTYPES_TEXT_SIZE - used, "; %s also ", rule->also);
        add_dtypes(rule->also_dtypes & ~rule->values, text);
    }
    return text;
}

bool dtype_rule_allows(const struct dtype_rule *rule, const char *parameter, enum dtype values,
                       enum dtype dtype)
{
    if (dtype == values)
        return rule->values >> dtype & 1;
    return rule->also && strcmp(rule->also, parameter) == 0 && (rule->also_dtypes >> dtype & 1);
}

int form_parameter(const struct form *form, const char *name)
{
    for (uint32_t i = 0; i < form->parameter_count; i++) {
        const char *known = form->parameters[i].name;
        if (*known == *name && strcmp(known, name) == 0) /* most differ in the first character */
            return (int)i;
    }
    return -1;
}

/* Whether an argument is an omitted `out`. Forms of manifests do not allow that: their rules do not
 * give its shape. */
static bool is_out_to_make(const struct form *form, const struct entry *entry, uint32_t i)
{
    return entry->makes_out && entry->arguments[i].kind == ARGUMENT_NONE &&
           strcmp(form->parameters[i].name, "out") == 0 && form_id(form) < OPERATION_COUNT;
}

/* Index of the first argument that a form does not accept, or -1. */
static int first_unaccepted(const struct form *form, const struct entry *entry)
{
    for (uint32_t i = 0; i < form->parameter_count; i++)
        if (!(parameter_traits[form->parameters[i].kind].accepted >> entry->arguments[i].kind &
              1) &&
            !is_out_to_make(form, entry, i))
            return (int)i;
    return -1;
}

/* "2", "8 or 9 or 5": the possible numbers of arguments of a name's forms. */
static void describe_counts(const struct operation_table *table, const char *name, char *text,
                            size_t size)
{
    text[0] = 0;
    size_t used = 0;
    uint32_t listed = 0; /* bit n: n arguments */
    const struct form *form;
    for (size_t i = 0; (form = form_at(table, i)); i++)
        if (strcmp(form->name, name) == 0 && !(listed >> form->parameter_count & 1) &&
            used < size) {
            listed |= (uint32_t)1 << form->parameter_count;
            used += (size_t)snprintf(text + used, size - used, "%s%u", used ? " or " : "",
                                     form->parameter_count);
        }
}

enum healcl_status form_of_entry(const struct operation_table *table, const struct entry *entry,
                                 const struct form **result, struct healcl_error *error)
{
    const char *name = entry->name[0] == '_' ? entry->name + 1 : entry->name;
    const struct form *closest = NULL; /* among the forms with this number of arguments */
    int closest_argument = -1;
    bool named = false;
    const struct form *form;
    for (size_t i = 0; (form = form_at(table, i)); i++) {
        if (*form->name != *name || strcmp(form->name, name) != 0)
            continue;
        named = true;
        if (form->parameter_count != entry->argument_count)
            continue;
        int argument = first_unaccepted(form, entry);
        if (argument < 0) {
            *result = form;
            return HEALCL_OK;
        }
        if (argument > closest_argument) {
            closest = form;
            closest_argument = argument;
        }
    }
    if (!named)
        REFUSE_FOR(error, OPERATION, "unknown operation");
    if (!closest) {
        char counts[64];
        describe_counts(table, name, counts, sizeof counts);
        REFUSE(error, "takes %s argument%s, not %u", counts, strcmp(counts, "1") == 0 ? "" : "s",
               entry->argument_count);
    }
    enum healcl_status status =
        ERROR(error, HEALCL_REFUSED, "argument '%s': must be %s, not %s",
              closest->parameters[closest_argument].name,
              parameter_traits[closest->parameters[closest_argument].kind].wanted,
              argument_kind_name(entry->arguments[closest_argument].kind));
    error_argument(error, closest_argument);
    return status;
}
