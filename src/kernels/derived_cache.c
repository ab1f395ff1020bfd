/* Derived tables, found by their keys: a list for each storage, and a hash table for all. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "kernels/derived.h"

/* Kept tables may take this many times the peak memory of all tensors, plus a constant. Twiddles
 * take up to six times the memory of their tensor, and moduli up to sixteen times. But these
 * tensors are a small part of all. Only many views of the same elements exceed this limit. */
enum { DERIVED_TIMES = 4, DERIVED_BYTES = 64 << 20 };

/* Of a storage's tables, the latest ones are searched for a longer table: a storage may have any
 * number of views. */
enum { LONGER_SEARCHED = 16 };

/* ---------------------------------------------------------------- keys */

static uint64_t hash_layout(const struct layout *layout, uint64_t hash)
{
    if (layout->rank == 0)
        return hash;
    hash = XXH3_64bits_withSeed(layout->shape, layout->rank * sizeof *layout->shape,
                                hash ^ (uint64_t)layout->offset);
    return XXH3_64bits_withSeed(layout->stride, layout->rank * sizeof *layout->stride, hash);
}

static uint64_t hash_key(const struct derived_key *key)
{
    const uint64_t parts[] = {
        (uint64_t)key->kind, (uint64_t)key->index_min, (uint64_t)key->index_end,
        key->storages[0] | (uint64_t)key->storages[1] << 32, key->storages[2]};
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
    return a->kind == b->kind && a->index_min == b->index_min && a->index_end == b->index_end &&
           memcmp(a->storages, b->storages, sizeof a->storages) == 0;
}

bool derived_same_key(const struct derived_key *a, const struct derived_key *b)
{
    return same_but_layouts(a, b) && same_layout(&a->layout, &b->layout) &&
           same_layout(&a->others, &b->others);
}

/* Whether a view is equal to another one, or to its first part along axis 0. */
static bool is_first_part(const struct layout *view, const struct layout *whole)
{
    struct layout part = *whole;
    if (view->rank > 0 && view->rank == whole->rank && view->shape[0] <= whole->shape[0])
        part.shape[0] = view->shape[0];
    return same_layout(view, &part);
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

static int64_t digits_of(const struct step *step)
{
    return step->out->layout.shape[0];
}

/* A table of weights depends on a tensor for each digit, all with the same strides. The key's first
 * layout is that of digit 0. For each later digit, an axis of the second layout has the storage and
 * the offset. */
static void add_weights(const struct step *step, struct layout *others)
{
    others->rank = (uint32_t)digits_of(step) - 1;
    for (uint32_t i = 0; i < others->rank; i++) {
        const struct tensor *b = step_weights(step, i + 1);
        others->shape[i] = b->storage->id;
        others->stride[i] = b->layout.offset;
    }
}

/* The key of a step's table: that of its template, with the step's storages. */
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

/* A number that changes when any storage that the table is derived from is written. */
uint64_t derived_version(const struct launcher *self, const struct step *step,
                         const struct table *table)
{
    uint64_t version = 1; /* plus the versions of all storages, which only grow */
    for (int i = 0; i < TABLE_INPUTS; i++)
        if (has_input(table, i))
            version += self->storages[storage_of(self, step, table, i)->id].version;
    for (int64_t digit = 1; table->key.kind == DERIVED_WEIGHTS && digit < digits_of(step); digit++)
        version += self->storages[step_weights(step, digit)->storage->id].version;
    return version;
}

/* ---------------------------------------------------------------- the cache */

static struct derived **bucket_of(const struct derived_cache *cache, uint64_t hash)
{
    return &cache->buckets[hash % DERIVED_BUCKETS];
}

/* A table that is filled from this version, and begins with the elements of the table that the key
 * names. Twiddles of more moduli begin with those of fewer, for example. NULL: none was found. */
static struct derived *find_longer(const struct device_storage *storage,
                                   const struct derived_key *key, uint64_t version)
{
    struct derived *longer = storage->derived;
    for (int left = LONGER_SEARCHED; longer && left > 0; left--, longer = longer->next_of_storage)
        if (longer->filled_version == version && same_but_layouts(&longer->key, key) &&
            is_first_part(&key->layout, &longer->key.layout) &&
            is_first_part(&key->others, &longer->key.others))
            return longer;
    return NULL;
}

static struct derived *find_in_bucket(struct derived *first, const struct derived_key *key,
                                      uint64_t hash)
{
    struct derived *found = first;
    while (found && (found->hash != hash || !derived_same_key(&found->key, key)))
        found = found->next_of_bucket;
    return found;
}

/* Finds a step's table by its key, or adds an empty one. A filled table of more rows is taken
 * instead, if the table allows it. */
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
    struct derived **bucket = bucket_of(cache, hash);
    struct derived *found = find_in_bucket(*bucket, &key, hash);
    struct device_storage *owner = &self->storages[key.storages[0]];
    const uint64_t version = derived_version(self, step, table);
    if (table->longer_serves && (!found || found->filled_version != version)) {
        struct derived *longer = find_longer(owner, &key, version);
        found = longer ? longer : found;
    }
    if (!found) {
        found = calloc(1, sizeof *found);
        NEED_MEMORY(found, error);
        *found = (struct derived){
            .next_of_storage = owner->derived, .next_of_bucket = *bucket, .hash = hash, .key = key};
        owner->derived = *bucket = found;
    }
    *derived = found;
    return HEALCL_OK;
}

