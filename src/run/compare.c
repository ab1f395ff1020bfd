#include "run/compare.h"

#include <string.h>

#include "core/parallel.h"

enum { BLOCK_BYTES = 32 * 1024 };

bool comparison_is_equal(const struct comparison *comparison)
{
    return comparison->same_shape && comparison->different == 0;
}

/* Counts an element that differs. Stores its position and values if it is among the first. */
static void comparison_note(struct comparison *comparison, int64_t position, int64_t actual,
                            int64_t expected)
{
    comparison->different++;
    if (comparison->first_count == COMPARISON_FIRST)
        return;
    comparison->first[comparison->first_count].position = position;
    comparison->first[comparison->first_count].actual = actual;
    comparison->first[comparison->first_count++].expected = expected;
}

/* Whether a result has the shape that is expected. A widened transcript, which runs several
 * requests at once, has one more axis: its result is `copies` times the expected one. */
bool compare_same_shape(const struct layout *shape, const struct payload *expected)
{
    if (expected->copies == 0)
        return layout_same_shape(shape, &expected->layout);
    const struct layout request = layout_drop_axis(shape, 0);
    return shape->shape[0] == expected->copies && layout_same_shape(&request, &expected->layout);
}

/* Elements from `first` on, stored at data, and the differences found in each part. */
struct piece {
    enum dtype dtype;
    int64_t first;
    const char *data;
    const struct payload *expected;
    struct comparison parts[PARALLEL_PARTS_MAX];
};

/* Compares the elements [offset, offset + elements) of a piece, for one thread. The expected values
 * are decoded block by block. Blocks end with each copy of a widened result, where the expected
 * tensor begins anew. Equal bytes are compared at once; elements only in blocks that differ. */
static enum healcl_status compare_part(void *context, uint32_t part, int64_t offset,
                                       int64_t elements, struct healcl_error *error)
{
    int64_t block[BLOCK_BYTES / sizeof(int64_t)];
    struct piece *piece = context;
    struct comparison *comparison = &piece->parts[part];
    const struct payload *expected = piece->expected;
    const enum dtype dtype = piece->dtype;
    const char *actual = piece->data + (size_t)offset * dtype_size(dtype);
    *comparison = (struct comparison){.same_shape = true};
    const bool is_same_dtype = expected->dtype == dtype;
    const enum dtype block_dtype = is_same_dtype ? dtype : DTYPE_INT64; /* holds all values */
    const int64_t block_elements = (int64_t)(BLOCK_BYTES / dtype_size(block_dtype));
    const int64_t copy = layout_elements(&expected->layout);
    const int64_t end = piece->first + offset + elements;
    int64_t count; /* elements of the current block */
    for (int64_t first = piece->first + offset; first < end; first += count) {
        const int64_t place = first % copy; /* in the expected tensor */
        count = end - first < block_elements ? end - first : block_elements;
        count = copy - place < count ? copy - place : count;
        TRY(payload_read_part(expected, block_dtype, place, count, block, error));
        const size_t bytes = (size_t)count * dtype_size(dtype);
        const bool is_equal = is_same_dtype && memcmp(actual, block, bytes) == 0;
        for (int64_t i = 0; !is_equal && i < count; i++) {
            const int64_t a = dtype_load(dtype, actual, i), b = dtype_load(block_dtype, block, i);
            if (a != b)
                comparison_note(comparison, first + i, a, b);
        }
        actual += bytes;
    }
    return HEALCL_OK;
}

/* Compares a piece of a result, divided among threads. Their parts are then added in order, so that
 * the first differences are those that come first in the tensor. Each part stores only its first
 * ones, but counts all. */
enum healcl_status compare_piece(enum dtype dtype, int64_t first, int64_t elements,
                                 const void *data, const struct payload *expected,
                                 struct comparison *comparison, struct healcl_error *error)
{
    struct piece piece = {.dtype = dtype, .first = first, .data = data, .expected = expected};
    uint32_t parts;
    TRY(parallel_do(elements, dtype_size(dtype), compare_part, &piece, &parts, error));
    for (uint32_t part = 0; part < parts; part++) {
        const struct comparison *part_comparison = &piece.parts[part];
        const uint64_t not_stored = part_comparison->different - part_comparison->first_count;
        for (uint32_t i = 0; i < part_comparison->first_count; i++)
            comparison_note(comparison, part_comparison->first[i].position,
                            part_comparison->first[i].actual, part_comparison->first[i].expected);
        comparison->different += not_stored;
    }
    return HEALCL_OK;
}

/* Compares a whole result with the expected tensor. A result of another shape is not compared
 * element by element. */
enum healcl_status compare_result(const struct layout *shape, enum dtype dtype, const void *data,
                                  const struct payload *expected, struct comparison *comparison,
                                  struct healcl_error *error)
{
    *comparison = (struct comparison){.same_shape = compare_same_shape(shape, expected)};
    if (!comparison->same_shape)
        return HEALCL_OK;
    return compare_piece(dtype, 0, layout_elements(shape), data, expected, comparison, error);
}
