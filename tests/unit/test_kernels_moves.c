/*
 * Copies, digits and gathers that are large enough for the fast kernels of CPUs, against the host
 * reference: planes of all widths and heights around those of a tile, views with strides, offsets
 * and repeated elements, outputs inside of larger tensors, outputs larger than caches.
 */
#include "helper_calls.h"
#include "helper_share.h"

#include <string.h>

/* ---------------------------------------------------------------- copies */

static const enum dtype dtypes[] = {DTYPE_INT8, DTYPE_INT32, DTYPE_INT64};

/* a [3,rows,columns], its axes in all orders, without its ends, every other element, and repeated;
 * each view copied. */
static void check_planes(enum dtype dtype, int64_t rows, int64_t columns)
{
    struct script script = {0};
    char what[96];
    snprintf(what, sizeof what, "copies of %s [3,%d,%d]", dtype_name(dtype), (int)rows,
             (int)columns);
    upload(&script, "a", dtype, 3, VALUES(3, rows, columns));
    static const char *const moves[] = {"1 2", "0 2", "2 0", "0 1"};
    for (int i = 0; i < 4; i++) {
        call(&script, "view", "moveaxis", "a %s", moves[i]);
        call(&script, "out", "contiguous", "view");
        script_download(&script, "out");
    }
    const struct {
        int64_t first, end, step;
    } parts[] = {{0, columns - 1, 1}, {1, columns, 1}, {0, columns, 2}, {columns / 2, columns, 1}};
    for (int i = 0; i < 4; i++) {
        if (parts[i].first >= parts[i].end)
            continue;
        call(&script, "part", "get_slice", "a [0:3:1,0:%d:1,%d:%d:%d]", (int)rows,
             (int)parts[i].first, (int)parts[i].end, (int)parts[i].step);
        call(&script, "out", "contiguous", "part");
        script_download(&script, "out");
        call(&script, "view", "moveaxis", "part 1 2");
        call(&script, "out", "contiguous", "view");
        script_download(&script, "out");
    }
    call(&script, "row", "get_slice", "a [0:3:1,%d:%d:1,0:%d:1]", (int)rows - 1, (int)rows,
         (int)columns);
    call(&script, "rows", "expand", "row 1 %d", (int)rows);
    call(&script, "view", "moveaxis", "rows 1 2");
    call(&script, "out", "contiguous", "view");
    script_download(&script, "out");
    expect_same(&script, what);
}

static void planes(void **state)
{
    (void)state;
    uint64_t number = 0;
    static const int64_t widths[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,
                                     12, 16, 17, 31, 32, 33, 63, 65, 130};
    for (int d = 0; d < 3; d++)
        for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
            int64_t width = widths[i], rows = 6000 / width / 3 + 70;
            if (!share_takes("planes", number++, 9))
                continue;
            check_planes(dtypes[d], rows, width);
            check_planes(dtypes[d], rows / 64 * 64, width);
            check_planes(dtypes[d], width + 1, rows + 3);
        }
    check_planes(DTYPE_INT64, 513, 514); /* of more blocks than one in both directions */
    check_planes(DTYPE_INT8, 513, 514);
}

/* Outputs that are part of a larger tensor, the rest of which must stay. */
static void parts_of_outputs(void **state)
{
    (void)state;
    for (int d = 1; d < 3; d++)
        for (int64_t repeats = 1; repeats <= 9; repeats++) {
            struct script script = {0};
            int width = (int)(37 * repeats);
            upload(&script, "a", dtypes[d], 2, VALUES(150, 37));
            upload(&script, "all", dtypes[d], 2, VALUES(152, width + 5));
            call(&script, "out", "get_slice", "all [1:151:1,3:%d:1]", width + 3);
            call(&script, NULL, "repeat_interleave", "a %d 1 out", (int)repeats);
            script_download(&script, "all");
            upload(&script, "all", dtypes[d], 2, VALUES(width + 5, 152));
            call(&script, "out", "get_slice", "all [3:%d:1,1:151:1]", width + 3);
            call(&script, "turned", "moveaxis", "out 0 1");
            call(&script, NULL, "repeat_interleave", "a %d 1 turned", (int)repeats);
            script_download(&script, "all");
            upload(&script, "all", dtypes[d], 2, VALUES(152, 2 * width));
            call(&script, "out", "get_slice", "all [1:151:1,1:%d:2]", 2 * width);
            call(&script, NULL, "repeat_interleave", "a %d 1 out", (int)repeats);
            script_download(&script, "all");
            upload(&script, "all", dtypes[d], 2, VALUES(width + 5, 152));
            call(&script, "flat", "moveaxis", "a 0 1");
            call(&script, "out", "get_slice", "all [0:%d:1,2:152:1]", 37 + (int)repeats);
            call(&script, NULL, "pad_single_axis", "flat %d 0 out", (int)repeats);
            script_download(&script, "all");
            expect_same(&script, "parts of outputs");
        }
}

