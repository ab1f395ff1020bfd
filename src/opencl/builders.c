/* Child processes of this program that build programs: drivers may compile one at a time in each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/process.h"
#include "opencl/internal.h"

/* Its share are the programs from the first on, every step-th. */
static void start(const struct healcl_device *device, struct program *const *programs, size_t count,
                  size_t first, size_t step, struct builder *builder)
{
    enum { SIZE_TEXT = 24 };
    char selector[24], (*sizes)[SIZE_TEXT] = calloc(count, sizeof *sizes);
    const char **arguments = calloc(4 + 3 * count, sizeof *arguments);
    void *done = NULL;
    size_t used = 0;
    *builder = (struct builder){0};
    snprintf(selector, sizeof selector, "%u:%u", device->info.platform_index,
             device->info.device_index);
    if (sizes && arguments) {
        arguments[used++] = "healcl";
        arguments[used++] = device->programs->builder;
        arguments[used++] = selector;
        for (size_t i = first; i < count; i += step) {
            snprintf(sizes[i], SIZE_TEXT, "%zu", programs[i]->local_size);
            arguments[used++] = programs[i]->name;
            arguments[used++] = programs[i]->options;
            arguments[used++] = sizes[i];
        }
        builder->process = process_start_beside(arguments, sizeof *builder->done, &done);
        builder->done = done;
    }
    free(arguments);
    free(sizes);
}

void builders_start(struct builders *builders, const struct healcl_device *device,
                    struct program *const *programs, size_t count)
{
    enum { AWAITED_SECONDS = 60 }; /* a driver may hang there */
    struct trace *trace = device->programs->opening_trace;
    const size_t span = trace_begin(trace, "build", "start processes");
    builders->deadline = monotonic_nanoseconds() + UINT64_C(1000000000) * AWAITED_SECONDS;
    builders->programs = count;
    for (size_t i = 1; i < builders->workers; i++)
        start(device, programs, count, i, builders->workers, &builders->at[i]);
    trace_end(trace, span);
}

void builders_await(const struct builders *builders, size_t program, struct trace *trace)
{
    if (program >= builders->programs || program % builders->workers == 0)
        return;
    const struct builder *builder = &builders->at[program % builders->workers];
    const size_t span = trace_begin(trace, "build", "wait for a process");
    if (builder->process)
        process_await(builder->process, builder->done, (uint32_t)(program / builders->workers) + 1,
                      builders->deadline);
    trace_end(trace, span);
}

void builders_stop(const struct builders *builders)
{
    for (size_t i = 1; i < builders->workers; i++)
        process_stop(builders->at[i].process);
}
