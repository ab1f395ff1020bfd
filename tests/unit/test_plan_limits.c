/*
 * Work and memory that views ask for, however few elements are stored: what each kind of operation
 * counts, that plans are refused just beyond a limit, and that no count overflows.
 */
#include "helper_device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "helper_script.h"

#define VALUES(...) ((const int64_t[]){__VA_ARGS__})
#define TWO_TO(n) ((uint64_t)1 << (n))

/* Plans a script within limits; the refusal, or "". The plan stays with the script. */
static const char *plan_within(struct script *script, uint64_t memory_bytes, uint64_t work)
{
    static struct healcl_error refusal;
    const struct healcl_plan_options options = {.memory_limit = memory_bytes, .work_limit = work};
    plan_free(script->plan);
    script->plan = NULL;
    healcl_error_clear(&refusal);
    refusal.message[0] = 0;
    enum healcl_status status =
        plan_create(&script->source, NULL, &options, &script->plan, &refusal);
    assert_int_equal(status, refusal.message[0] ? HEALCL_REFUSED : HEALCL_OK);
    return refusal.message;
}

enum { CALL = 25 };

/* Tensors for all calls, each made by up to 16 visits; entry CALL is the call. */
static void write_call(struct script *script, const char *operation, const char *arguments)
{
    *script = (struct script){0};
    script_upload(script, "q", DTYPE_INT64, 1, VALUES(2), VALUES(17, 97));
    script_upload(script, "one", DTYPE_INT64, 1, VALUES(1), VALUES(1));
    script_call(script, "ones", "expand", "one 0 3");
    script_call(script, "a", "zeros", "(4,2) :int64");
    script_call(script, "row", "zeros", "(1,2) :int64");
    script_call(script, "rows", "expand", "row 0 100");
    script_call(script, "out", "empty", "(4,2) :int64");
    script_call(script, "sum", "empty", "(2) :int64");
    script_call(script, "poly", "zeros", "(1,8,1,2) :int64");
    script_call(script, "psi", "zeros", "(2,8) :int64");
    script_call(script, "ninv", "zeros", "(2) :int64");
    script_call(script, "perm", "empty", "(8) :int64");
    script_call(script, "x", "zeros", "(1,1,2,4) :int64");
    script_call(script, "terms", "expand", "x 1 50");
    script_call(script, "y", "zeros", "(1,2,4) :int64");
    script_call(script, "factors", "expand", "y 0 50");
    script_call(script, "products", "zeros", "(1,2,4) :int64");
    script_call(script, "digits", "empty", "(4,2,3) :int8");
    script_call(script, "limb", "zeros", "(2,1,5) :int64");
    script_call(script, "limbs", "expand", "limb 1 3");
    script_call(script, "parts", "empty", "(2,4,5) :int8");
    script_call(script, "idx", "zeros", "(4,2) :int32");
    script_call(script, "perms", "zeros", "(2,4) :int32");
    script_call(script, "longer", "empty", "(7,2) :int64");
    script_call(script, "twice", "empty", "(8,2) :int64");
    bool downloads = strcmp(operation, "device_to_host") == 0;
    script_call(script, downloads ? NULL : "result", operation, arguments);
    script_finish(script);
}

struct counted {
    const char *operation, *arguments;
    uint64_t visits;
    const char *argument; /* that a refusal names */
    uint64_t bytes;       /* that its launches have to read and write, each element once */
    enum segment_work work;
    uint64_t amount;
};

static void expect_cost(const struct counted *call, const struct segment_cost *cost)
{
    if (cost->bytes != call->bytes)
        fail_msg("%s %s: %" PRIu64 " bytes", call->operation, call->arguments, cost->bytes);
    for (int i = 0; i < WORKS; i++)
        if (cost->work[i] != (i == (int)call->work ? call->amount : 0))
            fail_msg("%s %s: %" PRIu64 " %s", call->operation, call->arguments, cost->work[i],
                     segment_work_names[i]);
}

