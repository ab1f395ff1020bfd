/* Facts of a plan about values: present where required, absent where forbidden, and true. */
#include "helper_device.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "helper_claims.h"
#include "helper_script.h"

/* Checks the facts of operations with a modulus about their operands a and b: a digit for each
 * operation, in which bit 0 stands for a. Uploads are x [2,4,3], also negative, moduli q and p [3],
 * and indices i [4,3]; y [4,3] is a sum of x modulo q. */
static void check(const char *expected, const char *const (*calls)[3], size_t count)
{
    struct script script = {0};
    struct claims claims = {0};
    char known[16] = "", *end = known;
    int64_t x[24], i[12], q[] = {97, 1 << 20, 5};
    for (int at = 0; at < 24; at++)
        x[at] = 1000 * (at - 7);
    for (int at = 0; at < 12; at++)
        i[at] = at % 3;
    script_upload(&script, "x", DTYPE_INT64, 3, (int64_t[]){2, 4, 3}, x);
    script_upload(&script, "q", DTYPE_INT64, 1, (int64_t[]){3}, q);
    script_upload(&script, "p", DTYPE_INT64, 1, (int64_t[]){3}, q);
    script_upload(&script, "i", DTYPE_INT64, 2, (int64_t[]){4, 3}, i);
    script_call(&script, "y", "empty", "(4,3) :int64");
    script_call(&script, "z", "empty", "(4,3) :int64");
    script_call(&script, "y", "axis_modsum", "x 0 q y");
    for (size_t at = 0; at < count; at++)
        script_call(&script, calls[at][0], calls[at][1], calls[at][2]);
    script_plan(&script);
    size_t first = 0;
    while (script.plan->steps[first++].kind != STEP_AXIS_MODSUM) {
    }
    for (size_t at = first; at < script.plan->step_count; at++) {
        const struct step *step = &script.plan->steps[at];
        if (step->in[1] && step->kind != STEP_GATHER)
            *end++ = (char)('0' + step->residues);
    }
    assert_string_equal(known, expected);
    assert_int_equal(claims_check(script.plan, &claims), script.plan->step_count);
    script_release(&script);
}

#define CHECK(expected, ...)                               \
    check(expected, (const char *const[][3]){__VA_ARGS__}, \
          sizeof((const char *const[][3]){__VA_ARGS__}) / sizeof(const char *const[3]))

static void remainders(void **state)
{
    (void)state;
    CHECK("33", {"y", "modmul", "y y q y"}, {"y", "modsum", "y y q y"}); /* in place */
    CHECK("3", {"z", "modneg", "y q z"}, {"z", "modmul", "z y q z"});
    CHECK("3", {"z", "mod", "y q z"}, {"z", "modmul", "z y q z"});
    CHECK("3", {"z", "abs", "y z"}, {"z", "modmul", "z y q z"});
    CHECK("1", {"s", "empty", "(3,) :int64"}, {"s", "axis_modsum", "y 0 q s"});
    /* A remainder has the sign of what is divided, or of the product. */
    CHECK("0000", {"z", "modsum", "z z q z"}, {"x", "modsum", "x x q x"},
          {"x", "modsum", "x x q x"}, {"x", "mod", "x q x"}, {"x", "modmul", "x x q x"});
    CHECK("10", {"z", "modmul", "y -1 q z"}, {"z", "modsum", "z z q z"});
    CHECK("13", {"z", "modmul", "y 1000 q z"}, {"z", "modsum", "z z q z"});
}

/* Squares are not negative, whatever they are of; products of two tensors may be. */
static void squares(void **state)
{
    (void)state;
    CHECK("03", {"x", "modmul", "x x q x"}, {"x", "modsum", "x x q x"});
    CHECK("00", {"v", "get_slice", "x [0]"}, {"w", "get_slice", "x [1]"},
          {"z", "modmul", "v w q z"}, {"z", "modsum", "z z q z"});
    CHECK("00", {"v", "get_slice", "x [0,0:2]"}, {"w", "get_slice", "x [0,1:3]"},
          {"u", "get_slice", "z [0:2]"}, {"u", "modmul", "v w q u"}, {"u", "modsum", "u u q u"});
}

