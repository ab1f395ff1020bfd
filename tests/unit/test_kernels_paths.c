/*
 * The fast and slow paths of kernels, and the borders between them: rows of
 * transforms that are read and written where they lie or not, permutations that cost nothing or
 * something, moduli on both sides of 2^62, inputs that are residues but for one; elementwise
 * operations on vectors with one odd lane.
 */
#include "helper_one_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper_share.h"
#include "tools/problem_check.h"

enum { SHARE = 16 };

static const uint64_t seed = 0x9a745;

static const struct form *form_named(const char *name, uint32_t parameters)
{
    for (size_t i = 0; i < form_count; i++)
        if (strcmp(forms[i].name, name) == 0 && forms[i].parameter_count == parameters)
            return &forms[i];
    fail_msg("no form %s", name);
    return NULL;
}

/* Checks a problem whose data have been set. */
static void check_data(const struct problem *problem, struct problem_data *data,
                       enum arrangement arrangement, uint64_t variant, const char *what)
{
    struct placement placement;
    struct random random = {seed};
    placement_make(&placement, problem, arrangement, variant, &random);
    if (problem_check(device, problem, &placement, data, &random, &error) != CHECK_EQUAL)
        fail_msg("%s, %s, variant %d: %s", what, arrangement_name(arrangement), (int)variant,
                 error.message);
}

/* ---------------------------------------------------------------- transforms */

enum permutation_kind { SKIPPED, IDENTITY, REVERSAL, NEARLY_IDENTITY, NEARLY_REVERSAL, ANY, KINDS };

static int64_t reversed(int64_t i, int64_t n)
{
    int64_t result = 0;
    for (int64_t m = n; m > 1; m /= 2, i /= 2)
        result = 2 * result + i % 2;
    return result;
}

static void set_permutation(enum permutation_kind kind, enum dtype dtype, int64_t n, void *perm,
                            struct random *random)
{
    int64_t *values = malloc((size_t)n * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++)
        values[i] = kind == REVERSAL || kind == NEARLY_REVERSAL ? reversed(i, n) : i;
    if (kind == ANY)
        for (int64_t i = n - 1; i > 0; i--) {
            int64_t j = random_between(random, 0, i), value = values[i];
            values[i] = values[j];
            values[j] = value;
        }
    if (kind == NEARLY_IDENTITY || kind == NEARLY_REVERSAL) {
        int64_t i = random_once_in(random, 2) ? 0 : n - 2, value = values[i];
        values[i] = values[i + 1];
        values[i + 1] = value;
    }
    for (int64_t i = 0; i < n; i++)
        dtype_store(dtype, perm, i, values[i]);
    free(values);
}

/* The inputs of a row: residues, and among them at most one of these; or numbers that have as many
 * bits as q. */
enum outlier {
    NONE,
    IS_Q,
    BELOW_2Q,
    IS_2Q,
    BELOW_4Q,
    IS_4Q,
    BELOW_8Q,
    BELOW_16Q,
    IS_LARGE,
    IS_NEGATIVE,
    ALL_OF_BITS,
    OUTLIERS
};

static int64_t outlier_value(enum outlier outlier, int64_t q, struct random *random)
{
    uint64_t value = (uint64_t)q;
    switch (outlier) {
    case NONE: return 0;
    case IS_Q: break;
    case BELOW_2Q: value = 2 * value - 1; break;
    case IS_2Q: value = 2 * value; break;
    case BELOW_4Q: value = 4 * value - 1; break;
    case IS_4Q: value = 4 * value; break;
    case BELOW_8Q: value = 8 * value - 1; break;
    case BELOW_16Q: value = 16 * value - 1; break;
    case IS_LARGE: return INT64_MAX;
    default: return random_once_in(random, 2) ? -1 : INT64_MIN;
    }
    return (int64_t)(value & INT64_MAX);
}

enum { ROWS = 2, MODULI = 3 };

/* Returns a modulus of any length, below 2^62 or 2^31. */
static int64_t any_modulus(enum dtype dtype, struct random *random)
{
    int bits = dtype == DTYPE_INT32 ? 30 : 61;
    return (((int64_t)1 << bits) + (int64_t)(random_bits(random) >> (64 - bits))) >>
           random_between(random, 0, bits - 3);
}

