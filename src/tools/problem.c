#include "tools/problem.h"

#include <stdio.h>
#include <string.h>

#include "core/format.h"

/* ---------------------------------------------------------------- building */

struct maker {
    struct problem *problem;
    const struct problem_dtypes *dtypes;
    struct random *random;
    bool any;     /* shapes of any rank, of at most n elements */
    int64_t n, k; /* k is ignored if shapes are random */
    uint64_t variant;
};

/* Picks one of `count` choices. Consecutive variants give all combinations of choices. */
static int64_t choose(struct maker *maker, int64_t count)
{
    int64_t choice = (int64_t)(maker->variant % (uint64_t)count);
    maker->variant /= (uint64_t)count;
    return choice;
}

static int parameter_of(const struct maker *maker, const char *name)
{
    return form_parameter(maker->problem->form, name);
}

__attribute__((format(printf, 3, 4))) static void set_text(struct maker *maker, const char *name,
                                                           const char *format, ...)
{
    int i = parameter_of(maker, name);
    if (i >= 0)
        FORMAT_INTO(maker->problem->text[i], ARGUMENT_TEXT_SIZE, format);
}

static void set_integer(struct maker *maker, const char *name, int64_t value)
{
    set_text(maker, name, "%" PRId64, value);
}

static bool is_index(const struct healcl_parameter_info *parameter)
{
    return parameter->kind == HEALCL_PARAMETER_PERM || parameter->kind == HEALCL_PARAMETER_INDICES;
}

static struct problem_tensor *set_tensor(struct maker *maker, const char *name, uint32_t rank,
                                         const int64_t *shape)
{
    int i = parameter_of(maker, name);
    if (i < 0)
        return NULL;
    struct problem_tensor *tensor = &maker->problem->tensors[i];
    *tensor = (struct problem_tensor){.present = true, .dtype = maker->dtypes->value};
    if (i == problem_also(maker->problem->form))
        tensor->dtype = maker->dtypes->also;
    if (is_index(&maker->problem->form->parameters[i]))
        tensor->dtype = maker->dtypes->index;
    tensor->shape = layout_of_shape(rank, shape);
    return tensor;
}

static void set_between(struct problem_tensor *tensor, int64_t low, int64_t high)
{
    tensor->contents = CONTENTS_BETWEEN;
    tensor->low = low;
    tensor->high = high;
}

static void set_contents(struct maker *maker, const char *name, uint32_t rank, const int64_t *shape,
                         enum contents contents)
{
    struct problem_tensor *tensor = set_tensor(maker, name, rank, shape);
    if (tensor)
        tensor->contents = contents;
}

/* Makes most values residues, as in real transcripts: moduli are in [2^s, 2^(s+1)), values below
 * 2^s. Returns 2^s. */
static int64_t prefer_residues(struct maker *maker)
{
    struct problem *problem = maker->problem;
    int64_t bits = (int64_t)(8 * dtype_size(maker->dtypes->value)) - 1;
    int64_t base = (int64_t)1 << random_between(maker->random, 1, bits - 1);
    for (uint32_t i = 0; i < problem->form->parameter_count; i++) {
        struct problem_tensor *tensor = &problem->tensors[i];
        if (!tensor->present || (int)i == problem->out)
            continue;
        if (tensor->contents == CONTENTS_MODULI) {
            set_between(tensor, base, base + (base - 1));
        } else if (tensor->contents == CONTENTS_VALUES) {
            tensor->contents = CONTENTS_TAME;
            tensor->high = base - 1;
        }
    }
    return base;
}

#define SHAPE(...)                                                                          \
    (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) \
    {                                                                                       \
        __VA_ARGS__                                                                         \
    }

/* Writes the axis as it is, or counted from the end. */
static int64_t spelled_axis(struct maker *maker, int64_t axis, uint32_t rank)
{
    return choose(maker, 2) ? axis - (int64_t)rank : axis;
}

/* Makes a random shape of a rank in [rank_min, rank_max] with few elements. Sizes are often 1, and
 * sometimes 0. */
