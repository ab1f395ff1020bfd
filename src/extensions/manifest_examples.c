/* Examples of a manifest's operations: calls that can be made without anything else. */
#define REFUSED_CAUSE HEALCL_CAUSE_FORMAT
#include <inttypes.h>

#include "extensions/manifest_reader.h"

/* ---------------------------------------------------------------- examples */

static bool holds_tensor(const struct vendor_operation *operation, uint32_t parameter)
{
    const enum healcl_parameter_kind kind = operation->form.parameters[parameter].kind;
    return kind == HEALCL_PARAMETER_TENSOR || kind == HEALCL_PARAMETER_OUT;
}

static enum healcl_status read_shape(const struct reader *reader, const cJSON *object,
                                     enum dtype dtype, struct layout *layout)
{
    const cJSON *list;
    int64_t shape[MAX_RANK];
    uint32_t rank = 0;
    TRY(manifest_read_list(reader, object, "shape", true, MAX_RANK, &list));
    for (const cJSON *item = list->child; item; item = item->next)
        TRY(manifest_read_integer(reader, item, &shape[rank++]));
    TRY_AT(reader, object, "shape",
           layout_init(layout, rank, shape, dtype_size(dtype), reader->error));
    if (layout_elements(layout) > EXAMPLE_ELEMENTS_MAX)
        REFUSE_AT(reader, object, "shape", "has more than %d elements", EXAMPLE_ELEMENTS_MAX);
    return HEALCL_OK;
}

static enum healcl_status read_values(const struct reader *reader, const cJSON *object,
                                      enum dtype dtype, int64_t count, const int64_t **made)
{
    const cJSON *list;
    TRY(manifest_read_list(reader, object, "values", true, EXAMPLE_ELEMENTS_MAX, &list));
    if (cJSON_GetArraySize(list) != count)
        REFUSE_AT(reader, object, "values", "has %d items, but the shape %" PRId64 " elements",
                  cJSON_GetArraySize(list), count);
    int64_t *values = arena_alloc(reader->arena, ((size_t)count + 1) * sizeof *values);
    if (!values)
        NO_MEMORY(reader->error);
    *made = values;
    for (const cJSON *item = list->child; item; item = item->next, values++) {
        TRY(manifest_read_integer(reader, item, values));
        if (!dtype_holds(dtype, *values))
            REFUSE_AT(reader, item, NULL, "does not fit %s", dtype_name(dtype));
    }
    return HEALCL_OK;
}

static enum healcl_status read_example_tensor(const struct reader *reader, const cJSON *object,
                                              const struct vendor_operation *operation,
                                              uint32_t parameter, struct vendor_example *example)
{
    static const char *const members[] = {"dtype", "shape", "below", "values", NULL};
    enum dtype dtype = DTYPE_INT64;
    struct layout *shape = &example->arguments[parameter].shape;
    TRY(manifest_check_members(reader, object, members));
    if (!manifest_member(object, "dtype"))
        REFUSE_AT(reader, object, "dtype", "is missing");
    TRY(manifest_read_dtype(reader, manifest_member(object, "dtype"), &dtype));
    if (!(operation->parameters[parameter].dtypes >> dtype & 1))
        REFUSE_AT(reader, object, "dtype", "is none of the parameter's");
    example->arguments[parameter].dtype = dtype;
    TRY(read_shape(reader, object, dtype, shape));
    const cJSON *below = manifest_member(object, "below");
    if (manifest_member(object, "values")) {
        if (below)
            REFUSE_AT(reader, object, "below", "is there beside values");
        return read_values(reader, object, dtype, layout_elements(shape),
                           &example->arguments[parameter].values);
    }
    if (!below && operation->form.parameters[parameter].kind != HEALCL_PARAMETER_OUT)
        REFUSE_AT(reader, object, "below", "is missing, as values are");
    if (!below)
        return HEALCL_OK;
    TRY(manifest_read_integer(reader, below, &example->arguments[parameter].below));
    if (example->arguments[parameter].below < 1 ||
        !dtype_holds(dtype, example->arguments[parameter].below - 1))
        REFUSE_AT(reader, below, NULL, "must be at least 1, and what is below must fit %s",
                  dtype_name(dtype));
    return HEALCL_OK;
}

static enum healcl_status read_example_integer(const struct reader *reader, const cJSON *node,
                                               enum healcl_parameter_kind kind, int64_t *value)
{
    TRY(manifest_read_integer(reader, node, value));
    if (kind == HEALCL_PARAMETER_MODULUS && *value < 1)
        REFUSE_AT(reader, node, NULL, "must be at least 1");
    if (kind == HEALCL_PARAMETER_FLAG && *value != 0 && *value != 1)
        REFUSE_AT(reader, node, NULL, "must be 0 or 1");
    return HEALCL_OK;
}

static enum healcl_status check_example(const struct reader *reader, const cJSON *object,
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

static enum healcl_status read_example(const struct reader *reader, const cJSON *object,
                                       const struct vendor_operation *operation,
                                       struct vendor_example *example)
{
    const char *names[PARAMETERS_MAX + 1] = {NULL};
    uint32_t count = 0;
    for (uint32_t i = 0; i < operation->form.parameter_count; i++)
        if (operation->parameters[i].number != NO_INPUT)
            names[count++] = operation->form.parameters[i].name;
    TRY(manifest_check_members(reader, object, names));
    for (uint32_t i = 0; i < operation->form.parameter_count; i++) {
        const struct healcl_parameter_info *parameter = &operation->form.parameters[i];
        const cJSON *node = manifest_member(object, parameter->name);
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

enum healcl_status manifest_read_examples(const struct reader *reader, const cJSON *object,
                                          struct vendor_operation *operation)
{
    const cJSON *list;
    TRY(manifest_read_list(reader, object, "examples", false, EXAMPLES_MAX, &list));
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
