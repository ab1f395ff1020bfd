/* Large copies. */
#ifndef HEALCL_CORE_COPY_H
#define HEALCL_CORE_COPY_H

#include <stddef.h>

/* A copy of this size leaves the caches before anything reads it again. Stores that bypass the
 * caches take half the time, because they do not read memory first. */
#define COPY_PAST_BYTES ((size_t)2 << 20)

/* Copies like memcpy. Large blocks bypass the caches if the processor supports that. */
void copy_bytes(void *to, const void *from, size_t bytes);

#endif