/* Outputs larger than caches: whole lines of memory may be written past them. */
static void large_outputs(void **state)
{
    (void)state;
    for (int d = 0; d < 3; d++)
        for (int64_t odd = 0; odd < 2; odd++) {
            struct script script = {0};
            int64_t n = 64 + odd,
                    repeats = ((int64_t)34 << 20) / (int64_t)dtype_size(dtypes[d]) / n / 6;
            upload(&script, "a", dtypes[d], 3, VALUES(1, n, 6));
            call(&script, "wide", "expand", "a 0 %d", (int)repeats);
            call(&script, "view", "moveaxis", "wide 1 2");
            call(&script, "out", "contiguous", "view");
            call(&script, "some", "get_slice", "out [0:%d:97,0:6:1,0:%d:1]", (int)repeats, (int)n);
            script_download(&script, "some");
            expect_same(&script, "large outputs");
        }
}

/* Long rows, which begin and end within lines: copies, absolute values and fills. */
static void large_rows(void **state)
{
    (void)state;
    for (int d = 0; d < 3; d++)
        for (int64_t odd = 0; odd < 2; odd++) {
            struct script script = {0};
            int64_t n = 1024 + odd,
                    repeats = ((int64_t)20 << 20) / (int64_t)dtype_size(dtypes[d]) / n;
            upload(&script, "a", dtypes[d], 2, VALUES(1, n));
            call(&script, "wide", "expand", "a 0 %d", (int)repeats);
            call(&script, "out", "contiguous", "wide");
            call(&script, "some", "get_slice", "out [0:%d:97,0:%d:1]", (int)repeats, (int)n);
            script_download(&script, "some");
            if (dtypes[d] != DTYPE_INT8) { /* of which there is no abs */
                call(&script, "sizes", "contiguous", "wide");
                call(&script, NULL, "abs", "out sizes");
                call(&script, "some", "get_slice", "sizes [0:%d:97,0:%d:1]", (int)repeats, (int)n);
                script_download(&script, "some");
            }
            upload(&script, "column", dtypes[d], 2, VALUES(repeats, 1));
            call(&script, "wide", "expand", "column 1 %d", (int)n);
            call(&script, "out", "contiguous", "wide");
            call(&script, "inner", "get_slice", "out [0:%d:1,%d:%d:1]", (int)repeats, (int)odd + 3,
                 (int)n - 2);
            call(&script, "inner", "set_const_val", "inner %d", d == 0 ? -101 : -70001);
            call(&script, "some", "get_slice", "out [0:%d:97,0:%d:1]", (int)repeats, (int)n);
            script_download(&script, "some");
            expect_same(&script, "large rows");
        }
}

/* ---------------------------------------------------------------- digits */

enum { SHARE = 18 };

static void check_digits(enum dtype from, enum dtype to, int64_t count, int64_t base_bits)
{
    struct script script = {0};
    char what[96];
    snprintf(what, sizeof what, "%d digits of %d bits, %s to %s", (int)count, (int)base_bits,
             dtype_name(from), dtype_name(to));
    upload(&script, "a", from, 2, VALUES(2, 551));
    upload(&script, "all", to, 3, VALUES(2, 552, count + 3));
    static const char *const views[] = {"0:2:1,0:551:1,0:%d:1", "0:2:1,1:552:1,3:%d:1"};
    for (int i = 0; i < 2; i++) {
        char view[64];
        snprintf(view, sizeof view, views[i], (int)count + 3 * i);
        call(&script, "out", "get_slice", "all [%s]", view);
        call(&script, NULL, "apply_g_decomp", "a %d %d out", (int)count, (int)base_bits);
        script_download(&script, "all");
    }
    upload(&script, "whole", to, 3, VALUES(551, 2, count));
    call(&script, "turned", "moveaxis", "whole 0 1");
    call(&script, NULL, "apply_g_decomp", "a %d %d turned", (int)count, (int)base_bits);
    script_download(&script, "whole");
    expect_same(&script, what);
}

static void digits(void **state)
{
    (void)state;
    static const int64_t counts[] = {7, 8, 9, 15, 16, 17, 24, 63, 64, 65, 72};
    uint64_t number = 0;
    static const int64_t bases[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 32, 33, 63, 64, 65, 1000};
    for (int from = 1; from < 3; from++)
        for (int to = 0; to < 3; to++)
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
                for (size_t j = 0; j < sizeof bases / sizeof *bases; j++)
                    if (((i + j + (size_t)to) % 3 == 0 || counts[i] == 16) &&
                        share_takes("digits", number++, SHARE))
                        check_digits(dtypes[from], dtypes[to], counts[i], bases[j]);
}

