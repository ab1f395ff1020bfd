/*
 * Plans: a transcript turned into a program of steps. Every shape, stride, dtype, alias and
 * lifetime is known and checked. Planning touches no device. Both executors (device and host
 * reference) read the same plan.
 *
 * The plan settles the following, so that executors need not know about it:
 * - spellings, argument forms and defaults: a step has one form for each kind of work;
 * - views: reshape, slices and the like disappear; operands are views of storages;
 * - broadcasting: elementwise operands have the shape of the output (strides of 0 repeat);
 * - scalars: they are elements of the constants storage, viewed with strides of 0;
 * - layouts of transforms: operands are views in the order [l, r, k, n], whatever the axis was. A
 *   tiled input is repeated over k with a stride of 0. Sums are normalised in the same way;
 * - aliasing: an earlier step copies an input that overlaps the output harmfully.
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
    size_t entry; /* its index in the transcript, or the number of a call */
    bool is_call;
    const char *name;        /* of the operation, as the entry spells it */
    const struct form *form; /* NULL for a FREE_DEVICE_TENSOR entry */
    uint64_t visits;         /* elements that a step with several origins visits for this one */
    /* The operation whose body contains the entry. NULL: the transcript does. */
    const struct operation *outer;
};

/* The operation that work for an origin is counted under. The origin's form must not be NULL. */
const struct operation *origin_operation(const struct origin *origin);

/* The entries that steps come from, in transcript order. Steps of one entry share them. */
struct origins {
    size_t count;
    const struct origin *of;
    const char *operations; /* names if several, "modmul + axis_modsum"; else NULL */
};

/* Memory that tensors view; ids count from 0 in the order of creation. */
struct storage {
    uint32_t id;
    enum dtype dtype;
    int64_t elements;
    const struct origin *origin; /* the entry that made it; NULL for the plan's scalars */
    uint32_t references;         /* count of names that view it; only during planning */
    struct known *known;         /* facts about its values, see values.h; only during planning */
    uint64_t writes;             /* count of steps so far that wrote it; only during planning */
    const int64_t *scalars;      /* the values, if it holds the plan's scalars; else NULL */
    /* Of operations by call: a handle maps it; its memory is lent to the caller. */
    bool is_mapped, is_lent;
};

struct tensor {
    struct storage *storage;
    struct layout layout;
};

/* steps.def describes each kind. */
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
    STEP_OUT = STEP_INPUTS, /* index of the output among the operands */
    STEP_OPERANDS,
    NO_INPUT = -1,     /* where an input's index could stand */
    STEP_PRODUCTS = 3, /* of a STEP_MULTIPLY_ADD */
    STEP_PRODUCT_AXES = 4,
    CACHED_CALLS_MAX = 2048
};

/* What is known about the elements that a step writes. */
enum step_result {
    STEP_UNKNOWN,
    STEP_VALUE,    /* they are value[0] */
    STEP_AS_INPUT, /* as known for in[0] */
    STEP_RESIDUES, /* in [0, modulus) */
    STEP_DIGIT     /* in [0, 2^value[0]) */
};

/* Which elements a step visits. */
enum step_visits {
    VISITS_OUT,
    VISITS_FIRST, /* those of out and in[0] */
    VISITS_ALL,   /* those of all operands */
    VISITS_STAGES,
    VISITS_FULL_Q
};

/* Computation of kernels, without reading and writing. A device has a rate for each. */
enum segment_work {
    WORK_PRODUCTS,        /* modular products of single elements */
    WORK_SUMMED_PRODUCTS, /* products within sums */
    WORK_BUTTERFLIES,     /* butterflies of transforms: n/2 log2 n a row */
    WORK_DIGITS,          /* digits of single values */
    WORK_CRT_DIGITS,      /* digits of CRT values */
    WORKS,
    NO_WORK = WORKS
};

