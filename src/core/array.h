/* Arrays that grow at their end. */
#ifndef HEALCL_CORE_ARRAY_H
#define HEALCL_CORE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Room for one more element behind count of them: items, or an array of twice the capacity that has
 * taken its place. The caller's to free; items is NULL, with a capacity of 0, at first.
 * Returns NULL without memory: items is then as it was.
 */
__attribute__((warn_unused_result)) void *array_with_room(void *items, size_t count,
                                                          size_t *capacity, size_t item_size);

/* The same for a pointer, which is set. False without memory. */
#define ARRAY_GROW(items, count, capacity) \
    array_grow(&(items), (count), (capacity), sizeof *(items))
__attribute__((warn_unused_result)) bool array_grow(void *pointer, size_t count, size_t *capacity,
                                                    size_t item_size);

#endif
