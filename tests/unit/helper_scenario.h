/* A whole run on a device: upload, small write, launch, download. */
#ifndef HEALCL_TESTS_HELPER_SCENARIO_H
#define HEALCL_TESTS_HELPER_SCENARIO_H

#include "core/status.h"
#include "helper_device.h"

/* out[i] = a[i] + table[i % 4] + AMOUNT */
static const char scenario_source[] =
    "KERNEL add(global const int *a, global int *out, global const int *table, ulong count)\n"
    "{\n"
    "    ulong i = get_global_id(0);\n"
    "    if (i < count)\n"
    "        AT(out, i) = AT(a, i) + table[i % 4] + AMOUNT;\n"
    "}\n";

enum { SCENARIO_AMOUNT = 5 };

static const char SCENARIO_TAG[] = "scenario";

struct scenario {
    uint64_t count; /* of int elements */
    size_t local_size;
    struct buffer a, out, table;
};

static inline void scenario_release(struct healcl_device *device, struct scenario *scenario)
{
    device_buffer_release(device, &scenario->a);
    device_buffer_release(device, &scenario->out);
    device_buffer_release(device, &scenario->table);
}

/* a[i] = i */
static inline enum healcl_status scenario_fill(void *context, uint64_t offset, uint64_t bytes,
                                               void *memory, struct healcl_error *failure)
{
    int32_t *values = memory;
    (void)context;
    (void)failure;
    for (uint64_t i = 0; i < bytes / 4; i++)
        values[i] = (int32_t)(offset / 4 + i);
    return HEALCL_OK;
}

static inline enum healcl_status scenario_launch(struct healcl_device *device,
                                                 const struct scenario *scenario,
                                                 struct healcl_error *failure)
{
    struct launch launch = {
        .program = "scenario",
        .kernel = "add",
        .options = "-D AMOUNT=5",
        .argument_count = 4,
        .arguments =
            (struct launch_argument[]){{.buffer = &scenario->a},
                                       {.buffer = &scenario->out},
                                       {.buffer = &scenario->table},
                                       {.value = &scenario->count, .size = sizeof scenario->count}},
        .local_size = scenario->local_size,
        .groups = (scenario->count + scenario->local_size - 1) / scenario->local_size,
        .tag = SCENARIO_TAG,
    };
    return device_launch(device, &launch, failure);
}

/* context: a bool, false from the first wrong value on */
static inline enum healcl_status scenario_take(void *context, uint64_t offset, uint64_t bytes,
                                               const void *memory, struct healcl_error *failure)
{
    bool *right = context;
    const int32_t *values = memory;
    (void)failure;
    for (uint64_t i = 0, at = offset / 4; i < bytes / 4; i++, at++)
        if (values[i] != (int32_t)(at + at % 4 * 10 + SCENARIO_AMOUNT))
            *right = false;
    return HEALCL_OK;
}

/* The caller releases the scenario's buffers, also where this fails. */
static inline enum healcl_status scenario_run(struct healcl_device *device,
                                              struct scenario *scenario, bool *right,
                                              struct healcl_error *failure)
{
    static const int32_t table[] = {0, 10, 20, 30};
    uint64_t bytes = scenario->count * 4;
    *right = true;
    TRY(device_buffer_acquire(device, bytes, false, &scenario->out, failure));
    TRY(device_buffer_acquire(device, sizeof table, false, &scenario->table, failure));
    TRY(device_write(device, &scenario->table, 0, sizeof table, table, failure));
    TRY(device_upload(device, NULL, bytes, &(struct device_filler){scenario_fill, NULL},
                      &scenario->a, failure));
    TRY(scenario_launch(device, scenario, failure));
    return device_download(device, &scenario->out, 0, bytes,
                           &(struct device_taker){scenario_take, right}, failure);
}

#endif
