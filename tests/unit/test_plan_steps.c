/*
 * What plan.h promises to executors, checked on the steps of many plans: the bundled transcripts,
 * and random calls of every form on random views of shared storages.
 */
#include "helper_device.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "check/coverage.h"
#include "helper_script.h"
#include "plan/axes.h"

static const uint64_t seed = 0x97a4;

/* ---------------------------------------------------------------- single steps */

static bool inside(const struct tensor *tensor)
{
    return layout_elements(&tensor->layout) == 0 ||
           (tensor->layout.offset >= 0 && layout_last(&tensor->layout) < tensor->storage->elements);
}

static void check_shape(const struct layout *layout, uint32_t rank, const int64_t *shape)
{
    assert_int_equal(layout->rank, rank);
    assert_memory_equal(layout->shape, shape, rank * sizeof *shape);
}

#define SHAPE(...)                                                        \
    (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
        ((const int64_t[]){__VA_ARGS__})

static void check_elementwise(const struct step *step)
{
    bool has_b = step->kind == STEP_MODMUL || step->kind == STEP_MODSUM;
    bool has_p = step->kind != STEP_ABS;
    assert_non_null(step->in[0]);
    assert_int_equal(step->in[1] != NULL, has_b);
    assert_int_equal(step->in[2] != NULL, has_p);
    for (int i = 0; i < 3; i++)
        if (step->in[i])
            assert_true(layout_same_shape(&step->in[i]->layout, &step->out->layout));
}

static void check_sum(const struct step *step)
{
    const struct layout *a = &step->in[0]->layout, *out = &step->out->layout;
    if (step->kind == STEP_AXIS_MODSUM) {
        struct layout summed = layout_drop_axis(a, (uint32_t)step->value[0]);
        assert_true(step->value[0] >= 0 && step->value[0] < a->rank - 1);
        assert_true(layout_same_shape(&summed, out));
        assert_true(layout_same_shape(&step->in[1]->layout, out));
        for (uint32_t axis = 0; axis + 1 < out->rank; axis++)
            assert_true(out->shape[axis] == 1 || step->in[1]->layout.stride[axis] == 0);
        return;
    }
    int64_t reps = a->shape[0], s = a->shape[1], k = a->shape[2], n = a->shape[3];
    assert_int_equal(a->rank, 4);
    check_shape(&step->in[1]->layout, SHAPE(s, k, n));
    check_shape(&step->in[2]->layout, SHAPE(k));
    check_shape(out, SHAPE(reps, k, n));
    if (step->in[3])
        check_shape(&step->in[3]->layout, SHAPE(n));
}

static void check_transform(const struct step *step)
{
    const struct layout *out = &step->out->layout;
    int64_t k = out->shape[2], n = out->shape[3];
    bool inverse = step->kind == STEP_INTT;
    assert_int_equal(out->rank, 4);
    assert_true(n > 0 && (n & (n - 1)) == 0);
    assert_true(layout_same_shape(&step->in[0]->layout, out));
    check_shape(&step->in[1]->layout, SHAPE(k));
    check_shape(&step->in[2]->layout, SHAPE(k, n));
    if (step->in[3])
        check_shape(&step->in[3]->layout, SHAPE(n));
    assert_true(step->in[3] || !inverse);
    assert_int_equal(step->in[4] != NULL, inverse);
    if (step->in[4])
        check_shape(&step->in[4]->layout, SHAPE(k));
}

static void check_digits(const struct step *step)
{
    const struct layout *a = &step->in[0]->layout, *out = &step->out->layout;
    assert_true(step->value[0] >= 1);
    if (step->kind == STEP_DIGITS) {
        struct layout rest = layout_drop_axis(out, out->rank - 1);
        assert_true(layout_same_shape(&rest, a));
    } else {
        assert_int_equal(a->rank, 3);
        check_shape(out, SHAPE(a->shape[0], out->shape[1], a->shape[2]));
        check_shape(&step->in[1]->layout, SHAPE(a->shape[1]));
    }
}

static void check_gather(const struct step *step)
{
    const struct layout *a = &step->in[0]->layout, *out = &step->out->layout;
    int64_t axis = step->value[0];
    assert_true(axis >= 0 && axis < out->rank);
    assert_true(layout_same_shape(&step->in[1]->layout, out));
    struct layout other = *a;
    other.shape[axis] = out->shape[axis];
    assert_true(layout_same_shape(&other, out));
    assert_true(step->value[1] == 0 || step->value[1] == 1);
}

/* By enumerating both views. */
static bool share_an_element(const struct layout *a, const struct layout *b, int64_t elements)
{
    char *seen = calloc(1, (size_t)elements + 1);
    bool shared = false;
    struct walk walk;
    assert_non_null(seen);
    for (walk_init(&walk, 1, &a); walk.left > 0; walk_next(&walk))
        seen[walk.position[0]] = 1;
    for (walk_init(&walk, 1, &b); walk.left > 0 && !shared; walk_next(&walk))
        shared = seen[walk.position[0]] == 1;
    free(seen);
    return shared;
}

/* Inputs that share elements with the output have them in the same places, and the step reads each
 * element before it writes it. */
static void check_aliases(const struct step *step)
{
    bool elementwise = step->kind == STEP_COPY || step->kind == STEP_MODMUL ||
                       step->kind == STEP_MODSUM || step->kind == STEP_MOD ||
                       step->kind == STEP_MODNEG || step->kind == STEP_ABS;
    bool transform = step->kind == STEP_NTT || step->kind == STEP_INTT;
    for (int i = 0; i < STEP_INPUTS; i++) {
        const struct tensor *input = step->in[i];
        if (!input || input->storage != step->out->storage)
            continue;
        if ((elementwise || (transform && i == 0)) &&
            layout_same_elements(&input->layout, &step->out->layout))
            continue;
        assert_false(
            share_an_element(&input->layout, &step->out->layout, input->storage->elements));
    }
}

static void check_step(const struct step *step)
{
    if (step->out) {
        assert_true(inside(step->out));
        assert_false(layout_overlaps_itself(&step->out->layout));
        assert_true(layout_elements(&step->out->layout) > 0);
        check_aliases(step);
    }
    for (int i = 0; i < STEP_INPUTS; i++)
        if (step->in[i]) {
            assert_true(inside(step->in[i]));
            if (step->kind != STEP_RELEASE)
                assert_true(step->arguments[i].parameter <
                            step_origin(step, i)->form->parameter_count);
        }
    switch (step->kind) {
    case STEP_UPLOAD:
        assert_true(layout_is_contiguous(&step->out->layout));
        assert_int_equal(layout_elements(&step->out->layout), step->out->storage->elements);
        assert_true(layout_same_shape(&step->out->layout, &step->payload->layout));
        break;
    case STEP_FILL: assert_true(dtype_holds(step->out->storage->dtype, step->value[0])); break;
    case STEP_COPY:
        assert_true(layout_same_shape(&step->in[0]->layout, &step->out->layout));
        assert_int_equal(step->in[0]->storage->dtype, step->out->storage->dtype);
        break;
    case STEP_MODMUL:
    case STEP_MODSUM:
    case STEP_MOD:
    case STEP_MODNEG:
    case STEP_ABS: check_elementwise(step); break;
    case STEP_AXIS_MODSUM:
    case STEP_MODMUL_AXIS_SUM: check_sum(step); break;
    case STEP_NTT:
    case STEP_INTT: check_transform(step); break;
    case STEP_DIGITS:
    case STEP_DIGITS_FULL_Q: check_digits(step); break;
    case STEP_GATHER: check_gather(step); break;
    case STEP_DOWNLOAD:
    case STEP_VENDOR:
    case STEP_CHAIN: /* passes make those */
    case STEP_RELEASE: break;
    }
}

/* ---------------------------------------------------------------- whole plans */

static void use(const struct plan *plan, const char *released, const struct tensor *tensor)
{
    if (!tensor)
        return;
    assert_ptr_equal(plan->storages[tensor->storage->id], tensor->storage);
    assert_int_equal(released[tensor->storage->id], 0);
}

/* Segments follow one another and hold all steps. No storage is used after its release. Storages
 * are live from the entry that makes them to their release, which with the scratch memory of
 * steps gives bytes_peak. */
static void check_plan(const struct plan *plan)
{
    size_t next = 0, entry = 0, results = 0, expected = 0, made = 1;
    uint64_t live = 0, peak = 0;
    char *released = calloc(1, plan->storage_count + 1);
    assert_non_null(released);
    for (size_t i = 0; i < plan->segment_count; i++) {
        const struct segment *segment = &plan->segments[i];
        uint64_t sum = 0;
        assert_int_equal(segment->first_step, next);
        next += segment->step_count;
        for (int j = 0; j < OPERATION_COUNT; j++)
            sum += segment->counts[j];
        assert_int_equal(segment->operations, sum);
    }
    assert_int_equal(next, plan->step_count);
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        assert_true(step_origin(step, NO_INPUT)->entry >= entry);
        entry = step_origin(step, NO_INPUT)->entry;
        for (; made < plan->storage_count && plan->storages[made]->origin->entry <= entry; made++) {
            live += storage_bytes(plan->storages[made]);
            peak = live > peak ? live : peak;
        }
        use(plan, released, step->out);
        for (int j = 0; j < STEP_INPUTS; j++)
            use(plan, released, step->in[j]);
        if (step->kind == STEP_RELEASE) {
            released[step->in[0]->storage->id] = 1;
            live -= storage_bytes(step->in[0]->storage);
        } else {
            uint64_t scratch = step_scratch_bytes(step);
            peak = live + scratch > peak ? live + scratch : peak;
            check_step(step);
        }
        results += step->kind == STEP_DOWNLOAD;
        expected += step->kind == STEP_DOWNLOAD && step->payload;
    }
    assert_int_equal(results, plan->results);
    assert_int_equal(expected, plan->expected);
    /* All storages of one entry count before what it releases. */
    for (; made < plan->storage_count; made++) {
        live += storage_bytes(plan->storages[made]);
        peak = live > peak ? live : peak;
    }
    assert_true(plan->bytes_peak <= peak);
    free(released);
}

