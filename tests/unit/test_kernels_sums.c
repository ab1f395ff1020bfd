/*
 * Sums: numbers of terms around how many are read at a time, rows around the length of a
 * part, moduli of all sizes, values at the ends of the fast way's range and beyond it.
 */
#include "helper_one_device.h"

#include <stdio.h>
#include <string.h>

#include "helper_share.h"
#include "tools/problem_check.h"

enum { SHARE = 8 };

static const uint64_t seed = 0x5a35;

static const int64_t moduli[] = {1,
                                 2,
                                 3,
                                 65537,
                                 INT32_MAX,
                                 ((int64_t)1 << 61) - 1,
                                 ((int64_t)1 << 61) + 1,
                                 ((int64_t)1 << 62) - 57,
                                 (int64_t)1 << 62,
                                 INT64_MAX - 24,
                                 INT64_MAX};
enum { MODULI = sizeof moduli / sizeof *moduli };

/* Values of a, b and out: residues, one number everywhere, or residues except one. */
enum filling { RESIDUES, ALL_Q_MINUS_1, ALL_LARGEST, ALL_SMALLEST, ONE_ODD, ANYTHING, FILLINGS };

/* Where it is not 0, moduli are at most three less, and half of the residues the largest ones. */
static int64_t modulus_limit;

/* The largest number of the fast way: below 2^62. */
static int64_t largest(enum dtype dtype)
{
    return dtype == DTYPE_INT32 ? INT32_MAX : ((int64_t)1 << 62) - 1;
}

static int64_t odd_value(enum dtype dtype, struct random *random)
{
    static const int64_t values[] = {-1, INT64_MIN, INT64_MAX, (int64_t)1 << 62,
                                     ((int64_t)1 << 62) - 1};
    int64_t value = values[random_between(random, 0, 4)];
    return dtype == DTYPE_INT32 ? (int32_t)value : value;
}

static void fill_values(enum dtype dtype, void *array, int64_t count, enum filling filling,
                        struct random *random)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t q = modulus_limit ? modulus_limit : moduli[random_between(random, 0, MODULI - 1)];
        int64_t value = (int64_t)(random_bits(random) % (uint64_t)q);
        if (modulus_limit && (filling == ALL_Q_MINUS_1 || random_once_in(random, 2)))
            value = q - 1;
        else if (filling == ALL_Q_MINUS_1)
            value = INT64_MAX - 25;
        if (filling == ALL_LARGEST)
            value = largest(dtype);
        if (filling == ALL_SMALLEST)
            value = INT64_MIN;
        if (filling == ANYTHING)
            value = (int64_t)random_bits(random);
        if (!modulus_limit && value > largest(dtype) && filling != ANYTHING &&
            filling != ALL_Q_MINUS_1)
            value &= largest(dtype);
        dtype_store(dtype, array, i, dtype == DTYPE_INT32 ? (int32_t)value : value);
    }
    if (filling == ONE_ODD)
        dtype_store(dtype, array, random_between(random, 0, count - 1), odd_value(dtype, random));
}

static void set_shape(struct problem *problem, const char *name, uint32_t rank,
                      const int64_t *shape)
{
    struct problem_tensor *tensor = &problem->tensors[form_parameter(problem->form, name)];
    assert_int_equal(layout_init(&tensor->shape, rank, shape, dtype_size(tensor->dtype), &error),
                     HEALCL_OK);
}

/* Fills, solves and checks a problem. One of a, b and out has the odd filling, or all have.
 * variant: as of placement_make. */
static void check_variant(struct problem *problem, enum filling filling,
                          enum arrangement arrangement, uint64_t variant, struct random *random)
{
    struct problem_data data;
    struct placement placement;
    const char *odd = (const char *[]){"a", "b", "out", ""}[random_between(random, 0, 3)];
    problem_data_init(&data, problem, random);
    for (uint32_t i = 0; i < problem->form->parameter_count; i++) {
        struct problem_tensor *tensor = &problem->tensors[i];
        const char *name = problem->form->parameters[i].name;
        if (!tensor->present)
            continue;
        int64_t count = layout_elements(&tensor->shape);
        bool fits = *odd == 0 || strcmp(name, odd) == 0;
        if (tensor->contents == CONTENTS_VALUES || tensor->contents == CONTENTS_TAME)
            fill_values(tensor->dtype, data.packed[i], count, fits ? filling : RESIDUES, random);
        for (int64_t j = 0; tensor->contents == CONTENTS_MODULI && j < count; j++) {
            int64_t q = moduli[random_between(random, 0, MODULI - 1)];
            if (modulus_limit)
                q = modulus_limit > 3 ? modulus_limit - random_between(random, 0, 3)
                                      : modulus_limit;
            dtype_store(tensor->dtype, data.packed[i], j,
                        tensor->dtype == DTYPE_INT32 ? (q & INT32_MAX) | 1 : q);
        }
    }
    placement_make(&placement, problem, arrangement, variant, random);
    if (problem_check(device, problem, &placement, &data, random, &error) != HEALCL_OK) {
        struct writer text = {0};
        problem_put(&text, problem);
        print_message("%s%s", text.bytes, error.detail ? error.detail : "");
        fail_msg("%s, filling %d: %s", arrangement_name(arrangement), filling, error.message);
    }
    problem_data_release(&data);
}

