/* Plans a call of a vendor's operation as steps. */
#include <stdio.h>
#include <string.h>

#include "plan/cached_call.h"
#include "vendor/vendor.h"

/* ---------------------------------------------------------------- a kernel's launch */

static const char *opencl_type(enum dtype dtype)
{
    return dtype == DTYPE_INT8 ? "char" : dtype == DTYPE_INT32 ? "int" : "long";
}

/* Adds "-D name=value". */
static enum healcl_status define(struct vendor_launch *launch, const char *prefix, const char *name,
                                 const char *value, struct healcl_error *error)
{
    size_t used = strlen(launch->options), room = sizeof launch->options - used;
    int length = snprintf(launch->options + used, room, "%s-D %s%s=%s", used ? " " : "", prefix,
                          name, value);
    if (length < 0 || (size_t)length >= room)
        REFUSE(error, "its build options take more than %zu characters", sizeof launch->options);
    return HEALCL_OK;
}

static enum healcl_status define_integer(struct vendor_launch *launch, const char *name,
                                         int64_t value, struct healcl_error *error)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    return define(launch, "", name, text, error);
}

static enum healcl_status make_options(const struct vendor_kernel *kernel,
                                       const struct expression_values *values,
                                       struct vendor_launch *launch, struct healcl_error *error)
{
    const struct expression_names *names = kernel->expression_names;
    snprintf(launch->options, sizeof launch->options, "%s", kernel->options);
    for (uint32_t i = 0; i < EXPRESSION_NAMES_MAX; i++)
        if (names->of[i].name && names->of[i].is_tensor && values->layouts[i])
            TRY(define(launch, "TYPE_", names->of[i].name, opencl_type(values->dtypes[i]), error));
    for (uint32_t i = 0; i < kernel->define_count; i++) {
        int64_t value;
        TRY_PREFIX(expression_value(kernel->defines[i].value, values, &value, error),
                   "define '%s': ", kernel->defines[i].name);
        TRY(define_integer(launch, kernel->defines[i].name, value, error));
    }
    for (uint32_t i = 0; i < kernel->tunable_count; i++)
        TRY(define_integer(launch, kernel->tunables[i].name, values->integers[VENDOR_TUNABLES + i],
                           error));
    return HEALCL_OK;
}

static enum healcl_status add_argument(struct vendor_launch *launch, int tensor, int64_t value,
                                       const char *name, struct healcl_error *error)
{
    if (launch->argument_count == VENDOR_ARGUMENTS_MAX)
        REFUSE(error, "its kernel takes more than %d arguments", VENDOR_ARGUMENTS_MAX);
    launch->arguments[launch->argument_count].tensor = tensor;
    launch->arguments[launch->argument_count].name = name;
    launch->arguments[launch->argument_count++].value = value;
    return HEALCL_OK;
}

static enum healcl_status make_arguments(const struct vendor_kernel *kernel,
                                         const struct expression_values *values,
                                         struct vendor_launch *launch, struct healcl_error *error)
{
    for (uint32_t i = 0; i < kernel->argument_count; i++) {
        const int tensor = kernel->arguments[i].tensor;
        if (tensor == NO_INPUT) {
            const struct expression *expression = kernel->arguments[i].value;
            const char *text = expression_text(expression);
            int64_t value;
            TRY_PREFIX(expression_value(expression, values, &value, error),
                       "its kernel's argument '%s': ", text);
            TRY(add_argument(launch, NO_INPUT, value, text, error));
            continue;
        }
        const struct layout *layout = values->layouts[tensor];
        const char *name = kernel->expression_names->of[tensor].name;
        const bool strides = !kernel->strides_of || kernel->strides_of[tensor];
        if (!layout)
            REFUSE(error, "its kernel needs a tensor that the call does not have");
        TRY(add_argument(launch, tensor, 0, name, error));
        if (!kernel->source) /* native code gets all in one structure */
            continue;
        TRY(add_argument(launch, NO_INPUT, layout->offset, name, error));
        for (uint32_t axis = 0; strides && axis < layout->rank; axis++)
            TRY(add_argument(launch, NO_INPUT, layout->stride[axis], name, error));
    }
    return HEALCL_OK;
}

