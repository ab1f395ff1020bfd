/*
 * Random programs of operations after which the plan knows residues, on views of a few tensors and
 * moduli of any length: what it claims is true, and a device has the reference's results, also of
 * values that only seem to be residues.
 */
#include "helper_one_device.h"

#include <stdio.h>
#include <string.h>

#include "helper_claims.h"
#include "helper_script.h"
#include "helper_share.h"
#include "kernels/variant.h"
#include "tools/random.h"

static const uint64_t seed = 0x4e51d;

enum { TENSORS = 3, ELEMENTS = 1200, LENGTH = 40, PROGRAMS = 60 };

/* Views of each tensor, by shape: X has its name, x; and the moduli that go with them. x is
 * [2,200,3] and q [3]. */
static const struct view_kind {
    const char *suffix, *operation, *arguments; /* of the tensor's name */
    uint32_t shape;                             /* of one number are of one shape */
} view_kinds[] = {
    {"", NULL, NULL, 0},
    {"m", "moveaxis", "1 2", 1},
    {"r", "get_slice", "[0]", 2},
    {"s", "get_slice", "[1]", 2},
    {"e", "get_slice", "[:,0:200:2]", 3},
    {"o", "get_slice", "[:,100:]", 3},
    {"a", "get_slice", "[...,0:2]", 4},
    {"b", "get_slice", "[...,1:3]", 4},
    {"f", "reshape", "[400,3]", 5},
};

enum { VIEW_KINDS = sizeof view_kinds / sizeof *view_kinds, SHAPES = 6 };

static const char *const moduli_of_shape[SHAPES][4] = {
    {"q0", "q1", "97", "4611686018427387847"},
    {"c0", "c1", "97", "2147483647"},
    {"q0", "q1", "97", "1"},
    {"q0", "q1", "97", "9223372036854775807"},
    {"h0", "l0", "h1", "97"},
    {"q0", "q1", "97", "9223372036854775783"},
};

static const char *any_view(uint32_t shape, struct random *random, char text[8])
{
    const struct view_kind *kind;
    do
        kind = &view_kinds[random_between(random, 0, VIEW_KINDS - 1)];
    while (kind->shape != shape);
    snprintf(text, 8, "x%d%s", (int)random_between(random, 0, TENSORS - 1), kind->suffix);
    return text;
}

