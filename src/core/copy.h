/* Large copies. */
#ifndef HEALCL_CORE_COPY_H
#define HEALCL_CORE_COPY_H

#include <stddef.h>

/* So many bytes at a time are not read again before caches have lost them: stores that go past the
 * caches take half of the time, as memory is not read first. */
#define COPY_PAST_BYTES ((size_t)2 << 20)

/* Copies as memcpy does, and large blocks past the caches where the processor can. */
void copy_bytes(void *to, const void *from, size_t bytes);

#endif
