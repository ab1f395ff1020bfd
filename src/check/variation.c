/*
 * Calls that are derived from an example: of other sizes, dtypes and values, in all layouts. What
 * the body takes on the host reference is a call, and what a kernel makes else of it is wrong.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/example.h"
#include "core/clock.h"
#include "run/device_executor.h"

enum {
    EXAMPLE_SEED = 0x6e8a391, /* of everything random here */
    SHAPES_MAX = 8,           /* the example's own among them */
    TRIES_MAX = 90,           /* for each kind of sizes */
    AXES_MAX = 48,
    DTYPES_MAX = 6,              /* sets of them */
    DERIVED_ELEMENTS_MAX = 8192, /* of a tensor of other sizes than the example's */
    ALL_PARTS = 4,               /* shapes that each tensor alone is arranged of, and so on */
    PART_ELEMENTS_MAX = 1 << 18, /* of a tensor of them */
};

/* ---------------------------------------------------------------- roles */

/* What a tensor may hold, by the steps of the body that use it. */
struct roles {
    struct problem *problem;
    struct {
        const struct storage *storage;
        int parameter;
    } of[4 * PARAMETERS_MAX]; /* those of the parameters, and copies of them */
    size_t count;
};

static void add_storage(struct roles *roles, const struct storage *storage, int parameter)
{
    if (roles->count == sizeof roles->of / sizeof *roles->of)
        return;
    roles->of[roles->count].storage = storage;
    roles->of[roles->count++].parameter = parameter;
}

static int parameter_of(const struct roles *roles, const struct tensor *tensor)
{
    for (size_t i = 0; i < roles->count; i++)
        if (roles->of[i].storage == tensor->storage)
            return roles->of[i].parameter;
    return -1;
}

/* A permutation is also an index, and moduli that have no factor in common are moduli. */
static void set_role(struct problem_tensor *tensor, const struct step *step, int input)
{
    static const int order[] = {[CONTENTS_VALUES] = 0,
                                [CONTENTS_MODULI] = 1,
                                [CONTENTS_COPRIME] = 2,
                                [CONTENTS_BETWEEN] = 3,
                                [CONTENTS_PERMUTATION] = 4};
    const struct step_traits *traits = &step_traits[step->kind];
    const char *name = traits->inputs[input] ? traits->inputs[input] : "";
    enum contents contents = CONTENTS_VALUES;
    if (traits->moduli > 0 && input == traits->moduli)
        contents = step->kind == STEP_DIGITS_FULL_Q ? CONTENTS_COPRIME : CONTENTS_MODULI;
    else if (strcmp(name, "perm") == 0)
        contents = CONTENTS_PERMUTATION;
    else if (step->kind == STEP_GATHER && input == 1)
        contents = CONTENTS_BETWEEN;
    if (contents == CONTENTS_BETWEEN) {
        const int64_t size = step->in[0]->layout.shape[step->value[0]];
        tensor->low = step->value[1] ? -size : 0;
        tensor->high = size - 1;
    }
    if (order[contents] > order[tensor->contents])
        tensor->contents = contents;
}

static void find_roles(void *context, const struct plan *plan)
{
    struct roles *roles = context;
    for (int i = 0, storage = 1; i < PARAMETERS_MAX; i++)
        if (roles->problem->tensors[i].present)
            add_storage(roles, plan->storages[storage++], i);
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        for (int input = 0; input < STEP_INPUTS; input++) {
            const int parameter = step->in[input] ? parameter_of(roles, step->in[input]) : -1;
            if (parameter < 0)
                continue;
            set_role(&roles->problem->tensors[parameter], step, input);
            if (step->kind == STEP_COPY)
                add_storage(roles, step->out->storage, parameter);
        }
    }
}

