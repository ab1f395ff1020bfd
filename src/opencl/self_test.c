#include "opencl/opening.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cl/base/base.h"
#include "core/clock.h"
#include "core/registry.h"
#include "opencl/internal.h"

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* ---------------------------------------------------------------- known answers */

/* Values at which carries, signs and shifts go wrong: -1, the least and the largest int64, ... */
static const uint64_t values[] = {
    0x0000000000000000, 0x0000000000000001, 0x0000000000000002, 0x000000000000003f,
    0xffffffffffffffff, 0x8000000000000000, 0x7fffffffffffffff, 0x8000000000000001,
    0x00000000ffffffff, 0x0000000100000000, 0x0000000080000001, 0x3fffffffffffffff,
    0xffffffff00000000, 0x0123456789abcdef, 0xfedcba9876543210, 0x80ff7f0180ff7f01};

/* A prime of 60 bits and the largest one below 2^63 are among them. */
static const uint64_t moduli[] = {0x0000000000000001, 0x0000000000000002, 0x0000000000000003,
                                  0x00000000000000ff, 0x000000007fffffff, 0x0000000080000000,
                                  0x00000000ffffffff, 0x0000000100000000, 0x0000000100000001,
                                  0x0fffffffffffc001, 0x0fffffffffffffff, 0x2000000000000001,
                                  0x3fffffffffffffff, 0x4000000000000000, 0x4000000000000001,
                                  0x7fffffffffffffe7, 0x7fffffffffffffff};

enum {
    VALUES = sizeof values / sizeof *values,
    MODULI = sizeof moduli / sizeof *moduli,
    /* Every pair of values occurs twice, with two moduli. The number of moduli is odd, so that
     * moduli shift against pairs. */
    CASES = 2 * VALUES * VALUES,
    ROUNDS = 70000,      /* of a loop, in one work-item: above 2^16 */
    ROUNDS_LEAST = 4096, /* that a device must be able to do */
#define ANSWER(name, families, operands, on_device, on_host) +1
    ANSWERS = 0
#include "cl/base/self_test_answers.cl"
#undef ANSWER
};

/* Bits of the families that need an answer; all need those of plain arithmetic. */
enum {
    PLAIN = 0,
    COPY = 1 << FAMILY_copy,
    ELEMENTWISE = 1 << FAMILY_elementwise,
    SUM = 1 << FAMILY_sum,
    TRANSFORM = 1 << FAMILY_transform,
    DIGITS = 1 << FAMILY_digits,
    GATHER = 1 << FAMILY_gather
};

static const struct {
    const char *name, *operands;
    uint32_t families;
} answer_table[ANSWERS] = {
#define ANSWER(name, families, operands, on_device, on_host) {name, operands, families},
#include "cl/base/self_test_answers.cl"
#undef ANSWER
};

struct operands {
    uint64_t a, b, q;
};

/* x mod q in [0, q) for signed x. C's % has the sign of x, so a negative rest gets q added. */
static uint64_t floor_mod(int64_t x, uint64_t q)
{
    int128 remainder = (int128)x % (int128)q;
    return (uint64_t)(remainder < 0 ? remainder + (int128)q : remainder);
}

/* Bits 64 to 191 of 5*x in two's complement, as cl/base/arithmetic.h sums products: floor(5*x /
 * 2^64). Multiplies both halves of x, since 5*x does not fit in 128 bits. */
static int128 upper_of_five_times(int128 x)
{
    const int128 carry = (int128)((uint128)(uint64_t)x * 5 >> 64);
    return (x >> 64) * 5 + carry;
}

/* Computes on the host what each function of the self-test must return. The expressions are the
 * last column of self_test_answers.cl, and refer to a, b and q. */
static void compute_known_answers(const struct operands *operands, uint64_t answers[ANSWERS])
{
    const uint64_t a = operands->a, b = operands->b, q = operands->q;
#define ANSWER(name, families, operands, on_device, on_host) *answers++ = (uint64_t)(on_host);
#include "cl/base/self_test_answers.cl"
#undef ANSWER
}

/* ---------------------------------------------------------------- the state of a test */

/* Everything that the kernel self_test reads and writes. Each member is a buffer of its own. */
struct test_data {
    struct operands cases[CASES];
    uint64_t answers[CASES][ANSWERS];
    int8_t bytes[CASES];
    int32_t words[CASES];
    struct self_test_counters counters;
};