static uint32_t any_shape(struct maker *maker, uint32_t rank_min, uint32_t rank_max,
                          int64_t elements, int64_t shape[LAYOUT_RANK])
{
    struct random *random = maker->random;
    /* Real transcripts have small ranks. Large ranks are more likely to fail. */
    uint32_t rank = (uint32_t)random_between(random, rank_min,
                                             random_once_in(random, 3) ? rank_max : rank_min + 3);
    rank = rank > rank_max ? rank_max : rank;
    for (uint32_t axis = 0; axis < rank; axis++)
        shape[axis] = 1;
    int64_t left = random_between(random, 1, elements);
    for (uint32_t tries = 0; tries < 2 * rank && rank > 0; tries++) {
        uint32_t axis = (uint32_t)random_between(random, 0, rank - 1);
        int64_t size = random_between(random, 1, random_once_in(random, 4) ? left : 5);
        if (size > left || shape[axis] != 1)
            continue;
        shape[axis] = size;
        left /= size;
    }
    if (rank > 0 && random_once_in(random, 60))
        shape[random_between(random, 0, rank - 1)] = 0;
    return rank;
}

/* Makes the shape for an operation that works with any shape. */
static uint32_t base_shape(struct maker *maker, uint32_t rank_min, uint32_t rank_max,
                           int64_t shape[LAYOUT_RANK])
{
    if (maker->any)
        return any_shape(maker, rank_min, rank_max, maker->n, shape);
    shape[0] = maker->n;
    shape[1] = maker->k;
    return 2;
}

/* Returns one of the first two axes, or any axis for random shapes. */
static uint32_t choose_axis(struct maker *maker, uint32_t rank)
{
    const uint32_t axis = (uint32_t)choose(maker, 2);
    return maker->any ? (uint32_t)random_between(maker->random, 0, rank - 1) : axis;
}

/* ---------------------------------------------------------------- elementwise */

/* Makes a shape that broadcasts to the full one. how 0: its last axis; 1: the full one; 2: all
 * sizes 1; 3: all but the last axis; 4: rank 0. */
static uint32_t broadcast_shape(struct maker *maker, int64_t how, uint32_t rank,
                                const int64_t *full, int64_t shape[LAYOUT_RANK])
{
    uint32_t dropped = 0, kept;
    if (how == 4)
        return 0;
    if (rank > 1 && (how == 0 || (maker->any && how == 2)))
        dropped = how == 0 ? rank - 1 : (uint32_t)random_between(maker->random, 0, rank - 1);
    kept = rank - dropped;
    for (uint32_t axis = 0; axis < kept; axis++) {
        shape[axis] = full[dropped + axis];
        bool is_last = axis + 1 == kept;
        if ((how == 2 && (!maker->any || random_once_in(maker->random, 2))) ||
            (how == 3 && is_last))
            shape[axis] = 1;
    }
    return kept;
}

/* Whether an argument is a number. */
static bool is_number(const struct maker *maker, const char *name)
{
    const int i = parameter_of(maker, name);
    return i >= 0 && maker->problem->form->parameters[i].kind != HEALCL_PARAMETER_TENSOR;
}

/* Adds an operand whose shape broadcasts to the full one, or a number. */
static void set_operand(struct maker *maker, const char *name, int64_t how, uint32_t rank,
                        const int64_t *full, bool is_modulus, enum dtype dtype)
{
    int64_t shape[LAYOUT_RANK];
    if (is_number(maker, name))
        set_integer(maker, name,
                    is_modulus ? random_modulus(maker->random, dtype)
                               : random_value(maker->random, DTYPE_INT64));
    else if (parameter_of(maker, name) >= 0)
        set_contents(maker, name, broadcast_shape(maker, how, rank, full, shape), shape,
                     is_modulus ? CONTENTS_MODULI : CONTENTS_VALUES);
}

static void make_elementwise(struct maker *maker)
{
    int64_t full[LAYOUT_RANK];
    uint32_t rank = base_shape(maker, 0, MAX_RANK, full);
    int64_t a_how = 1, b_how = choose(maker, 3), p_how = choose(maker, 5);
    const bool is_mod = parameter_of(maker, "p") < 0; /* b holds the moduli */
    /* One operand has the full shape. */
    if (is_number(maker, "a"))
        p_how = b_how = 1;
    else if (choose(maker, 2) && parameter_of(maker, "b") >= 0 && !is_number(maker, "b"))
        a_how = b_how, b_how = 1;
    set_tensor(maker, "out", rank, full);
    set_operand(maker, "a", a_how, rank, full, false, DTYPE_INT64);
    set_operand(maker, "b", b_how, rank, full, is_mod, DTYPE_INT64);
    set_operand(maker, "p", p_how, rank, full, true,
                is_number(maker, "p") && random_once_in(maker->random, 4) ? DTYPE_INT64
                                                                          : maker->dtypes->value);
    if (!choose(maker, 2))
        return;
    const int64_t base = prefer_residues(maker), low = is_mod ? base : 0;
    if (is_number(maker, "p"))
        set_integer(maker, "p", random_between(maker->random, base, base + (base - 1)));
    if (is_number(maker, "b") && !random_once_in(maker->random, 4))
        set_integer(maker, "b", random_between(maker->random, low, low + (base - 1)));
}