/* Whether the body takes a call; its tensors then have roles. */
static bool is_legal(struct problem *problem, struct random *random)
{
    struct roles roles = {.problem = problem};
    for (int i = 0; i < PARAMETERS_MAX; i++)
        problem->tensors[i].contents = CONTENTS_VALUES;
    return problem_look(problem, random, find_roles, &roles);
}

/* ---------------------------------------------------------------- sizes */

enum sizes {
    SIZES_ODD,
    SIZES_LARGE,
    SIZES_ONE,
    SIZES_POWERS,
    SIZES_TIMES,
    SIZES_PLUS,
    SIZES_KINDS
};

/* The axes of an example's tensors, and where they may go together: of one size, and side. */
struct axes {
    size_t count;
    struct {
        int parameter;
        uint32_t axis;
        int64_t size, side;
    } of[AXES_MAX];
};

static void find_axes(struct axes *axes, const struct problem *problem)
{
    axes->count = 0;
    for (int i = 0; i < PARAMETERS_MAX; i++)
        for (uint32_t axis = 0; problem->tensors[i].present &&
                                axis < problem->tensors[i].shape.rank && axes->count < AXES_MAX;
             axis++) {
            axes->of[axes->count].parameter = i;
            axes->of[axes->count].axis = axis;
            axes->of[axes->count++].size = problem->tensors[i].shape.shape[axis];
        }
}

/* Axes of one size may be different ones: they are parted by their places, or at random. */
static void choose_sides(struct axes *axes, const struct problem *problem, int how,
                         struct random *random)
{
    for (size_t i = 0; i < axes->count; i++) {
        const uint32_t rank = problem->tensors[axes->of[i].parameter].shape.rank;
        axes->of[i].side = how == 0   ? 0
                           : how == 1 ? (int64_t)(rank - axes->of[i].axis)
                                      : random_between(random, 0, 1);
    }
}

static int64_t other_size(enum sizes kind, int64_t size, int64_t amount, size_t number,
                          struct random *random)
{
    static const int64_t odd[] = {3, 5, 7, 2, 11, 13}, large[] = {129, 3, 65, 2, 257, 5},
                         powers[] = {2, 8, 4, 16, 32, 64};
    switch (kind) {
    case SIZES_ODD: return odd[number % 6];
    case SIZES_LARGE: return large[number % 6];
    case SIZES_ONE: return random_once_in(random, 2) ? 1 : size;
    case SIZES_POWERS: return powers[number % 6];
    case SIZES_TIMES: return random_once_in(random, 2) ? size * amount : size;
    default: return random_once_in(random, 2) && size + amount > 2 ? size + amount - 2 : size;
    }
}

/* Sizes of another size, and integers, of which some are sizes too. */
static void change_sizes(struct problem *problem, struct axes *axes, enum sizes kind,
                         struct random *random)
{
    const struct form *form = problem->form;
    const size_t first = (size_t)random_between(random, 0, 5);
    const int64_t amount = random_between(random, 1, 4);
    int64_t changed[AXES_MAX];
    for (size_t i = 0; i < axes->count; i++) {
        size_t same = 0;
        while (axes->of[same].size != axes->of[i].size || axes->of[same].side != axes->of[i].side)
            same++;
        changed[i] = same < i ? changed[same]
                              : other_size(kind, axes->of[i].size, amount, first + i, random);
        problem->tensors[axes->of[i].parameter].shape.shape[axes->of[i].axis] = changed[i];
    }
    for (uint32_t i = 0; i < form->parameter_count; i++) {
        int64_t value = strtoll(problem->text[i], NULL, 10);
        if (form->parameters[i].kind != HEALCL_PARAMETER_INT || random_once_in(random, 3))
            continue;
        size_t same = 0;
        while (same < axes->count && axes->of[same].size != value)
            same++;
        if (same < axes->count)
            value = changed[same];
        else if (random_once_in(random, 2))
            value =
                random_once_in(random, 2) ? value / 2 : value + random_between(random, 0, 2) - 1;
        snprintf(problem->text[i], ARGUMENT_TEXT_SIZE, "%" PRId64, value);
    }
}

