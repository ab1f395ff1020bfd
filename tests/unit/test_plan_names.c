/*
 * Names and lifetimes in plans: which storage a name views, when storages end, what counts as live,
 * segments, limits.
 */
#include "helper_device.h"

#include <stdio.h>
#include <string.h>

#include "helper_script.h"

#define VALUES(...) ((const int64_t[]){__VA_ARGS__})

/* The kinds of a plan's steps as letters: u upload, d download, f fill, c copy, e elementwise,
 * x release, o others. */
static const char *kinds(const struct plan *plan)
{
    static char text[256];
    size_t used = 0;
    for (size_t i = 0; i < plan->step_count && used + 1 < sizeof text; i++)
        switch (plan->steps[i].kind) {
        case STEP_UPLOAD: text[used++] = 'u'; break;
        case STEP_DOWNLOAD: text[used++] = 'd'; break;
        case STEP_FILL: text[used++] = 'f'; break;
        case STEP_COPY: text[used++] = 'c'; break;
        case STEP_MODMUL:
        case STEP_MODSUM:
        case STEP_MOD: text[used++] = 'e'; break;
        case STEP_RELEASE: text[used++] = 'x'; break;
        default: text[used++] = 'o'; break;
        }
    text[used] = 0;
    return text;
}

static const struct step *step_of(const struct script *script, enum step_kind kind, int skip)
{
    for (size_t i = 0; i < script->plan->step_count; i++)
        if (script->plan->steps[i].kind == kind && skip-- == 0)
            return &script->plan->steps[i];
    fail_msg("no such step");
    return NULL;
}

/* A storage lives until the last name that views it is gone. */
static void views_keep_storages(void **state)
{
    (void)state;
    struct script script = {0};
    script_call(&script, "a", "zeros", "(4) :int64");
    script_call(&script, "part", "get_slice", "a [1:3:1]");
    script_free(&script, "a");
    script_call(&script, "part", "set_const_val", "part 5");
    script_call(&script, "again", "new_reference", "part");
    script_call(&script, NULL, "free_device_tensor", "part");
    script_download(&script, "again");
    script_free(&script, "again");
    script_plan(&script);
    assert_string_equal(kinds(script.plan), "ffdx");
    assert_int_equal(script.plan->bytes_peak, 32);
    assert_int_equal(step_of(&script, STEP_FILL, 1)->out->layout.offset, 1);
    assert_int_equal(script.plan->segments[0].frees, 2);
    assert_int_equal(script.plan->segments[0].counts[OPERATION_FREE_DEVICE_TENSOR], 1);
    script_release(&script);
}

/* Binding a bound name drops the old binding, and the storage where that was the last. */
static void names_are_bound_again(void **state)
{
    (void)state;
    struct script script = {0};
    script_call(&script, "a", "zeros", "(4) :int64");
    script_call(&script, "a", "zeros", "(2) :int64");
    script_call(&script, "a", "reshape", "a (2,1)"); /* of itself: nothing ends */
    script_call(&script, "a", "set_const_val", "a 1");
    script_plan(&script);
    assert_string_equal(kinds(script.plan), "ffxf");
    assert_int_equal(step_of(&script, STEP_RELEASE, 0)->in[0]->storage->elements, 4);
    assert_int_equal(step_of(&script, STEP_FILL, 2)->out->layout.rank, 2);
    /* Both were live when the second came. */
    assert_int_equal(script.plan->bytes_peak, 48);
    script_release(&script);
}

/* An operation's out may be another name for what it writes. */
static void out_names_alias(void **state)
{
    (void)state;
    struct script script = {0};
    script_call(&script, "a", "zeros", "(4) :int64");
    script_call(&script, "b", "_mod_tc", "a 7 a");
    script_free(&script, "a");
    script_download(&script, "b");
    script_free(&script, "b");
    script_plan(&script);
    assert_string_equal(kinds(script.plan), "fedx");
    script_release(&script);
}

/* Inputs that overlap the output are copied to a storage that ends with the operation. */
static void overlaps_are_copied(void **state)
{
    (void)state;
    struct script script = {0};
    script_call(&script, "a", "zeros", "(5) :int64");
    script_call(&script, "low", "get_slice", "a [0:4:1]");
    script_call(&script, "high", "get_slice", "a [1:5:1]");
    script_call(&script, "low", "_modsum_ttc", "low high 7 low"); /* low in place, high copied */
    script_plan(&script);
    assert_string_equal(kinds(script.plan), "fcex");
    const struct step *step = step_of(&script, STEP_MODSUM, 0);
    assert_ptr_equal(step->in[0]->storage, step->out->storage);
    assert_ptr_not_equal(step->in[1]->storage, step->out->storage);
    assert_int_equal(script.plan->bytes_peak, 40 + 32);
    script_release(&script);

    /* Halves do not overlap; a repeated element is copied once. */
    script_call(&script, "a", "zeros", "(8) :int64");
    script_call(&script, "even", "get_slice", "a [0:8:2]");
    script_call(&script, "odd", "get_slice", "a [1:8:2]");
    script_call(&script, "even", "_modsum_ttc", "odd odd 7 even");
    script_call(&script, "one", "get_slice", "a [0:1:1]");
    script_call(&script, "even", "_modsum_ttc", "odd one 7 even");
    script_plan(&script);
    assert_string_equal(kinds(script.plan), "fecex");
    assert_int_equal(step_of(&script, STEP_RELEASE, 0)->in[0]->storage->elements, 1);
    script_release(&script);
}

