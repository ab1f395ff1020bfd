/*
 * Kernel families as tables of variants.
 *
 * A family runs some kinds of steps (plan/steps.def names it). Its variants are ways to do so, the
 * best first; the last one, which is general, does everything. A step gets the first variant whose
 * style the device's tuning asks for and that lacks nothing. Asking has no side effects, so that
 * anybody may ask which kernel serves a step, and why not another: `healcl inspect --kernels` does.
 */
#ifndef HEALCL_KERNELS_VARIANT_H
#define HEALCL_KERNELS_VARIANT_H

#include "kernels/launcher.h"
#include "kernels/space.h"

/* Variants work these out of a step for a device, and their launches take them. */

/* Elementwise operations: where their moduli are, and what their variants find. */
struct elementwise_plan {
    struct layout moduli;   /* residues: where a table has that of each element of the output */
    int a;                  /* repeated: the input that varies; the other one is operand 2 */
    int64_t k;              /* interleaved: elements that lie together */
    uint32_t axes, groups;  /* of the space without that of the k elements, and which has groups */
    int64_t repeats, count; /* residues: elements of each modulus, and moduli before they repeat */
};

/* How a work-group of cl/sum/local.cl does inner * rows sums: each has parts work-items. */
struct sharing {
    uint32_t inner, parts, rows;
};

/* A sum along an axis. */
struct axis_sum {
    struct sharing sharing;
    int64_t terms, stride;
    int64_t segment, segments; /* terms of each, where work-groups share a column */
};

/* A sum of products; what modmul_axis_sum_interleaved goes along are the axes [reps,k,n]. */
struct products {
    struct product_sum sum;
    struct sharing sharing;
    uint32_t rows;         /* the axis along which vectors go */
    uint32_t inner;        /* the one along which a work-item goes first */
    bool swaps;            /* b streams by, and a is packed */
    int64_t k;             /* elements of a group */
    int64_t strides[3][3]; /* of out, a, b along the axes */
};

/* How a pass of cl/ntt/registers.cl over the rows of a transform is divided among work-groups. */
struct transform_pass {
    uint32_t stages;
    uint32_t log2_e;     /* elements of a work-item */
    uint32_t log2_lanes; /* columns, or blocks, of a work-group */
    uint32_t log2_rows;  /* of one l that these are of */
    uint32_t pieces;     /* in which a word is exchanged */
};

struct transform_passes {
    struct transform_pass columns, blocks; /* columns of no stages: there is one pass */
    bool together;                         /* between them the rows of one l lie side by side */
    bool needs_scratch;                    /* for them */
};

struct variant;

struct variant_plan {
    const struct step *step;
    const struct variant *variant;
    uint32_t launches;  /* once tables are derived, on a device whose loops do not end early */
    struct space space; /* that is launched over; sums of products and transforms make theirs */
    union {
        struct elementwise_plan elementwise;
        struct axis_sum sum;
        struct products products;
        struct transform_passes passes;
        size_t local_size; /* digits of the full modulus */
    };
};

struct variant {
    const char *name;        /* its kernel's, without what tells kinds of steps apart */
    enum kernel_style style; /* of its work-items: what the tuning chooses by */
    /* Why it cannot run a step on a device; NULL where it can: then the plan has what its launch
     * takes. No other effects. */
    const char *(*plan)(const struct step *step, const struct healcl_device *device,
                        struct variant_plan *plan);
    /* Enqueues a step that it can run, and waits for nothing. */
    enum healcl_status (*launch)(struct launcher *self, const struct variant_plan *plan,
                                 struct healcl_error *error);
    uint32_t tunables;   /* that shape it: bit t for enum tunable t */
    const char *program; /* its kernel's, see struct launch */
    const char *kernel;  /* NULL where it is another one for each kind of step */
    const char *source;  /* its kernel's file */
    const char *when;    /* it can run a step, for docs/KERNELS.md */
};

struct family {
    const char *name;
    enum kernel_family preference; /* of the tuning: which style it should have */
    const struct variant *variants;
    size_t count;
    /* Enqueues what its variant has planned, in the parts that this needs; NULL: in one. */
    enum healcl_status (*launch)(struct launcher *self, const struct variant_plan *plan,
                                 struct healcl_error *error);
};

/* The family of a kind of step; NULL for one that takes no kernel. */
const struct family *family_of(enum step_kind kind);

/* The family with that place among all, each once, from 0, but for vendors'; NULL behind the last
 * one. */
const struct family *family_at(size_t place);

