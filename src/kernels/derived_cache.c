/* Derived tables, found by their keys: a list for each storage, and a
 * hash table for all. */
#include "kernels/derived.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Kept tables may take this many times the peak memory of all tensors, plus a constant. Twiddles
 * take up to six times the memory of their tensor, and moduli up to sixteen times. But these
 * tensors are a small part of all. Only many views of the same elements exceed this limit. */
enum { DERIVED_TIMES = 4, DERIVED_BYTES = 64 << 20 };

enum { ROWS_LOOKED_AT = 16 /* the latest tables of a storage: it may have any number of views */ };

static uint64_t hash_layout(const struct layout *layout, uint64_t hash)
{
    hash = XXH64(&layout->offset, sizeof layout->offset, hash);
    hash = XXH64(layout->shape, layout->rank * sizeof *layout->shape, hash);
    return XXH64(layout->stride, layout->rank * sizeof *layout->stride, hash);
}

static uint64_t hash_key(const struct device_storage *storage, const struct derived_key *key)
{
    const uint64_t parts[] = {
        (uint64_t)(uintptr_t)storage, (uint64_t)key->kind, (uint64_t)key->first,
        (uint64_t)key->size,          key->q_generation,   (uint64_t)(uintptr_t)key->q_storage};
    return hash_layout(&key->q_layout, hash_layout(&key->layout, XXH64(parts, sizeof parts, 0)));
}

static bool same_layout(const struct layout *a, const struct layout *b)
{
    return layout_same_shape(a, b) && a->offset == b->offset &&
           memcmp(a->stride, b->stride, a->rank * sizeof *a->stride) == 0;
}

static bool same_key(const struct derived_key *a, const struct derived_key *b)
{
    return a->kind == b->kind && same_layout(&a->layout, &b->layout) && a->first == b->first &&
           a->size == b->size && a->q_storage == b->q_storage &&
           a->q_generation == b->q_generation && same_layout(&a->q_layout, &b->q_layout);
}

static struct derived **bucket_of(const struct derived_cache *cache, uint64_t hash)
{
    return &cache->buckets[hash % DERIVED_BUCKETS];
}

bool derived_find(const struct launcher *self, const struct tensor *tensor,
                  const struct derived_key *key, const struct buffer **table)
{
    const struct device_storage *storage = &self->storages[tensor->storage->id];
    if (!self->cache.buckets)
        return false;
    uint64_t hash = hash_key(storage, key);
    for (struct derived *derived = *bucket_of(&self->cache, hash); derived;
         derived = derived->next_of_bucket)
        if (derived->hash == hash && derived->storage == storage && same_key(&derived->key, key)) {
            *table = &derived->table;
            return true;
        }
    return false;
}

/* Whether the elements of one view are all elements of another view, or the first ones along axis
 * 0. */
static bool begins(const struct layout *view, const struct layout *other)
{
    struct layout first = *other;
    if (view->rank < 1 || view->rank != other->rank || view->shape[0] > other->shape[0])
        return same_layout(view, other);
    first.shape[0] = view->shape[0];
    return same_layout(view, &first);
}

bool derived_find_rows(const struct launcher *self, const struct tensor *tensor,
                       const struct derived_key *key, const struct buffer **table)
{
    const struct device_storage *storage = &self->storages[tensor->storage->id];
    if (derived_find(self, tensor, key, table))
        return true;
    int left = ROWS_LOOKED_AT;
    for (struct derived *derived = storage->derived; derived && left > 0;
         derived = derived->next_of_storage, left--) {
        const struct derived_key *other = &derived->key;
        if (other->kind == key->kind && other->first == key->first && other->size == key->size &&
            other->q_storage == key->q_storage && other->q_generation == key->q_generation &&
            begins(&key->layout, &other->layout) && begins(&key->q_layout, &other->q_layout)) {
            *table = &derived->table;
            return true;
        }
    }
    return false;
}

/* The memory of a table on host and device. */
static uint64_t bytes_of(const struct derived *derived)
{
    enum { BUFFER_BYTES_MIN = 256 };
    uint64_t bytes = derived->table.memory && derived->table.bytes < BUFFER_BYTES_MIN
                         ? BUFFER_BYTES_MIN
                         : derived->table.bytes;
    return bytes + sizeof *derived;
}

enum healcl_status derived_add(struct launcher *self, const struct tensor *tensor,
                               const struct derived_key *key, int64_t count, size_t size,
                               void *made, const struct buffer **table, struct healcl_error *error)
{
    struct device_storage *storage = &self->storages[tensor->storage->id];
    struct derived_cache *cache = &self->cache;
    struct derived *derived = calloc(1, sizeof *derived);
    if (!cache->buckets)
        cache->buckets = calloc(DERIVED_BUCKETS, sizeof *cache->buckets);
    enum healcl_status status = HEALCL_OK;
    const uint64_t bytes = (uint64_t)count * size;
    if (!derived || !cache->buckets)
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    else if (made)
        status = device_upload_memory(self->device, NULL, bytes, made, &derived->table, error);
    else if (bytes > 0)
        status = device_buffer_acquire(self->device, bytes, false, &derived->table, error);
    free(made);
    if (status != HEALCL_OK) {
        free(derived);
        return status == HEALCL_REFUSED ? device_note_unsupported(self->device, status) : status;
    }
    derived->storage = storage;
    derived->key = *key;
    derived->hash = hash_key(storage, key);
    derived->next_of_storage = storage->derived;
    storage->derived = derived;
    struct derived **bucket = bucket_of(cache, derived->hash);
    derived->next_of_bucket = *bucket;
    *bucket = derived;
    cache->bytes += bytes_of(derived);
    *table = &derived->table;
    return HEALCL_OK;
}

static void forget(struct launcher *self, struct derived *derived)
{
    struct derived **link = bucket_of(&self->cache, derived->hash);
    while (*link != derived)
        link = &(*link)->next_of_bucket;
    *link = derived->next_of_bucket;
    self->cache.bytes -= bytes_of(derived);
    device_buffer_release(self->device, &derived->table);
    free(derived);
}

void derived_forget(struct launcher *self, struct device_storage *storage)
{
    while (storage->derived) {
        struct derived *derived = storage->derived;
        storage->derived = derived->next_of_storage;
        storage->generation++; /* tables of the old contents must not be found */
        forget(self, derived);
    }
}

void derived_forget_inputs(struct launcher *self, const struct step *step)
{
    for (int i = 0; i < STEP_INPUTS; i++)
        if (step->in[i] && !step->in[i]->storage->scalars)
            derived_forget(self, &self->storages[step->in[i]->storage->id]);
    derived_forget_scalars(self);
}

void derived_limit(struct launcher *self)
{
    if (self->cache.bytes / DERIVED_TIMES <= self->plan->bytes_peak + DERIVED_BYTES / DERIVED_TIMES)
        return;
    for (size_t id = 0; id < self->plan->storage_count; id++)
        derived_forget(self, &self->storages[id]);
}
