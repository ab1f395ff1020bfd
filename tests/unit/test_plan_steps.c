/* Which axes of steps go together, and what plans refuse. */
#include "helper_device.h"

#include <stdio.h>
#include <string.h>

#include "helper_script.h"
#include "plan/axes.h"

#define SHAPE(...)                                                        \
    (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
        ((const int64_t[]){__VA_ARGS__})

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

#define TRANSFORM "a (1,2,1,2); q (2); psi (2,2); perm (2);"

/* Refusals, with their arguments. Sizes beside an axis of size 0 may have products that nothing can
 * hold. */
static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *lines, *message;
    } cases[] = {
        {"q (2); a = empty (1,0,1,2) :int64; psi = empty (2,0) :int64; perm = empty (0,) :int64;"
         "ntt a perm none q psi a 0 0",
         "entry 4 (ntt): argument 'a': transform length 0 is not a power of two"},
        /* The first tensor decides the dtype where the output may have another one. */
        {"a (1,2,3); q (2) :int32; out = empty (1,2,3) :int8;"
         "apply_g_decomp_relative_to_full_q a q 2 8 out",
         "entry 3 (apply_g_decomp_relative_to_full_q): argument 'q': is int32, but must be int64 "
         "like the others"},
        {"a (2); a = get_slice a [1]; a = flatten a 0 1",
         "entry 2 (flatten): argument 'last': axis 1 is outside of rank 1"},
        {"a = empty (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1) :int64",
         "entry 0 (empty): argument 'shape': rank 17 is above 16"},
        {"a (2); b = reshape a [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]",
         "entry 1 (reshape): argument 'shape': rank 20 is above 16"},
        {TRANSFORM "o = empty (2,2,1,2) :int64; ntt a perm none q psi o 0 0",
         "entry 5 (ntt): argument 'out': shape [2, 2, 1, 2], but must be [1, 2, 1, 2]"},
        {TRANSFORM "ntt a perm none q psi a 2 0",
         "entry 4 (ntt): argument 'tile': flag 2 is neither 0 nor 1"},
        {"a = zeros (1099511627776,1099511627776,0) :int64; flat = flatten a 0 1",
         "entry 1 (flatten): argument 'a': shape [1099511627776, 1099511627776] is larger than "
         "2^63-1 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct script script = {0};
        script_lines(&script, cases[i].lines);
        script_finish(&script);
        assert_int_equal(plan_create(&script.source, NULL, NULL, &script.plan, &error),
                         HEALCL_REFUSED);
        assert_string_equal(error.message, cases[i].message);
        healcl_error_clear(&error);
        script_release(&script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals),
        cmocka_unit_test(axes_of_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