static void costs_of_operations(void **state)
{
    (void)state;
    static const struct counted calls[] = {
        {"zeros", "(5,100) :int8", 500, "shape", 500, 0, 0},
        {"set_const_val", "poly 3", 16, "a", 128, 0, 0},
        {"contiguous", "rows", 200, "a", 1616, 0, 0},
        {"reshape", "rows (200)", 200, "a", 1616, 0, 0},
        {"device_to_host", "rows", 200, "t", 0, 0, 0},
        {"_modmul_ttt", "a a q out", 8, "a", 144, WORK_PRODUCTS, 8},
        {"_modsum_tcc", "a 5 17 out", 8, "a", 144, 0, 0},
        {"_mod_tt", "a q out", 8, "a", 144, 0, 0},
        {"_modneg_tc", "a 17 out", 8, "a", 136, 0, 0},
        {"abs", "a out", 8, "a", 128, 0, 0},
        {"axis_modsum", "rows 0 q sum", 200 + 2, "a", 48, 0, 0},
        {"modmul_axis_sum", "terms factors q none none none products 0", 400 + 8, "a", 272,
         WORK_SUMMED_PRODUCTS, 400},
        {"ntt", "poly perm none q psi poly 0 0", 16 * (3 + 1), "a", 464, WORK_BUTTERFLIES, 24},
        {"intt", "poly perm none q none none psi ninv poly 0", 16 * (3 + 1), "a", 480,
         WORK_BUTTERFLIES, 24},
        {"apply_g_decomp", "a 3 4 digits", 24, "a", 88, WORK_DIGITS, 24},
        {"apply_g_decomp_relative_to_full_q", "limbs ones 4 4 parts", 40 + (10 + 1) * 9, "a", 128,
         WORK_CRT_DIGITS, 40},
        {"take_along_axis", "a idx 0 out", 8, "a", 160, 0, 0},
        {"permute", "a perms out 1 0", 8, "a", 160, 0, 0},
        {"pad_single_axis", "a 3 0 longer", 8 + 6, "a", 176, 0, 0},
        {"repeat_interleave", "a 2 0 twice", 16, "a", 192, 0, 0},
        {"take_along_axis", "a idx 0 a", 8 + 8, "a", 288, 0, 0}, /* and the copy of a */
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct script script;
        char message[256];
        write_call(&script, calls[i].operation, calls[i].arguments);
        assert_string_equal(plan_within(&script, 0, 0), "");
        const struct plan *plan = script.plan;
        struct segment_cost cost = {0};
        uint64_t visits = 0;
        for (size_t j = 0; j < plan->step_count; j++)
            if (step_origin(&plan->steps[j], NO_INPUT)->entry == CALL) {
                visits += step_visits(&plan->steps[j]);
                step_add_cost(&plan->steps[j], &cost);
            }
        expect_cost(&calls[i], &cost);
        if (visits != calls[i].visits)
            fail_msg("%s %s: %" PRIu64 " visits", calls[i].operation, calls[i].arguments, visits);
        if (visits > 16) { /* else an entry before would be refused */
            assert_string_equal(plan_within(&script, 0, visits), "");
            snprintf(message, sizeof message,
                     "entry 25 (%s): argument '%s': %" PRIu64
                     " elements to visit, above the limit of %" PRIu64,
                     calls[i].operation, calls[i].argument, visits, visits - 1);
            assert_string_equal(plan_within(&script, 0, visits - 1), message);
        }
        script_release(&script);
    }
}

/* An operation's copy counts with the operation. */
static void copies_count_with_their_operation(void **state)
{
    (void)state;
    struct script script = {0};
    script_call(&script, "a", "zeros", "(20,2) :int64");
    script_call(&script, "idx", "zeros", "(20,2) :int32");
    script_call(&script, "a", "take_along_axis", "a idx 0 a");
    script_finish(&script);
    assert_string_equal(plan_within(&script, 0, 80), "");
    assert_string_equal(plan_within(&script, 0, 79),
                        "entry 2 (take_along_axis): argument 'a': 80 elements to visit, above the "
                        "limit of 79");
    script_release(&script);
}

/* Elements that an operation visits do not count for the next one. */
static void operations_count_apart(void **state)
{
    (void)state;
    struct script script = {0};
    script_call(&script, "a", "zeros", "(10) :int64");
    for (int i = 0; i < 5; i++)
        script_call(&script, "a", "set_const_val", "a 1");
    script_finish(&script);
    assert_string_equal(plan_within(&script, 0, 10), "");
    script_release(&script);
}

