/* The signatures of steps.def against the reference: a step that is cut anywhere along any of its
 * axes, part by part, makes what the whole step makes. So batches, audits, slices for limited
 * memory and failing cases may cut it so. And a step that is widened makes what it makes request by
 * request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/axes.h"
#include "plan/widen.h"
#include "reference/reference.h"
#include "tools/random.h"

enum { FIXTURE_STORAGES = 1024, FIXTURE_TENSORS = 4096 };

struct fixture {
    struct plan plan;
    struct reference *reference;
    struct healcl_error error;
    struct storage storages[FIXTURE_STORAGES];
    struct tensor tensors[FIXTURE_TENSORS];
    uint32_t tensor_count;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->plan.storage_count = FIXTURE_STORAGES;
    assert_int_equal(reference_create(&f->plan, &f->reference, &f->error), HEALCL_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    reference_free(f->reference);
    healcl_error_clear(&f->error);
    free(f);
    return 0;
}

/* Another view of a tensor's storage. */
static struct tensor *view(struct fixture *f, const struct tensor *of, struct layout layout)
{
    assert_true(f->tensor_count < FIXTURE_TENSORS);
    struct tensor *tensor = &f->tensors[f->tensor_count++];
    tensor->storage = of->storage;
    tensor->layout = layout;
    return tensor;
}

/* A tensor in C order that is its whole storage, all 0. */
static struct tensor *zeros(struct fixture *f, enum dtype dtype, uint32_t rank,
                            const int64_t *shape)
{
    struct layout layout;
    assert_int_equal(layout_init(&layout, rank, shape, dtype_size(dtype), &f->error), HEALCL_OK);
    uint32_t id = 0;
    while (id < FIXTURE_STORAGES && f->storages[id].origin)
        id++;
    assert_true(id < FIXTURE_STORAGES);
    static const struct origin made = {.name = "test"};
    struct storage *storage = &f->storages[id];
    *storage = (struct storage){
        .id = id, .dtype = dtype, .elements = layout_elements(&layout), .origin = &made};
    struct tensor source = {.storage = storage};
    return view(f, &source, layout);
}

/* The C-order positions of a tensor get these values. */
static void put(struct fixture *f, const struct tensor *tensor, const int64_t *values)
{
    void *bytes;
    assert_int_equal(reference_memory(f->reference, tensor->storage, &bytes, &f->error), HEALCL_OK);
    const struct layout *layouts[] = {&tensor->layout};
    struct walk walk;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk)) {
        assert_true(dtype_holds(tensor->storage->dtype, *values));
        dtype_store(tensor->storage->dtype, bytes, walk.position[0], *values++);
    }
}

static struct tensor *filled(struct fixture *f, enum dtype dtype, uint32_t rank,
                             const int64_t *shape, const int64_t *values)
{
    struct tensor *tensor = zeros(f, dtype, rank, shape);
    put(f, tensor, values);
    return tensor;
}

/* The elements of a tensor in C order. */
static void get(struct fixture *f, const struct tensor *tensor, int64_t *values)
{
    int64_t count = layout_elements(&tensor->layout);
    void *packed = malloc((size_t)count * 8 + 1);
    assert_non_null(packed);
    assert_int_equal(reference_read(f->reference, tensor, packed, &f->error), HEALCL_OK);
    for (int64_t i = 0; i < count; i++)
        values[i] = dtype_load(tensor->storage->dtype, packed, i);
    free(packed);
}

static void expect(struct fixture *f, const struct tensor *tensor, const int64_t *values)
{
    int64_t count = layout_elements(&tensor->layout);
    int64_t *got = malloc((size_t)count * sizeof *got + 1);
    assert_non_null(got);
    get(f, tensor, got);
    for (int64_t i = 0; i < count; i++)
        if (got[i] != values[i])
            fail_msg("element %lld is %lld, not %lld", (long long)i, (long long)got[i],
                     (long long)values[i]);
    free(got);
}

/* Shapes and values as literals: SHAPE(2, 3) is the rank and the sizes. */
#define VALUES(...) ((const int64_t[]){__VA_ARGS__})
#define SHAPE(...) \
    (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), VALUES(__VA_ARGS__)

static struct step new_step(enum step_kind kind, const struct tensor *out)
{
    static struct origin origin = {.name = ""};
    static const struct origins origins = {.count = 1, .of = &origin};
    return (struct step){.kind = kind, .origins = &origins, .out = out};
}

static void run_step(struct fixture *f, const struct step *step)
{
    if (reference_step(f->reference, step, &f->error) != HEALCL_OK)
        fail_msg("refused: %s", f->error.message);
}

enum { INPUT_MOST = 4096, MODULI = 2, N = 8 };

static struct random seed = {0x32};

