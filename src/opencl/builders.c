/* Child processes of this program that build programs. A driver may compile only one program at a
 * time in each process. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/process.h"
#include "opencl/internal.h"

enum { FREE, TAKEN, BUILT }; /* states of a program */

bool builders_take(_Atomic uint32_t *states, size_t program)
{
    uint32_t state = FREE;
    return atomic_compare_exchange_strong(&states[program], &state, TAKEN);
}

void builders_start(struct builders *builders, const struct healcl_device *device,
                    struct program *const *programs, size_t count, size_t processes)
{
    enum { AWAITED_SECONDS = 60, SIZE_TEXT = 24 }; /* a driver may hang there */
    char selector[24], (*sizes)[SIZE_TEXT] = calloc(count, sizeof *sizes);
    const char **arguments = calloc(4 + 3 * count, sizeof *arguments), **next = arguments;
    void *states = NULL;
    builders->deadline = monotonic_nanoseconds() + UINT64_C(1000000000) * AWAITED_SECONDS;
    snprintf(selector, sizeof selector, "%u:%u", device->info.platform_index,
             device->info.device_index);
    if (sizes && arguments) {
        *next++ = "healcl";
        *next++ = device->programs->builder;
        *next++ = selector;
        for (size_t i = 0; i < count; i++) {
            snprintf(sizes[i], SIZE_TEXT, "%zu", programs[i]->local_size);
            *next++ = programs[i]->name;
            *next++ = programs[i]->options;
            *next++ = sizes[i];
        }
        builders->count = process_start_beside(
            arguments, processes, count * sizeof *builders->states, &states, builders->processes);
        builders->states = states;
    }
    free(arguments);
    free(sizes);
}

void device_build_beside(struct healcl_device *device, char *const *arguments, size_t count)
{
    _Atomic uint32_t *states = process_shared(count / 3 * sizeof *states);
    device->tuning.builds_at_once = 1;
    for (size_t i = 0; states && i < count / 3; i++) {
        char *const *about = arguments + 3 * i;
        struct launch launch = {.program = about[0], .local_size = strtoul(about[2], NULL, 10)};
        if (!builders_take(states, i))
            continue;
        snprintf(launch.options, sizeof launch.options, "%s", about[1]);
        device_list_program(device, &launch);
        device_build_listed(device);
        states[i] = BUILT;
    }
}

static bool any_runs(const struct builders *builders)
{
    for (size_t i = 0; i < builders->count; i++)
        if (!process_has_ended(builders->processes[i]))
            return true;
    return false;
}

void builders_await(const struct builders *builders, size_t program)
{
    while (builders->states[program] != BUILT && monotonic_nanoseconds() < builders->deadline &&
           any_runs(builders))
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void builders_stop(const struct builders *builders)
{
    for (size_t i = 0; i < builders->count; i++)
        process_stop(builders->processes[i]);
}
