/* The host's own copy of memory, by all its processors at once: what the memory can do. */
#ifndef HEALCL_TOOLS_BENCH_HOST_H
#define HEALCL_TOOLS_BENCH_HOST_H

#include <stdint.h>

#include "core/status.h"

struct host_copy;

/* bytes: of the source, at least 1. The caller frees it, also where this fails. */
enum healcl_status host_copy_create(uint64_t bytes, struct host_copy **result,
                                    struct healcl_error *error);
void host_copy_free(struct host_copy *copy);

/* Copies so many times; *nanoseconds is what that took. Errors: HEALCL_NO_MEMORY where a thread
 * cannot be had. */
enum healcl_status host_copy_run(struct host_copy *copy, uint32_t times, uint64_t *nanoseconds,
                                 struct healcl_error *error);

/* HEALCL_DIFFERENT where source and destination are not the same. */
enum healcl_status host_copy_verify(const struct host_copy *copy, struct healcl_error *error);

#endif