static int64_t below(int64_t limit)
{
    return (int64_t)(random_bits(&seed) % (uint64_t)limit);
}

/* A tensor in C order of values in [low, low + size), or of any where size is 0. */
static struct tensor *some(struct fixture *f, int64_t low, int64_t size, uint32_t rank,
                           const int64_t *shape)
{
    int64_t values[INPUT_MOST];
    struct tensor *tensor = zeros(f, DTYPE_INT64, rank, shape);
    assert_true(layout_elements(&tensor->layout) <= INPUT_MOST);
    for (int64_t i = 0; i < layout_elements(&tensor->layout); i++)
        values[i] = size > 0 ? low + below(size) : random_value(&seed, DTYPE_INT64);
    put(f, tensor, values);
    return tensor;
}

static struct tensor *any(struct fixture *f, uint32_t rank, const int64_t *shape)
{
    return some(f, 0, 0, rank, shape);
}

/* Different moduli of up to 63 bits, which have no factor in common. */
static struct tensor *moduli(struct fixture *f)
{
    return filled(f, DTYPE_INT64, SHAPE(MODULI), VALUES(INT64_MAX, (INT64_C(1) << 62) - 1));
}

static struct tensor *permutation(struct fixture *f)
{
    int64_t values[N];
    for (int64_t i = 0; i < N; i++) {
        const int64_t j = below(i + 1);
        values[i] = values[j];
        values[j] = i;
    }
    return filled(f, DTYPE_INT64, SHAPE(N), values);
}

/* ---------------------------------------------------------------- cutting */

/* Runs a part of a step: of the axes with a letter the elements from start on. */
static void run_part(struct fixture *f, const struct step *step, char letter, int64_t start,
                     int64_t size)
{
    struct step_axes axes;
    struct step part = *step;
    struct tensor views[STEP_OPERANDS];
    step_axes(step, &axes);
    for (int i = 0; i < STEP_OPERANDS; i++) {
        if (!step->operands[i])
            continue;
        views[i] = *step->operands[i];
        const int axis = step_axis(&axes, i, letter);
        if (axis != NO_AXIS)
            views[i].layout = layout_narrow(&views[i].layout, (uint32_t)axis, start, size);
        if (i == STEP_OUT)
            part.out = &views[i];
        else
            part.in[i] = &views[i];
    }
    run_step(f, &part);
}

/* Cuts a step in two along a letter, and compares. before: what out holds. */
static void expect_cut(struct fixture *f, const struct step *step, char letter, int64_t size,
                       const int64_t *before, const int64_t *whole)
{
    const int64_t first = size > 1 ? 1 + below(size - 1) : size;
    put(f, step->out, before);
    run_part(f, step, letter, 0, first);
    if (first < size)
        run_part(f, step, letter, first, size - first);
    expect(f, step->out, whole);
}

/* Cuts a step along each of its letters. Returns how many there are. */
static int cut_along_all(struct fixture *f, const struct step *step)
{
    int64_t before[INPUT_MOST], whole[INPUT_MOST];
    struct step_axes axes;
    char done[AXIS_LETTERS] = "";
    get(f, step->out, before);
    run_step(f, step);
    get(f, step->out, whole);
    step_axes(step, &axes);
    int letters = 0;
    for (int i = 0; i < STEP_OPERANDS; i++)
        for (uint32_t axis = 0; axes.names[i][axis]; axis++) {
            const char letter = axes.names[i][axis];
            const bool summed = step_axis(&axes, STEP_OUT, letter) == NO_AXIS;
            if (letter == '*' || strchr(done, letter) || (summed && !step_traits[step->kind].adds))
                continue;
            done[letters++] = letter;
            expect_cut(f, step, letter, step->operands[i]->layout.shape[axis], before, whole);
        }
    return letters;
}

/* ---------------------------------------------------------------- widening */

enum { BATCH = 3 };

/* As an operand, BATCH times: its values, turned by one place from each request to the next. */
static struct tensor *repeated(struct fixture *f, const struct tensor *tensor)
{
    int64_t values[INPUT_MOST], turned[INPUT_MOST];
    const int64_t elements = tensor->storage->elements;
    const struct layout flat = layout_of_shape(1, &elements);
    struct tensor *all = zeros(f, DTYPE_INT64, SHAPE(BATCH * elements));
    get(f, view(f, tensor, flat), values);
    for (int64_t i = 0; i < BATCH * elements; i++)
        turned[i] = values[(i + i / elements) % elements];
    put(f, all, turned);
    return view(f, all, tensor->layout);
}

