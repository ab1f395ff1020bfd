/* Less device memory than a plan's tensors take: what moves when, in which slices steps are done,
 * and that all results are as without a limit. */
#include "helper_device.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "helper_script.h"
#include "plan/memory.h"
#include "run/run.h"

enum { ROWS = 4, COLUMNS = 1024, BYTES = ROWS * COLUMNS * 8 }; /* of a tensor */

/* ---------------------------------------------------------------- moves */

struct moves {
    char text[512];
    const struct plan *plan;
};

static enum healcl_status note_move(void *context, enum memory_move move,
                                    const struct storage *storage, struct healcl_error *e)
{
    static const char *const names[] = {"upload", "check", "hold",  "spill",
                                        "back",   "drop",  "forget"};
    struct moves *moves = context;
    size_t length = strlen(moves->text);
    (void)e;
    snprintf(moves->text + length, sizeof moves->text - length, " %s %u", names[move], storage->id);
    return HEALCL_OK;
}

static void expect_moves(const struct plan *plan, uint64_t limit, const char *expected)
{
    struct moves moves = {.plan = plan};
    const struct memory_mover mover = {note_move, &moves, 0};
    struct memory memory;
    struct slices slices;
    OK(memory_init(&memory, plan, limit, &mover, &error));
    for (size_t i = 0; i < plan->step_count; i++) {
        OK(memory_begin_step(&memory, i, &slices, &error));
        OK(memory_end_step(&memory, &slices, &error));
    }
    assert_string_equal(moves.text, expected);
    memory_release(&memory);
}

