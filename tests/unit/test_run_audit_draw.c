/* Which classes of steps are drawn for audits, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "run/audit_draw.h"

enum { CLASSES = 12, RUN = 1000000 /* nanoseconds */ };

static struct audit_class classes[CLASSES];
static uint32_t pairs[CLASSES], here[CLASSES];
static bool seen[CLASSES];

/* Class i has pair i modulo pair_count, and costs so much. */
static struct audit_draw make_draw(double share, uint32_t pair_count, double cost)
{
    struct audit_draw draw = {
        .share = share, .classes = classes, .class_count = CLASSES, .class_pairs = pairs};
    draw.pair_seen = seen;
    memset(classes, 0, sizeof classes);
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 0; i < CLASSES; i++) {
        classes[i] = (struct audit_class){.first_pair = i, .pair_count = 1, .cost = cost};
        pairs[i] = i % pair_count;
        here[i] = i;
    }
    audit_draw_init(&draw, 7);
    return draw;
}

static void audit(struct audit_draw *draw, uint32_t number, double cost)
{
    seen[pairs[number]] = true;
    draw->spent += cost;
    audit_draw_done(draw, number);
}

static void takes_the_unseen_first(void **state)
{
    (void)state;
    struct audit_draw draw = make_draw(1, 4, 1000);
    uint32_t picks[CLASSES];
    audit_draw_begin(&draw, 1);
    assert_int_equal(audit_draw_classes(&draw, 1, here, CLASSES, picks, CLASSES), 0);
    /* There is time for four of them: one of each pair. */
    assert_int_equal(audit_draw_classes(&draw, 4001, here, CLASSES, picks, CLASSES), 4);
    bool met[4] = {false};
    for (int i = 0; i < 4; i++) {
        met[pairs[picks[i]]] = true;
        audit(&draw, picks[i], 1000);
    }
    assert_true(met[0] && met[1] && met[2] && met[3]);
    /* Then all others, before any is drawn again, and then in the same order. */
    bool again[CLASSES] = {false};
    uint32_t rest[CLASSES], once_more[CLASSES];
    for (int i = 0; i < 4; i++)
        again[picks[i]] = true;
    assert_int_equal(audit_draw_classes(&draw, 12001, here, CLASSES, rest, CLASSES), 8);
    for (int i = 0; i < 8; i++) {
        assert_false(again[rest[i]]);
        again[rest[i]] = true;
        audit(&draw, rest[i], 1000);
    }
    assert_int_equal(audit_draw_classes(&draw, 16001, here, CLASSES, once_more, CLASSES), 4);
    assert_memory_equal(once_more, picks, 4 * sizeof *picks);
}

/* Segments that have a few classes each; the budget holds in every run, and nothing starves. */
static void keeps_the_budget(void **state)
{
    (void)state;
    struct audit_draw draw = make_draw(0.02, CLASSES, 7000);
    classes[5].cost = 90000; /* several runs' */
    draw.dearest = 90000;
    uint64_t now = 1;
    for (int run = 0; run < 200; run++) {
        audit_draw_begin(&draw, now);
        for (uint32_t segment = 0; segment < 4; segment++) {
            uint32_t picks[3];
            size_t count = audit_draw_classes(&draw, now, here + segment * 3, 3, picks, 3);
            for (size_t i = 0; i < count; i++)
                audit(&draw, picks[i], classes[picks[i]].cost);
            assert_true(audit_draw_balance(&draw, now) >= 0);
            now += RUN / 4;
        }
        audit_draw_end(&draw, now);
    }
    assert_true(draw.spent <= 0.02 * draw.elapsed);
    assert_true(draw.spent >= 0.015 * draw.elapsed);
    for (int i = 0; i < CLASSES; i++)
        assert_true(classes[i].audits >= 5);
}

/* What never comes again is not saved up for. */
static void forgets_what_does_not_come(void **state)
{
    (void)state;
    struct audit_draw draw = make_draw(0.02, CLASSES, 15000);
    uint64_t now = 1;
    uint32_t picks[CLASSES];
    audit_draw_begin(&draw, now); /* too short for any of them */
    assert_int_equal(audit_draw_classes(&draw, now, here, CLASSES, picks, CLASSES), 0);
    now += RUN / 10;
    audit_draw_end(&draw, now);
    for (int run = 0; run < 20; run++) {
        audit_draw_begin(&draw, now);
        if (audit_draw_classes(&draw, now, here + 11, 1, picks, 1) == 1)
            audit(&draw, picks[0], 15000);
        now += RUN;
        audit_draw_end(&draw, now);
    }
    assert_true(classes[11].audits >= 10);
}

/* The first run builds kernels: what is left of its time is not spent by the second. */
static void forfeits_what_the_first_run_leaves(void **state)
{
    (void)state;
    struct audit_draw draw = make_draw(0.02, CLASSES, 7000);
    audit_draw_begin(&draw, 1);
    audit_draw_end(&draw, 1000 * (uint64_t)RUN);
    assert_true(audit_draw_balance(&draw, 1000 * (uint64_t)RUN) <= 2 * 7000 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_unseen_first),
        cmocka_unit_test(keeps_the_budget),
        cmocka_unit_test(forgets_what_does_not_come),
        cmocka_unit_test(forfeits_what_the_first_run_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
