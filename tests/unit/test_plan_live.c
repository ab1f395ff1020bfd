/* Plans that grow by calls: ids of storages come again, what is refused leaves nothing, steps and
 * integers are forgotten in time, and memory with them. */
#include "core/arena.h"
#include "plan/live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct healcl_error error;
static struct live_plan live;

#define OK(expression) assert_int_equal(expression, HEALCL_OK)

static int set_up(void **state)
{
    (void)state;
    return live_plan_init(&live, NULL, &error) == HEALCL_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    healcl_error_clear(&error);
    live_plan_release(&live);
    return 0;
}

/* ---------------------------------------------------------------- calls */

static struct argument integer(int64_t value)
{
    return (struct argument){.kind = ARGUMENT_INT, .integer = value};
}

static struct argument bound(struct tensor *tensor)
{
    return (struct argument){.kind = ARGUMENT_DEVICE_TENSOR,
                             .tensor = {.name = "", .bound = tensor}};
}

static enum healcl_status call(const char *operation, uint32_t count,
                               const struct argument *arguments, struct tensor **result,
                               size_t *first)
{
    struct entry entry = {.index = live.calls,
                          .kind = ENTRY_OPERATION,
                          .name = operation,
                          .argument_count = count,
                          .out = {.kind = ARGUMENT_NONE}};
    memcpy(entry.arguments, arguments, count * sizeof *arguments);
    live.calls_since++;
    return live_plan_call(&live, &entry, first, result, &error);
}

static enum healcl_status try_empty(int64_t elements, struct tensor **result)
{
    size_t first;
    const struct argument arguments[] = {
        {.kind = ARGUMENT_SHAPE,
         .shape = {.count = 1, .items = {{.kind = INDEX_INT, .value = elements}}}},
        {.kind = ARGUMENT_TENSOR_TYPE, .dtype = DTYPE_INT64}};
    return call("empty", 2, arguments, result, &first);
}

/* With a handle. */
static struct tensor *empty(int64_t elements)
{
    struct tensor *tensor = NULL;
    OK(try_empty(elements, &tensor));
    live_plan_hold(tensor);
    return tensor;
}

static void drop(const struct tensor *tensor)
{
    const size_t first = live.plan.step_count;
    OK(live_plan_drop(&live, tensor, &error));
    live_plan_executed(&live, first);
}

static void fill(struct tensor *tensor, int64_t value)
{
    size_t first;
    struct tensor *result = NULL;
    OK(call("set_const_val", 2, (struct argument[]){bound(tensor), integer(value)}, &result,
            &first));
    assert_ptr_equal(result, tensor); /* an alias */
}

/* ---------------------------------------------------------------- storages */

static void limits_are_taken(void **state)
{
    const struct healcl_limits given = {
        .memory_bytes = 4096, .work = 77, .expand = HEALCL_EXPAND_VALID + 1};
    struct live_plan other;
    (void)state;
    assert_true(live.planner.memory_limit == INT64_MAX && live.plan.memory_limit == INT64_MAX);
    assert_true(live.planner.work_limit == WORK_LIMIT_DEFAULT);
    assert_int_equal(live.planner.expand, HEALCL_EXPAND_VALID);
    OK(live_plan_init(&other, &given, &error));
    assert_true(other.planner.memory_limit == 4096 && other.plan.memory_limit == 4096);
    assert_true(other.planner.work_limit == 77 && other.planner.expand == given.expand);
    live_plan_release(&other);
    OK(live_plan_init(&other, &(struct healcl_limits){.passes = NULL}, &error));
    assert_true(other.planner.memory_limit == INT64_MAX);
    assert_true(other.planner.work_limit == WORK_LIMIT_DEFAULT);
    live_plan_release(&other);
}

static void the_first_ids_are_taken_first(void **state)
{
    (void)state;
    const struct plan *plan = &live.plan;
    assert_int_equal(plan->constants.storage->id, 0);
    assert_int_equal(plan->constants.storage->elements, LIVE_CONSTANTS_MAX);
    assert_int_equal(plan->storage_count, LIVE_STORAGES_MAX);
    assert_string_equal(live.segment.name, "");
    for (uint32_t id = 1; id < 5; id++) {
        const struct tensor *tensor = empty(3);
        assert_int_equal(tensor->storage->id, id);
        assert_ptr_equal(plan->storages[id], tensor->storage);
        assert_int_equal(live.segment.operations, id);
    }
}