/* The members of struct test_data, in the order of the kernel's arguments. */
static const struct {
    size_t offset, bytes;
} members[] = {
#define MEMBER(name)                                                             \
    {                                                                            \
        offsetof(struct test_data, name), sizeof((struct test_data *)NULL)->name \
    }
    MEMBER(cases), MEMBER(answers), MEMBER(bytes), MEMBER(words), MEMBER(counters),
#undef MEMBER
};

enum { MEMBERS = sizeof members / sizeof *members };

/* A kernel launch with its own buffers, which are its first arguments. */
struct test_launch {
    struct launch launch;
    char options[64];
    struct launch_argument arguments[MEMBERS + 1];
    struct buffer buffers[MEMBERS];
};

/* One run of the self-test. */
struct self_test {
    struct healcl_device *device;
    struct test_launch kernel; /* a launch of the kernel self_test */
    uint32_t is_first;         /* its last argument: whether nothing has been stored yet */
    uint32_t repetitions;      /* launches after the first one */
    struct test_data before;   /* what the buffers hold before the first launch */
    struct test_data after;    /* what was read from the device */
};

/* Prepares a test: all cases, and initial values of the counters, by which cl/base/self_test.cl
 * tests atomic functions. The caller has zeroed the rest. */
static void init_test(struct self_test *test, struct healcl_device *device)
{
    test->device = device;
    for (size_t i = 0; i < CASES; i++)
        test->before.cases[i] =
            (struct operands){values[i % VALUES], values[i / VALUES % VALUES], moduli[i % MODULI]};
    test->before.counters.least = UINT32_MAX;
    test->before.counters.common = UINT32_MAX;
}

/* ---------------------------------------------------------------- comparing */

enum { ANSWER_TEXT_SIZE = sizeof((struct device_info *)NULL)->family_failure };

/* Describes a wrong answer: "mul_hi(0x1, 0x2) is 0x1, not 0x0". answer_table names the function,
 * and by the letters a, b and q its operands. */
static void answer_text(const struct operands *operands, size_t number, uint64_t answer,
                        uint64_t known, char text[ANSWER_TEXT_SIZE])
{
    const uint64_t by_letter[] = {
        ['a' - 'a'] = operands->a, ['b' - 'a'] = operands->b, ['q' - 'a'] = operands->q};
    size_t used = (size_t)snprintf(text, ANSWER_TEXT_SIZE, "%s(", answer_table[number].name);
    for (const char *letter = answer_table[number].operands; *letter; letter++)
        used += (size_t)snprintf(text + used, ANSWER_TEXT_SIZE - used, "0x%" PRIx64 "%s",
                                 by_letter[*letter - 'a'], letter[1] ? ", " : "");
    snprintf(text + used, ANSWER_TEXT_SIZE - used, ") is 0x%" PRIx64 ", not 0x%" PRIx64, answer,
             known);
}

/* Compares the answers of case i with those that the host computes. A wrong answer in plain
 * arithmetic fails the test. One that only some kernel families need only marks these families as
 * failed: the host then runs their steps. The first one is kept for messages. */
static enum healcl_status compare_answers(struct self_test *test, size_t i,
                                          struct healcl_error *error)
{
    struct device_info *info = &test->device->info;
    const struct operands *operands = &test->before.cases[i];
    const uint64_t *answers = test->after.answers[i];
    uint64_t known[ANSWERS];
    compute_known_answers(operands, known);
    for (size_t j = 0; j < ANSWERS; j++) {
        char text[ANSWER_TEXT_SIZE];
        if (answers[j] == known[j])
            continue;
        answer_text(operands, j, answers[j], known[j], text);
        if (answer_table[j].families == PLAIN)
            FAIL_TEST(error, info, "%s", text);
        if (info->failed_families == 0)
            memcpy(info->family_failure, text, sizeof text);
        info->failed_families |= answer_table[j].families;
    }
    return HEALCL_OK;
}

/* The counters that all launches together must leave. Each work-item of the first launch, which has
 * one for each case, clears one of 31 bits of `common`, and lowers `least`. That tests atomic_and
 * and atomic_min. Later launches may have fewer work-items. They only count and sum. */
