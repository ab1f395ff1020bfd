/*
 * The variants of transforms, also those that other devices than this one run, against the host
 * reference: every length, with moduli around the borders of their arithmetic, tiles of local
 * memory of several sizes, and every arrangement of tensors.
 */
#include "helper_device.h"

#include <stdio.h>
#include <string.h>

#include "helper_share.h"
#include "kernels/derived.h"
#include "tools/problem_check.h"

static const uint64_t seed = 0x7a115;
static struct healcl_device *device;
static struct device_info info; /* the device's own */
static struct device_tuning tuning;
static int checked;

static int least; /* new things of a program in this round; the last one is of 1 */

static int open_device(void **state)
{
    (void)state;
    if (device)
        return 0;
    setenv("HEALCL_CACHE_DIR", "", 1);
    print_message("seed %#lx\n", (unsigned long)seed);
    if (helper_open_tested(helper_loader(), &device, &error) != HEALCL_OK)
        return -1;
    info = device->info;
    tuning = device->tuning;
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    if (least > 1)
        return 0;
    healcl_device_close(device);
    healcl_error_clear(&error);
    print_message("%d transforms, or a look at them\n", checked);
    return 0;
}

/* Properties that the device is set to report. */
struct setting {
    enum kernel_style variant;
    uint32_t local_size;   /* work-items that share a transform */
    uint64_t local_memory; /* bytes at most */
    int shortest, longest; /* log2 of the lengths */
    uint32_t radix;        /* 0: the default */
    bool interleaved;      /* rows that lie between each other, else every arrangement */
};

enum { MODULI = 3, NO_LIMIT = 1 << 30 };

/* Moduli at the edges of a class of ranges; the variant chooses the class. */
static int64_t modulus_number(uint64_t variant, uint64_t i, enum dtype dtype)
{
    enum { OF_CLASS = 5 };
#define POWER(bits) ((int64_t)1 << (bits))
    static const int64_t wide[][OF_CLASS] = {
        {POWER(62) + 1, INT64_MAX, 1, POWER(62), INT64_MAX - 24},
        {POWER(62) - 1, POWER(60) + 1, 2, POWER(60), POWER(61) + 1},
        {POWER(60) - 1, 1, POWER(59) + 1, 3, 65537}};
    static const int64_t narrow[][OF_CLASS] = {{INT32_MAX, 1, 65537, POWER(30) + 1, POWER(30)},
                                               {POWER(30) - 1, POWER(28) + 1, 2, POWER(28), 3},
                                               {POWER(28) - 1, 1, POWER(27) + 1, 2, 65537}};
    const uint64_t class = variant % 3, number = (variant / 3 + i) % OF_CLASS;
    return dtype == DTYPE_INT32 ? narrow[class][number] : wide[class][number];
}

static uint64_t
    largest; /* modulus, which the host knows of; 0: it does not, as with problem_check */

uint64_t __wrap_launcher_largest(struct launcher *launcher, const struct storage *storage);
uint64_t __real_launcher_largest(struct launcher *launcher, const struct storage *storage);

uint64_t __wrap_launcher_largest(struct launcher *launcher, const struct storage *storage)
{
    return largest > 0 ? largest : __real_launcher_largest(launcher, storage);
}

static void check_transform(const struct form *form, const struct problem_dtypes *dtypes, int64_t n,
                            int64_t k, enum arrangement arrangement, uint64_t variant)
{
    struct random random = {seed + variant * 31 + (uint64_t)n};
    struct problem problem;
    struct problem_data data;
    struct placement placement;
    problem_make(&problem, form, dtypes, n, k, variant, &random);
    if (!arrangement_applies(&problem, arrangement))
        arrangement = ARRANGEMENT_CONTIGUOUS;
    problem_data_init(&data, &problem, &random);
    largest = 0;
    for (int64_t i = 0; i < k; i++) {
        const int64_t q = modulus_number(variant, (uint64_t)i, dtypes->value);
        dtype_store(dtypes->value, data.packed[form_parameter(form, "q")], i, q);
        largest = (uint64_t)q > largest ? (uint64_t)q : largest;
    }
    placement_make(&placement, &problem, arrangement, variant, &random);
    enum healcl_status result = problem_check(device, &problem, &placement, &data, &random, &error);
    problem_data_release(&data);
    largest = 0;
    checked++;
    if (result == HEALCL_OK)
        return;
    struct writer text = {0};
    problem_put(&text, &problem);
    print_message("%s%s", text.bytes, error.detail ? error.detail : "");
    fail_msg("%s of %s, %s, variant %d: %s", form->name, dtype_name(dtypes->also),
             arrangement_name(arrangement), (int)variant, error.message);
}

enum { SHARE = 20 };

static uint64_t number;   /* of transforms, checked or not */
static bool is_of_others; /* the setting is of another style than the device's */

static void take_transform(const struct form *form, const struct problem_dtypes *dtypes, int log2_n,
                           int64_t k, enum arrangement arrangement, uint64_t variant)
{
    if (share_takes("transforms", number++, SHARE) && !is_of_others)
        check_transform(form, dtypes, (int64_t)1 << log2_n, k, arrangement, variant);
}

static const struct problem_dtypes all_dtypes[] = {{DTYPE_INT64, DTYPE_INT64, DTYPE_INT64},
                                                   {DTYPE_INT64, DTYPE_INT8, DTYPE_INT32},
                                                   {DTYPE_INT32, DTYPE_INT32, DTYPE_INT64},
                                                   {DTYPE_INT32, DTYPE_INT8, DTYPE_INT32}};

enum { DTYPES = sizeof all_dtypes / sizeof *all_dtypes };

/* All arrangements, flags by turns. Other dtypes than int64 are other programs, which take long to
 * build: they come at every third length. */