/* The shape of a tensor that the operation makes. */
static bool set_made_shape(struct problem *problem, const struct vendor_operation *operation)
{
    struct expression_values values = {.integers = {0}};
    const uint32_t count = operation->form.parameter_count;
    if (!operation->makes_out)
        return true;
    for (uint32_t i = 0; i < count; i++) {
        const int number = operation->parameters[i].number;
        if (number == NO_INPUT)
            continue;
        values.layouts[number] = problem->tensors[i].present ? &problem->tensors[i].shape : NULL;
        values.dtypes[number] = problem->tensors[i].dtype;
        values.integers[number] = strtoll(problem->text[i], NULL, 10);
    }
    for (uint32_t i = 0; problem->out >= 0 && i < operation->out_rank; i++)
        if (expression_value(operation->out_shape[i], &values,
                             &problem->tensors[problem->out].shape.shape[i], NULL) != HEALCL_OK)
            return false;
    return true;
}

/* Whether the shapes are not too large, one has so many elements, and no other problem of the list
 * has all of them. */
static bool is_new(struct problem *problem, const struct problem *list, size_t count, int64_t least)
{
    int64_t most = 0;
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        struct layout *shape = &problem->tensors[i].shape;
        int64_t elements = 1;
        for (uint32_t axis = 0; axis < shape->rank; axis++) {
            if (shape->shape[axis] < 1 || shape->shape[axis] > DERIVED_ELEMENTS_MAX / elements)
                return false;
            elements *= shape->shape[axis];
        }
        *shape = layout_of_shape(shape->rank, shape->shape);
        most = elements > most ? elements : most;
    }
    if (most < least)
        return false;
    for (size_t j = 0; j < count; j++) {
        bool is_same = true;
        for (int i = 0; i < PARAMETERS_MAX; i++)
            is_same =
                is_same && layout_same_shape(&problem->tensors[i].shape, &list[j].tensors[i].shape);
        if (is_same)
            return false;
    }
    return true;
}

/* Problems of the example's sizes, and of others. Returns how many there are. */
static size_t derive_sizes(const struct example *example, const struct problem *own,
                           struct problem list[SHAPES_MAX], struct random *random)
{
    struct axes axes;
    size_t count = 1;
    list[0] = *own;
    find_axes(&axes, own);
    for (int kind = 0; kind < 2 * SIZES_KINDS && axes.count > 0; kind++)
        for (int tries = 0; tries < TRIES_MAX && count < SHAPES_MAX; tries++) {
            /* Several work-groups, and a part of one. */
            const int64_t least = kind == SIZES_LARGE && tries < TRIES_MAX - 10 ? 257 : 0;
            struct problem *made = &list[count];
            *made = *own;
            choose_sides(&axes, own, tries < TRIES_MAX / 2 ? 1 + tries % 2 : 0, random);
            change_sizes(made, &axes, (enum sizes)(kind % SIZES_KINDS), random);
            if (set_made_shape(made, example_vendor(example->operation)) &&
                is_new(made, list, count, least) && is_legal(made, random)) {
                count++;
                break;
            }
        }
    return count;
}

/* ---------------------------------------------------------------- dtypes */

