/*
 * Vendors' own operations, and their kernels for built-in ones, as manifests
 * tell of them (docs/VENDORS.md has the format).
 *
 * A call of such an operation is planned as up to two alternatives: the kernel's step, with copies
 * of what it wants contiguous, and the steps of its body. An executor runs one of them and leaves
 * out the other one: enum step_side.
 */
#ifndef HEALCL_VENDOR_VENDOR_H
#define HEALCL_VENDOR_VENDOR_H

#include "healcl_vendor.h"
#include "plan/infer.h"
#include "vendor/expression.h"

/* Limits for each kernel. Alternatives are all combinations of its tunables' values. */
enum { VENDOR_TUNABLES_MAX = 4, VENDOR_TUNABLE_VALUES_MAX = 8, VENDOR_ALTERNATIVES_MAX = 32 };

/* Numbers of names in expressions: inputs of the step, its output, integers, tunables. */
enum {
    VENDOR_OUT = STEP_INPUTS,
    VENDOR_INTEGERS,                                              /* the first one */
    VENDOR_TUNABLES = EXPRESSION_NAMES_MAX - VENDOR_TUNABLES_MAX, /* of the kernel at hand */
    VENDOR_INTEGERS_MAX = VENDOR_TUNABLES - VENDOR_INTEGERS,
    VENDOR_ARGUMENTS_MAX = 32, /* of a kernel: tensors' pointers, offsets and strides, integers */
    VENDOR_DEFINES_MAX = 16,
    VENDOR_KERNELS_MAX = 8, /* of an operation */
    VENDOR_OPTIONS_SIZE = 400
};

/* One way to run a call on a device. */
struct vendor_kernel {
    const char *manifest;                  /* the file that tells of it, without its folder */
    const char *program;                   /* its file's name and a hash of what it holds */
    const char *source, *kernel, *options; /* source is NULL for native code */
    healcl_vendor_function *native;        /* of a shared library, or NULL */
    const char *device; /* part of a device's name, or of its platform's; NULL: any */
    const char *type;   /* as device_type_name has it; NULL: any */
    const struct expression_names *expression_names; /* but for tunables */
    const bool *strides_of;    /* by number: tensors that come with their strides; NULL: all */
    struct expression *when;   /* not 0: it can run a call; NULL: any */
    struct expression *global; /* work-items, in work-groups of local; NULL for native code */
    struct expression *local;
    uint32_t argument_count;
    struct {
        int tensor; /* its number, or NO_INPUT for an integer */
        struct expression *value;
    } arguments[VENDOR_ARGUMENTS_MAX];
    uint32_t define_count;
    struct {
        const char *name;
        struct expression *value;
    } defines[VENDOR_DEFINES_MAX];
    uint32_t tunable_count;
    struct vendor_tunable {
        const char *name;
        uint32_t count;
        int64_t values[VENDOR_TUNABLE_VALUES_MAX]; /* the first one is the default */
    } tunables[VENDOR_TUNABLES_MAX];
    uint32_t alternative_count; /* 1 without tunables; number 0 has all defaults */
    const char **names;         /* of alternatives: "key_switch[STAGES=2]" */
};

/* The kernel and the alternative of an operation, or of the replacements of a kind of step, that go
 * before the others: kernel * VENDOR_ALTERNATIVES_MAX + alternative, as struct kernel_choices keeps
 * it. */
static inline uint32_t vendor_choice(uint32_t kernel, uint32_t alternative)
{
    return kernel * VENDOR_ALTERNATIVES_MAX + alternative;
}

/* A kernel's launch for a step: all but what the device knows. */
struct vendor_launch {
    bool possible; /* its `when` holds */
    uint64_t groups, local;
    char options[VENDOR_OPTIONS_SIZE];
    uint32_t argument_count;
    struct {
        int tensor; /* its memory, or NO_INPUT: the integer */
        int64_t value;
        const char *name; /* of the tensor, also for its offset and strides; or the expression */
    } arguments[VENDOR_ARGUMENTS_MAX];
};

struct body_argument {
    enum argument_kind kind; /* DEVICE_TENSOR, INT, NONE, SHAPE or TENSOR_TYPE */
    uint32_t tensor;         /* number, or EXPRESSION_NAMES_MAX and above: made in the body */
    enum dtype dtype;
    uint32_t count; /* of values */
    struct expression *values[MAX_RANK];
};

struct body_entry {
    const char *name;
    uint32_t argument_count;
    struct body_argument arguments[PARAMETERS_MAX];
    int out; /* the tensor that it names, as body_argument.tensor; NO_INPUT: none */
};

enum { BODY_ENTRIES_MAX = 16 };

