/*
 * Copies between views with different orders of elements, for devices with caches and wide vectors.
 * Blocks fit the first cache: each line of memory is read once and written once. Within a block,
 * tiles are transposed in registers. ELEMENT: char, int or long.
 */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif

#include "../base/caches.cl"

#define BYTES_char 1
#define BYTES_int 4
#define BYTES_long 8

/*
 * A tile has rows of 64 bytes. load_tile loads TILE_HEIGHT elements from each of TILE_WIDTH
 * columns, which are stride apart. tile[i] becomes element i of all columns.
 */
#define TILE_HEIGHT 4
#if JOIN(BYTES_, ELEMENT) == 1

#define TILE_WIDTH 64
typedef uint16 tile_row;

/* Four elements at once, at any address. */
struct __attribute__((packed)) unaligned_elements {
    uint value;
};

#define COLUMN(i) (((global const struct unaligned_elements *)(from + (i) * stride))->value)

static inline void load_tile(tile_row tile[TILE_HEIGHT], global const char *from, long stride)
{
    uint4 quarter[4][TILE_HEIGHT]; /* rows of 16 columns each */
    UNROLL for (uint p = 0; p < 4; p++, from += 16 * stride) {
        uint16 columns = (uint16)(COLUMN(0), COLUMN(1), COLUMN(2), COLUMN(3), COLUMN(4), COLUMN(5),
                                  COLUMN(6), COLUMN(7), COLUMN(8), COLUMN(9), COLUMN(10),
                                  COLUMN(11), COLUMN(12), COLUMN(13), COLUMN(14), COLUMN(15));
        UNROLL for (uint i = 0; i < TILE_HEIGHT; i++)
            quarter[p][i] = as_uint4(convert_uchar16(columns >> 8 * i & 0xff));
    }
    UNROLL for (uint i = 0; i < TILE_HEIGHT; i++)
        tile[i] = (uint16)(quarter[0][i], quarter[1][i], quarter[2][i], quarter[3][i]);
}

#elif JOIN(BYTES_, ELEMENT) == 4

#define TILE_WIDTH 16
typedef int16 tile_row;

static inline void load_tile(tile_row tile[TILE_HEIGHT], global const int *from, long stride)
{
    UNROLL for (uint i = 0; i < 4; i++)
        tile[i] = (int16)(vload4(0, from + i * stride), vload4(0, from + (i + 4) * stride),
                          vload4(0, from + (i + 8) * stride), vload4(0, from + (i + 12) * stride));
    /* Four 4x4 tiles: swap pairs of elements, then elements. */
    UNROLL for (uint i = 0; i < 2; i++) {
        int16 a = tile[i], b = tile[i + 2];
        tile[i] = (int16)(a.s01, b.s01, a.s45, b.s45, a.s89, b.s89, a.scd, b.scd);
        tile[i + 2] = (int16)(a.s23, b.s23, a.s67, b.s67, a.sab, b.sab, a.sef, b.sef);
    }
    UNROLL for (uint i = 0; i < 4; i += 2) {
        int16 a = tile[i], b = tile[i + 1];
        tile[i] = (int16)(a.s0, b.s0, a.s2, b.s2, a.s4, b.s4, a.s6, b.s6, a.s8, b.s8, a.sa, b.sa,
                          a.sc, b.sc, a.se, b.se);
        tile[i + 1] = (int16)(a.s1, b.s1, a.s3, b.s3, a.s5, b.s5, a.s7, b.s7, a.s9, b.s9, a.sb,
                              b.sb, a.sd, b.sd, a.sf, b.sf);
    }
}

#else

#define TILE_WIDTH 8
typedef long8 tile_row;

static inline void load_tile(tile_row tile[TILE_HEIGHT], global const long *from, long stride)
{
    UNROLL for (uint i = 0; i < 4; i++)
        tile[i] = (long8)(vload4(0, from + i * stride), vload4(0, from + (i + 4) * stride));
    /* Two 4x4 tiles: swap pairs of elements, then elements. */
    UNROLL for (uint i = 0; i < 2; i++) {
        long8 a = tile[i], b = tile[i + 2];
        tile[i] = (long8)(a.s01, b.s01, a.s45, b.s45);
        tile[i + 2] = (long8)(a.s23, b.s23, a.s67, b.s67);
    }
    UNROLL for (uint i = 0; i < 4; i += 2) {
        long8 a = tile[i], b = tile[i + 1];
        tile[i] = (long8)(a.s0, b.s0, a.s2, b.s2, a.s4, b.s4, a.s6, b.s6);
        tile[i + 1] = (long8)(a.s1, b.s1, a.s3, b.s3, a.s5, b.s5, a.s7, b.s7);
    }
}