static void check_transform(bool inverse, enum dtype dtype, int64_t n, enum permutation_kind kind,
                            enum arrangement arrangement, bool large_modulus, enum outlier outlier,
                            bool is_last, uint64_t round)
{
    struct problem_dtypes dtypes = {dtype, dtype, dtype};
    struct random random = {seed + round};
    struct problem problem;
    struct problem_data data;
    char what[160];
    const struct form *form = form_named(inverse ? "intt" : "ntt", 11);
    /* As problem_make chooses: no tile, whether to permute, the axis. */
    uint64_t variant = inverse ? 2 * is_last : 2 * (kind == SKIPPED) + 4 * is_last;
    problem_make(&problem, form, &dtypes, n, MODULI, variant, &random);
    problem_data_init(&data, &problem, &random);
    int64_t q[MODULI];
    for (int j = 0; j < MODULI; j++)
        q[j] = any_modulus(dtype, &random);
    q[random_between(&random, 0, MODULI - 1)] =
        dtype == DTYPE_INT32 ? INT32_MAX : ((int64_t)1 << 62) - 1;
    if (large_modulus)
        q[random_between(&random, 0, MODULI - 1)] = ((int64_t)1 << 62) + 1;
    for (int j = 0; j < MODULI; j++)
        dtype_store(dtype, data.packed[form_parameter(form, "q")], j, q[j]);
    int a_parameter = form_parameter(form, "a");
    void *a = data.packed[a_parameter];
    int64_t count = layout_elements(&problem.tensors[a_parameter].shape);
    for (int64_t i = 0; i < count; i++) {
        int64_t j = is_last ? i / n % MODULI : i % MODULI;
        uint64_t value = random_bits(&random);
        if (outlier == ALL_OF_BITS)
            value &= (uint64_t)-1 >> __builtin_clzll((uint64_t)q[j]);
        else
            value %= (uint64_t)q[j];
        dtype_store(dtype, a, i, (int64_t)value);
    }
    int64_t at = random_between(&random, 0, count - 1);
    if (is_last && random_once_in(&random, 2)) /* element 0 is multiplied by no twiddle */
        at -= at % n;
    if (outlier != NONE && outlier != ALL_OF_BITS)
        dtype_store(dtype, a, at,
                    outlier_value(outlier, q[is_last ? at / n % MODULI : at % MODULI], &random));
    if (problem.tensors[form_parameter(form, "perm")].present && kind != SKIPPED)
        set_permutation(kind, dtype, n, data.packed[form_parameter(form, "perm")], &random);
    snprintf(what, sizeof what,
             "%s of %s %d, permutation kind %d, %slarge modulus, outlier %d, round %d",
             inverse ? "inverse" : "forward", dtype_name(dtype), (int)n, kind,
             large_modulus ? "" : "no ", outlier, (int)round);
    check_data(&problem, &data, arrangement, 0, what);
    problem_data_release(&data);
}

