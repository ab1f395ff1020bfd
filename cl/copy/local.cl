/* Copies between views with different orders of elements, through local memory: neighbours both
 * read and write neighbours. ELEMENT: char, int or long. */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif

/*
 * The space's elements are tiles of 2^log2_height * 2^log2_width elements, one for each work-group.
 * They divide a plane of all_height * all_width elements along the last two axes, y and x. Tiles at
 * the end may be smaller. out has stride 1 along x, and in has its smallest stride along y.
 * Operands: out, in.
 */
KERNEL copy_transpose(SPACE(space), global ELEMENT *out, global const ELEMENT *in,
                      uint log2_height, uint log2_width, uint all_height, uint all_width,
                      long out_y, long in_y, long in_x)
{
    TAKE_SPACE(space);
    enum { ELEMENTS = COPY_TILE_BYTES / sizeof(ELEMENT) };
    local ELEMENT tile[ELEMENTS + ELEMENTS / 2];
    struct span span = span_at(&space, get_group_id(0));
    place_t to = POSITION(space, span, 0, 0), from = POSITION(space, span, 1, 0);
    uint row = (1u << log2_width) + 1; /* odd, to spread columns over the banks */
    uint height = all_height - ((uint)span.index[RANK(space) - 2] << log2_height);
    uint width = all_width - ((uint)span.index[RANK(space) - 1] << log2_width);
    for (uint i = get_local_id(0); i < ELEMENTS; i += LOCAL_SIZE) {
        uint x = i >> log2_height, y = i & ((1u << log2_height) - 1);
        if (x < width && y < height)
            tile[y * row + x] =
                AT(in, from + (place_t)y * (place_t)in_y + (place_t)x * (place_t)in_x);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_local_id(0); i < ELEMENTS; i += LOCAL_SIZE) {
        uint x = i & ((1u << log2_width) - 1), y = i >> log2_width;
        if (x < width && y < height)
            AT(out, to + (place_t)y * (place_t)out_y + (place_t)x) = tile[y * row + x];
    }
}
