/* Exchanges at the end of a split plan's segments: sums of which each rank has one summand. */
#include <stdlib.h>

#include "opencl/device.h"
#include "run/run.h"

/* ---------------------------------------------------------------- sums of residues */

void healcl_exchange_add(const struct healcl_exchange *exchange, size_t first, size_t count,
                         void *sum, const void *others)
{
    int32_t *sum_32 = (int32_t *)sum + first;
    int64_t *sum_64 = (int64_t *)sum + first;
    size_t modulus = first / exchange->each % exchange->modulus_count;
    size_t left = exchange->each - first % exchange->each;
    for (size_t i = 0; i < count; i++) {
        const uint64_t q = (uint64_t)exchange->moduli[modulus];
        const bool is_64 = exchange->dtype == HEALCL_INT64;
        const uint64_t a = is_64 ? (uint64_t)sum_64[i] : (uint64_t)sum_32[i];
        const uint64_t b =
            is_64 ? (uint64_t)((const int64_t *)others)[i] : (uint64_t)((const int32_t *)others)[i];
        const uint64_t both = a + b; /* below 2^64, because both are below q < 2^63 */
        const uint64_t residue = both >= q ? both - q : both;
        if (is_64)
            sum_64[i] = (int64_t)residue;
        else
            sum_32[i] = (int32_t)residue;
        if (--left == 0) {
            left = exchange->each;
            modulus = modulus + 1 == exchange->modulus_count ? 0 : modulus + 1;
        }
    }
}

/* ---------------------------------------------------------------- memory */

struct exchanger {
    struct executor *executor;
    struct healcl_device *device;
    const struct healcl_session_options *options;
};

/* The contiguous range from a view's first element to its last. */
static struct tensor span_of(const struct tensor *tensor)
{
    const int64_t size = layout_span(&tensor->layout);
    struct tensor span = {tensor->storage, layout_of_shape(1, &size)};
    span.layout.offset = tensor->layout.offset;
    return span;
}

/* Maps or unmaps the range that a tensor spans. */
static enum healcl_status exchange_map(const struct exchanger *exchanger,
                                       const struct tensor *tensor, bool back, void **data,
                                       struct healcl_error *error)
{
    struct executor *executor = exchanger->executor;
    const struct executor_class *class = executor->class;
    const struct tensor span = span_of(tensor);
    enum healcl_status status = HEALCL_OK;
    device_turn_begin(exchanger->device);
    if (!back)
        status = class->map(executor, &span, data, error);
    else if (class->unmap)
        status = class->unmap(executor, &span, *data, error);
    device_turn_end(exchanger->device);
    return status;
}

/* ---------------------------------------------------------------- one exchange */

/* Sorts the axes of both views by descending strides of the first view, so that its elements are in
 * order. */
static void sort_axes(struct layout *sum, struct layout *moduli)
{
    struct layout by_sum = {.offset = sum->offset}, by_moduli = {.offset = moduli->offset};
    bool done[LAYOUT_RANK] = {false};
    for (uint32_t i = 0; i < sum->rank; i++) {
        int longest = -1;
        for (uint32_t axis = 0; axis < sum->rank; axis++)
            if (!done[axis] && (longest < 0 || sum->stride[axis] > sum->stride[longest]))
                longest = (int)axis;
        done[longest] = true;
        if (sum->shape[longest] > 1) {
            by_sum.shape[by_sum.rank] = by_moduli.shape[by_sum.rank] = sum->shape[longest];
            by_sum.stride[by_sum.rank] = sum->stride[longest];
            by_moduli.stride[by_sum.rank++] = moduli->stride[longest];
        }
    }
    by_moduli.rank = by_sum.rank;
    *sum = by_sum;
    *moduli = by_moduli;
}

/* Reads the moduli, which vary along one axis of the sum. The caller frees *values. */
static enum healcl_status read_moduli(const struct exchanger *exchanger,
                                      const struct tensor *moduli, struct healcl_exchange *exchange,
                                      int64_t **values, struct healcl_error *error)
{
    const struct layout *layout = &moduli->layout;
    int64_t stride = 0;
    exchange->modulus_count = exchange->each = 1;
    for (uint32_t axis = 0; axis < layout->rank; axis++)
        if (layout->stride[axis] != 0) {
            stride = layout->stride[axis];
            exchange->modulus_count = (size_t)layout->shape[axis];
            exchange->each = 1;
        } else {
            exchange->each *= (size_t)layout->shape[axis];
        }
    *values = malloc(exchange->modulus_count * sizeof **values);
    NEED_MEMORY(*values, error);
    exchange->moduli = *values;
    void *data = NULL;
    TRY(exchange_map(exchanger, moduli, false, &data, error));
    for (size_t i = 0; i < exchange->modulus_count; i++)
        (*values)[i] = dtype_load(moduli->storage->dtype, data, (int64_t)i * stride);
    return exchange_map(exchanger, moduli, true, &data, error);
}

/* The function gets the elements in place, or a packed copy. */
static enum healcl_status exchange_data(const struct exchanger *exchanger, const struct tensor *sum,
                                        const struct healcl_exchange *exchange, void *data,
                                        struct healcl_error *error)
{
    const struct healcl_session_options *options = exchanger->options;
    if (layout_is_contiguous(&sum->layout))
        return options->exchange(options->exchange_context, exchange, data, error);
    const size_t size = dtype_size(sum->storage->dtype);
    struct layout mapped = sum->layout;
    mapped.offset = 0;
    void *packed = malloc(exchange->elements * size);
    NEED_MEMORY(packed, error);
    layout_copy_packed(&mapped, size, data, packed, false);
    enum healcl_status status =
        options->exchange(options->exchange_context, exchange, packed, error);
    if (status == HEALCL_OK)
        layout_copy_packed(&mapped, size, data, packed, true);
    free(packed);
    return status;
}

static enum healcl_status exchange_sum(const struct exchanger *exchanger, const struct exchange *of,
                                       struct healcl_exchange *exchange, struct healcl_error *error)
{
    struct tensor sum = *of->sum, moduli = *of->moduli;
    int64_t *values = NULL;
    void *data = NULL;
    sort_axes(&sum.layout, &moduli.layout);
    exchange->dtype = (enum healcl_dtype)sum.storage->dtype;
    exchange->elements = (size_t)layout_elements(&sum.layout);
    enum healcl_status status = read_moduli(exchanger, &moduli, exchange, &values, error);
    if (status == HEALCL_OK)
        status = exchange_map(exchanger, &sum, false, &data, error);
    if (status == HEALCL_OK) {
        status = exchange_data(exchanger, &sum, exchange, data, error);
        const enum healcl_status end =
            exchange_map(exchanger, &sum, true, &data, status ? NULL : error);
        status = status == HEALCL_OK ? end : status;
        if (exchanger->executor->class->written)
            exchanger->executor->class->written(exchanger->executor, sum.storage);
    }
    free(values);
    return status;
}

enum healcl_status exchange_segment(struct executor *executor, struct healcl_device *device,
                                    const struct plan *plan, size_t segment,
                                    const struct healcl_session_options *options,
                                    struct healcl_error *error)
{
    const struct exchanger exchanger = {executor, device, options};
    const struct segment *of = &plan->segments[segment];
    for (size_t i = 0; i < of->exchange_count; i++) {
        struct healcl_exchange exchange = {.segment = segment, .number = i};
        TRY(exchange_sum(&exchanger, &of->exchanges[i], &exchange, error));
    }
    return HEALCL_OK;
}
