/*
 * How many lines of 64 bytes 64 neighbouring work-items touch at a time, as a GPU's waves do:
 * kernels as they are for GPUs, but built with an AT that prints what it is for.
 */
#include "helper_one_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "cl/base/base.h"
#include "helper_share.h"

enum { WAVE = 64 };

static const char telling[] =
    "#undef AT\n"
    "#define AT(name, i) (name[(printf(\"@\" #name \" %u %u %u %u\\n\", "
    "(uint)get_group_id(0), (uint)get_local_id(0), (uint)sizeof(*name), (uint)(i)), (i))])\n";

#define PROGRAM(variable, name) extern const char healcl_cl_##variable[];
#include "programs/programs.def"
#undef PROGRAM

static const struct {
    const char *name, *text;
} programs[] = {
#define PROGRAM(variable, name) {name, healcl_cl_##variable},
#include "programs/programs.def"
#undef PROGRAM
};

/* One use of an operand by a work-item, its number-th. */
struct use {
    char operand[16];
    unsigned group, item, wave, size, place;
    size_t number;
};

static int compare(size_t left, size_t right)
{
    return (left > right) - (left < right);
}

static int by_item(const void *left, const void *right)
{
    const struct use *a = left, *b = right;
    int order = strcmp(a->operand, b->operand);
    order = order ? order : compare(a->group, b->group);
    order = order ? order : compare(a->item, b->item);
    return order ? order : compare(a->number, b->number);
}

/* What a wave uses at a time goes together, in the order of memory. */
static int by_time(const void *left, const void *right)
{
    const struct use *a = left, *b = right;
    int order = strcmp(a->operand, b->operand);
    order = order ? order : compare(a->group, b->group);
    order = order ? order : compare(a->wave, b->wave);
    order = order ? order : compare(a->number, b->number);
    return order ? order : compare(a->place, b->place);
}

/* Numbers each work-item's uses of an operand, and puts what is used at a time together. */
static void order_by_time(struct use *list, size_t count)
{
    size_t number = 0;
    qsort(list, count, sizeof *list, by_item);
    for (size_t i = 0; i < count; i++) {
        bool goes_on = i > 0 && strcmp(list[i].operand, list[i - 1].operand) == 0 &&
                       list[i].group == list[i - 1].group && list[i].item == list[i - 1].item;
        number = goes_on ? number + 1 : 0;
        list[i].number = number;
    }
    qsort(list, count, sizeof *list, by_time);
}

/* Reads what kernels have told; the list is freed with free(). */
static struct use *read_uses(FILE *file, size_t *count)
{
    struct use *list = NULL, use;
    size_t capacity = 0;
    char line[128];
    *count = 0;
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "@%15s %u %u %u %u", use.operand, &use.group, &use.item, &use.size,
                   &use.place) != 5)
            continue;
        use.wave = use.item / WAVE;
        use.number = *count;
        if (*count == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            list = realloc(list, capacity * sizeof *list);
            assert_non_null(list);
        }
        list[(*count)++] = use;
    }
    return list;
}

/* The lines that waves touch of an operand, over the least that could hold what they use there. */
static void check_lines(const struct use *list, size_t count, const char *what)
{
    for (size_t i = 0; i < count;) {
        const struct use *first = &list[i];
        uint64_t lines = 0, least = 0;
        while (i < count && strcmp(list[i].operand, first->operand) == 0) {
            const struct use *use = &list[i];
            uint64_t places = 0, line = UINT64_MAX;
            for (; i < count && strcmp(list[i].operand, use->operand) == 0 &&
                   list[i].group == use->group && list[i].wave == use->wave &&
                   list[i].number == use->number;
                 i++) {
                uint64_t touched = (uint64_t)list[i].place * list[i].size / CACHE_LINE;
                places += list + i == use || list[i].place != list[i - 1].place;
                lines += touched != line;
                line = touched;
            }
            least += (places * use->size + CACHE_LINE - 1) / CACHE_LINE;
        }
        bool is_gathered = strcmp(what, "take_along_axis, k 1") == 0 && first->operand[0] == 'a';
        if (lines * 4 > least * 5 && !is_gathered)
            fail_msg("%s: %s: %u lines are touched, of at least %u", what, first->operand,
                     (unsigned)lines, (unsigned)least);
    }
}

