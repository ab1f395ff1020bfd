/* Places: who shares a buffer with whom, over random lifetimes too, and that a device then
 * allocates what the plan has said. */
#include "helper_one_device.h"

#include <string.h>

#include "helper_script.h"
#include "plan/places.h"
#include "tools/random.h"

/* ---------------------------------------------------------------- random lifetimes */

enum { STORAGES_MAX = 60, STEPS_MAX = 4 * STORAGES_MAX, SEGMENTS_MAX = 6 };

/* A plan of uploads, fills, copies, downloads and releases; of nothing but what places look at. */
struct made {
    struct plan plan;
    struct storage storages[STORAGES_MAX];
    struct storage *by_id[STORAGES_MAX];
    struct tensor tensors[STORAGES_MAX];
    struct step steps[STEPS_MAX];
    struct segment segments[SEGMENTS_MAX + 1];
    bool stays[STORAGES_MAX];
};

static void add_step(struct made *made, enum step_kind kind, struct tensor *out, struct tensor *in)
{
    struct plan *plan = &made->plan;
    made->steps[plan->step_count++] = (struct step){.kind = kind, .out = out, .in = {in}};
    made->segments[plan->segment_count - 1].step_count++;
}

static void begin_segment(struct made *made)
{
    made->segments[made->plan.segment_count++] =
        (struct segment){.first_step = made->plan.step_count};
}

/* Returns a live one, which is taken out of the list. */
static uint32_t take(struct random *random, uint32_t *live, size_t *count)
{
    size_t i = (size_t)random_between(random, 0, (int64_t)*count - 1);
    uint32_t id = live[i];
    live[i] = live[--*count];
    return id;
}

static void make(struct made *made, struct random *random, bool equal, bool transfers)
{
    static const int64_t factors[] = {1, 2, 3, 4, 8, 16};
    uint32_t live[STORAGES_MAX];
    size_t count = 0;
    memset(made, 0, sizeof *made);
    made->plan = (struct plan){.steps = made->steps,
                               .segments = made->segments,
                               .storages = made->by_id,
                               .memory_limit = random_once_in(random, 2) ? INT64_MAX : 1 << 12};
    begin_segment(made);
    for (uint32_t id = 0; id < STORAGES_MAX;) {
        if (made->plan.segment_count < SEGMENTS_MAX && random_once_in(random, 20))
            begin_segment(made);
        if (count > 0 && random_once_in(random, 2)) {
            uint32_t old = take(random, live, &count);
            if (transfers && random_once_in(random, 3))
                add_step(made, STEP_DOWNLOAD, NULL, &made->tensors[old]);
            if (!random_once_in(random, 12)) /* the others live to the end */
                add_step(made, STEP_RELEASE, NULL, &made->tensors[old]);
            continue;
        }
        int64_t elements = 100 * (equal ? 1 : factors[random_between(random, 0, 5)]);
        made->storages[id] = (struct storage){.id = id, .dtype = DTYPE_INT64, .elements = elements};
        made->by_id[id] = &made->storages[id];
        made->tensors[id] =
            (struct tensor){&made->storages[id], layout_of_shape(1, (int64_t[]){elements})};
        made->stays[id] = transfers && random_once_in(random, 10);
        add_step(made, transfers && random_once_in(random, 4) ? STEP_UPLOAD : STEP_FILL,
                 &made->tensors[id], NULL);
        live[count++] = id;
        made->plan.storage_count = ++id;
    }
}

static bool stays(void *context, const struct storage *storage)
{
    return ((const struct made *)context)->stays[storage->id];
}

/* Steps [first, last] in which a storage needs its memory: what is handed out until the end of the
 * segment; pending results are few enough, or what waits is drained earlier. */
static void life(const struct made *made, uint32_t id, bool waits, size_t *first, size_t *last)
{
    const struct plan *plan = &made->plan;
    *first = SIZE_MAX;
    *last = plan->step_count;
    size_t handed_out = 0;
    for (size_t s = 0; s < plan->segment_count; s++) {
        const struct segment *segment = &plan->segments[s];
        for (size_t i = segment->first_step; i < segment->first_step + segment->step_count; i++) {
            const struct step *step = &plan->steps[i];
            if (step->out && step->out->storage->id == id)
                *first = step->kind == STEP_UPLOAD ? segment->first_step : i;
            if (step->in[0] && step->in[0]->storage->id == id) {
                if (step->kind == STEP_RELEASE)
                    *last = i;
                else if (waits)
                    handed_out = segment->first_step + segment->step_count - 1;
            }
        }
    }
    *last = made->stays[id] ? plan->step_count : *last > handed_out ? *last : handed_out;
}

