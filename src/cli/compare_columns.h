/* What is told of runs and devices. A row is a key of the document, and a column of every form in
 * which it is printed. */
#ifndef HEALCL_CLI_COMPARE_COLUMNS_H
#define HEALCL_CLI_COMPARE_COLUMNS_H

#include "cli/comparison.h"
#include "cli/text.h"

enum compare_kind {
    KIND_TEXT,
    KIND_FLAG,
    KIND_COUNT,
    KIND_TIME, /* nanoseconds */
    KIND_BYTES,
    KIND_DECIMAL,
    KIND_FACTOR,
    KIND_PERCENT,
    KIND_SHARE, /* percent of a whole; people are told no more than all of it */
};

/* How a column is told. */
enum {
    ALWAYS = 1,      /* an empty text or 0 where it is not known */
    COPIED = 2,      /* out of what a child process wrote, or a saved comparison */
    OF_DEVICE = 4,   /* a key of the run's device */
    WHERE_KNOWN = 8, /* for people only where any run has a value */
    IN_CSV = 16,
    IN_TERMINAL = 32,
    NOTE_IN_TERMINAL = 64,
    IN_MARKDOWN = 128,
    ON_PAGE = 256,    /* its table of runs, or of devices */
    IN_DETAILS = 512, /* what the page unfolds */
};

/* A word or two behind a value, for people. */
enum compare_note { NO_NOTE, NOTE_NOISY, NOTE_RANGE, NOTE_CACHED, NOTE_CACHES };

struct compare_column {
    const char *path, *heading; /* heading: NULL for programs alone */
    enum compare_kind kind;
    unsigned places;
    const char *csv; /* its name there, where it is not the path */
    enum compare_note note;
    const char *meaning; /* of the heading; or NULL */
};

struct compare_columns {
    const struct compare_column *of;
    size_t count;
};
extern const struct compare_columns compare_run_columns, compare_device_columns,
    compare_host_columns;

#define FOR_EACH_COLUMN(column, table, place)                                                      \
    for (const struct compare_column *column = (table)->of; column < (table)->of + (table)->count; \
         column++)                                                                                 \
        if (column->places & (place))

/* Those of runs that are shown in a place to people. */
#define FOR_EACH_SHOWN(column, comparison, place)        \
    FOR_EACH_COLUMN(column, &compare_run_columns, place) \
    if (compare_is_shown(column, comparison))
bool compare_is_shown(const struct compare_column *column, const struct comparison *comparison);

/* Its value of a run; NULL: there is none. */
const cJSON *compare_value(const struct compare_column *column, const struct comparison *comparison,
                           const cJSON *run);

/* "3.81 ms", "1.73 (1.70 to 1.76)" with its note, "-" where there is none. Returns text. */
enum { CELL_SIZE = 160 };
const char *compare_cell(const struct compare_column *column, const struct comparison *comparison,
                         const cJSON *run, bool with_note, char text[CELL_SIZE]);

/* Copies what columns say of a source, which may be NULL. */
void compare_copy(cJSON *target, const cJSON *source, const struct compare_columns *table);

/* For scripts: a list of objects with path, heading, kind and meaning. */
cJSON *compare_columns_json(const struct compare_columns *table,
                            const struct comparison *comparison, unsigned place);

/* Prints a text, and the table of runs, as HTML. */
void compare_print_text(FILE *stream, const char *text);
void compare_print_plain(const struct comparison *comparison, FILE *stream);

#endif
