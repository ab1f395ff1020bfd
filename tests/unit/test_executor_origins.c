/*
 * Steps that come from several entries, as a pass that fuses makes them: here by hand, from a plan
 * of modmul and axis_modsum. Both executors blame the entry that an offending input came with, and
 * share out the time.
 */
#include "helper_one_device.h"

#include "helper_script.h"

#define VALUES(...) ((const int64_t[]){__VA_ARGS__})

enum { MODMUL_ENTRY = 5, SUM_ENTRY };

/* The step of an entry that computes something. */
static struct step *step_of(const struct plan *plan, size_t entry)
{
    for (size_t i = 0; i < plan->step_count; i++)
        if (step_origin(&plan->steps[i], NO_INPUT)->entry == entry)
            return &plan->steps[i];
    fail_msg("entry %zu has no step", entry);
    return NULL;
}

/* The step of the sum stands for both, in a segment of its own, and reads the moduli of modmul or
 * its own. */
static void plan_fused(struct script *script, const int64_t *p, const int64_t *q, bool reads_p)
{
    script_upload(script, "a", DTYPE_INT64, 2, VALUES(2, 3), VALUES(1, 2, 3, 4, 5, 6));
    script_upload(script, "p", DTYPE_INT64, 1, VALUES(3), p);
    script_upload(script, "q", DTYPE_INT64, 1, VALUES(3), q);
    script_call(script, "product", "zeros", "(2,3) :int64");
    script_call(script, "sum", "empty", "(3) :int64");
    script_call(script, "product", "_modmul_ttt", "a a p product");
    script_call(script, "sum", "axis_modsum", "product 0 q sum");
    script_plan(script);
    struct plan *plan = script->plan;
    struct step *modmul = step_of(plan, MODMUL_ENTRY), *sum = step_of(plan, SUM_ENTRY);
    struct step fused = *sum;
    OK(step_join_origins(plan, &fused, modmul, sum, &error));
    for (int i = 0; i < STEP_INPUTS; i++)
        fused.arguments[i].origin = 1;
    if (reads_p) {
        fused.in[1] = plan->steps[1].out;
        fused.arguments[1] = modmul->arguments[2];
    }
    *modmul = fused;
    assert_ptr_equal(sum, &plan->steps[--plan->step_count]);
    plan->segments[0].step_count--;
}

static void expect_refusal(struct script *script, const char *message)
{
    struct script_results results = {0};
    struct healcl_error refusal = {0};
    assert_int_equal(script_run_on(script, NULL, &results, &refusal), HEALCL_REFUSED);
    assert_string_equal(refusal.message, message);
    assert_int_equal(script_run_on(script, device, &results, &refusal), HEALCL_REFUSED);
    assert_string_equal(refusal.message, message);
    healcl_error_clear(&refusal);
    script_release(script);
}

static void errors_name_the_entry_of_the_input(void **state)
{
    (void)state;
    struct script script = {0};
    plan_fused(&script, VALUES(7, 0, 7), VALUES(5, 5, 5), true);
    expect_refusal(&script, "entry 5 (_modmul_ttt): argument 'p': 0 at [1] is below 1");
    plan_fused(&script, VALUES(7, 0, 7), VALUES(5, 5, -1), false);
    expect_refusal(&script, "entry 6 (axis_modsum): argument 'q': -1 at [2] is below 1");
}

/* An argument is told of an input alone, and of an operation that somebody has called. */
static void errors_tell_arguments_of_inputs(void **state)
{
    (void)state;
    struct script script = {0};
    plan_fused(&script, VALUES(7, 7, 7), VALUES(5, 5, 5), true);
    const struct step *fused = step_of(script.plan, SUM_ENTRY);
    struct origin of_body[] = {fused->origins->of[0], fused->origins->of[1]};
    struct step inside = *fused;
    of_body[0].outer = of_body[0].form->operation;
    inside.origins = &(struct origins){.count = 2, .of = of_body};
    const struct {
        const struct step *step;
        int input, argument;
    } cases[] = {{fused, 1, 2}, {fused, 0, 0}, {fused, NO_INPUT, -1}, {&inside, 1, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct healcl_error told = {.argument = 77};
        error_prefix_step(&told, cases[i].step, cases[i].input);
        assert_int_equal(told.argument, cases[i].argument);
    }
    script_release(&script);
}

static void run_timed(const struct script *script, struct executor *executor)
{
    struct script_results results = {0};
    struct result_sink sink = script_sink(&results);
    uint64_t nanoseconds[OPERATION_COUNT] = {0};
    struct segment_result result = {.operation_nanoseconds = nanoseconds};
    OK(executor->class->run_segment(executor, &script->plan->segments[0], &sink, &result, &error));
    assert_true(result.operation_nanoseconds[OPERATION_MODMUL] > 0);
    assert_true(result.operation_nanoseconds[OPERATION_AXIS_MODSUM] > 0);
    executor->class->destroy(executor);
    script_results_release(&results);
}

static void both_operations_have_times(void **state)
{
    (void)state;
    struct script script = {0};
    struct executor *executor = NULL;
    plan_fused(&script, VALUES(7, 7, 7), VALUES(5, 5, 5), true);
    OK(reference_executor_create(script.plan, &executor, &error));
    run_timed(&script, executor);
    OK(device_executor_create(device, script.plan, true, &executor, &error));
    run_timed(&script, executor);
    script_release(&script);
}

static void expect_shares(const struct origins *origins, uint64_t amount, uint64_t modmul,
                          uint64_t sum)
{
    uint64_t amounts[OPERATION_COUNT] = {0};
    origins_share(origins, amount, amounts);
    assert_int_equal(amounts[OPERATION_MODMUL], modmul);
    assert_int_equal(amounts[OPERATION_AXIS_MODSUM], sum);
}

static void shares_add_up(void **state)
{
    (void)state;
    struct script script = {0};
    plan_fused(&script, VALUES(7, 7, 7), VALUES(5, 5, 5), true);
    const struct origins *fused = step_of(script.plan, SUM_ENTRY)->origins;
    assert_int_equal(fused->of[0].visits, 6); /* the product's elements */
    assert_int_equal(fused->of[1].visits, 9); /* the terms, and the sums */
    expect_shares(fused, 15, 6, 9);
    expect_shares(fused, 16, 6, 10);
    expect_shares(fused, 1, 0, 1);
    expect_shares(fused, (uint64_t)1 << 50, 450359962737049, 675539944105575);
    struct origin unknown[] = {fused->of[0], fused->of[1]};
    unknown[0].visits = 1;
    unknown[1].visits = 0;
    expect_shares(&(struct origins){.count = 2, .of = unknown}, 11, 11, 0);
    unknown[0].visits = unknown[1].visits = 0;
    expect_shares(&(struct origins){.count = 2, .of = unknown}, 11, 5, 6);
    expect_shares(&(struct origins){.count = 1, .of = unknown}, 11, 11, 0);
    script_release(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_name_the_entry_of_the_input),
        cmocka_unit_test(errors_tell_arguments_of_inputs),
        cmocka_unit_test(both_operations_have_times),
        cmocka_unit_test(shares_add_up),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
