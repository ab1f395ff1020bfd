/* Memory of storages, and checks of their data. */
#include <stdlib.h>

#include "core/array.h"
#include "kernels/derived.h"
#include "plan/memory.h"

enum healcl_status launcher_find_places(struct launcher *self, struct places_rule rule,
                                        struct healcl_error *error)
{
    rule.least = PLACE_BYTES;
    TRY(places_init(&self->places, self->plan, &rule, error));
    self->first_place = device_places_begin(self->device, self->places.count);
    return HEALCL_OK;
}

/* The place in the device's memory that a storage shares with others; NULL if it has none. */
const struct buffer_place *launcher_place(const struct launcher *self,
                                          const struct storage *storage, struct buffer_place *place)
{
    /* The operands of a slice come after the plan's storages. */
    if (!self->places.of || storage->id >= self->plan->storage_count ||
        self->places.of[storage->id] == NO_PLACE)
        return NULL;
    uint32_t number = self->places.of[storage->id];
    *place = (struct buffer_place){self->first_place + number, self->places.bytes[number]};
    return place;
}

/* Uploads all scalars of the plan. */
static enum healcl_status upload_scalars(struct launcher *self, const struct storage *storage,
                                         struct buffer *buffer, struct healcl_error *error)
{
    device_buffer_release(self->device, buffer);
    self->scalar_count = self->plan->constants.count;
    return device_upload_memory(self->device, NULL, self->scalar_count * sizeof(int64_t),
                                storage->scalars, buffer, error);
}

/* Acquires memory for a storage: from the place that it shares with others. Without a place, a plan
 * that runs again prefers the buffer that it had before: then arguments of kernel objects stay
 * valid. */
static enum healcl_status acquire_memory(struct launcher *self, const struct storage *storage,
                                         struct device_storage *memory, struct healcl_error *error)
{
    const uint64_t bytes = storage_bytes(storage);
    struct buffer_place place;
    if (launcher_place(self, storage, &place))
        return device_buffer_acquire_at(self->device, &place, bytes, false, &memory->buffer, error);
    if (self->templates.runs_again &&
        device_buffer_take(self->device, memory->serial, bytes, &memory->buffer))
        return HEALCL_OK;
    return device_buffer_acquire_part(self->device, bytes, &memory->buffer, error);
}

/* The memory of a storage, which is acquired if it has none. Scalars of the plan are uploaded again
 * if calls have added some. */
enum healcl_status launcher_buffer(struct launcher *self, const struct storage *storage,
                                   const struct buffer **buffer, struct healcl_error *error)
{
    struct device_storage *memory = &self->storages[storage->id];
    const bool has_memory = memory->buffer.memory != NULL;
    if (storage->scalars && (!has_memory || self->scalar_count < self->plan->constants.count))
        TRY(upload_scalars(self, storage, &memory->buffer, error));
    else if (!has_memory)
        TRY(acquire_memory(self, storage, memory, error));
    memory->serial = memory->buffer.serial;
    *buffer = &memory->buffer;
    return HEALCL_OK;
}

struct buffer *launcher_memory(struct launcher *self, const struct storage *storage)
{
    return &self->storages[storage->id].buffer;
}

/* Notes that a storage has other elements: its tables and the host's copy do not match them. */
void launcher_storage_written(struct launcher *self, const struct storage *storage)
{
    struct device_storage *memory = &self->storages[storage->id];
    memory->version++;
    for (struct derived *table = memory->derived; table; table = table->next_of_storage)
        derived_release(self, table);
    free(memory->contents);
    memory->contents = NULL;
    memory->source = NULL;
}

bool launcher_keeps_contents(const struct launcher *self, const struct storage *storage)
{
    const int64_t most = device_shares_memory(self->device) ? HOST_DERIVES_MAX : HOST_KEEPS_MIN;
    return storage->elements > 0 && storage->elements <= most;
}

/* Notes an upload. If the same source was uploaded before, elements have not changed, and tables
 * stay valid. The launcher owns contents. */
void launcher_storage_uploaded(struct launcher *self, const struct storage *storage,
                               const void *source, void *contents)
{
    struct device_storage *memory = &self->storages[storage->id];
    if (!source || memory->source != source)
        launcher_storage_written(self, storage);
    memory->source = source;
    free(memory->contents);
    memory->contents = contents;
}

/* Releases a storage's memory. If a run uploads the same source again, its tables stay valid.
 * Otherwise its version changes, so that a later storage with this number does not look the same.
 */
void launcher_storage_release(struct launcher *self, const struct storage *storage)
{
    struct device_storage *memory = &self->storages[storage->id];
    const bool keeps_tables = self->templates.runs_again && memory->source;
    if (!memory->buffer.memory && !memory->contents && !memory->derived)
        return; /* queues have thousands of storages that are never used */
    if (!keeps_tables) {
        launcher_storage_written(self, storage);
        derived_forget(self, memory);
    }
    device_buffer_release(self->device, &memory->buffer);
}

/* The largest element of the host's copy, or 0. It is computed once for each version of the
 * storage. */
uint64_t launcher_largest(struct launcher *self, const struct storage *storage)
{
    struct device_storage *memory = &self->storages[storage->id];
    if (memory->largest_version == memory->version)
        return memory->largest;
    int64_t largest = 0;
    for (int64_t i = 0; memory->contents && i < storage->elements; i++) {
        const int64_t value = dtype_load(storage->dtype, memory->contents, i);
        largest = value > largest ? value : largest;
    }
    memory->largest = (uint64_t)largest;
    memory->largest_version = memory->version;
    return memory->largest;
}

/* ---------------------------------------------------------------- checks */

enum healcl_status launcher_add_check(struct launcher *self, const struct check *check,
                                      uint32_t *key, struct healcl_error *error)
{
    NEED_MEMORY(ARRAY_GROW(self->checks, self->check_count, &self->check_capacity), error);
    self->checks[self->check_count++] = *check;
    *key = (uint32_t)self->check_count;
    return HEALCL_OK;
}

const char *launcher_refuse(struct launcher *self, const struct step *step, int i)
{
    self->refused_input = i;
    return step_input_name(step, i);
}