static enum healcl_status make_groups(const struct vendor_kernel *kernel,
                                      const struct expression_values *values,
                                      struct vendor_launch *launch, struct healcl_error *error)
{
    int64_t global, local;
    TRY_PREFIX(expression_value(kernel->global, values, &global, error),
               "the global size '%s': ", expression_text(kernel->global));
    TRY_PREFIX(expression_value(kernel->local, values, &local, error),
               "the local size '%s': ", expression_text(kernel->local));
    if (local < 1 || local > UINT32_MAX || global < 0 || global % local != 0)
        REFUSE(error, "%" PRId64 " work-items are not whole work-groups of %" PRId64, global,
               local);
    launch->local = (uint64_t)local;
    launch->groups = (uint64_t)(global / local);
    return HEALCL_OK;
}

enum healcl_status vendor_launch_make(const struct vendor_kernel *kernel,
                                      const struct expression_values *values,
                                      struct vendor_launch *launch, struct healcl_error *error)
{
    int64_t when = 1;
    launch->argument_count = 0;
    if (kernel->when)
        TRY_PREFIX(expression_value(kernel->when, values, &when, error),
                   "'%s': ", expression_text(kernel->when));
    launch->possible = when != 0;
    if (!launch->possible)
        return HEALCL_OK;
    if (kernel->source) {
        TRY(make_options(kernel, values, launch, error));
        TRY(make_groups(kernel, values, launch, error));
    }
    return make_arguments(kernel, values, launch, error);
}

void vendor_set_alternative(const struct vendor_kernel *kernel, uint32_t alternative,
                            struct expression_values *values)
{
    for (uint32_t i = kernel->tunable_count; i-- > 0;) { /* the last tunable varies fastest */
        const struct vendor_tunable *tunable = &kernel->tunables[i];
        values->integers[VENDOR_TUNABLES + i] = tunable->values[alternative % tunable->count];
        alternative /= tunable->count;
    }
}

const struct vendor_launch *vendor_launch_tuned(const struct vendor_call *call, uint32_t kernel,
                                                uint32_t alternative)
{
    const struct vendor_kernel *tuned_kernel = call->operation->kernels[kernel];
    struct vendor_tuned *tuned = call->tuned;
    const uint32_t choice = vendor_choice(kernel, alternative);
    if (tuned->choice == choice)
        return &tuned->launch;
    vendor_set_alternative(tuned_kernel, alternative, &tuned->values);
    tuned->choice = choice;
    if (vendor_launch_make(tuned_kernel, &tuned->values, &tuned->launch, NULL) != HEALCL_OK)
        tuned->launch.possible = false;
    return &tuned->launch;
}

/* ---------------------------------------------------------------- what is wanted of arguments */

static const struct vendor_operation *operation_of(const struct call *call)
{
    return call->form->operation->context;
}

static enum healcl_status check_dtypes(const struct call *call, struct healcl_error *error)
{
    const struct vendor_operation *operation = operation_of(call);
    for (uint32_t i = 0; i < call->form->parameter_count; i++) {
        const struct tensor *tensor = call->tensors[i];
        const uint32_t dtypes = operation->parameters[i].dtypes;
        char text[DTYPES_TEXT_SIZE];
        if (tensor && !(dtypes >> tensor->storage->dtype & 1))
            REFUSE_ARGUMENT_FOR(DTYPE, call->form->parameters[i].name, "is %s, but must be %s",
                                dtype_name(tensor->storage->dtype),
                                dtype_rule_text(&(struct dtype_rule){.values = dtypes}, text));
    }
    return HEALCL_OK;
}

static void set_value(struct expression_values *values, int number, const struct tensor *tensor)
{
    values->layouts[number] = &tensor->layout;
    values->dtypes[number] = tensor->storage->dtype;
}

static void call_set_values(const struct call *call, struct expression_values *values)
{
    *values = (struct expression_values){.integers = {0}};
    for (uint32_t i = 0; i < call->form->parameter_count; i++) {
        const int number = operation_of(call)->parameters[i].number;
        if (call->tensors[i] && number != NO_INPUT)
            set_value(values, number, call->tensors[i]);
        else if (number != NO_INPUT)
            values->integers[number] = call->entry->arguments[i].integer;
    }
}

static enum healcl_status check_rules(const struct vendor_operation *operation,
                                      const struct expression_values *values,
                                      struct healcl_error *error)
{
    for (uint32_t i = 0; i < operation->rule_count; i++) {
        int64_t holds;
        const char *text = expression_text(operation->rules[i]);
        TRY_PREFIX(expression_value(operation->rules[i], values, &holds, error),
                   "rule '%s': ", text);
        if (!holds)
            REFUSE(error, "rule '%s' does not hold", text);
    }
    return HEALCL_OK;
}

