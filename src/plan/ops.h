/* Operations: the built-in ones, made from ops.def, and tables of them with others behind. */
#ifndef HEALCL_PLAN_OPS_H
#define HEALCL_PLAN_OPS_H

#include <stdatomic.h>

#include "core/status.h"
#include "transcript/entry.h"

enum operation_id {
#define OPERATION(id, name, family, infer, dtypes, result, meaning) OPERATION_##id,
#define FORM(...)
#include "plan/ops.def"
#undef OPERATION
#undef FORM
    OPERATION_COUNT
};

/* An operation's own `out`. */
enum operation_result {
    RESULT_NEW,   /* a name for the tensor that it makes */
    RESULT_ALIAS, /* one more name, usually the same, of its OUT parameter; may be NONE */
    RESULT_HOST,  /* a host tensor with the expected values, or without any */
    RESULT_NONE,  /* not looked at */
};

/* The tensors of an operation that hold values, TENSOR and OUT parameters, are all of one dtype;
 * only the parameter named `also` may be of another one. Sets of dtypes have bit d for dtype d. */
struct dtype_rule {
    uint32_t values;
    const char *also; /* NULL: none */
    uint32_t also_dtypes;
    bool by_parameter; /* infer has a rule for each instead; values has them all */
};

struct call;

/* Works out a call of an operation: see plan/infer.h. */
typedef enum healcl_status infer_function(struct call *call, struct healcl_error *error);

struct operation {
    uint32_t number;  /* in its table; of a built-in one its id */
    const char *name; /* canonical */
    const char *family;
    struct dtype_rule dtypes;
    enum operation_result result;
    const char *meaning;
    infer_function *infer; /* NULL for a built-in one: the planner has its own */
    const void *context;   /* for infer */
    const char *manifest;  /* the file that tells of it, without its folder; or NULL */
    const struct healcl_form_info *form; /* NULL for a built-in one, which may have several */
};

struct form {
    const struct operation *operation;
    const char *name;            /* without the leading underscore that may stand before it */
    const char *underscore_name; /* with it */
    uint32_t parameter_count;
    const struct healcl_parameter_info *parameters;
};

enum { PARAMETERS_MAX = 11 };

extern const struct operation operations[OPERATION_COUNT];
extern const struct form forms[];
extern const size_t form_count;

/* The built-in operation that a form is of; OPERATION_COUNT for one that was added. */
enum operation_id form_id(const struct form *form);

/*
 * The operations that a transcript may name: the built-in ones, and behind them those that were
 * added. What walks or counts operations takes a table; NULL stands for one of built-in operations
 * only. Plans refer to theirs. A table to which nothing is added any more is only read: any number
 * of threads may share it.
 */
struct operation_table;

/* The library's handle of a table begins with this; see vendor/vendor.h. */
struct healcl_operations {
    struct operation_table *table;
    struct healcl_operations *self; /* for those who may only read it, and retain it */
    atomic_size_t owners;           /* whoever has loaded it, transcripts and queues */
    /* The arguments in the order that they were read in, for commands that repeat a call. */
    struct operation_folder {
        const char *path;
        bool is_trusted;
        struct operation_folder *next;
    } * folders;
};

/* One owner more: healcl_operations_free is for it, too. handle may be NULL; returns it. */
struct healcl_operations *operations_retain(const struct healcl_operations *handle);

/* The table of limits, which may be NULL, or lack one. */
const struct operation_table *operations_of_limits(const struct healcl_limits *limits);

/* Errors: HEALCL_NO_MEMORY. */
enum healcl_status operation_table_create(struct operation_table **table,
                                          struct healcl_error *error);
void operation_table_free(struct operation_table *table);

/*
 * Adds an operation with an infer function, in one form. Both are copied, what they point to is
 * not; the table sets the operation's number and form, and of the form operation and
 * underscore_name.
 * HEALCL_REFUSED where another operation or form has one of the names already, or one begins with
 * an underscore, or the form has more than PARAMETERS_MAX parameters; HEALCL_NO_MEMORY.
 */
enum healcl_status operation_table_add(struct operation_table *table,
                                       const struct operation *operation, const struct form *form,
                                       struct healcl_error *error);

size_t operation_count(const struct operation_table *table);

/* Form i of a table, those of built-in operations first; NULL behind the last one. */
const struct form *form_at(const struct operation_table *table, size_t i);

/* The owner that a table is a part of; NULL where nobody has said. */
void operation_table_set_owner(struct operation_table *table, const void *owner);
const void *operation_table_owner(const struct operation_table *table);

/* number: below operation_count. */
const struct operation *operation_at(const struct operation_table *table, size_t number);

/* The number of the operation that a form of that name is of, with or without an underscore; -1:
 * there is none. */
int64_t operation_number(const struct operation_table *table, const char *name);

/* By kind of parameter: its name in docs/OPS.md, what it wants for messages, and which kinds of
 * argument may stand for it, kind k as bit k. */
struct parameter_traits {
    const char *name, *wanted;
    uint32_t accepted;
};

extern const struct parameter_traits parameter_traits[];

/*
 * Finds the form of a table that an operation entry is written in. Refuses an unknown name, a
 * number of arguments that no form of the name has, and an argument of the wrong kind (named).
 */
enum healcl_status form_of_entry(const struct operation_table *table, const struct entry *entry,
                                 const struct form **result, struct healcl_error *error);

/* "int32, int64; a also int8" */
enum { DTYPES_TEXT_SIZE = 64 };
const char *dtype_rule_text(const struct dtype_rule *rule, char text[DTYPES_TEXT_SIZE]);

/* Whether a rule lets a parameter that holds values be of a dtype, where the values are of another
 * or the same one. */
bool dtype_rule_allows(const struct dtype_rule *rule, const char *parameter, enum dtype values,
                       enum dtype dtype);

/* Index of the parameter of that name in a form, or -1. */
int form_parameter(const struct form *form, const char *name);

#endif