/* 2^42 visits where nothing is said. */
static void default_limit(void **state)
{
    (void)state;
    static const char *const repeats[] = {"a 0 4398046511104", "a 0 4398046511105"};
    for (int i = 0; i < 2; i++) {
        struct script script = {0};
        script_call(&script, "a", "zeros", "(1) :int8");
        script_call(&script, "a", "expand", repeats[i]);
        script_download(&script, "a");
        script_finish(&script);
        assert_string_equal(plan_within(&script, 0, 0),
                            i == 0 ? ""
                                   : "entry 2 (device_to_host): argument 't': 4398046511105 "
                                     "elements to visit, above the limit of 4398046511104");
        assert_string_equal(plan_within(&script, 0, TWO_TO(43)), "");
        script_release(&script);
    }
}

/* Counts that no integer holds stay the largest there is. */
static void counts_do_not_overflow(void **state)
{
    (void)state;
    struct script script = {0};
    script_call(&script, "a", "zeros", "(1,1,1) :int32");
    script_call(&script, "q", "zeros", "(1) :int32");
    script_call(&script, "out", "zeros", "(1,1,1) :int8");
    script_call(&script, "a", "expand", "a 1 1099511627776");
    script_call(&script, "q", "expand", "q 0 1099511627776");
    script_call(&script, "out", "apply_g_decomp_relative_to_full_q", "a q 1 4 out");
    script_finish(&script);
    static const char message[] =
        "entry 5 (apply_g_decomp_relative_to_full_q): argument 'a': at least "
        "18446744073709551615 elements to visit, above the limit of 9223372036854775807";
    assert_string_equal(plan_within(&script, 0, INT64_MAX), message);
    assert_string_equal(
        plan_within(&script, 0, UINT64_MAX),
        "entry 5 (apply_g_decomp_relative_to_full_q): argument 'a': its scratch memory "
        "takes at least 18446744073709551615 bytes beside 9 in use, above the "
        "limit of 9223372036854775807");
    script_release(&script);

    /* Two operations' worth of 2^59 visits each, in one. */
    script = (struct script){0};
    script_call(&script, "a", "zeros", "(1,1,1,1) :int64");
    script_call(&script, "a", "expand", "a 1 576460752303423488");
    script_call(&script, "b", "zeros", "(1,1,1) :int64");
    script_call(&script, "b", "expand", "b 0 576460752303423488");
    script_upload(&script, "q", DTYPE_INT64, 1, VALUES(1), VALUES(7));
    script_call(&script, "out", "zeros", "(1,1,1) :int64");
    script_call(&script, "out", "modmul_axis_sum", "a b q none none none out 0");
    script_finish(&script);
    assert_string_equal(plan_within(&script, 0, TWO_TO(59) + 1), "");
    assert_string_equal(plan_within(&script, 0, TWO_TO(59)),
                        "entry 6 (modmul_axis_sum): argument 'a': 576460752303423489 elements to "
                        "visit, above the limit of 576460752303423488");
    script_release(&script);
}

/* A download is packed where its elements are not contiguous, and only there. */
static void downloads_are_counted(void **state)
{
    (void)state;
    struct script script = {0};
    script_call(&script, "a", "zeros", "(4,2) :int64"); /* 64 bytes */
    script_download(&script, "a");
    script_call(&script, "part", "get_slice", "a [1:3:1]");
    script_download(&script, "part");
    script_call(&script, "turned", "moveaxis", "a 0 1");
    script_download(&script, "turned");                /* 64 more */
    script_call(&script, "b", "zeros", "(12) :int64"); /* 160 in all, the 64 being free again */
    script_finish(&script);
    assert_string_equal(plan_within(&script, 160, 0), "");
    assert_int_equal(script.plan->bytes_peak, 160);
    assert_string_equal(plan_within(&script, 127, 0),
                        "entry 5 (device_to_host): argument 't': its scratch memory takes 64 bytes "
                        "beside 64 in use, above the limit of 127");
    script_release(&script);

    script = (struct script){0};
    script_call(&script, "a", "zeros", "(1) :int64");
    script_call(&script, "a", "expand", "a 0 268435456");
    script_download(&script, "a");
    script_finish(&script);
    assert_string_equal(plan_within(&script, 0, 0), "");
    assert_int_equal(script.plan->bytes_peak, 8 + TWO_TO(31));
    assert_string_equal(
        plan_within(&script, 16 << 20, 0),
        "entry 2 (device_to_host): argument 't': its scratch memory takes 2147483648 "
        "bytes beside 8 in use, above the limit of 16777216");
    script_release(&script);
}

