#include "core/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[DTYPE_COUNT] = {
    [DTYPE_INT8] = {"int8", 1},
    [DTYPE_INT32] = {"int32", 4},
    [DTYPE_INT64] = {"int64", 8},
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
