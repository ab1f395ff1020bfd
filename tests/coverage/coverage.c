/*
 * The table of what has been checked on a device: every form of the op table × dtype × layout of
 * its tensors × n × k. Each cell is a call that runs on the device and is compared with the host
 * reference, whole storages bit for bit. Dtypes that an operation does not take are cells too: they
 * must be refused. Fails when a cell differs, or when one that applies is empty.
 *
 *     coverage [--quick] [--form NAME] [--jobs N] [FILE]
 *
 * --quick takes few n and k. --jobs: work in so many processes. FILE gets the table as Markdown.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "helper_check.h"

static const uint64_t seed = 0xc0e4a6e;

static const int64_t all_n[] = {2,    4,    8,    16,   32,    64,    128,   256,   512,
                                1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};
static const int64_t all_k[] = {1, 2, 3, 8, 24};
static const int64_t quick_n[] = {2, 16, 512};
static const int64_t quick_k[] = {1, 3};

/* One more cell for what depends on the number of moduli most. */
enum { MANY_K = 60, MANY_K_N = 16 };

enum { SIZES_MAX = 128, VARIANTS_TRIED = 64 };

struct size {
    int64_t n, k;
};

static struct size sizes[SIZES_MAX];
static int size_count;

/* A form with certain dtypes. */
struct row {
    const struct form *form;
    struct problem_dtypes dtypes;
    bool refused; /* so it should be, and is */
    /* For each arrangement: the cells that applied, and those that were right. */
    int applied[ARRANGEMENT_COUNT], passed[ARRANGEMENT_COUNT];
    const char *excluded[ARRANGEMENT_COUNT]; /* why none applied; a literal */
    int failures;
    double seconds; /* of processor time */
};

enum { ROWS_MAX = 1024 };

/* What the workers share: each takes the next row that nobody has. */
static struct shared {
    atomic_int next_row;
    char device_name[256];
    struct row rows[ROWS_MAX];
} * shared;

static struct row *rows; /* of shared */
static int row_count;

static struct healcl_device *device;

static bool has_many_moduli(const struct form *form)
{
    return form->operation == OPERATION_NTT || form->operation == OPERATION_INTT ||
           form->operation == OPERATION_G_DECOMP_FULL_Q;
}

/* ---------------------------------------------------------------- cells */

static void fail_cell(struct row *row, const struct size *size, const char *arrangement,
                      const char *why)
{
    printf("FAILED: %s %s, %s, n %" PRId64 ", k %" PRId64 ": %s\n", row->form->name,
           dtype_name(row->dtypes.value), arrangement, size->n, size->k, why);
    fflush(stdout);
    row->failures++;
}

/* The first variant from a given one on that has an arrangement; 0 tries where there is none. */
static bool find_variant(struct problem *problem, const struct row *row,
                         const struct problem_dtypes *dtypes, const struct size *size,
                         enum arrangement arrangement, uint64_t *variant, const char **excluded)
{
    for (uint64_t tries = 0; tries < VARIANTS_TRIED; tries++, ++*variant) {
        struct random random = {seed + *variant};
        problem_make(problem, row->form, dtypes, size->n, size->k, *variant, &random);
        *excluded = arrangement_excluded(problem, arrangement);
        if (!*excluded)
            return true;
    }
    return false;
}

static void check_cell(struct row *row, const struct size *size, enum arrangement arrangement,
                       const struct problem *problem, const struct problem_data *data,
                       uint64_t variant)
{
    struct healcl_error error = {0};
    struct random random = {seed + variant};
    struct placement placement;
    placement_make(&placement, problem, arrangement, variant, &random);
    row->applied[arrangement]++;
    switch (problem_check(device, problem, &placement, data, &random, &error)) {
    case CHECK_EQUAL: row->passed[arrangement]++; break;
    case CHECK_DIFFERENT: fail_cell(row, size, arrangement_name(arrangement), "differs"); break;
    case CHECK_REFUSED: fail_cell(row, size, arrangement_name(arrangement), error.message); break;
    }
    healcl_error_clear(&error);
}

