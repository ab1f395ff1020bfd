/* Operations that are added to a table at run time: planned, run, counted and reported like the
 * built-in ones. */
#include "helper_one_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper_script.h"
#include "plan/infer.h"
#include "plan/transcript.h"
#include "report/report.h"

#define VALUES(...) ((const int64_t[]){__VA_ARGS__})

/* Input i of a step, broadcast to its output. */
static enum healcl_status set_operand(struct call *call, struct step *step, int i, const char *name,
                                      struct healcl_error *failure)
{
    struct layout view;
    TRY(layout_broadcast(&tensor_of(call, name)->layout, &step->out->layout, &view, failure));
    return set_input(call, step, i, name, &view, failure);
}

/* out = -(a * a mod p) mod p, in two steps. */
static enum healcl_status infer_negsquare(struct call *call, struct healcl_error *failure)
{
    const struct tensor *out = tensor_of(call, "out");
    struct step square = planner_step(call->planner, STEP_MODMUL, out);
    TRY(set_operand(call, &square, 0, "a", failure));
    TRY(set_operand(call, &square, 1, "a", failure));
    TRY(set_operand(call, &square, 2, "p", failure));
    TRY(add_compute(call, &square, failure));
    struct step negative = planner_step(call->planner, STEP_MODNEG, out);
    TRY(set_operand(call, &negative, 0, "out", failure));
    TRY(set_operand(call, &negative, 2, "p", failure));
    return add_compute(call, &negative, failure);
}

static const struct healcl_parameter_info parameters[] = {{"a", HEALCL_PARAMETER_TENSOR, false},
                                                          {"p", HEALCL_PARAMETER_TENSOR, false},
                                                          {"out", HEALCL_PARAMETER_OUT, false}};
static const struct form negsquare_forms[] = {
    {.name = "negsquare", .parameter_count = 3, .parameters = parameters},
    {.name = "negative_square", .parameter_count = 3, .parameters = parameters}};
static const struct operation negsquare = {.name = "negsquare",
                                           .family = "elementwise",
                                           .dtypes = {.values = 1u << DTYPE_INT64},
                                           .result = RESULT_ALIAS,
                                           .meaning = "the negative of a square",
                                           .infer = infer_negsquare};

static struct operation_table *new_table(void)
{
    struct operation_table *table = NULL;
    OK(operation_table_create(&table, &error));
    OK(operation_table_add(table, &negsquare, negsquare_forms, 2, &error));
    return table;
}

static void write_script(struct script *script, const struct operation_table *table,
                         const int64_t *moduli)
{
    script->operations = table;
    script_upload(script, "a", DTYPE_INT64, 2, VALUES(2, 3), VALUES(1, 2, 3, 4, 5, 6));
    script_upload(script, "p", DTYPE_INT64, 1, VALUES(3), moduli);
    script_call(script, "out", "empty", "(2,3) :int64");
    script_call(script, "out", "_negsquare", "a p out");
    script_call(script, "out", "negative_square", "out p out");
    script_call(script, "out", "_modsum_ttt", "out a p out");
    script_download(script, "out");
    script_plan(script);
}

static void runs_like_others(void **state)
{
    (void)state;
    struct operation_table *table = new_table();
    struct healcl_device *const devices[] = {NULL, device};
    for (int i = 0; i < 2; i++) {
        struct script script = {0};
        struct script_results results = {0};
        write_script(&script, table, VALUES(7, 11, 13));
        OK(script_run_on(&script, devices[i], &results, &error));
        /* a - a^4 mod 7, 11, 13 */
        assert_memory_equal(results.values, VALUES(0, 8, 0, 0, 7, 10), 6 * sizeof(int64_t));
        script_results_release(&results);
        script_release(&script);
    }
    operation_table_free(table);
}

static void data_errors_name_it(void **state)
{
    (void)state;
    struct operation_table *table = new_table();
    struct healcl_device *const devices[] = {NULL, device};
    for (int i = 0; i < 2; i++) {
        struct script script = {0};
        struct script_results results = {0};
        struct healcl_error refusal = {0};
        write_script(&script, table, VALUES(7, 0, 13));
        assert_int_equal(script_run_on(&script, devices[i], &results, &refusal), HEALCL_REFUSED);
        assert_string_equal(refusal.message,
                            "entry 3 (_negsquare): argument 'p': 0 at [1] is below 1");
        script_release(&script);
    }
    operation_table_free(table);
}