/* Far more than there can be at one time. */
static void ids_come_again(void **state)
{
    (void)state;
    const size_t free_count = live.storages.free_count;
    const struct tensor *kept = empty(5);
    const struct tensor copy = *kept; /* views go with the steps */
    const struct step *steps = live.plan.steps;
    for (int i = 0; i < 3 * LIVE_STORAGES_MAX; i++) {
        const struct tensor *a = empty(2), *b = empty(4);
        assert_true(a->storage->id <= 3 && b->storage->id <= 3);
        assert_true(a->storage != b->storage && a->storage != copy.storage);
        drop(i % 2 ? a : b);
        drop(i % 2 ? b : a);
        assert_int_equal(live.storages.free_count, free_count - 1);
        assert_int_equal(live.planner.bytes_live, 5 * sizeof(int64_t));
        if (live_plan_is_full(&live))
            assert_false(live_plan_forget(&live));
        assert_ptr_equal(live.plan.steps, steps);
    }
    assert_int_equal(live.calls, 1 + 6 * LIVE_STORAGES_MAX);
    drop(&copy);
    assert_int_equal(live.storages.free_count, free_count);
}

static void storages_come_to_an_end(void **state)
{
    static bool is_taken[LIVE_STORAGES_MAX];
    struct tensor *tensor, last = {NULL, {0}};
    (void)state;
    is_taken[0] = true; /* the integers' */
    for (int i = 1; i < LIVE_STORAGES_MAX; i++) {
        last = *empty(1);
        assert_false(is_taken[last.storage->id]);
        is_taken[last.storage->id] = true;
        if (live_plan_is_full(&live))
            (void)live_plan_forget(&live);
    }
    assert_int_equal(try_empty(1, &tensor), HEALCL_REFUSED);
    assert_string_equal(error.message,
                        "call 65535 (empty): argument 'shape': too many tensors are in use");
    assert_int_equal(error.cause, HEALCL_CAUSE_LIMIT);
    drop(&last);
    assert_ptr_equal(empty(1)->storage, last.storage);
}

/* ---------------------------------------------------------------- handles */

static void the_last_handle_releases(void **state)
{
    size_t first, releases = 0;
    struct tensor *made = NULL;
    (void)state;
    struct tensor *a = empty(4), view;
    live_plan_hold(a);
    view = *a;
    fill(a, 3);
    drop(&view);
    assert_int_equal(live.plan.step_count, 1); /* the other one is there */
    const size_t free_count = live.storages.free_count;
    OK(live_plan_drop(&live, &view, &error));
    assert_int_equal(live.plan.step_count, 2);
    const struct step *step = &live.plan.steps[1];
    assert_int_equal(step->kind, STEP_RELEASE);
    assert_true(step->in[0] != &view && step->in[0]->storage == view.storage);
    assert_memory_equal(&step->in[0]->layout, &view.layout, sizeof view.layout);
    assert_int_equal(step->origins->count, 1);
    assert_true(step->origins->of->is_call && !step->origins->of->form);
    assert_string_equal(step->origins->of->name, "release");
    live_plan_executed(&live, 2); /* not that one */
    assert_int_equal(live.storages.free_count, free_count);
    live_plan_executed(&live, 0);
    assert_int_equal(live.storages.free_count, free_count + 1);
    struct tensor *b = empty(4);
    assert_int_equal(b->storage->id, view.storage->id);
    assert_int_equal(call("device_to_host", 1, (struct argument[]){bound(b)}, &made, &first),
                     HEALCL_OK);
    assert_null(made); /* what goes to the host is no tensor */
    assert_int_equal(first, 2);
    for (size_t i = 0; i < live.plan.step_count; i++)
        releases += live.plan.steps[i].kind == STEP_RELEASE;
    assert_int_equal(releases, 1);
}

/* ---------------------------------------------------------------- refusals */

