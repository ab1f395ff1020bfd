/* The path of a cut axis: in views, against a count of their elements one by one; through scripts,
 * storage by storage, forward and back. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "helper_script.h"
#include "plan/split_axes.h"
#include "tools/random.h"

static struct healcl_error error;

/* ---------------------------------------------------------------- one view */

enum { RANK_MOST = 5, VIEWS = 60000, EACH = 2 /* axis of the input */ };

static struct random draws = {0x5a1};

static int64_t between(int64_t low, int64_t high)
{
    return random_between(&draws, low, high);
}

/* An upload, a step with a view of it, and one with another storage. */
struct copied {
    struct storage storages[3];
    struct tensor input, view, out, other;
    struct origin origin;
    struct origins origins;
    struct step steps[3];
    struct plan plan;
};

static void make_copied(struct copied *copied, enum step_kind kind, const struct layout *input,
                        const struct layout *view)
{
    memset(copied, 0, sizeof *copied);
    copied->storages[0] =
        (struct storage){.dtype = DTYPE_INT64, .elements = layout_elements(input)};
    copied->storages[1] =
        (struct storage){.id = 1, .dtype = DTYPE_INT64, .elements = layout_elements(view)};
    copied->storages[2] = (struct storage){.id = 2, .dtype = DTYPE_INT64, .elements = 1};
    copied->other = (struct tensor){.storage = &copied->storages[2]};
    copied->input = (struct tensor){&copied->storages[0], *input};
    copied->view = (struct tensor){&copied->storages[0], *view};
    copied->out = (struct tensor){&copied->storages[1], layout_packed(view)};
    copied->origin = (struct origin){.entry = 1, .name = "copy", .form = forms};
    copied->origins = (struct origins){.count = 1, .of = &copied->origin};
    copied->steps[0] =
        (struct step){.kind = STEP_UPLOAD, .origins = &copied->origins, .out = &copied->input};
    copied->steps[1] = (struct step){
        .kind = kind, .origins = &copied->origins, .out = &copied->out, .in = {&copied->view}};
    /* Nothing may look at these. */
    for (uint32_t axis = view->rank; axis < LAYOUT_RANK; axis++)
        copied->view.layout.shape[axis] = copied->view.layout.stride[axis] = 2;
    copied->steps[2] =
        (struct step){.kind = STEP_FILL, .origins = &copied->origins, .out = &copied->other};
    for (int i = 1; i < STEP_INPUTS; i++)
        copied->steps[1].arguments[i].parameter = copied->steps[2].arguments[i].parameter = 1;
    copied->plan = (struct plan){.steps = copied->steps, .step_count = 3, .storage_count = 3};
}

/* Whether index e / unit % count of each element e of a view is i / each % count of its place i
 * along an axis, which has all of them. */
static bool runs_along(const struct layout *view, int64_t unit, int64_t count, uint32_t axis)
{
    const int64_t each = view->stride[axis] > 0 ? unit / view->stride[axis] : 0;
    struct walk walk;
    if (each == 0 || each * view->stride[axis] != unit || view->shape[axis] % (each * count) != 0)
        return false;
    for (walk_init(&walk, 1, &view); walk.left > 0; walk_next(&walk))
        if (walk.position[0] / unit % count != walk.index[axis] / each % count)
            return false;
    return true;
}

static bool runs(const struct layout *view, int64_t unit, int64_t count)
{
    for (uint32_t axis = 0; axis < view->rank; axis++)
        if (runs_along(view, unit, count, axis))
            return true;
    return false;
}

/* How many indices an axis of a size is dealt out by: all, or with some of them for one; else by
 * some again and again, as slices want it. */
static int64_t expected_count(const struct layout *view, int64_t unit, int64_t size, bool *is_slice)
{
    *is_slice = false;
    for (int64_t each = 1; each < size; each++)
        if (size % each == 0 && runs(view, unit * each, size / each))
            return size / each;
    *is_slice = true;
    for (int64_t count = size; count > 1; count--)
        if (size % count == 0 && runs(view, unit, count))
            return count;
    return 1;
}

