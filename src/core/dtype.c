#include "core/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    size_t size;
    int64_t min, max;
} dtypes[DTYPE_COUNT] = {
    [DTYPE_INT8] = {"int8", 1, INT8_MIN, INT8_MAX},
    [DTYPE_INT32] = {"int32", 4, INT32_MIN, INT32_MAX},
    [DTYPE_INT64] = {"int64", 8, INT64_MIN, INT64_MAX},
};

size_t dtype_size(enum dtype dtype)
{
    return dtypes[dtype].size;
}

const char *dtype_name(enum dtype dtype)
{
    return dtypes[dtype].name;
}

bool dtype_from_name(const char *name, enum dtype *dtype)
{
    if (strncmp(name, "torch.", 6) == 0)
        name += 6;
    for (int candidate = 0; candidate < DTYPE_COUNT; candidate++)
        if (strcmp(name, dtypes[candidate].name) == 0) {
            *dtype = (enum dtype)candidate;
            return true;
        }
    return false;
}

bool dtype_holds(enum dtype dtype, int64_t value)
{
    return value >= dtypes[dtype].min && value <= dtypes[dtype].max;
}

int64_t dtype_load(enum dtype dtype, const void *array, int64_t index)
{
    switch (dtype) {
    case DTYPE_INT8: return ((const int8_t *)array)[index];
    case DTYPE_INT32: return ((const int32_t *)array)[index];
    case DTYPE_INT64: break;
    }
    return ((const int64_t *)array)[index];
}

void dtype_store(enum dtype dtype, void *array, int64_t index, int64_t value)
{
    switch (dtype) {
    case DTYPE_INT8: ((int8_t *)array)[index] = (int8_t)value; return;
    case DTYPE_INT32: ((int32_t *)array)[index] = (int32_t)value; return;
    case DTYPE_INT64: ((int64_t *)array)[index] = value; return;
    }
}
