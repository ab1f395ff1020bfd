/*
 * The executor that runs a plan on an OpenCL device; what its files share.
 *
 * A segment is enqueued as one batch: nothing in it waits for the device. At its end, or earlier
 * when many results are pending, the executor drains the queue: it reads the status buffer, where
 * kernels have noted errors that only data reveal, and hands out the results.
 */
#ifndef HEALCL_RUN_DEVICE_EXECUTOR_H
#define HEALCL_RUN_DEVICE_EXECUTOR_H

#include "cl/base.h"
#include "device/device.h"
#include "run/run.h"

/* Device memory of one storage of the plan. */
struct device_storage {
    struct buffer buffer;    /* chunk_count 0 before the first use */
    uint64_t generation;     /* grows with every step that writes */
    struct derived *derived; /* what was worked out from it since the last write */
};

/* A check that a launch makes; its number in executor->checks plus one is the launch's key. */
struct check {
    const struct step *step;
    int input;
    enum check_kind { CHECK_MODULUS, CHECK_INDEX, CHECK_PERMUTATION, CHECK_COPRIME } kind;
    struct layout elements; /* that were looked at, in C order */
    uint32_t axis;          /* CHECK_INDEX: which axis the indices are for */
    int64_t size;           /* of that axis, or of the permutation; CHECK_COPRIME: k */
};

/* A result that waits in a buffer of its own until the queue is drained. */
struct download {
    const struct step *step;
    struct buffer buffer; /* without chunks where nobody wants the data */
};

/* What was derived from tensors, by its key: see derived_kept.c. */
struct kept {
    struct derived **buckets;
    size_t bucket_count, count;
    uint64_t bytes; /* of host and device */
};

struct device_executor {
    struct executor base;
    struct healcl_device *device;
    const struct plan *plan;
    struct device_storage *storages;           /* by id */
    struct kept kept;                          /* what was worked out from all of them */
    struct buffer scalar_moduli, scalar_lanes; /* without chunks before the first use */
    struct buffer status;
    struct check *checks; /* since the last drain */
    size_t check_count, check_capacity;
    bool data_refused; /* one of them has */
    struct download *downloads;
    size_t download_count, download_capacity;
    uint64_t download_bytes;
    struct segment_result *result; /* of the segment in hand */
    const struct result_sink *sink;
    uint64_t sink_nanoseconds;
};

/* ---------------------------------------------------------------- device_executor.c */

/* The memory of a tensor's storage, allocated at first use. */
MUST_CHECK enum healcl_status executor_buffer(struct device_executor *self,
                                              const struct storage *storage,
                                              const struct buffer **buffer,
                                              struct healcl_error *error);

/* Makes a buffer, which the caller releases, with a copy of memory. bytes: at most a chunk. */
MUST_CHECK enum healcl_status executor_upload(struct device_executor *self, const void *memory,
                                              uint64_t bytes, struct buffer *buffer,
                                              struct healcl_error *error);

/* Registers a check; *key is what its launch reports under. */
MUST_CHECK enum healcl_status executor_add_check(struct device_executor *self,
                                                 const struct check *check, uint32_t *key,
                                                 struct healcl_error *error);

/* ---------------------------------------------------------------- job.c */

/* One kernel launch in the making. Values are kept inside, so that arguments may be temporaries.
 * A job is not copied: its launch points into it. */
struct job {
    struct device_executor *executor;
    struct launch launch;
    struct space space;
    uint64_t granule; /* work-items begin at multiples of so many elements; 0: anywhere */
    uint64_t rounds;  /* of loops, for each element (of each work-item for job_launch_groups), that
                         may be more than a few; 0 where they are not */
    int64_t values[LAUNCH_ARGUMENTS_MAX];
};

/* tag: what the launch's time counts for. */
void job_init(struct job *job, struct device_executor *executor, const struct step *step,
              const char *program, const char *kernel);

/* The same for a kernel of cl/rows.cl made for words of that many bits. */
void job_init_rows(struct job *job, struct device_executor *executor, const struct step *step,
                   const char *kernel, int word_bits);

/* Adds "-D name=value". */
void job_define(struct job *job, const char *name, const char *value);
void job_define_number(struct job *job, const char *name, uint32_t value);
void job_define_type(struct job *job, const char *name, enum dtype dtype);

/* The job's elements are those of a shape; operands are views of that shape. */
void job_set_space(struct job *job, const struct layout *shape);
void job_set_operand(struct job *job, uint32_t operand, const struct layout *layout);

/* Joins axes that lie back to back in all operands, and drops those of size 1. For kernels that
 * do not look at single axes. */
void job_simplify_space(struct job *job);

/* Kernel arguments, in order. A kernel only reads what is not said to be written: others may do so
 * at the same time. */
void job_add_space(struct job *job);
MUST_CHECK enum healcl_status job_add_input(struct job *job, const struct tensor *tensor,
                                            struct healcl_error *error);
MUST_CHECK enum healcl_status job_add_output(struct job *job, const struct tensor *tensor,
                                             struct healcl_error *error);
void job_add_buffer(struct job *job, const struct buffer *buffer);
void job_add_written_buffer(struct job *job, const struct buffer *buffer);
void job_add_table(struct job *job, const struct buffer *table);
void job_add_written_table(struct job *job, const struct buffer *table);
void job_add_long(struct job *job, int64_t value);
void job_add_uint(struct job *job, uint32_t value);