/* Properties of a kind of step; see steps.def. */
struct step_traits {
    const char *id, *subject, *name, *axes; /* subject: "step modmul" */
    char mixed;                             /* or 0 */
    int mixed_by;
    enum step_visits visits;
    enum segment_work work;
    enum step_result result;
    bool refuses_data; /* else only moduli can be refused; the plan has checked scalar ones */
    uint32_t in_place; /* bit i: out may be input i */
    int moduli;        /* the input that holds the moduli; 0: none */
    uint8_t signs;     /* bit i: input i must not be negative for residues */
    bool adds, chains, commutes;
    const char *batches;               /* or NULL */
    const char *inputs[STEP_INPUTS];   /* all NULL: no manifest replaces its kernel */
    const char *operation, *arguments; /* or NULL */
};

extern const struct step_traits step_traits[STEP_KINDS];

/* A vendor's operation that has both a kernel and a body is planned twice. Executors run the steps
 * of one side only. */
enum step_side {
    STEP_ALWAYS,
    STEP_OF_KERNEL, /* if the device has a kernel for `vendor` */
    STEP_OF_BODY    /* if it has none, and on the reference */
};

struct vendor_call;
struct step;

struct step {
    enum step_kind kind;
    enum step_side side;
    const struct vendor_call *vendor; /* for both of these sides and STEP_VENDOR; else NULL */
    const struct origins *origins;    /* out belongs to the last origin */
    union {
        struct {
            const struct tensor *in[STEP_INPUTS], *out;
        };
        const struct tensor *operands[STEP_OPERANDS]; /* the same pointers, as an array */
    };
    /* For messages: by input, its origin and the parameter of that origin's form. */
    struct step_argument {
        uint8_t origin, parameter;
    } arguments[STEP_INPUTS];
    /* Bit i: all elements of input i are known to be at least 0 (nonnegative), or below the
     * corresponding modulus of the step (residues). See values.h. */
    uint8_t nonnegative, residues;
    uint8_t passes; /* bit i: pass i of passes.def has changed it or a step that it comes from */
    /* Bit i: all elements of input i are known to be 0. Bit STEP_INPUTS: those of out before the
     * step. */
    uint16_t zeros;
    int64_t value[2];
    /* The cached call that made it; 0: none. Steps of one call differ in their operands' storages,
     * in scalars and in facts. */
    uint64_t call;
    bool is_new; /* no call like that which made it came before */
    const struct payload *payload;
    /* STEP_UPLOAD and STEP_DOWNLOAD: the name in the transcript, in double quotes */
    const char *tensor_name;
};

/* Runs the following statement for each operand that a step has: inputs, then the output. `i` is
 * its number, and `operand` the tensor. Both `continue` and `break` go on with the next operand. */
#define FOR_EACH_OPERAND(i, operand, step)  \
    for (int i = 0; i < STEP_OPERANDS; i++) \
        for (const struct tensor *operand = (step)->operands[i]; operand; operand = NULL)

/* The same for each input that a step has. */
#define FOR_EACH_INPUT(i, operand, step)  \
    for (int i = 0; i < STEP_INPUTS; i++) \
        for (const struct tensor *operand = (step)->in[i]; operand; operand = NULL)

/* The inputs that hold the factors of product i of a STEP_MULTIPLY_ADD: this one and the next. */
static inline int step_factors(int i)
{
    return i > 0 ? 2 * i + 2 : 0;
}

/* The number of products of a STEP_MULTIPLY_ADD. */
static inline int step_products(const struct step *step)
{
    int count = 1;
    while (count < STEP_PRODUCTS && step->in[step_factors(count)])
        count++;
    return count;
}

/* Whether the first product of a STEP_MULTIPLY_ADD is (a0 + a1)*b0. */
static inline bool step_adds_factors(const struct step *step)
{
    return step->in[step_factors(1)] && !step->in[step_factors(1) + 1];
}

/* The inputs that passes give to transforms: see NTT in steps.def. */
enum { STEP_FACTORS = 5, STEP_ADDEND = 6 };

/* The STEP_CHAIN, in place, that a STEP_NTT with an addend does after its transform. Its views are
 * [l,r,k,n], or [l,n,r,k] if out's rows are interleaved. */
