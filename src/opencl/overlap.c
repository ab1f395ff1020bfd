/* Commands that overlap on an out-of-order queue: what each of them waits for. */
#include <stdlib.h>

#include "opencl/device_internal.h"

struct access {
    cl_mem memory;
    bool read_only;
};

struct recent_command {
    cl_event event;
    uint32_t after;     /* bit i: it waits, through others or not, for recent command number i */
    bool orders_all;    /* it waits for all before it, and all after it wait for it */
    const void *kernel; /* or NULL */
    size_t groups;
    uint32_t access_count;
    struct access accesses[LAUNCH_ARGUMENTS_MAX];
};

/* The last command that orders all, and launches since; behind them, the one in hand. */
struct recent_commands {
    struct recent_command commands[LAUNCHES_AT_ONCE_MAX + 1];
    uint32_t count;
};

enum healcl_status overlap_init(struct healcl_device *device, struct healcl_error *error)
{
    device->recent = calloc(1, sizeof *device->recent);
    if (!device->recent)
        NO_MEMORY(error);
    return HEALCL_OK;
}

void overlap_forget(struct healcl_device *device)
{
    if (!device->recent)
        return;
    for (uint32_t i = 0; i < device->recent->count; i++)
        (void)device->cl->clReleaseEvent(device->recent->commands[i].event);
    device->recent->count = 0;
}

/* ---------------------------------------------------------------- what commands touch */

static void note_accesses(struct recent_command *command, uint32_t count,
                          const struct launch_argument *arguments)
{
    command->access_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (arguments[i].buffer)
            command->accesses[command->access_count++] =
                (struct access){arguments[i].buffer->memory, arguments[i].read_only};
}

/* Whether commands must not overlap: one writes what the other one reads or writes. */
static bool must_be_ordered(const struct recent_command *a, const struct recent_command *b)
{
    if (a->orders_all || b->orders_all)
        return true;
    /* PoCL before 6.0 aborts where two launches of a kernel run that differ in their size: it mixes
     * up what it has loaded for them. */
    if (a->kernel && a->kernel == b->kernel && a->groups != b->groups)
        return true;
    for (uint32_t i = 0; i < a->access_count; i++)
        for (uint32_t j = 0; j < b->access_count; j++)
            if (a->accesses[i].memory == b->accesses[j].memory &&
                !(a->accesses[i].read_only && b->accesses[j].read_only))
                return true;
    return false;
}

/* ---------------------------------------------------------------- before and after a command */

void overlap_begin(struct healcl_device *device, const struct command_use *use,
                   struct awaited_events *awaited)
{
    struct recent_commands *recent = device->recent;
    awaited->count = 0;
    if (!device->overlaps)
        return;
    struct recent_command *command = &recent->commands[recent->count];
    command->after = 0;
    command->kernel = use->kernel;
    command->groups = use->groups;
    command->orders_all =
        use->argument_count == 0 || recent->count >= device->tuning.launches_at_once;
    if (!command->orders_all)
        note_accesses(command, use->argument_count, use->arguments);
    for (uint32_t i = recent->count; i-- > 0;) {
        const struct recent_command *before = &recent->commands[i];
        if (!(command->after >> i & 1) && must_be_ordered(before, command)) {
            awaited->events[awaited->count++] = before->event;
            command->after |= before->after | 1u << i;
        }
    }
}

void overlap_end(struct healcl_device *device, cl_event event)
{
    struct recent_commands *recent = device->recent;
    if (!device->overlaps)
        return;
    struct recent_command *command = &recent->commands[recent->count];
    if (command->orders_all) {
        overlap_forget(device);
        command = &recent->commands[0];
        command->orders_all = true;
    }
    command->event = event;
    recent->count++;
}
