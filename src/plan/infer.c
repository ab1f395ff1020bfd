/*
 * What each operation needs and does: shapes, dtypes and values are checked here, once, and turned
 * into steps in the one form that executors know (see plan.h).
 */
#include <inttypes.h>
#include <string.h>

#include "plan/planner.h"

/* ---------------------------------------------------------------- arguments by name */

static int index_of(const struct call *call, const char *name)
{
    return form_parameter(call->form, name);
}

/* The bound tensor of a parameter; NULL where the form lacks it or the argument is NONE. */
static const struct tensor *tensor_of(const struct call *call, const char *name)
{
    int i = index_of(call, name);
    return i < 0 ? NULL : call->tensors[i];
}

static int64_t integer_of(const struct call *call, const char *name, int64_t absent)
{
    int i = index_of(call, name);
    return i < 0 ? absent : call->entry->arguments[i].integer;
}

/* Refuses with the argument named. */
#define REFUSE_ARGUMENT(name, ...)                       \
    do {                                                 \
        (void)ERROR(error, HEALCL_REFUSED, __VA_ARGS__); \
        error_prefix(error, "argument '%s': ", name);    \
        return HEALCL_REFUSED;                           \
    } while (0)

/* Forwards an error with the argument named. */
#define TRY_ARGUMENT(name, expression)                    \
    do {                                                  \
        enum healcl_status try_status_ = (expression);    \
        if (try_status_ != HEALCL_OK) {                   \
            error_prefix(error, "argument '%s': ", name); \
            return try_status_;                           \
        }                                                 \
    } while (0)

