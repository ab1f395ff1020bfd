/* Failing cases of steps that passes make, in forms that no operation has: sums of products with an
 * axis of requests, and factors of their own for each rep. A part of such a step is one call. */
#include "helper_device.h"

#include <string.h>

#include "helper_script.h"
#include "plan/axes.h"
#include "plan/passes.h"
#include "tools/failing_case.h"

enum {
    REQUESTS = 2,
    REPS = 3,
    TERMS = 5,
    K = 2,
    N = 8,
    ELEMENTS = REQUESTS * REPS * TERMS * K * N
};

/* Products of x [requests,1,terms,n,k] and w [reps,terms,1,k] that are summed up: one step. */
static const struct step *plan_sum(struct script *script)
{
    static int64_t x[REQUESTS * TERMS * N * K], w[REPS * TERMS * K], q[] = {97, 65537};
    for (int i = 0; i < REQUESTS * TERMS * N * K; i++)
        x[i] = 7 * i;
    for (int i = 0; i < REPS * TERMS * K; i++)
        w[i] = 3 * i + 1;
    script_upload(script, "x", DTYPE_INT64, 5, (int64_t[]){REQUESTS, 1, TERMS, N, K}, x);
    script_upload(script, "w", DTYPE_INT64, 4, (int64_t[]){REPS, TERMS, 1, K}, w);
    script_upload(script, "q", DTYPE_INT64, 1, (int64_t[]){K}, q);
    script_call(script, "products", "empty", "(2,3,5,8,2) :int64");
    script_call(script, "products", "modmul", "x w q products");
    script_call(script, "sums", "empty", "(2,3,8,2) :int64");
    script_call(script, "sums", "axis_modsum", "products 2 q sums");
    script_download(script, "sums");
    script_plan(script);
    OK(plan_optimise(script->plan, PASSES_ALL, &error));
    for (size_t i = 0; i < script->plan->step_count; i++)
        if (script->plan->steps[i].kind == STEP_MODMUL_AXIS_SUM)
            return &script->plan->steps[i];
    fail_msg("no pass has made a sum of products");
    return NULL;
}

/* The part of a step of one request. */
static struct step one_request(const struct step *step, struct tensor views[STEP_OPERANDS])
{
    struct step part = *step;
    struct step_axes axes;
    step_axes(step, &axes);
    for (int i = 0; i < STEP_OPERANDS; i++) {
        if (!step_operand(step, i))
            continue;
        views[i] = *step_operand(step, i);
        const int axis = step_axis(&axes, i, 'b');
        if (axis != NO_AXIS)
            views[i].layout = layout_narrow(&views[i].layout, (uint32_t)axis, 1, 1);
        *(i == STEP_OUT ? &part.out : &part.in[i]) = &views[i];
    }
    return part;
}

static void sums_of_requests(void **state)
{
    (void)state;
    static int64_t image[ELEMENTS];
    struct script script = {0};
    struct healcl_device *device = NULL;
    OK(device_open_tested(helper_loader(), NULL, &device, &error));
    const struct step *step = plan_sum(&script);
    assert_int_equal(step->in[0]->layout.rank, 5);
    for (int i = 0; i < ELEMENTS; i++)
        image[i] = 2 * i + 1; /* also of the moduli */
    struct tensor views[STEP_OPERANDS];
    const struct step part = one_request(step, views);
    struct failing_step failing = {.plan = script.plan, .step = &part, .out_before = image};
    for (int i = 0; i < 3; i++)
        failing.inputs[i] = image;
    struct failing_case found;
    failing_case_find(device, &failing, &found); /* it is right: nothing is cut but requests */
    assert_false(found.fails_again);
    assert_non_null(strstr(found.transcript, "modmul_axis_sum"));
    assert_non_null(strstr(found.text, "[3, 5, 2, 8]"));
    free(found.transcript);

    failing.step = step;
    failing_case_find(device, &failing, &found);
    assert_non_null(strstr(found.text, "[3, 5, 2, 8]"));
    free(found.transcript);
    script_release(&script);
    healcl_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {DEVICE_TEST(sums_of_requests)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