static void moduli(void **state)
{
    (void)state;
    /* Others with the same values are others. */
    CHECK("03", {"y", "modsum", "y y p y"}, {"y", "modsum", "y y p y"});
    /* Those that were written since are, too; but residues stay above 0. */
    CHECK("03", {"q", "pad_single_axis", "p 0 0 q"}, {"y", "modsum", "y y q y"},
          {"y", "modsum", "y y q y"});
    CHECK("00", {"q", "modsum", "q q q q"}, {"y", "modsum", "y y q y"});
    CHECK("3330", {"z", "modneg", "y 5 z"}, {"z", "modsum", "z z 5 z"}, {"z", "modsum", "z z 7 z"},
          {"z", "modsum", "z z 7 z"}, {"z", "modsum", "z z 6 z"});
    CHECK("0", {"z", "modneg", "y 5 z"}, {"z", "modsum", "z z q z"});
}

static void views(void **state)
{
    (void)state;
    CHECK("33", {"v", "get_slice", "y [1:3]"}, {"v", "modsum", "v v q v"},
          {"y", "modsum", "y y q y"});
    CHECK("3", {"v", "get_slice", "y [0:4:3]"}, {"v", "modsum", "v v q v"});
    CHECK("300", {"v", "get_slice", "y [:,0:2]"}, {"r", "get_slice", "q [0:2]"},
          {"s", "get_slice", "q [1:3]"}, {"v", "modsum", "v v r v"}, {"v", "modsum", "v v s v"},
          {"y", "modsum", "y y q y"});
    CHECK("3", {"v", "get_slice", "y [2,1]"}, {"r", "get_slice", "q [1]"},
          {"v", "modsum", "v v r v"});
    CHECK("3", {"v", "moveaxis", "y 0 1"}, {"r", "unsqueeze", "q 1"}, {"v", "modsum", "v v r v"});
    CHECK("3", {"v", "reshape", "y [2,2,3]"}, {"v", "modsum", "v v q v"});
    CHECK("3", {"z", "modneg", "y 5 z"}, {"v", "reshape", "z [2,6]"}, {"v", "modsum", "v v 5 v"});
    CHECK("3", {"u", "zeros", "(2,4,3) :int64"}, {"v", "unsqueeze", "y 0"},
          {"v", "expand", "v 0 2"}, {"u", "modsum", "u v q u"});
    /* One element of y is to be a residue of all moduli. */
    CHECK("2", {"v", "get_slice", "y [:,1:2]"}, {"v", "expand", "v 1 3"},
          {"z", "modsum", "v y q z"});
}

static void parts(void **state)
{
    (void)state;
    CHECK("0", {"v", "get_slice", "y [1:3]"}, {"w", "get_slice", "x [0,1:3]"},
          {"v", "pad_single_axis", "w 0 0 v"}, {"y", "modsum", "y y q y"});
    CHECK("30", {"v", "get_slice", "z [0:2]"}, {"w", "get_slice", "z [2:4]"},
          {"v", "modneg", "v q v"}, {"w", "modneg", "w q w"}, {"v", "modsum", "v w q v"},
          {"z", "modsum", "z z q z"});
    CHECK("2", {"z", "set_const_val", "z 0"}, {"z", "modsum", "y z p z"});
    /* One of two alternating tensors is known and the other written, both with merged axes. */
    CHECK("30", {"c", "empty", "(2,2,2,3) :int64"}, {"v", "get_slice", "c [:,:,0]"},
          {"w", "get_slice", "c [:,:,1]"}, {"u", "reshape", "y [2,2,3]"}, {"v", "modneg", "u q v"},
          {"t", "reshape", "x [2,2,2,3]"}, {"t", "get_slice", "t [0]"}, {"w", "mod", "t q w"},
          {"v", "modsum", "v v q v"}, {"w", "modsum", "w w q w"});
    CHECK("33", {"v", "get_slice", "y [1]"}, {"v", "set_const_val", "v 0"},
          {"y", "modsum", "y y q y"}, {"y", "modsum", "y y q y"});
    CHECK("30", {"z", "set_const_val", "z 6"}, {"z", "modsum", "z z 7 y"},
          {"z", "modsum", "z z 6 y"});
    CHECK("0", {"z", "set_const_val", "z -1"}, {"z", "modsum", "z z 7 z"});
}