/* ---------------------------------------------------------------- sums */

static void make_axis_modsum(struct maker *maker)
{
    int64_t shape[LAYOUT_RANK], out[LAYOUT_RANK];
    uint32_t rank = 3, axis = (uint32_t)choose(maker, 2);
    if (maker->any) {
        rank = any_shape(maker, 2, MAX_RANK, maker->n, shape);
        axis = (uint32_t)random_between(maker->random, 0, rank - 2);
    } else {
        shape[axis] = 3;
        shape[1 - axis] = maker->n;
        shape[2] = maker->k;
    }
    memcpy(out, shape, sizeof out);
    memmove(out + axis, out + axis + 1, (rank - axis - 1) * sizeof *out);
    set_tensor(maker, "a", rank, shape);
    set_tensor(maker, "out", rank - 1, out);
    set_contents(maker, "q", 1, &shape[rank - 1], CONTENTS_MODULI);
    set_integer(maker, "axis", spelled_axis(maker, axis, rank));
    if (choose(maker, 2))
        prefer_residues(maker);
}

/* Adds a permutation. If none is used, adds nothing, or a tensor that is not read. */
static void set_permutation(struct maker *maker, int64_t n, bool used)
{
    if (used)
        set_contents(maker, "perm", 1, &n, CONTENTS_PERMUTATION);
    else if (random_once_in(maker->random, 2))
        set_text(maker, "perm", "none");
    else
        set_tensor(maker, "perm", SHAPE(3));
}

static void set_hints(struct maker *maker)
{
    const struct form *form = maker->problem->form;
    for (uint32_t i = 0; i < form->parameter_count; i++) {
        if (form->parameters[i].kind != HEALCL_PARAMETER_HINT)
            continue;
        if (random_once_in(maker->random, 2))
            set_text(maker, form->parameters[i].name, "none");
        else
            set_integer(maker, form->parameters[i].name, random_value(maker->random, DTYPE_INT64));
    }
}

/* Chooses n and k of a problem with random shapes. n is a power of two if required. */
static void any_n_and_k(struct maker *maker, bool power)
{
    if (!maker->any)
        return;
    maker->k = random_between(maker->random, 1, 4);
    maker->n = random_between(maker->random, 1, 40);
    if (power)
        maker->n = (int64_t)1 << random_between(maker->random, 0,
                                                random_once_in(maker->random, 3) ? 11 : 8);
}

static void make_modmul_axis_sum(struct maker *maker)
{
    any_n_and_k(maker, false);
    int64_t n = maker->n, k = maker->k, s = 2, reps = 1;
    if (maker->any || n * k <= 1024) {
        s = random_between(maker->random, 1, 5);
        reps = random_between(maker->random, 1, 3);
    }
    bool has_axis = parameter_of(maker, "axis") >= 0;
    bool has_flag = parameter_of(maker, "apply_perm") >= 0;
    bool is_last = !has_axis || choose(maker, 2) == 0;
    bool permutes = has_flag && choose(maker, 2) == 0;
    if (is_last) {
        set_tensor(maker, "a", SHAPE(reps, s, k, n));
        set_tensor(maker, "b", SHAPE(s, k, n));
        set_tensor(maker, "out", SHAPE(reps, k, n));
    } else {
        set_tensor(maker, "a", SHAPE(reps, n, s, k));
        set_tensor(maker, "b", SHAPE(n, s, k));
        set_tensor(maker, "out", SHAPE(reps, n, k));
    }
    set_contents(maker, "q", 1, &k, CONTENTS_MODULI);
    if (has_flag) {
        set_permutation(maker, n, permutes);
        set_integer(maker, "apply_perm", permutes);
    }
    set_integer(maker, "axis", is_last ? -1 : -3);
    set_hints(maker);
    if (choose(maker, 2))
        prefer_residues(maker);
}

