/* The header of a .npy file, versions 1.0 to 3.0:
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format */
#ifndef HEALCL_TRANSCRIPT_NPY_H
#define HEALCL_TRANSCRIPT_NPY_H

#include "core/dtype.h"
#include "core/layout.h"

enum {
    NPY_PREFIX_SIZE = 12,   /* magic, version and header length, at most */
    NPY_HEADER_MAX = 10000, /* of the text after them; longer ones are refused, as NumPy does */
    NPY_HEADER_SIZE = 512   /* of a whole header that is written */
};

struct npy_header {
    enum dtype dtype;
    bool big_endian; /* false for one-byte elements */
    bool fortran_order;
    struct layout layout; /* the shape, in C order */
};

/*
 * Reads magic, version and header length from the first length bytes of a file: all of it, or at
 * least NPY_PREFIX_SIZE bytes. Sets the positions of the header text and of the first element.
 */
enum healcl_status npy_read_prefix(const unsigned char *bytes, size_t length,
                                   uint32_t *header_offset, uint32_t *data_offset,
                                   struct healcl_error *error);

/*
 * Reads the header text of a file of this version. It is a Python dict literal with exactly the
 * keys 'descr', 'fortran_order' and 'shape' in any order, as NumPy and others write it. Refuses
 * dtypes other than <i8 >i8 <i4 >i4 |i1 <i1 >i1 by name, ranks above MAX_RANK, and shapes beyond
 * 2^63-1 bytes.
 */
enum healcl_status npy_read_header(unsigned version, const char *bytes, size_t length,
                                   struct npy_header *header, struct healcl_error *error);

/*
 * Reads a whole .npy file into an array of dtype, in C order. The array has room for layout's
 * elements. The file's shape must equal layout's, and its values must fit dtype.
 * Errors: HEALCL_USAGE if the file cannot be read, HEALCL_REFUSED for invalid content,
 * HEALCL_NO_MEMORY.
 */
enum healcl_status npy_read_file(const char *path, enum dtype dtype, const struct layout *layout,
                                 void *array, struct healcl_error *error);

/*
 * Writes a .npy file of version 1.0, little-endian, that appears complete or not at all
 * (core/new_file.h). array has the shape's elements in C order. Errors: HEALCL_USAGE if the file
 * cannot be written, HEALCL_NO_MEMORY.
 */
enum healcl_status npy_write_file(const char *path, enum dtype dtype, const struct layout *shape,
                                  const void *array, struct healcl_error *error);

/* Writes everything before the elements of a file of version 1.0, little-endian, padded as NumPy
 * does. Returns its length. */
size_t npy_write_header(enum dtype dtype, const struct layout *shape, bool fortran_order,
                        char header[NPY_HEADER_SIZE]);

#endif