/* A sum that overlaps what it is written to copies that before it is refused. */
static void refusals_leave_nothing(void **state)
{
    (void)state;
    struct tensor *a = empty(8), *made = NULL;
    struct tensor low = *a, high = *a;
    low.layout = layout_narrow(&a->layout, 0, 0, 7);
    high.layout = layout_narrow(&a->layout, 0, 1, 7);
    fill(a, 3);
    assert_non_null(a->storage->known);
    const size_t free_count = live.storages.free_count, steps = live.plan.step_count;
    const size_t calls = live.calls;
    const uint64_t bytes = live.planner.bytes_live;
    const struct argument arguments[] = {bound(&low), bound(&high)};
    size_t first = 99;
    live.planner.work_limit = 10; /* 7 elements are copied, and 7 visited */
    assert_int_equal(call("abs", 2, arguments, &made, &first), HEALCL_REFUSED);
    assert_memory_equal(error.message, "call 2 (abs): ", strlen("call 2 (abs): "));
    assert_int_equal(error.entry, 2);
    assert_int_equal(error.operation, OPERATION_ABS);
    assert_true(!made && first == 99);
    assert_int_equal(live.storages.free_count, free_count);
    assert_int_equal(live.plan.step_count, steps);
    assert_int_equal(live.planner.bytes_live, bytes);
    assert_int_equal(live.calls, calls);
    assert_null(a->storage->known); /* of nothing anything is known */
    live.planner.work_limit = 14;
    OK(call("abs", 2, arguments, &made, &first));
    assert_int_equal(first, steps);
    assert_int_equal(live.plan.step_count, steps + 3); /* copied, and the copy released */
    assert_int_equal(live.plan.steps[steps].kind, STEP_COPY);
    assert_int_equal(live.segment.counts[OPERATION_ABS], 2);
}

static void copies_are_calls(void **state)
{
    (void)state;
    struct tensor *a = empty(8), *b = empty(8), *c = empty(7);
    struct entry entry = {.index = 17,
                          .kind = ENTRY_OPERATION,
                          .name = "copy",
                          .argument_count = 2,
                          .arguments = {bound(a), bound(b)}};
    size_t first = 99;
    const size_t calls = live.calls;
    OK(live_plan_copy(&live, &entry, &first, &error));
    assert_true(first == 0 && live.calls == calls + 1);
    assert_int_equal(live.plan.steps[0].kind, STEP_COPY);
    entry.arguments[1] = bound(c);
    assert_int_equal(live_plan_copy(&live, &entry, &first, &error), HEALCL_REFUSED);
    assert_memory_equal(error.message, "call 17 (copy): ", strlen("call 17 (copy): "));
    assert_true(live.calls == calls + 1 && live.plan.step_count == 1);
}

/* ---------------------------------------------------------------- what is known */

static void writes_are_noted(void **state)
{
    (void)state;
    struct tensor *a = empty(8), *b = empty(8);
    fill(a, 3);
    fill(b, 4);
    const uint64_t writes = a->storage->writes;
    live_plan_written(&live, a->storage);
    assert_int_equal(a->storage->writes, writes + 1);
    assert_null(a->storage->known);
    assert_non_null(b->storage->known);
    live_plan_distrust(&live);
    assert_null(b->storage->known);
}

/* ---------------------------------------------------------------- forgetting */

static void plans_are_full_in_time(void **state)
{
    (void)state;
    struct plan *plan = &live.plan;
    assert_false(live_plan_is_full(&live));
    plan->step_count = LIVE_STEPS_MAX - CALL_STEPS_MAX;
    live.calls_since = LIVE_STEPS_MAX - 1;
    plan->constants.count = LIVE_CONSTANTS_MAX - CALL_CONSTANTS_MAX;
    assert_false(live_plan_is_full(&live));
    plan->step_count++;
    assert_true(live_plan_is_full(&live));
    plan->step_count--;
    live.calls_since++;
    assert_true(live_plan_is_full(&live));
    live.calls_since--;
    plan->constants.count++;
    assert_true(live_plan_is_full(&live));
    plan->step_count = plan->constants.count = 0;
}

static void put_integers(int64_t count)
{
    struct tensor *tensor;
    for (int64_t i = 0; i < count; i++) {
        OK(planner_constant(&live.planner, i, &tensor, &error));
        assert_int_equal(live.plan.constants.values[tensor->layout.offset], i);
    }
    assert_int_equal(live.plan.constants.count, count);
}

