/* Arrays that grow at their end. */
#ifndef HEALCL_CORE_ARRAY_H
#define HEALCL_CORE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes room for one more element behind count of them: items, a pointer, becomes that to an array
 * of twice the capacity where there is none. It is the caller's to free; at first it is NULL, with
 * a capacity of 0. False without memory: items is then as it was.
 */
#define ARRAY_GROW(items, count, capacity) \
    array_grow(&(items), (count), (capacity), sizeof *(items))
__attribute__((warn_unused_result)) bool array_grow(void *pointer, size_t count, size_t *capacity,
                                                    size_t item_size);

#endif