/* A write over a part leaves the larger rest of what was known, before or after it. */
static void rests(void **state)
{
    (void)state;
    CHECK("30", {"z", "modneg", "y q z"}, {"v", "get_slice", "z [1]"},
          {"w", "get_slice", "x [0,1]"}, {"v", "pad_single_axis", "w 0 0 v"},
          {"s", "get_slice", "z [2:4]"}, {"t", "get_slice", "z [0]"}, {"s", "modsum", "s s q s"},
          {"t", "modsum", "t t q t"});
    CHECK("30", {"z", "modneg", "y q z"}, {"v", "get_slice", "z [2]"},
          {"w", "get_slice", "x [0,1]"}, {"v", "pad_single_axis", "w 0 0 v"},
          {"s", "get_slice", "z [0:2]"}, {"t", "get_slice", "z [3]"}, {"s", "modsum", "s s q s"},
          {"t", "modsum", "t t q t"});
    CHECK("03", {"z", "modneg", "y q z"}, {"v", "get_slice", "z [0]"},
          {"w", "get_slice", "x [0,1]"}, {"v", "pad_single_axis", "w 0 0 v"},
          {"t", "modsum", "v v q v"}, {"s", "get_slice", "z [1:4]"}, {"s", "modsum", "s s q s"});
    /* Columns, whose rows go on. */
    CHECK("30", {"c", "get_slice", "z [:,0:2]"}, {"r", "get_slice", "q [0:2]"},
          {"c", "modneg", "c r c"}, {"v", "get_slice", "c [3]"}, {"w", "get_slice", "x [0,1,0:2]"},
          {"v", "pad_single_axis", "w 0 0 v"}, {"s", "get_slice", "c [0:3]"},
          {"s", "modsum", "s s r s"}, {"v", "modsum", "v v r v"});
    /* Nothing remains of a single element. */
    CHECK("0", {"v", "get_slice", "z [2,1]"}, {"r", "get_slice", "q [1]"}, {"v", "modneg", "v r v"},
          {"v", "set_const_val", "v -3"}, {"v", "modsum", "v v r v"});
}

static void moves(void **state)
{
    (void)state;
    CHECK("3", {"z", "pad_single_axis", "y 0 0 z"}, {"z", "modsum", "z y q z"});
    CHECK("3", {"v", "moveaxis", "y 0 1"}, {"v", "contiguous", "v"}, {"r", "unsqueeze", "q 1"},
          {"v", "modsum", "v v r v"});
    CHECK("3", {"z", "take_along_axis", "y i 0 z"}, {"z", "modsum", "z y q z"});
    CHECK("2", {"z", "take_along_axis", "y i 1 z"}, {"z", "modsum", "z y q z"});
    CHECK("30", {"d", "empty", "(4,3,2) :int64"}, {"d", "apply_g_decomp", "y 2 3 d"},
          {"d", "modsum", "d d 8 d"}, {"d", "modsum", "d d 7 d"});
}

/* Values that do not fit their dtype wrap. */
static void narrow_values(void **state)
{
    (void)state;
    struct script script = {0};
    struct claims claims = {0};
    const int64_t values[] = {INT32_MAX, INT32_MIN, 5, -1};
    script_upload(&script, "x", DTYPE_INT32, 1, (int64_t[]){4}, values);
    script_call(&script, "y", "modneg", "x 1099511627776 x");
    script_call(&script, "y", "modsum", "y y 1099511627776 y");
    script_call(&script, "y", "modneg", "y 2147483647 y");
    script_call(&script, "y", "modsum", "y y 2147483647 y");
    script_call(&script, "d", "empty", "(4,1) :int8");
    script_call(&script, "d", "apply_g_decomp", "y 1 8 d");
    script_plan(&script);
    assert_int_equal(claims_check(script.plan, &claims), script.plan->step_count);
    script_release(&script);
}

static void bundled_transcripts(void **state)
{
    (void)state;
    DIR *folder = opendir(TRANSCRIPTS);
    struct claims claims = {0};
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct script script;
        char path[1024];
        if (!strstr(entry->d_name, ".json"))
            continue;
        snprintf(path, sizeof path, "%s/%s", TRANSCRIPTS, entry->d_name);
        OK(script_open(&script, path, &error));
        size_t wrong = claims_check(script.plan, &claims);
        if (wrong < script.plan->step_count)
            fail_msg("%s: step %zu", entry->d_name, wrong);
        script_release(&script);
    }
    closedir(folder);
    print_message("%zu inputs at least 0, %zu of them residues\n", claims.nonnegative,
                  claims.residues);
    assert_true(claims.residues > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remainders),
        cmocka_unit_test(squares),
        cmocka_unit_test(moduli),
        cmocka_unit_test(views),
        cmocka_unit_test(parts),
        cmocka_unit_test(rests),
        cmocka_unit_test(moves),
        cmocka_unit_test(narrow_values),
        cmocka_unit_test(bundled_transcripts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