/* Sets of dtypes: the example's, each tensor's others alone, and all tensors of one dtype. */
static size_t derive_dtypes(const struct problem *own, struct problem list[DTYPES_MAX],
                            struct random *random)
{
    const struct vendor_operation *operation = own->form->operation->context;
    size_t count = 1;
    list[0] = *own;
    for (int i = -1; i < (int)operation->form.parameter_count; i++)
        for (int dtype = 0; dtype < DTYPE_COUNT && count < DTYPES_MAX; dtype++) {
            struct problem *made = &list[count];
            bool is_other = false;
            *made = *own;
            for (int j = 0; j < PARAMETERS_MAX; j++)
                if (made->tensors[j].present && (i < 0 || i == j) &&
                    (operation->parameters[j].dtypes >> dtype & 1)) {
                    is_other |= made->tensors[j].dtype != (enum dtype)dtype;
                    made->tensors[j].dtype = (enum dtype)dtype;
                }
            for (size_t k = 1; k < count && is_other; k++) {
                bool is_same = true;
                for (int j = 0; j < PARAMETERS_MAX; j++)
                    is_same = is_same && made->tensors[j].dtype == list[k].tensors[j].dtype;
                is_other = !is_same;
            }
            count += is_other && is_legal(made, random);
        }
    return count;
}

/* ---------------------------------------------------------------- values */

enum value_kind { VALUES_ANY, VALUES_RESIDUES, VALUES_NEAR, VALUES_EXAMPLE, VALUES_KINDS };

static const char *const value_names[] = {"any values that the body takes", "residues",
                                          "values near the moduli", "the example's values"};

static void set_bounds(struct problem_tensor *tensor, enum contents contents, int64_t low,
                       int64_t high)
{
    tensor->contents = contents;
    tensor->low = low;
    tensor->high = high;
}

static int64_t largest(enum dtype dtype)
{
    return INT64_MAX >> (64 - 8 * dtype_size(dtype));
}

/* The largest value of a tensor, as its dtype and the manifest have it. */
static int64_t most_of(const struct problem_tensor *tensor, const struct vendor_parameter *promised)
{
    return largest(tensor->dtype) < promised->high ? largest(tensor->dtype) : promised->high;
}

/* What the tensor holds, within what the manifest promises kernels. */
static void keep_promise(struct problem_tensor *tensor, const struct vendor_parameter *promised)
{
    const int64_t most = most_of(tensor, promised);
    const bool is_bounded =
        tensor->contents == CONTENTS_BETWEEN || tensor->contents == CONTENTS_AROUND;
    const int64_t least = tensor->contents == CONTENTS_MODULI ? 1 : -largest(tensor->dtype) - 1;
    int64_t low = is_bounded ? tensor->low : least, high = is_bounded ? tensor->high : most;
    if (promised->low == INT64_MIN && promised->high == INT64_MAX)
        return;
    low = low < promised->low ? promised->low : low;
    high = high > most ? most : high;
    set_bounds(tensor, CONTENTS_BETWEEN, low > high ? promised->low : low, high);
}

/* Moduli are in [base, base + near], residues below base. */
struct bounds {
    enum value_kind values;
    int64_t base, near;
    bool are_residues, is_negative;
};

static struct bounds choose_bounds(const struct problem *problem, enum value_kind values,
                                   struct random *random)
{
    const struct vendor_operation *operation = problem->form->operation->context;
    struct bounds bounds = {.values = values, .are_residues = values != VALUES_ANY};
    int64_t most = INT64_MAX;
    for (uint32_t i = 0; i < problem->form->parameter_count; i++) {
        const struct problem_tensor *tensor = &problem->tensors[i];
        if (tensor->present && tensor->contents == CONTENTS_MODULI &&
            most_of(tensor, &operation->parameters[i]) < most)
            most = most_of(tensor, &operation->parameters[i]);
        bounds.are_residues |= operation->parameters[i].residues;
    }
    bounds.base = most / 2 + 1;
    while (bounds.base > 16 && !random_once_in(random, 3))
        bounds.base /= 2;
    bounds.near = values == VALUES_NEAR && bounds.base > 8 ? 8 : bounds.base - 1;
    bounds.is_negative = values == VALUES_NEAR && random_once_in(random, 2);
    return bounds;
}

