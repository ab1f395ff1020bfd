/* Which way to multiply residues in vectors is the fastest on a device: cl/base/multiply.cl. */
#include <stdbool.h>
#include <string.h>

#include "cl/base/base.h"
#include "core/clock.h"
#include "programs/internal.h"

__extension__ typedef unsigned __int128 uint128;

enum {
    COUNT = MULTIPLY_VECTORS * LANES,
    SAMPLES = 4,         /* of each way, in turn; the best one counts */
    SAMPLE_NS = 1000000, /* which clocks can tell */
    ROUNDS_MOST = 1 << 16
};

/* A prime of 62 bits. */
static const uint64_t q = 4611686018427322369;

/* Per cent of the time of a way named before that another one may take, to be chosen instead: what
 * less than that saves may be chance. */
enum { WORTH = 90 };

static const char program_name[] = "base/multiply";

struct probe {
    struct launch launch;
    struct buffer x, y, modulus;
    uint32_t way, rounds;
    uint64_t all_rounds; /* since x was first */
    bool is_unsteady;    /* products were right at one time and wrong at another */
    uint64_t first[COUNT], factors[COUNT];
};

/* Buffers are the caller's to release, also where this fails. */
static enum healcl_status prepare(struct healcl_device *device, struct probe *probe,
                                  struct healcl_error *error)
{
    const struct modulus modulus = {.value = q,
                                    .normalized = q << 2,
                                    .reciprocal = (uint64_t)(~(uint128)0 / (q << 2)),
                                    .shift = 2};
    *probe = (struct probe){.rounds = 1};
    for (uint64_t i = 0; i < COUNT; i++) {
        probe->first[i] = ~i * 0x9e3779b97f4a7c15 % q;
        probe->factors[i] = ~i * 0xc2b2ae3d27d4eb4f % q;
    }
    TRY(device_upload_memory(device, NULL, sizeof probe->factors, probe->factors, &probe->y,
                             error));
    TRY(device_upload_memory(device, NULL, sizeof modulus, &modulus, &probe->modulus, error));
    probe->launch =
        (struct launch){.program = program_name,
                        .kernel = "multiply",
                        .argument_count = 5,
                        .arguments = {{.buffer = &probe->x},
                                      {.buffer = &probe->y},
                                      {.buffer = &probe->modulus},
                                      {.value = &probe->way, .size = sizeof probe->way},
                                      {.value = &probe->rounds, .size = sizeof probe->rounds}},
                        .local_size = 1,
                        .groups = 1};
    return HEALCL_OK;
}

/* As if nothing had been multiplied yet. */
static enum healcl_status start_over(struct healcl_device *device, struct probe *probe,
                                     struct healcl_error *error)
{
    device_buffer_release(device, &probe->x);
    probe->all_rounds = 0;
    return device_upload_memory(device, NULL, sizeof probe->first, probe->first, &probe->x, error);
}

static enum healcl_status launch(struct healcl_device *device, struct probe *probe,
                                 struct healcl_error *error)
{
    probe->all_rounds += probe->rounds;
    return device_launch(device, &probe->launch, error);
}

/* x^n mod q */
static uint64_t power(uint64_t x, uint64_t n)
{
    uint64_t result = 1;
    for (; n > 0; n >>= 1) {
        if (n & 1)
            result = (uint64_t)((uint128)result * x % q);
        x = (uint64_t)((uint128)x * x % q);
    }
    return result;
}

/* Reads what all launches since the start have come to. */
static enum healcl_status read_products(struct healcl_device *device, const struct probe *probe,
                                        uint64_t products[COUNT], bool *right,
                                        struct healcl_error *error)
{
    TRY(device_read(device, &probe->x, 0, sizeof probe->first, products, error));
    *right = true;
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t known =
            (uint64_t)((uint128)probe->first[i] * power(probe->factors[i], probe->all_rounds) % q);
        *right = *right && products[i] == known;
    }
    return HEALCL_OK;
}

static enum healcl_status fail_unsteady(const struct healcl_device *device, struct probe *probe,
                                        struct healcl_error *error)
{
    probe->is_unsteady = true;
    FAIL_TEST(error, &device->info, "products in vectors are %s",
              "right at one time and wrong at another");
}

