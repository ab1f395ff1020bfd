/*
 * The table of what has been checked on a device: every form of the op table × dtype × layout of
 * its tensors × n × k. Each cell is a call that runs on the device and is compared with the host
 * reference, whole storages bit for bit. Dtypes that an operation does not take are cells too: they
 * must be refused. Fails when a cell differs, or when one that applies is empty.
 *
 *     coverage [--quick] [--form NAME] [--jobs N] [FILE]
 *
 * --quick takes few n and k. --jobs: work on the whole in so many processes. FILE gets the table as
 * Markdown. A run takes a share of all n and k for each row (helper_share.h).
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

#include "check/coverage.h"
#include "helper_opencl.h"
#include "helper_share.h"
#include "programs/opening.h"
#include "programs/self_test.h"

/* What the workers share: each takes the next row that nobody has. */
static struct shared {
    atomic_int next_row;
    char device_name[256];
    struct coverage_row rows[COVERAGE_ROWS_MAX];
    double seconds[COVERAGE_ROWS_MAX]; /* of processor time */
} * shared;

static struct coverage_row *rows; /* of shared */
static int row_count;
static struct coverage_sizes sizes;
static const char *only; /* form */
static bool is_quick;

static void print_failure(void *context, const struct coverage_row *row,
                          const struct coverage_cell *cell, const struct coverage_call *call,
                          const struct healcl_error *why)
{
    char text[COVERAGE_CELL_SIZE];
    (void)context;
    (void)call;
    printf("FAILED: %s %s, cell %s: %s\n%s", row->form->name, dtype_name(row->dtypes.value),
           coverage_cell_text(cell, text), why->message, why->detail ? why->detail : "");
    fflush(stdout);
}

static bool is_wanted(const struct coverage_row *row)
{
    return !only || strcmp(row->form->name, only) == 0;
}

/* ---------------------------------------------------------------- the table */

static const char *form_text(const struct form *form, char text[256])
{
    int used = snprintf(text, 256, "`%s(", form->name);
    for (uint32_t i = 0; i < form->parameter_count; i++)
        used += snprintf(text + used, 256 - (size_t)used, "%s%s", i ? ", " : "",
                         form->parameters[i].name);
    snprintf(text + used, 256 - (size_t)used, ")`");
    return text;
}

static void print_row(FILE *file, const struct coverage_row *row)
{
    char form[256], dtypes[COVERAGE_DTYPES_SIZE];
    fprintf(file, "| %s | %s |", form_text(row->form, form), coverage_dtypes_text(row, dtypes));
    for (int i = 0; i < ARRANGEMENT_COUNT; i++) {
        const struct check_counts *cells = &row->cells[i];
        if (cells->calls == 0)
            fprintf(file, " – |");
        else if (cells->calls == cells->passed)
            fprintf(file, " %" PRIu32 " |", cells->passed);
        else
            fprintf(file, " **%" PRIu32 " of %" PRIu32 "** |", cells->passed, cells->calls);
    }
    fprintf(file, "\n");
}

