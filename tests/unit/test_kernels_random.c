/*
 * Every form of the op table on the device against the host reference: random arguments of random
 * shapes, whose tensors are random views, often of one storage. Every dtype that a form takes,
 * every variant of its flags. A run takes a share of them.
 */
#include "helper_device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper_share.h"
#include "tools/problem_check.h"

static const uint64_t seed = 0x4ea1;
enum { SHARE = 8, ROUNDS = 40, ELEMENTS = 1500 };

static int checked; /* problems */
static struct healcl_device *device;

/* Programs are built once for all tests. */
static int open_device(void **state)
{
    (void)state;
    setenv("HEALCL_CACHE_DIR", "", 1);
    share_choose_programs(share_programs_wanted());
    if (helper_open_tested(helper_loader(), &device, &error) != HEALCL_OK) {
        print_error("%s\n", error.message);
        return -1;
    }
    print_message("seed %#" PRIx64 ", %d rounds\n", seed, ROUNDS);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    healcl_device_close(device);
    healcl_error_clear(&error);
    print_message("%d problems\n", checked);
    return 0;
}

static void check_one(const struct form *form, const struct problem_dtypes *dtypes,
                      uint64_t variant, struct random random)
{
    struct problem problem;
    struct placement placement;
    struct problem_data data;
    uint64_t start = random.state;
    problem_make(&problem, form, dtypes, ELEMENTS, ANY_SHAPE, variant, &random);
    placement_make(&placement, &problem, ARRANGEMENT_RANDOM, variant, &random);
    problem_data_init(&data, &problem, &random);
    enum healcl_status result = problem_check(device, &problem, &placement, &data, &random, &error);
    problem_data_release(&data);
    checked++;
    if (result == HEALCL_OK)
        return;
    struct writer text = {0};
    problem_put(&text, &problem);
    print_message("%s%s", text.bytes, error.detail ? error.detail : "");
    fail_msg("variant %" PRIu64 ", random state %#" PRIx64 ": %s", variant, start, error.message);
}

/* All forms of a family. */
static void family(void **state)
{
    struct random random = {seed};
    uint64_t number = 0;
    const char *name = *state;
    for (size_t i = 0; i < form_count; i++) {
        struct problem_dtypes dtypes;
        if (strcmp(forms[i].operation->family, name) != 0 || !problem_is_made(&forms[i]))
            continue;
        bool has_also = problem_also(&forms[i]) >= 0, has_index = problem_has_index(&forms[i]);
        for (int v = 0; v < DTYPE_COUNT; v++)
            for (int a = 0; a < DTYPE_COUNT; a++)
                for (int x = 0; x < DTYPE_COUNT; x++) {
                    dtypes = (struct problem_dtypes){(enum dtype)v, (enum dtype)a, (enum dtype)x};
                    if ((!has_also && a != v) || (!has_index && x != v) ||
                        !problem_accepts(&forms[i], &dtypes))
                        continue;
                    for (int round = 0; round < ROUNDS; round++) {
                        random_bits(&random);
                        if (share_takes(name, number++, SHARE))
                            check_one(&forms[i], &dtypes, (uint64_t)round, random);
                    }
                }
    }
}

int main(void)
{
    static char memory[] = "memory", view[] = "view", elementwise[] = "elementwise", sum[] = "sum";
    static char transform[] = "transform", digits[] = "digits", gather[] = "gather";
    const struct CMUnitTest tests[] = {
        {"memory", family, NULL, NULL, memory},           {"views", family, NULL, NULL, view},
        {"elementwise", family, NULL, NULL, elementwise}, {"sums", family, NULL, NULL, sum},
        {"transforms", family, NULL, NULL, transform},    {"digits", family, NULL, NULL, digits},
        {"gathers", family, NULL, NULL, gather},
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
