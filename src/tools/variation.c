/* Derives calls from an example: with other sizes, dtypes and values, in all layouts. A call is
 * valid if the body accepts it on the host reference. Then the kernel must give the same result. */

#include "core/clock.h"
#include "tools/example.h"
#include "tools/xmalloc.h"

enum {
    EXAMPLE_SEED = 0x6e8a391, /* seed of everything random here */
    SHAPES_MAX = 8,           /* including the example's own */
    TRIES_MAX = 1000,
    DTYPES_MAX = 1 + DTYPE_COUNT, /* sets of dtypes */
    DERIVED_ELEMENTS_MAX = 8192,  /* of a tensor whose size differs from the example's */
    MAIN_SHAPES = 4,              /* sizes that get most calls */
    RANDOM_CALLS = 8,             /* random layouts for each of them, for kernels */
};

/* ---------------------------------------------------------------- roles */

/* Stores what a tensor may hold, from a step of the body that uses it. */
static void set_role(struct problem_tensor *tensor, const struct step *step, int input)
{
    static const enum contents of[] = {[CHECK_NONE] = CONTENTS_VALUES,
                                       [CHECK_MODULUS] = CONTENTS_MODULI,
                                       [CHECK_INDEX] = CONTENTS_BETWEEN,
                                       [CHECK_PERMUTATION] = CONTENTS_PERMUTATION,
                                       [CHECK_COPRIME] = CONTENTS_COPRIME};
    const enum contents contents = of[step_check(step, input)];
    if (contents == CONTENTS_BETWEEN) {
        const int64_t size = step->in[0]->layout.shape[step->value[0]];
        tensor->low = step->value[1] ? -size : 0;
        tensor->high = size - 1;
    }
    if (contents > tensor->contents)
        tensor->contents = contents;
}

static void find_roles(void *context, const struct plan *plan)
{
    struct problem *problem = context;
    /* By storage: 1 + the parameter whose values it holds; 0: none. */
    int *parameters = xcalloc(plan->storage_count, sizeof *parameters);
    for (int i = 0, storage = 1; i < PARAMETERS_MAX; i++)
        if (problem->tensors[i].present)
            parameters[storage++] = 1 + i;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        for (int input = 0; input < STEP_INPUTS; input++) {
            const int found = step->in[input] ? parameters[step->in[input]->storage->id] : 0;
            if (found == 0)
                continue;
            set_role(&problem->tensors[found - 1], step, input);
            if (step->kind == STEP_COPY)
                parameters[step->out->storage->id] = found;
        }
    }
    free(parameters);
}

/* Whether the body accepts a call. If so, sets the roles of its tensors. */
static bool is_legal(struct problem *problem)
{
    for (int i = 0; i < PARAMETERS_MAX; i++)
        problem->tensors[i].contents = CONTENTS_VALUES;
    return problem_look(problem, find_roles, problem, NULL) == HEALCL_OK;
}

/* ---------------------------------------------------------------- sizes */

/* Returns a size near those of vectors and work-groups, or a size related to the old one. */
static int64_t other_size(struct random *random, int64_t size)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 16, 64, 65, 129, 257};
    switch (size > DERIVED_ELEMENTS_MAX ? 0 : random_between(random, 0, 3)) {
    case 0: return size;
    case 1: return size * random_between(random, 1, 3) + random_between(random, 0, 1);
    default: return sizes[random_between(random, 0, sizeof sizes / sizeof *sizes - 1)];
    }
}

/* Depends only on size and place within a call. */
static int64_t changed_size(uint64_t seed, int64_t size, uint32_t place)
{
    struct random random = {seed + (uint64_t)size * LAYOUT_RANK + place};
    return other_size(&random, size);
}

/* Changes sizes of axes, and integers, because some of them are sizes too. Axes of equal size
 * remain equal, or become different by their place. */
