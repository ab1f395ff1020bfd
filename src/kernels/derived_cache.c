/* Derived tables, found by their keys: a list for each storage, and a hash table for all. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "kernels/derived.h"

/* Kept tables may take this many times the peak memory of all tensors, plus a constant. Twiddles
 * take up to six times the memory of their tensor, and moduli up to sixteen times. But these
 * tensors are a small part of all. Only many views of the same elements exceed this limit. */
enum { DERIVED_TIMES = 4, DERIVED_BYTES = 64 << 20 };

enum { ROWS_LOOKED_AT = 16 /* the latest tables of a storage: it may have any number of views */ };

/* ---------------------------------------------------------------- keys */

static uint64_t hash_layout(const struct layout *layout, uint64_t hash)
{
    hash = XXH3_64bits_withSeed(layout->shape, layout->rank * sizeof *layout->shape,
                                hash ^ (uint64_t)layout->offset);
    return XXH3_64bits_withSeed(layout->stride, layout->rank * sizeof *layout->stride, hash);
}

static uint64_t hash_key(const struct derived_key *key)
{
    const uint64_t parts[] = {(uint64_t)key->kind, (uint64_t)key->first, (uint64_t)key->size,
                              key->storages[0] | (uint64_t)key->storages[1] << 32,
                              key->storages[2]};
    return hash_layout(&key->others, hash_layout(&key->layout, XXH3_64bits(parts, sizeof parts)));
}

static bool same_layout(const struct layout *a, const struct layout *b)
{
    return layout_same_shape(a, b) && a->offset == b->offset &&
           memcmp(a->stride, b->stride, a->rank * sizeof *a->stride) == 0;
}

/* Whether keys differ at most in their layouts. */
static bool same_but_layouts(const struct derived_key *a, const struct derived_key *b)
{
    return a->kind == b->kind && a->first == b->first && a->size == b->size &&
           memcmp(a->storages, b->storages, sizeof a->storages) == 0;
}

