/* Plans that grow by calls: ids of storages come again, what is refused leaves nothing, steps and
 * integers are forgotten in time, and memory with them. */
#include "core/arena.h"
#include "plan/eager.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct healcl_error error;
static struct eager_plan eager;

#define OK(expression) assert_int_equal(expression, HEALCL_OK)

static int set_up(void **state)
{
    (void)state;
    return eager_plan_init(&eager, NULL, &error) == HEALCL_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    healcl_error_clear(&error);
    eager_plan_release(&eager);
    return 0;
}

/* ---------------------------------------------------------------- calls */

static struct argument integer(int64_t value)
{
    return (struct argument){.kind = ARGUMENT_INT, .integer = value};
}

static struct argument bound(const struct tensor *tensor)
{
    return (struct argument){.kind = ARGUMENT_DEVICE_TENSOR,
                             .tensor = {.name = "", .bound = tensor}};
}

static enum healcl_status call(const char *operation, uint32_t count,
                               const struct argument *arguments, const struct tensor **result,
                               size_t *first)
{
    struct entry entry = {.index = eager.calls,
                          .kind = ENTRY_OPERATION,
                          .name = operation,
                          .argument_count = count,
                          .out = {.kind = ARGUMENT_NONE}};
    memcpy(entry.arguments, arguments, count * sizeof *arguments);
    eager.calls_since++;
    return eager_plan_call(&eager, &entry, first, result, &error);
}

static enum healcl_status try_empty(int64_t elements, const struct tensor **result)
{
    size_t first;
    const struct argument arguments[] = {
        {.kind = ARGUMENT_SHAPE,
         .shape = {.count = 1, .items = {{.kind = HEALCL_INDEX_INT, .value = elements}}}},
        {.kind = ARGUMENT_TENSOR_TYPE, .dtype = DTYPE_INT64}};
    return call("empty", 2, arguments, result, &first);
}

/* With a handle. */
static const struct tensor *empty(int64_t elements)
{
    const struct tensor *tensor = NULL;
    OK(try_empty(elements, &tensor));
    tensor->storage->references++;
    return tensor;
}

static void drop(const struct tensor *tensor)
{
    const size_t first = eager.plan.step_count;
    OK(eager_plan_drop(&eager, tensor, &error));
    eager_plan_executed(&eager, first);
}

static void fill(const struct tensor *tensor, int64_t value)
{
    size_t first;
    const struct tensor *result = NULL;
    OK(call("set_const_val", 2, (struct argument[]){bound(tensor), integer(value)}, &result,
            &first));
    assert_ptr_equal(result, tensor); /* an alias */
}

/* ---------------------------------------------------------------- storages */

static void storages_come_to_an_end(void **state)
{
    static bool is_taken[EAGER_STORAGES_MAX];
    const struct tensor *tensor;
    struct tensor last = {NULL, {0}};
    (void)state;
    is_taken[0] = true; /* the integers' */
    for (int i = 1; i < EAGER_STORAGES_MAX; i++) {
        last = *empty(1);
        assert_false(is_taken[last.storage->id]);
        is_taken[last.storage->id] = true;
        if (eager_plan_is_full(&eager))
            (void)eager_plan_forget(&eager);
    }
    assert_int_equal(try_empty(1, &tensor), HEALCL_REFUSED);
    assert_string_equal(error.message,
                        "call 65535 (empty): argument 'shape': too many tensors are in use");
    assert_int_equal(error.cause, HEALCL_CAUSE_LIMIT);
    drop(&last);
    assert_ptr_equal(empty(1)->storage, last.storage);
}

/* ---------------------------------------------------------------- handles */

/* ---------------------------------------------------------------- refusals */

/* A sum that overlaps what it is written to copies that before it is refused. */
static void refusals_leave_nothing(void **state)
{
    (void)state;
    const struct tensor *a = empty(8), *made = NULL;
    struct tensor low = *a, high = *a;
    low.layout = layout_narrow(&a->layout, 0, 0, 7);
    high.layout = layout_narrow(&a->layout, 0, 1, 7);
    fill(a, 3);
    assert_non_null(a->storage->known);
    const size_t free_count = eager.storages->free_count, steps = eager.plan.step_count;
    const size_t calls = eager.calls;
    const uint64_t bytes = eager.planner.bytes_live;
    const struct argument arguments[] = {bound(&low), bound(&high)};
    size_t first = 99;
    eager.planner.work_limit = 10; /* 7 elements are copied, and 7 visited */
    assert_int_equal(call("abs", 2, arguments, &made, &first), HEALCL_REFUSED);
    assert_memory_equal(error.message, "call 2 (abs): ", strlen("call 2 (abs): "));
    assert_int_equal(error.entry, 2);
    assert_int_equal(error.operation, OPERATION_ABS);
    assert_true(!made && first == 99);
    assert_int_equal(eager.storages->free_count, free_count);
    assert_int_equal(eager.plan.step_count, steps);
    assert_int_equal(eager.planner.bytes_live, bytes);
    assert_int_equal(eager.calls, calls);
    assert_null(a->storage->known); /* of nothing anything is known */
    eager.planner.work_limit = 14;
    OK(call("abs", 2, arguments, &made, &first));
    assert_int_equal(first, steps);
    assert_int_equal(eager.plan.step_count, steps + 3); /* copied, and the copy released */
    assert_int_equal(eager.plan.steps[steps].kind, STEP_COPY);
    assert_int_equal(eager.segment.counts[OPERATION_ABS], 2);
}

/* ---------------------------------------------------------------- what is known */

/* ---------------------------------------------------------------- forgetting */

static void put_integers(int64_t count)
{
    const struct tensor *tensor;
    for (int64_t i = 0; i < count; i++) {
        OK(planner_constant(&eager.planner, i, &tensor, &error));
        assert_int_equal(eager.plan.constants.values[tensor->layout.offset], i);
    }
    assert_int_equal(eager.plan.constants.count, count);
}

static void integers_have_an_end(void **state)
{
    (void)state;
    const struct tensor *tensor;
    const int64_t *values = eager.plan.constants.values;
    put_integers(EAGER_CONSTANTS_MAX);
    assert_ptr_equal(eager.plan.constants.values, values);
    assert_int_equal(eager.plan.constants.storage->elements, EAGER_CONSTANTS_MAX);
    assert_int_equal(planner_constant(&eager.planner, -1, &tensor, &error), HEALCL_REFUSED);
    assert_string_equal(error.message, "more than 4096 different integers");
}

#define LIVE_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE_TEST(storages_come_to_an_end),
        LIVE_TEST(refusals_leave_nothing),
        LIVE_TEST(integers_have_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
