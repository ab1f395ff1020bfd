/* The three element types of HEAL tensors. */
#ifndef HEALCL_CORE_DTYPE_H
#define HEALCL_CORE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype { DTYPE_INT8, DTYPE_INT32, DTYPE_INT64 };

enum { DTYPE_COUNT = 3 };

/* Bytes of one element: 1, 4 or 8. */
size_t dtype_size(enum dtype dtype);

/* "int8", "int32", "int64" */
const char *dtype_name(enum dtype dtype);

/* Finds a dtype by name, e.g. "int64" or "torch.int64". Returns whether it exists. */
bool dtype_from_name(const char *name, enum dtype *dtype);

/* Whether value is representable in dtype. */
static inline bool dtype_holds(enum dtype dtype, int64_t value)
{
    return dtype == DTYPE_INT64 ||
           (dtype == DTYPE_INT32 ? value == (int32_t)value : value == (int8_t)value);
}

/* Read and write one element, by index, of an array of dtype. A store wraps (two's complement). */
static inline int64_t dtype_load(enum dtype dtype, const void *array, int64_t index)
{
    return dtype == DTYPE_INT8    ? ((const int8_t *)array)[index]
           : dtype == DTYPE_INT32 ? ((const int32_t *)array)[index]
                                  : ((const int64_t *)array)[index];
}

static inline void dtype_store(enum dtype dtype, void *array, int64_t index, int64_t value)
{
    switch (dtype) {
    case DTYPE_INT8: ((int8_t *)array)[index] = (int8_t)value; return;
    case DTYPE_INT32: ((int32_t *)array)[index] = (int32_t)value; return;
    case DTYPE_INT64: ((int64_t *)array)[index] = value; return;
    }
}

#endif