static struct step with_views(struct fixture *f, const struct step *step,
                              const struct layout *views)
{
    struct step changed = *step;
    for (int i = 0; i < STEP_OPERANDS; i++)
        if (step->operands[i])
            *(i == STEP_OUT ? &changed.out : &changed.in[i]) = view(f, step->operands[i], views[i]);
    return changed;
}

static void run_requests(struct fixture *f, const struct step *step, const int64_t *distance)
{
    for (int64_t request = 0; request < BATCH; request++) {
        struct layout views[STEP_OPERANDS];
        for (int i = 0; i < STEP_OPERANDS; i++)
            if (step->operands[i]) {
                views[i] = step->operands[i]->layout;
                views[i].offset += request * distance[i];
            }
        const struct step one = with_views(f, step, views);
        run_step(f, &one);
    }
}

/* Bit i of mask: operand i differs from request to request; out does. Returns whether one step can
 * do all of them. */
static bool expect_widened(struct fixture *f, const struct step *step, uint32_t mask)
{
    int64_t distance[STEP_OPERANDS] = {0}, before[INPUT_MOST], expected[INPUT_MOST];
    struct layout views[STEP_OPERANDS];
    struct step base = *step;
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step->operands[i];
        if (!tensor || (i != STEP_OUT && !(mask >> i & 1)))
            continue;
        distance[i] = tensor->storage->elements;
        *(i == STEP_OUT ? &base.out : &base.in[i]) = repeated(f, tensor);
    }
    const struct layout flat = layout_of_shape(1, &base.out->storage->elements);
    const struct tensor *all = view(f, base.out, flat);
    get(f, all, before);
    run_requests(f, &base, distance);
    get(f, all, expected);
    struct step widened = base;
    if (!step_widen(&base, BATCH, distance, views, widened.value))
        return false;
    widened = with_views(f, &widened, views);
    put(f, all, before);
    run_step(f, &widened);
    expect(f, all, expected);
    put(f, all, before);
    cut_along_all(f, &widened);
    return true;
}

/* Cuts a step, and widens it over some inputs at a time. Returns how many letters there are. */
static int expect_cuts(struct fixture *f, const struct step *step)
{
    int64_t before[INPUT_MOST];
    get(f, step->out, before);
    const int letters = cut_along_all(f, step);
    put(f, step->out, before);
    for (int i = 0; i < 4; i++)
        expect_widened(f, step, (uint32_t)below(1 << STEP_INPUTS));
    /* Requests usually supply the values, not the moduli, nor what belongs to those. */
    assert_true(expect_widened(f, step, 1));
    put(f, step->out, before);
    return letters;
}

/* ---------------------------------------------------------------- kinds */

static struct step step_of(enum step_kind kind, const struct tensor *out)
{
    struct step step = new_step(kind, out);
    for (int i = 0; i < STEP_INPUTS; i++)
        step.arguments[i].parameter = 1; /* nobody is to look at them */
    return step;
}

static void elementwise(void **state)
{
    struct fixture *f = *state;
    static const enum step_kind kinds[] = {STEP_FILL,   STEP_COPY, STEP_ABS,   STEP_MODMUL,
                                           STEP_MODSUM, STEP_MOD,  STEP_MODNEG};
    const struct tensor *a = any(f, SHAPE(3, 4, 2)), *b = any(f, SHAPE(3, 4, 2));
    const struct tensor *p = some(f, 1, INT64_MAX, SHAPE(3, 4, 2)), *out = any(f, SHAPE(3, 4, 2));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct step step = step_of(kinds[i], out);
        const bool has_moduli = step_moduli(&step) != NO_INPUT;
        step.value[0] = -5;
        step.in[0] = kinds[i] == STEP_FILL ? NULL : a;
        step.in[1] = kinds[i] == STEP_MODMUL || kinds[i] == STEP_MODSUM ? b : NULL;
        step.in[2] = has_moduli ? p : NULL;
        assert_int_equal(expect_cuts(f, &step), 3);
    }
}

static void chains(void **state)
{
    struct fixture *f = *state;
    struct step step = step_of(STEP_CHAIN, any(f, SHAPE(3, 2)));
    step.in[0] = any(f, SHAPE(3, 2));
    step.in[1] = any(f, SHAPE(3, 2));
    step.in[2] = some(f, 1, INT64_MAX, SHAPE(3, 2));
    step.in[3] = any(f, SHAPE(3, 2));
    for (int i = 0; i < 16; i++) {
        step.value[0] = STEP_MODMUL + i / 4;
        step.value[1] = STEP_MODMUL + i % 4;
        assert_int_equal(expect_cuts(f, &step), 2);
    }
}