struct step_chain {
    struct step step;
    struct tensor views[4]; /* inputs 0 to 3. The output is input 0 */
};
void step_chain_of(const struct step *ntt, struct step_chain *chain);

/* The operands of the transform, by operand of the chain. */
extern const uint8_t step_chain_operands[STEP_OPERANDS];

/* Which elements of an input a step refuses; only the data show whether it has such elements. */
enum check_kind { CHECK_NONE, CHECK_MODULUS, CHECK_INDEX, CHECK_PERMUTATION, CHECK_COPRIME };
enum check_kind step_check(const struct step *step, int input);

/* Whether a step reads the previous contents of out. */
bool step_adds(const struct step *step);

/* "products" ... */
extern const char *const segment_work_names[WORKS];

/* Planned work of a segment's kernels. If a vendor's operation has a kernel and a body, the kernel
 * counts, and only its bytes are known. Values saturate at UINT64_MAX. */
struct segment_cost {
    uint64_t launches, bytes; /* bytes: sum of step_bytes */
    uint64_t work[WORKS];
    uint64_t memory; /* bytes: most that live tensors and step_scratch_bytes take at one time */
};

/* A tensor of which each rank of a split plan holds a summand. When its segment has ended, all
 * ranks need the sum modulo `moduli`, a view of sum's shape. */
struct exchange {
    const struct tensor *sum, *moduli;
};

struct segment {
    const char *name; /* "" outside of any segment */
    size_t first_step, step_count;
    size_t first_storage; /* storages of earlier segments have smaller ids */
    uint64_t *counts;     /* by operation number, views and frees included */
    uint64_t frees;       /* FREE_DEVICE_TENSOR entries */
    uint64_t operations;  /* sum of counts */
    uint64_t bytes_up, bytes_down;
    size_t results; /* count of downloads */
    const struct exchange *exchanges;
    size_t exchange_count;
    /* For passes (passes.h); 0 and NULL if none were requested. */
    struct segment_cost before, after;
    uint64_t *pass_changes; /* by pass: count of steps changed or removed */
};

struct plan {
    const struct source *source;         /* contains the payloads */
    const struct operation_table *table; /* operations that the plan may name; or NULL */
    struct step *steps;
    size_t step_count;
    struct segment *segments;
    size_t segment_count;
    struct storage **storages; /* by id */
    size_t storage_count;
    size_t tensors; /* names bound in the whole transcript */
    size_t entries;
    size_t uploads;  /* count of uploads with elements, all segments */
    size_t results;  /* count of downloads, all segments */
    size_t expected; /* count of downloads with an expected tensor */
    uint64_t operations, frees, bytes_up, bytes_down; /* sums over the segments */
    /* Largest sum of live storages and the current step_scratch_bytes. Other memory that kernels
     * need comes on top. */
    uint64_t bytes_peak;
    uint64_t pass_changes; /* sum over all passes */
    uint64_t memory_limit;
    /* `expand` entries that could be read in either order. They are read as the specification
     * says. */
    struct {
        uint64_t count;
        size_t entry; /* of the first such entry */
        int64_t axis, repeats;
    } either_way;
    /* In a split plan: by number, which parts of the whole inputs and results its own are. Period
     * 0: they are whole. Else NULL. */
    struct healcl_part *input_parts, *result_parts;
    /* Scalar operands. A tensor whose storage is constants.storage reads values[offset]. */
    struct {
        struct storage *storage;
        int64_t *values;
        size_t count;
        struct arena *arena; /* owns the tensors that read them */
    } constants;
    struct arena *arena; /* owns everything above */
};

/* Reads, checks and plans all entries of source. source and table must outlive the plan. table: the
 * operations that the transcript may name; NULL for the built-in ones. options: NULL for the
 * defaults. */
enum healcl_status plan_create(const struct source *source, const struct operation_table *table,
                               const struct healcl_plan_options *options, struct plan **plan,
                               struct healcl_error *error);
void plan_free(struct plan *plan);

