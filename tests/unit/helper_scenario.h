/* A whole run on a device: upload, small write, launch, download, for one chunk or several. */
#ifndef HEALCL_TESTS_HELPER_SCENARIO_H
#define HEALCL_TESTS_HELPER_SCENARIO_H

#include "core/status.h"
#include "helper_device.h"

/* out[i] = a[i] + table[i % 4] + AMOUNT */
static const char scenario_source[] =
    "KERNEL add(BUFFER(const int, a), BUFFER(int, out), global const int *table, ulong count)\n"
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
static inline enum healcl_status scenario_upload(struct healcl_device *device,
                                                 const struct scenario *scenario,
                                                 struct healcl_error *failure)
{
    int32_t next = 0;
    for (uint32_t chunk = 0; chunk < scenario->a.chunk_count; chunk++) {
        void *memory = NULL;
        TRY(device_upload_map(device, &scenario->a, chunk, &memory, failure));
        int32_t *values = memory;
        for (uint64_t i = 0; i < device->chunk_bytes / 4 && (uint64_t)next < scenario->count; i++)
            values[i] = next++;
        TRY(device_upload_end(device, &scenario->a, chunk, memory, failure));
    }
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
        .arguments = {{.buffer = &scenario->a},
                      {.buffer = &scenario->out},
                      {.table = &scenario->table},
                      {.value = &scenario->count, .size = sizeof scenario->count}},
        .local_size = scenario->local_size,
        .groups = (scenario->count + scenario->local_size - 1) / scenario->local_size,
        .tag = SCENARIO_TAG,
    };
    return device_launch(device, &launch, failure);
}

static inline enum healcl_status scenario_download(struct healcl_device *device,
                                                   const struct scenario *scenario, bool *right,
                                                   struct healcl_error *failure)
{
    uint64_t next = 0;
    for (uint32_t chunk = 0; chunk < scenario->out.chunk_count; chunk++) {
        uint64_t left = (scenario->count - next) * 4;
        uint64_t bytes = left < device->chunk_bytes ? left : device->chunk_bytes;
        void *memory = NULL;
        TRY(device_download_map(device, &scenario->out, chunk, 0, bytes, &memory, failure));
        const int32_t *values = memory;
        for (uint64_t i = 0; i < bytes / 4; i++, next++)
            if (values[i] != (int32_t)(next + next % 4 * 10 + SCENARIO_AMOUNT))
                *right = false;
        TRY(device_download_end(device, &scenario->out, chunk, memory, failure));
    }
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
    TRY(device_buffer_acquire(device, bytes, true, &scenario->a, failure));
    TRY(device_buffer_acquire(device, bytes, false, &scenario->out, failure));
    TRY(device_buffer_acquire(device, sizeof table, false, &scenario->table, failure));
    TRY(device_write(device, &scenario->table, 0, sizeof table, table, failure));
    TRY(scenario_upload(device, scenario, failure));
    TRY(scenario_launch(device, scenario, failure));
    return scenario_download(device, scenario, right, failure);
}

#endif