static void sums(void **state)
{
    struct fixture *f = *state;
    const struct tensor *q = moduli(f);
    for (int64_t axis = 0; axis < 2; axis++) {
        struct step step = step_of(STEP_AXIS_MODSUM, any(f, SHAPE(3, MODULI)));
        struct layout each = step.out->layout; /* of out's shape, repeated */
        each.stride[0] = 0;
        step.value[0] = axis;
        step.in[0] = axis == 0 ? any(f, SHAPE(5, 3, MODULI)) : any(f, SHAPE(3, 5, MODULI));
        step.in[1] = view(f, q, each);
        assert_int_equal(expect_cuts(f, &step), 2);
    }
}

static void sums_of_products(void **state)
{
    struct fixture *f = *state;
    const struct tensor *a = any(f, SHAPE(3, 5, MODULI, N)), *out = any(f, SHAPE(3, MODULI, N));
    const struct tensor *shared = any(f, SHAPE(5, MODULI, N)), *q = moduli(f);
    const struct tensor *own = any(f, SHAPE(3, 5, MODULI, N)), *perm = permutation(f);
    for (int i = 0; i < 4; i++) {
        struct step step = step_of(STEP_MODMUL_AXIS_SUM, out);
        step.in[0] = a;
        step.in[1] = i & 1 ? own : shared;
        step.in[2] = q;
        step.in[3] = i & 2 ? perm : NULL;
        assert_int_equal(expect_cuts(f, &step), i & 2 ? 3 : 4);
    }
}

/* Several requests have their own factors, or share a. */
static void sums_of_products_of_batches(void **state)
{
    struct fixture *f = *state;
    const struct tensor *a = any(f, SHAPE(2, 3, 5, MODULI, N)), *perm = permutation(f);
    const struct tensor *out = any(f, SHAPE(2, 3, MODULI, N)), *b = any(f, SHAPE(5, MODULI, N));
    const struct tensor *own = any(f, SHAPE(2, 3, 5, MODULI, N)), *q = moduli(f);
    struct layout shared = a->layout;
    shared.stride[0] = shared.stride[1] = 0;
    for (int i = 0; i < 4; i++) {
        struct step step = step_of(STEP_MODMUL_AXIS_SUM, out);
        step.in[0] = a;
        step.in[1] = i & 1 ? own : view(f, b, shared);
        step.in[2] = q;
        step.in[3] = i & 2 ? perm : NULL;
        assert_int_equal(cut_along_all(f, &step), i & 2 ? 4 : 5);
    }
}

static void transforms(void **state)
{
    struct fixture *f = *state;
    const struct tensor *a = any(f, SHAPE(2, 3, MODULI, N)), *out = any(f, SHAPE(2, 3, MODULI, N));
    const struct tensor *q = moduli(f), *twiddles = any(f, SHAPE(MODULI, N));
    for (int inverse = 0; inverse < 2; inverse++) {
        struct step step = step_of(inverse ? STEP_INTT : STEP_NTT, out);
        step.in[0] = a;
        step.in[1] = q;
        step.in[2] = twiddles;
        step.in[3] = permutation(f);
        step.in[4] = inverse ? any(f, SHAPE(MODULI)) : NULL;
        step.in[5] = inverse ? any(f, SHAPE(MODULI)) : NULL;
        assert_int_equal(expect_cuts(f, &step), 3);
    }
}

static void digits(void **state)
{
    struct fixture *f = *state;
    struct step step = step_of(STEP_DIGITS, any(f, SHAPE(3, 2, 16)));
    step.value[0] = 4;
    step.in[0] = any(f, SHAPE(3, 2));
    assert_int_equal(expect_cuts(f, &step), 2);
    struct step full = step_of(STEP_DIGITS_FULL_Q, any(f, SHAPE(3, 17, 4)));
    full.value[0] = 8;
    full.in[0] = any(f, SHAPE(3, MODULI, 4));
    full.in[1] = moduli(f);
    assert_int_equal(expect_cuts(f, &full), 2);
}

static void gathers(void **state)
{
    struct fixture *f = *state;
    const struct tensor *tall = any(f, SHAPE(7, 2)), *long_rows = any(f, SHAPE(5, 7));
    for (int64_t axis = 0; axis < 2; axis++) {
        struct step step = step_of(STEP_GATHER, any(f, SHAPE(5, 2)));
        step.value[0] = axis;
        step.in[0] = axis == 0 ? tall : long_rows;
        step.in[1] = some(f, 0, 7, SHAPE(5, 2));
        assert_int_equal(expect_cuts(f, &step), 2);
    }
}

int main(void)
{
#define AXES_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        AXES_TEST(elementwise),
        AXES_TEST(chains),
        AXES_TEST(sums),
        AXES_TEST(sums_of_products),
        AXES_TEST(sums_of_products_of_batches),
        AXES_TEST(transforms),
        AXES_TEST(digits),
        AXES_TEST(gathers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