#endif

/* A row at any address. (PoCL's vstore stores each char separately.) */
struct __attribute__((packed)) unaligned_row {
    tile_row value;
};

static inline void store_tile_row(tile_row value, global ELEMENT *out)
{
    ((global struct unaligned_row *)out)->value = value;
}

/* A block of width elements along x and height along y. out has stride 1 along x. */
struct block {
    ulong width, height;
    long out_y, in_y, in_x; /* strides */
};

/* Whether rows of tiles fill whole cache lines of out. */
static inline bool stores_lines(global const ELEMENT *out, struct block block)
{
    return ((ulong)out | (ulong)block.out_y * sizeof(ELEMENT)) % sizeof(tile_row) == 0;
}

/*
 * Copies the block's columns x < result in tiles; in_y is 1. readable: the elements of in that may
 * be read. A tile reads TILE_HEIGHT elements of each column, also below the block's height. It is
 * omitted if these are past the end of in. past: store past the caches where possible.
 */
static inline ulong copy_tiles(global ELEMENT *out, global const ELEMENT *in, long readable,
                               bool past, struct block block)
{
    long height = (long)(block.height + TILE_HEIGHT - 1) / TILE_HEIGHT * TILE_HEIGHT;
    /* Prefetches if columns are contiguous: hardware does not predict reads of small pieces, as of
     * int8. */
    bool fetches = past && block.in_x <= (long)block.height;
    long columns_bytes = TILE_WIDTH * block.in_x * (long)sizeof(ELEMENT);
    past = past && stores_lines(out, block);
    ulong x = 0;
    for (; x + TILE_WIDTH <= block.width; x += TILE_WIDTH) {
        if ((long)(x + TILE_WIDTH - 1) * block.in_x + height > readable)
            break;
        global const char *columns = (global const char *)(in + (long)x * block.in_x);
        for (long i = 0; fetches && i < columns_bytes; i += CACHE_LINE)
            PREFETCH(columns + i + AHEAD_BYTES);
        for (ulong y = 0; y < block.height; y += TILE_HEIGHT) {
            tile_row tile[TILE_HEIGHT];
            load_tile(tile, in + (long)x * block.in_x + (long)y, block.in_x);
            UNROLL for (uint i = 0; i < TILE_HEIGHT; i++) {
                global ELEMENT *to = out + (long)(y + i) * block.out_y + (long)x;
                if (y + i < block.height) {
                    if (past)
                        STORE_PAST(tile_row, tile[i], to);
                    else
                        store_tile_row(tile[i], to);
                }
            }
        }
    }
    return x;
}

/* Copies the block's columns x >= first. */
static inline void copy_rest(global ELEMENT *out, global const ELEMENT *in, ulong first,
                             struct block block)
{
    if (block.width - first > block.height)
        for (ulong y = 0; y < block.height; y++)
            for (ulong x = first; x < block.width; x++)
                out[(long)y * block.out_y + (long)x] =
                    in[(long)x * block.in_x + (long)y * block.in_y];
    else
        for (ulong x = first; x < block.width; x++)
            for (ulong y = 0; y < block.height; y++)
                out[(long)y * block.out_y + (long)x] =
                    in[(long)x * block.in_x + (long)y * block.in_y];
}

/*
 * The space's elements are blocks of height * width elements. They divide a plane of all_height *
 * all_width elements along the last two axes, y and x. Blocks at the end may be smaller. Operands:
 * out, in. readable: elements of in. past: store past the caches.
 */
KERNEL copy_blocks(SPACE(space), global ELEMENT *out, global const ELEMENT *in, long readable,
                   ulong height, ulong width, ulong all_height, ulong all_width, long out_y,
                   long in_y, long in_x, uint past)
{
    TAKE_SPACE(space);
    for (struct span span = first_span(&space); span.length > 0; next_span(&space, &span))
        for (ulong i = 0; i < span.length; i++) {
            ulong y = (ulong)span.index[space.rank - 2] * height;
            ulong x = ((ulong)span.index[space.rank - 1] + i) * width;
            struct block block = {min(width, all_width - x), min(height, all_height - y), out_y,
                                  in_y, in_x};
            global ELEMENT *to = out + POSITION(space, span, 0, i);
            long from = POSITION(space, span, 1, i);
            ulong done = in_y == 1 ? copy_tiles(to, in + from, readable - from, past, block) : 0;
            copy_rest(to, in + from, done, block);
        }
    if (past)
        FENCE_PAST();
}
