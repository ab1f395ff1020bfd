#include "core/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool array_grow(void *pointer, size_t count, size_t *capacity, size_t item_size)
{
    enum { FIRST_CAPACITY = 64 };
    void *items;
    if (count < *capacity)
        return true;
    if (*capacity > SIZE_MAX / 2 / item_size)
        return false;
    size_t wanted = *capacity ? 2 * *capacity : FIRST_CAPACITY;
    memcpy(&items, pointer, sizeof items);
    void *larger = realloc(items, wanted * item_size);
    if (!larger)
        return false;
    memcpy(pointer, &larger, sizeof larger);
    *capacity = wanted;
    return true;
}
