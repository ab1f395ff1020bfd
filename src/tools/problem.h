/*
 * Problems: calls of one form of the op table with random arguments that the form accepts. How the
 * tensors lie in memory is another matter, see placement.h.
 */
#ifndef HEALCL_TOOLS_PROBLEM_H
#define HEALCL_TOOLS_PROBLEM_H

#include "plan/ops.h"
#include "tools/random.h"
#include "tools/writer.h"

/* Sorted: of those that steps of a body ask for, the last one counts. */
enum contents {
    CONTENTS_VALUES,
    CONTENTS_AROUND, /* in [low, high], where any others will do too */
    CONTENTS_TAME,   /* in [0, high], high + 1 a power of two; in most tensors a few values are
                        anything */
    CONTENTS_MODULI,
    CONTENTS_COPRIME,
    CONTENTS_BETWEEN, /* in [low, high] */
    CONTENTS_PERMUTATION,
};

struct problem_tensor {
    bool present; /* false: the argument is no tensor, or NONE */
    enum dtype dtype;
    struct layout shape; /* packed */
    enum contents contents;
    int64_t low, high;
};

enum { ARGUMENT_TEXT_SIZE = SHAPE_TEXT_SIZE };

struct problem {
    const struct form *form;
    struct problem_tensor tensors[PARAMETERS_MAX];
    /* The words of the other arguments, as tools/writer.h has it; "" for a tensor. */
    char text[PARAMETERS_MAX][ARGUMENT_TEXT_SIZE];
    int out; /* the parameter that is written, or -1 */
    /* The operations that its plan may name, whose kernels may run its steps; or NULL. */
    const struct operation_table *table;
    struct kernel_uses *uses;  /* where they are counted (tools/problem_check.h), or NULL */
    uint32_t turn;             /* then, which of the kernel's alternatives runs */
    struct variants *variants; /* that count its call on a device; or NULL */
};

/* Which dtypes the tensors have: of values, of the one tensor that may have another (see the op
 * table's dtypes, "a also int8"), and of indices. */
struct problem_dtypes {
    enum dtype value, also, index;
};

/* The parameter that may have a dtype of its own, or -1. */
int problem_also(const struct form *form);

/* Whether a form has a parameter that holds indices. */
bool problem_has_index(const struct form *form);

/* Whether the planner should accept these dtypes. */
bool problem_accepts(const struct form *form, const struct problem_dtypes *dtypes);

/* Whether there are problems of a form; whether the number of moduli matters most to it; whether
 * its output has an input's shape only by chance. */
bool problem_is_made(const struct form *form);
bool problem_has_many_moduli(const struct form *form);
bool problem_reshapes(const struct form *form);

/*
 * A problem with n and k as its sizes: vectors of n elements for k moduli, or a matrix [n,k] where
 * the operation knows nothing of either. k ANY_SHAPE: random shapes, of any rank where the
 * operation takes any, of about n elements at most. variant: any number; consecutive ones give
 * flags, axes and shapes of operands in all combinations.
 */
enum { ANY_SHAPE = 0 };
void problem_make(struct problem *problem, const struct form *form,
                  const struct problem_dtypes *dtypes, int64_t n, int64_t k, uint64_t variant,
                  struct random *random);

/* Whether any values will do, so that other tensors may share them. */
bool problem_is_free(const struct problem_tensor *tensor);

/* Fills an array with what a tensor may hold. */
void problem_fill(const struct problem_tensor *tensor, struct random *random, void *array);

/* A line "ntt(a int8 [1, 4, 1, 2], ...)" for messages. */
void problem_put(struct writer *text, const struct problem *problem);

#endif