static struct self_test_counters known_counters(const struct self_test *test)
{
    const struct launch *launch = &test->kernel.launch;
    const size_t repeated_cases = launch->groups * launch->local_size;
    struct self_test_counters known = test->before.counters;
    for (uint32_t i = 0; i < CASES; i++) {
        const uint64_t b = test->before.cases[i].b;
        const uint32_t upper = (uint32_t)(b >> 32) | 1; /* as in the kernel */
        const uint32_t launches = i < repeated_cases ? 1 + test->repetitions : 1;
        known.count += launches;
        known.sum += launches * (uint32_t)b;
        known.least = upper < known.least ? upper : known.least;
        known.common &= ~((uint32_t)1 << i % 31);
    }
    return known;
}

/* Compares the results of atomic functions. Any work-item may win a compare-and-swap, so the
 * winner's own note must agree with what was stored. */
static enum healcl_status compare_counters(const struct self_test *test, struct healcl_error *error)
{
    const struct device_info *info = &test->device->info;
    const struct self_test_counters *counters = &test->after.counters;
    const struct self_test_counters known = known_counters(test);
    const struct {
        const char *name;
        uint32_t actual, known;
    } rows[] = {
        {"atomic_inc", counters->count, known.count},
        {"atomic_add", counters->sum, known.sum},
        {"atomic_min", counters->least, known.least},
        {"atomic_and", counters->common, known.common},
        {"atomic_cmpxchg", counters->winner, counters->first},
    };
    if (counters->first < 1 || counters->first > CASES)
        FAIL_TEST(error, info, "atomic_cmpxchg of %d work-items is %" PRIu32 ", not one of 1 to %d",
                  CASES, counters->first, CASES);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].actual != rows[i].known)
            FAIL_TEST(error, info, "%s of %d work-items is 0x%" PRIx32 ", not 0x%" PRIx32,
                      rows[i].name, CASES, rows[i].actual, rows[i].known);
    return HEALCL_OK;
}

/* The result of `rounds` rounds of the kernel's loop, a random generator: G. Marsaglia, "Xorshift
 * RNGs", 2003. */
static uint32_t xorshift_after(uint32_t rounds)
{
    uint32_t mixed = 1;
    for (uint32_t i = 0; i < rounds; i++) {
        mixed ^= mixed << 13;
        mixed ^= mixed >> 17;
        mixed ^= mixed << 5;
    }
    return mixed;
}

/* Checks a long loop of one work-item. Some devices end loops early. That is not an error: kernels
 * then use shorter loops (loop_limit of struct device_info). But the loop must not be too short,
 * and its result must fit its length. */
static enum healcl_status compare_rounds(const struct self_test *test, struct healcl_error *error)
{
    const struct device_info *info = &test->device->info;
    const uint32_t rounds = test->after.counters.rounds, mixed = test->after.counters.mixed;
    if (rounds < ROUNDS_LEAST || rounds > ROUNDS)
        FAIL_TEST(error, info, "a loop of %d rounds ends after %" PRIu32, ROUNDS, rounds);
    if (mixed != xorshift_after(rounds))
        FAIL_TEST(error, info, "%" PRIu32 " rounds of a loop give 0x%" PRIx32 ", not 0x%" PRIx32,
                  rounds, mixed, xorshift_after(rounds));
    return HEALCL_OK;
}

/* Compares all that the kernel has stored with what it should have stored. */
static enum healcl_status compare_data(struct self_test *test, struct healcl_error *error)
{
    for (size_t i = 0; i < CASES; i++) {
        const int8_t byte = (int8_t)test->before.cases[i].b, stored_byte = test->after.bytes[i];
        const int32_t word = (int32_t)test->before.cases[i].b, stored_word = test->after.words[i];
        TRY(compare_answers(test, i, error));
        if (stored_byte != byte || stored_word != word)
            FAIL_TEST(error, &test->device->info,
                      "int8 %d and int32 %" PRId32 " are stored as %d and %" PRId32, byte, word,
                      stored_byte, stored_word);
    }
    TRY(compare_counters(test, error));
    return compare_rounds(test, error);
}

/* ---------------------------------------------------------------- running */

/* Adds a buffer with these contents to a launch and to its arguments. The caller releases the
 * launch, also after an error. */