static void bundled_transcripts(void **state)
{
    (void)state;
    DIR *folder = opendir(TRANSCRIPTS);
    int count = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct script script;
        char path[1024];
        if (!strstr(entry->d_name, ".json"))
            continue;
        snprintf(path, sizeof path, "%s/%s", TRANSCRIPTS, entry->d_name);
        OK(script_open(&script, path, &error));
        check_plan(script.plan);
        script_release(&script);
        count++;
    }
    closedir(folder);
    assert_true(count > 10);
}

static void random_calls(void **state)
{
    (void)state;
    struct random random = {seed};
    int copies = 0;
    print_message("seed %#lx\n", (unsigned long)seed);
    for (size_t f = 0; f < form_count; f++)
        for (uint64_t round = 0; round < 300 && problem_is_made(&forms[f]); round++) {
            struct problem_dtypes dtypes = {DTYPE_INT64, DTYPE_INT64, DTYPE_INT64};
            struct problem problem;
            struct placement placement;
            struct plan *plan = NULL;
            random_bits(&random);
            problem_make_any(&problem, &forms[f], &dtypes, 200, round, &random);
            placement_make(&placement, &problem, ARRANGEMENT_RANDOM, round, &random);
            char *text = placement_transcript(&placement, &problem);
            struct source source = {.text = text, .length = strlen(text)};
            OK(plan_create(&source, NULL, NULL, &plan, &error));
            check_plan(plan);
            for (size_t i = 0; i < plan->step_count; i++)
                copies += plan->steps[i].kind == STEP_COPY;
            plan_free(plan);
            free(text);
        }
    assert_true(copies > 1000);
}