/* What is refused though it could be split: slices of an axis that has become two, and axes of
 * which some elements belong to a part of an index. */
static bool is_beyond(const struct layout *view, int64_t unit, int64_t size, bool is_slice)
{
    int longer = 0;
    for (uint32_t axis = 0; axis < view->rank; axis++) {
        const int64_t stride = view->stride[axis];
        if (view->shape[axis] == 1 || stride % (unit * size) == 0)
            continue;
        longer += view->shape[axis] * stride > unit;
        if (stride < unit ? unit % stride != 0 : stride % unit != 0 || size % (stride / unit) != 0)
            return true;
    }
    return is_slice && longer > 1;
}

/* Joins an axis with the next one, where its elements go on there. */
static void join_axes(struct layout *view, uint32_t axis)
{
    if (axis + 1 == view->rank ||
        view->stride[axis] != view->shape[axis + 1] * view->stride[axis + 1])
        return;
    view->shape[axis + 1] *= view->shape[axis];
    *view = layout_drop_axis(view, axis);
}

/* Joins, slices, splits, moves or repeats an axis, or takes each second of its elements. */
static void change_view(struct layout *view)
{
    const uint32_t axis = (uint32_t)between(0, view->rank - 1);
    if (between(0, 2) == 0) {
        join_axes(view, axis);
        return;
    }
    const int64_t size = view->shape[axis], part = between(1, size);
    if (view->rank < RANK_MOST && size % part == 0 && between(0, 1)) {
        *view = layout_insert_axis(view, axis + 1, part, view->stride[axis]);
        view->shape[axis] = size / part;
        view->stride[axis] *= part;
    } else if (between(0, 1)) {
        *view = layout_move_axis(view, axis, (uint32_t)between(0, view->rank - 1));
    } else if (between(0, 1)) {
        *view = layout_narrow(view, axis, between(0, size - part), part);
    } else if (between(0, 1)) {
        view->shape[axis] = (size + 1) / 2;
        view->stride[axis] *= 2;
    } else if (view->rank < RANK_MOST) {
        *view = layout_insert_axis(view, axis, between(1, 2), 0);
    }
}

/* So many times all indices, but from any element on, as one axis. */
static struct layout some_periods(const struct layout *input)
{
    const int64_t all = layout_elements(input), period = input->stride[0];
    const int64_t elements = between(1, input->shape[0]) * period;
    struct layout view = layout_of_shape(1, &elements);
    view.offset = between(0, all - elements);
    return view;
}

/* Each element that is copied has the same index there. */
static void expect_units(const struct copied *copied, const struct split_axes *axes, int64_t each)
{
    const struct layout *layouts[] = {&copied->view.layout, &copied->out.layout};
    struct walk walk;
    assert_int_equal(axes->units[0] % each, 0);
    assert_true(copied->storages[0].elements % (axes->units[0] * axes->count) == 0);
    for (walk_init(&walk, 2, layouts); walk.left > 0; walk_next(&walk))
        assert_int_equal(walk.position[0] / axes->units[0] % axes->count,
                         walk.position[1] / axes->units[1] % axes->count);
}

/* Returns whether the axis is split. */
static bool expect_view(const struct layout *input, const struct layout *view, uint32_t ranks)
{
    const int64_t size = input->shape[1], unit = input->shape[EACH];
    const struct healcl_split split = {0, 1, 0, ranks};
    struct copied copied;
    struct split_axes axes;
    bool is_slice;
    make_copied(&copied, STEP_COPY, input, view);
    const int64_t count = expected_count(view, unit, size, &is_slice);
    const enum healcl_status status =
        split_axes_find(&copied.plan, copied.steps, &split, &axes, NULL);
    if (status != HEALCL_OK) {
        assert_int_equal(status, size < ranks ? HEALCL_USAGE : HEALCL_REFUSED);
        assert_null(axes.units);
        assert_true(count < ranks || is_beyond(view, unit, size, is_slice));
        return false;
    }
    assert_int_equal(axes.count, count);
    assert_int_equal(axes.units[2], 0);
    assert_true(count >= ranks);
    expect_units(&copied, &axes, unit);
    split_axes_release(&axes);
    assert_null(axes.units);
    return true;
}

