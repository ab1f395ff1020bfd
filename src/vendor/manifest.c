/* Reads manifests: JSON that describes operations and kernels. They are treated as hostile
 * input. */
#define REFUSED_CAUSE HEALCL_CAUSE_FORMAT
#include <stdlib.h>
#include <string.h>

#include "core/json_tree.h"
#include "vendor/manifest_reader.h"

enum { LIST_MAX = 64, VALUES_MAX = 1 << 17 /* of a manifest's JSON, including names */ };

/* ---------------------------------------------------------------- parameters and results */

static enum healcl_status manifest_read_kind(const struct reader *reader, const cJSON *object,
                                             enum healcl_parameter_kind *kind)
{
    static const enum healcl_parameter_kind kinds[] = {
        HEALCL_PARAMETER_TENSOR,  HEALCL_PARAMETER_OUT,    HEALCL_PARAMETER_SCALAR,
        HEALCL_PARAMETER_MODULUS, HEALCL_PARAMETER_INT,    HEALCL_PARAMETER_FLAG,
        HEALCL_PARAMETER_HINT,    HEALCL_PARAMETER_NOTHING};
    const char *text;
    TRY(manifest_read_text(reader, object, "kind", true, TEXT_MAX, &text));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        *kind = kinds[i];
        if (strcmp(parameter_traits[*kind].name, text) == 0)
            return HEALCL_OK;
    }
    REFUSE_AT(reader, object, "kind", "'%s' is not a kind of parameter", text);
}

static enum healcl_status manifest_read_dtype(const struct reader *reader, const cJSON *node,
                                              enum dtype *dtype)
{
    if (!cJSON_IsString(node) || !dtype_from_name(node->valuestring, dtype))
        REFUSE_AT(reader, node, NULL, "must be int8, int32 or int64");
    return HEALCL_OK;
}

/* Reads one dtype or a list of them. */
static enum healcl_status read_dtypes(const struct reader *reader, const cJSON *object,
                                      uint32_t *dtypes)
{
    const cJSON *node = manifest_member(object, "dtype");
    enum dtype dtype = DTYPE_INT8;
    if (!node)
        REFUSE_AT(reader, object, "dtype", "is missing");
    const bool is_list = cJSON_IsArray(node) && node->child;
    *dtypes = 0;
    for (node = is_list ? node->child : node; node; node = is_list ? node->next : NULL) {
        TRY(manifest_read_dtype(reader, node, &dtype));
        *dtypes |= 1u << dtype;
    }
    return HEALCL_OK;
}

/* Reads "residues", or the minimum and the maximum. */
static enum healcl_status read_values(const struct reader *reader, const cJSON *object,
                                      struct vendor_parameter *parameter)
{
    const cJSON *values = manifest_member(object, "values");
    parameter->low = INT64_MIN;
    parameter->high = INT64_MAX;
    parameter->residues = cJSON_IsString(values) && strcmp(values->valuestring, "residues") == 0;
    if (!values || parameter->residues)
        return HEALCL_OK;
    if (cJSON_GetArraySize(values) != 2)
        REFUSE_AT(reader, object, "values",
                  "must be \"residues\", or a list of the least and the largest value");
    TRY(manifest_read_integer(reader, values->child, &parameter->low));
    TRY(manifest_read_integer(reader, values->child->next, &parameter->high));
    if (parameter->low > parameter->high)
        REFUSE_AT(reader, object, "values", "the least value is above the largest");
    return HEALCL_OK;
}

