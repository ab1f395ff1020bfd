#include "run/compare.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_BYTES = 64 * 1024,
    BLOCK_VALUES = BLOCK_BYTES / sizeof(int64_t),
};

bool comparison_is_equal(const struct comparison *comparison)
{
    return comparison->same_shape && comparison->different == 0;
}

/* Counts an element that differs and keeps it if it is among the first. */
static void note(struct comparison *comparison, int64_t position, int64_t actual, int64_t expected)
{
    comparison->different++;
    uint32_t place = comparison->first_count;
    while (place > 0 && comparison->first[place - 1].position > position)
        place--;
    if (place == COMPARISON_FIRST)
        return;
    uint32_t last = comparison->first_count;
    if (last < COMPARISON_FIRST)
        comparison->first_count++;
    else
        last--;
    for (; last > place; last--)
        comparison->first[last] = comparison->first[last - 1];
    comparison->first[place].position = position;
    comparison->first[place].actual = actual;
    comparison->first[place].expected = expected;
}

bool compare_takes_pieces(const struct payload *expected, enum dtype dtype)
{
    return expected->dtype == dtype && !expected->fortran_order && !expected->escaped;
}

bool compare_same_shape(const struct layout *shape, const struct payload *expected)
{
    if (expected->copies == 0)
        return layout_same_shape(shape, &expected->layout);
    const struct layout one = layout_drop_axis(shape, 0);
    return shape->shape[0] == expected->copies && layout_same_shape(&one, &expected->layout);
}

/* As compare_piece, with a block of BLOCK_BYTES to work in. */
static enum healcl_status compare_bytes(enum dtype dtype, int64_t first, int64_t elements,
                                        const char *actual, const struct payload *expected,
                                        void *block, struct comparison *comparison,
                                        struct healcl_error *error)
{
    const int64_t block_elements = (int64_t)(BLOCK_BYTES / dtype_size(dtype));
    const int64_t copy = layout_elements(&expected->layout);
    for (int64_t count, end = first + elements; first < end;
         first += count, actual += (size_t)count * dtype_size(dtype)) {
        count = copy - first % copy; /* left of this copy */
        count = end - first < count ? end - first : count;
        count = block_elements < count ? block_elements : count;
        TRY(payload_read_part(expected, dtype, first % copy, count, block, error));
        if (memcmp(actual, block, (size_t)count * dtype_size(dtype)) == 0)
            continue;
        for (int64_t i = 0; i < count; i++) {
            int64_t a = dtype_load(dtype, actual, i), b = dtype_load(dtype, block, i);
            if (a != b)
                note(comparison, first + i, a, b);
        }
    }
    return HEALCL_OK;
}

/* The layout that walks C-order positions in the order of the file. */
static struct layout file_order(const struct payload *payload)
{
    struct layout packed = layout_packed(&payload->layout);
    if (!payload->fortran_order)
        return packed;
    struct layout reversed = packed;
    for (uint32_t axis = 0; axis < packed.rank; axis++) {
        reversed.shape[axis] = packed.shape[packed.rank - 1 - axis];
        reversed.stride[axis] = packed.stride[packed.rank - 1 - axis];
    }
    return reversed;
}

/* Elements from number first on, of one copy. */
static void compare_values(enum dtype dtype, int64_t first, const void *data,
                           const struct payload *expected, int64_t *block,
                           struct comparison *comparison)
{
    struct layout order = file_order(expected);
    const struct layout *layouts[] = {&order};
    struct payload_cursor cursor;
    payload_cursor_init(&cursor, expected);
    struct walk walk;
    int64_t used = 0, have = 0;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk)) {
        if (used == have) {
            have = walk.left < BLOCK_VALUES ? walk.left : BLOCK_VALUES;
            used = 0;
            payload_cursor_next(&cursor, have, block);
        }
        int64_t actual = dtype_load(dtype, data, first + walk.position[0]);
        if (actual != block[used])
            note(comparison, first + walk.position[0], actual, block[used]);
        used++;
    }
}

enum healcl_status compare_piece(enum dtype dtype, int64_t first, int64_t elements,
                                 const void *data, const struct payload *expected,
                                 struct comparison *comparison, struct healcl_error *error)
{
    void *block = malloc(BLOCK_BYTES);
    if (!block)
        NO_MEMORY(error);
    enum healcl_status status =
        compare_bytes(dtype, first, elements, data, expected, block, comparison, error);
    free(block);
    return status;
}

/* A part that does not come piece by piece: all of it is read. */
static enum healcl_status compare_part(enum dtype dtype, const void *data,
                                       const struct payload *expected,
                                       struct comparison *comparison, struct healcl_error *error)
{
    const int64_t count = layout_elements(&expected->layout);
    int64_t *values = malloc((size_t)count * sizeof *values);
    if (!values)
        NO_MEMORY(error);
    enum healcl_status status = payload_read(expected, DTYPE_INT64, values, error);
    for (int64_t i = 0; i < count && status == HEALCL_OK; i++) {
        const int64_t actual = dtype_load(dtype, data, i);
        if (actual != values[i])
            note(comparison, i, actual, values[i]);
    }
    free(values);
    return status;
}

enum healcl_status compare_result(const struct layout *shape, enum dtype dtype, const void *data,
                                  const struct payload *expected, struct comparison *comparison,
                                  struct healcl_error *error)
{
    *comparison = (struct comparison){.same_shape = compare_same_shape(shape, expected)};
    if (!comparison->same_shape)
        return HEALCL_OK;
    if (compare_takes_pieces(expected, dtype))
        return compare_piece(dtype, 0, layout_elements(shape), data, expected, comparison, error);
    if (expected->part.period > 0)
        return compare_part(dtype, data, expected, comparison, error);
    int64_t *block = malloc(BLOCK_BYTES);
    if (!block)
        NO_MEMORY(error);
    const int64_t copy = layout_elements(&expected->layout), all = layout_elements(shape);
    for (int64_t first = 0; first < all; first += copy)
        compare_values(dtype, first, data, expected, block, comparison);
    free(block);
    return HEALCL_OK;
}