static enum healcl_status add_buffer(struct healcl_device *device, struct test_launch *kernel,
                                     size_t bytes, const void *contents, struct healcl_error *error)
{
    struct buffer *buffer = &kernel->buffers[kernel->launch.argument_count];
    TRY(device_upload_memory(device, NULL, bytes, contents, buffer, error));
    kernel->launch.arguments[kernel->launch.argument_count++].buffer = buffer;
    return HEALCL_OK;
}

static void release_launch(struct healcl_device *device, struct test_launch *kernel)
{
    for (uint32_t i = 0; i < MEMBERS; i++)
        device_buffer_release(device, &kernel->buffers[i]);
}

/* Prepares the first launch of the kernel self_test: its buffers, and a flag by value that says if
 * it is the first launch. Later launches check what earlier ones have stored. */
static enum healcl_status prepare_launch(struct self_test *test, struct healcl_error *error)
{
    struct healcl_device *device = test->device;
    struct test_launch *kernel = &test->kernel;
    struct launch *launch = &kernel->launch;
    *kernel = (struct test_launch){.launch = {.program = "base/self_test",
                                              .kernel = "self_test",
                                              .options = kernel->options,
                                              .arguments = kernel->arguments}};
    /* CALLED: functions are not inlined, so that they compile faster. */
    snprintf(kernel->options, sizeof kernel->options, "-D CALLED -D ANSWERS=%d -D ROUNDS=%d",
             ANSWERS, ROUNDS);
    for (uint32_t i = 0; i < MEMBERS; i++)
        TRY(add_buffer(device, kernel, members[i].bytes,
                       (const char *)&test->before + members[i].offset, error));
    test->is_first = true;
    test->repetitions = 0;
    launch->arguments[launch->argument_count++] =
        (struct launch_argument){.value = &test->is_first, .size = sizeof test->is_first};
    /* A power of two up to 64 divides the 512 cases evenly. */
    launch->local_size = device->tuning.local_size < 64 ? device->tuning.local_size : 64;
    launch->groups = CASES / launch->local_size;
    return HEALCL_OK;
}

/* Waits for the device and reads all buffers of the kernel. */
static enum healcl_status read_data(struct self_test *test, struct healcl_error *error)
{
    for (uint32_t i = 0; i < MEMBERS; i++)
        TRY(device_read(test->device, &test->kernel.buffers[i], 0, members[i].bytes,
                        (char *)&test->after + members[i].offset, error));
    return HEALCL_OK;
}

/* Builds the kernel, runs it once and reads its buffers. device_attach builds it before the span of
 * the launch begins. The caller releases the launch. */