/* The memory of a table on host and device. */
static uint64_t bytes_of(const struct derived *derived)
{
    enum { BUFFER_BYTES_MIN = 256 }; /* what a small buffer takes at least */
    const uint64_t bytes = derived->table.bytes;
    return sizeof *derived +
           (derived->table.memory && bytes < BUFFER_BYTES_MIN ? BUFFER_BYTES_MIN : bytes);
}

void derived_filled(struct launcher *self, struct derived *derived, uint64_t version)
{
    derived->filled_version = version;
    self->cache.bytes += bytes_of(derived);
}

void derived_release(struct launcher *self, struct derived *derived)
{
    if (derived->filled_version > 0)
        self->cache.bytes -= bytes_of(derived);
    derived->filled_version = 0;
    device_buffer_release(self->device, &derived->table);
}

/* Frees all tables of a storage. A table is in two lists: its storage's, and that of its bucket. */
void derived_forget(struct launcher *self, struct device_storage *storage)
{
    if (storage->derived)
        self->cache.epoch++; /* bound steps find their tables again */
    while (storage->derived) {
        struct derived *derived = storage->derived;
        struct derived **to_derived = bucket_of(&self->cache, derived->hash);
        while (*to_derived != derived)
            to_derived = &(*to_derived)->next_of_bucket;
        *to_derived = derived->next_of_bucket;
        storage->derived = derived->next_of_storage;
        derived_release(self, derived);
        free(derived);
    }
}

void derived_forget_all(struct launcher *self)
{
    /* Those of the plan, of launch_pack, and of a slice's operands: see launcher_init. */
    for (size_t id = 0; id < self->plan->storage_count + 1 + STEP_OPERANDS; id++)
        derived_forget(self, &self->storages[id]);
}

void derived_forget_listed(struct launcher *self)
{
    for (size_t id = 0; id < self->plan->storage_count; id++)
        for (struct derived *table = self->storages[id].derived; table;
             table = table->next_of_storage)
            if (!table->table.memory)
                derived_release(self, table);
}

void derived_limit(struct launcher *self)
{
    /* bytes > DERIVED_TIMES * bytes_peak + DERIVED_BYTES, without overflow */
    if (self->cache.bytes / DERIVED_TIMES > self->plan->bytes_peak + DERIVED_BYTES / DERIVED_TIMES)
        derived_forget_all(self);
}