static void check_length(const struct form *form, int log2_n)
{
    int rounds = log2_n < 13 ? 2 : 1;
    uint64_t variant = (uint64_t)log2_n;
    for (int round = 0; round < rounds; round++)
        for (int arrangement = 0; arrangement <= ARRANGEMENT_BESIDE; arrangement++)
            take_transform(form, &all_dtypes[0], log2_n, MODULI, (enum arrangement)arrangement,
                           variant++);
    for (int round = 0; log2_n % 3 == 0 && round < 4; round++)
        take_transform(form, &all_dtypes[1 + log2_n / 3 % 3], log2_n, MODULI,
                       (enum arrangement)(round % ARRANGEMENT_COUNT), variant++);
}

/* Every number of rows that lie between each other and that a line of the caches has or not;
 * dtypes, arrangements and flags by turns, and HEAL's layout as it is. */
static void check_interleaved(const struct form *form, int log2_n)
{
    static const int64_t k[] = {1, 2, 3, 4, 5, 8, 9, 32};
    uint64_t variant = (uint64_t)log2_n;
    for (size_t i = 0; i < sizeof k / sizeof *k; i++, variant += 3) {
        take_transform(form, &all_dtypes[0], log2_n, k[i], ARRANGEMENT_CONTIGUOUS, variant);
        take_transform(form, &all_dtypes[variant / 3 % DTYPES], log2_n, k[i],
                       (enum arrangement)(variant % (ARRANGEMENT_BESIDE + 1)), variant + 1);
    }
}

static void check_forms(const struct setting *setting)
{
    for (size_t i = 0; i < form_count; i++) {
        if (form_id(&forms[i]) != OPERATION_NTT && form_id(&forms[i]) != OPERATION_INTT)
            continue;
        if (form_parameter(&forms[i], "axis") >= 0) /* the form with all that there is to choose */
            for (int log2_n = setting->shortest; log2_n <= setting->longest; log2_n++)
                (setting->interleaved ? check_interleaved : check_length)(&forms[i], log2_n);
    }
}

/* Those of the style of kernels that the device has, or all. */
static void check_setting(void **state)
{
    const struct setting *setting = *state;
    is_of_others = !share_is_all() && setting->variant != tuning.styles[FAMILY_transform];
    device->info = info;
    device->tuning = tuning;
    device->tuning.styles[FAMILY_transform] = setting->variant;
    device->tuning.transform_local_size = setting->local_size;
    if (setting->radix)
        device->tuning.transform_radix = device->tuning.transform_rows_radix = setting->radix;
    if (device->info.local_memory_bytes > setting->local_memory)
        device->info.local_memory_bytes = setting->local_memory;
    check_forms(setting);
}

int main(void)
{
    /* One work-item alone; as on most GPUs; a row in two parts, of few columns or many; lengths
     * that local memory does not hold even so. */
    static struct setting alone = {STYLE_LOCAL, 1, NO_LIMIT, 0, 6, 0, false};
    static struct setting group = {STYLE_LOCAL, 64, NO_LIMIT, 0, 17, 0, false};
    static struct setting parts = {STYLE_LOCAL, 32, 4096, 8, 15, 0, false};
    static struct setting columns = {STYLE_LOCAL, 256, 32768, 16, 17, 0, false};
    /* Rows that fit together, and that do not; radix 16 too, and 48 KiB, not all of it used. */
    static struct setting interleaved = {STYLE_LOCAL, 64, 4096, 0, 12, 8, true};
    static struct setting radix_16 = {STYLE_LOCAL, 32, 8192, 4, 12, 16, true};
    static struct setting odd_memory = {STYLE_LOCAL, 128, 49152, 9, 13, 8, true};
    static struct setting longest = {STYLE_LOCAL, 256, 32768, 17, 17, 8, true};
    static struct setting vectors = {STYLE_VECTORS, 1, NO_LIMIT, 7, 17, 0, false};
    static struct setting single = {STYLE_SINGLE, 1, NO_LIMIT, 1, 17, 0, false};
    static struct setting too_long = {STYLE_SINGLE, 1, 1024, 7, 8, 0, false};
    static struct setting general = {STYLE_GENERAL, 1, NO_LIMIT, 0, 9, 0, false};
    static struct setting general_group = {STYLE_GENERAL, 8, NO_LIMIT, 0, 9, 0, false};
    const struct CMUnitTest tests[] = {
        {"general", check_setting, NULL, NULL, &general},
        {"general, 8 work-items", check_setting, NULL, NULL, &general_group},
        {"local, one work-item", check_setting, NULL, NULL, &alone},
        {"local, 64 work-items", check_setting, NULL, NULL, &group},
        {"local, tiles of 512", check_setting, NULL, NULL, &parts},
        {"local, tiles of 4096", check_setting, NULL, NULL, &columns},
        {"local, interleaved rows", check_setting, NULL, NULL, &interleaved},
        {"local, interleaved rows, radix 16", check_setting, NULL, NULL, &radix_16},
        {"local, interleaved rows, 48 KiB", check_setting, NULL, NULL, &odd_memory},
        {"local, interleaved rows, two passes to 2^17", check_setting, NULL, NULL, &longest},
        {"vectors", check_setting, NULL, NULL, &vectors},
        {"single", check_setting, NULL, NULL, &single},
        {"single, rows too long", check_setting, NULL, NULL, &too_long},
    };
    /* Repeats, because kernels with the most new programs go first. */
    int failed = 0;
    share_choose_programs(PROGRAMS_VALUES);
    for (least = share_first_least(); least > 0 && failed == 0; least /= 2) {
        number = 0;
        share_programs_given(least);
        failed = cmocka_run_group_tests(tests, open_device, close_device);
    }
    return failed;
}