static void check_digits_full_q(enum dtype from, enum dtype to, int64_t k, int64_t count,
                                int64_t base_bits)
{
    struct script script = {0};
    char what[96];
    int64_t q[COPRIME_MAX];
    snprintf(what, sizeof what, "%d digits of %d bits of %d residues, %s to %s", (int)count,
             (int)base_bits, (int)k, dtype_name(from), dtype_name(to));
    int32_t narrow[COPRIME_MAX];
    random_fill_coprime(&generator, from, k, from == DTYPE_INT32 ? (void *)narrow : (void *)q);
    for (int64_t i = 0; i < k && from == DTYPE_INT32; i++)
        q[i] = narrow[i];
    upload(&script, "a", from, 3, VALUES(2, k, 517));
    script_upload(&script, "q", from, 1, &k, q);
    upload(&script, "all", to, 3, VALUES(2, count + 1, 520));
    call(&script, "out", "get_slice", "all [0:2:1,1:%d:1,2:519:1]", (int)count + 1);
    call(&script, NULL, "apply_g_decomp_relative_to_full_q", "a q %d %d out", (int)count,
         (int)base_bits);
    script_download(&script, "all");
    upload(&script, "whole", to, 3, VALUES(517, count, 2));
    call(&script, "turned", "moveaxis", "whole 0 2");
    call(&script, "turned", "moveaxis", "turned 0 1");
    call(&script, "turned", "moveaxis", "turned 0 1");
    call(&script, "flat", "moveaxis", "whole 0 2");
    call(&script, "flat", "moveaxis", "flat 0 1");
    call(&script, NULL, "apply_g_decomp_relative_to_full_q", "a q %d %d flat", (int)count,
         (int)base_bits);
    script_download(&script, "whole");
    expect_same(&script, what);
}

static void digits_full_q(void **state)
{
    (void)state;
    uint64_t number = 0;
    static const int64_t bases[] = {1, 4, 7, 8, 13, 32, 63, 64, 65, 128, 1000};
    for (int from = 1; from < 3; from++)
        for (int to = 0; to < 3; to++)
            for (int64_t k = 1; k <= 4; k++)
                for (size_t j = 0; j < sizeof bases / sizeof *bases; j++) {
                    int64_t all = 63 * k / bases[j] + 2;
                    if (!share_takes("digits of a full q", number++, SHARE))
                        continue;
                    if ((k + (int64_t)j) % 2 == 0)
                        check_digits_full_q(dtypes[from], dtypes[to], k, all, bases[j]);
                    else
                        check_digits_full_q(dtypes[from], dtypes[to], k, all / 2 + 1, bases[j]);
                }
}

/* ---------------------------------------------------------------- gathers */

/* Rows of a, of size elements, gathered to rows of length; some indices count from the end. */
static void check_gather(enum dtype dtype, enum dtype index, int64_t size, int64_t length)
{
    struct script script = {0};
    char what[96];
    enum { ROWS = 40 };
    snprintf(what, sizeof what, "%s by %s, %d of %d", dtype_name(dtype), dtype_name(index),
             (int)length, (int)size);
    int64_t *idx = malloc((size_t)(ROWS * length) * sizeof *idx);
    assert_non_null(idx);
    for (int64_t i = 0; i < ROWS * length; i++)
        idx[i] = random_between(&generator, -size, size - 1);
    upload(&script, "a", dtype, 2, VALUES(ROWS, size));
    script_upload(&script, "idx", index, 2, VALUES(ROWS, length), idx);
    upload(&script, "all", dtype, 2, VALUES(ROWS, length + 3));
    call(&script, "out", "get_slice", "all [0:%d:1,2:%d:1]", ROWS, (int)length + 2);
    call(&script, NULL, "take_along_axis", "a idx -1 out");
    script_download(&script, "all");
    /* One row of indices for all rows, and one row of a. */
    call(&script, "first", "get_slice", "idx [3:4:1,0:%d:1]", (int)length);
    call(&script, NULL, "take_along_axis", "a first -1 out");
    script_download(&script, "all");
    call(&script, "row", "get_slice", "a [39:40:1,0:%d:1]", (int)size);
    call(&script, NULL, "take_along_axis", "row idx -1 out");
    script_download(&script, "all");
    /* Indices, elements and results that are apart. */
    const int half = (int)length / 2;
    call(&script, "apart", "get_slice", "idx [0:%d:1,0:%d:2]", ROWS, 2 * half);
    call(&script, "out", "get_slice", "all [0:%d:1,2:%d:1]", ROWS, half + 2);
    call(&script, NULL, "take_along_axis", "a apart -1 out");
    script_download(&script, "all");
    call(&script, "out", "get_slice", "all [0:%d:1,1:%d:2]", ROWS, 2 * half + 1);
    call(&script, "near", "get_slice", "idx [0:%d:1,0:%d:1]", ROWS, half);
    call(&script, NULL, "take_along_axis", "a near -1 out");
    script_download(&script, "all");
    upload(&script, "b", dtype, 2, VALUES(ROWS, 2 * size));
    call(&script, "apart", "get_slice", "b [0:%d:1,1:%d:2]", ROWS, 2 * (int)size);
    call(&script, "out", "get_slice", "all [0:%d:1,2:%d:1]", ROWS, (int)length + 2);
    call(&script, NULL, "take_along_axis", "apart idx -1 out");
    script_download(&script, "all");
    free(idx);
    expect_same(&script, what);
}

