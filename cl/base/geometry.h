/*
 * Numbers, mostly sizes, that a kernel and its launch share. The host's compiler also reads this
 * file.
 */
#ifndef HEALCL_CL_GEOMETRY_H
#define HEALCL_CL_GEOMETRY_H

/* Bytes of a cache line. Long rows are aligned to it if possible. */
enum { CACHE_LINE = 64 };

/* Elements of a vector, in all kernels with explicit vectors. */
enum { LANES = 8 };

/*
 * Elementwise operations with moduli, EACH(KIND, name, operands), in the order of their kinds of
 * steps (src/plan/steps.def). All their kernels are generated from this list. Each operation also
 * has functions: compute_NAME and residues_NAME in cl/modular/compute.cl, and lanes_NAME in
 * cl/modular/vectors.cl.
 */
#define ELEMENTWISE_OPERATIONS(EACH) \
    EACH(MODMUL, modmul, 2)          \
    EACH(MODSUM, modsum, 2)          \
    EACH(MOD, mod, 1)                \
    EACH(MODNEG, modneg, 1)

enum elementwise {
#define ELEMENTWISE_KIND(KIND, name, operands) KIND,
    ELEMENTWISE_OPERATIONS(ELEMENTWISE_KIND) CHAIN /* two operations: cl/core/chain.cl */
};

/* Ways to multiply and divide 64-bit vectors, -D MULTIPLY: see cl/base/divisor.cl. The numbers must
 * match src/opencl/tuning.h. */
#define MULTIPLY_DOUBLES 0
#define MULTIPLY_HALVES 1
#define MULTIPLY_MUL_HI 2

#define INVERSE_MARGIN 0x1.8p-50

/* The stages of butterflies that one pass over a row does in registers, and the elements that they
 * need. */
#define NTT_LOG2_RADIX 4
enum { NTT_RADIX = 1 << NTT_LOG2_RADIX };

/* cl/ntt/rows.cl */
enum {
    NTT_ROW_MIN = 256,   /* elements of the shortest row */
    NTT_ROW_TILE = 4096, /* of a row; they fit the innermost cache */
    NTT_BATCH_ROWS = 8,  /* of HEAL's layouts, loaded and stored together */
    NTT_ROW_PADDING = 16 /* words: rows a power of two apart would share cache sets */
};
/* Bits: the tensors whose rows of a batch are interleaved element by element. */
#define NTT_OUT_INTERLEAVED 1
#define NTT_IN_INTERLEAVED 2

/* Words of the lane twiddles of a row of n. A block of a tile is transformed by block - 1 twiddles.
 * Each has a factor and a quotient. */
static inline cl_base_ulong ntt_lane_twiddles(cl_base_ulong n)
{
    cl_base_ulong block = (n < NTT_ROW_TILE ? n : NTT_ROW_TILE) / NTT_RADIX;
    return 2 * (n / block) * (block - 1);
}

/* The number of twiddle t of a pass that divides block `number`. */
static inline cl_base_ulong ntt_twiddle_number(cl_base_uint t, cl_base_ulong number)
{
    cl_base_uint blocks = t >= 8 ? 8 : t >= 4 ? 4 : t >= 2 ? 2 : 1;
    return blocks * number + t - blocks;
}

/* cl/ntt/registers.cl: the position of element e of a lane in local memory, in words of `bits`
 * bits, and the words that all lanes take. Elements 2^4 or 2^8 apart are in different banks, and so
 * are lanes. For disjoint bits of e, slots are sums. */
#define NTT_LOG2_BANKS(bits) ((bits) == 64 ? 4 : 5)
#define NTT_SLOT(e, bits) ((e) + ((e) >> NTT_LOG2_BANKS(bits)) + ((e) >> 2 * NTT_LOG2_BANKS(bits)))
#define NTT_LANE_PADDING(log2_lanes, bits)      \
    ((log2_lanes) == 0                      ? 0 \
     : (log2_lanes) >= NTT_LOG2_BANKS(bits) ? 1 \
                                            : 1 << (NTT_LOG2_BANKS(bits) - (log2_lanes)))
#define NTT_SLOTS(stages, log2_lanes, bits) \
    ((NTT_SLOT(1 << (stages), bits) + NTT_LANE_PADDING(log2_lanes, bits)) << (log2_lanes))

/* cl/sum: vectors of columns in a block of a row, and rows of n in a block. Longer blocks of
 * columns would evict each other's lines from the first cache if rows are a power of two apart. The
 * b of a block of rows stays in cache for all reps; the number of rows is a multiple of eight. A
 * sum on vectors has fewer terms than SUM_TERMS. */
enum { SUM_COLUMNS = 64, SUM_ROWS = 64, SUM_TERMS = 1 << 30 };

/* cl/modular/interleaved.cl: groups of one, two or four elements in a block of a work-item. */
enum { INTERLEAVED_GROUPS = 512 };

/* cl/modular/factors.cl: the operands of multiply_add, except out and p. The element at an index is
 * at offset + index[last] * stride[0] + index[last - 1] * stride[1] + ... Bit k of `has`: operand k
 * exists; FACTORS_PART bits higher: but not where index[last - axis] is 0. axis is in the bits from
 * FACTORS_AXIS on. With ten buffers they take 256 bytes of arguments, which all devices accept.
 * stride: PRODUCT_AXES of each operand. rusticl 22 expects another size of an argument that has
 * arrays of arrays, or that ends with bytes which no member has. */
enum { PRODUCTS = 3, PRODUCT_AXES = 4, FACTORS_ADDEND = 2, FACTORS_ALL = 1 + 2 * PRODUCTS };
enum { FACTORS_PART = 8, FACTORS_AXIS = 16 };
struct factors {
    cl_base_long offset[FACTORS_ALL];
    cl_base_uint stride[FACTORS_ALL * PRODUCT_AXES], has, padding;
};

/* cl/sum/items.cl: distances between the rows of a work-item, between terms, and between elements
 * along n. With a permutation n has 2^log2_n elements. With SHORT_AXIS, sums of the last index
 * along that axis have short_terms terms. */
struct product_rows {
    cl_base_long out_row, a_row, b_row, a_term, b_term, out_n, a_n, b_n;
    cl_base_uint terms, short_terms, log2_n;
};

/* Sums of products, as bits: rows are permuted; sums are added to the contents of out. */
enum { PRODUCTS_PERMUTED = 1, PRODUCTS_ADDED = 2 };

/* cl/sum/product_groups.cl: vectors of columns in a block, and terms that are packed together, in
 * 32 KiB. */
enum { PRODUCT_COLUMNS = 8, PRODUCT_TERMS = 64 };

/* cl/sum/product_weights.cl: the most terms, and the vectors of a in a tile, in 32 KiB. */
enum { WEIGHTS_MAX = 64, WEIGHTED_VECTORS = 256 };

/* cl/copy/local.cl: bytes of a tile, without the padding of its rows, which is at most half as
 * much. */
enum { COPY_TILE_BYTES = 8192 };

/* cl/digits/digits.cl: values in a block, whose digits fit the first cache. */
enum { DIGITS_BLOCK = 64 };

/* Tables that a launch of transform_tables computes: cl/core/transform.cl. */
enum {
    TABLE_MODULI = 1,
    TABLE_TWIDDLES = 2,
    TABLE_SCALES = 4,
    TABLE_FACTORS = 8,
    TABLE_PERMUTATION = 16
};

/* Bits at the end of a permutation's table that name its kind: cl/core/checks.cl. */
enum { PERMUTATION_REVERSES_BITS = 1, PERMUTATION_IDENTITY = 2 };

#endif
