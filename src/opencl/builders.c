/* Child processes of this program that build programs: drivers may compile one at a time in each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/process.h"
#include "opencl/internal.h"

void builders_start(struct builders *builders, const struct healcl_device *device,
                    struct program *const *programs, size_t count)
{
    enum { AWAITED_SECONDS = 60, SIZE_TEXT = 24 }; /* a driver may hang there */
    char selector[24], (*sizes)[SIZE_TEXT] = calloc(count, sizeof *sizes);
    const char **arguments = calloc(4 + 3 * count, sizeof *arguments);
    const size_t span = trace_begin(device->programs->opening_trace, "build", "start processes");
    builders->deadline = monotonic_nanoseconds() + UINT64_C(1000000000) * AWAITED_SECONDS;
    builders->programs = count;
    snprintf(selector, sizeof selector, "%u:%u", device->info.platform_index,
             device->info.device_index);
    for (size_t worker = 1; sizes && arguments && worker < builders->workers; worker++) {
        const char **next = arguments;
        void *done;
        *next++ = "healcl";
        *next++ = device->programs->builder;
        *next++ = selector;
        for (size_t i = worker; i < count; i += builders->workers) {
            snprintf(sizes[i], SIZE_TEXT, "%zu", programs[i]->local_size);
            *next++ = programs[i]->name;
            *next++ = programs[i]->options;
            *next++ = sizes[i];
        }
        *next = NULL;
        builders->at[worker].process = process_start_beside(arguments, sizeof(uint32_t), &done);
        builders->at[worker].done = done;
    }
    trace_end(device->programs->opening_trace, span);
    free(arguments);
    free(sizes);
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
