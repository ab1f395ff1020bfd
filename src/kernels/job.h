/* Kernel launches in preparation. */
#ifndef HEALCL_KERNELS_JOB_H
#define HEALCL_KERNELS_JOB_H

#include "kernels/template.h"

/* The operands of most spaces. A kernel with fewer operands lacks the last ones. */
enum { OPERAND_OUT, OPERAND_A, OPERAND_B, OPERAND_Q };

/* One kernel launch in preparation, of the template that is being made. The job copies values of
 * arguments, so these may be temporaries. A job must not be copied: its launch points into it. */
struct job {
    struct launcher *launcher;
    struct launch launch; /* its options and arguments are those below */
    struct space space;
    uint64_t granule; /* work-items begin at multiples of this number of elements; 0: anywhere */
    uint64_t rounds;  /* loop iterations for each element, or for each work-item with
                         job_launch_groups; 0 if they are few */
    uint32_t width;   /* elements that the kernel can take as a vector: WIDE in cl/base/wide.cl */
    uint32_t vector_operands; /* bit k: the kernel can access operand k as vectors */
    bool single; /* one work-item takes all elements if it can: SINGLE in cl/base/base.h */
    int followed[SPACE_OPERANDS];  /* the slot of the step's operand whose offset operand k of the
                                      space has; or SLOT_NONE */
    int64_t units[SPACE_OPERANDS]; /* elements of the step's operand in one of the space's */
    size_t options_length;
    char options[LAUNCH_OPTIONS_SIZE];
    struct launch_argument arguments[LAUNCH_ARGUMENTS_MAX];
    uint8_t slots[LAUNCH_ARGUMENTS_MAX];
    int64_t values[LAUNCH_ARGUMENTS_MAX];
};

/* The launch is for a step of this kind. */
void job_init(struct job *job, struct launcher *launcher, const struct step *step,
              const char *program, const char *kernel);

/* Adds "-D name=value". */
void job_define(struct job *job, const char *name, const char *value);
void job_define_number(struct job *job, const char *name, uint32_t value);
void job_define_type(struct job *job, const char *name, enum dtype dtype);

/* Adds what the device's tuning says about vectors: "-D MULTIPLY=1". */
void job_define_vectors(struct job *job);

/* Lets the kernel of cl/core process up to `width` elements at once, a power of two. They must be
 * contiguous in the output, contiguous or equal in the first `inputs` inputs, and equal in all
 * other operands. */
void job_allow_vectors(struct job *job, const struct step *step, uint32_t width, int inputs);

/* Kernel arguments, in order. A kernel only reads memory unless it is added as output or written:
 * other kernels may read it at the same time. */
void job_add_space(struct job *job);
void job_put_space_in_memory(struct job *job); /* the space is the first argument */
void job_add_input(struct job *job, const struct tensor *tensor);
void job_add_buffer(struct job *job, int slot);
void job_add_written(struct job *job, int slot);
void job_add_long(struct job *job, int64_t value);
void job_add_longs(struct job *job, size_t count, const int64_t *values);
#define JOB_ADD_LONGS(job, ...)                                              \
    job_add_longs((job), sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
                  (int64_t[]){__VA_ARGS__})
/* Adds the members of a struct of int64_t, which has them in the order of the kernel's parameters:
 * JOB_ADD_MEMBERS(&job, struct size, .k = 2, .n = 4096). */
#define JOB_ADD_MEMBERS(job, type, ...)                  \
    job_add_longs((job), sizeof(type) / sizeof(int64_t), \
                  (const int64_t *)(const void *)&(type){__VA_ARGS__})
void job_add_uint(struct job *job, uint32_t value);
/* Adds memory that an operand of the space is a view of. The view begins at the offset of the
 * step's operand, if the slot is that of one. The kernel writes the output, and reads others. */
void job_add_output_operand(struct job *job, int slot);
void job_add_input_operand(struct job *job, int operand, int slot);
/* Adds input i of the step, as job_add_input_operand; a stand-in if it is a scalar. */
void job_add_tensor(struct job *job, int k, const struct step *step, int i);
/* If input i is a scalar, operand k of the space begins at its index among the plan's scalars. */
void job_move_scalar(struct job *job, int k, const struct step *step, int i);
/* Adds a value that each step gives: SLOT_A to SLOT_Q_NUMBER. */
void job_add_scalar(struct job *job, int slot);
/* Adds a structure, which must stay valid until the launch is added. */
void job_add_value(struct job *job, const void *value, size_t size);

/* Whether a job without a granule compiles its kernel for the axes of this space. */
bool axes_are_compiled(const struct space *space, const struct healcl_device *device);

/* Adds the launch as it is to the template. */
enum healcl_status job_add_to_template(const struct job *job, struct healcl_error *error);

/* Adds a launch over the elements [first, end) of the space to the template. HEALCL_REFUSED: the
 * loops need more iterations than the device can do. job_launch_groups has the same error. */
enum healcl_status job_launch(struct job *job, struct healcl_error *error);

/* As job_launch, in work-groups of local_size work-items. That is 1 for kernels with large private
 * arrays: PoCL keeps the arrays of a whole group on a thread's stack. */
enum healcl_status job_launch_of(struct job *job, size_t local_size, struct healcl_error *error);

/* Adds a launch with a work-item for each element of the space. */
enum healcl_status job_launch_items(struct job *job, size_t local_size, struct healcl_error *error);

/* Adds a launch of `groups` work-groups of local_size work-items each. */
enum healcl_status job_launch_groups(struct job *job, uint64_t groups, size_t local_size,
                                     struct healcl_error *error);

/* ---------------------------------------------------------------- spaces: the elements that a
 * launch works on, and their positions in each operand (cl/base/base.h) */

/* All elements of a shape, without operands. */
void space_init(struct space *space, const struct layout *shape);

/* Makes the operand a view of the space's shape. */
void space_set_operand(struct space *space, uint32_t operand, const struct layout *layout);

/* The elements of two views of the same shape, operands 0 and 1; simplified. */
void space_of_views(struct space *space, const struct layout *out, const struct layout *in);

/* Inserts an axis of `size` elements before `axis`. No operand moves along it. The space must have
 * room for it. */
void space_insert_axis(struct space *space, uint32_t axis, int64_t size);

/* Makes axis `from` of another space, or of this one, axis `to` of a space. */
void space_move_axis(struct space *space, uint32_t to, const struct space *other, uint32_t from);

/* Joins axes that are contiguous in all operands, and drops axes of size 1. For kernels that do not
 * use single axes. */
void space_simplify(struct space *space);

/* Divides an axis into blocks of `block` elements. The axis then counts blocks, and so do the
 * elements of the space. */
void space_divide_axis(struct space *space, uint32_t axis, int64_t block);

/* floor(2^32 / size), at most 2^32-1. size is in [1, 2^31-1]: see struct space. */
uint32_t reciprocal_of(int64_t size);

#endif
