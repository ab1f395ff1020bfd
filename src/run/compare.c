#include "run/compare.h"

#include <string.h>

#include "core/parallel.h"

enum { BLOCK_BYTES = 32 * 1024 };

bool comparison_is_equal(const struct comparison *comparison)
{
    return comparison->same_shape && comparison->different == 0;
}

/* Counts an element that differs. Stores it if it is among the first. */
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

bool compare_same_shape(const struct layout *shape, const struct payload *expected)
{
    if (expected->copies == 0)
        return layout_same_shape(shape, &expected->layout);
    const struct layout one = layout_drop_axis(shape, 0);
    return shape->shape[0] == expected->copies && layout_same_shape(&one, &expected->layout);
}

/* Elements from `first` on, stored at data, and the differences found in each part. */
struct piece {
    enum dtype dtype;
    int64_t first;
    const char *data;
    const struct payload *expected;
    struct comparison parts[PARALLEL_PARTS_MAX];
};

static enum healcl_status compare_part(void *context, uint32_t part, int64_t at, int64_t elements,
                                       struct healcl_error *error)
{
    int64_t block[BLOCK_BYTES / sizeof(int64_t)];
    struct piece *piece = context;
    struct comparison *comparison = &piece->parts[part];
    const struct payload *expected = piece->expected;
    const enum dtype dtype = piece->dtype;
    const char *actual = piece->data + (size_t)at * dtype_size(dtype);
    int64_t first = piece->first + at;
    *comparison = (struct comparison){.same_shape = true};
    const bool is_same = expected->dtype == dtype;
    const enum dtype as = is_same ? dtype : DTYPE_INT64; /* a type that holds all values */
    const int64_t block_elements = (int64_t)(BLOCK_BYTES / dtype_size(as));
    const int64_t copy = layout_elements(&expected->layout);
    for (int64_t count, end = first + elements; first < end;
         first += count, actual += (size_t)count * dtype_size(dtype)) {
        count = copy - first % copy; /* elements left of this copy */
        count = end - first < count ? end - first : count;
        count = block_elements < count ? block_elements : count;
        TRY(payload_read_part(expected, as, first % copy, count, block, error));
        if (is_same && memcmp(actual, block, (size_t)count * dtype_size(dtype)) == 0)
            continue;
        for (int64_t i = 0; i < count; i++) {
            int64_t a = dtype_load(dtype, actual, i), b = dtype_load(as, block, i);
            if (a != b)
                comparison_note(comparison, first + i, a, b);
        }
    }
    return HEALCL_OK;
}

enum healcl_status compare_piece(enum dtype dtype, int64_t first, int64_t elements,
                                 const void *data, const struct payload *expected,
                                 struct comparison *comparison, struct healcl_error *error)
{
    struct piece piece = {.dtype = dtype, .first = first, .data = data, .expected = expected};
    uint32_t parts;
    TRY(parallel_do(elements, dtype_size(dtype), compare_part, &piece, &parts, error));
    for (uint32_t part = 0; part < parts; part++) {
        const struct comparison *found = &piece.parts[part];
        const uint64_t unnamed = found->different - found->first_count;
        for (uint32_t i = 0; i < found->first_count; i++)
            comparison_note(comparison, found->first[i].position, found->first[i].actual,
                            found->first[i].expected);
        comparison->different += unnamed;
    }
    return HEALCL_OK;
}

enum healcl_status compare_result(const struct layout *shape, enum dtype dtype, const void *data,
                                  const struct payload *expected, struct comparison *comparison,
                                  struct healcl_error *error)
{
    *comparison = (struct comparison){.same_shape = compare_same_shape(shape, expected)};
    if (!comparison->same_shape)
        return HEALCL_OK;
    return compare_piece(dtype, 0, layout_elements(shape), data, expected, comparison, error);
}