static void views_are_cut(void **state)
{
    (void)state;
    int splits = 0;
    for (int i = 0; i < VIEWS; i++) {
        const int64_t shape[] = {between(1, 3), between(2, 12), between(1, 4)};
        const struct layout input = layout_of_shape(3, shape);
        struct layout view = between(0, 3) ? input : some_periods(&input);
        for (int64_t changes = between(0, 5); changes > 0; changes--)
            change_view(&view);
        splits += expect_view(&input, &view, (uint32_t)between(2, 4));
    }
    printf("%d of %d views are cut\n", splits, VIEWS);
    assert_true(splits > VIEWS / 2 && splits < VIEWS);
}

/* A vendor's operation has no argument of healcl's, and takes whole tensors. */
static void operations_of_vendors_are_refused(void **state)
{
    (void)state;
    const struct layout layout = layout_of_shape(2, (int64_t[]){4, 3});
    const struct healcl_split split = {0, 0, 0, 2};
    struct copied copied;
    struct split_axes axes;
    make_copied(&copied, STEP_VENDOR, &layout, &layout);
    assert_int_equal(split_axes_find(&copied.plan, copied.steps, &split, &axes, &error),
                     HEALCL_REFUSED);
    assert_string_equal(error.message, "entry 1 (copy): mixes elements along the split axis");
    assert_int_equal(error.argument, -1);
    healcl_error_clear(&error);
}

/* ---------------------------------------------------------------- scripts */

/* A script's storages in the order of their creation: the number of the axis's indices, and each
 * storage's unit, 0 if it is whole; or the error. */
struct axes_case {
    const char *lines, *expected;
    size_t input;
    uint32_t axis, ranks;
};

static const struct step *upload_of(const struct plan *plan, size_t input)
{
    const struct step *step = plan->steps;
    for (; step->kind != STEP_UPLOAD || input > 0; step++)
        input -= step->kind == STEP_UPLOAD;
    return step;
}

/* Returns whether it becomes so. */
static bool expect_axes(const struct axes_case *of)
{
    const struct healcl_split split = {of->input, of->axis, 0, of->ranks};
    struct script script = {0};
    struct split_axes axes;
    char text[1024];
    script_lines(&script, of->lines);
    script_plan(&script);
    const struct plan *plan = script.plan;
    if (split_axes_find(plan, upload_of(plan, of->input), &split, &axes, &error) == HEALCL_OK) {
        int at = snprintf(text, sizeof text, "%" PRId64 ":", axes.count);
        for (size_t i = 0; i < plan->storage_count; i++)
            if (plan->storages[i] != plan->constants.storage)
                at += snprintf(text + at, sizeof text - (size_t)at, " %" PRId64, axes.units[i]);
        assert_int_equal(axes.units[plan->constants.storage->id], 0);
        split_axes_release(&axes);
    } else {
        snprintf(text, sizeof text, "%s", error.message);
        healcl_error_clear(&error);
    }
    script_release(&script);
    if (strcmp(text, of->expected) == 0)
        return true;
    print_error("%s, input %zu axis %u:\n%s, not\n%s\n", of->lines, of->input, (unsigned)of->axis,
                text, of->expected);
    return false;
}