/* Reshapes of what cannot be viewed copy, others do not. */
static void copies_of_views(void **state)
{
    (void)state;
    struct script script = {0};
    script_call(&script, "a", "zeros", "(2,3) :int64");
    script_call(&script, "b", "reshape", "a (3,2)");
    script_call(&script, "c", "moveaxis", "a 0 1");
    script_call(&script, "d", "contiguous", "a");
    script_plan(&script);
    assert_string_equal(kinds(script.plan), "f");
    script_release(&script);
    script_call(&script, "a", "zeros", "(2,3) :int64");
    script_call(&script, "c", "moveaxis", "a 0 1");
    script_call(&script, "e", "reshape", "c (6)");
    script_call(&script, "f", "contiguous", "c");
    script_call(&script, "g", "flatten", "c 0 -1");
    script_plan(&script);
    assert_string_equal(kinds(script.plan), "fccc");
    assert_int_equal(script.plan->bytes_peak, 4 * 48);
    script_release(&script);
}

/* Scalars are stored once while they are near. */
static void scalars(void **state)
{
    (void)state;
    struct script script = {0};
    script_call(&script, "a", "zeros", "(4) :int64");
    for (int i = 0; i < 10; i++)
        script_call(&script, "a", "_modmul_tcc", "a 3 7 a");
    script_plan(&script);
    assert_int_equal(script.plan->constants.count, 2);
    assert_int_equal(script.plan->constants.values[0], 3);
    assert_int_equal(script.plan->constants.values[1], 7);
    assert_int_equal(script.plan->constants.storage->elements, 2);
    script_release(&script);
}

static void segments(void **state)
{
    (void)state;
    struct script script = {0};
    script_upload(&script, "a", DTYPE_INT32, 1, VALUES(3), VALUES(1, 2, 3));
    script_segment_start(&script, "one");
    script_call(&script, "a", "_mod_tc", "a 7 a");
    script_download(&script, "a");
    script_segment_end(&script);
    script_segment_start(&script, "two");
    script_segment_end(&script);
    script_free(&script, "a");
    script_plan(&script);
    const struct plan *plan = script.plan;
    const char *const names[] = {"", "one", "two", ""};
    const size_t steps[] = {1, 2, 0, 1};
    const uint64_t up[] = {12, 0, 0, 0}, down[] = {0, 12, 0, 0}, operations_of[] = {1, 2, 0, 0};
    assert_int_equal(plan->segment_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(plan->segments[i].name, names[i]);
        assert_int_equal(plan->segments[i].step_count, steps[i]);
        assert_int_equal(plan->segments[i].bytes_up, up[i]);
        assert_int_equal(plan->segments[i].bytes_down, down[i]);
        assert_int_equal(plan->segments[i].operations, operations_of[i]);
    }
    assert_int_equal(plan->bytes_up, 12);
    assert_int_equal(plan->bytes_down, 12);
    assert_int_equal(plan->results, 1);
    assert_int_equal(plan->expected, 0);
    assert_int_equal(plan->tensors, 1);
    assert_int_equal(plan->entries, 8);
    script_release(&script);
}

/* No tensor, and no set of live tensors, may be larger than the limit. */
static void limits(void **state)
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
    OK(plan_create(&script.source, NULL, &(struct healcl_limits){.memory_bytes = 64}, &plan,
                   &error));
    plan_free(plan);
    struct healcl_error refusal = {0};
    assert_int_equal(plan_create(&script.source, NULL, &(struct healcl_limits){.memory_bytes = 63},
                                 &plan, &refusal),
                     HEALCL_REFUSED);
    assert_string_equal(refusal.message, "entry 1 (zeros): argument 'shape': shape [4] takes 32 "
                                         "bytes beside 32 in use, above the limit of 63");
    healcl_error_clear(&refusal);
    assert_int_equal(plan_create(&script.source, NULL, &(struct healcl_limits){.memory_bytes = 31},
                                 &plan, &refusal),
                     HEALCL_REFUSED);
    assert_string_equal(refusal.message, "entry 0 (zeros): argument 'shape': shape [4] takes 32 "
                                         "bytes, above the limit of 31");
    healcl_error_clear(&refusal);
    script_release(&script);
}

/* Thousands of names at a time: none is lost. */
static void many_names(void **state)
{
    (void)state;
    enum { NAMES = 5000 };
    struct script script = {0};
    char name[32], arguments[64];
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "t%d", i);
        script_call(&script, name, "zeros", "(1) :int64");
    }
    for (int i = 0; i < NAMES; i += 2) {
        snprintf(name, sizeof name, "t%d", i);
        script_free(&script, name);
    }
    for (int i = 1; i < NAMES; i += 2) {
        snprintf(name, sizeof name, "t%d", i);
        snprintf(arguments, sizeof arguments, "t%d %d", i, i);
        script_call(&script, name, "set_const_val", arguments);
    }
    script_plan(&script);
    for (int i = 1; i < NAMES; i += 2) {
        const struct step *step = &script.plan->steps[NAMES + NAMES / 2 + i / 2];
        assert_int_equal(step->kind, STEP_FILL);
        assert_int_equal(step->value[0], i);
        assert_int_equal(step->out->storage->id, i + 1); /* behind the constants */
    }
    script_release(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_keep_storages),
        cmocka_unit_test(names_are_bound_again),
        cmocka_unit_test(out_names_alias),
        cmocka_unit_test(overlaps_are_copied),
        cmocka_unit_test(copies_of_views),
        cmocka_unit_test(scalars),
        cmocka_unit_test(segments),
        cmocka_unit_test(limits),
        cmocka_unit_test(many_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
