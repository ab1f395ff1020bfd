/* Work on the host that several threads share. */
#ifndef HEALCL_CORE_PARALLEL_H
#define HEALCL_CORE_PARALLEL_H

#include "core/status.h"

enum { PARALLEL_PARTS_MAX = 16 };

/* Does what a part of the work wants to be done with elements [first, first + count). */
typedef enum healcl_status parallel_work(void *context, uint32_t part, int64_t first, int64_t count,
                                         struct healcl_error *error);

/*
 * Cuts count elements, of so many bytes each, into parts 0, 1, ... in order, and does each once, on
 * as many threads as this thread may use cores; few bytes are one part, done here. Threads end
 * before it returns. A part that fails is done again here, for its error, unless one before it
 * failed. *parts: how many, at least 1, unless it is NULL.
 */
enum healcl_status parallel_do(int64_t count, size_t bytes_each, parallel_work *work, void *context,
                               uint32_t *parts, struct healcl_error *error);

#endif
