#include "transcript/payload.h"

#include <string.h>

#include "core/copy.h"
#include "core/numbers.h"
#include "core/parallel.h"
#include "transcript/base64.h"
#include "transcript/npy.h"

/* Number of elements that are converted at a time. */
enum { BLOCK_ELEMENTS = 2048 };

/* ---------------------------------------------------------------- bytes */

/* Decodes groups from number `at` on, from base64 with JSON escapes. */
static enum healcl_status decode_escaped(const struct payload *payload, uint64_t at,
                                         uint64_t groups, unsigned char *bytes,
                                         struct healcl_error *error)
{
    char text[BASE64_BLOCK];
    size_t place = payload->blocks[at * 4 / BASE64_BLOCK], count = at * 4 % BASE64_BLOCK;
    (void)base64_unescape(payload->data, payload->length, &place, text, count);
    for (; groups > 0; groups -= count, at += count, bytes += count * 3) {
        count = groups < sizeof text / 4 ? (size_t)groups : sizeof text / 4;
        if (base64_unescape(payload->data, payload->length, &place, text, count * 4) < count * 4 ||
            !base64_decode(text, count, at + count == payload->characters / 4, bytes))
            REFUSE(error, "base64: it changed while it was decoded");
    }
    return HEALCL_OK;
}

/* Decodes groups from number `at` on. */
static enum healcl_status decode(const struct payload *payload, uint64_t at, uint64_t groups,
                                 unsigned char *bytes, struct healcl_error *error)
{
    uint64_t decoded;
    if (payload->blocks)
        return decode_escaped(payload, at, groups, bytes, error);
    if (base64_decode(payload->data + at * 4, (size_t)groups, at + groups == payload->length / 4,
                      bytes))
        return HEALCL_OK;
    TRY(base64_check(payload->data, payload->length, base64_good(payload->data, payload->length),
                     &decoded, error));
    REFUSE(error, "base64: it changed while it was decoded");
}

/* Reads bytes of the .npy file from offset `byte` on. Returns zeros beyond its end, which checked
 * payloads never reach. Only a file that changes while it is mapped does. */