static void expect_places(const struct made *made, const struct places *places,
                          const struct places_rule *rule)
{
    const bool waits = made->plan.memory_limit == INT64_MAX;
    uint64_t sum = 0;
    for (size_t i = 0; i < places->count; i++)
        sum += places->bytes[i];
    assert_int_equal(sum, places->place_bytes);
    for (uint32_t a = 0; a < STORAGES_MAX; a++) {
        uint64_t bytes = storage_bytes(&made->storages[a]);
        assert_int_equal(places->of[a] != NO_PLACE, bytes >= rule->least);
        if (places->of[a] == NO_PLACE)
            continue;
        assert_true(places->of[a] < places->count && bytes <= places->bytes[places->of[a]]);
        size_t first, last, first_b, last_b;
        life(made, a, waits, &first, &last);
        for (uint32_t b = 0; b < a; b++) {
            if (places->of[b] != places->of[a])
                continue;
            life(made, b, waits, &first_b, &last_b);
            if (first <= last_b && first_b <= last)
                fail_msg("%u, of steps %zu to %zu, and %u, %zu to %zu, share a place", a, first,
                         last, b, first_b, last_b);
        }
    }
}

static uint64_t live_peak(const struct plan *plan)
{
    uint64_t live = 0, peak = 0;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        if (step->out)
            live += storage_bytes(step->out->storage);
        if (step->kind == STEP_RELEASE)
            live -= storage_bytes(step->in[0]->storage);
        peak = live > peak ? live : peak;
    }
    return peak;
}

static void nobody_shares_while_living(void **state)
{
    (void)state;
    static struct made made;
    struct random random = {0x91ace5};
    for (int round = 0; round < 200; round++) {
        make(&made, &random, false, true);
        const struct places_rule rule = {
            .least = random_once_in(&random, 2) ? 0 : 1600, .stays = stays, .context = &made};
        struct places places;
        OK(places_init(&places, &made.plan, &rule, &error));
        expect_places(&made, &places, &rule);
        assert_int_equal(places.live_bytes, live_peak(&made.plan));
        if (rule.least == 0)
            assert_int_equal(places.other_bytes, 0);
        places_release(&places);
    }
}

/* ---------------------------------------------------------------- on a device */

enum { ROWS = 4, COLUMNS = 4096, BYTES = ROWS * COLUMNS * 8 };

static void upload(struct script *script, const char *name)
{
    static int64_t values[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (INT64_C(0x7f1d3a5b9c2e4f61) >> i % 50) + name[0];
    script_upload(script, name, DTYPE_INT64, 2, (int64_t[]){ROWS, COLUMNS}, values);
}

/* t0 and later ones are freed as soon as the next one is there; some wait to be handed out, one is
 * written before it is, one is uploaded in between; two segments. At most `a`, two of those and
 * what waits are there at one time. */
static void write_program(struct script *script)
{
    static const char *const names[] = {"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"};
    static const char q[] = "9223372036854775783"; /* of 63 bits */
    char arguments[80];
    script_segment_start(script, "one");
    upload(script, "a");
    upload(script, "t0");
    for (int i = 1; i < 8; i++) {
        if (i == 5) {
            script_segment_end(script);
            script_segment_start(script, "two");
            upload(script, "b");
            script_free(script, "b");
        }
        script_call(script, names[i], "empty", "(4,4096) :int64");
        snprintf(arguments, sizeof arguments, "%s a %s %s", names[i - 1], q, names[i]);
        script_call(script, names[i], i % 2 ? "_modmul_ttc" : "_modsum_ttc", arguments);
        if (i == 3 || i == 6)
            script_download(script, names[i - 1]);
        if (i == 4) { /* its memory has a result that waits */
            script_download(script, names[i]);
            snprintf(arguments, sizeof arguments, "%s a %s %s", names[i], q, names[i]);
            script_call(script, names[i], "_modsum_ttc", arguments);
        }
        script_free(script, names[i - 1]);
    }
    script_segment_end(script);
    script_segment_start(script, "three");
    script_download(script, "t7");
    script_segment_end(script);
    script_plan(script);
}

/* Allocations for tensors match the plan, and no repetition allocates more. */
static void a_device_keeps_to_it(void **state)
{
    (void)state;
    struct script script = {0};
    struct script_results expected = {0}, found = {0};
    struct executor *executor;
    write_program(&script);
    OK(script_run_on(&script, NULL, &expected, &error));
    OK(device_executor_create(device, script.plan, &executor, &error));
    uint64_t allocated = 0;
    for (int repetition = 0; repetition < 4; repetition++) {
        struct healcl_report report = {0};
        found.count = found.results = 0;
        if (repetition > 0)
            OK(executor->class->rewind(executor, 0, &error));
        OK(script_run(&script, executor, &found, &error));
        assert_true(script_same_results(&expected, &found));
        device_executor_price(executor, &report);
        struct places places;
        const struct places_rule rule = {.least = PLACE_BYTES};
        OK(places_init(&places, script.plan, &rule, &error));
        assert_true(places.count > 0);
        assert_int_equal(report.tensor_bytes_allocated, places.place_bytes + places.other_bytes);
        assert_int_equal(report.tensor_bytes_live, places.live_bytes);
        assert_int_equal(device->bytes_placed, places.place_bytes);
        places_release(&places);
        if (repetition == 1)
            allocated = device->bytes_live;
        if (repetition > 1)
            assert_int_equal(device->bytes_live, allocated);
    }
    executor->class->destroy(executor);
    assert_int_equal(device->bytes_placed, 0);
    device_pool_empty(device);
    script_results_release(&expected);
    script_results_release(&found);
    script_release(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_shares_while_living),
        cmocka_unit_test(a_device_keeps_to_it),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