/* All arrangements of one size. Those that have the variant share its data and answer. */
static void check_size(struct row *row, const struct size *size, uint64_t variant)
{
    struct problem problem, other;
    struct problem_data data, other_data;
    struct problem_dtypes dtypes = row->dtypes;
    struct random random = {seed + variant};
    /* Indices are int32 and int64 by turns. */
    if (problem_has_index(row->form))
        dtypes.index = variant / 2 % 2 ? DTYPE_INT32 : DTYPE_INT64;
    problem_make(&problem, row->form, &dtypes, size->n, size->k, variant, &random);
    problem_data_init(&data, &problem, &random);
    problem_solve(&data, &problem);
    for (int i = 0; i < ARRANGEMENT_COUNT; i++) {
        enum arrangement arrangement = (enum arrangement)i;
        uint64_t other_variant = variant;
        const char *excluded = arrangement_excluded(&problem, arrangement);
        if (!excluded) {
            check_cell(row, size, arrangement, &problem, &data, variant);
            continue;
        }
        if (!find_variant(&other, row, &dtypes, size, arrangement, &other_variant, &excluded)) {
            row->excluded[i] = excluded;
            continue;
        }
        problem_data_init(&other_data, &other, &random);
        problem_solve(&other_data, &other);
        check_cell(row, size, arrangement, &other, &other_data, other_variant);
        problem_data_release(&other_data);
    }
    problem_data_release(&data);
}

static void check_row(struct row *row, uint64_t first_variant)
{
    for (int i = 0; i < size_count; i++)
        check_size(row, &sizes[i], first_variant + (uint64_t)i);
    struct size many = {MANY_K_N, MANY_K};
    if (has_many_moduli(row->form))
        check_size(row, &many, first_variant + (uint64_t)size_count);
}

/* A dtype that the form does not take. */
static void check_refused(struct row *row)
{
    struct healcl_error error = {0};
    struct random random = {seed};
    struct problem problem;
    const struct size size = {4, 2};
    problem_make(&problem, row->form, &row->dtypes, size.n, size.k, 0, &random);
    row->refused = problem_is_refused(&problem, &random, &error);
    if (!row->refused)
        fail_cell(row, &size, "any", "is not refused");
    healcl_error_clear(&error);
}

/* ---------------------------------------------------------------- rows */

static bool same_dtypes(const struct problem_dtypes *a, const struct problem_dtypes *b)
{
    return a->value == b->value && a->also == b->also && a->index == b->index;
}

/* All rows of a form: every dtype of its values, and every other dtype that one of its tensors may
 * have; the dtype of indices varies from cell to cell, and int8 is refused. */
static void add_rows(const struct form *form)
{
    bool has_also = problem_also(form) >= 0, has_index = problem_has_index(form);
    for (int value = 0; value < DTYPE_COUNT; value++)
        for (int also = 0; also < DTYPE_COUNT; also++)
            for (int index = 0; index < DTYPE_COUNT; index++) {
                struct problem_dtypes dtypes = {(enum dtype)value, (enum dtype)also,
                                                (enum dtype)index};
                if (!has_also)
                    dtypes.also = dtypes.value;
                if (!has_index || dtypes.index == DTYPE_INT32)
                    dtypes.index = DTYPE_INT64;
                bool known = false;
                for (int i = 0; i < row_count; i++)
                    known =
                        known || (rows[i].form == form && same_dtypes(&rows[i].dtypes, &dtypes));
                if (known)
                    continue;
                if (row_count == ROWS_MAX)
                    abort();
                rows[row_count++] = (struct row){.form = form, .dtypes = dtypes};
            }
}

/* ---------------------------------------------------------------- the table */

static const char *row_dtypes(const struct row *row, char text[64])
{
    const struct form *form = row->form;
    int also = problem_also(form);
    int used = snprintf(text, 64, "%s", dtype_name(row->dtypes.value));
    if (also >= 0 && row->dtypes.also != row->dtypes.value)
        used += snprintf(text + used, 64 - (size_t)used, ", %s %s", form->parameters[also].name,
                         dtype_name(row->dtypes.also));
    if (row->dtypes.index == DTYPE_INT8)
        snprintf(text + used, 64 - (size_t)used, ", indices int8");
    return text;
}