static void check(struct problem *problem, enum filling filling, enum arrangement arrangement,
                  struct random *random)
{
    check_variant(problem, filling, arrangement, 0, random);
}

static const enum arrangement arrangements[] = {
    ARRANGEMENT_CONTIGUOUS, ARRANGEMENT_OFFSET,    ARRANGEMENT_STRIDED,
    ARRANGEMENT_TRANSPOSED, ARRANGEMENT_BROADCAST, ARRANGEMENT_RANDOM,
};
enum { ARRANGEMENTS = sizeof arrangements / sizeof *arrangements };

static const int64_t terms[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 1000};
enum { TERMS = sizeof terms / sizeof *terms };

static const struct form *form_named(const char *name)
{
    for (size_t i = 0; i < form_count; i++)
        if (strcmp(forms[i].name, name) == 0 && form_parameter(&forms[i], "q") >= 0 &&
            form_parameter(&forms[i], "axis") >= 0)
            return &forms[i];
    fail_msg("no form %s", name);
    return NULL;
}

static void numbers(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 4, 8, 512, 520, 1040};
    struct random random = {seed};
    uint64_t number = 0;
    for (int dtype = DTYPE_INT32; dtype <= DTYPE_INT64; dtype++)
        for (int t = 0; t < TERMS; t++)
            for (int n = 0; n < 6; n++)
                for (int k = 1; k <= 8; k += k < 4 ? 1 : 4)
                    for (int round = 0; round < FILLINGS; round++) {
                        struct problem problem;
                        struct problem_dtypes dtypes = {(enum dtype)dtype, (enum dtype)dtype,
                                                        (enum dtype)dtype};
                        bool is_first = random_once_in(&random, 2); /* the summed axis */
                        if (terms[t] * sizes[n] > 40000)
                            continue;
                        problem_make(&problem, form_named("axis_modsum"), &dtypes, 8, 1,
                                     is_first ? 0 : 1, &random);
                        set_shape(&problem, "a", 3,
                                  is_first ? (int64_t[]){terms[t], sizes[n], k}
                                           : (int64_t[]){sizes[n], terms[t], k});
                        set_shape(&problem, "out", 2, (int64_t[]){sizes[n], k});
                        set_shape(&problem, "q", 1, (int64_t[]){k});
                        struct random drawn = random;
                        random_bits(&random);
                        if (!share_takes("numbers", number++, SHARE))
                            continue;
                        check(&problem, (enum filling)round,
                              arrangements[random_between(&drawn, 0, ARRANGEMENTS - 1)], &drawn);
                    }
}

static void products(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 8, 12, 16, 72, 520, 1032}, ks[] = {1, 2, 3, 4, 8};
    struct random random = {seed + 1};
    uint64_t number = 0;
    for (int dtype = DTYPE_INT32; dtype <= DTYPE_INT64; dtype++)
        for (int t = 0; t < TERMS; t++)
            for (int n = 0; n < 7; n++)
                for (int variant = 0; variant < 8; variant++)
                    for (int filling = 0; filling < FILLINGS; filling++) {
                        struct problem problem;
                        struct problem_dtypes dtypes = {(enum dtype)dtype, (enum dtype)dtype,
                                                        DTYPE_INT64};
                        int64_t reps = random_between(&random, 1, 3), s = terms[t];
                        int64_t k = ks[random_between(&random, 0, 4)];
                        if (s * sizes[n] > 20000)
                            continue;
                        if (s * sizes[n] <= 600 && filling % 2 == 0)
                            reps = 70; /* so many that work-items have some in a row */
                        problem_make(&problem, form_named("modmul_axis_sum"), &dtypes, sizes[n], k,
                                     (uint64_t)variant, &random);
                        bool is_last = variant % 2 == 0; /* as problem_make chooses the axis */
                        int64_t size = sizes[n];
                        if (is_last) {
                            set_shape(&problem, "a", 4, (int64_t[]){reps, s, k, size});
                            set_shape(&problem, "b", 3, (int64_t[]){s, k, size});
                            set_shape(&problem, "out", 3, (int64_t[]){reps, k, size});
                        } else {
                            set_shape(&problem, "a", 4, (int64_t[]){reps, size, s, k});
                            set_shape(&problem, "b", 3, (int64_t[]){size, s, k});
                            set_shape(&problem, "out", 3, (int64_t[]){reps, size, k});
                        }
                        struct random drawn = random;
                        random_bits(&random);
                        if (!share_takes("products", number++, SHARE))
                            continue;
                        check(&problem, (enum filling)filling,
                              arrangements[random_between(&drawn, 0, ARRANGEMENTS - 1)], &drawn);
                    }
}

