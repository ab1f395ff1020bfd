/*
 * What is chosen for a step: its variant's launches, the tables that they read, and scratch memory.
 *
 * A template serves all steps of one kind with the same dtypes, layouts, aliasing and facts. It
 * names memory by slots, so that steps with other storages can use it, or with other offsets.
 * Choosing makes no OpenCL call. Running a template attaches its kernels, sets their arguments, and
 * enqueues them.
 */
#ifndef HEALCL_KERNELS_TEMPLATE_H
#define HEALCL_KERNELS_TEMPLATE_H

#include "kernels/launcher.h"

enum {
    TABLES_MAX = 10, /* of a step */
    SCRATCH_MAX = 2,
    TABLE_INPUTS = 3 /* storages that a table is derived from */
};

/* An argument of a launch: memory, a value that is computed for each step, or a fixed value. Memory
 * is an operand of the step, numbered as in struct step, or what follows. */
enum slot {
    SLOT_STATUS = STEP_OPERANDS,
    SLOT_TABLE,
    SLOT_SCRATCH = SLOT_TABLE + TABLES_MAX,
    SLOT_SPACE = SLOT_SCRATCH + SCRATCH_MAX, /* the launch's space, in memory */
    SLOT_MEMORY_END,
    SLOT_A = SLOT_MEMORY_END, /* input 0, a scalar of the plan */
    SLOT_B,
    SLOT_FACTOR,   /* the scalar among inputs 0 and 1, modulo Q */
    SLOT_QUOTIENT, /* its Shoup quotient */
    SLOT_Q,        /* input 2, a scalar */
    SLOT_Q_NUMBER, /* its index among the plan's scalars, a uint */
    SLOT_VALUE,
    SLOT_NONE
};

/* Whether input i of a step is a scalar of the plan, or absent, which counts as 0. */
static inline bool is_scalar(const struct step *step, int i)
{
    return !step->in[i] || step->in[i]->storage->scalars;
}

static inline int64_t scalar_value(const struct step *step, int i)
{
    return step->in[i] ? step->in[i]->storage->scalars[step->in[i]->layout.offset] : 0;
}

enum derived_kind {
    DERIVED_MODULI,
    DERIVED_SCALARS,
    DERIVED_LANE_MODULI,
    DERIVED_SCALAR_LANES,
    DERIVED_TWIDDLES,
    DERIVED_SCALED_TWIDDLES,
    DERIVED_LANE_TWIDDLES,
    DERIVED_PASS_TWIDDLES,
    DERIVED_PERMUTATION,
    DERIVED_INVERSE_PERMUTATION,
    DERIVED_CRT_INVERSES,
    DERIVED_INDEX_CHECK,
    DERIVED_WEIGHTS,
};

/* A table depends on this key, and on the contents of its storages. */
struct derived_key {
    enum derived_kind kind;
    struct layout layout;
    union {
        int64_t index_min; /* DERIVED_INDEX_CHECK: indices are in [index_min, index_end) */
        int64_t beside;    /* DERIVED_PASS_TWIDDLES: see derive_pass_twiddles */
    };
    union {
        int64_t index_end; /* DERIVED_INDEX_CHECK */
        int64_t word_bits; /* DERIVED_PASS_TWIDDLES and DERIVED_LANE_TWIDDLES */
        int64_t terms;     /* DERIVED_WEIGHTS: of all digits */
    };
    uint32_t storages[TABLE_INPUTS]; /* by id; 0 in a template */
    struct layout others;            /* of a second tensor, such as the moduli of twiddles */
};

/* A table of a step. */
struct table {
    struct derived_key key;   /* without storages */
    int inputs[TABLE_INPUTS]; /* that it is derived from. NO_INPUT: none. The first one owns it; if
                                 that is NO_INPUT, the plan's scalars do */
    struct layout layout;     /* of the elements that it is derived from; perhaps not key.layout */
    int computed_from;        /* slot of the table that the device computes it from; or SLOT_NONE */
    int64_t count;            /* elements; 0: it is only a check */
    size_t element_bytes;
    bool longer_serves;    /* a table of more moduli serves as well */
    bool only_for_filling; /* the device writes it while it fills another table; no launch of the
                              step reads it */
};

/* A launch of a template. */
struct template_launch {
    struct template_launch *next;
    struct launch launch;  /* its buffers are set at each launch, and its tag */
    struct kernel *kernel; /* NULL before it is attached */
    struct space *space;   /* among its values, or NULL */
    struct buffer space_memory;
    /* Operand k of the space begins at bases[k] + offset / units[k]. The offset is that of the
     * step's operand followed[k]. SLOT_NONE: operand k begins at the same offset for all steps. */
    int followed[SPACE_OPERANDS];
    int64_t units[SPACE_OPERANDS], bases[SPACE_OPERANDS];
    uint8_t *slots;  /* of the arguments */
    int64_t *values; /* of the arguments with at most 8 bytes */
};

struct template
{
    struct template *next; /* of its bucket */
    const uint64_t *key;
    uint64_t hash;
    size_t key_words; /* 0: it serves one step only */
    bool is_done;     /* the step needs nothing else: native code ran */
    uint64_t bytes;   /* of host memory */
    struct template_launch *launches, **last;
    size_t launch_count;
    struct table *tables;
    size_t table_count;
    uint64_t scratch_bytes[SCRATCH_MAX];
    uint32_t scratch_count;
};

/* ---------------------------------------------------------------- choosing */

/* Makes an empty template for a step. Until template_end, jobs add launches to it, and tables to
 * this array. */
void template_begin(struct launcher *self, const struct step *step, struct template *template,
                    struct table tables[TABLES_MAX]);
void template_end(struct launcher *self);

/* Frees the launches of a template. */
void template_release(struct launcher *self, struct template *template);

/* Adds a table to the template that is being made. Equal tables share a slot, which it returns. */
int template_add_table(struct launcher *self, const struct table *table);

/* Adds scratch memory, which launches of the template share. Returns its slot. */
int template_add_scratch(struct launcher *self, uint64_t bytes);

/* The bytes of the memory of a slot. */
uint64_t template_slot_bytes(const struct launcher *self, int slot);

/* The slot of an operand of the step. */
int template_slot_of(const struct launcher *self, const struct tensor *operand);

/* Adds the launch of a job, with copies of its arguments and its space. */
struct job;
enum healcl_status template_add_launch(struct launcher *self, const struct job *job,
                                       struct healcl_error *error);

/* ---------------------------------------------------------------- running */

/* A run of a template for a step. */
struct template_run {
    const struct step *step;
    const struct template *template;
    struct derived *tables[TABLES_MAX]; /* filled */
    struct buffer scratch[SCRATCH_MAX];
};

/* Enqueues the launches of a template, once all of them can be. own: their kernel objects, or NULL.
 * Does not wait. A launcher that lists launches, or compiles ahead, does that instead. */
enum healcl_status template_run(struct launcher *self, const struct template_run *run,
                                const struct kernel_object *own, struct healcl_error *error);

#endif