/* The dtypes that each form refuses. */
static void print_refusals(FILE *file)
{
    fprintf(file, "\nDtypes that are not an operation's, and that planning refuses:\n\n");
    const struct form *form = NULL;
    for (int i = 0; i < row_count; i++) {
        char form_name[256], dtypes[COVERAGE_DTYPES_SIZE];
        if (!rows[i].refused)
            continue;
        if (rows[i].form != form)
            fprintf(file, "%s- %s: ", form ? "\n" : "", form_text(rows[i].form, form_name));
        else
            fprintf(file, "; ");
        form = rows[i].form;
        fprintf(file, "%s", coverage_dtypes_text(&rows[i], dtypes));
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
            bool known = !reason || rows[r].cells[i].calls > 0;
            for (int p = 0; p < count; p++)
                known = known || strcmp(printed[p], reason) == 0;
            if (known || count == 16)
                continue;
            printed[count++] = reason;
            fprintf(file, "- %s:", reason);
            const char *last = "";
            for (int other = 0; other < row_count; other++)
                for (int j = 0; j < ARRANGEMENT_COUNT; j++)
                    if (rows[other].excluded[j] && rows[other].cells[j].calls == 0 &&
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
            "storage as the host reference has it, one for each pair of n and k%s: n from %" PRId64
            " to %" PRId64 " in powers of two, k of",
            shared->device_name, share_is_all() ? "" : " of this run's share", sizes.of[0].n,
            sizes.of[sizes.count - 1].n);
    for (size_t i = 0; i < sizes.count && sizes.of[i].n == sizes.of[0].n; i++)
        fprintf(file, "%s %" PRId64, i ? "," : "", sizes.of[i].k);
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
        if (is_wanted(&rows[i]) && !rows[i].refused)
            print_row(file, &rows[i]);
    print_exclusions(file);
    print_refusals(file);
}

/* Of so many neighbouring sizes one is taken; but those that take most of the time only where all
 * are: what is special about large tensors has tests of its own (test_kernels_large.c and others).
 */
enum { SHARE = 30, QUICK_SHARE = 3, LARGE = 1 << 18 };

static bool takes_size(const struct coverage_row *row, size_t number)
{
    char sweep[32];
    snprintf(sweep, sizeof sweep, "row %u", row->number);
    return share_takes(sweep, number, is_quick ? QUICK_SHARE : SHARE);
}

/* The sizes of the row that this run takes. Returns how many. */
static int check_row(struct healcl_device *device, struct coverage_row *row,
                     const struct coverage_observer *observer)
{
    int taken = 0;
    size_t count = coverage_sizes_of(&sizes, row->form);
    if (share_is_all() || !problem_accepts(row->form, &row->dtypes)) {
        coverage_check_row(device, &sizes, row, observer);
        return (int)count;
    }
    for (size_t i = 0; i < count; i++) {
        const struct coverage_cell cells = coverage_cell_of(&sizes, row, i);
        if (!takes_size(row, i) || cells.size.n * cells.size.k > LARGE)
            continue;
        coverage_check_cell(device, &cells, row, observer);
        taken++;
    }
    if (taken == 0) { /* all that the share has are large */
        const struct coverage_cell cells = coverage_cell_of(&sizes, row, 0);
        coverage_check_cell(device, &cells, row, observer);
        taken++;
    }
    return taken;
}

/* A cell that applies to some sizes of a row applies to all of them that were taken. */
static void check_full(struct coverage_row *row, uint32_t wanted)
{
    uint32_t applied = 0;
    for (int i = 0; i < ARRANGEMENT_COUNT && !row->refused; i++) {
        const uint32_t calls = row->cells[i].calls;
        applied += calls;
        if (calls != wanted && !(calls == 0 && row->excluded[i])) {
            printf("FAILED: %s, %s: %" PRIu32 " cells of %" PRIu32 "\n", row->form->name,
                   arrangement_name((enum arrangement)i), calls, wanted);
            row->failures++;
        }
    }
    if (!row->refused && applied == 0) {
        printf("FAILED: %s: an empty row\n", row->form->name);
        row->failures++;
    }
}

/* ---------------------------------------------------------------- main */

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A worker: checks rows until none is left. */
static int check_rows(void)
{
    const struct coverage_observer observer = {NULL, print_failure};
    struct healcl_device *device = NULL;
    struct healcl_error error = {0};
    if (device_open_tested(helper_loader(), NULL, &device, &error) != HEALCL_OK) {
        printf("%s\n", error.message);
        healcl_error_clear(&error);
        return 1;
    }
    snprintf(shared->device_name, sizeof shared->device_name, "%s", device->info.name);
    for (int i; (i = atomic_fetch_add(&shared->next_row, 1)) < row_count;) {
        struct coverage_row *row = &rows[i];
        double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
        if (!is_wanted(row))
            continue;
        check_full(row, (uint32_t)check_row(device, row, &observer));
        shared->seconds[i] = seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
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
    uint32_t cells = 0;
    int refused = 0, failures = 0;
    double spent = 0;
    for (int i = 0; i < row_count; i++) {
        refused += rows[i].refused;
        failures += rows[i].failures;
        spent += shared->seconds[i];
        for (int j = 0; j < ARRANGEMENT_COUNT; j++)
            cells += rows[i].cells[j].passed;
    }
    printf("\n%" PRIu32 " cells are right, %d dtypes are refused, %d failures, %.0f s of processor "
           "time\n",
           cells, refused, failures, spent);
    return failures;
}

int main(int argc, char **argv)
{
    const char *path = NULL;
    int jobs = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            is_quick = true;
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
    share_compile_fast(true);
    (void)share_takes("", 0, 1); /* says the seed, before there are several processes */
    coverage_sizes_init(&sizes, is_quick);
    row_count = (int)coverage_rows_init(rows);
    /* Of a share most is compiling, which processes beside each other do twice. */
    int failed = run_workers(share_is_all() ? jobs : 1);
    print_table(stdout);
    failed |= print_summary() > 0;
    return failed || (path && write_table(path));
}
