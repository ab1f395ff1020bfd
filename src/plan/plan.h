/*
 * Plans: a transcript turned into a program of steps, with every shape, stride, dtype, alias and
 * lifetime known and checked. No device is touched here, and both executors (device and host
 * reference) read the same plan.
 *
 * The plan settles, so that executors need not know of it:
 * - spellings, argument forms and defaults: a step has one form for each kind of work;
 * - views: reshape, slices and the like are gone, operands are views of storages;
 * - broadcasting: elementwise operands have the shape of the output (strides of 0 repeat);
 * - scalars: they are elements of the constants storage, views with strides of 0;
 * - layouts of transforms: operands are views in the order [l, r, k, n] whatever the axis was, and
 *   a tiled input is repeated over k with a stride of 0; sums likewise;
 * - aliasing: an input that overlaps the output harmfully has been copied by a step before.
 */
#ifndef HEALCL_PLAN_PLAN_H
#define HEALCL_PLAN_PLAN_H

#include "core/dtype.h"
#include "core/layout.h"
#include "core/status.h"
#include "plan/ops.h"
#include "transcript/payload.h"
#include "transcript/source.h"

/* An entry that a step or a storage comes from. */
struct origin {
    size_t entry; /* in the transcript; of a call its number */
    bool is_call;
    const char *name;              /* of the operation as written there */
    const struct form *form;       /* NULL for a FREE_DEVICE_TENSOR entry */
    uint64_t visits;               /* elements that a step of several origins visits for this one */
    const struct operation *outer; /* the one whose body the entry is; NULL: it is a transcript's */
};

/* The operation that what is done for an origin counts for; its form is not NULL. */
const struct operation *origin_operation(const struct origin *origin);

/* Where steps come from, in the order of the transcript; those of one entry share them. */
struct origins {
    size_t count;
    const struct origin *of;
    const char *operations; /* of several: their names, "modmul + axis_modsum"; else NULL */
};

/* Memory that tensors view; ids count from 0 in the order of creation. */
struct storage {
    uint32_t id;
    enum dtype dtype;
    int64_t elements;
    const struct origin *origin; /* that made it; NULL for the plan's scalars */
    uint32_t references;         /* names that view it; only while planning */
    struct known *known;         /* of its values, see values.h; only while planning */
    uint64_t writes;             /* steps that wrote it so far; only while planning */
    const int64_t *scalars;      /* the values, where it holds the plan's scalars; else NULL */
    bool is_mapped, is_lent;     /* of operations by call: by a handle; its memory to the caller */
};

struct tensor {
    struct storage *storage;
    struct layout layout;
};

/* steps.def tells what each kind does. */
enum step_kind {
#define STEP(kind, ...) STEP_##kind,
#include "plan/steps.def"
#undef STEP
};

enum {
    STEP_KINDS = 0
#define STEP(...) +1
#include "plan/steps.def"
#undef STEP
    ,
    STEP_INPUTS = 8,
    STEP_OUT = STEP_INPUTS, /* as an operand */
    STEP_OPERANDS,
    NO_INPUT = -1 /* of a step, where one could be */
};

/* Knowledge of the elements that a step writes. */
enum step_result {
    STEP_UNKNOWN,
    STEP_VALUE,    /* they are value[0] */
    STEP_AS_INPUT, /* what is known of in[0] */
    STEP_RESIDUES, /* in [0, modulus) */
    STEP_DIGIT     /* in [0, 2^value[0]) */
};

/* Which elements a step visits. */
enum step_visits {
    VISITS_OUT,
    VISITS_FIRST, /* and in[0]'s */
    VISITS_ALL,   /* of all operands */
    VISITS_STAGES,
    VISITS_FULL_Q
};

/* Work of kernels beside reading and writing: a device has a rate for each. */
enum segment_work {
    WORK_PRODUCTS,        /* modular, element by element */
    WORK_SUMMED_PRODUCTS, /* of sums of products */
    WORK_BUTTERFLIES,     /* of transforms: n/2 log2 n a row */
    WORK_DIGITS,          /* of single values */
    WORK_CRT_DIGITS,      /* of CRT values */
    WORKS,
    NO_WORK = WORKS
};

/* Meaning of a kind of step; see steps.def. */
struct step_traits {
    const char *id, *subject, *name, *axes; /* subject: "step modmul" */
    char mixed;                             /* or 0 */
    int mixed_by;
    enum step_visits visits;
    enum segment_work work;
    enum step_result result;
    bool refuses_data; /* else moduli alone can; the plan has checked those that are scalars */
    uint32_t in_place; /* bit i: input i may be */
    int moduli;        /* the input that holds them; 0: none does */
    uint8_t signs;     /* bit i: input i must not be negative for residues */
    bool adds, chains, commutes;
    const char *batches;               /* or NULL */
    const char *inputs[STEP_INPUTS];   /* all NULL: no manifest replaces its kernel */
    const char *operation, *arguments; /* or NULL */
};