static enum healcl_status manifest_add_parameter(const struct reader *reader, const cJSON *object,
                                                 struct vendor_operation *operation,
                                                 struct healcl_parameter_info *parameter)
{
    static const char *const members[] = {"name",   "kind",  "dtype", "layout",
                                          "values", "reads", NULL};
    static const char *const layouts[] = {"contiguous", "any", NULL};
    struct vendor_parameter *own = &operation->parameters[operation->form.parameter_count];
    size_t layout;
    TRY(manifest_check_members(reader, object, members));
    TRY(manifest_read_word(reader, object, "name", &parameter->name));
    TRY(manifest_read_kind(reader, object, &parameter->kind));
    parameter->optional = parameter_traits[parameter->kind].accepted >> ARGUMENT_NONE & 1;
    for (uint32_t i = 0; i < operation->form.parameter_count; i++)
        if (strcmp(operation->form.parameters[i].name, parameter->name) == 0)
            REFUSE_AT(reader, object, "name", "another parameter is named '%s'", parameter->name);
    const bool is_out = parameter->kind == HEALCL_PARAMETER_OUT;
    const bool is_tensor = is_out || parameter->kind == HEALCL_PARAMETER_TENSOR;
    if (is_out != (strcmp(parameter->name, "out") == 0))
        REFUSE_AT(reader, object, "name", "exactly the parameter of kind out must be named out");
    for (size_t i = 2; members[i] && !is_tensor; i++)
        if (manifest_member(object, members[i]))
            REFUSE_AT(reader, object, members[i], "applies only to tensors");
    if (manifest_member(object, "reads") && !is_out)
        REFUSE_AT(reader, object, "reads", "applies only to the parameter out");
    own->number = NO_INPUT;
    if (parameter->kind == HEALCL_PARAMETER_HINT || parameter->kind == HEALCL_PARAMETER_NOTHING)
        return HEALCL_OK;
    if (is_tensor)
        TRY(read_dtypes(reader, object, &own->dtypes));
    TRY(read_values(reader, object, own));
    TRY(manifest_read_choice(reader, object, "layout", layouts, "contiguous", &layout));
    const cJSON *reads = manifest_member(object, "reads");
    if (reads && !cJSON_IsBool(reads))
        REFUSE_AT(reader, object, "reads", "must be true or false");
    operation->reads_out |= cJSON_IsTrue(reads);
    const int end = is_tensor ? STEP_INPUTS : VENDOR_TUNABLES;
    own->number = is_out ? VENDOR_OUT : is_tensor ? 0 : VENDOR_INTEGERS;
    while (!is_out && own->number < end && operation->names.of[own->number].name)
        own->number++;
    if (!is_out && own->number == end)
        REFUSE_AT(reader, object, NULL, "exceeds the limit of %d tensors or %d integers",
                  STEP_INPUTS, VENDOR_INTEGERS_MAX);
    operation->names.of[own->number] = (struct expression_name){parameter->name, is_tensor, true};
    operation->parameter_of[own->number] = (int)operation->form.parameter_count;
    if (is_tensor)
        operation->strides_of[own->number] = layout == 1;
    return HEALCL_OK;
}

static enum healcl_status read_parameters(const struct reader *reader, const cJSON *object,
                                          struct vendor_operation *operation)
{
    const cJSON *list;
    struct healcl_parameter_info *parameters =
        arena_alloc(reader->arena, PARAMETERS_MAX * sizeof *parameters);
    NEED_MEMORY(parameters, reader->error);
    operation->form.parameters = parameters;
    for (int i = 0; i < EXPRESSION_NAMES_MAX; i++)
        operation->parameter_of[i] = NO_INPUT;
    TRY(manifest_read_list(reader, object, "parameters", true, PARAMETERS_MAX, &list));
    for (const cJSON *item = list->child; item; item = item->next) {
        struct healcl_parameter_info *parameter = &parameters[operation->form.parameter_count];
        TRY(manifest_add_parameter(reader, item, operation, parameter));
        operation->form.parameter_count++;
    }
    return HEALCL_OK;
}

static enum healcl_status manifest_read_result(const struct reader *reader, const cJSON *object,
                                               struct vendor_operation *operation)
{
    static const char *const members[] = {"dtype", "shape", NULL};
    const cJSON *result = manifest_member(object, "result"), *shape;
    const bool has_out = operation->names.of[VENDOR_OUT].name != NULL;
    if (has_out && result)
        REFUSE_AT(reader, object, "result", "is not allowed beside a parameter out");
    if (!has_out && !result)
        REFUSE_AT(reader, object, "result", "is missing, and so is a parameter out");
    if (has_out)
        return HEALCL_OK;
    TRY(manifest_check_members(reader, result, members));
    if (!manifest_member(result, "dtype"))
        REFUSE_AT(reader, result, "dtype", "is missing");
    TRY(manifest_read_dtype(reader, manifest_member(result, "dtype"), &operation->out_dtype));
    TRY(manifest_read_list(reader, result, "shape", true, MAX_RANK, &shape));
    for (const cJSON *item = shape->child; item; item = item->next)
        TRY(manifest_read_expression(reader, item, &operation->names,
                                     &operation->out_shape[operation->out_rank++]));
    operation->makes_out = true;
    operation->names.of[VENDOR_OUT] = (struct expression_name){"out", .is_tensor = true};
    return HEALCL_OK;
}