/* Runs an operation and returns what its kernels have told. */
static FILE *run_telling(const char *name, const struct bench_settings *settings)
{
    const struct bench_options options = {.repeat = 1, .memory_limit = UINT32_MAX};
    struct bench_result result;
    FILE *file = tmpfile();
    int terminal = dup(STDOUT_FILENO);
    assert_non_null(file);
    fflush(stdout);
    assert_int_equal(dup2(fileno(file), STDOUT_FILENO), STDOUT_FILENO);
    enum healcl_status status =
        bench_run(device, bench_operation_find(name), settings, &options, &result, &error);
    fflush(stdout);
    (void)dup2(terminal, STDOUT_FILENO);
    close(terminal);
    if (status != HEALCL_OK)
        fail_msg("%s: %s", name, error.message);
    return file;
}

static const struct {
    const char *operation;
    struct bench_settings settings;
    int64_t sizes; /* n k, for a k of 1, 2, 4 or 32; 0: n is given */
} cases[] = {
    {"modmul", BENCH_SETTINGS([BENCH_LAYOUT] = BENCH_HEAL, [BENCH_BATCH] = 2), 512},
    {"modsum", BENCH_SETTINGS([BENCH_BATCH] = 2), 512},
    {"copy", BENCH_SETTINGS([BENCH_BATCH] = 2), 512},
    {"contiguous", BENCH_SETTINGS([BENCH_BATCH] = 2, [BENCH_R] = 2), 2048},
    {"contiguous", BENCH_SETTINGS([BENCH_BATCH] = 2, [BENCH_R] = 4), 2048},
    {"axis_modsum", BENCH_SETTINGS([BENCH_BATCH] = 2, [BENCH_S] = 4), 512},
    {"axis_modsum", BENCH_SETTINGS([BENCH_BATCH] = 16, [BENCH_S] = 256, [BENCH_N] = 1), 0},
    {"modmul_axis_sum", BENCH_SETTINGS([BENCH_BATCH] = 1, [BENCH_S] = 8), 1024},
    {"modmul_axis_sum",
     BENCH_SETTINGS([BENCH_BATCH] = 1, [BENCH_S] = 8, [BENCH_LAYOUT] = BENCH_HEAL), 1024},
    {"modmul_axis_sum",
     BENCH_SETTINGS([BENCH_BATCH] = 4, [BENCH_S] = 3, [BENCH_LAYOUT] = BENCH_HEAL), 1024},
    {"apply_g_decomp", BENCH_SETTINGS([BENCH_BATCH] = 2, [BENCH_DIGITS] = 4), 512},
    {"apply_g_decomp", BENCH_SETTINGS([BENCH_BATCH] = 2, [BENCH_DIGITS] = 9), 512},
    {"apply_g_decomp_relative_to_full_q",
     BENCH_SETTINGS([BENCH_BATCH] = 1, [BENCH_DIGITS] = 8, [BENCH_BASE_BITS] = 16), 1024},
    {"take_along_axis", BENCH_SETTINGS([BENCH_BATCH] = 2), 512},
};

static void touches_few_lines(void **state)
{
    (void)state;
    static const int64_t ks[] = {1, 2, 4, 32};
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t j = 0; j < sizeof ks / sizeof *ks; j++) {
            const struct bench_operation *operation = bench_operation_find(cases[i].operation);
            struct bench_settings settings = cases[i].settings;
            bool has_k = bench_operation_takes(operation, BENCH_K);
            int64_t k = has_k ? ks[j] : 1;
            if ((!has_k && j > 0) || !share_takes("lines", number++, 3))
                continue;
            if (cases[i].sizes > 0)
                settings.of[BENCH_N] = cases[i].sizes / k;
            settings.of[BENCH_K] = has_k ? k : 0;
            char what[128];
            snprintf(what, sizeof what, "%s, k %d", cases[i].operation, (int)k);
            FILE *file = run_telling(cases[i].operation, &settings);
            size_t count;
            struct use *list = read_uses(file, &count);
            fclose(file);
            assert_true(count > 0);
            order_by_time(list, count);
            check_lines(list, count, what);
            free(list);
        }
}

/* Has all kernels tell what they use. */
static int open_telling_device(void **state)
{
    static char *told[sizeof programs / sizeof *programs];
    unsetenv("HEALCL_VARIANT");
    setenv("HEALCL_AS", "gpu", 1);
    share_compile_fast(true);
    if (open_device(state))
        return -1;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        size_t size = sizeof telling + strlen(programs[i].text);
        told[i] = malloc(size);
        assert_non_null(told[i]);
        snprintf(told[i], size, "%s%s", telling, programs[i].text);
        if (device_add_program(device, programs[i].name, told[i], &error) != HEALCL_OK)
            return -1;
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(touches_few_lines)};
    return cmocka_run_group_tests(tests, open_telling_device, close_device);
}