extern const struct step_traits step_traits[STEP_KINDS];

/* Steps of a vendor's operation that has a kernel and a body come twice: executors run the ones or
 * the others. */
enum step_side {
    STEP_ALWAYS,
    STEP_OF_KERNEL, /* where the device has a kernel of vendor */
    STEP_OF_BODY    /* where it has none, and on the reference */
};

struct vendor_call;
struct step;

struct step {
    enum step_kind kind;
    enum step_side side;
    const struct vendor_call *vendor; /* of these sides, and of STEP_VENDOR; else NULL */
    const struct origins *origins;    /* out is the last one's */
    union {
        struct {
            const struct tensor *in[STEP_INPUTS], *out;
        };
        const struct tensor *operands[STEP_OPERANDS]; /* the same */
    };
    /* For messages: which parameter of the form of which origin an input is. */
    struct step_argument {
        uint8_t origin, parameter;
    } arguments[STEP_INPUTS];
    /* Bit i: all elements of input i are known to be at least 0; and to be below the modulus of the
     * step that goes with them. See values.h. */
    uint8_t nonnegative, residues;
    uint8_t passes; /* bit i: pass i of passes.def has changed it, or what it comes from */
    /* Bit i: all elements of input i are known to be 0; bit STEP_INPUTS: those of out, before. */
    uint16_t zeros;
    int64_t value[2];
    const struct payload *payload;
    /* STEP_UPLOAD and STEP_DOWNLOAD: as in the transcript, a string in double quotes */
    const char *tensor_name;
};

/* Input i of a step, or with STEP_OUT its output; NULL: there is none. */
static inline const struct tensor *step_operand(const struct step *step, int i)
{
    return step->operands[i];
}

/* What only data reveal: the elements of an input that a step refuses. */
enum check_kind { CHECK_NONE, CHECK_MODULUS, CHECK_INDEX, CHECK_PERMUTATION, CHECK_COPRIME };
enum check_kind step_check(const struct step *step, int input);

/* Whether a step reads what out holds before. */
bool step_adds(const struct step *step);

/* "products" ... */
extern const char *const segment_work_names[WORKS];

/* Work of a segment's kernels, as planned; where a vendor's operation has a kernel and a body, of
 * the kernel, of which only bytes are known. UINT64_MAX stands for that and more. */
struct segment_cost {
    uint64_t launches, bytes; /* of step_bytes */
    uint64_t work[WORKS];
    uint64_t memory; /* bytes: most that live tensors take at one time, with step_scratch_bytes */
};

/* A tensor of which each rank of a split plan has a summand, modulo moduli: once its segment has
 * ended all ranks are to have the sum. moduli is a view of sum's shape. */
struct exchange {
    const struct tensor *sum, *moduli;
};

struct segment {
    const char *name; /* "" outside of any segment */
    size_t first_step, step_count;
    size_t first_storage; /* the ids of what earlier segments make are smaller */
    uint64_t *counts;     /* of operations by number, views and frees included */
    uint64_t frees;       /* FREE_DEVICE_TENSOR entries */
    uint64_t operations;  /* sum of counts */
    uint64_t bytes_up, bytes_down;
    size_t results; /* downloads */
    const struct exchange *exchanges;
    size_t exchange_count;
    /* Passes (passes.h); 0 and NULL where none were asked for. */
    struct segment_cost before, after;
    uint64_t *pass_changes; /* by pass: steps that it has changed or removed */
};

struct plan {
    const struct source *source;         /* where payloads lie */
    const struct operation_table *table; /* of operations that it may name; or NULL */
    struct step *steps;
    size_t step_count;
    struct segment *segments;
    size_t segment_count;
    struct storage **storages; /* by id */
    size_t storage_count;
    size_t tensors; /* names bound, over the whole transcript */
    size_t entries;
    size_t uploads;                                   /* with elements, of all segments */
    size_t results;                                   /* downloads, of all segments */
    size_t expected;                                  /* downloads with an expected tensor */
    uint64_t operations, frees, bytes_up, bytes_down; /* sums over the segments */
    uint64_t bytes_peak; /* largest sum of live storages and of the step_scratch_bytes in hand;
                            other memory that kernels need comes on top */
    uint64_t bytes_peak_before; /* any passes */
    uint64_t pass_changes;      /* of all of them */
    uint64_t memory_limit;
    /* Entries `expand` that could be read in both orders, and are as the specification has it. */
    struct {
        uint64_t count;
        size_t entry; /* the first one */
        int64_t axis, repeats;
    } either_way;
    /* In a plan that was split, the parts that its inputs and results are of the whole ones, by
     * number; period 0: they are whole. Else NULL. */
    struct payload_part *input_parts, *result_parts;
    /* Scalar operands. A tensor whose storage is constants.storage reads values[offset]. */
    struct {
        struct storage *storage;
        int64_t *values;
        size_t count;
        struct arena *arena; /* of the tensors that read them */
    } constants;
    struct arena *arena; /* owns everything above */
};

