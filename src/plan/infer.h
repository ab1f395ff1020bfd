/*
 * Shared by the inference of single operations: arguments by parameter name, checks that name the
 * argument they refuse, and steps. plan/ops.def names one infer_... function for each operation; it
 * is defined in the infer_*.c file of its family. The infer function of an operation that is added
 * to a table may call these functions if its form has the parameters that they name.
 */
#ifndef HEALCL_PLAN_INFER_H
#define HEALCL_PLAN_INFER_H

#include "plan/planner.h"

/* Refuses with a cause, and names the call's argument. */
#define REFUSE_ARGUMENT_FOR(cause, name, ...)            \
    do {                                                 \
        (void)ERROR(error, HEALCL_REFUSED, __VA_ARGS__); \
        error_because(error, HEALCL_CAUSE_##cause);      \
        name_argument(call, name, error);                \
        return HEALCL_REFUSED;                           \
    } while (0)
#define REFUSE_ARGUMENT(name, ...) REFUSE_ARGUMENT_FOR(ARGUMENT, name, __VA_ARGS__)

/* Forwards an error, and names the call's argument. */
#define TRY_ARGUMENT(name, expression)                 \
    do {                                               \
        enum healcl_status try_status_ = (expression); \
        if (try_status_ != HEALCL_OK) {                \
            name_argument(call, name, error);          \
            return try_status_;                        \
        }                                              \
    } while (0)

/* Puts "argument 'a': " in front of an error, and sets the argument's number. */
void name_argument(const struct call *call, const char *name, struct healcl_error *error);

/* ---------------------------------------------------------------- arguments by name */

/* Index of a parameter of the form, or -1. */
int index_of(const struct call *call, const char *name);

/* The bound tensor of a parameter; NULL if the form lacks it or the argument is NONE. */
const struct tensor *tensor_of(const struct call *call, const char *name);

/* The value of an INT argument; `absent` if the form lacks it. */
int64_t integer_of(const struct call *call, const char *name, int64_t absent);

/* Reads an INT argument that names an axis of a tensor of rank `rank`. */
enum healcl_status axis_of(const struct call *call, const char *name, uint32_t rank, uint32_t *axis,
                           struct healcl_error *error);

/* ---------------------------------------------------------------- checks */

enum healcl_status want_rank(const struct call *call, const char *name, const struct tensor *tensor,
                             uint32_t rank, struct healcl_error *error);

enum healcl_status want_shape(const struct call *call, const char *name,
                              const struct layout *layout, uint32_t rank, const int64_t *shape,
                              struct healcl_error *error);

/* Finds the tensor `out`, which must have this shape. If the call omits it, makes a new tensor of
 * the values' dtype. */
enum healcl_status find_out(struct call *call, uint32_t rank, const int64_t *shape,
                            const struct tensor **out, struct healcl_error *error);

/* Checks an index or permutation tensor. */
enum healcl_status want_index(const struct call *call, const char *name,
                              struct healcl_error *error);

/* ---------------------------------------------------------------- steps */

/* Sets input i of a step to the tensor of a parameter, viewed through a layout. */
enum healcl_status set_input(struct call *call, struct step *step, int i, const char *name,
                             const struct layout *layout, struct healcl_error *error);

enum healcl_status set_output(struct call *call, struct step *step, const struct layout *layout,
                              struct healcl_error *error);

/*
 * Adds a step that computes out from inputs. Results are as if every input had been read first:
 * inputs that overlap the output are copied before, unless the step may run in place. Adds nothing
 * if the output has no elements.
 */
enum healcl_status add_compute(struct call *call, struct step *step, struct healcl_error *error);

enum healcl_status add_fill(struct call *call, const struct tensor *out, int64_t value,
                            struct healcl_error *error);

/* ---------------------------------------------------------------- operations */

#define OPERATION(id, name, family, infer, ...) infer_function infer;
#define FORM(...)
#include "plan/ops.def"
#undef OPERATION
#undef FORM

#endif
