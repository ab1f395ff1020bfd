#include "core/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *array_with_room(void *items, size_t count, size_t *capacity, size_t item_size)
{
    enum { FIRST_CAPACITY = 64 };
    if (count < *capacity)
        return items;
    if (*capacity > SIZE_MAX / 2 / item_size)
        return NULL;
    size_t wanted = *capacity ? 2 * *capacity : FIRST_CAPACITY;
    void *larger = realloc(items, wanted * item_size);
    if (larger)
        *capacity = wanted;
    return larger;
}

bool array_grow(void *pointer, size_t count, size_t *capacity, size_t item_size)
{
    void *items;
    memcpy(&items, pointer, sizeof items);
    items = array_with_room(items, count, capacity, item_size);
    if (items)
        memcpy(pointer, &items, sizeof items);
    return items != NULL;
}