static void upload(struct script *script, const char *name)
{
    static int64_t values[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (i * 37 + name[0]) % 1009;
    script_upload(script, name, DTYPE_INT64, 2, (int64_t[]){ROWS, COLUMNS}, values);
}

/* Storages 1 and 2 are a and b, 3 to 5 are c, d and e. */
static void add_program(struct script *script)
{
    static const char shape[] = "(4,1024) :int64";
    script_segment_start(script, "s");
    upload(script, "a");
    upload(script, "b");
    script_call(script, "c", "empty", shape);
    script_call(script, "d", "empty", shape);
    script_call(script, "e", "empty", shape);
    script_call(script, "c", "_modsum_ttc", "a b 1009 c");
    script_call(script, "d", "_modmul_ttc", "a a 1009 d");
    script_call(script, "e", "_modmul_ttc", "d b 1009 e");
    script_call(script, "e", "_modsum_ttc", "e c 1009 e");
    script_free(script, "c");
    script_download(script, "e");
    script_download(script, "a");
    script_segment_end(script);
    script_plan(script);
}

static void the_farthest_goes(void **state)
{
    (void)state;
    struct script script = {0};
    struct memory_price price;
    uint64_t peak;
    add_program(&script);
    OK(memory_predict(script.plan, 0, &price, &peak, &error));
    assert_int_equal(peak, script.plan->bytes_peak);
    assert_int_equal(price.spilled + price.brought_back + price.streamed_again, 0);
    expect_moves(script.plan, 0, " upload 1 upload 2 drop 3");
    /* Three of five: c, which is used last, is spilled for d; a, which is handed out at the end,
     * is dropped for e, since its upload has it; and d, which is done with, for c. */
    expect_moves(script.plan, 3 * BYTES,
                 " upload 1 upload 2 spill 3 drop 3 drop 1 drop 4 back 3 drop 3 forget 3 hold 1");
    OK(memory_predict(script.plan, 3 * BYTES, &price, &peak, &error));
    assert_int_equal(peak, 3 * BYTES);
    assert_int_equal(price.spilled, BYTES);
    assert_int_equal(price.brought_back, BYTES);
    assert_int_equal(price.streamed_again, 0);
    script_release(&script);
}

static void steps_are_cut(void **state)
{
    (void)state;
    struct script script = {0};
    const struct step *step;
    struct memory memory;
    struct slices slices;
    add_program(&script);
    assert_int_equal(memory_least(script.plan, UINT64_MAX, &step), 3 * BYTES / ROWS);
    assert_int_equal(step->kind, STEP_MODSUM);
    OK(memory_init(&memory, script.plan, 2 * BYTES, NULL, &error));
    for (size_t i = 0; script.plan->steps[i].kind != STEP_MODSUM; i++) {
        OK(memory_begin_step(&memory, i, &slices, &error));
        OK(memory_end_step(&memory, &slices, &error));
    }
    size_t number = 0;
    while (script.plan->steps[number].kind != STEP_MODSUM)
        number++;
    OK(memory_begin_step(&memory, number, &slices, &error));
    assert_true(slices.most > 0 && slices.most < slices.size);
    assert_int_equal(slices.axis[0], slices.axis[STEP_OUT]);
    assert_int_equal(slices.axis[2], -1); /* the modulus is a scalar */
    memory_release(&memory);
    assert_int_equal(memory_init(&memory, script.plan, 3 * BYTES / ROWS - 1, NULL, &error),
                     HEALCL_REFUSED);
    assert_string_equal(error.message, "entry 6 (_modsum_ttc): needs at least 24576 bytes of "
                                       "device memory, above the limit of 24575");
    script_release(&script);
}

/* A single element cannot be cut: its storage is needed as a whole, and once. */
static void single_elements_are_not_cut(void **state)
{
    (void)state;
    struct script script = {0};
    const struct step *step;
    upload(&script, "a");
    script_call(&script, "v", "get_slice", "a [1:2,0:1]");
    script_call(&script, "o", "empty", "(1,1) :int64");
    script_call(&script, "o", "_modmul_ttc", "v v 1009 o");
    script_plan(&script);
    assert_int_equal(memory_least(script.plan, UINT64_MAX, &step), BYTES + 8);
    assert_int_equal(step->kind, STEP_MODMUL);
    script.plan->step_count = 1; /* what only moves needs no memory at one time */
    assert_int_equal(memory_least(script.plan, UINT64_MAX, &step), 0);
    assert_null(step);
    script_release(&script);
}

/* ---------------------------------------------------------------- on a device */

static struct healcl_device *device;

/* Runs a plan with a limit, 0 for none; what it measured goes to report. */
static void run_limited(const struct script *script, uint64_t limit, struct script_results *results,
                        struct healcl_report *report)
{
    struct executor *executor = NULL;
    OK(device_executor_create(device, script->plan, &executor, &error));
    if (limit > 0)
        OK(device_executor_limit(executor, limit, &error));
    OK(script_run(script, executor, results, &error));
    device_executor_price(executor, report);
    executor->class->destroy(executor);
}

/* Tensors so large that what else is allocated does not change what is moved. */
static void the_price_is_as_predicted(void **state)
{
    (void)state;
    struct script script = {0};
    struct script_results expected = {0};
    add_program(&script);
    OK(script_run_on(&script, NULL, &expected, &error));
    for (int quarters = 4; quarters <= 20; quarters++) {
        struct script_results results = {0};
        struct healcl_report report = {0};
        struct memory_price price;
        uint64_t peak, limit = (uint64_t)quarters * BYTES / 4;
        OK(memory_predict(script.plan, limit, &price, &peak, &error));
        run_limited(&script, limit + BYTES / 16, &results, &report); /* with the status */
        assert_true(script_same_results(&results, &expected));
        assert_int_equal(report.tensor_bytes_peak, peak);
        assert_int_equal(report.bytes_spilled, price.spilled);
        assert_int_equal(report.bytes_brought_back, price.brought_back);
        assert_int_equal(report.bytes_streamed_again, price.streamed_again);
        script_results_release(&results);
    }
    script_results_release(&expected);
    script_release(&script);
}

/* With the least that each may have, all steps are cut that can be. */
static void transcripts_run_with_the_least(void **state)
{
    (void)state;
    DIR *folder = opendir(TRANSCRIPTS);
    assert_non_null(folder);
    int count = 0;
    for (const struct dirent *file = readdir(folder); file; file = readdir(folder)) {
        const char *ending = strrchr(file->d_name, '.');
        if (!ending || strcmp(ending, ".json") != 0)
            continue;
        char path[512];
        struct script script = {0};
        struct script_results expected = {0};
        const struct step *step;
        snprintf(path, sizeof path, "%s/%s", TRANSCRIPTS, file->d_name);
        OK(script_open(&script, path, &error));
        OK(script_run_on(&script, NULL, &expected, &error));
        uint64_t least = memory_least(script.plan, UINT64_MAX, &step);
        for (uint64_t limit = least; limit > 0 && limit <= 4 * least; limit *= 2) {
            struct script_results results = {0};
            struct healcl_report report = {0};
            run_limited(&script, limit, &results, &report);
            if (!script_same_results(&results, &expected))
                fail_msg("%s differs with %llu bytes", file->d_name, (unsigned long long)limit);
            assert_true(report.tensor_bytes_peak <= limit);
            script_results_release(&results);
        }
        script_results_release(&expected);
        script_release(&script);
        count++;
    }
    closedir(folder);
    assert_true(count > 10);
}

/* A failed check in a slice is reported as in the whole. */
static void refusals_name_the_element(void **state)
{
    (void)state;
    struct script script = {0};
    struct script_results results = {0};
    struct executor *executor = NULL;
    static int64_t q[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        q[i] = i == 3 * COLUMNS + 5 ? -7 : 1009;
    upload(&script, "a");
    script_upload(&script, "q", DTYPE_INT64, 2, (int64_t[]){ROWS, COLUMNS}, q);
    script_call(&script, "a", "_modsum_ttt", "a a q a");
    script_download(&script, "a");
    script_plan(&script);
    OK(device_executor_create(device, script.plan, &executor, &error));
    OK(device_executor_limit(executor, BYTES, &error));
    assert_int_equal(script_run(&script, executor, &results, &error), HEALCL_REFUSED);
    assert_string_equal(error.message,
                        "entry 2 (_modsum_ttt): argument 'p': -7 at [3, 5] is below 1");
    executor->class->destroy(executor);
    script_results_release(&results);
    script_release(&script);
}

static int open_device(void **state)
{
    (void)state;
    OK(healcl_device_open(NULL, &device, &error));
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    healcl_device_close(device);
    healcl_error_clear(&error);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_farthest_goes),
        cmocka_unit_test(steps_are_cut),
        cmocka_unit_test(single_elements_are_not_cut),
        cmocka_unit_test(the_price_is_as_predicted),
        cmocka_unit_test(transcripts_run_with_the_least),
        cmocka_unit_test(refusals_name_the_element),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
