/* Arrays that grow at the end. */
#ifndef HEALCL_CORE_ARRAY_H
#define HEALCL_CORE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes room for one more element behind the first count. items points to the array's pointer. If
 * the capacity is used up, the array is reallocated with twice the capacity. The caller frees the
 * array. Initially it is NULL, with a capacity of 0. Returns false when out of memory; the array is
 * then unchanged.
 */
#define ARRAY_GROW(items, count, capacity) \
    array_grow(&(items), (count), (capacity), sizeof *(items))
__attribute__((warn_unused_result)) bool array_grow(void *pointer, size_t count, size_t *capacity,
                                                    size_t item_size);

#endif