static void change_sizes(struct problem *problem, struct random *random)
{
    const struct form *form = problem->form;
    const bool parts = random_once_in(random, 3);
    const uint64_t seed = random_bits(random);
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        struct layout *shape = &problem->tensors[i].shape;
        for (uint32_t axis = 0; problem->tensors[i].present && axis < shape->rank; axis++)
            shape->shape[axis] =
                changed_size(seed, shape->shape[axis], parts ? shape->rank - axis : 0);
    }
    for (uint32_t i = 0; i < form->parameter_count; i++) {
        int64_t value = strtoll(problem->text[i], NULL, 10);
        if (form->parameters[i].kind != HEALCL_PARAMETER_INT || random_once_in(random, 3))
            continue;
        if (value >= 0 && random_once_in(random, 2))
            value = changed_size(seed, value, 0);
        else
            value = (int64_t)((uint64_t)value + (uint64_t)random_between(random, -1, 1));
        snprintf(problem->text[i], ARGUMENT_TEXT_SIZE, "%" PRId64, value);
    }
}

/* Sets the shape of a tensor that the operation makes. */
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

/* Whether the shapes are small enough, one has at least `least` elements, and no problem in the
 * list has the same shapes. */
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

/* Lists problems with the example's sizes and with others. Every second one has several work-groups
 * and a partial one. Returns their number. */
static size_t derive_sizes(const struct example *example, const struct problem *own,
                           struct problem list[SHAPES_MAX], struct random *random)
{
    size_t count = 1;
    list[0] = *own;
    for (int tries = 0; tries < TRIES_MAX && count < SHAPES_MAX; tries++) {
        struct problem *made = &list[count];
        *made = *own;
        change_sizes(made, random);
        if (set_made_shape(made, example_vendor(example->operation)) &&
            is_new(made, list, count, count % 2 && tries < TRIES_MAX / 2 ? 257 : 0))
            count += is_legal(made);
    }
    return count;
}

/* ---------------------------------------------------------------- dtypes */

/* Lists the example's dtypes, and each other dtype for all tensors that may have it. */
static size_t derive_dtypes(const struct problem *own, struct problem list[DTYPES_MAX])
{
    const struct vendor_operation *operation = own->form->operation->context;
    size_t count = 1;
    list[0] = *own;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        struct problem *made = &list[count];
        bool is_other = false;
        *made = *own;
        for (int i = 0; i < PARAMETERS_MAX; i++)
            if (made->tensors[i].present && operation->parameters[i].dtypes >> dtype & 1) {
                is_other |= made->tensors[i].dtype != (enum dtype)dtype;
                made->tensors[i].dtype = (enum dtype)dtype;
            }
        count += is_other && is_legal(made);
    }
    return count;
}

/* ---------------------------------------------------------------- values */

enum value_kind { VALUES_ANY, VALUES_RESIDUES, VALUES_EXAMPLE, VALUES_KINDS };

static const char *const value_names[] = {"any values that the body takes", "residues",
                                          "the example's values"};

/* Limits a tensor's values. If required, moduli are in [base, 2 base - 1] and residues below base.
 * All are in the range that the manifest promises to kernels. */
static void bound_tensor(struct problem_tensor *tensor, const struct vendor_parameter *promised,
                         bool are_residues, bool have_base, int64_t base)
{
    const int64_t most = random_largest(tensor->dtype);
    const bool are_moduli = tensor->contents == CONTENTS_MODULI;
    const int64_t least = are_moduli ? 1 : -most - 1;
    int64_t low = least, high = most;
    if (tensor->contents == CONTENTS_BETWEEN) {
        low = tensor->low;
        high = tensor->high;
    } else if (are_moduli && have_base) {
        low = base;
        high = base + (base - 1);
    } else if (tensor->contents == CONTENTS_VALUES && (are_residues || promised->residues)) {
        low = 0;
        high = base - 1 < most ? base - 1 : most;
    }
    low = low < promised->low ? promised->low : low;
    high = high > promised->high ? promised->high : high;
    if (tensor->contents == CONTENTS_COPRIME || tensor->contents == CONTENTS_PERMUTATION ||
        (low == least && high == most))
        return;
    tensor->contents = tensor->contents == CONTENTS_VALUES && !promised->residues &&
                               promised->low == INT64_MIN && promised->high == INT64_MAX
                           ? CONTENTS_AROUND
                           : CONTENTS_BETWEEN;
    tensor->low = low > high ? promised->low : low;
    tensor->high = high;
}