/* Limbs of coefficients, of [2,size,limbs], that one index permutes together. */
static void check_gathered_lines(enum dtype dtype, enum dtype index, int64_t size, int64_t limbs)
{
    struct script script = {0};
    char what[96];
    snprintf(what, sizeof what, "%s by %s, lines of %d", dtype_name(dtype), dtype_name(index),
             (int)limbs);
    int64_t *idx = malloc((size_t)size * sizeof *idx);
    assert_non_null(idx);
    for (int64_t i = 0; i < size; i++)
        idx[i] = random_between(&generator, -size, size - 1);
    upload(&script, "a", dtype, 3, VALUES(2, size, limbs + 2));
    script_upload(&script, "idx", index, 1, VALUES(size), idx);
    upload(&script, "all", dtype, 3, VALUES(2, size, limbs + 1));
    call(&script, "from", "get_slice", "a [...,1:%d:1]", (int)limbs + 1);
    call(&script, "to", "get_slice", "all [...,0:%d:1]", (int)limbs);
    call(&script, "i", "reshape", "idx [1,%d,1]", (int)size);
    call(&script, NULL, "take_along_axis", "from i 1 to");
    script_download(&script, "all");
    /* Fewer of them, and those of every second one. */
    call(&script, "i", "get_slice", "idx [1:%d:2]", (int)size);
    call(&script, "i", "reshape", "i [1,%d,1]", (int)size / 2);
    call(&script, "to", "get_slice", "all [0:2:1,3:%d:1,1:%d:1]", (int)size / 2 + 3,
         (int)limbs + 1);
    call(&script, NULL, "take_along_axis", "from i 1 to");
    script_download(&script, "all");
    /* An index for each limb, and limbs that are apart. */
    call(&script, "turned", "moveaxis", "a 1 2");
    call(&script, "to", "moveaxis", "all 1 2");
    call(&script, "from", "get_slice", "turned [0:2:1,0:%d:1,...]", (int)limbs);
    call(&script, "to", "get_slice", "to [0:2:1,1:%d:1,...]", (int)limbs + 1);
    call(&script, "i", "reshape", "idx [1,1,%d]", (int)size);
    call(&script, NULL, "take_along_axis", "from i 2 to");
    script_download(&script, "all");
    free(idx);
    expect_same(&script, what);
}

static void gathers(void **state)
{
    (void)state;
    for (int d = 1; d < 3; d++)
        for (int x = 1; x < 3; x++) {
            check_gathered_lines(dtypes[d], dtypes[x], 4096, 3);
            check_gathered_lines(dtypes[d], dtypes[x], 4096, 4);
            check_gathered_lines(dtypes[d], dtypes[x], 999, 29);
            check_gather(dtypes[d], dtypes[x], 512, 512);
            check_gather(dtypes[d], dtypes[x], 300, 900);
            check_gather(dtypes[d], dtypes[x], 513, 1100);
            check_gather(dtypes[d], dtypes[x], 1000, 500);
            check_gather(dtypes[d], dtypes[x], 1000, 499);
            check_gather(dtypes[d], dtypes[x], 255, 1000);
        }
}

/* As a GPU what moves most goes first, optimised: without that it takes longer than the optimiser
 * does. The rest takes less without. */
static int compile_fast(void **state)
{
    (void)state;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_outputs),
        cmocka_unit_test(large_rows),
        cmocka_unit_test_setup(planes, compile_fast),
        cmocka_unit_test(parts_of_outputs),
        cmocka_unit_test(digits),
        cmocka_unit_test(digits_full_q),
        cmocka_unit_test(gathers),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