static void bound_tensor(struct problem_tensor *tensor, const struct vendor_parameter *promised,
                         const struct bounds *bounds)
{
    const int64_t below = bounds->base - 1, most = largest(tensor->dtype);
    const int64_t high = below < most ? below : most;
    const enum contents contents = promised->residues ? CONTENTS_BETWEEN : CONTENTS_AROUND;
    if (bounds->are_residues && tensor->contents == CONTENTS_MODULI)
        set_bounds(tensor, CONTENTS_BETWEEN, bounds->base, bounds->base + bounds->near);
    if (tensor->contents != CONTENTS_VALUES)
        return;
    if (bounds->is_negative && !promised->residues)
        set_bounds(tensor, contents, -high, 7 - high);
    else if (bounds->values == VALUES_NEAR)
        set_bounds(tensor, contents, high > 7 ? high - 7 : 0, high);
    else if (bounds->values == VALUES_RESIDUES || promised->residues)
        set_bounds(tensor, contents, 0, high);
}

static int64_t draw_integer(enum healcl_parameter_kind kind, const struct bounds *bounds,
                            struct random *random)
{
    if (kind == HEALCL_PARAMETER_SCALAR)
        return bounds->are_residues ? random_between(random, 0, bounds->base - 1)
                                    : random_value(random, DTYPE_INT64);
    return bounds->are_residues ? bounds->base + random_between(random, 0, bounds->near)
                                : random_modulus(random, DTYPE_INT64);
}

static void set_values(struct problem *problem, enum value_kind values, struct random *random)
{
    const struct vendor_operation *operation = problem->form->operation->context;
    const struct bounds bounds = choose_bounds(problem, values, random);
    for (uint32_t i = 0; i < problem->form->parameter_count; i++) {
        const enum healcl_parameter_kind kind = problem->form->parameters[i].kind;
        if (problem->tensors[i].present) {
            bound_tensor(&problem->tensors[i], &operation->parameters[i], &bounds);
            keep_promise(&problem->tensors[i], &operation->parameters[i]);
        } else if (kind == HEALCL_PARAMETER_MODULUS || kind == HEALCL_PARAMETER_SCALAR) {
            snprintf(problem->text[i], ARGUMENT_TEXT_SIZE, "%" PRId64,
                     draw_integer(kind, &bounds, random));
        }
    }
}

/* The example's elements, again and again. */
static void repeat_example(const struct example *example, const struct problem *problem,
                           struct problem_data *data)
{
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        const struct problem_tensor *from = &example->problem.tensors[i];
        const int64_t count = layout_elements(&from->shape);
        if (!problem->tensors[i].present || !data->packed[i] || !example->data.packed[i])
            continue;
        for (int64_t j = 0; count > 0 && j < layout_elements(&problem->tensors[i].shape); j++)
            dtype_store(problem->tensors[i].dtype, data->packed[i], j,
                        dtype_load(from->dtype, example->data.packed[i], j % count));
    }
}

/* A problem with values of a kind, and its answer; where the body refuses them, with those of the
 * example. False where it refuses these too. */
static bool solve(const struct example *example, const struct problem *sizes,
                  enum value_kind *values, struct random *random, struct problem *problem,
                  struct problem_data *data)
{
    for (; *values < VALUES_KINDS; *values = VALUES_EXAMPLE + (*values == VALUES_EXAMPLE)) {
        *problem = *sizes;
        if (*values != VALUES_EXAMPLE)
            set_values(problem, *values, random);
        problem_data_init(data, problem, random);
        if (*values == VALUES_EXAMPLE)
            repeat_example(example, problem, data);
        problem_solve(data, problem);
        if (data->failure.status == HEALCL_OK || data->failure.status == HEALCL_NO_MEMORY)
            return true;
        problem_data_release(data);
    }
    return false;
}

/* ---------------------------------------------------------------- calls */

/* The calls of one problem. */
struct calls {
    struct healcl_device *device;
    const struct examples *examples;
    const struct example *example;
    struct example_check *check;
    enum value_kind values;
    bool has_all_parts;
};

