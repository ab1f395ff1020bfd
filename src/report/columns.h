/*
 * Tables that say what is told of records of one kind: a run of a comparison, a device, a segment.
 * A row is a column, or a key, of every form in which they are printed; one printer for each form
 * goes through the rows.
 */
#ifndef HEALCL_REPORT_COLUMNS_H
#define HEALCL_REPORT_COLUMNS_H

#include <stddef.h>

#include "report/json.h"
#include "report/table.h"
#include "report/text.h"

enum column_kind {
    COLUMN_TEXT,
    COLUMN_FLAG,
    COLUMN_COUNT,
    COLUMN_HUNDREDTHS, /* of what programs are told as a decimal */
    COLUMN_TIME,       /* nanoseconds */
    COLUMN_BYTES,
    COLUMN_DECIMAL, /* with so many decimals for people */
    COLUMN_FACTOR,
    COLUMN_RATE,   /* a second */
    COLUMN_SPREAD, /* percent to both sides */
    COLUMN_SHARE,  /* percent of a whole; people are told no more than all of it */
};

/* How a column is told. Bits from COLUMN_PLACES on are places, which each table names itself. */
enum {
    NONE_IF_0 = 1,    /* a member that is not always known: 0, or an empty text, is left out */
    DASH_IF_0 = 2,    /* the same for people alone */
    SHRINKS = 4,      /* its cells may be cut where a table of text is too wide */
    TO_THE_RIGHT = 8, /* a text that stands there, as all numbers do */
    BLANK = 16,       /* nothing in place of a dash */
    COLUMN_PLACES = 32,
    IN_TEXT = COLUMN_PLACES, /* of tables with no other place */
};

enum { COLUMN_TEXT_SIZE = 128 };

/* Of one record. A column has the member of its kind: text; number for a flag, a count, a time and
 * bytes; else factor. */
struct column_value {
    const char *text;
    uint64_t number;
    double factor;
    char room[COLUMN_TEXT_SIZE]; /* where text may lie */
};

struct column {
    const char *path;    /* in JSON: "results.total"; NULL: not there */
    const char *heading; /* for people, plain ASCII; NULL: only for programs */
    enum column_kind kind;
    unsigned places;
    const char *csv; /* in CSV, where it is not path */
    /* 1 + the offset of the member that is told, and read, and its size: a string, a bool, a
     * double, or a number of 32 or 64 bits. */
    size_t field, size;
    /* What follows from a record, and is told in place of a member; returns false where there is
     * nothing. Its context is what the caller gives. */
    bool (*value)(const void *context, const void *record, struct column_value *value);
    /* More about a value, for people: a few words of ASCII, or "". May be NULL. */
    void (*note)(const void *context, const void *record, char text[UNIT_TEXT_SIZE]);
    const char *meaning; /* of the heading, for notes below tables; plain ASCII, or NULL */
    int decimals;
    const char *unit; /* HTML behind a value on pages; or NULL */
};

#define COLUMN_FIELD(type, member) \
    .field = 1 + offsetof(type, member), .size = sizeof(((type *)0)->member)

/* Of a member that is an array of characters. It is never read. */
#define COLUMN_CHARACTERS(type, member) .field = 1 + offsetof(type, member), .size = 1

/* Defines a function for value: what follows from it, which is a record, where that is known. */
#define COLUMN_IF(name, type, member, known, expression)                                  \
    static bool name(const void *context, const void *record, struct column_value *value) \
    {                                                                                     \
        const type *it = record;                                                          \
        (void)context;                                                                    \
        if (!(known))                                                                     \
            return false;                                                                 \
        value->member = expression;                                                       \
        return true;                                                                      \
    }
#define COLUMN_OF(name, type, member, expression) COLUMN_IF(name, type, member, true, expression)

#define COLUMN_TABLE(rows)                                        \
    {                                                             \
        .columns = (rows), .count = sizeof(rows) / sizeof *(rows) \
    }

struct column_table {
    const struct column *columns;
    size_t count;
    /* Where a record has a uint64_t for each column, for those that have neither field nor value:
     * 1 + its offset. */
    size_t figures;
};

/* Those of some places. */
#define FOR_EACH_COLUMN(column, table, place)                  \
    for (const struct column *column = (table)->columns;       \
         column < (table)->columns + (table)->count; column++) \
        if (column->places & (place))

/* Returns false where a record has no value of that column. */
bool column_value(const struct column_table *table, const struct column *column,
                  const void *context, const void *record, struct column_value *value);

/* As column_value, for people. */
bool column_is_known(const struct column_table *table, const struct column *column,
                     const void *context, const void *record, struct column_value *value);

/* "3.81 ms", "1.73 (1.70 to 1.76)" with its note, "-" where there is none. Returns text. */
const char *column_text(const struct column_table *table, const struct column *column,
                        const void *context, const void *record, bool with_note,
                        char text[COLUMN_TEXT_SIZE]);

/* Whether its values are in the member factor. */
bool column_is_decimal(const struct column *column);

/* A share in percent as people are told it. Caches may make it more than all of what was measured
 * in memory: that is a word beside it. */
enum { SHARE_MAX = 100 };
double share_shown(double percent);

/* Records that lie behind each other. */
struct column_records {
    const void *first;
    size_t size, count;
};

#define COLUMN_RECORDS(array, number)                                \
    (struct column_records)                                          \
    {                                                                \
        .first = (array), .size = sizeof *(array), .count = (number) \
    }

/* Adds all that have a path to a record's object. */
void columns_add_json(struct json *json, cJSON *object, const struct column_table *table,
                      const void *context, const void *record);

/* Adds an array with an object for each record. */
void columns_add_list(struct json *json, cJSON *object, const char *key,
                      const struct column_table *table, const void *context,
                      struct column_records records);

/* Reads members out of such an object; 0, false or "" for what it lacks. keep copies texts. */
void columns_read_json(const cJSON *object, const struct column_table *table, void *record,
                       const char *(*keep)(void *context, const char *text), void *context);

/* A table of text with the columns of a place, and another row of it. As table_create and
 * table_cell. */
struct table *columns_create(const struct column_table *table, unsigned place);
void columns_row(struct table *text, const struct column_table *table, unsigned place,
                 const void *context, const void *record);

/* Prints a table of text with a row for each record. As table_print. */
enum healcl_status columns_print(const struct column_table *table, unsigned place,
                                 const void *context, struct column_records records, FILE *stream,
                                 unsigned width);

#endif