/* Tunables of the variants that a style stands for, in the families that a preference is for: bit t
 * for enum tunable t. *any: whether there is such a variant. */
uint32_t style_tunables(enum kernel_family preference, enum kernel_style style, bool *any);

/* Why a variant does not run a step on a device, whose tuning counts; NULL where it does or would.
 */
const char *variant_obstacle(const struct family *family, const struct variant *variant,
                             const struct step *step, const struct healcl_device *device);

/* Plans a step that takes a kernel by the first variant without an obstacle. */
void plan_variant(const struct step *step, const struct healcl_device *device,
                  struct variant_plan *plan);

/* Returns that variant alone. */
const struct variant *variant_for(const struct step *step, const struct healcl_device *device);

/* Why a device must not run a step that takes kernels: the self-test of their family has failed
 * there, or HEALCL_LACKS says so; else NULL. */
const char *step_obstacle(const struct step *step, const struct healcl_device *device);

/* Whether the environment's HEALCL_LACKS names operations of a table, families or all. Errors:
 * HEALCL_USAGE. */
enum healcl_status unsupported_check(const struct healcl_device *device,
                                     const struct operation_table *table,
                                     struct healcl_error *error);

/* Notes that the kernel of a manifest that a step would take (vendor_kernel_for) cannot be built.
 */
enum healcl_status vendor_note_failed(const struct plan *plan, const struct step *step,
                                      struct healcl_device *device, struct healcl_error *error);

/* Whether a kernel of a manifest that is for a step could not. */
bool vendor_has_failed(const struct plan *plan, const struct step *step,
                       const struct healcl_device *device);

/* What has to be checked of a step's data before a kernel of a manifest runs it, for derive_check:
 * an input of this step, which refers to tensor. */
struct vendor_checked {
    struct step step;
    int input;
    struct tensor tensor;
};

/* Check i; false behind the last one. */
bool vendor_check_at(const struct plan *plan, const struct step *step, uint32_t i,
                     struct vendor_checked *checked);

/* Whether a step of a vendor's operation has a kernel of a manifest that can run it. */
bool vendor_has_kernel(const struct step *step, const struct healcl_device *device);

/* Whether the launch of a call that is cached would be the one that ran last. */
bool vendor_runs_again(const struct step *step, const struct healcl_device *device);

/* Whether a step is not executed: another side of its vendor's operation is. device: NULL for the
 * host reference. */
bool step_is_left_out(const struct step *step, const struct healcl_device *device);

struct vendor_kernel;

/* Why a kernel that is for another device runs no step. */
#define VENDOR_OF_OTHERS "it is for other devices"

/* Whether a kernel of a manifest is for a device, or its platform. */
bool vendor_is_for_device(const struct vendor_kernel *kernel, const struct device_info *info);

/* The kernel of a manifest that runs a step; without a name where a variant does. */
struct manifest_kernel vendor_kernel_for(const struct plan *plan, const struct step *step,
                                         const struct healcl_device *device);

/* Kernel i of manifests that a step may have, in their order; NULL behind the last one. why: the
 * reason why it does not run the step, with a status other than HEALCL_OK. */
const struct vendor_kernel *vendor_kernel_at(const struct plan *plan, const struct step *step,
                                             const struct healcl_device *device, uint32_t i,
                                             struct healcl_error *why);

/* Chooses an alternative of the kernel that runs such a step, as tune does: one of them by turns.
 */
void vendor_take_turn(const struct plan *plan, const struct step *step,
                      struct healcl_device *device, uint32_t turn);

/* Enqueues such a kernel, if there is one, of a built-in kind of step. Errors also: HEALCL_REFUSED
 * where an expression of a manifest has no value for it. */
enum healcl_status launch_replacement(struct launcher *self, const struct step *step,
                                      bool *launched, struct healcl_error *error);

/* Enqueues the kernels of a step that takes some; waits for nothing. */
enum healcl_status launch_step(struct launcher *self, const struct step *step,
                               struct healcl_error *error);

/* Why the device must not run the kernel that launch_pack takes for so many bytes; NULL: it may, or
 * takes none. */
const char *pack_obstacle(const struct launcher *self, const struct step *step,
                          const struct tensor *tensor, uint64_t bytes);

/* Enqueues a copy of a tensor's elements, in C order, into a buffer, for a step that hands them
 * out. */
enum healcl_status launch_pack(struct launcher *self, const struct step *step,
                               const struct tensor *tensor, const struct buffer *out,
                               struct healcl_error *error);

#endif
