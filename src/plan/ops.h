/* Operations: the built-in ones from ops.def, and tables that hold these and further ones. */
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

/* What an operation's own `out` means. */
enum operation_result {
    RESULT_NEW,   /* a name for the new tensor */
    RESULT_ALIAS, /* another name, usually the same, for its OUT parameter; may be NONE */
    RESULT_HOST,  /* a host tensor, with or without the expected values */
    RESULT_NONE,  /* ignored */
};

/* The tensors of an operation that hold values, its TENSOR and OUT parameters, share one dtype.
 * Only the parameter named `also` may differ. In sets of dtypes, bit d stands for dtype d. */
struct dtype_rule {
    uint32_t values;
    const char *also; /* NULL: none */
    uint32_t also_dtypes;
    bool by_parameter; /* infer checks each parameter instead; values is the union */
};

struct call;

/* Infers one call of an operation: see plan/infer.h. */
typedef enum healcl_status infer_function(struct call *call, struct healcl_error *error);

struct operation {
    uint32_t number;  /* in its table; a built-in operation's id */
    const char *name; /* canonical name */
    const char *family;
    struct dtype_rule dtypes;
    enum operation_result result;
    const char *meaning;
    infer_function *infer; /* NULL for a built-in one: the planner knows its function */
    const void *context;   /* argument for infer */
    const char *manifest;  /* the file that describes it, without its folder; or NULL */
    const struct healcl_form_info *form; /* NULL for a built-in one, which may have several */
};

struct form {
    const struct operation *operation;
    const char *name;            /* without the optional leading underscore */
    const char *underscore_name; /* with it */
    uint32_t parameter_count;
    const struct healcl_parameter_info *parameters;
};

enum { PARAMETERS_MAX = 11 };

extern const struct operation operations[OPERATION_COUNT];
extern const struct form forms[];
extern const size_t form_count;

/* The built-in operation that a form belongs to; OPERATION_COUNT for an added operation. */
enum operation_id form_id(const struct form *form);

/*
 * The operations that a transcript may name: the built-in ones, then the added ones. Functions that
 * walk or count operations take a table; NULL stands for the built-in operations alone. A plan
 * refers to its table. Once nothing more is added, a table is only read, and any number of threads
 * may share it.
 */
struct operation_table;

/* The library's handle of a table begins with this struct; see vendor/vendor.h. */
struct healcl_operations {
    struct operation_table *table;
    struct healcl_operations *self; /* for owners that may only read it and retain it */
    atomic_size_t owners;           /* count of owners: the loader, transcripts and queues */
    /* The folders in the order in which they were loaded, for commands that repeat a call. */
    struct operation_folder {
        const char *path;
        bool is_trusted;
        struct operation_folder *next;
    } * folders;
};

/* Adds an owner, which must also call healcl_operations_free. handle may be NULL. Returns it. */
struct healcl_operations *operations_retain(const struct healcl_operations *handle);

/* The table in options, or NULL. options may be NULL. */
const struct operation_table *operations_of_options(const struct healcl_plan_options *options);

/* owner: what the table is a part of, or NULL. Errors: HEALCL_NO_MEMORY. */
enum healcl_status operation_table_create(const void *owner, struct operation_table **table,
                                          struct healcl_error *error);
void operation_table_free(struct operation_table *table);

/*
 * Adds an operation with an infer function, in one form. Both structs are copied, but not what they
 * point to. The table sets the operation's number and form, and the form's operation and
 * underscore_name.
 * Errors: HEALCL_REFUSED if another operation or form already has one of the names, a name begins
 * with an underscore, or the form has more than PARAMETERS_MAX parameters; HEALCL_NO_MEMORY.
 */
enum healcl_status operation_table_add(struct operation_table *table,
                                       const struct operation *operation, const struct form *form,
                                       struct healcl_error *error);

size_t operation_count(const struct operation_table *table);

/* Form i of a table, built-in operations first; NULL beyond the last one. */
const struct form *form_at(const struct operation_table *table, size_t i);

/* The owner that a table is a part of; NULL if none. */
const void *operation_table_owner(const struct operation_table *table);

/* number: below operation_count. */
const struct operation *operation_at(const struct operation_table *table, size_t number);

/* The number of the operation that has a form of that name, with or without an underscore; -1 if
 * none has. */
int64_t operation_number(const struct operation_table *table, const char *name);

/* By kind of parameter: its name in docs/OPS.md, what messages say it must be, and the kinds of
 * argument that it accepts (bit k: kind k). */
struct parameter_traits {
    const char *name, *wanted;
    uint32_t accepted;
};

extern const struct parameter_traits parameter_traits[];

/*
 * Finds the form that matches an operation entry. Refuses an unknown name, a number of arguments
 * that no form of the name has, and an argument of the wrong kind, which it names.
 */
enum healcl_status form_of_entry(const struct operation_table *table, const struct entry *entry,
                                 const struct form **result, struct healcl_error *error);

/* "int32, int64; a also int8" */
enum { DTYPES_TEXT_SIZE = 64 };
const char *dtype_rule_text(const struct dtype_rule *rule, char text[DTYPES_TEXT_SIZE]);

/* Whether a rule allows `dtype` for a parameter that holds values, given the dtype of the
 * values. */
bool dtype_rule_allows(const struct dtype_rule *rule, const char *parameter, enum dtype values,
                       enum dtype dtype);

/* Index of the parameter of that name in a form, or -1. */
int form_parameter(const struct form *form, const char *name);

#endif
