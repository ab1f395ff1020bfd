/*
 * Kernel families as tables of variants.
 *
 * A family runs some kinds of steps, which plan/steps.def lists. Its variants are different ways to
 * run a step, the best first. The last one is general and runs every step. A step gets the first
 * variant of the style that the device's tuning asks for and that has no obstacle. Queries have no
 * side effects: any caller may ask which kernel serves a step, and why another one does not.
 * `healcl inspect --kernels` does.
 */
#ifndef HEALCL_KERNELS_VARIANT_H
#define HEALCL_KERNELS_VARIANT_H

#include "kernels/job.h"
#include "kernels/launcher.h"

/* Variants compute these from a step and a device. Their launches use them. */

/* What some variants of elementwise operations need. */
struct elementwise_plan {
    /* repeated: the input that varies. It becomes operand OPERAND_A, and the repeated one
     * OPERAND_B. */
    int varying_input;
    /* interleaved: adjacent elements with different moduli; the axes of the space without the one
     * of a group's elements; the axis that groups with equal moduli follow each other along */
    int64_t group_size;
    uint32_t axes_of_groups, groups_axis;
    /* residues: for each element of the output, the position of its modulus in a table; consecutive
     * elements with one modulus; moduli before they repeat */
    struct layout moduli;
    int64_t elements_of_modulus, modulus_count;
};

/* How a work-group of cl/sum/local.cl computes inner * rows sums. Each has `parts` work-items.
 * Consecutive work-items take the same part of `inner` columns, then the next part of them, then
 * the next row of `inner` columns. */
struct sharing {
    uint32_t inner, parts, rows;
};

/* A sum along an axis. If several work-groups share a column, its terms are divided into `segments`
 * segments of segment_terms terms. The last segment may have fewer terms. */
struct axis_sum {
    struct sharing sharing;
    int64_t terms, term_stride;
    int64_t segment_terms, segments;
};

/* A sum of products. */
struct products {
    struct product_sum sum; /* with a and b exchanged if packs_a */
    struct sharing sharing; /* shared */
    /* interleaved: axes of out that vectors of eight groups run along, n or reps, and the other one
     * of these; whether a work-item follows k first, rather than that one */
    uint32_t vector_axis, other_axis;
    bool k_is_inner;
    bool packs_a;       /* the kernel packs a rather than b into vectors */
    int64_t group_size; /* adjacent elements with different moduli: 1, 2 or 4 */
};

/* How work-groups share a pass of cl/ntt/registers.cl over the rows of a transform. */
struct transform_pass {
    uint32_t stages;
    uint32_t log2_elements; /* that a work-item keeps in registers */
    uint32_t log2_lanes;    /* columns, or blocks, of a work-group */
    uint32_t log2_rows;     /* rows of one l that these belong to */
    uint32_t pieces;        /* each exchange moves a word in this number of parts */
};

struct transform_passes {
    struct transform_pass columns, blocks; /* if columns has no stages, there is only one pass */
    bool interleaves;   /* the intermediate result has the rows of one l interleaved */
    bool needs_scratch; /* the passes need a buffer between them */
};

struct variant;

struct variant_plan {
    const struct step *step;
    const struct healcl_device *device;
    const struct variant *variant;
    uint32_t launches;  /* after tables are derived, on a device that does not limit loops */
    bool takes_addend;  /* of a transform that has one: its kernel adds it */
    struct space space; /* of its launch; sums of products and transforms make theirs */
    union {
        struct elementwise_plan elementwise;
        struct axis_sum sum;
        struct products products;
        struct transform_passes passes;
        struct {
            struct factors factors;
            bool is_periodic; /* moduli are, along the last axis */
        };
        size_t local_size; /* digits of the full modulus */
    };
};

/* For a variant's plan: returns why the variant cannot run a step, if the condition holds. */
#define OBSTACLE_IF(condition, reason) \
    do {                               \
        if (condition)                 \
            return (reason);           \
    } while (0)

/* Returns the obstacle that a function has found, unless that is NULL. */
#define RETURN_OBSTACLE(function_call)                 \
    do {                                               \
        const char *const obstacle_ = (function_call); \
        OBSTACLE_IF(obstacle_, obstacle_);             \
    } while (0)

struct variant {
    const char *name;        /* its kernel's name, without the part that names the kind of step */
    enum kernel_style style; /* how it uses work-items; the tuning selects by this */
    /* Returns why the variant cannot run the plan's step on its device, or NULL if it can. Then
     * *plan has what its launch needs. Has no other effects. */
    const char *(*plan)(struct variant_plan *plan);
    /* Adds the launches of a step that the variant can run to the template that is being made. */
    enum healcl_status (*choose)(struct launcher *self, const struct variant_plan *plan,
                                 struct healcl_error *error);
    uint32_t tunables;   /* that affect it: bit t for enum tunable t */
    const char *program; /* its kernel's program, see struct launch */
    const char *kernel;  /* NULL if each kind of step has a different one */
    const char *source;  /* the file of its kernel */
    const char *when;    /* the condition for it to run a step, for docs/KERNELS.md */
};

struct family {
    const char *name;
    enum kernel_family preference; /* the tuning's entry that sets its style */
    const struct variant *variants;
    size_t count;
    /* As a variant's choose, in several parts if necessary. NULL: in one part. */
    enum healcl_status (*choose)(struct launcher *self, const struct variant_plan *plan,
                                 struct healcl_error *error);
};