/* Factors that are the same along n, as weights are, with reps that share b. */
static void products_of_weights(void **state)
{
    (void)state;
    static const int64_t reps[] = {2, 8, 10, 19}, sizes[] = {16, 64, 256, 520};
    struct random random = {seed + 3};
    for (int i = 0; i < 4 * 4 * 3; i++) {
        struct problem problem;
        const enum dtype dtype = random_once_in(&random, 4) ? DTYPE_INT32 : DTYPE_INT64;
        const struct problem_dtypes dtypes = {dtype, dtype, DTYPE_INT64};
        const int64_t r = reps[i % 4], size = sizes[i / 4 % 4], s = terms[8 + i / 16] % 100 + 40;
        const int64_t k = random_between(&random, 1, 3);
        problem_make(&problem, form_named("modmul_axis_sum"), &dtypes, size, k, 0, &random);
        set_shape(&problem, "a", 4, (int64_t[]){r, s, k, size});
        set_shape(&problem, "b", 3, (int64_t[]){s, k, size});
        set_shape(&problem, "out", 3, (int64_t[]){r, k, size});
        check_variant(&problem, (enum filling)(i % FILLINGS), ARRANGEMENT_BROADCAST, k > 1 ? 3 : 2,
                      &random);
    }
}

/* Moduli around the bits that kernels are made for, rows that share a or b, and permuted ones that
 * fill tiles or not. */
static void products_at_limits(void **state)
{
    (void)state;
    static const int64_t limits[] = {1,
                                     2,
                                     (int64_t)1 << 32,
                                     ((int64_t)1 << 60) - 1,
                                     (int64_t)1 << 61,
                                     ((int64_t)1 << 62) - 1,
                                     (int64_t)1 << 62,
                                     INT64_MAX};
    static const int64_t counts[] = {1, 4, 5, 8, 16, 17}, sizes[] = {256, 520, 1024};
    static const enum filling fillings[] = {RESIDUES, RESIDUES, ONE_ODD, ANYTHING};
    const struct problem_dtypes dtypes = {DTYPE_INT64, DTYPE_INT64, DTYPE_INT64};
    struct random random = {seed + 6};
    uint64_t number = 0;
    for (int i = 0; i < 8 * 6 * 8; i++) {
        struct problem problem;
        const int64_t s = counts[i % 6], size = sizes[random_between(&random, 0, 2)];
        const int64_t reps = s * size < 2048 ? 9 : random_between(&random, 1, 4);
        const int64_t k = random_between(&random, 1, 3);
        problem_make(&problem, form_named("modmul_axis_sum"), &dtypes, size, k, (uint64_t)(i % 8),
                     &random);
        const bool is_last = i % 2 == 0; /* as problem_make chooses the axis */
        set_shape(&problem, "a", 4,
                  is_last ? (int64_t[]){reps, s, k, size} : (int64_t[]){reps, size, s, k});
        set_shape(&problem, "b", 3, is_last ? (int64_t[]){s, k, size} : (int64_t[]){size, s, k});
        set_shape(&problem, "out", 3,
                  is_last ? (int64_t[]){reps, k, size} : (int64_t[]){reps, size, k});
        struct random drawn = random;
        random_bits(&random);
        if (!share_takes("limits", number++, SHARE / 4))
            continue;
        modulus_limit = limits[i / 6 % 8];
        check(&problem, fillings[random_between(&drawn, 0, 3)],
              arrangements[random_between(&drawn, 0, ARRANGEMENTS - 1)], &drawn);
        modulus_limit = 0;
    }
}