static const char *form_text(const struct form *form, char text[256])
{
    int used = snprintf(text, 256, "`%s(", form->name);
    for (uint32_t i = 0; i < form->parameter_count; i++)
        used += snprintf(text + used, 256 - (size_t)used, "%s%s", i ? ", " : "",
                         form->parameters[i].name);
    snprintf(text + used, 256 - (size_t)used, ")`");
    return text;
}

static void print_row(FILE *file, const struct row *row)
{
    char form[256], dtypes[64];
    fprintf(file, "| %s | %s |", form_text(row->form, form), row_dtypes(row, dtypes));
    for (int i = 0; i < ARRANGEMENT_COUNT; i++) {
        if (row->applied[i] == 0)
            fprintf(file, " – |");
        else if (row->applied[i] == row->passed[i])
            fprintf(file, " %d |", row->passed[i]);
        else
            fprintf(file, " **%d of %d** |", row->passed[i], row->applied[i]);
    }
    fprintf(file, "\n");
}

/* The dtypes that each form refuses. */
static void print_refusals(FILE *file)
{
    fprintf(file, "\nDtypes that are not an operation's, and that planning refuses:\n\n");
    const struct form *form = NULL;
    for (int i = 0; i < row_count; i++) {
        char form_name[256], dtypes[64];
        if (!rows[i].refused)
            continue;
        if (rows[i].form != form)
            fprintf(file, "%s- %s: ", form ? "\n" : "", form_text(rows[i].form, form_name));
        else
            fprintf(file, "; ");
        form = rows[i].form;
        fprintf(file, "%s", row_dtypes(&rows[i], dtypes));
    }
    fprintf(file, "\n");
}

/* Each reason once, with the operations that it holds for. */
static void print_exclusions(FILE *file)
{
    const char *printed[16];
    int count = 0;
    fprintf(file, "\nA dash stands where no call of the form has such a layout:\n\n");
    for (int r = 0; r < row_count; r++)
        for (int i = 0; i < ARRANGEMENT_COUNT; i++) {
            const char *reason = rows[r].excluded[i];
            bool known = !reason || rows[r].applied[i] > 0;
            for (int p = 0; p < count; p++)
                known = known || strcmp(printed[p], reason) == 0;
            if (known || count == 16)
                continue;
            printed[count++] = reason;
            fprintf(file, "- %s:", reason);
            const char *last = "";
            for (int other = 0; other < row_count; other++)
                for (int j = 0; j < ARRANGEMENT_COUNT; j++)
                    if (rows[other].excluded[j] && rows[other].applied[j] == 0 &&
                        strcmp(rows[other].excluded[j], reason) == 0 &&
                        strcmp(last, rows[other].form->name) != 0) {
                        fprintf(file, "%s %s", *last ? "," : "", rows[other].form->name);
                        last = rows[other].form->name;
                    }
            fprintf(file, "\n");
        }
}

static void print_table(FILE *file)
{
    fprintf(file, "# What has been checked on a device\n\n");
    fprintf(file,
            "Each number counts calls of a form that ran on %s and left every byte of every "
            "storage as the host reference has it, one for each pair of n and k: n from %" PRId64
            " to %" PRId64 " in powers of two, k of",
            shared->device_name, sizes[0].n, sizes[size_count - 1].n);
    for (int i = 0; i < size_count && sizes[i].n == sizes[0].n; i++)
        fprintf(file, "%s %" PRId64, i ? "," : "", sizes[i].k);
    fprintf(file,
            "; transforms and digits relative to the full modulus once more with k of %d. "
            "Flags, axes, hints, dtypes of indices and shapes of broadcast operands take "
            "turns.\n\n",
            MANY_K);
    fprintf(file, "| form | dtypes |");
    for (int i = 0; i < ARRANGEMENT_COUNT; i++)
        fprintf(file, " %s |", arrangement_name((enum arrangement)i));
    fprintf(file, "\n|---|---|");
    for (int i = 0; i < ARRANGEMENT_COUNT; i++)
        fprintf(file, "---|");
    fprintf(file, "\n");
    for (int i = 0; i < row_count; i++)
        if (!rows[i].refused)
            print_row(file, &rows[i]);
    print_exclusions(file);
    print_refusals(file);
}

