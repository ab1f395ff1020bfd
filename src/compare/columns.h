/*
 * What is told of each run of a comparison, in one table: a row of columns.c is a column, or a key,
 * of every form in which a comparison is printed, of the JSON that is read from child processes and
 * from baselines, and of docs/compare.schema.json (tests/compare/schema.py --write).
 */
#ifndef HEALCL_COMPARE_COLUMNS_H
#define HEALCL_COMPARE_COLUMNS_H

#include "compare/compare.h"
#include "report/json.h"
#include "report/text.h"

enum column_kind {
    COLUMN_TEXT,
    COLUMN_COUNT,
    COLUMN_TIME,
    COLUMN_BYTES,
    COLUMN_FACTOR,
    COLUMN_RATE,   /* a second */
    COLUMN_SPREAD, /* percent to both sides */
    COLUMN_SHARE,  /* percent of a whole; people are told no more than all of it */
};

/* Where a column is told. */
enum {
    IN_CSV = 1,
    IN_TERMINAL = 2,
    IN_MARKDOWN = 4,
    IN_VERDICTS = 8, /* tables of the page */
    IN_FIRST = 16,
    IN_COSTS = 32,
    NOTE_IN_TERMINAL = 64,
    NONE_IF_0 = 128,   /* a field that is not always measured */
    WHERE_KNOWN = 256, /* for people only where any run has a value */
};

/* Of one run. A column has the member of its kind: text; number for a count, a time in nanoseconds
 * and bytes; else factor. */
struct column_value {
    const char *text;
    uint64_t number;
    double factor;
};

struct compare_column {
    const char *key;     /* in CSV */
    const char *path;    /* in a run's JSON: "results.total"; NULL: not from here */
    const char *heading; /* for people, plain ASCII; NULL: only for programs */
    enum column_kind kind;
    unsigned places;
    /* Where struct compare_run keeps what was read or measured, if others use it by name: the
     * offset of a uint64_t; 0: in its figures. */
    size_t field;
    /* What follows from that; returns false where there is nothing. NULL: it is read. */
    bool (*value)(const struct comparison *comparison, const struct compare_run *run,
                  struct column_value *value);
    /* More about a value, for people: a few words of ASCII, or "". May be NULL. */
    void (*note)(const struct comparison *comparison, const struct compare_run *run,
                 char text[UNIT_TEXT_SIZE]);
    const char *meaning; /* of the heading, for notes below tables; plain ASCII, or NULL */
};

extern const struct compare_column compare_columns[];
extern const size_t compare_column_count;

#define FOR_EACH_COLUMN(column, place)                              \
    for (const struct compare_column *column = compare_columns;     \
         column < compare_columns + compare_column_count; column++) \
        if (column->places & (place))

/* Whether its values are in the member factor. */
bool column_is_decimal(const struct compare_column *column);

/* A share in percent as people are told it. Caches may make it more than all of what was measured
 * in memory: that is a word beside it. */
enum { SHARE_MAX = 100 };
double share_shown(double percent);

/* Returns false where a run has no value of that column. What was measured it always has: 0 where
 * there was nothing. */
bool column_value(const struct compare_column *column, const struct comparison *comparison,
                  const struct compare_run *run, struct column_value *value);

/* As column_value, for people: false for 0 too. */
bool column_is_known(const struct compare_column *column, const struct comparison *comparison,
                     const struct compare_run *run, struct column_value *value);

/* Whether a column is told in such a place for people, of these runs. */
bool column_is_shown(const struct compare_column *column, const struct comparison *comparison,
                     unsigned place);

enum { COLUMN_TEXT_SIZE = 128 };

/* "3.81 ms", "1.73 (1.70 to 1.76)" with its note, "-" where there is none. Returns text. */
const char *column_text(const struct compare_column *column, const struct comparison *comparison,
                        const struct compare_run *run, bool with_note, char text[COLUMN_TEXT_SIZE]);

/* Adds all that have a path to a run's object. */
void columns_add_json(struct json *json, cJSON *object, const struct comparison *comparison,
                      const struct compare_run *run);

/* Reads what was measured out of such an object; 0 for what it lacks. */
void columns_read_json(const cJSON *object, struct compare_run *run);

#endif