static enum healcl_status run_kernel(struct self_test *test, struct healcl_error *error)
{
    struct healcl_device *device = test->device;
    struct trace *trace = device->programs->opening_trace;
    TRY(prepare_launch(test, error));
    TRY(device_attach(device, &test->kernel.launch, &(struct kernel *){NULL}, error));
    size_t span = trace_begin(trace, "self-test", "launch self_test");
    TRY(device_launch(device, &test->kernel.launch, error));
    TRY(read_data(test, error));
    trace_end(trace, span);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- vectors */

enum { LANE_GROUPS = 3, LANE_CASES = LANE_GROUPS * MODULI, LANE_ANSWERS = 6 };

/* As cl/base/self_test_lanes.cl has them: eight a and b, and their modulus. */
struct lane_case {
    uint64_t a[LANES], b[LANES], q;
};

/* Sets edge cases for the modulus of a vector. An estimated quotient that is too small by the least
 * part is wrong by 1 there: a or a*b is just below a multiple of q, or is one. */
static void set_edge_cases(struct lane_case *lanes)
{
    const uint64_t q = lanes->q, least = (uint64_t)1 << 63; /* of int64 */
    const uint64_t last = UINT64_MAX / q * q;               /* the last multiple of q below 2^64 */
    const uint64_t below = (uint64_t)((((uint128)1 << 32) + q - 1) % q); /* 2^32 - 1 mod q */
    const struct {
        uint64_t a, b;
    } edges[LANES] = {
        {q - 1, 1},
        {q - 1, q - 1},
        {q - 1 - (q - 1) / UINT32_MAX, INT64_MAX},
        {UINT64_MAX, INT64_MAX},
        {least, least},
        {last - 1, below},
        {last, q / 2},
        {q / 2 + 1, 2},
    };
    for (size_t i = 0; i < LANES; i++) {
        lanes->a[i] = edges[i].a;
        lanes->b[i] = edges[i].b;
    }
}

/* Makes three vectors for each modulus: two of general values, in both orders, and one of edge
 * cases. */
static void make_lane_cases(struct lane_case cases[LANE_CASES])
{
    for (size_t i = 0; i < LANE_CASES; i++) {
        const size_t first = i % LANE_GROUPS * LANES; /* value; behind the last one: edges */
        cases[i].q = moduli[i / LANE_GROUPS];
        if (first >= VALUES) {
            set_edge_cases(&cases[i]);
            continue;
        }
        for (size_t j = 0; j < LANES; j++) {
            cases[i].a[j] = values[first + j];
            cases[i].b[j] = values[VALUES - 1 - first - j];
        }
    }
}

/* The bits of the double that kernels use as 1/q. It is rounded down by a margin, so that estimated
 * quotients are never too large. */
static uint64_t inverse_bits(uint64_t q)
{
    const double inverse = 1.0 / (double)q * (1 - INVERSE_MARGIN);
    uint64_t bits;
    memcpy(&bits, &inverse, sizeof bits);
    return bits;
}

/* Checks the answers of one vector of cases. Functions of cl/base/divisor.cl are lazy: their
 * results are congruent modulo q, and below a limit that may be above q. Returns the name of the
 * first wrong function, or NULL. */
static const char *find_wrong_lane(const struct lane_case *lanes, enum multiply multiply,
                                   uint64_t answers[LANE_ANSWERS][LANES])
{
    const uint128 q = lanes->q;
    for (size_t i = 0; i < LANES; i++) {
        /* The kernel, too, takes the magnitude of b. divisor.cl states and explains the limits. */
        const uint128 a = lanes->a[i], b = lanes->b[i] >> 63 ? 0 - lanes->b[i] : lanes->b[i];
        const struct {
            const char *name;
            uint128 value, limit; /* congruent modulo q, and below limit; 0: not defined for q */
        } rows[LANE_ANSWERS] = {
            {"shrink", a, q + (1 << 16)},
            {"reduce", a, q},
            {"multiply", a % q * b, q},
            {"append", ((a % q) << 32) + b, q + (q >> 8) + (1 << 17)},
            {"multiply_lazy", a * (lanes->a[0] % q), q >> 62 ? 0 : 2 * q},
        };
        if (multiply == MULTIPLY_BY_DOUBLES && answers[0][i] != inverse_bits(lanes->q))
            return "inverse";
        for (size_t j = 0; j + 1 < LANE_ANSWERS; j++) {
            const uint64_t answer = answers[j + 1][i];
            if (rows[j].limit > 0 && (answer >= rows[j].limit || answer % q != rows[j].value % q))
                return rows[j].name;
        }
    }
    return NULL;
}

/* Runs the kernel that tests vectors, compiled for the current way to multiply, and reads its
 * answers. The caller releases the launch. */
static enum healcl_status run_lanes(struct healcl_device *device, const struct lane_case *cases,
                                    uint64_t (*answers)[LANE_ANSWERS][LANES],
                                    struct test_launch *kernel, struct healcl_error *error)
{
    const size_t bytes = LANE_CASES * sizeof *answers;
    kernel->launch = (struct launch){.program = "base/self_test_lanes",
                                     .kernel = "self_test_lanes",
                                     .options = kernel->options,
                                     .arguments = kernel->arguments,
                                     .groups = LANE_CASES,
                                     .local_size = 1};
    snprintf(kernel->options, sizeof kernel->options,
             "-D CALLED -D ANSWERS=%d -D MULTIPLY=%" PRIu32, LANE_ANSWERS, device->tuning.multiply);
    memset(answers, 0, bytes);
    TRY(add_buffer(device, kernel, LANE_CASES * sizeof *cases, cases, error));
    TRY(add_buffer(device, kernel, bytes, answers, error));
    TRY(device_launch(device, &kernel->launch, error));
    return device_read(device, &kernel->buffers[1], 0, bytes, answers, error);
}

/* Tests the way to multiply vectors that the device is tuned to use. *wrong: the name of the first
 * function that gives wrong answers, or NULL. */
static enum healcl_status find_wrong_function(struct healcl_device *device, const char **wrong,
                                              struct healcl_error *error)
{
    const enum multiply multiply = (enum multiply)device->tuning.multiply;
    struct lane_case cases[LANE_CASES];
    uint64_t answers[LANE_CASES][LANE_ANSWERS][LANES];
    struct test_launch kernel = {.launch = {.groups = 0}};
    make_lane_cases(cases);
    *wrong = NULL;
    enum healcl_status status = run_lanes(device, cases, answers, &kernel, error);
    release_launch(device, &kernel);
    TRY(status);
    for (size_t i = 0; i < LANE_CASES && !*wrong; i++)
        *wrong = find_wrong_lane(&cases[i], multiply, answers[i]);
    return HEALCL_OK;
}

/* Finds a way to multiply vectors that gives right products on this device, if its tuning uses
 * vectors. A way that is wrong is noted. device_note_findings then selects another way, or kernels
 * without vectors, which ends the loop. */
static enum healcl_status test_lanes(struct healcl_device *device, struct healcl_error *error)
{
    struct device_info *info = &device->info;
    while (tuning_has_vectors(&device->tuning)) {
        const uint32_t multiply = device->tuning.multiply, bit = UINT32_C(1) << multiply;
        const char *wrong;
        TRY(find_wrong_function(device, &wrong, error));
        if (!wrong) {
            info->multiply_right |= bit;
            return HEALCL_OK;
        }
        info->multiply_wrong |= bit;
        if (device->programs->package) /* compiled for this way only */
            FAIL_TEST(error, info, "%s of vectors is wrong", wrong);
        device_log(device, "%s: %s is wrong: %s of vectors", info->name,
                   multiply_name((enum multiply)multiply), wrong);
        TRY(device_note_findings(device, info->loop_limit, info->launches_overlap, error));
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- overlapping */

enum {
    GROUPS = 64,               /* of a launch: little work for several compute units */
    LAUNCHES = 16,             /* in one sample */
    SAMPLES = 5,               /* the best of which counts */
    SAMPLE_NS_MOST = 50000000, /* of a device where launches are long: nothing is to be gained */
};

/* Measures launches of which each depends on the one before, in a queue that lets `at_once`
 * launches overlap. The best sample counts. On a slow device one sample is enough. */
static enum healcl_status time_launches(struct self_test *test, uint32_t at_once,
                                        uint64_t *nanoseconds, struct healcl_error *error)
{
    struct healcl_device *device = test->device;
    struct device_tuning tuning = device->tuning;
    tuning.launches_at_once = at_once;
    TRY(device_set_tuning(device, &tuning, error));
    *nanoseconds = UINT64_MAX;
    for (int sample = 0; sample < SAMPLES; sample++) {
        uint64_t start = monotonic_nanoseconds();
        for (int i = 0; i < LAUNCHES; i++)
            TRY(device_launch(device, &test->kernel.launch, error));
        test->repetitions += LAUNCHES;
        TRY(device_finish(device, error));
        uint64_t spent = monotonic_nanoseconds() - start;
        *nanoseconds = spent < *nanoseconds ? spent : *nanoseconds;
        if (spent > SAMPLE_NS_MOST)
            break;
    }
    return HEALCL_OK;
}

/* Measures if an out-of-order queue costs nothing even if launches depend on each other. Then such
 * a queue is used, and independent launches may overlap. Intel's driver for CPUs takes 1.4 times as
 * long in such a queue, PoCL 0.95 times. */
static enum healcl_status find_overlap(struct self_test *test, bool *overlap,
                                       struct healcl_error *error)
{
    const struct device_info *info = &test->device->info;
    struct launch *launch = &test->kernel.launch;
    uint64_t in_order, out_of_order;
    *overlap = false;
    if (!info->out_of_order || !(info->type & CL_DEVICE_TYPE_CPU) || info->compute_units == 1)
        return HEALCL_OK;
    test->is_first = false;
    launch->groups = launch->groups < GROUPS ? launch->groups : GROUPS;
    TRY(time_launches(test, 1, &in_order, error));
    if (in_order >= SAMPLE_NS_MOST)
        return HEALCL_OK;
    TRY(time_launches(test, LAUNCHES_AT_ONCE_MAX, &out_of_order, error));
    *overlap = out_of_order / 9 < in_order / 8; /* less than 9/8 of the time in order */
    return HEALCL_OK;
}

/* Checks what the repeated launches of find_overlap have stored together. Each launch compares what
 * the one before it stored, so launches that run too early are found. */
static enum healcl_status compare_repetitions(struct self_test *test, struct healcl_error *error)
{
    const struct device_info *info = &test->device->info;
    if (test->repetitions == 0)
        return HEALCL_OK;
    TRY(read_data(test, error));
    if (memcmp(test->after.cases, test->before.cases, sizeof test->before.cases) != 0)
        FAIL_TEST(error, info, "%" PRIu32 " launches have changed their inputs", test->repetitions);
    if (test->after.counters.changed != 0)
        FAIL_TEST(error, info,
                  "%" PRIu32 " work-items of %" PRIu32
                  " launches read other values than the launch before had stored",
                  test->after.counters.changed, test->repetitions);
    return compare_data(test, error);
}

/* ---------------------------------------------------------------- all parts */

/* Tests what kernels compute. *runs: whether kernels could be built and run; if so, an error means
 * wrong answers. The caller releases the launch. */
static enum healcl_status test_answers(struct self_test *test, bool *runs,
                                       struct healcl_error *error)
{
    struct healcl_device *device = test->device;
    const struct device_info *info = &device->info;
    enum healcl_status status = device_try_map(device, error);
    THEN(status, run_kernel(test, error));
    *runs = status == HEALCL_OK;
    THEN(status, compare_data(test, error));
    if (status == HEALCL_OK) {
        status = test_lanes(device, error);
        *runs = status == HEALCL_OK || device->programs->package;
    }
    if (!*runs)
        error_prefix(error, "device %u:%u %s: self-test: ", info->platform_index,
                     info->device_index, info->name);
    return status;
}

/* Runs all parts of the self-test with one set of compiler options. *runs: as for test_answers.
 * Findings go to device->info. */
static enum healcl_status run_and_compare(struct self_test *test, bool *runs,
                                          struct healcl_error *error)
{
    struct healcl_device *device = test->device;
    struct trace *trace = device->programs->opening_trace;
    bool overlap = false;
    device->info.failed_families = 0;
    device->info.multiply_right = device->info.multiply_wrong = 0;
    enum healcl_status status = test_answers(test, runs, error);
    size_t span = trace_begin(trace, "self-test", "find out whether launches may overlap");
    THEN(status, find_overlap(test, &overlap, error));
    THEN(status, compare_repetitions(test, error));
    trace_end(trace, span);
    release_launch(device, &test->kernel);
    TRY(status);
    const uint32_t rounds = test->after.counters.rounds;
    return device_note_findings(device, rounds < ROUNDS ? rounds : 0, overlap, error);
}

/* Repeats the self-test with fewer and fewer compiler features (enum compiler_limit), until kernels
 * run. If the process crashes in a compiler, the next process begins behind the feature that was
 * noted last. After a failure with a cached binary, tries once more from source. */
static enum healcl_status try_compilers(struct self_test *test, struct healcl_error *error)
{
    struct healcl_device *device = test->device;
    bool runs = false;
    uint32_t retried_limit = UINT32_MAX; /* that was tried again without cached binaries: none */
    for (uint32_t limit = trial_first();; healcl_error_clear(error)) {
        const bool is_last = limit >= COMPILER_NOT_OPTIMIZING;
        device->info.compiler_limit = limit;
        trial_note(is_last ? 0 : limit + 1); /* where to begin after a crash */
        enum healcl_status status = run_and_compare(test, &runs, error);
        trial_note(0);
        /* It has passed, or failed for a reason that is not the device's, such as host memory. */
        if (status != HEALCL_DEVICE && (status != HEALCL_OK || device->info.failed_families == 0))
            return status;
        const bool had_binary = device_programs_discard(device) && !device->programs->package;
        if (had_binary && retried_limit != limit)
            retried_limit = limit; /* once more with the same limit, from source */
        else if (runs || is_last)
            return status;
        else
            limit++;
    }
}

/* Runs the self-test. If it fails, the device is not trusted: no binary of its compiler is cached.
 */
enum healcl_status self_test_run(struct healcl_device *device, struct healcl_error *error)
{
    struct self_test *test = calloc(1, sizeof *test);
    NEED_MEMORY(test, error);
    init_test(test, device);
    device->programs->distrusted = false;
    enum healcl_status status = try_compilers(test, error);
    device->programs->distrusted = status != HEALCL_OK;
    device_pool_empty(device);
    free(test);
    return status;
}
