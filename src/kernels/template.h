/*
 * What is chosen for a step: its variant's launches, the tables that they read, and scratch memory.
 *
 * A template serves all steps of one kind with the same dtypes, layouts, aliasing and facts. It
 * names memory by slots, so that steps with other storages can use it. Choosing makes no OpenCL
 * call. Running a template brings its tables up to date, attaches its kernels, and enqueues them.
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
    int64_t first, size; /* DERIVED_INDEX_CHECK: the range; twiddles: `beside` and `word_bits` */
    uint32_t storages[TABLE_INPUTS]; /* by id; 0 in a template */
    struct layout others;            /* of a second tensor, such as the moduli of twiddles */
};

/* A table of a step. */
struct table {
    struct derived_key key;   /* without storages */
    int inputs[TABLE_INPUTS]; /* that it is derived from. NO_INPUT: none. The first one owns it; if
                                 that is NO_INPUT, the plan's scalars do */
    struct layout layout;     /* of the elements that it is derived from; perhaps not key.layout */
    int from;                 /* slot of the table that the device computes it from; SLOT_NONE */
    int64_t count;            /* elements; 0: it is only a check */
    size_t size;              /* bytes of an element */
    bool has_rows;            /* a table of more moduli serves as well */
    bool is_spare;            /* no launch needs it, but to compute another table */
};

struct bound_launch {
    const char *program, *name, *source; /* as in struct launch */
    const char *options;
    struct manifest_kernel manifest;
    const void *variant;
    size_t local_size, groups;
    struct kernel *kernel; /* NULL before it is attached */
    struct space *space;   /* among its values, or NULL */
    struct buffer space_memory;
    bool moves_q; /* operand 3 of the space begins at SLOT_Q_NUMBER */
    uint32_t argument_count;
    struct launch_argument *arguments; /* buffers are set at each launch */
    uint8_t *slots;                    /* of the arguments */
    int64_t *values;                   /* of the arguments with at most 8 bytes */
};

struct template
{
    struct template *next;
    uint64_t *key, hash;
    size_t key_words; /* 0: it serves one step only */
    bool is_done;     /* the step needs nothing else: native code ran */
    uint64_t bytes;   /* of host memory */
    const struct variant *variant;
    struct bound_launch **launches;
    size_t launch_count, launch_capacity;
    struct table *tables;
    size_t table_count;
    uint64_t scratch[SCRATCH_MAX]; /* bytes */
    uint32_t scratch_count;
};

/* ---------------------------------------------------------------- choosing */

/* Adds a table to the template that is being made. Equal tables share a slot. */
enum healcl_status template_add_table(struct launcher *self, const struct table *table, int *slot,
                                      struct healcl_error *error);

/* Adds scratch memory, which launches of the template share. Returns its slot. */
int template_add_scratch(struct launcher *self, uint64_t bytes);

/* The bytes of the memory of a slot. */
uint64_t template_slot_bytes(const struct launcher *self, int slot);

/* The slot of a tensor's storage, which is that of an operand of the step. */
int template_slot_of(const struct launcher *self, const struct tensor *tensor);

/* Adds a launch. Its arguments are copied. space: the address of its space, among them. */
enum healcl_status template_add_launch(struct launcher *self, const struct launch *launch,
                                       const uint8_t *slots, const struct space *space,
                                       bool moves_q, struct healcl_error *error);

/* ---------------------------------------------------------------- running */

/* A run of a template for a step. */
struct template_run {
    const struct step *step;
    const struct template *template;
    struct derived *tables[TABLES_MAX];
    struct buffer scratch[SCRATCH_MAX];
};

/* Computes launches that fill tables, and enqueues them. */
typedef enum healcl_status fill_function(struct launcher *self, void *context,
                                         struct healcl_error *error);
enum healcl_status template_run_fill(struct launcher *self, struct template_run *run,
                                     fill_function *choose, void *context,
                                     struct healcl_error *error);

/* Runs what is chosen for `step`. at: the step of the plan that it stands for. Does not wait. */
enum healcl_status template_launch(struct launcher *self, const struct step *at,
                                   const struct step *step, struct healcl_error *error);

/* Checks input i of a step, as derive_check. */
enum healcl_status template_check(struct launcher *self, const struct step *step, int i,
                                  struct healcl_error *error);

/* Frees all templates, and what is bound to them. */
void templates_free(struct launcher *self);

#endif