static void integers_have_an_end(void **state)
{
    (void)state;
    struct tensor *tensor;
    const int64_t *values = live.plan.constants.values;
    put_integers(LIVE_CONSTANTS_MAX);
    assert_ptr_equal(live.plan.constants.values, values);
    assert_int_equal(live.plan.constants.storage->elements, LIVE_CONSTANTS_MAX);
    assert_int_equal(planner_constant(&live.planner, -1, &tensor, &error), HEALCL_REFUSED);
    assert_string_equal(error.message, "more than 4096 different integers");
}

/* Each is the first of an arena that has been cleared, in the same memory. */
static void expect_first(const struct tensor *before, const struct tensor *after)
{
    if (ARENA_BLOCK_SIZE > 0)
        assert_ptr_equal(before, after);
}

/* Where they are few they stay, and what reads them. */
static void integers_are_forgotten_in_time(void **state)
{
    (void)state;
    struct tensor *before, *after;
    put_integers(LIVE_CONSTANTS_MAX / 2 - 1);
    OK(planner_constant(&live.planner, 5, &before, &error));
    assert_false(live_plan_forget(&live));
    OK(planner_constant(&live.planner, 5, &after, &error));
    assert_ptr_equal(before, after);
    put_integers(LIVE_CONSTANTS_MAX / 2);
    assert_true(live_plan_forget(&live));
    assert_int_equal(live.plan.constants.count, 0);
    OK(planner_constant(&live.planner, 5, &before, &error));
    assert_int_equal(before->layout.offset, 0);
    live.plan.constants.count = LIVE_CONSTANTS_MAX / 2;
    assert_true(live_plan_forget(&live));
    OK(planner_constant(&live.planner, 6, &after, &error));
    assert_int_equal(after->layout.offset, 0);
    expect_first(before, after);
}

static void steps_are_forgotten(void **state)
{
    (void)state;
    const struct tensor *before = empty(2), *after;
    drop(before);
    assert_true(live.plan.step_count == 1 && live.segment.step_count == 1);
    (void)live_plan_forget(&live);
    assert_true(live.plan.step_count == 0 && live.segment.step_count == 0);
    assert_int_equal(live.calls_since, 0);
    after = empty(2);
    expect_first(before, after);
}

static bool runs_again(const struct step *step, const struct healcl_device *device)
{
    return step && device;
}

static void kept_calls_are_forgotten_in_time(void **state)
{
    static const struct kept_calls none;
    const struct healcl_device *device = (const struct healcl_device *)&none;
    const struct kept_call *some = (const struct kept_call *)&none;
    (void)state;
    assert_null(live.planner.kept);
    live_plan_keep_calls(&live, device, runs_again);
    struct kept_calls *kept = live.planner.kept;
    assert_true(kept && kept->device == device && kept->runs_again == runs_again);
    const void *before = arena_alloc(kept->arena, 1);
    kept->count = KEPT_CALLS_MAX;
    kept->buckets[KEPT_CALLS_MAX - 1] = kept->buckets[0] = some;
    (void)live_plan_forget(&live);
    assert_int_equal(kept->count, KEPT_CALLS_MAX);
    assert_ptr_equal(kept->buckets[0], some);
    kept->count++;
    (void)live_plan_forget(&live);
    assert_int_equal(kept->count, 0);
    assert_memory_equal(kept->buckets, none.buckets, sizeof none.buckets);
    assert_ptr_equal(arena_alloc(kept->arena, 1), before);
}

#define LIVE_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE_TEST(limits_are_taken),
        LIVE_TEST(the_first_ids_are_taken_first),
        LIVE_TEST(ids_come_again),
        LIVE_TEST(storages_come_to_an_end),
        LIVE_TEST(the_last_handle_releases),
        LIVE_TEST(refusals_leave_nothing),
        LIVE_TEST(copies_are_calls),
        LIVE_TEST(writes_are_noted),
        LIVE_TEST(plans_are_full_in_time),
        LIVE_TEST(integers_have_an_end),
        LIVE_TEST(integers_are_forgotten_in_time),
        LIVE_TEST(steps_are_forgotten),
        LIVE_TEST(kept_calls_are_forgotten_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