/* A cell that applies to some sizes of a row applies to all of them. */
static void check_full(struct row *row)
{
    int wanted = size_count + has_many_moduli(row->form);
    int applied = 0;
    for (int i = 0; i < ARRANGEMENT_COUNT && !row->refused; i++) {
        applied += row->applied[i];
        if (row->applied[i] != wanted && !(row->applied[i] == 0 && row->excluded[i])) {
            printf("FAILED: %s, %s: %d cells of %d\n", row->form->name,
                   arrangement_name((enum arrangement)i), row->applied[i], wanted);
            row->failures++;
        }
    }
    if (!row->refused && applied == 0) {
        printf("FAILED: %s: an empty row\n", row->form->name);
        row->failures++;
    }
}

/* ---------------------------------------------------------------- main */

static void set_sizes(bool quick)
{
    const int64_t *n = quick ? quick_n : all_n, *k = quick ? quick_k : all_k;
    int n_count =
        quick ? (int)(sizeof quick_n / sizeof *quick_n) : (int)(sizeof all_n / sizeof *all_n);
    int k_count =
        quick ? (int)(sizeof quick_k / sizeof *quick_k) : (int)(sizeof all_k / sizeof *all_k);
    for (int i = 0; i < n_count; i++)
        for (int j = 0; j < k_count; j++)
            sizes[size_count++] = (struct size){n[i], k[j]};
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A worker: checks rows until none is left. */
static int check_rows(void)
{
    struct healcl_error error = {0};
    if (device_open(&opencl_loader, NULL, &device, &error) != HEALCL_OK) {
        printf("%s\n", error.message);
        healcl_error_clear(&error);
        return 1;
    }
    snprintf(shared->device_name, sizeof shared->device_name, "%s", device->info.name);
    for (int i; (i = atomic_fetch_add(&shared->next_row, 1)) < row_count;) {
        struct row *row = &rows[i];
        double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
        if (problem_accepts(row->form, &row->dtypes))
            check_row(row, (uint64_t)i);
        else
            check_refused(row);
        check_full(row);
        row->seconds = seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    }
    healcl_device_close(device);
    return 0;
}

/* OpenCL starts in the workers: a process that has used it cannot be forked. */
static int run_workers(int jobs)
{
    int failed = 0;
    if (jobs == 1)
        return check_rows();
    fflush(stdout);
    for (int i = 0; i < jobs; i++) {
        pid_t worker = fork();
        if (worker < 0)
            return 1;
        if (worker == 0) {
            int status = check_rows();
            fflush(stdout);
            _exit(status);
        }
    }
    for (int i = 0; i < jobs; i++) {
        int status;
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            printf("FAILED: a worker ended early\n");
            failed = 1;
        }
    }
    return failed;
}

static int write_table(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return 1;
    }
    print_table(file);
    return fclose(file) == 0 ? 0 : 1;
}

/* The last line of the output. Returns the number of failures. */
static int print_summary(void)
{
    int cells = 0, refused = 0, failures = 0;
    double spent = 0;
    for (int i = 0; i < row_count; i++) {
        refused += rows[i].refused;
        failures += rows[i].failures;
        spent += rows[i].seconds;
        for (int j = 0; j < ARRANGEMENT_COUNT; j++)
            cells += rows[i].passed[j];
    }
    printf("\n%d cells are right, %d dtypes are refused, %d failures, %.0f s of processor time\n",
           cells, refused, failures, spent);
    return failures;
}

int main(int argc, char **argv)
{
    bool quick = false;
    const char *only = NULL, *path = NULL;
    int jobs = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            quick = true;
        else if (strcmp(argv[i], "--form") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc)
            jobs = atoi(argv[++i]);
        else
            path = argv[i];
    }
    /* The arrays of large cells are used again and again: keep their pages. */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    setenv("HEALCL_CACHE_DIR", "", 1);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    rows = shared->rows;
    set_sizes(quick);
    for (size_t i = 0; i < form_count; i++)
        if (!only || strcmp(forms[i].name, only) == 0)
            add_rows(&forms[i]);
    printf("seed %#" PRIx64 "\n", seed);
    int failed = run_workers(jobs);
    print_table(stdout);
    failed |= print_summary() > 0;
    return failed || (path && write_table(path));
}