/* Whether a round by probe->way is right; one that the program lacks does nothing. One that is
 * wrong is so twice: a compiler is at fault, and the way is not taken. */
static enum healcl_status try_way(struct healcl_device *device, struct probe *probe, bool *right,
                                  struct healcl_error *error)
{
    uint64_t products[2][COUNT];
    for (int i = 0; i < 2; i++) {
        TRY(start_over(device, probe, error));
        TRY(launch(device, probe, error));
        TRY(read_products(device, probe, products[i], right, error));
        if (i == 0 && (*right || memcmp(products[i], probe->first, sizeof probe->first) == 0))
            return HEALCL_OK;
    }
    return memcmp(products[0], products[1], sizeof products[0]) == 0
               ? HEALCL_OK
               : fail_unsteady(device, probe, error);
}

static enum healcl_status time_way(struct healcl_device *device, struct probe *probe,
                                   uint64_t *nanoseconds, struct healcl_error *error)
{
    uint64_t start = monotonic_nanoseconds();
    TRY(launch(device, probe, error));
    TRY(device_finish(device, error));
    *nanoseconds = monotonic_nanoseconds() - start;
    return HEALCL_OK;
}

/* Products go on from where those of the launch before have ended: at the end one look tells of all
 * of them. */
static enum healcl_status time_ways(struct healcl_device *device, struct probe *probe,
                                    const bool right[MULTIPLY_COUNT], uint64_t best[MULTIPLY_COUNT],
                                    struct healcl_error *error)
{
    uint64_t spent = 0, products[COUNT];
    bool all_right = true;
    TRY(start_over(device, probe, error));
    while (spent < SAMPLE_NS && probe->rounds < ROUNDS_MOST) {
        probe->rounds *= 2;
        TRY(time_way(device, probe, &spent, error));
    }
    for (uint32_t i = 0; i < SAMPLES * MULTIPLY_COUNT; i++) {
        uint32_t way = i % MULTIPLY_COUNT;
        probe->way = way;
        if (!right[way])
            continue;
        TRY(time_way(device, probe, &spent, error));
        best[way] = spent < best[way] ? spent : best[way];
    }
    TRY(read_products(device, probe, products, &all_right, error));
    return all_right ? HEALCL_OK : fail_unsteady(device, probe, error);
}

static enum healcl_status measure(struct healcl_device *device, struct probe *probe,
                                  uint32_t *fastest, struct healcl_error *error)
{
    uint64_t best[MULTIPLY_COUNT];
    bool right[MULTIPLY_COUNT];
    uint32_t some = MULTIPLY_COUNT; /* a way that is right */
    for (uint32_t way = 0; way < MULTIPLY_COUNT; way++) {
        best[way] = UINT64_MAX;
        probe->way = way;
        TRY(try_way(device, probe, &right[way], error));
        if (right[way] && (some == MULTIPLY_COUNT || way == MULTIPLY_BY_HALVES))
            some = way;
    }
    if (some == MULTIPLY_COUNT)
        return HEALCL_OK;
    probe->way = some;
    TRY(time_ways(device, probe, right, best, error));
    for (uint32_t way = 0; way < MULTIPLY_COUNT; way++)
        if (best[way] / WORTH < best[*fastest] / 100)
            *fastest = way;
    return HEALCL_OK;
}

enum healcl_status device_find_multiply(struct healcl_device *device, uint32_t *fastest,
                                        struct healcl_error *error)
{
    struct probe probe;
    struct healcl_error problem = {.status = HEALCL_OK};
    enum healcl_status status = prepare(device, &probe, &problem);
    *fastest = device->info.double_width > 0 ? MULTIPLY_BY_DOUBLES : MULTIPLY_BY_HALVES;
    if (status == HEALCL_OK)
        status = measure(device, &probe, fastest, &problem);
    device_buffer_release(device, &probe.x);
    device_buffer_release(device, &probe.y);
    device_buffer_release(device, &probe.modulus);
    device_programs_forget(device, program_name); /* a package has no use for it */
    if (status == HEALCL_DEVICE && !probe.is_unsteady)
        status = HEALCL_OK;
    if (status != HEALCL_OK && error)
        *error = problem;
    else
        healcl_error_clear(&problem);
    return status;
}
