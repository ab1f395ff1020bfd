/*
 * Errors as values that travel up.
 *
 * FAIL makes an error and returns its status; TRY forwards one. The first error wins. Callers on
 * the way up only add context in front of its message.
 */
#ifndef HEALCL_CORE_STATUS_H
#define HEALCL_CORE_STATUS_H

#include <inttypes.h>

#include "healcl.h"

/* error may be NULL everywhere. cause: for HEALCL_REFUSED; any other status determines its cause.
 * Returns status. */
__attribute__((format(printf, 6, 7))) enum healcl_status error_set(struct healcl_error *error,
                                                                   enum healcl_status status,
                                                                   enum healcl_cause cause,
                                                                   const char *file, int line,
                                                                   const char *format, ...);

/* The cause of refusals that do not specify one. A module, or a file before its includes, may
 * define another one. */
#ifndef REFUSED_CAUSE
#define REFUSED_CAUSE HEALCL_CAUSE_ARGUMENT
#endif

/* Sets the cause of an existing error. */
static inline void error_because(struct healcl_error *error, enum healcl_cause cause)
{
    if (error)
        error->cause = cause;
}

/* Sets the numbers of what an error is about; -1: none. */
static inline void error_place(struct healcl_error *error, int64_t entry, int64_t operation)
{
    if (!error)
        return;
    error->entry = entry;
    error->operation = operation;
}

static inline void error_argument(struct healcl_error *error, int argument)
{
    if (error)
        error->argument = argument;
}

/* Puts context, such as "entry 17 (ntt): ", in front of the message of an existing error. */
__attribute__((format(printf, 2, 3))) void error_prefix(struct healcl_error *error,
                                                        const char *format, ...);

/* Moves an error to *error; error may be NULL. *own is empty afterwards. */
void error_move(struct healcl_error *error, struct healcl_error *own);

/* Its value is the constant status, so that compilers and analysers see that it is not
 * HEALCL_OK. */
#define ERROR(error, status, ...)                                                        \
    ((void)error_set((error), (status), REFUSED_CAUSE, __FILE__, __LINE__, __VA_ARGS__), \
     (enum healcl_status)(status))

#define FAIL(error, status, ...) return ERROR(error, status, __VA_ARGS__)

/* Fails with a cause: FAIL_FOR(error, HEALCL_USAGE, STATE, "nothing was started"). */
#define FAIL_FOR(error, status, cause, ...)         \
    do {                                            \
        (void)ERROR(error, status, __VA_ARGS__);    \
        error_because(error, HEALCL_CAUSE_##cause); \
        return status;                              \
    } while (0)

#define REFUSE(error, ...) FAIL(error, HEALCL_REFUSED, __VA_ARGS__)
#define REFUSE_FOR(error, cause, ...) FAIL_FOR(error, HEALCL_REFUSED, cause, __VA_ARGS__)

/* Checks pointer arguments of the library's functions: "transcript is NULL". */
#define NEED(pointer, error)                                   \
    do {                                                       \
        if (!(pointer))                                        \
            FAIL(error, HEALCL_USAGE, "%s is NULL", #pointer); \
    } while (0)

/* Checks numbers of inputs and the like: "there is no input 7: the number of inputs is 3". */
#define NEED_NUMBER(what, number, count, error)                                               \
    do {                                                                                      \
        if ((number) >= (count))                                                              \
            FAIL(error, HEALCL_USAGE, "there is no %s %zu: the number of %ss is %zu", (what), \
                 (number), (what), (count));                                                  \
    } while (0)

#define NO_MEMORY(error) FAIL(error, HEALCL_NO_MEMORY, "out of memory")

/* Checks the result of an allocation: fails if it is NULL or false. */
#define NEED_MEMORY(memory, error) \
    do {                           \
        if (!(memory))             \
            NO_MEMORY(error);      \
    } while (0)

#define TRY(expression)                                \
    do {                                               \
        enum healcl_status try_status_ = (expression); \
        if (try_status_ != HEALCL_OK)                  \
            return try_status_;                        \
    } while (0)

/* Goes on unless status has an error already. For functions that must release something before they
 * return. */
#define THEN(status, expression)     \
    do {                             \
        if ((status) == HEALCL_OK)   \
            (status) = (expression); \
    } while (0)

/* Forwards an error with context in front: a format and its arguments. */
#define TRY_PREFIX(expression, ...)                    \
    do {                                               \
        enum healcl_status try_status_ = (expression); \
        if (try_status_ != HEALCL_OK) {                \
            error_prefix(error, __VA_ARGS__);          \
            return try_status_;                        \
        }                                              \
    } while (0)

#endif
