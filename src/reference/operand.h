/* Shared by the families of the reference: operands in memory, and checks of their data. */
#ifndef HEALCL_REFERENCE_OPERAND_H
#define HEALCL_REFERENCE_OPERAND_H

#include "reference/reference.h"

/* A tensor and its memory. Positions are in elements, as in layouts. */
struct operand {
    struct layout layout;
    enum dtype dtype;
    void *bytes;
};

enum healcl_status reference_operand(struct operand *operand, struct reference *reference,
                                     const struct tensor *tensor, struct healcl_error *error);

static inline int64_t operand_load(const struct operand *operand, int64_t position)
{
    return dtype_load(operand->dtype, operand->bytes, position);
}

/* Wraps a value that the operand's dtype cannot hold. */
static inline void operand_store(const struct operand *operand, int64_t position, int64_t value)
{
    dtype_store(operand->dtype, operand->bytes, position, value);
}

enum { CHECKED_ELEMENTS = 1 << 14 };

/* Called before a step visits count elements. Errors: those of reference->check. */
static inline enum healcl_status reference_visit(struct reference *reference, int64_t count,
                                                 struct healcl_error *error)
{
    reference->unchecked += count;
    if (!reference->check || reference->unchecked < CHECKED_ELEMENTS)
        return HEALCL_OK;
    reference->unchecked = 0;
    return reference->check(reference->executor, error);
}

/* Refuses the first element of input i that is outside of [lowest, highest]. what: the rest of the
 * message. */
enum healcl_status reference_check_range(struct reference *reference, const struct step *step,
                                         int i, const struct operand *operand, int64_t lowest,
                                         int64_t highest, const char *what,
                                         struct healcl_error *error);

/* Finds the moduli in input i of a step. Refuses the first one below 1. */
enum healcl_status reference_moduli(struct operand *moduli, struct reference *reference,
                                    const struct step *step, int i, struct healcl_error *error);

/* Notes that a step refuses input i. Returns the input's name, for the message. */
const char *reference_refuse(struct reference *reference, const struct step *step, int i);

/* Copies the elements of a rank 1 operand into an array. The caller frees it. */
enum healcl_status reference_read_vector(const struct operand *operand, int64_t **values,
                                         struct healcl_error *error);

/* Copies input i of a step, which must be a permutation. Refuses the first entry that is outside of
 * [0, n) or equal to an earlier one. The caller frees *perm. */
enum healcl_status reference_read_permutation(struct reference *reference, const struct step *step,
                                              int i, int64_t **perm, struct healcl_error *error);

/* Returns zeroed memory for count items; NULL when out of memory. The caller frees it. */
void *reference_allocate(uint64_t count, size_t size);

/* ---- functions that execute kinds of steps, see steps.def; out is never empty ---- */

typedef enum healcl_status reference_function(struct reference *reference, const struct step *step,
                                              struct healcl_error *error);

#define STEP(kind, id, reference, ...) reference_function reference_##reference;
#include "plan/steps.def"
#undef STEP

#endif