static bool is_wrong(const struct check_counts *counts)
{
    return counts->passed + counts->unsupported < counts->calls;
}

static void make_call(const struct calls *calls, enum example_side side,
                      const struct problem *problem, const struct problem_data *data,
                      const struct placement *placement, enum arrangement arrangement,
                      struct random *random)
{
    struct example_check *check = calls->check;
    struct healcl_error error = {.status = HEALCL_OK};
    struct manifest_kernel kernel = {.name = NULL};
    if (side == EXAMPLE_KERNEL) {
        struct healcl_error refused = {.status = HEALCL_OK};
        struct planned planned;
        kernel = problem_kernel(calls->device, problem, placement, data);
        /* Where its body is taken, a call that is refused is so for its kernels. */
        if (!kernel.name &&
            problem_plan(&planned, problem, placement, NULL, &refused) == HEALCL_OK) {
            planned_release(&planned);
            return;
        }
        if (!kernel.name)
            planned_release(&planned);
        healcl_error_clear(&refused);
    }
    (void)problem_check(calls->device, problem, placement, data, random, &error);
    if (kernel.name && (!check->kernel.name || check->why.status == HEALCL_OK))
        check->kernel = kernel;
    if (error.status != HEALCL_OK)
        error_prefix(&error, "%s, entry %zu: %s, %s, its %s: ", calls->example->file,
                     calls->example->entry, arrangement_name(arrangement),
                     value_names[calls->values], example_side_name(side));
    (void)check_count(&check->of[side], error.status, &error, &check->why);
}

static void make_calls(const struct calls *calls, enum example_side side, const struct problem *own,
                       const struct problem_data *data, uint64_t variant)
{
    const struct check_counts *counts = &calls->check->of[side];
    struct problem problem = *own;
    struct placement placement;
    struct random random = {EXAMPLE_SEED + variant};
    problem.table = calls->examples->tables[side];
    for (int i = 0; i <= ARRANGEMENT_RANDOM; i++) {
        const enum arrangement arrangement = (enum arrangement)i;
        if (i < ARRANGEMENT_COUNT && arrangement_excluded(&problem, arrangement))
            continue;
        for (uint32_t part = 0;
             (part == 0 || (calls->has_all_parts && side == EXAMPLE_KERNEL)) && !is_wrong(counts) &&
             placement_make_part(&placement, &problem, arrangement, part, variant, &random);
             part++)
            make_call(calls, side, &problem, data, &placement, arrangement, &random);
    }
}

static void check_values(struct calls *calls, const struct problem *sizes, enum value_kind values,
                         uint64_t variant)
{
    const struct vendor_operation *vendor = example_vendor(calls->example->operation);
    struct random random = {~(EXAMPLE_SEED + variant)};
    struct problem problem;
    struct problem_data data;
    calls->values = values;
    if (!solve(calls->example, sizes, &calls->values, &random, &problem, &data))
        return;
    for (int side = 0; side < EXAMPLE_SIDES; side++)
        if (side == EXAMPLE_KERNEL ? vendor->kernel_count > 0 : calls->has_all_parts)
            make_calls(calls, (enum example_side)side, &problem, &data, variant);
    problem_data_release(&data);
}

static bool is_small(const struct problem *problem)
{
    bool found = true;
    for (int i = 0; i < PARAMETERS_MAX; i++)
        found = found && (!problem->tensors[i].present ||
                          layout_elements(&problem->tensors[i].shape) <= PART_ELEMENTS_MAX);
    return found;
}

/* An example that cannot be placed anew, though it was taken; NULL: for want of memory. */
static void note_unusable(struct example_check *check, const struct problem *own,
                          struct random *random)
{
    struct healcl_error error = {.status = HEALCL_OK};
    if (own && problem_is_refused(own, random, &error))
        error.status = HEALCL_DIFFERENT;
    else
        (void)ERROR(&error, HEALCL_NO_MEMORY, "out of memory");
    (void)check_count(&check->of[EXAMPLE_BODY], error.status, &error, &check->why);
}

