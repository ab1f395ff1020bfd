/* Batches of requests that arrive at a rate: when they run, and how many they have. No clock runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/arrivals.h"

/* One request each 100 ns, ten of them, from 1000 on. */
static struct arrivals each_hundred(uint64_t max_delay)
{
    return (struct arrivals){.start = 1000, .distance = 100, .count = 10, .max_delay = max_delay};
}

/* On a device that takes so long for a batch, whatever its size is: the sizes of the batches. */
static uint32_t run_all(const struct arrivals *arrivals, uint32_t most, uint64_t taken,
                        uint32_t *sizes)
{
    uint32_t batches = 0;
    uint64_t now = 0;
    for (uint32_t done = 0; done < arrivals->count; batches++) {
        const uint64_t time = arrivals_batch_time(arrivals, done, most);
        now = now < time ? time : now;
        sizes[batches] = arrivals_waiting(arrivals, done, most, now);
        done += sizes[batches];
        now += taken;
    }
    return batches;
}

static void expect_sizes(uint64_t max_delay, uint32_t most, uint64_t taken, uint32_t count,
                         const uint32_t *expected)
{
    const struct arrivals arrivals = each_hundred(max_delay);
    uint32_t sizes[10];
    assert_int_equal(run_all(&arrivals, most, taken, sizes), count);
    assert_memory_equal(sizes, expected, count * sizeof *expected);
}

#define EXPECT_SIZES(max_delay, most, taken, ...)                                              \
    expect_sizes(max_delay, most, taken, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), \
                 (uint32_t[]){__VA_ARGS__})

static void batches(void **state)
{
    (void)state;
    EXPECT_SIZES(0, 4, 50, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1); /* each is done when the next one comes */
    EXPECT_SIZES(0, 4, 250, 1, 2, 3, 2, 2);               /* what has come meanwhile */
    EXPECT_SIZES(0, 4, 5000, 1, 4, 4, 1);                 /* no more than room */
    EXPECT_SIZES(0, 1, 5000, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    EXPECT_SIZES(250, 4, 50, 3, 3, 3, 1);  /* those that come in 250 ns */
    EXPECT_SIZES(300, 4, 50, 4, 4, 2);     /* full at the last moment */
    EXPECT_SIZES(1000000, 4, 50, 4, 4, 2); /* full before, and nothing else comes */
    EXPECT_SIZES(1000000, 64, 50, 10);
}

static void times(void **state)
{
    (void)state;
    const struct arrivals arrivals = each_hundred(250), patient = each_hundred(1000000);
    assert_int_equal(arrivals_time(&arrivals, 9), 1900);
    assert_int_equal(arrivals_batch_time(&arrivals, 0, 4), 1250);
    assert_int_equal(arrivals_batch_time(&arrivals, 9, 4), 1900);
    assert_int_equal(arrivals_batch_time(&patient, 0, 4), 1300);
    assert_int_equal(arrivals_batch_time(&patient, 8, 4), 1900);
    assert_int_equal(arrivals_waiting(&arrivals, 2, 4, 1200), 1);
    assert_int_equal(arrivals_waiting(&arrivals, 2, 4, 1300), 2);
    assert_int_equal(arrivals_waiting(&arrivals, 2, 4, UINT64_MAX), 4);
}

/* The slowest rate and the most requests. */
static void far_times(void **state)
{
    (void)state;
    const struct arrivals slow = {
        .start = 1, .distance = 1e9 / ARRIVALS_RATE_LEAST, .count = 1000000};
    assert_int_equal(arrivals_time(&slow, 999999), UINT64_C(999999000000000001));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches),
        cmocka_unit_test(times),
        cmocka_unit_test(far_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