/* Base conversions of the largest residues: weights, and an a that all moduli share. */
static void conversions(void **state)
{
    (void)state;
    static const int64_t counts[] = {2, 4, 5, 8, 16, 64};
    const struct problem_dtypes dtypes = {DTYPE_INT64, DTYPE_INT64, DTYPE_INT64};
    struct random random = {seed + 7};
    for (int i = 0; i < 6 * 4 * 4; i++) {
        struct problem problem;
        const int64_t s = counts[i % 6], size = 16, k = 2;
        const bool is_last = i / 24 % 2 == 0; /* as problem_make chooses the axis */
        problem_make(&problem, form_named("modmul_axis_sum"), &dtypes, size, k, is_last ? 0 : 3,
                     &random);
        set_shape(&problem, "a", 4,
                  is_last ? (int64_t[]){2, s, k, size} : (int64_t[]){2, size, s, k});
        set_shape(&problem, "b", 3, is_last ? (int64_t[]){s, k, size} : (int64_t[]){size, s, k});
        set_shape(&problem, "out", 3, is_last ? (int64_t[]){2, k, size} : (int64_t[]){2, size, k});
        modulus_limit = ((int64_t)1 << (59 + i / 6 % 4)) - 1;
        check_variant(&problem, i < 48 ? ALL_Q_MINUS_1 : ONE_ODD, ARRANGEMENT_BROADCAST,
                      is_last ? 2 : 3, &random);
        modulus_limit = 0;
    }
}

/* Rows of k residues of each term, of whole vectors and each number of further elements. */
static void ends_of_rows(void **state)
{
    (void)state;
    const struct problem_dtypes dtypes = {DTYPE_INT64, DTYPE_INT64, DTYPE_INT64};
    struct random random = {seed + 4};
    for (int64_t k = 1; k <= 4; k *= 2)
        for (int64_t s = 8 / k; s <= 16 / k; s++) {
            struct problem problem;
            problem_make(&problem, form_named("modmul_axis_sum"), &dtypes, 8, k, 3, &random);
            set_shape(&problem, "a", 4, (int64_t[]){1, 8, s, k});
            set_shape(&problem, "b", 3, (int64_t[]){8, s, k});
            set_shape(&problem, "out", 3, (int64_t[]){1, 8, k});
            check(&problem, RESIDUES, ARRANGEMENT_CONTIGUOUS, &random);
        }
}

/* Vectors of reps, side by side or not, whose factors both change along n. */
static void products_of_reps(void **state)
{
    (void)state;
    const struct problem_dtypes dtypes = {DTYPE_INT64, DTYPE_INT64, DTYPE_INT64};
    struct random random = {seed + 5};
    for (int64_t k = 1; k <= 4; k++)
        for (int turned = 0; turned < 2; turned++) {
            struct problem problem;
            problem_make(&problem, form_named("modmul_axis_sum"), &dtypes, 12, k, 2, &random);
            set_shape(&problem, "a", 4, (int64_t[]){16, 3, k, 12});
            set_shape(&problem, "b", 3, (int64_t[]){3, k, 12});
            set_shape(&problem, "out", 3, (int64_t[]){16, k, 12});
            check(&problem, RESIDUES, turned ? ARRANGEMENT_TRANSPOSED : ARRANGEMENT_CONTIGUOUS,
                  &random);
        }
}

/* So many that the estimated quotient by a small modulus is too small by more than one. */
static void many_numbers(void **state)
{
    (void)state;
    const int64_t count = 1 << 20, k = 8;
    struct random random = {seed + 2};
    for (int round = 0; round < 3; round++) {
        struct problem problem;
        struct problem_dtypes dtypes = {DTYPE_INT32, DTYPE_INT32, DTYPE_INT32};
        problem_make(&problem, form_named("axis_modsum"), &dtypes, 8, 1, 0, &random);
        set_shape(&problem, "a", 2, (int64_t[]){count, k});
        set_shape(&problem, "out", 1, (int64_t[]){k});
        set_shape(&problem, "q", 1, (int64_t[]){k});
        check(&problem, ALL_LARGEST, ARRANGEMENT_CONTIGUOUS, &random);
    }
}

/* On a device where loops end early, in several launches. */
static void in_parts(void **state)
{
    const uint64_t limit = device->info.loop_limit;
    device->info.loop_limit = 270; /* 135 terms at once */
    numbers(state);
    products(state);
    device->info.loop_limit = limit;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(products),
        cmocka_unit_test(products_of_weights),
        cmocka_unit_test(products_at_limits),
        cmocka_unit_test(conversions),
        cmocka_unit_test(ends_of_rows),
        cmocka_unit_test(products_of_reps),
        cmocka_unit_test(many_numbers),
        cmocka_unit_test(in_parts),
    };
    print_message("seed %#lx\n", (unsigned long)seed);
    return cmocka_run_group_tests(tests, open_device, close_device);
}
