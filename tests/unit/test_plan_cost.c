/*
 * Costs of segments, counted by hand for small plans, before and after passes, and the time that
 * rates allow.
 */
#include "helper_device.h"

#include "helper_script.h"
#include "plan/passes.h"
#include "tools/measure.h"

#define VALUES(...) ((const int64_t[]){__VA_ARGS__})

static void optimise(struct script *script, uint32_t set)
{
    script_plan(script);
    OK(plan_optimise(script->plan, set, &error));
}

static void expect_cost(const struct segment_cost *cost, const struct segment_cost *expected)
{
    assert_int_equal(cost->launches, expected->launches);
    assert_int_equal(cost->bytes, expected->bytes);
    assert_int_equal(cost->memory, expected->memory);
    for (int i = 0; i < WORKS; i++)
        assert_int_equal(cost->work[i], expected->work[i]);
}

/* Terms of a sum are products of it once they are fused, and take no memory. */
static void write_sum(struct script *script)
{
    script_upload(script, "q", DTYPE_INT64, 1, VALUES(2), VALUES(17, 97));
    script_upload(script, "a", DTYPE_INT64, 3, VALUES(1, 3, 2), VALUES(1, 2, 3, 4, 5, 6));
    script_upload(script, "b", DTYPE_INT64, 3, VALUES(1, 3, 2), VALUES(1, 2, 3, 4, 5, 6));
    script_call(script, "p", "empty", "(1,3,2) :int64");
    script_call(script, "p", "_modmul_ttt", "a b q p");
    script_call(script, "sum", "empty", "(1,2) :int64");
    script_call(script, "sum", "axis_modsum", "p 1 q sum");
    script_free(script, "p");
    script_download(script, "sum");
}

static void fused_products(void **state)
{
    (void)state;
    const struct segment_cost apart = {.launches = 2,
                                       .bytes = (48 + 48 + 16 + 48) + (48 + 16 + 16),
                                       .work = {[WORK_PRODUCTS] = 6},
                                       .memory = 16 + 3 * 48 + 16};
    const struct segment_cost fused = {.launches = 1,
                                       .bytes = 48 + 48 + 16 + 16,
                                       .work = {[WORK_SUMMED_PRODUCTS] = 6},
                                       .memory = 16 + 2 * 48 + 16};
    for (int i = 0; i < 2; i++) {
        struct script script = {0};
        write_sum(&script);
        optimise(&script, i == 0 ? 0 : PASSES_ALL);
        expect_cost(&script.plan->segments[0].before, &apart);
        expect_cost(&script.plan->segments[0].after, i == 0 ? &apart : &fused);
        script_release(&script);
    }
}

/* Only the kernel, and its bytes, count for a vendor's operation with a kernel and a body. */
static void steps_of_vendors(void **state)
{
    (void)state;
    struct script script = {0};
    write_sum(&script);
    script_plan(&script);
    for (size_t i = 0; i < script.plan->step_count; i++) {
        struct step step = script.plan->steps[i];
        struct segment_cost body = {0}, kernel = {0};
        if (step.kind != STEP_MODMUL)
            continue;
        step.side = STEP_OF_BODY;
        step_add_cost(&step, &body);
        step.side = STEP_OF_KERNEL;
        step.kind = STEP_VENDOR;
        step_add_cost(&step, &kernel);
        expect_cost(&body, &(struct segment_cost){0});
        expect_cost(&kernel, &(struct segment_cost){.launches = 1, .bytes = 48 + 48 + 16 + 2 * 48});
        assert_int_equal(step_visits(&step), 6 + 3 * 6);
        script_release(&script);
        return;
    }
    fail();
}

/* A chain does the products of either of its two operations. */
static void products_of_chains(void **state)
{
    (void)state;
    static const struct {
        enum step_kind kinds[2];
        uint64_t products;
    } cases[] = {{{STEP_MODMUL, STEP_MODSUM}, 6},
                 {{STEP_MODSUM, STEP_MODMUL}, 6},
                 {{STEP_MODMUL, STEP_MODMUL}, 12},
                 {{STEP_MODSUM, STEP_MODNEG}, 0}};
    struct script script = {0};
    write_sum(&script);
    script_plan(&script);
    const struct step *product = script.plan->steps;
    while (product->kind != STEP_MODMUL)
        product++;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct step step = *product;
        struct segment_cost cost = {0};
        step.kind = STEP_CHAIN;
        step.value[0] = cases[i].kinds[0];
        step.value[1] = cases[i].kinds[1];
        step_add_cost(&step, &cost);
        assert_int_equal(cost.work[WORK_PRODUCTS], cases[i].products);
    }
    script_release(&script);
}