/* ---------------------------------------------------------------- transforms */

static void make_transform(struct maker *maker)
{
    bool inverse = parameter_of(maker, "ipsi") >= 0;
    any_n_and_k(maker, true);
    int64_t n = maker->n, k = maker->k, l = 1, r = 1;
    if (maker->any || n * k <= 1024) {
        l = random_between(maker->random, 1, 3);
        r = random_between(maker->random, 1, 2);
    }
    bool tile = choose(maker, 2), skips = !inverse && choose(maker, 2);
    bool is_last = parameter_of(maker, "axis") >= 0 && choose(maker, 2);
    int64_t a_k = tile ? 1 : k;
    if (is_last) {
        set_tensor(maker, "a", SHAPE(l, r, a_k, n));
        set_tensor(maker, "out", SHAPE(l, r, k, n));
    } else {
        set_tensor(maker, "a", SHAPE(l, n, r, a_k));
        set_tensor(maker, "out", SHAPE(l, n, r, k));
    }
    set_contents(maker, "q", 1, &k, CONTENTS_MODULI);
    set_tensor(maker, inverse ? "ipsi" : "psi", SHAPE(k, n));
    set_tensor(maker, "n_inv", 1, &k);
    set_permutation(maker, n, !skips);
    set_integer(maker, "axis", is_last ? -1 : -3);
    set_integer(maker, "tile", tile);
    set_integer(maker, "skip_perm", skips);
    set_hints(maker);
    if (choose(maker, 2))
        prefer_residues(maker);
}

/* ---------------------------------------------------------------- digits */

static void make_digits(struct maker *maker)
{
    static const int64_t bases[] = {4, 1, 31, 32, 63, 64, 100, INT64_MAX};
    int64_t shape[LAYOUT_RANK], count = 2, base = bases[choose(maker, 8)];
    uint32_t rank = base_shape(maker, 0, MAX_RANK - 1, shape);
    if (maker->any || maker->n * maker->k <= 1024)
        count = random_between(maker->random, 0, 20);
    set_tensor(maker, "a", rank, shape);
    shape[rank] = count;
    set_tensor(maker, "out", rank + 1, shape);
    set_integer(maker, "g_exp", count);
    set_integer(maker, "base_bits", base);
}

static void make_digits_full_q(struct maker *maker)
{
    static const int64_t bases[] = {20, 4, 1, 63, 64, 65, 200, INT64_MAX};
    any_n_and_k(maker, false);
    int64_t n = maker->n, k = maker->k, l = 1, count = 2, base = bases[choose(maker, 8)];
    if (maker->any || n * k <= 1024) {
        l = random_between(maker->random, 1, 3);
        count = random_between(maker->random, 0, 20);
    }
    set_tensor(maker, "a", SHAPE(l, k, n));
    set_tensor(maker, "out", SHAPE(l, count, n));
    set_contents(maker, "q", 1, &k, CONTENTS_COPRIME);
    set_integer(maker, "g_exp", count);
    set_integer(maker, "base_bits", base);
    set_hints(maker);
}

/* ---------------------------------------------------------------- gathers */

static void make_take_along_axis(struct maker *maker)
{
    int64_t shape[LAYOUT_RANK], a[LAYOUT_RANK], idx[LAYOUT_RANK];
    uint32_t rank = base_shape(maker, 1, MAX_RANK, shape), axis = choose_axis(maker, rank);
    memcpy(a, shape, sizeof a);
    memcpy(idx, shape, sizeof idx);
    if (choose(maker, 2) && shape[axis] > 0) /* otherwise a can be out */
        a[axis] = maker->any ? random_between(maker->random, 1, 9) : shape[axis] + 1;
    int64_t repeats = choose(maker, 3);
    for (uint32_t i = 0; i < rank; i++) {
        bool broadcasts = !maker->any || random_once_in(maker->random, 2);
        if (i != axis && repeats == 1 && broadcasts)
            a[i] = 1;
        if (repeats == 2 && broadcasts && (i != axis || random_once_in(maker->random, 2)))
            idx[i] = 1;
    }
    set_tensor(maker, "a", rank, a);
    set_tensor(maker, "out", rank, shape);
    set_between(set_tensor(maker, "idx", rank, idx), -a[axis], a[axis] - 1);
    set_integer(maker, "axis", spelled_axis(maker, axis, rank));
}

