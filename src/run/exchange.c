/* Exchanges at the end of a split plan's segments: sums of which each rank has one summand. */
#include <stdlib.h>

#include "opencl/device.h"
#include "run/run.h"

/* ---------------------------------------------------------------- sums of residues */

/* Adds the summands of another rank to elements [first, first + count) of a sum of residues, modulo
 * their moduli. `each` consecutive elements have the same modulus; after the last modulus the first
 * one follows. others[0] belongs to element `first`. */
void healcl_exchange_add(const struct healcl_exchange *exchange, size_t first, size_t count,
                         void *sum, const void *others)
{
    const enum dtype dtype = (enum dtype)exchange->dtype;
    size_t modulus = first / exchange->each % exchange->modulus_count;
    size_t left = exchange->each - first % exchange->each; /* elements with this modulus */
    for (size_t i = 0; i < count; i++) {
        const uint64_t q = (uint64_t)exchange->moduli[modulus];
        const int64_t at = (int64_t)(first + i);
        const uint64_t a = (uint64_t)dtype_load(dtype, sum, at);
        const uint64_t b = (uint64_t)dtype_load(dtype, others, (int64_t)i);
        const uint64_t both = a + b; /* below 2^64, because both are below q < 2^63 */
        dtype_store(dtype, sum, at, (int64_t)(both >= q ? both - q : both));
        if (--left == 0) {
            left = exchange->each;
            modulus = modulus + 1 == exchange->modulus_count ? 0 : modulus + 1;
        }
    }
}

/* ---------------------------------------------------------------- memory */

enum { MAPS = false, UNMAPS = true }; /* for exchange_map */

struct exchanger {
    struct executor *executor;
    struct healcl_device *device;
    const struct healcl_session_options *options;
};

/* The contiguous range from a view's first element to its last, as a tensor of one axis. Executors
 * map only contiguous tensors. */
static struct tensor span_of(const struct tensor *tensor)
{
    const int64_t size = layout_span(&tensor->layout);
    struct tensor span = {tensor->storage, layout_of_shape(1, &size)};
    span.layout.offset = tensor->layout.offset;
    return span;
}

/* Maps the range that a tensor spans, or ends its mapping, during a turn of the device. The
 * reference needs no unmapping. */
static enum healcl_status exchange_map(const struct exchanger *exchanger,
                                       const struct tensor *tensor, bool unmaps, void **data,
                                       struct healcl_error *error)
{
    struct executor *executor = exchanger->executor;
    const struct executor_class *class = executor->class;
    const struct tensor span = span_of(tensor);
    enum healcl_status status = HEALCL_OK;
    device_turn_begin(exchanger->device);
    if (!unmaps)
        status = class->map(executor, &span, data, error);
    else if (class->unmap)
        status = class->unmap(executor, &span, *data, error);
    device_turn_end(exchanger->device);
    return status;
}

/* ---------------------------------------------------------------- one exchange */

/* Sorts the axes of both views by descending strides of the sum. The sum's elements are then in the
 * order of memory, which is the same on all ranks. The moduli keep their axes beside the sum's. */
static void sort_axes(struct layout *sum, struct layout *moduli)
{
    for (uint32_t sorted = 0; sorted < sum->rank; sorted++) {
        uint32_t longest = sorted;
        for (uint32_t axis = sorted + 1; axis < sum->rank; axis++)
            if (sum->stride[axis] > sum->stride[longest])
                longest = axis;
        *sum = layout_move_axis(sum, longest, sorted);
        *moduli = layout_move_axis(moduli, longest, sorted);
    }
}

/* Reads the moduli of a sum, which vary along one axis at most: where their view's stride is not 0,
 * and the size is not 1. Axes behind that one give `each`, the number of elements in a row with the
 * same modulus. The caller frees *values. */
static enum healcl_status read_moduli(const struct exchanger *exchanger,
                                      const struct tensor *moduli, struct healcl_exchange *exchange,
                                      int64_t **values, struct healcl_error *error)
{
    const struct layout *layout = &moduli->layout;
    int64_t stride = 0;
    exchange->modulus_count = exchange->each = 1;
    for (uint32_t axis = 0; axis < layout->rank; axis++)
        if (layout->stride[axis] != 0 && layout->shape[axis] != 1) {
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
    TRY(exchange_map(exchanger, moduli, MAPS, &data, error));
    for (size_t i = 0; i < exchange->modulus_count; i++)
        (*values)[i] = dtype_load(moduli->storage->dtype, data, (int64_t)i * stride);
    return exchange_map(exchanger, moduli, UNMAPS, &data, error);
}

/* Calls the user's function with the elements of a sum, in place if they are contiguous, or packed.
 * data: the mapped range of the sum. A packed copy is copied back if the exchange succeeds. */
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
    layout_copy_packed(&mapped, size, data, packed, false); /* to packed */
    enum healcl_status status =
        options->exchange(options->exchange_context, exchange, packed, error);
    if (status == HEALCL_OK)
        layout_copy_packed(&mapped, size, data, packed, true); /* and back */
    free(packed);
    return status;
}

/* Completes one sum: reads its moduli, maps it, has the user's function add what other ranks have,
 * and unmaps it. Unmaps even after an error; the first error is reported. */
static enum healcl_status exchange_sum(const struct exchanger *exchanger,
                                       const struct exchange *planned,
                                       struct healcl_exchange *exchange, struct healcl_error *error)
{
    struct tensor sum = *planned->sum, moduli = *planned->moduli;
    int64_t *values = NULL;
    void *data = NULL;
    sort_axes(&sum.layout, &moduli.layout);
    exchange->dtype = (enum healcl_dtype)sum.storage->dtype;
    exchange->elements = (size_t)layout_elements(&sum.layout);
    enum healcl_status status = read_moduli(exchanger, &moduli, exchange, &values, error);
    THEN(status, exchange_map(exchanger, &sum, MAPS, &data, error));
    if (status == HEALCL_OK) {
        status = exchange_data(exchanger, &sum, exchange, data, error);
        const enum healcl_status unmap_status =
            exchange_map(exchanger, &sum, UNMAPS, &data, status == HEALCL_OK ? error : NULL);
        status = status == HEALCL_OK ? unmap_status : status;
        if (exchanger->executor->class->written)
            exchanger->executor->class->written(exchanger->executor, sum.storage);
    }
    free(values);
    return status;
}

/* Completes the sums at the end of a segment of a split plan: each rank has computed one summand of
 * each. */
enum healcl_status exchange_segment(struct executor *executor, struct healcl_device *device,
                                    const struct plan *plan, size_t segment,
                                    const struct healcl_session_options *options,
                                    struct healcl_error *error)
{
    const struct exchanger exchanger = {executor, device, options};
    const struct segment *planned_segment = &plan->segments[segment];
    for (size_t i = 0; i < planned_segment->exchange_count; i++) {
        struct healcl_exchange exchange = {.segment = segment, .number = i};
        TRY(exchange_sum(&exchanger, &planned_segment->exchanges[i], &exchange, error));
    }
    return HEALCL_OK;
}
