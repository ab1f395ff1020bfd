/*
 * What is told of each run of a comparison, of devices and of what surrounds them. A row is a
 * column, or a key, of every form in which a comparison is printed, of the JSON that is read from
 * child processes and from baselines, and of docs/compare.schema.json (tests/compare/schema.py
 * --write).
 */
#ifndef HEALCL_COMPARE_COLUMNS_H
#define HEALCL_COMPARE_COLUMNS_H

#include "compare/compare.h"
#include "report/columns.h"
#include "report/run_segments.h"

/* Where a column is told. */
enum {
    IN_CSV = COLUMN_PLACES,
    IN_TERMINAL = IN_CSV << 1,
    IN_MARKDOWN = IN_CSV << 2,
    IN_VERDICTS = IN_CSV << 3, /* tables of the page */
    IN_FIRST = IN_CSV << 4,
    IN_COSTS = IN_CSV << 5,
    IN_CARD = IN_CSV << 6, /* of a device, on the page */
    NOTE_IN_TERMINAL = IN_CSV << 7,
    WHERE_KNOWN = IN_CSV << 8, /* for people only where any run has a value */
};

/* Of struct compare_run, whose context is the comparison. */
extern const struct column_table compare_run_columns;

/* The others have no context. */
extern const struct column_table compare_device_columns; /* of struct compare_device */
extern const struct column_table compare_check_columns;  /* of struct compare_check */
extern const struct column_table compare_origin_columns; /* of struct compare_origin: the host */

/* Of struct compare_rank, whose context is its struct compare_ranks. */
extern const struct column_table compare_rank_columns;

/* Whether a column is told in such a place for people, of these ranks. */
bool rank_column_is_shown(const struct column *column, const struct compare_ranks *ranks,
                          unsigned place);

/* Those that are. */
#define FOR_EACH_OF_RANKS(column, ranks, place)           \
    FOR_EACH_COLUMN(column, &compare_rank_columns, place) \
    if (rank_column_is_shown(column, ranks, place))

/* Whether it is, of any report. */
bool rank_column_is_shown_anywhere(const struct column *column, const struct comparison *comparison,
                                   unsigned place);

#define FOR_EACH_OF_ALL_RANKS(column, comparison, place)  \
    FOR_EACH_COLUMN(column, &compare_rank_columns, place) \
    if (rank_column_is_shown_anywhere(column, comparison, place))

/* The command of healcl-mpi that wrote a report. */
const char *compare_ranks_command(const struct compare_ranks *ranks);

/* "0", "all". Returns text. */
enum { RANK_TEXT_SIZE = 24 };
const char *compare_rank_name(const struct compare_rank *rank, char text[RANK_TEXT_SIZE]);

/* Whether a column is told in such a place for people, of these runs. */
bool column_is_shown(const struct column *column, const struct comparison *comparison,
                     unsigned place);

/* Those that are. */
#define FOR_EACH_SHOWN(column, comparison, place)        \
    FOR_EACH_COLUMN(column, &compare_run_columns, place) \
    if (column_is_shown(column, comparison, place))

/* column_text of a run. */
const char *compare_column_text(const struct column *column, const struct comparison *comparison,
                                const struct compare_run *run, bool with_note,
                                char text[COLUMN_TEXT_SIZE]);

#endif
