#include "tools/coverage.h"

#include "core/clock.h"
#include "tools/xmalloc.h"

enum { VARIANTS_TRIED = 64, MANY_K = 60, MANY_K_N = 16, MOST = 131072 };

/* ---------------------------------------------------------------- sizes */

void coverage_sizes_init(struct coverage_sizes *sizes, bool quick)
{
    static const int64_t k[] = {1, 3, 2, 8, 24};
    const size_t k_count = quick ? 2 : sizeof k / sizeof *k;
    sizes->count = sizes->more = 0;
    for (int64_t n = 2; n <= (quick ? 512 : 131072); n *= !quick ? 2 : n == 2 ? 8 : 32)
        for (size_t i = 0; i < k_count; i++)
            if (n * k[i] <= MOST)
                sizes->of[sizes->count++] = (struct coverage_size){n, k[i]};
    sizes->of[sizes->count++] = (struct coverage_size){MANY_K_N, MANY_K};
    for (int64_t n = 1024; n <= 131072; n *= n == 1024 ? 16 : 8)
        for (size_t i = 0; i < sizeof k / sizeof *k; i++)
            if (quick || n * k[i] > MOST)
                sizes->of[sizes->count + sizes->more++] = (struct coverage_size){n, k[i]};
}

/* ---------------------------------------------------------------- rows */

static size_t add_row(struct coverage_row *rows, size_t count, const struct form *form,
                      struct problem_dtypes dtypes)
{
    if (problem_also(form) < 0)
        dtypes.also = dtypes.value;
    if (!problem_has_index(form) || dtypes.index == DTYPE_INT32)
        dtypes.index = DTYPE_INT64;
    for (size_t i = 0; i < count; i++)
        if (rows[i].form == form && memcmp(&rows[i].dtypes, &dtypes, sizeof dtypes) == 0)
            return count;
    rows[count] = (struct coverage_row){.number = (uint32_t)count, .form = form, .dtypes = dtypes};
    return count + 1;
}

size_t coverage_rows(struct coverage_row **rows)
{
    size_t count = 0;
    *rows = xcalloc(form_count * DTYPE_COUNT * DTYPE_COUNT * DTYPE_COUNT, sizeof **rows);
    for (size_t i = 0; i < form_count; i++)
        for (int value = 0; value < DTYPE_COUNT && problem_is_made(&forms[i]); value++)
            for (int also = 0; also < DTYPE_COUNT; also++)
                for (int index = 0; index < DTYPE_COUNT; index++)
                    count = add_row(*rows, count, &forms[i],
                                    (struct problem_dtypes){(enum dtype)value, (enum dtype)also,
                                                            (enum dtype)index});
    return count;
}

const char *coverage_dtypes_text(const struct coverage_row *row, char text[COVERAGE_DTYPES_SIZE])
{
    const struct form *form = row->form;
    int also = problem_also(form);
    int used = snprintf(text, COVERAGE_DTYPES_SIZE, "%s", dtype_name(row->dtypes.value));
    if (also >= 0 && row->dtypes.also != row->dtypes.value)
        used += snprintf(text + used, COVERAGE_DTYPES_SIZE - (size_t)used, ", %s %s",
                         form->parameters[also].name, dtype_name(row->dtypes.also));
    if (row->dtypes.index == DTYPE_INT8)
        snprintf(text + used, COVERAGE_DTYPES_SIZE - (size_t)used, ", indices int8");
    return text;
}

/* ---------------------------------------------------------------- names of cells */

const char *coverage_cell_text(const struct coverage_cell *cell, char text[COVERAGE_CELL_SIZE])
{
    char layout[32] = "any";
    if (cell->arrangement < ARRANGEMENT_COUNT)
        snprintf(layout, sizeof layout, "%s", arrangement_name(cell->arrangement));
    for (char *blank = strchr(layout, ' '); blank; blank = strchr(blank, ' '))
        *blank = '-';
    snprintf(text, COVERAGE_CELL_SIZE, "%" PRIu32 ":%" PRId64 "x%" PRId64 ":%s:%" PRIu64, cell->row,
             cell->size.n, cell->size.k, layout, cell->variant);
    return text;
}

