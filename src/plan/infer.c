/* Inference: the parts common to all operations, and which function infers which operation. */
#include "plan/infer.h"

#include <inttypes.h>
#include <string.h>

#include "plan/cached_call.h"

/* ---------------------------------------------------------------- arguments by name */

int index_of(const struct call *call, const char *name)
{
    return form_parameter(call->form, name);
}

const struct tensor *tensor_of(const struct call *call, const char *name)
{
    int i = index_of(call, name);
    return i < 0 ? NULL : call->tensors[i];
}

void name_argument(const struct call *call, const char *name, struct healcl_error *error)
{
    error_prefix(error, "argument '%s': ", name);
    error_argument(error, index_of(call, name));
}

int64_t integer_of(const struct call *call, const char *name, int64_t absent)
{
    int i = index_of(call, name);
    return i < 0 ? absent : call->entry->arguments[i].integer;
}

enum healcl_status axis_of(const struct call *call, const char *name, uint32_t rank, uint32_t *axis,
                           struct healcl_error *error)
{
    TRY_ARGUMENT(name, axis_normalize(integer_of(call, name, 0), rank, axis, error));
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- checks */

/* Whether a parameter holds values, whose dtype all such parameters share. */
static bool holds_values(const struct form *form, uint32_t i)
{
    enum healcl_parameter_kind kind = form->parameters[i].kind;
    const char *also = form->operation->dtypes.also;
    return (kind == HEALCL_PARAMETER_TENSOR || kind == HEALCL_PARAMETER_OUT) &&
           !(also && strcmp(also, form->parameters[i].name) == 0);
}

static enum healcl_status check_dtype(const struct call *call, uint32_t i, enum dtype values,
                                      struct healcl_error *error)
{
    const struct healcl_parameter_info *parameter = &call->form->parameters[i];
    const struct dtype_rule *rule = &call->form->operation->dtypes;
    enum dtype dtype = call->tensors[i]->storage->dtype;
    char text[DTYPES_TEXT_SIZE];
    if (dtype_rule_allows(rule, parameter->name, values, dtype))
        return HEALCL_OK;
    if (!(rule->values >> dtype & 1))
        REFUSE_ARGUMENT_FOR(DTYPE, parameter->name,
                            "%s is not among the dtypes of this operation (%s)", dtype_name(dtype),
                            dtype_rule_text(rule, text));
    REFUSE_ARGUMENT_FOR(DTYPE, parameter->name, "is %s, but must be %s like the others",
                        dtype_name(dtype), dtype_name(values));
}

/* The parameter that determines the values' dtype: out, or without an out the first tensor; -1 if
 * none. */
static int values_parameter(const struct call *call)
{
    const struct form *form = call->form;
    int first = form_parameter(form, "out");
    if (first >= 0 && !(call->tensors[first] && holds_values(form, (uint32_t)first)))
        first = -1;
    for (uint32_t i = 0; first < 0 && i < form->parameter_count; i++)
        if (call->tensors[i] && holds_values(form, i))
            first = (int)i;
    return first;
}

static enum healcl_status check_dtypes(const struct call *call, struct healcl_error *error)
{
    const struct form *form = call->form;
    int first = values_parameter(call);
    if (first < 0)
        return HEALCL_OK;
    enum dtype values = call->tensors[first]->storage->dtype;
    TRY(check_dtype(call, (uint32_t)first, values, error));
    for (uint32_t i = 0; i < form->parameter_count; i++) {
        enum healcl_parameter_kind kind = form->parameters[i].kind;
        if (!call->tensors[i])
            continue;
        if (kind == HEALCL_PARAMETER_TENSOR || kind == HEALCL_PARAMETER_OUT)
            TRY(check_dtype(call, i, values, error));
        else if (kind == HEALCL_PARAMETER_INDICES)
            TRY(want_index(call, form->parameters[i].name, error));
    }
    return HEALCL_OK;
}

enum healcl_status want_rank(const struct call *call, const char *name, const struct tensor *tensor,
                             uint32_t rank, struct healcl_error *error)
{
    if (tensor->layout.rank != rank)
        REFUSE_ARGUMENT_FOR(SHAPE, name, "rank %" PRIu32 ", but must be %" PRIu32,
                            tensor->layout.rank, rank);
    return HEALCL_OK;
}

enum healcl_status want_shape(const struct call *call, const char *name,
                              const struct layout *layout, uint32_t rank, const int64_t *shape,
                              struct healcl_error *error)
{
    struct layout wanted = {.rank = rank};
    memcpy(wanted.shape, shape, rank * sizeof *shape);
    if (!layout_same_shape(layout, &wanted)) {
        char text[SHAPE_TEXT_SIZE], text_wanted[SHAPE_TEXT_SIZE];
        REFUSE_ARGUMENT_FOR(SHAPE, name, "shape %s, but must be %s",
                            layout_shape_text(layout, text),
                            layout_shape_text(&wanted, text_wanted));
    }
    return HEALCL_OK;
}

enum healcl_status find_out(struct call *call, uint32_t rank, const int64_t *shape,
                            const struct tensor **out, struct healcl_error *error)
{
    *out = tensor_of(call, "out");
    if (*out)
        return want_shape(call, "out", &(*out)->layout, rank, shape, error);
    enum dtype dtype = call->tensors[values_parameter(call)]->storage->dtype;
    TRY_ARGUMENT("out", planner_new_tensor(call, dtype, rank, shape, out, error));
    call->tensors[index_of(call, "out")] = call->result = *out;
    return HEALCL_OK;
}

enum healcl_status want_index(const struct call *call, const char *name, struct healcl_error *error)
{
    const struct tensor *tensor = tensor_of(call, name);
    if (tensor->storage->dtype == DTYPE_INT8)
        REFUSE_ARGUMENT_FOR(DTYPE, name, "is int8, but indices are int32 or int64");
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- steps */

enum healcl_status set_input(struct call *call, struct step *step, int i, const char *name,
                             const struct layout *layout, struct healcl_error *error)
{
    const struct tensor *tensor = tensor_of(call, name);
    step->arguments[i].parameter = (uint8_t)index_of(call, name);
    return plan_view(call->planner->plan, tensor->storage, layout ? layout : &tensor->layout,
                     &step->in[i], error);
}

enum healcl_status set_output(struct call *call, struct step *step, const struct layout *layout,
                              struct healcl_error *error)
{
    return plan_view(call->planner->plan, tensor_of(call, "out")->storage, layout, &step->out,
                     error);
}

/* Copies input i of a step to a new storage, so that writing the output cannot change it. Repeated
 * elements are copied once. */
static enum healcl_status copy_input(struct call *call, struct step *step, int i,
                                     struct healcl_error *error)
{
    const struct tensor *input = step->in[i], *copy;
    const struct layout own = layout_own_elements(&input->layout);
    TRY(planner_new_tensor(call, input->storage->dtype, own.rank, own.shape, &copy, error));
    struct step copy_step = planner_step(call->planner, STEP_COPY, copy);
    TRY(plan_view(call->planner->plan, input->storage, &own, &copy_step.in[0], error));
    copy_step.arguments[0] = step->arguments[i];
    TRY(planner_add_step(call->planner, &copy_step, error));

