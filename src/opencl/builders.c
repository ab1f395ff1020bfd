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

void builders_start(const struct healcl_device *device, struct program *const *programs,
                    size_t count, size_t workers, struct builder *builders)
{
    for (size_t i = 1; i < workers; i++)
        start(device, programs, count, i, workers, &builders[i]);
}

void builders_await(size_t workers, const struct builder *builders)
{
    enum { AWAITED_SECONDS = 60 }; /* a driver may hang there */
    const uint64_t deadline = monotonic_nanoseconds() + UINT64_C(1000000000) * AWAITED_SECONDS;
    for (size_t i = 1; i < workers; i++)
        if (builders[i].process)
            process_await(builders[i].process, builders[i].done, deadline);
}

void builders_stop(size_t workers, const struct builder *builders)
{
    for (size_t i = 1; i < workers; i++)
        process_stop(builders[i].process);
}