/* Reads, checks and plans all entries of source, which must outlive the plan, as must table, the
 * operations that it may name. That may be NULL, for the built-in ones, and limits may, for
 * the defaults. */
enum healcl_status plan_create(const struct source *source, const struct operation_table *table,
                               const struct healcl_limits *limits, struct plan **plan,
                               struct healcl_error *error);
void plan_free(struct plan *plan);

/* Makes a tensor of the plan's: a view of a storage. Errors: HEALCL_NO_MEMORY. */
enum healcl_status plan_view(struct plan *plan, struct storage *storage,
                             const struct layout *layout, const struct tensor **tensor,
                             struct healcl_error *error);

/* b of a STEP_MODMUL_AXIS_SUM with all axes of a, whether or not all reps share it. */
struct layout step_factor(const struct step *step);

/* Weights of a digit of a STEP_BASE_CONVERSION, b [s,k,n]. */
const struct tensor *step_weights(const struct step *step, int64_t digit);

/* Weights [s,k] one behind the other, for all reps and along n of a [reps,s,k,n]. */
struct layout layout_of_weights(const struct layout *a);

/* A STEP_MODMUL_AXIS_SUM as sums of a batch: a and b [reps,s,k,n] and out [reps,k,n] of the first,
 * and by how much those of the next lie behind. batch is 1 where reps of all go on evenly.
 * The batch of a STEP_BASE_CONVERSION is its digits, and b the table [terms,k] of all weights
 * (derive_weights). Its last digit has last_terms terms, at most s; others have s. */
struct product_sum {
    struct layout out, a, b;
    int64_t batch, out_distance, a_distance, b_distance, last_terms;
};
struct product_sum step_product_sum(const struct step *step);

/* Whether both may have elements in the same place; a may be NULL. */
bool tensors_overlap(const struct tensor *a, const struct tensor *b);

/* Whether both have every element in the same place. */
bool tensors_same(const struct tensor *a, const struct tensor *b);

/* A segment's name, and for "" what stands for it: "(outside segments)". */
const char *segment_title(const char *name);

/* Bytes of a storage. */
uint64_t storage_bytes(const struct storage *storage);

/* Bytes of a tensor's elements that lie together, repeated ones again. */
uint64_t packed_bytes(const struct tensor *tensor);

/* Bytes of device memory that a step has to read and write: those of its inputs, each element once
 * however often it is repeated, and of its output, twice where it is added to. */
uint64_t step_bytes(const struct step *step);

/* Adds a step's to cost, all but memory. */
void step_add_cost(const struct step *step, struct segment_cost *cost);

/*
 * Elements that a step visits, which is what its time grows with: those of its output, or all terms
 * of its sums, log2 n + 1 times those of a transform, k values for each modulus of a CRT. Views of
 * few elements can repeat them without end. UINT64_MAX stands for that and more.
 */
uint64_t step_visits(const struct step *step);

/*
 * Bytes that an executor needs during a step beside its storages, where views rather than storages
 * say how many: the packed result of a download, the tables of a CRT. UINT64_MAX stands for that
 * and more.
 *
 * Other memory of executors is bounded by storages, which are counted: tables for moduli,
 * twiddles and permutations have at most as many elements as the step's output, which does not
 * overlap itself, and take up to 80 bytes for each; the scratch memory of transforms takes 8. A
 * table for an elementwise modulus has up to 2^16 elements.
 */
uint64_t step_scratch_bytes(const struct step *step);

/* The entry that input i of a step is an argument of; with NO_INPUT the one that out is of. */
const struct origin *step_origin(const struct step *step, int i);

/* The name, in its form, of the parameter that input i of a step was. */
const char *step_input_name(const struct step *step, int i);

/* Puts "entry 17 (_modmul_ttt): " in front of an error; of a step for its input that is refused, or
 * NO_INPUT. */
void error_prefix_origin(struct healcl_error *error, const struct origin *origin);
void error_prefix_step(struct healcl_error *error, const struct step *step, int input);

/* Shares out what a step took, as time or bytes, among the operations that it comes from, by the
 * elements that it visits for each, or where those are not known equally: adds to amounts, which
 * are by number of operation, in all exactly amount. Not for a release, which is no operation's. */
void origins_share(const struct origins *origins, uint64_t amount, uint64_t *amounts);

/* Gives a step of the plan that does the work of two in one the origins of both, first's in front.
 * Its arguments that were second's count their origins from first->origins->count. */
enum healcl_status step_join_origins(struct plan *plan, struct step *step, const struct step *first,
                                     const struct step *second, struct healcl_error *error);

#endif
