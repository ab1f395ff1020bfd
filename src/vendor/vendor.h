/*
 * Vendors' own operations, and their kernels for built-in operations, as manifests describe them.
 * docs/VENDORS.md documents the format.
 *
 * A call of such an operation is planned as at most two alternatives. One is the kernel's step,
 * with copies of tensors that it needs contiguous. The other is the steps of its body. An executor
 * runs one alternative and skips the other: enum step_side.
 */
#ifndef HEALCL_VENDOR_VENDOR_H
#define HEALCL_VENDOR_VENDOR_H

#include "healcl_vendor.h"
#include "plan/infer.h"
#include "vendor/expression.h"

/* Limits for each kernel. Its alternatives are all combinations of its tunables' values. */
enum { VENDOR_TUNABLES_MAX = 4, VENDOR_TUNABLE_VALUES_MAX = 8, VENDOR_ALTERNATIVES_MAX = 32 };

/* Numbers of names in expressions: inputs of the step, its output, integers, tunables. */
enum {
    VENDOR_OUT = STEP_INPUTS,
    VENDOR_INTEGERS,                                              /* the first integer */
    VENDOR_TUNABLES = EXPRESSION_NAMES_MAX - VENDOR_TUNABLES_MAX, /* of the current kernel */
    VENDOR_INTEGERS_MAX = VENDOR_TUNABLES - VENDOR_INTEGERS,
    VENDOR_ARGUMENTS_MAX = 32, /* of a kernel: tensor pointers, offsets and strides, integers */
    VENDOR_DEFINES_MAX = 16,
    VENDOR_KERNELS_MAX = 8, /* of an operation */
    VENDOR_OPTIONS_SIZE = 400
};

/* One way to run a call on a device. */
struct vendor_kernel {
    const char *manifest;                  /* the manifest's file name, without its folder */
    const char *program;                   /* the source's file name and a hash of its contents */
    const char *source, *kernel, *options; /* source is NULL for native code */
    healcl_vendor_function *native;        /* function of a shared library, or NULL */
    const char *device; /* part of the name of a device or its platform; NULL: any */
    const char *type;   /* a word of device_type_name; NULL: any */
    const struct expression_names *expression_names; /* all names but those of tunables */
    const bool *strides_of;  /* by number: whether the tensor's strides are passed; NULL: all are */
    struct expression *when; /* nonzero if the kernel can run the call; NULL: always */
    struct expression *global; /* work-items, in work-groups of `local`; NULL for native code */
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
    const char **names;         /* by alternative: "key_switch[STAGES=2]" */
};

/* Encodes a kernel and its alternative as kernel * VENDOR_ALTERNATIVES_MAX + alternative, as struct
 * kernel_choices stores them. It is the preferred choice for an operation, or for the replacements
 * of a kind of step. */
static inline uint32_t vendor_choice(uint32_t kernel, uint32_t alternative)
{
    return kernel * VENDOR_ALTERNATIVES_MAX + alternative;
}

/* The launch of a kernel for a step, except for what depends on the device. */
struct vendor_launch {
    bool possible; /* whether the kernel's `when` holds */
    uint64_t groups, local;
    char options[VENDOR_OPTIONS_SIZE];
    uint32_t argument_count;
    struct {
        int tensor; /* number of the tensor, or NO_INPUT: `value` is the argument */
        int64_t value;
        /* The name of the tensor, also for its offset and strides; or the text of the
         * expression. */
        const char *name;
    } arguments[VENDOR_ARGUMENTS_MAX];
};

struct body_argument {
    enum argument_kind kind; /* DEVICE_TENSOR, INT, NONE, SHAPE or TENSOR_TYPE */
    uint32_t tensor;         /* its number; from EXPRESSION_NAMES_MAX on, made in the body */
    enum dtype dtype;
    uint32_t count; /* of values */
    struct expression *values[MAX_RANK];
};

struct body_entry {
    const char *name;
    uint32_t argument_count;
    struct body_argument arguments[PARAMETERS_MAX];
    int out; /* the tensor it names, as body_argument.tensor; NO_INPUT: none */
};

enum { BODY_ENTRIES_MAX = 16 };