/* Notes the kinds of the steps of a call. */
static void note_kinds(const struct coverage_row *row, const struct coverage_cell *cell,
                       bool seen[STEP_KINDS])
{
    struct random random = {seed};
    struct problem problem;
    struct placement placement;
    struct plan *plan = NULL;
    problem_make(&problem, row->form, &row->dtypes, cell->size.n, cell->size.k, cell->variant,
                 &random);
    placement_make(&placement, &problem, ARRANGEMENT_CONTIGUOUS, cell->variant, &random);
    char *text = placement_transcript(&placement, &problem);
    struct source source = {.text = text, .length = strlen(text)};
    OK(plan_create(&source, NULL, NULL, &plan, &error));
    for (size_t i = 0; i < plan->step_count; i++)
        seen[plan->steps[i].kind] = true;
    plan_free(plan);
    free(text);
}

/* The coverage table has a row that runs each kind of step but the release, which leaves nothing to
 * compare. */
static void coverage_reaches_all_kinds(void **state)
{
    (void)state;
    static struct coverage_row rows[COVERAGE_ROWS_MAX];
    struct coverage_sizes sizes;
    /* Of no operation of the table, or made by passes. */
    bool seen[STEP_KINDS] = {[STEP_VENDOR] = true, [STEP_CHAIN] = true, [STEP_UPLOAD] = true};
    size_t count = coverage_rows_init(rows);
    coverage_sizes_init(&sizes, true);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sizes.count && problem_accepts(rows[i].form, &rows[i].dtypes); j++) {
            const struct coverage_cell cell = coverage_cell_of(&sizes, &rows[i], j);
            note_kinds(&rows[i], &cell, seen);
        }
    for (int kind = 0; kind < STEP_KINDS; kind++)
        if (!seen[kind] && kind != STEP_RELEASE)
            fail_msg("no row of the coverage table runs the step '%s'", step_traits[kind].name);
}