static enum healcl_status make_out(struct call *call, const struct expression_values *values,
                                   struct healcl_error *error)
{
    const struct vendor_operation *operation = operation_of(call);
    int64_t shape[MAX_RANK];
    for (uint32_t axis = 0; axis < operation->out_rank; axis++) {
        const struct expression *size = operation->out_shape[axis];
        TRY_PREFIX(expression_value(size, values, &shape[axis], error),
                   "out's size '%s': ", expression_text(size));
    }
    TRY_PREFIX(planner_new_tensor(call, operation->out_dtype, operation->out_rank, shape,
                                  &call->result, error),
               "out: ");
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- the kernel's step */

/* Copies that a call needs; they are released after it. */
struct copies {
    const struct tensor *of[STEP_INPUTS + 1];
    uint32_t count;
};

static enum healcl_status call_add_copy(struct call *call, const struct tensor *from,
                                        const struct tensor *to, uint8_t parameter,
                                        struct healcl_error *error)
{
    struct step step = planner_step(call->planner, STEP_COPY, to);
    step.in[0] = from;
    step.arguments[0].parameter = parameter;
    return planner_add_step(call->planner, &step, error);
}

/* Makes a new tensor with the shape of another one. is_read: copies its elements too. */
static enum healcl_status copy_tensor(struct call *call, const struct tensor *from, bool is_read,
                                      uint8_t parameter, struct copies *copies,
                                      const struct tensor **copy, struct healcl_error *error)
{
    TRY(planner_new_tensor(call, from->storage->dtype, from->layout.rank, from->layout.shape, copy,
                           error));
    copies->of[copies->count++] = *copy;
    return is_read ? call_add_copy(call, from, *copy, parameter, error) : HEALCL_OK;
}

static enum healcl_status release_copies(struct call *call, const struct copies *copies,
                                         struct healcl_error *error)
{
    for (uint32_t i = 0; i < copies->count; i++)
        TRY(planner_release(call->planner, copies->of[i], error));
    return HEALCL_OK;
}

/* Whether the kernels need a tensor contiguous that is not. */
static bool wants_contiguous(const struct vendor_operation *operation, int number,
                             const struct tensor *tensor)
{
    return !operation->strides_of[number] && !layout_is_contiguous(&tensor->layout);
}

static enum healcl_status set_inputs(struct call *call, struct step *step, struct copies *copies,
                                     struct healcl_error *error)
{
    const struct vendor_operation *operation = operation_of(call);
    for (int i = 0; i < STEP_INPUTS; i++) {
        const struct tensor *tensor;
        if (!operation->names.of[i].name)
            continue;
        const uint8_t parameter = (uint8_t)operation->parameter_of[i];
        tensor = call->tensors[parameter];
        /* Results must be as if all inputs had been read first. */
        if (tensors_overlap(tensor, step->out))
            TRY(copy_tensor(call, tensor, true, parameter, copies, &tensor, error));
        else
            TRY(plan_view(call->planner->plan, tensor->storage, &tensor->layout, &tensor, error));
        step->in[i] = tensor;
        step->arguments[i].parameter = parameter;
    }
    return HEALCL_OK;
}

/* Copies the tensors that the kernels need contiguous and that are not. */
static enum healcl_status make_contiguous(struct call *call, struct step *step,
                                          struct copies *copies, struct healcl_error *error)
{
    const struct vendor_operation *operation = operation_of(call);
    FOR_EACH_INPUT (i, tensor, step)
        if (wants_contiguous(operation, i, tensor))
            TRY(copy_tensor(call, tensor, true, step->arguments[i].parameter, copies, &step->in[i],
                            error));
    if (!wants_contiguous(operation, VENDOR_OUT, step->out))
        return HEALCL_OK;
    return copy_tensor(call, step->out, operation->reads_out,
                       (uint8_t)operation->parameter_of[VENDOR_OUT], copies, &step->out, error);
}

static enum healcl_status call_add_kernel(struct call *call, const struct step *whole,
                                          struct expression_values *values,
                                          struct vendor_call *made, struct healcl_error *error)
{
    const struct vendor_operation *operation = operation_of(call);
    struct copies copies = {.count = 0};
    struct step step = *whole;
    step.side = call->planner->side;
    TRY(make_contiguous(call, &step, &copies, error));
    FOR_EACH_INPUT (i, tensor, &step)
        set_value(values, i, tensor);
    set_value(values, VENDOR_OUT, step.out);
    for (uint32_t i = 0; i < operation->kernel_count; i++) {
        vendor_set_alternative(operation->kernels[i], 0, values);
        TRY(vendor_launch_make(operation->kernels[i], values, &made->launches[i], error));
    }
    if (made->tuned)
        made->tuned->values = *values;
    TRY(planner_add_step(call->planner, &step, error));
    if (step.out != whole->out)
        TRY(call_add_copy(call, step.out, whole->out, 0, error));
    return release_copies(call, &copies, error);
}

/* ---------------------------------------------------------------- the body's steps */

/* Lists tensors by number: first those of the step, then those that the body makes. */
static enum healcl_status call_set_argument(const struct body_argument *from,
                                            const struct expression_values *values,
                                            const struct tensor *const *tensors,
                                            struct argument *to, struct healcl_error *error)
{
    to->kind = from->kind;
    switch (from->kind) {
    case ARGUMENT_DEVICE_TENSOR:
        to->tensor.name = "";
        to->tensor.has_dtype = false;
        to->tensor.bound = tensors[from->tensor];
        return HEALCL_OK;
    case ARGUMENT_INT: return expression_value(from->values[0], values, &to->integer, error);
    case ARGUMENT_TENSOR_TYPE: to->dtype = from->dtype; return HEALCL_OK;
    case ARGUMENT_SHAPE:
        to->shape.count = from->count;
        for (uint32_t i = 0; i < from->count; i++) {
            to->shape.items[i] = (struct healcl_index){.kind = HEALCL_INDEX_INT};
            TRY(expression_value(from->values[i], values, &to->shape.items[i].value, error));
        }
        return HEALCL_OK;
    default: return HEALCL_OK;
    }
}

static enum healcl_status add_entry(struct call *call, const struct body_entry *from,
                                    const struct expression_values *values,
                                    const struct tensor **tensors, struct entry *entry,
                                    struct healcl_error *error)
{
    struct call inner = {.planner = call->planner, .entry = entry};
    entry->name = from->name;
    entry->argument_count = from->argument_count;
    for (uint32_t i = 0; i < from->argument_count; i++)
        TRY(call_set_argument(&from->arguments[i], values, tensors, &entry->arguments[i], error));
    TRY(planner_inner_operation(&inner, error));
    if (from->out != NO_INPUT)
        tensors[from->out] = inner.result;
    return HEALCL_OK;
}

/* Releases the storages of tensors that the body made, each once. */
static enum healcl_status release_made(struct call *call, const struct step *step,
                                       const struct tensor *const *tensors,
                                       struct healcl_error *error)
{
    for (uint32_t i = EXPRESSION_NAMES_MAX; i < EXPRESSION_NAMES_MAX + BODY_ENTRIES_MAX; i++) {
        const struct tensor *tensor = tensors[i];
        bool kept = !tensor || tensor->storage == step->out->storage;
        for (int j = 0; !kept && j < STEP_INPUTS; j++)
            kept = step->in[j] && step->in[j]->storage == tensor->storage;
        for (uint32_t j = EXPRESSION_NAMES_MAX; !kept && j < i; j++)
            kept = tensors[j] && tensors[j]->storage == tensor->storage;
        if (!kept)
            TRY(planner_release(call->planner, tensor, error));
    }
    return HEALCL_OK;
}

static enum healcl_status add_body(struct call *call, const struct step *step,
                                   const struct expression_values *values,
                                   struct healcl_error *error)
{
    const struct vendor_operation *operation = operation_of(call);
    struct planner *planner = call->planner;
    const struct origins *origins = planner->origins;
    const struct tensor *tensors[EXPRESSION_NAMES_MAX + BODY_ENTRIES_MAX] = {NULL};
    struct entry entry = {.index = call->entry->index, .kind = ENTRY_OPERATION};
    entry.out.kind = ARGUMENT_NONE;
    FOR_EACH_INPUT (i, tensor, step)
        TRY(plan_view(planner->plan, tensor->storage, &tensor->layout, &tensors[i], error));
    tensors[VENDOR_OUT] = call->result;
    planner->outer = call->form->operation;
    for (uint32_t i = 0; i < operation->body_count; i++) {
        enum healcl_status status =
            add_entry(call, &operation->body[i], values, tensors, &entry, error);
        if (status == HEALCL_OK)
            continue;
        error_prefix(error, "its body: %s: ", operation->body[i].name);
        error_argument(error, -1); /* the argument is the body's */
        return status;
    }
    planner->outer = NULL;
    planner->origins = origins;
    return release_made(call, step, tensors, error);
}

/* Adds a check of an input of a body's step, with a copy of the step. */
static enum healcl_status keep_check(struct vendor_call *made, struct arena *arena,
                                     const struct step *step, int input, int of,
                                     struct healcl_error *error)
{
    struct vendor_check *check = arena_alloc(arena, sizeof *check), **last = &made->checks;
    struct tensor *tensors = arena_alloc(arena, STEP_INPUTS * sizeof *tensors);
    NEED_MEMORY(check && tensors, error);
    *check = (struct vendor_check){.step = *step, .input = input, .of = of};
    FOR_EACH_INPUT (i, tensor, step) {
        tensors[i] = *tensor;
        check->step.in[i] = &tensors[i];
    }
    while (*last)
        last = &(*last)->next;
    *last = check;
    return HEALCL_OK;
}

/* Finds the checks that the body's steps, those from `first` on, make of the call's inputs. An
 * input that an earlier one of these steps has written is not checked. */
static enum healcl_status find_checks(const struct plan *plan, size_t first,
                                      const struct step *whole, struct vendor_call *made,
                                      struct arena *arena, struct healcl_error *error)
{
    for (size_t i = first; i < plan->step_count; i++)
        for (int input = 0; input < STEP_INPUTS; input++) {
            const struct step *step = &plan->steps[i];
            int of = step_check(step, input) == CHECK_NONE ? STEP_INPUTS : 0;
            while (of < STEP_INPUTS &&
                   !(whole->in[of] && whole->in[of]->storage == step->in[input]->storage))
                of++;
            for (size_t j = first; j < i && of < STEP_INPUTS; j++)
                if (plan->steps[j].out && plan->steps[j].out->storage == step->in[input]->storage)
                    of = STEP_INPUTS;
            if (of < STEP_INPUTS)
                TRY(keep_check(made, arena, step, input, of, error));
        }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- both */

/* Allocates a call's plan, with its launches. */
static enum healcl_status make_call(struct call *call, struct arena *arena,
                                    struct vendor_call **made, struct healcl_error *error)
{
    const struct vendor_operation *operation = operation_of(call);
    const bool is_tuned = operation->has_alternatives;
    struct vendor_call *new = arena_alloc(arena, sizeof *new);
    NEED_MEMORY(new, error);
    new->operation = operation;
    new->launches = arena_alloc(arena, (operation->kernel_count + 1) * sizeof *new->launches);
    new->tuned = is_tuned ? arena_alloc(arena, sizeof *new->tuned) : NULL;
    NEED_MEMORY(new->launches && (new->tuned || !is_tuned), error);
    *made = new;
    return HEALCL_OK;
}

static enum healcl_status add_sides(struct call *call, struct vendor_call *made,
                                    struct arena *arena, struct healcl_error *error)
{
    const struct vendor_operation *operation = operation_of(call);
    struct planner *planner = call->planner;
    struct copies copies = {.count = 0};
    struct expression_values values;
    struct step step = planner_step(planner, STEP_VENDOR, call->result);
    TRY(set_inputs(call, &step, &copies, error));
    call_set_values(call, &values);
    planner->vendor = step.vendor = made;
    planner->side = operation->kernel_count == 0 ? STEP_OF_BODY
                    : operation->body_count == 0 ? STEP_ALWAYS
                                                 : STEP_OF_KERNEL;
    if (operation->kernel_count > 0)
        TRY(call_add_kernel(call, &step, &values, made, error));
    call_set_values(call, &values);
    set_value(&values, VENDOR_OUT, call->result);
    planner->side = STEP_OF_BODY;
    const size_t first = planner->plan->step_count;
    if (operation->body_count > 0)
        TRY(add_body(call, &step, &values, error));
    if (operation->kernel_count > 0)
        TRY(find_checks(planner->plan, first, &step, made, arena, error));
    planner->side = STEP_ALWAYS;
    planner->vendor = NULL;
    return release_copies(call, &copies, error);
}

/* Forgets all known facts about the values of out. Facts from the body do not hold for the
 * kernel. */
static void forget_out(struct call *call)
{
    values_forget(&call->planner->values, call->result->storage);
    call->result->storage->writes++;
}

/* ---------------------------------------------------------------- calls that are cached */

/* Whether a call needs only the kernel's step, if the device has a kernel. */
static bool may_cache(const struct call *call)
{
    const struct vendor_operation *operation = operation_of(call);
    if (operation->kernel_count == 0 || wants_contiguous(operation, VENDOR_OUT, call->result))
        return false;
    for (int i = 0; i < STEP_INPUTS; i++) {
        const struct tensor *tensor =
            operation->names.of[i].name ? call->tensors[operation->parameter_of[i]] : NULL;
        if (tensor &&
            (tensors_overlap(tensor, call->result) || wants_contiguous(operation, i, tensor)))
            return false;
    }
    return true;
}

/* Copies layouts so that they live as long as the cache. */
static enum healcl_status keep_layouts(struct arena *arena, struct expression_values *values,
                                       struct healcl_error *error)
{
    for (uint32_t i = 0; i < EXPRESSION_NAMES_MAX; i++) {
        if (!values->layouts[i])
            continue;
        struct layout *layout = arena_copy(arena, values->layouts[i], sizeof *layout);
        NEED_MEMORY(layout, error);
        values->layouts[i] = layout;
    }
    return HEALCL_OK;
}

/* Plans a call and adds its plan to the cache. */
static enum healcl_status add_to_keep(struct call *call, const struct call_key *key,
                                      uint64_t bytes_before, struct healcl_error *error)
{
    struct planner *planner = call->planner;
    struct arena *arena = planner->kept->arena;
    const uint64_t peak = planner->plan->bytes_peak;
    struct vendor_call *made;
    planner->kept->count++; /* even if it is refused: its memory is allocated */
    TRY(make_call(call, arena, &made, error));
    made->ran = arena_alloc(arena, sizeof *made->ran);
    NEED_MEMORY(made->ran, error);
    planner->plan->bytes_peak = planner->bytes_live;
    TRY(add_sides(call, made, arena, error));
    if (made->tuned)
        TRY(keep_layouts(arena, &made->tuned->values, error));
    struct step step = planner_step(planner, STEP_VENDOR, call->result);
    step.vendor = made;
    for (int i = 0; i < STEP_INPUTS; i++) {
        if (!operation_of(call)->names.of[i].name)
            continue;
        step.arguments[i].parameter = (uint8_t)operation_of(call)->parameter_of[i];
        step.in[i] = call->tensors[step.arguments[i].parameter];
    }
    struct cached_call *kept = cached_call_add(call, key, &step);
    NEED_MEMORY(kept, error);
    kept->bytes = planner->plan->bytes_peak - bytes_before;
    if (planner->plan->bytes_peak < peak)
        planner->plan->bytes_peak = peak;
    return HEALCL_OK;
}

/* key: to keep the call's plan; or NULL. */
static enum healcl_status add_call(struct call *call, const struct call_key *key,
                                   struct healcl_error *error)
{
    const struct vendor_operation *operation = operation_of(call);
    const uint64_t bytes_before = call->planner->bytes_live;
    struct expression_values values;
    struct vendor_call *made;
    TRY(check_dtypes(call, error));
    call_set_values(call, &values);
    TRY(check_rules(operation, &values, error));
    if (operation->makes_out)
        TRY(make_out(call, &values, error));
    if (layout_elements(&call->result->layout) == 0)
        return HEALCL_OK;
    if (key && may_cache(call)) {
        TRY(add_to_keep(call, key, bytes_before, error));
    } else {
        struct arena *arena = call->planner->plan->arena;
        TRY(make_call(call, arena, &made, error));
        TRY(add_sides(call, made, arena, error));
    }
    forget_out(call);
    return HEALCL_OK;
}

enum healcl_status infer_vendor(struct call *call, struct healcl_error *error)
{
    struct call_key key;
    const bool is_kept = call_key(call, &key) && !cached_call_find(call->planner->kept, &key);
    enum healcl_status status = add_call(call, is_kept ? &key : NULL, error);
    call->planner->side = STEP_ALWAYS;
    call->planner->vendor = NULL;
    call->planner->outer = NULL;
    return status;
}