static void make_permute(struct maker *maker)
{
    int64_t shape[LAYOUT_RANK];
    uint32_t rank = base_shape(maker, 2, MAX_RANK, shape);
    uint32_t rows = choose_axis(maker, rank), moved = 1 - rows;
    if (maker->any)
        moved = (rows + (uint32_t)random_between(maker->random, 1, rank - 1)) % rank;
    set_tensor(maker, "a", rank, shape);
    set_tensor(maker, "out", rank, shape);
    set_between(set_tensor(maker, "perms", SHAPE(shape[rows], shape[moved])), 0, shape[moved] - 1);
    set_integer(maker, "elementwise_axis", spelled_axis(maker, rows, rank));
    set_integer(maker, "perm_axis", spelled_axis(maker, moved, rank));
}

static void make_pad_or_repeat(struct maker *maker)
{
    bool pads = parameter_of(maker, "pad") >= 0;
    int64_t shape[LAYOUT_RANK];
    uint32_t rank = base_shape(maker, 1, MAX_RANK, shape), axis = choose_axis(maker, rank);
    /* Pads by 3 zeros or none; repeats twice or once. With none or once, out has a's shape. */
    int64_t amount = pads ? 3 - 3 * choose(maker, 2) : 2 - choose(maker, 2);
    if (maker->any)
        amount = random_between(maker->random, 0, 4);
    set_tensor(maker, "a", rank, shape);
    shape[axis] = pads ? shape[axis] + amount : shape[axis] * amount;
    set_tensor(maker, "out", rank, shape);
    set_integer(maker, "pad", amount);
    set_integer(maker, "repeats", amount);
    set_integer(maker, "axis", spelled_axis(maker, axis, rank));
}

/* ---------------------------------------------------------------- memory */

/* Parameters that a form lacks are skipped. */
static void make_memory(struct maker *maker)
{
    int64_t shape[LAYOUT_RANK];
    const uint32_t rank = base_shape(maker, 0, MAX_RANK, shape);
    const struct layout layout = layout_of_shape(rank, shape);
    char text[SHAPE_TEXT_SIZE];
    set_tensor(maker, "a", rank, shape);
    set_tensor(maker, "t", rank, shape);
    set_text(maker, "none", "none");
    set_text(maker, "shape", "%s", layout_shape_text(&layout, text));
    set_text(maker, "dtype", ":%s", dtype_name(maker->dtypes->value));
    set_integer(maker, "v", random_value(maker->random, maker->dtypes->value));
}

/* ---------------------------------------------------------------- all of them */

/* Operations with kernels that are not elementwise. many_moduli: the number of moduli matters most,
 * so one more size tests it. reshapes: the output has an input's shape only by chance. */
static const struct traits {
    void (*make)(struct maker *maker);
    bool many_moduli, reshapes;
} traits[OPERATION_COUNT] = {
    [OPERATION_DEVICE_TO_HOST] = {.make = make_memory},
    [OPERATION_ZEROS] = {.make = make_memory},
    [OPERATION_SET_CONST_VAL] = {.make = make_memory},
    [OPERATION_CONTIGUOUS] = {.make = make_memory},
    [OPERATION_AXIS_MODSUM] = {.make = make_axis_modsum, .reshapes = true},
    [OPERATION_MODMUL_AXIS_SUM] = {.make = make_modmul_axis_sum, .reshapes = true},
    [OPERATION_NTT] = {.make = make_transform, .many_moduli = true},
    [OPERATION_INTT] = {.make = make_transform, .many_moduli = true},
    [OPERATION_G_DECOMP] = {.make = make_digits, .reshapes = true},
    [OPERATION_G_DECOMP_FULL_Q] = {make_digits_full_q, true, true},
    [OPERATION_TAKE_ALONG_AXIS] = {.make = make_take_along_axis},
    [OPERATION_PERMUTE] = {.make = make_permute},
    [OPERATION_PAD_SINGLE_AXIS] = {.make = make_pad_or_repeat},
    [OPERATION_REPEAT_INTERLEAVE] = {.make = make_pad_or_repeat},
};

static bool is_elementwise(const struct form *form)
{
    return strcmp(form->operation->family, "elementwise") == 0;
}

bool problem_is_made(const struct form *form)
{
    return is_elementwise(form) || traits[form_id(form)].make;
}

bool problem_has_many_moduli(const struct form *form)
{
    return traits[form_id(form)].many_moduli;
}