static void check_call(struct healcl_device *device, const struct examples *examples,
                       const struct example *example, struct example_check *check)
{
    struct problem *sizes = calloc(SHAPES_MAX + DTYPES_MAX, sizeof *sizes), *dtypes;
    struct problem own = example_problem(examples, example, EXAMPLE_BODY);
    struct random random = {EXAMPLE_SEED};
    struct calls calls = {device, examples, example, check, VALUES_ANY, false};
    if (!sizes || !is_legal(&own, &random)) {
        note_unusable(check, sizes ? &own : NULL, &random);
        free(sizes);
        return;
    }
    dtypes = sizes + SHAPES_MAX;
    const size_t size_count = derive_sizes(example, &own, sizes, &random);
    uint64_t variant = 0;
    for (size_t i = 0; i < size_count; i++) {
        const size_t dtype_count = derive_dtypes(&sizes[i], dtypes, &random);
        for (size_t j = 0; j < dtype_count; j++) {
            if (i >= ALL_PARTS && j != i % dtype_count)
                continue;
            /* The example's go first: what is wrong behind them is so for other values. */
            for (int k = 0; k < VALUES_KINDS; k++, variant++) {
                const enum value_kind values =
                    (enum value_kind)((k + VALUES_EXAMPLE) % VALUES_KINDS);
                calls.has_all_parts = i < ALL_PARTS && is_small(&dtypes[j]) &&
                                      values == (i == 0 ? VALUES_EXAMPLE : VALUES_ANY);
                if (values != VALUES_EXAMPLE || i == 0)
                    check_values(&calls, &dtypes[j], values, variant);
            }
        }
    }
    free(sizes);
}

bool example_is_right(const struct example_check *check)
{
    return check->why.status == HEALCL_OK || check->why.status == HEALCL_REFUSED;
}

void example_check(struct healcl_device *device, const struct examples *examples,
                   struct example_check *check)
{
    const struct vendor_operation *vendor = example_vendor(check->operation);
    const struct example *example = example_of(examples, check->operation);
    const uint64_t begin = monotonic_nanoseconds();
    check->unchecked = vendor->body_count == 0 ? "no body to compare with"
                       : !example              ? "no call of it in examples/"
                                               : NULL;
    for (; example && !check->unchecked; example = example_next(example))
        check_call(device, examples, example, check);
    check->nanoseconds = monotonic_nanoseconds() - begin;
}

enum healcl_status example_verify(struct healcl_device *device, const struct examples *examples,
                                  const struct example *example, enum example_side side,
                                  struct healcl_error *error)
{
    static const enum arrangement arrangements[] = {ARRANGEMENT_CONTIGUOUS, ARRANGEMENT_OFFSET,
                                                    ARRANGEMENT_STRIDED};
    struct problem problem = example_problem(examples, example, EXAMPLE_BODY), solved;
    struct problem_data data;
    struct random random = {EXAMPLE_SEED};
    enum healcl_status status = HEALCL_OK;
    if (example_vendor(example->operation)->body_count == 0)
        return HEALCL_OK;
    if (!is_legal(&problem, &random) ||
        !solve(example, &problem, &(enum value_kind){VALUES_EXAMPLE}, &random, &solved, &data))
        NO_MEMORY(error);
    solved.table = examples->tables[side];
    for (size_t i = 0; i < sizeof arrangements / sizeof *arrangements && status == HEALCL_OK; i++) {
        struct placement placement;
        (void)placement_make_part(&placement, &solved, arrangements[i], 0, 0, &random);
        if (problem_check(device, &solved, &placement, &data, &random, error) != CHECK_EQUAL)
            status = error ? error->status : HEALCL_DIFFERENT;
    }
    problem_data_release(&data);
    return status;
}
