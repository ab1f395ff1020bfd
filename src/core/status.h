/*
 * Errors as values that travel up.
 *
 * FAIL makes an error and returns its status; TRY forwards one. The first error wins: what is
 * added on the way up is only context in front of the message.
 */
#ifndef HEALCL_CORE_STATUS_H
#define HEALCL_CORE_STATUS_H

#include "healcl.h"

/* error may be NULL everywhere. cause: of HEALCL_REFUSED; another status has its own. Returns
 * status. */
__attribute__((format(printf, 6, 7))) enum healcl_status error_set(struct healcl_error *error,
                                                                   enum healcl_status status,
                                                                   enum healcl_cause cause,
                                                                   const char *file, int line,
                                                                   const char *format, ...);

/* The cause of a refusal that does not say one. A module, or a file before it includes anything,
 * may have another. */
#ifndef REFUSED_CAUSE
#define REFUSED_CAUSE HEALCL_CAUSE_ARGUMENT
#endif

/* Says the cause of an error that is set already. */
static inline void error_because(struct healcl_error *error, enum healcl_cause cause)
{
    if (error)
        error->cause = cause;
}

/* Says what an error is about, by numbers; -1: nothing. */
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

/* Puts context in front of the message of an error that has one: "entry 17 (ntt): ". */
__attribute__((format(printf, 2, 3))) void error_prefix(struct healcl_error *error,
                                                        const char *format, ...);

/* Hands an error on in the place of *error, which may be NULL; *own is empty afterwards. */
void error_move(struct healcl_error *error, struct healcl_error *own);

/* Its value is status itself, so that compilers and analysers see that it is not HEALCL_OK. */
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

/* For arguments of the library's functions: "transcript is NULL". */
#define NEED(pointer, error)                                   \
    do {                                                       \
        if (!(pointer))                                        \
            FAIL(error, HEALCL_USAGE, "%s is NULL", #pointer); \
    } while (0)

/* For numbers of inputs and the like: "there is no input 7, but 3 of them". */
#define NEED_NUMBER(what, number, count, error)                                                \
    do {                                                                                       \
        if ((number) >= (count))                                                               \
            FAIL(error, HEALCL_USAGE, "there is no %s %zu, but %zu of them", (what), (number), \
                 (count));                                                                     \
    } while (0)

#define NO_MEMORY(error) FAIL(error, HEALCL_NO_MEMORY, "out of memory")

/* For what has been allocated: fails where it is NULL, or false. */
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

/* Forwards an error with context in front: a format and what it wants. */
#define TRY_PREFIX(expression, ...)                    \
    do {                                               \
        enum healcl_status try_status_ = (expression); \
        if (try_status_ != HEALCL_OK) {                \
            error_prefix(error, __VA_ARGS__);          \
            return try_status_;                        \
        }                                              \
    } while (0)

#endif