bool coverage_cell_parse(const char *text, struct coverage_cell *cell)
{
    char again[COVERAGE_CELL_SIZE];
    int length = 0;
    if (sscanf(text, "%9" SCNu32 ":%9" SCNd64 "x%9" SCNd64 ":%*[a-z-]:%9" SCNu64 "%n", &cell->row,
               &cell->size.n, &cell->size.k, &cell->variant, &length) != 4 ||
        text[length] != 0 || cell->size.n < 1 || cell->size.k < ANY_SHAPE ||
        cell->size.k > COPRIME_MAX)
        return false;
    for (int i = 0; i <= ARRANGEMENT_COUNT; i++) {
        cell->arrangement = (enum arrangement)i;
        if (strcmp(coverage_cell_text(cell, again), text) == 0)
            return true;
    }
    return false;
}

/* ---------------------------------------------------------------- cells */

/* The checks of one row. */
struct check {
    struct healcl_device *device;
    struct coverage_row *row;
    const struct coverage_observer *observer;
};

static void fail_cell(const struct check *check, const struct coverage_cell *cell,
                      const struct manifest_kernel *kernel, const struct healcl_error *why)
{
    check->row->failures++;
    check->observer->failed(check->observer->context, check->row, cell, kernel, why);
}

/* Finds the first variant, from the cell's on, to which its arrangement applies. Returns false if
 * none of the tried variants has one. */
static bool find_variant(const struct check *check, const struct coverage_cell *cell,
                         struct problem *problem, uint64_t *variant)
{
    struct coverage_row *row = check->row;
    struct problem_dtypes dtypes = row->dtypes;
    /* Indices alternate between int32 and int64. */
    if (problem_has_index(row->form))
        dtypes.index = cell->variant / 2 % 2 ? DTYPE_INT32 : DTYPE_INT64;
    for (*variant = cell->variant; *variant < cell->variant + VARIANTS_TRIED; ++*variant) {
        struct random random = {COVERAGE_SEED + *variant};
        problem_make(problem, row->form, &dtypes, cell->size.n, cell->size.k, *variant, &random);
        problem->table = row->table;
        problem->uses = row->uses;
        problem->variants = row->variants;
        if (arrangement_applies(problem, cell->arrangement))
            return true;
    }
    return false;
}

/* Numbers of additional calls for kernels of manifests: random arrangements after each one, in
 * cells with few elements; and calls of any shape, if a kernel runs them. */
enum { RANDOM_CALLS = 3, RANDOM_ELEMENTS = 600, ANY_CALLS = 150, ANY_ELEMENTS = 60 };

/* Checks one arrangement of a size. only_new: only if its call is new. Returns false if a
 * manifest's kernel was wrong. Without elements around its tensors, such a kernel may write to
 * other memory. */