static void upload(struct script *script, const char *name, enum dtype dtype, uint32_t rank,
                   const int64_t *shape, bool moduli, struct random *random)
{
    int64_t values[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = moduli ? random_modulus(random, dtype) : random_value(random, dtype);
    script_upload(script, name, dtype, rank, shape, values);
}

static void declare(struct script *script, enum dtype dtype, struct random *random)
{
    char text[64], name[8];
    for (int i = 0; i < TENSORS; i++) {
        snprintf(name, sizeof name, "x%d", i);
        upload(script, name, dtype, 3, (int64_t[]){2, 200, 3}, false, random);
        for (int k = 1; k < VIEW_KINDS; k++) {
            snprintf(name, sizeof name, "x%d%s", i, view_kinds[k].suffix);
            snprintf(text, sizeof text, "x%d %s", i, view_kinds[k].arguments);
            script_call(script, name, view_kinds[k].operation, text);
        }
    }
    for (int i = 0; i < 2; i++) {
        static const char *const views[][3] = {
            {"c", "unsqueeze", "1"}, {"l", "get_slice", "[0:2]"}, {"h", "get_slice", "[1:3]"}};
        snprintf(name, sizeof name, "q%d", i);
        upload(script, name, dtype, 1, (int64_t[]){3}, true, random);
        for (int k = 0; k < 3; k++) {
            snprintf(name, sizeof name, "%s%d", views[k][0], i);
            snprintf(text, sizeof text, "q%d %s", i, views[k][2]);
            script_call(script, name, views[k][1], text);
        }
    }
    for (int i = 0; i + 1 < TENSORS; i++) { /* some residues to begin with */
        snprintf(text, sizeof text, "x%d q0 x%d", i, i);
        script_call(script, NULL, "modneg", text);
    }
    upload(script, "other", dtype, 1, (int64_t[]){3}, true, random);
}

static void add_operation(struct script *script, struct random *random)
{
    char text[64], out[8], a[8], b[8];
    uint32_t shape = (uint32_t)random_between(random, 0, SHAPES - 1);
    bool often = random_once_in(random, 4) == 0;
    const char *p = moduli_of_shape[shape][often ? 0 : random_between(random, 1, 3)];
    any_view(shape, random, out);
    any_view(shape, random, a);
    any_view(shape, random, b);
    const char *operation = NULL;
    switch (random_between(random, 0, 15)) {
    case 0:
        operation = "set_const_val";
        snprintf(text, sizeof text, "%s %d", out, (int)random_between(random, -1, 2));
        break;
    case 1:
        operation = "pad_single_axis";
        snprintf(text, sizeof text, "%s 0 0 %s", a, out);
        break;
    case 2: /* seldom, for it makes all that is known worthless */
        if (!random_once_in(random, 4))
            return;
        operation = "pad_single_axis";
        snprintf(text, sizeof text, "other 0 0 q%d", (int)random_between(random, 0, 1));
        break;
    case 3:
        operation = "axis_modsum";
        any_view(0, random, a);
        any_view(2, random, out);
        snprintf(text, sizeof text, "%s 0 q%d %s", a, (int)random_between(random, 0, 1), out);
        break;
    case 4:
    case 5:
    case 6:
        operation = "modneg";
        snprintf(text, sizeof text, "%s %s %s", a, p, out);
        break;
    case 7:
        operation = "mod";
        snprintf(text, sizeof text, "%s %s %s", a, p, out);
        break;
    case 8:
        operation = "abs";
        snprintf(text, sizeof text, "%s %s", a, out);
        break;
    case 9: /* repeats elements */
        operation = "modmul";
        shape = 0;
        any_view(0, random, out);
        any_view(0, random, a);
        any_view(2, random, b);
        snprintf(text, sizeof text, "%s %s %s %s", a, b, moduli_of_shape[0][0], out);
        break;
    default:
        operation = random_once_in(random, 2) ? "modmul" : "modsum";
        snprintf(text, sizeof text, "%s %s %s %s", a, b, p, out);
    }
    script_call(script, operation[0] == 's' ? out : NULL, operation, text);
}

static void random_programs(void **state)
{
    (void)state;
    struct random random = {seed};
    struct claims claims = {0};
    size_t served = 0;
    print_message("seed %#lx\n", (unsigned long)seed);
    for (int program = 0; program < PROGRAMS; program++) {
        struct script script = {0};
        struct script_results expected = {0}, results = {0};
        declare(&script, program % 3 ? DTYPE_INT64 : DTYPE_INT32, &random);
        for (int i = 0; i < LENGTH; i++)
            add_operation(&script, &random);
        for (int i = 0; i < TENSORS; i++)
            script_download(&script, (char[]){'x', (char)('0' + i), 0});
        script_plan(&script);
        size_t wrong = claims_check(script.plan, &claims);
        if (wrong < script.plan->step_count)
            fail_msg("program %d, step %zu", program, wrong);
        for (size_t i = 0; i < script.plan->step_count; i++) {
            const struct step *step = &script.plan->steps[i];
            served +=
                family_of(step->kind) && strcmp(variant_for(step, device)->name, "residues") == 0;
        }
        OK(script_run_on(&script, NULL, &expected, &error));
        OK(script_run_on(&script, device, &results, &error));
        if (!script_same_results(&expected, &results))
            fail_msg("program %d", program);
        script_results_release(&expected);
        script_results_release(&results);
        script_release(&script);
    }
    print_message("%zu inputs at least 0, %zu of them residues; kernels for residues: %zu\n",
                  claims.nonnegative, claims.residues, served);
    assert_true(claims.residues > (size_t)PROGRAMS);
    bool is_wanted = device->tuning.styles[FAMILY_elementwise] == STYLE_LOCAL &&
                     device->tuning.compiled_axes > 0;
    assert_true(is_wanted ? served > (size_t)PROGRAMS : served == 0);
}

/* [PROGRAMS] */
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