enum healcl_status payload_read_file(const struct payload *payload, uint64_t byte, size_t count,
                                     void *bytes, struct healcl_error *error)
{
    unsigned char *next = bytes, group[3];
    if (payload->is_raw) {
        const size_t left = byte < payload->length ? payload->length - (size_t)byte : 0;
        const size_t taken = count < left ? count : left;
        copy_bytes(next, payload->data + (taken > 0 ? byte : 0), taken);
        memset(next + taken, 0, count - taken);
        return HEALCL_OK;
    }
    const uint64_t groups = payload->characters / 4;
    for (size_t taken; count > 0; next += taken, byte += taken, count -= taken) {
        const uint64_t at = byte / 3;
        const size_t skipped = byte % 3;
        if (at >= groups) {
            memset(next, 0, count);
            break;
        }
        if (skipped == 0 && count >= 3) {
            taken = count / 3 < groups - at ? count / 3 : (size_t)(groups - at);
            TRY(decode(payload, at, taken, next, error));
            taken *= 3;
        } else {
            taken = count < 3 - skipped ? count : 3 - skipped;
            TRY(decode(payload, at, 1, group, error));
            memcpy(next, group + skipped, taken);
        }
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- elements */

static bool needs_swap(const struct payload *payload)
{
    return payload->dtype != DTYPE_INT8 && payload->big_endian == host_is_little_endian();
}

/* Reads elements in the file's representation, from number `first` on. */
static enum healcl_status payload_read_elements(const struct payload *payload, int64_t first,
                                                size_t count, void *array,
                                                struct healcl_error *error)
{
    const size_t size = dtype_size(payload->dtype);
    return payload_read_file(payload, payload->data_offset + (uint64_t)first * size, count * size,
                             array, error);
}

/* Reads at most BLOCK_ELEMENTS elements as values. */
static enum healcl_status read_block(const struct payload *payload, int64_t first, size_t count,
                                     int64_t *values, struct healcl_error *error)
{
    int64_t elements[BLOCK_ELEMENTS];
    const bool swaps = needs_swap(payload);
    memset(elements, 0, count * sizeof *elements); /* for static analysis */
    TRY(payload_read_elements(payload, first, count, elements, error));
    for (size_t i = 0; i < count; i++) {
        values[i] = dtype_load(payload->dtype, elements, (int64_t)i);
        if (swaps)
            values[i] = payload->dtype == DTYPE_INT32
                            ? (int32_t)__builtin_bswap32((uint32_t)values[i])
                            : (int64_t)__builtin_bswap64((uint64_t)values[i]);
    }
    return HEALCL_OK;
}

/* The position of an element in the file. element: counted in C order, in the part that the payload
 * describes. */
static int64_t file_position(const struct payload *payload, int64_t element)
{
    const struct layout *layout = &payload->layout;
    const struct healcl_part *part = &payload->part;
    int64_t position = 0, stride = 1;
    if (part->period == 0 && !payload->fortran_order)
        return element;
    for (uint32_t i = 0; i < layout->rank; i++) {
        const uint32_t axis = payload->fortran_order ? i : layout->rank - 1 - i;
        int64_t size = layout->shape[axis], index = element / layout->stride[axis] % size;
        if (part->period > 0 && axis == part->axis) {
            index = index / part->size * part->period + part->start + index % part->size;
            size = size / part->size * part->period;
        }
        position += index * stride;
        stride *= size;
    }
    return position;
}

/* ---------------------------------------------------------------- parsing */

static enum healcl_status read_npy(const struct payload *payload, uint64_t decoded,
                                   uint32_t *data_offset, struct npy_header *header,
                                   struct healcl_error *error)
{
    unsigned char prefix[NPY_PREFIX_SIZE] = {0};
    char text[NPY_HEADER_MAX];
    uint32_t header_offset;
    size_t prefix_length = decoded < sizeof prefix ? (size_t)decoded : sizeof prefix;
    TRY(payload_read_file(payload, 0, prefix_length, prefix, error));
    TRY(npy_read_prefix(prefix, prefix_length, &header_offset, data_offset, error));
    if (*data_offset > decoded)
        REFUSE(error, "the .npy file ends within its header");
    size_t header_length = *data_offset - header_offset;
    TRY(payload_read_file(payload, header_offset, header_length, text, error));
    return npy_read_header(prefix[6], text, header_length, header, error);
}

/* Whether C and Fortran order put elements at different positions. */
static bool orders_differ(const struct layout *layout)
{
    int longer_axes = 0;
    for (uint32_t axis = 0; axis < layout->rank; axis++)
        longer_axes += layout->shape[axis] > 1;
    return longer_axes > 1 && layout_elements(layout) > 0;
}

/* Reads the header of a .npy file of this many bytes. */
static enum healcl_status parse(struct payload *payload, uint64_t decoded,
                                struct healcl_error *error)
{
    struct npy_header header = {.big_endian = false};
    TRY(read_npy(payload, decoded, &payload->data_offset, &header, error));

    /* layout_init has ensured that this product does not overflow. */
    uint64_t needed = (uint64_t)layout_elements(&header.layout) * dtype_size(header.dtype);
    uint64_t given = decoded - payload->data_offset;
    if (given != needed) {
        char shape[SHAPE_TEXT_SIZE];
        REFUSE(error, "the .npy data are %" PRIu64 " bytes long, but %" PRIu64 " by shape %s of %s",
               given, needed, layout_shape_text(&header.layout, shape), dtype_name(header.dtype));
    }
    payload->dtype = header.dtype;
    payload->big_endian = header.big_endian;
    payload->fortran_order = header.fortran_order && orders_differ(&header.layout);
    payload->layout = header.layout;
    return HEALCL_OK;
}

enum healcl_status payload_parse(const char *base64, size_t length, size_t good,
                                 struct arena *arena, struct payload *payload,
                                 struct healcl_error *error)
{
    uint64_t decoded;
    *payload = (struct payload){.data = base64, .length = length, .characters = length};
    if (memchr(base64 + good, '\\', length - good)) {
        size_t *blocks = arena_alloc(arena, (length / BASE64_BLOCK + 1) * sizeof *blocks);
        NEED_MEMORY(blocks, error);
        payload->blocks = blocks;
        TRY(base64_check_escaped(base64, length, blocks, &payload->characters, &decoded, error));
    } else {
        TRY(base64_check(base64, length, good, &decoded, error));
    }
    return parse(payload, decoded, error);
}

enum healcl_status payload_parse_raw(const char *npy, size_t length, struct payload *payload,
                                     struct healcl_error *error)
{
    *payload = (struct payload){.data = npy, .length = length, .is_raw = true};
    return parse(payload, length, error);
}

/* ---------------------------------------------------------------- reading */

/* Where values are stored: elements of an array of dtype. Elements that are neighbours in the file
 * are `stride` apart in the array, since the file may be in Fortran order. Every `run`
 * elements of the payload, a multiple of stride, such neighbours end. */
struct target {
    const struct payload *payload;
    enum dtype dtype;
    void *array;
    int64_t first; /* the C-order position in the payload of the array's first element */
    int64_t stride, run;
};

/* Stores values that are neighbours in the file, from a position of the array on. */
static enum healcl_status store(const struct target *target, const int64_t *values, size_t count,
                                int64_t position, struct healcl_error *error)
{
    char index[SHAPE_TEXT_SIZE];
    int64_t good = 0;
    while (good < (int64_t)count && dtype_holds(target->dtype, values[good]))
        good++;
    for (int64_t i = 0; i < good; i++)
        dtype_store(target->dtype, target->array, position + i * target->stride, values[i]);
    if (good < (int64_t)count)
        REFUSE_FOR(error, DATA, "value %" PRId64 " at %s does not fit %s", values[good],
                   layout_index_text(&target->payload->layout,
                                     target->first + position + good * target->stride, index),
                   dtype_name(target->dtype));
    return HEALCL_OK;
}

enum healcl_status payload_check_data(const struct payload *payload, struct healcl_error *error)
{
    if (!payload->data)
        REFUSE_FOR(error, STATE,
                   "it has a dtype and a shape, but no data: the run must be given its data");
    return HEALCL_OK;
}

/* Reads elements that are neighbours in the file to a position of the array. */
static enum healcl_status read_run(const struct target *target, int64_t position, int64_t count,
                                   struct healcl_error *error)
{
    const struct payload *payload = target->payload;
    const int64_t from = file_position(payload, target->first + position);
    int64_t values[BLOCK_ELEMENTS];
    if (target->stride == 1 && target->dtype == payload->dtype && !needs_swap(payload))
        return payload_read_elements(
            payload, from, (size_t)count,
            (char *)target->array + (size_t)position * dtype_size(target->dtype), error);
    for (int64_t done = 0; done < count;) {
        size_t part = count - done < BLOCK_ELEMENTS ? (size_t)(count - done) : BLOCK_ELEMENTS;
        TRY(read_block(payload, from + done, part, values, error));
        TRY(store(target, values, part, position + done * target->stride, error));
        done += (int64_t)part;
    }
    return HEALCL_OK;
}

enum healcl_status payload_declare(enum dtype dtype, uint32_t rank, const int64_t *shape,
                                   struct payload *payload, struct healcl_error *error)
{
    *payload = (struct payload){.dtype = dtype};
    return layout_init(&payload->layout, rank, shape, dtype_size(dtype), error);
}

void payload_narrow(struct payload *payload, const struct healcl_part *part)
{
    payload->part = *part;
    payload->layout.shape[part->axis] =
        payload->layout.shape[part->axis] / part->period * part->size;
    payload->layout = layout_packed(&payload->layout);
}

/* Reads elements of a target from number target->first + first on, to the same positions of its
 * array. */
static enum healcl_status read_range(void *context, uint32_t part, int64_t first, int64_t count,
                                     struct healcl_error *error)
{
    const struct target *target = context;
    const int64_t stride = target->stride, run = target->run, end = first + count;
    (void)part;
    for (int64_t start = first; start < end && start < first + stride; start++)
        for (int64_t at = start, size; at < end; at += size * stride) {
            const int64_t left = run - (target->first + at) % run;
            size = ((left < end - at ? left : end - at) + stride - 1) / stride;
            TRY(read_run(target, at, size, error));
        }
    return HEALCL_OK;
}

enum healcl_status payload_read_part(const struct payload *payload, enum dtype dtype, int64_t first,
                                     int64_t count, void *array, struct healcl_error *error)
{
    const struct layout *layout = &payload->layout;
    const struct healcl_part *part = &payload->part;
    struct target target = {payload, dtype, array, first, 1, layout_elements(layout)};
    uint32_t axis = 0; /* the first one that is longer than 1 in the file */
    TRY(payload_check_data(payload, error));
    while (payload->fortran_order && layout->shape[axis] == 1 &&
           !(part->period > 1 && axis == part->axis))
        axis++;
    if (payload->fortran_order)
        target.stride = layout->stride[axis];
    if (part->period > 0 && (!payload->fortran_order || axis == part->axis))
        target.run = part->size * layout->stride[part->axis];
    return parallel_do(count, dtype_size(dtype), read_range, &target, NULL, error);
}

enum healcl_status payload_read(const struct payload *payload, enum dtype dtype, void *array,
                                struct healcl_error *error)
{
    return payload_read_part(payload, dtype, 0, layout_elements(&payload->layout), array, error);
}

void payload_forget(const struct payload *payload, const struct source *source)
{
    if (payload->data)
        source_forget(source, payload->data, payload->length);
}
