/*
 * The table of what a device gets right: every form of the op table × dtype × layout of its tensors
 * × n × k. Each cell is a call that runs on the device and is compared with the host reference,
 * whole storages bit for bit. Dtypes that a form does not take are rows too: they must be refused.
 */
#ifndef HEALCL_TOOLS_COVERAGE_H
#define HEALCL_TOOLS_COVERAGE_H

#include "tools/problem_check.h"

/* The seed of everything random here. */
enum { COVERAGE_SEED = 0xc0e4a6e };

struct coverage_size {
    int64_t n, k;
};

enum { COVERAGE_SIZES_MAX = 128 };

struct coverage_sizes {
    size_t count;
    size_t more; /* behind them, for calls that have variants run steps in new ways */
    struct coverage_size of[COVERAGE_SIZES_MAX];
};

/* n from 2 to 131072, k from 1 to 24, in all combinations, quick: few of them, below 1000, and
 * more; and last one with more moduli. */
void coverage_sizes_init(struct coverage_sizes *sizes, bool quick);

/* A form with certain dtypes. */
struct coverage_row {
    uint32_t number; /* in the list of all rows; what is random depends on it */
    const struct form *form;
    struct problem_dtypes dtypes;
    const struct operation_table *table; /* whose kernels serve its calls too; or NULL */
    struct kernel_uses *uses;            /* of these; or NULL */
    struct variants *variants;           /* that count its calls */
    bool refused;                        /* so it should be, and is */
    struct check_counts cells[ARRANGEMENT_COUNT + 1]; /* those that applied, and random ones */
    int failures; /* cells that were not right, and dtypes that were not refused */
    uint64_t nanoseconds;
};

/* Lists all rows, freed with free(); returns how many. Each form has one for every dtype of its
 * values, and every other dtype that one of its tensors may have; the dtype of indices varies from
 * cell to cell, and int8 is refused. */
size_t coverage_rows(struct coverage_row **rows);

/* "int64, a int8, indices int8"; returns text. */
enum { COVERAGE_DTYPES_SIZE = 64 };
const char *coverage_dtypes_text(const struct coverage_row *row, char text[COVERAGE_DTYPES_SIZE]);

/* One cell: variant counts what takes turns in a row. */
struct coverage_cell {
    uint32_t row;
    struct coverage_size size;
    enum arrangement arrangement; /* ARRANGEMENT_COUNT: of a whole row */
    uint64_t variant;
};

/* The name of a cell on the command line: "37:512x3:strided:42". */
enum { COVERAGE_CELL_SIZE = 96 };
const char *coverage_cell_text(const struct coverage_cell *cell, char text[COVERAGE_CELL_SIZE]);
/* Returns false for what names no cell: k is at most COPRIME_MAX, or ANY_SHAPE. */
bool coverage_cell_parse(const char *text, struct coverage_cell *cell);

/* Gets every cell that was not right: why->status is HEALCL_DIFFERENT where it differs,
 * HEALCL_REFUSED where it is beyond the device. kernel: of a manifest, that had a part in it;
 * without a name where none had. */
struct coverage_observer {
    void *context;
    void (*failed)(void *context, const struct coverage_row *row, const struct coverage_cell *cell,
                   const struct manifest_kernel *kernel, const struct healcl_error *why);
};

/* Checks one cell of a row, or where it is NULL all of them; or that the row's dtypes are refused.
 * Fills in the rest of the row. */
void coverage_check(struct healcl_device *device, const struct coverage_sizes *sizes,
                    const struct coverage_cell *one, struct coverage_row *row,
                    const struct coverage_observer *observer);

#endif