struct vendor_operation {
    const char *name;
    struct form form;
    struct expression_names names;
    struct vendor_parameter {
        int number;      /* of its name; NO_INPUT for what is not looked at */
        uint32_t dtypes; /* of a tensor: bit d for dtype d */
        /* Kernels may rely on this: a tensor's elements are in [low, high], and in [0, q)
         * for each q of the moduli. */
        int64_t low, high;
        bool residues;
    } parameters[PARAMETERS_MAX];
    bool strides_of[VENDOR_OUT + 1];        /* tensors whose strides the kernels take, by number */
    int parameter_of[EXPRESSION_NAMES_MAX]; /* or NO_INPUT */
    bool makes_out;                         /* a new tensor; else out is a parameter */
    bool reads_out;
    enum dtype out_dtype;
    uint32_t out_rank;
    struct expression *out_shape[MAX_RANK];
    struct expression **rules;
    uint32_t rule_count;
    struct vendor_kernel *kernels[VENDOR_KERNELS_MAX];
    uint32_t kernel_count;
    bool has_alternatives; /* a kernel does */
    uint64_t
        identity; /* a hash of the kernels, their sources included: what a choice is cached by */
    struct body_entry *body;
    uint32_t body_count; /* 0: there is none */
};

/* The call that a step of the kind STEP_VENDOR belongs to. */
struct vendor_call {
    const struct vendor_operation *operation;
    struct vendor_launch *launches; /* by kernel, of its first alternative */
    /* The launch of another alternative: worked out when a device first asks for it, for there may
     * be many. NULL where no kernel has several. */
    struct vendor_tuned {
        struct expression_values values; /* of the step */
        uint32_t choice;                 /* whose launch it is, 0: none yet */
        struct vendor_launch launch;
    } * tuned;
    /* The vendor_choice that has run last, plus 1; NULL for a call that is not kept. */
    uint32_t *ran;
    /* What the body refuses of the call's own inputs, by its steps. Of a call that is not kept,
     * their storages are those of the call. */
    struct vendor_check {
        struct step step;
        int input; /* the step's */
        int of;    /* the call's */
        struct vendor_check *next;
    } * checks;
};

/* A call as it was planned, without copies: what another one with such arguments takes. */
struct vendor_plan {
    const struct vendor_call *call;
    struct layout out; /* of a tensor that it makes */
    uint64_t bytes;    /* that its steps had beside the tensors before, at their most */
};

/* Finds the plan of a call that differs only in its tensors' storages; NULL: there is none. */
const struct vendor_plan *cached_call_find(const struct call *call);
enum healcl_status cached_call_add(const struct call *call, const struct vendor_plan *plan,
                                   struct healcl_error *error);

/* Another kernel for a built-in kind of step. */
struct vendor_replacement {
    struct expression_names names;
    struct vendor_kernel *kernel;
    struct vendor_replacement *next; /* of the same kind */
};

/* All manifests that were read. */
struct vendor_operations {
    struct healcl_operations base; /* first: the handle is cast back */
    struct arena *arena;
    struct vendor_replacement *replacements[STEP_KINDS];
    uint64_t replacement_identities[STEP_KINDS]; /* as of struct vendor_operation */
    struct vendor_library {
        void *handle;
        struct vendor_library *next;
    } * libraries;
};

/* Makes a handle without operations; healcl_operations_free releases it. */
enum healcl_status vendor_operations_create(struct vendor_operations **handle,
                                            struct healcl_error *error);

/* The infer function of all operations of manifests; their context is a struct vendor_operation. */
infer_function infer_vendor;

/* Gives the tunables of a kernel their values in one of its alternatives. */
void vendor_set_alternative(const struct vendor_kernel *kernel, uint32_t alternative,
                            struct expression_values *values);

/* The launch of call->tuned, of an alternative of one of the operation's kernels. Not possible
 * where an expression has no value. */
const struct vendor_launch *vendor_launch_tuned(const struct vendor_call *call, uint32_t kernel,
                                                uint32_t alternative);

/* Works out a kernel's launch. */
enum healcl_status vendor_launch_make(const struct vendor_kernel *kernel,
                                      const struct expression_values *values,
                                      struct vendor_launch *launch, struct healcl_error *error);

/* The manifests whose operations a table has; NULL for one of built-in operations only. */
const struct vendor_operations *vendor_of_table(const struct operation_table *table);

/* Reads a manifest's text, which is file's for messages, and adds what it says. folder: where its
 * files are. is_trusted: they may be links out of it, and options of compilers may be any. Errors:
 * HEALCL_REFUSED with file, line and field; HEALCL_USAGE for a file that cannot be read;
 * HEALCL_NO_MEMORY. */
enum healcl_status manifest_read(struct vendor_operations *handle, const char *folder,
                                 const char *file, const char *text, size_t length, bool is_trusted,
                                 struct healcl_error *error);

#endif