MUST_CHECK static enum healcl_status axis_of(const struct call *call, const char *name,
                                             uint32_t rank, uint32_t *axis,
                                             struct healcl_error *error)
{
    TRY_ARGUMENT(name, axis_normalize(integer_of(call, name, 0), rank, axis, error));
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- checks */

/* Values are int32 or int64. */
MUST_CHECK static enum healcl_status want_arithmetic(const struct call *call, const char *name,
                                                     struct healcl_error *error)
{
    const struct tensor *tensor = tensor_of(call, name);
    if (tensor && tensor->storage->dtype == DTYPE_INT8)
        REFUSE_ARGUMENT(name, "int8 is not among the dtypes of this operation (%s)",
                        operations[call->form->operation].dtypes);
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status want_dtype(const struct call *call, const char *name,
                                                enum dtype dtype, struct healcl_error *error)
{
    const struct tensor *tensor = tensor_of(call, name);
    if (tensor && tensor->storage->dtype != dtype)
        REFUSE_ARGUMENT(name, "is %s, but must be %s like the others",
                        dtype_name(tensor->storage->dtype), dtype_name(dtype));
    return HEALCL_OK;
}

/* All named tensors that the form has are int32, or all are int64. The list ends with NULL. */
MUST_CHECK static enum healcl_status want_same_arithmetic(const struct call *call,
                                                          const char *const *names,
                                                          struct healcl_error *error)
{
    const struct tensor *first = tensor_of(call, names[0]);
    for (const char *const *name = names; *name; name++) {
        TRY(want_arithmetic(call, *name, error));
        TRY(want_dtype(call, *name, first->storage->dtype, error));
    }
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status want_rank(const char *name, const struct tensor *tensor,
                                               uint32_t rank, struct healcl_error *error)
{
    if (tensor->layout.rank != rank)
        REFUSE_ARGUMENT(name, "rank %" PRIu32 ", but must be %" PRIu32, tensor->layout.rank, rank);
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status want_shape(const char *name, const struct layout *layout,
                                                uint32_t rank, const int64_t *shape,
                                                struct healcl_error *error)
{
    struct layout wanted = {.rank = rank};
    memcpy(wanted.shape, shape, rank * sizeof *shape);
    if (!layout_same_shape(layout, &wanted)) {
        char text[SHAPE_TEXT_SIZE], text_wanted[SHAPE_TEXT_SIZE];
        REFUSE_ARGUMENT(name, "shape %s, but must be %s", layout_shape_text(layout, text),
                        layout_shape_text(&wanted, text_wanted));
    }
    return HEALCL_OK;
}

/* An index or permutation tensor. */
MUST_CHECK static enum healcl_status want_index(const struct call *call, const char *name,
                                                struct healcl_error *error)
{
    const struct tensor *tensor = tensor_of(call, name);
    if (tensor->storage->dtype == DTYPE_INT8)
        REFUSE_ARGUMENT(name, "is int8, but indices are int32 or int64");
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- steps */

static struct step new_step(const struct call *call, enum step_kind kind, const struct tensor *out)
{
    return (struct step){.kind = kind,
                         .entry = call->entry->index,
                         .name = call->name,
                         .form = call->form,
                         .out = out};
}

/* Input i of a step: the tensor of a parameter, seen through a layout. */
MUST_CHECK static enum healcl_status set_input(struct call *call, struct step *step, int i,
                                               const char *name, const struct layout *layout,
                                               struct healcl_error *error)
{
    struct tensor *view;
    const struct tensor *tensor = tensor_of(call, name);
    TRY(planner_view(call->planner, tensor->storage, layout ? layout : &tensor->layout, &view,
                     error));
    step->in[i] = view;
    step->parameter[i] = (uint8_t)index_of(call, name);
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status set_output(struct call *call, struct step *step,
                                                const struct layout *layout,
                                                struct healcl_error *error)
{
    struct tensor *view;
    TRY(planner_view(call->planner, tensor_of(call, "out")->storage, layout, &view, error));
    step->out = view;
    return HEALCL_OK;
}

/* A view with every repeated axis (stride 0) cut to size 1. */
static struct layout without_repeats(const struct layout *layout)
{
    struct layout compact = *layout;
    for (uint32_t axis = 0; axis < compact.rank; axis++)
        if (compact.stride[axis] == 0 && compact.shape[axis] > 1)
            compact.shape[axis] = 1;
    return compact;
}

/* Copies input i of a step to a storage of its own, so that writing the output cannot change it. */
MUST_CHECK static enum healcl_status copy_input(struct call *call, struct step *step, int i,
                                                struct healcl_error *error)
{
    const struct tensor *input = step->in[i];
    struct layout source = without_repeats(&input->layout);
    struct tensor *copy, *source_view, *view;
    /* A split axis (repeat_interleave) may give the view one axis more than a tensor may have. */
    struct layout flat = source;
    for (uint32_t axis = 0; axis < flat.rank && flat.rank > MAX_RANK;)
        if (flat.shape[axis] == 1)
            flat = layout_drop_axis(&flat, axis);
        else
            axis++;
    TRY(planner_new_tensor(call, input->storage->dtype, flat.rank, flat.shape, &copy, error));
    TRY(planner_view(call->planner, input->storage, &flat, &source_view, error));
    struct step copy_step = new_step(call, STEP_COPY, copy);
    copy_step.in[0] = source_view;
    copy_step.parameter[0] = step->parameter[i];
    TRY(planner_add_step(call->planner, &copy_step, error));

    struct layout layout = layout_packed(&source);
    for (uint32_t axis = 0; axis < layout.rank; axis++)
        if (source.shape[axis] != input->layout.shape[axis]) {
            layout.shape[axis] = input->layout.shape[axis];
            layout.stride[axis] = 0;
        }
    TRY(planner_view(call->planner, copy->storage, &layout, &view, error));
    step->in[i] = view;
    return HEALCL_OK;
}

/* Whether a step may write an output whose elements are those of this input, in the same places:
 * it reads each element before it writes it. */
static bool may_run_in_place(enum step_kind kind, int input)
{
    switch (kind) {
    case STEP_COPY:
    case STEP_MODMUL:
    case STEP_MODSUM:
    case STEP_MOD:
    case STEP_MODNEG:
    case STEP_ABS: return true;
    case STEP_NTT:
    case STEP_INTT: return input == 0;
    default: return false;
    }
}

/*
 * Adds a step that computes out from inputs. Results are as if every input had been read first:
 * inputs that overlap the output are copied before, unless the step may run in place.
 * A step whose output has no elements is not added.
 */
MUST_CHECK static enum healcl_status add_compute(struct call *call, struct step *step,
                                                 struct healcl_error *error)
{
    const struct layout *out = &step->out->layout;
    if (layout_elements(out) == 0)
        return HEALCL_OK;
    const struct tensor *copies[STEP_INPUTS] = {NULL};
    for (int i = 0; i < STEP_INPUTS; i++) {
        const struct tensor *input = step->in[i];
        if (!input || input->storage != step->out->storage ||
            !layouts_may_overlap(&input->layout, out))
            continue;
        if (may_run_in_place(step->kind, i) && layout_same_elements(&input->layout, out))
            continue;
        TRY(copy_input(call, step, i, error));
        copies[i] = step->in[i];
    }
    TRY(planner_add_step(call->planner, step, error));
    for (int i = 0; i < STEP_INPUTS; i++)
        if (copies[i])
            TRY(planner_release(call->planner, call->entry, call->name, copies[i], error));
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status add_fill(struct call *call, const struct tensor *out,
                                              int64_t value, struct healcl_error *error)
{
    struct step step = new_step(call, STEP_FILL, out);
    step.value[0] = value;
    return add_compute(call, &step, error);
}

/* ---------------------------------------------------------------- memory */

MUST_CHECK static enum healcl_status infer_host_to_device(struct call *call,
                                                          struct healcl_error *error)
{
    const struct argument *host = &call->entry->arguments[0];
    const struct argument *out = &call->entry->out;
    if (!host->host.present)
        REFUSE_ARGUMENT("tensor", "holds no data");
    const struct payload *payload = &host->host.payload;
    enum dtype dtype = payload->dtype;
    if (out->kind == ARGUMENT_DEVICE_TENSOR && out->tensor.has_dtype)
        dtype = out->tensor.dtype;
    struct payload *copy = arena_alloc(call->planner->plan->arena, sizeof *copy);
    if (!copy)
        NO_MEMORY(error);
    *copy = *payload;
    TRY_ARGUMENT("tensor", planner_new_tensor(call, dtype, payload->layout.rank,
                                              payload->layout.shape, &call->result, error));
    uint64_t bytes = storage_bytes(call->result->storage);
    call->planner->segment->bytes_up += bytes;
    if (bytes == 0)
        return HEALCL_OK;
    struct step step = new_step(call, STEP_UPLOAD, call->result);
    step.payload = copy;
    return planner_add_step(call->planner, &step, error);
}

MUST_CHECK static enum healcl_status infer_device_to_host(struct call *call,
                                                          struct healcl_error *error)
{
    struct plan *plan = call->planner->plan;
    struct step step = new_step(call, STEP_DOWNLOAD, NULL);
    TRY(set_input(call, &step, 0, "t", NULL, error));
    step.tensor_name =
        arena_strdup(plan->arena, call->entry->arguments[index_of(call, "t")].tensor.name);
    if (!step.tensor_name)
        NO_MEMORY(error);
    const struct argument *out = &call->entry->out;
    if (out->kind == ARGUMENT_HOST_TENSOR && out->host.present) {
        struct payload *copy = arena_alloc(plan->arena, sizeof *copy);
        if (!copy)
            NO_MEMORY(error);
        *copy = out->host.payload;
        step.payload = copy;
        plan->expected++;
    }
    plan->results++;
    call->planner->segment->bytes_down +=
        (uint64_t)layout_elements(&step.in[0]->layout) * dtype_size(step.in[0]->storage->dtype);
    return planner_add_step(call->planner, &step, error);
}

/* Reads a SHAPE argument as sizes. */
MUST_CHECK static enum healcl_status shape_of(const struct call *call, const char *name,
                                              int64_t shape[INDEX_ITEMS_MAX], uint32_t *rank,
                                              struct healcl_error *error)
{
    const struct argument *argument = &call->entry->arguments[index_of(call, name)];
    *rank = argument->shape.count;
    if (*rank > MAX_RANK)
        REFUSE_ARGUMENT(name, "rank %" PRIu32 " is above %d", *rank, MAX_RANK);
    for (uint32_t i = 0; i < *rank; i++) {
        if (argument->shape.items[i].kind != INDEX_INT)
            REFUSE_ARGUMENT(name, "item %" PRIu32 " of a shape must be an INT", i);
        shape[i] = argument->shape.items[i].value;
    }
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status infer_empty(struct call *call, struct healcl_error *error)
{
    int64_t shape[INDEX_ITEMS_MAX];
    uint32_t rank;
    TRY(shape_of(call, "shape", shape, &rank, error));
    enum dtype dtype = call->entry->arguments[index_of(call, "dtype")].dtype;
    TRY_ARGUMENT("shape", planner_new_tensor(call, dtype, rank, shape, &call->result, error));
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status infer_zeros(struct call *call, struct healcl_error *error)
{
    TRY(infer_empty(call, error));
    return add_fill(call, call->result, 0, error);
}

MUST_CHECK static enum healcl_status infer_set_const_val(struct call *call,
                                                         struct healcl_error *error)
{
    call->result = call->tensors[index_of(call, "a")];
    int64_t value = integer_of(call, "v", 0);
    enum dtype dtype = call->result->storage->dtype;
    if (!dtype_holds(dtype, value))
        REFUSE_ARGUMENT("v", "%" PRId64 " does not fit %s", value, dtype_name(dtype));
    return add_fill(call, call->result, value, error);
}

/* ---------------------------------------------------------------- views */

/* The result is a view of the storage of argument a. */
MUST_CHECK static enum healcl_status result_view(struct call *call, const struct layout *layout,
                                                 struct healcl_error *error)
{
    return planner_view(call->planner, tensor_of(call, "a")->storage, layout, &call->result, error);
}

/* The result is a copy of argument a, in C order, in another shape of as many elements. */
MUST_CHECK static enum healcl_status result_copy(struct call *call, uint32_t rank,
                                                 const int64_t *shape, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a");
    struct tensor *same_shape;
    TRY(planner_new_tensor(call, a->storage->dtype, rank, shape, &call->result, error));
    struct layout layout = layout_packed(&a->layout);
    TRY(planner_view(call->planner, call->result->storage, &layout, &same_shape, error));
    struct step step = new_step(call, STEP_COPY, same_shape);
    TRY(set_input(call, &step, 0, "a", NULL, error));
    return add_compute(call, &step, error);
}

MUST_CHECK static enum healcl_status reshape_to(struct call *call, uint32_t rank,
                                                const int64_t *shape, struct healcl_error *error)
{
    struct layout view;
    if (layout_reshape(&tensor_of(call, "a")->layout, rank, shape, &view))
        return result_view(call, &view, error);
    return result_copy(call, rank, shape, error);
}

MUST_CHECK static enum healcl_status infer_reshape(struct call *call, struct healcl_error *error)
{
    int64_t shape[INDEX_ITEMS_MAX];
    uint32_t rank;
    TRY(shape_of(call, "shape", shape, &rank, error));
    int64_t elements = layout_elements(&tensor_of(call, "a")->layout);
    TRY_ARGUMENT("shape", shape_complete(rank, shape, elements, error));
    return reshape_to(call, rank, shape, error);
}

MUST_CHECK static enum healcl_status infer_flatten(struct call *call, struct healcl_error *error)
{
    const struct layout *a = &tensor_of(call, "a")->layout;
    int64_t shape[LAYOUT_RANK];
    uint32_t first, last, rank = 0;
    /* A tensor of rank 0 counts as one axis, as in torch. */
    TRY(axis_of(call, "first", a->rank ? a->rank : 1, &first, error));
    TRY(axis_of(call, "last", a->rank ? a->rank : 1, &last, error));
    if (first > last)
        REFUSE_ARGUMENT("last", "axis %" PRIu32 " comes before axis %" PRIu32, last, first);
    for (uint32_t axis = 0; axis < first; axis++)
        shape[rank++] = a->shape[axis];
    struct layout joined = {.rank = a->rank ? last - first + 1 : 0};
    memcpy(joined.shape, a->shape + first, joined.rank * sizeof *shape);
    shape[rank++] = layout_elements(&joined);
    for (uint32_t axis = last + 1; axis < a->rank; axis++)
        shape[rank++] = a->shape[axis];
    return reshape_to(call, rank, shape, error);
}

MUST_CHECK static enum healcl_status infer_squeeze(struct call *call, struct healcl_error *error)
{
    const struct layout *a = &tensor_of(call, "a")->layout;
    uint32_t axis;
    TRY(axis_of(call, "axis", a->rank, &axis, error));
    if (a->shape[axis] != 1)
        REFUSE_ARGUMENT("axis", "axis %" PRIu32 " has size %" PRId64 ", not 1", axis,
                        a->shape[axis]);
    struct layout view = layout_drop_axis(a, axis);
    return result_view(call, &view, error);
}

MUST_CHECK static enum healcl_status infer_unsqueeze(struct call *call, struct healcl_error *error)
{
    const struct layout *a = &tensor_of(call, "a")->layout;
    uint32_t axis;
    TRY(axis_of(call, "axis", a->rank + 1, &axis, error));
    if (a->rank == MAX_RANK)
        REFUSE_ARGUMENT("a", "rank %d cannot grow", MAX_RANK);
    int64_t stride = axis < a->rank ? a->stride[axis] * a->shape[axis] : 1;
    struct layout view = layout_insert_axis(a, axis, 1, stride);
    return result_view(call, &view, error);
}

MUST_CHECK static enum healcl_status infer_expand(struct call *call, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a");
    uint32_t axis;
    TRY(axis_of(call, "axis", a->layout.rank, &axis, error));
    if (a->layout.shape[axis] != 1)
        REFUSE_ARGUMENT("axis", "axis %" PRIu32 " has size %" PRId64 ", not 1", axis,
                        a->layout.shape[axis]);
    int64_t repeats = integer_of(call, "repeats", 1);
    if (repeats < 1)
        REFUSE_ARGUMENT("repeats", "%" PRId64 " is below 1", repeats);
    struct layout view = a->layout, checked;
    view.shape[axis] = repeats;
    if (repeats > 1)
        view.stride[axis] = 0;
    TRY_ARGUMENT("repeats", layout_init(&checked, view.rank, view.shape,
                                        dtype_size(a->storage->dtype), error));
    return result_view(call, &view, error);
}

MUST_CHECK static enum healcl_status infer_moveaxis(struct call *call, struct healcl_error *error)
{
    const struct layout *a = &tensor_of(call, "a")->layout;
    uint32_t from, to;
    TRY(axis_of(call, "from", a->rank, &from, error));
    TRY(axis_of(call, "to", a->rank, &to, error));
    struct layout view = layout_move_axis(a, from, to);
    return result_view(call, &view, error);
}

MUST_CHECK static enum healcl_status infer_new_reference(struct call *call,
                                                         struct healcl_error *error)
{
    return result_view(call, &tensor_of(call, "a")->layout, error);
}

MUST_CHECK static enum healcl_status infer_get_slice(struct call *call, struct healcl_error *error)
{
    const struct argument *index = &call->entry->arguments[index_of(call, "index")];
    struct layout view;
    TRY_ARGUMENT("index", layout_index(&tensor_of(call, "a")->layout, index->shape.items,
                                       index->shape.count, &view, error));
    return result_view(call, &view, error);
}

MUST_CHECK static enum healcl_status infer_contiguous(struct call *call, struct healcl_error *error)
{
    const struct layout *a = &tensor_of(call, "a")->layout;
    if (layout_is_contiguous(a))
        return result_view(call, a, error);
    return result_copy(call, a->rank, a->shape, error);
}

/* ---------------------------------------------------------------- elementwise */

static enum step_kind elementwise_kind(enum operation_id operation)
{
    switch (operation) {
    case OPERATION_MODMUL: return STEP_MODMUL;
    case OPERATION_MODSUM: return STEP_MODSUM;
    case OPERATION_MOD: return STEP_MOD;
    case OPERATION_MODNEG: return STEP_MODNEG;
    default: return STEP_ABS;
    }
}

/* Where an elementwise operand stands among a step's inputs: mod's b is a modulus. */
static int elementwise_place(enum operation_id operation, const char *name)
{
    if (strcmp(name, "a") == 0)
        return 0;
    return strcmp(name, "b") == 0 && operation != OPERATION_MOD ? 1 : 2;
}

MUST_CHECK static enum healcl_status infer_elementwise(struct call *call,
                                                       struct healcl_error *error)
{
    static const char *const value_names[] = {"out", "a", "b", "p", NULL};
    const char *const *operand_names = value_names + 1;
    enum operation_id operation = call->form->operation;
    const struct tensor *out = tensor_of(call, "out");
    TRY(want_same_arithmetic(call, value_names, error));

    struct layout shape = {.rank = 0};
    for (const char *const *name = operand_names; *name; name++)
        if (tensor_of(call, *name))
            TRY_ARGUMENT(*name, layout_broadcast_shape(&shape, &tensor_of(call, *name)->layout,
                                                       &shape, error));
    TRY(want_shape("out", &out->layout, shape.rank, shape.shape, error));

    struct step step = new_step(call, elementwise_kind(operation), out);
    for (const char *const *name = operand_names; *name; name++) {
        int parameter = index_of(call, *name);
        if (parameter < 0)
            continue;
        int place = elementwise_place(operation, *name);
        struct tensor *operand = call->tensors[parameter];
        if (!operand)
            TRY(planner_constant(call->planner, integer_of(call, *name, 0), &operand, error));
        struct layout view;
        TRY(layout_broadcast(&operand->layout, &out->layout, &view, error));
        struct tensor *input;
        TRY(planner_view(call->planner, operand->storage, &view, &input, error));
        step.in[place] = input;
        step.parameter[place] = (uint8_t)parameter;
    }
    call->result = call->tensors[index_of(call, "out")];
    return add_compute(call, &step, error);
}

/* ---------------------------------------------------------------- sums */

MUST_CHECK static enum healcl_status infer_axis_modsum(struct call *call,
                                                       struct healcl_error *error)
{
    static const char *const value_names[] = {"out", "a", "q", NULL};
    const struct tensor *a = tensor_of(call, "a"), *q = tensor_of(call, "q");
    const struct tensor *out = tensor_of(call, "out");
    TRY(want_same_arithmetic(call, value_names, error));
    uint32_t axis;
    TRY(axis_of(call, "axis", a->layout.rank, &axis, error));
    if (axis == a->layout.rank - 1)
        REFUSE_ARGUMENT("axis", "the last axis cannot be summed");
    TRY(want_shape("q", &q->layout, 1, &a->layout.shape[a->layout.rank - 1], error));
    struct layout summed = layout_drop_axis(&a->layout, axis);
    TRY(want_shape("out", &out->layout, summed.rank, summed.shape, error));

    struct step step = new_step(call, STEP_AXIS_MODSUM, out);
    step.value[0] = axis;
    struct layout q_view;
    TRY(layout_broadcast(&q->layout, &out->layout, &q_view, error));
    TRY(set_input(call, &step, 0, "a", NULL, error));
    TRY(set_input(call, &step, 1, "q", &q_view, error));
    call->result = call->tensors[index_of(call, "out")];
    return add_compute(call, &step, error);
}

/* The axis of length n, -1 or -3, of a transform or sum over tensors of rank 4. */
MUST_CHECK static enum healcl_status transform_axis(const struct call *call, int64_t absent,
                                                    bool *is_last, struct healcl_error *error)
{
    int64_t axis = integer_of(call, "axis", absent);
    if (axis != -1 && axis != 3 && axis != -3 && axis != 1)
        REFUSE_ARGUMENT("axis", "axis %" PRId64 " is neither -1 nor -3", axis);
    *is_last = axis == -1 || axis == 3;
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status want_permutation(const struct call *call, int64_t n,
                                                      struct healcl_error *error)
{
    const struct tensor *perm = tensor_of(call, "perm");
    if (!perm)
        REFUSE_ARGUMENT("perm", "must be a tensor here, not NONE");
    TRY(want_index(call, "perm", error));
    return want_shape("perm", &perm->layout, 1, &n, error);
}

MUST_CHECK static enum healcl_status infer_modmul_axis_sum(struct call *call,
                                                           struct healcl_error *error)
{
    static const char *const value_names[] = {"out", "a", "b", "q", NULL};
    const struct tensor *a = tensor_of(call, "a"), *b = tensor_of(call, "b");
    const struct tensor *q = tensor_of(call, "q"), *out = tensor_of(call, "out");
    TRY(want_same_arithmetic(call, value_names, error));
    TRY(want_rank("a", a, 4, error));
    TRY(want_rank("b", b, 3, error));
    TRY(want_rank("out", out, 3, error));
    bool is_last;
    TRY(transform_axis(call, -1, &is_last, error));

    /* From here on: a [reps,s,k,n], b [s,k,n], out [reps,k,n]. */
    struct layout a_view = is_last ? a->layout : layout_move_axis(&a->layout, 1, 3);
    struct layout b_view = is_last ? b->layout : layout_move_axis(&b->layout, 0, 2);
    struct layout out_view = is_last ? out->layout : layout_move_axis(&out->layout, 1, 2);
    int64_t reps = a_view.shape[0], k = a_view.shape[2], n = a_view.shape[3];
    int64_t b_shape[3], out_shape[3];
    memcpy(b_shape, is_last ? a_view.shape + 1 : a->layout.shape + 1, sizeof b_shape);
    memcpy(out_shape, is_last ? (int64_t[]){reps, k, n} : (int64_t[]){reps, n, k},
           sizeof out_shape);
    TRY(want_shape("b", &b->layout, 3, b_shape, error));
    TRY(want_shape("out", &out->layout, 3, out_shape, error));
    TRY(want_shape("q", &q->layout, 1, &k, error));

    struct step step = new_step(call, STEP_MODMUL_AXIS_SUM, NULL);
    TRY(set_output(call, &step, &out_view, error));
    TRY(set_input(call, &step, 0, "a", &a_view, error));
    TRY(set_input(call, &step, 1, "b", &b_view, error));
    TRY(set_input(call, &step, 2, "q", NULL, error));
    if (integer_of(call, "apply_perm", 0)) {
        TRY(want_permutation(call, n, error));
        TRY(set_input(call, &step, 3, "perm", NULL, error));
    }
    call->result = call->tensors[index_of(call, "out")];
    return add_compute(call, &step, error);
}

/* ---------------------------------------------------------------- transforms */

MUST_CHECK static enum healcl_status infer_transform(struct call *call, struct healcl_error *error)
{
    static const char *const value_names[] = {"out", "q", "psi", "ipsi", "n_inv", NULL};
    bool inverse = call->form->operation == OPERATION_INTT;
    const char *twiddle_name = inverse ? "ipsi" : "psi";
    const struct tensor *a = tensor_of(call, "a"), *q = tensor_of(call, "q");
    const struct tensor *twiddles = tensor_of(call, twiddle_name), *out = tensor_of(call, "out");
    TRY(want_same_arithmetic(call, value_names, error));
    if (a->storage->dtype != DTYPE_INT8)
        TRY(want_dtype(call, "a", out->storage->dtype, error));
    TRY(want_rank("a", a, 4, error));
    TRY(want_rank("out", out, 4, error));
    TRY(want_rank("q", q, 1, error));
    bool is_last;
    TRY(transform_axis(call, -3, &is_last, error));

    /* From here on: a and out [l,r,k,n]. */
    struct layout a_view = is_last ? a->layout : layout_move_axis(&a->layout, 1, 3);
    struct layout out_view = is_last ? out->layout : layout_move_axis(&out->layout, 1, 3);
    int64_t k = q->layout.shape[0], n = a_view.shape[3];
    if (n < 1 || (n & (n - 1)) != 0)
        REFUSE_ARGUMENT("a", "transform length %" PRId64 " is not a power of two", n);
    bool tile = integer_of(call, "tile", 0) != 0;
    if (a_view.shape[2] != (tile ? 1 : k))
        REFUSE_ARGUMENT("a", "size %" PRId64 " on the modulus axis, but must be %" PRId64 "%s",
                        a_view.shape[2], tile ? 1 : k, tile ? " with tile" : "");
    if (tile && k > 1)
        a_view.stride[2] = 0;
    a_view.shape[2] = k;
    int64_t out_shape[4];
    memcpy(out_shape, out->layout.shape, sizeof out_shape);
    for (uint32_t axis = 0; axis < 4; axis++)
        out_shape[axis] = a->layout.shape[axis];
    out_shape[is_last ? 2 : 3] = k;
    TRY(want_shape("out", &out->layout, 4, out_shape, error));
    TRY(want_shape(twiddle_name, &twiddles->layout, 2, (int64_t[]){k, n}, error));

    struct step step = new_step(call, inverse ? STEP_INTT : STEP_NTT, NULL);
    TRY(set_output(call, &step, &out_view, error));
    TRY(set_input(call, &step, 0, "a", &a_view, error));
    TRY(set_input(call, &step, 1, "q", NULL, error));
    TRY(set_input(call, &step, 2, twiddle_name, NULL, error));
    if (!integer_of(call, "skip_perm", 0)) {
        TRY(want_permutation(call, n, error));
        TRY(set_input(call, &step, 3, "perm", NULL, error));
    }
    if (inverse) {
        TRY(want_shape("n_inv", &tensor_of(call, "n_inv")->layout, 1, &k, error));
        TRY(set_input(call, &step, 4, "n_inv", NULL, error));
    }
    call->result = call->tensors[index_of(call, "out")];
    return add_compute(call, &step, error);
}

/* ---------------------------------------------------------------- digits */

MUST_CHECK static enum healcl_status digit_arguments(const struct call *call, int64_t kept,
                                                     int64_t *base_bits, struct healcl_error *error)
{
    int64_t g_exp = integer_of(call, "g_exp", 0);
    *base_bits = integer_of(call, "base_bits", 0);
    if (*base_bits < 1)
        REFUSE_ARGUMENT("base_bits", "%" PRId64 " is below 1", *base_bits);
    if (g_exp != kept)
        REFUSE_ARGUMENT("g_exp", "%" PRId64 " digits, but out has room for %" PRId64, g_exp, kept);
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status infer_digits(struct call *call, struct healcl_error *error)
{
    const struct tensor *a = tensor_of(call, "a"), *out = tensor_of(call, "out");
    TRY(want_arithmetic(call, "a", error));
    TRY(want_rank("out", out, a->layout.rank + 1, error));
    int64_t shape[LAYOUT_RANK], base_bits, kept = out->layout.shape[a->layout.rank];
    memcpy(shape, a->layout.shape, a->layout.rank * sizeof *shape);
    shape[a->layout.rank] = kept;
    TRY(want_shape("out", &out->layout, a->layout.rank + 1, shape, error));
    TRY(digit_arguments(call, kept, &base_bits, error));

    struct step step = new_step(call, STEP_DIGITS, out);
    step.value[0] = base_bits;
    TRY(set_input(call, &step, 0, "a", NULL, error));
    call->result = call->tensors[index_of(call, "out")];
    return add_compute(call, &step, error);
}

MUST_CHECK static enum healcl_status infer_digits_full_q(struct call *call,
                                                         struct healcl_error *error)
{
    static const char *const value_names[] = {"a", "q", NULL};
    const struct tensor *a = tensor_of(call, "a"), *out = tensor_of(call, "out");
    TRY(want_same_arithmetic(call, value_names, error));
    TRY(want_rank("a", a, 3, error));
    TRY(want_rank("out", out, 3, error));
    TRY(want_shape("q", &tensor_of(call, "q")->layout, 1, &a->layout.shape[1], error));
    int64_t base_bits, kept = out->layout.shape[1];
    TRY(want_shape("out", &out->layout, 3,
                   (int64_t[]){a->layout.shape[0], kept, a->layout.shape[2]}, error));
    TRY(digit_arguments(call, kept, &base_bits, error));
    call->result = call->tensors[index_of(call, "out")];
    if (a->layout.shape[1] == 0) /* the only residue of an empty product is 0 */
        return add_fill(call, call->result, 0, error);

    struct step step = new_step(call, STEP_DIGITS_FULL_Q, out);
    step.value[0] = base_bits;
    TRY(set_input(call, &step, 0, "a", NULL, error));
    TRY(set_input(call, &step, 1, "q", NULL, error));
    return add_compute(call, &step, error);
}

/* ---------------------------------------------------------------- gathers */

MUST_CHECK static enum healcl_status infer_take_along_axis(struct call *call,
                                                           struct healcl_error *error)
{
    static const char *const value_names[] = {"out", "a", NULL};
    const struct tensor *a = tensor_of(call, "a"), *idx = tensor_of(call, "idx");
    const struct tensor *out = tensor_of(call, "out");
    TRY(want_same_arithmetic(call, value_names, error));
    TRY(want_index(call, "idx", error));
    TRY(want_rank("idx", idx, a->layout.rank, error));
    uint32_t axis;
    TRY(axis_of(call, "axis", a->layout.rank, &axis, error));
    /* Off the axis, both broadcast to out's shape; along it, idx does. */
    TRY(want_rank("out", out, a->layout.rank, error));
    struct layout a_view = a->layout, idx_view;
    a_view.shape[axis] = 1;
    TRY_ARGUMENT("a", layout_broadcast(&a_view, &out->layout, &a_view, error));
    TRY_ARGUMENT("idx", layout_broadcast(&idx->layout, &out->layout, &idx_view, error));
    a_view.shape[axis] = a->layout.shape[axis];
    a_view.stride[axis] = a->layout.stride[axis];
    struct step step = new_step(call, STEP_GATHER, out);
    step.value[0] = axis;
    step.value[1] = 1;
    TRY(set_input(call, &step, 0, "a", &a_view, error));
    TRY(set_input(call, &step, 1, "idx", &idx_view, error));
    call->result = call->tensors[index_of(call, "out")];
    return add_compute(call, &step, error);
}

MUST_CHECK static enum healcl_status infer_permute(struct call *call, struct healcl_error *error)
{
    static const char *const value_names[] = {"out", "a", NULL};
    const struct tensor *a = tensor_of(call, "a"), *perms = tensor_of(call, "perms");
    const struct tensor *out = tensor_of(call, "out");
    uint32_t row_axis, perm_axis;
    TRY(want_same_arithmetic(call, value_names, error));
    TRY(want_index(call, "perms", error));
    TRY(axis_of(call, "elementwise_axis", a->layout.rank, &row_axis, error));
    TRY(axis_of(call, "perm_axis", a->layout.rank, &perm_axis, error));
    if (row_axis == perm_axis)
        REFUSE_ARGUMENT("perm_axis", "is the elementwise axis too");
    TRY(want_shape("perms", &perms->layout, 2,
                   (int64_t[]){a->layout.shape[row_axis], a->layout.shape[perm_axis]}, error));
    TRY(want_shape("out", &out->layout, a->layout.rank, a->layout.shape, error));

    struct layout perms_view = out->layout;
    memset(perms_view.stride, 0, sizeof perms_view.stride);
    perms_view.offset = perms->layout.offset;
    perms_view.stride[row_axis] = perms->layout.stride[0];
    perms_view.stride[perm_axis] = perms->layout.stride[1];
    struct step step = new_step(call, STEP_GATHER, out);
    step.value[0] = perm_axis;
    TRY(set_input(call, &step, 0, "a", NULL, error));
    TRY(set_input(call, &step, 1, "perms", &perms_view, error));
    call->result = call->tensors[index_of(call, "out")];
    return add_compute(call, &step, error);
}

MUST_CHECK static enum healcl_status infer_pad_single_axis(struct call *call,
                                                           struct healcl_error *error)
{
    static const char *const value_names[] = {"out", "a", NULL};
    const struct tensor *a = tensor_of(call, "a"), *out = tensor_of(call, "out");
    TRY(want_same_arithmetic(call, value_names, error));
    uint32_t axis;
    TRY(axis_of(call, "axis", a->layout.rank, &axis, error));
    int64_t pad = integer_of(call, "pad", 0), size = a->layout.shape[axis];
    int64_t shape[LAYOUT_RANK];
    memcpy(shape, a->layout.shape, sizeof shape);
    if (pad < 0)
        REFUSE_ARGUMENT("pad", "%" PRId64 " is negative", pad);
    if (__builtin_add_overflow(size, pad, &shape[axis]))
        REFUSE_ARGUMENT("pad", "%" PRId64 " is too large", pad);
    TRY(want_shape("out", &out->layout, a->layout.rank, shape, error));

    struct layout head_layout = layout_narrow(&out->layout, axis, 0, size);
    struct layout tail_layout = layout_narrow(&out->layout, axis, size, pad);
    struct tensor *tail;
    struct step step = new_step(call, STEP_COPY, NULL);
    TRY(set_output(call, &step, &head_layout, error));
    TRY(set_input(call, &step, 0, "a", NULL, error));
    TRY(planner_view(call->planner, out->storage, &tail_layout, &tail, error));
    call->result = call->tensors[index_of(call, "out")];
    /* The copy comes first: the zeros may overwrite what it reads. */
    TRY(add_compute(call, &step, error));
    return add_fill(call, tail, 0, error);
}

MUST_CHECK static enum healcl_status infer_repeat_interleave(struct call *call,
                                                             struct healcl_error *error)
{
    static const char *const value_names[] = {"out", "a", NULL};
    const struct tensor *a = tensor_of(call, "a"), *out = tensor_of(call, "out");
    TRY(want_same_arithmetic(call, value_names, error));
    uint32_t axis;
    TRY(axis_of(call, "axis", a->layout.rank, &axis, error));
    int64_t repeats = integer_of(call, "repeats", 1), size = a->layout.shape[axis];
    int64_t shape[LAYOUT_RANK];
    memcpy(shape, a->layout.shape, sizeof shape);
    if (repeats < 0)
        REFUSE_ARGUMENT("repeats", "%" PRId64 " is negative", repeats);
    if (__builtin_mul_overflow(size, repeats, &shape[axis]))
        REFUSE_ARGUMENT("repeats", "%" PRId64 " is too large", repeats);
    TRY(want_shape("out", &out->layout, a->layout.rank, shape, error));

    /* Element i of the axis becomes the row i of an axis split into [size, repeats]. */
    int64_t stride = out->layout.stride[axis];
    struct layout a_view = layout_insert_axis(&a->layout, axis + 1, repeats, 0);
    struct layout out_view = layout_insert_axis(&out->layout, axis + 1, repeats, stride);
    out_view.shape[axis] = size;
    out_view.stride[axis] = stride * repeats;
    struct step step = new_step(call, STEP_COPY, NULL);
    TRY(set_output(call, &step, &out_view, error));
    TRY(set_input(call, &step, 0, "a", &a_view, error));
    call->result = call->tensors[index_of(call, "out")];
    return add_compute(call, &step, error);
}

/* ---------------------------------------------------------------- all of them */

enum healcl_status infer(struct call *call, struct healcl_error *error)
{
    switch (call->form->operation) {
    case OPERATION_HOST_TO_DEVICE: return infer_host_to_device(call, error);
    case OPERATION_DEVICE_TO_HOST: return infer_device_to_host(call, error);
    case OPERATION_EMPTY: return infer_empty(call, error);
    case OPERATION_ZEROS: return infer_zeros(call, error);
    case OPERATION_SET_CONST_VAL: return infer_set_const_val(call, error);
    case OPERATION_RESHAPE: return infer_reshape(call, error);
    case OPERATION_FLATTEN: return infer_flatten(call, error);
    case OPERATION_SQUEEZE: return infer_squeeze(call, error);
    case OPERATION_UNSQUEEZE: return infer_unsqueeze(call, error);
    case OPERATION_EXPAND: return infer_expand(call, error);
    case OPERATION_MOVEAXIS: return infer_moveaxis(call, error);
    case OPERATION_NEW_REFERENCE: return infer_new_reference(call, error);
    case OPERATION_GET_SLICE: return infer_get_slice(call, error);
    case OPERATION_CONTIGUOUS: return infer_contiguous(call, error);
    case OPERATION_MODMUL:
    case OPERATION_MODSUM:
    case OPERATION_MOD:
    case OPERATION_MODNEG:
    case OPERATION_ABS: return infer_elementwise(call, error);
    case OPERATION_AXIS_MODSUM: return infer_axis_modsum(call, error);
    case OPERATION_MODMUL_AXIS_SUM: return infer_modmul_axis_sum(call, error);
    case OPERATION_NTT:
    case OPERATION_INTT: return infer_transform(call, error);
    case OPERATION_G_DECOMP: return infer_digits(call, error);
    case OPERATION_G_DECOMP_FULL_Q: return infer_digits_full_q(call, error);
    case OPERATION_TAKE_ALONG_AXIS: return infer_take_along_axis(call, error);
    case OPERATION_PERMUTE: return infer_permute(call, error);
    case OPERATION_PAD_SINGLE_AXIS: return infer_pad_single_axis(call, error);
    case OPERATION_REPEAT_INTERLEAVE: return infer_repeat_interleave(call, error);
    case OPERATION_FREE_DEVICE_TENSOR: /* plan.c drops the name */
    case OPERATION_COUNT: break;
    }
    REFUSE(error, "not implemented");
}