struct vendor_operation {
    const char *name;
    struct form form;
    struct expression_names names;
    struct vendor_parameter {
        int number;      /* number of its name; NO_INPUT if it is not read */
        uint32_t dtypes; /* allowed for a tensor: bit d for dtype d */
        /* The tensor's elements are in [low, high], and with `residues` in [0, q) for each modulus
         * q. Kernels may rely on this. */
        int64_t low, high;
        bool residues;
    } parameters[PARAMETERS_MAX];
    bool strides_of[VENDOR_OUT + 1]; /* by number: whether the kernels take the tensor's strides */
    int parameter_of[EXPRESSION_NAMES_MAX]; /* or NO_INPUT */
    bool makes_out;                         /* out is a new tensor; else a parameter */
    bool reads_out;
    enum dtype out_dtype;
    uint32_t out_rank;
    struct expression *out_shape[MAX_RANK];
    struct expression **rules;
    uint32_t rule_count;
    struct vendor_kernel *kernels[VENDOR_KERNELS_MAX];
    uint32_t kernel_count;
    bool has_alternatives; /* whether any kernel has several */
    /* A hash of the kernels and their sources, by which choices are cached. */
    uint64_t identity;
    struct body_entry *body;
    uint32_t body_count; /* 0: it has no body */
};

/* The call that a step of the kind STEP_VENDOR belongs to. */
struct vendor_call {
    const struct vendor_operation *operation;
    struct vendor_launch *launches; /* by kernel, of its first alternative */
    /* The launch of another alternative, made when a device first needs it, because there may be
     * many. NULL if no kernel has several alternatives. */
    struct vendor_tuned {
        struct expression_values values; /* of the step */
        uint32_t choice;                 /* choice whose launch it is; 0: none yet */
        struct vendor_launch launch;
    } * tuned;
    /* The vendor_choice that ran last, plus 1. NULL for a call that is not cached. */
    uint32_t *ran;
    /* The checks that the body's steps make of the call's own inputs. If the call is not cached,
     * they refer to its storages. */
    struct vendor_check {
        struct step step;
        int input; /* number of the step's input */
        int of;    /* number of the call's input */
        struct vendor_check *next;
    } * checks;
};

/* A manifest's kernel for a built-in kind of step. */
struct vendor_replacement {
    struct expression_names names;
    struct vendor_kernel *kernel;
    struct vendor_replacement *next; /* for the same kind */
};

/* The contents of all manifests that were read. */
struct vendor_operations {
    struct healcl_operations base; /* must be first: the handle is cast back */
    struct arena *arena;
    struct vendor_replacement *replacements[STEP_KINDS];
    uint64_t replacement_identities[STEP_KINDS]; /* as in struct vendor_operation */
    struct vendor_library {
        void *handle;
        struct vendor_library *next;
    } * libraries;
};

/* Makes a handle without operations; healcl_operations_free releases it. */
enum healcl_status vendor_operations_create(struct vendor_operations **handle,
                                            struct healcl_error *error);

/* The infer function of all operations of manifests. Its context is a struct vendor_operation. */
infer_function infer_vendor;

/* Sets the values of a kernel's tunables for one of its alternatives. */
void vendor_set_alternative(const struct vendor_kernel *kernel, uint32_t alternative,
                            struct expression_values *values);

/* Returns the launch of call->tuned for an alternative of one of the operation's kernels. Its
 * `possible` is false if an expression has no value. */
const struct vendor_launch *vendor_launch_tuned(const struct vendor_call *call, uint32_t kernel,
                                                uint32_t alternative);

/* Computes a kernel's launch. */
enum healcl_status vendor_launch_make(const struct vendor_kernel *kernel,
                                      const struct expression_values *values,
                                      struct vendor_launch *launch, struct healcl_error *error);

/* Returns the manifests of an operation table; NULL if it has only built-in operations. */
const struct vendor_operations *vendor_of_table(const struct operation_table *table);

/* Reads a manifest's text and adds its contents to the handle. folder: the manifest's folder. file:
 * its name in messages. is_trusted: its files may be links out of the folder, and any compiler
 * option is allowed. Errors: HEALCL_REFUSED with file, line and field; HEALCL_USAGE for a file that
 * cannot be read; HEALCL_NO_MEMORY. */
enum healcl_status manifest_read(struct vendor_operations *handle, const char *folder,
                                 const char *file, const char *text, size_t length, bool is_trusted,
                                 struct healcl_error *error);

#endif
