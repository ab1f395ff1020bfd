/*
 * Payloads: tensors embedded in a transcript as the base64 of a .npy file, or stored raw in a file
 * beside it.
 *
 * A payload only refers to a span of the mapped file, and holds the content of its header. Data are
 * decoded when they are read, which needs only a small buffer. Format of .npy: NumPy's
 * numpy.lib.format, versions 1.0 to 3.0.
 */
#ifndef HEALCL_TRANSCRIPT_PAYLOAD_H
#define HEALCL_TRANSCRIPT_PAYLOAD_H

#include "core/arena.h"
#include "core/dtype.h"
#include "core/layout.h"
#include "transcript/source.h"

struct payload {
    /* In the mapped file, which must outlive the payload. NULL if only dtype and shape are known: a
     * caller supplies the data. */
    const char *data;
    size_t length;        /* bytes; for base64, those between the quotes */
    const size_t *blocks; /* from base64_check_escaped, if the base64 has JSON escapes; else NULL */
    uint64_t characters;  /* of base64 */
    bool is_raw;          /* data is the .npy file itself, not base64 */
    uint32_t data_offset; /* length of the .npy header: decoded bytes before the first element */
    enum dtype dtype;
    bool big_endian;
    /* The first axis varies fastest in the file; only payload.c needs to know. False if at most one
     * axis is longer than 1, or there are no elements: the orders are then equal. */
    bool fortran_order;
    struct layout layout; /* the shape, with C-order strides whatever the file's order */
    /* The part that the shape describes. Of every `period` indices of an axis, it has `size`
     * indices from `start` on. */
    struct healcl_part part;
    /* For expected data: the compared tensor has this many copies of the payload, along an
     * additional first axis. 0: one tensor of this shape. */
    int64_t copies;
};

/*
 * Checks a whole base64 span and the .npy header in it, and fills in payload. good: the result of
 * base64_good for the span. JSON escapes take arena memory, 0.05 % of the span. Refuses characters
 * outside of the standard alphabet, wrong padding, and a bad magic, version, header, dtype or
 * shape. Refuses data that are shorter or longer than the shape requires.
 */
enum healcl_status payload_parse(const char *base64, size_t length, size_t good,
                                 struct arena *arena, struct payload *payload,
                                 struct healcl_error *error);

/* Does the same for the bytes of a .npy file. */
enum healcl_status payload_parse_raw(const char *npy, size_t length, struct payload *payload,
                                     struct healcl_error *error);

/* Reads `count` bytes of the .npy file, from offset `byte` on. */
enum healcl_status payload_read_file(const struct payload *payload, uint64_t byte, size_t count,
                                     void *bytes, struct healcl_error *error);

/* Fills in a payload that has only a dtype and a shape. Refuses what layout_init does. */
enum healcl_status payload_declare(enum dtype dtype, uint32_t rank, const int64_t *shape,
                                   struct payload *payload, struct healcl_error *error);

/* Refuses a payload that has only a dtype and a shape. */
enum healcl_status payload_check_data(const struct payload *payload, struct healcl_error *error);

/*
 * Reads all elements into an array in C order and native byte order, converted to dtype. array has
 * room for layout_elements(&payload->layout) elements of dtype, and is aligned for dtype. Refuses a
 * value that dtype cannot hold, and names its index. Decodes directly into array if no conversion
 * is needed.
 */
enum healcl_status payload_read(const struct payload *payload, enum dtype dtype, void *array,
                                struct healcl_error *error);

/* Reads elements [first, first + count), counted in C order, in the same way. It does not read the
 * elements before them. In Fortran order, an element is read at a time if the part does not reach
 * along the first axis. */
enum healcl_status payload_read_part(const struct payload *payload, enum dtype dtype, int64_t first,
                                     int64_t count, void *array, struct healcl_error *error);

/* Changes a payload from the whole to a part of itself. The axis's size must be a multiple of the
 * period, and `start + size` at most the period. */
void payload_narrow(struct payload *payload, const struct healcl_part *part);

/* Allows the system to drop a payload's pages from memory until it is read again. */
void payload_forget(const struct payload *payload, const struct source *source);

#endif