/* Sums of a batch are more rows of one where rows of all operands go on evenly; else they lie apart
 * by these distances. */
static void sums_of_batches(void **state)
{
    (void)state;
    enum {
        BATCH = 3,
        REPS = 2,
        S = 5,
        K = 4,
        N = 8,
        ROW = K * N,
        ROWS_4 = 4 * ROW,
        TERMS = S * ROW
    };
    static const struct {
        int64_t reps, distance; /* of out's requests, in rows */
        int64_t batch, rows, stride;
    } cases[] = {
        {REPS, 2, 1, 6, ROW}, {REPS, 3, BATCH, 2, ROW}, {1, 1, 1, 3, ROW}, {1, 4, 1, 3, ROWS_4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t reps = cases[i].reps, of_a = reps * TERMS;
        struct storage storage = {.dtype = DTYPE_INT64};
        const struct tensor a = {&storage,
                                 {5, 0, {BATCH, reps, S, K, N}, {of_a, TERMS, ROW, N, 1}}},
                            b = {&storage, {5, 0, {BATCH, reps, S, K, N}, {0, 0, ROW, N, 1}}},
                            out = {
                                &storage,
                                {4, 0, {BATCH, reps, K, N}, {cases[i].distance * ROW, ROW, N, 1}}};
        const struct step step = {.kind = STEP_MODMUL_AXIS_SUM, .out = &out, .in = {&a, &b}};
        const struct product_sum sum = step_product_sum(&step);
        const bool is_apart = cases[i].batch > 1;
        assert_int_equal(sum.batch, cases[i].batch);
        assert_int_equal(sum.out.shape[0], cases[i].rows);
        assert_int_equal(sum.a.shape[0], cases[i].rows);
        assert_int_equal(sum.b.shape[0], cases[i].rows);
        assert_int_equal(sum.out.stride[0], cases[i].stride);
        assert_int_equal(sum.a.stride[0], TERMS);
        assert_int_equal(sum.b.stride[0], 0);
        assert_int_equal(sum.out_distance, is_apart ? cases[i].distance * ROW : 0);
        assert_int_equal(sum.a_distance, is_apart ? of_a : 0);
        assert_int_equal(sum.b_distance, 0);
        assert_int_equal(sum.out.rank, 3);
        assert_int_equal(sum.a.rank, 4);
    }
}

/* Gathers read only the requested elements, and nothing twice. */
static void gathered_bytes(void **state)
{
    (void)state;
    static const int64_t zeros[16];
    static const int rows[] = {1, 4, 8};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct script script = {0};
        script_upload(&script, "x", DTYPE_INT64, 2, VALUES(4, 2), zeros);
        script_upload(&script, "i", DTYPE_INT64, 2, VALUES(rows[i], 2), zeros);
        script_upload(&script, "o", DTYPE_INT64, 2, VALUES(rows[i], 2), zeros);
        script_call(&script, "o", "take_along_axis", "x i 0 o");
        script_plan(&script);
        const struct step *step = &script.plan->steps[script.plan->step_count - 1];
        while (step->kind != STEP_GATHER)
            step--;
        assert_int_equal(step_bytes(step), 16 * (2 * rows[i] + (rows[i] < 4 ? rows[i] : 4)));
        script_release(&script);
    }
}

/* Each amount at its own rate, one after the other; nothing is known without rates. */
static void time_of_a_roofline(void **state)
{
    (void)state;
    struct roofline rates = {.bytes = 1000000000, .work = {100, 200, 400, 500, 1000}};
    const struct segment_cost cost = {
        .launches = 7, .bytes = 2000000000, .work = {100, 100, 100, 100, 100}, .memory = 99};
    assert_int_equal(roofline_time(&rates, &cost), UINT64_C(4050000000));
    assert_int_equal(roofline_time(&rates, &(struct segment_cost){.memory = 1}), 0);
    assert_int_equal(roofline_time(&(struct roofline){0}, &cost), 0);
    const struct segment_cost endless = {.bytes = UINT64_MAX, .work = {UINT64_MAX}};
    assert_int_equal(roofline_time(&rates, &endless), UINT64_MAX);
    rates.overlaps = true; /* the longer of both */
    const struct segment_cost wide = {.bytes = 3000000000, .work = {100}};
    assert_int_equal(roofline_time(&rates, &wide), UINT64_C(3000000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_products),     cmocka_unit_test(steps_of_vendors),
        cmocka_unit_test(products_of_chains), cmocka_unit_test(gathered_bytes),
        cmocka_unit_test(sums_of_batches),    cmocka_unit_test(time_of_a_roofline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