/* Whether any buffer among the arguments is made of several chunks. */
bool job_has_chunks(const struct job *job);

/* Rounds of loops that a work-item can be charged with for one element, at most. */
int64_t job_rounds_max(const struct device_executor *self);

/* Launches over the elements [first, end) of the space. HEALCL_REFUSED: the device cannot go round
 * loops as often as that takes; also of job_launch_groups. */
MUST_CHECK enum healcl_status job_launch(struct job *job, struct healcl_error *error);

/* The same in work-groups of one, for work-items with large private arrays: PoCL keeps those of a
 * whole group on a thread's stack. */
MUST_CHECK enum healcl_status job_launch_alone(struct job *job, struct healcl_error *error);

/* Launches that many work-groups of local_size work-items. */
MUST_CHECK enum healcl_status job_launch_groups(struct job *job, uint64_t groups, size_t local_size,
                                                struct healcl_error *error);

/* ---------------------------------------------------------------- derived.c */

/* Tables and checks of inputs, kept with the input's storage until it is written. */

/* struct modulus for each element of input i as broadcast: *operand is where the table has them.
 * Moduli of too many elements for a table are only checked, and *table becomes NULL. */
MUST_CHECK enum healcl_status derive_moduli(struct device_executor *self, const struct step *step,
                                            int i, const struct buffer **table,
                                            struct layout *operand, struct healcl_error *error);

/* Moduli that vary along the last axis only, with a period of k: as a vector of them, and as
 * vectors of eight lanes for cl/vectors.cl. */
struct periodic_moduli {
    const struct buffer *table, *lanes; /* table is NULL for a scalar */
    int64_t k;                          /* struct modulus in table */
    int64_t period;                     /* vectors in lanes: lcm(k, 8) / 8 */
    int64_t first;                      /* of them; not 0 for scalars only */
};

/* Sets *periodic to whether input i, a view of the output's shape, is of that kind; then fills
 * moduli. */
MUST_CHECK enum healcl_status derive_periodic_moduli(struct device_executor *self,
                                                     const struct step *step, int i,
                                                     struct periodic_moduli *moduli, bool *periodic,
                                                     struct healcl_error *error);

/* struct modulus for each element of input i, a vector or what broadcasts one along all axes but
 * the last, in order. */
MUST_CHECK enum healcl_status derive_modulus_vector(struct device_executor *self,
                                                    const struct step *step, int i,
                                                    const struct buffer **table,
                                                    struct healcl_error *error);

/* struct twiddle [k,n] for input i, [k,n] or [k], modulo input q_input [k]. */
MUST_CHECK enum healcl_status derive_twiddles(struct device_executor *self, const struct step *step,
                                              int i, int q_input, const struct buffer **table,
                                              struct healcl_error *error);

/* The same twiddles in the order in which cl/rows.cl, made for words of that many bits, wants them;
 * n >= 256. */
MUST_CHECK enum healcl_status derive_lane_twiddles(struct device_executor *self,
                                                   const struct step *step, int i, int q_input,
                                                   int word_bits, const struct buffer **table,
                                                   struct healcl_error *error);

/* uint [n + 1] for input i, which must be a permutation; the last tells of what kind it
 * is, see permutation in cl/derive.cl. */
MUST_CHECK enum healcl_status derive_permutation(struct device_executor *self,
                                                 const struct step *step, int i,
                                                 const struct buffer **table,
                                                 struct healcl_error *error);

/* uint [n] for input i, which must be a permutation: its inverse. */
MUST_CHECK enum healcl_status derive_inverse_permutation(struct device_executor *self,
                                                         const struct step *step, int i,
                                                         const struct buffer **table,
                                                         struct healcl_error *error);

/* struct twiddle [k,k] with the inverses of input i's moduli, for the CRT. */
MUST_CHECK enum healcl_status derive_crt_inverses(struct device_executor *self,
                                                  const struct step *step, int i,
                                                  const struct buffer **table,
                                                  struct healcl_error *error);

/* Checks that all elements of input i are indices of an axis, from -size where negative ones count
 * from the end, else from 0. */
MUST_CHECK enum healcl_status derive_index_check(struct device_executor *self,
                                                 const struct step *step, int i, uint32_t axis,
                                                 int64_t size, bool wraps,
                                                 struct healcl_error *error);

/* Frees what was derived from a storage. */
void derived_forget(struct device_executor *self, struct device_storage *storage);

/* Frees the tables of the plan's scalars. */
void derived_forget_scalars(struct device_executor *self);

/* Between steps: frees everything that was derived if that takes more than 64 MiB and four times
 * the plan's memory. One step adds at most the tables of its own operands. */
void derived_limit(struct device_executor *self);

/* ---------------------------------------------------------------- launch_step.c */

/* Enqueues the kernels of a step other than UPLOAD, DOWNLOAD and RELEASE. */
MUST_CHECK enum healcl_status launch_step(struct device_executor *self, const struct step *step,
                                          struct healcl_error *error);

/* launch_memory.c: enqueues a copy of a tensor's elements, in C order, into a buffer. */
MUST_CHECK enum healcl_status launch_pack(struct device_executor *self, const struct step *step,
                                          const struct tensor *tensor, const struct buffer *out,
                                          struct healcl_error *error);

#endif