bool derived_same_key(const struct derived_key *a, const struct derived_key *b)
{
    return same_but_layouts(a, b) && same_layout(&a->layout, &b->layout) &&
           same_layout(&a->others, &b->others);
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

/* Input i of a table; the plan's scalars if it is derived from no input. */
static const struct storage *storage_of(const struct launcher *self, const struct step *step,
                                        const struct table *table, int i)
{
    return table->inputs[i] == NO_INPUT ? self->plan->constants.storage
                                        : step->in[table->inputs[i]]->storage;
}

static bool has_input(const struct table *table, int i)
{
    return i == 0 || table->inputs[i] != NO_INPUT;
}

/* The first one has the weights of digit 0. Others follow as axes: storage and offset. */
static void add_weights(const struct step *step, struct layout *others)
{
    others->rank = (uint32_t)step->out->layout.shape[0] - 1;
    for (uint32_t i = 0; i < others->rank; i++) {
        const struct tensor *b = step_weights(step, i + 1);
        others->shape[i] = b->storage->id;
        others->stride[i] = b->layout.offset;
    }
}

static struct derived_key key_of(const struct launcher *self, const struct step *step,
                                 const struct table *table)
{
    struct derived_key key = table->key;
    for (int i = 0; i < TABLE_INPUTS; i++)
        if (has_input(table, i))
            key.storages[i] = storage_of(self, step, table, i)->id;
    if (key.kind == DERIVED_WEIGHTS)
        add_weights(step, &key.others);
    return key;
}

uint64_t derived_version(const struct launcher *self, const struct step *step,
                         const struct table *table)
{
    uint64_t version = 0; /* a sum: each version only grows */
    for (int i = 0; i < TABLE_INPUTS; i++)
        if (has_input(table, i))
            version += self->storages[storage_of(self, step, table, i)->id].version;
    for (int64_t i = 1; table->key.kind == DERIVED_WEIGHTS && i < step->out->layout.shape[0]; i++)
        version += self->storages[step_weights(step, i)->storage->id].version;
    return version;
}

/* ---------------------------------------------------------------- the cache */

static struct derived **bucket_of(const struct derived_cache *cache, uint64_t hash)
{
    return &cache->buckets[hash % DERIVED_BUCKETS];
}

/* A table of the storage that has at least the rows of a key, and is filled; or NULL. */
static struct derived *find_rows(const struct device_storage *storage,
                                 const struct derived_key *key, uint64_t version)
{
    int left = ROWS_LOOKED_AT;
    struct derived *found = storage->derived;
    for (; found && left > 0; found = found->next_of_storage, left--)
        if (found->version == version + 1 && same_but_layouts(&found->key, key) &&
            begins(&key->layout, &found->key.layout) && begins(&key->others, &found->key.others))
            return found;
    return NULL;
}

enum healcl_status derived_find(struct launcher *self, const struct step *step,
                                const struct table *table, struct derived **derived,
                                struct healcl_error *error)
{
    struct derived_cache *cache = &self->cache;
    if (!cache->buckets)
        cache->buckets = calloc(DERIVED_BUCKETS, sizeof(struct derived *));
    NEED_MEMORY(cache->buckets, error);
    const struct derived_key key = key_of(self, step, table);
    const uint64_t hash = hash_key(&key);
    struct derived **bucket = bucket_of(cache, hash), *found = *bucket;
    struct device_storage *storage = &self->storages[key.storages[0]];
    while (found && (found->hash != hash || !derived_same_key(&found->key, &key)))
        found = found->next_of_bucket;
    const uint64_t version = derived_version(self, step, table);
    struct derived *rows = table->has_rows && (!found || found->version != version + 1)
                               ? find_rows(storage, &key, version)
                               : NULL;
    found = rows ? rows : found;
    if (!found) {
        found = calloc(1, sizeof *found);
        NEED_MEMORY(found, error);
        *found = (struct derived){.next_of_storage = storage->derived,
                                  .next_of_bucket = *bucket,
                                  .hash = hash,
                                  .key = key};
        storage->derived = *bucket = found;
    }
    *derived = found;
    return HEALCL_OK;
}

/* The memory of a table on host and device. */
static uint64_t bytes_of(const struct derived *derived)
{
    enum { BUFFER_BYTES_MIN = 256 };
    const uint64_t bytes = derived->table.bytes;
    return sizeof *derived +
           (derived->table.memory && bytes < BUFFER_BYTES_MIN ? BUFFER_BYTES_MIN : bytes);
}

void derived_filled(struct launcher *self, struct derived *derived, uint64_t version)
{
    derived->version = version + 1;
    self->cache.bytes += bytes_of(derived);
}

void derived_release(struct launcher *self, struct derived *derived)
{
    if (derived->version > 0)
        self->cache.bytes -= bytes_of(derived);
    derived->version = 0;
    device_buffer_release(self->device, &derived->table);
}

void derived_forget(struct launcher *self, struct device_storage *storage)
{
    if (storage->derived)
        self->cache.epoch++;
    while (storage->derived) {
        struct derived *derived = storage->derived;
        struct derived **link = bucket_of(&self->cache, derived->hash);
        while (*link != derived)
            link = &(*link)->next_of_bucket;
        *link = derived->next_of_bucket;
        storage->derived = derived->next_of_storage;
        derived_release(self, derived);
        free(derived);
    }
}

void derived_forget_all(struct launcher *self)
{
    for (size_t id = 0; id < self->plan->storage_count + 1 + STEP_OPERANDS; id++)
        derived_forget(self, &self->storages[id]);
}

void derived_limit(struct launcher *self)
{
    if (self->cache.bytes / DERIVED_TIMES > self->plan->bytes_peak + DERIVED_BYTES / DERIVED_TIMES)
        derived_forget_all(self);
}