static bool check_arrangement(const struct check *check, const struct coverage_cell *cell,
                              bool only_new)
{
    struct check_counts *counts = &check->row->cells[cell->arrangement];
    enum arrangement arrangement = cell->arrangement;
    struct problem problem;
    struct problem_data data;
    struct placement placement;
    struct manifest_kernel kernel;
    uint64_t variant;
    bool is_safe = true;
    const bool is_any = cell->size.k == ANY_SHAPE;
    if (!find_variant(check, cell, &problem, &variant))
        return true;
    struct random random = {~(COVERAGE_SEED + variant)};
    if (only_new) {
        placement_make(&placement, &problem, arrangement, variant, &random);
        if (!problem_is_new(&problem, &placement))
            return true;
    }
    problem_data_init(&data, &problem, &random);
    for (int call = 0; call <= RANDOM_CALLS; call++, arrangement = ARRANGEMENT_RANDOM) {
        struct healcl_error error = {0};
        placement_make(&placement, &problem, arrangement, variant, &random);
        problem.turn = (uint32_t)(variant + (uint64_t)cell->arrangement + (uint64_t)call);
        (void)problem_kernel(check->device, &problem, &placement, &kernel);
        if (kernel.name)
            placement_guard(&placement, arrangement);
        else if (call > 0 || is_any)
            break;
        counts->calls++;
        if (problem_check(check->device, &problem, &placement, &data, &random, &error) == HEALCL_OK)
            counts->passed++;
        else
            fail_cell(check, cell, &kernel, &error);
        counts->unsupported += error.status == HEALCL_REFUSED;
        is_safe = !kernel.name || error.status == HEALCL_OK || error.status == HEALCL_REFUSED;
        healcl_error_clear(&error);
        if (!kernel.name || !is_safe || is_any || cell->size.n * cell->size.k > RANDOM_ELEMENTS)
            break;
    }
    problem_data_release(&data);
    return is_safe;
}

/* Checks one arrangement of a size, or all of them for ARRANGEMENT_COUNT. */
static void check_size(const struct check *check, const struct coverage_cell *cells, bool only_new)
{
    struct coverage_cell cell = *cells;
    bool is_safe = true;
    if (cell.size.k == ANY_SHAPE)
        (void)check_arrangement(check, &cell, false);
    for (int i = 0; i < ARRANGEMENT_COUNT && is_safe && cell.size.k != ANY_SHAPE; i++) {
        cell.arrangement = (enum arrangement)i;
        if (cells->arrangement == ARRANGEMENT_COUNT || cells->arrangement == cell.arrangement)
            is_safe = check_arrangement(check, &cell, only_new);
    }
}

/* Checks that a dtype which the form does not take is refused. */
static void check_refused(const struct check *check)
{
    struct coverage_row *row = check->row;
    struct healcl_error error = {0};
    struct random random = {COVERAGE_SEED};
    struct problem problem;
    const struct coverage_cell cell = {row->number, {4, 2}, ARRANGEMENT_COUNT, 0};
    problem_make(&problem, row->form, &row->dtypes, cell.size.n, cell.size.k, 0, &random);
    row->refused = problem_look(&problem, NULL, NULL, &error) == HEALCL_REFUSED;
    if (!row->refused) {
        healcl_error_clear(&error);
        (void)ERROR(&error, HEALCL_DIFFERENT, "is not refused");
        fail_cell(check, &cell, &(struct manifest_kernel){.name = NULL}, &error);
    }
    healcl_error_clear(&error);
}

void coverage_check(struct healcl_device *device, const struct coverage_sizes *sizes,
                    const struct coverage_cell *one, struct coverage_row *row,
                    const struct coverage_observer *observer)
{
    const struct check check = {device, row, observer};
    const uint64_t begin = monotonic_nanoseconds();
    /* The last size is for forms that depend most on the number of moduli. */
    const size_t last = sizes->count - 1, count = one ? 1 : sizes->count + sizes->more;
    const bool is_accepted = problem_accepts(row->form, &row->dtypes);
    if (!is_accepted)
        check_refused(&check);
    for (size_t i = 0; is_accepted && i < count; i++) {
        if (!one && i == last && !problem_has_many_moduli(row->form))
            continue;
        const struct coverage_cell all = {row->number, sizes->of[i], ARRANGEMENT_COUNT,
                                          row->number + i};
        check_size(&check, one ? one : &all, i >= sizes->count);
    }
    bool is_safe = is_accepted && !one && row->uses && row->uses->count > 0;
    for (uint32_t i = 0; i < ANY_CALLS && is_safe; i++)
        is_safe = check_arrangement(
            &check,
            &(struct coverage_cell){
                row->number, {ANY_ELEMENTS, ANY_SHAPE}, ARRANGEMENT_RANDOM, row->number + i},
            false);
    row->nanoseconds = monotonic_nanoseconds() - begin;
}