static enum healcl_status read_rules(const struct reader *reader, const cJSON *object,
                                     struct vendor_operation *operation)
{
    const cJSON *list;
    TRY(manifest_read_list(reader, object, "rules", false, LIST_MAX, &list));
    if (!list)
        return HEALCL_OK;
    operation->rules = arena_alloc(reader->arena, LIST_MAX * sizeof *operation->rules);
    NEED_MEMORY(operation->rules, reader->error);
    for (const cJSON *item = list->child; item; item = item->next)
        TRY(manifest_read_expression(reader, item, &operation->names,
                                     &operation->rules[operation->rule_count++]));
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- bodies */

/* Adds the names of the tensors that a body makes after all others. */
struct body_names {
    const char *of[BODY_ENTRIES_MAX];
    uint32_t count;
};

/* Returns the number of a tensor, or NO_INPUT. */
static int tensor_number(const struct vendor_operation *operation, const struct body_names *made,
                         const char *name)
{
    for (int i = 0; i <= VENDOR_OUT; i++)
        if (operation->names.of[i].name && strcmp(operation->names.of[i].name, name) == 0)
            return i;
    for (uint32_t i = 0; i < made->count; i++)
        if (strcmp(made->of[i], name) == 0)
            return EXPRESSION_NAMES_MAX + (int)i;
    return NO_INPUT;
}

/* Removes the tags of a transcript: {"arg_type": ..., "value": ...}, {"inf_name": ...}. */
static const cJSON *untagged(const cJSON *node)
{
    for (int i = 0; i < 2 && cJSON_IsObject(node); i++) {
        const cJSON *value =
            manifest_member(node, manifest_member(node, "arg_type") ? "value" : "inf_name");
        node = value ? value : node;
    }
    return node;
}

static enum healcl_status read_body_argument(const struct reader *reader,
                                             const struct vendor_operation *operation,
                                             const struct body_names *made, const cJSON *tagged,
                                             struct body_argument *argument)
{
    const cJSON *node = untagged(tagged);
    int number = NO_INPUT;
    if (cJSON_IsString(node))
        number = tensor_number(operation, made, node->valuestring);
    if (cJSON_IsString(node) && dtype_from_name(node->valuestring, &argument->dtype)) {
        argument->kind = ARGUMENT_TENSOR_TYPE;
    } else if (number != NO_INPUT) {
        argument->kind = ARGUMENT_DEVICE_TENSOR;
        argument->tensor = (uint32_t)number;
    } else if (cJSON_IsNull(node)) {
        argument->kind = ARGUMENT_NONE;
    } else if (cJSON_IsArray(node)) {
        argument->kind = ARGUMENT_SHAPE;
        if (cJSON_GetArraySize(node) > MAX_RANK)
            REFUSE_AT(reader, node, NULL, "has more than %d items", MAX_RANK);
        for (const cJSON *item = node->child; item; item = item->next)
            TRY(manifest_read_expression(reader, item, &operation->names,
                                         &argument->values[argument->count++]));
    } else {
        argument->kind = ARGUMENT_INT;
        argument->count = 1;
        TRY(manifest_read_expression(reader, node, &operation->names, &argument->values[0]));
    }
    return HEALCL_OK;
}

/* Whether a form accepts the arguments as written. Arguments that a body cannot have are
 * refused. */
static enum healcl_status check_body_entry(const struct reader *reader, const cJSON *object,
                                           const struct body_entry *from, const struct form **form)
{
    struct entry *entry = calloc(1, sizeof *entry); /* large */
    NEED_MEMORY(entry, reader->error);
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
        REFUSE_AT(reader, object, "name", "'%s' is not allowed in a body", from->name);
    return HEALCL_OK;
}

static enum healcl_status read_body_out(const struct reader *reader, const cJSON *object,
                                        const struct vendor_operation *operation,
                                        const struct form *form, struct body_names *made,
                                        struct body_entry *entry)
{
    const cJSON *out = untagged(manifest_member(object, "out"));
    const bool makes = form->operation->result == RESULT_NEW;
    entry->out = NO_INPUT;
    if (!out || cJSON_IsNull(out)) {
        if (makes)
            REFUSE_AT(reader, object, "out", "is missing");
        return HEALCL_OK;
    }
    if (!makes) /* another name of the tensor that it writes */
        return HEALCL_OK;
    if (!cJSON_IsString(out) || !manifest_is_word(out->valuestring))
        REFUSE_AT(reader, object, "out", "must name a tensor");
    if (tensor_number(operation, made, out->valuestring) != NO_INPUT)
        REFUSE_AT(reader, object, "out", "tensor '%s' already exists", out->valuestring);
    entry->out = EXPRESSION_NAMES_MAX + (int)made->count;
    return manifest_keep(reader, out->valuestring, &made->of[made->count++]);
}

static enum healcl_status read_body(const struct reader *reader, const cJSON *object,
                                    struct vendor_operation *operation)
{
    static const char *const members[] = {"name", "op", "type", "args", "out", NULL};
    struct body_names made = {.count = 0};
    const cJSON *list, *arguments;
    TRY(manifest_read_list(reader, object, "body", false, BODY_ENTRIES_MAX, &list));
    if (!list)
        return HEALCL_OK;
    if (!list->child)
        REFUSE_AT(reader, object, "body", "is empty");
    operation->body = arena_alloc(reader->arena, BODY_ENTRIES_MAX * sizeof *operation->body);
    NEED_MEMORY(operation->body, reader->error);
    for (const cJSON *item = list->child; item; item = item->next) {
        struct body_entry *entry = &operation->body[operation->body_count++];
        const struct form *form;
        TRY(manifest_check_members(reader, item, members));
        TRY(manifest_read_word(reader, item, "name", &entry->name));
        TRY(manifest_read_list(reader, item, "args", true, PARAMETERS_MAX, &arguments));
        for (const cJSON *argument = arguments->child; argument; argument = argument->next)
            TRY(read_body_argument(reader, operation, &made, argument,
                                   &entry->arguments[entry->argument_count++]));
        TRY(check_body_entry(reader, item, entry, &form));
        TRY(read_body_out(reader, item, operation, form, &made, entry));
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- operations */

static enum healcl_status read_kernels(struct reader *reader, const cJSON *object,
                                       struct vendor_operation *operation)
{
    const cJSON *list;
    TRY(manifest_read_list(reader, object, "kernels", false, VENDOR_KERNELS_MAX, &list));
    for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
        if (manifest_member(item, "step"))
            REFUSE_AT(reader, item, "step", "applies only to replacements");
        struct vendor_kernel **kernel = &operation->kernels[operation->kernel_count++];
        TRY(manifest_read_kernel(reader, item, &operation->names, kernel));
        TRY(manifest_add_identity(reader, item, *kernel, &operation->identity));
        (*kernel)->strides_of = operation->strides_of;
        operation->has_alternatives |= (*kernel)->alternative_count > 1;
    }
    if (operation->kernel_count == 0 && !manifest_member(object, "body"))
        REFUSE_AT(reader, object, "kernels", "there is neither a kernel nor a body");
    return HEALCL_OK;
}

static enum healcl_status register_operation(const struct reader *reader, const cJSON *object,
                                             struct vendor_operation *operation,
                                             const char *meaning)
{
    struct operation added = {.name = operation->name,
                              .family = "vendor",
                              .dtypes = {.by_parameter = true},
                              .result = operation->makes_out ? RESULT_NEW : RESULT_ALIAS,
                              .meaning = meaning,
                              .manifest = reader->file_name,
                              .infer = infer_vendor,
                              .context = operation};
    for (uint32_t i = 0; i < operation->form.parameter_count; i++)
        added.dtypes.values |= operation->parameters[i].dtypes;
    operation->form.name = operation->name;
    TRY_AT(reader, object, "name",
           operation_table_add(reader->operations->base.table, &added, &operation->form,
                               reader->error));
    return HEALCL_OK;
}

static enum healcl_status manifest_read_operation(struct reader *reader, const cJSON *object)
{
    static const char *const members[] = {"name",  "meaning", "parameters", "result",
                                          "rules", "kernels", "body",       NULL};
    const char *meaning;
    struct vendor_operation *operation = arena_alloc(reader->arena, sizeof *operation);
    NEED_MEMORY(operation, reader->error);
    if (manifest_member(object, "examples"))
        REFUSE_AT(reader, object, "examples",
                  "calls are now transcripts in the folder examples/ beside the manifest");
    TRY(manifest_check_members(reader, object, members));
    TRY(manifest_read_word(reader, object, "name", &operation->name));
    TRY(manifest_read_text(reader, object, "meaning", false, (size_t)TEXT_MAX * 2, &meaning));
    TRY(read_parameters(reader, object, operation));
    TRY(manifest_read_result(reader, object, operation));
    TRY(read_rules(reader, object, operation));
    TRY(read_kernels(reader, object, operation));
    TRY(read_body(reader, object, operation));
    return register_operation(reader, object, operation, meaning ? meaning : "a vendor's own");
}

/* ---------------------------------------------------------------- replacements */

/* Returns the kind of step with this name, if kernels can replace it, else STEP_KINDS. */
static int replaceable_kind(const char *id)
{
    int kind = 0;
    while (kind < STEP_KINDS &&
           !(step_traits[kind].inputs[0] && strcmp(step_traits[kind].id, id) == 0))
        kind++;
    return kind;
}

static void name_step(int kind, struct expression_names *names)
{
    for (int i = 0; i < STEP_INPUTS; i++)
        names->of[i] = (struct expression_name){step_traits[kind].inputs[i], .is_tensor = true};
    names->of[VENDOR_OUT] = (struct expression_name){"out", .is_tensor = true};
    names->of[VENDOR_INTEGERS].name = "value0";
    names->of[VENDOR_INTEGERS + 1].name = "value1";
}

static enum healcl_status read_replacement(struct reader *reader, const cJSON *object)
{
    const char *name;
    struct vendor_replacement *made = arena_alloc(reader->arena, sizeof *made);
    NEED_MEMORY(made, reader->error);
    TRY(manifest_read_word(reader, object, "step", &name));
    const int kind = replaceable_kind(name);
    if (kind == STEP_KINDS)
        REFUSE_AT(reader, object, "step", "there is no step '%s'", name);
    name_step(kind, &made->names);
    TRY(manifest_read_kernel(reader, object, &made->names, &made->kernel));
    TRY(manifest_add_identity(reader, object, made->kernel,
                              &reader->operations->replacement_identities[kind]));
    struct vendor_replacement **last = &reader->operations->replacements[kind];
    while (*last) /* the first one that can run a step is used */
        last = &(*last)->next;
    *last = made;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- manifests */

static enum healcl_status manifest_read_json(struct reader *reader)
{
    static const char *const members[] = {"healcl", "operations", "replacements", NULL};
    const cJSON *list, *version = manifest_member(reader->root, "healcl");
    TRY(manifest_check_members(reader, reader->root, members));
    if (!cJSON_IsNumber(version) || version->valuedouble != 1)
        REFUSE_AT(reader, reader->root, "healcl", "must be 1, the version of the format");
    TRY(manifest_read_list(reader, reader->root, "operations", false, LIST_MAX, &list));
    for (const cJSON *item = list ? list->child : NULL; item; item = item->next)
        TRY(manifest_read_operation(reader, item));
    TRY(manifest_read_list(reader, reader->root, "replacements", false, LIST_MAX, &list));
    for (const cJSON *item = list ? list->child : NULL; item; item = item->next)
        TRY(read_replacement(reader, item));
    for (const struct pending *pending = reader->pending; pending; pending = pending->next)
        TRY(manifest_load_library(reader, pending));
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
        REFUSE(error, "%.200s:%u: it is not JSON", file, line);
    }
    reader.root = root;
    const char *slash = strrchr(file, '/');
    enum healcl_status status = manifest_keep(&reader, slash ? slash + 1 : file, &reader.file_name);
    THEN(status, manifest_read_json(&reader));
    cJSON_Delete(root);
    return status;
}