/* Tables of a CRT grow with the square of the moduli. */
static void tables_are_counted(void **state)
{
    (void)state;
    enum { K = 1000, TABLES = 16 * K * (K + 4), STORED = 3 * 8 };
    struct script script = {0};
    char message[256];
    script_call(&script, "a", "zeros", "(1,1,1) :int64");
    script_call(&script, "q", "zeros", "(1) :int64");
    script_call(&script, "out", "zeros", "(1,1,1) :int64");
    script_call(&script, "a", "expand", "a 1 1000");
    script_call(&script, "q", "expand", "q 0 1000");
    script_call(&script, "out", "apply_g_decomp_relative_to_full_q", "a q 1 4 out");
    script_finish(&script);
    assert_string_equal(plan_within(&script, TABLES + STORED, 0), "");
    assert_int_equal(script.plan->bytes_peak, TABLES + STORED);
    snprintf(
        message, sizeof message,
        "entry 5 (apply_g_decomp_relative_to_full_q): argument 'a': its scratch memory takes %d "
        "bytes beside %d in use, above the limit of %d",
        TABLES, STORED, TABLES + STORED - 1);
    assert_string_equal(plan_within(&script, TABLES + STORED - 1, 0), message);
    script_release(&script);
}

/* A scalar is stored once, however far apart its uses are. */
static void scalars_are_stored_once(void **state)
{
    (void)state;
    enum { SCALARS = 500 };
    struct script script = {0};
    char arguments[64];
    script_call(&script, "a", "zeros", "(1) :int64");
    for (int i = 0; i < 3 * SCALARS; i++) {
        snprintf(arguments, sizeof arguments, "a %d %d a", -(i % SCALARS), 1 + i % SCALARS);
        script_call(&script, "a", "_modmul_tcc", arguments);
    }
    script_finish(&script);
    assert_string_equal(plan_within(&script, 0, 0), "");
    assert_int_equal(script.plan->constants.count, 2 * SCALARS);
    assert_int_equal(script.plan->constants.storage->elements, 2 * SCALARS);
    const struct step *last = &script.plan->steps[3 * SCALARS];
    assert_int_equal(last->kind, STEP_MODMUL);
    assert_int_equal(script.plan->constants.values[last->in[1]->layout.offset], 1 - SCALARS);
    assert_int_equal(script.plan->constants.values[last->in[2]->layout.offset], SCALARS);
    script_release(&script);
}

/* No tensor, and no set of tensors at one time, may be larger than the limit. */
static void live_tensors_are_limited(void **state)
{
    (void)state;
    struct script script = {0};
    struct plan *plan = NULL;
    script_call(&script, "a", "zeros", "(4) :int64");
    script_call(&script, "b", "zeros", "(4) :int64");
    script_free(&script, "a");
    script_call(&script, "c", "zeros", "(4) :int64");
    script_plan(&script);
    assert_int_equal(script.plan->bytes_peak, 64);
    OK(plan_create(&script.source, NULL, &(struct healcl_plan_options){.memory_limit = 64}, &plan,
                   &error));
    plan_free(plan);
    struct healcl_error refusal = {0};
    assert_int_equal(plan_create(&script.source, NULL,
                                 &(struct healcl_plan_options){.memory_limit = 63}, &plan,
                                 &refusal),
                     HEALCL_REFUSED);
    assert_string_equal(refusal.message, "entry 1 (zeros): argument 'shape': shape [4] takes 32 "
                                         "bytes beside 32 in use, above the limit of 63");
    healcl_error_clear(&refusal);
    assert_int_equal(plan_create(&script.source, NULL,
                                 &(struct healcl_plan_options){.memory_limit = 31}, &plan,
                                 &refusal),
                     HEALCL_REFUSED);
    assert_string_equal(refusal.message, "entry 0 (zeros): argument 'shape': shape [4] takes 32 "
                                         "bytes, above the limit of 31");
    healcl_error_clear(&refusal);
    script_release(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_of_operations),
        cmocka_unit_test(live_tensors_are_limited),
        cmocka_unit_test(copies_count_with_their_operation),
        cmocka_unit_test(operations_count_apart),
        cmocka_unit_test(default_limit),
        cmocka_unit_test(counts_do_not_overflow),
        cmocka_unit_test(downloads_are_counted),
        cmocka_unit_test(tables_are_counted),
        cmocka_unit_test(scalars_are_stored_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