    struct layout view = input->layout;
    view.offset = 0;
    for (uint32_t axis = 0, next = 0; axis < view.rank; axis++)
        if (view.stride[axis] != 0)
            view.stride[axis] = copy->layout.stride[next++];
    return plan_view(call->planner->plan, copy->storage, &view, &step->in[i], error);
}

enum healcl_status add_compute(struct call *call, struct step *step, struct healcl_error *error)
{
    const struct layout *out = &step->out->layout;
    if (layout_elements(out) == 0)
        return HEALCL_OK;
    const struct tensor *copies[STEP_INPUTS] = {NULL};
    for (int i = 0; i < STEP_INPUTS; i++) {
        const struct tensor *input = step->in[i];
        if (!tensors_overlap(input, step->out))
            continue;
        bool in_place = step_traits[step->kind].in_place >> i & 1;
        if (in_place && layout_same_elements(&input->layout, out))
            continue;
        TRY(copy_input(call, step, i, error));
        copies[i] = step->in[i];
    }
    TRY(planner_add_step(call->planner, step, error));
    for (int i = 0; i < STEP_INPUTS; i++)
        if (copies[i])
            TRY(planner_release(call->planner, copies[i], error));
    return HEALCL_OK;
}

enum healcl_status add_fill(struct call *call, const struct tensor *out, int64_t value,
                            struct healcl_error *error)
{
    struct step step = planner_step(call->planner, STEP_FILL, out);
    step.value[0] = value;
    return add_compute(call, &step, error);
}

/* ---------------------------------------------------------------- all of them */

enum healcl_status infer(struct call *call, struct healcl_error *error)
{
    static infer_function *const functions[OPERATION_COUNT] = {
#define OPERATION(id, name, family, infer, ...) [OPERATION_##id] = infer,
#define FORM(...)
#include "plan/ops.def"
#undef OPERATION
#undef FORM
    };
    const enum operation_id id = form_id(call->form);
    const size_t first = call->planner->plan->step_count;
    struct call_key key;
    enum healcl_status status = HEALCL_OK;
    const bool has_key = call_key(call, &key);
    if (has_key && cached_call_repeat(call, &key, &status, error))
        return status;
    if (!call->form->operation->dtypes.by_parameter)
        TRY(check_dtypes(call, error));
    TRY((id < OPERATION_COUNT ? functions[id] : call->form->operation->infer)(call, error));
    if (has_key && id < OPERATION_COUNT)
        cached_call_keep(call, &key, first);
    return HEALCL_OK;
}
