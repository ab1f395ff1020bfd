/*
 * Numbers that a kernel and its launch both need, most of them sizes. The host's compiler reads
 * them too.
 */
#ifndef HEALCL_CL_GEOMETRY_H
#define HEALCL_CL_GEOMETRY_H

/* Bytes of a line of the caches, to which long rows are aligned where that can be chosen. */
enum { CACHE_LINE = 64 };

/* Elements of a vector, in all kernels with explicit vectors. */
enum { LANES = 8 };

/*
 * Elementwise operations with moduli, EACH(KIND, name, operands), in the order of their kinds of
 * steps (src/plan/steps.def). All their kernels come from this list, and these functions of each:
 * compute_NAME and residues_NAME in cl/modular/compute.cl, lanes_NAME in cl/modular/vectors.cl.
 */
#define ELEMENTWISE_OPERATIONS(EACH) \
    EACH(MODMUL, modmul, 2)          \
    EACH(MODSUM, modsum, 2)          \
    EACH(MOD, mod, 1)                \
    EACH(MODNEG, modneg, 1)

enum elementwise {
#define ELEMENTWISE_KIND(KIND, name, operands) KIND,
    ELEMENTWISE_OPERATIONS(ELEMENTWISE_KIND) CHAIN /* two of them: cl/core/chain.cl */
};

/* Ways to multiply and divide 64 bits in vectors, -D MULTIPLY: see cl/base/divisor.cl. The same
 * numbers as in src/opencl/tuning.h. */
#define MULTIPLY_DOUBLES 0
#define MULTIPLY_HALVES 1
#define MULTIPLY_MUL_HI 2

#define INVERSE_MARGIN 0x1.8p-50

/* Stages of butterflies that one pass over a row does in registers, and the elements for that. */
#define NTT_LOG2_RADIX 4
enum { NTT_RADIX = 1 << NTT_LOG2_RADIX };

/* cl/ntt/rows.cl */
enum {
    NTT_ROW_MIN = 256,   /* elements of the shortest row */
    NTT_ROW_TILE = 4096, /* of a row, that fit the innermost cache */
    NTT_BATCH_ROWS = 8,  /* of HEAL's layouts, loaded and stored at once */
    NTT_ROW_PADDING = 16 /* words: rows a power of two apart would share cache sets */
};
/* In which tensors the elements of one number of a batch's rows lie side by side: bits. */
#define NTT_OUT_INTERLEAVED 1
#define NTT_IN_INTERLEAVED 2

/* Words of the lane twiddles of a row of n: of a factor and a quotient for each of the block - 1
 * twiddles by which a block of a tile is transformed. */
static inline cl_base_ulong ntt_lane_twiddles(cl_base_ulong n)
{
    cl_base_ulong block = (n < NTT_ROW_TILE ? n : NTT_ROW_TILE) / NTT_RADIX;
    return 2 * (n / block) * (block - 1);
}

/* The number of the twiddle t of block `number` of those that a pass divides. */
static inline cl_base_ulong ntt_twiddle_number(cl_base_uint t, cl_base_ulong number)
{
    cl_base_uint blocks = t >= 8 ? 8 : t >= 4 ? 4 : t >= 2 ? 2 : 1;
    return blocks * number + t - blocks;
}

/* cl/ntt/registers.cl: where element e of a lane is in local memory, in numbers of so many bits,
 * and how many the lanes take. Elements 2^4 or 2^8 apart are in different banks, and lanes are. For
 * disjoint bits of e, slots are sums. */
#define NTT_LOG2_BANKS(bits) ((bits) == 64 ? 4 : 5)
#define NTT_SLOT(e, bits) ((e) + ((e) >> NTT_LOG2_BANKS(bits)) + ((e) >> 2 * NTT_LOG2_BANKS(bits)))
#define NTT_LANE_PADDING(log2_lanes, bits)      \
    ((log2_lanes) == 0                      ? 0 \
     : (log2_lanes) >= NTT_LOG2_BANKS(bits) ? 1 \
                                            : 1 << (NTT_LOG2_BANKS(bits) - (log2_lanes)))
#define NTT_SLOTS(stages, log2_lanes, bits) \
    ((NTT_SLOT(1 << (stages), bits) + NTT_LANE_PADDING(log2_lanes, bits)) << (log2_lanes))

/* cl/sum: vectors of columns in a block of a row (in longer ones lines of rows that are a power of
 * two apart drive each other out of the first cache), and rows of n in a block, whose b stays in
 * cache while reps go by; a multiple of eight. A sum on vectors has fewer terms than SUM_TERMS. */
enum { SUM_COLUMNS = 64, SUM_ROWS = 64, SUM_TERMS = 1 << 30 };

/* cl/modular/interleaved.cl: groups of one, two or four elements in a block of a work-item's. */
enum { INTERLEAVED_GROUPS = 512 };

/* cl/sum/items.cl: how far apart the rows of a work-item are, terms, and elements along n, of which
 * there are 2^log2_n where there is a permutation. With SHORT_AXIS
 * sums of the last index along that axis have short_terms. */
struct product_rows {
    cl_base_long out_row, a_row, b_row, a_term, b_term, out_n, a_n, b_n;
    cl_base_uint terms, short_terms, log2_n;
};

/* Sums of products: whether there is a permutation, and whether what out holds is added to. */
enum { PRODUCTS_PERMUTED = 1, PRODUCTS_ADDED = 2 };

/* cl/sum/product_groups.cl: vectors of columns in a block, and terms that are packed
 * at a time, in 32 KiB. */
enum { PRODUCT_COLUMNS = 8, PRODUCT_TERMS = 64 };

/* cl/copy/local.cl: of a tile, less what pads its rows, which is at most half as much. */
enum { COPY_TILE_BYTES = 8192 };

/* cl/digits/digits.cl: values whose digits fit the first cache. */
enum { DIGITS_BLOCK = 64 };

/* Tables that a launch of transform_tables makes: cl/core/transform.cl. */
enum {
    TABLE_MODULI = 1,
    TABLE_TWIDDLES = 2,
    TABLE_SCALES = 4,
    TABLE_FACTORS = 8,
    TABLE_PERMUTATION = 16
};

/* A table of a permutation ends with bits that say what it is: cl/core/checks.cl. */
enum { PERMUTATION_REVERSES_BITS = 1, PERMUTATION_IDENTITY = 2 };

#endif