static void axes_run_through_scripts(void **state)
{
    static const struct axes_case cases[] = {
        /* Elementwise: what is read in parts alone is cut back to its upload. */
        {"a (4,6); b (4,6); c = empty (4,6) :int64; _modmul_ttc a b 7 c", "4: 6 6 6", 0, 0, 2},
        {"a (4,6); b (4,6); c = empty (4,6) :int64; _modmul_ttc a b 7 c", "6: 1 1 1", 1, 1, 2},
        {"a (4,6); b (6); c = empty (4,6) :int64; _modmul_ttc a b 7 c", "4: 6 0 6", 0, 0, 2},
        {"a (4,6); b (6); c = empty (4,6) :int64; _modmul_ttc a b 7 c", "6: 1 1 1", 0, 1, 2},
        {"b (4,6); a (4,6); c = empty (4,6) :int64; free c; get a", "4: 0 6 0", 1, 0, 2},
        /* b is read whole too; in two ways; the same way twice, and freed. */
        {"a (4); b (4); c = empty (4) :int64; d = empty (4) :int64; _modmul_ttc a b 7 c; abs b d",
         "4: 1 0 1 0", 0, 0, 2},
        {"b (4,4); a (4,4); c = empty (4,4) :int64; d = moveaxis b 0 1; _modsum_ttc a b 7 c;"
         "_modsum_ttc a d 7 c; _modsum_ttc a b 7 c",
         "4: 0 4 4", 1, 0, 2},
        {"b (4,4); a (4,4); c = empty (4,4) :int64; _modsum_ttc a b 7 c; _modsum_ttc b a 7 c;"
         "free b",
         "4: 4 4 4", 1, 0, 2},
        /* Back through what writes b: a step that can do it in parts, and ones that cannot. */
        {"x (4,6); b = empty (4,6) :int64; abs x b; a (4,6); _modsum_ttc a b 7 a", "4: 6 6 6", 1, 0,
         2},
        {"x (6,4); b = empty (4,6) :int64; y = moveaxis x 0 1; abs y b; a (4,6); _modsum_ttc a b 7 "
         "a",
         "4: 1 6 6", 1, 0, 2},
        {"x (1,6); y = expand x 0 4; b = empty (4,6) :int64; abs y b; a (4,6); _modsum_ttc a b 7 a",
         "4: 0 6 6", 1, 0, 2},
        {"x (2,3); b = empty (2,3,4) :int64; apply_g_decomp x 4 2 b; a (2,3,4);"
         "_modsum_ttc a b 7 a",
         "4: 0 0 1", 1, 2, 2},
        {"x (2,3); b = empty (2,3,4) :int64; apply_g_decomp x 4 2 b; a (2,3,4);"
         "_modsum_ttc a b 7 a",
         "3: 1 4 4", 1, 1, 2},
        {"x (2,6); b = empty (4,6) :int64; v = get_slice b [0:2]; w = get_slice b [2:4]; abs x v;"
         "abs x w; a (4,6); _modsum_ttc a b 7 a",
         "4: 0 0 6", 1, 0, 2},
        {"a (2,3,4); x (24); b = empty (24) :int64; abs x b; f = reshape a (24); _modsum_ttc f b 7 "
         "f",
         "3: 4 4 4", 0, 1, 2},
        {"x (3,4); i (3,4); b = empty (3,4) :int64; take_along_axis x i 0 b; a (3,4);"
         "_modsum_ttc a b 7 a",
         "3: 0 4 4 4", 2, 0, 2},
        /* Tensors that cannot be cut, or need not be, stay whole. */
        {"w (6); a (4); v = get_slice w [0:4]; c = empty (4) :int64; _modsum_ttc a v 7 c",
         "4: 0 1 1", 1, 0, 2},
        {"w (6); a (4); v = get_slice w [0:4]; abs a v",
         "entry 3 (abs): takes a part of the split axis", 1, 0, 2},
        {"w (8); a (4); v = get_slice w [0:4]; abs a v", "4: 1 1", 1, 0, 2},
        {"a (2,3,4); w (26); b = get_slice w [0:24]; f = reshape a (24); _modsum_ttc f b 7 f",
         "entry 4 (_modsum_ttc): argument 'b': takes a part of the split axis", 0, 1, 2},
        {"a (4,2); w (8); v = reshape w (2,4); u = moveaxis v 0 1; c = empty (4,2) :int64;"
         "_modsum_ttc a u 7 c",
         "4: 2 1 2", 0, 0, 2},
        {"a (4,2); c = zeros (4,2) :int64; _modsum_tcc a 3 7 c; get c", "4: 2 2", 0, 0, 2},
        {"w (8); a (4); v = get_slice w [2:6]; abs a v",
         "entry 3 (abs): takes a part of the split axis", 1, 0, 2},
        {"w = empty (4) :int64; v = get_slice w [0:1]; set_const_val v 3; a (4); abs a w",
         "entry 2 (set_const_val): takes a part of the split axis", 0, 0, 2},
        {"b = empty (4) :int64; v = get_slice b [0:1]; set_const_val v 3; a (4);"
         "_modsum_ttc a b 7 a",
         "4: 0 1", 0, 0, 2},
        {"a (2,3,4); x (24); b = empty (24) :int64; abs x b; v = reshape b (2,3,4);"
         "_modsum_ttc a v 7 a",
         "3: 4 0 0", 0, 1, 2},
        {"a (2,3,4); x (24); y (1); b = empty (24) :int64; _modsum_ttc y x 7 b;"
         "v = reshape b (2,3,4); _modsum_ttc a v 7 a",
         "3: 4 0 0 0", 0, 1, 2},
        {"a (2,3,4); x (24); b = empty (24) :int64; abs x b; f = reshape a (24);"
         "_modsum_ttc b f 7 f",
         "3: 4 4 4", 0, 1, 2},
        /* A tensor meets two of its axes. */
        {"a (4,4); b = moveaxis a 0 1; c = empty (4,4) :int64; _modmul_ttc a b 7 c",
         "entry 3 (_modmul_ttc): argument 'b': has the split axis on two of its axes", 0, 0, 2},
        {"a (2,2); b = moveaxis a 0 1; c = empty (2,2) :int64; _modsum_tcc b 0 97 c;"
         "e = reshape a (4); d = reshape c (4); _modsum_ttc d e 7 d",
         "entry 6 (_modsum_ttc): argument 'b': has the split axis on two of its axes", 0, 0, 2},
        /* Gathers and transforms mix an axis; sums are made of it. */
        {"a (3,4); i (2,4); c = empty (2,4) :int64; take_along_axis a i 0 c",
         "entry 3 (take_along_axis): argument 'a': mixes elements along the split axis", 0, 0, 2},
        {"a (3,4); i (2,4); c = empty (2,4) :int64; take_along_axis a i 0 c", "4: 1 1 1", 0, 1, 2},
        {"a (3,4); i (2,4); c = empty (2,4) :int64; take_along_axis a i 0 c", "2: 0 4 4", 1, 0, 2},
        {"a (3,5,2); q (2); c = empty (3,2) :int64; axis_modsum a 1 q c", "5: 2 0 0", 0, 1, 2},
        {"a (3,5,2); q (2); c = empty (3,2) :int64; axis_modsum a 1 q c", "3: 10 0 2", 0, 0, 2},
        {"a (3,5,2); q (2); c = empty (3,2) :int64; axis_modsum a 1 q c", "2: 1 1 1", 0, 2, 2},
        {"a (2,3,4); q (3); c = empty (2,5,4) :int64; apply_g_decomp_relative_to_full_q a q 5 2 c",
         "entry 3 (apply_g_decomp_relative_to_full_q): argument 'a': mixes elements along the "
         "split axis",
         0, 1, 2},
        {"a (2,3,4); q (3); c = empty (2,5,4) :int64; apply_g_decomp_relative_to_full_q a q 5 2 c",
         "2: 12 0 20", 0, 0, 2},
        {"a (2,3,4); q (3); c = empty (2,5,4) :int64; apply_g_decomp_relative_to_full_q a q 5 2 c",
         "entry 3 (apply_g_decomp_relative_to_full_q): argument 'a': mixes elements along the "
         "split axis",
         1, 0, 2},
        {"a (2,3,2,8); q (2); t (2,8); o (2,3,2,8); ntt a -1 none none q none none t o 0 1",
         "entry 4 (ntt): argument 'a': mixes elements along the split axis", 0, 3, 2},
        {"a (2,3,2,8); q (2); t (2,8); o (2,3,2,8); ntt a -1 none none q none none t o 0 1",
         "2: 8 1 8 8", 0, 2, 2},
        {"a (2,3,2,8); q (2); t (2,8); o (2,3,2,8); ntt a -1 none none q none none t o 0 1",
         "3: 16 0 0 16", 0, 1, 2},
        /* A sum is whole, though what follows reads it in parts. */
        {"a (4,4,3); q (3); s = empty (4,3) :int64; axis_modsum a 0 q s; d = get_slice a [:,0];"
         "_modsum_ttc d s 7 d",
         "4: 12 0 0", 0, 0, 2},
        /* Indices that go together, twice; again and again. */
        {"a (12); b = reshape a (6,2); c = reshape a (2,6); abs b b; abs c c", "2: 6", 0, 0, 2},
        {"a (12); b = reshape a (2,6); c = reshape a (6,2); abs b b; abs c c", "2: 6", 0, 0, 2},
        {"a (2,6); b = reshape a (2,2,3); abs b b", "2: 3", 0, 1, 2},
        {"a (12); c = empty (12) :int64; abs a c; b = reshape a (2,6); abs b b", "2: 6 6", 0, 0, 2},
        {"a (12); b = get_slice a [4:8]; abs b b", "4: 1", 0, 0, 4},
        {"a (12); b = reshape a (2,6); abs b b",
         "entry 0 (host_to_device): axis 0 can be split into 2 parts, too few for 3 ranks", 0, 0,
         3},
        {"a (12); b = get_slice a [1:12]; abs b b",
         "entry 2 (abs): argument 'a': takes a part of the split axis", 0, 0, 2},
        {"a (2,12)", "entry 0 (host_to_device): axis 0 has size 2, too small for 3 ranks", 0, 0, 3},
        {"a (2,12)", "2: 12", 0, 0, 2},
        {"a (2,12)", "1: 0", 0, 0, 1},
    };
    bool all = true;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        all &= expect_axes(&cases[i]);
    assert_true(all);
}