/* Beside an axis of size 0 there are sizes whose products nothing can hold. */
static void large_empty_tensors(void **state)
{
    (void)state;
    struct script script = {0}, repeated = {0};
    script_call(&script, "a", "zeros", "(1099511627776,1099511627776,0) :int64");
    script_call(&script, "flat", "flatten", "a 0 1");
    script_finish(&script);
    assert_int_equal(plan_create(&script.source, NULL, NULL, &script.plan, &error), HEALCL_REFUSED);
    assert_string_equal(error.message,
                        "entry 1 (flatten): argument 'a': shape [1099511627776, 1099511627776] is "
                        "larger than 2^63-1 bytes");
    healcl_error_clear(&error);
    script_release(&script);

    script_call(&repeated, "x", "zeros", "(5,4) :int64");
    script_call(&repeated, "a", "get_slice", "x [0:0:1]");
    script_call(&repeated, "a", "repeat_interleave", "a 4611686018427387904 0 a");
    script_plan(&repeated);
    check_plan(repeated.plan);
    script_release(&repeated);
}

/* Which axes go together, as failing cases and audits cut them, and which input holds moduli. */
static void axes_of_operands(void **state)
{
    (void)state;
    static const struct {
        enum step_kind kind;
        const char *out, *operation, *arguments, *axes;
        int moduli;
    } cases[] = {
        {STEP_MODMUL, "x", "modmul", "x x q x", "ABC ABC ABC > ABC", 2},
        {STEP_ABS, "x", "abs", "x x", "ABC > ABC", NO_INPUT},
        {STEP_AXIS_MODSUM, "s", "axis_modsum", "x 1 q s", "AsB AB > AB", 1},
        {STEP_AXIS_MODSUM, "s", "axis_modsum", "x 0 q s", "sAB AB > AB", 1},
        {STEP_MODMUL_AXIS_SUM, "o", "modmul_axis_sum", "a b q o -1", "rskn skn k > rkn", 2},
        {STEP_MODMUL_AXIS_SUM, "o", "modmul_axis_sum", "a b q none none perm o 1 -1",
         "rsk* sk* k * > rk*", 2},
        {STEP_NTT, "t", "ntt", "t perm none q psi t 0 0", "lrk* k k* * > lrk*", 1},
        {STEP_INTT, "t", "intt", "t perm none q none none psi q t 0", "lrk* k k* * k > lrk*", 1},
        {STEP_DIGITS, "d", "apply_g_decomp", "x 3 4 d", "ABC > ABC*", NO_INPUT},
        {STEP_DIGITS_FULL_Q, "f", "apply_g_decomp_relative_to_full_q", "f q 2 8 g", "lkr k > l*r",
         1},
        {STEP_GATHER, "y", "take_along_axis", "y x 1 x", "A*C ABC > ABC", NO_INPUT},
    };
    static const int64_t zeros[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct script script = {0};
        struct step_axes axes;
        char text[64] = "";
        script_upload(&script, "x", DTYPE_INT64, SHAPE(2, 2, 2), zeros);
        script_upload(&script, "y", DTYPE_INT64, SHAPE(2, 3, 2), zeros);
        script_upload(&script, "q", DTYPE_INT64, SHAPE(2), ((int64_t[]){5, 7}));
        script_upload(&script, "a", DTYPE_INT64, SHAPE(2, 3, 2, 4), zeros);
        script_upload(&script, "b", DTYPE_INT64, SHAPE(3, 2, 4), zeros);
        script_upload(&script, "t", DTYPE_INT64, SHAPE(1, 4, 1, 2), zeros);
        script_upload(&script, "psi", DTYPE_INT64, SHAPE(2, 4), zeros);
        script_upload(&script, "perm", DTYPE_INT64, SHAPE(4), ((int64_t[]){0, 1, 2, 3}));
        script_upload(&script, "f", DTYPE_INT64, SHAPE(1, 2, 3), zeros);
        script_call(&script, "s", "empty", "(2,2) :int64");
        script_call(&script, "o", "empty", "(2,2,4) :int64");
        script_call(&script, "d", "empty", "(2,2,2,3) :int64");
        script_call(&script, "g", "empty", "(1,2,3) :int64");
        script_call(&script, cases[i].out, cases[i].operation, cases[i].arguments);
        script_plan(&script);
        const struct step *step = &script.plan->steps[script.plan->step_count - 1];
        while (step > script.plan->steps && step->kind != cases[i].kind)
            step--;
        step_axes(step, &axes);
        for (int j = 0; j < STEP_INPUTS; j++)
            if (step->in[j])
                sprintf(text + strlen(text), "%s ", axes.names[j]);
        sprintf(text + strlen(text), "> %s", axes.names[STEP_OUT]);
        assert_string_equal(text, cases[i].axes);
        assert_int_equal(step_moduli(step), cases[i].moduli);
        script_release(&script);
    }
}

