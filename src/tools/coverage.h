/* The table of the calls that a device computes correctly: every form of the op table × dtype ×
 * layout of its tensors × n × k. Each cell is a call that runs on the device. Whole storages are
 * compared with the host reference's, bit for bit. Dtypes that a form does not take are rows too:
 * they must be refused. */
#ifndef HEALCL_TOOLS_COVERAGE_H
#define HEALCL_TOOLS_COVERAGE_H

#include "tools/problem_check.h"

/* The seed of all random choices here. */
enum { COVERAGE_SEED = 0xc0e4a6e };

struct coverage_size {
    int64_t n, k;
};

enum { COVERAGE_SIZES_MAX = 128 };

struct coverage_sizes {
    size_t count;
    size_t more; /* further ones, for calls that make variants run steps in new ways */
    struct coverage_size of[COVERAGE_SIZES_MAX];
};

/* Fills in all combinations of n from 2 to 131072 and k from 1 to 24 whose product is at most
 * 131072, then one size with more moduli, and larger ones as further ones. quick: only a few
 * sizes below 1000, with further ones. */
void coverage_sizes_init(struct coverage_sizes *sizes, bool quick);

/* A form with specific dtypes. */
struct coverage_row {
    uint32_t number; /* in the list of all rows; it seeds the random choices */
    const struct form *form;
    struct problem_dtypes dtypes;
    const struct operation_table *table; /* its kernels may also run the calls; or NULL */
    struct kernel_uses *uses;            /* counts of the table's kernels; or NULL */
    struct variants *variants;           /* counts of variants in its calls */
    bool refused;                        /* these dtypes must be refused, and are */
    struct check_counts cells[ARRANGEMENT_COUNT + 1]; /* cells by arrangement, then random ones */
    int failures; /* wrong cells, and dtypes that were not refused */
    uint64_t nanoseconds;
};

/* Lists all rows, to be freed with free(). Returns their number. Each form has a row for every
 * dtype of its values, and for every other dtype that one of its tensors may have. The dtype of
 * indices varies between cells; int8 indices are refused. */
size_t coverage_rows(struct coverage_row **rows);

/* Writes "int64, a int8, indices int8"; returns text. */
enum { COVERAGE_DTYPES_SIZE = 64 };
const char *coverage_dtypes_text(const struct coverage_row *row, char text[COVERAGE_DTYPES_SIZE]);

/* One cell. variant: a counter that selects varying properties within a row. */
struct coverage_cell {
    uint32_t row;
    struct coverage_size size;
    enum arrangement arrangement; /* ARRANGEMENT_COUNT: the whole row */
    uint64_t variant;
};

/* Writes the name of a cell on the command line: "37:512x3:strided:42". */
enum { COVERAGE_CELL_SIZE = 96 };
const char *coverage_cell_text(const struct coverage_cell *cell, char text[COVERAGE_CELL_SIZE]);
/* Returns false if text does not name a cell. k is at most COPRIME_MAX, or ANY_SHAPE. */
bool coverage_cell_parse(const char *text, struct coverage_cell *cell);

/* Called for every cell that is not right. why->status is HEALCL_DIFFERENT for a wrong result, and
 * HEALCL_REFUSED if the cell exceeds the device. kernel: the manifest's kernel that ran, without a
 * name if none did. */
struct coverage_observer {
    void *context;
    void (*failed)(void *context, const struct coverage_row *row, const struct coverage_cell *cell,
                   const struct manifest_kernel *kernel, const struct healcl_error *why);
};

/* Checks one cell of a row, or all of them if `one` is NULL. For dtypes that the form does not
 * take, checks that they are refused. Fills in the rest of the row. */
void coverage_check(struct healcl_device *device, const struct coverage_sizes *sizes,
                    const struct coverage_cell *one, struct coverage_row *row,
                    const struct coverage_observer *observer);

#endif