bool problem_reshapes(const struct form *form)
{
    return form_id(form) < OPERATION_COUNT && traits[form_id(form)].reshapes;
}

void problem_make(struct problem *problem, const struct form *form,
                  const struct problem_dtypes *dtypes, int64_t n, int64_t k, uint64_t variant,
                  struct random *random)
{
    struct maker maker = {problem, dtypes, random, k == ANY_SHAPE, n, k, variant};
    *problem = (struct problem){.form = form, .out = -1};
    for (uint32_t i = 0; i < form->parameter_count; i++)
        if (form->parameters[i].kind == HEALCL_PARAMETER_OUT)
            problem->out = (int)i;
    (is_elementwise(form) ? make_elementwise : traits[form_id(form)].make)(&maker);
}

/* ---------------------------------------------------------------- dtypes */

int problem_also(const struct form *form)
{
    const char *also = form->operation->dtypes.also;
    return also ? form_parameter(form, also) : -1;
}

bool problem_has_index(const struct form *form)
{
    for (uint32_t i = 0; i < form->parameter_count; i++)
        if (is_index(&form->parameters[i]))
            return true;
    return false;
}

bool problem_accepts(const struct form *form, const struct problem_dtypes *dtypes)
{
    const struct dtype_rule *rule = &form->operation->dtypes;
    int also = problem_also(form);
    return (rule->values >> dtypes->value & 1) &&
           !(problem_has_index(form) && dtypes->index == DTYPE_INT8) &&
           (also < 0 || dtype_rule_allows(rule, rule->also, dtypes->value, dtypes->also));
}

/* ---------------------------------------------------------------- contents */

bool problem_is_free(const struct problem_tensor *tensor)
{
    return tensor->contents <= CONTENTS_TAME;
}

/* Moduli are of all kinds, or all below 2^62, or all at least 2^62, because kernels treat these
 * cases differently. */
static int64_t fill_value(const struct problem_tensor *tensor, struct random *random, int64_t kind)
{
    const int64_t top = (int64_t)1 << 62;
    int64_t value;
    switch (tensor->contents) {
    case CONTENTS_MODULI:
        value = random_modulus(random, tensor->dtype);
        if (kind > 0)
            value = kind == 1 ? value % (top - 1) + 1 : value | top;
        return value;
    case CONTENTS_BETWEEN:
    case CONTENTS_AROUND: /* indices of an empty axis are not read */
        return random_between(random, tensor->low,
                              tensor->high < tensor->low ? tensor->low : tensor->high);
    case CONTENTS_TAME: return random_value(random, tensor->dtype) & tensor->high;
    default: return random_value(random, tensor->dtype);
    }
}

void problem_fill(const struct problem_tensor *tensor, struct random *random, void *array)
{
    const enum dtype dtype = tensor->dtype;
    const bool is_tame = tensor->contents == CONTENTS_TAME;
    const int64_t count = layout_elements(&tensor->shape);
    const int64_t kind = is_tame ? random_between(random, 1, 2)
                         : tensor->contents == CONTENTS_MODULI && dtype == DTYPE_INT64
                             ? random_between(random, 0, 2)
                             : 0;
    if (tensor->contents == CONTENTS_COPRIME)
        random_fill_coprime(random, dtype, count, array);
    else if (tensor->contents == CONTENTS_PERMUTATION)
        random_fill_permutation(random, dtype, count, array);
    else
        for (int64_t i = 0; i < count; i++)
            dtype_store(dtype, array, i, fill_value(tensor, random, kind));
    for (int i = 0; i < 3 && is_tame && kind == 1 && count > 0; i++)
        dtype_store(dtype, array, random_between(random, 0, count - 1),
                    random_value(random, dtype));
}

void problem_put(struct writer *text, const struct problem *problem)
{
    const struct form *form = problem->form;
    writer_put(text, "%s(", form->name);
    for (uint32_t i = 0; i < form->parameter_count; i++) {
        const struct problem_tensor *tensor = &problem->tensors[i];
        char shape[SHAPE_TEXT_SIZE];
        writer_put(text, "%s%s ", i ? ", " : "", form->parameters[i].name);
        if (tensor->present)
            writer_put(text, "%s %s", dtype_name(tensor->dtype),
                       layout_shape_text(&tensor->shape, shape));
        else
            writer_put(text, "%s", problem->text[i]);
    }
    writer_put(text, ")\n");
}