/* ---------------------------------------------------------------- long ways */

enum { ROUNDS = 64 };

/* Tensors t0 to those of a number, and copies from each to the one before it, or behind it; last
 * the one of t0 with a. */
static void put_chain(struct script *script, int count, bool is_back)
{
    char name[32], words[64];
    script_lines(script, "a (2)");
    for (int i = 0; i <= count; i++) {
        snprintf(name, sizeof name, "t%d", i);
        script_call(script, name, "empty", "(2) :int64");
    }
    for (int i = count; i > 0; i--) {
        snprintf(words, sizeof words, "t%d t%d", is_back ? i : i - 1, is_back ? i - 1 : i);
        script_call(script, NULL, "abs", words);
    }
    script_lines(script, is_back ? "_modsum_ttc a t0 7 a" : "abs a t0");
    script_plan(script);
}

/* Each round follows one copy more. */
static void rounds_have_an_end(void **state)
{
    const struct healcl_split split = {0, 0, 0, 2};
    (void)state;
    for (int count = ROUNDS - 2; count <= ROUNDS; count++) {
        struct script script = {0};
        struct split_axes axes;
        put_chain(&script, count, false);
        const enum healcl_status status =
            split_axes_find(script.plan, upload_of(script.plan, 0), &split, &axes, &error);
        assert_int_equal(status, count <= ROUNDS - 2 ? HEALCL_OK : HEALCL_REFUSED);
        if (status != HEALCL_OK) {
            assert_string_equal(error.message, "following the axis takes too many rounds");
            assert_int_equal(error.cause, HEALCL_CAUSE_LIMIT);
            healcl_error_clear(&error);
        }
        split_axes_release(&axes);
        script_release(&script);
    }
}

/* Rounds backward also end; tensors further away stay whole. */
static void rounds_back_have_an_end(void **state)
{
    const struct healcl_split split = {0, 0, 0, 2};
    struct script script = {0};
    struct split_axes axes;
    (void)state;
    put_chain(&script, ROUNDS + 2, true);
    assert_int_equal(split_axes_find(script.plan, upload_of(script.plan, 0), &split, &axes, &error),
                     HEALCL_OK);
    const size_t first = script.plan->storage_count - (ROUNDS + 3);
    for (size_t i = 0; i <= ROUNDS + 2; i++)
        assert_int_equal(axes.units[first + i], i < ROUNDS);
    split_axes_release(&axes);
    script_release(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_are_cut),
        cmocka_unit_test(operations_of_vendors_are_refused),
        cmocka_unit_test(axes_run_through_scripts),
        cmocka_unit_test(rounds_have_an_end),
        cmocka_unit_test(rounds_back_have_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