static void set_values(struct problem *problem, bool are_residues, struct random *random)
{
    const struct vendor_operation *operation = problem->form->operation->context;
    bool have_base = are_residues;
    int64_t base = INT64_MAX;
    for (uint32_t i = 0; i < problem->form->parameter_count; i++) {
        const struct problem_tensor *tensor = &problem->tensors[i];
        const int64_t high = operation->parameters[i].high, most = random_largest(tensor->dtype);
        if (tensor->present && tensor->contents == CONTENTS_MODULI) {
            base = most < base ? most : base;
            base = high < base ? high : base;
        }
        have_base |= operation->parameters[i].residues;
    }
    for (base = base / 2 + 1; base > 16 && !random_once_in(random, 3);)
        base /= 2;
    for (uint32_t i = 0; i < problem->form->parameter_count; i++) {
        const enum healcl_parameter_kind kind = problem->form->parameters[i].kind;
        int64_t value;
        if (problem->tensors[i].present) {
            bound_tensor(&problem->tensors[i], &operation->parameters[i], are_residues, have_base,
                         base);
            continue;
        }
        if (kind == HEALCL_PARAMETER_MODULUS)
            value = have_base ? base + random_between(random, 0, base - 1)
                              : random_modulus(random, DTYPE_INT64);
        else if (kind == HEALCL_PARAMETER_SCALAR)
            value =
                have_base ? random_between(random, 0, base - 1) : random_value(random, DTYPE_INT64);
        else
            continue;
        snprintf(problem->text[i], ARGUMENT_TEXT_SIZE, "%" PRId64, value);
    }
}

/* Fills the tensors with repetitions of the example's elements. */
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

/* Fills a problem with values of one kind. Returns false if the body refuses them. */
static bool solve(const struct example *example, const struct problem *sizes,
                  enum value_kind values, struct random *random, struct problem *problem,
                  struct problem_data *data)
{
    struct placement placement;
    *problem = *sizes;
    if (values != VALUES_EXAMPLE)
        set_values(problem, values == VALUES_RESIDUES, random);
    problem_data_init(data, problem, random);
    if (values == VALUES_EXAMPLE)
        repeat_example(example, problem, data);
    placement_make(&placement, problem, ARRANGEMENT_CONTIGUOUS, 0, NULL);
    if (problem_check(NULL, problem, &placement, data, random, NULL) == HEALCL_OK)
        return true;
    problem_data_release(data);
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
    bool is_main; /* the kind of values that gets most calls */
};

/* Counts a call by its outcome. Keeps its error if there was none, or if the earlier error was only
 * a limit of the device and this one is not. */
static void count_call(struct example_check *check, enum example_side side,
                       struct healcl_error *error)
{
    struct check_counts *counts = &check->of[side];
    const bool is_beyond = error->status == HEALCL_REFUSED, is_right = error->status == HEALCL_OK;
    counts->calls++;
    counts->passed += is_right;
    counts->unsupported += is_beyond;
    if (is_right ||
        (check->why.status != HEALCL_OK && (is_beyond || check->why.status != HEALCL_REFUSED))) {
        healcl_error_clear(error);
        return;
    }
    error_move(&check->why, error);
}

static void make_call(const struct calls *calls, enum example_side side,
                      const struct problem *problem, const struct problem_data *data,
                      enum arrangement arrangement, uint64_t variant, struct random *random)
{
    struct example_check *check = calls->check;
    struct healcl_error error = {.status = HEALCL_OK};
    struct manifest_kernel kernel = {.name = NULL};
    struct placement placement;
    placement_make(&placement, problem, arrangement, variant, random);
    placement_guard(&placement, arrangement);
    /* The body was accepted, so a refused call is the fault of the kernels. */
    if (side == EXAMPLE_KERNEL &&
        problem_kernel(calls->device, problem, &placement, &kernel) == HEALCL_OK && !kernel.name)
        return;
    (void)problem_check(calls->device, problem, &placement, data, random, &error);
    if (kernel.name && (!check->kernel.name || check->why.status == HEALCL_OK))
        check->kernel = kernel;
    if (error.status != HEALCL_OK)
        error_prefix(&error, "%s, entry %zu: %s, %s, its %s: ", calls->example->file,
                     calls->example->entry, arrangement_name(arrangement),
                     value_names[calls->values], example_side_names[side]);
    count_call(check, side, &error);
}

