#include "plan/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "plan/infer.h"
#include "transcript/entry.h"

const struct step_traits step_traits[STEP_KINDS] = {
#define FIRST 1
#define ALL UINT32_MAX
#define STEP(kind, step_id, reference, device, family, ...) \
    [STEP_##kind] = {.id = #step_id, .subject = "step " #step_id, __VA_ARGS__},
#include "plan/steps.def"
#undef STEP
};

const char *segment_title(const char *name)
{
    return *name ? name : "(outside segments)";
}

uint64_t storage_bytes(const struct storage *storage)
{
    return (uint64_t)storage->elements * dtype_size(storage->dtype);
}

bool tensors_overlap(const struct tensor *a, const struct tensor *b)
{
    return a && a->storage == b->storage && layouts_may_overlap(&a->layout, &b->layout);
}

bool tensors_same(const struct tensor *a, const struct tensor *b)
{
    return a->storage == b->storage && layout_same_elements(&a->layout, &b->layout);
}

uint64_t packed_bytes(const struct tensor *tensor)
{
    return (uint64_t)layout_elements(&tensor->layout) * dtype_size(tensor->storage->dtype);
}

/* ---------------------------------------------------------------- growing the plan */

static enum healcl_status count_work(struct planner *planner, const struct step *step,
                                     struct healcl_error *error)
{
    uint64_t visits = step_visits(step);
    visits = visits > UINT64_MAX - planner->visits ? UINT64_MAX : visits + planner->visits;
    if (visits > planner->work_limit)
        REFUSE_FOR(error, LIMIT, "%s%" PRIu64 " elements to visit, above the limit of %" PRIu64,
                   visits == UINT64_MAX ? "at least " : "", visits, planner->work_limit);
    planner->visits = visits;
    return HEALCL_OK;
}

static enum healcl_status count_scratch(struct planner *planner, const struct step *step,
                                        struct healcl_error *error)
{
    struct plan *plan = planner->plan;
    uint64_t scratch = step_scratch_bytes(step);
    if (scratch > planner->memory_limit - planner->bytes_live)
        REFUSE_FOR(error, LIMIT,
                   "its scratch memory takes %s%" PRIu64 " bytes beside %" PRIu64
                   " in use, above the limit of %" PRIu64,
                   scratch == UINT64_MAX ? "at least " : "", scratch, planner->bytes_live,
                   planner->memory_limit);
    if (planner->bytes_live + scratch > plan->bytes_peak)
        plan->bytes_peak = planner->bytes_live + scratch;
    return HEALCL_OK;
}

struct step planner_step(const struct planner *planner, enum step_kind kind,
                         const struct tensor *out)
{
    return (struct step){.kind = kind,
                         .side = planner->side,
                         .vendor = planner->vendor,
                         .origins = planner->origins,
                         .out = out};
}

static void count_transfer(struct planner *planner, const struct step *step)
{
    struct plan *plan = planner->plan;
    if (step->kind == STEP_UPLOAD) {
        const uint64_t bytes = storage_bytes(step->out->storage);
        plan->uploads++;
        plan->bytes_up += bytes;
        planner->segment->bytes_up += bytes;
    } else if (step->kind == STEP_DOWNLOAD) {
        plan->results++;
        plan->expected += step->payload != NULL;
        plan->bytes_down += packed_bytes(step->in[0]);
        planner->segment->results++;
        planner->segment->bytes_down += packed_bytes(step->in[0]);
    }
}

enum healcl_status planner_append_step(struct planner *planner, const struct step *step,
                                       struct healcl_error *error)
{
    struct plan *plan = planner->plan;
    NEED_MEMORY(ARRAY_GROW(plan->steps, plan->step_count, &planner->step_capacity), error);
    struct step *added = &plan->steps[plan->step_count++];
    *added = *step;
    planner->segment->step_count++;
    count_transfer(planner, added);
    return values_follow(&planner->values, added, error);
}

enum healcl_status planner_add_step(struct planner *planner, const struct step *step,
                                    struct healcl_error *error)
{
    if (step->kind != STEP_RELEASE) {
        enum healcl_status status = count_work(planner, step, error);
        THEN(status, count_scratch(planner, step, error));
        if (status != HEALCL_OK) {
            error_prefix(error, "argument '%s': ", step_input_name(step, 0));
            error_argument(error, step->arguments[0].parameter);
            return status;
        }
    }
    return planner_append_step(planner, step, error);
}

enum healcl_status plan_view(struct plan *plan, struct storage *storage,
                             const struct layout *layout, const struct tensor **tensor,
                             struct healcl_error *error)
{
    struct tensor *view = arena_alloc(plan->arena, sizeof *view);
    NEED_MEMORY(view, error);
    *view = (struct tensor){storage, *layout};
    *tensor = view;
    return HEALCL_OK;
}

const uint8_t step_chain_operands[STEP_OPERANDS] = {STEP_OUT, STEP_ADDEND, 1,
                                                    STEP_FACTORS, [STEP_OUT] = STEP_OUT};

void step_chain_of(const struct step *ntt, struct step_chain *chain)
{
    enum { VIEWS = sizeof chain->views / sizeof *chain->views, AXIS_K = 2, AXIS_N = 3 };
    const struct layout *out = &ntt->out->layout;
    chain->step = (struct step){.kind = STEP_CHAIN, .origins = ntt->origins, .out = chain->views};
    chain->step.value[0] = STEP_MODSUM;
    chain->step.value[1] = STEP_MODMUL;
    for (uint32_t i = 0; i < VIEWS; i++) {
        const struct tensor *operand = ntt->operands[step_chain_operands[i]];
        struct layout *view = &chain->views[i].layout;
        chain->step.in[i] = &chain->views[i];
        chain->views[i] = *operand;
        if (operand->layout.rank > 1)
            continue;
        *view = *out;
        memset(view->stride, 0, sizeof view->stride);
        view->stride[AXIS_K] = operand->layout.stride[0];
        view->offset = operand->layout.offset;
    }
    const uint32_t row_axis = out->shape[AXIS_K] > 1 ? AXIS_K : AXIS_K - 1;
    if (out->shape[row_axis] > 1 && llabs(out->stride[row_axis]) < llabs(out->stride[AXIS_N]))
        for (uint32_t i = 0; i < VIEWS; i++) /* rows are interleaved: [l,n,r,k] */
            chain->views[i].layout = layout_move_axis(&chain->views[i].layout, AXIS_N, 1);
}

static void count_bytes(struct planner *planner, const struct storage *storage)
{
    planner->bytes_live += storage_bytes(storage);
    if (planner->bytes_live > planner->plan->bytes_peak)
        planner->plan->bytes_peak = planner->bytes_live;
}

enum healcl_status planner_add_storage(struct planner *planner, enum dtype dtype, int64_t elements,
                                       struct storage **result, struct healcl_error *error)
{
    struct plan *plan = planner->plan;
    struct storage *storage;
    if (planner->eager) {
        storage = eager_storage(planner->eager);
        if (!storage)
            REFUSE_FOR(error, LIMIT, "too many tensors are in use");
    } else {
        NEED_MEMORY(ARRAY_GROW(plan->storages, plan->storage_count, &planner->storage_capacity),
                    error);
        storage = arena_alloc(plan->arena, sizeof *storage);
        NEED_MEMORY(storage && plan->storage_count < UINT32_MAX, error);
        storage->id = (uint32_t)plan->storage_count;
        plan->storages[plan->storage_count++] = storage;
    }
    *storage = (struct storage){.id = storage->id,
                                .dtype = dtype,
                                .elements = elements,
                                .writes = storage->writes, /* of earlier storages with this id */
                                .origin = planner->origins ? planner->origins->of : NULL};
    count_bytes(planner, storage);
    *result = storage;
    return HEALCL_OK;
}

enum healcl_status planner_new_tensor(struct call *call, enum dtype dtype, uint32_t rank,
                                      const int64_t *shape, const struct tensor **tensor,
                                      struct healcl_error *error)
{
    struct planner *planner = call->planner;
    struct layout layout;
    TRY(layout_init(&layout, rank, shape, dtype_size(dtype), error));
    uint64_t bytes = (uint64_t)layout_elements(&layout) * dtype_size(dtype);
    char text[SHAPE_TEXT_SIZE];
    if (bytes > planner->memory_limit)
        REFUSE_FOR(error, LIMIT, "shape %s takes %" PRIu64 " bytes, above the limit of %" PRIu64,
                   layout_shape_text(&layout, text), bytes, planner->memory_limit);
    if (bytes > planner->memory_limit - planner->bytes_live)
        REFUSE_FOR(error, LIMIT,
                   "shape %s takes %" PRIu64 " bytes beside %" PRIu64
                   " in use, above the limit of %" PRIu64,
                   layout_shape_text(&layout, text), bytes, planner->bytes_live,
                   planner->memory_limit);
    struct storage *storage = NULL;
    TRY(planner_add_storage(planner, dtype, layout_elements(&layout), &storage, error));
    return plan_view(planner->plan, storage, &layout, tensor, error);
}

enum healcl_status planner_release(struct planner *planner, const struct tensor *tensor,
                                   struct healcl_error *error)
{
    planner->bytes_live -= storage_bytes(tensor->storage);
    struct step step = planner_step(planner, STEP_RELEASE, NULL);
    step.in[0] = tensor;
    return planner_add_step(planner, &step, error);
}

enum { CONSTANT_NAME_SIZE = 11 };

/* Constants are found by name: 7 bits of the value in each character. snprintf takes longer. */
static void constant_name(int64_t value, char name[CONSTANT_NAME_SIZE])
{
    uint64_t left = (uint64_t)value;
    for (int i = 0; i < CONSTANT_NAME_SIZE - 1; i++, left >>= 7)
        name[i] = (char)(left | 128);
    name[CONSTANT_NAME_SIZE - 1] = 0;
}

enum healcl_status planner_constant(struct planner *planner, int64_t value,
                                    const struct tensor **tensor, struct healcl_error *error)
{
    struct plan *plan = planner->plan;
    char name[CONSTANT_NAME_SIZE];
    constant_name(value, name);
    *tensor = names_find(&planner->constants, name);
    if (*tensor)
        return HEALCL_OK;
    if (planner->eager && plan->constants.count == planner->constant_capacity)
        REFUSE_FOR(error, LIMIT, "more than %zu different integers", planner->constant_capacity);
    NEED_MEMORY(
        ARRAY_GROW(plan->constants.values, plan->constants.count, &planner->constant_capacity),
        error);
    struct layout layout = {.offset = (int64_t)plan->constants.count};
    plan->constants.values[plan->constants.count++] = value;
    plan->constants.storage->elements += !planner->eager; /* eager plans have all their room */
    struct tensor *constant = arena_alloc(plan->constants.arena, sizeof *constant);
    NEED_MEMORY(constant, error);
    *constant = (struct tensor){plan->constants.storage, layout};
    *tensor = constant;
    const struct tensor *previous;
    return names_bind(&planner->constants, name, *tensor, &previous, error);
}

/* ---------------------------------------------------------------- names and lifetimes */

/* Drops one name of the tensor's storage. */
static enum healcl_status drop_reference(struct planner *planner, const struct tensor *tensor,
                                         struct healcl_error *error)
{
    if (--tensor->storage->references > 0)
        return HEALCL_OK;
    return planner_release(planner, tensor, error);
}

static enum healcl_status bind_name(struct planner *planner, const char *name,
                                    const struct tensor *tensor, struct healcl_error *error)
{
    const struct tensor *previous;
    TRY(names_bind(&planner->names, name, tensor, &previous, error));
    tensor->storage->references++;
    if (tensor != previous)
        planner->plan->tensors++;
    return previous ? drop_reference(planner, previous, error) : HEALCL_OK;
}

enum healcl_status planner_free_name(struct planner *planner, const char *name,
                                     struct healcl_error *error)
{
    const struct tensor *tensor = names_remove(&planner->names, name);
    if (!tensor)
        REFUSE(error, "no tensor is bound to the name %s", name);
    return drop_reference(planner, tensor, error);
}

/* ---------------------------------------------------------------- segments */

enum healcl_status planner_open_segment(struct planner *planner, const char *name, bool is_named,
                                        struct healcl_error *error)
{
    struct plan *plan = planner->plan;
    NEED_MEMORY(ARRAY_GROW(plan->segments, plan->segment_count, &planner->segment_capacity), error);
    char *copy = arena_strdup(plan->arena, name);
    uint64_t *counts = arena_alloc(plan->arena, operation_count(plan->table) * sizeof *counts);
    NEED_MEMORY(copy && counts, error);
    planner->segment = &plan->segments[plan->segment_count++];
    *planner->segment = (struct segment){.name = copy,
                                         .first_step = plan->step_count,
                                         .first_storage = plan->storage_count,
                                         .counts = counts};
    planner->segment_is_named = is_named;
    return HEALCL_OK;
}

/* Entries outside of any segment form an unnamed one. */
static enum healcl_status need_segment(struct planner *planner, struct healcl_error *error)
{
    return planner->segment ? HEALCL_OK : planner_open_segment(planner, "", false, error);
}

/* ---------------------------------------------------------------- entries */

static enum healcl_status check_named_dtype(const struct argument *argument,
                                            const struct tensor *tensor, struct healcl_error *error)
{
    if (argument->tensor.has_dtype && argument->tensor.dtype != tensor->storage->dtype)
        REFUSE_FOR(error, DTYPE, "the pointer says %s, but the tensor is %s",
                   dtype_name(argument->tensor.dtype), dtype_name(tensor->storage->dtype));
    return HEALCL_OK;
}

/* Checks one argument as far as possible without knowing the operation. */
static enum healcl_status resolve_argument(struct call *call, uint32_t i,
                                           struct healcl_error *error)
{
    const struct argument *argument = &call->entry->arguments[i];
    enum healcl_parameter_kind kind = call->form->parameters[i].kind;
    if (argument->kind == ARGUMENT_DEVICE_TENSOR) {
        const struct tensor *tensor = argument->tensor.bound;
        if (!tensor)
            tensor = names_find(&call->planner->names, argument->tensor.name);
        if (!tensor)
            REFUSE(error, "no tensor is bound to the name %s", argument->tensor.name);
        TRY(check_named_dtype(argument, tensor, error));
        call->tensors[i] = tensor;
        if (kind == HEALCL_PARAMETER_OUT)
            call->result = tensor;
    }
    if (kind == HEALCL_PARAMETER_MODULUS && argument->integer < 1)
        REFUSE(error, "modulus %" PRId64 " is not positive", argument->integer);
    if (kind == HEALCL_PARAMETER_FLAG && argument->integer != 0 && argument->integer != 1)
        REFUSE(error, "flag %" PRId64 " is neither 0 nor 1", argument->integer);
    if (call->result && kind == HEALCL_PARAMETER_OUT &&
        layout_overlaps_itself(&call->result->layout))
        REFUSE(error, "the output overlaps itself (stride 0 on an axis longer than 1)");
    return HEALCL_OK;
}

/* Binds the operation's result to the name in its `out`. */
static enum healcl_status bind_result(struct call *call, struct healcl_error *error)
{
    const struct argument *out = &call->entry->out;
    enum operation_result result = call->form->operation->result;
    enum argument_kind wanted =
        result == RESULT_HOST ? ARGUMENT_HOST_TENSOR : ARGUMENT_DEVICE_TENSOR;
    if (result == RESULT_NONE || (result != RESULT_NEW && out->kind == ARGUMENT_NONE))
        return HEALCL_OK;
    if (out->kind != wanted)
        REFUSE(error, "out: must be %s, not %s", argument_kind_name(wanted),
               argument_kind_name(out->kind));
    if (result == RESULT_HOST)
        return HEALCL_OK;
    TRY_PREFIX(check_named_dtype(out, call->result, error), "out: ");
    if (result == RESULT_ALIAS &&
        names_find(&call->planner->names, out->tensor.name) == call->result)
        return HEALCL_OK;
    return bind_name(call->planner, out->tensor.name, call->result, error);
}

/* Makes this entry the origin of the steps that are added from here on. */
static enum healcl_status set_origins(struct planner *planner, const struct entry *entry,
                                      const char *name, const struct form *form,
                                      struct healcl_error *error)
{
    struct one_origin {
        struct origins origins;
        struct origin origin;
    } *one = arena_alloc(planner->plan->arena, sizeof *one);
    NEED_MEMORY(one, error);
    one->origin = (struct origin){.entry = entry->index,
                                  .is_call = planner->eager,
                                  .name = name,
                                  .form = form,
                                  .outer = planner->outer};
    one->origins = (struct origins){.count = 1, .of = &one->origin};
    planner->origins = &one->origins;
    return HEALCL_OK;
}

/* Puts the transcript's entry in front of an error; for an entry of a body, also its operation. */
static enum healcl_status origin_name(const struct planner *planner, const struct call *call,
                                      const char **name, struct healcl_error *error)
{
    *name = call->entry->name[0] == '_' ? call->form->underscore_name : call->form->name;
    if (!planner->outer)
        return HEALCL_OK;
    size_t size = strlen(planner->outer->name) + strlen(*name) + sizeof ": ";
    char *both = arena_alloc(planner->plan->arena, size);
    NEED_MEMORY(both, error);
    snprintf(both, size, "%s: %s", planner->outer->name, *name);
    *name = both;
    return HEALCL_OK;
}

/* Plans a call whose form is given, and whose arguments have the kinds that the form requires. */
static enum healcl_status resolve_arguments(struct call *call, struct healcl_error *error)
{
    struct planner *planner = call->planner;
    const char *name;
    TRY(origin_name(planner, call, &name, error));
    TRY(set_origins(planner, call->entry, name, call->form, error));
    for (uint32_t i = 0; i < call->form->parameter_count; i++)
        TRY_ARGUMENT(call->form->parameters[i].name, resolve_argument(call, i, error));
    if (!planner->outer) {
        planner->segment->counts[call->form->operation->number]++;
        planner->segment->operations++;
        planner->plan->operations++;
    }
    return HEALCL_OK;
}

enum healcl_status planner_inner_operation(struct call *call, struct healcl_error *error)
{
    TRY(form_of_entry(call->planner->plan->table, call->entry, &call->form, error));
    TRY(resolve_arguments(call, error));
    return infer(call, error);
}

enum healcl_status planner_operation(struct call *call, struct healcl_error *error)
{
    call->planner->visits = 0;
    return planner_inner_operation(call, error);
}

enum healcl_status planner_copy(struct call *call, struct healcl_error *error)
{
    static const struct healcl_parameter_info parameters[] = {{"a", HEALCL_PARAMETER_TENSOR, false},
                                                              {"out", HEALCL_PARAMETER_OUT, false}};
    static const struct form form = {&operations[OPERATION_CONTIGUOUS], "copy", "_copy", 2,
                                     parameters};
    call->planner->visits = 0;
    call->form = &form;
    TRY(resolve_arguments(call, error));
    return infer_copy(call, error);
}

static enum healcl_status plan_entry(struct planner *planner, const struct entry *entry,
                                     struct healcl_error *error)
{
    struct call call = {.planner = planner, .entry = entry};
    switch (entry->kind) {
    case ENTRY_NOTHING:
    case ENTRY_COPY: break;
    case ENTRY_SEGMENT_START:
        if (planner->segment && planner->segment_is_named)
            REFUSE(error, "segment '%s' starts inside of segment '%s'", entry->name,
                   planner->segment->name);
        return planner_open_segment(planner, entry->name, true, error);
    case ENTRY_SEGMENT_END:
        if (!planner->segment || !planner->segment_is_named)
            REFUSE(error, "a segment ends, but none is open");
        planner->segment = NULL;
        return HEALCL_OK;
    case ENTRY_FREE:
        TRY(need_segment(planner, error));
        planner->segment->frees++;
        planner->plan->frees++;
        TRY(set_origins(planner, entry, "free_device_tensor", NULL, error));
        return planner_free_name(planner, entry->name, error);
    case ENTRY_OPERATION:
        TRY(need_segment(planner, error));
        TRY(planner_operation(&call, error));
        return bind_result(&call, error);
    }
    return HEALCL_OK;
}

static enum healcl_status plan_entries(struct planner *planner, struct entry_reader *reader,
                                       struct healcl_error *error)
{
    for (;;) {
        const struct entry *entry;
        TRY(entry_reader_next(reader, &entry, error));
        if (!entry)
            break;
        planner->plan->entries++;
        enum healcl_status status = plan_entry(planner, entry, error);
        if (status != HEALCL_OK) {
            if (entry->kind == ENTRY_OPERATION)
                error_prefix(error, "entry %zu (%s): ", entry->index, entry->name);
            else if (entry->kind == ENTRY_FREE)
                error_prefix(error, "entry %zu (FREE_DEVICE_TENSOR): ", entry->index);
            else
                error_prefix(error, "entry %zu: ", entry->index);
            error_place(error, (int64_t)entry->index,
                        entry->kind == ENTRY_OPERATION
                            ? operation_number(planner->plan->table, entry->name)
                            : -1);
            return status;
        }
    }
    if (planner->segment && planner->segment_is_named)
        REFUSE(error, "segment '%s' never ends", planner->segment->name);
    return HEALCL_OK;
}

static enum healcl_status plan_source(struct planner *planner, const struct source *source,
                                      struct healcl_error *error)
{
    planner->plan->arena = planner->plan->constants.arena = planner->values.arena = arena_create();
    NEED_MEMORY(planner->plan->arena, error);
    TRY(planner_add_storage(planner, DTYPE_INT64, 0, &planner->plan->constants.storage, error));
    struct entry_reader *reader;
    TRY(entry_reader_open(source, planner->plan->arena, &reader, error));
    enum healcl_status status = plan_entries(planner, reader, error);
    entry_reader_close(reader);
    return status;
}

struct planner planner_of_options(const struct healcl_plan_options *options)
{
    static const struct healcl_plan_options none = {.expand = HEALCL_EXPAND_VALID};
    options = options ? options : &none;
    return (struct planner){
        .memory_limit = options->memory_limit ? options->memory_limit : INT64_MAX,
        .work_limit = options->work_limit ? options->work_limit : WORK_LIMIT_DEFAULT,
        .expand = options->expand,
    };
}

enum healcl_status plan_create(const struct source *source, const struct operation_table *table,
                               const struct healcl_plan_options *options, struct plan **plan,
                               struct healcl_error *error)
{
    struct planner planner = planner_of_options(options);
    planner.plan = calloc(1, sizeof *planner.plan);
    NEED_MEMORY(planner.plan, error);
    planner.plan->source = source;
    planner.plan->table = table;
    planner.plan->memory_limit = planner.memory_limit;
    planner.values.plan = planner.plan;
    enum healcl_status status = plan_source(&planner, source, error);
    names_clear(&planner.names);
    if (planner.plan && planner.plan->constants.storage)
        planner.plan->constants.storage->scalars = planner.plan->constants.values;
    names_clear(&planner.constants);
    if (status != HEALCL_OK) {
        plan_free(planner.plan);
        return status;
    }
    *plan = planner.plan;
    return HEALCL_OK;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    free(plan->steps);
    free(plan->segments);
    free(plan->storages);
    free(plan->constants.values);
    arena_free(plan->arena);
    free(plan);
}