static void transforms(void **state)
{
    (void)state;
    static const enum arrangement arrangements[] = {ARRANGEMENT_CONTIGUOUS, ARRANGEMENT_IN_PLACE,
                                                    ARRANGEMENT_BESIDE,     ARRANGEMENT_STRIDED,
                                                    ARRANGEMENT_TRANSPOSED, ARRANGEMENT_OVERLAP};
    static const int64_t lengths[] = {128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
    enum { LENGTHS = sizeof lengths / sizeof *lengths };
    uint64_t round = 0;
    for (int inverse = 0; inverse < 2; inverse++)
        for (int length = 0; length < LENGTHS; length++)
            for (int kind = inverse ? IDENTITY : SKIPPED; kind < KINDS; kind++)
                for (int arrangement = 0; arrangement < 6; arrangement++)
                    for (int how = 0; how < 3; how++) {
                        /* Long ones take their turns at the rest; short ones have it all. */
                        int outliers = length < 2 ? OUTLIERS : length < 6 ? 2 : 1;
                        for (int i = 0; i < outliers; i++, round++) {
                            if (!share_takes("transforms", round, SHARE))
                                continue;
                            int outlier = i;
                            if (length >= 2)
                                outlier = i == 1 ? NONE : (int)(round % OUTLIERS);
                            check_transform(inverse, how == 2 ? DTYPE_INT32 : DTYPE_INT64,
                                            lengths[length], (enum permutation_kind)kind,
                                            arrangements[arrangement], how == 1,
                                            (enum outlier)outlier, round % 4 != 0, round);
                        }
                    }
    print_message("%d transforms, or a share of them\n", (int)round);
}

/* The position of inputs depends on shapes, not on HEALCL_TUNING, and these tests take long. */
static void skip_with_tuning(void)
{
    const char *tuning = getenv("HEALCL_TUNING");
    if (tuning && *tuning)
        skip();
}

/* Sixteen rows of numbers below `most`, each with one input of that value: in the sixteenth of the
 * row, and in the place among sixteen neighbours, that are of its number. */
static void check_odd_input(bool inverse, enum dtype dtype, int64_t n, int64_t q, int64_t value,
                            int64_t most)
{
    enum { EACH = 16 };
    const struct form *form = form_named(inverse ? "intt" : "ntt", 11);
    const struct problem_dtypes dtypes = {dtype, dtype, dtype};
    struct random random = {seed};
    struct problem problem;
    struct problem_data data;
    char what[96];
    /* No tile, no permutation forward, the last axis. */
    problem_make(&problem, form, &dtypes, n, EACH, inverse ? 2 : 2 + 4, &random);
    problem_data_init(&data, &problem, &random);
    void *a = data.packed[form_parameter(form, "a")];
    for (int64_t row = 0; row < EACH; row++) {
        dtype_store(dtype, data.packed[form_parameter(form, "q")], row, q);
        for (int64_t i = 0; i < n; i++)
            dtype_store(dtype, a, row * n + i,
                        i == row * (n / EACH) + row ? value : random_between(&random, 0, most - 1));
    }
    if (inverse)
        set_permutation(IDENTITY, dtype, n, data.packed[form_parameter(form, "perm")], &random);
    snprintf(what, sizeof what, "%s of %s %d, one input of %lld", inverse ? "inverse" : "forward",
             dtype_name(dtype), (int)n, (long long)value);
    check_data(&problem, &data, ARRANGEMENT_CONTIGUOUS, 0, what);
    problem_data_release(&data);
}

/* The one input that is no residue is noticed at any position. Among moduli that are powers of two,
 * the first input that must be reduced can be a multiple: among zeros nothing else shows it. */
static void odd_inputs(void **state)
{
    (void)state;
    static const enum dtype dtypes[] = {DTYPE_INT64, DTYPE_INT32};
    static const int64_t lengths[] = {256, 65536, 131072};
    const int64_t q = 1 << 20;
    skip_with_tuning();
    share_choose_programs(PROGRAMS_ANY); /* none of these is left out */
    for (int i = 0; i < 2; i++)
        for (int inverse = 0; inverse < 2; inverse++) {
            const int64_t limit = (dtypes[i] == DTYPE_INT64 && !inverse ? 4 : 2) * q;
            check_odd_input(inverse, dtypes[i], 256, q, limit, 1);
            for (int length = 0; length < 3; length++)
                check_odd_input(inverse, dtypes[i], lengths[length], q - 3, -1, q - 3);
        }
    share_choose_programs(share_programs_wanted());
}

/* Rows that lie element by element, of so many moduli. */
static void check_together(bool inverse, enum dtype dtype, int64_t k, enum permutation_kind kind)
{
    enum { N = 256 };
    const struct form *form = form_named(inverse ? "intt" : "ntt", 11);
    const struct problem_dtypes dtypes = {dtype, dtype, dtype};
    struct random random = {seed + (uint64_t)k};
    struct problem problem;
    struct problem_data data;
    char what[96];
    problem_make(&problem, form, &dtypes, N, k, 0, &random); /* no tile, permutes, axis -3 */
    problem_data_init(&data, &problem, &random);
    for (int64_t i = 0; i < k; i++)
        dtype_store(dtype, data.packed[form_parameter(form, "q")], i, any_modulus(dtype, &random));
    set_permutation(kind, dtype, N, data.packed[form_parameter(form, "perm")], &random);
    snprintf(what, sizeof what, "%s of %s, %d rows together, permutation kind %d",
             inverse ? "inverse" : "forward", dtype_name(dtype), (int)k, kind);
    check_data(&problem, &data, ARRANGEMENT_CONTIGUOUS, 0, what);
    problem_data_release(&data);
}

/* Eight are taken at once, and of thirteen eight, four and one. */
static void rows_together(void **state)
{
    (void)state;
    static const enum permutation_kind kinds[] = {IDENTITY, REVERSAL, ANY};
    skip_with_tuning();
    share_choose_programs(PROGRAMS_ANY);
    for (int inverse = 0; inverse < 2; inverse++)
        for (int i = 0; i < 3; i++)
            for (int64_t k = 8; k <= 13; k += 5) {
                check_together(inverse, DTYPE_INT64, k, kinds[i]);
                check_together(inverse, DTYPE_INT32, k, kinds[i]);
            }
    share_choose_programs(share_programs_wanted());
}

/* ---------------------------------------------------------------- elementwise */

enum { EDGES = 20 };

static void edge_values(int64_t q, enum dtype dtype, int64_t values[EDGES])
{
    uint64_t u = (uint64_t)q;
    const uint64_t list[EDGES] = {0,          1,
                                  2,          u - 1,
                                  u,          u + 1,
                                  2 * u - 1,  2 * u,
                                  3 * u,      4 * u - 1,
                                  4 * u,      u / 2,
                                  0 - u,      1 - u,
                                  0 - u - 1,  ~0ull,
                                  1ull << 63, (1ull << 63) + 1,
                                  INT64_MAX,  INT64_MAX - 1};
    for (int i = 0; i < EDGES; i++)
        values[i] = dtype == DTYPE_INT32 ? (int32_t)list[i] : (int64_t)list[i];
}

/* All pairs of edge values, each in a lane of its own among residues. */
static void check_elementwise(const struct form *form, enum dtype dtype, int64_t q, uint64_t shapes,
                              struct random *random)
{
    enum { PAIRS = EDGES * EDGES, LANE_COUNT = 8 };
    struct problem_dtypes dtypes = {dtype, dtype, dtype};
    struct problem problem;
    struct problem_data data;
    int64_t edges[EDGES];
    char what[96];
    /* b of out's shape, p of a shape of its own; mod has one choice of shapes only. */
    problem_make(&problem, form, &dtypes, PAIRS, LANE_COUNT, 1 + 3 * shapes, random);
    problem_data_init(&data, &problem, random);
    edge_values(q, dtype, edges);
    for (uint32_t i = 0; i < form->parameter_count; i++) {
        struct problem_tensor *tensor = &problem.tensors[i];
        int64_t count = layout_elements(&tensor->shape);
        if (!tensor->present)
            continue;
        for (int64_t j = 0; j < count; j++) {
            int64_t value = (int64_t)(random_bits(random) % (uint64_t)q);
            if (tensor->contents == CONTENTS_MODULI)
                value = q;
            else if (count == PAIRS * LANE_COUNT && j % LANE_COUNT == j / LANE_COUNT % LANE_COUNT)
                value = edges[strcmp(form->parameters[i].name, "b") == 0 ? j / LANE_COUNT / EDGES
                                                                         : j / LANE_COUNT % EDGES];
            dtype_store(dtype, data.packed[i], j, value);
        }
    }
    snprintf(what, sizeof what, "%s %s, q %lld, shapes %d", form->name, dtype_name(dtype),
             (long long)q, (int)shapes);
    check_data(&problem, &data, shapes % 2 ? ARRANGEMENT_IN_PLACE : ARRANGEMENT_CONTIGUOUS, 0,
               what);
    problem_data_release(&data);
}

static void elementwise_edges(void **state)
{
    (void)state;
    static const int64_t moduli[] = {1,
                                     2,
                                     3,
                                     7,
                                     255,
                                     65537,
                                     INT32_MAX - 1,
                                     INT32_MAX,
                                     (int64_t)INT32_MAX + 1,
                                     ((int64_t)1 << 32) - 1,
                                     ((int64_t)1 << 32) + 1,
                                     ((int64_t)1 << 61) - 1,
                                     ((int64_t)1 << 62) - 1,
                                     (int64_t)1 << 62,
                                     ((int64_t)1 << 62) + 1,
                                     INT64_MAX - 24,
                                     INT64_MAX};
    static const char *const names[] = {"modmul_ttt", "modsum_ttt", "mod_tt", "modneg_tt"};
    struct random random = {seed};
    uint64_t number = 0;
    for (size_t m = 0; m < sizeof moduli / sizeof *moduli; m++)
        for (int name = 0; name < 4; name++) {
            const struct form *form = form_named(names[name], name < 2 ? 4 : 3);
            for (uint64_t shapes = 0; shapes < 5; shapes++) {
                if (!share_takes("elementwise", number++, SHARE))
                    continue;
                check_elementwise(form, DTYPE_INT64, moduli[m], shapes, &random);
                if (moduli[m] <= INT32_MAX)
                    check_elementwise(form, DTYPE_INT32, moduli[m], shapes, &random);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transforms),
        cmocka_unit_test(odd_inputs),
        cmocka_unit_test(rows_together),
        cmocka_unit_test(elementwise_edges),
    };
    print_message("seed %#lx\n", (unsigned long)seed);
    share_choose_programs(share_programs_wanted());
    return cmocka_run_group_tests(tests, open_device, close_device);
}
