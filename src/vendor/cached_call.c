/* A cache of planned calls of vendors' operations, by their arguments. */
#include <string.h>
#include <xxhash.h>

#include "vendor/vendor.h"

/* A key consists of words: the operation, then the words of each parameter. An integer gives its
 * value. A tensor gives its dtype, its layout, and the first parameter with the same storage. */
enum { WORDS_MAX = 1 + PARAMETERS_MAX * (4 + 2 * LAYOUT_RANK) };

struct cache_key {
    size_t count;
    int64_t words[WORDS_MAX];
};

struct cached_call {
    const struct cached_call *next; /* of the same bucket */
    uint64_t hash;
    size_t count;
    int64_t *words;
    struct vendor_plan plan;
};

static int64_t first_of_storage(const struct call *call, uint32_t i)
{
    uint32_t first = 0;
    while (!call->tensors[first] || call->tensors[first]->storage != call->tensors[i]->storage)
        first++;
    return first;
}

static void add_words(struct cache_key *key, const int64_t *words, size_t count)
{
    memcpy(key->words + key->count, words, count * sizeof *words);
    key->count += count;
}

static void cached_call_add_parameter(struct cache_key *key, const struct call *call, uint32_t i)
{
    const struct vendor_operation *operation = call->form->operation->context;
    const struct tensor *tensor = call->tensors[i];
    if (!tensor) {
        const bool is_looked_at = operation->parameters[i].number != NO_INPUT;
        add_words(key, (const int64_t[]){-1, is_looked_at ? call->entry->arguments[i].integer : 0},
                  2);
        return;
    }
    const struct layout *layout = &tensor->layout;
    add_words(key,
              (const int64_t[]){tensor->storage->dtype, first_of_storage(call, i), layout->rank,
                                layout->offset},
              4);
    add_words(key, layout->shape, layout->rank);
    add_words(key, layout->stride, layout->rank);
}

static uint64_t make_key(const struct call *call, struct cache_key *key)
{
    key->count = 0;
    add_words(key, (const int64_t[]){(int64_t)(intptr_t)call->form->operation->context}, 1);
    for (uint32_t i = 0; i < call->form->parameter_count; i++)
        cached_call_add_parameter(key, call, i);
    return XXH64(key->words, key->count * sizeof *key->words, 0);
}

const struct vendor_plan *cached_call_find(const struct call *call)
{
    const struct cached_calls *all = call->planner->kept;
    struct cache_key key;
    if (!all || all->count == 0)
        return NULL;
    const uint64_t hash = make_key(call, &key);
    const struct cached_call *kept = all->buckets[hash % CACHED_CALLS_MAX];
    while (kept && (kept->hash != hash || kept->count != key.count ||
                    memcmp(kept->words, key.words, key.count * sizeof *key.words) != 0))
        kept = kept->next;
    return kept ? &kept->plan : NULL;
}

enum healcl_status cached_call_add(const struct call *call, const struct vendor_plan *plan,
                                   struct healcl_error *error)
{
    struct cached_calls *all = call->planner->kept;
    struct cache_key key;
    const uint64_t hash = make_key(call, &key);
    struct cached_call *kept = arena_alloc(all->arena, sizeof *kept);
    int64_t *words = arena_alloc(all->arena, key.count * sizeof *words);
    NEED_MEMORY(kept && words, error);
    memcpy(words, key.words, key.count * sizeof *words);
    const struct cached_call **bucket = &all->buckets[hash % CACHED_CALLS_MAX];
    *kept = (struct cached_call){*bucket, hash, key.count, words, *plan};
    *bucket = kept;
    return HEALCL_OK;
}