static void expect_refused(struct script *script, const char *message)
{
    script_finish(script);
    assert_int_equal(plan_create(&script->source, NULL, NULL, &script->plan, &error),
                     HEALCL_REFUSED);
    assert_string_equal(error.message, message);
    healcl_error_clear(&error);
    script_release(script);
}

/* What is refused, and at which argument. */
static void refusals(void **state)
{
    (void)state;
    static const int64_t zeros[8];
    struct script length = {0}, dtypes = {0}, axis = {0}, rank = {0}, view = {0}, flag = {0},
                  out = {0};
    script_upload(&length, "q", DTYPE_INT64, SHAPE(2), zeros);
    script_call(&length, "a", "empty", "(1,0,1,2) :int64");
    script_call(&length, "psi", "empty", "(2,0) :int64");
    script_call(&length, "perm", "empty", "(0,) :int64");
    script_call(&length, "a", "ntt", "a perm none q psi a 0 0");
    expect_refused(&length,
                   "entry 4 (ntt): argument 'a': transform length 0 is not a power of two");

    /* The first tensor tells the dtype where the output may have another one. */
    script_upload(&dtypes, "a", DTYPE_INT64, SHAPE(1, 2, 3), zeros);
    script_upload(&dtypes, "q", DTYPE_INT32, SHAPE(2), ((int64_t[]){5, 7}));
    script_call(&dtypes, "out", "empty", "(1,2,3) :int8");
    script_call(&dtypes, "out", "apply_g_decomp_relative_to_full_q", "a q 2 8 out");
    expect_refused(&dtypes, "entry 3 (apply_g_decomp_relative_to_full_q): argument 'q': is int32, "
                            "but must be int64 like the others");

    script_upload(&axis, "a", DTYPE_INT64, SHAPE(2), zeros);
    script_call(&axis, "a", "get_slice", "a [1]");
    script_call(&axis, "a", "flatten", "a 0 1");
    expect_refused(&axis, "entry 2 (flatten): argument 'last': axis 1 is outside of rank 1");

    script_call(&rank, "a", "empty", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1) :int64");
    expect_refused(&rank, "entry 0 (empty): argument 'shape': rank 17 is above 16");
    script_upload(&view, "a", DTYPE_INT64, SHAPE(2), zeros);
    script_call(&view, "b", "reshape", "a [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]");
    expect_refused(&view, "entry 1 (reshape): argument 'shape': rank 20 is above 16");
    script_upload(&out, "a", DTYPE_INT64, SHAPE(1, 2, 1, 2), zeros);
    script_upload(&out, "q", DTYPE_INT64, SHAPE(2), ((int64_t[]){5, 7}));
    script_upload(&out, "psi", DTYPE_INT64, SHAPE(2, 2), zeros);
    script_upload(&out, "perm", DTYPE_INT64, SHAPE(2), ((int64_t[]){0, 1}));
    script_call(&out, "o", "empty", "(2,2,1,2) :int64");
    script_call(&out, "o", "ntt", "a perm none q psi o 0 0");
    expect_refused(&out,
                   "entry 5 (ntt): argument 'out': shape [2, 2, 1, 2], but must be [1, 2, 1, 2]");
    script_upload(&flag, "a", DTYPE_INT64, SHAPE(1, 2, 1, 2), zeros);
    script_upload(&flag, "q", DTYPE_INT64, SHAPE(2), ((int64_t[]){5, 7}));
    script_upload(&flag, "psi", DTYPE_INT64, SHAPE(2, 2), zeros);
    script_upload(&flag, "perm", DTYPE_INT64, SHAPE(2), ((int64_t[]){0, 1}));
    script_call(&flag, "a", "ntt", "a perm none q psi a 2 0");
    expect_refused(&flag, "entry 4 (ntt): argument 'tile': flag 2 is neither 0 nor 1");
}

/* What has no axes counts as one. */
static void flat_scalar(void **state)
{
    (void)state;
    struct script script = {0};
    script_upload(&script, "a", DTYPE_INT64, SHAPE(2), ((int64_t[]){3, 4}));
    script_call(&script, "a", "get_slice", "a [1]");
    script_call(&script, "flat", "flatten", "a 0 -1");
    script_download(&script, "flat");
    script_plan(&script);
    const struct step *step = script.plan->steps;
    while (step->kind != STEP_DOWNLOAD)
        step++;
    check_shape(&step->in[0]->layout, SHAPE(1));
    script_release(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals),
        cmocka_unit_test(flat_scalar),
        cmocka_unit_test(axes_of_operands),
        cmocka_unit_test(bundled_transcripts),
        cmocka_unit_test(random_calls),
        cmocka_unit_test(coverage_reaches_all_kinds),
        cmocka_unit_test(large_empty_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