/* The family of a kind of step. NULL: the kind does not use kernels. */
const struct family *family_of(enum step_kind kind);

/* The family at an index, counted from 0. Each family counts once, and those of vendors do not.
 * NULL after the last one. */
const struct family *family_at(size_t index);

/* Tunables of the variants of this style in the families of this preference: bit t for enum tunable
 * t. *any: whether such a variant exists. */
uint32_t style_tunables(enum kernel_family preference, enum kernel_style style, bool *any);

/* Why a variant does not run a step on a device with its tuning. NULL: it does, or could. */
const char *variant_obstacle(const struct family *family, const struct variant *variant,
                             const struct step *step, const struct healcl_device *device);

/* Plans a step that uses kernels, by the first variant without an obstacle. */
void plan_variant(const struct step *step, const struct healcl_device *device,
                  struct variant_plan *plan);

/* As plan_variant, but returns only the variant. */
const struct variant *variant_for(const struct step *step, const struct healcl_device *device);

/* Why a device must not run a step that uses kernels, or NULL. Either the family's self-test has
 * failed there, or HEALCL_LACKS names it. */
const char *step_obstacle(const struct step *step, const struct healcl_device *device);

/* Checks that HEALCL_LACKS in the environment names only operations of a table, families, or "all".
 * Errors: HEALCL_USAGE. */
enum healcl_status unsupported_check(const struct healcl_device *device,
                                     const struct operation_table *table,
                                     struct healcl_error *error);

/* Notes that a manifest's kernel cannot be built. It is the one that the step would use
 * (vendor_kernel_for). */
enum healcl_status vendor_note_failed(const struct plan *plan, const struct step *step,
                                      struct healcl_device *device, struct healcl_error *error);

/* Whether a manifest's kernel for this step could not be built. */
bool vendor_has_failed(const struct plan *plan, const struct step *step,
                       const struct healcl_device *device);

/* A check of a step's data that a manifest's kernel requires, for derive_check. It is a check of
 * input `input` of `step`, which refers to `tensor`. */
struct vendor_checked {
    struct step step;
    int input;
    struct tensor tensor;
};

/* Returns check i in *checked. False after the last one. */
bool vendor_check_at(const struct plan *plan, const struct step *step, uint32_t i,
                     struct vendor_checked *checked);

/* Whether a manifest has a kernel that can run this step of a vendor's operation. */
bool vendor_has_kernel(const struct step *step, const struct healcl_device *device);

/* Whether the kernel chosen for a cached call is the one that ran last. */
bool vendor_runs_again(const struct step *step, const struct healcl_device *device);

/* Whether a step is not executed, because its vendor's operation runs through its other form.
 * device: NULL for the host reference. */
bool step_is_left_out(const struct step *step, const struct healcl_device *device);

struct vendor_kernel;

/* Why a kernel for another device does not run a step. */
#define VENDOR_OF_OTHERS "it is for other devices"

/* Whether a manifest's kernel is for this device or its platform. */
bool vendor_is_for_device(const struct vendor_kernel *kernel, const struct device_info *info);

/* The manifest's kernel that runs a step. It has no name if a variant runs the step. */
struct manifest_kernel vendor_kernel_for(const struct plan *plan, const struct step *step,
                                         const struct healcl_device *device);

/* Kernel i, in the order of manifests, of those that a step may use. NULL after the last one. why:
 * why the kernel does not run the step; HEALCL_OK if it does. */
const struct vendor_kernel *vendor_kernel_at(const struct plan *plan, const struct step *step,
                                             const struct healcl_device *device, uint32_t i,
                                             struct healcl_error *why);

/* Selects an alternative of the kernel that runs this step, for tune: alternatives take turns. */
void vendor_take_turn(const struct plan *plan, const struct step *step,
                      struct healcl_device *device, uint32_t turn);

/* Whether manifests have kernels for a step's kind. */
bool vendor_replaces(const struct plan *plan, const struct step *step);

/* Adds the launch of a manifest's kernel for a built-in kind of step to the template that is being
 * made, if there is one. Native code runs at once. Errors also: HEALCL_REFUSED if an expression of
 * the manifest has no value for the step. */
enum healcl_status choose_replacement(struct launcher *self, const struct step *step,
                                      bool *is_chosen, struct healcl_error *error);

/* Adds the launches of a step's variant to the template that is being made. */
enum healcl_status choose_variant(struct launcher *self, const struct step *step,
                                  struct healcl_error *error);

/* Enqueues the kernels of a step that uses kernels. It is plan_step, a step of the plan, or a
 * part or copy of that. Does not wait. */
enum healcl_status launch_step(struct launcher *self, const struct step *plan_step,
                               const struct step *step, struct healcl_error *error);

/* Enqueues a check that input i of a step holds no value that the step refuses. */
enum healcl_status launch_check(struct launcher *self, const struct step *step, int i,
                                struct healcl_error *error);

/* Why the device must not run the kernel that launch_pack needs. NULL: it may, or launch_pack needs
 * no kernel. */
const char *pack_obstacle(const struct launcher *self, const struct step *copy);

/* Enqueues a copy of a result that `step` hands to the caller. copy: a step that copies it to a
 * storage of its own, in C order. The number of that storage is behind those of the plan. */
enum healcl_status launch_pack(struct launcher *self, const struct step *step,
                               const struct step *copy, struct healcl_error *error);

#endif
