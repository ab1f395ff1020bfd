/*
 * Sizes that a kernel and its launch both need. The host's compiler reads them too.
 */
#ifndef HEALCL_CL_GEOMETRY_H
#define HEALCL_CL_GEOMETRY_H

/* Elements of a vector, in all kernels with explicit vectors. */
enum { LANES = 8 };

/* Stages of butterflies that one pass over a row does in registers, and the elements for that. */
#define NTT_LOG2_RADIX 4
enum { NTT_RADIX = 1 << NTT_LOG2_RADIX };

/* cl/ntt/rows.cl */
enum {
    NTT_ROW_MIN = 256,     /* elements of the shortest row */
    NTT_ROW_PART = 4096,   /* of a row, that fit the innermost cache */
    NTT_ROWS_TOGETHER = 8, /* of HEAL's layouts, loaded and stored at once */
    NTT_ROW_PADDING = 16   /* words: rows a power of two apart would share cache sets */
};

/* cl/sum: vectors of columns in a part of a row (in longer ones lines of rows that are a power of
 * two apart drive each other out of the first cache), and rows of n in a part, whose b stays in
 * cache while reps go by; a multiple of eight. */
enum { SUM_COLUMNS = 64, SUM_ROWS = 64 };

/* cl/modular/vector_runs.cl: rows of one, two or four elements that a work-item takes at once. */
enum { INTERLEAVED_ROWS = 512 };

/* cl/base/measure.cl: elements of a cache line. */
enum { MEASURED_LINE = 8 };

#endif
