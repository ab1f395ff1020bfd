/* Memory that is freed all at once. */
#ifndef HEALCL_CORE_ARENA_H
#define HEALCL_CORE_ARENA_H

#include <stddef.h>

/* Bytes that an arena requests at a time. Under sanitizers each allocation is separate, so that
 * they detect accesses beyond it. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define ARENA_IS_SANITIZED
#endif
#endif
#ifdef ARENA_IS_SANITIZED
enum { ARENA_BLOCK_SIZE = 0 };
#else
enum { ARENA_BLOCK_SIZE = 64 * 1024 };
#endif

struct arena;

/* NULL when out of memory. */
struct arena *arena_create(void);
void arena_free(struct arena *arena);

/* Frees all that was allocated. The arena can be used again. */
void arena_clear(struct arena *arena);

/* Returns zeroed memory of size bytes, aligned for any type; NULL when out of memory. */
void *arena_alloc(struct arena *arena, size_t size);

/* Returns a copy of size bytes, aligned for any type; NULL when out of memory. */
void *arena_copy(struct arena *arena, const void *data, size_t size);

/* Returns a copy of a string; NULL when out of memory. */
char *arena_strdup(struct arena *arena, const char *text);

#endif
