/*
 * Payloads: tensors embedded in a transcript as the base64 of a .npy file, or raw in a file beside
 * it.
 *
 * A payload is only a span of the mapped file and what its header says; nothing is decoded before
 * it is read, and reading needs no memory but a small buffer. Format of .npy: NumPy's
 * numpy.lib.format, versions 1.0 to 3.0.
 */
#ifndef HEALCL_TRANSCRIPT_PAYLOAD_H
#define HEALCL_TRANSCRIPT_PAYLOAD_H

#include "core/arena.h"
#include "core/dtype.h"
#include "core/layout.h"
#include "transcript/source.h"

/* A part of the whole: of each `period` elements of an axis, `size` from `start` on. */
struct payload_part {
    uint32_t axis;
    int64_t start, size, period; /* period: 0 where the payload is the whole */
};

struct payload {
    const char *data; /* in the mapped file, which must outlive the payload; NULL where only dtype
                         and shape are known, and a caller brings the data */
    size_t length;    /* bytes, of base64 between the quotes */
    const size_t *blocks; /* of base64_check_escaped, where base64 has JSON escapes; else NULL */
    uint64_t characters;  /* of base64 */
    bool is_raw;          /* data are the bytes of the .npy file themselves, not base64 */
    uint32_t data_offset; /* decoded bytes before the first element: the .npy header */
    enum dtype dtype;
    bool big_endian;
    bool fortran_order;   /* the first axis runs fastest in the file; false where at most one axis
                             is longer than 1, or there are no elements: the orders are the same */
    struct layout layout; /* the shape, with C-order strides whatever the file's order is */
    struct payload_part part; /* the shape is that of a part */
    int64_t copies; /* of what is compared with it: so many tensors of this shape along a first
                       axis, each of which is to be like it; 0: one tensor of this shape */
};

/*
 * Checks a whole base64 span, by what base64_good says of it, and the .npy header in it, and fills
 * payload. JSON escapes take memory of the arena: 0.05 % of the span. Refuses characters outside of
 * the standard alphabet, wrong padding, a bad magic, version, header, dtype or shape, and data that
 * are shorter or longer than the shape says.
 */
enum healcl_status payload_parse(const char *base64, size_t length, size_t good,
                                 struct arena *arena, struct payload *payload,
                                 struct healcl_error *error);

/* Does the same with the bytes of a .npy file. */
enum healcl_status payload_parse_raw(const char *npy, size_t length, struct payload *payload,
                                     struct healcl_error *error);

/* Reads `count` bytes of the .npy file, from number `byte` on. */
enum healcl_status payload_read_file(const struct payload *payload, uint64_t byte, size_t count,
                                     void *bytes, struct healcl_error *error);

/* Fills in a payload that is only a dtype and a shape. Refuses what layout_init does. */
enum healcl_status payload_declare(enum dtype dtype, uint32_t rank, const int64_t *shape,
                                   struct payload *payload, struct healcl_error *error);

/* Refuses a payload that is only a dtype and a shape. */
enum healcl_status payload_check_data(const struct payload *payload, struct healcl_error *error);

/*
 * Reads all elements into an array in C order and native byte order, converted to dtype.
 * array has room for layout_elements(&payload->layout) elements of dtype and is aligned for it.
 * Refuses a value that dtype does not hold, naming its index. Decodes straight into array where
 * no conversion is needed.
 */
enum healcl_status payload_read(const struct payload *payload, enum dtype dtype, void *array,
                                struct healcl_error *error);

/* Reads elements [first, first + count) in C order so, which it finds at once. Not for payloads in
 * Fortran order. */
enum healcl_status payload_read_part(const struct payload *payload, enum dtype dtype, int64_t first,
                                     int64_t count, void *array, struct healcl_error *error);

/* Makes a payload that is the whole a part of itself. The axis has a multiple of the period, which
 * `start + size` is at most. */
void payload_narrow(struct payload *payload, const struct payload_part *part);

/* Lets the system drop a payload's pages from memory until it is read again. */
void payload_forget(const struct payload *payload, const struct source *source);

#endif