/* What has been printed since the last time contains this. */
static void expect_printed(FILE *stream, char **text, const char *part)
{
    assert_int_equal(fflush(stream), 0);
    if (!strstr(*text, part))
        fail_msg("no '%s' in %s", part, *text);
    memset(*text, 0, strlen(*text));
    rewind(stream);
}

static void is_counted_and_reported(void **state)
{
    (void)state;
    struct operation_table *table = new_table();
    struct script script = {0};
    write_script(&script, table, VALUES(7, 11, 13));
    assert_int_equal(script.plan->segments[0].counts[OPERATION_COUNT], 2);
    assert_int_equal(script.plan->segments[0].counts[OPERATION_MODSUM], 1);

    struct healcl_transcript transcript = {.source = script.source, .plan = script.plan};
    struct healcl_report *report = NULL;
    const struct healcl_run_options options = {.profile = true};
    OK(healcl_run(&transcript, device, &options, &report, &error));
    const struct healcl_segment_profile *segment = &report->segments[0];
    const struct healcl_operation_profile *last = &segment->profiles[segment->profile_count - 1];
    assert_string_equal(last->name, "negsquare");
    assert_int_equal(last->count, 2);
    assert_true(last->nanoseconds > 0);

    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    const struct run_facts facts = {.file = "made", .plan = script.plan, .report = report};
    const struct style style = {.stream = stream};
    cJSON *document = report_run(&facts);
    report_run_text(document, &style, true);
    expect_printed(stream, &text, "\nnegsquare ");
    cJSON_Delete(document);
    document = report_plan("made", script.plan, NULL, &(struct roofline){0});
    report_plan_text(document, &style);
    expect_printed(stream, &text, "\nnegsquare ");
    cJSON_Delete(document);
    fclose(stream);
    free(text);
    healcl_report_free(report);
    script_release(&script);
    operation_table_free(table);
}

static void expect_refused(struct operation_table *table, const char *name, const char *form_name,
                           const char *message)
{
    struct operation operation = negsquare;
    struct form form = negsquare_forms[0];
    struct healcl_error refusal = {0};
    operation.name = name;
    form.name = form_name;
    assert_int_equal(operation_table_add(table, &operation, &form, 1, &refusal), HEALCL_REFUSED);
    assert_string_equal(refusal.message, message);
}

static void names_are_not_taken_twice(void **state)
{
    (void)state;
    struct operation_table *table = new_table();
    assert_int_equal(operation_count(table), OPERATION_COUNT + 1);
    expect_refused(table, "modmul", "new", "there is an operation 'modmul' already");
    expect_refused(table, "new", "modmul_ttt", "there is an operation 'modmul_ttt' already");
    expect_refused(table, "negsquare", "new", "there is an operation 'negsquare' already");
    expect_refused(table, "new", "negative_square",
                   "there is an operation 'negative_square' already");
    expect_refused(table, "new", "_new",
                   "the name '_new' of an operation begins with an underscore");
    assert_int_equal(operation_count(table), OPERATION_COUNT + 1);
    assert_string_equal(operation_at(table, OPERATION_COUNT)->name, "negsquare");
    operation_table_free(table);
}

/* Its arguments are checked like those of others, and only the table that has it knows it. */
static void arguments_are_checked(void **state)
{
    (void)state;
    struct operation_table *table = new_table();
    const struct {
        const struct operation_table *table;
        const char *arguments, *message;
    } cases[] = {
        {table, "a a a",
         "entry 1 (negsquare): argument 'out': int32 is not among the dtypes of this operation "
         "(int64)"},
        {table, "a a", "entry 1 (negsquare): takes 3 arguments, not 2"},
        {NULL, "a a a", "entry 1 (negsquare): unknown operation"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct script script = {0};
        struct plan *plan = NULL;
        struct healcl_error refusal = {0};
        script_upload(&script, "a", DTYPE_INT32, 1, VALUES(1), VALUES(1));
        script_call(&script, "a", "negsquare", cases[i].arguments);
        script_finish(&script);
        assert_int_equal(plan_create(&script.source, cases[i].table, NULL, &plan, &refusal),
                         HEALCL_REFUSED);
        assert_string_equal(refusal.message, cases[i].message);
        script_release(&script);
    }
    operation_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_like_others),        cmocka_unit_test(data_errors_name_it),
        cmocka_unit_test(is_counted_and_reported), cmocka_unit_test(names_are_not_taken_twice),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
