/* Problems: calls of one form of the op table, with random arguments that the form accepts.
 * placement.h decides the layout of the tensors in memory. */
#ifndef HEALCL_TOOLS_PROBLEM_H
#define HEALCL_TOOLS_PROBLEM_H

#include "plan/ops.h"
#include "tools/random.h"
#include "tools/writer.h"

/* The kinds of a tensor's contents, in increasing priority: if several steps of a body use a
 * tensor, the last kind in this list applies. */
enum contents {
    CONTENTS_VALUES,
    CONTENTS_AROUND, /* in [low, high], but any other values are allowed too */
    /* In [0, high], with high + 1 a power of two. In most tensors a few elements have any value. */
    CONTENTS_TAME,
    CONTENTS_MODULI,
    CONTENTS_COPRIME,
    CONTENTS_BETWEEN, /* in [low, high] */
    CONTENTS_PERMUTATION,
};

struct problem_tensor {
    bool present; /* false: the argument is not a tensor, or is NONE */
    enum dtype dtype;
    struct layout shape; /* packed */
    enum contents contents;
    int64_t low, high;
};

enum { ARGUMENT_TEXT_SIZE = SHAPE_TEXT_SIZE };

struct problem {
    const struct form *form;
    struct problem_tensor tensors[PARAMETERS_MAX];
    /* The other arguments as words of tools/writer.h; "" for a tensor. */
    char text[PARAMETERS_MAX][ARGUMENT_TEXT_SIZE];
    int out; /* number of the parameter that is written, or -1 */
    /* Operations that its plan may use, whose kernels may run its steps; or NULL. */
    const struct operation_table *table;
    struct kernel_uses *uses;  /* counts of kernel use (tools/problem_check.h), or NULL */
    uint32_t turn;             /* with uses: selects one of the kernel's alternatives */
    struct variants *variants; /* counts of variants in its call on a device; or NULL */
};

/* The dtypes of the tensors: of values, of the one tensor that may differ (see the op table's
 * dtypes, "a also int8"), and of indices. */
struct problem_dtypes {
    enum dtype value, also, index;
};

/* Number of the parameter that may have a different dtype, or -1. */
int problem_also(const struct form *form);

/* Whether a parameter of the form holds indices. */
bool problem_has_index(const struct form *form);

/* Whether the planner must accept these dtypes. */
bool problem_accepts(const struct form *form, const struct problem_dtypes *dtypes);

/* Whether problems of a form exist; whether the form depends most on the number of moduli; whether
 * its output has an input's shape only by chance. */
bool problem_is_made(const struct form *form);
bool problem_has_many_moduli(const struct form *form);
bool problem_reshapes(const struct form *form);

/* Makes a problem of sizes n and k: vectors of n elements for k moduli, or a matrix [n,k] for other
 * operations. k ANY_SHAPE: random shapes of at most about n elements, and of any rank that the
 * operation takes. variant: any number; consecutive ones give all combinations of flags, axes and
 * operand shapes. */
enum { ANY_SHAPE = 0 };
void problem_make(struct problem *problem, const struct form *form,
                  const struct problem_dtypes *dtypes, int64_t n, int64_t k, uint64_t variant,
                  struct random *random);

/* Whether the tensor may have any values, so that other tensors may share them. */
bool problem_is_free(const struct problem_tensor *tensor);

/* Fills an array with values that the tensor may hold. */
void problem_fill(const struct problem_tensor *tensor, struct random *random, void *array);

/* Writes "ntt(a int8 [1, 4, 1, 2], ...)" for messages. */
void problem_put(struct writer *text, const struct problem *problem);

#endif
