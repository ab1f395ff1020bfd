/* Work on the host that several threads share. */
#ifndef HEALCL_CORE_PARALLEL_H
#define HEALCL_CORE_PARALLEL_H

#include "core/status.h"

enum { PARALLEL_PARTS_MAX = 16 };

/* Processes elements [first, first + count), which are one part of the work. */
typedef enum healcl_status parallel_work(void *context, uint32_t part, int64_t first, int64_t count,
                                         struct healcl_error *error);

/*
 * Divides count elements of bytes_each bytes into parts 0, 1, ... in order, and does each part
 * once. Uses as many threads as this thread may use cores. A few bytes form one part, which this
 * thread does. All threads end before it returns. If a part fails, this thread repeats it to get
 * its error, unless an earlier part failed. *parts: number of parts, at least 1; parts may be NULL.
 */
enum healcl_status parallel_do(int64_t count, size_t bytes_each, parallel_work *work, void *context,
                               uint32_t *parts, struct healcl_error *error);

#endif