/* Makes a tensor that belongs to the plan: a view of a storage. Errors: HEALCL_NO_MEMORY. */
enum healcl_status plan_view(struct plan *plan, struct storage *storage,
                             const struct layout *layout, const struct tensor **tensor,
                             struct healcl_error *error);

/* Operand b of a STEP_MODMUL_AXIS_SUM, with all axes of a, whether or not all reps share it. */
struct layout step_factor(const struct step *step);

/* The weights of a digit of a STEP_BASE_CONVERSION: b [s,k,n]. */
const struct tensor *step_weights(const struct step *step, int64_t digit);

/* The layout of contiguous weights [s,k], repeated over reps and n to the shape of a
 * [reps,s,k,n]. */
struct layout layout_of_weights(const struct layout *a);

/* A STEP_MODMUL_AXIS_SUM as a batch of sums. a and b [reps,s,k,n] and out [reps,k,n] belong to the
 * first sum. The distances lead to the operands of the next one. batch is 1 if reps is evenly
 * strided in all operands.
 * The batch of a STEP_BASE_CONVERSION is its digits, and b is the table [terms,k] of all weights
 * (derive_weights). Its last digit has last_terms terms, at most s; the others have s. */
struct product_sum {
    struct layout out, a, b;
    int64_t batch, out_distance, a_distance, b_distance, last_terms;
};
struct product_sum step_product_sum(const struct step *step);

/* Whether both may share an element's position; a may be NULL. */
bool tensors_overlap(const struct tensor *a, const struct tensor *b);

/* Whether both have every element at the same position. */
bool tensors_same(const struct tensor *a, const struct tensor *b);

/* A segment's name, or "(outside segments)" for "". */
const char *segment_title(const char *name);

/* Bytes of a storage. */
uint64_t storage_bytes(const struct storage *storage);

/* Bytes of a tensor's elements stored contiguously; repeated elements count again. */
uint64_t packed_bytes(const struct tensor *tensor);

/* Bytes of device memory that a step must read and write. An input's element counts once, however
 * often it is repeated. Output counts twice if it is added to. */
uint64_t step_bytes(const struct step *step);

/* Adds a step's cost to all members except memory. */
void step_add_cost(const struct step *step, struct segment_cost *cost);

/*
 * Elements that a step visits, to which its time is proportional. These are the elements of its
 * output, or all terms of its sums. A transform visits its elements log2 n + 1 times; a CRT visits
 * k values for each modulus. A view of few elements can repeat them without limit. Saturates at
 * UINT64_MAX.
 */
uint64_t step_visits(const struct step *step);

/*
 * Bytes that an executor needs during a step beside its storages, if views rather than storages
 * determine the size: the packed result of a download, the tables of a CRT. Saturates at
 * UINT64_MAX.
 *
 * Storages, which are counted, bound the other memory of executors. Tables for moduli, twiddles and
 * permutations have at most as many elements as the step's output, which does not overlap itself.
 * They take up to 80 bytes for each element. The scratch memory of transforms takes 8. A table for
 * an elementwise modulus has up to 2^16 elements.
 */
uint64_t step_scratch_bytes(const struct step *step);

/* The entry that has input i of a step as an argument; for NO_INPUT, the entry that made out. */
const struct origin *step_origin(const struct step *step, int i);

/* The name of the parameter that input i of a step was bound to. */
const char *step_input_name(const struct step *step, int i);

/* Put "entry 17 (_modmul_ttt): " in front of an error. input: the refused input of the step, or
 * NO_INPUT. */
void error_prefix_origin(struct healcl_error *error, const struct origin *origin);
void error_prefix_step(struct healcl_error *error, const struct step *step, int input);

/* Distributes a step's cost, a time or bytes, among its origins' operations, in proportion to the
 * elements visited for each. If these are unknown, it distributes equally. Adds to amounts, indexed
 * by operation number; the sum grows by exactly amount. Not for a release, which belongs to no
 * operation. */
void origins_share(const struct origins *origins, uint64_t amount, uint64_t *amounts);

#endif