static void make_calls(const struct calls *calls, enum example_side side, const struct problem *own,
                       const struct problem_data *data, uint64_t variant)
{
    const int most =
        ARRANGEMENT_RANDOM + (calls->is_main && side == EXAMPLE_KERNEL ? RANDOM_CALLS : 1);
    struct problem problem = *own;
    struct random random = {EXAMPLE_SEED + variant};
    const struct check_counts *counts = &calls->check->of[side];
    problem.table = calls->examples->tables[side];
    problem.uses = calls->examples->uses;
    for (int i = 0; i < most && counts->passed + counts->unsupported == counts->calls; i++) {
        const enum arrangement arrangement =
            i < ARRANGEMENT_RANDOM ? (enum arrangement)i : ARRANGEMENT_RANDOM;
        problem.turn = (uint32_t)variant + (uint32_t)i;
        if (arrangement_applies(&problem, arrangement))
            make_call(calls, side, &problem, data, arrangement, variant, &random);
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
    if (!solve(calls->example, sizes, values, &random, &problem, &data)) {
        calls->values = VALUES_EXAMPLE;
        if (values == VALUES_EXAMPLE ||
            !solve(calls->example, sizes, VALUES_EXAMPLE, &random, &problem, &data))
            return;
    }
    for (int side = 0; side < EXAMPLE_SIDES; side++)
        if (side == EXAMPLE_KERNEL ? vendor->kernel_count > 0 : calls->is_main)
            make_calls(calls, (enum example_side)side, &problem, &data, variant);
    problem_data_release(&data);
}

static void check_call(struct healcl_device *device, const struct examples *examples,
                       const struct example *example, struct example_check *check)
{
    struct problem own = example->problem;
    struct random random = {EXAMPLE_SEED};
    struct calls calls = {device, examples, example, check, VALUES_ANY, false};
    struct healcl_error error = {.status = HEALCL_OK};
    own.table = examples->tables[EXAMPLE_BODY];
    if (problem_look(&own, NULL, NULL, &error) != HEALCL_OK) { /* the original call was accepted */
        error.status = HEALCL_DIFFERENT;
        count_call(check, EXAMPLE_BODY, &error);
        return;
    }
    (void)is_legal(&own);
    struct problem *sizes = xcalloc(SHAPES_MAX + DTYPES_MAX, sizeof *sizes), *dtypes;
    dtypes = sizes + SHAPES_MAX;
    const size_t size_count = derive_sizes(example, &own, sizes, &random);
    uint64_t variant = 0;
    for (size_t i = 0; i < size_count; i++) {
        const size_t dtype_count = derive_dtypes(&sizes[i], dtypes);
        for (size_t j = 0; j < dtype_count; j++) {
            if (i >= MAIN_SHAPES && j != i % dtype_count)
                continue;
            /* The example's values come first: a failure after them is caused by the other
             * values. */
            for (int k = 0; k < VALUES_KINDS; k++, variant++) {
                const enum value_kind values =
                    (enum value_kind)((k + VALUES_EXAMPLE) % VALUES_KINDS);
                calls.is_main = i < MAIN_SHAPES && values == (i == 0 ? VALUES_EXAMPLE : VALUES_ANY);
                if (values != VALUES_EXAMPLE || i == 0)
                    check_values(&calls, &dtypes[j], values, variant);
            }
        }
    }
    free(sizes);
}

void example_check(struct healcl_device *device, const struct examples *examples,
                   struct example_check *check)
{
    const struct vendor_operation *vendor = example_vendor(check->operation);
    const struct example *example = example_from(examples->first, check->operation);
    const uint64_t begin = monotonic_nanoseconds();
    check->unchecked = vendor->body_count == 0 ? "there is no body to compare with"
                       : !example              ? "no transcript in examples/ calls it"
                                               : NULL;
    for (; example && !check->unchecked; example = example_from(example->next, check->operation))
        check_call(device, examples, example, check);
    check->nanoseconds = monotonic_nanoseconds() - begin;
}
