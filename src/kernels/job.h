/* Kernel launches in the making. */
#ifndef HEALCL_KERNELS_JOB_H
#define HEALCL_KERNELS_JOB_H

#include "kernels/launcher.h"
#include "kernels/space.h"

/* One kernel launch in the making. Values are kept inside, so that arguments may be temporaries.
 * A job is not copied: its launch points into it. */
struct job {
    struct launcher *launcher;
    struct launch launch;
    struct space space;
    uint64_t granule; /* work-items begin at multiples of so many elements; 0: anywhere */
    uint64_t rounds;  /* of loops, for each element (of each work-item for job_launch_groups), that
                         may be more than a few; 0 where they are not */
    uint32_t width;   /* elements that the kernel can take as a vector: WIDE in cl/base/wide.cl */
    uint32_t vectors; /* bit k: operand k then is one of vectors */
    bool single;      /* one work-item takes all elements where it can: SINGLE in cl/base/base.h */
    bool writes_output; /* the step's, or what becomes that */
    int64_t values[LAUNCH_ARGUMENTS_MAX];
};

/* The launch's tag, and so its time's, are the origins of the step. It is single where the tuning
 * asks for that in the step's family. */
void job_init(struct job *job, struct launcher *launcher, const struct step *step,
              const char *program, const char *kernel);

/* Adds "-D name=value". */
void job_define(struct job *job, const char *name, const char *value);
void job_define_number(struct job *job, const char *name, uint32_t value);
void job_define_type(struct job *job, const char *name, enum dtype dtype);

/* Adds what the device's tuning says of vectors: "-D MULTIPLY=1". */
void job_define_vectors(struct job *job);

/* The kernel, of cl/core, can take up to so many elements together, a power of two, where these
 * lie side by side in out, in the first inputs lie so too or are the same, and in other operands
 * are the same. */
void job_allow_vectors(struct job *job, const struct step *step, uint32_t width, int inputs);

/* Kernel arguments, in order. A kernel only reads what is not said to be written: others may do so
 * at the same time. */
void job_add_space(struct job *job);
enum healcl_status job_add_input(struct job *job, const struct tensor *tensor,
                                 struct healcl_error *error);
enum healcl_status job_add_output(struct job *job, const struct tensor *tensor,
                                  struct healcl_error *error);
void job_add_buffer(struct job *job, const struct buffer *buffer);
void job_add_written(struct job *job, const struct buffer *buffer);
void job_add_long(struct job *job, int64_t value);
void job_add_longs(struct job *job, size_t count, const int64_t *values);
#define JOB_ADD_LONGS(job, ...)                                              \
    job_add_longs((job), sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
                  (int64_t[]){__VA_ARGS__})
void job_add_uint(struct job *job, uint32_t value);
/* A structure, which must stay until the launch. */
void job_add_value(struct job *job, const void *value, size_t size);

/* Whether a job without a granule has its kernel compiled for the axes of such a space. */
bool axes_are_compiled(const struct space *space, const struct healcl_device *device);

/* Launches over the elements [first, end) of the space. HEALCL_REFUSED: the device cannot go round
 * loops as often as that takes; also of job_launch_groups. */
enum healcl_status job_launch(struct job *job, struct healcl_error *error);

/* As job_launch, in work-groups of local_size work-items: of one, for those with large private
 * arrays. PoCL keeps the arrays of a whole group on a thread's stack. */
enum healcl_status job_launch_of(struct job *job, size_t local_size, struct healcl_error *error);

/* Launches that many work-groups of local_size work-items. */
enum healcl_status job_launch_groups(struct job *job, uint64_t groups, size_t local_size,
                                     struct healcl_error *error);

#endif
